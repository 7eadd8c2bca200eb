#!/usr/bin/env bash
# The clients in clients/ against real and scripted servers, all by the scenarios of
# scripts/check/clients/scenarios.json; Python's and Node's as the packages that are published. A client whose toolchain
# is missing is left out, and named at the end.
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
    *) sed -n '2,9s/^# \{0,1\}//p' "$0" && exit 0 ;;
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
# NAME FOLDER FILE…: fails unless the unpacked package has exactly these files.
holds() {
  diff <(printf '%s\n' "${@:3}" | sort) <(cd "$2" && find . -type f | sed 's|^\./||' | sort) >&2 || {
    echo "$1 has other files" >&2
    exit 1
  }
}
clients=() left_out=()

if python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
  environment=$(scripts/lib/venv.sh scripts/check/clients/wheel)
  rm -rf "$made/wheel"
  "$environment/bin/pip" wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$made/wheel" clients/python/rest
  (cd "$made/wheel" && "$environment/bin/python" -m zipfile -e ./*-py3-none-any.whl unpacked)
  holds "the wheel" "$made/wheel/unpacked" vesta_id/{__init__.py,__init__.pyi,embedded.py,formats.py,py.typed,rest.py} \
    vesta_id-0.1.0.dist-info/{METADATA,RECORD,WHEEL,licenses/LICENSE}
  "$environment/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-index --force-reinstall "$made"/wheel/*.whl
  said=$("$environment/bin/python" -c 'from vesta_id import Vesta' 2>&1) && exit 1
  [[ $said = *"vesta-id without its compiled part"* ]]
  clients+=("python='$environment/bin/python' '$PWD/scripts/check/clients/driver.py'")
else
  left_out+=("Python (its driver needs Python 3.10)")
fi

if have node && node -e 'process.exit(Number(process.versions.node.split(".")[0] < 18))'; then
  package=$PWD/clients/node
  if have npm; then
    rm -rf "$made/node"
    mkdir -p "$made/node"
    tar -xf "$made/node/$(cd clients/node && npm pack --silent --pack-destination "$made/node")" -C "$made/node"
    package=$made/node/package
    holds "the package of npm" "$package" LICENSE README.md formats.mjs package.json vesta.d.ts vesta.mjs
    cmp "$package/LICENSE" LICENSE # a copy: npm packs no links
  else
    left_out+=("the package of Node (there is no npm)")
  fi
  export PACKAGE_OF_NODE=$package
  clients+=("node=node '$PWD/scripts/check/clients/driver.mjs' '$package/vesta.mjs'")
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
  (cd clients/go && "$go" vet ./... && "$go" test ./...)
  (cd scripts/check/clients/driver && "$go" vet ./... && "$go" build -o "$made/go" .)
  export GO=$go
  clients+=("go='$made/go'")
else
  left_out+=("Go (there is no go; scripts/check/clients.sh --full installs it)")
fi

python3 scripts/check/clients/run.py ${bench[@]+"${bench[@]}"} "$programs" "${clients[@]}"
[ ${#left_out[@]} = 0 ] || printf 'left out: %s\n' "${left_out[@]}"
