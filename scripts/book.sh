#!/usr/bin/env bash
# Builds the books of docs/ with mdbook: English into target/book, Chinese into target/book/zh-CN, with links between
# them, and follows every link of their pages. The front pages get the explainer and the designer of scripts/page.
#
#   scripts/book.sh              without mdbook it says so and builds nothing
#   scripts/book.sh --install    installs mdbook if it is missing, into the user's cache: two minutes, once
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.5.4
tools=${XDG_CACHE_HOME:-$HOME/.cache}/vesta/mdbook-$version
if [ ! -x "$tools/bin/mdbook" ]; then
  if [ "${1:-}" != --install ]; then
    echo "the book is not built: mdbook is missing; scripts/book.sh --install installs it"
    exit 0
  fi
  cargo install --quiet --locked --no-default-features --features search --root "$tools" "mdbook@$version"
fi
book=$(realpath -m "${CARGO_TARGET_DIR:-target}")/book
rm -rf "$book"
export MDBOOK_LOG=warn
"$tools/bin/mdbook" build scripts/book --dest-dir "$book"
MDBOOK_BOOK__LANGUAGE=zh-CN MDBOOK_BOOK__SRC=../../docs/zh-CN MDBOOK_BOOK__DESCRIPTION=永不重复的64位ID \
  MDBOOK_OUTPUT__HTML__ADDITIONAL_JS='["pages.js", "chinese.js"]' \
  "$tools/bin/mdbook" build scripts/book --dest-dir "$book/zh-CN"
# The book has no use for its own sources.
rm -rf "$book"/{figures,.nojekyll,zh-CN/.nojekyll}
exec python3 scripts/book/book.py "$book"
