"""Checks the alerts of ops/ against their tests, the metrics of a program, and the table in docs/operate/operations.md.

    check.py VESTA [--write]        VESTA: the program; --write rewrites the table
    check.py --rules                prints the expressions of the dashboard as a rule file
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from contextlib import contextmanager

RULES, TESTS, DOCUMENT = "ops/vesta-alerts.yml", "ops/vesta-alerts.test.yml", "docs/operate/operations.md"
BEGIN, END = "<!-- alerts: written by scripts/check/ops.sh --write -->\n", "<!-- /alerts -->\n"
FUNCTIONS = {"abs", "and", "by", "count", "increase", "max", "min", "on", "rate", "sum", "time", "unless"}
# Metrics that this program shows only with TLS, or with a store that has a clock.
ELSEWHERE = {"vesta_tls_certificate_expires": {"listener"}, "vesta_clock_offset_seconds": set()}


def rules(text):
    """Each alert as a dictionary; the file has one key per line."""
    found = []
    for line in text.splitlines():
        if match := re.match(r"\s*-? ?(alert|expr|for|labels|summary|runbook): (.*)", line):
            key, value = match.groups()
            value = value[1:-1].replace("''", "'") if value.startswith("'") else value
            if key == "alert":
                found.append({})
            found[-1][key] = value
    return found


def table(alerts):
    yield "| alert | expression | urgency | do |"
    yield "|---|---|---|---|"
    for alert in alerts:
        expression = alert["expr"].replace("|", "\\|")
        after = f" for {alert['for'][:-1]} min" if "for" in alert else ""
        severity = re.search(r"severity: (\w+)", alert["labels"])[1]
        yield f"| `{alert['alert']}` | `{expression}`{after} | {severity} | {alert['runbook']} |"


def untested(alerts, tests):
    """Alerts without a history in which they fire, or without one in which they are silent."""
    cases = re.findall(r"alertname: (\w+),?\s+exp_alerts: (\[\]|\[\{)", tests)
    return [
        f"{alert['alert']}: no history in which it {what}"
        for alert in alerts
        for seen, what in [("[{", "fires"), ("[]", "is silent")]
        if (alert["alert"], seen) not in cases
    ]


def used(expression):
    """The metrics of an expression, each with the labels that it requires."""
    plain = re.sub(r'"[^"]*"', "", expression)
    for name in re.findall(r"\bvesta_\w+", plain):
        asked = re.search(rf"\b{name}\{{([^}}]*)\}}", plain)
        yield name, set(re.findall(r"(\w+)\s*[=!]", asked[1])) if asked else set()


def unknown(expressions, shown):
    return [
        f"{where}: {name}{sorted(labels - shown.get(name, set())) if name in shown else ''} is not shown by the program"
        for where, expression in expressions
        for name, labels in used(expression)
        if name not in shown or labels - shown[name] - {"job", "instance"}
    ]


@contextmanager
def program(vesta):
    """A server with a tag of each kind; yields the address of its admin listener."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {"PATH": os.environ["PATH"], "VESTA_STATE_DIR": folder}
        environment["VESTA_SEGMENT_STORE"] = environment["VESTA_SERIAL_STORE"] = f"sqlite:{folder}/tags.db"
        for tag in [["segment", "create", "orders", "--step", "1000", "--last", "9999999"], ["serial", "create", "invoices", "{n:6}"]]:
            subprocess.run([vesta, *tag], env=environment, check=True, stdout=subprocess.DEVNULL)
        free = ["--http-listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]
        server = subprocess.Popen([vesta, "serve", "rest", *free], env=environment, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            for line in server.stdout:
                if match := re.match(r"\s+(HTTP|admin)\s+(\S+)", line):
                    public = f"http://{match[2]}" if match[1] == "HTTP" else public
                    admin = match[2] if match[1] == "admin" else None
                if "/status" in line:
                    break
            for path in ["/genid", "/v1/segments/orders/next", "/v1/serials/invoices/next"]:
                urllib.request.urlopen(public + path).read()
            yield admin
        finally:
            server.terminate()
            server.wait()


def scrape(text):
    shown = {}
    for name, labels in re.findall(r"^(\w+)(?:\{(.*)\})? \S+$", text, re.M):
        shown.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return shown


def dashboards():
    for name in sorted(os.listdir("ops")):
        if name.endswith(".json"):
            with open(f"ops/{name}", encoding="utf-8") as file:
                for panel in json.load(file)["panels"]:
                    assert panel["type"] == "row" or panel["description"], panel["title"]
                    for target in panel.get("targets", []):
                        yield f"{name}: {panel['title']}", target["expr"]


def as_rules(expressions):
    print("groups: [{name: dashboard, rules: [")
    for number, (_, expression) in enumerate(expressions):
        for variable, value in [("$__rate_interval", "5m"), ("$__range", "1h")]:
            expression = expression.replace(variable, value)
        print(f"  {{record: 'dashboard:{number}', expr: '{expression}'}},")
    print("]}]")


def main():
    if sys.argv[1] == "--rules":
        return as_rules(dashboards())
    vesta, write = os.path.abspath(sys.argv[1]), "--write" in sys.argv
    with open(RULES, encoding="utf-8") as file:
        alerts = rules(file.read())
    with open(TESTS, encoding="utf-8") as file:
        tests = file.read()
    with program(vesta) as admin:
        shown = scrape(urllib.request.urlopen(admin + "metrics").read().decode()) | ELSEWHERE
    expressions = [(alert["alert"], alert["expr"]) for alert in alerts] + list(dashboards())

    # The checks notice planted faults.
    planted = [("planted", "rate(vesta_requets_total[5m])"), ("planted", 'vesta_requests_total{outcom="OK"}')]
    assert len(unknown(planted, shown)) == 2
    assert len(untested([{"alert": "Planted"}], tests)) == 2

    with open(DOCUMENT, encoding="utf-8") as file:
        document = file.read()
    before, rest = document.split(BEGIN)
    _, after = rest.split(END)
    expected = before + BEGIN + "\n".join(table(alerts)) + "\n" + END + after
    if write:
        with open(DOCUMENT, "w", encoding="utf-8") as file:
            file.write(expected)
    faults = untested(alerts, tests) + unknown(expressions, shown)
    if not write and document != expected:
        faults.append(f"{DOCUMENT}: the table of alerts is not what the rules say; scripts/check/ops.sh --write")
    if faults:
        sys.exit("\n".join(faults))
    print(f"{len(alerts)} alerts and {len(expressions)} expressions over {len(shown)} metrics")


main()
