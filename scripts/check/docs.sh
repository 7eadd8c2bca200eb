#!/usr/bin/env bash
# Runs every command in the documents as a reader would, and compares its output with the output shown. Each document
# runs in its own network, with the ports that it names.
#
#   scripts/check/docs.sh [DOCUMENT…]           default: all of them. Example: README.md docs/use/rest.md
#
# The programs are those in target/debug, which `cargo build --workspace --all-features` puts there.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-$PWD/target}
[ "${target:0:1}" = / ] || target=$PWD/$target
environment=$(scripts/lib/venv.sh scripts/check/interop)
exec python3 scripts/check/docs/examples.py "$target/debug" "$environment/bin/python $PWD/scripts/check/docs/grpcurl.py" "$@"
