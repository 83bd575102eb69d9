/* Plain lines of an event log, and the ones next to them that the full scan must decide. */
#include "plain_line.h"

#include <stdio.h>

#include "json_scan.h"
#include "vdtest.h"

static bool reads(const char *line, struct vdi_log_record *ret_record)
{
	struct vdi_log_record record = { 0 };

	if (!vdi_plain_line_split(vd_bytes_of(line), &record) ||
	    (record.is_unchecked && !vdi_plain_line_is_value(record.value)))
		return false;
	assert_int_equal(record.is_unchecked, record.kind == VDI_LOG_PUT);
	*ret_record = record;
	return true;
}

static void a_put_with_everything(void **state)
{
	struct vdi_log_record record;

	(void) state;
	assert_true(reads("{\"rev\":12,\"type\":\"PUT\",\"key\":\"/registry/pods/a/"
			  "b\",\"time\":\"2026-11-21T10:00:00Z\",\"createRev\":3,\"version\":2,\"lease\":7,"
			  "\"value\":{\"a\":\"\\u00e4 {}\",\"b\":[1,{}]}}",
			  &record));
	assert_int_equal(record.kind, VDI_LOG_PUT);
	assert_int_equal(record.revision, 12);
	assert_int_equal(record.create_rev, 3);
	assert_int_equal(record.version, 2);
	assert_int_equal(record.lease, 7);
	assert_true(vd_bytes_equal(record.key, vd_bytes_of("/registry/pods/a/b")));
	assert_true(vd_bytes_equal(record.time, vd_bytes_of("2026-11-21T10:00:00Z")));
	assert_true(vd_bytes_equal(record.value, vd_bytes_of("{\"a\":\"\\u00e4 {}\",\"b\":[1,{}]}")));
}

static void a_delete_and_a_commit(void **state)
{
	struct vdi_log_record record;

	(void) state;
	assert_true(reads("{\"rev\":13,\"type\":\"DELETE\",\"key\":\"/a\"}", &record));
	assert_int_equal(record.kind, VDI_LOG_DELETE);
	assert_int_equal(record.revision, 13);
	assert_int_equal(record.value.size, 0);
	assert_true(reads("{\"commit\":13}", &record));
	assert_int_equal(record.kind, VDI_LOG_COMMIT);
	assert_int_equal(record.revision, 13);
}

/* Right or wrong, they are not plain. */
static const char *const others[] = {
	"",
	"{}",
	"{\"rev\":0,\"type\":\"PUT\",\"key\":\"/a\",\"value\":1}",
	"{\"rev\":01,\"type\":\"PUT\",\"key\":\"/a\",\"value\":1}",
	"{\"rev\":-1,\"type\":\"PUT\",\"key\":\"/a\",\"value\":1}",
	"{\"rev\":1234567890123456789,\"type\":\"PUT\",\"key\":\"/a\",\"value\":1}",
	"{\"rev\":1,\"type\":\"PUT\",\"key\":\"\",\"value\":1}",
	"{\"rev\":1,\"type\":\"PUT\",\"key\":\"/\\u0061\",\"value\":1}",
	"{\"rev\":1,\"type\":\"PUT\",\"key\":\"/\xc3\xa4\",\"value\":1}",
	"{\"rev\":1,\"type\":\"PUT\",\"key\":\"/\xff\",\"value\":1}",
	"{\"rev\":1,\"type\":\"PUT\",\"key\":\"/a\tb\",\"value\":1}",
	"{\"rev\":1,\"type\":\"PUT\",\"key\":\"/a",
	"{\"rev\":1,\"type\":\"PUT\",\"key\":\"/a\"}",
	"{\"rev\":1,\"type\":\"PUT\",\"key\":\"/a\",\"value\":}",
	"{\"rev\":1,\"type\":\"PUT\",\"key\":\"/a\",\"value\":1",
	"{\"rev\":1,\"type\":\"PUT\",\"key\":\"/a\",\"value\":1,\"more\":{}}",
	"{\"rev\":1,\"type\":\"PUT\",\"key\":\"/a\",\"value\":{},\"value\":{}}",
	"{\"rev\":1,\"type\":\"PUT\",\"key\":\"/a\",\"value\":{}}}",
	"{\"rev\":1,\"type\":\"PUT\",\"key\":\"/a\",\"value\":{\"a\":1 }}",
	"{\"rev\":1,\"type\":\"PUT\",\"key\":\"/a\",\"value\": 1}",
	"{\"rev\":1,\"type\":\"PUT\",\"key\":\"/a\",\"value\":1 }",
	"{\"rev\":1,\"type\":\"PUT\",\"key\":\"/a\",\"value\":1} ",
	"{\"rev\":1,\"type\":\"PUT\",\"value\":1,\"key\":\"/a\"}",
	"{\"rev\":1,\"type\":\"PUT\",\"key\":\"/a\",\"version\":0,\"value\":1}",
	"{\"rev\":1,\"type\":\"PUT\",\"key\":\"/a\",\"valueBase64\":\"AA==\"}",
	"{\"rev\":1,\"type\":\"DELETE\",\"key\":\"/a\",\"value\":1}",
	"{\"rev\":1,\"type\":\"DELETE\",\"key\":\"/a\"}}",
	"{ \"rev\":1,\"type\":\"DELETE\",\"key\":\"/a\"}",
	"{\"commit\":0}",
	"{\"commit\":1",
	"{\"commit\":1}}",
	"{\"commit\":1,\"rev\":1}",
	"{\"commit\":x}",
	"{\"commit\":1,\"records\":}",
	"{\"commit\":1,\"records\":x}",
	"{\"commit\":1,\"records\":-1}",
	"{\"commit\":1,\"records\":1.5}",
	"{\"commit\":1,\"records\":\"1\"}",
	"{\"commit\":1,\"records\":1,\"sum\":5}",
	"{\"commit\":1,\"records\":1,\"sum\":\"\\u0061\"}",
	"{\"commit\":1,\"records\":1,\"sum\":\"a\"",
	"{\"rev\":x,\"type\":\"DELETE\",\"key\":\"/a\"}",
	"{\"rev\":1,\"type\":\"DELETE\",\"key\":/a}",
	"{\"rev\":1,\"type\":\"DELETE\",\"key\":\"/a\",\"time\":5}",
	"{\"rev\":1,\"type\":\"DELETE\",\"key\":\"/a\",\"time\":\"\\u0061\"}",
	"{\"rev\":1,\"type\":\"DELETE\",\"key\":\"/a\",\"createRev\":x}",
	"{\"rev\":1,\"type\":\"DELETE\",\"key\":\"/a\",\"version\":x}",
	"{\"rev\":1,\"type\":\"DELETE\",\"key\":\"/a\",\"lease\":x}",
};

static void any_other_line_is_left_alone(void **state)
{
	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(others); i++) {
		struct vdi_log_record record = { .line = 77 };

		if (reads(others[i], &record))
			fail_msg("taken for plain: %s", others[i]);
		assert_int_equal(record.line, 77);
	}
}

/* The value is one level below the line: the depth that the whole line may have is the same both ways. */
static void depth_counts_from_the_line(void **state)
{
	char		      line[512];
	struct vdi_log_record record;

	(void) state;
	for (size_t depth = VDI_JSON_DEPTH_MAX - 1; depth <= VDI_JSON_DEPTH_MAX; depth++) {
		size_t size = (size_t) snprintf(line, sizeof line,
						"{\"rev\":1,\"type\":\"PUT\",\"key\":\"/a\",\"value\":");

		memset(line + size, '[', depth);
		memset(line + size + depth, ']', depth);
		strcpy(line + size + 2 * depth, "}");
		assert_int_equal(reads(line, &record), depth < VDI_JSON_DEPTH_MAX);
	}
}

#define LINE                                                                                                 \
	"{\"rev\":12,\"type\":\"PUT\",\"key\":\"/"                                                           \
	"a\",\"time\":\"t\",\"createRev\":3,\"version\":2,\"lease\":7,\"value\":{\"a\":[1]}}"

/* No beginning of a line is a line, wherever it was cut off, whatever lies behind it. */
static void what_was_cut_off_is_not_plain(void **state)
{
	static const char *const lines[] = { LINE,
					     ("{\"rev\":13,\"type\":\"DELETE\",\"key\":\"/a\",\"time\":\"t\","
					      "\"createRev\":3,\"version\":2,\"lease\":7}"),
					     "{\"commit\":13,\"records\":22,\"crc32c\":\"0123abcd\"}" };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(lines); i++)
		for (size_t size = 0; size < strlen(lines[i]); size++) {
			struct vdi_log_record record = { 0 };

			if (vdi_plain_line_split((struct vd_bytes) { lines[i], size }, &record) &&
			    (!record.is_unchecked || vdi_plain_line_is_value(record.value)))
				fail_msg("%.*s", (int) size, lines[i]);
		}
}

/* Every number, one at a time: what is none, and how long it may be. */
static void each_number_is_one(void **state)
{
	static const char *const places[] = {
		"{\"rev\":%s,\"type\":\"PUT\",\"key\":\"/a\",\"value\":1}",
		"{\"rev\":1,\"type\":\"PUT\",\"key\":\"/a\",\"createRev\":%s,\"value\":1}",
		"{\"rev\":1,\"type\":\"PUT\",\"key\":\"/a\",\"version\":%s,\"value\":1}",
		"{\"rev\":1,\"type\":\"PUT\",\"key\":\"/a\",\"lease\":%s,\"value\":1}",
		"{\"rev\":1,\"type\":\"DELETE\",\"key\":\"/a\",\"lease\":%s}",
		"{\"commit\":%s}",
		"{\"commit\":1,\"records\":%s}"
	};
	static const struct {
		const char *number;
		bool	    is_plain;
	} numbers[] = { { "1", true },
			{ "19", true },
			{ "999999999999999999", true },
			{ "1000000000000000000", false },
			{ "0", false },
			{ "", false },
			{ "x", false },
			{ "1x", false },
			{ "/", false },
			{ ":", false },
			{ "1:", false },
			{ "\"1\"", false },
			{ " 1", false },
			{ "1 ", false },
			{ "1.0", false } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(places); i++)
		for (size_t k = 0; k < VDI_ARRAY_SIZE(numbers); k++) {
			struct vdi_log_record record = { 0 };
			char		      line[160];

			snprintf(line, sizeof line, places[i], numbers[k].number);
			if (reads(line, &record) != numbers[k].is_plain)
				fail_msg("%s", line);
			if (numbers[k].is_plain)
				assert_int_equal((&(const int64_t[]) { record.revision, record.create_rev,
								       record.version, record.lease,
								       record.lease, record.revision,
								       (int64_t) record.records }[0])[i],
						 strtoll(numbers[k].number, NULL, 10));
		}
}

static void a_key_is_printable_and_not_too_long(void **state)
{
	static char line[VD_KEY_SIZE_MAX + 100], key[VD_KEY_SIZE_MAX + 2];

	(void) state;
	for (int c = 1; c < 256; c++) {
		struct vdi_log_record record;

		snprintf(line, sizeof line, "{\"rev\":1,\"type\":\"DELETE\",\"key\":\"/%c\"}", c);
		assert_int_equal(reads(line, &record), c >= ' ' && c < 128 && c != '\\' && c != '"');
	}
	for (size_t size = VD_KEY_SIZE_MAX; size <= VD_KEY_SIZE_MAX + 1; size++) {
		struct vdi_log_record record;

		memset(key, 'k', size);
		key[size] = 0;
		snprintf(line, sizeof line, "{\"rev\":1,\"type\":\"DELETE\",\"key\":\"%s\"}", key);
		assert_int_equal(reads(line, &record), size <= VD_KEY_SIZE_MAX);
	}
}

static void a_commit_may_say_how_many_and_its_sum(void **state)
{
	static const struct {
		const char *line;
		bool	    is_plain, is_counted;
	} cases[] = { { "{\"commit\":2}", true, false },
		      { "{\"commit\":2,\"records\":3}", true, true },
		      { "{\"commit\":2,\"records\":3,\"records\":3}", false, false },
		      { "{\"commit\":2,\"records\":3} ", false, false },
		      { "{\"commit\":2,\"records\":3,}", false, false },
		      { "{\"commit\":2,\"more\":3}", false, false } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct vdi_log_record record = { 0 };

		if (reads(cases[i].line, &record) != cases[i].is_plain)
			fail_msg("%s", cases[i].line);
		assert_int_equal(record.is_counted, cases[i].is_counted);
		assert_int_equal(record.records, cases[i].is_counted ? 3 : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_put_with_everything),
		cmocka_unit_test(a_delete_and_a_commit),
		cmocka_unit_test(any_other_line_is_left_alone),
		cmocka_unit_test(depth_counts_from_the_line),
		cmocka_unit_test(what_was_cut_off_is_not_plain),
		cmocka_unit_test(each_number_is_one),
		cmocka_unit_test(a_key_is_printable_and_not_too_long),
		cmocka_unit_test(a_commit_may_say_how_many_and_its_sum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
