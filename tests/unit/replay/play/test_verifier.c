/* Unit tests of replay/play/verifier.c: it is silent about what is right, and names the first thing that is
 * wrong. */
#include <stdio.h>

#include "rand.h"
#include "vdtest.h"
#include "verifier.h"
#include "verifier_world.h"

/* ---- Silent about what is right ---- */

static void right_streams_lists_and_writers_are_fine(void **state)
{
	(void) state;
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct verifier_world	    world;
		struct vdi_verifier_stream *streams[3];
		struct vdi_verifier_totals  totals;
		vd_rev		positions[3] = { VERIFIER_FIRST, VERIFIER_FIRST, VERIFIER_FIRST }, last;
		struct vdi_rand rand;

		verifier_make_history(seed);
		vdi_rand_init(&rand, seed);
		verifier_world_init(&world, seed % 2 ? 0 : 50);
		for (int i = 0; i < 3; i++)
			streams[i] = verifier_open_stream(&world, "right", VERIFIER_FIRST);
		while (positions[0] + positions[1] + positions[2] <
		       3 * (VERIFIER_FIRST + VERIFIER_REVISIONS - 1)) {
			int    i = (int) vdi_rand_below(&rand, 3);
			vd_rev to = positions[i] + 1 + (vd_rev) vdi_rand_below(&rand, 10);

			to = VDI_MIN(to, VERIFIER_FIRST + VERIFIER_REVISIONS - 1);
			verifier_show_range(streams[i], positions[i] + 1, to);
			positions[i] = to;
			if (vdi_rand_once_in(&rand, 3))
				vdi_verifier_progress(streams[i], to);
			if (vdi_rand_once_in(&rand, 8) && !vdi_verifier_list_is_pending(world.verifier)) {
				vd_rev now = VDI_MAX(VDI_MAX(positions[0], positions[1]), positions[2]);

				vd_rev at = now + (vd_rev) vdi_rand_below(&rand, 5);

				verifier_list_at(&world, VDI_MIN(at, VERIFIER_FIRST + VERIFIER_REVISIONS - 1),
						 now);
			}
			if (vdi_rand_once_in(&rand,
					     8)) { /* cut, and resumed a little earlier or right there */
				vdi_verifier_stream_close(streams[i]);
				positions[i] -= (vd_rev) vdi_rand_below(&rand, 20);
				positions[i] = VDI_MAX(positions[i], VERIFIER_FIRST - 5);
				streams[i] = verifier_open_stream(&world, "resumed", positions[i]);
			}
			if (vdi_rand_once_in(&rand, 4) && verifier_history[to].count)
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
		for (last = VERIFIER_FIRST + VERIFIER_REVISIONS - 1; verifier_history[last].count == 0;)
			last--;
		assert_int_equal(totals.newest, last);
		for (int i = 0; i < 3; i++)
			vdi_verifier_stream_close(streams[i]);
		vdi_verifier_free(world.verifier);
	}
}

/* ---- And loud about what is wrong ---- */

static void a_dropped_revision(void **state)
{
	struct verifier_fault fault;
	vd_rev		      dropped, after;

	(void) state;
	/* Seen by the other stream. */
	verifier_fault_init(&fault);
	dropped = verifier_some(fault.middle + 1);
	after = verifier_some(dropped + 1);
	verifier_show_range(fault.a, fault.middle + 1, after);
	verifier_show(fault.b, after);
	verifier_assert_first(&fault.world, VDI_RELIABLE, dropped);
	assert_string_equal(fault.world.first.stream, "b");
	assert_int_equal(fault.world.count, 1);
	verifier_show_range(fault.b, after + 1, after + 20);
	assert_int_equal(fault.world.count, 1); /* told once */
	verifier_fault_fini(&fault);
	/* By nobody: the versions and previous values of the key tell, when it is changed again. */
	verifier_fault_init(&fault);
	dropped = verifier_some(fault.middle + 1);
	verifier_show_range(fault.a, dropped + 1, dropped + 100);
	assert_true(fault.world.count > 0);
	assert_true(fault.world.first.guarantee == VDI_RELIABLE ||
		    fault.world.first.guarantee == VDI_PREVIOUS);
	verifier_fault_fini(&fault);
	/* By nobody, but a list knows. */
	verifier_fault_init(&fault);
	dropped = verifier_some(fault.middle + 1);
	vdi_verifier_progress(fault.a, dropped);
	verifier_list_at(&fault.world, dropped, fault.middle);
	assert_true(fault.world.count > 0);
	assert_int_equal(fault.world.first.guarantee, VDI_LIST);
	verifier_fault_fini(&fault);
	/* By nobody, but its writer knows. */
	verifier_fault_init(&fault);
	dropped = verifier_some(fault.middle + 1);
	assert_status(vdi_verifier_acknowledged(fault.world.verifier, dropped, vd_bytes_of("k1")), VD_OK);
	vdi_verifier_progress(fault.a, dropped + 3);
	vdi_verifier_settle(fault.world.verifier);
	assert_int_equal(fault.world.count, 0); /* b may still show it */
	vdi_verifier_progress(fault.b, dropped + 3);
	vdi_verifier_settle(fault.world.verifier);
	verifier_assert_first(&fault.world, VDI_RELIABLE, dropped);
	assert_string_equal(fault.world.first.key, "k1");
	verifier_fault_fini(&fault);
}

static void a_doubled_revision(void **state)
{
	struct verifier_fault fault;
	vd_rev		      next, later;

	(void) state;
	verifier_fault_init(&fault);
	verifier_show(fault.a, fault.middle);
	verifier_assert_first(&fault.world, VDI_ATOMIC,
			      fault.middle); /* twice, or in two parts: one cannot tell */
	verifier_fault_fini(&fault);
	verifier_fault_init(&fault);
	next = verifier_some(fault.middle + 1);
	later = verifier_some(next + 1);
	verifier_show(fault.a, next);
	verifier_show(fault.a, later);
	verifier_show(fault.a, next);
	verifier_assert_first(&fault.world, VDI_UNIQUE, next);
	verifier_fault_fini(&fault);
}

static void reordered_revisions(void **state)
{
	struct verifier_fault fault;
	vd_rev		      next, later;

	(void) state;
	verifier_fault_init(&fault);
	next = verifier_some(fault.middle + 1);
	later = verifier_some(next + 1);
	verifier_show(fault.a, next);
	verifier_show(fault.a, later);
	verifier_show(fault.b, later);
	verifier_assert_first(&fault.world, VDI_RELIABLE, next);
	verifier_show(fault.b, next);
	assert_int_equal(fault.world.count, 2);
	verifier_fault_fini(&fault);
}

static void a_revision_in_parts(void **state)
{
	struct verifier_fault fault;
	struct vdi_seen	      seen[2];
	vd_rev		      two;

	(void) state;
	verifier_fault_init(&fault);
	for (two = fault.middle + 1; verifier_history[two].count != 2; two++)
		verifier_show(fault.a, two);
	(void) verifier_seen_of(two, seen);
	assert_status(vdi_verifier_revision(fault.a, &seen[0], 1), VD_OK);
	assert_status(vdi_verifier_revision(fault.a, &seen[1], 1), VD_OK);
	verifier_assert_first(&fault.world, VDI_ATOMIC, two);
	verifier_fault_fini(&fault);
}

static void an_early_bookmark(void **state)
{
	struct verifier_fault fault;
	vd_rev		      next;

	(void) state;
	/* The other stream has shown it. */
	verifier_fault_init(&fault);
	next = verifier_some(fault.middle + 1);
	verifier_show(fault.a, next);
	vdi_verifier_progress(fault.b, next);
	verifier_assert_first(&fault.world, VDI_BOOKMARKABLE, next);
	verifier_fault_fini(&fault);
	/* The other stream shows it later. */
	verifier_fault_init(&fault);
	vdi_verifier_progress(fault.b, next);
	assert_int_equal(fault.world.count, 0);
	verifier_show(fault.a, next);
	verifier_assert_first(&fault.world, VDI_BOOKMARKABLE, next);
	assert_string_equal(fault.world.first.stream, "b");
	verifier_fault_fini(&fault);
	/* It comes after all. */
	verifier_fault_init(&fault);
	vdi_verifier_progress(fault.b, next + 2);
	verifier_show(fault.b, next);
	verifier_assert_first(&fault.world, VDI_BOOKMARKABLE, next);
	verifier_fault_fini(&fault);
	/* Backwards. */
	verifier_fault_init(&fault);
	vdi_verifier_progress(fault.b, fault.middle + 1);
	vdi_verifier_progress(fault.b, fault.middle);
	verifier_assert_first(&fault.world, VDI_BOOKMARKABLE, fault.middle);
	verifier_fault_fini(&fault);
}

static void a_wrong_value_or_previous_value(void **state)
{
	struct verifier_fault fault;
	struct vdi_seen	      seen[2];
	vd_rev		      next;
	unsigned	      count;

	(void) state;
	verifier_fault_init(&fault);
	next = verifier_some(fault.middle + 1);
	verifier_show(fault.a, next);
	count = verifier_seen_of(next, seen);
	seen[0].value_hash++;
	seen[0].is_delete = false;
	assert_status(vdi_verifier_revision(fault.b, seen, count), VD_OK);
	verifier_assert_first(&fault.world, VDI_RELIABLE, next);
	verifier_fault_fini(&fault);
	for (int what = 0; what < 2; what++) {
		verifier_fault_init(&fault);
		for (next = verifier_some(fault.middle + 1); !verifier_history[next].changes[0].has_previous;
		     next = verifier_some(next + 1))
			verifier_show(fault.a, next);
		count = verifier_seen_of(next, seen);
		if (what)
			seen[0].previous_hash++;
		else
			seen[0].previous_revision--;
		assert_status(vdi_verifier_revision(fault.a, seen, count), VD_OK);
		verifier_assert_first(&fault.world, VDI_PREVIOUS, next);
		verifier_fault_fini(&fault);
	}
}

static void wrong_names_of_changes(void **state)
{
	struct verifier_fault fault;
	struct vdi_seen	      seen = { .revision = VERIFIER_FIRST + VERIFIER_REVISIONS, .value_hash = 1 };
	int		      there = 0, absent = 0;

	(void) state;
	verifier_fault_init(&fault);
	while (verifier_history[fault.middle].state[there].revision == 0)
		there++;
	while (verifier_history[fault.middle].state[absent].revision != 0)
		absent++;
	seen.key = vd_bytes_of(verifier_key_name(there));
	seen.hint = VDI_HINT_ADDED;
	assert_status(vdi_verifier_revision(fault.a, &seen, 1), VD_OK);
	verifier_assert_first(&fault.world, VDI_RELIABLE, seen.revision);
	verifier_fault_fini(&fault);
	verifier_fault_init(&fault);
	seen.key = vd_bytes_of(verifier_key_name(absent));
	seen.hint = VDI_HINT_MODIFIED;
	assert_status(vdi_verifier_revision(fault.a, &seen, 1), VD_OK);
	verifier_assert_first(&fault.world, VDI_RELIABLE, seen.revision);
	verifier_fault_fini(&fault);
	verifier_fault_init(&fault);
	seen.is_delete = true;
	assert_status(vdi_verifier_revision(fault.a, &seen, 1), VD_OK);
	verifier_assert_first(&fault.world, VDI_RELIABLE, seen.revision);
	verifier_fault_fini(&fault);
}

static void a_resumed_stream_with_a_gap(void **state)
{
	struct verifier_fault	    fault;
	struct vdi_verifier_stream *resumed;
	vd_rev			    dropped = verifier_some(VERIFIER_FIRST + 10);

	(void) state;
	verifier_fault_init(&fault);
	resumed = verifier_open_stream(&fault.world, "resumed", VERIFIER_FIRST + 5);
	verifier_show_range(resumed, VERIFIER_FIRST + 6, dropped - 1);
	verifier_show_range(resumed, dropped + 1, fault.middle);
	verifier_assert_first(&fault.world, VDI_RESUMABLE, dropped);
	assert_int_equal(fault.world.count, 1);
	vdi_verifier_stream_close(resumed);
	verifier_fault_fini(&fault);
}

static void stale_and_wrong_lists(void **state)
{
	struct verifier_fault fault;

	(void) state;
	verifier_fault_init(&fault);
	verifier_list_at(&fault.world, fault.middle - 5, fault.middle);
	verifier_assert_first(&fault.world, VDI_LIST, fault.middle - 5);
	verifier_fault_fini(&fault);
	/* The state of another revision than it says. */
	verifier_fault_init(&fault);
	vdi_verifier_list_begin(fault.world.verifier, fault.middle, fault.middle);
	for (int key = 0; key < 10; key++)
		if (verifier_history[fault.middle - 10].state[key].revision)
			assert_status(vdi_verifier_list_item(
					      fault.world.verifier, vd_bytes_of(verifier_key_name(key)),
					      verifier_history[fault.middle - 10].state[key].revision, 1,
					      verifier_history[fault.middle - 10].state[key].hash),
				      VD_OK);
	vdi_verifier_list_end(fault.world.verifier);
	assert_true(fault.world.count > 0);
	assert_int_equal(fault.world.first.guarantee, VDI_LIST);
	verifier_fault_fini(&fault);
	/* Another value. */
	verifier_fault_init(&fault);
	vdi_verifier_list_begin(fault.world.verifier, fault.middle, 0);
	for (int key = 0; key < 10; key++)
		if (verifier_history[fault.middle].state[key].revision) {
			assert_status(vdi_verifier_list_item(
					      fault.world.verifier, vd_bytes_of(verifier_key_name(key)),
					      verifier_history[fault.middle].state[key].revision, 1, 5),
				      VD_OK);
			break;
		}
	assert_int_equal(fault.world.first.guarantee, VDI_LIST);
	verifier_fault_fini(&fault);
}

/* An item is compared as soon as it is listed: it must not be newer than what the streams delivered of its
 * key, as far as they are. */
static void an_item_that_the_streams_have_not(void **state)
{
	struct verifier_fault fault;
	int		      key = 0;
	vd_rev		      delivered, newer;

	(void) state;
	verifier_fault_init(&fault);
	while (verifier_history[fault.middle - 1].state[key].revision == 0)
		key++;
	delivered = verifier_history[fault.middle - 1].state[key].revision;
	newer = delivered + 1;
	assert_true(newer < fault.middle);
	vdi_verifier_list_begin(fault.world.verifier, fault.middle, 0);
	assert_status(vdi_verifier_list_item(fault.world.verifier, vd_bytes_of(verifier_key_name(key)), newer,
					     1, 5),
		      VD_OK);
	assert_int_equal(fault.world.count, 1);
	assert_int_equal(fault.world.first.guarantee, VDI_LIST);
	assert_int_equal(fault.world.first.revision, newer);
	assert_int_equal(fault.world.first.other, delivered);
	assert_string_equal(fault.world.first.key, verifier_key_name(key));
	assert_non_null(strstr(fault.world.first.text, "the streams only at"));
	/* The streams are not there yet: it may be right. */
	assert_status(vdi_verifier_list_item(fault.world.verifier, vd_bytes_of(verifier_key_name(key)),
					     fault.middle + 50, 1, 5),
		      VD_OK);
	assert_int_equal(fault.world.count, 2); /* but newer than the list */
	assert_int_equal(fault.world.first.revision, newer);
	verifier_fault_fini(&fault);
}

static void every_allocation_may_fail(void **state)
{
	(void) state;
	verifier_make_history(3);
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
			status = vdi_verifier_stream_open(verifier, "a", VERIFIER_FIRST - 1, false, &stream);
		for (vd_rev revision = VERIFIER_FIRST; status == VD_OK && revision < VERIFIER_FIRST + 20;
		     revision++) {
			unsigned count = verifier_seen_of(revision, seen);

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

int main(void)
{
	const struct CMUnitTest tests[] = {
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
		cmocka_unit_test(an_item_that_the_streams_have_not),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
