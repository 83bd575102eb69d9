#!/bin/bash
# Fetches long answers by curl, with and without --compressed. SERVER is the server. Exit 77 without
# curl.
set -eu
command -v curl >/dev/null || { echo "skipped: no curl" && exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
path=$SERVER/api/v1/namespaces/default/configmaps
value=$(head -c 30000 /dev/zero | tr '\0' 'v')
for i in 1 2 3 4 5 6; do
	printf '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c%s"},"data":{"x":"%s"}}' $i "$value" |
		curl -sSf -o /dev/null -H 'Content-Type: application/json' --data-binary @- "$path"
done
fail() {
	echo "$*" >&2
	exit 1
}
# same PATH HEADERS...: both answers are equal, and the compressed one has a tenth of the size at most
same() {
	local target=$1 plain packed
	shift
	plain=$(curl -sSf "$@" -o "$folder/plain" -w '%{size_download}' "$target")
	packed=$(curl -sSf --compressed -D "$folder/head" "$@" -o "$folder/packed" -w '%{size_download}' "$target")
	cmp "$folder/plain" "$folder/packed" || fail "$target $*: not the same"
	grep -qi '^content-encoding: gzip' "$folder/head" || fail "$target $*: not compressed"
	[ $((packed * 10)) -lt "$plain" ] || fail "$target $*: $packed of $plain bytes"
}
same "$path"
same "$path?pretty=false"
same "$path" -A informer
curl -sSf --compressed -D "$folder/head" -o /dev/null "$path/c1"
! grep -qi '^content-encoding' "$folder/head" || fail "a short answer is compressed"
curl -sSf -H 'Accept-Encoding: gzip;q=0' -D "$folder/head" -o /dev/null "$path"
! grep -qi '^content-encoding' "$folder/head" || fail "compressed for who does not want it"
curl -sSf -0 --compressed -D "$folder/head" -o /dev/null "$path"
! grep -qi '^content-encoding' "$folder/head" || fail "compressed over HTTP/1.0"
