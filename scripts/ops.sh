#!/usr/bin/env bash
# The alerts and the dashboard in ops/: promtool checks every expression and plays the histories in which each must fire and must
# not; then they are compared with the metrics of a program and with the table in docs/OPERATIONS.md. Without a
# promtool on the PATH it is taken from Debian's package prometheus, which is unpacked under target/, not
# installed: no server starts.
#
#   scripts/ops.sh [FOLDER-WITH-THE-PROGRAMS]     default: target/debug
#   scripts/ops.sh --write                        writes the table anew
set -euo pipefail
cd "$(dirname "$0")/.."

promtool=$(command -v promtool) || {
  unpacked=${CARGO_TARGET_DIR:-target}/prometheus
  promtool=$unpacked/usr/bin/promtool
  if [ ! -x "$promtool" ]; then
    command -v apt-get >/dev/null || {
      echo "promtool is missing: it comes with Prometheus" >&2
      exit 1
    }
    echo "fetching: promtool"
    rm -rf "$unpacked"
    mkdir -p "$unpacked"
    fetch() (cd "$unpacked" && apt-get download -qq -o APT::Sandbox::User="$(id -un)" prometheus)
    fetch 2>/dev/null || {
      as_root=()
      [ "$(id -u)" = 0 ] || as_root=(sudo)
      "${as_root[@]}" apt-get update -qq
      fetch
    }
    dpkg-deb --extract "$unpacked"/prometheus_*.deb "$unpacked"
    rm "$unpacked"/prometheus_*.deb
  fi
}

"$promtool" check rules --lint-fatal ops/vesta-alerts.yml
"$promtool" test rules ops/vesta-alerts.test.yml
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 scripts/ops/check.py --rules >"$folder/dashboard.yml"
"$promtool" check rules "$folder/dashboard.yml"
programs=${CARGO_TARGET_DIR:-target}/debug
if [ "${1:-}" = --write ]; then
  python3 scripts/ops/check.py "$programs/vesta" --write
else
  python3 scripts/ops/check.py "${1:-$programs}/vesta"
fi
