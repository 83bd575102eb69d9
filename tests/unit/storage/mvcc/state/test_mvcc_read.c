/* Unit tests of storage/mvcc/state/mvcc_read.c: which revisions can be read, and what a refusal says. */
#include "mvcc_read.h"
#include "vdtest.h"

static void a_refusal_names_the_revisions(void **state)
{
	static const struct {
		vd_rev	  revision;
		vd_status status;
	} rows[] = { { -1, VD_OK },
		     { 0, VD_OK },
		     { 1, VD_EXPIRED },
		     { 4, VD_EXPIRED },
		     { 5, VD_OK },
		     { 10, VD_OK },
		     { 11, VD_TOO_LARGE_REVISION },
		     { INT64_MAX, VD_TOO_LARGE_REVISION } };
	const struct vdi_view view = { .revision = 10, .compacted = 5 };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_error error = { .code = VD_FULL, .requested = 77, .current = 78, .compacted = 79 };
		bool		is_fine = rows[i].status == VD_OK;

		assert_status(vdi_read_check(&view, rows[i].revision, NULL), rows[i].status);
		assert_status(vdi_read_check(&view, rows[i].revision, &error), rows[i].status);
		assert_status(error.code, is_fine ? VD_FULL : rows[i].status);
		assert_int_equal(error.requested, is_fine ? 77 : rows[i].revision);
		assert_int_equal(error.current, is_fine ? 78 : 10);
		assert_int_equal(error.compacted, is_fine ? 79 : 5);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refusal_names_the_revisions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
