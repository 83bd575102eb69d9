/* Authenticate calls that wait for bcrypt, which takes some 50 ms each: one after the other, on an actor of
 * their own, so that nothing else waits for them.
 *
 * Addresses take turns, so a client that floods delays others by one check each. An address (of IPv6 its /64
 * network) may have VDI_SERVE_LOGINS_ADDRESS_MAX calls waiting, all together VDI_SERVE_LOGINS_MAX; the next
 * one ends with RESOURCE_EXHAUSTED. A call whose client has gone leaves the queue. When the server stops, all
 * that wait end at once with "server stopped".
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
/* A call is answered by work, on the actor, unless it ends before; the call's state, on_ended and on_free are
 * taken for that. Any thread; never blocks. */
void vdi_serve_logins_put(struct vdi_serve_logins *logins, struct vdi_serve_call *call,
			  void (*work)(struct vdi_serve_call *call));
struct vdi_serve_login_counts {
	uint64_t waiting;
	uint64_t rejected_address, rejected_total; /* by the first and by the second bound, since the start */
};

/* Any thread. */
void vdi_serve_logins_counts(struct vdi_serve_logins *logins, struct vdi_serve_login_counts *ret_counts);
/* Nothing waits any more, and whatever comes is refused. Any thread. */
void vdi_serve_logins_stop(struct vdi_serve_logins *logins);
/* After stop; no call is left. Blocks for the check under way. NULL is fine; returns NULL. */
struct vdi_serve_logins *vdi_serve_logins_free(struct vdi_serve_logins *logins);

/* What of a peer's address shares a turn: "10.0.0.7:4711" -> "10.0.0.7", "[2001:db8:1:2:3::4]:4711" ->
 * "2001:db8:1:2::/64". */
#define VDI_SERVE_ADDRESS_SIZE 64
void vdi_serve_logins_address(const char *peer, char text[VDI_SERVE_ADDRESS_SIZE]);

#endif
