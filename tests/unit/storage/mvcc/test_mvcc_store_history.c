/* What the embedded store remembers: history that compacts itself, reads of revisions that are gone. */
#include <vedette/store.h>

#include "actor_sim.h"
#include "env.h"
#include "mvcc_fixture.h"
#include "mvcc_read.h"
#include "mvcc_store.h"
#include "vdtest.h"

static void got_expired(void *arg, vd_status status, const struct vd_range_result *result,
			const struct vd_error *error)
{
	(void) result;
	assert_status(status, VD_EXPIRED);
	*(struct vd_error *) arg = *error;
}

/* Who asks for too old a revision learns what there is instead. */
static void an_expired_read_names_the_revisions(void **state)
{
	struct vd_env	       *env = mvcc_env_new();
	struct vd_store	       *store = mvcc_store_new(env, NULL);
	struct vd_range_request request = { .key = K("a"), .revision = 2 };
	struct mvcc_call	call = { 0 };
	struct vd_error		error = { 0 };

	(void) state;
	for (int i = 0; i < 5; i++)
		mvcc_put(store, "a", "1");
	assert_status(vd_store_compact(store, 4, true, mvcc_got_done, &call), VD_OK);
	vdi_sim_run_until_idle(env);
	assert_status(call.status, VD_OK);
	assert_status(vd_store_range(store, &request, got_expired, &error), VD_OK);
	assert_int_equal(error.requested, 2);
	assert_int_equal(error.current, 6);
	assert_int_equal(error.compacted, 4);
	vd_store_close_wait(store);
	vd_env_free(env);
}

/* Compaction does not wait for who reads: what a reader still needed of the log is gone, and it is told
 * so. */
static void a_read_that_compaction_overtakes_is_expired(void **state)
{
	struct vd_env	       *env = mvcc_env_new();
	struct vd_store	       *store = mvcc_store_new(env, NULL);
	struct vdi_mvcc	       *mvcc = vdi_mvcc_of(store);
	struct vd_range_request request = { .key = K("a"), .revision = 3 };
	struct mvcc_call	call = { 0 };
	struct vd_error		error = { 0 };
	struct vdi_mvcc_state  *old;
	struct vdi_view		view;
	struct vdi_read		read;

	(void) state;
	for (int i = 0; i < 5; i++)
		mvcc_put(store, "a", "1");
	old = vdi_mvcc_state_get(mvcc);
	view = vdi_view_of_state(old, &mvcc->log);
	for (int i = 0; i < 2000; i++)
		mvcc_put(store, "a", "1");
	assert_status(vd_store_compact(store, 2000, true, mvcc_got_done, &call), VD_OK);
	vdi_sim_run_until_idle(env);
	assert_status(call.status, VD_OK);
	assert_status(vdi_read_range(&view, &request, true, &read, &error), VD_EXPIRED);
	assert_string_equal(error.message, "required revision 3 has been compacted");
	assert_int_equal(error.requested, 3);
	assert_int_equal(error.current, 6);
	assert_int_equal(error.compacted, 2000);
	vdi_mvcc_state_unref(old);
	vd_store_close_wait(store);
	vd_env_free(env);
}

/* The log grows by whole chunks: a new one comes when the old one is full or an eighth of the window old, not
 * before. */
static void a_chunk_of_history_is_filled_before_the_next(void **state)
{
	struct vd_env	      *env = mvcc_env_new();
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct vd_store	      *store;

	(void) state;
	options.history_window = VD_SECONDS(80);
	store = mvcc_store_new(env, &options);
	for (int i = 0; i < 20; i++)
		mvcc_put(store, "a", "1");
	assert_int_equal(vdi_mvcc_of(store)->log.chunk_count, 1);
	vdi_sim_advance(env, VD_SECONDS(9));
	mvcc_put(store, "a", "1");
	assert_int_equal(vdi_mvcc_of(store)->log.chunk_count, 1);
	vdi_sim_advance(env, VD_SECONDS(1));
	mvcc_put(store, "a", "1");
	mvcc_put(store, "a", "1");
	assert_int_equal(vdi_mvcc_of(store)->log.chunk_count, 2);
	vd_store_close_wait(store);
	vd_env_free(env);
}

static void history_compacts_behind_its_window(void **state)
{
	struct vd_env	      *env = mvcc_env_new();
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct vd_store	      *store;
	vd_rev		       at_cut;

	(void) state;
	options.history_window = VD_SECONDS(80);
	store = mvcc_store_new(env, &options);
	for (int i = 0; i < 100; i++)
		mvcc_put(store, "a", "1");
	vdi_sim_advance(env, VD_SECONDS(40));
	at_cut = mvcc_status_of(store).current;
	for (int i = 0; i < 100; i++)
		mvcc_put(store, "a", "2");
	vdi_sim_advance(env, VD_SECONDS(39));
	assert_int_equal(mvcc_status_of(store).compacted, -1);
	vdi_sim_advance(env, VD_SECONDS(2));
	assert_int_equal(mvcc_status_of(store).compacted, at_cut + 1);
	vdi_sim_advance(env, VD_SECONDS(60));
	/* Of the rest the newest remains readable. */
	assert_int_equal(mvcc_status_of(store).compacted, mvcc_status_of(store).current);
	assert_string_equal(mvcc_all_text(store, 0).bytes, "a=2@201/0");
	vd_store_close_wait(store);
	vd_env_free(env);
}

static void history_is_bounded_by_bytes(void **state)
{
	struct vd_env	      *env = mvcc_env_new();
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct vd_store	      *store;
	char		       value[1001] = { 0 };
	struct vd_store_status status;

	(void) state;
	memset(value, 'v', 1000);
	options.history_bytes = 200 * 1000;
	store = mvcc_store_new(env, &options);
	for (int i = 0; i < 1000; i++)
		mvcc_put(store, "a", value);
	vdi_sim_run_until_idle(env);
	status = mvcc_status_of(store);
	/* About 180 of those fit; chunks are a thirty-second of the bound. */
	assert_in_range(status.current - status.compacted, 150, 200);
	vd_store_close_wait(store);
	vd_env_free(env);
}

static void history_without_a_window_stays(void **state)
{
	struct vd_env	      *env = mvcc_env_new();
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct vd_store	      *store;

	(void) state;
	options.history_window = (vd_dur) { 0 };
	options.history_bytes = 1000;
	store = mvcc_store_new(env, &options);
	for (int i = 0; i < 1000; i++)
		mvcc_put(store, "a", "1");
	vdi_sim_advance(env, VD_SECONDS(10000));
	assert_int_equal(mvcc_status_of(store).compacted, -1);
	assert_string_equal(mvcc_all_text(store, 2).bytes, "a=1@2/0");
	vd_store_close_wait(store);
	vd_env_free(env);
}

struct compaction {
	struct vdi_mvcc *mvcc;
	struct mvcc_call call;
	bool		 has_rest; /* when it was answered, records were still to be removed */
};

static void compaction_answered(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	struct compaction *compaction = arg;

	compaction->has_rest = compaction->mvcc->compactor.first != NULL;
	mvcc_got_done(&compaction->call, status, revision, error);
}

/* With physical, the answer comes when the records are gone; without, it does not wait for that. */
static void e462_a_physical_compaction_waits_for_the_removal(void **state)
{
	enum { KEYS = 128, TXNS = 100 };

	(void) state;
	for (unsigned physical = 0; physical < 2; physical++) {
		struct vd_env	 *env = mvcc_env_new();
		struct vd_store	 *store = mvcc_store_new(env, NULL);
		struct compaction compaction = { .mvcc = vdi_mvcc_of(store) };
		struct mvcc_call  call = { 0 };
		struct vd_op	  ops[KEYS];
		char		  keys[KEYS][8];

		for (unsigned i = 0; i < KEYS; i++) {
			(void) snprintf(keys[i], sizeof keys[i], "k%u", i);
			ops[i] = (struct vd_op) { .kind = VD_OP_PUT, .key = K(keys[i]), .value = K("v") };
		}
		for (unsigned i = 0; i < TXNS; i++) {
			struct vd_txn_request request = { .success = ops, .success_count = KEYS };

			assert_status(vd_store_txn(store, &request, mvcc_got_txn, &call), VD_OK);
			(void) vdi_sim_run_until_idle(env);
			assert_status(call.status, VD_OK);
		}
		assert_status(
			vd_store_compact(store, call.revision, physical, compaction_answered, &compaction),
			VD_OK);
		(void) vdi_sim_run_until_idle(env);
		assert_int_equal(compaction.call.answers, 1);
		assert_status(compaction.call.status, VD_OK);
		assert_int_equal(compaction.has_rest, !physical);
		assert_null(compaction.mvcc->compactor.first);
		(void) vd_store_close_wait(store);
		vd_env_free(env);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_expired_read_names_the_revisions),
		cmocka_unit_test(a_read_that_compaction_overtakes_is_expired),
		cmocka_unit_test(a_chunk_of_history_is_filled_before_the_next),
		cmocka_unit_test(history_compacts_behind_its_window),
		cmocka_unit_test(history_is_bounded_by_bytes),
		cmocka_unit_test(history_without_a_window_stays),
		cmocka_unit_test(e462_a_physical_compaction_waits_for_the_removal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
