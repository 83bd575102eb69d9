#!/bin/bash
# Usage: two-servers.sh VEDETTE, under with-etcd.sh
# Two `vedette serve --etcd` on one etcd: they serve the same revisions; a client that moves from one to the
# other resumes its watch without a list; a compaction disturbs neither; after kill -9 of etcd both serve
# etcd's state again, and report not ready before.
# pipefail: jq -e of Debian 12 accepts an empty answer
set -euo pipefail
# shellcheck source=../support/waiting.sh
. "$(dirname "$0")/../support/waiting.sh"

vedette=$1
scratch=$(mktemp -d)
pids=()
cleanup() {
	for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
	rm -rf "$scratch"
}
trap cleanup EXIT
fail() {
	echo "two-servers.sh: $*" >&2
	tail -n 5 "$scratch"/*.log >&2 || true
	exit 1
}
until_true() { await_success "" "$@" || fail "this did not become true: $*"; }
ready_line() { grep -q '^vedette: ready' "$scratch/$1.log"; }
for name in a b; do
	: >"$scratch/$name.log" # here, because the ready line of the previous server might be read otherwise
	"$vedette" serve --etcd "$ETCD_ENDPOINTS" --listen 127.0.0.1:0 2>"$scratch/$name.log" &
	pids+=($!)
done
for name in a b; do until_true ready_line $name; done
a=$(sed -n 's/^vedette: ready //p' "$scratch/a.log")
b=$(sed -n 's/^vedette: ready //p' "$scratch/b.log")
maps=/api/v1/namespaces/default/configmaps
put() { curl -sf -X POST -H 'Content-Type: application/json' "$1$maps" -d "{\"metadata\":{\"name\":\"$2\"}}" | jq -r .metadata.resourceVersion; }
# list SERVER: "revision name@revision ..."
list() { curl -sf "$1$maps" | jq -r '.metadata.resourceVersion + " " + ([.items[] | .metadata.name + "@" + .metadata.resourceVersion] | join(" "))'; }
# watch_into SERVER REVISION FILE
watch_into() {
	: >"$3"
	curl -sN "$1$maps?watch=true&allowWatchBookmarks=false&resourceVersion=$2" >>"$3" &
	pids+=($!)
}
lines() { [ "$(wc -l <"$1")" -ge "$2" ]; }
events() { jq -r '.type + " " + .object.metadata.name + "@" + .object.metadata.resourceVersion' "$1" | paste -sd' '; }

one=$(put "$a" one)
two=$(put "$b" two)
[ "$(list "$a")" = "$(list "$b")" ] || fail "lists differ: $(list "$a") / $(list "$b")"
[ "$(list "$a" | cut -d' ' -f1)" -ge "$two" ] || fail "a list is older than the last write"

# Events up to `one` from a; then continue at b.
watch_into "$b" "$one" "$scratch/moved"
three=$(put "$a" three)
until_true lines "$scratch/moved" 2
[ "$(events "$scratch/moved")" = "ADDED two@$two ADDED three@$three" ] || fail "resumed at the other server: $(events "$scratch/moved")"

# Compact all older revisions while watches run.
"$ETCDCTL" --endpoints "$ETCD_ENDPOINTS" compaction "$three" >/dev/null
four=$(put "$b" four)
until_true lines "$scratch/moved" 3
watch_into "$a" "$three" "$scratch/after"
until_true lines "$scratch/after" 1
[ "$(events "$scratch/after")" = "ADDED four@$four" ] || fail "after the compaction: $(events "$scratch/after")"

# etcd is killed: not ready, but cached data is served. etcd restarts: the state is etcd's, and the same watch
# continues.
not_ready() { ! curl -sf "$1/readyz" >/dev/null; }
is_ready() { curl -sf "$1/readyz" >/dev/null; }
"$PEERS" control kill 0 >/dev/null
until_true not_ready "$a"
curl -sf "$a$maps?resourceVersion=0" | jq -e '.items | length == 4' >/dev/null || fail "the cache does not serve while etcd is gone"
"$PEERS" control start 0 >/dev/null
"$PEERS" control wait >/dev/null
until_true is_ready "$a"
until_true is_ready "$b"
five=$(put "$a" five)
until_true lines "$scratch/moved" 4
[ "$(events "$scratch/moved")" = "ADDED two@$two ADDED three@$three ADDED four@$four ADDED five@$five" ] || fail "over etcd's death: $(events "$scratch/moved")"
[ "$(list "$a")" = "$(list "$b")" ] || fail "lists differ afterwards"
in_etcd=$("$ETCDCTL" --endpoints "$ETCD_ENDPOINTS" get --prefix /registry/configmaps/default/ --keys-only | grep -c .)
[ "$(list "$a" | wc -w)" -eq $((in_etcd + 1)) ] || fail "etcd has $in_etcd of them: $(list "$a")"

# etcd is gone for good: both servers end within 10 s, cleanly.
"$PEERS" control kill 0 >/dev/null
begin=$SECONDS
kill -TERM "${pids[0]}" "${pids[1]}"
for pid in "${pids[0]}" "${pids[1]}"; do
	status=0
	wait "$pid" || status=$?
	[ "$status" -eq 0 ] || fail "SIGTERM without etcd: status $status"
done
[ $((SECONDS - begin)) -le 10 ] || fail "SIGTERM without etcd took $((SECONDS - begin)) s"
echo "two-servers.sh: all was well"
