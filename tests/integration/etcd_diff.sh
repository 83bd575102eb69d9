#!/bin/bash
# Usage: etcd_diff.sh VEDETTE, under with-etcd.sh
# The same operations to a real etcd and to vedette etcd, every field of every answer compared; the seed changes with the day.
set -eu
operations=1000
[ "${VEDETTE_TEST_SIZE:-}" = full ] && operations=20000
exec "$PEERS" etcd-diff --program "$1" --operations "$operations" --seed "$(date +%Y%m%d)"
