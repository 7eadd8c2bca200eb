"""What a page says of IDs and of settings, wherever it stands, compared with the program; and whether its Rust is
compiled by the tests of a crate."""

import re
import subprocess
import tempfile
from collections import defaultdict
from functools import cache
from pathlib import Path

from shown import explain

ROOT = Path(__file__).resolve().parents[3]
ID = re.compile(r"(?<![\d.])\d{16,20}(?![\d.])")
# Words beside an ID, by the name of the field.
CLAIMS = (
    ("machine", r'\bmachine(?: ID)? +(\d+)\b|"machine":(\d+)|\bmachine=(\d+)\b(?!-)'),
    ("genMethod", r'\bgenMethod +(\d)\b|"genMethod":(\d)|\bgenMethod=(\d)\b(?!-)'),
    ("seq", r'\bseq +(\d+)\b|"seq":(\d+)|\bseq=(\d+)'),
    ("time", r'\btime +(\d+)\b|"time":(\d+)|\btime=(\d+)'),
    ("moment", r"\b(20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d)"),
)
# OpenTelemetry's attributes and names of files look like settings.
NO_KEY = re.compile(r"http\.(route|request|response)|.*\.rs$")
# Flags of other programs that stand alone in prose.
OTHER_FLAGS = {
    "--lazy-apps": "uWSGI", "--preload": "gunicorn", "--auto-compaction-retention": "etcd",
    "--listen-client-http-urls": "etcd", "--no-default-features": "cargo", "--features": "cargo",
    "--ignore-rust-version": "cargo", "--force": "kubectl",
}  # fmt: skip


@cache
def layouts():
    done = subprocess.run(["vesta", "layout", "list", "-o", "csv"], capture_output=True, text=True)
    return [line.split(",")[0] for line in done.stdout.splitlines()[1:]]


def layout_of(line):
    """The layout that the line names, alone and as a word."""
    named = [name for name in layouts() if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", line)]
    return named[0] if len(named) == 1 else "max-peak" if not named else None


def ids(text):
    """Faults in lines that say something of the one ID in them."""
    asked = defaultdict(list)
    machine = None  # of the server whose first lines are shown
    columns, before = [], ""
    for number, line in enumerate(text.splitlines(), 1):
        columns = before.split("|") if line.startswith("|---") else columns if line.startswith("|") else []
        before = line
        if line.strip().startswith("```"):
            machine = None
        elif slot := re.match(r"\s+machine ID +(\d+) \(", line):
            machine = slot[1]
        found = [it for it in ID.findall(line) if int(it) < 1 << 64]
        says = {name: match for name, pattern in CLAIMS if len(match := re.findall(pattern, line)) == 1}
        says = {name: "".join(match[0]) for name, match in says.items()}
        fields = dict(zip((cell.strip() for cell in columns), (cell.strip() for cell in line.split("|"))))
        says |= {name: fields[name] for name, _ in CLAIMS if re.fullmatch(r"\d+", fields.get(name, ""))}
        if machine and line.strip().startswith("first ID"):
            says["machine"] = machine
        if found and says and (layout := layout_of(line)):
            asked[layout].append((number, found[0], says))
    for layout, lines in asked.items():
        known = explain(sorted({raw for _, raw, _ in lines}), layout)
        for number, raw, says in lines:
            for name, value in says.items():
                is_ = str(known[raw][name]) if raw in known else "no ID"
                is_ = is_[: len(value)] if name == "moment" else is_
                if is_ != value:
                    yield f"line {number}: {raw} beside {name} {value}: vesta explain --layout {layout} says {is_}"


@cache
def known():
    """Keys, flags and variables: of the example file, which tests compare with the program, and of the manual."""
    keys, section = set(), ""
    for line in (ROOT / "docs/vesta.example.toml").read_text("utf-8").splitlines():
        if match := re.match(r"#?\[+([\w.]+)\]+", line):
            section = match[1] + "."
            keys.add(match[1])
        elif match := re.match(r"#?([\w.]+) = ", line):
            keys.add(section + match[1])
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["vesta", "man", folder], check=True, capture_output=True)
        manual = "".join(page.read_text("utf-8") for page in Path(folder).iterdir()).replace("\\-", "-")
    # The manual has no other names of flags.
    manual += subprocess.run(["vesta", "explain", "--help"], check=True, capture_output=True, text=True).stdout
    flags = set(re.findall(r"--[a-z][a-z0-9-]*", manual)) | {"--help", "--version"}
    return keys, flags, set(re.findall(r"\bVESTA_[A-Z_]+\b", manual))


@cache
def tools():
    """Variables of the scripts and tests."""
    command = ["git", "-C", str(ROOT), "grep", "-ohE", r"\bVESTA_[A-Z_]+", "--", "scripts", "*.rs", "deploy"]
    command.append(":!scripts/check/reader")  # which plants one
    return set(subprocess.run(command, capture_output=True, text=True).stdout.split())


def settings(text):
    """Names of settings that do not exist."""
    keys, flags, variables = known()
    sections = {key.split(".")[0] for key in keys if "." in key}
    # Last parts that mean nothing else, and so must be said whole. `layout.custom` has its table
    last = {key.rpartition(".")[2] for key in keys if "." in key and not key.startswith("layout.")} - keys
    last = {name for name in last if "_" in name} | {"listen"}
    for number, line in enumerate(text.splitlines(), 1):
        for name in re.findall(r"\bVESTA_[A-Z_]*[A-Z]\b(?!_?[…*])", line):
            if name not in variables and name not in tools():
                yield f"line {number}: there is no variable {name}"
        for code in re.findall(r"`([^`]+)`", line):
            key = re.match(r"([a-z_]+(?:\.[a-z_]+)+)(?: = .*)?$", code)
            if key and key[1].split(".")[0] in sections and key[1] not in keys and not NO_KEY.match(key[1]):
                yield f"line {number}: there is no setting {key[1]}"
            if (bare := re.match(r"([a-z_]+)(?: = .*)?$", code)) and bare[1] in last:
                yield f"line {number}: a setting without its section: {bare[1]}"
            if re.match(r"(vesta|cargo run --) ", code) or code.startswith("--"):
                for flag in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", code.removeprefix("cargo run -- ")):
                    if flag not in flags and flag not in OTHER_FLAGS:
                        yield f"line {number}: there is no flag {flag}"


@cache
def included():
    """Pages that `cargo test --doc` compiles, or scripts/check/outside.sh."""
    command = ["git", "-C", str(ROOT), "grep", "-hE", r"^#\[doc = include_str!", "--", "*.rs"]
    lines = subprocess.run(command, capture_output=True, text=True).stdout
    return {re.sub(r"^(\.\./)+", "", path) for path in re.findall(r'include_str!\("([^"]+)"\)', lines)}


def compiled(name):
    """The page whose Rust blocks are compiled for this one: of a translation its original."""
    name = re.sub(r"^docs/zh-CN/", "docs/", name).replace(".zh-CN", "")
    # The README of a crate is written from its documentation (vesta-boot/tests/docs.rs).
    return name in included() or re.fullmatch(r"vesta-\w+/README.md", name)


def rust(name, text):
    if re.search(r"^\s*```rust", text, re.MULTILINE) and not compiled(name):
        yield "no test compiles its Rust: include it in a crate's documentation, as vesta-boot does with README.md"


def faults(name, text):
    """What is wrong with the text of a page, without a machine."""
    yield from ids(text)
    if not name.startswith("docs/inside/") and not name.endswith("CHANGELOG.md"):  # names of files, and of the past
        yield from settings(text)
    yield from rust(name, text)
    yield from (f"line {number}: [..] is a test's sign, not an output" for number, line in enumerate(text.splitlines(), 1) if "[..]" in line)
