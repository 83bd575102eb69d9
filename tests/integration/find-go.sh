#!/bin/bash
# Prints the path of a Go that can build tests/peers (1.26 or later; an older one may fetch that toolchain
# itself, GOTOOLCHAIN=auto). Exit 77 with the reason if there is none.
set -eu

wanted_minor=26
candidates="${GO:-} go /usr/lib/go/bin/go /usr/local/go/bin/go $(ls -d /usr/lib/go-1.*/bin/go 2>/dev/null | sort -rV || true)"
fetching=
for candidate in $candidates; do
	path=$(command -v "$candidate" 2>/dev/null) || continue
	version=$(GOTOOLCHAIN=local GOFLAGS= "$path" env GOVERSION 2>/dev/null) || continue	# such as go1.26.8
	minor=${version#go1.}
	minor=${minor%%[!0-9]*}
	if [ "${minor:-0}" -ge "$wanted_minor" ]; then
		echo "$path"
		exit 0
	fi
	# From 1.21 on, Go can fetch a newer toolchain (Debian's own 1.19 cannot; backports has one that can).
	if [ "${minor:-0}" -ge 21 ] && [ -z "$fetching" ]; then
		fetching=$path
	fi
done
if [ -n "$fetching" ] && GOTOOLCHAIN=go1.$wanted_minor.0+auto GOFLAGS= "$fetching" version >/dev/null 2>&1; then
	echo "$fetching"
	exit 0
fi
echo "skipped: Go 1.$wanted_minor or later is needed (on PATH, in \$GO, or golang-go of Debian backports, which fetches it)" >&2
exit 77
