"""IDs from vesta-rest, taken ahead. Needs only the standard library.

    from vesta_id.rest import RestClient

    with RestClient(["http://10.0.0.7:8088", "http://10.0.0.8:8088"]) as ids:
        print(ids.next_id())
"""

from __future__ import annotations

import copy
import http.client
import json
import os
import random
import re
import ssl
import threading
import time
import weakref
from collections import deque
from datetime import datetime
from typing import Any, Callable, Iterable, NamedTuple, TypeVar
from urllib.parse import urlencode, urlsplit

__all__ = ["Explained", "RestClient", "RestError"]

MAX_COUNT = 1_048_576  # IDs of one request
MAX_ID = 2**64 - 1
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
        self.idle: list[http.client.HTTPConnection] = []
        self.paused_until = 0.0
        self.failure: RestError | None = None


class RestClient:
    """Takes IDs ahead from the first server that answers. May be shared by threads; the child of a fork starts with
    empty memory. `batch` is the number of IDs in memory, `max_wait` the longest wait of a call in seconds, `max_age`
    the age in seconds at which IDs in memory are dropped."""

    def __init__(self, servers: str | Iterable[str], *, token: str | None = None, batch: int = 10_000,
                 max_wait: float = 2.0, max_age: float = 60.0, ssl_context: ssl.SSLContext | None = None,
                 allow_plaintext: bool = False) -> None:
        urls = [servers] if isinstance(servers, str) else list(servers)
        for name, value, least, most in (("number of servers", len(urls), 1, 64), ("batch", batch, 1, MAX_COUNT),
                                         ("max_wait", max_wait, 0.001, 3600), ("max_age", max_age, 0.001, float("inf"))):
            if not least <= value <= most:
                raise ValueError(f"{name} must be {least} to {most}, but is {value}")
        if token is not None and not (token and all("!" <= char <= "~" for char in token)):
            raise ValueError("the token must be visible ASCII characters")
        self._servers = [_Server(url, ssl_context, token, allow_plaintext) for url in urls]
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        self._batch, self._half, self._max_wait, self._max_age = batch, batch // 2, max_wait, max_age
        self._attempt = max_wait if len(urls) == 1 else max_wait / 2
        self._closed = False
        self._at, self._last = 0, RestError("", "DEADLINE_EXCEEDED")  # the server that answered last; the last failure
        self._reset()
        _CLIENTS.add(self)

    def _reset(self) -> None:
        # Also in the child of a fork: its parent issues the IDs in memory, and may have held the lock.
        self._ready = threading.Condition()
        self._runs: deque[list[Any]] = deque()  # [next ID, step, IDs left, time of expiry]
        self._left = self._awaited = 0
        self._filling = False
        self._failed: RestError | None = None
        self._next_try, self._pause = 0.0, FIRST_PAUSE
        for server in self._servers:
            while server.idle:
                server.idle.pop().close()

    def next_id(self) -> int:
        """A new ID, from memory; if that is empty, waits for a server."""
        with self._ready:
            fresh = self._left > self._half and self._runs[0][3] > time.monotonic()
            return (self._pop(1) if fresh else self._take(1))[0]

    def next_ids(self, count: int) -> list[int]:
        """`count` new IDs, 1 to 1,048,576: all or none."""
        if not 1 <= count <= MAX_COUNT:
            raise ValueError(f"count must be 1 to {MAX_COUNT}, but is {count}")
        with self._ready:
            return self._take(count)

    def explain(self, id: int) -> Explained:
        """The fields of an ID, by the server's layout."""
        return self._call(f"/v1/ids/{id:d}", _explained)

    def make(self, time: int, seq: int, *, machine: int | None = None, gen_method: int | None = None,
             type: int | None = None, version: int | None = None) -> int:
        """An ID assembled from its fields, for tests and repairs: it is not a new one. Fields that are left out have
        the server's own values."""
        fields = {"time": time, "seq": seq, "machine": machine, "genMethod": gen_method, "type": type, "version": version}
        given = {name: f"{value:d}" for name, value in fields.items() if value is not None}
        return self._call(f"/makeid?{urlencode(given)}", int)

    def trans_time(self, time: int) -> datetime:
        """The moment at which a tick of the server's layout begins, in UTC."""
        return self._call(f"/transtime?time={time:d}", lambda body: _moment(body.decode()))

    def close(self) -> None:
        """Drops the IDs in memory. Calls in progress and later ones fail with the kind `SEALED`."""
        with self._ready:
            self._closed = True
            self._runs.clear()
            self._left = 0
            self._ready.notify_all()
        for server in self._servers:
            while server.idle:
                server.idle.pop().close()

    def __enter__(self) -> RestClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, count: int) -> list[int]:
        # Slow path, with the lock held: refills, and waits if too few IDs are left.
        deadline = time.monotonic() + self._max_wait
        self._awaited += count
        try:
            while True:
                if self._closed:
                    raise RestError("the client is closed", "SEALED")
                now = time.monotonic()
                while self._runs and self._runs[0][3] <= now:
                    self._left -= self._runs.popleft()[2]
                if not self._filling and now >= self._next_try and self._left - self._awaited <= self._half:
                    wanted = min(max(self._batch - self._left, self._awaited), MAX_COUNT)
                    threading.Thread(target=self._fill, args=(wanted,), name="vesta-refill", daemon=True).start()
                    self._filling = True
                if self._left >= count:
                    return self._pop(count)
                failed = None if self._filling else self._failed
                if failed and (not failed.retry or self._next_try >= deadline):
                    raise self._unanswered("") if failed.retry else copy.copy(failed)  # with a traceback of this thread
                if now >= deadline:
                    raise self._unanswered(f"no ID within {self._max_wait:g} s: ")
                self._ready.wait((deadline if self._filling else self._next_try) - now)
        finally:
            self._awaited -= count

    def _pop(self, count: int) -> list[int]:
        self._left -= count
        ids: list[int] = []
        while count:
            run = self._runs[0]
            id, step, left, _ = run
            n = min(count, left)
            ids.extend(range(id, id + n * step, step))
            run[0], run[2], count = id + n * step, left - n, count - n
            if n == left:
                self._runs.popleft()
        return ids

    def _fill(self, count: int) -> None:
        expiry, runs, failed = time.monotonic() + self._max_age, [], None
        try:
            runs = self._ask(f"/v1/runs?count={count}", lambda body: _runs(body, count))
        except Exception as error:  # any other one would end the refills for good
            failed = error if isinstance(error, RestError) else RestError(repr(error), "INTERNAL")
        with self._ready:
            self._filling, self._failed = False, failed
            if failed:
                self._next_try = time.monotonic() + self._delay(failed)
            elif not self._closed:
                self._runs.extend([*run, expiry] for run in runs)
                self._left += count
            self._ready.notify_all()

    def _call(self, path: str, read: Callable[[bytes], T]) -> T:
        deadline = time.monotonic() + self._max_wait
        while True:
            try:
                return self._ask(path, read, deadline)
            except RestError as error:
                delay = self._delay(error)
                # Another attempt needs time, or its time-out would hide this error.
                if not error.retry or time.monotonic() + delay >= deadline - self._max_wait / 8:
                    raise
            time.sleep(delay)

    def _delay(self, error: RestError) -> float:
        pause, self._pause = self._pause, min(2 * self._pause, LONGEST_PAUSE)
        return max(error.retry_after, random.uniform(pause / 2, pause)) if error.retry else LONGEST_PAUSE

    def _ask(self, path: str, read: Callable[[bytes], T], deadline: float = float("inf")) -> T:
        # Each server once, beginning with the one that answered last.
        first = self._at
        for at in [*range(first, len(self._servers)), *range(first)]:
            server, now = self._servers[at], time.monotonic()
            if self._closed:
                raise RestError("the client is closed", "SEALED")
            if now < server.paused_until:
                continue
            try:
                answer = read(self._get(server, path, min(self._attempt, max(deadline - now, 0.001))))
                server.failure, self._at, self._pause = None, at, FIRST_PAUSE
                return answer
            except (KeyError, TypeError, ValueError) as error:
                why = f"{server.url}: not an answer of vesta-rest: {_plain(repr(error))}"
                failure = RestError(why, "INTERNAL", 200, server.url, retry=True)
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

    def _get(self, server: _Server, path: str, limit: float) -> bytes:
        end = time.monotonic() + limit
        try:
            connection, reused = server.idle.pop(), True
        except IndexError:
            connection, reused = server.open(), False
        try:
            response, body = self._exchange(connection, server.base + path, end)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            left = end - time.monotonic()
            if left > 0 and reused:  # the server closed it while it was idle
                return self._get(server, path, left)
            kind, why = ("UNAVAILABLE", getattr(error, "strerror", None) or str(error) or repr(error)) if left > 0 else (
                "DEADLINE_EXCEEDED", f"no answer within {limit:.3g} s")
            raise RestError(f"{server.url}: {why}", kind, None, server.url, retry=True) from error
        if connection.sock and not self._closed:
            server.idle.append(connection)
        if response.status == 200:
            return body
        raise _refusal(server.url, response, body)

    def _exchange(self, connection: http.client.HTTPConnection, path: str, end: float) -> tuple[http.client.HTTPResponse, bytes]:
        connection.timeout = max(end - time.monotonic(), 0.001)
        if connection.sock:
            connection.sock.settimeout(connection.timeout)
        connection.request("GET", path, headers=self._headers)
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
        wait = float(problem.get("retry_after_ms", 1000 * wait)) / 1000
    except (KeyError, TypeError, ValueError):
        kind, why = "", response.reason
    message = f"{url}: {status} {_plain(why)}"
    return RestError(message, kind, status, url, retry=status == 429 or status >= 500, retry_after=wait)


def _plain(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text[:300])


def _runs(body: bytes, count: int) -> list[tuple[int, int, int]]:
    runs = [(int(run["first"]), int(run["step"]), int(run["count"])) for run in json.loads(body)["runs"]]
    fit = all(first >= 0 and step > 0 and n > 0 and first + (n - 1) * step <= MAX_ID for first, step, n in runs)
    if not fit or sum(n for _, _, n in runs) != count:
        raise ValueError(f"expected runs of {count} IDs")
    return runs


def _explained(body: bytes) -> Explained:
    it = json.loads(body)
    numbers = (int(it[name]) for name in ("time", "seq", "machine", "genMethod", "type", "version"))
    return Explained(int(it["id"]), str(it["layout"]), _moment(it["moment"]), *numbers)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.strip().replace("Z", "+00:00"))


_CLIENTS: weakref.WeakSet[RestClient] = weakref.WeakSet()

def _in_child() -> None:
    for client in list(_CLIENTS):
        client._reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
