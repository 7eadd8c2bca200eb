"""What an ID costs in Python: microseconds of processor time, beside an empty call; medians of rounds in turns.

speed.py [FILE [ROUNDS]]    FILE: keeps the figures there, as JSON"""

import json
import statistics
import sys
import tempfile
import time

from vesta_id import Vesta

# Fewer than the layout has in the pause before them: no call waits.
CALLS, BATCH, PAUSE = 10_000, 1000, 0.05


def cost(call, calls):
    time.sleep(PAUSE)
    begin = time.thread_time_ns()
    for _ in range(calls):
        call()
    return (time.thread_time_ns() - begin) / 1000 / calls


def main(file=None, rounds=21):
    with tempfile.TemporaryDirectory() as folder, Vesta(machine=7, state_dir=folder) as ids:
        rows = {
            "a call of an empty function": lambda: cost(lambda: None, CALLS),
            "one ID": lambda: cost(ids.next_id, CALLS),
            "an ID of a batch of 1,000": lambda: cost(lambda: ids.next_ids(BATCH), CALLS // BATCH) / BATCH,
        }
        found = {row: [] for row in rows}
        for _ in range(int(rounds)):
            for row, measure in rows.items():
                found[row].append(measure())
    figures = {row: round(statistics.median(of), 3) for row, of in found.items()}
    for row, of in found.items():
        print(f"{row}: {figures[row]:.3f} µs ({min(of):.3f} to {max(of):.3f})")
    if file:
        with open(file, "w") as out:
            json.dump({"An ID in Python, µs: embedded": figures}, out, indent=1, ensure_ascii=False)


main(*sys.argv[1:])
