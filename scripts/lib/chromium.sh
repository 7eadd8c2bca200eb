#!/usr/bin/env bash
# Prints a Python with Selenium in a virtual environment under target/. Installs Chromium, its driver and Chinese fonts
# by apt-get if possible.
set -euo pipefail
cd "$(dirname "$0")/../.."

missing=()
command -v chromium >/dev/null || missing+=(chromium)
command -v chromedriver >/dev/null || missing+=(chromium-driver)
fc-list :lang=zh 2>/dev/null | grep -q . || missing+=(fonts-noto-cjk fontconfig)
[ ${#missing[@]} = 0 ] || scripts/lib/install.sh "${missing[@]}" >&2
echo "$(scripts/lib/venv.sh scripts/check/browser)/bin/python"
