/* The history as a structure, against naive models: what the keys of a chunk have in common, and where a
 * revision begins. */
#include "vdtest.h"

#include "mvcc_log.h"
#include "rand.h"

#define EVENTS_MAX 6000

struct world {
	struct vdi_mvcc_log    log;
	struct vdi_mvcc_state *state;
	struct vdi_rand	       rand;
	vd_rev		       revision;
	vd_rev		       revisions[EVENTS_MAX]; /* of all events that were committed */
	size_t		       count;
	int64_t		       now_s;
	int64_t		       live;
};

static void world_open(struct world *world, uint64_t seed, int64_t history_bytes)
{
	memset(world, 0, sizeof *world);
	world->live = vdi_alloc_live();
	vdi_mvcc_log_init(&world->log, history_bytes, (vd_dur) { 0 });
	assert_status(vdi_mvcc_state_new(&world->state), VD_OK);
	vdi_rand_init(&world->rand, seed);
	world->revision = 1;
}

static void world_close(struct world *world)
{
	vdi_mvcc_log_fini(&world->log);
	vdi_mvcc_state_unref(world->state);
	assert_int_equal(vdi_alloc_live(), world->live);
}

/* Of few letters, so that keys often begin alike, and of any length from 1 on, so that keys often are the
 * beginning of others. */
static struct vd_kv *random_record(struct world *world, const char *root, vd_rev revision)
{
	char	      key[64];
	struct vd_kv *kv;
	size_t	      size = strlen(root);

	memcpy(key, root, size);
	for (uint64_t letters = vdi_rand_below(&world->rand, 6) + (size == 0); letters > 0; letters--)
		key[size++] = (char) ('a' + vdi_rand_below(&world->rand, 2));
	/* The value lies behind the key, and looks like more of it. */
	assert_status(vd_kv_new((struct vd_bytes) { key, size }, vd_bytes_of("abaababb"), &kv), VD_OK);
	kv->mod_rev = revision;
	return kv;
}

/* Some whole revisions. */
static size_t random_events(struct world *world, const char *root, struct vd_store_event *events)
{
	size_t count = 0;

	for (uint64_t revisions = 1 + vdi_rand_below(&world->rand, 4); revisions > 0; revisions--) {
		world->revision++;
		for (uint64_t n = 1 + vdi_rand_below(&world->rand, 3); n > 0; n--)
			events[count++] =
				(struct vd_store_event) { .kv = random_record(world, root, world->revision) };
	}
	return count;
}

static bool all_begin_with(const struct vdi_mvcc_log_chunk *chunk, uint32_t size)
{
	for (uint32_t i = 0; i < chunk->count; i++)
		if (chunk->events[i].kv->key_size < size ||
		    memcmp(chunk->events[i].kv->data, chunk->events[0].kv->data, size) != 0)
			return false;
	return true;
}

static void check_prefixes(const struct vdi_mvcc_log *log, bool is_exact)
{
	for (size_t i = 0; i < log->chunk_count; i++) {
		const struct vdi_mvcc_log_chunk *chunk = log->chunks[log->chunk_first + i];
		uint32_t size = atomic_load(&((struct vdi_mvcc_log_chunk *) (uintptr_t) chunk)->prefix_size);

		assert_true(all_begin_with(chunk, size));
		if (is_exact)
			assert_false(all_begin_with(chunk, size + 1));
	}
}

/* After every commit; and with groups in between that did not become durable, whose keys may have shortened
 * it. */
static void a_chunk_knows_what_its_keys_begin_with(void **state)
{
	static const char *const roots[] = { "", "/registry/pods/", "x" };

	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct world world;
		bool	     aborts = seed % 3 == 0;
		const char  *root = roots[seed % VDI_ARRAY_SIZE(roots)];

		world_open(&world, seed, 20000); /* a chunk has some 4,096 bytes */
		while (world.count < 800) {
			struct vd_store_event events[16];
			size_t		      count = random_events(&world, root, events);

			assert_status(vdi_mvcc_log_prepare(&world.log, events, count, 1, (vd_mono) { 0 }),
				      VD_OK);
			if (aborts && vdi_rand_once_in(&world.rand, 3)) {
				vdi_mvcc_log_abort(&world.log);
				for (size_t i = 0; i < count; i++)
					vd_kv_unref(events[i].kv);
			} else {
				vdi_mvcc_log_commit(&world.log, world.state);
				world.count += count;
			}
			check_prefixes(&world.log, !aborts);
		}
		assert_true(world.log.chunk_count > 2);
		world_close(&world);
	}
}

/* Seeking any revision, then walking to the end, shows every event of that and later revisions, in order;
 * every run begins with its prefix. */
static void e331_a_cursor_meets_every_event_from_its_revision_on(void **state)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct world		   world;
		struct vdi_mvcc_log_cursor cursor = { 0 };
		struct vdi_mvcc_log_chunk *dropped, *next;
		vd_rev			   compacted;

		world_open(&world, seed, 20000);
		while (world.count < 500) {
			struct vd_store_event events[16];
			size_t		      count = random_events(&world, "", events);

			for (size_t i = 0; i < count; i++)
				world.revisions[world.count++] = events[i].kv->mod_rev;
			assert_status(vdi_mvcc_log_prepare(&world.log, events, count, 1, (vd_mono) { 0 }),
				      VD_OK);
			vdi_mvcc_log_commit(&world.log, world.state);
		}
		compacted = 1 + (vd_rev) vdi_rand_below(&world.rand, (uint64_t) world.revision);
		for (dropped = vdi_mvcc_log_compact(&world.log, compacted); dropped; dropped = next) {
			next = dropped->next;
			vdi_mvcc_log_chunk_unref(dropped);
		}
		for (vd_rev revision = compacted; revision <= world.revision; revision++) {
			size_t			     at = 0;
			const struct vd_store_event *events;
			uint32_t		     count;
			vd_status		     status;

			while (world.revisions[at] < revision)
				at++;
			assert_status(vdi_mvcc_log_seek(&world.log, revision, &cursor), VD_OK);
			while ((status = vdi_mvcc_log_run(&world.log, &cursor, &events, &count)) == VD_OK) {
				struct vd_bytes prefix = vdi_mvcc_log_run_prefix(&cursor);

				for (uint32_t i = 0; i < count; i++) {
					assert_int_equal(events[i].kv->mod_rev, world.revisions[at++]);
					assert_true(vd_bytes_has_prefix(vd_kv_key(events[i].kv), prefix));
				}
				cursor.position += count;
			}
			assert_status(status, VD_AGAIN);
			assert_int_equal(at, world.count);
		}
		vdi_mvcc_log_cursor_fini(&cursor);
		world_close(&world);
	}
}

/* An index that is gone with its chunk, or was never given, is expired; all others are found. */
static void a_cursor_finds_every_index_that_is_left(void **state)
{
	struct vdi_mvcc_log_cursor cursor = { 0 };
	struct vdi_mvcc_log_chunk *dropped, *next;
	struct world		   world;
	uint64_t		   first;

	(void) state;
	world_open(&world, 3, 20000);
	assert_status(vdi_mvcc_log_seek_index(&world.log, 0, &cursor), VD_EXPIRED);
	assert_null(cursor.chunk);
	while (world.count < 500) {
		struct vd_store_event events[16];
		size_t		      count = random_events(&world, "", events);

		for (size_t i = 0; i < count; i++)
			world.revisions[world.count++] = events[i].kv->mod_rev;
		assert_status(vdi_mvcc_log_prepare(&world.log, events, count, 1, (vd_mono) { 0 }), VD_OK);
		vdi_mvcc_log_commit(&world.log, world.state);
	}
	assert_int_equal(world.log.end_index, world.count);
	assert_status(vdi_mvcc_log_seek_index(&world.log, 0, &cursor), VD_OK);
	vdi_mvcc_log_cursor_fini(&cursor);
	for (dropped = vdi_mvcc_log_compact(&world.log, world.revision / 2); dropped; dropped = next) {
		next = dropped->next;
		vdi_mvcc_log_chunk_unref(dropped);
	}
	first = world.log.chunks[world.log.chunk_first]->first_index;
	assert_in_range(first, 10, world.count - 10);
	for (uint64_t index = 0; index < world.count; index++) {
		vd_status status = vdi_mvcc_log_seek_index(&world.log, index, &cursor);

		assert_status(status, index < first ? VD_EXPIRED : VD_OK);
		if (status != VD_OK) {
			assert_null(cursor.chunk);
			continue;
		}
		assert_int_equal(vdi_mvcc_log_cursor_index(&cursor), index);
		assert_int_equal(cursor.chunk->events[cursor.position].kv->mod_rev, world.revisions[index]);
	}
	vdi_mvcc_log_cursor_fini(&cursor);
	world_close(&world);
}

/* One revision after another, and after each the compaction that the writer would make. */
static void write_and_trim(struct world *world, size_t count, vd_dur window, int64_t bytes_max)
{
	while (count--) {
		struct vd_store_event event = { .previous = random_record(world, "before", world->revision) };
		vd_mono		      now, due;
		struct vdi_mvcc_log_chunk *dropped, *next;
		vd_rev			   target;

		event.kv = random_record(world, "key", ++world->revision);
		world->now_s += 1 + (int64_t) vdi_rand_below(&world->rand, 3);
		now.ns = world->now_s * 1000000000;
		assert_status(vdi_mvcc_log_prepare(&world->log, &event, 1, 1, now), VD_OK);
		vdi_mvcc_log_commit(&world->log, world->state);
		target = vdi_mvcc_log_overdue(&world->log, now, window, bytes_max, world->revision, &due);
		if (target <= world->log.floor)
			continue;
		for (dropped = vdi_mvcc_log_compact(&world->log, target); dropped; dropped = next) {
			next = dropped->next;
			vdi_mvcc_log_chunk_unref(dropped);
		}
	}
}

/* A chunk has room for 1,024 events, so many small ones would cost far more than the history may have. */
static void trimming_makes_no_small_chunks(void **state)
{
	static const struct {
		vd_dur	window;
		int64_t bytes_max;
	} bounds[] = { { VD_SECONDS(800), 0 }, { VD_SECONDS(10000000), 32 * 4096 } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(bounds); i++) {
		struct world world;

		world_open(&world, i, bounds[i].bytes_max);
		world.log.chunk_age_max.ns = bounds[i].window.ns / 8;
		write_and_trim(&world, 2000, bounds[i].window, bounds[i].bytes_max);
		for (int pass = 0; pass < 50; pass++) {
			write_and_trim(&world, 1000, bounds[i].window, bounds[i].bytes_max);
			/* An eighth of the window is in each, or a thirty-second of the bytes; more for the
			 * open one, and the one that is leaving. */
			assert_in_range(world.log.chunk_count, 6, bounds[i].bytes_max ? 34 : 10);
		}
		world_close(&world);
	}
}

/* The event of the compacted revision shows no previous record, so a watch that is about to take the newest
 * ones must not find them compacted (E-343). */
static void e343_trimming_by_bytes_leaves_the_newest_events_whole(void **state)
{
	struct world world;

	world_open(&world, 1, 1);
	for (int i = 0; i < 2000; i++) {
		vd_rev floor;

		write_and_trim(&world, 1, VD_SECONDS(1000000), 1);
		floor = world.log.floor;
		if (i >= 100) /* two chunks of 4,096 bytes, never less than one */
			assert_in_range(world.revision - floor, 4096 / 200, 2 * 4096 / 64);
	}
	world_close(&world);
}

/* What goes is taken out as it is: no set of what stays is made, however long the history is. */
static void e1017_a_compaction_takes_no_memory(void **state)
{
	static struct vd_store_event events[64];
	struct world		     world;
	struct vdi_mvcc_log_chunk   *gone, *next;
	bool			     failed;

	(void) state;
	world_open(&world, 7, 1 << 20);
	while (world.count < 5000) {
		size_t count = random_events(&world, "k", events);

		assert_status(vdi_mvcc_log_prepare(&world.log, events, count, world.count, (vd_mono) { 0 }),
			      VD_OK);
		vdi_mvcc_log_commit(&world.log, world.state);
		world.count += count;
	}
	(void) vdi_alloc_fail_nth(1, 1);
	gone = vdi_mvcc_log_compact(&world.log, world.revision);
	failed = vdi_alloc_failed();
	(void) vdi_alloc_fail_nth(0, 0);
	assert_false(failed);
	assert_non_null(gone);
	for (; gone; gone = next) {
		next = gone->next;
		(void) vdi_mvcc_log_chunk_unref(gone);
	}
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_chunk_knows_what_its_keys_begin_with),
		cmocka_unit_test(a_cursor_finds_every_index_that_is_left),
		cmocka_unit_test(e331_a_cursor_meets_every_event_from_its_revision_on),
		cmocka_unit_test(trimming_makes_no_small_chunks),
		cmocka_unit_test(e343_trimming_by_bytes_leaves_the_newest_events_whole),
		cmocka_unit_test(e1017_a_compaction_takes_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
