#!/usr/bin/env bash
# `vesta chaos` on a program with a planted fault: reservations are not made durable, so a killed process
# repeats IDs in the same tick. With each seed, a repeated ID must be found within a minute. Works on a
# copy of the source.
#
#   scripts/chaos.sh [SEEDS]        default: 20
set -euo pipefail
cd "$(dirname "$0")/.."

seeds=${1:-20}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}/planted")
copy=$target/source
rm -rf "$copy"
mkdir -p "$copy"
tar -c --exclude=./target --exclude=./.git . | tar -x -C "$copy"
codec=$copy/vesta-service/src/lease/codec.rs
sed -i 's/^        let Self { host, pid, version, claimed, info_time, .. } = self;$/&\n        let bound = from.max(\&0);/' "$codec"
cmp --silent "$codec" vesta-service/src/lease/codec.rs && {
  echo "the fault does not fit ${codec#"$copy"/}" >&2
  exit 1
}
# The planted line shadows the bound.
(cd "$copy" && CARGO_TARGET_DIR=$target/build RUSTFLAGS='-A unused-variables' cargo build --quiet -p vesta-cli)

found=0
for seed in $(seq "$seeds"); do
  status=0
  said=$("$target/build/debug/vesta" chaos --seed "$seed" 2>/dev/null) || status=$?
  echo "planted, seed $seed: $said"
  [ "$status" != 1 ] || found=$((found + 1))
done
echo "the planted fault was found by $found of $seeds seeds"
[ "$found" = "$seeds" ]
