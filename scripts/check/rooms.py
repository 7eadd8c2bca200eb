#!/usr/bin/env python3
"""Doors between rooms lead one way: in no crate do the files of a ring of modules, which all reach each other, have
more than 400 lines together, and no files import each other in a circle.

rooms.py            checks every crate
rooms.py --list     prints the rooms of each crate and their doors, too"""

import pathlib
import re
import sys

LIMIT = 400
ROOT = pathlib.Path(__file__).parents[2]
# Tests, models and fuzz targets may look into every room.
TESTS = re.compile(r"/(tests?|races|schedules|fuzz|testing|model|conformance|segment_conformance|crash_loop)(\.rs$|/)")
PATH = re.compile(r"\b(crate|(?:super::)*super|self)::((?:\w+::)*)(\{(?:[^{}]|\{[^{}]*\})*\}|\w+|\*)")


def code(path):
    text = re.sub(r"\n#\[cfg\((?:all\()?test[^\n]*\n(?:#\[[^\n]*\n)*mod \w+ \{\n.*?\n\}\n", "\n", path.read_text(), flags=re.S)
    return "\n".join(line for line in text.split("\n") if not line.strip().startswith("//"))


def module(path, source):
    parts = list(path.relative_to(source).with_suffix("").parts)
    return tuple(parts[:-1] if parts[-1] == "mod" else [] if parts in (["lib"], ["main"]) else parts)


def names(tail):
    return re.findall(r"(?:^|[,{\s])(\w+(?:::\w+)*)", tail) if tail.startswith("{") else [tail]


def doors(files, reexported):
    """Which module names which: of a file, the files that it imports from."""
    found = {}
    for own, text in files.items():
        of = found.setdefault(own, set())
        for where, way, tail in PATH.findall(text):
            ups = where.count("super")
            base = () if where == "crate" else own[: len(own) - ups]
            for name in names(tail):
                target = base + tuple(way.split("::")[:-1]) + tuple(name.split("::"))
                if base == () and target[:1] not in {it[:1] for it in files} and target[0] in reexported:
                    target = reexported[target[0]] + target
                while target and target not in files:
                    target = target[:-1]
                if target and target != own:
                    of.add(target)
    return found


def rings(graph):
    """Sets of nodes that reach each other."""
    def reach(start):
        seen, todo = set(), [start]
        while todo:
            for at in graph.get(todo.pop(), ()):
                if at not in seen:
                    seen.add(at)
                    todo.append(at)
        return seen

    reached = {node: reach(node) for node in graph}
    found = {frozenset(it for it in reached[node] if node in reached.get(it, ())) for node in graph if node in reached[node]}
    return sorted(found, key=sorted)


def check(crate, verbose):
    source = crate / "src"
    paths = [it for it in source.rglob("*.rs") if not TESTS.search("/" + str(it.relative_to(source)))]
    files = {module(it, source): code(it) for it in paths}
    root = files.pop((), "")
    reexported = {}
    for way, tail in re.findall(r"(?:pub(?:\([^)]*\))? )?use (?:crate::)?((?:\w+::)*\w+)::(\{[^}]*\}|\w+);", root):
        for name in names(tail):
            reexported[name.split("::")[-1]] = tuple(way.split("::"))
    graph = doors(files, reexported)
    lines = {it: sum(1 for line in text.split("\n") if line.strip()) for it, text in files.items()}
    rooms, of_room = {}, {}
    for own, targets in graph.items():
        of_room[own[0]] = of_room.get(own[0], 0) + lines[own]
        rooms.setdefault(own[0], set()).update(it[0] for it in targets if it[0] != own[0])
    if verbose:
        print(f"{crate.name}: {len(rooms)} rooms, {sum(lines.values())} lines")
        for room in sorted(rooms):
            print(f"  {room} ({of_room[room]}): {' '.join(sorted(rooms[room]))}")
    faults = []
    for ring in rings(rooms):
        size = sum(of_room[it] for it in ring)
        if size > LIMIT:
            faults.append(f"{crate.name}: the rooms {', '.join(sorted(ring))} import each other, {size} lines (limit {LIMIT})")
    # A parent and its parts are one room: only files beside each other count.
    apart = {own: {it for it in of if it[: len(own)] != own and own[: len(it)] != it} for own, of in graph.items()}
    for ring in rings(apart):
        faults.append(f"{crate.name}: the files {', '.join('/'.join(it) for it in sorted(ring))} import each other")
    return faults


def main():
    crates = [it.parent for it in sorted(ROOT.glob("vesta-*/Cargo.toml")) if (it.parent / "src/lib.rs").exists() or (it.parent / "src/main.rs").exists()]
    faults = [fault for crate in crates for fault in check(crate, "--list" in sys.argv)]
    # Planted: the check sees a ring.
    planted = {("a",): "use crate::b::B;", ("b",): "use super::c::C;", ("c",): "use crate::a::A;"}
    assert len(rings(doors(planted, {}))) == 1, "a planted ring is not found"
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        sys.exit(1)
    print(f"{len(crates)} crates: no ring of rooms above {LIMIT} lines, no circle of files")


main()
