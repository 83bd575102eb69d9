#!/bin/bash
# Usage: peers.sh TEST VEDETTE BUILD-DIR SOURCE-DIR [ETCD-WITNESS]
# Builds tests/peers if needed, and runs one of its programs against a fresh server. Sizes are small;
# VEDETTE_TEST_SIZE=full selects those of tools/check, long selects faults in longer loops. Exit 77 with the
# reason if something is missing.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
name=$1
vedette=$2
build=$3
source=$4
peers=$build/peers
resources=$here/resources.json

"$here/build-peers.sh" "$source" "$peers" || exit $?
full=
case "${VEDETTE_TEST_SIZE:-small}" in
full | long) full=yes ;;
esac
# sized SMALL FULL: prints one of them
sized() {
	if [ -n "$full" ]; then
		echo "$2"
	else
		echo "$1"
	fi
}
# rounds SMALL FULL LONG: prints one of them
rounds() {
	case "${VEDETTE_TEST_SIZE:-small}" in
	long) echo "$3" ;;
	full) echo "$2" ;;
	*) echo "$1" ;;
	esac
}
with_server() {
	exec "$here/run-with-server.sh" "$vedette" "$@"
}
# Builds etcd 3.7 and its etcdctl if needed.
need_etcd() {
	"$here/build-peers.sh" "$source/cmd/etcd" "$build/etcd" etcd || exit $?
	"$here/build-peers.sh" "$source/cmd/etcd" "$build/etcdctl" etcdctl || exit $?
}
# The programs take the server's URL from the environment here.
run='exec "$0" "$1" --server "$SERVER" "${@:2}"'

case $name in
build)
	;;
kubectl)
	with_server --memory --resources "$resources" -- "$here/kubectl.sh" "$build" "$source/cmd/kubectl"
	;;
kubectl-1.33 | kubectl-1.37) # with any kubectl on PATH
	module=$source/cmd/${name%-1.37}
	with_server --memory --resources "$resources" -- env KUBECTL_BUILT=yes "$here/kubectl.sh" "$build" "$module"
	;;
kubectl-durable)
	with_server --data-dir @DIR@ --resources "$resources" -- "$here/kubectl.sh" "$build" "$source/cmd/kubectl"
	;;
kubectl-delete)
	with_server --data-dir @DIR@ -- "$here/kubectl-delete.sh" "$build" "$source/cmd/kubectl"
	;;
informer)
	with_server --memory --resources "$resources" -- bash -c "$run" "$peers" informer \
		$(sized '--objects 800 --changes 5000 --writers 4 --cut-min 50 --cut-max 250' '')
	;;
informer-list)
	with_server --memory --resources "$resources" -- bash -c "$run" "$peers" informer --watchlist=false \
		$(sized '--objects 400 --changes 2000 --writers 4 --cut-min 50 --cut-max 250' '')
	;;
informer-durable)
	with_server --data-dir @DIR@ --resources "$resources" -- bash -c "$run" "$peers" informer --seed 2 \
		$(sized '--objects 400 --changes 2000 --writers 4 --cut-min 50 --cut-max 250' '')
	;;
informer-pods)
	with_server --memory --resources "$resources" -- bash -c "$run" "$peers" informer-pods $(sized '--pods 200 --changes 2000' '--pods 2000 --changes 20000')
	;;
informer-pods-protobuf)
	with_server --memory --resources "$resources" -- bash -c "$run" "$peers" informer-pods --protobuf $(sized '--pods 200 --changes 2000' '--pods 2000 --changes 20000')
	;;
protobuf)
	with_server --memory --resources "$resources" --load "$here/misfit.ndjson" -- bash -c "$run" "$peers" protobuf
	;;
operator)
	"$here/build-peers.sh" "$source/cmd/operator" "$build/operator" || exit $?
	exec "$build/operator" --vedette "$vedette" $(sized '--steps 40 --kills 2' '--steps 200 --kills 8')
	;;
collector)
	exec "$peers" collector --vedette "$vedette" $(sized '--rounds 3' '--rounds 20')
	;;
custom)
	exec "$peers" custom --vedette "$vedette" $(sized '' '--steps 1000 --rounds 3')
	;;
custom-list)
	exec "$peers" custom --vedette "$vedette" --watchlist=false $(sized '' '--steps 1000 --rounds 3')
	;;
crashloop)
	exec "$peers" crashloop --vedette "$vedette" $(sized '--rounds 6 --run-max 800ms --writers 4' '--rounds 60')
	;;
security)
	exec "$peers" security --vedette "$vedette" $(sized '--idle 200' '--idle 2000')
	;;
acceptance)
	exec "$peers" acceptance --vedette "$vedette" --resources "$resources"
	;;
badinput)
	with_server --memory --resources "$resources" -- bash -c "$run" "$peers" badinput \
		$(sized '--idle 500 --slow 60 --unread 10 --unread-bytes 50331648' '--slow-deadline 150s')
	;;
watchlist)
	with_server --memory --resources "$resources" -- bash -c "$run" "$peers" watchlist
	;;
watchlist-expire)
	with_server --memory --resources "$resources" --history-window 75s --history-bytes 1MiB -- bash -c "$run" "$peers" watchlist --expire
	;;
etcd-faults)
	need_etcd
	exec "$peers" etcd-faults --witness "$5" $(rounds '--rounds 1' '--rounds 2' '--rounds 10')
	;;
etcd-faults-single)
	need_etcd
	# The witness pauses now and then, so that other actions precede its next one.
	VEDETTE_LOCK_STALLS=20 exec "$peers" etcd-faults --witness "$5" --members 1 --tls --seed 2 $(rounds '--rounds 1' '--rounds 1' '--rounds 5')
	;;
etcd-faults-34)
	exec "$peers" etcd-faults --witness "$5" --version 3.4 --seed 3 $(rounds '--members 1' '--members 1' '--members 3 --rounds 5')
	;;
serve-faults)
	need_etcd
	exec "$peers" serve-faults --vedette "$vedette" $(rounds '--rounds 1' '--rounds 1' '--rounds 5')
	;;
serve-faults-34)
	exec "$peers" serve-faults --vedette "$vedette" --version 3.4 --seed 3 $(rounds '--members 1' '--members 1' '--members 3 --rounds 3')
	;;
serve-history)
	need_etcd
	exec "$peers" serve-history --vedette "$vedette"
	;;
kubectl-etcd | kubectl-etcd-34 | informer-etcd | informer-etcd-34 | informer-pods-etcd)
	# The same clients on `vedette serve --etcd`.
	version=3.7
	case $name in *-34) version=3.4 ;; esac
	program=${name%-34}
	program=${program%-etcd}
	case $program in
	kubectl) client=("$here/kubectl.sh" "$build" "$source/cmd/kubectl") ;;
	# An etcd of 3.4 cannot prove progress: no WatchList.
	informer) client=(bash -c "$run" "$peers" informer $([ "$version" = 3.4 ] && echo --watchlist=false) $(sized '--objects 400 --changes 2000 --writers 4 --cut-min 50 --cut-max 250' '')) ;;
	informer-pods) client=(bash -c "$run" "$peers" informer-pods $(sized '--pods 200 --changes 2000' '--pods 2000 --changes 20000')) ;;
	esac
	exec "$here/with-etcd.sh" "$build" "$source" --version "$version" -- bash -c 'exec "$1" "$2" --etcd "$ETCD_ENDPOINTS" --resources "$3" -- "${@:4}"' - \
		"$here/run-with-server.sh" "$vedette" "$resources" "${client[@]}"
	;;
kube-share)
	# tools/check builds kube-apiserver; docs/HACKING.md says how to build it by hand. Without it this
	# test is skipped.
	need_etcd
	kubectl=$(command -v kubectl || true)
	if [ -x "$build/kube-apiserver" ] && [ -z "$kubectl" ]; then
		"$here/build-peers.sh" "$source/cmd/kubectl" "$build/kubectl" || exit $?
		kubectl=$build/kubectl
	fi
	exec "$peers" kube-share --vedette "$vedette" --kubectl "$kubectl"
	;;
*)
	echo "peers.sh: no test $name" >&2
	exit 2
	;;
esac
