#!/usr/bin/env bash
# All tests: unit, property and process tests of every crate, the stores' on real servers, then clients
# in other languages against the real programs. Everything listens on loopback, on free ports, and works
# in temporary folders. What is missing for that is installed where apt-get can do it.
#
#   scripts/test.sh                       everything
#   scripts/test.sh --full                with more rounds, longer outages, larger models, five minutes of
#                                         torture instead of 20 s, a planted fault that chaos must find,
#                                         fuzzing led by coverage, requests made from the OpenAPI
#                                         document, each package built and tried out, and mutation testing: two hours
#   scripts/test.sh --without NAME        but for a store (mysql, postgres, redis, zookeeper, etcd), for
#                                         the clients in other languages (interop) or for the page in
#                                         Chromium (browser); can be repeated
#   scripts/test.sh -p vesta-store …      one crate, or whatever else `cargo test` takes
#
# A store whose VESTA_TEST_MYSQL, VESTA_TEST_POSTGRES, VESTA_TEST_REDIS, VESTA_TEST_ZOOKEEPER or
# VESTA_TEST_ETCD is set is tested there; it must be a throw-away server. The others are started, and
# stopped at the end.
set -euo pipefail
cd "$(dirname "$0")/.."

stores=(mysql postgres redis zookeeper etcd)
left_out=()
interop=true
browser=true
while :; do
  case "${1:-}" in
    -h | --help)
      sed -n '2,20s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    --full)
      export VESTA_TEST_FULL=1
      shift
      ;;
    --without)
      case " ${stores[*]} " in
        *" ${2:-} "*)
          left=()
          for store in "${stores[@]}"; do
            [ "$store" = "$2" ] || left+=("$store")
          done
          stores=("${left[@]}")
          left_out+=("$2")
          ;;
        *)
          case "${2:-}" in
            interop) interop=false ;;
            browser) browser=false ;;
            *)
              echo "--without takes mysql, postgres, redis, zookeeper, etcd, interop or browser, each once" >&2
              exit 64
              ;;
          esac
          ;;
      esac
      shift 2
      ;;
    *) break ;;
  esac
done

command -v cargo >/dev/null || {
  echo "cargo is missing: install Rust, https://rustup.rs" >&2
  exit 1
}
missing=()
command -v cc >/dev/null || missing+=(gcc libc6-dev)
command -v curl >/dev/null || missing+=(curl ca-certificates)
# For wrong clocks and full disks under the real programs.
ls /usr/lib/*/faketime/libfaketimeMT.so.1 >/dev/null 2>&1 || missing+=(faketime)
command -v unshare >/dev/null || missing+=(util-linux)
command -v ip >/dev/null || missing+=(iproute2)
command -v openssl >/dev/null || missing+=(openssl)
PATH=$PATH:/usr/sbin command -v nginx >/dev/null || missing+=(nginx-light)
# A network file system, as far as a program can tell.
command -v bindfs >/dev/null || missing+=(bindfs)
# A pooler before PostgreSQL.
command -v pgbouncer >/dev/null || missing+=(pgbouncer)
[ ${#missing[@]} = 0 ] || scripts/install.sh "${missing[@]}"

failed() {
  echo "FAILED: $1" >&2
  exit 1
}

folder=
beside=
clean_up() {
  [ -z "$beside" ] || kill -- "-$beside" 2>/dev/null || true
  [ -n "$folder" ] || return 0
  # What a test started for itself and was not there to stop lies below.
  for servers in "$folder" "$folder"/own.*; do
    [ ! -d "$servers" ] || scripts/stores.sh stop "$servers" || true
  done
  rm -rf "$folder"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# Starts the stores that nobody has given.
start_stores() {
  local store variable wanted=()
  for store in "${stores[@]}"; do
    variable=VESTA_TEST_${store^^}
    [ -n "${!variable:-}" ] || wanted+=("$store")
  done
  folder=$(mktemp -d)
  if [ ${#wanted[@]} -gt 0 ]; then
    echo "starting: ${wanted[*]}"
    scripts/stores.sh start "$folder" "${wanted[@]}" ||
      failed "starting the stores; --without STORE leaves the tests of one out"
  fi
  eval "$(scripts/stores.sh env "$folder")"
}

if [ $# -gt 0 ]; then
  # The tests start real programs, some of another crate; those of all crates together are built with them.
  cargo build --quiet -p vesta-server -p vesta-rest -p vesta-cli || failed "building the programs"
  case " $* " in
    *vesta-store* | *vesta-cli*) start_stores ;;
    *" -p "* | *" --package"*) ;; # no other crate needs one
    *) start_stores ;;
  esac
  cargo test "$@" || failed "cargo test $*"
  exit 0
fi

start_stores
# The processes are tests that mostly wait: several at once, and beside them only what has what they
# leave of the processors: the races, or in a full run mutation testing.
run() {
  local what=$1
  shift
  cargo test "$@" -- --skip processes:: --skip torture:: "${left_out[@]/#/--skip=of_}" ||
    failed "the tests of $what"
}
# Alone: it takes what it gets of the processors.
run_torture() {
  cargo test "$@" --test torture -- --nocapture torture:: || failed "the torture"
}
run_processes() {
  local script=races
  [ -z "${VESTA_TEST_FULL:-}" ] || script=mutants
  setsid nice -n 15 "scripts/$script.sh" >"$folder/beside.log" 2>&1 &
  beside=$!
  cargo test "$@" --test processes -- --nocapture --test-threads=4 || failed "the tests with processes"
}
# The end of what runs beside the processes.
finish() {
  local status=0
  wait "$beside" || status=$?
  beside=
  cat "$folder/beside.log"
  [ "$status" = 0 ] || failed "$1"
}
if [ ${#left_out[@]} = 0 ]; then
  run "the crates" --workspace --all-features
  run_torture --workspace --all-features
  run_processes --workspace --all-features
  scripts/ops.sh || failed "the alerts and the dashboard"
  scripts/deploy.sh || failed "the files of deploy/"
  scripts/docs.sh || failed "the commands of the documents"
else
  echo "left out as asked: the tests on ${left_out[*]}"
  features=$(IFS=, && echo "${stores[*]}")
  run "the crates" --workspace --exclude vesta-store --all-features
  run_torture --workspace --exclude vesta-store --all-features
  run "the stores" -p vesta-store --features "$features"
  run_processes -p vesta-store --features "$features"
fi
if [ -z "${VESTA_TEST_FULL:-}" ]; then
  finish "the races"
else
  scripts/races.sh --full || failed "the races"
  scripts/platforms.sh --link || failed "the programs for macOS"
  cargo package --quiet --workspace --exclude vesta-sample --exclude vesta-codegen --exclude vesta-load \
    --exclude vesta-page --exclude vesta-testkit --allow-dirty || failed "the packages of the crates"
  scripts/chaos.sh || failed "the planted fault that chaos finds"
  scripts/release.sh || failed "building what is released"
  scripts/packages.sh || failed "the packages"
  scripts/fuzz.sh 10 || failed "fuzzing"
  scripts/schemathesis.sh || failed "the REST server against its OpenAPI document"
fi
if $interop; then
  scripts/interop.sh || failed "clients in other languages"
else
  echo "left out as asked: clients in other languages"
fi
if $browser; then
  scripts/browser.sh || failed "the page in a browser; --without browser leaves it out"
else
  echo "left out as asked: the page in a browser"
fi
[ -z "$beside" ] || finish "mutation testing"
echo "all tests passed"
