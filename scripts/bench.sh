#!/usr/bin/env bash
# Every benchmark, or one part of them.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/bench.sh [[all] [--only PART,..] | compare | keep | PART] [ARGUMENT..]

  all        every part but static and peers, or those of --only; fails if a ratio differs from the one in
             docs/figures by a factor of more than 1.5; the default
  compare    only that comparison, of the results of this commit
  keep       puts the results of this commit into docs/figures, with today's date and the commit, and from there
             into docs/inside/benchmarks.md, guides and READMEs. What this commit did not measure stays, with its
             own date and commit

parts:
  questions  overlap of two sets of IDs, and the owner of an ID (criterion, vesta-explain)
  numbers    check symbols, shuffled numbers, serials (criterion, vesta-numbers)
  segments   a number of a segment tag, by handle and by name (criterion and slices, vesta-numbers)
  inproc     the generator inside a process, against its floors and another generator, in pinned and
             undisturbed slices: the median of five builds that differ in the placement of code (vesta-service)
  capacity   callers that want more than a machine ID has (vesta-service)
  client     an ID from a prefetching client (criterion, vesta-client)
  e2e        vesta-server against a bare tonic echo, vesta-rest against a bare actix-web hello,
             vesta serve against vesta-server, batches, workers, stops, starts, idling, prefetching
             (vesta-load run);
             --only PART,.. runs some of them, --help lists them
  python     an ID from the embedded generator in Python (clients/python)
  peers      other generators under faults (scripts/check/peers.sh)
  static     the generator and the servers linked statically with musl, as released, and with glibc,
             in turns

Further arguments go to the benchmark: a filter to criterion, flags to vesta-load.

  scripts/bench.sh inproc 5 lock       5 rounds of the rows of this name, of one build
  scripts/bench.sh inproc 1            1 round of each row and each build
  scripts/bench.sh e2e --only grpc --rounds 9
  scripts/bench.sh e2e --calibrate     how far apart do two equal servers seem here?

Numbers are meaningful only on an otherwise idle machine. Results go to bench/COMMIT inside the target
folder, criterion's to the criterion folder inside that.
TEXT
}

# Criterion's defaults take three times as long, for the same medians.
short=(--warm-up-time 1 --measurement-time 2)

questions() {
  cargo bench -p vesta-explain --bench questions -- "${short[@]}" "$@" | tee "$results/questions.txt"
  echo "results: $results/questions.txt, details: $CRITERION_HOME"
}

numbers() {
  cargo bench -p vesta-numbers --features serial --bench numbers -- "${short[@]}" "$@" | tee "$results/numbers.txt"
  cargo bench -p vesta-numbers --features serial --bench serials -- "${short[@]}" "$@" | tee -a "$results/numbers.txt"
  echo "results: $results/numbers.txt, details: $CRITERION_HOME"
}

segments() {
  cargo bench -p vesta-numbers --bench segments -- "${short[@]}" "$@" | tee "$results/segments.txt"
  echo "results: $results/segments.txt, details: $CRITERION_HOME"
}

# Prints the path of the benchmark with its functions linked in another order: the same code at other addresses.
placed() {
  cargo rustc --quiet --profile bench -p vesta-service --features async --bench generate --message-format json -- \
    -C "link-arg=-Wl,--shuffle-sections=.text*=$1" | sed -n 's/.*"executable":"\([^"]*\/generate-[^"]*\)".*/\1/p'
}

# A complete run keeps its figures; a run of some rows does not, and needs one build.
inproc() {
  local seed program programs=()
  if [[ "$*" == *[![:digit:]]* ]]; then
    cargo bench -p vesta-service --features async --bench generate -- "$@" | tee "$results/inproc.txt"
    return
  fi
  for seed in 1 2 3 4 5; do
    program=$(placed $seed)
    programs+=("$program")
  done
  [ "$(sha256sum "${programs[@]}" | cut -d ' ' -f 1 | sort -u | wc -l)" = 5 ] || {
    echo "the linker placed the code of two builds alike: inproc needs lld, Rust's own on x86_64" >&2
    exit 69
  }
  for seed in 1 2 3 4 5; do
    program=${programs[seed - 1]}
    printf '\n## build %s of 5\n\n' $seed
    # Under one path, and so with one layout of the stack.
    cp "$program" "$results/generate"
    "$results/generate" "${1:-5}" --figures "$results/inproc.$seed.figures.json"
  done | tee "$results/inproc.txt"
  echo "results: $results/inproc.txt"
}

capacity() {
  local keep=(--figures "$results/capacity.figures.json")
  [ $# = 0 ] || keep=()
  cargo bench -p vesta-service --features async --bench capacity -- "$@" "${keep[@]}" | tee "$results/capacity.txt"
  echo "results: $results/capacity.txt"
}

client() {
  cargo bench -p vesta-client --bench prefetch -- "${short[@]}" "$@" | tee "$results/client.txt"
  echo "results: $results/client.txt, details: $CRITERION_HOME"
}

python() {
  scripts/check/python.sh speed "$results/python.figures.json" "$@"
}

peers() {
  scripts/check/peers.sh "${1:-$target/peers/sources}" "$results/peers.figures.json"
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
results=$target/bench/$(git rev-parse --short=8 HEAD)
export CRITERION_HOME=$results/criterion
mkdir -p "$results"
parts="questions numbers segments inproc capacity client python e2e"
[ "${1:-}" != --only ] || set -- all "$@"
part=${1:-all}
if (($# > 0)); then shift; fi
case $part in
  -h | --help | help) usage ;;
  all)
    case $# in
      0) rm -rf "${results:?}"/* ;; # otherwise results no longer measured would be kept
      2)
        [ "$1" = --only ] || { usage >&2 && exit 64; }
        parts=${2//,/ }
        ;;
      *)
        echo "name the part that the arguments are for: $*" >&2
        exit 64
        ;;
    esac
    for part in $parts; do
      "$0" "$part"
    done
    figures compare
    ;;
  compare | keep) figures "$part" ;;
  questions | numbers | segments | inproc | capacity | client | python | peers | e2e | static) "$part" "$@" ;;
  *)
    echo "no such part: $part" >&2
    usage >&2
    exit 64
    ;;
esac
