#!/bin/bash
# Usage: SERVER=http://HOST:PORT kubectl.sh [BUILD-DIR SOURCE-DIR]
# Runs a real kubectl (1.32 or later: the one on PATH, otherwise one built from SOURCE-DIR into BUILD-DIR) and
# compares its output. The server must serve the resources file beside this script.
# rules: H-101, H-112, H-113, H-114, H-201, H-203, H-204, H-301, H-302, H-304, H-320, H-321, H-340, H-341, H-344, H-345, H-346, H-414, H-415, H-416, H-417
set -eu
# shellcheck source=../support/waiting.sh
. "$(dirname "$0")/../support/waiting.sh"

here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
background=
cleanup() {
	if [ -n "$background" ]; then
		kill "$background" 2>/dev/null || true
	fi
	rm -rf "$scratch"
}
trap cleanup EXIT
export HOME=$scratch KUBECACHEDIR=$scratch/cache KUBECONFIG=/dev/null KUBECTL_KUBERC=false LC_ALL=C
cd "$scratch"

minor_of() {
	"$1" version --client -o json 2>/dev/null | jq -r '.clientVersion.minor // "0"' | tr -cd 0-9
}

kubectl=
if [ -z "${KUBECTL_BUILT:-}" ]; then
	kubectl=$(command -v kubectl || true)
fi
if [ -n "$kubectl" ] && [ "$(minor_of "$kubectl")" -lt 32 ]; then
	kubectl=
fi
if [ -z "$kubectl" ]; then
	if [ $# -lt 2 ]; then
		echo "skipped: no kubectl 1.32 or later on PATH" >&2
		exit 77
	fi
	kubectl=$1/$(basename "$2")
	"$here/build-peers.sh" "$2" "$kubectl" || exit $?
fi

checks=0
failures=0
k() { timeout 300 "$kubectl" --server "$SERVER" "$@"; }
squeeze() { sed -E 's/ +/ /g; s/ $//'; }
fail() {
	failures=$((failures + 1))
	printf 'FAILED %s\n' "$*" >&2
}
# same WHAT WANTED GOT
same() {
	checks=$((checks + 1))
	if [ "$2" != "$3" ]; then
		fail "$1: wanted"
		printf '%s\n' "$2" | sed 's/^/    /' >&2
		printf '  got\n' >&2
		printf '%s\n' "$3" | sed 's/^/    /' >&2
	fi
}
# succeeds WHAT COMMAND...: leaves its output in $out
out=
succeeds() {
	local what=$1 status=0
	shift
	checks=$((checks + 1))
	out=$("$@" 2>"$scratch/err") || status=$?
	if [ "$status" -ne 0 ]; then
		fail "$what: status $status: $out $(cat "$scratch/err")"
	fi
}
# refuses WHAT COMMAND...: leaves its stderr in $out
refuses() {
	local what=$1 status=0
	shift
	checks=$((checks + 1))
	"$@" >/dev/null 2>"$scratch/err" || status=$?
	out=$(cat "$scratch/err")
	if [ "$status" -eq 0 ]; then
		fail "$what: succeeded"
	fi
}
# matches WHAT REGEX TEXT
matches() {
	checks=$((checks + 1))
	if ! printf '%s\n' "$3" | grep -Eq -- "$2"; then
		fail "$1: no match for $2 in"
		printf '%s\n' "$3" | sed 's/^/    /' >&2
	fi
}
# until_lines FILE N: waits until a file that a background command writes has N lines
until_lines() {
	await_line "$1" '' "$background" "$2" || fail "$1 has only $(wc -l <"$1") of $2 lines"
}
stop_background() {
	kill "$background" 2>/dev/null || true
	wait "$background" 2>/dev/null || true
	background=
}

ns=kubectl-test
ns2=kubectl-test-b
for namespace in $ns $ns2; do
	cat >namespace.json <<EOF
{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"$namespace"}}
EOF
	succeeds "create namespace" k create -f namespace.json
	same "create namespace" "namespace/$namespace created" "$out"
done
if [ "$failures" -ne 0 ]; then
	exit 1		# the rest cannot work
fi

# --- what the server is and serves
succeeds "get --raw /healthz" k get --raw /healthz
same "get --raw /healthz" ok "$out"
succeeds "get --raw /readyz" k get --raw /readyz
same "get --raw /readyz" ok "$out"
succeeds "version" k version
matches "version" '^Server Version: ' "$out"
succeeds "api-resources" k api-resources
out=$(printf '%s\n' "$out" | squeeze)
matches "api-resources header" '^NAME SHORTNAMES APIVERSION NAMESPACED KIND$' "$out"
matches "api-resources configmaps" '^configmaps cm v1 true ConfigMap$' "$out"
matches "api-resources pods" '^pods po v1 true Pod$' "$out"
matches "api-resources namespaces" '^namespaces ns v1 false Namespace$' "$out"
matches "api-resources deployments" '^deployments deploy apps/v1 true Deployment$' "$out"
matches "api-resources leases" '^leases coordination.k8s.io/v1 true Lease$' "$out"
matches "api-resources widgets" '^widgets wd example.com/v1 true Widget$' "$out"
matches "api-resources zones" '^zones example.com/v1 false Zone$' "$out"
succeeds "api-resources of a group" k api-resources --api-group=example.com -o name
same "api-resources of a group" "widgets.example.com
zones.example.com" "$(printf '%s\n' "$out" | sort)"
succeeds "api-versions" k api-versions
for version in v1 apps/v1 batch/v1 coordination.k8s.io/v1 example.com/v1; do
	matches "api-versions" "^$version\$" "$out"
done
refuses "get of an unknown resource" k get nosuchthings
matches "get of an unknown resource" "the server doesn't have a resource type \"nosuchthings\"" "$out"

# --- config maps: create and get
for name in a b c d e; do
	colour=red
	case $name in b | d) colour=blue ;; esac
	cat >"cm-$name.json" <<EOF
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"$name","namespace":"$ns","labels":{"colour":"$colour"}},"data":{"key":"value-$name"}}
EOF
done
succeeds "create configmap" k create -f cm-a.json
same "create configmap" "configmap/a created" "$out"
cat cm-b.json cm-c.json cm-d.json | jq -s '{apiVersion:"v1",kind:"List",items:.}' >list.json
succeeds "create a list" k create -f list.json
same "create a list" "configmap/b created
configmap/c created
configmap/d created" "$out"
succeeds "create from YAML" k create -f - <<EOF
apiVersion: v1
kind: ConfigMap
metadata: {name: e, namespace: $ns, labels: {colour: red}}
data:
  key: value-e
EOF
same "create from YAML" "configmap/e created" "$out"
refuses "create again" k create -f cm-a.json
same "create again" "Error from server (AlreadyExists): error when creating \"cm-a.json\": configmaps \"a\" already exists" "$out"
sed "s/$ns/$ns2/" cm-a.json >other.json
succeeds "create in the other namespace" k create -f other.json

succeeds "get table" k get configmaps -n $ns
same "get table" "NAME DATA AGE
a 1
b 1
c 1
d 1
e 1" "$(printf '%s\n' "$out" | squeeze | sed -E 's/ [0-9]+s$//')"
succeeds "get by short name, no headers" k get cm a -n $ns --no-headers
matches "get by short name, no headers" '^a +1 +[0-9]+s$' "$out"
succeeds "get -o name" k get cm -n $ns -o name
same "get -o name" "configmap/a
configmap/b
configmap/c
configmap/d
configmap/e" "$out"
succeeds "get -l" k get cm -n $ns -l colour=blue -o name
same "get -l" "configmap/b
configmap/d" "$out"
succeeds "get -l with a set" k get cm -n $ns -l 'colour in (red,green),!nosuch' -o name
same "get -l with a set" "configmap/a
configmap/c
configmap/e" "$out"
succeeds "get --field-selector" k get cm -n $ns --field-selector metadata.name=c -o name
same "get --field-selector" "configmap/c" "$out"
succeeds "get -L" k get cm a -n $ns -L colour --no-headers
matches "get -L" '^a +1 +[0-9]+s +red$' "$out"
succeeds "get --show-labels" k get cm b -n $ns --show-labels --no-headers
matches "get --show-labels" '^b +1 +[0-9]+s +colour=blue$' "$out"
# In the order of the keys: '-' comes before '/'.
succeeds "get -A" k get cm -A -l colour=red --no-headers
same "get -A" "$ns2 a
$ns a
$ns c
$ns e" "$(printf '%s\n' "$out" | grep "^$ns" | awk '{print $1, $2}')"
succeeds "get -A header" k get cm -A
matches "get -A header" '^NAMESPACE +NAME +DATA +AGE$' "$out"
succeeds "get --chunk-size" k get cm -n $ns --chunk-size=2 -o name
same "get --chunk-size" "configmap/a
configmap/b
configmap/c
configmap/d
configmap/e" "$out"
succeeds "get --chunk-size as a table" k get cm -n $ns --chunk-size=2 --no-headers
same "get --chunk-size as a table" "a b c d e" "$(printf '%s\n' "$out" | awk '{print $1}' | paste -sd' ')"
checks=$((checks + 1))
pages=$(k get cm -n $ns --chunk-size=2 -o name -v=6 2>&1 | grep -c 'configmaps?.*limit=2' || true)
same "pages of --chunk-size=2" 3 "$pages"
succeeds "get --sort-by" k get cm -n $ns --sort-by=.data.key --no-headers
same "get --sort-by" "a b c d e" "$(printf '%s\n' "$out" | awk '{print $1}' | paste -sd' ')"
succeeds "get -o json" k get cm a -n $ns -o json
same "get -o json" '{"apiVersion":"v1","data":{"key":"value-a"},"kind":"ConfigMap","labels":{"colour":"red"},"name":"a","namespace":"kubectl-test"}' \
	"$(printf '%s' "$out" | jq -cS '{apiVersion,kind,data,name:.metadata.name,namespace:.metadata.namespace,labels:.metadata.labels}')"
matches "get -o json: uid" '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' "$(printf '%s' "$out" | jq -r .metadata.uid)"
matches "get -o json: resourceVersion" '^[1-9][0-9]*$' "$(printf '%s' "$out" | jq -r .metadata.resourceVersion)"
succeeds "get -o yaml" k get cm a -n $ns -o yaml
matches "get -o yaml" '^  key: value-a$' "$out"
matches "get -o yaml" '^kind: ConfigMap$' "$out"
succeeds "get -o jsonpath" k get cm -n $ns -o 'jsonpath={.items[*].data.key}'
same "get -o jsonpath" "value-a value-b value-c value-d value-e" "$out"
succeeds "get -o json of a list" k get cm -n $ns -o json
same "get -o json of a list" "List 5" "$(printf '%s' "$out" | jq -r '"\(.kind) \(.items|length)"')"
succeeds "get --raw" k get --raw "/api/v1/namespaces/$ns/configmaps/a"
same "get --raw" value-a "$(printf '%s' "$out" | jq -r .data.key)"
refuses "get of a missing one" k get cm nope -n $ns
same "get of a missing one" 'Error from server (NotFound): configmaps "nope" not found' "$out"
succeeds "get --ignore-not-found" k get cm nope -n $ns --ignore-not-found
same "get --ignore-not-found" "" "$out"
succeeds "get of nothing" k get secrets -n $ns
same "get of nothing" "No resources found in $ns namespace." "$(cat "$scratch/err")"
refuses "get by a field that cannot be selected" k get cm -n $ns --field-selector data.key=x
matches "get by a field that cannot be selected" 'Error from server \(BadRequest\)' "$out"

# --- change
succeeds "patch --type=merge" k patch cm a -n $ns --type=merge -p '{"data":{"key":"merged","more":"yes"}}'
same "patch --type=merge" "configmap/a patched" "$out"
succeeds "patch --type=json" k patch cm a -n $ns --type=json -p '[{"op":"test","path":"/data/key","value":"merged"},{"op":"replace","path":"/data/key","value":"jsoned"},{"op":"remove","path":"/data/more"}]'
same "patch --type=json" "configmap/a patched" "$out"
same "after the patches" '{"key":"jsoned"}' "$(k get cm a -n $ns -o json | jq -c .data)"
succeeds "patch without change" k patch cm a -n $ns --type=merge -p '{"data":{"key":"jsoned"}}'
same "patch without change" "configmap/a patched (no change)" "$out"
refuses "patch with a failing test" k patch cm a -n $ns --type=json -p '[{"op":"test","path":"/data/key","value":"other"}]'
succeeds "patch by default (strategic)" k patch cm a -n $ns -p '{"data":{"key":"strategic"}}'
same "patch by default (strategic)" strategic "$(k get cm a -n $ns -o 'jsonpath={.data.key}')"
refuses "patch of a missing one" k patch cm nope -n $ns --type=merge -p '{}'
matches "patch of a missing one" 'Error from server \(NotFound\): configmaps "nope" not found' "$out"
succeeds "label" k label cm a -n $ns tier=front
same "label" "configmap/a labeled" "$out"
refuses "label again" k label cm a -n $ns tier=back
succeeds "label --overwrite" k label cm a -n $ns tier=back --overwrite
same "after label" back "$(k get cm a -n $ns -o 'jsonpath={.metadata.labels.tier}')"
succeeds "label -l" k label cm -n $ns -l colour=blue tier=mid
same "label -l" "configmap/b labeled
configmap/d labeled" "$out"
succeeds "label removed" k label cm a -n $ns tier-
same "label removed" "configmap/a unlabeled" "$out"
same "after label removed" '{"colour":"red"}' "$(k get cm a -n $ns -o json | jq -c .metadata.labels)"
succeeds "annotate" k annotate cm a -n $ns note='two words'
same "annotate" "configmap/a annotated" "$out"
same "after annotate" "two words" "$(k get cm a -n $ns -o 'jsonpath={.metadata.annotations.note}')"
succeeds "annotation removed" k annotate cm a -n $ns note-
same "annotation removed" "configmap/a annotated" "$out"

k get cm b -n $ns -o json | jq '.data.key="replaced"' >replace.json
succeeds "replace" k replace -f replace.json
same "replace" "configmap/b replaced" "$out"
refuses "replace with an old revision" k replace -f replace.json
matches "replace with an old revision" 'Error from server \(Conflict\).*the object has been modified' "$out"
succeeds "apply that creates" k apply -f - <<EOF
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied","namespace":"$ns"},"data":{"one":"1","two":"2"}}
EOF
same "apply that creates" "configmap/applied created" "$out"
cat >applied.json <<EOF
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied","namespace":"$ns"},"data":{"one":"1","three":"3"}}
EOF
checks=$((checks + 1))
status=0
k diff -f applied.json >diff.out 2>&1 || status=$?
same "diff" "1: -two: \"2\" +three: \"3\"" "$status: $(grep -E '^[-+] ' diff.out | squeeze | sed -E 's/^([-+]) /\1/' | sort -r | paste -sd' ')"
succeeds "apply that changes" k apply -f applied.json
same "apply that changes" "configmap/applied configured" "$out"
same "after apply" '{"one":"1","three":"3"}' "$(k get cm applied -n $ns -o json | jq -cS .data)"
succeeds "apply without change" k apply -f applied.json
same "apply without change" "configmap/applied unchanged" "$out"
refuses "server-side apply" k apply --server-side -f applied.json
matches "server-side apply" 'Server-side apply not available on the server' "$out"
same "after server-side apply" '{"one":"1","three":"3"}' "$(k get cm applied -n $ns -o json | jq -cS .data)"
succeeds "create --dry-run=server" k create -f - --dry-run=server <<EOF
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"dry","namespace":"$ns"}}
EOF
same "create --dry-run=server" "configmap/dry created (server dry run)" "$out"
refuses "the dry run stored nothing" k get cm dry -n $ns
succeeds "describe" k describe cm a -n $ns
matches "describe" '^Name: +a$' "$out"
succeeds "delete applied" k delete cm applied -n $ns

# --- objects that kubectl makes itself: typed clients, so protobuf bodies
succeeds "create configmap" k create configmap made -n $ns --from-literal=a=1 --from-literal=b=two
same "create configmap" "configmap/made created" "$out"
same "what it made" '{"a":"1","b":"two"}' "$(k get cm made -n $ns -o json | jq -cS .data)"
succeeds "create namespace" k create namespace $ns-made
same "create namespace" "namespace/$ns-made created" "$out"
refuses "create namespace again" k create namespace $ns-made
same "create namespace again" "Error from server (AlreadyExists): namespaces \"$ns-made\" already exists" "$out"
succeeds "create deployment" k create deployment made -n $ns --image=example/image
same "create deployment" "deployment.apps/made created" "$out"
succeeds "create secret" k create secret generic made -n $ns --from-literal=password=p
same "create secret" "secret/made created" "$out"
succeeds "describe namespace" k describe namespace $ns-made
matches "describe namespace" '^Status: +Active$' "$out"
succeeds "describe deployment" k describe deployment made -n $ns
matches "describe deployment" '^Replicas: +1 desired' "$out"
succeeds "scale deployment" k scale deployment made -n $ns --replicas=4
same "after scale" 4 "$(k get deployment made -n $ns -o 'jsonpath={.spec.replicas}')"
succeeds "scale to zero" k scale deployment made -n $ns --replicas=0
same "scale to zero" "deployment.apps/made scaled" "$out"
same "after scale to zero" 0 "$(k get deployment made -n $ns -o 'jsonpath={.spec.replicas}')"
succeeds "scale back from zero" k scale deployment made -n $ns --current-replicas=0 --replicas=2
same "after scale back from zero" 2 "$(k get deployment made -n $ns -o 'jsonpath={.spec.replicas}')"
# As a typed client does: Go omits a zero.
k get --raw "/apis/apps/v1/namespaces/$ns/deployments/made/scale" | jq -c 'del(.spec.replicas)' >zero.json
succeeds "a scale without a number" k replace --raw "/apis/apps/v1/namespaces/$ns/deployments/made/scale" -f zero.json
same "after a scale without a number" 0 "$(k get deployment made -n $ns -o 'jsonpath={.spec.replicas}')"
succeeds "edit" env KUBE_EDITOR="sed -i 's/b: two/b: edited/'" timeout 300 "$kubectl" --server "$SERVER" edit configmap made -n $ns
same "edit" "configmap/made edited" "$out"
same "after edit" edited "$(k get cm made -n $ns -o 'jsonpath={.data.b}')"
succeeds "edit without change" env KUBE_EDITOR=true timeout 300 "$kubectl" --server "$SERVER" edit configmap made -n $ns
matches "edit without change" 'no changes' "$out$(cat "$scratch/err")"
uid=$(k get cm made -n $ns -o 'jsonpath={.metadata.uid}')
k get cm made -n $ns -o json | jq '.data={forced:"yes"}' >forced.json
succeeds "replace --force" k replace --force -f forced.json
same "replace --force" "configmap \"made\" deleted
configmap/made replaced" "${out/ from $ns namespace/}"
same "after replace --force" yes "$(k get cm made -n $ns -o 'jsonpath={.data.forced}')"
checks=$((checks + 1))
if [ "$(k get cm made -n $ns -o 'jsonpath={.metadata.uid}')" = "$uid" ]; then
	fail "replace --force: still the same object"
fi
refuses "replace of a missing one" k replace -n $ns -f - <<EOF
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"nope"}}
EOF
matches "replace of a missing one" 'Error from server \(NotFound\): .*configmaps "nope" not found' "$out"
succeeds "auth can-i" k auth can-i list pods
same "auth can-i" yes "$out"
succeeds "auth can-i --list" k auth can-i --list
matches "auth can-i --list" '^Resources +Non-Resource URLs +Resource Names +Verbs' "$out"
succeeds "auth whoami" k auth whoami -o 'jsonpath={.status.userInfo.username}'
same "auth whoami" "system:anonymous" "$out"
succeeds "delete them" k delete configmap,secret,deployment made -n $ns
succeeds "delete namespace" k delete namespace $ns-made
matches "delete namespace" "^namespace \"$ns-made\" deleted" "$out"

# --- secrets: types, stringData, immutability
succeeds "create secret tls" k create -n $ns -f - <<EOF
{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s-tls"},"type":"kubernetes.io/tls","stringData":{"tls.crt":"c","tls.key":"k"}}
EOF
refuses "create secret tls without its key" k create -n $ns -f - <<EOF
{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s-bad"},"type":"kubernetes.io/tls","stringData":{"tls.crt":"c"}}
EOF
matches "create secret tls without its key" 'Secret "s-bad" is invalid: data\[tls.key\]: Required value' "$out"
succeeds "apply a secret" k apply -n $ns -f - <<EOF
{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s-plain"},"data":{"a":"eA=="},"stringData":{"b":"y"}}
EOF
succeeds "create secret generic" k create secret generic s-typed -n $ns --type=example.com/my --from-literal=a=1 --from-literal=b=2 --from-literal=c=3
same "what a secret holds" '{"data":{"a":"eA==","b":"eQ=="},"type":"Opaque"}' \
	"$(k get secret s-plain -n $ns -o json | jq -cS '{data,type} + (if .stringData then {stringData} else {} end)')"
same "secrets" 's-plain Opaque 2
s-tls kubernetes.io/tls 2
s-typed example.com/my 3' "$(k get secrets -n $ns --no-headers | awk '{ print $1, $2, $3 }')"
matches "header of secrets" '^NAME +TYPE +DATA +AGE$' "$(k get secrets -n $ns | head -1)"
same "secrets by type" secret/s-plain "$(k get secrets -n $ns --field-selector type=Opaque -o name)"
same "secrets of other types" 'secret/s-tls
secret/s-typed' "$(k get secrets -n $ns --field-selector 'type!=Opaque' -o name)"
succeeds "describe secret" k describe secret s-plain -n $ns
matches "describe secret" '^Type: +Opaque$' "$out"
matches "describe secret" '^b: +1 bytes$' "$out"
succeeds "apply it again" k apply -n $ns -f - <<EOF
{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s-plain"},"data":{"a":"eA=="},"stringData":{"b":"z"}}
EOF
same "after apply" '{"a":"eA==","b":"eg=="}' "$(k get secret s-plain -n $ns -o json | jq -cS .data)"
refuses "another type" k patch secret s-plain -n $ns -p '{"type":"x/y"}'
matches "another type" 'Secret "s-plain" is invalid: type: Invalid value: "x/y": field is immutable' "$out"
succeeds "create m-plain" k create configmap m-plain -n $ns --from-literal=a=x
for kind in secret configmap; do
	object=s-plain title=Secret
	[ $kind = secret ] || object=m-plain title=ConfigMap
	succeeds "make $kind immutable" k patch $kind $object -n $ns --type=merge -p '{"immutable":true}'
	for type in merge strategic; do
		refuses "$type: data of an immutable $kind" k patch $kind $object -n $ns --type=$type -p '{"data":{"new":"eA=="}}'
		matches "$type: data of an immutable $kind" "$title \"$object\" is invalid: data: Forbidden: field is immutable when .immutable. is set" "$out"
		refuses "$type: immutable of an immutable $kind" k patch $kind $object -n $ns --type=$type -p '{"immutable":null}'
		matches "$type: immutable of an immutable $kind" "$title \"$object\" is invalid: immutable: Forbidden: field is immutable when .immutable. is set" "$out"
	done
	refuses "json: immutable of an immutable $kind" k patch $kind $object -n $ns --type=json -p '[{"op":"replace","path":"/immutable","value":false}]'
	matches "json: immutable of an immutable $kind" 'immutable: Forbidden' "$out"
	k get $kind $object -n $ns -o json | jq 'del(.data,.immutable)' >mutated.json
	refuses "replace of an immutable $kind" k replace -f mutated.json
	matches "replace of an immutable $kind" 'immutable: Forbidden: .*data: Forbidden' "$(printf %s "$out" | tr '\n' ' ')"
	succeeds "label of an immutable $kind" k label $kind $object -n $ns fixed=yes
done
succeeds "delete secrets" k delete secret s-plain s-tls s-typed -n $ns
succeeds "delete m-plain" k delete configmap m-plain -n $ns

# --- names: each kind has its rule
long=$(printf 'a%.0s' $(seq 64))
refuses "service a.b" k create service clusterip a.b -n $ns --tcp=80
matches "service a.b" 'Service "a.b" is invalid: metadata.name: Invalid value: "a.b": must not contain dots' "$out"
refuses "service of 64 letters" k create service clusterip "$long" -n $ns --tcp=80
matches "service of 64 letters" 'must be no more than 63 characters' "$out"
succeeds "service of 63 letters" k create service clusterip "${long%a}" -n $ns --tcp=80
succeeds "configmap of 66 characters" k create configmap "$long.b" -n $ns
refuses "namespace a.b" k create namespace a.b
matches "namespace a.b" 'Namespace "a.b" is invalid: .*must not contain dots' "$out"
refuses "cronjob of 53 letters" k create cronjob "${long%aaaaaaaaaaa}" -n $ns --image=x --schedule='* * * * *'
matches "cronjob of 53 letters" 'must be no more than 52 characters' "$out"
succeeds "delete them" k delete service/"${long%a}" configmap/"$long.b" -n $ns

# --- numbers that a Go client cannot read
refuses "a number above float64" k create --raw "/apis/example.com/v1/namespaces/$ns/widgets" -f - <<EOF
{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w-number","namespace":"$ns"},"spec":{"size":1e400}}
EOF
matches "a number above float64" 'cannot unmarshal number 1e400 into Go value of type float64' "$out"
succeeds "a whole number as a fraction" k create --raw "/apis/example.com/v1/namespaces/$ns/widgets" -f - <<EOF
{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w-number","namespace":"$ns"},"spec":{"size":1.0}}
EOF
same "a whole number as a fraction" '{"size":1}' "$(k get --raw "/apis/example.com/v1/namespaces/$ns/widgets/w-number" | jq -c .spec)"
refuses "a patch with such a number" k patch widget w-number -n $ns --type=merge -p '{"spec":{"size":-1e309}}'
matches "a patch with such a number" 'number -1e309' "$out"
succeeds "delete it" k delete widget w-number -n $ns

# --- watch
: >watch.out
timeout 300 "$kubectl" --server "$SERVER" get cm -n $ns -w --no-headers -l colour=blue >watch.out 2>watch.err &
background=$!
until_lines watch.out 2
k patch cm b -n $ns --type=merge -p '{"data":{"watched":"1"}}' >/dev/null
until_lines watch.out 3
k label cm c -n $ns colour=blue --overwrite >/dev/null
until_lines watch.out 4
k delete cm d -n $ns >/dev/null
until_lines watch.out 5
stop_background
same "get -w" "b 1
d 1
b 2
c 1
d 1" "$(awk '{print $1, $2}' watch.out)"
: >watch.out
timeout 300 "$kubectl" --server "$SERVER" get cm -n $ns --watch-only --output-watch-events -o json >watch.out 2>watch.err &
background=$!
# The watch may not have started yet: change until it shows an event.
tries=0
while [ ! -s watch.out ] && [ "$tries" -lt 50 ]; do
	tries=$((tries + 1))
	k patch cm e -n $ns --type=merge -p "{\"data\":{\"watched\":\"$tries\"}}" >/dev/null
done
k delete cm e -n $ns >/dev/null
await_line watch.out '"type": *"DELETED"' "$background" || true
stop_background
same "get --watch-only" "DELETED e MODIFIED e" "$(jq -r '.type + " " + .object.metadata.name' watch.out | sort -u | paste -sd' ')"
# A watch of one name, without a list before it.
: >watch.out
timeout 300 "$kubectl" --server "$SERVER" get cm a -n $ns -w --no-headers >watch.out 2>watch.err &
background=$!
until_lines watch.out 1
k annotate cm a -n $ns watched=yes >/dev/null
until_lines watch.out 2
stop_background
same "get NAME -w" "a 1
a 1" "$(awk '{print $1, $2}' watch.out)"

# --- wait and delete
k wait --for=delete cm/c -n $ns --timeout=30s >wait.out 2>&1 &
background=$!
succeeds "delete one" k delete cm c -n $ns
same "delete one" "configmap \"c\" deleted" "${out% from $ns namespace}"
status=0
wait "$background" || status=$?
background=
same "wait --for=delete" "0" "$status"
succeeds "wait --for=delete of one that is gone" k wait --for=delete cm/c -n $ns --timeout=10s
succeeds "delete -l" k delete cm -n $ns -l colour=blue
same "delete -l" "configmap \"b\" deleted" "${out% from $ns namespace}"
refuses "delete of a missing one" k delete cm nope -n $ns
same "delete of a missing one" 'Error from server (NotFound): configmaps "nope" not found' "$out"
succeeds "delete --ignore-not-found" k delete cm nope -n $ns --ignore-not-found

# --- pods: columns, the node trigger
for name in web-0 web-1 web-2; do
	node=node-${name#web-}
	if [ "$name" = web-2 ]; then node=; fi
	cat >"pod-$name.json" <<EOF
{"apiVersion":"v1","kind":"Pod","metadata":{"name":"$name","namespace":"$ns","labels":{"app":"web"}},
 "spec":{"nodeName":"$node","containers":[{"name":"main","image":"example/image:1"},{"name":"side","image":"example/side:1"}]}}
EOF
done
cat pod-*.json | jq -s '{apiVersion:"v1",kind:"List",items:.}' >pods.json
succeeds "create pods" k create -f pods.json
same "create pods" "pod/web-0 created
pod/web-1 created
pod/web-2 created" "$out"
succeeds "get pods" k get pods -n $ns
same "get pods" "NAME READY STATUS RESTARTS AGE
web-0 0/2 Pending 0
web-1 0/2 Pending 0
web-2 0/2 Pending 0" "$(printf '%s\n' "$out" | squeeze | sed -E 's/ [0-9]+s$//')"
succeeds "get pods -o wide" k get pods -n $ns -o wide
matches "get pods -o wide, header" '^NAME +READY +STATUS +RESTARTS +AGE +IP +NODE +NOMINATED NODE +READINESS GATES$' "$out"
matches "get pods -o wide" '^web-1 +0/2 +Pending +0 +[0-9]+s +<none> +node-1 +<none> +<none>$' "$out"
succeeds "pods of a node" k get pods -n $ns --field-selector spec.nodeName=node-1 -o name
same "pods of a node" "pod/web-1" "$out"
succeeds "pods of no node" k get pods -n $ns --field-selector spec.nodeName= -o name
same "pods of no node" "pod/web-2" "$out"
: >watch.out
timeout 300 "$kubectl" --server "$SERVER" get pods -n $ns -w --no-headers --field-selector spec.nodeName=node-0 >watch.out 2>watch.err &
background=$!
until_lines watch.out 1
succeeds "status patch" k patch pod web-0 -n $ns --subresource=status --type=merge -p '{"status":{"phase":"Running","containerStatuses":[{"name":"main","ready":true,"restartCount":2,"image":"x","imageID":"x","state":{"running":{}}},{"name":"side","ready":true,"restartCount":1,"image":"x","imageID":"x","state":{"running":{}}}]}}'
until_lines watch.out 2
succeeds "delete pod" k delete pod web-0 -n $ns --grace-period=0 --force
until_lines watch.out 3
stop_background
same "get pods -w of a node" "web-0 0/2 Pending
web-0 2/2 Running" "$(awk '{print $1, $2, $3}' watch.out | head -2)"
succeeds "status=Running is gone" k get pods -n $ns --field-selector status.phase=Running -o name
same "status=Running is gone" "" "$out"
succeeds "delete pods --all" k delete pods --all -n $ns --grace-period=0 --force
same "delete pods --all" "pod \"web-1\" force deleted
pod \"web-2\" force deleted" "$(printf '%s\n' "$out" | sed "s/ from $ns namespace//")"

# --- a custom kind
cat >widget.json <<EOF
{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w1","namespace":"$ns"},"spec":{"colour":"red","size":3,"note":"a note"}}
EOF
succeeds "create a widget" k create -f widget.json
same "create a widget" "widget.example.com/w1 created" "$out"
sed 's/w1/w2/; s/red/blue/' widget.json | k create -f - >/dev/null
succeeds "get widgets" k get wd -n $ns
same "get widgets" "NAME COLOUR SIZE AGE
w1 red 3
w2 blue 3" "$(printf '%s\n' "$out" | squeeze | sed -E 's/ [0-9]+s$//')"
succeeds "get widgets -o wide" k get widgets.example.com -n $ns -o wide
matches "get widgets -o wide, header" '^NAME +COLOUR +SIZE +NOTE +AGE$' "$out"
matches "get widgets -o wide" '^w1 +red +3 +a note +[0-9]+s$' "$out"
succeeds "get widgets by field" k get widgets.v1.example.com -n $ns --field-selector spec.colour=blue -o name
same "get widgets by field" "widget.example.com/w2" "$out"
succeeds "patch a widget" k patch widget w1 -n $ns --type=merge -p '{"spec":{"colour":"green"}}'
same "patch a widget" "widget.example.com/w1 patched" "$out"
succeeds "wait for a value" k wait widget/w1 -n $ns --for=jsonpath='{.spec.colour}'=green --timeout=20s
same "wait for a value" "widget.example.com/w1 condition met" "$out"
succeeds "apply a widget" k apply -f - <<EOF
{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w3","namespace":"$ns"},"spec":{"colour":"red","size":1}}
EOF
succeeds "apply a widget again" k apply -f - <<EOF
{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w3","namespace":"$ns"},"spec":{"size":2}}
EOF
same "apply a widget again" "widget.example.com/w3 configured" "$out"
same "after apply of a widget" '{"size":2}' "$(k get widget w3 -n $ns -o json | jq -c .spec)"
: >watch.out
timeout 300 "$kubectl" --server "$SERVER" get wd -n $ns -w --no-headers --field-selector spec.colour=green >watch.out 2>watch.err &
background=$!
until_lines watch.out 1
k patch widget w2 -n $ns --type=merge -p '{"spec":{"colour":"green"}}' >/dev/null
until_lines watch.out 2
stop_background
same "get widgets -w" "w1 green
w2 green" "$(awk '{print $1, $2}' watch.out)"
succeeds "create a zone" k create -f - <<EOF
{"apiVersion":"example.com/v1","kind":"Zone","metadata":{"name":"z1"},"spec":{}}
EOF
same "create a zone" "zone.example.com/z1 created" "$out"
succeeds "get zones" k get zones
matches "get zones" '^NAME +AGE$' "$out"
matches "get zones" '^z1 +[0-9]+s$' "$out"
succeeds "delete a zone" k delete zone z1
succeeds "delete widgets --all" k delete widgets --all -n $ns
same "delete widgets --all" "widget.example.com \"w1\" deleted
widget.example.com \"w2\" deleted
widget.example.com \"w3\" deleted" "$(printf '%s\n' "$out" | sed "s/ from $ns namespace//")"
succeeds "no widgets left" k get widgets -n $ns -o name
same "no widgets left" "" "$out"

# --- a custom kind with a schema
crontab() { # NAME CRON MORE
	cat <<EOF
apiVersion: stable.example.com/v1
kind: CronTab
metadata: {name: $1, namespace: $ns}
spec: {cronSpec: "$2", $3}
EOF
}
crontab good '* * * * */5' 'image: x' >good.yaml
crontab bad '* * *' 'image: 5, replicas: 11' >bad.yaml
crontab odd '* * * * *' 'colour: red' >odd.yaml
succeeds "apply a crontab" k apply -f good.yaml
same "its default" '{"cronSpec":"* * * * */5","image":"x","replicas":3}' "$(k get ct good -n $ns -o json | jq -cS .spec)"
succeeds "apply it again" k apply -f good.yaml
same "apply it again" "crontab.stable.example.com/good unchanged" "$out"
refuses "an invalid crontab" k apply -f bad.yaml
same "an invalid crontab" 'The CronTab "bad" is invalid: 
* spec.cronSpec: Invalid value: "* * *": spec.cronSpec in body should match '"'"'^(\d+|\*)(/\d+)?(\s+(\d+|\*)(/\d+)?){4}$'"'"'
* spec.image: Invalid value: "integer": spec.image in body must be of type string: "integer"
* spec.replicas: Invalid value: 11: spec.replicas in body should be less than or equal to 10' "$out"
refuses "an unknown field" k apply -f odd.yaml
matches "an unknown field" 'strict decoding error: unknown field "spec.colour"$' "$out"
succeeds "an unknown field, warned of" k create --validate=warn -f odd.yaml
same "an unknown field, warned of" 'Warning: unknown field "spec.colour"' "$(cat "$scratch/err")"
same "an unknown field is pruned" '{"cronSpec":"* * * * *","replicas":3}' "$(k get ct odd -n $ns -o json | jq -cS .spec)"
succeeds "a null with a default" k patch ct good -n $ns --type=merge -p '{"spec":{"replicas":null,"image":null}}'
same "a null with a default" '{"cronSpec":"* * * * */5","replicas":3}' "$(k get ct good -n $ns -o json | jq -cS .spec)"
refuses "a patch to something invalid" k patch ct good -n $ns --type=merge -p '{"spec":{"replicas":0}}'
same "a patch to something invalid" 'The CronTab "good" is invalid: spec.replicas: Invalid value: 0: spec.replicas in body should be greater than or equal to 1' "$out"
succeeds "scale" k scale ct good -n $ns --replicas=7
refuses "scale too far" k scale ct good -n $ns --replicas=70
matches "scale too far" 'spec.replicas in body should be less than or equal to 10$' "$out"
refuses "a status of another type" k patch ct good -n $ns --subresource=status --type=merge -p '{"status":{"replicas":"x"}}'
matches "a status of another type" 'status.replicas: Invalid value: "string": replicas in body must be of type integer: "string"$' "$out"
refuses "dry run" k create --dry-run=server -n $ns -f - <<EOF
{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"dry"},"spec":{}}
EOF
same "dry run" 'The CronTab "dry" is invalid: spec.cronSpec: Required value' "$out"
succeeds "explain" k explain crontabs
matches "explain" '^ *CronTab runs things\.$' "$out"
succeeds "explain a field" k explain crontabs.spec.cronSpec
matches "explain a field" '^FIELD: cronSpec <string>$' "$out"
matches "explain a field" '^ *When, as cron writes it\.$' "$out"
succeeds "explain metadata" k explain crontabs.metadata.labels
matches "explain metadata" '^FIELD: labels <map\[string\]string>$' "$out"
succeeds "delete the crontabs" k delete ct --all -n $ns

# --- a CustomResourceDefinition: served at once, in several versions, and deleted with its objects
gizmo_crd() { # V1-STORAGE V2-SERVED V2-STORAGE
	cat <<EOF
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmos.kinds.example.com}
spec:
  group: kinds.example.com
  scope: Namespaced
  names: {plural: gizmos, kind: Gizmo, shortNames: [gz], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: $1
    schema: &schema
      openAPIV3Schema:
        type: object
        description: Gizmo does things.
        properties:
          spec: {type: object, properties: {size: {type: integer, description: How big it is., default: 1}, color: {type: string}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    selectableFields: [{jsonPath: .spec.color}]
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status'}
    - {name: Color, type: string, jsonPath: .spec.color, priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
  - name: v2
    served: $2
    storage: $3
    schema: *schema
EOF
}
gizmo_crd true false false >gizmos.yaml
gizmo_crd false true true >gizmos2.yaml
printf '{"apiVersion":"kinds.example.com/v1","kind":"Gizmo","metadata":{"name":"g1","namespace":"%s"},"spec":{"size":3,"color":"red"}}' "$ns" >gizmo.json
succeeds "apply a definition" k apply -f gizmos.yaml
succeeds "wait for it" k wait --for=condition=Established crd/gizmos.kinds.example.com --timeout=55s
succeeds "apply an object of it" k apply -f gizmo.json
succeeds "get -o wide" k get gz -n $ns -o wide
same "get -o wide" "NAME SIZE READY COLOR AGE
g1 3 red N" "$(printf '%s\n' "$out" | squeeze | sed -E 's/[0-9]+m?[0-9]*s$/N/')"
succeeds "by a field" k get gz -n $ns --field-selector spec.color=blue -o name
same "by a field" "" "$out"
succeeds "explain it" k explain gizmos.spec.size
matches "explain it" 'How big it is\.' "$out"
succeeds "its status" k patch gz g1 -n $ns --subresource=status --type=merge -p '{"status":{"size":2,"conditions":[{"type":"Ready","status":"True"}]},"spec":{"size":9}}'
same "its status" '3 True' "$(k get gz g1 -n $ns -o json | jq -r '"\(.spec.size) \(.status.conditions[0].status)"')"
succeeds "scale it" k scale gz g1 -n $ns --replicas=5
same "scale it" 5 "$(k get gz g1 -n $ns -o json | jq .spec.size)"
succeeds "its columns by default" k get gz g1 -n $ns
matches "its columns by default" '^NAME +SIZE +READY +AGE' "$out"
succeeds "patch it by operations" k patch gz g1 -n $ns --type=json -p '[{"op":"test","path":"/spec/size","value":5},{"op":"replace","path":"/spec/size","value":6}]'
same "patch it by operations" 6 "$(k get gz g1 -n $ns -o 'jsonpath={.spec.size}')"
succeeds "patch it by merging" k patch gz g1 -n $ns --type=merge -p '{"spec":{"size":7,"color":null}}'
same "patch it by merging" '{"size":7}' "$(k get gz g1 -n $ns -o json | jq -c '.spec')"
refuses "a strategic patch of it" k patch gz g1 -n $ns --type=strategic -p '{"spec":{"size":8}}'
matches "a strategic patch of it" 'the body of the request was in an unknown format - accepted media types include: application/json-patch\+json, application/merge-patch\+json' "$out"
refuses "server-side apply of it" k apply --server-side -f gizmo.json
succeeds "apply it changed" k apply -f <(sed 's/"size": *3/"size":4/' gizmo.json)
same "apply it changed" "gizmo.kinds.example.com/g1 configured" "$out"
same "apply it changed" 4 "$(k get gz g1 -n $ns -o 'jsonpath={.spec.size}')"
cat >editor.sh <<'EOF'
#!/bin/sh
sed -i 's/size: 4/size: 5/' "$1"
EOF
chmod +x editor.sh
succeeds "edit it" env KUBE_EDITOR="$PWD/editor.sh" timeout 120 "$kubectl" --server "$SERVER" edit gz g1 -n $ns
same "edit it" "gizmo.kinds.example.com/g1 edited" "$out"
same "edit it" 5 "$(k get gz g1 -n $ns -o 'jsonpath={.spec.size}')"
succeeds "wait for a value of it" k wait gz/g1 -n $ns --for=jsonpath='{.spec.size}'=5 --timeout=55s
succeeds "replace it" k replace -f <(k get gz g1 -n $ns -o json | jq '.spec.size = 3')
same "replace it" 3 "$(k get gz g1 -n $ns -o 'jsonpath={.spec.size}')"
succeeds "scale it back" k scale gz g1 -n $ns --current-replicas=3 --replicas=5
succeeds "apply a second version" k apply -f gizmos2.yaml
succeeds "an object in it" await_success "" k get --raw "/apis/kinds.example.com/v2/namespaces/$ns/gizmos/g1"
same "an object in both" 'kinds.example.com/v1 kinds.example.com/v2' \
	"$(for v in v1 v2; do k get --raw "/apis/kinds.example.com/$v/namespaces/$ns/gizmos/g1" | jq -r .apiVersion; done | xargs)"
refuses "a definition with a webhook" k patch crd gizmos.kinds.example.com --type=merge -p '{"spec":{"conversion":{"strategy":"Webhook"}}}'
matches "a definition with a webhook" 'this server calls no webhooks' "$out"
timeout 240 "$kubectl" --server "$SERVER" get --raw "/apis/kinds.example.com/v1/namespaces/$ns/gizmos?watch=1" >gizmos.watch 2>&1 &
background=$!
succeeds "a watch of it" await_line gizmos.watch ADDED "$background"
succeeds "delete the definition" k delete crd gizmos.kinds.example.com
wait "$background" || true
background=
matches "the watch saw its object go, and ended" '"type":"DELETED"' "$(cat gizmos.watch)"
refuses "none is served any more" k get --raw "/apis/kinds.example.com/v1/namespaces/$ns/gizmos"
matches "none is served any more" 'could not find the requested resource' "$out"

printf 'kubectl.sh: %s checks, %s failed (%s)\n' "$checks" "$failures" "$("$kubectl" version --client 2>/dev/null | head -1)"
[ "$failures" -eq 0 ]
