#!/usr/bin/env bash
# A program outside of the workspace that has Vesta as its one dependency: IDs through its tables and JSON, and the
# examples of docs/EMBED.md. PostgreSQL and MySQL are tested where VESTA_TEST_POSTGRES and VESTA_TEST_MYSQL
# name throw-away servers, JavaScript where there is node.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
cd scripts/outside
exec cargo test --features store --target-dir "$target/outside" "$@"
