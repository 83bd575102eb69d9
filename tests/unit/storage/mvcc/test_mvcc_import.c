/* Unit tests of storage/mvcc/mvcc_import.c: what an importer may hand over, and what is refused by name.
 * Whole logs are in test_log_load.c, snapshots of etcd in test_etcd_snapshot_restore.c. */
#include "vdtest.h"

#include "actor_sim.h"
#include "mvcc_open.h"
#include "temp_folder.h"

struct step {
	char	    what;     /* 'p'ut, 'd'elete, 'l'ease, 'c'ompact; 'n': the next transaction */
	vd_rev	    revision; /* of a lease: its id */
	int64_t	    sub;      /* of a lease: its time to live */
	const char *key;
};

struct plan {
	const struct step *steps;
	size_t		   count;
};

static vd_status commit(struct vdi_mvcc_import *import, struct vdi_import_change *changes, size_t *count,
			struct vd_error *reterr)
{
	vd_status status = vdi_mvcc_import_commit(import, changes, *count, reterr);

	for (size_t i = 0; i < *count; i++)
		vd_kv_unref(changes[i].kv);
	*count = 0;
	return status;
}

static vd_status run_plan(void *arg, struct vdi_mvcc_import *import, struct vd_error *reterr)
{
	const struct plan	*plan = arg;
	struct vdi_import_change changes[8] = { 0 };
	size_t			 count = 0;
	vd_status		 status = VD_OK;

	for (size_t i = 0; i < plan->count && status == VD_OK; i++) {
		const struct step *step = &plan->steps[i];

		if (step->what != 'p' && step->what != 'd')
			status = commit(import, changes, &count, reterr);
		if (status != VD_OK)
			break;
		if (step->what == 'l') {
			status = vdi_mvcc_import_lease(import, step->revision, step->sub, reterr);
		} else if (step->what == 'c') {
			status = vdi_mvcc_import_compact(import, step->revision, reterr);
		} else if (step->what != 'n') {
			struct vd_kv *kv;

			assert_status(vd_kv_new(vd_bytes_of(step->key), vd_bytes_of("v"), &kv), VD_OK);
			kv->mod_rev = step->revision;
			kv->sub = (uint32_t) step->sub;
			changes[count++] =
				(struct vdi_import_change) { .is_delete = step->what == 'd', .kv = kv };
		}
	}
	return status == VD_OK ? commit(import, changes, &count, reterr) :
				 status; /* what follows a refusal is never gathered */
}

static void expect(const struct step *steps, size_t count, bool is_exact, vd_rev current,
		   const char *sentence)
{
	struct vd_mvcc_options	 options = VD_MVCC_OPTIONS_INIT;
	struct plan		 plan = { steps, count };
	struct vdi_mvcc_importer importer = { .run = run_plan, .arg = &plan, .is_exact = is_exact };
	struct vd_env		*env;
	struct vd_store		*store = NULL;
	struct vd_store_status	 status;
	struct vd_error		 error = { 0 };

	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	if (sentence) {
		assert_status(vdi_mvcc_open_importing(env, &options, NULL, &importer, &store, &error),
			      VD_INVALID);
		if (strstr(error.message, sentence) == NULL)
			fail_msg("not \"%s\" but \"%s\"", sentence, error.message);
	} else {
		if (vdi_mvcc_open_importing(env, &options, NULL, &importer, &store, &error) != VD_OK)
			fail_msg("%s", error.message);
		assert_status(vd_store_status_get(store, &status), VD_OK);
		assert_int_equal(status.current, current);
		(void) vd_store_close_wait(store);
	}
	vd_env_free(env);
}
#define EXPECT(is_exact, current, sentence, ...)                                                             \
	expect((const struct step[]) { __VA_ARGS__ },                                                        \
	       sizeof((const struct step[]) { __VA_ARGS__ }) / sizeof(struct step), is_exact, current,       \
	       sentence)

static void revisions_follow_each_other(void **state)
{
	(void) state;
	EXPECT(false, 7, NULL, { 'p', 3, 0, "a" }, { 'p', 3, 0, "b" }, { 'n' }, { 'p', 7, 0, "a" });
	EXPECT(false, 0, "revision 3 does not follow 3", { 'p', 3, 0, "a" }, { 'n' }, { 'p', 3, 0, "b" });
	EXPECT(false, 0, "revision 2 does not follow 3", { 'p', 3, 0, "a" }, { 'n' }, { 'p', 2, 0, "b" });
	EXPECT(false, 0, "one key twice in a transaction", { 'p', 3, 0, "a" }, { 'p', 3, 1, "a" });
	EXPECT(false, 0, "a delete of a key that does not exist", { 'd', 3, 0, "a" });
	EXPECT(false, 4, NULL, { 'p', 3, 0, "a" }, { 'n' }, { 'd', 4, 0, "a" });
}

/* Of another store of this kind: the places within a transaction are kept, and a key may come twice. */
static void exact_records_stand_in_their_order(void **state)
{
	(void) state;
	EXPECT(true, 3, NULL, { 'p', 3, 0, "a" }, { 'p', 3, 1, "a" });
	EXPECT(true, 3, NULL, { 'p', 3, 2, "a" }, { 'p', 3, 5, "b" });
	EXPECT(true, 0, "out of its order within a transaction", { 'p', 3, 1, "a" }, { 'p', 3, 1, "b" });
	EXPECT(true, 0, "out of its order within a transaction", { 'p', 3, 1, "a" }, { 'p', 3, 0, "b" });
}

static void leases_have_an_id_and_a_time_to_live(void **state)
{
	(void) state;
	EXPECT(true, 2, NULL, { 'l', 7, 10 }, { 'l', 8, 1 }, { 'p', 2, 0, "a" });
	EXPECT(true, 0, "lease 0 cannot be imported", { 'l', 0, 10 });
	EXPECT(true, 0, "lease 7 cannot be imported", { 'l', 7, 0 });
	EXPECT(true, 0, "lease 7 cannot be imported", { 'l', 7, 10 }, { 'l', 7, 10 });
}

/* A snapshot at `revision` of one key that was put at 4, with lease 7, and perhaps that lease. */
struct snapshot {
	vd_rev revision;
	bool   has_lease;
};

static vd_status run_snapshot(void *arg, struct vdi_mvcc_import *import, struct vd_error *reterr)
{
	const struct snapshot	*snapshot = arg;
	struct vdi_import_change change = { 0 };
	vd_status		 status = VD_OK;

	assert_status(vd_kv_new(vd_bytes_of("a"), vd_bytes_of("v"), &change.kv), VD_OK);
	change.kv->mod_rev = 4;
	change.kv->lease = 7;
	if (snapshot->has_lease)
		status = vdi_mvcc_import_lease(import, 7, 10, reterr);
	if (status == VD_OK)
		status = vdi_mvcc_import_snapshot(import, snapshot->revision, &change, 1, reterr);
	vd_kv_unref(change.kv);
	return status;
}

static int64_t lease_of_snapshot(vd_rev revision, bool has_lease, bool is_exact, vd_status expected)
{
	struct vd_mvcc_options	 options = VD_MVCC_OPTIONS_INIT;
	struct snapshot		 snapshot = { revision, has_lease };
	struct vdi_mvcc_importer importer = { .run = run_snapshot, .arg = &snapshot, .is_exact = is_exact };
	struct vd_env		*env;
	struct vd_store		*store = NULL;
	struct vd_store_status	 status;
	struct vd_kv		*kv = NULL;
	struct vd_error		 error = { 0 };
	int64_t			 lease = -1;

	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	assert_status(vdi_mvcc_open_importing(env, &options, NULL, &importer, &store, &error), expected);
	if (expected == VD_OK) {
		assert_status(vd_store_status_get(store, &status), VD_OK);
		assert_int_equal(status.current, 4); /* that of the newest record */
		assert_status(vd_store_get_wait(store, vd_bytes_of("a"), &kv, NULL), VD_OK);
		lease = kv->lease;
		vd_kv_unref(kv);
		(void) vd_store_close_wait(store);
	} else {
		assert_non_null(strstr(error.message, "not part of a snapshot"));
	}
	vd_env_free(env);
	return lease;
}

/* The newest record may be of the snapshot's revision; only exact imports know the leases. */
static void a_snapshot_has_what_was_put_until_its_revision(void **state)
{
	(void) state;
	assert_int_equal(lease_of_snapshot(4, true, true, VD_OK), 7);
	assert_int_equal(lease_of_snapshot(4, false, true, VD_OK), 0);
	assert_int_equal(lease_of_snapshot(4, true, false, VD_OK), 0);
	assert_int_equal(lease_of_snapshot(5, true, true, VD_OK), 7);
	assert_int_equal(lease_of_snapshot(3, true, true, VD_INVALID), -1);
}

static vd_status run_snapshot_plan(void *arg, struct vdi_mvcc_import *import, struct vd_error *reterr)
{
	const struct plan	*plan = arg;
	struct vdi_import_change changes[8] = { 0 };
	vd_status		 status;

	for (size_t i = 0; i < plan->count; i++) {
		changes[i].is_delete = plan->steps[i].what == 'd';
		assert_status(vd_kv_new(vd_bytes_of(plan->steps[i].key), vd_bytes_of("v"), &changes[i].kv),
			      VD_OK);
		changes[i].kv->mod_rev = plan->steps[i].revision;
	}
	status = vdi_mvcc_import_snapshot(import, 9, changes, plan->count, reterr);
	for (size_t i = 0; i < plan->count; i++)
		vd_kv_unref(changes[i].kv);
	return status;
}

static void expect_snapshot(const struct step *steps, size_t count, vd_rev current, const char *sentence)
{
	struct vd_mvcc_options	 options = VD_MVCC_OPTIONS_INIT;
	struct plan		 plan = { steps, count };
	struct vdi_mvcc_importer importer = { .run = run_snapshot_plan, .arg = &plan };
	struct vd_env		*env;
	struct vd_store		*store = NULL;
	struct vd_store_status	 status;
	struct vd_error		 error = { 0 };

	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	assert_status(vdi_mvcc_open_importing(env, &options, NULL, &importer, &store, &error),
		      sentence ? VD_INVALID : VD_OK);
	if (sentence && strstr(error.message, sentence) == NULL)
		fail_msg("not \"%s\" but \"%s\"", sentence, error.message);
	if (store) {
		assert_status(vd_store_status_get(store, &status), VD_OK);
		assert_int_equal(status.current, current);
		assert_int_equal(status.compacted, current);
		assert_int_equal(status.key_count, count);
		(void) vd_store_close_wait(store);
	}
	vd_env_free(env);
}
#define EXPECT_SNAPSHOT(current, sentence, ...)                                                              \
	expect_snapshot((const struct step[]) { __VA_ARGS__ },                                               \
			sizeof((const struct step[]) { __VA_ARGS__ }) / sizeof(struct step), current,        \
			sentence)

/* A snapshot has the keys that exist, in any order: each once, and no deletes. */
static void a_snapshot_has_each_key_once_and_no_deletes(void **state)
{
	(void) state;
	EXPECT_SNAPSHOT(8, NULL, { 'p', 8, 0, "b" }, { 'p', 3, 0, "c" }, { 'p', 3, 0, "a" });
	EXPECT_SNAPSHOT(0, "not part of a snapshot", { 'd', 3, 0, "a" });
	EXPECT_SNAPSHOT(0, "not part of a snapshot", { 'p', 3, 0, "a" }, { 'd', 3, 0, "b" });
	EXPECT_SNAPSHOT(0, "not part of a snapshot", { 'p', 3, 0, "a" }, { 'd', 4, 0, "a" });
	EXPECT_SNAPSHOT(0, "not part of a snapshot", { 'p', 3, 0, "a" }, { 'p', 10, 0, "b" });
	EXPECT_SNAPSHOT(0, "one key twice in a snapshot", { 'p', 4, 0, "a" }, { 'p', 3, 0, "a" });
	EXPECT_SNAPSHOT(0, "one key twice in a transaction", { 'p', 3, 0, "a" }, { 'p', 3, 0, "a" });
}

static vd_status run_snapshot_late(void *arg, struct vdi_mvcc_import *import, struct vd_error *reterr)
{
	vd_status status = run_plan(arg, import, reterr);

	return status == VD_OK ? vdi_mvcc_import_snapshot(import, 9, NULL, 0, reterr) : status;
}

static void a_snapshot_comes_first(void **state)
{
	static const struct step step = { 'p', 3, 0, "a" };
	struct vd_mvcc_options	 options = VD_MVCC_OPTIONS_INIT;
	struct plan		 plan = { &step, 1 };
	struct vdi_mvcc_importer importer = { .run = run_snapshot_late, .arg = &plan };
	struct vd_env		*env;
	struct vd_store		*store = NULL;
	struct vd_error		 error = { 0 };

	(void) state;
	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	assert_status(vdi_mvcc_open_importing(env, &options, NULL, &importer, &store, &error), VD_INVALID);
	assert_non_null(strstr(error.message, "a snapshot must come before all changes"));
	vd_env_free(env);
}

static void compaction_ends_at_the_last_revision(void **state)
{
	(void) state;
	EXPECT(false, 5, NULL, { 'p', 3, 0, "a" }, { 'n' }, { 'p', 5, 0, "a" }, { 'c', 5 });
	EXPECT(false, 0, "compaction at 6, beyond the last revision 5", { 'p', 5, 0, "a" }, { 'c', 6 });
	EXPECT(true, 6, NULL, { 'p', 5, 0, "a" }, { 'c', 6 });
}

static void got_lease(void *arg, vd_status status, const struct vd_lease_result *result,
		      const struct vd_error *error)
{
	assert_status(status, VD_OK);
	*(struct vd_lease_result *) arg = *result;
}

/* What was imported is there after the next start: keys, compaction, leases with what hangs on them. */
static void what_was_imported_is_durable(void **state)
{
	static const struct step steps[] = { { 'l', 7, 100 },	 { 'l', 8, 2 },	     { 'l', 9, INT64_MAX },
					     { 'p', 3, 0, "a" }, { 'p', 3, 1, "b" }, { 'n' },
					     { 'd', 5, 0, "a" }, { 'c', 4 } };
	struct plan		 plan = { steps, VDI_ARRAY_SIZE(steps) };
	struct vdi_mvcc_importer importer = { .run = run_plan, .arg = &plan, .is_exact = true };
	struct vd_mvcc_options	 options = VD_MVCC_OPTIONS_INIT;
	char			 path[TEMP_FOLDER_SIZE];
	struct vd_lease_result	 lease;
	struct vd_store_status	 status;
	struct vd_error		 error = { 0 };
	struct vd_env		*env;
	struct vd_store		*store;
	struct vd_kv		*kv;

	temp_folder_make(path);
	options.data_dir = path;
	options.no_sync = true;
	for (int start = 0; start < 2; start++) {
		assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
		assert_status(start ? vd_store_open_mvcc(env, &options, &store, &error) :
				      vdi_mvcc_open_importing(env, &options, NULL, &importer, &store, &error),
			      VD_OK);
		assert_status(vd_store_status_get(store, &status), VD_OK);
		assert_int_equal(status.current, 5);
		assert_int_equal(status.compacted, 4);
		assert_int_equal(status.key_count, 1);
		assert_true(status.size_bytes > 0);
		assert_status(vd_store_get_wait(store, vd_bytes_of("b"), &kv, NULL), VD_OK);
		assert_int_equal(kv->mod_rev, 3);
		vd_kv_unref(kv);
		memset(&lease, 0, sizeof lease);
		assert_status(vd_store_lease_time_to_live(store, 7, true, got_lease, &lease), VD_OK);
		vdi_sim_run_until_idle(env);
		assert_int_equal(lease.granted_ttl_s, 100);
		/* A restart gives time to renew, but never more than the lease has. */
		assert_status(vd_store_lease_time_to_live(store, 8, false, got_lease, &lease), VD_OK);
		vdi_sim_run_until_idle(env);
		assert_int_equal(lease.granted_ttl_s, 2);
		assert_in_range(lease.ttl_s, 1, 2);
		assert_status(vd_store_lease_time_to_live(store, 9, false, got_lease, &lease), VD_OK);
		vdi_sim_run_until_idle(env);
		assert_true(lease.ttl_s > 1000000);
		(void) vd_store_close_wait(store);
		vd_env_free(env);
	}
	/* Only an empty one is filled. */
	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	assert_status(vdi_mvcc_open_importing(env, &options, NULL, &importer, &store, &error), VD_EXISTS);
	assert_non_null(strstr(error.message, "it has 1 keys and is at revision 5"));
	vd_env_free(env);
	temp_folder_remove(path);
}

static vd_status run_long(void *arg, struct vdi_mvcc_import *import, struct vd_error *reterr)
{
	for (vd_rev revision = 2; revision < 5000; revision++) {
		struct vdi_import_change change = { 0 };
		struct vd_kv		*kv;
		char			 key[32];

		snprintf(key, sizeof key, "k%02lld", (long long) (revision < 22 ? revision : 99));
		assert_status(vd_kv_new(vd_bytes_of(key), vd_bytes_of("v"), &kv), VD_OK);
		kv->mod_rev = revision;
		change.kv = kv;
		assert_status(vdi_mvcc_import_commit(import, &change, 1, reterr), VD_OK);
		vd_kv_unref(kv);
	}
	return VD_OK;
}

static void got_count(void *arg, vd_status status, const struct vd_range_result *result,
		      const struct vd_error *error)
{
	assert_status(status, VD_OK);
	*(int64_t *) arg = result->count;
}

/* Each revision of a long import can be read. */
static void what_was_imported_is_history(void **state)
{
	struct vdi_mvcc_importer importer = { .run = run_long };
	struct vd_mvcc_options	 options = VD_MVCC_OPTIONS_INIT;
	struct vd_env		*env;
	struct vd_store		*store;

	options.history_window = (vd_dur) { 0 };
	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	assert_status(vdi_mvcc_open_importing(env, &options, NULL, &importer, &store, NULL), VD_OK);
	for (vd_rev revision = 2; revision < 5000; revision += 97) {
		struct vd_range_request request = { .key = vd_bytes_of("k"),
						    .range_end = vd_bytes_of("l"),
						    .revision = revision };
		int64_t			count = -1;

		assert_status(vd_store_range(store, &request, got_count, &count), VD_OK);
		vdi_sim_run_until_idle(env);
		assert_int_equal(count, revision < 22 ? revision - 1 : 21);
	}
	(void) vd_store_close_wait(store);
	vd_env_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(revisions_follow_each_other),
		cmocka_unit_test(exact_records_stand_in_their_order),
		cmocka_unit_test(leases_have_an_id_and_a_time_to_live),
		cmocka_unit_test(a_snapshot_has_what_was_put_until_its_revision),
		cmocka_unit_test(a_snapshot_has_each_key_once_and_no_deletes),
		cmocka_unit_test(a_snapshot_comes_first),
		cmocka_unit_test(compaction_ends_at_the_last_revision),
		cmocka_unit_test(what_was_imported_is_durable),
		cmocka_unit_test(what_was_imported_is_history),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
