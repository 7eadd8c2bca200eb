"""The SBOM of the program as CycloneDX JSON: every linked crate with version, licence and checksum.

    cargo metadata --format-version 1 --filter-platform TARGET … | sbom.py Cargo.lock VERSION
"""

import json
import sys
import tomllib

lock, version = sys.argv[1:]
metadata = json.load(sys.stdin)
with open(lock, "rb") as file:
    locked = {(it["name"], it["version"]): it.get("checksum") for it in tomllib.load(file)["package"]}

packages = {package["id"]: package for package in metadata["packages"]}
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}

# Crates that only builds run or tests need are not in the program.
linked, wanted = set(), [it["id"] for it in metadata["packages"] if it["name"] == "vesta-cli"]
while wanted:
    package = wanted.pop()
    if package in linked:
        continue
    linked.add(package)
    for dependency in nodes[package]["deps"]:
        if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
            wanted.append(dependency["pkg"])


def component(package):
    name, version = package["name"], package["version"]
    found = {
        "type": "library",
        "bom-ref": f"pkg:cargo/{name}@{version}",
        "name": name,
        "version": version,
        "purl": f"pkg:cargo/{name}@{version}",
    }
    if package["license"]:
        found["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if checksum := locked.get((name, version)):
        found["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return found


components = sorted((component(packages[it]) for it in linked), key=lambda it: it["bom-ref"])
without = [it["name"] for it in components if "licenses" not in it]
if without:
    sys.exit(f"no licence stated by: {', '.join(without)}")
bom = {
    "bomFormat": "CycloneDX",
    "specVersion": "1.5",
    "version": 1,
    "metadata": {"component": {"type": "application", "name": "vesta", "version": version}},
    "components": components,
}
json.dump(bom, sys.stdout, indent=1)
print()
