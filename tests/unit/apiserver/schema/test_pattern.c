/* Unit tests of apiserver/schema/pattern.c: Go's regular expressions by example; texts of field errors are
 * Go's. */
#include "vdtest.h"

#include "pattern.h"
#include "pattern_parts.h"
#include "rand.h"

#define PLENTY 100000000
#define NO_UNICODE "invalid character class range (Unicode classes are not supported by this server): "

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

/* Compares the messages of a refused pattern with those of Go's regexp/syntax. */
static void messages_are_those_of_go(void **state)
{
	static const struct {
		const char *pattern, *message;
	} rows[] = {
		/* escapes */
		{ "\\xg0", "invalid escape sequence: `\\xg0`" },
		{ "\\x", "invalid escape sequence: `\\x`" },
		{ "\\x4", "invalid escape sequence: `\\x4`" },
		{ "\\x4g", "invalid escape sequence: `\\x4g`" },
		{ "\\x{", "invalid escape sequence: `\\x{`" },
		{ "\\x{4", "invalid escape sequence: `\\x{4`" },
		{ "\\x{4g}", "invalid escape sequence: `\\x{4g`" },
		{ "\\x{110000}", "invalid escape sequence: `\\x{110000`" },
		{ "\\x{}", "invalid escape sequence: `\\x{}`" },
		{ "\\8", "invalid escape sequence: `\\8`" },
		{ "\\18", "invalid escape sequence: `\\1`" },
		{ "\\7", "invalid escape sequence: `\\7`" },
		{ "\\c", "invalid escape sequence: `\\c`" },
		{ "\\E", "invalid escape sequence: `\\E`" },
		{ "\\\xC3\xA9", "invalid escape sequence: `\\\xC3\xA9`" },
		{ "[\\b]", "invalid escape sequence: `\\b`" },
		{ "[\\", "trailing backslash at end of expression: ``" },
		{ "[a-\\", "trailing backslash at end of expression: ``" },
		{ "[a-\\d]", "invalid escape sequence: `\\d`" },
		/* groups and flags */
		{ "(?", "invalid or unsupported Perl syntax: `(?`" },
		{ "(?i", "invalid or unsupported Perl syntax: `(?i`" },
		{ "(?-)", "invalid or unsupported Perl syntax: `(?-)`" },
		{ "(?i-)", "invalid or unsupported Perl syntax: `(?i-)`" },
		{ "(?i-:a)", "invalid or unsupported Perl syntax: `(?i-:`" },
		{ "(?--i)", "invalid or unsupported Perl syntax: `(?--`" },
		{ "(?x)", "invalid or unsupported Perl syntax: `(?x`" },
		{ "(?\xC3\xA9)", "invalid or unsupported Perl syntax: `(?\xC3\xA9`" },
		{ "(?P=n)", "invalid or unsupported Perl syntax: `(?P`" },
		{ "(?P", "invalid or unsupported Perl syntax: `(?P`" },
		{ "(?<n", "invalid named capture: `(?<n`" },
		{ "(?P<n", "invalid named capture: `(?P<n`" },
		{ "(?<n)", "invalid named capture: `(?<n)`" },
		{ "(?<>a)", "invalid named capture: `(?<>`" },
		{ "(a))", "unexpected ): `(a))`" },
		{ "a)b", "unexpected ): `a)b`" },
		{ "((a)", "missing closing ): `((a)`" },
		{ "[^a", "missing closing ]: `[^a`" },
		{ "x[a", "missing closing ]: `[a`" },
		{ "[^]", "missing closing ]: `[^]`" },
		{ "[a-", "missing closing ]: `[a-`" },
		{ "[[:alpha:", "missing closing ]: `[[:alpha:`" },
		/* operators */
		{ "a*?*", "invalid nested repetition operator: `*?*`" },
		{ "a+*", "invalid nested repetition operator: `+*`" },
		{ "a???", "invalid nested repetition operator: `???`" },
		{ "x{2}?{3}", "invalid nested repetition operator: `{2}?{3}`" },
		{ "^**", "invalid nested repetition operator: `**`" },
		{ "(?i)*", "missing argument to repetition operator: `*`" },
		{ "(*)", "missing argument to repetition operator: `*`" },
		{ "(|+)", "missing argument to repetition operator: `+`" },
		{ "\\Q\\E*", "missing argument to repetition operator: `*`" },
		{ "{1}", "missing argument to repetition operator: `{1}`" },
		{ "a{1,1001}", "invalid repeat count: `{1,1001}`" },
		{ "a{1001,}", "invalid repeat count: `{1001,}`" },
		{ "a{99999999999}", "invalid repeat count: `{99999999999}`" },
		/* Unicode classes, which this server does not have */
		{ "a\\pLb", NO_UNICODE "`\\pL`" },
		{ "\\PN", NO_UNICODE "`\\PN`" },
		{ "[a\\pL]", NO_UNICODE "`\\pL`" },
		{ "[\\PL]", NO_UNICODE "`\\PL`" },
		{ "\\p", NO_UNICODE "`\\p`" },
		{ "\\p{Greek}a", NO_UNICODE "`\\p{Greek}`" },
		{ "\\P{Gre", NO_UNICODE "`\\P{Gre`" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_pattern *pattern = NULL;
		struct vd_error	    error = { 0 };
		char		    wanted[200];

		(void) snprintf(wanted, sizeof wanted, "error parsing regexp: %s", rows[i].message);
		assert_status(compile_pattern(vd_bytes_of(rows[i].pattern), &pattern, &error), VD_INVALID);
		assert_string_equal(error.message, wanted);
		assert_null(pattern);
	}
}

/* Asks for each ASCII character whether the pattern matches it alone, and compares with a table of these
 * characters. */
static void check_class(const char *pattern, const char *characters, bool negated)
{
	for (int c = 1; c < 128; c++) {
		char text[2] = { (char) c, 0 };

		if (matches(pattern, text) != ((strchr(characters, c) != NULL) != negated))
			fail_msg("%s and character %d", pattern, c);
	}
}

#define DIGITS "0123456789"
#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define PUNCTUATION "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
#define CONTROLS                                                                                             \
	"\001\002\003\004\005\006\a\b\t\n\v\f\r\016\017\020\021\022\023\024\025\026\027\030\031\032\033\034" \
	"\035\036\037"

static void every_class_has_its_characters(void **state)
{
	static const struct {
		const char *name, *characters;
	} posix[] = {
		{ "alnum", DIGITS LOWER UPPER },
		{ "alpha", LOWER UPPER },
		{ "ascii", CONTROLS " " DIGITS LOWER UPPER PUNCTUATION "\177" },
		{ "blank", "\t " },
		{ "cntrl", CONTROLS "\177" },
		{ "digit", DIGITS },
		{ "graph", DIGITS LOWER UPPER PUNCTUATION },
		{ "lower", LOWER },
		{ "print", " " DIGITS LOWER UPPER PUNCTUATION },
		{ "punct", PUNCTUATION },
		{ "space", "\t\n\v\f\r " },
		{ "upper", UPPER },
		{ "word", DIGITS LOWER UPPER "_" },
		{ "xdigit", DIGITS "abcdefABCDEF" },
	}, perl[] = {
		{ "d", DIGITS },
		{ "s", "\t\n\f\r " },
		{ "w", DIGITS LOWER UPPER "_" },
	};
	char pattern[40];

	for (size_t i = 0; i < VDI_ARRAY_SIZE(posix); i++) {
		(void) snprintf(pattern, sizeof pattern, "^[[:%s:]]$", posix[i].name);
		check_class(pattern, posix[i].characters, false);
		(void) snprintf(pattern, sizeof pattern, "^[[:^%s:]]$", posix[i].name);
		check_class(pattern, posix[i].characters, true);
		(void) snprintf(pattern, sizeof pattern, "^[^[:%s:]]$", posix[i].name);
		check_class(pattern, posix[i].characters, true);
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(perl); i++) {
		char upper = (char) (perl[i].name[0] - 32);

		(void) snprintf(pattern, sizeof pattern, "^\\%s$", perl[i].name);
		check_class(pattern, perl[i].characters, false);
		(void) snprintf(pattern, sizeof pattern, "^[\\%s]$", perl[i].name);
		check_class(pattern, perl[i].characters, false);
		(void) snprintf(pattern, sizeof pattern, "^\\%c$", upper);
		check_class(pattern, perl[i].characters, true);
		(void) snprintf(pattern, sizeof pattern, "^[^\\%s]$", perl[i].name);
		check_class(pattern, perl[i].characters, true);
		(void) snprintf(pattern, sizeof pattern, "^[^\\%c]$", upper);
		check_class(pattern, perl[i].characters, false);
	}
	check_class("^.$", "\n", true);
	check_class("^(?s:.)$", "", true);
	check_class("^(?i:[[:lower:]])$", LOWER UPPER, false);
	check_class("^(?i:[[:^upper:]])$", LOWER UPPER, true);
	check_class("^[a-c-e]$", "abc-e", false);
	check_class("^[+--]$", "+,-", false);
	check_class("^[\\d-z]$", DIGITS "-z", false);
	check_class("^[[:digit:]-z]$", DIGITS "-z", false);
	check_class("^[a-\\x63]$", "abc", false);
	check_class("^[\\x61-c]$", "abc", false);
	check_class("^[\\-a]$", "-a", false);
}

/* Each escape outside and inside of a class. */
static void every_escape_is_one_character(void **state)
{
	static const struct {
		const char *escape;
		char	    character;
	} rows[] = {
		{ "\\a", '\a' },    { "\\f", '\f' },	 { "\\n", '\n' },      { "\\r", '\r' },
		{ "\\t", '\t' },    { "\\v", '\v' },	 { "\\x41", 'A' },     { "\\x4F", 'O' },
		{ "\\x4f", 'O' },   { "\\x{41}", 'A' },	 { "\\x{0}", 0 },      { "\\x{00041}", 'A' },
		{ "\\x{9}", '\t' }, { "\\x{a}", '\n' },	 { "\\x{F}", '\017' }, { "\\0", 0 },
		{ "\\101", 'A' },   { "\\011", '\t' },	 { "\\11", '\t' },     { "\\77", '?' },
		{ "\\07", '\a' },   { "\\177", '\177' }, { "\\.", '.' },       { "\\-", '-' },
		{ "\\_", '_' },	    { "\\\\", '\\' },	 { "\\/", '/' },       { "\\ ", ' ' },
		{ "\\]", ']' },	    { "\\~", '~' },	 { "\\\177", '\177' }, { "\\\t", '\t' },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		for (int in_class = 0; in_class < 2; in_class++) {
			struct vdi_pattern *pattern = NULL;
			char		    text[40];

			(void) snprintf(text, sizeof text, in_class ? "^[%s]$" : "^%s$", rows[i].escape);
			assert_status(compile_pattern(vd_bytes_of(text), &pattern, NULL), VD_OK);
			for (int c = 0; c < 128; c++) {
				char	 one = (char) c;
				uint64_t work = PLENTY;
				bool	 found = false;

				assert_status(vdi_pattern_match(pattern, (struct vd_bytes) { &one, 1 }, &work,
								&found),
					      VD_OK);
				if (found != (one == rows[i].character))
					fail_msg("%s and character %d", text, c);
			}
			(void) vdi_pattern_free(pattern);
		}
	assert_true(matches("^\\0018$", "\0018")); /* an octal number has three digits at most */
	assert_true(matches("^\\1018$", "A8"));
	assert_true(matches("^\\x411$", "A1"));
	assert_true(matches("^\\x{10ffff}$", "\xF4\x8F\xBF\xBF"));
	assert_true(matches("^[\\x{800}-\\x{10ffff}]$", "\xE0\xA0\x80"));
	assert_false(matches("^[\\x{800}-\\x{10ffff}]$", "\xDF\xBF"));
	assert_true(matches("^[^\\x{80}-\\x{7ff}]$", "\xE0\xA0\x80"));
	assert_true(matches("^[^\\x{80}-\\x{7ff}]$", "\x7F"));
	assert_false(matches("^[^\\x{80}-\\x{7ff}]$", "\xC2\x80"));
	assert_true(matches("^[^\\x{10000}]$", "\xEF\xBF\xBF"));
	assert_false(matches("^[^\\x{10000}]$", "\xF0\x90\x80\x80"));
}

/* Pairs of a pattern with every number of repetitions that it takes. */
static void bounds_count_repetitions(void **state)
{
	static const struct {
		const char *bounds;
		int	    min, max;
	} rows[] = {
		{ "{0}", 0, 0 },    { "{1}", 1, 1 },	{ "{3}", 3, 3 },    { "{0,}", 0, 99 },
		{ "{2,}", 2, 99 },  { "{0,2}", 0, 2 },	{ "{2,2}", 2, 2 },  { "{1,4}", 1, 4 },
		{ "{0,1}?", 0, 1 }, { "{2,}?", 2, 99 }, { "{10}", 10, 10 }, { "*", 0, 99 },
		{ "+", 1, 99 },	    { "?", 0, 1 },	{ "??", 0, 1 },	    { "*?", 0, 99 },
		{ "+?", 1, 99 },
	};
	/* Braces that are no bounds stand for themselves. */
	static const char *const literal[] = { "{",    "{}",	 "{,}", "{,2}", "{1",	  "{1,",  "{1,2",
					       "{01}", "{1,02}", "{a}", "{ 1}", "{1, 2}", "{1;}", "{-1}" };
	char			 pattern[40], text[40];

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		for (int count = 0; count < 15; count++) {
			(void) snprintf(pattern, sizeof pattern, "^xa%s$", rows[i].bounds);
			(void) snprintf(text, sizeof text, "x%.*s", count, "aaaaaaaaaaaaaaaa");
			if (matches(pattern, text) != (count >= rows[i].min && count <= rows[i].max))
				fail_msg("%s and %s", pattern, text);
		}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(literal); i++) {
		(void) snprintf(pattern, sizeof pattern, "^a%s$", literal[i]);
		(void) snprintf(text, sizeof text, "a%s", literal[i]);
		if (!matches(pattern, text))
			fail_msg("%s does not match %s", pattern, text);
	}
}

/* What a group, flags and \Q...\E begin and end. */
static void groups_flags_and_quotes_have_an_end(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool	    found;
	} rows[] = {
		{ "^(?i:a)b$", "Ab", true },
		{ "^(?i:a)b$", "AB", false },
		{ "^((?i)a)b$", "Ab", true },
		{ "^((?i)a)b$", "AB", false },
		{ "^((?i)a|b)c$", "Bc", true },
		{ "^(?i)a(?-i)b$", "Ab", true },
		{ "^(?i)a(?-i)b$", "AB", false },
		{ "^(?is-i)A.$", "A\n", true },
		{ "^(?is-i)A.$", "a\n", false },
		{ "^(?i)(?s)a.$", "A\n", true },
		{ "^(?U)a+?$", "aa", true },
		{ "(?m)^b(?-m)$", "a\nb", true },
		{ "(?m)^b(?-m)$", "a\nb\n", false },
		{ "(?m)a$", "a\nb", true },
		{ "a(?m)$", "a\nb", true },
		{ "^a(?i)*$", "aaa", true },
		{ "^a(?i)*$", "aaA", false },
		{ "^ab*$", "abb", true },
		{ "^ab*$", "abab", false },
		{ "^(ab)*$", "abab", true },
		{ "^(?:ab)*$", "abb", false },
		{ "^(?P<x>ab){2}$", "abab", true },
		{ "^\\Qab\\E*$", "abb", true },
		{ "^\\Qab\\E*$", "abab", false },
		{ "^a\\Q\\E*$", "aaa", true },
		{ "^x\\Qabc\\E{2}y$", "xabccy", true },
		{ "^x\\Qabc\\E{2}y$", "xabccc", false },
		{ "^\\Q(a|b", "(a|b", true },
		{ "^\\Qa\\b\\E$", "a\\b", true },
		{ "^(\\Qab\\E|c)*$", "cabab", true },
		{ "^(?i)\\Qab\\E$", "aB", true },
		{ "^(a|b|)c$", "c", true },
		{ "^(a|b|)c$", "bc", true },
		{ "^(a|b|)c$", "abc", false },
		{ "^a|b$", "ax", true },
		{ "^a|b$", "xb", true },
		{ "^a|b$", "xa", false },
		{ "^()$", "", true },
		{ "^()$", "a", false },
		{ "^(?:)$", "", true },
		{ "$^", "", true },
		{ "a$b", "ab", false },
		{ "a^b", "ab", false },
		{ "^*a", "ba", true },
		{ "\\ba\\b", "a", true },
		{ "\\ba\\b", "-a-", true },
		{ "\\ba\\b", "_a", false },
		{ "\\ba\\b", "a9", false },
		{ "\\ba\\b", "Za", false },
		{ "\\ba\\b",
		  "\xC3\xA9"
		  "a",
		  true },
		{ "\\B", "", true },
		{ "\\b", "", false },
		{ "\\B-\\B", "-", true },
		{ "\\Ba", "a", false },
		{ "\\Ab", "a\nb", false },
		{ "(?m)\\Ab", "a\nb", false },
		{ "(?m)a\\z", "a\nb", false },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		if (matches(rows[i].pattern, rows[i].text) != rows[i].found)
			fail_msg("%s and %s", rows[i].pattern, rows[i].text);
}

/* The work that a compilation reports is exactly the work that it needs. */
static void compilation_needs_the_work_that_it_reports(void **state)
{
	static const char *const rows[] = { "",		 "a",	  "[a-cx-z]", "a|b|c",
					    "(a{3}){4}", "(){5}", "^\\w+$",   "(?i)[^k]{2,7}" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_pattern *pattern = NULL;
		uint64_t	    work = PLENTY, needed;

		assert_status(vdi_pattern_compile(vd_bytes_of(rows[i]), &work, &pattern, NULL), VD_OK);
		(void) vdi_pattern_free(pattern);
		needed = PLENTY - work;
		assert_true(needed > 0);
		work = needed;
		assert_status(vdi_pattern_compile(vd_bytes_of(rows[i]), &work, &pattern, NULL), VD_OK);
		assert_int_equal(work, 0);
		(void) vdi_pattern_free(pattern);
		work = needed - 1;
		pattern = NULL;
		assert_status(vdi_pattern_compile(vd_bytes_of(rows[i]), &work, &pattern, NULL), VD_TOO_BIG);
		assert_int_equal(work, 0);
		assert_null(pattern);
	}
}

/* A pattern may have VDI_PATTERN_STEPS_MAX instructions: one for the end, one for each `a`. */
static void instructions_are_bounded(void **state)
{
	char text[200] = "";

	for (int i = 0; i < VDI_PATTERN_STEPS_MAX / 1000 - 1; i++)
		strcat(text, "a{1000}");
	assert_status(compile_repeated(text, "a", 999, ""), VD_OK);
	assert_status(compile_repeated(text, "a", 1000, ""), VD_INVALID);
}

/* A compilation may take VDI_PATTERN_WORK_MAX steps. Each `(){k}` adds k of them and a constant. */
static void the_work_of_a_compilation_is_bounded(void **state)
{
	uint64_t last = 0;
	bool	 refused = false;

	for (int count = 1; count <= 1000; count += refused ? 1000 : 1) {
		struct vdi_pattern *pattern = NULL;
		struct vd_error	    error = { 0 };
		uint64_t	    work = PLENTY;
		char		    text[60];

		(void) snprintf(text, sizeof text, "((){1000}){98}(){900}(){%d}", count);
		if (vdi_pattern_compile(vd_bytes_of(text), &work, &pattern, &error) == VD_OK) {
			last = PLENTY - work;
			(void) vdi_pattern_free(pattern);
			continue;
		}
		refused = true;
		assert_string_equal(error.message, "error parsing regexp: expression too large");
		assert_int_equal(PLENTY - work, VDI_PATTERN_WORK_MAX + 1);
	}
	assert_true(refused);
	assert_int_equal(last, VDI_PATTERN_WORK_MAX);
}

/* The price of a match: one to begin with, one for each state that is entered, one for each state that is
 * looked at again with a character, and one for the character. */
static void matches_cost_what_they_take(void **state)
{
	static const struct {
		const char *pattern, *text;
		uint64_t    cost;
	} rows[] = {
		{ "", "bbbb", 2 }, { "a", "", 2 },	    { "a", "b", 5 },
		{ "a", "bb", 8 },  { "a", "a", 5 },	    { "a", "abbbb", 5 },
		{ "^a", "b", 6 },  { "^a", "bbbbbbbb", 6 }, { "^aaa$", "aab", 12 },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_pattern *pattern = NULL;
		uint64_t	    work = PLENTY;
		bool		    found;

		assert_status(compile_pattern(vd_bytes_of(rows[i].pattern), &pattern, NULL), VD_OK);
		assert_status(vdi_pattern_match(pattern, vd_bytes_of(rows[i].text), &work, &found), VD_OK);
		if (PLENTY - work != rows[i].cost)
			fail_msg("%s and %s: %d", rows[i].pattern, rows[i].text, (int) (PLENTY - work));
		work = rows[i].cost;
		assert_status(vdi_pattern_match(pattern, vd_bytes_of(rows[i].text), &work, &found), VD_OK);
		assert_int_equal(work, 0);
		work = rows[i].cost - 1;
		assert_status(vdi_pattern_match(pattern, vd_bytes_of(rows[i].text), &work, &found),
			      VD_TOO_BIG);
		assert_int_equal(work, 0);
		(void) vdi_pattern_free(pattern);
	}
}

/* vdi_pattern_rune() takes the bytes that the first one announces, as far as there are that many. */
static void runes_are_read_up_to_the_end(void **state)
{
	static const struct {
		const char *text;
		size_t	    size, taken;
		uint32_t    rune;
	} rows[] = {
		{ "a", 1, 1, 'a' },
		{ "\x7F\x80", 2, 1, 0x7F },
		{ "\xC2\x80", 2, 2, 0x80 },
		{ "\xDF\xBF", 2, 2, 0x7FF },
		{ "\xE0\xA0\x80", 3, 3, 0x800 },
		{ "\xEF\xBF\xBF", 3, 3, 0xFFFF },
		{ "\xF0\x90\x80\x80", 4, 4, 0x10000 },
		{ "\xF4\x8F\xBF\xBF", 4, 4, 0x10FFFF },
		{ "\xC3", 1, 1, 0xC3 },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		const char *at = rows[i].text;

		assert_int_equal(vdi_pattern_rune(&at, rows[i].text + rows[i].size), rows[i].rune);
		assert_int_equal(at - rows[i].text, rows[i].taken);
	}
	for (size_t size = 1; size <= 3; size++) { /* never more than there is */
		const char *text = "\xF4\x8F\xBF", *at = text;

		(void) vdi_pattern_rune(&at, text + size);
		assert_in_range(at - text, 1, size);
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
		cmocka_unit_test(messages_are_those_of_go),
		cmocka_unit_test(every_class_has_its_characters),
		cmocka_unit_test(every_escape_is_one_character),
		cmocka_unit_test(bounds_count_repetitions),
		cmocka_unit_test(groups_flags_and_quotes_have_an_end),
		cmocka_unit_test(compilation_needs_the_work_that_it_reports),
		cmocka_unit_test(instructions_are_bounded),
		cmocka_unit_test(the_work_of_a_compilation_is_bounded),
		cmocka_unit_test(matches_cost_what_they_take),
		cmocka_unit_test(runes_are_read_up_to_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
