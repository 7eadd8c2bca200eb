#!/usr/bin/env bash
# All tests: unit, property and process tests of every crate, then clients in other languages against
# the real servers. Everything listens on loopback, on free ports, and works in temporary folders.
# What is missing for that is installed where apt-get can do it.
#
#   scripts/test.sh                       everything
#   scripts/test.sh --without interop     but for the clients in other languages
#   scripts/test.sh -p vesta-store …      one crate, or whatever else `cargo test` takes
set -euo pipefail
cd "$(dirname "$0")/.."

interop=true
case "${1:-}" in
  -h | --help)
    sed -n '2,8s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
  --without)
    [ "${2:-}" = interop ] || {
      echo "--without takes one name: interop" >&2
      exit 64
    }
    interop=false
    shift 2
    ;;
esac

# Installs Debian packages, if it may.
install() {
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null && as_root=(sudo)
  fi
  if ! command -v apt-get >/dev/null || { [ "$(id -u)" != 0 ] && [ ${#as_root[@]} = 0 ]; }; then
    echo "please install: $*" >&2
    exit 1
  fi
  echo "installing: $*"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

command -v cargo >/dev/null || {
  echo "cargo is missing: install Rust, https://rustup.rs" >&2
  exit 1
}
command -v cc >/dev/null || install gcc libc6-dev
command -v curl >/dev/null || install curl ca-certificates

failed() {
  echo "FAILED: $1" >&2
  exit 1
}

# The tests start the real programs.
cargo build --quiet -p vesta-server -p vesta-rest -p vesta-sample || failed "building the programs"
if [ $# -gt 0 ]; then
  cargo test "$@" || failed "cargo test $*"
  exit 0
fi
cargo test --workspace --all-features || failed "the tests of the crates"
if $interop; then
  python3 -c 'import ensurepip, venv' 2>/dev/null || install python3 python3-venv
  scripts/interop.sh || failed "clients in other languages"
else
  echo "left out as asked: clients in other languages"
fi
echo "all tests passed"
