/* The steps that `vedette serve` and `vedette etcd` share: read the options, open, run until a signal, end.
 *
 * Main thread. server is the command's own state, zeroed or with its defaults.
 */
#ifndef VDI_SERVER_COMMAND_H
#define VDI_SERVER_COMMAND_H

#include <signal.h>
#include <vedette/vedette.h>

#include "command_line.h"

struct vdi_server_command {
	const int *also_heard; /* as for vdi_command_process_init */

	/* Parses and checks argv. false: *ret_exit is the exit status (help was printed, or an error was
	 * reported). */
	bool (*read)(void *server, const struct vdi_command *command, int argc, char **argv,
		     struct vdi_log_settings *log, int *ret_exit);
	/* Opens store and ports. Reports an error, and returns the exit status. */
	int (*open)(void *server, const struct vd_env *env, const sigset_t *signals);
	/* Serves until a signal. */
	void (*run)(void *server, const sigset_t *signals);
	/* Closes everything that open has opened, also if it failed. The env still exists. */
	void (*end)(void *server);
	/* Frees what read has allocated, also if it failed. NULL: nothing. */
	void (*fini)(void *server);
};

/* Returns the exit status. */
int vdi_server_command_run(const struct vdi_server_command *steps, void *server,
			   const struct vdi_command *command, int argc, char **argv);

#endif
