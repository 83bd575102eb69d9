/* What one transaction may cost the embedded store's writer, on which all other writes wait. */
#include "actor_sim.h"
#include "alloc.h"
#include "env.h"
#include "mvcc_store.h"
#include "mvcc_txn.h"
#include "vdtest.h"
#include "wait.h"

#include <vedette/store.h>

#define K(text) vd_bytes_of(text)
#define ALL ((struct vd_bytes) { "", 1 })
#define KEYS 3000
#define OPS_MAX 128

struct fixture {
	struct vd_env	 *env;
	struct vd_store	 *store;
	struct vd_compare compares[OPS_MAX];
	struct vd_op	  ops[OPS_MAX];
};

struct answer {
	int	  count;
	vd_status status;
	size_t	  result_count;
	char	  message[sizeof((struct vd_error *) NULL)->message];
};

static void got_txn(void *arg, vd_status status, const struct vd_txn_result *result,
		    const struct vd_error *error)
{
	struct answer *answer = arg;

	answer->count++;
	answer->result_count = result ? result->result_count : 0;
	answer->status = status;
	if (error)
		(void) snprintf(answer->message, sizeof answer->message, "%s", error->message);
}

/* Every compare holds for every key and every range selects every key; the first operation is a put. */
static int setup(void **state)
{
	struct fixture	      *f = calloc(1, sizeof *f);
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	char		       key[16];

	options.history_window = (vd_dur) { 0 };
	assert_status(vdi_env_new_sim(5, NULL, NULL, &f->env), VD_OK);
	assert_status(vd_store_open_mvcc(f->env, &options, &f->store, NULL), VD_OK);
	for (unsigned i = 0; i < KEYS; i++) {
		(void) snprintf(key, sizeof key, "k%05u", i);
		assert_status(vd_store_put_wait(f->store, K(key), K("1"), NULL, NULL), VD_OK);
	}
	for (unsigned i = 0; i < OPS_MAX; i++) {
		f->compares[i] = (struct vd_compare) { VD_COMPARE_VERSION, VD_COMPARE_GREATER, ALL, ALL };
		f->ops[i] = (struct vd_op) { .kind = VD_OP_RANGE, .range = { .key = ALL, .range_end = ALL } };
	}
	f->ops[0] = (struct vd_op) { .kind = VD_OP_PUT, .key = K("x"), .value = K("1") };
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	vd_store_close_wait(f->store);
	vd_env_free(f->env);
	free(f);
	return 0;
}

static vd_rev revision_of(struct fixture *f)
{
	struct vd_store_status status;

	assert_status(vd_store_status_get(f->store, &status), VD_OK);
	return status.current;
}

static void assert_done(struct fixture *f, size_t compare_count, size_t op_count)
{
	struct vd_txn_request request = { .compares = f->compares,
					  .compare_count = compare_count,
					  .success = f->ops,
					  .success_count = op_count };
	struct answer	      answer = { 0 };

	assert_status(vd_store_txn(f->store, &request, got_txn, &answer), VD_OK);
	vdi_sim_run_until_idle(f->env);
	assert_int_equal(answer.count, 1);
	assert_status(answer.status, VD_OK);
}

static void assert_refused(struct fixture *f, size_t compare_count, size_t op_count)
{
	struct vd_txn_request request = { .compares = f->compares,
					  .compare_count = compare_count,
					  .success = f->ops,
					  .success_count = op_count };
	struct vd_op	      other = { .kind = VD_OP_PUT, .key = K("other"), .value = K("1") };
	struct vd_txn_request write = { .success = &other, .success_count = 1 };
	struct answer	      answer = { 0 }, others[2] = { 0 };
	vd_rev		      before = revision_of(f);

	assert_status(vd_store_txn(f->store, &write, got_txn, &others[0]), VD_OK);
	assert_status(vd_store_txn(f->store, &request, got_txn, &answer), VD_OK);
	assert_status(vd_store_txn(f->store, &write, got_txn, &others[1]), VD_OK);
	vdi_sim_run_until_idle(f->env);
	assert_int_equal(answer.count, 1);
	assert_status(answer.status, VD_TOO_BIG);
	assert_non_null(strstr(answer.message, "262144 records"));
	/* It wrote nothing, and the writes of its group are done. */
	for (size_t i = 0; i < 2; i++)
		assert_status(others[i].status, VD_OK);
	assert_int_equal(revision_of(f), before + 2);
}

/* ---- Tests ---- */

static void compares_of_many_records_are_refused(void **state)
{
	struct fixture *f = *state;

	assert_refused(f, 90, 1);
	f->compares[89].range_end = VD_BYTES_NONE;
	f->compares[89].key = K("k00000");
	assert_done(f, 87, 1);
	/* What fails at once costs nothing. */
	f->compares[0].number = 1000;
	assert_done(f, OPS_MAX, 0);
}

static void compares_of_all_levels_count_together(void **state)
{
	struct fixture	     *f = *state;
	struct vd_txn_request inner = { .compares = f->compares, .compare_count = 30 };

	f->ops[1] = f->ops[2] = f->ops[3] = (struct vd_op) { .kind = VD_OP_TXN, .txn = &inner };
	assert_refused(f, 1, 4);
	assert_done(f, 1, 3);
}

static void ranges_of_many_records_are_refused(void **state)
{
	struct fixture *f = *state;

	assert_refused(f, 0, 90);
	assert_done(f, 0, 80);
	assert_refused(f, 45, 45);
	for (size_t i = 1; i < OPS_MAX; i++)
		f->ops[i].range.count_only = true;
	assert_done(f, 0, OPS_MAX);
	for (size_t i = 1; i < OPS_MAX; i++) {
		f->ops[i].range.count_only = false;
		f->ops[i].range.limit = 100;
	}
	assert_done(f, 0, OPS_MAX);
}

/* A range at an old revision also looks at the changes between it and the nearest state that is held. */
static void ranges_of_old_revisions_count_their_changes(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 1; i < OPS_MAX; i++) {
		f->ops[i].range.revision = 2;
		f->ops[i].range.limit = 1;
	}
	assert_done(f, 0, OPS_MAX);
	for (size_t i = 1; i < OPS_MAX; i++)
		f->ops[i].range =
			(struct vd_range_request) { .key = ALL, .range_end = ALL, .revision = KEYS };
	assert_refused(f, 0, 90);
	assert_done(f, 0, 80);
}

/* A transaction that only reads runs on the thread that asks, so nobody waits for it. */
static void reads_are_not_counted(void **state)
{
	struct fixture *f = *state;

	f->ops[0] = f->ops[1];
	assert_done(f, OPS_MAX, OPS_MAX);
}

/* However many keys there are, one look at each is allowed. */
static void one_pass_over_all_keys_is_allowed(void **state)
{
	struct fixture *f = *state;

	f->ops[1] = (struct vd_op) { .kind = VD_OP_DELETE, .key = K("k"), .range_end = K("l") };
	assert_done(f, 88, 2);
	f->compares[0].target = VD_COMPARE_CREATE;
	assert_done(f, 1, 1);
}

/* Each operation is checked before the first one is executed: the revision that the put would make does not
 * exist yet. */
static void a_range_is_checked_before_the_put_before_it(void **state)
{
	struct fixture	     *f = *state;
	struct vd_txn_request request = { .success = f->ops, .success_count = 2 };
	struct answer	      answer = { 0 };
	vd_rev		      before = revision_of(f);

	f->ops[1].range.limit = 1;
	f->ops[1].range.revision = before + 1;
	assert_status(vd_store_txn(f->store, &request, got_txn, &answer), VD_OK);
	vdi_sim_run_until_idle(f->env);
	assert_int_equal(answer.count, 1);
	assert_status(answer.status, VD_TOO_LARGE_REVISION);
	assert_int_equal(revision_of(f), before);
	f->ops[1].range.revision = before;
	assert_done(f, 0, 2);
	assert_int_equal(revision_of(f), before + 1);
}

/* The list that is not chosen may be the shorter one. */
static void a_longer_list_of_failures_is_executed(void **state)
{
	struct fixture	     *f = *state;
	struct vd_txn_request request = { .compares = f->compares,
					  .compare_count = 1,
					  .success = f->ops,
					  .success_count = 1,
					  .failure = f->ops,
					  .failure_count = 20 };
	struct answer	      answer = { 0 };

	f->compares[0].number = 1000; /* no key has this version */
	for (size_t i = 1; i < 20; i++)
		f->ops[i].range.limit = 1;
	assert_status(vd_store_txn(f->store, &request, got_txn, &answer), VD_OK);
	vdi_sim_run_until_idle(f->env);
	assert_int_equal(answer.count, 1);
	assert_status(answer.status, VD_OK);
	assert_int_equal(answer.result_count, 20);
}

struct results {
	vd_status status;
	vd_rev	  revision;
	vd_rev	  revisions[4];
	int64_t	  deleted;
	size_t	  previous_count;
};

static void got_results(void *arg, vd_status status, const struct vd_txn_result *result,
			const struct vd_error *error)
{
	struct results *results = arg;

	(void) error;
	results->status = status;
	if (status != VD_OK)
		return;
	results->revision = result->revision;
	assert_int_equal(result->result_count, 4);
	for (size_t i = 0; i < 4; i++)
		results->revisions[i] = result->results[i].revision;
	results->previous_count = result->results[0].previous_count;
	results->deleted = result->results[2].deleted;
}

/* A delete that finds nothing makes no revision; from the first change on, every result has the new one. A
 * created key has no previous record. */
static void results_have_the_revision_at_their_operation(void **state)
{
	struct fixture	     *f = *state;
	struct vd_op	      ops[4] = { { .kind = VD_OP_DELETE, .key = K("none"), .previous = true },
					 { .kind = VD_OP_RANGE, .range = { .key = K("k00000") } },
					 { .kind = VD_OP_DELETE, .key = K("k00000") },
					 { .kind = VD_OP_RANGE, .range = { .key = K("k00000") } } };
	struct vd_txn_request request = { .success = ops, .success_count = 4 };
	struct results	      results = { 0 };
	vd_rev		      before = revision_of(f);

	assert_status(vd_store_txn(f->store, &request, got_results, &results), VD_OK);
	vdi_sim_run_until_idle(f->env);
	assert_status(results.status, VD_OK);
	assert_int_equal(results.previous_count, 0);
	assert_int_equal(results.deleted, 1);
	assert_int_equal(results.revisions[0], before);
	assert_int_equal(results.revisions[1], before);
	assert_int_equal(results.revisions[2], before + 1);
	assert_int_equal(results.revisions[3], before + 1);
	assert_int_equal(results.revision, before + 1);
	ops[0] = (struct vd_op) { .kind = VD_OP_PUT, .key = K("new"), .value = K("1"), .previous = true };
	assert_status(vd_store_txn(f->store, &request, got_results, &results), VD_OK);
	vdi_sim_run_until_idle(f->env);
	assert_status(results.status, VD_OK);
	assert_int_equal(results.previous_count, 0);
	assert_int_equal(results.revisions[0], before + 2);
	assert_int_equal(results.revisions[2], before + 2);
	assert_int_equal(results.deleted, 0);
}

/* Of a copy that fails inside a nested transaction nothing is left, and it counts every byte of keys and
 * values. */
static void a_copy_is_whole_or_nothing(void **state)
{
	struct vd_op		    puts[2] = { { .kind = VD_OP_PUT, .key = K("a"), .value = K("12") },
						{ .kind = VD_OP_PUT, .key = K("bcd"), .value = K("3") } };
	const struct vd_txn_request inner = { .success = puts, .success_count = 2 };
	struct vd_op		    ops[2] = { { .kind = VD_OP_TXN, .txn = &inner },
					       { .kind = VD_OP_DELETE, .key = K("ef") } };
	struct vd_compare	    compare = { VD_COMPARE_VALUE, VD_COMPARE_EQUAL, K("h"), VD_BYTES_NONE };
	const struct vd_txn_request outer = {
		.compares = &compare, .compare_count = 1, .success = ops, .success_count = 2
	};
	struct vdi_txn txn;
	void	      *head;
	vd_status      status = VD_NOMEM;

	(void) state;
	for (uint64_t n = 1; status != VD_OK; n++) {
		int64_t live = vdi_alloc_live();

		assert_true(n < 10);
		(void) vdi_alloc_fail_nth(n, 1);
		status = vdi_txn_copy(&outer, 16, &head, &txn);
		(void) vdi_alloc_fail_nth(0, 0);
		if (status == VD_OK) {
			assert_true(n > 3);
			assert_int_equal(txn.size_bytes, 3 + 4 + 2 + 1);
			assert_int_equal(txn.op_count, 2);
			assert_true(txn.has_puts);
			assert_false(txn.is_read_only);
			vdi_txn_fini(&txn);
			vdi_free(head);
		} else {
			assert_status(status, VD_NOMEM);
		}
		assert_int_equal(vdi_alloc_live(), live);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copy_is_whole_or_nothing),
		cmocka_unit_test_setup_teardown(compares_of_many_records_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(compares_of_all_levels_count_together, setup, teardown),
		cmocka_unit_test_setup_teardown(ranges_of_many_records_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(ranges_of_old_revisions_count_their_changes, setup, teardown),
		cmocka_unit_test_setup_teardown(reads_are_not_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(a_range_is_checked_before_the_put_before_it, setup, teardown),
		cmocka_unit_test_setup_teardown(a_longer_list_of_failures_is_executed, setup, teardown),
		cmocka_unit_test_setup_teardown(results_have_the_revision_at_their_operation, setup,
						teardown),
		cmocka_unit_test_setup_teardown(one_pass_over_all_keys_is_allowed, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
