/* Unit tests of apiserver/meta/field_errors.c: upstream's words for what is wrong with a field. */
#include "vdtest.h"

#include "field_errors.h"

#define TEXT(text) vd_bytes_of(text)

static void fill(struct vdi_field_errors *field_errors)
{
	struct vdi_node number = { .kind = VDI_NODE_NUMBER, .text = TEXT("5") };

	vdi_field_errors_add_node(field_errors, VDI_FIELD_ERROR_INVALID, TEXT("spec.b"), &number,
				  "should be %s", "less");
	vdi_field_errors_add(field_errors, VDI_FIELD_ERROR_REQUIRED, TEXT("spec.a"), VD_BYTES_NONE, "%s", "");
	vdi_field_errors_add_text(field_errors, VDI_FIELD_ERROR_NOT_SUPPORTED, TEXT("spec.c"),
				  TEXT("a\"\n\x01<é"), "supported values: \"x\"");
	vdi_field_errors_add(field_errors, VDI_FIELD_ERROR_TOO_MANY, TEXT("spec.d"), TEXT("3"),
			     "must have at most 2 items");
	vdi_field_errors_add(field_errors, VDI_FIELD_ERROR_REQUIRED, TEXT("spec.a"), VD_BYTES_NONE, "%s", "");
}

static void h101_a_refusal_names_all_field_errors(void **state)
{
	struct vdi_field_errors field_errors = { 0 };
	struct vdi_http_status	status;
	struct vdi_out		out = VDI_OUT_INIT;
	static const char message[] = "Tab.example.com \"x\" is invalid: [spec.a: Required value, spec.b: "
				      "Invalid value: 5: should be less, "
				      "spec.c: Unsupported value: \"a\\\"\\n\\x01<é\": supported values: "
				      "\"x\", spec.d: Too many: 3: must have at most 2 items]";

	(void) state;
	fill(&field_errors);
	assert_int_equal(field_errors.count, 5);
	vdi_field_errors_sort(&field_errors);
	for (int i = 0; i < 2; i++) /* the second says no more than the first */
		assert_status(
			vdi_field_errors_refuse(&field_errors, &status, "example.com", "Tab", TEXT("x")),
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
	vdi_field_errors_reset(&field_errors);
	vdi_field_errors_add(&field_errors, VDI_FIELD_ERROR_FORBIDDEN, TEXT("spec.a"), TEXT("1"), "no");
	assert_true(vd_bytes_equal(vdi_field_errors_message(&field_errors), TEXT("spec.a: Forbidden: no")));
	vdi_field_errors_fini(&field_errors);
}

/* A value that is not there is shown as the empty text, as Kubernetes does. */
static void a_value_that_is_missing(void **state)
{
	struct vdi_field_errors field_errors = { 0 };

	vdi_field_errors_add_node(&field_errors, VDI_FIELD_ERROR_INVALID, vd_bytes_of("spec.a"), NULL,
				  "should be there");
	assert_int_equal(field_errors.count, 1);
	assert_true(vd_bytes_equal(vdi_field_errors_message(&field_errors),
				   vd_bytes_of("spec.a: Invalid value: \"\": should be there")));
	vdi_field_errors_fini(&field_errors);
}

static void what_is_kept_is_bounded(void **state)
{
	struct vdi_field_errors field_errors = { 0 };
	char			long_text[5000];

	(void) state;
	for (size_t i = 0; i < sizeof long_text; i++)
		long_text[i] = i % 2 ? '\xA9' : '\xC3';
	for (int i = 0; i < 1000; i++)
		vdi_field_errors_add_text(&field_errors, VDI_FIELD_ERROR_INVALID, TEXT("a"),
					  (struct vd_bytes) { long_text, sizeof long_text - 1 }, "%.*s", 4999,
					  long_text);
	assert_int_equal(field_errors.kept, VDI_FIELD_ERRORS_MAX);
	assert_int_equal(field_errors.count, 1000);
	assert_in_range(field_errors.text.size, 64 * 2000, 64 * 2200);
	vdi_field_errors_truncate(&field_errors, 1, 1);
	assert_in_range(vdi_field_errors_message(&field_errors).size, 2000, 2200);
	vdi_field_errors_fini(&field_errors);
}

static void every_failed_allocation_is_reported(void **state)
{
	int64_t live = vdi_alloc_live();

	(void) state;
	for (uint64_t nth = 1;; nth++) {
		struct vdi_field_errors field_errors = { 0 };
		struct vdi_http_status	status;
		vd_status		result;
		bool			failed;

		vdi_alloc_fail_nth(nth, 1);
		fill(&field_errors);
		result = vdi_field_errors_refuse(&field_errors, &status, "example.com", "Tab", TEXT("x"));
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(result, failed ? VD_NOMEM : VD_INVALID);
		assert_int_equal(status.code, failed ? 500 : 422);
		vdi_field_errors_fini(&field_errors);
		assert_int_equal(vdi_alloc_live(), live);
		if (!failed)
			break;
	}
}

/* Upstream's words of each kind, and whether they are followed by the value. */
static void each_kind_has_its_words(void **state)
{
	static const struct {
		enum vdi_field_error_kind kind;
		const char		 *text;
	} rows[] = {
		{ VDI_FIELD_ERROR_REQUIRED, "a: Required value: why" },
		{ VDI_FIELD_ERROR_DUPLICATE, "a: Duplicate value: 5: why" },
		{ VDI_FIELD_ERROR_INVALID, "a: Invalid value: 5: why" },
		{ VDI_FIELD_ERROR_TYPE_INVALID, "a: Invalid value: 5: why" },
		{ VDI_FIELD_ERROR_NOT_SUPPORTED, "a: Unsupported value: 5: why" },
		{ VDI_FIELD_ERROR_FORBIDDEN, "a: Forbidden: why" },
		{ VDI_FIELD_ERROR_TOO_LONG, "a: Too long: why" },
		{ VDI_FIELD_ERROR_TOO_MANY, "a: Too many: 5: why" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		for (int as_node = 0; as_node < 2; as_node++) {
			struct vdi_node		number = { .kind = VDI_NODE_NUMBER, .text = TEXT("5") };
			struct vdi_field_errors field_errors = { 0 };

			if (as_node)
				vdi_field_errors_add_node(&field_errors, rows[i].kind, TEXT("a"), &number,
							  "why");
			else
				vdi_field_errors_add(&field_errors, rows[i].kind, TEXT("a"), TEXT("5"),
						     "why");
			if (!vd_bytes_equal(vdi_field_errors_message(&field_errors), TEXT(rows[i].text)))
				fail_msg("%s: %.*s", rows[i].text,
					 (int) vdi_field_errors_message(&field_errors).size,
					 (const char *) vdi_field_errors_message(&field_errors).data);
			vdi_field_errors_fini(&field_errors);
		}
}

/* A long value is cut, and one can see that it was. */
static void long_values_are_cut(void **state)
{
	struct vdi_node		node = { .kind = VDI_NODE_STRING };
	struct vdi_field_errors field_errors = { 0 };
	struct vd_bytes		message;
	char		       *text = malloc(5000);

	memset(text, 'x', 5000);
	node.text = (struct vd_bytes) { text, 5000 };
	vdi_field_errors_add_node(&field_errors, VDI_FIELD_ERROR_INVALID, TEXT("a"), &node, "too long");
	message = vdi_field_errors_message(&field_errors);
	assert_in_range(message.size, VDI_FIELD_ERROR_VALUE_SIZE / 2, VDI_FIELD_ERROR_VALUE_SIZE + 100);
	assert_non_null(memmem(message.data, message.size, "xxx...", 6));
	assert_non_null(memmem(message.data, message.size, ": too long", 10));
	vdi_field_errors_fini(&field_errors);
	free(text);
}

/* Sorting compares "<field>: <message>" as one text. */
static void errors_are_sorted_as_texts(void **state)
{
	static const char *const rows[][2] = {
		{ "", "a" },	 { "a", "" },	   { "a", "a" },    { "a", "aa" },    { "a", "b" },
		{ "a", "~" },	 { "a#", "a" },	   { "a-b", "a" },  { "a.b", "a" },   { "a.b", "b" },
		{ "a.b.c", "" }, { "a.b[0]", "" }, { "a[0]", "a" }, { "a[0].b", "" }, { "a[1]", "a" },
		{ "aa", "a" },	 { "b", "a" },
	};
	uint32_t random = 1;

	for (int round = 0; round < 50; round++) {
		struct vdi_field_errors field_errors = { 0 };
		size_t			order[VDI_ARRAY_SIZE(rows)];
		char			texts[VDI_ARRAY_SIZE(rows)][60];

		for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
			order[i] = i;
		for (size_t i = VDI_ARRAY_SIZE(rows) - 1; i > 0; i--) {
			size_t k = (random = random * 1103515245 + 12345) / 65536 % (i + 1), other = order[i];

			order[i] = order[k];
			order[k] = other;
		}
		for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
			vdi_field_errors_add(&field_errors, VDI_FIELD_ERROR_FORBIDDEN,
					     TEXT(rows[order[i]][0]), VD_BYTES_NONE, "%s", rows[order[i]][1]);
		vdi_field_errors_sort(&field_errors);
		for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
			struct vd_bytes field = vdi_field_errors_field(&field_errors, i),
					text = vdi_field_errors_text(&field_errors, i);

			(void) snprintf(texts[i], sizeof texts[i], "%.*s: %.*s", (int) field.size,
					(const char *) field.data, (int) text.size, (const char *) text.data);
			if (i && strcmp(texts[i - 1], texts[i]) > 0)
				fail_msg("%s before %s", texts[i - 1], texts[i]);
		}
		vdi_field_errors_fini(&field_errors);
	}
}

/* Equal texts are written once, and still there are others. */
static void many_equal_errors_and_more(void **state)
{
	struct vdi_field_errors field_errors = { 0 };

	for (int i = 0; i < VDI_FIELD_ERRORS_MAX; i++)
		vdi_field_errors_add(&field_errors, VDI_FIELD_ERROR_REQUIRED, TEXT("x"), VD_BYTES_NONE, "%s",
				     "");
	assert_true(vd_bytes_equal(vdi_field_errors_message(&field_errors), TEXT("x: Required value")));
	vdi_field_errors_add(&field_errors, VDI_FIELD_ERROR_REQUIRED, TEXT("x"), VD_BYTES_NONE, "%s", "");
	assert_true(vd_bytes_equal(vdi_field_errors_message(&field_errors),
				   TEXT("[x: Required value, and 1 more]")));
	vdi_field_errors_fini(&field_errors);
}

/* After a reset or a truncation nothing of the removed errors is shown, and their memory is used again. */
static void removed_errors_leave_nothing(void **state)
{
	struct vdi_field_errors field_errors = { 0 };
	size_t			size;

	fill(&field_errors);
	size = field_errors.text.size;
	for (int round = 0; round < 20; round++) {
		vdi_field_errors_reset(&field_errors);
		assert_int_equal(field_errors.count, 0);
		assert_int_equal(field_errors.text.size, 0);
		fill(&field_errors);
		assert_int_equal(field_errors.text.size, size);
	}
	vdi_field_errors_truncate(&field_errors, 2, 3);
	assert_int_equal(field_errors.kept, 2);
	assert_true(vd_bytes_equal(
		vdi_field_errors_message(&field_errors),
		TEXT("[spec.b: Invalid value: 5: should be less, spec.a: Required value, and 1 more]")));
	vdi_field_errors_truncate(&field_errors, 2, 2);
	assert_true(
		vd_bytes_equal(vdi_field_errors_message(&field_errors),
			       TEXT("[spec.b: Invalid value: 5: should be less, spec.a: Required value]")));
	vdi_field_errors_truncate(&field_errors, 0, 0);
	vdi_field_errors_add(&field_errors, VDI_FIELD_ERROR_REQUIRED, TEXT("x"), VD_BYTES_NONE, "%s", "");
	assert_int_equal(field_errors.text.size, strlen("xRequired value"));
	assert_true(vd_bytes_equal(vdi_field_errors_message(&field_errors), TEXT("x: Required value")));
	vdi_field_errors_fini(&field_errors);
}

/* Fields, values and details are cut after VDI_FIELD_ERROR_VALUE_SIZE bytes, never within a character. */
static void texts_are_cut_at_a_character(void **state)
{
	static const char *const characters[] = { "x", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80" };

	for (size_t width = 1; width <= 4; width++)
		for (size_t offset = 0; offset < width; offset++)
			for (size_t size = VDI_FIELD_ERROR_VALUE_SIZE - 2 * width;
			     size <= VDI_FIELD_ERROR_VALUE_SIZE + 2 * width; size++) {
				struct vdi_field_errors field_errors = { 0 };
				char			text[VDI_FIELD_ERROR_VALUE_SIZE + 16];
				size_t			at = 0, fits;
				struct vd_bytes		field, message;

				while (at < offset)
					text[at++] = '-';
				while (at + width <= size) {
					memcpy(text + at, characters[width - 1], width);
					at += width;
				}
				fits = at;
				if (fits > VDI_FIELD_ERROR_VALUE_SIZE)
					fits = offset + (VDI_FIELD_ERROR_VALUE_SIZE - offset) / width * width;
				vdi_field_errors_add(&field_errors, VDI_FIELD_ERROR_FORBIDDEN,
						     (struct vd_bytes) { text, at }, VD_BYTES_NONE, "%.*s",
						     (int) at, text);
				field = vdi_field_errors_field(&field_errors, 0);
				message = vdi_field_errors_text(&field_errors, 0);
				assert_int_equal(field.size, fits + (at > fits ? 3 : 0));
				assert_memory_equal(field.data, text, fits);
				assert_int_equal(message.size,
						 strlen("Forbidden: ") + fits + (at > fits ? 3 : 0));
				assert_memory_equal((const char *) message.data + 11, text, fits);
				if (at > fits)
					assert_memory_equal((const char *) field.data + fits, "...", 3);
				vdi_field_errors_fini(&field_errors);
			}
}

/* A string is quoted, whichever way it comes; any other value is JSON. */
static void a_node_is_shown_as_it_is(void **state)
{
	static const struct {
		enum vdi_node_kind kind;
		const char	  *text, *shown;
	} rows[] = {
		{ VDI_NODE_STRING, "a\"b\n", "\"a\\\"b\\n\"" },
		{ VDI_NODE_STRING, "\v\x01<", "\"\\v\\x01<\"" },
		{ VDI_NODE_STRING, "", "\"\"" },
		{ VDI_NODE_NUMBER, "1.50", "1.50" },
		{ VDI_NODE_TRUE, "", "true" },
		{ VDI_NODE_NULL, "", "null" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_node		node = { .kind = rows[i].kind, .text = TEXT(rows[i].text) };
		struct vdi_field_errors field_errors = { 0 };
		char			expected[60];

		vdi_field_errors_add_node(&field_errors, VDI_FIELD_ERROR_INVALID, TEXT("a"), &node, "why");
		(void) snprintf(expected, sizeof expected, "a: Invalid value: %s: why", rows[i].shown);
		if (!vd_bytes_equal(vdi_field_errors_message(&field_errors), TEXT(expected)))
			fail_msg("%s", expected);
		vdi_field_errors_fini(&field_errors);
	}
}

static void an_ended_list_is_empty_and_can_be_filled_again(void **state)
{
	struct vdi_field_errors field_errors = { 0 };

	(void) state;
	fill(&field_errors);
	vdi_field_errors_fini(&field_errors);
	assert_int_equal(field_errors.count, 0);
	assert_int_equal(field_errors.kept, 0);
	vdi_field_errors_fini(&field_errors);
	vdi_field_errors_add(&field_errors, VDI_FIELD_ERROR_FORBIDDEN, TEXT("spec.a"), TEXT("1"), "no");
	assert_true(vd_bytes_equal(vdi_field_errors_message(&field_errors), TEXT("spec.a: Forbidden: no")));
	vdi_field_errors_fini(&field_errors);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_are_sorted_as_texts),
		cmocka_unit_test(removed_errors_leave_nothing),
		cmocka_unit_test(many_equal_errors_and_more),
		cmocka_unit_test(texts_are_cut_at_a_character),
		cmocka_unit_test(a_node_is_shown_as_it_is),
		cmocka_unit_test(h101_a_refusal_names_all_field_errors),
		cmocka_unit_test(a_value_that_is_missing),
		cmocka_unit_test(what_is_kept_is_bounded),
		cmocka_unit_test(every_failed_allocation_is_reported),
		cmocka_unit_test(each_kind_has_its_words),
		cmocka_unit_test(long_values_are_cut),
		cmocka_unit_test(an_ended_list_is_empty_and_can_be_filled_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
