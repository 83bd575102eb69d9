/* The watch suite over the Cacher on an etcd store: our client and our etcd server, in the simulator. (A real
 * etcd cannot run there; the integration tests cover it.) */
#include "cacher_fixture.h"
#include "etcd_loop.h"
#include "watch_suite.h"

struct target {
	struct cacher_fixture fixture; /* first */
	struct etcd_loop      loop;
};

static void *open_cacher(uint64_t seed, struct watch_place *ret_place)
{
	struct target *target = calloc(1, sizeof *target);

	cacher_fixture_init(&target->fixture, seed);
	(void) vd_store_close_wait(target->fixture.store);
	etcd_loop_open(&target->loop, target->fixture.env, seed, VD_SECONDS(600));
	target->fixture.store = etcd_loop_store(&target->loop);
	cacher_fixture_open(&target->fixture, NULL);
	*ret_place =
		(struct watch_place) { target->fixture.env, target->fixture.store, target->fixture.cacher };
	return target;
}

static void close_cacher(void *arg)
{
	struct target *target = arg;

	target->fixture.cacher = vd_cacher_close_wait(target->fixture.cacher);
	target->fixture.store = vd_store_close_wait(target->fixture.store);
	etcd_loop_close(&target->loop);
	cacher_fixture_teardown(&target->fixture);
	free(target);
}

/* Waits until the writes have arrived over the network. */
static vd_rev arrived(struct target *target, vd_rev revision)
{
	cacher_fixture_settle(&target->fixture);
	return revision;
}

static vd_rev put(void *target, const char *namespace_name, const char *name, const char *app,
		  const char *node)
{
	return arrived(target, put_pod(target, namespace_name, name, app, node));
}

static vd_rev remove_one(void *target, const char *namespace_name, const char *name)
{
	return arrived(target, delete_pod(target, namespace_name, name));
}

int main(void)
{
	static const struct watch_target cacher = { "cacher over etcd", open_cacher, close_cacher, put,
						    remove_one };

	return watch_suite_run(&cacher);
}
