/* A start: what checkpoint and journal hold, turned into what the sink of backend.h is promised. One thread;
 * blocks. */
#ifndef VDI_LOAD_H
#define VDI_LOAD_H

#include "journal.h"
#include "lease_table.h"
#include "record.h"

/* The place of a record that compaction must not let through. */
struct vdi_load_place {
	vd_rev	 revision;
	uint32_t sub;
};

struct vdi_load {
	/* What was found; set by the first pass, but for the revision. */
	vd_rev	compacted; /* -1: never */
	vd_rev	revision;  /* least one the store must stand at: the journal's newest */
	int64_t record_count;

	struct vdi_lease_table	       leases;
	struct vdi_load_place	      *dead;
	size_t			       dead_count;
	size_t			       dead_capacity;
	size_t			       dead_next; /* the first that was not passed yet */
	const struct vdi_backend_sink *sink;
};

void vdi_load_init(struct vdi_load *load, const struct vdi_backend_sink *sink);
void vdi_load_fini(struct vdi_load *load);

/* First pass (vdi_journal_each_fn): arg is the load. Learns compaction and number of records. */
vd_status vdi_load_survey(void *arg, const struct vdi_segment_record *record, struct vd_error *reterr);
/* Second pass, needed when something is compacted: notes what was superseded at or before the compacted
 * revision. */
vd_status vdi_load_bury(void *arg, const struct vdi_segment_record *record, struct vd_error *reterr);
/* The same for one record at or before the compacted revision. VD_NOMEM. */
vd_status vdi_load_bury_record(struct vdi_load *load, const struct vdi_record *record);
/* Between the passes: everything that is dead has been noted. Calls the sink's begin. */
VDI_MUST_USE vd_status vdi_load_begin(struct vdi_load *load);
/* Last pass, in revision order: gives the sink what is not dead and notes the leases. */
vd_status vdi_load_deliver(void *arg, const struct vdi_segment_record *record, struct vd_error *reterr);
/* The same for one record; takes over the reference. */
VDI_MUST_USE vd_status vdi_load_deliver_kv(struct vdi_load *load, struct vd_kv *kv, bool is_delete);
/* Gives the sink the leases that live. */
VDI_MUST_USE vd_status vdi_load_end(struct vdi_load *load);

#endif
