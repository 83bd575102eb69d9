/* What this thread did last: a ring of facts, written when a check fails.
 *
 * Adding a fact costs a few nanoseconds, takes no lock and allocates nothing, so it may be done on hot paths.
 * Each thread has its own ring and sees only that one.
 */
#ifndef VDI_TRACE_H
#define VDI_TRACE_H

#include "base.h"

#define VDI_TRACE_ENTRIES 64 /* a power of two */

struct vdi_trace_entry {
	const char *fact;
	int64_t	    a;
	int64_t	    b;
};

struct vdi_trace_ring {
	uint64_t	       count; /* facts ever added */
	struct vdi_trace_entry entries[VDI_TRACE_ENTRIES];
};

extern __thread struct vdi_trace_ring vdi_trace_ring;

/* fact is lent for ever: a literal. What a and b mean is up to the fact; a revision, a state, a count. */
static inline void vdi_trace(const char *fact, int64_t a, int64_t b)
{
	vdi_trace_ring.entries[vdi_trace_ring.count++ % VDI_TRACE_ENTRIES] =
		(struct vdi_trace_entry) { fact, a, b };
}

/* Calls write with one line (and its newline) per fact of the calling thread, oldest first. */
void vdi_trace_dump(void (*write)(void *arg, const char *text, size_t size), void *arg);

#endif
