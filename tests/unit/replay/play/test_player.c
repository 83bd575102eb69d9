/* Unit tests of replay/play/player.c and player_store.c, in the simulator. */
#include <stdio.h>
#include <unistd.h>

#include "actor_sim.h"
#include "buffer.h"
#include "vdtest.h"

#include <vedette/replay.h>

#define K(text) vd_bytes_of(text)
#define ALL ((struct vd_bytes) { "", 1 })

static char path[64];

static void begin_log(FILE **ret_file)
{
	int fd;

	strcpy(path, "/tmp/vedette-player-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	*ret_file = fdopen(fd, "w");
	fputs("{\"vedetteLog\":1}\n", *ret_file);
}

static void write_log(const char *text)
{
	FILE *file;

	begin_log(&file);
	fputs(text, file);
	fclose(file);
}

/* revisions 2..1+count, a second apart; keys k0..k9 in turn, every seventh a delete of one that is there. */
static void write_many(unsigned count)
{
	FILE *file;

	begin_log(&file);
	for (unsigned i = 0; i < count; i++) {
		const char *time = "1970-01-02T";

		if (i % 7 == 6)
			fprintf(file,
				"{\"rev\":%u,\"type\":\"DELETE\",\"key\":\"k%u\",\"time\":\"%s%02u:%02u:%"
				"02uZ\"}\n",
				i + 2, (i - 1) % 10, time, i / 3600, i / 60 % 60, i % 60);
		else
			fprintf(file,
				"{\"rev\":%u,\"type\":\"PUT\",\"key\":\"k%u\",\"value\":%u,\"time\":\"%s%02u:"
				"%02u:%02uZ\"}\n",
				i + 2, i % 10, i, time, i / 3600, i / 60 % 60, i % 60);
		fprintf(file, "{\"commit\":%u}\n", i + 2);
	}
	fclose(file);
}

static struct vd_env *new_env(uint64_t seed)
{
	struct vd_env *env = NULL;

	assert_status(vdi_env_new_sim(seed, NULL, NULL, &env), VD_OK);
	return env;
}

static struct vd_player *open_player(struct vd_env *env, struct vd_player_options options)
{
	struct vd_player *player = NULL;
	struct vd_error	  error = { 0 };

	options.path = path;
	if (vd_player_open(env, &options, &player, &error) != VD_OK)
		fail_msg("%s", error.message);
	return player;
}

static vd_rev revision_of(const struct vd_player *player)
{
	struct vd_player_position position;

	vd_player_position_get(player, &position);
	return position.revision;
}

static void got_text(void *arg, vd_status status, const struct vd_range_result *result,
		     const struct vd_error *error)
{
	char  *text = arg;
	size_t size = 0;

	(void) error;
	text[0] = 0;
	if (status != VD_OK)
		strcpy(text, vd_status_name(status));
	else
		for (size_t i = 0; i < result->kv_count; i++)
			size += (size_t) snprintf(text + size, 512 - size, "%s%.*s=%.*s@%lld", i ? " " : "",
						  (int) result->kvs[i]->key_size, result->kvs[i]->data,
						  (int) result->kvs[i]->value_size,
						  result->kvs[i]->data + result->kvs[i]->key_size,
						  (long long) result->kvs[i]->mod_rev);
}

static const char *text_at(struct vd_player *player, vd_rev revision)
{
	static char		text[512];
	struct vd_range_request request = { .key = ALL, .range_end = ALL, .revision = revision };

	assert_status(vd_store_range(vd_player_store(player), &request, got_text, text), VD_OK);
	return text;
}

static const char *text_of(struct vdi_buffer *buffer)
{
	vdi_buffer_append_char(buffer, 0);
	buffer->size--;
	return buffer->data;
}

/* ---- A reader that opens its watch again whenever it ends, and writes down what it saw ---- */

struct reader {
	struct vd_env	      *env;
	struct vd_store	      *store;
	struct vd_actor	      *actor;
	struct vd_store_watch *watch;
	vd_rev		       seen;
	unsigned	       delivered, unavailable, internal, expired, refused;
	bool		       stuck; /* does not read */
	struct vdi_buffer      text;  /* "+k1=3@5;" */
};

static void reader_wake(void *arg)
{
	vd_actor_wake(((struct reader *) arg)->actor);
}

static void write_event(struct reader *reader, const struct vd_store_event *event)
{
	assert_true(event->kv->mod_rev > reader->seen || event->kv->sub > 0);
	reader->delivered++;
	vdi_buffer_printf(&reader->text, "%s%.*s=%.*s@%lld;", event->is_delete ? "-" : "+",
			  (int) event->kv->key_size, event->kv->data, (int) event->kv->value_size,
			  event->kv->data + event->kv->key_size, (long long) event->kv->mod_rev);
}

/* Expired: the state is read again, as a reflector does. */
static void start_over(struct reader *reader)
{
	struct vd_store_status status;

	assert_status(vd_store_status_get(reader->store, &status), VD_OK);
	vdi_buffer_printf(&reader->text, "relist@%lld;", (long long) status.current);
	reader->seen = status.current;
}

static void open_watch(struct reader *reader)
{
	struct vd_store_watch_request request = { .key = ALL,
						  .range_end = ALL,
						  .start_revision = reader->seen + 1,
						  .ready = reader_wake,
						  .ready_arg = reader };
	vd_status status = vd_store_watch_open(reader->store, &request, &reader->watch, NULL);

	if (status == VD_UNAVAILABLE) {
		reader->refused++;
		vd_actor_set_timer(reader->actor, vd_mono_add(vd_env_now(reader->env), VD_MS(50)));
	}
}

static void reader_run(void *arg)
{
	struct reader	     *reader = arg;
	struct vd_store_batch batch;
	struct vd_error	      error;
	vd_status	      status = VD_OK;

	if (reader->watch == NULL)
		open_watch(reader);
	while (!reader->stuck && reader->watch && status == VD_OK) {
		status = vd_store_watch_next(reader->watch, 4, &batch, &error);
		if (status == VD_OK) {
			for (size_t i = 0; i < batch.event_count; i++)
				write_event(reader, &batch.events[i]);
			reader->seen = VDI_MAX(reader->seen, batch.revision);
		} else if (status != VD_AGAIN) {
			reader->unavailable += status == VD_UNAVAILABLE;
			reader->internal += status == VD_INTERNAL;
			reader->expired += status == VD_EXPIRED;
			assert_true(status == VD_UNAVAILABLE || status == VD_INTERNAL ||
				    status == VD_EXPIRED);
			assert_status(vd_store_watch_next(reader->watch, 4, &batch, NULL), status);
			vd_store_watch_close(reader->watch);
			reader->watch = NULL;
			if (status == VD_EXPIRED)
				start_over(reader);
			vd_actor_wake(reader->actor);
		}
	}
}

static void reader_init(struct reader *reader, struct vd_env *env, struct vd_store *store)
{
	struct vd_actor_options options = { .name = "reader", .run = reader_run, .arg = reader };

	*reader = (struct reader) { .env = env, .store = store, .seen = 1 };
	vdi_buffer_init(&reader->text, 1 << 24);
	assert_status(vd_actor_new(env, &options, &reader->actor), VD_OK);
	vd_actor_wake(reader->actor);
}

static void reader_fini(struct reader *reader)
{
	vd_store_watch_close(reader->watch);
	vd_actor_close(reader->actor, NULL, NULL);
	vdi_buffer_fini(&reader->text);
}

static void settle(struct vd_env *env)
{
	(void) vdi_sim_run_until_idle(env);
}

/* ---- Tests ---- */

static void what_was_recorded_is_there_at_its_revisions(void **state)
{
	struct vd_env		 *env = new_env(1);
	struct vd_player	 *player;
	struct vd_player_position position;

	(void) state;
	write_log("{\"snapshot\":10}\n{\"rev\":7,\"type\":\"PUT\",\"key\":\"a\",\"value\":1}\n{\"rev\":4,"
		  "\"type\":\"PUT\",\"key\":\"b\",\"value\":2}\n"
		  "{\"snapshotEnd\":10}\n{\"rev\":12,\"type\":\"PUT\",\"key\":\"a\",\"value\":3}\n{\"rev\":"
		  "12,\"type\":\"DELETE\",\"key\":\"b\"}\n{\"commit\":12}\n"
		  "{\"progress\":20}\n{\"rev\":21,\"type\":\"PUT\",\"key\":\"c\",\"value\":4}\n{\"commit\":"
		  "21}\n{\"rev\":22,\"type\":\"PUT\"");
	player = open_player(env, (struct vd_player_options) VD_PLAYER_OPTIONS_INIT);
	assert_string_equal(text_at(player, 0), "a=1@7 b=2@4");
	assert_status(vd_player_wait(player, VD_PLAYER_END, VD_SECONDS(1), NULL), VD_OK);
	vd_player_position_get(player, &position);
	assert_int_equal(position.revision, 21);
	assert_int_equal(position.transactions, 2);
	assert_int_equal(position.records, 5);
	assert_true(position.ended);
	assert_true(position.was_torn);
	assert_string_equal(text_at(player, 0), "a=3@12 c=4@21");
	assert_string_equal(text_at(player, 12), "a=3@12");
	assert_status(vd_player_wait(player, 21, VD_SECONDS(1), NULL), VD_OK);
	assert_status(vd_player_wait(player, 22, VD_SECONDS(1), NULL), VD_NOT_FOUND);
	vd_player_close_wait(player);
	vd_env_free(env);
	unlink(path);
}

static void it_pauses_steps_and_seeks(void **state)
{
	struct vd_env		 *env = new_env(2);
	struct vd_player_options  options = VD_PLAYER_OPTIONS_INIT;
	struct vd_player	 *player;
	struct vd_player_position position;

	(void) state;
	write_many(100);
	options.paused = true;
	options.start_revision = 11;
	player = open_player(env, options);
	settle(env);
	assert_int_equal(revision_of(player), 11);
	vd_player_step(player, 1);
	settle(env);
	assert_int_equal(revision_of(player), 12);
	vd_player_step(player, 3);
	settle(env);
	assert_int_equal(revision_of(player), 15);
	vd_player_seek(player, 50);
	vd_player_position_get(player, &position);
	assert_false(position.resting);
	settle(env);
	assert_int_equal(revision_of(player), 50);
	vd_player_position_get(player, &position);
	assert_true(position.resting && position.paused);
	vd_player_seek_time(
		player,
		(vd_wall) { VD_SECONDS(86400 + 58).ns }); /* revision 60 is at 58 s of the second day */
	settle(env);
	assert_int_equal(revision_of(player), 59);
	assert_status(vd_player_wait(player, 60, VD_SECONDS(5), NULL), VD_TIMEOUT);
	vd_player_resume(player);
	assert_status(vd_player_wait(player, VD_PLAYER_END, VD_SECONDS(5), NULL), VD_OK);
	assert_int_equal(revision_of(player), 101);
	vd_player_close_wait(player);
	vd_env_free(env);
	unlink(path);
}

static void it_keeps_the_recorded_pace(void **state)
{
	struct vd_env		*env = new_env(3);
	struct vd_player_options options = VD_PLAYER_OPTIONS_INIT;
	struct vd_player	*player;

	(void) state;
	write_many(100); /* a second apart */
	options.speed = 2;
	player = open_player(env, options);
	settle(env);
	assert_int_equal(revision_of(player), 2);
	vdi_sim_advance(env, VD_MS(499));
	assert_int_equal(revision_of(player), 2);
	vdi_sim_advance(env, VD_MS(1));
	assert_int_equal(revision_of(player), 3);
	vdi_sim_advance(env, VD_SECONDS(10));
	assert_int_equal(revision_of(player), 23);
	vd_player_set_speed(player, 0.1); /* from the next record on */
	settle(env);
	assert_int_equal(revision_of(player), 24);
	vdi_sim_advance(env, VD_MS(9999));
	assert_int_equal(revision_of(player), 24);
	vdi_sim_advance(env, VD_MS(1));
	assert_int_equal(revision_of(player), 25);
	/* A pause does not count. */
	vd_player_pause(player);
	vdi_sim_advance(env, VD_SECONDS(1000));
	assert_int_equal(revision_of(player), 25);
	vd_player_resume(player);
	settle(env);
	assert_int_equal(revision_of(player), 26);
	vd_player_set_speed(player, 0);
	assert_status(vd_player_wait(player, VD_PLAYER_END, VD_SECONDS(1), NULL), VD_OK);
	vd_player_close_wait(player);
	vd_env_free(env);
	unlink(path);
}

static void a_watch_sees_every_transaction_once_in_order(void **state)
{
	struct vd_env	 *env = new_env(4);
	struct vd_player *player;
	struct reader	  reader;

	(void) state;
	write_many(3000);
	player = open_player(env, (struct vd_player_options) VD_PLAYER_OPTIONS_INIT);
	reader_init(&reader, env, vd_player_store(player));
	assert_status(vd_player_wait(player, VD_PLAYER_END, VD_SECONDS(1), NULL), VD_OK);
	settle(env);
	assert_int_equal(reader.delivered, 3000);
	assert_int_equal(reader.seen, 3001);
	reader_fini(&reader);
	vd_player_close_wait(player);
	vd_env_free(env);
	unlink(path);
}

static void it_waits_for_its_slowest_watch(void **state)
{
	struct vd_env		*env = new_env(5);
	struct vd_player_options options = VD_PLAYER_OPTIONS_INIT;
	struct vd_player	*player;
	struct reader		 fast, stuck;

	(void) state;
	write_many(3000);
	options.lead_max = 100;
	options.paused = true;
	player = open_player(env, options);
	reader_init(&fast, env, vd_player_store(player));
	reader_init(&stuck, env, vd_player_store(player));
	settle(env);
	stuck.stuck = true;
	vd_player_resume(player);
	settle(env);
	assert_in_range(revision_of(player), 90, 102);
	assert_int_equal(fast.seen, revision_of(player));
	stuck.stuck = false;
	vd_actor_wake(stuck.actor);
	settle(env);
	assert_int_equal(revision_of(player), 3001);
	assert_int_equal(stuck.delivered, 3000);
	reader_fini(&fast);
	reader_fini(&stuck);
	vd_player_close_wait(player);
	vd_env_free(env);
	unlink(path);
}

static void never_ready(void *arg)
{
	(void) arg;
	fail();
}

/* Kinds that the log never speaks of have watches, too. */
static void a_watch_for_which_nothing_comes_holds_nobody(void **state)
{
	struct vd_env		     *env = new_env(7);
	struct vd_player_options      options = VD_PLAYER_OPTIONS_INIT;
	struct vd_store_watch_request request = { .key = vd_bytes_of("never/"),
						  .range_end = vd_bytes_of("never0"),
						  .ready = never_ready };
	struct vd_player	     *player;
	struct vd_store_watch	     *idle;
	struct vd_store_batch	      batch;
	struct reader		      reader;

	(void) state;
	write_many(3000);
	options.lead_max = 100;
	options.paused = true;
	player = open_player(env, options);
	reader_init(&reader, env, vd_player_store(player));
	assert_status(vd_store_watch_open(vd_player_store(player), &request, &idle, NULL), VD_OK);
	settle(env);
	assert_status(vd_store_watch_next(idle, 100, &batch, NULL), VD_AGAIN);
	vd_player_resume(player);
	settle(env);
	assert_int_equal(revision_of(player), 3001);
	assert_int_equal(reader.delivered, 3000);
	vd_store_watch_close(idle);
	reader_fini(&reader);
	vd_player_close_wait(player);
	vd_env_free(env);
	unlink(path);
}

static void a_watch_that_is_closed_holds_nobody(void **state)
{
	struct vd_env		*env = new_env(6);
	struct vd_player_options options = VD_PLAYER_OPTIONS_INIT;
	struct vd_player	*player;
	struct reader		 stuck;

	(void) state;
	write_many(1000);
	options.lead_max = 10;
	player = open_player(env, options);
	reader_init(&stuck, env, vd_player_store(player));
	stuck.stuck = true;
	settle(env);
	assert_true(revision_of(player) < 30);
	reader_fini(&stuck);
	settle(env);
	assert_int_equal(revision_of(player), 1001);
	vd_player_close_wait(player);
	vd_env_free(env);
	unlink(path);
}

static void cuts_come_where_they_were_asked_for_and_nothing_is_lost(void **state)
{
	struct vd_env		 *env = new_env(7);
	struct vd_player_options  options = VD_PLAYER_OPTIONS_INIT;
	struct vd_player	 *player;
	struct vd_player_position position;
	struct reader		  reader;

	(void) state;
	write_many(200);
	options.faults = "disconnect@50,error@100,disconnect@101";
	player = open_player(env, options);
	reader_init(&reader, env, vd_player_store(player));
	assert_status(vd_player_wait(player, VD_PLAYER_END, VD_SECONDS(10), NULL), VD_OK);
	vdi_sim_advance(env, VD_SECONDS(1));
	assert_int_equal(reader.unavailable, 2);
	assert_int_equal(reader.internal, 1);
	assert_int_equal(reader.expired, 0);
	assert_int_equal(reader.delivered, 200);
	vd_player_position_get(player, &position);
	assert_int_equal(position.disconnects, 2);
	assert_int_equal(position.errors, 1);
	reader_fini(&reader);
	vd_player_close_wait(player);
	vd_env_free(env);
	unlink(path);
}

static void recorded_disconnects_and_errors_happen_again(void **state)
{
	struct vd_env		*env = new_env(8);
	struct vd_player_options options = VD_PLAYER_OPTIONS_INIT;
	struct vd_player	*player;
	struct reader		 reader;

	(void) state;
	write_log("{\"rev\":2,\"type\":\"PUT\",\"key\":\"a\",\"value\":1}\n{\"disconnect\":true}\n{\"rev\":3,"
		  "\"type\":\"PUT\",\"key\":\"a\",\"value\":2}\n"
		  "{\"error\":\"the disk of the other "
		  "one\"}\n{\"rev\":4,\"type\":\"PUT\",\"key\":\"a\",\"value\":3}\n");
	options.paused = true;
	player = open_player(env, options);
	reader_init(&reader, env, vd_player_store(player));
	for (int i = 0; i < 5; i++) {
		settle(env);
		vd_player_step(player, 1);
	}
	vdi_sim_advance(env, VD_SECONDS(1));
	assert_int_equal(reader.unavailable, 1);
	assert_int_equal(reader.internal, 1);
	assert_string_equal(text_of(&reader.text), "+a=1@2;+a=2@3;+a=3@4;");
	reader_fini(&reader);
	vd_player_close_wait(player);
	vd_env_free(env);
	unlink(path);
}

static void a_compaction_leaves_a_watch_behind(void **state)
{
	struct vd_env		*env = new_env(9);
	struct vd_player_options options = VD_PLAYER_OPTIONS_INIT;
	struct vd_player	*player;
	struct reader		 reader;

	(void) state;
	write_many(200);
	options.faults = "compact@100";
	options.speed = 1000;
	player = open_player(env, options);
	reader_init(&reader, env, vd_player_store(player));
	assert_status(vd_player_wait(player, VD_PLAYER_END, VD_SECONDS(10), NULL), VD_OK);
	vdi_sim_advance(env, VD_SECONDS(1));
	assert_int_equal(reader.unavailable, 1);
	assert_int_equal(reader.expired, 1);
	assert_true(reader.refused > 0);
	assert_int_equal(reader.seen, 201);
	assert_string_equal(text_at(player, 90), "expired");
	reader_fini(&reader);
	vd_player_close_wait(player);
	vd_env_free(env);
	unlink(path);
}

/* Two readers under every fault: what they saw and how it ran. */
static void run_with_faults(uint64_t seed, struct vdi_buffer *text)
{
	struct vd_env		*env = new_env(seed);
	struct vd_player_options options = VD_PLAYER_OPTIONS_INIT;
	struct vd_player	*player;
	struct reader		 readers[2];

	options.faults = "disconnect=0.01,error=0.005,compact=0.003,delay=30ms,delay-rate=0.3";
	options.seed = seed;
	options.speed = 100;
	options.lead_max = 50;
	player = open_player(env, options);
	for (int i = 0; i < 2; i++)
		reader_init(&readers[i], env, vd_player_store(player));
	assert_status(vd_player_wait(player, VD_PLAYER_END, VD_SECONDS(1000), NULL), VD_OK);
	vdi_sim_advance(env, VD_SECONDS(1));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(readers[i].seen, 1001);
		if (readers[i].expired == 0)
			assert_int_equal(readers[i].delivered, 1000);
		vdi_buffer_printf(text, "%u %u %u|%s|", readers[i].unavailable, readers[i].internal,
				  readers[i].expired, text_of(&readers[i].text));
		reader_fini(&readers[i]);
	}
	vdi_buffer_printf(text, "%016llx", (unsigned long long) vdi_sim_schedule_hash(env));
	vd_player_close_wait(player);
	vd_env_free(env);
}

static void the_same_seed_is_the_same_run(void **state)
{
	bool expired = false, differs = false;

	(void) state;
	write_many(1000);
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct vdi_buffer first, second, other;

		vdi_buffer_init(&first, 1 << 24);
		vdi_buffer_init(&second, 1 << 24);
		vdi_buffer_init(&other, 1 << 24);
		run_with_faults(seed, &first);
		run_with_faults(seed, &second);
		run_with_faults(seed + 100, &other);
		assert_string_equal(text_of(&first), text_of(&second));
		differs |= strcmp(text_of(&first), text_of(&other)) != 0;
		expired |= strstr(text_of(&first), "relist") != NULL;
		vdi_buffer_fini(&first);
		vdi_buffer_fini(&second);
		vdi_buffer_fini(&other);
	}
	assert_true(expired);
	assert_true(differs);
	unlink(path);
}

static void a_stale_replica_shows_newer_revisions_to_reads(void **state)
{
	struct vd_env		*env = new_env(10);
	struct vd_player_options options = VD_PLAYER_OPTIONS_INIT;
	struct vd_player	*player;
	struct reader		 reader;

	(void) state;
	write_many(10);
	options.faults = "stale=3s";
	options.paused = true;
	player = open_player(env, options);
	reader_init(&reader, env, vd_player_store(player));
	settle(env);
	vd_player_step(player, 1);
	vdi_sim_advance(env, VD_MS(2999));
	assert_string_equal(text_at(player, 0), "k0=0@2");
	assert_int_equal(reader.seen, 1);
	vdi_sim_advance(env, VD_MS(2));
	assert_int_equal(reader.seen, 2);
	reader_fini(&reader);
	vd_player_close_wait(player);
	vd_env_free(env);
	unlink(path);
}

static void writes_need_leave_and_move_what_was_recorded(void **state)
{
	struct vd_env		*env = new_env(11);
	struct vd_player_options options = VD_PLAYER_OPTIONS_INIT;
	struct vd_player	*player;
	vd_rev			 revision;

	(void) state;
	write_log("{\"rev\":2,\"type\":\"PUT\",\"key\":\"a\",\"value\":1}\n{\"rev\":3,\"type\":\"PUT\","
		  "\"key\":\"a\",\"value\":2}\n"
		  "{\"rev\":9,\"type\":\"DELETE\",\"key\":\"a\"}\n");
	options.paused = true;
	player = open_player(env, options);
	assert_status(vd_store_put_wait(vd_player_store(player), K("x"), K("1"), NULL, NULL), VD_FORBIDDEN);
	vd_player_close_wait(player);
	options.writable = true;
	player = open_player(env, options);
	vd_player_step(player, 1);
	settle(env);
	assert_status(vd_store_put_wait(vd_player_store(player), K("x"), K("1"), &revision, NULL), VD_OK);
	assert_int_equal(revision, 3);
	vd_player_resume(player);
	assert_status(vd_player_wait(player, VD_PLAYER_END, VD_SECONDS(1), NULL), VD_OK);
	assert_int_equal(revision_of(player), 9);
	assert_string_equal(text_at(player, 4), "a=2@4 x=1@3");
	assert_string_equal(text_at(player, 0), "x=1@3");
	vd_player_close_wait(player);
	vd_env_free(env);
	unlink(path);
}

static void calls_are_refused_and_answers_lost(void **state)
{
	struct vd_env		 *env = new_env(12);
	struct vd_player_options  options = VD_PLAYER_OPTIONS_INIT;
	struct vd_player	 *player;
	struct vd_player_position position;
	unsigned		  lost = 0;

	(void) state;
	write_many(10);
	options.writable = true;
	options.faults = "refuse=0.2,lose=0.2,too-large=0.5";
	player = open_player(env, options);
	settle(env);
	for (unsigned i = 0; i < 200; i++) {
		vd_status status = vd_store_put_wait(vd_player_store(player), K("x"), K("1"), NULL, NULL);

		assert_true(status == VD_OK || status == VD_UNAVAILABLE);
		lost += status == VD_UNAVAILABLE;
		(void) text_at(player, 5);
	}
	vd_player_position_get(player, &position);
	assert_in_range(position.lost_answers, 10, 60);
	assert_in_range(position.refusals, 20, 120);
	assert_in_range(position.too_large, 40, 140);
	assert_true(lost >= position.lost_answers && lost <= position.lost_answers + position.refusals);
	vd_player_close_wait(player);
	vd_env_free(env);
	unlink(path);
}

static void a_broken_line_ends_the_log_with_its_number(void **state)
{
	struct vd_env		*env = new_env(13);
	struct vd_player	*player;
	struct vd_error		 error = { 0 };
	struct vd_player_options options = VD_PLAYER_OPTIONS_INIT;

	(void) state;
	write_log("{\"rev\":2,\"type\":\"PUT\",\"key\":\"a\",\"value\":1}\n{\"rev\":3,\"type\":\"PUT\","
		  "\"key\":\"a\",\"value\":2}\n{\"rev\":\"x\"}\n");
	player = open_player(env, options);
	assert_status(vd_player_wait(player, VD_PLAYER_END, VD_SECONDS(1), &error), VD_BAD_REQUEST);
	assert_non_null(strstr(error.message, ":4: "));
	assert_int_equal(revision_of(player), 2); /* 3 may have had more records */
	vd_player_close_wait(player);
	unlink(path);
	/* At the beginning it is the open that says so. */
	write_log("{\"snapshot\":10}\n{\"rev\":11,\"type\":\"PUT\",\"key\":\"a\",\"value\":1}\n{"
		  "\"snapshotEnd\":10}\n");
	options.path = path;
	assert_status(vd_player_open(env, &options, &player, &error), VD_BAD_REQUEST);
	assert_non_null(strstr(error.message, ":3: not part of a snapshot"));
	unlink(path);
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
	write_many(500);
	for (uint64_t seed = 0; seed < 40; seed++) {
		struct vd_env		*env = new_env(seed);
		struct vd_player_options options = VD_PLAYER_OPTIONS_INIT;
		struct vd_player	*player;
		struct reader		 reader;
		struct vd_store_batch	 batch;

		options.faults = "delay=5ms,delay-rate=0.5,compact=0.01";
		options.lead_max = 20;
		player = open_player(env, options);
		reader_init(&reader, env, vd_player_store(player));
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
		reader_fini(&reader);
		vd_env_free(env);
	}
	unlink(path);
}

/* At its end the log begins again: what it began with comes back in one transaction, what others wrote goes,
 * and revisions go on. */
static void a_log_is_played_in_rounds(void **state)
{
	struct vd_env		 *env = new_env(1);
	struct vd_player_options  options = VD_PLAYER_OPTIONS_INIT;
	struct vd_player_position position;
	struct vd_player	 *player;

	(void) state;
	write_log("{\"snapshot\":10}\n{\"rev\":7,\"type\":\"PUT\",\"key\":\"a\",\"value\":1}\n{\"rev\":9,"
		  "\"type\":\"PUT\",\"key\":\"b\",\"value\":2}\n{\"snapshotEnd\":10}\n"
		  "{\"rev\":12,\"type\":\"PUT\",\"key\":\"a\",\"value\":3}\n{\"commit\":12}\n{\"rev\":13,"
		  "\"type\":\"DELETE\",\"key\":\"b\"}\n{\"rev\":13,\"type\":\"PUT\",\"key\":\"c\",\"value\":"
		  "4}\n"
		  "{\"commit\":13}\n{\"progress\":15}\n");
	options.rounds = 3;
	player = open_player(env, options);
	assert_status(vd_player_wait(player, VD_PLAYER_END, VD_SECONDS(10), NULL), VD_OK);
	vd_player_position_get(player, &position);
	assert_int_equal(position.rounds, 3);
	assert_string_equal(text_at(player, 13), "a=3@12 c=4@13");
	assert_string_equal(text_at(player, 16), "a=1@16 b=2@16");
	assert_string_equal(text_at(player, 18), "a=3@18 b=2@16");
	assert_string_equal(text_at(player, 19), "a=3@18 c=4@19");
	assert_string_equal(text_at(player, 22), "a=1@22 b=2@22");
	assert_string_equal(text_at(player, 0), "a=3@24 c=4@25");
	assert_int_equal(revision_of(player), 27);
	vd_player_close_wait(player);
	unlink(path);
	/* Without a snapshot it begins with nothing; a log without a transaction ends. */
	write_log("{\"rev\":5,\"type\":\"PUT\",\"key\":\"a\",\"value\":1}\n{\"commit\":5}\n");
	options.rounds = 0;
	player = open_player(env, options);
	assert_status(vd_player_wait(player, 22, VD_SECONDS(10), NULL), VD_OK);
	assert_string_equal(text_at(player, 6), "");
	assert_string_equal(text_at(player, 11), "a=1@11");
	assert_string_equal(text_at(player, 12), "");
	vd_player_close_wait(player);
	unlink(path);
	write_log("{\"progress\":5}\n");
	player = open_player(env, options);
	assert_status(vd_player_wait(player, VD_PLAYER_END, VD_SECONDS(10), NULL), VD_OK);
	vd_player_close_wait(player);
	unlink(path);
	vd_env_free(env);
}

static void every_allocation_may_fail(void **state)
{
	(void) state;
	write_log("{\"snapshot\":10}\n{\"rev\":7,\"type\":\"PUT\",\"key\":\"a\",\"value\":1}\n{"
		  "\"snapshotEnd\":10}\n"
		  "{\"rev\":12,\"type\":\"PUT\",\"key\":\"a\",\"value\":3}\n{\"commit\":12}\n{\"disconnect\":"
		  "true}\n{\"rev\":13,\"type\":\"DELETE\",\"key\":\"a\"}\n{\"commit\":13}\n");
	for (uint64_t nth = 1;; nth++) {
		int64_t			 live = vdi_alloc_live();
		struct vd_env		*env = new_env(nth);
		struct vd_player_options options = VD_PLAYER_OPTIONS_INIT;
		struct vd_player	*player = NULL;
		vd_status		 status;
		bool			 failed;

		options.path = path;
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
	unlink(path);
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
		cmocka_unit_test(cuts_come_where_they_were_asked_for_and_nothing_is_lost),
		cmocka_unit_test(recorded_disconnects_and_errors_happen_again),
		cmocka_unit_test(a_compaction_leaves_a_watch_behind),
		cmocka_unit_test(the_same_seed_is_the_same_run),
		cmocka_unit_test(a_stale_replica_shows_newer_revisions_to_reads),
		cmocka_unit_test(writes_need_leave_and_move_what_was_recorded),
		cmocka_unit_test(calls_are_refused_and_answers_lost),
		cmocka_unit_test(a_broken_line_ends_the_log_with_its_number),
		cmocka_unit_test(it_closes_at_any_moment),
		cmocka_unit_test(a_log_is_played_in_rounds),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
