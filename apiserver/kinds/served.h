/* What a server serves at one moment: its kinds, and the documents that tell of them.
 *
 * A snapshot, shared by reference and never changed. The server has the newest one; each loop has a use of
 * the one that it goes by, and takes the newest when it is told to (vdi_http_loop_reload) or a request comes
 * (vdi_http_loop_freshen), so that a request looks things up without a lock. Requests and watches keep their
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
	struct vdi_resource *namespaces; /* NULL: they are not served */
};

/* With uses of its own of the resources, which must not change any more. Renders all documents. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_served_new(const struct vdi_resources *resources, struct vdi_served **ret_served,
				      struct vd_error *reterr);
/* NULL is fine in both; unref returns NULL. */
struct vdi_served *vdi_served_ref(struct vdi_served *served);
struct vdi_served *vdi_served_unref(struct vdi_served *served);

#endif
