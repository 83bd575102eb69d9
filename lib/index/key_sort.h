/* Sorting very many values by their keys, when most of the cost is waiting for memory.
 *
 * The order is that of vd_bytes_compare; values with equal keys stay in the order in which they came. Linear
 * in the bytes that must be looked at to tell the keys apart, so long common beginnings cost little, and keys
 * are asked for in a way that hides the wait.
 *
 * Pure functions: any thread. Nothing is allocated.
 */
#ifndef VDI_KEY_SORT_H
#define VDI_KEY_SORT_H

#include <stddef.h>
#include <stdint.h>
#include <vedette/bytes.h>

struct vdi_key_sort_item {
	uint64_t head;	/* of the sort: its content before and after does not matter */
	void	*value; /* what the key belongs to */
	size_t	 tag;	/* the caller's */
};

typedef struct vd_bytes (*vdi_key_sort_fn)(const void *value);

/* scratch: room for as many items. */
void vdi_key_sort(struct vdi_key_sort_item *items, struct vdi_key_sort_item *scratch, size_t count,
		  vdi_key_sort_fn key);

#endif
