/* A group's ring of matches: what it hands out is what a plain evaluation of the history gives, from wherever
 * a reader stands. */
#include "watch_group.h"

#include "actor_sim.h"
#include "pod_objects.h"
#include "watch_cache.h"

#define EVENTS 900

struct world {
	int64_t			live;
	struct vd_env	       *env;
	struct vd_codec	       *codec;
	struct vdi_watch_cache	cache;
	struct vdi_predicate   *predicate;
	struct vdi_watch_group *group;
};

static void world_init(struct world *world)
{
	struct vdi_predicate_options options = { .label_selector = vd_bytes_of("app=web"),
						 .room = sizeof(struct vdi_watch_group) };

	memset(world, 0, sizeof *world);
	world->live = vdi_alloc_live();
	assert_status(vdi_env_new_sim(1, NULL, NULL, &world->env), VD_OK);
	world->codec = pod_codec_new();
	assert_status(vdi_watch_cache_init(&world->cache, world->env, 1 << 24, VD_SECONDS(75), 0, NULL),
		      VD_OK);
	vdi_history_reset(&world->cache.history, 1);
	assert_status(vdi_predicate_new(world->codec, &options, &world->predicate, NULL), VD_OK);
	world->group = vdi_watch_group_new(world->predicate, world->cache.history.end);
}

static void world_fini(struct world *world)
{
	vdi_watch_group_unref(world->group);
	vdi_predicate_unref(world->predicate);
	vdi_watch_cache_fini(&world->cache);
	vd_codec_free(world->codec);
	vd_env_free(world->env);
	assert_int_equal(vdi_alloc_live(), world->live);
}

/* As dispatch.c does it. */
static void add_event(struct world *world, vd_rev revision, const char *old_app, const char *app)
{
	struct vdi_event *event =
		pod_event(revision, app ? pod_new(world->codec, "ns", "x", app, NULL, revision) : NULL,
			  old_app ? pod_new(world->codec, "ns", "x", old_app, NULL, revision - 1) : NULL);
	enum vd_watch_type type;
	uint64_t	   position = world->cache.history.end;

	vdi_history_append(&world->cache.history, event);
	vdi_lock_acquire(&world->cache.lock);
	if (vdi_predicate_transition(world->predicate, event->old_object, event->object, &type))
		vdi_watch_group_append_locked(world->group, position, type, event->size_bytes);
	vdi_lock_release(&world->cache.lock);
}

/* Reads all that is there from position on, at most max at a time; returns how many matched. */
static size_t read_all(struct world *world, uint64_t position, size_t max)
{
	uint64_t limit = world->cache.history.end;
	uint64_t walked = position;
	size_t	 total = 0;

	while (position < limit) {
		struct vdi_match matches[128];
		size_t		 count;

		assert_status(vdi_watch_group_take(world->group, &world->cache, &position, limit, matches,
						   max, &count),
			      VD_OK);
		assert_true(count <= max);
		for (size_t i = 0; i < count; i++, total++) {
			enum vd_watch_type type;

			for (;; walked++) { /* nothing in between was to be seen */
				struct vdi_event *event = vdi_history_at(&world->cache.history, walked);

				if (vdi_predicate_transition(world->predicate, event->old_object,
							     event->object, &type))
					break;
			}
			assert_int_equal(matches[i].position, walked);
			assert_ptr_equal(matches[i].event, vdi_history_at(&world->cache.history, walked));
			assert_int_equal(matches[i].type, type);
			walked++;
		}
		vdi_matches_release(matches, count);
	}
	assert_int_equal(position, limit);
	for (; walked < limit; walked++) {
		struct vdi_event  *event = vdi_history_at(&world->cache.history, walked);
		enum vd_watch_type type;

		assert_false(
			vdi_predicate_transition(world->predicate, event->old_object, event->object, &type));
	}
	return total;
}

static const char *random_app(uint64_t *random)
{
	static const char *const apps[] = { "web", "db", "web", NULL };

	*random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return apps[(*random >> 33) % 4];
}

static void r552_the_ring_and_the_evaluation_agree(void **state)
{
	struct world world;
	uint64_t     random = 3;

	world_init(&world);
	for (unsigned i = 0; i < EVENTS; i++) {
		const char *old = random_app(&random), *now = random_app(&random);

		add_event(&world, 2 + i, old || now ? old : "db", now);
		if (i % 50 == 49)
			for (uint64_t from = world.cache.history.start; from <= world.cache.history.end;
			     from += 7)
				(void) read_all(&world, from, 1 + from % 40);
	}
	assert_int_equal(world.group->ring_capacity, VDI_GROUP_RING_MAX); /* and no more */
	assert_true(world.group->ring_floor > world.cache.history.start); /* both ways were used */
	assert_int_equal(read_all(&world, world.cache.history.end, 1), 0);
	world_fini(&world);
}

static void a_group_that_never_matched_has_no_ring(void **state)
{
	struct world world;

	world_init(&world);
	for (unsigned i = 0; i < 90; i++)
		add_event(&world, 2 + i, NULL, "db");
	assert_null(world.group->ring);
	assert_int_equal(read_all(&world, world.cache.history.start, 5), 0);
	world_fini(&world);
}

static void t130_r485_what_was_evicted_is_expired(void **state)
{
	struct world	 world;
	struct vdi_match matches[4];
	uint64_t	 position;
	size_t		 count = 7;

	world_init(&world);
	for (unsigned i = 0; i < 20; i++)
		add_event(&world, 2 + i, NULL, "web");
	position = world.cache.history.start;
	vdi_history_trim(&world.cache.history, 10);
	assert_status(vdi_watch_group_take(world.group, &world.cache, &position, world.cache.history.end,
					   matches, 4, &count),
		      VD_EXPIRED);
	assert_int_equal(count, 0);
	assert_int_equal(read_all(&world, world.cache.history.start, 4), 12);
	world_fini(&world);
}

static void r552_what_the_receiver_is_told(void **state)
{
	struct world	      world;
	struct vdi_match      matches[3];
	struct vd_watch_event event;
	uint64_t	      position;
	size_t		      count;

	world_init(&world);
	position = world.cache.history.start;
	add_event(&world, 2, "db", "web");
	add_event(&world, 3, "web", "web");
	add_event(&world, 4, "web", "db");
	assert_status(vdi_watch_group_take(world.group, &world.cache, &position, world.cache.history.end,
					   matches, 3, &count),
		      VD_OK);
	assert_int_equal(count, 3);
	vdi_match_to_event(&matches[0], &event);
	assert_int_equal(event.type, VD_WATCH_ADDED);
	assert_null(event.old_object); /* the state before is none of its business */
	vdi_match_to_event(&matches[1], &event);
	assert_int_equal(event.type, VD_WATCH_MODIFIED);
	assert_int_equal(vd_object_revision(event.old_object), 2);
	vdi_match_to_event(&matches[2], &event);
	assert_int_equal(event.type, VD_WATCH_DELETED);
	assert_int_equal(event.revision, 4); /* that of the change, with the last state that matched */
	assert_int_equal(vd_object_revision(event.object), 3);
	vdi_matches_release(matches, 3);
	world_fini(&world);
}

/* A revision that does not fit any more is left for the next time; only one that is larger than the array
 * comes in parts. */
static void e459_a_revision_is_not_cut_where_that_can_be_helped(void **state)
{
	for (unsigned other_way = 0; other_way < 2; other_way++) {
		struct world	 world;
		struct vdi_match matches[8];
		uint64_t	 position;
		size_t		 count;
		static const struct {
			size_t max, count;
			vd_rev last;
		} takes[] = { { 4, 3, 3 }, { 4, 4, 4 }, { 2, 2, 5 }, { 2, 2, 5 }, { 2, 1, 5 } };

		world_init(&world);
		position = world.cache.history.end;
		add_event(&world, 2, NULL, "web");
		for (unsigned i = 0; i < 11; i++)
			add_event(&world, i < 2 ? 3 : i < 6 ? 4 : 5, NULL, "web");
		if (other_way)
			world.group->ring_floor = world.cache.history.end;
		for (size_t i = 0; i < VDI_ARRAY_SIZE(takes); i++) {
			assert_status(vdi_watch_group_take(world.group, &world.cache, &position,
							   world.cache.history.end, matches, takes[i].max,
							   &count),
				      VD_OK);
			assert_int_equal(count, takes[i].count);
			assert_int_equal(matches[count - 1].event->revision, takes[i].last);
			vdi_matches_release(matches, count);
		}
		assert_int_equal(position, world.cache.history.end);
		world_fini(&world);
	}
}

static void torture_without_memory_the_ring_is_short_never_wrong(void **state)
{
	for (unsigned nth = 1; nth < 8; nth++) {
		struct world world;

		world_init(&world);
		for (unsigned i = 0; i < 90; i++) {
			struct vdi_event *event =
				pod_event(2 + i, pod_new(world.codec, "ns", "x", "web", NULL, 2 + i), NULL);
			uint64_t position = world.cache.history.end;

			vdi_history_append(&world.cache.history, event);
			vdi_alloc_fail_nth(i % nth == 0, 1);
			vdi_watch_group_append_locked(world.group, position, VD_WATCH_ADDED,
						      event->size_bytes);
			vdi_alloc_fail_nth(0, 0);
			assert_int_equal(read_all(&world, world.cache.history.start, 1 + i % 9), i + 1);
		}
		assert_int_equal(world.group->matched_events, 90);
		world_fini(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r552_the_ring_and_the_evaluation_agree),
		cmocka_unit_test(a_group_that_never_matched_has_no_ring),
		cmocka_unit_test(t130_r485_what_was_evicted_is_expired),
		cmocka_unit_test(r552_what_the_receiver_is_told),
		cmocka_unit_test(e459_a_revision_is_not_cut_where_that_can_be_helped),
		cmocka_unit_test(torture_without_memory_the_ring_is_short_never_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
