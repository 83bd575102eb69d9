#!/bin/bash
# Usage: round_trip.sh VEDETTE BUILD-DIR SOURCE-DIR
# round_trip.py serve, with the load that tests/peers is built for.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
"$here/build-peers.sh" "$3" "$2/peers" || exit $?
exec "$here/round_trip.py" serve "$1" "$2/peers"
