/* The writer's side of the btree.
 *
 * A change descends to its leaf and records the path. If the leaf and all nodes above it belong to the tree
 * alone (reference count 1 from the root down) and the change fits, it is made in place. Otherwise it is
 * planned level by level from the leaf up: `made` nodes will replace `old` ones in the parent. Planning only
 * reads and allocates; commit only moves references and cannot fail, so a failed allocation leaves the tree
 * unchanged.
 *
 * Every item of an old node continues in a made one, except those that the level below replaces. If the old
 * node belonged to the tree alone, its references move over and only its memory is freed; if it is shared,
 * the items get another reference, and the tree drops its reference to the topmost shared node (the ones
 * below are held by their parents, which stay).
 *
 * A node is copied only at reference count > 1. This is safe because only the writer (snapshot, or the copy
 * of its parent) or the holder of a snapshot that contains the node can raise its count; so a count of 1 read
 * with acquire stays 1, and the accesses of former readers happened before.
 */
#include "btree.h"

#include "btree_node.h"

struct level_change {
	/* The path. */
	struct vdi_btree_node *node;
	size_t		       at;     /* child taken; in the leaf: index of the key */
	bool		       shared; /* the node or one above it is shared */

	/* The plan. */
	struct vdi_btree_node *sibling; /* joined with node; or NULL */
	bool		       sibling_shared;
	struct vdi_btree_node *made[2];
	unsigned	       made_count;
	struct pieces	       separator;   /* between made[0] and made[1] */
	size_t		       replaced_at; /* index in the parent ... */
	/* ... of the first of `replaced` children that made replaces; 0: above only counts change */
	size_t replaced;
	size_t skip_at, skip; /* items of node that are not carried over */
};

struct change {
	struct vdi_btree   *tree;
	unsigned	    height; /* levels */
	int		    count;  /* change of the number of values: +1, 0, -1 */
	struct level_change levels[VDI_BTREE_HEIGHT_MAX + 1];
};

void vdi_btree_init(struct vdi_btree *tree, const struct vdi_btree_ops *ops)
{
	tree->live = (struct vdi_btree_snapshot) { .ops = ops };
}

void vdi_btree_clear(struct vdi_btree *tree)
{
	struct vdi_btree_node *root = tree->live.root;

	tree->live.root = NULL;
	tree->live.count = 0;
	vdi_btree_node_unref(tree->live.ops, root);
}

void vdi_btree_fini(struct vdi_btree *tree)
{
	vdi_btree_clear(tree);
}

void vdi_btree_snapshot(const struct vdi_btree *tree, struct vdi_btree_snapshot *ret_snapshot)
{
	vdi_btree_snapshot_ref(&tree->live, ret_snapshot);
}

/* ---- Path, and changes in place ---- */

/* Records only the path, because most changes replace a value in place and the plan is ten times as large. */
static bool find(struct change *change, struct vdi_btree *tree, struct vd_bytes key)
{
	struct vdi_btree_node *node = tree->live.root;
	bool		       shared = false, found = false;

	change->tree = tree;
	change->height = node ? node->level + 1u : 0;
	change->count = 0;
	while (node) {
		struct level_change *level = &change->levels[node->level];

		shared = shared || node_is_shared(node);
		level->node = node;
		level->shared = shared;
		if (node->level == 0) {
			level->at = vdi_btree_leaf_find(tree->live.ops, node, key, &found);
			break;
		}
		level->at = vdi_btree_inner_find(node, key);
		node = inner_children(node)[level->at];
		node_prefetch(node);
	}
	return found;
}

static void add_counts(struct change *change, unsigned from_level)
{
	change->tree->live.count += (uint64_t) (int64_t) change->count;
	for (unsigned i = VDI_MAX(from_level, 1u); i < change->height; i++)
		inner_counts(change->levels[i].node)[change->levels[i].at] +=
			(uint64_t) (int64_t) change->count;
}

/* ---- Planning ---- */

static void plan_begin(struct change *change)
{
	for (unsigned i = 0; i < change->height; i++) {
		struct level_change *level = &change->levels[i];

		*level = (struct level_change) { .node = level->node,
						 .at = level->at,
						 .shared = level->shared };
	}
	change->levels[change->height] = (struct level_change) { 0 };
}

static vd_status made_one(struct level_change *level, struct vdi_btree_node *node)
{
	if (node == NULL)
		return VD_NOMEM;
	level->made[level->made_count++] = node;
	return VD_OK;
}

/* Chooses a neighbour of the node at this level, below the same parent, if both together have at most `join`
 * items; or none. */
static void choose_sibling(struct change *change, unsigned index, size_t count, size_t join)
{
	struct level_change *level = &change->levels[index], *parent = level + 1;

	level->replaced_at = parent->at;
	level->replaced = 1;
	if (index + 1 == change->height || count == 0)
		return;
	for (int side = 0; side < 2; side++) {
		struct vdi_btree_node *sibling;

		if (side == 0 ? parent->at + 1u >= parent->node->count : parent->at == 0)
			continue;
		sibling = inner_children(parent->node)[side == 0 ? parent->at + 1 : parent->at - 1];
		if (sibling->count + count > join)
			continue;
		level->sibling = sibling;
		level->sibling_shared = parent->shared || node_is_shared(sibling);
		level->replaced_at = side == 0 ? parent->at : parent->at - 1;
		level->replaced = 2;
		return;
	}
}

static struct vd_bytes leaf_key(struct change *change, void *value)
{
	return change->tree->live.ops->key(value);
}

/* Returns where to split a node that has one item too many: in the middle, or at the end at which it grows,
 * so that keys put in order make full nodes. */
static size_t cut(size_t total, size_t grown_at)
{
	if (grown_at == total - 1)
		return total - 1;
	return grown_at == 0 ? 1 : total / 2;
}

static vd_status plan_leaf_insert(struct change *change, void *value, struct vd_bytes key)
{
	const struct vdi_btree_ops *ops = change->tree->live.ops;
	struct level_change	   *level = &change->levels[0];
	struct vdi_btree_node	   *leaf = level->node;
	void			   *values[BTREE_LEAF_MAX + 1];
	size_t			    total = leaf->count + 1u, left;

	level->replaced_at = change->levels[1].at;
	level->replaced = 1;
	if (total <= BTREE_LEAF_MAX) {
		VDI_TRY(made_one(level, vdi_btree_leaf_copy(leaf, total)));
		vdi_btree_leaf_insert(ops, level->made[0], level->at, value, key);
		return VD_OK;
	}
	memcpy(values, leaf_values(leaf), level->at * sizeof *values);
	values[level->at] = value;
	memcpy(values + level->at + 1, leaf_values(leaf) + level->at,
	       (leaf->count - level->at) * sizeof *values);
	left = cut(total, level->at);
	VDI_TRY(made_one(level, vdi_btree_leaf_make(ops, values, left)));
	VDI_TRY(made_one(level, vdi_btree_leaf_make(ops, values + left, total - left)));
	level->separator =
		vdi_btree_separator(leaf_key(change, values[left - 1]), leaf_key(change, values[left]));
	return VD_OK;
}

static vd_status plan_leaf_replace(struct change *change, void *value)
{
	struct level_change *level = &change->levels[0];

	level->replaced_at = change->levels[1].at;
	level->replaced = 1;
	VDI_TRY(made_one(level, vdi_btree_leaf_copy(level->node, 0)));
	leaf_values(level->made[0])[level->at] = value;
	return VD_OK;
}

/* If nothing was made and nothing replaced, the change is made in place. */
static vd_status plan_leaf_remove(struct change *change)
{
	struct level_change   *level = &change->levels[0];
	struct vdi_btree_node *leaf = level->node;
	void		      *values[BTREE_LEAF_MAX];
	size_t		       count = leaf->count - 1u, left;

	if (count < LEAF_MIN)
		choose_sibling(change, 0, count, LEAF_JOIN);
	if (count == 0)
		return VD_OK;
	if (level->sibling == NULL) {
		level->replaced_at = change->levels[1].at;
		level->replaced = 0;
		if (!level->shared && leaf->capacity - count < LEAF_SLACK)
			return VD_OK;
		level->replaced = 1;
		VDI_TRY(made_one(level, vdi_btree_leaf_copy(leaf, 0)));
		vdi_btree_leaf_delete(level->made[0], level->at);
		return VD_OK;
	}
	left = level->replaced_at < change->levels[1].at ? level->sibling->count : 0;
	memcpy(values + left, leaf_values(leaf), level->at * sizeof *values);
	memcpy(values + left + level->at, leaf_values(leaf) + level->at + 1,
	       (count - level->at) * sizeof *values);
	memcpy(values + (left ? 0 : count), leaf_values(level->sibling),
	       level->sibling->count * sizeof *values);
	return made_one(level,
			vdi_btree_leaf_make(change->tree->live.ops, values, count + level->sibling->count));
}

static uint64_t node_count(const struct vdi_btree_node *node)
{
	uint64_t count = 0;

	if (node->level == 0)
		return node->count;
	for (size_t i = 0; i < node->count; i++)
		count += inner_counts(node)[i];
	return count;
}

static vd_status plan_inner(struct change *change, unsigned index)
{
	struct level_change   *level = &change->levels[index], *below = level - 1;
	struct vdi_btree_node *inner = level->node;
	struct inner_entry     all[2 * BTREE_INNER_MAX + 2], *entries = all + BTREE_INNER_MAX;
	size_t		       count = inner->count + below->made_count - below->replaced,
	       tail = below->replaced_at + below->replaced;

	level->skip_at = below->replaced_at;
	level->skip = below->replaced;
	level->replaced_at = level[1].at;
	if (below->replaced == 1 && below->made_count == 1) {
		if (!level->shared)
			return VD_OK;
		level->replaced = 1;
		VDI_TRY(made_one(level, vdi_btree_inner_copy(inner)));
		inner_children(level->made[0])[level->at] = below->made[0];
		inner_counts(level->made[0])[level->at] += (uint64_t) (int64_t) change->count;
		return VD_OK;
	}
	level->replaced = 1;
	if (count < INNER_MIN)
		choose_sibling(change, index, count, INNER_JOIN);
	if (count == 0)
		return VD_OK;
	vdi_btree_inner_entries(inner, entries);
	if (below->made_count != below->replaced)
		memmove(entries + below->replaced_at + below->made_count, entries + tail,
			(inner->count - tail) * sizeof *entries);
	for (unsigned i = 0; i < below->made_count; i++) {
		struct inner_entry *entry = &entries[below->replaced_at + i];

		entry->child = below->made[i];
		entry->count = node_count(below->made[i]);
		if (i)
			entry->separator = below->separator;
	}
	if (level->sibling) {
		struct level_change *parent = level + 1;
		struct inner_entry   borders[BTREE_INNER_MAX];
		bool		     on_left = level->replaced_at < parent->at;

		vdi_btree_inner_entries(parent->node, borders);
		if (on_left) {
			vdi_btree_inner_entries(level->sibling, entries - level->sibling->count);
			entries[0].separator = borders[parent->at].separator;
			entries -= level->sibling->count;
		} else {
			vdi_btree_inner_entries(level->sibling, entries + count);
			entries[count].separator = borders[parent->at + 1].separator;
		}
		return made_one(level, vdi_btree_inner_make(index, entries, count + level->sibling->count));
	}
	if (count <= BTREE_INNER_MAX)
		return made_one(level, vdi_btree_inner_make(index, entries, count));
	tail = cut(count, below->replaced_at + 1);
	VDI_TRY(made_one(level, vdi_btree_inner_make(index, entries, tail)));
	VDI_TRY(made_one(level, vdi_btree_inner_make(index, entries + tail, count - tail)));
	level->separator = entries[tail].separator;
	return VD_OK;
}

static vd_status plan_above(struct change *change)
{
	struct level_change *top;

	for (unsigned i = 1; i < change->height; i++) {
		if (change->levels[i - 1].replaced == 0)
			return VD_OK;
		VDI_TRY(plan_inner(change, i));
	}
	top = &change->levels[change->height - 1];
	if (top->made_count == 2) {
		struct inner_entry entries[2] = { { top->made[0], node_count(top->made[0]) },
						  { top->made[1], node_count(top->made[1]),
						    top->separator } };

		if (change->height == VDI_BTREE_HEIGHT_MAX)
			return VD_NOMEM;
		return made_one(top + 1, vdi_btree_inner_make(change->height, entries, 2));
	}
	return VD_OK;
}

static void abandon(struct change *change)
{
	for (unsigned i = 0; i <= change->height; i++)
		for (unsigned j = 0; j < change->levels[i].made_count; j++)
			vdi_free(change->levels[i].made[j]);
}

/* ---- Commit ---- */

/* A root with a single child is replaced by the child. */
static void lower_root(struct vdi_btree *tree)
{
	struct vdi_btree_node *root;

	while ((root = tree->live.root) && root->level && root->count == 1) {
		struct vdi_btree_node *child = inner_children(root)[0];

		tree->live.root = child;
		if (node_is_shared(root)) {
			node_ref(child);
			vdi_btree_node_unref(tree->live.ops, root);
		} else {
			vdi_free(root);
		}
	}
}

/* Passes on the references of the items of a replaced node. Returns the node if the tree's reference to it
 * must still be dropped. */
static struct vdi_btree_node *hand_over(struct change *change, struct vdi_btree_node *old, bool shared,
					bool parent_shared, size_t skip_at, size_t skip)
{
	if (!shared) {
		vdi_free(old);
		return NULL;
	}
	vdi_btree_node_ref_items(change->tree->live.ops, old, skip_at, skip);
	return parent_shared ? NULL : old;
}

static void commit(struct change *change)
{
	struct vdi_btree      *tree = change->tree;
	struct vdi_btree_node *dropped[2 * VDI_BTREE_HEIGHT_MAX];
	unsigned	       dropped_count = 0, i;

	for (i = 0; i < change->height; i++) {
		struct level_change *level = &change->levels[i];
		bool		     top = i + 1 == change->height, parent_shared = !top && level[1].shared;

		if (level->replaced == 0)
			break;
		dropped[dropped_count] = hand_over(change, level->node, level->shared, parent_shared,
						   level->skip_at, level->skip);
		dropped_count += dropped[dropped_count] != NULL;
		if (level->sibling) {
			dropped[dropped_count] =
				hand_over(change, level->sibling, level->sibling_shared, parent_shared, 0, 0);
			dropped_count += dropped[dropped_count] != NULL;
		}
		if (top)
			tree->live.root = level->made_count == 2 ? level[1].made[0] :
					  level->made_count	 ? level->made[0] :
								   NULL;
		else if (level[1].replaced == 0)
			inner_children(level[1].node)[level[1].at] = level->made[0];
	}
	add_counts(change, i);
	lower_root(tree);
	while (dropped_count)
		vdi_btree_node_unref(tree->live.ops, dropped[--dropped_count]);
}

/* ---- Changes ---- */

static void give(const struct vdi_btree_ops *ops, void *value, void **ret_value)
{
	if (ret_value)
		*ret_value = value;
	else if (value)
		ops->unref(value);
}

static vd_status put_first(struct vdi_btree *tree, void *value)
{
	tree->live.root = vdi_btree_leaf_make(tree->live.ops, &value, 1);
	if (tree->live.root == NULL)
		return VD_NOMEM;
	tree->live.count = 1;
	return VD_OK;
}

vd_status vdi_btree_put(struct vdi_btree *tree, void *value, void **ret_replaced)
{
	const struct vdi_btree_ops *ops = tree->live.ops;
	struct vd_bytes		    key = ops->key(value);
	struct change		    change;
	struct level_change	   *leaf = &change.levels[0];
	void			   *replaced = NULL;
	vd_status		    status = VD_OK;

	if (key.size > VDI_BTREE_KEY_SIZE_MAX)
		return VD_INVALID_ARGUMENT;
	if (tree->live.root == NULL) {
		VDI_TRY(put_first(tree, value));
		ops->ref(value);
		give(ops, NULL, ret_replaced);
		return VD_OK;
	}
	if (find(&change, tree, key))
		replaced = leaf_values(leaf->node)[leaf->at];
	else
		change.count = 1;
	if (!leaf->shared && replaced) {
		leaf_values(leaf->node)[leaf->at] = value;
	} else if (!leaf->shared && leaf->node->count < leaf->node->capacity) {
		vdi_btree_leaf_insert(ops, leaf->node, leaf->at, value, key);
		add_counts(&change, 1);
	} else {
		plan_begin(&change);
		status = replaced ? plan_leaf_replace(&change, value) : plan_leaf_insert(&change, value, key);
		if (status == VD_OK)
			status = plan_above(&change);
		if (status != VD_OK) {
			abandon(&change);
			return status;
		}
		/* commit carries over all old values, so `replaced` has a reference for the caller */
		commit(&change);
	}
	ops->ref(value);
	give(ops, replaced, ret_replaced);
	return VD_OK;
}

vd_status vdi_btree_remove(struct vdi_btree *tree, struct vd_bytes key, void **ret_removed)
{
	struct change	     change;
	struct level_change *leaf = &change.levels[0];
	void		    *removed;
	vd_status	     status;

	if (!find(&change, tree, key))
		return VD_NOT_FOUND;
	removed = leaf_values(leaf->node)[leaf->at];
	change.count = -1;
	plan_begin(&change);
	status = plan_leaf_remove(&change);
	if (status == VD_OK && leaf->replaced)
		status = plan_above(&change);
	if (status != VD_OK) {
		abandon(&change);
		return status;
	}
	if (leaf->replaced) {
		commit(&change);
	} else {
		vdi_btree_leaf_delete(leaf->node, leaf->at);
		add_counts(&change, 1);
	}
	give(tree->live.ops, removed, ret_removed);
	return VD_OK;
}

/* ---- Loading ---- */

/* Values are scattered in memory: prefetch the next ones while these are read. */
static inline void ask_for_values(void *const *values, size_t count, size_t from, size_t to)
{
	for (size_t i = from; i < VDI_MIN(to, count); i++) {
		__builtin_prefetch(values[i]);
		__builtin_prefetch((const char *) values[i] + 64);
	}
}

/* Checks the values from start on, and the one before them, against the contract of vdi_btree_load_sorted. */
static bool is_loadable(const struct vdi_btree_ops *ops, void *const *values, size_t start, size_t size)
{
	struct vd_bytes previous = start ? ops->key(values[start - 1]) : VD_BYTES_NONE;

	for (size_t i = start; i < start + size; i++) {
		struct vd_bytes key = ops->key(values[i]);

		if (key.size > VDI_BTREE_KEY_SIZE_MAX || (i && vd_bytes_compare(previous, key) >= 0))
			return false;
		previous = key;
	}
	return true;
}

/* Frees nodes that have no references yet, level by level. */
static void free_shells(struct vdi_btree_node *node)
{
	for (size_t i = 0; node->level && i < node->count; i++)
		free_shells(inner_children(node)[i]);
	vdi_free(node);
}

/* Groups `count` nodes (or values) evenly into parents of at most `load`; the parents' entries replace the
 * children's. */
static vd_status load_level(const struct vdi_btree_ops *ops, unsigned level, void *const *values,
			    struct inner_entry *entries, size_t *count, size_t load)
{
	size_t groups = (*count + load - 1) / load, start = 0;

	for (size_t i = 0; i < groups; i++) {
		size_t		   size = *count / groups + (i < *count % groups);
		struct inner_entry made = { .count = size };
		bool		   is_sound = true;

		if (level == 0) {
			ask_for_values(values, *count, start + size, start + 2 * size);
			is_sound = is_loadable(ops, values, start, size);
			if (is_sound)
				made.child = vdi_btree_leaf_make(ops, values + start, size);
			if (start && made.child)
				made.separator = vdi_btree_separator(ops->key(values[start - 1]),
								     ops->key(values[start]));
		} else {
			made.child = vdi_btree_inner_make(level, entries + start, size);
			made.separator = entries[start].separator;
		}
		if (made.child == NULL) {
			for (size_t j = 0; j < i; j++)
				free_shells(entries[j].child);
			for (size_t j = start; level && j < *count; j++)
				free_shells(entries[j].child);
			return is_sound ? VD_NOMEM : VD_INVALID_ARGUMENT;
		}
		if (level)
			made.count = node_count(made.child);
		entries[i] = made;
		start += size;
	}
	*count = groups;
	return VD_OK;
}

vd_status vdi_btree_load_sorted(struct vdi_btree *tree, void *const *values, size_t count)
{
	const struct vdi_btree_ops *ops = tree->live.ops;
	struct inner_entry	   *entries;
	size_t			    nodes = count;
	vd_status		    status;

	if (count == 0) {
		vdi_btree_clear(tree);
		return VD_OK;
	}
	entries = vdi_calloc((count + LEAF_LOAD - 1) / LEAF_LOAD, sizeof *entries);
	if (entries == NULL)
		return VD_NOMEM;
	status = load_level(ops, 0, values, entries, &nodes, LEAF_LOAD);
	for (unsigned level = 1; status == VD_OK && nodes > 1; level++)
		status = load_level(ops, level, NULL, entries, &nodes, INNER_LOAD);
	if (status == VD_OK) {
		for (size_t i = 0; i < count; i++) {
			if (i % 16 == 0)
				ask_for_values(values, count, i + 16, i + 32);
			ops->ref(values[i]);
		}
		vdi_btree_clear(tree);
		tree->live.root = entries[0].child;
		tree->live.count = count;
	}
	vdi_free(entries);
	return status;
}
