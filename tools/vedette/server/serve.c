/* vedette serve: the REST server on an embedded store, or on an etcd.
 *
 * A separate thread starts everything, so that signals are handled while an etcd does not answer or a long
 * journal is read.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>
#include <vedette/server.h>
#include <vedette/vedette.h>

#include "command_line.h"
#include "command_process.h"
#include "encryption_file.h"
#include "etcd_options.h"
#include "etcd_port.h"
#include "local_history.h"
#include "log_load.h"
#include "service_manager.h"
#include "thread.h"

#define DRAIN_TIMEOUT VD_SECONDS(8)
/* Maximum time to fill the caches, and the interval of messages about what they wait for. */
#define START_TIMEOUT VD_SECONDS(600)
#define START_NOTICE VD_SECONDS(5)
#define START_NOTICE_AGAIN VD_SECONDS(60)
/* Sent by the starting thread to the thread that waits for signals. */
#define SIGNAL_STARTED SIGUSR1

struct serve {
	const char		    *listen;
	const char		    *data_dir;
	const char		    *resources;
	const char		    *load;
	const char		    *encryption;
	bool			     strict; /* for --load */
	int64_t			     history_bytes;
	vd_dur			     history_window;
	vd_dur			     consistency_interval;
	unsigned		     client_requests, client_watches;
	int64_t			     client_bytes;
	unsigned		     requests, mutating_requests;
	bool			     no_compression;
	bool			     no_garbage_collector;
	const char		    *on_inconsistency;
	unsigned		     threads;
	bool			     memory;
	bool			     is_history_failed; /* the local history failed, not the etcd */
	const char		    *tls_cert, *tls_key, *client_ca, *token_file, *policy;
	bool			     insecure_no_auth;
	const char		    *audit_log, *audit_level, *access_log;
	vd_dur			     shutdown_delay;
	struct vdi_service_manager   manager;
	struct vdi_etcd_settings     etcd;
	struct vdi_etcd_port_options port;

	/* While a log is loaded. */
	const struct vd_env *env;
	vd_mono		     said;
};

/* The state of the start. Owned by the starting thread until is_over. */
struct start {
	struct serve	     *serve;
	struct vd_store	     *store;
	struct vd_store	     *raw; /* store without its encryption; owned by store */
	struct vd_server     *server;
	struct vdi_etcd_port *etcd_port; /* NULL: not requested */
	int		      result;	 /* exit status */
	atomic_bool	      is_over;
};

static int fail(const char *what, const struct vd_error *error)
{
	(void) fprintf(stderr, "vedette serve: %s%s%s\n", what, *what ? ": " : "",
		       error->message[0] ? error->message : vd_status_sentence(error->code));
	return error->code == VD_INVALID || error->code == VD_INVALID_ARGUMENT ? 2 : 1;
}

/* Prints progress at most once per second. */
static void say_progress(void *arg, uint64_t records, uint64_t all)
{
	struct serve *serve = arg;
	vd_mono	      now = vd_env_now(serve->env);

	if (vd_mono_since(now, serve->said).ns < VD_SECONDS(1).ns)
		return;
	serve->said = now;
	if (all)
		(void) fprintf(stderr, "vedette serve: loading %s: %llu of %llu records written\n",
			       serve->load, (unsigned long long) records, (unsigned long long) all);
	else
		(void) fprintf(stderr, "vedette serve: loading %s: %llu records read\n", serve->load,
			       (unsigned long long) records);
}

/* Opens an etcd, with a local history in --data-dir if it is given. */
static vd_status open_etcd(struct serve *serve, struct vd_store **ret_store, struct vd_error *error)
{
	struct vdi_local_history_options options = { .data_dir = serve->data_dir,
						     .history_bytes = serve->history_bytes,
						     .history_window = serve->history_window };
	char				 prefix[VD_KEY_SIZE_MAX];
	struct vd_store			*etcd;
	size_t				 size = strlen(serve->etcd.prefix);
	vd_status			 status;

	VDI_TRY(vdi_etcd_settings_open(&serve->etcd, serve->env, &etcd, error));
	*ret_store = etcd;
	if (serve->data_dir == NULL)
		return VD_OK;
	(void) snprintf(prefix, sizeof prefix, "%s%s", serve->etcd.prefix,
			size && serve->etcd.prefix[size - 1] == '/' ? "" : "/");
	options.prefix = prefix;
	status = vdi_local_history_open(serve->env, etcd, &options, ret_store, error);
	if (status != VD_OK)
		(void) vd_store_close_wait(etcd);
	serve->is_history_failed = status != VD_OK;
	return status;
}

static vd_status open_store(struct serve *serve, struct vd_store **ret_store, struct vd_error *error)
{
	const struct vd_env	  *env = serve->env;
	struct vdi_log_load_report report;
	char			   text[VDI_LOG_TAIL_SIZE];
	struct vd_mvcc_options	   options = VD_MVCC_OPTIONS_INIT;

	if (serve->etcd.urls)
		return open_etcd(serve, ret_store, error);
	options.data_dir = serve->memory ? NULL : serve->data_dir;
	options.history_bytes = serve->history_bytes;
	options.history_window = serve->history_window;
	if (serve->load == NULL)
		return vd_store_open_mvcc(env, &options, ret_store, error);
	serve->said = vd_env_now(env);
	VDI_TRY(vdi_log_load_open(env, &options, NULL, serve->load, serve->strict, say_progress, serve,
				  ret_store, &report, error));
	(void) fprintf(stderr, "vedette serve: loaded %s: %llu records, revision %lld\n", serve->load,
		       (unsigned long long) report.records, (long long) report.revision);
	if (vdi_log_tail_say(&report.tail, text))
		(void) fprintf(stderr, "vedette serve: warning: %s: %s\n", serve->load, text);
	return VD_OK;
}

/* Wraps the store to encrypt the values of some kinds at rest. */
static vd_status open_encrypted(struct start *start, struct vd_error *error)
{
	struct serve *serve = start->serve;
	vd_status     status;

	start->raw = start->store;
	if (serve->encryption == NULL)
		return VD_OK;
	status = vdi_encryption_file_open(serve->env, serve->encryption, serve->resources,
					  serve->etcd.urls ? serve->etcd.prefix : NULL, start->raw,
					  &start->store, error);
	if (status != VD_OK) {
		(void) vd_store_close_wait(start->raw);
		start->store = start->raw = NULL;
	}
	return status;
}

static const char *store_name(const struct serve *serve)
{
	return serve->is_history_failed ? serve->data_dir :
	       serve->etcd.urls		? "etcd" :
	       serve->load		? "" :
	       serve->memory		? "memory" :
					  serve->data_dir;
}

static int audit_level_of(const char *name)
{
	return strcmp(name, "None") == 0	    ? VD_AUDIT_NONE :
	       strcmp(name, "Request") == 0	    ? VD_AUDIT_REQUEST :
	       strcmp(name, "RequestResponse") == 0 ? VD_AUDIT_REQUEST_RESPONSE :
						      VD_AUDIT_METADATA;
}

static struct vd_server_options server_options(const struct serve *serve)
{
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;

	options.listen = serve->listen;
	options.threads = serve->threads;
	options.resources_path = serve->resources;
	options.history_bytes = serve->history_bytes;
	options.history_window = serve->history_window;
	options.key_prefix = serve->etcd.urls ? serve->etcd.prefix : NULL;
	options.consistency_interval = serve->consistency_interval;
	options.client_request_count_max = serve->client_requests;
	options.client_watch_count_max = serve->client_watches;
	options.client_bytes_max = serve->client_bytes;
	options.request_count_max = serve->requests;
	options.mutating_request_count_max = serve->mutating_requests;
	options.no_compression = serve->no_compression;
	options.no_garbage_collector = serve->no_garbage_collector;
	options.tls_cert_path = serve->tls_cert;
	options.tls_key_path = serve->tls_key;
	options.client_ca_path = serve->client_ca;
	options.token_path = serve->token_file;
	options.policy_path = serve->policy;
	options.insecure_no_auth = serve->insecure_no_auth;
	options.audit_path = serve->audit_log;
	options.audit_level = audit_level_of(serve->audit_level);
	options.access_path = serve->access_log;
	options.listen_socket = serve->manager.socket;
	options.on_inconsistency =
		strcmp(serve->on_inconsistency, "panic") == 0  ? VD_ON_INCONSISTENCY_PANIC :
		strcmp(serve->on_inconsistency, "relist") == 0 ? VD_ON_INCONSISTENCY_RELIST :
								 VD_ON_INCONSISTENCY_REPORT;
	return options;
}

/* The last message about the wait, and its time. */
struct waiting {
	char	text[VD_ERROR_MESSAGE_SIZE + 400];
	vd_mono at;
};

/* Removes the caches' prefix of the message, which does not help the user. */
static const char *cause_of(const char *message)
{
	static const char around[] = "Internal error occurred: ";
	const char	 *found = strstr(message, around);

	return found ? found + sizeof around - 1 : message;
}

/* Reports what the start waits for, when it changes, and otherwise once per minute: the etcd, the user, the
 * keys, and the error. */
static void say_waiting(const struct serve *serve, const char *message, struct waiting *said)
{
	const struct vdi_etcd_settings *etcd = &serve->etcd;
	const char		       *cause = cause_of(message);
	size_t				user_size = etcd->user ? strcspn(etcd->user, ":") : 0;
	vd_mono				now = vd_env_now(serve->env);
	char				text[sizeof said->text];

	(void) snprintf(text, sizeof text, "%s%s%s (%s%.*s%skeys under %s)",
			strstr(cause, etcd->urls) ? "" : etcd->urls, strstr(cause, etcd->urls) ? "" : ": ",
			cause, user_size ? "user \"" : "", (int) VDI_MIN(user_size, (size_t) 100),
			etcd->user ? etcd->user : "", user_size ? "\", " : "", etcd->prefix);
	if (strcmp(text, said->text) == 0 && vd_mono_since(now, said->at).ns < START_NOTICE_AGAIN.ns)
		return;
	memcpy(said->text, text, sizeof text);
	said->at = now;
	(void) fprintf(stderr, "vedette serve: waiting: %s\n", text);
	vdi_service_manager_say(&serve->manager, "STATUS=Waiting: %s", text);
}

/* Returns true if the caches are being filled without an error: a million objects take a while. */
static bool is_filling(vd_status status, const struct vd_error *error)
{
	return status == VD_NOT_READY && strchr(error->message, ':') == NULL;
}

/* Starts the server and reports what it waits for. An embedded store does not need to be waited for. */
static vd_status start_server(struct start *start, struct vd_error *error)
{
	vd_mono	       due = vd_mono_add(vd_env_now(start->serve->env), START_TIMEOUT);
	struct waiting said = { .text = "" };
	vd_status      status;

	for (;;) {
		status = vd_server_start(start->server, START_NOTICE, error);
		if (status == VD_OK || due.ns <= vd_env_now(start->serve->env).ns ||
		    (!start->serve->etcd.urls && !is_filling(status, error)))
			return status;
		if (start->serve->etcd.urls)
			say_waiting(start->serve,
				    error->message[0] ? error->message : vd_status_sentence(status), &said);
	}
}

static void *start_run(void *arg)
{
	struct start		*start = arg;
	struct vd_server_options options = server_options(start->serve);
	struct vd_error		 error = { .code = VD_OK };

	error.code = open_store(start->serve, &start->store, &error);
	if (error.code != VD_OK) {
		start->store = NULL;
		start->result = fail(store_name(start->serve), &error);
	} else if ((error.code = open_encrypted(start, &error)) != VD_OK) {
		start->result = fail("", &error);
	} else if ((error.code = vd_server_new(start->serve->env, start->store, &options, &start->server,
					       &error)) != VD_OK) {
		start->server = NULL;
		start->result = fail("", &error);
	} else if ((error.code = start_server(start, &error)) != VD_OK) {
		start->result = fail("start", &error);
	} else if (start->serve->port.listen &&
		   (error.code = vdi_etcd_port_open(start->serve->env, start->raw, &start->serve->port,
						    start->serve->memory ? NULL : start->serve->data_dir,
						    &start->etcd_port, &error)) != VD_OK) {
		start->etcd_port = NULL;
		start->result = fail("", &error);
	}
	atomic_store(&start->is_over, true);
	(void) kill(getpid(), SIGNAL_STARTED);
	return NULL;
}

/* Returns false if a signal ended the start. */
static bool wait_for_start(struct start *start, const sigset_t *signals)
{
	bool is_told = false;

	while (!atomic_load(&start->is_over)) {
		int heard = vdi_command_wait_for_signal(signals);

		is_told |= heard != SIGNAL_STARTED && heard != SIGHUP && !atomic_load(&start->is_over);
		/* With an etcd the process can exit at once: nothing is written to it, and a local history
		 * survives a kill. An embedded store is opened completely and closed. */
		if (is_told && start->serve->etcd.urls) {
			(void) fflush(stdout);
			_exit(VDI_EXIT_OK);
		}
	}
	return !is_told;
}

/* ---- While running ---- */

/* SIGHUP reloads the settings that may change while the server runs. */
static void reload(const struct start *start)
{
	const struct vdi_service_manager *manager = &start->serve->manager;
	struct vd_error			  error = { .code = VD_OK };

	vdi_service_manager_say_reloading(manager, vd_env_now(start->serve->env));
	if (vd_server_reload(start->server, &error) == VD_OK) {
		(void) fprintf(stderr, "vedette serve: certificates, tokens and policy were read again\n");
		vdi_service_manager_say(manager, "READY=1\nSTATUS=Serving %s",
					vd_server_address(start->server));
	} else {
		(void) fprintf(stderr,
			       "vedette serve: reload failed, the previous settings stay in use: %s\n",
			       error.message);
		vdi_service_manager_say(manager,
					"READY=1\nSTATUS=Serving %s; the last reload changed nothing: %s",
					vd_server_address(start->server), error.message);
	}
}

/* Notifies the watchdog only if every event loop has answered. */
static void say_alive(const struct start *start)
{
	const struct vdi_service_manager *manager = &start->serve->manager;

	if (vd_server_ping(start->server, (vd_dur) { manager->watchdog.ns / 4 }) == VD_OK)
		vdi_service_manager_say(manager, "WATCHDOG=1");
	else
		(void) fprintf(stderr,
			       "vedette serve: watchdog: a thread is unresponsive; notification withheld\n");
}

/* Serves until a terminating signal, at most until due. */
static void serve_until(const struct start *start, const sigset_t *signals, vd_mono due)
{
	const struct vd_env *env = start->serve->env;
	vd_dur		     interval = { start->serve->manager.watchdog.ns / 2 };
	vd_mono		     alive_at = interval.ns ? vd_env_now(env) : VD_NEVER;
	vd_mono		     now;

	while ((now = vd_env_now(env)).ns < due.ns) {
		vd_mono next = { VDI_MIN(due.ns, alive_at.ns) };
		int	heard;

		if (alive_at.ns <= now.ns) {
			say_alive(start);
			alive_at = vd_mono_add(now, interval);
			continue;
		}
		heard = next.ns == VD_NEVER.ns ?
				vdi_command_wait_for_signal(signals) :
				vdi_command_wait_for_signal_for(signals, vd_mono_since(next, now));
		if (heard == SIGHUP)
			reload(start);
		else if (heard && heard != SIGNAL_STARTED)
			return;
	}
}

/* Keeps serving while load balancers see that /readyz fails; another signal ends it at once. */
static void say_goodbye(const struct start *start, const sigset_t *signals)
{
	vd_dur delay = start->serve->shutdown_delay;

	vdi_service_manager_say(&start->serve->manager, "STOPPING=1\nSTATUS=Shutting down");
	if (delay.ns == 0)
		return;
	vd_server_unready(start->server);
	(void) fprintf(stderr,
		       "vedette serve: shutting down: /readyz fails from now on, requests are served for "
		       "another %.3g s\n",
		       (double) delay.ns / 1e9);
	serve_until(start, signals, vd_mono_add(vd_env_now(start->serve->env), delay));
}

static int run_server(struct serve *serve, const sigset_t *signals)
{
	struct start	  start = { .serve = serve };
	struct vdi_thread thread;
	bool		  goes_on;

	if (vdi_thread_start(&thread, "start", start_run, &start) != VD_OK)
		return vdi_command_failed(&vdi_command_serve, "cannot start threads");
	goes_on = wait_for_start(&start, signals);
	vdi_thread_join(&thread);
	if (start.result == VDI_EXIT_OK && goes_on) {
		(void) fprintf(stderr, "vedette: ready %s%s%s\n", vd_server_address(start.server),
			       start.etcd_port ? " etcd " : "",
			       start.etcd_port ? vdi_etcd_port_address(start.etcd_port) : "");
		(void) fflush(stderr);
		vdi_service_manager_say(&serve->manager, "READY=1\nSTATUS=Serving %s",
					vd_server_address(start.server));
		serve_until(&start, signals, VD_NEVER);
		say_goodbye(&start, signals);
		(void) vd_server_drain(start.server, DRAIN_TIMEOUT); /* remaining requests are canceled */
	}
	(void) vdi_etcd_port_close(start.etcd_port);
	vd_store_shut(start.store); /* cancels waits for an etcd that does not answer */
	(void) vd_server_free(start.server);
	(void) vd_store_close_wait(start.store);
	return start.result;
}

/* Applies the TLS options of the REST server to the etcd port, unless it has a certificate of its own. There
 * are no tokens on that port, so with a client CA it requires certificates. */
static void share_tls(struct serve *serve)
{
	serve->port.insecure_no_auth = serve->insecure_no_auth;
	if (serve->port.cert_file || serve->tls_cert == NULL)
		return;
	serve->port.cert_file = serve->tls_cert;
	serve->port.key_file = serve->tls_key;
	if (serve->client_ca && serve->port.trusted_ca_file == NULL) {
		serve->port.trusted_ca_file = serve->client_ca;
		serve->port.client_cert_auth = true;
	}
}

static int run(const struct vdi_command *command, int argc, char **argv)
{
	struct serve		serve = { .listen = "127.0.0.1:8080",
					  .history_bytes = (int64_t) 256 << 20,
					  .history_window = VD_SECONDS(600),
					  .consistency_interval = VD_SECONDS(300),
					  .client_bytes = (int64_t) 64 << 20,
					  .requests = 400,
					  .mutating_requests = 200,
					  .on_inconsistency = "report",
					  .audit_level = "Metadata",
					  .etcd = VDI_ETCD_SETTINGS_INIT };
	struct vdi_log_settings log = VDI_LOG_SETTINGS_INIT;
	struct vd_error		error = { .code = VD_OK };
	bool			is_listen_given = false;
	struct vd_env	       *env;
	sigset_t		signals, hangup;
	size_t			operand_count;
	int			result;
	const struct vdi_option table[] = {
		{ 0, "listen", VDI_OPTION_TEXT, "ADDR:PORT",
		  "listen address; port 0: chosen by the system (default 127.0.0.1:8080)", &serve.listen,
		  NULL, &is_listen_given },
		{ 0, "data-dir", VDI_OPTION_TEXT, "DIR",
		  "directory of the store (default ./vedette-data); with --etcd: directory of the history, "
		  "to resume after a restart",
		  &serve.data_dir },
		{ 0, "memory", VDI_OPTION_FLAG, NULL, "keep the store in memory only", &serve.memory },
		{ 0, "encryption-provider-config", VDI_OPTION_TEXT, "FILE",
		  "encrypt values at rest: an EncryptionConfiguration with the providers aesgcm and identity",
		  &serve.encryption },
		{ 0, "load", VDI_OPTION_TEXT, "FILE", "load an event log into the store, which must be empty",
		  &serve.load },
		{ 0, "strict", VDI_OPTION_FLAG, NULL,
		  "with --load: fail if the log has a torn end or no closing line (default: warn)",
		  &serve.strict },
		VDI_ETCD_PORT_OPTION_TABLE(&serve.port),
		VDI_ETCD_OPTION_TABLE(&serve.etcd),
		{ 0, "etcd-compaction-interval", VDI_OPTION_DURATION, "DURATION",
		  "interval of etcd compaction, shared by all servers; 0: never (default 5m)",
		  &serve.etcd.compaction_interval },
		{ 0, "resources", VDI_OPTION_TEXT, "FILE", "additional kinds to serve (JSON)",
		  &serve.resources },
		{ 0, "history-window", VDI_OPTION_DURATION, "DURATION",
		  "minimum time that old revisions are retained (default 10m)", &serve.history_window },
		{ 0, "history-bytes", VDI_OPTION_BYTES, "SIZE",
		  "maximum size of retained history (default 256MiB)", &serve.history_bytes },
		{ 0, "consistency-interval", VDI_OPTION_DURATION, "DURATION",
		  "interval between comparisons of each cache with the store; 0: never (default 5m)",
		  &serve.consistency_interval },
		{ 0, "on-inconsistency", VDI_OPTION_CHOICE, "ACTION",
		  "reaction if cache and store differ: report, relist or panic (default report)",
		  &serve.on_inconsistency, "report|relist|panic" },
		{ 0, "requests-per-client", VDI_OPTION_COUNT, "N",
		  "maximum concurrent requests per client (user, or address and User-Agent); excess requests "
		  "get 429 (default 0: no limit)",
		  &serve.client_requests },
		{ 0, "watches-per-client", VDI_OPTION_COUNT, "N",
		  "maximum concurrent watches per client; excess watches get 429 (default 0: no limit)",
		  &serve.client_watches },
		{ 0, "bytes-per-client", VDI_OPTION_BYTES, "SIZE",
		  "maximum unsent bytes of one client's watches; beyond it they pause (default 64MiB; 0: no "
		  "limit)",
		  &serve.client_bytes },
		{ 0, "max-requests-inflight", VDI_OPTION_COUNT, "N",
		  "maximum concurrent reads, shared fairly by all clients; excess requests get 429 (default "
		  "400; 0: no limit)",
		  &serve.requests },
		{ 0, "max-mutating-requests-inflight", VDI_OPTION_COUNT, "N",
		  "maximum concurrent writes, shared fairly by all clients; excess requests get 429 (default "
		  "200; 0: no limit)",
		  &serve.mutating_requests },
		{ 0, "no-compression", VDI_OPTION_FLAG, NULL,
		  "do not compress large responses and watch lists for clients that accept gzip",
		  &serve.no_compression },
		{ 0, "tls-cert", VDI_OPTION_TEXT, "FILE",
		  "serve HTTPS with this certificate, followed by its chain (PEM)", &serve.tls_cert },
		{ 0, "tls-key", VDI_OPTION_TEXT, "FILE", "private key of the --tls-cert certificate (PEM)",
		  &serve.tls_key },
		{ 0, "client-ca", VDI_OPTION_TEXT, "FILE",
		  "CA bundle for verifying client certificates, which name user (CN) and groups (O)",
		  &serve.client_ca },
		{ 0, "token-file", VDI_OPTION_TEXT, "FILE",
		  "file of bearer tokens: lines of token,user,uid,\"group,group\"", &serve.token_file },
		{ 0, "authorization-policy", VDI_OPTION_TEXT, "FILE",
		  "authorization rules (JSON; default: authenticated users may do everything)",
		  &serve.policy },
		{ 0, "insecure-no-auth", VDI_OPTION_FLAG, NULL,
		  "allow an address that is not loopback without authentication", &serve.insecure_no_auth },
		{ 0, "audit-log", VDI_OPTION_TEXT, "FILE",
		  "file for audit events (audit.k8s.io/v1, JSON lines); -: standard output",
		  &serve.audit_log },
		{ 0, "audit-level", VDI_OPTION_CHOICE, "LEVEL",
		  "audit detail: None, Metadata, Request (with request bodies) or RequestResponse (with "
		  "response bodies, too) (default Metadata)",
		  &serve.audit_level, "None|Metadata|Request|RequestResponse" },
		{ 0, "access-log", VDI_OPTION_TEXT, "FILE",
		  "file for one line per request (combined log format with duration in seconds); -: standard "
		  "output",
		  &serve.access_log },
		{ 0, "shutdown-delay", VDI_OPTION_DURATION, "DURATION",
		  "time to keep serving after SIGTERM while /readyz fails, before connections are closed "
		  "(default 0s)",
		  &serve.shutdown_delay },
		{ 0, "no-garbage-collector", VDI_OPTION_FLAG, NULL,
		  "delete neither dependents of deleted objects nor the content of namespaces; for use with "
		  "a kube-controller-manager",
		  &serve.no_garbage_collector },
		{ 0, "threads", VDI_OPTION_COUNT, "N",
		  "number of event-loop threads (default: number of processors)", &serve.threads },
	};

	serve.etcd.compaction_interval = VD_SECONDS(300);
	if (!vdi_command_parse(command, table, VDI_ARRAY_SIZE(table), argc, argv, NULL, 0, &operand_count,
			       &log, &result))
		return result;
	if (!vdi_etcd_settings_check(command, &serve.etcd, &result))
		return result;
	if (serve.etcd.urls && (serve.memory || serve.load))
		return vdi_command_mistake(command, "--etcd excludes --memory and --load");
	if (serve.strict && serve.load == NULL)
		return vdi_command_mistake(command, "--strict requires --load");
	serve.port.rpc = serve.etcd.rpc;
	if (serve.port.listen)
		share_tls(&serve);
	if (!vdi_etcd_port_options_check(command, &serve.port, &result))
		return result;
	if (serve.etcd.urls && serve.port.listen)
		return vdi_command_mistake(command,
					   "--etcd-listen serves the embedded store: it excludes --etcd");
	if (serve.memory && serve.data_dir)
		return vdi_command_mistake(command, "--memory and --data-dir exclude each other");
	if (vdi_service_manager_init(&serve.manager, &error) != VD_OK)
		return vdi_command_mistake(command, "%s", error.message);
	if (serve.manager.socket && is_listen_given)
		return vdi_command_mistake(command, "LISTEN_FDS passes a socket, which excludes --listen");
	if (serve.data_dir == NULL && !serve.etcd.urls)
		serve.data_dir = "./vedette-data";
	vdi_command_raise_file_limit();
	(void) sigemptyset(&hangup);
	(void) sigaddset(&hangup, SIGHUP);
	(void) sigprocmask(SIG_BLOCK, &hangup, NULL);
	if (vdi_command_process_init(&log, SIGNAL_STARTED, &signals, &env) != VD_OK)
		return vdi_command_failed(command, "cannot start threads");
	(void) sigaddset(&signals, SIGHUP);
	serve.env = env;
	result = run_server(&serve, &signals);
	(void) vd_env_free(env);
	return result;
}

const struct vdi_command vdi_command_serve = {
	.name = "serve",
	.summary = "Serve the Kubernetes list and watch API to kubectl, client-go and other clients.",
	.usage = "vedette serve [options]",
	.details = "Prints one line on standard error when it accepts requests:\n"
		   "  vedette: ready http://127.0.0.1:8080\n"
		   "SIGTERM or Ctrl-C ends it: watches end cleanly, and acknowledged writes are on\n"
		   "disk. SIGHUP reads certificates, tokens, policy and the resources file again,\n"
		   "and reopens the log files.\n"
		   "\n"
		   "With --etcd URL the objects are stored in an etcd (3.4 or later), under the\n"
		   "keys that Kubernetes uses; several servers can share one. With --data-dir DIR\n"
		   "in addition, this server keeps the changes of the last --history-window there\n"
		   "(at most --history-bytes), so that clients can resume after its restart even if\n"
		   "etcd was compacted. Each server needs a directory of its own.\n"
		   "Exit status: 0 ended by a signal, 1 failure, 2 usage error.\n",
	.examples = "  vedette serve\n"
		    "  vedette serve --listen 127.0.0.1:0 --memory --load examples/small-cluster.ndjson\n"
		    "  vedette serve --data-dir /var/lib/vedette --history-window 1h --log-format json\n"
		    "  vedette serve --etcd https://a:2379,https://b:2379 --etcd-cacert ca.pem --etcd-cert "
		    "me.pem --etcd-key me.key\n"
		    "  vedette serve --etcd http://127.0.0.1:2379 --data-dir /var/lib/vedette/history "
		    "--history-window 1h\n",
	.run = run,
};
