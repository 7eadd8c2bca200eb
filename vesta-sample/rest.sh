#!/usr/bin/env bash
# How do I get IDs over REST? With curl, from `vesta serve`.
#
# Start a server (scripts/run.sh rest), then vesta-sample/rest.sh [http://127.0.0.1:8088]
set -euo pipefail
url=${1:-http://127.0.0.1:8088}

get() {
  curl --silent --show-error --fail-with-body "$@"
}

id=$(get "$url/genid")
echo "an ID:            $id"
echo "what is inside:   $(get "$url/expid?id=$id")"
echo "the same as JSON: $(get "$url/v1/ids/$id")"
echo "three at once:    $(get "$url/v1/ids?count=3")"
echo "put together:     $(get "$url/makeid?time=94990103&seq=0&machine=1021&genMethod=2")"
echo "its time:         $(get "$url/transtime?time=94990103")"
