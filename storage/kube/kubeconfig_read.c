/* Follows the current context to cluster and user, and copies their settings. */
#include "kubeconfig_read.h"

#include <stdio.h>
#include <stdlib.h>

#include "base64.h"
#include "yaml_tree.h"

/* ---- Parts ---- */

struct reading {
	const char	      *path; /* of the file whose part is read */
	char		      *paths[VDI_KUBECONFIGS_MAX];
	json_t		      *trees[VDI_KUBECONFIGS_MAX];
	size_t		       count;
	struct vdi_kubeconfig *config;
	struct vd_error	      *reterr;
};

static const char *text_of(json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text && *text ? text : NULL;
}

static bool is_true(json_t *object, const char *key)
{
	const char *text = text_of(object, key);

	return json_is_true(json_object_get(object, key)) || (text && strcmp(text, "true") == 0);
}

/* Returns the member `part` of the list's entry with this name; its file becomes the path. */
static vd_status find(struct reading *reading, const char *list, const char *part, const char *name,
		      json_t **ret_part)
{
	json_t *entry;
	size_t	i, file;

	for (file = 0; file < reading->count; file++)
		json_array_foreach (json_object_get(reading->trees[file], list), i, entry)
			if (text_of(entry, "name") && strcmp(text_of(entry, "name"), name) == 0) {
				*ret_part = json_object_get(entry, part);
				reading->path = reading->paths[file];
				return VD_OK;
			}
	return vd_error_set(reading->reterr, VD_BAD_REQUEST, "%s: there is no \"%s\" in %s", reading->path,
			    name, list);
}

static vd_status take_text(const struct reading *reading, const char *text, char **place)
{
	if (text == NULL)
		return VD_OK;
	*place = vdi_strndup(text, strlen(text));
	return *place ? VD_OK : vd_error_set(reading->reterr, VD_NOMEM, "out of memory");
}

static vd_status take_path(const struct reading *reading, const char *text, char **place)
{
	const char *slash = strrchr(reading->path, '/');
	size_t	    folder = slash ? (size_t) (slash - reading->path) + 1 : 0, size;

	if (text == NULL || *text == '/' || folder == 0)
		return take_text(reading, text, place);
	size = folder + strlen(text) + 1;
	*place = vdi_alloc(size);
	if (*place == NULL)
		return vd_error_set(reading->reterr, VD_NOMEM, "out of memory");
	snprintf(*place, size, "%.*s%s", (int) folder, reading->path, text);
	return VD_OK;
}

static vd_status take_data(const struct reading *reading, json_t *part, const char *key,
			   struct vd_bytes *place)
{
	const char *text = text_of(part, key);
	char	   *data;
	size_t	    size;

	if (text == NULL)
		return VD_OK;
	data = vdi_alloc(VDI_BASE64_DECODED_MAX(strlen(text)) + 1);
	if (data == NULL)
		return vd_error_set(reading->reterr, VD_NOMEM, "out of memory");
	if (vdi_base64_decode(VDI_BASE64_STANDARD, vd_bytes_of(text), data, &size, NULL) != VD_OK) {
		vdi_free(data);
		return vd_error_set(reading->reterr, VD_BAD_REQUEST, "%s: %s is not base64", reading->path,
				    key);
	}
	*place = (struct vd_bytes) { data, size };
	return VD_OK;
}

static vd_status take_cluster(const struct reading *reading, json_t *cluster)
{
	struct vdi_kubeconfig *config = reading->config;
	if (text_of(cluster, "server") == NULL)
		return vd_error_set(reading->reterr, VD_BAD_REQUEST, "%s: the cluster has no server",
				    reading->path);
	config->insecure = is_true(cluster, "insecure-skip-tls-verify");
	VDI_TRY(take_text(reading, text_of(cluster, "server"), &config->server));
	VDI_TRY(take_text(reading, text_of(cluster, "tls-server-name"), &config->server_name));
	VDI_TRY(take_text(reading, text_of(cluster, "proxy-url"), &config->proxy_url));
	VDI_TRY(take_data(reading, cluster, "certificate-authority-data", &config->ca_data));
	return config->ca_data.size ?
		       VD_OK :
		       take_path(reading, text_of(cluster, "certificate-authority"), &config->ca_file);
}

static vd_status take_token_file(const struct reading *reading, const char *text)
{
	char	 *path = NULL, *token;
	vd_status status;

	VDI_TRY(take_path(reading, text, &path));
	status = vdi_yaml_read_word(path, 65536, &token, reading->reterr);
	if (status != VD_OK) {
		vdi_free(path);
		return status;
	}
	reading->config->token_file = path;
	reading->config->token = token;
	return VD_OK;
}

/* A relative path starts at the file; a plain name is searched in PATH. */
static vd_status take_command(const struct reading *reading, const char *text, char **place)
{
	return strchr(text, '/') ? take_path(reading, text, place) : take_text(reading, text, place);
}

static vd_status take_arguments(const struct reading *reading, json_t *list, struct vdi_exec_plan *plan)
{
	json_t *item;
	size_t	i;

	if (json_array_size(list) > VDI_EXEC_WORDS_MAX)
		return vd_error_set(reading->reterr, VD_BAD_REQUEST, "%s: too many arguments of exec",
				    reading->path);
	VDI_TRY(take_text(reading, plan->command, &plan->arguments[0]));
	json_array_foreach (list, i, item) {
		if (!json_is_string(item))
			return vd_error_set(reading->reterr, VD_BAD_REQUEST,
					    "%s: an argument of exec is not a string", reading->path);
		VDI_TRY(take_text(reading, json_string_value(item), &plan->arguments[i + 1]));
	}
	return VD_OK;
}

static vd_status take_environment(const struct reading *reading, json_t *list, struct vdi_exec_plan *plan)
{
	json_t *item;
	size_t	i;

	if (json_array_size(list) > VDI_EXEC_WORDS_MAX)
		return vd_error_set(reading->reterr, VD_BAD_REQUEST, "%s: too many variables of exec",
				    reading->path);
	json_array_foreach (list, i, item) {
		const char *name = text_of(item, "name"), *value = text_of(item, "value");
		size_t	    size = name ? strlen(name) + (value ? strlen(value) : 0) + 2 : 0;

		if (name == NULL || strchr(name, '='))
			return vd_error_set(reading->reterr, VD_BAD_REQUEST,
					    "%s: a variable of exec has no name", reading->path);
		plan->environment[i] = vdi_alloc(size);
		if (plan->environment[i] == NULL)
			return vd_error_set(reading->reterr, VD_NOMEM, "out of memory");
		snprintf(plan->environment[i], size, "%s=%s", name, value ? value : "");
	}
	return VD_OK;
}

static vd_status take_exec(const struct reading *reading, json_t *exec)
{
	struct vdi_exec_plan *plan = &reading->config->exec;
	const char	     *version = text_of(exec, "apiVersion"), *mode = text_of(exec, "interactiveMode");

	if (text_of(exec, "command") == NULL || version == NULL)
		return vd_error_set(reading->reterr, VD_BAD_REQUEST,
				    "%s: exec must have a command and an apiVersion", reading->path);
	if (strcmp(version, "client.authentication.k8s.io/v1") != 0 &&
	    strcmp(version, "client.authentication.k8s.io/v1beta1") != 0)
		return vd_error_set(reading->reterr, VD_BAD_REQUEST,
				    "%s: the apiVersion \"%.80s\" of exec is not supported", reading->path,
				    version);
	if (mode && strcmp(mode, "Always") == 0)
		return vd_error_set(reading->reterr, VD_BAD_REQUEST,
				    "%s: \"%.80s\" requires a terminal, which is not available here",
				    reading->path, text_of(exec, "command"));
	plan->gives_cluster = is_true(exec, "provideClusterInfo");
	VDI_TRY(take_text(reading, version, &plan->api_version));
	VDI_TRY(take_text(reading, text_of(exec, "installHint"), &plan->hint));
	VDI_TRY(take_command(reading, text_of(exec, "command"), &plan->command));
	VDI_TRY(take_arguments(reading, json_object_get(exec, "args"), plan));
	return take_environment(reading, json_object_get(exec, "env"), plan);
}

static vd_status take_user(const struct reading *reading, json_t *user)
{
	struct vdi_kubeconfig *config = reading->config;

	if (json_object_get(user, "auth-provider") || text_of(user, "username"))
		return vd_error_set(reading->reterr, VD_BAD_REQUEST,
				    "%s: only tokens, client certificates and exec are supported; use "
				    "--token or --cert and --key instead",
				    reading->path);
	if (json_object_get(user, "as") || json_object_get(user, "as-groups") ||
	    json_object_get(user, "as-uid") || json_object_get(user, "as-user-extra"))
		return vd_error_set(reading->reterr, VD_BAD_REQUEST,
				    "%s: impersonation (as, as-groups) is not supported", reading->path);
	if (json_is_object(json_object_get(user, "exec")))
		VDI_TRY(take_exec(reading, json_object_get(user, "exec")));
	if (text_of(user, "tokenFile"))
		VDI_TRY(take_token_file(reading, text_of(user, "tokenFile")));
	else
		VDI_TRY(take_text(reading, text_of(user, "token"), &config->token));
	VDI_TRY(take_data(reading, user, "client-certificate-data", &config->cert_data));
	VDI_TRY(take_data(reading, user, "client-key-data", &config->key_data));
	if (config->cert_data.size == 0)
		VDI_TRY(take_path(reading, text_of(user, "client-certificate"), &config->cert_file));
	return config->key_data.size ? VD_OK :
				       take_path(reading, text_of(user, "client-key"), &config->key_file);
}

static vd_status take_context(struct reading *reading, const char *name)
{
	json_t *context, *cluster, *user = NULL;
	size_t	file;

	for (file = 0; name == NULL && file < reading->count; file++)
		name = text_of(reading->trees[file], "current-context");
	if (name == NULL)
		return vd_error_set(reading->reterr, VD_BAD_REQUEST,
				    "%s has no current context: give --context", reading->path);
	VDI_TRY(find(reading, "contexts", "context", name, &context));
	if (text_of(context, "cluster") == NULL)
		return vd_error_set(reading->reterr, VD_BAD_REQUEST, "%s: the context \"%s\" has no cluster",
				    reading->path, name);
	VDI_TRY(take_text(reading, text_of(context, "namespace"), &reading->config->namespace_name));
	VDI_TRY(find(reading, "clusters", "cluster", text_of(context, "cluster"), &cluster));
	VDI_TRY(take_cluster(reading, cluster));
	if (text_of(context, "user"))
		VDI_TRY(find(reading, "users", "user", text_of(context, "user"), &user));
	return take_user(reading, user);
}

static vd_status read_trees(struct reading *reading, const char *path, const char *separator)
{
	const char *end;
	vd_status   status;

	for (; *path; path = *end ? end + 1 : end) {
		end = path + strcspn(path, separator);
		if (end == path)
			continue;
		if (reading->count == VDI_KUBECONFIGS_MAX)
			return vd_error_set(reading->reterr, VD_BAD_REQUEST, "more than %d kubeconfigs",
					    VDI_KUBECONFIGS_MAX);
		reading->paths[reading->count] = vdi_strndup(path, (size_t) (end - path));
		if (reading->paths[reading->count] == NULL)
			return vd_error_set(reading->reterr, VD_NOMEM, "out of memory");
		status = vdi_yaml_tree_read(reading->paths[reading->count], &reading->trees[reading->count],
					    reading->reterr);
		if (status == VD_OK)
			reading->count++;
		else
			vdi_free(reading->paths[reading->count]);
		if (status != VD_OK && status != VD_NOT_FOUND)
			return status;
	}
	if (reading->count)
		reading->path = reading->paths[0];
	return reading->count ? VD_OK : VD_NOT_FOUND; /* with the message of the last one */
}

static vd_status read_files(const char *path, const char *separator, const char *context,
			    struct vdi_kubeconfig *ret_config, struct vd_error *reterr)
{
	struct vdi_kubeconfig config = { 0 };
	struct reading	      reading = { .path = path, .config = &config, .reterr = reterr };
	vd_status	      status;

	(void) vd_error_set(reterr, VD_NOT_FOUND, "no kubeconfig is named");
	status = read_trees(&reading, path, separator);
	if (status == VD_OK)
		status = take_context(&reading, context);
	while (reading.count--) {
		json_decref(reading.trees[reading.count]);
		vdi_free(reading.paths[reading.count]);
	}
	if (status == VD_OK)
		*ret_config = config;
	else
		vdi_kubeconfig_fini(&config);
	return status;
}

vd_status vdi_kubeconfig_read(const char *path, const char *context, struct vdi_kubeconfig *ret_config,
			      struct vd_error *reterr)
{
	return read_files(path, "", context, ret_config, reterr);
}

vd_status vdi_kubeconfig_read_list(const char *paths, const char *context, struct vdi_kubeconfig *ret_config,
				   struct vd_error *reterr)
{
	return read_files(paths, ":", context, ret_config, reterr);
}

void vdi_kubeconfig_fini(struct vdi_kubeconfig *config)
{
	vdi_exec_plan_fini(&config->exec);
	vdi_free(config->server);
	vdi_free(config->token);
	vdi_free(config->token_file);
	vdi_free(config->server_name);
	vdi_free(config->proxy_url);
	vdi_free(config->namespace_name);
	vdi_free(config->ca_file);
	vdi_free(config->cert_file);
	vdi_free(config->key_file);
	vdi_free((void *) (uintptr_t) config->ca_data.data);
	vdi_free((void *) (uintptr_t) config->cert_data.data);
	vdi_free((void *) (uintptr_t) config->key_data.data);
	memset(config, 0, sizeof *config);
}
