#!/usr/bin/env bash
# Tests the page in a real browser: headless Chromium, offline, in both languages. Installs Chromium
# and its driver by apt-get if possible, and Selenium into a virtual environment under target/.
#
#   scripts/check/browser.sh [FOLDER-WITH-THE-PROGRAMS]     default: target/debug
#
# Screenshots of each test are kept in target/browser. With VESTA_TEST_FULL=1 the console is watched for a
# minute instead of a few seconds.
set -euo pipefail
cd "$(dirname "$0")/../.."

missing=()
command -v chromium >/dev/null || missing+=(chromium)
command -v chromedriver >/dev/null || missing+=(chromium-driver)
fc-list :lang=zh 2>/dev/null | grep -q . || missing+=(fonts-noto-cjk fontconfig)
[ ${#missing[@]} = 0 ] || scripts/lib/install.sh "${missing[@]}"

target=${CARGO_TARGET_DIR:-target}
environment=$(scripts/lib/venv.sh scripts/check/browser)
"$environment/bin/python" scripts/check/browser/page.py "${1:-$target/debug}" "$target/browser"
