/* Ranges of keys, and etcd's way of writing them.
 *
 * etcd names a range by (key, range_end): an empty range_end is the single key, "\0" means "key and
 * everything after it", anything else is the half-open [key, range_end). Mirrors etcd client/v3/op.go
 * (GetPrefixRangeEnd) and server/storage/mvcc/index.go.
 *
 * Pure functions, any thread. Slices are borrowed from the caller's arguments.
 */
#ifndef VDI_KEY_RANGE_H
#define VDI_KEY_RANGE_H

#include <stdbool.h>
#include <vedette/bytes.h>

/* from <= key < to, unless one of the flags says otherwise. A single key is a flag because its end, from +
 * "\0", is stored nowhere that a slice could point at. */
struct vdi_key_range {
	struct vd_bytes from;
	struct vd_bytes to;
	bool		unbounded; /* no upper end; to is unused */
	bool		single;	   /* exactly the key from; to is unused */
};

#define VDI_KEY_RANGE_ALL ((struct vdi_key_range) { .unbounded = true })

/* From etcd's (key, range_end). The empty key with range_end "\0" is everything. */
struct vdi_key_range vdi_key_range_from_etcd(struct vd_bytes key, struct vd_bytes range_end);
/* Every key that starts with prefix; buffer as for vdi_bytes_prefix_end and must stay as long as the
 * range. */
struct vdi_key_range vdi_key_range_from_prefix(struct vd_bytes prefix, void *buffer);

bool vdi_key_range_contains(const struct vdi_key_range *range, struct vd_bytes key);
/* No key can be in it (to <= from). */
bool vdi_key_range_is_empty(const struct vdi_key_range *range);
/* Whether a key that starts with prefix could be in it. */
bool vdi_key_range_has_prefix(const struct vdi_key_range *range, struct vd_bytes prefix);
/* Whether some key could be in both. */
bool vdi_key_range_overlaps(const struct vdi_key_range *a, const struct vdi_key_range *b);

/* The first key after all that start with prefix, etcd's range_end of a prefix: the last byte below 0xff is
 * incremented and what follows it is cut; of an empty or all-0xff prefix it is "\0", to the end. buffer takes
 * max(1, prefix.size) bytes; the result points into it. */
struct vd_bytes vdi_bytes_prefix_end(struct vd_bytes prefix, void *buffer);
/* Where a read goes on behind key, when no key is longer than size_max: key with a byte 0, or what comes
 * after a key that is as long as any. buffer takes size_max + 1 bytes; the result points into it. */
struct vd_bytes vdi_bytes_next_key(struct vd_bytes key, size_t size_max, void *buffer);

#endif
