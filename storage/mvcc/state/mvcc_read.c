/* At the view's own revision a range is a walk over the tree. For an older one, the changes in between that
 * match the range make an overlay (key -> record at that revision, or absent), which is merged with the walk.
 *
 * 	undo   from a newer view or mark back to R: a key's first change after R has its record at R
 * 	redo   from an older mark forward to R: a key's last change up to R is its record at R
 */
#include "mvcc_read.h"

#include <stdlib.h>

/* ---- The overlay ---- */

struct overlay_entry {
	struct vd_bytes key;
	struct vd_kv   *kv; /* NULL: absent at that revision */
	size_t		order;
};

struct overlay {
	struct overlay_entry *entries;
	size_t		      count;
	size_t		      capacity;
	bool		      undo;
	/* Chunks that the entries point into. */
	struct vdi_mvcc_log_chunk **chunks;
	size_t			    chunk_count;
	size_t			    chunk_capacity;
};

static void overlay_fini(struct overlay *overlay)
{
	for (size_t i = 0; i < overlay->chunk_count; i++)
		vdi_mvcc_log_chunk_unref(overlay->chunks[i]);
	vdi_free(overlay->chunks);
	vdi_free(overlay->entries);
}

/* Adds the events of the range with revision <= bound; events are ascending. *ret_added: how many were
 * added. */
static vd_status overlay_add(struct overlay *overlay, const struct vdi_key_range *range,
			     const struct vd_store_event *events, size_t count, vd_rev bound,
			     size_t *ret_added)
{
	size_t before = overlay->count;

	for (size_t i = 0; i < count && events[i].kv->mod_rev <= bound; i++) {
		const struct vd_store_event *event = &events[i];
		struct overlay_entry	    *entry;

		if (!vdi_key_range_contains(range, vd_kv_key(event->kv)))
			continue;
		if (!vdi_grow((void **) &overlay->entries, &overlay->capacity, overlay->count + 1,
			      sizeof *entry))
			return VD_NOMEM;
		entry = &overlay->entries[overlay->count];
		entry->key = vd_kv_key(event->kv);
		entry->kv = overlay->undo ? event->previous : event->is_delete ? NULL : event->kv;
		entry->order = overlay->count++;
	}
	*ret_added = overlay->count - before;
	return VD_OK;
}

static vd_status overlay_keep_chunk(struct overlay *overlay, struct vdi_mvcc_log_chunk *chunk)
{
	if (overlay->chunk_count && overlay->chunks[overlay->chunk_count - 1] == chunk)
		return VD_OK;
	if (!vdi_grow((void **) &overlay->chunks, &overlay->chunk_capacity, overlay->chunk_count + 1,
		      sizeof(void *)))
		return VD_NOMEM;
	overlay->chunks[overlay->chunk_count++] = vdi_mvcc_log_chunk_ref(chunk);
	return VD_OK;
}

/* Adds the changes of revisions in [from, to]. */
static vd_status overlay_add_log(struct overlay *overlay, struct vdi_mvcc_log *log,
				 const struct vdi_key_range *range, vd_rev from, vd_rev to)
{
	struct vdi_mvcc_log_cursor   cursor = { 0 };
	const struct vd_store_event *events;
	uint32_t		     count;
	size_t			     added;
	vd_status		     status = vdi_mvcc_log_seek(log, from, &cursor);

	while (status == VD_OK) {
		status = vdi_mvcc_log_run(log, &cursor, &events, &count);
		if (status != VD_OK)
			break;
		if (events[0].kv->mod_rev > to)
			break;
		status = overlay_add(overlay, range, events, count, to, &added);
		if (status == VD_OK && added)
			status = overlay_keep_chunk(overlay, cursor.chunk);
		cursor.position += count;
	}
	vdi_mvcc_log_cursor_fini(&cursor);
	return status == VD_AGAIN ? VD_OK : status;
}

static int compare_entries(const void *a, const void *b)
{
	const struct overlay_entry *left = a;
	const struct overlay_entry *right = b;
	int			    order = vd_bytes_compare(left->key, right->key);

	return order ? order : VDI_ORDER(left->order, right->order);
}

/* Keeps one entry per key: the first for undo, the last for redo. */
static void overlay_settle(struct overlay *overlay)
{
	size_t kept = 0;

	if (overlay->count == 0)
		return;
	qsort(overlay->entries, overlay->count, sizeof overlay->entries[0], compare_entries);
	for (size_t i = 0; i < overlay->count; i++) {
		if (kept && vd_bytes_equal(overlay->entries[kept - 1].key, overlay->entries[i].key)) {
			if (!overlay->undo)
				overlay->entries[kept - 1] = overlay->entries[i];
		} else {
			overlay->entries[kept++] = overlay->entries[i];
		}
	}
	overlay->count = kept;
}

/* ---- The walk ---- */

static vd_status read_reserve(struct vdi_read *read, size_t count)
{
	if (count <= 1) {
		read->result.kvs = read->one;
		return VD_OK;
	}
	read->result.kvs = vdi_alloc(count * sizeof read->result.kvs[0]);
	read->in_heap = true;
	return read->result.kvs ? VD_OK : VD_NOMEM;
}

static void read_add(struct vdi_read *read, struct vd_kv *kv)
{
	read->result.kvs[read->result.kv_count++] = read->owned ? vd_kv_ref(kv) : kv;
}

static uint64_t wanted(const struct vd_range_request *request, uint64_t count)
{
	if (request->count_only)
		return 0;
	return request->limit > 0 ? VDI_MIN(count, (uint64_t) request->limit) : count;
}

/* Ranges over the tree at its own revision. */
static vd_status walk(const struct vdi_btree_snapshot *keys, const struct vdi_key_range *range,
		      const struct vd_range_request *request, struct vdi_read *read)
{
	struct vdi_btree_cursor cursor;
	uint64_t		count;
	uint64_t		take;

	if (range->single) {
		struct vd_kv *kv = vdi_btree_snapshot_get(keys, range->from);

		read->result.kvs = read->one;
		read->result.count = kv != NULL;
		if (kv && !request->count_only)
			read_add(read, kv);
		return VD_OK;
	}
	if (request->count_only) {
		read->result.count = (int64_t) vdi_btree_snapshot_count_key_range(keys, range);
		read->result.kvs = read->one;
		return VD_OK;
	}
	vdi_btree_cursor_init(&cursor, keys);
	count = vdi_btree_cursor_range(&cursor, range);
	take = wanted(request, count);
	VDI_TRY(read_reserve(read, take));
	for (uint64_t i = 0; i < take; i++)
		read_add(read, vdi_btree_cursor_range_next(&cursor));
	read->result.count = (int64_t) count;
	read->result.more = take < count;
	return VD_OK;
}

static vd_status merge(const struct vdi_btree_snapshot *keys, const struct overlay *overlay,
		       const struct vdi_key_range *range, const struct vd_range_request *request,
		       struct vdi_read *read)
{
	struct vdi_btree_cursor cursor;
	uint64_t		count;
	uint64_t		take;
	struct vd_kv	       *kv;
	size_t			position = 0;

	vdi_btree_cursor_init(&cursor, keys);
	count = vdi_btree_cursor_range(&cursor, range);
	for (size_t i = 0; i < overlay->count; i++) {
		count += overlay->entries[i].kv != NULL;
		count -= vdi_btree_snapshot_get(keys, overlay->entries[i].key) != NULL;
	}
	take = wanted(request, count);
	VDI_TRY(read_reserve(read, take));
	kv = take ? vdi_btree_cursor_range_next(&cursor) : NULL;
	while (read->result.kv_count < take) {
		const struct overlay_entry *entry =
			position < overlay->count ? &overlay->entries[position] : NULL;
		int order = entry == NULL ? -1 : kv == NULL ? 1 : vd_bytes_compare(vd_kv_key(kv), entry->key);

		if (order < 0) {
			read_add(read, kv);
		} else {
			position++;
			if (entry->kv)
				read_add(read, entry->kv);
		}
		if (order <= 0)
			kv = vdi_btree_cursor_range_next(&cursor);
	}
	read->result.count = (int64_t) count;
	read->result.more = !request->count_only && take < count;
	return VD_OK;
}

/* ---- The choice of where to start ---- */

static vd_status read_pending(const struct vdi_view *view, const struct vdi_key_range *range,
			      const struct vd_range_request *request, struct vdi_read *read)
{
	struct overlay overlay = { .undo = true };
	size_t	       first = 0;
	size_t	       added;
	vd_status      status;

	while (first < view->pending_count && view->pending[first].kv->mod_rev <= request->revision)
		first++;
	status = overlay_add(&overlay, range, view->pending + first, view->pending_count - first, INT64_MAX,
			     &added);
	overlay_settle(&overlay);
	if (status == VD_OK)
		status = merge(view->keys, &overlay, range, request, read);
	overlay_fini(&overlay);
	return status;
}

static uint64_t index_of_revision(struct vdi_mvcc_log *log, vd_rev revision, uint64_t index_end)
{
	struct vdi_mvcc_log_cursor cursor = { 0 };
	uint64_t		   index = index_end;

	if (vdi_mvcc_log_seek(log, revision, &cursor) == VD_OK)
		index = vdi_mvcc_log_cursor_index(&cursor);
	vdi_mvcc_log_cursor_fini(&cursor);
	return index;
}

/* Returns the state nearest to the revision (the view's or a mark); the caller drops the reference.
 * *ret_distance: events in between. */
static struct vdi_mvcc_state *nearest_state(const struct vdi_view *view, vd_rev revision,
					    uint64_t *ret_distance)
{
	uint64_t	       index = index_of_revision(view->log, revision + 1, view->state->log_end);
	struct vdi_mvcc_state *mark = vdi_mvcc_log_mark_near(view->log, index);

	*ret_distance = view->state->log_end - index;
	if (mark) {
		uint64_t distance = mark->log_end > index ? mark->log_end - index : index - mark->log_end;

		if (distance < *ret_distance) {
			*ret_distance = distance;
			return mark;
		}
		vdi_mvcc_state_unref(mark);
	}
	return vdi_mvcc_state_ref(view->state);
}

static vd_status read_old(const struct vdi_view *view, const struct vdi_key_range *range,
			  const struct vd_range_request *request, struct vdi_read *read)
{
	uint64_t	       distance;
	struct vdi_mvcc_state *base = nearest_state(view, request->revision, &distance);
	struct overlay	       overlay = { 0 };
	vd_status	       status;

	overlay.undo = base->revision >= request->revision;
	if (overlay.undo)
		status = overlay_add_log(&overlay, view->log, range, request->revision + 1, base->revision);
	else
		status = overlay_add_log(&overlay, view->log, range, base->revision + 1, request->revision);
	overlay_settle(&overlay);
	if (status == VD_OK)
		status = merge(&base->keys, &overlay, range, request, read);
	overlay_fini(&overlay);
	vdi_mvcc_state_unref(base);
	return status;
}

uint64_t vdi_read_cost(const struct vdi_view *view, const struct vd_range_request *request)
{
	struct vdi_key_range		 range = vdi_key_range_from_etcd(request->key, request->range_end);
	const struct vdi_btree_snapshot *keys = view->keys;
	struct vdi_mvcc_state		*base = NULL;
	uint64_t			 cost = 0;

	if (request->revision > 0 && request->revision < view->revision) {
		if (request->revision >= view->state->revision) {
			cost = view->pending_count;
		} else {
			base = nearest_state(view, request->revision, &cost);
			keys = &base->keys;
		}
	}
	cost += wanted(request, range.single ? 1 : vdi_btree_snapshot_count_key_range(keys, &range));
	vdi_mvcc_state_unref(base);
	return cost;
}

struct vdi_view vdi_view_of_state(struct vdi_mvcc_state *state, struct vdi_mvcc_log *log)
{
	return (struct vdi_view) { &state->keys, state->revision, state->compacted, log, state, NULL, 0 };
}

vd_status vdi_read_check(const struct vdi_view *view, vd_rev revision, struct vd_error *reterr)
{
	vd_status status = VD_OK;

	if (revision <= 0)
		return VD_OK;
	if (revision > view->revision)
		status = vd_error_set(reterr, VD_TOO_LARGE_REVISION,
				      "required revision %lld is a future revision", (long long) revision);
	else if (revision < view->compacted)
		status = vd_error_set(reterr, VD_EXPIRED, "required revision %lld has been compacted",
				      (long long) revision);
	if (status != VD_OK && reterr) {
		reterr->requested = revision;
		reterr->current = view->revision;
		reterr->compacted = view->compacted;
	}
	return status;
}

vd_status vdi_read_range(const struct vdi_view *view, const struct vd_range_request *request, bool keep,
			 struct vdi_read *ret_read, struct vd_error *reterr)
{
	struct vdi_key_range range = vdi_key_range_from_etcd(request->key, request->range_end);
	vd_status	     status = vdi_read_check(view, request->revision, reterr);
	struct vd_kv	    *kv;

	if (status != VD_OK)
		return status;
	memset(ret_read, 0, sizeof *ret_read);
	ret_read->owned = keep;
	ret_read->result.store_revision = view->revision;
	if (request->revision <= 0 || request->revision == view->revision) {
		status = walk(view->keys, &range, request, ret_read);
	} else if (range.single && (kv = vdi_btree_snapshot_get(view->keys, range.from)) != NULL &&
		   kv->mod_rev <= request->revision) {
		status = walk(view->keys, &range, request, ret_read);
	} else {
		ret_read->owned = true;
		if (request->revision >= view->state->revision)
			status = read_pending(view, &range, request, ret_read);
		else
			status = read_old(view, &range, request, ret_read);
	}
	if (status == VD_OK)
		return VD_OK;
	vdi_read_fini(ret_read);
	if (status == VD_EXPIRED && reterr) { /* compacted during the read */
		(void) vd_error_set(reterr, VD_EXPIRED, "required revision %lld has been compacted",
				    (long long) request->revision);
		reterr->requested = request->revision;
		reterr->current = view->revision;
		reterr->compacted = view->log->floor;
		return VD_EXPIRED;
	}
	return vd_error_set(reterr, status, "%s", vd_status_sentence(status));
}

void vdi_read_fini(struct vdi_read *read)
{
	if (read->owned)
		for (size_t i = 0; i < read->result.kv_count; i++)
			vd_kv_unref(read->result.kvs[i]);
	if (read->in_heap)
		vdi_free(read->result.kvs);
	memset(read, 0, sizeof *read);
}
