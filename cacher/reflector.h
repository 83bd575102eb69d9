/* The reflector: keeps the watch cache equal to the store. It lists and watches in one stream, resumes the
 * stream after transient errors, and lists again only if it must.
 *
 *   LISTING     --annotated bookmark-->                       BACKFILLING (first fill only)
 *   BACKFILLING --replace, ready-->                           WATCHING (later fills: from LISTING)
 *   WATCHING    --end of stream, transient error; back off--> WATCHING, from the last revision
 *   WATCHING    --Expired, undecodable, revisions went back;
 *                 pending, all watches end; back off-->       LISTING
 *
 * Runs on the cacher's actor. Mirrors client-go tools/cache/reflector.go as the cacher uses it. It keeps the
 * cache after every error after which the same revision can be watched again.
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
	struct vdi_watchchan	*watchchan; /* NULL: closed until retry_at */
	vd_mono			 opened;
	bool			 has_events; /* received by this watchChan */
	vd_mono			 started;    /* start of this list, for the duration metric */

	/* Events taken from the stream and not yet applied; a revision is applied as a whole. */
	struct vdi_watchchan_event *events;
	size_t			    event_count;
	size_t			    event_capacity;
	bool			    apply_failed; /* out of memory; repeated at retry_at */

	/* LISTING: the initial state, in key order. */
	struct vd_object **loading;
	size_t		   loading_count;
	size_t		   loading_capacity;
	int64_t		   loading_bytes; /* serialized */

	/* BACKFILLING: the listed state, held back until its history is read (backfill.h). */
	struct vdi_watchchan	   *backfill;
	struct vdi_backfill_listed *backfill_listed; /* owned by the backfill until its stream is closed */
	struct vdi_btree	    pending;
	vd_rev			    pending_revision;
	int64_t			    pending_bytes;   /* serialized size of the objects; -1: unknown */
	vd_mono			    backfill_ask_at; /* next progress request; 0: at once */
	vd_mono			    backfill_due;

	vd_mono	 retry_at;
	vd_dur	 backoff;
	vd_mono	 last_backoff;
	vd_mono	 progress_at;
	bool	 progress_answered;
	uint64_t waits_seen; /* number of waits at the last progress request */
	uint64_t relists;
	uint64_t resumes;
	uint64_t undecodable;
};

#define VDI_BACKOFF_FIRST VD_MS(800)
#define VDI_BACKOFF_MAX VD_SECONDS(30)
#define VDI_BACKOFF_RESET VD_SECONDS(120)
#define VDI_PROGRESS_PERIOD VD_MS(100)

void vdi_reflector_init(struct vdi_reflector *reflector);
/* Runs one bounded step: takes received events, applies and dispatches them. Returns the latest time of the
 * next call; *ret_more: call again at once. */
vd_mono vdi_reflector_run(struct vd_cacher *cacher, bool *ret_more);
/* Replaces the cache by the listed state; the history continues from the backfill, or starts anew. For
 * backfill.c. */
void vdi_reflector_fill(struct vd_cacher *cacher, bool keep_history);
/* Callbacks for the cacher's watchChans: events are available; a stream is closed. */
void vdi_reflector_wake(void *cacher);
void vdi_reflector_stream_closed(void *cacher);
/* Requests the store's progress if the store may be ahead of the cache. The cacher's actor. */
void vdi_reflector_ask_progress(struct vd_cacher *cacher);
/* Invalidates the cache, ends all watches and lists again. The cacher's actor. */
void vdi_reflector_relist(struct vd_cacher *cacher, const char *why);
/* Closes the streams. */
void vdi_reflector_stop(struct vd_cacher *cacher);
void vdi_reflector_fini(struct vdi_reflector *reflector);

#endif
