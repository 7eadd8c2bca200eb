#!/usr/bin/env bash
# Foreign clients: a Python gRPC client by reflection, curl, and grpc-js if node and npm are present. Installs
# grpcio into a virtual environment and grpc-js into a folder under target/. Needs libfaketime.
#
#   scripts/check/interop.sh [FOLDER-WITH-THE-PROGRAMS]     default: target/debug
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-target}
environment=$(scripts/lib/venv.sh scripts/check/interop)
programs=${1:-$target/debug}
"$environment/bin/python" scripts/check/interop/golden.py "$programs"

node=()
if command -v node >/dev/null && command -v npm >/dev/null; then
  node=("$(realpath -m "$target/interop-node")")
  [ -d "${node[0]}/node_modules/@grpc/grpc-js" ] ||
    npm install --silent --no-audit --no-fund --prefix "${node[0]}" @grpc/grpc-js@1.14.7 >&2
fi
"$environment/bin/python" scripts/check/interop/errors.py "$programs" "${node[@]}"
