#!/bin/bash
# Usage: go_controller.sh VEDETTE BUILD-DIR SOURCE-ROOT
# The Go example: a controller on client-go runs against a recorded cluster under many seeds.
# VEDETTE_TEST_SIZE=full: a hundred.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
"$here/build-peers.sh" "$3/examples/go-controller" "$2/go-controller" || exit $?
case "${VEDETTE_TEST_SIZE:-small}" in
full | long) runs=100 ;;
*) runs=16 ;;
esac
exec "$2/go-controller" --vedette "$1" --log "$3/examples/logs/namespace-deletion.ndjson.zst" --runs "$runs"
