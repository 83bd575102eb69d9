/* GuaranteedUpdate: stale suggestions, conflicts, preconditions. */
#include <vedette/encryption.h>

#include "storage.h"
#include "storage_world.h"
#include "store_chaos.h"
#include "vdtest.h"

/* rules: R-134, T-031 */
static void r131_update(void **state)
{
	struct storage_world  world = storage_world_new(3);
	struct storage_change change = { .value = STORAGE_VALUE("u", 1) };

	(void) state;
	storage_update(&world, &change, false, NULL, NULL);
	assert_status(change.answer.status, VD_NOT_FOUND);
	assert_int_equal(change.calls, 0);
	storage_update(&world, &change, true, NULL, NULL); /* */
	assert_status(change.answer.status, VD_OK);
	assert_true(change.saw_missing);
	assert_int_equal(change.answer.revision, 2);
	change.value = STORAGE_VALUE("u", 2);
	storage_update(&world, &change, false, NULL, NULL);
	assert_status(change.answer.status, VD_OK);
	assert_int_equal(change.answer.object_revision, 3);
	change.value = "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"3\",\"namespace\":\"ns\",\"uid\":"
		       "\"u\"},\"x\":5}";
	storage_update(&world, &change, false, NULL, NULL);
	assert_string_equal(change.answer.value, STORAGE_VALUE("u", 5)); /* */
	change.fail_below_call = 10;
	change.fail_with = VD_INVALID;
	storage_update(&world, &change, false, NULL, NULL);
	assert_status(change.answer.status, VD_INVALID);
	assert_string_equal(change.answer.error.message, "no");
	assert_int_equal(change.calls, 1);
	storage_world_free(&world);
}

/* The record in the store is the one that the answer describes. */
static void expect_stored(struct storage_world *world, const struct storage_answer *answer, vd_rev created,
			  int64_t version, bool has_lease)
{
	struct vd_kv *kv = NULL;

	assert_status(answer->status, VD_OK);
	assert_status(vd_store_get_wait(world->store, storage_key_a, &kv, NULL), VD_OK);
	assert_non_null(kv);
	assert_int_equal(kv->create_rev, created);
	assert_int_equal(kv->version, version);
	assert_int_equal(kv->lease != 0, has_lease);
	assert_int_equal(answer->object_revision, kv->mod_rev);
	assert_int_equal(answer->create_revision, kv->create_rev);
	assert_int_equal(answer->version, kv->version);
	assert_int_equal(answer->lease, kv->lease);
	assert_true(vd_bytes_equal(vd_kv_value(kv), vd_bytes_of(answer->value)));
	vd_kv_unref(kv);
}

static void an_answer_describes_the_record_as_it_is_stored(void **state)
{
	struct storage_world  world = storage_world_new(17);
	struct storage_change change = { .value = STORAGE_VALUE("u", 2) };
	struct storage_answer answer = storage_create(&world, STORAGE_VALUE("u", 1), 0), removed = { 0 };

	(void) state;
	expect_stored(&world, &answer, 2, 1, false);
	storage_update(&world, &change, false, NULL, NULL);
	expect_stored(&world, &change.answer, 2, 2, false);
	change.ttl_s = 100;
	change.value = STORAGE_VALUE("u", 3);
	storage_update(&world, &change, false, NULL, NULL);
	expect_stored(&world, &change.answer, 2, 3, true);
	answer = storage_get(&world, 0);
	expect_stored(&world, &answer, 2, 3, true);
	change.ttl_s = 0;
	storage_update(&world, &change, false, NULL, NULL);
	expect_stored(&world, &change.answer, 2, 4, false);
	/* After another writer. */
	change.value = STORAGE_VALUE("u", 5);
	change.interfere = 2;
	storage_update(&world, &change, false, NULL, NULL);
	expect_stored(&world, &change.answer, 2, 7, false);
	/* The next record of the key begins again. */
	assert_status(vdi_storage_delete(world.storage, storage_key_a, NULL, NULL, NULL, storage_on_object,
					 &removed),
		      VD_OK);
	storage_settle(&world, &removed);
	assert_status(removed.status, VD_OK);
	storage_update(&world, &change, true, NULL, NULL);
	expect_stored(&world, &change.answer, removed.revision + 1, 1, false);
	storage_world_free(&world);
}

/* The write is that of a create: another writer that was first is seen, and not overwritten unseen. */
static void r134_a_missing_key_is_created_once(void **state)
{
	struct storage_world  world = storage_world_new(15);
	struct storage_change change = { .value = STORAGE_VALUE("u", 2), .interfere = 1 };

	(void) state;
	storage_update(&world, &change, true, NULL, NULL);
	assert_status(change.answer.status, VD_OK);
	assert_int_equal(change.calls, 2);
	assert_false(change.saw_missing);
	assert_int_equal(change.answer.object_revision, 3);
	storage_world_free(&world);
}

/* rules: R-106, T-031, T-033 */
static void r135_equal_bytes_write_nothing(void **state)
{
	struct storage_world  world = storage_world_new(4);
	struct storage_change change = { .value = STORAGE_VALUE("u", 1) };
	struct vd_object     *suggestion;

	(void) state;
	storage_create(&world, STORAGE_VALUE("u", 1), 0);
	storage_update(&world, &change, false, NULL, NULL);
	assert_status(change.answer.status, VD_OK);
	assert_int_equal(change.answer.object_revision, 2);
	assert_int_equal(change.answer.revision, 2);
	assert_int_equal(storage_get(&world, 0).revision, 2);
	/* What is never stored is no difference. */
	change.value = "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"2\",\"namespace\":\"ns\",\"uid\":"
		       "\"u\"},\"x\":1}";
	storage_update(&world, &change, false, NULL, NULL);
	assert_status(change.answer.status, VD_OK);
	assert_int_equal(change.answer.object_revision, 2);
	assert_int_equal(storage_get(&world, 0).revision, 2);
	change.value = "{\"metadata\":{\"name\":\"a\",\"selfLink\":\"/"
		       "x\",\"namespace\":\"ns\",\"uid\":\"u\"},\"x\":1}";
	storage_update(&world, &change, false, NULL, NULL);
	assert_status(change.answer.status, VD_OK);
	assert_int_equal(storage_get(&world, 0).revision, 2);
	/* Equal only to a stale suggestion: read again, then write (T-033). */
	suggestion = storage_look(&world);
	change.value = STORAGE_VALUE("u", 2);
	storage_update(&world, &change, false, NULL, NULL);
	change.value = STORAGE_VALUE("u", 1);
	storage_update(&world, &change, false, NULL, suggestion);
	assert_int_equal(change.answer.object_revision, 4);
	assert_int_equal(change.calls, 2);
	vd_object_unref(suggestion);
	storage_world_free(&world);
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
		struct storage_world	   world = storage_world_new(14);
		struct storage_change	   change = { .value = STORAGE_VALUE("u", 1) };
		struct vd_object	  *suggestion;

		storage_create(&world, STORAGE_VALUE("u", 1), 0);
		vdi_storage_free(world.storage);
		assert_status(vd_store_open_encrypted(world.env, world.store, &rule, 1, &world.store, NULL),
			      VD_OK);
		options.codec = world.codec;
		assert_status(vdi_storage_new(world.env, world.store, &options, &world.storage, NULL), VD_OK);
		suggestion = storage_look(&world);
		storage_update(&world, &change, false, NULL, suggests ? suggestion : NULL);
		assert_status(change.answer.status, VD_OK);
		assert_int_equal(change.answer.object_revision, 3);
		assert_string_equal(change.answer.value, STORAGE_VALUE("u", 1));
		vd_object_unref(suggestion);
		storage_update(&world, &change, false, NULL, NULL);
		assert_status(change.answer.status, VD_OK);
		assert_int_equal(change.answer.object_revision, 3);
		storage_world_free(&world);
	}
}

/* rules: T-034 */
static void r136_conflict_is_tried_again(void **state)
{
	struct storage_world  world = storage_world_new(5);
	struct storage_change change = { .value = STORAGE_VALUE("u", 2), .interfere = 3 };

	(void) state;
	storage_create(&world, STORAGE_VALUE("u", 1), 0);
	storage_update(&world, &change, false, NULL, NULL);
	assert_status(change.answer.status, VD_OK);
	assert_int_equal(change.calls, 4);
	assert_string_equal(storage_get(&world, 0).value, STORAGE_VALUE("u", 2));
	storage_world_free(&world);
}

static vd_status add_one(void *arg, struct vd_object *current, struct vd_bytes *ret_value, int64_t *ret_ttl_s,
			 struct vd_error *reterr)
{
	static const char *const values[] = { STORAGE_VALUE("u", 1), STORAGE_VALUE("u", 2),
					      STORAGE_VALUE("u", 3) };
	struct storage_change	*change = arg;
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
		struct storage_world  world = storage_world_new(seed);
		struct storage_change changes[2] = { 0 };

		(void) state;
		storage_create(&world, STORAGE_VALUE("u", 1), 0);
		for (size_t i = 0; i < 2; i++)
			assert_status(vdi_storage_update(world.storage, storage_key_a, false, NULL, NULL,
							 add_one, storage_on_object, &changes[i]),
				      VD_OK);
		for (size_t i = 0; i < 2; i++) {
			storage_settle(&world, &changes[i].answer);
			assert_status(changes[i].answer.status, VD_OK);
		}
		assert_int_equal(changes[0].calls + changes[1].calls, 3);
		assert_string_equal(storage_get(&world, 0).value, STORAGE_VALUE("u", 3));
		storage_world_free(&world);
	}
}

/* rules: T-035 */
static void r131_decision_on_a_stale_suggestion_is_not_final(void **state)
{
	struct storage_world	world = storage_world_new(6);
	struct storage_change	change = { .value = STORAGE_VALUE("u", 3),
					   .fail_below_call = 1,
					   .fail_with = VD_INVALID };
	struct vd_preconditions before = { .revision = { "2", 1 } }, now = { .revision = { "4", 1 } };
	struct vd_object       *suggestion;

	(void) state;
	storage_create(&world, STORAGE_VALUE("u", 1), 0);
	suggestion = storage_look(&world);
	/* Not stale: the first error stands. */
	storage_update(&world, &change, false, NULL, suggestion);
	assert_status(change.answer.status, VD_INVALID);
	assert_int_equal(change.calls, 1);
	/* Stale: the second call sees the fresh state. */
	change.fail_below_call = 0;
	change.value = STORAGE_VALUE("u", 2);
	storage_update(&world, &change, false, NULL, NULL);
	change.fail_below_call = 1;
	change.value = STORAGE_VALUE("u", 3);
	storage_update(&world, &change, false, NULL, suggestion);
	assert_status(change.answer.status, VD_OK);
	assert_int_equal(change.calls, 2);
	/* So for preconditions: one that holds now, and one that holds for the suggestion only. */
	change.fail_below_call = 0;
	change.value = STORAGE_VALUE("u", 4);
	storage_update(&world, &change, false, &now, suggestion);
	assert_status(change.answer.status, VD_OK);
	assert_int_equal(change.answer.object_revision, 5);
	assert_int_equal(change.calls, 1);
	storage_update(&world, &change, false, &before, suggestion);
	assert_status(change.answer.status, VD_PRECONDITION);
	assert_non_null(strstr(change.answer.error.message, "ResourceVersion in object meta: 5"));
	vd_object_unref(suggestion);
	storage_world_free(&world);
}

/* rules: T-031 */
static void r126_preconditions(void **state)
{
	struct storage_world	world = storage_world_new(7);
	struct storage_change	change = { .value = STORAGE_VALUE("u", 2) };
	struct vd_preconditions wrong_uid = { .uid = { "other", 5 } },
				right = { .uid = { "u", 1 }, .revision = { "2", 1 } };
	struct vd_preconditions wrong_revision = { .revision = { "02", 2 } };

	(void) state;
	storage_create(&world, STORAGE_VALUE("u", 1), 0);
	storage_update(&world, &change, false, &wrong_uid, NULL);
	assert_status(change.answer.status, VD_PRECONDITION);
	assert_string_equal(change.answer.error.message,
			    "StorageError: invalid object, Code: 4, Key: /registry/pods/ns/a, "
			    "ResourceVersion: 0, AdditionalErrorMsg: "
			    "Precondition failed: UID in precondition: other, UID in object meta: u");
	storage_update(&world, &change, false, &wrong_revision, NULL); /* compared as text */
	assert_status(change.answer.status, VD_PRECONDITION);
	assert_string_equal(change.answer.error.message,
			    "StorageError: invalid object, Code: 4, Key: /registry/pods/ns/a, "
			    "ResourceVersion: 0, AdditionalErrorMsg: "
			    "Precondition failed: ResourceVersion in precondition: 02, ResourceVersion in "
			    "object meta: 2");
	wrong_revision.uid = wrong_uid.uid; /* the first that fails is told */
	storage_update(&world, &change, false, &wrong_revision, NULL);
	assert_non_null(strstr(change.answer.error.message, "UID in precondition: other"));
	storage_update(&world, &change, false, &right, NULL);
	assert_status(change.answer.status, VD_OK);
	storage_world_free(&world);
}

static void updates_survive_a_bad_line(void **state)
{
	(void) state;
	for (uint64_t seed = 1; seed <= 30; seed++) {
		struct storage_world world = storage_world_new(seed);
		struct chaos_options options = {
			.delay = 300, .delay_max = VD_MS(50), .refuse = 100, .lose_answer = 100
		};
		struct vd_store		  *chaos = chaos_store_new(world.env, world.store, &options);
		struct vdi_storage_options storage_options = { .resource = "pods",
							       .key_prefix = "/registry/pods/",
							       .codec = world.codec };
		struct vdi_storage	  *calm = world.storage;
		struct storage_change	   change = { .value = STORAGE_VALUE("u", 2), .interfere = 1 };

		assert_status(vdi_storage_new(world.env, chaos, &storage_options, &world.storage, NULL),
			      VD_OK);
		for (int i = 0; i < 10; i++) {
			storage_update(&world, &change, true, NULL, NULL);
			assert_true(change.answer.status == VD_OK || change.answer.status == VD_UNAVAILABLE);
			if (change.answer.status == VD_OK)
				assert_string_equal(change.answer.value, STORAGE_VALUE("u", 2));
		}
		vdi_storage_free(world.storage);
		world.storage = calm;
		chaos_store_free(chaos);
		storage_world_free(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r131_update),
		cmocka_unit_test(an_answer_describes_the_record_as_it_is_stored),
		cmocka_unit_test(r134_a_missing_key_is_created_once),
		cmocka_unit_test(r135_equal_bytes_write_nothing),
		cmocka_unit_test(r135_a_stale_value_is_written_again),
		cmocka_unit_test(r136_conflict_is_tried_again),
		cmocka_unit_test(t034_both_of_two_updates_take_effect),
		cmocka_unit_test(r131_decision_on_a_stale_suggestion_is_not_final),
		cmocka_unit_test(r126_preconditions),
		cmocka_unit_test(updates_survive_a_bad_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
