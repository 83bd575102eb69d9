#!/bin/bash
# Usage: etcd-server.sh VEDETTE [CASES [SECONDS]], under tests/integration/with-etcd.sh:
#   tests/integration/with-etcd.sh build/tests/peers tests/peers --flag=--quota-backend-bytes=8000000000 -- bench/etcd-server.sh build/tools/vedette/vedette
# vedette etcd beside a real etcd in the same run, loaded by the same clientv3 program, both with fsync: one JSON line for each case and server. CPU is that of the server.
#   put:N range:N txn:N   N clients            watch:N    N watchers of one key           list       10,000 keys of 1 KB
#   behind:N              8 clients put while N watchers are far behind and do not read
#   keys:N                N keys of 100 bytes: memory, then the time of a start with them, and memory after it
set -eu
vedette=$1
cases=${2:-put:1,put:64,put:256,put:1000,range:1,range:64,txn:64,list,watch:1,watch:100,watch:1000,watch:10000,behind:1000,keys:100000,keys:1000000}
seconds=${3:-3}
dir=$(mktemp -d "${TMPDIR:-/tmp}/etcd-server.XXXXXX")
trap 'kill "$server" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$dir"' EXIT
start() {
	: >"$dir/err"
	"$vedette" etcd --data-dir "$dir/data" --listen 127.0.0.1:0 --quota-backend-bytes -1 2>"$dir/err" &
	server=$!
	until grep -q '^vedette: ready' "$dir/err"; do kill -0 "$server"; sleep 0.01; done
	endpoint=$(sed -n 's/^vedette: ready etcd \([^ ]*\).*/\1/p' "$dir/err")
}
find_real() { real=$(pgrep -f "listen-client-urls[= ][^ ]*${ETCD_DIRECT_ENDPOINTS##*:}" | head -n 1); }
now_ms() { echo $(($(date +%s%N) / 1000000)); }
load() {
	"$PEERS" etcd-load --name vedette --endpoint "$endpoint" --pid "$server" --seconds "$seconds" "$@"
	"$PEERS" etcd-load --name etcd --endpoint "$ETCD_DIRECT_ENDPOINTS" --pid "$real" --seconds "$seconds" "$@"
}
# Starts each again, until it answers.
restart() {
	kill -TERM "$server"
	wait "$server"
	began=$(now_ms)
	start
	"$ETCDCTL" --endpoints "$endpoint" get nothing >/dev/null
	echo "{\"server\":\"vedette\",\"case\":\"start:$1\",\"ms\":$(($(now_ms) - began))}"
	"$PEERS" control stop 0 >/dev/null
	began=$(now_ms)
	"$PEERS" control start 0 >/dev/null
	until "$ETCDCTL" --endpoints "$ETCD_DIRECT_ENDPOINTS" --command-timeout 10s get nothing >/dev/null 2>&1; do sleep 0.01; done
	echo "{\"server\":\"etcd\",\"case\":\"start:$1\",\"ms\":$(($(now_ms) - began))}"
	find_real
}
start
find_real
# Case by case, one server after the other, so that both meet the same weather.
for case in ${cases//,/ }; do
	case $case in
	keys:*)
		load --size 100 --cases "bulk:${case#keys:}"
		restart "${case#keys:}"
		load --cases usage
		;;
	*) load --cases "$case" ;;
	esac
done
