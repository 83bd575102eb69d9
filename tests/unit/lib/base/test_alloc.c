/* Unit tests of lib/base/alloc.c: growing and shrinking arrays, counts, and failures on demand. */
#include <pthread.h>
#include <sys/wait.h>

#include "vdtest.h"

static void arrays_grow_by_doubling(void **state)
{
	static const struct {
		size_t capacity, needed, expected;
	} rows[] = { { 0, 0, 0 },  { 0, 1, 8 },	  { 0, 8, 8 },	 { 0, 9, 16 }, { 8, 8, 8 },
		     { 8, 9, 16 }, { 8, 16, 16 }, { 8, 17, 32 }, { 3, 4, 6 },  { 16, 5, 16 } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		size_t	capacity = rows[i].capacity;
		int    *array = capacity ? vdi_alloc(capacity * sizeof *array) : NULL;
		int64_t live = vdi_alloc_live();

		if (capacity)
			array[capacity - 1] = 7;
		assert_true(vdi_grow((void **) &array, &capacity, rows[i].needed, sizeof *array));
		assert_int_equal(capacity, rows[i].expected);
		if (rows[i].capacity)
			assert_int_equal(array[rows[i].capacity - 1], 7);
		assert_int_equal(vdi_alloc_live() - live, rows[i].capacity == 0 && rows[i].expected > 0);
		if (capacity)
			array[capacity - 1] = 8;
		vdi_free(array);
	}
}

static void an_array_that_cannot_grow_is_as_before(void **state)
{
	size_t	 capacity = 0;
	int64_t *array = NULL;

	assert_true(vdi_grow((void **) &array, &capacity, 8, sizeof *array));
	array[7] = 7;
	assert_false(vdi_grow((void **) &array, &capacity, SIZE_MAX, sizeof *array));
	assert_false(vdi_grow((void **) &array, &capacity, SIZE_MAX / 4, sizeof *array));
	(void) vdi_alloc_fail_nth(1, 1);
	assert_false(vdi_grow((void **) &array, &capacity, 9, sizeof *array));
	assert_true(vdi_alloc_failed());
	(void) vdi_alloc_fail_nth(0, 0);
	assert_int_equal(capacity, 8);
	assert_int_equal(array[7], 7);
	(void) vdi_alloc_fail_nth(1, 1);
	assert_false(vdi_shrink((void **) &array, &capacity, 4, sizeof *array));
	(void) vdi_alloc_fail_nth(0, 0);
	assert_int_equal(capacity, 8);
	assert_int_equal(array[7], 7);
	vdi_free(array);
}

static void arrays_shrink_to_what_they_hold(void **state)
{
	static const struct {
		size_t capacity, count, expected;
		bool   allocates;
	} rows[] = { { 8, 3, 3, true }, { 8, 8, 8, false }, { 8, 0, 8, false } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		size_t capacity = rows[i].capacity;
		int   *array = vdi_alloc(capacity * sizeof *array);

		array[0] = 7;
		(void) vdi_alloc_fail_nth(0, 0);
		assert_true(vdi_shrink((void **) &array, &capacity, rows[i].count, sizeof *array));
		assert_int_equal(vdi_alloc_fail_nth(0, 0) > 0, rows[i].allocates);
		assert_int_equal(capacity, rows[i].expected);
		assert_int_equal(array[0], 7);
		vdi_free(array);
	}
}

static void blocks_are_counted(void **state)
{
	int64_t live = vdi_alloc_live();
	void   *blocks[10];

	(void) vdi_alloc_fail_nth(0, 0);
	for (int i = 0; i < 10; i++) {
		blocks[i] = i % 2 ? vdi_alloc(10) : vdi_calloc(2, 5);
		assert_int_equal(vdi_alloc_live(), live + i + 1);
	}
	assert_int_equal(vdi_alloc_fail_nth(0, 0), 10);
	assert_int_equal(vdi_alloc_fail_nth(0, 0), 0);
	blocks[0] = vdi_realloc(blocks[0], 1000);
	assert_int_equal(vdi_alloc_live(), live + 10);
	for (int i = 0; i < 10; i++) {
		vdi_free(blocks[i]);
		assert_int_equal(vdi_alloc_live(), live + 9 - i);
	}
	vdi_free(NULL);
	assert_int_equal(vdi_alloc_live(), live);
}

static void calloc_clears_and_copies_end(void **state)
{
	char *zeros = vdi_calloc(3, 7), *copy;

	for (int i = 0; i < 21; i++)
		assert_int_equal(zeros[i], 0);
	vdi_free(zeros);
	assert_null(vdi_calloc(SIZE_MAX / 2, 3));
	copy = vdi_strndup("abcdef", 3);
	assert_string_equal(copy, "abc");
	vdi_free(copy);
	copy = vdi_strdup("abc");
	assert_string_equal(copy, "abc");
	vdi_free(copy);
	copy = vdi_strndup(NULL, 0);
	assert_string_equal(copy, "");
	vdi_free(copy);
}

/* The failures begin at the nth allocation, and there are count of them. */
static void failures_come_where_they_were_asked_for(void **state)
{
	static const struct {
		uint64_t    nth, count;
		const char *outcome;
	} rows[] = { { 1, 1, "0111111" }, { 3, 1, "1101111" }, { 2, 3, "1000111" },
		     { 2, 0, "1011111" }, { 0, 5, "1111111" }, { 8, 1, "1111111" } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		char outcome[8] = "";

		(void) vdi_alloc_fail_nth(rows[i].nth, rows[i].count);
		assert_false(vdi_alloc_failed());
		assert_int_equal(vdi_alloc_is_armed(), rows[i].nth > 0);
		for (int k = 0; k < 7; k++) {
			void *block = vdi_alloc(1);

			strcat(outcome, block ? "1" : "0");
			vdi_free(block);
		}
		assert_string_equal(outcome, rows[i].outcome);
		assert_int_equal(vdi_alloc_failed(), strchr(outcome, '0') != NULL);
		(void) vdi_alloc_fail_nth(0, 0);
		assert_false(vdi_alloc_failed());
		assert_false(vdi_alloc_is_armed());
	}
}

enum { TRIMMERS = 4, TRIMMING_PROCESSES = 40 };

static void *trim(void *arg)
{
	(void) pthread_barrier_wait(arg);
	vdi_alloc_trim();
	return NULL;
}

static void trim_at_once(void)
{
	pthread_barrier_t barrier;
	pthread_t	  threads[TRIMMERS];

	pthread_barrier_init(&barrier, NULL, TRIMMERS);
	for (size_t i = 0; i < TRIMMERS; i++)
		if (pthread_create(&threads[i], NULL, trim, &barrier) != 0)
			_exit(2);
	for (size_t i = 0; i < TRIMMERS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&barrier);
}

/* In a program with another malloc, such as a sanitizer's, the first malloc_trim initialises glibc's. Each
 * attempt needs a process of its own. */
static void threads_may_trim_at_once(void **state)
{
	(void) state;
	for (int i = 0; i < TRIMMING_PROCESSES; i++) {
		int   status;
		pid_t child = fork();

		if (child == 0) {
			trim_at_once();
			_exit(0);
		}
		assert_true(child > 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_may_trim_at_once),
		cmocka_unit_test(arrays_grow_by_doubling),
		cmocka_unit_test(an_array_that_cannot_grow_is_as_before),
		cmocka_unit_test(arrays_shrink_to_what_they_hold),
		cmocka_unit_test(blocks_are_counted),
		cmocka_unit_test(calloc_clears_and_copies_end),
		cmocka_unit_test(failures_come_where_they_were_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
