#!/usr/bin/env bash
# Foreign clients: a Python gRPC client by reflection, curl, grpcurl if go is present, and, if node and npm are,
# grpc-js and the code that eight generators make from the protocol. Installs Python's packages into a virtual
# environment, grpcurl and the packages of scripts/check/interop/package-lock.json into folders under target/. Needs
# libfaketime.
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
  if ! cmp --silent scripts/check/interop/package-lock.json "${node[0]}/installed.json"; then
    rm -rf "${node[0]}"
    mkdir -p "${node[0]}"
    cp scripts/check/interop/package.json scripts/check/interop/package-lock.json "${node[0]}"
    (cd "${node[0]}" && npm ci --silent --no-audit --no-fund --ignore-scripts >&2)
    mv "${node[0]}/package-lock.json" "${node[0]}/installed.json"
  fi
  "$environment/bin/python" scripts/check/interop/generated.py "$programs" "${node[0]}"
fi
"$environment/bin/python" scripts/check/interop/errors.py "$programs" "$grpcurl" "${node[@]}"
