#!/usr/bin/env bash
# The alerts that docs/OPERATIONS.md suggests, made into a rule file: promtool checks every expression, and
# alerts.test.yml plays when alerts must fire and when they must not. Without a promtool on the PATH it is
# taken from Debian's package prometheus, which is unpacked under target/, not installed: no server starts.
set -euo pipefail
cd "$(dirname "$0")/.."

promtool=$(command -v promtool) || {
  unpacked=${CARGO_TARGET_DIR:-target}/prometheus
  promtool=$unpacked/usr/bin/promtool
  if [ ! -x "$promtool" ]; then
    command -v apt-get >/dev/null || {
      echo "promtool is missing: it comes with Prometheus" >&2
      exit 1
    }
    echo "fetching: promtool"
    rm -rf "$unpacked"
    mkdir -p "$unpacked"
    fetch() (cd "$unpacked" && apt-get download -qq -o APT::Sandbox::User="$(id -un)" prometheus)
    fetch 2>/dev/null || {
      as_root=()
      [ "$(id -u)" = 0 ] || as_root=(sudo)
      "${as_root[@]}" apt-get update -qq
      fetch
    }
    dpkg-deb --extract "$unpacked"/prometheus_*.deb "$unpacked"
    rm "$unpacked"/prometheus_*.deb
  fi
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# A row is: | alert | `expression` or `expression` for N min | urgency |. A bar in an expression is `\|`.
awk -v quote="'" '
  function quoted(text) {
    gsub(quote, quote quote, text)
    return quote text quote
  }
  BEGIN { print "groups:\n  - name: vesta\n    rules:" }
  /^Suggested alerts:/ { inside = 1 }
  /^## / { inside = 0 }
  inside && /^\|/ && !/^\| alert \|/ && !/^\|-/ {
    gsub(/\\\|/, "\001")
    split($0, cell, / *\| */)
    if (split(cell[3], part, "`") != 3 || part[1] != "" || part[3] !~ /^( for [0-9]+ min)?$/) {
      print "no single expression: " $0 >"/dev/stderr"
      exit 1
    }
    gsub("\001", "|", part[2])
    print "      - alert: " quoted(cell[2]) "\n        expr: " quoted(part[2])
    if (split(part[3], word, " ") == 3) print "        for: " word[2] "m"
  }
' docs/OPERATIONS.md >"$folder/alerts.yml"
cp scripts/alerts.test.yml "$folder/"

"$promtool" check rules --lint-fatal "$folder/alerts.yml"
"$promtool" test rules "$folder/alerts.test.yml"
