/* Signals, file limit and env of a server command. */
#include "command_process.h"

#include <errno.h>
#include <sys/resource.h>
#include <time.h>

void vdi_command_raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void) setrlimit(RLIMIT_NOFILE, &limit);
	}
}

vd_status vdi_command_process_init(struct vdi_log_settings *log, const int *also_heard, sigset_t *ret_signals,
				   struct vd_env **ret_env)
{
	struct vd_env_options options = VD_ENV_OPTIONS_INIT;

	(void) sigemptyset(ret_signals);
	(void) sigaddset(ret_signals, SIGTERM);
	(void) sigaddset(ret_signals, SIGINT);
	for (; also_heard && *also_heard; also_heard++)
		(void) sigaddset(ret_signals, *also_heard);
	(void) sigprocmask(SIG_BLOCK, ret_signals, NULL);
	(void) signal(SIGPIPE, SIG_IGN);
	options.log = vdi_command_log;
	options.log_arg = log;
	options.log_level = vdi_command_log_level(log);
	return vd_env_new_threads(&options, ret_env);
}

int vdi_command_wait_for_signal(const sigset_t *signals)
{
	int signal = 0;

	while (sigwait(signals, &signal) == EINTR)
		;
	return signal;
}

int vdi_command_wait_for_signal_for(const sigset_t *signals, vd_dur timeout)
{
	const struct timespec limit = { .tv_sec = timeout.ns / 1000000000,
					.tv_nsec = timeout.ns % 1000000000 };
	int		      signal = sigtimedwait(signals, NULL, &limit);

	return signal > 0 ? signal : 0;
}
