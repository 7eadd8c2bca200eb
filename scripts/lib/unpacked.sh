#!/usr/bin/env bash
# Prints the path of a program: the one on the PATH, or that of a Debian package, which is unpacked under target/
# and not installed, so that none of its services starts.
#
#   scripts/lib/unpacked.sh PACKAGE PROGRAM
set -euo pipefail
cd "$(dirname "$0")/../.."

package=$1 program=$2
command -v "$program" && exit
unpacked=$(realpath -m "${CARGO_TARGET_DIR:-target}/$package")
if [ ! -x "$unpacked/usr/bin/$program" ]; then
  command -v apt-get >/dev/null || {
    echo "$program is missing: it is in Debian's package $package" >&2
    exit 1
  }
  echo "fetching: $program" >&2
  rm -rf "$unpacked"
  mkdir -p "$unpacked"
  fetch() (cd "$unpacked" && apt-get download -qq -o APT::Sandbox::User="$(id -un)" "$package" >&2)
  fetch 2>/dev/null || {
    as_root=()
    [ "$(id -u)" = 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get update -qq >&2
    fetch
  }
  dpkg-deb --extract "$unpacked"/"$package"_*.deb "$unpacked"
  rm "$unpacked"/"$package"_*.deb
fi
echo "$unpacked/usr/bin/$program"
