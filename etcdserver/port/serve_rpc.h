/* An etcd server on the network: the server (etcdserver.h) behind an RPC transport (rpc_server.h), and its
 * HTTP endpoints (serve_http.h) on the same addresses if the transport supports them. */
#ifndef VDI_SERVE_RPC_H
#define VDI_SERVE_RPC_H

#include "etcdserver.h"

struct vdi_serve_rpc;

struct vdi_serve_rpc_options {
	const char *const		*listen; /* addr:port or unix:/path; port 0 chooses */
	size_t				 listen_count;
	const struct vdi_rpc_server_tls *tls;	       /* NULL: plain text */
	const struct vd_rpc_transport	*transport;    /* NULL: vd_rpc_http2() */
	bool				 without_http; /* RPCs only */
	bool	 without_calls;	   /* HTTP endpoints only: each RPC is answered UNIMPLEMENTED */
	unsigned streams_max;	   /* per connection; 0: no limit */
	size_t	 send_bytes_max;   /* unsent bytes of one call; 0: the transport's default */
	size_t	 unsent_bytes_max; /* unsent bytes of all calls; 0: 1 GiB */
	unsigned threads;
	vd_dur	 ping_interval_min; /* 0: 5 s, as etcd */
	vd_dur	 keepalive_time;    /* 0: 2 h */
	vd_dur	 keepalive_timeout; /* 0: 20 s */
};

/* Serves when it returns VD_OK. The server (borrowed) must outlive it. Errors as server_new of
 * rpc_transport.h. */
VDI_MUST_USE vd_status vdi_serve_rpc_new(struct vdi_etcdserver		    *server,
					 const struct vdi_serve_rpc_options *options,
					 struct vdi_serve_rpc **ret_rpc, struct vd_error *reterr);
/* Returns "127.0.0.1:2379"; borrowed. */
const char *vdi_serve_rpc_address(const struct vdi_serve_rpc *rpc, size_t index);
/* Rejects new calls; streams end with "etcdserver: server stopped"; other calls may end within the grace
 * time, then they are aborted. Blocks; not from an actor. NULL is fine; returns NULL. */
struct vdi_serve_rpc *vdi_serve_rpc_close(struct vdi_serve_rpc *rpc);

#endif
