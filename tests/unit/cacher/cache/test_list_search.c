/* Searches through many objects with selectors of many terms: lists whose search is left to their receiver,
 * and the initial state of watches, bit by bit. */
#include "cache_list.h"
#include "cacher.h"
#include "cacher_fixture.h"

#define PODS 600
#define TERMS 80

static struct cacher_fixture f;
static char		     wide[TERMS * 8 + 64];	/* fulfilled by all */
static char		     nothing[sizeof wide + 16]; /* by none */
static char		     web[sizeof wide + 16];	/* by every third */

static int set_up(void **state)
{
	size_t size = 0;

	(void) state;
	for (unsigned i = 0; i < TERMS; i++)
		size += (size_t) snprintf(wide + size, sizeof wide - size, "%s!k%u", i ? "," : "", i);
	(void) snprintf(nothing, sizeof nothing, "%s,none", wide);
	(void) snprintf(web, sizeof web, "%s,app=web", wide);
	cacher_fixture_init(&f, 1);
	cacher_fixture_open(&f, NULL);
	for (unsigned i = 0; i < PODS; i++) {
		char name[16];

		(void) snprintf(name, sizeof name, "p%03u", i);
		put_pod(&f, i % 2 ? "a" : "b", name, i % 3 ? "db" : "web", NULL);
	}
	cacher_fixture_settle(&f);
	return 0;
}

static int tear_down(void **state)
{
	(void) state;
	cacher_fixture_teardown(&f);
	return 0;
}

static void take_list(void *arg, vd_status status, struct vd_list *list, const struct vd_error *error)
{
	(void) error;
	assert_status(status, VD_OK);
	*(struct vd_list **) arg = list;
}

static struct vd_list *list_pending(const struct vd_list_options *options)
{
	struct vd_list *list = NULL;

	assert_status(vdi_cacher_list_pending(f.cacher, options, false, take_list, &list, NULL), VD_OK);
	cacher_fixture_settle(&f);
	assert_non_null(list);
	return list;
}

static void assert_same(struct vd_list *left, struct vd_list *right)
{
	struct vd_object *object;

	assert_true(vd_bytes_equal(vd_list_continue(left), vd_list_continue(right)));
	assert_int_equal(vd_list_remaining(left), vd_list_remaining(right));
	assert_int_equal(vd_list_revision(left), vd_list_revision(right));
	while ((object = vd_list_next(left)))
		assert_ptr_equal(object, vd_list_next(right));
	assert_null(vd_list_next(right));
}

static void a_search_that_was_left_finds_the_same(void **state)
{
	static const int64_t limits[] = { 0, 1, 7, 199, 200, 201, 599, 600, 601, 100000 };
	const char *const    selectors[] = { "", "app=web", wide, nothing, web };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(limits); i++)
		for (size_t k = 0; k < VDI_ARRAY_SIZE(selectors); k++) {
			struct vd_list_options options = VD_LIST_OPTIONS_INIT;
			struct vd_list	      *list, *pending;

			options.limit = limits[i];
			options.label_selector = vd_bytes_of(selectors[k]);
			assert_status(vd_cacher_list_wait(f.cacher, &options, &list, NULL), VD_OK);
			pending = list_pending(&options);
			assert_int_equal(vdi_list_is_long(pending), k >= 2);
			assert_status(vdi_list_gather(pending, NULL), VD_OK);
			assert_false(vdi_list_is_long(pending));
			assert_status(vdi_list_gather(pending, NULL), VD_OK); /* nothing is left */
			assert_same(list, pending);
			vd_list_free(list);
			vd_list_free(pending);
		}
}

static void never_called(void *arg, vd_status status, struct vd_list *list, const struct vd_error *error)
{
	(void) arg;
	(void) status;
	(void) error;
	vd_list_free(list);
	fail_msg("a list that was not begun was answered");
}

/* The store finds and decodes all objects on the thread that asks. A thread that has no time for that is told
 * before anything is read. */
static void assert_of_store(struct vd_cacher *cacher, const struct vd_list_options *options)
{
	struct vd_list *list = NULL;

	assert_status(vdi_cacher_list_pending(cacher, options, false, never_called, NULL, NULL), VD_AGAIN);
	assert_status(vdi_cacher_list_pending(cacher, options, true, take_list, &list, NULL), VD_OK);
	assert_non_null(list); /* within the call */
	assert_non_null(vd_list_next(list));
	vd_list_free(list);
}

static void a_list_of_the_store_is_for_a_thread_with_time(void **state)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	struct vd_cacher      *cacher;

	(void) state;
	assert_status(vd_cacher_new(f.env, f.store, &f.options, &cacher, NULL), VD_OK);
	options.limit = 10;
	assert_of_store(cacher, &options); /* the cache is not filled yet */
	cacher_fixture_settle(&f);
	assert_status(vd_cacher_ready(cacher, NULL), VD_OK);
	options.namespace_name = vd_bytes_of("a");
	options.name = vd_bytes_of("p001");
	options.limit = 0;
	options.match = VD_MATCH_EXACT;
	options.revision = 300; /* the cache has no old states of single keys */
	assert_of_store(cacher, &options);
	vd_cacher_close_wait(cacher);
}

static void a_search_may_be_given_up(void **state)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;

	(void) state;
	options.label_selector = vd_bytes_of(wide);
	options.limit = 3;
	vd_list_free(list_pending(&options));
	options.limit = 0;
	vd_list_free(list_pending(&options));
}

static void a_search_needs_memory(void **state)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	bool		       failed = true;

	(void) state;
	options.label_selector = vd_bytes_of(wide);
	options.limit = 300;
	for (uint64_t nth = 1; failed; nth++) {
		struct vd_list *list = list_pending(&options);
		struct vd_error error = { 0 };
		vd_status	status;

		(void) vdi_alloc_fail_nth(nth, 0);
		status = vdi_list_gather(list, &error);
		failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		assert_status(error.code, failed ? VD_NOMEM : VD_OK);
		vd_list_free(list);
	}
}

/* How many handlers ran until the initial state was sent. */
static unsigned count_steps(const char *selector)
{
	static struct recorder	recorder;
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	unsigned		steps = 0;

	memset(&recorder, 0, sizeof recorder);
	recorder.room = RECORDED_MAX;
	options.label_selector = vd_bytes_of(selector);
	options.send_initial_events = VD_TRUE;
	options.allow_bookmarks = true;
	assert_status(recorder_open(&f, &recorder, &options, NULL), VD_OK);
	while (recorder.count == 0 || !recorder.events[recorder.count - 1].end) {
		if (!vdi_sim_step(f.env))
			vdi_sim_advance(f.env, VD_SECONDS(1));
		steps++;
	}
	assert_int_equal(recorder.count, 1);
	recorder_close(&f, &recorder);
	return steps;
}

/* Others have their turn between the parts: 600 times 65 comparisons are three. */
static void an_initial_state_is_searched_bit_by_bit(void **state)
{
	(void) state;
	assert_true(count_steps(nothing) >= count_steps("none") + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_search_that_was_left_finds_the_same),
		cmocka_unit_test(a_list_of_the_store_is_for_a_thread_with_time),
		cmocka_unit_test(a_search_may_be_given_up),
		cmocka_unit_test(a_search_needs_memory),
		cmocka_unit_test(an_initial_state_is_searched_bit_by_bit),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
