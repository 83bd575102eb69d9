/* The nodes of a btree: layout, search, making. Private to btree*.c.
 *
 *   leaf   header | fragments[capacity] | values[capacity]
 *   inner  header | fragments[n] | ends[n] | children[n] | counts[n] | prefix bytes | suffix bytes ...    (n - 1 separators)
 *
 * All keys of a node start with the same prefix_size bytes; a fragment is the four bytes after them, big
 * endian, padded with zeros. A search compares fragments, which lie close together, and looks at one or two
 * whole keys at the end: a value is a cache miss each. A leaf knows only the length of its prefix, the bytes
 * are in any of its keys; an inner node has separators of its own: the shortest bytes s with (every key left
 * of it) < s <= (every key right of it), prefix stored once.
 *
 * Degrees by measurement (bench_btree 300000, the middle of three runs; values/children a node):
 *
 *                                      32/16   64/16   32/32   64/32   16/16
 *   put that copies its path, us        2.26    2.55    2.83    3.00    2.19     each item of a copied node is counted once more
 *   node bytes a key, random puts       15.4    13.8    15.4    13.9    18.9
 *   walk, ns a value                     6.4     4.6     5.4     3.9     9.7
 *
 * get and random insert differ by little more than the noise. Where memory counts more than copying, 64/16 is
 * the alternative.
 *
 * Leaves grow in steps; inner nodes have exactly the size they need and are made anew when their separators
 * change.
 */
#ifndef VDI_BTREE_NODE_H
#define VDI_BTREE_NODE_H

#include <stdatomic.h>

#include "base.h"
#include "btree.h"

#ifndef BTREE_LEAF_MAX
#define BTREE_LEAF_MAX 32
#endif
#ifndef BTREE_INNER_MAX
#define BTREE_INNER_MAX 16
#endif
enum {
	LEAF_STEP = 4,			    /* of capacity; even, for the alignment of values */
	LEAF_SLACK = 12,		    /* free slots at which a removal makes the leaf smaller */
	LEAF_MIN = BTREE_LEAF_MAX / 4,	    /* below, join with a neighbour ... */
	LEAF_JOIN = BTREE_LEAF_MAX * 3 / 4, /* ... if both fit into this */
	LEAF_LOAD = BTREE_LEAF_MAX * 7 / 8, /* filled by load_sorted */
	INNER_MIN = BTREE_INNER_MAX / 4,
	INNER_JOIN = BTREE_INNER_MAX * 3 / 4,
	INNER_LOAD = BTREE_INNER_MAX * 7 / 8,
};

struct vdi_btree_node {
	atomic_uint references;
	uint32_t    prefix_size;
	uint16_t    count; /* values, or children */
	uint16_t    capacity;
	uint8_t	    level; /* 0: leaf */
};

static inline uint32_t *node_fragments(const struct vdi_btree_node *node)
{
	return (uint32_t *) (uintptr_t) (node + 1);
}
static inline void **leaf_values(const struct vdi_btree_node *leaf)
{
	return (void **) (node_fragments(leaf) + leaf->capacity);
}
static inline uint32_t *inner_ends(const struct vdi_btree_node *inner)
{
	return node_fragments(inner) + inner->count;
}
static inline struct vdi_btree_node **inner_children(const struct vdi_btree_node *inner)
{
	return (struct vdi_btree_node **) (inner_ends(inner) + inner->count);
}
static inline uint64_t *inner_counts(const struct vdi_btree_node *inner)
{
	return (uint64_t *) (inner_children(inner) + inner->count);
}
static inline const char *inner_bytes(const struct vdi_btree_node *inner)
{
	return (const char *) (inner_counts(inner) + inner->count);
}
/* What a walk will read of a leaf. */
static inline void leaf_prefetch(const struct vdi_btree_node *leaf)
{
	for (size_t offset = 0; offset < sizeof *leaf + BTREE_LEAF_MAX * (sizeof(uint32_t) + sizeof(void *));
	     offset += 64)
		__builtin_prefetch((const char *) leaf + offset);
}
/* What a search will read of a node, before it is asked for. */
static inline void node_prefetch(const struct vdi_btree_node *node)
{
	for (size_t offset = 0; offset < sizeof *node + BTREE_LEAF_MAX * sizeof(uint32_t); offset += 64)
		__builtin_prefetch((const char *) node + offset);
}

static inline bool node_is_shared(const struct vdi_btree_node *node)
{
	return atomic_load_explicit(&node->references, memory_order_acquire) != 1;
}
static inline void node_ref(struct vdi_btree_node *node)
{
	atomic_fetch_add_explicit(&node->references, 1, memory_order_relaxed);
}
/* NULL is fine. Recursion as deep as the node is high. */
void vdi_btree_node_unref(const struct vdi_btree_ops *ops, struct vdi_btree_node *node);
/* One more reference of each value or child, except the `skip` ones from skip_at on. */
void   vdi_btree_node_ref_items(const struct vdi_btree_ops *ops, struct vdi_btree_node *node, size_t skip_at,
				size_t skip);
size_t vdi_btree_node_size(const struct vdi_btree_node *node);

/* ---- Search ---- */

/* Index of the first key >= key; whether it is equal. */
size_t vdi_btree_leaf_find(const struct vdi_btree_ops *ops, const struct vdi_btree_node *leaf,
			   struct vd_bytes key, bool *ret_found);
/* Where the key is if it is there: [*ret_low, *ret_high), by fragments alone. */
void vdi_btree_leaf_run(const struct vdi_btree_node *leaf, struct vd_bytes key, size_t *ret_low,
			size_t *ret_high);
/* Index of the child in whose range the key is. */
size_t vdi_btree_inner_find(const struct vdi_btree_node *inner, struct vd_bytes key);

/* ---- Making. No reference of any value or child is taken: that is the commit's business. NULL: out of memory. ----
 */

/* Of 1 .. LEAF_MAX values in order. */
struct vdi_btree_node *vdi_btree_leaf_make(const struct vdi_btree_ops *ops, void *const *values,
					   size_t count);
/* The same values, room for at least `needed`. */
struct vdi_btree_node *vdi_btree_leaf_copy(const struct vdi_btree_node *leaf, size_t needed);
/* There must be room. */
void vdi_btree_leaf_insert(const struct vdi_btree_ops *ops, struct vdi_btree_node *leaf, size_t at,
			   void *value, struct vd_bytes key);
void vdi_btree_leaf_delete(struct vdi_btree_node *leaf, size_t at);

/* Bytes in two pieces, as separators are stored. */
struct pieces {
	struct vd_bytes first;
	struct vd_bytes second;
};
/* A child of an inner node that is to be made. separator: before the child; unused for the first. */
struct inner_entry {
	struct vdi_btree_node *child;
	uint64_t	       count;
	struct pieces	       separator;
};
/* The shortest separator between two keys, a slice of right. */
struct pieces vdi_btree_separator(struct vd_bytes left, struct vd_bytes right);
/* Writes the node's children to entries, which has room. */
void vdi_btree_inner_entries(const struct vdi_btree_node *inner, struct inner_entry *entries);
struct vdi_btree_node *vdi_btree_inner_make(unsigned level, const struct inner_entry *entries, size_t count);
struct vdi_btree_node *vdi_btree_inner_copy(const struct vdi_btree_node *inner);

#endif
