/* Unit tests of apiserver/meta/field_errors.c: upstream's words for what is wrong with a field. */
#include "vdtest.h"

#include "field_errors.h"

#define TEXT(text) vd_bytes_of(text)

static void fill(struct vdi_faults *faults)
{
	struct vdi_node number = { .kind = VDI_NODE_NUMBER, .text = TEXT("5") };

	vdi_faults_add_node(faults, VDI_FAULT_INVALID, TEXT("spec.b"), &number, "should be %s", "less");
	vdi_faults_add(faults, VDI_FAULT_REQUIRED, TEXT("spec.a"), VD_BYTES_NONE, "%s", "");
	vdi_faults_add_text(faults, VDI_FAULT_NOT_SUPPORTED, TEXT("spec.c"), TEXT("a\"\n\x01<é"),
			    "supported values: \"x\"");
	vdi_faults_add(faults, VDI_FAULT_TOO_MANY, TEXT("spec.d"), TEXT("3"), "must have at most 2 items");
	vdi_faults_add(faults, VDI_FAULT_REQUIRED, TEXT("spec.a"), VD_BYTES_NONE, "%s", "");
}

static void h101_a_refusal_names_all_faults(void **state)
{
	struct vdi_faults      faults = { 0 };
	struct vdi_http_status status;
	struct vdi_out	       out = VDI_OUT_INIT;
	static const char message[] = "Tab.example.com \"x\" is invalid: [spec.a: Required value, spec.b: "
				      "Invalid value: 5: should be less, "
				      "spec.c: Unsupported value: \"a\\\"\\n\\x01<é\": supported values: "
				      "\"x\", spec.d: Too many: 3: must have at most 2 items]";

	(void) state;
	fill(&faults);
	assert_int_equal(faults.count, 5);
	vdi_faults_sort(&faults);
	for (int i = 0; i < 2; i++) /* the second says no more than the first */
		assert_status(vdi_faults_refuse(&faults, &status, "example.com", "Tab", TEXT("x")),
			      VD_INVALID);
	assert_int_equal(status.code, 422);
	assert_string_equal(status.message, message);
	assert_true(vd_bytes_equal(status.long_message, vd_bytes_of(message)));
	vdi_http_status_write(&out, &status);
	vdi_out_raw(&out, "\n");
	out.data[out.size - 1] = 0;
	assert_non_null(strstr(
		out.data,
		"\"causes\":[{\"reason\":\"FieldValueRequired\",\"message\":\"Required "
		"value\",\"field\":\"spec.a\"},"
		"{\"reason\":\"FieldValueRequired\",\"message\":\"Required value\",\"field\":\"spec.a\"},"
		"{\"reason\":\"FieldValueInvalid\",\"message\":\"Invalid value: 5: should be "
		"less\",\"field\":\"spec.b\"}"));
	assert_non_null(strstr(out.data, "\"kind\":\"Tab\""));
	vdi_out_fini(&out);
	vdi_faults_reset(&faults);
	vdi_faults_add(&faults, VDI_FAULT_FORBIDDEN, TEXT("spec.a"), TEXT("1"), "no");
	assert_true(vd_bytes_equal(vdi_faults_message(&faults), TEXT("spec.a: Forbidden: no")));
	vdi_faults_fini(&faults);
}

/* A value that is not there is shown as the empty text, as Kubernetes does. */
static void a_value_that_is_missing(void **state)
{
	struct vdi_faults faults = { 0 };

	vdi_faults_add_node(&faults, VDI_FAULT_INVALID, vd_bytes_of("spec.a"), NULL, "should be there");
	assert_int_equal(faults.count, 1);
	assert_true(vd_bytes_equal(vdi_faults_message(&faults),
				   vd_bytes_of("spec.a: Invalid value: \"\": should be there")));
	vdi_faults_fini(&faults);
}

static void what_is_kept_is_bounded(void **state)
{
	struct vdi_faults faults = { 0 };
	char		  long_text[5000];

	(void) state;
	for (size_t i = 0; i < sizeof long_text; i++)
		long_text[i] = i % 2 ? '\xA9' : '\xC3';
	for (int i = 0; i < 1000; i++)
		vdi_faults_add_text(&faults, VDI_FAULT_INVALID, TEXT("a"),
				    (struct vd_bytes) { long_text, sizeof long_text - 1 }, "%.*s", 4999,
				    long_text);
	assert_int_equal(faults.kept, VDI_FAULTS_MAX);
	assert_int_equal(faults.count, 1000);
	assert_in_range(faults.text.size, 64 * 2000, 64 * 2200);
	vdi_faults_truncate(&faults, 1, 1);
	assert_in_range(vdi_faults_message(&faults).size, 2000, 2200);
	vdi_faults_fini(&faults);
}

static void every_failed_allocation_is_reported(void **state)
{
	int64_t live = vdi_alloc_live();

	(void) state;
	for (uint64_t nth = 1;; nth++) {
		struct vdi_faults      faults = { 0 };
		struct vdi_http_status status;
		vd_status	       result;
		bool		       failed;

		vdi_alloc_fail_nth(nth, 1);
		fill(&faults);
		result = vdi_faults_refuse(&faults, &status, "example.com", "Tab", TEXT("x"));
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(result, failed ? VD_NOMEM : VD_INVALID);
		assert_int_equal(status.code, failed ? 500 : 422);
		vdi_faults_fini(&faults);
		assert_int_equal(vdi_alloc_live(), live);
		if (!failed)
			break;
	}
}

/* Upstream's words of each kind, and whether they are followed by the value. */
static void each_kind_has_its_words(void **state)
{
	static const struct {
		enum vdi_fault_kind kind;
		const char	   *text;
	} rows[] = {
		{ VDI_FAULT_REQUIRED, "a: Required value: why" },
		{ VDI_FAULT_DUPLICATE, "a: Duplicate value: 5: why" },
		{ VDI_FAULT_INVALID, "a: Invalid value: 5: why" },
		{ VDI_FAULT_TYPE_INVALID, "a: Invalid value: 5: why" },
		{ VDI_FAULT_NOT_SUPPORTED, "a: Unsupported value: 5: why" },
		{ VDI_FAULT_FORBIDDEN, "a: Forbidden: why" },
		{ VDI_FAULT_TOO_LONG, "a: Too long: why" },
		{ VDI_FAULT_TOO_MANY, "a: Too many: 5: why" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		for (int as_node = 0; as_node < 2; as_node++) {
			struct vdi_node	  number = { .kind = VDI_NODE_NUMBER, .text = TEXT("5") };
			struct vdi_faults faults = { 0 };

			if (as_node)
				vdi_faults_add_node(&faults, rows[i].kind, TEXT("a"), &number, "why");
			else
				vdi_faults_add(&faults, rows[i].kind, TEXT("a"), TEXT("5"), "why");
			if (!vd_bytes_equal(vdi_faults_message(&faults), TEXT(rows[i].text)))
				fail_msg("%s: %.*s", rows[i].text, (int) vdi_faults_message(&faults).size,
					 (const char *) vdi_faults_message(&faults).data);
			vdi_faults_fini(&faults);
		}
}

/* A long value is cut, and one can see that it was. */
static void long_values_are_cut(void **state)
{
	struct vdi_node	  node = { .kind = VDI_NODE_STRING };
	struct vdi_faults faults = { 0 };
	struct vd_bytes	  message;
	char		 *text = malloc(5000);

	memset(text, 'x', 5000);
	node.text = (struct vd_bytes) { text, 5000 };
	vdi_faults_add_node(&faults, VDI_FAULT_INVALID, TEXT("a"), &node, "too long");
	message = vdi_faults_message(&faults);
	assert_in_range(message.size, VDI_FAULT_VALUE_SIZE / 2, VDI_FAULT_VALUE_SIZE + 100);
	assert_non_null(memmem(message.data, message.size, "xxx...", 6));
	assert_non_null(memmem(message.data, message.size, ": too long", 10));
	vdi_faults_fini(&faults);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(h101_a_refusal_names_all_faults),
		cmocka_unit_test(a_value_that_is_missing),
		cmocka_unit_test(what_is_kept_is_bounded),
		cmocka_unit_test(every_failed_allocation_is_reported),
		cmocka_unit_test(each_kind_has_its_words),
		cmocka_unit_test(long_values_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
