/* A set of served kinds and their discovery documents.
 *
 * An immutable, reference-counted snapshot. The server holds the newest set. Each loop holds a reference on
 * the set that it uses, and takes the newest when it is notified (vdi_http_loop_reload) or a request arrives
 * (vdi_http_loop_freshen), so that requests look kinds up without a lock. Requests and watches hold their
 * resource, not the set. Any thread.
 */
#ifndef VDI_SERVED_H
#define VDI_SERVED_H

#include <stdatomic.h>

#include "discovery.h"
#include "resources.h"

struct vdi_served {
	_Atomic uint32_t     users;
	struct vdi_resources resources;
	struct vdi_documents documents;
	struct vdi_resource *namespaces; /* NULL: not served */
};

/* Takes references on the resources, which must not change any more, and renders all documents. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_served_new(const struct vdi_resources *resources, struct vdi_served **ret_served,
				      struct vd_error *reterr);
/* NULL is fine in both; unref returns NULL. */
struct vdi_served *vdi_served_ref(struct vdi_served *served);
struct vdi_served *vdi_served_unref(struct vdi_served *served);

#endif
