/* The records of an etcd snapshot (bbolt, with or without the digest that etcdctl appends; also the db file
 * of a stopped etcd), in the order of their revisions. Nothing in the file is trusted (bolt_read.h). One
 * thread; pure functions over the bytes of the caller. */
#ifndef VDI_SNAPSHOT_READ_H
#define VDI_SNAPSHOT_READ_H

#include "bolt_read.h"

struct vdi_snapshot {
	struct vdi_bolt_file file;
	/* what is older is no longer read, whether or not it is gone yet (E-409); -1: never */
	vd_rev compacted;
	/* newest revision of the records that each has read, those without a key included; 0: none */
	vd_rev revision;
};

/* VD_CORRUPT with a sentence: it is no snapshot, or its digest does not fit. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_snapshot_init(struct vdi_snapshot *snapshot, struct vd_bytes bytes,
					 struct vd_error *reterr);

/* kv is lent, with revision, place in its transaction, create_rev, version and lease; a tombstone has key and
 * revision only. */
typedef vd_status (*vdi_snapshot_each_fn)(void *arg, bool is_delete, struct vd_kv *kv);
/* Gives each record of a key. At or before the compacted revision a tombstone may belong to a key whose
 * records are gone already, or, while a compaction is only scheduled, delete a record that is still there. An
 * empty record, which `etcdutl snapshot restore --bump-revision` writes, has no key: it only raises
 * snapshot->revision. VD_CORRUPT, VD_INVALID (a key that is too long), VD_NOMEM, or the status that each
 * returned. */
VDI_MUST_USE vd_status vdi_snapshot_each(struct vdi_snapshot *snapshot, vdi_snapshot_each_fn each, void *arg,
					 struct vd_error *reterr);

#endif
