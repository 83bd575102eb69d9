/* See the header. Records up to the compacted revision are no longer in the history: they are found as the live keys of an old state, and sorted. */
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
	return (left->sub > right->sub) - (left->sub < right->sub);
}

/* What was made up to the compacted revision and is alive at base. */
static vd_status walk_old(const struct vdi_view *view, vd_rev base, struct vdi_mvcc_walk *walk, size_t *ret_alive)
{
	static const char	zero[1];
	struct vd_range_request request = { .key = { zero, 1 }, .range_end = { zero, 1 }, .revision = base };
	struct vdi_read		read;
	size_t			count = 0;
	vd_status		status;

	VDI_TRY(vdi_read_range(view, &request, true, &read, NULL));
	*ret_alive = read.result.kv_count;
	status = VD_OK;
	if (read.result.kv_count && walk->compacted > 0) {
		/* The records stay where they are: read owns a reference of each. */
		struct vd_kv **old = vdi_alloc(read.result.kv_count * sizeof old[0]);

		if (old == NULL)
			status = VD_NOMEM;
		for (size_t i = 0; old && i < read.result.kv_count; i++)
			if (read.result.kvs[i]->mod_rev <= walk->compacted)
				old[count++] = read.result.kvs[i];
		if (count)
			qsort(old, count, sizeof old[0], compare_places);
		for (size_t i = 0; status == VD_OK && i < count; i++)
			status = walk->each(walk->arg, old[i], false);
		vdi_free(old);
	}
	vdi_read_fini(&read);
	return status;
}

/* The history behind the compacted revision; of that one itself, with with_tombstones, what was deleted (E-406). */
static vd_status walk_history(struct vdi_mvcc *mvcc, bool with_tombstones, struct vdi_mvcc_walk *walk)
{
	struct vdi_mvcc_log_cursor   cursor = { 0 };
	vd_rev			     from = VDI_MAX(walk->compacted, 0);
	const struct vd_store_event *events;
	uint32_t		     count;
	vd_status		     status = vdi_mvcc_log_seek(&mvcc->log, from, &cursor);

	while (status == VD_OK) {
		status = vdi_mvcc_log_run(&mvcc->log, &cursor, &events, &count);
		for (uint32_t i = 0; status == VD_OK && i < count; i++, cursor.position++) {
			if (events[i].kv->mod_rev > walk->revision)
				status = VD_AGAIN;
			else if (events[i].kv->mod_rev > walk->compacted || (with_tombstones && events[i].is_delete))
				status = walk->each(walk->arg, events[i].kv, events[i].is_delete);
		}
	}
	vdi_mvcc_log_cursor_fini(&cursor);
	return status == VD_AGAIN ? VD_OK : status;
}

static vd_status walk_state(struct vdi_mvcc *mvcc, struct vdi_mvcc_state *state, enum vdi_mvcc_walk_kind kind, vd_rev revision, struct vdi_mvcc_walk *walk)
{
	struct vdi_view view = vdi_view_of_state(state, &mvcc->log);
	size_t		alive = 0;
	vd_rev		base;

	VDI_TRY(vdi_read_check(&view, revision, NULL));
	walk->current = state->revision;
	walk->compacted = state->compacted;
	walk->revision = revision > 0 ? revision : state->revision;
	base = kind == VDI_MVCC_WALK_HASH ? walk->revision : VDI_MAX(walk->compacted, 0);
	if (walk->begin)
		walk->begin(walk->arg, walk);
	if (walk->compacted > 0) {
		VDI_TRY(walk_old(&view, base, walk, &alive));
		/* Upstream's rule: a compaction that keeps nothing skips nothing. */
		if (kind == VDI_MVCC_WALK_HASH && alive == 0 && base != walk->compacted)
			VDI_TRY(walk_old(&view, walk->compacted, walk, &alive));
	}
	return walk_history(mvcc, kind == VDI_MVCC_WALK_SNAPSHOT, walk);
}

vd_status vdi_mvcc_walk(struct vd_store *store, enum vdi_mvcc_walk_kind kind, vd_rev revision, struct vdi_mvcc_walk *walk)
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
