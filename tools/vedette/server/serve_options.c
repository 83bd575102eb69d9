#include "serve_options.h"

/* Applies the TLS options of the REST server to the etcd port, unless it has a certificate of its own. There
 * are no tokens on that port, so with a client CA it requires certificates. */
static void share_tls(struct vdi_serve_options *options)
{
	options->port.insecure_no_auth = options->insecure_no_auth;
	if (options->port.cert_file || options->tls_cert == NULL)
		return;
	options->port.cert_file = options->tls_cert;
	options->port.key_file = options->tls_key;
	if (options->client_ca && options->port.trusted_ca_file == NULL) {
		options->port.trusted_ca_file = options->client_ca;
		options->port.client_cert_auth = true;
	}
}

/* Checks the options against each other, and derives those that follow from others. Returns the exit
 * status. */
static int check(struct vdi_serve_options *options, const struct vdi_command *command, bool is_listen_given)
{
	struct vd_error error = { .code = VD_OK };
	int		result;

	if (!vdi_etcd_settings_check(command, &options->etcd, &result))
		return result;
	if (options->etcd.urls && (options->memory || options->load))
		return vdi_command_usage_error(command, "--etcd excludes --memory and --load");
	if (options->strict && options->load == NULL)
		return vdi_command_usage_error(command, "--strict requires --load");
	options->port.rpc = options->etcd.rpc;
	if (options->port.listen)
		share_tls(options);
	if (!vdi_etcd_port_options_check(command, &options->port, &result))
		return result;
	if (options->etcd.urls && options->port.listen)
		return vdi_command_usage_error(command,
					       "--etcd-listen serves the embedded store: it excludes --etcd");
	if (options->memory && options->data_dir)
		return vdi_command_usage_error(command, "--memory and --data-dir exclude each other");
	if (vdi_service_manager_init(&options->manager, &error) != VD_OK)
		return vdi_command_usage_error(command, "%s", error.message);
	if (options->manager.socket && is_listen_given)
		return vdi_command_usage_error(command,
					       "LISTEN_FDS passes a socket, which excludes --listen");
	if (options->data_dir == NULL && !options->etcd.urls)
		options->data_dir = "./vedette-data";
	return VDI_EXIT_OK;
}

static bool parse(struct vdi_serve_options *options, const struct vdi_command *command, int argc, char **argv,
		  struct vdi_log_settings *log, bool *ret_is_listen_given, int *ret_exit)
{
	size_t			operand_count;
	const struct vdi_option table[] = {
		{ 0, "listen", VDI_OPTION_TEXT, "ADDR:PORT",
		  "listen address; port 0: chosen by the system (default 127.0.0.1:8080)", &options->listen,
		  NULL, ret_is_listen_given },
		{ 0, "data-dir", VDI_OPTION_TEXT, "DIR",
		  "directory of the store (default ./vedette-data); with --etcd: directory of the history, "
		  "to resume after a restart",
		  &options->data_dir },
		{ 0, "memory", VDI_OPTION_FLAG, NULL, "keep the store in memory only", &options->memory },
		{ 0, "encryption-provider-config", VDI_OPTION_TEXT, "FILE",
		  "encrypt values at rest: an EncryptionConfiguration with the providers aesgcm and identity",
		  &options->encryption },
		{ 0, "load", VDI_OPTION_TEXT, "FILE", "load an event log into the store, which must be empty",
		  &options->load },
		{ 0, "strict", VDI_OPTION_FLAG, NULL,
		  "with --load: fail if the log has a torn end or no closing line (default: warn)",
		  &options->strict },
		VDI_ETCD_PORT_OPTION_TABLE(&options->port),
		VDI_ETCD_OPTION_TABLE(&options->etcd),
		{ 0, "etcd-compaction-interval", VDI_OPTION_DURATION, "DURATION",
		  "interval of etcd compaction, shared by all servers; 0: never (default 5m)",
		  &options->etcd.compaction_interval },
		{ 0, "resources", VDI_OPTION_TEXT, "FILE", "additional kinds to serve (JSON)",
		  &options->resources },
		{ 0, "history-window", VDI_OPTION_DURATION, "DURATION",
		  "minimum time that old revisions are retained (default 10m)", &options->history_window },
		{ 0, "history-bytes", VDI_OPTION_BYTES, "SIZE",
		  "maximum size of retained history (default 256MiB)", &options->history_bytes },
		{ 0, "consistency-interval", VDI_OPTION_DURATION, "DURATION",
		  "interval between comparisons of each cache with the store; 0: never (default 5m)",
		  &options->consistency_interval },
		{ 0, "on-inconsistency", VDI_OPTION_CHOICE, "ACTION",
		  "reaction if cache and store differ: report, relist or panic (default report)",
		  &options->on_inconsistency, "report|relist|panic" },
		{ 0, "requests-per-client", VDI_OPTION_COUNT, "N",
		  "maximum concurrent requests per client (user, or address and User-Agent); excess requests "
		  "get 429 (default 0: no limit)",
		  &options->client_requests },
		{ 0, "watches-per-client", VDI_OPTION_COUNT, "N",
		  "maximum concurrent watches per client; excess watches get 429 (default 0: no limit)",
		  &options->client_watches },
		{ 0, "bytes-per-client", VDI_OPTION_BYTES, "SIZE",
		  "maximum unsent bytes of one client's watches; beyond it they pause (default 64MiB; 0: no "
		  "limit)",
		  &options->client_bytes },
		{ 0, "max-requests-inflight", VDI_OPTION_COUNT, "N",
		  "maximum concurrent reads, shared fairly by all clients; excess requests get 429 (default "
		  "400; 0: no limit)",
		  &options->requests },
		{ 0, "max-mutating-requests-inflight", VDI_OPTION_COUNT, "N",
		  "maximum concurrent writes, shared fairly by all clients; excess requests get 429 (default "
		  "200; 0: no limit)",
		  &options->mutating_requests },
		{ 0, "no-compression", VDI_OPTION_FLAG, NULL,
		  "do not compress large responses and watch lists for clients that accept gzip",
		  &options->no_compression },
		{ 0, "tls-cert", VDI_OPTION_TEXT, "FILE",
		  "serve HTTPS with this certificate, followed by its chain (PEM)", &options->tls_cert },
		{ 0, "tls-key", VDI_OPTION_TEXT, "FILE", "private key of the --tls-cert certificate (PEM)",
		  &options->tls_key },
		{ 0, "client-ca", VDI_OPTION_TEXT, "FILE",
		  "CA bundle for verifying client certificates, which name user (CN) and groups (O)",
		  &options->client_ca },
		{ 0, "token-file", VDI_OPTION_TEXT, "FILE",
		  "file of bearer tokens: lines of token,user,uid,\"group,group\"", &options->token_file },
		{ 0, "authorization-policy", VDI_OPTION_TEXT, "FILE",
		  "authorization rules (JSON; default: authenticated users may do everything)",
		  &options->policy },
		{ 0, "insecure-no-auth", VDI_OPTION_FLAG, NULL,
		  "allow addresses other than loopback without authentication", &options->insecure_no_auth },
		{ 0, "audit-log", VDI_OPTION_TEXT, "FILE",
		  "file for audit events (audit.k8s.io/v1, JSON lines); -: standard output",
		  &options->audit_log },
		{ 0, "audit-level", VDI_OPTION_CHOICE, "LEVEL",
		  "audit detail: None, Metadata, Request (with request bodies) or RequestResponse (with "
		  "response bodies, too) (default Metadata)",
		  &options->audit_level, "None|Metadata|Request|RequestResponse" },
		{ 0, "access-log", VDI_OPTION_TEXT, "FILE",
		  "file for one line per request (combined log format with duration in seconds); -: standard "
		  "output",
		  &options->access_log },
		{ 0, "shutdown-delay", VDI_OPTION_DURATION, "DURATION",
		  "time to keep serving after SIGTERM while /readyz fails, before connections are closed "
		  "(default 0s)",
		  &options->shutdown_delay },
		{ 0, "no-garbage-collector", VDI_OPTION_FLAG, NULL,
		  "delete neither dependents of deleted objects nor the content of namespaces; for use with "
		  "a kube-controller-manager",
		  &options->no_garbage_collector },
		{ 0, "threads", VDI_OPTION_COUNT, "N",
		  "number of event-loop threads (default: number of processors)", &options->threads },
	};

	return vdi_command_parse(command, table, VDI_ARRAY_SIZE(table), argc, argv, NULL, 0, &operand_count,
				 log, ret_exit);
}

bool vdi_serve_options_read(struct vdi_serve_options *options, const struct vdi_command *command, int argc,
			    char **argv, struct vdi_log_settings *log, int *ret_exit)
{
	bool is_listen_given = false;

	*options = (struct vdi_serve_options) { .listen = "127.0.0.1:8080",
						.history_bytes = (int64_t) 256 << 20,
						.history_window = VD_SECONDS(600),
						.consistency_interval = VD_SECONDS(300),
						.client_bytes = (int64_t) 64 << 20,
						.requests = 400,
						.mutating_requests = 200,
						.on_inconsistency = "report",
						.audit_level = "Metadata",
						.etcd = VDI_ETCD_SETTINGS_INIT };
	options->etcd.compaction_interval = VD_SECONDS(300);
	if (!parse(options, command, argc, argv, log, &is_listen_given, ret_exit))
		return false;
	*ret_exit = check(options, command, is_listen_given);
	return *ret_exit == VDI_EXIT_OK;
}
