/* The checks of the etcd options, and the password. */
#include "etcd_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base.h"

#if VDI_ETCD
#include <vedette/etcd.h>
#endif

static char urls_copy[4096]; /* of the main thread; split at the commas */

static bool fail_with(int *ret_exit, int exit_status)
{
	*ret_exit = exit_status;
	return false;
}

static bool take_urls(const struct vdi_command *command, struct vdi_etcd_settings *settings, int *ret_exit)
{
	char *rest = urls_copy, *url;

	if (strlen(settings->urls) >= sizeof urls_copy)
		return fail_with(ret_exit,
				 vdi_command_usage_error(command, "--etcd must not exceed %zu bytes",
							 sizeof urls_copy - 1));
	strcpy(urls_copy, settings->urls);
	while ((url = strsep(&rest, ","))) {
		if (*url == 0)
			return fail_with(ret_exit, vdi_command_usage_error(command, "--etcd: empty address"));
		if (settings->endpoint_count == VDI_ARRAY_SIZE(settings->endpoints))
			return fail_with(ret_exit,
					 vdi_command_usage_error(command, "--etcd: more than %zu addresses",
								 VDI_ARRAY_SIZE(settings->endpoints)));
		settings->endpoints[settings->endpoint_count++] = url;
	}
	return true;
}

/* Overwrites a secret argument, because other users can see the command line in the list of processes. */
static void wipe(const char *secret)
{
	memset((char *) (uintptr_t) secret, '*', strlen(secret));
}

static bool read_password_file(const struct vdi_command *command, struct vdi_etcd_settings *settings,
			       int *ret_exit)
{
	FILE *file = fopen(settings->password_file, "re");
	bool  is_read = file && fgets(settings->password, sizeof settings->password, file);

	if (!is_read) {
		(void) vdi_command_failed(command, "--etcd-password-file %s: %s", settings->password_file,
					  file ? "it is empty" : strerror(errno));
		if (file)
			(void) fclose(file);
		return fail_with(ret_exit, VDI_EXIT_USAGE);
	}
	(void) fclose(file);
	settings->password[strcspn(settings->password, "\r\n")] = 0;
	return true;
}

static bool take_user(const struct vdi_command *command, struct vdi_etcd_settings *settings, int *ret_exit)
{
	const char *colon = strchr(settings->user, ':');
	const char *variable = getenv(VDI_ETCD_PASSWORD_VARIABLE);
	size_t	    size = colon ? (size_t) (colon - settings->user) : strlen(settings->user);

	if (size == 0 || size >= sizeof settings->name)
		return fail_with(ret_exit, vdi_command_usage_error(
						   command, "--etcd-user: the name is empty or too long"));
	memcpy(settings->name, settings->user, size);
	if (colon && settings->password_file)
		return fail_with(
			ret_exit,
			vdi_command_usage_error(
				command,
				"either --etcd-user NAME:PASSWORD or --etcd-password-file, not both"));
	if (colon && strlen(colon + 1) >= sizeof settings->password)
		return fail_with(ret_exit,
				 vdi_command_usage_error(command, "--etcd-user: the password is too long"));
	if (colon) {
		strcpy(settings->password, colon + 1);
		wipe(colon + 1);
		return true;
	}
	if (settings->password_file)
		return read_password_file(command, settings, ret_exit);
	if (variable == NULL || *variable == 0 || strlen(variable) >= sizeof settings->password)
		return fail_with(ret_exit,
				 vdi_command_usage_error(command,
							 "--etcd-user %s: no password: set $%s, or give "
							 "--etcd-password-file FILE or NAME:PASSWORD",
							 settings->name, VDI_ETCD_PASSWORD_VARIABLE));
	strcpy(settings->password, variable);
	return true;
}

static bool check_path(const struct vdi_command *command, const char *prefix, int *ret_exit)
{
	if (*prefix == 0 || strstr(prefix, "//") || strchr(prefix, ' '))
		return fail_with(ret_exit,
				 vdi_command_usage_error(
					 command,
					 "--etcd-prefix \"%s\": must be a path such as " VDI_ETCD_PREFIX,
					 prefix));
	return true;
}

bool vdi_etcd_settings_check(const struct vdi_command *command, struct vdi_etcd_settings *settings,
			     int *ret_exit)
{
	bool has_more = settings->prefix || settings->ca_file || settings->cert_file || settings->key_file ||
			settings->user || settings->password_file;

	if (settings->urls == NULL)
		return has_more ? fail_with(ret_exit,
					    vdi_command_usage_error(
						    command, "options --etcd-... require --etcd URL")) :
				  true;
#if !VDI_ETCD
	return fail_with(ret_exit,
			 vdi_command_usage_error(command, "--etcd: this program was built without etcd"));
#endif
	settings->is_part = settings->prefix != NULL;
	if (settings->prefix == NULL)
		settings->prefix = VDI_ETCD_PREFIX;
	if (!settings->cert_file != !settings->key_file)
		return fail_with(ret_exit,
				 vdi_command_usage_error(
					 command, "--etcd-cert and --etcd-key must be given together"));
	if (settings->password_file && settings->user == NULL)
		return fail_with(
			ret_exit,
			vdi_command_usage_error(command, "--etcd-password-file requires --etcd-user NAME"));
	return take_urls(command, settings, ret_exit) && check_path(command, settings->prefix, ret_exit) &&
	       (settings->user == NULL || take_user(command, settings, ret_exit));
}

void vdi_etcd_settings_key_prefix(const struct vdi_etcd_settings *settings,
				  char				  prefix[VDI_ETCD_KEY_PREFIX_MAX])
{
	prefix[0] = 0;
	if (settings->is_part)
		(void) snprintf(prefix, VDI_ETCD_KEY_PREFIX_MAX, "%s%s", settings->prefix,
				settings->prefix[strlen(settings->prefix) - 1] == '/' ? "" : "/");
}

int vdi_etcd_settings_exit(vd_status status)
{
	return status == VD_INVALID_ARGUMENT || status == VD_INVALID ? VDI_EXIT_USAGE : VDI_EXIT_FAILED;
}

vd_status vdi_etcd_settings_open(const struct vdi_etcd_settings *settings, const struct vd_env *env,
				 struct vd_store **ret_store, struct vd_error *reterr)
{
#if VDI_ETCD
	struct vd_etcd_options	     etcd = VD_ETCD_OPTIONS_INIT;
	struct vd_etcd_store_options options = VD_ETCD_STORE_OPTIONS_INIT;

	VDI_TRY(vdi_rpc_choose(settings->rpc, &etcd.transport, reterr));
	etcd.endpoints = settings->endpoints;
	etcd.endpoint_count = settings->endpoint_count;
	etcd.ca_path = settings->ca_file;
	etcd.cert_path = settings->cert_file;
	etcd.key_path = settings->key_file;
	etcd.user = settings->user ? settings->name : NULL;
	etcd.password = settings->user ? settings->password : NULL;
	options.etcd = &etcd;
	options.start_timeout = settings->timeout;
	options.compaction_interval = settings->compaction_interval;
	return vd_store_open_etcd(env, &options, ret_store, reterr);
#else
	return vd_error_set(reterr, VD_UNSUPPORTED, "this program was built without etcd");
#endif
}
