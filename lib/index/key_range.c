/* Comparisons only, except the end of a prefix, which is built in the caller's memory. */
#include "key_range.h"

#include "base.h"

struct vdi_key_range vdi_key_range_from_etcd(struct vd_bytes key, struct vd_bytes range_end)
{
	if (range_end.size == 0)
		return (struct vdi_key_range) { .from = key, .single = true };
	if (range_end.size == 1 && *(const unsigned char *) range_end.data == 0)
		return (struct vdi_key_range) { .from = key, .unbounded = true };
	return (struct vdi_key_range) { .from = key, .to = range_end };
}

struct vdi_key_range vdi_key_range_from_prefix(struct vd_bytes prefix, void *buffer)
{
	return vdi_key_range_from_etcd(prefix, vdi_bytes_prefix_end(prefix, buffer));
}

bool vdi_key_range_contains(const struct vdi_key_range *range, struct vd_bytes key)
{
	if (range->single)
		return vd_bytes_equal(key, range->from);
	return vd_bytes_compare(key, range->from) >= 0 &&
	       (range->unbounded || vd_bytes_compare(key, range->to) < 0);
}

bool vdi_key_range_is_empty(const struct vdi_key_range *range)
{
	return !range->single && !range->unbounded && vd_bytes_compare(range->from, range->to) >= 0;
}

bool vdi_key_range_has_prefix(const struct vdi_key_range *range, struct vd_bytes prefix)
{
	size_t size = VDI_MIN(prefix.size, range->from.size);
	int    order = size ? memcmp(prefix.data, range->from.data, size) : 0;

	if (range->single)
		return order == 0 && prefix.size <= range->from.size;
	/* The last key with the prefix is after all others with it; the first is the prefix itself. */
	return order >= 0 && (range->unbounded || vd_bytes_compare(prefix, range->to) < 0);
}

bool vdi_key_range_overlaps(const struct vdi_key_range *a, const struct vdi_key_range *b)
{
	if (vdi_key_range_is_empty(a) || vdi_key_range_is_empty(b))
		return false;
	if (a->single)
		return vdi_key_range_contains(b, a->from);
	if (b->single)
		return vdi_key_range_contains(a, b->from);
	return (a->unbounded || vd_bytes_compare(b->from, a->to) < 0) &&
	       (b->unbounded || vd_bytes_compare(a->from, b->to) < 0);
}

struct vd_bytes vdi_bytes_prefix_end(struct vd_bytes prefix, void *buffer)
{
	unsigned char *end = buffer;
	size_t	       size = prefix.size;

	while (size && ((const unsigned char *) prefix.data)[size - 1] == 0xff)
		size--;
	if (size == 0) {
		end[0] = 0;
		return (struct vd_bytes) { end, 1 };
	}
	memcpy(end, prefix.data, size);
	end[size - 1]++;
	return (struct vd_bytes) { end, size };
}

struct vd_bytes vdi_bytes_next_key(struct vd_bytes key, size_t size_max, void *buffer)
{
	struct vd_bytes next;

	if (key.size >= size_max) {
		next = vdi_bytes_prefix_end(key, buffer);
		if (vd_bytes_compare(next, key) > 0)
			return next;
	}
	/* If no key follows, the result is longer than any valid key: the read then fails instead of starting
	 * again at the first key. */
	memcpy(buffer, key.data, key.size);
	((char *) buffer)[key.size] = 0;
	return (struct vd_bytes) { buffer, key.size + 1 };
}
