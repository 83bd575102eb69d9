/* Unit tests of replay/log/recorder.c: what is recorded is what happened, through cuts, refusals and
 * restarts; and the round trip through a player. */
#include <stdio.h>
#include <unistd.h>

#include "actor_sim.h"
#include "rand.h"
#include "recorder.h"
#include "store_chaos.h"
#include "vdtest.h"
#include "wait.h"

#include <vedette/replay.h>

#define K(text) vd_bytes_of(text)
#define ALL ((struct vd_bytes) { "", 1 })

static char path[64];

static void new_path(void)
{
	int fd;

	strcpy(path, "/tmp/vedette-recorder-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
}

struct world {
	struct vd_env	      *env;
	struct vd_store	      *inner, *store; /* store: with chaos */
	struct vdi_log_writer *writer;
	struct vdi_recorder   *recorder;
	unsigned	       ends;
	struct vd_error	       end;
	struct vdi_rand	       rand;
};

static void world_init(struct world *world, uint64_t seed)
{
	struct vd_mvcc_options	   options = VD_MVCC_OPTIONS_INIT;
	const struct chaos_options calm = { 0 };

	memset(world, 0, sizeof *world);
	vdi_rand_init(&world->rand, seed);
	options.history_window = (vd_dur) { 0 };
	assert_status(vdi_env_new_sim(seed, NULL, NULL, &world->env), VD_OK);
	assert_status(vd_store_open_mvcc(world->env, &options, &world->inner, NULL), VD_OK);
	world->store = chaos_store_new(world->env, world->inner, &calm);
}

static void on_end(void *arg, const struct vd_error *error)
{
	struct world *world = arg;

	world->ends++;
	world->end = *error;
}

static bool relists;

static void start(struct world *world, const char *prefix, vd_rev until)
{
	struct vdi_log_writer_options writing = { .path = path, .resume = true };
	struct vdi_recorder_options   options = {
		  .store = world->store, .prefix = K(prefix), .until = until, .ended = on_end, .arg = world
	};

	assert_status(vdi_log_writer_open(&writing, &world->writer, &options.after, NULL), VD_OK);
	options.writer = world->writer;
	options.relist_path = relists ? path : NULL;
	assert_status(vdi_recorder_new(world->env, &options, &world->recorder), VD_OK);
}

static void stop(struct world *world)
{
	struct vdi_wait wait;

	vdi_wait_init(&wait, world->env);
	vdi_recorder_close(world->recorder, vdi_wait_signal_arg, &wait);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
	assert_status(vdi_log_writer_close(world->writer, NULL), VD_OK);
	world->recorder = NULL;
}

static void world_fini(struct world *world)
{
	if (world->recorder)
		stop(world);
	chaos_store_free(world->store);
	vd_store_close_wait(world->inner);
	vd_env_free(world->env);
	unlink(path);
}

static vd_rev put(struct world *world, const char *key, const char *value)
{
	vd_rev revision;

	assert_status(vd_store_put_wait(world->inner, K(key), K(value), &revision, NULL), VD_OK);
	return revision;
}

/* Transactions of one to three changes. */
static vd_rev write_some(struct world *world, unsigned count)
{
	vd_rev revision = 0;

	for (unsigned i = 0; i < count; i++) {
		char key[32], value[32];

		snprintf(key, sizeof key, "/registry/pods/k%02u",
			 (unsigned) vdi_rand_below(&world->rand, 40));
		snprintf(value, sizeof value, "{\"n\":%u}", (unsigned) vdi_rand_below(&world->rand, 1000));
		if (vdi_rand_once_in(&world->rand, 4)) {
			int64_t deleted;
			char	end[34];

			snprintf(end, sizeof end, "%s~", key);
			key[strlen(key) - 1] = '0';
			assert_status(
				vd_store_delete_wait(world->inner, K(key), K(end), &deleted, &revision, NULL),
				VD_OK);
		} else {
			revision = put(world, key, value);
		}
		if (vdi_rand_once_in(&world->rand, 3))
			vdi_sim_advance(world->env, VD_MS(20));
	}
	return revision;
}

struct vdi_text {
	char  *bytes;
	size_t size;
};

static void got_text(void *arg, vd_status status, const struct vd_range_result *result,
		     const struct vd_error *error)
{
	struct vdi_text *text = arg;

	(void) error;
	text->size = 0;
	if (status != VD_OK) {
		text->size = (size_t) snprintf(text->bytes, 8192, "%s", vd_status_name(status));
		return;
	}
	for (size_t i = 0; i < result->kv_count; i++)
		text->size += (size_t) snprintf(
			text->bytes + text->size, 8192 - text->size, "%.*s=%.*s@%lld/%lld/%lld ",
			(int) result->kvs[i]->key_size, result->kvs[i]->data,
			(int) result->kvs[i]->value_size, result->kvs[i]->data + result->kvs[i]->key_size,
			(long long) result->kvs[i]->mod_rev, (long long) result->kvs[i]->create_rev,
			(long long) result->kvs[i]->version);
}

static void state_text(struct vd_store *store, vd_rev revision, char bytes[8192])
{
	struct vd_range_request request = { .key = K("/registry/"),
					    .range_end = K("/registry0"),
					    .revision = revision };
	struct vdi_text		text = { bytes, 0 };

	bytes[0] = 0;
	assert_status(vd_store_range(store, &request, got_text, &text), VD_OK);
}

static void got_values(void *arg, vd_status status, const struct vd_range_result *result,
		       const struct vd_error *error)
{
	struct vdi_text *text = arg;

	(void) error;
	assert_status(status, VD_OK);
	for (size_t i = 0; i < result->kv_count; i++)
		text->size += (size_t) snprintf(text->bytes + text->size, 8192 - text->size,
						"%.*s=%.*s@%lld ", (int) result->kvs[i]->key_size,
						result->kvs[i]->data, (int) result->kvs[i]->value_size,
						result->kvs[i]->data + result->kvs[i]->key_size,
						(long long) result->kvs[i]->mod_rev);
}

/* Without versions: of what was between nobody knows how often. */
static void values_text(struct vd_store *store, char bytes[8192])
{
	struct vd_range_request request = { .key = K("/registry/"), .range_end = K("/registry0") };
	struct vdi_text		text = { bytes, 0 };

	bytes[0] = 0;
	assert_status(vd_store_range(store, &request, got_values, &text), VD_OK);
}

static void on_compacted(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	(void) revision;
	(void) error;
	assert_status(status, VD_OK);
	vdi_wait_signal(arg);
}

/* A player of the log shows the same states, at every revision from first to last. */
static void assert_plays(struct world *world, vd_rev first, vd_rev last)
{
	struct vd_player_options options = VD_PLAYER_OPTIONS_INIT;
	struct vd_player	*player;
	struct vd_error		 error = { 0 };
	char			 expected[8192], played[8192];

	options.path = path;
	if (vd_player_open(world->env, &options, &player, &error) != VD_OK)
		fail_msg("%s", error.message);
	if (vd_player_wait(player, VD_PLAYER_END, VD_SECONDS(10), &error) != VD_OK)
		fail_msg("%s", error.message);
	for (vd_rev revision = first; revision <= last; revision++) {
		state_text(world->inner, revision, expected);
		state_text(vd_player_store(player), revision, played);
		assert_string_equal(played, expected);
	}
	vd_player_close_wait(player);
}

static void state_and_changes_make_the_round_trip(void **state)
{
	struct world		     world;
	struct vdi_recorder_progress progress;
	vd_rev			     first, last;

	(void) state;
	new_path();
	world_init(&world, 1);
	for (int i = 0; i < 2500; i++) { /* three pages */
		char key[32];

		snprintf(key, sizeof key, "/registry/a/%04d", i);
		put(&world, key, "1");
	}
	first = put(&world, "/other", "not recorded");
	start(&world, "/registry/", 0);
	(void) vdi_sim_run_until_idle(world.env);
	vdi_recorder_progress_get(world.recorder, &progress);
	assert_true(progress.is_watching);
	assert_int_equal(progress.revision, first);
	assert_int_equal(progress.records, 2500);
	put(&world, "/other", "again");
	last = write_some(&world, 300);
	vdi_sim_advance(world.env, VD_SECONDS(2));
	vdi_recorder_progress_get(world.recorder, &progress);
	assert_int_equal(progress.revision, last);
	stop(&world);
	{
		struct vd_player_options options = VD_PLAYER_OPTIONS_INIT;
		struct vd_player	*player;

		options.path = path;
		assert_status(vd_player_open(world.env, &options, &player, NULL), VD_OK);
		assert_status(vd_player_wait(player, VD_PLAYER_END, VD_SECONDS(10), NULL), VD_OK);
		for (vd_rev revision = last - 250; revision <= last; revision++) {
			struct vd_range_request request = { .key = K("/registry/p"),
							    .range_end = K("/registry/q"),
							    .revision = revision };
			char			played[8192] = "", seen[8192] = "";
			struct vdi_text		a = { played, 0 }, b = { seen, 0 };

			assert_status(vd_store_range(vd_player_store(player), &request, got_text, &a), VD_OK);
			assert_status(vd_store_range(world.inner, &request, got_text, &b), VD_OK);
			assert_string_equal(played, seen);
		}
		vd_player_close_wait(player);
	}
	world_fini(&world);
}

/* What was compacted before it could be recorded is bridged by a new list; who plays it ends in the same
 * state. */
static void a_gap_is_bridged_by_a_list(void **state)
{
	struct world		     world;
	struct vdi_recorder_progress progress;
	struct vdi_wait		     wait;
	char			     expected[8192], played[8192];
	struct vd_player_options     options = VD_PLAYER_OPTIONS_INIT;
	struct vd_player	    *player;
	vd_rev			     last;

	(void) state;
	for (uint64_t seed = 0; seed < 10; seed++) {
		new_path();
		world_init(&world, seed);
		write_some(&world, 50);
		start(&world, "", 0);
		last = write_some(&world, 20);
		vdi_sim_advance(world.env, VD_SECONDS(2));
		stop(&world);
		last = write_some(&world, 80);
		vdi_wait_init(&wait, world.env);
		assert_status(vd_store_compact(world.inner, last - 5, false, on_compacted, &wait), VD_OK);
		vdi_wait_wait(&wait);
		vdi_wait_fini(&wait);
		relists = true;
		start(&world, "", 0);
		relists = false;
		vdi_sim_advance(world.env, VD_SECONDS(2));
		vdi_recorder_progress_get(world.recorder, &progress);
		assert_int_equal(progress.relists, 1);
		last = write_some(&world, 20);
		vdi_sim_advance(world.env, VD_SECONDS(2));
		assert_int_equal(world.ends, 0);
		stop(&world);
		options.path = path;
		assert_status(vd_player_open(world.env, &options, &player, NULL), VD_OK);
		assert_status(vd_player_wait(player, VD_PLAYER_END, VD_SECONDS(10), NULL), VD_OK);
		values_text(world.inner, expected);
		values_text(vd_player_store(player), played);
		assert_string_equal(played, expected);
		vd_player_close_wait(player);
		world_fini(&world);
	}
	(void) last;
}

static void cuts_refusals_and_restarts_lose_nothing(void **state)
{
	static const struct chaos_options rough = { .delay = 100,
						    .delay_max = VD_MS(30),
						    .refuse = 100,
						    .cut = 50,
						    .stall = 100,
						    .refuse_watch = 200 };
	static const struct chaos_options calm = { 0 };
	uint64_t			  reconnects = 0;

	(void) state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct world		     world;
		struct vdi_recorder_progress progress;
		vd_rev			     first, last = 0;

		new_path();
		world_init(&world, seed);
		first = write_some(&world, 20);
		chaos_set(world.store, &rough);
		for (int round = 0; round < 3; round++) {
			start(&world, "", 0);
			last = write_some(&world, 60);
			vdi_sim_advance(world.env, VD_MS((int64_t) vdi_rand_below(&world.rand, 400)));
			vdi_recorder_progress_get(world.recorder, &progress);
			reconnects += progress.reconnects;
			if (round < 2)
				stop(&world);
		}
		chaos_set(world.store, &calm);
		vdi_sim_advance(world.env, VD_SECONDS(20));
		vdi_recorder_progress_get(world.recorder, &progress);
		assert_int_equal(progress.revision, last);
		assert_int_equal(world.ends, 0);
		stop(&world);
		(void) first;
		assert_plays(&world, last - 50, last);
		world_fini(&world);
	}
	assert_true(reconnects > 20);
}

static void it_ends_where_it_was_told(void **state)
{
	struct world world;
	vd_rev	     last;

	(void) state;
	new_path();
	world_init(&world, 3);
	write_some(&world, 10);
	start(&world, "", 30);
	(void) vdi_sim_run_until_idle(world.env);
	assert_int_equal(world.ends, 0);
	last = write_some(&world, 60);
	vdi_sim_advance(world.env, VD_SECONDS(1));
	assert_int_equal(world.ends, 1);
	assert_status(world.end.code, VD_OK);
	stop(&world);
	assert_true(last > 30);
	assert_plays(&world, 25, 30);
	world_fini(&world);
}

static vd_status compact_status;
static void	 compacted(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	(void) arg;
	(void) revision;
	(void) error;
	compact_status = status;
}

static void what_was_compacted_ends_the_recording(void **state)
{
	struct world world;
	vd_rev	     last;

	(void) state;
	new_path();
	world_init(&world, 4);
	start(&world, "", 0);
	write_some(&world, 10);
	vdi_sim_advance(world.env, VD_SECONDS(1));
	stop(&world);
	last = write_some(&world, 40);
	assert_status(vd_store_compact(world.inner, last, false, compacted, NULL), VD_OK);
	(void) vdi_sim_run_until_idle(world.env);
	assert_status(compact_status, VD_OK);
	start(&world, "", 0);
	vdi_sim_advance(world.env, VD_SECONDS(1));
	assert_int_equal(world.ends, 1);
	assert_status(world.end.code, VD_EXPIRED);
	assert_non_null(strstr(world.end.message, "was compacted before it could be recorded"));
	world_fini(&world);
}

static void it_closes_at_any_moment(void **state)
{
	static const struct chaos_options slow = { .delay = 700, .delay_max = VD_MS(30), .cut = 100 };

	(void) state;
	for (unsigned steps = 0; steps < 120; steps += 3) {
		struct world world;

		new_path();
		world_init(&world, steps);
		write_some(&world, 30);
		chaos_set(world.store, &slow);
		start(&world, "", 0);
		for (unsigned i = 0; i < steps; i++)
			if (!vdi_sim_step(world.env))
				(void) vdi_sim_advance_to_next_timer(world.env);
		world_fini(&world);
	}
}

static void every_allocation_may_fail(void **state)
{
	(void) state;
	for (uint64_t nth = 1; nth < 400; nth += 3) {
		struct world		      world;
		struct vdi_log_writer_options writing = { .path = path };
		struct vdi_recorder_options   options = { .ended = on_end, .arg = &world };
		vd_status		      status;

		new_path();
		world_init(&world, nth);
		put(&world, "a", "1");
		options.store = world.inner;
		(void) vdi_alloc_fail_nth(nth, 1);
		status = vdi_log_writer_open(&writing, &world.writer, NULL, NULL);
		if (status == VD_OK) {
			options.writer = world.writer;
			status = vdi_recorder_new(world.env, &options, &world.recorder);
			if (status == VD_OK) {
				vdi_sim_advance(world.env, VD_SECONDS(2));
				status = vd_store_put_wait(world.inner, K("b"), K("2"), NULL, NULL);
				vdi_sim_advance(world.env, VD_SECONDS(2));
			}
		}
		(void) vdi_alloc_fail_nth(0, 0);
		assert_true(status == VD_OK || status == VD_NOMEM);
		if (world.recorder) {
			struct vdi_wait wait;

			vdi_wait_init(&wait, world.env);
			vdi_recorder_close(world.recorder, vdi_wait_signal_arg, &wait);
			vdi_wait_wait(&wait);
			vdi_wait_fini(&wait);
			world.recorder = NULL;
		}
		(void) vdi_log_writer_close(world.writer, NULL);
		world_fini(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(state_and_changes_make_the_round_trip),
		cmocka_unit_test(a_gap_is_bridged_by_a_list),
		cmocka_unit_test(cuts_refusals_and_restarts_lose_nothing),
		cmocka_unit_test(it_ends_where_it_was_told),
		cmocka_unit_test(what_was_compacted_ends_the_recording),
		cmocka_unit_test(it_closes_at_any_moment),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
