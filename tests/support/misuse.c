#include "misuse.h"

static struct vd_cacher *new_cacher(struct misuse_world *world, const char *resource, const char *prefix,
				    bool cluster_scoped)
{
	struct vd_cacher_options options = VD_CACHER_OPTIONS_INIT;
	struct vd_cacher	*cacher;

	options.resource = resource;
	options.key_prefix = prefix;
	options.cluster_scoped = cluster_scoped;
	options.codec = world->codec;
	assert_status(vd_cacher_new(world->env, world->store, &options, &cacher, NULL), VD_OK);
	assert_status(vd_cacher_ready_wait(cacher, VD_SECONDS(-1), NULL), VD_OK);
	return cacher;
}

void misuse_world_init(struct misuse_world *world)
{
	static const struct vd_field_spec fields[] = { { "spec.nodeName", ".spec.nodeName", NULL },
						       { "status.phase", ".status.phase", NULL } };
	struct vd_env_options		  options = VD_ENV_OPTIONS_INIT;

	*world = (struct misuse_world) { 0 };
	options.threads = 1;
	assert_status(vd_env_new_threads(&options, &world->env), VD_OK);
	assert_status(vd_store_open_mvcc(world->env, NULL, &world->store, NULL), VD_OK);
	assert_status(vd_codec_json_new(fields, 2, &world->codec, NULL), VD_OK);
	world->pods = new_cacher(world, "pods", "/registry/pods/", false);
	world->nodes = new_cacher(world, "nodes", "/registry/minions/", true);
	assert_status(vd_cacher_put_wait(world->pods, vd_bytes_of("ns"), vd_bytes_of("a"),
					 vd_bytes_of("{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\"}}"),
					 NULL, NULL),
		      VD_OK);
}

void misuse_world_fini(struct misuse_world *world)
{
	vd_cacher_close_wait(world->pods);
	vd_cacher_close_wait(world->nodes);
	vd_codec_free(world->codec);
	vd_store_close_wait(world->store);
	vd_env_free(world->env);
}

void misuse_told_object(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
			const struct vd_error *error)
{
	struct misuse_world *world = arg;

	(void) revision;
	assert_null(object);
	assert_non_null(error);
	assert_status(error->code, status);
	world->error = *error;
}

static void run_one(void **state)
{
	const struct misuse *misuse = *state;
	struct misuse_world  world;
	vd_status	     status;

	misuse_world_init(&world);
	status = misuse->commit(&world);
	if (status == VD_OK)
		status = world.error.code; /* from the callback */
	assert_status(status, misuse->status);
	if (misuse->message) {
		assert_status(world.error.code, misuse->status);
		if (strstr(world.error.message, misuse->message) == NULL)
			fail_msg("expected \"%s\" in: %s", misuse->message, world.error.message);
	}
	misuse_world_fini(&world);
}

int misuse_run(const char *group, const struct misuse *misuses, size_t count)
{
	struct CMUnitTest *tests = calloc(count, sizeof *tests);
	int		   failed;

	for (size_t i = 0; i < count; i++)
		tests[i] = (struct CMUnitTest) { misuses[i].name, run_one, NULL, NULL,
						 (void *) (uintptr_t) &misuses[i] };
	failed = vdtest_run_group(group, tests, count, NULL, NULL);
	free(tests);
	return failed;
}
