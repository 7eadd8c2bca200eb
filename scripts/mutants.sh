#!/usr/bin/env bash
# Mutation testing: small faults are put, one after another, into the parts of vesta-service on which
# uniqueness rests. A fault that no test notices is a survivor: a test is missing, or the code is.
#
#   scripts/mutants.sh                    sequence, populators, leases and state files: hours
#   scripts/mutants.sh sequence           one part: sequence, populator or lease
#   scripts/mutants.sh lease slot.rs      one file of a part
#
# Needs cargo-mutants: `cargo install cargo-mutants --locked`. It works on a copy of the source, with a
# target folder of its own (VESTA_MUTANTS_DIR, by default target/mutants), one fault at a time. Only
# those tests of vesta-service run that take seconds.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v cargo-mutants >/dev/null || {
  echo "cargo-mutants is missing: cargo install cargo-mutants --locked" >&2
  exit 1
}

source=vesta-service/src
near=(--lib --test=populators --test=exhaustive --test=clocks)
far=(--test=leases --test=state_file --test=several --test=model)
case "${1-all}" in
  all)
    files=("$source/sequence.rs" "$source/populator*.rs" "$source/populator/*.rs" "$source/lease.rs" "$source/lease/**/*.rs")
    tests=("${near[@]}" "${far[@]}")
    ;;
  sequence) files=("$source/sequence.rs") tests=("${near[@]}") ;;
  populator) files=("$source/populator.rs" "$source/populator/${2-*.rs}") tests=("${near[@]}") ;;
  lease) files=("$source/lease.rs" "$source/lease/**/${2-*.rs}") tests=("${near[@]}" "${far[@]}") ;;
  *)
    sed -n '2,12s/^# \{0,1\}//p' "$0" >&2
    exit 64
    ;;
esac

folder=$(realpath -m "${VESTA_MUTANTS_DIR:-${CARGO_TARGET_DIR:-target}/mutants}")
mkdir -p "$folder"
# Not the target folder of a checkout: cargo would take the copy's programs for the checkout's.
export CARGO_TARGET_DIR=$folder/target
# Most of the time goes into compiling.
export CARGO_PROFILE_DEV_DEBUG=0 RUST_BACKTRACE=0
build=("${tests[@]}" --config=profile.dev.package.vesta-service.opt-level=1)

selected=()
for file in "${files[@]}"; do
  selected+=(--file "$file")
done
# What is itself a test.
for file in tests races schedules fuzz model memory; do
  selected+=(--exclude "**/$file.rs" --exclude "$source/**/$file/**")
done
# Models and fuzzing are other means, and take minutes; the rest of what is skipped says the same as
# what is not, at greater length.
skipped=()
for test in every_sequence_lock every_sequence_sync every_sequence_atomic every_sequence_from \
  lease::model:: lease::fuzz:: segment:: clocks_that a_store_that_loses services_that every_planted; do
  skipped+=(--skip "$test")
done

started=$(date +%s)
status=0
nice -n 15 cargo mutants --package vesta-service "${selected[@]}" "${build[@]/#/--cargo-arg=}" \
  --jobs 1 --timeout "${VESTA_MUTANTS_TIMEOUT:-120}" --output "$folder" --no-shuffle --colors never \
  -- -- "${skipped[@]}" || status=$?
# 2: there are survivors; 3: some ran out of time, which counts as noticed.
[ "$status" = 0 ] || [ "$status" = 2 ] || [ "$status" = 3 ] || exit "$status"

result=$folder/mutants.out
count() {
  wc -l <"$result/$1.txt"
}
echo
echo "caught $(count caught), timed out $(count timeout), missed $(count missed)," \
  "unviable $(count unviable), in $(($(date +%s) - started)) s"
if [ -s "$result/missed.txt" ]; then
  echo "survivors:"
  sed 's/^/  /' "$result/missed.txt"
  exit 1
fi
