/* Acknowledged writes, as replay/play/verifier.c checks them: which are settled when, and which are missed.
 * A small history: a list at 10, then revisions 12, 14, 16 and so on, each of one key. */
#include "vdtest.h"
#include "verifier.h"

struct world {
	struct vdi_verifier	   *verifier;
	struct vdi_verifier_stream *a, *b;
	unsigned		    violations;
	struct vdi_violation	    all[8];
};

static void violated(void *arg, const struct vdi_violation *violation)
{
	struct world *world = arg;

	assert_true(world->violations < VDI_ARRAY_SIZE(world->all));
	world->all[world->violations++] = *violation;
}

static void start(struct world *world, uint32_t history_max)
{
	struct vdi_verifier_options options = { .history_max = history_max,
						.violated = violated,
						.arg = world };

	*world = (struct world) { 0 };
	assert_status(vdi_verifier_new(&options, &world->verifier), VD_OK);
	vdi_verifier_list_begin(world->verifier, 10, 0);
	vdi_verifier_list_end(world->verifier);
	assert_status(vdi_verifier_stream_open(world->verifier, "a", 10, false, &world->a), VD_OK);
	assert_status(vdi_verifier_stream_open(world->verifier, "b", 10, false, &world->b), VD_OK);
}

static void finish(struct world *world)
{
	vdi_verifier_stream_close(world->a);
	vdi_verifier_stream_close(world->b);
	vdi_verifier_free(world->verifier);
}

static void show(struct vdi_verifier_stream *stream, vd_rev revision)
{
	struct vdi_seen seen = { .key = vd_bytes_of("k"), .revision = revision, .value_hash = 1 };

	assert_status(vdi_verifier_revision(stream, &seen, 1), VD_OK);
}

static void show_both(struct world *world, vd_rev revision)
{
	show(world->a, revision);
	show(world->b, revision);
}

static void acknowledge(struct world *world, vd_rev revision, const char *key)
{
	assert_status(vdi_verifier_acknowledged(world->verifier, revision, vd_bytes_of(key)), VD_OK);
}

/* So many acknowledgements were checked so far, and so many of them were missed. */
static void settle(struct world *world, uint64_t checked, unsigned violations)
{
	struct vdi_verifier_totals totals;

	vdi_verifier_settle(world->verifier);
	vdi_verifier_totals_get(world->verifier, &totals);
	assert_int_equal(totals.acknowledgements, checked);
	assert_int_equal(totals.violations, violations);
	assert_int_equal(world->violations, violations);
}

/* An acknowledgement is checked when every stream has reached it, then and not again. */
static void a_write_is_checked_when_all_streams_have_passed_it(void **state)
{
	struct world world;

	(void) state;
	start(&world, 0);
	acknowledge(&world, 12, "k");
	settle(&world, 0, 0);
	show(world.a, 12);
	settle(&world, 0, 0);
	show(world.b, 12);
	settle(&world, 1, 0); /* exactly there is enough */
	settle(&world, 1, 0);
	finish(&world);
}

/* Those that are not due remain, in any order, with their keys. */
static void what_is_not_due_remains(void **state)
{
	struct world world;

	(void) state;
	start(&world, 0);
	acknowledge(&world, 17, "seventeen");
	acknowledge(&world, 12, "twelve");
	acknowledge(&world, 13, "thirteen");
	acknowledge(&world, 16, "sixteen");
	acknowledge(&world, 15, "fifteen");
	show_both(&world, 12);
	settle(&world, 1, 0);
	show_both(&world, 14);
	settle(&world, 2, 1); /* 13 was shown by nobody */
	show_both(&world, 16);
	settle(&world, 4, 2); /* and 15 neither */
	vdi_verifier_progress(world.a, 17);
	settle(&world, 4, 2);
	vdi_verifier_progress(world.b, 20);
	settle(&world, 5, 3); /* the last one: nothing was shown behind it */
	assert_string_equal(world.all[0].key, "thirteen");
	assert_int_equal(world.all[0].revision, 13);
	assert_int_equal(world.all[0].other, 14);
	assert_string_equal(world.all[0].text, "a write was acknowledged at 13, but no stream delivered it");
	assert_string_equal(world.all[1].key, "fifteen");
	assert_int_equal(world.all[1].revision, 15);
	assert_string_equal(world.all[2].key, "seventeen");
	assert_int_equal(world.all[2].revision, 17);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(world.all[i].guarantee, VDI_RELIABLE);
		assert_string_equal(world.all[i].stream, "");
	}
	settle(&world, 5, 3);
	finish(&world);
}

/* What no stream could have shown, and what the ring does not hold any more, is counted and not judged. */
static void before_the_ring_nothing_is_judged(void **state)
{
	struct world world;

	(void) state;
	start(&world, 0);
	acknowledge(&world, 9, "before");
	acknowledge(&world, 10, "list"); /* the first list is the beginning */
	settle(&world, 2, 0);
	acknowledge(&world, 11, "behind");
	show_both(&world, 12);
	settle(&world, 3, 1);
	finish(&world);
	start(&world, 2); /* remembers two revisions */
	for (vd_rev revision = 12; revision <= 20; revision += 2)
		show_both(&world, revision);
	acknowledge(&world, 13, "forgotten"); /* not shown, but who would know */
	acknowledge(&world, 16, "forgotten");
	acknowledge(&world, 18, "k");
	acknowledge(&world, 20, "k");
	settle(&world, 4, 0);
	acknowledge(&world, 17, "known");
	settle(&world, 5, 1);
	acknowledge(&world, 19, "known");
	settle(&world, 6, 2);
	finish(&world);
}

static void without_streams_acknowledgements_wait(void **state)
{
	struct world world;

	(void) state;
	start(&world, 0);
	acknowledge(&world, 10, "k");
	acknowledge(&world, 12, "k");
	vdi_verifier_stream_close(world.a);
	vdi_verifier_stream_close(world.b);
	settle(&world, 0, 0);
	assert_status(vdi_verifier_stream_open(world.verifier, "a", 10, false, &world.a), VD_OK);
	settle(&world, 1, 0);
	show(world.a, 12);
	settle(&world, 2, 0); /* only the streams that are open count */
	assert_status(vdi_verifier_stream_open(world.verifier, "b", 10, false, &world.b), VD_OK);
	finish(&world);
}

/* A key is told up to 95 bytes. */
static void keys_are_cut(void **state)
{
	static const size_t sizes[] = { 1, 94, 95, 96, 200 };
	char		    key[201];

	(void) state;
	memset(key, 'k', sizeof key);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(sizes); i++) {
		struct world world;

		start(&world, 0);
		assert_status(
			vdi_verifier_acknowledged(world.verifier, 11, (struct vd_bytes) { key, sizes[i] }),
			VD_OK);
		show_both(&world, 12);
		settle(&world, 1, 1);
		assert_int_equal(strlen(world.all[0].key), VDI_MIN(sizes[i], (size_t) 95));
		finish(&world);
	}
}

/* A hundred of them, of which every allocation may fail: one that was refused is not checked. */
static void a_refused_acknowledgement_is_not_checked(void **state)
{
	bool was_reached = true;

	(void) state;
	for (uint64_t n = 1; was_reached; n++) {
		struct world world;
		uint64_t     taken = 0;

		start(&world, 0);
		vdi_alloc_fail_nth(n, 1);
		for (int i = 0; i < 100; i++) {
			vd_status status = vdi_verifier_acknowledged(world.verifier, 12, vd_bytes_of("k"));

			assert_true(status == VD_OK || status == VD_NOMEM);
			taken += status == VD_OK;
		}
		was_reached = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_int_equal(taken, was_reached ? 99 : 100);
		show_both(&world, 12);
		settle(&world, taken, 0);
		finish(&world);
		assert_true(was_reached || n > 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_write_is_checked_when_all_streams_have_passed_it),
		cmocka_unit_test(what_is_not_due_remains),
		cmocka_unit_test(before_the_ring_nothing_is_judged),
		cmocka_unit_test(without_streams_acknowledgements_wait),
		cmocka_unit_test(keys_are_cut),
		cmocka_unit_test(a_refused_acknowledgement_is_not_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
