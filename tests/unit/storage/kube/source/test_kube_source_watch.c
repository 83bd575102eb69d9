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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_watch_is_given_what_it_asked_for),
		cmocka_unit_test(a_batch_has_whole_revisions),
		cmocka_unit_test(a_slow_watch_keeps_events),
		cmocka_unit_test(a_later_watch_begins_in_the_past),
		cmocka_unit_test(a_watch_that_is_too_slow_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
