/* Unit tests of storage/history/history_files.c: what is read back is what was recorded, or the newest whole
 * part of it. */
#include "disk_sim.h"
#include "history_files.h"
#include "history_world.h"
#include "journal.h"
#include "journal_segment.h"
#include "vdtest.h"

static void what_was_recorded_is_read_back(void **state)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct history_world w;

		history_world_init(&w, seed);
		w.bytes_max = seed % 2 ? 0 : 64 << 10;
		history_open(&w);
		for (unsigned round = 0; round < 6; round++) {
			history_record_some(&w, 60);
			assert_int_equal(vdi_history_files_until(w.files), w.revision);
			history_reopen(&w);
			assert_status(w.lost.code, VD_OK);
			assert_int_equal(w.loaded->until, w.revision);
			assert_int_equal(w.loaded->floor, vdi_history_files_floor(w.files));
			if (seed % 2)
				assert_int_equal(w.loaded->floor, 4);
		}
		history_world_fini(&w);
	}
}

/* What cannot be removed or opened is an error of the disk, and the caller hears it. */
static void errors_of_the_disk_are_handed_out(void **state)
{
	struct history_world w;
	struct vd_error	     error = { 0 };

	(void) state;
	history_world_init(&w, 3);
	history_open(&w);
	history_record_some(&w, 5);
	history_sync_and_close(&w);
	/* The next start goes on in the same file and first cuts it where its last record ends; what failed
	 * is tried again from the start. */
	assert_status(history_try_open(&w, &error), VD_OK);
	vdi_disk_sim_fail_nth(w.disk, 1, VDI_DISK_SIM_IO);
	assert_status(vdi_history_files_prepare(w.files, w.now, &error), VD_IO);
	vdi_disk_sim_fail_nth(w.disk, 1, VDI_DISK_SIM_IO);
	assert_status(vdi_history_files_prepare(w.files, w.now, &error), VD_IO);
	assert_status(vdi_history_files_prepare(w.files, w.now, NULL), VD_OK);
	assert_int_equal(history_segments(&w, NULL), 1);
	history_close(&w);
	/* A file of another store stays until it can be removed. */
	w.store_id++;
	assert_status(history_try_open(&w, &error), VD_OK);
	vdi_disk_sim_fail_nth(w.disk, 1, VDI_DISK_SIM_IO);
	assert_status(vdi_history_files_tidy(w.files, &error), VD_IO);
	assert_int_equal(history_segments(&w, NULL), 1);
	assert_status(vdi_history_files_tidy(w.files, &error), VD_OK);
	assert_int_equal(history_segments(&w, NULL), 0);
	history_world_fini(&w);
}

/* In steps of an eighth, and never more than one step above it. */
static void the_files_stay_within_their_bytes(void **state)
{
	struct history_world w;
	vd_rev		     floor = 0;

	history_world_init(&w, 3);
	w.bytes_max = 256 << 10;
	w.value_size = 700;
	history_open(&w);
	for (unsigned i = 0; i < 400; i++) {
		history_record_some(&w, 5);
		assert_true(vdi_history_files_bytes(w.files) <=
			    w.bytes_max + w.bytes_max / VDI_HISTORY_SEGMENTS + 16384);
		assert_true(vdi_history_files_floor(w.files) >= floor);
		floor = vdi_history_files_floor(w.files);
	}
	assert_true(floor > 4);
	assert_in_range(history_segments(&w, NULL), VDI_HISTORY_SEGMENTS - 2, VDI_HISTORY_SEGMENTS + 1);
	assert_true(vdi_history_files_bytes(w.files) > w.bytes_max / 2);
	history_reopen(&w);
	assert_int_equal(w.loaded->floor, floor);
	history_world_fini(&w);
}

/* One revision a second for 1,000 s; a window of 100 s. */
static void the_window_is_exact_after_a_start(void **state)
{
	struct history_world w;
	vd_rev		     at[1000];

	history_world_init(&w, 9);
	w.window = VD_SECONDS(100);
	history_open(&w);
	for (unsigned i = 0; i < 1000; i++) {
		w.now.ns += VD_SECONDS(1).ns;
		history_record_some(&w, 1);
		at[i] = w.events[w.count - 1].kv->mod_rev;
	}
	/* At least the window stays, and little more: a part of it is an eighth. */
	assert_true(vdi_history_files_floor(w.files) < at[900]);
	assert_true(vdi_history_files_floor(w.files) > at[870]);
	/* Exactly 100 s old is inside, a nanosecond older is not. */
	history_reopen(&w);
	assert_int_equal(w.loaded->floor, at[898]);
	w.now.ns++;
	history_reopen(&w);
	assert_int_equal(w.loaded->floor, at[899]);
	/* Everything is too old: nothing is told, but it is known up to where and by what. */
	w.now.ns += VD_SECONDS(1000).ns;
	history_reopen(&w);
	assert_int_equal(w.loaded->floor, at[999]);
	assert_int_equal(w.loaded->count, 0);
	assert_int_equal(w.loaded->until, w.revision);
	assert_true(w.loaded->latest.count > 0);
	/* A clock that was set back makes nothing old. */
	w.now.ns -= VD_SECONDS(100000).ns;
	history_reopen(&w);
	assert_true(w.loaded->count > 100);
	history_world_fini(&w);
}

static void the_file_of_a_newer_program_is_not_used(void **state)
{
	struct history_world	  w;
	struct vdi_segment_header header = { .family = VDI_SEGMENT_HISTORY,
					     .sequence = 1,
					     .first_index = 1,
					     .nonce = 1,
					     .size = VDI_SEGMENT_HEADER_SIZE,
					     .revision = 4 };
	struct vdi_file		 *file;

	history_world_init(&w, 1);
	assert_status(vdi_segment_create_format(w.dir, &header, 99, &file, NULL), VD_OK);
	vdi_file_close(file);
	history_open(&w);
	assert_status(w.lost.code, VD_NEWER_FORMAT);
	assert_non_null(strstr(w.lost.message, "format 99"));
	assert_int_equal(w.loaded->until, 0);
	history_record_some(&w, 3);
	history_reopen(&w);
	assert_status(w.lost.code, VD_OK);
	assert_int_equal(w.loaded->count, w.count);
	history_world_fini(&w);
}

static void another_cluster_or_prefix_is_not_believed(void **state)
{
	for (int what = 0; what < 2; what++) {
		struct history_world w;

		history_world_init(&w, 1);
		history_open(&w);
		history_record_some(&w, 30);
		history_close(&w);
		if (what)
			w.prefix = "/other/";
		else
			w.store_id++;
		history_open(&w);
		assert_status(w.lost.code, VD_CONFLICT);
		assert_int_equal(w.loaded->until, 0);
		assert_int_equal(w.loaded->count, 0);
		assert_int_equal(history_segments(&w, NULL), 1); /* the new one */
		history_world_fini(&w);
	}
}

static void an_embedded_store_and_a_local_history_keep_off_each_other(void **state)
{
	struct history_world	   w;
	struct vdi_journal_options options;
	struct vdi_journal	  *journal;
	struct vd_error		   error = { 0 };
	int64_t			   size;

	history_world_init(&w, 1);
	options = (struct vdi_journal_options) { .dir = w.dir, .seed = 1, .segment_size = 1 << 16 };
	assert_status(vdi_journal_open(&options, NULL, NULL, &journal, NULL), VD_OK);
	assert_status(vdi_journal_start(journal, NULL), VD_OK);
	vdi_journal_close(journal);
	assert_status(history_try_open(&w, &error), VD_INVALID);
	assert_non_null(strstr(error.message, "embedded store"));
	assert_non_null(vdi_disk_sim_content(w.disk, "journal-0000000000000001.vdj", &size));
	history_world_fini(&w);

	history_world_init(&w, 1);
	history_open(&w);
	history_record_some(&w, 3);
	options.dir = w.dir;
	assert_status(vdi_journal_open(&options, NULL, NULL, &journal, &error), VD_INVALID);
	assert_non_null(strstr(error.message, "local history"));
	history_world_fini(&w);
}

/* Nothing is lost as long as the caller waits. */
static void a_full_disk_is_waited_for(void **state)
{
	for (int kind = 0; kind < 2; kind++) {
		struct history_world w;
		struct vd_error	     error = { 0 };
		size_t		     first;

		history_world_init(&w, 6);
		history_open(&w);
		history_record_some(&w, 10);
		for (unsigned i = 0; i < 5; i++) {
			first = history_make_revision(&w);
			assert_status(vdi_history_files_prepare(w.files, w.now, NULL), VD_OK);
			assert_status(
				vdi_history_files_append(w.files, w.events + first, w.count - first, w.now),
				VD_OK);
			vdi_disk_sim_fail_nth(w.disk, 1,
					      kind ? VDI_DISK_SIM_NO_SPACE : VDI_DISK_SIM_SHORT_WRITE);
			assert_status(vdi_history_files_flush(w.files, &error), VD_NO_SPACE);
			assert_status(vdi_history_files_flush(w.files, NULL), VD_OK);
		}
		history_reopen(&w);
		assert_int_equal(w.loaded->count, w.count);
		history_world_fini(&w);
	}
}

/* A file whose newest record is exactly as old as the window stays; a nanosecond later it goes. A file takes
 * what comes for exactly an eighth of the window. */
static void files_go_when_they_are_older_than_the_window(void **state)
{
	struct history_world w;
	vd_wall		     begin;

	(void) state;
	history_world_init(&w, 9);
	w.window = VD_SECONDS(80);
	history_open(&w);
	begin = w.now;
	history_record_some(&w, 1);
	w.now.ns = begin.ns + VD_SECONDS(10).ns;
	history_record_some(&w, 1);
	assert_int_equal(history_segments(&w, NULL), 1);
	w.now.ns++;
	history_record_some(&w, 1);
	assert_int_equal(history_segments(&w, NULL), 2);
	assert_int_equal(vdi_history_files_oldest(w.files).ns, begin.ns);
	w.now.ns = begin.ns + VD_SECONDS(90).ns;
	assert_status(vdi_history_files_evict(w.files, w.now, NULL), VD_OK);
	assert_int_equal(history_segments(&w, NULL), 2);
	w.now.ns++;
	assert_status(vdi_history_files_evict(w.files, w.now, NULL), VD_OK);
	assert_int_equal(history_segments(&w, NULL), 1);
	assert_int_equal(vdi_history_files_oldest(w.files).ns, begin.ns + VD_SECONDS(10).ns + 1);
	history_world_fini(&w);
}

static void what_cannot_be_told_is_refused(void **state)
{
	struct history_world w;

	history_world_init(&w, 1);
	history_open(&w);
	for (unsigned what = 0; what < 6; what++) {
		struct vd_kv *old = history_record_of(1, NULL, 5, false, 10, 1),
			     *kv = history_record_of(what == 4 ? 2 : 1, old, 9, what == 0, 10, 1);
		struct vd_store_event event = { .is_delete = what == 0,
						.kv = kv,
						.previous = what < 2 ? NULL : old };

		switch (what) {
		case 2: kv->create_rev = 10; break;
		case 3: old->mod_rev = 9; break;
		case 5: old->version = 0; break;
		default: break;
		}
		assert_status(vdi_history_files_append(w.files, &event, 1, w.now), VD_INVALID);
		assert_int_equal(vdi_history_files_until(w.files), 4);
		vd_kv_unref(kv);
		vd_kv_unref(old);
	}
	history_record_some(&w, 3);
	history_reopen(&w);
	history_world_fini(&w);
}

static void the_witnesses_are_the_newest_and_some_others(void **state)
{
	struct vdi_loaded_history *loaded;
	struct vd_kv		  *witnesses[VDI_LOADED_HISTORY_WITNESSES_MAX];
	size_t			   count;
	vd_rev			   least = 1000;

	assert_status(vdi_loaded_history_new(&loaded), VD_OK);
	for (unsigned i = 0; i < 1000; i++) {
		char	      name[32];
		struct vd_kv *kv;

		snprintf(name, sizeof name, "k%u", i);
		assert_status(vd_kv_new(K(name), K("v"), &kv), VD_OK);
		kv->mod_rev = kv->create_rev = 1 + i;
		kv->version = 1;
		assert_status(vdi_loaded_history_add(loaded, false, kv, NULL, i % 2), VD_OK);
	}
	assert_int_equal(loaded->count, 500);
	assert_status(vdi_loaded_history_witnesses(loaded, witnesses, &count), VD_OK);
	assert_int_equal(count, VDI_LOADED_HISTORY_WITNESSES_MAX);
	for (size_t i = 0; i < count; i++) {
		if (i < VDI_LOADED_HISTORY_WITNESSES_MAX / 2)
			assert_int_equal(witnesses[i]->mod_rev, 1000 - i);
		least = VDI_MIN(least, witnesses[i]->mod_rev);
		vd_kv_unref(witnesses[i]);
	}
	assert_true(least < 60);
	assert_int_equal(vdi_loaded_history_find(loaded, 0), 0);
	assert_int_equal(loaded->events[vdi_loaded_history_find(loaded, 501)].kv->mod_rev, 502);
	assert_int_equal(vdi_loaded_history_find(loaded, 1001), 500);
	vdi_loaded_history_forget(loaded, 900);
	assert_int_equal(loaded->count, 50);
	assert_int_equal(loaded->events[0].kv->mod_rev, 902);
	assert_int_equal(loaded->floor, 900);
	vdi_loaded_history_forget(loaded, 800); /* never back */
	assert_int_equal(loaded->floor, 900);
	assert_int_equal(loaded->count, 50);
	/* Who was last before a gap is no witness of what comes behind it. */
	loaded->until = 1000;
	vdi_loaded_history_clear(loaded);
	assert_int_equal(loaded->count + (size_t) loaded->floor + (size_t) loaded->until, 0);
	assert_null(vdi_loaded_history_latest(loaded, K("k999")));
	assert_status(vdi_loaded_history_witnesses(loaded, witnesses, &count), VD_OK);
	assert_int_equal(count, 0);
	vdi_loaded_history_unref(loaded);
	/* As many keys as there may be witnesses, one fewer, and one more. */
	for (unsigned keys = VDI_LOADED_HISTORY_WITNESSES_MAX - 1;
	     keys <= VDI_LOADED_HISTORY_WITNESSES_MAX + 1; keys++) {
		assert_status(vdi_loaded_history_new(&loaded), VD_OK);
		for (unsigned i = 0; i < keys; i++) {
			struct vd_kv *kv = history_record_of(i, NULL, 1 + i, false, 1, 1);

			assert_status(vdi_loaded_history_add(loaded, false, kv, NULL, true), VD_OK);
		}
		assert_status(vdi_loaded_history_witnesses(loaded, witnesses, &count), VD_OK);
		assert_int_equal(count, VDI_MIN(keys, VDI_LOADED_HISTORY_WITNESSES_MAX));
		for (size_t i = 0; i < count; i++) {
			assert_int_equal(witnesses[i]->mod_rev, keys - i);
			vd_kv_unref(witnesses[i]);
		}
		vdi_loaded_history_unref(loaded);
	}
}

static vd_status record_once(struct history_world *w, size_t *next)
{
	vd_status status = vdi_history_files_prepare(w->files, w->now, NULL);
	size_t	  end = *next;

	while (end < w->count && w->events[end].kv->mod_rev == w->events[*next].kv->mod_rev)
		end++;
	if (status == VD_OK && w->events[*next].kv->mod_rev > vdi_history_files_until(w->files))
		status = vdi_history_files_append(w->files, w->events + *next, end - *next, w->now);
	if (status == VD_OK)
		status = vdi_history_files_flush(w->files, NULL);
	if (status == VD_OK)
		*next = end;
	return status;
}

/* Whatever there was: written and not synced, in the buffer alone, or read by an open that wrote nothing. */
static void a_restart_begins_as_new_files_do(void **state)
{
	(void) state;
	for (unsigned before = 0; before < 3; before++) {
		struct history_world w;
		size_t		     first;
		vd_rev		     floor;
		int64_t		     bytes;

		history_world_init(&w, 5);
		w.bytes_max = 256 << 10;
		w.value_size = 700;
		history_open(&w);
		history_record_some(&w, 200);
		first = history_make_revision(&w);
		assert_status(vdi_history_files_prepare(w.files, w.now, NULL), VD_OK);
		assert_status(vdi_history_files_append(w.files, w.events + first, w.count - first, w.now),
			      VD_OK);
		if (before != 1)
			assert_status(vdi_history_files_flush(w.files, NULL), VD_OK);
		assert_true(vdi_history_files_bytes(w.files) > w.bytes_max / 2);
		assert_true(vdi_history_files_is_dirty(w.files));
		if (before == 2) {
			history_sync_and_close(&w);
			assert_status(history_try_open(&w, NULL), VD_OK);
		}
		floor = w.revision + 7;
		vdi_history_files_restart(w.files, floor);
		assert_int_equal(history_segments(&w, NULL), 0);
		assert_int_equal(vdi_history_files_bytes(w.files), 0);
		assert_int_equal(vdi_history_files_oldest(w.files).ns, 0);
		assert_int_equal(vdi_history_files_floor(w.files), floor);
		assert_int_equal(vdi_history_files_until(w.files), floor);
		assert_false(vdi_history_files_is_dirty(w.files));
		assert_false(vdi_history_files_is_full(w.files));
		/* Nothing of the old buffer is written, and nothing is evicted before the bytes are used up
		 * again. */
		assert_status(vdi_history_files_flush(w.files, NULL), VD_OK);
		assert_status(vdi_history_files_sync(w.files, NULL), VD_OK);
		assert_int_equal(history_segments(&w, NULL), 0);
		w.revision = floor;
		first = w.count;
		do {
			history_record_some(&w, 1);
			bytes = vdi_history_files_bytes(w.files);
			assert_int_equal(vdi_history_files_floor(w.files), floor);
		} while (bytes < w.bytes_max - 8192);
		assert_int_equal(vdi_history_files_oldest(w.files).ns, w.now.ns);
		history_reopen(&w);
		assert_int_equal(w.loaded->floor, floor);
		assert_int_equal(w.loaded->count, w.count - first);
		history_world_fini(&w);
	}
}

static void torture_every_allocation_may_fail(void **state)
{
	bool was_hit = true;

	for (uint64_t nth = 1; was_hit; nth++) {
		struct history_world w;
		size_t		     next = 0;
		vd_status	     status;

		history_world_init(&w, 2);
		w.bytes_max = 128 << 10;
		w.value_size = 900;
		for (unsigned i = 0; i < 30; i++)
			history_make_revision(&w);
		history_open(&w);
		vdi_history_files_restart(w.files, 4);
		vdi_alloc_fail_nth(nth, 1);
		while (next < w.count)
			if ((status = record_once(&w, &next)) != VD_OK)
				assert_status(status, VD_NOMEM);
		history_close(&w);
		status = history_try_open(&w, NULL);
		if (status != VD_OK) {
			assert_status(status, VD_NOMEM);
			assert_status(history_try_open(&w, NULL), VD_OK);
		}
		was_hit = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_int_equal(w.loaded->count, w.count);
		history_assert_loaded(&w);
		history_world_fini(&w);
	}
}

/* Each read of an open fails once: an error of the disk, or history that is lost and named, and what is there
 * is true. The files stay, so the next open has everything. */
static void a_read_that_fails_is_handed_out_or_loses_a_part(void **state)
{
	struct history_world w;
	bool		     was_hit = true;
	unsigned	     refused = 0;

	(void) state;
	history_world_init(&w, 4);
	w.bytes_max = 256 << 10;
	w.value_size = 700;
	history_open(&w);
	history_record_some(&w, 120);
	history_sync_and_close(&w);
	for (uint64_t nth = 1; was_hit; nth++) {
		struct vd_error error = { 0 };
		uint64_t	operations = vdi_disk_sim_operations(w.disk);
		vd_status	status;

		vdi_disk_sim_fail_read(w.disk, nth);
		status = history_try_open(&w, &error);
		was_hit = vdi_disk_sim_failed(w.disk);
		vdi_disk_sim_fail_read(w.disk, 0);
		assert_int_equal(vdi_disk_sim_operations(w.disk), operations);
		assert_true(nth < 1000);
		if (status != VD_OK) {
			assert_true(was_hit);
			assert_status(status, VD_IO);
			assert_status(error.code, VD_IO);
			assert_non_null(strstr(error.message, "history-"));
			refused++;
			continue;
		}
		assert_int_equal(w.lost.code != VD_OK, was_hit);
		/* The file, or the directory with the revisions that are missing. */
		if (was_hit && !strstr(w.lost.message, "/data") && !strstr(w.lost.message, "history-"))
			fail_msg("read %llu: %s", (unsigned long long) nth, w.lost.message);
		history_assert_loaded(&w);
		if (!was_hit)
			assert_int_equal(w.loaded->until, w.revision);
		history_close(&w);
	}
	assert_true(refused > 3);
	history_world_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_recorded_is_read_back),
		cmocka_unit_test(the_files_stay_within_their_bytes),
		cmocka_unit_test(the_window_is_exact_after_a_start),
		cmocka_unit_test(the_file_of_a_newer_program_is_not_used),
		cmocka_unit_test(another_cluster_or_prefix_is_not_believed),
		cmocka_unit_test(an_embedded_store_and_a_local_history_keep_off_each_other),
		cmocka_unit_test(a_full_disk_is_waited_for),
		cmocka_unit_test(what_cannot_be_told_is_refused),
		cmocka_unit_test(files_go_when_they_are_older_than_the_window),
		cmocka_unit_test(errors_of_the_disk_are_handed_out),
		cmocka_unit_test(the_witnesses_are_the_newest_and_some_others),
		cmocka_unit_test(a_restart_begins_as_new_files_do),
		cmocka_unit_test(a_read_that_fails_is_handed_out_or_loses_a_part),
		cmocka_unit_test(torture_every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
