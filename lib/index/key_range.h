/* Ranges of keys, in etcd's notation.
 *
 * etcd describes a range by (key, range_end): an empty range_end is the single key, "\0" means "key and
 * everything after it", anything else is the half-open [key, range_end). Mirrors etcd client/v3/op.go
 * (GetPrefixRangeEnd) and server/storage/mvcc/index.go.
 *
 * Pure functions, any thread. Slices are borrowed from the caller's arguments.
 */
#ifndef VDI_KEY_RANGE_H
#define VDI_KEY_RANGE_H

#include <stdbool.h>
#include <vedette/bytes.h>

/* from <= key < to, unless a flag is set. A single key needs a flag, because its end, from + "\0", is not in
 * memory that a slice could reference. */
struct vdi_key_range {
	struct vd_bytes from;
	struct vd_bytes to;
	bool		unbounded; /* no upper end; to is unused */
	bool		single;	   /* exactly the key from; to is unused */
};

#define VDI_KEY_RANGE_ALL ((struct vdi_key_range) { .unbounded = true })

/* Converts etcd's (key, range_end). The empty key with range_end "\0" is every key. */
struct vdi_key_range vdi_key_range_from_etcd(struct vd_bytes key, struct vd_bytes range_end);
/* The range of all keys with the prefix. buffer is as for vdi_bytes_prefix_end, and must live as long as the
 * range. */
struct vdi_key_range vdi_key_range_from_prefix(struct vd_bytes prefix, void *buffer);

bool vdi_key_range_contains(const struct vdi_key_range *range, struct vd_bytes key);
/* Returns true if no key can be in it (to <= from). */
bool vdi_key_range_is_empty(const struct vdi_key_range *range);
/* Returns true if a key with the prefix could be in it. */
bool vdi_key_range_has_prefix(const struct vdi_key_range *range, struct vd_bytes prefix);
/* Returns true if a key could be in both. */
bool vdi_key_range_overlaps(const struct vdi_key_range *a, const struct vdi_key_range *b);

/* Returns the first key after all keys with the prefix, etcd's range_end of a prefix: the last byte below
 * 0xff is incremented and the rest removed; for an empty or all-0xff prefix it is "\0", meaning to the end.
 * buffer has max(1, prefix.size) bytes; the result points into it. */
struct vd_bytes vdi_bytes_prefix_end(struct vd_bytes prefix, void *buffer);
/* Returns the start of a read that continues after key, if no key is longer than size_max: key with a byte 0,
 * or the successor of a key of maximum length. buffer has size_max + 1 bytes; the result points into it. */
struct vd_bytes vdi_bytes_next_key(struct vd_bytes key, size_t size_max, void *buffer);

#endif
