/* Host names into addresses, without blocking the loop. */
#ifndef VDI_H2_RESOLVE_H
#define VDI_H2_RESOLVE_H

#include <sys/socket.h>

#include "base.h"

struct vdi_h2_address {
	socklen_t		size;
	struct sockaddr_storage at;
};

struct vdi_h2_addresses {
	size_t		      count;
	struct vdi_h2_address list[];
};

/* A numeric host, or a socket's path: at once. VD_OK; VD_AGAIN: it is a name; VD_NOMEM. vdi_free. */
VDI_MUST_USE vd_status vdi_h2_address_of_number(const char *host, const char *port,
						struct vdi_h2_addresses **ret_addresses);
VDI_MUST_USE vd_status vdi_h2_address_of_path(const char *path, struct vdi_h2_addresses **ret_addresses);

struct vdi_h2_resolve;

/* done comes once, from a thread of its own, unless it is cancelled: addresses are then the callee's
 * (vdi_free), or NULL with why in few words (lent). VD_NOMEM, VD_FULL (no thread). */
VDI_MUST_USE vd_status vdi_h2_resolve_start(const struct vd_env *env, const char *host, const char *port,
					    void (*done)(void *arg, struct vdi_h2_addresses *addresses,
							 const char *why),
					    void *arg, struct vdi_h2_resolve **ret_resolve);
/* After it done does not come any more and is not under way; the system's resolver may go on for a while, for
 * nobody. Also to be called after done, from anywhere but done itself. NULL is fine; returns NULL. */
struct vdi_h2_resolve *vdi_h2_resolve_end(struct vdi_h2_resolve *resolve);

#endif
