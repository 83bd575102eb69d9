/* The common options of get and watch: the server or etcd, the selection of objects, the output format. */
#ifndef VDI_OBJECT_OPTIONS_H
#define VDI_OBJECT_OPTIONS_H

#include "command_line.h"
#include "etcd_options.h"
#include "object_list.h"

struct vdi_object_options {
	struct vdi_http_client_options client;
	const char		      *namespace_name;
	bool			       all_namespaces;
	const char		      *label_selector, *field_selector, *revision;
	int64_t			       chunk_size;
	const char		      *output;
	bool			       no_headers;
	struct vdi_etcd_settings       etcd; /* instead of a server */
	const char		      *resources;
};
#define VDI_OBJECT_OPTIONS_INIT                                                                              \
	{                                                                                                    \
		.chunk_size = 500, .output = "table", .etcd = VDI_ETCD_SETTINGS_INIT                         \
	}

#define VDI_OBJECT_OPTION_TABLE(options)                                                                     \
	{ 's',                                                                                               \
	  "server",                                                                                          \
	  VDI_OPTION_TEXT,                                                                                   \
	  "URL",                                                                                             \
	  "address of the API server (default " VDI_DEFAULT_SERVER ")",                                      \
	  &(options)->client.server },                                                                       \
		{ 'n',                                                                                       \
		  "namespace",                                                                               \
		  VDI_OPTION_TEXT,                                                                           \
		  "NAME",                                                                                    \
		  "namespace of the objects (default \"default\")",                                          \
		  &(options)->namespace_name },                                                              \
		{ 'A',                                                                                       \
		  "all-namespaces",                                                                          \
		  VDI_OPTION_FLAG,                                                                           \
		  NULL,                                                                                      \
		  "objects of all namespaces",                                                               \
		  &(options)->all_namespaces },                                                              \
		{ 'l',                                                                                       \
		  "selector",                                                                                \
		  VDI_OPTION_TEXT,                                                                           \
		  "LABELS",                                                                                  \
		  "only objects with these labels: 'app=web,tier!=db,env in (a,b)'",                         \
		  &(options)->label_selector },                                                              \
		{ 0,                                                                                         \
		  "field-selector",                                                                          \
		  VDI_OPTION_TEXT,                                                                           \
		  "FIELDS",                                                                                  \
		  "only objects with these fields: 'spec.nodeName=node-1'",                                  \
		  &(options)->field_selector },                                                              \
		{ 'o',                                                                                       \
		  "output",                                                                                  \
		  VDI_OPTION_CHOICE,                                                                         \
		  "FORMAT",                                                                                  \
		  "output format: table, wide, name or json (default table)",                                \
		  &(options)->output,                                                                        \
		  "json|name|table|wide" },                                                                  \
		{ 0,                                                                                         \
		  "no-headers",                                                                              \
		  VDI_OPTION_FLAG,                                                                           \
		  NULL,                                                                                      \
		  "omit the line with the column names",                                                     \
		  &(options)->no_headers },                                                                  \
		{ 0,                                                                                         \
		  "chunk-size",                                                                              \
		  VDI_OPTION_NUMBER,                                                                         \
		  "N",                                                                                       \
		  "maximum objects per list request; 0: no limit (default 500)",                             \
		  &(options)->chunk_size },                                                                  \
		{ 0, "token", VDI_OPTION_TEXT, "TOKEN", "bearer token", &(options)->client.token },          \
		{ 0,                                                                                         \
		  "cacert",                                                                                  \
		  VDI_OPTION_TEXT,                                                                           \
		  "FILE",                                                                                    \
		  "CA bundle for verifying the server's certificate",                                        \
		  &(options)->client.ca_file },                                                              \
		{ 0, "cert", VDI_OPTION_TEXT, "FILE", "client certificate", &(options)->client.cert_file },  \
		{ 0,                                                                                         \
		  "key",                                                                                     \
		  VDI_OPTION_TEXT,                                                                           \
		  "FILE",                                                                                    \
		  "private key of the client certificate",                                                   \
		  &(options)->client.key_file },                                                             \
		{ 0,                                                                                         \
		  "insecure",                                                                                \
		  VDI_OPTION_FLAG,                                                                           \
		  NULL,                                                                                      \
		  "do not verify the server's certificate",                                                  \
		  &(options)->client.insecure },                                                             \
		VDI_ETCD_OPTION_TABLE(&(options)->etcd),                                                     \
	{                                                                                                    \
		0, "resources", VDI_OPTION_TEXT, "FILE",                                                     \
			"with --etcd: additional kinds (JSON), as for serve", &(options)->resources          \
	}

/* Creates a client of the server, or of a cache over the etcd in the options (etcd_source.h; *ret_source,
 * otherwise NULL). operand: the requested resource, or NULL. false: the error was reported, *ret_exit is the
 * exit status. */
struct vdi_etcd_source;
bool vdi_object_options_client(const struct vdi_command *command, struct vdi_object_options *options,
			       struct vdi_log_settings *log, const char *operand,
			       struct vdi_http_client **ret_client, struct vdi_etcd_source **ret_source,
			       int *ret_exit);

/* Parses the operands "pods web-1", "pods/web-1" or "pods", and looks the resource up. false: the error was
 * reported, *ret_exit is the exit status. */
bool vdi_object_options_resolve(const struct vdi_command *command, const struct vdi_object_options *options,
				struct vdi_http_client *client, const char **operands, size_t operand_count,
				struct vdi_object_query *ret_query, int *ret_exit);
enum vdi_output_format vdi_object_options_format(const struct vdi_object_options *options);

#endif
