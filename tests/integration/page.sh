#!/bin/bash
# Usage: page.sh   (SERVER in the environment: run-with-server.sh)
# The status page in a real browser: its script runs under the page's own policy, reads the server and shows
# its data. PAGE_SCREENSHOT=FILE also takes a screenshot.
set -eu
# shellcheck source=../support/waiting.sh
. "$(dirname "$0")/../support/waiting.sh"

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
	echo "skipped: no Chromium on PATH"
	exit 77
fi
scratch=$(mktemp -d)
trap 'kill $watch 2>/dev/null || true; rm -rf "$scratch"' EXIT

# A watch for the lower table, and an event for it.
curl -sN "$SERVER/api/v1/namespaces/default/configmaps?watch=1&labelSelector=page%3Dyes" >"$scratch/watch" &
watch=$!
for _ in 1 2 3; do
	curl -sf -o /dev/null -X POST -H 'Content-Type: application/json' "$SERVER/api/v1/namespaces/default/configmaps" \
		-d '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"page-","labels":{"page":"yes"}}}'
done
await_line "$scratch/watch" ADDED $watch 3

see() {
	timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$scratch/profile" \
		--virtual-time-budget=6000 "$@" "$SERVER/" 2>"$scratch/stderr"
}
if ! see --dump-dom >"$scratch/dom"; then
	tail -n 20 "$scratch/stderr" >&2
	exit 1
fi
if [ -n "${PAGE_SCREENSHOT:-}" ]; then
	see --window-size=1400,1500 --hide-scrollbars --screenshot="$PAGE_SCREENSHOT"
fi

failed=0
expect() {
	if ! grep -qE "$1" "$scratch/dom"; then
		echo "the page does not show: $2" >&2
		failed=1
	fi
}
expect 'data-live="yes"' "that its script ran"
expect 'all [0-9]+ caches ready' "the state of the server"
expect '<td>configmaps</td><td class="good">ready</td><td class="n">[0-9,]+</td><td class="n">3</td>' "three config maps"
expect '<td>3 events, ' "their history"
expect '<td>configmaps</td><td>default/\*, labels page=yes</td>' "the watch"
expect 'read [0-9]+:[0-9]+' "when it read the server"
if [ $failed != 0 ]; then
	cat "$scratch/dom" >&2
fi
exit $failed
