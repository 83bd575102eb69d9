#!/bin/bash
# Usage: etcd_record.sh VEDETTE, under with-etcd.sh --members 3 --proxy
# record, replay and verify on a real etcd. While verify writes to it, members are killed and connections cut.
# The guarantees must hold; the recording, which is also killed, must have every revision once and replay to
# the same state.
set -eu
# shellcheck source=../support/waiting.sh
. "$(dirname "$0")/../support/waiting.sh"

vedette=$1
scratch=$(mktemp -d)
recorder= verifier= watcher=
trap 'kill -9 $recorder $verifier $watcher 2>/dev/null || true; rm -rf "$scratch"' EXIT
etcdctl() { "$ETCDCTL" --endpoints "$ETCD_DIRECT_ENDPOINTS" "$@"; }
tell() { "$PEERS" control "$@" >/dev/null; }
revision() { etcdctl get x -w json | jq .header.revision; }
fail() {
	echo "$*" >&2
	tail -n 30 "$scratch"/*.err >&2
	exit 1
}
configmap() {
	etcdctl put "/registry/configmaps/default/$1" "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"$1\",\"namespace\":\"default\"},\"data\":{\"key\":\"$2\"}}" >/dev/null
}
start_recording() {
	"$vedette" record --etcd "$ETCD_ENDPOINTS" --output "$scratch/log.ndjson.zst" --resume --redact .data.secret "$@" 2>>"$scratch/record.err" &
	recorder=$!
}

configmap before 1
start_recording
# The following changes come after the recorded state.
has_state() { zstd -dc "$scratch/log.ndjson.zst" 2>/dev/null | grep -q snapshotEnd; }
await_success $recorder has_state || fail "record has ended"
"$vedette" verify --etcd "$ETCD_ENDPOINTS" --drive --writers 4 --duration 8s --output json >"$scratch/verify.out" 2>"$scratch/verify.err" &
verifier=$!
configmap during 1
tell proxy all cut
tell kill leader
tell proxy all delay 5ms
kill -9 $recorder
wait $recorder 2>/dev/null || true
tell wait
configmap unseen 1
start_recording
tell start all || true
tell wait
tell proxy all heal
configmap during 2
wait $verifier || fail "verify: $(cat "$scratch/verify.out")"
verifier=
jq -es '.[-1] | .result == "ok" and .writes > 50 and .lists >= 1 and .resumes >= 1' "$scratch/verify.out" >/dev/null || fail "verify: $(cat "$scratch/verify.out")"
configmap after 1
last=$(revision)
kill -TERM $recorder
wait $recorder || fail "record did not end well"
start_recording --until "$last"
wait $recorder || fail "record --until did not end well"
recorder=

# Each revision once, in order, none missing, compared with etcd's own history.
zstd -dc "$scratch/log.ndjson.zst" >"$scratch/log.ndjson"
jq -r 'select(.commit) | .commit' "$scratch/log.ndjson" >"$scratch/recorded"
sort -n -u "$scratch/recorded" | cmp -s - "$scratch/recorded" || fail "revisions are not in order, or not unique"
first=$(jq -r 'select(.snapshotEnd) | .snapshotEnd' "$scratch/log.ndjson" | head -n 1)
"$ETCDCTL" --endpoints "$ETCD_DIRECT_ENDPOINTS" watch --rev $((first + 1)) --prefix '' -w json >"$scratch/watched" 2>/dev/null &
watcher=$!
has_last() { [ "$(jq -r '.Events[].kv.mod_revision' "$scratch/watched" 2>/dev/null | sort -n | tail -n 1)" -ge "$last" ]; }
await_success $watcher has_last
kill $watcher
watcher=
jq -r '.Events[].kv.mod_revision' "$scratch/watched" 2>/dev/null | sort -n -u | awk -v last="$last" '$1 <= last' | cmp - "$scratch/recorded" ||
	fail "the recording lacks revisions, or has some that etcd does not know"

# The events of watches, and the final state.
"$vedette" replay "$scratch/log.ndjson.zst" --watch configmaps >"$scratch/seen"
wanted='before 1 ADDED
during 1 ADDED
unseen 1 ADDED
during 2 MODIFIED
after 1 ADDED'
[ "$(jq -r 'select(.object) | [.object.metadata.name, .object.data.key, .type] | join(" ")' "$scratch/seen")" = "$wanted" ] || fail "replay: $(cat "$scratch/seen")"
"$vedette" replay "$scratch/log.ndjson.zst" --watch configmaps --expect "$scratch/seen" 2>"$scratch/expect.err" || fail "replay --expect"
cmp <(jq -S -c .object.data "$scratch/seen" | tail -n 1) <("$vedette" get --etcd "$ETCD_ENDPOINTS" configmap after -n default -o json | jq -S -c .data) ||
	fail "the recorded state is not etcd's"

# Either a log without a gap, or none.
configmap late 1
configmap later 1
etcdctl compact "$(revision)" >/dev/null
if "$vedette" record --etcd "$ETCD_ENDPOINTS" --output "$scratch/log.ndjson.zst" --resume --until $((last + 2)) 2>"$scratch/gap.err"; then
	fail "recording went on over a gap"
fi
grep -q "was compacted before it could be recorded" "$scratch/gap.err" || fail "record does not say why it ended"

# A snapshot made by etcd has the same history as a recording from its compaction on.
"$ETCDCTL" --endpoints "${ETCD_DIRECT_ENDPOINTS%%,*}" snapshot save "$scratch/snapshot.db" >/dev/null 2>&1 || fail "etcdctl snapshot save"
"$vedette" record --etcd "$ETCD_ENDPOINTS" --output "$scratch/now.ndjson" --until "$(revision)" -q || fail "record of the present"
"$vedette" record --from-snapshot "$scratch/snapshot.db" --output "$scratch/taken.ndjson" 2>"$scratch/snapshot.err" || fail "record --from-snapshot"
state() { jq -cS 'select(.type) | [.key, (if .type == "PUT" then [.rev, .createRev, .version, .value] else null end)]' "$1" | jq -cs 'map({key: .[0], value: .[1]}) | from_entries'; }
[ "$(state "$scratch/now.ndjson")" = "$(state "$scratch/taken.ndjson" | jq -cS 'with_entries(select(.value != null))')" ] || fail "the snapshot is another state than etcd's"
"$vedette" replay "$scratch/taken.ndjson" --watch configmaps --quiet || fail "replay of a snapshot"
head -c 30000 "$scratch/snapshot.db" >"$scratch/torn.db"
if "$vedette" record --from-snapshot "$scratch/torn.db" --output "$scratch/torn.ndjson" 2>"$scratch/torn.err"; then
	fail "a torn snapshot was taken"
fi
grep -q "torn.db: " "$scratch/torn.err" || fail "a torn snapshot: nothing is said"
