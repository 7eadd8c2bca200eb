#!/usr/bin/env bash
# Tests the output of scripts/release.sh as users get it: unpacks, installs or starts each package and requests
# IDs. Part of the full run; runs as root on Debian, and installs what it needs from there.
#
#   scripts/check/packages.sh [FOLDER]        default: target/package
set -euo pipefail
cd "$(dirname "$0")/../.."

packages=$(realpath "${1:-target/package}")
missing=()
for tool in buildah:buildah lintian:lintian debootstrap:debootstrap file:file curl:curl systemd-analyze:systemd; do
  command -v "${tool%%:*}" >/dev/null || missing+=("${tool#*:}")
done
[ ! -f "$packages"/vesta-*-aarch64-linux.tar.gz ] || command -v qemu-aarch64 >/dev/null || missing+=(qemu-user)
[ ${#missing[@]} = 0 ] || scripts/lib/install.sh "${missing[@]}"

work=$(mktemp -d)
server=
clean_up() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  for mounted in "$work"/root/var/lib/vesta "$work"/root; do
    ! mountpoint -q "$mounted" || umount "$mounted" || true
  done
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

failed() {
  echo "FAILED: $1" >&2
  exit 1
}
said() { printf '%-28s %s\n' "$1" "$2"; }

(cd "$packages" && sha256sum --quiet --check SHA256SUMS) || failed "a checksum"
machine=$(uname -m)
version=$(ls "$packages"/vesta-*-"$machine"-linux.tar.gz | sed 's/.*vesta-\([0-9.]*\)-.*/\1/')

# --- Static program ----------------------------------------------------------------------------------------
for tarball in "$packages"/vesta-*-linux.tar.gz; do
  tar --extract --gzip --file "$tarball" --directory "$work"
  folder=$work/$(basename "$tarball" .tar.gz)
  program=$folder/bin/vesta
  file "$program" | grep -q 'statically linked' || failed "$program is not static"
  ! file "$program" | grep -q 'not stripped' || failed "$program is not stripped"
  size=$(stat -c %s "$program")
  [ "$size" -le 27000000 ] || failed "$program has $size bytes"
  said "$(basename "$folder")" "$size bytes"
  for file in vesta-intf/proto/vesta/v1/vesta.proto docs/vesta.schema.json deploy/compose/.env.example deploy/systemd/vesta.service \
    deploy/k8s/base/kustomization.yaml; do
    cmp "$file" "$folder/$file" || failed "$file in $(basename "$tarball")"
  done
done
mkdir -p "$work/empty/state"
cp "$work/vesta-$version-$machine-linux/bin/vesta" "$work/empty/"
said "in an empty root" "$(chroot "$work/empty" /vesta gen --state-dir /state --machine-range 0-511)"
other=$work/vesta-$version-aarch64-linux/bin/vesta
if [ "$machine" = x86_64 ] && [ -f "$other" ]; then
  file "$other" | grep -q 'ARM aarch64' || failed "$other is for another processor"
  said "aarch64, emulated" "$(qemu-aarch64 "$other" gen --state-dir "$work/emulated" --machine-range 512-1023)"
fi

# --- From the tarball to the first ID ------------------------------------------------------------------------
times=()
for round in 1 2 3 4 5; do
  began=$(date +%s%N)
  mkdir "$work/try-$round"
  tar --extract --gzip --file "$packages/vesta-$version-$machine-linux.tar.gz" --directory "$work/try-$round"
  "$work/try-$round/vesta-$version-$machine-linux/bin/vesta" gen --state-dir "$work/try-$round/state" >/dev/null
  times+=($((($(date +%s%N) - began) / 1000000)))
done
median=$(printf '%s\n' "${times[@]}" | sort -n | sed -n 3p)
said "tarball to first ID" "$median ms (median of 5)"

# --- Debian packages -------------------------------------------------------------------------------------------
debian=$(dpkg --print-architecture)
for deb in "$packages"/*_"$debian".deb; do
  lintian --fail-on error --suppress-tags bad-distribution-in-changes-file "$deb" || failed "lintian on $deb"
done
said "lintian" "no errors"
root=$work/debian
debootstrap --variant=minbase --include=systemd "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root" >"$work/debootstrap.log" 2>&1 ||
  { tail -3 "$work/debootstrap.log" >&2; failed "a clean Debian"; }
cp "$packages"/*_"$debian".deb "$root/root/"
chroot "$root" sh -c 'dpkg --install /root/*.deb' >"$work/dpkg.log" 2>&1 || { cat "$work/dpkg.log" >&2; failed "dpkg"; }
[ ! -e "$root/etc/systemd/system/multi-user.target.wants/vesta.service" ] || failed "the tool starts a server"
for page in index use/concepts zh-CN/index zh-CN/use/concepts; do
  [ -f "$root/usr/share/doc/vesta/book/$page.html" ] || failed "$page.html of the book is missing"
done
systemd-analyze verify --man=no --root "$root" vesta.service || failed "the unit"
said vesta.service "$(systemd-analyze security --offline=true --no-pager --root "$root" vesta.service |
  sed -n 's/.*Overall exposure level.*: *//p')"
: >"$work/said"
# As the unit starts it: another user, its state directory, and a copy of the settings.
ids() { chroot --userspec=65532:65532 "$root" env STATE_DIRECTORY=/var/lib/vesta /usr/bin/vesta gen -n 100000; }
mkdir -p "$root/var/lib/vesta"
chown 65532:65532 "$root/var/lib/vesta"
ids >"$work/ids"
chroot "$root" cat /etc/vesta/vesta.toml >"$root/tmp/vesta.toml"
chroot --userspec=65532:65532 "$root" env STATE_DIRECTORY=/var/lib/vesta \
  /usr/bin/vesta serve rest --config /tmp/vesta.toml --http-listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 >"$work/said" 2>&1 &
server=$!
until grep -q /status "$work/said"; do kill -0 "$server" || failed "the server of the package"; done
address=$(sed -n 's/^  HTTP  *//p' "$work/said")
curl -sS --noproxy '*' "http://$address/genid" >>"$work/ids"
echo >>"$work/ids"
kill "$server"
wait "$server" || failed "the server of the package did not stop by itself"
server=
# A later version: the same package with another number.
for deb in "$root"/root/*.deb; do
  dpkg-deb --raw-extract "$deb" "$work/again"
  sed -i 's/^Version: .*/&+later/' "$work/again/DEBIAN/control"
  dpkg-deb --root-owner-group --build "$work/again" "$deb" >/dev/null
  rm -rf "$work/again"
done
chroot "$root" sh -c 'dpkg --install /root/*.deb' >>"$work/dpkg.log" 2>&1 || failed "the upgrade"
ids >>"$work/ids"
cp "$root/usr/bin/vesta" "$work/kept"
chroot "$root" sh -c 'dpkg --purge vesta' >>"$work/dpkg.log" 2>&1 || failed "the removal"
[ -f "$root/var/lib/vesta/vesta.db" ] || failed "the state did not outlive the removal"
[ ! -e "$root/usr/bin/vesta" ] || failed "the program did outlive the removal"
repeated=$(sort "$work/ids" | uniq -d | wc -l)
said "install, upgrade, remove" "$repeated of $(wc -l <"$work/ids") IDs repeated, state kept"
[ "$repeated" = 0 ] || failed "IDs repeated"

# --- Image -----------------------------------------------------------------------------------------------------
image=$packages/vesta-$version-$debian.image.tar
if [ -f "$image" ]; then
  store=(--storage-driver vfs --root "$work/containers/root" --runroot "$work/containers/run")
  container=$(buildah "${store[@]}" from "docker-archive:$image")
  inspect() { buildah "${store[@]}" inspect --format "{{.OCIv1.Config.$1}}" "$container"; }
  [ "$(inspect User)" = 65532:65532 ] || failed "the user of the image"
  [ "$(inspect StopSignal)" = SIGTERM ] || failed "the signal of the image"
  mounted=$(buildah "${store[@]}" mount "$container")
  # Its root is read-only, with a separate volume.
  mkdir -p "$work/root" "$work/volume"
  mount --bind "$mounted" "$work/root"
  mount --bind "$work/volume" "$work/root/var/lib/vesta"
  mount -o remount,bind,ro "$work/root"
  chown 65532:65532 "$work/volume"
  : >"$work/image-ids"
  for start in 1 2; do
    : >"$work/said"
    # The image has no shell and no env: both are supplied from outside.
    env -i VESTA_STATE_DIR=/var/lib/vesta HOME=/ "$(command -v chroot)" --userspec=65532:65532 "$work/root" \
      /usr/bin/vesta serve --http-listen 127.0.0.1:0 --grpc-listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 >"$work/said" 2>&1 &
    server=$!
    until grep -q /status "$work/said"; do kill -0 "$server" || { cat "$work/said" >&2; failed "the image"; }; done
    address=$(sed -n 's/^  HTTP  *//p' "$work/said")
    admin=$(sed -n 's|^  admin  *http://\(.*\)/|\1|p' "$work/said")
    [ "$(curl -sS --noproxy '*' -o /dev/null -w '%{http_code}' "http://$admin/readyz")" = 200 ] || failed "readyz"
    "$(command -v chroot)" --userspec=65532:65532 "$work/root" /usr/bin/vesta healthcheck --admin-listen "$admin" \
      >/dev/null || failed "its health check"
    for _ in $(seq 100); do
      curl -sS --noproxy '*' "http://$address/v1/ids?count=1000" | tr -c '0-9' '\n' | grep . >>"$work/image-ids"
    done
    kill -TERM "$server"
    wait "$server" || failed "the image does not end with 0"
    server=
  done
  repeated=$(sort "$work/image-ids" | uniq -d | wc -l)
  said "image, two starts" "$repeated of $(wc -l <"$work/image-ids") IDs repeated, $(stat -c %s "$image") bytes"
  [ "$repeated" = 0 ] || failed "IDs of the image repeated"
  umount "$work/root/var/lib/vesta" "$work/root"
  buildah "${store[@]}" umount "$container" >/dev/null
fi
echo "the packages work"
