#!/usr/bin/env bash
# Where Vesta builds. Embedding and the client: Linux, macOS, Windows, FreeBSD. Checked for each, without a
# linker: the targets come by rustup. Only Linux is also run.
#
#   scripts/platforms.sh              the other systems
#   scripts/platforms.sh --toolchains  every crate with the oldest Rust that its rust-version names
set -euo pipefail
cd "$(dirname "$0")/.."

command -v rustup >/dev/null || {
  echo "rustup is missing: it brings other targets and toolchains, https://rustup.rs" >&2
  exit 1
}

if [ "${1:-}" = --toolchains ]; then
  cargo metadata --no-deps --format-version 1 | python3 -c '
import json, sys
for package in json.load(sys.stdin)["packages"]:
    if "/scripts/" not in package["manifest_path"]:
        print(package["rust_version"], package["name"])
' | sort | while read -r version crate; do
    rustup toolchain list | grep -q "^$version" || rustup --quiet toolchain install --profile minimal "$version"
    echo "$crate with Rust $version"
    CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/rust-$version cargo "+$version" check --quiet --locked -p "$crate"
  done
  exit 0
fi

for target in aarch64-apple-darwin x86_64-pc-windows-gnu x86_64-unknown-freebsd; do
  rustup target list --installed | grep -qx "$target" || rustup --quiet target add "$target"
  echo "embedding and the client for $target"
  # TLS of the client is ring, which needs a C compiler for the target; it is left out here.
  cargo clippy --quiet --locked --target "$target" -p vesta-intf -p vesta-service -p vesta-client \
    --no-default-features --features vesta-service/async -- -D warnings
done
