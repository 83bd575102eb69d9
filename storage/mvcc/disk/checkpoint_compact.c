/* Compaction needs no map of keys: each record names the one it supersedes. With everything before
 * compact_next done, the dead at or before C are the predecessors of the records in [compact_next, C], and
 * the tombstones there that are older than C. The walk stops with compact_next = C, because a tombstone at C
 * itself is dropped only by the next compaction. So compact_next = C does not say whether C itself has been
 * walked: only is_swept says so, and an open walks C again. A step may end inside a revision (compact_sub);
 * an open begins that revision again.
 */
#include "checkpoint_state.h"

bool vdi_checkpoint_compact_pending(const struct vdi_checkpoint *checkpoint)
{
	return checkpoint->meta.compacted > 0 && !checkpoint->is_swept;
}

/* Keys of dead records found in one step, and the record that the next step begins with. */
struct sweep {
	uint8_t (*keys)[VDI_CHECKPOINT_KEY_SIZE];
	size_t	 count;
	size_t	 capacity;
	size_t	 visited;
	size_t	 visited_max;
	vd_rev	 compacted;
	vd_rev	 next_revision;
	uint32_t next_sub;
};

static bool sweep_add(struct sweep *sweep, vd_rev revision, uint32_t sub)
{
	if (!vdi_grow((void **) &sweep->keys, &sweep->capacity, sweep->count + 1, VDI_CHECKPOINT_KEY_SIZE))
		return false;
	vdi_checkpoint_encode_key(revision, sub, sweep->keys[sweep->count++]);
	return true;
}

static vd_status sweep_record(void *arg, const struct vdi_record *record)
{
	struct sweep *sweep = arg;

	if (sweep->visited >= sweep->visited_max) {
		sweep->next_revision = record->mod_rev;
		sweep->next_sub = record->sub;
		return VD_AGAIN;
	}
	sweep->visited++;
	if (record->previous_rev && !sweep_add(sweep, record->previous_rev, record->previous_sub))
		return VD_NOMEM;
	if (record->is_delete && record->mod_rev < sweep->compacted &&
	    !sweep_add(sweep, record->mod_rev, record->sub))
		return VD_NOMEM;
	return VD_OK;
}

static vd_status remove_swept(struct vdi_checkpoint *checkpoint, const struct sweep *sweep,
			      struct vd_error *reterr)
{
	for (size_t i = 0; i < sweep->count; i++) {
		MDB_val key = { VDI_CHECKPOINT_KEY_SIZE, sweep->keys[i] };

		VDI_TRY(vdi_checkpoint_drop(checkpoint, checkpoint->records, key,
					    &checkpoint->next.record_count, reterr));
	}
	return VD_OK;
}

static vd_status commit_sweep(struct vdi_checkpoint *checkpoint, const struct sweep *sweep,
			      struct vd_error *reterr)
{
	VDI_TRY(vdi_checkpoint_begin(checkpoint, (int64_t) sweep->count * 64, reterr));
	VDI_TRY(remove_swept(checkpoint, sweep, reterr));
	checkpoint->next.compact_next = sweep->next_revision;
	/* An open that walks the compacted revision again finds nothing, and writes nothing. */
	if (memcmp(&checkpoint->next, &checkpoint->meta, sizeof checkpoint->next) != 0)
		return vdi_checkpoint_commit(checkpoint, reterr);
	vdi_checkpoint_abort(checkpoint);
	return VD_OK;
}

vd_status vdi_checkpoint_compact_step(struct vdi_checkpoint *checkpoint, size_t record_count_max,
				      struct vd_error *reterr)
{
	struct sweep sweep = { .visited_max = record_count_max,
			       .compacted = checkpoint->meta.compacted,
			       .next_revision = checkpoint->meta.compacted };
	vd_status    status =
		vdi_checkpoint_walk_from(checkpoint, checkpoint->meta.compact_next, checkpoint->compact_sub,
					 sweep.compacted, sweep_record, &sweep, reterr);
	bool is_last = status != VD_AGAIN;

	if (status == VD_OK || status == VD_AGAIN)
		status = commit_sweep(checkpoint, &sweep, reterr);
	if (status == VD_OK) {
		checkpoint->is_swept = is_last;
		checkpoint->compact_sub = sweep.next_sub;
	}
	vdi_free(sweep.keys);
	return status;
}
