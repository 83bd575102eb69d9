/* Unit tests of lib/env/timer.c, also against a naive model. */
#include "rand.h"
#include "timer.h"
#include "vdtest.h"

static void equal_deadlines_come_in_the_order_they_were_set(void **state)
{
	struct vdi_timer_heap heap = { 0 };
	struct vdi_timer      timers[50] = { 0 };

	(void) state;
	for (int i = 0; i < 50; i++)
		vdi_timer_heap_set(&heap, &timers[i], (vd_mono) { 7 });
	vdi_timer_heap_set(&heap, &timers[3], (vd_mono) { 7 }); /* set anew: goes to the end */
	for (int i = 0; i < 49; i++)
		assert_ptr_equal(vdi_timer_heap_pop_due(&heap, (vd_mono) { 7 }), &timers[i < 3 ? i : i + 1]);
	assert_ptr_equal(vdi_timer_heap_pop_due(&heap, (vd_mono) { 7 }), &timers[3]);
	assert_null(vdi_timer_heap_pop_due(&heap, (vd_mono) { 7 }));
}

static void nothing_is_due_early_and_never_is_no_timer(void **state)
{
	struct vdi_timer_heap heap = { 0 };
	struct vdi_timer      timer = { 0 };

	(void) state;
	assert_true(vdi_timer_heap_next_due(&heap).ns == VD_NEVER.ns);
	vdi_timer_heap_set(&heap, &timer, VD_NEVER);
	assert_false(vdi_timer_is_set(&timer));
	vdi_timer_heap_set(&heap, &timer, (vd_mono) { 10 });
	assert_true(vdi_timer_is_set(&timer));
	assert_null(vdi_timer_heap_pop_due(&heap, (vd_mono) { 9 }));
	assert_true(vdi_timer_heap_next_due(&heap).ns == 10);
	vdi_timer_heap_remove(&heap, &timer);
	vdi_timer_heap_remove(&heap, &timer);
	assert_int_equal(heap.count, 0);
	vdi_timer_heap_set(&heap, &timer, (vd_mono) { 10 });
	vdi_timer_heap_set(&heap, &timer, VD_NEVER);
	assert_null(vdi_timer_heap_pop_due(&heap, (vd_mono) { 100 }));
}

/* The model: look through all of them. */
static struct vdi_timer *first_of(struct vdi_timer *timers, size_t count)
{
	struct vdi_timer *first = NULL;

	for (size_t i = 0; i < count; i++)
		if (vdi_timer_is_set(&timers[i]) &&
		    (first == NULL || timers[i].due.ns < first->due.ns ||
		     (timers[i].due.ns == first->due.ns && timers[i].order < first->order)))
			first = &timers[i];
	return first;
}

static void random_work_agrees_with_looking_through_all(void **state)
{
	struct vdi_timer_heap heap = { 0 };
	struct vdi_timer      timers[100] = { 0 };
	struct vdi_rand	      rand;
	size_t		      set = 0;

	(void) state;
	vdi_rand_init(&rand, 5);
	for (int i = 0; i < 50000; i++) {
		struct vdi_timer *timer = &timers[vdi_rand_below(&rand, 100)];
		struct vdi_timer *first;

		switch (vdi_rand_below(&rand, 4)) {
		case 0:
		case 1:
			vdi_timer_heap_set(&heap, timer, (vd_mono) { (int64_t) vdi_rand_below(&rand, 50) });
			break;
		case 2: vdi_timer_heap_remove(&heap, timer); break;
		default:
			first = first_of(timers, 100);
			assert_ptr_equal(vdi_timer_heap_pop_due(&heap, (vd_mono) { 50 }), first);
		}
		first = first_of(timers, 100);
		assert_true(vdi_timer_heap_next_due(&heap).ns == (first ? first->due.ns : VD_NEVER.ns));
		set = 0;
		for (size_t j = 0; j < 100; j++)
			set += vdi_timer_is_set(&timers[j]);
		assert_int_equal(heap.count, set);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_deadlines_come_in_the_order_they_were_set),
		cmocka_unit_test(nothing_is_due_early_and_never_is_no_timer),
		cmocka_unit_test(random_work_agrees_with_looking_through_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
