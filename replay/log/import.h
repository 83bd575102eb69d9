/* What importers have in common: files of others become event logs. An importer is fed bytes as they come,
 * and gives what it makes of them to a sink, in the order of a log: revisions grow, all changes of one come
 * together, a snapshot stands before everything else.
 *
 * Errors are VD_BAD_REQUEST with the line (of the input) in the message, or what the sink answered. One
 * thread.
 */
#ifndef VDI_IMPORT_H
#define VDI_IMPORT_H

#include "kube_object.h"
#include "log_writer.h"

/* As the functions of log_writer.h. */
struct vdi_import_sink {
	vd_status (*change)(void *arg, bool is_delete, const struct vd_kv *kv, vd_wall time,
			    struct vd_error *reterr);
	vd_status (*commit)(void *arg, vd_rev revision, struct vd_error *reterr);
	vd_status (*snapshot)(void *arg, vd_rev revision, bool begins, struct vd_error *reterr);
	vd_status (*mark)(void *arg, enum vdi_log_kind kind, vd_rev revision, const char *text,
			  struct vd_error *reterr);
	void *arg;
};
/* A sink that writes. */
struct vdi_import_sink vdi_import_sink_of(struct vdi_log_writer *writer);

/* Where the objects of a kind lie; false: the kind is not known. */
typedef bool (*vdi_import_prefix_fn)(void *arg, struct vd_bytes api_version, struct vd_bytes kind,
				     char prefix[VDI_KUBE_PREFIX_MAX]);

/* What was in the input. */
struct vdi_import_totals {
	uint64_t read;	   /* events, objects, rows, records */
	uint64_t taken;	   /* of them, in the log */
	uint64_t skipped;  /* nothing that a store would know */
	vd_rev	 revision; /* the newest */
};

/* Changes on their way into a sink: revisions that grow, commits between them. */
struct vdi_import_order {
	const struct vdi_import_sink *sink;
	vd_rev			      open; /* of changes without their commit; 0: none */
	vd_rev			      last; /* newest revision given */
};
/* VD_BAD_REQUEST: the revision is older than what was given. */
VDI_MUST_USE vd_status vdi_import_order_change(struct vdi_import_order *order, bool is_delete,
					       const struct vd_kv *kv, vd_wall time, struct vd_error *reterr);
VDI_MUST_USE vd_status vdi_import_order_commit(struct vdi_import_order *order, struct vd_error *reterr);
/* "line 12: <message>" in front of what stands in reterr. */
vd_status vdi_import_at_line(uint64_t line, vd_status status, struct vd_error *reterr);

#endif
