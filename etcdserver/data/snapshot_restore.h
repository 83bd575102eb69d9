/* Restore: the content of an etcd snapshot (also a db file of a stopped etcd; with or without the digest that
 * etcdctl appends) becomes the initial content of an embedded store: keys with their history since the
 * compaction, leases, users and roles. */
#ifndef VDI_SNAPSHOT_RESTORE_H
#define VDI_SNAPSHOT_RESTORE_H

#include "mvcc_open.h"

struct vdi_snapshot_report {
	int64_t records;
	int64_t leases;
	vd_rev	revision;
	vd_rev	compacted; /* -1: never */
};

/* Blocks. bytes: the whole file. *ret_auth (vdi_free) is for vdi_auth_restore. VD_CORRUPT, VD_INVALID (with a
 * message), VD_EXISTS: the store is not empty; and the errors of vdi_mvcc_open_importing. */
VDI_MUST_USE vd_status vdi_snapshot_restore(const struct vd_env *env, const struct vd_mvcc_options *options,
					    struct vd_bytes bytes, struct vd_store **ret_store,
					    void **ret_auth, size_t *ret_auth_size,
					    struct vdi_snapshot_report *ret_report, struct vd_error *reterr);

#endif
