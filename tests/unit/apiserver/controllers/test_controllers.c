/* The garbage collector and the namespace controller in the simulator: over a store that delays, refuses,
 * loses answers, cuts watches and compacts, and while allocations fail. Whatever happened, at rest nothing is
 * left that belongs to nobody, no namespace is stuck, and nothing else is gone.
 */
#include <vedette/cacher.h>

#include "actor_sim.h"
#include "garbage_collector.h"
#include "kind_cache.h"
#include "namespace_controller.h"
#include "object_call.h"
#include "resource_set.h"
#include "store_chaos.h"
#include "vdtest.h"

enum { NAMESPACES = 3, OBJECTS = 24 }; /* in each */

static const char *const served_plurals[] = { "namespaces", "configmaps", "secrets", "pods" };

struct thing {
	bool exists; /* as the model has it */
	bool is_secret;
	int  owners[2]; /* -1: none */
};

struct world {
	uint64_t			 random;
	struct vd_env			*env;
	struct vd_store			*inner, *chaos;
	struct vdi_resource_set		*resource_set;
	struct vdi_kind_cache		 caches[4]; /* never let go by those who use them */
	struct vdi_garbage_collector	*collector;
	struct vdi_namespace_controller *controller;
	struct thing			 things[NAMESPACES][OBJECTS];
	bool				 is_deleted[NAMESPACES];
	int64_t				 live;
};

static unsigned draw(struct world *world, unsigned below)
{
	world->random = world->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned) ((world->random >> 33) % below);
}

static struct vdi_resource_set *served_of(void *arg)
{
	return vdi_resource_set_ref(((struct world *) arg)->resource_set);
}

static void object_gone(void *arg, struct vd_bytes namespace_name)
{
	struct world *world = arg;

	if (world->controller)
		vdi_namespace_controller_poke(world->controller, namespace_name);
}

static struct vdi_resource *resource_of(struct world *world, const char *plural)
{
	return vdi_resources_find(&world->resource_set->resources, VD_BYTES_NONE, vd_bytes_of("v1"),
				  vd_bytes_of(plural));
}

/* ---- Objects, as they lie in the store ---- */

static void key_of(const struct world *world, int namespace_at, int at, char key[96])
{
	(void) snprintf(key, 96, "/registry/%s/n%d/o%d",
			world->things[namespace_at][at].is_secret ? "secrets" : "configmaps", namespace_at,
			at);
}

static void put(struct world *world, const char *key, const char *value)
{
	vd_rev revision;

	assert_status(vd_store_put_wait(world->inner, vd_bytes_of(key), vd_bytes_of(value), &revision, NULL),
		      VD_OK);
}

static bool is_there(struct world *world, const char *key)
{
	struct vd_kv *kv;
	vd_status     status = vd_store_get_wait(world->inner, vd_bytes_of(key), &kv, NULL);

	assert_true(status == VD_OK || status == VD_NOT_FOUND);
	if (status == VD_OK)
		(void) vd_kv_unref(kv);
	return status == VD_OK;
}

static void put_thing(struct world *world, int namespace_at, int at)
{
	const struct thing *thing = &world->things[namespace_at][at];
	char		    key[96], owners[512] = "", value[1024];

	for (int i = 0; i < 2; i++)
		if (thing->owners[i] >= 0)
			(void) snprintf(owners + strlen(owners), sizeof owners - strlen(owners),
					"%s{\"apiVersion\":\"v1\",\"kind\":\"%s\",\"name\":\"o%d\",\"uid\":"
					"\"u-%d-%d\",\"blockOwnerDeletion\":true}",
					*owners ? "," : "",
					world->things[namespace_at][thing->owners[i]].is_secret ? "Secret" :
												  "ConfigMap",
					thing->owners[i], namespace_at, thing->owners[i]);
	(void) snprintf(value, sizeof value,
			"{\"apiVersion\":\"v1\",\"kind\":\"%s\",\"metadata\":{\"name\":\"o%d\",\"namespace\":"
			"\"n%d\",\"uid\":\"u-%d-%d\",\"ownerReferences\":[%s]}}",
			thing->is_secret ? "Secret" : "ConfigMap", at, namespace_at, namespace_at, at,
			owners);
	key_of(world, namespace_at, at, key);
	put(world, key, value);
}

static void put_namespace(struct world *world, int at)
{
	char key[96], value[256];

	(void) snprintf(key, sizeof key, "/registry/namespaces/n%d", at);
	(void) snprintf(value, sizeof value,
			"{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"n%d\","
			"\"uid\":\"ns-%d\"},\"spec\":{\"finalizers\":[\"kubernetes\"]},"
			"\"status\":{\"phase\":\"Active\"}}",
			at, at);
	put(world, key, value);
}

/* ---- The world ---- */

static void open_caches(struct world *world, struct vdi_resources *resources)
{
	for (size_t i = 0; i < VDI_ARRAY_SIZE(served_plurals); i++) {
		struct vdi_resource *resource = vdi_resources_find(
			resources, VD_BYTES_NONE, vd_bytes_of("v1"), vd_bytes_of(served_plurals[i]));
		struct vd_cacher_options options = VD_CACHER_OPTIONS_INIT;
		char			 name[VDI_RESOURCE_NAME_MAX];

		assert_status(vdi_resource_cacher_options(resource, resource->fields, resource->field_count,
							  name, &options, NULL),
			      VD_OK);
		world->caches[i].codec = resource->codec;
		assert_status(
			vd_cacher_new(world->env, world->chaos, &options, &world->caches[i].cacher, NULL),
			VD_OK);
		atomic_init(&world->caches[i].users, 1000);
		vdi_kind_cache_bind(&world->caches[i], resource);
	}
}

static void start_controllers(struct world *world)
{
	assert_status(vdi_namespace_controller_new(world->env, served_of, world, &world->controller, NULL),
		      VD_OK);
	assert_status(
		vdi_garbage_collector_new(world->env, served_of, object_gone, world, &world->collector, NULL),
		VD_OK);
}

static void stop_controllers(struct world *world)
{
	world->collector = vdi_garbage_collector_free(world->collector);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(world->caches); i++)
		world->caches[i].collected = NULL; /* another one begins anew */
	world->controller = vdi_namespace_controller_free(world->controller);
}

static void world_open_over(struct world *world, uint64_t seed, const struct chaos_options *chaos)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct vdi_resources   resources;

	memset(world, 0, sizeof *world);
	world->live = vdi_alloc_live();
	world->random = seed * 2654435761u + 1;
	assert_status(vdi_env_new_sim(seed, NULL, NULL, &world->env), VD_OK);
	assert_status(vd_store_open_mvcc(world->env, &options, &world->inner, NULL), VD_OK);
	world->chaos = chaos_store_new(world->env, world->inner, chaos);
	for (int i = 0; i < NAMESPACES; i++) {
		put_namespace(world, i);
		for (int j = 0; j < OBJECTS; j++) {
			struct thing *thing = &world->things[i][j];

			*thing = (struct thing) { .exists = true,
						  .is_secret = draw(world, 3) == 0,
						  .owners = { -1, -1 } };
			for (int k = 0; k < 2 && j > 3; k++)
				if (draw(world, 3))
					thing->owners[k] = (int) draw(world, (unsigned) j);
			if (thing->owners[0] == thing->owners[1])
				thing->owners[1] = -1;
			put_thing(world, i, j);
		}
	}
	assert_status(vdi_resources_init(&resources), VD_OK);
	open_caches(world, &resources);
	assert_status(vdi_resource_set_new(&resources, &world->resource_set, NULL), VD_OK);
	vdi_resources_fini(&resources);
	vdi_sim_advance(world->env, VD_SECONDS(1));
	start_controllers(world);
}

static void world_open(struct world *world, uint64_t seed)
{
	static const struct chaos_options calm;

	world_open_over(world, seed, &calm);
}

static void world_close(struct world *world)
{
	stop_controllers(world);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(world->caches); i++)
		(void) vd_cacher_close_wait(world->caches[i].cacher);
	world->resource_set = vdi_resource_set_unref(world->resource_set);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(world->caches); i++)
		(void) vd_codec_free(world->caches[i].codec);
	vdi_sim_advance(world->env, VD_SECONDS(60)); /* what the chaos still holds */
	chaos_store_free(world->chaos);
	(void) vd_store_close_wait(world->inner);
	(void) vd_env_free(world->env);
	assert_int_equal(vdi_alloc_live(), world->live);
}

/* ---- What users do ---- */

static void call_over(struct vdi_object_call *call)
{
	*(bool *) call->arg = true;
}

/* A DELETE, again until it was answered. */
static void delete_object(struct world *world, const char *plural, const char *namespace_name,
			  const char *name, enum vdi_propagation propagation)
{
	struct vdi_delete_options options = { .propagation = propagation };

	for (int tries = 0;; tries++) {
		bool		       over = false;
		struct vdi_object_call call = { .resource = resource_of(world, plural),
						.namespace_name = vd_bytes_of(namespace_name),
						.name = vd_bytes_of(name),
						.options = &options,
						.now = vd_env_wall(world->env),
						.done = call_over,
						.arg = &over };
		int		       waits = 0;
		vd_status	       result;

		assert_true(tries < 200);
		vdi_object_call_delete(&call);
		while (!over) {
			assert_true(++waits < 6000);
			vdi_sim_advance(world->env, VD_MS(100));
		}
		result = call.result;
		vdi_object_call_fini(&call);
		if (result == VD_OK || result == VD_NOT_FOUND)
			return;
	}
}

static void delete_thing(struct world *world, int namespace_at, int at)
{
	char namespace_name[8], name[8];

	(void) snprintf(namespace_name, sizeof namespace_name, "n%d", namespace_at);
	(void) snprintf(name, sizeof name, "o%d", at);
	delete_object(world, world->things[namespace_at][at].is_secret ? "secrets" : "configmaps",
		      namespace_name, name,
		      draw(world, 2) ? VDI_PROPAGATION_FOREGROUND : VDI_PROPAGATION_BACKGROUND);
	world->things[namespace_at][at].exists = false;
}

static void delete_namespace(struct world *world, int at)
{
	char name[8];

	(void) snprintf(name, sizeof name, "n%d", at);
	delete_object(world, "namespaces", "", name, VDI_PROPAGATION_UNSET);
	world->is_deleted[at] = true;
}

static void compacted(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
}

static void compact(struct world *world)
{
	vd_rev revision;

	assert_status(
		vd_store_put_wait(world->inner, vd_bytes_of("/elsewhere"), vd_bytes_of("x"), &revision, NULL),
		VD_OK);
	assert_status(vd_store_compact(world->inner, revision, false, compacted, NULL), VD_OK);
}

/* ---- At rest ---- */

/* Who had owners, and has none that is there, goes; with a namespace, everything. */
static void settle_model(struct world *world)
{
	for (int n = 0; n < NAMESPACES; n++)
		for (bool changed = true; changed;) {
			changed = false;
			for (int i = 0; i < OBJECTS; i++) {
				struct thing *thing = &world->things[n][i];
				bool	      has_owner = thing->owners[0] >= 0 || thing->owners[1] >= 0,
				     lives = !has_owner && !world->is_deleted[n];

				for (int j = 0; j < 2; j++)
					lives |= !world->is_deleted[n] && thing->owners[j] >= 0 &&
						 world->things[n][thing->owners[j]].exists;
				if (thing->exists && !lives)
					thing->exists = false, changed = true;
			}
		}
}

static void tell_of(struct world *world, const char *key, const char *what)
{
	struct vd_kv *kv;

	print_message("%s is %s", key, what);
	if (vd_store_get_wait(world->inner, vd_bytes_of(key), &kv, NULL) == VD_OK) {
		print_message(": %.*s", (int) vd_kv_value(kv).size, (const char *) vd_kv_value(kv).data);
		(void) vd_kv_unref(kv);
	}
	print_message("\n");
}

/* How many differ from the model; tells which when it is asked to. */
static int differences(struct world *world, bool tell)
{
	int  count = 0;
	char key[96];

	for (int n = 0; n < NAMESPACES; n++) {
		(void) snprintf(key, sizeof key, "/registry/namespaces/n%d", n);
		if (is_there(world, key) == world->is_deleted[n] && ++count && tell)
			print_message("namespace n%d is %s\n", n, world->is_deleted[n] ? "stuck" : "gone");
		for (int i = 0; i < OBJECTS; i++) {
			key_of(world, n, i, key);
			if (is_there(world, key) != world->things[n][i].exists && ++count && tell)
				tell_of(world, key, world->things[n][i].exists ? "gone" : "left over");
		}
	}
	return count;
}

static void check_at_rest(struct world *world, const char *what, uint64_t seed)
{
	settle_model(world);
	for (int i = 0; i < 240 && differences(world, false); i++)
		vdi_sim_advance(world->env, VD_SECONDS(5));
	if (differences(world, true)) {
		struct vdi_garbage_counts counts;

		vdi_garbage_collector_counts(world->collector, &counts);
		print_message("the collector knows %llu objects, %llu wait, %llu looks failed; %zu "
			      "namespaces are being emptied\n",
			      (unsigned long long) counts.nodes, (unsigned long long) counts.waiting,
			      (unsigned long long) counts.failed,
			      vdi_namespace_controller_count(world->controller));
		fail_msg("%s, seed %llu: not as the model", what, (unsigned long long) seed);
	}
	vdi_sim_advance(world->env, VD_SECONDS(120)); /* nor does anything go afterwards */
	if (differences(world, true))
		fail_msg("%s, seed %llu: not as the model any more", what, (unsigned long long) seed);
}

/* ---- Tests ---- */

/* One action after the other, each in the middle of what the last one began. */
static void act(struct world *world, int actions)
{
	for (int i = 0; i < actions; i++) {
		switch (draw(world, 8)) {
		case 0:
			if (i > actions / 2)
				delete_namespace(world, (int) draw(world, NAMESPACES));
			break;
		case 1: compact(world); break;
		case 2: chaos_cut(world->chaos); break;
		case 3:
			if (draw(world, 3) == 0) {
				stop_controllers(world);
				start_controllers(world);
			}
			break;
		default:
			delete_thing(world, (int) draw(world, NAMESPACES), (int) draw(world, OBJECTS));
			break;
		}
		vdi_sim_advance(world->env, VD_MS(draw(world, 3000)));
	}
}

static void r667_controllers_over_a_bad_store(void **state)
{
	static const struct chaos_options calm;
	struct chaos_marks		  marks = { 0 };

	for (uint64_t seed = 1250; seed < 1290;
	     seed++) { /* 1276: an owner that went before the first fill brought its kind */
		const struct chaos_options rough = { .delay = 300,
						     .delay_max = VD_MS(700),
						     .refuse = (unsigned) (seed % 4) * 40,
						     .lose_answer = (unsigned) (seed % 3) * 50,
						     .cut = (unsigned) (seed % 5) * 8,
						     .stall = 100,
						     .refuse_watch = (unsigned) (seed % 2) * 150 };
		struct world		   world;

		world_open(&world, seed);
		chaos_set(world.chaos, &rough);
		act(&world, 16);
		chaos_set(world.chaos, &calm);
		marks.refusals += chaos_marks(world.chaos)->refusals;
		marks.lost_answers += chaos_marks(world.chaos)->lost_answers;
		marks.cuts += chaos_marks(world.chaos)->cuts;
		marks.delays += chaos_marks(world.chaos)->delays;
		check_at_rest(&world, "a bad store", seed);
		world_close(&world);
	}
	assert_true(marks.refusals && marks.lost_answers && marks.cuts && marks.delays);
}

/* An etcd before 3.4.31 cannot prove that a cache is the newest state, so a watch must accept the cache as it
 * is. */
static void r667_controllers_over_a_store_without_progress(void **state)
{
	static const struct chaos_options calm = { .no_progress = true };

	for (uint64_t seed = 2000; seed < 2010; seed++) {
		const struct chaos_options rough = { .delay = 300,
						     .delay_max = VD_MS(700),
						     .cut = (unsigned) (seed % 5) * 8,
						     .stall = 100,
						     .no_progress = true };
		struct world		   world;

		world_open_over(&world, seed, &calm);
		chaos_set(world.chaos, &rough);
		act(&world, 16);
		chaos_set(world.chaos, &calm);
		check_at_rest(&world, "a store without progress", seed);
		world_close(&world);
	}
}

/* Memory that is not there for a while: nothing is lost for ever, nothing goes that should stay. */
static void controllers_without_memory(void **state)
{
	unsigned delivered = 0;

	for (uint64_t seed = 60; seed < 180;
	     seed++) { /* 77: a namespace went before its content; 159: a foreground deletion stood still */
		struct world world;

		world_open(&world, seed);
		vdi_sim_advance(world.env, VD_SECONDS(5));
		for (int i = 0; i < 4; i++) {
			(void) vdi_alloc_fail_nth(1 + draw(&world, 250), 1 + draw(&world, 5));
			if (i == 2)
				delete_namespace(&world, (int) draw(&world, NAMESPACES));
			else
				delete_thing(&world, (int) draw(&world, NAMESPACES),
					     (int) draw(&world, OBJECTS));
			vdi_sim_advance(world.env, VD_SECONDS(2));
			delivered += vdi_alloc_failed();
			(void) vdi_alloc_fail_nth(0, 0);
		}
		check_at_rest(&world, "no memory", seed);
		world_close(&world);
	}
	print_message("%u of %u armed failures were delivered\n", delivered, 4 * 120);
	assert_true(delivered > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r667_controllers_over_a_bad_store),
		cmocka_unit_test(r667_controllers_over_a_store_without_progress),
		cmocka_unit_test(controllers_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
