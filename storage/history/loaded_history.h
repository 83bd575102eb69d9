/* A loaded history: the changes between two revisions as loaded at the start, complete and immutable.
 *
 *   floor < changes <= until, in revision order, each with the record it replaced
 *
 * It has one owner while it is loaded. After that it is shared, read-only on any thread, and freed with the
 * last reference.
 */
#ifndef VDI_LOADED_HISTORY_H
#define VDI_LOADED_HISTORY_H

#include <stdatomic.h>
#include <vedette/store.h>

#include "base.h"
#include "hash.h"

/* Maximum records that identify a store: it must have them at `until`. */
#define VDI_LOADED_HISTORY_WITNESSES_MAX 64

struct vdi_loaded_history {
	_Atomic uint32_t references;
	vd_rev		 floor; /* 0 with until 0: empty */
	vd_rev		 until;

	struct vd_store_event *events; /* one reference to each kv and previous */
	size_t		       count;
	size_t		       capacity;

	/* While loading: the last record of each key, including tombstones and changes too old to keep. */
	struct vdi_hash latest;
};

/* Returns an empty one with one reference. VD_NOMEM. */
VDI_MUST_USE vd_status	   vdi_loaded_history_new(struct vdi_loaded_history **ret_loaded);
struct vdi_loaded_history *vdi_loaded_history_ref(struct vdi_loaded_history *loaded);
/* NULL is fine. Returns NULL. */
struct vdi_loaded_history *vdi_loaded_history_unref(struct vdi_loaded_history *loaded);

/* ---- Its maker ---- */

/* Adds a change; revisions do not decrease. Takes over both references (previous may be NULL), also on
 * failure. is_event false: only remembers the record as the key's last one. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_loaded_history_add(struct vdi_loaded_history *loaded, bool is_delete,
					      struct vd_kv *kv, struct vd_kv *previous, bool is_event);
/* Returns the last record of a key, borrowed; NULL: unknown. */
struct vd_kv *vdi_loaded_history_latest(const struct vdi_loaded_history *loaded, struct vd_bytes key);
/* Drops all changes up to floor, but keeps the last record of each key. */
void vdi_loaded_history_forget(struct vdi_loaded_history *loaded, vd_rev floor);
/* Drops everything. */
void vdi_loaded_history_clear(struct vdi_loaded_history *loaded);
/* Returns the newest of the last records and some older ones, with references for the caller, and their
 * number. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_loaded_history_witnesses(const struct vdi_loaded_history *loaded,
						    struct vd_kv *ret_kvs[VDI_LOADED_HISTORY_WITNESSES_MAX],
						    size_t	 *ret_count);
/* Frees data that is only needed for loading; no change may be added after it. */
void vdi_loaded_history_seal(struct vdi_loaded_history *loaded);

/* ---- Any thread ---- */

/* Returns the index of the first event of a revision >= revision; count if there is none. */
size_t vdi_loaded_history_find(const struct vdi_loaded_history *loaded, vd_rev revision);

#endif
