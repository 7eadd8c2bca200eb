"""Runs the commands of its input with the Python client: see run.py."""

import contextlib
import contextvars
import ctypes
import os
import signal
import ssl
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from vesta_id import RestClient, RestError, decode, encode

client: RestClient
begun: threading.Thread
ended: list = []
trace = contextvars.ContextVar("trace", default="")


def headers() -> dict:
    """A token among them has no effect."""
    return {"traceparent": trace.get(), "Authorization": "Bearer other"} if trace.get() else {}


def say(line: str) -> None:
    print(line, flush=True)


def guarded(work) -> str:
    try:
        return f"ok {work()}"
    except RestError as error:
        after = round(1000 * error.retry_after)
        return f"error {error.kind or '-'} {error.status or 0} {error.retry:d} {after} {error.server or '-'} {error}"
    except ValueError as error:
        return f"refused {error}"


def new(pairs: dict) -> str:
    global client, another
    options = {}
    if "ca" in pairs:
        options["ssl_context"] = ssl.create_default_context(cafile=pairs["ca"])
    for name, scale in (("batch", 1), ("max_wait", 0.001), ("max_age", 0.001)):
        if name in pairs:
            options[name] = int(pairs[name]) * scale
    another = lambda: RestClient(pairs["servers"].split(","), token=pairs.get("token"), headers=headers, **options)  # noqa: E731
    client = another()
    return repr(client)


def run(threads: int, count: int, path: str) -> str:
    lots: list = [[] for _ in range(threads)]

    def take(ids: list) -> None:
        while len(ids) < count // threads:
            ids.append(client.next_id())
            if ids is lots[0] and len(ids) % 5000 == 0:
                say(f"at {len(ids)}")

    workers = [threading.Thread(target=take, args=(ids,)) for ids in lots]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    with open(path, "w") as file:
        for ids in lots:
            file.writelines(f"{id}\n" for id in ids)
    return ""


def bench(seconds: float) -> str:
    client.next_id()
    start, n = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        for _ in range(1000):
            client.next_id()
        n += 1000
    return f"{n} {round(1e6 * (time.perf_counter() - start))}"


def short(count: int) -> str:
    """An ID of each of so many clients at once."""
    with ThreadPoolExecutor(count) as pool:
        return " ".join(pool.map(lambda _: closed(1), range(count)))


def closed(count: int) -> str:
    """An ID of each of so many clients in turn."""
    ids = []
    for _ in range(count):
        with another() as it:
            ids.append(str(it.next_id()))
    return " ".join(ids)


def interrupted(count: int, period: float) -> str:
    """The number of IDs taken while a timer's signal takes some too, and how many of them came twice."""
    ids: list = []
    signal.signal(signal.SIGALRM, lambda *_: ids.append(client.next_id()))
    signal.setitimer(signal.ITIMER_REAL, period, period)
    own = [client.next_id() for _ in range(count)]
    signal.setitimer(signal.ITIMER_REAL, 0)
    all_ids = own + ids
    return f"{len(own)} {len(ids)} {len(all_ids) - len(set(all_ids))} twice"


def c_fork() -> int:
    """As C code does it: Python does not know. It does so between fetches: Python's own locks do not survive the fork
    of a process in which another thread runs."""
    while len(os.listdir("/proc/self/task")) > 1:
        os.sched_yield()
    return ctypes.PyDLL(None).fork()


def fork(count: int, forked=os.fork) -> str:
    """IDs of the parent, taken before and after the fork, and those of its child."""
    ids = [client.next_id() for _ in range(count)]
    end, other = os.pipe()
    child = forked()
    if child == 0:
        with contextlib.suppress(BaseException), os.fdopen(other, "w") as pipe:
            pipe.write(" ".join(str(client.next_id()) for _ in range(count)))
        os._exit(0)
    os.close(other)
    ids += [client.next_id() for _ in range(count)]
    with os.fdopen(end) as pipe:
        ids += map(int, pipe.read().split())
    os.waitpid(child, 0)
    return " ".join(map(str, ids))


def answer(command: str, words: list) -> str:
    global begun
    pairs = dict(word.split("=", 1) for word in words if "=" in word)
    match command:
        case "new":
            return guarded(lambda: new(pairs))
        case "take":
            return guarded(lambda: " ".join(str(client.next_id()) for _ in range(int(words[0]))))
        case "many":
            return guarded(lambda: " ".join(map(str, client.next_ids(int(words[0])))))
        case "explain":
            def explain() -> str:
                it = client.explain(int(words[0]))
                return f"{it.time} {it.seq} {it.machine} {it.gen_method} {it.type} {it.version}"
            return guarded(explain)
        case "make":
            names = {"genMethod": "gen_method"}
            return guarded(lambda: client.make(**{names.get(name, name): int(value) for name, value in pairs.items()}))
        case "trans":
            return guarded(lambda: round(1000 * client.trans_time(int(words[0])).timestamp()))
        case "encode":
            return guarded(lambda: encode(int(pairs["id"]), pairs["format"]))
        case "decode":
            return guarded(lambda: decode(pairs["text"], pairs["format"]))
        case "traced":
            token = trace.set(words[0])
            try:
                return answer(words[1], words[2:])
            finally:
                trace.reset(token)
        case "begin":
            begun = threading.Thread(target=lambda: ended.append(guarded(client.next_id)))
            begun.start()
            return "ok"
        case "end":
            begun.join()
            return ended.pop()
        case "close":
            return guarded(client.close)
        case "run":
            return guarded(lambda: run(int(words[0]), int(words[1]), words[2]))
        case "bench":
            return guarded(lambda: bench(float(words[0])))
        case "fork":
            return guarded(lambda: fork(int(words[0])))
        case "cfork":
            return guarded(lambda: fork(int(words[0]), c_fork))
        case "short":
            return guarded(lambda: short(int(words[0])))
        case "closed":
            return guarded(lambda: closed(int(words[0])))
        case "interrupted":
            return guarded(lambda: interrupted(int(words[0]), float(words[1])))
    return f"unknown {command}"


for line in sys.stdin:
    command, *words = line.split()
    say(answer(command, words))
