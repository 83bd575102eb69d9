#include "kube_world.h"

#include "actor_sim.h"
#include "cacher_fixture.h"
#include "kube_client.h"
#include "pod_objects.h"

const struct vd_kube_resource kube_pods = { "", "v1", "pods", "Pod", false };

static void print_log(void *arg, const struct vd_log_record *record)
{
	struct kube_world *world = arg;

	if (strcmp(record->module, "cacher") == 0)
		snprintf(world->cacher_log, sizeof world->cacher_log, "%s", record->message);
	if (getenv("KUBE_LOG"))
		print_message("%.3f %s: %s\n", (double) record->time.ns / 1e9, record->module,
			      record->message);
}

static void open_client(struct kube_world *world, uint64_t source_bytes_max)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct vd_error	       error;

	options.server = "https://peer";
	options.token = "a";
	if (source_bytes_max)
		options.source_bytes_max = source_bytes_max;
	assert_status(vdi_kube_open_over(world->env, &options, kube_peer_transport_new, &world->kube, &error),
		      VD_OK);
	assert_status(
		vd_store_open_kube(world->kube, &kube_pods, NULL, "/registry/pods/", &world->store, &error),
		VD_OK);
}

void kube_world_open_preempted(struct kube_world *world, uint64_t seed, unsigned preemptions)
{
	memset(world, 0, sizeof *world);
	assert_status(vdi_env_new_sim(seed, print_log, world, &world->env), VD_OK);
	assert_status(vdi_sim_set_preemptions(world->env, preemptions), VD_OK);
	vdi_sim_set_stalls(world->env, preemptions ? VD_MS(200) : VD_MS(0));
	world->peer = kube_peer_new(world->env, seed);
	kube_peer_add_resource(world->peer, "", "v1", "pods", "Pod", true);
	world->codec = pod_codec_new();
	open_client(world, 0);
}

void kube_world_reopen(struct kube_world *world, uint64_t source_bytes_max)
{
	world->store = vd_store_close_wait(world->store);
	world->kube = vd_kube_close_wait(world->kube);
	open_client(world, source_bytes_max);
}

void kube_world_open(struct kube_world *world, uint64_t seed)
{
	kube_world_open_preempted(world, seed, 0);
}

void kube_world_open_cacher(struct kube_world *world)
{
	struct vd_cacher_options options = VD_CACHER_OPTIONS_INIT;
	struct vd_error		 error;

	options.resource = "pods";
	options.key_prefix = "/registry/pods/";
	options.codec = world->codec;
	assert_status(vd_cacher_new(world->env, world->store, &options, &world->cacher, &error), VD_OK);
}

void kube_world_close(struct kube_world *world)
{
	if (world->cacher)
		world->cacher = vd_cacher_close_wait(world->cacher);
	world->store = vd_store_close_wait(world->store);
	world->kube = vd_kube_close_wait(world->kube);
	kube_peer_free(world->peer);
	world->codec = vd_codec_free(world->codec);
	world->env = vd_env_free(world->env);
}

static bool is_ready(void *arg)
{
	struct kube_world *world = arg;

	return vd_cacher_ready(world->cacher, NULL) == VD_OK;
}

void kube_world_settle(struct kube_world *world)
{
	assert_true(vdi_sim_run_until(world->env, is_ready, world, VD_SECONDS(600)));
}

/* Compares the cache with the peer. */
bool kube_world_is_equal(struct kube_world *world)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	struct vd_list	      *list;
	struct vd_error	       error;
	struct vd_object      *object;
	size_t		       count = 0;
	bool		       equal;

	options.revision = VD_REVISION_ANY;
	assert_status(vd_cacher_list_wait(world->cacher, &options, &list, &error), VD_OK);
	equal = true;
	while ((object = vd_list_next(list)) != NULL) {
		char space[64], name[128];

		count++;
		snprintf(space, sizeof space, "%.*s", (int) vd_object_namespace(object).size,
			 (const char *) vd_object_namespace(object).data);
		snprintf(name, sizeof name, "%.*s", (int) vd_object_name(object).size,
			 (const char *) vd_object_name(object).data);
		equal &= kube_peer_find(world->peer, "pods", space, name) == vd_object_revision(object);
	}
	equal &= count == kube_peer_count(world->peer, "pods");
	list = vd_list_free(list);
	return equal;
}

void kube_answer_range(void *arg, vd_status status, const struct vd_range_result *result,
		       const struct vd_error *error)
{
	struct kube_answer *answer = arg;

	assert_false(answer->came);
	answer->came = true;
	answer->status = status;
	if (result) {
		answer->revision = result->store_revision;
		answer->count = result->kv_count;
		answer->total = result->count;
		answer->more = result->more;
		if (result->kv_count)
			snprintf(answer->last, sizeof answer->last, "%.*s",
				 (int) result->kvs[result->kv_count - 1]->key_size,
				 result->kvs[result->kv_count - 1]->data);
	} else {
		answer->error = *error;
	}
}

bool kube_answer_has_come(void *arg)
{
	return ((struct kube_answer *) arg)->came;
}

struct kube_answer kube_world_range(struct kube_world *world, const char *key, size_t key_size,
				    const char *end, vd_rev revision, int64_t limit)
{
	struct kube_answer	answer = { 0 };
	struct vd_range_request request = {
		.key = { key, key_size }, .range_end = vd_bytes_of(end), .revision = revision, .limit = limit
	};

	assert_status(vd_store_range(world->store, &request, kube_answer_range, &answer), VD_OK);
	assert_true(vdi_sim_run_until(world->env, kube_answer_has_come, &answer, VD_SECONDS(120)));
	return answer;
}

static void on_txn(void *arg, vd_status status, const struct vd_txn_result *result,
		   const struct vd_error *error)
{
	struct kube_answer *answer = arg;

	answer->came = true;
	answer->status = status;
	if (result) {
		answer->revision = result->revision;
		answer->succeeded = result->succeeded;
		if (!result->succeeded && result->result_count)
			answer->total = result->results[0].range.count;
		if (!result->succeeded && result->result_count && result->results[0].range.kv_count)
			snprintf(answer->last, sizeof answer->last, "%.*s",
				 (int) result->results[0].range.kvs[0]->value_size,
				 result->results[0].range.kvs[0]->data +
					 result->results[0].range.kvs[0]->key_size);
	} else {
		answer->error = *error;
	}
}

vd_status kube_world_begin_txn(struct kube_world *world, const struct vd_txn_request *request,
			       struct kube_answer *answer)
{
	return vd_store_txn(world->store, request, on_txn, answer);
}

struct kube_answer kube_world_txn(struct kube_world *world, const char *key, vd_rev expected,
				  const char *value)
{
	struct kube_answer answer = { 0 };
	struct vd_compare  compare = { .target = VD_COMPARE_MOD,
				       .result = VD_COMPARE_EQUAL,
				       .key = vd_bytes_of(key),
				       .number = expected };
	struct vd_op	   op = { .kind = value ? VD_OP_PUT : VD_OP_DELETE,
				  .key = vd_bytes_of(key),
				  .value = vd_bytes_of(value) };
	struct vd_op	   other = { .kind = VD_OP_RANGE, .range = { .key = vd_bytes_of(key), .limit = 1 } };
	struct vd_txn_request request = { .compares = &compare,
					  .compare_count = expected >= 0,
					  .success = &op,
					  .success_count = 1,
					  .failure = &other,
					  .failure_count = expected >= 0 };

	assert_status(kube_world_begin_txn(world, &request, &answer), VD_OK);
	assert_true(vdi_sim_run_until(world->env, kube_answer_has_come, &answer, VD_SECONDS(120)));
	return answer;
}
