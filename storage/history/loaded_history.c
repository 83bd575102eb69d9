/* An array of changes, and a table of the last record of each key. The table resolves the previous record of
 * changes without a copy of it, and provides the witnesses. */
#include "loaded_history.h"

#include <stdlib.h>

static bool has_key(const void *entry, const void *key)
{
	return vd_bytes_equal(vd_kv_key(entry), *(const struct vd_bytes *) key);
}

vd_status vdi_loaded_history_new(struct vdi_loaded_history **ret_loaded)
{
	struct vdi_loaded_history *loaded = VDI_NEW(struct vdi_loaded_history);

	if (loaded == NULL)
		return VD_NOMEM;
	atomic_init(&loaded->references, 1);
	vdi_hash_init(&loaded->latest, has_key, 0);
	*ret_loaded = loaded;
	return VD_OK;
}

struct vdi_loaded_history *vdi_loaded_history_ref(struct vdi_loaded_history *loaded)
{
	atomic_fetch_add_explicit(&loaded->references, 1, memory_order_relaxed);
	return loaded;
}

static void drop_events(struct vdi_loaded_history *loaded)
{
	for (size_t i = 0; i < loaded->count; i++) {
		vd_kv_unref(loaded->events[i].kv);
		vd_kv_unref(loaded->events[i].previous);
	}
	loaded->count = 0;
}

struct vdi_loaded_history *vdi_loaded_history_unref(struct vdi_loaded_history *loaded)
{
	if (loaded && atomic_fetch_sub_explicit(&loaded->references, 1, memory_order_acq_rel) == 1) {
		vdi_loaded_history_seal(loaded);
		drop_events(loaded);
		vdi_free(loaded->events);
		vdi_free(loaded);
	}
	return NULL;
}

struct vd_kv *vdi_loaded_history_latest(const struct vdi_loaded_history *loaded, struct vd_bytes key)
{
	return vdi_hash_get(&loaded->latest, vdi_hash_bytes(key, vdi_hash_seed()), &key);
}

static vd_status remember(struct vdi_loaded_history *loaded, struct vd_kv *kv)
{
	struct vd_bytes key = vd_kv_key(kv);
	void	       *replaced = NULL;

	VDI_TRY(vdi_hash_put(&loaded->latest, vdi_hash_bytes(key, vdi_hash_seed()), &key, kv, &replaced));
	vd_kv_ref(kv);
	vd_kv_unref(replaced);
	return VD_OK;
}

vd_status vdi_loaded_history_add(struct vdi_loaded_history *loaded, bool is_delete, struct vd_kv *kv,
				 struct vd_kv *previous, bool is_event)
{
	vd_status status = VD_OK;

	if (is_event && !vdi_grow((void **) &loaded->events, &loaded->capacity, loaded->count + 1,
				  sizeof *loaded->events))
		status = VD_NOMEM;
	if (status == VD_OK)
		status = remember(loaded, kv);
	if (status == VD_OK && is_event) {
		loaded->events[loaded->count++] =
			(struct vd_store_event) { .is_delete = is_delete, .kv = kv, .previous = previous };
		return VD_OK;
	}
	vd_kv_unref(kv);
	vd_kv_unref(previous);
	return status;
}

void vdi_loaded_history_forget(struct vdi_loaded_history *loaded, vd_rev floor)
{
	size_t first = vdi_loaded_history_find(loaded, floor + 1);

	for (size_t i = 0; i < first; i++) {
		vd_kv_unref(loaded->events[i].kv);
		vd_kv_unref(loaded->events[i].previous);
	}
	loaded->count -= first;
	if (loaded->count)
		memmove(loaded->events, loaded->events + first, loaded->count * sizeof *loaded->events);
	loaded->floor = VDI_MAX(loaded->floor, floor);
}

void vdi_loaded_history_seal(struct vdi_loaded_history *loaded)
{
	size_t position = 0;

	for (struct vd_kv *kv; (kv = vdi_hash_next(&loaded->latest, &position));)
		vd_kv_unref(kv);
	vdi_hash_clear(&loaded->latest);
}

void vdi_loaded_history_clear(struct vdi_loaded_history *loaded)
{
	drop_events(loaded);
	vdi_loaded_history_seal(loaded);
	loaded->floor = loaded->until = 0;
}

static int newest_first(const void *a, const void *b)
{
	vd_rev left = (*(struct vd_kv *const *) a)->mod_rev, right = (*(struct vd_kv *const *) b)->mod_rev;

	return VDI_ORDER(right, left);
}

vd_status vdi_loaded_history_witnesses(const struct vdi_loaded_history *loaded,
				       struct vd_kv *ret_kvs[VDI_LOADED_HISTORY_WITNESSES_MAX],
				       size_t	    *ret_count)
{
	size_t all = loaded->latest.count, newest = VDI_LOADED_HISTORY_WITNESSES_MAX / 2, count, position = 0,
	       i = 0;
	struct vd_kv **kvs = vdi_calloc(all + 1, sizeof *kvs);

	if (kvs == NULL)
		return VD_NOMEM;
	for (struct vd_kv *kv; (kv = vdi_hash_next(&loaded->latest, &position));)
		kvs[i++] = kv;
	qsort(kvs, all, sizeof *kvs, newest_first);
	count = VDI_MIN(all, VDI_LOADED_HISTORY_WITNESSES_MAX);
	for (i = 0; i < count; i++) {
		/* The second half is spread over the older records. */
		size_t place =
			i < newest ?
				i :
				newest + (i - newest) *
						 (VDI_MAX(all, VDI_LOADED_HISTORY_WITNESSES_MAX) - newest) /
						 (VDI_LOADED_HISTORY_WITNESSES_MAX - newest);

		ret_kvs[i] = vd_kv_ref(kvs[place]);
	}
	vdi_free(kvs);
	*ret_count = count;
	return VD_OK;
}

size_t vdi_loaded_history_find(const struct vdi_loaded_history *loaded, vd_rev revision)
{
	size_t low = 0, high = loaded->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (loaded->events[middle].kv->mod_rev >= revision)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}
