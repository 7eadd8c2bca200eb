#!/usr/bin/env bash
# The clients in clients/ against real and scripted servers, all by the scenarios of
# scripts/check/clients/scenarios.json. A client whose toolchain is missing is left out, and named at the end.
# SCENARIO=PATTERN runs the scenarios with matching names.
#
#   scripts/check/clients.sh [FOLDER-WITH-THE-PROGRAMS]     default: target/debug, which must hold vesta-rest
#   scripts/check/clients.sh --full [FOLDER]                installs Go into a virtual environment if it is missing
#   scripts/check/clients.sh --bench [FOLDER]               IDs per second of each client on one processor (Linux)
set -euo pipefail
cd "$(dirname "$0")/../.."

full='' bench=()
while [[ ${1:-} = -* ]]; do
  case $1 in
    --full) full=yes ;;
    --bench) bench=(--bench) ;;
    *) sed -n '2,8s/^# \{0,1\}//p' "$0" && exit 0 ;;
  esac
  shift
done
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
programs=${1:-$target/debug}
made=$target/clients
mkdir -p "$made"
have() {
  command -v "$1" >/dev/null
}
clients=() left_out=()

if python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
  clients+=("python=python3 '$PWD/scripts/check/clients/driver.py' '$PWD/clients/python/python/vesta_id'")
else
  left_out+=("Python (its driver needs Python 3.10)")
fi

if have node && node -e 'process.exit(Number(process.versions.node.split(".")[0] < 18))'; then
  clients+=("node=node '$PWD/scripts/check/clients/driver.mjs' '$PWD/clients/node/vesta.mjs'")
else
  left_out+=("Node (there is no node 18 or later)")
fi

if have javac; then
  rm -rf "$made/java"
  find clients/java/src -name '*.java' -print0 | xargs -0 javac --release 11 -Xlint:all -Werror -d "$made/java"
  javac -d "$made/java" -cp "$made/java" scripts/check/clients/Driver.java
  clients+=("java=java -cp '$made/java' Driver")
else
  left_out+=("Java (there is no javac)")
fi

go=$(command -v go || true)
[ -n "$go" ] || [ -z "$full" ] || go=$(scripts/lib/venv.sh scripts/check/clients)/bin/go
if [ -n "$go" ]; then
  (cd clients/go && "$go" vet ./...)
  (cd scripts/check/clients/driver && "$go" vet ./... && "$go" build -o "$made/go" .)
  export GO=$go
  clients+=("go='$made/go'")
else
  left_out+=("Go (there is no go; scripts/check/clients.sh --full installs it)")
fi

python3 scripts/check/clients/run.py ${bench[@]+"${bench[@]}"} "$programs" "${clients[@]}"
[ ${#left_out[@]} = 0 ] || printf 'left out: %s\n' "${left_out[@]}"
