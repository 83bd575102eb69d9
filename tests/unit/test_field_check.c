/* Unit tests of apiserver/field_check.c: what needs no connection. */
#include "vdtest.h"

#include "field_check.h"

static const struct vdi_resource pods = { .group = "", .version = "v1", .kind = "Pod", .plural = "pods" };
static const struct vdi_resource widgets = { .group = "example.com", .version = "v1", .kind = "Widget", .plural = "widgets" };

#define GOOD "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"priority\":1}}"
#define BAD  "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"priority\":\"1\"}}"
#define ODD  "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"prio\":\"1\"}}"
#define ODDER "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"pri\":1,\"prio\":\"1\",\"containers\":[{\"nosuch\":1}]}}"

static void r612_a_patch_may_not_spoil_an_object(void **state)
{
	static const struct {
		const struct vdi_resource *resource;
		const char		  *current, *patched;
		vd_status		   status;
		const char		  *said; /* the sentence, or the members that are new */
	} rows[] = {
		{ &pods, GOOD, GOOD, VD_OK, "" },
		{ &pods, GOOD, BAD, VD_BAD_REQUEST, "spec.priority: is not a number" },
		{ &pods, BAD, GOOD, VD_OK, "" },
		{ &pods, BAD, BAD, VD_OK, "" },
		{ &pods, GOOD, ODD, VD_OK, "unknown field \"spec.prio\"" },
		{ &pods, ODD, ODD, VD_OK, "" }, /* what was there may stay */
		{ &pods, ODD, ODDER, VD_OK, "unknown field \"spec.pri\", unknown field \"spec.containers[0].nosuch\"" },
		{ &widgets, GOOD, BAD, VD_OK, "" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_unknown_fields unknown = { .warnings = VDI_OUT_INIT, .refusal = VDI_OUT_INIT };
		struct vd_error		  error = { 0 };

		assert_status(vdi_field_check_patched(rows[i].resource, vd_bytes_of(rows[i].current), vd_bytes_of(rows[i].patched), &unknown, &error), rows[i].status);
		if (rows[i].status != VD_OK)
			assert_string_equal(error.message, rows[i].said);
		else
			assert_true(vd_bytes_equal(vdi_out_slice(&unknown.refusal), vd_bytes_of(rows[i].said)));
		assert_status(vdi_field_check_patched(rows[i].resource, vd_bytes_of(rows[i].current), vd_bytes_of(rows[i].patched), NULL, NULL), rows[i].status);
		vdi_unknown_fields_fini(&unknown);
	}
}

static void every_failed_allocation_is_reported(void **state)
{
	int64_t live = vdi_alloc_live();

	(void) state;
	for (uint64_t nth = 1;; nth++) {
		struct vdi_unknown_fields unknown = { .warnings = VDI_OUT_INIT, .refusal = VDI_OUT_INIT };
		vd_status		  result;
		bool			  failed;

		vdi_alloc_fail_nth(nth, 1);
		result = vdi_field_check_patched(&pods, vd_bytes_of(ODD), vd_bytes_of(ODDER), &unknown, NULL);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		vdi_unknown_fields_fini(&unknown);
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
