/* Power cuts and changed sectors of the files of a local history (`serve --etcd --data-dir`).
 *
 * The files are written, recorded and cut off as in test_power_cut. They are copies of an etcd's data, so
 * some may be lost; but they always open, their content is true and without a gap, synced content is there,
 * and they can be extended. Then sectors are changed: the same holds, and unusable content is reported.
 *
 *   test_power_cut_history [LAYOUTS [SEED]]     the long run: test_power_cut_history 3000 7
 */
#include <sys/stat.h>

#include "disk.h"
#include "disk_trace.h"
#include "temp_folder.h"
#include "history_files.h"

#define KEYS 7 /* written in turn; the revisions 1 to 7 created them */
#define REVISIONS 1500

static uint64_t layouts = 100;
static uint64_t first_seed = 1;
static char	top[] = "/tmp/vedette-test-power-history-XXXXXX";

struct history {
	struct vdi_dir		  *dir;
	struct vdi_history_files  *files;
	struct vdi_loaded_history *loaded;
	struct vd_error		   lost;
};

static const vd_wall now = { INT64_C(1700000000) * 1000000000 };

/* Makes the record of a revision, of random size. */
static struct vd_kv *new_record(vd_rev revision)
{
	static char	filler[3000];
	struct vdi_rand rand;
	struct vd_kv   *kv;
	char		key[32];
	size_t		size;

	vdi_rand_init(&rand, (uint64_t) revision);
	size = 1 + vdi_rand_below(&rand, sizeof filler);
	memset(filler, (int) ('a' + revision % 26), size);
	snprintf(key, sizeof key, "/registry/%lld", (long long) revision % KEYS);
	assert_status(vd_kv_new(vd_bytes_of(key), (struct vd_bytes) { filler, size }, &kv), VD_OK);
	kv->mod_rev = revision;
	kv->create_rev = 1 + (revision - 1) % KEYS;
	kv->version = 1 + (revision - kv->create_rev) / KEYS;
	return kv;
}

static bool is_record(const struct vd_kv *kv, vd_rev revision)
{
	struct vd_kv *expected = new_record(revision);
	bool	      is_same = kv && kv->mod_rev == revision && kv->create_rev == expected->create_rev &&
		       kv->version == expected->version &&
		       vd_bytes_equal(vd_kv_key(kv), vd_kv_key(expected)) &&
		       vd_bytes_equal(vd_kv_value(kv), vd_kv_value(expected));

	vd_kv_unref(expected);
	return is_same;
}

/* Opens the history, and checks that its content is true. */
static void history_open(struct history *history, const char *path)
{
	struct vdi_history_files_options options = {
		.store_id = 77, .prefix = vd_bytes_of("/registry/"), .seed = 5, .bytes_max = 512 << 10
	};
	struct vd_error error = { 0 };

	memset(history, 0, sizeof *history);
	assert_status(vdi_dir_open(vdi_disk_os(), path, &history->dir, NULL), VD_OK);
	assert_status(vdi_loaded_history_new(&history->loaded), VD_OK);
	options.dir = history->dir;
	if (vdi_history_files_open(&options, now, history->loaded, &history->files, &history->lost, &error) !=
	    VD_OK)
		fail_msg("%s", error.message);
	assert_int_equal(history->loaded->count, history->loaded->until - history->loaded->floor);
	for (size_t i = 0; i < history->loaded->count; i++) {
		vd_rev revision = history->loaded->floor + 1 + (vd_rev) i;

		assert_false(history->loaded->events[i].is_delete);
		assert_true(is_record(history->loaded->events[i].kv, revision));
		assert_true(is_record(history->loaded->events[i].previous, revision - KEYS));
	}
}

static void history_close(struct history *history)
{
	vdi_history_files_close(history->files);
	vdi_loaded_history_unref(history->loaded);
	vdi_dir_close(history->dir);
}

/* Appends after the last known revision. */
static vd_rev write_some(struct history *history, unsigned count, struct vdi_rand *rand)
{
	assert_status(vdi_history_files_tidy(history->files, NULL), VD_OK);
	if (history->loaded->until == 0)
		vdi_history_files_restart(history->files, KEYS);
	for (unsigned i = 0; i < count; i++) {
		vd_rev		      revision = vdi_history_files_until(history->files) + 1;
		struct vd_store_event event = { .kv = new_record(revision),
						.previous = new_record(revision - KEYS) };

		assert_status(vdi_history_files_prepare(history->files, now, NULL), VD_OK);
		assert_status(vdi_history_files_append(history->files, &event, 1, now), VD_OK);
		if (vdi_rand_once_in(rand, 2))
			assert_status(vdi_history_files_flush(history->files, NULL), VD_OK);
		assert_status(vdi_history_files_evict(history->files, now, NULL), VD_OK);
		if (vdi_rand_once_in(rand, 10) || i + 1 == count) {
			assert_status(vdi_history_files_flush(history->files, NULL), VD_OK);
			assert_status(vdi_history_files_sync(history->files, NULL), VD_OK);
			trace_ack((struct op) { .kind = OP_ACK, .revision = revision });
		}
		vd_kv_unref(event.kv);
		vd_kv_unref(event.previous);
	}
	return vdi_history_files_until(history->files);
}

static void a_load_is_recorded(void **state)
{
	struct history	history;
	struct vdi_rand rand;
	char		dir[128];

	(void) state;
	snprintf(dir, sizeof dir, "%s/data", top);
	vdi_rand_init(&rand, first_seed);
	trace_begin(dir);
	for (unsigned part = 0; part < 3; part++) {
		history_open(&history, dir);
		(void) write_some(&history, REVISIONS / 3, &rand);
		history_close(&history);
	}
	trace_end();
}

static vd_rev acknowledged(size_t end)
{
	vd_rev revision = 0;

	for (size_t i = 0; i < end; i++)
		if (trace.ops[i].kind == OP_ACK)
			revision = trace.ops[i].revision;
	return revision;
}

static void go_on(struct history *history, const char *dir)
{
	struct vdi_rand rand;
	vd_rev		until;

	vdi_rand_init(&rand, 1);
	until = write_some(history, 20, &rand);
	history_close(history);
	history_open(history, dir);
	assert_int_equal(history->loaded->until, until);
	assert_true(history->loaded->count >= 20);
	history_close(history);
}

static void any_layout_after_a_power_cut_tells_what_was_synced(void **state)
{
	struct history history;
	char	       dir[128];

	(void) state;
	for (uint64_t i = 0; i < layouts; i++) {
		struct vdi_rand rand;
		size_t		end;

		vdi_rand_init(&rand, first_seed * 1000003 + i);
		end = vdi_rand_below(&rand, trace.count + 1);
		snprintf(dir, sizeof dir, "%s/cut-%llu", top, (unsigned long long) i);
		lay_out(dir, end, &rand);
		history_open(&history, dir);
		if (history.loaded->until < acknowledged(end))
			fail_msg("layout %llu: %lld of %lld synced revisions (%s)", (unsigned long long) i,
				 (long long) history.loaded->until, (long long) acknowledged(end),
				 history.lost.message);
		go_on(&history, dir);
		temp_folder_remove(dir);
	}
	print_message("%zu calls, %llu layouts\n", trace.count, (unsigned long long) layouts);
}

static void a_changed_sector_is_reported_or_harmless(void **state)
{
	struct history history;
	char	       dir[128];
	vd_rev	       floor, until;
	unsigned       reported = 0, shorter = 0;

	(void) state;
	history_open(&history, trace.dir);
	floor = history.loaded->floor;
	until = history.loaded->until;
	history_close(&history);
	for (uint64_t i = 0; i < layouts * 2; i++) {
		struct vdi_rand rand;

		vdi_rand_init(&rand, first_seed * 2000003 + i);
		snprintf(dir, sizeof dir, "%s/changed-%llu", top, (unsigned long long) i);
		lay_out_changed(dir, &rand);
		history_open(&history, dir);
		reported += history.lost.code != VD_OK;
		shorter += history.lost.code == VD_OK && history.loaded->until < until;
		/* Missing content is reported; at the very end it may look like a torn write. */
		assert_true(history.lost.code != VD_OK || history.loaded->floor == floor);
		go_on(&history, dir);
		temp_folder_remove(dir);
	}
	print_message("%llu changed, %u reported, %u looked torn at the end\n",
		      (unsigned long long) layouts * 2, reported, shorter);
	assert_true(reported > 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_load_is_recorded),
		cmocka_unit_test(any_layout_after_a_power_cut_tells_what_was_synced),
		cmocka_unit_test(a_changed_sector_is_reported_or_harmless),
	};

	if (!trace_arguments(argc, argv, &layouts, &first_seed, top))
		return 1;
	return trace_end_tests(cmocka_run_group_tests(tests, NULL, NULL), top);
}
