/* Unit tests of lib/index/key_range.c: etcd's ranges and prefixes. */
#include "vdtest.h"

#include "key_range.h"

static struct vd_bytes raw(const char *data, size_t size)
{
	return (struct vd_bytes) { data, size };
}

static void from_etcd_knows_the_three_forms(void **state)
{
	struct vdi_key_range single = vdi_key_range_from_etcd(vd_bytes_of("b"), VD_BYTES_NONE);
	struct vdi_key_range endless = vdi_key_range_from_etcd(vd_bytes_of("b"), raw("\0", 1));
	struct vdi_key_range half_open = vdi_key_range_from_etcd(vd_bytes_of("b"), vd_bytes_of("d"));

	(void) state;
	assert_true(vdi_key_range_contains(&single, vd_bytes_of("b")));
	assert_false(vdi_key_range_contains(&single, raw("b\0", 2)));
	assert_false(vdi_key_range_contains(&single, vd_bytes_of("a")));
	assert_true(vdi_key_range_contains(&endless, vd_bytes_of("b")));
	assert_true(vdi_key_range_contains(&endless, raw("\xff\xff", 2)));
	assert_false(vdi_key_range_contains(&endless, vd_bytes_of("a")));
	assert_true(vdi_key_range_contains(&half_open, vd_bytes_of("b")));
	assert_true(vdi_key_range_contains(&half_open, vd_bytes_of("czz")));
	assert_false(vdi_key_range_contains(&half_open, vd_bytes_of("d")));
	assert_false(vdi_key_range_contains(&half_open, VD_BYTES_NONE));
	assert_false(vdi_key_range_is_empty(&single));
	assert_false(vdi_key_range_is_empty(&endless));
	assert_false(vdi_key_range_is_empty(&half_open));
}

static void everything_is_everything(void **state)
{
	struct vdi_key_range all = vdi_key_range_from_etcd(VD_BYTES_NONE, raw("\0", 1));
	struct vdi_key_range same = VDI_KEY_RANGE_ALL;

	(void) state;
	assert_true(vdi_key_range_contains(&all, VD_BYTES_NONE));
	assert_true(vdi_key_range_contains(&all, raw("\0", 1)));
	assert_true(vdi_key_range_contains(&all, raw("\xff", 1)));
	assert_true(vdi_key_range_contains(&same, vd_bytes_of("x")));
}

static void a_range_that_ends_before_it_starts_is_empty(void **state)
{
	struct vdi_key_range reversed = vdi_key_range_from_etcd(vd_bytes_of("d"), vd_bytes_of("b"));
	struct vdi_key_range nothing = vdi_key_range_from_etcd(vd_bytes_of("b"), vd_bytes_of("b"));

	(void) state;
	assert_true(vdi_key_range_is_empty(&reversed));
	assert_true(vdi_key_range_is_empty(&nothing));
	assert_false(vdi_key_range_contains(&reversed, vd_bytes_of("c")));
	assert_false(vdi_key_range_contains(&nothing, vd_bytes_of("b")));
}

static void behind_a_key_of_any_length(void **state)
{
	char	       *buffer = malloc(5); /* so that a byte too many is seen */
	struct vd_bytes high = { "\xff\xff\xff\xff", 4 };

	assert_true(vd_bytes_equal(vdi_bytes_next_key(vd_bytes_of("ab"), 4, buffer),
				   (struct vd_bytes) { "ab", 3 }));
	assert_true(vd_bytes_equal(vdi_bytes_next_key(vd_bytes_of("abc"), 4, buffer),
				   (struct vd_bytes) { "abc", 4 }));
	assert_true(vd_bytes_equal(vdi_bytes_next_key(vd_bytes_of("abcd"), 4, buffer), vd_bytes_of("abce")));
	assert_true(
		vd_bytes_equal(vdi_bytes_next_key(vd_bytes_of("ab\xff\xff"), 4, buffer), vd_bytes_of("ac")));
	/* Nothing is behind it: more than may be asked for. */
	assert_true(vd_bytes_equal(vdi_bytes_next_key(high, 4, buffer),
				   (struct vd_bytes) { "\xff\xff\xff\xff", 5 }));
	free(buffer);
}

static void prefix_end_increments_and_cuts(void **state)
{
	char buffer[8];

	(void) state;
	assert_true(
		vd_bytes_equal(vdi_bytes_prefix_end(vd_bytes_of("/pods/"), buffer), vd_bytes_of("/pods0")));
	assert_true(vd_bytes_equal(vdi_bytes_prefix_end(raw("a\xff\xff", 3), buffer), vd_bytes_of("b")));
	assert_true(vd_bytes_equal(vdi_bytes_prefix_end(raw("a\0", 2), buffer), raw("a\1", 2)));
	assert_true(vd_bytes_equal(vdi_bytes_prefix_end(raw("\xff\xff", 2), buffer), raw("\0", 1)));
	assert_true(vd_bytes_equal(vdi_bytes_prefix_end(VD_BYTES_NONE, buffer), raw("\0", 1)));
}

static void prefix_range_holds_what_starts_with_it(void **state)
{
	char		     buffer[8];
	struct vdi_key_range range = vdi_key_range_from_prefix(vd_bytes_of("/a/"), buffer);

	(void) state;
	assert_true(vdi_key_range_contains(&range, vd_bytes_of("/a/")));
	assert_true(vdi_key_range_contains(&range, raw("/a/\xff\xff", 5)));
	assert_false(vdi_key_range_contains(&range, vd_bytes_of("/a")));
	assert_false(vdi_key_range_contains(&range, vd_bytes_of("/a0")));
	range = vdi_key_range_from_prefix(raw("\xff", 1), buffer);
	assert_true(vdi_key_range_contains(&range, raw("\xff\xff\xff", 3)));
	assert_false(vdi_key_range_contains(&range, raw("\xfe\xff", 2)));
}

/* Every pair of small ranges against every small key. */
static void overlap_agrees_with_contains(void **state)
{
	static const char *const words[] = { "a", "b", "c", "d", "" };
	struct vdi_key_range	 ranges[40];
	size_t			 count = 0;

	(void) state;
	for (size_t i = 0; i < 4; i++) {
		for (size_t j = 0; j < 5; j++)
			ranges[count++] =
				vdi_key_range_from_etcd(vd_bytes_of(words[i]), vd_bytes_of(words[j]));
		ranges[count++] = vdi_key_range_from_etcd(vd_bytes_of(words[i]), raw("\0", 1));
	}
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < count; j++) {
			bool both = false;

			for (size_t k = 0; k < 4; k++)
				both = both || (vdi_key_range_contains(&ranges[i], vd_bytes_of(words[k])) &&
						vdi_key_range_contains(&ranges[j], vd_bytes_of(words[k])));
			assert_int_equal(vdi_key_range_overlaps(&ranges[i], &ranges[j]), both);
		}
	}
}

static void a_range_may_have_keys_of_a_prefix(void **state)
{
	static const char *const words[] = {
		"", "a", "ab", "aba", "abb", "b", "ba", "bab", "\xff", "\xff\xff"
	};
	const size_t count = VDI_ARRAY_SIZE(words);

	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j <= count + 1; j++) {
			/* Of all ranges: to the key j, to the end, or one key alone. */
			struct vdi_key_range range = { .from = vd_bytes_of(words[i]),
						       .unbounded = j == count,
						       .single = j > count };

			if (j < count)
				range.to = vd_bytes_of(words[j]);
			for (size_t k = 0; k < count; k++) {
				struct vd_bytes prefix = vd_bytes_of(words[k]);
				bool		has = false;

				for (size_t key = 0; key < count; key++)
					has |= vd_bytes_has_prefix(vd_bytes_of(words[key]), prefix) &&
					       vdi_key_range_contains(&range, vd_bytes_of(words[key]));
				assert_true(vdi_key_range_has_prefix(&range, prefix) || !has);
			}
		}
	assert_false(vdi_key_range_has_prefix(
		&(struct vdi_key_range) { .from = vd_bytes_of("/a/"), .to = vd_bytes_of("/a0") },
		vd_bytes_of("/b/")));
	assert_false(vdi_key_range_has_prefix(
		&(struct vdi_key_range) { .from = vd_bytes_of("/b/"), .to = vd_bytes_of("/b0") },
		vd_bytes_of("/a/x")));
	assert_false(vdi_key_range_has_prefix(
		&(struct vdi_key_range) { .from = vd_bytes_of("/b/"), .to = vd_bytes_of("/b0") },
		vd_bytes_of("/b0")));
	assert_true(vdi_key_range_has_prefix(
		&(struct vdi_key_range) { .from = vd_bytes_of("/b/"), .to = vd_bytes_of("/b0") },
		vd_bytes_of("/")));
	assert_true(vdi_key_range_has_prefix(
		&(struct vdi_key_range) { .from = vd_bytes_of("/b/"), .to = vd_bytes_of("/b0") },
		vd_bytes_of("/b/x")));
	assert_false(vdi_key_range_has_prefix(
		&(struct vdi_key_range) { .from = vd_bytes_of("/b"), .single = true }, vd_bytes_of("/b/")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(from_etcd_knows_the_three_forms),
		cmocka_unit_test(everything_is_everything),
		cmocka_unit_test(a_range_that_ends_before_it_starts_is_empty),
		cmocka_unit_test(behind_a_key_of_any_length),
		cmocka_unit_test(prefix_end_increments_and_cuts),
		cmocka_unit_test(prefix_range_holds_what_starts_with_it),
		cmocka_unit_test(overlap_agrees_with_contains),
		cmocka_unit_test(a_range_may_have_keys_of_a_prefix),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
