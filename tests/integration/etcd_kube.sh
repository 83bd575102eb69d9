#!/bin/bash
# Usage: etcd_kube.sh VEDETTE KUBE_APISERVER [OPTION...]
# OPTION: further options of `vedette etcd`.
# A real kube-apiserver on `vedette etcd` starts, serves kubectl (kinds, a CRD, leases, watches), survives a
# restart of either, and finds everything again.
# Its requirements for an etcd: rules: E-601, E-602, E-609, E-611, E-612, E-613, E-614, E-618
set -eu
# shellcheck source=../support/waiting.sh
. "$(dirname "$0")/../support/waiting.sh"
vedette=$1
kube=$2
shift 2
options=("$@")
for program in "$kube" kubectl openssl python3; do
	command -v "$program" >/dev/null || {
		echo "skipped: there is no $program (docs/HACKING.md says how a kube-apiserver is built)" >&2
		exit 77
	}
done
dir=$(mktemp -d)
children=""
# Without its etcd, a kube-apiserver takes minutes to end.
cleanup() {
	for child in $children; do kill -9 "$child" 2>/dev/null || true; done
	wait 2>/dev/null || true
	rm -rf "$dir"
}
trap cleanup EXIT
fail() { echo "$*" >&2; tail -n 15 "$dir/kube.log" "$dir/vedette.err" >&2; exit 1; }

start_vedette() {
	: >"$dir/vedette.err" # here, because the ready line of the previous server might be read otherwise
	"$vedette" etcd --data-dir "$dir/data" --listen "127.0.0.1:${1:-0}" --http-listen 127.0.0.1:0 "${options[@]}" 2>"$dir/vedette.err" &
	vedette_pid=$!
	children="$children $!"
	await_line "$dir/vedette.err" '^vedette: ready' $vedette_pid || fail "vedette etcd did not start"
	etcd=$(sed -n 's/^vedette: ready etcd \([^ ]*\).*/\1/p' "$dir/vedette.err")
	http=$(sed -n 's/^vedette: ready .* http \(.*\)/\1/p' "$dir/vedette.err")
}
start_kube() {
	"$kube" --etcd-servers="http://$etcd" --bind-address=127.0.0.1 --secure-port="$port" --cert-dir="$dir/certs" --service-account-issuer=https://kubernetes.default.svc \
		--service-account-key-file="$dir/key" --service-account-signing-key-file="$dir/key" --service-cluster-ip-range=10.96.0.0/16 --authorization-mode=AlwaysAllow \
		--token-auth-file="$dir/tokens" --disable-admission-plugins=ServiceAccount --encryption-provider-config="$dir/encryption.yaml" >>"$dir/kube.log" 2>&1 &
	kube_pid=$!
	children="$children $!"
	wait_ready
}
is_ready() { [ "$(k get --raw /readyz 2>/dev/null)" = ok ]; }
wait_ready() { await_success "$kube_pid" is_ready || fail "kube-apiserver is not ready"; }
k() { timeout 60 kubectl --server="https://127.0.0.1:$port" --insecure-skip-tls-verify=true --token=test-token --kubeconfig=/dev/null --cache-dir="$dir/cache" "$@"; }
same() { [ "$2" = "$3" ] || fail "$1: wanted '$2', got '$3'"; }

openssl genrsa -out "$dir/key" 2048 2>/dev/null
echo "test-token,peers,1,system:masters" >"$dir/tokens"
cat >"$dir/encryption.yaml" <<'YAML'
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets, horses.example.com]
  providers:
  - aesgcm:
      keys:
      - {name: first, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}
  - identity: {}
YAML
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
start_vedette
started=$(date +%s%N)
start_kube
echo "kube-apiserver ready on vedette etcd after $((($(date +%s%N) - started) / 1000000)) ms"

k create namespace team >/dev/null
k -n team create configmap settings --from-literal=a=1 >/dev/null
k -n team get configmaps -o name --watch >"$dir/watch.out" 2>&1 &
watcher=$!
children="$children $watcher"
k -n team create deployment web --image=nginx --replicas=3 >/dev/null
k -n team patch configmap settings --type=merge -p '{"data":{"a":"2"}}' >/dev/null
same "patched" 2 "$(k -n team get configmap settings -o 'jsonpath={.data.a}')"
for i in $(seq 20); do k -n team create configmap "c$i" --from-literal=i="$i" >/dev/null; done
k -n team delete configmap c7 >/dev/null
same "list" 20 "$(k -n team get configmaps -o name | grep -c -v kube-root-ca)"
same "paged list" 20 "$(k -n team get configmaps --chunk-size=3 -o name | grep -c -v kube-root-ca)"
k apply -f - >/dev/null <<CRD
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: horses.example.com }
spec:
  group: example.com
  names: { kind: Horse, plural: horses, singular: horse }
  scope: Namespaced
  versions: [{ name: v1, served: true, storage: true, schema: { openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true } } }]
CRD
k wait --for=condition=Established crd/horses.example.com --timeout=30s >/dev/null
await_success "$kube_pid" k -n team get horses
echo '{"apiVersion":"example.com/v1","kind":"Horse","metadata":{"name":"rosinante"},"spec":{"legs":4}}' | k -n team create -f - >/dev/null
same "custom object" 4 "$(k -n team get horse rosinante -o 'jsonpath={.spec.legs}')"
k -n team create -f - >/dev/null <<EVENT
{"apiVersion":"v1","kind":"Event","metadata":{"name":"e1"},"involvedObject":{"kind":"Pod","namespace":"team","name":"x"},"reason":"Test","message":"hello","type":"Normal"}
EVENT
k -n team get events -o name | grep -q e1 || fail "the event is not there"
await_line "$dir/watch.out" configmap/c $watcher 20
grep -c configmap/c "$dir/watch.out" | grep -q '^2[0-9]$' || fail "the watch saw $(grep -c configmap/c "$dir/watch.out") changes"
echo "kinds, CRD, events, paging and watches work; vedette etcd: $(awk '/RssAnon/ { print $2 " kB RssAnon" }' /proc/$vedette_pid/status)"

# Watch guarantees, also for concurrent writes by others, and a recording, while the store is killed.
server="--server https://127.0.0.1:$port --insecure --token test-token"
# shellcheck disable=SC2086
"$vedette" verify $server --kind configmaps --kind secrets --kind events --drive --writers 2 --output json -q >"$dir/verify.out" 2>"$dir/verify.err" &
verifier=$!
# shellcheck disable=SC2086
"$vedette" record $server --output "$dir/log.ndjson" --watch-timeout 5s -q 2>"$dir/record.err" &
recorder=$!
children="$children $verifier $recorder"
await_line "$dir/log.ndjson" snapshotEnd $recorder || fail "record: $(cat "$dir/record.err")"

# kill -9 of the store under a living kube-apiserver
kill -9 "$vedette_pid"
wait "$vedette_pid" 2>/dev/null || true
start_vedette "${etcd##*:}"
wait_ready
same "after kill -9 of the store" 4 "$(k -n team get horse rosinante -o 'jsonpath={.spec.legs}')"
k -n team create configmap after-kill --from-literal=a=1 >/dev/null
for i in $(seq 20); do k -n team create configmap "r$i" --from-literal=i="$i" >/dev/null; done
last=$(k -n team create configmap last-recorded -o 'jsonpath={.metadata.resourceVersion}')
kill -TERM $verifier
wait $verifier || fail "verify: $(cat "$dir/verify.out" "$dir/verify.err")"
grep -q '"result":"ok"' "$dir/verify.out" || fail "verify: $(cat "$dir/verify.out")"
python3 -c 'import json, sys; sys.exit(json.load(open(sys.argv[1]))["writesSeen"] < 1)' "$dir/verify.out" || fail "verify has written too little: $(cat "$dir/verify.out")"
same "what verify left behind" "" "$(k get configmaps -A -o 'jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name}{"\n"}{end}' | grep vedette-verify- | grep -v kube-root-ca)"
kill -TERM $recorder
wait $recorder || fail "record: $(cat "$dir/record.err")"
# shellcheck disable=SC2086
"$vedette" record $server --output "$dir/log.ndjson" --watch-timeout 5s -q --resume --relist --until "$last" 2>"$dir/record.err" || fail "record --resume: $(cat "$dir/record.err")"
same "recorded configmaps" "$(k -n team get configmaps -o 'jsonpath={range .items[*]}{.metadata.name}={.metadata.resourceVersion}{"\n"}{end}' | sort)" \
	"$("$vedette" replay "$dir/log.ndjson" --watch 'configmaps?namespace=team' | python3 -c '
import json, sys
state = {}
for event in map(json.loads, sys.stdin):
    if "object" in event:
        name = event["object"]["metadata"]["name"]
        state.pop(name, None)
        if event["type"] != "DELETED":
            state[name] = event["rev"]
print("\n".join(sorted("%s=%d" % pair for pair in state.items())))')"
grep -q '"/registry/example.com/horses/team/rosinante"' "$dir/log.ndjson" || fail "the custom object was not recorded"
echo "verified and recorded: $(tail -n 1 "$dir/verify.out")"

# Both servers encrypt secrets at rest, and each reads those of the other. rule: R-145
k -n team create secret generic theirs --from-literal=word=hunter2 >/dev/null
"$vedette" serve --etcd "http://$etcd" --listen 127.0.0.1:0 --encryption-provider-config "$dir/encryption.yaml" 2>"$dir/serve.err" &
serve_pid=$!
children="$children $!"
await_line "$dir/serve.err" '^vedette: ready' $serve_pid || fail "vedette serve did not start"
ours=$(sed -n 's/^vedette: ready \([^ ]*\).*/\1/p' "$dir/serve.err")
o() { timeout 60 kubectl --server="$ours" --kubeconfig=/dev/null --cache-dir="$dir/cache-ours" "$@"; }
same "a secret of kube-apiserver" aHVudGVyMg== "$(o -n team get secret theirs -o 'jsonpath={.data.word}')"
o -n team create secret generic ours --from-literal=word=swordfish >/dev/null
same "a secret of vedette" c3dvcmRmaXNo "$(k -n team get secret ours -o 'jsonpath={.data.word}')"
same "an encrypted custom object" 4 "$(o -n team get horse rosinante -o 'jsonpath={.spec.legs}')"
o -n team patch secret theirs --type=merge -p '{"stringData":{"word":"changed"}}' >/dev/null
same "changed by vedette" Y2hhbmdlZA== "$(k -n team get secret theirs -o 'jsonpath={.data.word}')"
! grep -r -q -a -e hunter2 -e aHVudGVyMg== -e swordfish -e c3dvcmRmaXNo "$dir/data" || fail "a secret lies in the data directory as it is"
"$vedette" get secret theirs -n team --etcd "http://$etcd" >"$dir/get.out" 2>&1 && fail "an encrypted secret was read without its key: $(cat "$dir/get.out")"
kill -TERM $serve_pid
wait $serve_pid || fail "vedette serve did not end well"
echo "secrets are encrypted at rest, and shared"

# and those of the kube-apiserver
kill -9 "$kube_pid"
wait "$kube_pid" 2>/dev/null || true
start_kube
same "after a restart of both" 42 "$(k -n team get configmaps -o name | grep -c -v kube-root-ca)"
same "custom object" 4 "$(k -n team get horse rosinante -o 'jsonpath={.spec.legs}')"
k -n team delete horse rosinante >/dev/null
k delete namespace team --wait=false >/dev/null
kill -TERM "$vedette_pid"
status=0
wait "$vedette_pid" || status=$?
same "exit status of vedette etcd" 0 "$status"
echo "restarts found everything"
