#!/usr/bin/env bash
# What may be linked into Vesta: bans, licences and sources, by deny.toml. If nobody has cargo-deny, it is
# built into the target folder, once: that takes some minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.20.2
tools=$(mkdir -p "${CARGO_TARGET_DIR:-target}/tools" && cd "${CARGO_TARGET_DIR:-target}/tools" && pwd)
export PATH=$PATH:$tools/bin
if ! command -v cargo-deny >/dev/null; then
  echo "building cargo-deny $version into $tools"
  CARGO_TARGET_DIR=$tools/build cargo install --quiet --locked --root "$tools" "cargo-deny@$version"
  rm -rf "$tools/build"
fi
# The graph has all platforms' crates; a build fetches only those of its own.
cargo fetch --locked --quiet
# Advisories need a database that is fetched from elsewhere: `cargo deny check advisories`.
cargo deny --offline --log-level error check bans licenses sources
