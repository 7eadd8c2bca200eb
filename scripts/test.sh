#!/usr/bin/env bash
# Runs the tests. Without arguments, those that any machine can run in ten minutes. Installs nothing, needs no
# root, fetches only crates, and writes only to target/ and a temporary folder. At the end it lists what this
# machine lacks. Servers listen on loopback, on free ports.
#
#   scripts/test.sh                  all unit and property tests; the conformance suite on memory, SQLite and each
#                                    store whose server is installed; real programs killed and restarted; ten
#                                    seconds of torture
#   scripts/test.sh --all            what every change must pass: installs missing tools (Debian), and adds a
#                                    thousand starters, processes and torture on every store, races, a program outside
#                                    the workspace, the page in Chromium, clients in other languages, alerts,
#                                    deployments, and each page as its reader reads it
#   scripts/test.sh --full           --all with more rounds, longer outages and larger models, five minutes of torture,
#                                    coverage-guided fuzzing, each package built and tried out, mutation testing:
#                                    hours
#   scripts/test.sh -p CRATE …       one crate, or any other arguments of `cargo test`
#
# A test that needs a store's server has it in its path: of_mysql, mysql::. A store whose VESTA_TEST_MYSQL (POSTGRES,
# REDIS, ZOOKEEPER, ETCD, POOL SERVER) is set is tested there; it must be a throw-away server.
set -euo pipefail
cd "$(dirname "$0")/.."

stores="mysql postgres redis zookeeper etcd pool_server"
tier=here
case "${1:-}" in
  -h | --help)
    sed -n '2,20s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
  --all) tier=all && shift ;;
  --full) tier=full && export VESTA_TEST_FULL=1 && shift ;;
esac
if [ $tier != here ] && [ $# -gt 0 ]; then
  echo "--$tier takes no arguments; scripts/test.sh --help" >&2
  exit 64
fi

# For everything in one build: incremental compilation takes 1.4 times the processor time.
[ $# -gt 0 ] || export CARGO_INCREMENTAL="${CARGO_INCREMENTAL:-0}"

failed() {
  echo "FAILED: $1" >&2
  exit 1
}
have() {
  PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null
}
# Servers of stores.
store_servers() {
  cargo run --quiet -p vesta-testkit --bin stores -- "$@"
}

# ---- what this machine has, before anything is built ----

have cargo || failed "cargo is missing: install Rust, https://rustup.rs"
if [ $tier = here ]; then
  have cc || failed "there is no C compiler, which SQLite and TLS are built with: install gcc or clang"
  have curl || failed "there is no curl, which asks the servers: install curl"
fi

# Prints why a tool or a store's server cannot be used here; nothing if it can.
lack() {
  case $1 in
    # Linux only: they read /proc, or are started by a script that does.
    # vesta-server is built before it is started as a pool server.
    pool_server) [ "$(uname)" = Linux ] || echo "Linux only" ;;
    mysql | postgres | redis | zookeeper | etcd | pgbouncer)
      if [ "$(uname)" != Linux ]; then echo "Linux only"; else store_servers lacks "$1"; fi
      ;;
    faketime) ls /usr/lib/*/faketime/libfaketimeMT.so.1 >/dev/null 2>&1 || echo "no libfaketime" ;;
    bindfs) if ! have bindfs; then echo "no bindfs"; elif [ ! -w /dev/fuse ]; then echo "/dev/fuse is closed"; fi ;;
    namespaces) unshare --user --map-root-user --mount --uts true 2>/dev/null || echo "unshare cannot create a user namespace" ;;
    root) [ "$(id -u)" = 0 ] || echo "only root can start as two users" ;;
    *) have "$1" || echo "no $1" ;;
  esac
}
# The Debian package that provides a tool.
package_of() {
  case $1 in
    cc) echo gcc libc6-dev ;;
    curl) echo curl ca-certificates ;;
    nginx) echo nginx-light ;;
    javac) echo default-jdk-headless ;;
    namespaces) echo util-linux ;;
    ip) echo iproute2 ;;
    *) echo "$1" ;;
  esac
}

tools="faketime bindfs namespaces nginx javac root"
# Tools that a crate's tests use beyond cargo and curl.
used_by() {
  case $1 in
    vesta-store) echo "$stores pgbouncer" ;;
    vesta-cli) echo "mysql postgres zookeeper bindfs faketime" ;;
    vesta-server) echo "faketime bindfs namespaces root" ;;
    vesta-rest) echo "nginx javac" ;;
  esac
}

wanted="$stores pgbouncer $tools"
if [ $# -gt 0 ]; then
  previous='' wanted=''
  for argument in "$@"; do
    case $previous in -p | --package) wanted="$wanted $(used_by "$argument")" ;; esac
    previous=$argument
  done
fi
if [ $tier != here ]; then
  missing=''
  for tool in cc curl ip ${tools%root}; do
    [ -z "$(lack "$tool")" ] || missing="$missing $(package_of "$tool")"
  done
  # shellcheck disable=SC2086 # names of packages
  [ -z "$missing" ] || scripts/lib/install.sh $missing
  store_servers install
fi
left_out='' VESTA_TEST_LACKS=''
skipped=()
for name in $wanted; do
  reason=$(lack "$name")
  [ -n "$reason" ] || continue
  case $tier,$name in
    here,root | all,root | full,root) left_out="$left_out$name ($reason)
" ;;
    here,*) left_out="$left_out$name ($reason; scripts/test.sh --all installs it)
" ;;
    *) failed "$name: $reason" ;;
  esac
  VESTA_TEST_LACKS="$VESTA_TEST_LACKS $name"
  case " $stores " in *" $name "*) skipped+=(--skip "of_$name" --skip "$name::") ;; esac
done
export VESTA_TEST_LACKS

# ---- what is started, and always stopped ----

folder=$(mktemp -d)
beside=
clean_up() {
  [ -z "$beside" ] || kill -- "-$beside" 2>/dev/null || true
  # Servers that a test started and did not stop are below this folder.
  for servers in "$folder" "$folder"/own.*; do
    [ ! -d "$servers/.." ] || [ "$(uname)" != Linux ] || store_servers stop "$servers" 2>/dev/null || true
  done
  rm -rf "$folder"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

start_stores() {
  local wanted='' store variable
  for store in $stores; do
    variable=VESTA_TEST_$(echo "$store" | tr '[:lower:]' '[:upper:]')
    case " $1 " in *" $store "*) ;; *) continue ;; esac
    [ -n "${!variable:-}" ] || [ -n "$(lack "$store")" ] || wanted="$wanted $store"
  done
  [ -n "$wanted" ] || return 0
  echo "starting:$wanted"
  # shellcheck disable=SC2086 # names
  store_servers start "$folder" $wanted || failed "starting the stores"
  eval "$(store_servers env "$folder")"
}
say_what_was_left_out() {
  [ -z "$left_out" ] || printf '%s' "$left_out" | sed 's/^/not tested here: /'
}

if [ $# -gt 0 ]; then
  case " $wanted " in *" pool_server "*) cargo build --quiet -p vesta-server --all-features || failed "building vesta-server" ;; esac
  start_stores "$wanted"
  # They start programs of other crates, as a build of all crates together makes them.
  case " $* " in
    *vesta-server* | *vesta-rest* | *vesta-cli* | *vesta-sample* | *vesta-load*)
      cargo build --quiet -p vesta-server -p vesta-rest -p vesta-cli --all-features || failed "building the programs"
      ;;
  esac
  case " $* " in *" -- "*) ;; *) set -- "$@" -- ;; esac
  cargo test "$@" ${skipped[@]+"${skipped[@]}"} || failed "cargo test $*"
  say_what_was_left_out
  exit 0
fi

# ---- one build, then every test binary, two at a time ----

crates=(--workspace)
targets=()
if [ $tier = here ]; then
  # Only what is run below: no load generator, no code generator, no tests with processes.
  crates+=(--exclude vesta-load --exclude vesta-codegen)
  targets=(--lib --bin vesta --test '[!p]*' --test program)
  export VESTA_TEST_QUICK=1
fi
# The load generator pins its threads to processors, which only Linux supports.
[ "$(uname)" = Linux ] || crates+=(--exclude vesta-load)
echo "building"
cargo test "${crates[@]}" ${targets[@]+"${targets[@]}"} --all-features --no-run --message-format=json-render-diagnostics \
  >"$folder/built" || failed "building the tests"
# Package folder and program of each test, one per line.
sed -n 's/.*"manifest_path":"\([^"]*\)\/Cargo.toml".*"profile":{[^}]*"test":true}.*"executable":"\([^"]*\)".*/"\1" "\2"/p' "$folder/built" >"$folder/tests"
start_stores "$stores"

cat >"$folder/one" <<'RUN'
# FOLDER PROGRAM ARGUMENT…: runs one test binary; prints the result, and all output if it failed.
cd "$1" && program=$2 && shift 2
name=$(basename "$PWD")/$(basename "$program" | sed 's/-[0-9a-f]*$//')
log=$(mktemp)
start=$SECONDS
status=0
# A test that hangs is ended, and its output shows where. It runs in the foreground, or Ctrl-C would not reach
# it; not every system supports that.
limit="timeout --foreground 900"
[ -z "${VESTA_TEST_FULL:-}" ] && $limit true 2>/dev/null || limit=
# shellcheck disable=SC2086 # words of a command
$limit "$program" "$@" >"$log" 2>&1 || status=$?
[ $status != 124 ] || echo "ended after 900 s" >>"$log"
if [ $status = 0 ]; then
  sed -n 's/^test result: ok. \([0-9]*\) passed.*/\1/p' "$log" |
    awk -v name="$name" -v seconds=$((SECONDS - start)) '{ n += $1 } END { printf "ok %5d tests %4d s  %s\n", n, seconds, name }'
else
  cat "$log"
  echo "FAILED: $name"
fi
rm "$log"
exit $status
RUN
# PATTERN [ARGUMENT…]: the test binaries with matching names, each with these arguments.
named() {
  grep -E "/($1)-[0-9a-f]+\"$" "$folder/tests" | sed "s|\$| ${*:2}|"
}
# AT_ONCE: runs the test binaries that it reads.
run() {
  sed "s|\$| --skip processes:: --skip torture::${skipped[*]+ ${skipped[*]}}|" >"$folder/these"
  xargs -P "$1" -L 1 bash "$folder/one" <"$folder/these" | tee "$folder/went" || failed "tests, above"
  [ "$(grep -c '^ok' "$folder/went")" -eq "$(wc -l <"$folder/these")" ] || failed "not every test binary was run"
}
start=$SECONDS
# Store tests have time limits and change settings of servers that others use.
named stores --test-threads=4 --skip a_thousand_first | run 1
[ $tier = here ] || named 'stores|server' --test-threads=1 a_thousand_first | run 1
slowest='program|vesta_service|simulation'
{
  named "$slowest"
  grep -vE "/(stores|$slowest)-[0-9a-f]+\"$" "$folder/tests"
} | sed 's/$/ --skip a_thousand_first/' | run 2
echo "tests: $((SECONDS - start)) s"
cargo test --quiet "${crates[@]}" --all-features --doc >"$folder/doc" 2>&1 || {
  cat "$folder/doc"
  failed "the examples in the code"
}

# One test binary, with its output.
watch() {
  local line of
  line=$(grep "/$1-[0-9a-f]*\"\$" "$folder/tests")
  of=${line#\"} of=${of%%\" *} line=${line#*\" \"}
  shift
  (cd "$of" && exec "${line%\"}" --nocapture "$@")
}

if [ $tier = here ]; then
  # On SQLite and with fixed machine IDs.
  for store in $stores; do unset "VESTA_TEST_$(echo "$store" | tr '[:lower:]' '[:upper:]')"; done
  VESTA_TEST_SECONDS=10 watch torture torture:: || failed "the torture"
  say_what_was_left_out
  echo "all tests that can run here passed; scripts/test.sh --all runs the others"
  exit 0
fi

# ---- what every change must pass, and what takes hours ----

watch torture torture:: || failed "the torture"
# Processes mostly wait, so a test that uses the remaining processor time runs along with them.
with_processes=races
[ $tier = all ] || with_processes=mutants
setsid nice -n 15 "scripts/check/$with_processes.sh" >"$folder/beside.log" 2>&1 &
beside=$!
watch processes --test-threads=4 || failed "the tests with processes"
scripts/check/ops.sh || failed "the alerts and the dashboard"
scripts/check/deploy.sh || failed "the files of deploy/"
scripts/check/reader.sh || failed "a page, as its reader reads it"
scripts/check/interop.sh || failed "clients in other languages"
if [ $tier = full ]; then with=--full; else with=; fi
# shellcheck disable=SC2086 # one word or none
scripts/check/clients.sh $with || failed "the clients of clients/"
scripts/check/outside.sh || failed "a program that has Vesta as its one dependency"
scripts/check/browser.sh || failed "the page in a browser"
if [ $tier = full ]; then
  scripts/check/races.sh --full || failed "the races"
  scripts/check/platforms.sh --link || failed "the programs for macOS"
  scripts/check/published.py --build || failed "the packages of the crates"
  scripts/chaos.sh || failed "the planted fault that chaos finds"
  uid=0
  scripts/check/uid.sh || uid=$?
  [ $uid != 69 ] || left_out="${left_out}UIDs of uid-generator (Maven cannot fetch it)
"
  [ $uid = 0 ] || [ $uid = 69 ] || failed "UIDs of uid-generator"
  peers=0
  scripts/check/peers.sh || peers=$?
  [ $peers != 69 ] || left_out="${left_out}other generators (their code cannot be fetched)
"
  [ $peers = 0 ] || [ $peers = 69 ] || failed "other generators under the same faults"
  scripts/release.sh || failed "building what is released"
  scripts/check/packages.sh || failed "the packages"
  scripts/check/python.sh || failed "the Python package"
  scripts/check/fuzz.sh 10 || failed "fuzzing"
  scripts/check/schemathesis.sh || failed "the REST server against its OpenAPI document"
fi
status=0
wait "$beside" || status=$?
beside=
cat "$folder/beside.log"
[ $status = 0 ] || failed "$with_processes"
say_what_was_left_out
echo "all tests passed"
