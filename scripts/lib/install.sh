#!/usr/bin/env bash
# Installs Debian packages if permitted; their services are neither enabled nor started.
#
#   scripts/lib/install.sh PACKAGE…
set -euo pipefail

as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null && as_root=(sudo)
fi
if ! command -v apt-get >/dev/null || { [ "$(id -u)" != 0 ] && [ ${#as_root[@]} = 0 ]; }; then
  echo "please install: $*" >&2
  exit 1
fi
quiet=$(mktemp -d)
trap 'rm -r "$quiet"' EXIT
chmod 755 "$quiet"
# The maintainer scripts of the packages find these commands first.
for tool in systemctl service invoke-rc.d deb-systemd-invoke deb-systemd-helper update-rc.d; do
  printf '#!/bin/sh\nexit 0\n' >"$quiet/$tool"
  chmod 755 "$quiet/$tool"
done
echo "installing: $*"
if ! {
  "${as_root[@]}" apt-get update -qq &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      -o DPkg::Path="$quiet:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin" "$@"
} </dev/null >"$quiet/log" 2>&1; then
  tail -n 20 "$quiet/log" >&2
  echo "could not install: $*" >&2
  exit 1
fi
