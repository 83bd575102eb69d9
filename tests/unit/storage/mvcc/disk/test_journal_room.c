/* Unit tests of storage/mvcc/disk/journal_room.c: sizes of the next file and of the reserve, what a full disk
 * leaves, and what old files become. */
#include "journal_room.h"

#include "disk_sim.h"
#include "journal_segment.h"
#include "vdtest.h"

#define MIB ((int64_t) 1 << 20)
#define OLD "journal-0000000000000001.vdj"

struct world {
	struct vdi_disk	       *disk;
	struct vdi_dir	       *dir;
	struct vdi_journal_room room;
};

static void world_init(struct world *w, int64_t fixed_size)
{
	assert_status(vdi_disk_sim_new(1, &w->disk), VD_OK);
	assert_status(vdi_dir_open(w->disk, "/data", &w->dir, NULL), VD_OK);
	vdi_journal_room_init(&w->room, w->dir, fixed_size);
}

static void world_fini(struct world *w)
{
	vdi_journal_room_fini(&w->room);
	vdi_dir_close(w->dir);
	vdi_disk_sim_free(w->disk);
}

static int64_t size_of(struct world *w, const char *name)
{
	int64_t size;

	return vdi_disk_sim_content(w->disk, name, &size) ? size : -1;
}

static int64_t durable_size_of(struct world *w, const char *name)
{
	int64_t size;

	return vdi_disk_sim_durable(w->disk, name, &size) ? size : -1;
}

static void make(struct world *w, const char *name, int64_t size)
{
	struct vdi_file *file;

	assert_status(vdi_file_open(w->dir, name, VDI_FILE_CREATE, &file, NULL), VD_OK);
	if (size)
		assert_status(vdi_file_allocate(file, size, NULL), VD_OK);
	assert_status(vdi_file_sync(file, NULL), VD_OK);
	vdi_file_close(file);
	assert_status(vdi_dir_sync(w->dir, NULL), VD_OK);
}

static int64_t reserve(struct world *w)
{
	return atomic_load(&w->room.reserve_size);
}

static void sizes_follow_the_store(void **state)
{
	static const struct {
		int64_t store, segment, reserve;
	} rows[] = {
		{ 0, MIB, MIB },
		{ 8 * MIB, MIB, MIB },
		{ 8 * MIB + 8, 2 * MIB, MIB },
		{ 16 * MIB, 2 * MIB, MIB },
		{ 64 * MIB, 8 * MIB, MIB },
		{ 65 * MIB, 16 * MIB, MIB + MIB / 64 },
		{ 256 * MIB, 32 * MIB, 4 * MIB },
		{ 512 * MIB, 64 * MIB, 8 * MIB },
		{ 1024 * MIB, 64 * MIB, 16 * MIB },
		{ 100000 * MIB, 64 * MIB, 16 * MIB },
		{ 0, MIB, MIB },
	};
	struct world w;

	(void) state;
	world_init(&w, 0);
	assert_int_equal(atomic_load(&w.room.segment_size), MIB);
	assert_int_equal(atomic_load(&w.room.reserve_wanted), MIB);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		vdi_journal_room_set_scale(&w.room, rows[i].store);
		assert_int_equal(atomic_load(&w.room.segment_size), rows[i].segment);
		assert_int_equal(atomic_load(&w.room.reserve_wanted), rows[i].reserve);
	}
	world_fini(&w);
	world_init(&w, 12345);
	vdi_journal_room_set_scale(&w.room, 1024 * MIB);
	assert_int_equal(atomic_load(&w.room.segment_size), 12345);
	assert_int_equal(atomic_load(&w.room.reserve_wanted), 12345);
	world_fini(&w);
}

/* A start makes the reserve, which survives the loss of power, and removes the spare file of an earlier
 * process. */
static void a_start_makes_the_reserve(void **state)
{
	struct world w;
	uint64_t     operations;

	(void) state;
	world_init(&w, 0);
	make(&w, VDI_SEGMENT_SPARE, 5000);
	assert_status(vdi_journal_room_start(&w.room, NULL), VD_OK);
	assert_int_equal(size_of(&w, VDI_SEGMENT_SPARE), -1);
	assert_int_equal(size_of(&w, VDI_SEGMENT_RESERVE), MIB);
	assert_int_equal(durable_size_of(&w, VDI_SEGMENT_RESERVE), MIB);
	assert_int_equal(reserve(&w), MIB);
	operations = vdi_disk_sim_operations(w.disk);
	assert_status(vdi_journal_room_fill_reserve(&w.room, NULL), VD_OK);
	assert_int_equal(vdi_disk_sim_operations(w.disk), operations);
	assert_false(vdi_journal_room_drop_spare(&w.room));
	world_fini(&w);
}

/* A reserve that is there is adopted: cut when it is more than twice what is wanted, made longer when the
 * disk has room. */
static void a_start_adopts_the_reserve(void **state)
{
	static const struct {
		int64_t there, wanted, more_room, size;
	} rows[] = {
		{ 2 * MIB, 2 * MIB, INT64_MAX, 2 * MIB },
		{ 4 * MIB, 2 * MIB, INT64_MAX, 4 * MIB },
		{ 4 * MIB + 4096, 2 * MIB, INT64_MAX, 2 * MIB },
		{ MIB, 2 * MIB, INT64_MAX, 2 * MIB },
		{ MIB, 2 * MIB, 4096, MIB },
		{ 4096, 2 * MIB, MIB - 4096, MIB },
		{ 4096, 2 * MIB, 0, 0 },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct world w;

		world_init(&w, 0);
		vdi_journal_room_set_scale(&w.room, rows[i].wanted * 64);
		make(&w, VDI_SEGMENT_RESERVE, rows[i].there);
		if (rows[i].more_room < INT64_MAX)
			vdi_disk_sim_set_capacity(w.disk, rows[i].there + rows[i].more_room);
		assert_status(vdi_journal_room_start(&w.room, NULL), VD_OK);
		assert_int_equal(reserve(&w), rows[i].size);
		assert_int_equal(size_of(&w, VDI_SEGMENT_RESERVE), rows[i].size ? rows[i].size : -1);
		if (rows[i].size)
			assert_int_equal(durable_size_of(&w, VDI_SEGMENT_RESERVE), rows[i].size);
		world_fini(&w);
	}
}

/* What fits: a quarter of what is wanted, a quarter of that, and not less than the least. */
static void a_reserve_is_as_large_as_fits(void **state)
{
	static const struct {
		int64_t capacity, size;
	} rows[] = { { 16 * MIB, 16 * MIB }, { 16 * MIB - 1, 4 * MIB },
		     { 4 * MIB - 1, MIB },   { MIB, MIB },
		     { MIB - 1, 0 },	     { 0, 0 } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_error error = { 0 };
		struct world	w;

		world_init(&w, 0);
		vdi_journal_room_set_scale(&w.room, 1024 * MIB);
		vdi_disk_sim_set_capacity(w.disk, rows[i].capacity);
		assert_status(vdi_journal_room_start(&w.room, NULL), VD_OK); /* none is no error */
		assert_int_equal(reserve(&w), rows[i].size);
		assert_int_equal(size_of(&w, VDI_SEGMENT_RESERVE), rows[i].size ? rows[i].size : -1);
		assert_status(vdi_journal_room_fill_reserve(&w.room, &error),
			      rows[i].size ? VD_OK : VD_NO_SPACE);
		vdi_disk_sim_set_capacity(w.disk, INT64_MAX);
		assert_status(vdi_journal_room_fill_reserve(&w.room, NULL), VD_OK);
		assert_int_equal(reserve(&w), rows[i].size ? rows[i].size : 16 * MIB);
		world_fini(&w);
	}
}

/* The reserve matters more than the spare file, which is given up for it. */
static void the_spare_file_makes_room_for_the_reserve(void **state)
{
	const char  *made;
	struct world w;

	(void) state;
	world_init(&w, MIB);
	assert_status(vdi_journal_room_prepare(&w.room, 4096, VDI_JOURNAL_FREES, &made, NULL), VD_OK);
	assert_string_equal(made, VDI_SEGMENT_SPARE);
	vdi_disk_sim_set_capacity(w.disk, MIB);
	assert_status(vdi_journal_room_fill_reserve(&w.room, NULL), VD_OK);
	assert_int_equal(reserve(&w), MIB);
	assert_int_equal(size_of(&w, VDI_SEGMENT_SPARE), -1);
	assert_int_equal(w.room.spare_size, 0);
	world_fini(&w);
}

static void the_next_file_is_prepared_once(void **state)
{
	const char  *made = NULL;
	struct world w;
	uint64_t     operations;

	(void) state;
	world_init(&w, 0);
	vdi_journal_room_set_scale(&w.room, 32 * MIB);
	assert_status(vdi_journal_room_prepare(&w.room, 4096, VDI_JOURNAL_NO_RESERVE, &made, NULL), VD_OK);
	assert_string_equal(made, VDI_SEGMENT_SPARE);
	assert_int_equal(size_of(&w, VDI_SEGMENT_SPARE), 4 * MIB);
	/* It is enough up to its size. */
	operations = vdi_disk_sim_operations(w.disk);
	assert_status(vdi_journal_room_prepare(&w.room, 4 * MIB, VDI_JOURNAL_NO_RESERVE, &made, NULL), VD_OK);
	assert_int_equal(vdi_disk_sim_operations(w.disk), operations);
	/* A larger one takes its place. */
	assert_status(vdi_journal_room_prepare(&w.room, 4 * MIB + 1, VDI_JOURNAL_NO_RESERVE, &made, NULL),
		      VD_OK);
	assert_int_equal(size_of(&w, VDI_SEGMENT_SPARE), 4 * MIB + 1);
	assert_int_equal(vdi_journal_room_take(&w.room, made), 4 * MIB + 1);
	vdi_journal_room_taken(&w.room, made);
	/* What was taken is not there any more: the next one is made anew. */
	operations = vdi_disk_sim_operations(w.disk);
	assert_status(vdi_journal_room_prepare(&w.room, 4096, VDI_JOURNAL_NO_RESERVE, &made, NULL), VD_OK);
	assert_true(vdi_disk_sim_operations(w.disk) > operations);
	assert_int_equal(size_of(&w, VDI_SEGMENT_SPARE), 4 * MIB);
	assert_true(vdi_journal_room_drop_spare(&w.room));
	assert_int_equal(size_of(&w, VDI_SEGMENT_SPARE), -1);
	assert_false(vdi_journal_room_drop_spare(&w.room));
	/* On a disk that is nearly full, what fits between the least size and the wanted one. */
	vdi_disk_sim_set_capacity(w.disk, 3 * MIB);
	assert_status(vdi_journal_room_prepare(&w.room, 4096, VDI_JOURNAL_NO_RESERVE, &made, NULL), VD_OK);
	assert_int_equal(size_of(&w, VDI_SEGMENT_SPARE), MIB);
	assert_true(vdi_journal_room_drop_spare(&w.room));
	assert_status(vdi_journal_room_prepare(&w.room, 2 * MIB, VDI_JOURNAL_NO_RESERVE, &made, NULL), VD_OK);
	assert_int_equal(size_of(&w, VDI_SEGMENT_SPARE), 2 * MIB);
	world_fini(&w);
}

/* Of a full disk the reserve is the next file, for those who may use it and if it is large enough. */
static void a_full_disk_has_the_reserve(void **state)
{
	static const struct {
		enum vdi_journal_use use;
		int64_t		     size_min;
		bool		     gets_it;
	} rows[] = { { VDI_JOURNAL_NO_RESERVE, 4096, false },
		     { VDI_JOURNAL_BORROWS, 4096, true },
		     { VDI_JOURNAL_FREES, 4096, true },
		     { VDI_JOURNAL_FREES, MIB, true },
		     { VDI_JOURNAL_FREES, MIB + 1, false } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_error error = { 0 };
		const char     *made = NULL;
		struct world	w;

		world_init(&w, 0);
		assert_status(vdi_journal_room_start(&w.room, NULL), VD_OK);
		vdi_disk_sim_set_capacity(w.disk, MIB);
		assert_status(vdi_journal_room_prepare(&w.room, rows[i].size_min, rows[i].use, &made, &error),
			      rows[i].gets_it ? VD_OK : VD_NO_SPACE);
		assert_int_equal(size_of(&w, VDI_SEGMENT_SPARE), -1);
		if (rows[i].gets_it) {
			assert_string_equal(made, VDI_SEGMENT_RESERVE);
			assert_int_equal(vdi_journal_room_take(&w.room, made), MIB);
			vdi_journal_room_taken(&w.room, made);
			assert_int_equal(reserve(&w), 0);
		} else {
			assert_int_equal(reserve(&w), MIB);
		}
		world_fini(&w);
	}
}

/* An old file becomes what is missing, the reserve first; what is of no use goes. */
static void old_files_become_what_is_missing(void **state)
{
	const char  *made;
	struct world w;

	(void) state;
	world_init(&w, MIB);
	make(&w, OLD, 3 * MIB);
	vdi_journal_room_release(&w.room, OLD);
	assert_int_equal(size_of(&w, OLD), -1);
	assert_int_equal(reserve(&w), MIB); /* cut: it was more than twice as large */
	assert_int_equal(durable_size_of(&w, VDI_SEGMENT_RESERVE), MIB);
	/* Only a file of the wanted size is used again as it is. */
	make(&w, OLD, MIB + 8);
	vdi_journal_room_release(&w.room, OLD);
	assert_int_equal(size_of(&w, OLD), -1);
	assert_int_equal(w.room.spare_size, 0);
	assert_int_equal(size_of(&w, VDI_SEGMENT_SPARE), -1);
	make(&w, OLD, MIB);
	vdi_journal_room_release(&w.room, OLD);
	assert_int_equal(size_of(&w, OLD), -1);
	assert_int_equal(w.room.spare_size, MIB);
	assert_int_equal(durable_size_of(&w, VDI_SEGMENT_SPARE), MIB);
	assert_status(vdi_journal_room_prepare(&w.room, MIB, VDI_JOURNAL_NO_RESERVE, &made, NULL), VD_OK);
	assert_string_equal(made, VDI_SEGMENT_SPARE);
	/* Both are there: it goes. */
	make(&w, OLD, MIB);
	vdi_journal_room_release(&w.room, OLD);
	assert_int_equal(size_of(&w, OLD), -1);
	assert_int_equal(reserve(&w), MIB);
	assert_int_equal(w.room.spare_size, MIB);
	world_fini(&w);
}

/* An old file whose new name may not survive the loss of power is not counted on; one that cannot be renamed
 * is removed. */
static void failing_to_keep_an_old_file_does_no_harm(void **state)
{
	(void) state;
	for (uint64_t nth = 1; nth <= 3; nth++)
		for (int is_spare = 0; is_spare < 2; is_spare++) {
			struct world w;

			world_init(&w, MIB);
			if (is_spare)
				assert_status(vdi_journal_room_start(&w.room, NULL), VD_OK);
			make(&w, OLD, MIB);
			vdi_disk_sim_fail_nth(w.disk, nth, VDI_DISK_SIM_IO);
			vdi_journal_room_release(&w.room, OLD);
			vdi_disk_sim_fail_nth(w.disk, 0, VDI_DISK_SIM_IO);
			assert_true(size_of(&w, OLD) == -1);
			if (is_spare)
				assert_int_equal(reserve(&w), MIB);
			if (reserve(&w))
				assert_int_equal(durable_size_of(&w, VDI_SEGMENT_RESERVE), MIB);
			if (w.room.spare_size)
				assert_int_equal(durable_size_of(&w, VDI_SEGMENT_SPARE), MIB);
			world_fini(&w);
		}
}

/* Each operation of a start fails once: the caller hears it, and the next start has a reserve. */
static void errors_of_the_disk_are_handed_out(void **state)
{
	bool was_hit = true;

	(void) state;
	for (int is_there = 0; is_there < 2; is_there++, was_hit = true)
		for (uint64_t nth = 1; was_hit; nth++) {
			struct vd_error error = { 0 };
			struct world	w;
			vd_status	status;

			world_init(&w, 2 * MIB);
			if (is_there)
				make(&w, VDI_SEGMENT_RESERVE, 5 * MIB);
			vdi_disk_sim_fail_nth(w.disk, nth, VDI_DISK_SIM_IO);
			status = vdi_journal_room_start(&w.room, &error);
			was_hit = vdi_disk_sim_failed(w.disk);
			vdi_disk_sim_fail_nth(w.disk, 0, VDI_DISK_SIM_IO);
			assert_status(status, was_hit ? VD_IO : VD_OK);
			if (was_hit)
				assert_status(error.code, VD_IO);
			assert_int_equal(reserve(&w), was_hit ? 0 : 2 * MIB);
			assert_status(vdi_journal_room_start(&w.room, NULL), VD_OK);
			assert_int_equal(reserve(&w), 2 * MIB);
			assert_int_equal(durable_size_of(&w, VDI_SEGMENT_RESERVE), 2 * MIB);
			world_fini(&w);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_follow_the_store),
		cmocka_unit_test(a_start_makes_the_reserve),
		cmocka_unit_test(a_start_adopts_the_reserve),
		cmocka_unit_test(a_reserve_is_as_large_as_fits),
		cmocka_unit_test(the_spare_file_makes_room_for_the_reserve),
		cmocka_unit_test(the_next_file_is_prepared_once),
		cmocka_unit_test(a_full_disk_has_the_reserve),
		cmocka_unit_test(old_files_become_what_is_missing),
		cmocka_unit_test(failing_to_keep_an_old_file_does_no_harm),
		cmocka_unit_test(errors_of_the_disk_are_handed_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
