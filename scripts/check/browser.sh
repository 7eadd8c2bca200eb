#!/usr/bin/env bash
# Tests the page in a real browser: headless Chromium, offline, in both languages.
#
#   scripts/check/browser.sh [FOLDER-WITH-THE-PROGRAMS]     default: target/debug
#
# Screenshots of each test are kept in target/browser. With VESTA_TEST_FULL=1 the console is watched for a
# minute instead of a few seconds.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-target}
python=$(scripts/lib/chromium.sh)
"$python" scripts/check/browser/page.py "${1:-$target/debug}" "$target/browser"
