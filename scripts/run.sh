#!/usr/bin/env bash
# Runs a server from this checkout: scripts/run.sh [server|rest] [flags…]
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-server}" in
  server | rest)
    role=${1:-server}
    shift || true
    exec cargo run --release --quiet -p "vesta-$role" -- "$@"
    ;;
  *)
    echo "usage: scripts/run.sh [server|rest] [flags…]; flags: scripts/run.sh server --help" >&2
    exit 64
    ;;
esac
