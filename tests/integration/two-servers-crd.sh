#!/bin/bash
# Usage: two-servers-crd.sh VEDETTE, under with-etcd.sh
# Two `vedette serve --etcd` on one etcd, and CustomResourceDefinitions. A definition made through one is
# served by both. The conditions are written once and then never again, also if names conflict, over a
# restart, and while both servers run. Objects may be written through either. A deletion through one ends the
# watches of both after their last events, also if the server that received it is killed.
# pipefail: jq -e of Debian 12 accepts an empty answer
set -euo pipefail
# shellcheck source=../support/waiting.sh
. "$(dirname "$0")/../support/waiting.sh"

vedette=$1
scratch=$(mktemp -d)
declare -A pid url
watches=()
cleanup() {
	for each in "${pid[@]}" "${watches[@]}"; do kill -9 "$each" 2>/dev/null || true; done
	rm -rf "$scratch"
}
trap cleanup EXIT
fail() {
	echo "two-servers-crd.sh: $*" >&2
	tail -n 5 "$scratch"/*.log >&2 || true
	for file in "$scratch"/watch.*; do cut -c 1-300 "$file" 2>/dev/null | sed "s,^,${file##*/}: ," >&2 || true; done
	exit 1
}
until_true() { await_success "" "$@" || fail "this did not become true: $*"; }
ready_line() { grep -q '^vedette: ready' "$scratch/$1.log"; }
start() {
	# Created here and not by the server's shell, because ready_line might read the ready line of the
	# previous server first.
	: >"$scratch/$1.log"
	"$vedette" serve --etcd "$ETCD_ENDPOINTS" --listen 127.0.0.1:0 2>>"$scratch/$1.log" &
	pid[$1]=$!
	until_true ready_line "$1"
	url[$1]=$(sed -n 's/^vedette: ready //p' "$scratch/$1.log")
}
start a
start b

crds=/apis/apiextensions.k8s.io/v1/customresourcedefinitions
# define SERVER PLURAL KIND
define() {
	curl -sf -X POST -H 'Content-Type: application/json' "${url[$1]}$crds" >/dev/null -d '{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"'"$2"'.two.example.com"},"spec":{"group":"two.example.com","scope":"Namespaced","names":{"plural":"'"$2"'","kind":"'"$3"'"},"versions":[
		{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}' || fail "$2 cannot be defined"
}
# condition SERVER PLURAL TYPE STATUS
condition() {
	curl -sf "${url[$1]}$crds/$2.two.example.com" | jq -e --arg type "$3" --arg status "$4" '.status.conditions[] | select(.type == $type and .status == $status)' >/dev/null
}
objects() { echo "${url[$1]}/apis/two.example.com/v1/namespaces/default/$2"; }
# At once, by all loops of a server, which accept connections in turn: a definition that a server shows as
# Established is served by it.
served() {
	for _ in 1 2 3 4 5 6 7 8; do
		curl -sf "$(objects "$1" "$2")" | jq -e '.kind | endswith("List")' >/dev/null || fail "$1 does not serve $2, which is Established: $(curl -s "$(objects "$1" "$2")")"
	done
}
# gone SERVER PLURAL: the definition and its kind are gone
gone() {
	[ "$(curl -s -o /dev/null -w '%{http_code}' "${url[$1]}$crds/$2.two.example.com")" = 404 ] && [ "$(curl -s -o /dev/null -w '%{http_code}' "$(objects "$1" "$2")")" = 404 ]
}
# Number of writes of a definition.
written() { "$ETCDCTL" --endpoints "$ETCD_ENDPOINTS" get "/registry/apiextensions.k8s.io/customresourcedefinitions/$1.two.example.com" -w json | jq '.kvs[0].version // 0'; }
# put SERVER PLURAL KIND NAME
put() {
	curl -sf -X POST -H 'Content-Type: application/json' "$(objects "$1" "$2")" -d '{"apiVersion":"two.example.com/v1","kind":"'"$3"'","metadata":{"name":"'"$4"'"}}' >/dev/null ||
		fail "$4 cannot be created through $1"
}
list() { curl -sf "$(objects "$1" "$2")" | jq -c '[.metadata.resourceVersion, (.items[] | .metadata.name + "@" + .metadata.resourceVersion)]'; }
# the lists can differ only if one was made before the other server's progress had arrived
same_lists() {
	local one other
	one=$(list a "$1") && other=$(list b "$1") && [ "$one" = "$other" ]
}
# watch SERVER PLURAL FILE
watch() {
	: >"$3"
	curl -sN "$(objects "$1" "$2")?watch=true" >>"$3" &
	watches+=($!)
}
has() { [ "$(grep -c "\"type\":\"$2\"" "$1" || true)" -ge "$3" ]; }
# ended PID: waits for a curl whose stream has ended
ended() {
	local status=0
	wait "$1" || status=$?
	[ "$status" -eq 0 ] || fail "a watch ended with curl's status $status"
}

# Defined through a, served by both; one create, and at most two writes of the conditions.
define a gadgets Gadget
for server in a b; do
	until_true condition $server gadgets Established True
	served $server gadgets
done
first=$(written gadgets)
[ "$first" -le 3 ] || fail "the definition was written $first times"
for i in 1 2 3 4 5; do
	put a gadgets Gadget "a$i"
	put b gadgets Gadget "b$i"
done
until_true same_lists gadgets
list a gadgets | jq -e 'length == 11' >/dev/null || fail "ten objects: $(list a gadgets)"

# A conflict of names: both servers say the same, once. Another kind after it proves that both have processed
# everything before.
define b godgets Gadget
for server in a b; do until_true condition $server godgets NamesAccepted False; done
refused=$(written godgets)
[ "$refused" -le 3 ] || fail "the definition whose names are in use was written $refused times"
for round in 1 2 3; do
	define a "mark$round" "Mark$round"
	for server in a b; do
		until_true condition $server "mark$round" Established True
		served $server "mark$round"
	done
	kill -9 "${pid[b]}"
	wait "${pid[b]}" 2>/dev/null || true
	start b
	served b gadgets
done
[ "$(written gadgets)" = "$first" ] || fail "an established definition was written again: $first, $(written gadgets)"
[ "$(written godgets)" = "$refused" ] || fail "a refused definition was written again: $refused, $(written godgets)"
[ "$(written mark1)" -le 3 ] || fail "mark1 was written $(written mark1) times"

# Deleted through b: the watches of both deliver ten deletions, and end. Then the names are free.
for server in a b; do
	watch $server gadgets "$scratch/watch.$server"
	until_true has "$scratch/watch.$server" ADDED 10
done
curl -sf -X DELETE "${url[b]}$crds/gadgets.two.example.com" >/dev/null || fail "the definition cannot be deleted"
for each in "${watches[@]}"; do ended "$each"; done
for server in a b; do
	[ "$(jq -r .type "$scratch/watch.$server" | grep -c DELETED)" -eq 10 ] || fail "$server told of $(jq -r .type "$scratch/watch.$server" | grep -c DELETED) deletions"
	until_true gone $server gadgets
	until_true condition $server godgets Established True
	served $server godgets
done
watches=()
left=$("$ETCDCTL" --endpoints "$ETCD_ENDPOINTS" get --prefix /registry/two.example.com/gadgets/ --keys-only)
[ -z "$left" ] || fail "objects are left in etcd: $left"

# Created again through the other server, and deleted while the server that received the delete is killed: the
# other one completes the deletion.
define b gizmos Gizmo
for server in a b; do
	until_true condition $server gizmos Established True
	served $server gizmos
done
for i in $(seq 40); do put b gizmos Gizmo "g$i"; done
watch b gizmos "$scratch/watch.b"
until_true has "$scratch/watch.b" ADDED 40
curl -sf -X DELETE "${url[a]}$crds/gizmos.two.example.com" >/dev/null || fail "the definition cannot be deleted"
kill -9 "${pid[a]}"
wait "${pid[a]}" 2>/dev/null || true
ended "${watches[0]}"
[ "$(jq -r .type "$scratch/watch.b" | grep -c DELETED)" -eq 40 ] || fail "b told of $(jq -r .type "$scratch/watch.b" | grep -c DELETED) deletions of 40"
until_true gone b gizmos
start a
until_true gone a gizmos
served a godgets

for server in a b; do kill -TERM "${pid[$server]}"; done
for server in a b; do
	status=0
	wait "${pid[$server]}" || status=$?
	[ "$status" -eq 0 ] || fail "SIGTERM: $server ended with $status"
done
echo "two-servers-crd.sh: all was well; written $first, $refused"
