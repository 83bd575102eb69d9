/* vedette etcd: serves the embedded store with etcd's protocol. Takes the command line, environment and
 * configuration file of an etcd (etcd_arguments.h); options without a meaning for a single member (peers,
 * raft snapshots, elections) are accepted with a warning.
 *
 * There are four kinds of listeners: gRPC in plain text, gRPC over TLS, and each of these for HTTP (health
 * and metrics) only. A transport serves one kind. */
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
#include "etcd_arguments.h"
#include "etcd_port.h"
#include "rpc_choice.h"
#include "rpc_transport.h"
#include "serve_http_port.h"
#include "serve_rpc.h"
#include "snapshot_restore.h"
#include "units.h"

#define URLS_MAX 16

struct listeners {
	struct vdi_etcd_listen parsed[URLS_MAX];
	const char	      *addresses[URLS_MAX];
	size_t		       count;
};

struct etcd {
	const char *listen;
	const char *listen_client_urls;
	const char *advertise_client_urls;
	const char *listen_peer_urls;
	const char *initial_advertise_peer_urls;
	const char *initial_cluster;
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
	const char *client_crl_file;
	const char *allowed_hostnames;
	const char *cipher_suites;
	const char *tls_min_version;
	const char *tls_max_version;
	const char *auth_token;
	const char *metrics;
	vd_dur	    progress_interval;
	int64_t	    request_bytes_max;
	int64_t	    unsent_bytes_max;
	int64_t	    txn_ops_max;
	unsigned    streams_max;
	const char *rpc;
	unsigned    bcrypt_cost;
	unsigned    token_ttl_s;
	vd_dur	    ping_interval_min;
	vd_dur	    keepalive_interval;
	vd_dur	    keepalive_timeout;
	bool	    memory;
	bool	    client_cert_auth;
	bool	    auto_tls;
	bool	    insecure_no_auth;
	bool	    no_sync;

	/* Derived from the texts above. */
	char				  *texts[2]; /* owned: the lists of URLs below point into them */
	struct listeners		   calls[2]; /* plain, TLS */
	struct listeners		   http[2];
	const char			  *client_urls[URLS_MAX];
	size_t				   client_url_count;
	const char			  *peer_urls[URLS_MAX];
	size_t				   peer_url_count;
	int64_t				   quota_bytes;
	struct vdi_auto_compaction_options compaction;
	char				   made_url[320];
	char				   default_dir[256];
	char				  *state_path;
	void				  *restored_auth; /* from a snapshot */
	size_t				   restored_auth_size;
};

static int fail(const char *what, const struct vd_error *error)
{
	(void) fprintf(stderr, "vedette etcd: %s%s%s\n", what, *what ? ": " : "",
		       error->message[0] ? error->message : vd_status_sentence(error->code));
	return error->code == VD_INVALID || error->code == VD_INVALID_ARGUMENT ? VDI_EXIT_USAGE :
										 VDI_EXIT_FAILED;
}

/* ---- Options ---- */

/* Splits a list at its commas. The text is kept in *kept. */
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

/* Adds the addresses in a list of URLs to the listeners of their kind. */
static int add_listeners(const struct vdi_command *command, const struct etcd *etcd, const char *option,
			 const char *urls, struct listeners listeners[2])
{
	char   url[320];
	size_t size;

	for (const char *at = urls; *at; at += size + (at[size] == ',')) {
		struct vdi_etcd_listen parsed;
		struct listeners      *to;
		const char	      *mistake;

		size = strcspn(at, ",");
		(void) snprintf(url, sizeof url, "%.*s", (int) VDI_MIN(size, sizeof url - 1), at);
		mistake = vdi_etcd_listen_parse(url, etcd->cert_file != NULL, &parsed);
		if (mistake)
			return vdi_command_mistake(command, "--%s: \"%s\": %s", option, url, mistake);
		to = &listeners[parsed.is_tls];
		if (to->count == URLS_MAX)
			return vdi_command_mistake(command, "--%s: more than %d addresses", option, URLS_MAX);
		to->parsed[to->count] = parsed;
		to->addresses[to->count] = to->parsed[to->count].address;
		to->count++;
	}
	return VDI_EXIT_OK;
}

static int read_addresses(const struct vdi_command *command, struct etcd *etcd)
{
	const char *peer_urls = etcd->initial_advertise_peer_urls ? etcd->initial_advertise_peer_urls :
				etcd->listen_peer_urls		  ? etcd->listen_peer_urls :
								    "http://localhost:2380";
	const char *urls = etcd->listen		    ? etcd->listen :
			   etcd->listen_client_urls ? etcd->listen_client_urls :
						      "127.0.0.1:2379";
	int result = add_listeners(command, etcd, etcd->listen ? "listen" : "listen-client-urls", urls,
				   etcd->calls);

	if (result == VDI_EXIT_OK && etcd->http_listen)
		result = add_listeners(command, etcd, "http-listen", etcd->http_listen, etcd->http);
	if (result == VDI_EXIT_OK && etcd->listen_metrics_urls)
		result = add_listeners(command, etcd, "listen-metrics-urls", etcd->listen_metrics_urls,
				       etcd->http);
	if (result == VDI_EXIT_OK && etcd->listen_client_http_urls)
		result = add_listeners(command, etcd, "listen-client-http-urls",
				       etcd->listen_client_http_urls, etcd->http);
	if (result != VDI_EXIT_OK)
		return result;
	if (etcd->calls[0].count + etcd->calls[1].count == 0)
		return vdi_command_mistake(command,
					   "the listen addresses are not a list of addresses: \"%s\"", urls);
	if (etcd->advertise_client_urls &&
	    !split(etcd->advertise_client_urls, &etcd->texts[0], etcd->client_urls, &etcd->client_url_count))
		return vdi_command_mistake(command, "--advertise-client-urls is not a list of URLs");
	if (!split(peer_urls, &etcd->texts[1], etcd->peer_urls, &etcd->peer_url_count))
		return vdi_command_mistake(command, "--%s is not a list of URLs",
					   etcd->initial_advertise_peer_urls ? "initial-advertise-peer-urls" :
									       "listen-peer-urls");
	return VDI_EXIT_OK;
}

/* Rejects a cluster of several members: "a=http://x,a=http://y" is one member, but another name in it means
 * that the user expects shared data instead of a separate empty store. */
static int check_cluster(const struct vdi_command *command, const struct etcd *etcd)
{
	const char *first = etcd->initial_cluster;
	size_t	    size = first ? strcspn(first, "=") : 0;

	for (const char *at = first; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (strncmp(at, first, size + 1) != 0)
			return vdi_command_mistake(command,
						   "--initial-cluster names several members, but this is "
						   "always a single one: \"%s\"",
						   first);
	return VDI_EXIT_OK;
}

static int read_quota(const struct vdi_command *command, struct etcd *etcd)
{
	if (etcd->quota == NULL)
		return VDI_EXIT_OK;
	if (strncmp(etcd->quota, "-", 1) == 0 && strtoll(etcd->quota, NULL, 10) < 0)
		etcd->quota_bytes = -1;
	else if (!vdi_parse_bytes(etcd->quota, &etcd->quota_bytes))
		return vdi_command_mistake(
			command,
			"--quota-backend-bytes must be a size such as 8GiB, or -1 for none, not \"%s\"",
			etcd->quota);
	return VDI_EXIT_OK;
}

/* Parses the retention as etcd does: a whole number of hours, or a duration, in mode periodic; a number of
 * revisions in mode revision. */
static int read_compaction(const struct vdi_command *command, struct etcd *etcd)
{
	bool		   is_revision = strcmp(etcd->compaction_mode, "revision") == 0;
	char		  *end;
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
		return vdi_command_mistake(
			command,
			"--auto-compaction-retention \"%s\" is invalid for --auto-compaction-mode %s",
			etcd->compaction_retention, etcd->compaction_mode);
	return VDI_EXIT_OK;
}

static int read_options(const struct vdi_command *command, struct etcd *etcd)
{
	int result;

	if (etcd->memory && etcd->data_dir)
		return vdi_command_mistake(command, "--memory and --data-dir exclude each other");
	if (!etcd->cert_file != !etcd->key_file)
		return vdi_command_mistake(command, "--cert-file and --key-file must be given together");
	if (etcd->auto_tls && !etcd->cert_file)
		return vdi_command_mistake(command,
					   "--auto-tls is not supported: give --cert-file and --key-file");
	if (etcd->client_cert_auth && !(etcd->cert_file && etcd->trusted_ca_file))
		return vdi_command_mistake(
			command, "--client-cert-auth requires --cert-file, --key-file and --trusted-ca-file");
	if (etcd->txn_ops_max > 128 || etcd->txn_ops_max < 1)
		return vdi_command_mistake(command, "--max-txn-ops must be at most 128");
	if (etcd->bcrypt_cost < 4 || etcd->bcrypt_cost > 31)
		return vdi_command_mistake(command, "--bcrypt-cost must be from 4 to 31");
	if (etcd->request_bytes_max < 1024 || etcd->request_bytes_max > (64 << 20))
		return vdi_command_mistake(command, "--max-request-bytes must be from 1KiB to 64MiB");
	if (etcd->unsent_bytes_max < (1 << 20))
		return vdi_command_mistake(command, "--max-unsent-bytes must be at least 1MiB");
	if (etcd->data_dir == NULL) {
		(void) snprintf(etcd->default_dir, sizeof etcd->default_dir, "./%s.etcd", etcd->name);
		etcd->data_dir = etcd->default_dir;
	}
	result = check_cluster(command, etcd);
	if (result == VDI_EXIT_OK)
		result = read_addresses(command, etcd);
	if (result == VDI_EXIT_OK)
		result = read_quota(command, etcd);
	return result == VDI_EXIT_OK ? read_compaction(command, etcd) : result;
}

/* ---- Running ---- */

static vd_status restore_store(struct etcd *etcd, const struct vd_env *env,
			       const struct vd_mvcc_options *options, struct vd_store **ret_store,
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
		return vd_error_set(error, VD_INVALID_ARGUMENT, "--restore %s: the file cannot be read",
				    etcd->restore);
	status = vdi_snapshot_restore(env, options, (struct vd_bytes) { bytes, (size_t) about.st_size },
				      ret_store, &etcd->restored_auth, &etcd->restored_auth_size, &report,
				      error);
	(void) munmap(bytes, (size_t) about.st_size);
	if (status == VD_OK)
		(void) fprintf(stderr,
			       "vedette etcd: restored %s: %lld records, %lld leases, revision %lld\n",
			       etcd->restore, (long long) report.records, (long long) report.leases,
			       (long long) report.revision);
	return status;
}

static vd_status open_store(struct etcd *etcd, const struct vd_env *env, struct vd_store **ret_store,
			    struct vd_error *error)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;

	options.data_dir = etcd->memory ? NULL : etcd->data_dir;
	/* etcd keeps every revision until a client compacts. */
	options.history_window = (vd_dur) { 0 };
	options.history_bytes = 0;
	options.progress_interval = (vd_dur) { 0 };
	options.no_sync = etcd->no_sync;
	if (etcd->restore)
		return restore_store(etcd, env, &options, ret_store, error);
	return vd_store_open_mvcc(env, &options, ret_store, error);
}

/* Returns an address that other machines can reach without authentication, if that was not allowed
 * explicitly; NULL: none. */
static const char *find_exposed(const struct etcd *etcd, const struct vdi_etcdserver *server)
{
	for (int is_tls = 0; is_tls < 2; is_tls++) {
		bool is_guarded = is_tls && etcd->client_cert_auth;

		for (size_t i = 0;
		     i < etcd->calls[is_tls].count && !is_guarded && !vdi_auth_is_enabled(server->auth); i++)
			if (!vdi_etcd_is_loopback(etcd->calls[is_tls].addresses[i]))
				return etcd->calls[is_tls].addresses[i];
		for (size_t i = 0; i < etcd->http[is_tls].count && !is_guarded; i++)
			if (!vdi_etcd_is_loopback(etcd->http[is_tls].addresses[i]))
				return etcd->http[is_tls].addresses[i];
	}
	return NULL;
}

/* ---- Ports ---- */

struct ports {
	struct vdi_serve_rpc	   *calls[2]; /* plain, TLS; NULL: none */
	struct vdi_serve_rpc	   *https;
	struct vdi_serve_http_port *http[URLS_MAX];
};

static void say_ready(const struct etcd *etcd, const struct ports *ports)
{
	char   line[2048];
	size_t size = (size_t) snprintf(line, sizeof line, "vedette: ready");

	for (int is_tls = 0; is_tls < 2; is_tls++)
		for (size_t i = 0; i < etcd->calls[is_tls].count && size < sizeof line; i++)
			size += (size_t) snprintf(line + size, sizeof line - size, " etcd %s",
						  vdi_serve_rpc_address(ports->calls[is_tls], i));
	for (size_t i = 0; i < etcd->http[0].count && size < sizeof line; i++)
		size += (size_t) snprintf(line + size, sizeof line - size, " http %s",
					  vdi_serve_http_port_address(ports->http[i]));
	for (size_t i = 0; i < etcd->http[1].count && size < sizeof line; i++)
		size += (size_t) snprintf(line + size, sizeof line - size, " https %s",
					  vdi_serve_rpc_address(ports->https, i));
	(void) fprintf(stderr, "%s\n", line);
	(void) fflush(stderr);
}

static void tell_of_bounds(const struct etcd *etcd, const struct vd_rpc_transport *transport)
{
	bool is_exposed = false;

	for (int is_tls = 0; is_tls < 2; is_tls++)
		for (size_t i = 0; i < etcd->calls[is_tls].count; i++)
			is_exposed |= !vdi_etcd_is_loopback(etcd->calls[is_tls].addresses[i]);
	if (transport->unbounded && is_exposed)
		(void) fprintf(stderr,
			       "vedette: warning: --rpc %s on an address that other machines reach: it does "
			       "not bound %s\n",
			       transport->name, transport->unbounded);
}

static vd_status open_ports(const struct etcd *etcd, struct vdi_etcdserver *server, struct ports *ports,
			    struct vd_error *reterr)
{
	struct vdi_rpc_server_tls    tls = { .cert_path = etcd->cert_file,
					     .key_path = etcd->key_file,
					     .client_ca_path = etcd->trusted_ca_file,
					     .require_client_cert = etcd->client_cert_auth,
					     .min_version = etcd->tls_min_version,
					     .max_version = etcd->tls_max_version,
					     .cipher_suites = etcd->cipher_suites,
					     .allowed_hostnames = etcd->allowed_hostnames,
					     .crl_path = etcd->client_crl_file };
	struct vdi_serve_rpc_options options = { .unsent_bytes_max = (size_t) etcd->unsent_bytes_max,
						 .streams_max = etcd->streams_max,
						 .ping_interval_min = etcd->ping_interval_min,
						 .keepalive_time = etcd->keepalive_interval,
						 .keepalive_timeout = etcd->keepalive_timeout };

	for (size_t i = 0; i < etcd->http[0].count; i++)
		VDI_TRY(vdi_serve_http_port_new(server, etcd->http[0].addresses[i], &ports->http[i], reterr));
	if (etcd->http[1].count) {
		options.listen = etcd->http[1].addresses;
		options.listen_count = etcd->http[1].count;
		options.tls = &tls;
		options.without_calls = true;
		VDI_TRY(vdi_serve_rpc_new(server, &options, &ports->https, reterr));
		options.without_calls = false;
	}
	VDI_TRY(vdi_rpc_choose(etcd->rpc, &options.transport, reterr));
	tell_of_bounds(etcd, options.transport);
	options.without_http = etcd->listen_client_http_urls != NULL;
	for (int is_tls = 0; is_tls < 2; is_tls++) {
		options.listen = etcd->calls[is_tls].addresses;
		options.listen_count = etcd->calls[is_tls].count;
		options.tls = is_tls ? &tls : NULL;
		if (options.listen_count)
			VDI_TRY(vdi_serve_rpc_new(server, &options, &ports->calls[is_tls], reterr));
	}
	return VD_OK;
}

static void close_ports(struct ports *ports)
{
	(void) vdi_serve_rpc_close(ports->calls[0]);
	(void) vdi_serve_rpc_close(ports->calls[1]);
	(void) vdi_serve_rpc_close(ports->https);
	for (size_t i = 0; i < URLS_MAX; i++)
		(void) vdi_serve_http_port_free(ports->http[i]);
}

static int serve(struct etcd *etcd, const struct vd_env *env, struct vdi_etcdserver *server,
		 const sigset_t *signals)
{
	struct vdi_auto_compaction *compaction = NULL;
	struct ports		    ports = { 0 };
	struct vd_error		    error = { .code = VD_OK };
	int			    result = VDI_EXIT_OK;

	if (etcd->compaction.period.ns || etcd->compaction.revisions)
		error.code = vdi_auto_compaction_new(env, &etcd->compaction, &compaction);
	if (error.code == VD_OK)
		error.code = open_ports(etcd, server, &ports, &error);
	if (error.code == VD_OK) {
		if (etcd->client_url_count == 0) {
			int first = ports.calls[0] == NULL;

			/* The advertised URL has the actual port. */
			vdi_etcd_listen_url(vdi_serve_rpc_address(ports.calls[first], 0), first,
					    etcd->made_url, sizeof etcd->made_url);
			vdi_etcdserver_set_client_url(server, etcd->made_url);
		}
		say_ready(etcd, &ports);
		vdi_command_wait_for_signal(signals);
	} else {
		result = fail("", &error);
	}
	close_ports(&ports);
	(void) vdi_auto_compaction_free(compaction);
	return result;
}

static int run_server(struct etcd *etcd, const struct vd_env *env, const sigset_t *signals)
{
	struct vdi_etcdserver_options options = {
		.name = etcd->name,
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
		.extensive_metrics = etcd->metrics && strcmp(etcd->metrics, "extensive") == 0,
		.client_cert_auth = etcd->client_cert_auth
	};
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
		error.code = vdi_auth_restore(
			server->auth, (struct vd_bytes) { etcd->restored_auth, etcd->restored_auth_size });
	if (error.code != VD_OK) {
		result = fail("", &error);
	} else if (!etcd->insecure_no_auth && (exposed = find_exposed(etcd, server)) != NULL) {
		(void) fprintf(
			stderr,
			"vedette etcd: %s can be reached from other machines without authentication: use "
			"--client-cert-auth, enable authentication, or give --insecure-no-auth\n",
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
	struct vd_env *env;
	sigset_t       signals;
	int	       result;

	vdi_command_raise_file_limit();
	if (vdi_command_process_init(log, 0, &signals, &env) != VD_OK)
		return vdi_command_failed(command, "cannot start threads");
	result = run_server(etcd, env, &signals);
	(void) vd_env_free(env);
	return result;
}

static int run(const struct vdi_command *command, int argc, char **argv)
{
	struct etcd		  etcd = { .name = "default",
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
	struct vdi_log_settings	  log = VDI_LOG_SETTINGS_INIT;
	struct vdi_etcd_arguments arguments;
	const char		 *ignored;
	size_t			  operand_count;
	int			  result;
	const struct vdi_option	  table[] = {
		  { 0, "listen", VDI_OPTION_TEXT, "ADDR:PORT",
		    "listen address; port 0: chosen by the system (default 127.0.0.1:2379)", &etcd.listen },
		  { 0, "data-dir", VDI_OPTION_TEXT, "DIR", "directory of the store (default ./NAME.etcd)",
		    &etcd.data_dir },
		  { 0, "memory", VDI_OPTION_FLAG, NULL, "keep the store in memory only", &etcd.memory },
		  { 0, "restore", VDI_OPTION_TEXT, "FILE",
		    "restore a snapshot of etcd or vedette etcd into the store, which must be empty",
		    &etcd.restore },
		  { 0, "http-listen", VDI_OPTION_TEXT, "ADDR:PORT",
		    "additional address for /health, /version, /metrics, /livez and /readyz",
		    &etcd.http_listen },
		  { 0, "listen-metrics-urls", VDI_OPTION_TEXT, "URLS",
		    "as --http-listen, as URLs: http or https", &etcd.listen_metrics_urls },
		  { 0, "listen-client-http-urls", VDI_OPTION_TEXT, "URLS",
		    "URLs for /health and the other HTTP paths, which client addresses then no longer serve",
		    &etcd.listen_client_http_urls },
		  { 0, "insecure-no-auth", VDI_OPTION_FLAG, NULL,
		    "allow addresses that are not loopback without authentication", &etcd.insecure_no_auth },
		  { 0, "name", VDI_OPTION_TEXT, "NAME", "name of the member (default default)", &etcd.name },
		  { 0, "listen-client-urls", VDI_OPTION_TEXT, "URLS",
		    "as --listen, as URLs: http, https, unix or unixs", &etcd.listen_client_urls },
		  { 0, "advertise-client-urls", VDI_OPTION_TEXT, "URLS",
		    "client URLs in the member list (default: the listen addresses)",
		    &etcd.advertise_client_urls },
		  { 0, "watch-progress-notify-interval", VDI_OPTION_DURATION, "DURATION",
		    "interval of progress notifications for idle watches (default 10m)",
		    &etcd.progress_interval },
		  { 0, "quota-backend-bytes", VDI_OPTION_TEXT, "SIZE",
		    "size of the store above which writes are refused (default 2GiB; -1: no quota)",
		    &etcd.quota },
		  { 0, "max-request-bytes", VDI_OPTION_BYTES, "SIZE",
		    "maximum size of one request (default 1.5MiB)", &etcd.request_bytes_max },
		  { 0, "max-unsent-bytes", VDI_OPTION_BYTES, "SIZE",
		    "maximum memory of all responses and events that clients have not read (default 1GiB)",
		    &etcd.unsent_bytes_max },
		  { 0, "max-txn-ops", VDI_OPTION_NUMBER, "N",
		    "maximum operations per transaction (default and maximum 128)", &etcd.txn_ops_max },
		  VDI_RPC_OPTION(&etcd.rpc),
		  { 0, "max-concurrent-streams", VDI_OPTION_COUNT, "N",
		    "maximum concurrent streams per connection (default: no limit)", &etcd.streams_max },
		  { 0, "auto-compaction-mode", VDI_OPTION_CHOICE, "MODE",
		    "compaction mode: periodic or revision (default periodic)", &etcd.compaction_mode,
		    "periodic|revision" },
		  { 0, "auto-compaction-retention", VDI_OPTION_TEXT, "N",
		    "hours, a duration, or number of revisions to retain (default 0: off)",
		    &etcd.compaction_retention },
		  { 0, "auto-compaction-interval", VDI_OPTION_DURATION, "DURATION",
		    "interval of compactions in mode revision (default 5m)", &etcd.compaction.interval },
		  { 0, "cert-file", VDI_OPTION_TEXT, "FILE", "serve TLS with this certificate (PEM)",
		    &etcd.cert_file },
		  { 0, "key-file", VDI_OPTION_TEXT, "FILE", "private key for --cert-file (PEM)",
		    &etcd.key_file },
		  { 0, "trusted-ca-file", VDI_OPTION_TEXT, "FILE",
		    "CA bundle for verifying client certificates", &etcd.trusted_ca_file },
		  { 0, "client-crl-file", VDI_OPTION_TEXT, "FILE",
		    "revoked client certificates (PEM or DER); read for each connection",
		    &etcd.client_crl_file },
		  { 0, "client-cert-allowed-hostname", VDI_OPTION_TEXT, "NAMES",
		    "host names; a client certificate must be valid for one", &etcd.allowed_hostnames },
		  { 0, "cipher-suites", VDI_OPTION_TEXT, "NAMES",
		    "cipher suites of TLS 1.2, by IANA name (default: ECDHE with AES-GCM or ChaCha20)",
		    &etcd.cipher_suites },
		  { 0, "tls-min-version", VDI_OPTION_CHOICE, "VERSION",
		    "minimum TLS version: TLS1.2 or TLS1.3 (default TLS1.2)", &etcd.tls_min_version,
		    "TLS1.2|TLS1.3" },
		  { 0, "tls-max-version", VDI_OPTION_CHOICE, "VERSION",
		    "maximum TLS version: TLS1.2 or TLS1.3 (default TLS1.3)", &etcd.tls_max_version,
		    "TLS1.2|TLS1.3" },
		  { 0, "auto-tls", VDI_OPTION_FLAG, NULL, "not supported: give --cert-file and --key-file",
		    &etcd.auto_tls },
		  { 0, "client-cert-auth", VDI_OPTION_FLAG, NULL,
		    "require a client certificate; its common name is the user", &etcd.client_cert_auth },
		  { 0, "bcrypt-cost", VDI_OPTION_COUNT, "N", "cost of password hashes (default 10)",
		    &etcd.bcrypt_cost },
		  { 0, "auth-token-ttl", VDI_OPTION_COUNT, "SECONDS",
		    "lifetime of an unused token (default 300)", &etcd.token_ttl_s },
		  { 0, "grpc-keepalive-min-time", VDI_OPTION_DURATION, "DURATION",
		    "minimum interval between pings of a client (default 5s)", &etcd.ping_interval_min },
		  { 0, "grpc-keepalive-interval", VDI_OPTION_DURATION, "DURATION",
		    "interval of the server's pings (default 2h)", &etcd.keepalive_interval },
		  { 0, "grpc-keepalive-timeout", VDI_OPTION_DURATION, "DURATION",
		    "time without an answer to a ping until the connection is closed (default 20s)",
		    &etcd.keepalive_timeout },
		  { 0, "unsafe-no-fsync", VDI_OPTION_FLAG, NULL,
		    "answer writes before they are durable; for tests and benchmarks only", &etcd.no_sync },
		  { 0, "listen-peer-urls", VDI_OPTION_TEXT, "URLS",
		    "peer URLs in the member list; there are no peers", &etcd.listen_peer_urls },
		  { 0, "initial-advertise-peer-urls", VDI_OPTION_TEXT, "URLS",
		    "peer URLs in the member list, instead of --listen-peer-urls",
		    &etcd.initial_advertise_peer_urls },
		  { 0, "initial-cluster", VDI_OPTION_TEXT, "NAME=URL",
		    "the only member of the cluster; several are refused", &etcd.initial_cluster },
		  { 0, "auth-token", VDI_OPTION_CHOICE, "KIND", "token type (simple)", &etcd.auth_token,
		    "simple" },
		  { 0, "metrics", VDI_OPTION_CHOICE, "LEVEL",
		    "metrics: basic, or extensive with call durations (default basic)", &etcd.metrics,
		    "basic|extensive" },
		  { 0, "config-file", VDI_OPTION_TEXT, "FILE",
		    "YAML as for etcd; etcd's options on the command line and ETCD_... variables are then "
		      "ignored",
		    &ignored },
	};

	if (!vdi_etcd_arguments_init(command, table, VDI_ARRAY_SIZE(table), argc, argv, environ, &arguments,
				     &result))
		return result;
	if (!vdi_command_parse(command, table, VDI_ARRAY_SIZE(table), (int) arguments.argc, arguments.argv,
			       NULL, 0, &operand_count, &log, &result)) {
		vdi_etcd_arguments_fini(&arguments);
		return result;
	}
	vdi_etcd_arguments_warn(&arguments, &log);
	result = read_options(command, &etcd);
	if (result == VDI_EXIT_OK && etcd.cert_file && etcd.calls[0].count)
		vdi_command_note(&log, VD_LOG_WARNING,
				 "%s is plain text: certificates are for https and unixs",
				 etcd.calls[0].addresses[0]);
	if (result == VDI_EXIT_OK && !etcd.memory) {
		size_t size = strlen(etcd.data_dir) + sizeof "/etcd";

		etcd.state_path = vdi_alloc(size);
		if (etcd.state_path)
			(void) snprintf(etcd.state_path, size, "%s/etcd", etcd.data_dir);
		else
			result = vdi_command_failed(command, "out of memory");
	}
	if (result == VDI_EXIT_OK)
		result = run_with_env(command, &etcd, &log);
	vdi_free(etcd.state_path);
	vdi_free(etcd.restored_auth);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(etcd.texts); i++)
		vdi_free(etcd.texts[i]);
	vdi_etcd_arguments_fini(&arguments);
	return result;
}

const struct vdi_command vdi_command_etcd = {
	.name = "etcd",
	.summary = "Serve the embedded store to etcd clients.",
	.usage = "vedette etcd [options]",
	.details = "Serves etcd's v3 API as one member of version " VDI_ETCD_VERSION ". Prints one line on\n"
		   "standard error when it accepts requests:\n"
		   "  vedette: ready etcd 127.0.0.1:2379\n"
		   "SIGTERM or Ctrl-C ends it; acknowledged writes are on disk.\n"
		   "Exit status: 0 ended by a signal, 1 failure, 2 usage error.\n",
	.examples = "  vedette etcd --data-dir /var/lib/vedette-etcd\n"
		    "  vedette etcd --listen 127.0.0.1:0 --memory --http-listen 127.0.0.1:2381\n"
		    "  vedette etcd --listen 0.0.0.0:2379 --cert-file s.crt --key-file s.key "
		    "--trusted-ca-file ca.crt --client-cert-auth\n",
	.run = run,
};
