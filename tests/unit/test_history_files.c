/* Unit tests of storage/local/history_files.c: what is read back is what was recorded, or the newest whole part of it. */
#include "history_files.h"

#include "disk_sim.h"
#include "journal.h"
#include "journal_segment.h"
#include "rand.h"
#include "vdtest.h"

#define K(text) vd_bytes_of(text)
#define STORE_ID 77
#define KEYS 12

struct world {
	struct vdi_disk		  *disk;
	struct vdi_dir		  *dir;
	struct vdi_history_files  *files;
	struct vdi_past		  *past;
	struct vd_error		   lost;
	int64_t			   bytes_max;
	vd_dur			   window;
	uint64_t		   store_id;
	const char		  *prefix;
	vd_wall			   now;
	vd_rev			   revision;
	size_t			   value_size;
	struct vdi_rand		   rand;
	struct vd_kv		  *live[KEYS]; /* the model's state */
	struct vd_store_event	  *events;     /* and everything that ever happened */
	size_t			   count, capacity;
};

static void world_init(struct world *w, uint64_t seed)
{
	*w = (struct world) { .bytes_max = 1 << 20, .store_id = STORE_ID, .prefix = "/registry/", .now = { INT64_C(1700000000) * 1000000000 }, .revision = 4, .value_size = 40 };
	vdi_rand_init(&w->rand, seed);
	assert_status(vdi_disk_sim_new(seed, &w->disk), VD_OK);
	assert_status(vdi_dir_open(w->disk, "/data", &w->dir, NULL), VD_OK);
}

static vd_status try_open(struct world *w, struct vd_error *error)
{
	struct vdi_history_files_options options = { .dir = w->dir, .store_id = w->store_id, .prefix = K(w->prefix), .seed = 5, .bytes_max = w->bytes_max, .window = w->window };
	vd_status			 status;

	w->lost = (struct vd_error) { .code = VD_OK };
	VDI_TRY(vdi_past_new(&w->past));
	status = vdi_history_files_open(&options, w->now, w->past, &w->files, &w->lost, error);
	if (status != VD_OK)
		w->past = vdi_past_unref(w->past);
	return status;
}

static void files_open(struct world *w)
{
	struct vd_error error = { 0 };

	assert_status(try_open(w, &error), VD_OK);
	assert_status(vdi_history_files_tidy(w->files, NULL), VD_OK);
	if (w->past->until == 0)
		vdi_history_files_restart(w->files, w->revision);
	assert_status(vdi_history_files_prepare(w->files, w->now, NULL), VD_OK);
}

static void files_close(struct world *w)
{
	w->files = vdi_history_files_close(w->files);
	w->past = vdi_past_unref(w->past);
}

static void world_fini(struct world *w)
{
	files_close(w);
	for (size_t i = 0; i < KEYS; i++)
		vd_kv_unref(w->live[i]);
	for (size_t i = 0; i < w->count; i++) {
		vd_kv_unref(w->events[i].kv);
		vd_kv_unref(w->events[i].previous);
	}
	vdi_free(w->events);
	vdi_dir_close(w->dir);
	vdi_disk_sim_free(w->disk);
}

static struct vd_kv *record_of(unsigned key, struct vd_kv *previous, vd_rev revision, bool is_delete, size_t value_size, uint64_t noise)
{
	char		name[32], value[4096];
	struct vd_kv   *kv;
	struct vd_bytes bytes = { value, is_delete ? 0 : value_size };

	snprintf(name, sizeof name, "/registry/pods/k%02u", key);
	memset(value, 'a' + (int) (noise % 26), sizeof value);
	assert_status(vd_kv_new(K(name), bytes, &kv), VD_OK);
	kv->mod_rev = revision;
	if (!is_delete) {
		kv->create_rev = previous ? previous->create_rev : revision;
		kv->version = previous ? previous->version + 1 : 1;
		kv->lease = noise % 7 == 0 ? (int64_t) noise : 0;
	}
	return kv;
}

/* Makes the next revision, of 1 to 3 changes, in the model; returns its first event. */
static size_t make_revision(struct world *w)
{
	size_t	 first = w->count;
	unsigned changes = 1 + (unsigned) vdi_rand_below(&w->rand, 3), key = (unsigned) vdi_rand_below(&w->rand, KEYS - 3);

	w->revision += 1 + (vd_rev) vdi_rand_below(&w->rand, 3);
	for (unsigned i = 0; i < changes; i++, key++) {
		struct vd_kv *previous = w->live[key];
		bool	      is_delete = previous && vdi_rand_once_in(&w->rand, 4);
		struct vd_kv *kv = record_of(key, previous, w->revision, is_delete, w->value_size, vdi_rand_next(&w->rand));

		assert_true(vdi_grow((void **) &w->events, &w->capacity, w->count + 1, sizeof *w->events));
		w->events[w->count++] = (struct vd_store_event) { .is_delete = is_delete, .kv = kv, .previous = previous };
		w->live[key] = is_delete ? NULL : vd_kv_ref(kv);
	}
	return first;
}

static void record_some(struct world *w, unsigned revisions)
{
	for (unsigned i = 0; i < revisions; i++) {
		size_t first = make_revision(w);

		assert_status(vdi_history_files_prepare(w->files, w->now, NULL), VD_OK);
		assert_status(vdi_history_files_append(w->files, w->events + first, w->count - first, w->now), VD_OK);
		if (vdi_rand_once_in(&w->rand, 2))
			assert_status(vdi_history_files_flush(w->files, NULL), VD_OK);
		if (vdi_rand_once_in(&w->rand, 5)) {
			w->revision++;
			assert_status(vdi_history_files_mark(w->files, w->revision), VD_OK);
		}
		assert_status(vdi_history_files_evict(w->files, w->now, NULL), VD_OK);
	}
	assert_status(vdi_history_files_flush(w->files, NULL), VD_OK);
}

static void assert_same_kv(const struct vd_kv *a, const struct vd_kv *b)
{
	assert_int_equal(a != NULL, b != NULL);
	if (a == NULL)
		return;
	assert_true(vd_bytes_equal(vd_kv_key(a), vd_kv_key(b)));
	assert_true(vd_bytes_equal(vd_kv_value(a), vd_kv_value(b)));
	assert_int_equal(a->mod_rev, b->mod_rev);
	assert_int_equal(a->create_rev, b->create_rev);
	assert_int_equal(a->version, b->version);
	assert_int_equal(a->lease, b->lease);
}

/* The past is exactly what happened after its floor up to its end. */
static void assert_past_is_true(struct world *w)
{
	size_t at = 0;

	for (size_t i = 0; i < w->count; i++) {
		const struct vd_store_event *event = &w->events[i];

		if (event->kv->mod_rev <= w->past->floor || event->kv->mod_rev > w->past->until)
			continue;
		assert_true(at < w->past->count);
		assert_int_equal(event->is_delete, w->past->events[at].is_delete);
		assert_same_kv(event->kv, w->past->events[at].kv);
		assert_same_kv(event->previous, w->past->events[at].previous);
		at++;
	}
	assert_int_equal(at, w->past->count);
}

/* With everything on disk: what is meddled with must be. */
static void sync_and_close(struct world *w)
{
	assert_status(vdi_history_files_sync(w->files, NULL), VD_OK);
	files_close(w);
}

static void reopen(struct world *w)
{
	files_close(w);
	files_open(w);
	assert_past_is_true(w);
}

static unsigned segments(struct world *w, uint64_t *ret_first)
{
	unsigned count = 0;
	char	 name[VDI_DISK_NAME_MAX];
	int64_t	 size;

	for (uint64_t sequence = 1; sequence < 400; sequence++) {
		vdi_segment_name(VDI_SEGMENT_HISTORY, sequence, name);
		if (vdi_disk_sim_content(w->disk, name, &size) && count++ == 0 && ret_first)
			*ret_first = sequence;
	}
	return count;
}

static void what_was_recorded_is_read_back(void **state)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct world w;

		world_init(&w, seed);
		w.bytes_max = seed % 2 ? 0 : 64 << 10;
		files_open(&w);
		for (unsigned round = 0; round < 6; round++) {
			record_some(&w, 60);
			assert_int_equal(vdi_history_files_until(w.files), w.revision);
			reopen(&w);
			assert_status(w.lost.code, VD_OK);
			assert_int_equal(w.past->until, w.revision);
			assert_int_equal(w.past->floor, vdi_history_files_floor(w.files));
			if (seed % 2)
				assert_int_equal(w.past->floor, 4);
		}
		world_fini(&w);
	}
}

/* In steps of an eighth, and never more than one step above it. */
static void the_files_stay_within_their_bytes(void **state)
{
	struct world w;
	vd_rev	     floor = 0;

	world_init(&w, 3);
	w.bytes_max = 256 << 10;
	w.value_size = 700;
	files_open(&w);
	for (unsigned i = 0; i < 400; i++) {
		record_some(&w, 5);
		assert_true(vdi_history_files_bytes(w.files) <= w.bytes_max + w.bytes_max / VDI_HISTORY_SEGMENTS + 16384);
		assert_true(vdi_history_files_floor(w.files) >= floor);
		floor = vdi_history_files_floor(w.files);
	}
	assert_true(floor > 4);
	assert_in_range(segments(&w, NULL), VDI_HISTORY_SEGMENTS - 2, VDI_HISTORY_SEGMENTS + 1);
	assert_true(vdi_history_files_bytes(w.files) > w.bytes_max / 2);
	reopen(&w);
	assert_int_equal(w.past->floor, floor);
	world_fini(&w);
}

/* One revision a second for 1,000 s; a window of 100 s. */
static void the_window_is_exact_after_a_start(void **state)
{
	struct world w;
	vd_rev	     at[1000];

	world_init(&w, 9);
	w.window = VD_SECONDS(100);
	files_open(&w);
	for (unsigned i = 0; i < 1000; i++) {
		w.now.ns += VD_SECONDS(1).ns;
		record_some(&w, 1);
		at[i] = w.events[w.count - 1].kv->mod_rev;
	}
	/* At least the window stays, and little more: a part of it is an eighth. */
	assert_true(vdi_history_files_floor(w.files) < at[900]);
	assert_true(vdi_history_files_floor(w.files) > at[870]);
	/* Exactly 100 s old is inside, a nanosecond older is not. */
	reopen(&w);
	assert_int_equal(w.past->floor, at[898]);
	w.now.ns++;
	reopen(&w);
	assert_int_equal(w.past->floor, at[899]);
	/* Everything is too old: nothing is told, but it is known up to where and by what. */
	w.now.ns += VD_SECONDS(1000).ns;
	reopen(&w);
	assert_int_equal(w.past->floor, at[999]);
	assert_int_equal(w.past->count, 0);
	assert_int_equal(w.past->until, w.revision);
	assert_true(w.past->latest.count > 0);
	/* A clock that was set back makes nothing old. */
	w.now.ns -= VD_SECONDS(100000).ns;
	reopen(&w);
	assert_true(w.past->count > 100);
	world_fini(&w);
}

/* The last revision is there or not; what is there is true, and it can be continued. */
static void a_torn_tail_costs_what_was_torn(void **state)
{
	for (int64_t cut = 1; cut < 700; cut += 3) {
		struct world w;
		const char  *name = "history-0000000000000001.vdh";
		int64_t	     size, until;

		world_init(&w, (uint64_t) cut);
		files_open(&w);
		record_some(&w, 20);
		until = w.revision;
		sync_and_close(&w);
		assert_non_null(vdi_disk_sim_content(w.disk, name, &size));
		vdi_disk_sim_cut(w.disk, name, size - cut);
		files_open(&w);
		assert_status(w.lost.code, VD_OK);
		assert_past_is_true(&w);
		assert_int_equal(w.past->floor, 4);
		assert_true(w.past->until < until);
		assert_true(w.past->count > 0);
		world_fini(&w);
	}
}

static void after_a_torn_tail_it_goes_on(void **state)
{
	struct world  w, again;
	int64_t	      size;
	const char   *name = "history-0000000000000001.vdh";
	unsigned      told;

	world_init(&w, 4);
	files_open(&w);
	record_some(&w, 20);
	sync_and_close(&w);
	assert_non_null(vdi_disk_sim_content(w.disk, name, &size));
	vdi_disk_sim_cut(w.disk, name, size - 5);
	files_open(&w);
	told = (unsigned) w.past->count;
	/* What was torn is told again by the store. */
	again = w;
	for (size_t i = 0, first; i < w.count; i = first) {
		for (first = i; first < w.count && w.events[first].kv->mod_rev == w.events[i].kv->mod_rev;)
			first++;
		if (w.events[i].kv->mod_rev > w.past->until)
			assert_status(vdi_history_files_append(w.files, w.events + i, first - i, w.now), VD_OK);
	}
	assert_status(vdi_history_files_flush(w.files, NULL), VD_OK);
	w.revision = vdi_history_files_until(w.files);
	record_some(&w, 10);
	reopen(&w);
	assert_status(w.lost.code, VD_OK);
	assert_int_equal(w.past->count, w.count);
	assert_true(told < again.count);
	assert_int_equal(segments(&w, NULL), 1);
	world_fini(&w);
}

/* Any byte of any file: what is read is true, and what is lost is said unless it is a tail. */
static void bit_rot_costs_what_comes_before_it(void **state)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct world w;
		uint64_t     first = 0;
		char	     name[VDI_DISK_NAME_MAX];
		int64_t	     size;
		unsigned     count, hit;

		world_init(&w, seed);
		w.bytes_max = 128 << 10;
		w.value_size = 500;
		files_open(&w);
		record_some(&w, 150);
		sync_and_close(&w);
		count = segments(&w, &first);
		assert_true(count >= 4);
		hit = (unsigned) vdi_rand_below(&w.rand, count);
		vdi_segment_name(VDI_SEGMENT_HISTORY, first + hit, name);
		assert_non_null(vdi_disk_sim_content(w.disk, name, &size));
		vdi_disk_sim_flip(w.disk, name, (int64_t) vdi_rand_below(&w.rand, (uint64_t) size), 0x10);
		files_open(&w);
		assert_past_is_true(&w);
		if (hit + 1 < count) {
			assert_status(w.lost.code, VD_CORRUPT);
			assert_int_equal(w.past->until, w.revision);
			assert_true(w.past->count > 0);
			assert_in_range(segments(&w, NULL), count - hit - 1, count - hit);
		}
		/* And the next start is like any other. */
		w.revision = vdi_history_files_until(w.files);
		reopen(&w);
		assert_status(w.lost.code, VD_OK);
		world_fini(&w);
	}
}

static void the_file_of_a_newer_program_is_not_used(void **state)
{
	struct world		  w;
	struct vdi_segment_header header = { .family = VDI_SEGMENT_HISTORY, .sequence = 1, .first_index = 1, .nonce = 1, .size = VDI_SEGMENT_HEADER_SIZE, .revision = 4 };
	struct vdi_file		 *file;

	world_init(&w, 1);
	assert_status(vdi_segment_create_format(w.dir, &header, 99, &file, NULL), VD_OK);
	vdi_file_close(file);
	files_open(&w);
	assert_status(w.lost.code, VD_NEWER_FORMAT);
	assert_non_null(strstr(w.lost.message, "format 99"));
	assert_int_equal(w.past->until, 0);
	record_some(&w, 3);
	reopen(&w);
	assert_status(w.lost.code, VD_OK);
	assert_int_equal(w.past->count, w.count);
	world_fini(&w);
}

static void another_cluster_or_prefix_is_not_believed(void **state)
{
	for (int what = 0; what < 2; what++) {
		struct world w;

		world_init(&w, 1);
		files_open(&w);
		record_some(&w, 30);
		files_close(&w);
		if (what)
			w.prefix = "/other/";
		else
			w.store_id++;
		files_open(&w);
		assert_status(w.lost.code, VD_CONFLICT);
		assert_int_equal(w.past->until, 0);
		assert_int_equal(w.past->count, 0);
		assert_int_equal(segments(&w, NULL), 1); /* the new one */
		world_fini(&w);
	}
}

static void an_embedded_store_and_a_local_history_keep_off_each_other(void **state)
{
	struct world		   w;
	struct vdi_journal_options options;
	struct vdi_journal	  *journal;
	struct vd_error		   error = { 0 };
	int64_t			   size;

	world_init(&w, 1);
	options = (struct vdi_journal_options) { .dir = w.dir, .seed = 1, .segment_size = 1 << 16 };
	assert_status(vdi_journal_open(&options, NULL, NULL, &journal, NULL), VD_OK);
	assert_status(vdi_journal_start(journal, NULL), VD_OK);
	vdi_journal_close(journal);
	assert_status(try_open(&w, &error), VD_INVALID);
	assert_non_null(strstr(error.message, "embedded store"));
	assert_non_null(vdi_disk_sim_content(w.disk, "journal-0000000000000001.vdj", &size));
	world_fini(&w);

	world_init(&w, 1);
	files_open(&w);
	record_some(&w, 3);
	options.dir = w.dir;
	assert_status(vdi_journal_open(&options, NULL, NULL, &journal, &error), VD_INVALID);
	assert_non_null(strstr(error.message, "local history"));
	world_fini(&w);
}

/* Nothing is lost as long as the caller waits. */
static void a_full_disk_is_waited_for(void **state)
{
	for (int kind = 0; kind < 2; kind++) {
		struct world	w;
		struct vd_error error = { 0 };
		size_t		first;

		world_init(&w, 6);
		files_open(&w);
		record_some(&w, 10);
		for (unsigned i = 0; i < 5; i++) {
			first = make_revision(&w);
			assert_status(vdi_history_files_prepare(w.files, w.now, NULL), VD_OK);
			assert_status(vdi_history_files_append(w.files, w.events + first, w.count - first, w.now), VD_OK);
			vdi_disk_sim_fail_nth(w.disk, 1, kind ? VDI_DISK_SIM_NO_SPACE : VDI_DISK_SIM_SHORT_WRITE);
			assert_status(vdi_history_files_flush(w.files, &error), VD_NO_SPACE);
			assert_status(vdi_history_files_flush(w.files, NULL), VD_OK);
		}
		reopen(&w);
		assert_int_equal(w.past->count, w.count);
		world_fini(&w);
	}
}

/* The power goes at each operation: what is found is true, and everything up to the last sync is there unless the budget took it. */
static void the_power_may_go_at_any_moment(void **state)
{
	bool was_hit = true;

	for (uint64_t nth = 1; was_hit; nth++) {
		struct world w;
		vd_rev	     synced = 0;
		vd_status    status = VD_OK;

		world_init(&w, nth);
		w.bytes_max = 128 << 10;
		w.value_size = 900;
		files_open(&w);
		assert_status(vdi_history_files_sync(w.files, NULL), VD_OK);
		vdi_disk_sim_fail_nth(w.disk, nth, VDI_DISK_SIM_CRASH);
		for (unsigned i = 0; i < 40 && status == VD_OK; i++) {
			size_t first = make_revision(&w);

			status = vdi_history_files_prepare(w.files, w.now, NULL);
			if (status == VD_OK)
				status = vdi_history_files_append(w.files, w.events + first, w.count - first, w.now);
			if (status == VD_OK)
				status = vdi_history_files_flush(w.files, NULL);
			if (status == VD_OK && i % 4 == 3 && (status = vdi_history_files_sync(w.files, NULL)) == VD_OK)
				synced = w.revision;
			if (status == VD_OK)
				status = vdi_history_files_evict(w.files, w.now, NULL);
		}
		was_hit = vdi_disk_sim_failed(w.disk);
		files_close(&w);
		w.dir = vdi_dir_close(w.dir);
		vdi_disk_sim_crash(w.disk);
		assert_status(vdi_dir_open(w.disk, "/data", &w.dir, NULL), VD_OK);
		files_open(&w);
		if (w.past->until) {
			assert_past_is_true(&w);
			assert_true(w.past->until >= synced);
		} else {
			assert_int_equal(synced, 0);
		}
		world_fini(&w);
	}
}

/* The payload of each record with bytes changed at random, under a right checksum: whatever it says, nothing is read beyond it, and what is taken is in order. */
static void bytes_that_make_no_sense_do_no_harm(void **state)
{
	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct world		  w;
		struct vdi_segment_reader reader;
		struct vdi_segment_record record;
		struct vdi_segment_header header;
		struct vdi_file		 *file;
		uint8_t			 *bytes = NULL;
		size_t			  capacity = 0;
		int64_t			  tail = VDI_SEGMENT_HEADER_SIZE;
		uint64_t		  previous, index = 1;
		unsigned		  hit;

		world_init(&w, seed);
		files_open(&w);
		record_some(&w, 8);
		sync_and_close(&w);
		hit = 1 + (unsigned) vdi_rand_below(&w.rand, 8);
		assert_status(vdi_segment_reader_open(&reader, w.dir, VDI_SEGMENT_HISTORY, 1, NULL), VD_OK);
		header = reader.header;
		header.sequence = 2;
		assert_status(vdi_segment_create(w.dir, &header, NULL, &file, NULL), VD_OK);
		previous = header.checksum;
		while (vdi_segment_reader_next(&reader, &record, NULL) == VD_OK) {
			size_t size = vdi_segment_record_size(record.payload.size);

			assert_true(vdi_grow((void **) &bytes, &capacity, size, 1));
			memset(bytes, 0, size);
			vdi_segment_record_prepare(bytes, record.kind, record.revision, record.payload.size);
			if (record.payload.size)
				memcpy(bytes + VDI_SEGMENT_RECORD_HEADER_SIZE, record.payload.data, record.payload.size);
			for (unsigned i = 0; index == hit && record.payload.size && i < 1 + seed % 3; i++)
				bytes[VDI_SEGMENT_RECORD_HEADER_SIZE + 8 + vdi_rand_below(&w.rand, record.payload.size - 8)] = (uint8_t) vdi_rand_next(&w.rand);
			(void) vdi_segment_record_seal(bytes, index++, header.nonce, previous, 0, 0, &previous);
			assert_status(vdi_file_write(file, tail, bytes, size, NULL), VD_OK);
			tail += (int64_t) size;
		}
		vdi_segment_reader_fini(&reader);
		vdi_file_close(file);
		vdi_free(bytes);
		assert_status(vdi_dir_unlink(w.dir, "history-0000000000000001.vdh", NULL), VD_OK);
		files_open(&w);
		for (size_t i = 0; i < w.past->count; i++) {
			assert_true(w.past->events[i].kv->mod_rev <= w.past->until);
			assert_true(i == 0 || w.past->events[i].kv->mod_rev >= w.past->events[i - 1].kv->mod_rev);
		}
		w.revision = vdi_history_files_until(w.files);
		for (size_t i = 0; i < KEYS; i++)
			w.live[i] = vd_kv_unref(w.live[i]);
		record_some(&w, 5);
		files_close(&w);
		files_open(&w);
		world_fini(&w);
	}
}

static void what_cannot_be_told_is_refused(void **state)
{
	struct world w;

	world_init(&w, 1);
	files_open(&w);
	for (unsigned what = 0; what < 6; what++) {
		struct vd_kv	     *old = record_of(1, NULL, 5, false, 10, 1), *kv = record_of(what == 4 ? 2 : 1, old, 9, what == 0, 10, 1);
		struct vd_store_event event = { .is_delete = what == 0, .kv = kv, .previous = what < 2 ? NULL : old };

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
	record_some(&w, 3);
	reopen(&w);
	world_fini(&w);
}

static void the_witnesses_are_the_newest_and_some_others(void **state)
{
	struct vdi_past *past;
	struct vd_kv	*witnesses[VDI_PAST_WITNESSES_MAX];
	size_t		 count;
	vd_rev		 least = 1000;

	assert_status(vdi_past_new(&past), VD_OK);
	for (unsigned i = 0; i < 1000; i++) {
		char	      name[32];
		struct vd_kv *kv;

		snprintf(name, sizeof name, "k%u", i);
		assert_status(vd_kv_new(K(name), K("v"), &kv), VD_OK);
		kv->mod_rev = kv->create_rev = 1 + i;
		kv->version = 1;
		assert_status(vdi_past_add(past, false, kv, NULL, i % 2), VD_OK);
	}
	assert_int_equal(past->count, 500);
	assert_status(vdi_past_witnesses(past, witnesses, &count), VD_OK);
	assert_int_equal(count, VDI_PAST_WITNESSES_MAX);
	for (size_t i = 0; i < count; i++) {
		if (i < VDI_PAST_WITNESSES_MAX / 2)
			assert_int_equal(witnesses[i]->mod_rev, 1000 - i);
		least = VDI_MIN(least, witnesses[i]->mod_rev);
		vd_kv_unref(witnesses[i]);
	}
	assert_true(least < 60);
	assert_int_equal(vdi_past_find(past, 0), 0);
	assert_int_equal(past->events[vdi_past_find(past, 501)].kv->mod_rev, 502);
	assert_int_equal(vdi_past_find(past, 1001), 500);
	vdi_past_forget(past, 900);
	assert_int_equal(past->count, 50);
	assert_int_equal(past->events[0].kv->mod_rev, 902);
	vdi_past_unref(past);
}

static vd_status record_once(struct world *w, size_t *next)
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

static void torture_every_allocation_may_fail(void **state)
{
	bool was_hit = true;

	for (uint64_t nth = 1; was_hit; nth++) {
		struct world w;
		size_t	     next = 0;
		vd_status    status;

		world_init(&w, 2);
		w.bytes_max = 128 << 10;
		w.value_size = 900;
		for (unsigned i = 0; i < 30; i++)
			make_revision(&w);
		files_open(&w);
		vdi_history_files_restart(w.files, 4);
		vdi_alloc_fail_nth(nth, 1);
		while (next < w.count)
			if ((status = record_once(&w, &next)) != VD_OK)
				assert_status(status, VD_NOMEM);
		files_close(&w);
		status = try_open(&w, NULL);
		if (status != VD_OK) {
			assert_status(status, VD_NOMEM);
			assert_status(try_open(&w, NULL), VD_OK);
		}
		was_hit = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_int_equal(w.past->count, w.count);
		assert_past_is_true(&w);
		world_fini(&w);
	}
}

/* Only the newest file may be one that was never finished. */
static void a_file_without_a_header_is_reported(void **state)
{
	char	 name[VDI_DISK_NAME_MAX];
	struct world w;
	uint64_t first;
	unsigned count;

	world_init(&w, 6);
	w.bytes_max = 128 << 10;
	w.value_size = 700;
	files_open(&w);
	record_some(&w, 300);
	sync_and_close(&w);
	count = segments(&w, &first);
	assert_true(count > 2);
	vdi_segment_name(VDI_SEGMENT_HISTORY, first, name);
	vdi_disk_sim_cut(w.disk, name, 0);
	files_open(&w);
	assert_status(w.lost.code, VD_CORRUPT);
	assert_non_null(strstr(w.lost.message, "has no header"));
	assert_past_is_true(&w);
	assert_int_equal(w.past->until, w.revision);
	sync_and_close(&w);
	vdi_segment_name(VDI_SEGMENT_HISTORY, first + count - 1, name);
	vdi_disk_sim_cut(w.disk, name, 0);
	files_open(&w);
	assert_status(w.lost.code, VD_OK);
	assert_past_is_true(&w);
	world_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_recorded_is_read_back),
		cmocka_unit_test(the_files_stay_within_their_bytes),
		cmocka_unit_test(the_window_is_exact_after_a_start),
		cmocka_unit_test(a_torn_tail_costs_what_was_torn),
		cmocka_unit_test(after_a_torn_tail_it_goes_on),
		cmocka_unit_test(a_file_without_a_header_is_reported),
		cmocka_unit_test(bit_rot_costs_what_comes_before_it),
		cmocka_unit_test(the_file_of_a_newer_program_is_not_used),
		cmocka_unit_test(another_cluster_or_prefix_is_not_believed),
		cmocka_unit_test(an_embedded_store_and_a_local_history_keep_off_each_other),
		cmocka_unit_test(a_full_disk_is_waited_for),
		cmocka_unit_test(the_power_may_go_at_any_moment),
		cmocka_unit_test(bytes_that_make_no_sense_do_no_harm),
		cmocka_unit_test(what_cannot_be_told_is_refused),
		cmocka_unit_test(the_witnesses_are_the_newest_and_some_others),
		cmocka_unit_test(torture_every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
