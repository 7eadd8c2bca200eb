#!/usr/bin/env bash
# Clients that are not ours: a Python gRPC client by reflection, and curl. Installs grpcio into a
# virtual environment under target/.
#
#   scripts/interop.sh [FOLDER-WITH-THE-PROGRAMS]     default: target/debug
set -euo pipefail
cd "$(dirname "$0")/.."

for tool in python3 curl; do
  command -v "$tool" >/dev/null || {
    echo "$tool is missing (Debian: apt-get install python3 python3-venv curl), or run scripts/test.sh --without interop" >&2
    exit 1
  }
done

target=${CARGO_TARGET_DIR:-target}
environment=$target/interop-venv
if ! cmp --silent scripts/interop/requirements.txt "$environment/installed.txt"; then
  rm -rf "$environment"
  python3 -m venv "$environment"
  "$environment/bin/pip" install --quiet --disable-pip-version-check -r scripts/interop/requirements.txt
  cp scripts/interop/requirements.txt "$environment/installed.txt"
fi
"$environment/bin/python" scripts/interop/golden.py "${1:-$target/debug}"
