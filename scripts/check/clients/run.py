"""Runs the scenarios of scenarios.json with each client, against real servers and scripted ones; then kills servers
under all clients at once, and looks for an ID that came twice.

Usage: run.py FOLDER-WITH-THE-PROGRAMS NAME=COMMAND…     one command for each client: its driver
       run.py --bench FOLDER-WITH-THE-PROGRAMS NAME=COMMAND…
"""

import contextlib
import fnmatch
import hashlib
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit
from urllib.request import urlopen

HERE = Path(__file__).parent
PATIENCE = 60  # seconds for anything that must happen
COUNTING = threading.Lock()
TOKENS = {"maker": "token-of-the-maker-of-ids", "reader": "token-of-the-reader-of-ids"}
SCOPES = {"maker": '["generate", "read"]', "reader": '["read"]'}
AUTH = "".join(
    f'[[auth.tokens]]\nname = "{name}"\nsha256 = "{hashlib.sha256(token.encode()).hexdigest()}"\nscopes = {SCOPES[name]}\n'
    for name, token in TOKENS.items()
)


def twice(ids: list) -> list:
    """IDs that appear more than once."""
    return [id for id, count in Counter(ids).items() if count > 1]


class Real:
    """vesta-rest on a free port; restarts on the same port with the same state."""

    def __init__(self, program: Path, folder: Path, machine: int, *flags: str, config: str = "", scheme: str = "http") -> None:
        folder.mkdir()
        (folder / "vesta.toml").write_text(config)
        self.command = [program, "--config", "vesta.toml", "--state-dir", "state", "--admin-listen", "127.0.0.1:0"]
        self.command += ["--machine-id", str(machine), "--namespace", folder.name, *flags]
        self.folder, self.scheme, self.address = folder, scheme, "127.0.0.1:0"
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [*self.command, "--http-listen", self.address], cwd=self.folder, stdout=subprocess.PIPE, stderr=(self.folder / "log").open("a"), text=True
        )
        for line in self.process.stdout:
            words = line.split()
            if words[:1] in (["HTTP"], ["HTTPS"]):
                self.address = words[1]
            if words[:1] == ["admin"]:
                self.admin = words[1].rstrip("/")
            if words[:1] == ["try"]:
                self.url = f"{self.scheme}://{self.address}"
                return
        raise AssertionError((self.folder / "log").read_text())

    def issued(self) -> int:
        lines = urlopen(f"{self.admin}/metrics").read().decode().splitlines()
        return sum(int(float(line.split()[-1])) for line in lines if line.startswith("vesta_ids_issued_total"))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.process.terminate()
        assert self.process.wait(timeout=PATIENCE) == 0, "not a clean exit"


class Stub:
    """A scripted server: each request takes the next action, and the last action is repeated."""

    def __init__(self, actions: list) -> None:
        self.actions, self.asked, self.headers, self.next_id, self.connections = actions, [], [], 1, 0
        self.cache: dict = {}
        self.lock, self.ended = threading.Condition(), threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.connections += 1
                threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines, contextlib.suppress(OSError):
            while request := lines.readline():
                headers = {}
                while line := lines.readline().decode().strip():
                    name, _, value = line.partition(": ")
                    headers[name.lower()] = value
                with self.lock:
                    action = self.actions[min(len(self.asked), len(self.actions) - 1)]
                    self.asked.append(time.monotonic())
                    self.headers.append(headers)
                    self.lock.notify_all()
                if not self.answer(connection, request.split()[1].decode(), action):
                    return

    def answer(self, connection: socket.socket, path: str, action: dict) -> bool:
        body, media, query = b"", "application/json", dict(parse_qsl(urlsplit(path).query))
        once = {"once": query["once"]} if "once" in query and action.get("once", True) else {}
        if "forward" in action:
            if not action.get("cached") or (body := self.cache.get(path.split("?")[0], b"")) == b"":
                body = self.cache[path.split("?")[0]] = urlopen(action["forward"] + path).read()
        elif action.get("respelled"):
            body = respelled(query, self).encode()
        elif action.get("runs"):
            count = int(query["count"])
            with self.lock:
                first, self.next_id = self.next_id, self.next_id + (0 if action.get("again") else count)
            body = json.dumps({"runs": [{"first": str(first), "step": "1", "count": count}]} | once, separators=(",", ":")).encode()
        elif "body" in action:
            body = json.dumps(action["body"] | once, separators=(",", ":")).encode()
        elif "problem" in action:
            body, media = json.dumps(action["problem"], separators=(",", ":")).encode(), "application/problem+json"
        elif action.get("html"):
            body, media = b"<html><body>It works: 42!</body></html>", "text/html"
        if action.get("hang"):
            self.ended.wait()
            return False
        if action.get("drop"):
            return False
        head = f"HTTP/1.1 {action.get('status', 200)} Scripted\r\ncontent-type: {media}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in action.get("headers", {}).items())
        if action.get("stall") or action.get("cut"):
            # "240" is the beginning of an ID.
            connection.sendall(f"{head}content-length: 1000\r\n\r\n240".encode())
            if action.get("stall"):
                self.ended.wait()
            return False
        connection.sendall((f"{head}content-length: {len(body)}\r\n\r\n".encode() + body) * (1 + action.get("doubled", False)))
        return not action.get("leaves")

    def wait_for(self, count: int) -> None:
        with self.lock:
            assert self.lock.wait_for(lambda: len(self.asked) >= count, PATIENCE), f"asked {len(self.asked)} times, not {count}"
            assert len(self.asked) == count, f"asked {len(self.asked)} times, not {count}"

    def close(self) -> None:
        self.ended.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def respelled(query: dict, stub: Stub) -> str:
    """The answers of a server that lays them out in another way, and says more."""
    unknown = '"Count" : 7, "FIRST":"x" ,"note" : {"first":"1","count":[ 9,-1.5e+3,true,null ],"runs":[{}],"\\"time\\":1":"\\u00e9\\"}{"}'
    if "count" not in query:
        return ('\r\n{ "version"\t: 0 , "type":0,"genMethod" : 2 , ' + unknown + ',"machine": 1021, "seq" :0 , "time" : 94990103,'
                '"moment" : "2018-01-04T02:08:23.000Z", "layout":"max-peak", "Time": 3, "id" : "2407837855670862845" }\n')
    count = int(query["count"])
    first, stub.next_id = stub.next_id, stub.next_id + count
    run = f'{{ "count" : {count} , {unknown}, "step":\n"1","\\u0066irst" : "{first}" }}'
    return f'\n{{ {unknown} ,\t"on\\u0063e" : "{query["once"]}" , "runs" : [ {run} ] , "Once":"?" }} '


class Driver:
    """A process that runs the commands of its input with one client."""

    def __init__(self, name: str, command: str, ca: str = "") -> None:
        self.name = name
        # Node's way to trust another authority.
        environment = os.environ | ({"NODE_EXTRA_CA_CERTS": ca} if ca else {})
        self.process = subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def send(self, line: str) -> None:
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def read(self) -> str:
        line = self.process.stdout.readline().rstrip("\n")
        assert line, f"{self.name}: the driver has ended: {self.process.wait()}"
        return line

    def ask(self, line: str) -> str:
        self.send(line)
        return self.read()

    def held(self) -> Counter:
        """Its threads and descriptors."""
        return Counter({name: len(list(Path(f"/proc/{self.process.pid}/{name}").iterdir())) for name in ("task", "fd")})

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        if self.process.wait(timeout=PATIENCE) != 0:
            raise AssertionError(f"{self.name}: exit status {self.process.returncode}")


def golden(driver: Driver) -> None:
    rows = [line.split() for line in (HERE / "golden.txt").read_text().splitlines() if not line.startswith("#")]
    for named, version, type_, gen_method, ticks, seq, machine, id, millis in rows:
        parts = {"time": ticks, "seq": seq, "machine": machine, "genMethod": gen_method, "type": type_, "version": version}
        given = " ".join(f"{name}={value}" for name, value in list(parts.items())[: int(named)])
        assert driver.ask(f"make {given}") == f"ok {id}", given
        assert driver.ask(f"explain {id}") == f"ok {' '.join(parts.values())}", id
        if type_ == "0":
            assert driver.ask(f"trans {ticks}") == f"ok {millis}", ticks
    assert len(rows) == 400


def texts(driver: Driver) -> None:
    """Both directions of each format, and texts that none may read."""
    rows = [line for line in (HERE / "formats.txt").read_text().splitlines() if not line.startswith("#")]
    for row in rows:
        format, what, text = (row + " ").split(" ")[:3]
        said = driver.ask(f"decode format={format} text={text}")
        if what.startswith("!"):
            assert said.startswith("refused ") and what[1:].replace("_", " ") in said, f"{row}: {said}"
            continue
        assert said == f"ok {what.lstrip('<')}", f"{row}: {said}"
        if what.isdecimal():
            assert driver.ask(f"encode format={format} id={what}") == f"ok {text}", row
    for command in ("encode format=base63 id=1", "decode format=base63 text=1"):
        assert "refused the format must be one of decimal, padded-decimal, hex, base36," in driver.ask(command)
    assert len(rows) > 700


def check(step: dict, said: str, took: float, filled) -> None:
    result, _, rest = said.partition(" ")
    for text in step.get("says", []):
        assert filled(text) in said, f"{text!r} is missing in {said!r}"
    for text in step.get("hides", []):
        assert filled(text) not in said, f"{text!r} is shown in {said!r}"
    least, most = step.get("seconds", (0, PATIENCE))
    assert least <= took <= most, f"took {took:.3f} s: {said[:300]}"
    if "error" in step:
        assert result == "error", said[:300]
        kind, status, retry, after, server, _ = rest.split(" ", 5)
        got = {"kind": kind, "status": int(status), "retry": int(retry), "server": server}
        for name, value in step["error"].items():
            if name == "after":
                assert value[0] <= int(after) <= value[1], said
            else:
                assert got[name] == (filled(value) if isinstance(value, str) else value), f"{name}: {said}"
        return
    assert result == "ok", said[:300]
    if "text" in step:
        assert rest == step["text"], said
    if "ids" in step:
        ids = [int(word) for word in rest.split()]
        assert len(ids) == step["ids"], f"{len(ids)} IDs"
        assert not twice(ids), f"twice: {twice(ids)[:5]}"
        assert step.get("any_order") or ids == sorted(ids), "not ascending"


def count_taken(step: dict, driver: Driver, server: Real, filled) -> None:
    """At most four IDs of the server are taken for one that is used. One client at a time: they share the server."""
    with COUNTING:
        for _ in range(step.get("times", 1)):
            issued, start = server.issued(), time.monotonic()
            said = driver.ask(filled(step["send"]))
            check(step, said, time.monotonic() - start, filled)
            taken = server.issued() - issued
            assert taken <= 4 * step["ids"], f"{taken} taken for {step['ids']} used"


def play(scenario: dict, driver: Driver, shared: dict) -> None:
    stubs, urls = {}, {}
    with contextlib.ExitStack() as stack:
        for name, kind in scenario["servers"].items():
            if kind == "none":
                with socket.create_server(("127.0.0.1", 0)) as unused:
                    urls[name] = f"http://127.0.0.1:{unused.getsockname()[1]}"
            elif kind == "admin":
                urls[name] = shared["real"].admin
            elif isinstance(kind, str):
                urls[name] = shared[kind].url
            else:
                stubs[name] = stack.enter_context(contextlib.closing(Stub(kind["stub"])))
                urls[name] = stubs[name].url

        values = urls | TOKENS | {"ca": shared["ca"], "real": shared["real"].url}

        def filled(text: str) -> str:
            for name, value in values.items():
                text = text.replace(f"{{{name}}}", value)
            return text

        for stub in stubs.values():
            stub.actions = json.loads(filled(json.dumps(stub.actions)))
        # Long enough for a busy machine where the scenario is not about waiting.
        options = {"servers": ",".join(urls.values()), "max_wait": 20_000} | scenario.get("client", {})
        made = driver.ask(filled("new " + " ".join(f"{name}={value}" for name, value in options.items())))
        for text in [*scenario.get("refused", []), *(["refused "] if "refused" in scenario else ["ok"])]:
            assert text in made, made
        for text in [*scenario.get("hides", []), *([options["token"]] if "token" in options else [])]:
            assert filled(text) not in made, made
        for step in scenario["steps"]:
            if "texts" in step:
                texts(driver)
                continue
            if "golden" in step:
                golden(driver)
                continue
            times, last, held = step.get("times", 1), 0, driver.held()
            if "taken_from" in step:
                count_taken(step, driver, shared[step["taken_from"]], filled)
                continue
            for nth in range(times):
                start = time.monotonic()
                said = driver.ask(filled(step["send"]))
                check(step, said, time.monotonic() - start, filled)
                if "dropped" in step:
                    gone = last and int(said.split()[1]) != last + 1
                    last = int(said.split()[1])
                    assert not gone or step["dropped"], f"dropped before {last}"
                    if gone:
                        break
                if all(len(stubs[name].asked) >= count for name, count in step.get("until", {"": 0}).items() if name):
                    if "until" in step:
                        break
            else:
                assert "until" not in step and not step.get("dropped"), "never asked again"
            if "leaves" in step:
                patience = time.monotonic() + PATIENCE
                while more := {name: n for name, n in (driver.held() - held).items() if n > step["leaves"]}:
                    assert time.monotonic() < patience, f"left behind: {more}"
                    time.sleep(0.1)
            for name, count in step.get("asked", {}).items():
                stubs[name].wait_for(count)
        for name, count in scenario.get("asked", {}).items():
            stubs[name].wait_for(count)
        for name, expected in scenario.get("sent", {}).items():
            got = [{key: headers.get(key) for key in it} for it, headers in zip(expected, stubs[name].headers)]
            assert got == expected, got
        for name, most in scenario.get("at_most", {}).items():
            assert len(stubs[name].asked) <= most, f"asked {len(stubs[name].asked)} times"
        for name, most in scenario.get("connections", {}).items():
            assert stubs[name].connections <= most, f"{stubs[name].connections} connections"
        for name, least in scenario.get("apart", {}).items():
            first, second = stubs[name].asked[:2]
            assert second - first >= least, f"asked again after {second - first:.3f} s"
        driver.ask("close")


def play_all(name: str, command: str, table: list, shared: dict) -> tuple:
    failures, played = [], 0
    with contextlib.ExitStack() as stack:
        usual = stack.enter_context(contextlib.closing(Driver(name, command)))
        for scenario in table:
            if name not in scenario.get("only", [name]):
                continue
            driver = usual
            if "ca" in scenario.get("client", {}):
                driver = stack.enter_context(contextlib.closing(Driver(name, command, shared["ca"])))
            try:
                play(scenario, driver, shared)
                played += 1
            except (AssertionError, BrokenPipeError) as error:
                failures.append(f"{name}: {scenario['name']}: {error}")
                print(f"FAILED {failures[-1]}", file=sys.stderr, flush=True)
    return played, failures


def kill_servers(programs: Path, folder: Path, clients: dict, count: int = 200_000) -> str:
    """Kills each of two servers once, under all clients at once."""
    servers = [Real(programs / "vesta-rest", folder / f"killed-{machine}", machine) for machine in (5, 6)]
    drivers = [Driver(name, command) for name, command in clients.items()]
    for driver in drivers:
        assert driver.ask(f"new servers={servers[0].url},{servers[1].url} batch=2000 max_wait=20000").startswith("ok")
    first_progress = threading.Event()

    def follow(driver: Driver) -> str:
        driver.send(f"run 4 {count} {folder / driver.name}.ids")
        while (line := driver.read()).startswith("at "):
            first_progress.set()
        return line

    with ThreadPoolExecutor() as pool:
        ends = [pool.submit(follow, driver) for driver in drivers]
        assert first_progress.wait(PATIENCE)
        servers[0].kill()
        servers[0].start()
        still = sum(not end.done() for end in ends)
        servers[1].kill()
        for driver, end in zip(drivers, ends):
            assert end.result() == "ok ", f"{driver.name}: {end.result()}"
    all_ids, machines = [], Counter()
    for driver in drivers:
        ids = [int(line) for line in (folder / f"{driver.name}.ids").read_text().split()]
        assert len(ids) == count, f"{driver.name}: {len(ids)} IDs"
        machines.update(id % 1024 for id in ids)
        all_ids += ids
        driver.close()
    servers[0].close()
    assert set(machines) == {5, 6}, machines
    assert not twice(all_ids), f"twice: {twice(all_ids)[:5]}"
    return f"{len(all_ids)} IDs of {len(drivers)} clients while both servers were killed ({still} still ran at the second kill): 0 twice"


def find_a_planted_duplicate(clients: dict) -> None:
    same = {"runs": True, "again": True}
    for name, command in clients.items():
        with contextlib.closing(Stub([same])) as stub, contextlib.closing(Driver(name, command)) as driver:
            assert driver.ask(f"new servers={stub.url} batch=10 max_wait=20000").startswith("ok")
            said = driver.ask("take 30")
            try:
                check({"ids": 30}, said, 0, str)
            except AssertionError as error:
                assert str(error).startswith("twice: "), error
            else:
                raise AssertionError(f"{name}: a duplicate was not found: {said}")
    print("a planted duplicate is found through each client")


PAGE = """<script type="module">
import { VestaClient, decode, encode } from "./vesta.mjs";
const say = (text) => fetch(`/said?${encodeURIComponent(text)}`);
try {
  const ids = new VestaClient({ servers: ["URL"], token: "TOKEN", maxWait: 20000 });
  const [id] = await ids.nextMany(20000);
  const { machine, moment } = await ids.explain(decode(encode(id, "base62"), "base62"));
  await ids.make({ time: 1, seq: 1 << 20 }).catch((error) => say(`${id} ${machine} ${moment.getTime() > 0} ${error.kind}`));
} catch (error) {
  say(error.message);
}
</script>"""


def browser(programs: Path, folder: Path) -> None:
    """The module of Node on a page of another origin."""
    said, told = [], threading.Event()

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            body, media = page.encode(), "text/html"
            if path == "/said":
                said.append(unquote(query))
                told.set()
            elif path in ("/vesta.mjs", "/formats.mjs"):
                body, media = (HERE.parents[2] / f"clients/node{path}").read_bytes(), "text/javascript"
            self.send_response(200)
            self.send_header("content-type", media)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        origin = f"http://127.0.0.1:{site.server_port}"
        server = Real(programs / "vesta-rest", folder / "browser", 11, "--cors-origins", origin, config=AUTH)
        page = PAGE.replace("URL", server.url).replace("TOKEN", TOKENS["maker"])
        flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
        chromium = subprocess.Popen(["chromium", *flags, "--remote-debugging-port=0", origin], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            assert told.wait(PATIENCE), "the page said nothing"
        finally:
            chromium.terminate()
            chromium.wait(PATIENCE)
            site.shutdown()
            server.close()
    id, *rest = said[0].split()
    assert id.isdecimal() and int(id) % 1024 == 11 and rest == ["11", "true", "OUT_OF_RANGE"], said
    print("a page in Chromium takes IDs")


def certificate(folder: Path) -> str:
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=vesta -addext subjectAltName=IP:127.0.0.1"
    subprocess.run([*command.split(), "-keyout", folder / "key.pem", "-out", folder / "cert.pem"], check=True, capture_output=True)
    return str(folder / "cert.pem")


def test(programs: Path, clients: dict, folder: Path) -> None:
    table = json.loads((HERE / "scenarios.json").read_text())
    only = os.environ.get("SCENARIO", "*")
    table = [scenario for scenario in table if fnmatch.fnmatch(scenario["name"], only)]
    start = time.monotonic()
    program = programs / "vesta-rest"
    ca = certificate(folder)
    tls = ("--tls-cert", ca, "--tls-key", str(folder / "key.pem"))
    with contextlib.ExitStack() as stack:
        shared: dict = {"ca": ca}
        for name, machine, flags, config, scheme in (
            ("real", 1021, (), "", "http"),
            ("tokens", 2, (), AUTH, "http"),
            ("tls", 3, tls, AUTH, "https"),
            ("js-safe", 4, ("--layout", "js-safe"), "", "http"),
        ):
            server = Real(program, folder / name, machine, *flags, config=config, scheme=scheme)
            shared[name] = stack.enter_context(contextlib.closing(server))
        with ThreadPoolExecutor() as pool:
            played = pool.map(lambda it: play_all(*it, table, shared), clients.items())
            results = dict(zip(clients, played))
    failures = [failure for _, list_ in results.values() for failure in list_]
    if failures:
        sys.exit(1)
    for name, (count, _) in results.items():
        print(f"{count} scenarios: {name}")
    print(kill_servers(programs, folder, clients))
    find_a_planted_duplicate(clients)
    if "node" in clients and shutil.which("chromium"):
        browser(programs, folder)
    print(f"took {time.monotonic() - start:.0f} s")


def bench(programs: Path, clients: dict, folder: Path) -> None:
    """One client on one processor, the server on another."""
    server = Real(programs / "vesta-rest", folder / "bench", 9)
    os.sched_setaffinity(server.process.pid, {0})
    for thread in Path(f"/proc/{server.process.pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), {0})
    print("| client | batch | IDs per second |\n|---|---|---|")
    for name, command in clients.items():
        for batch in (1_000, 10_000, 100_000):
            with contextlib.closing(Driver(name, f"taskset -c 1 {command}")) as driver:
                assert driver.ask(f"new servers={server.url} batch={batch}").startswith("ok")
                driver.ask("bench 1")  # warms up
                _, count, micros = driver.ask("bench 3").split()
                print(f"| {name} | {batch:,} | {int(count) / int(micros) * 1e6:,.0f} |", flush=True)
    server.close()


def main() -> None:
    arguments = sys.argv[1:]
    work = test
    if arguments[:1] == ["--bench"]:
        work, arguments = bench, arguments[1:]
    clients = dict(argument.split("=", 1) for argument in arguments[1:])
    # The browser may still write into its profile.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        work(Path(arguments[0]).resolve(), clients, Path(folder))


main()
