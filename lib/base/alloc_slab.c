/* One range of addresses, divided into spans of 64 KiB that are aligned to 64 KiB: the address of a block
 * gives its span and so its size, and blocks need no headers. A span has blocks of one size; it first reuses
 * freed blocks, then takes blocks that were never used. Full spans are in no list; a span returns to the list
 * with its first free block. The header of a span is at its start, so the header of the span in use is as
 * warm in the cache as its blocks.
 *
 * 	range	| span of 1152 | span of 176 | empty | span of 1152 | ... never used ...
 * 	span	| header | block | block | (free) -> | block | ... untouched
 */
#include "alloc_slab.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/queue.h>

#define SPAN_SIZE ((size_t) 64 << 10)
/* Address space becomes usable memory in steps of the size of a huge page. */
#define STEP_SIZE ((size_t) 2 << 20)
#define HEADER_SIZE ((size_t) 64)
/* 16 to 128 in steps of 16, then eight sizes per doubling. */
#define FINE_MAX 128
#define FINE_CLASSES (FINE_MAX / 16)
#define CLASSES (FINE_CLASSES + 8 * 5)

struct span {
	LIST_ENTRY(span) node; /* list of the class's partial spans, or of the empty spans */
	void	*given_back;   /* list of freed blocks; each contains the address of the next */
	uint32_t used;
	uint32_t untouched; /* offset of the first block that was never used */
	uint16_t class;
	bool is_listed;
};
_Static_assert(sizeof(struct span) <= HEADER_SIZE, "the header has its own cache line");
LIST_HEAD(spans, span);

struct vdi_slab {
	char	    *reserved;
	size_t	     reserved_size;
	char	    *start, *end; /* the spans; [start, ready) is usable memory, [start, next) was used */
	char	    *ready, *next;
	size_t	     used; /* spans that contain blocks */
	pthread_t    owner;
	struct spans partial[CLASSES]; /* allocations use the first one */
	struct spans empty;
};

static inline unsigned class_of(size_t size)
{
	unsigned shift;

	if (size <= FINE_MAX)
		return (unsigned) ((size + 15) / 16 - 1);
	shift = 63 - (unsigned) __builtin_clzll(size - 1) - 3; /* the four highest bits select the class */
	return FINE_CLASSES + (shift - 4) * 8 + (unsigned) (((size - 1) >> shift) - 8);
}

static inline uint32_t class_size(unsigned class)
{
	if (class < FINE_CLASSES)
		return (class + 1) * 16;
	class -= FINE_CLASSES;
	return (class % 8 + 9) << (class / 8 + 4);
}

static inline bool is_ours(const struct vdi_slab *slab, const void *memory)
{
	return (const char *) memory >= slab->start && (const char *) memory < slab->end;
}

static inline struct span *span_of(const void *memory)
{
	return (struct span *) ((uintptr_t) memory & ~(SPAN_SIZE - 1));
}

/* ---- Spans ---- */

static struct span *span_unused(struct vdi_slab *slab)
{
	struct span *span = (struct span *) (void *) slab->next;

	if (slab->next == slab->ready) {
		if (slab->ready == slab->end || mprotect(slab->ready, STEP_SIZE, PROT_READ | PROT_WRITE) != 0)
			return NULL;
		/* has an effect if the system has huge pages */
		(void) madvise(slab->ready, STEP_SIZE, MADV_HUGEPAGE);
		slab->ready += STEP_SIZE;
	}
	slab->next += SPAN_SIZE;
	return span;
}

static __attribute__((noinline)) struct span *span_new(struct vdi_slab *slab, unsigned class)
{
	struct span *span = LIST_FIRST(&slab->empty);

	if (span)
		LIST_REMOVE(span, node);
	else
		span = span_unused(slab);
	if (span == NULL)
		return NULL;
	span->given_back = NULL;
	span->used = 0;
	span->untouched = HEADER_SIZE;
	span->class = (uint16_t) class;
	span->is_listed = true;
	LIST_INSERT_HEAD(&slab->partial[class], span, node);
	slab->used++;
	return span;
}

static __attribute__((noinline)) void span_moves(struct vdi_slab *slab, struct span *span)
{
	if (!span->is_listed) {
		span->is_listed = true;
		LIST_INSERT_HEAD(&slab->partial[span->class], span, node);
	}
	if (span->used)
		return;
	LIST_REMOVE(span, node);
	LIST_INSERT_HEAD(&slab->empty, span, node);
	slab->used--;
}

/* ---- Blocks ---- */

static void *allocate(void *arg, size_t size)
{
	struct vdi_slab *slab = arg;
	struct span	*span;
	unsigned class;
	void *block;

	VDI_CHECK_SLOW(pthread_equal(slab->owner, pthread_self()));
	if (size == 0 || size > VDI_SLAB_BLOCK_MAX)
		return malloc(size);
	class = class_of(size);
	span = LIST_FIRST(&slab->partial[class]);
	if (span == NULL && (span = span_new(slab, class)) == NULL)
		return malloc(size);
	block = span->given_back;
	if (block) {
		memcpy(&span->given_back, block, sizeof block);
	} else {
		block = (char *) span + span->untouched;
		span->untouched += class_size(class);
	}
	span->used++;
	if (span->given_back == NULL && span->untouched + class_size(class) > SPAN_SIZE) {
		LIST_REMOVE(span, node);
		span->is_listed = false;
	}
	return block;
}

static void release(void *arg, void *memory)
{
	struct vdi_slab *slab = arg;
	struct span	*span;

	if (!is_ours(slab, memory)) {
		free(memory);
		return;
	}
	VDI_CHECK_SLOW(pthread_equal(slab->owner, pthread_self()));
	span = span_of(memory);
	VDI_CHECK_SLOW(span->used > 0);
	memcpy(memory, &span->given_back, sizeof span->given_back);
	span->given_back = memory;
	span->used--;
	if (!span->is_listed || span->used == 0)
		span_moves(slab, span);
}

static void *reallocate(void *arg, void *memory, size_t old_size, size_t new_size)
{
	struct vdi_slab *slab = arg;
	size_t		 room;
	void		*moved;

	(void) old_size;
	if (!is_ours(slab, memory))
		/* a block from malloc stays with malloc, even if it becomes small */
		return realloc(memory, new_size);
	room = class_size(span_of(memory)->class);
	if (new_size <= room)
		return memory;
	moved = allocate(slab, new_size);
	if (moved) {
		memcpy(moved, memory, room);
		release(slab, memory);
	}
	return moved;
}

struct vd_allocator vdi_slab_allocator(struct vdi_slab *slab)
{
	return (struct vd_allocator) { allocate, reallocate, release, slab };
}

size_t vdi_slab_used_bytes(const struct vdi_slab *slab)
{
	return slab->used * SPAN_SIZE;
}

size_t vdi_slab_peak_bytes(const struct vdi_slab *slab)
{
	return (size_t) (slab->next - slab->start);
}

/* ---- Creation and end ---- */

vd_status vdi_slab_new(size_t range_bytes, struct vdi_slab **ret_slab)
{
	/* one step more, for alignment */
	size_t		 size = range_bytes / STEP_SIZE * STEP_SIZE + STEP_SIZE;
	struct vdi_slab *slab = calloc(1, sizeof *slab); /* not vdi_alloc, which may be this slab */

	if (slab == NULL)
		return VD_NOMEM;
	slab->reserved = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (slab->reserved == MAP_FAILED) {
		free(slab);
		return VD_NOMEM;
	}
	slab->reserved_size = size;
	slab->start = slab->reserved + (STEP_SIZE - (uintptr_t) slab->reserved % STEP_SIZE) % STEP_SIZE;
	slab->end = slab->start + (size - STEP_SIZE);
	slab->ready = slab->next = slab->start;
	slab->owner = pthread_self();
	LIST_INIT(&slab->empty);
	for (size_t i = 0; i < CLASSES; i++)
		LIST_INIT(&slab->partial[i]);
	*ret_slab = slab;
	return VD_OK;
}

struct vdi_slab *vdi_slab_free(struct vdi_slab *slab)
{
	if (slab) {
		(void) munmap(slab->reserved, slab->reserved_size);
		free(slab);
	}
	return NULL;
}
