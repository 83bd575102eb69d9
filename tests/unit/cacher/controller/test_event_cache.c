/* The cache of events against a naive model: which keys it has, and what their records hold. */
#include "event_cache.h"
#include "rand.h"
#include "vdtest.h"

#define KEYS 12
#define COUNT_MAX 5

/* Keys in the order of use, the newest first. */
struct model {
	uint64_t keys[COUNT_MAX];
	size_t	 count;
};

/* Returns true if the key was there. */
static bool use_key(struct model *model, uint64_t key)
{
	size_t at = 0;
	bool   is_known;

	while (at < model->count && model->keys[at] != key)
		at++;
	is_known = at < model->count;
	if (!is_known && model->count < COUNT_MAX)
		at = model->count++;
	else if (!is_known)
		at = COUNT_MAX - 1;
	memmove(model->keys + 1, model->keys, at * sizeof model->keys[0]);
	model->keys[0] = key;
	return is_known;
}

static void the_record_used_longest_ago_is_evicted(void **state)
{
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct vdi_event_cache cache;
		struct model	       model = { 0 };
		struct vdi_rand	       rand;

		vdi_rand_init(&rand, seed);
		vdi_event_cache_init(&cache, sizeof(uint64_t), COUNT_MAX);
		for (int i = 0; i < 400; i++) {
			uint64_t	     key = 1 + vdi_rand_below(&rand, KEYS);
			struct vdi_event_key both = { key % 3, key };
			uint64_t	    *record = vdi_event_cache_at(&cache, both);

			assert_non_null(record);
			assert_int_equal(*record, use_key(&model, key) ? key : 0);
			*record = key;
		}
		vdi_event_cache_fini(&cache);
	}
}

static void torture_allocations(void **state)
{
	for (uint64_t nth = 1; nth < 8; nth++) {
		struct vdi_event_cache cache;
		size_t		       kept = 0;

		vdi_event_cache_init(&cache, sizeof(uint64_t), COUNT_MAX);
		vdi_alloc_fail_nth(nth, 1);
		for (uint64_t key = 1; key <= COUNT_MAX; key++) {
			uint64_t *record = vdi_event_cache_at(&cache, (struct vdi_event_key) { key, key });

			if (record)
				*record = key;
		}
		vdi_alloc_fail_nth(0, 0);
		for (uint64_t key = 1; key <= COUNT_MAX; key++) {
			uint64_t *record = vdi_event_cache_at(&cache, (struct vdi_event_key) { key, key });

			assert_non_null(record);
			assert_true(*record == key || *record == 0);
			kept += *record == key;
		}
		assert_true(kept >= COUNT_MAX - 1);
		vdi_event_cache_fini(&cache);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_record_used_longest_ago_is_evicted),
		cmocka_unit_test(torture_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
