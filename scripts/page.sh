#!/usr/bin/env bash
# Builds the page that vesta-boot serves: compiles vesta-intf and vesta-explain to wasm, and combines it with markup, style and
# script into one file, with the hashes that its Content-Security-Policy allows. `--check` writes nothing and
# fails if a source has changed since; it needs neither the wasm target nor a build.
#
# Needs python3, and once: rustup target add wasm32-unknown-unknown
set -euo pipefail
cd "$(dirname "$0")/.."

# Digest of everything that the page is made of.
digest() {
  find vesta-intf/src vesta-explain/src scripts/page -type f ! -path '*/generated/*' ! -path '*/tests/*' -print0 |
    LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -d' ' -f1
}

if [ "${1:-}" = --check ]; then
  [ "$(cat vesta-boot/page/sources.sha256)" = "$(digest)" ] || {
    echo "the page does not match its sources: run scripts/page.sh and commit" >&2
    exit 1
  }
  exit 0
fi

target=${CARGO_TARGET_DIR:-target}
cargo build --quiet --profile page -p vesta-page --lib --target wasm32-unknown-unknown
python3 - "$target/wasm32-unknown-unknown/page/vesta_page.wasm" <<'PYTHON'
import base64, gzip, hashlib, pathlib, re, sys

sources, out = pathlib.Path("scripts/page"), pathlib.Path("vesta-boot/page")
read = lambda name: (sources / name).read_text()
rule = base64.b64encode(gzip.compress(pathlib.Path(sys.argv[1]).read_bytes(), 9, mtime=0)).decode()
page = read("index.html")
for mark, text in {
    "/* style.css */": read("style.css"),
    "/* scripts */": "".join(read(f"{name}.js") for name in "words sentences base id layout console page".split()),
    "/* rule */": rule,
}.items():
    assert page.count(mark) == 1, mark
    page = page.replace(mark, text)
hashed = lambda text: "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"
script, = re.findall(r"<script>(.*?)</script>", page, re.S)
style, = re.findall(r"<style>(.*?)</style>", page, re.S)
policy = (
    f"default-src 'none'; script-src {hashed(script)} 'wasm-unsafe-eval'; style-src {hashed(style)}; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
out.mkdir(exist_ok=True)
(out / "index.html").write_text(page)
(out / "policy.txt").write_text(policy)
(out / "table.html").write_text(read("table.html").replace("/* style.css */", style))
PYTHON
digest >vesta-boot/page/sources.sha256
echo "vesta-boot/page: $(($(wc -c <vesta-boot/page/index.html) / 1024)) kB"
