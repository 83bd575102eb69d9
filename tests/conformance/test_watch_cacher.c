/* The watch suite over the Cacher on the embedded store. */
#include "cacher_fixture.h"
#include "watch_suite.h"

static void *open_cacher(uint64_t seed, struct watch_place *ret_place)
{
	struct cacher_fixture *fixture = calloc(1, sizeof *fixture);

	cacher_fixture_setup(fixture, seed);
	*ret_place = (struct watch_place) { fixture->env, fixture->store, fixture->cacher };
	return fixture;
}

static void close_cacher(void *target)
{
	cacher_fixture_teardown(target);
	free(target);
}

static vd_rev put(void *target, const char *namespace_name, const char *name, const char *app,
		  const char *node)
{
	return put_pod(target, namespace_name, name, app, node);
}

static vd_rev remove_one(void *target, const char *namespace_name, const char *name)
{
	return delete_pod(target, namespace_name, name);
}

int main(void)
{
	static const struct watch_target cacher = { "cacher", open_cacher, close_cacher, put, remove_one };

	return watch_suite_run(&cacher);
}
