/* The past: the changes between two revisions as loaded at the start, complete and immutable.
 *
 *   floor < changes <= until, in revision order, each with the record it replaced
 *
 * It has one owner while it is loaded. After that it is shared, read-only on any thread, and freed with the
 * last reference.
 */
#ifndef VDI_PAST_H
#define VDI_PAST_H

#include <stdatomic.h>
#include <vedette/store.h>

#include "base.h"
#include "hash.h"

/* Maximum records that identify a store: it must have them at `until`. */
#define VDI_PAST_WITNESSES_MAX 64

struct vdi_past {
	_Atomic uint32_t references;
	vd_rev		 floor; /* 0 with until 0: empty */
	vd_rev		 until;

	struct vd_store_event *events; /* one reference to each kv and previous */
	size_t		       count;
	size_t		       capacity;

	/* While loading: the last record of each key, including tombstones and changes too old to keep. */
	struct vdi_hash latest;
};

/* Returns a past with one reference. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_past_new(struct vdi_past **ret_past);
struct vdi_past	      *vdi_past_ref(struct vdi_past *past);
/* NULL is fine. Returns NULL. */
struct vdi_past *vdi_past_unref(struct vdi_past *past);

/* ---- Its maker ---- */

/* Adds a change; revisions do not decrease. Takes over both references (previous may be NULL), also on
 * failure. is_told false: only remembers the record as the key's last one. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_past_add(struct vdi_past *past, bool is_delete, struct vd_kv *kv,
				    struct vd_kv *previous, bool is_told);
/* Returns the last record of a key, borrowed; NULL: unknown. */
struct vd_kv *vdi_past_latest(const struct vdi_past *past, struct vd_bytes key);
/* Drops all changes up to floor, but keeps the last record of each key. */
void vdi_past_forget(struct vdi_past *past, vd_rev floor);
/* Drops everything. */
void vdi_past_clear(struct vdi_past *past);
/* Returns the newest of the last records and some older ones, with references for the caller, and their
 * number. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_past_witnesses(const struct vdi_past *past,
					  struct vd_kv *ret_kvs[VDI_PAST_WITNESSES_MAX], size_t *ret_count);
/* Frees data that is only needed for loading; no change may be added after it. */
void vdi_past_seal(struct vdi_past *past);

/* ---- Any thread ---- */

/* Returns the index of the first event of a revision >= revision; count if there is none. */
size_t vdi_past_find(const struct vdi_past *past, vd_rev revision);

#endif
