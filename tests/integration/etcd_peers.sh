#!/bin/bash
# Usage: etcd_peers.sh SUBCOMMAND VEDETTE, under with-etcd.sh (which builds the program)
set -eu
exec "$PEERS" "$1" --program "$2"
