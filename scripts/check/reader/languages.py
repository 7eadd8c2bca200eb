"""Blocks in other languages: where a page's reader saves them, and how each is run."""

import re
import shutil
import subprocess

from page import Lacking, Wrong

FOUND = re.compile(r"\b\d{16,20}\b")
TOOLS = {"java": "java", "go": "go", "js": "node", "python": "python3"}
PROGRAMS = {"go", "npm", "javac", "jar"}
# Files around a fragment of a Java program: Spring and MyBatis-Plus, as far as the pages use them.
AROUND = {
    "Bean.java": "public @interface Bean {}",
    "Value.java": "public @interface Value { String value(); }",
    "IdentifierGenerator.java": "public interface IdentifierGenerator { Number nextId(Object entity); }",
}
IMPORTS = """import com.robert.vesta.service.intf.IdService;
import java.io.IOException;
import java.net.URI;
import java.net.http.*;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import vesta.client.VestaClient;
"""


def saved(block, work, environment):
    """Saves a block as a file; returns the command that runs it."""
    if not shutil.which(TOOLS[block.language]):
        raise Lacking(f"there is no {TOOLS[block.language]}")
    if "from vesta_id import" in block.text:
        found = subprocess.run(["python3", "-c", "import vesta_id"], env=environment, cwd=work, capture_output=True)
        if found.returncode:
            raise Lacking("the wheel, which scripts/check/python.sh builds and then reads this")
    return globals()[block.language](block.text, work)


def java(text, work):
    if not re.search(r"^import ", text, re.MULTILINE):  # part of a program: it compiles
        folder = work / "fragment"
        folder.mkdir(exist_ok=True)
        for name, code in AROUND.items():
            (folder / name).write_text(code)
        inside = text if re.match(r"\s*(public )?class ", text) else f"class Fragment {{\n{text}}}\n"
        (folder / "Fragment.java").write_text(IMPORTS + inside)
        classes = work.parent / "vesta/clients/java/src/main/java"
        return f"javac -proc:none -d fragment -sourcepath {classes} fragment/*.java"
    name = re.search(r"class (\w+)", text)[1]
    (work / f"{name}.java").write_text(text)
    return f"java -cp vesta.jar {name}.java"


def python(text, work):
    (work / "example.py").write_text(text)
    return "python3 example.py"


def go(text, work):
    (work / "main.go").write_text(text)
    return "go run ."


def js(text, work):
    name = "example.mjs" if re.search(r"^import ", text, re.MULTILINE) else "example.cjs"
    (work / name).write_text(text)
    return f"node {name}"


def compare(text, printed):
    """A program that prints an ID has one, and what stands behind `print` as a comment."""
    if re.search(r"print(ln)?\(|Println|console\.log", text) and "2407837855670862845" not in text:
        if not FOUND.search(printed):
            raise Wrong(f"it prints no ID: {printed}")
    for shown in re.findall(r"^print\(.*\)\s+# (.*)$", text, re.MULTILINE):
        if shown not in printed.splitlines():
            raise Wrong(f"--- shown\n{shown}\n--- printed\n{printed}")
