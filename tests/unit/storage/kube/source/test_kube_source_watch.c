/* Watches of a kube source: what each is given, in which batches, and what a slow one costs. */
#include "actor_sim.h"
#include "kube_peer.h"
#include "kube_source.h"
#include "kube_world.h"
#include "vdtest.h"

static void ignore(void *arg)
{
	(void) arg;
}

static struct vd_store_watch *open_watch(struct kube_world *world, struct vd_store_watch_request request)
{
	struct vd_store_watch *watch = NULL;

	request.ready = ignore;
	assert_status(vd_store_watch_open(world->store, &request, &watch, NULL), VD_OK);
	return watch;
}

static const struct vd_store_watch_request everything = { .key = { KUBE_PREFIX, sizeof KUBE_PREFIX - 1 },
							  .range_end = { KUBE_PREFIX_END,
									 sizeof KUBE_PREFIX_END - 1 } };

/* The events of the watch as text: +key, -key, or ~key of one that has a previous record. */
static void take_all(struct vd_store_watch *watch, size_t max, char text[512])
{
	struct vd_store_batch batch;
	size_t		      size = 0;

	text[0] = 0;
	while (vd_store_watch_next(watch, max, &batch, NULL) == VD_OK) {
		for (size_t i = 0; i < batch.event_count; i++) {
			const struct vd_store_event *event = &batch.events[i];
			struct vd_bytes		     key = vd_kv_key(event->kv);

			assert_true(key.size > strlen(KUBE_PREFIX));
			size += (size_t) snprintf(text + size, 512 - size, "%s%s%.*s",
						  event->is_delete ? "-" : "+", event->previous ? "~" : "",
						  (int) (key.size - strlen(KUBE_PREFIX)),
						  (const char *) key.data + strlen(KUBE_PREFIX));
		}
		if (batch.event_count)
			size += (size_t) snprintf(text + size, 512 - size, "/");
	}
}

static void change_pods(struct kube_world *world)
{
	kube_peer_put(world->peer, "pods", "a", "x", "");
	kube_peer_put(world->peer, "pods", "b", "x", "");
	kube_peer_put(world->peer, "pods", "a", "x", "");
	kube_peer_put(world->peer, "pods", "a", "xx", "");
	kube_peer_delete(world->peer, "pods", "a", "x");
	kube_peer_delete(world->peer, "pods", "b", "x");
	vdi_sim_advance(world->env, VD_SECONDS(1));
}

static void open_filled(struct kube_world *world, struct vd_store_watch **ret_watch)
{
	kube_world_open(world, 5);
	*ret_watch = open_watch(world, everything);
	vdi_sim_advance(world->env, VD_SECONDS(1));
}

static void a_watch_is_given_what_it_asked_for(void **state)
{
	static const struct {
		const char *key, *range_end;
		bool	    previous, no_put, no_delete;
		const char *events;
	} rows[] = {
		{ KUBE_PREFIX, KUBE_PREFIX_END, false, false, false, "+a/x+b/x+a/x+a/xx-a/x-b/x/" },
		{ KUBE_PREFIX, KUBE_PREFIX_END, true, false, false, "+a/x+b/x+~a/x+a/xx-~a/x-~b/x/" },
		{ KUBE_PREFIX "a/", KUBE_PREFIX "a0", false, false, false, "+a/x+a/x+a/xx-a/x/" },
		{ KUBE_PREFIX "a/", KUBE_PREFIX "a0", false, true, false, "-a/x/" },
		{ KUBE_PREFIX "a/", KUBE_PREFIX "a0", false, false, true, "+a/x+a/x+a/xx/" },
		{ KUBE_PREFIX "a/", KUBE_PREFIX "a0", false, true, true, "" },
		{ KUBE_PREFIX "a/x", "", true, false, false, "+a/x+~a/x-~a/x/" },
		{ KUBE_PREFIX "b/x", "", false, true, false, "-b/x/" },
		{ KUBE_PREFIX "c/", KUBE_PREFIX "c0", false, false, false, "" },
	};
	struct vd_store_watch *first, *watches[VDI_ARRAY_SIZE(rows)];
	struct kube_world      world;
	char		       text[512];

	open_filled(&world, &first);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		watches[i] = open_watch(
			&world, (struct vd_store_watch_request) { .key = vd_bytes_of(rows[i].key),
								  .range_end = vd_bytes_of(rows[i].range_end),
								  .previous = rows[i].previous,
								  .no_put = rows[i].no_put,
								  .no_delete = rows[i].no_delete });
	vdi_sim_run_until_idle(world.env);
	change_pods(&world);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		take_all(watches[i], 100, text);
		assert_string_equal(text, rows[i].events);
		vd_store_watch_close(watches[i]);
	}
	vd_store_watch_close(first);
	kube_world_close(&world);
}

/* About as many events as are wanted, and at least a whole revision. */
static void a_batch_has_whole_revisions(void **state)
{
	static const char *const names[] = { "p", "q", "r" };
	static const struct {
		size_t	    max;
		const char *events;
	} rows[] = { { 0, "+a/p/+a/q/+a/r/-a/p-a/q-a/r/+a/s/" }, { 1, "+a/p/+a/q/+a/r/-a/p-a/q-a/r/+a/s/" },
		     { 2, "+a/p+a/q/+a/r-a/p-a/q-a/r/+a/s/" },	 { 3, "+a/p+a/q+a/r/-a/p-a/q-a/r/+a/s/" },
		     { 4, "+a/p+a/q+a/r-a/p-a/q-a/r/+a/s/" },	 { 7, "+a/p+a/q+a/r-a/p-a/q-a/r+a/s/" } };
	struct vd_store_watch *first, *watches[VDI_ARRAY_SIZE(rows)];
	struct kube_world      world;
	char		       text[512];

	open_filled(&world, &first);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		watches[i] = open_watch(&world, everything);
	vdi_sim_run_until_idle(world.env);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(names); i++)
		kube_peer_put(world.peer, "pods", "a", names[i], "");
	(void) kube_peer_delete_many(world.peer, "pods", "a", names, VDI_ARRAY_SIZE(names));
	kube_peer_put(world.peer, "pods", "a", "s", "");
	vdi_sim_advance(world.env, VD_SECONDS(1));
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		take_all(watches[i], rows[i].max, text);
		assert_string_equal(text, rows[i].events);
		vd_store_watch_close(watches[i]);
	}
	vd_store_watch_close(first);
	kube_world_close(&world);
}

/* Events are kept until the slowest watch has taken them, and then dropped. */
static void a_slow_watch_keeps_events(void **state)
{
	struct vd_store_watch  *fast, *slow;
	struct vdi_kube_source *source;
	struct kube_world	world;
	char			text[512];

	open_filled(&world, &fast);
	slow = open_watch(&world, everything);
	source = vdi_kube_source_of(world.store);
	source->ring.bytes_min = 0;
	vdi_sim_run_until_idle(world.env);
	change_pods(&world);
	take_all(fast, 1, text);
	assert_string_equal(text, "+a/x/+b/x/+a/x/+a/xx/-a/x/-b/x/");
	take_all(slow, 1, text);
	assert_string_equal(text, "+a/x/+b/x/+a/x/+a/xx/-a/x/-b/x/");
	assert_true(source->ring.bytes > 0); /* the last revision stays */
	kube_peer_put(world.peer, "pods", "a", "y", "");
	vdi_sim_advance(world.env, VD_SECONDS(1));
	take_all(slow, 1, text);
	assert_string_equal(text, "+a/y/");
	take_all(fast, 1, text);
	assert_string_equal(text, "+a/y/");
	assert_in_range(source->ring.end - source->ring.first, 0, 1);
	vd_store_watch_close(slow);
	vd_store_watch_close(fast);
	kube_world_close(&world);
}

/* Events that all watches have taken are kept for those that begin in the past. */
static void a_later_watch_begins_in_the_past(void **state)
{
	struct vd_store_watch_request request = everything;
	struct vd_store_watch	     *first, *later;
	struct kube_world	      world;
	char			      text[512];

	open_filled(&world, &first);
	request.start_revision = world.peer->revision + 3;
	change_pods(&world);
	take_all(first, 1, text);
	later = open_watch(&world, request);
	vdi_sim_run_until_idle(world.env);
	take_all(later, 100, text);
	assert_string_equal(text, "+a/x+a/xx-a/x-b/x/");
	vd_store_watch_close(later);
	vd_store_watch_close(first);
	kube_world_close(&world);
}

static void a_watch_that_is_too_slow_ends(void **state)
{
	struct vd_error		error = { 0 };
	struct vd_store_watch  *fast, *slow;
	struct vd_store_batch	batch;
	struct vdi_kube_source *source;
	struct kube_world	world;
	char			text[512];

	open_filled(&world, &fast);
	slow = open_watch(&world, everything);
	source = vdi_kube_source_of(world.store);
	vdi_sim_run_until_idle(world.env);
	kube_peer_put(world.peer, "pods", "a", "x", "");
	vdi_sim_advance(world.env, VD_SECONDS(1));
	take_all(fast, 100, text);
	assert_string_equal(text, "+a/x/");
	source->ring.bytes_max = 1;
	change_pods(&world);
	for (int i = 0; i < 2; i++) {
		memset(&error, 0, sizeof error);
		assert_status(vd_store_watch_next(slow, 100, &batch, i ? NULL : &error), VD_EXPIRED);
		assert_string_equal(error.message,
				    i ? "" : "the watch was too slow: its next event was dropped");
		assert_status(error.code, i ? VD_OK : VD_EXPIRED);
	}
	vd_store_watch_close(slow);
	vd_store_watch_close(fast);
	kube_world_close(&world);
}

static void count_ready(void *arg)
{
	++*(int *) arg;
}

/* Gives the next batch, or its absence. */
static vd_status next(struct vd_store_watch *watch, struct vd_store_batch *ret_batch)
{
	return vd_store_watch_next(watch, 100, ret_batch, NULL);
}

/* The reader needs the revisions to decide where it can begin. */
static void an_expired_watch_says_which_revisions_there_are(void **state)
{
	struct vd_store_watch_request request = everything;
	struct vd_store_watch	     *first, *early, *late;
	struct vd_store_batch	      batch;
	struct vd_error		      error;
	struct kube_world	      world;
	vd_rev			      filled;

	kube_world_open(&world, 5);
	for (int i = 0; i < 5; i++)
		kube_peer_put(world.peer, "pods", "a", "x", "");
	filled = world.peer->revision;
	first = open_watch(&world, everything);
	vdi_sim_advance(world.env, VD_SECONDS(1));
	kube_peer_put(world.peer, "pods", "a", "y", "");
	vdi_sim_advance(world.env, VD_SECONDS(1));
	request.start_revision = filled - 1;
	early = open_watch(&world, request);
	request.start_revision = world.peer->revision + 7;
	late = open_watch(&world, request);
	for (int i = 0; i < 2; i++) {
		assert_status(vd_store_watch_next(early, 1, &batch, &error), VD_EXPIRED);
		assert_string_equal(error.message,
				    "the events since its start are not available; list again");
		assert_int_equal(error.requested, filled - 1);
		assert_int_equal(error.current, world.peer->revision);
		assert_int_equal(error.compacted, filled + 1);
		assert_status(vd_store_watch_next(late, 1, &batch, &error), VD_EXPIRED);
		assert_string_equal(error.message, "the server has not reached its start; list again");
		assert_int_equal(error.requested, world.peer->revision + 7);
		assert_int_equal(error.current, world.peer->revision);
		if (i)
			break;
		/* What ends the others changes nothing. */
		vdi_lock_acquire(&vdi_kube_source_of(world.store)->lock);
		vdi_kube_watches_expire_locked(vdi_kube_source_of(world.store), INT64_MAX, VD_NOT_FOUND,
					       "another reason");
		vdi_lock_release(&vdi_kube_source_of(world.store)->lock);
	}
	assert_status(vd_store_watch_next(first, 1, &batch, &error), VD_NOT_FOUND);
	assert_string_equal(error.message, "another reason");
	assert_int_equal(error.compacted, 0); /* its start is not the reason */
	vd_store_watch_close(late);
	vd_store_watch_close(early);
	vd_store_watch_close(first);
	kube_world_close(&world);
}

/* A removed resource has no events to begin with. */
static void a_watch_of_a_removed_resource_has_no_compacted_revision(void **state)
{
	struct vd_store_watch_request request = everything;
	struct vd_store_watch	     *first, *early;
	struct vd_store_batch	      batch;
	struct vd_error		      error;
	struct kube_world	      world;

	open_filled(&world, &first);
	kube_peer_put(world.peer, "pods", "a", "x", "");
	vdi_sim_advance(world.env, VD_SECONDS(1));
	kube_peer_remove_resource(world.peer, "pods");
	vdi_sim_advance(world.env, VD_SECONDS(100));
	request.start_revision = 2;
	early = open_watch(&world, request);
	assert_status(vd_store_watch_next(early, 1, &batch, &error), VD_EXPIRED);
	assert_int_equal(error.compacted, 0);
	vd_store_watch_close(early);
	vd_store_watch_close(first);
	kube_world_close(&world);
}

static void a_watch_knows_the_revision_at_its_opening(void **state)
{
	struct vd_store_watch *first, *later;
	struct kube_world      world;

	open_filled(&world, &first);
	assert_int_equal(first->opened, 0);
	change_pods(&world);
	later = open_watch(&world, everything);
	assert_int_equal(later->opened, world.peer->revision);
	vd_store_watch_close(later);
	vd_store_watch_close(first);
	kube_world_close(&world);
}

/* Once after each VD_AGAIN, and not while there is something to take. */
static void a_reader_is_woken_once(void **state)
{
	struct vd_store_watch_request request = everything;
	struct vd_store_watch	     *watch = NULL;
	struct vd_store_batch	      batch;
	struct kube_world	      world;
	int			      ready = 0;

	kube_world_open(&world, 5);
	request.ready = count_ready;
	request.ready_arg = &ready;
	assert_status(vd_store_watch_open(world.store, &request, &watch, NULL), VD_OK);
	vdi_sim_advance(world.env, VD_SECONDS(1));
	while (next(watch, &batch) == VD_OK) {
	}
	ready = 0;
	kube_peer_put(world.peer, "pods", "a", "x", "");
	vdi_sim_advance(world.env, VD_SECONDS(1));
	assert_int_equal(ready, 1);
	kube_peer_put(world.peer, "pods", "a", "x", "");
	vdi_sim_advance(world.env, VD_SECONDS(1));
	assert_int_equal(ready, 1);
	assert_status(vd_store_watch_next(watch, 1, &batch, NULL), VD_OK);
	kube_peer_put(world.peer, "pods", "a", "x", "");
	vdi_sim_advance(world.env, VD_SECONDS(1));
	assert_int_equal(ready, 1);
	while (next(watch, &batch) == VD_OK) {
	}
	kube_peer_put(world.peer, "pods", "a", "x", "");
	vdi_sim_advance(world.env, VD_SECONDS(1));
	assert_int_equal(ready, 2);
	vd_store_watch_close(watch);
	kube_world_close(&world);
}

/* Periodic progress is for those that asked for it at the opening; others are given what they ask for. */
static void progress_is_given_to_those_that_want_it(void **state)
{
	struct vd_store_watch_request request = everything;
	struct vd_store_watch	     *plain, *periodic;
	struct vd_store_batch	      batch;
	struct kube_world	      world;
	char			      text[512];

	open_filled(&world, &plain);
	request.progress = true;
	periodic = open_watch(&world, request);
	vdi_sim_run_until_idle(world.env);
	take_all(plain, 100, text);
	take_all(periodic, 100, text);
	kube_peer_advance(world.peer);
	vdi_sim_advance(world.env, VD_SECONDS(70));
	assert_status(next(plain, &batch), VD_AGAIN);
	assert_status(next(periodic, &batch), VD_OK);
	assert_int_equal(batch.event_count, 0);
	assert_int_equal(batch.revision, world.peer->revision);
	assert_status(next(periodic, &batch), VD_AGAIN);
	kube_peer_advance(world.peer);
	assert_status(vd_store_watch_progress(plain), VD_OK);
	vdi_sim_advance(world.env, VD_SECONDS(10));
	assert_status(next(plain, &batch), VD_OK);
	assert_int_equal(batch.event_count, 0);
	assert_int_equal(batch.revision, world.peer->revision);
	assert_status(next(plain, &batch), VD_AGAIN);
	vd_store_watch_close(periodic);
	vd_store_watch_close(plain);
	kube_world_close(&world);
}

/* A server that sends no bookmarks takes nothing back that was proven before. */
static void progress_that_was_not_taken_stays(void **state)
{
	struct vd_store_watch *watch;
	struct vd_store_batch  batch;
	struct kube_world      world;
	vd_rev		       revision;
	unsigned	       current;

	open_filled(&world, &watch);
	while (next(watch, &batch) == VD_OK) {
	}
	revision = kube_peer_advance(world.peer);
	assert_status(vd_store_watch_progress(watch), VD_OK);
	vdi_sim_advance(world.env, VD_SECONDS(10));
	world.peer->no_bookmarks = true;
	kube_peer_advance(world.peer);
	assert_status(vd_store_watch_progress(watch), VD_OK);
	vdi_sim_advance(world.env, VD_SECONDS(40));
	assert_true(vdi_kube_source_of(world.store)->has_no_progress);
	current = world.peer->current;
	assert_status(vd_store_watch_progress(watch), VD_UNSUPPORTED);
	vdi_sim_advance(world.env, VD_SECONDS(10));
	assert_int_equal(world.peer->current, current);
	assert_status(next(watch, &batch), VD_OK);
	assert_int_equal(batch.event_count, 0);
	assert_int_equal(batch.revision, revision);
	vd_store_shutdown(world.store);
	assert_status(vd_store_watch_progress(watch), VD_CLOSED);
	vd_store_watch_close(watch);
	kube_world_close(&world);
}

/* Only misses in a row show that the server sends none. */
static void a_proof_ends_the_row_of_misses(void **state)
{
	struct vd_store_watch  *watch;
	struct vdi_kube_source *source;
	struct kube_world	world;

	open_filled(&world, &watch);
	source = vdi_kube_source_of(world.store);
	for (int i = 0; i < 3; i++) {
		world.peer->no_bookmarks = true;
		kube_peer_advance(world.peer);
		assert_status(vd_store_watch_progress(watch), VD_OK);
		for (int k = 0; k < 1000 && source->progress.misses == 0; k++)
			vdi_sim_advance(world.env, VD_MS(10));
		assert_int_equal(source->progress.misses, 1);
		world.peer->no_bookmarks = false;
		vdi_sim_advance(world.env, VD_SECONDS(20));
		assert_int_equal(source->progress.misses, 0);
	}
	assert_false(source->has_no_progress);
	vd_store_watch_close(watch);
	kube_world_close(&world);
}

/* Nothing would be given to it. */
static void an_ended_watch_asks_the_server_nothing(void **state)
{
	struct vd_store_watch_request request = everything;
	struct vd_store_watch	     *first, *late;
	struct vd_store_batch	      batch;
	struct kube_world	      world;
	unsigned		      current;

	open_filled(&world, &first);
	request.start_revision = world.peer->revision + 7;
	late = open_watch(&world, request);
	vdi_sim_run_until_idle(world.env);
	assert_status(next(late, &batch), VD_EXPIRED);
	current = world.peer->current;
	(void) vd_store_watch_progress(late);
	vdi_sim_advance(world.env, VD_SECONDS(10));
	assert_int_equal(world.peer->current, current);
	assert_status(vd_store_watch_progress(first), VD_OK);
	vdi_sim_advance(world.env, VD_SECONDS(10));
	assert_int_equal(world.peer->current, current + 1);
	vd_store_watch_close(late);
	vd_store_watch_close(first);
	kube_world_close(&world);
}

/* A list whose reader is slow opens a watch next: the events are kept for it. */
static void an_open_list_keeps_events(void **state)
{
	struct vd_store_stream_request request = { .range = { .key = vd_bytes_of(KUBE_PREFIX),
							      .range_end = vd_bytes_of(KUBE_PREFIX_END) },
						   .ready = ignore };
	struct vd_store_stream	      *stream;
	struct vd_store_watch	      *watch;
	struct vdi_kube_source	      *source;
	struct kube_world	       world;
	char			       text[512];

	open_filled(&world, &watch);
	source = vdi_kube_source_of(world.store);
	source->ring.bytes_min = 0;
	assert_status(vd_store_stream_open(world.store, &request, &stream), VD_OK);
	vdi_sim_advance(world.env, VD_SECONDS(5));
	change_pods(&world);
	take_all(watch, 100, text);
	assert_in_range(source->ring.end - source->ring.first, 6, 6);
	vd_store_stream_close(stream);
	vdi_sim_advance(world.env, VD_SECONDS(1));
	take_all(watch, 100, text);
	assert_in_range(source->ring.end - source->ring.first, 0, 1);
	vd_store_watch_close(watch);
	kube_world_close(&world);
}

/* Repeated bookmarks are no news, and an older one shows no event whose revision may go on. */
static void old_bookmarks_change_nothing(void **state)
{
	struct vd_store_watch_request request = everything;
	struct vd_store_watch	     *watch = NULL;
	struct vd_store_batch	      batch;
	struct vdi_kube_source	     *source;
	struct kube_world	      world;
	int			      ready = 0, start;

	kube_world_open(&world, 5);
	kube_peer_put(world.peer, "pods", "a", "x", "");
	request.ready = count_ready;
	request.ready_arg = &ready;
	assert_status(vd_store_watch_open(world.store, &request, &watch, NULL), VD_OK);
	vdi_sim_advance(world.env, VD_SECONDS(1));
	while (next(watch, &batch) == VD_OK) {
	}
	source = vdi_kube_source_of(world.store);
	start = (int) world.peer->revision;
	vdi_kube_pump_cover(source, start + 1);
	assert_int_equal(next(watch, &batch), VD_AGAIN);
	ready = 0;
	vdi_kube_pump_cover(source, start + 1);
	vdi_kube_pump_cover(source, start);
	assert_int_equal(ready, 0);
	assert_int_equal(source->covered, start + 1);
	{
		char		      text[256];
		struct vdi_kube_event event = { .type = VDI_KUBE_DELETED };

		snprintf(text, sizeof text,
			 "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\","
			 "\"namespace\":\"a\",\"resourceVersion\":\"%d\"}}",
			 start + 5);
		event.object = vd_bytes_of(text);
		assert_status(vdi_kube_pump_apply(source, &event, NULL), VD_OK);
	}
	assert_true(vdi_kube_pump_holds(source));
	vdi_kube_pump_cover(source, start + 3);
	assert_true(vdi_kube_pump_holds(source));
	assert_int_equal(source->covered, start + 1);
	assert_status(next(watch, &batch), VD_AGAIN);
	vd_store_watch_close(watch);
	kube_world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_watch_is_given_what_it_asked_for),
		cmocka_unit_test(a_batch_has_whole_revisions),
		cmocka_unit_test(a_slow_watch_keeps_events),
		cmocka_unit_test(a_later_watch_begins_in_the_past),
		cmocka_unit_test(a_watch_that_is_too_slow_ends),
		cmocka_unit_test(an_expired_watch_says_which_revisions_there_are),
		cmocka_unit_test(a_watch_of_a_removed_resource_has_no_compacted_revision),
		cmocka_unit_test(a_watch_knows_the_revision_at_its_opening),
		cmocka_unit_test(a_reader_is_woken_once),
		cmocka_unit_test(progress_is_given_to_those_that_want_it),
		cmocka_unit_test(progress_that_was_not_taken_stays),
		cmocka_unit_test(a_proof_ends_the_row_of_misses),
		cmocka_unit_test(an_ended_watch_asks_the_server_nothing),
		cmocka_unit_test(an_open_list_keeps_events),
		cmocka_unit_test(old_bookmarks_change_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
