#!/bin/bash
# Usage: etcd-server.sh VEDETTE [--rounds N] [--seed N] [--scale F] [CASE...], under `peers etcd-run`.
# `bench/run etcd-server` does all of that.
# vedette etcd and a real etcd in the same run, with the load of the same clientv3 program, both with fsync.
# Prints one JSON line for each case, server and round. CPU is that of the server. VEDETTE_RPC: the transport
# of vedette (http2, the default, or grpc). CASE is a prefix of case names:
#   idle                  an empty server: memory
#   put:N range:N txn:N   N clients
#   watch:N               N watchers of one key
#   list                  10,000 keys of 1 KB
#   steady:N              N clients, 5,000 puts a second in all
#   piled:N               N watchers of 100 keys that change in one transaction
#   behind:N              8 clients put while N watchers are far behind and do not read
#   keys:N:BYTES          N keys of that size: memory, then the time from a start until the first answer, and
#                         memory after it; once, on new servers
set -eu
vedette=$1
shift
rounds=5 scale=1
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=$2 ;;
	--scale) scale=$2 ;;
	--seed) ;; # nothing here is random
	*) break ;;
	esac
	shift 2
done
scaled() { awk -v n="$1" -v f="$scale" 'BEGIN { n *= f; print n < 1 ? (n < 0.3 ? 0.3 : n) : n }'; }
seconds=$(scaled 3)
dir=$(mktemp -d "${TMPDIR:-/tmp}/etcd-server.XXXXXX")
trap 'kill "$server" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$dir"' EXIT
wanted() {
	local case=$1 name
	shift
	[ $# -gt 0 ] || return 0
	for name; do case "$case" in "$name"*) return 0 ;; esac; done
	return 1
}
now_ms() { echo $(($(date +%s%N) / 1000000)); }

start_vedette() {
	: >"$dir/err"
	"$vedette" etcd --data-dir "$dir/data" --listen 127.0.0.1:0 --quota-backend-bytes -1 --rpc "${VEDETTE_RPC:-http2}" 2>"$dir/err" &
	server=$!
	until grep -q '^vedette: ready' "$dir/err"; do kill -0 "$server"; sleep 0.01; done
	endpoint=$(sed -n 's/^vedette: ready etcd \([^ ]*\).*/\1/p' "$dir/err")
}
stop_vedette() {
	kill -TERM "$server"
	wait "$server"
}
start_etcd() {
	"$PEERS" control start 0 >/dev/null
	until "$ETCDCTL" --endpoints "$ETCD_DIRECT_ENDPOINTS" --command-timeout 10s get nothing >/dev/null 2>&1; do sleep 0.01; done
	find_etcd
}
# The process with that port that is not a shell: etcd itself.
find_etcd() { real=$(pgrep -f "listen-client-urls[= ][^ ]*${ETCD_DIRECT_ENDPOINTS##*:}" | head -n 1); }
start_new() {
	stop_vedette
	rm -rf "$dir/data"
	start_vedette
	"$PEERS" control stop 0 >/dev/null
	"$PEERS" control wipe 0 >/dev/null
	start_etcd
}
# A server whose calls time out has no line for this round.
load_one() { "$PEERS" etcd-load --name "$1" --endpoint "$2" --pid "$3" --seconds "$seconds" "${@:4}" || echo "etcd-server.sh: $1 has no figure for: ${*:4}" >&2; }
load_vedette() { load_one vedette "$endpoint" "$server" "$@"; }
load_etcd() { load_one etcd "$ETCD_DIRECT_ENDPOINTS" "$real" "$@"; }
# One after the other under the same load; the order changes from round to round.
load() {
	if [ $((round % 2)) = 1 ]; then
		load_vedette "$@"
		load_etcd "$@"
	else
		load_etcd "$@"
		load_vedette "$@"
	fi
}
restart() {
	local began
	stop_vedette
	began=$(now_ms)
	start_vedette
	"$ETCDCTL" --endpoints "$endpoint" get nothing >/dev/null
	echo "{\"server\":\"vedette\",\"case\":\"start:$1\",\"ms\":$(($(now_ms) - began))}"
	"$PEERS" control stop 0 >/dev/null
	began=$(now_ms)
	start_etcd
	echo "{\"server\":\"etcd\",\"case\":\"start:$1\",\"ms\":$(($(now_ms) - began))}"
}
start_vedette
find_etcd
round=1
if wanted idle "$@"; then
	start_new
	load --cases usage --as idle
fi
for round in $(seq "$rounds"); do
	for case in put:1 put:8 put:64 put:256 put:1000 steady:256 range:1 range:64 txn:64 list watch:1 watch:100 watch:1000 watch:10000 piled:1000; do
		if wanted "$case" "$@"; then load --cases "$case"; fi
	done
	# Its leftovers must not affect other cases.
	if wanted behind:1000 "$@"; then
		start_new
		load --cases behind:1000
		start_new
	fi
done
round=1
for case in keys:100000:1024 keys:1000000:100; do
	wanted "$case" "$@" || continue
	IFS=: read -r _ count size <<<"$case"
	start_new
	load --size "$size" --cases "bulk:$(scaled "$count" | cut -d. -f1)" --as "$case"
	restart "$case"
	load --cases usage --as "started:$case"
done
