#!/bin/bash
# Usage: k8s-proto.sh TOOL TABLE BUILD-DIR SOURCE-DIR
# Compares the protobuf transcoder (TOOL) with Go's own libraries on random objects of every kind, and the
# committed TABLE with the Go types. More objects with VEDETTE_TEST_SIZE=full; another seed with
# VEDETTE_TEST_SEED. Exit 77 with the reason if there is no Go.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
peers=$3/peers
"$here/build-peers.sh" "$4" "$peers" || exit $?
if ! "$peers" proto-table | cmp - "$2"; then
	echo "$2 is not what \`peers proto-table\` prints: make it again, or pin k8s.io/api" >&2
	exit 1
fi
rounds=4
if [ "${VEDETTE_TEST_SIZE:-small}" = full ]; then
	rounds=200
fi
exec "$peers" proto-diff --tool "$1" --rounds "$rounds" --seed "${VEDETTE_TEST_SEED:-1}"
