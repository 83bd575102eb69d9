/* The newest record of each key of a source, and the numbers that the server does not send.
 *
 * A server's event has the new object only. The mirror gives it the previous record, the revision of the
 * creation and the version:
 *
 *   listed object             create_rev = its revision   version 1
 *   put of an unknown key     create_rev = its revision   version 1
 *   put of a known key        create_rev of the record    version of the record + 1
 *
 * Events may arrive twice: after a cut the last revision is requested again, and a second watch runs beside
 * the first. Both are in revision order and have no gaps, so an event below the newest applied revision was
 * applied already, and one at that revision was applied if the mirror shows its effect.
 *
 * One thread at a time; snapshots may be read by any thread. Memory: a reference and 16 bytes per key; the
 * records are shared with readers and caches, but counted here: at most bytes_max. */
#ifndef VDI_KUBE_MIRROR_H
#define VDI_KUBE_MIRROR_H

#include <vedette/store.h>

#include "base.h"
#include "btree.h"
#include "metrics.h"

struct vdi_kube_mirror {
	struct vdi_btree tree;	  /* struct vd_kv */
	vd_rev		 applied; /* newest revision of an applied event or a listed object, or of the list */
	uint64_t	 bytes, bytes_max;
	struct vdi_metric *metric; /* gauge to which bytes are added; borrowed; NULL: none */
};

/* An applied event; owns its references. */
struct vdi_kube_change {
	struct vd_kv *kv;	/* the new record, or a tombstone */
	struct vd_kv *previous; /* NULL: the key was created */
	bool	      is_delete;
};

/* Without a bound and a metric; the owner may set both before the first record. */
void vdi_kube_mirror_init(struct vdi_kube_mirror *mirror);
void vdi_kube_mirror_fini(struct vdi_kube_mirror *mirror);
/* Bytes of a record, as they are counted against the bound. */
size_t vdi_kube_mirror_size(const struct vd_kv *kv);
/* Stores a listed object, also over an older state of it. Takes over the reference kv, also on failure.
 * VD_TOO_BIG: bytes_max would be exceeded, nothing changed, the message has the bound; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_kube_mirror_list(struct vdi_kube_mirror *mirror, struct vd_kv *kv,
					    struct vd_error *reterr);
/* Removes a listed object that was deleted while the list arrived. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_kube_mirror_unlist(struct vdi_kube_mirror *mirror, struct vd_bytes key);
/* Applies an event. Takes over the reference kv, which nobody else has, also on failure. The caller owns
 * *ret_change. VD_EXISTS: the event is a repeated one. VD_TOO_BIG as above; VD_NOMEM. Nothing changed after
 * any of them. */
VDI_MUST_USE vd_status vdi_kube_mirror_apply(struct vdi_kube_mirror *mirror, struct vd_kv *kv, bool is_delete,
					     struct vdi_kube_change *ret_change, struct vd_error *reterr);
/* The record of key, borrowed until the next change; NULL: none. */
struct vd_kv *vdi_kube_mirror_get(const struct vdi_kube_mirror *mirror, struct vd_bytes key);
size_t	      vdi_kube_mirror_count(const struct vdi_kube_mirror *mirror);
void	      vdi_kube_change_fini(struct vdi_kube_change *change);

#endif
