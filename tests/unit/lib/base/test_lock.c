/* Unit tests of lib/base/lock.c. */
#include <pthread.h>

#include "clock.h"
#include "expect_panic.h"
#include "lock.h"

static void locks_in_order_nest(void **state)
{
	struct vdi_lock outer;
	struct vdi_lock inner;
	char		text[64];
	char		tiny[4];

	(void) state;
	vdi_lock_init(&outer, VDI_LOCK_CACHER);
	vdi_lock_init(&inner, VDI_LOCK_HISTORY);
	vdi_lock_describe_held(text, sizeof text);
	assert_string_equal(text, "");
	vdi_lock_acquire(&outer);
	vdi_lock_acquire(&inner);
	vdi_lock_assert_held(&outer);
	vdi_lock_assert_held(&inner);
#ifndef NDEBUG
	vdi_lock_describe_held(text, sizeof text);
	assert_string_equal(text, "cacher history");
	vdi_lock_describe_held(tiny, sizeof tiny);
	assert_string_equal(tiny, "cac");
#endif
	vdi_lock_release(&outer); /* any order of release is fine */
	vdi_lock_release(&inner);
	vdi_lock_fini(&outer);
	vdi_lock_fini(&inner);
	assert_string_equal(vdi_lock_name(VDI_LOCK_LEAF), "leaf");
	(void) tiny;
}

#ifndef NDEBUG
static void take_in_the_wrong_order(void)
{
	struct vdi_lock outer;
	struct vdi_lock inner;

	vdi_lock_init(&outer, VDI_LOCK_CACHER);
	vdi_lock_init(&inner, VDI_LOCK_HISTORY);
	vdi_lock_acquire(&inner);
	vdi_lock_acquire(&outer);
}

static void take_two_of_one_name(void)
{
	struct vdi_lock a;
	struct vdi_lock b;

	vdi_lock_init(&a, VDI_LOCK_CACHER);
	vdi_lock_init(&b, VDI_LOCK_CACHER);
	vdi_lock_acquire(&a);
	vdi_lock_acquire(&b);
}

static void release_what_is_not_held(void)
{
	struct vdi_lock lock;

	vdi_lock_init(&lock, VDI_LOCK_CACHER);
	vdi_lock_release(&lock);
}

static void claim_to_hold(void)
{
	struct vdi_lock lock;

	vdi_lock_init(&lock, VDI_LOCK_CACHER);
	vdi_lock_assert_held(&lock);
}

static void the_wrong_order_or_holder_stops_the_program(void **state)
{
	(void) state;
	expect_panic(take_in_the_wrong_order, "\"cacher\" taken while \"history\" is held");
	expect_panic(take_in_the_wrong_order, "locks held: history");
	expect_panic(take_two_of_one_name, "\"cacher\" taken while \"cacher\" is held");
	expect_panic(release_what_is_not_held, "lock holder: cacher");
	expect_panic(claim_to_hold, "check failed");
}
#endif

struct ping {
	struct vdi_lock	     lock;
	struct vdi_condition changed;
	int		     turn;
};

static void *answer(void *arg)
{
	struct ping *ping = arg;

	vdi_lock_acquire(&ping->lock);
	for (int i = 0; i < 100; i++) {
		while (ping->turn % 2 == 0)
			vdi_condition_wait(&ping->changed, &ping->lock);
		ping->turn++;
		vdi_condition_broadcast(&ping->changed);
	}
	vdi_lock_release(&ping->lock);
	return NULL;
}

static void conditions_pass_the_turn(void **state)
{
	struct ping ping = { .turn = 0 };
	pthread_t   thread;

	(void) state;
	vdi_lock_init(&ping.lock, VDI_LOCK_LEAF);
	vdi_condition_init(&ping.changed);
	assert_int_equal(pthread_create(&thread, NULL, answer, &ping), 0);
	vdi_lock_acquire(&ping.lock);
	for (int i = 0; i < 100; i++) {
		ping.turn++;
		vdi_condition_signal(&ping.changed);
		while (ping.turn % 2)
			assert_true(vdi_condition_wait_until(&ping.changed, &ping.lock, VD_NEVER));
	}
	/* A deadline in the past, and one that comes. */
	assert_false(vdi_condition_wait_until(&ping.changed, &ping.lock, (vd_mono) { -5 }));
	while (vdi_condition_wait_until(&ping.changed, &ping.lock,
					vd_mono_add(vdi_clock_mono(&vdi_clock_os), VD_MS(1))))
		continue;
	vdi_lock_release(&ping.lock);
	pthread_join(thread, NULL);
	assert_int_equal(ping.turn, 200);
	vdi_condition_fini(&ping.changed);
	vdi_lock_fini(&ping.lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(locks_in_order_nest),
#ifndef NDEBUG
		cmocka_unit_test(the_wrong_order_or_holder_stops_the_program),
#endif
		cmocka_unit_test(conditions_pass_the_turn),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
