/* For a run of keys that are equal up to some depth, first the whole common beginning is found. Then the next
 * eight bytes of each key (its head) are copied into its item, and the items are sorted by their heads,
 * without access to the keys. Each run of equal heads is sorted the same way, eight bytes deeper. So a key is
 * accessed once or twice for each part of it that differs from its neighbours', in a loop whose next
 * addresses are known.
 *
 *   /registry/pods/ns-0 | 0001/web | -7d4b9c6f5-00000 | 01     depth skips common bytes; heads between
 *
 * A head is padded with zeros, so it cannot distinguish "a" from "a\0": a run of equal heads in which a key
 * ends is sorted by whole keys. All steps are stable.
 */
#include "key_sort.h"

#include <endian.h>

#include "base.h"

#define RUN_SMALL 12 /* sorted by whole keys */
#define RADIX_MIN 1024
#define AHEAD 12 /* keys prefetched in advance */

struct sorter {
	vdi_key_sort_fn key;
	size_t		depth;
};

typedef bool (*is_after_fn)(const struct sorter *sorter, const struct vdi_key_sort_item *left,
			    const struct vdi_key_sort_item *right);

static bool is_head_after(const struct sorter *sorter, const struct vdi_key_sort_item *left,
			  const struct vdi_key_sort_item *right)
{
	(void) sorter;
	return left->head > right->head;
}

static bool is_key_after(const struct sorter *sorter, const struct vdi_key_sort_item *left,
			 const struct vdi_key_sort_item *right)
{
	struct vd_bytes a = sorter->key(left->value), b = sorter->key(right->value);

	/* Both are at least as long as their common part. */
	a = (struct vd_bytes) { (const char *) a.data + sorter->depth, a.size - sorter->depth };
	b = (struct vd_bytes) { (const char *) b.data + sorter->depth, b.size - sorter->depth };
	return vd_bytes_compare(a, b) > 0;
}

static void insertion_sort(const struct sorter *sorter, struct vdi_key_sort_item *items, size_t count,
			   is_after_fn is_after)
{
	for (size_t i = 1; i < count; i++) {
		struct vdi_key_sort_item item = items[i];
		size_t			 at = i;

		for (; at && is_after(sorter, &items[at - 1], &item); at--)
			items[at] = items[at - 1];
		items[at] = item;
	}
}

static void merge_sort(const struct sorter *sorter, struct vdi_key_sort_item *items,
		       struct vdi_key_sort_item *scratch, size_t count, is_after_fn is_after)
{
	size_t half = count / 2, left = 0, right = half, out = 0;

	if (count <= RUN_SMALL) {
		insertion_sort(sorter, items, count, is_after);
		return;
	}
	merge_sort(sorter, items, scratch, half, is_after);
	merge_sort(sorter, items + half, scratch, count - half, is_after);
	if (!is_after(sorter, &items[half - 1], &items[half]))
		return;
	memcpy(scratch, items, half * sizeof *items);
	while (left < half && right < count)
		items[out++] =
			is_after(sorter, &scratch[left], &items[right]) ? items[right++] : scratch[left++];
	memcpy(items + out, scratch + left, (half - left) * sizeof *items);
}

/* Radix sort by head, from the last byte to the first; skips bytes that all heads share. Its tables are too
 * large for the frame of a recursion. */
__attribute__((noinline)) static void radix_sort(struct vdi_key_sort_item *items,
						 struct vdi_key_sort_item *scratch, size_t count)
{
	uint32_t		  counts[8][256] = { { 0 } };
	struct vdi_key_sort_item *from = items, *to = scratch;

	for (size_t i = 0; i < count; i++)
		for (unsigned byte = 0; byte < 8; byte++)
			counts[byte][items[i].head >> (8 * byte) & 255]++;
	for (unsigned byte = 0; byte < 8; byte++) {
		struct vdi_key_sort_item *swap = from;
		size_t			  places[256], place = 0;

		if (counts[byte][items[0].head >> (8 * byte) & 255] == count)
			continue;
		for (unsigned i = 0; i < 256; i++) {
			places[i] = place;
			place += counts[byte][i];
		}
		for (size_t i = 0; i < count; i++)
			to[places[from[i].head >> (8 * byte) & 255]++] = from[i];
		from = to;
		to = swap;
	}
	if (from != items)
		memcpy(items, from, count * sizeof *items);
}

/* A value begins with the data that locates its key, and the key is close behind. */
static inline void ask_for(const struct sorter *sorter, const struct vdi_key_sort_item *items, size_t at,
			   size_t count)
{
	if (at >= count)
		return;
	__builtin_prefetch((const char *) items[at].value + 40);
	__builtin_prefetch((const char *) items[at].value + 48 + sorter->depth);
}

/* The number of bytes after depth that all keys have in common. */
static size_t common_size(const struct sorter *sorter, const struct vdi_key_sort_item *items, size_t count)
{
	struct vd_bytes first = sorter->key(items[0].value);
	const char     *first_bytes = (const char *) first.data + sorter->depth;
	size_t		common = first.size - sorter->depth;

	for (size_t i = 1; i < count && common; i++) {
		struct vd_bytes key;
		const char     *bytes;
		size_t		least;

		ask_for(sorter, items, i + AHEAD, count);
		key = sorter->key(items[i].value);
		bytes = (const char *) key.data + sorter->depth;
		least = VDI_MIN(common, key.size - sorter->depth);
		if (least && memcmp(first_bytes, bytes, least) == 0) {
			common = least;
			continue;
		}
		for (common = 0; common < least && first_bytes[common] == bytes[common];)
			common++;
	}
	return common;
}

/* Returns true if a key ends before the next depth. */
static bool load_heads(const struct sorter *sorter, struct vdi_key_sort_item *items, size_t count,
		       bool *ret_all_end)
{
	bool   ends = false;
	size_t empty = 0;

	for (size_t i = 0; i < count; i++) {
		struct vd_bytes key;
		size_t		left;
		uint64_t	head = 0;

		ask_for(sorter, items, i + AHEAD, count);
		key = sorter->key(items[i].value);
		left = key.size - sorter->depth;
		if (left)
			memcpy(&head, (const char *) key.data + sorter->depth, VDI_MIN(left, sizeof head));
		items[i].head = be64toh(head);
		ends |= left < sizeof head;
		empty += left == 0;
	}
	*ret_all_end = empty == count;
	return ends;
}

/* All keys of the run are equal up to depth. */
static void sort_run(vdi_key_sort_fn key, size_t depth, struct vdi_key_sort_item *items,
		     struct vdi_key_sort_item *scratch, size_t count)
{
	struct sorter sorter = { key, depth };
	bool	      ends, all_end;

	if (count <= RUN_SMALL) {
		insertion_sort(&sorter, items, count, is_key_after);
		return;
	}
	sorter.depth += common_size(&sorter, items, count);
	ends = load_heads(&sorter, items, count, &all_end);
	if (all_end)
		return;
	if (count >= RADIX_MIN && count <= UINT32_MAX)
		radix_sort(items, scratch, count);
	else
		merge_sort(&sorter, items, scratch, count, is_head_after);
	for (size_t first = 0, end; first < count; first = end) {
		for (end = first + 1; end < count && items[end].head == items[first].head;)
			end++;
		if (end - first == 1)
			continue;
		if (ends)
			merge_sort(&sorter, items + first, scratch, end - first, is_key_after);
		else
			sort_run(key, sorter.depth + 8, items + first, scratch, end - first);
	}
}

void vdi_key_sort(struct vdi_key_sort_item *items, struct vdi_key_sort_item *scratch, size_t count,
		  vdi_key_sort_fn key)
{
	if (count > 1)
		sort_run(key, 0, items, scratch, count);
}
