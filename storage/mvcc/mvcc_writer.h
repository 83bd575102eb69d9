/* The writer: the only actor that changes a store. It blocks in fdatasync, so it has a thread of its own.
 *
 * One iteration takes a bounded group of submissions, executes each in order on the working state, appends to
 * the journal, syncs once for all, publishes, wakes watches, and answers in order. Submissions of a group see
 * each other's results; readers see nothing before it is durable. If a submission fails for lack of memory or
 * space, the working state is restored to the published one (copy-on-write: O(1)), the others are executed
 * again, and only that submission gets the error. If the sync fails, the whole group gets the error.
 * Submissions refused by a full disk return to the queue for a while if the checkpoint is about to free
 * space.
 *
 * The same iteration revokes expired leases, compacts revisions that left the history window, and sends
 * progress ticks.
 */
#ifndef VDI_MVCC_WRITER_H
#define VDI_MVCC_WRITER_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "compact.h"
#include "mvcc_txn.h"
#include "replay_change.h"

struct vdi_mvcc;

/* Bounds of one group. */
#define VDI_GROUP_SUBMISSIONS_MAX 4096
#define VDI_GROUP_BYTES_MAX ((size_t) 16 << 20)
/* Maximum retries of a group without the submission that failed; after that all remaining ones fail. */
#define VDI_GROUP_RETRIES_MAX 4
/* Maximum time that a submission refused by a full disk waits for space that the checkpointer frees, and the
 * interval at which the writer checks. */
#define VDI_ROOM_WAIT VD_SECONDS(2)
#define VDI_ROOM_CHECK_EVERY VD_MS(10)

enum vdi_submission_kind {
	VDI_SUBMIT_TXN,
	VDI_SUBMIT_COMPACT,
	VDI_SUBMIT_LEASE_GRANT,
	VDI_SUBMIT_LEASE_REVOKE,
	VDI_SUBMIT_LEASE_KEEP_ALIVE,
	VDI_SUBMIT_REPLAY,
};

struct vdi_submission {
	STAILQ_ENTRY(vdi_submission) node;
	enum vdi_submission_kind kind;
	void			*arg;
	struct vdi_mvcc		*mvcc;

	/* The answer, in parts, because a struct vd_error would take half a kilobyte per submission. */
	vd_status status;
	bool	  is_decided; /* failed in an earlier try of this group */
	vd_mono	  room_until; /* 0: has not waited for space on the disk */
	vd_rev	  requested;
	vd_rev	  current;
	vd_rev	  compacted;

	union {
		struct {
			struct vdi_txn txn;
			vd_txn_fn      done;
		} txn;
		struct {
			vd_done_fn done;
			/* Requested; answered with the current revision. */
			vd_rev			  revision;
			bool			  physical;
			struct vdi_compact_waiter waiter;
		} compact;
		struct {
			vd_lease_fn	       done;
			vd_done_fn	       revoked;
			int64_t		       wanted_id;
			int64_t		       wanted_ttl_s;
			struct vd_lease_result result;
		} lease;
		struct {
			vd_done_fn		  done;
			vd_rev			  revision; /* recorded; answered with the current revision */
			struct vdi_replay_change *changes;  /* stored after the submission */
			size_t			  count;
		} replay;
	};
};

STAILQ_HEAD(vdi_submission_list, vdi_submission);

struct vdi_writer {
	/* Fixed at creation. */
	struct vd_actor *actor;
	struct vdi_mvcc *mvcc;

	struct vdi_lock queue_lock; /* "queue" */
	atomic_uint	wakers;	    /* threads about to wake the actor; it ends only when there are none */

	/* Under queue_lock. */
	struct vdi_submission_list queue;
	unsigned		   in_flight; /* submitted, not answered */
	bool			   is_closing;

	/* Writer only. */
	struct vdi_group	   group;
	struct vdi_submission_list taken;
	vd_mono			   tick_due;	   /* VD_NEVER: no watch wants ticks */
	vd_rev			   compact_target; /* compaction of the current group; 0: none */
	unsigned		   expired_count;  /* leases revoked in the current group */
	struct vd_error		   backend_error;  /* of the last refused commit of this iteration */
	bool			   is_waiting;	   /* a submission waits for space on the disk */
};

VDI_MUST_USE vd_status vdi_writer_init(struct vdi_writer *writer, struct vdi_mvcc *mvcc);
/* Call after the actor has ended, or without having started it. */
void vdi_writer_fini(struct vdi_writer *writer);
/* Creates the actor, which runs from then on. */
VDI_MUST_USE vd_status vdi_writer_start(struct vdi_writer *writer);

/* Queues the submission. On VD_OK takes it over (one block, vdi_free). Any thread. VD_FULL, VD_CLOSED. */
VDI_MUST_USE vd_status vdi_writer_submit(struct vdi_writer *writer, struct vdi_submission *submission);
/* Makes the writer recompute its deadlines. */
void vdi_writer_wake(struct vdi_writer *writer);
/* Answers queued submissions, then ends and calls vdi_mvcc_writer_ended. Call once. */
void vdi_writer_close(struct vdi_writer *writer);

#endif
