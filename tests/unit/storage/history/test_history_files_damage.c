/* The files of the local history with damage: torn tails, bit rot, power cuts, records that make no sense.
 * What is believed is true. */
#include "disk_sim.h"
#include "history_files.h"
#include "history_world.h"
#include "journal_segment.h"
#include "rand.h"
#include "record.h"
#include "vdtest.h"

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

static uint8_t *put_change(struct payload *payload, uint32_t role, vd_rev revision, bool is_delete,
			   struct vd_kv *kv, struct vd_kv *previous, bool is_first)
{
	struct vdi_change change = {
		.is_delete = is_delete, .kv = kv, .previous = previous, .is_first = is_first
	};
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

static void script_begin(struct script *script, struct history_world *w)
{
	uint64_t prefix_hash;

	*script = (struct script) { .header = { .family = VDI_SEGMENT_HISTORY,
						.sequence = 1,
						.first_index = 1,
						.nonce = 3,
						.size = VDI_SEGMENT_HEADER_SIZE,
						.revision = 4 },
				    .index = 1,
				    .tail = VDI_SEGMENT_HEADER_SIZE };
	/* As history_files.c makes it. */
	prefix_hash = vdi_hash_bytes(K(w->prefix), 0x7665646574746501u);
	memcpy(script->header.store_id, &w->store_id, 8);
	memcpy(script->header.store_id + 8, &prefix_hash, 8);
	assert_status(vdi_segment_create(w->dir, &script->header, NULL, &script->file, NULL), VD_OK);
	script->previous = script->header.checksum;
}

static void script_record(struct script *script, enum vdi_segment_kind kind, vd_rev revision,
			  const void *payload, size_t size)
{
	uint8_t bytes[8192] = { 0 };
	size_t	whole = vdi_segment_record_size(size);

	assert_true(whole <= sizeof bytes);
	vdi_segment_record_prepare(bytes, kind, revision, size);
	if (size)
		memcpy(bytes + VDI_SEGMENT_RECORD_HEADER_SIZE, payload, size);
	(void) vdi_segment_record_seal(bytes, script->index++, script->header.nonce, script->previous, 0, 0,
				       &script->previous);
	assert_status(vdi_file_write(script->file, script->tail, bytes, whole, NULL), VD_OK);
	script->tail += (int64_t) whole;
}

/* Two good revisions: 6 creates k01 and 7 k02. */
static void script_good(struct script *script, struct history_world *w, struct vd_kv *first,
			struct vd_kv *second)
{
	struct payload payload;

	put_time(&payload, w->now);
	put_change(&payload, ROLE_EVENT, 6, false, first, NULL, false);
	script_record(script, VDI_SEGMENT_COMMIT, 6, payload.bytes, payload.size);
	put_time(&payload, w->now);
	put_change(&payload, ROLE_EVENT, 7, false, second, NULL, false);
	script_record(script, VDI_SEGMENT_COMMIT, 7, payload.bytes, payload.size);
}

/* A third record with a right checksum and a fault in one place: the history ends before it, and that is
 * said. Without the fault it is told. */
static void each_fault_of_a_record_ends_the_history_before_it(void **state)
{
	enum fault {
		NONE,
		TIME_ALONE,
		TIME_TOO_SHORT,
		OTHER_ROLE,
		UNKNOWN_ROLE,
		SIZE_BEYOND,
		ENTRY_TOO_SHORT,
		OTHER_REVISION,
		TWO_CHANGES,
		A_LEASE,
		NO_CHANGE,
		NO_PREVIOUS,
		PREVIOUS_IS_OLDER,
		PREVIOUS_WAS_DELETED,
		SPELLED,
		SPELLED_DELETE,
		SPELLED_OTHER_REVISION,
		SPELLED_OTHER_KEY,
		SPELLED_TWICE,
		SAME_REVISION,
		OLDER_REVISION,
		MARK,
		MARK_AGAIN,
		OLDER_MARK,
		FAULTS
	};

	(void) state;
	for (enum fault fault = NONE; fault < FAULTS; fault++) {
		bool is_good = fault == NONE || fault == TIME_ALONE || fault == SPELLED || fault == MARK ||
			       fault == MARK_AGAIN;
		struct vd_kv *first = history_record_of(1, NULL, 6, false, 10, 1),
			     *second = history_record_of(2, NULL, 7, false, 10, 1),
			     *third = history_record_of(1, first, 9, false, 10, 1);
		struct vd_kv *gone = history_record_of(1, first, 8, true, 0, 1),
			     *old = history_record_of(3, NULL, 3, false, 10, 1),
			     *changed = history_record_of(3, old, 9, false, 10, 1);
		struct vd_kv *other = history_record_of(5, NULL, 3, false, 10, 1),
			     *older = history_record_of(3, NULL, 2, false, 10, 1),
			     *tombstone = history_record_of(3, older, 3, true, 0, 1);
		struct payload	      payload;
		struct script	      script;
		struct history_world  w;
		vd_rev		      revision = 9;
		enum vdi_segment_kind kind = VDI_SEGMENT_COMMIT;
		uint8_t		     *at;
		uint32_t	      number;
		int64_t		      offset;

		history_world_init(&w, 1);
		script_begin(&script, &w);
		script_good(&script, &w, first, second);
		put_time(&payload, w.now);
		at = payload.bytes + payload.size;
		if (fault < NO_PREVIOUS || fault == SAME_REVISION || fault == OLDER_REVISION)
			at = put_change(&payload, ROLE_EVENT, 9, false, third, first, false);
		else if (fault >= SPELLED && fault <= SPELLED_TWICE)
			at = put_change(&payload, ROLE_EVENT, 9, false, changed, old, false);
		switch (fault) {
		case TIME_ALONE: payload.size = 8; break;
		case TIME_TOO_SHORT: payload.size = 7; break;
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
		case OTHER_REVISION: revision = 10; break;
		case TWO_CHANGES:
		case A_LEASE:
		case NO_CHANGE: {
			struct vdi_change	changes[2] = { { .kv = third, .previous = first },
							       { .kv = changed, .previous = old } };
			struct vdi_lease_change lease = { .kind = VDI_LEASE_REVOKED, .id = 5 };
			struct vdi_commit commit = { .revision = 9, .changes = changes, .change_count = 1 };

			changed->sub = 1;
			commit.change_count += fault == TWO_CHANGES;
			commit.change_count -= fault == NO_CHANGE;
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
		case FAULTS: break;
		}
		offset = script.tail;
		script_record(&script, kind, revision, payload.bytes, payload.size);
		vdi_file_close(script.file);
		assert_status(history_try_open(&w, NULL), VD_OK);
		if (is_good != (w.lost.code == VD_OK))
			fail_msg("fault %d: %s %s", (int) fault, vd_status_name(w.lost.code), w.lost.message);
		assert_int_equal(w.loaded->floor, 4);
		if (is_good) {
			assert_int_equal(w.loaded->until, revision);
			assert_int_equal(w.loaded->count,
					 kind == VDI_SEGMENT_MARK || fault == TIME_ALONE ? 2 : 3);
		} else {
			char expected[64];

			assert_status(w.lost.code, VD_CORRUPT);
			snprintf(expected, sizeof expected, "0001.vdh: invalid record at offset %lld",
				 (long long) offset);
			assert_non_null(strstr(w.lost.message, expected));
			assert_int_equal(w.loaded->until, fault == PREVIOUS_WAS_DELETED ? 8 : 7);
			assert_int_equal(w.loaded->count, fault == PREVIOUS_WAS_DELETED ? 3 : 2);
		}
		assert_int_equal(w.loaded->events[1].kv->mod_rev, 7);
		assert_int_equal(vdi_history_files_until(w.files), w.loaded->until);
		/* Writing goes on in this file only when all of it makes sense. */
		assert_status(vdi_history_files_prepare(w.files, w.now, NULL), VD_OK);
		assert_int_equal(history_segments(&w, NULL), is_good ? 1 : 2);
		for (struct vd_kv **kv = (struct vd_kv *[]) { first, second, third, gone, old, changed, other,
							      older, tombstone, NULL };
		     *kv; kv++)
			vd_kv_unref(*kv);
		history_world_fini(&w);
	}
}

/* The last revision is there or not; what is there is true, and it can be continued. */
static void a_torn_tail_costs_what_was_torn(void **state)
{
	for (int64_t cut = 1; cut < 700; cut += 3) {
		struct history_world w;
		const char	    *name = "history-0000000000000001.vdh";
		int64_t		     size, until;

		history_world_init(&w, (uint64_t) cut);
		history_open(&w);
		history_record_some(&w, 20);
		until = w.revision;
		history_sync_and_close(&w);
		assert_non_null(vdi_disk_sim_content(w.disk, name, &size));
		vdi_disk_sim_cut(w.disk, name, size - cut);
		history_open(&w);
		assert_status(w.lost.code, VD_OK);
		history_assert_loaded(&w);
		assert_int_equal(w.loaded->floor, 4);
		assert_true(w.loaded->until < until);
		assert_true(w.loaded->count > 0);
		history_world_fini(&w);
	}
}

static void after_a_torn_tail_it_goes_on(void **state)
{
	struct history_world w, again;
	int64_t		     size;
	const char	    *name = "history-0000000000000001.vdh";
	unsigned	     told;

	history_world_init(&w, 4);
	history_open(&w);
	history_record_some(&w, 20);
	history_sync_and_close(&w);
	assert_non_null(vdi_disk_sim_content(w.disk, name, &size));
	vdi_disk_sim_cut(w.disk, name, size - 5);
	history_open(&w);
	told = (unsigned) w.loaded->count;
	/* What was torn is told again by the store. */
	again = w;
	for (size_t i = 0, first; i < w.count; i = first) {
		for (first = i; first < w.count && w.events[first].kv->mod_rev == w.events[i].kv->mod_rev;)
			first++;
		if (w.events[i].kv->mod_rev > w.loaded->until)
			assert_status(vdi_history_files_append(w.files, w.events + i, first - i, w.now),
				      VD_OK);
	}
	assert_status(vdi_history_files_flush(w.files, NULL), VD_OK);
	w.revision = vdi_history_files_until(w.files);
	history_record_some(&w, 10);
	history_reopen(&w);
	assert_status(w.lost.code, VD_OK);
	assert_int_equal(w.loaded->count, w.count);
	assert_true(told < again.count);
	assert_int_equal(history_segments(&w, NULL), 1);
	history_world_fini(&w);
}

/* Any byte of any file: what is read is true, and what is lost is said unless it is a tail. */
static void bit_rot_costs_what_comes_before_it(void **state)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct history_world w;
		uint64_t	     first = 0;
		char		     name[VDI_DISK_NAME_MAX];
		int64_t		     size;
		unsigned	     count, hit;

		history_world_init(&w, seed);
		w.bytes_max = 128 << 10;
		w.value_size = 500;
		history_open(&w);
		history_record_some(&w, 150);
		history_sync_and_close(&w);
		count = history_segments(&w, &first);
		assert_true(count >= 4);
		hit = (unsigned) vdi_rand_below(&w.rand, count);
		vdi_segment_name(VDI_SEGMENT_HISTORY, first + hit, name);
		assert_non_null(vdi_disk_sim_content(w.disk, name, &size));
		vdi_disk_sim_flip(w.disk, name, (int64_t) vdi_rand_below(&w.rand, (uint64_t) size), 0x10);
		history_open(&w);
		history_assert_loaded(&w);
		if (hit + 1 < count) {
			assert_status(w.lost.code, VD_CORRUPT);
			assert_int_equal(w.loaded->until, w.revision);
			assert_true(w.loaded->count > 0);
			assert_in_range(history_segments(&w, NULL), count - hit - 1, count - hit);
		}
		/* And the next start is like any other. */
		w.revision = vdi_history_files_until(w.files);
		history_reopen(&w);
		assert_status(w.lost.code, VD_OK);
		history_world_fini(&w);
	}
}

/* The power goes at each operation: what is found is true, and everything up to the last sync is there unless
 * the budget took it. */
static void the_power_may_go_at_any_moment(void **state)
{
	bool was_hit = true;

	for (uint64_t nth = 1; was_hit; nth++) {
		struct history_world w;
		vd_rev		     synced = 0;
		vd_status	     status = VD_OK;

		history_world_init(&w, nth);
		w.bytes_max = 128 << 10;
		w.value_size = 900;
		history_open(&w);
		assert_status(vdi_history_files_sync(w.files, NULL), VD_OK);
		vdi_disk_sim_fail_nth(w.disk, nth, VDI_DISK_SIM_CRASH);
		for (unsigned i = 0; i < 40 && status == VD_OK; i++) {
			size_t first = history_make_revision(&w);

			status = vdi_history_files_prepare(w.files, w.now, NULL);
			if (status == VD_OK)
				status = vdi_history_files_append(w.files, w.events + first, w.count - first,
								  w.now);
			if (status == VD_OK)
				status = vdi_history_files_flush(w.files, NULL);
			if (status == VD_OK && i % 4 == 3 &&
			    (status = vdi_history_files_sync(w.files, NULL)) == VD_OK)
				synced = w.revision;
			if (status == VD_OK)
				status = vdi_history_files_evict(w.files, w.now, NULL);
		}
		was_hit = vdi_disk_sim_failed(w.disk);
		history_close(&w);
		w.dir = vdi_dir_close(w.dir);
		vdi_disk_sim_crash(w.disk);
		assert_status(vdi_dir_open(w.disk, "/data", &w.dir, NULL), VD_OK);
		history_open(&w);
		if (w.loaded->until) {
			history_assert_loaded(&w);
			assert_true(w.loaded->until >= synced);
		} else {
			assert_int_equal(synced, 0);
		}
		history_world_fini(&w);
	}
}

/* The payload of each record with bytes changed at random, under a right checksum: whatever it says, nothing
 * is read beyond it, and what is taken is in order. */
static void bytes_that_make_no_sense_do_no_harm(void **state)
{
	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct history_world	  w;
		struct vdi_segment_reader reader;
		struct vdi_segment_record record;
		struct vdi_segment_header header;
		struct vdi_file		 *file;
		uint8_t			 *bytes = NULL;
		size_t			  capacity = 0;
		int64_t			  tail = VDI_SEGMENT_HEADER_SIZE;
		uint64_t		  previous, index = 1;
		unsigned		  hit;

		history_world_init(&w, seed);
		history_open(&w);
		history_record_some(&w, 8);
		history_sync_and_close(&w);
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
				memcpy(bytes + VDI_SEGMENT_RECORD_HEADER_SIZE, record.payload.data,
				       record.payload.size);
			for (unsigned i = 0; index == hit && record.payload.size && i < 1 + seed % 3; i++)
				bytes[VDI_SEGMENT_RECORD_HEADER_SIZE + 8 +
				      vdi_rand_below(&w.rand, record.payload.size - 8)] =
					(uint8_t) vdi_rand_next(&w.rand);
			(void) vdi_segment_record_seal(bytes, index++, header.nonce, previous, 0, 0,
						       &previous);
			assert_status(vdi_file_write(file, tail, bytes, size, NULL), VD_OK);
			tail += (int64_t) size;
		}
		vdi_segment_reader_fini(&reader);
		vdi_file_close(file);
		vdi_free(bytes);
		assert_status(vdi_dir_unlink(w.dir, "history-0000000000000001.vdh", NULL), VD_OK);
		history_open(&w);
		for (size_t i = 0; i < w.loaded->count; i++) {
			assert_true(w.loaded->events[i].kv->mod_rev <= w.loaded->until);
			assert_true(i == 0 ||
				    w.loaded->events[i].kv->mod_rev >= w.loaded->events[i - 1].kv->mod_rev);
		}
		w.revision = vdi_history_files_until(w.files);
		for (size_t i = 0; i < HISTORY_KEYS; i++)
			w.live[i] = vd_kv_unref(w.live[i]);
		history_record_some(&w, 5);
		history_close(&w);
		history_open(&w);
		history_world_fini(&w);
	}
}

/* Only the newest file may be one that was never finished. */
static void a_file_without_a_header_is_reported(void **state)
{
	char		     name[VDI_DISK_NAME_MAX];
	struct history_world w;
	uint64_t	     first = 0;
	unsigned	     count;

	history_world_init(&w, 6);
	w.bytes_max = 128 << 10;
	w.value_size = 700;
	history_open(&w);
	history_record_some(&w, 300);
	history_sync_and_close(&w);
	count = history_segments(&w, &first);
	assert_true(count > 2);
	vdi_segment_name(VDI_SEGMENT_HISTORY, first, name);
	vdi_disk_sim_cut(w.disk, name, 0);
	history_open(&w);
	assert_status(w.lost.code, VD_CORRUPT);
	assert_non_null(strstr(w.lost.message, "has no header"));
	history_assert_loaded(&w);
	assert_int_equal(w.loaded->until, w.revision);
	history_sync_and_close(&w);
	vdi_segment_name(VDI_SEGMENT_HISTORY, first + count - 1, name);
	vdi_disk_sim_cut(w.disk, name, 0);
	history_open(&w);
	assert_status(w.lost.code, VD_OK);
	history_assert_loaded(&w);
	history_world_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_torn_tail_costs_what_was_torn),
		cmocka_unit_test(after_a_torn_tail_it_goes_on),
		cmocka_unit_test(a_file_without_a_header_is_reported),
		cmocka_unit_test(bit_rot_costs_what_comes_before_it),
		cmocka_unit_test(the_power_may_go_at_any_moment),
		cmocka_unit_test(bytes_that_make_no_sense_do_no_harm),
		cmocka_unit_test(each_fault_of_a_record_ends_the_history_before_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
