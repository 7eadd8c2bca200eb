#!/usr/bin/env bash
# Phrases that make a reader stop: in comments, documents, test names and scripts; and sentences of more than 30 words
# in README.md and docs/use. Fails if there are more than the budget in docs/prose.py, or fewer: then lower it.
#
#   scripts/check/prose.sh           counts
#   scripts/check/prose.sh --list    names every place
set -euo pipefail
cd "$(dirname "$0")/../.."
exec python3 scripts/check/docs/prose.py "$@"
