/* Both ways are counted, in O(log n) each, and the shorter one is walked. */
#include "candidates.h"

bool vdi_scope_key(struct vd_bytes prefix, bool cluster_scoped, struct vd_bytes namespace_name,
		   struct vd_bytes name, char *buffer, struct vd_bytes *ret_key, bool *ret_single)
{
	size_t size = prefix.size;

	*ret_single = name.size && (cluster_scoped || namespace_name.size);
	if (prefix.size + namespace_name.size + 1 + name.size > VDI_STORAGE_KEY_MAX)
		return false;
	memcpy(buffer, prefix.data, prefix.size);
	if (!cluster_scoped && namespace_name.size) {
		memcpy(buffer + size, namespace_name.data, namespace_name.size);
		size += namespace_name.size;
		buffer[size++] = '/';
	}
	if (*ret_single) {
		memcpy(buffer + size, name.data, name.size);
		size += name.size;
	}
	*ret_key = (struct vd_bytes) { buffer, size };
	return true;
}

static void start_walk(struct vdi_candidates *candidates, struct vd_bytes scope, bool single,
		       struct vd_bytes start)
{
	char		     buffer[VDI_STORAGE_KEY_MAX];
	struct vdi_key_range range = single ? (struct vdi_key_range) { .from = scope, .single = true } :
					      vdi_key_range_from_prefix(scope, buffer);

	if (start.size && !single && vd_bytes_compare(start, range.from) > 0)
		range.from = start;
	vdi_btree_cursor_init(&candidates->cursor, &candidates->snapshot);
	candidates->count = vdi_btree_cursor_range(&candidates->cursor, &range);
}

void vdi_candidates_of(struct vdi_btree_snapshot *snapshot, struct vd_bytes scope, bool single,
		       struct vd_bytes start, struct vdi_candidates *ret_candidates)
{
	*ret_candidates = (struct vdi_candidates) { .snapshot = *snapshot };
	*snapshot = (struct vdi_btree_snapshot) { 0 };
	start_walk(ret_candidates, scope, single, start);
}

static bool index_value(const struct vdi_object_index *index, const struct vdi_predicate *predicate,
			struct vd_bytes *ret_value)
{
	if (index->label_key)
		return vdi_predicate_exact_label(predicate, vd_bytes_of(index->label_key), ret_value);
	return vdi_predicate_exact_field(predicate, (int) index->field_index, ret_value);
}

static bool has_declared(const struct vdi_object_store *store, struct vd_bytes label_key)
{
	for (size_t i = 0; i < store->index_count; i++)
		if (store->indexes[i].label_key &&
		    vd_bytes_equal(vd_bytes_of(store->indexes[i].label_key), label_key))
			return true;
	return false;
}

/* Returns the index of a label on demand, if it leads to fewer than least objects. */
static const struct vdi_object_index *label_on_demand(struct vdi_object_store	 *store,
						      const struct vdi_predicate *predicate, uint64_t *least,
						      struct vd_bytes *best_value)
{
	const struct vdi_object_index *best = NULL;

	for (size_t i = 0; i < vdi_label_selector_count(vdi_predicate_labels(predicate)); i++) {
		struct vd_bytes key = vdi_label_selector_key(vdi_predicate_labels(predicate), i), value;
		const struct vdi_object_index *index;

		if (!vdi_predicate_exact_label(predicate, key, &value) || has_declared(store, key))
			continue;
		index = vdi_object_store_ask_label(store, key, *least);
		if (index && vdi_object_index_count(index, value) < *least) {
			*least = vdi_object_index_count(index, value);
			*best_value = value;
			best = index;
		}
	}
	return best;
}

void vdi_candidates_newest_locked(struct vdi_watch_cache *cache, const struct vdi_predicate *predicate,
				  struct vd_bytes scope, bool single, struct vd_bytes start,
				  struct vdi_candidates *ret_candidates)
{
	char			       buffer[VDI_STORAGE_KEY_MAX];
	struct vdi_key_range	       range;
	struct vdi_btree_snapshot      snapshot;
	const struct vdi_object_index *best = NULL, *label;
	struct vd_bytes		       best_value = VD_BYTES_NONE;
	uint64_t		       least;

	if (!single && !predicate->is_empty) {
		range = vdi_key_range_from_prefix(scope, buffer);
		least = vdi_btree_snapshot_count_key_range(vdi_btree_view(&cache->store.objects), &range);
		for (size_t i = 0; i < cache->store.index_count; i++) {
			const struct vdi_object_index *index = &cache->store.indexes[i];
			struct vd_bytes		       value;

			if (index_value(index, predicate, &value) &&
			    vdi_object_store_ask(&cache->store, i, least) &&
			    vdi_object_index_count(index, value) < least) {
				least = vdi_object_index_count(index, value);
				best = index;
				best_value = value;
			}
		}
		label = label_on_demand(&cache->store, predicate, &least, &best_value);
		best = label ? label : best;
	}
	if (best == NULL || !vdi_object_index_snapshot(best, best_value, &snapshot))
		vdi_object_store_snapshot(&cache->store, &snapshot);
	vdi_candidates_of(&snapshot, scope, single, start, ret_candidates);
	/* Indexes of labels on demand have no metric. */
	ret_candidates->index = best && best < cache->store.indexes + cache->store.index_count ?
					(size_t) (best - cache->store.indexes) + 1 :
					0;
}

void vdi_candidates_release(struct vdi_candidates *candidates)
{
	vdi_btree_snapshot_release(&candidates->snapshot);
}
