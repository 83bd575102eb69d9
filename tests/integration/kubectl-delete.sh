#!/bin/bash
# Usage: SERVER=http://HOST:PORT kubectl-delete.sh [BUILD-DIR SOURCE-DIR]
# Deletion by kubectl: cascades of objects with owner references, built-in and custom ones, namespaces with
# objects that have finalizers, and with 5,000 objects.
# rules: R-664, R-666, R-667, H-345
set -eu

here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export HOME=$scratch KUBECACHEDIR=$scratch/cache KUBECONFIG=/dev/null KUBECTL_KUBERC=false LC_ALL=C
kubectl=$(command -v kubectl || true)
if [ -z "$kubectl" ]; then
	if [ $# -lt 2 ]; then
		echo "skipped: no kubectl on PATH" >&2
		exit 77
	fi
	"$here/build-peers.sh" "$2" "$1/kubectl" || exit $?
	kubectl=$1/kubectl
fi

failures=0
k() { timeout 600 "$kubectl" --server "$SERVER" "$@"; }
# same WHAT WANTED GOT
same() {
	if [ "$2" != "$3" ]; then
		failures=$((failures + 1))
		printf 'FAILED %s: wanted "%s", got "%s"\n' "$1" "$2" "$3" >&2
	fi
}
names() { k get "$1" -n "$2" -o name | sort | tr '\n' ' '; }
# tree NAMESPACE: a deployment, its replica set, and two pods of that
tree() {
	k create namespace "$1"
	k create deployment web --image=example/web -n "$1"
	uid=$(k get deployment web -n "$1" -o 'jsonpath={.metadata.uid}')
	k create -f - <<END
{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"web-1","namespace":"$1","ownerReferences":[
 {"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"$uid","controller":true,"blockOwnerDeletion":true}]},
 "spec":{"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"example/web"}]}}}}
END
	uid=$(k get replicaset web-1 -n "$1" -o 'jsonpath={.metadata.uid}')
	for pod in a b; do
		k create -f - <<END
{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1-$pod","namespace":"$1","ownerReferences":[
 {"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-1","uid":"$uid","controller":true,"blockOwnerDeletion":true}]},
 "spec":{"containers":[{"name":"web","image":"example/web"}]}}
END
	done
}

tree background
k delete deployment web -n background --cascade=background
k wait --for=delete -n background replicaset/web-1 pod/web-1-a pod/web-1-b --timeout=600s
same "background" "" "$(names replicaset,pod background)"

tree foreground
k delete deployment web -n foreground --cascade=foreground
same "foreground: all went before" "" "$(names replicaset,pod foreground)"

tree orphan
k delete deployment web -n orphan --cascade=orphan
same "orphans stay" "pod/web-1-a pod/web-1-b replicaset.apps/web-1 " "$(names replicaset,pod orphan)"
same "orphans have no owner" "" "$(k get replicaset web-1 -n orphan -o 'jsonpath={.metadata.ownerReferences}')"
k delete replicaset web-1 -n orphan
k wait --for=delete -n orphan pod/web-1-a pod/web-1-b --timeout=600s

# Owners of a kind from a definition: a gadget owns another one and a config map.
k create -f - <<END
{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gadgets.delete.example.com"},"spec":{"group":"delete.example.com","scope":"Namespaced",
 "names":{"plural":"gadgets","kind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}
END
k wait --for=condition=Established crd/gadgets.delete.example.com --timeout=600s
# gadgets NAMESPACE
gadgets() {
	k create namespace "$1"
	k create -f - <<<"{\"apiVersion\":\"delete.example.com/v1\",\"kind\":\"Gadget\",\"metadata\":{\"name\":\"owner\",\"namespace\":\"$1\"}}"
	uid=$(k get gadget owner -n "$1" -o 'jsonpath={.metadata.uid}')
	for kind in '"delete.example.com/v1","kind":"Gadget"' '"v1","kind":"ConfigMap"'; do
		k create -f - <<END
{"apiVersion":$kind,"metadata":{"name":"owned","namespace":"$1","ownerReferences":[
 {"apiVersion":"delete.example.com/v1","kind":"Gadget","name":"owner","uid":"$uid","blockOwnerDeletion":true}]}}
END
	done
}
gadgets gadgets-background
k delete gadget owner -n gadgets-background --cascade=background
k wait --for=delete -n gadgets-background gadget/owned configmap/owned --timeout=600s
same "a custom owner, background" "" "$(names gadget,configmap gadgets-background)"
gadgets gadgets-foreground
k delete gadget owner -n gadgets-foreground --cascade=foreground
same "a custom owner, foreground: all went before" "" "$(names gadget,configmap gadgets-foreground)"
gadgets gadgets-orphan
k delete gadget owner -n gadgets-orphan --cascade=orphan
same "a custom owner's orphans stay" "configmap/owned gadget.delete.example.com/owned " "$(names gadget,configmap gadgets-orphan)"
same "a custom owner's orphans have no owner" "" "$(k get gadget,configmap -n gadgets-orphan -o 'jsonpath={.items[*].metadata.ownerReferences}')"
# The dependents of custom objects are deleted with the kind.
gadgets gadgets-kind
k delete crd gadgets.delete.example.com
k wait --for=delete -n gadgets-kind configmap/owned --timeout=600s
same "what a kind's objects owned" "" "$(names configmap gadgets-kind)"

k create namespace held
k create configmap kept -n held
k patch configmap kept -n held --type=merge -p '{"metadata":{"finalizers":["example.com/hold"]}}'
k delete namespace held --wait=false
k wait --for=condition=NamespaceFinalizersRemaining namespace/held --timeout=600s
same "what it waits for" "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances" \
	"$(k get namespace held -o 'jsonpath={.status.conditions[?(@.type=="NamespaceFinalizersRemaining")].message}')"
same "phase" "Terminating" "$(k get namespace held -o 'jsonpath={.status.phase}')"
same "a create is refused" "1" "$(k create configmap late -n held 2>&1 | grep -c 'because it is being terminated')"
k patch configmap kept -n held --type=merge -p '{"metadata":{"finalizers":null}}'
k wait --for=delete namespace/held --timeout=600s

k create namespace many
for i in $(seq 5000); do
	printf -- '---\n{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c%d","namespace":"many"}}\n' "$i"
done >"$scratch/many.yaml"
k create -f "$scratch/many.yaml" >/dev/null
same "objects" "5000" "$(k get configmap -n many -o name | wc -l)"
k delete namespace many
same "nothing is left" "" "$(names configmap many)"
same "a namespace that stays" "1" "$(k delete namespace default 2>&1 | grep -c 'this namespace may not be deleted')"

for namespace in background foreground orphan gadgets-background gadgets-foreground gadgets-orphan gadgets-kind; do
	k delete namespace $namespace
done
same "namespaces" "namespace/default namespace/kube-node-lease namespace/kube-public namespace/kube-system " "$(names namespace default)"
[ "$failures" -eq 0 ]
