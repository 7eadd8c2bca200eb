#!/usr/bin/env bash
# Every benchmark, or one part of them.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/bench.sh [all | questions | inproc | client | e2e] [ARGUMENT..]

  questions  whether two sets of IDs meet, and whose an ID is (criterion, vesta-intf)
  inproc     the generator inside a process, beside other generators (criterion, vesta-service)
  client     an ID from a prefetching client (criterion, vesta-client)
  e2e        vesta-server beside a bare tonic echo, vesta-rest beside a bare actix-web hello,
             batches, streams, workers, stops, idling, prefetching (vesta-load run);
             --only PART,.. runs some of them, --help lists them
  all        all of them; the default

Further arguments go to the benchmark: a filter to criterion, flags to vesta-load.

  scripts/bench.sh inproc 'contended'
  scripts/bench.sh e2e --only grpc --rounds 9
  scripts/bench.sh e2e --calibrate     how far do two equal servers seem apart here?

Numbers mean something on a machine that does nothing else. Results go to the bench folder inside
the target folder, criterion's to the criterion folder beside it.
TEXT
}

questions() {
  cargo bench -p vesta-intf --bench questions -- "$@" | tee "$results/questions.txt"
  echo "results: $results/questions.txt, details: $target/criterion"
}

inproc() {
  cargo bench -p vesta-service --bench generate -- "$@" | tee "$results/inproc.txt"
  echo "results: $results/inproc.txt, details: $target/criterion"
}

client() {
  cargo bench -p vesta-client --bench prefetch -- "$@" | tee "$results/client.txt"
  echo "results: $results/client.txt, details: $target/criterion"
}

e2e() {
  cargo build --profile dist -p vesta-server -p vesta-rest -p vesta-load --features vesta-rest/otel,vesta-server/otel
  "$target/dist/vesta-load" run --json "$results/e2e.json" "$@" | tee "$results/e2e.md"
  echo "results: $results/e2e.md, every round: $results/e2e.json"
}

part=${1:-all}
if (($# > 0)); then shift; fi
case $part in
  -h | --help | help)
    usage
    exit
    ;;
  all)
    if (($# > 0)); then
      echo "say which part the arguments are for: $*" >&2
      exit 64
    fi
    parts=(questions inproc client e2e)
    ;;
  questions | inproc | client | e2e) parts=("$part") ;;
  *)
    echo "no such part: $part" >&2
    usage >&2
    exit 64
    ;;
esac

target=${CARGO_TARGET_DIR:-target}
results=$target/bench
mkdir -p "$results"
for part in "${parts[@]}"; do
  "$part" "$@"
done
