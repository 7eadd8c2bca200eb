#!/usr/bin/env bash
# Clients that are not ours: a Python gRPC client by reflection, and curl. Installs grpcio into a
# virtual environment under target/.
#
#   scripts/interop.sh [FOLDER-WITH-THE-PROGRAMS]     default: target/debug
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
environment=$(scripts/venv.sh interop)
"$environment/bin/python" scripts/interop/golden.py "${1:-$target/debug}"
