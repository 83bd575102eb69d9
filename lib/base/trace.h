/* The most recent facts of each thread: a ring that is written when a check fails.
 *
 * Adding a fact takes a few nanoseconds, no lock and no allocation, so hot paths may do it. Each thread has
 * its own ring.
 */
#ifndef VDI_TRACE_H
#define VDI_TRACE_H

#include "base.h"

#define VDI_TRACE_ENTRIES 64 /* power of two */

struct vdi_trace_entry {
	const char *fact;
	int64_t	    a;
	int64_t	    b;
};

struct vdi_trace_ring {
	uint64_t	       count; /* facts added so far */
	struct vdi_trace_entry entries[VDI_TRACE_ENTRIES];
};

extern __thread struct vdi_trace_ring vdi_trace_ring;

/* fact is a literal; it defines the meaning of a and b: a revision, a state, a count. */
static inline void vdi_trace(const char *fact, int64_t a, int64_t b)
{
	vdi_trace_ring.entries[vdi_trace_ring.count++ % VDI_TRACE_ENTRIES] =
		(struct vdi_trace_entry) { fact, a, b };
}

/* Calls write with one line (with newline) per fact of the calling thread, oldest first. */
void vdi_trace_dump(void (*write)(void *arg, const char *text, size_t size), void *arg);

#endif
