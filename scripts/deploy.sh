#!/usr/bin/env bash
# The files of deploy/: rendered, held against the schemas of Kubernetes, Compose and Prometheus, and against the
# program that they start. Nothing is deployed.
#
#   scripts/deploy.sh [FOLDER-WITH-THE-PROGRAMS]     default: target/debug
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
programs=${1:-$target/debug}
# Tools that are used and not run as services are unpacked from Debian's packages, not installed.
unpacked() {
  local package=$1 program=$2 folder=$target/$1
  command -v "$program" && return
  if [ ! -x "$folder/usr/bin/$program" ]; then
    command -v apt-get >/dev/null || {
      echo "$program is missing" >&2
      exit 1
    }
    echo "fetching: $program" >&2
    rm -rf "$folder"
    mkdir -p "$folder"
    fetch() (cd "$folder" && apt-get download -qq -o APT::Sandbox::User="$(id -un)" "$package" >&2)
    fetch 2>/dev/null || {
      apt-get update -qq >&2
      fetch
    }
    dpkg-deb --extract "$folder"/"$package"_*.deb "$folder"
    rm "$folder"/"$package"_*.deb
  fi
  echo "$folder/usr/bin/$program"
}
promtool=$(unpacked prometheus promtool)
kubectl=$(unpacked kubernetes-client kubectl)
PATH=$(dirname "$kubectl"):$PATH
export PATH

environment=$target/deploy-venv
if ! cmp --silent scripts/deploy/requirements.txt "$environment/installed.txt"; then
  rm -rf "$environment"
  python3 -m venv "$environment"
  "$environment/bin/pip" install --quiet --disable-pip-version-check -r scripts/deploy/requirements.txt
  # The schema of Compose is a file of its old implementation; nothing else of that is needed.
  "$environment/bin/pip" install --quiet --disable-pip-version-check --no-deps docker-compose==1.29.2
  cp scripts/deploy/requirements.txt "$environment/installed.txt"
fi
schema=$("$environment/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/compose/config/compose_spec.json
"$environment/bin/python" scripts/deploy/check.py "$programs/vesta" "$promtool" "$schema"
