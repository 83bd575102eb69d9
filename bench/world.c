/* Store, cacher and consumers each have an env of their own, so each has threads of its own. */
#include "world.h"

#include <stdatomic.h>
#include <stdlib.h>

static void env_with_threads(struct vd_env **ret_env, unsigned threads, struct measure_threads *ret_threads)
{
	struct vd_env_options  options = VD_ENV_OPTIONS_INIT;
	struct measure_threads before;

	options.threads = threads;
	options.seed = measure_options.seed;
	measure_threads_all(&before);
	measure_check(vd_env_new_threads(&options, ret_env), NULL, "threads");
	measure_threads_since(&before, ret_threads);
}

void world_open(struct world *world, const char *data_dir)
{
	struct vd_mvcc_options	 mvcc = VD_MVCC_OPTIONS_INIT;
	struct vd_cacher_options options = VD_CACHER_OPTIONS_INIT;
	struct measure_threads	 before, blocking;
	struct vd_error		 error;

	memset(world, 0, sizeof *world);
	world->seed = measure_options.seed;
	env_with_threads(&world->store_env, 1, &world->store_threads);
	env_with_threads(&world->env, 1, &world->threads);
	env_with_threads(&world->consumer_env, 1, &world->consumer_threads);
	mvcc.data_dir = data_dir;
	measure_threads_all(&before);
	measure_check(vd_store_open_mvcc(world->store_env, &mvcc, &world->store, &error), &error, "store");
	measure_threads_since(&before, &blocking);
	for (size_t i = 0; i < blocking.count; i++)
		world->store_threads.ids[world->store_threads.count++] = blocking.ids[i];
	measure_check(vd_codec_json_new(pod_fields, POD_FIELDS, &world->codec, &error), &error, "codec");
	options.resource = "pods";
	options.key_prefix = "/registry/pods/";
	options.codec = world->codec;
	options.trigger = "spec.nodeName";
	world->options = options;
}

void world_start(struct world *world)
{
	struct vd_error error;

	measure_check(vd_cacher_new(world->env, world->store, &world->options, &world->cacher, &error),
		      &error, "cacher");
	measure_check(vd_cacher_ready_wait(world->cacher, VD_SECONDS(120), &error), &error, "cacher");
}

void world_close(struct world *world)
{
	if (world->cacher)
		vd_cacher_close_wait(world->cacher);
	vd_store_close_wait(world->store);
	vd_codec_free(world->codec);
	vd_env_free(world->consumer_env);
	vd_env_free(world->env);
	vd_env_free(world->store_env);
}

struct put_count {
	_Atomic uint64_t answered;
	_Atomic int64_t	 revision;
};

static void count_answer(void *arg, vd_status status, const struct vd_txn_result *result,
			 const struct vd_error *error)
{
	struct put_count *count = arg;

	measure_check(status, error, "put");
	/* Answers come in order of revision. */
	atomic_store_explicit(&count->revision, result->revision, memory_order_relaxed);
	atomic_fetch_add_explicit(&count->answered, 1, memory_order_release);
}

static void submit(struct world *world, const struct world_put *put, struct put_count *count)
{
	struct vd_op	      op = { .kind = VD_OP_PUT, .key = put->key, .value = put->value };
	struct vd_txn_request request = { .success = &op, .success_count = 1 };

	measure_check(vd_store_txn(world->store, &request, count_answer, count), NULL, "put");
}

static void wait_answers(const struct put_count *count, uint64_t wanted)
{
	while (atomic_load_explicit(&count->answered, memory_order_acquire) < wanted)
		measure_nap_ns(20000);
}

void world_put(struct world *world, const struct world_put *puts, size_t count)
{
	struct put_count counted = { 0, 0 };

	for (size_t i = 0; i < count; i++)
		submit(world, &puts[i], &counted);
	wait_answers(&counted, count);
	world->revision = atomic_load(&counted.revision);
}

void world_fill(struct world *world, uint64_t from, uint64_t count, size_t size)
{
	struct put_count counted = { 0, 0 };
	char		 key[POD_KEY_MAX], value[POD_SIZE_MAX];

	for (uint64_t i = 0; i < count; i++) {
		struct pod	 pod = pod_number(from + i, size);
		struct world_put put = { pod_key(key, &pod), pod_json(value, &pod, &world->seed) };

		submit(world, &put, &counted);
		if (i % 64 == 63 && i >= 256)
			wait_answers(&counted, i - 192);
	}
	wait_answers(&counted, count);
	world->revision = atomic_load(&counted.revision);
}

void world_wait_revision(const struct world *world, vd_rev revision)
{
	while (vd_cacher_revision(world->cacher) < revision)
		measure_nap_ns(20000);
}
