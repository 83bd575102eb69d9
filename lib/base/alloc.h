/* All allocations of vedette: counted, and able to fail on demand.
 *
 * Memory from these functions is released with vdi_free only. Any thread; blocks only as the allocator does.
 * A failed allocation returns NULL; the caller returns VD_NOMEM and leaves its state unchanged.
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
void	       *vdi_realloc(void *memory, size_t size); /* on NULL the old memory is unchanged */
VDI_SHARED void vdi_free(void *memory);			/* NULL is allowed */

/* Prepares this thread for allocating VDI_ALLOC_AHEAD bytes or more in many small blocks; call it again for
 * each such amount. glibc grows the memory of every thread but the first by one page at a time, with a system
 * call each; after a block of this size was allocated and freed, it has the pages. Cannot fail. */
#define VDI_ALLOC_AHEAD ((size_t) 96 << 10)
void vdi_alloc_ahead(void);
/* Releases the memory of file pages that a library has mapped for reading. The pages no longer count as
 * memory of this process and are read again at the next access, which is allowed at any time. Cannot fail. */
void vdi_pages_forget(void *map, size_t size);

#define VDI_NEW(type) ((type *) vdi_calloc(1, sizeof(type)))

/* A NUL-terminated copy; NULL if out of memory. */
VDI_SHARED char *vdi_strndup(const void *text, size_t size);
VDI_SHARED char *vdi_strdup(const char *text);

/* Grows *array, with elements of element_size, to at least needed elements, by doubling; updates
 * *capacity. */
bool vdi_grow(void **array, size_t *capacity, size_t needed, size_t element_size)
	__attribute__((warn_unused_result));
/* Shrinks such an array to count elements; the array may move. false: out of memory, nothing changed. */
bool vdi_shrink(void **array, size_t *capacity, size_t count, size_t element_size)
	__attribute__((warn_unused_result));

/* Number of allocated blocks; tests compare it before and after to find leaks. */
int64_t vdi_alloc_live(void);
/* Returns free memory to the operating system, as far as the allocator can: after work that needed much
 * memory for a short time. Takes milliseconds. */
void vdi_alloc_trim(void);
/* Makes the Nth allocation from now fail (1: the next one), and the `count - 1` after it, on every thread;
 * nth 0 disables. Returns the number of allocations since the last call. */
uint64_t vdi_alloc_fail_nth(uint64_t nth, uint64_t count);
/* Returns true if a failure armed by vdi_alloc_fail_nth has occurred since. */
bool vdi_alloc_failed(void);
/* Returns true if a failure is armed. An arena then allocates a block for each request, and a growing text
 * allocates for each piece, so that a test can make each of them fail. */
bool vdi_alloc_is_armed(void);

#endif
