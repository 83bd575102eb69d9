/* The reflector: keeps the watch cache equal to the store. Lists and watches in one stream, resumes it,
 * starts over only when it must.
 *
 *   LISTING --annotated bookmark--> BACKFILLING (first fill only) --replace, ready--> WATCHING --end of stream or a passing error--> (back off) --> WATCHING from the last revision
 *      ^-------------- (back off) <-- Expired, undecodable, revisions going back: pending, all watches end --/
 *
 * Part of the cacher's actor. Mirrors client-go tools/cache/reflector.go as the cacher uses it
 * (R-301..R-341); it keeps the cache over every error after which the same revision can be watched again
 * (R-312, R-313, R-318).
 */
#ifndef VDI_REFLECTOR_H
#define VDI_REFLECTOR_H

#include "base.h"
#include "btree.h"
#include "watchchan.h"

struct vd_cacher;

enum vdi_reflector_phase { VDI_REFLECTOR_LISTING, VDI_REFLECTOR_BACKFILLING, VDI_REFLECTOR_WATCHING };

struct vdi_reflector {
	enum vdi_reflector_phase phase;
	struct vdi_watchchan	*watchchan; /* NULL: waiting for retry_at */
	vd_mono			 opened;
	bool			 has_events; /* of this watchChan */
	vd_mono			 started;    /* of this listing, for the duration metric */

	/* Taken and not applied: a revision is applied whole. */
	struct vdi_watchchan_event *events;
	size_t			    event_count;
	size_t			    event_capacity;
	bool			    apply_failed; /* out of memory: again at retry_at */

	/* LISTING: the initial state, in key order. */
	struct vd_object **loading;
	size_t		   loading_count;
	size_t		   loading_capacity;
	int64_t		   loading_bytes; /* serialized */

	/* BACKFILLING: the state that waits for its history (backfill.h). */
	struct vdi_watchchan	   *backfill;
	struct vdi_backfill_listed *backfill_listed; /* the backfill's own, until its stream is gone */
	struct vdi_btree	    pending;
	vd_rev			    pending_revision;
	int64_t			    pending_bytes;   /* of the objects, serialized; -1: not known */
	vd_mono			    backfill_ask_at; /* for progress */
	vd_mono			    backfill_due;

	vd_mono	 retry_at;
	vd_dur	 backoff;
	vd_mono	 last_backoff;
	vd_mono	 progress_at;
	bool	 progress_answered;
	uint64_t waits_seen; /* when progress was asked for last */
	uint64_t relists;
	uint64_t resumes;
	uint64_t undecodable;
};

#define VDI_BACKOFF_FIRST VD_MS(800)
#define VDI_BACKOFF_MAX VD_SECONDS(30)
#define VDI_BACKOFF_RESET VD_SECONDS(120)
#define VDI_PROGRESS_PERIOD VD_MS(100)

void vdi_reflector_init(struct vdi_reflector *reflector);
/* A bounded round: takes what came, applies, dispatches. Returns when to call again at the latest; *ret_more:
 * at once. */
vd_mono vdi_reflector_run(struct vd_cacher *cacher, bool *ret_more);
/* The listed state becomes the cache; the history goes on from the backfill or starts over. For
 * backfill.c. */
void vdi_reflector_fill(struct vd_cacher *cacher, bool keep_history);
/* For watchChans of the cacher: wakes its actor; a stream of it is gone. */
void vdi_reflector_wake(void *cacher);
void vdi_reflector_stream_closed(void *cacher);
/* Asks the store for its progress if it is ahead of the cache. The cacher's actor. */
void vdi_reflector_ask_progress(struct vd_cacher *cacher);
/* What is cached is not to be trusted: everybody's watch ends, and it is listed again. The cacher's actor. */
void vdi_reflector_relist(struct vd_cacher *cacher, const char *why);
/* Closes the streams. */
void vdi_reflector_stop(struct vd_cacher *cacher);
void vdi_reflector_fini(struct vdi_reflector *reflector);

#endif
