/* The common options of get and watch: the server or etcd, the selection of objects, the output format. */
#ifndef VDI_OBJECT_OPTIONS_H
#define VDI_OBJECT_OPTIONS_H

#include "command_line.h"
#include "etcd_options.h"
#include "kube_options.h"
#include "object_list.h"

struct vdi_object_options {
	struct vdi_kube_settings kube;
	const char		*namespace_name;
	bool			 all_namespaces;
	const char		*label_selector, *field_selector, *revision;
	int64_t			 chunk_size;
	const char		*output;
	bool			 no_headers;
	struct vdi_etcd_settings etcd; /* instead of a server */
	const char		*resources;
};
/* The formatter breaks rows of a table within a macro. */
/* clang-format off */
#define VDI_OBJECT_OPTION_TABLE(options) \
	VDI_KUBE_OPTION_TABLE(&(options)->kube), \
	{ 'n', "namespace", VDI_OPTION_TEXT, "NAME", \
	  "namespace of the objects (default: that of the kubeconfig's context, or \"default\")", \
	  &(options)->namespace_name }, \
	{ 'A', "all-namespaces", VDI_OPTION_FLAG, NULL, \
	  "objects of all namespaces", &(options)->all_namespaces }, \
	{ 'l', "selector", VDI_OPTION_TEXT, "LABELS", \
	  "only objects with these labels: 'app=web,tier!=db,env in (a,b)'", &(options)->label_selector }, \
	{ 0, "field-selector", VDI_OPTION_TEXT, "FIELDS", \
	  "only objects with these fields: 'spec.nodeName=node-1'", &(options)->field_selector }, \
	{ 'o', "output", VDI_OPTION_CHOICE, "FORMAT", \
	  "output format: table, wide, name or json (default table)", &(options)->output, \
	  "json|name|table|wide" }, \
	{ 0, "no-headers", VDI_OPTION_FLAG, NULL, \
	  "omit the line with the column names", &(options)->no_headers }, \
	{ 0, "chunk-size", VDI_OPTION_NUMBER, "N", \
	  "maximum objects per list request; 0: no limit (default 500)", &(options)->chunk_size }, \
	VDI_ETCD_OPTION_TABLE(&(options)->etcd), \
	{ 0, "resources", VDI_OPTION_TEXT, "FILE", \
	  "with --etcd: additional kinds (JSON), as for serve", &(options)->resources }
/* clang-format on */

/* Call before the options are parsed. */
void vdi_object_options_init(struct vdi_object_options *options);

/* The server of the commands: a remote one, or one of a single kind in this process over an etcd. */
struct vdi_etcd_source;
struct vdi_object_connection {
	struct vd_env		*env;
	struct vdi_etcd_source	*source; /* NULL: a server was named */
	struct vdi_kube_session *session;
};
/* Opens a connection to the server in the options (default VDI_DEFAULT_SERVER), or to a cache over their etcd
 * (etcd_source.h). operand: the requested resource, or NULL. Sends nothing to a server. false: the error was
 * reported, *ret_exit is the exit status. */
bool vdi_object_connect(const struct vdi_command *command, struct vdi_object_options *options,
			struct vdi_log_settings *log, const char *operand,
			struct vdi_object_connection *ret_connection, int *ret_exit);
/* Accepts a zeroed connection. */
void vdi_object_disconnect(struct vdi_object_connection *connection);

/* Parses the operands "pods web-1", "pods/web-1" or "pods" into all but the resource and its namespace.
 * *ret_type: the typed resource. false: the error was reported, *ret_exit is the exit status. */
bool vdi_object_options_query(const struct vdi_command *command, const struct vdi_object_options *options,
			      const char **operands, size_t operand_count, struct vdi_object_query *ret_query,
			      const char **ret_type, int *ret_exit);
/* Sets the resource and its namespace. Errors as of vdi_kube_session_find. */
VDI_MUST_USE vd_status vdi_object_options_resolve(const struct vdi_object_options *options,
						  struct vdi_kube_session *session, const char *type,
						  vd_dur timeout, struct vdi_object_query *query,
						  struct vd_error *reterr);
enum vdi_output_format vdi_object_options_format(const struct vdi_object_options *options);

#endif
