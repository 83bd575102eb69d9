/* The recorder: records a store into an event log, first its state at one revision, then everything that
 * happens after it, each revision once.
 *
 *   PAGING (ranges at one revision) -> WATCHING (from the next revision)
 *   WATCHING --connection lost, back off--> WATCHING (from the last recorded revision + 1)
 *
 * A resumed log starts with WATCHING. If the next revision was compacted before it could be recorded,
 * recording ends with VD_EXPIRED, because a log never has a silent gap; as an option it continues from a new
 * list, and the log contains the gap (recorder_relist.c). One actor, which also writes the file, so it is a
 * blocking one.
 */
#ifndef VDI_RECORDER_H
#define VDI_RECORDER_H

#include "log_writer.h"

struct vdi_recorder;

struct vdi_recorder_options {
	struct vd_store	      *store;  /* borrowed */
	struct vdi_log_writer *writer; /* borrowed; used by nothing else until the recorder is closed */
	struct vd_bytes	       prefix; /* prefix of the recorded keys; empty: all; copied */
	vd_rev		       after;  /* continue after this revision; 0: start with the state */
	vd_rev		       until;  /* end when this revision is recorded; 0: no end */
	/* Path of the log. If the next revision was compacted, the recorder reads the log for its keys, lists
	 * the state again and writes the difference: puts at their revisions, deletions at the list's, then a
	 * compaction up to it and a disconnect. NULL: recording ends with VD_EXPIRED. */
	const char *relist_path;    /* borrowed */
	vd_dur	    flush_interval; /* recorded changes are on disk after at most this time; 0: 1 s */
	/* Called at the end, once, unless the recorder was closed before: VD_OK (until was reached),
	 * VD_EXPIRED, an error of the writer, VD_CLOSED (of the store), VD_INVALID_ARGUMENT (after is greater
	 * than the store's revision). On the recorder's actor; close may be called from it. */
	void (*ended)(void *arg, const struct vd_error *error);
	void *arg;
};

struct vdi_recorder_progress {
	vd_rev	 revision; /* recorded, or without changes to record */
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
void vdi_recorder_progress_get(const struct vdi_recorder    *recorder,
			       struct vdi_recorder_progress *ret_progress);
/* Calls done when the recorder is gone. Closing the writer then flushes the recorded changes. */
void vdi_recorder_close(struct vdi_recorder *recorder, void (*done)(void *arg), void *arg);

#endif
