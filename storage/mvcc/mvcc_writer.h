/* The writer: the one actor that changes a store. It blocks in fdatasync, so it has a thread of its own.
 *
 * One turn: take what was submitted (bounded), execute each in order on the working state, append to the
 * journal, one sync for all of them, publish, wake watches, answer in order. Submissions of a group see each
 * other's results; nobody else sees anything before it is durable. When a submission cannot be carried out
 * for want of memory or space, the working state goes back to the published one (copy-on-write: O(1)), the
 * others are executed again, and only that one answers the error. When the sync fails, all of the group do.
 * What a full disk refused goes back into the queue for a while if the checkpoint is about to make room.
 *
 * The same turn revokes expired leases, compacts behind the history window, and gives progress ticks.
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
/* How often a group is tried again without the submission that failed, before all that remain fail. */
#define VDI_GROUP_RETRIES_MAX 4
/* How long a submission that the full disk refused waits for room that the checkpoint is making, and how
 * often the writer looks. */
#define VDI_ROOM_WAIT VD_SECONDS(2)
#define VDI_ROOM_LOOK VD_MS(10)

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

	/* The answer, in parts: a struct vd_error would be half a kilobyte for each. */
	vd_status status;
	bool	  is_decided; /* failed in an earlier try of this group */
	vd_mono	  room_until; /* 0: it has not waited for room on the disk */
	vd_rev	  requested;
	vd_rev	  current;
	vd_rev	  compacted;

	union {
		struct {
			struct vdi_txn txn;
			vd_txn_fn      done;
		} txn;
		struct {
			vd_done_fn		  done;
			vd_rev			  revision; /* asked; answered with current */
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
			vd_rev			  revision; /* recorded; answered with current */
			struct vdi_replay_change *changes;  /* behind the submission */
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
	atomic_uint	wakers;	    /* on their way to wake the actor, which stays until they have */

	/* Under queue_lock. */
	struct vdi_submission_list queue;
	unsigned		   in_flight; /* submitted, not answered */
	bool			   is_closing;

	/* Writer only. */
	struct vdi_group	   group;
	struct vdi_submission_list taken;
	vd_mono			   tick_due;	   /* VD_NEVER: nobody wants ticks */
	vd_rev			   compact_target; /* of the group at work; 0: none */
	unsigned		   expired_count;  /* leases revoked in the group at work */
	struct vd_error		   persist_error;  /* of the last commit that was refused in this turn */
	bool			   is_waiting;	   /* a submission waits for room on the disk */
};

VDI_MUST_USE vd_status vdi_writer_init(struct vdi_writer *writer, struct vdi_mvcc *mvcc);
/* After the actor has ended (or never ran). */
void vdi_writer_fini(struct vdi_writer *writer);
/* Creates the actor: nothing runs before. */
VDI_MUST_USE vd_status vdi_writer_start(struct vdi_writer *writer);

/* Any thread. Takes over the submission (one block, vdi_free) if it answers VD_OK. VD_FULL, VD_CLOSED. */
VDI_MUST_USE vd_status vdi_writer_submit(struct vdi_writer *writer, struct vdi_submission *submission);
/* Looks at its deadlines again. */
void vdi_writer_wake(struct vdi_writer *writer);
/* Answers what is queued, then ends and calls vdi_mvcc_writer_ended. Once. */
void vdi_writer_close(struct vdi_writer *writer);

#endif
