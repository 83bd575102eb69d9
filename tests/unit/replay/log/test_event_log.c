/* Unit tests of replay/log/event_log.c. */
#include "vdtest.h"

#include <unistd.h>
#include <zstd.h>

#include "event_log.h"

static char path[] = "/tmp/vedette-event-log-XXXXXX";

static void write_file(const void *data, size_t size)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	fclose(file);
}

static struct vdi_event_log *open_text(const char *text)
{
	struct vdi_event_log *log = NULL;
	struct vd_error	      error = { 0 };

	write_file(text, strlen(text));
	if (vdi_event_log_open(path, &log, &error) != VD_OK)
		fail_msg("%s", error.message);
	return log;
}

static void assert_bytes(struct vd_bytes actual, const char *expected)
{
	if (!vd_bytes_equal(actual, vd_bytes_of(expected)))
		fail_msg("\"%.*s\" != \"%s\"", (int) actual.size, (const char *) actual.data, expected);
}

static const char sample[] =
	"{\"vedetteLog\":1,\"cluster\":\"x\"}\n"
	"{\"snapshot\":11}\n"
	"{\"rev\":7,\"type\":\"PUT\",\"key\":\"/r/a\",\"value\":{\"a\" : [1, "
	"2]},\"createRev\":5,\"version\":3,\"lease\":-9}\n"
	"{\"snapshotEnd\":11}\n"
	"\n"
	"{\"rev\":12,\"type\":\"PUT\",\"key\":\"/r/"
	"\\u0062\",\"valueBase64\":\"aGk=\",\"time\":\"2026-05-28T20:26:40Z\",\"later\":{}}\r\n"
	"{\"rev\":12,\"type\":\"DELETE\",\"key\":\"/r/a\"}\n"
	"{\"commit\":12}\n"
	"{\"compact\":10}\n{\"progress\":12}\n{\"disconnect\":true}\n{\"error\":\"lost\"}\n"
	"{\"rev\":13,\"type\":\"PU";

static void check_sample(struct vdi_event_log *log)
{
	static const enum vdi_log_kind kinds[] = { VDI_LOG_SNAPSHOT, VDI_LOG_PUT,      VDI_LOG_SNAPSHOT_END,
						   VDI_LOG_PUT,	     VDI_LOG_DELETE,   VDI_LOG_COMMIT,
						   VDI_LOG_COMPACT,  VDI_LOG_PROGRESS, VDI_LOG_DISCONNECT,
						   VDI_LOG_FAILURE };
	struct vdi_log_record	       record;
	struct vd_error		       error = { 0 };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(kinds); i++) {
		assert_status(vdi_event_log_next(log, &record, &error), VD_OK);
		assert_int_equal(record.kind, kinds[i]);
		if (i == 1) {
			assert_bytes(record.key, "/r/a");
			assert_bytes(record.value, "{\"a\":[1,2]}");
			assert_int_equal(record.create_rev, 5);
			assert_int_equal(record.version, 3);
			assert_int_equal(record.lease, -9);
			assert_int_equal(record.revision, 7);
		}
		if (i == 3) {
			assert_bytes(record.key, "/r/b");
			assert_bytes(record.value, "hi");
			assert_bytes(record.time, "2026-05-28T20:26:40Z");
			assert_int_equal(record.line, 6);
		}
		if (i == 9)
			assert_bytes(record.text, "lost");
	}
	assert_status(vdi_event_log_next(log, &record, &error), VD_CLOSED);
	assert_true(vdi_event_log_is_torn(log));
}

static void every_kind_of_line_is_read(void **state)
{
	struct vdi_event_log *log = open_text(sample);

	(void) state;
	check_sample(log);
	vdi_event_log_close(log);
}

static void compressed_logs_read_alike(void **state)
{
	char		      packed[4096];
	size_t		      size = ZSTD_compress(packed, sizeof packed, sample, sizeof sample - 1, 3);
	struct vdi_event_log *log = NULL;
	struct vdi_log_record record;
	struct vd_error	      error = { 0 };

	(void) state;
	assert_false(ZSTD_isError(size));
	write_file(packed, size);
	assert_status(vdi_event_log_open(path, &log, &error), VD_OK);
	check_sample(log);
	log = vdi_event_log_close(log);
	packed[size / 2] ^= 0x55;
	write_file(packed, size);
	vd_status status = vdi_event_log_open(path, &log, &error);
	while (status == VD_OK)
		status = vdi_event_log_next(log, &record, &error);
	assert_status(status, VD_BAD_REQUEST);
	assert_true(error.message[0]);
	vdi_event_log_close(log);
}

/* Damage in the last frames, and nothing behind it: the reader comes to an end and asks for no frame that is
 * not there. */
static void damage_in_the_last_frames_is_a_torn_end(void **state)
{
	static const char *const parts[] = { "{\"vedetteLog\":1,\"checksums\":\"xxh64\"}\n",
					     "{\"rev\":5,\"type\":\"DELETE\",\"key\":\"a\"}\n",
					     "{\"rev\":5,\"type\":\"DELETE\",\"key\":\"b\"}\n",
					     "{\"rev\":5,\"type\":\"DELETE\",\"key\":\"c\"}\n" };
	char			 packed[4096];
	size_t			 begin[5] = { 0 };

	for (size_t i = 0; i < 4; i++)
		begin[i + 1] = begin[i] + ZSTD_compress(packed + begin[i], sizeof packed - begin[i], parts[i],
							strlen(parts[i]), 3);
	for (size_t damaged = 1; damaged < 4; damaged++) /* from this one on */
		for (size_t at = 4; begin[damaged] + at < begin[damaged + 1]; at++) {
			struct vdi_event_log *log = NULL;
			struct vdi_log_record record;
			vd_status	      status;
			char		      other[4096];

			memcpy(other, packed, begin[4]);
			for (size_t i = damaged; i < 4; i++)
				other[begin[i] + VDI_MIN(at, begin[i + 1] - begin[i] - 1)] ^= 0x55;
			write_file(other, begin[4]);
			assert_status(vdi_event_log_open(path, &log, NULL), VD_OK);
			while ((status = vdi_event_log_next(log, &record, NULL)) == VD_OK)
				;
			if (status == VD_BAD_REQUEST)
				assert_true(vdi_event_log_was_cut_off(log));
			vdi_event_log_close(log);
		}
}

/* Zeros where nothing was on disk yet: a later line knows how far it was. */
static void zeros_behind_the_header(void **state)
{
	static const char header[] = "{\"vedetteLog\":1,\"checksums\":\"xxh64\"}\n";

	for (int more = 0; more < 2; more++) {
		struct vdi_event_log *log;
		struct vdi_log_record record;
		char		      text[400] = "";
		int		      size = (int) sizeof header - 1;

		memcpy(text, header, sizeof header);
		size += 40; /* zeros */
		size += snprintf(text + size, sizeof text - (size_t) size,
				 "\n{\"commit\":5,\"records\":1" VDI_EVENT_LOG_SYNCED_NAME
				 "%zu" VDI_EVENT_LOG_SUM_NAME "%016x\"}\n",
				 sizeof header - 1 + (size_t) more, 77);
		write_file(text, (size_t) size);
		assert_status(vdi_event_log_open(path, &log, NULL), VD_OK);
		assert_status(vdi_event_log_next(log, &record, NULL), VD_BAD_REQUEST);
		assert_int_equal(vdi_event_log_was_cut_off(log), !more);
		vdi_event_log_close(log);
	}
	{ /* A log without checksums promises nothing. */
		static const char     text[] = "{\"vedetteLog\":1}\n\0\0\0\0\0\0\0\0\n";
		struct vdi_event_log *log;
		struct vdi_log_record record;

		write_file(text, sizeof text - 1);
		assert_status(vdi_event_log_open(path, &log, NULL), VD_OK);
		assert_status(vdi_event_log_next(log, &record, NULL), VD_BAD_REQUEST);
		assert_false(vdi_event_log_was_cut_off(log));
		vdi_event_log_close(log);
	}
}

/* Line ends of another system, blank lines among them, also where the lines have checksums. */
static void carriage_returns_are_no_part_of_a_line(void **state)
{
	static const char *const plain = "{\"vedetteLog\":1}\r\n\r\n{\"rev\":5,\"type\":\"DELETE\",\"key\":"
					 "\"a\"}\r\n\r\n\r\n{\"commit\":5}\r\n";
	static const char	 header[] = "{\"vedetteLog\":1,\"checksums\":\"xxh64\"}",
			  change[] = "{\"rev\":5,\"type\":\"DELETE\",\"key\":\"a\"}";
	static const char commit[] = "{\"commit\":5,\"records\":1";
	uint64_t	  sum = 0;
	char		  sealed[400];

	sum = vdi_event_log_sum_add(sum, vd_bytes_of(header));
	sum = vdi_event_log_sum_add(sum, vd_bytes_of(change));
	sum = vdi_event_log_sum_add(sum, vd_bytes_of(commit));
	(void) snprintf(sealed, sizeof sealed, "%s\r\n%s\r\n%s" VDI_EVENT_LOG_SUM_NAME "%016llx\"}\r\n",
			header, change, commit, (unsigned long long) sum);
	for (int is_sealed = 0; is_sealed < 2; is_sealed++) {
		struct vdi_event_log *log = open_text(is_sealed ? sealed : plain);
		struct vdi_log_record record;
		struct vd_error	      error = { 0 };

		if (vdi_event_log_next(log, &record, &error) != VD_OK || record.kind != VDI_LOG_DELETE)
			fail_msg("%s", error.message);
		if (vdi_event_log_next(log, &record, &error) != VD_OK || record.kind != VDI_LOG_COMMIT)
			fail_msg("%s", error.message);
		assert_status(vdi_event_log_next(log, &record, &error), VD_CLOSED);
		assert_false(vdi_event_log_is_torn(log));
		vdi_event_log_close(log);
	}
}

static void broken_lines_are_named(void **state)
{
	static const struct {
		const char *line, *why;
	} rows[] = {
		{ "{", ":2: " },
		{ "[]", ":2: " },
		{ "{\"what\":1}", ":2: the line has none of" },
		{ "{\"rev\":0,\"type\":\"PUT\",\"key\":\"a\",\"value\":1}",
		  ":2: \"rev\" must be a whole number" },
		{ "{\"rev\":1.5,\"type\":\"PUT\",\"key\":\"a\",\"value\":1}",
		  ":2: \"rev\" must be a whole number" },
		{ "{\"rev\":9223372036854775808,\"type\":\"PUT\",\"key\":\"a\",\"value\":1}",
		  ":2: \"rev\" must be a whole number" },
		{ "{\"rev\":10000000000000000000,\"type\":\"PUT\",\"key\":\"a\",\"value\":1}",
		  ":2: \"rev\" must be a whole number" },
		{ "{\"rev\":18446744073709551617,\"type\":\"PUT\",\"key\":\"a\",\"value\":1}",
		  ":2: \"rev\" must be a whole number" },
		{ "{\"rev\":7,\"type\":\"PUT\",\"key\":\"a\",\"value\":1,\"lease\":-9223372036854775809}",
		  ":2: \"lease\" must be a whole number" },
		{ "{\"rev\":7,\"type\":\"PUT\",\"key\":\"a\",\"value\":1,\"lease\":1.5}",
		  ":2: \"lease\" must be a whole number" },
		{ "{\"rev\":7,\"type\":\"PUT\",\"key\":\"a\",\"value\":1,\"version\":1e3}",
		  ":2: \"version\" must be a whole number" },
		{ "{\"rev\":7,\"type\":\"PUT\",\"key\":\"a\",\"value\":1,\"version\":99999999999999999999}",
		  ":2: \"version\" must be a whole number" },
		{ "{\"rev\":1,\"type\":\"POST\",\"key\":\"a\",\"value\":1}", ":2: \"type\" must be" },
		{ "{\"rev\":1,\"type\":\"PUT\",\"key\":\"\",\"value\":1}", ":2: \"key\" must have" },
		{ "{\"rev\":1,\"type\":\"PUT\",\"key\":5,\"value\":1}", ":2: \"key\" must be a string" },
		{ "{\"rev\":1,\"type\":\"PUT\",\"key\":\"a\"}", ":2: a PUT needs one of" },
		{ "{\"rev\":1,\"type\":\"PUT\",\"key\":\"a\",\"value\":1,\"valueBase64\":\"\"}",
		  ":2: a PUT needs one of" },
		{ "{\"rev\":1,\"type\":\"PUT\",\"key\":\"a\",\"valueBase64\":\"!!\"}",
		  ":2: \"valueBase64\" is not base64" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		char		      text[512];
		struct vdi_event_log *log;
		struct vdi_log_record record;
		struct vd_error	      error = { 0 };

		snprintf(text, sizeof text, "{\"vedetteLog\":1}\n%s\n", rows[i].line);
		log = open_text(text);
		assert_status(vdi_event_log_next(log, &record, &error), VD_BAD_REQUEST);
		if (strstr(error.message, rows[i].why) == NULL || strstr(error.message, path) == NULL)
			fail_msg("%s: %s", rows[i].line, error.message);
		vdi_event_log_close(log);
	}
}

/* A line with white space is not plain: read by the other reader, it says the same. */
static void what_closes_records_counts_them(void **state)
{
	static const struct {
		const char *line;
		bool	    is_counted, is_end;
	} rows[] = {
		{ "{\"commit\": 7, \"records\": 1}", true, false },
		{ "{\"commit\": 7}", false, false },
		{ "{\"snapshotEnd\": 7, \"records\": 1}", true, false },
		{ "{\"snapshotEnd\":7}", false, false },
		{ "{\"progress\": 7, \"end\": true}", false, true },
		{ "{\"progress\": 7, \"records\": 3}", false, false },
		{ "{\"compact\": 7, \"end\": true}", false, false },
		{ "{\"commit\":7,\"records\":1}", true, false },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		char		      text[256];
		struct vdi_event_log *log;
		struct vdi_log_record record;

		snprintf(text, sizeof text,
			 "{\"vedetteLog\":1}\n{\"rev\":7,\"type\":\"DELETE\",\"key\":\"a\"}\n%s\n",
			 rows[i].line);
		log = open_text(text);
		assert_status(vdi_event_log_next(log, &record, NULL), VD_OK);
		assert_status(vdi_event_log_next(log, &record, NULL), VD_OK);
		assert_int_equal(record.revision, 7);
		assert_int_equal(record.is_counted, rows[i].is_counted);
		assert_int_equal(record.records, rows[i].is_counted ? 1 : 0);
		assert_int_equal(record.is_end, rows[i].is_end);
		vdi_event_log_close(log);
	}
	/* One that counts otherwise is refused, plain or not. */
	for (int plain = 0; plain < 2; plain++) {
		struct vdi_event_log *log =
			open_text(plain ? "{\"vedetteLog\":1}\n{\"commit\":7,\"records\":1}\n" :
					  "{\"vedetteLog\":1}\n{\"commit\": 7, \"records\": 1}\n");
		struct vdi_log_record record;

		assert_status(vdi_event_log_next(log, &record, NULL), VD_BAD_REQUEST);
		vdi_event_log_close(log);
	}
}

/* The largest key that a store takes, and one byte more; with white space or plain. */
static void keys_have_a_largest_size(void **state)
{
	static char text[VD_KEY_SIZE_MAX + 200], key[VD_KEY_SIZE_MAX + 2];

	(void) state;
	for (int plain = 0; plain < 2; plain++)
		for (size_t size = VD_KEY_SIZE_MAX; size <= VD_KEY_SIZE_MAX + 1; size++) {
			struct vdi_event_log *log;
			struct vdi_log_record record;
			struct vd_error	      error = { 0 };

			memset(key, 'k', size);
			key[size] = 0;
			snprintf(text, sizeof text,
				 "{\"vedetteLog\":1}\n{\"rev\":%s7,\"type\":\"DELETE\",\"key\":\"%s\"}\n",
				 plain ? "" : " ", key);
			log = open_text(text);
			assert_status(vdi_event_log_next(log, &record, &error),
				      size > VD_KEY_SIZE_MAX ? VD_BAD_REQUEST : VD_OK);
			if (size <= VD_KEY_SIZE_MAX)
				assert_int_equal(record.key.size, size);
			else
				assert_non_null(strstr(error.message, "\"key\" must have 1 to 4096 bytes"));
			vdi_event_log_close(log);
		}
}

static void other_files_are_refused(void **state)
{
	static const struct {
		const char *text;
		vd_status   status;
	} rows[] = {
		{ "", VD_BAD_REQUEST },
		{ "hello\n", VD_BAD_REQUEST },
		{ "{}\n", VD_BAD_REQUEST },
		{ "{\"vedetteLog\":2}\n", VD_NEWER_FORMAT },
		{ "{\"vedetteLog\":\"1\"}\n", VD_BAD_REQUEST },
	};
	struct vdi_event_log *log = NULL;
	struct vd_error	      error = { 0 };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		write_file(rows[i].text, strlen(rows[i].text));
		assert_status(vdi_event_log_open(path, &log, &error), rows[i].status);
		assert_true(error.message[0]);
	}
	assert_status(vdi_event_log_open("/nonexistent/log", &log, &error), VD_NOT_FOUND);
	/* What can be opened and not be read. */
	assert_status(vdi_event_log_open("/tmp", &log, &error), VD_IO);
	assert_non_null(strstr(error.message, "/tmp"));
}

static void long_lines_cross_the_buffer(void **state)
{
	enum { size = 300000 };
	static char	      text[size + 200];
	int		      head;
	struct vdi_event_log *log;
	struct vdi_log_record record;

	(void) state;
	head = sprintf(text, "{\"vedetteLog\":1}\n{\"rev\":1,\"type\":\"PUT\",\"key\":\"a\",\"value\":\"");
	memset(text + head, 'x', size);
	strcpy(text + head + size, "\"}\n{\"commit\":1}\n");
	log = open_text(text);
	assert_status(vdi_event_log_next(log, &record, NULL), VD_OK);
	assert_int_equal(record.value.size, size + 2);
	assert_false(record.is_unchecked);
	assert_status(vdi_event_log_next(log, &record, NULL), VD_OK);
	assert_int_equal(record.kind, VDI_LOG_COMMIT);
	assert_status(vdi_event_log_next(log, &record, NULL), VD_CLOSED);
	assert_false(vdi_event_log_is_torn(log));
	vdi_event_log_close(log);
}

static void every_failed_allocation_is_reported(void **state)
{
	int64_t live = vdi_alloc_live();

	(void) state;
	write_file(sample, sizeof sample - 1);
	for (uint64_t nth = 1;; nth++) {
		struct vdi_event_log *log = NULL;
		struct vdi_log_record record;
		vd_status	      status;

		vdi_alloc_fail_nth(nth, 1);
		status = vdi_event_log_open(path, &log, NULL);
		while (status == VD_OK)
			status = vdi_event_log_next(log, &record, NULL);
		bool failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_CLOSED);
		vdi_event_log_close(log);
		assert_int_equal(vdi_alloc_live(), live);
		if (!failed)
			break;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_line_is_read),
		cmocka_unit_test(compressed_logs_read_alike),
		cmocka_unit_test(what_closes_records_counts_them),
		cmocka_unit_test(keys_have_a_largest_size),
		cmocka_unit_test(damage_in_the_last_frames_is_a_torn_end),
		cmocka_unit_test(zeros_behind_the_header),
		cmocka_unit_test(carriage_returns_are_no_part_of_a_line),
		cmocka_unit_test(broken_lines_are_named),
		cmocka_unit_test(other_files_are_refused),
		cmocka_unit_test(long_lines_cross_the_buffer),
		cmocka_unit_test(every_failed_allocation_is_reported),
	};
	int failed;

	close(mkstemp(path));
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
