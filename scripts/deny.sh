#!/usr/bin/env bash
# What may be linked into Vesta: bans, licences, sources and known advisories, by deny.toml. If cargo-deny is missing, it is
# built and installed where cargo installs programs: once, which takes some minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.20.2
export PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
if ! command -v cargo-deny >/dev/null; then
  echo "installing cargo-deny $version"
  cargo install --quiet --locked "cargo-deny@$version"
fi
# The graph has all platforms' crates; a build fetches only those of its own.
cargo fetch --locked --quiet
cargo deny --offline --log-level error check bans licenses sources
# Advisories need a database that is fetched from elsewhere.
if compgen -G "${CARGO_HOME:-$HOME/.cargo}/advisory-dbs/*/" >/dev/null; then
  cargo deny --offline --log-level error check advisories
else
  echo "advisories: skipped, there is no database; \`cargo deny fetch db\` brings it"
fi
