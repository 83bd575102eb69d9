/* What a subcommand that runs until it is told to end sets up in its process: which signals it hears, how
 * many files it may open, its env.
 *
 * One thread: the main one, before there is any other.
 */
#ifndef VDI_COMMAND_PROCESS_H
#define VDI_COMMAND_PROCESS_H

#include <signal.h>
#include <vedette/vedette.h>

#include "command_line.h"

/* As many open files as the system lets this process have: every connection is one. */
void vdi_command_raise_file_limit(void);
/* Blocks SIGTERM, SIGINT and also_heard (0: no other) for this thread and all it starts, so that only who
 * waits for them in *ret_signals sees them; ignores SIGPIPE. Then makes an env with threads whose records go
 * to stderr as log says; log must outlive it, and the caller frees it. */
vd_status vdi_command_process_init(struct vdi_log_settings *log, int also_heard, sigset_t *ret_signals,
				   struct vd_env **ret_env);
/* Blocks until one of signals, which vdi_command_process_init gave, and returns it. */
int vdi_command_wait_for_signal(const sigset_t *signals);
/* The same, at most timeout (not negative): 0 when none came. */
int vdi_command_wait_for_signal_for(const sigset_t *signals, vd_dur timeout);

#endif
