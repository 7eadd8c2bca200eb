"""Runs each generator under the same faults and compares its IDs; prints a table of Markdown.

compare.py WRITER CLASSPATH [FIGURES]     FIGURES: a file that keeps the figures

Exits 1 if Vesta repeats an ID, if its second process is not refused, or if no other generator repeats one: then the
faults did not happen."""

import glob
import json
import os
import subprocess
import sys
import tempfile
import time

NAMES = {"vesta": "Vesta", "leaf": "Leaf", "cosid": "CosId", "uid-generator": "uid-generator", "ferroid": "ferroid"}
WRITER, CLASSPATH, *FILE = sys.argv[1:]
LIBRARY = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")


class Host:
    """A clock and a state directory, for the processes of one generator."""

    def __init__(self, name, folder):
        self.name, self.folder, self.files, self.clock = name, folder, [], {}

    def wrong(self, clock):
        """Puts libfaketime under the processes that start from now on; it slows down those that read the clock often."""
        self.clock = {"LD_PRELOAD": LIBRARY[0], "FAKETIME_DONT_FAKE_MONOTONIC": "1", **clock}

    def scripted(self):
        self.step("+0")
        self.wrong({"FAKETIME_TIMESTAMP_FILE": f"{self.folder}/offset", "FAKETIME_CACHE_DURATION": "1"})

    def step(self, offset):
        new = f"{self.folder}/offset.new"
        with open(new, "w") as file:
            file.write(offset + "\n")
        os.rename(new, f"{self.folder}/offset")

    def start(self, seconds):
        self.files.append(f"{self.folder}/{len(self.files)}.ids")
        java = ["java", "-Xmx256m", "-cp", CLASSPATH, "Peer"]
        program = [WRITER] if self.name in ("vesta", "ferroid") else java
        child = subprocess.Popen(
            [*program, self.name, self.files[-1], str(seconds)],
            env={**os.environ, **self.clock, "XDG_STATE_HOME": f"{self.folder}/state"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        while not self.has_ids() and child.poll() is None:
            time.sleep(0.001)
        return child

    def has_ids(self):
        return os.path.exists(self.files[-1]) and os.path.getsize(self.files[-1]) > 0

    def counts(self):
        files = [file for file in self.files if os.path.exists(file)]
        done = subprocess.run([WRITER, "count", *files], capture_output=True, text=True, check=True)
        return [int(number) for number in done.stdout.split()]


def percent(counts):
    every, repeated = counts
    return round(100 * repeated / every, 2)


def share(counts):
    every, repeated = counts
    return f"{100 * repeated / every:.1f} % of {every:,}" if repeated else f"**0** of {every:,}"


def killed(host):
    child = host.start(60)
    time.sleep(2)
    child.kill()
    child.wait()
    host.wrong({"FAKETIME": "-1.5s"})
    host.start(2).wait()
    counts = host.counts()
    return share(counts), counts, percent(counts)


def set_back(host):
    host.scripted()
    child = host.start(8)
    time.sleep(2)
    host.step("-3s")
    printed, _ = child.communicate()
    errors, longest = printed.split()
    counts = host.counts()
    told = "no error" if errors == "0" else "errors"
    return f"{counts[1]} repeated, {told}, {int(longest):,} ms without an ID", counts, int(longest)


def twice(host):
    first, second = host.start(4), host.start(2)
    _, error = second.communicate()
    first.wait()
    counts = host.counts()
    if second.returncode != 0:
        print(f"{host.name}: {error.strip()}", file=sys.stderr)
        return "the second is **refused**", counts, None
    return f"{share(counts)} repeated", counts, percent(counts)


ROWS = {
    "killed, then started with the clock 1.5 s behind: repeated": (killed, "killed: repeated, %"),
    "clock set back by 3 s while it runs": (set_back, "clock set back: longest time without an ID, ms"),
    "two processes of one host, both with machine ID 1": (twice, "twice: repeated, %"),
}


def main():
    if not LIBRARY:
        sys.exit("libfaketime is missing; install the package faketime")
    print("| | " + " | ".join(NAMES.values()) + " |\n|---|" + "---|" * len(NAMES))
    bad, figures, compared = False, {}, []
    for title, (scenario, question) in ROWS.items():
        cells, repeated = [], {}
        for name in NAMES:
            with tempfile.TemporaryDirectory() as folder:
                cell, (every, repeated[name]), figure = scenario(Host(name, folder))
            cells.append(cell)
            compared += [every] if scenario is not set_back else []
            if figure is not None:
                figures.setdefault(f"Beside other generators, {question}", {})[NAMES[name]] = figure
        print(f"| {title} | " + " | ".join(cells) + " |", flush=True)
        refused = scenario is not twice or "refused" in cells[0]
        found = scenario is set_back or sum(repeated.values()) > 0
        bad |= repeated["vesta"] > 0 or not refused or not found
    figures["Beside other generators, IDs: compared"] = {"least": min(compared), "most": max(compared)}
    for file in FILE:
        with open(file, "w") as out:
            json.dump(figures, out, indent=1)
    return bad


sys.exit(main())
