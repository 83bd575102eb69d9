#!/bin/bash
# Usage: etcd_restore.sh VEDETTE, under with-etcd.sh
# vedette etcd restores snapshots that etcd's own tool has restored before with --bump-revision and
# --mark-compacted, and snapshots of an etcd that was started on those. Its answers must be those of that
# etcd.
# rules: E-165, E-409
set -eu
# shellcheck source=../support/waiting.sh
. "$(dirname "$0")/../support/waiting.sh"

vedette=$1
etcdutl=$(dirname "$ETCDCTL")/etcdutl
dir=$(mktemp -d)
server=
trap 'kill $server 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; tail -n 5 "$dir/err" >&2; exit 1; }
same() { [ "$2" = "$3" ] || fail "$1: wanted '$2', got '$3'"; }
# Without its logs, because they contain times.
tool() { timeout 120 "$ETCDCTL" "$@" 2>&1 | grep -v '^{"level"'; }
real() { tool --endpoints "$ETCD_ENDPOINTS" "$@"; }
ctl() { tool --endpoints "$endpoint" "$@"; }
start() {
	: >"$dir/err"
	: >"$dir/err" # here, because the ready line of the previous server might be read otherwise
	"$vedette" etcd --data-dir "$dir/data" --listen 127.0.0.1:0 "$@" 2>"$dir/err" &
	server=$!
	await_line "$dir/err" '^vedette: ready etcd' $server || fail "vedette etcd $* did not start"
	endpoint=$(sed -n 's/^vedette: ready etcd \([^ ]*\).*/\1/p' "$dir/err")
}
stop() {
	kill -TERM $server
	wait $server || fail "it did not end well"
}
# all COMMAND: every key with its revisions, the store's revision, and the answers to reads and watches below
# it
all() {
	"$1" get "" --prefix -w json | jq -c '[.header.revision, .kvs]'
	"$1" get "" --prefix --rev 8 || true
	"$1" watch --rev 8 a || true
	"$1" lease timetolive "$lease" --keys | sed 's/remaining([0-9]*s)//'
}

for i in 1 2 3; do for key in a b c/1 c/2; do real put "$key" "$i" >/dev/null; done; done
real del c/1 >/dev/null
lease=$(real lease grant 5000 | awk '{ print $2 }')
real put leased 1 --lease "$lease" >/dev/null
real put last 1 >/dev/null
real del last >/dev/null
real snapshot save "$dir/plain.db" >/dev/null
name=$(real member list | cut -d, -f3 | tr -d ' ')
peer=$(real member list | cut -d, -f4 | tr -d ' ')

# The file made by the tool, before any etcd has compacted the marked revision.
"$etcdutl" snapshot restore "$dir/plain.db" --bump-revision 1000000000 --mark-compacted --data-dir "$dir/bumped" --name "$name" --initial-cluster "$name=$peer" \
	--initial-advertise-peer-urls "$peer" >"$dir/err" 2>&1 || fail "etcdutl"
cp "$dir/bumped/member/snap/db" "$dir/bumped.db"
"$PEERS" control stop 0 >/dev/null
rm -rf "$ETCD_DIR/$name"
mv "$dir/bumped" "$ETCD_DIR/$name"
"$PEERS" control start 0 >/dev/null
"$PEERS" control wait >/dev/null
wanted=$(all real)
[[ "$wanted" == *10000000[0-9][0-9]* ]] || fail "the etcd does not stand at the revision it was bumped to: $wanted"
start --restore "$dir/bumped.db"
same "restored from etcdutl's file" "$wanted" "$(all ctl)"
stop
start
same "the same after a restart" "$wanted" "$(all ctl)"
next=$(ctl put a after -w json | jq .header.revision)
same "the next revision" "$next" "$(real put a after -w json | jq .header.revision)"
ctl snapshot save "$dir/ours.db" >/dev/null
wanted=$(all ctl)
stop

# Our own snapshot of that store.
rm -rf "$dir/data"
start --restore "$dir/ours.db"
same "restored from our snapshot of it" "$wanted" "$(all ctl)"
stop

# A snapshot of the etcd that was started on it, after more writes.
real del b >/dev/null
real put b 9 >/dev/null
real compaction "$((next + 1))" --physical >/dev/null
real del b >/dev/null
real snapshot save "$dir/after.db" >/dev/null
wanted=$(all real)
rm -rf "$dir/data"
start --restore "$dir/after.db"
same "restored from an etcd that was started on it" "$wanted" "$(all ctl)"
stop

# All keys deleted, and compacted to that revision: the snapshot has no record of a key.
real del "" --prefix >/dev/null
real compaction "$((next + 4))" --physical >/dev/null
real snapshot save "$dir/empty.db" >/dev/null
wanted=$(all real)
rm -rf "$dir/data"
start --restore "$dir/empty.db"
same "restored from an etcd without a key" "$wanted" "$(all ctl)"
stop

# A recording that begins with the file: a key deleted below the marked revision stays deleted.
"$vedette" record --from-snapshot "$dir/bumped.db" --output "$dir/log.ndjson" 2>"$dir/err" || fail "record"
same "keys of the recording" "a b c/2 leased" "$(jq -r 'select(.key) | .key' "$dir/log.ndjson" | sort | tr '\n' ' ' | sed 's/ $//')"
echo "restored as etcd does"
