/* The process setup of subcommands that run until a signal ends them: signals, limit of open files, env.
 *
 * Main thread, before it starts other threads.
 */
#ifndef VDI_COMMAND_PROCESS_H
#define VDI_COMMAND_PROCESS_H

#include <signal.h>
#include <vedette/vedette.h>

#include "command_line.h"

/* Raises the limit of open files to the maximum that the system allows, because each connection needs one. */
void vdi_command_raise_file_limit(void);
/* Blocks SIGTERM, SIGINT and also_heard (a list that ends with 0; NULL: no others) for this thread and all
 * that it starts, so that only a wait for *ret_signals receives them; ignores SIGPIPE. Then creates an env
 * with threads that logs to stderr as log says; log must outlive it, and the caller frees it. */
vd_status vdi_command_process_init(struct vdi_log_settings *log, const int *also_heard, sigset_t *ret_signals,
				   struct vd_env **ret_env);
/* Blocks until one of signals (from vdi_command_process_init) arrives, and returns it. */
int vdi_command_wait_for_signal(const sigset_t *signals);
/* The same, for at most timeout (not negative): returns 0 if none arrived. */
int vdi_command_wait_for_signal_for(const sigset_t *signals, vd_dur timeout);

#endif
