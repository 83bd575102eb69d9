#!/bin/bash
# Usage: etcd_diff.sh VEDETTE, under with-etcd.sh
# Sends the same operations to a real etcd and to vedette etcd, and compares every field of every answer.
# VEDETTE_TEST_SIZE=long: many more operations, with the date as seed.
set -eu
case "${VEDETTE_TEST_SIZE:-small}" in
long) size="--operations 20000 --seed $(date +%Y%m%d)" ;;
full) size="--operations 4000 --seed 77" ;;
*) size="--operations 1000 --seed 12" ;;
esac
# shellcheck disable=SC2086
exec "$PEERS" etcd-diff --program "$1" $size
