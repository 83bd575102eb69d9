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
#include "etcd_port.h"
#include "local_history.h"
#include "log_load.h"
#include "serve_options.h"
#include "server_command.h"
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
	struct vdi_serve_options options;
	const struct vd_env	*env;
	bool			 is_history_failed; /* the local history failed, not the etcd */
	vd_mono			 reported_at;	    /* while a log is loaded */
};

/* The state of the start. Owned by the starting thread until is_over. */
struct start {
	struct serve	     *serve;
	struct vd_store	     *store;
	struct vd_store	     *raw; /* store without its encryption; owned by store */
	struct vd_server     *server;
	struct vdi_etcd_port *etcd_port; /* NULL: not requested */
	int		      result;	 /* exit status */
	bool		      is_ended;	 /* by a signal */
	atomic_bool	      is_over;
};

/* Prints progress at most once per second. */
static void report_progress(void *arg, uint64_t records, uint64_t all)
{
	struct serve *serve = arg;
	vd_mono	      now = vd_env_now(serve->env);

	if (vd_mono_since(now, serve->reported_at).ns < VD_SECONDS(1).ns)
		return;
	serve->reported_at = now;
	if (all)
		(void) fprintf(stderr, "vedette serve: loading %s: %llu of %llu records written\n",
			       serve->options.load, (unsigned long long) records, (unsigned long long) all);
	else
		(void) fprintf(stderr, "vedette serve: loading %s: %llu records read\n", serve->options.load,
			       (unsigned long long) records);
}

/* Opens an etcd, with a local history in --data-dir if it is given. */
static vd_status open_etcd(struct serve *serve, struct vd_store **ret_store, struct vd_error *error)
{
	struct vdi_local_history_options options = { .data_dir = serve->options.data_dir,
						     .history_bytes = serve->options.history_bytes,
						     .history_window = serve->options.history_window };
	char				 prefix[VD_KEY_SIZE_MAX];
	struct vd_store			*etcd;
	size_t				 size = strlen(serve->options.etcd.prefix);
	vd_status			 status;

	VDI_TRY(vdi_etcd_settings_open(&serve->options.etcd, serve->env, &etcd, error));
	*ret_store = etcd;
	if (serve->options.data_dir == NULL)
		return VD_OK;
	(void) snprintf(prefix, sizeof prefix, "%s%s", serve->options.etcd.prefix,
			size && serve->options.etcd.prefix[size - 1] == '/' ? "" : "/");
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

	if (serve->options.etcd.urls)
		return open_etcd(serve, ret_store, error);
	options.data_dir = serve->options.memory ? NULL : serve->options.data_dir;
	options.history_bytes = serve->options.history_bytes;
	options.history_window = serve->options.history_window;
	if (serve->options.load == NULL)
		return vd_store_open_mvcc(env, &options, ret_store, error);
	serve->reported_at = vd_env_now(env);
	VDI_TRY(vdi_log_load_open(env, &options, NULL, serve->options.load, serve->options.strict,
				  report_progress, serve, ret_store, &report, error));
	(void) fprintf(stderr, "vedette serve: loaded %s: %llu records, revision %lld\n", serve->options.load,
		       (unsigned long long) report.records, (long long) report.revision);
	if (vdi_log_tail_describe(&report.tail, text))
		(void) fprintf(stderr, "vedette serve: warning: %s: %s\n", serve->options.load, text);
	return VD_OK;
}

/* Wraps the store to encrypt the values of some kinds at rest. */
static vd_status open_encrypted(struct start *start, struct vd_error *error)
{
	struct serve *serve = start->serve;
	vd_status     status;

	start->raw = start->store;
	if (serve->options.encryption == NULL)
		return VD_OK;
	status = vdi_encryption_file_open(serve->env, serve->options.encryption, serve->options.resources,
					  serve->options.etcd.urls ? serve->options.etcd.prefix : NULL,
					  start->raw, &start->store, error);
	if (status != VD_OK) {
		(void) vd_store_close_wait(start->raw);
		start->store = start->raw = NULL;
	}
	return status;
}

static const char *store_name(const struct serve *serve)
{
	return serve->is_history_failed ? serve->options.data_dir :
	       serve->options.etcd.urls ? "etcd" :
	       serve->options.load	? "" :
	       serve->options.memory	? "memory" :
					  serve->options.data_dir;
}

static int audit_level_of(const char *name)
{
	return strcmp(name, "None") == 0	    ? VD_AUDIT_NONE :
	       strcmp(name, "Request") == 0	    ? VD_AUDIT_REQUEST :
	       strcmp(name, "RequestResponse") == 0 ? VD_AUDIT_REQUEST_RESPONSE :
						      VD_AUDIT_METADATA;
}

static struct vd_server_options server_options(const struct vdi_serve_options *serve)
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
static void report_waiting(const struct serve *serve, const char *message, struct waiting *reported)
{
	const struct vdi_etcd_settings *etcd = &serve->options.etcd;
	const char		       *cause = cause_of(message);
	size_t				user_size = etcd->user ? strcspn(etcd->user, ":") : 0;
	vd_mono				now = vd_env_now(serve->env);
	char				text[sizeof reported->text];

	(void) snprintf(text, sizeof text, "%s%s%s (%s%.*s%skeys under %s)",
			strstr(cause, etcd->urls) ? "" : etcd->urls, strstr(cause, etcd->urls) ? "" : ": ",
			cause, user_size ? "user \"" : "", (int) VDI_MIN(user_size, (size_t) 100),
			etcd->user ? etcd->user : "", user_size ? "\", " : "", etcd->prefix);
	if (strcmp(text, reported->text) == 0 && vd_mono_since(now, reported->at).ns < START_NOTICE_AGAIN.ns)
		return;
	memcpy(reported->text, text, sizeof text);
	reported->at = now;
	(void) fprintf(stderr, "vedette serve: waiting: %s\n", text);
	vdi_service_manager_notify(&serve->options.manager, "STATUS=Waiting: %s", text);
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
	struct waiting reported = { .text = "" };
	vd_status      status;

	for (;;) {
		status = vd_server_start(start->server, START_NOTICE, error);
		if (status == VD_OK || due.ns <= vd_env_now(start->serve->env).ns ||
		    (!start->serve->options.etcd.urls && !is_filling(status, error)))
			return status;
		if (start->serve->options.etcd.urls)
			report_waiting(start->serve,
				       error->message[0] ? error->message : vd_status_sentence(status),
				       &reported);
	}
}

static void *start_run(void *arg)
{
	struct start		*start = arg;
	struct vd_server_options options = server_options(&start->serve->options);
	struct vd_error		 error = { .code = VD_OK };

	error.code = open_store(start->serve, &start->store, &error);
	if (error.code != VD_OK) {
		start->store = NULL;
		start->result = vdi_command_error(&vdi_command_serve, store_name(start->serve), &error);
	} else if ((error.code = open_encrypted(start, &error)) != VD_OK) {
		start->result = vdi_command_error(&vdi_command_serve, "", &error);
	} else if ((error.code = vd_server_new(start->serve->env, start->store, &options, &start->server,
					       &error)) != VD_OK) {
		start->server = NULL;
		start->result = vdi_command_error(&vdi_command_serve, "", &error);
	} else if ((error.code = start_server(start, &error)) != VD_OK) {
		start->result = vdi_command_error(&vdi_command_serve, "start", &error);
	} else if (start->serve->options.port.listen &&
		   (error.code = vdi_etcd_port_open(
			    start->serve->env, start->raw, &start->serve->options.port,
			    start->serve->options.memory ? NULL : start->serve->options.data_dir,
			    &start->etcd_port, &error)) != VD_OK) {
		start->etcd_port = NULL;
		start->result = vdi_command_error(&vdi_command_serve, "", &error);
	}
	atomic_store(&start->is_over, true);
	(void) kill(getpid(), SIGNAL_STARTED);
	return NULL;
}

/* Returns false if a signal ended the start. */
static bool wait_for_start(struct start *start, const sigset_t *signals)
{
	bool is_signalled = false;

	while (!atomic_load(&start->is_over)) {
		int received = vdi_command_wait_for_signal(signals);

		is_signalled |=
			received != SIGNAL_STARTED && received != SIGHUP && !atomic_load(&start->is_over);
		/* With an etcd the process can exit at once: nothing is written to it, and a local history
		 * survives a kill. An embedded store is opened completely and closed. */
		if (is_signalled && start->serve->options.etcd.urls) {
			(void) fflush(stdout);
			_exit(VDI_EXIT_OK);
		}
	}
	return !is_signalled;
}

/* ---- While running ---- */

/* SIGHUP reloads the settings that may change while the server runs. */
static void reload(const struct start *start)
{
	const struct vdi_service_manager *manager = &start->serve->options.manager;
	struct vd_error			  error = { .code = VD_OK };

	vdi_service_manager_notify_reloading(manager, vd_env_now(start->serve->env));
	if (vd_server_reload(start->server, &error) == VD_OK) {
		(void) fprintf(stderr, "vedette serve: certificates, tokens and policy were read again\n");
		vdi_service_manager_notify(manager, "READY=1\nSTATUS=Serving %s",
					   vd_server_address(start->server));
	} else {
		(void) fprintf(stderr,
			       "vedette serve: reload failed, the previous settings stay in use: %s\n",
			       error.message);
		vdi_service_manager_notify(manager,
					   "READY=1\nSTATUS=Serving %s; the last reload changed nothing: %s",
					   vd_server_address(start->server), error.message);
	}
}

/* Notifies the watchdog only if every event loop has answered. */
static void notify_watchdog(const struct start *start)
{
	const struct vdi_service_manager *manager = &start->serve->options.manager;

	if (vd_server_ping(start->server, (vd_dur) { manager->watchdog.ns / 4 }) == VD_OK)
		vdi_service_manager_notify(manager, "WATCHDOG=1");
	else
		(void) fprintf(stderr,
			       "vedette serve: watchdog: a thread is unresponsive; notification withheld\n");
}

/* Serves until a terminating signal, at most until due. */
static void serve_until(const struct start *start, const sigset_t *signals, vd_mono due)
{
	const struct vd_env *env = start->serve->env;
	vd_dur		     interval = { start->serve->options.manager.watchdog.ns / 2 };
	vd_mono		     alive_at = interval.ns ? vd_env_now(env) : VD_NEVER;
	vd_mono		     now;

	while ((now = vd_env_now(env)).ns < due.ns) {
		vd_mono next = { VDI_MIN(due.ns, alive_at.ns) };
		int	received;

		if (alive_at.ns <= now.ns) {
			notify_watchdog(start);
			alive_at = vd_mono_add(now, interval);
			continue;
		}
		received = next.ns == VD_NEVER.ns ?
				   vdi_command_wait_for_signal(signals) :
				   vdi_command_wait_for_signal_for(signals, vd_mono_since(next, now));
		if (received == SIGHUP)
			reload(start);
		else if (received && received != SIGNAL_STARTED)
			return;
	}
}

/* Keeps serving while load balancers see that /readyz fails; another signal ends it at once. */
static void announce_stop(const struct start *start, const sigset_t *signals)
{
	vd_dur delay = start->serve->options.shutdown_delay;

	vdi_service_manager_notify(&start->serve->options.manager, "STOPPING=1\nSTATUS=Shutting down");
	if (delay.ns == 0)
		return;
	vd_server_mark_unready(start->server);
	(void) fprintf(stderr,
		       "vedette serve: shutting down: /readyz fails from now on, requests are served for "
		       "another %.3g s\n",
		       (double) delay.ns / 1e9);
	serve_until(start, signals, vd_mono_add(vd_env_now(start->serve->env), delay));
}

/* ---- The steps ---- */

static int serve_open(void *arg, const struct vd_env *env, const sigset_t *signals)
{
	struct start	 *start = arg;
	struct vdi_thread thread;

	start->serve->env = env;
	if (vdi_thread_start(&thread, "start", start_run, start) != VD_OK)
		return vdi_command_failed(&vdi_command_serve, "cannot start threads");
	start->is_ended = !wait_for_start(start, signals);
	vdi_thread_join(&thread);
	return start->result;
}

static void serve_run(void *arg, const sigset_t *signals)
{
	struct start *start = arg;

	if (start->is_ended)
		return;
	(void) fprintf(stderr, "vedette: ready %s%s%s\n", vd_server_address(start->server),
		       start->etcd_port ? " etcd " : "",
		       start->etcd_port ? vdi_etcd_port_address(start->etcd_port) : "");
	(void) fflush(stderr);
	vdi_service_manager_notify(&start->serve->options.manager, "READY=1\nSTATUS=Serving %s",
				   vd_server_address(start->server));
	serve_until(start, signals, VD_NEVER);
	announce_stop(start, signals);
	(void) vd_server_drain(start->server, DRAIN_TIMEOUT); /* remaining requests are canceled */
}

static void serve_end(void *arg)
{
	struct start *start = arg;

	(void) vdi_etcd_port_close(start->etcd_port);
	vd_store_shutdown(start->store); /* cancels waits for an etcd that does not answer */
	(void) vd_server_free(start->server);
	(void) vd_store_close_wait(start->store);
}

static bool serve_read(void *arg, const struct vdi_command *command, int argc, char **argv,
		       struct vdi_log_settings *log, int *ret_exit)
{
	struct start *start = arg;

	return vdi_serve_options_read(&start->serve->options, command, argc, argv, log, ret_exit);
}

static int run(const struct vdi_command *command, int argc, char **argv)
{
	static const int		       also_heard[] = { SIGNAL_STARTED, SIGHUP, 0 };
	static const struct vdi_server_command steps = { .also_heard = also_heard,
							 .read = serve_read,
							 .open = serve_open,
							 .run = serve_run,
							 .end = serve_end };
	struct serve			       serve = { .env = NULL };
	struct start			       start = { .serve = &serve };

	return vdi_server_command_run(&steps, &start, command, argc, argv);
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
