#!/usr/bin/env python3
"""The figures of the benchmarks: kept in docs/figures, one file for each family of processors, and written from there
into docs/inside/benchmarks.md and the first lines of both READMEs.

usage: figures.py keep FOLDER CRITERION   takes in what a run of scripts/bench.sh left, and writes the documents
       figures.py compare FOLDER CRITERION  fails where a ratio of the run is another one than kept by more than 1.5 times
       figures.py write | check             writes the documents, or fails if they are others than it would write
"""

import datetime
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
KEPT = ROOT / "docs" / "figures"
FAMILIES = {"amd": "AuthenticAMD", "intel": "GenuineIntel"}
SOME_RATIO = re.compile(r" / |^Times as fast|^Bars: .*(requests/s|p99|server CPU of a request)$|divided by|ratio$")
MOST = 1.5
SERVER = "server CPU, µs/request"
BEST = "ferroid 2 atomic, milliseconds"


def family():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    found = [name for name, vendor in FAMILIES.items() if vendor in text]
    return found[0] if found else os.uname().machine


def machine():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"^model name\s*: (.*)$", text, re.M)
    virtual = ", virtual" if "hypervisor" in text else ""
    return f"{model.group(1) if model else os.uname().machine}, {os.cpu_count()} cores{virtual}"


def in_tables(text):
    """The tables that vesta-load prints: labels, then figures with the smallest and the largest in brackets."""
    figures = {}
    for title, table in re.findall(r"^#+ (.*)\n\n(\|(?:.*\n\|)*.*)", text, re.M):
        head, _, *rows = [[cell.strip(" *") for cell in line.strip().strip("|").split("|")] for line in table.splitlines()]
        for row in rows:
            labels, found = [], {}
            for column, cell in zip(head, row):
                figure = re.match(r"(-?[\d,]*\.?\d+) \(.*\)$", cell)
                if column == "median":
                    found[column] = cell
                elif title == "Bars" and labels:
                    continue
                elif figure:
                    found[column] = figure[1]
                elif cell:
                    labels.append(cell if column in ("server", "program", "what") else f"{column}: {cell}")
            for column, figure in found.items():
                figures.setdefault(f"{title}: {column}", {})[", ".join(labels)] = float(figure.replace(",", ""))
    return figures


def by_number(file):
    """10 after 9."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", str(file))]


def collected(folder, criterion):
    figures = {}
    for part in ("inproc", "capacity"):
        file = pathlib.Path(folder) / f"{part}.figures.json"
        if file.exists():
            for question, rows in json.loads(file.read_text()).items():
                figures.setdefault(question, {}).update(rows)
    servers = pathlib.Path(folder) / "e2e.md"
    if servers.exists():
        figures |= in_tables(servers.read_text())
    for file in sorted(pathlib.Path(criterion).glob("**/new/estimates.json"), key=by_number):
        name = json.loads((file.parent / "benchmark.json").read_text())
        nanos = json.loads(file.read_text())["median"]["point_estimate"]
        group, row = name["group_id"], name["function_id"] or "a call"
        figures.setdefault(f"{group[:1].upper()}{group[1:]}: ns", {})[row] = round(nanos, 3)
    return figures


def kept(name):
    file = KEPT / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else {"figures": {}}


def keep(folder, criterion):
    file = KEPT / f"{family()}.json"
    new = collected(folder, criterion)
    git = ["git", "rev-parse", "--short=8", "HEAD"]
    commit = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    figures = kept(family())["figures"] | new
    whole = {"machine": machine(), "date": today, "commit": commit, "figures": figures}
    file.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n")


def compare(folder, criterion):
    before, new = kept(family())["figures"], collected(folder, criterion)
    missed = 0
    for question, rows in new.items():
        for row, figure in rows.items():
            old = before.get(question, {}).get(row)
            if old and figure and SOME_RATIO.search(f"{question}: {row}" if ": median" in question or row.endswith("ratio") else question):
                off = max(figure / old, old / figure)
                if off > MOST:
                    missed += 1
                    print(f"{question}, {row}: {figure:.3g}, kept is {old:.3g}", file=sys.stderr)
    if missed:
        sys.exit(f"{missed} ratios are off by more than {MOST} times: find out why, or keep them")


def digits(figure):
    return f"{figure:,.2f}" if abs(figure) < 100 else f"{figure:,.0f}"


def tables():
    sides = {name: kept(name) for name in FAMILIES if (KEPT / f"{name}.json").exists()}
    lines = []
    for name, side in sides.items():
        lines.append(f"* {side['machine']}; {side['date']}, commit {side['commit']}")
    names = [name.upper() if name == "amd" else name.title() for name in sides]
    lines += ["", f"Each cell: {' · '.join(names)}; a single figure is {names[0]}'s."]
    titles = {}
    for side in sides.values():
        for question, rows in side["figures"].items():
            title, _, column = question.partition(": ")
            of = titles.setdefault(title, ({}, {}))
            of[0].setdefault(column)
            of[1].update(dict.fromkeys(rows))

    def body(title, columns, rows):
        for row in rows:
            cells = []
            for column in columns:
                both = [side["figures"].get(f"{title}: {column}", {}).get(row) for side in sides.values()]
                both = ["–" if figure is None else digits(figure) for figure in both]
                cells.append(" · ".join(both) if any(figure != "–" for figure in both) else "")
            yield row, cells

    def head(title, columns):
        return ["", f"### {title}", "", "| | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]

    def pairs(title, columns, rows):
        """A server beside a bare one, in one row: both figures and their ratio."""
        found = dict(body(title, columns, rows))
        for load in dict.fromkeys(row.rpartition(", ")[0] for row in rows):
            first, second = [row for row in rows if row.startswith(f"{load}, ") and not row.endswith("ratio")]
            cells = []
            for figures in zip(found[first], found[second], found[f"{load}, ratio"]):
                sides = zip(*(figure.split(" · ") for figure in figures))
                both = [ratio if one == other == "–" else f"{one} / {other}: {ratio}" for one, other, ratio in sides]
                cells.append(" · ".join(both))
            yield f"| {load}, {first.removeprefix(load + ', ')} / {second.removeprefix(load + ', ')} | " + " | ".join(cells) + " |"

    servers, small = [], {}  # tables that are one: by server, and of a few rows
    for title, (columns, rows) in titles.items():
        if title == "Bars" or title.startswith("Times as fast"):  # ratios of figures in the other tables
            continue
        if SERVER in columns and title.startswith(("gRPC", "REST")):
            servers += [] if servers else head("A request to a server", columns)
            servers.append(f"| **{title}** |" + " |" * len(columns))
            servers += pairs(title, columns, rows)
        elif all(column == "ns" or column.endswith(": ns") for column in columns):
            for column in columns:
                what = column.removesuffix("ns").removesuffix(": ")
                for row, [cell] in body(title, [column], rows):
                    small.setdefault(title, []).append(f"{row}{what and f', {what}'}: {cell}")
        else:
            lines += head(title, columns)
            lines += [f"| {row} | " + " | ".join(cells) + " |" for row, cells in body(title, columns, rows)]
    small = [f"| {title} | {'; '.join(cells).replace(' · –', '')} |" for title, cells in small.items()]
    small = head("Other costs", ["ns"]) + small
    return "\n".join(lines + servers + small)


def first_lines():
    """What an ID costs one thread with default settings, in both units of time, on both families of processors."""
    rows = ("Vesta `atomic`, seconds", "Vesta `atomic`, milliseconds, precise", BEST)
    cells = []
    for name in ("amd", "intel"):
        side = kept(name)
        figures = side["figures"].get("An ID in a process, ns: 1 thread", {})
        if any(row not in figures for row in rows):
            return None
        cells += [side["machine"].split(",")[0], *(f"{figures[row]:.1f}" for row in rows)]
    return (
        "With default settings, an ID costs one thread {1} ns (layout in seconds) or {2} ns (milliseconds) on {0}. On {4}: {5} ns "
        "or {6} ns. The fastest peer, ferroid: {3} ns and {7} ns ([figures](docs/inside/benchmarks.md)).".format(*cells),
        "默认设置下单线程一个 ID，{0} 上秒级布局 {1} ns、毫秒级 {2} ns，{4} 上为 {5} ns 和 {6} ns；其他库中最快的 ferroid "
        "分别为 {3} ns 和 {7} ns（[数据](docs/inside/benchmarks.md)）。".format(*cells),
    )


def documents():
    mark = re.compile(r"(<!-- figures: scripts/check/docs/figures.py -->\n).*?(\n<!-- end of figures -->)", re.S)
    lines = first_lines()
    texts = {"docs/inside/benchmarks.md": "\n" + tables() + "\n"}
    if lines:
        texts |= {"README.md": lines[0], "README.zh-CN.md": lines[1]}
    for path, text in texts.items():
        old = (ROOT / path).read_text()
        if not mark.search(old):
            sys.exit(f"{path} has no place for the figures")
        yield path, old, mark.sub(lambda found: found[1] + text + found[2], old)


def main():
    match sys.argv[1:]:
        case ["keep", folder, criterion]:
            keep(folder, criterion)
        case ["compare", folder, criterion]:
            return compare(folder, criterion)
        case ["write"]:
            pass
        case ["check"]:
            stale = [path for path, old, new in documents() if old != new]
            if stale:
                sys.exit(f"{', '.join(stale)}: other figures than docs/figures has; run scripts/check/docs/figures.py write")
            return None
        case _:
            sys.exit(__doc__)
    for path, _, new in documents():
        (ROOT / path).write_text(new)
    return None


main()
