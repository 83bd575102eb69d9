/* The watcher index: finds the watch groups that may match an event without visiting the others.
 *
 * A group is filed under its most selective key: name, a declared field (the trigger first), a label, its
 * namespace, or everything; field and label keys include the namespace if there is one. An event looks up the
 * keys of its object and of the previous state, so groups with other values cost nothing. False candidates
 * are possible, because keys are hashes; missing ones are not. The cacher's actor only.
 */
#ifndef VDI_WATCH_INDEX_H
#define VDI_WATCH_INDEX_H

#include "base.h"
#include "watch_group.h"

struct vdi_index_kind {
	size_t scoped; /* groups filed with their namespace */
	size_t open;   /* groups filed without a namespace */
};

struct vdi_watch_index {
	const struct vd_codec	*codec;
	int			 trigger_index;
	struct vdi_watch_group **buckets; /* by filing key */
	struct vdi_watch_group **equals;  /* by predicate */
	size_t			 bucket_count;
	size_t			 group_count;
	struct vdi_index_kind	 names;
	struct vdi_index_kind	 fields[VD_FIELDS_MAX];
	struct vdi_index_kind	 labels;
	size_t			 namespaces;
	size_t			 everything;
	uint32_t		 everything_hash; /* hash of the key for everything */
};

void vdi_watch_index_init(struct vdi_watch_index *index, const struct vd_codec *codec, int trigger_index);
/* All groups must have been removed. */
void vdi_watch_index_fini(struct vdi_watch_index *index);
/* Returns the group with an equal predicate, or NULL. */
struct vdi_watch_group *vdi_watch_index_find(const struct vdi_watch_index *index,
					     const struct vdi_predicate	  *predicate);
/* Adds a group and takes over the caller's reference. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_watch_index_add(struct vdi_watch_index *index, struct vdi_watch_group *group);
/* Removes a group and drops the index's reference. */
void vdi_watch_index_remove(struct vdi_watch_index *index, struct vdi_watch_group *group);

/* Calls found for every candidate, each once per visit. Visits are numbered consecutively from 1. */
typedef void (*vdi_candidate_fn)(void *arg, struct vdi_watch_group *group);
void vdi_watch_index_candidates(struct vdi_watch_index *index, const struct vdi_event *event, uint64_t visit,
				vdi_candidate_fn found, void *arg);

#endif
