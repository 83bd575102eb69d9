/* An etcd's command line, environment and configuration file as one command line for vdi_command_parse.
 *
 * As etcd: one dash or two; ETCD_NAME=x is --name=x, and must not stand beside --name; with --config-file (or
 * ETCD_CONFIG_FILE) its keys count, and the environment and etcd's own options on the command line do not.
 * Options of etcd that have no effect here (etcd_flags.def) are taken out, each with a warning;
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

/* options: what the command itself takes; `given` and `target` are not touched. environment: as environ.
 * False: the mistake was said, *ret_exit is the exit status. */
VDI_MUST_USE bool vdi_etcd_arguments_init(const struct vdi_command *command, const struct vdi_option *options,
					  size_t option_count, int argc, char *const *argv,
					  char *const *environment, struct vdi_etcd_arguments *arguments,
					  int *ret_exit);
/* Logs the warnings. */
void vdi_etcd_arguments_warn(const struct vdi_etcd_arguments *arguments, const struct vdi_log_settings *log);
/* Copes with a zeroed one. What vdi_command_parse has put into targets points into it. */
void vdi_etcd_arguments_fini(struct vdi_etcd_arguments *arguments);

#endif
