/* The records of an etcd snapshot (bbolt, with or without the digest that etcdctl appends; also the db file of a stopped etcd), in the order of their revisions. Nothing in the file
 * is trusted (bolt_read.h). One thread; pure functions over the bytes of the caller. */
#ifndef VDI_SNAPSHOT_READ_H
#define VDI_SNAPSHOT_READ_H

#include "bolt_read.h"

struct vdi_snapshot {
	struct vdi_bolt_file file;
	vd_rev		     compacted; /* what is older is no longer read, whether or not it is gone yet (E-409); -1: never */
};

/* VD_CORRUPT with a sentence: it is no snapshot, or its digest does not fit. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_snapshot_init(struct vdi_snapshot *snapshot, struct vd_bytes bytes, struct vd_error *reterr);

/* kv is lent, with revision, place in its transaction, create_rev, version and lease; a tombstone has key and revision only. */
typedef vd_status (*vdi_snapshot_each_fn)(void *arg, bool is_delete, struct vd_kv *kv);
/* All of them but tombstones at or before the compacted revision, which tell of keys whose records are gone. VD_CORRUPT, VD_INVALID (a key that is too long), VD_NOMEM, or what each
 * answered. */
VDI_MUST_USE vd_status vdi_snapshot_each(const struct vdi_snapshot *snapshot, vdi_snapshot_each_fn each, void *arg, struct vd_error *reterr);

#endif
