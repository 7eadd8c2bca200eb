#!/usr/bin/env bash
# Foreign clients: a Python gRPC client by reflection, curl, grpcurl if go is present, and grpc-js if node and npm are.
# Installs grpcio into a virtual environment, grpcurl and grpc-js into folders under target/. Needs libfaketime.
#
#   scripts/check/interop.sh [FOLDER-WITH-THE-PROGRAMS]     default: target/debug
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-target}
environment=$(scripts/lib/venv.sh scripts/check/interop)
programs=${1:-$target/debug}
"$environment/bin/python" scripts/check/interop/golden.py "$programs"

grpcurl=
if command -v go >/dev/null; then
  grpcurl=$(realpath -m "$target/tools/bin")/grpcurl
  [ -x "$grpcurl" ] || GOBIN=$(dirname "$grpcurl") go install github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.1
fi
node=()
if command -v node >/dev/null && command -v npm >/dev/null; then
  node=("$(realpath -m "$target/interop-node")")
  [ -d "${node[0]}/node_modules/@grpc/grpc-js" ] ||
    npm install --silent --no-audit --no-fund --prefix "${node[0]}" @grpc/grpc-js@1.14.7 >&2
fi
"$environment/bin/python" scripts/check/interop/errors.py "$programs" "$grpcurl" "${node[@]}"
