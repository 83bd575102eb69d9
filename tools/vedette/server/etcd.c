/* vedette etcd: serves the embedded store with etcd's protocol. Takes the command line, environment and
 * configuration file of an etcd (etcd_arguments.h); options without a meaning for a single member (peers,
 * raft snapshots, elections) are accepted with a warning.
 *
 * There are four kinds of listeners: gRPC in plain text, gRPC over TLS, and each of these for HTTP (health
 * and metrics) only. A transport serves one kind. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vedette/vedette.h>

#include "auth.h"
#include "auto_compaction.h"
#include "command_line.h"
#include "command_process.h"
#include "etcd_port.h"
#include "etcd_server_options.h"
#include "rpc_choice.h"
#include "rpc_transport.h"
#include "serve_http_port.h"
#include "serve_rpc.h"
#include "server_command.h"
#include "snapshot_restore.h"

struct ports {
	struct vdi_serve_rpc	   *calls[2]; /* plain, TLS; NULL: none */
	struct vdi_serve_rpc	   *https;
	struct vdi_serve_http_port *http[VDI_ETCD_URLS_MAX];
};

struct etcd {
	struct vdi_etcd_server_options options;

	void  *restored_auth; /* from a snapshot */
	size_t restored_auth_size;

	/* While it serves; each may be NULL. */
	struct vd_store		   *store;
	struct vdi_etcdserver	   *server;
	struct vdi_auto_compaction *compactor;
	struct ports		    ports;
	char			    made_url[320];
};

/* ---- The store ---- */

static vd_status restore_store(struct etcd *etcd, const struct vd_env *env,
			       const struct vd_mvcc_options *options, struct vd_store **ret_store,
			       struct vd_error *error)
{
	struct vdi_snapshot_report report;
	struct stat		   about;
	int			   file = open(etcd->options.restore, O_RDONLY | O_CLOEXEC);
	void			  *bytes = MAP_FAILED;
	vd_status		   status;

	if (file >= 0 && fstat(file, &about) == 0 && about.st_size > 0)
		bytes = mmap(NULL, (size_t) about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
	if (file >= 0)
		(void) close(file);
	if (bytes == MAP_FAILED)
		return vd_error_set(error, VD_INVALID_ARGUMENT, "--restore %s: the file cannot be read",
				    etcd->options.restore);
	status = vdi_snapshot_restore(env, options, (struct vd_bytes) { bytes, (size_t) about.st_size },
				      ret_store, &etcd->restored_auth, &etcd->restored_auth_size, &report,
				      error);
	(void) munmap(bytes, (size_t) about.st_size);
	if (status == VD_OK)
		(void) fprintf(stderr,
			       "vedette etcd: restored %s: %lld records, %lld leases, revision %lld\n",
			       etcd->options.restore, (long long) report.records, (long long) report.leases,
			       (long long) report.revision);
	return status;
}

static vd_status open_store(struct etcd *etcd, const struct vd_env *env, struct vd_store **ret_store,
			    struct vd_error *error)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;

	options.data_dir = etcd->options.memory ? NULL : etcd->options.data_dir;
	/* etcd keeps every revision until a client compacts. */
	options.history_window = (vd_dur) { 0 };
	options.history_bytes = 0;
	options.progress_interval = (vd_dur) { 0 };
	options.no_sync = etcd->options.no_sync;
	if (etcd->options.restore)
		return restore_store(etcd, env, &options, ret_store, error);
	return vd_store_open_mvcc(env, &options, ret_store, error);
}

/* Returns an address that other machines can reach without authentication, if that was not allowed
 * explicitly; NULL: none. */
static const char *find_exposed(const struct etcd *etcd, const struct vdi_etcdserver *server)
{
	for (int is_tls = 0; is_tls < 2; is_tls++) {
		bool is_guarded = is_tls && etcd->options.client_cert_auth;

		for (size_t i = 0; i < etcd->options.calls[is_tls].count && !is_guarded &&
				   !vdi_auth_is_enabled(server->auth);
		     i++)
			if (!vdi_etcd_is_loopback(etcd->options.calls[is_tls].addresses[i]))
				return etcd->options.calls[is_tls].addresses[i];
		for (size_t i = 0; i < etcd->options.http[is_tls].count && !is_guarded; i++)
			if (!vdi_etcd_is_loopback(etcd->options.http[is_tls].addresses[i]))
				return etcd->options.http[is_tls].addresses[i];
	}
	return NULL;
}

/* ---- Ports ---- */

static void report_ready(const struct etcd *etcd)
{
	const struct ports *ports = &etcd->ports;
	char		    line[2048];
	size_t		    size = (size_t) snprintf(line, sizeof line, "vedette: ready");

	for (int is_tls = 0; is_tls < 2; is_tls++)
		for (size_t i = 0; i < etcd->options.calls[is_tls].count && size < sizeof line; i++)
			size += (size_t) snprintf(line + size, sizeof line - size, " etcd %s",
						  vdi_serve_rpc_address(ports->calls[is_tls], i));
	for (size_t i = 0; i < etcd->options.http[0].count && size < sizeof line; i++)
		size += (size_t) snprintf(line + size, sizeof line - size, " http %s",
					  vdi_serve_http_port_address(ports->http[i]));
	for (size_t i = 0; i < etcd->options.http[1].count && size < sizeof line; i++)
		size += (size_t) snprintf(line + size, sizeof line - size, " https %s",
					  vdi_serve_rpc_address(ports->https, i));
	(void) fprintf(stderr, "%s\n", line);
	(void) fflush(stderr);
}

static void report_bounds(const struct etcd *etcd, const struct vd_rpc_transport *transport)
{
	bool is_exposed = false;

	for (int is_tls = 0; is_tls < 2; is_tls++)
		for (size_t i = 0; i < etcd->options.calls[is_tls].count; i++)
			is_exposed |= !vdi_etcd_is_loopback(etcd->options.calls[is_tls].addresses[i]);
	if (transport->unbounded && is_exposed)
		(void) fprintf(stderr,
			       "vedette: warning: --rpc %s on an address that other machines reach: it does "
			       "not bound %s\n",
			       transport->name, transport->unbounded);
}

static vd_status open_ports(struct etcd *etcd, struct vd_error *reterr)
{
	struct vdi_etcdserver	    *server = etcd->server;
	struct ports		    *ports = &etcd->ports;
	struct vdi_rpc_server_tls    tls = { .cert_path = etcd->options.cert_file,
					     .key_path = etcd->options.key_file,
					     .client_ca_path = etcd->options.trusted_ca_file,
					     .require_client_cert = etcd->options.client_cert_auth,
					     .min_version = etcd->options.tls_min_version,
					     .max_version = etcd->options.tls_max_version,
					     .cipher_suites = etcd->options.cipher_suites,
					     .allowed_hostnames = etcd->options.allowed_hostnames,
					     .crl_path = etcd->options.client_crl_file };
	struct vdi_serve_rpc_options options = { .unsent_bytes_max = (size_t) etcd->options.unsent_bytes_max,
						 .streams_max = etcd->options.streams_max,
						 .ping_interval_min = etcd->options.ping_interval_min,
						 .keepalive_time = etcd->options.keepalive_interval,
						 .keepalive_timeout = etcd->options.keepalive_timeout };

	for (size_t i = 0; i < etcd->options.http[0].count; i++)
		VDI_TRY(vdi_serve_http_port_new(server, etcd->options.http[0].addresses[i], &ports->http[i],
						reterr));
	if (etcd->options.http[1].count) {
		options.listen = etcd->options.http[1].addresses;
		options.listen_count = etcd->options.http[1].count;
		options.tls = &tls;
		options.without_calls = true;
		VDI_TRY(vdi_serve_rpc_new(server, &options, &ports->https, reterr));
		options.without_calls = false;
	}
	VDI_TRY(vdi_rpc_choose(etcd->options.rpc, &options.transport, reterr));
	report_bounds(etcd, options.transport);
	options.without_http = etcd->options.listen_client_http_urls != NULL;
	for (int is_tls = 0; is_tls < 2; is_tls++) {
		options.listen = etcd->options.calls[is_tls].addresses;
		options.listen_count = etcd->options.calls[is_tls].count;
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
	for (size_t i = 0; i < VDI_ETCD_URLS_MAX; i++)
		(void) vdi_serve_http_port_free(ports->http[i]);
}

/* ---- The steps ---- */

static int open_server(struct etcd *etcd, const struct vd_env *env)
{
	struct vdi_etcdserver_options options = {
		.store = etcd->store,
		.state_path = etcd->options.memory ? NULL : etcd->options.state_path,
		.name = etcd->options.name,
		.client_urls = etcd->options.client_urls,
		.client_url_count = etcd->options.client_url_count,
		.peer_urls = etcd->options.peer_urls,
		.peer_url_count = etcd->options.peer_url_count,
		.request_bytes_max = (size_t) etcd->options.request_bytes_max,
		.txn_ops_max = (unsigned) etcd->options.txn_ops_max,
		.quota_bytes = etcd->options.quota_bytes,
		.progress_interval = etcd->options.progress_interval,
		.bcrypt_cost = etcd->options.bcrypt_cost,
		.token_ttl = VD_SECONDS(etcd->options.token_ttl_s),
		.extensive_metrics = etcd->options.metrics && strcmp(etcd->options.metrics, "extensive") == 0,
		.client_cert_auth = etcd->options.client_cert_auth
	};
	struct vd_error error = { .code = VD_OK };
	const char     *exposed;

	error.code = vdi_etcdserver_new(env, &options, &etcd->server, &error);
	if (error.code == VD_OK && etcd->restored_auth_size)
		error.code =
			vdi_auth_restore(etcd->server->auth,
					 (struct vd_bytes) { etcd->restored_auth, etcd->restored_auth_size });
	if (error.code != VD_OK)
		return vdi_command_error(&vdi_command_etcd, "", &error);
	if (etcd->options.insecure_no_auth || (exposed = find_exposed(etcd, etcd->server)) == NULL)
		return VDI_EXIT_OK;
	(void) vdi_command_failed(&vdi_command_etcd,
				  "%s can be reached from other machines without authentication: use "
				  "--client-cert-auth, enable "
				  "authentication, or give --insecure-no-auth",
				  exposed);
	return VDI_EXIT_USAGE;
}

static int etcd_open(void *arg, const struct vd_env *env, const sigset_t *signals)
{
	struct etcd    *etcd = arg;
	struct vd_error error = { .code = VD_OK };
	int		result;

	(void) signals;
	error.code = open_store(etcd, env, &etcd->store, &error);
	if (error.code != VD_OK) {
		etcd->store = NULL;
		return vdi_command_error(&vdi_command_etcd,
					 etcd->options.memory ? "memory" : etcd->options.data_dir, &error);
	}
	result = open_server(etcd, env);
	if (result != VDI_EXIT_OK)
		return result;
	etcd->options.compaction.store = etcd->store;
	if (etcd->options.compaction.period.ns || etcd->options.compaction.revisions)
		error.code = vdi_auto_compaction_new(env, &etcd->options.compaction, &etcd->compactor);
	if (error.code == VD_OK)
		error.code = open_ports(etcd, &error);
	return error.code == VD_OK ? VDI_EXIT_OK : vdi_command_error(&vdi_command_etcd, "", &error);
}

static void etcd_run(void *arg, const sigset_t *signals)
{
	struct etcd *etcd = arg;

	if (etcd->options.client_url_count == 0) {
		int first = etcd->ports.calls[0] == NULL;

		/* The advertised URL has the actual port. */
		vdi_etcd_listen_url(vdi_serve_rpc_address(etcd->ports.calls[first], 0), first, etcd->made_url,
				    sizeof etcd->made_url);
		vdi_etcdserver_set_client_url(etcd->server, etcd->made_url);
	}
	report_ready(etcd);
	vdi_command_wait_for_signal(signals);
}

static void etcd_end(void *arg)
{
	struct etcd *etcd = arg;

	close_ports(&etcd->ports);
	(void) vdi_auto_compaction_free(etcd->compactor);
	(void) vdi_etcdserver_free(etcd->server);
	(void) vd_store_close_wait(etcd->store);
}

static bool etcd_read(void *arg, const struct vdi_command *command, int argc, char **argv,
		      struct vdi_log_settings *log, int *ret_exit)
{
	struct etcd *etcd = arg;

	return vdi_etcd_server_options_read(&etcd->options, command, argc, argv, log, ret_exit);
}

static void etcd_fini(void *arg)
{
	struct etcd *etcd = arg;

	vdi_free(etcd->restored_auth);
	vdi_etcd_server_options_fini(&etcd->options);
}

static int run(const struct vdi_command *command, int argc, char **argv)
{
	static const struct vdi_server_command steps = {
		.read = etcd_read, .open = etcd_open, .run = etcd_run, .end = etcd_end, .fini = etcd_fini
	};
	struct etcd etcd = { .store = NULL };

	return vdi_server_command_run(&steps, &etcd, command, argc, argv);
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
