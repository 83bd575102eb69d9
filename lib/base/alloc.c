/* A thin layer over the process-wide allocator. Each thread has counters in a cache line of its own: a shared
 * line, written with each allocation, would move between the processors. The sums are exact when no thread
 * allocates. */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base.h"

static void *os_allocate(void *arg, size_t size)
{
	(void) arg;
	return malloc(size);
}

static void *os_reallocate(void *arg, void *memory, size_t old_size, size_t new_size)
{
	(void) arg;
	(void) old_size;
	return realloc(memory, new_size);
}

static void os_release(void *arg, void *memory)
{
	(void) arg;
	free(memory);
}

/* Counters of one thread; the last one is shared by all further threads. */
struct counts {
	_Alignas(64) _Atomic uint64_t allocations;
	_Atomic int64_t live_blocks; /* negative if the thread frees other threads' blocks */
};

#define COUNTS_MAX 128

static struct vd_allocator     allocator = { os_allocate, os_reallocate, os_release, NULL };
static struct counts	       counts[COUNTS_MAX];
static atomic_uint	       counts_taken;
static __thread struct counts *own_counts;

/* Read with each allocation, written by tests only. */
static _Alignas(64) _Atomic uint64_t fail_from; /* 0: off */
static _Atomic uint64_t fail_to;
static atomic_bool	fail_delivered;
static _Alignas(64) _Atomic uint64_t allocations_armed; /* allocations since vdi_alloc_fail_nth was called */

static __attribute__((noinline)) struct counts *take_counts(void)
{
	unsigned number = atomic_fetch_add(&counts_taken, 1);

	if (number >= COUNTS_MAX - 1) {
		atomic_store(&counts_taken, COUNTS_MAX); /* the counter does not wrap */
		number = COUNTS_MAX - 1;
	}
	own_counts = &counts[number];
	return own_counts;
}

static inline struct counts *get_counts(void)
{
	return __builtin_expect(own_counts != NULL, 1) ? own_counts : take_counts();
}

static inline bool is_shared(const struct counts *own)
{
	return __builtin_expect(own == &counts[COUNTS_MAX - 1], 0);
}

static inline void count_allocation(struct counts *own)
{
	if (is_shared(own))
		atomic_fetch_add_explicit(&own->allocations, 1, memory_order_relaxed);
	else
		atomic_store_explicit(&own->allocations,
				      atomic_load_explicit(&own->allocations, memory_order_relaxed) + 1,
				      memory_order_relaxed);
}

static inline void count_live(int64_t difference)
{
	struct counts *own = get_counts();

	if (is_shared(own))
		atomic_fetch_add_explicit(&own->live_blocks, difference, memory_order_relaxed);
	else
		atomic_store_explicit(&own->live_blocks,
				      atomic_load_explicit(&own->live_blocks, memory_order_relaxed) +
					      difference,
				      memory_order_relaxed);
}

static uint64_t sum_allocations(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < COUNTS_MAX; i++)
		sum += atomic_load_explicit(&counts[i].allocations, memory_order_relaxed);
	return sum;
}

vd_status vd_allocator_install(const struct vd_allocator *replacement)
{
	if (replacement == NULL || replacement->allocate == NULL || replacement->reallocate == NULL ||
	    replacement->release == NULL)
		return VD_INVALID_ARGUMENT;
	if (sum_allocations() != 0)
		return VD_INVALID_ARGUMENT;
	allocator = *replacement;
	return VD_OK;
}

static bool must_fail(void)
{
	uint64_t from = atomic_load_explicit(&fail_from, memory_order_relaxed);
	uint64_t number;

	count_allocation(get_counts());
	if (__builtin_expect(from == 0, 1))
		return false;
	number = atomic_fetch_add_explicit(&allocations_armed, 1, memory_order_relaxed) + 1;
	if (number < from || number >= atomic_load_explicit(&fail_to, memory_order_relaxed))
		return false;
	atomic_store(&fail_delivered, true);
	return true;
}

void *vdi_alloc(size_t size)
{
	void *memory;

	if (must_fail())
		return NULL;
	memory = allocator.allocate(allocator.arg, size ? size : 1);
	if (memory)
		count_live(1);
	return memory;
}

void vdi_alloc_ahead(void)
{
	/* The size is below the threshold from which glibc maps each block separately and unmaps it at
	 * once. */
	void *volatile block = allocator.allocate(allocator.arg, VDI_ALLOC_AHEAD);

	if (block)
		allocator.release(allocator.arg, block);
}

void vdi_pages_forget(void *map, size_t size)
{
	/* if it fails, the pages stay in memory, which is harmless */
	(void) madvise(map, size, MADV_DONTNEED);
}

void *vdi_calloc(size_t count, size_t size)
{
	size_t total;
	void  *memory;

	if (__builtin_mul_overflow(count, size, &total))
		return NULL;
	memory = vdi_alloc(total);
	if (memory)
		memset(memory, 0, total);
	return memory;
}

void *vdi_realloc(void *memory, size_t size)
{
	if (memory == NULL)
		return vdi_alloc(size);
	if (must_fail())
		return NULL;
	return allocator.reallocate(allocator.arg, memory, 0, size ? size : 1);
}

void vdi_free(void *memory)
{
	if (memory == NULL)
		return;
	count_live(-1);
	allocator.release(allocator.arg, memory);
}

char *vdi_strndup(const void *text, size_t size)
{
	char *copy = vdi_alloc(size + 1);

	if (copy) {
		if (size)
			memcpy(copy, text, size);
		copy[size] = 0;
	}
	return copy;
}

char *vdi_strdup(const char *text)
{
	return vdi_strndup(text, strlen(text));
}

bool vdi_grow(void **array, size_t *capacity, size_t needed, size_t element_size)
{
	size_t wanted = *capacity ? *capacity : 8;
	size_t total;
	void  *grown;

	if (needed <= *capacity)
		return true;
	while (wanted < needed)
		if (__builtin_mul_overflow(wanted, (size_t) 2, &wanted))
			return false;
	if (__builtin_mul_overflow(wanted, element_size, &total))
		return false;
	grown = vdi_realloc(*array, total);
	if (grown == NULL)
		return false;
	*array = grown;
	*capacity = wanted;
	return true;
}

bool vdi_shrink(void **array, size_t *capacity, size_t count, size_t element_size)
{
	void *shrunk;

	if (count == *capacity || count == 0)
		return true;
	shrunk = vdi_realloc(*array, count * element_size);
	if (shrunk == NULL)
		return false;
	*array = shrunk;
	*capacity = count;
	return true;
}

void vdi_alloc_trim(void)
{
#ifdef __GLIBC__
	/* In a program with another malloc (jemalloc, a sanitizer) glibc's heap is unused, and malloc_trim
	 * initialises it. Two threads that do so at once crash. */
	static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

	if (allocator.allocate != os_allocate)
		return;
	pthread_mutex_lock(&one_at_a_time);
	(void) malloc_trim(0);
	pthread_mutex_unlock(&one_at_a_time);
#endif
}

int64_t vdi_alloc_live(void)
{
	int64_t sum = 0;

	for (size_t i = 0; i < COUNTS_MAX; i++)
		sum += atomic_load_explicit(&counts[i].live_blocks, memory_order_relaxed);
	return sum;
}

uint64_t vdi_alloc_fail_nth(uint64_t nth, uint64_t count)
{
	static _Atomic uint64_t mark;
	uint64_t		now = sum_allocations();
	uint64_t		made = now - atomic_exchange(&mark, now);

	atomic_store(&fail_from, 0);
	atomic_store(&fail_delivered, false);
	atomic_store(&allocations_armed, 0);
	if (nth) {
		atomic_store(&fail_to, nth + (count ? count : 1));
		atomic_store(&fail_from, nth);
	}
	return made;
}

bool vdi_alloc_failed(void)
{
	return atomic_load(&fail_delivered);
}

bool vdi_alloc_is_armed(void)
{
	return atomic_load_explicit(&fail_from, memory_order_relaxed) != 0;
}
