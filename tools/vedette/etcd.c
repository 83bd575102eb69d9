/* vedette etcd: the embedded store behind etcd's protocol. Takes etcd's own flags where a user of one member would type them; those that mean nothing here
 * (peers, snapshots of a log, elections) are accepted and have no effect. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vedette/vedette.h>

#include "auth.h"
#include "auto_compaction.h"
#include "command_line.h"
#include "command_process.h"
#include "etcd_port.h"
#include "serve_http_port.h"
#include "serve_rpc.h"
#include "snapshot_restore.h"
#include "units.h"

#define URLS_MAX 16

struct etcd {
	const char *listen;
	const char *listen_client_urls;
	const char *advertise_client_urls;
	const char *listen_peer_urls;
	const char *name;
	const char *data_dir;
	const char *http_listen;
	const char *restore;
	const char *listen_metrics_urls;
	const char *listen_client_http_urls;
	const char *quota;
	const char *compaction_mode;
	const char *compaction_retention;
	const char *cert_file;
	const char *key_file;
	const char *trusted_ca_file;
	vd_dur	    progress_interval;
	int64_t	    request_bytes_max;
	int64_t	    unsent_bytes_max;
	int64_t	    txn_ops_max;
	unsigned    streams_max;
	unsigned    bcrypt_cost;
	unsigned    token_ttl_s;
	vd_dur	    ping_interval_min;
	vd_dur	    keepalive_interval;
	vd_dur	    keepalive_timeout;
	bool	    memory;
	bool	    client_cert_auth;
	bool	    insecure_no_auth;
	bool	    no_sync;

	/* Made of the texts above. */
	char	   *texts[4]; /* owned: the lists below point into them */
	const char *listen_addresses[URLS_MAX];
	size_t	    listen_count;
	const char *client_urls[URLS_MAX];
	size_t	    client_url_count;
	const char *peer_urls[URLS_MAX];
	size_t	    peer_url_count;
	int64_t	    quota_bytes;
	struct vdi_auto_compaction_options compaction;
	bool	    is_tls;
	char	    made_url[128];
	char	   *state_path;
	void	   *restored_auth; /* of a snapshot */
	size_t	    restored_auth_size;
};

static int fail(const char *what, const struct vd_error *error)
{
	(void) fprintf(stderr, "vedette etcd: %s%s%s\n", what, *what ? ": " : "", error->message[0] ? error->message : vd_status_sentence(error->code));
	return error->code == VD_INVALID || error->code == VD_INVALID_ARGUMENT ? VDI_EXIT_USAGE : VDI_EXIT_FAILED;
}

/* ---- Options ---- */

/* Cuts a list at its commas. The text is kept in *kept. */
static bool split(const char *text, char **kept, const char **parts, size_t *ret_count)
{
	char *save = NULL;

	*ret_count = 0;
	*kept = vdi_strdup(text);
	if (*kept == NULL)
		return false;
	for (char *part = strtok_r(*kept, ",", &save); part; part = strtok_r(NULL, ",", &save)) {
		if (*ret_count == URLS_MAX)
			return false;
		parts[(*ret_count)++] = part;
	}
	return *ret_count > 0;
}

static int read_addresses(const struct vdi_command *command, struct etcd *etcd)
{
	const char *text = etcd->listen ? etcd->listen : etcd->listen_client_urls ? etcd->listen_client_urls : "127.0.0.1:2379";

	if (!split(text, &etcd->texts[0], etcd->listen_addresses, &etcd->listen_count))
		return vdi_command_mistake(command, "where to listen is no list of addresses: \"%s\"", text);
	for (size_t i = 0; i < etcd->listen_count; i++) {
		const char *address = vdi_etcd_address_of_url(etcd->listen_addresses[i], etcd->is_tls);

		if (address == NULL)
			return vdi_command_mistake(command, "\"%s\": https needs --cert-file and --key-file, http must not have them", etcd->listen_addresses[i]);
		etcd->listen_addresses[i] = address;
	}
	if (etcd->advertise_client_urls && !split(etcd->advertise_client_urls, &etcd->texts[1], etcd->client_urls, &etcd->client_url_count))
		return vdi_command_mistake(command, "--advertise-client-urls is no list of URLs");
	if (!split(etcd->listen_peer_urls ? etcd->listen_peer_urls : "http://localhost:2380", &etcd->texts[2], etcd->peer_urls, &etcd->peer_url_count))
		return vdi_command_mistake(command, "--listen-peer-urls is no list of URLs");
	return VDI_EXIT_OK;
}

static int read_quota(const struct vdi_command *command, struct etcd *etcd)
{
	if (etcd->quota == NULL)
		return VDI_EXIT_OK;
	if (strncmp(etcd->quota, "-", 1) == 0 && strtoll(etcd->quota, NULL, 10) < 0)
		etcd->quota_bytes = -1;
	else if (!vdi_parse_bytes(etcd->quota, &etcd->quota_bytes))
		return vdi_command_mistake(command, "--quota-backend-bytes must be a size such as 8GiB, or -1 for none, not \"%s\"", etcd->quota);
	return VDI_EXIT_OK;
}

/* As etcd reads it: a whole number of hours, or a duration, when periodic; a number of revisions otherwise. */
static int read_compaction(const struct vdi_command *command, struct etcd *etcd)
{
	bool		    is_revision = strcmp(etcd->compaction_mode, "revision") == 0;
	char		   *end;
	unsigned long long number;

	if (etcd->compaction_retention == NULL)
		return VDI_EXIT_OK;
	errno = 0;
	number = strtoull(etcd->compaction_retention, &end, 10);
	if (*end == 0 && *etcd->compaction_retention && errno == 0 && number < 1000000000000) {
		if (is_revision)
			etcd->compaction.revisions = (int64_t) number;
		else
			etcd->compaction.period = VD_SECONDS(3600 * VDI_MIN(number, 2000000));
		return VDI_EXIT_OK;
	}
	if (is_revision || !vdi_parse_duration(etcd->compaction_retention, &etcd->compaction.period))
		return vdi_command_mistake(command, "--auto-compaction-retention \"%s\" does not fit --auto-compaction-mode %s", etcd->compaction_retention,
					   etcd->compaction_mode);
	return VDI_EXIT_OK;
}

static int read_options(const struct vdi_command *command, struct etcd *etcd)
{
	int result;

	if (etcd->memory && etcd->data_dir)
		return vdi_command_mistake(command, "--memory and --data-dir exclude each other");
	if (!etcd->cert_file != !etcd->key_file)
		return vdi_command_mistake(command, "--cert-file and --key-file belong together");
	if (etcd->client_cert_auth && !(etcd->cert_file && etcd->trusted_ca_file))
		return vdi_command_mistake(command, "--client-cert-auth needs --cert-file, --key-file and --trusted-ca-file");
	if (etcd->txn_ops_max > 128 || etcd->txn_ops_max < 1)
		return vdi_command_mistake(command, "--max-txn-ops can be at most 128");
	if (etcd->bcrypt_cost < 4 || etcd->bcrypt_cost > 31)
		return vdi_command_mistake(command, "--bcrypt-cost must be from 4 to 31");
	if (etcd->request_bytes_max < 1024 || etcd->request_bytes_max > (64 << 20))
		return vdi_command_mistake(command, "--max-request-bytes must be from 1KiB to 64MiB");
	if (etcd->unsent_bytes_max < (1 << 20))
		return vdi_command_mistake(command, "--max-unsent-bytes must be 1MiB at least");
	etcd->is_tls = etcd->cert_file != NULL;
	if (etcd->data_dir == NULL)
		etcd->data_dir = "./default.etcd";
	if (etcd->http_listen == NULL)
		etcd->http_listen = etcd->listen_metrics_urls ? etcd->listen_metrics_urls : etcd->listen_client_http_urls;
	if (etcd->http_listen && (etcd->http_listen = vdi_etcd_address_of_url(etcd->http_listen, false)) == NULL)
		return vdi_command_mistake(command, "health, version and metrics are served without TLS: --http-listen takes ADDR:PORT or http://ADDR:PORT, one of them");
	result = read_addresses(command, etcd);
	if (result == VDI_EXIT_OK)
		result = read_quota(command, etcd);
	return result == VDI_EXIT_OK ? read_compaction(command, etcd) : result;
}

/* ---- Running ---- */

static vd_status restore_store(struct etcd *etcd, const struct vd_env *env, const struct vd_mvcc_options *options, struct vd_store **ret_store,
			       struct vd_error *error)
{
	struct vdi_snapshot_report report;
	struct stat		   about;
	int			   file = open(etcd->restore, O_RDONLY | O_CLOEXEC);
	void			  *bytes = MAP_FAILED;
	vd_status		   status;

	if (file >= 0 && fstat(file, &about) == 0 && about.st_size > 0)
		bytes = mmap(NULL, (size_t) about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
	if (file >= 0)
		(void) close(file);
	if (bytes == MAP_FAILED)
		return vd_error_set(error, VD_INVALID_ARGUMENT, "--restore %s: the file cannot be read", etcd->restore);
	status = vdi_snapshot_restore(env, options, (struct vd_bytes) { bytes, (size_t) about.st_size }, ret_store, &etcd->restored_auth, &etcd->restored_auth_size,
				      &report, error);
	(void) munmap(bytes, (size_t) about.st_size);
	if (status == VD_OK)
		(void) fprintf(stderr, "vedette etcd: restored %s: %lld records, %lld leases, revision %lld\n", etcd->restore, (long long) report.records,
			       (long long) report.leases, (long long) report.revision);
	return status;
}

static vd_status open_store(struct etcd *etcd, const struct vd_env *env, struct vd_store **ret_store, struct vd_error *error)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;

	options.data_dir = etcd->memory ? NULL : etcd->data_dir;
	/* etcd keeps every revision until it is told to compact. */
	options.history_window = (vd_dur) { 0 };
	options.history_bytes = 0;
	options.progress_interval = (vd_dur) { 0 };
	options.no_sync = etcd->no_sync;
	if (etcd->restore)
		return restore_store(etcd, env, &options, ret_store, error);
	return vd_store_open_mvcc(env, &options, ret_store, error);
}

static bool is_guarded(const struct etcd *etcd, const struct vdi_etcdserver *server)
{
	return (etcd->is_tls && etcd->client_cert_auth) || vdi_auth_is_enabled(server->auth);
}

/* Nothing is served beyond this machine without authentication, unless that was asked for. */
static const char *find_exposed(const struct etcd *etcd, const struct vdi_etcdserver *server)
{
	if (etcd->insecure_no_auth)
		return NULL;
	for (size_t i = 0; i < etcd->listen_count; i++)
		if (!vdi_etcd_is_loopback(etcd->listen_addresses[i]) && !is_guarded(etcd, server))
			return etcd->listen_addresses[i];
	return etcd->http_listen && !vdi_etcd_is_loopback(etcd->http_listen) ? etcd->http_listen : NULL;
}

static void say_ready(const struct etcd *etcd, struct vdi_serve_rpc *rpc, struct vdi_serve_http_port *http)
{
	char   line[512];
	size_t size = (size_t) snprintf(line, sizeof line, "vedette: ready");

	for (size_t i = 0; i < etcd->listen_count && size < sizeof line; i++)
		size += (size_t) snprintf(line + size, sizeof line - size, " etcd %s", vdi_serve_rpc_address(rpc, i));
	if (http && size < sizeof line)
		(void) snprintf(line + size, sizeof line - size, " http %s", vdi_serve_http_port_address(http));
	(void) fprintf(stderr, "%s\n", line);
	(void) fflush(stderr);
}

static int serve(struct etcd *etcd, const struct vd_env *env, struct vdi_etcdserver *server, const sigset_t *signals)
{
	struct vdi_rpc_server_tls tls = { .cert_path = etcd->cert_file,
					  .key_path = etcd->key_file,
					  .client_ca_path = etcd->trusted_ca_file,
					  .require_client_cert = etcd->client_cert_auth };
	struct vdi_serve_rpc_options options = { .listen = etcd->listen_addresses,
						 .listen_count = etcd->listen_count,
						 .tls = etcd->is_tls ? &tls : NULL,
						 .unsent_bytes_max = (size_t) etcd->unsent_bytes_max,
						 .without_http = etcd->listen_client_http_urls != NULL,
						 .streams_max = etcd->streams_max,
						 .ping_interval_min = etcd->ping_interval_min,
						 .keepalive_time = etcd->keepalive_interval,
						 .keepalive_timeout = etcd->keepalive_timeout };
	struct vdi_auto_compaction *compaction = NULL;
	struct vdi_serve_http_port *http = NULL;
	struct vdi_serve_rpc	   *rpc = NULL;
	struct vd_error		    error = { .code = VD_OK };
	int			    result = VDI_EXIT_OK;

	if (etcd->http_listen)
		error.code = vdi_serve_http_port_new(server, etcd->http_listen, &http, &error);
	if (error.code == VD_OK && (etcd->compaction.period.ns || etcd->compaction.revisions))
		error.code = vdi_auto_compaction_new(env, &etcd->compaction, &compaction);
	if (error.code == VD_OK)
		error.code = vdi_serve_rpc_new(server, &options, &rpc, &error);
	if (error.code == VD_OK) {
		if (etcd->client_url_count == 0) {
			/* What others are told to connect to is where we really listen. */
			(void) snprintf(etcd->made_url, sizeof etcd->made_url, "%s://%s", etcd->is_tls ? "https" : "http", vdi_serve_rpc_address(rpc, 0));
			vdi_etcdserver_set_client_url(server, etcd->made_url);
		}
		say_ready(etcd, rpc, http);
		vdi_command_wait_for_signal(signals);
	} else {
		result = fail("", &error);
	}
	(void) vdi_serve_rpc_close(rpc);
	(void) vdi_auto_compaction_free(compaction);
	(void) vdi_serve_http_port_free(http);
	return result;
}

static int run_server(struct etcd *etcd, const struct vd_env *env, const sigset_t *signals)
{
	struct vdi_etcdserver_options options = { .name = etcd->name,
						  .client_urls = etcd->client_urls,
						  .client_url_count = etcd->client_url_count,
						  .peer_urls = etcd->peer_urls,
						  .peer_url_count = etcd->peer_url_count,
						  .request_bytes_max = (size_t) etcd->request_bytes_max,
						  .txn_ops_max = (unsigned) etcd->txn_ops_max,
						  .quota_bytes = etcd->quota_bytes,
						  .progress_interval = etcd->progress_interval,
						  .bcrypt_cost = etcd->bcrypt_cost,
						  .token_ttl = VD_SECONDS(etcd->token_ttl_s),
						  .client_cert_auth = etcd->client_cert_auth };
	struct vdi_etcdserver *server = NULL;
	struct vd_error	       error = { .code = VD_OK };
	const char	      *exposed;
	int		       result;

	error.code = open_store(etcd, env, &options.store, &error);
	if (error.code != VD_OK)
		return fail(etcd->memory ? "memory" : etcd->data_dir, &error);
	options.state_path = etcd->memory ? NULL : etcd->state_path;
	etcd->compaction.store = options.store;
	error.code = vdi_etcdserver_new(env, &options, &server, &error);
	if (error.code == VD_OK && etcd->restored_auth_size)
		error.code = vdi_auth_restore(server->auth, (struct vd_bytes) { etcd->restored_auth, etcd->restored_auth_size });
	if (error.code != VD_OK) {
		result = fail("", &error);
	} else if ((exposed = find_exposed(etcd, server)) != NULL) {
		(void) fprintf(stderr,
			       "vedette etcd: %s can be reached from other machines, and nothing asks who they are: use --client-cert-auth, enable authentication, "
			       "or say --insecure-no-auth\n",
			       exposed);
		result = VDI_EXIT_USAGE;
	} else {
		result = serve(etcd, env, server, signals);
	}
	(void) vdi_etcdserver_free(server);
	(void) vd_store_close_wait(options.store);
	return result;
}

static int run_with_env(const struct vdi_command *command, struct etcd *etcd, struct vdi_log_settings *log)
{
	struct vd_env	     *env;
	sigset_t	      signals;
	int		      result;

	vdi_command_raise_file_limit();
	if (vdi_command_process_init(log, 0, &signals, &env) != VD_OK)
		return vdi_command_failed(command, "cannot start threads");
	result = run_server(etcd, env, &signals);
	(void) vd_env_free(env);
	return result;
}

static int run(const struct vdi_command *command, int argc, char **argv)
{
	struct etcd etcd = { .name = "default",
			     .compaction_mode = "periodic",
			     .progress_interval = VD_SECONDS(600),
			     .request_bytes_max = 3 << 19,
			     .unsent_bytes_max = 1 << 30,
			     .txn_ops_max = 128,
			     .bcrypt_cost = 10,
			     .token_ttl_s = 300,
			     .ping_interval_min = VD_SECONDS(5),
			     .keepalive_interval = VD_SECONDS(7200),
			     .keepalive_timeout = VD_SECONDS(20) };
	struct vdi_log_settings log = VDI_LOG_SETTINGS_INIT;
	const char	       *ignored;
	bool			ignored_flag;
	size_t			operand_count;
	int			result;
	const struct vdi_option table[] = {
		{ 0, "listen", VDI_OPTION_TEXT, "ADDR:PORT", "where to listen; port 0 chooses one (default 127.0.0.1:2379)", &etcd.listen },
		{ 0, "data-dir", VDI_OPTION_TEXT, "DIR", "where the store lives (default ./default.etcd)", &etcd.data_dir },
		{ 0, "memory", VDI_OPTION_FLAG, NULL, "keep everything in memory instead", &etcd.memory },
		{ 0, "restore", VDI_OPTION_TEXT, "FILE", "fill the store, which must be empty, from a snapshot of an etcd or of ours", &etcd.restore },
		{ 0, "http-listen", VDI_OPTION_TEXT, "ADDR:PORT", "serve /health, /version, /metrics, /livez and /readyz there too, without TLS", &etcd.http_listen },
		{ 0, "listen-metrics-urls", VDI_OPTION_TEXT, "URL", "the same as --http-listen, as etcd writes it", &etcd.listen_metrics_urls },
		{ 0, "listen-client-http-urls", VDI_OPTION_TEXT, "URL", "the same, and no longer where clients are", &etcd.listen_client_http_urls },
		{ 0, "insecure-no-auth", VDI_OPTION_FLAG, NULL, "serve other machines although nothing asks who they are", &etcd.insecure_no_auth },
		{ 0, "name", VDI_OPTION_TEXT, "NAME", "name of the member (default default)", &etcd.name },
		{ 0, "listen-client-urls", VDI_OPTION_TEXT, "URLS", "the same as --listen, as etcd writes it", &etcd.listen_client_urls },
		{ 0, "advertise-client-urls", VDI_OPTION_TEXT, "URLS", "what clients are told (default: where it listens)", &etcd.advertise_client_urls },
		{ 0, "watch-progress-notify-interval", VDI_OPTION_DURATION, "DURATION", "of progress for idle watches (default 10m)", &etcd.progress_interval },
		{ 0, "experimental-watch-progress-notify-interval", VDI_OPTION_DURATION, "DURATION", "the same, by its older name", &etcd.progress_interval },
		{ 0, "quota-backend-bytes", VDI_OPTION_TEXT, "SIZE", "writes are refused beyond it (default 2GiB; -1: no quota)", &etcd.quota },
		{ 0, "max-request-bytes", VDI_OPTION_BYTES, "SIZE", "of one request (default 1.5MiB)", &etcd.request_bytes_max },
		{ 0, "max-unsent-bytes", VDI_OPTION_BYTES, "SIZE", "of all answers and events that clients have not read (default 1GiB)", &etcd.unsent_bytes_max },
		{ 0, "max-txn-ops", VDI_OPTION_NUMBER, "N", "of one transaction (default 128, which is the most)", &etcd.txn_ops_max },
		{ 0, "max-concurrent-streams", VDI_OPTION_COUNT, "N", "of one connection (default: no bound)", &etcd.streams_max },
		{ 0, "auto-compaction-mode", VDI_OPTION_CHOICE, "MODE", "periodic or revision (default periodic)", &etcd.compaction_mode, "periodic|revision" },
		{ 0, "auto-compaction-retention", VDI_OPTION_TEXT, "N", "hours, a duration, or revisions to keep (default 0: off)", &etcd.compaction_retention },
		{ 0, "auto-compaction-interval", VDI_OPTION_DURATION, "DURATION", "between compactions by revisions (default 5m)", &etcd.compaction.interval },
		{ 0, "cert-file", VDI_OPTION_TEXT, "FILE", "certificate of the server (PEM): serves TLS", &etcd.cert_file },
		{ 0, "key-file", VDI_OPTION_TEXT, "FILE", "and its key", &etcd.key_file },
		{ 0, "trusted-ca-file", VDI_OPTION_TEXT, "FILE", "whose client certificates are believed", &etcd.trusted_ca_file },
		{ 0, "client-cert-auth", VDI_OPTION_FLAG, NULL, "clients must show a certificate; its common name is their user", &etcd.client_cert_auth },
		{ 0, "bcrypt-cost", VDI_OPTION_COUNT, "N", "of password hashes (default 10)", &etcd.bcrypt_cost },
		{ 0, "auth-token-ttl", VDI_OPTION_COUNT, "SECONDS", "life of an unused token (default 300)", &etcd.token_ttl_s },
		{ 0, "grpc-keepalive-min-time", VDI_OPTION_DURATION, "DURATION", "between a client's pings (default 5s)", &etcd.ping_interval_min },
		{ 0, "grpc-keepalive-interval", VDI_OPTION_DURATION, "DURATION", "between the server's pings (default 2h)", &etcd.keepalive_interval },
		{ 0, "grpc-keepalive-timeout", VDI_OPTION_DURATION, "DURATION", "until a silent connection is closed (default 20s)", &etcd.keepalive_timeout },
		{ 0, "unsafe-no-fsync", VDI_OPTION_FLAG, NULL, "acknowledged is not durable: for tests and measurements only", &etcd.no_sync },
		{ 0, "listen-peer-urls", VDI_OPTION_TEXT, "URLS", "shown in the list of members; there are no peers", &etcd.listen_peer_urls },
		/* Accepted from command lines made for etcd. */
		{ 0, "initial-advertise-peer-urls", VDI_OPTION_TEXT, "URLS", "no effect", &ignored },
		{ 0, "initial-cluster", VDI_OPTION_TEXT, "TEXT", "no effect", &ignored },
		{ 0, "initial-cluster-token", VDI_OPTION_TEXT, "TEXT", "no effect", &ignored },
		{ 0, "initial-cluster-state", VDI_OPTION_TEXT, "TEXT", "no effect", &ignored },
		{ 0, "snapshot-count", VDI_OPTION_TEXT, "N", "no effect", &ignored },
		{ 0, "heartbeat-interval", VDI_OPTION_TEXT, "MS", "no effect", &ignored },
		{ 0, "election-timeout", VDI_OPTION_TEXT, "MS", "no effect", &ignored },
		{ 0, "auth-token", VDI_OPTION_CHOICE, "KIND", "simple", &ignored, "simple" },
		{ 0, "logger", VDI_OPTION_TEXT, "NAME", "no effect", &ignored },
		{ 0, "log-outputs", VDI_OPTION_TEXT, "NAMES", "no effect", &ignored },
		{ 0, "strict-reconfig-check", VDI_OPTION_FLAG, NULL, "no effect", &ignored_flag },
	};

	if (!vdi_command_parse(command, table, VDI_ARRAY_SIZE(table), argc, argv, NULL, 0, &operand_count, &log, &result))
		return result;
	result = read_options(command, &etcd);
	if (result == VDI_EXIT_OK && !etcd.memory) {
		size_t size = strlen(etcd.data_dir) + sizeof "/etcd";

		etcd.state_path = vdi_alloc(size);
		if (etcd.state_path)
			(void) snprintf(etcd.state_path, size, "%s/etcd", etcd.data_dir);
		else
			result = vdi_command_failed(command, "no memory");
	}
	if (result == VDI_EXIT_OK)
		result = run_with_env(command, &etcd, &log);
	vdi_free(etcd.state_path);
	vdi_free(etcd.restored_auth);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(etcd.texts); i++)
		vdi_free(etcd.texts[i]);
	return result;
}

const struct vdi_command vdi_command_etcd = {
	.name = "etcd",
	.summary = "Serve the embedded store to etcd clients.",
	.usage = "vedette etcd [options]",
	.details = "Speaks etcd's v3 API as one member of version " VDI_ETCD_VERSION
		   ". Says one line on standard error when it accepts requests:\n\"vedette: ready etcd 127.0.0.1:2379\". SIGTERM or Ctrl-C ends it; what was "
		   "acknowledged is on disk.\n"
		   "Exit status: 0 ended as asked, 1 failed, 2 misused.\n",
	.examples = "  vedette etcd --data-dir /var/lib/vedette-etcd\n"
		    "  vedette etcd --listen 127.0.0.1:0 --memory --http-listen 127.0.0.1:2381\n"
		    "  vedette etcd --listen 0.0.0.0:2379 --cert-file s.crt --key-file s.key --trusted-ca-file ca.crt --client-cert-auth\n",
	.run = run,
};
