/* The key of an entry is the size of the value in four bytes, the value, and the object's key, so all entries
 * of one value are adjacent, in key order. A change is first made in copies of the trees' roots, so that it
 * happens in all indexes or in none. */
#include "informer_index.h"

#include <stdatomic.h>

#define INDEXES_MAX 64

struct vdi_index_entry {
	_Atomic uint32_t  references;
	uint32_t	  key_size;
	struct vd_object *object;
	char		  key[];
};

static struct vd_bytes entry_key(const void *value)
{
	const struct vdi_index_entry *entry = value;

	return (struct vd_bytes) { entry->key, entry->key_size };
}

static void entry_ref(void *value)
{
	atomic_fetch_add_explicit(&((struct vdi_index_entry *) value)->references, 1, memory_order_relaxed);
}

static void entry_unref(void *value)
{
	struct vdi_index_entry *entry = value;

	if (atomic_fetch_sub_explicit(&entry->references, 1, memory_order_acq_rel) == 1) {
		vd_object_unref(entry->object);
		vdi_free(entry);
	}
}

static const struct vdi_btree_ops entry_ops = { entry_key, entry_ref, entry_unref };

vd_status vdi_informer_indexes_new(const struct vd_informer_index *from, size_t count,
				   struct vdi_informer_index **ret_indexes)
{
	struct vdi_informer_index *indexes;

	*ret_indexes = NULL;
	if (count == 0)
		return VD_OK;
	if (count > INDEXES_MAX)
		return VD_INVALID_ARGUMENT;
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k <= i; k++)
			if (from[i].name == NULL || from[i].values == NULL ||
			    (k < i && strcmp(from[i].name, from[k].name) == 0))
				return VD_INVALID_ARGUMENT;
	indexes = vdi_calloc(count, sizeof *indexes);
	if (indexes == NULL)
		return VD_NOMEM;
	for (size_t i = 0; i < count; i++) {
		indexes[i] = (struct vdi_informer_index) { .name = vdi_strdup(from[i].name),
							   .values = from[i].values,
							   .arg = from[i].arg };
		vdi_btree_init(&indexes[i].entries, &entry_ops);
		if (indexes[i].name == NULL) {
			vdi_informer_indexes_free(indexes, i + 1);
			return VD_NOMEM;
		}
	}
	*ret_indexes = indexes;
	return VD_OK;
}

void vdi_informer_indexes_free(struct vdi_informer_index *indexes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		vdi_btree_fini(&indexes[i].entries);
		vdi_free(indexes[i].name);
	}
	vdi_free(indexes);
}

/* ---- Changes ---- */

struct emission {
	struct vdi_index_change *change;
	struct vd_object	*object;
};

static void write_size(char *to, size_t size)
{
	for (int i = 0; i < 4; i++)
		to[i] = (char) (size >> (24 - 8 * i));
}

static void emit(void *arg, struct vd_bytes value)
{
	struct emission		*emission = arg;
	struct vdi_index_change *change = emission->change;
	struct vd_bytes		 key = vd_object_key(emission->object);
	struct vdi_index_entry	*entry;
	void			*entries = change->entries;

	if (value.size > VD_INDEX_VALUE_MAX)
		return;
	if (change->failed ||
	    !vdi_grow(&entries, &change->capacity, change->count + 1, sizeof(struct vdi_index_entry *))) {
		change->failed = true;
		return;
	}
	change->entries = entries;
	entry = vdi_alloc(sizeof *entry + 4 + value.size + key.size);
	if (entry == NULL) {
		change->failed = true;
		return;
	}
	atomic_init(&entry->references, 1);
	entry->object = vd_object_ref(emission->object);
	entry->key_size = (uint32_t) (4 + value.size + key.size);
	write_size(entry->key, value.size);
	if (value.size)
		memcpy(entry->key + 4, value.data, value.size);
	memcpy(entry->key + 4 + value.size, key.data, key.size);
	change->entries[change->count++] = entry;
}

vd_status vdi_index_change_prepare(struct vdi_index_change *change, const struct vdi_informer_index *indexes,
				   size_t count, struct vd_object *object)
{
	struct emission emission = { change, object };

	*change = (struct vdi_index_change) { 0 };
	if (count == 0)
		return VD_OK;
	change->ends = vdi_calloc(count, sizeof *change->ends);
	if (change->ends == NULL)
		return VD_NOMEM;
	for (size_t i = 0; i < count; i++) {
		if (object)
			indexes[i].values(indexes[i].arg, object, emit, &emission);
		change->ends[i] = change->count;
	}
	if (!change->failed)
		return VD_OK;
	vdi_index_change_fini(change);
	return VD_NOMEM;
}

void vdi_index_change_fini(struct vdi_index_change *change)
{
	for (size_t i = 0; i < change->count; i++)
		entry_unref(change->entries[i]);
	vdi_free(change->entries);
	vdi_free(change->ends);
	*change = (struct vdi_index_change) { 0 };
}

static vd_status change_one(struct vdi_btree *tree, const struct vdi_index_change *old_entries,
			    const struct vdi_index_change *entries, size_t index)
{
	for (size_t i = index ? old_entries->ends[index - 1] : 0; i < old_entries->ends[index]; i++)
		if (vdi_btree_remove(tree, entry_key(old_entries->entries[i]), NULL) == VD_NOMEM)
			return VD_NOMEM;
	for (size_t i = index ? entries->ends[index - 1] : 0; i < entries->ends[index]; i++)
		VDI_TRY(vdi_btree_put(tree, entries->entries[i], NULL));
	return VD_OK;
}

vd_status vdi_index_change_apply(const struct vdi_index_change *old_entries,
				 const struct vdi_index_change *entries, struct vdi_informer_index *indexes,
				 size_t count)
{
	struct vdi_btree_snapshot before[INDEXES_MAX];
	vd_status		  status = VD_OK;

	for (size_t i = 0; i < count; i++)
		vdi_btree_snapshot(&indexes[i].entries, &before[i]);
	for (size_t i = 0; status == VD_OK && i < count; i++)
		status = change_one(&indexes[i].entries, old_entries, entries, i);
	for (size_t i = 0; i < count; i++) {
		if (status != VD_OK) {
			struct vdi_btree undone = indexes[i].entries;

			indexes[i].entries.live = before[i];
			vdi_btree_fini(&undone);
		} else {
			vdi_btree_snapshot_release(&before[i]);
		}
	}
	return status;
}

/* ---- Reading ---- */

vd_status vdi_informer_index_snapshot(const struct vdi_informer_index *indexes, size_t count,
				      const char *name, struct vdi_btree_snapshot *ret_snapshot)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(indexes[i].name, name) == 0) {
			vdi_btree_snapshot(&indexes[i].entries, ret_snapshot);
			return VD_OK;
		}
	return VD_NOT_FOUND;
}

size_t vdi_informer_index_visit(const struct vdi_btree_snapshot *snapshot, struct vd_bytes value,
				vd_object_visit_fn visit, void *arg)
{
	char			from[4 + VD_INDEX_VALUE_MAX], end[4 + VD_INDEX_VALUE_MAX];
	size_t			visited = 0;
	struct vdi_btree_cursor cursor;
	struct vdi_index_entry *entry;
	struct vdi_key_range	range;

	if (value.size > VD_INDEX_VALUE_MAX)
		return 0;
	write_size(from, value.size);
	if (value.size)
		memcpy(from + 4, value.data, value.size);
	range = vdi_key_range_from_prefix((struct vd_bytes) { from, 4 + value.size }, end);
	vdi_btree_cursor_init(&cursor, snapshot);
	(void) vdi_btree_cursor_range(&cursor, &range);
	while ((entry = vdi_btree_cursor_range_next(&cursor))) {
		visited++;
		if (!visit(arg, entry->object))
			break;
	}
	return visited;
}
