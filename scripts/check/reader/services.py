"""Services that the reader of a page already runs, as a line `You need: …` of the page declares: PostgreSQL, MySQL,
Redis, ZooKeeper and etcd, at the addresses that the page names."""

import hashlib
import re
import select
import socket
import sqlite3
import subprocess
import threading
from pathlib import Path

import systems
from page import Lacking, Wrong

KINDS = {"PostgreSQL": "postgres", "MySQL": "mysql", "MariaDB": "mysql", "Redis": "redis", "ZooKeeper": "zookeeper",
         "etcd": "etcd"}  # fmt: skip
PORTS = {"postgres": 5432, "mysql": 3306, "redis": 6379, "zookeeper": 2181, "etcd": 2379}
PASSWORD = "secret"  # what its reader writes for "…" and TOKEN
DIGEST = hashlib.sha256(PASSWORD.encode()).hexdigest()
CERTIFICATE = r"certificate\b.*?\bof ((?:`[\w.]+`(?:,| and)? )+).*? in `([\w/]+)`"


class Services:
    def __init__(self, folder, program, environment):
        self.folder, self.program, self.environment = folder, program, environment
        self.started = {}  # kinds, and their URLs
        self.identity = None  # of the last pool server

    def stores(self, *words):
        done = subprocess.run([self.program, words[0], str(self.folder), *words[1:]], capture_output=True, text=True)
        if done.returncode != 0:
            raise Wrong(f"stores {' '.join(words)}: {done.stderr}")
        return done.stdout

    def fill_in(self, text):
        """The text with the password where the page leaves it out, and the identity that a pool server printed."""
        if url := self.started.get("mysql"):  # its administrator
            text = re.sub(r"mysql://vesta:(…|secret)@", re.match(r"mysql://vesta:\w+@", url)[0], text)
        for shown, filled in ((":…@", f":{PASSWORD}@"), (":TOKEN@", f":{PASSWORD}@"), ('"…"', f'"{DIGEST}"')):
            text = text.replace(shown, filled)
        return re.sub(r"(?<=[?&]id=)[0-9a-f]{16}\b", self.identity, text) if self.identity else text

    def start(self, needs, blocks):
        kinds = {kind for name, kind in KINDS.items() if re.search(rf"\b{name}\b", needs)}
        certificate = re.search(CERTIFICATE, needs)
        if needs and not kinds and not certificate:
            raise Wrong(f"nothing is known of: {needs}")
        if certificate:
            make_certificate(re.findall(r"`([\w.]+)`", certificate[1]), certificate[2])
        if not kinds:
            return
        if Path("/proc/self/uid_map").read_text().split()[2] == "1":
            raise Lacking("only root can start its services, which have users of their own")
        for kind in sorted(kinds):
            if lack := subprocess.run([self.program, "lacks", kind], capture_output=True, text=True).stdout.strip():
                raise Lacking(f"{kind}: {lack}")
        self.stores("start", *sorted(kinds))
        for name, url in re.findall(r"VESTA_TEST_(\w+)='(.*)'", self.stores("env")):
            if name.lower() in kinds:
                self.started[name.lower()] = url
        for kind, url in self.started.items():
            forward(PORTS[kind], int(re.search(r":(\d+)(/|$)", url)[1]))
        self.prepare(needs, blocks)

    def prepare(self, needs, blocks):
        """The users, passwords and databases that the page names."""
        if url := self.started.get("postgres"):
            user, password, host, port, _ = re.match(r"postgres://(\w+):(\w+)@([\w.]+):(\d+)/(\w+)", url).groups()
            for name in re.findall(r"database `(\w+)`", needs):
                self.stores("sql", "postgres", f"CREATE DATABASE {name} OWNER {user}")
            self.environment |= {"PGHOST": host, "PGPORT": port, "PGUSER": user, "PGPASSWORD": password}
            self.database = re.findall(r"database `(\w+)`", needs)[-1]
        if "mysql" in self.started:
            self.database = "vesta"
            for user, password, host, database in re.findall(r"mysql://(\w+)(:[^@]*)?@([\w.]+)[:\d]*/(\w+)", blocks):
                if f"`{host}`" not in needs:
                    continue
                self.database = database
                self.stores("sql", "mysql", f"CREATE DATABASE IF NOT EXISTS {database}")
                if user == "vesta":
                    continue
                by = f"IDENTIFIED BY '{PASSWORD}'" if password else ""
                self.stores("sql", "mysql", f"CREATE OR REPLACE USER {user}@'%' {by}")
                self.stores("sql", "mysql", f"GRANT ALL ON *.* TO {user}@'%'")
        if url := self.started.get("redis"):
            systems.keys(url, needs)
            set_password = [*systems.redis(url), "CONFIG", "SET", "requirepass", PASSWORD]
            subprocess.run(set_password, check=True, capture_output=True)
        if url := self.started.get("zookeeper"):
            systems.nodes(re.search(r":(\d+)/", url)[1], needs)
        for name, statements in systems.TABLES.items():
            if name in needs and "mysql" in self.started:
                self.stores("sql", "mysql", f"USE {self.database}; {statements}")

    def sql(self, text, work):
        """Executes statements: in the declared database, else in a file, whose tables to read are the reader's."""
        if "postgres" in self.started:
            command = ["psql", "-q", "-v", "ON_ERROR_STOP=1", self.database]
            done = subprocess.run(command, input=text, capture_output=True, text=True, env=self.environment)
            if done.returncode:
                raise Wrong(done.stderr)
            return
        if "mysql" in self.started:
            values = text.replace("?", "'1'")
            return self.stores("sql", "mysql", f"USE {self.database}; {values}") and None
        with sqlite3.connect(work / "page.db") as database:
            statement = ""
            for line in text.splitlines(keepends=True):
                statement += line
                if sqlite3.complete_statement(statement):
                    execute(database, statement)
                    statement = ""
            execute(database, statement)

    def stop(self):
        if self.started:
            self.stores("stop")


def execute(database, statement):
    try:
        database.execute(statement)
    except sqlite3.Error as error:
        missing = re.match(r"no such table: (\w+)", str(error))
        if not missing or not statement.lstrip().startswith(("SELECT", "--")):
            raise Wrong(f"{statement}{error}") from None
        database.execute(f"CREATE TABLE {missing[1]} (id bigint)")
        execute(database, statement)


def make_certificate(names, folder):
    """A certificate of these names, its key and its CA in a folder of the system."""
    alternative = "subjectAltName=" + ",".join(f"DNS:{name}" for name in names)
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=vesta"]
    signed = ["-addext", alternative, "-addext", "basicConstraints=CA:FALSE", "-CA", "ca.pem", "-CAkey", "ca.key"]
    for command in (
        ["openssl", "req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem"],
        ["openssl", "req", "-x509", *key, *signed, "-keyout", "key.pem", "-out", "cert.pem"],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise Wrong(f"{' '.join(command)}: {done.stderr}")


def forward(port, to):
    """Connections to this port of every address go to the other one."""
    listener = socket.create_server(("", port), reuse_port=False)

    def pipe(one, other):
        with one, other:
            while True:
                ready, _, _ = select.select([one, other], [], [])
                for it in ready:
                    data = it.recv(65536)
                    if not data:
                        return
                    (other if it is one else one).sendall(data)

    def accept():
        while True:
            one, _ = listener.accept()
            threading.Thread(target=pipe, args=(one, socket.create_connection(("127.0.0.1", to))), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
