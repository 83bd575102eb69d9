/* Deletes the content of namespaces that are being deleted, and then releases the namespaces.
 *
 * Mirrors kubernetes pkg/controller/namespace/deletion: deletes pods first, then all other kinds; waits for
 * objects with finalizers and reports them in the namespace's conditions; removes the finalizer "kubernetes"
 * from the namespace's spec when no object is left. All state is derived from the objects, so the controller
 * may be killed at any point, and several may run at once, also a kube-controller-manager.
 */
#ifndef VDI_NAMESPACE_CONTROLLER_H
#define VDI_NAMESPACE_CONTROLLER_H

#include "resource_set.h"

struct vdi_namespace_controller;

/* Starts at once. get_resource_set returns a reference to the newest set of kinds, on any thread; the set
 * must have namespaces. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_namespace_controller_new(const struct vd_env *env,
						    struct vdi_resource_set *(*get_resource_set)(void *arg),
						    void			     *get_resource_set_arg,
						    struct vdi_namespace_controller **ret_controller,
						    struct vd_error		     *reterr);
/* Blocks until running visits have ended. NULL is allowed. Returns NULL. */
struct vdi_namespace_controller *vdi_namespace_controller_free(struct vdi_namespace_controller *controller);
/* Reports that an object of the namespace was deleted; checks the namespace again if it is being emptied.
 * Any thread; cheap if no namespace is being emptied. */
void vdi_namespace_controller_poke(struct vdi_namespace_controller *controller, struct vd_bytes name);
/* Returns the number of namespaces that are being emptied. Any thread. */
size_t vdi_namespace_controller_count(struct vdi_namespace_controller *controller);

#endif
