#!/bin/bash
# Usage: build-peers.sh SOURCE-DIR OUTPUT [PACKAGE]
# Builds the Go program in SOURCE-DIR (or in the folder PACKAGE of that module) into OUTPUT, unless OUTPUT was
# built from exactly these sources. A file "ldflags" there has flags for the linker. Built programs are kept
# in $VEDETTE_PEERS_CACHE (default: vedette/peers in the user's cache folder), so that a new clone does not
# build them again. Exit 77 with the reason if the program cannot be built here (no Go, or the modules cannot
# be fetched).
set -eu

source=$1
output=$(realpath -m "$2") # Go runs in another folder
package=${3:-.}
hash=$(cd "$source" && cat go.mod go.sum "$package"/*.go ./ldflags 2>/dev/null | sha256sum | cut -d' ' -f1)
if [ -x "$output" ] && [ "$(cat "$output.hash" 2>/dev/null)" = "$hash" ]; then
	exit 0
fi
mkdir -p "$(dirname "$output")"
cache=${VEDETTE_PEERS_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/vedette/peers}
name=$(realpath "$source/$package")
name=$(basename "$name")-$(uname -m)
export GOTOOLCHAIN="${GOTOOLCHAIN:-auto}" GOFLAGS="${GOFLAGS:-} -buildvcs=false"
(
	flock 9		# several tests may build it at once
	if [ -x "$output" ] && [ "$(cat "$output.hash" 2>/dev/null)" = "$hash" ]; then
		exit 0
	fi
	if cp "$cache/$name-$hash" "$output.new" 2>/dev/null; then
		mv "$output.new" "$output"
		echo "$hash" >"$output.hash"
		exit 0
	fi
	go=$("$(dirname "$0")/find-go.sh") || exit $?
	if ! (cd "$source" && "$go" mod download) >"$output.log" 2>&1; then
		echo "skipped: the Go modules of $source are not here and cannot be fetched:" >&2
		tail -3 "$output.log" >&2
		exit 77
	fi
	if ! (cd "$source" && "$go" build -ldflags "$(cat ldflags 2>/dev/null)" -o "$output" "./$package") >>"$output.log" 2>&1; then
		echo "building $source failed:" >&2
		cat "$output.log" >&2
		exit 1
	fi
	echo "$hash" >"$output.hash"
	# One version of each program is kept. An error here is ignored: the program is built again next time.
	if mkdir -p "$cache" 2>/dev/null && cp "$output" "$cache/.$name.$$" 2>/dev/null; then
		rm -f "$cache/$name"-*
		mv "$cache/.$name.$$" "$cache/$name-$hash"
	else
		rm -f "$cache/.$name.$$"
	fi
) 9>"$output.lock"
