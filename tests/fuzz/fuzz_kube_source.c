/* A resource of a Kubernetes API server as a store, with a cacher and an informer over it, in the simulator.
 * The server follows the input (kube_responses.h).
 *
 * The first line is for this program: '1' responses come byte by byte, 'q' everything is closed while the
 * client still reads, 'c' consistent lists and 'r' reads of the store are made meanwhile, 't' writes, and
 * 'F' N makes the N-th allocation fail.
 *
 * The run has a bound of simulated time and of requests. At its end the cache and the informer have the
 * objects that the source has, unless the server was asked for pages; everything is closed; and no memory is
 * left. */
#include <vedette/informer.h>
#include <vedette/kube.h>

#include "actor_sim.h"
#include "kube_client.h"
#include "kube_responses.h"
#include "kube_source.h"

#define RUN_S 240
/* One for each step of the script, and those of clients that wait at least half a second between attempts. */
#define REQUESTS_MAX(size) ((size) + 40 + RUN_S * 4)

struct world {
	struct vd_env	   *env;
	struct vd_kube	   *kube;
	struct vd_store	   *store;
	struct vd_codec	   *codec;
	struct vd_cacher   *cacher;
	struct vd_informer *informer;
	uint64_t	    added, removed;
	unsigned	    calls, answers;
};

struct plan {
	bool	 closes_early, lists, reads, writes;
	uint64_t fails_at; /* 0: never */
};

static const struct vd_kube_resource pods = { "", "v1", "pods", "Pod", false };

/* ---- The informer ---- */

static void on_add(void *arg, struct vd_object *object, bool initial)
{
	struct world *world = arg;

	(void) object;
	(void) initial;
	world->added++;
}

static void on_update(void *arg, struct vd_object *old_object, struct vd_object *object)
{
	(void) arg;
	VDI_CHECK(vd_bytes_equal(vd_object_name(old_object), vd_object_name(object)));
}

static void on_remove(void *arg, struct vd_object *last_state, bool unknown_final_state)
{
	struct world *world = arg;

	(void) last_state;
	(void) unknown_final_state;
	VDI_CHECK(++world->removed <= world->added);
}

/* ---- Calls of the store and the cacher ---- */

static void on_list(void *arg, vd_status status, struct vd_list *list, const struct vd_error *error)
{
	struct world *world = arg;

	VDI_CHECK(status == VD_OK || error->code == status);
	vd_list_free(list);
	world->answers++;
}

static void on_range(void *arg, vd_status status, const struct vd_range_result *result,
		     const struct vd_error *error)
{
	struct world *world = arg;

	VDI_CHECK(status == VD_OK ? result != NULL : error->code == status);
	world->answers++;
}

static void on_txn(void *arg, vd_status status, const struct vd_txn_result *result,
		   const struct vd_error *error)
{
	struct world *world = arg;

	VDI_CHECK(status == VD_OK ? result != NULL : error->code == status);
	world->answers++;
}

static void list(struct world *world)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;

	options.limit = 2;
	world->calls += vd_cacher_list(world->cacher, &options, on_list, world, NULL) == VD_OK;
}

static void read_store(struct world *world)
{
	struct vd_range_request one = { .key = vd_bytes_of("/registry/pods/n/a") };
	struct vd_range_request all = { .key = vd_bytes_of("/registry/pods/"),
					.range_end = vd_bytes_of("/registry/pods0"),
					.limit = 3 };

	world->calls += vd_store_range(world->store, &one, on_range, world) == VD_OK;
	world->calls += vd_store_range(world->store, &all, on_range, world) == VD_OK;
}

static const char new_pod[] = "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\","
			      "\"namespace\":\"n\"}}";

static void write_store(struct world *world)
{
	struct vd_compare     compare = { .target = VD_COMPARE_MOD,
					  .result = VD_COMPARE_EQUAL,
					  .key = vd_bytes_of("/registry/pods/n/a") };
	struct vd_op	      put = { .kind = VD_OP_PUT,
				      .key = vd_bytes_of("/registry/pods/n/a"),
				      .value = vd_bytes_of(new_pod) };
	struct vd_op	      remove = { .kind = VD_OP_DELETE, .key = vd_bytes_of("/registry/pods/n/a") };
	struct vd_txn_request create = { &compare, 1, &put, 1, NULL, 0 },
			      drop = { &compare, 1, &remove, 1, NULL, 0 };

	world->calls += vd_store_txn(world->store, &create, on_txn, world) == VD_OK;
	compare.number = 2;
	world->calls += vd_store_txn(world->store, &create, on_txn, world) == VD_OK;
	world->calls += vd_store_txn(world->store, &drop, on_txn, world) == VD_OK;
}

/* ---- The run ---- */

/* With KUBE_LOG in the environment the run is printed. */
static void print_log(void *arg, const struct vd_log_record *record)
{
	(void) arg;
	if (getenv("KUBE_LOG"))
		(void) fprintf(stderr, "%s: %s\n", record->module, record->message);
}

static bool open_world(struct world *world)
{
	struct vd_kube_options	   options = VD_KUBE_OPTIONS_INIT;
	struct vd_cacher_options   cacher = VD_CACHER_OPTIONS_INIT;
	struct vd_informer_handler handler = {
		.add = on_add, .update = on_update, .remove = on_remove, .arg = world
	};

	options.server = "https://script";
	options.token = "a";
	cacher.resource = "pods";
	cacher.consistency_interval = (vd_dur) { 0 };
	cacher.key_prefix = "/registry/pods/";
	if (vdi_kube_open_over(world->env, &options, script_transport_new, &world->kube, NULL) != VD_OK ||
	    vd_store_open_kube(world->kube, &pods, NULL, cacher.key_prefix, &world->store, NULL) != VD_OK ||
	    vd_codec_json_new(NULL, 0, &world->codec, NULL) != VD_OK)
		return false;
	cacher.codec = world->codec;
	return vd_cacher_new(world->env, world->store, &cacher, &world->cacher, NULL) == VD_OK &&
	       vd_informer_new(world->cacher, VD_BYTES_NONE, VD_BYTES_NONE, VD_BYTES_NONE, &handler,
			       &world->informer, NULL) == VD_OK;
}

static void close_world(struct world *world)
{
	if (world->informer)
		vd_informer_close_wait(world->informer);
	if (world->cacher)
		vd_cacher_close_wait(world->cacher);
	if (world->store)
		vd_store_close_wait(world->store);
	if (world->kube)
		vd_kube_close_wait(world->kube);
	vd_codec_free(world->codec);
	VDI_CHECK(script.open == 0);
	VDI_CHECK(world->calls == world->answers);
}

/* Compares the cache and the informer with the source, which has nothing more to deliver. A list in pages may
 * contradict the watch that the source follows. */
static void compare(struct world *world)
{
	struct vdi_kube_source *source = vdi_kube_source_of(world->store);
	struct vd_list_options	options = VD_LIST_OPTIONS_INIT;
	struct vd_list	       *found;
	struct vd_object       *object;
	size_t			count = 0;

	if (script.lists || vd_cacher_ready(world->cacher, NULL) != VD_OK ||
	    source->pump.step != VDI_KUBE_FOLLOW || !source->pump.is_filled)
		return;
	/* A state that no watch can continue is not given. */
	if (!vdi_kube_ring_can_continue(&source->ring,
					VDI_MAX(source->pump.covered, source->pump.mirror.applied)))
		return;
	options.revision = VD_REVISION_ANY;
	if (vd_cacher_list_wait(world->cacher, &options, &found, NULL) != VD_OK)
		return;
	while ((object = vd_list_next(found)) != NULL) {
		char	      key[2048];
		struct vd_kv *kv;

		count++;
		snprintf(key, sizeof key, "/registry/pods/%.*s%s%.*s", (int) vd_object_namespace(object).size,
			 vd_object_namespace(object).size ? (const char *) vd_object_namespace(object).data :
							    "",
			 vd_object_namespace(object).size ? "/" : "", (int) vd_object_name(object).size,
			 (const char *) vd_object_name(object).data);
		kv = vdi_kube_mirror_get(&source->pump.mirror, vd_bytes_of(key));
		VDI_CHECK(kv && kv->mod_rev == vd_object_revision(object));
	}
	vd_list_free(found);
	VDI_CHECK(count == vdi_kube_mirror_count(&source->pump.mirror));
	VDI_CHECK(vd_informer_count(world->informer) == count);
	VDI_CHECK(world->added - world->removed == count);
}

static void act(struct world *world, const struct plan *plan)
{
	vdi_sim_advance(world->env, VD_MS(20));
	for (unsigned i = 0; i < 2; i++) {
		if (plan->lists)
			list(world);
		if (plan->reads)
			read_store(world);
		if (plan->writes)
			write_store(world);
		if (plan->closes_early)
			return;
		vdi_sim_advance(world->env, VD_SECONDS(RUN_S / 2));
	}
	compare(world);
}

static struct vd_bytes read_plan(struct vd_bytes input, struct plan *plan)
{
	struct vd_bytes line = script_line(&input);
	const char     *text = line.data;

	for (size_t i = 0; i < line.size; i++) {
		script.is_bytewise |= text[i] == '1';
		plan->closes_early |= text[i] == 'q';
		plan->lists |= text[i] == 'c';
		plan->reads |= text[i] == 'r';
		plan->writes |= text[i] == 't';
		if (text[i] == 'F') {
			plan->fails_at = (uint64_t) script_number(
				(struct vd_bytes) { text + i + 1, line.size - i - 1 });
			break;
		}
	}
	return input;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world	world = { 0 };
	struct plan	plan = { 0 };
	struct vd_bytes input = { data, size };
	int64_t		live = vdi_alloc_live();

	memset(&script, 0, sizeof script);
	script_parse(read_plan(input, &plan));
	if (vdi_env_new_sim(1, print_log, NULL, &world.env) != VD_OK)
		abort();
	if (plan.fails_at)
		(void) vdi_alloc_fail_nth(plan.fails_at, 1);
	if (open_world(&world))
		act(&world, &plan);
	(void) vdi_alloc_fail_nth(0, 0);
	VDI_CHECK(script.requests <= REQUESTS_MAX(size));
	close_world(&world);
	VDI_CHECK(vdi_sim_actors(world.env) == 0);
	world.env = vd_env_free(world.env);
	VDI_CHECK(vdi_alloc_live() == live);
	return 0;
}
