#!/usr/bin/env bash
# The documents as a reader meets them: every command that they show is run, and what it prints is compared with
# what they say. Each document has a network of its own, with the ports that it names.
#
#   scripts/docs.sh [DOCUMENT…]           all of them, or those that are named: README.md docs/use/rest.md
#
# The programs are those in target/debug, which `cargo build --workspace --all-features` puts there.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-$PWD/target}
[ "${target:0:1}" = / ] || target=$PWD/$target
environment=$(scripts/venv.sh interop)
exec python3 scripts/docs/examples.py "$target/debug" "$environment/bin/python $PWD/scripts/docs/grpcurl.py" "$@"
