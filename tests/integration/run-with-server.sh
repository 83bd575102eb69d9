#!/bin/bash
# Usage: run-with-server.sh VEDETTE [SERVE-FLAG...] -- COMMAND [ARG...]
# Starts `vedette serve SERVE-FLAG... --listen 127.0.0.1:0`, waits for its ready line, and runs COMMAND with
#   SERVER      its URL
#   SERVER_PID  its process id
# Then ends the server with SIGTERM; it must exit with 0 within two minutes. Exits as COMMAND did (77 is
# "skipped"), or with 1 and the server's stderr if the server failed. A flag @DIR@ stands for a directory that
# is created for this run and removed after it.
set -eu

ready_seconds=300
end_seconds=120

vedette=$1
shift
scratch=$(mktemp -d)
server_pid=
copy_pid=

cleanup() {
	if [ -n "$server_pid" ]; then
		kill -9 "$server_pid" 2>/dev/null || true
	fi
	if [ -n "$copy_pid" ]; then
		kill "$copy_pid" 2>/dev/null || true
	fi
	rm -rf "$scratch"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

flags=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	if [ "$1" = @DIR@ ]; then
		mkdir -p "$scratch/data"
		flags+=("$scratch/data")
	else
		flags+=("$1")
	fi
	shift
done
if [ $# -lt 2 ]; then
	echo "usage: run-with-server.sh VEDETTE [SERVE-FLAG...] -- COMMAND [ARG...]" >&2
	exit 2
fi
shift

show_log() {
	echo "--- stderr of: vedette serve ${flags[*]}" >&2
	tail -n 200 "$scratch/log" >&2
	echo "---" >&2
}

# The server writes its stderr into a pipe, which is read here up to the ready line, then by a cat.
mkfifo "$scratch/stderr"
: >"$scratch/log"
ulimit -n 65536 2>/dev/null || true # thousands of connections, if permitted
"$vedette" serve "${flags[@]}" --listen 127.0.0.1:0 2>"$scratch/stderr" &
server_pid=$!
exec 3<"$scratch/stderr"
SERVER=
deadline=$((SECONDS + ready_seconds))
while [ -z "$SERVER" ]; do
	if ! IFS= read -r -t $((deadline - SECONDS > 0 ? deadline - SECONDS : 1)) line <&3; then
		show_log
		if kill -0 "$server_pid" 2>/dev/null; then
			echo "vedette serve printed no ready line within $ready_seconds s" >&2
		else
			status=0
			wait "$server_pid" || status=$?
			server_pid=
			echo "vedette serve ended with status $status before it was ready" >&2
		fi
		exit 1
	fi
	printf '%s\n' "$line" >>"$scratch/log"
	case $line in
	"vedette: ready http"*)
		SERVER=${line#vedette: ready }
		SERVER=${SERVER%% *}
		;;
	esac
done
cat <&3 >>"$scratch/log" &
copy_pid=$!
exec 3<&-

export SERVER SERVER_PID=$server_pid
status=0
"$@" || status=$?

failure=
if ! kill -TERM "$server_pid" 2>/dev/null; then
	failure="the server was gone before the end"
fi
# tail ends when the server does, or after the time limit.
if ! timeout "$end_seconds" tail --pid="$server_pid" -f /dev/null; then
	failure="the server did not exit within $end_seconds s of SIGTERM"
	kill -9 "$server_pid" 2>/dev/null || true
fi
server_status=0
wait "$server_pid" || server_status=$?
server_pid=
if [ "$server_status" -ne 0 ]; then
	failure="${failure:-the server ended with status $server_status instead of 0}"
fi
wait "$copy_pid" 2>/dev/null || true
copy_pid=
if [ -n "$failure" ]; then
	show_log
	echo "run-with-server: $failure" >&2
	exit 1
fi
if [ "$status" -ne 0 ] && [ "$status" -ne 77 ]; then
	show_log
fi
exit "$status"
