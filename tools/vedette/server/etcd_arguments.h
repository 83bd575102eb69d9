/* An etcd's command line, environment and configuration file as one command line for vdi_command_parse.
 *
 * As in etcd: one dash or two; ETCD_NAME=x is --name=x, and excludes --name. With --config-file (or
 * ETCD_CONFIG_FILE) the keys of the file apply, and the environment and etcd's own options on the command
 * line are ignored. Options of etcd without an effect here (etcd_flags.def) are removed, each with a warning;
 * --experimental-x is --x. Main thread.
 */
#ifndef VDI_ETCD_ARGUMENTS_H
#define VDI_ETCD_ARGUMENTS_H

#include "command_line.h"

struct vdi_etcd_arguments {
	/* Texts are owned; argv[0] is the command. */
	char **argv;
	size_t argc;
	size_t argv_capacity;
	char **warnings;
	size_t warning_count;
	size_t warning_capacity;
};

/* options: those of the command; `given` and `target` are not used. environment: as environ. false: the error
 * was reported, *ret_exit is the exit status. */
VDI_MUST_USE bool vdi_etcd_arguments_init(const struct vdi_command *command, const struct vdi_option *options,
					  size_t option_count, int argc, char *const *argv,
					  char *const *environment, struct vdi_etcd_arguments *arguments,
					  int *ret_exit);
/* Logs the warnings. */
void vdi_etcd_arguments_warn(const struct vdi_etcd_arguments *arguments, const struct vdi_log_settings *log);
/* Accepts a zeroed struct. Values that vdi_command_parse has stored in targets point into it. */
void vdi_etcd_arguments_fini(struct vdi_etcd_arguments *arguments);

#endif
