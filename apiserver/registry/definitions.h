/* The CustomResourceDefinitions of a server: accepts their names, decides which resources are served, writes
 * their status, and deletes their objects before the definition itself is deleted.
 *
 *   created --names accepted, cache ready, set taken by all loops--> Established
 *           --delete--> Terminating (its objects are deleted) --finalizer removed--> deleted
 *
 * All functions except the constructors run on the actor of struct vdi_kinds.
 */
#ifndef VDI_DEFINITIONS_H
#define VDI_DEFINITIONS_H

#include <vedette/informer.h>

#include "resource_set.h"

struct vdi_kinds;
struct vdi_definitions;

VDI_MUST_USE vd_status vdi_definitions_new(struct vdi_kinds *kinds, struct vdi_definitions **ret_definitions);
/* No call may be in flight. NULL is fine; returns NULL. */
struct vdi_definitions *vdi_definitions_free(struct vdi_definitions *definitions);
/* Updates the records from the informer's store. VD_NOMEM: some are not updated; call again later. */
VDI_MUST_USE vd_status vdi_definitions_update(struct vdi_definitions *definitions,
					      struct vd_informer     *informer);
/* The declared kinds have changed: accept names anew. */
void vdi_definitions_validate_again(struct vdi_definitions *definitions);
/* Accepts names, makes caches and decides which resources are served; *ret_changed: they differ from the last
 * ones. VD_NOT_READY: some caches are still filling. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_definitions_prepare(struct vdi_definitions	  *definitions,
					       const struct vdi_resources *declared, bool *ret_changed);
/* Adds the resources to serve. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_definitions_collect(const struct vdi_definitions *definitions,
					       struct vdi_resources	    *resources);
/* Returns true if the set collected last has the resources of the definition's newest known state, or none of
 * them if that state cannot be served. */
bool vdi_definitions_are_served(const struct vdi_definitions *definitions, const char *name);
/* Call when all loops use the set collected last: writes statuses and deletes objects of terminating
 * definitions. Returns the latest time of the next call, for the case that nothing wakes the actor before. */
vd_mono vdi_definitions_settle(struct vdi_definitions *definitions);
/* Ends retired caches at once, even if their watches still have events to receive. The actor must be closed.
 * NULL is fine. */
void vdi_definitions_end_retired(struct vdi_definitions *definitions);
/* Ends all caches, at the end of the server. */
void vdi_definitions_end(struct vdi_definitions *definitions);

#endif
