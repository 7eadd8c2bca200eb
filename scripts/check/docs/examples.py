"""Types the commands of the documents as a reader does and compares what is printed with what is shown.

Each document is read in network and process namespaces of its own, so that the addresses and ports are those that
it shows, and nothing outlives it. Run by scripts/check/docs.sh.

  console   a line "$ COMMAND", then its output. A line "…" stands for any lines; IDs made now differ.
  sh        commands; a comment behind one is its output, and what follows a comma there is a word about it
  toml      settings of a server: it must take them

  <!-- run: COMMAND -->       is typed without being shown; "stop" ends the servers
  <!-- not run: REASON -->    leaves the next block out"""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
HOME = "/home/ann"  # of the reader in the documents
LONGEST = 120  # seconds for one command
NAMES = "127.0.0.1 localhost\n10.0.0.7 vesta.internal\n"
# IDs and moments from then on were made when the documents were written; others are exact.
FIRST_NEW_MOMENT = "2026-11-22T01"
FIRST_NEW_TICK = 374_976_000  # of layout max-peak: 2026-11-18T16:00:00Z
TRYCMD = ("docs/use/cli.md", "docs/move/")  # run by the tests of vesta-cli

CARGO = """#!/bin/sh
# What is built already takes the place of `cargo run`.
[ "$1" = run ] || { echo "not played: cargo $*" >&2; exit 64; }
shift
if [ "$1" = -- ]; then shift; fi
exec vesta "$@"
"""


class Wrong(Exception):
    """What differs, for people."""


def blocks(text):
    """Yields line number, language and lines of each code block, and the directives as ("run" or "not run")."""
    language, start, lines = None, 0, []
    for number, line in enumerate(text.splitlines(), 1):
        directive = re.match(r"\s*<!-- (run|not run): (.*) -->$", line)
        fence = re.match(r"(\s*)```(.*)$", line)
        if language is None and directive:
            yield number, directive[1], [directive[2]]
        elif fence and language is None:
            language, start, lines, indent = fence[2], number, [], len(fence[1])
        elif fence:
            yield start, language, lines
            language = None
        elif language is not None:
            lines.append(line[indent:])


def marked(text):
    """The text with marks in place of what differs from run to run."""

    def id_made_now(match):
        number = int(match[0])
        new = number >> 63 == 0 and (number >> 30) & (1 << 30) - 1 >= FIRST_NEW_TICK
        return "#ID" if new else match[0]

    def moment_now(match):
        return "#NOW" if match[0] >= FIRST_NEW_MOMENT else match[0]

    for pattern, mark in (
        (r"\b\d{16,20}\b", id_made_now),
        (r"\bINV-\d{6}-", "INV-#DAY-"),
        (r"fingerprint [0-9a-f]{16}\b", "fingerprint #"),
        (r"\b[0-9a-f]{64}\b|(?<=vesta_)[0-9a-f]{64}\b", "#DIGEST"),
        (r"(machine ID +)\d+ \(|(machine )\d+(?=  20)", r"\1\2#"),
        (r": \S+ \(pid \d+\), ", ": HOST (pid #), "),
        (r"\b20(2[6-9]|[3-9]\d)-\d\d-\d\dT[\d:.]+Z", moment_now),
        (r'("makesIds":\w+,"machine":)\d+', r"\1#"),
        (r"\b(in )?\d+ years\b", r"\1# years"),
        (r" \(debug build: [^)]*\)", ""),
    ):
        text = re.sub(pattern, mark, text)
    return text


def pattern_of(shown):
    lines = [".*\n(?:.*\n)*?" if line.strip() in ("…", "...") else re.escape(line) + "\n" for line in shown]
    return "".join(lines)


def same(shown, printed):
    """Whether the output is the one that the document shows."""
    if shown and shown[0].startswith("HTTP/1.1"):  # of the headers those that matter are shown
        head, _, body = printed.replace("\r\n", "\n").partition("\n\n")
        end = shown.index("")
        return all(line in head.split("\n") for line in shown[:end]) and same(shown[end + 1 :], body)
    printed = marked(printed.rstrip("\n") + "\n")
    return re.fullmatch(pattern_of([marked(line).rstrip() for line in shown]), printed) is not None


class Reader:
    """Somebody in an empty folder, who starts each server in a terminal of its own."""

    def __init__(self, programs, stand_ins):
        self.folder = tempfile.TemporaryDirectory()
        base = Path(self.folder.name)
        self.home, self.work, tools = base / "home", base / "work", base / "bin"
        for folder in self.home, self.work, tools:
            folder.mkdir()
        (self.home / ".curlrc").write_text("silent\nshow-error\nfail-with-body\n")  # 4xx and 5xx fail
        for name, script in {"cargo": CARGO, **stand_ins}.items():
            (tools / name).write_text(script)
            (tools / name).chmod(0o755)
        path = f"{tools}:{programs}:{os.environ['PATH']}"
        self.environment = {"HOME": str(self.home), "PATH": path, "TZ": "UTC", "LANG": "C.UTF-8", "no_proxy": "*"}
        self.servers = []
        self.typed = self.compared = 0

    def stop(self):
        for server in self.servers:
            server.send_signal(signal.SIGTERM)
            if server.wait(LONGEST) != 0:
                raise Wrong(f"a server ended with {server.returncode}")
        self.servers = []

    def types(self, command):
        """Types one command; gives its exit code (0 of a server that is up) and what it printed."""
        self.typed += 1
        with tempfile.TemporaryFile("w+") as errors:
            child = subprocess.Popen(
                ["bash", "-c", command if re.search(r"[;&|\n]|^\w+=", command) else f"exec {command}"],
                cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=errors, text=True,
            )  # fmt: skip
            signal.signal(signal.SIGALRM, lambda *_: child.kill())
            signal.alarm(LONGEST)
            printed = ""
            for line in child.stdout:
                printed += line
                if line.endswith("/status\n"):  # the last of a server's start-up lines
                    signal.alarm(0)
                    self.servers.append(child)
                    return 0, printed.replace(str(self.home), HOME)
            code = child.wait()
            signal.alarm(0)
            errors.seek(0)
            return code, (printed or errors.read()).replace(str(self.home), HOME)

    def follow(self, command, shown):
        """Types a command and compares; without output to compare with, it must succeed."""
        if command == "stop":
            return self.stop()
        code, printed = self.types(command)
        if code != 0 and not shown:
            raise Wrong(f"{command}\nended with {code}: {printed}")
        if shown:
            self.compared += 1
            about = re.split("[,，]", shown[0])[0] if len(shown) == 1 else None
            if not same(shown, printed) and not (about and same([about], printed)):
                raise Wrong(f"{command}\n--- shown\n" + "\n".join(shown) + f"\n--- printed\n{printed}")

    def console(self, lines):
        entries = []
        for line in lines:
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

    def sh(self, lines):
        waiting = None
        for line in "\n".join(lines).replace("\\\n", "").split("\n"):
            command, _, shown = re.match(r"(.*?)(^|\s+)# (.*)$", line).groups() if "# " in line else (line, "", "")
            if waiting and shown and not command.strip():  # its output stands below it
                self.follow(waiting, [shown])
                waiting = None
                continue
            if waiting:
                self.follow(waiting, [])
            if variable := re.fullmatch(r"([A-Z]+)=(\S+)", command.strip()):
                self.environment[variable[1]] = variable[2]
                command = ""
            waiting = None if shown else command.strip()
            if shown:
                self.follow(command.strip(), [shown])
        if waiting:
            self.follow(waiting, [])

    def toml(self, lines):
        if lines[0] == "[dependencies]":
            return
        (self.work / "settings.toml").write_text("\n".join(lines).replace('"…"', '"' + "0" * 64 + '"'))
        self.follow("vesta serve --config settings.toml --print-config > settings.txt", [])

    def read(self, text):
        """Follows a document; yields what it was asked to leave out."""
        reason = None
        for number, language, lines in blocks(text):
            if language == "not run":
                reason = lines[0]
                continue
            try:
                if reason and language != "run":
                    yield f"line {number}: {reason}"
                    reason = None
                elif language == "run":
                    self.follow(lines[0], [])
                elif language in ("console", "sh", "toml"):
                    getattr(self, language)(lines)
            except Wrong as wrong:
                raise Wrong(f"line {number}: {wrong}") from None
        if reason:
            raise Wrong(f"no block follows: {reason}")
        self.stop()


def planted(programs):
    """Documents that are wrong must be found, and the same without the fault must not."""
    right = "```console\n$ printf 'a\\nb\\n'\na\nb\n\n$ echo 2407837855670862845\n2407837855670862845\n```\n"
    sh = "```sh\necho 2   # 2, a word\necho 3\n# 3\ntrue\n```\n"
    toml = '```toml\nlayout = "snowflake"\n```\n'
    new = "```console\n$ echo 2708793608961524183\n2708793608961524182\n```\n"
    served = "```console\n$ cargo run -- serve\nvesta 0.1.0\n…\n$ curl 127.0.0.1:8089/readyz\nready\n```\n"
    faults = {
        "another line": right.replace("b\n\n", "c\n\n"),
        "another old ID": right.replace("845\n```", "846\n```"),
        "a line too few": right.replace("a\nb\n\n", "a\n\n"),
        "another output": sh.replace("# 3", "# 4"),
        "a command that fails": sh.replace("true", "false"),
        "an unknown program": sh.replace("true", "vesta-nothing"),
        "an unknown setting": toml.replace("layout", "layuot"),
        "a server that does not start": served.replace("-- serve", "-- serve --machine-id 1024"),
        "another answer": served.replace("\nready", "\nnot ready"),
        "a hidden command that fails": "<!-- run: false -->\n",
        "an answer that is an error": served + "```sh\ncurl 127.0.0.1:8088/v1/nothing\n```\n",
        "nothing to leave out": "<!-- not run: because -->\n",
    }
    for text in right, sh, toml, new, served, "<!-- not run: because -->\n```sh\nfalse\n```\n":
        list(Reader(programs, {}).read(text))
    for fault, text in faults.items():
        reader = Reader(programs, {})
        try:
            list(reader.read(text))
        except Wrong:
            for server in reader.servers:
                server.kill()
                server.wait()
            continue
        raise Wrong(f"this was not found: {fault}")
    return f"{len(faults)} planted faults are found"


def loopback():
    """The addresses of the documents, all on the loopback device of this namespace."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["ip", "address", "add", "10.0.0.7/32", "dev", "lo"], check=True)
    with tempfile.NamedTemporaryFile("w", delete=False) as names:
        names.write(NAMES)
    subprocess.run(["mount", "--bind", names.name, "/etc/hosts"], check=True)


def inside(document, programs, grpcurl):
    loopback()
    stand_ins = {"grpcurl": f'#!/bin/sh\nexec {grpcurl} "$@"\n'}
    try:
        if document == "planted":
            return print(planted(programs))
        reader = Reader(programs, stand_ins)
        left_out = list(reader.read((ROOT / document).read_text("utf-8")))
        print(f"{document}: {reader.typed} commands, {reader.compared} outputs compared")
        for reason in left_out:
            print(f"  not run, {reason}")
    except Wrong as wrong:
        sys.exit(f"{document}: {wrong}")


def main(programs, grpcurl, only):
    patterns = ("*.md", "docs/**/*.md", "deploy/*.md", "ops/*.md")
    names = [str(path.relative_to(ROOT)) for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    # Translations have the blocks of their originals (translations.py); the README is abridged.
    names = [name for name in names if not name.startswith((*TRYCMD, "docs/zh-CN/"))]
    as_root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    alone = ["unshare", *as_root, "--net", "--mount", "--pid", "--fork", "--kill-child"]
    wrong = False
    for name in only or ["planted", *names]:
        wrong |= subprocess.run([*alone, sys.executable, __file__, "--inside", name, programs, grpcurl]).returncode != 0
    return wrong


if __name__ == "__main__":
    if sys.argv[1] == "--inside":
        inside(*sys.argv[2:])
    else:
        sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
