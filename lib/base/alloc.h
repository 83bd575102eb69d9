/* Every allocation of vedette passes here: counted, and able to fail on demand.
 *
 * Memory from these functions is released with vdi_free only. All may be called from any thread; none blocks
 * beyond what the allocator does. A failed allocation returns NULL and the caller answers VD_NOMEM with its
 * state as before.
 */
#ifndef VDI_ALLOC_H
#define VDI_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vedette/bytes.h>

#include "shared.h"

VDI_SHARED void *vdi_alloc(size_t size) __attribute__((malloc, alloc_size(1)));
VDI_SHARED void *vdi_calloc(size_t count, size_t size)
	__attribute__((malloc));			/* zeroed; NULL on overflow of count * size */
void	       *vdi_realloc(void *memory, size_t size); /* on NULL the old memory is untouched */
VDI_SHARED void vdi_free(void *memory);			/* NULL is fine */

/* Says that this thread will soon want very many small blocks, VDI_ALLOC_AHEAD bytes or more: to be called
 * again for each such amount. glibc grows the memory of every thread but the first by one page at a time,
 * with a system call each; after a block of that size it has them at once. Cannot fail. */
#define VDI_ALLOC_AHEAD ((size_t) 96 << 10)
void vdi_alloc_ahead(void);
/* Pages of a file that some library has mapped, to read: they count as memory of this process no longer, and
 * come back when somebody looks at them, who may do so meanwhile. Cannot fail. */
void vdi_pages_forget(void *map, size_t size);

#define VDI_NEW(type) ((type *) vdi_calloc(1, sizeof(type)))

/* A NUL-terminated copy; NULL when out of memory. */
VDI_SHARED char *vdi_strndup(const void *text, size_t size);
VDI_SHARED char *vdi_strdup(const char *text);

/* Grows *array (of elements of size) so that it holds at least needed elements; doubles. *capacity
 * follows. */
bool vdi_grow(void **array, size_t *capacity, size_t needed, size_t element_size)
	__attribute__((warn_unused_result));
/* Gives back what such an array has beyond count elements, which may move. false: out of memory, and nothing
 * changed. */
bool vdi_shrink(void **array, size_t *capacity, size_t count, size_t element_size)
	__attribute__((warn_unused_result));

/* Live blocks; 0 when nothing leaks. Tests compare before and after. */
int64_t vdi_alloc_live(void);
/* Gives memory that is free back to the operating system, as far as the allocator can: after work that needed
 * much for a moment. Takes milliseconds. */
void vdi_alloc_trim(void);
/* Makes the Nth allocation from now fail (1 = the next one), and the `count - 1` that follow it, on every
 * thread; nth 0 switches off. Returns how many allocations were made since the last call. */
uint64_t vdi_alloc_fail_nth(uint64_t nth, uint64_t count);
/* Whether a failure armed by vdi_alloc_fail_nth has been delivered since. */
bool vdi_alloc_failed(void);
/* Whether a failure is armed. An arena then takes a block of its own for each request, and a growing text asks
 * for memory with each piece, so that a test can make each of them fail. */
bool vdi_alloc_is_armed(void);

#endif
