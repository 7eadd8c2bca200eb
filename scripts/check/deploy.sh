#!/usr/bin/env bash
# Checks the files of deploy/: renders them and compares them with the schemas of Kubernetes, Compose and
# Prometheus, and with the program that they start; the settings files of the documents, with docs/vesta.schema.json.
# Deploys nothing.
#
#   scripts/check/deploy.sh [FOLDER-WITH-THE-PROGRAMS]     default: target/debug
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-target}
programs=${1:-$target/debug}
promtool=$(scripts/lib/unpacked.sh prometheus promtool)
kubectl=$(scripts/lib/unpacked.sh kubernetes-client kubectl)
PATH=$(dirname "$kubectl"):$PATH
export PATH

environment=$(scripts/lib/venv.sh scripts/check/deploy)
schema=$("$environment/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/compose/config/compose_spec.json
"$environment/bin/python" scripts/check/deploy/check.py "$programs/vesta" "$promtool" "$schema"
