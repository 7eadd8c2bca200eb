#!/usr/bin/env bash
# Prints a Python virtual environment under target/ with the packages of a requirements.txt. It is recreated when
# that changes. A comment "# alone: PACKAGE" names a package that is installed without its dependencies.
#
#   scripts/lib/venv.sh FOLDER       for FOLDER/requirements.txt
set -euo pipefail
cd "$(dirname "$0")/../.."

python3 -c 'import ensurepip, venv' 2>/dev/null || scripts/lib/install.sh python3 python3-venv >&2
requirements=$1/requirements.txt
environment=$(realpath -m "${CARGO_TARGET_DIR:-target}/$(basename "$1")-venv")
if ! cmp --silent "$requirements" "$environment/installed.txt"; then
  rm -rf "$environment"
  python3 -m venv "$environment"
  pip=("$environment/bin/pip" install --quiet --disable-pip-version-check)
  "${pip[@]}" -r "$requirements" >&2
  sed -n 's/^# alone: //p' "$requirements" | xargs -r "${pip[@]}" --no-deps >&2
  cp "$requirements" "$environment/installed.txt"
fi
echo "$environment"
