/* An ordered copy-on-write map of refcounted values, with snapshots that cost nothing.
 *
 * A B+tree of pointers to values that carry their own key. The tree is owned by one writer: one thread at a
 * time calls the functions that take a struct vdi_btree. A snapshot is one atomic reference on the root; it
 * never changes, and may be read, copied and released on any thread while the writer goes on. A node is
 * copied only if a snapshot can see it and only when it must change.
 *
 * Keys are ordered bytewise (vd_bytes_compare) and are at most VDI_BTREE_KEY_SIZE_MAX long. A value's key
 * must not change while any tree or snapshot holds the value. Memory is 14 (put in order) to 16 bytes per
 * value, the values apart.
 *
 * References: the tree holds one reference per leaf slot that contains the value, so a value has as many as
 * there are versions of its leaf. ref and unref are called from any thread that releases a snapshot and must
 * not call into the tree. Nothing else keeps a value alive: inner nodes have their own copy of the bytes they
 * need.
 *
 * Nothing here blocks. What may fail answers VD_NOMEM and then the tree is exactly as before.
 */
#ifndef VDI_BTREE_H
#define VDI_BTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vedette/bytes.h>
#include <vedette/status.h>

#include "key_range.h"

#define VDI_BTREE_HEIGHT_MAX 12
#define VDI_BTREE_KEY_SIZE_MAX ((size_t) 16 << 20)

struct vdi_btree_node; /* btree_node.h */

/* Static; the same for all trees of one kind of value. */
struct vdi_btree_ops {
	struct vd_bytes (*key)(const void *value);
	void (*ref)(void *value);
	void (*unref)(void *value);
};

/* Immutable. May be moved in memory; copying it makes no new reference (use _ref). All zero is "nothing":
 * only _release is then valid. */
struct vdi_btree_snapshot {
	const struct vdi_btree_ops *ops;
	struct vdi_btree_node	   *root;  /* NULL: empty */
	uint64_t		    count; /* values */
};

struct vdi_btree {
	struct vdi_btree_snapshot live;
};

/* ---- The writer ---- */

void vdi_btree_init(struct vdi_btree *tree, const struct vdi_btree_ops *ops);
/* Drops everything the tree holds; snapshots stay. A tree that is all zero is fine. */
void vdi_btree_fini(struct vdi_btree *tree);

/* Stores value under its key, in place of the value that had the same key. The tree takes its own reference;
 * the caller keeps his. ret_replaced: NULL: the replaced value is unreferenced; else it gets the replaced
 * value (the caller owns that reference), or NULL if the key is new. VD_NOMEM; VD_INVALID_ARGUMENT: the key
 * is longer than VDI_BTREE_KEY_SIZE_MAX. */
VD_MUST_USE vd_status vdi_btree_put(struct vdi_btree *tree, void *value, void **ret_replaced);
/* Removes the value of key; ret_removed as ret_replaced above, written on VD_OK only. VD_NOT_FOUND; VD_NOMEM
 * (even a removal copies). */
VD_MUST_USE vd_status vdi_btree_remove(struct vdi_btree *tree, struct vd_bytes key, void **ret_removed);
/* Cannot fail. */
void vdi_btree_clear(struct vdi_btree *tree);
/* Replaces the whole content with count values in strictly ascending order of their keys; takes a reference
 * of each. Linear. VD_INVALID_ARGUMENT: not ascending, or a key too long. VD_NOMEM. */
VD_MUST_USE vd_status vdi_btree_load_sorted(struct vdi_btree *tree, void *const *values, size_t count);

static inline uint64_t vdi_btree_count(const struct vdi_btree *tree)
{
	return tree->live.count;
}
/* O(1), cannot fail. The caller releases it. */
void vdi_btree_snapshot(const struct vdi_btree *tree, struct vdi_btree_snapshot *ret_snapshot);
/* The live tree as a snapshot for the reading functions below, without a reference: the writer's thread, good
 * until its next change. */
static inline const struct vdi_btree_snapshot *vdi_btree_view(const struct vdi_btree *tree)
{
	return &tree->live;
}

/* ---- Reading: any thread that holds the snapshot (or the writer, with its view). Values are lent: good while the snapshot is. ----
 */

/* A second reference, to be released on its own. */
void vdi_btree_snapshot_ref(const struct vdi_btree_snapshot *snapshot,
			    struct vdi_btree_snapshot	    *ret_snapshot);
/* Drops the reference and zeroes *snapshot; again is fine. The last one frees what no other snapshot or tree
 * shares: that takes time in proportion to it, stack in proportion to the height. */
void vdi_btree_snapshot_release(struct vdi_btree_snapshot *snapshot);

/* NULL when absent. O(log n), as all that follow. */
void *vdi_btree_snapshot_get(const struct vdi_btree_snapshot *snapshot, struct vd_bytes key);
void *vdi_btree_snapshot_min(const struct vdi_btree_snapshot *snapshot);
void *vdi_btree_snapshot_max(const struct vdi_btree_snapshot *snapshot);
/* The same for count keys together: what one way down has to wait for, it waits for while the others' is on
 * its way too. For keys that are not in the processor's caches, some ten at a time. */
void vdi_btree_snapshot_get_many(const struct vdi_btree_snapshot *snapshot, const struct vd_bytes *keys,
				 size_t count, void **ret_values);
/* Asks the processor for the node `depth` levels below the root on the way to key, if the tree is so deep; it
 * waits for those above it. */
void vdi_btree_snapshot_prefetch(const struct vdi_btree_snapshot *snapshot, struct vd_bytes key,
				 unsigned depth);
/* How many keys are smaller than key. */
uint64_t vdi_btree_snapshot_rank(const struct vdi_btree_snapshot *snapshot, struct vd_bytes key);
/* How many keys are in [from, to); 0 when to <= from. */
uint64_t vdi_btree_snapshot_count_range(const struct vdi_btree_snapshot *snapshot, struct vd_bytes from,
					struct vd_bytes to);
uint64_t vdi_btree_snapshot_count_key_range(const struct vdi_btree_snapshot *snapshot,
					    const struct vdi_key_range	    *range);
/* Memory of all nodes below the root, shared or not; linear in the nodes. For dumps and benchmarks. */
uint64_t vdi_btree_snapshot_memory_bytes(const struct vdi_btree_snapshot *snapshot);
/* Panics unless every invariant holds. For tests. Linear. */
void vdi_btree_snapshot_check(const struct vdi_btree_snapshot *snapshot);

/* ---- Cursors: a place in a snapshot, kept on the caller's stack; nothing to release ---- */

/* Must not outlive the snapshot (for the writer: not outlive its next change). May be copied by
 * assignment. */
struct vdi_btree_cursor {
	const struct vdi_btree_ops *ops;
	struct vdi_btree_node	   *root;
	struct vdi_btree_node	   *leaf;
	int			    index; /* in leaf; -1: before the first, leaf's count: after the last */
	uint64_t		    remaining;			/* of the range */
	struct vdi_btree_node	   *path[VDI_BTREE_HEIGHT_MAX]; /* by level; [0] unused */
	uint16_t		    position[VDI_BTREE_HEIGHT_MAX];
};

/* Stands before the first value. */
void vdi_btree_cursor_init(struct vdi_btree_cursor *cursor, const struct vdi_btree_snapshot *snapshot);

/* Each moves, and returns the value it then stands on, or NULL beyond either end. From beyond an end the way
 * back is open: prev from after the last is the last, next from before the first is the first; further out it
 * stays where it is. */
void *vdi_btree_cursor_first(struct vdi_btree_cursor *cursor);
void *vdi_btree_cursor_last(struct vdi_btree_cursor *cursor);
void *vdi_btree_cursor_next(struct vdi_btree_cursor *cursor);
void *vdi_btree_cursor_prev(struct vdi_btree_cursor *cursor);
/* The first key >= key. (The last key < key: seek, then prev.) */
void *vdi_btree_cursor_seek(struct vdi_btree_cursor *cursor, struct vd_bytes key);
/* The value with exactly rank smaller ones. */
void *vdi_btree_cursor_seek_rank(struct vdi_btree_cursor *cursor, uint64_t rank);
/* Where it stands. */
void *vdi_btree_cursor_value(const struct vdi_btree_cursor *cursor);

/* Starts a walk over range in ascending order; returns how many values it will give. Compares no key while
 * walking. */
uint64_t vdi_btree_cursor_range(struct vdi_btree_cursor *cursor, const struct vdi_key_range *range);
/* The next value of the range, NULL when it is over. Not to be mixed with the moves above. */
void *vdi_btree_cursor_range_next(struct vdi_btree_cursor *cursor);
/* The same from the upper end: start with _range_from_end, walk with _range_prev. */
uint64_t vdi_btree_cursor_range_from_end(struct vdi_btree_cursor *cursor, const struct vdi_key_range *range);
void	*vdi_btree_cursor_range_prev(struct vdi_btree_cursor *cursor);

#endif
