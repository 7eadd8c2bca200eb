#!/usr/bin/env bash
# Checks the alerts and the dashboard in ops/: promtool checks every expression and replays the histories in which
# each alert must and must not fire. They are then compared with the metrics of a program and with the table in
# docs/operate/operations.md.
#
#   scripts/check/ops.sh [FOLDER-WITH-THE-PROGRAMS]     default: target/debug
#   scripts/check/ops.sh --write                        rewrites the table
set -euo pipefail
cd "$(dirname "$0")/../.."

promtool=$(scripts/lib/unpacked.sh prometheus promtool)
"$promtool" check rules --lint-fatal ops/vesta-alerts.yml
"$promtool" test rules ops/vesta-alerts.test.yml
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 scripts/check/ops/check.py --rules >"$folder/dashboard.yml"
"$promtool" check rules "$folder/dashboard.yml"
programs=${CARGO_TARGET_DIR:-target}/debug
if [ "${1:-}" = --write ]; then
  python3 scripts/check/ops/check.py "$programs/vesta" --write
else
  python3 scripts/check/ops/check.py "${1:-$programs}/vesta"
fi
