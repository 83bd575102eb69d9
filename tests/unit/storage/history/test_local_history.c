/* Unit tests of storage/history/local_history.c, local_recorder.c and local_watch.c: over the embedded store,
 * which plays an etcd that goes on while the server is stopped and started; on a simulated disk. */
#include "actor_sim.h"
#include "cacher.h"
#include "cacher_fixture.h"
#include "disk_sim.h"
#include "env.h"
#include "journal_segment.h"
#include "local_store.h"
#include "local_world.h"
#include "part_store.h"
#include "store_chaos.h"

static vd_status local_watch_ends_with(struct local_world *w, vd_rev after)
{
	struct vd_store_watch_request request = { .key = K("/registry/pods/"),
						  .range_end = K("/registry/pods0"),
						  .start_revision = after + 1,
						  .ready = local_ignore_ready };
	struct vd_store_watch	     *watch;
	struct vd_store_batch	      batch;
	vd_status		      status;

	assert_status(vd_store_watch_open(w->store, &request, &watch, NULL), VD_OK);
	vdi_sim_advance(w->env, VD_MS(100));
	while ((status = vd_store_watch_next(watch, 100, &batch, NULL)) == VD_OK)
		;
	vd_store_watch_close(watch);
	return status;
}

/* ---- Restarts ---- */

static void a_watch_goes_on_across_a_restart_whatever_was_compacted(void **state)
{
	for (int is_cut = 0; is_cut < 2; is_cut++) {
		struct local_world w;
		vd_rev		   before, last, later;

		local_world_init(&w, 1);
		local_put(&w, "/registry/pods/ns/first", "{}");
		local_start(&w);
		assert_int_equal(local_status_of(&w).history, 0);
		before = local_put_some(&w, 100);
		last = local_put_some(&w, 100);
		vdi_sim_advance(w.env, VD_SECONDS(20)); /* synced */
		if (is_cut)
			local_power_cut(&w);
		else
			local_stop(&w);
		/* Meanwhile: more happens, and what was recorded is compacted. */
		local_compact(&w, last);
		later = local_put_some(&w, 30);
		local_start(&w);
		assert_int_equal(local_log_lines(&w, "W "), 0);
		assert_int_equal(local_log_lines(&w, "watches can resume from revision 1: "), 1);
		assert_int_equal(local_status_of(&w).history, 1);
		assert_true(local_assert_watch(&w, "/registry/", 1) > 200);
		assert_true(local_assert_watch(&w, "/registry/pods/ns/p1", before) > 10);
		assert_true(local_assert_watch(&w, "/registry/pods/", last) > 20);
		local_put_some(&w, 20);
		assert_true(local_assert_watch(&w, "/registry/", later) > 10);
		/* And once more, with nothing in between. */
		local_stop(&w);
		local_compact(&w, later);
		local_start(&w);
		assert_true(local_assert_watch(&w, "/registry/", 1) > 240);
		local_world_fini(&w);
	}
}

static void other_watches_are_the_stores_own(void **state)
{
	struct local_world w;
	vd_rev		   last;

	local_world_init(&w, 1);
	local_start(&w);
	last = local_put_some(&w, 50);
	local_stop(&w);
	local_compact(&w, last);
	local_start(&w);
	/* Below the history; of other keys, of which nothing is known; and from now on. */
	assert_status(local_watch_ends_with(&w, -1), VD_AGAIN);
	{
		struct vd_store_watch_request request = { .key = K("/other"),
							  .start_revision = 3,
							  .ready = local_ignore_ready };
		struct vd_store_watch	     *watch;
		struct vd_store_batch	      batch;

		assert_status(vd_store_watch_open(w.store, &request, &watch, NULL), VD_OK);
		assert_status(vd_store_watch_next(watch, 100, &batch, NULL), VD_EXPIRED);
		vd_store_watch_close(watch);
	}
	assert_int_equal(local_assert_watch(&w, "/registry/", last), 0);
	local_world_fini(&w);
}

static void filters_of_a_watch_hold_for_the_past(void **state)
{
	struct local_world w;

	local_world_init(&w, 5);
	local_start(&w);
	local_put_some(&w, 100);
	local_stop(&w);
	local_start(&w);
	for (int puts = 0; puts < 2; puts++) {
		struct vd_store_watch_request request = { .key = K("/registry/"),
							  .range_end = K("/registry0"),
							  .start_revision = 2,
							  .no_put = !puts,
							  .no_delete = puts,
							  .ready = local_ignore_ready };
		struct vd_store_watch	     *watch;
		struct vd_store_batch	      batch;
		size_t			      count = 0, expected = 0;

		assert_status(vd_store_watch_open(w.store, &request, &watch, NULL), VD_OK);
		while (vd_store_watch_next(watch, 7, &batch, NULL) == VD_OK)
			for (size_t i = 0; i < batch.event_count; i++, count++) {
				assert_int_equal(batch.events[i].is_delete, !puts);
				assert_null(batch.events[i].previous);
			}
		local_ask_oracle(&w);
		for (size_t i = 0; i < w.count; i++)
			expected += w.truth[i].is_delete == !puts;
		assert_int_equal(count, expected);
		vd_store_watch_close(watch);
	}
	local_world_fini(&w);
}

static void a_gap_that_was_compacted_drops_the_history(void **state)
{
	struct local_world w;
	vd_rev		   last, later;

	local_world_init(&w, 2);
	local_start(&w);
	last = local_put_some(&w, 50);
	local_stop(&w);
	later = local_put_some(&w, 10);
	local_compact(&w, later);
	local_start(&w);
	assert_int_equal(local_log_lines(&w, "W "), 1);
	assert_int_equal(
		local_log_lines(&w, "is dropped, clients from before this start must list again: etcd has "
				    "compacted the changes after revision"),
		1);
	assert_int_equal(local_status_of(&w).history, 0);
	assert_status(local_watch_ends_with(&w, last), VD_EXPIRED);
	/* From then on it is like any other. */
	local_put_some(&w, 20);
	local_stop(&w);
	local_start(&w);
	assert_int_equal(local_log_lines(&w, "W "), 0);
	assert_true(local_assert_watch(&w, "/registry/", later) > 10);
	local_world_fini(&w);
}

static void another_cluster_drops_the_history(void **state)
{
	struct local_world w;

	local_world_init(&w, 2);
	local_start(&w);
	local_put_some(&w, 50);
	local_stop(&w);
	part_store_free(w.front);
	w.front_options.id = 12;
	w.front = part_store_new(w.env, w.chaos, &w.front_options);
	local_start(&w);
	assert_int_equal(local_log_lines(&w, "W "), 1);
	assert_int_equal(local_log_lines(&w, "another etcd cluster"), 1);
	assert_int_equal(local_status_of(&w).history, 0);
	local_world_fini(&w);
}

/* The cluster's id stays; its state is an older one that has gone another way since. */
static void a_store_that_was_restored_drops_the_history(void **state)
{
	for (int what = 0; what < 5; what++) {
		struct local_world w;
		struct vd_store	  *restored;
		vd_rev		   last, revision = 0;

		local_world_init(&w, 2);
		restored = local_mvcc_new(&w);
		local_start(&w);
		for (unsigned i = 0; i < 40; i++) {
			char key[40];

			snprintf(key, sizeof key, "/registry/pods/ns/p%02u", i % 10);
			last = local_put(&w, key, i < 20 || what == 3 ? "{}" : "{\"late\":1}");
			if (i < 20)
				assert_status(vd_store_put_wait(restored, K(key), K("{}"), &revision, NULL),
					      VD_OK);
		}
		vdi_sim_advance(w.env, VD_SECONDS(1));
		/* The recorded deletion never happened there. */
		if (what == 3)
			assert_status(vd_store_delete_wait(w.mvcc, K("/registry/pods/ns/p03"),
							   (struct vd_bytes) { 0 }, NULL, &last, NULL),
				      VD_OK);
		vdi_sim_advance(w.env, VD_SECONDS(1));
		local_stop(&w);
		for (unsigned i = 20; what && revision < last + (what == 2 ? 50 : 0); i++) {
			char key[40];

			/* The same keys at the same revisions, with other values; keys that nobody recorded;
			 * the same values, the last two in the other order. */
			snprintf(key, sizeof key,
				 what == 2 ? "/registry/nodes/n%02u" : "/registry/pods/ns/p%02u",
				 (what == 4 && i >= 38 ? 77 - i : i) % 10);
			assert_status(vd_store_put_wait(restored, K(key),
							K(what == 4 ? "{\"late\":1}" : "{}"), &revision,
							NULL),
				      VD_OK);
		}
		chaos_set_inner(w.chaos, restored);
		local_start(&w);
		assert_int_equal(local_log_lines(&w, "W "), 1);
		assert_int_equal(local_log_lines(&w, "it was restored, or is another cluster"), 1);
		assert_int_equal(local_status_of(&w).history, 0);
		local_stop(&w);
		/* The oracle's store is the old one. */
		chaos_set_inner(w.chaos, w.mvcc);
		vd_store_close_wait(restored);
		local_world_fini(&w);
	}
}

/* Nothing happens under the prefix, but elsewhere; etcd compacts; a revision that is at most ten seconds old
 * was noted. */
static void an_idle_prefix_is_followed_by_marks(void **state)
{
	struct local_world w;
	vd_rev		   last, other = 0;

	local_world_init(&w, 3);
	local_start(&w);
	last = local_put_some(&w, 20);
	for (unsigned i = 0; i < 100; i++) {
		other = local_put(&w, "/elsewhere", "x");
		vdi_sim_advance(w.env, VD_SECONDS(1));
	}
	vdi_sim_advance(w.env, VD_SECONDS(21));
	local_power_cut(&w);
	local_compact(&w, other);
	local_start(&w);
	assert_int_equal(local_log_lines(&w, "W "), 0);
	assert_true(local_assert_watch(&w, "/registry/", 1) > 10);
	assert_int_equal(local_assert_watch(&w, "/registry/", last), 0);
	/* Nothing at all was recorded: then nothing can be confirmed, and the store tells the rest. */
	local_world_fini(&w);

	local_world_init(&w, 3);
	local_start(&w);
	local_put(&w, "/elsewhere", "x");
	vdi_sim_advance(w.env, VD_SECONDS(30));
	local_stop(&w);
	local_start(&w);
	assert_int_equal(local_log_lines(&w, "W "), 0);
	local_put_some(&w, 5);
	assert_true(local_assert_watch(&w, "/registry/", 1) > 0);
	local_world_fini(&w);
}

/* A new history takes from the store what it still has. */
static void a_first_start_looks_back(void **state)
{
	for (int is_compacted = 0; is_compacted < 2; is_compacted++) {
		struct local_world w;
		vd_rev		   at, last;

		local_world_init(&w, 4);
		at = local_put_some(&w, 50);
		local_put_some(&w, 50);
		if (is_compacted)
			local_compact(&w, at);
		local_start(&w);
		vdi_sim_advance(w.env, VD_SECONDS(5));
		assert_int_equal(local_log_lines(&w, "W "), 0);
		last = local_put_some(&w, 10);
		local_stop(&w);
		local_compact(&w, last);
		local_start(&w);
		assert_int_equal(local_status_of(&w).history, is_compacted ? at : 1);
		(void) local_assert_watch(&w, "/registry/", is_compacted ? at : 1);
		local_world_fini(&w);
	}
}

/* ---- The caches above ---- */

static void open_watch(struct cacher_fixture *f, struct recorder *r, vd_rev revision)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;

	options.revision = revision;
	assert_status(recorder_open(f, r, &options, vdi_env_executor(f->env)), VD_OK);
	vdi_sim_advance(f->env, VD_SECONDS(1));
}

/* 100 updates, a restart, everything compacted: a client just inside the window goes on with exactly what it
 * missed, one just past it is told 410. */
static void r483_just_inside_and_just_past_the_window(void **state)
{
	struct cacher_fixture f;
	struct local_world    w;
	struct recorder	     *r = calloc(1, sizeof *r);
	vd_rev		      at[100];

	local_world_init(&w, 6);
	cacher_fixture_init(&f, 6);
	vd_store_close_wait(f.store);
	vd_env_free(f.env);
	f.env = w.env;
	f.store = w.mvcc;
	f.options.history_window = VD_SECONDS(600);
	w.window = VD_SECONDS(50);
	local_start(&w);
	for (unsigned i = 0; i < 100; i++) {
		vdi_sim_advance(w.env, VD_SECONDS(1));
		at[i] = put_pod(&f, "ns", i % 2 ? "a" : "b", "app", NULL);
	}
	vdi_sim_advance(w.env, VD_MS(500));
	local_stop(&w);
	local_compact(&w, at[99]);
	local_start(&w);
	f.options.history_window = VD_SECONDS(600);
	cacher_fixture_open(&f, w.store);
	/* 50.6 s after the update 49: it is the first that is too old, so 49 is where a watch can begin. */
	assert_int_equal(vdi_history_floor(&f.cacher->watch_cache.history), at[49]);
	open_watch(&f, r, at[49]);
	assert_int_equal(r->count, 50);
	for (unsigned i = 0; i < 50; i++) {
		assert_int_equal(r->events[i].revision, at[50 + i]);
		assert_int_equal(r->events[i].type, VD_WATCH_MODIFIED);
		assert_string_equal(r->events[i].name, (50 + i) % 2 ? "ns/a" : "ns/b");
	}
	recorder_close(&f, r);
	memset(r, 0, sizeof *r);
	open_watch(&f, r, at[49] - 1);
	assert_int_equal(r->count, 1);
	assert_status(r->events[0].code, VD_EXPIRED);
	recorder_close(&f, r);
	/* The caches keep what the store below has compacted. */
	vdi_sim_advance(w.env, VD_SECONDS(40));
	assert_in_range(local_status_of(&w).kept, at[49] + 1, at[95]);
	assert_in_range(vdi_history_floor(&f.cacher->watch_cache.history), at[49] + 1,
			local_status_of(&w).kept);
	f.cacher = vd_cacher_close_wait(f.cacher);
	vd_codec_free(f.codec);
	local_world_fini(&w);
	free(r);
}

static void the_loaded_history_leaves_memory_when_nobody_needs_it(void **state)
{
	struct local_world w;
	vd_rev		   last;

	local_world_init(&w, 7);
	local_start(&w);
	last = local_put_some(&w, 100);
	local_stop(&w);
	local_compact(&w, last);
	local_start(&w);
	assert_int_equal(local_status_of(&w).history, 1);
	vdi_sim_advance(w.env, VD_SECONDS(50));
	assert_true(local_assert_watch(&w, "/registry/", 1) > 50); /* used: another minute */
	vdi_sim_advance(w.env, VD_SECONDS(50));
	assert_int_equal(local_status_of(&w).history, 1);
	vdi_sim_advance(w.env, VD_SECONDS(20));
	assert_int_equal(local_status_of(&w).history, 0);
	assert_status(local_watch_ends_with(&w, 2), VD_EXPIRED);
	/* On disk it is as it was. */
	assert_int_equal(local_status_of(&w).kept, 1);
	local_stop(&w);
	local_start(&w);
	assert_int_equal(local_status_of(&w).history, 1);
	local_world_fini(&w);
}

static vd_status status_fails(struct vd_store *store, struct vd_store_status *ret_status)
{
	(void) store;
	(void) ret_status;
	return VD_UNAVAILABLE;
}

/* The error of a failed open has a code and a message, and the inner store stays the caller's. */
static void a_store_without_a_status_is_not_recorded(void **state)
{
	static const struct vd_store_ops       ops = { .size = sizeof ops, .status = status_fails };
	const struct vdi_local_history_options options = { .data_dir = "/data", .prefix = "/registry/" };
	struct vd_store			       inner = { .ops = &ops };
	struct vd_store			      *store = NULL;
	struct vd_error			       error = { 0 };
	struct vd_env			      *env;
	int64_t				       live;

	(void) state;
	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	live = vdi_alloc_live();
	assert_status(vdi_local_history_open(env, &inner, &options, &store, &error), VD_UNAVAILABLE);
	assert_null(store);
	assert_status(error.code, VD_UNAVAILABLE);
	assert_non_null(strstr(error.message, "the status of the store is unknown: "));
	assert_in_range(vdi_alloc_live(), live, live + 64); /* the env keeps the metrics */
	vd_env_free(env);
}

static int64_t size_of_files(struct local_world *w)
{
	int64_t total = 0, size;
	char	name[VDI_DISK_NAME_MAX];

	for (uint64_t sequence = 1; sequence < 100; sequence++) {
		vdi_segment_name(VDI_SEGMENT_HISTORY, sequence, name);
		if (vdi_disk_sim_content(w->disk, name, &size))
			total += size;
	}
	return total;
}

/* The end writes the progress that it was told of, and nothing if that is known already. */
static void an_end_without_anything_new_writes_nothing(void **state)
{
	struct local_world w;
	int64_t		   size;

	(void) state;
	local_world_init(&w, 12);
	w.window = VD_SECONDS(1000000);
	local_start(&w);
	local_put_some(&w, 20);
	vdi_sim_advance(w.env, VD_SECONDS(700));
	local_stop(&w);
	size = size_of_files(&w);
	assert_true(size > 0);
	for (unsigned i = 0; i < 6; i++) {
		local_start(&w);
		if (i % 2) { /* a mark follows a change of another prefix */
			local_put(&w, "/other/key", "value");
			size += VDI_SEGMENT_RECORD_HEADER_SIZE;
		}
		vdi_sim_advance(w.env, VD_SECONDS(700));
		assert_int_equal(size_of_files(&w), size);
		local_stop(&w);
		assert_int_equal(size_of_files(&w), size);
	}
	local_world_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_end_without_anything_new_writes_nothing),
		cmocka_unit_test(a_store_without_a_status_is_not_recorded),
		cmocka_unit_test(a_watch_goes_on_across_a_restart_whatever_was_compacted),
		cmocka_unit_test(other_watches_are_the_stores_own),
		cmocka_unit_test(filters_of_a_watch_hold_for_the_past),
		cmocka_unit_test(a_gap_that_was_compacted_drops_the_history),
		cmocka_unit_test(another_cluster_drops_the_history),
		cmocka_unit_test(a_store_that_was_restored_drops_the_history),
		cmocka_unit_test(an_idle_prefix_is_followed_by_marks),
		cmocka_unit_test(a_first_start_looks_back),
		cmocka_unit_test(r483_just_inside_and_just_past_the_window),
		cmocka_unit_test(the_loaded_history_leaves_memory_when_nobody_needs_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
