#!/usr/bin/env bash
# Platforms that Vesta builds for besides Linux, on which it is tested: embedding and the client for Windows and
# FreeBSD, and everything that scripts/test.sh builds for macOS. The compiler checks it, including the C code; nothing
# is run. The targets come from rustup, their C compiler from scripts/lib/venv.sh.
#
#   scripts/check/platforms.sh               the other systems
#   scripts/check/platforms.sh --link        also links the programs for macOS, with every store
#   scripts/check/platforms.sh --toolchains  every crate with the oldest Rust that its rust-version names
set -euo pipefail
cd "$(dirname "$0")/../.."

command -v rustup >/dev/null || {
  echo "rustup is missing; it provides other targets and toolchains: https://rustup.rs" >&2
  exit 1
}

if [ "${1:-}" = --toolchains ]; then
  cargo metadata --no-deps --format-version 1 | python3 -c '
import collections, json, sys
crates = collections.defaultdict(list)
for package in json.load(sys.stdin)["packages"]:
    if "/scripts/" not in package["manifest_path"]:
        crates[package["rust_version"]].append(package["name"])
for version, names in sorted(crates.items()):
    print(version, *names)
' | while read -r version crates; do
    rustup toolchain list | grep -q "^$version" || rustup --quiet toolchain install --profile minimal "$version"
    read -ra names <<<"-p ${crates// / -p }"
    echo "Rust $version: $crates"
    CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/rust-$version \
      cargo "+$version" check --quiet --locked "${names[@]}" </dev/null
  done
  exit 0
fi

zig=$(scripts/lib/venv.sh scripts/lib/zig)
export PATH=$zig/bin:$PATH
mac=aarch64-apple-darwin
check() {
  rustup target list --installed | grep -qx "$1" || rustup --quiet target add "$1"
  cargo-zigbuild clippy --quiet --locked --target "$@" -- -D warnings
}
for target in x86_64-pc-windows-gnu x86_64-unknown-freebsd; do
  echo "embedding and the client for $target"
  check "$target" -p vesta-intf -p vesta-explain -p vesta-service -p vesta-client --features vesta-service/async
done
echo "the programs and the tests for $mac"
check $mac --workspace --exclude vesta-load --lib --bins --examples --tests --all-features

if [ "${1:-}" = --link ]; then
  # Two frameworks of macOS know the certificates that it trusts. They may not be redistributed: the stubs in this
  # folder only name the symbols used.
  frameworks=$PWD/scripts/check/platforms
  flags=CARGO_TARGET_$(tr a-z- A-Z_ <<<$mac)_RUSTFLAGS
  env "$flags=-Clink-arg=-F$frameworks" cargo zigbuild --quiet --locked --target $mac \
    -p vesta-cli --features vesta-cli/all-stores,vesta-cli/otel
  echo "linked for $mac, except Security and CoreFoundation"
fi
