"""UIDs of uid-generator, in three zones, beside Vesta's: compare.py VESTA CLASSPATH

Each UID, and the moment, worker ID and sequence that uid-generator reads from it, must be those of Vesta with the
layout that docs/move/uid-generator.md translates the settings to. A planted fault, the epoch of another zone, must be
noticed."""

import json
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

VESTA, CLASSPATH = sys.argv[1:]
COUNT, WORKER, DAY = 400, 19, "2016-05-20"
WIDTHS = [("29", "21", "13"), ("31", "20", "12"), ("30", "16", "17")]
ZONES = ["Asia/Shanghai", "UTC", "America/Sao_Paulo"]


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def of_uid_generator(zone, widths):
    lines = run("java", f"-Duser.timezone={zone}", "-cp", CLASSPATH, "Uid", DAY, *widths, str(WORKER), str(COUNT))
    return [json.loads(line) for line in lines.splitlines() if line.startswith("{")]


def equal(uids, layout, zone):
    """How many of the UIDs Vesta explains, and makes from their fields, as uid-generator does."""
    lines = run(VESTA, "explain", "--layout", layout, "-o", "json", *(it["UID"] for it in uids)).splitlines()
    explained = [json.loads(line) for line in lines]
    same = 0
    for theirs, ours in zip(uids, explained, strict=True):
        moment = datetime.fromisoformat(ours["moment"]).astimezone(ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M:%S")
        fields = moment, str(ours["machine"]), str(ours["seq"])
        same += fields == (theirs["timestamp"], theirs["workerId"], theirs["sequence"])
    return same


def lowest(moment, layout):
    return int(run(VESTA, "bound", moment, "--layout", layout).split()[0])


def main():
    with tempfile.TemporaryDirectory() as folder:
        for zone, widths in zip(ZONES, WIDTHS, strict=True):
            uids = of_uid_generator(zone, widths)
            time, worker, seq = widths
            start = datetime.fromisoformat(DAY).replace(tzinfo=ZoneInfo(zone))
            for epoch, expected in (start.isoformat(), COUNT), (f"{DAY}T01:00:00Z", 0):
                layout = Path(folder) / "own.toml"
                layout.write_text(
                    f'[layout.custom]\nversion_bits = 1\ntime_bits = {time}\nmachine_bits = {worker}\nseq_bits = {seq}\n'
                    f'order = "time-machine-seq"\nunit = "second"\nepoch = "{epoch}"\n'
                )
                same = equal(uids, str(layout), zone)
                assert len(uids) == COUNT and same == expected, f"{zone} {widths} {epoch}: {same} of {len(uids)}"
                if expected:
                    first = uids[0]
                    moment = datetime.fromisoformat(first["timestamp"]).replace(tzinfo=ZoneInfo(zone)).isoformat()
                    made = lowest(moment, str(layout)) + (WORKER << int(seq)) + int(first["sequence"])
                    assert made == int(first["UID"]), f"{made} is not {first['UID']}"
            layout.write_text(layout.read_text().replace(f"{DAY}T01:00:00Z", DAY))
            refused = subprocess.run([VESTA, "layout", "check", str(layout)], capture_output=True, text=True)
            assert refused.returncode == 64 and "+08:00 in China" in refused.stderr, refused
            print(f"uid-generator in {zone}: {COUNT} of {COUNT} UIDs equal")


main()
