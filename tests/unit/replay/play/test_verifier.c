/* Unit tests of replay/play/verifier.c: it is silent about what is right, and names the first thing that is
 * wrong. */
#include <stdio.h>

#include "rand.h"
#include "vdtest.h"
#include "verifier.h"

/* A history as a right store would show it: keys k0..k9; each revision changes one or two of them. */
#define REVISIONS 400
#define FIRST 100 /* the first list's revision */

struct change {
	int	 key;
	bool	 is_delete;
	vd_rev	 create_rev;
	int64_t	 version;
	uint64_t hash;
	bool	 has_previous;
	vd_rev	 previous_revision;
	uint64_t previous_hash;
};
struct entry {
	unsigned      count;
	struct change changes[2];
	struct {
		vd_rev	 revision, create_rev;
		int64_t	 version;
		uint64_t hash;
	} state[10]; /* behind it; revision 0: not there */
};
static struct entry history[FIRST + REVISIONS];

static void make_history(uint64_t seed)
{
	struct vdi_rand rand;

	vdi_rand_init(&rand, seed);
	memset(history, 0, sizeof history);
	for (vd_rev revision = FIRST; revision < FIRST + REVISIONS; revision++) {
		struct entry *entry = &history[revision];
		int	      key = (int) vdi_rand_below(&rand, 5);

		if (revision > FIRST)
			memcpy(entry->state, history[revision - 1].state, sizeof entry->state);
		if (revision > FIRST && vdi_rand_once_in(&rand, 5))
			continue; /* a revision of other keys */
		entry->count = 1 + (unsigned) vdi_rand_below(&rand, 2);
		for (unsigned i = 0; i < entry->count; i++, key += 5) {
			struct change *change = &entry->changes[i];
			bool	       is_there = entry->state[key].revision > 0;

			*change = (struct change) { .key = key,
						    .is_delete = is_there && vdi_rand_once_in(&rand, 4),
						    .has_previous = is_there,
						    .previous_revision = entry->state[key].revision,
						    .previous_hash = entry->state[key].hash };
			if (change->is_delete) {
				memset(&entry->state[key], 0, sizeof entry->state[key]);
				continue;
			}
			change->create_rev = is_there ? entry->state[key].create_rev : revision;
			change->version = is_there ? entry->state[key].version + 1 : 1;
			change->hash = vdi_rand_next(&rand);
			entry->state[key].revision = revision;
			entry->state[key].create_rev = change->create_rev;
			entry->state[key].version = change->version;
			entry->state[key].hash = change->hash;
		}
	}
}

struct world {
	struct vdi_verifier *verifier;
	unsigned	     count;
	struct vdi_violation first;
};

static void violated(void *arg, const struct vdi_violation *violation)
{
	struct world *world = arg;

	if (world->count++ == 0)
		world->first = *violation;
}

static const char *key_name(int key)
{
	static char names[10][4];

	snprintf(names[key], sizeof names[key], "k%d", key);
	return names[key];
}

static void list_at(struct world *world, vd_rev revision, vd_rev minimum)
{
	vdi_verifier_list_begin(world->verifier, revision, minimum);
	for (int key = 0; key < 10; key++)
		if (history[revision].state[key].revision)
			assert_status(vdi_verifier_list_item(world->verifier, vd_bytes_of(key_name(key)),
							     history[revision].state[key].revision,
							     history[revision].state[key].version,
							     history[revision].state[key].hash),
				      VD_OK);
	vdi_verifier_list_end(world->verifier);
}

static void world_init(struct world *world, uint32_t history_max)
{
	struct vdi_verifier_options options = { .history_max = history_max,
						.violated = violated,
						.arg = world };

	memset(world, 0, sizeof *world);
	assert_status(vdi_verifier_new(&options, &world->verifier), VD_OK);
	list_at(world, FIRST, 0);
}

static struct vdi_verifier_stream *open_stream(struct world *world, const char *name, vd_rev after)
{
	struct vdi_verifier_stream *stream;

	assert_status(vdi_verifier_stream_open(world->verifier, name, after, after != FIRST, &stream), VD_OK);
	return stream;
}

static unsigned seen_of(vd_rev revision, struct vdi_seen seen[2])
{
	const struct entry *entry = &history[revision];

	for (unsigned i = 0; i < entry->count; i++) {
		const struct change *change = &entry->changes[i];

		seen[i] = (struct vdi_seen) { .key = vd_bytes_of(key_name(change->key)),
					      .revision = revision,
					      .is_delete = change->is_delete,
					      .create_rev = change->create_rev,
					      .version = change->version,
					      .value_hash = change->hash,
					      .has_previous = change->has_previous,
					      .previous_revision = change->previous_revision,
					      .previous_hash = change->previous_hash };
	}
	return entry->count;
}

static void show(struct vdi_verifier_stream *stream, vd_rev revision)
{
	struct vdi_seen seen[2];
	unsigned	count = seen_of(revision, seen);

	if (count)
		assert_status(vdi_verifier_revision(stream, seen, count), VD_OK);
}

static void show_range(struct vdi_verifier_stream *stream, vd_rev from, vd_rev to)
{
	for (vd_rev revision = from; revision <= to; revision++)
		show(stream, revision);
}

/* The first revision from `from` on that changes something. */
static vd_rev some(vd_rev from)
{
	while (history[from].count == 0)
		from++;
	return from;
}

static void assert_first(struct world *world, enum vdi_guarantee guarantee, vd_rev revision)
{
	if (world->count == 0)
		fail_msg("nothing was found; %s at %lld was expected", vdi_guarantee_name(guarantee),
			 (long long) revision);
	if (world->first.guarantee != guarantee || world->first.revision != revision)
		fail_msg("%s at %lld was expected, not %s at %lld: %s", vdi_guarantee_name(guarantee),
			 (long long) revision, vdi_guarantee_name(world->first.guarantee),
			 (long long) world->first.revision, world->first.text);
}

/* ---- Silent about what is right ---- */

static void right_streams_lists_and_writers_are_fine(void **state)
{
	(void) state;
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct world		    world;
		struct vdi_verifier_stream *streams[3];
		struct vdi_verifier_totals  totals;
		vd_rev			    positions[3] = { FIRST, FIRST, FIRST }, last;
		struct vdi_rand		    rand;

		make_history(seed);
		vdi_rand_init(&rand, seed);
		world_init(&world, seed % 2 ? 0 : 50);
		for (int i = 0; i < 3; i++)
			streams[i] = open_stream(&world, "right", FIRST);
		while (positions[0] + positions[1] + positions[2] < 3 * (FIRST + REVISIONS - 1)) {
			int    i = (int) vdi_rand_below(&rand, 3);
			vd_rev to = positions[i] + 1 + (vd_rev) vdi_rand_below(&rand, 10);

			to = VDI_MIN(to, FIRST + REVISIONS - 1);
			show_range(streams[i], positions[i] + 1, to);
			positions[i] = to;
			if (vdi_rand_once_in(&rand, 3))
				vdi_verifier_progress(streams[i], to);
			if (vdi_rand_once_in(&rand, 8) && !vdi_verifier_list_is_pending(world.verifier)) {
				vd_rev now = VDI_MAX(VDI_MAX(positions[0], positions[1]), positions[2]);

				vd_rev at = now + (vd_rev) vdi_rand_below(&rand, 5);

				list_at(&world, VDI_MIN(at, FIRST + REVISIONS - 1), now);
			}
			if (vdi_rand_once_in(&rand,
					     8)) { /* cut, and resumed a little earlier or right there */
				vdi_verifier_stream_close(streams[i]);
				positions[i] -= (vd_rev) vdi_rand_below(&rand, 20);
				positions[i] = VDI_MAX(positions[i], FIRST - 5);
				streams[i] = open_stream(&world, "resumed", positions[i]);
			}
			if (vdi_rand_once_in(&rand, 4) && history[to].count)
				assert_status(vdi_verifier_acknowledged(world.verifier, to, vd_bytes_of("k")),
					      VD_OK);
			vdi_verifier_settle(world.verifier);
		}
		if (world.count)
			fail_msg("seed %u: %s: %s", (unsigned) seed,
				 vdi_guarantee_name(world.first.guarantee), world.first.text);
		vdi_verifier_totals_get(world.verifier, &totals);
		assert_true(totals.lists > 5);
		assert_true(totals.acknowledgements > 5);
		for (last = FIRST + REVISIONS - 1; history[last].count == 0;)
			last--;
		assert_int_equal(totals.newest, last);
		for (int i = 0; i < 3; i++)
			vdi_verifier_stream_close(streams[i]);
		vdi_verifier_free(world.verifier);
	}
}

/* ---- And loud about what is wrong ---- */

struct fault {
	struct world		    world;
	struct vdi_verifier_stream *a, *b;
	vd_rev			    middle;
};

static void fault_init(struct fault *fault)
{
	make_history(7);
	world_init(&fault->world, 0);
	fault->a = open_stream(&fault->world, "a", FIRST);
	fault->b = open_stream(&fault->world, "b", FIRST);
	fault->middle = some(FIRST + 50);
	show_range(fault->a, FIRST + 1, fault->middle);
	show_range(fault->b, FIRST + 1, fault->middle);
	assert_int_equal(fault->world.count, 0);
}

static void fault_fini(struct fault *fault)
{
	vdi_verifier_stream_close(fault->a);
	vdi_verifier_stream_close(fault->b);
	vdi_verifier_free(fault->world.verifier);
}

static void a_dropped_revision(void **state)
{
	struct fault fault;
	vd_rev	     dropped, after;

	(void) state;
	/* Seen by the other stream. */
	fault_init(&fault);
	dropped = some(fault.middle + 1);
	after = some(dropped + 1);
	show_range(fault.a, fault.middle + 1, after);
	show(fault.b, after);
	assert_first(&fault.world, VDI_RELIABLE, dropped);
	assert_string_equal(fault.world.first.stream, "b");
	assert_int_equal(fault.world.count, 1);
	show_range(fault.b, after + 1, after + 20);
	assert_int_equal(fault.world.count, 1); /* told once */
	fault_fini(&fault);
	/* By nobody: the versions and previous values of the key tell, when it is changed again. */
	fault_init(&fault);
	dropped = some(fault.middle + 1);
	show_range(fault.a, dropped + 1, dropped + 100);
	assert_true(fault.world.count > 0);
	assert_true(fault.world.first.guarantee == VDI_RELIABLE ||
		    fault.world.first.guarantee == VDI_PREVIOUS);
	fault_fini(&fault);
	/* By nobody, but a list knows. */
	fault_init(&fault);
	dropped = some(fault.middle + 1);
	vdi_verifier_progress(fault.a, dropped);
	list_at(&fault.world, dropped, fault.middle);
	assert_true(fault.world.count > 0);
	assert_int_equal(fault.world.first.guarantee, VDI_LIST);
	fault_fini(&fault);
	/* By nobody, but its writer knows. */
	fault_init(&fault);
	dropped = some(fault.middle + 1);
	assert_status(vdi_verifier_acknowledged(fault.world.verifier, dropped, vd_bytes_of("k1")), VD_OK);
	vdi_verifier_progress(fault.a, dropped + 3);
	vdi_verifier_settle(fault.world.verifier);
	assert_int_equal(fault.world.count, 0); /* b may still show it */
	vdi_verifier_progress(fault.b, dropped + 3);
	vdi_verifier_settle(fault.world.verifier);
	assert_first(&fault.world, VDI_RELIABLE, dropped);
	assert_string_equal(fault.world.first.key, "k1");
	fault_fini(&fault);
}

static void a_doubled_revision(void **state)
{
	struct fault fault;
	vd_rev	     next, later;

	(void) state;
	fault_init(&fault);
	show(fault.a, fault.middle);
	assert_first(&fault.world, VDI_ATOMIC, fault.middle); /* twice, or in two parts: one cannot tell */
	fault_fini(&fault);
	fault_init(&fault);
	next = some(fault.middle + 1);
	later = some(next + 1);
	show(fault.a, next);
	show(fault.a, later);
	show(fault.a, next);
	assert_first(&fault.world, VDI_UNIQUE, next);
	fault_fini(&fault);
}

static void reordered_revisions(void **state)
{
	struct fault fault;
	vd_rev	     next, later;

	(void) state;
	fault_init(&fault);
	next = some(fault.middle + 1);
	later = some(next + 1);
	show(fault.a, next);
	show(fault.a, later);
	show(fault.b, later);
	assert_first(&fault.world, VDI_RELIABLE, next);
	show(fault.b, next);
	assert_int_equal(fault.world.count, 2);
	fault_fini(&fault);
}

static void a_revision_in_parts(void **state)
{
	struct fault	fault;
	struct vdi_seen seen[2];
	vd_rev		two;

	(void) state;
	fault_init(&fault);
	for (two = fault.middle + 1; history[two].count != 2; two++)
		show(fault.a, two);
	(void) seen_of(two, seen);
	assert_status(vdi_verifier_revision(fault.a, &seen[0], 1), VD_OK);
	assert_status(vdi_verifier_revision(fault.a, &seen[1], 1), VD_OK);
	assert_first(&fault.world, VDI_ATOMIC, two);
	fault_fini(&fault);
}

static void an_early_bookmark(void **state)
{
	struct fault fault;
	vd_rev	     next;

	(void) state;
	/* The other stream has shown it. */
	fault_init(&fault);
	next = some(fault.middle + 1);
	show(fault.a, next);
	vdi_verifier_progress(fault.b, next);
	assert_first(&fault.world, VDI_BOOKMARKABLE, next);
	fault_fini(&fault);
	/* The other stream shows it later. */
	fault_init(&fault);
	vdi_verifier_progress(fault.b, next);
	assert_int_equal(fault.world.count, 0);
	show(fault.a, next);
	assert_first(&fault.world, VDI_BOOKMARKABLE, next);
	assert_string_equal(fault.world.first.stream, "b");
	fault_fini(&fault);
	/* It comes after all. */
	fault_init(&fault);
	vdi_verifier_progress(fault.b, next + 2);
	show(fault.b, next);
	assert_first(&fault.world, VDI_BOOKMARKABLE, next);
	fault_fini(&fault);
	/* Backwards. */
	fault_init(&fault);
	vdi_verifier_progress(fault.b, fault.middle + 1);
	vdi_verifier_progress(fault.b, fault.middle);
	assert_first(&fault.world, VDI_BOOKMARKABLE, fault.middle);
	fault_fini(&fault);
}

static void a_wrong_value_or_previous_value(void **state)
{
	struct fault	fault;
	struct vdi_seen seen[2];
	vd_rev		next;
	unsigned	count;

	(void) state;
	fault_init(&fault);
	next = some(fault.middle + 1);
	show(fault.a, next);
	count = seen_of(next, seen);
	seen[0].value_hash++;
	seen[0].is_delete = false;
	assert_status(vdi_verifier_revision(fault.b, seen, count), VD_OK);
	assert_first(&fault.world, VDI_RELIABLE, next);
	fault_fini(&fault);
	for (int what = 0; what < 2; what++) {
		fault_init(&fault);
		for (next = some(fault.middle + 1); !history[next].changes[0].has_previous;
		     next = some(next + 1))
			show(fault.a, next);
		count = seen_of(next, seen);
		if (what)
			seen[0].previous_hash++;
		else
			seen[0].previous_revision--;
		assert_status(vdi_verifier_revision(fault.a, seen, count), VD_OK);
		assert_first(&fault.world, VDI_PREVIOUS, next);
		fault_fini(&fault);
	}
}

static void wrong_names_of_changes(void **state)
{
	struct fault	fault;
	struct vdi_seen seen = { .revision = FIRST + REVISIONS, .value_hash = 1 };
	int		there = 0, absent = 0;

	(void) state;
	fault_init(&fault);
	while (history[fault.middle].state[there].revision == 0)
		there++;
	while (history[fault.middle].state[absent].revision != 0)
		absent++;
	seen.key = vd_bytes_of(key_name(there));
	seen.hint = VDI_HINT_ADDED;
	assert_status(vdi_verifier_revision(fault.a, &seen, 1), VD_OK);
	assert_first(&fault.world, VDI_RELIABLE, seen.revision);
	fault_fini(&fault);
	fault_init(&fault);
	seen.key = vd_bytes_of(key_name(absent));
	seen.hint = VDI_HINT_MODIFIED;
	assert_status(vdi_verifier_revision(fault.a, &seen, 1), VD_OK);
	assert_first(&fault.world, VDI_RELIABLE, seen.revision);
	fault_fini(&fault);
	fault_init(&fault);
	seen.is_delete = true;
	assert_status(vdi_verifier_revision(fault.a, &seen, 1), VD_OK);
	assert_first(&fault.world, VDI_RELIABLE, seen.revision);
	fault_fini(&fault);
}

static void a_resumed_stream_with_a_gap(void **state)
{
	struct fault		    fault;
	struct vdi_verifier_stream *resumed;
	vd_rev			    dropped = some(FIRST + 10);

	(void) state;
	fault_init(&fault);
	resumed = open_stream(&fault.world, "resumed", FIRST + 5);
	show_range(resumed, FIRST + 6, dropped - 1);
	show_range(resumed, dropped + 1, fault.middle);
	assert_first(&fault.world, VDI_RESUMABLE, dropped);
	assert_int_equal(fault.world.count, 1);
	vdi_verifier_stream_close(resumed);
	fault_fini(&fault);
}

static void stale_and_wrong_lists(void **state)
{
	struct fault fault;

	(void) state;
	fault_init(&fault);
	list_at(&fault.world, fault.middle - 5, fault.middle);
	assert_first(&fault.world, VDI_LIST, fault.middle - 5);
	fault_fini(&fault);
	/* The state of another revision than it says. */
	fault_init(&fault);
	vdi_verifier_list_begin(fault.world.verifier, fault.middle, fault.middle);
	for (int key = 0; key < 10; key++)
		if (history[fault.middle - 10].state[key].revision)
			assert_status(vdi_verifier_list_item(fault.world.verifier, vd_bytes_of(key_name(key)),
							     history[fault.middle - 10].state[key].revision,
							     1, history[fault.middle - 10].state[key].hash),
				      VD_OK);
	vdi_verifier_list_end(fault.world.verifier);
	assert_true(fault.world.count > 0);
	assert_int_equal(fault.world.first.guarantee, VDI_LIST);
	fault_fini(&fault);
	/* Another value. */
	fault_init(&fault);
	vdi_verifier_list_begin(fault.world.verifier, fault.middle, 0);
	for (int key = 0; key < 10; key++)
		if (history[fault.middle].state[key].revision) {
			assert_status(vdi_verifier_list_item(fault.world.verifier, vd_bytes_of(key_name(key)),
							     history[fault.middle].state[key].revision, 1, 5),
				      VD_OK);
			break;
		}
	assert_int_equal(fault.world.first.guarantee, VDI_LIST);
	fault_fini(&fault);
}

static void every_allocation_may_fail(void **state)
{
	(void) state;
	make_history(3);
	for (uint64_t nth = 1; nth < 60; nth++) {
		struct vdi_verifier_options options = { .history_max = 10 };
		struct vdi_verifier	   *verifier = NULL;
		struct vdi_verifier_stream *stream = NULL;
		struct vdi_seen		    seen[2];
		int64_t			    live = vdi_alloc_live();
		vd_status		    status;
		bool			    failed;

		(void) vdi_alloc_fail_nth(nth, 1);
		status = vdi_verifier_new(&options, &verifier);
		if (status == VD_OK)
			status = vdi_verifier_stream_open(verifier, "a", FIRST - 1, false, &stream);
		for (vd_rev revision = FIRST; status == VD_OK && revision < FIRST + 20; revision++) {
			unsigned count = seen_of(revision, seen);

			if (count)
				status = vdi_verifier_revision(stream, seen, count);
			if (status == VD_OK)
				status = vdi_verifier_acknowledged(verifier, revision, vd_bytes_of("k"));
		}
		failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		vdi_verifier_stream_close(stream);
		vdi_verifier_free(verifier);
		assert_int_equal(vdi_alloc_live(), live);
		if (!failed)
			break;
	}
}

/* ---- Revisions in parts ---- */

static struct vdi_seen part(const char *key, vd_rev revision, bool is_delete)
{
	return (struct vdi_seen) { .key = vd_bytes_of(key),
				   .revision = revision,
				   .is_delete = is_delete,
				   .value_hash = is_delete ? 0 : 7 };
}

static void show_part(struct vdi_verifier_stream *stream, const char *key, vd_rev revision, bool is_delete)
{
	struct vdi_seen seen = part(key, revision, is_delete);

	assert_status(vdi_verifier_revision(stream, &seen, 1), VD_OK);
}

static void parts_init(struct world *world, struct vdi_verifier_stream *streams[2])
{
	struct vdi_verifier_options options = { .in_parts = true, .violated = violated, .arg = world };

	memset(world, 0, sizeof *world);
	assert_status(vdi_verifier_new(&options, &world->verifier), VD_OK);
	vdi_verifier_list_begin(world->verifier, 10, 0);
	vdi_verifier_list_end(world->verifier);
	for (int i = 0; i < 2; i++)
		assert_status(vdi_verifier_stream_open(world->verifier, i ? "second" : "first", 10, false,
						       &streams[i]),
			      VD_OK);
}

static void parts_fini(struct world *world, struct vdi_verifier_stream *streams[2])
{
	for (int i = 0; i < 2; i++)
		vdi_verifier_stream_close(streams[i]);
	vdi_verifier_free(world->verifier);
}

static void a_revision_may_come_in_parts(void **state)
{
	struct vdi_verifier_stream *streams[2];
	struct world		    world;

	(void) state;
	parts_init(&world, streams);
	show_part(streams[0], "a", 11, false);
	show_part(streams[1], "a", 11, false);
	show_part(streams[1], "b", 11, false);
	/* A list at a revision of which a stream has shown a part only is judged when it has shown all. */
	vdi_verifier_list_begin(world.verifier, 11, 10);
	assert_status(vdi_verifier_list_item(world.verifier, vd_bytes_of("a"), 11, 0, 7), VD_OK);
	assert_status(vdi_verifier_list_item(world.verifier, vd_bytes_of("b"), 11, 0, 7), VD_OK);
	vdi_verifier_list_end(world.verifier);
	show_part(streams[0], "b", 11, false);
	show_part(streams[0], "a", 12, true);
	show_part(streams[0], "b", 12, true);
	vdi_verifier_progress(streams[0], 15);
	show_part(streams[1], "a", 12, true);
	show_part(streams[1], "b", 12, true);
	vdi_verifier_progress(streams[1], 15);
	assert_false(vdi_verifier_list_is_pending(world.verifier));
	assert_int_equal(world.count, 0);
	parts_fini(&world, streams);
}

static void faults_in_parts_are_found(void **state)
{
	struct vdi_verifier_stream *streams[2];
	struct world		    world;

	(void) state;
	parts_init(&world, streams); /* one part twice */
	show_part(streams[0], "a", 11, false);
	show_part(streams[0], "a", 11, false);
	assert_int_equal(world.count, 1);
	parts_fini(&world, streams);
	parts_init(&world, streams); /* one left out */
	show_part(streams[0], "a", 11, false);
	show_part(streams[0], "b", 11, false);
	show_part(streams[1], "a", 11, false);
	vdi_verifier_progress(streams[1], 11);
	assert_int_equal(world.count, 1);
	assert_int_equal(world.first.guarantee, VDI_BOOKMARKABLE);
	parts_fini(&world, streams);
	parts_init(&world, streams); /* another one */
	show_part(streams[0], "a", 11, false);
	show_part(streams[0], "b", 11, false);
	show_part(streams[1], "a", 11, false);
	show_part(streams[1], "c", 11, false);
	assert_int_equal(world.count, 1);
	assert_int_equal(world.first.guarantee, VDI_RELIABLE);
	parts_fini(&world, streams);
	parts_init(&world, streams); /* one too late */
	show_part(streams[0], "a", 11, false);
	show_part(streams[1], "a", 11, false);
	vdi_verifier_progress(streams[1], 12);
	show_part(streams[0], "b", 11, false);
	assert_int_equal(world.count, 1);
	assert_int_equal(world.first.guarantee, VDI_BOOKMARKABLE);
	parts_fini(&world, streams);
}

/* As many objects as there are, but not the same ones: one of them twice in the place of another. */
static void a_list_of_the_right_length_is_judged_by_its_objects(void **state)
{
	(void) state;
	for (int is_right = 0; is_right < 2; is_right++) {
		struct vdi_verifier_stream *streams[2];
		struct world		    world;

		parts_init(&world, streams);
		for (int i = 0; i < 2; i++) {
			show_part(streams[i], "a", 11, false);
			show_part(streams[i], "b", 12, false);
			vdi_verifier_progress(streams[i], 13);
		}
		vdi_verifier_list_begin(world.verifier, 13, 12);
		assert_status(vdi_verifier_list_item(world.verifier, vd_bytes_of("a"), 11, 0, 7), VD_OK);
		assert_status(vdi_verifier_list_item(world.verifier, vd_bytes_of(is_right ? "b" : "a"),
						     is_right ? 12 : 11, 0, 7),
			      VD_OK);
		vdi_verifier_list_end(world.verifier);
		assert_false(vdi_verifier_list_is_pending(world.verifier));
		assert_int_equal(world.count, is_right ? 0 : 1);
		assert_true(is_right || world.first.guarantee == VDI_LIST);
		parts_fini(&world, streams);
	}
}

/* A stream that leaves out and makes up: each fault is told once, and from there on it is judged like any
 * other. */
static void a_fault_is_told_once(void **state)
{
	struct vdi_verifier_stream *streams[2];
	struct world		    world;

	(void) state;
	parts_init(&world, streams);
	show_part(streams[0], "a", 11, false);
	show_part(streams[0], "b", 13, false);
	show_part(streams[0], "c", 15, false);
	show_part(streams[0], "d", 16, false);
	show_part(streams[1], "x", 14, false);
	assert_int_equal(world.count, 2); /* 11 and 13 are missing; nobody else was shown 14 */
	show_part(streams[1], "c", 15, false);
	show_part(streams[1], "d", 16, false);
	vdi_verifier_progress(streams[1], 16);
	assert_int_equal(world.count, 2);
	parts_fini(&world, streams);
}

/* What a record says of itself contradicts what was shown before, without any hint. */
static void numbers_of_a_record_that_contradict_what_was_shown(void **state)
{
	for (int what = 0; what < 6; what++) {
		struct fault	fault;
		struct vdi_seen seen = { .revision = FIRST + REVISIONS, .value_hash = 1 };
		int		there = 0, absent = 0;
		vd_rev		created;
		int64_t		version;

		(void) state;
		fault_init(&fault);
		while (history[fault.middle].state[there].revision == 0)
			there++;
		while (history[fault.middle].state[absent].revision != 0)
			absent++;
		show_range(fault.a, fault.middle + 1, FIRST + REVISIONS - 1);
		there = absent = -1;
		for (int key = 0; key < 10; key++)
			*(history[FIRST + REVISIONS - 1].state[key].revision ? &there : &absent) = key;
		assert_true(there >= 0 && absent >= 0);
		created = history[FIRST + REVISIONS - 1].state[there].create_rev;
		version = history[FIRST + REVISIONS - 1].state[there].version;
		assert_int_equal(fault.world.count, 0);
		seen.key = vd_bytes_of(key_name(what == 1 || what == 2 ? absent : there));
		seen.create_rev = what == 0 || what == 1 ? seen.revision :
				  what == 2		 ? seen.revision - 1 :
							   created;
		seen.version = what == 0	      ? 1 :
			       what == 1 || what == 2 ? 2 :
			       what == 3	      ? version + 2 :
			       what == 4	      ? version :
							version + 1;
		assert_status(vdi_verifier_revision(fault.a, &seen, 1), VD_OK);
		if (what == 5) {
			assert_int_equal(fault.world.count, 0);
		} else {
			assert_first(&fault.world, VDI_RELIABLE, seen.revision);
			assert_int_equal(fault.world.count, 1);
		}
		fault_fini(&fault);
	}
}

/* A stream stands where it was opened: what lies before that does not belong to it. */
static void a_stream_that_shows_what_lies_before_it(void **state)
{
	struct fault		    fault;
	struct vdi_verifier_stream *late;
	vd_rev			    before = some(FIRST + 3);

	(void) state;
	fault_init(&fault);
	late = open_stream(&fault.world, "late", before + 5);
	assert_int_equal(vdi_verifier_stream_position(late), before + 5);
	show(late, before);
	assert_true(fault.world.count > 0);
	vdi_verifier_stream_close(late);
	fault_fini(&fault);
}

/* Only what comes behind the bookmark is news; a late bookmark is none, an earlier one than the last is
 * wrong. */
static void bookmarks_move_a_stream(void **state)
{
	struct fault		    fault;
	struct vdi_verifier_stream *stream;
	vd_rev			    at;

	(void) state;
	fault_init(&fault);
	stream = open_stream(&fault.world, "marked", FIRST + 1);
	at = some(FIRST + 2);
	show(stream, at);
	vdi_verifier_progress(stream, at);
	assert_int_equal(vdi_verifier_stream_position(stream), at);
	assert_int_equal(fault.world.count, 0);
	vdi_verifier_progress(stream, at - 1);
	assert_first(&fault.world, VDI_BOOKMARKABLE, at - 1);
	assert_int_equal(vdi_verifier_stream_position(stream), at);
	vdi_verifier_stream_close(stream);
	fault_fini(&fault);
}

/* A list at a revision whose last part may be to come waits for the bookmark there, and is judged then. */
static void a_wrong_list_is_found_at_the_bookmark_of_its_revision(void **state)
{
	struct world		    world;
	struct vdi_verifier_stream *streams[2];

	(void) state;
	parts_init(&world, streams);
	show_part(streams[0], "x", FIRST + 1, false);
	show_part(streams[1], "x", FIRST + 1, false);
	vdi_verifier_list_begin(world.verifier, FIRST + 1, FIRST + 1);
	vdi_verifier_list_end(world.verifier);
	assert_true(vdi_verifier_list_is_pending(world.verifier));
	assert_int_equal(world.count, 0);
	vdi_verifier_progress(streams[0], FIRST + 1);
	assert_false(vdi_verifier_list_is_pending(world.verifier));
	assert_first(&world, VDI_LIST, FIRST + 1);
	parts_fini(&world, streams);
}

/* What is known before any stream has shown anything: the first list. */
static void the_first_list_is_where_everything_begins(void **state)
{
	struct vdi_verifier_totals totals;

	for (int wrong = 0; wrong < 3; wrong++) {
		struct world world;

		struct vdi_verifier_stream *stream;

		make_history(3);
		world_init(&world, 0);
		stream = open_stream(&world, "a", FIRST);
		vdi_verifier_totals_get(world.verifier, &totals);
		assert_int_equal(totals.newest, FIRST);
		if (wrong == 0)
			list_at(&world, FIRST, FIRST);
		else
			vdi_verifier_list_begin(world.verifier, FIRST, FIRST);
		/* A key that no list and no stream has shown; or no key at all. */
		if (wrong == 2)
			assert_status(vdi_verifier_list_item(world.verifier, vd_bytes_of("unknown"),
							     FIRST - 1, 1, 1),
				      VD_OK);
		if (wrong)
			vdi_verifier_list_end(world.verifier);
		vdi_verifier_progress(stream, FIRST);
		vdi_verifier_settle(world.verifier);
		assert_false(vdi_verifier_list_is_pending(world.verifier));
		assert_int_equal(world.count > 0, wrong > 0);
		if (wrong)
			assert_first(&world, VDI_LIST, FIRST);
		vdi_verifier_stream_close(stream);
		vdi_verifier_free(world.verifier);
	}
}

/* A bookmark that lies behind what the stream has shown since is not to blame. */
static void an_old_revision_behind_a_bookmark(void **state)
{
	for (int later = 0; later < 2; later++) {
		struct fault fault;
		vd_rev	     next;

		fault_init(&fault);
		vdi_verifier_progress(fault.a, fault.middle);
		next = some(fault.middle + 1);
		if (later)
			show(fault.a, next);
		else
			vdi_verifier_progress(fault.a, next - 1 > fault.middle ? next - 1 : fault.middle);
		show(fault.a, some(FIRST + 1));
		assert_first(&fault.world,
			     later		     ? VDI_UNIQUE :
			     next - 1 > fault.middle ? VDI_BOOKMARKABLE :
						       VDI_UNIQUE,
			     some(FIRST + 1));
		fault_fini(&fault);
	}
}

/* Of the parts of a revision, the last one counts: the same again is none. */
static void the_second_part_twice(void **state)
{
	struct vdi_verifier_stream *streams[2];
	struct world		    world;

	parts_init(&world, streams);
	show_part(streams[0], "a", 11, false);
	show_part(streams[0], "b", 11, false);
	assert_int_equal(world.count, 0);
	show_part(streams[0], "b", 11, false);
	assert_int_equal(world.count, 1);
	assert_int_equal(world.first.guarantee, VDI_ATOMIC);
	parts_fini(&world, streams);
}

/* Faults of the connection name their revision, if they have one. */
static void faults_of_a_connection_are_told(void **state)
{
	static const struct {
		struct vd_watch_fault fault;
		enum vdi_guarantee    guarantee;
		const char	     *text;
	} rows[] = {
		{ { VD_FAULT_REPEATED, 7, { "k", 1 }, "came twice" }, VDI_UNIQUE, "revision 7: came twice" },
		{ { VD_FAULT_ORDER, 1, { "", 0 }, "came late" }, VDI_ORDERED, "revision 1: came late" },
		{ { VD_FAULT_PREVIOUS, 9, { "k", 1 }, "lacks it" }, VDI_PREVIOUS, "revision 9: lacks it" },
		{ { VD_FAULT_PROGRESS, 0, { "", 0 }, "went back" }, VDI_BOOKMARKABLE, "went back" },
		{ { VD_FAULT_PROTOCOL, 0, { "", 0 }, "is broken" }, VDI_PROTOCOL, "is broken" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct world world;

		world_init(&world, 0);
		vdi_verifier_fault(world.verifier, "a stream", &rows[i].fault);
		assert_int_equal(world.count, 1);
		assert_first(&world, rows[i].guarantee, rows[i].fault.revision);
		assert_string_equal(world.first.text, rows[i].text);
		assert_string_equal(world.first.stream, "a stream");
		assert_int_equal(strlen(world.first.key), rows[i].fault.key.size);
		vdi_verifier_free(world.verifier);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_list_is_where_everything_begins),
		cmocka_unit_test(an_old_revision_behind_a_bookmark),
		cmocka_unit_test(the_second_part_twice),
		cmocka_unit_test(faults_of_a_connection_are_told),
		cmocka_unit_test(right_streams_lists_and_writers_are_fine),
		cmocka_unit_test(a_dropped_revision),
		cmocka_unit_test(a_doubled_revision),
		cmocka_unit_test(reordered_revisions),
		cmocka_unit_test(a_revision_in_parts),
		cmocka_unit_test(an_early_bookmark),
		cmocka_unit_test(a_wrong_value_or_previous_value),
		cmocka_unit_test(wrong_names_of_changes),
		cmocka_unit_test(a_resumed_stream_with_a_gap),
		cmocka_unit_test(stale_and_wrong_lists),
		cmocka_unit_test(every_allocation_may_fail),
		cmocka_unit_test(a_revision_may_come_in_parts),
		cmocka_unit_test(faults_in_parts_are_found),
		cmocka_unit_test(a_fault_is_told_once),
		cmocka_unit_test(a_list_of_the_right_length_is_judged_by_its_objects),
		cmocka_unit_test(numbers_of_a_record_that_contradict_what_was_shown),
		cmocka_unit_test(a_stream_that_shows_what_lies_before_it),
		cmocka_unit_test(bookmarks_move_a_stream),
		cmocka_unit_test(a_wrong_list_is_found_at_the_bookmark_of_its_revision),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
