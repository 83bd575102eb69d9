/* Unit tests of apiserver/field_check.c: what needs no connection. */
#include "vdtest.h"

#include "field_check.h"

static const struct vdi_resource pods = { .group = "", .version = "v1", .kind = "Pod", .plural = "pods" };
static const struct vdi_resource widgets = { .group = "example.com", .version = "v1", .kind = "Widget", .plural = "widgets" };

#define GOOD "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"priority\":1}}"
#define BAD  "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"priority\":\"1\"}}"
#define ODD  "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"prio\":\"1\"}}"

static void r612_a_patch_may_not_spoil_an_object(void **state)
{
	static const struct {
		const struct vdi_resource *resource;
		const char		  *current, *result;
		vd_status		   status;
	} rows[] = {
		{ &pods, GOOD, GOOD, VD_OK },	  { &pods, GOOD, BAD, VD_INVALID }, { &pods, BAD, GOOD, VD_OK },
		{ &pods, BAD, BAD, VD_OK },	  { &pods, GOOD, ODD, VD_OK }, /* what the kind does not have is no type */
		{ &widgets, GOOD, BAD, VD_OK },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_http_status status = { .code = 0 };

		assert_status(vdi_field_check_result(rows[i].resource, vd_bytes_of(rows[i].current), vd_bytes_of(rows[i].result), &status), rows[i].status);
		if (rows[i].status != VD_OK) {
			assert_int_equal(status.code, 400);
			assert_string_equal(status.message, "Pod in version \"v1\" cannot be handled as a Pod: spec.priority: is not a number");
		}
	}
}

static void every_failed_allocation_is_reported(void **state)
{
	int64_t live = vdi_alloc_live();

	(void) state;
	for (uint64_t nth = 1;; nth++) {
		struct vdi_http_status status = { .code = 0 };
		vd_status	       result;
		bool		       failed;

		vdi_alloc_fail_nth(nth, 1);
		result = vdi_field_check_result(&pods, vd_bytes_of(GOOD), vd_bytes_of(GOOD), &status);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(result, failed ? VD_NOMEM : VD_OK);
		assert_int_equal(vdi_alloc_live(), live);
		if (!failed)
			break;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r612_a_patch_may_not_spoil_an_object),
		cmocka_unit_test(every_failed_allocation_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
