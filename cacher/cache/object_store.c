/* One copy-on-write tree by key. Indexes follow each change but may become unusable (object_index.h), so only
 * the tree decides whether a change succeeds. */
#include "object_store.h"

#include "object.h"

#define REBUILD_AFTER_CHANGES 1000
#define SCAN_COUNT_MAX 1000	 /* this many are scanned as fast as an index is found */
#define UNASKED_CHANGES_MIN 4096 /* before an index on demand is dropped */

static size_t place_count(const struct vdi_object_store *store)
{
	return store->indexes ? store->index_count + VDI_DEMAND_LABELS_MAX : 0;
}

vd_status vdi_object_store_init(struct vdi_object_store *store, size_t field_count,
				const char *const *index_labels)
{
	size_t	  count = field_count;
	vd_status status = VD_OK;

	*store = (struct vdi_object_store) { 0 };
	vdi_btree_init(&store->objects, &vdi_object_btree_ops);
	for (size_t i = 0; index_labels && index_labels[i]; i++)
		count++;
	store->indexes = vdi_calloc(count + VDI_DEMAND_LABELS_MAX, sizeof *store->indexes);
	if (store->indexes == NULL)
		return VD_NOMEM;
	for (size_t i = 0; i < VDI_DEMAND_LABELS_MAX; i++)
		store->indexes[count + i].is_on_demand = true; /* a free entry: not used by a list yet */
	for (size_t i = 0; status == VD_OK && i < field_count; i++)
		status = vdi_object_index_init(&store->indexes[store->index_count++], NULL, i);
	for (size_t i = 0; status == VD_OK && index_labels && index_labels[i]; i++)
		status = vdi_object_index_init(&store->indexes[store->index_count++], index_labels[i], 0);
	if (status != VD_OK)
		vdi_object_store_fini(store);
	return status;
}

void vdi_object_store_on_demand(struct vdi_object_store *store)
{
	for (size_t i = 0; i < store->index_count; i++) {
		struct vdi_object_index *index = &store->indexes[i];

		index->is_on_demand = index->label_key == NULL;
		if (index->is_on_demand)
			vdi_object_index_drop(index);
	}
	store->has_labels_on_demand = true;
}

static bool ask(struct vdi_object_store *store, struct vdi_object_index *asked, uint64_t candidate_count)
{
	asked->changes_unasked = 0;
	if (asked->is_usable || !asked->is_on_demand || candidate_count <= SCAN_COUNT_MAX)
		return asked->is_usable;
	asked->asked++;
	/* If out of memory, it is retried like other lost indexes. */
	if (asked->asked == VDI_INDEX_ASKED_ENOUGH)
		vdi_object_index_build(asked, vdi_btree_view(&store->objects));
	return asked->is_usable;
}

bool vdi_object_store_ask(struct vdi_object_store *store, size_t index, uint64_t candidate_count)
{
	return ask(store, &store->indexes[index], candidate_count);
}

/* Returns the entry of that label or, if there is none, one that can be reused: free, or of a label that was
 * requested once or not recently. */
static struct vdi_object_index *label_place(struct vdi_object_store *store, struct vd_bytes key)
{
	struct vdi_object_index *places = store->indexes + store->index_count, *best = NULL;

	for (size_t i = 0; i < VDI_DEMAND_LABELS_MAX; i++) {
		if (places[i].label_key == NULL)
			best = &places[i];
		else if (vd_bytes_equal(vd_bytes_of(places[i].label_key), key))
			return &places[i];
		else if (!vdi_object_index_is_wanted(&places[i]) && best == NULL)
			best = &places[i];
	}
	return best;
}

struct vdi_object_index *vdi_object_store_ask_label(struct vdi_object_store *store, struct vd_bytes key,
						    uint64_t candidate_count)
{
	struct vdi_object_index *place;
	char			*copy;

	if (!store->has_labels_on_demand || candidate_count <= SCAN_COUNT_MAX ||
	    (place = label_place(store, key)) == NULL)
		return NULL;
	if (place->label_key == NULL || !vd_bytes_equal(vd_bytes_of(place->label_key), key)) {
		copy = vdi_strndup(key.data, key.size);
		if (copy == NULL)
			return NULL;
		vdi_object_index_fini(place);
		*place = (struct vdi_object_index) { .label_key = copy, .is_on_demand = true };
	}
	return ask(store, place, candidate_count) ? place : NULL;
}

static void drop_retained(struct vdi_object_store *store, size_t index)
{
	vdi_btree_snapshot_release(&store->retained[index].snapshot);
	store->retained_count--;
	memmove(&store->retained[index], &store->retained[index + 1],
		(store->retained_count - index) * sizeof store->retained[0]);
}

void vdi_object_store_fini(struct vdi_object_store *store)
{
	while (store->retained_count)
		drop_retained(store, store->retained_count - 1);
	for (size_t i = 0; i < place_count(store); i++)
		vdi_object_index_fini(&store->indexes[i]);
	vdi_free(store->indexes);
	vdi_btree_fini(&store->objects);
	*store = (struct vdi_object_store) { 0 };
}

struct vd_object *vdi_object_store_get(const struct vdi_object_store *store, struct vd_bytes key)
{
	return vdi_btree_snapshot_get(vdi_btree_view(&store->objects), key);
}

static bool is_lost(const struct vdi_object_index *index)
{
	return !index->is_usable && vdi_object_index_is_wanted(index);
}

static void change_index(struct vdi_object_store *store, struct vdi_object_index *index,
			 struct vd_object *old_object, struct vd_object *object)
{
	vdi_object_index_change(index, old_object, object);
	if (index->is_on_demand && index->is_usable &&
	    ++index->changes_unasked > VDI_MAX(store->objects.live.count, (uint64_t) UNASKED_CHANGES_MIN))
		vdi_object_index_drop(index);
}

/* Called after each change. Memory is short when an index is lost, so the next attempt waits. */
static void rebuild_lost_indexes(struct vdi_object_store *store)
{
	if (store->changes_until_rebuild > 0) {
		store->changes_until_rebuild--;
		return;
	}
	for (size_t i = 0, places = place_count(store); i < places; i++)
		if (is_lost(&store->indexes[i])) {
			store->changes_until_rebuild = REBUILD_AFTER_CHANGES;
			vdi_object_index_build(&store->indexes[i], vdi_btree_view(&store->objects));
		}
}

int64_t vdi_object_store_size_of(const struct vd_object *object)
{
	return (int64_t) vd_object_json_size(object, vd_object_revision(object));
}

static int64_t size_of(const struct vd_object *object)
{
	return object ? vdi_object_store_size_of(object) : 0;
}

static int64_t size_of_all(struct vdi_btree *objects)
{
	struct vdi_key_range	everything = VDI_KEY_RANGE_ALL;
	struct vdi_btree_cursor cursor;
	struct vd_object       *object;
	int64_t			bytes = 0;

	vdi_btree_cursor_init(&cursor, vdi_btree_view(objects));
	(void) vdi_btree_cursor_range(&cursor, &everything);
	while ((object = vdi_btree_cursor_range_next(&cursor)))
		bytes += size_of(object);
	return bytes;
}

void vdi_object_store_prepare(const struct vdi_object_store *store, const struct vd_bytes *keys, size_t count)
{
	struct vd_object *objects[VDI_PREPARE_MAX];

	VDI_CHECK_SLOW(count <= VDI_PREPARE_MAX);
	vdi_btree_snapshot_get_many(vdi_btree_view(&store->objects), keys, count, (void **) objects);
	for (size_t i = 0; i < count; i++)
		if (objects[i])
			vdi_object_prefetch(objects[i]);
	/* Prefetch what the indexes compare, then what they descend through. */
	for (size_t index = 0; index < store->index_count; index++)
		for (size_t i = 0;
		     i < count && store->indexes[index].is_usable && store->indexes[index].label_key == NULL;
		     i++)
			if (objects[i])
				__builtin_prefetch(
					vd_object_field(objects[i], store->indexes[index].field_index).data);
	for (size_t index = 0; index < store->index_count; index++)
		vdi_object_index_prepare(&store->indexes[index], objects, count);
}

vd_status vdi_object_store_change(struct vdi_object_store *store, struct vd_bytes key,
				  struct vd_object *object, struct vd_object **ret_old_object)
{
	void	 *replaced = NULL;
	vd_status status = object ? vdi_btree_put(&store->objects, object, &replaced) :
				    vdi_btree_remove(&store->objects, key, &replaced);

	if (status != VD_OK && status != VD_NOT_FOUND)
		return status;
	store->bytes += size_of(object) - size_of(replaced);
	if (status == VD_OK) {
		/* Most are not built, because no list has used them. */
		for (size_t i = 0, places = place_count(store); i < places; i++)
			if (store->indexes[i].is_usable)
				change_index(store, &store->indexes[i], replaced, object);
		rebuild_lost_indexes(store);
	}
	*ret_old_object = replaced;
	return VD_OK;
}

void vdi_object_store_restore(struct vdi_object_store *store, struct vdi_btree_snapshot *before,
			      struct vdi_event *const *events, size_t count)
{
	struct vdi_btree undone = store->objects;

	store->objects.live = *before;
	*before = (struct vdi_btree_snapshot) { 0 };
	while (count-- > 0) {
		const struct vdi_event *event = events[count];

		if (event == NULL)
			continue;
		store->bytes -= size_of(event->object) - size_of(event->old_object);
		for (size_t i = 0; i < place_count(store); i++)
			vdi_object_index_change(&store->indexes[i], event->object, event->old_object);
	}
	vdi_btree_fini(&undone);
}

void vdi_object_store_replace(struct vdi_object_store *store, struct vdi_btree *objects, int64_t bytes)
{
	struct vdi_btree old = store->objects;

	while (store->retained_count)
		drop_retained(store, store->retained_count - 1);
	store->objects = *objects;
	store->bytes = bytes >= 0 ? bytes : size_of_all(&store->objects);
	*objects = old;
	vdi_btree_clear(objects);
	for (size_t i = 0; i < place_count(store); i++) {
		struct vdi_object_index *index = &store->indexes[i];

		if (!vdi_object_index_is_wanted(index))
			continue;
		if (i < store->index_count)
			vdi_object_index_give_up(index);
		else
			vdi_object_index_build(index, vdi_btree_view(&store->objects));
	}
}

bool vdi_object_store_index_begin(const struct vdi_object_store *store, size_t index,
				  struct vdi_object_index *ret_fresh)
{
	const struct vdi_object_index *lost = &store->indexes[index];

	VDI_CHECK(index < store->index_count);
	*ret_fresh =
		(struct vdi_object_index) { .label_key = lost->label_key, .field_index = lost->field_index };
	return is_lost(lost);
}

void vdi_object_store_index_end(struct vdi_object_store *store, size_t index, struct vdi_object_index *fresh)
{
	struct vdi_object_index *place = &store->indexes[index];

	vdi_object_index_clear(place);
	vdi_free(place->buckets);
	place->buckets = fresh->buckets;
	place->bucket_count = fresh->bucket_count;
	place->posting_count = fresh->posting_count;
	place->is_usable = fresh->is_usable;
}

void vdi_object_store_snapshot(const struct vdi_object_store *store, struct vdi_btree_snapshot *ret_snapshot)
{
	vdi_btree_snapshot(&store->objects, ret_snapshot);
}

void vdi_object_store_retain(struct vdi_object_store *store, const struct vdi_btree_snapshot *snapshot,
			     vd_rev revision, uint64_t position)
{
	size_t place = 0;

	while (place < store->retained_count && store->retained[place].position < position)
		place++;
	if (place < store->retained_count && store->retained[place].position == position) {
		store->retained[place].revision = VDI_MAX(store->retained[place].revision, revision);
		return;
	}
	if (store->retained_count == VDI_SNAPSHOT_COUNT_MAX) {
		drop_retained(store, 0);
		place = place ? place - 1 : 0;
	}
	memmove(&store->retained[place + 1], &store->retained[place],
		(store->retained_count - place) * sizeof store->retained[0]);
	store->retained[place] =
		(struct vdi_retained_snapshot) { .revision = revision, .position = position };
	vdi_btree_snapshot_ref(snapshot, &store->retained[place].snapshot);
	store->retained_count++;
}

void vdi_object_store_forget(struct vdi_object_store *store, vd_rev revision_below)
{
	while (store->retained_count && store->retained[0].revision < revision_below)
		drop_retained(store, 0);
}

const struct vdi_retained_snapshot *vdi_object_store_nearest(const struct vdi_object_store *store,
							     uint64_t			    position)
{
	for (size_t i = 0; i < store->retained_count; i++)
		if (store->retained[i].position >= position)
			return &store->retained[i];
	return NULL;
}

vd_status vdi_object_undo(struct vdi_btree *objects, const struct vdi_event *event)
{
	vd_status status;

	if (event->old_object)
		return vdi_btree_put(objects, event->old_object, NULL);
	status = vdi_btree_remove(objects, vd_object_key(event->object), NULL);
	return status == VD_NOT_FOUND ? VD_OK : status;
}
