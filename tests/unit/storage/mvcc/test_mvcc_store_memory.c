/* The embedded store while allocations fail: each write, group, read, watch and expiry is whole or was
 * not. */
#include <vedette/store.h>

#include "actor_sim.h"
#include "env.h"
#include "mvcc_fixture.h"
#include "mvcc_read.h"
#include "vdtest.h"

#define RANGE(from, to, at)                                                                                  \
	{                                                                                                    \
		.kind = VD_OP_RANGE, .range = {.key = K(from), .range_end = K(to), .revision = at }          \
	}

/* A store with something of everything. */
static struct vd_store *busy_store(struct vd_env *env)
{
	struct vd_store	     *store = mvcc_store_new(env, NULL);
	struct vd_op	      op = { .kind = VD_OP_PUT, .key = K("leased"), .value = K("l"), .lease = 7 };
	struct vd_txn_request request = { .success = &op, .success_count = 1 };
	struct mvcc_call      call = { 0 };
	char		      key[16];

	assert_status(vd_store_lease_grant(store, 7, 100, mvcc_got_lease, &call), VD_OK);
	vdi_sim_run_until_idle(env);
	assert_status(vd_store_txn(store, &request, mvcc_got_txn, &call), VD_OK);
	for (int i = 0; i < 40; i++) {
		snprintf(key, sizeof key, "k%02d", i);
		mvcc_put(store, key, "v");
	}
	return store;
}

static vd_status start_big_txn(struct vd_store *store, struct mvcc_call *call)
{
	struct vd_compare compare = { VD_COMPARE_VERSION, VD_COMPARE_EQUAL, K("k01"), VD_BYTES_NONE, 1 };
	struct vd_op inner_ops[] = { { .kind = VD_OP_PUT, .key = K("inner"), .value = K("i"), .lease = 7 } };
	struct vd_txn_request inner = { .success = inner_ops, .success_count = 1 };
	struct vd_op	      ops[] = {
			 { .kind = VD_OP_PUT, .key = K("k01"), .value = K("new"), .previous = true },
			 { .kind = VD_OP_DELETE, .key = K("k10"), .range_end = K("k20"), .previous = true },
			 RANGE("k", "l", 0),
			 RANGE("k", "l", 9),
			 { .kind = VD_OP_PUT, .key = K("leased"), .ignore_value = true },
			 { .kind = VD_OP_TXN, .txn = &inner },
	};
	struct vd_txn_request request = {
		.compares = &compare, .compare_count = 1, .success = ops, .success_count = VDI_ARRAY_SIZE(ops)
	};

	return vd_store_txn(store, &request, mvcc_got_txn, call);
}

static vd_status start_put(struct vd_store *store, struct mvcc_call *call)
{
	return mvcc_submit_put(store, "new", "1", call);
}

static vd_status start_grant(struct vd_store *store, struct mvcc_call *call)
{
	return vd_store_lease_grant(store, 8, 50, mvcc_got_lease, call);
}

static vd_status start_renew(struct vd_store *store, struct mvcc_call *call)
{
	return vd_store_lease_keep_alive(store, 7, mvcc_got_lease, call);
}

static vd_status start_revoke(struct vd_store *store, struct mvcc_call *call)
{
	return vd_store_lease_revoke(store, 7, mvcc_got_done, call);
}

static vd_status start_compact(struct vd_store *store, struct mvcc_call *call)
{
	return vd_store_compact(store, 20, true, mvcc_got_done, call);
}

/* Transactions within one, in both lists, that read and that tell what was there before. */
static vd_status start_nested(struct vd_store *store, struct mvcc_call *call)
{
	struct vd_op inner[] = {
		RANGE("k", "l", 0),
		{ .kind = VD_OP_PUT, .key = K("k01"), .value = K("n"), .previous = true },
		{ .kind = VD_OP_DELETE, .key = K("k10"), .range_end = K("k20"), .previous = true }
	};
	struct vd_txn_request nested = {
		.success = inner, .success_count = 3, .failure = inner, .failure_count = 1
	};
	struct vd_op	      middle[] = { { .kind = VD_OP_TXN, .txn = &nested }, RANGE("k", "l", 0) };
	struct vd_txn_request outer = { .success = middle, .success_count = 2 };
	struct vd_op	      op = { .kind = VD_OP_TXN, .txn = &outer };
	struct vd_txn_request request = {
		.success = &op, .success_count = 1, .failure = &op, .failure_count = 1
	};

	return vd_store_txn(store, &request, mvcc_got_txn, call);
}

static void torture_one(vd_status (*start)(struct vd_store *store, struct mvcc_call *call))
{
	bool done = false;

	for (uint64_t nth = 1; !done; nth++) {
		struct vd_env	      *env = mvcc_env_new();
		struct vd_store	      *store = busy_store(env);
		struct mvcc_text       before = mvcc_all_text(store, 0);
		struct vd_store_status status = mvcc_status_of(store);
		struct mvcc_call       call = { 0 };
		vd_status	       called;

		vdi_alloc_fail_nth(nth, 1);
		called = start(store, &call);
		vdi_sim_run_until_idle(env);
		done = !vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_int_equal(call.answers, called == VD_OK);
		if (called != VD_OK || call.status != VD_OK) {
			assert_status(called == VD_OK ? call.status : called, VD_NOMEM);
			assert_false(done);
			assert_string_equal(mvcc_all_text(store, 0).bytes, before.bytes);
			assert_int_equal(mvcc_status_of(store).current, status.current);
			assert_int_equal(mvcc_status_of(store).compacted, status.compacted);
			/* And it goes on as if nothing had been. */
			memset(&call, 0, sizeof call);
			assert_status(start(store, &call), VD_OK);
			vdi_sim_run_until_idle(env);
			assert_status(call.status, VD_OK);
		}
		vd_store_close_wait(store);
		vd_env_free(env);
		assert_true(nth < 10000);
	}
}

static void torture_every_write(void **state)
{
	(void) state;
	torture_one(start_put);
	torture_one(start_big_txn);
	torture_one(start_nested);
	torture_one(start_grant);
	torture_one(start_renew);
	torture_one(start_revoke);
	torture_one(start_compact);
}

/* Several in one group, one allocation fails: what was answered with success, and nothing else, has
 * happened. */
static void torture_a_group(void **state)
{
	bool done = false;

	(void) state;
	for (uint64_t nth = 1; !done; nth++) {
		struct vd_env	*env = mvcc_env_new();
		struct vd_store *store = mvcc_store_new(env, NULL);
		struct mvcc_call calls[6];
		char		 expected[256] = "";
		vd_status	 called[6];
		char		 key[8];
		vd_rev		 revision = 1;

		mvcc_put(store, "x", "1");
		revision = 2;
		vdi_alloc_fail_nth(nth, 1);
		for (int i = 0; i < 6; i++) {
			snprintf(key, sizeof key, "k%d", i);
			called[i] = mvcc_submit_put(store, key, "v", &calls[i]);
		}
		vdi_sim_run_until_idle(env);
		done = !vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		for (int i = 0; i < 6; i++) {
			assert_int_equal(calls[i].answers, called[i] == VD_OK);
			if (called[i] != VD_OK || calls[i].status != VD_OK)
				continue;
			assert_int_equal(calls[i].revision, ++revision);
			snprintf(expected + strlen(expected), sizeof expected - strlen(expected),
				 "k%d=v@%d/0 ", i, (int) revision);
		}
		strcat(expected, "x=1@2/0");
		assert_string_equal(mvcc_all_text(store, 0).bytes, expected);
		vd_store_close_wait(store);
		vd_env_free(env);
	}
}

/* Opening, reading and watching: an error or the right answer, and no leak. */
static void torture_open_read_and_watch(void **state)
{
	bool done = false;

	(void) state;
	for (uint64_t nth = 1; !done; nth++) {
		struct vd_env		     *env = mvcc_env_new();
		struct vd_store		     *busy = busy_store(env);
		struct vd_store		     *store = NULL;
		int			      woken = 0;
		struct vd_store_watch_request request = { .key = K("k"),
							  .range_end = K("l"),
							  .start_revision = 2,
							  .ready = mvcc_count_ready,
							  .ready_arg = &woken };
		struct vd_store_watch	     *watch = NULL;
		struct vd_store_batch	      batch;
		struct vd_kv		     *kv = NULL;
		int64_t			      live = vdi_alloc_live();
		vd_status		      status;

		vdi_alloc_fail_nth(nth, 1);
		status = vd_store_open_mvcc(env, NULL, &store, NULL);
		assert_true(status == VD_OK || status == VD_NOMEM);
		if (store)
			vd_store_close_wait(store);
		vdi_sim_run_until_idle(env);
		if (vd_store_get_wait(busy, K("k05"), &kv, NULL) == VD_OK)
			vd_kv_unref(kv);
		status = vd_store_watch_open(busy, &request, &watch, NULL);
		if (status == VD_OK) {
			status = vd_store_watch_next(watch, 100, &batch, NULL);
			if (status == VD_OK)
				assert_int_equal(batch.event_count, 40);
			else
				assert_status(vd_store_watch_next(watch, 100, &batch, NULL), VD_NOMEM);
			vd_store_watch_close(watch);
		}
		assert_true(status == VD_OK || status == VD_NOMEM);
		done = !vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_int_equal(vdi_alloc_live(), live);
		vd_store_close_wait(busy);
		vd_env_free(env);
	}
}

/* A lease that cannot be revoked for want of memory is revoked later. */
static void torture_expiry_is_tried_again(void **state)
{
	bool done = false;

	(void) state;
	for (uint64_t nth = 1; !done; nth++) {
		struct vd_env	*env = mvcc_env_new();
		struct vd_store *store = busy_store(env);

		vdi_sim_advance(env, VD_SECONDS(99));
		vdi_alloc_fail_nth(nth, 1);
		vdi_sim_advance(env, VD_SECONDS(3));
		done = !vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_int_equal(mvcc_status_of(store).key_count, 40);
		vd_store_close_wait(store);
		vd_env_free(env);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(torture_every_write),
		cmocka_unit_test(torture_a_group),
		cmocka_unit_test(torture_open_read_and_watch),
		cmocka_unit_test(torture_expiry_is_tried_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
