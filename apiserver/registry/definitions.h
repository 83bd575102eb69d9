/* The CustomResourceDefinitions of a server: which there are, whose names are accepted, what is served of
 * them, what is written into their status, and how their objects go before they do.
 *
 *   there --names accepted, cache ready, set taken by all loops--> Established --delete--> Terminating: its objects go --finalizer taken away--> gone
 *
 * All functions run on the actor of struct vdi_kinds, but the constructors.
 */
#ifndef VDI_DEFINITIONS_H
#define VDI_DEFINITIONS_H

#include <vedette/informer.h>

#include "served.h"

struct vdi_kinds;
struct vdi_definitions;

VDI_MUST_USE vd_status vdi_definitions_new(struct vdi_kinds *kinds, struct vdi_definitions **ret_definitions);
/* No call may be under way. NULL is fine; returns NULL. */
struct vdi_definitions *vdi_definitions_free(struct vdi_definitions *definitions);
/* Takes over what the informer's picture has now. VD_NOMEM: some of it; again later. */
VDI_MUST_USE vd_status vdi_definitions_look(struct vdi_definitions *definitions,
					    struct vd_informer	   *informer);
/* The kinds that the server was told of are others: names are judged anew. */
void vdi_definitions_judge_again(struct vdi_definitions *definitions);
/* Judges names, makes caches, and decides what is to be served; *ret_changed: it is something else than
 * before. VD_NOT_READY: some caches are still filling. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_definitions_prepare(struct vdi_definitions	  *definitions,
					       const struct vdi_resources *declared, bool *ret_changed);
/* Adds what is to be served. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_definitions_collect(const struct vdi_definitions *definitions,
					       struct vdi_resources	    *resources);
/* What was collected last has what the newest known state of the definition asks for, or nothing of it if
 * that cannot be served. */
bool vdi_definitions_are_served(const struct vdi_definitions *definitions, const char *name);
/* All loops go by what was collected last: writes statuses, lets objects go. Answers when it is to be called
 * again at the latest, even if nobody wakes. */
vd_mono vdi_definitions_settle(struct vdi_definitions *definitions);
/* Ends the caches of kinds that are gone now, whatever their watches still have to be told. The actor is
 * gone. NULL is fine. */
void vdi_definitions_end_retired(struct vdi_definitions *definitions);
/* Ends all caches: at the end of the server. */
void vdi_definitions_end(struct vdi_definitions *definitions);

#endif
