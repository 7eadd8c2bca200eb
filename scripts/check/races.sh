#!/usr/bin/env bash
# Races in vesta-service and vesta-numbers: every interleaving of a few threads (loom), and many random schedules of many
# (shuttle). The tests are the modules `races` and `schedules`, which only such a build has. Each
# prints the number of its executions. `--full` runs more: loom one more interruption, shuttle ten
# times as many schedules.
set -euo pipefail
cd "$(dirname "$0")/../.."

case "${1-}" in
  '') ;;
  --full) export VESTA_TEST_FULL=1 ;;
  *) echo "usage: $0 [--full]" >&2 && exit 2 ;;
esac

target=${CARGO_TARGET_DIR:-target}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# check CHECKER MODULE: runs the tests in the modules of that name, built over the checker's primitives.
check() {
  local checker=$1 module=$2
  echo "-- $checker"
  if ! RUSTFLAGS="${RUSTFLAGS-} --cfg $checker" CARGO_TARGET_DIR="$target/$checker" CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_DEV_OPT_LEVEL=2 \
    RUST_BACKTRACE=0 cargo test --quiet -p vesta-service -p vesta-numbers --lib -- "$module::" --nocapture &>"$log"; then
    cat "$log" >&2
    exit 1
  fi
  # A planted fault that is not found fails its test; a build without the tests would not.
  if ! grep -q '^races: ' "$log"; then
    echo "no test of $checker ran" >&2
    exit 1
  fi
  sed -n 's/^races: //p' "$log" | sort
  sed -n 's/^races: .*: \([0-9]*\) executions.*/\1/p' "$log" |
    awk -v checker="$checker" '{ sum += $1 } END { printf "%s: %d executions\n", checker, sum }'
}

check loom races
check shuttle schedules
