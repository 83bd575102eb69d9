/* Unit tests of lib/index/hash.c: against a plain array, with good and with very bad hashes, and under
 * failing allocations. */
#include "vdtest.h"

#include "hash.h"

enum { NAMES = 3000 };

struct named {
	char text[16];
	bool present;
};

static bool named_equal(const void *entry, const void *key)
{
	return vd_bytes_equal(vd_bytes_of(((const struct named *) entry)->text),
			      *(const struct vd_bytes *) key);
}

static struct named names[NAMES];

static uint64_t hash_well(struct vd_bytes key)
{
	return vdi_hash_bytes(key, 7);
}
/* Long runs that wrap around the end of the table. */
static uint64_t hash_badly(struct vd_bytes key)
{
	return UINT32_MAX - vdi_hash_bytes(key, 7) % 3;
}

static uint32_t random_next(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t) (*seed >> 33);
}

static void make_names(void)
{
	for (int i = 0; i < NAMES; i++) {
		snprintf(names[i].text, sizeof names[i].text, "name-%d", i);
		names[i].present = false;
	}
}

static void assert_same(const struct vdi_hash *hash, uint64_t (*hash_key)(struct vd_bytes), size_t count)
{
	size_t position = 0, seen = 0, present = 0;

	for (size_t i = 0; i < count; i++) {
		struct vd_bytes key = vd_bytes_of(names[i].text);

		assert_ptr_equal(vdi_hash_get(hash, hash_key(key), &key),
				 names[i].present ? &names[i] : NULL);
		present += names[i].present;
	}
	assert_int_equal(hash->count, present);
	for (struct named *entry; (entry = vdi_hash_next(hash, &position)); seen++)
		assert_true(entry->present);
	assert_int_equal(seen, present);
}

static void walk(uint64_t (*hash_key)(struct vd_bytes), size_t count, unsigned steps)
{
	struct vdi_hash hash;
	uint64_t	seed = 3;
	int64_t		live = vdi_alloc_live();

	make_names();
	vdi_hash_init(&hash, named_equal, 0);
	for (unsigned i = 0; i < steps; i++) {
		struct named   *named = &names[random_next(&seed) % count];
		struct vd_bytes key = vd_bytes_of(named->text);
		void	       *replaced = &hash;

		if (random_next(&seed) % 10 < (i < steps / 2 ? 7u : 2u)) {
			assert_status(vdi_hash_put(&hash, hash_key(key), &key, named, &replaced), VD_OK);
			assert_ptr_equal(replaced, named->present ? named : NULL);
			named->present = true;
		} else {
			assert_ptr_equal(vdi_hash_remove(&hash, hash_key(key), &key),
					 named->present ? named : NULL);
			named->present = false;
		}
		assert_true(hash.count <= hash.capacity / 4 * 3);
		if (i % 997 == 0)
			assert_same(&hash, hash_key, count);
	}
	assert_same(&hash, hash_key, count);
	for (size_t i = 0; i < count; i++) {
		struct vd_bytes key = vd_bytes_of(names[i].text);

		assert_ptr_equal(vdi_hash_remove(&hash, hash_key(key), &key),
				 names[i].present ? &names[i] : NULL);
		names[i].present = false;
	}
	assert_same(&hash, hash_key, count);
	assert_int_equal(vdi_alloc_live(), live); /* empty: no memory, even before fini */
	vdi_hash_fini(&hash);
}

static void random_walks_agree_with_an_array(void **state)
{
	(void) state;
	walk(hash_well, NAMES, 40000);
	walk(hash_badly, 60, 5000);
	walk(hash_well, 5, 2000);
}

static void use_for_ever_does_not_grow(void **state)
{
	struct vdi_hash hash;
	size_t		capacity;

	(void) state;
	make_names();
	vdi_hash_init(&hash, named_equal, 0);
	for (unsigned i = 0; i < 100; i++) {
		struct vd_bytes key = vd_bytes_of(names[i].text);

		assert_status(vdi_hash_put(&hash, hash_well(key), &key, &names[i], NULL), VD_OK);
	}
	capacity = hash.capacity;
	for (unsigned i = 100; i < 100000; i++) {
		struct vd_bytes old = vd_bytes_of(names[(i - 100) % NAMES].text),
				key = vd_bytes_of(names[i % NAMES].text);

		assert_non_null(vdi_hash_remove(&hash, hash_well(old), &old));
		assert_status(vdi_hash_put(&hash, hash_well(key), &key, &names[i % NAMES], NULL), VD_OK);
	}
	assert_int_equal(hash.capacity, capacity);
	assert_int_equal(hash.count, 100);
	vdi_hash_fini(&hash);
}

static void full_is_full(void **state)
{
	struct vdi_hash hash;
	struct vd_bytes key;

	(void) state;
	make_names();
	vdi_hash_init(&hash, named_equal, 3);
	assert_status(vdi_hash_reserve(&hash, 4), VD_FULL);
	for (int i = 0; i < 4; i++) {
		key = vd_bytes_of(names[i].text);
		assert_status(vdi_hash_put(&hash, hash_well(key), &key, &names[i], NULL),
			      i < 3 ? VD_OK : VD_FULL);
		names[i].present = i < 3;
	}
	key = vd_bytes_of(names[0].text);
	assert_status(vdi_hash_put(&hash, hash_well(key), &key, &names[0], NULL), VD_OK); /* in place */
	assert_same(&hash, hash_well, 10);
	vdi_hash_fini(&hash);
}

static void torture_put_reserve_and_remove(void **state)
{
	struct vdi_hash hash;
	unsigned	failures = 0;
	int64_t		live = vdi_alloc_live();

	(void) state;
	make_names();
	vdi_hash_init(&hash, named_equal, 0);
	for (int i = 0; i < 500; i++) {
		struct vd_bytes key = vd_bytes_of(names[i].text);
		vd_status	status;

		vdi_alloc_fail_nth(1, 1);
		status = vdi_hash_put(&hash, hash_well(key), &key, &names[i], NULL);
		if (vdi_alloc_failed()) {
			vdi_alloc_fail_nth(0, 0);
			assert_status(status, VD_NOMEM);
			failures++;
			assert_same(&hash, hash_well, 500);
			status = vdi_hash_put(&hash, hash_well(key), &key, &names[i], NULL);
		}
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, VD_OK);
		names[i].present = true;
	}
	assert_int_equal(failures, 8); /* 8, 16, .. 1024 slots */
	vdi_alloc_fail_nth(1, 1);
	assert_status(vdi_hash_reserve(&hash, 2000), VD_NOMEM);
	vdi_alloc_fail_nth(0, 0);
	assert_same(&hash, hash_well, 500);
	assert_status(vdi_hash_reserve(&hash, 2000), VD_OK);
	assert_same(&hash, hash_well, 500);
	vdi_alloc_fail_nth(1, 1000000);
	for (int i = 500; i < 2500; i++) {
		struct vd_bytes key = vd_bytes_of(names[i].text);

		assert_status(vdi_hash_put(&hash, hash_well(key), &key, &names[i], NULL), VD_OK);
		names[i].present = true;
	}
	for (int i = 0; i < 2490; i++) { /* wants to shrink and cannot */
		struct vd_bytes key = vd_bytes_of(names[i].text);

		assert_ptr_equal(vdi_hash_remove(&hash, hash_well(key), &key), &names[i]);
		names[i].present = false;
	}
	vdi_alloc_fail_nth(0, 0);
	assert_same(&hash, hash_well, NAMES);
	vdi_hash_fini(&hash);
	assert_int_equal(vdi_alloc_live(), live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_walks_agree_with_an_array),
		cmocka_unit_test(use_for_ever_does_not_grow),
		cmocka_unit_test(full_is_full),
		cmocka_unit_test(torture_put_reserve_and_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
