/* The records are sorted by key, once. Then the record that another one replaced is its left neighbour, and
 * the tree is built from its leaves up. Inserting record after record would search the tree for each key, and
 * copy leaves for each mark.
 *
 *   by revision   a1 b2 c3 a4 b5x c6      x: tombstone
 *   by key        a1 a4 | b2 b5x | c3 c6  the last record of a key is live unless it is a tombstone
 *
 * Records from the compacted revision on also go into the history, so that watches can resume from before the
 * restart. Their age is unknown, so the history window starts anew.
 *
 * Reads of old revisions start from marks (mvcc_log.h). Here a mark is a whole tree of its own, 14 bytes per
 * key, that shares nothing with other marks. So marks are further apart than those that a running store
 * makes: with a million keys such a read passes at most 250,000 events.
 */
#include "mvcc_build.h"

#include "key_sort.h"

#define AHEAD 12 /* records to prefetch */
#define MARKS_MAX 16
#define MARK_KEYS 2 /* memory of a mark in events per key: spacing is at least keys / MARK_KEYS events */

/* Records sorted by key. */
struct index {
	/* value: the record; tag: its index; head: not 0 if the previous item has the same key */
	struct vdi_key_sort_item *items;
	size_t			  count;
	void			**values; /* room for the live records */
	size_t			  live_count;
};

vd_status vdi_mvcc_build_expect(struct vdi_mvcc_build *build, size_t count)
{
	return count == 0 || vdi_grow((void **) &build->events, &build->capacity, count,
				      sizeof build->events[0]) ?
		       VD_OK :
		       VD_NOMEM;
}

vd_status vdi_mvcc_build_add(struct vdi_mvcc_build *build, struct vd_kv *kv, bool is_delete)
{
	if (build->count == build->capacity && !vdi_grow((void **) &build->events, &build->capacity,
							 build->count + 1, sizeof build->events[0])) {
		vd_kv_unref(kv);
		return VD_NOMEM;
	}
	build->events[build->count++] = (struct vd_store_event) { is_delete, kv, NULL };
	return VD_OK;
}

void vdi_mvcc_build_fini(struct vdi_mvcc_build *build)
{
	for (size_t i = build->given; i < build->count; i++) {
		vd_kv_unref(build->events[i].kv);
		vd_kv_unref(build->events[i].previous);
	}
	vdi_free(build->events);
	*build = (struct vdi_mvcc_build) { 0 };
}

/* ---- The index ---- */

static struct vd_bytes key_of(const void *value)
{
	return vd_kv_key(value);
}

static vd_status index_init(struct index *index, const struct vdi_mvcc_build *build)
{
	struct vdi_key_sort_item *scratch = vdi_alloc(build->count * sizeof *scratch);

	index->count = build->count;
	index->items = vdi_alloc(build->count * sizeof *index->items);
	if (index->items == NULL || scratch == NULL) {
		vdi_free(scratch);
		return VD_NOMEM;
	}
	for (size_t i = 0; i < build->count; i++)
		index->items[i] = (struct vdi_key_sort_item) { 0, build->events[i].kv, i };
	vdi_key_sort(index->items, scratch, index->count, key_of);
	vdi_free(scratch);
	index->values = vdi_alloc(build->count * sizeof *index->values);
	return index->values ? VD_OK : VD_NOMEM;
}

static void index_fini(struct index *index)
{
	vdi_free(index->items);
	vdi_free(index->values);
}

/* Marks which neighbours have the same key, and gives each record with index >= first, which becomes history,
 * its predecessor. */
static void index_link(struct index *index, struct vdi_mvcc_build *build, size_t first)
{
	struct vd_kv *live = NULL; /* the key's live record before the record at i */

	index->live_count = 0;
	for (size_t i = 0; i < index->count; i++) {
		struct vdi_key_sort_item *item = &index->items[i];
		struct vd_store_event	 *event = &build->events[item->tag];

		if (i + AHEAD < index->count) {
			__builtin_prefetch((const char *) index->items[i + AHEAD].value);
			__builtin_prefetch((const char *) index->items[i + AHEAD].value + 64);
			__builtin_prefetch(&build->events[index->items[i + AHEAD].tag]);
		}
		item->head =
			i && vd_bytes_equal(vd_kv_key(item->value), vd_kv_key(index->items[i - 1].value));
		if (item->head == 0) {
			index->live_count += live != NULL;
			live = NULL;
		}
		if (live && item->tag >= first)
			event->previous = vd_kv_ref(live);
		live = event->is_delete ? NULL : event->kv;
	}
	index->live_count += live != NULL;
}

/* Collects the records that are live if only those before `end` exist, in key order. */
static size_t index_live(const struct index *index, const struct vdi_mvcc_build *build, size_t end)
{
	size_t	      count = 0;
	struct vd_kv *live = NULL;

	for (size_t i = 0; i < index->count; i++) {
		const struct vdi_key_sort_item *item = &index->items[i];

		if (i + AHEAD < index->count)
			__builtin_prefetch(&build->events[index->items[i + AHEAD].tag]);
		if (item->head == 0) {
			if (live)
				index->values[count++] = live;
			live = NULL;
		}
		if (item->tag < end)
			live = build->events[item->tag].is_delete ? NULL : item->value;
	}
	if (live)
		index->values[count++] = live;
	return count;
}

/* ---- The history ---- */

/* Returns the end of a piece of about `count` events; a piece ends with its revision. */
static size_t piece_end(const struct vdi_mvcc_build *build, size_t from, size_t count)
{
	size_t end = from + VDI_MIN(count, build->count - from);

	while (end < build->count && build->events[end].kv->mod_rev == build->events[end - 1].kv->mod_rev)
		end++;
	return end;
}

/* Moves the events up to `end` to the history, with keys as the state after them. */
static vd_status give_piece(struct vdi_mvcc_build *build, size_t end, const struct vdi_btree *keys,
			    struct vdi_group *group, struct vdi_mvcc_log *log, vd_mono now)
{
	struct vdi_mvcc_state *state;
	vd_status	       status = vdi_mvcc_state_new(&state);

	if (status != VD_OK)
		return status;
	status = vdi_mvcc_log_prepare(log, build->events + build->given, end - build->given,
				      vdi_btree_count(keys), now);
	if (status == VD_OK) {
		state->revision = build->events[end - 1].kv->mod_rev;
		state->compacted = group->compacted;
		vdi_btree_snapshot(keys, &state->keys);
		vdi_mvcc_log_commit(log, state);
		build->given = end;
	}
	vdi_mvcc_state_unref(state);
	return status;
}

/* Moves all events to the history, in pieces. Each piece but the last gets a tree of its own as its mark. */
static vd_status give_history(struct vdi_mvcc_build *build, const struct index *index,
			      struct vdi_group *group, struct vdi_mvcc_log *log, vd_mono now)
{
	size_t spacing = VDI_MAX(VDI_MVCC_LOG_MARK_SPACING,
				 VDI_MAX(index->live_count / MARK_KEYS, build->count / MARKS_MAX));

	while (build->given < build->count) {
		size_t		 end = piece_end(build, build->given, spacing);
		struct vdi_btree keys;
		vd_status	 status;

		/* The rest is too short for a mark of its own. */
		if (build->count - end < spacing / 2)
			return give_piece(build, build->count, &group->keys, group, log, now);
		vdi_btree_init(&keys, &vdi_kv_tree_ops);
		status = vdi_btree_load_sorted(&keys, index->values, index_live(index, build, end));
		if (status == VD_OK)
			status = give_piece(build, end, &keys, group, log, now);
		vdi_btree_fini(&keys);
		if (status != VD_OK)
			return status;
	}
	return VD_OK;
}

vd_status vdi_mvcc_build_finish(struct vdi_mvcc_build *build, struct vdi_group *group,
				struct vdi_mvcc_log *log, vd_mono now)
{
	struct index index = { 0 };
	size_t	     first = vdi_mvcc_log_find(build->events, build->count, group->compacted);
	vd_status    status;

	if (build->count == 0)
		return VD_OK;
	status = index_init(&index, build);
	if (status == VD_OK) {
		index_link(&index, build, first);
		status = vdi_btree_load_sorted(&group->keys, index.values,
					       index_live(&index, build, build->count));
	}
	if (status == VD_OK) {
		/* The tree has its own references to live records. */
		for (; build->given < first; build->given++)
			vd_kv_unref(build->events[build->given].kv);
		status = give_history(build, &index, group, log, now);
	}
	index_fini(&index);
	return status;
}
