# Waits of shell scripts; to be sourced. Each ends with a message and status 1 after ten minutes.
waiting_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# await_line FILE REGEX [PID [COUNT]]: waits until COUNT lines (default: 1) of FILE match. Fails if process PID
# ends before that. Does not poll.
await_line() {
	python3 "$waiting_folder/waiting.py" "$@"
}

# await_success PID COMMAND...: repeats a command or function until it succeeds. Fails if process PID ends
# before that; PID may be empty. Only for states that nothing reports when they change: /readyz of a
# kube-apiserver, a kind that is served a moment after its definition, a lease that expires.
await_success() {
	local pid=$1 end=$((SECONDS + 600))
	shift
	until "$@" >/dev/null 2>&1; do
		if [ -n "$pid" ] && ! kill -0 "$pid" 2>/dev/null; then
			echo "process $pid ended, and this had not succeeded: $*" >&2
			return 1
		fi
		if [ "$SECONDS" -ge "$end" ]; then
			echo "in ten minutes this did not succeed: $*" >&2
			return 1
		fi
		sleep 0.05
	done
}
