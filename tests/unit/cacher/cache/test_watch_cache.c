/* The watch cache by itself: whole revisions, exact revisions against a model, fresh waiters. */
#include "watch_cache.h"

#include "actor_sim.h"
#include "pod_objects.h"
#include "rand.h"

struct world {
	int64_t		       live;
	struct vd_env	      *env;
	struct vd_codec	      *codec;
	struct vdi_watch_cache cache;
};

static void world_init(struct world *world, const char *const *index_labels)
{
	memset(world, 0, sizeof *world);
	world->live = vdi_alloc_live();
	assert_status(vdi_env_new_sim(1, NULL, NULL, &world->env), VD_OK);
	world->codec = pod_codec_new();
	assert_status(
		vdi_watch_cache_init(&world->cache, world->env, 1 << 24, VD_SECONDS(75), 1, index_labels),
		VD_OK);
	vdi_history_reset(&world->cache.history, 1);
	atomic_store(&world->cache.revision, 1);
}

static void world_fini(struct world *world)
{
	vdi_watch_cache_fini(&world->cache);
	vd_codec_free(world->codec);
	vd_env_free(world->env);
	assert_int_equal(vdi_alloc_live(), world->live);
}

static struct vdi_watchchan_event put_event(struct world *world, vd_rev revision, const char *name,
					    const char *app)
{
	return (struct vdi_watchchan_event) { .type = VD_WATCH_ADDED,
					      .revision = revision,
					      .object =
						      pod_new(world->codec, "ns", name, app, app, revision) };
}

static struct vdi_watchchan_event delete_event(struct world *world, vd_rev revision, const char *name)
{
	return (struct vdi_watchchan_event) { .type = VD_WATCH_DELETED,
					      .revision = revision,
					      .object = pod_new(world->codec, "ns", name, "last", NULL,
								revision - 1) };
}

static vd_status apply(struct world *world, struct vdi_watchchan_event *events, size_t count,
		       size_t *ret_taken, size_t *ret_made)
{
	struct vdi_event  *made[64];
	struct vdi_applied applied = { .made = made };
	vd_status	   status = vdi_watch_cache_apply(&world->cache, events, count, &applied);

	for (size_t i = 0; i < applied.made_count; i++)
		vdi_event_unref(made[i]);
	*ret_taken = applied.taken;
	*ret_made = applied.made_count;
	return status;
}

static void t160_r433_the_previous_object_is_the_caches_own(void **state)
{
	struct world		   world;
	struct vdi_watchchan_event events[4];
	struct vdi_event	  *event;
	size_t			   taken, made;

	world_init(&world, NULL);
	events[0] = put_event(&world, 2, "x", "one");
	events[1] = put_event(&world, 3, "x", "two");
	events[2] = delete_event(&world, 4, "x");
	events[3] = delete_event(&world, 5, "never-seen");
	assert_status(apply(&world, events, 4, &taken, &made), VD_OK);
	assert_int_equal(taken, 4);
	assert_int_equal(made, 3);
	assert_int_equal(vdi_watch_cache_revision(&world.cache), 5);
	event = vdi_history_at(&world.cache.history, world.cache.history.start + 0);
	assert_null(event->old_object);
	event = vdi_history_at(&world.cache.history, world.cache.history.start + 1);
	assert_int_equal(vd_object_revision(event->old_object), 2);
	event = vdi_history_at(&world.cache.history, world.cache.history.start + 2);
	assert_null(event->object);
	assert_ptr_equal(event->old_object,
			 vdi_history_at(&world.cache.history, world.cache.history.start + 1)->object);
	assert_int_equal(vdi_btree_count(&world.cache.store.objects), 0);
	for (size_t i = 0; i < 4; i++)
		vdi_watchchan_event_fini(&events[i]);
	world_fini(&world);
}

/* What key "ns/<name>" is in the cache: its revision; 0: absent. */
static vd_rev get_pod(struct world *world, const char *name)
{
	char		  key[64];
	vd_rev		  state = 0, revision;
	struct vd_object *object;

	snprintf(key, sizeof key, "/registry/pods/ns/%s", name);
	object = vdi_watch_cache_get(&world->cache, vd_bytes_of(key), &state);
	assert_int_equal(state, vdi_watch_cache_revision(&world->cache));
	revision = object ? vd_object_revision(object) : 0;
	vd_object_unref(object);
	return revision;
}

/* TestWatchCacheBasic: add, update, get, delete, list, replace. */
static void t160_what_was_put_and_not_deleted_is_listed(void **state)
{
	struct world		   world;
	struct vdi_watchchan_event events[5];
	struct vdi_btree	   objects;
	size_t			   taken, made;

	world_init(&world, NULL);
	assert_int_equal(get_pod(&world, "x"), 0);
	assert_string_equal(pod_names(vdi_btree_view(&world.cache.store.objects)), "");
	events[0] = put_event(&world, 2, "x", "one");
	events[1] = put_event(&world, 3, "y", "one");
	events[2] = put_event(&world, 4, "z", "one");
	events[3] = put_event(&world, 5, "x", "two");
	events[4] = delete_event(&world, 6, "y");
	for (size_t i = 0; i < 5; i++) {
		static const char *const names[] = { "ns/x", "ns/x ns/y", "ns/x ns/y ns/z", "ns/x ns/y ns/z",
						     "ns/x ns/z" };

		assert_status(apply(&world, &events[i], 1, &taken, &made), VD_OK);
		assert_int_equal(taken + made, 2);
		assert_string_equal(pod_names(vdi_btree_view(&world.cache.store.objects)), names[i]);
		vdi_watchchan_event_fini(&events[i]);
	}
	assert_int_equal(get_pod(&world, "x"), 5);
	assert_int_equal(get_pod(&world, "y"), 0);
	assert_int_equal(get_pod(&world, "z"), 4);
	vdi_btree_init(&objects, &vdi_object_btree_ops);
	for (vd_rev revision = 7; revision < 9; revision++) {
		struct vd_object *object =
			pod_new(world.codec, "ns", revision == 7 ? "z" : "a", NULL, NULL, revision);

		assert_status(vdi_btree_put(&objects, object, NULL), VD_OK);
		vd_object_unref(object);
	}
	vdi_watch_cache_replace(&world.cache, &objects, -1, 9, false);
	vdi_btree_fini(&objects);
	assert_int_equal(vdi_watch_cache_revision(&world.cache), 9);
	assert_string_equal(pod_names(vdi_btree_view(&world.cache.store.objects)), "ns/a ns/z");
	assert_int_equal(get_pod(&world, "x"), 0);
	assert_int_equal(get_pod(&world, "z"), 7);
	assert_int_equal(get_pod(&world, "a"), 8);
	events[0] = put_event(&world, 10, "x", "three");
	assert_status(apply(&world, events, 1, &taken, &made), VD_OK);
	assert_int_equal(get_pod(&world, "x"), 10);
	vdi_watchchan_event_fini(&events[0]);
	world_fini(&world);
}

static void check_index(struct world *world, size_t index, const char *value, const char *names)
{
	struct vdi_btree_snapshot found;

	if (!vdi_object_index_snapshot(&world->cache.store.indexes[index], vd_bytes_of(value), &found))
		return; /* out of memory: unusable is an answer */
	assert_string_equal(pod_names(&found), names);
	vdi_btree_snapshot_release(&found);
}

static int64_t size_of_objects(const struct vdi_object_store *store)
{
	struct vdi_key_range	all = VDI_KEY_RANGE_ALL;
	struct vdi_btree_cursor cursor;
	struct vd_object       *object;
	int64_t			bytes = 0;

	vdi_btree_cursor_init(&cursor, vdi_btree_view(&store->objects));
	(void) vdi_btree_cursor_range(&cursor, &all);
	while ((object = vdi_btree_cursor_range_next(&cursor)))
		bytes += vdi_object_store_size_of(object);
	return bytes;
}

/* One revision that changes, adds and deletes; whatever allocation fails, it is there whole or not at all, in
 * tree, history, indexes, size and number. */
static void e459_torture_a_revision_is_applied_whole_or_not_at_all(void **state)
{
	static const char *const labels[] = { "app", NULL };
	unsigned		 refused = 0, partial = 0;

	for (unsigned nth = 1;; nth++) {
		struct world		   world;
		struct vdi_watchchan_event first[40], events[45];
		size_t			   taken, made, end;
		vd_status		   status;
		bool			   failed;

		world_init(&world, labels);
		for (unsigned i = 0; i < 40; i++) {
			char name[8];

			snprintf(name, sizeof name, "p%02u", i);
			first[i] = put_event(&world, 2, name, "old");
		}
		assert_status(apply(&world, first, 40, &taken, &made), VD_OK);
		end = world.cache.history.end;
		/* 3: one event; 4: forty-two; 5: two. */
		events[0] = put_event(&world, 3, "p00", "three");
		for (unsigned i = 0; i < 40; i++) {
			char name[8];

			snprintf(name, sizeof name, "p%02u", i);
			events[1 + i] =
				i % 4 ? put_event(&world, 4, name, "four") : delete_event(&world, 4, name);
		}
		events[41] = put_event(&world, 4, "new", "four");
		events[42] = delete_event(&world, 4, "never-seen");
		events[43] = put_event(&world, 5, "p01", "five");
		events[44] = put_event(&world, 5, "p02", "five");
		vdi_alloc_fail_nth(nth, 1);
		status = apply(&world, events, 45, &taken, &made);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		vdi_btree_snapshot_check(vdi_btree_view(&world.cache.store.objects));
		assert_true(taken == 0 || taken == 1 || taken == 43 || taken == 45);
		assert_int_equal(made, taken <= 1 ? taken : taken - 1);
		assert_int_equal(world.cache.history.end - end, made);
		assert_int_equal(vdi_watch_cache_revision(&world.cache), taken == 0  ? 2 :
									 taken == 1  ? 3 :
									 taken == 43 ? 4 :
										       5);
		assert_int_equal(vdi_btree_count(&world.cache.store.objects), taken <= 1 ? 40 : 31);
		assert_int_equal(world.cache.store.bytes, size_of_objects(&world.cache.store));
		assert_int_equal(vd_object_revision(vdi_object_store_get(
					 &world.cache.store, vd_bytes_of("/registry/pods/ns/p39"))),
				 taken <= 1 ? 2 : 4);
		check_index(&world, 1, "three", taken == 1 ? "ns/p00" : "");
		check_index(&world, 1, "five", taken == 45 ? "ns/p01 ns/p02" : "");
		if (taken <= 1)
			check_index(&world, 1, "four", "");
		check_index(&world, 0, "five", taken == 45 ? "ns/p01 ns/p02" : "");
		refused += status != VD_OK;
		partial += taken == 1;
		/* The rest may be tried again. */
		if (status != VD_OK) {
			size_t before = taken;

			assert_status(status, VD_NOMEM);
			assert_status(apply(&world, events + before, 45 - before, &taken, &made), VD_OK);
		}
		assert_int_equal(world.cache.history.end - end, 44);
		assert_int_equal(vdi_watch_cache_revision(&world.cache), 5);
		assert_int_equal(vdi_btree_count(&world.cache.store.objects), 31);
		assert_int_equal(world.cache.store.bytes, size_of_objects(&world.cache.store));
		for (size_t i = 0; i < 40; i++)
			vdi_watchchan_event_fini(&first[i]);
		for (size_t i = 0; i < 45; i++)
			vdi_watchchan_event_fini(&events[i]);
		world_fini(&world);
		if (!failed)
			break;
	}
	assert_true(refused > 40);
	assert_true(partial > 3);
}

#define MODEL_REVISIONS 120
#define MODEL_KEYS 9

/* Also of a revision at which nothing happened here: the state of the last event before it.
 * rules */
static void t173_r448_every_revision_of_the_history_can_be_rebuilt(void **state)
{
	static int   model[MODEL_REVISIONS + 2][MODEL_KEYS];
	struct world world;
	uint64_t     random = 5;

	world_init(&world, NULL);
	for (vd_rev revision = 2; revision <= MODEL_REVISIONS; revision++) {
		unsigned key =
			(unsigned) ((random = random * UINT64_C(6364136223846793005) + 1) >> 33) % MODEL_KEYS;
		char			   name[4];
		struct vdi_watchchan_event event;
		size_t			   taken, made;

		snprintf(name, sizeof name, "k%u", key);
		memcpy(model[revision], model[revision - 1], sizeof model[0]);
		if (revision % 6 == 0) {
			vdi_watch_cache_advance(&world.cache, revision);
			continue;
		}
		if (model[revision][key] && (random >> 60) < 6) {
			event = delete_event(&world, revision, name);
			model[revision][key] = 0;
		} else {
			event = put_event(&world, revision, name, "a");
			model[revision][key] = (int) revision;
		}
		assert_status(apply(&world, &event, 1, &taken, &made), VD_OK);
		vdi_watchchan_event_fini(&event);
		if (revision == 100) { /* what was evicted is too old, unless a snapshot of it stayed */
			vdi_watch_cache_compact(&world.cache, 40, 40);
		}
	}
	for (unsigned round = 0; round < 400; round++) {
		vd_rev asked = 1 + (vd_rev) ((random = random * UINT64_C(6364136223846793005) + 1) >> 33) %
					   MODEL_REVISIONS;
		struct vdi_btree_snapshot snapshot;
		struct vd_error		  error;
		vd_status status = vdi_watch_cache_snapshot_at(&world.cache, asked, &snapshot, &error);

		assert_int_equal(vdi_watch_cache_has_revision(&world.cache, asked), asked >= 40);
		if (asked < 40) {
			char words[64];

			snprintf(words, sizeof words, "too old resource version: %lld", (long long) asked);
			assert_status(status, VD_EXPIRED);
			assert_int_equal(error.requested, asked);
			assert_string_equal(error.message, words);
			continue;
		}
		assert_status(status, VD_OK);
		for (unsigned key = 0; key < MODEL_KEYS; key++) {
			char		  path[32];
			struct vd_object *object;

			snprintf(path, sizeof path, "/registry/pods/ns/k%u", key);
			object = vdi_btree_snapshot_get(&snapshot, vd_bytes_of(path));
			assert_int_equal(object ? vd_object_revision(object) : 0, model[asked][key]);
		}
		vdi_btree_snapshot_release(&snapshot);
		assert_true(world.cache.store.retained_count <= VDI_SNAPSHOT_COUNT_MAX);
	}
	world_fini(&world);
}

static void assert_revision_given(struct world *world, vd_rev revision, bool is_given)
{
	struct vdi_btree_snapshot snapshot;
	vd_status status = vdi_watch_cache_snapshot_at(&world->cache, revision, &snapshot, NULL);

	assert_status(status, is_given ? VD_OK : VD_EXPIRED);
	if (status == VD_OK)
		vdi_btree_snapshot_release(&snapshot);
	assert_int_equal(vdi_watch_cache_has_revision(&world->cache, revision), is_given);
}

/* A watch may start at C - 1, a state is given out from C on; what was retained before goes. rules: R-447 */
static void r455_r230_no_state_is_older_than_the_compaction(void **state)
{
	struct world world;

	world_init(&world, NULL);
	assert_false(vdi_watch_cache_can_compact(&world.cache));
	for (vd_rev revision = 10; revision <= 60; revision += 10) {
		struct vdi_watchchan_event event = put_event(&world, revision, "x", "a");
		size_t			   taken, made;

		assert_status(apply(&world, &event, 1, &taken, &made), VD_OK);
		vdi_watchchan_event_fini(&event);
	}
	assert_true(vdi_watch_cache_can_compact(&world.cache));
	for (vd_rev revision = 1; revision <= 60; revision++)
		assert_revision_given(&world, revision, true);
	/* Something else keeps what watches need. */
	vdi_watch_cache_compact(&world.cache, 25, 1);
	assert_status(vdi_history_check(&world.cache.history, 1, NULL), VD_OK);
	assert_revision_given(&world, 24, false);
	assert_revision_given(&world, 25, true);
	vdi_watch_cache_compact(&world.cache, 35, 35);
	assert_status(vdi_history_check(&world.cache.history, 34, NULL), VD_OK);
	for (vd_rev revision = 1; revision <= 60; revision++)
		assert_revision_given(&world, revision, revision >= 35);
	for (size_t i = 0; i < world.cache.store.retained_count; i++)
		assert_true(world.cache.store.retained[i].revision >= 35);
	/* A status that is older changes nothing. */
	vdi_watch_cache_compact(&world.cache, 25, 25);
	assert_revision_given(&world, 34, false);
	/* Snapshots alone are a past too. */
	assert_true(world.cache.store.retained_count > 0);
	vdi_watch_cache_compact(&world.cache, 1000, 1000);
	assert_false(vdi_watch_cache_can_compact(&world.cache));
	world_fini(&world);
}

/* What the ring has lost cannot be asked for, so states of before it are of no use. rules: R-430 */
static void r447_retained_states_go_with_the_events_they_were_made_of(void **state)
{
	struct world world;

	world_init(&world, NULL);
	for (vd_rev revision = 2; revision <= 400; revision++) {
		struct vdi_watchchan_event event = put_event(&world, revision, "x", "a");
		vd_rev			   floor;
		size_t			   taken, made;

		assert_status(apply(&world, &event, 1, &taken, &made), VD_OK);
		vdi_watchchan_event_fini(&event);
		vdi_sim_advance(world.env,
				VD_SECONDS(2)); /* the window is shorter than what the ring holds */
		if (revision % 30 == 0)
			assert_revision_given(&world, revision - 5, true);
		floor = vdi_history_floor(&world.cache.history);
		for (size_t i = 0; i < world.cache.store.retained_count; i++)
			assert_true(world.cache.store.retained[i].revision >= floor);
	}
	assert_true(vdi_history_floor(&world.cache.history) > 250);
	assert_true(world.cache.store.retained_count > 0 && world.cache.store.retained_count < 5);
	world_fini(&world);
}

static void torture_an_exact_read(void **state)
{
	struct world world;
	bool	     failed = true;

	world_init(&world, NULL);
	for (vd_rev revision = 2; revision <= 80; revision++) {
		char			   name[8];
		struct vdi_watchchan_event event;
		size_t			   taken, made;

		snprintf(name, sizeof name, "k%lld", (long long) revision);
		event = put_event(&world, revision, name, "a");
		assert_status(apply(&world, &event, 1, &taken, &made), VD_OK);
		vdi_watchchan_event_fini(&event);
	}
	for (unsigned nth = 1; failed; nth++) {
		struct vdi_btree_snapshot snapshot;
		vd_status		  status;

		vdi_alloc_fail_nth(nth, 1);
		status = vdi_watch_cache_snapshot_at(&world.cache, 20, &snapshot, NULL);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		assert_int_equal(vdi_btree_count(&world.cache.store.objects), 79);
		if (status == VD_OK) {
			assert_int_equal(snapshot.count, 19);
			vdi_btree_snapshot_release(&snapshot);
		}
		vdi_object_store_forget(&world.cache.store, 1000);
	}
	world_fini(&world);
}

struct waiting {
	struct vdi_fresh_waiter waiter;
	unsigned		calls;
	vd_status		status;
};

static void note_done(struct vdi_fresh_waiter *waiter, vd_status status)
{
	struct waiting *waiting = VDI_CONTAINER_OF(waiter, struct waiting, waiter);

	waiting->calls++;
	waiting->status = status;
}

/* One event: into the history, the objects, the index and the number, all before a reader that waits for its
 * revision is answered. */
static void r430_an_event_is_everywhere_when_its_waiter_is_answered(void **state)
{
	static const char *const labels[] = { "app", NULL };
	struct world		 world;
	struct waiting		 waits[3] = { { .waiter = { .revision = 2 } },
					      { .waiter = { .revision = 3 } },
					      { .waiter = { .revision = 4 } } };
	static const char *const objects[] = { "ns/x", "ns/x", "" };

	world_init(&world, labels);
	for (size_t i = 0; i < 3; i++) {
		waits[i].waiter.done = note_done;
		assert_false(vdi_watch_cache_wait(&world.cache, &waits[i].waiter));
	}
	for (size_t i = 0; i < 3; i++) {
		struct vdi_watchchan_event event =
			i == 2 ? delete_event(&world, 4, "x") :
				 put_event(&world, 2 + (vd_rev) i, "x", i ? "two" : "one");
		struct vdi_event *kept;
		size_t		  taken, made;

		assert_status(apply(&world, &event, 1, &taken, &made), VD_OK);
		assert_int_equal(taken + made, 2);
		assert_int_equal(vdi_watch_cache_revision(&world.cache), 2 + i);
		assert_int_equal(world.cache.history.end - world.cache.history.start, i + 1);
		kept = vdi_history_at(&world.cache.history, world.cache.history.end - 1);
		assert_int_equal(kept->revision, 2 + i);
		assert_ptr_equal(kept->object, i == 2 ? NULL : event.object);
		assert_true((kept->old_object == NULL) == (i == 0));
		assert_string_equal(pod_names(vdi_btree_view(&world.cache.store.objects)), objects[i]);
		check_index(&world, 0, "one", i == 0 ? "ns/x" : "");
		check_index(&world, 0, "two", i == 1 ? "ns/x" : "");
		assert_true(vdi_watch_cache_has_revision(&world.cache, 2 + (vd_rev) i));
		(void) vdi_watch_cache_serve_waiters(&world.cache);
		for (size_t j = 0; j < 3; j++) {
			assert_int_equal(waits[j].calls, j <= i);
			assert_status(waits[j].status, VD_OK);
		}
		vdi_watchchan_event_fini(&event);
	}
	world_fini(&world);
}

/* rules: R-464 */
static void t163_r460_fresh_waiters(void **state)
{
	struct world   world;
	struct waiting w[5] = { { .waiter = { .revision = 1 } },
				{ .waiter = { .revision = 9 } },
				{ .waiter = { .revision = 5 } },
				{ .waiter = { .revision = 7 } },
				{ .waiter = { .revision = 99 } } };
	uint64_t       waits;
	vd_mono	       due;

	world_init(&world, NULL);
	for (unsigned i = 0; i < 5; i++)
		w[i].waiter.done = note_done;
	assert_true(vdi_watch_cache_wait(&world.cache, &w[0].waiter));
	assert_false(vdi_watch_cache_has_waiters(&world.cache, &waits));
	for (unsigned i = 1; i < 4; i++)
		assert_false(vdi_watch_cache_wait(&world.cache, &w[i].waiter));
	assert_true(vdi_watch_cache_has_waiters(&world.cache, &waits));
	assert_int_equal(waits, 3);
	due = vdi_watch_cache_serve_waiters(&world.cache);
	assert_int_equal(vd_mono_since(due, vd_env_now(world.env)).ns, VD_SECONDS(3).ns);
	vdi_watch_cache_advance(&world.cache, 7);
	(void) vdi_watch_cache_serve_waiters(&world.cache);
	assert_int_equal(w[1].calls, 0);
	assert_int_equal(w[2].calls, 1);
	assert_int_equal(w[3].calls, 1);
	assert_status(w[2].status, VD_OK);
	/* The number never goes back. */
	vdi_watch_cache_advance(&world.cache, 3);
	assert_int_equal(vdi_watch_cache_revision(&world.cache), 7);
	vdi_sim_advance(world.env, VD_MS(2999));
	(void) vdi_watch_cache_serve_waiters(&world.cache);
	assert_int_equal(w[1].calls, 0);
	vdi_sim_advance(world.env, VD_MS(1));
	assert_int_equal(vdi_watch_cache_serve_waiters(&world.cache).ns, INT64_MAX);
	assert_int_equal(w[1].calls, 1);
	assert_status(w[1].status, VD_TOO_LARGE_REVISION);
	assert_false(vdi_watch_cache_wait(&world.cache, &w[4].waiter));
	vdi_watch_cache_stop(&world.cache);
	assert_int_equal(w[4].calls, 1);
	assert_status(w[4].status, VD_CLOSED);
	assert_int_equal(w[0].calls, 0);
	world_fini(&world);
}

#define WAITERS_MAX 64

/* What the cache keeps of its waiters is what their list says, after every change. */
static void check_waiters(struct vdi_watch_cache *cache, const struct waiting *waiting, size_t count)
{
	struct vdi_fresh_waiter *last = NULL;
	vd_rev			 least = INT64_MAX;
	size_t			 listed = 0, expected = 0;

	for (struct vdi_fresh_waiter *waiter = cache->waiters_first; waiter; waiter = waiter->next) {
		assert_true(last == NULL || last->since.ns <= waiter->since.ns);
		least = VDI_MIN(least, waiter->revision);
		last = waiter;
		listed++;
	}
	assert_ptr_equal(cache->waiters_last, last);
	assert_int_equal(cache->waiters_revision_min, least);
	for (size_t i = 0; i < count; i++)
		expected += waiting[i].calls == 0 && waiting[i].waiter.done;
	assert_int_equal(listed, expected);
}

/* Who waits is answered when the revision is there or its 3 s are over, and not before, whoever else waits
 * for which revision.
 * rules: R-460, W-05 */
static void r460_each_waiter_is_answered_by_its_own_revision(void **state)
{
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct world	world;
		struct waiting	waiting[WAITERS_MAX] = { 0 };
		struct vdi_rand rand;
		size_t		count = 0;

		world_init(&world, NULL);
		vdi_rand_init(&rand, seed);
		for (unsigned step = 0; step < 400; step++) {
			vd_rev	current = vdi_watch_cache_revision(&world.cache);
			vd_mono now;

			switch (vdi_rand_below(&rand, 4)) {
			case 0:
			case 1:
				if (count < WAITERS_MAX) {
					waiting[count].waiter = (struct vdi_fresh_waiter) {
						.revision = current + (vd_rev) vdi_rand_below(&rand, 12),
						.done = note_done
					};
					if (vdi_watch_cache_wait(&world.cache, &waiting[count].waiter)) {
						assert_int_equal(waiting[count].waiter.revision, current);
						waiting[count].waiter.done = NULL; /* it did not have to */
					}
					count++;
				}
				break;
			case 2:
				vdi_watch_cache_advance(&world.cache,
							current + 1 + (vd_rev) vdi_rand_below(&rand, 3));
				break;
			default:
				vdi_sim_advance(world.env,
						VD_MS(100 * (1 + (int64_t) vdi_rand_below(&rand, 12))));
				break;
			}
			check_waiters(&world.cache, waiting, count);
			if (vdi_rand_once_in(&rand, 2))
				continue;
			(void) vdi_watch_cache_serve_waiters(&world.cache);
			current = vdi_watch_cache_revision(&world.cache);
			now = vd_env_now(world.env);
			check_waiters(&world.cache, waiting, count);
			for (size_t i = 0; i < count; i++) {
				bool is_there = waiting[i].waiter.revision <= current;
				bool is_late =
					vd_mono_since(now, waiting[i].waiter.since).ns >= VD_SECONDS(3).ns;

				if (waiting[i].waiter.done == NULL)
					continue;
				assert_true(waiting[i].calls <= 1);
				if (waiting[i].calls == 0)
					assert_false(is_there || is_late);
				else if (waiting[i].status == VD_OK)
					assert_true(is_there);
				else
					assert_true(waiting[i].status == VD_TOO_LARGE_REVISION && is_late);
			}
		}
		vdi_watch_cache_stop(&world.cache);
		check_waiters(&world.cache, waiting, count);
		for (size_t i = 0; i < count; i++)
			assert_int_equal(waiting[i].calls, waiting[i].waiter.done != NULL);
		world_fini(&world);
	}
}

/* Who waits for its revision is answered with it. rules: R-464 */
static void r436_a_new_generation_starts_its_history_over(void **state)
{
	struct waiting		   waits = { .waiter = { .revision = 8, .done = note_done } };
	struct world		   world;
	struct vdi_watchchan_event event;
	struct vdi_btree	   objects;
	struct vd_object	  *object;
	struct vdi_btree_snapshot  snapshot;
	size_t			   taken, made;

	world_init(&world, NULL);
	event = put_event(&world, 2, "x", "a");
	assert_status(apply(&world, &event, 1, &taken, &made), VD_OK);
	vdi_watchchan_event_fini(&event);
	assert_status(vdi_watch_cache_snapshot_at(&world.cache, 1, &snapshot, NULL), VD_OK);
	vdi_btree_snapshot_release(&snapshot);
	vdi_btree_init(&objects, &vdi_object_btree_ops);
	object = pod_new(world.codec, "ns", "y", NULL, NULL, 6);
	assert_status(vdi_btree_put(&objects, object, NULL), VD_OK);
	vd_object_unref(object);
	assert_false(vdi_watch_cache_wait(&world.cache, &waits.waiter));
	vdi_watch_cache_replace(&world.cache, &objects, -1, 8, false);
	vdi_btree_fini(&objects);
	(void) vdi_watch_cache_serve_waiters(&world.cache);
	assert_int_equal(waits.calls, 1);
	assert_status(waits.status, VD_OK);
	assert_int_equal(vdi_watch_cache_revision(&world.cache), 8);
	assert_string_equal(pod_names(vdi_btree_view(&world.cache.store.objects)), "ns/y");
	assert_false(vdi_watch_cache_has_revision(&world.cache, 7));
	assert_true(vdi_watch_cache_has_revision(&world.cache, 8));
	assert_status(vdi_watch_cache_snapshot_at(&world.cache, 1, &snapshot, NULL), VD_EXPIRED);
	world_fini(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t160_r433_the_previous_object_is_the_caches_own),
		cmocka_unit_test(t160_what_was_put_and_not_deleted_is_listed),
		cmocka_unit_test(e459_torture_a_revision_is_applied_whole_or_not_at_all),
		cmocka_unit_test(t173_r448_every_revision_of_the_history_can_be_rebuilt),
		cmocka_unit_test(r455_r230_no_state_is_older_than_the_compaction),
		cmocka_unit_test(r447_retained_states_go_with_the_events_they_were_made_of),
		cmocka_unit_test(torture_an_exact_read),
		cmocka_unit_test(r430_an_event_is_everywhere_when_its_waiter_is_answered),
		cmocka_unit_test(t163_r460_fresh_waiters),
		cmocka_unit_test(r460_each_waiter_is_answered_by_its_own_revision),
		cmocka_unit_test(r436_a_new_generation_starts_its_history_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
