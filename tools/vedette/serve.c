/* vedette serve: the REST server on an embedded store. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <vedette/server.h>
#include <vedette/vedette.h>

#include "command.h"
#include "options.h"

#define DRAIN_TIMEOUT VD_SECONDS(8)

struct serve {
	const char *listen;
	const char *data_dir;
	const char *resources;
	const char *log_level;
	const char *log_format;
	int64_t	    history_bytes;
	vd_dur	    history_window;
	unsigned    threads;
	bool	    memory;
	bool	    help;
	bool	    version;
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

static vd_status open_store(const struct serve *serve, const struct vd_env *env, struct vd_store **ret_store, struct vd_error *error)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;

	options.data_dir = serve->memory ? NULL : serve->data_dir;
	options.history_bytes = serve->history_bytes;
	options.history_window = serve->history_window;
	return vd_store_open_mvcc(env, &options, ret_store, error);
}

/* Until SIGTERM or SIGINT, which every thread has blocked. */
static void wait_for_signal(const sigset_t *signals)
{
	int signal;

	while (sigwait(signals, &signal) == EINTR)
		;
}

static int run(const struct serve *serve, const struct vd_env *env, const sigset_t *signals)
{
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;
	struct vd_store		*store;
	struct vd_server	*server;
	struct vd_error		 error = { .code = VD_OK };
	int			 result = 0;

	error.code = open_store(serve, env, &store, &error);
	if (error.code != VD_OK)
		return fail(serve->memory ? "memory" : serve->data_dir, &error);
	options.listen = serve->listen;
	options.threads = serve->threads;
	options.resources_path = serve->resources;
	options.history_bytes = serve->history_bytes;
	options.history_window = serve->history_window;
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

int vdi_command_serve(int argc, char **argv)
{
	struct serve	      serve = { .listen = "127.0.0.1:8080",
					.data_dir = "./vedette-data",
					.log_level = "info",
					.log_format = "text",
					.history_bytes = (int64_t) 256 << 20,
					.history_window = VD_SECONDS(600) };
	struct vd_env_options env_options = VD_ENV_OPTIONS_INIT;
	struct vd_env	     *env;
	sigset_t	      signals;
	int		      result;
	const struct vdi_option options[] = {
		{ "listen", VDI_OPTION_TEXT, "ADDR:PORT", "where to listen; port 0 chooses one (127.0.0.1:8080)", &serve.listen },
		{ "data-dir", VDI_OPTION_TEXT, "DIR", "where the store lives (./vedette-data)", &serve.data_dir },
		{ "memory", VDI_OPTION_FLAG, NULL, "keep everything in memory instead", &serve.memory },
		{ "resources", VDI_OPTION_TEXT, "FILE", "further kinds to serve (JSON)", &serve.resources },
		{ "history-window", VDI_OPTION_DURATION, "DURATION", "how long old revisions stay (10m)", &serve.history_window },
		{ "history-bytes", VDI_OPTION_BYTES, "SIZE", "and how much of them at most (256MiB)", &serve.history_bytes },
		{ "threads", VDI_OPTION_COUNT, "N", "event loops (number of processors)", &serve.threads },
		{ "log-level", VDI_OPTION_TEXT, "LEVEL", "error, warning, info or debug (info)", &serve.log_level },
		{ "log-format", VDI_OPTION_TEXT, "FORMAT", "text or json (text)", &serve.log_format },
		{ "help", VDI_OPTION_FLAG, NULL, "this text", &serve.help },
		{ "version", VDI_OPTION_FLAG, NULL, "the version", &serve.version },
	};

	if (!vdi_options_parse("serve", options, VDI_ARRAY_SIZE(options), argc, argv, NULL, 0, NULL))
		return 2;
	if (serve.help || serve.version) {
		(void) printf(serve.help ? "usage: vedette serve [OPTIONS]\n\n" : "vedette %s\n", vd_version());
		if (serve.help)
			vdi_options_help(options, VDI_ARRAY_SIZE(options));
		return 0;
	}
	if (!vdi_parse_log_level(serve.log_level, &env_options.log_level) ||
	    (strcmp(serve.log_format, "text") != 0 && strcmp(serve.log_format, "json") != 0)) {
		(void) fprintf(stderr, "vedette serve: --log-level must be error, warning, info or debug, --log-format text or json\n");
		return 2;
	}
	/* Blocked before any thread exists, so that only wait_for_signal sees them. */
	(void) sigemptyset(&signals);
	(void) sigaddset(&signals, SIGTERM);
	(void) sigaddset(&signals, SIGINT);
	(void) sigprocmask(SIG_BLOCK, &signals, NULL);
	(void) signal(SIGPIPE, SIG_IGN);
	raise_file_limit();

	env_options.log = strcmp(serve.log_format, "json") == 0 ? vdi_log_to_stderr_json : vdi_log_to_stderr;
	if (vd_env_new_threads(&env_options, &env) != VD_OK) {
		(void) fprintf(stderr, "vedette serve: cannot start threads\n");
		return 1;
	}
	result = run(&serve, env, &signals);
	(void) vd_env_free(env);
	return result;
}
