/* Maintenance.Snapshot: the whole store as a bbolt file in etcd's format. etcdutl can read it, and etcd and
 * `vedette etcd --restore` can restore it. */
#ifndef VDI_SERVE_SNAPSHOT_H
#define VDI_SERVE_SNAPSHOT_H

#include "etcdserver.h"

void vdi_serve_snapshot_begin(struct vdi_serve_call *call, struct vd_bytes message);

#endif
