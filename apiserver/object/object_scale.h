/* The scale subresource of an object (autoscaling/v1 Scale). The kind's definition has the paths of the
 * numbers.
 *
 * Pure functions of their arguments; any thread.
 */
#ifndef VDI_OBJECT_SCALE_H
#define VDI_OBJECT_SCALE_H

#include "http_status.h"
#include "resources.h"
#include "tree.h"

/* Checks a Scale from a client as a typed decoder would and returns its spec.replicas, which is 0 if absent.
 * name: of the object, for the message. VD_INVALID with *status filled; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_scale_check(struct vdi_tree *tree, struct vdi_node *sent, struct vd_bytes name,
				       struct vdi_http_status *status, struct vdi_node **ret_replicas);
/* Sets the object's number of replicas. False: out of memory. */
bool vdi_scale_set(struct vdi_tree *tree, struct vdi_node *root, const struct vdi_resource *resource,
		   const struct vdi_node *replicas);
/* Appends the Scale of an object, given as a tree. A failed allocation shows in out->failed. */
void vdi_scale_write(struct vdi_tree *tree, const struct vdi_node *root, const struct vdi_resource *resource,
		     struct vdi_out *out);
/* Appends the Scale of an object, given as complete JSON. VD_NOMEM; errors of parsing. */
VDI_MUST_USE vd_status vdi_scale_of(const struct vdi_resource *resource, struct vd_bytes current,
				    struct vdi_out *out);

#endif
