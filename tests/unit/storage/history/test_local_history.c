/* Unit tests of storage/history/local_history.c, local_recorder.c and local_watch.c: over the embedded store,
 * which plays an etcd that goes on while the server is stopped and started; on a simulated disk. */
#include "local_history.h"

#include "actor_sim.h"
#include "cacher.h"
#include "cacher_fixture.h"
#include "disk_sim.h"
#include "env.h"
#include "key_range.h"
#include "local_store.h"
#include "part_store.h"
#include "rand.h"
#include "store_chaos.h"

#define K(text) vd_bytes_of(text)
#define DIRECTORY "/data"

/* One change as the store below told it. */
struct truth {
	vd_rev revision;
	vd_rev previous; /* 0: none */
	bool   is_delete;
	char   key[40];
};

struct world {
	struct vd_env	      *env;
	struct vdi_disk	      *disk;
	struct vd_store	      *mvcc;  /* the etcd's state */
	struct vd_store	      *chaos; /* the network */
	struct vd_store	      *front; /* says that it is remote and which one; outlives what takes it over */
	struct part_options    front_options;
	struct vd_store	      *store; /* under test; NULL: stopped */
	struct vd_store_watch *oracle;
	struct truth	      *truth;
	size_t		       count, capacity;
	struct vdi_rand	       rand;
	int64_t		       bytes;
	vd_dur		       window;
	char		       log[4096];
};

static void on_log(void *arg, const struct vd_log_record *record)
{
	struct world *w = arg;
	size_t	      used = strlen(w->log);

	if (strcmp(record->module, "history") == 0)
		snprintf(w->log + used, sizeof w->log - used, "%c %s\n", "EWID"[record->level],
			 record -> message);
}

static unsigned lines(struct world *w, const char *text)
{
	unsigned count = 0;

	for (const char *at = w->log; (at = strstr(at, text)); at++)
		count++;
	return count;
}

static void ignore_ready(void *arg)
{
}

static void open_oracle(struct world *w)
{
	struct vd_store_watch_request request = { .key = K("/registry/"),
						  .range_end = K("/registry0"),
						  .start_revision = 1,
						  .previous = true,
						  .ready = ignore_ready };

	assert_status(vd_store_watch_open(w->mvcc, &request, &w->oracle, NULL), VD_OK);
}

static struct vd_store *new_mvcc(struct world *w)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct vd_store	      *store;

	options.history_window.ns = 0;
	assert_status(vd_store_open_mvcc(w->env, &options, &store, NULL), VD_OK);
	return store;
}

static void world_init(struct world *w, uint64_t seed)
{
	struct chaos_options calm = { 0 };

	memset(w, 0, sizeof *w);
	w->bytes = 1 << 20;
	w->window = VD_SECONDS(3600);
	vdi_rand_init(&w->rand, seed);
	assert_status(vdi_env_new_sim(seed, on_log, w, &w->env), VD_OK);
	assert_status(vdi_disk_sim_new(seed, &w->disk), VD_OK);
	vdi_env_set_disk(w->env, w->disk);
	w->mvcc = new_mvcc(w);
	w->chaos = chaos_store_new(w->env, w->mvcc, &calm);
	w->front_options = (struct part_options) { .part_len = 100, .is_remote = true, .id = 11 };
	w->front = part_store_new(w->env, w->chaos, &w->front_options);
	open_oracle(w);
}

static vd_status try_start(struct world *w, struct vd_error *error)
{
	struct vdi_local_history_options options = { .data_dir = DIRECTORY,
						     .prefix = "/registry/",
						     .history_bytes = w->bytes,
						     .history_window = w->window };

	return vdi_local_history_open(w->env, w->front, &options, &w->store, error);
}

static void start(struct world *w)
{
	struct vd_error error = { 0 };

	w->log[0] = 0;
	assert_status(try_start(w, &error), VD_OK);
	vdi_sim_advance(w->env, VD_MS(100));
}

static void stop(struct world *w)
{
	w->store = vd_store_close_wait(w->store);
}

/* Everything that was not synced may be lost, in part. */
static void power_cut(struct world *w)
{
	vdi_disk_sim_fail_nth(w->disk, 1, VDI_DISK_SIM_CRASH);
	stop(w);
	vdi_disk_sim_crash(w->disk);
}

static void world_fini(struct world *w)
{
	if (w->store)
		stop(w);
	vd_store_watch_close(w->oracle);
	part_store_free(w->front);
	chaos_store_free(w->chaos);
	vd_store_close_wait(w->mvcc);
	vdi_disk_sim_free(w->disk);
	vd_env_free(w->env);
	vdi_free(w->truth);
}

static vd_rev put(struct world *w, const char *key, const char *value)
{
	vd_rev revision;

	assert_status(vd_store_put_wait(w->mvcc, K(key), K(value), &revision, NULL), VD_OK);
	return revision;
}

static vd_rev put_some(struct world *w, unsigned count)
{
	vd_rev revision = 0;

	for (unsigned i = 0; i < count; i++) {
		char key[40], value[64];

		snprintf(key, sizeof key, "/registry/pods/ns/p%02u", (unsigned) vdi_rand_below(&w->rand, 20));
		snprintf(value, sizeof value, "{\"n\":%u}", (unsigned) vdi_rand_next(&w->rand));
		if (vdi_rand_once_in(&w->rand, 5)) {
			vd_rev	deleted = 0;
			int64_t number;

			assert_status(vd_store_delete_wait(w->mvcc, K(key), (struct vd_bytes) { 0 }, &number,
							   &deleted, NULL),
				      VD_OK);
			revision = VDI_MAX(revision, deleted);
		} else {
			revision = put(w, key, value);
		}
	}
	vdi_sim_advance(w->env, VD_MS(100));
	return revision;
}

static void on_compacted(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	assert_status(status, VD_OK);
}

static struct truth truth_of(const struct vd_store_event *event)
{
	struct truth truth = { .revision = event->kv->mod_rev,
			       .previous = event->previous ? event->previous->mod_rev : 0,
			       .is_delete = event->is_delete };

	memcpy(truth.key, event->kv->data, event->kv->key_size);
	return truth;
}

static void ask_oracle(struct world *w)
{
	struct vd_store_batch batch;

	while (vd_store_watch_next(w->oracle, 100, &batch, NULL) == VD_OK)
		for (size_t i = 0; i < batch.event_count; i++) {
			assert_true(
				vdi_grow((void **) &w->truth, &w->capacity, w->count + 1, sizeof *w->truth));
			w->truth[w->count++] = truth_of(&batch.events[i]);
		}
}

/* The store below forgets; the oracle has heard it all before. */
static void compact(struct world *w, vd_rev revision)
{
	ask_oracle(w);
	assert_status(vd_store_compact(w->mvcc, revision, false, on_compacted, NULL), VD_OK);
	vdi_sim_advance(w->env, VD_MS(100));
}

struct reader {
	struct vd_store_watch *watch;
	size_t		       at; /* in the truth */
	size_t		       count;
	vd_rev		       progress;
	vd_status	       status;
};

/* Reads what there is; each event must be the next true one. */
static void read_some(struct world *w, struct reader *reader, const char *prefix)
{
	struct vd_store_batch batch;

	ask_oracle(w);
	while ((reader->status = vd_store_watch_next(reader->watch, 1 + vdi_rand_below(&w->rand, 30), &batch,
						     NULL)) == VD_OK) {
		if (batch.event_count == 0)
			reader->progress = batch.revision;
		for (size_t i = 0; i < batch.event_count; i++) {
			struct truth heard = truth_of(&batch.events[i]);

			while (reader->at < w->count &&
			       strncmp(w->truth[reader->at].key, prefix, strlen(prefix)) != 0)
				reader->at++;
			assert_true(reader->at < w->count);
			assert_int_equal(heard.revision, w->truth[reader->at].revision);
			assert_int_equal(heard.previous, w->truth[reader->at].previous);
			assert_int_equal(heard.is_delete, w->truth[reader->at].is_delete);
			assert_string_equal(heard.key, w->truth[reader->at].key);
			reader->at++;
			reader->count++;
		}
	}
}

/* A watch of prefix from after a revision gets exactly what happened, and then is told of progress. Returns
 * its number of events. */
static size_t assert_watch_is_true(struct world *w, const char *prefix, vd_rev after)
{
	char			      end[64];
	struct vd_store_watch_request request = { .key = K(prefix),
						  .range_end = vdi_bytes_prefix_end(K(prefix), end),
						  .start_revision = after + 1,
						  .previous = true,
						  .ready = ignore_ready };
	struct reader		      reader = { 0 };
	struct vd_store_status	      status;
	size_t			      left = 0;

	assert_status(vd_store_watch_open(w->store, &request, &reader.watch, NULL), VD_OK);
	ask_oracle(w);
	while (reader.at < w->count && w->truth[reader.at].revision <= after)
		reader.at++;
	(void) vd_store_watch_progress(reader.watch);
	for (unsigned i = 0; i < 50; i++) {
		vdi_sim_advance(w->env, VD_MS(50));
		read_some(w, &reader, prefix);
	}
	assert_status(reader.status, VD_AGAIN);
	for (size_t i = reader.at; i < w->count; i++)
		left += strncmp(w->truth[i].key, prefix, strlen(prefix)) == 0;
	assert_int_equal(left, 0);
	assert_status(vd_store_status_get(w->mvcc, &status), VD_OK);
	if (after < status.current) /* E-340 */
		assert_int_equal(reader.progress, status.current);
	vd_store_watch_close(reader.watch);
	return reader.count;
}

static vd_status watch_ends_with(struct world *w, vd_rev after)
{
	struct vd_store_watch_request request = { .key = K("/registry/pods/"),
						  .range_end = K("/registry/pods0"),
						  .start_revision = after + 1,
						  .ready = ignore_ready };
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

static struct vd_store_status status_of(struct world *w)
{
	struct vd_store_status status;

	assert_status(vd_store_status_get(w->store, &status), VD_OK);
	return status;
}

/* ---- Restarts ---- */

static void a_watch_goes_on_across_a_restart_whatever_was_compacted(void **state)
{
	for (int is_cut = 0; is_cut < 2; is_cut++) {
		struct world w;
		vd_rev	     before, last, later;

		world_init(&w, 1);
		put(&w, "/registry/pods/ns/first", "{}");
		start(&w);
		assert_int_equal(status_of(&w).history, 0);
		before = put_some(&w, 100);
		last = put_some(&w, 100);
		vdi_sim_advance(w.env, VD_SECONDS(20)); /* synced */
		if (is_cut)
			power_cut(&w);
		else
			stop(&w);
		/* Meanwhile: more happens, and what was recorded is compacted. */
		compact(&w, last);
		later = put_some(&w, 30);
		start(&w);
		assert_int_equal(lines(&w, "W "), 0);
		assert_int_equal(lines(&w, "watches can go on from revision 1: "), 1);
		assert_int_equal(status_of(&w).history, 1);
		assert_true(assert_watch_is_true(&w, "/registry/", 1) > 200);
		assert_true(assert_watch_is_true(&w, "/registry/pods/ns/p1", before) > 10);
		assert_true(assert_watch_is_true(&w, "/registry/pods/", last) > 20);
		put_some(&w, 20);
		assert_true(assert_watch_is_true(&w, "/registry/", later) > 10);
		/* And once more, with nothing in between. */
		stop(&w);
		compact(&w, later);
		start(&w);
		assert_true(assert_watch_is_true(&w, "/registry/", 1) > 240);
		world_fini(&w);
	}
}

static void other_watches_are_the_stores_own(void **state)
{
	struct world w;
	vd_rev	     last;

	world_init(&w, 1);
	start(&w);
	last = put_some(&w, 50);
	stop(&w);
	compact(&w, last);
	start(&w);
	/* Below the history; of other keys, of which nothing is known; and from now on. */
	assert_status(watch_ends_with(&w, -1), VD_AGAIN);
	{
		struct vd_store_watch_request request = { .key = K("/other"),
							  .start_revision = 3,
							  .ready = ignore_ready };
		struct vd_store_watch	     *watch;
		struct vd_store_batch	      batch;

		assert_status(vd_store_watch_open(w.store, &request, &watch, NULL), VD_OK);
		assert_status(vd_store_watch_next(watch, 100, &batch, NULL), VD_EXPIRED);
		vd_store_watch_close(watch);
	}
	assert_int_equal(assert_watch_is_true(&w, "/registry/", last), 0);
	world_fini(&w);
}

static void filters_of_a_watch_hold_for_the_past(void **state)
{
	struct world w;

	world_init(&w, 5);
	start(&w);
	put_some(&w, 100);
	stop(&w);
	start(&w);
	for (int puts = 0; puts < 2; puts++) {
		struct vd_store_watch_request request = { .key = K("/registry/"),
							  .range_end = K("/registry0"),
							  .start_revision = 2,
							  .no_put = !puts,
							  .no_delete = puts,
							  .ready = ignore_ready };
		struct vd_store_watch	     *watch;
		struct vd_store_batch	      batch;
		size_t			      count = 0, expected = 0;

		assert_status(vd_store_watch_open(w.store, &request, &watch, NULL), VD_OK);
		while (vd_store_watch_next(watch, 7, &batch, NULL) == VD_OK)
			for (size_t i = 0; i < batch.event_count; i++, count++) {
				assert_int_equal(batch.events[i].is_delete, !puts);
				assert_null(batch.events[i].previous);
			}
		ask_oracle(&w);
		for (size_t i = 0; i < w.count; i++)
			expected += w.truth[i].is_delete == !puts;
		assert_int_equal(count, expected);
		vd_store_watch_close(watch);
	}
	world_fini(&w);
}

static void a_gap_that_was_compacted_drops_the_history(void **state)
{
	struct world w;
	vd_rev	     last, later;

	world_init(&w, 2);
	start(&w);
	last = put_some(&w, 50);
	stop(&w);
	later = put_some(&w, 10);
	compact(&w, later);
	start(&w);
	assert_int_equal(lines(&w, "W "), 1);
	assert_int_equal(lines(&w, "is dropped, clients from before this start list again: etcd has "
				   "compacted what came after revision"),
			 1);
	assert_int_equal(status_of(&w).history, 0);
	assert_status(watch_ends_with(&w, last), VD_EXPIRED);
	/* From then on it is like any other. */
	put_some(&w, 20);
	stop(&w);
	start(&w);
	assert_int_equal(lines(&w, "W "), 0);
	assert_true(assert_watch_is_true(&w, "/registry/", later) > 10);
	world_fini(&w);
}

static void another_cluster_drops_the_history(void **state)
{
	struct world w;

	world_init(&w, 2);
	start(&w);
	put_some(&w, 50);
	stop(&w);
	part_store_free(w.front);
	w.front_options.id = 12;
	w.front = part_store_new(w.env, w.chaos, &w.front_options);
	start(&w);
	assert_int_equal(lines(&w, "W "), 1);
	assert_int_equal(lines(&w, "another etcd cluster"), 1);
	assert_int_equal(status_of(&w).history, 0);
	world_fini(&w);
}

/* The cluster's id stays; its state is an older one that has gone another way since. */
static void a_store_that_was_restored_drops_the_history(void **state)
{
	for (int what = 0; what < 5; what++) {
		struct world	 w;
		struct vd_store *restored;
		vd_rev		 last, revision = 0;

		world_init(&w, 2);
		restored = new_mvcc(&w);
		start(&w);
		for (unsigned i = 0; i < 40; i++) {
			char key[40];

			snprintf(key, sizeof key, "/registry/pods/ns/p%02u", i % 10);
			last = put(&w, key, i < 20 || what == 3 ? "{}" : "{\"late\":1}");
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
		stop(&w);
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
		start(&w);
		assert_int_equal(lines(&w, "W "), 1);
		assert_int_equal(lines(&w, "it was restored, or is another one"), 1);
		assert_int_equal(status_of(&w).history, 0);
		stop(&w);
		/* The oracle's store is the old one. */
		chaos_set_inner(w.chaos, w.mvcc);
		vd_store_close_wait(restored);
		world_fini(&w);
	}
}

/* Nothing happens under the prefix, but elsewhere; etcd compacts; a revision that is at most ten seconds old
 * was noted. */
static void an_idle_prefix_is_followed_by_marks(void **state)
{
	struct world w;
	vd_rev	     last, other = 0;

	world_init(&w, 3);
	start(&w);
	last = put_some(&w, 20);
	for (unsigned i = 0; i < 100; i++) {
		other = put(&w, "/elsewhere", "x");
		vdi_sim_advance(w.env, VD_SECONDS(1));
	}
	vdi_sim_advance(w.env, VD_SECONDS(21));
	power_cut(&w);
	compact(&w, other);
	start(&w);
	assert_int_equal(lines(&w, "W "), 0);
	assert_true(assert_watch_is_true(&w, "/registry/", 1) > 10);
	assert_int_equal(assert_watch_is_true(&w, "/registry/", last), 0);
	/* Nothing at all was recorded: then nothing can be confirmed, and the store tells the rest. */
	world_fini(&w);

	world_init(&w, 3);
	start(&w);
	put(&w, "/elsewhere", "x");
	vdi_sim_advance(w.env, VD_SECONDS(30));
	stop(&w);
	start(&w);
	assert_int_equal(lines(&w, "W "), 0);
	put_some(&w, 5);
	assert_true(assert_watch_is_true(&w, "/registry/", 1) > 0);
	world_fini(&w);
}

/* A new history takes from the store what it still has. */
static void a_first_start_looks_back(void **state)
{
	for (int is_compacted = 0; is_compacted < 2; is_compacted++) {
		struct world w;
		vd_rev	     at, last;

		world_init(&w, 4);
		at = put_some(&w, 50);
		put_some(&w, 50);
		if (is_compacted)
			compact(&w, at);
		start(&w);
		vdi_sim_advance(w.env, VD_SECONDS(5));
		assert_int_equal(lines(&w, "W "), 0);
		last = put_some(&w, 10);
		stop(&w);
		compact(&w, last);
		start(&w);
		assert_int_equal(status_of(&w).history, is_compacted ? at : 1);
		(void) assert_watch_is_true(&w, "/registry/", is_compacted ? at : 1);
		world_fini(&w);
	}
}

/* ---- The caches above ---- */

static void open_watch(struct cacher_fixture *f, struct recorder *r, vd_rev revision)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;

	options.revision = revision;
	assert_status(recorder_open(f, r, &options, vdi_env_runner(f->env)), VD_OK);
	vdi_sim_advance(f->env, VD_SECONDS(1));
}

/* 100 updates, a restart, everything compacted: a client just inside the window goes on with exactly what it
 * missed, one just past it is told 410. */
static void r483_just_inside_and_just_past_the_window(void **state)
{
	struct cacher_fixture f;
	struct world	      w;
	struct recorder	     *r = calloc(1, sizeof *r);
	vd_rev		      at[100];

	world_init(&w, 6);
	cacher_fixture_init(&f, 6);
	vd_store_close_wait(f.store);
	vd_env_free(f.env);
	f.env = w.env;
	f.store = w.mvcc;
	f.options.history_window = VD_SECONDS(600);
	w.window = VD_SECONDS(50);
	start(&w);
	for (unsigned i = 0; i < 100; i++) {
		vdi_sim_advance(w.env, VD_SECONDS(1));
		at[i] = put_pod(&f, "ns", i % 2 ? "a" : "b", "app", NULL);
	}
	vdi_sim_advance(w.env, VD_MS(500));
	stop(&w);
	compact(&w, at[99]);
	start(&w);
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
	assert_in_range(status_of(&w).kept, at[49] + 1, at[95]);
	assert_in_range(vdi_history_floor(&f.cacher->watch_cache.history), at[49] + 1, status_of(&w).kept);
	f.cacher = vd_cacher_close_wait(f.cacher);
	vd_codec_free(f.codec);
	world_fini(&w);
	free(r);
}

static void the_past_leaves_memory_when_nobody_needs_it(void **state)
{
	struct world w;
	vd_rev	     last;

	world_init(&w, 7);
	start(&w);
	last = put_some(&w, 100);
	stop(&w);
	compact(&w, last);
	start(&w);
	assert_int_equal(status_of(&w).history, 1);
	vdi_sim_advance(w.env, VD_SECONDS(50));
	assert_true(assert_watch_is_true(&w, "/registry/", 1) > 50); /* used: another minute */
	vdi_sim_advance(w.env, VD_SECONDS(50));
	assert_int_equal(status_of(&w).history, 1);
	vdi_sim_advance(w.env, VD_SECONDS(20));
	assert_int_equal(status_of(&w).history, 0);
	assert_status(watch_ends_with(&w, 2), VD_EXPIRED);
	/* On disk it is as it was. */
	assert_int_equal(status_of(&w).kept, 1);
	stop(&w);
	start(&w);
	assert_int_equal(status_of(&w).history, 1);
	world_fini(&w);
}

/* ---- Disks ---- */

static int64_t metric(struct world *w, enum vdi_metric_id id)
{
	const char	  *values[4] = { 0 };
	struct vdi_metric *instance;
	struct vdi_buffer  buffer;
	int64_t		   value;

	vdi_buffer_init(&buffer, 16 << 20);
	assert_status(vdi_metrics_render(vdi_env_metrics(w->env), &buffer), VD_OK);
	vdi_buffer_fini(&buffer);
	assert_status(vdi_metric_get(vdi_env_metrics(w->env), id, values, &instance), VD_OK);
	value = vdi_metric_value(instance);
	vdi_metric_release(instance);
	return value;
}

static void a_full_disk_is_said_once_and_loses_nothing(void **state)
{
	struct world w;
	vd_rev	     last;

	world_init(&w, 8);
	start(&w);
	put_some(&w, 20);
	assert_int_equal(metric(&w, VDI_METRIC_LOCAL_HISTORY_RECORDING), 1);
	vdi_disk_sim_set_capacity(w.disk, 0);
	for (unsigned i = 0; i < 20; i++) {
		put_some(&w, 5);
		vdi_sim_advance(w.env, VD_SECONDS(10));
	}
	assert_int_equal(lines(&w, "W "), 1);
	assert_int_equal(lines(&w, "is not written at the moment, everything else goes on: "), 1);
	assert_int_equal(metric(&w, VDI_METRIC_LOCAL_HISTORY_RECORDING), 0);
	assert_true(metric(&w, VDI_METRIC_LOCAL_HISTORY_FAILURES_TOTAL) > 3);
	assert_int_equal(metric(&w, VDI_METRIC_LOCAL_HISTORY_DROPS_TOTAL), 0);
	vdi_disk_sim_set_capacity(w.disk, INT64_MAX);
	vdi_sim_advance(w.env, VD_SECONDS(60));
	assert_int_equal(lines(&w, "is written again"), 1);
	assert_int_equal(metric(&w, VDI_METRIC_LOCAL_HISTORY_RECORDING), 1);
	last = put_some(&w, 5);
	stop(&w);
	compact(&w, last);
	start(&w);
	assert_true(assert_watch_is_true(&w, "/registry/", 1) > 80);
	/* Full when it starts. */
	stop(&w);
	vdi_disk_sim_set_capacity(w.disk, 0);
	start(&w);
	last = put_some(&w, 5);
	assert_int_equal(lines(&w, "W "), 1);
	stop(&w);
	world_fini(&w);
}

/* It fell so far behind that etcd has compacted. */
static void a_disk_that_is_full_for_too_long_costs_the_history(void **state)
{
	struct world w;
	vd_rev	     at, last;

	world_init(&w, 8);
	start(&w);
	put_some(&w, 20);
	vdi_disk_sim_set_capacity(w.disk, 0);
	at = put_some(&w, 20);
	chaos_cut(w.chaos);
	vdi_sim_advance(w.env, VD_SECONDS(3));
	compact(&w, at);
	vdi_disk_sim_set_capacity(w.disk, INT64_MAX);
	vdi_sim_advance(w.env, VD_SECONDS(120));
	last = put_some(&w, 5);
	stop(&w);
	compact(&w, last);
	start(&w);
	/* What was heard before the watch broke could be written after all, or the history begins again where
	 * the store's does. */
	assert_true(status_of(&w).history >= 1);
	(void) assert_watch_is_true(&w, "/registry/", status_of(&w).history);
	world_fini(&w);
}

/* The recorder hears of all of it at once. */
static void a_burst_stays_within_the_bytes(void **state)
{
	struct world w;

	world_init(&w, 15);
	w.bytes = 128 << 10;
	for (unsigned i = 0; i < 3; i++)
		(void) put_some(&w, 1000);
	start(&w);
	vdi_sim_advance(w.env, VD_SECONDS(1));
	assert_int_equal(status_of(&w).kept, metric(&w, VDI_METRIC_LOCAL_HISTORY_OLDEST_REVISION));
	assert_true(status_of(&w).kept > 1000);
	assert_in_range(metric(&w, VDI_METRIC_LOCAL_HISTORY_BYTES), w.bytes / 2,
			w.bytes + w.bytes / VDI_HISTORY_SEGMENTS + 8192);
	stop(&w);
	start(&w);
	assert_true(status_of(&w).history > 1);
	assert_true(assert_watch_is_true(&w, "/registry/", status_of(&w).history) > 100);
	world_fini(&w);
}

static void a_disk_that_fails_begins_a_new_history(void **state)
{
	for (uint64_t nth = 1; nth < 12; nth++) {
		struct world w;
		vd_rev	     last;

		world_init(&w, nth);
		start(&w);
		put_some(&w, 20);
		vdi_disk_sim_fail_nth(w.disk, nth, VDI_DISK_SIM_IO);
		for (unsigned i = 0; i < 8; i++) {
			put_some(&w, 5);
			vdi_sim_advance(w.env, VD_SECONDS(6));
		}
		assert_true(vdi_disk_sim_failed(w.disk));
		assert_int_equal(lines(&w, "W "), 1);
		assert_int_equal(lines(&w, "begins again, what was recorded is given up: "), 1);
		vdi_sim_advance(w.env, VD_SECONDS(60));
		assert_int_equal(lines(&w, "is written again"), 1);
		/* The caches forget nothing because of it. */
		assert_int_equal(status_of(&w).kept, 1);
		assert_true(metric(&w, VDI_METRIC_LOCAL_HISTORY_OLDEST_REVISION) > 1);
		last = put_some(&w, 20);
		stop(&w);
		compact(&w, last);
		start(&w);
		assert_true(status_of(&w).history > 1);
		(void) assert_watch_is_true(&w, "/registry/", status_of(&w).history);
		world_fini(&w);
	}
}

static void bit_rot_is_said_and_not_told(void **state)
{
	struct world w;
	int64_t	     size;

	world_init(&w, 9);
	w.bytes = 128 << 10;
	start(&w);
	for (unsigned i = 0; i < 10; i++)
		put_some(&w, 60);
	vdi_sim_advance(w.env, VD_SECONDS(10));
	stop(&w);
	assert_non_null(vdi_disk_sim_content(w.disk, "history-0000000000000002.vdh", &size));
	vdi_disk_sim_flip(w.disk, "history-0000000000000002.vdh", size / 2, 1);
	start(&w);
	assert_int_equal(lines(&w, "W a part of the local history in " DIRECTORY " is lost: "), 1);
	assert_true(status_of(&w).history > 1);
	assert_true(assert_watch_is_true(&w, "/registry/", status_of(&w).history) > 10);
	world_fini(&w);
}

static void one_directory_serves_one_server(void **state)
{
	struct world			 w;
	struct vd_store			*second;
	struct vd_error			 error = { 0 };
	struct vdi_local_history_options options = { .data_dir = DIRECTORY, .prefix = "/registry/" };

	world_init(&w, 10);
	start(&w);
	assert_status(vdi_local_history_open(w.env, w.front, &options, &second, &error), VD_LOCKED);
	put_some(&w, 3);
	world_fini(&w);
}

static void a_directory_that_cannot_be_made_is_an_error(void **state)
{
	struct world			 w;
	struct vd_error			 error = { 0 };
	struct vdi_local_history_options options = { .data_dir = "/proc/vedette-history",
						     .prefix = "/registry/" };

	world_init(&w, 10);
	vdi_env_set_disk(w.env, NULL);
	assert_int_not_equal(vdi_local_history_open(w.env, w.front, &options, &w.store, &error), VD_OK);
	assert_non_null(strstr(error.message, "/proc/vedette-history"));
	w.store = NULL;
	vdi_env_set_disk(w.env, w.disk);
	world_fini(&w);
}

static void a_store_that_does_not_answer_is_asked_again(void **state)
{
	struct chaos_options refusing = { .refuse = 1000 }, sometimes = { .refuse = 500 };
	struct world	     w;
	struct vd_error	     error = { 0 };

	world_init(&w, 11);
	start(&w);
	put_some(&w, 10);
	stop(&w);
	chaos_set(w.chaos, &refusing);
	assert_status(try_start(&w, &error), VD_UNAVAILABLE);
	chaos_set(w.chaos, &sometimes);
	start(&w);
	assert_int_equal(status_of(&w).history, 1);
	world_fini(&w);
}

/* ---- Bad luck ---- */

static void the_truth_survives_bad_luck(void **state)
{
	uint64_t kept = 0, dropped = 0, cuts = 0;

	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct world w;

		world_init(&w, seed);
		w.bytes = 32 << 10;
		start(&w);
		for (unsigned round = 0; round < 10; round++) {
			struct chaos_options rough = { .delay = 100,
						       .delay_max = VD_MS(300),
						       .cut = 30,
						       .stall = 100,
						       .refuse_watch = 100 },
					     calm = { 0 };
			vd_rev last = 1;

			chaos_set(w.chaos, &rough);
			for (unsigned i = 0; i < 20; i++) {
				last = VDI_MAX(last,
					       put_some(&w, 1 + (unsigned) vdi_rand_below(&w.rand, 20)));
				vdi_sim_advance(w.env, VD_MS((int64_t) vdi_rand_below(&w.rand, 2000)));
				if (vdi_rand_once_in(&w.rand, 40))
					vdi_disk_sim_fail_nth(w.disk, 1 + vdi_rand_below(&w.rand, 5),
							      vdi_rand_once_in(&w.rand, 2) ?
								      VDI_DISK_SIM_NO_SPACE :
								      VDI_DISK_SIM_SHORT_WRITE);
			}
			vdi_sim_advance(w.env, VD_SECONDS(vdi_rand_once_in(&w.rand, 2) ? 60 : 0));
			vdi_disk_sim_fail_nth(w.disk, 0, VDI_DISK_SIM_IO);
			if (vdi_rand_once_in(&w.rand, 2))
				power_cut(&w);
			else
				stop(&w);
			cuts = chaos_marks(w.chaos)->cuts;
			chaos_set(w.chaos, &calm);
			if (vdi_rand_once_in(&w.rand, 2))
				compact(&w, last - (vd_rev) vdi_rand_below(&w.rand, 30));
			start(&w);
			if (status_of(&w).history) {
				(void) assert_watch_is_true(&w, "/registry/", status_of(&w).history);
				(void) assert_watch_is_true(&w, "/registry/pods/ns/p0",
							    status_of(&w).history +
								    (vd_rev) vdi_rand_below(&w.rand, 30));
				kept++;
			} else {
				assert_true(lines(&w, "is dropped") == 1 || w.log[0] == 0);
				dropped++;
			}
		}
		world_fini(&w);
	}
	assert_true(kept > 100);
	assert_true(dropped > 10);
	assert_true(cuts > 0);
}

static void torture_every_allocation_may_fail(void **state)
{
	bool was_hit = true;

	for (uint64_t nth = 1; was_hit; nth++) {
		struct world	w;
		struct vd_error error = { 0 };
		vd_status	status;
		vd_rev		last;

		world_init(&w, 12);
		start(&w);
		put_some(&w, 30);
		stop(&w);
		vdi_alloc_fail_nth(nth, 1);
		status = try_start(&w, &error);
		if (status != VD_OK) {
			assert_status(status, VD_NOMEM);
			assert_status(try_start(&w, &error), VD_OK);
		}
		vdi_sim_advance(w.env, VD_SECONDS(40));
		was_hit = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		(void) assert_watch_is_true(&w, "/registry/", 1);
		last = put_some(&w, 10);
		vdi_sim_advance(w.env, VD_SECONDS(40));
		stop(&w);
		compact(&w, last);
		start(&w);
		assert_true(assert_watch_is_true(&w, "/registry/", 1) > 25);
		world_fini(&w);
	}
}

static void torture_a_watch_in_the_past(void **state)
{
	bool	     was_hit = true;
	struct world w;
	vd_rev	     last;

	world_init(&w, 13);
	start(&w);
	last = put_some(&w, 60);
	stop(&w);
	compact(&w, last);
	start(&w);
	for (uint64_t nth = 1; was_hit; nth++) {
		struct vd_store_watch_request request = { .key = K("/registry/"),
							  .range_end = K("/registry0"),
							  .start_revision = 2,
							  .ready = ignore_ready };
		struct vd_store_watch	     *watch;
		struct vd_store_batch	      batch;
		vd_status		      status;

		vdi_alloc_fail_nth(nth, 1);
		status = vd_store_watch_open(w.store, &request, &watch, NULL);
		if (status == VD_OK) {
			while ((status = vd_store_watch_next(watch, 9, &batch, NULL)) == VD_OK)
				;
			vd_store_watch_close(watch);
		}
		was_hit = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, was_hit ? VD_NOMEM : VD_AGAIN);
	}
	world_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_watch_goes_on_across_a_restart_whatever_was_compacted),
		cmocka_unit_test(other_watches_are_the_stores_own),
		cmocka_unit_test(filters_of_a_watch_hold_for_the_past),
		cmocka_unit_test(a_gap_that_was_compacted_drops_the_history),
		cmocka_unit_test(another_cluster_drops_the_history),
		cmocka_unit_test(a_store_that_was_restored_drops_the_history),
		cmocka_unit_test(an_idle_prefix_is_followed_by_marks),
		cmocka_unit_test(a_first_start_looks_back),
		cmocka_unit_test(r483_just_inside_and_just_past_the_window),
		cmocka_unit_test(the_past_leaves_memory_when_nobody_needs_it),
		cmocka_unit_test(a_full_disk_is_said_once_and_loses_nothing),
		cmocka_unit_test(a_disk_that_is_full_for_too_long_costs_the_history),
		cmocka_unit_test(a_burst_stays_within_the_bytes),
		cmocka_unit_test(a_disk_that_fails_begins_a_new_history),
		cmocka_unit_test(bit_rot_is_said_and_not_told),
		cmocka_unit_test(one_directory_serves_one_server),
		cmocka_unit_test(a_directory_that_cannot_be_made_is_an_error),
		cmocka_unit_test(a_store_that_does_not_answer_is_asked_again),
		cmocka_unit_test(the_truth_survives_bad_luck),
		cmocka_unit_test(torture_every_allocation_may_fail),
		cmocka_unit_test(torture_a_watch_in_the_past),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
