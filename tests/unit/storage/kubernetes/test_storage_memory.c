/* Unit tests of storage/kubernetes: each allocation of each call fails once. The caller is told once, and the
 * call is done whole or not at all. */
#include "actor_sim.h"
#include "storage.h"
#include "storage_world.h"
#include "vdtest.h"

static const struct vd_bytes other_key = { "/registry/pods/ns/b", 19 };
static const struct vd_bytes prefix = { "/registry/pods/", 15 };

struct heard {
	struct storage_change change; /* first: arg of the callbacks of updates */
	unsigned	      answers;
	vd_status	      status;
};

static void on_object(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
		      const struct vd_error *error)
{
	struct heard *heard = arg;

	heard->answers++;
	heard->status = status;
	assert_int_equal(object != NULL, status == VD_OK);
	assert_int_equal(error != NULL, status != VD_OK);
	if (error) {
		assert_status(error->code, status);
		assert_true(error->message[0] != 0);
	} else {
		assert_true(revision > 0);
	}
}

static void on_page(void *arg, vd_status status, const struct vdi_storage_page *page,
		    const struct vd_error *error)
{
	struct heard *heard = arg;

	heard->answers++;
	heard->status = status;
	assert_int_equal(page != NULL, status == VD_OK);
	if (page) {
		assert_int_equal(page->object_count, 2);
		assert_int_equal(page->undecodable_count, 0);
		assert_non_null(page->objects[0]);
		assert_non_null(page->objects[1]);
		assert_null(error);
	} else {
		assert_status(error->code, status);
		assert_true(error->message[0] != 0);
	}
}

static void on_count(void *arg, vd_status status, int64_t count, const struct vd_error *error)
{
	struct heard *heard = arg;

	(void) error;
	heard->answers++;
	heard->status = status;
	assert_int_equal(count, status == VD_OK ? 2 : -1);
}

static void on_revision(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	struct heard *heard = arg;

	(void) error;
	heard->answers++;
	heard->status = status;
	assert_int_equal(revision, status == VD_OK ? 3 : 0);
}

static vd_status validate(void *arg, struct vd_object *object, struct vd_error *reterr)
{
	(void) arg;
	(void) reterr;
	assert_non_null(object);
	return VD_OK;
}

/* ---- The calls ---- */

static vd_status start_get(struct storage_world *w, struct heard *heard)
{
	return vdi_storage_get(w->storage, storage_key_a, 0, on_object, heard);
}

static vd_status start_create(struct storage_world *w, struct heard *heard)
{
	static const char key[] = "/registry/pods/ns/c";

	return vdi_storage_create(w->storage, vd_bytes_of(key), vd_bytes_of(STORAGE_NAMED("c", "u", 1)), 20,
				  on_object, heard);
}

static vd_status start_update(struct storage_world *w, struct heard *heard)
{
	const struct vd_preconditions preconditions = { .uid = vd_bytes_of("u"),
							.revision = vd_bytes_of("2") };

	heard->change.world = w;
	heard->change.value = STORAGE_VALUE("u", 7);
	heard->change.ttl_s = 20;
	return vdi_storage_update(w->storage, storage_key_a, false, &preconditions, NULL, storage_on_update,
				  on_object, heard);
}

static vd_status start_delete(struct storage_world *w, struct heard *heard)
{
	const struct vd_preconditions preconditions = { .uid = vd_bytes_of("u"),
							.revision = vd_bytes_of("2") };

	return vdi_storage_delete(w->storage, storage_key_a, &preconditions, NULL, validate, on_object,
				  heard);
}

static vd_status start_page(struct storage_world *w, struct heard *heard)
{
	return vdi_storage_page(w->storage, prefix, VD_BYTES_NONE, 0, 0, on_page, heard);
}

static vd_status start_count(struct storage_world *w, struct heard *heard)
{
	return vdi_storage_count(w->storage, on_count, heard);
}

static vd_status start_revision(struct storage_world *w, struct heard *heard)
{
	return vdi_storage_current_revision(w->storage, on_revision, heard);
}

static int64_t records(struct storage_world *w)
{
	struct vd_store_status status;

	assert_status(vd_store_status_get(w->store, &status), VD_OK);
	return status.current;
}

static void each_failed_allocation_of_each_call_is_reported_once(void **state)
{
	static const struct {
		const char *name;
		vd_status (*start)(struct storage_world *w, struct heard *heard);
		bool	 writes;
		unsigned failures_min;
	} rows[] = {
		{ "get", start_get, false, 2 },		  { "create", start_create, true, 4 },
		{ "update", start_update, true, 6 },	  { "delete", start_delete, true, 5 },
		{ "page", start_page, false, 4 },	  { "count", start_count, false, 1 },
		{ "revision", start_revision, false, 1 },
	};
	int64_t live = vdi_alloc_live();

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		bool	 failed = true;
		unsigned failures = 0;

		for (uint64_t nth = 1; failed; nth++) {
			struct storage_world world = storage_world_new(21);
			struct heard	     heard = { .answers = 0 };
			vd_status	     called;

			storage_create(&world, STORAGE_VALUE("u", 1), 0);
			assert_status(vdi_storage_create(world.storage, other_key,
							 vd_bytes_of(STORAGE_NAMED("b", "u", 1)), 0,
							 on_object, &heard),
				      VD_OK);
			vdi_sim_run_until_idle(world.env);
			assert_int_equal(heard.answers, 1);
			assert_int_equal(records(&world), 3);
			memset(&heard, 0, sizeof heard);
			vdi_alloc_fail_nth(nth, 1);
			called = rows[i].start(&world, &heard);
			vdi_sim_run_until_idle(world.env);
			failed = vdi_alloc_failed();
			vdi_alloc_fail_nth(0, 0);
			assert_int_equal(heard.answers, called == VD_OK);
			if (called == VD_OK)
				called = heard.status;
			if (called != VD_OK) {
				failures++;
				if (!failed || called != VD_NOMEM)
					fail_msg("%s, allocation %llu: %s", rows[i].name,
						 (unsigned long long) nth, vd_status_name(called));
			}
			assert_int_equal(records(&world), 3 + (rows[i].writes && called == VD_OK));
			/* The next call of its kind is served: nothing waits for the one that failed. */
			if (called != VD_OK) {
				memset(&heard, 0, sizeof heard);
				assert_status(rows[i].start(&world, &heard), VD_OK);
				vdi_sim_run_until_idle(world.env);
				assert_int_equal(heard.answers, 1);
				assert_status(heard.status, VD_OK);
			}
			storage_world_free(&world);
			assert_int_equal(vdi_alloc_live(), live);
		}
		if (failures < rows[i].failures_min)
			fail_msg("%s: %u failures", rows[i].name, failures);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_failed_allocation_of_each_call_is_reported_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
