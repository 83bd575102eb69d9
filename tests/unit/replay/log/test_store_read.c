/* Pages of a store as recorder and verification read them. */
#include "vdtest.h"

#include "store_read.h"

static void a_page_is_kept_with_references(void **state)
{
	struct vd_kv	      *kvs[2];
	struct vd_range_result result = {
		.store_revision = 7, .kvs = kvs, .kv_count = 2, .count = 3, .more = true
	};
	struct vdi_store_page page = { 0 };

	assert_status(vd_kv_new(vd_bytes_of("/a"), vd_bytes_of("1"), &kvs[0]), VD_OK);
	assert_status(vd_kv_new(vd_bytes_of("/b"), vd_bytes_of("2"), &kvs[1]), VD_OK);
	vdi_store_page_keep(&page, VD_OK, &result, NULL);
	vd_kv_unref(kvs[0]);
	vd_kv_unref(kvs[1]);
	assert_status(page.status, VD_OK);
	assert_int_equal(page.count, 2);
	assert_int_equal(page.revision, 7);
	assert_true(page.more);
	assert_true(vd_bytes_equal(vd_kv_value(page.kvs[1]), vd_bytes_of("2")));
	vdi_store_page_drop(&page);
	assert_int_equal(page.count, 0);
}

static void r157_more_but_no_keys_is_an_error(void **state)
{
	struct vd_range_result result = { .store_revision = 7, .count = 3, .more = true };
	struct vdi_store_page  page = { 0 };

	vdi_store_page_keep(&page, VD_OK, &result, NULL);
	assert_status(page.status, VD_INTERNAL);
	assert_status(page.error.code, VD_INTERNAL);
	assert_false(page.more);
	vdi_store_page_drop(&page);
	result.more = false; /* there are none */
	vdi_store_page_keep(&page, VD_OK, &result, NULL);
	assert_status(page.status, VD_OK);
	vdi_store_page_drop(&page);
}

static void a_page_without_memory_says_so(void **state)
{
	struct vd_kv	      *kv;
	struct vd_range_result result = { .store_revision = 7, .kvs = &kv, .kv_count = 1, .count = 1 };
	struct vdi_store_page  page = { 0 };

	assert_status(vd_kv_new(vd_bytes_of("/a"), vd_bytes_of("1"), &kv), VD_OK);
	vdi_alloc_fail_nth(1, 1);
	vdi_store_page_keep(&page, VD_OK, &result, NULL);
	vdi_alloc_fail_nth(0, 0);
	assert_status(page.status, VD_NOMEM);
	assert_status(page.error.code, VD_NOMEM);
	assert_int_equal(page.count, 0);
	vdi_store_page_drop(&page);
	vd_kv_unref(kv);
}

/* A page that failed keeps what went wrong and no record; its error is that of the store, or its status
 * alone. */
static void a_page_that_failed_says_why(void **state)
{
	struct vd_error	      error = { .code = VD_TIMEOUT, .message = "too late" };
	struct vdi_store_page page = { 0 };

	vdi_store_page_keep(&page, VD_TIMEOUT, NULL, &error);
	assert_status(page.status, VD_TIMEOUT);
	assert_string_equal(page.error.message, "too late");
	vdi_store_page_keep(&page, VD_UNAVAILABLE, NULL, NULL);
	assert_status(page.status, VD_UNAVAILABLE);
	assert_status(page.error.code, VD_UNAVAILABLE);
	assert_int_equal(page.count, 0);
	vdi_store_page_drop(&page);
	assert_status(page.status, VD_OK);
}

static void what_passes_is_worth_another_try(void **state)
{
	for (int status = VD_OK; status <= VD_INTERNAL; status++)
		assert_int_equal(vdi_store_failure_passes((vd_status) status),
				 status == VD_UNAVAILABLE || status == VD_TIMEOUT || status == VD_FULL ||
					 status == VD_NOMEM || status == VD_INTERNAL || status == VD_AGAIN);
}

static void waiting_doubles_up_to_its_bound(void **state)
{
	static const int64_t	 waits[] = { 10, 20, 40, 45, 45 };
	struct vdi_store_backoff backoff = { 0 };

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < VDI_ARRAY_SIZE(waits); i++) {
			vdi_store_backoff_note(&backoff, (vd_mono) { 1000 }, (vd_dur) { 10 },
					       (vd_dur) { 45 });
			assert_int_equal(backoff.wait.ns, waits[i]);
			assert_int_equal(backoff.retry_at.ns, 1000 + waits[i]);
		}
		backoff.wait.ns = 0; /* a success */
	}
}

struct asked {
	struct vd_store base;
	char		key[32], range_end[32];
	size_t		key_size, range_end_size;
	vd_rev		revision;
	int64_t		limit;
};

static vd_status ask(struct vd_store *store, const struct vd_range_request *request, vd_range_fn done,
		     void *arg)
{
	struct asked *asked = VDI_CONTAINER_OF(store, struct asked, base);

	memcpy(asked->key, request->key.data, asked->key_size = request->key.size);
	memcpy(asked->range_end, request->range_end.data, asked->range_end_size = request->range_end.size);
	asked->revision = request->revision;
	asked->limit = request->limit;
	return VD_FULL;
}

static void ignore_page(void *arg, vd_status status, const struct vd_range_result *result,
			const struct vd_error *error)
{
}

static void a_page_begins_behind_the_one_before(void **state)
{
	static const struct {
		const char *prefix, *last, *key, *range_end;
		size_t	    key_size, range_end_size;
	} cases[] = { { "/a/", NULL, "/a/", "/a0", 3, 3 },
		      { "/a/", "/a/b", "/a/b", "/a0", 5, 3 },
		      { "", NULL, "", "", 1, 1 },
		      { "", "k", "k", "", 2, 1 } };
	static const struct vd_store_ops ops = { .size = sizeof ops, .range = ask };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct asked		  asked = { .base = { .ops = &ops } };
		struct vdi_store_interval interval;
		struct vd_kv		 *last = NULL;

		assert_status(vdi_store_interval_init(&interval, vd_bytes_of(cases[i].prefix)), VD_OK);
		if (cases[i].last)
			assert_status(vd_kv_new(vd_bytes_of(cases[i].last), VD_BYTES_NONE, &last), VD_OK);
		assert_status(
			vdi_store_page_ask(&asked.base, &interval, last, 7 + (vd_rev) i, ignore_page, NULL),
			VD_FULL);
		assert_int_equal(asked.revision, 7 + i);
		assert_int_equal(asked.limit, VDI_STORE_PAGE_LEN);
		assert_int_equal(asked.key_size, cases[i].key_size);
		assert_memory_equal(asked.key, cases[i].key, cases[i].key_size);
		assert_int_equal(asked.range_end_size, cases[i].range_end_size);
		assert_memory_equal(asked.range_end, cases[i].range_end, cases[i].range_end_size);
		vd_kv_unref(last);
		vdi_store_interval_fini(&interval);
	}
}

static void an_interval_without_memory_says_so(void **state)
{
	bool failed = true;

	for (uint64_t nth = 1; failed; nth++) {
		struct vdi_store_interval interval = { 0 };
		vd_status		  status;

		vdi_alloc_fail_nth(nth, 1);
		status = vdi_store_interval_init(&interval, vd_bytes_of("/a/"));
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		if (!failed)
			assert_true(vd_bytes_equal(interval.key, vd_bytes_of("/a/")) &&
				    vd_bytes_equal(interval.range_end, vd_bytes_of("/a0")));
		vdi_store_interval_fini(&interval);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_interval_without_memory_says_so),
		cmocka_unit_test(a_page_is_kept_with_references),
		cmocka_unit_test(r157_more_but_no_keys_is_an_error),
		cmocka_unit_test(a_page_that_failed_says_why),
		cmocka_unit_test(a_page_without_memory_says_so),
		cmocka_unit_test(what_passes_is_worth_another_try),
		cmocka_unit_test(waiting_doubles_up_to_its_bound),
		cmocka_unit_test(a_page_begins_behind_the_one_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
