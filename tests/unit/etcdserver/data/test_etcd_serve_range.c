/* Unit tests of etcdserver/data/serve_range.c: requests by the byte, and records by hand instead of a
 * store. */
#include "serve_range.h"

#include "alloc.h"
#include "vdtest.h"

static void expect_range(const struct vdi_serve_range *range, const struct vdi_serve_range *wanted)
{
	assert_true(vd_bytes_equal(range->key, wanted->key));
	assert_true(vd_bytes_equal(range->range_end, wanted->range_end));
	assert_int_equal(range->limit, wanted->limit);
	assert_int_equal(range->revision, wanted->revision);
	assert_int_equal(range->sort_order, wanted->sort_order);
	assert_int_equal(range->sort_target, wanted->sort_target);
	assert_int_equal(range->serializable, wanted->serializable);
	assert_int_equal(range->keys_only, wanted->keys_only);
	assert_int_equal(range->count_only, wanted->count_only);
	assert_int_equal(range->min_mod_revision, wanted->min_mod_revision);
	assert_int_equal(range->max_mod_revision, wanted->max_mod_revision);
	assert_int_equal(range->min_create_revision, wanted->min_create_revision);
	assert_int_equal(range->max_create_revision, wanted->max_create_revision);
}

/* A message with one field leaves the others at their defaults. */
static void each_field_is_read_alone(void **state)
{
	static const struct {
		const char	      *bytes;
		size_t		       size;
		struct vdi_serve_range range;
	} cases[] = {
		{ "", 0, { .limit = 0 } },
		{ "\x0a\1k", 3, { .key = { "k", 1 } } },
		{ "\x12\1l", 3, { .range_end = { "l", 1 } } },
		{ "\x18\7", 2, { .limit = 7 } },
		{ "\x20\x09", 2, { .revision = 9 } },
		{ "\x28\1", 2, { .sort_order = 1 } },
		{ "\x30\4", 2, { .sort_target = 4 } },
		{ "\x38\1", 2, { .serializable = true } },
		{ "\x38\0", 2, { .limit = 0 } },
		{ "\x40\1", 2, { .keys_only = true } },
		{ "\x40\0", 2, { .limit = 0 } },
		{ "\x48\1", 2, { .count_only = true } },
		{ "\x48\0", 2, { .limit = 0 } },
		{ "\x50\2", 2, { .min_mod_revision = 2 } },
		{ "\x58\3", 2, { .max_mod_revision = 3 } },
		{ "\x60\4", 2, { .min_create_revision = 4 } },
		{ "\x68\5", 2, { .max_create_revision = 5 } },
		{ "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 11, { .limit = -1 } },
		{ "\x28\x81\x80\x80\x80\x10", 6, { .sort_order = 1 } }, /* an enum has 32 bits */
		{ "\x28\xff\xff\xff\xff\x0f", 6, { .sort_order = -1 } },
		{ "\x70\1", 2, { .limit = 0 } }, /* field 14 */
		{ "\x0a\1k\x0a\1m", 6, { .key = { "m", 1 } } },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct vd_bytes	       message = { cases[i].bytes, cases[i].size };
		struct vdi_serve_range range;

		assert_true(vdi_serve_range_decode(message, &range));
		expect_range(&range, &cases[i].range);
		if (message.size && message.size < 6) { /* cut short */
			message.size--;
			assert_false(vdi_serve_range_decode(message, &range));
		}
	}
}

static void sorts_and_filters_are_recognized(void **state)
{
	struct vdi_serve_range range = { 0 };

	(void) state;
	for (int64_t order = -1; order <= 3; order++)
		for (int64_t target = -1; target <= 5; target++) {
			range.sort_order = order;
			range.sort_target = target;
			assert_int_equal(vdi_serve_range_has_valid_sort(&range),
					 order >= 0 && order <= 2 && target >= 0 && target <= 4);
		}
	for (int filter = 0; filter < 5; filter++) {
		range = (struct vdi_serve_range) { .min_mod_revision = filter == 1,
						   .max_mod_revision = filter == 2,
						   .min_create_revision = filter == 3,
						   .max_create_revision = filter == 4 };
		assert_int_equal(vdi_serve_range_has_filters(&range), filter != 0);
		assert_int_equal(vdi_serve_range_is_plain(&range), filter == 0);
	}
	for (int order = VDI_SORT_NONE; order <= VDI_SORT_DESCEND; order++)
		for (int target = VDI_SORT_KEY; target <= VDI_SORT_VALUE; target++) {
			range = (struct vdi_serve_range) { .sort_order = order, .sort_target = target };
			assert_int_equal(vdi_serve_range_is_plain(&range),
					 target == VDI_SORT_KEY && order != VDI_SORT_DESCEND);
		}
}

static int64_t limit_of(struct vdi_serve_range range)
{
	struct vd_range_request request;

	vdi_serve_range_ask(&range, &request);
	return request.limit;
}

/* The store may cut its result only if no record that it cuts could be among those of the answer. E-428: one
 * record more is sorted with the others. */
static void e428_the_store_cuts_only_in_its_own_order(void **state)
{
	(void) state;
	assert_int_equal(limit_of((struct vdi_serve_range) { .limit = 3 }), 3);
	assert_int_equal(limit_of((struct vdi_serve_range) { .limit = 0 }), 0);
	assert_int_equal(limit_of((struct vdi_serve_range) { .limit = -3 }), 0);
	assert_int_equal(limit_of((struct vdi_serve_range) { .limit = 3, .sort_order = VDI_SORT_ASCEND }), 3);
	assert_int_equal(limit_of((struct vdi_serve_range) { .limit = 3, .sort_order = VDI_SORT_DESCEND }),
			 0);
	assert_int_equal(limit_of((struct vdi_serve_range) { .limit = 3, .max_mod_revision = 9 }), 0);
	assert_int_equal(limit_of((struct vdi_serve_range) { .limit = 3, .sort_target = VDI_SORT_MOD }), 4);
	assert_int_equal(limit_of((struct vdi_serve_range) { .limit = 1, .sort_target = VDI_SORT_MOD }), 2);
	assert_int_equal(limit_of((struct vdi_serve_range) { .limit = 0, .sort_target = VDI_SORT_MOD }), 0);
	assert_int_equal(limit_of((struct vdi_serve_range) { .limit = -1, .sort_target = VDI_SORT_MOD }), 0);
	assert_true(limit_of((struct vdi_serve_range) { .limit = INT64_MAX, .sort_target = VDI_SORT_MOD }) ==
		    INT64_MAX);
	assert_int_equal(limit_of((struct vdi_serve_range) {
				 .limit = 3, .sort_target = VDI_SORT_MOD, .sort_order = VDI_SORT_ASCEND }),
			 0);
}

static void the_rest_of_a_request_is_passed_on(void **state)
{
	struct vdi_serve_range	range = { .key = { "k", 1 },
					  .range_end = { "l", 1 },
					  .revision = 7,
					  .serializable = true,
					  .keys_only = true,
					  .count_only = true };
	struct vd_range_request request;

	(void) state;
	vdi_serve_range_ask(&range, &request);
	assert_true(vd_bytes_equal(request.key, range.key));
	assert_true(vd_bytes_equal(request.range_end, range.range_end));
	assert_int_equal(request.revision, 7);
	assert_true(request.serializable && request.keys_only && request.count_only);
	range.sort_target = VDI_SORT_VALUE; /* sorted by values, which must be read */
	range.revision = -1;
	vdi_serve_range_ask(&range, &request);
	assert_false(request.keys_only);
	assert_int_equal(request.revision, 0);
	range.sort_target = VDI_SORT_MOD;
	vdi_serve_range_ask(&range, &request);
	assert_true(request.keys_only);
	memset(&range, 0, sizeof range);
	vdi_serve_range_ask(&range, &request);
	assert_false(request.serializable || request.keys_only || request.count_only);
}

/* Five records by key: a to e. */
static const struct {
	vd_rev	    created, modified;
	int64_t	    version;
	const char *value;
} records[] = { { 3, 7, 2, "2" }, { 4, 4, 1, "3" }, { 2, 8, 2, "1" }, { 6, 6, 1, "3" }, { 5, 9, 3, "0" } };

static void make_result(struct vd_kv *kvs[5], struct vd_range_result *ret_result)
{
	for (size_t i = 0; i < 5; i++) {
		char key[2] = { (char) ('a' + i), 0 };

		assert_status(vd_kv_new(vd_bytes_of(key), vd_bytes_of(records[i].value), &kvs[i]), VD_OK);
		kvs[i]->create_rev = records[i].created;
		kvs[i]->mod_rev = records[i].modified;
		kvs[i]->version = records[i].version;
	}
	*ret_result = (struct vd_range_result) { .kvs = kvs, .kv_count = 5, .more = true, .count = 9 };
}

static void expect_view(struct vdi_serve_range range, const char *keys, bool more)
{
	struct vd_kv		   *kvs[5];
	struct vd_range_result	    result;
	struct vdi_serve_range_view view;
	char			    found[8] = "";

	make_result(kvs, &result);
	assert_status(vdi_serve_range_view_init(&range, &result, &view), VD_OK);
	assert_in_range(view.kv_count, 0, 5);
	for (size_t i = 0; i < view.kv_count; i++)
		found[i] = *(const char *) vd_kv_key(view.kvs[i]).data;
	assert_string_equal(found, keys);
	assert_int_equal(view.more, more);
	assert_int_equal(view.count, 9); /* of the store, filtered or not */
	vdi_serve_range_view_fini(&view);
	vdi_serve_range_view_fini(&view);
	for (size_t i = 0; i < 5; i++)
		vd_kv_unref(kvs[i]);
}
#define EXPECT_VIEW(keys, more, ...) expect_view((struct vdi_serve_range) { __VA_ARGS__ }, keys, more)

/* rules: E-428 */
static void e427_records_are_filtered_sorted_and_cut(void **state)
{
	(void) state;
	EXPECT_VIEW("abcde", true); /* plain: as the store cut it */
	EXPECT_VIEW("", false, .count_only = true);
	EXPECT_VIEW("abcde", false, .sort_target = VDI_SORT_KEY, .min_mod_revision = 1);
	EXPECT_VIEW("edcba", false, .sort_order = VDI_SORT_DESCEND);
	EXPECT_VIEW("cabed", false, .sort_target = VDI_SORT_CREATE);
	EXPECT_VIEW("bdace", false, .sort_target = VDI_SORT_MOD, .sort_order = VDI_SORT_ASCEND);
	EXPECT_VIEW("bdace", false, .sort_target = VDI_SORT_VERSION); /* equal ones by key */
	EXPECT_VIEW("eacbd", false, .sort_target = VDI_SORT_VERSION, .sort_order = VDI_SORT_DESCEND);
	EXPECT_VIEW("ecabd", false, .sort_target = VDI_SORT_VALUE);
	EXPECT_VIEW("bdace", false, .sort_target = VDI_SORT_VALUE, .sort_order = VDI_SORT_DESCEND);
	/* Borders of the filters belong to them. */
	EXPECT_VIEW("ace", false, .min_mod_revision = 7);
	EXPECT_VIEW("abd", false, .max_mod_revision = 7);
	EXPECT_VIEW("bde", false, .min_create_revision = 4);
	EXPECT_VIEW("abc", false, .max_create_revision = 4);
	EXPECT_VIEW("", false, .min_mod_revision = 8, .max_mod_revision = 7);
	/* There is more only beyond the limit. */
	EXPECT_VIEW("edcb", true, .sort_order = VDI_SORT_DESCEND, .limit = 4);
	EXPECT_VIEW("edcba", false, .sort_order = VDI_SORT_DESCEND, .limit = 5);
	EXPECT_VIEW("edcba", false, .sort_order = VDI_SORT_DESCEND, .limit = 6);
	EXPECT_VIEW("edcba", false, .sort_order = VDI_SORT_DESCEND, .limit = -1);
	EXPECT_VIEW("ac", true, .min_mod_revision = 7, .limit = 2);
	EXPECT_VIEW("ace", false, .min_mod_revision = 7, .limit = 3);
	EXPECT_VIEW("", false, .min_mod_revision = 10, .limit = 1);
}

static void a_view_without_memory_is_refused(void **state)
{
	struct vdi_serve_range	    range = { .sort_order = VDI_SORT_DESCEND };
	struct vd_kv		   *kvs[5];
	struct vd_range_result	    result;
	struct vdi_serve_range_view view;

	(void) state;
	make_result(kvs, &result);
	vdi_alloc_fail_nth(1, 1);
	assert_status(vdi_serve_range_view_init(&range, &result, &view), VD_NOMEM);
	assert_true(vdi_alloc_failed());
	vdi_alloc_fail_nth(0, 0);
	result.kv_count = 0; /* nothing to sort, no memory */
	assert_status(vdi_serve_range_view_init(&range, &result, &view), VD_OK);
	assert_false(view.is_owned);
	vdi_serve_range_view_fini(&view);
	for (size_t i = 0; i < 5; i++)
		vd_kv_unref(kvs[i]);
}

static void expect_written(struct vdi_serve_range range, const char *bytes, size_t size)
{
	struct vd_kv		   *kv;
	struct vd_range_result	    result = { .kvs = &kv, .kv_count = 1, .more = true, .count = 3 };
	struct vdi_serve_range_view view;
	uint8_t			    text[64];
	struct vdi_wire_out	    counted = { 0 }, written = { text, 0 };

	assert_status(vd_kv_new(vd_bytes_of("k"), vd_bytes_of("v"), &kv), VD_OK);
	kv->create_rev = 5;
	kv->mod_rev = 6;
	kv->version = 2;
	kv->lease = 7;
	assert_status(vdi_serve_range_view_init(&range, &result, &view), VD_OK);
	vdi_serve_range_view_write(&counted, &view);
	vdi_serve_range_view_write(&written, &view);
	assert_int_equal(counted.size, size);
	assert_int_equal(written.size, size);
	assert_memory_equal(text, bytes, size);
	vdi_serve_range_view_fini(&view);
	vd_kv_unref(kv);
}
#define EXPECT_WRITTEN(bytes, ...)                                                                           \
	expect_written((struct vdi_serve_range) { __VA_ARGS__ }, bytes, sizeof(bytes) - 1)

/* rules: E-429 */
static void records_are_written_with_what_was_asked(void **state)
{
	(void) state;
	EXPECT_WRITTEN("\x12\x0e\x0a\1k\x10\5\x18\6\x20\2\x2a\1v\x30\7\x18\1\x20\3");
	EXPECT_WRITTEN("\x12\x09\x0a\1k\x10\5\x18\6\x20\2\x18\1\x20\3", .keys_only = true);
	EXPECT_WRITTEN("\x12\x0b\x0a\1k\x10\5\x18\6\x20\2\x30\7\x20\3", .keys_only = true,
		       .sort_target = VDI_SORT_VALUE);
	EXPECT_WRITTEN("\x20\3", .count_only = true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_field_is_read_alone),
		cmocka_unit_test(sorts_and_filters_are_recognized),
		cmocka_unit_test(e428_the_store_cuts_only_in_its_own_order),
		cmocka_unit_test(the_rest_of_a_request_is_passed_on),
		cmocka_unit_test(e427_records_are_filtered_sorted_and_cut),
		cmocka_unit_test(a_view_without_memory_is_refused),
		cmocka_unit_test(records_are_written_with_what_was_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
