/* KV.RangeStream: a range in chunks, all at one revision (etcd server/etcdserver/v3_server.go
 * rangeStream). */
#ifndef VDI_SERVE_RANGE_STREAM_H
#define VDI_SERVE_RANGE_STREAM_H

#include "etcdserver.h"

void vdi_serve_range_stream_begin(struct vdi_serve_call *call, struct vd_bytes message);

#endif
