/* Unit tests of replay/log/log_load.c and, through it, of storage/mvcc/mvcc_import.c: on the simulated disk,
 * with crashes at every operation. */
#include "vdtest.h"

#include <unistd.h>

#include "actor_sim.h"
#include "disk_sim.h"
#include "env.h"
#include "log_load.h"
#include "mvcc_open.h"
#include "mvcc_store.h"

static char path[] = "/tmp/vedette-log-load-XXXXXX";

#define HEAD "{\"vedetteLog\":1}\n"
#define PUT(rev, key, value) "{\"rev\":" #rev ",\"type\":\"PUT\",\"key\":\"" key "\",\"value\":" value "}\n"
#define DELETE(rev, key) "{\"rev\":" #rev ",\"type\":\"DELETE\",\"key\":\"" key "\"}\n"
#define COMMIT(rev) "{\"commit\":" #rev "}\n"

/* The simulated disk keeps files in memory: small ones. */
static const struct vdi_backend_tuning tuning = { .segment_size = 1 << 20 };

struct world {
	struct vd_env		  *env;
	struct vdi_disk		  *disk;
	struct vd_mvcc_options	   options;
	struct vd_store		  *store;
	struct vd_error		   error;
	struct vdi_log_load_report report;
	bool			   strict;
};

static void world_init(struct world *world, bool durable)
{
	memset(world, 0, sizeof *world);
	assert_status(vdi_env_new_sim(7, NULL, NULL, &world->env), VD_OK);
	assert_status(vdi_disk_sim_new(7, &world->disk), VD_OK);
	vdi_env_set_disk(world->env, world->disk);
	world->options = (struct vd_mvcc_options) VD_MVCC_OPTIONS_INIT;
	world->options.data_dir = durable ? "data" : NULL;
}

static void world_close(struct world *world)
{
	if (world->store)
		world->store = vd_store_close_wait(world->store);
}

static void world_fini(struct world *world)
{
	world_close(world);
	vd_env_free(world->env);
	vdi_disk_sim_free(world->disk);
}

static void write_log(const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
	fclose(file);
}

static vd_status load(struct world *world, const char *text)
{
	write_log(text);
	world->error.message[0] = 0;
	return vdi_log_load_open(world->env, &world->options, &tuning, path, world->strict, NULL, NULL,
				 &world->store, &world->report, &world->error);
}

static vd_status open_store(struct world *world)
{
	return vdi_mvcc_open_tuned(world->env, &world->options, &tuning, &world->store, &world->error);
}

static void assert_loads(struct world *world, const char *text)
{
	if (load(world, text) != VD_OK)
		fail_msg("%s", world->error.message);
}

/* "create mod version value" */
static void assert_key(struct world *world, const char *key, const char *expected)
{
	struct vd_kv *kv = NULL;
	char	      text[256] = "absent";

	if (vd_store_get_wait(world->store, vd_bytes_of(key), &kv, NULL) == VD_OK)
		snprintf(text, sizeof text, "%lld %lld %lld %.*s", (long long) kv->create_rev,
			 (long long) kv->mod_rev, (long long) kv->version, (int) kv->value_size,
			 (const char *) vd_kv_value(kv).data);
	vd_kv_unref(kv);
	assert_string_equal(text, expected);
}

static void assert_stands(struct world *world, vd_rev revision, vd_rev compacted, int64_t keys)
{
	struct vd_store_status status;

	assert_status(vd_store_status_get(world->store, &status), VD_OK);
	assert_int_equal(status.current, revision);
	assert_int_equal(status.compacted, compacted);
	assert_int_equal(status.key_count, keys);
}

static void be_ready(void *arg)
{
	(void) arg;
}

/* "12+a 12-b 13+c " of the events from revision on; '~' is a put that is no create. */
static void assert_events(struct world *world, vd_rev from, const char *expected)
{
	struct vd_store_watch_request request = {
		.key = vd_bytes_of("a"), .range_end = { "", 1 }, .start_revision = from, .ready = be_ready
	};
	struct vd_store_watch *watch;
	struct vd_store_batch  batch;
	char		       text[512] = "";
	vd_status	       status;

	assert_status(vd_store_watch_open(world->store, &request, &watch, NULL), VD_OK);
	while ((status = vd_store_watch_next(watch, 100, &batch, NULL)) == VD_OK)
		for (size_t i = 0; i < batch.event_count; i++) {
			const struct vd_store_event *event = &batch.events[i];

			snprintf(text + strlen(text), sizeof text - strlen(text), "%lld%c%.*s ",
				 (long long) event->kv->mod_rev,
				 event->is_delete		 ? '-' :
				 vd_store_event_is_create(event) ? '+' :
								   '~',
				 (int) event->kv->key_size, event->kv->data);
		}
	vd_store_watch_close(watch);
	assert_string_equal(status == VD_AGAIN ? text : vd_status_name(status), expected);
}

/* Everything twice: as it was loaded, and after the directory was opened again. */
#define BOTH(world, statements)                                                                              \
	do {                                                                                                 \
		statements;                                                                                  \
		if ((world)->options.data_dir) {                                                             \
			world_close(world);                                                                  \
			assert_status(open_store(world), VD_OK);                                             \
			statements;                                                                          \
		}                                                                                            \
	} while (0)

static void with_both(void (*test)(struct world *world))
{
	for (int durable = 0; durable < 2; durable++) {
		struct world world;

		world_init(&world, durable);
		test(&world);
		world_fini(&world);
	}
}

static void revisions(struct world *world)
{
	assert_loads(world,
		     HEAD PUT(5, "a", "1") COMMIT(5) PUT(9, "a", "2") PUT(9, "b", "{\"x\" : 1}") COMMIT(9)
			     DELETE(12, "a") PUT(12, "c", "3") COMMIT(12) PUT(20, "a", "4") COMMIT(20));
	assert_int_equal(world->report.records, 6);
	assert_int_equal(world->report.revision, 20);
	assert_false(world->report.tail.is_torn);
	BOTH(world, {
		assert_stands(world, 20, -1, 3);
		assert_key(world, "a", "20 20 1 4");
		assert_key(world, "b", "9 9 1 {\"x\":1}");
		assert_key(world, "c", "12 12 1 3");
		assert_events(world, 1, "5+a 9~a 9+b 12-a 12+c 20+a ");
		assert_events(world, 12, "12-a 12+c 20+a ");
	});
}

static void revisions_versions_and_history_are_kept(void **state)
{
	(void) state;
	with_both(revisions);
}

static void given(struct world *world)
{
	assert_loads(world, HEAD "{\"rev\":30,\"type\":\"PUT\",\"key\":\"a\",\"value\":1,\"createRev\":7,"
				 "\"version\":12,\"lease\":99}\n" PUT(31, "a", "2"));
	BOTH(world, {
		assert_key(world, "a", "7 31 13 2");
		assert_events(world, 1, "30~a 31~a ");
		assert_stands(world, 31, -1, 1);
	});
	assert_status(vd_store_put_wait(world->store, vd_bytes_of("b"), vd_bytes_of("x"), NULL, NULL), VD_OK);
	assert_key(world, "b", "32 32 1 x");
}

static void create_revisions_and_versions_that_are_given_are_taken(void **state)
{
	(void) state;
	with_both(given);
}

static void snapshot(struct world *world)
{
	assert_loads(world, HEAD
		     "{\"snapshot\":11}\n"
		     "{\"rev\":9,\"type\":\"PUT\",\"key\":\"b\",\"value\":2,\"createRev\":4,\"version\":3}\n"
		     "{\"rev\":4,\"type\":\"PUT\",\"key\":\"a\",\"value\":1}\n"
		     "{\"rev\":9,\"type\":\"PUT\",\"key\":\"c\",\"value\":3}\n"
		     "{\"snapshotEnd\":11}\n" PUT(12, "b", "5") COMMIT(12) DELETE(14, "a") COMMIT(14));
	BOTH(world, {
		assert_stands(world, 14, 9, 2);
		assert_key(world, "a", "absent");
		assert_key(world, "b", "4 12 4 5");
		assert_key(world, "c", "9 9 1 3");
		assert_events(world, 8, "expired");
		assert_events(world, 10, "12~b 14-a ");
	});
}

static void a_snapshot_comes_in_any_order_and_hides_what_was_before(void **state)
{
	(void) state;
	with_both(snapshot);
}

static void compaction(struct world *world)
{
	assert_loads(world,
		     HEAD PUT(5, "a", "1") COMMIT(5) PUT(6, "a", "2") COMMIT(6) DELETE(7, "a") COMMIT(7)
			     PUT(8, "b", "3") COMMIT(8) "{\"compact\":7}\n{\"progress\":8}\n{\"disconnect\":"
							"true}\n{\"error\":\"x\"}\n" PUT(9, "b", "4")
								COMMIT(9));
	BOTH(world, {
		assert_stands(world, 9, 7, 1);
		assert_events(world, 6, "expired");
		assert_events(world, 8, "8+b 9~b ");
	});
}

/* Nothing of a log is loaded that is incomplete, if the caller asks for that. */
static void strict_refuses_an_incomplete_log(void **state)
{
	static const char *const sealed = "{\"vedetteLog\":1,\"checksums\":\"xxh64\"}\n";
	struct world		 world;

	(void) state;
	world_init(&world, true);
	world.strict = true;
	assert_status(load(&world, HEAD PUT(5, "a", "1") COMMIT(5) PUT(6, "b", "1")), VD_BAD_REQUEST);
	assert_non_null(
		strstr(world.error.message, ":4: the log is torn at line 4: 1 whole records and 43 bytes"));
	assert_status(load(&world, sealed), VD_BAD_REQUEST);
	assert_non_null(strstr(world.error.message, "without a closing line"));
	assert_loads(&world, HEAD PUT(5, "a", "1") COMMIT(5));
	world_fini(&world);
}

static void compaction_of_the_log_is_done(void **state)
{
	(void) state;
	with_both(compaction);
}

static void a_torn_tail_is_dropped(void **state)
{
	static const struct {
		const char *text;
		vd_rev	    revision;
		bool	    was_torn;
		uint64_t    line;
	} cases[] = {
		{ HEAD PUT(5, "a", "1") COMMIT(5) PUT(6, "b", "1") PUT(6, "c", "1"), 5, true, 4 },
		{ HEAD PUT(5, "a", "1") COMMIT(5) PUT(6, "b", "1") "{\"commit\":6", 5, true, 4 },
		{ HEAD PUT(5, "a", "1") COMMIT(5) "{\"rev\":6", 5, true, 4 },
		{ HEAD PUT(5, "a", "1") PUT(6, "b", "1"), 6, false },
		{ HEAD PUT(5, "a", "1") PUT(6, "b", "1") "{\"rev\":7,\"type", 6, true, 4 },
		{ HEAD PUT(5, "a", "1") PUT(6, "b", "1") "{\"rev\":6,\"type", 5, true, 3 },
		{ HEAD PUT(5, "a", "1") PUT(6, "b", "1") "{\"re", 5, true, 3 },
		{ HEAD, 1, false },
		{ HEAD PUT(5, "a", "1"), 5, false },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct world world;

		world_init(&world, true);
		assert_loads(&world, cases[i].text);
		assert_int_equal(world.report.tail.is_torn, cases[i].was_torn);
		if (cases[i].was_torn)
			assert_int_equal(world.report.tail.line, cases[i].line);
		BOTH(&world, assert_stands(&world, cases[i].revision, -1,
					   cases[i].revision == 1 ? 0 : cases[i].revision - 4));
		world_fini(&world);
	}
}

static void a_broken_line_is_named_and_nothing_is_loaded(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ HEAD PUT(5, "a", "1") COMMIT(5) "{\"rev\":6,\"type\":\"PUT\",\"key\":\"b\"}\n",
		  ":4: a PUT needs" },
		{ HEAD PUT(5, "a", "1") COMMIT(5) "nonsense\n", ":4: " },
		{ HEAD PUT(5, "a", "1") COMMIT(5) PUT(4, "b", "1") COMMIT(4),
		  ":4: revision 4 does not follow 5" },
		{ HEAD PUT(5, "a", "1") COMMIT(5) PUT(5, "b", "1") COMMIT(5),
		  ":4: revision 5 does not follow 5" },
		{ HEAD PUT(5, "a", "1") COMMIT(6), ":3: the commit has another revision" },
		{ HEAD PUT(5, "a", "1") COMMIT(5) PUT(6, "a", "1") PUT(7, "a", "1") COMMIT(7),
		  ":5: a new revision begins" },
		{ HEAD PUT(5, "a", "1") PUT(5, "a", "2") COMMIT(5), ":3: key a occurs twice" },
		{ HEAD PUT(5, "a", "1") COMMIT(5) DELETE(6, "zz") COMMIT(6),
		  ":4: a delete of a key that does not exist: zz" },
		{ HEAD "{\"rev\":5,\"type\":\"PUT\",\"key\":\"a\",\"value\":1,\"createRev\":6}\n",
		  ":2: a create revision above" },
		{ HEAD "{\"snapshot\":5}\n" PUT(6, "a", "1") "{\"snapshotEnd\":5}\n",
		  ":3: not part of a snapshot: a" },
		{ HEAD "{\"snapshot\":5}\n" PUT(3, "a", "1") PUT(4, "a", "1") "{\"snapshotEnd\":5}\n",
		  ":4: key a occurs twice" },
		{ HEAD "{\"snapshot\":5}\n" DELETE(3, "a"), ":3: a DELETE within a snapshot" },
		{ HEAD "{\"snapshot\":5}\n" PUT(3, "a", "1"), ":3: the log ends within a snapshot" },
		{ HEAD "{\"snapshotEnd\":5}\n", ":2: snapshotEnd without" },
		{ HEAD PUT(5, "a", "1") "{\"snapshot\":5}\n{\"snapshotEnd\":5}\n",
		  ":3: a snapshot must come before" },
		{ HEAD PUT(5, "a", "1") COMMIT(5) "{\"compact\":6}\n", ":4: compaction at 6" },
		{ HEAD PUT(5, "a", "1") PUT(5, "b", "{\"x\":[1e5,-1e400]}") COMMIT(5),
		  ":3: the number -1e400 fits neither int64 nor float64" },
		{ HEAD "{\"snapshot\":5}\n" PUT(3, "a", "{}")
			  PUT(4, "b", "{\"x\":1e400}") "{\"snapshotEnd\":5}\n",
		  ":4: the number 1e400" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct world world;

		world_init(&world, true);
		assert_status(load(&world, cases[i].text), VD_BAD_REQUEST);
		if (strstr(world.error.message, cases[i].says) == NULL)
			fail_msg("%zu: \"%s\" does not say \"%s\"", i, world.error.message, cases[i].says);
		assert_null(world.store);
		assert_status(open_store(&world), VD_OK);
		assert_stands(&world, 1, -1, 0);
		world_fini(&world);
	}
}

static void a_store_that_is_not_empty_is_refused(void **state)
{
	struct world world;

	(void) state;
	world_init(&world, true);
	assert_status(open_store(&world), VD_OK);
	world_close(&world);
	assert_loads(&world, HEAD PUT(5, "a", "1")); /* open, but empty */
	world_close(&world);
	assert_status(load(&world, HEAD PUT(9, "b", "1")), VD_EXISTS);
	assert_non_null(strstr(world.error.message, "has 1 keys and is at revision 5"));
	assert_status(open_store(&world), VD_OK);
	assert_key(&world, "a", "5 5 1 1");
	assert_key(&world, "b", "absent");
	world_close(&world);
	assert_int_equal(unlink(path), 0);
	assert_status(vdi_log_load_open(world.env, &world.options, &tuning, path, false, NULL, NULL,
					&world.store, NULL, &world.error),
		      VD_NOT_FOUND);
	world_fini(&world);
}

/* A long log passes several gatherings and chunks. */
static void many_revisions(void **state)
{
	struct world world;
	FILE	    *file = fopen(path, "w");
	char	     key[16];

	(void) state;
	fputs(HEAD, file);
	for (int i = 0; i < 20000; i++)
		fprintf(file, "{\"rev\":%d,\"type\":\"PUT\",\"key\":\"k%d\",\"value\":%d}\n", 10 + 2 * i,
			i % 777, i);
	fclose(file);
	world_init(&world, true);
	assert_status(vdi_log_load_open(world.env, &world.options, &tuning, path, false, NULL, NULL,
					&world.store, &world.report, &world.error),
		      VD_OK);
	BOTH(&world, {
		assert_stands(&world, 10 + 2 * 19999, -1, 777);
		for (int i = 0; i < 777; i++) {
			struct vd_kv *kv;

			snprintf(key, sizeof key, "k%d", i);
			assert_status(vd_store_get_wait(world.store, vd_bytes_of(key), &kv, NULL), VD_OK);
			assert_int_equal(kv->create_rev, 10 + 2 * i);
			assert_int_equal(kv->version, i < 20000 % 777 ? 26 : 25);
			vd_kv_unref(kv);
		}
	});
	world_fini(&world);
}

static const char small[] =
	HEAD	  PUT(5, "a", "1") COMMIT(5) PUT(9, "a", "2") PUT(9, "b", "3") COMMIT(9) "{\"compact\":6}\n";

/* Whole, or not at all, or a directory that says it is unfinished. */
static void a_crash_at_any_operation_shows_nothing_in_part(void **state)
{
	static const enum vdi_disk_sim_fault faults[] = { VDI_DISK_SIM_CRASH, VDI_DISK_SIM_IO,
							  VDI_DISK_SIM_NO_SPACE };
	unsigned			     empty = 0, full = 0, unfinished = 0;

	(void) state;
	for (size_t fault = 0; fault < VDI_ARRAY_SIZE(faults); fault++) {
		bool failed = true;

		for (uint64_t nth = 1; failed; nth++) {
			struct world	       world;
			struct vd_store_status status;
			vd_status	       opened;

			world_init(&world, true);
			vdi_disk_sim_fail_nth(world.disk, nth, faults[fault]);
			opened = load(&world, small);
			failed = vdi_disk_sim_failed(world.disk);
			assert_true(failed || opened == VD_OK);
			world_close(&world);
			vdi_disk_sim_crash(world.disk);
			if (open_store(&world) == VD_OK) {
				assert_status(vd_store_status_get(world.store, &status), VD_OK);
				assert_true(status.key_count == 0 ?
						    status.current == 1 :
						    status.current == 9 && status.compacted == 6);
				assert_true(opened != VD_OK || status.key_count == 2);
				empty += status.key_count == 0;
				full += status.key_count == 2;
			} else {
				assert_status(world.error.code, VD_CORRUPT);
				assert_non_null(strstr(world.error.message, "load again"));
				assert_true(opened != VD_OK);
				unfinished++;
			}
			world_fini(&world);
		}
	}
	assert_true(empty && full && unfinished);
}

static void every_allocation_may_fail(void **state)
{
	int64_t live = vdi_alloc_live();
	bool	failed = true;

	(void) state;
	for (uint64_t nth = 1; failed; nth++) {
		struct world world;
		vd_status    status;

		world_init(&world, false);
		write_log(small);
		vdi_alloc_fail_nth(nth, 1);
		status = vdi_log_load_open(world.env, &world.options, &tuning, path, false, NULL, NULL,
					   &world.store, &world.report, &world.error);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		world_fini(&world);
		assert_int_equal(vdi_alloc_live(), live);
	}
}

static uint64_t progress_calls, progress_records, written_calls, written, to_write;

static void on_progress(void *arg, uint64_t done, uint64_t all)
{
	(void) arg;
	if (all == 0) { /* of the reading */
		progress_calls++;
		progress_records = done;
	} else {
		written_calls++;
		written = done;
		to_write = all;
	}
}

/* Progress is reported every 100,000 records, of the reading and of the writing; the report at the end has
 * their number and the revision of the store. */
static void the_loading_is_reported(void **state)
{
	struct world world;
	FILE	    *file;

	(void) state;
	world_init(&world, false);
	assert_loads(&world, HEAD "{\"snapshot\":9}\n" PUT(3, "a", "1") PUT(7, "b", "1")
				     PUT(5, "c", "1") "{\"snapshotEnd\":9}\n");
	assert_int_equal(world.report.records, 3);
	assert_true(world.report.revision >= 7);
	world_fini(&world);
	world_init(&world, true);
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, HEAD);
	for (int revision = 2; revision < 152; revision++) {
		for (int key = 0; key < 1000; key++)
			fprintf(file, "{\"rev\":%d,\"type\":\"PUT\",\"key\":\"k%d\",\"value\":1}\n", revision,
				key);
		fprintf(file, "{\"commit\":%d}\n", revision);
	}
	fclose(file);
	assert_status(vdi_log_load_open(world.env, &world.options, &tuning, path, false, on_progress, NULL,
					&world.store, &world.report, &world.error),
		      VD_OK);
	assert_int_equal(progress_calls, 1);
	assert_int_equal(progress_records, 100000);
	assert_int_equal(world.report.records, 150000);
	assert_int_equal(world.report.revision, 151);
	assert_int_equal(written_calls, 1);
	assert_int_equal(written, 100000);
	assert_int_equal(to_write, 150000);
	world_fini(&world);
	world_init(&world, true);
	/* Progress is optional. */
	assert_status(vdi_log_load_open(world.env, &world.options, &tuning, path, false, NULL, NULL,
					&world.store, &world.report, &world.error),
		      VD_OK);
	world_fini(&world);
	world_init(&world, false);
	/* Who does not want the report gets none, and it is left alone when nothing was loaded. */
	write_log(HEAD PUT(3, "a", "1"));
	assert_status(vdi_log_load_open(world.env, &world.options, &tuning, path, false, NULL, NULL,
					&world.store, NULL, &world.error),
		      VD_OK);
	world_close(&world);
	world.report.records = 77;
	assert_int_not_equal(load(&world, HEAD PUT(3, "a", "1") "{\n"), VD_OK);
	assert_int_equal(world.report.records, 77);
	world_fini(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(revisions_versions_and_history_are_kept),
		cmocka_unit_test(create_revisions_and_versions_that_are_given_are_taken),
		cmocka_unit_test(a_snapshot_comes_in_any_order_and_hides_what_was_before),
		cmocka_unit_test(compaction_of_the_log_is_done),
		cmocka_unit_test(a_torn_tail_is_dropped),
		cmocka_unit_test(strict_refuses_an_incomplete_log),
		cmocka_unit_test(a_broken_line_is_named_and_nothing_is_loaded),
		cmocka_unit_test(a_store_that_is_not_empty_is_refused),
		cmocka_unit_test(many_revisions),
		cmocka_unit_test(a_crash_at_any_operation_shows_nothing_in_part),
		cmocka_unit_test(every_allocation_may_fail),
		cmocka_unit_test(the_loading_is_reported),
	};
	int file = mkstemp(path), failed;

	close(file);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
