/* The queries of get and watch, and lists read page by page. One thread; blocks. */
#ifndef VDI_OBJECT_LIST_H
#define VDI_OBJECT_LIST_H

#include "kube_session.h"

enum vdi_output_format { VDI_AS_JSON, VDI_AS_TABLE, VDI_AS_NAMES };

/* Texts are borrowed; NULL: not set. */
struct vdi_object_query {
	struct vdi_resource_name resource;
	const char		*namespace_name; /* NULL: all, or a cluster-scoped resource */
	const char		*name;
	const char		*label_selector;
	const char		*field_selector;
	const char		*revision;
	const char		*revision_match;
	int64_t			 limit;	     /* maximum number of objects; 0: all */
	int64_t			 chunk_size; /* objects per page; 0: all in one page */
	enum vdi_output_format	 output_format;
};

/* A growing URL path with its query. */
struct vdi_text {
	char  *data;
	size_t size, capacity;
};
VDI_MUST_USE vd_status vdi_text_add(struct vdi_text *text, const char *more);
/* The same, percent-encoded. */
VDI_MUST_USE vd_status vdi_text_add_encoded(struct vdi_text *text, const char *more);
/* Appends "&name=value", or "?name=value" for the first parameter; nothing if value is NULL or "". */
VDI_MUST_USE vd_status vdi_text_add_parameter(struct vdi_text *text, const char *name, const char *value);
void		       vdi_text_fini(struct vdi_text *text);
/* Appends /api/v1/namespaces/shop/pods; with_name: and the object's name. */
VDI_MUST_USE vd_status vdi_object_path(const struct vdi_object_query *query, bool with_name,
				       struct vdi_text *path);
/* Prints "pod/web-1", "deployment.apps/web". */
void	    vdi_resource_print_name(const struct vdi_resource_name *resource, struct vd_bytes name);
const char *vdi_object_accept(enum vdi_output_format output_format);

/* One object, or one row of a Table. Slices are borrowed; names and revision are as in the JSON text, which
 * for names of objects needs no unescaping. */
struct vdi_listed {
	struct vd_bytes text;  /* the whole object, or the row */
	struct vd_bytes cells; /* of a row: a JSON array; otherwise empty */
	struct vd_bytes name, namespace_name, revision;
};

struct vdi_page {
	struct vd_bytes kind, api_version, metadata;
	struct vd_bytes columns; /* of a Table: a JSON array; otherwise empty */
	struct vd_bytes revision;
	bool		is_last;
};

struct vdi_list_sink {
	/* May be NULL. page_begin is called before the objects of each page. */
	vd_status (*page_begin)(void *arg, const struct vdi_page *page);
	vd_status (*object)(void *arg, const struct vdi_listed *listed);
	vd_status (*page_end)(void *arg, const struct vdi_page *page);
	void *arg;
};

/* Parses one object, one row, or one event's object. A Table with one row counts as that row; ret_columns
 * (may be NULL) receives its columns. */
struct vdi_object_reader;
VDI_MUST_USE vd_status	  vdi_object_reader_new(struct vdi_object_reader **ret_reader);
struct vdi_object_reader *vdi_object_reader_free(struct vdi_object_reader *reader);
VDI_MUST_USE vd_status	  vdi_object_read(struct vdi_object_reader *reader, struct vd_bytes text,
					  struct vdi_listed *ret_listed, struct vd_bytes *ret_columns,
					  struct vd_error *reterr);
/* Parses a body: a list, a Table, or a single object. Calls the sink. */
VDI_MUST_USE vd_status vdi_object_read_page(struct vdi_object_reader *reader, struct vd_bytes body,
					    const struct vdi_list_sink *sink, struct vdi_text *ret_continue,
					    struct vd_error *reterr);

/* Reads the list to its end. If a page has expired (410), continues with the token in the server's error and
 * reports it on stderr. ret_revision (may be NULL): of the first page; 64 bytes. */
VDI_MUST_USE vd_status vdi_object_list(struct vdi_kube_session *session, const struct vdi_object_query *query,
				       const struct vdi_list_sink *sink, char *ret_revision,
				       struct vd_error *reterr);

#endif
