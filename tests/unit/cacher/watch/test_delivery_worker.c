/* Delivery workers on real threads: many watchers opened and closed from several threads, slow and stuck
 * sinks, resumes that race, a cacher that ends under all of them. The thread sanitizer looks on; each sink
 * checks that it is called by one thread at a time, in order, and never after its end. */
#include <stdatomic.h>

#include "vdtest.h"

#include <vedette/cacher.h>

#include "env.h"
#include "feed_store.h"
#include "wait.h"

#define WATCHERS 40
#define ROUNDS 6
#define EVENTS 60

struct sink {
	struct vd_watcher *watcher;
	atomic_int	   inside;
	atomic_bool	   is_closed;
	_Atomic uint64_t   count;
	vd_rev		   last; /* the sink's thread */
	unsigned	   calls;
	bool		   is_slow;
	bool		   has_ended;
	atomic_bool	   wants_resume;
	struct vdi_wait	   closed;
};

static size_t deliver(void *arg, const struct vd_watch_event *events, size_t count)
{
	struct sink *sink = arg;

	assert_int_equal(atomic_fetch_add(&sink->inside, 1), 0);
	assert_false(atomic_load(&sink->is_closed));
	assert_false(sink->has_ended);
	/* A slow one takes one event and then none, by turns. */
	if (sink->is_slow) {
		count = sink->calls++ % 2 ? 0 : 1;
		atomic_store(&sink->wants_resume, true);
	}
	for (size_t i = 0; i < count; i++) {
		assert_true(events[i].revision > sink->last);
		sink->last = events[i].revision;
	}
	atomic_fetch_add(&sink->count, count);
	atomic_fetch_sub(&sink->inside, 1);
	return count;
}

static void ended(void *arg, vd_status reason)
{
	struct sink *sink = arg;

	assert_int_equal(atomic_fetch_add(&sink->inside, 1), 0);
	assert_false(sink->has_ended);
	sink->has_ended = true;
	atomic_fetch_sub(&sink->inside, 1);
}

static void closed(void *arg)
{
	struct sink *sink = arg;

	assert_int_equal(atomic_load(&sink->inside), 0);
	atomic_store(&sink->is_closed, true);
	vdi_wait_signal(&sink->closed);
}

struct world {
	struct vd_env	 *env, *other;
	struct vd_store	 *feed;
	struct vd_codec	 *codec;
	struct vd_cacher *cacher;
};

static void setup_world(struct world *world)
{
	struct vd_cacher_options options = VD_CACHER_OPTIONS_INIT;
	struct vd_env_options	 threads = VD_ENV_OPTIONS_INIT;
	struct vd_error		 error;

	threads.threads = 3;
	assert_status(vd_env_new_threads(&threads, &world->env), VD_OK);
	assert_status(vd_env_new_threads(&threads, &world->other), VD_OK);
	world->feed = feed_store_new(world->env);
	assert_status(vd_codec_json_new(NULL, 0, &world->codec, &error), VD_OK);
	options.resource = "pods";
	options.key_prefix = "/registry/pods/";
	options.codec = world->codec;
	assert_status(vd_cacher_new(world->env, world->feed, &options, &world->cacher, &error), VD_OK);
	assert_status(vd_cacher_ready_wait(world->cacher, VD_SECONDS(30), &error), VD_OK);
}

static void teardown_world(struct world *world)
{
	if (world->cacher)
		vd_cacher_close_wait(world->cacher);
	vd_env_free(world->other);
	feed_store_free(world->feed);
	vd_codec_free(world->codec);
	vd_env_free(world->env);
}

static void open_sink(struct world *world, struct sink *sink, unsigned index)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct vd_watch_sink	to = { deliver, ended, sink, NULL };
	struct vd_error		error;

	memset(sink, 0, sizeof *sink);
	vdi_wait_init(&sink->closed, world->env);
	sink->is_slow = index % 5 == 0;
	options.revision = vd_cacher_revision(world->cacher);
	sink->last = options.revision;
	if (index % 3)
		to.executor = vdi_env_executor(index % 3 == 1 ? world->env : world->other);
	if (index % 2)
		options.label_selector = vd_bytes_of("app=a");
	assert_status(vd_cacher_watch(world->cacher, &options, &to, &sink->watcher, &error), VD_OK);
}

static void put(struct world *world, unsigned i)
{
	feed_put(world->feed, i % 2 ? "/registry/pods/ns/x" : "/registry/pods/ns/y",
		 i % 3 ? "{\"metadata\":{\"name\":\"x\",\"namespace\":\"ns\",\"labels\":{\"app\":\"a\"}}}" :
			 "{\"metadata\":{\"name\":\"x\",\"namespace\":\"ns\"}}");
}

static void close_sink(struct sink *sink)
{
	vd_watcher_close(sink->watcher, closed, sink);
	vdi_wait_wait(&sink->closed);
	vdi_wait_fini(&sink->closed);
}

static void watchers_come_and_go_on_three_kinds_of_threads(void **state)
{
	struct world world = { 0 };
	struct sink *sinks = calloc(WATCHERS, sizeof *sinks);

	setup_world(&world);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < WATCHERS; i++)
			open_sink(&world, &sinks[i], i);
		for (unsigned i = 0; i < EVENTS; i++) {
			put(&world, i);
			for (unsigned j = 0; j < WATCHERS; j += 5)
				if (atomic_exchange(&sinks[j].wants_resume, false))
					vd_watcher_resume(sinks[j].watcher);
		}
		for (unsigned i = 0; i < WATCHERS; i++)
			close_sink(&sinks[i]);
	}
	teardown_world(&world);
	free(sinks);
}

static void the_cacher_ends_under_its_watchers(void **state)
{
	struct sink *sinks = calloc(WATCHERS, sizeof *sinks);

	for (unsigned round = 0; round < ROUNDS; round++) {
		struct world	world = { 0 };
		struct vdi_wait gone;

		setup_world(&world);
		for (unsigned i = 0; i < WATCHERS; i++)
			open_sink(&world, &sinks[i], i);
		for (unsigned i = 0; i < EVENTS; i++)
			put(&world, i);
		vdi_wait_init(&gone, world.env);
		for (unsigned i = 0; i < WATCHERS / 2; i++)
			close_sink(&sinks[i]);
		vd_cacher_close(world.cacher, vdi_wait_signal_arg, &gone);
		world.cacher = NULL;
		for (unsigned i = WATCHERS / 2; i < WATCHERS; i++)
			close_sink(&sinks[i]);
		vdi_wait_wait(&gone);
		vdi_wait_fini(&gone);
		teardown_world(&world);
	}
	free(sinks);
}

struct puller {
	struct world	*world;
	struct vd_actor *actor;
	struct vdi_wait	 done;
	uint64_t	 count;
};

/* Blocks: an actor with a thread of its own. */
static void pull(void *arg)
{
	struct puller	       *puller = arg;
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct vd_watcher      *watcher;
	struct vd_watch_event	event;
	struct vd_error		error;
	vd_rev			last = 0;
	vd_status		status;

	options.revision = 1;
	assert_status(vd_cacher_watch(puller->world->cacher, &options, NULL, &watcher, &error), VD_OK);
	for (;;) {
		status = vd_watcher_next(watcher, &event);
		if (status == VD_AGAIN) {
			status = vd_watcher_wait(watcher, VD_SECONDS(1));
			assert_true(status == VD_OK || status == VD_TIMEOUT);
			continue;
		}
		if (status != VD_OK)
			break;
		assert_true(event.revision > last);
		last = event.revision;
		puller->count++;
		if (puller->count == EVENTS)
			vdi_wait_signal(&puller->done);
	}
	assert_status(status, VD_CLOSED);
	vd_watcher_close(watcher, NULL, NULL);
}

static void threads_that_pull(void **state)
{
	struct world  world = { 0 };
	struct puller pullers[4] = { 0 };

	setup_world(&world);
	for (unsigned i = 0; i < 4; i++) {
		struct vd_actor_options options = {
			.name = "puller", .run = pull, .arg = &pullers[i], .blocking = true
		};

		pullers[i].world = &world;
		vdi_wait_init(&pullers[i].done, world.env);
		assert_status(vd_actor_new(world.env, &options, &pullers[i].actor), VD_OK);
		vd_actor_wake(pullers[i].actor);
	}
	for (unsigned i = 0; i < EVENTS; i++)
		put(&world, i);
	for (unsigned i = 0; i < 4; i++)
		vdi_wait_wait(&pullers[i].done);
	world.cacher = vd_cacher_close_wait(world.cacher);
	for (unsigned i = 0; i < 4; i++) {
		vdi_wait_for_actor_close(world.env, pullers[i].actor);
		vdi_wait_fini(&pullers[i].done);
		assert_int_equal(pullers[i].count, EVENTS);
	}
	teardown_world(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(watchers_come_and_go_on_three_kinds_of_threads),
		cmocka_unit_test(the_cacher_ends_under_its_watchers),
		cmocka_unit_test(threads_that_pull),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
