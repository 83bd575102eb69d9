/* The treap's priorities are hashes of the ranges with a random seed, so it is balanced whatever ranges a
 * client chooses. Its order depends on the ranges only. */
#include "watcher_group.h"

#include "hash.h"

static int compare_ends(const struct vdi_key_range *a, const struct vdi_key_range *b)
{
	if (a->unbounded || b->unbounded)
		return (int) a->unbounded - (int) b->unbounded;
	return vd_bytes_compare(a->to, b->to);
}

static int compare_groups(const struct vdi_watcher_group *a, const struct vdi_watcher_group *b)
{
	int order = vd_bytes_compare(a->range.from, b->range.from);

	if (order == 0)
		order = compare_ends(&a->range, &b->range);
	if (order == 0)
		order = (2 * a->no_put + a->no_delete) - (2 * b->no_put + b->no_delete);
	return order;
}

static uint64_t hash_of(const struct vdi_key_range *range, bool no_put, bool no_delete)
{
	uint64_t seed = vdi_hash_seed() + 4u * range->unbounded + 2u * no_put + no_delete;

	if (!range->single && !range->unbounded)
		seed = vdi_hash_bytes(range->to, seed);
	return vdi_hash_bytes(range->from, seed);
}

static vd_status new_group(const struct vdi_key_range *range, bool no_put, bool no_delete, uint64_t hash,
			   struct vdi_watcher_group **ret_group)
{
	size_t			  to_size = range->single || range->unbounded ? 0 : range->to.size;
	struct vdi_watcher_group *group = vdi_alloc(sizeof *group + range->from.size + to_size);

	if (group == NULL)
		return VD_NOMEM;
	memset(group, 0, sizeof *group);
	if (range->from.size)
		memcpy(group->text, range->from.data, range->from.size);
	if (to_size)
		memcpy(group->text + range->from.size, range->to.data, to_size);
	group->range = *range;
	group->range.from.data = group->text;
	group->range.to = (struct vd_bytes) { group->text + range->from.size, to_size };
	group->no_put = no_put;
	group->no_delete = no_delete;
	group->hash = hash;
	group->references = 1;
	LIST_INIT(&group->parked);
	*ret_group = group;
	return VD_OK;
}

/* ---- Single keys ---- */

static struct vdi_watcher_group *find_single(const struct vdi_watcher_index *index, struct vd_bytes key,
					     bool no_put, bool no_delete, uint64_t hash)
{
	struct vdi_watcher_group *group =
		index->bucket_count ? index->buckets[hash & (index->bucket_count - 1)] : NULL;

	while (group && (group->hash != hash || group->no_put != no_put || group->no_delete != no_delete ||
			 !vd_bytes_equal(group->range.from, key)))
		group = group->next;
	return group;
}

/* If the table cannot grow, its chains get longer. */
static vd_status reserve_buckets(struct vdi_watcher_index *index)
{
	size_t			   wanted = index->bucket_count ? 2 * index->bucket_count : 64;
	struct vdi_watcher_group **buckets;

	if (index->single_count < index->bucket_count)
		return VD_OK;
	buckets = vdi_calloc(wanted, sizeof *buckets);
	if (buckets == NULL)
		return index->bucket_count ? VD_OK : VD_NOMEM;
	for (size_t i = 0; i < index->bucket_count; i++) {
		struct vdi_watcher_group *next;

		for (struct vdi_watcher_group *group = index->buckets[i]; group; group = next) {
			next = group->next;
			group->next = buckets[group->hash & (wanted - 1)];
			buckets[group->hash & (wanted - 1)] = group;
		}
	}
	vdi_free(index->buckets);
	index->buckets = buckets;
	index->bucket_count = wanted;
	return VD_OK;
}

/* ---- Ranges ---- */

static void update_last(struct vdi_watcher_group *node)
{
	node->last = node;
	if (node->left && compare_ends(&node->left->last->range, &node->last->range) > 0)
		node->last = node->left->last;
	if (node->right && compare_ends(&node->right->last->range, &node->last->range) > 0)
		node->last = node->right->last;
}

static struct vdi_watcher_group *find_range(struct vdi_watcher_group	   *node,
					    const struct vdi_watcher_group *probe)
{
	while (node) {
		int order = compare_groups(probe, node);

		if (order == 0)
			return node;
		node = order < 0 ? node->left : node->right;
	}
	return NULL;
}

static void split(struct vdi_watcher_group *node, const struct vdi_watcher_group *at,
		  struct vdi_watcher_group **ret_less, struct vdi_watcher_group **ret_more)
{
	if (node == NULL) {
		*ret_less = *ret_more = NULL;
	} else if (compare_groups(node, at) < 0) {
		split(node->right, at, &node->right, ret_more);
		*ret_less = node;
		update_last(node);
	} else {
		split(node->left, at, ret_less, &node->left);
		*ret_more = node;
		update_last(node);
	}
}

static struct vdi_watcher_group *join(struct vdi_watcher_group *less, struct vdi_watcher_group *more)
{
	if (less == NULL || more == NULL)
		return less ? less : more;
	if (less->hash > more->hash) {
		less->right = join(less->right, more);
		update_last(less);
		return less;
	}
	more->left = join(less, more->left);
	update_last(more);
	return more;
}

static struct vdi_watcher_group *insert(struct vdi_watcher_group *node, struct vdi_watcher_group *group)
{
	if (node == NULL || group->hash > node->hash) {
		split(node, group, &group->left, &group->right);
		node = group;
	} else if (compare_groups(group, node) < 0) {
		node->left = insert(node->left, group);
	} else {
		node->right = insert(node->right, group);
	}
	update_last(node);
	return node;
}

static struct vdi_watcher_group *erase(struct vdi_watcher_group *node, const struct vdi_watcher_group *group)
{
	if (node == group)
		return join(node->left, node->right);
	if (compare_groups(group, node) < 0)
		node->left = erase(node->left, group);
	else
		node->right = erase(node->right, group);
	update_last(node);
	return node;
}

/* ---- The index ---- */

vd_status vdi_watcher_index_join(struct vdi_watcher_index *index, const struct vdi_key_range *range,
				 bool no_put, bool no_delete, struct vdi_watcher_group **ret_group)
{
	uint64_t		  hash = hash_of(range, no_put, no_delete);
	struct vdi_watcher_group  probe = { .range = *range, .no_put = no_put, .no_delete = no_delete };
	struct vdi_watcher_group *group;

	if (range->single)
		group = find_single(index, range->from, no_put, no_delete, hash);
	else
		group = find_range(index->root, &probe);
	if (group) {
		group->references++;
		*ret_group = group;
		return VD_OK;
	}
	if (range->single)
		VDI_TRY(reserve_buckets(index));
	VDI_TRY(new_group(range, no_put, no_delete, hash, &group));
	if (range->single) {
		group->next = index->buckets[hash & (index->bucket_count - 1)];
		index->buckets[hash & (index->bucket_count - 1)] = group;
		index->single_count++;
	} else {
		index->root = insert(index->root, group);
		index->range_count++;
	}
	*ret_group = group;
	return VD_OK;
}

void vdi_watcher_index_leave(struct vdi_watcher_index *index, struct vdi_watcher_group *group)
{
	struct vdi_watcher_group **link;

	if (--group->references)
		return;
	VDI_CHECK(LIST_EMPTY(&group->parked));
	if (group->range.single) {
		link = &index->buckets[group->hash & (index->bucket_count - 1)];
		while (*link != group)
			link = &(*link)->next;
		*link = group->next;
		index->single_count--;
	} else {
		index->root = erase(index->root, group);
		index->range_count--;
	}
	vdi_free(group);
}

struct match {
	struct vd_bytes key;
	bool		is_delete;
	void (*visit)(struct vdi_watcher_group *group, void *arg);
	void *arg;
};

static void visit_group(const struct match *match, struct vdi_watcher_group *group)
{
	if (!LIST_EMPTY(&group->parked) && !(match->is_delete ? group->no_delete : group->no_put))
		match->visit(group, match->arg);
}

static void match_ranges(const struct match *match, struct vdi_watcher_group *node)
{
	while (node &&
	       (node->last->range.unbounded || vd_bytes_compare(node->last->range.to, match->key) > 0)) {
		match_ranges(match, node->left);
		if (vd_bytes_compare(node->range.from, match->key) > 0)
			return;
		if (node->range.unbounded || vd_bytes_compare(node->range.to, match->key) > 0)
			visit_group(match, node);
		node = node->right;
	}
}

void vdi_watcher_index_match(const struct vdi_watcher_index *index, struct vd_bytes key, bool is_delete,
			     void (*visit)(struct vdi_watcher_group *group, void *arg), void *arg)
{
	struct match match = { key, is_delete, visit, arg };

	if (index->single_count) {
		struct vdi_key_range single = { .from = key, .single = true };

		/* A group has one of three filters (a group with both would never match): look up three
		 * hashes. */
		for (unsigned filter = 0; filter < 3; filter++) {
			uint64_t		  hash = hash_of(&single, filter == 1, filter == 2);
			struct vdi_watcher_group *group =
				find_single(index, key, filter == 1, filter == 2, hash);

			if (group)
				visit_group(&match, group);
		}
	}
	match_ranges(&match, index->root);
}

void vdi_watcher_index_fini(struct vdi_watcher_index *index)
{
	VDI_CHECK(index->single_count == 0 && index->range_count == 0);
	vdi_free(index->buckets);
	memset(index, 0, sizeof *index);
}
