/* The inside of a watchChan, shared by the files of this folder. */
#ifndef VDI_WATCHCHAN_STATE_H
#define VDI_WATCHCHAN_STATE_H

#include "env.h"
#include "lock.h"
#include "raw_event.h"
#include "storage_metrics.h"

/*   STARTING --revision known--> SYNCING --last page queued--> STREAMING --store ended it--> ENDED
 *       \______ no initial state wanted ______________________/^             ^
 *        \____________________________error________________________________/
 */
enum vdi_watchchan_phase { VDI_PHASE_STARTING, VDI_PHASE_SYNCING, VDI_PHASE_STREAMING, VDI_PHASE_ENDED };

struct vdi_decode_worker {
	struct vdi_watchchan *watchchan;
	struct vd_actor	     *actor;
};

#define VDI_DECODE_WORKERS_MAX 16

struct vdi_watchchan {
	/* Fixed at creation. */
	const struct vd_env	    *env;
	struct vd_store		    *store;
	struct vdi_watchchan_options options;
	char			    *key;	/* own copy of options.key */
	struct vd_bytes		     range_end; /* own copy of the prefix end; empty for a single key */
	struct vd_actor		    *actor;
	struct vdi_decode_worker     workers[VDI_DECODE_WORKERS_MAX];

	/* The actor only. */
	enum vdi_watchchan_phase phase;
	vd_rev			 base_revision; /* events after this one are streamed */
	uint64_t slot_head, slot_tail;	  /* next to take out, next to fill; index modulo the ring's length */
	uint64_t slot_decode;		  /* next to decode inline */
	struct vd_kv	      **page_kvs; /* the page at hand; references */
	size_t			page_count, page_next;
	bool			page_more;
	struct vd_store_stream *stream; /* the initial state comes in one long read; NULL: in pages */
	struct vd_store_part	part;	/* of the stream, lent until the next; page_next counts in it too */
	bool			has_part;
	struct vd_store_batch	batch; /* lent by the store until the next call */
	size_t			batch_next;
	bool			waiting_for_store;
	bool			quiet_end;     /* the stream ends without an error event */
	bool			error_pending; /* the error event waits for a slot */
	bool		revision_open; /* the last event handed over said that more of its revision follows */
	bool		done;	       /* the error event has been handed over */
	size_t		raw_len, raw_high; /* copied into stats once a turn */
	uint64_t	raw_full;
	bool		resources_closed; /* the end has begun: workers and watch are being closed */
	struct vd_error error;		  /* of the RAW_ERROR event */

	/* Under lock. */
	struct vdi_lock lock;
	struct vdi_slot slots[VDI_WATCHCHAN_QUEUE_LEN];
	uint64_t	slot_claim, slot_claim_end; /* next to decode by a worker, and how far they may go */
	struct vd_store_watch	  *watch;
	bool			   progress_wanted;
	bool			   reading; /* a range of ours is in flight */
	vd_mono			   read_issued;
	bool			   read_ready; /* its answer is in the fields below */
	vd_status		   read_status;
	struct vd_error		   read_error;
	vd_rev			   read_revision;
	struct vd_kv		 **read_kvs; /* references */
	size_t			   read_count;
	bool			   read_more;
	struct vdi_watchchan_event results[VDI_WATCHCHAN_QUEUE_LEN];
	uint64_t		   result_head, result_tail;
	bool			   consumer_waits, producer_waits;
	vd_mono			   blocked_since; /* since when producer_waits */
	bool			   ended;	  /* no further result will come */
	bool			   closing;
	unsigned		   workers_open;
	void (*closed)(void *arg);
	void			  *closed_arg;
	struct vdi_watchchan_stats stats;
};

static inline struct vdi_slot *vdi_slot_at(struct vdi_watchchan *watchchan, uint64_t number)
{
	return &watchchan->slots[number % VDI_WATCHCHAN_QUEUE_LEN];
}
static inline bool vdi_slots_full(const struct vdi_watchchan *watchchan)
{
	return watchchan->slot_tail - watchchan->slot_head == VDI_WATCHCHAN_QUEUE_LEN;
}

/* Appends to the raw queue, which has room; takes over the references in raw. The actor only. */
void vdi_watchchan_push_raw(struct vdi_watchchan *watchchan, const struct vdi_raw_event *raw);
/* Queues the error as the last event. code VD_CLOSED: a quiet end. */
void vdi_watchchan_push_error(struct vdi_watchchan *watchchan, vd_status status,
			      const struct vd_error *error);

/* watchchan_sync.c: true when it queued something or moved on. The actor only. */
bool vdi_watchchan_start(struct vdi_watchchan *watchchan);
bool vdi_watchchan_sync(struct vdi_watchchan *watchchan);
void vdi_watchchan_page_release(struct vdi_watchchan *watchchan);
void vdi_watchchan_sync_close(struct vdi_watchchan *watchchan);
/* watchchan_stream.c */
bool vdi_watchchan_stream(struct vdi_watchchan *watchchan);
/* watchchan_decode.c: raw to typed, in place; any thread that owns the slot. */
void vdi_watchchan_decode_slot(struct vdi_watchchan *watchchan, struct vdi_slot *slot);
/* Starts the workers; all or none. */
VDI_MUST_USE vd_status vdi_watchchan_workers_open(struct vdi_watchchan *watchchan);
void		       vdi_watchchan_workers_wake(struct vdi_watchchan *watchchan);
void		       vdi_watchchan_workers_close(struct vdi_watchchan *watchchan);

#endif
