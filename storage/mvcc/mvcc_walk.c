/* The history no longer contains records at or below the compacted revision. They are found as the live keys
 * of an old state, and sorted. */
#include "mvcc_walk.h"

#include <stdlib.h>

#include "mvcc_read.h"
#include "mvcc_store.h"

static int compare_places(const void *a, const void *b)
{
	const struct vd_kv *left = *(struct vd_kv *const *) a;
	const struct vd_kv *right = *(struct vd_kv *const *) b;

	if (left->mod_rev != right->mod_rev)
		return left->mod_rev < right->mod_rev ? -1 : 1;
	return VDI_ORDER(left->sub, right->sub);
}

struct old_records {
	struct vd_kv **kvs; /* one reference each */
	size_t	       count;
	size_t	       capacity;
};

static vd_status add_old(struct old_records *old, struct vd_kv *kv)
{
	if (!vdi_grow((void **) &old->kvs, &old->capacity, old->count + 1, sizeof old->kvs[0]))
		return VD_NOMEM;
	old->kvs[old->count++] = vd_kv_ref(kv);
	return VD_OK;
}

static vd_status read_alive(const struct vdi_view *view, vd_rev base, struct vdi_read *read)
{
	static const char	zero[1];
	struct vd_range_request request = { .key = { zero, 1 }, .range_end = { zero, 1 }, .revision = base };

	return vdi_read_range(view, &request, true, read, NULL);
}

/* Adds records that were written at or below the compacted revision. */
static vd_status add_read(const struct vdi_read *read, vd_rev compacted, struct old_records *old)
{
	vd_status status = VD_OK;

	for (size_t i = 0; status == VD_OK && i < read->result.kv_count; i++)
		if (read->result.kvs[i]->mod_rev <= compacted)
			status = add_old(old, read->result.kvs[i]);
	return status;
}

/* Adds those of them that are live at base. */
static vd_status add_alive(const struct vdi_view *view, vd_rev base, vd_rev compacted,
			   struct old_records *old)
{
	struct vdi_read read;
	vd_status	status;

	VDI_TRY(read_alive(view, base, &read));
	status = add_read(&read, compacted, old);
	vdi_read_fini(&read);
	return status;
}

/* VD_OK: the transaction at that revision deleted the key. VD_AGAIN: it did not. */
static vd_status find_tombstone(struct vdi_mvcc *mvcc, vd_rev revision, struct vd_bytes key)
{
	struct vdi_mvcc_log_cursor   cursor = { 0 };
	const struct vd_store_event *events;
	uint32_t		     count;
	bool			     is_found = false;
	vd_status		     status = vdi_mvcc_log_seek(&mvcc->log, revision, &cursor);

	while (status == VD_OK && !is_found) {
		status = vdi_mvcc_log_run(&mvcc->log, &cursor, &events, &count);
		for (uint32_t i = 0; status == VD_OK && !is_found && i < count; i++, cursor.position++) {
			if (events[i].kv->mod_rev > revision)
				status = VD_AGAIN;
			else
				is_found = events[i].is_delete &&
					   vd_bytes_compare(vd_kv_key(events[i].kv), key) == 0;
		}
	}
	vdi_mvcc_log_cursor_fini(&cursor);
	return status;
}

/* Decides whether the set of records that upstream's key_index keeps is empty at base: VD_OK: empty;
 * VD_AGAIN: not. It is empty if no key is live, or if the transaction at base itself deleted and recreated
 * every live key, because keep then looks only at the generation that ended there. Such a transaction wrote
 * every live key, so they are at most the puts of one transaction. */
static vd_status keeps_nothing(struct vdi_mvcc *mvcc, const struct vdi_read *read, vd_rev base)
{
	vd_status status = VD_OK;

	for (size_t i = 0; i < read->result.kv_count; i++)
		if (read->result.kvs[i]->create_rev != base)
			return VD_AGAIN;
	for (size_t i = 0; status == VD_OK && i < read->result.kv_count; i++)
		status = find_tombstone(mvcc, base, vd_kv_key(read->result.kvs[i]));
	return status;
}

/* Adds records written at or below the compacted revision that upstream keeps at base. If upstream's set of
 * kept records is empty, its hash skips none. */
static vd_status add_kept(struct vdi_mvcc *mvcc, const struct vdi_view *view, vd_rev base, vd_rev compacted,
			  struct old_records *old)
{
	struct vdi_read read;
	vd_status	status;

	VDI_TRY(read_alive(view, base, &read));
	status = base == compacted ? VD_AGAIN : keeps_nothing(mvcc, &read, base);
	if (status == VD_OK)
		status = add_alive(view, compacted, compacted, old);
	else if (status == VD_AGAIN)
		status = add_read(&read, compacted, old);
	vdi_read_fini(&read);
	return status;
}

/* Adds keys deleted at the compacted revision itself, as etcd's compaction keeps their tombstones, if the
 * history still contains them. */
static vd_status add_tombstones(struct vdi_mvcc *mvcc, vd_rev compacted, struct old_records *old)
{
	struct vdi_mvcc_log_cursor   cursor = { 0 };
	const struct vd_store_event *events;
	uint32_t		     count;
	vd_status		     status = vdi_mvcc_log_seek(&mvcc->log, compacted, &cursor);

	while (status == VD_OK) {
		status = vdi_mvcc_log_run(&mvcc->log, &cursor, &events, &count);
		for (uint32_t i = 0; status == VD_OK && i < count; i++, cursor.position++) {
			if (events[i].kv->mod_rev > compacted)
				status = VD_AGAIN;
			else if (events[i].is_delete)
				status = add_old(old, events[i].kv);
		}
	}
	vdi_mvcc_log_cursor_fini(&cursor);
	return status == VD_AGAIN ? VD_OK : status;
}

static vd_status give_old(struct old_records *old, struct vdi_mvcc_walk *walk)
{
	vd_status status = VD_OK;

	if (old->count)
		qsort(old->kvs, old->count, sizeof old->kvs[0], compare_places);
	for (size_t i = 0; status == VD_OK && i < old->count; i++)
		status = walk->each(walk->arg, old->kvs[i], old->kvs[i]->version == 0);
	return status;
}

static vd_status walk_old(struct vdi_mvcc *mvcc, const struct vdi_view *view, enum vdi_mvcc_walk_kind kind,
			  struct vdi_mvcc_walk *walk)
{
	struct old_records old = { 0 };
	vd_status	   status;

	if (kind == VDI_MVCC_WALK_HASH)
		status = add_kept(mvcc, view, walk->revision, walk->compacted, &old);
	else
		status = add_alive(view, walk->compacted, walk->compacted, &old);
	if (status == VD_OK && kind == VDI_MVCC_WALK_SNAPSHOT)
		status = add_tombstones(mvcc, walk->compacted, &old);
	if (status == VD_OK)
		status = give_old(&old, walk);
	for (size_t i = 0; i < old.count; i++)
		vd_kv_unref(old.kvs[i]);
	vdi_free(old.kvs);
	return status;
}

/* Walks the history after the compacted revision. */
static vd_status walk_history(struct vdi_mvcc *mvcc, struct vdi_mvcc_walk *walk)
{
	struct vdi_mvcc_log_cursor   cursor = { 0 };
	const struct vd_store_event *events;
	uint32_t		     count;
	vd_status status = vdi_mvcc_log_seek(&mvcc->log, VDI_MAX(walk->compacted, 0) + 1, &cursor);

	while (status == VD_OK) {
		status = vdi_mvcc_log_run(&mvcc->log, &cursor, &events, &count);
		for (uint32_t i = 0; status == VD_OK && i < count; i++, cursor.position++) {
			if (events[i].kv->mod_rev > walk->revision)
				status = VD_AGAIN;
			else
				status = walk->each(walk->arg, events[i].kv, events[i].is_delete);
		}
	}
	vdi_mvcc_log_cursor_fini(&cursor);
	return status == VD_AGAIN ? VD_OK : status;
}

static vd_status walk_state(struct vdi_mvcc *mvcc, struct vdi_mvcc_state *state, enum vdi_mvcc_walk_kind kind,
			    vd_rev revision, struct vdi_mvcc_walk *walk)
{
	struct vdi_view view = vdi_view_of_state(state, &mvcc->log);

	VDI_TRY(vdi_read_check(&view, revision, NULL));
	walk->current = state->revision;
	walk->compacted = state->compacted;
	walk->revision = revision > 0 ? revision : state->revision;
	if (walk->begin)
		walk->begin(walk->arg, walk);
	if (walk->compacted > 0)
		VDI_TRY(walk_old(mvcc, &view, kind, walk));
	return walk_history(mvcc, walk);
}

vd_status vdi_mvcc_walk(struct vd_store *store, enum vdi_mvcc_walk_kind kind, vd_rev revision,
			struct vdi_mvcc_walk *walk)
{
	struct vdi_mvcc_state *state;
	struct vdi_mvcc	      *mvcc;
	vd_status	       status;

	if (!vdi_mvcc_is(store))
		return VD_UNSUPPORTED;
	mvcc = vdi_mvcc_of(store);
	if (!vdi_mvcc_enter(mvcc))
		return VD_CLOSED;
	state = vdi_mvcc_state_get(mvcc);
	status = walk_state(mvcc, state, kind, revision, walk);
	vdi_mvcc_state_unref(state);
	vdi_mvcc_leave(mvcc);
	return status;
}
