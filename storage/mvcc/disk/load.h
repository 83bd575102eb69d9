/* Reads checkpoint and journal at a start, and passes the live records and leases to the sink (commit.h). One
 * thread; blocks. */
#ifndef VDI_LOAD_H
#define VDI_LOAD_H

#include "journal.h"
#include "lease_table.h"
#include "record.h"

/* The place of a record that compaction removed. */
struct vdi_load_place {
	vd_rev	 revision;
	uint32_t sub;
};

struct vdi_load {
	/* Set by the first pass, except the revision. */
	vd_rev	compacted; /* -1: never */
	vd_rev	revision;  /* minimum of the store's revision: the journal's newest one */
	int64_t record_count;

	struct vdi_lease_table	       leases;
	struct vdi_load_place	      *dead;
	size_t			       dead_count;
	size_t			       dead_capacity;
	size_t			       dead_next; /* the first one that the last pass has not reached */
	const struct vdi_backend_sink *sink;
};

void vdi_load_init(struct vdi_load *load, const struct vdi_backend_sink *sink);
void vdi_load_fini(struct vdi_load *load);

/* First pass (vdi_journal_each_fn; arg is the load): finds the compacted revision and counts records. */
vd_status vdi_load_survey(void *arg, const struct vdi_segment_record *record, struct vd_error *reterr);
/* Second pass, needed if a revision is compacted: adds the records that were superseded at or before the
 * compacted revision to `dead`. */
vd_status vdi_load_bury(void *arg, const struct vdi_segment_record *record, struct vd_error *reterr);
/* Second pass for one record at or before the compacted revision. VD_NOMEM. */
vd_status vdi_load_bury_record(struct vdi_load *load, const struct vdi_record *record);
/* Called between the second and the last pass: calls the sink's begin. */
VDI_MUST_USE vd_status vdi_load_begin(struct vdi_load *load);
/* Last pass, in revision order: passes live records to the sink and gathers the leases. */
vd_status vdi_load_deliver(void *arg, const struct vdi_segment_record *record, struct vd_error *reterr);
/* Last pass for one record; takes over the reference. */
VDI_MUST_USE vd_status vdi_load_deliver_kv(struct vdi_load *load, struct vd_kv *kv, bool is_delete);
/* Passes the live leases to the sink. */
VDI_MUST_USE vd_status vdi_load_end(struct vdi_load *load);

#endif
