"""IDs from Vesta over REST, taken ahead. Needs only the standard library.

    from vesta_id.rest import RestClient

    with RestClient(["http://10.0.0.7:8088", "http://10.0.0.8:8088"]) as ids:
        print(ids.next_id())
"""

from __future__ import annotations

import _thread
import contextlib
import copy
import http.client
import json
import os
import random
import re
import signal
import ssl
import threading
import time
from collections import deque
from datetime import datetime
from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple, Sequence, TypeVar
from urllib.parse import urlencode, urlsplit

__all__ = ["Explained", "RestClient", "RestError"]

MAX_COUNT = 1_048_576  # IDs of one request
MAX_ID = 2**64 - 1
CHUNK = 4096  # IDs that are handed out between two looks at the memory
OFTEN = 10.0  # seconds: a refill that soon after the last one asks for twice as many
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0  # between attempts while every server fails
LONGEST_RETRY_AFTER = 60.0
T = TypeVar("T")


class RestError(Exception):
    """A failed call. `kind` is the server's name for the error, `UNAVAILABLE` without an answer, `DEADLINE_EXCEEDED`
    after a time-out, or empty if a proxy answered. `status` is the HTTP status or None, `retry` whether a later call
    may succeed, `retry_after` the seconds until then."""

    def __init__(self, message: str, kind: str = "", status: int | None = None, server: str | None = None,
                 retry: bool = False, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.kind, self.status, self.server, self.retry, self.retry_after = kind, status, server, retry, retry_after


Explained = NamedTuple("Explained", [("id", int), ("layout", str), ("moment", datetime), ("time", int), ("seq", int),
                                     ("machine", int), ("gen_method", int), ("type", int), ("version", int)])
Explained.__doc__ = "The fields of an ID, its layout, and the moment at which its tick begins."


class _Server:
    def __init__(self, url: str, context: ssl.SSLContext | None, token: str | None, plaintext: bool) -> None:
        parts = urlsplit(url)
        host = parts.hostname
        if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc or parts.query or parts.fragment:
            raise ValueError("a server must be http://HOST:PORT or https://HOST:PORT, without user, query and fragment")
        if token and parts.scheme == "http" and not plaintext and not re.fullmatch(r"localhost|127(\.\d+){3}|::1", host):
            raise ValueError(f"{url} would get the token in plain text; use https:// or allow_plaintext=True")
        self.url, self.base, port = url.rstrip("/"), parts.path.rstrip("/"), parts.port
        tls = context or ssl.create_default_context() if parts.scheme == "https" else None
        self.open: Callable[[], http.client.HTTPConnection] = lambda: (
            http.client.HTTPSConnection(host, port, context=tls) if tls else http.client.HTTPConnection(host, port))
        self.idle: list[tuple[int, http.client.HTTPConnection]] = []  # with the process that opened each
        self.paused_until = 0.0
        self.failure: RestError | None = None


class _Lot:
    """IDs to hand out one by one. Nothing divides `take`: no thread, no signal handler, no finaliser."""

    def __init__(self, ids: Iterable[int] = (), expiry: float = 0.0) -> None:
        self.ids, self.expiry = deque(ids), expiry
        self.take = self.ids.popleft


class _Memory:
    """The IDs of one process: the child of a fork begins with another memory. A signal handler or a finaliser may
    interrupt any line, and call the client: so IDs change hands only in single steps of a deque, out of the memory first.
    The lock is for those who wait."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.ready = threading.Condition()
        self.lot = _Lot()
        self.runs: deque[tuple[Sequence[int], float]] = deque()  # with the time of expiry
        self.awaited: deque[tuple[int, int]] = deque()  # thread and number of IDs of each call that is inside
        self.goal = 1  # IDs to have in memory
        self.filled = float("-inf")
        self.fill: list[int] = []  # IDs and goal of the refill under way; empty once it has ended
        self.failed: RestError | None = None
        self.next_try = 0.0

    def left(self) -> int:
        return len(self.lot.ids) + sum(len(run) for run, _ in list(self.runs))

    def expire(self, now: float) -> None:
        dropped = 0
        with contextlib.suppress(IndexError):
            while self.runs[0][1] <= now:
                dropped += len(self.runs.popleft()[0])
        if self.lot.ids and self.lot.expiry <= now:
            dropped += len(self.lot.ids)
            self.lot = _Lot()
        self.goal = max(self.goal - dropped, 1)

    def pop(self, count: int) -> list[int]:
        """So many IDs, or none."""
        ids: list[int] = []
        expiry = self.lot.expiry
        try:
            while len(ids) < count:
                try:
                    ids.append(self.lot.take())
                except IndexError:
                    run, expiry = self.runs.popleft()
                    most = count - len(ids)
                    ids.extend(run[:most])
                    if len(run) > most:
                        self.runs.appendleft((run[most:], expiry))
            # Down to half of the goal, no refill is due.
            spare = min(self.left() - self.goal // 2, CHUNK)
            if spare > 0 and not self.lot.ids:
                run, expiry = self.runs.popleft()
                if len(run) > spare:
                    self.runs.appendleft((run[spare:], expiry))
                self.lot = _Lot(run[:spare], expiry)
        except IndexError:
            if len(ids) < count:
                self.runs.extendleft([(ids, expiry)] if ids else ())
                return []
        return ids

    def clear(self) -> None:
        self.lot.ids.clear()
        self.runs.clear()


class RestClient:
    """Takes IDs ahead from the first server that answers. May be shared by threads, signal handlers and finalisers; the
    child of a fork starts with empty memory. `batch` is the most IDs in memory, `max_wait` the longest wait of a call in
    seconds, `max_age` the age in seconds at which IDs in memory are dropped. `headers` returns more headers of a request,
    such as `traceparent`, in the thread of the call that sends it."""

    def __init__(self, servers: str | Iterable[str], *, token: str | None = None, batch: int = 10_000,
                 max_wait: float = 2.0, max_age: float = 60.0, headers: Callable[[], Mapping[str, str]] = dict,
                 ssl_context: ssl.SSLContext | None = None, allow_plaintext: bool = False) -> None:
        urls = [servers] if isinstance(servers, str) else list(servers)
        for name, value, least, most in (("number of servers", len(urls), 1, 64), ("batch", batch, 1, MAX_COUNT),
                                         ("max_wait", max_wait, 0.001, 3600), ("max_age", max_age, 0.001, float("inf"))):
            if not least <= value <= most:
                raise ValueError(f"{name} must be {least} to {most}, but is {value}")
        if token is not None and not (token and all("!" <= char <= "~" for char in token)):
            raise ValueError("the token must be visible ASCII characters")
        self._servers = [_Server(url, ssl_context, token, allow_plaintext) for url in urls]
        self._headers, self._authorization = headers, {"authorization": f"Bearer {token}"} if token else {}
        self._batch, self._max_wait, self._max_age = batch, max_wait, max_age
        self._attempt = max_wait if len(urls) == 1 else max_wait / 2
        self._closed = False
        self._at, self._last = 0, RestError("", "DEADLINE_EXCEEDED")  # the server that answered last; the last failure
        self._pause = FIRST_PAUSE
        self._memory = _Memory()

    def next_id(self) -> int:
        """A new ID, from memory; if that is empty, waits for a server."""
        memory = self._memory
        lot = memory.lot
        try:
            id = lot.take()
        except IndexError:
            return self.next_ids(1)[0]
        # Asked afterwards: a signal handler may have forked just before the ID was taken.
        if memory.pid == os.getpid() and time.monotonic() < lot.expiry:
            return id
        return self.next_ids(1)[0]

    def next_ids(self, count: int) -> list[int]:
        """`count` new IDs, 1 to 1,048,576: all or none."""
        if not 1 <= count <= MAX_COUNT:
            raise ValueError(f"count must be 1 to {MAX_COUNT}, but is {count}")
        while True:
            memory = self._own()
            with memory.ready:
                ids = self._take(memory, count)
            if memory.pid == os.getpid():
                return ids

    def explain(self, id: int) -> Explained:
        """The fields of an ID, by the server's layout."""
        return self._call(f"/v1/ids/{id:d}", lambda body, _: _explained(body, id))

    def make(self, time: int, seq: int, *, machine: int | None = None, gen_method: int | None = None,
             type: int | None = None, version: int | None = None) -> int:
        """An ID assembled from its fields, for tests and repairs: it is not a new one. Fields that are left out have
        the server's own values."""
        fields = {"time": time, "seq": seq, "machine": machine, "genMethod": gen_method, "type": type, "version": version}
        given = {name: f"{value:d}" for name, value in fields.items() if value is not None}
        return self._call(f"/makeid?{urlencode(given)}&once=", lambda body, once: _text(body, once, int))

    def trans_time(self, time: int) -> datetime:
        """The moment at which a tick of the server's layout begins, in UTC."""
        return self._call(f"/transtime?time={time:d}&once=", lambda body, once: _text(body, once, _moment))

    def close(self) -> None:
        """Drops the IDs in memory. Calls in progress and later ones fail with the kind `SEALED`."""
        self._closed = True
        memory = self._own()
        with memory.ready:
            memory.clear()
            memory.ready.notify_all()
        for server in self._servers:
            self._disconnect(server)

    def __enter__(self) -> RestClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _own(self) -> _Memory:
        # The memory of a parent is left behind, with its lock, which another thread may have held at the fork.
        if self._memory.pid != os.getpid():
            self._memory = _Memory()
        return self._memory

    def _take(self, memory: _Memory, count: int) -> list[int]:
        # Slow path, with the lock held: refills, and waits if too few IDs are left.
        deadline = time.monotonic() + self._max_wait
        call = threading.get_ident(), count
        interrupts = any(thread == call[0] for thread, _ in list(memory.awaited))
        memory.awaited.append(call)
        try:
            while memory.pid == os.getpid():
                if self._closed:
                    memory.clear()
                    raise RestError("the client is closed", "SEALED")
                now = time.monotonic()
                memory.expire(now)
                left, awaited = memory.left(), sum(n for _, n in list(memory.awaited))
                if not memory.fill and now >= memory.next_try and left - awaited < memory.goal // 2:
                    goal = min(2 * memory.goal, self._batch) if now - memory.filled < OFTEN else memory.goal
                    wanted = min(max(goal - left, awaited), MAX_COUNT)
                    fill, headers = [wanted, goal], self._of_caller()
                    # One step, unlike the start of a threading.Thread.
                    _thread.start_new_thread(self._fill, (memory, fill, headers))
                    memory.fill = fill
                if ids := memory.pop(count):
                    return ids
                failed = None if memory.fill else memory.failed
                if failed and (not failed.retry or memory.next_try >= deadline):
                    raise self._unanswered("") if failed.retry else copy.copy(failed)  # with a traceback of this thread
                if now >= deadline:
                    raise self._unanswered(f"no ID within {self._max_wait:g} s: ")
                until = deadline if memory.fill else min(memory.next_try, deadline)
                with _undisturbed() if interrupts else contextlib.nullcontext():
                    memory.ready.wait(max(until - now, 0.001))
            return []
        finally:
            memory.awaited.remove(call)

    def _of_caller(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self._headers().items()} | self._authorization

    def _fill(self, memory: _Memory, fill: list[int], headers: dict[str, str]) -> None:
        count, goal = fill
        expiry, runs, failed = time.monotonic() + self._max_age, [], None
        try:
            runs = self._ask(f"/v1/runs?count={count}&once=", lambda body, once: _runs(body, once, count), headers)
        except Exception as error:  # any other one would end the refills for good
            failed = error if isinstance(error, RestError) else RestError(repr(error), "INTERNAL")
        with memory.ready:
            fill.clear()
            memory.failed = failed
            if failed:
                memory.next_try = time.monotonic() + self._delay(failed)
            elif not self._closed:
                memory.goal, memory.filled = goal, time.monotonic()
                memory.runs.extend((run, expiry) for run in runs)
            memory.ready.notify_all()

    def _call(self, path: str, read: Callable[[bytes, str], T]) -> T:
        deadline, headers = time.monotonic() + self._max_wait, self._of_caller()
        while True:
            try:
                return self._ask(path, read, headers, deadline)
            except RestError as error:
                delay = self._delay(error)
                # Another attempt needs time, or its time-out would hide this error.
                if not error.retry or time.monotonic() + delay >= deadline - self._max_wait / 8:
                    raise
            time.sleep(delay)

    def _delay(self, error: RestError) -> float:
        pause, self._pause = self._pause, min(2 * self._pause, LONGEST_PAUSE)
        return max(error.retry_after, random.uniform(pause / 2, pause)) if error.retry else LONGEST_PAUSE

    def _ask(self, path: str, read: Callable[[bytes, str], T], headers: dict[str, str], deadline: float = float("inf")) -> T:
        # Each server once, beginning with the one that answered last.
        first = self._at
        for at in [*range(first, len(self._servers)), *range(first)]:
            server, now = self._servers[at], time.monotonic()
            if self._closed:
                raise RestError("the client is closed", "SEALED")
            if now < server.paused_until:
                continue
            once = os.urandom(8).hex() if path.endswith("&once=") else ""
            try:
                body = self._get(server, path + once, headers, min(self._attempt, max(deadline - now, 0.001)))
                try:
                    answer = read(body, once)
                except Exception as error:
                    why = str(error) if isinstance(error, _Mistaken) else f"not an answer of Vesta: {_plain(repr(error))}"
                    self._disconnect(server)  # more such answers may be on their way
                    raise RestError(f"{server.url}: {why}", "INTERNAL", 200, server.url, retry=True) from error
                server.failure, self._at, self._pause = None, at, FIRST_PAUSE
                return answer
            except RestError as error:
                if not error.retry:
                    raise
                failure = error
            server.failure = self._last = failure
            server.paused_until = time.monotonic() + min(failure.retry_after, LONGEST_RETRY_AFTER)
        raise self._unanswered("")

    def _unanswered(self, start: str) -> RestError:
        said = [str(server.failure) if server.failure else f"{server.url}: no answer yet" for server in self._servers]
        wait = max(0.0, min(server.paused_until for server in self._servers) - time.monotonic())
        last = self._last
        return RestError(start + "; ".join(said), last.kind, last.status, last.server, retry=True, retry_after=wait)

    def _get(self, server: _Server, path: str, headers: dict[str, str], limit: float) -> bytes:
        end = time.monotonic() + limit
        connection, reused = None, True
        while server.idle and not connection:
            with contextlib.suppress(IndexError):
                pid, connection = server.idle.pop()
                if pid != os.getpid():
                    connection = connection.close()  # the parent's
        if not connection:
            connection, reused = server.open(), False
        try:
            response, body = self._exchange(connection, server.base + path, headers, end)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            left = end - time.monotonic()
            if left > 0 and reused:  # the server closed it while it was idle
                return self._get(server, path, headers, left)
            kind, why = ("UNAVAILABLE", getattr(error, "strerror", None) or str(error) or repr(error)) if left > 0 else (
                "DEADLINE_EXCEEDED", f"no answer within {limit:.3g} s")
            raise RestError(f"{server.url}: {why}", kind, None, server.url, retry=True) from error
        if connection.sock and not self._closed:
            server.idle.append((os.getpid(), connection))
        if response.status == 200:
            return body
        raise _refusal(server.url, response, body)

    def _disconnect(self, server: _Server) -> None:
        with contextlib.suppress(IndexError):
            while True:
                server.idle.pop()[1].close()

    def _exchange(self, connection: http.client.HTTPConnection, path: str, headers: dict[str, str],
                  end: float) -> tuple[http.client.HTTPResponse, bytes]:
        connection.timeout = max(end - time.monotonic(), 0.001)
        if connection.sock:
            connection.sock.settimeout(connection.timeout)
        connection.request("GET", path, headers=headers)
        response, body = connection.getresponse(), b""
        while chunk := response.read1(65536):
            body += chunk
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError
            if connection.sock:
                connection.sock.settimeout(left)
        if response.length:
            raise http.client.IncompleteRead(body, response.length)
        response.close()  # frees the connection for the next request
        return response, body


def _refusal(url: str, response: http.client.HTTPResponse, body: bytes) -> RestError:
    status, seconds = response.status, response.headers.get("retry-after", "")
    wait = float(seconds) if seconds.isdecimal() else 0.0
    try:
        problem = json.loads(body)
        kind, why = str(problem["kind"]), f"{problem['kind']}: {problem['detail']}"
        wait = max(0.0, float(problem.get("retryAfterMs", 1000 * wait)) / 1000)
    except (KeyError, TypeError, ValueError, RecursionError):
        kind, why = "", f"{response.reason}: not an answer of Vesta"
    message = f"{url}: {status} {_plain(why)}"
    # Another server may have what this one, which is none of ours, has not.
    retry = status in (404, 429) or status >= 500 or (status >= 400 and not kind)
    return RestError(message, kind, status, url, retry=retry, retry_after=wait)


def _plain(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text[:300])


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    # A handler that waits would be interrupted by the next signal, and so on.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS) if _SIGNALS else ()
    try:
        yield
    finally:
        if _SIGNALS:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


_SIGNALS = signal.valid_signals() - {signal.SIGSEGV, signal.SIGFPE, signal.SIGILL} if hasattr(signal, "pthread_sigmask") else ()


class _Mistaken(Exception):
    """An answer to another request."""


def _check(matches: bool) -> None:
    if not matches:
        raise _Mistaken("this answer is to another request (its `once` is not the one sent): a cache or a proxy in between "
                        "repeats answers, or the server is older than this client")


def _text(body: bytes, once: str, read: Callable[[str], T]) -> T:
    text, _, name = body.decode().strip().partition(" ")
    value = read(text)
    _check(name == once)
    return value


def _runs(body: bytes, once: str, count: int) -> list[range]:
    answer, runs, reach = json.loads(body), [], []
    given = answer["runs"]
    _check(answer.get("once") == once)
    for run in given:
        first, step, n = int(run["first"]), int(run["step"]), int(run["count"])
        if first < 0 or step < 1 or not 1 <= n <= count or first + (n - 1) * step > MAX_ID:
            raise ValueError("a run is out of range")
        reach = [it for it in reach if it[-1] >= first]  # beyond the first ID of this run
        meets = any(it.step != step or (first - it[0]) % step == 0 for it in reach)
        if meets or runs and first <= runs[-1][0]:
            raise ValueError("runs share an ID")
        runs.append(range(first, first + n * step, step))
        reach.append(runs[-1])
    if sum(map(len, runs)) != count:
        raise ValueError(f"expected runs of {count} IDs")
    return runs


def _explained(body: bytes, id: int) -> Explained:
    it = json.loads(body)
    _check(int(it["id"]) == id)
    numbers = (int(it[name]) for name in ("time", "seq", "machine", "genMethod", "type", "version"))
    return Explained(id, str(it["layout"]), _moment(it["moment"]), *numbers)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
