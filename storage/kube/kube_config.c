/* The places are tried in the order of struct vd_kube_options; then its other members override. */
#include "kube_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "loopback.h"
#include "yaml_tree.h"

#define NAMESPACE_SIZE_MAX 256

static vd_status no_memory(struct vd_error *reterr)
{
	return vd_error_set(reterr, VD_NOMEM, "out of memory");
}

/* Replaces *place by the concatenation; false: out of memory. */
static bool set(char **place, const char *a, const char *b, const char *c, const char *d)
{
	size_t size = strlen(a) + strlen(b) + strlen(c) + strlen(d) + 1;
	char  *text = vdi_alloc(size);

	if (text == NULL)
		return false;
	snprintf(text, size, "%s%s%s%s", a, b, c, d);
	vdi_free(*place);
	*place = text;
	return true;
}

/* Replaces *place by value unless it is NULL. */
static bool override(char **place, const char *value)
{
	return value == NULL || set(place, value, "", "", "");
}

static void forget(char **text)
{
	vdi_free(*text);
	*text = NULL;
}

static void forget_data(struct vd_bytes *data)
{
	vdi_free((char *) (uintptr_t) data->data);
	*data = VD_BYTES_NONE;
}

/* ---- The pod ---- */

static const char *setting(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static vd_status read_pod(const char *folder, struct vdi_kubeconfig *config, struct vd_error *reterr)
{
	const char *host = setting("KUBERNETES_SERVICE_HOST"), *port = setting("KUBERNETES_SERVICE_PORT");
	bool	    is_ipv6 = strchr(host, ':') && host[0] != '[';
	char	   *path = NULL, *text = NULL;

	if (port == NULL)
		port = "443";
	if (!set(&config->server, is_ipv6 ? "https://[" : "https://", host, is_ipv6 ? "]:" : ":", port) ||
	    !set(&config->token_file, folder, "/token", "", "") ||
	    !set(&config->ca_file, folder, "/ca.crt", "", "") || !set(&path, folder, "/namespace", "", ""))
		return no_memory(reterr); /* path is the last one to be set */
	if (access(config->ca_file, F_OK) != 0)
		forget(&config->ca_file); /* the system's CAs */
	/* Without the file the namespace is "default". */
	if (vdi_yaml_read_word(path, NAMESPACE_SIZE_MAX, &text, NULL) == VD_OK) {
		if (*text)
			config->namespace_name = text;
		else
			vdi_free(text);
	}
	vdi_free(path);
	if (access(config->token_file, R_OK) != 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "KUBERNETES_SERVICE_HOST is set, but the pod's token %.200s cannot be "
				    "read: mount the service account, or name a kubeconfig or a server",
				    config->token_file);
	return VD_OK;
}

/* ---- The places ---- */

/* The errors of a kubeconfig that was named. */
static vd_status named(vd_status status, struct vd_error *reterr)
{
	if (status == VD_OK || status == VD_NOMEM)
		return status;
	if (reterr)
		reterr->code = VD_INVALID_ARGUMENT;
	return VD_INVALID_ARGUMENT;
}

static vd_status read_home(const char *context, struct vdi_kubeconfig *config, struct vd_error *reterr)
{
	const char *list = setting("KUBECONFIG"), *home = setting("HOME");
	char	   *path = NULL;
	vd_status   status;

	if (list)
		return named(vdi_kubeconfig_read_list(list, context, config, reterr), reterr);
	if (home && !set(&path, home, "/.kube/config", "", ""))
		return no_memory(reterr);
	if (path && access(path, F_OK) == 0) {
		status = named(vdi_kubeconfig_read(path, context, config, reterr), reterr);
		vdi_free(path);
		return status;
	}
	vdi_free(path);
	return vd_error_set(reterr, VD_NOT_FOUND,
			    "no cluster is configured: there is no server and no kubeconfig in the options, "
			    "KUBERNETES_SERVICE_HOST and KUBECONFIG are not set, and %s does not exist",
			    home ? "~/.kube/config" : "~/.kube/config (HOME is not set)");
}

static vd_status read_place(const struct vd_kube_options *options, const char *pod_folder,
			    struct vdi_kubeconfig *config, struct vd_error *reterr)
{
	if (options->server && options->kubeconfig == NULL)
		return set(&config->server, options->server, "", "", "") ? VD_OK : no_memory(reterr);
	if (options->kubeconfig)
		return named(vdi_kubeconfig_read(options->kubeconfig, options->context, config, reterr),
			     reterr);
	if (setting("KUBERNETES_SERVICE_HOST"))
		return read_pod(pod_folder, config, reterr);
	return read_home(options->context, config, reterr);
}

/* ---- Overrides ---- */

static bool override_all(const struct vd_kube_options *options, struct vdi_kubeconfig *config)
{
	if (options->token || options->token_path) {
		forget(&config->token);
		forget(&config->token_file);
		vdi_exec_plan_fini(&config->exec);
	}
	if (options->ca_path)
		forget_data(&config->ca_data);
	if (options->cert_path) {
		forget_data(&config->cert_data);
		forget_data(&config->key_data);
		forget(&config->key_file);
	}
	if (options->key_path)
		forget_data(&config->key_data);
	if (options->insecure)
		config->insecure = true;
	return override(&config->server, options->server) && override(&config->token, options->token) &&
	       override(&config->token_file, options->token_path) &&
	       override(&config->ca_file, options->ca_path) &&
	       override(&config->cert_file, options->cert_path) &&
	       override(&config->key_file, options->key_path) &&
	       override(&config->server_name, options->tls_server_name) &&
	       override(&config->proxy_url, options->proxy_url) &&
	       (config->namespace_name || set(&config->namespace_name, "default", "", "", ""));
}

/* ---- Checks ---- */

static bool has_scheme(const char *url, const char *scheme)
{
	return strncmp(url, scheme, strlen(scheme)) == 0 && url[strlen(scheme)] != 0;
}

static bool is_socket(const char *server)
{
	return has_scheme(server, "unix:/");
}

static struct vd_bytes host_of(const char *server)
{
	const char *start = strstr(server, "://") + 3;

	return (struct vd_bytes) { start, strcspn(start, "/") };
}

static vd_status check(const struct vd_kube_options *options, const struct vdi_kubeconfig *config,
		       struct vd_error *reterr)
{
	bool has_token = config->token || config->token_file || config->exec.command;

	if (!has_scheme(config->server, "http://") && !has_scheme(config->server, "https://") &&
	    !is_socket(config->server))
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "the server must be a URL such as https://10.0.0.1:6443, not \"%.200s\"",
				    config->server);
	if (options->no_exec && config->exec.command)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "the kubeconfig's user needs the program \"%.80s\", which the option "
				    "no_exec forbids",
				    config->exec.command);
	if ((config->cert_file || config->cert_data.size) != (config->key_file || config->key_data.size))
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "a client certificate and its key must be given together: %s is missing",
				    config->cert_file || config->cert_data.size ? "the key" :
										  "the certificate");
	if (has_token && !config->insecure && has_scheme(config->server, "http://") &&
	    !vdi_loopback_has_host(host_of(config->server)))
		return vd_error_set(
			reterr, VD_INVALID_ARGUMENT,
			"a token is not sent unencrypted to %.200s: use https://, or set insecure",
			config->server);
	return VD_OK;
}

vd_status vdi_kube_config_find(const struct vd_kube_options *options, const char *pod_folder,
			       struct vdi_kubeconfig *ret_config, struct vd_error *reterr)
{
	struct vdi_kubeconfig config = { 0 };
	vd_status	      status = read_place(options, pod_folder, &config, reterr);
	size_t		      size;

	if (status == VD_OK && !override_all(options, &config))
		status = no_memory(reterr);
	if (status == VD_OK) {
		for (size = strlen(config.server); size && config.server[size - 1] == '/'; size--)
			config.server[size - 1] = 0;
		status = check(options, &config, reterr);
	}
	if (status != VD_OK) {
		vdi_kubeconfig_fini(&config);
		return status;
	}
	*ret_config = config;
	return VD_OK;
}
