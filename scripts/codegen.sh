#!/usr/bin/env bash
# Regenerates the protocol code of vesta-intf and of the etcd client in vesta-store. `--check` writes
# nothing and fails if that would change anything.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${1:-}" != --check ]; then
  exec cargo run --quiet -p vesta-codegen
fi
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
cargo run --quiet -p vesta-codegen -- "$fresh"
for folder in vesta-intf/src/generated vesta-store/src/backends/etcd/generated; do
  diff -r "$folder" "$fresh/$folder" || {
    echo "the generated code does not match the proto: run scripts/codegen.sh and commit" >&2
    exit 1
  }
done
