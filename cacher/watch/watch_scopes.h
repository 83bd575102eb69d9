/* The numbers of watchers with selectors, by namespace and shard selector.
 *
 * The metrics of filtered events need the number of watchers that have an event in their scope but do not get
 * it. The watch index does not find most of these watchers. So this module counts all of them when they enter
 * and leave. For each event the dispatcher reads the totals and subtracts the watchers that get it. Watchers
 * of a single name are not counted, because the index always finds them.
 *
 * An event costs two lookups, and one match for each different shard selector of its namespace. The cacher's
 * actor only.
 */
#ifndef VDI_WATCH_SCOPES_H
#define VDI_WATCH_SCOPES_H

#include "base.h"
#include "hash.h"
#include "predicate.h"

struct vdi_watch_scopes {
	/* struct vdi_watch_scope, the first one of each namespace; "": watches of all namespaces */
	struct vdi_hash by_namespace;
};

void vdi_watch_scopes_init(struct vdi_watch_scopes *scopes);
/* All watchers must have left. */
void vdi_watch_scopes_fini(struct vdi_watch_scopes *scopes);
/* Counts a watcher, unless its predicate has no selectors or has a name. May keep a reference to predicate.
 * VD_NOMEM: not counted. */
VDI_MUST_USE vd_status vdi_watch_scopes_enter(struct vdi_watch_scopes *scopes,
					      struct vdi_predicate    *predicate);
/* Undoes one enter with an equal predicate. */
void vdi_watch_scopes_leave(struct vdi_watch_scopes *scopes, const struct vdi_predicate *predicate);
/* Returns the number of counted watchers that have the object in their scope, and how many of these reject it
 * with their shard selector. Allocates nothing. */
void vdi_watch_scopes_count(const struct vdi_watch_scopes *scopes, const struct vd_object *object,
			    size_t *ret_watchers, size_t *ret_other_shards);

#endif
