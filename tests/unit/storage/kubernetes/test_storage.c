/* Unit tests of storage/kubernetes/storage.c: Kubernetes' operations over the embedded store, under the
 * simulator. */
#include "vdtest.h"

#include <vedette/encryption.h>

#include "actor_sim.h"
#include "storage.h"
#include "store_chaos.h"

struct world {
	struct vd_env	   *env;
	struct vd_store	   *store;
	struct vd_codec	   *codec;
	struct vdi_storage *storage;
};

/* What a call answered. */
struct answer {
	bool		done;
	unsigned	calls;
	vd_status	status;
	vd_rev		revision; /* as given to the callback */
	vd_rev		object_revision;
	char		value[512];
	struct vd_error error;
};

static struct world world_new(uint64_t seed)
{
	struct vd_mvcc_options	   store_options = VD_MVCC_OPTIONS_INIT;
	struct vdi_storage_options options = { .resource = "pods", .key_prefix = "/registry/pods/" };
	struct world		   world = { 0 };

	assert_status(vdi_env_new_sim(seed, NULL, NULL, &world.env), VD_OK);
	assert_status(vd_store_open_mvcc(world.env, &store_options, &world.store, NULL), VD_OK);
	assert_status(vd_codec_json_new(NULL, 0, &world.codec, NULL), VD_OK);
	options.codec = world.codec;
	assert_status(vdi_storage_new(world.env, world.store, &options, &world.storage, NULL), VD_OK);
	return world;
}

static void world_free(struct world *world)
{
	vdi_storage_free(world->storage);
	vd_store_close_wait(world->store);
	vd_codec_free(world->codec);
	vd_env_free(world->env);
}

static void on_object(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
		      const struct vd_error *error)
{
	struct answer  *answer = arg;
	struct vd_bytes value;

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
	}
	/* Whatever fails says so twice, and why. */
	assert_true(status == VD_OK || (error && error->code == status && error->message[0]));
	if (error)
		answer->error = *error;
}

static bool is_true(void *arg)
{
	return *(bool *) arg;
}

static bool is_done(void *arg)
{
	return ((struct answer *) arg)->done;
}

static void settle(struct world *world, struct answer *answer)
{
	assert_true(vdi_sim_run_until(world->env, is_done, answer, VD_SECONDS(60)));
	vdi_sim_run_until_idle(world->env);
	assert_int_equal(answer->calls, 1);
}

static const struct vd_bytes key_a = { "/registry/pods/ns/a", 19 };

static struct answer create(struct world *world, const char *value, int64_t ttl_s)
{
	struct answer answer = { 0 };

	assert_status(
		vdi_storage_create(world->storage, key_a, vd_bytes_of(value), ttl_s, on_object, &answer),
		VD_OK);
	settle(world, &answer);
	return answer;
}

static struct answer get(struct world *world, vd_rev minimum)
{
	struct answer answer = { 0 };

	assert_status(vdi_storage_get(world->storage, key_a, minimum, on_object, &answer), VD_OK);
	settle(world, &answer);
	return answer;
}

#define NAMED(name, uid, x)                                                                                  \
	"{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ns\",\"uid\":\"" uid "\"},\"x\":" #x "}"
#define VALUE(uid, x) NAMED("a", uid, x)

/* rules, T-001, T-003 */
static void r128_create(void **state)
{
	struct world  world = world_new(1);
	struct answer answer;

	(void) state;
	answer = create(&world, "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"7\"}}", 0);
	assert_status(answer.status, VD_REVISION_ON_CREATE);
	assert_string_equal(answer.error.message,
			    "resourceVersion should not be set on objects to be created");
	answer = create(&world, VALUE("u", 1), 0);
	assert_status(answer.status, VD_OK);
	assert_int_equal(answer.revision, 2);
	assert_int_equal(answer.object_revision, 2);
	assert_string_equal(answer.value, VALUE("u", 1));
	answer = create(&world, VALUE("u", 2), 0);
	assert_status(answer.status, VD_EXISTS);
	assert_non_null(
		strstr(answer.error.message, "StorageError: key exists, Code: 2, Key: /registry/pods/ns/a"));
	answer = create(&world, "not json", 0);
	assert_status(answer.status, VD_BAD_REQUEST);
	world_free(&world);
}

/* A create that holds only while another object is as it was when it was looked at. */
/* An object whose names are not those of its key is refused; of long names people see a part. */
static void an_object_of_another_key_is_refused(void **state)
{
	static const char long_form[] = "metadata.namespace \"%.63s\" and metadata.name \"%.100s\" of the "
					"object do not belong to its key /registry/pods/ns/a";
	struct world	  world = world_new(16);
	char		  names[301], value[1024], expected[512];
	struct answer	  answer;

	(void) state;
	answer = create(&world, NAMED("b", "u", 1), 0);
	assert_status(answer.status, VD_INVALID_ARGUMENT);
	assert_string_equal(answer.error.message, "metadata.namespace \"ns\" and metadata.name \"b\" of the "
						  "object do not belong to its key /registry/pods/ns/a");
	answer = create(&world, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"other\"}}", 0);
	assert_status(answer.status, VD_INVALID_ARGUMENT);
	for (size_t i = 0; i < sizeof names; i++)
		names[i] = (char) ('a' + i % 26);
	snprintf(value, sizeof value, "{\"metadata\":{\"name\":\"%.101s\",\"namespace\":\"%.64s\"}}", names,
		 names);
	answer = create(&world, value, 0);
	assert_status(answer.status, VD_INVALID_ARGUMENT);
	snprintf(expected, sizeof expected, long_form, names, names);
	assert_string_equal(answer.error.message, expected);
	assert_status(get(&world, 0).status, VD_NOT_FOUND);
	world_free(&world);
}

static void r128_create_beside_a_guard(void **state)
{
	static const struct vd_bytes guard_key = { "/registry/pods/ns/guard", 23 };
	struct world		     world = world_new(1);
	struct vd_kv		    *kv = NULL;
	struct vd_object	    *guard = NULL;
	struct answer		     answer = { 0 };

	(void) state;
	assert_status(vdi_storage_create(world.storage, guard_key, vd_bytes_of(NAMED("guard", "g", 1)), 0,
					 on_object, &answer),
		      VD_OK);
	settle(&world, &answer);
	assert_status(vd_kv_new(guard_key, vd_bytes_of(NAMED("guard", "g", 1)), &kv), VD_OK);
	kv->mod_rev = answer.revision;
	assert_status(vd_object_new(world.codec, kv, &guard, NULL), VD_OK);
	for (int round = 0; round < 4; round++) {
		static const vd_status expected[] = { VD_OK, VD_EXISTS, VD_EXISTS, VD_CONFLICT };

		if (round == 2) { /* the guard changes: what exists is still said first */
			memset(&answer, 0, sizeof answer);
			assert_status(vdi_storage_delete(world.storage, guard_key, NULL, NULL, NULL,
							 on_object, &answer),
				      VD_OK);
			settle(&world, &answer);
			assert_status(answer.status, VD_OK);
		}
		if (round == 3) {
			memset(&answer, 0, sizeof answer);
			assert_status(vdi_storage_delete(world.storage, key_a, NULL, NULL, NULL, on_object,
							 &answer),
				      VD_OK);
			settle(&world, &answer);
		}
		memset(&answer, 0, sizeof answer);
		assert_status(vdi_storage_create_beside(world.storage, guard, key_a,
							vd_bytes_of(VALUE("u", 1)), 0, on_object, &answer),
			      VD_OK);
		settle(&world, &answer);
		assert_status(answer.status, expected[round]);
	}
	assert_status(get(&world, 0).status, VD_NOT_FOUND);
	vd_object_unref(guard);
	vd_kv_unref(kv);
	world_free(&world);
}

/* rules: R-113, T-004 */
static void r127_get(void **state)
{
	struct world  world = world_new(2);
	struct answer answer = get(&world, 0);

	(void) state;
	assert_status(answer.status, VD_NOT_FOUND);
	/* The revision is checked before the key is missed. */
	answer = get(&world, 50);
	assert_status(answer.status, VD_TOO_LARGE_REVISION);
	assert_int_equal(answer.error.requested, 50);
	assert_int_equal(answer.error.current, 1);
	create(&world, VALUE("u", 1), 0);
	for (vd_rev least = 0; least <= 2; least++) { /* none, a past one, the current one */
		answer = get(&world, least);
		assert_status(answer.status, VD_OK);
		assert_int_equal(answer.object_revision, 2);
		assert_string_equal(answer.value, VALUE("u", 1));
	}
	world_free(&world);
}

/* Of several faults the first in this order is answered: the store's error, the revision, the missing key,
 * the bytes. */
static void r127_the_order_of_a_gets_checks(void **state)
{
	const struct chaos_options refuse = { .refuse = 1000 };
	struct world		   world = world_new(13);
	struct answer		   answer;

	(void) state;
	answer = get(&world, 0);
	assert_status(answer.status, VD_NOT_FOUND);
	assert_string_equal(answer.error.message,
			    "StorageError: key not found, Code: 1, Key: /registry/pods/ns/a, "
			    "ResourceVersion: 0, AdditionalErrorMsg: <nil>");
	/* The object's revision is the key's, not the store's. */
	create(&world, VALUE("u", 1), 0);
	assert_status(vd_store_put_wait(world.store, vd_bytes_of("/registry/pods/ns/b"),
					vd_bytes_of(NAMED("b", "v", 1)), NULL, NULL),
		      VD_OK);
	answer = get(&world, 3);
	assert_status(answer.status, VD_OK);
	assert_int_equal(answer.object_revision, 2);
	assert_int_equal(answer.revision, 3);
	/* Bytes that are no object: decoded last. */
	assert_status(vd_store_put_wait(world.store, key_a, vd_bytes_of("no object"), NULL, NULL), VD_OK);
	answer = get(&world, 5);
	assert_status(answer.status, VD_TOO_LARGE_REVISION);
	answer = get(&world, 4);
	assert_status(answer.status, VD_UNDECODABLE);
	assert_non_null(strstr(answer.error.message, "object not decodable revision=4"));
	{
		struct vdi_storage_options options = { .resource = "pods",
						       .key_prefix = "/registry/pods/",
						       .codec = world.codec };
		struct vdi_storage	  *calm = world.storage;
		struct vd_store		  *chaos = chaos_store_new(world.env, world.store, &refuse);

		assert_status(vdi_storage_new(world.env, chaos, &options, &world.storage, NULL), VD_OK);
		assert_status(get(&world, 5).status, VD_UNAVAILABLE);
		vdi_storage_free(world.storage);
		world.storage = calm;
		chaos_store_free(chaos);
	}
	world_free(&world);
}

/* ---- GuaranteedUpdate ---- */

struct change {
	struct answer answer; /* first: arg of both callbacks */
	struct world *world;
	const char   *value;
	int64_t	      ttl_s;
	unsigned      calls;
	bool	      saw_missing;
	unsigned      fail_below_call;
	vd_status     fail_with;
	unsigned      interfere; /* calls during which somebody else writes first */
};

static void ignore_txn(void *arg, vd_status status, const struct vd_txn_result *result,
		       const struct vd_error *error)
{
	(void) arg;
	(void) result;
	(void) error;
	assert_status(status, VD_OK);
}

static vd_status on_update(void *arg, struct vd_object *current, struct vd_bytes *ret_value,
			   int64_t *ret_ttl_s, struct vd_error *reterr)
{
	struct change *change = arg;

	change->calls++;
	change->saw_missing = current == NULL;
	if (change->calls <= change->fail_below_call)
		return vd_error_set(reterr, change->fail_with, "no");
	if (change->interfere) {
		struct vd_op op = { .kind = VD_OP_PUT, .key = key_a, .value = vd_bytes_of(VALUE("u", 99)) };
		struct vd_txn_request txn = { .success = &op, .success_count = 1 };

		change->interfere--;
		assert_status(vd_store_txn(change->world->store, &txn, ignore_txn, NULL), VD_OK);
	}
	*ret_value = vd_bytes_of(change->value);
	*ret_ttl_s = change->ttl_s;
	return VD_OK;
}

static void update(struct world *world, struct change *change, bool create_missing,
		   const struct vd_preconditions *preconditions, struct vd_object *suggestion)
{
	memset(&change->answer, 0, sizeof change->answer);
	change->world = world;
	change->calls = 0;
	assert_status(vdi_storage_update(world->storage, key_a, create_missing, preconditions, suggestion,
					 on_update, on_object, change),
		      VD_OK);
	settle(world, &change->answer);
}

/* The present state as an object of our own. */
static struct vd_object *look(struct world *world)
{
	struct vd_kv	 *kv = NULL;
	struct vd_object *object = NULL;

	assert_status(vd_store_get_wait(world->store, key_a, &kv, NULL), VD_OK);
	assert_status(vd_object_new(world->codec, kv, &object, NULL), VD_OK);
	vd_kv_unref(kv);
	return object;
}

/* rules: R-134, T-031 */
static void r131_update(void **state)
{
	struct world  world = world_new(3);
	struct change change = { .value = VALUE("u", 1) };

	(void) state;
	update(&world, &change, false, NULL, NULL);
	assert_status(change.answer.status, VD_NOT_FOUND);
	assert_int_equal(change.calls, 0);
	update(&world, &change, true, NULL, NULL); /* */
	assert_status(change.answer.status, VD_OK);
	assert_true(change.saw_missing);
	assert_int_equal(change.answer.revision, 2);
	change.value = VALUE("u", 2);
	update(&world, &change, false, NULL, NULL);
	assert_status(change.answer.status, VD_OK);
	assert_int_equal(change.answer.object_revision, 3);
	change.value = "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"3\",\"namespace\":\"ns\",\"uid\":"
		       "\"u\"},\"x\":5}";
	update(&world, &change, false, NULL, NULL);
	assert_string_equal(change.answer.value, VALUE("u", 5)); /* */
	change.fail_below_call = 10;
	change.fail_with = VD_INVALID;
	update(&world, &change, false, NULL, NULL);
	assert_status(change.answer.status, VD_INVALID);
	assert_string_equal(change.answer.error.message, "no");
	assert_int_equal(change.calls, 1);
	world_free(&world);
}

/* The write is that of a create: another writer that was first is seen, and not overwritten unseen. */
static void r134_a_missing_key_is_created_once(void **state)
{
	struct world  world = world_new(15);
	struct change change = { .value = VALUE("u", 2), .interfere = 1 };

	(void) state;
	update(&world, &change, true, NULL, NULL);
	assert_status(change.answer.status, VD_OK);
	assert_int_equal(change.calls, 2);
	assert_false(change.saw_missing);
	assert_int_equal(change.answer.object_revision, 3);
	world_free(&world);
}

/* rules: R-106, T-031, T-033 */
static void r135_equal_bytes_write_nothing(void **state)
{
	struct world	  world = world_new(4);
	struct change	  change = { .value = VALUE("u", 1) };
	struct vd_object *suggestion;

	(void) state;
	create(&world, VALUE("u", 1), 0);
	update(&world, &change, false, NULL, NULL);
	assert_status(change.answer.status, VD_OK);
	assert_int_equal(change.answer.object_revision, 2);
	assert_int_equal(change.answer.revision, 2);
	assert_int_equal(get(&world, 0).revision, 2);
	/* What is never stored is no difference. */
	change.value = "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"2\",\"namespace\":\"ns\",\"uid\":"
		       "\"u\"},\"x\":1}";
	update(&world, &change, false, NULL, NULL);
	assert_status(change.answer.status, VD_OK);
	assert_int_equal(change.answer.object_revision, 2);
	assert_int_equal(get(&world, 0).revision, 2);
	change.value = "{\"metadata\":{\"name\":\"a\",\"selfLink\":\"/"
		       "x\",\"namespace\":\"ns\",\"uid\":\"u\"},\"x\":1}";
	update(&world, &change, false, NULL, NULL);
	assert_status(change.answer.status, VD_OK);
	assert_int_equal(get(&world, 0).revision, 2);
	/* Equal only to a stale suggestion: read again, then write (T-033). */
	suggestion = look(&world);
	change.value = VALUE("u", 2);
	update(&world, &change, false, NULL, NULL);
	change.value = VALUE("u", 1);
	update(&world, &change, false, NULL, suggestion);
	assert_int_equal(change.answer.object_revision, 4);
	assert_int_equal(change.calls, 2);
	vd_object_unref(suggestion);
	world_free(&world);
}

/* A value that the store calls stale is written again by an update that changes nothing, once.
 * rules: T-031 */
static void r135_a_stale_value_is_written_again(void **state)
{
	static const struct vd_encryption_key  keys[] = { { { "k", 1 }, { "0123456789abcdef", 16 } } };
	static const struct vd_encryption_rule rule = { .keys = keys, .key_count = 1, .reads_plain = true };

	(void) state;
	for (unsigned suggests = 0; suggests < 2; suggests++) {
		struct vdi_storage_options options = { .resource = "pods", .key_prefix = "/registry/pods/" };
		struct world		   world = world_new(14);
		struct change		   change = { .value = VALUE("u", 1) };
		struct vd_object	  *suggestion;

		create(&world, VALUE("u", 1), 0);
		vdi_storage_free(world.storage);
		assert_status(vd_store_open_encrypted(world.env, world.store, &rule, 1, &world.store, NULL),
			      VD_OK);
		options.codec = world.codec;
		assert_status(vdi_storage_new(world.env, world.store, &options, &world.storage, NULL), VD_OK);
		suggestion = look(&world);
		update(&world, &change, false, NULL, suggests ? suggestion : NULL);
		assert_status(change.answer.status, VD_OK);
		assert_int_equal(change.answer.object_revision, 3);
		assert_string_equal(change.answer.value, VALUE("u", 1));
		vd_object_unref(suggestion);
		update(&world, &change, false, NULL, NULL);
		assert_status(change.answer.status, VD_OK);
		assert_int_equal(change.answer.object_revision, 3);
		world_free(&world);
	}
}

/* rules: T-034 */
static void r136_conflict_is_tried_again(void **state)
{
	struct world  world = world_new(5);
	struct change change = { .value = VALUE("u", 2), .interfere = 3 };

	(void) state;
	create(&world, VALUE("u", 1), 0);
	update(&world, &change, false, NULL, NULL);
	assert_status(change.answer.status, VD_OK);
	assert_int_equal(change.calls, 4);
	assert_string_equal(get(&world, 0).value, VALUE("u", 2));
	world_free(&world);
}

static vd_status add_one(void *arg, struct vd_object *current, struct vd_bytes *ret_value, int64_t *ret_ttl_s,
			 struct vd_error *reterr)
{
	static const char *const values[] = { VALUE("u", 1), VALUE("u", 2), VALUE("u", 3) };
	struct change		*change = arg;
	struct vd_bytes		 value = vd_kv_value(vd_object_kv(current));
	size_t			 next = (size_t) (((const char *) value.data)[value.size - 2] - '0');

	(void) reterr;
	change->calls++;
	assert_in_range(next, 1, 2);
	*ret_value = vd_bytes_of(values[next]);
	*ret_ttl_s = 0;
	return VD_OK;
}

/* Two updates of one object that both began with the same state: one of them is tried again, and both take
 * effect. */
static void t034_both_of_two_updates_take_effect(void **state)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct world  world = world_new(seed);
		struct change changes[2] = { 0 };

		(void) state;
		create(&world, VALUE("u", 1), 0);
		for (size_t i = 0; i < 2; i++)
			assert_status(vdi_storage_update(world.storage, key_a, false, NULL, NULL, add_one,
							 on_object, &changes[i]),
				      VD_OK);
		for (size_t i = 0; i < 2; i++) {
			settle(&world, &changes[i].answer);
			assert_status(changes[i].answer.status, VD_OK);
		}
		assert_int_equal(changes[0].calls + changes[1].calls, 3);
		assert_string_equal(get(&world, 0).value, VALUE("u", 3));
		world_free(&world);
	}
}

/* rules: T-035 */
static void r131_verdict_on_a_stale_suggestion_is_not_final(void **state)
{
	struct world  world = world_new(6);
	struct change change = { .value = VALUE("u", 3), .fail_below_call = 1, .fail_with = VD_INVALID };
	struct vd_preconditions before = { .revision = { "2", 1 } }, now = { .revision = { "4", 1 } };
	struct vd_object       *suggestion;

	(void) state;
	create(&world, VALUE("u", 1), 0);
	suggestion = look(&world);
	/* Not stale: the first error stands. */
	update(&world, &change, false, NULL, suggestion);
	assert_status(change.answer.status, VD_INVALID);
	assert_int_equal(change.calls, 1);
	/* Stale: the second call sees the fresh state. */
	change.fail_below_call = 0;
	change.value = VALUE("u", 2);
	update(&world, &change, false, NULL, NULL);
	change.fail_below_call = 1;
	change.value = VALUE("u", 3);
	update(&world, &change, false, NULL, suggestion);
	assert_status(change.answer.status, VD_OK);
	assert_int_equal(change.calls, 2);
	/* So for preconditions: one that holds now, and one that holds for the suggestion only. */
	change.fail_below_call = 0;
	change.value = VALUE("u", 4);
	update(&world, &change, false, &now, suggestion);
	assert_status(change.answer.status, VD_OK);
	assert_int_equal(change.answer.object_revision, 5);
	assert_int_equal(change.calls, 1);
	update(&world, &change, false, &before, suggestion);
	assert_status(change.answer.status, VD_PRECONDITION);
	assert_non_null(strstr(change.answer.error.message, "ResourceVersion in object meta: 5"));
	vd_object_unref(suggestion);
	world_free(&world);
}

/* rules: T-031 */
static void r126_preconditions(void **state)
{
	struct world		world = world_new(7);
	struct change		change = { .value = VALUE("u", 2) };
	struct vd_preconditions wrong_uid = { .uid = { "other", 5 } },
				right = { .uid = { "u", 1 }, .revision = { "2", 1 } };
	struct vd_preconditions wrong_revision = { .revision = { "02", 2 } };

	(void) state;
	create(&world, VALUE("u", 1), 0);
	update(&world, &change, false, &wrong_uid, NULL);
	assert_status(change.answer.status, VD_PRECONDITION);
	assert_string_equal(change.answer.error.message,
			    "StorageError: invalid object, Code: 4, Key: /registry/pods/ns/a, "
			    "ResourceVersion: 0, AdditionalErrorMsg: "
			    "Precondition failed: UID in precondition: other, UID in object meta: u");
	update(&world, &change, false, &wrong_revision, NULL); /* compared as text */
	assert_status(change.answer.status, VD_PRECONDITION);
	assert_string_equal(change.answer.error.message,
			    "StorageError: invalid object, Code: 4, Key: /registry/pods/ns/a, "
			    "ResourceVersion: 0, AdditionalErrorMsg: "
			    "Precondition failed: ResourceVersion in precondition: 02, ResourceVersion in "
			    "object meta: 2");
	wrong_revision.uid = wrong_uid.uid; /* the first that fails is told */
	update(&world, &change, false, &wrong_revision, NULL);
	assert_non_null(strstr(change.answer.error.message, "UID in precondition: other"));
	update(&world, &change, false, &right, NULL);
	assert_status(change.answer.status, VD_OK);
	world_free(&world);
}

/* rules: T-002, T-032 */
static void r133_an_update_without_ttl_removes_the_lease(void **state)
{
	struct world  world = world_new(8);
	struct change change = { .value = VALUE("u", 2), .ttl_s = 30 };

	(void) state;
	create(&world, VALUE("u", 1), 10);
	vdi_sim_advance(world.env, VD_SECONDS(5));
	assert_status(get(&world, 0).status, VD_OK);
	vdi_sim_advance(world.env, VD_SECONDS(10));
	assert_status(get(&world, 0).status, VD_NOT_FOUND); /* T-002 */
	create(&world, VALUE("u", 1), 10);
	update(&world, &change, false, NULL, NULL); /* T-032 */
	vdi_sim_advance(world.env, VD_SECONDS(20));
	assert_status(get(&world, 0).status, VD_OK);
	change.ttl_s = 0;
	update(&world, &change, false, NULL, NULL); /* equal bytes, but the lease goes */
	vdi_sim_advance(world.env, VD_SECONDS(100));
	assert_status(get(&world, 0).status, VD_OK);
	world_free(&world);
}

/* The lease under which an object was created that lives for ttl_s. */
static int64_t lease_of_new(struct world *world, const char *name, int64_t ttl_s)
{
	char	      key[64], value[128];
	struct answer answer = { 0 };
	struct vd_kv *kv = NULL;
	int64_t	      lease;

	snprintf(key, sizeof key, "/registry/pods/ns/%s", name);
	snprintf(value, sizeof value, NAMED("%s", "u", 1), name);
	assert_status(vdi_storage_create(world->storage, vd_bytes_of(key), vd_bytes_of(value), ttl_s,
					 on_object, &answer),
		      VD_OK);
	settle(world, &answer);
	assert_status(answer.status, VD_OK);
	assert_status(vd_store_get_wait(world->store, vd_bytes_of(key), &kv, NULL), VD_OK);
	lease = kv->lease;
	vd_kv_unref(kv);
	return lease;
}

static void note_ttl(void *arg, vd_status status, const struct vd_lease_result *result,
		     const struct vd_error *error)
{
	(void) error;
	assert_status(status, VD_OK);
	*(int64_t *) arg = result->granted_ttl_s;
}

/* As it was granted. */
static int64_t lease_ttl(struct world *world, int64_t lease)
{
	int64_t ttl_s = 0;

	assert_status(vd_store_lease_time_to_live(world->store, lease, false, note_ttl, &ttl_s), VD_OK);
	vdi_sim_run_until_idle(world->env);
	return ttl_s;
}

/* T-085. rules: T-085 */
static void r146_a_lease_serves_a_thousand_objects_of_one_age(void **state)
{
	struct world world = world_new(21);
	int64_t	     first = lease_of_new(&world, "a", 1000), second, short_lived;
	char	     name[16];

	assert_int_equal(lease_of_new(&world, "b", 1000), first);
	vdi_sim_advance(world.env, VD_SECONDS(49));
	assert_int_equal(lease_of_new(&world, "c", 1000), first);
	/* The 5 % are used up. */
	vdi_sim_advance(world.env, VD_SECONDS(1));
	second = lease_of_new(&world, "d", 1000);
	assert_int_not_equal(second, first);
	/* Would live too long. */
	short_lived = lease_of_new(&world, "e", 100);
	assert_int_not_equal(short_lived, second);
	for (int i = 1; i < 1000; i++) {
		snprintf(name, sizeof name, "n%d", i);
		assert_int_equal(lease_of_new(&world, name, 100), short_lived);
	}
	assert_int_not_equal(lease_of_new(&world, "f", 100), short_lived);
	/* 5 % of a long life are more than the 60 s that it may be longer. */
	first = lease_of_new(&world, "long", 5000);
	assert_int_equal(lease_ttl(&world, first), 5060);
	vdi_sim_advance(world.env, VD_SECONDS(59));
	assert_int_equal(lease_of_new(&world, "longer", 5000), first);
	vdi_sim_advance(world.env, VD_SECONDS(1));
	assert_int_not_equal(lease_of_new(&world, "longest", 5000), first);
	world_free(&world);
}

/* The wall clock may jump; the store's leases do not. */
static void r146_a_jump_of_the_wall_clock_changes_nothing(void **state)
{
	struct world world = world_new(22);
	int64_t	     first = lease_of_new(&world, "a", 1000);

	vdi_sim_jump_wall(world.env, VD_SECONDS(-3600));
	assert_int_equal(lease_of_new(&world, "b", 1000), first);
	vdi_sim_advance(world.env, VD_SECONDS(60));
	assert_int_not_equal(lease_of_new(&world, "c", 1000), first);
	world_free(&world);
}

/* Upstream holds a lock while it asks. */
static void r146_many_at_once_ask_for_one_lease(void **state)
{
	struct world  world = world_new(23);
	struct answer answers[20] = { 0 };
	int64_t	      lease = 0;
	char	      key[64], value[128];

	for (int i = 0; i < 20; i++) {
		snprintf(key, sizeof key, "/registry/pods/ns/%d", i);
		snprintf(value, sizeof value, NAMED("%d", "u", 1), i);
		assert_status(vdi_storage_create(world.storage, vd_bytes_of(key), vd_bytes_of(value), 600,
						 on_object, &answers[i]),
			      VD_OK);
	}
	for (int i = 0; i < 20; i++) {
		struct vd_kv *kv = NULL;

		settle(&world, &answers[i]);
		assert_status(answers[i].status, VD_OK);
		snprintf(key, sizeof key, "/registry/pods/ns/%d", i);
		assert_status(vd_store_get_wait(world.store, vd_bytes_of(key), &kv, NULL), VD_OK);
		assert_true(lease == 0 || lease == kv->lease);
		lease = kv->lease;
		vd_kv_unref(kv);
	}
	world_free(&world);
}

static void on_revoked(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	*(bool *) arg = status == VD_OK;
}

static void r146_a_lease_that_is_gone_is_replaced(void **state)
{
	struct world world = world_new(24);
	int64_t	     lease = lease_of_new(&world, "a", 1000);
	bool	     is_revoked = false;

	assert_status(vd_store_lease_revoke(world.store, lease, on_revoked, &is_revoked), VD_OK);
	assert_true(vdi_sim_run_until(world.env, is_true, &is_revoked, VD_SECONDS(1)));
	assert_int_not_equal(lease_of_new(&world, "b", 1000), lease);
	world_free(&world);
}

/* ---- Delete ---- */

struct removal {
	struct answer answer;
	unsigned      calls, refuse_below_call;
};

static vd_status on_validate(void *arg, struct vd_object *current, struct vd_error *reterr)
{
	struct removal *removal = arg;

	assert_non_null(current);
	removal->calls++;
	return removal->calls <= removal->refuse_below_call ? vd_error_set(reterr, VD_FORBIDDEN, "keep it") :
							      VD_OK;
}

static void remove_key(struct world *world, struct removal *removal,
		       const struct vd_preconditions *preconditions, struct vd_object *suggestion)
{
	memset(&removal->answer, 0, sizeof removal->answer);
	removal->calls = 0;
	assert_status(vdi_storage_delete(world->storage, key_a, preconditions, suggestion, on_validate,
					 on_object, removal),
		      VD_OK);
	settle(world, &removal->answer);
}

/* rules: R-130, T-005, T-006, T-008, T-010, T-011 */
static void r129_delete(void **state)
{
	struct world		world = world_new(9);
	struct removal		removal = { 0 };
	struct change		change = { .value = VALUE("u", 2) };
	struct vd_preconditions wrong = { .uid = { "other", 5 } };
	struct vd_object       *suggestion;

	(void) state;
	remove_key(&world, &removal, NULL, NULL);
	assert_status(removal.answer.status, VD_NOT_FOUND);
	create(&world, VALUE("u", 1), 0); /* 2 */
	suggestion = look(&world);
	remove_key(&world, &removal, &wrong, NULL);
	assert_status(removal.answer.status, VD_PRECONDITION);
	removal.refuse_below_call = 5;
	remove_key(&world, &removal, NULL, suggestion); /* the suggestion is current: its error stands */
	assert_status(removal.answer.status, VD_FORBIDDEN);
	assert_string_equal(removal.answer.error.message, "keep it");
	update(&world, &change, false, NULL, NULL); /* 3 */
	removal.refuse_below_call = 1;
	remove_key(&world, &removal, NULL, suggestion); /* stale: validated again */
	assert_status(removal.answer.status, VD_OK);
	assert_int_equal(removal.calls, 2);
	assert_int_equal(removal.answer.revision, 4); /* of the deletion */
	assert_string_equal(removal.answer.value, VALUE("u", 2));
	removal.refuse_below_call = 0;
	remove_key(&world, &removal, NULL, suggestion); /* of a gone object (T-010) */
	assert_status(removal.answer.status, VD_NOT_FOUND);
	vd_object_unref(suggestion);
	world_free(&world);
}

/* ---- Keys, pages, counts ---- */

/* rules, T-083 */
static void r107_keys(void **state)
{
	static const struct {
		const char *namespace_name, *name, *key;
	} rows[] = {
		{ "ns", "a", "/registry/pods/ns/a" },
		{ "", "a", "/registry/pods/a" },
		{ "ns", "", NULL },
		{ "ns", "..", NULL },
		{ "..", "a", NULL },
		{ ".", "a", NULL },
		{ "ns", "a/b", NULL },
		{ "n/s", "a", NULL },
		{ "ns", "..a", "/registry/pods/ns/..a" },
	};
	static const char *const bad_prefixes[] = { "", "/", "registry/", "/registry" };
	struct world		 world = world_new(10);
	char			 buffer[VDI_STORAGE_KEY_MAX];
	struct vd_bytes		 key;

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		vd_status status = vdi_storage_key(world.storage, vd_bytes_of(rows[i].namespace_name),
						   vd_bytes_of(rows[i].name), buffer, &key, NULL);

		assert_status(status, rows[i].key ? VD_OK : VD_INVALID_ARGUMENT);
		if (rows[i].key)
			assert_true(vd_bytes_equal(key, vd_bytes_of(rows[i].key)));
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(bad_prefixes); i++) { /* */
		struct vdi_storage_options options = { .resource = "pods",
						       .key_prefix = bad_prefixes[i],
						       .codec = world.codec };
		struct vdi_storage	  *storage = NULL;

		assert_status(vdi_storage_new(world.env, world.store, &options, &storage, NULL),
			      VD_INVALID_ARGUMENT);
	}
	/* Half of the room for keys is the prefix's. */
	for (size_t size = VDI_STORAGE_KEY_MAX / 2; size <= VDI_STORAGE_KEY_MAX / 2 + 1; size++) {
		char			   prefix[VDI_STORAGE_KEY_MAX];
		struct vdi_storage_options options = { .resource = "pods",
						       .key_prefix = prefix,
						       .codec = world.codec };
		struct vdi_storage	  *storage = NULL;

		memset(prefix, 'p', size);
		prefix[0] = prefix[size - 1] = '/';
		prefix[size] = 0;
		assert_status(vdi_storage_new(world.env, world.store, &options, &storage, NULL),
			      size > VDI_STORAGE_KEY_MAX / 2 ? VD_INVALID_ARGUMENT : VD_OK);
		if (storage)
			vdi_storage_free(storage);
	}
	world_free(&world);
}

struct page_answer {
	vd_status status;
	size_t	  count, missing;
	int64_t	  total;
	bool	  more;
	vd_rev	  revision;
	char	  why[512]; /* of what cannot be decoded */
};

static void on_page(void *arg, vd_status status, const struct vdi_storage_page *page,
		    const struct vd_error *error)
{
	struct page_answer *answer = arg;

	snprintf(answer->why, sizeof answer->why, "%s", error ? error->message : "");
	answer->status = status;
	if (page) {
		answer->count = page->object_count;
		answer->total = page->count;
		answer->more = page->more;
		answer->revision = page->revision;
		for (size_t i = 0; i < page->object_count; i++)
			answer->missing += page->objects[i] == NULL;
	}
}

static void on_revision(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	(void) error;
	assert_status(status, VD_OK);
	*(vd_rev *) arg = revision;
}

static void on_count(void *arg, vd_status status, int64_t count, const struct vd_error *error)
{
	(void) error;
	assert_status(status, VD_OK);
	*(int64_t *) arg = count;
}

/* rules */
static void r138_pages_counts_and_the_current_revision(void **state)
{
	struct world	   world = world_new(11);
	struct vd_bytes	   prefix = vd_bytes_of("/registry/pods/");
	struct page_answer page = { 0 };
	vd_rev		   revision = 0;
	int64_t		   count = 0;

	(void) state;
	for (int i = 0; i < 5; i++) {
		char key[64];

		snprintf(key, sizeof key, "/registry/pods/ns/%d", i);
		assert_status(vd_store_put_wait(world.store, vd_bytes_of(key),
						vd_bytes_of(i == 2 ? "junk" : "{\"metadata\":{}}"), NULL,
						NULL),
			      VD_OK);
	}
	assert_status(vd_store_put_wait(world.store, vd_bytes_of("/registry/podsx/a"), vd_bytes_of("{}"),
					NULL, NULL),
		      VD_OK);
	assert_status(vdi_storage_page(world.storage, prefix, VD_BYTES_NONE, 0, 3, on_page, &page), VD_OK);
	vdi_sim_run_until_idle(world.env);
	assert_status(page.status, VD_OK);
	assert_int_equal(page.count, 3);
	assert_int_equal(page.missing, 1); /* the undecodable one, reported */
	assert_true(page.why[0] && strstr(page.why, "encrypted") == NULL);
	assert_int_equal(page.total, 5);
	assert_true(page.more);
	assert_int_equal(page.revision, 7);
	memset(&page, 0, sizeof page);
	assert_status(vdi_storage_page(world.storage, prefix, vd_bytes_of("/registry/pods/ns/3"), 5, 0,
				       on_page, &page),
		      VD_OK);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(page.count, 1); /* at revision 5 there was only .../3 */
	assert_status(vdi_storage_current_revision(world.storage, on_revision, &revision), VD_OK);
	assert_status(vdi_storage_count(world.storage, on_count, &count), VD_OK);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(revision, 7);
	assert_int_equal(count, 5);
	/* Of several that cannot be decoded the first one says why. */
	assert_status(vd_store_put_wait(world.store, vd_bytes_of("/registry/pods/ns/1"),
					vd_bytes_of("k8s:enc:p:"), NULL, NULL),
		      VD_OK);
	memset(&page, 0, sizeof page);
	assert_status(vdi_storage_page(world.storage, prefix, VD_BYTES_NONE, 0, 0, on_page, &page), VD_OK);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(page.missing, 2);
	assert_non_null(strstr(page.why, "encrypted"));
	/* No prefix, or one that no key can have. */
	{
		static char	      prefix_bytes[VDI_STORAGE_KEY_MAX + 1];
		const struct vd_bytes too_long = { prefix_bytes, sizeof prefix_bytes };

		assert_status(
			vdi_storage_page(world.storage, VD_BYTES_NONE, VD_BYTES_NONE, 0, 0, on_page, &page),
			VD_INVALID_ARGUMENT);
		assert_status(vdi_storage_page(world.storage, too_long, VD_BYTES_NONE, 0, 0, on_page, &page),
			      VD_INVALID_ARGUMENT);
	}
	/* Without any it says nothing. */
	memset(&page, 0, sizeof page);
	assert_status(vdi_storage_page(world.storage, prefix, VD_BYTES_NONE, 3, 1, on_page, &page), VD_OK);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(page.count, 1);
	assert_string_equal(page.why, "");
	world_free(&world);
}

static void updates_survive_a_bad_line(void **state)
{
	(void) state;
	for (uint64_t seed = 1; seed <= 30; seed++) {
		struct world	     world = world_new(seed);
		struct chaos_options options = {
			.delay = 300, .delay_max = VD_MS(50), .refuse = 100, .lose_answer = 100
		};
		struct vd_store		  *chaos = chaos_store_new(world.env, world.store, &options);
		struct vdi_storage_options storage_options = { .resource = "pods",
							       .key_prefix = "/registry/pods/",
							       .codec = world.codec };
		struct vdi_storage	  *calm = world.storage;
		struct change		   change = { .value = VALUE("u", 2), .interfere = 1 };

		assert_status(vdi_storage_new(world.env, chaos, &storage_options, &world.storage, NULL),
			      VD_OK);
		for (int i = 0; i < 10; i++) {
			update(&world, &change, true, NULL, NULL);
			assert_true(change.answer.status == VD_OK || change.answer.status == VD_UNAVAILABLE);
			if (change.answer.status == VD_OK)
				assert_string_equal(change.answer.value, VALUE("u", 2));
		}
		vdi_storage_free(world.storage);
		world.storage = calm;
		chaos_store_free(chaos);
		world_free(&world);
	}
}

static void every_failed_allocation_is_reported(void **state)
{
	int64_t live = vdi_alloc_live();

	(void) state;
	for (uint64_t nth = 1;; nth++) {
		struct world  world = world_new(12);
		struct change change = { .value = VALUE("u", 2), .ttl_s = 5 };
		bool	      failed;

		create(&world, VALUE("u", 1), 0);
		change.world = &world;
		vdi_alloc_fail_nth(nth, 1);
		vd_status status = vdi_storage_update(world.storage, key_a, false, NULL, NULL, on_update,
						      on_object, &change);
		if (status == VD_OK)
			settle(&world, &change.answer);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		if (status == VD_OK)
			status = change.answer.status;
		assert_true(status == VD_OK || (failed && status == VD_NOMEM));
		assert_string_equal(get(&world, 0).value, status == VD_OK ? VALUE("u", 2) : VALUE("u", 1));
		world_free(&world);
		assert_int_equal(vdi_alloc_live(), live);
		if (!failed)
			break;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r128_create),
		cmocka_unit_test(an_object_of_another_key_is_refused),
		cmocka_unit_test(r128_create_beside_a_guard),
		cmocka_unit_test(r127_get),
		cmocka_unit_test(r127_the_order_of_a_gets_checks),
		cmocka_unit_test(r131_update),
		cmocka_unit_test(r134_a_missing_key_is_created_once),
		cmocka_unit_test(r135_equal_bytes_write_nothing),
		cmocka_unit_test(r135_a_stale_value_is_written_again),
		cmocka_unit_test(r136_conflict_is_tried_again),
		cmocka_unit_test(t034_both_of_two_updates_take_effect),
		cmocka_unit_test(r131_verdict_on_a_stale_suggestion_is_not_final),
		cmocka_unit_test(r126_preconditions),
		cmocka_unit_test(r133_an_update_without_ttl_removes_the_lease),
		cmocka_unit_test(r146_a_lease_serves_a_thousand_objects_of_one_age),
		cmocka_unit_test(r146_a_jump_of_the_wall_clock_changes_nothing),
		cmocka_unit_test(r146_many_at_once_ask_for_one_lease),
		cmocka_unit_test(r146_a_lease_that_is_gone_is_replaced),
		cmocka_unit_test(r129_delete),
		cmocka_unit_test(r107_keys),
		cmocka_unit_test(r138_pages_counts_and_the_current_revision),
		cmocka_unit_test(updates_survive_a_bad_line),
		cmocka_unit_test(every_failed_allocation_is_reported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
