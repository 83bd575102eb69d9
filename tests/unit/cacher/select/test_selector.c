/* Unit tests of cacher/select/selector.c and cacher/select/label_name.c. Rows marked "upstream" are those of
 * pkg/labels/selector_test.go. */
#include "vdtest.h"

#include "rand.h"
#include "selector.h"

static struct vdi_label_selector *parse(const char *text)
{
	struct vdi_label_selector *selector = NULL;
	struct vd_error		   error = { 0 };

	if (vdi_label_selector_parse(vd_bytes_of(text), &selector, &error) != VD_OK)
		fail_msg("%s: %s", text, error.message);
	assert_string_equal(error.message, ""); /* nothing is said about what goes well */
	return selector;
}

static void r691_canonical_text(void **state)
{
	static const char *const rows[][2] = {
		/* upstream */
		{ "x=a,y=b,z=c", "x=a,y=b,z=c" },
		{ "", "" },
		{ "x!=a,y=b", "x!=a,y=b" },
		{ "x=", "x=" },
		{ "x= ", "x=" },
		{ "x=,z= ", "x=,z=" },
		{ "x= ,z= ", "x=,z=" },
		{ "!x", "!x" },
		{ "x>1", "x>1" },
		{ "x>1,z<5", "x>1,z<5" },
		/* order, sets, white space, keywords as names and values */
		{ " \t\r\n", "" },
		{ "b=1,a=2", "a=2,b=1" },
		{ "a!=2,a=1", "a!=2,a=1" },
		{ "a==1", "a==1" },
		{ " a  in ( c , b,b )", "a in (b,c)" },
		{ "a notin(x)", "a notin (x)" },
		{ "a in ()", "a in ()" },
		{ "a in (,)", "a in ()" },
		{ "a in (,x)", "a in (,x)" },
		{ "a in (x,)", "a in (,x)" },
		{ "a in (x,,y)", "a in (,x,y)" },
		{ "a in (in,notin)", "a in (in,notin)" },
		{ "in in (in)", "in in (in)" },
		{ "notin=in", "notin=in" },
		{ "in,!notin", "in,!notin" },
		{ "! x", "!x" },
		{ "a = b , c", "a=b,c" },
		{ "a.b/C-d_e.f=G-h_i.j", "a.b/C-d_e.f=G-h_i.j" },
		{ "x>0009", "x>0009" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_label_selector *selector = parse(rows[i][0]);
		struct vdi_label_selector *again;
		struct vd_bytes		   text = vdi_label_selector_text(selector);

		if (!vd_bytes_equal(text, vd_bytes_of(rows[i][1])))
			fail_msg("%s: %.*s", rows[i][0], (int) text.size, (const char *) text.data);
		again = parse(rows[i][1]);
		assert_true(vd_bytes_equal(vdi_label_selector_text(again), text));
		assert_true(vdi_label_selector_hash(again) == vdi_label_selector_hash(selector));
		assert_int_equal(vdi_label_selector_empty(selector), text.size == 0);
		vdi_label_selector_free(selector);
		vdi_label_selector_free(again);
	}
}

#define NAME_REASON                                                                                          \
	"must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "          \
	"alphanumeric character (e.g. 'MyName',  or "                                                        \
	"'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"

static void r691_errors_are_upstreams(void **state)
{
	static const char *const rows[][2] = {
		{ ",", "found ',', expected: !, identifier, or 'end of string'" },
		{ "=a", "found '=', expected: !, identifier, or 'end of string'" },
		{ "(a)", "found '(', expected: !, identifier, or 'end of string'" },
		{ "x,", "found '', expected: identifier after ','" },
		{ "x,,y", "found ',', expected: identifier after ','" },
		{ "x,=", "found '=', expected: identifier after ','" },
		{ "x y", "unable to parse requirement: found 'y', expected: in, notin, =, ==, !=, gt, lt" },
		{ "x !y", "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt" },
		{ "x(", "unable to parse requirement: found '(', expected: in, notin, =, ==, !=, gt, lt" },
		{ "x==a==b", "found '==', expected: ',' or 'end of string'" },
		{ "!x=a", "found '=', expected: ',' or 'end of string'" },
		{ "x=a b", "found 'b', expected: ',' or 'end of string'" },
		{ "!", "unable to parse requirement: found '', expected: identifier" },
		{ "!!x", "unable to parse requirement: found '!', expected: identifier" },
		{ "!,x", "unable to parse requirement: found ',', expected: identifier" },
		{ "x in", "unable to parse requirement: found '' expected: '('" },
		{ "x in a", "unable to parse requirement: found 'a' expected: '('" },
		{ "x in (", "unable to parse requirement: found '', expected: ',', ')' or identifier" },
		{ "x in (=", "unable to parse requirement: found '=', expected: ',', ')' or identifier" },
		{ "x in (a", "unable to parse requirement: found '', expected: ',' or ')'" },
		{ "x in (a b)", "unable to parse requirement: found 'b', expected: ',' or ')'" },
		{ "x in (a,", "unable to parse requirement: found '', expected: ',', or identifier" },
		{ "x in (a,!b)", "unable to parse requirement: found '!', expected: ',', or identifier" },
		{ "x==(a)", "unable to parse requirement: found '(', expected: identifier" },
		{ "x=!a", "unable to parse requirement: found '!', expected: identifier" },
		{ "x<a", "unable to parse requirement: values[0]: Invalid value: \"a\": for 'Gt', 'Lt' "
			 "operators, the value must be an integer" },
		{ "x>9223372036854775808",
		  "unable to parse requirement: values[0]: Invalid value: \"9223372036854775808\": for 'Gt', "
		  "'Lt' operators, the value must be "
		  "an integer" },
		{ "x>", "unable to parse requirement: values[0]: Invalid value: \"\": for 'Gt', 'Lt' "
			"operators, the value must be an integer" },
		{ "/x", "unable to parse requirement: <nil>: Invalid value: \"/x\": prefix part must be "
			"non-empty" },
		{ "-x", "unable to parse requirement: <nil>: Invalid value: \"-x\": name part " NAME_REASON },
		{ "x\"y",
		  "unable to parse requirement: <nil>: Invalid value: \"x\\\"y\": name part " NAME_REASON },
		{ "~", "unable to parse requirement: <nil>: Invalid value: \"~\": name part " NAME_REASON },
		{ "a.b/", "unable to parse requirement: <nil>: Invalid value: \"a.b/\": name part must be "
			  "non-empty; name part " NAME_REASON },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_label_selector *selector = NULL;
		struct vd_error		   error;

		assert_status(vdi_label_selector_parse(vd_bytes_of(rows[i][0]), &selector, &error),
			      VD_BAD_REQUEST);
		assert_string_equal(error.message, rows[i][1]);
		assert_null(selector);
	}
}

/* As Go's lexer reads it, and as %q shows it. */
static void r691_zero_bytes_and_what_is_quoted(void **state)
{
	static const struct {
		struct vd_bytes text;
		const char     *canonical;
	} zeros[] = { { { "x\0=a", 4 }, "x=a" },
		      { { "x=\0a", 4 }, "x=a" },
		      { { "x=a\0,y", 6 }, "x=a,y" },
		      { { "\0x", 2 }, "" },
		      { { "x=a \0y", 6 }, "x=a" } };
	static const char *const quoted[][2] = {
		{ "\xc3\xa9", "\xc3\xa9" },
		{ "a\xe2\x82\xac", "a\xe2\x82\xac" },
		{ "\"", "\\\"" },
		{ "a\\", "a\\\\" },
		{ "\a", "\\a" },
		{ "\b", "\\b" },
		{ "\x0e", "\\x0e" },
		{ "\x1f", "\\x1f" },
		{ "\x7f", "\\x7f" },
		{ "\xff", "\\xff" },
		{ "a~", "a~" },
		{ "\x01z", "\\x01z" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(zeros); i++) {
		struct vdi_label_selector *selector = NULL;

		assert_status(vdi_label_selector_parse(zeros[i].text, &selector, NULL), VD_OK);
		assert_true(
			vd_bytes_equal(vdi_label_selector_text(selector), vd_bytes_of(zeros[i].canonical)));
		vdi_label_selector_free(selector);
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(quoted); i++) {
		struct vdi_label_selector *selector = NULL;
		struct vd_error		   error;
		char			   expected[160];

		snprintf(expected, sizeof expected,
			 "unable to parse requirement: <nil>: Invalid value: \"%s\": name part must consist",
			 quoted[i][1]);
		assert_status(vdi_label_selector_parse(vd_bytes_of(quoted[i][0]), &selector, &error),
			      VD_BAD_REQUEST);
		assert_memory_equal(error.message, expected, strlen(expected));
	}
}

static void r691_errors_of_values(void **state)
{
	static const char *const rows[][2] = {
		{ "x=a||y=b", "found '=', expected" },
		{ "x=a|", "unable to parse requirement: values[0][x]: Invalid value: \"a|\": a valid label "
			  "must be an empty string or consist of" },
		{ "x in (b,-a)",
		  "unable to parse requirement: values[0][x]: Invalid value: \"-a\": a valid label" },
		{ "x in (b,c-)",
		  "unable to parse requirement: values[1][x]: Invalid value: \"c-\": a valid label" },
		{ "x>-1", "unable to parse requirement: values[0][x]: Invalid value: \"-1\": a valid label" },
		{ "x>-", "unable to parse requirement: [values[0]: Invalid value: \"-\": for 'Gt', 'Lt' "
			 "operators, the value must be an integer, "
			 "values[0][x]: Invalid value: \"-\": a valid label" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_label_selector *selector = NULL;
		struct vd_error		   error;

		assert_status(vdi_label_selector_parse(vd_bytes_of(rows[i][0]), &selector, &error),
			      VD_BAD_REQUEST);
		if (i > 0 && strstr(error.message, rows[i][1]) != error.message)
			fail_msg("%s: %s", rows[i][0], error.message);
	}
}

static void r691_names(void **state)
{
	static const struct {
		const char *key;
		bool	    valid;
	} keys[] = {
		{ "a", true },	       { "A1", true },	    { "a-b_c.d", true }, { "1", true },
		{ "", false },	       { "a-", false },	    { ".a", false },	 { "a b", false },
		{ "a/b", true },       { "a.b-c/d", true }, { "A.b/c", false },	 { "a..b/c", false },
		{ "-a/c", false },     { "a-/c", false },   { "a.-b/c", false }, { "a_b/c", false },
		{ "a/", false },       { "/a", false },	    { "a/b/c", false },	 { "a/-", false },
		{ "\xc3\xa9", false }, { "a.b./c", false }, { ".a/c", false },	 { "/", false },
	};
	char text[400];
	char reason[400];

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(keys); i++)
		if (vdi_label_key_valid(vd_bytes_of(keys[i].key), reason, sizeof reason) != keys[i].valid)
			fail_msg("%s", keys[i].key);
	memset(text, 'a', sizeof text);
	assert_true(vdi_label_key_valid((struct vd_bytes) { text, 63 }, NULL, 0));
	assert_false(vdi_label_key_valid((struct vd_bytes) { text, 64 }, reason, sizeof reason));
	assert_string_equal(reason, "name part must be no more than 63 bytes");
	text[253] = '/';
	assert_true(vdi_label_key_valid((struct vd_bytes) { text, 254 + 63 }, NULL, 0));
	text[253] = 'a';
	text[254] = '/';
	assert_false(vdi_label_key_valid((struct vd_bytes) { text, 255 + 63 }, reason, sizeof reason));
	assert_string_equal(reason, "prefix part must be no more than 253 bytes");
	text[254] = 'a';
	/* Two reasons in as little room as there is: the beginning of the whole, and nothing behind the
	 * room. */
	assert_false(vdi_label_key_valid(vd_bytes_of("A./"), NULL, 0));
	{
		char whole[1500], part[1500];

		assert_false(vdi_label_key_valid(vd_bytes_of("A./"), whole, sizeof whole));
		assert_non_null(strstr(whole, "; name part must be non-empty; name part must consist"));
		for (size_t size = 1; size < strlen(whole) + 3; size++) {
			memset(part, '#', sizeof part);
			assert_false(vdi_label_key_valid(vd_bytes_of("A./"), part, size));
			assert_int_equal(strlen(part), VDI_MIN(size - 1, strlen(whole)));
			assert_memory_equal(part, whole, strlen(part));
			assert_int_equal(part[size], '#');
		}
	}
	assert_true(vdi_label_value_valid(VD_BYTES_NONE, NULL, 0));
	assert_true(vdi_label_value_valid((struct vd_bytes) { text, 63 }, NULL, 0));
	assert_false(vdi_label_value_valid((struct vd_bytes) { text, 64 }, reason, sizeof reason));
	assert_string_equal(reason, "must be no more than 63 bytes");
	assert_false(vdi_label_value_valid(vd_bytes_of("a/b"), reason, 8));
	assert_int_equal(strlen(reason), 7);
	assert_false(vdi_label_key_valid(vd_bytes_of("a/b/c"), reason, sizeof reason));
	assert_string_equal(reason,
			    "a valid label key " NAME_REASON
			    " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')");
}

struct label_set {
	struct vd_pair labels[4];
	size_t	       count;
};

/* "x=1 y=2" */
static struct label_set labels_of(const char *text)
{
	struct label_set set = { .count = 0 };

	while (*text) {
		size_t key = strcspn(text, "=");
		size_t value = strcspn(text + key + 1, " ");

		set.labels[set.count++] = (struct vd_pair) { { text, key }, { text + key + 1, value } };
		text += key + 1 + value;
		text += *text == ' ';
	}
	return set;
}

static void r691_matching(void **state)
{
	static const struct {
		const char *selector;
		const char *labels;
		bool	    matches;
	} rows[] = {
		/* upstream */
		{ "", "x=y", true },
		{ "x=y", "x=y", true },
		{ "x=y,z=w", "x=y z=w", true },
		{ "x!=y,z!=w", "x=z z=a", true },
		{ "notin=in", "notin=in", true },
		{ "x", "x=z", true },
		{ "!x", "y=z", true },
		{ "x>1", "x=2", true },
		{ "x<1", "x=0", true },
		{ "x=z", "", false },
		{ "x=y", "x=z", false },
		{ "x=y,z=w", "x=w z=w", false },
		{ "x!=y,z!=w", "x=z z=w", false },
		{ "x", "y=z", false },
		{ "!x", "x=z", false },
		{ "x>1", "x=0", false },
		{ "x<1", "x=2", false },
		{ "foo=bar", "foo=bar baz=blah", true },
		{ "foo=blah", "foo=bar baz=blah", false },
		{ "foo=bar,foobar=bar,baz=blah", "foo=bar baz=blah", false },
		{ "x>1", "x=1", false },
		{ "x<1", "x=1", false },
		/* absent and empty */
		{ "x!=y", "", true },
		{ "x notin (y)", "", true },
		{ "x notin (y)", "x=y", false },
		{ "x notin (y,z)", "x=w", true },
		{ "x in (y)", "", false },
		{ "x in (a,b,c,d,e)", "x=d", true },
		{ "x in (a,b,c,d,e)", "x=f", false },
		{ "x in ()", "x=", true },
		{ "x=", "x=", true },
		{ "x=", "", false },
		{ "x!=", "x=", false },
		{ "x==y", "x=y", true },
		{ "x=1,x!=1", "x=1", false },
		/* numbers */
		{ "x>1", "x=1", false },
		{ "x>1", "", false },
		{ "x<1", "x=a", false },
		{ "x<1", "x=", false },
		{ "x<1", "x=-5", true },
		{ "x>1", "x=+5", true },
		{ "x<1", "x=-9223372036854775808", true },
		{ "x<1", "x=-9223372036854775809", false },
		{ "x>1", "x=9223372036854775807", true },
		{ "x>1", "x=9223372036854775808", false },
		{ "x>1", "x=99999999999999999999999", false },
		{ "x>1", "x=2a", false },
		{ "x>1", "x=-", false },
		{ "x>010", "x=11", true },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_label_selector *selector = parse(rows[i].selector);
		struct label_set	   set = labels_of(rows[i].labels);

		if (vdi_label_selector_matches(selector, set.labels, set.count) != rows[i].matches)
			fail_msg("%s against %s", rows[i].selector, rows[i].labels);
		vdi_label_selector_free(selector);
	}
	assert_true(vdi_label_selector_matches(NULL, NULL, 0));
}

static void r694_exact_requirement(void **state)
{
	static const struct {
		const char *selector;
		const char *value; /* of x; NULL: none */
	} rows[] = {
		{ "x=a", "a" },		 { "x==a", "a" },  { "x in (a)", "a" },	 { "x in (a,a)", "a" },
		{ "x in (a,b)", NULL },	 { "x!=a", NULL }, { "x", NULL },	 { "!x", NULL },
		{ "x notin (a)", NULL }, { "x>1", NULL },  { "x!=b,x=a", NULL }, { "x=a,x!=b", "a" },
		{ "y=1,x=a,a=2", "a" },	 { "y=a", NULL },  { "", NULL },	 { "x=", "" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_label_selector *selector = parse(rows[i].selector);
		struct vd_bytes		   value = { "unset", 5 };
		bool exact = vdi_label_selector_exact(selector, vd_bytes_of("x"), &value);

		if (exact != (rows[i].value != NULL))
			fail_msg("%s", rows[i].selector);
		assert_true(vd_bytes_equal(value, vd_bytes_of(exact ? rows[i].value : "unset")));
		vdi_label_selector_free(selector);
	}
}

static void r695_empty_predicate(void **state)
{
	struct vdi_label_selector *selector = parse("x in (a)");

	(void) state;
	assert_true(vdi_label_selector_empty(NULL));
	assert_false(vdi_label_selector_empty(selector));
	assert_null(vdi_label_selector_free(selector));
	assert_null(vdi_label_selector_free(NULL));
}

/* A predicate has it in its own block. */
static void r691_a_copy_elsewhere_is_the_same_selector(void **state)
{
	struct label_set	   wanted = labels_of("a=2 c=7"), unwanted = labels_of("a=4 c=7");
	struct vdi_label_selector *selector = parse("!b,c>6,a in (3,2,1,2),d!=,a!=9");
	size_t			   size = vdi_label_selector_size(selector);
	struct vdi_label_selector *copy = malloc(size);
	static const char *const   keys[] = { "a", "a", "b", "c", "d" };

	(void) state;
	memcpy(copy, selector, size);
	memset(selector, 0xEE, size);
	vdi_label_selector_free(selector);
	assert_int_equal(vdi_label_selector_size(copy), size);
	assert_true(
		vd_bytes_equal(vdi_label_selector_text(copy), vd_bytes_of("a in (1,2,3),a!=9,!b,c>6,d!=")));
	assert_true(vdi_label_selector_matches(copy, wanted.labels, wanted.count));
	assert_false(vdi_label_selector_matches(copy, unwanted.labels, unwanted.count));
	assert_int_equal(vdi_label_selector_count(copy), VDI_ARRAY_SIZE(keys));
	for (size_t i = 0; i < VDI_ARRAY_SIZE(keys); i++)
		assert_true(vd_bytes_equal(vdi_label_selector_key(copy, i), vd_bytes_of(keys[i])));
	assert_int_equal(vdi_label_selector_size(NULL), 0);
	assert_int_equal(vdi_label_selector_count(NULL), 0);
	free(copy);
}

/* As many values as commas can hold, and the longest names. */
static void r691_the_largest_selectors(void **state)
{
	char			  *text = malloc(VDI_SELECTOR_SIZE_MAX + 1);
	char			   key[254 + 63 + 1], value[64];
	struct vdi_label_selector *selector = NULL;
	struct vd_bytes		   exact;
	size_t			   size;

	(void) state;
	size = (size_t) snprintf(text, VDI_SELECTOR_SIZE_MAX, "x in (");
	for (unsigned i = 0; size < VDI_SELECTOR_SIZE_MAX - 7; i++)
		size += (size_t) snprintf(text + size, VDI_SELECTOR_SIZE_MAX - size, "%05u,", i);
	text[size - 1] = ')';
	assert_status(vdi_label_selector_parse((struct vd_bytes) { text, size }, &selector, NULL), VD_OK);
	assert_true(vd_bytes_equal(vdi_label_selector_text(selector), (struct vd_bytes) { text, size }));
	for (unsigned i = 0; i < 20000; i += 7) {
		struct vd_pair label = { vd_bytes_of("x"), { value, 5 } };

		snprintf(value, sizeof value, "%05u", i);
		assert_int_equal(vdi_label_selector_matches(selector, &label, 1), i < (size - 7 + 1) / 6);
	}
	vdi_label_selector_free(selector);
	memset(key, 'k', sizeof key);
	key[253] = '/';
	key[sizeof key - 1] = 0;
	memset(value, 'v', sizeof value);
	value[63] = 0;
	size = (size_t) snprintf(text, VDI_SELECTOR_SIZE_MAX, "%s=%s", key, value);
	assert_status(vdi_label_selector_parse((struct vd_bytes) { text, size }, &selector, NULL), VD_OK);
	assert_true(vdi_label_selector_exact(selector, vd_bytes_of(key), &exact));
	assert_true(vd_bytes_equal(exact, vd_bytes_of(value)));
	vdi_label_selector_free(selector);
	free(text);
}

/* As the rule says it: each requirement by itself, of the first label with its key. */
static bool matches_one_by_one(const struct vdi_label_selector *selector, const struct vd_pair *labels,
			       size_t count)
{
	for (size_t i = 0; i < vdi_label_selector_count(selector); i++) {
		const struct vd_bytes *value = NULL;

		for (size_t k = 0; k < count && value == NULL; k++)
			if (vd_bytes_equal(labels[k].key, vdi_label_selector_key(selector, i)))
				value = &labels[k].value;
		if (!vdi_label_selector_takes(selector, i, value))
			return false;
	}
	return true;
}

static void r691_matching_is_that_of_each_requirement(void **state)
{
	static const char *const forms[] = { "%c",   "!%c", "%c=1", "%c!=1", "%c in (1,2)", "%c notin (1,2)",
					     "%c>1", "%c<2" };
	static const char *const keys[] = { "a", "b", "c", "d", "e" };
	static const char *const values[] = { "0", "1", "2", "x" };
	unsigned		 matching = 0;
	struct vdi_rand		 rand;

	(void) state;
	vdi_rand_init(&rand, 691);
	for (unsigned round = 0; round < 20000; round++) {
		struct vdi_label_selector *selector = NULL;
		struct vd_pair		   labels[8];
		char			   text[256];
		size_t			   size = 0, count = vdi_rand_below(&rand, VDI_ARRAY_SIZE(labels));

		for (uint64_t left = 1 + vdi_rand_below(&rand, 5); left; left--) {
			char form[32];

			(void) snprintf(form, sizeof form, "%s%s", size ? "," : "",
					forms[vdi_rand_below(&rand, VDI_ARRAY_SIZE(forms))]);
			size += (size_t) snprintf(text + size, sizeof text - size, form,
						  'a' + (int) vdi_rand_below(&rand, 5));
		}
		for (size_t k = 0; k < count; k++)
			labels[k] = (struct vd_pair) { vd_bytes_of(keys[vdi_rand_below(&rand, 5)]),
						       vd_bytes_of(values[vdi_rand_below(&rand, 4)]) };
		assert_status(vdi_label_selector_parse((struct vd_bytes) { text, size }, &selector, NULL),
			      VD_OK);
		if (vdi_label_selector_matches(selector, labels, count) !=
		    matches_one_by_one(selector, labels, count))
			fail_msg("\"%s\" with %zu labels", text, count);
		matching += vdi_label_selector_matches(selector, labels, count);
		vdi_label_selector_free(selector);
	}
	assert_in_range(matching, 2000, 18000);
}

static void selectors_are_bounded(void **state)
{
	struct vdi_label_selector *selector = NULL;
	struct vd_error		   error;
	size_t			   size = VDI_SELECTOR_SIZE_MAX + 1;
	char			  *text = malloc(size);

	(void) state;
	memset(text, ' ', size);
	assert_status(vdi_label_selector_parse((struct vd_bytes) { text, size - 1 }, &selector, NULL), VD_OK);
	selector = vdi_label_selector_free(selector);
	assert_status(vdi_label_selector_parse((struct vd_bytes) { text, size }, &selector, &error),
		      VD_BAD_REQUEST);
	for (size_t i = 0; i < VDI_SELECTOR_REQUIREMENTS_MAX + 1; i++)
		memcpy(text + i * 2, "a,", 2);
	assert_status(
		vdi_label_selector_parse((struct vd_bytes) { text, VDI_SELECTOR_REQUIREMENTS_MAX * 2 - 1 },
					 &selector, NULL),
		VD_OK);
	selector = vdi_label_selector_free(selector);
	assert_status(
		vdi_label_selector_parse((struct vd_bytes) { text, VDI_SELECTOR_REQUIREMENTS_MAX * 2 + 1 },
					 &selector, &error),
		VD_BAD_REQUEST);
	assert_string_equal(error.message, "label selector has more than 1000 requirements");
	free(text);
}

static void torture_every_allocation(void **state)
{
	int64_t	 live = vdi_alloc_live();
	uint64_t nth = 1;

	(void) state;
	for (;; nth++) {
		struct vdi_label_selector *selector = NULL;
		struct vd_error		   error = { 0 };
		vd_status		   status;

		vdi_alloc_fail_nth(nth, 1);
		status = vdi_label_selector_parse(vd_bytes_of("a in (1,2,3,4,5,6,7,8,9),b,c,d,e,f,g,h,i,j=k"),
						  &selector, &error);
		assert_status(status, vdi_alloc_failed() ? VD_NOMEM : VD_OK);
		assert_string_equal(error.message, status == VD_OK ? "" : "out of memory");
		vdi_alloc_fail_nth(0, 0);
		vdi_label_selector_free(selector);
		assert_int_equal(vdi_alloc_live(), live);
		if (status == VD_OK)
			break;
	}
	assert_true(nth > 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r691_canonical_text),
		cmocka_unit_test(r691_errors_are_upstreams),
		cmocka_unit_test(r691_errors_of_values),
		cmocka_unit_test(r691_zero_bytes_and_what_is_quoted),
		cmocka_unit_test(r691_names),
		cmocka_unit_test(r691_matching),
		cmocka_unit_test(r694_exact_requirement),
		cmocka_unit_test(r695_empty_predicate),
		cmocka_unit_test(r691_a_copy_elsewhere_is_the_same_selector),
		cmocka_unit_test(r691_the_largest_selectors),
		cmocka_unit_test(r691_matching_is_that_of_each_requirement),
		cmocka_unit_test(selectors_are_bounded),
		cmocka_unit_test(torture_every_allocation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
