#!/bin/bash
# Usage: with-etcd.sh BUILD-DIR SOURCE-DIR [FLAG...] -- COMMAND [ARG...]
#        with-etcd.sh BUILD-DIR SOURCE-DIR --fake [FLAG...] -- COMMAND [ARG...]     the server that the command plays itself: `peers etcd-fake`
# Builds tests/peers (SOURCE-DIR) and etcd 3.7 with its etcdctl and etcdutl into BUILD-DIR if needed, starts
# an etcd, and runs COMMAND with it. `peers etcd-run` and docs/HACKING.md describe the flags and COMMAND's
# environment. Exits as COMMAND did; 77 with the reason if something is missing.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
build=$1
source=$2
shift 2
"$here/build-peers.sh" "$source" "$build/peers" || exit $?
if [ "$1" = --fake ]; then
	shift
	exec "$build/peers" etcd-fake "$@"
fi
case " $* " in
*" --version 3.4 "* | *" --version=3.4 "*) ;;
*)
	"$here/build-peers.sh" "$source/cmd/etcd" "$build/etcd" etcd || exit $?
	"$here/build-peers.sh" "$source/cmd/etcd" "$build/etcdctl" etcdctl || exit $?
	"$here/build-peers.sh" "$source/cmd/etcd" "$build/etcdutl" etcdutl || exit $?
	;;
esac
exec "$build/peers" etcd-run "$@"
