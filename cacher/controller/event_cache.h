/* A bounded table of records, from which the one that was used longest ago is evicted. Keys are hashes of 128
 * bits with a secret seed, so keys are not stored. Not thread-safe: one owner.
 */
#ifndef VDI_EVENT_CACHE_H
#define VDI_EVENT_CACHE_H

#include "base.h"
#include "hash.h"

struct vdi_event_key {
	uint64_t a, b;
};

struct vdi_event_cache_entry;

struct vdi_event_cache {
	size_t			      record_size;
	size_t			      count_max;
	struct vdi_hash		      entries;
	struct vdi_event_cache_entry *newest, *oldest; /* by use */
};

void vdi_event_cache_init(struct vdi_event_cache *cache, size_t record_size, size_t count_max);
void vdi_event_cache_fini(struct vdi_event_cache *cache);
/* Returns the record of the key; a new one is zeroed. It is valid until the next call. NULL: out of
 * memory. */
void *vdi_event_cache_at(struct vdi_event_cache *cache, struct vdi_event_key key);

#endif
