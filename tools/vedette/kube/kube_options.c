/* The checks of the options, and the store that they describe. */
#include "kube_options.h"

#include <stdio.h>

void vdi_kube_settings_init(struct vdi_kube_settings *settings)
{
	memset(settings, 0, sizeof *settings);
	settings->client = (struct vd_kube_options) VD_KUBE_OPTIONS_INIT;
	settings->watch_timeout = VD_SECONDS(10);
	settings->kinds = (struct vdi_texts) { settings->wanted, 0, VDI_KUBE_WANTED_MAX };
}

void vdi_kube_settings_fini(struct vdi_kube_settings *settings)
{
	settings->session = vdi_kube_session_free(settings->session);
	vdi_endpoint_kinds_fini(&settings->loaded);
}

bool vdi_kube_settings_given(const struct vdi_kube_settings *settings)
{
	return settings->client.server || settings->client.kubeconfig;
}

bool vdi_kube_settings_check(const struct vdi_command *command, const struct vdi_kube_settings *settings,
			     int *ret_exit)
{
	const struct vd_kube_options *client = &settings->client;
	const char		     *fault = NULL;

	if (client->context && client->kubeconfig == NULL)
		fault = "--context requires --kubeconfig";
	else if (client->token && client->token_path)
		fault = "--token and --token-file exclude each other";
	else if ((client->cert_path == NULL) != (client->key_path == NULL))
		fault = "--cert and --key must be given together";
	else if (!vdi_kube_settings_given(settings) &&
		 (client->token || client->token_path || client->ca_path || client->cert_path ||
		  client->insecure || settings->kinds.count))
		fault = "--token, --token-file, --cacert, --cert, --key, --insecure and --kind require "
			"--server or --kubeconfig";
	else if (settings->watch_timeout.ns < VD_SECONDS(3).ns ||
		 settings->watch_timeout.ns > VD_SECONDS(3600).ns)
		fault = "--watch-timeout must be 3s to 1h";
	*ret_exit = fault ? vdi_command_usage_error(command, "%s", fault) : VDI_EXIT_OK;
	return fault == NULL;
}

vd_status vdi_kube_settings_open(const struct vdi_command *command, struct vdi_kube_settings *settings,
				 const struct vd_env *env, bool whole_revisions, struct vd_store **ret_store,
				 struct vd_error *reterr)
{
	struct vdi_endpoint_store_options options = {
		.kinds = &settings->loaded,
		.whole_revisions = whole_revisions,
		.watch_timeout_s = (unsigned) (settings->watch_timeout.ns / 1000000000)
	};

	VDI_TRY(vdi_kube_session_new(env, &settings->client, &settings->session, reterr));
	VDI_TRY(vdi_endpoint_kinds_load(settings->session, settings->kinds.items, settings->kinds.count,
					&settings->loaded, reterr));
	if (*settings->loaded.skipped)
		(void) fprintf(stderr, "vedette %s: kinds omitted, because their API does not answer: %s\n",
			       command->name, settings->loaded.skipped);
	options.kube = vdi_kube_session_client(settings->session);
	return vdi_endpoint_store_new(&options, ret_store, reterr);
}

int vdi_kube_settings_exit(const struct vdi_kube_settings *settings, vd_status status)
{
	return status == VD_INVALID_ARGUMENT && settings->client.kubeconfig == NULL ? VDI_EXIT_USAGE :
										      VDI_EXIT_FAILED;
}
