/* The past: the changes between two revisions as they were read back at a start, complete and immutable.
 *
 *   floor < changes <= until, in revision order, each with the record it replaced
 *
 * While it is made it has one owner; once shared it is only read, on any thread, and lives as long as
 * somebody holds a reference.
 */
#ifndef VDI_PAST_H
#define VDI_PAST_H

#include <stdatomic.h>
#include <vedette/store.h>

#include "base.h"
#include "hash.h"

/* Records by which a store is recognized: what it must show at `until`. */
#define VDI_PAST_WITNESSES_MAX 64

struct vdi_past {
	_Atomic uint32_t references;
	vd_rev		 floor; /* 0 with until 0: nothing is known */
	vd_rev		 until;

	struct vd_store_event *events; /* a reference of each kv and previous */
	size_t		       count;
	size_t		       capacity;

	/* While it is made: the last record of each key, tombstones too, also of changes that are too old to
	 * be told. */
	struct vdi_hash latest;
};

/* One reference. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_past_new(struct vdi_past **ret_past);
struct vdi_past	      *vdi_past_ref(struct vdi_past *past);
/* NULL is fine. Returns NULL. */
struct vdi_past *vdi_past_unref(struct vdi_past *past);

/* ---- Its maker ---- */

/* Takes over both references (previous may be NULL), also when it fails. Revisions do not decrease. is_told
 * false: only the last record of the key is remembered. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_past_add(struct vdi_past *past, bool is_delete, struct vd_kv *kv,
				    struct vd_kv *previous, bool is_told);
/* The last record of a key, lent; NULL: not known. */
struct vd_kv *vdi_past_latest(const struct vdi_past *past, struct vd_bytes key);
/* Everything up to floor is forgotten, but for the last record of each key. */
void vdi_past_forget(struct vdi_past *past, vd_rev floor);
/* Everything. */
void vdi_past_clear(struct vdi_past *past);
/* The newest last records and some of the older ones; references of the caller's. Returns how many.
 * VD_NOMEM. */
VDI_MUST_USE vd_status vdi_past_witnesses(const struct vdi_past *past,
					  struct vd_kv *ret_kvs[VDI_PAST_WITNESSES_MAX], size_t *ret_count);
/* Nothing more will be added: frees what only the maker needs. */
void vdi_past_seal(struct vdi_past *past);

/* ---- Any thread ---- */

/* The index of the first event of a revision >= revision; count if there is none. */
size_t vdi_past_find(const struct vdi_past *past, vd_rev revision);

#endif
