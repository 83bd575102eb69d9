/* Sorts very many values by their keys, if most of the cost is cache misses.
 *
 * The order is that of vd_bytes_compare; values with equal keys keep their order. Linear in the bytes that
 * distinguish the keys, so long common prefixes cost little, and keys are prefetched so that the misses
 * overlap.
 *
 * Pure functions: any thread. Does not allocate.
 */
#ifndef VDI_KEY_SORT_H
#define VDI_KEY_SORT_H

#include <stddef.h>
#include <stdint.h>
#include <vedette/bytes.h>

struct vdi_key_sort_item {
	uint64_t head;	/* used by the sort only */
	void	*value; /* the key's value */
	size_t	 tag;	/* for the caller */
};

typedef struct vd_bytes (*vdi_key_sort_fn)(const void *value);

/* scratch: room for as many items. */
void vdi_key_sort(struct vdi_key_sort_item *items, struct vdi_key_sort_item *scratch, size_t count,
		  vdi_key_sort_fn key);

#endif
