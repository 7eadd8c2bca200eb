"""Pages that are wrong must be found, and the same pages without the fault must not."""

from hands import Hands
from page import Wrong, read
from static import faults

SERVE = """```console
$ cargo run -- serve
…
  machine ID  470 (pool 0 to 1023 of SQLite /home/ann/.local/state/vesta/vesta.db)
…
  first ID    2708793606814040534
…
$ curl 127.0.0.1:8088/genid
2708793608961524182
$ curl 127.0.0.1:8089/readyz
ready
```
"""
CONSOLE = "```console\n$ printf 'a\\nb\\n'\na\nb\n\n$ echo 2407837855670862845\n2407837855670862845\n```\n"
SH = "```sh\necho 2   # 2, a word\necho 3\n# 3\ntrue\n```\n"
TOML = """One `vesta serve` with its file:

```toml
pool_server.namespaces = ["orders"]
http.listen = "127.0.0.1:8188"
```
"""
SQL = "```sql\nCREATE TABLE shop (id bigint);\nINSERT INTO shop VALUES (1);\nSELECT id FROM orders;\n```\n"
TWO = """```sh
vesta serve rest
vesta serve rest --http-listen 127.0.0.1:8188 --admin-listen off
```

```python
from urllib.request import urlopen

for server in "http://127.0.0.1:8088", "http://127.0.0.1:8188":
    try:
        print(urlopen(server + "/genid").read().decode())
        break
    except OSError:
        pass
```
"""
JAVA = "```java\nlong id(VestaClient ids) {\n    return ids.genId();\n}\n```\n"
XML = '```xml\n<bean id="ids"/>\n```\n'
TABLE = "| machine | ID |\n|---|---|\n| 7 | 1285482222412933127 |\n"
TOLD = """An ID: 2407837855670862845 is of machine 1021 with genMethod 2, made 2018-01-04T02:08:23Z.

`--machine-id 7`, `VESTA_MACHINE_ID=7` and `machine.id = 7` are the same.
"""
FAULTS = {
    "another line": (CONSOLE, "b\n\n", "c\n\n"),
    "another old ID": (CONSOLE, "845\n```", "846\n```"),
    "a line too few": (CONSOLE, "a\nb\n\n", "a\n\n"),
    "another output": (SH, "# 3", "# 4"),
    "a command that fails": (SH, "true", "false"),
    "an unknown program": (SH, "true", "vesta-nothing"),
    "a first command that needs another one": (SH, "true", "vesta store show"),
    "a command that its reader does not see": (SH, "```sh", "<!-- run: vesta store init -->\n```sh"),
    "a command that nothing types": (SH, "```sh\necho 2 ", "```text\n$ echo 2 "),
    "a database that nobody declared": (SH, "true", "psql -c 'SELECT 1'"),
    "a service that nobody knows": (SH, "```sh", "You need: a good mood.\n\n```sh"),
    "nothing to leave out": (SH, SH, "<!-- not run: it takes an hour -->\n"),
    "no reason to leave a block out": (SH, "```sh", "<!-- not run: because -->\n```sh"),
    "a server that does not start": (SERVE, "-- serve", "-- serve --machine-id 1024"),
    "another answer": (SERVE, "\nready", "\nnot ready"),
    "an answer that is an error": (SERVE, "\n```\n", "\n```\n```sh\ncurl 127.0.0.1:8088/v1/nothing\n```\n"),
    "an ID of another machine than the line says": (SERVE, "2708793608961524182", "2708793608961524184"),
    "a first ID of another machine": (SERVE, "2708793606814040534", "2708793606814040535"),
    "an ID of another genMethod": (SERVE, "2708793608961524182", "402950599747830230"),
    "an unknown setting": (TOML, "http.listen", "http.lisden"),
    "settings of another program than the first sentence names": (TOML, "`vesta serve`", "`vesta serve rest`"),
    "a setting that the program of the first sentence refuses": (TOML, "http.listen", "listen"),
    "a column that does not exist": (SQL, "INSERT INTO shop VALUES (1)", "INSERT INTO shop (no) VALUES (1)"),
    "a second server that is the admin listener": (TWO, 'http://127.0.0.1:8188"', 'http://127.0.0.1:8089"'),
    "a second server that nobody started": (TWO, "vesta serve rest --http", "# vesta serve rest --http"),
    "no fail-over": (TWO, "    except OSError:\n        pass\n", "    finally:\n        pass\n"),
    "a program that prints no ID": (TWO, 'read().decode()', "status"),
    "a fragment that does not compile": (JAVA, "genId", "newId"),
    "elements that do not close": (XML, "/>", ">"),
    "another machine in prose": (TOLD, "machine 1021", "machine 1022"),
    "another genMethod in prose": (TOLD, "genMethod 2", "genMethod 1"),
    "another machine in a column": (TABLE, "| 7 |", "| 8 |"),
    "another time in prose": (TOLD, "02:08:23", "10:08:23"),
    "a test's sign for any text": (TOLD, "2018-01-04", "[..]"),
    "an unknown flag": (TOLD, "--machine-id", "--machine-number"),
    "an unknown variable": (TOLD, "VESTA_MACHINE_ID", "VESTA_MACHINE_NUMBER"),
    "an unknown key": (TOLD, "machine.id", "machine.number"),
    "a key without its section": (TOLD, "`machine.id = 7`", "`window_ms`"),
    "Rust that no test compiles": (TOLD, "\n\n", "\n\n```rust\nfn main() {}\n```\n\n"),
    "a crate that is not there": (TOLD, "\n\n", '\n\n```toml\n[dependencies]\nv = { path = "../v" }\n```\n\n'),
}  # fmt: skip


def planted(programs):
    """Finds each planted fault; `Wrong` names one that is not found, or a right page that is not."""
    for text in {text: None for text, _, _ in FAULTS.values()}:
        try:
            follow(text, programs)
        except Wrong as wrong:
            raise Wrong(f"this is right:\n{text}{wrong}") from None
    follow("<!-- not run: it takes an hour -->\n```sh\nfalse\n```\n", programs)
    for fault, (text, right, wrong) in FAULTS.items():
        if right not in text:
            raise Wrong(f"nothing to replace: {fault}")
        try:
            follow(text.replace(right, wrong, 1), programs)
        except Wrong:
            continue
        raise Wrong(f"this was not found: {fault}")
    return f"{len(FAULTS)} planted faults are found"


def follow(text, programs):
    if wrong := [*faults("planted", text)]:
        raise Wrong("\n".join(wrong))
    hands = Hands(programs, {}, f"{programs}/stores")
    try:
        list(hands.read(read(text)))
    finally:
        for server, _ in hands.servers:
            server.kill()
            server.wait()
