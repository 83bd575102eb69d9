/* vedette get: prints an object or a list. */
#include <stdio.h>

#include "etcd_source.h"
#include "get_history.h"
#include "json_print.h"
#include "object_options.h"
#include "table_print.h"

#define FIND_TIMEOUT VD_SECONDS(30)

struct get {
	const struct vdi_object_query *query;
	struct vdi_table_printer       table;
	bool			       is_list;
	int64_t			       count;
};

/* ---- Printing ---- */

static void print_member(const char *name, struct vd_bytes value)
{
	printf("    \"%s\": \"%.*s\",\n", name, (int) value.size,
	       value.size ? (const char *) value.data : "");
}

static vd_status page_begin(void *arg, const struct vdi_page *page)
{
	struct get *get = arg;

	if (get->query->output_format == VDI_AS_TABLE)
		return vdi_table_printer_columns(&get->table, page->columns);
	if (get->query->output_format == VDI_AS_JSON && get->is_list && get->count == 0 &&
	    get->table.row_count++ == 0) {
		printf("{\n");
		print_member("kind", page->kind);
		print_member("apiVersion", page->api_version);
		printf("    \"metadata\": {\n        \"resourceVersion\": \"%.*s\"\n    },\n    \"items\": [",
		       (int) page->revision.size,
		       page->revision.size ? (const char *) page->revision.data : "");
	}
	return VD_OK;
}

static vd_status print_object(void *arg, const struct vdi_listed *listed)
{
	struct get *get = arg;

	get->count++;
	switch (get->query->output_format) {
	case VDI_AS_TABLE:
		return vdi_table_printer_row(&get->table, NULL, listed->namespace_name, listed->name,
					     listed->cells);
	case VDI_AS_NAMES:
		vdi_resource_print_name(&get->query->resource, listed->name);
		putchar('\n');
		return VD_OK;
	default:
		if (!get->is_list) {
			vdi_json_print(listed->text);
			return VD_OK;
		}
		printf("%s\n        ", get->count > 1 ? "," : "");
		vdi_json_print_at(listed->text, 2);
		return VD_OK;
	}
}

static vd_status page_end(void *arg, const struct vdi_page *page)
{
	struct get *get = arg;

	(void) page;
	if (get->query->output_format == VDI_AS_TABLE)
		vdi_table_printer_flush(&get->table);
	return VD_OK;
}

static void report_none_found(const struct get *get)
{
	if (get->query->namespace_name)
		fprintf(stderr, "No resources found in %s namespace.\n", get->query->namespace_name);
	else
		fprintf(stderr, "No resources found.\n");
}

static int print_list(const struct vdi_command *command, struct vdi_kube_session *session,
		      struct vdi_object_query *query, const struct vdi_object_options *options)
{
	struct get	     get = { .query = query, .is_list = query->name == NULL };
	struct vdi_list_sink sink = { page_begin, print_object, page_end, &get };
	struct vd_error	     error = { 0 };
	vd_status	     status;

	get.table.wide = strcmp(options->output, "wide") == 0;
	get.table.no_header = options->no_headers;
	get.table.with_namespace = options->all_namespaces && query->resource.namespaced;
	status = vdi_object_list(session, query, &sink, NULL, &error);
	vdi_table_printer_fini(&get.table);
	if (status != VD_OK)
		return vdi_command_failed(command, "%s",
					  *error.message ? error.message : vd_status_sentence(status));
	if (query->output_format == VDI_AS_JSON && get.is_list)
		printf("%s]\n}\n", get.count ? "\n    " : "");
	else if (get.count == 0)
		report_none_found(&get);
	return fflush(stdout) == 0 && !ferror(stdout) ? VDI_EXIT_OK : VDI_EXIT_FAILED;
}

static int print_raw(const struct vdi_command *command, struct vdi_kube_session *session, const char *path)
{
	struct vdi_kube_reply answer = { 0 };
	struct vd_error	      error = { 0 };
	vd_status	      status;

	if (*path != '/')
		return vdi_command_usage_error(command, "the path must start with '/': --raw /readyz");
	status = vdi_kube_session_request(session, "GET", path, "application/json, */*", NULL, &answer,
					  &error);
	if (status == VD_OK)
		fwrite(answer.body, 1, answer.size, stdout);
	vdi_kube_reply_fini(&answer);
	return status == VD_OK ? VDI_EXIT_OK : vdi_command_failed(command, "%s", error.message);
}

static int print_objects(const struct vdi_command *command, struct vdi_kube_session *session,
			 struct vdi_object_query *query, const struct vdi_object_options *options,
			 int64_t limit, const char *match)
{
	query->limit = limit;
	if (options->revision && query->name == NULL && strcmp(options->revision, "0") != 0)
		query->revision_match = match ? match : "NotOlderThan";
	return print_list(command, session, query, options);
}

/* ---- The command ---- */

static int run(const struct vdi_command *command, int argc, char **argv)
{
	struct vdi_object_options    options;
	struct vdi_log_settings	     log = VDI_LOG_SETTINGS_INIT;
	struct vdi_object_query	     query;
	struct vdi_object_connection connection;
	const char		    *raw = NULL, *match = NULL, *diff = NULL, *since = NULL, *operands[2];
	bool			     history = false;
	int64_t			     limit = 0;
	const char		    *type;
	struct vdi_kube_session	    *session;
	struct vd_error		     error = { 0 };
	size_t			     operand_count;
	int			     status;
	const struct vdi_option	     table[] = {
		     VDI_OBJECT_OPTION_TABLE(&options),
		     { 0, "limit", VDI_OPTION_NUMBER, "N", "maximum number of objects", &limit },
		     { 0, "resource-version", VDI_OPTION_TEXT, "N",
		       "resourceVersion of the list (see --resource-version-match); 0: the cached state",
		       &options.revision },
		     { 0, "resource-version-match", VDI_OPTION_CHOICE, "RULE",
		       "rule for --resource-version: Exact or NotOlderThan (default NotOlderThan)", &match,
		       "Exact|NotOlderThan" },
		     { 0, "history", VDI_OPTION_FLAG, NULL,
		       "print the changes of the object in the server's history", &history },
		     { 0, "since", VDI_OPTION_TEXT, "N", "with --history: changes after this resourceVersion",
		       &since },
		     { 0, "diff", VDI_OPTION_TEXT, "A..B",
		       "print the differences between two resourceVersions; A alone: A and now", &diff },
		     { 0, "raw", VDI_OPTION_TEXT, "PATH", "print the server's response for this path", &raw },
	};

	vdi_object_options_init(&options);
	if (!vdi_command_parse(command, table, VDI_ARRAY_SIZE(table), argc, argv, operands,
			       VDI_ARRAY_SIZE(operands), &operand_count, &log, &status))
		return status;
	if (raw && operand_count)
		return vdi_command_usage_error(command, "--raw takes no resource");
	if (match && options.revision == NULL)
		return vdi_command_usage_error(command,
					       "--resource-version-match requires --resource-version");
	if (raw == NULL && operand_count == 0)
		return vdi_command_usage_error(command, "RESOURCE is missing, for example: vedette get pods");
	if (history + (diff != NULL) + (raw != NULL) > 1)
		return vdi_command_usage_error(command, "--history, --diff and --raw exclude each other");
	if (since && !history)
		return vdi_command_usage_error(command, "--since requires --history");
	if (raw == NULL &&
	    !vdi_object_options_query(command, &options, operands, operand_count, &query, &type, &status))
		return status;
	if (!vdi_object_connect(command, &options, &log, operand_count ? operands[0] : NULL, &connection,
				&status))
		return status;
	session = connection.session;
	if (raw) {
		status = print_raw(command, session, raw);
	} else if (vdi_object_options_resolve(&options, session, type, FIND_TIMEOUT, &query, &error) !=
		   VD_OK) {
		status = vdi_command_failed(command, "%s", error.message);
	} else {
		if (history && query.name == NULL)
			status = vdi_command_usage_error(
				command,
				"--history needs a NAME, for example: vedette get pods web-1 --history");
		else if (history)
			status = vdi_get_history(command, session, &query, since);
		else if (diff)
			status = vdi_get_diff(command, session, &query, diff);
		else
			status = print_objects(command, session, &query, &options, limit, match);
	}
	vdi_object_disconnect(&connection);
	return status;
}

const struct vdi_command vdi_command_get = {
	.name = "get",
	.summary = "Print objects of an API server or an etcd.",
	.usage = "vedette get [options] RESOURCE [NAME]",
	.details = "RESOURCE is a name from the server's discovery: pods, pod, po,\n"
		   "deployments.apps, deployments.v1.apps. The default server is\n" VDI_DEFAULT_SERVER
		   ". With --etcd URL it needs no server: it reads the\n"
		   "objects from etcd, through its own cache.\n"
		   "Exit status: 0 success (even if there are no objects), 1 failure, 2 usage error.\n",
	.examples = "  vedette get pods -n shop\n"
		    "  vedette get deploy web -n shop -o json\n"
		    "  vedette get pods -A -l app=web --field-selector spec.nodeName=node-1\n"
		    "  vedette get --etcd http://127.0.0.1:2379 pods -A\n"
		    "  vedette get pod web-1 -n shop --history\n"
		    "  vedette get pods -n shop --diff 1200..1350\n"
		    "  vedette get --raw /debug/vedette\n",
	.run = run,
};
