#!/usr/bin/env bash
# Regenerates the protocol code of vesta-intf. `--check` fails if that changes anything.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo run --quiet -p vesta-codegen
if [ "${1:-}" = --check ]; then
  git diff --exit-code -- vesta-intf/src/generated || {
    echo "the generated code is not what the proto says: run scripts/codegen.sh and commit" >&2
    exit 1
  }
fi
