"""Compares the Chinese pages with their English originals and follows the links in all documents.

A translation has its original's headings, tables, lists and code in the same order; comments in code may differ. Each
section names the same settings, commands and values.
Files and tests that a document names must exist. A page of the book links to other pages only: it names files of the
repository by their path. The SUMMARY.md of a book lists its pages, and no page but a generated one is longer than 350
lines."""

import difflib
import os
import re
import sys
from pathlib import Path

CHINESE = Path("docs/zh-CN")
SUMMARY = "SUMMARY.md"
LONGEST = 350  # lines of a page
GENERATED = {"docs/operate/settings.md"}
ABRIDGED = {"README.md", "cli.md"}  # rows of tables and output of commands may be left out
COMMENT = {"text": "(?!)", "sql": "-- .*"}  # of other languages: // and #


def lines_of(path):
    """Yields number, line and language: empty for prose, "```" for a fence."""
    language = ""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        fence = line.lstrip().startswith("```")
        yield number, line, "```" if fence else language
        language = language if not fence else "" if language else line.strip("` ") or "text"


def outline(path, abridged):
    """The parts that a translation has in common with its original, each with its line number."""
    parts, comment = [(1, "")], ""
    for number, line, language in lines_of(path):
        if language == "console":  # byte for byte
            part = line if not abridged else re.sub(" # .*", "", line) if line[:2] == "$ " else ""
        elif language:
            part = comment + re.sub(COMMENT.get(language, r"(?<!\S)(//+|#) .*"), "", line)
        elif line.startswith("|"):
            part = "" if abridged else "row with %d cells" % (len(re.findall(r"(?<!\\)[|]", line)) - 1)
        else:
            part = "".join(re.findall(r"^(?:#+ |[*-] |\d+\. |    .*)", line))
        comment = line + "\n" if line.startswith("<!--") and not language else ""  # belongs to the code after it
        parts += [(number, part.rstrip())] if part.strip() else []
    return parts


def named(path):
    """The line of each heading, and what its section sets as code."""
    sections = [(1, "")]
    for number, line, language in lines_of(path):
        if not language:
            sections += [(number, "")] if line.startswith("#") else []
            sections[-1] = sections[-1][0], f"{sections[-1][1]} {line.strip()}"
    return [(number, set(re.findall("`[^`]+`", text))) for number, text in sections]


def original(chinese):
    """The page that this one translates, or None."""
    if CHINESE in chinese.parents and chinese.name != SUMMARY:
        return "docs" / chinese.relative_to(CHINESE)
    return chinese.with_name(chinese.name.replace(".zh-CN", "")) if ".zh-CN" in chinese.name else None


def compare(chinese, english):
    for path, aim, language in (chinese, english, "English"), (english, chinese, "中文"):
        link = f"[{language}]({os.path.relpath(aim, path.parent)})"
        if path.read_text("utf-8").splitlines()[1:4] != ["", link, ""]:
            yield f"{path}:3: not {link}"
    abridged = english.name in ABRIDGED
    here, there = outline(chinese, abridged), outline(english, abridged)
    matcher = difflib.SequenceMatcher(None, [part for _, part in here], [part for _, part in there], autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        for path, parts, i, j in ((chinese, here, a, b), (english, there, c, d)) if kind != "equal" else ():
            yield f"{path}:{parts[min(i, len(parts) - 1)][0]}: {[part for _, part in parts[i:j]][:3]}"
    for (a, ours), (b, theirs) in zip(named(chinese), named(english)) if not abridged else ():
        if ours != theirs:
            yield f"{chinese}:{a}: not as in {english}:{b}: {', '.join(sorted(ours ^ theirs))}"


def wrapped(path):
    """Browsers show a line break between Chinese characters as a blank: a paragraph is one line."""
    before = ""
    for number, line, language in lines_of(path):
        text = "" if language or re.match(r"[#|!<]|\s*(?:[*-]|\d+\.) ", line) else line.strip()
        if text and before and re.search("[\u2e80-\u9fff\uff00-\uffef]", before[-1] + text[0]):
            yield f"{path}:{number}: join this line with the one before"
        before = "" if language or line.startswith(("#", "|", "!", "<")) else line.strip()


def anchors(path):
    found = set()
    for heading in [line.lstrip("#") for _, line, language in lines_of(path) if not language and line[:1] == "#"]:
        slug = re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", heading).strip().lower()).replace(" ", "-")
        found.add(next(s for s in [slug, *(f"{slug}-{n}" for n in range(1, 99))] if s not in found))
    return found


def broken(path):
    for number, line, language in lines_of(path):
        for target in [] if language else re.findall(r"\]\(([^)\s]+)", re.sub("`[^`]*`", "", line)):
            file, _, anchor = target.partition("#")
            aim = path.parent / file if file else path
            found = aim.exists() and (not anchor or aim.suffix != ".md" or anchor in anchors(aim))
            if re.match("https?:|mailto:", target):
                continue
            if not found:
                yield f"{path}:{number}: {target} leads nowhere"
            elif path.is_relative_to("docs") and not os.path.normpath(aim).startswith("docs/"):
                yield f"{path}:{number}: {target} is outside the book: name its path"


def absent(path, sources):
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        files = re.findall(r"`((?:vesta-[a-z]+|scripts|deploy|ops)/[\w./-]+)`", line)
        yield from (f"{path}:{number}: there is no {file}" for file in files if not Path(file).exists())
        tests = re.findall(r"`(?!vesta_)([a-z0-9]+(?:_[a-z0-9]+){4,})`", line)
        yield from (f"{path}:{number}: there is no test {test}" for test in tests if test not in sources)
        binaries = [] if path.name == "CHANGELOG.md" else re.findall(r"--test (\w+)", line)
        for name in binaries:
            if not [*Path().glob(f"vesta-*/tests/{name}.rs"), *Path().glob(f"vesta-*/tests/{name}/main.rs")]:
                yield f"{path}:{number}: there is no test binary {name}"


def missing(pages):
    for book in Path("docs"), CHINESE:
        listed = re.findall(r"\]\(([^)]+)\)", (book / SUMMARY).read_text("utf-8"))
        own = [page for page in pages if (CHINESE in page.parents) == (book == CHINESE) and page.name != SUMMARY]
        unlisted = [page for page in own if str(page.relative_to(book)) not in listed]
        yield from (f"{book / SUMMARY}: {page} is missing" for page in unlisted)
    for page in pages:
        length = len(page.read_text("utf-8").splitlines())
        if length > LONGEST and str(page).replace("zh-CN/", "") not in GENERATED:
            yield f"{page}: {length} lines, more than {LONGEST}"


os.chdir(Path(__file__).resolve().parents[3])
pages = sorted(Path("docs").glob("**/*.md"))
documents = [*sorted(Path().glob("*.md")), *pages]
rust = [*Path().glob("vesta-*/**/*.rs"), *Path("scripts/lib/testkit").glob("**/*.rs")]
code = [*rust, *Path("clients/python/tests").glob("*.py")]
sources = "".join(path.read_text("utf-8") for path in code)
wrong = [
    w
    for path in documents
    for w in (
        *([*compare(path, original(path)), *wrapped(path)] if original(path) else ()),
        *broken(path),
        *absent(path, sources),
    )
] + list(missing(pages))
print("\n".join(wrong) or f"{len(documents)} documents: translations agree with their originals, what they name is there")
sys.exit(bool(wrong))
