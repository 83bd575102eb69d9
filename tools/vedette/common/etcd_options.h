/* The options for an etcd cluster and its user, for all commands that take --etcd. */
#ifndef VDI_ETCD_OPTIONS_H
#define VDI_ETCD_OPTIONS_H

#include <vedette/store.h>

#include "command_line.h"
#include "rpc_choice.h"

#define VDI_ETCD_PREFIX "/registry"
/* Environment variable for the password, which keeps it out of the list of processes. */
#define VDI_ETCD_PASSWORD_VARIABLE "VEDETTE_ETCD_PASSWORD"

struct vdi_etcd_settings {
	const char *urls; /* NULL: no etcd */
	const char *prefix;
	const char *ca_file, *cert_file, *key_file;
	const char *user;	   /* NAME:PASSWORD or NAME */
	const char *password_file; /* instead of a password in user */
	vd_dur	    timeout;	   /* for the first answer */
	vd_dur	    compaction_interval;
	const char *rpc; /* name of the transport */
	/* Derived by the check; valid for the program's lifetime. */
	const char *endpoints[32];
	size_t	    endpoint_count;
	bool	    is_part; /* --etcd-prefix was given */
	char	    name[256], password[1024];
};
#define VDI_ETCD_SETTINGS_INIT                                                                               \
	{                                                                                                    \
		.timeout = {(int64_t) 20 * 1000000000 }                                                      \
	}

#define VDI_ETCD_OPTION_TABLE(settings)                                                                      \
	{ 0,                                                                                                 \
	  "etcd",                                                                                            \
	  VDI_OPTION_TEXT,                                                                                   \
	  "URL[,URL...]",                                                                                    \
	  "etcd cluster: http:// or https:// and HOST:PORT of each member",                                  \
	  &(settings)->urls },                                                                               \
		{ 0,                                                                                         \
		  "etcd-prefix",                                                                             \
		  VDI_OPTION_TEXT,                                                                           \
		  "PATH",                                                                                    \
		  "path prefix of all keys in etcd (default " VDI_ETCD_PREFIX ")",                           \
		  &(settings)->prefix },                                                                     \
		{ 0,                                                                                         \
		  "etcd-cacert",                                                                             \
		  VDI_OPTION_TEXT,                                                                           \
		  "FILE",                                                                                    \
		  "CA bundle for verifying the certificates of etcd",                                        \
		  &(settings)->ca_file },                                                                    \
		{ 0,                                                                                         \
		  "etcd-cert",                                                                               \
		  VDI_OPTION_TEXT,                                                                           \
		  "FILE",                                                                                    \
		  "client certificate for etcd",                                                             \
		  &(settings)->cert_file },                                                                  \
		{ 0,                                                                                         \
		  "etcd-key",                                                                                \
		  VDI_OPTION_TEXT,                                                                           \
		  "FILE",                                                                                    \
		  "private key of the client certificate for etcd",                                          \
		  &(settings)->key_file },                                                                   \
		{ 0,                                                                                         \
		  "etcd-user",                                                                               \
		  VDI_OPTION_TEXT,                                                                           \
		  "NAME[:PASSWORD]",                                                                         \
		  "etcd user; give the password preferably in $" VDI_ETCD_PASSWORD_VARIABLE,                 \
		  &(settings)->user },                                                                       \
		{ 0,                                                                                         \
		  "etcd-password-file",                                                                      \
		  VDI_OPTION_TEXT,                                                                           \
		  "FILE",                                                                                    \
		  "file whose first line is the password of --etcd-user",                                    \
		  &(settings)->password_file },                                                              \
		{ 0,                                                                                         \
		  "etcd-timeout",                                                                            \
		  VDI_OPTION_DURATION,                                                                       \
		  "DURATION",                                                                                \
		  "maximum time to wait for the first answer of etcd (default 20s)",                         \
		  &(settings)->timeout },                                                                    \
		VDI_RPC_OPTION(&(settings)->rpc)

/* Validates the combination of options; reads the password, and erases it from the command line. false: the
 * error was reported, *ret_exit is the exit status. Call once. */
bool vdi_etcd_settings_check(const struct vdi_command *command, struct vdi_etcd_settings *settings,
			     int *ret_exit);
/* Blocks up to settings->timeout. The message names endpoint and cause. */
VDI_MUST_USE vd_status vdi_etcd_settings_open(const struct vdi_etcd_settings *settings,
					      const struct vd_env *env, struct vd_store **ret_store,
					      struct vd_error *reterr);
/* Returns the key prefix for commands that read all keys by default: "/registry/" if --etcd-prefix was given,
 * otherwise "". After the check. */
#define VDI_ETCD_KEY_PREFIX_MAX 256
void vdi_etcd_settings_key_prefix(const struct vdi_etcd_settings *settings,
				  char				  prefix[VDI_ETCD_KEY_PREFIX_MAX]);
/* Returns the exit status for a failure of vdi_etcd_settings_open: 2 for usage errors, otherwise 1. */
int vdi_etcd_settings_exit(vd_status status);

#endif
