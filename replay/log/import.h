/* The common part of importers, which convert other formats to event logs. An importer is fed bytes as they
 * arrive, and passes changes to a sink in the order of a log: revisions increase, all changes of a revision
 * are together, a snapshot comes first.
 *
 * Errors are VD_BAD_REQUEST with the line of the input in the message, or the sink's error. One thread.
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
/* Returns a sink that writes to writer. */
struct vdi_import_sink vdi_import_sink_of(struct vdi_log_writer *writer);

/* Returns the key prefix of a kind's objects; false: the kind is unknown. */
typedef bool (*vdi_import_prefix_fn)(void *arg, struct vd_bytes api_version, struct vd_bytes kind,
				     char prefix[VDI_KUBE_PREFIX_MAX]);

/* Counts of the input. */
struct vdi_import_totals {
	uint64_t read;	   /* events, objects, rows, records */
	uint64_t taken;	   /* of them, written to the log */
	uint64_t skipped;  /* without an effect on a store */
	vd_rev	 revision; /* newest one */
};

/* The order of changes passed to a sink: increasing revisions, with commits between them. */
struct vdi_import_order {
	const struct vdi_import_sink *sink;
	vd_rev			      open; /* revision whose changes are not committed; 0: none */
	vd_rev			      last; /* newest revision passed */
};
/* VD_BAD_REQUEST: the revision is older than the last one. */
VDI_MUST_USE vd_status vdi_import_order_change(struct vdi_import_order *order, bool is_delete,
					       const struct vd_kv *kv, vd_wall time, struct vd_error *reterr);
VDI_MUST_USE vd_status vdi_import_order_commit(struct vdi_import_order *order, struct vd_error *reterr);
/* Inserts "line 12: " before the message in reterr. */
vd_status vdi_import_at_line(uint64_t line, vd_status status, struct vd_error *reterr);

#endif
