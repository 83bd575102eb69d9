/* An etcd v3 server on the embedded store, independent of the transport.
 *
 * A call comes from a transport (serve_rpc.c: gRPC) or from a test. The transport owns a struct
 * vdi_serve_call, reports messages and the end to the server, and implements send and finish. Nothing here
 * depends on gRPC, and nothing blocks: reads are answered at once, writes when the store calls back; long
 * work (large ranges, hashes, passwords, changes of persistent state) runs on the server's actors.
 *
 *   accept -> message* (NULL: half-closed) -> ended    called by the transport, one at a time per call
 *   send* -> finish                                    called by the server, from any thread
 *
 * Mirrors etcd server/etcdserver/api/v3rpc and server/etcdserver/v3_server.go, as a single member that is
 * always the leader.
 */
#ifndef VDI_ETCDSERVER_H
#define VDI_ETCDSERVER_H

#include "serve_call.h"

/* Starts the actors and reads the persistent state. VD_INVALID_ARGUMENT, VD_CORRUPT, VD_LOCKED, VD_IO,
 * VD_NOMEM. Blocks. */
VDI_MUST_USE vd_status vdi_etcdserver_new(const struct vd_env		      *env,
					  const struct vdi_etcdserver_options *options,
					  struct vdi_etcdserver **ret_server, struct vd_error *reterr);
/* Sets the URL in MemberList's response if no client URL was configured, because the address is known only
 * when the transport listens. Borrowed; call before the first call is accepted. */
void vdi_etcdserver_set_client_url(struct vdi_etcdserver *server, const char *url);
/* Ends streams with "etcdserver: server stopped", also calls accepted from now on. */
void vdi_etcdserver_stop(struct vdi_etcdserver *server);
/* Call after stop and after the transport has closed (all calls are freed). Blocks; not from an actor. NULL
 * is fine; returns NULL. */
struct vdi_etcdserver *vdi_etcdserver_free(struct vdi_etcdserver *server);

/* ---- The transport's side ---- */

/* Accepts a new call; call->ops is set, the rest is zero. May finish the call before it returns. */
void vdi_etcdserver_accept(struct vdi_etcdserver *server, struct vdi_serve_call *call, const char *method);
/* Takes over message; bytes.data NULL: half-closed. */
void vdi_etcdserver_message(struct vdi_serve_call *call, struct vdi_rpc_message *message);
void vdi_etcdserver_writable(struct vdi_serve_call *call);
/* The transport's last function for the call; drops its reference. */
void vdi_etcdserver_ended(struct vdi_serve_call *call);

/* ---- Methods ---- */

/* Returns a method by its index among all methods; NULL: no more. */
const struct vdi_serve_method *vdi_serve_method_at(size_t place);

extern const struct vdi_serve_method vdi_serve_kv_methods[];
extern const struct vdi_serve_method vdi_serve_watch_methods[];
extern const struct vdi_serve_method vdi_serve_lease_methods[];
extern const struct vdi_serve_method vdi_serve_maintenance_methods[];
extern const struct vdi_serve_method vdi_serve_cluster_methods[];
extern const struct vdi_serve_method vdi_serve_auth_methods[];
extern const struct vdi_serve_method vdi_serve_health_methods[];

#endif
