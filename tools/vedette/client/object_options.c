/* Operands and options of get and watch become a connection and a query. */
#include "object_options.h"

#include "etcd_source.h"

static char operand_copy[512]; /* of the main thread: "pods/web-1" split at the slash */

enum vdi_output_format vdi_object_options_format(const struct vdi_object_options *options)
{
	return strcmp(options->output, "json") == 0 ? VDI_AS_JSON :
	       strcmp(options->output, "name") == 0 ? VDI_AS_NAMES :
						      VDI_AS_TABLE;
}

/* Splits the operands. Returns false after reporting an error. */
static bool take_apart(const struct vdi_command *command, const char **operands, size_t count,
		       const char **ret_type, const char **ret_name)
{
	char *slash;

	if (count == 0) {
		(void) vdi_command_usage_error(command, "RESOURCE is missing, for example: vedette %s pods",
					       command->name);
		return false;
	}
	if (strlen(operands[0]) >= sizeof operand_copy) {
		(void) vdi_command_usage_error(command, "\"%.40s...\" is too long for a resource",
					       operands[0]);
		return false;
	}
	strcpy(operand_copy, operands[0]);
	slash = strchr(operand_copy, '/');
	if (slash)
		*slash++ = 0;
	if (slash && count > 1) {
		(void) vdi_command_usage_error(command, "give either %s/%s or %s %s, not both", operand_copy,
					       slash, operand_copy, operands[1]);
		return false;
	}
	*ret_type = operand_copy;
	*ret_name = slash ? slash : count > 1 ? operands[1] : NULL;
	if (*ret_name && **ret_name == 0) {
		(void) vdi_command_usage_error(command, "the name is empty");
		return false;
	}
	return true;
}

void vdi_object_options_init(struct vdi_object_options *options)
{
	*options = (struct vdi_object_options) { .chunk_size = 500,
						 .output = "table",
						 .etcd = VDI_ETCD_SETTINGS_INIT };
	vdi_kube_settings_init(&options->kube);
}

bool vdi_object_options_query(const struct vdi_command *command, const struct vdi_object_options *options,
			      const char **operands, size_t operand_count, struct vdi_object_query *ret_query,
			      const char **ret_type, int *ret_exit)
{
	struct vdi_object_query query = { 0 };

	*ret_exit = VDI_EXIT_USAGE;
	if (!take_apart(command, operands, operand_count, ret_type, &query.name))
		return false;
	if (query.name && options->all_namespaces) {
		(void) vdi_command_usage_error(command, "NAME and --all-namespaces exclude each other");
		return false;
	}
	if (query.name && (options->label_selector || options->field_selector)) {
		(void) vdi_command_usage_error(command, "NAME and a selector exclude each other");
		return false;
	}
	query.label_selector = options->label_selector;
	query.field_selector = options->field_selector;
	query.revision = options->revision;
	query.chunk_size = options->chunk_size;
	query.output_format = vdi_object_options_format(options);
	*ret_query = query;
	return true;
}

vd_status vdi_object_options_resolve(const struct vdi_object_options *options,
				     struct vdi_kube_session *session, const char *type, vd_dur timeout,
				     struct vdi_object_query *query, struct vd_error *reterr)
{
	VDI_TRY(vdi_kube_session_find(session, type, timeout, &query->resource, reterr));
	if (query->resource.namespaced && !options->all_namespaces)
		query->namespace_name = options->namespace_name ?
						options->namespace_name :
						vd_kube_namespace(vdi_kube_session_client(session));
	return VD_OK;
}

/* ---- The connection ---- */

static bool report(const struct vdi_command *command, vd_status status, const struct vd_error *error,
		   int *ret_exit)
{
	const char *message = *error->message ? error->message : vd_status_sentence(status);

	*ret_exit = status == VD_INVALID_ARGUMENT ? vdi_command_usage_error(command, "%s", message) :
						    vdi_command_failed(command, "%s", message);
	return false;
}

/* Makes a server over the etcd, and names its socket as the server. */
static bool open_etcd(const struct vdi_command *command, struct vdi_object_options *options,
		      struct vdi_log_settings *log, const char *operand, struct vdi_etcd_source **ret_source,
		      int *ret_exit)
{
	struct vd_error error = { 0 };
	vd_status	status;

	if (vdi_kube_settings_given(&options->kube)) {
		*ret_exit = vdi_command_usage_error(command, "--etcd excludes --server and --kubeconfig");
		return false;
	}
	if (operand == NULL) {
		*ret_exit = vdi_command_usage_error(command, "--etcd requires a RESOURCE");
		return false;
	}
	status = vdi_etcd_source_open(&options->etcd, options->resources, operand, log, ret_source, &error);
	if (status != VD_OK) {
		(void) report(command, VD_UNAVAILABLE, &error, ret_exit);
		*ret_exit = vdi_etcd_settings_exit(status);
		return false;
	}
	options->kube.client.server = vdi_etcd_source_url(*ret_source);
	return true;
}

/* The commands report failures themselves; messages of the client about them would repeat these. */
static vd_status open_session(const struct vd_kube_options *options, struct vdi_log_settings *log,
			      struct vdi_object_connection *connection, struct vd_error *reterr)
{
	struct vd_env_options env = VD_ENV_OPTIONS_INIT;

	env.log = vdi_command_log;
	env.log_arg = log;
	env.log_level = vdi_command_log_level(log);
	if (env.log_level == VD_LOG_INFO)
		env.log_level = VD_LOG_ERROR;
	env.threads = 1;
	VDI_TRY(vd_env_new_threads(&env, &connection->env));
	return vdi_kube_session_new(connection->env, options, &connection->session, reterr);
}

bool vdi_object_connect(const struct vdi_command *command, struct vdi_object_options *options,
			struct vdi_log_settings *log, const char *operand,
			struct vdi_object_connection *ret_connection, int *ret_exit)
{
	struct vdi_object_connection connection = { 0 };
	struct vd_kube_options	    *client = &options->kube.client;
	struct vd_error		     error = { 0 };
	vd_status		     status;

	if (!vdi_etcd_settings_check(command, &options->etcd, ret_exit))
		return false;
	if (options->etcd.urls) {
		if (!open_etcd(command, options, log, operand, &connection.source, ret_exit))
			return false;
	} else if (client->context && client->kubeconfig == NULL) {
		*ret_exit = vdi_command_usage_error(command, "--context requires --kubeconfig");
		return false;
	} else if (!vdi_kube_settings_given(&options->kube)) {
		client->server = VDI_DEFAULT_SERVER;
	}
	if (!vdi_kube_settings_check(command, &options->kube, ret_exit)) {
		vdi_object_disconnect(&connection);
		return false;
	}
	status = open_session(client, log, &connection, &error);
	if (status == VD_OK) {
		*ret_connection = connection;
		return true;
	}
	vdi_object_disconnect(&connection);
	return report(command, client->kubeconfig ? VD_UNAVAILABLE : status, &error, ret_exit);
}

void vdi_object_disconnect(struct vdi_object_connection *connection)
{
	vdi_kube_session_free(connection->session);
	(void) vd_env_free(connection->env);
	vdi_etcd_source_close(connection->source);
	memset(connection, 0, sizeof *connection);
}
