#!/bin/bash
# Usage: etcd_run.sh, under with-etcd.sh --proxy
# The environment of the other tests with a real etcd: it starts, its members can be killed, frozen and
# started again and keep their data, and its proxies inject faults.
set -eu

etcdctl() { "$ETCDCTL" --endpoints "$ETCD_ENDPOINTS" ${ETCD_CACERT:+--cacert "$ETCD_CACERT" --cert "$ETCD_CERT" --key "$ETCD_KEY"} "$@"; }
control() { "$PEERS" control "$@"; }
tell() { control "$@" >/dev/null; }
same() {
	if [ "$2" != "$3" ]; then
		echo "$1: wanted '$2', got '$3'" >&2
		exit 1
	fi
}

same "put" OK "$(etcdctl put a 1)"
members=$(control members)
same "endpoints" "$ETCD_ENDPOINTS" "$(control endpoints)"
same "direct endpoints" "$ETCD_DIRECT_ENDPOINTS" "$(control endpoints direct)"
killed=$(control kill leader)
control state | grep -q down
tell start "$killed"
tell wait
same "after kill -9" 1 "$(etcdctl get a --print-value-only)"
tell restart all
tell wait
same "after kill -9 of all" 1 "$(etcdctl get a --print-value-only)"
tell stop 0
tell start 0
tell wait
tell pause 0
control state | grep -q paused
tell resume 0
tell wait
if [ "$members" -gt 1 ]; then
	paused=$(control pause leader)
	# The other members elect another leader.
	test "$(control leader)" != "$paused"
	tell resume "$paused"
	tell wait
fi
tell proxy all refuse on
if etcdctl --dial-timeout 1s --command-timeout 1s put a 2 >/dev/null 2>&1; then
	echo "a put went through a proxy that refuses" >&2
	exit 1
fi
tell proxy all heal
same "after heal" OK "$(etcdctl put a 2)"
tell proxy all delay 20ms
same "delayed" OK "$(etcdctl put a 3)"
tell proxy all pieces 1
same "byte by byte" 3 "$(etcdctl get a --print-value-only)"
if control no-such-command 2>/dev/null; then
	exit 1
fi
if [ "$members" -eq 1 ]; then
	tell kill 0
	tell wipe 0
	tell start 0
	tell wait
	tell proxy all heal
	same "a new etcd" "" "$(etcdctl get a --print-value-only)"
fi
