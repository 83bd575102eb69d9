/* An etcd store over a toy etcd (etcd_toy.h), in the simulator, and its calls. */
#ifndef ETCD_STORE_WORLD_H
#define ETCD_STORE_WORLD_H

#include "vdtest.h"

#include "actor_sim.h"
#include "etcd_store.h"
#include "etcd_toy.h"

struct world {
	struct vd_env	      *env;
	struct etcd_toy	       toy;
	struct vdi_etcd_store *inner;
	struct vd_store	      *store;
	int64_t		       live;
};

static inline struct world *world_new(uint64_t seed, size_t endpoint_count)
{
	struct world *world = test_calloc(1, sizeof *world);

	world->live = vdi_alloc_live();
	assert_status(vdi_env_new_sim(seed, NULL, NULL, &world->env), VD_OK);
	etcd_toy_init(&world->toy, world->env, seed, endpoint_count);
	return world;
}

static inline struct vd_etcd_store_options options_of(void)
{
	struct vd_etcd_store_options options = VD_ETCD_STORE_OPTIONS_INIT;

	return options;
}

static inline void open_store(struct world *world, const struct vd_etcd_store_options *options)
{
	struct vd_etcd *client = etcd_toy_client(&world->toy);

	assert_non_null(client);
	assert_status(vdi_etcd_store_new(world->env, client, options, world->toy.endpoints,
					 world->toy.endpoint_count, &world->inner, NULL),
		      VD_OK);
	world->store = &world->inner->base;
}

/* Opens a store, and waits until all endpoints have answered. */
static inline struct world *world_open(uint64_t seed, size_t endpoint_count)
{
	struct world		    *world = world_new(seed, endpoint_count);
	struct vd_etcd_store_options options = options_of();

	open_store(world, &options);
	assert_status(vdi_etcd_store_wait(world->inner, VD_SECONDS(20), NULL), VD_OK);
	vdi_sim_run_until_idle(world->env);
	return world;
}

static inline void close_store(struct world *world)
{
	world->store = vd_store_close_wait(world->store);
	world->inner = NULL;
}

static inline void world_free(struct world *world)
{
	if (world->store)
		close_store(world);
	etcd_toy_fini(&world->toy);
	vd_env_free(world->env);
	assert_int_equal(vdi_alloc_live(), world->live);
	test_free(world);
}

static inline struct vd_store_status status_of(struct world *world)
{
	struct vd_store_status status = { 0 };

	assert_status(vd_store_status_get(world->store, &status), VD_OK);
	return status;
}

struct answer {
	bool		is_done;
	vd_status	status;
	vd_rev		revision;
	struct vd_error error;
	int64_t		ttl_s;
};

static inline void got_range(void *arg, vd_status status, const struct vd_range_result *result,
			     const struct vd_error *error)
{
	struct answer *answer = arg;

	answer->is_done = true;
	answer->status = status;
	answer->revision = result ? result->store_revision : 0;
	if (error)
		answer->error = *error;
}

static inline void got_txn(void *arg, vd_status status, const struct vd_txn_result *result,
			   const struct vd_error *error)
{
	struct answer *answer = arg;

	answer->is_done = true;
	answer->status = status;
	answer->revision = result ? result->revision : 0;
	if (error)
		answer->error = *error;
}

static inline void got_lease(void *arg, vd_status status, const struct vd_lease_result *result,
			     const struct vd_error *error)
{
	struct answer *answer = arg;

	(void) error;
	answer->is_done = true;
	answer->status = status;
	answer->ttl_s = result ? result->ttl_s : 0;
}

static inline void got_done(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	struct answer *answer = arg;

	answer->is_done = true;
	answer->status = status;
	answer->revision = revision;
	if (error)
		answer->error = *error;
}

static inline bool is_done(void *arg)
{
	return ((struct answer *) arg)->is_done;
}

static inline void settle(struct world *world, struct answer *answer)
{
	assert_true(vdi_sim_run_until(world->env, is_done, answer, VD_SECONDS(60)));
}

static inline struct answer range_at(struct world *world, vd_rev revision)
{
	struct vd_range_request request = { .key = vd_bytes_of("a"), .revision = revision };
	struct answer		answer = { 0 };

	assert_status(vd_store_range(world->store, &request, got_range, &answer), VD_OK);
	settle(world, &answer);
	return answer;
}

static inline vd_status start_put(struct world *world, struct answer *answer)
{
	struct vd_op	      op = { .kind = VD_OP_PUT, .key = vd_bytes_of("a"), .value = vd_bytes_of("1") };
	struct vd_txn_request request = { .success = &op, .success_count = 1 };

	return vd_store_txn(world->store, &request, got_txn, answer);
}

static inline struct answer put(struct world *world)
{
	struct answer answer = { 0 };

	assert_status(start_put(world, &answer), VD_OK);
	settle(world, &answer);
	return answer;
}

static inline void count_ready(void *arg)
{
	(*(unsigned *) arg)++;
}

static inline struct vd_store_watch *watch_from(struct world *world, const char *key, vd_rev start,
						unsigned *ready)
{
	struct vd_store_watch_request request = {
		.key = vd_bytes_of(key), .start_revision = start, .ready = count_ready, .ready_arg = ready
	};
	struct vd_store_watch *watch = NULL;

	assert_status(vd_store_watch_open(world->store, &request, &watch, NULL), VD_OK);
	vdi_sim_run_until_idle(world->env);
	return watch;
}

/* "5 5 6" or "progress 9" or the status. */
static inline const char *next_text(struct world *world, struct vd_store_watch *watch, size_t max)
{
	static char	      text[256];
	struct vd_store_batch batch;
	struct vd_error	      error;
	vd_status	      status;
	size_t		      used = 0;

	vdi_sim_run_until_idle(world->env);
	status = vd_store_watch_next(watch, max, &batch, &error);
	if (status != VD_OK)
		return vd_status_name(status);
	if (batch.event_count == 0)
		(void) snprintf(text, sizeof text, "progress %lld", (long long) batch.revision);
	for (size_t i = 0; i < batch.event_count; i++)
		used += (size_t) snprintf(text + used, sizeof text - used, "%s%lld", i ? " " : "",
					  (long long) batch.events[i].kv->mod_rev);
	if (batch.event_count)
		assert_int_equal(batch.revision, batch.events[batch.event_count - 1].kv->mod_rev);
	return text;
}

static inline struct vd_store_stream *stream_of(struct world *world, vd_rev revision, unsigned *ready)
{
	struct vd_store_stream_request request = {
		.range = { .key = vd_bytes_of("k"), .range_end = vd_bytes_of("l"), .revision = revision },
		.ready = count_ready,
		.ready_arg = ready
	};
	struct vd_store_stream *stream = NULL;

	assert_status(vd_store_stream_open(world->store, &request, &stream), VD_OK);
	return stream;
}

/* Waits for the next part; fails the test if none arrives. */
static inline vd_status next_part(struct world *world, struct vd_store_stream *stream,
				  struct vd_store_part *ret_part, struct vd_error *reterr)
{
	vd_status status;

	while ((status = vd_store_stream_next(stream, ret_part, reterr)) == VD_AGAIN)
		assert_true(vdi_sim_step(world->env));
	return status;
}

#endif
