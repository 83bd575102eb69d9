/* The hashes of the Maintenance service. */
#ifndef VDI_SERVE_HASH_H
#define VDI_SERVE_HASH_H

#include "etcdserver.h"

/* Each answers one request, later, on VDI_SERVE_WORKER_SLOW. */
void vdi_serve_hash_kv_begin(struct vdi_serve_call *call, struct vd_bytes message);
void vdi_serve_hash_begin(struct vdi_serve_call *call, struct vd_bytes message);

#endif
