/* A set of served kinds and their discovery documents.
 *
 * An immutable, reference-counted snapshot. The server holds the newest set. Each loop holds a reference on
 * the set that it uses, and takes the newest when it is notified (vdi_http_loop_reload) or a request arrives
 * (vdi_http_loop_freshen), so that requests look kinds up without a lock. Requests and watches hold their
 * resource, not the set. Any thread.
 */
#ifndef VDI_RESOURCE_SET_H
#define VDI_RESOURCE_SET_H

#include <stdatomic.h>

#include "discovery.h"
#include "resources.h"

struct vdi_resource_set {
	_Atomic uint32_t     users;
	struct vdi_resources resources;
	struct vdi_documents documents;
	struct vdi_resource *namespaces; /* NULL: not served */
};

/* Takes references on the resources, which must not change any more, and renders all documents. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_resource_set_new(const struct vdi_resources *resources,
					    struct vdi_resource_set   **ret_resource_set,
					    struct vd_error	       *reterr);
/* NULL is fine in both; unref returns NULL. */
struct vdi_resource_set *vdi_resource_set_ref(struct vdi_resource_set *resource_set);
struct vdi_resource_set *vdi_resource_set_unref(struct vdi_resource_set *resource_set);

#endif
