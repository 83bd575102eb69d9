#!/bin/bash
# Usage: etcd-options.sh VEDETTE, under with-etcd.sh --tls
# `vedette --etcd` with wrong options: one line names the endpoint and the cause. With correct ones (TLS, user
# and password) it works.
set -u
# shellcheck source=../support/waiting.sh
. "$(dirname "$0")/../support/waiting.sh"

vedette=$1
scratch=$(mktemp -d)
other=
trap 'kill -9 $other 2>/dev/null; rm -rf "$scratch"' EXIT
failures=0
# refuses WHAT STATUS PATTERN OPTION...: each command with etcd options exits with STATUS and prints a line
# that matches PATTERN
refuses() {
	local what=$1 wanted=$2 pattern=$3 command
	shift 3
	for command in "serve --listen 127.0.0.1:0 --log-level error" "get namespaces" "watch namespaces"; do
		# shellcheck disable=SC2086 # words
		refuses_one "$what" "$wanted" "$pattern" $command "$@"
	done
}
# The same for one command. Only the server has --memory and --data-dir.
refuses_one() {
	local what=$1 wanted=$2 pattern=$3 status patience
	shift 3
	# On a busy machine two seconds may be too short to find the cause.
	for patience in 2s 60s; do
		status=0
		timeout 300 "$vedette" "$@" --etcd-timeout $patience >"$scratch/out" 2>&1 || status=$?
		grep -q 'not connected' "$scratch/out" || break
	done
	if [ "$status" -ne "$wanted" ] || ! grep -Eq "^vedette $1: .*$pattern" "$scratch/out" || [ "$(grep -cv '^Try: ' "$scratch/out")" -ne 1 ]; then
		echo "etcd-options.sh: $1: $what: status $status instead of $wanted, or not one line like /$pattern/:" >&2
		cat "$scratch/out" >&2
		failures=$((failures + 1))
	fi
}
works() {
	local what=$1
	shift
	if ! "$@" >"$scratch/out" 2>&1; then
		echo "etcd-options.sh: $what:" >&2
		cat "$scratch/out" >&2
		failures=$((failures + 1))
	fi
}
url=$ETCD_ENDPOINTS
tls=(--etcd-cacert "$ETCD_CACERT" --etcd-cert "$ETCD_CERT" --etcd-key "$ETCD_KEY")

refuses "nobody there" 1 'http://127\.0\.0\.1:1: connection refused' --etcd http://127.0.0.1:1
refuses "no scheme known" 2 'ftp://x' --etcd ftp://x
refuses "an unknown host" 1 'http://no\.such\.host\.invalid:1: unknown host' --etcd http://no.such.host.invalid:1
refuses "no address" 2 'empty address' --etcd ""
refuses "no port" 2 'http://127.0.0.1:99999": has no valid port' --etcd http://127.0.0.1:99999
refuses "plain text to TLS" 1 "${url/https/http}: .*(closed|TLS|HTTP)" --etcd "${url/https/http}"
refuses "an authority that nobody trusts" 1 "$url: .*certificate" --etcd "$url" --etcd-cert "$ETCD_CERT" --etcd-key "$ETCD_KEY"
refuses "no client certificate" 1 "$url: .*(certificate|closed|handshake)" --etcd "$url" --etcd-cacert "$ETCD_CACERT"
refuses "no such file" 2 '/nowhere' --etcd "$url" --etcd-cacert /nowhere
refuses "a certificate without its key" 2 'must be given together' --etcd "$url" --etcd-cert "$ETCD_CERT"
refuses "options without an etcd" 2 'require --etcd' --etcd-user x
refuses_one "two stores" 2 'excludes --memory' serve --etcd "$url" --memory
refuses "no path" 2 'is not a valid path segment' --etcd "$url" "${tls[@]}" --etcd-prefix /a/../b
refuses "a name without a password" 2 'no password: set' --etcd "$url" "${tls[@]}" --etcd-user root
refuses "an empty password file" 2 '/dev/null: it is empty' --etcd "$url" "${tls[@]}" --etcd-user root --etcd-password-file /dev/null

refuses "no certificate in the file" 2 "CA file \"$ETCD_KEY\" cannot be used: no certificate can be read" --etcd "$url" --etcd-cacert "$ETCD_KEY" \
	--etcd-cert "$ETCD_CERT" --etcd-key "$ETCD_KEY"

# A server that is not etcd.
"$vedette" serve --memory --listen 127.0.0.1:0 2>"$scratch/other" &
other=$!
await_line "$scratch/other" '^vedette: ready' $other || exit 1
web=$(sed -n 's/^vedette: ready //p' "$scratch/other")
refuses "no etcd" 1 "$web: not an HTTP/2 server" --etcd "$web"
refuses "TLS to plain text" 1 "${web/http/https}: the server does not speak TLS" --etcd "${web/http/https}" "${tls[@]}"

works "TLS" "$vedette" get --etcd "$url" "${tls[@]}" namespaces

# Users. The certificate names root, so etcd's own tool needs no password.
etcdctl() { "$ETCDCTL" --endpoints "$url" --cacert "$ETCD_CACERT" --cert "$ETCD_CERT" --key "$ETCD_KEY" "$@"; }
works "user" etcdctl user add reader:secret
works "root" etcdctl user add root:rootsecret
works "role" etcdctl role add all
works "permission" etcdctl role grant-permission all readwrite --prefix ""
works "grant" etcdctl user grant-role reader all
works "grant root" etcdctl user grant-role root root
works "auth" etcdctl auth enable
works "a user without a role" etcdctl user add nobody:x
for command in get watch; do
	refuses_one "a user without a role" 1 "$url: etcdserver: permission denied" $command namespaces --etcd "$url" "${tls[@]}" --etcd-user nobody:x
done
# A server waits, because the permission may be granted later. One line names user and permission, and is not
# repeated.
"$vedette" serve --etcd "$url" "${tls[@]}" --etcd-user nobody:x --etcd-prefix /some/where --listen 127.0.0.1:0 2>"$scratch/waits" &
waits=$!
await_line "$scratch/waits" 'permission denied' $waits || exit 1
kill $waits
wait $waits
if [ "$(grep 'permission denied' "$scratch/waits")" != "vedette serve: waiting: $url: etcdserver: permission denied (user \"nobody\", keys under /some/where)" ]; then
	echo "etcd-options.sh: serve: a user without a role:" >&2
	cat "$scratch/waits" >&2
	failures=$((failures + 1))
fi
refuses "a wrong password" 1 "(authentication failed|invalid user)" --etcd "$url" "${tls[@]}" --etcd-user reader:wrong
works "a password on the command line" "$vedette" get --etcd "$url" "${tls[@]}" --etcd-user reader:secret namespaces
works "a password in the environment" env VEDETTE_ETCD_PASSWORD=secret "$vedette" get --etcd "$url" "${tls[@]}" --etcd-user reader namespaces
printf 'secret\n' >"$scratch/password"
works "a password in a file" "$vedette" get --etcd "$url" "${tls[@]}" --etcd-user reader --etcd-password-file "$scratch/password" namespaces
kill -9 $other 2>/dev/null
"$vedette" serve --etcd "$url" "${tls[@]}" --etcd-user reader:secret --listen 127.0.0.1:0 2>"$scratch/hidden" &
other=$!
await_line "$scratch/hidden" '^vedette: ready' $other || exit 1
if tr '\0' ' ' </proc/$other/cmdline | grep -q secret; then
	echo "etcd-options.sh: the password stands in the list of processes" >&2
	failures=$((failures + 1))
fi
echo "etcd-options.sh: $failures failed"
[ "$failures" -eq 0 ]
