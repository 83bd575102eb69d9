/* How: an array of changes, and a table of the last record of each key. The table resolves the previous
 * record of changes without a copy of it, and provides the witnesses. */
#include "loaded_history.h"

#include <stdlib.h>

static bool has_key(const void *entry, const void *key)
{
	return vd_bytes_equal(vd_kv_key(entry), *(const struct vd_bytes *) key);
}

vd_status vdi_past_new(struct vdi_past **ret_past)
{
	struct vdi_past *past = VDI_NEW(struct vdi_past);

	if (past == NULL)
		return VD_NOMEM;
	atomic_init(&past->references, 1);
	vdi_hash_init(&past->latest, has_key, 0);
	*ret_past = past;
	return VD_OK;
}

struct vdi_past *vdi_past_ref(struct vdi_past *past)
{
	atomic_fetch_add_explicit(&past->references, 1, memory_order_relaxed);
	return past;
}

static void drop_events(struct vdi_past *past)
{
	for (size_t i = 0; i < past->count; i++) {
		vd_kv_unref(past->events[i].kv);
		vd_kv_unref(past->events[i].previous);
	}
	past->count = 0;
}

struct vdi_past *vdi_past_unref(struct vdi_past *past)
{
	if (past && atomic_fetch_sub_explicit(&past->references, 1, memory_order_acq_rel) == 1) {
		vdi_past_seal(past);
		drop_events(past);
		vdi_free(past->events);
		vdi_free(past);
	}
	return NULL;
}

struct vd_kv *vdi_past_latest(const struct vdi_past *past, struct vd_bytes key)
{
	return vdi_hash_get(&past->latest, vdi_hash_bytes(key, vdi_hash_seed()), &key);
}

static vd_status remember(struct vdi_past *past, struct vd_kv *kv)
{
	struct vd_bytes key = vd_kv_key(kv);
	void	       *replaced = NULL;

	VDI_TRY(vdi_hash_put(&past->latest, vdi_hash_bytes(key, vdi_hash_seed()), &key, kv, &replaced));
	vd_kv_ref(kv);
	vd_kv_unref(replaced);
	return VD_OK;
}

vd_status vdi_past_add(struct vdi_past *past, bool is_delete, struct vd_kv *kv, struct vd_kv *previous,
		       bool is_told)
{
	vd_status status = VD_OK;

	if (is_told &&
	    !vdi_grow((void **) &past->events, &past->capacity, past->count + 1, sizeof *past->events))
		status = VD_NOMEM;
	if (status == VD_OK)
		status = remember(past, kv);
	if (status == VD_OK && is_told) {
		past->events[past->count++] =
			(struct vd_store_event) { .is_delete = is_delete, .kv = kv, .previous = previous };
		return VD_OK;
	}
	vd_kv_unref(kv);
	vd_kv_unref(previous);
	return status;
}

void vdi_past_forget(struct vdi_past *past, vd_rev floor)
{
	size_t first = vdi_past_find(past, floor + 1);

	for (size_t i = 0; i < first; i++) {
		vd_kv_unref(past->events[i].kv);
		vd_kv_unref(past->events[i].previous);
	}
	past->count -= first;
	if (past->count)
		memmove(past->events, past->events + first, past->count * sizeof *past->events);
	past->floor = VDI_MAX(past->floor, floor);
}

void vdi_past_seal(struct vdi_past *past)
{
	size_t position = 0;

	for (struct vd_kv *kv; (kv = vdi_hash_next(&past->latest, &position));)
		vd_kv_unref(kv);
	vdi_hash_clear(&past->latest);
}

void vdi_past_clear(struct vdi_past *past)
{
	drop_events(past);
	vdi_past_seal(past);
	past->floor = past->until = 0;
}

static int newest_first(const void *a, const void *b)
{
	vd_rev left = (*(struct vd_kv *const *) a)->mod_rev, right = (*(struct vd_kv *const *) b)->mod_rev;

	return VDI_ORDER(right, left);
}

vd_status vdi_past_witnesses(const struct vdi_past *past, struct vd_kv *ret_kvs[VDI_PAST_WITNESSES_MAX],
			     size_t *ret_count)
{
	size_t all = past->latest.count, newest = VDI_PAST_WITNESSES_MAX / 2, count, position = 0, i = 0;
	struct vd_kv **kvs = vdi_calloc(all + 1, sizeof *kvs);

	if (kvs == NULL)
		return VD_NOMEM;
	for (struct vd_kv *kv; (kv = vdi_hash_next(&past->latest, &position));)
		kvs[i++] = kv;
	qsort(kvs, all, sizeof *kvs, newest_first);
	count = VDI_MIN(all, VDI_PAST_WITNESSES_MAX);
	for (i = 0; i < count; i++) {
		/* The second half is spread over the older records. */
		size_t place = i < newest ? i :
					    newest + (i - newest) *
							     (VDI_MAX(all, VDI_PAST_WITNESSES_MAX) - newest) /
							     (VDI_PAST_WITNESSES_MAX - newest);

		ret_kvs[i] = vd_kv_ref(kvs[place]);
	}
	vdi_free(kvs);
	*ret_count = count;
	return VD_OK;
}

size_t vdi_past_find(const struct vdi_past *past, vd_rev revision)
{
	size_t low = 0, high = past->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (past->events[middle].kv->mod_rev >= revision)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}
