#!/usr/bin/env bash
# Runs a server from this checkout: scripts/run.sh [server|rest] [flags…]. Without a name it runs
# both, in one process.
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
  "" | -*)
    exec cargo run --quiet -- serve "$@"
    ;;
  server | rest)
    role=$1
    shift
    exec cargo run --quiet -p "vesta-$role" -- "$@"
    ;;
  *)
    echo "usage: scripts/run.sh [server|rest] [flags…]; flags: scripts/run.sh server --help" >&2
    exit 64
    ;;
esac
