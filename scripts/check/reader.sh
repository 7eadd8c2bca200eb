#!/usr/bin/env bash
# Reads each page of the book and each README as its reader does: types every command in order, in a fresh home on a
# machine without a server, and compares the output with the one that is shown. Its IDs and settings are those of the
# program (scripts/check/reader).
#
#   scripts/check/reader.sh [PAGE…]           default: all of them. Example: README.md docs/use/rest.md
#
# The programs are those in target/debug, which `cargo build --workspace --all-features` puts there.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
environment=$(scripts/lib/venv.sh scripts/check/reader)
# Pages are read without a network: packages that they install are fetched before.
export READER_CACHE=$target/reader-cache
if command -v npm >/dev/null && [ ! -d "$READER_CACHE/npm" ]; then
  npm install --silent --no-audit --no-fund --cache "$READER_CACHE/npm" --prefix "$READER_CACHE/node" \
    @grpc/grpc-js @grpc/proto-loader >&2
fi
exec "$environment/bin/python" scripts/check/reader --programs "${READER_PROGRAMS:-$target/debug}" \
  --grpcurl "$environment/bin/python $PWD/scripts/check/reader/grpcurl.py" "$@"
