#!/usr/bin/env bash
# Checks builds with default features. Embedding costs no async runtime, no network stack, no database and at most 25
# crates. `cargo run -- serve` can be a member of a pool server. The lock file of the wheel is up to date.
set -euo pipefail
cd "$(dirname "$0")/../.."

crates=$(cargo tree -p vesta-service --edges normal,build --prefix none --format '{p}' |
  sed 's/ (\*)$//; s/ .*//' | sort -u)
count=$(wc -l <<<"$crates")
forbidden=$(grep -xE 'tokio|async-std|smol|futures.*|hyper|reqwest|tonic|prost|actix.*|axum|rusqlite|libsqlite3-sys|sqlx.*|redis' <<<"$crates" || true)

if [ -n "$forbidden" ]; then
  printf 'vesta-service must not depend on: %s\n' $forbidden >&2
  exit 1
fi
if [ "$count" -gt 25 ]; then
  printf 'vesta-service has %s crates, at most 25 are allowed:\n%s\n' "$count" "$crates" >&2
  exit 1
fi
echo "vesta-service: $count crates, no async runtime, no network, no database"

features=$(cargo tree -p vesta-cli --edges normal --prefix none --format '{p} features: {f}')
grep -q '^vesta-store .*features:.*pool-server' <<<"$features" || {
  echo "a default build of vesta cannot be a member of a pool_server" >&2
  exit 1
}

# The wheel is built with its own lock file, which knows what the crates need.
cargo tree --locked --manifest-path clients/python/Cargo.toml >/dev/null
