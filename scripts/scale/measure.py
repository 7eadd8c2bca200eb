#!/usr/bin/env python3
"""What processes cost a store: starts a server, has `vesta-store/benches/many_processes.rs` claim, renew and ask, and reads
the CPU time and memory of the server in between. Prints one JSON object, which simulate.py takes in.

usage: measure.py PROGRAM STORES FOLDER STORE > STORE.json

PROGRAM is the built bench, STORES the built `stores` of vesta-testkit, STORE one of its stores or sqlite. MEMBERS (400),
AT_ONCE (200) and STEADY (450) are the sizes of the fleets; mysql and postgres of the tests accept 500 connections.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

TICK = os.sysconf("SC_CLK_TCK")
MEMBERS, AT_ONCE = int(os.environ.get("MEMBERS", "400")), int(os.environ.get("AT_ONCE", "200"))
STEADY = int(os.environ.get("STEADY", "450"))
STEP = 50
POOL = 1024
WINDOW, RENEW = 6000, 2000


def stat(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1]), sum(map(int, fields[11:15])) / TICK  # parent; CPU seconds, also of children that ended


def tree(root):
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = stat(entry.name)[0]
            except (OSError, IndexError):
                pass
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def cpu(root):
    total = 0.0
    for pid in tree(root):
        try:
            total += stat(pid)[1]
        except OSError:
            pass
    return total


def memory(root):
    """Of the server, in bytes; pages that its processes share count once."""
    total = 0
    for pid in tree(root):
        try:
            text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) * 1024
    return total


class Members:
    def __init__(self, program, url, namespace, folder, pool=POOL, timing=(WINDOW, RENEW)):
        words = [program, url, namespace, str(folder), str(pool), *map(str, timing)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"{line}: the bench ended with {self.process.wait()}")
        return json.loads(answer)

    def crash(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class Store:
    """A server, or for SQLite the members themselves, whose CPU time is then all there is."""

    def __init__(self, program, stores, folder, kind):
        self.kind, self.folder, self.program, self.pid = kind, folder / kind, program, None
        self.folder.mkdir(parents=True, exist_ok=True)
        self.namespace = 0
        if kind == "sqlite":
            self.url = f"sqlite:{self.folder}/vesta.db"
            return
        subprocess.run([stores, "start", folder / "servers", kind], check=True, stdout=subprocess.DEVNULL)
        self.url = (folder / "servers" / kind / "url").read_text().strip()
        self.pid = int((folder / "servers" / kind / "pid").read_text().split()[0])

    def members(self, again=False, hosts="hosts", **more):
        self.namespace += not again
        hosts = self.folder / f"{hosts}{self.namespace}"
        return Members(self.program, self.url, f"scale{self.namespace}-{os.getpid()}", hosts, **more)

    def cost(self, members, line):
        pid = self.pid or members.process.pid
        before, began, own = cpu(pid), time.monotonic(), cpu(members.process.pid)
        answer = members.tell(line)
        took = time.monotonic() - began
        time.sleep(0.3)  # a process of the server ends after its connection
        used = cpu(pid) - before - (self.idle * (took + 0.3) if self.pid else 0)
        return answer | {"cpu": used, "took": took, "members_cpu": cpu(members.process.pid) - own}

    def rest(self, seconds=5.0):
        if self.pid:
            before = cpu(self.pid)
            time.sleep(seconds)
            self.idle = (cpu(self.pid) - before) / seconds
        else:
            self.idle = 0.0


def micros(seconds, count):
    return round(seconds / count * 1e6, 1)


def measure(store):
    store.rest()
    members = store.members()
    first = members.tell("start 1")
    small = memory(store.pid) if store.pid else 0
    claims = []
    for held in range(1, MEMBERS, STEP):
        cost = store.cost(members, f"start {STEP}")
        claims.append({"records": held + STEP / 2, "cpu_us": micros(cost["cpu"], STEP), **cost})
    held = 1 + sum(it["started"] for it in claims)
    large = memory(store.pid) if store.pid else 0
    renewing = store.cost(members, "hold 20")
    members.tell("stop")
    asks = {}
    for kind, count in ("now", 1000), ("doubt", 500), ("get", 1000), ("list", 60):
        cost = store.cost(members, f"ask {kind} {count}")
        asks[kind] = {"cpu_us": micros(cost["cpu"], count)} | (
            {"entries": cost["entries"], "bytes": cost["bytes"]} if kind == "list" else {}
        )
    members.crash()
    requests = dict(renewing["requests"])
    checks = sum(requests.get(kind, 0) * asks[kind]["cpu_us"] for kind in ("now", "doubt", "get"))
    renewal = (renewing["cpu"] * 1e6 - checks) / requests["put"]
    return {
        "idle_percent": round(store.idle * 100, 2),
        "first": first["requests"],
        "claims": claims,
        "asks": asks,
        "renewal_us": round(renewal, 1),
        "renewing": renewing,
        "connection_bytes": round((large - small) / (held - 1)) if store.pid else 0,
    }


def power_cut(store, count, pool, keeps_state):
    """All start at once, are killed, and start at once again, after their bounds have passed."""
    members = store.members(pool=pool)
    first = store.cost(members, f"start {count}")
    members.crash()
    time.sleep(WINDOW / 1000 + 1)
    members = store.members(again=True, hosts="hosts" if keeps_state else "lost", pool=pool)
    again = store.cost(members, f"start {count}")
    members.crash()
    return {"count": count, "pool": pool, "keeps_state": keeps_state, "first": first, "again": again}


def steady(store, count, seconds=45):
    """Members with the durations of the store, once all have started."""
    members = store.members(timing=())
    started = sum(store.cost(members, f"start {STEP}")["started"] for _ in range(0, count, STEP))
    members.tell("hold 15")  # so that as many first renewals as last ones lie in the interval
    held = store.cost(members, f"hold {seconds}")
    members.crash()
    return {"members": started, **held}


def paused(store, count):
    """The same, with a server that is paused for longer than a request waits: what it spends on callers that have gone."""
    members = store.members(pool=count)
    members.tell(f"start {count}")
    members.crash()
    time.sleep(WINDOW / 1000 + 1)
    members = store.members(again=True, pool=count)
    pids = tree(store.pid)
    send = lambda sent: [os.kill(pid, sent) for pid in pids]
    send(signal.SIGSTOP)
    threading.Timer(3.0, send, [signal.SIGCONT]).start()
    again = store.cost(members, f"start {count}")
    members.crash()
    return again


def main():
    program, stores, folder, kind = sys.argv[1:]
    store = Store(program, stores, pathlib.Path(folder), kind)
    found = measure(store)
    found["cuts"] = [
        power_cut(store, AT_ONCE, AT_ONCE * 2, True),
        power_cut(store, AT_ONCE, AT_ONCE * 2, False),
        power_cut(store, AT_ONCE // 2, AT_ONCE // 2, False),
    ]
    found["steady"] = steady(store, STEADY)
    found["paused"] = paused(store, AT_ONCE) if store.pid else None
    print(json.dumps({kind: found}), flush=True)
    shutil.rmtree(store.folder)


main()
