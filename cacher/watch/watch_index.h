/* The watcher index: which watch groups may want an event, without asking the others.
 *
 * A group is filed under one key, the most selective it has: name, a declared field (the trigger first), a
 * label, its namespace, or everything; field and label keys carry the namespace when there is one. An event
 * looks up the keys of its object and of the state before. Groups of other values cost nothing. False
 * candidates are possible (keys are hashes), missing ones are not. The cacher's actor only.
 */
#ifndef VDI_WATCH_INDEX_H
#define VDI_WATCH_INDEX_H

#include "base.h"
#include "watch_group.h"

struct vdi_index_kind {
	size_t scoped; /* groups filed with their namespace */
	size_t open;
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
	uint32_t		 everything_hash; /* under which those are filed */
};

void vdi_watch_index_init(struct vdi_watch_index *index, const struct vd_codec *codec, int trigger_index);
/* All groups must have been removed. */
void vdi_watch_index_fini(struct vdi_watch_index *index);
/* The group with an equal predicate, or NULL. */
struct vdi_watch_group *vdi_watch_index_find(const struct vdi_watch_index *index,
					     const struct vdi_predicate	  *predicate);
/* Takes over the caller's reference of group. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_watch_index_add(struct vdi_watch_index *index, struct vdi_watch_group *group);
/* Drops the index's reference. */
void vdi_watch_index_remove(struct vdi_watch_index *index, struct vdi_watch_group *group);

/* Calls found for every candidate, each once per visit: numbers from 1 on, one after the other. */
typedef void (*vdi_candidate_fn)(void *arg, struct vdi_watch_group *group);
void vdi_watch_index_candidates(struct vdi_watch_index *index, const struct vdi_event *event, uint64_t visit,
				vdi_candidate_fn found, void *arg);

#endif
