/* Authenticate calls that wait for bcrypt, which takes about 50 ms each: executed one after the other, on an
 * actor of their own, so that other calls need not wait for them.
 *
 * Addresses take turns, so a client that floods delays others by one check each. An address (for IPv6 its /64
 * network) may have VDI_SERVE_LOGINS_ADDRESS_MAX calls waiting, all together VDI_SERVE_LOGINS_MAX; further
 * ones end with RESOURCE_EXHAUSTED. The call of a disconnected client leaves the queue. When the server
 * stops, all waiting calls end at once with "server stopped".
 */
#ifndef VDI_SERVE_LOGINS_H
#define VDI_SERVE_LOGINS_H

#include "serve_call.h"

#define VDI_SERVE_LOGINS_ADDRESS_MAX 512
#define VDI_SERVE_LOGINS_MAX 2048

struct vdi_serve_logins;

/* VD_NOMEM, VD_FULL (no thread). */
VDI_MUST_USE vd_status vdi_serve_logins_new(struct vdi_etcdserver    *server,
					    struct vdi_serve_logins **ret_logins);
/* Queues a call to be answered by work, on the actor, unless it ends before; uses the call's state, on_ended
 * and on_free. Any thread; never blocks. */
void vdi_serve_logins_put(struct vdi_serve_logins *logins, struct vdi_serve_call *call,
			  void (*work)(struct vdi_serve_call *call));
struct vdi_serve_login_counts {
	uint64_t waiting;
	uint64_t rejected_address, rejected_total; /* by the first and the second limit, since the start */
};

/* Any thread. */
void vdi_serve_logins_counts(struct vdi_serve_logins *logins, struct vdi_serve_login_counts *ret_counts);
/* Ends all waiting calls, and rejects further ones. Any thread. */
void vdi_serve_logins_stop(struct vdi_serve_logins *logins);
/* Call after stop, when no call is left. Blocks for the check in progress. NULL is fine; returns NULL. */
struct vdi_serve_logins *vdi_serve_logins_free(struct vdi_serve_logins *logins);

/* Returns the part of a peer's address that shares a turn: "10.0.0.7:4711" -> "10.0.0.7",
 * "[2001:db8:1:2:3::4]:4711" -> "2001:db8:1:2::/64". */
#define VDI_SERVE_ADDRESS_SIZE 64
void vdi_serve_logins_address(const char *peer, char text[VDI_SERVE_ADDRESS_SIZE]);

#endif
