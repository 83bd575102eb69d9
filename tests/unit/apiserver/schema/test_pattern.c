/* Unit tests of apiserver/schema/pattern.c: Go's regular expressions by example; texts of faults are Go's. */
#include "vdtest.h"

#include "pattern.h"
#include "pattern_parts.h"
#include "rand.h"

#define PLENTY 100000000

static vd_status compile_pattern(struct vd_bytes text, struct vdi_pattern **ret_pattern,
				 struct vd_error *reterr)
{
	uint64_t work = PLENTY;

	return vdi_pattern_compile(text, &work, ret_pattern, reterr);
}

static bool matches(const char *pattern_text, const char *text)
{
	struct vdi_pattern *pattern;
	struct vd_error	    error = { 0 };
	uint64_t	    work = PLENTY;
	bool		    found = false;

	if (compile_pattern(vd_bytes_of(pattern_text), &pattern, &error) != VD_OK)
		fail_msg("%s: %s", pattern_text, error.message);
	assert_status(vdi_pattern_match(pattern, vd_bytes_of(text), &work, &found), VD_OK);
	assert_true(work < PLENTY);
	(void) vdi_pattern_free(pattern);
	return found;
}

/* A zero is a character like others: the text does not begin behind it. */
static void a_zero_is_a_character(void **state)
{
	static const struct {
		const char *pattern;
		bool	    found;
	} rows[] = { { "^a", false },	       { "a$", true },		{ "^.a$", true },
		     { "^a$", false },	       { "\\ba", true },	{ "(?:x|^)a", false },
		     { "(?:x|^).a", true },    { "(?m)^a", false },	{ "(?m)^.a", true },
		     { "(?m)^\\x00a$", true }, { "[^\\x00-b]", false }, { "^[^b]", true } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_pattern *pattern;
		uint64_t	    work = PLENTY;
		bool		    found;

		assert_status(compile_pattern(vd_bytes_of(rows[i].pattern), &pattern, NULL), VD_OK);
		assert_status(vdi_pattern_match(pattern, (struct vd_bytes) { "\0a", 2 }, &work, &found),
			      VD_OK);
		if (found != rows[i].found)
			fail_msg("%s", rows[i].pattern);
		(void) vdi_pattern_free(pattern);
	}
}

static void a_zero_is_no_end(void **state)
{
	static const struct {
		const char *pattern;
		bool	    found;
	} rows[] = { { "a$", false },	{ "a.$", true },  { "(?m)a$", false },
		     { "a\\z", false }, { "a\\b", true }, { "(?m)a.$", true } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_pattern *pattern;
		uint64_t	    work = PLENTY;
		bool		    found;

		assert_status(compile_pattern(vd_bytes_of(rows[i].pattern), &pattern, NULL), VD_OK);
		assert_status(vdi_pattern_match(pattern, (struct vd_bytes) { "a", 2 }, &work, &found), VD_OK);
		if (found != rows[i].found)
			fail_msg("%s", rows[i].pattern);
		(void) vdi_pattern_free(pattern);
	}
}

static void what_matches_and_what_does_not(void **state)
{
	static const struct {
		const char *pattern, *yes, *no;
	} rows[] = {
		{ "", "", NULL },
		{ "a", "bab", "b" },
		{ "^a$", "a", "a\n" },
		{ "^(\\d+|\\*)(/\\d+)?(\\s+(\\d+|\\*)(/\\d+)?){4}$", "* * * * */5", "* * * *" },
		{ "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a-b", "a-" },
		{ "a{2,3}$", "caaa", "ca" },
		{ "^a{2}$", "aa", "aaa" },
		{ "^a{2,}$", "aaaaa", "a" },
		{ "^a{0}b$", "b", "ab" },
		{ "a{,2}", "a{,2}", "aa" },
		{ "a{x", "a{x", "aaa" },
		{ "(?i)^abc$", "aBC", "abd" },
		{ "(?i:a)b", "Ab", "AB" },
		{ "^(?i)a|b$", "xB", "c" },
		{ "a.c",
		  "a\xC3\xA9"
		  "c",
		  "a\nc" },
		{ "(?s)a.c", "a\nc", "ac" },
		{ "(?m)^b$", "a\nb\nc", "ab" },
		{ "[^a]", "\n", "aaa" },
		{ "[]a]", "]", "b" },
		{ "[a\\]]+$", "]a]", "b" },
		{ "[a-]", "-", "b" },
		{ "[[:alpha:]_]", "_", "1" },
		{ "[[:^alpha:]]", "1", "a" },
		{ "^[a[:b]+$", "a[:b", "c" }, /* no class without its end */
		{ "^[[:]+$", "[:", "a" },
		{ "^[[a:]]$", "a]", "b]" },
		{ "[^\\d]", "a", "123" },
		{ "\\D\\W\\S", "a-b", "a1b" },
		{ "\\bfoo\\b", "a foo b", "afoo" },
		{ "\\Boo", "foo", "oo" },
		{ "\\x41\\x{e9}\\101",
		  "A\xC3\xA9"
		  "A",
		  "A" },
		{ "^\\Qa.b*\\E+$", "a.b***", "aXb" },
		{ "(?P<year>\\d{4})-(?<month>\\d\\d)", "2026-11", "26-11" },
		{ "^(a|b|cd)*$", "acdb", "acb" },
		{ "^(|a)+$", "aa", "b" },
		{ "^(a*)*$", "aaa", "b" },
		{ "x*", "", NULL },
		{ "a*?b", "aab", "a" },
		{ "^\xE2\x82\xAC{2}$", "\xE2\x82\xAC\xE2\x82\xAC", "\xE2\x82\xAC" },
		{ "[\xC3\xA0-\xC3\xBF]", "\xC3\xA9", "e" },
		{ "\\.", ".", "a" },
		{ "\\A\\w+\\z", "abc_1", "abc 1" },
		{ "^((https|http)://)?[a-z]+(\\.[a-z]+)+$", "http://a.b", "http:/a.b" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		if (!matches(rows[i].pattern, rows[i].yes))
			fail_msg("%s does not match %s", rows[i].pattern, rows[i].yes);
		if (rows[i].no && matches(rows[i].pattern, rows[i].no))
			fail_msg("%s matches %s", rows[i].pattern, rows[i].no);
	}
}

static void what_is_refused(void **state)
{
	static const struct {
		const char *pattern, *message;
	} rows[] = {
		{ "(", "missing closing ): `(`" },
		{ "a)", "unexpected ): `a)`" },
		{ "[a", "missing closing ]: `[a`" },
		{ "[z-a]", "invalid character class range: `z-a`" },
		{ "*", "missing argument to repetition operator: `*`" },
		{ "a|*", "missing argument to repetition operator: `*`" },
		{ "a**", "invalid nested repetition operator: `**`" },
		{ "a{2}{3}", "invalid nested repetition operator: `{2}{3}`" },
		{ "a{1001}", "invalid repeat count: `{1001}`" },
		{ "a{3,2}", "invalid repeat count: `{3,2}`" },
		{ "\\q", "invalid escape sequence: `\\q`" },
		{ "(a)\\1", "invalid escape sequence: `\\1`" },
		{ "a\\", "trailing backslash at end of expression: ``" },
		{ "(?=a)", "invalid or unsupported Perl syntax: `(?=`" },
		{ "(?!a)", "invalid or unsupported Perl syntax: `(?!`" },
		{ "(?<=a)", "invalid or unsupported Perl syntax: `(?<`" },
		{ "(?P<a-b>c)", "invalid named capture: `(?P<a-b>`" },
		{ "[[:nope:]]", "invalid character class range: `[:nope:]`" },
	};
	struct vdi_pattern *pattern;

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_error error = { 0 };
		char		wanted[200];

		(void) snprintf(wanted, sizeof wanted, "error parsing regexp: %s", rows[i].message);
		assert_status(compile_pattern(vd_bytes_of(rows[i].pattern), &pattern, &error), VD_INVALID);
		assert_string_equal(error.message, wanted);
	}
}

static vd_status compile_repeated(const char *begin, const char *part, size_t count, const char *end)
{
	char		   *text = vdi_alloc(strlen(begin) + strlen(part) * count + strlen(end) + 1);
	struct vdi_pattern *pattern;
	vd_status	    status;

	strcpy(text, begin);
	for (size_t i = 0; i < count; i++)
		strcat(text, part);
	strcat(text, end);
	status = compile_pattern(vd_bytes_of(text), &pattern, NULL);
	if (status == VD_OK)
		(void) vdi_pattern_free(pattern);
	vdi_free(text);
	return status;
}

static void patterns_are_bounded(void **state)
{
	(void) state;
	assert_status(compile_repeated("", "(", VDI_PATTERN_DEPTH_MAX + 1, ""), VD_INVALID);
	assert_status(compile_repeated("", "a", VDI_PATTERN_SIZE_MAX + 1, ""), VD_INVALID);
	assert_status(compile_repeated("", "a|", 8000, "b"), VD_OK);
	assert_status(compile_repeated("", "a", VDI_PATTERN_SIZE_MAX, ""), VD_OK);
	assert_status(compile_repeated("a{1000}", "", 0, ""), VD_OK);
	assert_status(compile_repeated("((a{100}){100}){100}", "", 0, ""), VD_INVALID);
}

/* Steps are counted where a part is visited: a repetition of nothing builds nothing and takes time all the
 * same. Without that this test never ends. */
static void repetitions_of_nothing_are_counted(void **state)
{
	static const char *const hostile[] = {
		"(((){1000}){1000}){1000}",
		"((((){1000}){1000}){1000}){1000}",
		"((((((((((a{0}){1000}){1000}){1000}){1000}){1000}){1000}){1000}){1000}){1000})",
		"(((|){1000}){1000}){1000}",
		"((((a{0,0}b{0}){0,1000}){0,1000}){0,1000}){0,1000}",
		"((((){1000,}){1000,}){1000,}){1000,}",
		"(((^{1000}){1000}){1000}){1000}"
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(hostile); i++) {
		struct vdi_pattern *pattern = NULL;
		uint64_t	    work = PLENTY;

		assert_status(vdi_pattern_compile(vd_bytes_of(hostile[i]), &work, &pattern, NULL),
			      VD_INVALID);
		assert_in_range(PLENTY - work, VDI_PATTERN_STEPS_MAX, VDI_PATTERN_WORK_MAX + 1);
		work = 1000;
		assert_status(vdi_pattern_compile(vd_bytes_of(hostile[i]), &work, &pattern, NULL),
			      VD_TOO_BIG);
		assert_int_equal(work, 0);
		assert_null(pattern);
	}
	assert_true(matches("^(((){10}){10}){10}$", ""));
}

/* What makes a backtracking matcher take for ever costs text times program here, and never more than it was
 * given. */
static void work_is_linear_and_bounded(void **state)
{
	static const char *const hostile[] = { "^(a*)*b$", "^(a|aa)+$", "(a?){50}a{50}$", "(x+x+)+y" };
	char			 text[2001];

	(void) state;
	memset(text, 'a', sizeof text - 1);
	text[sizeof text - 1] = 0;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(hostile); i++) {
		struct vdi_pattern *pattern;
		uint64_t	    work = 2000 * 2 * 400;
		bool		    found;

		assert_status(compile_pattern(vd_bytes_of(hostile[i]), &pattern, NULL), VD_OK);
		assert_status(vdi_pattern_match(pattern, vd_bytes_of(text), &work, &found), VD_OK);
		work = 100;
		assert_status(vdi_pattern_match(pattern, vd_bytes_of(text), &work, &found), VD_TOO_BIG);
		assert_int_equal(work, 0);
		(void) vdi_pattern_free(pattern);
	}
}

static void every_failed_allocation_is_reported(void **state)
{
	int64_t live = vdi_alloc_live();

	(void) state;
	for (uint64_t nth = 1;; nth++) {
		struct vdi_pattern *pattern = NULL;
		uint64_t	    work = PLENTY;
		bool		    failed, found;
		vd_status	    status;

		vdi_alloc_fail_nth(nth, 1);
		status = compile_pattern(vd_bytes_of("(?i)^[^a-z\\D]{3,9}(a|b)*\\w$"), &pattern, NULL);
		if (status == VD_OK)
			status = vdi_pattern_match(pattern, vd_bytes_of("abc"), &work, &found);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		(void) vdi_pattern_free(pattern);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		assert_int_equal(vdi_alloc_live(), live);
		if (!failed)
			break;
	}
}

/* Classes of random ranges, folded and negated, against a set of characters. */
static void classes_are_sets_of_characters(void **state)
{
	static const char plain[] = "09AJKSZajkszAZaz@[`{ !~/:";
	struct vdi_rand	  rand;

	vdi_rand_init(&rand, 3);
	for (int round = 0; round < 400; round++) {
		bool folded = round % 2, negated = round / 2 % 2, set[128] = { false };
		char pattern[80] = "";
		int  count = 1 + (int) vdi_rand_below(&rand, 4);

		snprintf(pattern, sizeof pattern, "%s^[%s", folded ? "(?i)" : "", negated ? "^" : "");
		for (int i = 0; i < count; i++) {
			unsigned from = (unsigned char) plain[vdi_rand_below(&rand, sizeof plain - 1)],
				 to = (unsigned char) plain[vdi_rand_below(&rand, sizeof plain - 1)];

			if (from > to)
				to = from;
			snprintf(pattern + strlen(pattern), sizeof pattern - strlen(pattern),
				 "\\x%02x-\\x{%x}", from, to);
			for (unsigned c = from; c <= to; c++) {
				set[c] = true;
				if (folded && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
					set[c ^ 0x20] = true;
			}
		}
		snprintf(pattern + strlen(pattern), sizeof pattern - strlen(pattern), "]$");
		for (unsigned c = 1; c < 128; c++) {
			char text[2] = { (char) c, 0 };

			if (c != 'k' && c != 's' && c != 'K' && c != 'S' &&
			    matches(pattern, text) != (set[c] != negated))
				fail_msg("%s with %02x", pattern, c);
		}
	}
}

static void what_is_no_pattern(void **state)
{
	static const char *const bad[] = {
		"\\pL",	      "\\p{Greek}", "\\P",    "[\\pL]", "[\\p{L", "\\p",	 "(?-)",    "(?i-)",
		"(?--i)",     "(?i",	    "(?",     "(?<",	"(?<n",	  "(?<n)",	 "(?<>a)",  "(?P<n",
		"(?P<n-a>x)", "(?P=n)",	    "(?<=a)", "(?<!a)", "(?=a)",  "(?x)",	 "(",	    ")",
		"a)",	      "(a",	    "[a",     "[",	"[]",	  "[z-a]",	 "[a-\\d]", "\\",
		"\\x",	      "\\x1",	    "\\x{",   "\\x{}",	"\\x{1",  "\\x{110000}", "\\xg0",   "\\8",
		"\\y",	      "*",	    "+a",     "?",	"a**",	  "a+*",	 "{1}",	    "a{1001}",
		"a{2,1}",     "a{1,1001}",  "[[:x:]]"
	};
	static const char *const good[] = { "(?i-s)a",	   "(?U)a",	 "(?-U)a",
					    "(?ims)a",	   "(?i:a)",	 "(?-i:a)",
					    "(?<n>a)",	   "(?P<n_1>a)", "(?:a)",
					    "[a-]",	   "[-a]",	 "[]a]",
					    "[^]a]",	   "\\x41",	 "\\x{41}",
					    "\\x{10ffff}", "a*?",	 "a+?",
					    "a??",	   "a{1000}",	 "a{1,1}?",
					    "a{",	   "a{,1}",	 "a|",
					    "|",	   "()",	 "\\.",
					    "\\-",	   "\\_",	 "[\\d\\s\\w-]",
					    "\\Qa*\\E",	   "\\07",	 "\\a\\f\\t\\n\\r\\v",
					    "(?s).",	   "\\bA\\B",	 "\\Aa\\z" };

	/* Bytes behind the pattern, such as the rest of a document, do not change what it means; behind the
	 * shortest copy none may be read at all. */
	static const char tails[] = "])}a0*\\|:>-";

	for (size_t i = 0; i < VDI_ARRAY_SIZE(bad) + VDI_ARRAY_SIZE(good); i++) {
		const char     *text = i < VDI_ARRAY_SIZE(bad) ? bad[i] : good[i - VDI_ARRAY_SIZE(bad)];
		size_t		size = strlen(text);
		struct vd_error first = { 0 };

		for (size_t tail = 0; tail < sizeof tails; tail++) {
			char		   *copy = memcpy(malloc(size + 8), text, size);
			struct vdi_pattern *pattern = NULL;
			struct vd_error	    error = { 0 };
			vd_status	    status;

			if (tail)
				memset(copy + size, tails[tail - 1], 8);
			else
				copy = realloc(copy, size + !size);
			status = compile_pattern((struct vd_bytes) { copy, size }, &pattern, &error);
			if (tail == 0)
				first = error;
			if ((status == VD_OK) != (i >= VDI_ARRAY_SIZE(bad)) ||
			    strcmp(error.message, first.message) != 0)
				fail_msg("%s, then %c: %s", text, tail ? tails[tail - 1] : ' ',
					 error.message);
			if (status == VD_OK)
				(void) vdi_pattern_free(pattern);
			free(copy);
		}
	}
}

static void groups_nest_up_to_a_depth(void **state)
{
	for (size_t depth = VDI_PATTERN_DEPTH_MAX - 1; depth <= VDI_PATTERN_DEPTH_MAX + 1; depth++) {
		struct vdi_pattern *pattern = NULL;
		struct vd_error	    error = { 0 };
		char		    text[2 * VDI_PATTERN_DEPTH_MAX + 4] = "";

		memset(text, '(', depth);
		memset(text + depth, ')', depth);
		assert_int_equal(compile_pattern((struct vd_bytes) { text, 2 * depth }, &pattern, &error) ==
					 VD_OK,
				 depth <= VDI_PATTERN_DEPTH_MAX);
		(void) vdi_pattern_free(pattern);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classes_are_sets_of_characters),
		cmocka_unit_test(what_is_no_pattern),
		cmocka_unit_test(groups_nest_up_to_a_depth),
		cmocka_unit_test(what_matches_and_what_does_not),
		cmocka_unit_test(a_zero_is_a_character),
		cmocka_unit_test(a_zero_is_no_end),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(patterns_are_bounded),
		cmocka_unit_test(repetitions_of_nothing_are_counted),
		cmocka_unit_test(work_is_linear_and_bounded),
		cmocka_unit_test(every_failed_allocation_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
