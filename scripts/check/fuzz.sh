#!/usr/bin/env bash
# Coverage-guided fuzzing, with libFuzzer. `cargo test` runs the same targets with the kept inputs and a
# bounded number of random ones; this continues from there. It needs a C++ compiler, but no other toolchain.
#
#   scripts/check/fuzz.sh [SECONDS] [WORD…]    time per target (default 60), or only for targets whose package
#                                              or name contains one of the words
#   scripts/check/fuzz.sh --list               the targets
#
# The corpus stays in the target folder for the next run. A failing input is shown and left there;
# if its target has kept inputs, add it to the crate's folder fuzz/, so that the fault stays fixed.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Package, how cargo selects the test program, target, folder of kept inputs below the package's fuzz/.
targets() {
  cat <<'END'
vesta-intf     --test=contract       fuzz::ids::ids_from_any_text              ids
vesta-intf     --test=contract       fuzz::ids::ids_from_damaged_text
vesta-intf     --test=contract       fuzz::layouts::layouts_of_any_numbers
vesta-service  --test=service        fuzz::services_of_any_layout
vesta-service  --test=service        fuzz::tags_of_any_rows
vesta-service  --lib                 lease::fuzz::slots_of_any_bytes
vesta-service  --lib                 lease::fuzz::state_files_that_are_damaged
vesta-service  --lib                 lease::fuzz::state_files_with_foreign_contents
vesta-store    --lib,--all-features  fuzz::urls_never_show_their_password
vesta-store    --lib,--all-features  backends::etcd::fuzz::answers_of_any_bytes
vesta-store    --lib,--all-features  backends::etcd::config::tests::urls_of_any_text
vesta-store    --lib,--all-features  backends::zookeeper::config::tests::urls_of_any_text
vesta-store    --lib,--all-features  backends::redis::config::tests::urls_of_any_text
vesta-store    --lib,--all-features  backends::redis::segments::fuzz::values_that_are_damaged
vesta-boot     --lib                 fuzz::files_of_any_text                   config
vesta-boot     --lib                 fuzz::no_setting_shows_a_password
vesta-rest     --test=rest           fuzz::requests_of_arbitrary_text                requests
vesta-server   --lib                 fuzz::calls_of_any_bytes_and_numbers
END
}

fail() {
  echo "$1" >&2
  exit 1
}

case "${1:-}" in
  -h | --help)
    sed -n '2,11s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
  --list)
    targets
    exit 0
    ;;
esac
seconds=60
if [[ ${1:-} =~ ^[0-9]+$ ]]; then
  seconds=$1
  shift
fi
[ "$(uname -s)" = Linux ] || fail 'libFuzzer is only used on Linux here; cargo test runs the targets everywhere'
command -v "${CXX:-c++}" >/dev/null ||
  fail 'a C++ compiler is missing (Debian: apt-get install g++): libFuzzer is built from its source'

folder=$(mkdir -p "${CARGO_TARGET_DIR:-target}/fuzzing" && cd "${CARGO_TARGET_DIR:-target}/fuzzing" && pwd)
case $folder in *' '*) fail "the target folder must not contain blanks: $folder" ;; esac
host=$(rustc -vV | sed -n 's/^host: //p')

# A separate build: every crate counts its branches and exposes its comparisons. Programs that are built
# along but not run lack what libFuzzer provides.
flags="--cfg fuzzing --cfg fuzzing_libfuzzer -Cpasses=sancov-module -Clink-arg=-Wl,--warn-unresolved-symbols"
for option in level=4 inline-8bit-counters pc-table trace-compares stack-depth; do
  flags="$flags -Cllvm-args=-sanitizer-coverage-$option"
done
export CARGO_PROFILE_FUZZ_INHERITS=dev CARGO_PROFILE_FUZZ_CODEGEN_UNITS=1

program() {
  local package=$1 selection=$2
  RUSTFLAGS=$flags CARGO_TARGET_DIR=$folder/build cargo test --no-run --quiet --message-format=json \
    --profile fuzz --target "$host" -p "$package" ${selection//,/ } |
    sed -n 's/.*"profile":{[^}]*"test":true}.*"executable":"\([^"]*\)".*/\1/p' | tail -1
}

failed=0
ran=0
while read -r package selection name kept; do
  wanted=$([ $# -eq 0 ] && echo yes || true)
  for word in "$@"; do
    case "$package $name" in *"$word"*) wanted=yes ;; esac
  done
  [ "$wanted" ] || continue
  place=$folder/$package/${name//::/.}
  mkdir -p "$place/corpus" "$place/failures"
  binary=$(program "$package" "$selection") || fail "the tests of $package do not build"
  [ -x "$binary" ] || fail "no test program for $package $selection"
  printf '\n== %s %s, %s s\n' "$package" "$name" "$seconds"
  began=$SECONDS
  arguments="$place/corpus ${kept:+$PWD/$package/fuzz/$kept} -artifact_prefix=$place/failures/ -timeout=30"
  arguments=$(echo $arguments -rss_limit_mb=4096 -verbosity=0 -print_final_stats=1 -max_total_time="$seconds")
  ran=$((ran + 1))
  # The test runs in the package's folder, as under cargo test.
  if (cd "$package" && BOLERO_LIBFUZZER_ARGS=$arguments "$binary" --exact "$name" --nocapture --test-threads=1) \
    >"$place/log" 2>&1; then
    sed -n 's/^stat::number_of_executed_units: *\([0-9]*\)/\1 inputs/p' "$place/log"
    echo "$(find "$place/corpus" -type f | wc -l) inputs reach different places; $((SECONDS - began)) s"
  else
    failed=$((failed + 1))
    grep -a -v '^ *\(at\|[0-9]*:\) ' "$place/log" | tail -40
    echo "FAILED: the input is in $place/failures, the output in $place/log"
  fi
done < <(targets)

[ "$ran" -gt 0 ] || fail "no target is called so; see scripts/check/fuzz.sh --list"
printf '\n%s targets passed, %s failed\n' $((ran - failed)) "$failed"
[ "$failed" -eq 0 ]
