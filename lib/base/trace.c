/* The ring is in thread-local memory: it needs no setup and no lock, and ends with its thread. Dumping uses
 * no heap, because the heap may be corrupt. */
#include <stdio.h>

#include "trace.h"

__thread struct vdi_trace_ring vdi_trace_ring;

void vdi_trace_dump(void (*write)(void *arg, const char *text, size_t size), void *arg)
{
	const struct vdi_trace_ring *ring = &vdi_trace_ring;
	uint64_t first = ring->count > VDI_TRACE_ENTRIES ? ring->count - VDI_TRACE_ENTRIES : 0;

	for (uint64_t i = first; i < ring->count; i++) {
		const struct vdi_trace_entry *entry = &ring->entries[i % VDI_TRACE_ENTRIES];
		char			      line[256];
		int length = snprintf(line, sizeof line, "%s %lld %lld\n", entry->fact, (long long) entry->a,
				      (long long) entry->b);

		if (length > 0)
			write(arg, line, VDI_MIN((size_t) length, sizeof line - 1));
	}
}
