#!/usr/bin/env bash
# The Python package of clients/python: builds the wheel, installs it into a virtual environment under target/, and runs
# its tests: forks, multiprocessing, and gunicorn with workers that are killed.
#
#   scripts/check/python.sh [speed [FILE [ROUNDS]]]     speed: no tests, but the cost of an ID, kept in FILE
set -euo pipefail
cd "$(dirname "$0")/../.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
environment=$(scripts/lib/venv.sh scripts/check/python)
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
(cd clients/python && CARGO_TARGET_DIR=$target/python "$environment/bin/maturin" build --quiet --release --locked \
  --interpreter "$environment/bin/python" --out "$wheels")
"$environment/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps "$wheels"/*.whl
[ "${1:-}" != speed ] || exec "$environment/bin/python" clients/python/tests/speed.py "${@:2}"
# The pages that need the wheel (scripts/check/reader.sh reads the others).
"$environment/bin/python" scripts/check/reader --programs "$target/debug" --grpcurl false \
  docs/use/python.md clients/python/README.md
du -h "$wheels"/*.whl | cut -f1 | sed 's/^/the wheel has /'
# Outside of its sources, which have no compiled module.
cd clients/python/tests
exec "$environment/bin/python" embedded.py
