/* The keys of the log are in a hash table; listed keys are removed from it, and the rest was deleted. */
#include "recorder_relist.h"

#include <stdlib.h>

#include "hash.h"
#include "log_steps.h"

#define SEED 0x72656c69737400

struct known {
	uint32_t size;
	char	 key[];
};

struct vdi_relist {
	struct vdi_hash keys; /* of struct known: in the log, and not yet in the new list */
	struct vd_kv  **changed;
	size_t		count, capacity;
};

static bool is_key(const void *entry, const void *key)
{
	const struct known *known = entry;
	struct vd_bytes	    mine = { known->key, known->size };

	return vd_bytes_equal(mine, *(const struct vd_bytes *) key);
}

static void forget(struct vdi_relist *relist, struct vd_bytes key)
{
	vdi_free(vdi_hash_remove(&relist->keys, vdi_hash_bytes(key, SEED), &key));
}

static vd_status remember(struct vdi_relist *relist, struct vd_bytes key)
{
	uint64_t      hash = vdi_hash_bytes(key, SEED);
	struct known *known;
	vd_status     status;

	if (vdi_hash_get(&relist->keys, hash, &key))
		return VD_OK;
	known = vdi_alloc(sizeof *known + key.size);
	if (known == NULL)
		return VD_NOMEM;
	known->size = (uint32_t) key.size;
	memcpy(known->key, key.data, key.size);
	status = vdi_hash_put(&relist->keys, hash, &key, known, NULL);
	if (status != VD_OK)
		vdi_free(known);
	return status;
}

static vd_status read_log(struct vdi_relist *relist, struct vdi_log_steps *steps, struct vd_error *reterr)
{
	struct vdi_log_step step;
	vd_status	    status;

	while ((status = vdi_log_steps_next(steps, &step, reterr)) == VD_OK)
		for (size_t i = 0; i < step.count; i++) {
			if (step.changes[i].is_delete)
				forget(relist, vd_kv_key(step.changes[i].kv));
			else if (remember(relist, vd_kv_key(step.changes[i].kv)) != VD_OK)
				return vd_error_set(reterr, VD_NOMEM, "out of memory");
		}
	return status == VD_CLOSED ? VD_OK : status;
}

vd_status vdi_relist_begin(const char *path, struct vdi_relist **ret_relist, struct vd_error *reterr)
{
	struct vdi_relist    *relist = VDI_NEW(struct vdi_relist);
	struct vdi_log_steps *steps = NULL;
	vd_status	      status;

	if (relist == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	vdi_hash_init(&relist->keys, is_key, 0);
	status = vdi_log_steps_open(path, &steps, reterr);
	if (status == VD_OK)
		status = read_log(relist, steps, reterr);
	vdi_log_steps_close(steps);
	if (status == VD_OK)
		*ret_relist = relist;
	else
		vdi_relist_free(relist);
	return status;
}

vd_status vdi_relist_take(struct vdi_relist *relist, struct vd_kv **kvs, size_t count, vd_rev done)
{
	if (!vdi_grow((void **) &relist->changed, &relist->capacity, relist->count + count,
		      sizeof *relist->changed))
		return VD_NOMEM;
	for (size_t i = 0; i < count; i++) {
		forget(relist, vd_kv_key(kvs[i]));
		if (kvs[i]->mod_rev > done)
			relist->changed[relist->count++] = vd_kv_ref(kvs[i]);
	}
	return VD_OK;
}

static int by_revision(const void *a, const void *b)
{
	const struct vd_kv *left = *(struct vd_kv *const *) a, *right = *(struct vd_kv *const *) b;

	return left->mod_rev < right->mod_rev ? -1 :
	       left->mod_rev > right->mod_rev ? 1 :
						vd_bytes_compare(vd_kv_key(left), vd_kv_key(right));
}

static vd_status write_deletions(struct vdi_relist *relist, struct vdi_log_writer *writer, vd_rev revision,
				 vd_wall now, uint64_t *records, struct vd_error *reterr)
{
	size_t	      position = 0;
	struct known *known;

	while ((known = vdi_hash_next(&relist->keys, &position)) != NULL) {
		struct vd_kv *tombstone;
		vd_status     status;

		if (vd_kv_new((struct vd_bytes) { known->key, known->size }, VD_BYTES_NONE, &tombstone) !=
		    VD_OK)
			return vd_error_set(reterr, VD_NOMEM, "out of memory");
		tombstone->mod_rev = revision;
		status = vdi_log_writer_change(writer, true, tombstone, now, reterr);
		vd_kv_unref(tombstone);
		if (status != VD_OK)
			return status;
		++*records;
	}
	return VD_OK;
}

vd_status vdi_relist_write(struct vdi_relist *relist, struct vdi_log_writer *writer, vd_rev revision,
			   vd_wall now, uint64_t *ret_records, struct vd_error *reterr)
{
	uint64_t records = 0;
	vd_rev	 last = 0;

	if (relist->count)
		qsort(relist->changed, relist->count, sizeof *relist->changed, by_revision);
	for (size_t i = 0; i < relist->count; i++) {
		vd_rev this = relist->changed[i]->mod_rev;

		VDI_TRY(vdi_log_writer_change(writer, false, relist->changed[i], now, reterr));
		records++;
		last = this;
		if (this < revision && (i + 1 == relist->count || relist->changed[i + 1]->mod_rev != this))
			VDI_TRY(vdi_log_writer_commit(writer, this, reterr));
	}
	if (relist->keys.count || last == revision) {
		VDI_TRY(write_deletions(relist, writer, revision, now, &records, reterr));
		VDI_TRY(vdi_log_writer_commit(writer, revision, reterr));
		last = revision;
	}
	if (last)
		VDI_TRY(vdi_log_writer_mark(writer, VDI_LOG_COMPACT, last, NULL, reterr));
	*ret_records = records;
	return vdi_log_writer_mark(writer, VDI_LOG_DISCONNECT, 0, NULL, reterr);
}

struct vdi_relist *vdi_relist_free(struct vdi_relist *relist)
{
	size_t position = 0;
	void  *known;

	if (relist == NULL)
		return NULL;
	while ((known = vdi_hash_next(&relist->keys, &position)) != NULL)
		vdi_free(known);
	vdi_hash_fini(&relist->keys);
	for (size_t i = 0; i < relist->count; i++)
		vd_kv_unref(relist->changed[i]);
	vdi_free(relist->changed);
	vdi_free(relist);
	return NULL;
}
