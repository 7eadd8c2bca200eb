#!/usr/bin/env bash
# Every benchmark, or one part of them.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/bench.sh [all | compare | keep | PART] [ARGUMENT..]

  all        every part but static; fails if a ratio differs from the one in docs/figures by a factor
             of more than 1.5; the default
  compare    only that comparison, of the existing results
  keep       puts the existing results into docs/figures, with today's date and the commit, and from there
             into docs/inside/benchmarks.md and the READMEs

parts:
  questions  overlap of two sets of IDs, and the owner of an ID (criterion, vesta-explain)
  numbers    check symbols, shuffled numbers, serials (criterion, vesta-numbers)
  segments   a number of a segment tag, by handle and by name (criterion and slices, vesta-numbers)
  inproc     the generator inside a process, against its floors and another generator, in pinned and
             undisturbed slices (vesta-service)
  capacity   callers that want more than a machine ID has (vesta-service)
  client     an ID from a prefetching client (criterion, vesta-client)
  e2e        vesta-server against a bare tonic echo, vesta-rest against a bare actix-web hello,
             vesta serve against vesta-server, batches, workers, stops, idling, prefetching
             (vesta-load run);
             --only PART,.. runs some of them, --help lists them
  static     the generator and the servers linked statically with musl, as released, and with glibc,
             in turns

Further arguments go to the benchmark: a filter to criterion, flags to vesta-load.

  scripts/bench.sh inproc 5 lock       5 rounds of the rows of this name
  scripts/bench.sh e2e --only grpc --rounds 9
  scripts/bench.sh e2e --calibrate     how far apart do two equal servers seem here?

Numbers are meaningful only on an otherwise idle machine. Results go to the bench folder inside the
target folder, criterion's to the criterion folder inside that.
TEXT
}

questions() {
  cargo bench -p vesta-explain --bench questions -- "$@" | tee "$results/questions.txt"
  echo "results: $results/questions.txt, details: $CRITERION_HOME"
}

numbers() {
  cargo bench -p vesta-numbers --features serial --bench numbers -- "$@" | tee "$results/numbers.txt"
  cargo bench -p vesta-numbers --features serial --bench serials -- "$@" | tee -a "$results/numbers.txt"
  echo "results: $results/numbers.txt, details: $CRITERION_HOME"
}

segments() {
  cargo bench -p vesta-numbers --bench segments -- "$@" | tee "$results/segments.txt"
  echo "results: $results/segments.txt, details: $CRITERION_HOME"
}

# A complete run keeps its figures; a run of some rows does not.
inproc() {
  local keep=(--figures "$results/inproc.figures.json")
  [ $# = 0 ] || keep=()
  cargo bench -p vesta-service --features async --bench generate -- "$@" "${keep[@]}" | tee "$results/inproc.txt"
  echo "results: $results/inproc.txt"
}

capacity() {
  local keep=(--figures "$results/capacity.figures.json")
  [ $# = 0 ] || keep=()
  cargo bench -p vesta-service --features async --bench capacity -- "$@" "${keep[@]}" | tee "$results/capacity.txt"
  echo "results: $results/capacity.txt"
}

client() {
  cargo bench -p vesta-client --bench prefetch -- "$@" | tee "$results/client.txt"
  echo "results: $results/client.txt, details: $CRITERION_HOME"
}

e2e() {
  cargo build --release -p vesta-server -p vesta-rest -p vesta-cli -p vesta-load \
    --features vesta-rest/otel,vesta-server/otel,vesta-cli/all-stores,vesta-cli/otel
  "$target/release/vesta-load" run --json "$results/e2e.json" "$@" | tee "$results/e2e.md"
  echo "results: $results/e2e.md, every round: $results/e2e.json"
}

static() {
  local triple zig libc programs folder
  triple=$(uname -m)-unknown-linux-musl
  zig=$(scripts/lib/venv.sh scripts/lib/zig)
  rustup target list --installed | grep -qx "$triple" || rustup --quiet target add "$triple"
  programs=(--release -p vesta-server -p vesta-rest --features vesta-rest/otel,vesta-server/otel)
  cargo build "${programs[@]}" -p vesta-load
  PATH=$zig/bin:$PATH cargo zigbuild "${programs[@]}" --target "$triple"
  for libc in glibc musl glibc musl glibc musl; do
    printf '\n## %s\n\n' "$libc"
    case $libc in
      glibc) cargo bench --quiet -p vesta-service --features async --bench generate -- 9 "Vesta" ;;
      musl) PATH=$zig/bin:$PATH cargo-zigbuild test --quiet --profile bench -p vesta-service --features async --bench generate \
        --target "$triple" -- 9 "Vesta" ;;
    esac
  done | tee "$results/static.md"
  for libc in glibc musl; do
    folder=$target/release
    [ $libc = glibc ] || folder=$target/$triple/release
    printf '\n## %s\n\n' "$libc"
    "$target/release/vesta-load" run --only grpc,rest --levels 8,64 \
      --server "$folder/vesta-server" --rest "$folder/vesta-rest" "$@"
  done | tee -a "$results/static.md"
  echo "results: $results/static.md"
}

figures() {
  python3 scripts/check/docs/figures.py "$1" "$results" "$CRITERION_HOME"
}

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
results=$target/bench
export CRITERION_HOME=$results/criterion
mkdir -p "$results"
part=${1:-all}
if (($# > 0)); then shift; fi
case $part in
  -h | --help | help) usage ;;
  all)
    if (($# > 0)); then
      echo "name the part that the arguments are for: $*" >&2
      exit 64
    fi
    rm -rf "${results:?}"/* # otherwise results no longer measured would be kept
    for part in questions numbers segments inproc capacity client e2e; do
      "$part"
    done
    figures compare
    ;;
  compare | keep) figures "$part" ;;
  questions | numbers | segments | inproc | capacity | client | e2e | static) "$part" "$@" ;;
  *)
    echo "no such part: $part" >&2
    usage >&2
    exit 64
    ;;
esac
