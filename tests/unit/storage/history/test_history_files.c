/* Unit tests of storage/history/history_files.c: what is read back is what was recorded, or the newest whole part of it. */
#include "history_files.h"

#include "disk_sim.h"
#include "journal.h"
#include "journal_segment.h"
#include "rand.h"
#include "record.h"
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

/* ---- Records that make no sense ---- */

enum role { ROLE_EVENT, ROLE_PREVIOUS };

/* The payload of one commit record, written entry by entry. */
struct payload {
	uint8_t bytes[4096];
	size_t	size;
};

static void put_time(struct payload *payload, vd_wall time)
{
	memcpy(payload->bytes, &time.ns, 8);
	payload->size = 8;
}

/* An entry: revision, role, size, a commit. Returns where it begins, for a test that changes it. */
static uint8_t *put_entry(struct payload *payload, uint32_t role, const struct vdi_commit *commit)
{
	uint8_t *at = payload->bytes + payload->size;
	uint32_t size = (uint32_t) vdi_commit_size(commit);

	assert_true(payload->size + 16 + size <= sizeof payload->bytes);
	memcpy(at, &commit->revision, 8);
	memcpy(at + 8, &role, 4);
	memcpy(at + 12, &size, 4);
	vdi_commit_encode(commit, at + 16);
	payload->size += 16 + size;
	return at;
}

static uint8_t *put_change(struct payload *payload, uint32_t role, vd_rev revision, bool is_delete, struct vd_kv *kv, struct vd_kv *previous, bool is_first)
{
	struct vdi_change change = { .is_delete = is_delete, .kv = kv, .previous = previous, .is_first = is_first };
	struct vdi_commit commit = { .revision = revision, .changes = &change, .change_count = 1 };

	return put_entry(payload, role, &commit);
}

/* A file of a history that begins at revision 4. */
struct script {
	struct vdi_segment_header header;
	struct vdi_file		 *file;
	uint64_t		  previous, index;
	int64_t			  tail;
};

static void script_begin(struct script *script, struct world *w)
{
	uint64_t prefix_hash;

	*script = (struct script) { .header = { .family = VDI_SEGMENT_HISTORY, .sequence = 1, .first_index = 1, .nonce = 3, .size = VDI_SEGMENT_HEADER_SIZE, .revision = 4 },
				    .index = 1, .tail = VDI_SEGMENT_HEADER_SIZE };
	/* As history_files.c makes it. */
	prefix_hash = vdi_hash_bytes(K(w->prefix), 0x7665646574746501u);
	memcpy(script->header.store_id, &w->store_id, 8);
	memcpy(script->header.store_id + 8, &prefix_hash, 8);
	assert_status(vdi_segment_create(w->dir, &script->header, NULL, &script->file, NULL), VD_OK);
	script->previous = script->header.checksum;
}

static void script_record(struct script *script, enum vdi_segment_kind kind, vd_rev revision, const void *payload, size_t size)
{
	uint8_t bytes[8192] = { 0 };
	size_t	whole = vdi_segment_record_size(size);

	assert_true(whole <= sizeof bytes);
	vdi_segment_record_prepare(bytes, kind, revision, size);
	if (size)
		memcpy(bytes + VDI_SEGMENT_RECORD_HEADER_SIZE, payload, size);
	(void) vdi_segment_record_seal(bytes, script->index++, script->header.nonce, script->previous, 0, 0, &script->previous);
	assert_status(vdi_file_write(script->file, script->tail, bytes, whole, NULL), VD_OK);
	script->tail += (int64_t) whole;
}

/* Two good revisions: 6 creates k01 and 7 k02. */
static void script_good(struct script *script, struct world *w, struct vd_kv *first, struct vd_kv *second)
{
	struct payload payload;

	put_time(&payload, w->now);
	put_change(&payload, ROLE_EVENT, 6, false, first, NULL, false);
	script_record(script, VDI_SEGMENT_COMMIT, 6, payload.bytes, payload.size);
	put_time(&payload, w->now);
	put_change(&payload, ROLE_EVENT, 7, false, second, NULL, false);
	script_record(script, VDI_SEGMENT_COMMIT, 7, payload.bytes, payload.size);
}

/* A third record with a right checksum and a fault in one place: the history ends before it, and that is said. Without the fault it is told. */
static void each_fault_of_a_record_ends_the_history_before_it(void **state)
{
	enum fault {
		NONE, TIME_ALONE, TIME_TOO_SHORT, OTHER_ROLE, UNKNOWN_ROLE, SIZE_BEYOND, ENTRY_TOO_SHORT, OTHER_REVISION, TWO_CHANGES, A_LEASE, NO_PREVIOUS, PREVIOUS_IS_OLDER,
		PREVIOUS_WAS_DELETED, SPELLED, SPELLED_DELETE, SPELLED_OTHER_REVISION, SPELLED_OTHER_KEY, SPELLED_TWICE, SAME_REVISION, OLDER_REVISION, MARK, MARK_AGAIN, OLDER_MARK,
		FAULTS
	};

	(void) state;
	for (enum fault fault = NONE; fault < FAULTS; fault++) {
		bool	       is_good = fault == NONE || fault == TIME_ALONE || fault == SPELLED || fault == MARK || fault == MARK_AGAIN;
		struct vd_kv  *first = record_of(1, NULL, 6, false, 10, 1), *second = record_of(2, NULL, 7, false, 10, 1), *third = record_of(1, first, 9, false, 10, 1);
		struct vd_kv  *gone = record_of(1, first, 8, true, 0, 1), *old = record_of(3, NULL, 3, false, 10, 1), *changed = record_of(3, old, 9, false, 10, 1);
		struct vd_kv  *other = record_of(5, NULL, 3, false, 10, 1), *older = record_of(3, NULL, 2, false, 10, 1), *tombstone = record_of(3, older, 3, true, 0, 1);
		struct payload payload;
		struct script  script;
		struct world   w;
		vd_rev	       revision = 9;
		enum vdi_segment_kind kind = VDI_SEGMENT_COMMIT;
		uint8_t	      *at;
		uint32_t       number;
		int64_t	       offset;

		world_init(&w, 1);
		script_begin(&script, &w);
		script_good(&script, &w, first, second);
		put_time(&payload, w.now);
		at = payload.bytes + payload.size;
		if (fault < NO_PREVIOUS || fault == SAME_REVISION || fault == OLDER_REVISION)
			at = put_change(&payload, ROLE_EVENT, 9, false, third, first, false);
		else if (fault >= SPELLED && fault <= SPELLED_TWICE)
			at = put_change(&payload, ROLE_EVENT, 9, false, changed, old, false);
		switch (fault) {
		case TIME_ALONE:
			payload.size = 8;
			break;
		case TIME_TOO_SHORT:
			payload.size = 7;
			break;
		case OTHER_ROLE:
		case UNKNOWN_ROLE:
			number = fault == OTHER_ROLE ? ROLE_PREVIOUS : 2;
			memcpy(at + 8, &number, 4);
			break;
		case SIZE_BEYOND:
			memcpy(&number, at + 12, 4);
			number++;
			memcpy(at + 12, &number, 4);
			break;
		case ENTRY_TOO_SHORT:
			memset(payload.bytes + payload.size, 0, 15);
			payload.size += 15;
			break;
		case OTHER_REVISION:
			revision = 10;
			break;
		case TWO_CHANGES:
		case A_LEASE: {
			struct vdi_change	changes[2] = { { .kv = third, .previous = first }, { .kv = changed, .previous = old } };
			struct vdi_lease_change lease = { .kind = VDI_LEASE_REVOKED, .id = 5 };
			struct vdi_commit	commit = { .revision = 9, .changes = changes, .change_count = 1 };

			changed->sub = 1;
			commit.change_count += fault == TWO_CHANGES;
			commit.leases = &lease;
			commit.lease_count = fault == A_LEASE;
			put_time(&payload, w.now);
			put_entry(&payload, ROLE_EVENT, &commit);
			break;
		}
		case NO_PREVIOUS: /* k03 was never told */
			put_change(&payload, ROLE_EVENT, 9, false, changed, old, false);
			break;
		case PREVIOUS_IS_OLDER: /* 9 replaced revision 5, but 6 was told last */
			first->mod_rev = first->create_rev = third->create_rev = 5;
			put_change(&payload, ROLE_EVENT, 9, false, third, first, false);
			break;
		case PREVIOUS_WAS_DELETED:
			put_change(&payload, ROLE_EVENT, 8, true, gone, first, false);
			script_record(&script, VDI_SEGMENT_COMMIT, 8, payload.bytes, payload.size);
			put_time(&payload, w.now);
			first->mod_rev = 8;
			put_change(&payload, ROLE_EVENT, 9, false, third, first, false);
			break;
		case SPELLED:
		case SPELLED_TWICE:
			put_change(&payload, ROLE_PREVIOUS, 3, false, old, NULL, true);
			if (fault == SPELLED_TWICE)
				put_change(&payload, ROLE_PREVIOUS, 3, false, old, NULL, true);
			break;
		case SPELLED_DELETE:
			put_change(&payload, ROLE_PREVIOUS, 3, true, tombstone, older, false);
			break;
		case SPELLED_OTHER_REVISION:
			old->mod_rev = old->create_rev = 2;
			put_change(&payload, ROLE_PREVIOUS, 2, false, old, NULL, true);
			break;
		case SPELLED_OTHER_KEY:
			put_change(&payload, ROLE_PREVIOUS, 3, false, other, NULL, true);
			break;
		case SAME_REVISION:
			revision = 7;
			memcpy(at, &revision, 8);
			break;
		case OLDER_REVISION:
			revision = 6;
			memcpy(at, &revision, 8);
			break;
		case MARK:
		case MARK_AGAIN:
		case OLDER_MARK:
			kind = VDI_SEGMENT_MARK;
			revision = fault == MARK ? 9 : fault == MARK_AGAIN ? 7 : 6;
			payload.size = 0;
			break;
		case NONE:
		case FAULTS:
			break;
		}
		offset = script.tail;
		script_record(&script, kind, revision, payload.bytes, payload.size);
		vdi_file_close(script.file);
		assert_status(try_open(&w, NULL), VD_OK);
		if (is_good != (w.lost.code == VD_OK))
			fail_msg("fault %d: %s %s", (int) fault, vd_status_name(w.lost.code), w.lost.message);
		assert_int_equal(w.past->floor, 4);
		if (is_good) {
			assert_int_equal(w.past->until, revision);
			assert_int_equal(w.past->count, kind == VDI_SEGMENT_MARK || fault == TIME_ALONE ? 2 : 3);
		} else {
			char expected[64];

			assert_status(w.lost.code, VD_CORRUPT);
			snprintf(expected, sizeof expected, "0001.vdh makes no sense at offset %lld", (long long) offset);
			assert_non_null(strstr(w.lost.message, expected));
			assert_int_equal(w.past->until, fault == PREVIOUS_WAS_DELETED ? 8 : 7);
			assert_int_equal(w.past->count, fault == PREVIOUS_WAS_DELETED ? 3 : 2);
		}
		assert_int_equal(w.past->events[1].kv->mod_rev, 7);
		assert_int_equal(vdi_history_files_until(w.files), w.past->until);
		/* Writing goes on in this file only when all of it makes sense. */
		assert_status(vdi_history_files_prepare(w.files, w.now, NULL), VD_OK);
		assert_int_equal(segments(&w, NULL), is_good ? 1 : 2);
		for (struct vd_kv **kv = (struct vd_kv *[]) { first, second, third, gone, old, changed, other, older, tombstone, NULL }; *kv; kv++)
			vd_kv_unref(*kv);
		world_fini(&w);
	}
}

/* What cannot be removed or opened is an error of the disk, and the caller hears it. */
static void errors_of_the_disk_are_handed_out(void **state)
{
	struct world	w;
	struct vd_error error = { 0 };

	(void) state;
	world_init(&w, 3);
	files_open(&w);
	record_some(&w, 5);
	sync_and_close(&w);
	/* The next start goes on in the same file and first cuts it where its last record ends; what failed is tried again from the start. */
	assert_status(try_open(&w, &error), VD_OK);
	vdi_disk_sim_fail_nth(w.disk, 1, VDI_DISK_SIM_IO);
	assert_status(vdi_history_files_prepare(w.files, w.now, &error), VD_IO);
	vdi_disk_sim_fail_nth(w.disk, 1, VDI_DISK_SIM_IO);
	assert_status(vdi_history_files_prepare(w.files, w.now, &error), VD_IO);
	assert_status(vdi_history_files_prepare(w.files, w.now, NULL), VD_OK);
	assert_int_equal(segments(&w, NULL), 1);
	files_close(&w);
	/* A file of another store stays until it can be removed. */
	w.store_id++;
	assert_status(try_open(&w, &error), VD_OK);
	vdi_disk_sim_fail_nth(w.disk, 1, VDI_DISK_SIM_IO);
	assert_status(vdi_history_files_tidy(w.files, &error), VD_IO);
	assert_int_equal(segments(&w, NULL), 1);
	assert_status(vdi_history_files_tidy(w.files, &error), VD_OK);
	assert_int_equal(segments(&w, NULL), 0);
	world_fini(&w);
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

/* A file whose newest record is exactly as old as the window stays; a nanosecond later it goes. A file takes what comes for exactly an eighth of the window. */
static void files_go_when_they_are_older_than_the_window(void **state)
{
	struct world w;
	vd_wall	     begin;

	(void) state;
	world_init(&w, 9);
	w.window = VD_SECONDS(80);
	files_open(&w);
	begin = w.now;
	record_some(&w, 1);
	w.now.ns = begin.ns + VD_SECONDS(10).ns;
	record_some(&w, 1);
	assert_int_equal(segments(&w, NULL), 1);
	w.now.ns++;
	record_some(&w, 1);
	assert_int_equal(segments(&w, NULL), 2);
	assert_int_equal(vdi_history_files_oldest(w.files).ns, begin.ns);
	w.now.ns = begin.ns + VD_SECONDS(90).ns;
	assert_status(vdi_history_files_evict(w.files, w.now, NULL), VD_OK);
	assert_int_equal(segments(&w, NULL), 2);
	w.now.ns++;
	assert_status(vdi_history_files_evict(w.files, w.now, NULL), VD_OK);
	assert_int_equal(segments(&w, NULL), 1);
	assert_int_equal(vdi_history_files_oldest(w.files).ns, begin.ns + VD_SECONDS(10).ns + 1);
	world_fini(&w);
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
	assert_int_equal(past->floor, 900);
	vdi_past_forget(past, 800); /* never back */
	assert_int_equal(past->floor, 900);
	assert_int_equal(past->count, 50);
	/* Who was last before a gap is no witness of what comes behind it. */
	past->until = 1000;
	vdi_past_clear(past);
	assert_int_equal(past->count + (size_t) past->floor + (size_t) past->until, 0);
	assert_null(vdi_past_latest(past, K("k999")));
	assert_status(vdi_past_witnesses(past, witnesses, &count), VD_OK);
	assert_int_equal(count, 0);
	vdi_past_unref(past);
	/* As many keys as there may be witnesses, one fewer, and one more. */
	for (unsigned keys = VDI_PAST_WITNESSES_MAX - 1; keys <= VDI_PAST_WITNESSES_MAX + 1; keys++) {
		assert_status(vdi_past_new(&past), VD_OK);
		for (unsigned i = 0; i < keys; i++) {
			struct vd_kv *kv = record_of(i, NULL, 1 + i, false, 1, 1);

			assert_status(vdi_past_add(past, false, kv, NULL, true), VD_OK);
		}
		assert_status(vdi_past_witnesses(past, witnesses, &count), VD_OK);
		assert_int_equal(count, VDI_MIN(keys, VDI_PAST_WITNESSES_MAX));
		for (size_t i = 0; i < count; i++) {
			assert_int_equal(witnesses[i]->mod_rev, keys - i);
			vd_kv_unref(witnesses[i]);
		}
		vdi_past_unref(past);
	}
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
	uint64_t first = 0;
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
		cmocka_unit_test(each_fault_of_a_record_ends_the_history_before_it),
		cmocka_unit_test(files_go_when_they_are_older_than_the_window),
		cmocka_unit_test(errors_of_the_disk_are_handed_out),
		cmocka_unit_test(the_witnesses_are_the_newest_and_some_others),
		cmocka_unit_test(torture_every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
