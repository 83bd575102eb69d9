/* Operands and options of get and watch become a client and a query. */
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

bool vdi_object_options_resolve(const struct vdi_command *command, const struct vdi_object_options *options,
				struct vdi_http_client *client, const char **operands, size_t operand_count,
				struct vdi_object_query *ret_query, int *ret_exit)
{
	struct vdi_object_query query = { 0 };
	struct vd_error		error = { 0 };
	const char	       *type;

	*ret_exit = VDI_EXIT_USAGE;
	if (!take_apart(command, operands, operand_count, &type, &query.name))
		return false;
	if (query.name && options->all_namespaces) {
		(void) vdi_command_usage_error(command, "NAME and --all-namespaces exclude each other");
		return false;
	}
	if (query.name && (options->label_selector || options->field_selector)) {
		(void) vdi_command_usage_error(command, "NAME and a selector exclude each other");
		return false;
	}
	if (vdi_resource_lookup(client, type, &query.resource, &error) != VD_OK) {
		*ret_exit = vdi_command_failed(command, "%s", error.message);
		return false;
	}
	if (query.resource.namespaced && !options->all_namespaces)
		query.namespace_name = options->namespace_name ? options->namespace_name : "default";
	query.label_selector = options->label_selector;
	query.field_selector = options->field_selector;
	query.revision = options->revision;
	query.chunk_size = options->chunk_size;
	query.output_format = vdi_object_options_format(options);
	*ret_query = query;
	return true;
}

bool vdi_object_options_client(const struct vdi_command *command, struct vdi_object_options *options,
			       struct vdi_log_settings *log, const char *operand,
			       struct vdi_http_client **ret_client, struct vdi_etcd_source **ret_source,
			       int *ret_exit)
{
	struct vd_error error = { 0 };
	vd_status	status;

	*ret_source = NULL;
	if (!vdi_etcd_settings_check(command, &options->etcd, ret_exit))
		return false;
	if (options->etcd.urls && options->client.server) {
		*ret_exit = vdi_command_usage_error(command, "either --server or --etcd, not both");
		return false;
	}
	if (options->etcd.urls && operand == NULL) {
		*ret_exit = vdi_command_usage_error(command, "--etcd requires a RESOURCE");
		return false;
	}
	if (options->etcd.urls) {
		status = vdi_etcd_source_open(&options->etcd, options->resources, operand, log, ret_source,
					      &error);
		if (status != VD_OK) {
			(void) vdi_command_failed(
				command, "%s", *error.message ? error.message : vd_status_sentence(status));
			*ret_exit = vdi_etcd_settings_exit(status);
			return false;
		}
		options->client.socket_path = vdi_etcd_source_path(*ret_source);
	}
	if (options->client.server == NULL)
		options->client.server = VDI_DEFAULT_SERVER;
	status = vdi_http_client_new(&options->client, ret_client, &error);
	if (status == VD_OK)
		return true;
	vdi_etcd_source_close(*ret_source);
	*ret_exit = status == VD_UNAVAILABLE ? vdi_command_failed(command, "%s", error.message) :
					       vdi_command_usage_error(command, "%s", error.message);
	return false;
}
