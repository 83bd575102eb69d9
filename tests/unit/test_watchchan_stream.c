/* watchchan/: what it asks of its store, word for word, and what becomes of each answer. The store is a script: a test reads the requests and writes the answers. */
#include "vdtest.h"

#include "actor_sim.h"
#include "env.h"
#include "storage_metrics.h"
#include "watchchan.h"
#include "watchchan_state.h"

#define ANSWERS_MAX 8
#define KEY "/registry/pods/"

struct answer {
	vd_status	      status;
	const char	     *message; /* of the error; NULL: none */
	struct vd_store_event events[130];
	size_t		      count;
	vd_rev		      revision;
};

struct script {
	struct vd_store	      store;
	struct vd_store_watch watch;
	/* Ranges. */
	unsigned    ranges;
	char	    key[64], range_end[64];
	vd_rev	    revision;
	int64_t	    limit;
	bool	    keys_only;
	vd_status   refuse; /* the next range */
	vd_status   refuse_stream;
	vd_range_fn done;
	void	   *done_arg;
	/* The watch. */
	unsigned		      opened, closed, progress;
	struct vd_store_watch_request request;
	vd_status		      refuse_watch;
	const char		     *refuse_message;
	struct answer		     *answers[ANSWERS_MAX];
	size_t			      answer_count, answer_next, asked_for;
};

struct world {
	struct vd_env		    *env;
	struct vd_codec		    *codec;
	struct script		     script;
	struct vdi_watchchan_options options;
	struct vdi_watchchan	    *watchchan;
	unsigned		     ready;
	bool			     closed;
	int64_t			     live;
};

static struct script *script_of(struct vd_store *store)
{
	return VDI_CONTAINER_OF(store, struct script, store);
}

static void text_of(char text[64], struct vd_bytes bytes)
{
	snprintf(text, 64, "%.*s", (int) bytes.size, bytes.size ? (const char *) bytes.data : "");
}

static vd_status script_range(struct vd_store *store, const struct vd_range_request *request, vd_range_fn done, void *arg)
{
	struct script *script = script_of(store);
	vd_status      refuse = script->refuse;

	script->ranges++;
	text_of(script->key, request->key);
	text_of(script->range_end, request->range_end);
	script->revision = request->revision;
	script->limit = request->limit;
	script->keys_only = request->keys_only;
	script->refuse = VD_OK;
	if (refuse == VD_OK) {
		script->done = done;
		script->done_arg = arg;
	}
	return refuse;
}

static vd_status script_watch(struct vd_store *store, const struct vd_store_watch_request *request, struct vd_store_watch **ret_watch, struct vd_error *reterr)
{
	struct script *script = script_of(store);

	if (script->refuse_watch != VD_OK)
		return script->refuse_message ? vd_error_set(reterr, script->refuse_watch, "%s", script->refuse_message) : script->refuse_watch;
	script->opened++;
	script->request = *request;
	script->watch.store = store;
	*ret_watch = &script->watch;
	return VD_OK;
}

static vd_status script_next(struct vd_store_watch *watch, size_t max, struct vd_store_batch *ret_batch, struct vd_error *reterr)
{
	struct script *script = script_of(watch->store);
	struct answer *answer;

	script->asked_for = max;
	if (script->answer_next == script->answer_count)
		return VD_AGAIN;
	answer = script->answers[script->answer_next++];
	if (answer->status != VD_OK)
		return answer->message ? vd_error_set(reterr, answer->status, "%s", answer->message) : answer->status;
	*ret_batch = (struct vd_store_batch) { answer->revision, answer->events, answer->count };
	return VD_OK;
}

static vd_status script_progress(struct vd_store_watch *watch)
{
	script_of(watch->store)->progress++;
	return VD_OK;
}

static vd_status script_stream(struct vd_store *store, const struct vd_store_stream_request *request, struct vd_store_stream **ret_stream)
{
	return script_of(store)->refuse_stream;
}

static void script_close(struct vd_store_watch *watch)
{
	script_of(watch->store)->closed++;
}

static const struct vd_store_ops script_ops = {
	.size = sizeof(struct vd_store_ops),
	.range = script_range,
	.watch = script_watch,
	.watch_next = script_next,
	.watch_progress = script_progress,
	.watch_close = script_close,
	.stream = script_stream,
};

static void on_ready(void *arg)
{
	((struct world *) arg)->ready++;
}

static void on_closed(void *arg)
{
	*(bool *) arg = true;
}

/* From revision 1 on; a test changes the options before it opens. */
static void world_init(struct world *world)
{
	memset(world, 0, sizeof *world);
	world->live = vdi_alloc_live();
	assert_status(vdi_env_new_sim(1, NULL, NULL, &world->env), VD_OK);
	assert_status(vd_codec_json_new(NULL, 0, &world->codec, NULL), VD_OK);
	world->script.store.ops = &script_ops;
	world->script.store.env = world->env;
	world->script.refuse_stream = VD_UNSUPPORTED;
	world->options = (struct vdi_watchchan_options) {
		.codec = world->codec, .key = vd_bytes_of(KEY), .recursive = true, .revision = 1, .ready = on_ready, .ready_arg = world
	};
}

static void open_watch(struct world *world)
{
	assert_status(vdi_watchchan_open(world->env, &world->script.store, &world->options, &world->watchchan, NULL), VD_OK);
	vdi_sim_run_until_idle(world->env);
}

static void close_watch(struct world *world)
{
	world->closed = false;
	vdi_watchchan_close(world->watchchan, on_closed, &world->closed);
	vdi_sim_run_until_idle(world->env);
	assert_true(world->closed);
	world->watchchan = NULL;
}

static void world_fini(struct world *world)
{
	if (world->watchchan)
		close_watch(world);
	assert_int_equal(world->script.closed, world->script.opened);
	for (size_t i = 0; i < world->script.answer_count; i++) {
		for (size_t k = 0; k < world->script.answers[i]->count; k++) {
			vd_kv_unref(world->script.answers[i]->events[k].kv);
			vd_kv_unref(world->script.answers[i]->events[k].previous);
		}
		free(world->script.answers[i]);
	}
	vd_codec_free(world->codec);
	vd_env_free(world->env);
	assert_int_equal(vdi_alloc_live(), world->live);
}

/* {"metadata":{"name":...}}, or the text itself when it says that it is "junk". */
static struct vd_kv *record(const char *name, const char *label, vd_rev created, vd_rev modified)
{
	char	      key[64], value[128];
	struct vd_kv *kv;

	snprintf(key, sizeof key, KEY "%s", name);
	snprintf(value, sizeof value, "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"app\":\"%s\"}}}", name, label);
	assert_status(vd_kv_new(vd_bytes_of(key), vd_bytes_of(strcmp(label, "junk") == 0 ? "junk" : value), &kv), VD_OK);
	kv->create_rev = created;
	kv->mod_rev = modified;
	kv->version = created == modified ? 1 : 2;
	return kv;
}

/* The store answers the read that was asked for. */
static void answer_range(struct world *world, vd_status status, vd_rev revision, struct vd_kv **kvs, size_t count, bool more, const char *message)
{
	struct vd_range_result result = { .revision = revision, .kvs = kvs, .kv_count = count, .count = (int64_t) count, .more = more };
	struct vd_error	       error = { 0 };
	vd_range_fn	       done = world->script.done;

	assert_non_null(done);
	world->script.done = NULL;
	if (message)
		vd_error_set(&error, status, "%s", message);
	done(world->script.done_arg, status, status == VD_OK ? &result : NULL, message ? &error : NULL);
	for (size_t i = 0; i < count; i++)
		vd_kv_unref(kvs[i]);
	vdi_sim_run_until_idle(world->env);
}

static struct answer *answer_new(struct world *world)
{
	assert_true(world->script.answer_count < ANSWERS_MAX);
	return world->script.answers[world->script.answer_count++] = calloc(1, sizeof(struct answer));
}

static void tell(struct world *world)
{
	world->script.request.ready(world->script.request.ready_arg);
	vdi_sim_run_until_idle(world->env);
}

static void tell_status(struct world *world, vd_status status, const char *message)
{
	struct answer *answer = answer_new(world);

	answer->status = status;
	answer->message = message;
	tell(world);
}

static void tell_progress(struct world *world, vd_rev revision)
{
	answer_new(world)->revision = revision;
	tell(world);
}

static struct vdi_watchchan_event next(struct world *world)
{
	struct vdi_watchchan_event event;

	vdi_sim_run_until_idle(world->env);
	assert_status(vdi_watchchan_next(world->watchchan, &event), VD_OK);
	return event;
}

static vd_status next_status(struct world *world)
{
	struct vdi_watchchan_event event;

	vdi_sim_run_until_idle(world->env);
	return vdi_watchchan_next(world->watchchan, &event);
}

/* An event without an object. */
static void expect_bookmark(struct world *world, vd_rev revision, bool initial_events_end)
{
	struct vdi_watchchan_event event = next(world);

	assert_int_equal(event.type, VD_WATCH_BOOKMARK);
	assert_int_equal(event.revision, revision);
	assert_int_equal(event.initial_events_end, initial_events_end);
	assert_null(event.object);
	assert_null(event.old_object);
	assert_false(event.initial);
	assert_false(event.more_in_revision);
}

/* The last event, and nothing after it. */
static void expect_error(struct world *world, vd_status code, const char *message)
{
	struct vdi_watchchan_event event = next(world);

	assert_int_equal(event.type, VD_WATCH_ERROR);
	assert_status(event.error->code, code);
	assert_string_equal(event.error->message, message);
	assert_null(event.object);
	assert_status(next_status(world), VD_CLOSED);
}

static void expect_object(struct world *world, enum vd_watch_type type, const char *name, vd_rev revision, bool more)
{
	struct vdi_watchchan_event event = next(world);

	assert_int_equal(event.type, type);
	assert_non_null(event.object);
	assert_true(vd_bytes_equal(vd_object_name(event.object), vd_bytes_of(name)));
	assert_int_equal(event.revision, revision);
	assert_int_equal(event.more_in_revision, more);
	assert_false(event.initial_events_end);
	assert_null(event.error);
	vdi_watchchan_event_fini(&event);
	assert_null(event.object);
}

/* ---- What is asked ---- */

/* rules: R-212 */
static void r206_the_watch_begins_behind_its_base(void **state)
{
	for (int i = 0; i < 4; i++) {
		struct world world;

		world_init(&world);
		world.options.revision = i ? 41 : 1;
		world.options.progress = i == 2;
		world.options.recursive = i != 3;
		if (i == 3)
			world.options.key = vd_bytes_of(KEY "a");
		open_watch(&world);
		assert_int_equal(world.script.ranges, 0);
		assert_int_equal(world.script.opened, 1);
		assert_int_equal(world.script.request.start_revision, i ? 42 : 2);
		assert_true(world.script.request.previous);
		assert_int_equal(world.script.request.progress, i == 2);
		assert_false(world.script.request.no_put || world.script.request.no_delete);
		assert_true(vd_bytes_equal(world.script.request.key, vd_bytes_of(i == 3 ? KEY "a" : KEY)));
		assert_true(vd_bytes_equal(world.script.request.range_end, i == 3 ? VD_BYTES_NONE : vd_bytes_of("/registry/pods0")));
		assert_int_equal(world.script.asked_for, VDI_WATCHCHAN_QUEUE_LEN);
		assert_status(next_status(&world), VD_AGAIN);
		world_fini(&world);
	}
}

/* The key is the watchChan's own copy. */
static void r201_the_key_is_copied(void **state)
{
	struct world world;
	char	     key[] = KEY;

	world_init(&world);
	world.options.key = vd_bytes_of(key);
	world.options.revision = 0;
	assert_status(vdi_watchchan_open(world.env, &world.script.store, &world.options, &world.watchchan, NULL), VD_OK);
	memset(key, 'x', sizeof key - 1);
	vdi_sim_run_until_idle(world.env);
	assert_string_equal(world.script.key, KEY);
	assert_string_equal(world.script.range_end, "/registry/pods0");
	answer_range(&world, VD_OK, 3, NULL, 0, false, NULL);
	assert_true(vd_bytes_equal(world.script.request.key, vd_bytes_of(KEY)));
	world_fini(&world);
}

/* Page by page, each from behind the last key, all at the first one's revision; then the watch from there. rules: R-206 */
static void r207_the_pages_that_are_asked_for(void **state)
{
	struct world  world;
	struct vd_kv *kvs[2];

	world_init(&world);
	world.options.revision = 0;
	world.options.initial_end_bookmark = true;
	open_watch(&world);
	assert_int_equal(world.script.ranges, 1);
	assert_string_equal(world.script.key, KEY);
	assert_string_equal(world.script.range_end, "/registry/pods0");
	assert_int_equal(world.script.revision, 0);
	assert_int_equal(world.script.limit, VDI_WATCHCHAN_PAGE_LEN);
	assert_false(world.script.keys_only);
	kvs[0] = record("a", "x", 2, 2);
	kvs[1] = record("b", "x", 3, 5);
	answer_range(&world, VD_OK, 7, kvs, 2, true, NULL);
	assert_int_equal(world.script.ranges, 2);
	assert_int_equal(world.script.revision, 7);
	assert_int_equal(world.script.limit, VDI_WATCHCHAN_PAGE_LEN);
	assert_string_equal(world.script.range_end, "/registry/pods0");
	assert_memory_equal(world.script.key, KEY "b", strlen(KEY "b") + 1); /* and a zero byte behind it */
	assert_int_equal(world.script.opened, 0);
	kvs[0] = record("c", "x", 4, 4);
	answer_range(&world, VD_OK, 9, kvs, 1, false, NULL);
	assert_int_equal(world.script.ranges, 2);
	assert_int_equal(world.script.request.start_revision, 8);
	expect_object(&world, VD_WATCH_ADDED, "a", 2, false);
	expect_object(&world, VD_WATCH_ADDED, "b", 5, false);
	expect_object(&world, VD_WATCH_ADDED, "c", 4, false);
	expect_bookmark(&world, 7, true);
	assert_status(next_status(&world), VD_AGAIN);
	world_fini(&world);
}

static void r207_one_key_has_one_page(void **state)
{
	struct world	    world;
	struct vd_kv	   *kv;
	struct vdi_watchchan_event event;

	world_init(&world);
	world.options.revision = 0;
	world.options.recursive = false;
	world.options.key = vd_bytes_of(KEY "a");
	open_watch(&world);
	assert_string_equal(world.script.key, KEY "a");
	assert_string_equal(world.script.range_end, "");
	assert_int_equal(world.script.limit, 0);
	kv = record("a", "x", 2, 3);
	answer_range(&world, VD_OK, 4, &kv, 1, true, NULL); /* whatever it says */
	assert_int_equal(world.script.ranges, 1);
	assert_int_equal(world.script.request.start_revision, 5);
	event = next(&world);
	assert_true(event.initial);
	assert_int_equal(event.type, VD_WATCH_ADDED);
	assert_int_equal(event.revision, 3);
	assert_null(event.old_object);
	vdi_watchchan_event_fini(&event);
	assert_status(next_status(&world), VD_AGAIN); /* no bookmark was asked for */
	world_fini(&world);
}

/* Which reads and watches each start needs: the state at once, from here on, from now on, or the state once the store is that far. */
static void r202_r206_what_each_start_asks(void **state)
{
	static const struct {
		enum vd_tristate initial;
		vd_rev		 revision;
		bool		 asks_revision, has_state;
		vd_rev		 start;
	} rows[] = {
		{ VD_UNSET, 0, false, true, 7 }, { VD_UNSET, 5, false, false, 6 }, { VD_TRUE, 0, false, true, 7 },   { VD_TRUE, 5, true, true, 7 },
		{ VD_TRUE, 6, true, true, 7 },   { VD_FALSE, 0, true, false, 7 },  { VD_FALSE, 5, false, false, 6 },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct world world;

		world_init(&world);
		world.options.send_initial_events = rows[i].initial;
		world.options.revision = rows[i].revision;
		world.options.initial_end_bookmark = true;
		open_watch(&world);
		assert_int_equal(world.script.ranges, rows[i].asks_revision || rows[i].has_state);
		if (rows[i].asks_revision) {
			assert_string_equal(world.script.key, "/registry/pods");
			assert_true(world.script.keys_only);
			vd_actor_wake(world.watchchan->actor); /* while it waits it does not ask again */
			vdi_sim_run_until_idle(world.env);
			assert_int_equal(world.script.ranges, 1);
			answer_range(&world, VD_OK, 6, NULL, 0, false, NULL);
		}
		if (rows[i].has_state) {
			assert_string_equal(world.script.key, KEY);
			assert_int_equal(world.script.opened, 0);
			vd_actor_wake(world.watchchan->actor);
			vdi_sim_run_until_idle(world.env);
			answer_range(&world, VD_OK, 6, NULL, 0, false, NULL);
			expect_bookmark(&world, 6, true);
		}
		assert_int_equal(world.script.ranges, rows[i].asks_revision + rows[i].has_state);
		assert_int_equal(world.script.opened, 1);
		assert_int_equal(world.script.request.start_revision, rows[i].start);
		assert_status(next_status(&world), VD_AGAIN);
		world_fini(&world);
	}
}

/* Of the shortest prefix nothing is left without its slash. */
static void r138_the_revision_of_everything(void **state)
{
	struct world world;

	world_init(&world);
	world.options.key = vd_bytes_of("/");
	world.options.send_initial_events = VD_FALSE;
	world.options.revision = 0;
	open_watch(&world);
	assert_int_equal(world.script.ranges, 1);
	assert_string_equal(world.script.key, "/");
	answer_range(&world, VD_OK, 5, NULL, 0, false, NULL);
	assert_int_equal(world.script.request.start_revision, 6);
	world_fini(&world);
}

/* A store that has long reads and cannot begin one now is not read in pages instead. */
static void r208_a_long_read_that_does_not_begin(void **state)
{
	static const struct { vd_status refused, told; } rows[] = { { VD_UNAVAILABLE, VD_INTERNAL }, { VD_NOMEM, VD_NOMEM }, { VD_CLOSED, VD_CLOSED } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct world world;

		world_init(&world);
		world.options.revision = 0;
		world.script.refuse_stream = rows[i].refused;
		open_watch(&world);
		if (rows[i].told != VD_CLOSED) {
			struct vdi_watchchan_event event = next(&world);

			assert_int_equal(event.type, VD_WATCH_ERROR);
			assert_status(event.error->code, rows[i].told);
		}
		assert_status(next_status(&world), VD_CLOSED);
		assert_int_equal(world.script.ranges, 0);
		world_fini(&world);
	}
}

/* A wish for progress that comes before the watch is open is passed on once, when it is. */
static void r211_progress_is_asked_for_once(void **state)
{
	struct world world;

	world_init(&world);
	world.options.revision = 0;
	open_watch(&world);
	vdi_watchchan_progress(world.watchchan);
	vdi_watchchan_progress(world.watchchan);
	assert_int_equal(world.script.progress, 0);
	answer_range(&world, VD_OK, 3, NULL, 0, false, NULL);
	assert_int_equal(world.script.progress, 1);
	vdi_watchchan_progress(world.watchchan);
	assert_int_equal(world.script.progress, 2);
	tell_progress(&world, 4);
	assert_int_equal(world.script.progress, 2);
	expect_bookmark(&world, 4, false);
	world_fini(&world);
	/* Nobody asked: nor does it. */
	world_init(&world);
	open_watch(&world);
	assert_int_equal(world.script.progress, 0);
	world_fini(&world);
}

/* rules: R-201 */
static void r201_what_is_refused(void **state)
{
	struct world		     world;
	struct vdi_watchchan_options good;
	struct vdi_watchchan	    *watchchan = NULL;
	struct vd_error		     error;
	char			     longest[VD_KEY_SIZE_MAX + 1];

	world_init(&world);
	memset(longest, '/', sizeof longest);
	good = world.options;
	for (int i = 0; i < 6; i++) {
		static const char *const messages[] = { "a watch cannot start at revision -1", "a watch needs a codec and a way to tell its receiver",
							"a watch needs a codec and a way to tell its receiver", "a watch needs a key of 1 to", "a watch needs a key of 1 to" };

		world.options = good;
		world.options.revision = i == 0 ? -1 : 1;
		if (i == 1)
			world.options.ready = NULL;
		if (i == 2)
			world.options.codec = NULL;
		if (i >= 3)
			world.options.key = (struct vd_bytes) { longest, i == 3 ? sizeof longest : i == 4 ? 0 : VD_KEY_SIZE_MAX };
		memset(&error, 0, sizeof error);
		if (i == 5) {
			assert_status(vdi_watchchan_open(world.env, &world.script.store, &world.options, &world.watchchan, NULL), VD_OK);
			break;
		}
		assert_status(vdi_watchchan_open(world.env, &world.script.store, &world.options, &watchchan, &error), VD_INVALID_ARGUMENT);
		assert_memory_equal(error.message, messages[i], strlen(messages[i]));
		assert_null(watchchan);
	}
	world_fini(&world);
}

/* ---- What becomes of an error (R-227) ---- */

/* rules */
static void r227_each_failure_in_its_words(void **state)
{
	static const struct {
		vd_status   status;
		const char *said;
		vd_status   code; /* VD_CLOSED: a quiet end */
		const char *message;
	} rows[] = {
		{ VD_EXPIRED, "compacted", VD_EXPIRED, "The resourceVersion for the provided watch is too old." },
		{ VD_CORRUPT, "a broken file", VD_CORRUPT, "a broken file" },
		{ VD_UNDECODABLE, "a key that is not ours", VD_UNDECODABLE, "a key that is not ours" },
		{ VD_TOO_LARGE_REVISION, "too far", VD_TOO_LARGE_REVISION, "too far" },
		{ VD_INTERNAL, "a surprise", VD_INTERNAL, "a surprise" },
		{ VD_INTERNAL, NULL, VD_INTERNAL, NULL },
		{ VD_NOMEM, NULL, VD_NOMEM, NULL },
		{ VD_BAD_REQUEST, "no such key", VD_BAD_REQUEST, "no such key" },
		{ VD_INVALID_ARGUMENT, "too long", VD_INVALID_ARGUMENT, "too long" },
		{ VD_UNSUPPORTED, "no watches here", VD_UNSUPPORTED, "no watches here" },
		{ VD_UNAVAILABLE, "no route", VD_INTERNAL, "Internal error occurred: no route" },
		{ VD_UNAVAILABLE, NULL, VD_INTERNAL, NULL },
		{ VD_CLOSED, "bye", VD_CLOSED, "" },
		{ VD_CANCELED, "bye", VD_CLOSED, "" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		for (int where = 0; where < 4; where++) {
			struct world world;
			char	     sentence[256];

			world_init(&world);
			world.options.revision = where < 2;
			if (where == 1) {
				world.script.refuse_watch = rows[i].status;
				world.script.refuse_message = rows[i].said;
			}
			if (where == 3) /* without a word of it, at once */
				world.script.refuse = rows[i].status;
			open_watch(&world);
			if (where == 0)
				tell_status(&world, rows[i].status, rows[i].said);
			if (where == 2)
				answer_range(&world, rows[i].status, 0, NULL, 0, false, rows[i].said);
			if (rows[i].code == VD_CLOSED) {
				assert_status(next_status(&world), VD_CLOSED);
			} else if (rows[i].message == NULL || (where == 3 && rows[i].status != VD_EXPIRED)) {
				snprintf(sentence, sizeof sentence, "%s%s", rows[i].status == VD_UNAVAILABLE ? "Internal error occurred: " : "",
					 vd_status_sentence(rows[i].status));
				expect_error(&world, rows[i].code, sentence);
			} else {
				expect_error(&world, rows[i].code, rows[i].message);
			}
			assert_int_equal(world.script.opened, where == 0);
			assert_null(world.script.done);
			vd_actor_wake(world.watchchan->actor); /* nothing is asked after the end */
			vdi_sim_run_until_idle(world.env);
			assert_int_equal(world.script.ranges, where >= 2);
			assert_status(next_status(&world), VD_CLOSED);
			world_fini(&world);
		}
}

/* A start from a revision that the store has not reached says how far it is, and when to come back. rules: R-231 */
static void r206_a_state_of_the_future(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct world		   world;
		struct vdi_watchchan_event event;

		world_init(&world);
		world.options.send_initial_events = VD_TRUE;
		world.options.revision = 10;
		open_watch(&world);
		if (i == 0) {
			answer_range(&world, VD_OK, 9, NULL, 0, false, NULL);
			event = next(&world);
			assert_int_equal(event.type, VD_WATCH_ERROR);
			assert_status(event.error->code, VD_TOO_LARGE_REVISION);
			assert_string_equal(event.error->message, "Too large resource version: 10, current: 9");
			assert_int_equal(event.error->requested, 10);
			assert_int_equal(event.error->current, 9);
			assert_in_range(event.error->retry_after_s, 1, 3);
			assert_status(next_status(&world), VD_CLOSED);
		} else {
			answer_range(&world, VD_UNAVAILABLE, 0, NULL, 0, false, "gone");
			expect_error(&world, VD_INTERNAL, "Internal error occurred: gone");
		}
		assert_int_equal(world.script.ranges, 1);
		world_fini(&world);
	}
}

/* What came before the error is delivered before it, also when all queues are full. */
static void r226_an_error_behind_full_queues(void **state)
{
	enum { COUNT = 130 };
	struct world   world;
	struct answer *answer;
	struct vdi_watchchan_stats stats;
	char	       name[16];

	world_init(&world);
	open_watch(&world);
	for (int batch = 0; batch < 2; batch++) {
		answer = answer_new(&world);
		answer->count = COUNT;
		answer->revision = 1 + (batch + 1) * COUNT;
		for (int i = 0; i < COUNT; i++) {
			snprintf(name, sizeof name, "p%03d", batch * COUNT + i);
			answer->events[i] = (struct vd_store_event) { .kv = record(name, "x", 2 + batch * COUNT + i, 2 + batch * COUNT + i) };
		}
	}
	tell_status(&world, VD_UNAVAILABLE, "no route");
	vdi_watchchan_stats_get(world.watchchan, &stats);
	assert_int_equal(stats.result_len, VDI_WATCHCHAN_QUEUE_LEN);
	assert_int_equal(stats.raw_len, VDI_WATCHCHAN_QUEUE_LEN);
	assert_true(stats.raw_full > 0);
	assert_int_equal(stats.result_full, 1);
	assert_int_equal(stats.events, VDI_WATCHCHAN_QUEUE_LEN);
	assert_int_equal(world.script.answer_next, 2); /* not read on */
	for (int i = 0; i < 2 * COUNT; i++) {
		snprintf(name, sizeof name, "p%03d", i);
		expect_object(&world, VD_WATCH_ADDED, name, 2 + i, false);
	}
	expect_error(&world, VD_INTERNAL, "Internal error occurred: no route");
	vdi_watchchan_stats_get(world.watchchan, &stats);
	assert_int_equal(stats.raw_len, 0);
	assert_int_equal(stats.result_len, 0);
	world_fini(&world);
}

/* ---- What becomes of an event ---- */

static void tell_event(struct world *world, bool is_delete, struct vd_kv *kv, struct vd_kv *previous)
{
	struct answer *answer = answer_new(world);

	answer->events[0] = (struct vd_store_event) { is_delete, kv, previous };
	answer->count = 1;
	answer->revision = kv->mod_rev;
	tell(world);
}

static bool app_is_x(void *arg, const struct vd_object *object)
{
	struct vd_bytes value;

	return vd_object_label_get(object, vd_bytes_of("app"), &value) && vd_bytes_equal(value, vd_bytes_of("x"));
}

/* Which objects an event carries: the state before only where a predicate has looked at it, and of a deletion always. rules */
static void r216_the_objects_of_an_event(void **state)
{
	for (int filtered = 0; filtered < 2; filtered++) {
		struct world		   world;
		struct vdi_watchchan_event event;
		vd_mono			   now;

		world_init(&world);
		world.options.predicate = filtered ? app_is_x : NULL;
		open_watch(&world);
		vdi_sim_advance(world.env, VD_SECONDS(5));
		now = vd_env_now(world.env);
		tell_event(&world, false, record("a", "x", 2, 2), NULL);
		vdi_sim_advance(world.env, VD_SECONDS(5));
		event = next(&world);
		assert_int_equal(event.type, VD_WATCH_ADDED);
		assert_false(event.initial);
		assert_null(event.old_object);
		assert_int_equal(event.received.ns, now.ns);
		vdi_watchchan_event_fini(&event);
		tell_event(&world, false, record("a", "x", 2, 3), record("a", "x", 2, 2));
		event = next(&world);
		assert_int_equal(event.type, VD_WATCH_MODIFIED);
		assert_int_equal(event.revision, 3);
		assert_int_equal(vd_object_revision(event.object), 3);
		if (filtered)
			assert_int_equal(vd_object_revision(event.old_object), 2);
		else
			assert_null(event.old_object);
		vdi_watchchan_event_fini(&event);
		assert_null(event.old_object);
		tell_event(&world, false, record("b", filtered ? "x" : "y", 1, 4), record("b", "y", 1, 1));
		event = next(&world);
		assert_int_equal(event.type, filtered ? VD_WATCH_ADDED : VD_WATCH_MODIFIED); /* it enters the filter */
		assert_null(event.old_object);
		vdi_watchchan_event_fini(&event);
		tell_event(&world, true, record("a", "y", 0, 5), record("a", "x", 2, 3));
		now = vd_env_now(world.env);
		event = next(&world);
		assert_int_equal(event.type, VD_WATCH_DELETED);
		assert_int_equal(event.revision, 5);
		assert_int_equal(vd_object_revision(event.object), 3);
		assert_null(event.old_object);
		assert_int_equal(event.received.ns, now.ns);
		vdi_watchchan_event_fini(&event);
		if (filtered) { /* it leaves: the last state that passed, at the revision of the change */
			tell_event(&world, false, record("b", "y", 1, 6), record("b", "x", 1, 4));
			event = next(&world);
			assert_int_equal(event.type, VD_WATCH_DELETED);
			assert_int_equal(event.revision, 6);
			assert_int_equal(vd_object_revision(event.object), 4);
			assert_null(event.old_object);
			vdi_watchchan_event_fini(&event);
		}
		assert_status(next_status(&world), VD_AGAIN);
		world_fini(&world);
	}
}

/* A filter holds for the state, too. */
static void r219_the_initial_state_is_filtered(void **state)
{
	for (int workers = 0; workers < 2; workers++) {
		struct world  world;
		struct vd_kv *kvs[3];

		world_init(&world);
		world.options.revision = 0;
		world.options.predicate = app_is_x;
		world.options.initial_end_bookmark = true;
		world.options.decode_workers = workers;
		open_watch(&world);
		kvs[0] = record("a", "y", 2, 2);
		kvs[1] = record("b", "x", 3, 3);
		kvs[2] = record("c", "y", 4, 4);
		answer_range(&world, VD_OK, 4, kvs, 3, false, NULL);
		expect_object(&world, VD_WATCH_ADDED, "b", 3, false);
		expect_bookmark(&world, 4, true);
		assert_status(next_status(&world), VD_AGAIN);
		world_fini(&world);
	}
}

/* A turn is bounded. What the store gave is taken to its end all the same, without another word of it. */
static void a_turn_that_is_too_long_goes_on(void **state)
{
	enum { COUNT = 130, BATCHES = 7 };
	struct world world;
	vd_rev	     revision = 1;
	uint64_t     steps;

	world_init(&world);
	world.options.predicate = app_is_x;
	open_watch(&world);
	for (int batch = 0; batch < BATCHES; batch++) {
		struct answer *answer = answer_new(&world);

		for (answer->count = 0; answer->count < COUNT; answer->count++) {
			revision++;
			answer->events[answer->count].kv = record("a", "y", revision, revision);
		}
		answer->revision = revision;
	}
	answer_new(&world)->revision = revision + 1;
	steps = vdi_sim_steps(world.env);
	tell(&world);
	assert_true(vdi_sim_steps(world.env) - steps > 1);
	expect_bookmark(&world, revision + 1, false);
	world_fini(&world);
}

/* Three of one revision, one of the next: all but the last of each say that more follows, and what a filter drops at the end is told by a bookmark. */
static void e459_where_a_revision_ends(void **state)
{
	for (int filtered = 0; filtered < 2; filtered++) {
		struct world   world;
		struct answer *answer;

		world_init(&world);
		world.options.predicate = filtered ? app_is_x : NULL;
		open_watch(&world);
		answer = answer_new(&world);
		answer->events[0].kv = record("a", "x", 2, 2);
		answer->events[1].kv = record("b", "x", 2, 2);
		answer->events[2].kv = record("c", "y", 2, 2);
		answer->events[3].kv = record("d", "x", 3, 3);
		answer->events[4].kv = record("e", "y", 4, 4);
		answer->count = 5;
		answer->revision = 4;
		tell(&world);
		expect_object(&world, VD_WATCH_ADDED, "a", 2, true);
		expect_object(&world, VD_WATCH_ADDED, "b", 2, true);
		if (filtered)
			expect_bookmark(&world, 2, false);
		else
			expect_object(&world, VD_WATCH_ADDED, "c", 2, false);
		expect_object(&world, VD_WATCH_ADDED, "d", 3, false);
		if (!filtered)
			expect_object(&world, VD_WATCH_ADDED, "e", 4, false);
		assert_status(next_status(&world), VD_AGAIN);
		world_fini(&world);
	}
}

/* In the words of upstream, at the end of the watch or to him who counts them (O-20). A store's progress goes on past it. */
struct skipped {
	unsigned count, deletes;
	vd_rev	 revision;
	char	 message[VD_ERROR_MESSAGE_SIZE];
};

static void on_undecodable(void *arg, struct vd_kv *kv, bool is_delete, const struct vd_error *error)
{
	struct skipped *skipped = arg;

	skipped->count++;
	skipped->deletes += is_delete;
	skipped->revision = kv->mod_rev;
	snprintf(skipped->message, sizeof skipped->message, "%s", error->message);
}

static const char unreadable[] = "Internal error occurred: object not decodable revision=2: ";

static void r165_r221_what_cannot_be_decoded(void **state)
{
	for (int skip = 0; skip < 4; skip++) { /* 0: the end; 1: skipped in silence; 2: told; 3: and the reader wants progress */
		struct world		   world;
		struct skipped		   skipped = { 0 };
		struct vdi_watchchan_stats stats;
		struct vdi_watchchan_event event;

		world_init(&world);
		world.options.skip_undecodable = skip;
		world.options.undecodable = skip > 1 ? on_undecodable : NULL;
		world.options.undecodable_arg = &skipped;
		world.options.progress = skip == 3;
		open_watch(&world);
		tell_event(&world, false, record("a", "junk", 2, 2), NULL);
		if (skip == 0) {
			event = next(&world);
			assert_int_equal(event.type, VD_WATCH_ERROR);
			assert_status(event.error->code, VD_UNDECODABLE);
			assert_memory_equal(event.error->message, unreadable, strlen(unreadable));
			assert_true(strlen(event.error->message) > strlen(unreadable));
			assert_int_equal(event.received.ns, vd_env_now(world.env).ns);
			assert_int_equal(event.revision, 0);
			tell_event(&world, false, record("b", "x", 3, 3), NULL);
			assert_status(next_status(&world), VD_CLOSED);
			vdi_watchchan_stats_get(world.watchchan, &stats);
			assert_int_equal(stats.undecodable, 0);
			world_fini(&world);
			continue;
		}
		assert_int_equal(skipped.count, skip > 1);
		if (skip > 1) {
			assert_int_equal(skipped.revision, 2);
			assert_memory_equal(skipped.message, unreadable, strlen(unreadable));
		}
		if (skip == 3)
			expect_bookmark(&world, 2, false);
		tell_event(&world, true, record("a", "y", 0, 3), record("a", "junk", 2, 2));
		if (skip == 3)
			expect_bookmark(&world, 3, false);
		assert_int_equal(skipped.deletes, skip > 1);
		tell_event(&world, false, record("b", "x", 4, 4), NULL);
		expect_object(&world, VD_WATCH_ADDED, "b", 4, false);
		vdi_watchchan_stats_get(world.watchchan, &stats);
		assert_int_equal(stats.undecodable, 2);
		assert_int_equal(stats.events, 1);
		assert_int_equal(stats.bookmarks, skip == 3 ? 2 : 0);
		world_fini(&world);
	}
}

/* rules: T-093 */
static void r212_without_the_record_before(void **state)
{
	for (int is_delete = 0; is_delete < 2; is_delete++) {
		struct world world;

		world_init(&world);
		open_watch(&world);
		tell_event(&world, is_delete, record("a", "x", 2, 3), NULL);
		expect_error(&world, VD_EXPIRED,
			     is_delete ? "The resourceVersion for the provided watch is too old: etcd event received with PrevKv=nil (key=\"" KEY "a\", modRevision=3, type=DELETE)" :
					 "The resourceVersion for the provided watch is too old: etcd event received with PrevKv=nil (key=\"" KEY "a\", modRevision=3, type=PUT)");
		world_fini(&world);
	}
}

/* The start of a long key is enough: what follows it in the message is not lost. */
static void r212_a_long_key_is_cut(void **state)
{
	struct world		   world;
	struct vdi_watchchan_event event;
	struct vd_kv		  *kv;
	char			   key[300];

	world_init(&world);
	open_watch(&world);
	memset(key, 'k', sizeof key);
	assert_status(vd_kv_new((struct vd_bytes) { key, sizeof key }, vd_bytes_of("{}"), &kv), VD_OK);
	kv->create_rev = 2;
	kv->mod_rev = 3;
	tell_event(&world, false, kv, NULL);
	event = next(&world);
	assert_int_equal(event.type, VD_WATCH_ERROR);
	key[150] = 0;
	assert_non_null(strstr(event.error->message, key));
	assert_non_null(strstr(event.error->message, "k\", modRevision=3, type=PUT)"));
	key[150] = 'k';
	key[151] = 0;
	assert_null(strstr(event.error->message, key));
	world_fini(&world);
}

static struct vd_object *known_object;

static struct vd_object *find_decoded(void *arg, const struct vd_kv *kv)
{
	*(const struct vd_kv **) arg = kv;
	return known_object ? vd_object_ref(known_object) : NULL;
}

/* An object that was made of the record before is taken as it is. */
static void an_object_is_not_decoded_twice(void **state)
{
	struct world		   world;
	const struct vd_kv	  *asked = NULL;
	struct vd_kv		  *kv = record("known", "x", 2, 2);
	struct vdi_watchchan_event event;

	world_init(&world);
	world.live--; /* kv */
	assert_status(vd_object_new(world.codec, kv, &known_object, NULL), VD_OK);
	vd_kv_unref(kv);
	world.options.decoded = find_decoded;
	world.options.decoded_arg = &asked;
	open_watch(&world);
	tell_event(&world, false, record("a", "x", 2, 2), NULL);
	event = next(&world);
	assert_ptr_equal(event.object, known_object);
	assert_int_equal(asked->mod_rev, 2);
	vdi_watchchan_event_fini(&event);
	known_object = vd_object_unref(known_object);
	tell_event(&world, false, record("b", "x", 3, 3), NULL);
	expect_object(&world, VD_WATCH_ADDED, "b", 3, false);
	world_fini(&world);
}

/* ---- The receiver ---- */

/* Told once each time it has found nothing: of an event, and of the end. */
static void the_receiver_is_told_once(void **state)
{
	struct world		   world;
	struct vdi_watchchan_event events[4];
	size_t			   count = 9;

	world_init(&world);
	open_watch(&world);
	assert_int_equal(world.ready, 0);
	tell_progress(&world, 2);
	assert_int_equal(world.ready, 1);
	tell_progress(&world, 3);
	assert_int_equal(world.ready, 1); /* it has not looked yet */
	assert_status(vdi_watchchan_take(world.watchchan, events, 4, &count), VD_OK);
	assert_int_equal(count, 2);
	assert_int_equal(events[0].revision, 2);
	assert_int_equal(events[1].revision, 3);
	tell_progress(&world, 4);
	assert_int_equal(world.ready, 1); /* nor has it found nothing */
	assert_status(vdi_watchchan_take(world.watchchan, events, 1, &count), VD_OK);
	assert_int_equal(count, 1);
	assert_status(vdi_watchchan_take(world.watchchan, events, 4, &count), VD_AGAIN);
	assert_int_equal(count, 0);
	tell_progress(&world, 5);
	assert_int_equal(world.ready, 2);
	assert_status(vdi_watchchan_take(world.watchchan, events, 4, &count), VD_OK);
	assert_status(vdi_watchchan_take(world.watchchan, events, 4, &count), VD_AGAIN);
	tell_status(&world, VD_CLOSED, NULL);
	assert_int_equal(world.ready, 3);
	vd_actor_wake(world.watchchan->actor);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(world.ready, 3);
	assert_status(vdi_watchchan_take(world.watchchan, events, 4, &count), VD_CLOSED);
	assert_int_equal(count, 0);
	world_fini(&world);
}

/* After close nothing is told, whatever the store says; the watch of the store is closed once, and a read that is under way is waited for. */
static void r228_the_end_waits_for_the_store(void **state)
{
	struct world  world;
	struct vd_kv *kv;

	world_init(&world);
	open_watch(&world);
	answer_new(&world)->revision = 2;
	world.script.request.ready(world.script.request.ready_arg);
	vdi_watchchan_close(world.watchchan, on_closed, &world.closed);
	vdi_sim_run_until_idle(world.env);
	assert_true(world.closed);
	assert_int_equal(world.ready, 0);
	assert_int_equal(world.script.closed, 1);
	world.watchchan = NULL;
	world_fini(&world);
	for (int workers = 0; workers < 3; workers += 2) {
		world_init(&world);
		world.options.revision = 0;
		world.options.decode_workers = workers;
		open_watch(&world);
		vdi_watchchan_close(world.watchchan, on_closed, &world.closed);
		vdi_sim_run_until_idle(world.env);
		assert_false(world.closed);
		kv = record("a", "x", 2, 2);
		answer_range(&world, VD_OK, 2, &kv, 1, true, NULL);
		assert_true(world.closed);
		assert_int_equal(world.ready, 0);
		assert_int_equal(world.script.ranges, 1);
		world.watchchan = NULL;
		world_fini(&world);
	}
	world.closed = false;
	vdi_watchchan_close(NULL, on_closed, &world.closed);
	assert_true(world.closed);
	vdi_watchchan_close(NULL, NULL, NULL);
}

/* ---- What is counted ---- */

static int64_t counted(struct world *world, enum vdi_metric_id id, const char *first, const char *second, const char *third)
{
	const char	  *values[] = { first, second, third, NULL };
	struct vdi_metric *metric;
	int64_t		   value;

	assert_status(vdi_metric_get(vdi_env_metrics(world->env), id, values, &metric), VD_OK);
	value = vdi_metric_value(metric);
	vdi_metric_release(metric);
	return value;
}

/* rules */
static void r723_the_requests_are_counted_under_their_names(void **state)
{
	for (int single = 0; single < 2; single++) {
		struct vdi_storage_metrics *metrics;
		struct world		    world;
		struct vd_kv		   *kv;

		world_init(&world);
		assert_status(vdi_storage_metrics_new(world.env, "g", "pods", &metrics), VD_OK);
		world.options.metrics = metrics;
		world.options.send_initial_events = VD_TRUE;
		world.options.recursive = !single;
		if (single)
			world.options.key = vd_bytes_of(KEY "a");
		open_watch(&world);
		answer_range(&world, VD_OK, 2, NULL, 0, false, NULL);
		assert_int_equal(counted(&world, VDI_METRIC_ETCD_REQUESTS_TOTAL, "getCurrentResourceVersion", "g", "pods"), 1);
		assert_int_equal(counted(&world, VDI_METRIC_ETCD_REQUESTS_TOTAL, single ? "get" : "list", "g", "pods"), 0);
		kv = record("a", "x", 2, 2);
		answer_range(&world, VD_OK, 2, &kv, 1, false, NULL);
		assert_int_equal(counted(&world, VDI_METRIC_ETCD_REQUESTS_TOTAL, "getCurrentResourceVersion", "g", "pods"), 1);
		assert_int_equal(counted(&world, VDI_METRIC_ETCD_REQUESTS_TOTAL, single ? "get" : "list", "g", "pods"), 1);
		assert_int_equal(counted(&world, VDI_METRIC_ETCD_REQUESTS_TOTAL, single ? "list" : "get", "g", "pods"), 0);
		assert_int_equal(counted(&world, VDI_METRIC_ETCD_REQUEST_ERRORS_TOTAL, single ? "get" : "list", "g", "pods"), 0);
		tell_event(&world, false, record("a", "x", 2, 3), record("a", "x", 2, 2));
		tell_event(&world, false, record("a", "x", 2, 4), record("a", "x", 2, 3));
		tell_progress(&world, 5);
		assert_int_equal(counted(&world, VDI_METRIC_STORAGE_EVENTS_RECEIVED_TOTAL, "g", "pods", NULL), 2);
		assert_int_equal(counted(&world, VDI_METRIC_ETCD_BOOKMARK_TOTAL, "g", "pods", NULL), 1);
		close_watch(&world);
		world.options.revision = 0;
		world.script.refuse = VD_UNAVAILABLE; /* refused at once is counted, too */
		open_watch(&world);
		assert_int_equal(counted(&world, VDI_METRIC_ETCD_REQUEST_ERRORS_TOTAL, single ? "get" : "list", "g", "pods"), 1);
		close_watch(&world);
		vdi_storage_metrics_free(metrics);
		world_fini(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r206_the_watch_begins_behind_its_base),
		cmocka_unit_test(r201_the_key_is_copied),
		cmocka_unit_test(r207_the_pages_that_are_asked_for),
		cmocka_unit_test(r207_one_key_has_one_page),
		cmocka_unit_test(r202_r206_what_each_start_asks),
		cmocka_unit_test(r138_the_revision_of_everything),
		cmocka_unit_test(r208_a_long_read_that_does_not_begin),
		cmocka_unit_test(r211_progress_is_asked_for_once),
		cmocka_unit_test(r201_what_is_refused),
		cmocka_unit_test(r227_each_failure_in_its_words),
		cmocka_unit_test(r206_a_state_of_the_future),
		cmocka_unit_test(r226_an_error_behind_full_queues),
		cmocka_unit_test(r216_the_objects_of_an_event),
		cmocka_unit_test(r219_the_initial_state_is_filtered),
		cmocka_unit_test(a_turn_that_is_too_long_goes_on),
		cmocka_unit_test(e459_where_a_revision_ends),
		cmocka_unit_test(r165_r221_what_cannot_be_decoded),
		cmocka_unit_test(r212_without_the_record_before),
		cmocka_unit_test(r212_a_long_key_is_cut),
		cmocka_unit_test(an_object_is_not_decoded_twice),
		cmocka_unit_test(the_receiver_is_told_once),
		cmocka_unit_test(r228_the_end_waits_for_the_store),
		cmocka_unit_test(r723_the_requests_are_counted_under_their_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
