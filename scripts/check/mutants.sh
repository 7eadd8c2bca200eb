#!/usr/bin/env bash
# Mutation testing: puts small faults, one after another, into the parts of vesta-service on which uniqueness
# rests. A fault that no test notices is a survivor: a test is missing, or the code is superfluous. Lists the
# survivors, and fails if the tests notice fewer than 90 % of the faults in a part.
#
#   scripts/check/mutants.sh                    all parts, then the named faults: hours on two cores
#   scripts/check/mutants.sh PART …             sequence, populator, lease, state-file
#   scripts/check/mutants.sh PART --file NAME   one file of a part, by the end of its path
#   scripts/check/mutants.sh named [NAME …]     the named faults of mutants/named.py, or some: all must be
#                                               noticed; --list shows them, --here works in this checkout
#
# Needs cargo-mutants, and installs it if it is missing: once, which takes some minutes. It works on
# copies of the source, one per processor but at most four, each with its own target folder below
# VESTA_MUTANTS_DIR (default: target/mutants). Only tests of vesta-service run, and of those only the
# ones that take seconds at most.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ "${1-}" = named ]; then
  exec python3 scripts/check/mutants/named.py "${@:2}"
fi

version=27.1.0
export PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
if ! command -v cargo-mutants >/dev/null; then
  echo "installing cargo-mutants $version"
  cargo install --quiet --locked "cargo-mutants@$version"
fi

usage() {
  sed -n '2,15s/^# \{0,1\}//p' "$0" >&2
  exit 64
}

parts=()
only=
while [ $# -gt 0 ]; do
  case "$1" in
    sequence | populator | lease | state-file) parts+=("$1") ;;
    --file) only=${2:-} && shift && [ -n "$only" ] || usage ;;
    *) usage ;;
  esac
  shift
done
named=false
[ ${#parts[@]} -gt 0 ] || parts=(sequence populator lease state-file) named=true

source=vesta-service/src
folder=$(realpath -m "${VESTA_MUTANTS_DIR:-${CARGO_TARGET_DIR:-target}/mutants}")
workers=$(($(nproc) < 4 ? $(nproc) : 4))
unset VESTA_TEST_FULL # the tests that take seconds are enough
# Most of the time is spent compiling.
export CARGO_PROFILE_DEV_DEBUG=0 RUST_BACKTRACE=0

# Excluded: code that is itself a test, and how long a caller backs off, which affects only its speed.
selection=(--exclude-re 'subject::' --exclude-re 'BackOff::spin')
for file in tests races schedules fuzz model memory; do
  selection+=(--exclude "**/$file.rs" --exclude "$source/**/$file/**")
done
# Models and fuzzing are other means, and take minutes; the other skipped tests cover the same as
# the ones that run, at greater length.
skipped=()
for test in every_sequence_lock every_sequence_sync every_sequence_atomic every_sequence_from \
  lease::model:: fuzz:: every_planted uniqueness:: layouts:: many_machine_ids:: regions::; do
  skipped+=(--skip "$test")
done

# mutate PART WORKER: runs this worker's share of the faults.
mutate() {
  local part=$1 worker=$2 files=() others tests=(--lib) status=0 file
  # Long tests of other parts.
  case "$part" in
    sequence) files=(id/sequence.rs) others=(lease::history:: crash_loop::) ;;
    populator)
      files=(id/populator.rs wait/back_off.rs) others=(lease::history:: crash_loop::)
      tests+=(--test=service)
      ;;
    lease)
      files=(lease.rs 'lease/**/*.rs') others=(populator::)
      tests+=(--test=service)
      ;;
    state-file)
      files=(lease/host_state.rs 'lease/host_state/*.rs') others=(populator:: crash_loop::)
      tests+=(--test=service)
      ;;
  esac
  local build=("${tests[@]}" --config=profile.dev.package.vesta-service.opt-level=1)
  local selected=("${selection[@]}")
  for file in "${files[@]}"; do
    [ -z "$only" ] && selected+=(--file "$source/$file") || selected+=(--file "$source/**/$only")
  done
  if [ "$part" = lease ]; then
    selected+=(--exclude "$source/lease/host_state.rs" --exclude "$source/lease/host_state/*.rs")
  fi
  mkdir -p "$folder/$part-$worker"
  # Not the target folder of a checkout: cargo would mistake the copy's programs for the checkout's.
  CARGO_TARGET_DIR=$folder/target-$worker cargo mutants --package vesta-service "${selected[@]}" \
    "${build[@]/#/--cargo-arg=}" --shard "$worker/$workers" --sharding round-robin --jobs 1 \
    --minimum-test-timeout 20 --output "$folder/$part-$worker" --no-shuffle --colors never \
    -- -- "${skipped[@]}" "${others[@]/#/--skip=}" >"$folder/$part-$worker/log" 2>&1 || status=$?
  case "$status" in
    0 | 2 | 3) ;; # 2: some faults survived; 3: some ran out of time, which counts as noticed
    *)
      cat "$folder/$part-$worker/log" >&2
      return 1
      ;;
  esac
}

work() {
  local part
  for part in "${parts[@]}"; do
    mutate "$part" "$1" || return 1
  done
}

# lines PART NAME: the list NAME of cargo-mutants for the part, from all workers.
lines() {
  cat "$folder/$1"-*/mutants.out/"$2.txt"
}

for part in "${parts[@]}"; do
  rm -rf "$folder/$part"-*
done
pids=()
for ((worker = 0; worker < workers; worker++)); do
  work "$worker" &
  pids+=($!)
done
failed=false
for pid in "${pids[@]}"; do
  wait "$pid" || failed=true
done
! $failed || exit 1

for part in "${parts[@]}"; do
  caught=$(lines "$part" caught | wc -l) slow=$(lines "$part" timeout | wc -l)
  missed=$(lines "$part" missed | wc -l) unviable=$(lines "$part" unviable | wc -l)
  all=$((caught + slow + missed))
  [ "$all" -gt 0 ] || { echo "$part: no fault was tested" >&2 && exit 1; }
  noticed=$((caught + slow))
  echo "mutants: $part: $noticed of $all noticed ($((100 * noticed / all)) %), $slow of them by running" \
    "out of time; $unviable more do not compile"
  lines "$part" missed | sort | sed "s/^/  survivor: /"
  [ $((100 * noticed)) -ge $((90 * all)) ] || failed=true
done
if $failed; then
  echo "fewer than 90 % were noticed" >&2
  exit 1
fi
! $named || python3 scripts/check/mutants/named.py
