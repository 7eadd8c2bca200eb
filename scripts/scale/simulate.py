#!/usr/bin/env python3
"""What 1,000, 10,000 and 100,000 processes cost each kind of store. What one request costs was measured (measure.py); the
rest is simulated here, event by event, with the durations of the sources. docs/figures/scale.json keeps both, and
scripts/check/docs/figures.py writes the tables of docs/operate/scale.md from it.

usage: simulate.py keep FILE…   takes in what measure.py printed of some stores, and simulates
       simulate.py write        simulates again
       simulate.py check        fails if a duration is no longer that of the sources, if the simulation misses a closed
                                form or what was measured, does not notice a planted fault, or gives other figures for
                                1,000 processes than are kept
"""

import datetime
import heapq
import json
import pathlib
import random
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEPT = ROOT / "docs" / "figures" / "scale.json"
SERVICE = ROOT / "vesta-service" / "src"
SIZES = 1_000, 10_000, 100_000
SEED = 50
LIMIT = 120  # seconds that are simulated after the last process has come
MOST_SIMULATED = 1_000  # processes; beyond, each stands for several: its requests cost as many times as much
SPREADS_OF_STARTS = 1, 10, 30, 60, 120, 300, 600, 1200  # seconds
MOST = 3.0, 1.5  # times off from what was measured: each start, and nine of ten
CHECK = "now", "get", "doubt"
# Window, interval of renewals, timeout of a request, in seconds; each is a line of timing.rs.
TIMINGS = {"NETWORK": (60, 15, 2), "IN_MEMORY": (10, 2.5, 1), "ONE_HOST": (5, 1.5, 1)}
STORES = {  # the timing, and the cores that can serve requests
    "sqlite": ("ONE_HOST", 1),
    "pool_server": ("NETWORK", 4),
    "mysql": ("NETWORK", 4),
    "postgres": ("NETWORK", 4),
    "redis": ("IN_MEMORY", 1),
    "etcd": ("NETWORK", 4),
    "zookeeper": ("NETWORK", 4),
}
CLAIM_TIMEOUT, DOUBT_CHECK, FIRST_PAUSE, LONGEST_PAUSE, RESTART = 30, 40, 0.1, 1.0, 1.0
BLOCK, BUCKET, UNUSED_AT_ONCE = 1024, 64, 16
OTHERS = 2  # entries of a part that are no records: marks, and the namespace in the first one
LOWEST_SPREAD, SPREADS = 90, 21  # percent
ROUND_TRIP = 0.0005  # of the network, in seconds
FLUSH = 900  # median of fdatasync where it was measured, in microseconds
CONSTANTS = [  # file, and what it must have
    ("lease/timing.rs", *(f"{name}: Timing = Timing::millis({w * 1000:_}, {int(r * 1000):_}, {t * 1000:_}," for name, (w, r, t) in TIMINGS.items())),
    ("lease/state/claiming.rs", f"CLAIM_TIMEOUT: Duration = Duration::from_secs({CLAIM_TIMEOUT});"),
    ("lease/state/doubt.rs", f"DOUBT_CHECK: Duration = Duration::from_secs({DOUBT_CHECK});"),
    ("lease/state/now.rs", f"{LOWEST_SPREAD} + self.jitter % {SPREADS}"),
    ("wait/back_off.rs", f"Duration::from_millis({int(FIRST_PAUSE * 1000)}) * 2_u32", f"LONGEST_PAUSE: Duration = Duration::from_secs({int(LONGEST_PAUSE)});"),
    ("lease/leases.rs", f"BLOCK: u64 = {BLOCK};", f"BUCKET: u64 = {BUCKET};"),
    ("lease/state/candidates.rs", f"UNUSED_AT_ONCE: usize = {UNUSED_AT_ONCE};"),
]


class Server:
    """Serves requests in the order of their arrival, on some cores. Puts that wait at the same time are made durable
    together, except in a file that one process writes at a time."""

    def __init__(self, costs, cores, serial, timeout):
        self.costs, self.cores, self.timeout, self.used = costs, [0.0] * cores, timeout, 0.0
        self.flush, self.serial = costs["flush"], serial
        self.flush_from = self.flush_to = 0.0
        self.counts = dict.fromkeys(("now", "get", "doubt", "list", "put"), 0)

    def serve(self, now, kind, entries, connects):
        """When it is carried out, and when it is answered; never if its caller has gone before. Servers that were paused
        for 3 s used no CPU time that could be measured for the callers that had gone."""
        begun = max(now, heapq.heappop(self.cores))
        gone = begun - now > self.timeout
        cost = self.costs["connect"] if connects and not gone else 0.0
        if not gone:
            self.counts[kind] += 1
            cost += self.costs["busy"] * self.costs["get" if kind == "list" else kind]
            cost += self.costs["entry"] * entries if kind == "list" else 0
        self.used += cost / 1e6
        ended = begun + cost / 1e6
        if kind == "put" and not gone and self.serial:
            ended += self.flush / 1e6
        heapq.heappush(self.cores, ended)
        if gone:
            return None, float("inf")
        return ended, self.durable(ended) if kind == "put" and not self.serial else ended

    def durable(self, at):
        flush = self.flush / 1e6
        if at >= self.flush_to:
            self.flush_from, self.flush_to = at, at + flush
        elif at > self.flush_from:
            self.flush_from, self.flush_to = self.flush_to, self.flush_to + flush
        return self.flush_to


class World:
    """Processes that start within `spread` seconds, on a pool of machine IDs:

    first  no record exists
    kept   each process has the machine ID of its last run in its state directory
    lost   each had one, and its state directory is gone
    """

    def __init__(self, store, costs, processes, pool, scenario, spread=1.0, cores=None, seed=SEED):
        timing, most = STORES[store]
        _, self.renew_every, self.timeout = TIMINGS[timing]
        self.server, self.pool, self.scenario = Server(costs, cores or most, store == "sqlite", self.timeout), pool, scenario
        self.random = random.Random(f"{seed} {store} {processes} {scenario}")
        self.events, self.number, self.now = [], 0, 0.0
        self.created, self.changed, self.entries = {}, {}, {}  # records, changes of marks, entries of a part
        self.processes, self.started, self.waits, self.owners = processes, [], [], {}
        self.refused = self.failed = self.given_up = 0
        own = self.random.sample(range(pool), processes)
        if scenario != "first":
            for machine in own:
                self.create(machine, -1.0)
        for machine in own:
            self.after(self.random.random() * spread, self.process(machine))

    def after(self, seconds, generator, value=None):
        self.number += 1
        heapq.heappush(self.events, (self.now + seconds, self.number, generator, value))

    def run(self, limit=LIMIT, steady=False):
        """Until all have a machine ID, or until a moment."""
        while self.events[0][0] < limit and (steady or len(self.started) < self.processes):
            self.now, _, generator, value = heapq.heappop(self.events)
            if generator is None:
                value()
                continue
            wanted = generator.send(value)
            if isinstance(wanted, (int, float)):
                self.after(wanted, generator)
            else:
                self.send(generator, *wanted)
        return self

    def send(self, generator, kind, connects, part=0, effect=None):
        """Serves a request. Its effect takes place whether or not its caller still waits."""
        done, durable = self.server.serve(self.now + ROUND_TRIP / 2, kind, self.entries.get(part, 0), connects)
        answer, answered = [True], durable + ROUND_TRIP / 2 - self.now
        if effect and done:
            self.after(done - self.now, None, lambda: answer.__setitem__(0, effect()))
        if answered <= self.timeout:
            self.after(answered, generator, answer)
        else:
            self.failed += 1
            self.after(self.timeout, generator)

    def create(self, machine, now):
        if machine in self.created:
            return False
        self.created[machine] = now
        part = machine // BUCKET
        self.entries[part] = self.entries.get(part, OTHERS) + 1
        return True

    def mark(self, bucket, known):
        if self.changed.get(bucket, -2.0) > known:
            return False
        self.changed[bucket] = self.now
        return True

    def process(self, own):
        came = self.now
        while not (yield from self.claim(own)):
            self.given_up += 1
            yield RESTART
        self.started.append(self.now)
        self.waits.append(self.now - came)
        checked, connects = self.now, False
        while True:
            yield self.renew_every * (LOWEST_SPREAD + self.random.randrange(SPREADS)) / 100
            looks = self.now - checked >= DOUBT_CHECK
            checked = self.now if looks else checked
            for kind in (*CHECK, "put") if looks else ("put",):
                while not (yield kind, connects):
                    connects = True
                    yield self.renew_every / 10
                connects = False

    def claim(self, own):
        """A start: True once it has a machine ID, False if it gives up."""
        deadline, connects, outage, failures = self.now + CLAIM_TIMEOUT, True, None, 0

        def ask(kind, part=0, effect=None, once=False):
            nonlocal connects, outage, failures
            while True:
                answer = yield kind, connects, part, effect
                connects = not answer
                if answer:
                    outage, failures = None, 0
                    return answer[0]
                outage = outage or self.now + CLAIM_TIMEOUT
                if self.now >= outage:
                    return None
                yield min(FIRST_PAUSE * 2**failures, LONGEST_PAUSE)
                failures += 1
                if once:
                    return False

        start = self.random.randrange(self.pool)
        part = (own if self.scenario == "kept" else start) // BUCKET
        if (yield from ask("now")) is None:
            return False
        while self.now < deadline:
            for kind in "get", "doubt", "list":
                if (yield from ask(kind, part)) is None:
                    return False
            if self.scenario == "kept":
                queue = [own]
            else:
                queue = self.unused(part, start, self.now)
            surveyed = self.now
            for machine in queue:
                if self.scenario == "kept":
                    if (yield from ask("put")) is None:  # its last claim goes to the history
                        return False
                else:
                    made = yield from ask("put", effect=lambda: self.create(machine, self.now), once=True)
                    if not made:
                        self.refused += 1
                        if made is None or (yield from ask("get")) is None:
                            return False
                        continue
                    known, bucket = surveyed, machine // BUCKET
                    while not (yield from ask("put", effect=lambda: self.mark(bucket, known))):
                        self.refused += 1
                        if (yield from ask("get")) is None:
                            return False
                        known = self.now
                if (yield from ask("put")) is None or (yield from ask("get")) is None:
                    return False
                self.owners.setdefault(machine, []).append(own)
                return True
            start = self.random.randrange(self.pool)  # contested: another survey; none unused: another part
            part = part if queue else start // BUCKET
        return False

    def unused(self, part, start, then):
        """Machine IDs of a part that had no record then, as candidates.rs orders them: the first from a place that each
        start draws, then others from anywhere in the part."""
        first, count = part * BUCKET, min(BUCKET, self.pool - part * BUCKET)
        is_free = lambda machine: self.created.get(machine, then + 1) > then
        around = ((start + at - first) % count + first for at in range(count))
        home = next(filter(is_free, around), None)
        if home is None:
            return []
        others = (first + self.random.randrange(count) for _ in range(8 * UNUSED_AT_ONCE))
        return [home, *list(filter(is_free, others))[: UNUSED_AT_ONCE - 1]]


def records_before(run):
    """What a survey returns on average: entries of the part before, or, of a first start, of those made so far. Runs of
    before a claim read a part have lists of the whole block."""
    size, others = (BLOCK, BLOCK // BUCKET) if "list" in run["requests"] else (BUCKET, OTHERS)
    if "records" in run:
        return run["records"] * size / BLOCK + others
    share = 0.5 if run["which"] == "first" else 1 if run["keeps_state"] or run["pool"] == run["count"] else 1.5
    return run["count"] * share / -(-run["pool"] // size) + others


def terms(units, run):
    """Of a measured run: CPU of its requests if they came one by one, its connections, the entries of its lists."""
    requests = run["requests"]
    surveys = requests.get("list", 0) + requests.get("get_all", 0)
    return (
        sum(requests.get(kind, 0) * units[kind] for kind in (*CHECK, "put")) + surveys * units["get"],
        run["started"],
        surveys * records_before(run),
    )


def fitted(rows):
    """The factors, none below zero, by which the terms of each row are closest to its last number, in proportion."""
    used = [0, 1, 2]
    while True:
        matrix = [[sum(row[i] * row[j] / row[3] ** 2 for row in rows) for j in (*used, 3)] for i in used]
        for at in range(len(used)):  # Gauss and Jordan
            matrix[at] = [cell / matrix[at][at] for cell in matrix[at]]
            for other in range(len(used)):
                if other != at:
                    matrix[other] = [cell - matrix[other][at] * pivot for cell, pivot in zip(matrix[other], matrix[at])]
        found = dict(zip(used, (row[-1] for row in matrix)))
        if min(found.values()) >= 0:
            return [found.get(at, 0.0) for at in range(3)]
        used.remove(min(found, key=found.get))


def runs_of(raw):
    """Measured starts, without those in which the members had too little of the machine to wait for answers."""
    cuts = [{**cut[which], "which": which, **{name: cut[name] for name in ("count", "pool", "keeps_state")}} for cut in raw["cuts"] for which in ("first", "again")]
    return [run for run in cuts + raw["claims"] if run["requests"].get("failed", 0) < 0.05 * sum(run["requests"].values())]


def reduced(raw):
    """What one request costs, in microseconds of CPU, and what a member keeps, from what measure.py printed. `busy` is
    what requests that queue cost, of what they cost one by one."""
    asks = raw["asks"]
    units = {kind: asks[kind]["cpu_us"] for kind in CHECK} | {"put": raw["renewal_us"]}
    busy, connect, entry = fitted([(*terms(units, run), run["cpu"] * 1e6) for run in runs_of(raw)])
    more = {"flush": FLUSH, "busy": busy, "connect": connect, "entry": entry}
    kept = {"record": round(asks["list"]["bytes"] / asks["list"]["entries"]), "connection": raw["connection_bytes"]}
    return {name: round(cost, 2) for name, cost in (units | more).items()} | kept


def predicted(costs, run):
    """CPU seconds of the requests of a measured run."""
    units, connections, entries = terms(costs, run)
    return (units * costs["busy"] + connections * costs["connect"] + entries * costs["entry"]) / 1e6


def steady(costs, store, processes):
    """In closed form, a second: renewals, other requests, and cores in use."""
    _, renew_every, _ = TIMINGS[STORES[store][0]]
    renewals = processes / renew_every
    checks = processes / (-(-DOUBT_CHECK // renew_every) * renew_every)  # at a renewal
    cores = renewals * costs["put"] + checks * sum(costs[kind] for kind in CHECK)
    return renewals, len(CHECK) * checks, cores / 1e6


def claim(costs, records):
    """In closed form: CPU of a start that takes its last machine ID again, in seconds, from a part with so many entries."""
    requests = sum(costs[kind] for kind in (*CHECK, "get", "get", "put", "put"))  # a survey costs a get, and its entries
    return (costs["busy"] * requests + costs["connect"] + costs["entry"] * records) / 1e6


def starts(costs):
    """Milliseconds of CPU of a start in an empty part, and in a full one."""
    return [round(claim(costs, entries) * 1000, 1) for entries in (OTHERS, BUCKET + OTHERS)]


def pool_of(processes):
    return 1 << (processes - 1).bit_length()


def twice(world):
    return [machine for machine, owners in world.owners.items() if len(owners) > 1]


def start(costs, store, processes, scenario, spread=1.0):
    stands_for = max(1, processes // MOST_SIMULATED)
    costs = costs | {kind: costs[kind] * stands_for for kind in (*CHECK, "put", "connect", "entry")}
    pool = pool_of(processes // stands_for) * (2 if scenario == "lost" else 1)
    world = World(store, costs, processes // stands_for, pool, scenario, spread).run(LIMIT + spread)
    if twice(world):
        sys.exit(f"{store}, {processes}, {scenario}: {len(twice(world))} machine IDs have two owners")
    return {
        "last": round(max(world.started), 1) if len(world.started) == world.processes else None,
        "wait": round(max(world.waits), 1) if world.waits else None,
        "started": len(world.started) / world.processes,
        "refused": round(world.refused / world.processes, 2),
        "failed": round(world.failed / world.processes, 2),
        "given_up": round(world.given_up / world.processes, 3),
    }


def simulated(store, costs, processes):
    renewals, others, cores = steady(costs, store, processes)
    found = {"renewals": round(renewals), "others": round(others), "cores": round(cores, 3), "memory": costs["connection"] * processes}
    if store == "sqlite":
        return found  # its disk decides
    free = STORES[store][1] - cores * costs["busy"]  # what renewals leave
    if free <= 0:
        return found
    over = next((it for it in SPREADS_OF_STARTS if processes * claim(costs, BUCKET + OTHERS) / free <= 0.7 * it), None)
    if not over:
        return found
    return found | {
        "kept": start(costs, store, processes, "kept"),
        "lost": start(costs, store, processes, "lost"),
        "over": over,
        "spread": start(costs, store, processes, "kept", over),
    }


def sizes(store):
    return SIZES[:1] if store == "sqlite" else SIZES


def closed_forms(whole):
    """The simulation agrees with what can be computed, and notices planted faults."""
    for store, costs in whole["costs"].items():
        if store == "sqlite":
            continue
        lasts = 135  # thrice the time between two checks, over which the starts are spread
        renewals, others, cores = steady(costs, store, 1000)
        one_by_one = costs | {"busy": 1.0}
        idle = World(store, one_by_one, 1000, 1024, "kept", 45.0).run(60, steady=True)
        before, used = dict(idle.server.counts), idle.server.used
        idle.run(60 + lasts, steady=True)
        rates = [idle.server.counts["put"] - before["put"], sum(idle.server.counts[kind] - before[kind] for kind in CHECK)]
        for what, rate, wanted in zip(("renewals", "others"), rates, (renewals, others)):
            yield f"{store}: {what} a second", rate / lasts, wanted, 0.05
        yield f"{store}: cores in use", (idle.server.used - used) / lasts, cores, 0.05
        # Far apart, nothing waits: what is used is the sum of the starts.
        alone = World(store, costs, 100, 1024, "kept", 10.0).run()
        claims = sum(claim(costs, alone.entries[machine // BUCKET]) for machine in alone.created)
        yield f"{store}: CPU of 100 starts", alone.server.used - costs["busy"] * costs["put"] * (alone.server.counts["put"] - 200) / 1e6, claims, 0.05


def planted(costs):
    """Machine IDs that the simulation finds with two owners if a store overwrites what it should keep."""

    class Overwrites(World):
        def create(self, machine, now):
            return super().create(machine, now) or now >= 0

    return len(twice(Overwrites("redis", costs, 1000, 1024, "first").run()))


def misses(whole):
    for name, *texts in CONSTANTS:
        source = re.sub(r"\s+", " ", (SERVICE / name).read_text())
        yield from (f"{name} no longer has {text}" for text in texts if text not in source)
    for what, found, wanted, within in closed_forms(whole):
        if abs(found / wanted - 1) > within:
            yield f"{what}: {found:.4g}, and {wanted:.4g} in closed form"
    off = sorted(max(run["predicted"] / run["cpu"], run["cpu"] / run["predicted"]) for run in whole["measured"])
    if off[-1] > MOST[0] or off[len(off) * 9 // 10] > MOST[1]:
        yield f"CPU of the measured starts: up to {off[-1]:.2f} times off, nine of ten up to {off[len(off) * 9 // 10]:.2f} times"
    for run in whole["steady"]:
        renewals, _, cores = steady(whole["costs"][run["store"]], run["store"], run["members"])
        for what, found, wanted, within in ("renewals a second", run["renewals"], renewals, 0.05), ("cores in use", run["cores"], cores, 1.8):
            if abs(found / wanted - 1) > within:
                yield f"{run['members']} members of {run['store']}: {found} {what} measured, {wanted:.3f} in closed form"
    if whole["costs"]["pool_server"]["connection"] != of_many_connections():
        yield "a connection of the pool server is not as measured with 10,000; run scripts/scale/simulate.py write"
    if not planted(whole["costs"]["redis"]):
        yield "a planted store that overwrites records is not noticed"
    for store, costs in whole["costs"].items():
        if simulated(store, costs, SIZES[0]) != whole["simulated"][store][str(SIZES[0])]:
            yield f"{store}: other figures for {SIZES[0]} processes than kept; run scripts/scale/simulate.py write"


def of_many_connections():
    """Bytes of a connection of a pool server that has 10,000. Of measure.py's 400, its threads would be most."""
    intel = json.loads((KEPT.parent / "intel.json").read_text())
    run = next(run for run in [intel, *intel["older"]] if "Pool server: value" in run["figures"])
    return round(1000 * run["figures"]["Pool server: value"][": holding: server memory, kB each, members: 10000"])


def keep(files):
    """With the other stores as they were."""
    whole = json.loads(KEPT.read_text())
    cpu = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    git = ["git", "rev-parse", "--short=8", "HEAD"]
    commit = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    for store, raw in [it for file in files for it in json.loads(pathlib.Path(file).read_text()).items()]:
        costs = whole["costs"][store] = reduced(raw)
        whole["of"][store] = {"machine": cpu[1] if cpu else "unknown", "date": today, "commit": commit}
        for name in "measured", "steady":
            whole[name] = [run for run in whole[name] if run["store"] != store]
        if run := raw.get("steady"):
            whole["steady"].append({"store": store, "members": run["members"], "renewals": round(run["requests"]["put"] / run["took"], 2), "cores": round(run["cpu"] / run["took"], 4)})
        for run in runs_of(raw):
            whole["measured"].append({"store": store, "starts": run["started"], "requests": run["requests"], "cpu": round(run["cpu"], 3), "predicted": round(predicted(costs, run), 3)})
    return whole


def main():
    match sys.argv[1:]:
        case ["keep", *files]:
            whole = keep(files)
        case ["write"]:
            whole = json.loads(KEPT.read_text())
        case ["check"]:
            found = list(misses(json.loads(KEPT.read_text())))
            sys.exit("\n".join(found) if found else 0)
        case _:
            sys.exit(__doc__)
    whole["costs"]["pool_server"]["connection"] = of_many_connections()
    for store, costs in whole["costs"].items():
        if store != "sqlite":  # its members are one process here
            costs["start_ms"] = starts(costs)
    whole["simulated"] = {}
    for store, costs in whole["costs"].items():
        whole["simulated"][store] = {str(size): simulated(store, costs, size) for size in sizes(store)}
    KEPT.write_text(json.dumps(whole, indent=1) + "\n")


if __name__ == "__main__":
    main()
