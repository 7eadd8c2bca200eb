#!/usr/bin/env python3
"""Compares docs/inside/architecture.md with the sources: each path that it names exists, its map of the crates names each
room, and the invariants that a text can show hold as written."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs/inside/architecture.md"
TESTS = re.compile(r"/(tests?|races|schedules|fuzz|testing|model|conformance|segment_conformance|crash_loop)(\.rs$|/)")

# Invariant 3. These files read a clock of the system or put a thread to sleep.
CLOCKS = ["vesta-service/src/clock.rs"]
# Invariant 14. Number of unsafe blocks.
UNSAFE = {
    "vesta-client/src/fork.rs": 1,
    "vesta-service/src/clock.rs": 2,
    "vesta-service/src/fork.rs": 1,
    "vesta-store/src/backends/sqlite/lock.rs": 1,
}
# Invariant 15. These files keep state of the whole process or of a thread, beside constants.
STATE = {
    "vesta-boot/src/settings/declared.rs": "command lines, built once",
    "vesta-boot/src/start/traces.rs": "the exporter of traces",
    "vesta-cli/src/chaos.rs": "what an operator's command adds to its clock",
    "vesta-client/src/fork.rs": "forks",
    "vesta-client/src/trace.rs": "headers of a call that a thread waits for",
    "vesta-rest/src/handlers/pages.rs": "files of the API's page, read once",
    "vesta-rest/src/handlers/tinyid.rs": "fetches at a time",
    "vesta-service/src/clock.rs": "the start of monotonic time",
    "vesta-service/src/clock/cycles.rs": "frequency and anchor of the processor's counter",
    "vesta-service/src/fork.rs": "what a fork must close",
    "vesta-service/src/global.rs": "the default service",
    "vesta-service/src/host_guard.rs": "machine IDs held on this host",
    "vesta-service/src/id/populator/word.rs": "numbers of threads",
    "vesta-service/src/lease/host_state/own.rs": "records of this process",
    "vesta-service/src/lease/slot/home.rs": "the home slot of a thread",
    "vesta-service/src/reentry.rs": "whether a thread is inside a call",
    "vesta-service/src/sync/native.rs": "the macro for a value of each thread",
    "vesta-service/src/wait/back_off.rs": "the pause of a thread; what a claim costs",
    "vesta-service/src/wait/future.rs": "numbers of waiters",
    "vesta-store/src/backends/sqlite/lock.rs": "locks of open files",
}
# Invariant 15. These files start a thread, or a runtime with threads.
THREADS = {
    "vesta-boot/src/start/program.rs": "the fronts, and the end of a start",
    "vesta-boot/src/start/shutdown.rs": "the control thread, a hand-over, a close",
    "vesta-boot/src/tinyid_tokens.rs": "reads the tokens of Tinyid's clients again",
    "vesta-client/src/blocking.rs": "the runtime of the blocking client",
    "vesta-net/src/workers.rs": "the workers of a listener",
    "vesta-numbers/src/segment/core.rs": "the workers of segments",
    "vesta-service/src/lease/slot/keeper.rs": "the keeper",
    "vesta-store/src/remote/runtime.rs": "the runtime of an asynchronous store",
    "vesta-store/src/remote/runtime.rs": "the runtime of an asynchronous store",
}
# Invariants 1, 2, 8 and 9. A crate never depends on these, with any feature.
NEVER = {
    "vesta-intf": "vesta-",
    "vesta-explain": "vesta-(?!intf)",
    "vesta-service": "vesta-(?!intf)|tokio$",
    "vesta-numbers": "vesta-(?!intf|service)|tokio$",
    "vesta-net": "vesta-(?!intf)",
    "vesta-store": "vesta-(?!intf|explain|service|numbers)|clap|toml",
    "vesta-client": "vesta-(?!intf)",
    "vesta-server": "vesta-rest",
    "vesta-rest": "vesta-server",
}


def product():
    """Path and code of each product file, without comments and tests inside."""
    for path in sorted(ROOT.glob("vesta-*/src/**/*.rs")):
        name = str(path.relative_to(ROOT))
        if TESTS.search("/" + name):
            continue
        text = re.sub(r"\n#\[cfg\((?:all\()?test[^\n]*\n(?:#\[[^\n]*\n)*mod \w+ \{\n.*?\n\}\n", "\n", path.read_text(), flags=re.S)
        yield name, "\n".join(line for line in text.split("\n") if not line.strip().startswith("//"))


def paths_that_are_missing(text):
    """Paths of the page that do not exist. In a table of a crate, `src/…` is the crate's, and names after it are beside it."""
    crates, before = [], "src"
    for line in text.split("\n"):
        heading = re.match(r"\| \*\*(.*?)\*\*", line)
        if heading:
            crates = re.findall(r"vesta-\w+|scripts", heading.group(1)) + ([] if "src/lease" not in line else ["lease"])
        for name in re.findall(r"`([\w./-]+)`", line.split(" | ")[0] if line.startswith("| `") else line):
            if not re.search(r"\.(rs|py|sh|toml|md|proto)$|/$", name):
                continue
            places = [ROOT / name, PAGE.parent / name]
            for crate in crates:
                places += [ROOT / crate / name, ROOT / crate / "src" / name, ROOT / "scripts/check" / name, ROOT / "scripts/lib" / name]
            places += ROOT.glob(f"vesta-*/src/{name}")
            places += ROOT.glob(f"vesta-*/src/*/{name}")
            places += ROOT.glob(f"vesta-*/{name}")
            if not any(place.exists() for place in places):
                yield f"{name} does not exist (in: {line.strip()[:80]})"


def rooms_without_a_line(text):
    tables = text[text.index("## The crates") :]
    for crate in sorted(ROOT.glob("vesta-*/src")):
        if crate.parent.name in ("vesta-cli", "vesta-sample", "vesta-server", "vesta-rest", "vesta-client"):
            continue
        for room in sorted({it.stem for it in crate.glob("*.rs")} | {it.name for it in crate.iterdir() if it.is_dir()}):
            known = room in ("lib", "main", "generated", "races", "fuzz", "guide") or re.search(rf"\b{room}\b", tables)
            if not known:
                yield f"the map does not name {crate.parent.name}/src/{room}"


def differences(files):
    """What differs from the lists, in files as pairs of name and code."""
    clocks, unsafe, state, threads = set(), {}, set(), set()
    for name, code in files:
        if re.search(r"std::(time::)?(SystemTime|Instant)::now|\bSystemTime::now|thread::sleep|libc::time\(|clock_gettime\(", code):
            clocks.add(name)
        if re.search(r"(?<!tokio::time::)\bInstant::now\b", code) and "tokio::time::" not in code:
            clocks.add(name)
        found = len(re.findall(r"\bunsafe \{", code))
        if found:
            unsafe[name] = found
        statics = re.findall(r"^\s*(?:pub(?:\([a-z]+\))? )?static (?:mut )?\w+: ([^=]+)", code, flags=re.M)
        constants = r"\[|Digits|&|.*MiMalloc"
        if re.search(r"thread_local!", code) or any(not re.match(constants, it) for it in statics):
            state.add(name)
        if re.search(r"thread::Builder::new|\bthread::spawn\(|Builder::new_multi_thread", code):
            threads.add(name)
    for what, found, known in [
        ("reads a clock or sleeps", clocks, set(CLOCKS)),
        ("keeps state", state, set(STATE)),
        ("starts a thread", threads, set(THREADS)),
    ]:
        yield from (f"{it} {what}, which its list does not say" for it in sorted(found - known))
        yield from (f"{it} no longer {what}" for it in sorted(known - found))
    if unsafe != UNSAFE:
        yield f"unsafe code is in {unsafe}, its list says {UNSAFE}"


def answers(files):
    """Invariant 16: answers are values, and fronts write no JSON by hand."""
    for name, code in files:
        if re.match(r"vesta-boot/src/(answers|\w+/answers\.rs)", name) and re.search(r"\b(fs|net|Clock|SystemClock|tokio|KvStore|SegmentStore)\b", code):
            yield f"{name} does more than hold values"
        by_hand = name.startswith(("vesta-boot/src/admin", "vesta-rest/src", "vesta-server/src"))
        if by_hand and re.search(r"\bjson!", re.sub(r"#\[schema\(.*?\)\]\n", "", code, flags=re.S)):
            yield f"{name} writes JSON by hand"


def forbidden():
    for crate, never in NEVER.items():
        tree = subprocess.run(
            ["cargo", "tree", "-p", crate, "--all-features", "--edges", "normal", "--depth", "1", "--prefix", "none", "--format", "{p}"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        ).stdout
        for line in tree.splitlines()[1:]:
            if re.match(never, line.split(" ")[0]):
                yield f"{crate} must not depend on {line.split(' ')[0]}"


def main():
    text = PAGE.read_text()
    files = list(product())
    faults = [*paths_that_are_missing(text), *rooms_without_a_line(text), *differences(files), *answers(files), *forbidden()]
    # Planted: each check sees a difference.
    assert list(paths_that_are_missing("| `src/missing.rs` | a |"))
    assert list(differences([*files, ("planted.rs", "std::thread::sleep(x); unsafe { static A: u8 = 1; }")]))
    assert len(list(answers([("vesta-boot/src/answers/a.rs", "use std::fs;"), ("vesta-rest/src/a.rs", "json!({})")]))) == 2
    for fault in faults:
        print(f"architecture: {fault}", file=sys.stderr)
    if faults:
        sys.exit(1)
    print(f"architecture.md: its paths exist, the map is whole, {len(STATE)} places keep state, {len(THREADS)} start threads")


main()
