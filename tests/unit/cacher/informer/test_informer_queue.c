/* Unit tests of cacher/informer/informer_queue.c. */
#include "informer_queue.h"

#include "vdtest.h"

static size_t put(struct vdi_informer_queue *queue, vd_rev first, size_t count)
{
	struct vd_watch_event events[2 * VDI_INFORMER_QUEUE_MAX] = { 0 };

	for (size_t i = 0; i < count; i++)
		events[i] = (struct vd_watch_event) { .type = VD_WATCH_BOOKMARK,
						      .revision = first + (vd_rev) i,
						      .initial_events_end = i % 2 };
	return vdi_informer_queue_put(queue, events, count);
}

/* Events come out in order, around the end of the ring as well, and each with all that it said. */
static void events_come_out_in_order(void **state)
{
	static struct vdi_informer_queue queue;
	struct vdi_informer_event	 events[VDI_INFORMER_QUEUE_MAX];
	vd_rev				 in = 1, out = 1;
	bool				 has_room;

	(void) state;
	for (size_t round = 1; round < 60; round++) {
		vd_rev first = in;

		in += (vd_rev) put(&queue, in, round * 7 % 60 + 1);
		for (size_t count;
		     (count = vdi_informer_queue_take(&queue, events, round % 9 + 1, &has_room)) != 0;)
			for (size_t i = 0; i < count; i++) {
				assert_int_equal(events[i].revision, out);
				assert_int_equal(events[i].type, VD_WATCH_BOOKMARK);
				assert_int_equal(events[i].initial_events_end, (out - first) % 2);
				assert_false(has_room);
				out++;
			}
		assert_int_equal(out, in);
	}
}

/* A full queue takes what fits. Its watch is told once that there is room again, not before and not again. */
static void a_watch_that_was_refused_is_told_once(void **state)
{
	static struct vdi_informer_queue queue;
	struct vdi_informer_event	 events[8];
	bool				 has_room;

	(void) state;
	assert_int_equal(put(&queue, 1, VDI_INFORMER_QUEUE_MAX), VDI_INFORMER_QUEUE_MAX);
	assert_int_equal(vdi_informer_queue_take(&queue, events, 1, &has_room), 1);
	assert_false(has_room); /* nothing was refused */
	assert_int_equal(put(&queue, VDI_INFORMER_QUEUE_MAX + 1, 3), 1);
	assert_int_equal(vdi_informer_queue_take(&queue, events, 0, &has_room), 0);
	assert_false(has_room);
	assert_int_equal(vdi_informer_queue_take(&queue, events, 8, &has_room), 8);
	assert_true(has_room);
	assert_int_equal(events[0].revision, 2);
	assert_int_equal(vdi_informer_queue_take(&queue, events, 8, &has_room), 8);
	assert_false(has_room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_come_out_in_order),
		cmocka_unit_test(a_watch_that_was_refused_is_told_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
