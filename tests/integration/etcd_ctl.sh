#!/bin/bash
# Usage: etcd_ctl.sh VEDETTE, under with-etcd.sh (for etcdctl)
# Every command of etcdctl 3.7 with vedette etcd, and its output.
# rules: E-630, E-631
set -eu
# shellcheck source=../support/waiting.sh
. "$(dirname "$0")/../support/waiting.sh"
vedette=$1
dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; tail -n 5 "$dir/err" >&2; exit 1; }
same() { [ "$2" = "$3" ] || fail "$1: wanted '$2', got '$3'"; }
holds() { case "$3" in *"$2"*) ;; *) fail "$1: '$2' is not in '$3'" ;; esac; }
wait_ready() {
	await_line "$dir/err" '^vedette: ready' "$server" || fail "it did not start"
}
start() {
	: >"$dir/err"
	: >"$dir/err" # here, because the ready line of the previous server might be read otherwise
	"$vedette" etcd --data-dir "$dir/data" --listen 127.0.0.1:0 --http-listen 127.0.0.1:0 "$@" 2>"$dir/err" &
	server=$!
	wait_ready
	endpoint=$(sed -n 's/^vedette: ready etcd \([^ ]*\).*/\1/p' "$dir/err")
	http=$(sed -n 's/^vedette: ready .* http \(.*\)/\1/p' "$dir/err")
	[ -n "$endpoint" ] || fail "vedette etcd did not start"
}
# start_serve ETCD-ADDRESS OPTION...
start_serve() {
	: >"$dir/err"
	: >"$dir/err" # here, because the ready line of the previous server might be read otherwise
	"$vedette" serve --data-dir "$dir/serve" --listen 127.0.0.1:0 --etcd-listen "$@" 2>"$dir/err" &
	server=$!
	wait_ready
	endpoint=$(sed -n 's/^vedette: ready .* etcd \(.*\)/\1/p' "$dir/err")
}
# serve_refuses WHAT WORDS OPTION...
serve_refuses() {
	local what=$1 words=$2 status=0
	shift 2
	timeout 60 "$vedette" serve --memory --listen 127.0.0.1:0 "$@" 2>"$dir/err" || status=$?
	same "serve: $what is refused" 2 "$status"
	holds "serve: $what" "$words" "$(cat "$dir/err")"
}
stop() {
	kill -TERM "$server"
	status=0
	wait "$server" || status=$?
	same "exit status" 0 "$status"
}
unset ETCDCTL_API
ctl() { timeout 120 "$ETCDCTL" --endpoints "$endpoint" "$@" 2>&1; }
lines() { tr '\n' ' ' | sed 's/ *$//'; }
# shows FILE WORDS: whether FILE has WORDS, perhaps on several lines.
shows() { [[ "$(lines <"$1")" == *"$2"* ]]; }
# watched WORDS ARGUMENT...: runs an etcdctl that does not end by itself, until its output contains WORDS.
watched() {
	local words=$1 client
	shift
	"$ETCDCTL" --endpoints "$endpoint" "$@" >"$dir/watched" 2>&1 &
	client=$!
	await_success $client shows "$dir/watched" "$words" || true
	kill $client 2>/dev/null || true
	wait $client 2>/dev/null || true
	lines <"$dir/watched"
}
current_revision() { ctl get a -w json | sed 's/.*"revision":\([0-9]*\).*/\1/'; }
# Prints the last line that is not a log record of the client.
refused() { ! out=$(ctl "$@") && echo "$out" | grep -v '^{' | tail -n 1; }

start
same put OK "$(ctl put a 1)"
for key in b c d/1 d/2 d/3; do ctl put "$key" "v$key" >/dev/null; done
same "put prev-kv" "OK a 1" "$(ctl put a 2 --prev-kv | lines)"
same get "a 2" "$(ctl get a | lines)"
same "get prefix" "d/1 vd/1 d/2 vd/2 d/3 vd/3" "$(ctl get d/ --prefix | lines)"
same "get keys-only" "d/1  d/2  d/3" "$(ctl get d/ --prefix --keys-only | lines)"
same "get print-value-only" "vd/1" "$(ctl get d/1 --print-value-only)"
same "get from-key" "d/2 vd/2 d/3 vd/3" "$(ctl get d/2 --from-key | lines)"
same "get range" "a 2 b vb" "$(ctl get a c | lines)"
same "get limit" "d/1 vd/1" "$(ctl get d/ --prefix --limit 1 | lines)"
same "get order" "d/3 vd/3 d/2 vd/2 d/1 vd/1" "$(ctl get d/ --prefix --order DESCEND --sort-by KEY | lines)"
same "get sort-by modify" "b vb c vc a 2" "$(ctl get a d --sort-by MODIFY | lines)"
same "get rev" "a 1" "$(ctl get a --rev 2 | lines)"
same "get serializable" "a 2" "$(ctl get a --consistency s | lines)"
holds "get count-only" '"Count" : 3' "$(ctl get d/ --prefix --count-only -w fields)"
holds "get json" '"mod_revision":8' "$(ctl get a -w json)"
holds "get fields" '"Version" : 2' "$(ctl get a -w fields)"
same "del" 1 "$(ctl del b)"
same "del prefix prev-kv" "3 d/1 vd/1 d/2 vd/2 d/3 vd/3" "$(ctl del d/ --prefix --prev-kv | lines)"
same "del nothing" 0 "$(ctl del nothing)"
same "txn success" "SUCCESS  OK  a 3" "$(printf 'value("a") = "2"\n\nput a 3\nget a\n\nput a 4\n\n' | ctl txn | lines)"
same "txn failure" "FAILURE  a 3" "$(printf 'mod("a") = "2"\n\nput a 5\n\nget a\n\n' | ctl txn | lines)"

next=$(($(current_revision) + 1))
ctl put w1 x >/dev/null
ctl put w1 y >/dev/null
ctl del w1 >/dev/null
same "watch" "PUT w1 x PUT w1 x w1 y DELETE w1 y w1" "$(watched "DELETE w1 y w1" watch w --prefix --prev-kv --rev $next)"
holds "watch from a revision" "PUT a 1" "$(watched "PUT a 1" watch a --rev 2)"
holds "watch of a range" "PUT c vc" "$(watched "PUT c vc" watch b d --rev 4)"
mkfifo "$dir/commands"
"$ETCDCTL" --endpoints "$endpoint" watch -i <"$dir/commands" >"$dir/interactive" 2>&1 &
client=$!
exec 7>"$dir/commands"
echo "watch a --rev 2" >&7
await_success $client shows "$dir/interactive" "PUT a 1"
# A request for progress is not answered before the watch has caught up.
shows_progress() { grep -q "progress notify: " "$dir/interactive" || { echo "progress" >&7 && false; }; }
await_success $client shows_progress
exec 7>&-
kill $client 2>/dev/null || true
wait $client 2>/dev/null || true
holds "watch interactive" "PUT a 1" "$(lines <"$dir/interactive")"
holds "watch interactive, progress" "progress notify: " "$(cat "$dir/interactive")"

lease=$(ctl lease grant 100 | awk '{ print $2 }')
same "put with lease" OK "$(ctl put leased 1 --lease "$lease")"
holds "lease timetolive" "granted with TTL(100s), remaining(" "$(ctl lease timetolive "$lease" --keys)"
holds "lease timetolive keys" "attached keys([leased])" "$(ctl lease timetolive "$lease" --keys)"
holds "lease list" "$lease" "$(ctl lease list)"
holds "lease keep-alive" "keepalived with TTL(100)" "$(ctl lease keep-alive --once "$lease")"
holds "lease revoke" "revoked" "$(ctl lease revoke "$lease")"
same "revoked keys are gone" "" "$(ctl get leased)"
short=$(ctl lease grant 2 | awk '{ print $2 }')
ctl put short 1 --lease "$short" >/dev/null
is_expired() { [ -z "$(ctl get short)" ]; }
await_success "" is_expired
same "expired keys are gone" "" "$(ctl get short)"

holds "endpoint status" "3.7.3" "$(ctl endpoint status)"
holds "endpoint health" "is healthy" "$(ctl endpoint health)"
holds "endpoint hashkv" "$endpoint, " "$(ctl endpoint hashkv)"
holds "endpoint status --cluster" "3.7.3" "$(ctl endpoint status --cluster)"
holds "member list" "started, default, " "$(ctl member list)"
holds "member remove" "Error: etcdserver: member not found" "$(refused member remove 1234)"
holds "move-leader" "Error:" "$(refused move-leader 1234)"
holds "defrag" "Finished defragmenting" "$(ctl defrag)"
same "alarm list" "" "$(ctl alarm list)"
holds "downgrade validate" "Error: etcdserver: invalid downgrade target version" "$(refused downgrade validate 3.5)"
revision=$(current_revision)
holds "compaction" "compacted revision $revision" "$(ctl compaction "$revision" --physical)"
holds "compacted" "Error: etcdserver: mvcc: required revision has been compacted" "$(refused get a --rev 2)"
holds "lock" "l/" "$(ctl lock l echo done; watched l/ lock l)"
holds "elect" "one" "$(watched one elect e one)"
holds "version" '"etcdserver":"3.7.3"' "$(curl -s "http://$http/version")"
same "health" '{"health":"true","reason":""}' "$(curl -s "http://$http/health")"
same "livez" ok "$(curl -s "http://$http/livez")"
holds "readyz" "[+]linearizable_read ok" "$(curl -s "http://$http/readyz?verbose")"
same "only GET" 405 "$(curl -s -o /dev/null -w '%{http_code}' -X POST "http://$http/health")"
holds "metrics" "etcd_server_has_leader 1" "$(curl -s "http://$http/metrics")"
holds "metrics" "etcd_mvcc_put_total" "$(curl -s "http://$http/metrics")"

# A snapshot, and its restore.
hash=$(ctl endpoint hashkv | sed 's/^[^,]*//')
everything=$(ctl get "" --prefix)
holds "snapshot save" "Snapshot saved" "$(ctl snapshot save "$dir/snapshot.db")"
same "size of a snapshot" 32 $(($(stat -c %s "$dir/snapshot.db") % 512))
first=$server
rm -rf "$dir/restored"
"$vedette" etcd --data-dir "$dir/restored" --restore "$dir/snapshot.db" --listen 127.0.0.1:0 2>"$dir/err2" &
second=$!
await_line "$dir/err2" '^vedette: ready' $second
saved=$endpoint
endpoint=$(sed -n 's/^vedette: ready etcd \([^ ]*\).*/\1/p' "$dir/err2")
same "hash of what was restored" "$hash" "$(ctl endpoint hashkv | sed 's/^[^,]*//')"
same "what was restored" "$everything" "$(ctl get "" --prefix)"
kill "$second"
wait "$second" || fail "the restored one did not end well"
status=0
"$vedette" etcd --data-dir "$dir/restored" --restore "$dir/snapshot.db" --listen 127.0.0.1:0 2>"$dir/err2" || status=$?
same "a store that is not empty is not overwritten" 1 "$status"
endpoint=$saved
server=$first

ctl user add root:rp >/dev/null
ctl role add root >/dev/null
ctl user grant-role root root >/dev/null
holds "auth enable" "Authentication Enabled" "$(ctl auth enable)"
holds "nobody" "Error: etcdserver: user name is empty" "$(refused get a)"
holds "wrong password" "Error: etcdserver: authentication failed, invalid user ID or password" "$(refused --user root:x get a)"
as_root() { ctl --user root:rp "$@"; }
as_root role add reader >/dev/null
as_root role grant-permission reader read a >/dev/null
as_root user add u:up >/dev/null
as_root user grant-role u reader >/dev/null
same "permitted" "a 3" "$(ctl --user u:up get a | lines)"
holds "not permitted" "Error: etcdserver: permission denied" "$(refused --user u:up put a 1)"
holds "not permitted" "permission denied" "$(watched "permission denied" --user u:up watch a --prefix)"
holds "user list" "root u" "$(as_root user list | lines)"
holds "user get" "reader" "$(as_root user get u | lines)"
holds "role list" "reader root" "$(as_root role list | lines)"
holds "role get" "a" "$(as_root role get reader | lines)"
as_root user passwd u --interactive=false <<<new >/dev/null
same "new password" "a 3" "$(ctl --user u:new get a | lines)"
as_root role revoke-permission reader a >/dev/null
holds "revoked" "Error: etcdserver: permission denied" "$(refused --user u:new get a)"
stop
start
holds "users survive" "Error: etcdserver: user name is empty" "$(refused get a)"
as_root user revoke-role u reader >/dev/null
as_root role delete reader >/dev/null
as_root user delete u >/dev/null
holds "auth disable" "Authentication Disabled" "$(as_root auth disable)"
same "data survives" "a 3" "$(ctl get a | lines)"
stop
start --quota-backend-bytes 20000
ctl put big "$(head -c 15000 /dev/zero | tr '\0' x)" >/dev/null || true
holds "quota" "Error: etcdserver: mvcc: database space exceeded" "$(refused put more "$(head -c 15000 /dev/zero | tr '\0' x)")"
holds "alarm" "alarm:NOSPACE" "$(ctl alarm list)"
holds "health" '"reason":"ALARM NOSPACE"' "$(curl -s "http://$http/health")"
stop
start
holds "alarms survive" "alarm:NOSPACE" "$(ctl alarm list)"
holds "alarm disarm" "alarm:NOSPACE" "$(ctl alarm disarm)"
same "after disarm" OK "$(ctl put more 1)"
stop
# Mutual TLS: a client needs a certificate of our CA; its common name is a user.
if command -v openssl >/dev/null; then
	(
		cd "$dir"
		openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 2 -subj /CN=ca 2>/dev/null
		echo "subjectAltName=IP:127.0.0.1" >names
		for who in server root stranger; do
			openssl req -newkey rsa:2048 -nodes -keyout $who.key -out $who.csr -subj /CN=$who 2>/dev/null
			openssl x509 -req -in $who.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -out $who.crt -extfile names 2>/dev/null
		done
	)
	rm -rf "$dir/data"
	start --cert-file "$dir/server.crt" --key-file "$dir/server.key" --trusted-ca-file "$dir/ca.crt" --client-cert-auth
	secure="https://$endpoint"
	as() {
		who=$1
		shift
		timeout 120 "$ETCDCTL" --endpoints "$secure" --cacert "$dir/ca.crt" --cert "$dir/$who.crt" --key "$dir/$who.key" "$@" 2>&1
	}
	same "TLS put" OK "$(as root put a 1)"
	holds "no certificate" "context deadline exceeded" "$(timeout 120 "$ETCDCTL" --endpoints "$secure" --cacert "$dir/ca.crt" --command-timeout 2s get a 2>&1 || true)"
	holds "plain text" "context deadline exceeded" "$(timeout 120 "$ETCDCTL" --endpoints "http://$endpoint" --command-timeout 2s get a 2>&1 || true)"
	as root user add root --no-password >/dev/null
	as root role add root >/dev/null
	as root user grant-role root root >/dev/null
	as root auth enable >/dev/null
	same "a certificate's user" "a 1" "$(as root get a | lines)"
	holds "a stranger" "permission denied" "$(as stranger get a || true)"
	holds "advertised" "https://127.0.0.1:" "$(as root member list)"
	stop

	# The etcd port of serve, with the same certificates. Users are kept, so the second start opens it
	# with them.
	tls=(--etcd-listen-cert-file "$dir/server.crt" --etcd-listen-key-file "$dir/server.key")
	mutual=("${tls[@]}" --etcd-listen-trusted-ca-file "$dir/ca.crt" --etcd-listen-client-cert-auth)
	start_serve https://0.0.0.0:0 "${mutual[@]}"
	secure="https://127.0.0.1:${endpoint##*:}"
	same "serve: TLS put" OK "$(as root put a 1)"
	holds "serve: no certificate" "context deadline exceeded" "$(timeout 120 "$ETCDCTL" --endpoints "$secure" --cacert "$dir/ca.crt" --command-timeout 2s get a 2>&1 || true)"
	holds "serve: advertised" "https://" "$(as root member list)"
	as root user add root --no-password >/dev/null
	as root user add visitor:secret >/dev/null
	as root role add root >/dev/null
	as root user grant-role root root >/dev/null
	as root auth enable >/dev/null
	same "serve: a certificate's user" "a 1" "$(as root get a | lines)"
	holds "serve: a stranger" "permission denied" "$(as stranger get a || true)"
	stop
	start_serve 0.0.0.0:0 "${tls[@]}"
	secure="https://127.0.0.1:${endpoint##*:}"
	holds "serve: without its certificate root is nobody" "user name is empty" "$(timeout 120 "$ETCDCTL" --endpoints "$secure" --cacert "$dir/ca.crt" get a 2>&1 || true)"
	holds "serve: a password" "permission denied" "$(timeout 120 "$ETCDCTL" --endpoints "$secure" --cacert "$dir/ca.crt" --user visitor:secret get a 2>&1 || true)"
	stop
	start_serve 127.0.0.1:0 --tls-cert "$dir/server.crt" --tls-key "$dir/server.key" --client-ca "$dir/ca.crt"
	secure="https://127.0.0.1:${endpoint##*:}"
	same "serve: the certificates of the REST side" "a 1" "$(as root get a | lines)"
	holds "serve: they are asked for" "context deadline exceeded" "$(timeout 120 "$ETCDCTL" --endpoints "$secure" --cacert "$dir/ca.crt" --command-timeout 2s get a 2>&1 || true)"
	stop
	serve_refuses "a certificate without its key" "must be given together" --etcd-listen 127.0.0.1:0 --etcd-listen-cert-file "$dir/server.crt"
	serve_refuses "client certificates without an authority" "requires" --etcd-listen 127.0.0.1:0 "${tls[@]}" --etcd-listen-client-cert-auth
	serve_refuses "http with TLS" "http and unix exclude a certificate" --etcd-listen http://127.0.0.1:0 "${tls[@]}"
	serve_refuses "TLS that asks nobody" "without authentication" --etcd-listen 0.0.0.0:0 "${tls[@]}"
fi
serve_refuses "options without a port" "require --etcd-listen" --etcd-listen-client-cert-auth
serve_refuses "an open port on all addresses" "without authentication" --etcd-listen 0.0.0.0:0
rm -rf "$dir/serve"
start_serve 0.0.0.0:0 --insecure-no-auth
endpoint="127.0.0.1:${endpoint##*:}"
same "serve: open because that was said" OK "$(ctl put a 1)"
stop
# A snapshot of a real etcd: keys with their history, a compaction, leases, users and roles.
real() { timeout 120 "$ETCDCTL" --endpoints "$ETCD_ENDPOINTS" "$@" 2>&1; }
for i in 1 2 3; do for key in a b c/1 c/2; do real put "$key" "$i" >/dev/null; done; done
real del c/1 >/dev/null
real compaction 8 --physical >/dev/null
real put c/1 again >/dev/null
granted=$(real lease grant 5000 | awk '{ print $2 }')
real put leased 1 --lease "$granted" >/dev/null
real role add reader >/dev/null
real role grant-permission reader read a >/dev/null
real user add u:up >/dev/null
real user grant-role u reader >/dev/null
holds "snapshot of a real etcd" "Snapshot saved" "$(real snapshot save "$dir/real.db")"
everything=$(real get "" --prefix -w json | sed 's/"header":{[^}]*}//')
hash=$(real endpoint hashkv | sed 's/^[^,]*//')
old=$(real get "" --prefix --rev 9)
rm -rf "$dir/data"
start --restore "$dir/real.db"
same "HashKV of a real snapshot" "$hash" "$(ctl endpoint hashkv | sed 's/^[^,]*//')"
same "keys of a real snapshot" "$everything" "$(ctl get "" --prefix -w json | sed 's/"header":{[^}]*}//')"
same "history of a real snapshot" "$old" "$(ctl get "" --prefix --rev 9)"
holds "what is compacted there is here" "has been compacted" "$(refused get a --rev 7)"
holds "lease of a real snapshot" "granted with TTL(5000s)" "$(ctl lease timetolive "$granted" --keys)"
holds "its key" "attached keys([leased])" "$(ctl lease timetolive "$granted" --keys)"
same "user of a real snapshot" "User: u Roles: reader" "$(ctl user get u | lines)"
ctl user add root:rp >/dev/null
ctl role add root >/dev/null
ctl user grant-role root root >/dev/null
ctl auth enable >/dev/null
same "its password" "a 3" "$(ctl --user u:up get a | lines)"
holds "its permission" "permission denied" "$(refused --user u:up get b)"
stop
status=0
"$vedette" etcd --memory --listen 0.0.0.0:0 2>"$dir/err" || status=$?
same "an open port on all addresses is refused" 2 "$status"
# etcd's name of the option for the port of health and metrics.
: >"$dir/err" # here, because the ready line of the previous server might be read otherwise
"$vedette" etcd --memory --listen-client-urls http://127.0.0.1:0 --listen-metrics-urls http://127.0.0.1:0 2>"$dir/err" &
server=$!
wait_ready
same "health" '{"health":"true","reason":""}' "$(curl -s "http://$(sed -n 's/^vedette: ready .* http \(.*\)/\1/p' "$dir/err")/health")"
stop
