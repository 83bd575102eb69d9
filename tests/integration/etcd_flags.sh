#!/bin/bash
# Usage: etcd_flags.sh VEDETTE, under with-etcd.sh (for etcd and etcdctl)
# Command line, environment and configuration file of an etcd also start vedette etcd: every option of `etcd
# --help`, kubeadm's static pod with its probes, unix sockets, TLS options.
set -u
# shellcheck source=../support/waiting.sh
. "$(dirname "$0")/../support/waiting.sh"

vedette=$(realpath "$1") # some servers start in another folder
here=$(cd "$(dirname "$0")" && pwd)
etcd=$(dirname "$ETCDCTL")/etcd
dir=$(mktemp -d)
server=
trap 'kill $server 2>/dev/null; wait 2>/dev/null; rm -rf "$dir"' EXIT
for variable in ${!ETCD_*}; do
	[ "$variable" = ETCDCTL ] || unset "$variable"
done
failures=0
wrong() {
	echo "etcd_flags.sh: $*" >&2
	failures=$((failures + 1))
}
same() { [ "$2" = "$3" ] || wrong "$1: wanted '$2', got '$3'"; }
holds() { case "$3" in *"$2"*) ;; *) wrong "$1: '$2' is not in '$3'" ;; esac; }
# start ARGUMENT...
start() {
	: >"$dir/err"
	: >"$dir/err" # here, because the ready line of the previous server might be read otherwise
	"$vedette" etcd "$@" 2>"$dir/err" &
	server=$!
	await_line "$dir/err" '^vedette: ready' $server || wrong "$* did not start"
}
stop() {
	kill -TERM $server
	wait $server || wrong "it did not end well"
}
# ready KIND N: the N-th address of that kind in the ready line
ready() { grep -o " $1 [^ ]*" <(grep '^vedette: ready' "$dir/err") | sed -n "$2s/^ $1 //p"; }
# refuses WORDS ARGUMENT...
refuses() {
	local words=$1 status=0
	shift
	timeout 60 "$vedette" etcd --memory --listen 127.0.0.1:0 "$@" >"$dir/out" 2>&1 || status=$?
	same "$*" 2 $status
	holds "$*" "$words" "$(cat "$dir/out")"
}
ctl() { timeout 120 "$ETCDCTL" --command-timeout=60s "$@" 2>&1; }

# ---- Every option, by its name and by its variable, with etcd's default ----

"$etcd" --help 2>/dev/null | sed -n 's/^  --\([a-z0-9-]*\) *\(.*\)$/\1 \2/p' >"$dir/flags"
[ "$(wc -l <"$dir/flags")" -gt 100 ] || wrong "etcd --help has too few options"
words=()
variables=()
while read -r name value; do
	value=${value#\'} value=${value%\'}
	case $name in
	data-dir) value=x ;; # '${name}.etcd'
	max-concurrent-streams) value=4294967295 ;; # 'math.MaxUint32'
	config-file) continue ;; # no other option counts then
	cert-file | key-file | trusted-ca-file | client-cert-file | client-key-file | client-crl-file | client-cert-allowed-hostname | cipher-suites) value= ;;
	memory-mlock | enable-grpc-gateway) value=true ;; # the help does not show that these are booleans
	bootstrap-defrag-threshold-megabytes | compaction-sleep-interval | downgrade-check-time | snapshot-catchup-entries) value=10 ;;
	esac
	words+=("--$name=$value")
	variables+=("ETCD_$(echo "$name" | tr a-z- A-Z_)=$value")
done <"$dir/flags"
timeout 60 "$vedette" etcd "${words[@]}" --help >"$dir/out" 2>&1 || wrong "options: $(head -1 "$dir/out")"
timeout 60 env "${variables[@]}" "$vedette" etcd --help >"$dir/out" 2>&1 || wrong "variables: $(head -1 "$dir/out")"
timeout 60 "$vedette" etcd "${words[@]}" --listen ftp://x >"$dir/out" 2>&1
grep -q "the scheme must be" "$dir/out" || wrong "options with a meaning: $(grep -v warning "$dir/out")"
# A word that is not an option is refused.
refuses "unknown option --no-such-option" --no-such-option
refuses "must be true or false" --client-cert-auth=perhaps
refuses "names several members" --initial-cluster a=http://127.0.0.1:1,b=http://127.0.0.1:2
refuses "--auto-tls is not supported" --auto-tls

# ---- kubeadm's static pod ----

pki=$dir/pki
mkdir "$pki"
certificate() { # NAME SUBJECT EXTENSION...
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -keyout "$pki/$1.key" -out "$pki/$1.crt" -subj "/CN=$2" "${@:3}" >/dev/null 2>&1
}
certificate ca etcd-ca
for name in server peer client revoked; do
	certificate $name $name -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:localhost,DNS:$name.example,IP:127.0.0.1,IP:127.0.0.2
done
mapfile -t command < <(sed -n '/- command:/,/image:/s/^ *- \(--.*\)/\1/p' "$here/kubeadm-etcd.yaml" |
	sed -e "s|/etc/kubernetes/pki/etcd|$pki|g" -e "s|/var/lib/etcd|$dir/data|" -e '/^--listen-\(client\|metrics\)/s/:23[78][0-9]/:0/g')
start "${command[@]}"
for option in feature-gates peer-cert-file peer-client-cert-auth peer-key-file peer-trusted-ca-file snapshot-count; do
	same "one warning about --$option" 1 "$(grep -c "warning.*--$option has no effect" "$dir/err")"
done
same "no more warnings" 6 "$(grep -c warning "$dir/err")"
probes=$(sed -n 's/^ *path: \(\/[a-z].*z\)$/\1/p' "$here/kubeadm-etcd.yaml")
same "probes of the manifest" "/livez /readyz /readyz" "$(echo $probes)"
for probe in $probes '/health?exclude=NOSPACE&serializable=true' '/health?serializable=false'; do
	same "probe $probe" 200 "$(curl -s -o /dev/null -w '%{http_code}' "http://$(ready http 1)$probe")"
done
tls=(--cacert "$pki/ca.crt" --cert "$pki/client.crt" --key "$pki/client.key")
for n in 1 2; do same "a put over TLS" OK "$(ctl --endpoints "https://$(ready etcd $n)" "${tls[@]}" put a $n)"; done
holds "peer URLs" "node, https://127.0.0.2:2380, https://127.0.0.2:2379" "$(ctl --endpoints "https://$(ready etcd 1)" "${tls[@]}" member list)"
stop

# ---- Sockets: unix is plain, unixs is TLS, with any certificates ----

server_tls=(--cert-file "$pki/server.crt" --key-file "$pki/server.key" --trusted-ca-file "$pki/ca.crt")
cd "$dir" || exit 1
start --memory "${server_tls[@]}" --client-cert-auth --listen-client-urls "unix://plain.sock:1,unixs://tls.sock:1,http://127.0.0.1:0" \
	--listen-metrics-urls https://127.0.0.1:0
same "unix" OK "$(ctl --endpoints "unix://plain.sock:1" put a 1)"
same "http beside certificates" OK "$(ctl --endpoints "http://$(ready etcd 2)" put a 1)"
# etcdctl verifies the certificate against the path of the socket.
same "unixs" OK "$(ctl --endpoints "unixs://tls.sock:1" "${tls[@]}" --insecure-skip-tls-verify put a 1)"
holds "unixs without a certificate" Error "$(timeout 20 "$ETCDCTL" --command-timeout=3s --dial-timeout=3s --endpoints "unixs://tls.sock:1" --insecure-transport=false \
	--insecure-skip-tls-verify get a 2>&1)"
same "metrics over https" 200 "$(curl -s -o /dev/null -w '%{http_code}' --cacert "$pki/ca.crt" --cert "$pki/client.crt" --key "$pki/client.key" "https://$(ready https 1)/livez")"
same "which want a certificate, too" 000 "$(curl -s -o /dev/null -w '%{http_code}' --cacert "$pki/ca.crt" "https://$(ready https 1)/livez")"
holds "and take no calls" "health and metrics" "$(ctl --endpoints "https://$(ready https 1)" "${tls[@]}" get a)"
stop
refuses "require a certificate" --listen "unixs:///tmp/x"
refuses "the scheme must be" --listen-metrics-urls ftp://127.0.0.1:1

# ---- TLS ----

# shakes OPTION...: openssl completes a TLS handshake with the server
shakes() { openssl s_client -connect "$(ready etcd 1)" -alpn h2 -cert "$pki/client.crt" -key "$pki/client.key" "$@" </dev/null 2>&1 | grep -q "Cipher is [A-Z]" && echo yes; }
start --memory "${server_tls[@]}" --listen-client-urls https://127.0.0.1:0 --tls-min-version=TLS1.3
same "TLS 1.3" yes "$(shakes -tls1_3)"
same "not TLS 1.2" "" "$(shakes -tls1_2)"
stop
start --memory "${server_tls[@]}" --listen-client-urls https://127.0.0.1:0 --tls-max-version=TLS1.2 --cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
same "the suite that was chosen" yes "$(shakes -tls1_2 -cipher ECDHE-ECDSA-AES256-GCM-SHA384)"
same "no other suite" "" "$(shakes -tls1_2 -cipher ECDHE-ECDSA-AES128-GCM-SHA256)"
same "not TLS 1.3" "" "$(shakes -tls1_3)"
stop
refuses 'cipher suite "TLS_X" is unknown' "${server_tls[@]}" --cipher-suites TLS_X

: >"$pki/index"
printf '[ca]\ndefault_ca=d\n[d]\ndatabase=%s\ndefault_md=sha256\ndefault_crl_days=30\n' "$pki/index" >"$pki/ca.cnf"
sign=(openssl ca -config "$pki/ca.cnf" -cert "$pki/ca.crt" -keyfile "$pki/ca.key")
"${sign[@]}" -revoke "$pki/revoked.crt" 2>/dev/null && "${sign[@]}" -gencrl -out "$pki/crl.pem" 2>/dev/null || wrong "no revocation list"
start --memory "${server_tls[@]}" --client-cert-auth --listen-client-urls https://127.0.0.1:0 --client-crl-file "$pki/crl.pem"
same "a client that is not revoked" OK "$(ctl --endpoints "https://$(ready etcd 1)" "${tls[@]}" put a 1)"
holds "a revoked client" Error "$(timeout 20 "$ETCDCTL" --command-timeout=3s --endpoints "https://$(ready etcd 1)" --cacert "$pki/ca.crt" --cert "$pki/revoked.crt" --key "$pki/revoked.key" get a 2>&1)"
stop
start --memory "${server_tls[@]}" --client-cert-auth --listen-client-urls https://127.0.0.1:0 --client-cert-allowed-hostname=client.example
same "a client of that name" OK "$(ctl --endpoints "https://$(ready etcd 1)" "${tls[@]}" put a 1)"
holds "a client of another name" Error "$(timeout 20 "$ETCDCTL" --command-timeout=3s --endpoints "https://$(ready etcd 1)" --cacert "$pki/ca.crt" --cert "$pki/revoked.crt" --key "$pki/revoked.key" get a 2>&1)"
stop

# ---- Environment and configuration file ----

ETCD_NAME=fromenv ETCD_LISTEN_CLIENT_URLS=http://127.0.0.1:0 ETCD_QUOTA_BACKEND_BYTES=16777216 ETCD_SNAPSHOT_COUNT=5 ETCD_SERVICE_HOST=10.0.0.1 start --memory
holds "name of the environment" "fromenv" "$(ctl --endpoints "$(ready etcd 1)" member list)"
holds "quota of the environment" "quota_backend_bytes 16777216" "$(curl -s "http://$(ready etcd 1)/metrics")"
holds "without effect" "ETCD_SNAPSHOT_COUNT has no effect" "$(cat "$dir/err")"
holds "a variable that etcd does not know" "ETCD_SERVICE_HOST is not a variable of etcd" "$(cat "$dir/err")"
stop
status=0
ETCD_NAME=a "$vedette" etcd --name b --memory >"$dir/out" 2>&1 || status=$?
same "a variable and its option" 2 $status
holds "a variable and its option" "are both set" "$(cat "$dir/out")"

cat >"$dir/etcd.conf.yml" <<END
name: 'from file'
data-dir: $dir/configured
wal-dir:
listen-client-urls: https://127.0.0.1:0
listen-metrics-urls: http://127.0.0.1:0
watch-progress-notify-interval: 600000000000
heartbeat-interval: 100
quota-backend-bytes: 16777216
cipher-suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]
strict-reconfig-check: false
log-level: warn
client-transport-security:
  cert-file: $pki/server.crt
  key-file: $pki/server.key
  client-cert-auth: true
  trusted-ca-file: $pki/ca.crt
  auto-tls: false
  allowed-hostname: [client.example]
peer-transport-security:
  cert-file: $pki/peer.crt
END
ETCD_NAME=notthis start --config-file "$dir/etcd.conf.yml" --name=northis
holds "name of the file" "from file" "$(ctl --endpoints "https://$(ready etcd 1)" "${tls[@]}" member list)"
same "metrics of the file" 200 "$(curl -s -o /dev/null -w '%{http_code}' "http://$(ready http 1)/readyz")"
holds "an option beside the file" "--name is ignored" "$(cat "$dir/err")"
holds "without effect" "peer-transport-security has no effect" "$(cat "$dir/err")"
[ -d "$dir/configured" ] || wrong "the file's data directory is not there"
stop
printf 'client-transport-security:\n  allowed-cn: [x]\n' >"$dir/bad.yml"
refuses "allowed-cn is not supported" --config-file "$dir/bad.yml"
printf 'name: [\n' >"$dir/bad.yml"
refuses "bad.yml, line" --config-file "$dir/bad.yml"
refuses "cannot open" --config-file "$dir/nothing.yml"

echo "etcd_flags.sh: $failures failed"
[ "$failures" -eq 0 ]
