#!/usr/bin/env python3
"""Packages the crates as for a registry and looks into each package: what it contains, what it says about itself, and
what it depends on.

published.py            the packages
published.py --build    builds each package, too, from what it contains"""

import copy
import json
import pathlib
import re
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).parents[2]
# Beside src/ and what Cargo adds.
BELONGS = re.compile(r"(src|proto|page)/.+|README\.md|LICENSE|CHANGELOG\.md|Cargo\.(toml|toml\.orig|lock)|\.cargo_vcs_info\.json")
LARGEST, LARGEST_FILE = 10 << 20, 1 << 20  # bytes; a registry takes at most 10 MiB
LINK = re.compile(r"\]\(([^)]*)\)|^\[[^\]]+\]: *(\S+)|(?:src|href)=\"([^\"]*)\"", re.M)


def cargo(*arguments):
    return subprocess.run(["cargo", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout


def is_published(about):
    return about["publish"] != []


def of_metadata(about, names):
    """Faults of what Cargo.toml says."""
    for key in ("description", "license", "repository", "homepage", "rust_version", "readme", "categories"):
        if not about[key]:
            yield f"has no {key}"
    if not 1 <= len(about["keywords"]) <= 5:
        yield f"has {len(about['keywords'])} keywords, expected 1 to 5"
    # Of a library, the registry links the API documentation unless there is another.
    is_library = any("lib" in target["kind"] for target in about["targets"])
    if is_library == bool(about["documentation"]):
        yield "names documentation beside its API" if is_library else "has no documentation"
    shown = (about["metadata"] or {}).get("docs", {}).get("rs", {})
    if about["features"] and is_library and not (shown.get("all-features") or shown.get("features")):
        yield "shows no features in its API documentation"
    for on in about["dependencies"]:
        if "path" in on and on["req"] != "*" and on["name"] not in names:
            yield f"depends on {on['name']}, which is not published"


def hidden(name, text):
    """Rust blocks, which the documentation compiles, show each of their lines."""
    for line in re.findall(r"^# .*|^#$", "".join(re.findall(r"```rust.*?\n(.*?)```", text, re.S)), re.M):
        yield f"{name} has a line that documentation hides: {line}"


def of_files(files, whole):
    """Faults of what a package contains: name and content of each file."""
    for name in ("LICENSE", "CHANGELOG.md"):
        if files.get(name) != (ROOT / name).read_bytes():
            yield f"has no {name}, or another one than the repository"
    readme = files.get("README.md", b"").decode()
    for link in (next(filter(None, found), "") for found in LINK.findall(readme)):
        if not link.startswith("https://"):
            yield f"README.md has the relative link {link}"
    yield from hidden("README.md", readme)
    for name, content in files.items():
        if not BELONGS.fullmatch(name):
            yield f"contains {name}"
        if len(content) > LARGEST_FILE:
            yield f"{name} has {len(content)} bytes"
    if whole > LARGEST:
        yield f"has {whole} bytes"


def of_tools(manifests):
    """Faults of the other crates of the repository: path and text of their manifests."""
    for path, text in manifests.items():
        if "[package]" in text and not re.fullmatch(r"vesta-\w+/Cargo.toml", path) and "\npublish = false\n" not in text:
            yield f"{path} would be published"


def opened(path):
    with tarfile.open(path) as packed:
        files = {it.name.split("/", 1)[1]: packed.extractfile(it).read() for it in packed if it.isfile()}
    return files, path.stat().st_size


def check_the_checks(about, files, names, manifests):
    """Plants each fault into a package that has none."""
    plants = {
        "has no description": lambda it: it.update(description=None),
        "has no homepage": lambda it: it.update(homepage=None),
        "has 6 keywords": lambda it: it.update(keywords=list("abcdef")),
        "names documentation": lambda it: it.update(documentation="https://example.com"),
        "shows no features": lambda it: it.update(metadata=None),
        "which is not published": lambda it: it["dependencies"].append({"name": "vesta-testkit", "path": "/", "req": "^1"}),
    }
    for fault, plant in plants.items():
        planted = copy.deepcopy(about)
        plant(planted)
        assert any(fault in found for found in of_metadata(planted, names)), fault
    readme = files["README.md"]
    for fault, planted in {
        "has no LICENSE": {"LICENSE": b"../LICENSE"},
        "has no CHANGELOG.md": {"CHANGELOG.md": b""},
        "relative link docs/a.md": {"README.md": readme + b"[a](docs/a.md)"},
        "relative link ../b.md": {"README.md": readme + b"\n[b]: ../b.md\n"},
        "relative link c.svg": {"README.md": readme + b'<img src="c.svg">'},
        "documentation hides: # let": {"README.md": b"```rust,no_run\n# let a = 1;\n```"},
        "contains tests/a.rs": {"tests/a.rs": b""},
        "src/table.bin has": {"src/table.bin": bytes(LARGEST_FILE + 1)},
    }.items():
        assert any(fault in found for found in of_files(files | planted, 0)), fault
    assert any("bytes" in found for found in of_files(files, LARGEST + 1))
    assert list(of_tools(manifests | {"scripts/new/Cargo.toml": '[package]\nname = "new"\n'}))


def main():
    target = json.loads(cargo("metadata", "--no-deps", "--format-version", "1", "--locked"))
    crates = [it for it in target["packages"] if is_published(it)]
    names = {it["name"] for it in crates}
    others = [word for it in target["packages"] if not is_published(it) for word in ("--exclude", it["name"])]
    # Without the network: the crates of other owners are those that the checks before have built.
    how = ["--quiet"] if "--build" in sys.argv else ["--quiet", "--no-verify"]
    cargo("package", "--workspace", *others, "--locked", "--offline", "--allow-dirty", *how)
    listed = subprocess.run(["git", "ls-files", "-z", "*Cargo.toml"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    manifests = {path: (ROOT / path).read_text() for path in listed.stdout.rstrip("\0").split("\0")}
    faults, whole = list(of_tools(manifests)), 0
    for path in [*ROOT.glob("README*.md"), *ROOT.glob("clients/*/README.md")]:
        faults += hidden(path.relative_to(ROOT), path.read_text("utf-8"))
    for about in crates:
        files, size = opened(pathlib.Path(target["target_directory"], "package", f"{about['name']}-{about['version']}.crate"))
        found = [*of_metadata(about, names), *of_files(files, size)]
        faults += [f"{about['name']} {fault}" for fault in found]
        whole += size
        if about["name"] == "vesta-service" and not found:
            check_the_checks(about, files, names, manifests)
    if faults:
        sys.exit("\n".join(faults))
    print(f"{len(crates)} packages, {whole >> 10} KiB: licence, changes, absolute links, nothing that does not belong")


main()
