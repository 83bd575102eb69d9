/* Subscriptions: what one watcher costs, a group's own subscription and those of other delivery workers, one
 * member and a member list. */
#include "cacher_fixture.h"

#include "cache_watcher.h"
#include "cacher.h"
#include "env.h"

static struct vd_watch_options of_app(struct cacher_fixture *f, const char *selector)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;

	options.revision = vd_cacher_revision(f->cacher);
	options.label_selector = vd_bytes_of(selector);
	return options;
}

static struct recorder *open_recorder(struct cacher_fixture *f, const char *selector,
				      const struct vd_executor *executor)
{
	struct recorder	       *r = calloc(1, sizeof *r);
	struct vd_watch_options options = of_app(f, selector);

	assert_status(recorder_open(f, r, &options, executor), VD_OK);
	cacher_fixture_settle(f);
	return r;
}

static void close_recorder(struct cacher_fixture *f, struct recorder *r)
{
	recorder_close(f, r);
	free(r);
}

/* The watcher, and group, subscription, predicate and selector together. */
static void an_idle_watcher_of_its_own_selectors_is_two_blocks(void **state)
{
	struct cacher_fixture f;
	struct recorder	     *r[32];
	int64_t		      live = 0;

	cacher_fixture_setup(&f, 1);
	for (unsigned i = 0; i < VDI_ARRAY_SIZE(r); i++) {
		char selector[32];

		snprintf(selector, sizeof selector, "app=app-%05u", i);
		r[i] = open_recorder(&f, selector, NULL);
		if (i == 0)
			live = vdi_alloc_live();
	}
	assert_int_equal(vdi_alloc_live() - live, 2 * (VDI_ARRAY_SIZE(r) - 1));
	assert_int_equal(r[0]->watcher->state, VDI_WATCHER_MEMBER);
	for (unsigned i = 0; i < VDI_ARRAY_SIZE(r); i++)
		close_recorder(&f, r[i]);
	assert_int_equal(f.cacher->watcher_index.group_count, 0);
	cacher_fixture_teardown(&f);
}

/* The group's own subscription is the first delivery worker's; when it has no watchers any more, the group
 * lives on with the others'. */
static void r552_subscriptions_of_a_group_come_and_go(void **state)
{
	struct cacher_fixture	f;
	struct recorder	       *inl, *run, *later;
	struct vdi_watch_group *group;

	cacher_fixture_setup(&f, 2);
	inl = open_recorder(&f, "app=one", NULL);
	run = open_recorder(&f, "app=one", vdi_env_executor(f.env));
	group = inl->watcher->subscription->group;
	assert_ptr_equal(run->watcher->subscription->group, group);
	assert_ptr_equal(inl->watcher->subscription, &group->subscription);
	assert_ptr_equal(group->subscription.group_next, run->watcher->subscription);
	put_pod(&f, "ns", "x", "one", NULL);
	cacher_fixture_settle(&f);
	assert_int_equal(inl->count, 1);
	assert_int_equal(run->count, 1);
	close_recorder(&f, inl);
	put_pod(&f, "ns", "x", "one", NULL);
	cacher_fixture_settle(&f);
	assert_int_equal(run->count, 2);
	later = open_recorder(&f, "app=one", NULL);
	assert_ptr_equal(later->watcher->subscription->group, group);
	assert_ptr_not_equal(later->watcher->subscription, &group->subscription);
	put_pod(&f, "ns", "x", "one", NULL);
	cacher_fixture_settle(&f);
	assert_int_equal(run->count, 3);
	assert_int_equal(later->count, 1);
	close_recorder(&f, run);
	assert_int_equal(f.cacher->watcher_index.group_count, 1);
	put_pod(&f, "ns", "x", "one", NULL);
	cacher_fixture_settle(&f);
	assert_int_equal(later->count, 2);
	close_recorder(&f, later);
	assert_int_equal(f.cacher->watcher_index.group_count, 0);
	cacher_fixture_teardown(&f);
}

/* One, a member list, one again, none, one: each sees what comes while it is there, also when there is no
 * memory for the member list. */
static void torture_one_member_and_a_list(void **state)
{
	unsigned nth = 1;
	bool	 failed = true;

	for (; failed; nth++) {
		struct cacher_fixture	f;
		struct vd_watch_options options;
		struct recorder	       *r[6];

		cacher_fixture_setup(&f, 3);
		for (unsigned i = 0; i < VDI_ARRAY_SIZE(r); i++)
			r[i] = calloc(1, sizeof *r[i]);
		options = of_app(&f, "app=one");
		for (unsigned i = 0; i < VDI_ARRAY_SIZE(r); i++)
			assert_status(recorder_open(&f, r[i], &options, NULL), VD_OK);
		/* Groups, subscriptions, member list. */
		vdi_alloc_fail_nth(nth, 1);
		cacher_fixture_settle(&f);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		for (unsigned left = VDI_ARRAY_SIZE(r); left > 0; left--) {
			put_pod(&f, "ns", "x", "one", NULL);
			put_pod(&f, "ns", "x", "one", NULL);
			cacher_fixture_settle(&f);
			for (unsigned i = 0; i < left; i++) {
				if (r[i]->ended)
					assert_status(r[i]->reason, VD_NOMEM);
				else
					assert_int_equal(r[i]->count, 2 * (VDI_ARRAY_SIZE(r) - left + 1));
			}
			/* The first one, so that others take its place. */
			recorder_close(&f, r[0]);
			free(r[0]);
			memmove(r, r + 1, (left - 1) * sizeof *r);
		}
		assert_int_equal(f.cacher->watcher_index.group_count, 0);
		cacher_fixture_teardown(&f);
	}
	assert_true(nth > 3);
}

/* Alone there is no limit noted, in a member list there is, and the member list may come when somebody lags
 * already: the watcher ends at the same event. */
static void t128_a_stuck_watcher_ends_alone_and_in_a_list(void **state)
{
	for (unsigned before = 0; before < 3; before++)
		for (unsigned after = 0; after < 3; after++) {
			struct cacher_fixture	f;
			struct recorder	       *well[4], *stuck = calloc(1, sizeof *stuck);
			struct vd_watch_options options;

			cacher_fixture_setup(&f, 4);
			for (unsigned i = 0; i < before; i++)
				well[i] = open_recorder(&f, "app=one", NULL);
			options = of_app(&f, "app=one");
			options.lag_events_max = 10;
			stuck->room = 3;
			assert_status(recorder_open(&f, stuck, &options, NULL), VD_OK);
			cacher_fixture_settle(&f);
			for (unsigned i = 0; i < 13; i++) {
				put_pod(&f, "ns", "x", "one", NULL);
				cacher_fixture_settle(&f);
				if (i == 5)
					for (unsigned k = before; k < before + after; k++)
						well[k] = open_recorder(&f, "app=one", NULL);
			}
			assert_int_equal(stuck->watcher->subscription->has_member_list,
					 before > 0 || after > 1);
			assert_int_equal(stuck->count, 3);
			assert_int_equal(stuck->ended, 0);
			put_pod(&f, "ns", "x", "one", NULL);
			cacher_fixture_settle(&f);
			assert_int_equal(stuck->ended, 1);
			assert_status(stuck->reason, VD_TOO_SLOW);
			for (unsigned i = 0; i < before + after; i++) {
				assert_int_equal(well[i]->count, i < before ? 14 : 8);
				close_recorder(&f, well[i]);
			}
			close_recorder(&f, stuck);
			cacher_fixture_teardown(&f);
		}
}

/* One that does not even take its whole initial state lags like any other: it ends at the same event alone
 * and in a member list that was checked long ago. */
static void t128_who_is_stuck_in_its_state_ends_too(void **state)
{
	unsigned ended_after[2] = { 0 };

	for (unsigned list = 0; list < 2; list++) {
		struct cacher_fixture	f;
		struct recorder	       *well[3], *stuck = calloc(1, sizeof *stuck);
		struct vd_watch_options options;

		cacher_fixture_setup(&f, 5);
		put_pod(&f, "ns", "x", "one", NULL);
		put_pod(&f, "ns", "y", "one", NULL);
		cacher_fixture_settle(&f);
		for (unsigned i = 0; i < 3 * list; i++)
			well[i] = open_recorder(&f, "app=one", NULL);
		for (unsigned i = 0; i < 5; i++)
			put_pod(&f, "ns", "x", "one", NULL);
		cacher_fixture_settle(&f);
		options = of_app(&f, "app=one");
		options.revision = VD_REVISION_ANY;
		options.send_initial_events = VD_TRUE;
		options.lag_events_max = 10;
		stuck->room = 1;
		assert_status(recorder_open(&f, stuck, &options, NULL), VD_OK);
		cacher_fixture_settle(&f);
		assert_int_equal(stuck->count, 1);
		for (unsigned i = 0; i < 30 && !stuck->ended; i++) {
			put_pod(&f, "ns", "x", "one", NULL);
			cacher_fixture_settle(&f);
			ended_after[list]++;
		}
		assert_int_equal(stuck->ended, 1);
		assert_status(stuck->reason, VD_TOO_SLOW);
		for (unsigned i = 0; i < 3 * list; i++)
			close_recorder(&f, well[i]);
		close_recorder(&f, stuck);
		cacher_fixture_teardown(&f);
	}
	assert_int_equal(ended_after[0], 11);
	assert_int_equal(ended_after[1], 11);
}

/* A watch whose place the history has lost ends with that error, although it does not take the error at once
 * and lags ever further. */
static void an_error_that_waits_stays_the_reason(void **state)
{
	struct cacher_fixture	f;
	struct recorder	       *stuck = calloc(1, sizeof *stuck);
	struct vd_watch_options options;

	cacher_fixture_init(&f, 6);
	f.options.history_bytes = 6000;
	cacher_fixture_open(&f, NULL);
	options = of_app(&f, "app=one");
	options.lag_events_max = 100;
	stuck->room = 1;
	assert_status(recorder_open(&f, stuck, &options, NULL), VD_OK);
	for (unsigned i = 0; i < 60; i++) {
		put_pod(&f, "ns", "x", "one", NULL);
		cacher_fixture_settle(&f);
	}
	assert_int_equal(stuck->count, 1);
	assert_int_equal(stuck->ended, 0);
	vd_watcher_resume(stuck->watcher); /* it takes nothing, not even the error */
	cacher_fixture_settle(&f);
	assert_int_equal(stuck->count, 1);
	for (unsigned i = 0; i < 150; i++)
		put_pod(&f, "ns", "x", "one", NULL);
	cacher_fixture_settle(&f);
	assert_int_equal(stuck->ended, 0);
	stuck->room = 100;
	vd_watcher_resume(stuck->watcher);
	cacher_fixture_settle(&f);
	assert_int_equal(stuck->count, 2);
	assert_int_equal(stuck->events[1].type, VD_WATCH_ERROR);
	assert_status(stuck->events[1].code, VD_EXPIRED);
	assert_int_equal(stuck->ended, 1);
	assert_status(stuck->reason, VD_EXPIRED);
	close_recorder(&f, stuck);
	cacher_fixture_teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_idle_watcher_of_its_own_selectors_is_two_blocks),
		cmocka_unit_test(r552_subscriptions_of_a_group_come_and_go),
		cmocka_unit_test(torture_one_member_and_a_list),
		cmocka_unit_test(t128_a_stuck_watcher_ends_alone_and_in_a_list),
		cmocka_unit_test(t128_who_is_stuck_in_its_state_ends_too),
		cmocka_unit_test(an_error_that_waits_stays_the_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
