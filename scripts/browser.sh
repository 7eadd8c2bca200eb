#!/usr/bin/env bash
# The page in a real browser: headless Chromium, offline, in both languages. Installs Chromium by apt-get
# where that can be, and Selenium into a virtual environment under target/.
#
#   scripts/browser.sh [FOLDER-WITH-THE-PROGRAMS]     default: target/debug
#
# Screenshots of each test are kept in target/browser. With VESTA_TEST_FULL=1 the console is watched for a
# minute instead of a few seconds.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
command -v python3 >/dev/null && python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3 python3-venv)
command -v chromium >/dev/null || missing+=(chromium)
command -v chromedriver >/dev/null || missing+=(chromium-driver)
fc-list :lang=zh 2>/dev/null | grep -q . || missing+=(fonts-noto-cjk fontconfig)
if [ ${#missing[@]} -gt 0 ]; then
  as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null && as_root=(sudo)
  fi
  if ! command -v apt-get >/dev/null || { [ "$(id -u)" != 0 ] && [ ${#as_root[@]} = 0 ]; }; then
    echo "please install: ${missing[*]}, or run scripts/test.sh --without browser" >&2
    exit 1
  fi
  echo "installing: ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >/dev/null
fi

target=${CARGO_TARGET_DIR:-target}
environment=$target/browser-venv
if ! cmp --silent scripts/browser/requirements.txt "$environment/installed.txt"; then
  rm -rf "$environment"
  python3 -m venv "$environment"
  # The checker of accessibility is a script inside a package; what would drive another browser is not needed.
  "$environment/bin/pip" install --quiet --disable-pip-version-check -r scripts/browser/requirements.txt
  "$environment/bin/pip" install --quiet --disable-pip-version-check --no-deps axe-playwright-python==0.1.8
  cp scripts/browser/requirements.txt "$environment/installed.txt"
fi
"$environment/bin/python" scripts/browser/page.py "${1:-$target/debug}" "$target/browser"
