"""The reader of a page: types what it shows, in an empty folder beside a checkout. Each server has a terminal of its
own."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.request
from pathlib import Path
from xml.etree import ElementTree

import languages
from page import Lacking, Wrong
from services import Services
from shown import Comparer

ROOT = Path(__file__).resolve().parents[3]
HOME = "/home/ann"  # of the reader in the pages
LONGEST = 120  # seconds for one command
SERVER = re.compile(r"`(vesta(?:-server|-rest| serve(?: rest| grpc)?))(?=[ `])")
URL = re.compile(r"https?://[\w.]+:\d+")

PLAYED = ("console", "sh", "toml", "sql", "xml", "java", "python", "go", "js")

CARGO = """#!/bin/sh
# What is built already takes the place of `cargo run`.
[ "$1" = run ] || { echo "not played: cargo $*" >&2; exit 64; }
shift
if [ "$1" = -- ]; then shift; fi
exec vesta "$@"
"""


class Hands:
    def __init__(self, programs, stand_ins=None, stores=None):
        self.folder = tempfile.TemporaryDirectory(prefix="reader-")
        base = Path(self.folder.name)
        base.chmod(0o755)  # servers of stores have users of their own
        self.home, tools = base / "home", base / "bin"
        self.work = self.home / "app"
        for folder in self.home, self.work, tools:
            folder.mkdir()
        (self.home / "vesta").symlink_to(ROOT)
        (self.home / ".curlrc").write_text("silent\nshow-error\nfail-with-body\n")  # 4xx and 5xx fail
        for name, script in {"cargo": CARGO, **(stand_ins or {})}.items():
            (tools / name).write_text(script)
            (tools / name).chmod(0o755)
        cache = os.environ.get("READER_CACHE", base)
        path = f"{tools}:{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment = {
            "HOME": str(self.home), "PATH": path, "TZ": "UTC", "LANG": "C.UTF-8", "no_proxy": "*",
            "npm_config_offline": "true", "npm_config_cache": f"{cache}/npm", "npm_config_update_notifier": "false",
            "GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local",
            "GOCACHE": f"{cache}/go", "GOPATH": str(base / "gopath"),
        }  # fmt: skip
        self.services = Services(base / "stores", stores, self.environment)
        self.servers = []  # their processes and commands
        self.comparer = Comparer()
        self.typed = self.compared = 0
        self.place = ""  # of the page, which a README calls PATH-OF-THIS-FOLDER

    def stop(self, server=None):
        for it in [server] if server else self.servers[:]:
            self.servers.remove(it)
            it[0].send_signal(signal.SIGTERM)
            if it[0].wait(LONGEST) != 0:
                raise Wrong(f"{it[1]}\nended with {it[0].returncode}")

    def types(self, command):
        """Types one command; gives its exit code (`None` of a server that is up) and what it printed."""
        self.typed += 1
        with tempfile.TemporaryFile("w+") as errors:
            child = subprocess.Popen(
                ["bash", "-c", command if re.search(r"[;&|\n]|^\w+=", command) else f"exec {command}"],
                cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=errors, text=True,
            )  # fmt: skip
            limit = threading.Timer(LONGEST, child.kill)
            limit.start()
            printed, up = "", 0
            try:
                for line in child.stdout:
                    printed += line
                    # The last of a server's start-up lines is a call of the last of its addresses.
                    addresses = re.findall(r"^  (?:HTTP|gRPC|admin) (?! *off)", printed, re.MULTILINE)
                    up += re.match("  try  |              (curl|grpcurl) ", line) is not None
                    if up and up == len(addresses):
                        self.servers.append((child, command))
                        if identity := re.search(r"^  members +vesta.*[?&]id=([0-9a-f]{16})", printed, re.MULTILINE):
                            self.services.identity = identity[1]
                        return None, printed.replace(str(self.home), HOME)
                code = child.wait()
            finally:
                limit.cancel()
            errors.seek(0)
            return code, (printed or errors.read()).replace(str(self.home), HOME)

    def follow(self, command, shown=(), code=None):
        """Types a command and compares; without output to compare with, it must succeed."""
        shown, command = list(shown), self.services.fill_in(command.replace("PATH-OF-THIS-FOLDER", self.place))
        if shown and (number := re.fullmatch(r"\? (\d+)", shown[0])):
            code, shown = int(number[1]), shown[1:]
        ended, printed = self.types(command)
        if self.servers and ended == 64 and "already in use" in printed:  # Ctrl+C in the other terminals
            self.stop()
            ended, printed = self.types(command)
        if ended == 127 and command.split()[0] in languages.PROGRAMS and not shutil.which(command.split()[0]):
            raise Lacking(f"there is no {command.split()[0]}")
        if (ended or 0) != (code or 0) and not (shown and code is None):
            raise Wrong(f"{command}\nended with {ended}: {printed}")
        if shown and not (ended is None and len(shown) == 1):  # a word about a server
            self.compared += 1
            about = re.split("[,，]", shown[0])[0] if len(shown) == 1 else None
            if not self.comparer.same(shown, printed) and not (about and self.comparer.same([about], printed)):
                raise Wrong(f"{command}\n--- shown\n" + "\n".join(shown) + f"\n--- printed\n{printed}")
        return printed

    def console(self, block):
        entries = []
        for line in block.lines:
            if line.startswith("$ "):
                entries.append([re.sub(r"\s+# .*", "", line[2:]), []])
            elif entries and entries[-1][0].endswith("\\"):
                entries[-1][0] = entries[-1][0][:-1] + line.strip()
            elif entries:
                entries[-1][1].append(line)
            else:
                raise Wrong("it shows an output before a command")
        for command, shown in entries:
            while shown and not shown[-1]:
                shown.pop()
            self.follow(command, shown)

    def sh(self, block):
        waiting = None
        for line in block.text.replace("\\\n", "").split("\n"):
            command, _, shown = re.match(r"(.*?)(^|\s+)# (.*)$", line).groups() if "# " in line else (line, "", "")
            if waiting and shown and not command.strip():  # its output stands below it
                self.follow(waiting, [shown])
                waiting = None
                continue
            if waiting:
                self.follow(waiting)
            if variable := re.fullmatch(r"(?:export )?([A-Z_]+)=(\S+)", command.strip()):
                self.environment[variable[1]] = variable[2]
                command = shown = ""
            waiting = None if shown else command.strip()
            if shown and command.strip():
                self.follow(command.strip(), [shown])
        if waiting:
            self.follow(waiting)

    def toml(self, block):
        """The file starts the program that the page names."""
        if block.lines[0] == "[dependencies]":
            for path in re.findall(r'path = "([^"]+)"', block.text):
                if not (self.work / path / "Cargo.toml").exists():
                    raise Wrong(f"there is no crate {path}")
            return
        command = re.search(r"`(vesta [^`]*--config ([\w-]+\.toml))`", block.before)
        named = re.match(r"# ([\w-]+\.toml)\b", block.lines[0]) or re.search(r"`([\w-]+\.toml)`", block.before)
        name = command[2] if command else named[1] if named else "vesta.toml"
        program = SERVER.findall(block.before)[-1:] or SERVER.findall(block.page)[:1] or ["vesta serve"]
        (self.work / name).write_text(self.services.fill_in(block.text))
        self.follow(command[1] if command else f"{program[0]} --config {name}")

    def sql(self, block):
        self.services.sql(block.text, self.work)

    def xml(self, block):
        namespaces = "".join(f' xmlns:{name}="-"' for name in set(re.findall(r"<(\w+):", block.text)))
        try:
            ElementTree.fromstring(f"<page{namespaces}>{block.text}</page>")
        except ElementTree.ParseError as error:
            raise Wrong(f"it is no XML: {error}") from None

    def program(self, block):
        """A program in another language; one that names two servers runs again without the first."""
        command = languages.saved(block, self.work, self.environment)
        if not command:
            return
        printed = self.follow(command)
        languages.compare(block.text, printed)
        named = list(dict.fromkeys(URL.findall(block.text)))
        if len(named) < 2:
            return
        for url in named:
            self.serves(url)
        first = next(it for it in self.servers if self.listens(it, named[0]))
        self.stop(first)
        try:
            languages.compare(block.text, self.follow(command))
        except Wrong as wrong:
            raise Wrong(f"without the first server {named[0]}: {wrong}") from None
        self.follow(first[1])

    def serves(self, url):
        try:
            with urllib.request.urlopen(f"{url}/genid", timeout=5) as answer:
                int(answer.read())
        except (OSError, ValueError) as error:
            raise Wrong(f"{url} is no server of IDs: {error}") from None

    def listens(self, server, url):
        port = url.rpartition(":")[2]
        return port == "8088" and "--http-listen" not in server[1] or f":{port}" in server[1]

    java = python = go = js = program

    def read(self, page):
        """Follows a page; yields what it was asked to leave out."""
        try:
            self.services.start(page.needs, "".join(block.text for block in page.blocks))
        except Lacking as lacking:
            yield str(lacking)
            return
        for block in page.blocks:
            try:
                if block.left_out:
                    yield f"line {block.number}: {block.left_out}"
                elif block.is_typed_as_text:
                    raise Wrong("a command in a block of text: nothing types it")
                elif block.language in PLAYED:
                    getattr(self, block.language)(block)
            except Lacking as lacking:
                yield f"line {block.number}: {lacking}"
            except Wrong as wrong:
                raise Wrong(f"line {block.number}: {wrong}") from None
        self.stop()
        self.services.stop()
