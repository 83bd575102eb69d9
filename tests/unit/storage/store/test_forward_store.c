/* Unit tests of storage/store/forward_store.c: each operation of a wrapping store calls the same operation of
 * the inner store, with the same arguments, and returns its status. */
#include "forward_store.h"
#include "vdtest.h"

/* The operation of the inner store that was called last, and its arguments. */
static struct {
	const char	*name;
	struct vd_store *store;
	int64_t		 number, more;
	bool		 flag;
	const void	*request, *result;
	uintptr_t	 done;
	const void	*arg;
	unsigned	 count;
} called;

static void note(struct vd_store *store, const char *name, uintptr_t done, const void *arg)
{
	unsigned count = called.count + 1;

	memset(&called, 0, sizeof called);
	called.count = count;
	called.store = store;
	called.name = name;
	called.done = done;
	called.arg = arg;
}

static vd_status inner_range(struct vd_store *store, const struct vd_range_request *request, vd_range_fn done,
			     void *arg)
{
	note(store, "range", (uintptr_t) done, arg);
	called.request = request;
	return VD_FULL;
}
static vd_status inner_txn(struct vd_store *store, const struct vd_txn_request *request, vd_txn_fn done,
			   void *arg)
{
	note(store, "txn", (uintptr_t) done, arg);
	called.request = request;
	return VD_FULL;
}
static vd_status inner_compact(struct vd_store *store, vd_rev revision, bool physical, vd_done_fn done,
			       void *arg)
{
	note(store, "compact", (uintptr_t) done, arg);
	called.number = revision;
	called.flag = physical;
	return VD_FULL;
}
static vd_status inner_grant(struct vd_store *store, int64_t id, int64_t ttl_s, vd_lease_fn done, void *arg)
{
	note(store, "grant", (uintptr_t) done, arg);
	called.number = id;
	called.more = ttl_s;
	return VD_FULL;
}
static vd_status inner_revoke(struct vd_store *store, int64_t id, vd_done_fn done, void *arg)
{
	note(store, "revoke", (uintptr_t) done, arg);
	called.number = id;
	return VD_FULL;
}
static vd_status inner_keep_alive(struct vd_store *store, int64_t id, vd_lease_fn done, void *arg)
{
	note(store, "keep alive", (uintptr_t) done, arg);
	called.number = id;
	return VD_FULL;
}
static vd_status inner_time_to_live(struct vd_store *store, int64_t id, bool keys, vd_lease_fn done,
				    void *arg)
{
	note(store, "time to live", (uintptr_t) done, arg);
	called.number = id;
	called.flag = keys;
	return VD_FULL;
}
static vd_status inner_lease_list(struct vd_store *store, vd_lease_list_fn done, void *arg)
{
	note(store, "lease list", (uintptr_t) done, arg);
	return VD_FULL;
}
static vd_status inner_watch(struct vd_store *store, const struct vd_store_watch_request *request,
			     struct vd_store_watch **ret_watch, struct vd_error *reterr)
{
	note(store, "watch", 0, reterr);
	called.request = request;
	called.result = ret_watch;
	return VD_FULL;
}
static vd_status inner_stream(struct vd_store *store, const struct vd_store_stream_request *request,
			      struct vd_store_stream **ret_stream)
{
	note(store, "stream", 0, NULL);
	called.request = request;
	called.result = ret_stream;
	return VD_FULL;
}
static vd_status inner_status(struct vd_store *store, struct vd_store_status *ret_status)
{
	note(store, "status", 0, NULL);
	called.result = ret_status;
	return VD_FULL;
}
static void inner_shutdown(struct vd_store *store)
{
	note(store, "shutdown", 0, NULL);
}
static void inner_dump(struct vd_store *store, void (*write)(void *arg, struct vd_bytes json), void *arg)
{
	note(store, "dump", (uintptr_t) write, arg);
}

static const struct vd_store_ops inner_ops = {
	.size = sizeof inner_ops,
	.range = inner_range,
	.txn = inner_txn,
	.compact = inner_compact,
	.lease_grant = inner_grant,
	.lease_revoke = inner_revoke,
	.lease_keep_alive = inner_keep_alive,
	.lease_time_to_live = inner_time_to_live,
	.lease_list = inner_lease_list,
	.watch = inner_watch,
	.stream = inner_stream,
	.status = inner_status,
	.shutdown = inner_shutdown,
	.dump = inner_dump,
};

static void got_range(void *arg, vd_status status, const struct vd_range_result *result,
		      const struct vd_error *error)
{
	(void) arg;
	(void) status;
	(void) result;
	(void) error;
	fail_msg("the inner store has answered nothing");
}
static void got_txn(void *arg, vd_status status, const struct vd_txn_result *result,
		    const struct vd_error *error)
{
	(void) result;
	got_range(arg, status, NULL, error);
}
static void got_lease(void *arg, vd_status status, const struct vd_lease_result *result,
		      const struct vd_error *error)
{
	(void) result;
	got_range(arg, status, NULL, error);
}
static void got_done(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	(void) revision;
	got_range(arg, status, NULL, error);
}
static void got_list(void *arg, vd_status status, const int64_t *ids, size_t count, vd_rev revision)
{
	(void) ids;
	(void) count;
	(void) revision;
	got_range(arg, status, NULL, NULL);
}
static void write_nothing(void *arg, struct vd_bytes json)
{
	(void) json;
	got_range(arg, VD_OK, NULL, NULL);
}
static void ready(void *arg)
{
	got_range(arg, VD_OK, NULL, NULL);
}

struct world {
	struct vd_store		 inner;
	struct vdi_forward_store outer;
	unsigned		 count;
	int			 arg;
};

static void expect(struct world *w, const char *name, uintptr_t done, const void *arg)
{
	w->count++;
	assert_int_equal(called.count, w->count);
	assert_string_equal(called.name, name);
	assert_ptr_equal(called.store, &w->inner);
	assert_true(called.done == done);
	assert_ptr_equal(called.arg, arg);
}

static void every_operation_calls_that_of_the_inner_store(void **state)
{
	struct world			     w = { .inner = { .ops = &inner_ops } };
	struct vd_store			    *outer = &w.outer.base;
	const struct vd_range_request	     range = { .key = vd_bytes_of("a") };
	const struct vd_txn_request	     txn = { 0 };
	const struct vd_store_watch_request  watch = { .key = vd_bytes_of("a"), .ready = ready };
	const struct vd_store_stream_request stream = { .range = { .key = vd_bytes_of("a") },
							.ready = ready };
	struct vd_store_watch		    *ret_watch = NULL;
	struct vd_store_stream		    *ret_stream = NULL;
	struct vd_store_status		     status;
	struct vd_error			     error;

	(void) state;
	memset(&called, 0, sizeof called);
	w.outer.inner = &w.inner;
	assert_status(vdi_forward_range(outer, &range, got_range, &w.arg), VD_FULL);
	expect(&w, "range", (uintptr_t) got_range, &w.arg);
	assert_ptr_equal(called.request, &range);
	assert_status(vdi_forward_txn(outer, &txn, got_txn, &w.arg), VD_FULL);
	expect(&w, "txn", (uintptr_t) got_txn, &w.arg);
	assert_ptr_equal(called.request, &txn);
	for (unsigned flag = 0; flag < 2; flag++) {
		assert_status(vdi_forward_compact(outer, 7, flag, got_done, &w.arg), VD_FULL);
		expect(&w, "compact", (uintptr_t) got_done, &w.arg);
		assert_int_equal(called.number, 7);
		assert_int_equal(called.flag, flag);
		assert_status(vdi_forward_lease_time_to_live(outer, 8, flag, got_lease, &w.arg), VD_FULL);
		expect(&w, "time to live", (uintptr_t) got_lease, &w.arg);
		assert_int_equal(called.number, 8);
		assert_int_equal(called.flag, flag);
	}
	assert_status(vdi_forward_lease_grant(outer, 9, 10, got_lease, &w.arg), VD_FULL);
	expect(&w, "grant", (uintptr_t) got_lease, &w.arg);
	assert_int_equal(called.number, 9);
	assert_int_equal(called.more, 10);
	assert_status(vdi_forward_lease_revoke(outer, 11, got_done, &w.arg), VD_FULL);
	expect(&w, "revoke", (uintptr_t) got_done, &w.arg);
	assert_int_equal(called.number, 11);
	assert_status(vdi_forward_lease_keep_alive(outer, 12, got_lease, &w.arg), VD_FULL);
	expect(&w, "keep alive", (uintptr_t) got_lease, &w.arg);
	assert_int_equal(called.number, 12);
	assert_status(vdi_forward_lease_list(outer, got_list, &w.arg), VD_FULL);
	expect(&w, "lease list", (uintptr_t) got_list, &w.arg);
	assert_status(vdi_forward_watch(outer, &watch, &ret_watch, &error), VD_FULL);
	expect(&w, "watch", 0, &error);
	assert_ptr_equal(called.request, &watch);
	assert_ptr_equal(called.result, &ret_watch);
	assert_status(vdi_forward_stream(outer, &stream, &ret_stream), VD_FULL);
	expect(&w, "stream", 0, NULL);
	assert_ptr_equal(called.request, &stream);
	assert_ptr_equal(called.result, &ret_stream);
	assert_status(vdi_forward_status(outer, &status), VD_FULL);
	expect(&w, "status", 0, NULL);
	assert_ptr_equal(called.result, &status);
	vdi_forward_shutdown(outer);
	expect(&w, "shutdown", 0, NULL);
	vdi_forward_dump(outer, write_nothing, &w.arg);
	expect(&w, "dump", (uintptr_t) write_nothing, &w.arg);
}

/* The checked front answers for optional operations that the inner store does not have. */
static void an_operation_that_the_inner_store_lacks_is_unsupported(void **state)
{
	static const struct vd_store_ops     few = { .size = offsetof(struct vd_store_ops, stream) };
	struct world			     w = { .inner = { .ops = &few } };
	const struct vd_store_stream_request stream = { .range = { .key = vd_bytes_of("a") },
							.ready = ready };
	struct vd_store_stream		    *ret_stream = NULL;

	(void) state;
	w.outer.inner = &w.inner;
	assert_status(vdi_forward_stream(&w.outer.base, &stream, &ret_stream), VD_UNSUPPORTED);
	assert_null(ret_stream);
	assert_status(vdi_forward_lease_list(&w.outer.base, got_list, NULL), VD_UNSUPPORTED);
	vdi_forward_shutdown(&w.outer.base);
	vdi_forward_dump(&w.outer.base, write_nothing, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_operation_calls_that_of_the_inner_store),
		cmocka_unit_test(an_operation_that_the_inner_store_lacks_is_unsupported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
