/* How: a thin layer over the process-wide allocator. The counters are relaxed atomics: they are read when the program is quiet. */
#include <stdatomic.h>
#include <stdlib.h>

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

static struct vd_allocator allocator = { os_allocate, os_reallocate, os_release, NULL };
static _Atomic int64_t	   live_blocks;
static _Atomic uint64_t	   allocations;
static _Atomic uint64_t	   fail_from; /* 0: off */
static _Atomic uint64_t	   fail_to;
static atomic_bool	   fail_delivered;

vd_status vd_allocator_install(const struct vd_allocator *replacement)
{
	if (replacement == NULL || replacement->allocate == NULL || replacement->reallocate == NULL || replacement->release == NULL)
		return VD_INVALID_ARGUMENT;
	if (atomic_load(&allocations) != 0)
		return VD_INVALID_ARGUMENT;
	allocator = *replacement;
	return VD_OK;
}

static bool must_fail(void)
{
	uint64_t number = atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed) + 1;
	uint64_t from = atomic_load_explicit(&fail_from, memory_order_relaxed);

	if (__builtin_expect(from == 0 || number < from || number >= atomic_load_explicit(&fail_to, memory_order_relaxed), 1))
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
		atomic_fetch_add_explicit(&live_blocks, 1, memory_order_relaxed);
	return memory;
}

void vdi_alloc_ahead(void)
{
	/* Below the sizes that are mapped one by one, and that are given back at once. */
	void *volatile block = allocator.allocate(allocator.arg, VDI_ALLOC_AHEAD);

	if (block)
		allocator.release(allocator.arg, block);
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
	atomic_fetch_sub_explicit(&live_blocks, 1, memory_order_relaxed);
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

int64_t vdi_alloc_live(void)
{
	return atomic_load(&live_blocks);
}

uint64_t vdi_alloc_fail_nth(uint64_t nth, uint64_t count)
{
	static _Atomic uint64_t mark;
	uint64_t		now = atomic_load(&allocations);
	uint64_t		made = now - atomic_exchange(&mark, now);

	atomic_store(&fail_from, 0);
	atomic_store(&fail_delivered, false);
	if (nth) {
		atomic_store(&fail_to, now + nth + (count ? count : 1));
		atomic_store(&fail_from, now + nth);
	}
	return made;
}

bool vdi_alloc_failed(void)
{
	return atomic_load(&fail_delivered);
}
