/* Unit tests of lib/index/key_sort.c: against a stable sort that compares whole keys. */
#include "vdtest.h"

#include <stdlib.h>

#include "base.h"
#include "key_sort.h"
#include "rand.h"

#define COUNT_MAX 6000

struct value {
	size_t		order;
	struct vd_bytes key;
	char		bytes[40];
};

static struct value		values[COUNT_MAX];
static struct vdi_key_sort_item items[COUNT_MAX], scratch[COUNT_MAX];
static const struct value      *model[COUNT_MAX];

static struct vd_bytes key_of(const void *value)
{
	return ((const struct value *) value)->key;
}

static int compare_values(const void *a, const void *b)
{
	const struct value *left = *(const struct value *const *) a,
			   *right = *(const struct value *const *) b;
	int order = vd_bytes_compare(left->key, right->key);

	return order ? order : (left->order > right->order) - (left->order < right->order);
}

static void check(size_t count)
{
	for (size_t i = 0; i < count; i++) {
		values[i].order = i;
		values[i].key.data = values[i].bytes;
		items[i] = (struct vdi_key_sort_item) { 4711, &values[i], i };
		model[i] = &values[i];
	}
	if (count)
		qsort(model, count, sizeof model[0], compare_values);
	vdi_key_sort(items, scratch, count, key_of);
	for (size_t i = 0; i < count; i++) {
		assert_ptr_equal(items[i].value, model[i]);
		assert_int_equal(items[i].tag, model[i]->order);
	}
}

static void names_with_long_common_parts(void **state)
{
	static const size_t counts[] = { 0, 1, 2, 11, 12, 13, 100, 1023, 1024, 1025, COUNT_MAX };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(counts); i++) {
		for (size_t j = 0; j < counts[i]; j++) {
			unsigned number = (unsigned) (j * 7919 % counts[i]);

			values[j].key.size = (size_t) snprintf(values[j].bytes, sizeof values[j].bytes,
							       "/registry/pods/ns-%03u/web-abcdef-%05u",
							       number % 60, number);
		}
		check(counts[i]);
	}
}

/* One key again and again, as a store has it in which few keys change often. */
static void equal_keys_stay_in_their_order(void **state)
{
	(void) state;
	for (unsigned keys = 1; keys < 5000; keys = keys * 7 + 1) {
		for (size_t i = 0; i < COUNT_MAX; i++)
			values[i].key.size = (size_t) snprintf(values[i].bytes, sizeof values[i].bytes,
							       "/key/%u", (unsigned) (i * 31 % keys));
		check(COUNT_MAX);
	}
}

/* Short ones of few different bytes, zeros among them: many are beginnings of others. */
static void bytes_of_any_kind(void **state)
{
	static const unsigned char alphabet[] = { 0, 0, 1, 'a', 0xff };
	struct vdi_rand		   rand;

	(void) state;
	vdi_rand_init(&rand, 3);
	for (unsigned round = 0; round < 12; round++) {
		size_t count = 1 + vdi_rand_below(&rand, COUNT_MAX), common = vdi_rand_below(&rand, 20);

		for (size_t i = 0; i < count; i++) {
			memset(values[i].bytes, 0, common);
			values[i].key.size = common + vdi_rand_below(&rand, 20);
			for (size_t j = common; j < values[i].key.size; j++)
				values[i].bytes[j] = (char) alphabet[vdi_rand_below(&rand, sizeof alphabet)];
		}
		check(count);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_with_long_common_parts),
		cmocka_unit_test(equal_keys_stay_in_their_order),
		cmocka_unit_test(bytes_of_any_kind),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
