#!/bin/bash
# Usage: etcd-server.sh VEDETTE, under tests/integration/with-etcd.sh:
#   tests/integration/with-etcd.sh build/tests/peers tests/peers --flag=--quota-backend-bytes=8000000000 -- bench/etcd-server.sh build/tools/vedette/vedette
# vedette etcd beside a real etcd in the same run, loaded by the same clientv3 program, both with fsync: one JSON line for each case and server. CPU is that of the server.
set -eu
vedette=$1
cases=${2:-put:1,put:64,put:256,range:64,txn:64,list,watch:1,watch:100,watch:1000}
seconds=${3:-3}
dir=$(mktemp -d "${TMPDIR:-/tmp}/etcd-server.XXXXXX")
trap 'kill "$server" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$dir"' EXIT
"$vedette" etcd --data-dir "$dir/data" --listen 127.0.0.1:0 --quota-backend-bytes -1 2>"$dir/err" &
server=$!
for _ in $(seq 100); do grep -q '^vedette: ready' "$dir/err" && break; sleep 0.1; done
endpoint=$(sed -n 's/^vedette: ready etcd \([^ ]*\).*/\1/p' "$dir/err")
real=$(pgrep -f "listen-client-urls[= ][^ ]*${ETCD_DIRECT_ENDPOINTS##*:}" | head -n 1)
# Case by case, one server after the other, so that both meet the same weather.
for case in ${cases//,/ }; do
	"$PEERS" etcd-load --name vedette --endpoint "$endpoint" --pid "$server" --cases "$case" --seconds "$seconds"
	"$PEERS" etcd-load --name etcd --endpoint "$ETCD_DIRECT_ENDPOINTS" --pid "$real" --cases "$case" --seconds "$seconds"
done
