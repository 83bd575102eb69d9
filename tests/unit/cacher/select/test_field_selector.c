/* Unit tests of cacher/select/field_selector.c. */
#include "vdtest.h"

#include "selector.h"

static struct vdi_field_selector *parse(const char *text)
{
	struct vdi_field_selector *selector = NULL;
	struct vd_error		   error = { 0 };

	if (vdi_field_selector_parse(vd_bytes_of(text), &selector, &error) != VD_OK)
		fail_msg("%s: %s", text, error.message);
	assert_string_equal(error.message, ""); /* nothing is said about what goes well */
	return selector;
}

static void r692_canonical_text(void **state)
{
	static const char *const rows[][2] = {
		{ "", "" },
		{ ",", "" },
		{ "a=b", "a=b" },
		{ "a==b", "a=b" },
		{ "a!=b", "a!=b" },
		{ "b=1,a=2", "a=2,b=1" },
		{ "a=b,,c=d", "a=b,c=d" },
		{ "a=", "a=" },
		{ "=b", "=b" },
		{ "=", "" },
		{ "==", "" },
		{ "!=", "" },
		{ "a=b,=", "a=b" },
		{ " a = b ", " a = b " },
		{ "a=x\\,y", "a=x\\,y" },
		{ "a=x\\=y", "a=x\\=y" },
		{ "a=x\\\\,b=c", "a=x\\\\,b=c" },
		{ "a!b=c", "a!b=c" },
		{ "!a=c", "!a=c" },
		{ "a=!", "a=!" },
		{ "a\\=b", "a\\=b" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_field_selector *selector = parse(rows[i][0]);
		struct vdi_field_selector *again = parse(rows[i][1]);
		struct vd_bytes		   text = vdi_field_selector_text(selector);

		if (!vd_bytes_equal(text, vd_bytes_of(rows[i][1])))
			fail_msg("%s: %.*s", rows[i][0], (int) text.size, (const char *) text.data);
		assert_true(vd_bytes_equal(vdi_field_selector_text(again), text));
		assert_true(vdi_field_selector_hash(again) == vdi_field_selector_hash(selector));
		assert_int_equal(vdi_field_selector_empty(selector), text.size == 0);
		vdi_field_selector_free(selector);
		vdi_field_selector_free(again);
	}
}

#define FIFTY "01234567890123456789012345678901234567890123456789"

static void r692_errors_are_upstreams(void **state)
{
	static const char *const rows[][2] = {
		{ "a", "invalid selector: 'a'; can't understand 'a'" },
		{ "a=b,c", "invalid selector: 'a=b,c'; can't understand 'c'" },
		{ "z,a", "invalid selector: 'z,a'; can't understand 'a'" },
		{ "a!", "invalid selector: 'a!'; can't understand 'a!'" },
		{ "a=b=c", "invalid field selector: unescaped character in value: 61" },
		{ "a===b", "invalid field selector: unescaped character in value: 61" },
		{ "a=\\x", "invalid field selector: invalid escape sequence: \\x" },
		{ "a=\\\xc3\xa9t", "invalid field selector: invalid escape sequence: \\\xc3\xa9" },
		{ "a=b\\", "invalid field selector: invalid escape sequence: \\" },
		{ FIFTY FIFTY			    FIFTY "x",
		  "invalid selector: '" FIFTY FIFTY FIFTY "'; can't understand '" FIFTY FIFTY FIFTY "'" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_field_selector *selector = NULL;
		struct vd_error		   error;

		assert_status(vdi_field_selector_parse(vd_bytes_of(rows[i][0]), &selector, &error),
			      VD_BAD_REQUEST);
		assert_string_equal(error.message, rows[i][1]);
		assert_null(selector);
	}
}

static void r692_matching(void **state)
{
	static const struct vd_pair fields[] = {
		{ { "metadata.name", 13 }, { "n", 1 } },
		{ { "spec.nodeName", 13 }, { "a,b=c\\", 6 } },
		{ { "empty", 5 }, { NULL, 0 } },
	};
	static const struct {
		const char *selector;
		bool	    matches;
	} rows[] = {
		{ "", true },
		{ "metadata.name=n", true },
		{ "metadata.name==n", true },
		{ "metadata.name!=n", false },
		{ "metadata.name=m", false },
		{ "metadata.name!=m", true },
		{ "spec.nodeName=a\\,b\\=c\\\\", true },
		{ "spec.nodeName!=a\\,b\\=c\\\\", false },
		{ "absent=", true },
		{ "absent!=", false },
		{ "absent!=x", true },
		{ "absent=x", false },
		{ "empty=", true },
		{ "metadata.name=n,absent=", true },
		{ "metadata.name=n,absent=x", false },
		{ "metadata.name=n,metadata.name=m", false },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_field_selector *selector = parse(rows[i].selector);

		if (vdi_field_selector_matches_pairs(selector, fields, VDI_ARRAY_SIZE(fields)) !=
		    rows[i].matches)
			fail_msg("%s", rows[i].selector);
		vdi_field_selector_free(selector);
	}
	assert_true(vdi_field_selector_matches_pairs(NULL, NULL, 0));
}

static void r694_exact_requirement(void **state)
{
	static const struct {
		const char *selector;
		const char *value; /* of x; NULL: none */
	} rows[] = {
		{ "x=a", "a" },	      { "x==a", "a" },	   { "x!=a", NULL },
		{ "y=a", NULL },      { "x!=a,x=b", "b" }, { "x=b,x=a", "a" },
		{ "x=a\\,b", "a,b" }, { "x=", "" },	   { "", NULL },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_field_selector *selector = parse(rows[i].selector);
		struct vd_bytes		   value = { "unset", 5 };
		bool exact = vdi_field_selector_exact(selector, vd_bytes_of("x"), &value);

		if (exact != (rows[i].value != NULL))
			fail_msg("%s", rows[i].selector);
		assert_true(vd_bytes_equal(value, vd_bytes_of(exact ? rows[i].value : "unset")));
		vdi_field_selector_free(selector);
	}
	assert_true(vdi_field_selector_empty(NULL));
}

/* A predicate has it in its own block. */
static void r694_a_copy_elsewhere_is_the_same_selector(void **state)
{
	const char		  *text = "a=b\\,c,d!=e\\=,f=";
	struct vdi_field_selector *selector = parse(text);
	size_t			   size = vdi_field_selector_size(selector);
	struct vdi_field_selector *copy = malloc(size);
	struct vdi_field_term	   term;

	(void) state;
	memcpy(copy, selector, size);
	memset(selector, 0xEE, size);
	vdi_field_selector_free(selector);
	assert_int_equal(vdi_field_selector_size(copy), size);
	assert_true(vd_bytes_equal(vdi_field_selector_text(copy), vd_bytes_of(text)));
	assert_int_equal(vdi_field_selector_count(copy), 3);
	term = vdi_field_selector_term(copy, 1);
	assert_true(vd_bytes_equal(term.field, vd_bytes_of("d")));
	assert_true(vd_bytes_equal(term.value, vd_bytes_of("e=")));
	assert_true(term.negated);
	term = vdi_field_selector_term(copy, 2);
	assert_true(vd_bytes_equal(term.field, vd_bytes_of("f")));
	assert_int_equal(term.value.size, 0);
	assert_false(term.negated);
	assert_int_equal(vdi_field_selector_size(NULL), 0);
	assert_int_equal(vdi_field_selector_count(NULL), 0);
	free(copy);
}

static void selectors_are_bounded(void **state)
{
	struct vdi_field_selector *selector = NULL;
	struct vd_error		   error;
	size_t			   size = VDI_SELECTOR_SIZE_MAX + 1;
	char			  *text = malloc(size);

	(void) state;
	memset(text, ',', size);
	assert_status(vdi_field_selector_parse((struct vd_bytes) { text, size - 1 }, &selector, NULL), VD_OK);
	selector = vdi_field_selector_free(selector);
	assert_status(vdi_field_selector_parse((struct vd_bytes) { text, size }, &selector, &error),
		      VD_BAD_REQUEST);
	for (size_t i = 0; i < VDI_SELECTOR_REQUIREMENTS_MAX + 1; i++)
		memcpy(text + i * 4, "a=b,", 4);
	assert_status(vdi_field_selector_parse((struct vd_bytes) { text, VDI_SELECTOR_REQUIREMENTS_MAX * 4 },
					       &selector, NULL),
		      VD_OK);
	selector = vdi_field_selector_free(selector);
	assert_status(
		vdi_field_selector_parse((struct vd_bytes) { text, VDI_SELECTOR_REQUIREMENTS_MAX * 4 + 4 },
					 &selector, &error),
		VD_BAD_REQUEST);
	assert_string_equal(error.message, "field selector has more than 1000 terms");
	free(text);
}

static void torture_every_allocation(void **state)
{
	int64_t	 live = vdi_alloc_live();
	uint64_t nth = 1;

	(void) state;
	for (;; nth++) {
		struct vdi_field_selector *selector = NULL;
		struct vd_error		   error = { 0 };
		vd_status		   status;

		vdi_alloc_fail_nth(nth, 1);
		status = vdi_field_selector_parse(vd_bytes_of("a=1,b=2,c=3,d=4,e=5,f=6,g=7,h=8,i=9,j!=\\,"),
						  &selector, &error);
		assert_status(status, vdi_alloc_failed() ? VD_NOMEM : VD_OK);
		assert_string_equal(error.message, status == VD_OK ? "" : "out of memory");
		vdi_alloc_fail_nth(0, 0);
		vdi_field_selector_free(selector);
		assert_int_equal(vdi_alloc_live(), live);
		if (status == VD_OK)
			break;
	}
	assert_true(nth > 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r692_canonical_text),
		cmocka_unit_test(r692_errors_are_upstreams),
		cmocka_unit_test(r692_matching),
		cmocka_unit_test(r694_exact_requirement),
		cmocka_unit_test(r694_a_copy_elsewhere_is_the_same_selector),
		cmocka_unit_test(selectors_are_bounded),
		cmocka_unit_test(torture_every_allocation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
