/* An embedded store and a Cacher over it, on separate threads, so that their CPU times can be measured
 * separately. */
#ifndef BENCH_WORLD_H
#define BENCH_WORLD_H

#include "measure.h"
#include "pods.h"

struct world {
	struct vd_env *store_env; /* its threads: the store alone */
	struct vd_env
		*env; /* its one thread: watchChan, reflector, cache, dispatch, sinks without an executor */
	struct vd_env		*consumer_env; /* its one thread: sinks with an executor */
	struct vd_store		*store;
	struct vd_codec		*codec;
	struct vd_cacher	*cacher;
	struct vd_cacher_options options; /* may be changed before world_start */
	struct measure_threads	 store_threads;
	struct measure_threads	 threads;
	struct measure_threads	 consumer_threads;
	uint64_t		 seed;
	vd_rev			 revision; /* of the last put that was answered */
};

/* data_dir NULL: in memory. */
void world_open(struct world *world, const char *data_dir);
/* Makes the cacher and waits until it is ready. */
void world_start(struct world *world);
void world_close(struct world *world);
/* Puts the pods [from, from + count), size bytes each, up to 256 in flight; waits until they are answered. */
void world_fill(struct world *world, uint64_t from, uint64_t count, size_t size);
/* Puts count pods at once and waits until the store has answered; json is made beforehand. */
struct world_put {
	struct vd_bytes key;
	struct vd_bytes value;
};
void world_put(struct world *world, const struct world_put *puts, size_t count);
/* Waits until the cacher has reached the revision. */
void world_wait_revision(const struct world *world, vd_rev revision);

#endif
