#!/usr/bin/env python3
"""The figures of the benchmarks: kept in docs/figures, one file for each family of processors, and written from there
into docs/inside/benchmarks.md and into the sentences of guides and READMEs that figures.toml lists. Those of many
processes, from docs/figures/scale.json, are in both pages of docs/operate/scale.md.

usage: figures.py keep FOLDER CRITERION   takes in what a run of scripts/bench.sh left, and writes the documents
       figures.py compare FOLDER CRITERION  fails where a ratio of the run is another one than kept by more than 1.5 times
       figures.py write | check             writes the documents, or fails if they are others than it would write
"""

import datetime
import functools
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[3]
KEPT = ROOT / "docs" / "figures"
FAMILIES = {"amd": "AuthenticAMD", "intel": "GenuineIntel"}
SOME_RATIO = re.compile(r" / |^Times as fast|^Bars: .*(requests/s|p99|server CPU of a request)$|divided by|ratio$")
MOST = 1.5
SERVER = "server CPU, µs/request"
SPREAD = "An ID in a process"
ELSEWHERE = ("Bars", "Times as fast", "Beside other generators")  # ratios of figures in other tables, and README's table
CAPTION = {"amd": "AMD", "intel": "Intel"}
QUOTES = pathlib.Path(__file__).with_name("figures.toml")
MEASURED = re.compile(
    r"\d[\d.,]* ?(?:(?:ns|µs|kB/s|MB)\b|纳秒|微秒|(?:million )?(?:IDs|requests)(?:/s| a second| per second))"
)


def MARK(run):
    return run["machine"], run["date"], run["commit"]


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


def over_builds(files):
    """The median of each figure over the builds that a part was measured with; and, where that is more than one, the
    least and the most."""
    builds = [json.loads(file.read_text()) for file in files]
    figures, spread = {}, {}
    for question, rows in builds[0].items():
        for row in rows:
            found = sorted(build[question][row] for build in builds)
            figures.setdefault(question, {})[row] = statistics.median(found)
            if len(builds) > 1 and question.startswith(SPREAD):
                spread.setdefault(question, {})[row] = [found[0], found[-1]]
    return figures, spread


def collected(folder, criterion):
    figures, spread = {}, {}
    parts = {}
    for file in sorted(pathlib.Path(folder).glob("*.figures.json"), key=by_number):
        parts.setdefault(file.name.partition(".")[0], []).append(file)
    for files in parts.values():
        of_part, between = over_builds(files)
        figures |= of_part
        spread |= between
    servers = pathlib.Path(folder) / "e2e.md"
    if servers.exists():
        figures |= in_tables(servers.read_text())
    for file in sorted(pathlib.Path(criterion).glob("**/new/estimates.json"), key=by_number):
        name = json.loads((file.parent / "benchmark.json").read_text())
        nanos = json.loads(file.read_text())["median"]["point_estimate"]
        group, row = name["group_id"], name["function_id"] or "a call"
        figures.setdefault(f"{group[:1].upper()}{group[1:]}: ns", {})[row] = round(nanos, 3)
    if not figures:
        sys.exit(f"{folder}: no figures of this commit; run scripts/bench.sh")
    return figures, spread


@functools.cache
def runs(name):
    """The runs of a family of processors, newest first. An older one keeps what no newer one measured."""
    file = KEPT / f"{name}.json"
    if not file.exists():
        return []
    newest = json.loads(file.read_text())
    return [{key: value for key, value in newest.items() if key != "older"}, *newest.get("older", [])]


def kept(name):
    """What is kept of a family of processors: by question, then by row."""
    return {question: rows for run in runs(name) for question, rows in run["figures"].items()}


def merged(old, new):
    """The runs with a new one: its questions are no longer those of an older run, and a run without any is gone."""
    left = []
    for run in old:
        for part in ("figures", "spread"):
            if part in run:
                run = run | {part: {key: value for key, value in run[part].items() if key not in new["figures"]}}
        if MARK(run) == MARK(new):
            new = new | {part: run.get(part, {}) | new.get(part, {}) for part in ("figures", "spread")}
        elif run["figures"]:
            left.append(run)
    return [new, *left]


def keep(folder, criterion):
    figures, spread = collected(folder, criterion)
    git = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    changed = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "*.rs", "*.toml"], cwd=ROOT, check=False).returncode
    new = {
        "machine": machine(),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "commit": git.stdout.strip() + " with changes" * bool(changed),
        "figures": figures,
        "spread": spread,
    }
    newest, *older = merged(runs(family()), new)
    text = json.dumps(newest | {"older": older}, indent=1, ensure_ascii=False)
    text = re.sub(r"\[\s+([\d.]+),\s+([\d.]+)\s+\]", r"[\1, \2]", text)
    (KEPT / f"{family()}.json").write_text(text + "\n")
    runs.cache_clear()


def compare(folder, criterion):
    before, (new, _) = kept(family()), collected(folder, criterion)
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


def sources(sides):
    """The machine, date and commit of each column, and the tables that are of an older run."""
    for name, of in sides.items():
        longest = max(of, key=lambda run: len(run["figures"]))
        for run in of:
            titles = dict.fromkeys(question.partition(": ")[0] for question in run["figures"])
            titles = [title for title in titles if not title.startswith(ELSEWHERE)]
            only = "" if run is longest else f", only {'; '.join(f'*{title}*' for title in titles)}"
            if titles:
                yield f"* {CAPTION[name]}: {run['machine']}; {run['date']}, commit {run['commit']}{only}"
    if len({run["commit"] for of in sides.values() for run in of}) > 1:
        yield "\nFigures of different commits do not compare: an older one is of an older Vesta."


def tables():
    sides = {name: runs(name) for name in FAMILIES if runs(name)}
    names = [CAPTION[name] for name in sides]
    spread = {name: {key: rows for run in sides[name] for key, rows in run.get("spread", {}).items()} for name in sides}
    lines = [*sources(sides), "", f"Each cell: {' · '.join(names)}; a single figure is {names[0]}'s."]
    if any(spread.values()):
        lines[-1] += " In brackets: the least and the most of five builds."
    sides = {name: kept(name) for name in sides}
    titles = {}
    for side in sides.values():
        for question, rows in side.items():
            title, _, column = question.partition(": ")
            of = titles.setdefault(title, ({}, {}))
            of[0].setdefault(column)
            of[1].update(dict.fromkeys(rows))

    def shown(name, question, row):
        figure = sides[name].get(question, {}).get(row)
        if figure is None:
            return "–"
        between = spread[name].get(question, {}).get(row)
        return digits(figure) + (f" ({digits(between[0])}–{digits(between[1])})" if between else "")

    def body(title, columns, rows):
        for row in rows:
            cells = []
            for column in columns:
                both = [shown(name, f"{title}: {column}", row) for name in sides]
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
        if title.startswith(ELSEWHERE):
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


def quoted(text, quotes):
    """A page with the kept figures in its sentences; and the page without these sentences."""
    rest = text
    for quote in quotes:
        words = re.split(r"{[^}]*}", quote["text"])
        words = [re.sub(r"(\\?\s)+", r"\\s+", re.escape(part)) for part in words]
        sentence = re.compile(r"([\w.,-]+)".join(f"({part})" for part in words))
        forms = re.findall(r"{[^}]*}", quote["text"])
        new = [form.format(figure(*of)) for form, of in zip(forms, quote["figures"], strict=True)]
        rest, times = sentence.subn("", rest)
        if times != 1:
            raise LookupError(f"{times} times, not once: {quote['text']}")
        found = sentence.search(text)
        parts = [part for pair in zip(found.groups()[::2], [*new, ""]) for part in pair]
        text = text[: found.start()] + "".join(parts) + text[found.end() :]
    return text, rest


def figure(name, question, row, factor=1):
    """A kept figure; or the `date` or the `commit` of those of a question."""
    for run in runs(name):
        if question in run["figures"]:
            if row in ("date", "commit"):
                return run[row]
            if row in run["figures"][question]:
                return run["figures"][question][row] * factor
    raise LookupError(f"docs/figures/{name}.json has no figure of {question}: {row}")


def unbound(rest, promises):
    """Figures in a unit that is measured, of which neither a quote nor a promise knows."""
    for promise in promises:
        rest = rest.replace(promise, "")
    return MEASURED.findall(rest)


def guides():
    """The pages of users: not those about the inside, which give the reasons of their day, nor what is generated."""
    pages = [ROOT / "README.md", ROOT / "README.zh-CN.md", *ROOT.glob("clients/*/README.md"), *ROOT.glob("vesta-*/README.md")]
    for room in ("use", "operate", "move"):
        pages += [*ROOT.glob(f"docs/{room}/*.md"), *ROOT.glob(f"docs/zh-CN/{room}/*.md")]
    return {str(page.relative_to(ROOT)) for page in pages}


STORES = {
    "sqlite": "SQLite",
    "pool_server": "pool server, SQLite",
    "mysql": "MariaDB",
    "postgres": "PostgreSQL",
    "redis": "Redis",
    "etcd": "etcd",
    "zookeeper": "ZooKeeper",
}
HEADS = {
    "docs/operate/scale.md": (
        "store | a renewal | a start, empty part | a start, full part | memory of a connection",
        "store | processes | renewals/s | cores in use | memory of connections | all at once: done after | state lost: done after | spread over | longest wait",
        ("pool server, SQLite", "later"),
    ),
    "docs/zh-CN/operate/scale.md": (
        "存储 | 一次续约 | 一次启动，空的部分 | 一次启动，满的部分 | 一个连接的内存",
        "存储 | 进程 | 续约/s | 占用的核 | 连接的内存 | 同时启动：完成用时 | 状态丢失：完成用时 | 分散到 | 最长等待",
        ("池服务器，SQLite", "更久"),
    ),
}


def scale(heads):
    """What processes cost a store: measured, and simulated (scripts/scale)."""
    whole = json.loads((KEPT / "scale.json").read_text())
    one, many, (pool_server, later) = heads
    name = lambda store: pool_server if store == "pool_server" else STORES[store]
    memory = lambda count: "–" if not count else f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.0f} MB" if count >= 1e6 else f"{count / 1e3:,.0f} kB"
    took = lambda run: "–" if run is None else f"{run['last']:,.0f} s" if run["last"] is not None else later
    head = lambda text: [f"| {text} |", "|---" * (text.count("|") + 1) + "|"]
    lines = head(one)
    for store in STORES:
        it = whole["costs"][store]
        starts = [f"{milliseconds:,.1f} ms" for milliseconds in it.get("start_ms", ())] or ["–", "–"]
        lines.append(f"| {name(store)} | {it['put'] / 1000:.2f} ms | {' | '.join(starts)} | {memory(it['connection'])} |")
    lines += ["", *head(many)]
    for store in STORES:
        for size, it in whole["simulated"][store].items():
            begins = [took(it[scenario]) if scenario in it else "–" for scenario in ("kept", "lost")]
            spread = [f"{it['over']:,} s", f"{it['spread']['wait']:,.1f} s"] if "over" in it else ["–", "–"]
            cells = [name(store), f"{int(size):,}", f"{it['renewals']:,}", f"{it['cores']:.2f}", memory(it["memory"]), *begins, *spread]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def documents():
    """Each page as it is, and as it is with the kept figures."""
    table, faults = tomllib.loads(QUOTES.read_text()), []
    page = "docs/inside/benchmarks.md"
    old = (ROOT / page).read_text()
    mark = re.compile(r"(<!-- figures: scripts/check/docs/figures.py -->\n).*?(\n<!-- end of figures -->)", re.S)
    if not mark.search(old):
        sys.exit(f"{page} has no place for the figures")
    found = [(page, old, mark.sub(lambda it: f"{it[1]}\n{tables()}\n{it[2]}", old))]
    pages = {page: (ROOT / page).read_text() for page in guides()}
    for quote in table["quote"]:
        if quote["page"] not in pages:
            faults.append(f"{quote['page']} is no guide")
    for promise in table["promises"]:
        if not any(promise in text for text in pages.values()):
            faults.append(f"no guide has the promise {promise}")
    for page, old in pages.items():
        try:
            text = old
            if page in HEADS:
                text, places = mark.subn(lambda it, heads=HEADS[page]: f"{it[1]}\n{scale(heads)}\n{it[2]}", old)
                faults += [] if places else [f"{page} has no place for the figures"]
            new, rest = quoted(text, [quote for quote in table["quote"] if quote["page"] == page])
            rest = mark.sub("", rest)
            faults += [f"{page}: no quote writes {it}" for it in unbound(rest, table["promises"])]
            found.append((page, old, new))
        except LookupError as error:
            faults.append(f"{page}: {error.args[0]}")
    if faults:
        sys.exit("\n".join([*faults, f"see {QUOTES.relative_to(ROOT)}"]))
    return found


def checks_itself():
    """Planted pages: a figure that is not the kept one, a sentence that is gone, and a figure of no quote; and builds."""
    question, rows = next(iter(kept("amd").items()))
    row = next(iter(rows))
    quote = {"text": "it costs {:.1f} ns", "figures": [["amd", question, row]]}
    kept_one = f"it costs {rows[row]:.1f} ns"
    assert quoted("Here\nit costs\n0.013 ns.", [quote])[0] == "Here\nit costs\n" + kept_one.removeprefix("it costs ") + "."
    assert quoted(kept_one, [quote]) == (kept_one, "")
    for page in ("it costs nothing", f"{kept_one}, {kept_one}"):
        try:
            quoted(page, [quote])
            raise AssertionError("a planted sentence is not missed")
        except LookupError:
            pass
    assert unbound("a tick of 10 µs; 7 to 10 ns, 245,000 IDs a second", ["a tick of 10 µs"]) == ["10 ns", "245,000 IDs a second"]
    old = {"machine": "m", "date": "d", "commit": "old", "figures": {"a": {"x": 1}, "b": {"x": 2}}}
    new = {"machine": "m", "date": "d", "commit": "new", "figures": {"b": {"x": 3}}}
    assert merged([old], new) == [new, old | {"figures": {"a": {"x": 1}}}]
    assert merged([old], new | {"figures": {"a": {"x": 3}, "b": {"x": 3}}})[1:] == []


def main():
    match sys.argv[1:]:
        case ["keep", folder, criterion]:
            keep(folder, criterion)
        case ["compare", folder, criterion]:
            return compare(folder, criterion)
        case ["write"]:
            pass
        case ["check"]:
            checks_itself()
            stale = [path for path, old, new in documents() if old != new]
            if stale:
                sys.exit(f"{', '.join(stale)}: other figures than docs/figures has; run scripts/check/docs/figures.py write")
            return None
        case _:
            sys.exit(__doc__)
    for path, old, new in documents():
        if old != new:
            (ROOT / path).write_text(new)
    return None


main()
