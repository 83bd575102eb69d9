/* The nodes of a btree: layout, search, creation. Private to btree*.c.
 *
 *   leaf   header | fragments[capacity] | values[capacity]
 *   inner  header | fragments[n] | ends[n] | children[n] | counts[n] | prefix bytes | suffix bytes ...
 *          (n children, n - 1 separators)
 *
 * All keys of a node start with the same prefix_size bytes; a fragment is the four bytes after them, big
 * endian, padded with zeros. A search compares fragments, which are adjacent, and reads one or two whole keys
 * at the end, because each value is a cache miss. A leaf stores only the length of its prefix, because the
 * bytes are in any of its keys. An inner node has separators of its own: the shortest bytes s with (every key
 * left of it) < s <= (every key right of it), with the prefix stored once.
 *
 * Measured sizes (bench_btree 300000, median of three runs; values/children per node):
 *
 *                                       32/16   64/16   32/32   64/32   16/16
 *   put that copies its path, us         2.26    2.55    2.83    3.00    2.19
 *   node bytes per key, random puts      15.4    13.8    15.4    13.9    18.9
 *   walk, ns per value                    6.4     4.6     5.4     3.9     9.7
 *
 * A copied node takes a further reference to each of its items. get and random insert differ by little more
 * than the noise. If memory is more important than copying, 64/16 is the alternative.
 *
 * Leaves grow in steps; inner nodes have exactly the size that they need, and are replaced when their
 * separators change.
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
	LEAF_SLACK = 12,		    /* free slots at which a removal shrinks the leaf */
	LEAF_MIN = BTREE_LEAF_MAX / 4,	    /* a smaller leaf is joined with a neighbour ... */
	LEAF_JOIN = BTREE_LEAF_MAX * 3 / 4, /* ... if both fit into this */
	LEAF_LOAD = BTREE_LEAF_MAX * 7 / 8, /* values per leaf of load_sorted */
	INNER_MIN = BTREE_INNER_MAX / 4,
	INNER_JOIN = BTREE_INNER_MAX * 3 / 4,
	INNER_LOAD = BTREE_INNER_MAX * 7 / 8,
};

struct vdi_btree_node {
	atomic_uint references;
	uint32_t    prefix_size;
	uint16_t    count; /* values or children */
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
/* Prefetches what a walk will read of a leaf. */
static inline void leaf_prefetch(const struct vdi_btree_node *leaf)
{
	for (size_t offset = 0; offset < sizeof *leaf + BTREE_LEAF_MAX * (sizeof(uint32_t) + sizeof(void *));
	     offset += 64)
		__builtin_prefetch((const char *) leaf + offset);
}
/* Prefetches what a search will read of a node. */
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
/* NULL is allowed. The recursion is as deep as the node is high. */
void vdi_btree_node_unref(const struct vdi_btree_ops *ops, struct vdi_btree_node *node);
/* Takes a reference to each value or child, except the `skip` ones from skip_at on. */
void   vdi_btree_node_ref_items(const struct vdi_btree_ops *ops, struct vdi_btree_node *node, size_t skip_at,
				size_t skip);
size_t vdi_btree_node_size(const struct vdi_btree_node *node);

/* ---- Search ---- */

/* Returns the index of the first key >= key; *ret_found: it is equal. */
size_t vdi_btree_leaf_find(const struct vdi_btree_ops *ops, const struct vdi_btree_node *leaf,
			   struct vd_bytes key, bool *ret_found);
/* Returns the indexes [*ret_low, *ret_high) where the key can be, from fragments alone. */
void vdi_btree_leaf_run(const struct vdi_btree_node *leaf, struct vd_bytes key, size_t *ret_low,
			size_t *ret_high);
/* Returns the index of the child whose range contains the key. */
size_t vdi_btree_inner_find(const struct vdi_btree_node *inner, struct vd_bytes key);

/* ---- Creation ----
 *
 * The functions take no references to values or children; the commit does. They return NULL if out of memory.
 */

/* Creates a leaf of 1 .. LEAF_MAX values in order. */
struct vdi_btree_node *vdi_btree_leaf_make(const struct vdi_btree_ops *ops, void *const *values,
					   size_t count);
/* Creates a leaf with the same values and room for at least `needed`. */
struct vdi_btree_node *vdi_btree_leaf_copy(const struct vdi_btree_node *leaf, size_t needed);
/* The leaf must have room. */
void vdi_btree_leaf_insert(const struct vdi_btree_ops *ops, struct vdi_btree_node *leaf, size_t at,
			   void *value, struct vd_bytes key);
void vdi_btree_leaf_delete(struct vdi_btree_node *leaf, size_t at);

/* Bytes in two pieces, the form in which separators are stored. */
struct pieces {
	struct vd_bytes first;
	struct vd_bytes second;
};
/* A child of an inner node to be created. separator: before the child; unused for the first. */
struct inner_entry {
	struct vdi_btree_node *child;
	uint64_t	       count;
	struct pieces	       separator;
};
/* Returns the shortest separator between two keys, a slice of right. */
struct pieces vdi_btree_separator(struct vd_bytes left, struct vd_bytes right);
/* Writes the node's children to entries, which has room for them. */
void vdi_btree_inner_entries(const struct vdi_btree_node *inner, struct inner_entry *entries);
struct vdi_btree_node *vdi_btree_inner_make(unsigned level, const struct inner_entry *entries, size_t count);
struct vdi_btree_node *vdi_btree_inner_copy(const struct vdi_btree_node *inner);

#endif
