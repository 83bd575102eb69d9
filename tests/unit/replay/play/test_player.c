/* Unit tests of replay/play/player.c and player_store.c, in the simulator. */
#include <stdio.h>
#include <unistd.h>

#include <vedette/replay.h>

#include "actor_sim.h"
#include "player_world.h"
#include "vdtest.h"

static void what_was_recorded_is_there_at_its_revisions(void **state)
{
	struct vd_env		 *env = player_env_new(1);
	struct vd_player	 *player;
	struct vd_player_progress progress;

	(void) state;
	player_write_log(
		"{\"snapshot\":10}\n{\"rev\":7,\"type\":\"PUT\",\"key\":\"a\",\"value\":1}\n{\"rev\":4,"
		"\"type\":\"PUT\",\"key\":\"b\",\"value\":2}\n"
		"{\"snapshotEnd\":10}\n{\"rev\":12,\"type\":\"PUT\",\"key\":\"a\",\"value\":3}\n{\"rev\":"
		"12,\"type\":\"DELETE\",\"key\":\"b\"}\n{\"commit\":12}\n"
		"{\"progress\":20}\n{\"rev\":21,\"type\":\"PUT\",\"key\":\"c\",\"value\":4}\n{\"commit\":"
		"21}\n{\"rev\":22,\"type\":\"PUT\"");
	player = player_open(env, (struct vd_player_options) VD_PLAYER_OPTIONS_INIT);
	assert_string_equal(player_text_at(player, 0), "a=1@7 b=2@4");
	assert_status(vd_player_wait(player, VD_PLAYER_END, VD_SECONDS(1), NULL), VD_OK);
	vd_player_progress_get(player, &progress);
	assert_int_equal(progress.revision, 21);
	assert_int_equal(progress.transactions, 2);
	assert_int_equal(progress.records, 5);
	assert_true(progress.ended);
	assert_true(progress.was_torn);
	assert_string_equal(player_text_at(player, 0), "a=3@12 c=4@21");
	assert_string_equal(player_text_at(player, 12), "a=3@12");
	assert_status(vd_player_wait(player, 21, VD_SECONDS(1), NULL), VD_OK);
	assert_status(vd_player_wait(player, 22, VD_SECONDS(1), NULL), VD_NOT_FOUND);
	vd_player_close_wait(player);
	vd_env_free(env);
	unlink(player_log_path);
}

static void it_pauses_steps_and_seeks(void **state)
{
	struct vd_env		 *env = player_env_new(2);
	struct vd_player_options  options = VD_PLAYER_OPTIONS_INIT;
	struct vd_player	 *player;
	struct vd_player_progress progress;

	(void) state;
	player_write_many(100);
	options.paused = true;
	options.start_revision = 11;
	player = player_open(env, options);
	player_settle(env);
	assert_int_equal(player_revision_of(player), 11);
	vd_player_step(player, 1);
	player_settle(env);
	assert_int_equal(player_revision_of(player), 12);
	vd_player_step(player, 3);
	player_settle(env);
	assert_int_equal(player_revision_of(player), 15);
	vd_player_seek(player, 50);
	vd_player_progress_get(player, &progress);
	assert_false(progress.resting);
	player_settle(env);
	assert_int_equal(player_revision_of(player), 50);
	vd_player_progress_get(player, &progress);
	assert_true(progress.resting && progress.paused);
	vd_player_seek_time(
		player,
		(vd_wall) { VD_SECONDS(86400 + 58).ns }); /* revision 60 is at 58 s of the second day */
	player_settle(env);
	assert_int_equal(player_revision_of(player), 59);
	assert_status(vd_player_wait(player, 60, VD_SECONDS(5), NULL), VD_TIMEOUT);
	vd_player_resume(player);
	assert_status(vd_player_wait(player, VD_PLAYER_END, VD_SECONDS(5), NULL), VD_OK);
	assert_int_equal(player_revision_of(player), 101);
	vd_player_close_wait(player);
	vd_env_free(env);
	unlink(player_log_path);
}

static void it_keeps_the_recorded_pace(void **state)
{
	struct vd_env		*env = player_env_new(3);
	struct vd_player_options options = VD_PLAYER_OPTIONS_INIT;
	struct vd_player	*player;

	(void) state;
	player_write_many(100); /* a second apart */
	options.speed = 2;
	player = player_open(env, options);
	player_settle(env);
	assert_int_equal(player_revision_of(player), 2);
	vdi_sim_advance(env, VD_MS(499));
	assert_int_equal(player_revision_of(player), 2);
	vdi_sim_advance(env, VD_MS(1));
	assert_int_equal(player_revision_of(player), 3);
	vdi_sim_advance(env, VD_SECONDS(10));
	assert_int_equal(player_revision_of(player), 23);
	vd_player_set_speed(player, 0.1); /* from the next record on */
	player_settle(env);
	assert_int_equal(player_revision_of(player), 24);
	vdi_sim_advance(env, VD_MS(9999));
	assert_int_equal(player_revision_of(player), 24);
	vdi_sim_advance(env, VD_MS(1));
	assert_int_equal(player_revision_of(player), 25);
	/* A pause does not count. */
	vd_player_pause(player);
	vdi_sim_advance(env, VD_SECONDS(1000));
	assert_int_equal(player_revision_of(player), 25);
	vd_player_resume(player);
	player_settle(env);
	assert_int_equal(player_revision_of(player), 26);
	vd_player_set_speed(player, 0);
	assert_status(vd_player_wait(player, VD_PLAYER_END, VD_SECONDS(1), NULL), VD_OK);
	vd_player_close_wait(player);
	vd_env_free(env);
	unlink(player_log_path);
}

static void a_watch_sees_every_transaction_once_in_order(void **state)
{
	struct vd_env	    *env = player_env_new(4);
	struct vd_player    *player;
	struct player_reader reader;

	(void) state;
	player_write_many(3000);
	player = player_open(env, (struct vd_player_options) VD_PLAYER_OPTIONS_INIT);
	player_reader_init(&reader, env, vd_player_store(player));
	assert_status(vd_player_wait(player, VD_PLAYER_END, VD_SECONDS(1), NULL), VD_OK);
	player_settle(env);
	assert_int_equal(reader.delivered, 3000);
	assert_int_equal(reader.seen, 3001);
	player_reader_fini(&reader);
	vd_player_close_wait(player);
	vd_env_free(env);
	unlink(player_log_path);
}

static void it_waits_for_its_slowest_watch(void **state)
{
	struct vd_env		*env = player_env_new(5);
	struct vd_player_options options = VD_PLAYER_OPTIONS_INIT;
	struct vd_player	*player;
	struct player_reader	 fast, stuck;

	(void) state;
	player_write_many(3000);
	options.lead_max = 100;
	options.paused = true;
	player = player_open(env, options);
	player_reader_init(&fast, env, vd_player_store(player));
	player_reader_init(&stuck, env, vd_player_store(player));
	player_settle(env);
	stuck.stuck = true;
	vd_player_resume(player);
	player_settle(env);
	assert_in_range(player_revision_of(player), 90, 102);
	assert_int_equal(fast.seen, player_revision_of(player));
	stuck.stuck = false;
	vd_actor_wake(stuck.actor);
	player_settle(env);
	assert_int_equal(player_revision_of(player), 3001);
	assert_int_equal(stuck.delivered, 3000);
	player_reader_fini(&fast);
	player_reader_fini(&stuck);
	vd_player_close_wait(player);
	vd_env_free(env);
	unlink(player_log_path);
}

static void never_ready(void *arg)
{
	(void) arg;
	fail();
}

/* Kinds that the log never speaks of have watches, too. */
static void a_watch_for_which_nothing_comes_holds_nobody(void **state)
{
	struct vd_env		     *env = player_env_new(7);
	struct vd_player_options      options = VD_PLAYER_OPTIONS_INIT;
	struct vd_store_watch_request request = { .key = vd_bytes_of("never/"),
						  .range_end = vd_bytes_of("never0"),
						  .ready = never_ready };
	struct vd_player	     *player;
	struct vd_store_watch	     *idle;
	struct vd_store_batch	      batch;
	struct player_reader	      reader;

	(void) state;
	player_write_many(3000);
	options.lead_max = 100;
	options.paused = true;
	player = player_open(env, options);
	player_reader_init(&reader, env, vd_player_store(player));
	assert_status(vd_store_watch_open(vd_player_store(player), &request, &idle, NULL), VD_OK);
	player_settle(env);
	assert_status(vd_store_watch_next(idle, 100, &batch, NULL), VD_AGAIN);
	vd_player_resume(player);
	player_settle(env);
	assert_int_equal(player_revision_of(player), 3001);
	assert_int_equal(reader.delivered, 3000);
	vd_store_watch_close(idle);
	player_reader_fini(&reader);
	vd_player_close_wait(player);
	vd_env_free(env);
	unlink(player_log_path);
}

static void a_watch_that_is_closed_holds_nobody(void **state)
{
	struct vd_env		*env = player_env_new(6);
	struct vd_player_options options = VD_PLAYER_OPTIONS_INIT;
	struct vd_player	*player;
	struct player_reader	 stuck;

	(void) state;
	player_write_many(1000);
	options.lead_max = 10;
	player = player_open(env, options);
	player_reader_init(&stuck, env, vd_player_store(player));
	stuck.stuck = true;
	player_settle(env);
	assert_true(player_revision_of(player) < 30);
	player_reader_fini(&stuck);
	player_settle(env);
	assert_int_equal(player_revision_of(player), 1001);
	vd_player_close_wait(player);
	vd_env_free(env);
	unlink(player_log_path);
}

static void writes_need_leave_and_move_what_was_recorded(void **state)
{
	struct vd_env		*env = player_env_new(11);
	struct vd_player_options options = VD_PLAYER_OPTIONS_INIT;
	struct vd_player	*player;
	vd_rev			 revision;

	(void) state;
	player_write_log(
		"{\"rev\":2,\"type\":\"PUT\",\"key\":\"a\",\"value\":1}\n{\"rev\":3,\"type\":\"PUT\","
		"\"key\":\"a\",\"value\":2}\n"
		"{\"rev\":9,\"type\":\"DELETE\",\"key\":\"a\"}\n");
	options.paused = true;
	player = player_open(env, options);
	assert_status(vd_store_put_wait(vd_player_store(player), K("x"), K("1"), NULL, NULL), VD_FORBIDDEN);
	vd_player_close_wait(player);
	options.writable = true;
	player = player_open(env, options);
	vd_player_step(player, 1);
	player_settle(env);
	assert_status(vd_store_put_wait(vd_player_store(player), K("x"), K("1"), &revision, NULL), VD_OK);
	assert_int_equal(revision, 3);
	vd_player_resume(player);
	assert_status(vd_player_wait(player, VD_PLAYER_END, VD_SECONDS(1), NULL), VD_OK);
	assert_int_equal(player_revision_of(player), 9);
	assert_string_equal(player_text_at(player, 4), "a=2@4 x=1@3");
	assert_string_equal(player_text_at(player, 0), "x=1@3");
	vd_player_close_wait(player);
	vd_env_free(env);
	unlink(player_log_path);
}

/* At its end the log begins again: what it began with comes back in one transaction, what others wrote goes,
 * and revisions go on. */
static void a_log_is_played_in_rounds(void **state)
{
	struct vd_env		 *env = player_env_new(1);
	struct vd_player_options  options = VD_PLAYER_OPTIONS_INIT;
	struct vd_player_progress progress;
	struct vd_player	 *player;

	(void) state;
	player_write_log(
		"{\"snapshot\":10}\n{\"rev\":7,\"type\":\"PUT\",\"key\":\"a\",\"value\":1}\n{\"rev\":9,"
		"\"type\":\"PUT\",\"key\":\"b\",\"value\":2}\n{\"snapshotEnd\":10}\n"
		"{\"rev\":12,\"type\":\"PUT\",\"key\":\"a\",\"value\":3}\n{\"commit\":12}\n{\"rev\":13,"
		"\"type\":\"DELETE\",\"key\":\"b\"}\n{\"rev\":13,\"type\":\"PUT\",\"key\":\"c\",\"value\":"
		"4}\n"
		"{\"commit\":13}\n{\"progress\":15}\n");
	options.rounds = 3;
	player = player_open(env, options);
	assert_status(vd_player_wait(player, VD_PLAYER_END, VD_SECONDS(10), NULL), VD_OK);
	vd_player_progress_get(player, &progress);
	assert_int_equal(progress.rounds, 3);
	assert_string_equal(player_text_at(player, 13), "a=3@12 c=4@13");
	assert_string_equal(player_text_at(player, 16), "a=1@16 b=2@16");
	assert_string_equal(player_text_at(player, 18), "a=3@18 b=2@16");
	assert_string_equal(player_text_at(player, 19), "a=3@18 c=4@19");
	assert_string_equal(player_text_at(player, 22), "a=1@22 b=2@22");
	assert_string_equal(player_text_at(player, 0), "a=3@24 c=4@25");
	assert_int_equal(player_revision_of(player), 27);
	vd_player_close_wait(player);
	unlink(player_log_path);
	/* Without a snapshot it begins with nothing; a log without a transaction ends. */
	player_write_log("{\"rev\":5,\"type\":\"PUT\",\"key\":\"a\",\"value\":1}\n{\"commit\":5}\n");
	options.rounds = 0;
	player = player_open(env, options);
	assert_status(vd_player_wait(player, 22, VD_SECONDS(10), NULL), VD_OK);
	assert_string_equal(player_text_at(player, 6), "");
	assert_string_equal(player_text_at(player, 11), "a=1@11");
	assert_string_equal(player_text_at(player, 12), "");
	vd_player_close_wait(player);
	unlink(player_log_path);
	player_write_log("{\"progress\":5}\n");
	player = player_open(env, options);
	assert_status(vd_player_wait(player, VD_PLAYER_END, VD_SECONDS(10), NULL), VD_OK);
	vd_player_close_wait(player);
	unlink(player_log_path);
	vd_env_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_recorded_is_there_at_its_revisions),
		cmocka_unit_test(it_pauses_steps_and_seeks),
		cmocka_unit_test(it_keeps_the_recorded_pace),
		cmocka_unit_test(a_watch_sees_every_transaction_once_in_order),
		cmocka_unit_test(it_waits_for_its_slowest_watch),
		cmocka_unit_test(a_watch_for_which_nothing_comes_holds_nobody),
		cmocka_unit_test(a_watch_that_is_closed_holds_nobody),
		cmocka_unit_test(writes_need_leave_and_move_what_was_recorded),
		cmocka_unit_test(a_log_is_played_in_rounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
