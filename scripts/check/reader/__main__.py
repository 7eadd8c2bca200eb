"""Reads pages as their readers do, each with a fresh home on a machine without a server: in network, process and mount
namespaces of its own, so that the addresses and ports are those that it shows and nothing outlives it. Run by
scripts/check/reader.sh.

  console   a line "$ COMMAND", then its output. A line "…" stands for any lines; IDs made now differ
  sh        commands; a comment behind one is its output, and what follows a comma there is a word about it
  toml      a settings file: it starts the program that the page names, as "`vesta serve`"
  sql       statements: for PostgreSQL if the page declares it, else for SQLite
  java, python, go, js
            a program. One that names two servers runs again with the first one stopped
  xml       elements that close
  rust      compiled by the tests of a crate, which include the page

A server runs until another one needs its port, or the page ends. "You need: …" declares services that the reader of
the page already has: PostgreSQL, MySQL, Redis, ZooKeeper, etcd, at the addresses that the page names.
`<!-- not run: REASON -->` leaves the next block out. Everywhere, IDs are compared with what stands beside them,
and names of settings with those that exist."""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import faults
import page
import static
from hands import PLAYED, Hands
from page import Wrong

ROOT = Path(__file__).resolve().parents[3]
PATTERNS = ("*.md", "docs/**/*.md", "clients/**/README.md", "vesta-*/README.md", "deploy/*.md", "ops/*.md")
TRYCMD = ("docs/use/cli.md",)  # its commands are run by the tests of vesta-cli
NAMES = "127.0.0.1 localhost pool1 pool2 db olddb cache zk zk1 zk2 zk3 db.south.example\n10.0.0.7 vesta.internal\n"
ADDRESSES = ("10.0.0.1", "10.0.0.2", "10.0.0.7", "10.0.0.8")


def machine():
    """The addresses of the pages, all on the loopback device of this namespace, and folders of the system."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for address in ADDRESSES:
        subprocess.run(["ip", "address", "add", f"{address}/32", "dev", "lo"], check=True)
    # Homes are on a disk: a container would lose its own, and programs refuse that.
    subprocess.run(["mount", "--bind", tempfile.gettempdir(), tempfile.gettempdir()], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", "/mnt"], check=True)
    for folder, old in ("/etc", "/mnt/etc"), ("/var/lib", "/mnt/lib"):
        # As it is, but its folder `vesta` is empty and to write to.
        os.mkdir(old)
        subprocess.run(["mount", "--rbind", folder, old], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)
        for name in set(os.listdir(old)) - {"vesta", "hosts"}:
            os.symlink(f"{old}/{name}", f"{folder}/{name}")
        os.mkdir(f"{folder}/vesta")
    Path("/etc/hosts").write_text(NAMES)


def is_followed(name, read):
    """Whether it has blocks to follow that no other page or test has: a translation has those of its original."""
    if name.startswith(("docs/zh-CN/", *TRYCMD)):
        return False
    return any(block.language in PLAYED or block.is_typed_as_text for block in read.blocks)


def inside(name, options):
    """Follows a page, in namespaces of its own."""
    machine()
    try:
        if name == "planted":
            return print(faults.planted(options.programs))
        hands = Hands(options.programs, {"grpcurl": f'#!/bin/sh\nexec {options.grpcurl} "$@"\n'}, options.stores)
        hands.place = f"../vesta/{Path(name).parent}"
        left_out = list(hands.read(page.read((ROOT / name).read_text("utf-8"))))
        print(f"{name}: {hands.typed} commands, {hands.compared} outputs compared")
        for reason in left_out:
            print(f"  not run, {reason}")
    except Wrong as wrong:
        sys.exit(f"{name}: {wrong}")


def alone(name, arguments):
    """Reads a page: its text here, what is to do in namespaces of its own."""
    start = time.monotonic()
    text = "" if name == "planted" else (ROOT / name).read_text("utf-8")
    wrong = [*static.faults(name, text)]
    try:
        followed = name == "planted" or is_followed(name, page.read(text))
    except Wrong as hidden:
        wrong.append(str(hidden))
    if wrong:
        return f"{name}: " + "\n".join(wrong) + "\n", True
    if not followed:
        return "", False
    as_root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", *as_root, "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
    done = subprocess.run(
        [*command, sys.executable, str(Path(__file__).parent), "--inside", name, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    return done.stdout.replace("\n", f", {time.monotonic() - start:.0f} s\n", 1), done.returncode != 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True, help="folder with vesta and stores")
    parser.add_argument("--grpcurl", required=True, help="command that stands in for grpcurl")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("pages", nargs="*")
    options = parser.parse_args()
    options.stores = f"{options.programs}/stores"
    os.environ["PATH"] = f"{options.programs}:{os.environ['PATH']}"
    if options.inside:
        return inside(options.pages[0], options)
    names = [str(path.relative_to(ROOT)) for pattern in PATTERNS for path in sorted(ROOT.glob(pattern))]
    arguments = ["--programs", options.programs, "--grpcurl", options.grpcurl]
    names = options.pages or ["planted", *names]
    start, wrong = time.monotonic(), 0
    with ThreadPoolExecutor(2) as two:
        for output, is_wrong in two.map(lambda name: alone(name, arguments), names):
            print(output, end="", flush=True)
            wrong += is_wrong
    print(f"{len(names)} pages in {time.monotonic() - start:.0f} s, {wrong} of them wrong")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
