/* The embedded store speaks etcd v3: what a server is, whatever carries its calls.
 *
 * A call comes from a transport (serve_rpc.c: gRPC) or from a test. The transport owns a struct
 * vdi_serve_call, tells the server of its messages and of its end, and carries out send and finish. Nothing
 * here knows of gRPC; nothing blocks: reads are answered at once, writes when the store calls back, long work
 * (large ranges, hashes, passwords, changes of persistent state) runs on the server's own actors.
 *
 *   accept -> message* (NULL: half-closed) -> ended          the transport's side, one at a time for one call
 *   send* -> finish                                          the server's side, from any thread
 *
 * Mirrors etcd server/etcdserver/api/v3rpc and server/etcdserver/v3_server.go (E-1xx, E-4xx, E-5xx) of one
 * member that always leads.
 */
#ifndef VDI_ETCDSERVER_H
#define VDI_ETCDSERVER_H

#include "serve_call.h"

/* Starts the actors, reads the persistent state. VD_INVALID_ARGUMENT, VD_CORRUPT, VD_LOCKED, VD_IO, VD_NOMEM.
 * Blocks. */
VDI_MUST_USE vd_status vdi_etcdserver_new(const struct vd_env		      *env,
					  const struct vdi_etcdserver_options *options,
					  struct vdi_etcdserver **ret_server, struct vd_error *reterr);
/* What MemberList says when no client URL was given: the address is known only when the transport listens.
 * Lent; before the first call. */
void vdi_etcdserver_set_client_url(struct vdi_etcdserver *server, const char *url);
/* Streams end with "etcdserver: server stopped"; calls that are accepted from now on too. */
void vdi_etcdserver_stop(struct vdi_etcdserver *server);
/* After stop and after the transport has closed (all calls have been freed). Blocks; not from an actor. NULL
 * is fine; returns NULL. */
struct vdi_etcdserver *vdi_etcdserver_free(struct vdi_etcdserver *server);

/* ---- The transport's side ---- */

/* A new call; call->ops is set, the rest is zero. May finish it at once. */
void vdi_etcdserver_accept(struct vdi_etcdserver *server, struct vdi_serve_call *call, const char *method);
/* message is taken over; bytes.data NULL: half-closed. */
void vdi_etcdserver_message(struct vdi_serve_call *call, struct vdi_rpc_message *message);
void vdi_etcdserver_writable(struct vdi_serve_call *call);
/* The last the transport says; drops its reference. */
void vdi_etcdserver_ended(struct vdi_serve_call *call);

/* ---- Methods ---- */

/* By its place among all methods; NULL: there are no more. */
const struct vdi_serve_method *vdi_serve_method_at(size_t place);

extern const struct vdi_serve_method vdi_serve_kv_methods[];
extern const struct vdi_serve_method vdi_serve_watch_methods[];
extern const struct vdi_serve_method vdi_serve_lease_methods[];
extern const struct vdi_serve_method vdi_serve_maintenance_methods[];
extern const struct vdi_serve_method vdi_serve_cluster_methods[];
extern const struct vdi_serve_method vdi_serve_auth_methods[];
extern const struct vdi_serve_method vdi_serve_health_methods[];

#endif
