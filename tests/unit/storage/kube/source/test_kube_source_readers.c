/* List at R, then watch from R + 1: nothing is missing, whatever happens between. */
#include "actor_sim.h"
#include "cacher_fixture.h"
#include "kube_peer.h"
#include "kube_reader.h"
#include "kube_source.h"
#include "kube_world.h"

static const char *const names[] = { "x", "y", "z" };

static void open_listed(struct kube_world *world, struct kube_reader *reader, uint64_t seed)
{
	kube_world_open(world, seed);
	for (size_t i = 0; i < 3; i++)
		kube_peer_put(world->peer, "pods", "a", names[i], "");
	memset(reader, 0, sizeof *reader);
	reader->world = world;
	kube_reader_settle(reader);
	assert_int_equal(reader->count, 3);
}

static void list(struct kube_reader *reader, bool as_range, vd_dur time)
{
	kube_reader_list(reader, as_range);
	vdi_sim_advance(reader->world->env, time);
	kube_reader_step(reader);
	assert_int_equal(reader->step, KUBE_READER_LISTED);
}

static void watch(struct kube_reader *reader, bool is_refused)
{
	unsigned expired = reader->expired;

	kube_reader_watch(reader);
	kube_reader_step(reader);
	assert_int_equal(reader->expired - expired, is_refused);
}

static void close_all(struct kube_world *world, struct kube_reader *reader)
{
	kube_reader_settle(reader);
	assert_true(kube_reader_is_equal(reader));
	kube_reader_close(reader);
	kube_world_close(world);
}

/* Between two events of one revision a reader lists; after the second one it watches. */
static void a_reader_that_listed_before_a_late_event_lists_again(void **state)
{
	struct kube_world  world;
	struct kube_reader reader, other = { .world = &world };
	vd_rev		   revision;

	open_listed(&world, &reader, 4);
	world.peer->event_gap = VD_SECONDS(2);
	revision = kube_peer_delete_many(world.peer, "pods", "a", names, 3);
	vdi_sim_advance(world.env, VD_SECONDS(1));
	kube_reader_step(&reader);
	assert_int_equal(reader.count, 2);
	list(&reader, false, VD_MS(900));
	assert_int_equal(reader.revision, revision);
	assert_int_equal(reader.count, 2);
	vdi_sim_advance(world.env, VD_SECONDS(10));
	assert_true(((struct vdi_kube_source *) world.store)->late > 0);
	watch(&reader, true);
	/* No other state is given as this revision; the next one is a good one. */
	kube_reader_list(&other, false);
	vdi_sim_advance(world.env, VD_SECONDS(25));
	kube_reader_step(&other);
	assert_int_equal(other.step, KUBE_READER_LISTING);
	kube_peer_advance(world.peer);
	vdi_sim_advance(world.env, VD_SECONDS(10));
	kube_reader_step(&other);
	assert_int_equal(other.step, KUBE_READER_LISTED);
	assert_true(other.revision > revision);
	assert_int_equal(other.count, 0);
	watch(&other, false);
	kube_reader_close(&other);
	close_all(&world, &reader);
}

static void on_ready(void *arg)
{
	++*(int *) arg;
}

/* Opens a list and waits for its end with VD_TIMEOUT: request_timeout (30 s) later, and not before. */
static void expect_timeout(struct kube_world *world, const char *text)
{
	int			       ready = 0;
	struct vd_store_stream_request request = { .range = { .key = vd_bytes_of(KUBE_PREFIX),
							      .range_end = vd_bytes_of(KUBE_PREFIX_END) },
						   .ready = on_ready,
						   .ready_arg = &ready };
	struct vd_store_stream	      *stream;
	struct vd_store_part	       part;
	struct vd_error		       error = { 0 };

	assert_status(vd_store_stream_open(world->store, &request, &stream), VD_OK);
	assert_status(vd_store_stream_next(stream, &part, &error), VD_AGAIN);
	vdi_sim_advance(world->env, VD_SECONDS(29));
	assert_int_equal(ready, 0);
	vdi_sim_advance(world->env, VD_SECONDS(5));
	assert_int_equal(ready, 1);
	assert_status(vd_store_stream_next(stream, &part, &error), VD_TIMEOUT);
	assert_non_null(strstr(error.message, text));
	vd_store_stream_close(stream);
}

/* The revision that was given in another state stays the server's newest. */
static void a_list_does_not_wait_for_ever_for_a_revision(void **state)
{
	struct kube_world  world;
	struct kube_reader reader;

	open_listed(&world, &reader, 4);
	kube_peer_restore(world.peer, world.peer->revision);
	vdi_sim_advance(world.env, VD_SECONDS(10));
	expect_timeout(&world, "was given in another state");
	close_all(&world, &reader);
}

/* The rest of a revision is cut off, and the server stays away. */
static void a_list_does_not_wait_for_ever_for_the_rest_of_a_revision(void **state)
{
	struct kube_world  world;
	struct kube_reader reader;

	open_listed(&world, &reader, 4);
	world.peer->event_gap = VD_MS(2);
	(void) kube_peer_delete_many(world.peer, "pods", "a", names, 3);
	while (!vdi_kube_pump_holds(vdi_kube_source_of(world.store)))
		vdi_sim_advance(world.env, VD_US(100));
	world.peer->faults.unreachable = 100;
	kube_peer_cut(world.peer);
	vdi_sim_advance(world.env, VD_SECONDS(1));
	vdi_kube_source_of(world.store)->fills--; /* as if it was opened before the fill began */
	expect_timeout(&world, "may follow");
	world.peer->faults.unreachable = 0;
	close_all(&world, &reader);
}

/* A bookmark between two events of one revision, then a cut: the second event is requested. */
static void a_bookmark_between_events_of_a_revision_ends_nothing(void **state)
{
	struct kube_world  world;
	struct kube_reader reader;

	open_listed(&world, &reader, 4);
	world.peer->early_bookmarks = 100;
	world.peer->event_gap = VD_SECONDS(2);
	(void) kube_peer_delete_many(world.peer, "pods", "a", names, 3);
	vdi_sim_advance(world.env, VD_SECONDS(1));
	world.peer->event_gap = VD_MS(0);
	kube_peer_cut(world.peer);
	vdi_sim_advance(world.env, VD_SECONDS(20));
	close_all(&world, &reader);
}

static void event(struct kube_world *world, enum vdi_kube_event_type type, const char *name, int revision)
{
	struct vdi_kube_event event = { .type = type };
	struct vd_error	      error;
	char		      text[256];

	snprintf(text, sizeof text,
		 "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"a\","
		 "\"resourceVersion\":\"%d\"}}",
		 name, revision);
	event.object = vd_bytes_of(text);
	assert_status(vdi_kube_pump_apply(vdi_kube_source_of(world->store), &event, &error), VD_OK);
}

/* A server whose bookmark is newer than two events that follow it: the revision of the bookmark is broken. */
static void two_late_events_break_what_the_first_one_broke(void **state)
{
	struct kube_world	world;
	struct kube_reader	reader;
	struct vdi_kube_source *source;
	int			start;

	open_listed(&world, &reader, 4);
	source = vdi_kube_source_of(world.store);
	start = (int) world.peer->revision;
	event(&world, VDI_KUBE_BOOKMARK, "", start + 5);
	event(&world, VDI_KUBE_ADDED, "v", start + 2);
	event(&world, VDI_KUBE_ADDED, "w", start + 3);
	assert_int_equal(source->late, 2);
	assert_false(vdi_kube_ring_can_continue(&source->ring, start + 3));
	assert_false(vdi_kube_ring_can_continue(&source->ring, start + 5));
	assert_true(vdi_kube_ring_can_continue(&source->ring, start + 6));
	assert_int_equal(vdi_kube_ring_history(&source->ring), start + 6);
	kube_reader_close(&reader);
	kube_world_close(&world);
}

/* The events arrive within 5 ms: none is dropped as one that the bookmark has passed. */
static void a_bookmark_between_events_hides_none(void **state)
{
	for (unsigned seed = 0; seed < 20; seed++) {
		struct kube_world  world;
		struct kube_reader reader;

		open_listed(&world, &reader, seed);
		world.peer->early_bookmarks = 100;
		world.peer->chunk_max = 1 + seed * 30;
		(void) kube_peer_delete_many(world.peer, "pods", "a", names, 3);
		vdi_sim_advance(world.env, VD_SECONDS(5));
		kube_reader_step(&reader);
		assert_int_equal(reader.count, 0);
		assert_int_equal(reader.expired, 0);
		close_all(&world, &reader);
	}
}

/* The restored server has the revision again at which the reader listed, but with another state. */
static void a_reader_that_listed_before_a_restore_lists_again(void **state)
{
	for (unsigned as_range = 0; as_range < 2; as_range++)
		for (unsigned later = 0; later < 4; later++) {
			struct kube_world  world;
			struct kube_reader reader;

			open_listed(&world, &reader, later);
			for (size_t i = 0; i < 3; i++)
				kube_peer_put(world.peer, "pods", "a", "w", "");
			vdi_sim_advance(world.env, VD_SECONDS(1));
			list(&reader, as_range, VD_SECONDS(5));
			kube_peer_restore(world.peer, world.peer->revision - 2);
			vdi_sim_advance(world.env, VD_SECONDS(1));
			for (unsigned i = 0; i < later; i++)
				kube_peer_put(world.peer, "pods", "b", names[i], "");
			vdi_sim_advance(world.env, VD_SECONDS(20));
			watch(&reader, true);
			close_all(&world, &reader);
		}
}

/* So does one that listed while nothing was filled. */
static void a_restore_before_the_fill_is_one_for_readers(void **state)
{
	struct kube_world  world;
	struct kube_reader reader;

	open_listed(&world, &reader, 6);
	kube_peer_put(world.peer, "pods", "a", "w", "");
	list(&reader, true, VD_SECONDS(5));
	kube_peer_advance(world.peer);
	kube_peer_advance(world.peer);
	kube_peer_compact(world.peer);
	kube_peer_cut(world.peer);
	for (int i = 0; i < 10000 && ((struct vdi_kube_source *) world.store)->is_filled; i++)
		vdi_sim_advance(world.env, VD_US(100));
	assert_false(((struct vdi_kube_source *) world.store)->is_filled);
	kube_peer_restore(world.peer, world.peer->revision - 3);
	vdi_sim_advance(world.env, VD_SECONDS(1));
	kube_peer_put(world.peer, "pods", "b", "v", "");
	vdi_sim_advance(world.env, VD_SECONDS(30));
	watch(&reader, true);
	close_all(&world, &reader);
}

static void a_revision_that_the_server_has_not_reached_is_refused(void **state)
{
	struct kube_world  world;
	struct kube_reader reader;

	open_listed(&world, &reader, 7);
	list(&reader, false, VD_SECONDS(5));
	reader.revision += 3;
	watch(&reader, true);
	close_all(&world, &reader);
}

/* A range is newer than the watch of the source: its revision is not refused. */
static void a_list_that_is_ahead_of_the_watch_is_continued(void **state)
{
	struct kube_world  world;
	struct kube_reader reader;

	open_listed(&world, &reader, 7);
	world.peer->event_gap = VD_SECONDS(20);
	for (size_t i = 0; i < 3; i++)
		kube_peer_put(world.peer, "pods", "a", "w", "");
	list(&reader, true, VD_SECONDS(1));
	assert_int_equal(reader.revision, world.peer->revision);
	watch(&reader, false);
	kube_peer_put(world.peer, "pods", "a", "w", "");
	vdi_sim_advance(world.env, VD_SECONDS(100));
	kube_reader_step(&reader);
	assert_int_equal(reader.expired, 0);
	assert_true(kube_reader_is_equal(&reader));
	close_all(&world, &reader);
}

/* The objects of a removed resource are gone: for a reader that has them, too. */
static void a_removal_is_a_state_of_its_own(void **state)
{
	struct kube_world  world;
	struct kube_reader reader;

	open_listed(&world, &reader, 8);
	list(&reader, false, VD_SECONDS(5));
	kube_peer_cut(world.peer); /* the deletions are no events for the source */
	kube_peer_remove_resource(world.peer, "pods");
	vdi_sim_advance(world.env, VD_SECONDS(100));
	watch(&reader, true);
	list(&reader, false, VD_SECONDS(1));
	assert_int_equal(reader.count, 0);
	watch(&reader, false);
	kube_peer_return_resource(world.peer, "pods");
	kube_peer_put(world.peer, "pods", "a", "again", "");
	vdi_sim_advance(world.env, VD_SECONDS(100));
	kube_reader_step(&reader);
	assert_int_equal(reader.expired, 2);
	close_all(&world, &reader);
}

/* The object was read before an event that arrived before the answer. */
static void a_read_object_has_no_later_revision(void **state)
{
	struct kube_world	world;
	struct kube_reader	reader;
	struct kube_answer	answer = { 0 };
	struct vd_range_request request = { .key = vd_bytes_of(KUBE_PREFIX "a/x") };
	vd_rev			revision;
	unsigned		overtaken = 0;

	for (unsigned seed = 0; seed < 20; seed++) {
		open_listed(&world, &reader, seed);
		world.peer->chunk_max = 3;
		revision = world.peer->revision;
		memset(&answer, 0, sizeof answer);
		assert_status(vd_store_range(world.store, &request, kube_answer_range, &answer), VD_OK);
		vdi_sim_advance(world.env, VD_MS(20));
		world.peer->chunk_max = 0; /* the event overtakes the answer */
		kube_peer_delete(world.peer, "pods", "a", "x");
		vdi_sim_advance(world.env, VD_US(10));
		overtaken += !answer.came && ((struct vdi_kube_source *) world.store)->known > revision;
		vdi_sim_advance(world.env, VD_SECONDS(5));
		assert_status(answer.status, VD_OK);
		if (answer.count)
			assert_int_equal(answer.revision, revision);
		close_all(&world, &reader);
	}
	assert_true(overtaken > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reader_that_listed_before_a_late_event_lists_again),
		cmocka_unit_test(a_list_does_not_wait_for_ever_for_a_revision),
		cmocka_unit_test(a_list_does_not_wait_for_ever_for_the_rest_of_a_revision),
		cmocka_unit_test(a_bookmark_between_events_of_a_revision_ends_nothing),
		cmocka_unit_test(two_late_events_break_what_the_first_one_broke),
		cmocka_unit_test(a_bookmark_between_events_hides_none),
		cmocka_unit_test(a_reader_that_listed_before_a_restore_lists_again),
		cmocka_unit_test(a_restore_before_the_fill_is_one_for_readers),
		cmocka_unit_test(a_revision_that_the_server_has_not_reached_is_refused),
		cmocka_unit_test(a_list_that_is_ahead_of_the_watch_is_continued),
		cmocka_unit_test(a_removal_is_a_state_of_its_own),
		cmocka_unit_test(a_read_object_has_no_later_revision),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
