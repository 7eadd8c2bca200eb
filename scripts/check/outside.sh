#!/usr/bin/env bash
# A program outside the workspace that has Vesta as its one dependency: IDs through its tables and JSON, and the
# examples of docs/use/embed.md. PostgreSQL and MySQL are tested if VESTA_TEST_POSTGRES and VESTA_TEST_MYSQL name
# throw-away servers, JavaScript if node is present.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
cd scripts/check/outside
exec cargo test --features store --target-dir "$target/outside" "$@"
