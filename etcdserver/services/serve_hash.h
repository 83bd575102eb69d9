/* The hashes of the Maintenance service (E-470 to E-472). */
#ifndef VDI_SERVE_HASH_H
#define VDI_SERVE_HASH_H

#include "etcdserver.h"

/* Each takes one request and ends the call, later, on VDI_SERVE_WORKER_SLOW. */
void vdi_serve_hash_kv_begin(struct vdi_serve_call *call, struct vd_bytes message);
void vdi_serve_hash_begin(struct vdi_serve_call *call, struct vd_bytes message);

#endif
