/* A replayed transaction is a submission like others; mvcc_writer.c executes it. */
#include "mvcc_replay.h"

#include "mvcc_store.h"

vd_status vdi_mvcc_replay(struct vd_store *store, vd_rev revision, const struct vdi_replay_change *changes,
			  size_t count, vd_done_fn done, void *arg)
{
	struct vdi_mvcc	      *mvcc = vdi_mvcc_of(store);
	struct vdi_submission *submission;
	vd_status	       status = VD_NOMEM;

	VDI_CHECK(revision > 0);
	if (!vdi_mvcc_enter(mvcc))
		return VD_CLOSED;
	submission = vdi_alloc(sizeof *submission + count * sizeof *changes);
	if (submission) {
		*submission = (struct vdi_submission) { .kind = VDI_SUBMIT_REPLAY, .arg = arg };
		submission->replay.done = done;
		submission->replay.revision = revision;
		submission->replay.changes = (struct vdi_replay_change *) (submission + 1);
		submission->replay.count = count;
		if (count)
			memcpy(submission->replay.changes, changes, count * sizeof *changes);
		status = vdi_writer_submit(&mvcc->writer, submission);
		if (status != VD_OK)
			vdi_free(submission);
	}
	vdi_mvcc_leave(mvcc);
	return status;
}
