#!/usr/bin/env bash
# Builds the book of docs/ with mdbook into target/book and follows every link of its pages.
#
#   scripts/book.sh              without mdbook it says so and builds nothing
#   scripts/book.sh --install    installs mdbook below the target folder if it is missing
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.5.4
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export PATH=$target/tools/bin:$PATH
if ! command -v mdbook >/dev/null; then
  if [ "${1:-}" != --install ]; then
    echo "the book is not built: mdbook is missing; scripts/book.sh --install installs it"
    exit 0
  fi
  cargo install --quiet --locked --no-default-features --features search --root "$target/tools" "mdbook@$version"
fi
rm -rf "$target/book"
RUST_LOG=warn mdbook build docs --dest-dir "$target/book"
# The book has no use for its own sources.
rm -rf "$target"/book/{book.toml,figures,.nojekyll}
exec python3 scripts/book/book.py "$target/book"
