/* Index of watchers by range: watchers with the same range and filters form one group, and the index finds
 * the groups whose range contains a key.
 *
 * Groups of a single key are in a hash table, groups of a range in an interval tree (a treap ordered by the
 * start of the range; each node has the largest end of its subtree). A write costs O(log groups + matching
 * groups), whatever the number of watchers. A group exists while it has members, parked or not, so parking
 * and waking never allocate. Mirrors etcd server/storage/mvcc/watcher_group.go.
 *
 * Not thread-safe: protected by the lock of struct vdi_watchable.
 */
#ifndef VDI_WATCHER_GROUP_H
#define VDI_WATCHER_GROUP_H

#include <sys/queue.h>
#include <vedette/store.h>

#include "base.h"
#include "key_range.h"

struct vdi_watch;

struct vdi_watcher_group {
	/* Fixed. */
	struct vdi_key_range range; /* points into text */
	bool		     no_put;
	bool		     no_delete;
	uint64_t	     hash;

	uint32_t references; /* member watches */
	LIST_HEAD(vdi_parked_list, vdi_watch) parked;

	/* Hash table (single key). */
	struct vdi_watcher_group *next;
	/* Treap (range), ordered by (from, end, filters); hash is the priority. */
	struct vdi_watcher_group *left;
	struct vdi_watcher_group *right;
	struct vdi_watcher_group *last; /* the node with the largest end in this subtree */

	char text[];
};

/* Zeroed memory is a valid empty index. */
struct vdi_watcher_index {
	struct vdi_watcher_group **buckets;
	size_t			   bucket_count; /* a power of two, or 0 */
	size_t			   single_count;
	struct vdi_watcher_group  *root;
	size_t			   range_count;
};

/* Returns the group of that range and filters, creating it if needed; the caller gets one reference.
 * VD_NOMEM. */
VDI_MUST_USE vd_status vdi_watcher_index_join(struct vdi_watcher_index	 *index,
					      const struct vdi_key_range *range, bool no_put, bool no_delete,
					      struct vdi_watcher_group **ret_group);
/* Drops a reference; the last one removes and frees the group. */
void vdi_watcher_index_leave(struct vdi_watcher_index *index, struct vdi_watcher_group *group);
/* Calls visit for each group with parked members whose range contains key and whose filters let the event
 * pass. visit must not join or leave. */
void vdi_watcher_index_match(const struct vdi_watcher_index *index, struct vd_bytes key, bool is_delete,
			     void (*visit)(struct vdi_watcher_group *group, void *arg), void *arg);
/* Frees the index; all groups must have been left. */
void vdi_watcher_index_fini(struct vdi_watcher_index *index);

#endif
