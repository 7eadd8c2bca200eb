#!/usr/bin/env bash
# A program outside of the workspace that has Vesta as its one dependency: IDs through its tables and JSON, and the
# examples of docs/EMBED.md. PostgreSQL is tested where VESTA_TEST_POSTGRES names a throw-away server, JavaScript
# where there is node.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
cd scripts/outside
exec cargo test --features store --target-dir "$target/outside" "$@"
