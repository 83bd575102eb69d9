/* The objects of a definition that goes: they go first (apiextensions-apiserver pkg/controller/finalizer).
 *
 * A look lists what there is and deletes it, up to VDI_CRD_CLEANUP_CALLS at a time; what finalizers keep is
 * marked and stays until they are gone. Looks follow each other until one finds nothing. Belongs to one
 * actor, which is woken when there is something to go on with.
 */
#ifndef VDI_CRD_CLEANUP_H
#define VDI_CRD_CLEANUP_H

#include "resources.h"

#define VDI_CRD_CLEANUP_CALLS 16

struct vdi_crd_cleanup;

/* wake(arg) may come from any thread; begin and end are called around each call into the store. NULL: no
 * memory. */
struct vdi_crd_cleanup_host {
	const struct vd_env *env;
	void (*begin)(void *arg);
	void (*end)(void *arg); /* wakes */
	void *arg;
};
struct vdi_crd_cleanup *vdi_crd_cleanup_new(const struct vdi_crd_cleanup_host *host,
					    struct vdi_resource		      *resource);
/* No call may be under way. NULL is fine; returns NULL. */
struct vdi_crd_cleanup *vdi_crd_cleanup_free(struct vdi_crd_cleanup *cleanup);
bool			vdi_crd_cleanup_is_idle(const struct vdi_crd_cleanup *cleanup);
/* Goes on. VD_AGAIN: calls are under way. VD_OK: there is nothing left. VD_NOT_READY: some stay, look again
 * later; *ret_left of them. */
VDI_MUST_USE vd_status vdi_crd_cleanup_run(struct vdi_crd_cleanup *cleanup, size_t *ret_left);

#endif
