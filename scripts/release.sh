#!/usr/bin/env bash
# Builds a tarball with the programs, the documents, an example configuration and systemd units:
#
#   scripts/release.sh [FOLDER]     default: target/release-package
set -euo pipefail
cd "$(dirname "$0")/.."

out=${1:-target/release-package}
target=${CARGO_TARGET_DIR:-target}
version=$(cargo metadata --no-deps --format-version 1 |
  sed 's/.*"name":"vesta-server","version":"\([^"]*\)".*/\1/')
host=$(rustc -vV | sed -n 's/^host: //p')
name=vesta-$version-$host

cargo build --profile dist --locked -p vesta-server -p vesta-rest -p vesta-cli --features vesta-cli/all-stores

rm -rf "${out:?}/$name"
mkdir -p "$out/$name"/{bin,etc,systemd,doc,proto}
install -m 755 "$target/dist/vesta" "$out/$name/bin/"
for role in server rest; do
  install -m 755 "$target/dist/vesta-$role" "$out/$name/bin/"
  install -m 644 docs/vesta.example.toml "$out/$name/etc/vesta-$role.toml"
done
install -m 644 scripts/systemd/*.service "$out/$name/systemd/"
install -m 644 docs/*.md "$out/$name/doc/"
install -m 644 README.md README.zh-CN.md LICENSE "$out/$name/"
install -m 644 vesta-intf/proto/vesta/v1/vesta.proto "$out/$name/proto/"
strip "$out/$name"/bin/* 2>/dev/null || true

# The same input gives the same archive.
tar --create --gzip --file "$out/$name.tar.gz" --directory "$out" \
  --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" "$name"
(cd "$out" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
echo "$out/$name.tar.gz"
