/* The watch suite over the Cacher on the embedded store. */
#include "cacher_fixture.h"
#include "watch_suite.h"

static void *open_cacher(uint64_t seed, const struct vd_env **ret_env)
{
	struct cacher_fixture *fixture = calloc(1, sizeof *fixture);

	cacher_fixture_setup(fixture, seed);
	*ret_env = fixture->env;
	return fixture;
}

static void close_cacher(void *target)
{
	cacher_fixture_teardown(target);
	free(target);
}

static vd_rev put(void *target, const char *namespace_name, const char *name, const char *app, const char *node)
{
	return put_pod(target, namespace_name, name, app, node);
}

static vd_rev remove_one(void *target, const char *namespace_name, const char *name)
{
	return delete_pod(target, namespace_name, name);
}

static vd_rev write_elsewhere(void *target)
{
	vd_rev revision = 0;

	assert_status(vd_store_put_wait(((struct cacher_fixture *) target)->store, vd_bytes_of("/registry/secrets/s"), vd_bytes_of("{}"), &revision, NULL),
		      VD_OK);
	return revision;
}

static vd_rev revision(void *target)
{
	return vd_cacher_revision(((struct cacher_fixture *) target)->cacher);
}

static vd_status watch(void *target, const struct vd_watch_options *options, const struct vd_watch_sink *sink, struct vd_watcher **ret_watcher)
{
	return vd_cacher_watch(((struct cacher_fixture *) target)->cacher, options, sink, ret_watcher, NULL);
}

int main(void)
{
	static const struct watch_target cacher = { "cacher", open_cacher, close_cacher, put, remove_one, write_elsewhere, revision, watch };

	return watch_suite_run(&cacher);
}
