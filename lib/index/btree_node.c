/* btree_node.h has the layout. Fragments keep the weak order of keys (a < b implies fragment(a) <=
 * fragment(b)), so a search narrows to the run of equal fragments and then compares whole keys. The prefix is
 * assumed to match first, and checked against the one key that must be read anyway. */
#include "btree_node.h"

#include <endian.h>

static size_t common_size(struct vd_bytes a, struct vd_bytes b, size_t limit)
{
	const unsigned char *left = a.data, *right = b.data;
	size_t		     size = 0;

	limit = VDI_MIN(limit, VDI_MIN(a.size, b.size));
	for (; size + 8 <= limit; size += 8) {
		uint64_t x, y;

		memcpy(&x, left + size, 8);
		memcpy(&y, right + size, 8);
		if (x != y)
			break;
	}
	while (size < limit && left[size] == right[size])
		size++;
	return size;
}

static inline uint32_t fragment_at(struct vd_bytes key, size_t at)
{
	const unsigned char *bytes = key.data;
	uint32_t	     fragment = 0;

	if (__builtin_expect(at + 4 <= key.size, 1)) {
		memcpy(&fragment, bytes + at, 4);
		return be32toh(fragment);
	}
	for (size_t i = 0; i < 4; i++)
		fragment = fragment << 8 | (at + i < key.size ? bytes[at + i] : 0);
	return fragment;
}

static inline struct vd_bytes bytes_from(struct vd_bytes bytes, size_t at)
{
	return at ? (struct vd_bytes) { (const char *) bytes.data + at, bytes.size - at } : bytes;
}

/* < 0, > 0: key sorts before, after all keys with the prefix; 0: it has the prefix. */
static inline int compare_prefix(struct vd_bytes key, const void *prefix, size_t size)
{
	size_t least = VDI_MIN(key.size, size);
	int    order = least ? memcmp(key.data, prefix, least) : 0;

	return order ? order : -(key.size < size);
}

static inline size_t lower_bound(const uint32_t *fragments, size_t count, uint32_t fragment)
{
	const uint32_t *base = fragments;

	if (count == 0)
		return 0;
	while (count > 1) {
		size_t half = count / 2;

		base += base[half - 1] < fragment ? half : 0;
		count -= half;
	}
	return (size_t) (base - fragments) + (*base < fragment);
}

/* The index after the run of equal fragments that starts at low. */
static inline size_t run_end(const uint32_t *fragments, size_t count, size_t low)
{
	uint32_t fragment = fragments[low];

	if (low + 1 == count || fragments[low + 1] != fragment)
		return low + 1;
	if (fragment == UINT32_MAX)
		return count;
	return low + lower_bound(fragments + low, count - low, fragment + 1);
}

inline void vdi_btree_leaf_run(const struct vdi_btree_node *leaf, struct vd_bytes key, size_t *ret_low,
			       size_t *ret_high)
{
	const uint32_t *fragments = node_fragments(leaf);
	size_t		count = leaf->count;
	uint32_t	fragment = fragment_at(key, leaf->prefix_size);
	size_t		low = lower_bound(fragments, count, fragment);

	*ret_low = low;
	*ret_high = low < count && fragments[low] == fragment ? run_end(fragments, count, low) : low;
}

size_t vdi_btree_leaf_find(const struct vdi_btree_ops *ops, const struct vdi_btree_node *leaf,
			   struct vd_bytes key, bool *ret_found)
{
	void *const *values = leaf_values(leaf);
	size_t	     count = leaf->count, prefix_size = leaf->prefix_size, low, high;
	bool	     prefix_known = false;

	*ret_found = false;
	vdi_btree_leaf_run(leaf, key, &low, &high);
	do {
		size_t		middle = low + (high - low) / 2;
		struct vd_bytes other = ops->key(values[middle < count ? middle : count - 1]);
		int		order;

		if (!prefix_known) {
			if (low < high && vd_bytes_equal(key, other)) { /* most searches end here */
				*ret_found = true;
				return middle;
			}
			order = compare_prefix(key, other.data, prefix_size);
			if (order)
				return order < 0 ? 0 : count;
			prefix_known = true;
		}
		if (low == high)
			break;
		order = vd_bytes_compare(bytes_from(key, prefix_size), bytes_from(other, prefix_size));
		if (order == 0) {
			*ret_found = true;
			return middle;
		}
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	} while (low < high);
	return low;
}

static inline struct vd_bytes inner_suffix(const struct vdi_btree_node *inner, size_t index)
{
	const uint32_t *ends = inner_ends(inner);
	uint32_t	start = index ? ends[index - 1] : 0;

	return (struct vd_bytes) { inner_bytes(inner) + inner->prefix_size + start, ends[index] - start };
}

size_t vdi_btree_inner_find(const struct vdi_btree_node *inner, struct vd_bytes key)
{
	const uint32_t *fragments = node_fragments(inner);
	size_t		count = inner->count - 1, low, high;
	uint32_t	fragment;
	int		order;

	if (count == 0)
		return 0;
	order = compare_prefix(key, inner_bytes(inner), inner->prefix_size);
	if (order)
		return order < 0 ? 0 : count;
	key = bytes_from(key, inner->prefix_size);
	fragment = fragment_at(key, 0);
	low = lower_bound(fragments, count, fragment);
	if (low == count || fragments[low] != fragment)
		return low;
	high = run_end(fragments, count, low);
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (vd_bytes_compare(inner_suffix(inner, middle), key) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- References ---- */

/* The values or children. */
static void *const *node_items(const struct vdi_btree_node *node)
{
	return node->level ? (void *const *) inner_children(node) : leaf_values(node);
}

void vdi_btree_node_ref_items(const struct vdi_btree_ops *ops, struct vdi_btree_node *node, size_t skip_at,
			      size_t skip)
{
	void *const *items = node_items(node);
	size_t	     count = node->count;

	/* Prefetch all, so that their cache misses overlap. */
	for (size_t i = 0; i < count; i++)
		__builtin_prefetch(items[i], 1);
	for (size_t i = 0; i < count; i++) {
		if (i >= skip_at && i < skip_at + skip)
			continue;
		if (node->level)
			node_ref(items[i]);
		else
			ops->ref(items[i]);
	}
}

void vdi_btree_node_unref(const struct vdi_btree_ops *ops, struct vdi_btree_node *node)
{
	void *const *items;
	size_t	     count;

	if (node == NULL)
		return;
	if (node_is_shared(node) &&
	    atomic_fetch_sub_explicit(&node->references, 1, memory_order_acq_rel) != 1)
		return;
	items = node_items(node);
	count = node->count;
	for (size_t i = 0; i < count; i++)
		__builtin_prefetch(items[i], 1);
	for (size_t i = 0; i < count; i++)
		if (node->level)
			vdi_btree_node_unref(ops, items[i]);
		else
			ops->unref(items[i]);
	vdi_free(node);
}

/* ---- Leaves ---- */

static size_t leaf_size(size_t capacity)
{
	return sizeof(struct vdi_btree_node) + capacity * (sizeof(void *) + sizeof(uint32_t));
}

static struct vdi_btree_node *leaf_new(size_t needed)
{
	size_t capacity = VDI_MIN((needed + LEAF_STEP - 1) / LEAF_STEP * LEAF_STEP, (size_t) BTREE_LEAF_MAX);
	struct vdi_btree_node *leaf = vdi_alloc(leaf_size(capacity));

	if (leaf == NULL)
		return NULL;
	atomic_init(&leaf->references, 1);
	leaf->prefix_size = 0;
	leaf->count = 0;
	leaf->capacity = (uint16_t) capacity;
	leaf->level = 0;
	return leaf;
}

struct vdi_btree_node *vdi_btree_leaf_make(const struct vdi_btree_ops *ops, void *const *values, size_t count)
{
	struct vdi_btree_node *leaf = leaf_new(count);
	struct vd_bytes	       first, last;

	if (leaf == NULL)
		return NULL;
	for (size_t i = 0; i < count; i++)
		__builtin_prefetch(values[i]);
	first = ops->key(values[0]);
	last = ops->key(values[count - 1]);
	leaf->prefix_size = (uint32_t) common_size(first, last, SIZE_MAX);
	leaf->count = (uint16_t) count;
	memcpy(leaf_values(leaf), values, count * sizeof *values);
	for (size_t i = 0; i < count; i++)
		node_fragments(leaf)[i] = fragment_at(ops->key(values[i]), leaf->prefix_size);
	return leaf;
}

struct vdi_btree_node *vdi_btree_leaf_copy(const struct vdi_btree_node *leaf, size_t needed)
{
	struct vdi_btree_node *copy = leaf_new(VDI_MAX(needed, (size_t) leaf->count));

	if (copy == NULL)
		return NULL;
	copy->prefix_size = leaf->prefix_size;
	copy->count = leaf->count;
	memcpy(leaf_values(copy), leaf_values(leaf), leaf->count * sizeof(void *));
	memcpy(node_fragments(copy), node_fragments(leaf), leaf->count * sizeof(uint32_t));
	return copy;
}

/* Checks one key only, because the bytes between the new and the old prefix are the same in all keys. */
static void leaf_shorten_prefix(struct vdi_btree_node *leaf, struct vd_bytes any, size_t prefix_size)
{
	uint32_t *fragments = node_fragments(leaf);
	uint32_t  common = fragment_at(any, prefix_size);
	size_t	  by = leaf->prefix_size - prefix_size;

	for (size_t i = 0; i < leaf->count; i++)
		fragments[i] = by >= 4 ? common : (common & ~(UINT32_MAX >> 8 * by)) | fragments[i] >> 8 * by;
	leaf->prefix_size = (uint32_t) prefix_size;
}

void vdi_btree_leaf_insert(const struct vdi_btree_ops *ops, struct vdi_btree_node *leaf, size_t at,
			   void *value, struct vd_bytes key)
{
	void	      **values = leaf_values(leaf);
	uint32_t       *fragments = node_fragments(leaf);
	size_t		count = leaf->count;
	struct vd_bytes any = ops->key(values[at < count ? at : count - 1]);
	size_t		common = common_size(key, any, leaf->prefix_size);

	if (common < leaf->prefix_size)
		leaf_shorten_prefix(leaf, any, common);
	memmove(values + at + 1, values + at, (count - at) * sizeof *values);
	memmove(fragments + at + 1, fragments + at, (count - at) * sizeof *fragments);
	values[at] = value;
	fragments[at] = fragment_at(key, leaf->prefix_size);
	leaf->count++;
}

void vdi_btree_leaf_delete(struct vdi_btree_node *leaf, size_t at)
{
	void	**values = leaf_values(leaf);
	uint32_t *fragments = node_fragments(leaf);

	leaf->count--;
	memmove(values + at, values + at + 1, (leaf->count - at) * sizeof *values);
	memmove(fragments + at, fragments + at + 1, (leaf->count - at) * sizeof *fragments);
}

/* ---- Inner nodes ---- */

static size_t pieces_size(const struct pieces *pieces)
{
	return pieces->first.size + pieces->second.size;
}

static unsigned char pieces_byte(const struct pieces *pieces, size_t at)
{
	return at < pieces->first.size ?
		       ((const unsigned char *) pieces->first.data)[at] :
		       ((const unsigned char *) pieces->second.data)[at - pieces->first.size];
}

static size_t pieces_common_size(const struct pieces *a, const struct pieces *b)
{
	size_t limit = VDI_MIN(pieces_size(a), pieces_size(b)), size = 0;

	while (size < limit && pieces_byte(a, size) == pieces_byte(b, size))
		size++;
	return size;
}

static char *pieces_write(const struct pieces *pieces, size_t from, size_t to, char *out)
{
	size_t border = pieces->first.size;

	if (from < VDI_MIN(to, border)) {
		memcpy(out, (const char *) pieces->first.data + from, VDI_MIN(to, border) - from);
		out += VDI_MIN(to, border) - from;
	}
	if (to > border) {
		size_t start = VDI_MAX(from, border) - border;

		memcpy(out, (const char *) pieces->second.data + start, to - border - start);
		out += to - border - start;
	}
	return out;
}

struct pieces vdi_btree_separator(struct vd_bytes left, struct vd_bytes right)
{
	return (struct pieces) { { right.data, common_size(left, right, SIZE_MAX) + 1 }, VD_BYTES_NONE };
}

static size_t inner_size(size_t count, size_t bytes)
{
	return sizeof(struct vdi_btree_node) +
	       count * (sizeof(void *) + sizeof(uint64_t) + 2 * sizeof(uint32_t)) + bytes;
}

size_t vdi_btree_node_size(const struct vdi_btree_node *node)
{
	if (node->level == 0)
		return leaf_size(node->capacity);
	return inner_size(node->count,
			  node->count > 1 ? node->prefix_size + (size_t) inner_ends(node)[node->count - 2] :
					    0);
}

void vdi_btree_inner_entries(const struct vdi_btree_node *inner, struct inner_entry *entries)
{
	struct vd_bytes prefix = { inner_bytes(inner), inner->prefix_size };

	for (size_t i = 0; i < inner->count; i++)
		entries[i] =
			(struct inner_entry) { inner_children(inner)[i],
					       inner_counts(inner)[i],
					       { prefix, i ? inner_suffix(inner, i - 1) : VD_BYTES_NONE } };
}

struct vdi_btree_node *vdi_btree_inner_make(unsigned level, const struct inner_entry *entries, size_t count)
{
	size_t prefix_size =
		count > 1 ? pieces_common_size(&entries[1].separator, &entries[count - 1].separator) : 0;
	size_t		       bytes = prefix_size, end = 0;
	struct vdi_btree_node *inner;
	char		      *out;

	for (size_t i = 1; i < count; i++)
		bytes += pieces_size(&entries[i].separator) - prefix_size;
	inner = vdi_alloc(inner_size(count, bytes));
	if (inner == NULL)
		return NULL;
	atomic_init(&inner->references, 1);
	inner->prefix_size = (uint32_t) prefix_size;
	inner->count = inner->capacity = (uint16_t) count;
	inner->level = (uint8_t) level;
	out = (char *) (uintptr_t) inner_bytes(inner);
	if (count > 1)
		out = pieces_write(&entries[1].separator, 0, prefix_size, out);
	for (size_t i = 0; i < count; i++) {
		inner_children(inner)[i] = entries[i].child;
		inner_counts(inner)[i] = entries[i].count;
		if (i) {
			struct vd_bytes suffix = { out, pieces_size(&entries[i].separator) - prefix_size };

			out = pieces_write(&entries[i].separator, prefix_size, prefix_size + suffix.size,
					   out);
			end += suffix.size;
			inner_ends(inner)[i - 1] = (uint32_t) end;
			node_fragments(inner)[i - 1] = fragment_at(suffix, 0);
		}
	}
	return inner;
}

struct vdi_btree_node *vdi_btree_inner_copy(const struct vdi_btree_node *inner)
{
	size_t		       size = vdi_btree_node_size(inner);
	struct vdi_btree_node *copy = vdi_alloc(size);

	if (copy == NULL)
		return NULL;
	atomic_init(&copy->references, 1);
	copy->prefix_size = inner->prefix_size;
	copy->count = copy->capacity = inner->count;
	copy->level = inner->level;
	memcpy(copy + 1, inner + 1, size - sizeof *copy);
	return copy;
}
