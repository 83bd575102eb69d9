/* Deletes all objects of a CustomResourceDefinition that is being deleted (apiextensions-apiserver
 * pkg/controller/finalizer).
 *
 * A pass lists all objects and deletes them, at most VDI_CRD_CLEANUP_CALLS at a time. Objects with finalizers
 * are only marked and stay until the finalizers are removed. Passes repeat until one finds no object. Owned
 * by one actor, which the host wakes when a call has completed.
 */
#ifndef VDI_CRD_CLEANUP_H
#define VDI_CRD_CLEANUP_H

#include "resources.h"

#define VDI_CRD_CLEANUP_CALLS 16

struct vdi_crd_cleanup;

/* Callbacks of the owner: begin and end are called around each call into the store. end may be called from
 * any thread and wakes the owner's actor. vdi_crd_cleanup_new returns NULL if memory is short. */
struct vdi_crd_cleanup_host {
	const struct vd_env *env;
	void (*begin)(void *arg);
	void (*end)(void *arg); /* wakes the owner's actor */
	void *arg;
};
struct vdi_crd_cleanup *vdi_crd_cleanup_new(const struct vdi_crd_cleanup_host *host,
					    struct vdi_resource		      *resource);
/* No call may be in flight. NULL is fine; returns NULL. */
struct vdi_crd_cleanup *vdi_crd_cleanup_free(struct vdi_crd_cleanup *cleanup);
bool			vdi_crd_cleanup_is_idle(const struct vdi_crd_cleanup *cleanup);
/* Continues the cleanup. VD_AGAIN: calls are in flight. VD_OK: no object is left. VD_NOT_READY: *ret_left
 * objects stay, or the list failed; call again later. */
VDI_MUST_USE vd_status vdi_crd_cleanup_run(struct vdi_crd_cleanup *cleanup, size_t *ret_left);

#endif
