/* vedette serve: the REST server on an embedded store. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <vedette/server.h>
#include <vedette/vedette.h>

#include "command_line.h"
#include "log_load.h"

#define DRAIN_TIMEOUT VD_SECONDS(8)

struct serve {
	const char *listen;
	const char *data_dir;
	const char *resources;
	const char *load;
	int64_t	    history_bytes;
	vd_dur	    history_window;
	vd_dur	    consistency_interval;
	const char *on_inconsistency;
	unsigned    threads;
	bool	    memory;

	/* While a log is loaded. */
	const struct vd_env *env;
	vd_mono		     said;
};

static int fail(const char *what, const struct vd_error *error)
{
	(void) fprintf(stderr, "vedette serve: %s%s%s\n", what, *what ? ": " : "", error->message[0] ? error->message : vd_status_sentence(error->code));
	return error->code == VD_INVALID || error->code == VD_INVALID_ARGUMENT ? 2 : 1;
}

static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void) setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* At most once a second. */
static void say_progress(void *arg, uint64_t records, uint64_t all)
{
	struct serve *serve = arg;
	vd_mono	      now = vd_env_now(serve->env);

	if (vd_mono_since(now, serve->said).ns < VD_SECONDS(1).ns)
		return;
	serve->said = now;
	if (all)
		(void) fprintf(stderr, "vedette serve: loading %s: %llu of %llu records written\n", serve->load, (unsigned long long) records,
			       (unsigned long long) all);
	else
		(void) fprintf(stderr, "vedette serve: loading %s: %llu records read\n", serve->load, (unsigned long long) records);
}

static vd_status open_store(struct serve *serve, const struct vd_env *env, struct vd_store **ret_store, struct vd_error *error)
{
	struct vdi_log_load_report report;
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;

	options.data_dir = serve->memory ? NULL : serve->data_dir;
	options.history_bytes = serve->history_bytes;
	options.history_window = serve->history_window;
	if (serve->load == NULL)
		return vd_store_open_mvcc(env, &options, ret_store, error);
	serve->env = env;
	serve->said = vd_env_now(env);
	VDI_TRY(vdi_log_load_open(env, &options, NULL, serve->load, say_progress, serve, ret_store, &report, error));
	(void) fprintf(stderr, "vedette serve: loaded %s: %llu records, revision %lld%s\n", serve->load, (unsigned long long) report.records,
		       (long long) report.revision, report.was_torn ? "; a torn transaction at its end was dropped" : "");
	return VD_OK;
}

/* Until SIGTERM or SIGINT, which every thread has blocked. */
static void wait_for_signal(const sigset_t *signals)
{
	int signal;

	while (sigwait(signals, &signal) == EINTR)
		;
}

static int run_server(struct serve *serve, const struct vd_env *env, const sigset_t *signals)
{
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;
	struct vd_store		*store;
	struct vd_server	*server;
	struct vd_error		 error = { .code = VD_OK };
	int			 result = 0;

	error.code = open_store(serve, env, &store, &error);
	if (error.code != VD_OK)
		return fail(serve->load ? "" : serve->memory ? "memory" : serve->data_dir, &error);
	options.listen = serve->listen;
	options.threads = serve->threads;
	options.resources_path = serve->resources;
	options.history_bytes = serve->history_bytes;
	options.history_window = serve->history_window;
	options.consistency_interval = serve->consistency_interval;
	options.on_inconsistency = strcmp(serve->on_inconsistency, "panic") == 0    ? VD_ON_INCONSISTENCY_PANIC
				   : strcmp(serve->on_inconsistency, "relist") == 0 ? VD_ON_INCONSISTENCY_RELIST
										     : VD_ON_INCONSISTENCY_REPORT;
	error.code = vd_server_new(env, store, &options, &server, &error);
	if (error.code != VD_OK) {
		result = fail("", &error);
		(void) vd_store_close_wait(store);
		return result;
	}
	error.code = vd_server_start(server, VD_SECONDS(600), &error);
	if (error.code == VD_OK) {
		(void) fprintf(stderr, "vedette: ready %s\n", vd_server_address(server));
		(void) fflush(stderr);
		wait_for_signal(signals);
		(void) vd_server_drain(server, DRAIN_TIMEOUT); /* what is left is cut */
	} else {
		result = fail("start", &error);
	}
	(void) vd_server_free(server);
	(void) vd_store_close_wait(store);
	return result;
}

static int run(const struct vdi_command *command, int argc, char **argv)
{
	struct serve		serve = { .listen = "127.0.0.1:8080",
					  .history_bytes = (int64_t) 256 << 20,
					  .history_window = VD_SECONDS(600),
					  .consistency_interval = VD_SECONDS(300),
					  .on_inconsistency = "report" };
	struct vdi_log_settings log = VDI_LOG_SETTINGS_INIT;
	struct vd_env_options	env_options = VD_ENV_OPTIONS_INIT;
	struct vd_env	       *env;
	sigset_t		signals;
	size_t			operand_count;
	int			result;
	const struct vdi_option table[] = {
		{ 0, "listen", VDI_OPTION_TEXT, "ADDR:PORT", "where to listen; port 0 chooses one (default 127.0.0.1:8080)", &serve.listen },
		{ 0, "data-dir", VDI_OPTION_TEXT, "DIR", "where the store lives (default ./vedette-data)", &serve.data_dir },
		{ 0, "memory", VDI_OPTION_FLAG, NULL, "keep everything in memory instead", &serve.memory },
		{ 0, "load", VDI_OPTION_TEXT, "FILE", "fill the store, which must be empty, from an event log", &serve.load },
		{ 0, "resources", VDI_OPTION_TEXT, "FILE", "further kinds to serve (JSON)", &serve.resources },
		{ 0, "history-window", VDI_OPTION_DURATION, "DURATION", "how long old revisions stay (default 10m)", &serve.history_window },
		{ 0, "history-bytes", VDI_OPTION_BYTES, "SIZE", "and how much of them at most (default 256MiB)", &serve.history_bytes },
		{ 0, "consistency-interval", VDI_OPTION_DURATION, "DURATION",
		  "how often each cache is compared with the store; 0: never (default 5m)", &serve.consistency_interval },
		{ 0, "on-inconsistency", VDI_OPTION_CHOICE, "ACTION", "what to do when they differ: report, relist or panic (default report)",
		  &serve.on_inconsistency, "report|relist|panic" },
		{ 0, "threads", VDI_OPTION_COUNT, "N", "event loops (default: number of processors)", &serve.threads },
	};

	if (!vdi_command_parse(command, table, VDI_ARRAY_SIZE(table), argc, argv, NULL, 0, &operand_count, &log, &result))
		return result;
	if (serve.memory && serve.data_dir)
		return vdi_command_mistake(command, "--memory and --data-dir exclude each other");
	if (serve.data_dir == NULL)
		serve.data_dir = "./vedette-data";
	/* Blocked before any thread exists, so that only wait_for_signal sees them. */
	(void) sigemptyset(&signals);
	(void) sigaddset(&signals, SIGTERM);
	(void) sigaddset(&signals, SIGINT);
	(void) sigprocmask(SIG_BLOCK, &signals, NULL);
	(void) signal(SIGPIPE, SIG_IGN);
	raise_file_limit();

	env_options.log = vdi_command_log;
	env_options.log_arg = &log;
	env_options.log_level = vdi_command_log_level(&log);
	if (vd_env_new_threads(&env_options, &env) != VD_OK)
		return vdi_command_failed(command, "cannot start threads");
	result = run_server(&serve, env, &signals);
	(void) vd_env_free(env);
	return result;
}

const struct vdi_command vdi_command_serve = {
	.name = "serve",
	.summary = "Serve list and watch to kubectl, client-go and the like.",
	.usage = "vedette serve [options]",
	.details = "Says one line on standard error when it accepts requests: \"vedette: ready http://127.0.0.1:8080\". SIGTERM or Ctrl-C ends it: watches end\n"
		   "cleanly, what was acknowledged is on disk.\n"
		   "Exit status: 0 ended as asked, 1 failed, 2 misused.\n",
	.examples = "  vedette serve\n"
		    "  vedette serve --listen 127.0.0.1:0 --memory --load examples/small-cluster.ndjson\n"
		    "  vedette serve --data-dir /var/lib/vedette --history-window 1h --log-format json\n",
	.run = run,
};
