/* The records of an etcd snapshot in the order of their revisions: a bbolt file with or without the digest
 * that etcdctl appends; also the db file of a stopped etcd. The file is not trusted (bolt_read.h). One
 * thread; pure functions over the caller's bytes. */
#ifndef VDI_SNAPSHOT_READ_H
#define VDI_SNAPSHOT_READ_H

#include "bolt_read.h"

struct vdi_snapshot {
	struct vdi_bolt_file file;
	/* older revisions cannot be read, even if their records still exist; -1: never */
	vd_rev compacted;
	/* newest revision of the records read by each, including those without a key; 0: none */
	vd_rev revision;
};

/* VD_CORRUPT with a message: not a snapshot, or its digest does not match. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_snapshot_init(struct vdi_snapshot *snapshot, struct vd_bytes bytes,
					 struct vd_error *reterr);

/* kv is borrowed, with revision, sub, create_rev, version and lease; a tombstone only has key and
 * revision. */
typedef vd_status (*vdi_snapshot_each_fn)(void *arg, bool is_delete, struct vd_kv *kv);
/* Visits each record of a key. At or below the compacted revision a tombstone may belong to a key whose
 * records are already removed or, if a compaction is only scheduled, delete a record that still exists. An
 * empty record, which `etcdutl snapshot restore --bump-revision` writes, has no key: it only raises
 * snapshot->revision. VD_CORRUPT, VD_INVALID (a key is too long), VD_NOMEM, or the status returned by
 * each. */
VDI_MUST_USE vd_status vdi_snapshot_each(struct vdi_snapshot *snapshot, vdi_snapshot_each_fn each, void *arg,
					 struct vd_error *reterr);

#endif
