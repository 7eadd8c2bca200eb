#!/usr/bin/env bash
# Checks what may be linked into Vesta: bans, licences, sources and known advisories, by deny.toml. If cargo-deny is
# missing, it is built and installed by cargo install: once, which takes some minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."

version=0.20.2
export PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
if ! command -v cargo-deny >/dev/null; then
  echo "installing cargo-deny $version"
  cargo install --quiet --locked "cargo-deny@$version"
fi
# The graph has the crates of all platforms; a build fetches only those of its own platform.
cargo fetch --locked --quiet
cargo deny --offline --log-level error check bans licenses sources
# Advisories need a database, which must be fetched separately.
if compgen -G "${CARGO_HOME:-$HOME/.cargo}/advisory-dbs/*/" >/dev/null; then
  cargo deny --offline --log-level error check advisories
else
  echo "advisories: skipped, no database; run \`cargo deny fetch db\`"
fi
