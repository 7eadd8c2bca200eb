#!/usr/bin/env bash
# The files of deploy/: rendered, held against the schemas of Kubernetes, Compose and Prometheus, and against the
# program that they start. Nothing is deployed.
#
#   scripts/deploy.sh [FOLDER-WITH-THE-PROGRAMS]     default: target/debug
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
programs=${1:-$target/debug}
promtool=$(scripts/unpacked.sh prometheus promtool)
kubectl=$(scripts/unpacked.sh kubernetes-client kubectl)
PATH=$(dirname "$kubectl"):$PATH
export PATH

environment=$target/deploy-venv
if ! cmp --silent scripts/deploy/requirements.txt "$environment/installed.txt"; then
  rm -rf "$environment"
  python3 -m venv "$environment"
  "$environment/bin/pip" install --quiet --disable-pip-version-check -r scripts/deploy/requirements.txt
  # The schema of Compose is a file of its old implementation; nothing else of that is needed.
  "$environment/bin/pip" install --quiet --disable-pip-version-check --no-deps docker-compose==1.29.2
  cp scripts/deploy/requirements.txt "$environment/installed.txt"
fi
schema=$("$environment/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/compose/config/compose_spec.json
"$environment/bin/python" scripts/deploy/check.py "$programs/vesta" "$promtool" "$schema"
