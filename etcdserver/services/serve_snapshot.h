/* Maintenance.Snapshot (E-165): the whole store as the bbolt file that an etcd would send. etcdutl reads it,
 * etcd can be restored from it, and so can `vedette etcd --restore`. */
#ifndef VDI_SERVE_SNAPSHOT_H
#define VDI_SERVE_SNAPSHOT_H

#include "etcdserver.h"

void vdi_serve_snapshot_begin(struct vdi_serve_call *call, struct vd_bytes message);

#endif
