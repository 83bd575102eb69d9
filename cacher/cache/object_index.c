/* A chained hash table of values; each posting has a tree of objects. A posting is changed in place: its tree
 * copies only nodes that a list still reads.
 *
 * An index of many objects is built in one pass. The objects are in key order, so they are only sorted by
 * posting, by counting, and each tree is loaded as a whole. This takes a fifth of the time of inserting them
 * one by one, which was a third of an initial sync. */
#include "object_index.h"

#include "hash.h"

struct vdi_index_posting {
	struct vdi_index_posting *next;
	union {
		struct vdi_btree objects;
		struct {
			size_t count;
			size_t at; /* place of its next object */
		} loading;	   /* while the index is built */
	};
	uint64_t hash;
	uint32_t value_size;
	char	 value[];
};

static struct vd_bytes object_key(const void *value)
{
	return vd_object_key(value);
}

static void object_ref(void *value)
{
	vd_object_ref(value);
}

static void object_unref(void *value)
{
	vd_object_unref(value);
}

const struct vdi_btree_ops vdi_object_btree_ops = { object_key, object_ref, object_unref };

vd_status vdi_object_index_init(struct vdi_object_index *index, const char *label_key, size_t field_index)
{
	*index = (struct vdi_object_index) { .field_index = field_index, .is_usable = true };
	if (label_key && (index->label_key = vdi_strdup(label_key)) == NULL)
		return VD_NOMEM;
	return VD_OK;
}

static void free_posting(struct vdi_index_posting *posting)
{
	vdi_btree_fini(&posting->objects);
	vdi_free(posting);
}

void vdi_object_index_clear(struct vdi_object_index *index)
{
	for (size_t i = 0; i < index->bucket_count; i++)
		while (index->buckets[i]) {
			struct vdi_index_posting *posting = index->buckets[i];

			index->buckets[i] = posting->next;
			free_posting(posting);
		}
	index->posting_count = 0;
	index->is_usable = true;
}

void vdi_object_index_fini(struct vdi_object_index *index)
{
	vdi_object_index_clear(index);
	vdi_free(index->buckets);
	vdi_free(index->label_key);
	*index = (struct vdi_object_index) { 0 };
}

/* Returns the object's value; false: it has none. */
static bool value_of(const struct vdi_object_index *index, const struct vd_object *object,
		     struct vd_bytes *ret_value)
{
	if (object == NULL)
		return false;
	if (index->label_key)
		return vd_object_label_get(object, vd_bytes_of(index->label_key), ret_value);
	*ret_value = vd_object_field(object, index->field_index);
	return true;
}

static uint64_t hash_of(struct vd_bytes value)
{
	return vdi_hash_bytes(value, vdi_hash_seed());
}

static struct vdi_index_posting **find_place(const struct vdi_object_index *index, struct vd_bytes value,
					     uint64_t hash)
{
	struct vdi_index_posting **place;

	if (index->bucket_count == 0)
		return NULL;
	for (place = &index->buckets[hash & (index->bucket_count - 1)]; *place; place = &(*place)->next)
		if ((*place)->hash == hash &&
		    vd_bytes_equal((struct vd_bytes) { (*place)->value, (*place)->value_size }, value))
			break;
	return place;
}

static bool grow_buckets(struct vdi_object_index *index)
{
	size_t			   count = index->bucket_count ? index->bucket_count * 2 : 16;
	struct vdi_index_posting **buckets = vdi_calloc(count, sizeof *buckets);

	if (buckets == NULL)
		return false;
	for (size_t i = 0; i < index->bucket_count; i++)
		for (struct vdi_index_posting *posting = index->buckets[i], *next; posting; posting = next) {
			struct vdi_index_posting **place = &buckets[posting->hash & (count - 1)];

			next = posting->next;
			posting->next = *place;
			*place = posting;
		}
	vdi_free(index->buckets);
	index->buckets = buckets;
	index->bucket_count = count;
	return true;
}

static struct vdi_index_posting *get_posting(struct vdi_object_index *index, struct vd_bytes value)
{
	uint64_t		   hash = hash_of(value);
	struct vdi_index_posting **place = find_place(index, value, hash);
	struct vdi_index_posting  *posting;

	if (place && *place)
		return *place;
	if (index->posting_count >= index->bucket_count && !grow_buckets(index) && index->bucket_count == 0)
		return NULL;
	posting = vdi_alloc(sizeof *posting + value.size);
	if (posting == NULL)
		return NULL;
	vdi_btree_init(&posting->objects, &vdi_object_btree_ops);
	posting->hash = hash;
	posting->value_size = (uint32_t) value.size;
	if (value.size)
		memcpy(posting->value, value.data, value.size);
	place = &index->buckets[hash & (index->bucket_count - 1)];
	posting->next = *place;
	*place = posting;
	index->posting_count++;
	return posting;
}

static bool remove_object(struct vdi_object_index *index, struct vd_bytes value, struct vd_bytes key)
{
	struct vdi_index_posting **place = find_place(index, value, hash_of(value));
	struct vdi_index_posting  *posting = place ? *place : NULL;
	vd_status		   status;

	if (posting == NULL)
		return true;
	status = vdi_btree_remove(&posting->objects, key, NULL);
	if (status == VD_NOMEM)
		return false;
	if (vdi_btree_count(&posting->objects) == 0) {
		*place = posting->next;
		index->posting_count--;
		free_posting(posting);
	}
	return true;
}

void vdi_object_index_drop(struct vdi_object_index *index)
{
	vdi_object_index_clear(index);
	index->is_usable = false;
	index->asked = 0;
}

void vdi_object_index_give_up(struct vdi_object_index *index)
{
	vdi_object_index_clear(index);
	index->is_usable = false;
}

static bool add_object(struct vdi_object_index *index, struct vd_object *object, struct vd_bytes value)
{
	struct vdi_index_posting *posting = get_posting(index, value);

	return posting && vdi_btree_put(&posting->objects, object, NULL) == VD_OK;
}

void vdi_object_index_change(struct vdi_object_index *index, struct vd_object *old_object,
			     struct vd_object *object)
{
	struct vd_bytes old_value = VD_BYTES_NONE;
	struct vd_bytes value = VD_BYTES_NONE;
	bool		had, has;

	if (!index->is_usable)
		return;
	had = value_of(index, old_object, &old_value);
	has = value_of(index, object, &value);
	/* For an equal value, the put below replaces the object in place. */
	if (had && !(has && vd_bytes_equal(old_value, value)) &&
	    !remove_object(index, old_value, vd_object_key(old_object)))
		vdi_object_index_give_up(index);
	else if (has && !add_object(index, object, value))
		vdi_object_index_give_up(index);
}

/* Each step prefetches for all objects what the next step reads. A posting that shares its bucket with
 * another is left to the change itself. */
void vdi_object_index_prepare(const struct vdi_object_index *index, struct vd_object *const *objects,
			      size_t count)
{
	struct vdi_index_posting **places[VDI_PREPARE_MAX];
	size_t			   found = 0;
	struct vd_bytes		   keys[VDI_PREPARE_MAX];

	VDI_CHECK_SLOW(count <= VDI_PREPARE_MAX);
	if (!index->is_usable || index->bucket_count == 0)
		return;
	for (size_t i = 0; i < count; i++) {
		struct vd_bytes value;

		if (!value_of(index, objects[i], &value))
			continue;
		keys[found] = vd_object_key(objects[i]);
		places[found] = &index->buckets[hash_of(value) & (index->bucket_count - 1)];
		__builtin_prefetch(places[found++]);
	}
	for (size_t i = 0; i < found; i++)
		if (*places[i])
			__builtin_prefetch(*places[i]);
	for (unsigned depth = 0; depth < 2; depth++)
		for (size_t i = 0; i < found; i++)
			if (*places[i])
				vdi_btree_snapshot_prefetch(vdi_btree_view(&(*places[i])->objects), keys[i],
							    depth);
}

/* ---- Building ---- */

struct loading {
	struct vd_object	 **objects;  /* with a value, in key order */
	struct vdi_index_posting **postings; /* of each */
	void			 **sorted;   /* by posting */
	size_t			   count;
};

static void loading_fini(struct loading *loading)
{
	vdi_free(loading->objects);
	vdi_free(loading->postings);
	vdi_free(loading->sorted);
}

static bool loading_init(struct loading *loading, size_t count)
{
	*loading = (struct loading) { .objects = vdi_calloc(count, sizeof *loading->objects),
				      .postings = vdi_calloc(count, sizeof *loading->postings),
				      .sorted = vdi_calloc(count, sizeof *loading->sorted) };
	if (loading->objects && loading->postings && loading->sorted)
		return true;
	loading_fini(loading);
	return false;
}

static bool find_postings(struct vdi_object_index *index, const struct vdi_btree_snapshot *objects,
			  struct loading *loading)
{
	struct vdi_btree_cursor cursor;
	struct vdi_key_range	all = VDI_KEY_RANGE_ALL;
	struct vd_object       *object;
	struct vd_bytes		value;

	vdi_btree_cursor_init(&cursor, objects);
	vdi_btree_cursor_range(&cursor, &all);
	while ((object = vdi_btree_cursor_range_next(&cursor))) {
		size_t			  posting_count = index->posting_count;
		struct vdi_index_posting *posting;

		if (!value_of(index, object, &value))
			continue;
		posting = get_posting(index, value);
		if (posting == NULL)
			return false;
		if (index->posting_count != posting_count) {
			posting->loading.count = 0;
			posting->loading.at = 0;
		}
		posting->loading.count++;
		loading->objects[loading->count] = object;
		loading->postings[loading->count++] = posting;
	}
	return true;
}

static void sort_by_posting(struct vdi_object_index *index, struct loading *loading)
{
	size_t at = 0;

	for (size_t i = 0; i < index->bucket_count; i++)
		for (struct vdi_index_posting *posting = index->buckets[i]; posting;
		     posting = posting->next) {
			posting->loading.at = at;
			at += posting->loading.count;
		}
	for (size_t i = 0; i < loading->count; i++)
		loading->sorted[loading->postings[i]->loading.at++] = loading->objects[i];
}

/* Loads every posting's tree; an empty one after a failure. */
static bool load_postings(struct vdi_object_index *index, const struct loading *loading, bool ok)
{
	for (size_t i = 0; i < index->bucket_count; i++)
		for (struct vdi_index_posting *posting = index->buckets[i]; posting;
		     posting = posting->next) {
			size_t count = posting->loading.count;
			size_t end = posting->loading.at;

			vdi_btree_init(&posting->objects, &vdi_object_btree_ops);
			if (ok && count == 1)
				ok = vdi_btree_put(&posting->objects, loading->sorted[end - 1], NULL) ==
				     VD_OK;
			else if (ok)
				ok = vdi_btree_load_sorted(&posting->objects, loading->sorted + end - count,
							   count) == VD_OK;
		}
	return ok;
}

void vdi_object_index_build(struct vdi_object_index *index, const struct vdi_btree_snapshot *objects)
{
	struct loading loading;
	bool	       ok;

	vdi_object_index_clear(index);
	if (objects->count == 0)
		return;
	if (!loading_init(&loading, (size_t) objects->count)) {
		vdi_object_index_give_up(index);
		return;
	}
	ok = find_postings(index, objects, &loading);
	if (ok)
		sort_by_posting(index, &loading);
	if (!load_postings(index, &loading, ok))
		vdi_object_index_give_up(index);
	loading_fini(&loading);
}

bool vdi_object_index_snapshot(const struct vdi_object_index *index, struct vd_bytes value,
			       struct vdi_btree_snapshot *ret_snapshot)
{
	struct vdi_index_posting **place;

	if (!index->is_usable)
		return false;
	place = find_place(index, value, hash_of(value));
	if (place && *place)
		vdi_btree_snapshot(&(*place)->objects, ret_snapshot);
	else
		*ret_snapshot = (struct vdi_btree_snapshot) { .ops = &vdi_object_btree_ops };
	return true;
}

uint64_t vdi_object_index_count(const struct vdi_object_index *index, struct vd_bytes value)
{
	struct vdi_index_posting **place = find_place(index, value, hash_of(value));

	return place && *place ? vdi_btree_count(&(*place)->objects) : 0;
}
