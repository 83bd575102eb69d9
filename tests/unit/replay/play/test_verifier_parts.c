/* The verifier and revisions that come in parts, bookmarks, and lists that say where a stream begins. */
#include <stdio.h>

#include "vdtest.h"
#include "verifier.h"
#include "verifier_world.h"

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

static void parts_init(struct verifier_world *world, struct vdi_verifier_stream *streams[2])
{
	struct vdi_verifier_options options = { .in_parts = true,
						.violated = verifier_violated,
						.arg = world };

	memset(world, 0, sizeof *world);
	assert_status(vdi_verifier_new(&options, &world->verifier), VD_OK);
	vdi_verifier_list_begin(world->verifier, 10, 0);
	vdi_verifier_list_end(world->verifier);
	for (int i = 0; i < 2; i++)
		assert_status(vdi_verifier_stream_open(world->verifier, i ? "second" : "first", 10, false,
						       &streams[i]),
			      VD_OK);
}

static void parts_fini(struct verifier_world *world, struct vdi_verifier_stream *streams[2])
{
	for (int i = 0; i < 2; i++)
		vdi_verifier_stream_close(streams[i]);
	vdi_verifier_free(world->verifier);
}

static void a_revision_may_come_in_parts(void **state)
{
	struct vdi_verifier_stream *streams[2];
	struct verifier_world	    world;

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
	struct verifier_world	    world;

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
		struct verifier_world	    world;

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
	struct verifier_world	    world;

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
		struct verifier_fault fault;
		struct vdi_seen seen = { .revision = VERIFIER_FIRST + VERIFIER_REVISIONS, .value_hash = 1 };
		int		there = 0, absent = 0;
		vd_rev		created;
		int64_t		version;

		(void) state;
		verifier_fault_init(&fault);
		while (verifier_history[fault.middle].state[there].revision == 0)
			there++;
		while (verifier_history[fault.middle].state[absent].revision != 0)
			absent++;
		verifier_show_range(fault.a, fault.middle + 1, VERIFIER_FIRST + VERIFIER_REVISIONS - 1);
		there = absent = -1;
		for (int key = 0; key < 10; key++)
			*(verifier_history[VERIFIER_FIRST + VERIFIER_REVISIONS - 1].state[key].revision ?
				  &there :
				  &absent) = key;
		assert_true(there >= 0 && absent >= 0);
		created = verifier_history[VERIFIER_FIRST + VERIFIER_REVISIONS - 1].state[there].create_rev;
		version = verifier_history[VERIFIER_FIRST + VERIFIER_REVISIONS - 1].state[there].version;
		assert_int_equal(fault.world.count, 0);
		seen.key = vd_bytes_of(verifier_key_name(what == 1 || what == 2 ? absent : there));
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
			verifier_assert_first(&fault.world, VDI_RELIABLE, seen.revision);
			assert_int_equal(fault.world.count, 1);
		}
		verifier_fault_fini(&fault);
	}
}

/* A stream stands where it was opened: what lies before that does not belong to it. */
static void a_stream_that_shows_what_lies_before_it(void **state)
{
	struct verifier_fault	    fault;
	struct vdi_verifier_stream *late;
	vd_rev			    before = verifier_some(VERIFIER_FIRST + 3);

	(void) state;
	verifier_fault_init(&fault);
	late = verifier_open_stream(&fault.world, "late", before + 5);
	assert_int_equal(vdi_verifier_stream_position(late), before + 5);
	verifier_show(late, before);
	assert_true(fault.world.count > 0);
	vdi_verifier_stream_close(late);
	verifier_fault_fini(&fault);
}

/* Only what comes behind the bookmark is news; a late bookmark is none, an earlier one than the last is
 * wrong. */
static void bookmarks_move_a_stream(void **state)
{
	struct verifier_fault	    fault;
	struct vdi_verifier_stream *stream;
	vd_rev			    at;

	(void) state;
	verifier_fault_init(&fault);
	stream = verifier_open_stream(&fault.world, "marked", VERIFIER_FIRST + 1);
	at = verifier_some(VERIFIER_FIRST + 2);
	verifier_show(stream, at);
	vdi_verifier_progress(stream, at);
	assert_int_equal(vdi_verifier_stream_position(stream), at);
	assert_int_equal(fault.world.count, 0);
	vdi_verifier_progress(stream, at - 1);
	verifier_assert_first(&fault.world, VDI_BOOKMARKABLE, at - 1);
	assert_int_equal(vdi_verifier_stream_position(stream), at);
	vdi_verifier_stream_close(stream);
	verifier_fault_fini(&fault);
}

/* A list at a revision whose last part may be to come waits for the bookmark there, and is judged then. */
static void a_wrong_list_is_found_at_the_bookmark_of_its_revision(void **state)
{
	struct verifier_world	    world;
	struct vdi_verifier_stream *streams[2];

	(void) state;
	parts_init(&world, streams);
	show_part(streams[0], "x", VERIFIER_FIRST + 1, false);
	show_part(streams[1], "x", VERIFIER_FIRST + 1, false);
	vdi_verifier_list_begin(world.verifier, VERIFIER_FIRST + 1, VERIFIER_FIRST + 1);
	vdi_verifier_list_end(world.verifier);
	assert_true(vdi_verifier_list_is_pending(world.verifier));
	assert_int_equal(world.count, 0);
	vdi_verifier_progress(streams[0], VERIFIER_FIRST + 1);
	assert_false(vdi_verifier_list_is_pending(world.verifier));
	verifier_assert_first(&world, VDI_LIST, VERIFIER_FIRST + 1);
	parts_fini(&world, streams);
}

/* What is known before any stream has shown anything: the first list. */
static void the_first_list_is_where_everything_begins(void **state)
{
	struct vdi_verifier_totals totals;

	for (int wrong = 0; wrong < 3; wrong++) {
		struct verifier_world world;

		struct vdi_verifier_stream *stream;

		verifier_make_history(3);
		verifier_world_init(&world, 0);
		stream = verifier_open_stream(&world, "a", VERIFIER_FIRST);
		vdi_verifier_totals_get(world.verifier, &totals);
		assert_int_equal(totals.newest, VERIFIER_FIRST);
		if (wrong == 0)
			verifier_list_at(&world, VERIFIER_FIRST, VERIFIER_FIRST);
		else
			vdi_verifier_list_begin(world.verifier, VERIFIER_FIRST, VERIFIER_FIRST);
		/* A key that no list and no stream has shown; or no key at all. */
		if (wrong == 2)
			assert_status(vdi_verifier_list_item(world.verifier, vd_bytes_of("unknown"),
							     VERIFIER_FIRST - 1, 1, 1),
				      VD_OK);
		if (wrong)
			vdi_verifier_list_end(world.verifier);
		vdi_verifier_progress(stream, VERIFIER_FIRST);
		vdi_verifier_settle(world.verifier);
		assert_false(vdi_verifier_list_is_pending(world.verifier));
		assert_int_equal(world.count > 0, wrong > 0);
		if (wrong)
			verifier_assert_first(&world, VDI_LIST, VERIFIER_FIRST);
		vdi_verifier_stream_close(stream);
		vdi_verifier_free(world.verifier);
	}
}

/* A bookmark that lies behind what the stream has shown since is not to blame. */
static void an_old_revision_behind_a_bookmark(void **state)
{
	for (int later = 0; later < 2; later++) {
		struct verifier_fault fault;
		vd_rev		      next;

		verifier_fault_init(&fault);
		vdi_verifier_progress(fault.a, fault.middle);
		next = verifier_some(fault.middle + 1);
		if (later)
			verifier_show(fault.a, next);
		else
			vdi_verifier_progress(fault.a, next - 1 > fault.middle ? next - 1 : fault.middle);
		verifier_show(fault.a, verifier_some(VERIFIER_FIRST + 1));
		verifier_assert_first(&fault.world,
				      later		      ? VDI_UNIQUE :
				      next - 1 > fault.middle ? VDI_BOOKMARKABLE :
								VDI_UNIQUE,
				      verifier_some(VERIFIER_FIRST + 1));
		verifier_fault_fini(&fault);
	}
}

/* Of the parts of a revision, the last one counts: the same again is none. */
static void the_second_part_twice(void **state)
{
	struct vdi_verifier_stream *streams[2];
	struct verifier_world	    world;

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
		struct verifier_world world;

		verifier_world_init(&world, 0);
		vdi_verifier_fault(world.verifier, "a stream", &rows[i].fault);
		assert_int_equal(world.count, 1);
		verifier_assert_first(&world, rows[i].guarantee, rows[i].fault.revision);
		assert_string_equal(world.first.text, rows[i].text);
		assert_string_equal(world.first.stream, "a stream");
		assert_int_equal(strlen(world.first.key), rows[i].fault.key.size);
		vdi_verifier_free(world.verifier);
	}
}

/* Without the revision of its creation, the version of a key says nothing. */
static void a_version_alone_is_not_judged(void **state)
{
	struct vdi_verifier_stream *streams[2];
	struct verifier_world	    world;
	struct vdi_seen		    seen = part("a", 11, false);

	parts_init(&world, streams);
	seen.create_rev = 0;
	seen.version = 5;
	assert_status(vdi_verifier_revision(streams[0], &seen, 1), VD_OK);
	assert_int_equal(world.count, 0);
	parts_fini(&world, streams);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_version_alone_is_not_judged),
		cmocka_unit_test(the_first_list_is_where_everything_begins),
		cmocka_unit_test(an_old_revision_behind_a_bookmark),
		cmocka_unit_test(the_second_part_twice),
		cmocka_unit_test(faults_of_a_connection_are_told),
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
