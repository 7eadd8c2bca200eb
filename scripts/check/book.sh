#!/usr/bin/env bash
# Opens every page of the built books in headless Chromium, in a wide and a narrow window: what is wider than its page
# is counted and has a budget. Also tries the playground of both front pages, and the search in Chinese.
#
#   scripts/check/book.sh          after scripts/book.sh; screenshots are kept in target/browser
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-target}
python=$(scripts/lib/chromium.sh)
exec "$python" scripts/check/browser/book.py "$target/book" "$target/browser"
