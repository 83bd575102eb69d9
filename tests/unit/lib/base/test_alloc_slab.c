/* The slab: blocks of every size, beside a naive model of what was taken. */
#include "alloc_slab.h"

#include "rand.h"
#include "vdtest.h"

#define BLOCKS 4000
#define STEP ((size_t) 2 << 20)

struct block {
	unsigned char *memory;
	size_t	       size;
	unsigned char  fill;
};

static size_t random_size(struct vdi_rand *rand)
{
	uint64_t kind = vdi_rand_next(rand) % 8;

	if (kind == 0)
		return vdi_rand_next(rand) % 9000; /* malloc's too */
	return kind < 4 ? 1 + vdi_rand_next(rand) % 128 : 1 + vdi_rand_next(rand) % VDI_SLAB_BLOCK_MAX;
}

static bool is_filled(const struct block *block, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (block->memory[i] != block->fill)
			return false;
	return true;
}

static void fill(struct block *block, unsigned char byte)
{
	block->fill = byte;
	if (block->size)
		memset(block->memory, byte, block->size);
}

/* No two blocks share a byte, all are aligned for any type, and what was written stays through a
 * reallocation. */
static void blocks_are_their_owners_alone(void **state)
{
	struct vdi_slab	   *slab;
	struct vd_allocator ops;
	struct vdi_rand	    rand;
	struct block	   *blocks = vdi_calloc(BLOCKS, sizeof *blocks);

	(void) state;
	assert_non_null(blocks);
	vdi_rand_init(&rand, 7);
	assert_status(vdi_slab_new((size_t) 1 << 30, &slab), VD_OK);
	ops = vdi_slab_allocator(slab);
	for (size_t round = 0; round < 40000; round++) {
		struct block *block = &blocks[vdi_rand_next(&rand) % BLOCKS];

		if (block->memory == NULL) {
			block->size = random_size(&rand);
			block->memory = ops.allocate(ops.arg, block->size);
			assert_int_equal((uintptr_t) block->memory % _Alignof(max_align_t), 0);
			if (block->memory)
				fill(block, (unsigned char) vdi_rand_next(&rand));
			continue;
		}
		assert_true(is_filled(block, block->size));
		if (vdi_rand_next(&rand) % 4 == 0) {
			size_t size = 1 + random_size(&rand);

			block->memory = ops.reallocate(ops.arg, block->memory, block->size, size);
			assert_non_null(block->memory);
			assert_true(is_filled(block, VDI_MIN(size, block->size)));
			block->size = size;
			fill(block, (unsigned char) vdi_rand_next(&rand));
		} else {
			ops.release(ops.arg, block->memory);
			block->memory = NULL;
		}
	}
	for (size_t i = 0; i < BLOCKS; i++)
		if (blocks[i].memory) {
			assert_true(is_filled(&blocks[i], blocks[i].size));
			ops.release(ops.arg, blocks[i].memory);
		}
	assert_int_equal(vdi_slab_used_bytes(slab), 0);
	assert_null(vdi_slab_free(slab));
	vdi_free(blocks);
}

/* What one size needed serves another one: a queue of blocks whose size changes again and again takes no more
 * than its largest. */
static void empty_spans_serve_any_size(void **state)
{
	struct vdi_slab	   *slab;
	struct vd_allocator ops;
	void		   *queue[1000] = { NULL };
	size_t		    at_first = 0, bytes = 0, size = 0;

	(void) state;
	assert_status(vdi_slab_new((size_t) 1 << 30, &slab), VD_OK);
	ops = vdi_slab_allocator(slab);
	for (size_t i = 0; i < 50 * VDI_ARRAY_SIZE(queue); i++) {
		void **place = &queue[i % VDI_ARRAY_SIZE(queue)];

		if (i % VDI_ARRAY_SIZE(queue) == 0)
			size = i / VDI_ARRAY_SIZE(queue) % 2 ? 4096 - i / 100 % 3000 : 4096;
		if (*place)
			ops.release(ops.arg, *place);
		*place = ops.allocate(ops.arg, size);
		assert_non_null(*place);
		memset(*place, 1, size);
		if (i + 1 == 2 * VDI_ARRAY_SIZE(queue))
			at_first = vdi_slab_peak_bytes(slab);
		bytes = VDI_MAX(bytes, vdi_slab_used_bytes(slab));
	}
	assert_true(bytes <= vdi_slab_peak_bytes(slab));
	assert_true(vdi_slab_peak_bytes(slab) <= at_first + STEP);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(queue); i++)
		ops.release(ops.arg, queue[i]);
	assert_int_equal(vdi_slab_used_bytes(slab), 0);
	(void) vdi_slab_free(slab);
}

/* When the addresses are used up, malloc serves; what came from there goes back there. */
static void malloc_serves_when_the_range_is_used_up(void **state)
{
	struct vdi_slab	   *slab;
	struct vd_allocator ops;
	void		  **blocks = vdi_calloc(BLOCKS, sizeof *blocks);

	(void) state;
	assert_non_null(blocks);
	assert_status(vdi_slab_new(STEP, &slab), VD_OK);
	ops = vdi_slab_allocator(slab);
	for (size_t i = 0; i < BLOCKS; i++) {
		blocks[i] = ops.allocate(ops.arg, 1000);
		assert_non_null(blocks[i]);
		memset(blocks[i], 1, 1000);
	}
	assert_int_equal(vdi_slab_peak_bytes(slab), STEP);
	blocks[BLOCKS - 1] = ops.reallocate(ops.arg, blocks[BLOCKS - 1], 0, 2000);
	assert_non_null(blocks[BLOCKS - 1]);
	for (size_t i = 0; i < BLOCKS; i++)
		ops.release(ops.arg, blocks[i]);
	assert_int_equal(vdi_slab_used_bytes(slab), 0);
	(void) vdi_slab_free(slab);
	vdi_free(blocks);
}

static void a_range_that_nobody_has_is_refused(void **state)
{
	struct vdi_slab *slab = NULL;

	(void) state;
	assert_status(vdi_slab_new(SIZE_MAX / 4, &slab), VD_NOMEM);
	assert_null(slab);
	assert_null(vdi_slab_free(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_their_owners_alone),
		cmocka_unit_test(empty_spans_serve_any_size),
		cmocka_unit_test(malloc_serves_when_the_range_is_used_up),
		cmocka_unit_test(a_range_that_nobody_has_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
