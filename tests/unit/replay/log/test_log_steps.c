/* Unit tests of replay/log/log_steps.c: what a transaction is, and what is torn. What a store makes of it is
 * in test_log_load.c. */
#include <stdio.h>
#include <unistd.h>

#include "codec_json.h"
#include "log_steps.h"
#include "vdtest.h"

static char path[64];

static void write_log(const char *text)
{
	int fd;

	strcpy(path, "/tmp/vedette-log-steps-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* All steps as text: "txn 2: +a -b; snapshot 5: +a@3; compact 4; ..." and how it ended. */
static const char *steps_text(const char *log)
{
	static const char *const names[] = {
		"txn", "snapshot", "compact", "progress", "disconnect", "failure"
	};
	static char	      text[1024];
	struct vdi_log_steps *steps;
	struct vdi_log_step   step;
	struct vd_error	      error = { 0 };
	vd_status	      status;
	size_t		      size = 0;

	write_log(log);
	assert_status(vdi_log_steps_open(path, &steps, NULL), VD_OK);
	text[0] = 0;
	while ((status = vdi_log_steps_next(steps, &step, &error)) == VD_OK) {
		size += (size_t) snprintf(text + size, sizeof text - size, "%s%s %lld", size ? "; " : "",
					  names[step.kind], (long long) step.revision);
		if (step.time.ns)
			size += (size_t) snprintf(text + size, sizeof text - size, " t%lld",
						  (long long) (step.time.ns / 1000000));
		size += (size_t) snprintf(text + size, sizeof text - size, "%s%s",
					  step.count || *step.text ? ": " : "", step.text);
		for (size_t i = 0; i < step.count; i++)
			size += (size_t) snprintf(
				text + size, sizeof text - size, "%s%s%.*s@%lld", i ? " " : "",
				step.changes[i].is_delete ? "-" : "+", (int) step.changes[i].kv->key_size,
				step.changes[i].kv->data, (long long) step.changes[i].kv->mod_rev);
	}
	size += (size_t) snprintf(text + size, sizeof text - size, "; %s%s",
				  status == VD_CLOSED ? "end" : error.message + strlen(path),
				  vdi_log_steps_tail(steps).is_torn	? " torn" :
				  vdi_log_steps_tail(steps).is_unclosed ? " unclosed" :
									  "");
	vdi_log_steps_close(steps);
	unlink(path);
	return text;
}

#define HEAD "{\"vedetteLog\":1}\n"
#define PUT(rev, key) "{\"rev\":" #rev ",\"type\":\"PUT\",\"key\":\"" key "\",\"value\":1}\n"
#define DEL(rev, key) "{\"rev\":" #rev ",\"type\":\"DELETE\",\"key\":\"" key "\"}\n"
#define COMMIT(rev) "{\"commit\":" #rev "}\n"

static void commit_lines_end_transactions(void **state)
{
	(void) state;
	assert_string_equal(
		steps_text(HEAD PUT(2, "a") COMMIT(2) PUT(3, "a") DEL(3, "b") COMMIT(3) COMMIT(9)),
		"txn 2: +a@2; txn 3: +a@3 -b@3; end");
	assert_string_equal(steps_text(HEAD PUT(2, "a") COMMIT(2) PUT(3, "a")), "txn 2: +a@2; end torn");
	assert_string_equal(
		steps_text(HEAD PUT(2, "a") COMMIT(2) PUT(3, "a") PUT(4, "a")),
		"txn 2: +a@2; :5: a new revision begins, but the previous one has no commit line");
	assert_string_equal(steps_text(HEAD PUT(2, "a") COMMIT(3)),
			    "; :3: the commit has another revision than the records before it");
}

static void without_commit_lines_the_next_revision_does(void **state)
{
	(void) state;
	assert_string_equal(steps_text(HEAD PUT(2, "a") PUT(2, "b") PUT(3, "a") PUT(5, "c") PUT(5, "d")),
			    "txn 2: +a@2 +b@2; txn 3: +a@3; txn 5: +c@5 +d@5; end");
	/* The torn line is of the same transaction, or may be. */
	assert_string_equal(steps_text(HEAD PUT(2, "a") PUT(3, "a") "{\"rev\":3,\"type\""),
			    "txn 2: +a@2; end torn");
	assert_string_equal(steps_text(HEAD PUT(2, "a") PUT(3, "a") "{\"rev\":"), "txn 2: +a@2; end torn");
	assert_string_equal(steps_text(HEAD PUT(2, "a") PUT(3, "a") "{\"rev\":4,"),
			    "txn 2: +a@2; txn 3: +a@3; end torn");
}

static void marks_stand_between_transactions(void **state)
{
	(void) state;
	assert_string_equal(
		steps_text(HEAD PUT(2, "a") "{\"compact\":2}\n{\"progress\":7}\n" PUT(
			8, "b") "{\"disconnect\":true}\n{\"error\":\"lost\"}\n"),
		"txn 2: +a@2; compact 2; progress 7; txn 8: +b@8; disconnect 0; failure 0: lost; end");
	assert_string_equal(steps_text(HEAD PUT(2, "a") COMMIT(2) PUT(3, "a") "{\"compact\":2}\n"),
			    "txn 2: +a@2; :5: the previous transaction has no commit line");
}

static void snapshots(void **state)
{
	(void) state;
	assert_string_equal(steps_text(HEAD "{\"snapshot\":9}\n" PUT(7, "a")
					       PUT(3, "b") "{\"snapshotEnd\":9}\n" PUT(10, "a") COMMIT(10)),
			    "snapshot 9: +a@7 +b@3; txn 10: +a@10; end");
	assert_string_equal(
		steps_text(HEAD PUT(2, "a") "{\"snapshot\":9}\n" PUT(7, "a") "{\"snapshotEnd\":9}\n"),
		"txn 2: +a@2; snapshot 9: +a@7; end");
	assert_string_equal(steps_text(HEAD "{\"snapshot\":9}\n{\"snapshotEnd\":9}\n"), "snapshot 9; end");
	assert_string_equal(steps_text(HEAD "{\"snapshot\":9}\n" DEL(7, "a")),
			    "; :3: a DELETE within a snapshot");
	assert_string_equal(steps_text(HEAD "{\"snapshot\":9}\n" PUT(7, "a")),
			    "; :3: the log ends within a snapshot");
	assert_string_equal(steps_text(HEAD "{\"snapshotEnd\":9}\n"), "; :2: snapshotEnd without a snapshot");
}

static void the_time_of_a_step_is_that_of_its_first_record(void **state)
{
	(void) state;
	assert_string_equal(steps_text(HEAD PUT(2, "a") "{\"rev\":3,\"type\":\"DELETE\",\"key\":\"a\","
							"\"time\":\"1970-01-01T00:00:02.5Z\"}\n"
							"{\"rev\":3,\"type\":\"DELETE\",\"key\":\"b\","
							"\"time\":\"1970-01-01T00:00:03Z\"}\n" PUT(4, "a")),
			    "txn 2: +a@2; txn 3 t2500: -a@3 -b@3; txn 4: +a@4; end");
}

static void times(void **state)
{
	static const struct {
		const char *text;
		int64_t	    ns; /* -1: none */
	} rows[] = {
		{ "1970-01-01T00:00:00Z", 0 },
		{ "2024-02-29T12:34:56Z", 1709210096000000000 },
		{ "2024-02-29T12:34:56.000000001Z", 1709210096000000001 },
		{ "2024-02-29T12:34:56.25+02:00", 1709202896250000000 },
		{ "2024-02-29t12:34:56-00:30", 1709211896000000000 },
		{ "2024-02-29T12:34:56.1234567899Z", 1709210096123456789 },
		{ "2024-02-29T12:34:56", -1 },
		{ "2024-02-29T12:34:56.Z", -1 },
		{ "2024-13-29T12:34:56Z", -1 },
		{ "2024-02-29T24:34:56Z", -1 },
		{ "2024-02-29T12:34:56+2:00", -1 },
		{ "2024-02-29T12:34:56Zx", -1 },
		{ "2024-02-29", -1 },
		{ "", -1 },
		{ "1969-12-31T23:59:59Z", -1 },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		vd_wall time = { -1 };

		if (vdi_log_time_parse(vd_bytes_of(rows[i].text), &time) != (rows[i].ns >= 0) ||
		    time.ns != rows[i].ns)
			fail_msg("%s: %lld", rows[i].text, (long long) time.ns);
	}
}

static void every_allocation_may_fail(void **state)
{
	(void) state;
	write_log(HEAD "{\"snapshot\":9}\n" PUT(7, "a") "{\"snapshotEnd\":9}\n" PUT(
		10, "a") "{\"error\":\"x\"}\n" PUT(11, "b") PUT(12, "c") PUT(12, "b"));
	for (uint64_t nth = 1;; nth++) {
		int64_t		      live = vdi_alloc_live();
		struct vdi_log_steps *steps = NULL;
		struct vdi_log_step   step;
		vd_status	      status;
		bool		      failed;

		(void) vdi_alloc_fail_nth(nth, 1);
		status = vdi_log_steps_open(path, &steps, NULL);
		while (status == VD_OK)
			status = vdi_log_steps_next(steps, &step, NULL);
		failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_CLOSED);
		vdi_log_steps_close(steps);
		assert_int_equal(vdi_alloc_live(), live);
		if (!failed)
			break;
	}
	unlink(path);
}

/* ---- Objects made ahead ---- */

static struct vd_codec *codec; /* of the keys below /registry/pods/ */

static const struct vd_codec *codec_of(void *arg, struct vd_bytes key)
{
	(void) arg;
	return vd_bytes_has_prefix(key, vd_bytes_of("/registry/pods/")) ? codec : NULL;
}

static void make_codec(void)
{
	static const struct vd_field_spec field = { "spec.nodeName", ".spec.nodeName", NULL };

	assert_status(vd_codec_json_new(&field, 1, &codec, NULL), VD_OK);
	assert_status(vdi_codec_json_prepare_init(codec), VD_OK);
}

/* Everything of one log: each change's key, value and numbers, and the words of the end. *ret_ahead: how many
 * objects were made. */
static void read_all(bool prepares, char *text, size_t room, unsigned *ret_ahead)
{
	struct vdi_log_steps *steps;
	struct vdi_log_step   step;
	struct vd_error	      error = { 0 };
	vd_status	      status;
	size_t		      size = 0;

	*ret_ahead = 0;
	assert_status(vdi_log_steps_open(path, &steps, NULL), VD_OK);
	if (prepares)
		vdi_log_steps_prepare(steps, codec_of, NULL);
	while ((status = vdi_log_steps_next(steps, &step, &error)) == VD_OK)
		for (size_t i = 0; i < step.count; i++) {
			struct vd_kv	 *kv = step.changes[i].kv;
			struct vd_object *object = vdi_codec_json_prepared(codec, kv);

			size += (size_t) snprintf(text + size, room - size, "%d %.*s %lld %lld %lld %.*s\n",
						  step.changes[i].is_delete, (int) kv->key_size, kv->data,
						  (long long) kv->mod_rev, (long long) kv->create_rev,
						  (long long) kv->version, (int) kv->value_size,
						  kv->data + kv->key_size);
			assert_null(vdi_codec_json_prepared(codec, kv));
			*ret_ahead += object != NULL;
			vd_object_unref(object);
		}
	(void) snprintf(text + size, room - size, "%d %s", (int) status, error.message);
	vdi_log_steps_close(steps);
}

#define POD "{\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":\"y\"}},\"spec\":{\"nodeName\":\"n\"}}"
#define DEEP_OPEN_10 "[[[[[[[[[["
#define DEEP_END_10 "]]]]]]]]]]"
#define DEEP_OPEN_61 DEEP_OPEN_10 DEEP_OPEN_10 DEEP_OPEN_10 DEEP_OPEN_10 DEEP_OPEN_10 DEEP_OPEN_10 "["
#define DEEP_END_61 "]" DEEP_END_10 DEEP_END_10 DEEP_END_10 DEEP_END_10 DEEP_END_10 DEEP_END_10

/* A value behind "value":, the bracket of the line apart; and whether its object is made ahead. */
static const struct {
	const char *value;
	bool	    is_ahead;
} values[] = {
	{ POD, true },
	{ "{\"metadata\":{\"name\":\"\\u00e4\"}}", true },
	{ "{\"metadata\":{},\"a\":[" DEEP_OPEN_61 DEEP_END_61 "]}", true },
	{ "{\"metadata\":{},\"a\":[[" DEEP_OPEN_61 DEEP_END_61 "]]}",
	  false }, /* an object may be so deep, but not in a line */
	{ "{\"metadata\": {\"name\":\"a\"}}", false },
	{ "{\"metadata\":{\"name\":\"a\"}} ", false },
	{ " {\"metadata\":{\"name\":\"a\"}}", false },
	{ POD ",\"version\":3", false },
	{ POD ",\"key\":\"/registry/pods/b\"", false },
	{ POD ",\"createRev\":0", false },
	{ POD "," POD, false },
	{ POD "}", false },
	{ "{\"kind\":\"Pod\"}", false },
	{ "{\"metadata\":{\"name\":\"a\",\"name\":\"b\"}}", false },
	{ "{\"metadata\":{\"labels\":{\"a\":1}}}", false },
	{ "{\"metadata\":{\"name\":\"\xff\"}}", false },
	{ "{\"metadata\":{\"name\":\"a\",}}", false },
	{ "{\"metadata\":{\"name\":\"a\"}", false },
	{ "{\"metadata\":{\"name\":\"a\tb\"}}", false },
	{ "{\"metadata\":{\"name\":tru}}", false },
	{ "[]", false },
	{ "1", false },
	{ "01", false },
	{ "\"a\"", false },
	{ "k8s", false },
	{ "", false },
};

/* Whatever a value is, the log says the same of it, word for word: the codec only saves a second look. */
static void made_ahead_or_not_a_log_reads_the_same(void **state)
{
	char one[4096], other[4096];

	(void) state;
	make_codec();
	for (size_t i = 0; i < 2 * VDI_ARRAY_SIZE(values); i++) {
		const char *key = i % 2 ? "/registry/pods/a" : "/registry/nodes/a";
		unsigned    ahead;
		char	    log[4096];

		(void) snprintf(log, sizeof log,
				HEAD "{\"rev\":5,\"type\":\"PUT\",\"key\":\"%s\",\"createRev\":2,\"version\":"
				     "2,\"value\":%s}\n{\"commit\":5}\n" PUT(6, "/registry/pods/b") COMMIT(6)
					     PUT(7, "/registry/nodes/z") COMMIT(7),
				key, values[i / 2].value);
		write_log(log);
		read_all(false, one, sizeof one, &ahead);
		assert_int_equal(ahead, 0);
		read_all(true, other, sizeof other, &ahead);
		assert_string_equal(one, other);
		if (ahead != (i % 2 && values[i / 2].is_ahead))
			fail_msg("%u made ahead: %s", ahead, values[i / 2].value);
		unlink(path);
	}
	assert_null(vd_codec_free(codec));
}

/* What was made ahead is what the value says, is given once, and what nobody asks for goes. */
static void objects_made_ahead(void **state)
{
	struct vdi_log_steps *steps;
	struct vdi_log_step   step;
	struct vd_object     *object, *again;
	int64_t		      live = vdi_alloc_live();
	unsigned	      count = 0;
	FILE		     *file;

	(void) state;
	make_codec();
	write_log(HEAD);
	file = fopen(path, "ae");
	assert_non_null(file);
	for (int revision = 2; revision < 3000; revision++)
		(void) fprintf(file,
			       "{\"rev\":%d,\"type\":\"PUT\",\"key\":\"/registry/pods/p\",\"value\":" POD
			       "}\n{\"commit\":%d}\n",
			       revision, revision);
	(void) fclose(file);
	assert_status(vdi_log_steps_open(path, &steps, NULL), VD_OK);
	vdi_log_steps_prepare(steps, codec_of, NULL);
	while (vdi_log_steps_next(steps, &step, NULL) == VD_OK) {
		assert_int_equal(step.count, 1);
		if (count++ % 3)
			continue; /* nobody asks */
		assert_status(vd_object_new(codec, step.changes[0].kv, &object, NULL), VD_OK);
		assert_ptr_equal(vd_object_kv(object), step.changes[0].kv);
		assert_int_equal(vd_object_revision(object), step.revision);
		assert_true(vd_bytes_equal(vd_object_name(object), vd_bytes_of("a")));
		assert_true(vd_bytes_equal(vd_object_field(object, 2), vd_bytes_of("n")) ||
			    vd_bytes_equal(vd_object_field(object, 0), vd_bytes_of("n")));
		assert_status(vd_object_new(codec, step.changes[0].kv, &again, NULL), VD_OK);
		assert_ptr_not_equal(object, again);
		assert_true(vd_bytes_equal(vd_object_name(again), vd_bytes_of("a")));
		vd_object_unref(object);
		vd_object_unref(again);
	}
	assert_int_equal(count, 2998);
	vdi_log_steps_close(steps);
	assert_null(vd_codec_free(codec));
	assert_int_equal(vdi_alloc_live(), live);
	unlink(path);
}

/* Memory that was missing for an object made ahead is no end: the value is checked the other way. */
static void every_allocation_may_fail_where_objects_are_made_ahead(void **state)
{
	bool failed = true;

	(void) state;
	write_log(HEAD "{\"rev\":2,\"type\":\"PUT\",\"key\":\"/registry/pods/a\",\"value\":" POD
		       "}\n" COMMIT(2) PUT(3, "/registry/pods/b") COMMIT(3));
	for (uint64_t nth = 1; failed; nth++) {
		int64_t		      live = vdi_alloc_live();
		struct vdi_log_steps *steps = NULL;
		struct vdi_log_step   step;
		unsigned	      count = 0;
		vd_status	      status;

		make_codec();
		(void) vdi_alloc_fail_nth(nth, 1);
		status = vdi_log_steps_open(path, &steps, NULL);
		if (status == VD_OK)
			vdi_log_steps_prepare(steps, codec_of, NULL);
		while (status == VD_OK && (status = vdi_log_steps_next(steps, &step, NULL)) == VD_OK)
			count++;
		failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_true(status == VD_CLOSED ? count == 2 : failed && status == VD_NOMEM);
		vdi_log_steps_close(steps);
		assert_null(vd_codec_free(codec));
		assert_int_equal(vdi_alloc_live(), live);
	}
	unlink(path);
}

/* No beginning of a time is one, whatever lies behind it: it is read out of the middle of a line. */
static void a_time_that_was_cut_off_is_none(void **state)
{
	static const char *const texts[] = { "2024-02-29T12:34:56Z", "2024-02-29T12:34:56.123456789+02:30",
					     "2024-02-29T12:34:56-00:30", "2024-02-29T12:34:56.5Z",
					     "2024-02-29T12:34:56.25z" };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(texts); i++)
		for (size_t size = 0; size <= strlen(texts[i]); size++) {
			vd_wall time = { -1 };

			if (vdi_log_time_parse((struct vd_bytes) { texts[i], size }, &time) !=
			    (size == strlen(texts[i])))
				fail_msg("%.*s", (int) size, texts[i]);
		}
}

/* Each part of a time at its borders, and with what is no digit. */
static void the_borders_of_times(void **state)
{
	static const struct {
		const char *text;
		bool	    is_time;
	} rows[] = { { "1970-01-01T00:00:00Z", true },	     { "1969-01-01T00:00:00Z", false },
		     { "2261-01-01T00:00:00Z", true },	     { "2262-01-01T00:00:00Z", false },
		     { "2024-00-01T00:00:00Z", false },	     { "2024-01-01T00:00:00Z", true },
		     { "2024-12-01T00:00:00Z", true },	     { "2024-13-01T00:00:00Z", false },
		     { "2024-01-00T00:00:00Z", false },	     { "2024-01-31T00:00:00Z", true },
		     { "2024-01-32T00:00:00Z", false },	     { "2024-01-01T23:00:00Z", true },
		     { "2024-01-01T24:00:00Z", false },	     { "2024-01-01T00:59:00Z", true },
		     { "2024-01-01T00:60:00Z", false },	     { "2024-01-01T00:00:60Z", true },
		     { "2024-01-01T00:00:61Z", false },	     { "2024-01-01 00:00:00z", true },
		     { "2024-01-01x00:00:00Z", false },	     { "2024-01-01T00:00:00+23:59", true },
		     { "2024-01-01T00:00:00+24:00", false }, { "2024-01-01T00:00:00+00:60", false },
		     { "2024-01-01T00:00:00*00:00", false }, { "2024/01-01T00:00:00Z", false },
		     { "2024-01/01T00:00:00Z", false },	     { "2024-01-01T00-00:00Z", false },
		     { "2024-01-01T00:00-00Z", false },	     { "202x-01-01T00:00:00Z", false },
		     { "2024-0/-01T00:00:00Z", false },	     { "2024-01-0:T00:00:00Z", false },
		     { "2024-01-01T0/:00:00Z", false },	     { "2024-01-01T00:0::00Z", false },
		     { "2024-01-01T00:00:0/Z", false },	     { "2024-01-01T00:00:00.0Z", true },
		     { "2024-01-01T00:00:00.9Z", true },     { "2024-01-01T00:00:00./Z", false },
		     { "2024-01-01T00:00:00.1:Z", false },   { "2024-01-01T00:00:00+02-00", false },
		     { "2024-01-01T00:00:00+02:00Z", false } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		vd_wall time;

		if (vdi_log_time_parse(vd_bytes_of(rows[i].text), &time) != rows[i].is_time)
			fail_msg("%s", rows[i].text);
	}
}

/* Where each step begins in the file, how many bytes of keys and values it has, how many records were given
 * by then; and what the torn end holds. */
static void each_step_says_where_it_begins_and_how_large_it_is(void **state)
{
	static const struct {
		enum vdi_log_step_kind kind;
		uint64_t	       line;
		size_t		       bytes;
		uint64_t	       records;
	} expected[] = { { VDI_STEP_TXN, 2, 4, 2 },	  { VDI_STEP_TXN, 4, 2, 3 },
			 { VDI_STEP_SNAPSHOT, 6, 4, 5 },  { VDI_STEP_COMPACT, 9, 0, 5 },
			 { VDI_STEP_SNAPSHOT, 10, 0, 5 }, { VDI_STEP_TXN, 12, 2, 6 } };
	static const char     torn[] = PUT(12, "a") PUT(12, "bb") "{\"rev\":12,";
	struct vdi_log_steps *steps;
	struct vdi_log_step   step;
	struct vdi_log_tail   tail;
	char		      log[1024];

	(void) state;
	snprintf(log, sizeof log, "%s%s",
		 HEAD PUT(2, "a") PUT(2, "b") PUT(3, "c") "{\"snapshot\":9}\n" PUT(7, "a")
			 PUT(3, "b") "{\"snapshotEnd\":9}\n"
				     "{\"compact\":4}\n"
				     "{\"snapshot\":9}\n{\"snapshotEnd\":9}\n" PUT(10, "a"),
		 torn);
	write_log(log);
	assert_status(vdi_log_steps_open(path, &steps, NULL), VD_OK);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(expected); i++) {
		assert_status(vdi_log_steps_next(steps, &step, NULL), VD_OK);
		assert_int_equal(step.kind, expected[i].kind);
		if (step.count)
			assert_int_equal(step.line, expected[i].line);
		assert_int_equal(step.bytes, expected[i].bytes);
		assert_int_equal(vdi_log_steps_records(steps), expected[i].records);
		assert_string_equal(step.text, "");
	}
	assert_status(vdi_log_steps_next(steps, &step, NULL), VD_CLOSED);
	tail = vdi_log_steps_tail(steps);
	assert_true(tail.is_torn);
	assert_int_equal(tail.line, 13);
	assert_int_equal(tail.records, 2);
	assert_int_equal(tail.bytes, strlen(torn));
	vdi_log_steps_close(steps);
	unlink(path);
	/* A snapshot that never ends is named by where it began. */
	assert_string_equal(steps_text(HEAD PUT(2, "a") COMMIT(2) "{\"snapshot\":9}\n"),
			    "txn 2: +a@2; :4: the log ends within a snapshot");
}

/* A key twice, next to each other or not, in a transaction or a snapshot; the line is that of the second
 * one. */
static void a_key_twice_is_refused(void **state)
{
	(void) state;
	assert_string_equal(steps_text(HEAD PUT(2, "a") DEL(2, "a") COMMIT(2)),
			    "; :3: key a occurs twice in one transaction or snapshot");
	assert_string_equal(steps_text(HEAD PUT(2, "a") PUT(2, "b") PUT(2, "a") COMMIT(2)),
			    "; :4: key a occurs twice in one transaction or snapshot");
	assert_string_equal(steps_text(HEAD PUT(2, "c") PUT(2, "b") PUT(2, "a") COMMIT(2)),
			    "txn 2: +c@2 +b@2 +a@2; end");
	assert_string_equal(steps_text(HEAD PUT(2, "a") PUT(3, "a") PUT(4, "b")),
			    "txn 2: +a@2; txn 3: +a@3; txn 4: +b@4; end");
	assert_string_equal(
		steps_text(HEAD "{\"snapshot\":9}\n" PUT(7, "b") PUT(8, "b") "{\"snapshotEnd\":9}\n"),
		"; :4: key b occurs twice in one transaction or snapshot");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commit_lines_end_transactions),
		cmocka_unit_test(without_commit_lines_the_next_revision_does),
		cmocka_unit_test(marks_stand_between_transactions),
		cmocka_unit_test(snapshots),
		cmocka_unit_test(the_time_of_a_step_is_that_of_its_first_record),
		cmocka_unit_test(times),
		cmocka_unit_test(every_allocation_may_fail),
		cmocka_unit_test(made_ahead_or_not_a_log_reads_the_same),
		cmocka_unit_test(objects_made_ahead),
		cmocka_unit_test(every_allocation_may_fail_where_objects_are_made_ahead),
		cmocka_unit_test(a_time_that_was_cut_off_is_none),
		cmocka_unit_test(the_borders_of_times),
		cmocka_unit_test(each_step_says_where_it_begins_and_how_large_it_is),
		cmocka_unit_test(a_key_twice_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
