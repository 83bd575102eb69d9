/* An ordered copy-on-write map of reference-counted values, with snapshots in O(1).
 *
 * A B+tree of pointers to values that contain their own key. One writer owns the tree: one thread at a time
 * calls the functions that take a struct vdi_btree. A snapshot is one atomic reference to the root; it never
 * changes, and any thread may read, copy and release it while the writer continues. A node is copied only if
 * a snapshot can see it, and only when it must change.
 *
 * Keys are ordered bytewise (vd_bytes_compare) and have at most VDI_BTREE_KEY_SIZE_MAX bytes. A value's key
 * must not change while a tree or snapshot holds the value. Memory is 14 (put in order) to 16 bytes per
 * value, without the values.
 *
 * References: the tree holds one reference per leaf slot that contains the value, so a value has one per
 * version of its leaf. ref and unref are called on any thread that releases a snapshot, and must not call the
 * tree. Inner nodes hold no values; they have their own copy of the bytes they need.
 *
 * No function blocks. If a function returns VD_NOMEM, the tree is unchanged.
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

/* Static; the same for all trees of one type of value. */
struct vdi_btree_ops {
	struct vd_bytes (*key)(const void *value);
	void (*ref)(void *value);
	void (*unref)(void *value);
};

/* Immutable. May be moved in memory; a copy has no reference of its own (use _ref). All zero is empty: only
 * _release is valid then. */
struct vdi_btree_snapshot {
	const struct vdi_btree_ops *ops;
	struct vdi_btree_node	   *root;  /* NULL: empty */
	uint64_t		    count; /* values */
};

struct vdi_btree {
	struct vdi_btree_snapshot live;
};

/* ---- Writer ---- */

void vdi_btree_init(struct vdi_btree *tree, const struct vdi_btree_ops *ops);
/* Drops all references of the tree; snapshots stay valid. A zeroed tree is allowed. */
void vdi_btree_fini(struct vdi_btree *tree);

/* Stores value under its key, replacing a value with the same key. The tree takes a reference of its own; the
 * caller keeps its own. ret_replaced: if NULL, the replaced value is unreferenced; else it gets the replaced
 * value (the caller owns that reference), or NULL if the key is new. VD_NOMEM; VD_INVALID_ARGUMENT: the key
 * is longer than VDI_BTREE_KEY_SIZE_MAX. */
VD_MUST_USE vd_status vdi_btree_put(struct vdi_btree *tree, void *value, void **ret_replaced);
/* Removes the value of key; ret_removed is like ret_replaced above, but written on VD_OK only. VD_NOT_FOUND;
 * VD_NOMEM (a removal copies nodes too). */
VD_MUST_USE vd_status vdi_btree_remove(struct vdi_btree *tree, struct vd_bytes key, void **ret_removed);
/* Removes all values. Cannot fail. */
void vdi_btree_clear(struct vdi_btree *tree);
/* Replaces the whole content by count values in strictly ascending order of their keys; takes a reference to
 * each. Linear. VD_INVALID_ARGUMENT: not ascending, or a key is too long. VD_NOMEM. */
VD_MUST_USE vd_status vdi_btree_load_sorted(struct vdi_btree *tree, void *const *values, size_t count);

static inline uint64_t vdi_btree_count(const struct vdi_btree *tree)
{
	return tree->live.count;
}
/* Takes a snapshot in O(1); cannot fail. The caller releases it. */
void vdi_btree_snapshot(const struct vdi_btree *tree, struct vdi_btree_snapshot *ret_snapshot);
/* The live tree as a snapshot for the read functions below, without a reference: on the writer's thread only,
 * valid until its next change. */
static inline const struct vdi_btree_snapshot *vdi_btree_view(const struct vdi_btree *tree)
{
	return &tree->live;
}

/* ---- Reading ----
 *
 * Any thread that holds the snapshot (or the writer, with its view). Values are borrowed as long as the
 * snapshot.
 */

/* Takes a second reference, which is released separately. */
void vdi_btree_snapshot_ref(const struct vdi_btree_snapshot *snapshot,
			    struct vdi_btree_snapshot	    *ret_snapshot);
/* Drops the reference and zeroes *snapshot; may be repeated. The last release frees all nodes that no other
 * snapshot or tree shares, in time proportional to their number, with a stack proportional to the height. */
void vdi_btree_snapshot_release(struct vdi_btree_snapshot *snapshot);

/* NULL if absent. O(log n), like all functions below. */
void *vdi_btree_snapshot_get(const struct vdi_btree_snapshot *snapshot, struct vd_bytes key);
void *vdi_btree_snapshot_min(const struct vdi_btree_snapshot *snapshot);
void *vdi_btree_snapshot_max(const struct vdi_btree_snapshot *snapshot);
/* Gets count keys together: the cache misses of all lookups overlap. For keys that are not in the CPU's
 * caches, some ten at a time. */
void vdi_btree_snapshot_get_many(const struct vdi_btree_snapshot *snapshot, const struct vd_bytes *keys,
				 size_t count, void **ret_values);
/* Prefetches the node `depth` levels below the root on the path to key, if the tree is that deep; waits for
 * the nodes above it. */
void vdi_btree_snapshot_prefetch(const struct vdi_btree_snapshot *snapshot, struct vd_bytes key,
				 unsigned depth);
/* Number of keys smaller than key. */
uint64_t vdi_btree_snapshot_rank(const struct vdi_btree_snapshot *snapshot, struct vd_bytes key);
/* Number of keys in [from, to); 0 if to <= from. */
uint64_t vdi_btree_snapshot_count_range(const struct vdi_btree_snapshot *snapshot, struct vd_bytes from,
					struct vd_bytes to);
uint64_t vdi_btree_snapshot_count_key_range(const struct vdi_btree_snapshot *snapshot,
					    const struct vdi_key_range	    *range);
/* Memory of all nodes below the root, shared or not; linear in the nodes. For dumps and benchmarks. */
uint64_t vdi_btree_snapshot_memory_bytes(const struct vdi_btree_snapshot *snapshot);
/* Panics unless all invariants hold. Linear. For tests. */
void vdi_btree_snapshot_check(const struct vdi_btree_snapshot *snapshot);

/* ---- Cursors: a position in a snapshot, on the caller's stack; nothing to release ---- */

/* Must not outlive the snapshot (for the writer: its next change). May be copied by assignment. */
struct vdi_btree_cursor {
	const struct vdi_btree_ops *ops;
	struct vdi_btree_node	   *root;
	struct vdi_btree_node	   *leaf;
	int			    index; /* in leaf; -1: before the first, leaf's count: after the last */
	uint64_t		    remaining;			/* values left in the range */
	struct vdi_btree_node	   *path[VDI_BTREE_HEIGHT_MAX]; /* by level; [0] is unused */
	uint16_t		    position[VDI_BTREE_HEIGHT_MAX];
};

/* Positions the cursor before the first value. */
void vdi_btree_cursor_init(struct vdi_btree_cursor *cursor, const struct vdi_btree_snapshot *snapshot);

/* Each function moves the cursor and returns the value there, or NULL beyond either end. From beyond an end
 * the cursor can move back: prev from after the last is the last, next from before the first is the first; it
 * never moves further out. */
void *vdi_btree_cursor_first(struct vdi_btree_cursor *cursor);
void *vdi_btree_cursor_last(struct vdi_btree_cursor *cursor);
void *vdi_btree_cursor_next(struct vdi_btree_cursor *cursor);
void *vdi_btree_cursor_prev(struct vdi_btree_cursor *cursor);
/* Moves to the first key >= key. (For the last key < key: seek, then prev.) */
void *vdi_btree_cursor_seek(struct vdi_btree_cursor *cursor, struct vd_bytes key);
/* Moves to the value with exactly rank smaller ones. */
void *vdi_btree_cursor_seek_rank(struct vdi_btree_cursor *cursor, uint64_t rank);
/* The value at the cursor. */
void *vdi_btree_cursor_value(const struct vdi_btree_cursor *cursor);

/* Starts a walk over range in ascending order; returns the number of values in it. The walk compares no
 * keys. */
uint64_t vdi_btree_cursor_range(struct vdi_btree_cursor *cursor, const struct vdi_key_range *range);
/* Returns the next value of the range, NULL at its end. Do not mix with the moves above. */
void *vdi_btree_cursor_range_next(struct vdi_btree_cursor *cursor);
/* The same from the upper end: start with _range_from_end, walk with _range_prev. */
uint64_t vdi_btree_cursor_range_from_end(struct vdi_btree_cursor *cursor, const struct vdi_key_range *range);
void	*vdi_btree_cursor_range_prev(struct vdi_btree_cursor *cursor);

#endif
