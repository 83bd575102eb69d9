/* The controller that empties namespaces which are being deleted, and lets them go.
 *
 * Mirrors kubernetes pkg/controller/namespace/deletion: pods first, then all other kinds; what has finalizers
 * is waited for, and said in the namespace's conditions; when nothing is left, the finalizer "kubernetes" is
 * taken out of the namespace's spec. Everything is derived from the objects, so that it may be killed at any
 * point, run twice, and beside a kube-controller-manager.
 */
#ifndef VDI_NAMESPACE_CONTROLLER_H
#define VDI_NAMESPACE_CONTROLLER_H

#include "resource_set.h"

struct vdi_namespace_controller;

/* Starts at once. served gives a use of the newest set of kinds, from any thread; it must have namespaces.
 * VD_NOMEM. */
VDI_MUST_USE vd_status vdi_namespace_controller_new(const struct vd_env *env,
						    struct vdi_served *(*served)(void *arg), void *served_arg,
						    struct vdi_namespace_controller **ret_controller,
						    struct vd_error		     *reterr);
/* Blocks until what is under way has ended. NULL is fine; returns NULL. */
struct vdi_namespace_controller *vdi_namespace_controller_free(struct vdi_namespace_controller *controller);
/* Something in the namespace has gone: looks again, if it is one that is being emptied. Any thread; cheap
 * when there is none. */
void vdi_namespace_controller_poke(struct vdi_namespace_controller *controller, struct vd_bytes name);
/* How many namespaces are being emptied. Any thread. */
size_t vdi_namespace_controller_count(struct vdi_namespace_controller *controller);

#endif
