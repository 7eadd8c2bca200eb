"""Checks the files of deploy/ and the settings files of the documents against the schemas of their kinds, and against
the program that they start.

    check.py VESTA PROMTOOL COMPOSE_SCHEMA
"""

import copy
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from pathlib import Path

import jsonschema
import yaml

VESTA, PROMTOOL, SCHEMA = sys.argv[1:]
K8S, COMPOSE = "deploy/k8s", "deploy/compose/compose.yaml"
faults = []


def version():
    with open("Cargo.toml", encoding="utf-8") as file:
        return next(line.split('"')[1] for line in file if line.startswith("version = "))


def rendered(way):
    done = subprocess.run(["kubectl", "kustomize", f"{K8S}/{way}"], check=True, capture_output=True, text=True)
    return list(yaml.safe_load_all(done.stdout))


def is_valid(documents):
    """Checks strictly by the schemas of Kubernetes: an unknown field is a fault."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump_all(documents, file)
        file.flush()
        program = os.path.join(os.path.dirname(sys.executable), "kubernetes-validate")
        done = subprocess.run([program, "--strict", "--quiet", file.name], capture_output=True, text=True)
        return done.returncode == 0, done.stdout + done.stderr


def settings(environment, command):
    """The program's verdict on variables: an error, or the names that it does not know."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {"PATH": os.environ["PATH"], "HOME": folder, **environment}
        done = subprocess.run([VESTA, *command, "--print-config"], env=environment, capture_output=True, text=True)
        if done.returncode:
            return done.stderr
        read = set(done.stdout.split())
        unknown = [name for name in environment if name.startswith("VESTA_") and name not in read]
        return f"not read: {unknown}" if unknown else None


def pods(documents):
    return [it["spec"]["template"]["spec"] for it in documents if it["kind"] in ("StatefulSet", "Deployment")]


def environment_of(documents, container):
    config = next(it for it in documents if it["kind"] == "ConfigMap")
    given = {it["name"]: it.get("value", "mysql://vesta:x@mysql/vesta") for it in container["env"]}
    return {**config["data"], **given}


def hardened(pod):
    security = pod["securityContext"]
    yield security["runAsNonRoot"] and security["runAsUser"] == 65532, "another user"
    yield security["seccompProfile"]["type"] == "RuntimeDefault", "no seccomp profile"
    yield pod["automountServiceAccountToken"] is False, "a token of the cluster"
    for container in pod["containers"]:
        security = container["securityContext"]
        yield security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"], "a root that is written"
        yield security["capabilities"]["drop"] == ["ALL"], "capabilities"
        ports = {it["name"]: it["containerPort"] for it in container["ports"]}
        yield container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "admin"}, "the liveness probe"
        yield container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "admin"}, "the readiness probe"
        yield container["image"] == f"vesta:{version()}", f"image {container['image']}"
        yield ports == {"http": 8088, "grpc": 50051, "admin": 8089}, f"ports {ports}"


def check_kubernetes():
    for way in ["statefulset", "deployment"]:
        documents = rendered(way)
        valid, said = is_valid(documents)
        if not valid:
            faults.append(f"{way}: {said}")
        for pod in pods(documents):
            faults.extend(f"{way}: {what}" for fine, what in hardened(pod) if not fine)
            for container in pod["containers"]:
                given = environment_of(documents, container)
                if said := settings(given, container["args"]):
                    faults.append(f"{way}: {said}")
                # The checks notice planted faults.
                assert settings({**given, "VESTA_LISTN": "0.0.0.0:1"}, container["args"])
                assert settings({**given, "VESTA_HTTP_LISTEN": "everywhere"}, container["args"])
        planted = copy.deepcopy(documents)
        pods(planted)[0]["containers"][0]["readinesProbe"] = {}
        assert not is_valid(planted)[0]
    monitor, = rendered("monitoring")
    ports = {port["name"] for it in rendered("statefulset") if it["kind"] == "Service" for port in it["spec"]["ports"]}
    if {it["port"] for it in monitor["spec"]["endpoints"]} - ports:
        faults.append("monitoring: a port that no service has")


def check_compose():
    with open(COMPOSE, encoding="utf-8") as file:
        compose = yaml.safe_load(file)
    with open(SCHEMA, encoding="utf-8") as file:
        schema = json.load(file)
    plain = {key: value for key, value in compose.items() if not key.startswith("x-")}
    try:
        jsonschema.validate(plain, schema)
    except jsonschema.ValidationError as error:
        faults.append(f"compose.yaml: {error.message}")
    planted = copy.deepcopy(plain)
    planted["services"]["vesta-1"]["healthchek"] = {}
    try:
        jsonschema.validate(planted, schema)
    except jsonschema.ValidationError:
        pass
    else:
        raise AssertionError("the schema sees nothing")
    for name, service in compose["services"].items():
        if any(not port.startswith("127.0.0.1:") for port in service.get("ports", [])):
            faults.append(f"{name}: a port beyond loopback")
        for volume in service.get("volumes", []):
            source = os.path.join("deploy/compose", volume.split(":")[0])
            if volume.startswith(".") and not os.path.isfile(source):
                faults.append(f"{name}: there is no {source}")
        if name.startswith("vesta-"):
            store = service["environment"]["VESTA_MACHINE_STORE"].replace("${DATABASE_PASSWORD:?see .env.example}", "x")
            given = {**service["environment"], "VESTA_MACHINE_STORE": store}
            if said := settings(given, service["command"]):
                faults.append(f"{name}: {said}")
            if service["image"] != f"vesta:{version()}":
                faults.append(f"{name}: image {service['image']}")


def check_prometheus():
    with tempfile.TemporaryDirectory() as folder:
        for name in ["deploy/compose/prometheus.yml", "ops/vesta-alerts.yml"]:
            with open(name, encoding="utf-8") as file, open(f"{folder}/{os.path.basename(name)}", "w") as to:
                to.write(file.read())
        done = subprocess.run([PROMTOOL, "check", "config", f"{folder}/prometheus.yml"], capture_output=True, text=True)
        if done.returncode:
            faults.append(done.stdout + done.stderr)


def settings_files():
    """Each settings file that a reader sees: the example with every line active, and the blocks of the documents."""
    example = Path("docs/vesta.example.toml").read_text()
    active = "".join(f"{line[1:]}\n" for line in example.splitlines() if re.match(r"#[\[a-z]", line))
    named, _, custom = active.partition("[layout.custom]")  # which exclude each other
    yield from {"the example": named, "the custom layout": f"[layout.custom]{custom}"}.items()
    for path in sorted(Path("docs").rglob("*.md")):
        for indent, block in re.findall(r"^( *)```toml\n(.*?)^\1```", path.read_text(), re.M | re.S):
            if "[dependencies]" not in block:
                yield str(path), textwrap.dedent(block).replace('"…"', '"' + "0" * 64 + '"')


def check_schema():
    """The schema that editors read takes what the program takes; what it refuses, the program refuses."""
    schema = json.loads(Path("docs/vesta.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    if not Path("docs/vesta.example.toml").read_text().startswith(f"#:schema {schema['$id']}\n"):
        faults.append("vesta.example.toml does not name its schema")
    editor = jsonschema.Draft7Validator(schema)

    def taken(text):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(text)
            file.flush()
            return not settings({}, ["serve", "--config", file.name])

    seen = list(settings_files())
    for path in sorted(Path("vesta-boot/fuzz/config").glob("*.toml")):
        if taken(text := path.read_text()):
            seen.append((str(path), text))
    for name, text in seen:
        faults.extend(f"{name}: {error.json_path}: {error.message}" for error in editor.iter_errors(tomllib.loads(text)))
    assert len(seen) >= 15, f"{len(seen)} settings files"
    for wrong in [
        'layuot = "max-peak"', "[machine]\nids = 7", 'pacing = "true"', 'max_wait_ms = "5"', "max_wait_ms = 600001",
        'populator = "fast"', "hosts = [1]", "layout = 5", '[layout]\nown = 1', '[[auth.tokens]]\nname = "a"', "machine = 7",
    ]:  # fmt: skip
        assert not editor.is_valid(tomllib.loads(wrong)) and not taken(wrong), wrong


check_kubernetes()
check_compose()
check_prometheus()
check_schema()
if faults:
    sys.exit("\n".join(faults))
print("deploy/: the manifests, compose.yaml and prometheus.yml are valid, and the program knows their settings")
print("docs/vesta.schema.json: takes the settings files that the program takes")
