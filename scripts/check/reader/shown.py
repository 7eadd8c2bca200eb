"""Compares what is printed with what a page shows. IDs made now differ, but not in kind: a shown ID of the machine that
a line names is printed with the machine that this line prints."""

import json
import re
import subprocess

from page import Wrong

# IDs and moments from then on were made when the page was written; others are exact.
FIRST_NEW_MOMENT = "2026-11-22T01"
FIRST_NEW_TICK = 374_976_000  # of layout max-peak: 2026-11-18T16:00:00Z

# Text that differs from run to run, and the pattern of what may be in its place.
DIFFERENT = (
    ("id", r"\b\d{16,20}\b", r"(\d{16,20})"),
    ("day", r"\bINV-\d{6}-", r"INV-\d{6}-"),
    ("print", r"\bfingerprint [0-9a-f]{16}\b", r"fingerprint [0-9a-f]{16}"),
    ("token", r"(?<=vesta_)[0-9a-f]{64}\b|\b[0-9a-f]{64}\b", r"[0-9a-f]{64}"),
    ("store", r"\?id=[0-9a-f]{16}\b", r"\?id=[0-9a-f]{16}"),
    ("slot", r"(?<=machine ID  )\d+(?= \()", r"(\d+)"),
    ("made_by", r"(?<=machine )\d+(?=  20)", r"(\d+)"),
    ("layout", r'(?<="makesIds":true,"machine":)\d+', r"(\d+)"),
    ("process", r": \S+ \(pid \d+\), ", r": \S+ \(pid \d+\), "),
    ("moment", r"\b20(?:2[6-9]|[3-9]\d)-\d\d-\d\dT[\d:.]+Z", r"20\d\d-\d\d-\d\dT[\d:.]+Z"),
    ("age", r"\b\d+ (?:day|month|year)s?\b", r"\d+ (?:day|month|year)s?"),
    ("debug", r" \(debug build: [^)]*\)", r"(?: \(debug build: [^)]*\))?"),
)
ANY = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern, _ in DIFFERENT))
INSTEAD = {name: instead for name, _, instead in DIFFERENT}


def made_now(text):
    number = int(text)
    return number >> 63 == 0 and (number >> 30) & (1 << 30) - 1 >= FIRST_NEW_TICK


def pattern_of(line):
    """A pattern of the line, and its captures: the shown text and "id" or "machine"."""
    if line.strip() in ("…", "..."):
        return ".*\n(?:.*\n)*?", []
    pattern, end, captures = "", 0, []
    for match in ANY.finditer(line):
        kind, text = match.lastgroup, match[0]
        if kind == "id" and not made_now(text) or kind == "moment" and text < FIRST_NEW_MOMENT:
            continue
        pattern += re.escape(line[end : match.start()]) + INSTEAD[kind]
        end = match.end()
        if kind in ("id", "slot", "made_by", "layout"):
            captures.append((text, "id" if kind == "id" else "machine"))
    return pattern + re.escape(line[end:]) + "\n", captures


def explain(ids, layout="max-peak"):
    """The fields of each ID, by the program."""
    if not ids:
        return {}
    command = ["vesta", "explain", "-", "--layout", layout, "-o", "json"]
    done = subprocess.run(command, input="\n".join(ids), capture_output=True, text=True)
    return {fields["id"]: fields for fields in map(json.loads, done.stdout.splitlines())}


class Comparer:
    def __init__(self):
        self.machines = {}  # as shown, and as printed

    def same_machine(self, shown, printed):
        for machine, other in self.machines.items():
            if (machine == shown) != (other == printed):
                raise Wrong(
                    f"shown: machine {machine}, then {shown}; printed: {other}, then {printed}: "
                    "an ID or a line names another machine than the one before"
                )
        self.machines[shown] = printed

    def same(self, shown, printed):
        """Whether the output is the one that the page shows; `Wrong` if only an ID is of another kind."""
        if shown and shown[0].startswith("HTTP/1.1"):  # of the headers those that matter are shown
            head, _, body = printed.replace("\r\n", "\n").partition("\n\n")
            end = shown.index("")
            return all(line in head.split("\n") for line in shown[:end]) and self.same(shown[end + 1 :], body)
        patterns = [pattern_of(line.rstrip()) for line in shown]
        printed = "".join(line.rstrip() + "\n" for line in printed.rstrip("\n").split("\n"))
        found = re.fullmatch("".join(pattern for pattern, _ in patterns), printed)
        if not found:
            return False
        pairs = [(*it, other) for it, other in zip([it for _, some in patterns for it in some], found.groups())]
        different = [(one, other) for one, kind, other in pairs if kind == "id" and one != other]
        fields = explain([it for pair in different for it in pair])
        for one, other in different:
            if one not in fields or other not in fields:
                continue
            for name in "version", "type", "genMethod":
                if fields[one][name] != fields[other][name]:
                    raise Wrong(f"{one} has {name} {fields[one][name]}, but {other} is printed: {fields[other][name]}")
            self.same_machine(str(fields[one]["machine"]), str(fields[other]["machine"]))
        for one, kind, other in pairs:
            if kind == "machine":
                self.same_machine(one, other)
        return True
