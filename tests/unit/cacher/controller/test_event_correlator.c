/* Combining, counting and limiting of events: the numbers of client-go's own tests. */
#include "event_correlator.h"
#include "vdtest.h"

static const vd_mono start = { (int64_t) 1000 * 1000000000 };

static struct vdi_event_correlator new_correlator(void)
{
	struct vdi_event_limits	    limits = { 10, VD_SECONDS(600), 25, VD_SECONDS(300) };
	struct vdi_event_correlator correlator;

	vdi_event_correlator_init(&correlator, &limits);
	return correlator;
}

static struct vdi_event event_of(const char *name, const char *reason, const char *message)
{
	static unsigned	 number;
	struct vdi_event event = { .count = 1 };

	event.fields[VDI_EVENT_KIND] = vd_bytes_of("Pod");
	event.fields[VDI_EVENT_NAME] = vd_bytes_of(name);
	event.fields[VDI_EVENT_TYPE] = vd_bytes_of("Normal");
	event.fields[VDI_EVENT_REASON] = vd_bytes_of(reason);
	event.fields[VDI_EVENT_MESSAGE] = vd_bytes_of(message);
	(void) snprintf(event.name, sizeof event.name, "%s.%u", name, number++);
	return event;
}

static void k301_events_that_differ_in_their_message_are_combined_from_the_tenth_on(void **state)
{
	struct vdi_event_correlator correlator = new_correlator();
	char			    message[16], combined_name[VDI_EVENT_NAME_SIZE] = "";

	for (unsigned i = 0; i < 20; i++) {
		struct vdi_event event;

		(void) snprintf(message, sizeof message, "m%u", i);
		event = event_of("a", "Same", message);
		assert_status(vdi_event_correlate(&correlator, &event, start), VD_OK);
		assert_int_equal(event.is_combined, i >= 9);
		assert_int_equal(event.count, i >= 9 ? i - 8 : 1);
		if (i == 9)
			memcpy(combined_name, event.name, sizeof combined_name);
		if (i >= 9)
			assert_string_equal(event.name, combined_name);
	}
	vdi_event_correlator_fini(&correlator);
}

static void k302_only_similar_events_are_combined(void **state)
{
	struct vdi_event_correlator correlator = new_correlator();
	char			    text[16];

	for (unsigned i = 0; i < 20; i++) {
		struct vdi_event event;

		(void) snprintf(text, sizeof text, "t%u", i);
		event = event_of("a", text, text); /* another reason */
		assert_status(vdi_event_correlate(&correlator, &event, start), VD_OK);
		assert_false(event.is_combined);
		event = event_of(text, "Same", text); /* another object */
		assert_status(vdi_event_correlate(&correlator, &event, start), VD_OK);
		assert_false(event.is_combined);
		assert_int_equal(event.count, 1);
	}
	vdi_event_correlator_fini(&correlator);
}

static void k303_equal_events_are_counted(void **state)
{
	struct vdi_event_correlator correlator = new_correlator();
	struct vdi_event	    first = event_of("a", "R", "m");

	first.first = first.last = (vd_wall) { 5 };
	assert_status(vdi_event_correlate(&correlator, &first, start), VD_OK);
	for (unsigned i = 2; i <= 25; i++) {
		struct vdi_event event = event_of("a", "R", "m");

		event.first = event.last = (vd_wall) { 5 + i };
		assert_status(vdi_event_correlate(&correlator, &event, start), VD_OK);
		assert_false(event.is_combined);
		assert_int_equal(event.count, i);
		assert_string_equal(event.name, first.name);
		assert_int_equal(event.first.ns, 5);
		assert_int_equal(event.last.ns, 5 + i);
	}
	vdi_event_correlator_fini(&correlator);
}

static void k304_an_object_is_limited_to_a_burst_and_one_event_each_five_minutes(void **state)
{
	struct vdi_event_correlator correlator = new_correlator();
	vd_mono			    now = start;
	struct vdi_event	    event;

	for (unsigned i = 0; i < 30; i++) {
		event = event_of("a", "R", "m");
		assert_status(vdi_event_correlate(&correlator, &event, now), i < 25 ? VD_OK : VD_FULL);
	}
	event = event_of("b", "R", "m"); /* another object */
	assert_status(vdi_event_correlate(&correlator, &event, now), VD_OK);
	event = event_of("a", "R", "m");
	event.fields[VDI_EVENT_TYPE] = vd_bytes_of("Warning"); /* another type */
	assert_status(vdi_event_correlate(&correlator, &event, now), VD_OK);
	now = vd_mono_add(now, VD_SECONDS(300));
	event = event_of("a", "R", "m");
	assert_status(vdi_event_correlate(&correlator, &event, now), VD_OK);
	assert_int_equal(event.count, 31); /* limited ones were counted */
	event = event_of("a", "R", "m");
	assert_status(vdi_event_correlate(&correlator, &event, now), VD_FULL);
	vdi_event_correlator_fini(&correlator);
}

static void k305_similar_events_with_a_long_pause_are_not_combined(void **state)
{
	struct vdi_event_correlator correlator = new_correlator();
	vd_mono			    now = start;
	char			    message[16];

	for (unsigned i = 0; i < 20; i++) {
		struct vdi_event event;

		(void) snprintf(message, sizeof message, "m%u", i);
		event = event_of("a", "Same", message);
		assert_status(vdi_event_correlate(&correlator, &event, now), VD_OK);
		assert_false(event.is_combined);
		now = vd_mono_add(now, VD_SECONDS(i == 8 ? 601 : 10)); /* ten within ten minutes at most */
		if (i == 17)
			break;
	}
	vdi_event_correlator_fini(&correlator);
}

/* Ten minutes after the last one it is still the same series; its first time is that of its first event. */
static void k305_the_series_of_combined_events(void **state)
{
	struct vdi_event_correlator correlator = new_correlator();
	vd_mono			    now = start;
	char			    message[16];
	struct vdi_event	    event;

	for (unsigned i = 0; i < 12; i++) {
		(void) snprintf(message, sizeof message, "m%u", i);
		event = event_of("a", "Same", message);
		event.first = (vd_wall) { i };
		event.last = (vd_wall) { 100 + i };
		assert_status(vdi_event_correlate(&correlator, &event, now), VD_OK);
		assert_int_equal(event.is_combined, i >= 9);
		assert_int_equal(event.first.ns, i >= 9 ? 109 : i);
		assert_int_equal(event.last.ns, 100 + i);
		now = vd_mono_add(now, VD_SECONDS(i == 5 ? 600 : 1));
	}
	/* A message of the first nine is counted, and not combined. */
	event = event_of("a", "Same", "m8");
	assert_status(vdi_event_correlate(&correlator, &event, now), VD_OK);
	assert_false(event.is_combined);
	assert_int_equal(event.count, 2);
	event = event_of("a", "Same", "m9");
	assert_status(vdi_event_correlate(&correlator, &event, now), VD_OK);
	assert_true(event.is_combined);
	assert_int_equal(event.count, 4);
	vdi_event_correlator_fini(&correlator);
}

/* Events are equal if they agree in everything but the version of their object. */
static void k303_events_that_differ_in_one_field(void **state)
{
	struct vdi_event_correlator correlator = new_correlator();

	for (unsigned i = 0; i <= VDI_EVENT_FIELDS; i++) {
		struct vdi_event event = event_of("a", "R", "m");

		if (i < VDI_EVENT_FIELDS)
			event.fields[i] = vd_bytes_of("other");
		assert_status(vdi_event_correlate(&correlator, &event, start), VD_OK);
		assert_int_equal(event.count, i == VDI_EVENT_FIELDS ? 2 : 1);
	}
	vdi_event_correlator_fini(&correlator);
}

static void old_records_are_forgotten(void **state)
{
	struct vdi_event_correlator correlator = new_correlator();
	struct vdi_event	    event = event_of("first", "R", "m");
	char			    name[16];

	assert_status(vdi_event_correlate(&correlator, &event, start), VD_OK);
	for (unsigned i = 0; i < 4095; i++) {
		(void) snprintf(name, sizeof name, "n%u", i);
		event = event_of(name, "R", "m");
		assert_status(vdi_event_correlate(&correlator, &event, start), VD_OK);
	}
	event = event_of("first", "R", "m");
	assert_status(vdi_event_correlate(&correlator, &event, start), VD_OK);
	assert_int_equal(event.count, 2); /* known, and now the newest */
	event = event_of("one more", "R", "m");
	assert_status(vdi_event_correlate(&correlator, &event, start), VD_OK);
	event = event_of("n0", "R", "m");
	assert_status(vdi_event_correlate(&correlator, &event, start), VD_OK);
	assert_int_equal(event.count, 1); /* evicted */
	assert_int_equal(correlator.seen.entries.count, 4096);
	vdi_event_correlator_fini(&correlator);
}

/* Of the records newest, middle and oldest, each is used again, before others are evicted. */
static void the_record_that_was_used_longest_ago_is_evicted(void **state)
{
	static const uint64_t orders[3][3] = { { 2, 3, 1 }, { 1, 3, 2 }, { 1, 2, 3 } }; /* the oldest first */

	for (uint64_t used = 1; used <= 3; used++) {
		const uint64_t	      *order = orders[used - 1];
		struct vdi_event_cache cache;
		struct vdi_event_key   key = { 0 };
		uint64_t	      *record;

		vdi_event_cache_init(&cache, sizeof *record, 3);
		for (key.a = 1; key.a <= 3; key.a++) {
			record = vdi_event_cache_at(&cache, key);
			assert_int_equal(*record, 0);
			*record = key.a;
		}
		key.a = used;
		record = vdi_event_cache_at(&cache, key);
		assert_int_equal(*record, used);
		for (unsigned evicted = 1; evicted <= 3; evicted++) {
			key.a = 10 + evicted;
			*(uint64_t *) vdi_event_cache_at(&cache, key) = key.a;
			assert_int_equal(cache.entries.count, 3);
			for (unsigned i = 0; i < 3; i++) {
				key.a = order[i];
				assert_int_equal(vdi_hash_get(&cache.entries, key.a, &key) != NULL,
						 i >= evicted);
			}
		}
		vdi_event_cache_fini(&cache);
	}
}

/* Both halves of a key count. */
static void records_of_different_keys_are_different(void **state)
{
	struct vdi_event_cache cache;

	vdi_event_cache_init(&cache, sizeof(uint64_t), 10);
	*(uint64_t *) vdi_event_cache_at(&cache, (struct vdi_event_key) { 1, 1 }) = 11;
	*(uint64_t *) vdi_event_cache_at(&cache, (struct vdi_event_key) { 1, 2 }) = 12;
	assert_int_equal(*(uint64_t *) vdi_event_cache_at(&cache, (struct vdi_event_key) { 1, 1 }), 11);
	assert_int_equal(*(uint64_t *) vdi_event_cache_at(&cache, (struct vdi_event_key) { 1, 2 }), 12);
	assert_int_equal(*(uint64_t *) vdi_event_cache_at(&cache, (struct vdi_event_key) { 2, 1 }), 0);
	vdi_event_cache_fini(&cache);
}

static void torture_without_memory_events_are_sent_as_they_are(void **state)
{
	bool has_failed = true;

	for (uint64_t nth = 1; has_failed; nth++) {
		struct vdi_event_correlator correlator = new_correlator();
		struct vdi_event	    event = event_of("a", "R", "m");

		(void) vdi_alloc_fail_nth(nth, 1);
		assert_status(vdi_event_correlate(&correlator, &event, start), VD_OK);
		has_failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_int_equal(event.count, 1);
		event = event_of("a", "R", "m");
		assert_status(vdi_event_correlate(&correlator, &event, start), VD_OK);
		assert_in_range(event.count, 1, 2);
		vdi_event_correlator_fini(&correlator);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(k301_events_that_differ_in_their_message_are_combined_from_the_tenth_on),
		cmocka_unit_test(k302_only_similar_events_are_combined),
		cmocka_unit_test(k303_equal_events_are_counted),
		cmocka_unit_test(k304_an_object_is_limited_to_a_burst_and_one_event_each_five_minutes),
		cmocka_unit_test(k305_similar_events_with_a_long_pause_are_not_combined),
		cmocka_unit_test(k305_the_series_of_combined_events),
		cmocka_unit_test(k303_events_that_differ_in_one_field),
		cmocka_unit_test(old_records_are_forgotten),
		cmocka_unit_test(the_record_that_was_used_longest_ago_is_evicted),
		cmocka_unit_test(records_of_different_keys_are_different),
		cmocka_unit_test(torture_without_memory_events_are_sent_as_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
