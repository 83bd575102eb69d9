/* Unit tests of storage/mvcc/mvcc_walk.c: which records a hash and a snapshot are made of, before and after
 * compaction. */
#include "actor_sim.h"
#include "feed_store.h"
#include "mvcc_walk.h"
#include "vdtest.h"

#define K(text) vd_bytes_of(text)

struct walked {
	char	  text[1024];
	size_t	  size;
	unsigned  begun, records, fail_at;
	vd_status fail_with;
	vd_rev	  current, compacted, revision;
};

static void begin(void *arg, const struct vdi_mvcc_walk *walk)
{
	struct walked *walked = arg;

	assert_int_equal(walked->records, 0);
	walked->begun++;
	walked->current = walk->current;
	walked->compacted = walk->compacted;
	walked->revision = walk->revision;
}

static vd_status each(void *arg, const struct vd_kv *kv, bool is_delete)
{
	struct walked  *walked = arg;
	struct vd_bytes key = vd_kv_key(kv);

	if (++walked->records == walked->fail_at)
		return walked->fail_with;
	walked->size += (size_t) snprintf(walked->text + walked->size, sizeof walked->text - walked->size,
					  "%s%s%.*s@%lld", walked->size ? " " : "", is_delete ? "-" : "",
					  (int) key.size, (const char *) key.data, (long long) kv->mod_rev);
	return VD_OK;
}

static struct walked walk(struct vd_store *store, enum vdi_mvcc_walk_kind kind, vd_rev revision)
{
	struct walked	     walked = { 0 };
	struct vdi_mvcc_walk request = { .begin = begin, .each = each, .arg = &walked };

	assert_status(vdi_mvcc_walk(store, kind, revision, &request), VD_OK);
	assert_int_equal(walked.begun, 1);
	return walked;
}

static void put(struct vd_store *store, const char *key)
{
	assert_status(vd_store_put_wait(store, K(key), K("v"), NULL, NULL), VD_OK);
}

static void compacted(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	(void) arg;
	(void) revision;
	(void) error;
	assert_status(status, VD_OK);
}

/* a@2 b@3 a@4 -b@5 c@6 a@7 */
static struct vd_store *store_new(struct vd_env **ret_env)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct vd_store	      *store;

	options.history_window = (vd_dur) { 0 };
	assert_status(vdi_env_new_sim(1, NULL, NULL, ret_env), VD_OK);
	assert_status(vd_store_open_mvcc(*ret_env, &options, &store, NULL), VD_OK);
	put(store, "a");
	put(store, "b");
	put(store, "a");
	assert_status(vd_store_delete_wait(store, K("b"), VD_BYTES_NONE, NULL, NULL, NULL), VD_OK);
	put(store, "c");
	put(store, "a");
	return store;
}

static void everything_is_walked_before_a_compaction(void **state)
{
	struct vd_env	*env;
	struct vd_store *store = store_new(&env);

	(void) state;
	for (int kind = VDI_MVCC_WALK_HASH; kind <= VDI_MVCC_WALK_SNAPSHOT; kind++) {
		struct walked walked = walk(store, (enum vdi_mvcc_walk_kind) kind, 0);

		assert_string_equal(walked.text, "a@2 b@3 a@4 -b@5 c@6 a@7");
		assert_int_equal(walked.current, 7);
		assert_int_equal(walked.compacted, -1);
		assert_int_equal(walked.revision, 7);
		walked = walk(store, (enum vdi_mvcc_walk_kind) kind, 4);
		assert_string_equal(walked.text, "a@2 b@3 a@4");
		assert_int_equal(walked.current, 7);
		assert_int_equal(walked.revision, 4);
		assert_string_equal(walk(store, (enum vdi_mvcc_walk_kind) kind, 7).text,
				    "a@2 b@3 a@4 -b@5 c@6 a@7");
	}
	vd_store_close_wait(store);
	vd_env_free(env);
}

static void e406_e470_of_what_is_compacted_only_what_is_kept(void **state)
{
	struct vd_env	    *env;
	struct vd_store	    *store = store_new(&env);
	struct vdi_mvcc_walk request = { .each = each };
	struct walked	     walked;

	(void) state;
	assert_status(vd_store_compact(store, 5, true, compacted, NULL), VD_OK);
	vdi_sim_run_until_idle(env);
	/* What was alive then, and what was deleted at that very revision; then everything. */
	walked = walk(store, VDI_MVCC_WALK_SNAPSHOT, 0);
	assert_string_equal(walked.text, "a@4 -b@5 c@6 a@7");
	assert_int_equal(walked.compacted, 5);
	assert_string_equal(walk(store, VDI_MVCC_WALK_SNAPSHOT, 6).text, "a@4 -b@5 c@6");
	/* Of what is old, that which is alive at the revision asked for. */
	assert_string_equal(walk(store, VDI_MVCC_WALK_HASH, 0).text, "c@6 a@7");
	assert_string_equal(walk(store, VDI_MVCC_WALK_HASH, 6).text, "a@4 c@6");
	walked = (struct walked) { 0 };
	request.arg = &walked;
	assert_status(vdi_mvcc_walk(store, VDI_MVCC_WALK_HASH, 4, &request), VD_EXPIRED);
	assert_status(vdi_mvcc_walk(store, VDI_MVCC_WALK_HASH, 8, &request), VD_TOO_LARGE_REVISION);
	assert_int_equal(walked.records, 0);
	vd_store_close_wait(store);
	vd_env_free(env);
}

/* A key that was made at the very revision asked for is kept like any other: only one that the same
 * transaction also deleted is not (E-470). */
static void e470_what_was_made_at_the_revision_is_kept(void **state)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct vd_env	      *env;
	struct vd_store	      *store;

	(void) state;
	options.history_window = (vd_dur) { 0 };
	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	assert_status(vd_store_open_mvcc(env, &options, &store, NULL), VD_OK);
	put(store, "a");
	put(store, "a");
	assert_status(vd_store_delete_wait(store, K("a"), VD_BYTES_NONE, NULL, NULL, NULL), VD_OK);
	put(store, "b");
	assert_status(vd_store_compact(store, 3, true, compacted, NULL), VD_OK);
	vdi_sim_run_until_idle(env);
	assert_string_equal(walk(store, VDI_MVCC_WALK_HASH, 5).text, "-a@4 b@5");
	assert_string_equal(walk(store, VDI_MVCC_WALK_HASH, 3).text, "a@3");
	vd_store_close_wait(store);
	vd_env_free(env);
}

static void written(void *arg, vd_status status, const struct vd_txn_result *result,
		    const struct vd_error *error)
{
	(void) arg;
	(void) result;
	(void) error;
	assert_status(status, VD_OK);
}

/* The order is that of the writes, also among records of one revision, and not that of the keys. */
static void records_come_in_the_order_they_were_made(void **state)
{
	struct vd_env	     *env;
	struct vd_store	     *store = store_new(&env);
	struct vd_op	      ops[3] = { { .kind = VD_OP_PUT, .key = K("z") },
					 { .kind = VD_OP_PUT, .key = K("x") },
					 { .kind = VD_OP_PUT, .key = K("y") } };
	struct vd_txn_request txn = { .success = ops, .success_count = 3 };

	(void) state;
	assert_status(vd_store_txn(store, &txn, written, NULL), VD_OK);
	vdi_sim_run_until_idle(env);
	put(store, "b");
	assert_status(vd_store_compact(store, 9, true, compacted, NULL), VD_OK);
	vdi_sim_run_until_idle(env);
	assert_string_equal(walk(store, VDI_MVCC_WALK_SNAPSHOT, 0).text, "c@6 a@7 z@8 x@8 y@8 b@9");
	assert_string_equal(walk(store, VDI_MVCC_WALK_HASH, 0).text, "c@6 a@7 z@8 x@8 y@8 b@9");
	vd_store_close_wait(store);
	vd_env_free(env);
}

static void the_first_refusal_ends_the_walk(void **state)
{
	struct vd_env	*env;
	struct vd_store *store = store_new(&env);

	(void) state;
	assert_status(vd_store_compact(store, 6, true, compacted, NULL), VD_OK); /* a@4 c@6 | a@7 */
	vdi_sim_run_until_idle(env);
	for (unsigned i = 1; i <= 4; i++) {
		struct walked	     walked = { .fail_at = i, .fail_with = VD_FULL };
		struct vdi_mvcc_walk request = { .each = each, .arg = &walked };

		assert_status(vdi_mvcc_walk(store, VDI_MVCC_WALK_SNAPSHOT, 0, &request),
			      i <= 3 ? VD_FULL : VD_OK);
		assert_int_equal(walked.records, i <= 3 ? i : 3);
	}
	vd_store_close_wait(store);
	vd_env_free(env);
}

static void torture_a_walk(void **state)
{
	struct vd_env	*env;
	struct vd_store *store = store_new(&env);
	bool		 over = false;
	unsigned	 failed = 0;

	(void) state;
	assert_status(vd_store_compact(store, 5, true, compacted, NULL), VD_OK);
	vdi_sim_run_until_idle(env);
	for (uint64_t nth = 1; !over; nth++) {
		struct walked	     walked = { 0 };
		struct vdi_mvcc_walk request = { .each = each, .arg = &walked };
		int64_t		     live = vdi_alloc_live();
		vd_status	     status;

		(void) vdi_alloc_fail_nth(nth, 1);
		status = vdi_mvcc_walk(store, VDI_MVCC_WALK_SNAPSHOT, 6, &request);
		over = !vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_int_equal(vdi_alloc_live(), live);
		assert_status(status, over ? VD_OK : VD_NOMEM);
		failed += !over;
		if (over)
			assert_string_equal(walked.text, "a@4 -b@5 c@6");
	}
	assert_true(failed > 1);
	vd_store_close_wait(store);
	vd_env_free(env);
}

static void other_stores_cannot_be_walked(void **state)
{
	struct vdi_mvcc_walk request = { .each = each };
	struct vd_store	    *feed;
	struct vd_env	    *env;

	(void) state;
	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	feed = feed_store_new(env);
	assert_status(vdi_mvcc_walk(feed, VDI_MVCC_WALK_SNAPSHOT, 0, &request), VD_UNSUPPORTED);
	feed_store_free(feed);
	vd_env_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_is_walked_before_a_compaction),
		cmocka_unit_test(e406_e470_of_what_is_compacted_only_what_is_kept),
		cmocka_unit_test(e470_what_was_made_at_the_revision_is_kept),
		cmocka_unit_test(records_come_in_the_order_they_were_made),
		cmocka_unit_test(the_first_refusal_ends_the_walk),
		cmocka_unit_test(torture_a_walk),
		cmocka_unit_test(other_stores_cannot_be_walked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
