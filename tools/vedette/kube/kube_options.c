/* The checks of the options, and the store that they describe. */
#include "kube_options.h"

#include <stdio.h>

void vdi_kube_settings_init(struct vdi_kube_settings *settings)
{
	memset(settings, 0, sizeof *settings);
	settings->watch_timeout = VD_SECONDS(10);
	settings->kinds = (struct vdi_texts) { settings->wanted, 0, VDI_KUBE_WANTED_MAX };
}

void vdi_kube_settings_fini(struct vdi_kube_settings *settings)
{
	vdi_kube_kinds_fini(&settings->loaded);
	vdi_exec_credential_free(settings->exec);
	vdi_kubeconfig_fini(&settings->config);
}

bool vdi_kube_settings_given(const struct vdi_kube_settings *settings)
{
	return settings->http.server || settings->kubeconfig;
}

/* Options override the kubeconfig. */
static void merge(struct vdi_http_client_options *http, const struct vdi_kubeconfig *config)
{
	if (http->server == NULL)
		http->server = config->server;
	if (http->ca_file == NULL) {
		http->ca_file = config->ca_file;
		http->ca_data = config->ca_data;
	}
	if (http->cert_file == NULL && http->token == NULL) {
		http->cert_file = config->cert_file;
		http->cert_data = config->cert_data;
		http->key_file = config->key_file;
		http->key_data = config->key_data;
	}
	if (http->token == NULL)
		http->token = config->token;
	http->insecure |= config->insecure;
}

/* Creates a credential program, unless an option or the kubeconfig has a token or certificate. */
static vd_status ask_program(struct vdi_kube_settings *settings)
{
	struct vdi_http_client_options *http = &settings->http;
	struct vdi_exec_cluster		cluster = { http->server, http->ca_data, http->insecure };

	if (settings->config.exec.command == NULL || http->token || http->cert_file || http->cert_data.size)
		return VD_OK;
	VDI_TRY(vdi_exec_credential_new(&settings->config.exec, &cluster, &settings->exec));
	http->exec = settings->exec;
	return VD_OK;
}

bool vdi_kube_settings_check(const struct vdi_command *command, struct vdi_kube_settings *settings,
			     int *ret_exit)
{
	struct vdi_http_client_options *http = &settings->http;
	struct vd_error			error = { 0 };

	*ret_exit = VDI_EXIT_USAGE;
	if (settings->context && settings->kubeconfig == NULL) {
		(void) vdi_command_usage_error(command, "--context requires --kubeconfig");
		return false;
	}
	if (!vdi_kube_settings_given(settings)) {
		if (http->token || http->ca_file || http->cert_file || http->key_file || http->insecure ||
		    settings->kinds.count) {
			(void) vdi_command_usage_error(command,
						       "--token, --cacert, --cert, --key, --insecure "
						       "and --kind require --server or --kubeconfig");
			return false;
		}
		return true;
	}
	if (settings->watch_timeout.ns < VD_SECONDS(3).ns ||
	    settings->watch_timeout.ns > VD_SECONDS(3600).ns) {
		(void) vdi_command_usage_error(command, "--watch-timeout must be 3s to 1h");
		return false;
	}
	if ((http->cert_file == NULL) != (http->key_file == NULL)) {
		(void) vdi_command_usage_error(command, "--cert and --key must be given together");
		return false;
	}
	if (settings->kubeconfig) {
		if (vdi_kubeconfig_read(settings->kubeconfig, settings->context, &settings->config, &error) !=
		    VD_OK) {
			*ret_exit = vdi_command_failed(command, "%s", error.message);
			return false;
		}
		merge(http, &settings->config);
		if (ask_program(settings) != VD_OK) {
			*ret_exit = vdi_command_failed(command, "out of memory");
			return false;
		}
	}
	return true;
}

vd_status vdi_kube_settings_open(const struct vdi_command *command, struct vdi_kube_settings *settings,
				 const struct vd_env *env, bool whole_revisions, struct vd_store **ret_store,
				 struct vd_error *reterr)
{
	struct vdi_kube_store_options options = { .http = &settings->http,
						  .kinds = &settings->loaded,
						  .whole_revisions = whole_revisions,
						  .watch_timeout_s = (unsigned) (settings->watch_timeout.ns /
										 1000000000) };
	struct vdi_http_client	     *client;
	vd_status		      status;

	VDI_TRY(vdi_http_client_new(&settings->http, &client, reterr));
	status = vdi_kube_kinds_load(client, settings->kinds.items, settings->kinds.count, &settings->loaded,
				     reterr);
	vdi_http_client_free(client);
	if (status != VD_OK)
		return status;
	if (*settings->loaded.skipped)
		(void) fprintf(stderr, "vedette %s: kinds omitted, because their API does not answer: %s\n",
			       command->name, settings->loaded.skipped);
	return vdi_kube_store_new(env, &options, ret_store, reterr);
}
