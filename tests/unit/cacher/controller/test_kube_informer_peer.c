/* Shared informers over an API server in memory: faults, and resources that are removed and come back. */
#include "actor_sim.h"
#include "kube_client.h"
#include "kube_peer.h"
#include "vdtest.h"

#define CORE_HEAD                                                                                            \
	"{\"kind\":\"APIGroupDiscoveryList\",\"items\":[{\"metadata\":{},\"versions\":[{\"version\":\"v1\"," \
	"\"resources\":["
static const char core[] =
	CORE_HEAD "{\"resource\":\"pods\",\"responseKind\":{\"kind\":\"Pod\"},\"scope\":"
		  "\"Namespaced\",\"singularResource\":\"pod\",\"shortNames\":[\"po\"]}]}]}]}";
#define GROUPS(version)                                                                                      \
	"{\"kind\":\"APIGroupDiscoveryList\",\"items\":[{\"metadata\":{\"name\":\"shop\"},\"versions\":[{"   \
	"\"version\":\"" version "\",\"resources\":[{\"resource\":\"carts\",\"responseKind\":{\"kind\":"     \
	"\"Cart\"},\"scope\":\"Namespaced\"}]}]}]}"
static const char no_groups[] = "{\"kind\":\"APIGroupDiscoveryList\",\"items\":[]}";

struct world {
	struct vd_env	 *env;
	struct kube_peer *peer;
	struct vd_kube	 *kube;
};

/* A copy of the server's objects that a handler keeps: revisions by number of the object. */
#define NAMES 40
struct copy {
	vd_rev			 revisions[NAMES];
	unsigned		 count, synced, wrong, removes;
	struct vd_kube_informer *informer;
	struct vd_env		*env;
};

static size_t number_of(const struct vd_object *object)
{
	struct vd_bytes name = vd_object_name(object);
	char		text[32];

	snprintf(text, sizeof text, "%.*s", (int) name.size, (const char *) name.data);
	return (size_t) strtoul(text + 1, NULL, 10) % NAMES;
}

static void on_add(void *arg, struct vd_object *object, bool initial)
{
	struct copy *copy = arg;
	bool	     was_atomic = vdi_sim_set_atomic(copy->env, true);
	vd_rev	    *revision = &copy->revisions[number_of(object)];

	copy->wrong += *revision != 0 || (initial && copy->synced > 0);
	*revision = vd_object_revision(object);
	copy->count++;
	vdi_sim_set_atomic(copy->env, was_atomic);
}

static void on_update(void *arg, struct vd_object *old_object, struct vd_object *object)
{
	struct copy *copy = arg;
	bool	     was_atomic = vdi_sim_set_atomic(copy->env, true);
	vd_rev	    *revision = &copy->revisions[number_of(object)];

	copy->wrong += *revision != vd_object_revision(old_object) || *revision >= vd_object_revision(object);
	*revision = vd_object_revision(object);
	vdi_sim_set_atomic(copy->env, was_atomic);
}

static void on_remove(void *arg, struct vd_object *last_state, bool unknown_final_state)
{
	struct copy *copy = arg;
	bool	     was_atomic = vdi_sim_set_atomic(copy->env, true);
	vd_rev	    *revision = &copy->revisions[number_of(last_state)];

	(void) unknown_final_state;
	copy->wrong += *revision == 0;
	*revision = 0;
	copy->count--;
	copy->removes++;
	vdi_sim_set_atomic(copy->env, was_atomic);
}

static void on_synced(void *arg)
{
	((struct copy *) arg)->synced++;
}

static void open_world(struct world *world, uint64_t seed, unsigned preemptions)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct vd_error	       error;

	assert_status(vdi_env_new_sim(seed, NULL, NULL, &world->env), VD_OK);
	if (preemptions)
		assert_status(vdi_sim_set_preemptions(world->env, preemptions), VD_OK);
	world->peer = kube_peer_new(world->env, seed);
	kube_peer_add_resource(world->peer, "", "v1", "pods", "Pod", true);
	kube_peer_set_document(world->peer, "/api", core);
	kube_peer_set_document(world->peer, "/apis", no_groups);
	options.server = "http://peer";
	assert_status(vdi_kube_open_over(world->env, &options, kube_peer_transport_new, &world->kube, &error),
		      VD_OK);
}

static void close_world(struct world *world)
{
	world->kube = vd_kube_close_wait(world->kube);
	kube_peer_free(world->peer);
	world->env = vd_env_free(world->env);
}

static void open_copy(struct world *world, const char *resource, struct copy *copy)
{
	const struct vd_informer_handler handler = { on_add, on_update, on_remove, on_synced, copy, { 0 } };
	struct vd_error			 error = { 0 };

	memset(copy, 0, sizeof *copy);
	copy->env = world->env;
	if (vd_kube_informer_open(world->kube, resource, NULL, &handler, &copy->informer, &error) != VD_OK)
		fail_msg("%s", error.message);
}

static const char *name_of(size_t number)
{
	static char text[16];

	snprintf(text, sizeof text, "n%zu", number);
	return text;
}

static void put(struct world *world, const char *plural, size_t number)
{
	kube_peer_put(world->peer, plural, "ns", name_of(number), "");
}

static bool is_equal(struct world *world, const char *plural, const struct copy *copy)
{
	for (size_t i = 0; i < NAMES; i++)
		if (copy->revisions[i] != kube_peer_find(world->peer, plural, "ns", name_of(i)))
			return false;
	return copy->count == kube_peer_count(world->peer, plural);
}

static void informers_follow_a_server_with_faults(void **state)
{
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct world world;
		struct copy  copies[3];

		open_world(&world, seed, seed % 2 ? 4 : 0);
		world.peer->faults = (struct kube_peer_faults) { 20, 10, 20, 2 };
		for (size_t i = 0; i < 3; i++)
			open_copy(&world, i ? "po" : "pods", &copies[i]);
		for (unsigned i = 0; i < 300; i++) {
			size_t number = (size_t) kube_peer_random(world.peer, NAMES);

			if (kube_peer_random(world.peer, 4))
				put(&world, "pods", number);
			else
				kube_peer_delete(world.peer, "pods", "ns", name_of(number));
			if (i == 200 && seed % 3 == 0)
				kube_peer_compact(world.peer);
			vdi_sim_advance(world.env, VD_MS(kube_peer_random(world.peer, 500)));
		}
		memset(&world.peer->faults, 0, sizeof world.peer->faults);
		kube_peer_cut(world.peer);
		vdi_sim_advance(world.env, VD_SECONDS(200));
		for (size_t i = 0; i < 3; i++) {
			assert_int_equal(copies[i].wrong, 0);
			assert_int_equal(copies[i].synced, 1);
			assert_true(is_equal(&world, "pods", &copies[i]));
			assert_int_equal(vd_kube_informer_count(copies[i].informer), copies[i].count);
			vd_kube_informer_close_wait(copies[i].informer);
		}
		close_world(&world);
	}
}

static void a_resource_that_is_removed_and_comes_back(void **state)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct world world;
		struct copy  copy;

		open_world(&world, seed, 0);
		open_copy(&world, "carts", &copy);
		vdi_sim_advance(world.env, VD_SECONDS(5));
		assert_int_equal(copy.synced, 0);
		kube_peer_add_resource(world.peer, "shop", "v1", "carts", "Cart", true);
		kube_peer_set_document(world.peer, "/apis", GROUPS("v1"));
		put(&world, "carts", 1);
		put(&world, "carts", 2);
		vdi_sim_advance(world.env, VD_SECONDS(60));
		assert_int_equal(copy.synced, 1);
		assert_true(is_equal(&world, "carts", &copy));
		assert_int_equal(copy.count, 2);
		/* the CRD is deleted */
		kube_peer_remove_resource(world.peer, "carts");
		kube_peer_set_document(world.peer, "/apis", no_groups);
		kube_peer_cut(world.peer);
		vdi_sim_advance(world.env, VD_SECONDS(200));
		assert_int_equal(copy.count, 0);
		assert_int_equal(vd_kube_informer_count(copy.informer), 0);
		assert_int_equal(copy.removes, 2);
		/* it is installed again, with or without a change of the revision */
		kube_peer_return_resource(world.peer, "carts");
		kube_peer_set_document(world.peer, "/apis", GROUPS("v1"));
		if (seed % 2)
			put(&world, "carts", 3);
		vdi_sim_advance(world.env, VD_SECONDS(200));
		assert_true(is_equal(&world, "carts", &copy));
		put(&world, "carts", 4);
		vdi_sim_advance(world.env, VD_SECONDS(200));
		assert_true(is_equal(&world, "carts", &copy));
		assert_int_equal(copy.synced, 1);
		assert_int_equal(copy.wrong, 0);
		vd_kube_informer_close_wait(copy.informer);
		close_world(&world);
	}
}

static void closing_at_any_time(void **state)
{
	for (uint64_t seed = 1; seed <= 150; seed++) {
		struct world world;
		struct copy  copies[2];

		open_world(&world, seed, seed % 2 ? 4 : 0);
		if (seed % 3 == 0)
			world.peer->faults = (struct kube_peer_faults) { 30, 20, 30, 10 };
		put(&world, "pods", 1);
		open_copy(&world, "pods", &copies[0]);
		open_copy(&world, "po", &copies[1]);
		for (uint64_t steps = (seed * 13) % 211; steps && vdi_sim_step(world.env); steps--)
			;
		if (seed % 5 == 0)
			vdi_sim_advance(world.env, VD_SECONDS(seed % 70));
		vd_kube_informer_close_wait(copies[0].informer);
		if (seed % 4 == 0)
			vdi_sim_advance(world.env, VD_SECONDS(seed % 70));
		vd_kube_informer_close_wait(copies[1].informer);
		assert_int_equal(copies[0].wrong + copies[1].wrong, 0);
		close_world(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(informers_follow_a_server_with_faults),
		cmocka_unit_test(a_resource_that_is_removed_and_comes_back),
		cmocka_unit_test(closing_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
