/* The ring of recent events: capacity by window, budget by bytes, and from where a watch may go on. */
#include "vdtest.h"

#include "history.h"
#include "object.h"

static struct vd_codec *codec;

static struct vd_object *object_of(vd_rev revision, size_t padding)
{
	char		  value[4096];
	struct vd_kv	 *kv;
	struct vd_object *object;
	struct vd_error	  error;

	snprintf(value, sizeof value, "{\"metadata\":{\"name\":\"x\"},\"data\":\"%0*d\"}", (int) padding + 1,
		 0);
	assert_status(vd_kv_new(vd_bytes_of("/registry/pods/x"), vd_bytes_of(value), &kv), VD_OK);
	kv->mod_rev = revision;
	assert_status(vd_object_new(codec, kv, &object, &error), VD_OK);
	vd_kv_unref(kv);
	return object;
}

static void append(struct vdi_history *history, vd_rev revision, int64_t second, size_t padding)
{
	struct vd_object *object = object_of(revision, padding);
	struct vdi_event *event;

	assert_status(
		vdi_event_new(revision, object, NULL, (vd_mono) { (1000 + second) * 1000000000 }, &event),
		VD_OK);
	vd_object_unref(object);
	vdi_history_append(history, event);
}

static struct vdi_history make(int64_t bytes)
{
	struct vdi_history history;

	assert_status(vdi_history_init(&history, bytes, VD_SECONDS(75)), VD_OK);
	return history;
}

static void t162_r483_from_where_a_watch_may_go_on(void **state)
{
	struct vdi_history history = make(1 << 20);
	struct vd_error	   error;

	assert_status(vdi_history_check(&history, 5, &error), VD_INTERNAL);
	assert_string_equal(error.message, "watch cache isn't correctly initialized");
	vdi_history_reset(&history, 9);
	assert_status(vdi_history_check(&history, 8, &error), VD_EXPIRED);
	assert_string_equal(error.message, "too old resource version: 8 (9)");
	assert_status(vdi_history_check(&history, 9, &error), VD_OK);
	assert_int_equal(vdi_history_after(&history, 9), history.end);
	append(&history, 12, 0, 0);
	assert_status(vdi_history_check(&history, 9, &error), VD_OK);
	assert_int_equal(vdi_history_at(&history, vdi_history_after(&history, 9))->revision, 12);
	assert_int_equal(vdi_history_after(&history, 12), history.end);
	vdi_history_fini(&history);
}

static void r455_what_the_store_compacted_goes(void **state)
{
	struct vdi_history history = make(1 << 20);
	struct vd_error	   error;

	vdi_history_reset(&history, 1);
	for (int i = 0; i < 10; i++)
		append(&history, 10 + i, 0, 0); /* 10..19 */
	assert_int_equal(vdi_history_trim(&history, 10), 0);
	assert_int_equal(vdi_history_trim(&history, 15), 5);
	assert_status(vdi_history_check(&history, 14, &error), VD_OK);
	assert_int_equal(vdi_history_at(&history, vdi_history_after(&history, 14))->revision, 15);
	assert_status(vdi_history_check(&history, 13, &error), VD_EXPIRED);
	assert_int_equal(vdi_history_trim(&history, 100), 5);
	assert_status(vdi_history_check(&history, 19, &error), VD_OK);
	assert_status(vdi_history_check(&history, 18, &error), VD_EXPIRED);
	append(&history, 30, 0, 0);
	assert_int_equal(vdi_history_at(&history, vdi_history_after(&history, 19))->revision, 30);
	vdi_history_fini(&history);
}

/* A watch may start at the revision before a compaction, however far behind it the next event is; what the
 * ring has no room for is R-483's. */
static void r230_a_trim_leaves_no_gap_behind_it(void **state)
{
	struct vdi_history history = make(1 << 20);
	struct vd_error	   error;

	vdi_history_reset(&history, 1);
	append(&history, 10, 0, 0);
	append(&history, 12, 0, 0);
	append(&history, 30, 0, 0);
	append(&history, 40, 0, 0);
	assert_int_equal(vdi_history_trim(&history, 20), 2);
	assert_status(vdi_history_check(&history, 19, &error), VD_OK);
	assert_status(vdi_history_check(&history, 12, &error), VD_OK);
	assert_status(vdi_history_check(&history, 11, &error), VD_EXPIRED);
	assert_int_equal(vdi_history_at(&history, vdi_history_after(&history, 19))->revision, 30);
	for (int i = 0; i < VDI_HISTORY_CAPACITY_MIN - 1; i++)
		append(&history, 50 + i, 5000, 0);
	assert_int_equal(vdi_history_at(&history, history.start)->revision, 40);
	assert_status(vdi_history_check(&history, 38, &error), VD_EXPIRED);
	assert_status(vdi_history_check(&history, 39, &error), VD_OK);
	vdi_history_fini(&history);
}

static void append_change(struct vdi_history *history, vd_rev revision)
{
	struct vd_object *object = object_of(revision, 0), *old_object = object_of(revision - 1, 0);
	struct vdi_event *event;

	assert_status(vdi_event_new(revision, object, old_object, (vd_mono) { 0 }, &event), VD_OK);
	vd_object_unref(object);
	vd_object_unref(old_object);
	vdi_history_append(history, event);
}

/* rules: E-343, R-230 */
static void t053_a_compacted_state_is_not_shown_as_the_one_before(void **state)
{
	struct vdi_history history = make(1 << 20);

	vdi_history_reset(&history, 1);
	append_change(&history, 10);
	append(&history, 20, 0, 0);
	append(&history, 30, 0, 0);
	append_change(&history, 30); /* of one transaction */
	append_change(&history, 40);
	assert_int_equal(vdi_history_trim(&history, 20), 1);
	assert_status(vdi_history_check(&history, 19, NULL),
		      VD_OK); /* an object that was made then has nothing before */
	assert_int_equal(vdi_history_trim(&history, 30), 3);
	assert_status(vdi_history_check(&history, 29, NULL), VD_EXPIRED);
	assert_status(vdi_history_check(&history, 30, NULL), VD_OK);
	assert_int_equal(vdi_history_at(&history, vdi_history_after(&history, 30))->revision, 40);
	assert_int_equal(vdi_history_trim(&history, 40), 1);
	assert_status(vdi_history_check(&history, 39, NULL), VD_EXPIRED);
	assert_status(vdi_history_check(&history, 40, NULL), VD_OK);
	vdi_history_fini(&history);
}

/* A ring that has grown and evicted: empty afterwards, nothing is kept alive, nothing counts as evicted, and
 * the capacity stays. */
static void r406_a_reset_keeps_the_capacity(void **state)
{
	struct vdi_history history = make(1 << 24);
	int64_t		   live;
	size_t		   capacity;

	vdi_history_reset(&history, 1);
	for (unsigned i = 0; i < 4 * VDI_HISTORY_CAPACITY_MIN; i++)
		append(&history, 10 + i, 0, 0);
	capacity = history.capacity;
	assert_true(capacity > VDI_HISTORY_CAPACITY_MIN);
	live = vdi_alloc_live() - (int64_t) (history.end - history.start);
	assert_int_equal(vdi_history_trim(&history, 20), 10);
	vdi_history_reset(&history, 5);
	assert_int_equal(history.start, history.end);
	assert_int_equal(history.capacity, capacity);
	assert_int_equal(history.bytes, 0);
	for (size_t i = 0; i < capacity; i++)
		assert_null(history.slots[i]);
	assert_true(vdi_alloc_live() <= live); /* each event was an allocation at least */
	/* The floor is the list's revision, although more had been evicted. */
	assert_status(vdi_history_check(&history, 4, NULL), VD_EXPIRED);
	assert_status(vdi_history_check(&history, 5, NULL), VD_OK);
	append(&history, 6, 0, 0);
	assert_int_equal(vdi_history_at(&history, vdi_history_after(&history, 5))->revision, 6);
	vdi_history_fini(&history);
}

/* A position of before is not one of the new generation, not even the one behind the last event. */
static void r436_between_two_generations_is_a_gap(void **state)
{
	struct vdi_history history = make(1 << 20);
	uint64_t	   behind;

	vdi_history_reset(&history, 1);
	append(&history, 10, 0, 0);
	behind = history.end; /* where a watch stands that has seen all */
	vdi_history_reset(&history, 20);
	append(&history, 21, 0, 0);
	assert_true(behind < history.start);
	assert_int_equal(vdi_history_at(&history, history.start)->revision, 21);
	assert_int_equal(vdi_history_after(&history, 20), history.start);
	behind = history.end;
	vdi_history_reset(&history, 30); /* nothing happened in the new one */
	assert_true(behind < history.start && history.start == history.end);
	vdi_history_fini(&history);
}

/* The events are those of revisions first to last, one each. */
static void assert_holds(const struct vdi_history *history, vd_rev first, vd_rev last)
{
	assert_int_equal(history->end - history->start, last - first + 1);
	for (uint64_t position = history->start; position < history->end; position++)
		assert_int_equal(vdi_history_at(history, position)->revision,
				 first + (vd_rev) (position - history->start));
}

/* rules */
static void t165_r402_capacity_follows_the_window(void **state)
{
	struct vdi_history history = make(1 << 24);
	struct vd_error	   error;

	vdi_history_reset(&history, 1);
	for (int i = 0; i < 101; i++)
		append(&history, 10 + i, i / 10, 0);
	assert_int_equal(history.capacity, 200); /* full while the oldest was 10 s old */
	assert_int_equal(history.increases, 1);
	assert_int_equal(history.end - history.start, 101);
	assert_holds(&history, 10, 110);
	assert_status(vdi_history_check(&history, 1, &error), VD_OK);
	/* Slow times: three quarters are older than the window. */
	for (int i = 101; i < 202; i++)
		append(&history, 10 + i, 1000 + i, 0);
	assert_int_equal(history.capacity, 200);
	append(&history, 212, 5000, 0);
	assert_int_equal(history.capacity, 100);
	assert_int_equal(history.decreases, 1);
	assert_int_equal(history.end - history.start, 100);
	/* The newest 100 of before, of which the event that made it shrink evicted one more. */
	assert_holds(&history, 212 - 99, 212);
	assert_status(vdi_history_check(&history, 1, &error), VD_EXPIRED);
	vdi_history_fini(&history);
}

static void t166_growing_does_not_bring_back_what_was_evicted(void **state)
{
	struct vdi_history history = make(1 << 24);
	struct vd_error	   error;

	vdi_history_reset(&history, 1);
	for (int i = 0; i < 100; i++)
		append(&history, 10 + i, i * 2, 0);
	append(&history, 110, 1000, 0); /* evicts 10 */
	assert_status(vdi_history_check(&history, 9, &error), VD_EXPIRED);
	assert_status(vdi_history_check(&history, 10, &error), VD_OK);
	for (int i = 1; i < 300; i++)
		append(&history, 110 + i, 1001, 0);
	assert_true(history.capacity > 100);
	assert_status(vdi_history_check(&history, 9, &error), VD_EXPIRED);
	vdi_history_fini(&history);
}

/* An event that is exactly as old as the window makes the ring neither longer nor shorter; nor does it pass
 * its bounds. */
static void r402_the_borders_of_the_capacity(void **state)
{
	static const struct {
		/* the second of the one that comes when 200 are full: the oldest are of 0, those from 150 on
		 * of 10 */
		int64_t last;
		size_t	capacity;
	} rows[] = { { 74, 400 }, { 75, 200 }, { 85, 200 }, { 86, 100 } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_history history = make(1 << 24);

		vdi_history_reset(&history, 1);
		for (int n = 0; n < 200; n++)
			append(&history, 10 + n, n < 150 ? 0 : 10, 0);
		assert_int_equal(history.capacity, 200);
		append(&history, 210, rows[i].last, 0);
		assert_int_equal(history.capacity, rows[i].capacity);
		assert_int_equal(history.end - history.start,
				 rows[i].capacity == 400 ? 201 : rows[i].capacity);
		vdi_history_fini(&history);
	}
	{
		struct vdi_history history = make(1 << 24);

		history.capacity_upper = 250; /* no power of two */
		vdi_history_reset(&history, 1);
		for (int n = 0; n < 1000; n++)
			append(&history, 10 + n, 0, 0);
		assert_int_equal(history.capacity, 250);
		assert_int_equal(history.increases, 2);
		for (int n = 0; n < 1000; n++)
			append(&history, 2000 + n, 100 * n, 0);
		assert_int_equal(history.capacity, VDI_HISTORY_CAPACITY_MIN);
		assert_int_equal(history.decreases, 2);
		vdi_history_fini(&history);
	}
}

static void r404_upper_bound_of_the_capacity(void **state)
{
	assert_int_equal(vdi_history_capacity_upper(VD_SECONDS(75)), 102400);
	assert_int_equal(vdi_history_capacity_upper(VD_SECONDS(76)), 204800);
	assert_int_equal(vdi_history_capacity_upper(VD_SECONDS(300)), 409600);
	assert_int_equal(vdi_history_capacity_upper(VD_SECONDS(600)), 819200);
	assert_int_equal(vdi_history_capacity_upper(VD_SECONDS(100000000)), (size_t) 102400 << 14);
}

static void bytes_are_bounded_and_half_a_revision_is_none(void **state)
{
	struct vdi_history history = make(3000);
	struct vd_error	   error;

	vdi_history_reset(&history, 1);
	append(&history, 10, 0, 1000);
	append(&history, 11, 0, 1000);
	append(&history, 11, 0, 1000);
	append(&history, 12, 0, 1000); /* 10 and one half of 11 are gone */
	assert_true(history.bytes <= 3000);
	assert_int_equal(vdi_history_at(&history, history.start)->revision, 11);
	assert_status(vdi_history_check(&history, 10, &error), VD_EXPIRED);
	assert_status(vdi_history_check(&history, 11, &error), VD_OK);
	/* Larger than the budget: still there for those who watch. */
	append(&history, 13, 0, 3500);
	assert_int_equal(history.end - history.start, 1);
	assert_status(vdi_history_check(&history, 12, &error), VD_OK);
	vdi_history_fini(&history);
}

/* A budget that is used to the last byte is not exceeded. */
static void bytes_may_be_used_to_the_last(void **state)
{
	struct vdi_history history = make(1 << 20);
	int64_t		   each;

	vdi_history_reset(&history, 1);
	append(&history, 10, 0, 1000);
	each = history.bytes;
	vdi_history_fini(&history);
	for (int64_t less = 0; less < 2; less++) {
		history = make(3 * each - less);
		vdi_history_reset(&history, 1);
		for (vd_rev revision = 10; revision < 13; revision++)
			append(&history, revision, 0, 1000);
		assert_int_equal(history.end - history.start, 3 - less);
		assert_int_equal(history.bytes, (3 - less) * each);
		vdi_history_fini(&history);
	}
}

static void out_of_memory_evicts_instead_of_growing(void **state)
{
	struct vdi_history history = make(1 << 20);
	struct vd_object  *object = object_of(500, 0);
	struct vdi_event  *event;

	vdi_history_reset(&history, 1);
	for (int i = 0; i < 100; i++)
		append(&history, 10 + i, 0, 0);
	assert_status(vdi_event_new(500, object, NULL, (vd_mono) { 1000 * INT64_C(1000000000) }, &event),
		      VD_OK);
	vdi_alloc_fail_nth(1, 1);
	vdi_history_append(&history, event);
	vdi_alloc_fail_nth(0, 0);
	assert_int_equal(history.capacity, 100);
	assert_int_equal(history.end - history.start, 100);
	assert_int_equal(vdi_history_floor(&history), 10);
	vd_object_unref(object);
	vdi_history_fini(&history);
}

static int setup(void **state)
{
	return vd_codec_json_new(NULL, 0, &codec, NULL) == VD_OK ? 0 : -1;
}

static int teardown(void **state)
{
	vd_codec_free(codec);
	return vdi_alloc_live() == 0 ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t162_r483_from_where_a_watch_may_go_on),
		cmocka_unit_test(r455_what_the_store_compacted_goes),
		cmocka_unit_test(r230_a_trim_leaves_no_gap_behind_it),
		cmocka_unit_test(t053_a_compacted_state_is_not_shown_as_the_one_before),
		cmocka_unit_test(r406_a_reset_keeps_the_capacity),
		cmocka_unit_test(r436_between_two_generations_is_a_gap),
		cmocka_unit_test(t165_r402_capacity_follows_the_window),
		cmocka_unit_test(t166_growing_does_not_bring_back_what_was_evicted),
		cmocka_unit_test(r402_the_borders_of_the_capacity),
		cmocka_unit_test(r404_upper_bound_of_the_capacity),
		cmocka_unit_test(bytes_are_bounded_and_half_a_revision_is_none),
		cmocka_unit_test(bytes_may_be_used_to_the_last),
		cmocka_unit_test(out_of_memory_evicts_instead_of_growing),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
