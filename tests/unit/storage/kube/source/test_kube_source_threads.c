/* A source on real threads: a cacher, watches, long reads and requests at once, while the server's
 * connections are cut. For the thread sanitizer. */
#include "await.h"
#include "cacher_fixture.h"
#include "kube_client.h"
#include "kube_peer.h"
#include "kube_world.h"
#include "pod_objects.h"

struct reader {
	struct vd_store	       *store;
	struct vd_store_watch  *watch;
	struct vd_store_stream *stream;
	atomic_int		answers, calls, wakes;
};

static void on_ready(void *arg)
{
	atomic_fetch_add(&((struct reader *) arg)->wakes, 1);
}

static void on_range(void *arg, vd_status status, const struct vd_range_result *result,
		     const struct vd_error *error)
{
	atomic_fetch_add(&((struct reader *) arg)->answers, 1);
}

static void reopen(struct reader *reader)
{
	struct vd_store_watch_request  watch = { .key = vd_bytes_of(KUBE_PREFIX),
						 .range_end = vd_bytes_of(KUBE_PREFIX_END),
						 .previous = true,
						 .progress = true,
						 .ready = on_ready,
						 .ready_arg = reader };
	struct vd_store_stream_request stream = { .range = { .key = watch.key, .range_end = watch.range_end },
						  .ready = on_ready,
						  .ready_arg = reader };
	struct vd_error		       error;

	vd_store_watch_close(reader->watch);
	vd_store_stream_close(reader->stream);
	assert_status(vd_store_watch_open(reader->store, &watch, &reader->watch, &error), VD_OK);
	assert_status(vd_store_stream_open(reader->store, &stream, &reader->stream), VD_OK);
}

static void use(struct reader *reader, int i)
{
	struct vd_range_request list = { .key = vd_bytes_of(KUBE_PREFIX),
					 .range_end = vd_bytes_of(KUBE_PREFIX_END) };
	struct vd_store_batch	batch;
	struct vd_store_part	part;
	struct vd_error		error;
	vd_status		status;

	if (i % 20 == 0)
		reopen(reader);
	status = vd_store_watch_next(reader->watch, 10, &batch, &error);
	assert_true(status == VD_OK || status == VD_AGAIN || status == VD_EXPIRED);
	(void) vd_store_watch_progress(reader->watch);
	status = vd_store_stream_next(reader->stream, &part, &error);
	assert_true(status == VD_OK || status == VD_AGAIN || status == VD_CLOSED);
	if (i % 10 == 0) {
		assert_status(vd_store_range(reader->store, &list, on_range, reader), VD_OK);
		atomic_fetch_add(&reader->calls, 1);
	}
}

static void readers_and_cuts_at_once(void **state)
{
	struct kube_world      world = { 0 };
	struct vd_env_options  env = VD_ENV_OPTIONS_INIT;
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct reader	       reader = { 0 };
	struct vd_error	       error;
	char		       name[16];

	env.threads = 4;
	options.server = "https://peer";
	options.request_timeout = VD_SECONDS(10);
	assert_status(vd_env_new_threads(&env, &world.env), VD_OK);
	world.peer = kube_peer_new(world.env, 7);
	kube_peer_add_resource(world.peer, "", "v1", "pods", "Pod", true);
	world.peer->chunk_max = 200;
	world.codec = pod_codec_new();
	assert_status(vdi_kube_open_over(world.env, &options, kube_peer_transport_new, &world.kube, &error),
		      VD_OK);
	assert_status(vd_store_open_kube(world.kube, &kube_pods, NULL, KUBE_PREFIX, &world.store, &error),
		      VD_OK);
	reader.store = world.store;
	kube_world_open_cacher(&world);
	for (int i = 0; i < 400; i++) {
		snprintf(name, sizeof name, "p%d", i % 20);
		if (i % 7)
			kube_peer_put(world.peer, "pods", "a", name, "");
		else
			kube_peer_delete(world.peer, "pods", "a", name);
		if (i % 50 == 49)
			kube_peer_cut(world.peer);
		use(&reader, i);
	}
	AWAIT(vd_cacher_ready(world.cacher, NULL) == VD_OK && kube_world_is_equal(&world));
	AWAIT(atomic_load(&reader.answers) == atomic_load(&reader.calls));
	assert_true(atomic_load(&reader.wakes) > 0);
	vd_store_watch_close(reader.watch);
	vd_store_stream_close(reader.stream);
	kube_world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readers_and_cuts_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
