/* Resolves host names without blocking the loop. */
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

/* Converts a numeric host, or a socket's path, at once. VD_AGAIN: it is a name; VD_NOMEM. Freed with
 * vdi_free. */
VDI_MUST_USE vd_status vdi_h2_address_of_number(const char *host, const char *port,
						struct vdi_h2_addresses **ret_addresses);
VDI_MUST_USE vd_status vdi_h2_address_of_path(const char *path, struct vdi_h2_addresses **ret_addresses);

struct vdi_h2_resolve;

/* Starts a lookup. done is called once, on a thread of its own, unless the lookup is cancelled: addresses
 * belong to the callee (vdi_free), or are NULL, and why is a short reason (borrowed). VD_NOMEM, VD_FULL (no
 * thread). */
VDI_MUST_USE vd_status vdi_h2_resolve_start(const struct vd_env *env, const char *host, const char *port,
					    void (*done)(void *arg, struct vdi_h2_addresses *addresses,
							 const char *why),
					    void *arg, struct vdi_h2_resolve **ret_resolve);
/* Cancels or frees the lookup: after return done is not called and not running; getaddrinfo may continue for
 * a while in the background. Also needed after done, but not inside it. NULL is allowed; returns NULL. */
struct vdi_h2_resolve *vdi_h2_resolve_end(struct vdi_h2_resolve *resolve);

#endif
