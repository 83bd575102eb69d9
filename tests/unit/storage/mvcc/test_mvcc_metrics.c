/* Unit tests of storage/mvcc/mvcc_metrics.c: what the metrics of a store say while it works. Counters of
 * single operations are in test_mvcc_store.c. */
#include "mvcc_metrics.h"

#include "actor_sim.h"
#include "env.h"
#include "mvcc_fixture.h"
#include "temp_folder.h"
#include "vdtest.h"

static int64_t metric(struct vd_env *env, enum vdi_metric_id id)
{
	struct vdi_metric *instance;
	int64_t		   value;

	assert_status(vdi_metric_get(vdi_env_metrics(env), id, NULL, &instance), VD_OK);
	value = vdi_metric_value(instance);
	vdi_metric_release(instance);
	return value;
}

/* The gauges are set when metrics are read. */
static void collect(struct vd_env *env)
{
	struct vdi_buffer text;

	vdi_buffer_init(&text, 1 << 20);
	assert_status(vdi_metrics_render(vdi_env_metrics(env), &text), VD_OK);
	vdi_buffer_fini(&text);
}

static int64_t slow_watchers(struct vd_env *env)
{
	collect(env);
	return metric(env, VDI_METRIC_ETCD_MVCC_SLOW_WATCHERS);
}

/* A watch is slow from the event that it has to read until it has read everything; never one that waits. */
static void slow_watchers_have_something_to_read(void **state)
{
	struct vd_env		     *env = mvcc_env_new();
	struct vd_store		     *store = mvcc_store_new(env, NULL);
	int			      woken = 0;
	struct vd_store_watch_request request = { .key = K("a"),
						  .ready = mvcc_count_ready,
						  .ready_arg = &woken };
	struct vd_store_watch	     *watches[3];
	struct vd_store_batch	      batch;

	(void) state;
	assert_int_equal(slow_watchers(env), 0);
	for (int i = 0; i < 3; i++) {
		request.key = K(i < 2 ? "a" : "b");
		assert_status(vd_store_watch_open(store, &request, &watches[i], NULL), VD_OK);
	}
	assert_int_equal(slow_watchers(env), 0);
	assert_int_equal(metric(env, VDI_METRIC_ETCD_MVCC_WATCHERS), 3);
	for (int round = 0; round < 3; round++) {
		mvcc_put(store, "a", "1");
		assert_int_equal(slow_watchers(env), 2);
		assert_status(vd_store_watch_next(watches[0], 10, &batch, NULL), VD_OK);
		assert_status(vd_store_watch_next(watches[0], 10, &batch, NULL), VD_AGAIN);
		assert_int_equal(slow_watchers(env), 1);
		assert_status(vd_store_watch_next(watches[1], 10, &batch, NULL), VD_OK);
		assert_status(vd_store_watch_next(watches[1], 10, &batch, NULL), VD_AGAIN);
		assert_int_equal(slow_watchers(env), 0);
	}
	mvcc_put(store, "a", "1");
	vd_store_watch_close(watches[0]); /* a slow one and one that waits */
	vd_store_watch_close(watches[2]);
	assert_int_equal(slow_watchers(env), 1);
	assert_int_equal(metric(env, VDI_METRIC_ETCD_MVCC_WATCHERS), 1);
	vd_store_watch_close(watches[1]);
	assert_int_equal(slow_watchers(env), 0);
	assert_int_equal(metric(env, VDI_METRIC_ETCD_MVCC_WATCHERS), 0);
	vd_store_close_wait(store);
	vd_env_free(env);
}

/* Both are zero for a store in memory, which is not compacted either. */
static void disk_space_is_told(void **state)
{
	struct vd_env	      *env = mvcc_env_new();
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct vd_store	      *store = mvcc_store_new(env, NULL);
	char		       directory[TEMP_FOLDER_SIZE];

	(void) state;
	mvcc_put(store, "a", "1");
	collect(env);
	assert_int_equal(metric(env, VDI_METRIC_STORE_RESERVE_BYTES), 0);
	vd_store_close_wait(store);
	temp_folder_make(directory);
	options.data_dir = directory;
	options.no_sync = true;
	store = mvcc_store_new(env, &options);
	mvcc_put(store, "a", "1");
	mvcc_put(store, "b", "1");
	collect(env);
	assert_true(metric(env, VDI_METRIC_STORE_RESERVE_BYTES) > 0);
	assert_true(mvcc_status_of(store).size_bytes > 0);
	assert_int_equal(metric(env, VDI_METRIC_ETCD_MVCC_DB_TOTAL_SIZE), mvcc_status_of(store).size_bytes);
	assert_int_equal(metric(env, VDI_METRIC_ETCD_MVCC_DB_TOTAL_SIZE_IN_USE),
			 mvcc_status_of(store).size_bytes);
	assert_int_equal(metric(env, VDI_METRIC_STORE_KEYS), 2);
	vd_store_close_wait(store);
	collect(env); /* of no store any more */
	vd_env_free(env);
	temp_folder_remove(directory);
}

/* A write that the quota refuses is counted as refused, and is no commit: nothing is published. */
static void a_refused_write_is_no_commit(void **state)
{
	struct vd_env	      *env = mvcc_env_new();
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct vd_store	      *store;
	char		       directory[TEMP_FOLDER_SIZE];
	vd_rev		       revision, current;
	int64_t		       commits, txns;

	(void) state;
	temp_folder_make(directory);
	options.data_dir = directory;
	options.no_sync = true;
	store = mvcc_store_new(env, &options);
	mvcc_put(store, "a", "1");
	options.quota_bytes = mvcc_status_of(store).size_bytes + 64;
	vd_store_close_wait(store);
	store = mvcc_store_new(env, &options);
	while (vd_store_put_wait(store, K("c"), K("0123456789012345678901234567890123456789"), &revision,
				 NULL) == VD_OK)
		continue;
	assert_int_equal(metric(env, VDI_METRIC_STORE_QUOTA_FULL_TOTAL), 1);
	assert_int_equal(metric(env, VDI_METRIC_STORE_DISK_FULL_TOTAL), 0);
	commits = metric(env, VDI_METRIC_STORE_COMMITS_TOTAL);
	txns = metric(env, VDI_METRIC_STORE_TXNS_TOTAL);
	current = mvcc_status_of(store).current;
	for (int i = 2; i < 5; i++) {
		assert_status(vd_store_put_wait(store, K("d"), K("0123456789012345678901234567890123456789"),
						&revision, NULL),
			      VD_NO_SPACE);
		assert_int_equal(metric(env, VDI_METRIC_STORE_QUOTA_FULL_TOTAL), i);
	}
	assert_int_equal(metric(env, VDI_METRIC_STORE_COMMITS_TOTAL), commits);
	assert_int_equal(metric(env, VDI_METRIC_STORE_TXNS_TOTAL), txns);
	assert_int_equal(mvcc_status_of(store).current, current);
	vd_store_close_wait(store);
	vd_env_free(env);
	temp_folder_remove(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slow_watchers_have_something_to_read),
		cmocka_unit_test(disk_space_is_told),
		cmocka_unit_test(a_refused_write_is_no_commit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
