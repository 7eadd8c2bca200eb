#!/usr/bin/env bash
# Tests the REST server against its own OpenAPI document: schemathesis, installed into a virtual
# environment in the target folder, makes valid and invalid requests from /openapi.json. Two servers on
# free loopback ports: Vesta's layout with segments in SQLite, and uid-generator's without.
#
#   scripts/check/schemathesis.sh [EXAMPLES]    maximum requests for each operation and kind of test
#                                               (default 40, which takes about two minutes)
set -euo pipefail
cd "$(dirname "$0")/../.."

case "${1:-}" in
  -h | --help)
    sed -n '2,8s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac
examples=${1:-40}
target=${CARGO_TARGET_DIR:-target}
environment=$(scripts/lib/venv.sh scripts/check/schemathesis)
cargo build --quiet -p vesta-rest
server=$target/debug/vesta-rest

folder=$(mktemp -d)
pid=
stop() {
  [ -z "$pid" ] || kill "$pid" 2>/dev/null || true
  [ -z "$pid" ] || wait "$pid" 2>/dev/null || true
  pid=
}
trap 'stop; rm -rf "$folder"' EXIT

# Starts a server with these settings and leaves its address in `address`.
start() {
  env -u VESTA_CONFIG "$server" --http-listen 127.0.0.1:0 --admin-listen off --state-dir "$folder/state" "$@" \
    >"$folder/out" 2>"$folder/log" &
  pid=$!
  for _ in $(seq 600); do
    address=$(sed -n 's/^ *HTTP  *\([0-9.:]*\)$/\1/p' "$folder/out")
    [ -z "$address" ] || return 0
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  cat "$folder/log" >&2
  exit 1
}

# The ranges of an ID's fields depend on the server's layout, and valid ID text on the requested format. The
# document cannot state which values are accepted, so a refused number is no finding.
check() {
  printf '\n== %s\n' "$1"
  "$environment/bin/schemathesis" --config-file scripts/check/schemathesis/schemathesis.toml --no-color \
    run "http://$address/openapi.json" --checks all --exclude-checks positive_data_acceptance --phases examples,coverage,fuzzing \
    --max-examples "$examples" --continue-on-failure --warnings off --generation-database none \
    >"$folder/report" 2>&1 || {
    cat "$folder/report"
    exit 1
  }
  grep --after-context 1 '^Test cases:' "$folder/report"
  # Whatever was sent, the server is still running.
  curl --silent --fail --max-time 20 "http://$address/v1/id" >/dev/null
  if grep -i panic "$folder/log"; then
    exit 1
  fi
  stop
}

segments=sqlite:$folder/segments.db
for tag in orders leaf-segment-test; do
  "$server" segment create "$tag" --step 1000 --segment-store "$segments" --state-dir "$folder/state" >/dev/null
done
serials=sqlite:$folder/serials.db
"$server" serial create invoices 'INV-{date:yyMMdd}-{n:9+}{check:damm}' --reset day --zone Asia/Shanghai \
  --serial-store "$serials" --state-dir "$folder/state" >/dev/null
start --machine-id 1 --segment-store "$segments" --serial-store "$serials"
check "layout max-peak, segments and serials in SQLite"

cat >"$folder/uid.toml" <<'END'
gen_method = 0

[layout.custom]
version_bits = 1
time_bits = 28
seq_bits = 13
machine_bits = 22
order = "time-machine-seq"
unit = "second"
epoch = "2025-01-01T00:00:00Z"
END
rm -rf "$folder/state"
start --config "$folder/uid.toml" --machine-id 1
check "the layout of uid-generator"
