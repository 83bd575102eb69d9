/* Unit tests of cacher/cache/quarantine.c: which namespaces may hold a key that cannot be decoded. What a
 * dump shows of it is in test_cacher_dump.c. */
#include "vdtest.h"

#include "quarantine.h"

#define PREFIX vd_bytes_of("/registry/pods/")

static void keys_are_found_by_their_namespace(void **state)
{
	static const struct {
		const char *prefix, *namespace_name;
		bool	    holds;
	} rows[] = {
		{ "/registry/pods/", "ns", true },    { "/registry/pods/", "n", false },
		{ "/registry/pods/", "ns1", false },  { "/registry/pods/", "nt", false },
		{ "/registry/pods/", "long", true },  { "/registry/nodes/", "ns", false },
		{ "/registry/pods/", "ns/a", false }, { "/registry/pods/", "ns/a/b/c/d/e", false },
		{ "/registry/pods/", "", false },     { "/registry/", "pods", true },
		{ "/registry/pods/", "empty", true },
	};
	struct vdi_quarantine quarantine;

	vdi_quarantine_init(&quarantine);
	vdi_quarantine_add(&quarantine, vd_bytes_of("/registry/pods/long/a-long-name"), 5, "torn");
	vdi_quarantine_add(&quarantine, vd_bytes_of("/registry/pods/ns/a"), 6, "torn");
	vdi_quarantine_add(&quarantine, vd_bytes_of("/registry/pods/empty/"), 6, "torn");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_error error = { 0 };

		if (vdi_quarantine_holds(&quarantine, vd_bytes_of(rows[i].prefix),
					 vd_bytes_of(rows[i].namespace_name), &error) != rows[i].holds)
			fail_msg("%s%s", rows[i].prefix, rows[i].namespace_name);
		assert_status(error.code, rows[i].holds ? VD_UNDECODABLE : VD_OK);
	}
	{
		struct vd_error error = { 0 };

		assert_true(vdi_quarantine_holds(&quarantine, PREFIX, vd_bytes_of("ns"), &error));
		assert_string_equal(error.message,
				    "the object stored under /registry/pods/ns/a cannot be decoded");
	}
	vdi_quarantine_clear(&quarantine);
	assert_false(vdi_quarantine_holds(&quarantine, PREFIX, vd_bytes_of("ns"), NULL));
	vdi_quarantine_fini(&quarantine);
}

/* Keys beyond the maximum are only counted, so each namespace may hold one then. */
static void a_full_quarantine_may_hold_every_namespace(void **state)
{
	struct vdi_quarantine quarantine;
	struct vd_error	      error = { 0 };
	char		      key[64];

	vdi_quarantine_init(&quarantine);
	for (int i = 0; i < VDI_QUARANTINE_MAX + 1; i++) {
		(void) snprintf(key, sizeof key, "/registry/pods/ns/%d", i);
		if (i == VDI_QUARANTINE_MAX - 1)
			assert_false(vdi_quarantine_holds(&quarantine, PREFIX, vd_bytes_of("other"), NULL));
		vdi_quarantine_add(&quarantine, vd_bytes_of(key), 1, "torn");
	}
	assert_int_equal(vdi_quarantine_count(&quarantine), VDI_QUARANTINE_MAX);
	assert_int_equal(atomic_load(&quarantine.total), VDI_QUARANTINE_MAX + 1);
	assert_true(vdi_quarantine_holds(&quarantine, PREFIX, vd_bytes_of("other"), &error));
	assert_string_equal(error.message, "4096 objects or more cannot be decoded");
	vdi_quarantine_remove(&quarantine, vd_bytes_of("/registry/pods/ns/0"), 1);
	assert_false(vdi_quarantine_holds(&quarantine, PREFIX, vd_bytes_of("other"), NULL));
	vdi_quarantine_fini(&quarantine);
}

static void without_memory_a_key_is_counted(void **state)
{
	for (uint64_t nth = 1; nth <= 2; nth++) {
		struct vdi_quarantine quarantine;

		vdi_quarantine_init(&quarantine);
		vdi_alloc_fail_nth(nth, 1);
		vdi_quarantine_add(&quarantine, vd_bytes_of("/registry/pods/ns/a"), 1, "torn");
		assert_true(vdi_alloc_failed());
		vdi_alloc_fail_nth(0, 0);
		assert_int_equal(vdi_quarantine_count(&quarantine), 0);
		assert_int_equal(atomic_load(&quarantine.total), 1);
		vdi_quarantine_fini(&quarantine);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_found_by_their_namespace),
		cmocka_unit_test(a_full_quarantine_may_hold_every_namespace),
		cmocka_unit_test(without_memory_a_key_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
