#!/usr/bin/env python3
"""The evidence: evidence.toml beside this file declares each fault with its tests, its command and the figure it
reached; matrix.toml declares, for each door and kind of fault, a test or the reason why the fault cannot occur. The
tables between the marks of docs/inside/evidence.md and assumptions.md are written from them.

usage: evidence.py write   finds each named test in the sources and writes the tables
       evidence.py check   fails if the tables are stale, if a cell of the matrix is empty, or if a named test, file or
                           filter is not in the sources
       evidence.py DOOR    the tests of a door for each kind of fault
"""

import json
import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGES = {name: ROOT / f"docs/inside/{page}.md" for name, page in (("evidence", "evidence"), ("matrix", "assumptions"))}
MARKS = "(<!-- {}: scripts/check/docs/evidence.py -->\n).*?(\n<!-- end of {} -->)"
SCENARIOS = "scripts/check/clients/scenarios.json"  # each client passes each of them
FIELDS = {"fault", "then", "tests", "run", "reached"}
SUITE = "vesta-store/src/conformance"  # a macro makes tests of its functions


def sources():
    """The names in each Rust file, by path: of functions, of modules, and those that a macro may make tests of."""
    folders = "vesta-*/src", "vesta-*/tests", "scripts/lib/testkit"
    found = [path for folder in folders for path in ROOT.glob(f"{folder}/**/*.rs")]
    found += ROOT.glob("clients/python/tests/*.py")
    files = {str(path.relative_to(ROOT)): names_in(path.read_text("utf-8")) for path in sorted(found)}
    scenarios = json.loads((ROOT / SCENARIOS).read_text("utf-8"))
    return {**files, SCENARIOS: {"fn": {it["name"] for it in scenarios}, "mod": set(), "macro": set()}}


def names_in(text):
    kinds = {"fn": r"\b(?:fn|def) (\w+)", "mod": r"\bmod (\w+)", "macro": r"(?m)^ +(\w+): "}
    return {kind: set(re.findall(pattern, text)) for kind, pattern in kinds.items()}


def paths_of(test, files):
    """The files that a declared test stands in; none if there is no such test."""
    if "/" in test:
        return [test] if any(path == test or test[-1] == "/" and path.startswith(test) for path in files) else []
    if test.endswith("*"):
        begins = lambda names: any(name.startswith(test[:-1]) for name in names["fn"] | names["macro"])
        return [path for path, names in files.items() if begins(names)]
    kind, name = ("mod", test[4:]) if test.startswith("mod ") else ("fn", test)
    return [path for path, names in files.items() if name in names[kind]]


def unmatched(command, files):
    """The words of a command's filters that no function, module or file of its test binary has."""
    call = re.match(r"--(?:test (\w+)|lib)((?: [\w:]+)*)(?: --(.*))?", command)
    if not call:
        script = command.split()[0]
        return [] if script == "cargo" or (ROOT / script).exists() else [script]
    part = f"/tests/{call[1]}" if call[1] else "/src/"
    if not any(part in path for path in files):
        return [command]
    inside = {path: names for path, names in files.items() if part in path or path.startswith(SUITE)}
    known = " ".join([*inside, *(name for names in inside.values() for name in names["fn"] | names["mod"])])
    words = f"{call[2]} {call[3] or ''}".replace("::", " ").split()
    return [word for word in words if word not in known and not word.startswith("--")]


def missing(groups, files):
    for fault in (fault for group in groups for fault in group["fault"]):
        name, tests = fault.get("fault", "a fault without a name"), fault.get("tests", [])
        yield from (f"{name}: there is no field {field}" for field in fault.keys() - FIELDS)
        yield from (f"{name}: there is no test {test}" for test in tests if not paths_of(test, files))
        for command in fault.get("run", []):
            yield from (f"{name}: {command}: nothing is called {word}" for word in unmatched(command, files))
        if not tests and not fault.get("run"):
            yield f"{name}: neither a test nor a command"


def incomplete(matrix, files):
    kinds = set(matrix["kind"])
    for door, cells in matrix["door"].items():
        yield from (f"{door}: there is no kind of fault {kind}" for kind in cells.keys() - kinds)
        yield from (f"{door}: the cell {kind} is empty" for kind in sorted(kinds) if not cells.get(kind))
        named = [test for tests in cells.values() if isinstance(tests, list) for test in tests]
        yield from (f"{door}: there is no test {test}" for test in named if not paths_of(test, files))


def listed(named, files):
    """The tests, those of one place together, with their place."""
    by_place = {}  # whole files and folders stand for themselves
    for test in named:
        place = "" if "/" in test else ", ".join(f"`{path}`" for path in paths_of(test, files))
        name = f"{test[4:]}::*" if test.startswith("mod ") else test
        by_place.setdefault(place, []).append(f"`{name}`")
    tests = [", ".join(names) + (f" ({place})" if place else "") for place, names in by_place.items()]
    return "; ".join(tests) or "–"


def cells(fault, files):
    commands = "; ".join(f"`{command}`" for command in fault.get("run", []))
    yield f"**{fault['fault']}** {fault['then']}"
    yield listed(fault.get("tests", []), files)
    yield ": ".join(filter(None, [commands, fault.get("reached")])) or "–"


def row(cells):
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def tables(groups, files):
    for group in groups:
        yield f"\n### {group['title']}\n\n| if … | tests | command, and the figure it reached |\n|---|---|---|\n"
        yield from (row(cells(fault, files)) for fault in group["fault"])


def matrix_table(matrix, files):
    """How many tests each cell names, or the number of the reason below the table."""
    ordered = {door: [of_door[kind] for kind in matrix["kind"]] for door, of_door in matrix["door"].items()}
    reasons = list(dict.fromkeys(cell for cells in ordered.values() for cell in cells if isinstance(cell, str)))
    yield "\n" + row(["", *matrix["kind"]]) + "|---" * (len(matrix["kind"]) + 1) + "|\n"
    for door, cells in ordered.items():
        yield row([door, *(f"[{reasons.index(it) + 1}]" if isinstance(it, str) else str(len(it)) for it in cells)])
    yield from ("\n", *(f"{number}. {reason}\n" for number, reason in enumerate(reasons, 1)))


def of_door(name, matrix, files):
    for kind, cell in matrix["door"][name].items():
        yield f"{matrix['kind'][kind]}: {cell if isinstance(cell, str) else listed(cell, files)}"


def written(groups, matrix, files):
    """Each page with its text of before and of now."""
    for name, parts in ("evidence", tables(groups, files)), ("matrix", matrix_table(matrix, files)):
        old = PAGES[name].read_text("utf-8")
        marks, text = re.compile(MARKS.format(name, name), re.S), "".join(parts)
        if not marks.search(old):
            sys.exit(f"{PAGES[name]} has no place for the {name}")
        yield PAGES[name], old, marks.sub(lambda found: found[1] + text + found[2], old)


def checks_itself(files):
    """A planted declaration: a test that is there; and a test, a file, a module, filters and a script that are not."""
    tests = ["a_test_that_is_there", "a_test_that_does_not_exist", "vesta-none/tests/none.rs", "mod nowhere"]
    run = ["--test program a_filter_of_nothing", "--test nowhere", "scripts/none.sh", "--test program a_test_that_is"]
    planted = [{"title": "planted", "fault": [{"fault": "planted", "then": "", "tests": tests, "run": run}]}]
    files = {**files, "vesta-server/tests/program/planted.rs": names_in("fn a_test_that_is_there() {}")}
    found = [wrong.rpartition(" ")[2] for wrong in missing(planted, files)]
    expected = [*tests[1:3], "nowhere", "a_filter_of_nothing", "nowhere", "scripts/none.sh"]
    assert found == expected, found
    assert "`vesta-server/tests/program/planted.rs`" in "".join(tables(planted, files))
    doors = {"full": {"a": ["a_test_that_is_there"], "b": "a reason"}, "planted": {"a": ["a_test_that_does_not_exist"], "c": "a reason"}}
    found = list(incomplete({"kind": {"a": "A", "b": "B"}, "door": doors}, files))
    assert [wrong.split(": ")[1].split()[-1] for wrong in found] == ["c", "empty", "a_test_that_does_not_exist"], found


def main():
    declared = lambda name: tomllib.loads((ROOT / f"scripts/check/docs/{name}.toml").read_text("utf-8"))
    groups, matrix = declared("evidence")["group"], declared("matrix")
    files = sources()
    if len(sys.argv) != 2 or sys.argv[1] not in ("write", "check", *matrix["door"]):
        sys.exit(__doc__)
    if sys.argv[1] in matrix["door"]:
        return print(*of_door(sys.argv[1], matrix, files), sep="\n")
    checks_itself(files)
    wrong = [*missing(groups, files), *incomplete(matrix, files)]
    if wrong:
        sys.exit("\n".join(wrong))
    for page, old, new in written(groups, matrix, files):
        if sys.argv[1] == "write":
            page.write_text(new, "utf-8")
        elif old != new:
            sys.exit(f"{page.relative_to(ROOT)} is stale; run scripts/check/docs/evidence.py write")
    faults = [fault for group in groups for fault in group["fault"]]
    named = sum(len(fault.get("tests", [])) for fault in faults)
    filled = sum(len(cells) for cells in matrix["door"].values())
    print(f"{len(faults)} faults, {named} tests and files: each is in the sources; {filled} cells of the matrix are filled")


main()
