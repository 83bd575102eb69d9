/* Unit tests of replay/log_steps.c: what a transaction is, and what is torn. What a store makes of it is in test_log_load.c. */
#include <stdio.h>
#include <unistd.h>

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
	static const char *const names[] = { "txn", "snapshot", "compact", "progress", "disconnect", "failure" };
	static char		 text[1024];
	struct vdi_log_steps	*steps;
	struct vdi_log_step	 step;
	struct vd_error		 error = { 0 };
	vd_status		 status;
	size_t			 size = 0;

	write_log(log);
	assert_status(vdi_log_steps_open(path, &steps, NULL), VD_OK);
	text[0] = 0;
	while ((status = vdi_log_steps_next(steps, &step, &error)) == VD_OK) {
		size += (size_t) snprintf(text + size, sizeof text - size, "%s%s %lld", size ? "; " : "", names[step.kind], (long long) step.revision);
		if (step.time.ns)
			size += (size_t) snprintf(text + size, sizeof text - size, " t%lld", (long long) (step.time.ns / 1000000));
		size += (size_t) snprintf(text + size, sizeof text - size, "%s%s", step.count || *step.text ? ": " : "", step.text);
		for (size_t i = 0; i < step.count; i++)
			size += (size_t) snprintf(text + size, sizeof text - size, "%s%s%.*s@%lld", i ? " " : "", step.changes[i].is_delete ? "-" : "+",
						  (int) step.changes[i].kv->key_size, step.changes[i].kv->data, (long long) step.changes[i].kv->mod_rev);
	}
	size += (size_t) snprintf(text + size, sizeof text - size, "; %s%s", status == VD_CLOSED ? "end" : error.message + strlen(path),
				  vdi_log_steps_was_torn(steps) ? " torn" : "");
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
	assert_string_equal(steps_text(HEAD PUT(2, "a") COMMIT(2) PUT(3, "a") DEL(3, "b") COMMIT(3) COMMIT(9)), "txn 2: +a@2; txn 3: +a@3 -b@3; end");
	assert_string_equal(steps_text(HEAD PUT(2, "a") COMMIT(2) PUT(3, "a")), "txn 2: +a@2; end torn");
	assert_string_equal(steps_text(HEAD PUT(2, "a") COMMIT(2) PUT(3, "a") PUT(4, "a")),
			    "txn 2: +a@2; :5: a new revision begins, and the one before has no commit");
	assert_string_equal(steps_text(HEAD PUT(2, "a") COMMIT(3)), "; :3: the commit is of another revision than the records before it");
}

static void without_commit_lines_the_next_revision_does(void **state)
{
	(void) state;
	assert_string_equal(steps_text(HEAD PUT(2, "a") PUT(2, "b") PUT(3, "a") PUT(5, "c") PUT(5, "d")),
			    "txn 2: +a@2 +b@2; txn 3: +a@3; txn 5: +c@5 +d@5; end");
	/* The torn line is of the same transaction, or may be. */
	assert_string_equal(steps_text(HEAD PUT(2, "a") PUT(3, "a") "{\"rev\":3,\"type\""), "txn 2: +a@2; end torn");
	assert_string_equal(steps_text(HEAD PUT(2, "a") PUT(3, "a") "{\"rev\":"), "txn 2: +a@2; end torn");
	assert_string_equal(steps_text(HEAD PUT(2, "a") PUT(3, "a") "{\"rev\":4,"), "txn 2: +a@2; txn 3: +a@3; end torn");
}

static void marks_stand_between_transactions(void **state)
{
	(void) state;
	assert_string_equal(steps_text(HEAD PUT(2, "a") "{\"compact\":2}\n{\"progress\":7}\n" PUT(8, "b") "{\"disconnect\":true}\n{\"error\":\"lost\"}\n"),
			    "txn 2: +a@2; compact 2; progress 7; txn 8: +b@8; disconnect 0; failure 0: lost; end");
	assert_string_equal(steps_text(HEAD PUT(2, "a") COMMIT(2) PUT(3, "a") "{\"compact\":2}\n"), "txn 2: +a@2; :5: the transaction before has no commit");
}

static void snapshots(void **state)
{
	(void) state;
	assert_string_equal(steps_text(HEAD "{\"snapshot\":9}\n" PUT(7, "a") PUT(3, "b") "{\"snapshotEnd\":9}\n" PUT(10, "a") COMMIT(10)),
			    "snapshot 9: +a@7 +b@3; txn 10: +a@10; end");
	assert_string_equal(steps_text(HEAD PUT(2, "a") "{\"snapshot\":9}\n" PUT(7, "a") "{\"snapshotEnd\":9}\n"), "txn 2: +a@2; snapshot 9: +a@7; end");
	assert_string_equal(steps_text(HEAD "{\"snapshot\":9}\n{\"snapshotEnd\":9}\n"), "snapshot 9; end");
	assert_string_equal(steps_text(HEAD "{\"snapshot\":9}\n" DEL(7, "a")), "; :3: a DELETE within a snapshot");
	assert_string_equal(steps_text(HEAD "{\"snapshot\":9}\n" PUT(7, "a")), "; :3: the log ends within a snapshot");
	assert_string_equal(steps_text(HEAD "{\"snapshotEnd\":9}\n"), "; :2: a snapshot ends that did not begin");
}

static void the_time_of_a_step_is_that_of_its_first_record(void **state)
{
	(void) state;
	assert_string_equal(steps_text(HEAD PUT(2, "a")
				       "{\"rev\":3,\"type\":\"DELETE\",\"key\":\"a\",\"time\":\"1970-01-01T00:00:02.5Z\"}\n"
				       "{\"rev\":3,\"type\":\"DELETE\",\"key\":\"b\",\"time\":\"1970-01-01T00:00:03Z\"}\n" PUT(4, "a")),
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

		if (vdi_log_time_parse(vd_bytes_of(rows[i].text), &time) != (rows[i].ns >= 0) || time.ns != rows[i].ns)
			fail_msg("%s: %lld", rows[i].text, (long long) time.ns);
	}
}

static void every_allocation_may_fail(void **state)
{
	(void) state;
	write_log(HEAD "{\"snapshot\":9}\n" PUT(7, "a") "{\"snapshotEnd\":9}\n" PUT(10, "a") "{\"error\":\"x\"}\n" PUT(11, "b") PUT(12, "c"));
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
