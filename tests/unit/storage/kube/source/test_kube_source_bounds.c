/* What a source keeps and collects has bounds; at each of them health or the caller gets an error. */
#include "actor_sim.h"
#include "cacher_fixture.h"
#include "env.h"
#include "kube_peer.h"
#include "kube_source.h"
#include "kube_world.h"

#define BYTES_MAX 20000

static void health_of(void *arg, const struct vd_kube_health *health)
{
	if (health->resource)
		*(struct vd_kube_health *) arg = *health;
}

static void on_ready(void *arg)
{
	++*(int *) arg;
}

static int64_t metric_of(struct kube_world *world)
{
	struct vdi_metric *metric;
	int64_t		   value;

	assert_status(vdi_metric_get(vdi_env_metrics(world->env), VDI_METRIC_KUBE_SOURCE_BYTES,
				     (const char *const[]) { "pods" }, &metric),
		      VD_OK);
	value = vdi_metric_value(metric);
	vdi_metric_remove(metric);
	return value;
}

static void put_pods(struct kube_world *world, int from, int count)
{
	char name[16], members[1100];

	snprintf(members, sizeof members, "\"spec\":\"%01000d\"", 7);
	for (int i = from; i < from + count; i++) {
		snprintf(name, sizeof name, "p%03d", i);
		kube_peer_put(world->peer, "pods", "a", name, members);
	}
}

static void expect_stopped(struct kube_world *world)
{
	struct vd_kube_health health = { 0 };

	vd_kube_health(world->kube, health_of, &health);
	assert_int_equal(health.state, VD_KUBE_RETRYING);
	assert_status(health.error.code, VD_TOO_BIG);
	assert_non_null(strstr(health.error.message, "source_bytes_max"));
}

/* A reader that waits for a state gets the error. */
static void expect_list_too_big(struct kube_world *world, vd_dur time)
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
	vdi_sim_advance(world->env, time);
	assert_int_equal(ready, 1);
	assert_status(vd_store_stream_next(stream, &part, &error), VD_TOO_BIG);
	assert_non_null(strstr(error.message, "source_bytes_max"));
	vd_store_stream_close(stream);
}

/* The source stops before the event, and goes on when there is room: nothing is skipped. */
static void a_source_that_is_full_stops_and_goes_on(void **state)
{
	struct kube_world	world;
	struct vdi_kube_source *source;
	vd_rev			revision;

	kube_world_open(&world, 3);
	kube_world_reopen(&world, BYTES_MAX);
	put_pods(&world, 0, 14);
	kube_world_open_cacher(&world);
	kube_world_settle(&world);
	source = vdi_kube_source_of(world.store);
	assert_in_range(metric_of(&world), 14 * 1000, BYTES_MAX);
	assert_int_equal(metric_of(&world), source->pump.mirror.bytes);
	put_pods(&world, 14, 10);
	vdi_sim_advance(world.env, VD_SECONDS(1));
	expect_stopped(&world);
	revision = source->pump.mirror.applied;
	assert_true(revision < world.peer->revision);
	vdi_sim_advance(world.env, VD_SECONDS(200));
	expect_stopped(&world);
	assert_int_equal(source->pump.mirror.applied, revision);
	assert_in_range(metric_of(&world), 14 * 1000, BYTES_MAX);
	/* Less than once per 30 s. */
	assert_in_range(world.peer->watches, 3, 9);
	expect_list_too_big(&world, VD_SECONDS(40));
	for (int i = 0; i < 20; i++) {
		char name[16];

		snprintf(name, sizeof name, "p%03d", i);
		kube_peer_delete(world.peer, "pods", "a", name);
	}
	kube_peer_compact(world.peer); /* the new list fits */
	vdi_sim_advance(world.env, VD_SECONDS(60));
	kube_world_settle(&world);
	assert_true(kube_world_is_equal(&world));
	assert_int_equal(source->health.state, VD_KUBE_WATCHING);
	kube_world_close(&world);
}

/* Attempts are 30 s apart. */
static void a_list_that_does_not_fit_is_an_error(void **state)
{
	for (unsigned mode = 0; mode < 2; mode++) {
		struct kube_world world;

		kube_world_open(&world, 3);
		kube_world_reopen(&world, BYTES_MAX);
		world.peer->watch_list = mode ? KUBE_PEER_WATCH_LIST_REFUSED : KUBE_PEER_WATCH_LIST;
		put_pods(&world, 0, 30);
		expect_list_too_big(&world, VD_SECONDS(1));
		expect_stopped(&world);
		assert_int_equal(metric_of(&world), 0);
		vdi_sim_advance(world.env, VD_SECONDS(100));
		assert_in_range(mode ? world.peer->lists : world.peer->watch_lists, 2, 5);
		kube_world_close(&world);
	}
}

static void a_range_that_is_too_long_is_an_error(void **state)
{
	struct kube_world  world;
	struct kube_answer answer;

	kube_world_open(&world, 3);
	kube_world_reopen(&world, BYTES_MAX);
	world.peer->page_max = 5;
	put_pods(&world, 0, 100);
	answer = kube_world_range(&world, KUBE_PREFIX, strlen(KUBE_PREFIX), KUBE_PREFIX_END, 0, 0);
	assert_status(answer.status, VD_TOO_BIG);
	assert_non_null(strstr(answer.error.message, "source_bytes_max"));
	assert_in_range(world.peer->pages, 2, 5); /* it ends at the bound */
	answer = kube_world_range(&world, KUBE_PREFIX, strlen(KUBE_PREFIX), KUBE_PREFIX_END, 0, 10);
	assert_status(answer.status, VD_OK);
	assert_int_equal(answer.count, 10);
	kube_world_close(&world);
}

static void a_bound_of_zero_is_refused(void **state)
{
	struct kube_world      world;
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct vd_kube	      *kube;
	struct vd_error	       error;

	kube_world_open(&world, 3);
	options.server = "https://peer";
	options.source_bytes_max = 0;
	assert_status(vdi_kube_open_over(world.env, &options, kube_peer_transport_new, &kube, &error),
		      VD_INVALID_ARGUMENT);
	assert_non_null(strstr(error.message, "source_bytes_max"));
	kube_world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_source_that_is_full_stops_and_goes_on),
		cmocka_unit_test(a_list_that_does_not_fit_is_an_error),
		cmocka_unit_test(a_range_that_is_too_long_is_an_error),
		cmocka_unit_test(a_bound_of_zero_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
