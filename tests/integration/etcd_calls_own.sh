#!/bin/bash
# Usage: etcd_calls_own.sh VEDETTE TEST-PROGRAM [OPTION...]
# The etcd client with our own etcd server, `vedette etcd --memory`: the same test program as with a real
# etcd. The options are those of the server.
set -eu

. "$(dirname "$0")/../support/waiting.sh"
vedette=$1
program=$2
shift 2
log=$(mktemp)
"$vedette" etcd --memory --listen 127.0.0.1:0 "$@" 2>"$log" &
server=$!
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -f "$log"' EXIT
await_line "$log" '^vedette: ready etcd' "$server"
where=$(sed -n 's/^vedette: ready etcd \([^ ]*\).*/\1/p' "$log")
ETCD_ENDPOINTS="http://$where" ETCD_VERSION=3.7 "$program"
