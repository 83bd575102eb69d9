/* Power cuts and changed sectors of event logs, plain and compressed.
 *
 * A writer of a log is recorded and cut off as in test_power_cut. The remaining log can be read: whole
 * transactions without a gap, including all flushed ones, and at most a torn tail that is reported. A writer
 * continues after it, and the result is a valid log. Then sectors of a closed log are changed: reading names
 * the file, or returns the written content up to an error.
 *
 *   test_power_cut_log [LAYOUTS [SEED]]     the long run: test_power_cut_log 3000 7
 */
#include <sys/stat.h>

#include "disk_trace.h"
#include "temp_folder.h"
#include "log_steps.h"
#include "log_writer.h"

#define SNAPSHOT 10 /* number of keys and revision of the snapshot at the start */

static uint64_t	   layouts = 150;
static uint64_t	   first_seed = 1;
static char	   top[] = "/tmp/vedette-test-power-log-XXXXXX";
static const char *name;

/* ---- Writing ---- */

/* Makes the value of a revision: of random size, incompressible. */
static struct vd_kv *new_record(vd_rev revision)
{
	static char	filler[6000];
	struct vdi_rand rand;
	struct vd_kv   *kv;
	char		key[32];
	size_t		size;

	vdi_rand_init(&rand, (uint64_t) revision);
	size = 2 + vdi_rand_below(&rand, sizeof filler - 2);
	filler[0] = filler[size - 1] = '"';
	for (size_t i = 1; i + 1 < size; i++)
		filler[i] = (char) ('a' + vdi_rand_below(&rand, 26));
	snprintf(key, sizeof key, "/key/%lld", (long long) revision);
	assert_status(vd_kv_new(vd_bytes_of(key), (struct vd_bytes) { filler, size }, &kv), VD_OK);
	kv->mod_rev = revision;
	return kv;
}

static void write_change(struct vdi_log_writer *writer, vd_rev revision)
{
	struct vd_kv *kv = new_record(revision);

	assert_status(vdi_log_writer_change(writer, false, kv, (vd_wall) { 0 }, NULL), VD_OK);
	vd_kv_unref(kv);
}

static struct vdi_log_writer *open_writer(const char *dir, vd_rev *ret_last)
{
	struct vdi_log_writer_options options = { .resume = true, .source = "a test" };
	struct vdi_log_writer	     *writer;
	struct vd_error		      error = { 0 };
	char			      path[256];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	options.path = path;
	if (vdi_log_writer_open(&options, &writer, ret_last, &error) != VD_OK)
		fail_msg("%s", error.message);
	if (*ret_last > 0)
		return writer;
	assert_status(vdi_log_writer_snapshot_begin(writer, SNAPSHOT, NULL), VD_OK);
	for (vd_rev revision = 1; revision <= SNAPSHOT; revision++)
		write_change(writer, revision);
	assert_status(vdi_log_writer_snapshot_end(writer, SNAPSHOT, NULL), VD_OK);
	*ret_last = SNAPSHOT;
	return writer;
}

static void write_some(struct vdi_log_writer *writer, vd_rev *last, unsigned count, struct vdi_rand *rand)
{
	for (unsigned i = 0; i < count; i++) {
		write_change(writer, ++*last);
		assert_status(vdi_log_writer_commit(writer, *last, NULL), VD_OK);
		if (!vdi_rand_once_in(rand, 20))
			continue;
		assert_status(vdi_log_writer_flush(writer, NULL), VD_OK);
		trace_ack((struct op) { .kind = OP_ACK, .revision = *last });
	}
}

static void record_a_load(const char *dir)
{
	struct vdi_rand rand;

	vdi_rand_init(&rand, first_seed);
	assert_int_equal(mkdir(dir, 0700), 0);
	trace_begin(dir);
	for (unsigned part = 0; part < 4; part++) {
		vd_rev		       last;
		struct vdi_log_writer *writer = open_writer(dir, &last);

		write_some(writer, &last, 300, &rand);
		assert_status(vdi_log_writer_close(writer, NULL), VD_OK);
		trace_ack((struct op) { .kind = OP_ACK, .revision = last });
	}
	trace_end();
}

/* ---- Reading ---- */

static void check_record(const struct vdi_log_step *step, size_t number, vd_rev revision)
{
	struct vd_kv *kv = new_record(revision);

	assert_int_equal(step->changes[number].kv->mod_rev, revision);
	assert_true(vd_bytes_equal(vd_kv_value(step->changes[number].kv), vd_kv_value(kv)));
	vd_kv_unref(kv);
}

/* Checks that every step is as written, and none is missing before the last. Returns VD_CLOSED, or the status
 * that ended it. */
static vd_status read_log(const char *dir, vd_rev *ret_last, struct vdi_log_tail *ret_tail,
			  struct vd_error *reterr)
{
	struct vdi_log_steps *steps;
	struct vdi_log_step   step;
	vd_status	      status;
	char		      path[256];

	*ret_last = 0;
	snprintf(path, sizeof path, "%s/%s", dir, name);
	VDI_TRY(vdi_log_steps_open(path, &steps, reterr));
	while ((status = vdi_log_steps_next(steps, &step, reterr)) == VD_OK) {
		if (step.kind == VDI_STEP_SNAPSHOT) {
			assert_int_equal(*ret_last, 0);
			assert_int_equal(step.count, SNAPSHOT);
			for (vd_rev revision = 1; revision <= SNAPSHOT; revision++)
				check_record(&step, (size_t) revision - 1, revision);
			*ret_last = SNAPSHOT;
			continue;
		}
		assert_int_equal(step.kind, VDI_STEP_TXN);
		assert_int_equal(step.revision, *ret_last + 1);
		check_record(&step, 0, step.revision);
		*ret_last = step.revision;
	}
	*ret_tail = vdi_log_steps_tail(steps);
	vdi_log_steps_close(steps);
	return status;
}

static vd_rev acknowledged(size_t end)
{
	vd_rev revision = 0;

	for (size_t i = 0; i < end; i++)
		if (trace.ops[i].kind == OP_ACK)
			revision = trace.ops[i].revision;
	return revision;
}

static void go_on(const char *dir, vd_rev least)
{
	struct vdi_log_tail    tail;
	struct vdi_rand	       rand;
	vd_rev		       last, read;
	struct vdi_log_writer *writer = open_writer(dir, &last);
	struct vd_error	       error = { 0 };

	assert_true(last >= least);
	vdi_rand_init(&rand, 1);
	write_some(writer, &last, 5, &rand);
	assert_status(vdi_log_writer_close(writer, NULL), VD_OK);
	if (read_log(dir, &read, &tail, &error) != VD_CLOSED)
		fail_msg("%s", error.message);
	assert_int_equal(read, last);
	assert_false(tail.is_torn || tail.is_unclosed);
}

static void check_cuts(void)
{
	char	 dir[128];
	unsigned torn = 0;

	for (uint64_t i = 0; i < layouts; i++) {
		struct vd_error	    error = { 0 };
		struct vdi_log_tail tail = { 0 };
		struct vdi_rand	    rand;
		vd_rev		    acked, last;
		size_t		    end;

		vdi_rand_init(&rand, first_seed * 1000003 + i);
		end = vdi_rand_below(&rand, trace.count + 1);
		acked = acknowledged(end);
		snprintf(dir, sizeof dir, "%s/cut-%llu", top, (unsigned long long) i);
		lay_out(dir, end, &rand);
		if (acked && read_log(dir, &last, &tail, &error) != VD_CLOSED)
			fail_msg("layout %llu: %s", (unsigned long long) i, error.message);
		assert_true(acked == 0 || last >= acked);
		torn += tail.is_torn;
		go_on(dir, acked);
		temp_folder_remove(dir);
	}
	print_message("%s: %zu calls, %llu layouts, %u of them torn\n", name, trace.count,
		      (unsigned long long) layouts, torn);
	assert_true(torn > 0);
}

static void check_damage(const char *loaded)
{
	struct vdi_log_tail tail;
	struct vd_error	    error = { 0 };
	char		    dir[128];
	vd_rev		    whole;
	unsigned	    refused = 0, reported = 0;

	assert_status(read_log(loaded, &whole, &tail, &error), VD_CLOSED);
	for (uint64_t i = 0; i < layouts; i++) {
		struct vdi_rand rand;
		vd_status	status;
		vd_rev		last = 0;

		vdi_rand_init(&rand, first_seed * 2000003 + i);
		snprintf(dir, sizeof dir, "%s/changed-%llu", top, (unsigned long long) i);
		lay_out_changed(dir, &rand);
		status = read_log(dir, &last, &tail, &error);
		if (status != VD_CLOSED) {
			assert_status(status, VD_BAD_REQUEST);
			assert_non_null(strstr(error.message, dir));
			refused++;
		} else if (last < whole) {
			assert_true(tail.is_torn || tail.is_unclosed);
			reported++;
		}
		temp_folder_remove(dir);
	}
	print_message("%s: %llu changed, %u refused by name, %u reported as cut off\n", name,
		      (unsigned long long) layouts, refused, reported);
	/* Damage before the end is no torn tail: only a truncated file looks like one. */
	assert_true(refused > layouts / 2 && reported < layouts / 2);
}

static void check_all(const char *file_name, const char *folder)
{
	char dir[128];

	name = file_name;
	snprintf(dir, sizeof dir, "%s/%s", top, folder);
	record_a_load(dir);
	check_cuts();
	check_damage(dir);
}

static void a_plain_log(void **state)
{
	(void) state;
	check_all("log.ndjson", "plain");
}

static void a_compressed_log(void **state)
{
	(void) state;
	check_all("log.ndjson.zst", "packed");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plain_log),
		cmocka_unit_test(a_compressed_log),
	};

	if (!trace_arguments(argc, argv, &layouts, &first_seed, top))
		return 1;
	return trace_end_tests(cmocka_run_group_tests(tests, NULL, NULL), top);
}
