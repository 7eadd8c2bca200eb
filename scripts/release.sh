#!/usr/bin/env bash
# Builds the release with one command: the static program for Linux on x86_64 and aarch64, tarballs, Debian
# packages, the container image, an SBOM, and checksums.
#
#   scripts/release.sh                    everything, into target/package
#   scripts/release.sh --target x86_64    for one architecture (x86_64, aarch64); can be repeated
#   scripts/release.sh --no-image         without the image
#
# Needs Rust with rustup and Python; it fetches everything else into target/, and buildah for the image from
# Debian. The same sources give the same tarballs.
set -euo pipefail
cd "$(dirname "$0")/.."

architectures=()
image=true
while [ $# -gt 0 ]; do
  case $1 in
    --target)
      case ${2:-} in
        x86_64 | aarch64) architectures+=("$2") ;;
        *)
          echo "--target takes x86_64 or aarch64" >&2
          exit 64
          ;;
      esac
      shift 2
      ;;
    --no-image)
      image=false
      shift
      ;;
    -h | --help)
      sed -n '2,11s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    *)
      echo "unknown: $1; see scripts/release.sh --help" >&2
      exit 64
      ;;
  esac
done
[ ${#architectures[@]} -gt 0 ] || architectures=(x86_64 aarch64)

out=$PWD/target/package
stage=$out/stage
target=${CARGO_TARGET_DIR:-$PWD/target}
version=$(cargo metadata --no-deps --format-version 1 |
  sed 's/.*"name":"vesta-cli","version":"\([^"]*\)".*/\1/')
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
moment=$(git log -1 --format=%ct 2>/dev/null || echo 0)
features=vesta-cli/all-stores,vesta-cli/otel

! $image || command -v buildah >/dev/null || scripts/lib/install.sh buildah

# A compiler and a linker for other systems.
zig=$(scripts/lib/venv.sh scripts/lib/zig)
export PATH=$zig/bin:$target/tools/bin:$PATH
deb_version=3.6.2
if ! cargo-deb --version 2>/dev/null | grep -qx "$deb_version"; then
  echo "installing cargo-deb $deb_version"
  cargo install --quiet --locked "cargo-deb@$deb_version" --root "$target/tools"
fi
scripts/book.sh --install

# Keeps the paths of the build machine out of the program.
cargo_home=${CARGO_HOME:-$HOME/.cargo}
sysroot=$(rustc --print sysroot)
export RUSTFLAGS="--remap-path-prefix=$PWD=/vesta --remap-path-prefix=$cargo_home=/cargo \
--remap-path-prefix=$sysroot=/rust --remap-path-prefix=$target=/target"
export CFLAGS="-ffile-prefix-map=$cargo_home=/cargo -ffile-prefix-map=$target=/target -ffile-prefix-map=$PWD=/vesta"
export SOURCE_DATE_EPOCH=$moment

rm -rf "$out"
mkdir -p "$stage"/{man,completions}
cp -r "$target/book" "$stage/"
# From the program of the build machine: pages and completions are the same everywhere.
own=$(uname -m)
case " ${architectures[*]} " in
  *" $own "*) ;;
  *)
    echo "the program itself writes the manual: $own must be among the targets" >&2
    exit 64
    ;;
esac

built() { echo "$target/$1-unknown-linux-musl/release"; }

for architecture in "${architectures[@]}"; do
  triple=$architecture-unknown-linux-musl
  rustup target list --installed | grep -qx "$triple" || rustup --quiet target add "$triple"
  echo "building for $triple"
  cargo zigbuild --quiet --release --locked --target "$triple" --features "$features" -p vesta-cli
  if grep -qaF -e "$PWD/" -e "$cargo_home/" "$(built "$architecture")/vesta"; then
    echo "vesta for $architecture contains a path of this machine" >&2
    exit 1
  fi
done

own_vesta=$(built "$own")/vesta
"$own_vesta" man "$stage/man" 2>/dev/null
gzip -9n "$stage"/man/*.1
"$own_vesta" completions bash >"$stage/completions/vesta.bash"
"$own_vesta" completions zsh >"$stage/completions/_vesta"
"$own_vesta" completions fish >"$stage/completions/vesta.fish"
printf 'vesta (%s-1) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- %s  %s\n' \
  "$version" "The Vesta developers <vesta@vesta-id.dev>" "$(date --utc --date="@$moment" -R)" >"$stage/changelog"

for architecture in "${architectures[@]}"; do
  triple=$architecture-unknown-linux-musl
  name=vesta-$version-$architecture-linux
  # The documents name files by their repository paths.
  proto=vesta-intf/proto/vesta/v1
  mkdir -p "$stage/$name"/{bin,etc,"$proto",man,completions,ops,deploy}
  install -m 755 "$(built "$architecture")/vesta" "$stage/$name/bin/"
  install -m 600 docs/vesta.example.toml "$stage/$name/etc/vesta.toml"
  cp -r deploy/{README.md,compose,image,k8s,systemd} "$stage/$name/deploy/"
  cp -r docs "$stage/$name/"
  cp -r "$stage/book" "$stage/$name/docs/book"
  install -m 644 ./*.md LICENSE "$stage/$name/"
  install -m 644 "$proto/vesta.proto" "$stage/$name/$proto/"
  cp "$stage"/man/*.gz "$stage/$name/man/"
  cp -r "$stage"/completions/* "$stage/$name/completions/"
  cp -r ops/* "$stage/$name/ops/" 2>/dev/null || true
  # The same input gives the same archive.
  tar --create --directory "$stage" --sort=name --owner=0 --group=0 --numeric-owner \
    --mtime="@$moment" "$name" | gzip -9n >"$out/$name.tar.gz"

  cargo deb --quiet --no-build --no-strip --profile release --target "$triple" -p vesta-cli --output "$out/"
done

cargo metadata --locked --format-version 1 --filter-platform "$own-unknown-linux-musl" --features "$features" |
  python3 scripts/release/sbom.py Cargo.lock "$version" >"$out/vesta-$version.cdx.json"

if $image; then
  store=(--storage-driver vfs --root "$target/containers/root" --runroot "$target/containers/run")
  for architecture in "${architectures[@]}"; do
    case $architecture in x86_64) debian=amd64 ;; aarch64) debian=arm64 ;; esac
    context=$stage/image-$architecture
    mkdir -p "$context"/rootfs/{usr/bin,var/lib/vesta,etc/ssl/certs}
    install -m 755 "$(built "$architecture")/vesta" "$context/rootfs/usr/bin/"
    # Authorities by which databases and servers with TLS are trusted.
    install -m 644 /etc/ssl/certs/ca-certificates.crt "$context/rootfs/etc/ssl/certs/"
    buildah "${store[@]}" bud --quiet --isolation chroot --platform "linux/$debian" --timestamp "$moment" \
      --build-arg "VERSION=$version" --build-arg "REVISION=$revision" --format docker \
      --file deploy/image/Containerfile --tag "vesta:$version-$debian" "$context" >/dev/null
    buildah "${store[@]}" push --quiet "vesta:$version-$debian" \
      "docker-archive:$out/vesta-$version-$debian.image.tar:vesta:$version"
  done
fi

rm -rf "$stage"/vesta-* "$stage"/image-*
(cd "$out" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum >SHA256SUMS)
(cd "$out" && ls -l --block-size=1 | awk 'NR > 1 && $1 !~ /^d/ { printf "%12d  %s\n", $5, $9 }')
