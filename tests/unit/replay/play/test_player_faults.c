/* A player that cuts, errs, compacts, refuses and stops in the middle: as recorded, as asked for, and the
 * same for the same seed. */
#include <stdio.h>
#include <unistd.h>

#include <vedette/replay.h>

#include "actor_sim.h"
#include "buffer.h"
#include "player_world.h"
#include "vdtest.h"

static const char *player_text_of(struct vdi_buffer *buffer)
{
	vdi_buffer_append_char(buffer, 0);
	buffer->size--;
	return buffer->data;
}

static void cuts_come_where_they_were_asked_for_and_nothing_is_lost(void **state)
{
	struct vd_env		 *env = player_env_new(7);
	struct vd_player_options  options = VD_PLAYER_OPTIONS_INIT;
	struct vd_player	 *player;
	struct vd_player_progress progress;
	struct player_reader	  reader;

	(void) state;
	player_write_many(200);
	options.faults = "disconnect@50,error@100,disconnect@101";
	player = player_open(env, options);
	player_reader_init(&reader, env, vd_player_store(player));
	assert_status(vd_player_wait(player, VD_PLAYER_END, VD_SECONDS(10), NULL), VD_OK);
	vdi_sim_advance(env, VD_SECONDS(1));
	assert_int_equal(reader.unavailable, 2);
	assert_int_equal(reader.internal, 1);
	assert_int_equal(reader.expired, 0);
	assert_int_equal(reader.delivered, 200);
	vd_player_progress_get(player, &progress);
	assert_int_equal(progress.disconnects, 2);
	assert_int_equal(progress.errors, 1);
	player_reader_fini(&reader);
	vd_player_close_wait(player);
	vd_env_free(env);
	unlink(player_log_path);
}

static void recorded_disconnects_and_errors_happen_again(void **state)
{
	struct vd_env		*env = player_env_new(8);
	struct vd_player_options options = VD_PLAYER_OPTIONS_INIT;
	struct vd_player	*player;
	struct player_reader	 reader;

	(void) state;
	player_write_log(
		"{\"rev\":2,\"type\":\"PUT\",\"key\":\"a\",\"value\":1}\n{\"disconnect\":true}\n{\"rev\":3,"
		"\"type\":\"PUT\",\"key\":\"a\",\"value\":2}\n"
		"{\"error\":\"the disk of the other "
		"one\"}\n{\"rev\":4,\"type\":\"PUT\",\"key\":\"a\",\"value\":3}\n");
	options.paused = true;
	player = player_open(env, options);
	player_reader_init(&reader, env, vd_player_store(player));
	for (int i = 0; i < 5; i++) {
		player_settle(env);
		vd_player_step(player, 1);
	}
	vdi_sim_advance(env, VD_SECONDS(1));
	assert_int_equal(reader.unavailable, 1);
	assert_int_equal(reader.internal, 1);
	assert_string_equal(player_text_of(&reader.text), "+a=1@2;+a=2@3;+a=3@4;");
	player_reader_fini(&reader);
	vd_player_close_wait(player);
	vd_env_free(env);
	unlink(player_log_path);
}

static void a_compaction_leaves_a_watch_behind(void **state)
{
	struct vd_env		*env = player_env_new(9);
	struct vd_player_options options = VD_PLAYER_OPTIONS_INIT;
	struct vd_player	*player;
	struct player_reader	 reader;

	(void) state;
	player_write_many(200);
	options.faults = "compact@100";
	options.speed = 1000;
	player = player_open(env, options);
	player_reader_init(&reader, env, vd_player_store(player));
	assert_status(vd_player_wait(player, VD_PLAYER_END, VD_SECONDS(10), NULL), VD_OK);
	vdi_sim_advance(env, VD_SECONDS(1));
	assert_int_equal(reader.unavailable, 1);
	assert_int_equal(reader.expired, 1);
	assert_true(reader.refused > 0);
	assert_int_equal(reader.seen, 201);
	assert_string_equal(player_text_at(player, 90), "expired");
	player_reader_fini(&reader);
	vd_player_close_wait(player);
	vd_env_free(env);
	unlink(player_log_path);
}

/* Two readers under every fault: what they saw and how it ran. */
static void run_with_faults(uint64_t seed, struct vdi_buffer *text)
{
	struct vd_env		*env = player_env_new(seed);
	struct vd_player_options options = VD_PLAYER_OPTIONS_INIT;
	struct vd_player	*player;
	struct player_reader	 readers[2];

	options.faults = "disconnect=0.01,error=0.005,compact=0.003,delay=30ms,delay-rate=0.3";
	options.seed = seed;
	options.speed = 100;
	options.lead_max = 50;
	player = player_open(env, options);
	for (int i = 0; i < 2; i++)
		player_reader_init(&readers[i], env, vd_player_store(player));
	assert_status(vd_player_wait(player, VD_PLAYER_END, VD_SECONDS(1000), NULL), VD_OK);
	vdi_sim_advance(env, VD_SECONDS(1));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(readers[i].seen, 1001);
		if (readers[i].expired == 0)
			assert_int_equal(readers[i].delivered, 1000);
		vdi_buffer_printf(text, "%u %u %u|%s|", readers[i].unavailable, readers[i].internal,
				  readers[i].expired, player_text_of(&readers[i].text));
		player_reader_fini(&readers[i]);
	}
	vdi_buffer_printf(text, "%016llx", (unsigned long long) vdi_sim_schedule_hash(env));
	vd_player_close_wait(player);
	vd_env_free(env);
}

static void the_same_seed_is_the_same_run(void **state)
{
	bool expired = false, differs = false;

	(void) state;
	player_write_many(1000);
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct vdi_buffer first, second, other;

		vdi_buffer_init(&first, 1 << 24);
		vdi_buffer_init(&second, 1 << 24);
		vdi_buffer_init(&other, 1 << 24);
		run_with_faults(seed, &first);
		run_with_faults(seed, &second);
		run_with_faults(seed + 100, &other);
		assert_string_equal(player_text_of(&first), player_text_of(&second));
		differs |= strcmp(player_text_of(&first), player_text_of(&other)) != 0;
		expired |= strstr(player_text_of(&first), "relist") != NULL;
		vdi_buffer_fini(&first);
		vdi_buffer_fini(&second);
		vdi_buffer_fini(&other);
	}
	assert_true(expired);
	assert_true(differs);
	unlink(player_log_path);
}

static void a_stale_replica_shows_newer_revisions_to_reads(void **state)
{
	struct vd_env		*env = player_env_new(10);
	struct vd_player_options options = VD_PLAYER_OPTIONS_INIT;
	struct vd_player	*player;
	struct player_reader	 reader;

	(void) state;
	player_write_many(10);
	options.faults = "stale=3s";
	options.paused = true;
	player = player_open(env, options);
	player_reader_init(&reader, env, vd_player_store(player));
	player_settle(env);
	vd_player_step(player, 1);
	vdi_sim_advance(env, VD_MS(2999));
	assert_string_equal(player_text_at(player, 0), "k0=0@2");
	assert_int_equal(reader.seen, 1);
	vdi_sim_advance(env, VD_MS(2));
	assert_int_equal(reader.seen, 2);
	player_reader_fini(&reader);
	vd_player_close_wait(player);
	vd_env_free(env);
	unlink(player_log_path);
}

static void calls_are_refused_and_answers_lost(void **state)
{
	struct vd_env		 *env = player_env_new(12);
	struct vd_player_options  options = VD_PLAYER_OPTIONS_INIT;
	struct vd_player	 *player;
	struct vd_player_progress progress;
	unsigned		  lost = 0;

	(void) state;
	player_write_many(10);
	options.writable = true;
	options.faults = "refuse=0.2,lose=0.2,too-large=0.5";
	player = player_open(env, options);
	player_settle(env);
	for (unsigned i = 0; i < 200; i++) {
		vd_status status = vd_store_put_wait(vd_player_store(player), K("x"), K("1"), NULL, NULL);

		assert_true(status == VD_OK || status == VD_UNAVAILABLE);
		lost += status == VD_UNAVAILABLE;
		(void) player_text_at(player, 5);
	}
	vd_player_progress_get(player, &progress);
	assert_in_range(progress.lost_answers, 10, 60);
	assert_in_range(progress.refusals, 20, 120);
	assert_in_range(progress.too_large, 40, 140);
	assert_true(lost >= progress.lost_answers && lost <= progress.lost_answers + progress.refusals);
	vd_player_close_wait(player);
	vd_env_free(env);
	unlink(player_log_path);
}

static void a_broken_line_ends_the_log_with_its_number(void **state)
{
	struct vd_env		*env = player_env_new(13);
	struct vd_player	*player;
	struct vd_error		 error = { 0 };
	struct vd_player_options options = VD_PLAYER_OPTIONS_INIT;

	(void) state;
	player_write_log(
		"{\"rev\":2,\"type\":\"PUT\",\"key\":\"a\",\"value\":1}\n{\"rev\":3,\"type\":\"PUT\","
		"\"key\":\"a\",\"value\":2}\n{\"rev\":\"x\"}\n");
	player = player_open(env, options);
	assert_status(vd_player_wait(player, VD_PLAYER_END, VD_SECONDS(1), &error), VD_BAD_REQUEST);
	assert_non_null(strstr(error.message, ":4: "));
	assert_int_equal(player_revision_of(player), 2); /* 3 may have had more records */
	vd_player_close_wait(player);
	unlink(player_log_path);
	/* At the beginning it is the open that says so. */
	player_write_log("{\"snapshot\":10}\n{\"rev\":11,\"type\":\"PUT\",\"key\":\"a\",\"value\":1}\n{"
			 "\"snapshotEnd\":10}\n");
	options.path = player_log_path;
	assert_status(vd_player_open(env, &options, &player, &error), VD_BAD_REQUEST);
	assert_non_null(strstr(error.message, ":3: not part of a snapshot"));
	unlink(player_log_path);
	assert_status(vd_player_open(env, &options, &player, &error), VD_NOT_FOUND);
	options.speed = -1;
	assert_status(vd_player_open(env, &options, &player, &error), VD_INVALID_ARGUMENT);
	options.speed = 0;
	options.faults = "flood=1";
	assert_status(vd_player_open(env, &options, &player, &error), VD_INVALID_ARGUMENT);
	vd_env_free(env);
}

static void it_closes_at_any_moment(void **state)
{
	(void) state;
	player_write_many(500);
	for (uint64_t seed = 0; seed < 40; seed++) {
		struct vd_env		*env = player_env_new(seed);
		struct vd_player_options options = VD_PLAYER_OPTIONS_INIT;
		struct vd_player	*player;
		struct player_reader	 reader;
		struct vd_store_batch	 batch;

		options.faults = "delay=5ms,delay-rate=0.5,compact=0.01";
		options.lead_max = 20;
		player = player_open(env, options);
		player_reader_init(&reader, env, vd_player_store(player));
		for (uint64_t step = 0; step < seed * 7; step++)
			(void) vdi_sim_step(env);
		reader.stuck = true;
		if (seed % 2)
			vd_store_watch_close(reader.watch);
		player = vd_player_close_wait(player);
		if (seed % 2 == 0 && reader.watch) {
			vd_status status;

			do
				status = vd_store_watch_next(reader.watch, 100, &batch, NULL);
			while (status == VD_OK);
			assert_true(status == VD_CLOSED || status == VD_UNAVAILABLE || status == VD_EXPIRED);
		} else if (seed % 2) {
			reader.watch = NULL;
		}
		player_reader_fini(&reader);
		vd_env_free(env);
	}
	unlink(player_log_path);
}

static void every_allocation_may_fail(void **state)
{
	(void) state;
	player_write_log(
		"{\"snapshot\":10}\n{\"rev\":7,\"type\":\"PUT\",\"key\":\"a\",\"value\":1}\n{"
		"\"snapshotEnd\":10}\n"
		"{\"rev\":12,\"type\":\"PUT\",\"key\":\"a\",\"value\":3}\n{\"commit\":12}\n{\"disconnect\":"
		"true}\n{\"rev\":13,\"type\":\"DELETE\",\"key\":\"a\"}\n{\"commit\":13}\n");
	for (uint64_t nth = 1;; nth++) {
		int64_t			 live = vdi_alloc_live();
		struct vd_env		*env = player_env_new(nth);
		struct vd_player_options options = VD_PLAYER_OPTIONS_INIT;
		struct vd_player	*player = NULL;
		vd_status		 status;
		bool			 failed;

		options.path = player_log_path;
		options.faults = "compact@12";
		options.rounds = 2;
		(void) vdi_alloc_fail_nth(nth, 1);
		status = vd_player_open(env, &options, &player, NULL);
		if (status == VD_OK)
			status = vd_player_wait(player, VD_PLAYER_END, VD_SECONDS(1), NULL);
		failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_true(failed ? status == VD_OK || status == VD_NOMEM : status == VD_OK);
		vd_player_close_wait(player);
		vd_env_free(env);
		assert_int_equal(vdi_alloc_live(), live);
		if (!failed)
			break;
	}
	unlink(player_log_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts_come_where_they_were_asked_for_and_nothing_is_lost),
		cmocka_unit_test(recorded_disconnects_and_errors_happen_again),
		cmocka_unit_test(a_compaction_leaves_a_watch_behind),
		cmocka_unit_test(the_same_seed_is_the_same_run),
		cmocka_unit_test(a_stale_replica_shows_newer_revisions_to_reads),
		cmocka_unit_test(calls_are_refused_and_answers_lost),
		cmocka_unit_test(a_broken_line_ends_the_log_with_its_number),
		cmocka_unit_test(it_closes_at_any_moment),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
