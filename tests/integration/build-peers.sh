#!/bin/bash
# Usage: build-peers.sh SOURCE-DIR OUTPUT [PACKAGE]
# Builds the Go program in SOURCE-DIR (or in the folder PACKAGE of that module) into OUTPUT, unless OUTPUT was built from exactly these
# sources. A file "ldflags" there holds flags for the linker. Exit 77 with the reason when it cannot be built here (no Go, or no way to
# fetch the modules).
set -eu

source=$1
output=$(realpath -m "$2") # Go runs in another folder
package=${3:-.}
hash=$(cd "$source" && cat go.mod go.sum "$package"/*.go ./ldflags 2>/dev/null | sha256sum | cut -d' ' -f1)
if [ -x "$output" ] && [ "$(cat "$output.hash" 2>/dev/null)" = "$hash" ]; then
	exit 0
fi
go=$("$(dirname "$0")/find-go.sh") || exit $?
mkdir -p "$(dirname "$output")"
export GOTOOLCHAIN="${GOTOOLCHAIN:-auto}" GOFLAGS="${GOFLAGS:-} -buildvcs=false"
(
	flock 9		# several tests may want it at once
	if [ -x "$output" ] && [ "$(cat "$output.hash" 2>/dev/null)" = "$hash" ]; then
		exit 0
	fi
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
) 9>"$output.lock"
