#include "storage_world.h"

#include "actor_sim.h"

struct storage_world storage_world_new(uint64_t seed)
{
	struct vd_mvcc_options	   store_options = VD_MVCC_OPTIONS_INIT;
	struct vdi_storage_options options = { .resource = "pods", .key_prefix = "/registry/pods/" };
	struct storage_world	   world = { 0 };

	assert_status(vdi_env_new_sim(seed, NULL, NULL, &world.env), VD_OK);
	assert_status(vd_store_open_mvcc(world.env, &store_options, &world.store, NULL), VD_OK);
	assert_status(vd_codec_json_new(NULL, 0, &world.codec, NULL), VD_OK);
	options.codec = world.codec;
	assert_status(vdi_storage_new(world.env, world.store, &options, &world.storage, NULL), VD_OK);
	return world;
}

void storage_world_free(struct storage_world *world)
{
	vdi_storage_free(world->storage);
	vd_store_close_wait(world->store);
	vd_codec_free(world->codec);
	vd_env_free(world->env);
}

void storage_on_object(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
		       const struct vd_error *error)
{
	struct storage_answer *answer = arg;
	struct vd_bytes	       value;

	answer->done = true;
	answer->calls++;
	answer->status = status;
	answer->revision = revision;
	if (object) {
		value = vd_kv_value(vd_object_kv(object));
		assert_true(value.size < sizeof answer->value);
		memcpy(answer->value, value.data, value.size);
		answer->value[value.size] = 0;
		answer->object_revision = vd_object_revision(object);
		answer->create_revision = vd_object_kv(object)->create_rev;
		answer->version = vd_object_kv(object)->version;
		answer->lease = vd_object_kv(object)->lease;
	}
	/* A failed call reports its status twice, with a message. */
	assert_true(status == VD_OK || (error && error->code == status && error->message[0]));
	if (error)
		answer->error = *error;
}

static bool is_done(void *arg)
{
	return ((struct storage_answer *) arg)->done;
}

void storage_settle(struct storage_world *world, struct storage_answer *answer)
{
	assert_true(vdi_sim_run_until(world->env, is_done, answer, VD_SECONDS(60)));
	vdi_sim_run_until_idle(world->env);
	assert_int_equal(answer->calls, 1);
}

struct storage_answer storage_create(struct storage_world *world, const char *value, int64_t ttl_s)
{
	struct storage_answer answer = { 0 };

	assert_status(vdi_storage_create(world->storage, storage_key_a, vd_bytes_of(value), ttl_s,
					 storage_on_object, &answer),
		      VD_OK);
	storage_settle(world, &answer);
	return answer;
}

struct storage_answer storage_get(struct storage_world *world, vd_rev minimum)
{
	struct storage_answer answer = { 0 };

	assert_status(vdi_storage_get(world->storage, storage_key_a, minimum, storage_on_object, &answer),
		      VD_OK);
	storage_settle(world, &answer);
	return answer;
}

static void ignore_txn(void *arg, vd_status status, const struct vd_txn_result *result,
		       const struct vd_error *error)
{
	(void) arg;
	(void) result;
	(void) error;
	assert_status(status, VD_OK);
}

vd_status storage_on_update(void *arg, struct vd_object *current, struct vd_bytes *ret_value,
			    int64_t *ret_ttl_s, struct vd_error *reterr)
{
	struct storage_change *change = arg;

	change->calls++;
	change->saw_missing = current == NULL;
	if (change->calls <= change->fail_below_call)
		return vd_error_set(reterr, change->fail_with, "no");
	if (change->interfere) {
		struct vd_op	      op = { .kind = VD_OP_PUT,
					     .key = storage_key_a,
					     .value = vd_bytes_of(STORAGE_VALUE("u", 99)) };
		struct vd_txn_request txn = { .success = &op, .success_count = 1 };

		change->interfere--;
		assert_status(vd_store_txn(change->world->store, &txn, ignore_txn, NULL), VD_OK);
	}
	*ret_value = vd_bytes_of(change->value);
	*ret_ttl_s = change->ttl_s;
	return VD_OK;
}

void storage_update(struct storage_world *world, struct storage_change *change, bool create_missing,
		    const struct vd_preconditions *preconditions, struct vd_object *suggestion)
{
	memset(&change->answer, 0, sizeof change->answer);
	change->world = world;
	change->calls = 0;
	assert_status(vdi_storage_update(world->storage, storage_key_a, create_missing, preconditions,
					 suggestion, storage_on_update, storage_on_object, change),
		      VD_OK);
	storage_settle(world, &change->answer);
}

struct vd_object *storage_look(struct storage_world *world)
{
	struct vd_kv	 *kv = NULL;
	struct vd_object *object = NULL;

	assert_status(vd_store_get_wait(world->store, storage_key_a, &kv, NULL), VD_OK);
	assert_status(vd_object_new(world->codec, kv, &object, NULL), VD_OK);
	vd_kv_unref(kv);
	return object;
}
