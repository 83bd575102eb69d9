#include "player_world.h"

#include "actor_sim.h"

char player_log_path[64];

static void player_begin_log(FILE **ret_file)
{
	int fd;

	strcpy(player_log_path, "/tmp/vedette-player-XXXXXX");
	fd = mkstemp(player_log_path);
	assert_true(fd >= 0);
	*ret_file = fdopen(fd, "w");
	fputs("{\"vedetteLog\":1}\n", *ret_file);
}

void player_write_log(const char *text)
{
	FILE *file;

	player_begin_log(&file);
	fputs(text, file);
	fclose(file);
}

void player_write_many(unsigned count)
{
	FILE *file;

	player_begin_log(&file);
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

struct vd_env *player_env_new(uint64_t seed)
{
	struct vd_env *env = NULL;

	assert_status(vdi_env_new_sim(seed, NULL, NULL, &env), VD_OK);
	return env;
}

struct vd_player *player_open(struct vd_env *env, struct vd_player_options options)
{
	struct vd_player *player = NULL;
	struct vd_error	  error = { 0 };

	options.path = player_log_path;
	if (vd_player_open(env, &options, &player, &error) != VD_OK)
		fail_msg("%s", error.message);
	return player;
}

vd_rev player_revision_of(const struct vd_player *player)
{
	struct vd_player_progress progress;

	vd_player_progress_get(player, &progress);
	return progress.revision;
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

const char *player_text_at(struct vd_player *player, vd_rev revision)
{
	static char		text[512];
	struct vd_range_request request = { .key = PLAYER_ALL,
					    .range_end = PLAYER_ALL,
					    .revision = revision };

	assert_status(vd_store_range(vd_player_store(player), &request, got_text, text), VD_OK);
	return text;
}

static void reader_wake(void *arg)
{
	vd_actor_wake(((struct player_reader *) arg)->actor);
}

static void write_event(struct player_reader *reader, const struct vd_store_event *event)
{
	assert_true(event->kv->mod_rev > reader->seen || event->kv->sub > 0);
	reader->delivered++;
	vdi_buffer_printf(&reader->text, "%s%.*s=%.*s@%lld;", event->is_delete ? "-" : "+",
			  (int) event->kv->key_size, event->kv->data, (int) event->kv->value_size,
			  event->kv->data + event->kv->key_size, (long long) event->kv->mod_rev);
}

/* Expired: the state is read again, as a reflector does. */
static void start_over(struct player_reader *reader)
{
	struct vd_store_status status;

	assert_status(vd_store_status_get(reader->store, &status), VD_OK);
	vdi_buffer_printf(&reader->text, "relist@%lld;", (long long) status.current);
	reader->seen = status.current;
}

static void open_watch(struct player_reader *reader)
{
	struct vd_store_watch_request request = { .key = PLAYER_ALL,
						  .range_end = PLAYER_ALL,
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
	struct player_reader *reader = arg;
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

void player_reader_init(struct player_reader *reader, struct vd_env *env, struct vd_store *store)
{
	struct vd_actor_options options = { .name = "reader", .run = reader_run, .arg = reader };

	*reader = (struct player_reader) { .env = env, .store = store, .seen = 1 };
	vdi_buffer_init(&reader->text, 1 << 24);
	assert_status(vd_actor_new(env, &options, &reader->actor), VD_OK);
	vd_actor_wake(reader->actor);
}

void player_reader_fini(struct player_reader *reader)
{
	vd_store_watch_close(reader->watch);
	vd_actor_close(reader->actor, NULL, NULL);
	vdi_buffer_fini(&reader->text);
}

void player_settle(struct vd_env *env)
{
	(void) vdi_sim_run_until_idle(env);
}
