/* Recording a store into an event log: its state at one revision, and everything that happens after it, each
 * revision once.
 *
 * 	PAGING (ranges at one revision) -> WATCHING (from the next one) --connection lost--> back off, WATCHING (from the last recorded one + 1)
 *
 * A log that is resumed starts with WATCHING. When what comes next was compacted away before it could be
 * recorded, recording ends with VD_EXPIRED: a log never has a gap; or, when asked to, it goes on from a new
 * list, and the log says so (recorder_relist.c). One actor, which also writes the file: it is a blocking one.
 */
#ifndef VDI_RECORDER_H
#define VDI_RECORDER_H

#include "log_writer.h"

struct vdi_recorder;

struct vdi_recorder_options {
	struct vd_store	      *store;  /* lent */
	struct vdi_log_writer *writer; /* lent; nobody else uses it until the recorder is closed */
	struct vd_bytes	       prefix; /* keys that begin so; empty: all; copied */
	vd_rev		       after;  /* go on behind this revision; 0: begin with the state */
	vd_rev		       until;  /* end when it is recorded; 0: go on for ever */
	/* The log's path: when what comes next was compacted, it is read for the keys that there are, the
	 * state is listed again, and what differs is written: puts at their revisions, deletions at the
	 * list's, then a compaction up to it and a disconnect. NULL: recording ends with VD_EXPIRED. */
	const char *relist_path; /* lent */
	vd_dur flush_interval;	 /* what was recorded is on disk after at most so long; default 1 s when 0 */
	/* The end: VD_OK (until was reached), VD_EXPIRED, a failure of the writer, VD_CLOSED (the store),
	 * VD_INVALID_ARGUMENT (after is beyond the store). Once, unless it was closed before. On the
	 * recorder's actor; close may be called from it. */
	void (*ended)(void *arg, const struct vd_error *error);
	void *arg;
};

struct vdi_recorder_position {
	vd_rev	 revision; /* recorded, or known to hold nothing to record */
	uint64_t records;
	uint64_t transactions;
	uint64_t reconnects;
	uint64_t relists;
	bool	 is_watching; /* the state is recorded */
};

/* Starts at once. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_recorder_new(const struct vd_env *env, const struct vdi_recorder_options *options,
					struct vdi_recorder **ret_recorder);
/* Any thread. */
void vdi_recorder_position_get(const struct vdi_recorder    *recorder,
			       struct vdi_recorder_position *ret_position);
/* done when it is gone; what was recorded is flushed by closing the writer then. */
void vdi_recorder_close(struct vdi_recorder *recorder, void (*done)(void *arg), void *arg);

#endif
