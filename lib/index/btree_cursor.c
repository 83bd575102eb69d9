/* The readers' side of the btree: lookups, order statistics, cursors.
 *
 * A cursor keeps the path from the root to its leaf; moving within a leaf accesses no other node. A range is
 * its first position and a number of steps, both from the subtree counts, so a walk compares no keys.
 */
#include "btree.h"
#include "btree_node.h"

void vdi_btree_snapshot_ref(const struct vdi_btree_snapshot *snapshot,
			    struct vdi_btree_snapshot	    *ret_snapshot)
{
	if (snapshot->root)
		node_ref(snapshot->root);
	*ret_snapshot = *snapshot;
}

void vdi_btree_snapshot_release(struct vdi_btree_snapshot *snapshot)
{
	struct vdi_btree_node	   *root = snapshot->root;
	const struct vdi_btree_ops *ops = snapshot->ops;

	*snapshot = (struct vdi_btree_snapshot) { 0 };
	vdi_btree_node_unref(ops, root);
}

void *vdi_btree_snapshot_get(const struct vdi_btree_snapshot *snapshot, struct vd_bytes key)
{
	struct vdi_btree_node *node = snapshot->root;
	size_t		       at;
	bool		       found;

	if (node == NULL)
		return NULL;
	while (node->level) {
		node = inner_children(node)[vdi_btree_inner_find(node, key)];
		node_prefetch(node);
	}
	at = vdi_btree_leaf_find(snapshot->ops, node, key, &found);
	return found ? leaf_values(node)[at] : NULL;
}

#define TOGETHER_MAX 16

/* The state of a search in its leaf; [low, high) remains. */
struct search {
	const struct vdi_btree_node *leaf;
	size_t			     low, high;
	struct vd_bytes		     middle_key;
};

static size_t search_middle(const struct search *search)
{
	return search->low + (search->high - search->low) / 2;
}

/* Makes one comparison of each unfinished search; prefetches all values before it reads the first. */
static bool search_step(const struct vdi_btree_ops *ops, const struct vd_bytes *keys, size_t count,
			struct search *searches, void **ret_values)
{
	bool continues = false;

	for (size_t i = 0; i < count; i++)
		if (searches[i].low < searches[i].high)
			__builtin_prefetch(leaf_values(searches[i].leaf)[search_middle(&searches[i])]);
	for (size_t i = 0; i < count; i++)
		if (searches[i].low < searches[i].high)
			searches[i].middle_key =
				ops->key(leaf_values(searches[i].leaf)[search_middle(&searches[i])]);
	for (size_t i = 0; i < count; i++) {
		struct search *search = &searches[i];
		size_t	       middle = search_middle(search);
		int	       order;

		if (search->low == search->high)
			continue;
		order = vd_bytes_compare(keys[i], search->middle_key);
		if (order == 0)
			ret_values[i] = leaf_values(search->leaf)[middle];
		if (order <= 0)
			search->high = order ? middle : search->low;
		else
			search->low = middle + 1;
		continues |= search->low < search->high;
	}
	return continues;
}

static void get_together(const struct vdi_btree_snapshot *snapshot, const struct vd_bytes *keys, size_t count,
			 void **ret_values)
{
	struct vdi_btree_node *nodes[TOGETHER_MAX];
	struct search	       searches[TOGETHER_MAX];

	for (size_t i = 0; i < count; i++)
		nodes[i] = snapshot->root;
	for (unsigned level = snapshot->root->level; level; level--)
		for (size_t i = 0; i < count; i++) {
			nodes[i] = inner_children(nodes[i])[vdi_btree_inner_find(nodes[i], keys[i])];
			leaf_prefetch(nodes[i]);
		}
	for (size_t i = 0; i < count; i++) {
		ret_values[i] = NULL;
		searches[i].leaf = nodes[i];
		vdi_btree_leaf_run(nodes[i], keys[i], &searches[i].low, &searches[i].high);
	}
	while (search_step(snapshot->ops, keys, count, searches, ret_values))
		;
}

void vdi_btree_snapshot_get_many(const struct vdi_btree_snapshot *snapshot, const struct vd_bytes *keys,
				 size_t count, void **ret_values)
{
	for (size_t i = 0; i < count; i += TOGETHER_MAX) {
		size_t some = VDI_MIN(count - i, (size_t) TOGETHER_MAX);

		if (snapshot->root)
			get_together(snapshot, keys + i, some, ret_values + i);
		else
			memset(ret_values + i, 0, some * sizeof *ret_values);
	}
}

void vdi_btree_snapshot_prefetch(const struct vdi_btree_snapshot *snapshot, struct vd_bytes key,
				 unsigned depth)
{
	const struct vdi_btree_node *node = snapshot->root;

	for (; node && node->level && depth; depth--)
		node = inner_children(node)[vdi_btree_inner_find(node, key)];
	if (node && depth == 0)
		leaf_prefetch(node);
}

void *vdi_btree_snapshot_min(const struct vdi_btree_snapshot *snapshot)
{
	struct vdi_btree_node *node = snapshot->root;

	while (node && node->level)
		node = inner_children(node)[0];
	return node ? leaf_values(node)[0] : NULL;
}

void *vdi_btree_snapshot_max(const struct vdi_btree_snapshot *snapshot)
{
	struct vdi_btree_node *node = snapshot->root;

	while (node && node->level)
		node = inner_children(node)[node->count - 1];
	return node ? leaf_values(node)[node->count - 1] : NULL;
}

static uint64_t counts_before(const struct vdi_btree_node *inner, size_t at)
{
	uint64_t count = 0;

	for (size_t i = 0; i < at; i++)
		count += inner_counts(inner)[i];
	return count;
}

uint64_t vdi_btree_snapshot_rank(const struct vdi_btree_snapshot *snapshot, struct vd_bytes key)
{
	struct vdi_btree_node *node = snapshot->root;
	uint64_t	       rank = 0;
	bool		       found;

	if (node == NULL)
		return 0;
	while (node->level) {
		size_t at = vdi_btree_inner_find(node, key);

		node_prefetch(inner_children(node)[at]);
		rank += counts_before(node, at);
		node = inner_children(node)[at];
	}
	return rank + vdi_btree_leaf_find(snapshot->ops, node, key, &found);
}

uint64_t vdi_btree_snapshot_count_range(const struct vdi_btree_snapshot *snapshot, struct vd_bytes from,
					struct vd_bytes to)
{
	uint64_t low = vdi_btree_snapshot_rank(snapshot, from), high = vdi_btree_snapshot_rank(snapshot, to);

	return high > low ? high - low : 0;
}

uint64_t vdi_btree_snapshot_count_key_range(const struct vdi_btree_snapshot *snapshot,
					    const struct vdi_key_range	    *range)
{
	if (range->single)
		return vdi_btree_snapshot_get(snapshot, range->from) ? 1 : 0;
	if (range->unbounded)
		return snapshot->count - vdi_btree_snapshot_rank(snapshot, range->from);
	return vdi_btree_snapshot_count_range(snapshot, range->from, range->to);
}

/* ---- Cursors ---- */

void vdi_btree_cursor_init(struct vdi_btree_cursor *cursor, const struct vdi_btree_snapshot *snapshot)
{
	cursor->ops = snapshot->ops;
	cursor->root = snapshot->root;
	cursor->remaining = 0;
	vdi_btree_cursor_first(cursor);
	cursor->index = -1;
}

/* Descends to the leftmost or rightmost leaf below node. */
static void descend(struct vdi_btree_cursor *cursor, struct vdi_btree_node *node, bool rightmost)
{
	while (node && node->level) {
		cursor->path[node->level] = node;
		cursor->position[node->level] = rightmost ? (uint16_t) (node->count - 1) : 0;
		node = inner_children(node)[cursor->position[node->level]];
	}
	cursor->leaf = node;
}

/* Moves to the neighbouring leaf; false if there is none. */
static bool step(struct vdi_btree_cursor *cursor, bool right)
{
	for (unsigned level = 1; level <= cursor->root->level; level++) {
		struct vdi_btree_node *inner = cursor->path[level];
		unsigned	       position = cursor->position[level];

		if (right ? position + 1 >= inner->count : position == 0)
			continue;
		position = right ? position + 1 : position - 1;
		cursor->position[level] = (uint16_t) position;
		if (level == 1 && right && position + 1 < inner->count)
			leaf_prefetch(inner_children(inner)[position + 1]);
		descend(cursor, inner_children(inner)[position], !right);
		return true;
	}
	return false;
}

void *vdi_btree_cursor_value(const struct vdi_btree_cursor *cursor)
{
	if (cursor->leaf == NULL || cursor->index < 0 || cursor->index >= cursor->leaf->count)
		return NULL;
	return leaf_values(cursor->leaf)[cursor->index];
}

void *vdi_btree_cursor_first(struct vdi_btree_cursor *cursor)
{
	descend(cursor, cursor->root, false);
	cursor->index = 0;
	return vdi_btree_cursor_value(cursor);
}

void *vdi_btree_cursor_last(struct vdi_btree_cursor *cursor)
{
	descend(cursor, cursor->root, true);
	cursor->index = cursor->leaf ? cursor->leaf->count - 1 : 0;
	return vdi_btree_cursor_value(cursor);
}

void *vdi_btree_cursor_next(struct vdi_btree_cursor *cursor)
{
	struct vdi_btree_node *leaf = cursor->leaf;

	if (leaf == NULL || cursor->index >= leaf->count)
		return NULL;
	if (++cursor->index < leaf->count)
		return leaf_values(leaf)[cursor->index];
	if (!step(cursor, true))
		return NULL; /* after the last */
	cursor->index = 0;
	return leaf_values(cursor->leaf)[0];
}

void *vdi_btree_cursor_prev(struct vdi_btree_cursor *cursor)
{
	if (cursor->leaf == NULL || cursor->index < 0)
		return NULL;
	if (--cursor->index >= 0)
		return leaf_values(cursor->leaf)[cursor->index];
	if (!step(cursor, false))
		return NULL; /* before the first */
	cursor->index = cursor->leaf->count - 1;
	return leaf_values(cursor->leaf)[cursor->index];
}

/* After a search the position may be the end of a leaf that has a right neighbour. */
static void *settle(struct vdi_btree_cursor *cursor)
{
	if (cursor->index == cursor->leaf->count && step(cursor, true))
		cursor->index = 0;
	return vdi_btree_cursor_value(cursor);
}

/* Moves to the first key >= key, and returns its rank. */
static uint64_t seek(struct vdi_btree_cursor *cursor, struct vd_bytes key)
{
	struct vdi_btree_node *node = cursor->root;
	uint64_t	       rank = 0;
	bool		       found;

	if (node == NULL)
		return 0;
	while (node->level) {
		size_t at = vdi_btree_inner_find(node, key);

		cursor->path[node->level] = node;
		cursor->position[node->level] = (uint16_t) at;
		node_prefetch(inner_children(node)[at]);
		rank += counts_before(node, at);
		node = inner_children(node)[at];
	}
	cursor->leaf = node;
	cursor->index = (int) vdi_btree_leaf_find(cursor->ops, node, key, &found);
	rank += (uint64_t) cursor->index;
	settle(cursor);
	return rank;
}

void *vdi_btree_cursor_seek(struct vdi_btree_cursor *cursor, struct vd_bytes key)
{
	seek(cursor, key);
	return vdi_btree_cursor_value(cursor);
}

void *vdi_btree_cursor_seek_rank(struct vdi_btree_cursor *cursor, uint64_t rank)
{
	struct vdi_btree_node *node = cursor->root;

	if (node == NULL)
		return NULL;
	while (node->level) {
		const uint64_t *counts = inner_counts(node);
		size_t		at = 0;

		while (at + 1u < node->count && rank >= counts[at])
			rank -= counts[at++];
		cursor->path[node->level] = node;
		cursor->position[node->level] = (uint16_t) at;
		node = inner_children(node)[at];
	}
	cursor->leaf = node;
	cursor->index = (int) VDI_MIN(rank, (uint64_t) node->count);
	return vdi_btree_cursor_value(cursor);
}

/* ---- Ranges ---- */

static struct vdi_btree_snapshot cursor_snapshot(const struct vdi_btree_cursor *cursor)
{
	struct vdi_btree_snapshot snapshot = { cursor->ops, cursor->root, 0 };

	if (cursor->root && cursor->root->level)
		snapshot.count = counts_before(cursor->root, cursor->root->count);
	else if (cursor->root)
		snapshot.count = cursor->root->count;
	return snapshot;
}

uint64_t vdi_btree_cursor_range(struct vdi_btree_cursor *cursor, const struct vdi_key_range *range)
{
	struct vdi_btree_snapshot snapshot = cursor_snapshot(cursor);
	uint64_t		  low = seek(cursor, range->from), high = snapshot.count;

	if (range->single) {
		void *value = vdi_btree_cursor_value(cursor);

		cursor->remaining = value && vd_bytes_equal(cursor->ops->key(value), range->from);
		return cursor->remaining;
	}
	if (!range->unbounded)
		high = vdi_btree_snapshot_rank(&snapshot, range->to);
	cursor->remaining = high > low ? high - low : 0;
	return cursor->remaining;
}

void *vdi_btree_cursor_range_next(struct vdi_btree_cursor *cursor)
{
	void *value;

	if (cursor->remaining == 0)
		return NULL;
	cursor->remaining--;
	value = leaf_values(cursor->leaf)[cursor->index];
	vdi_btree_cursor_next(cursor);
	return value;
}

uint64_t vdi_btree_cursor_range_from_end(struct vdi_btree_cursor *cursor, const struct vdi_key_range *range)
{
	uint64_t count = vdi_btree_cursor_range(cursor, range);

	if (count == 0)
		return 0;
	if (range->unbounded)
		vdi_btree_cursor_last(cursor);
	else if (!range->single) {
		seek(cursor, range->to);
		vdi_btree_cursor_prev(cursor);
	}
	return count;
}

void *vdi_btree_cursor_range_prev(struct vdi_btree_cursor *cursor)
{
	void *value;

	if (cursor->remaining == 0)
		return NULL;
	cursor->remaining--;
	value = leaf_values(cursor->leaf)[cursor->index];
	vdi_btree_cursor_prev(cursor);
	return value;
}

/* ---- For dumps and tests ---- */

static uint64_t memory_below(const struct vdi_btree_node *node)
{
	uint64_t size = vdi_btree_node_size(node);

	for (size_t i = 0; node->level && i < node->count; i++)
		size += memory_below(inner_children(node)[i]);
	return size;
}

uint64_t vdi_btree_snapshot_memory_bytes(const struct vdi_btree_snapshot *snapshot)
{
	return snapshot->root ? memory_below(snapshot->root) : 0;
}

/* Returns the number of values below; *previous is the key before them, and then the last of them. */
static uint64_t check_below(const struct vdi_btree_ops *ops, const struct vdi_btree_node *node,
			    struct vd_bytes *previous, bool *first)
{
	uint64_t count = 0;

	VDI_CHECK(node->count > 0 && atomic_load_explicit(&node->references, memory_order_relaxed) > 0);
	if (node->level == 0) {
		VDI_CHECK(node->count <= node->capacity && node->capacity <= BTREE_LEAF_MAX);
		for (size_t i = 0; i < node->count; i++) {
			struct vd_bytes key = ops->key(leaf_values(node)[i]);
			bool		found;

			VDI_CHECK(*first || vd_bytes_compare(*previous, key) < 0);
			VDI_CHECK(key.size >= node->prefix_size);
			VDI_CHECK(vdi_btree_leaf_find(ops, node, key, &found) == i && found);
			*previous = key;
			*first = false;
		}
		return node->count;
	}
	VDI_CHECK(node->count <= BTREE_INNER_MAX);
	for (size_t i = 0; i < node->count; i++) {
		const struct vdi_btree_node *child = inner_children(node)[i];
		struct vdi_btree_snapshot    below = { ops, inner_children(node)[i], 0 };
		uint64_t		     child_count;

		VDI_CHECK(child->level + 1 == node->level);
		VDI_CHECK(vdi_btree_inner_find(node, ops->key(vdi_btree_snapshot_min(&below))) == i);
		VDI_CHECK(vdi_btree_inner_find(node, ops->key(vdi_btree_snapshot_max(&below))) == i);
		child_count = check_below(ops, child, previous, first);
		VDI_CHECK(child_count == inner_counts(node)[i]);
		count += child_count;
	}
	return count;
}

void vdi_btree_snapshot_check(const struct vdi_btree_snapshot *snapshot)
{
	struct vd_bytes previous = VD_BYTES_NONE;
	bool		first = true;

	VDI_CHECK(snapshot->count ==
		  (snapshot->root ? check_below(snapshot->ops, snapshot->root, &previous, &first) : 0));
}
