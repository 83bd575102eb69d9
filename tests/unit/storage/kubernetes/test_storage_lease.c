/* Leases of objects with a time to live. */
#include "actor_sim.h"
#include "storage.h"
#include "storage_world.h"
#include "vdtest.h"

static bool is_true(void *arg)
{
	return *(bool *) arg;
}

/* rules: T-002, T-032 */
static void r133_an_update_without_ttl_removes_the_lease(void **state)
{
	struct storage_world  world = storage_world_new(8);
	struct storage_change change = { .value = STORAGE_VALUE("u", 2), .ttl_s = 30 };

	(void) state;
	storage_create(&world, STORAGE_VALUE("u", 1), 10);
	vdi_sim_advance(world.env, VD_SECONDS(5));
	assert_status(storage_get(&world, 0).status, VD_OK);
	vdi_sim_advance(world.env, VD_SECONDS(10));
	assert_status(storage_get(&world, 0).status, VD_NOT_FOUND); /* T-002 */
	storage_create(&world, STORAGE_VALUE("u", 1), 10);
	storage_update(&world, &change, false, NULL, NULL); /* T-032 */
	vdi_sim_advance(world.env, VD_SECONDS(20));
	assert_status(storage_get(&world, 0).status, VD_OK);
	change.ttl_s = 0;
	storage_update(&world, &change, false, NULL, NULL); /* equal bytes, but the lease goes */
	vdi_sim_advance(world.env, VD_SECONDS(100));
	assert_status(storage_get(&world, 0).status, VD_OK);
	storage_world_free(&world);
}

/* A grant that the store refuses at once fails that write alone: the next one asks again. */
static void r146_a_refused_grant_keeps_no_other_write_waiting(void **state)
{
	static const int64_t too_long[] = { 9000000001, INT64_MAX / 2 };
	struct storage_world world = storage_world_new(18);

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(too_long); i++) {
		assert_status(storage_create(&world, STORAGE_VALUE("u", 1), too_long[i]).status,
			      VD_INVALID_ARGUMENT);
		assert_status(storage_get(&world, 0).status, VD_NOT_FOUND);
	}
	assert_status(storage_create(&world, STORAGE_VALUE("u", 1), 100).status, VD_OK);
	assert_true(storage_get(&world, 0).lease != 0);
	storage_world_free(&world);
}

/* The lease under which an object was created that lives for ttl_s. */
static int64_t lease_of_new(struct storage_world *world, const char *name, int64_t ttl_s)
{
	char		      key[64], value[128];
	struct storage_answer answer = { 0 };
	struct vd_kv	     *kv = NULL;
	int64_t		      lease;

	snprintf(key, sizeof key, "/registry/pods/ns/%s", name);
	snprintf(value, sizeof value, STORAGE_NAMED("%s", "u", 1), name);
	assert_status(vdi_storage_create(world->storage, vd_bytes_of(key), vd_bytes_of(value), ttl_s,
					 storage_on_object, &answer),
		      VD_OK);
	storage_settle(world, &answer);
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
static int64_t lease_ttl(struct storage_world *world, int64_t lease)
{
	int64_t ttl_s = 0;

	assert_status(vd_store_lease_time_to_live(world->store, lease, false, note_ttl, &ttl_s), VD_OK);
	vdi_sim_run_until_idle(world->env);
	return ttl_s;
}

/* T-085. rules: T-085 */
static void r146_a_lease_serves_a_thousand_objects_of_one_age(void **state)
{
	struct storage_world world = storage_world_new(21);
	int64_t		     first = lease_of_new(&world, "a", 1000), second, short_lived;
	char		     name[16];

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
	storage_world_free(&world);
}

/* The wall clock may jump; the store's leases do not. */
static void r146_a_jump_of_the_wall_clock_changes_nothing(void **state)
{
	struct storage_world world = storage_world_new(22);
	int64_t		     first = lease_of_new(&world, "a", 1000);

	vdi_sim_jump_wall(world.env, VD_SECONDS(-3600));
	assert_int_equal(lease_of_new(&world, "b", 1000), first);
	vdi_sim_advance(world.env, VD_SECONDS(60));
	assert_int_not_equal(lease_of_new(&world, "c", 1000), first);
	storage_world_free(&world);
}

/* Upstream holds a lock while it asks. */
static void r146_many_at_once_ask_for_one_lease(void **state)
{
	struct storage_world  world = storage_world_new(23);
	struct storage_answer answers[20] = { 0 };
	int64_t		      lease = 0;
	char		      key[64], value[128];

	for (int i = 0; i < 20; i++) {
		snprintf(key, sizeof key, "/registry/pods/ns/%d", i);
		snprintf(value, sizeof value, STORAGE_NAMED("%d", "u", 1), i);
		assert_status(vdi_storage_create(world.storage, vd_bytes_of(key), vd_bytes_of(value), 600,
						 storage_on_object, &answers[i]),
			      VD_OK);
	}
	for (int i = 0; i < 20; i++) {
		struct vd_kv *kv = NULL;

		storage_settle(&world, &answers[i]);
		assert_status(answers[i].status, VD_OK);
		snprintf(key, sizeof key, "/registry/pods/ns/%d", i);
		assert_status(vd_store_get_wait(world.store, vd_bytes_of(key), &kv, NULL), VD_OK);
		assert_true(lease == 0 || lease == kv->lease);
		lease = kv->lease;
		vd_kv_unref(kv);
	}
	storage_world_free(&world);
}

static void on_revoked(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	*(bool *) arg = status == VD_OK;
}

static void r146_a_lease_that_is_gone_is_replaced(void **state)
{
	struct storage_world world = storage_world_new(24);
	int64_t		     lease = lease_of_new(&world, "a", 1000);
	bool		     is_revoked = false;

	assert_status(vd_store_lease_revoke(world.store, lease, on_revoked, &is_revoked), VD_OK);
	assert_true(vdi_sim_run_until(world.env, is_true, &is_revoked, VD_SECONDS(1)));
	assert_int_not_equal(lease_of_new(&world, "b", 1000), lease);
	storage_world_free(&world);
}

static unsigned refused_count;

static vd_status txn_loses_lease(struct vd_store *store, const struct vd_txn_request *request, vd_txn_fn done,
				 void *arg)
{
	(void) store;
	assert_true(request->success->lease != 0);
	refused_count++;
	done(arg, VD_LEASE_NOT_FOUND, NULL, NULL);
	return VD_OK;
}

/* A lease that is gone is replaced once; a store that loses each one is not asked without end. */
static void a_lease_that_is_always_lost(void **state)
{
	struct storage_world	   world = storage_world_new(24);
	const struct vd_store_ops *honest = world.store->ops;
	struct vd_store_ops	   losing = *honest;

	(void) state;
	losing.txn = txn_loses_lease;
	world.store->ops = &losing;
	refused_count = 0;
	assert_status(storage_create(&world, STORAGE_VALUE("u", 1), 100).status, VD_LEASE_NOT_FOUND);
	assert_int_equal(refused_count, 2);
	world.store->ops = honest;
	assert_status(storage_create(&world, STORAGE_VALUE("u", 1), 100).status, VD_OK);
	storage_world_free(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r133_an_update_without_ttl_removes_the_lease),
		cmocka_unit_test(r146_a_refused_grant_keeps_no_other_write_waiting),
		cmocka_unit_test(r146_a_lease_serves_a_thousand_objects_of_one_age),
		cmocka_unit_test(r146_a_jump_of_the_wall_clock_changes_nothing),
		cmocka_unit_test(r146_many_at_once_ask_for_one_lease),
		cmocka_unit_test(r146_a_lease_that_is_gone_is_replaced),
		cmocka_unit_test(a_lease_that_is_always_lost),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
