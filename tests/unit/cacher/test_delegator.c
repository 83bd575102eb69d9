/* Reads: which are answered by the cache and which by the store, and what they say. */
#include "cacher_fixture.h"

#include "cache_list.h"
#include "cacher.h"
#include "delegator.h"
#include "env.h"
#include "feed_store.h"

static struct vd_list_options list_all(void)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;

	return options;
}

static const char *names_of(struct vd_list *list)
{
	static char	  text[4096];
	size_t		  size = 0;
	struct vd_object *object;

	text[0] = 0;
	while ((object = vd_list_next(list)))
		size += (size_t) snprintf(text + size, sizeof text - size, "%s%.*s", size ? " " : "",
					  (int) vd_object_name(object).size,
					  (const char *) vd_object_name(object).data);
	return text;
}

static void assert_list(struct cacher_fixture *f, const struct vd_list_options *options, vd_rev revision,
			const char *names)
{
	struct vd_list *list = NULL;
	struct vd_error error;

	assert_status(vd_cacher_list_wait(f->cacher, options, &list, &error), VD_OK);
	assert_string_equal(names_of(list), names);
	assert_int_equal(vd_list_revision(list), revision);
	vd_list_free(list);
}

static void r471_r475_lists_and_pages(void **state)
{
	struct cacher_fixture  f;
	struct vd_list_options options = list_all();
	struct vd_list	      *list = NULL, *second = NULL;
	struct vd_error	       error;
	char		       token[512];
	vd_rev		       last;

	cacher_fixture_setup(&f, 3);
	put_pod(&f, "a", "p1", "web", NULL);
	put_pod(&f, "a", "p2", "db", NULL);
	put_pod(&f, "b", "p3", "web", "n1");
	last = put_pod(&f, "c", "p4", "web", "n2");
	/* RV "": as new as the store. */
	assert_list(&f, &options, last, "p1 p2 p3 p4");
	options.namespace_name = vd_bytes_of("a");
	assert_list(&f, &options, last, "p1 p2");
	options.namespace_name = VD_BYTES_NONE;
	options.label_selector = vd_bytes_of("app=web");
	assert_list(&f, &options, last, "p1 p3 p4");
	options.field_selector = vd_bytes_of("spec.nodeName=n1");
	assert_list(&f, &options, last, "p3");
	options.label_selector = options.field_selector = VD_BYTES_NONE;
	options.name = vd_bytes_of("p3");
	options.namespace_name = vd_bytes_of("b");
	assert_list(&f, &options, last, "p3");
	/* Pages at one revision, whatever happens between. */
	options = list_all();
	options.limit = 3;
	assert_status(vd_cacher_list_wait(f.cacher, &options, &list, &error), VD_OK);
	assert_int_equal(vd_list_remaining(list), 1);
	assert_string_equal(names_of(list), "p1 p2 p3");
	snprintf(token, sizeof token, "%.*s", (int) vd_list_continue(list).size,
		 (const char *) vd_list_continue(list).data);
	vd_list_free(list);
	delete_pod(&f, "c", "p4");
	put_pod(&f, "d", "p5", "web", NULL);
	cacher_fixture_settle(&f);
	options.continue_token = vd_bytes_of(token);
	assert_status(vd_cacher_list_wait(f.cacher, &options, &second, &error), VD_OK);
	assert_string_equal(names_of(second), "p4");
	assert_int_equal(vd_list_revision(second), last);
	assert_int_equal(vd_list_continue(second).size, 0);
	vd_list_free(second);
	/* A limit at RV "0" is ignored. */
	options = list_all();
	options.revision = VD_REVISION_ANY;
	options.limit = 1;
	assert_list(&f, &options, vd_cacher_revision(f.cacher), "p1 p2 p3 p5");
	cacher_fixture_teardown(&f);
}

/* A field selector narrows the scope: nobody else's objects are looked at, as long as no page has to go on
 * from there. */
static void r525_what_a_list_looks_at(void **state)
{
	static const struct {
		int64_t	 limit;
		uint64_t looked;
	} rows[] = { { 0, 2 }, { 10, 5 } };
	struct cacher_fixture f;
	struct vd_list	     *list;

	cacher_fixture_setup(&f, 3);
	for (unsigned i = 0; i < 5; i++) {
		char name[8];

		snprintf(name, sizeof name, "p%u", i);
		put_pod(&f, i < 2 ? "a" : "b", name, NULL, NULL);
	}
	cacher_fixture_settle(&f);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_list_options options = list_all();

		options.field_selector = vd_bytes_of("metadata.namespace=a");
		options.limit = rows[i].limit;
		assert_status(vd_cacher_list_wait(f.cacher, &options, &list, NULL), VD_OK);
		assert_int_equal(vd_list_candidate_count(list), rows[i].looked);
		assert_string_equal(names_of(list), "p0 p1");
		vd_list_free(list);
	}
	cacher_fixture_teardown(&f);
}

static void r472_r448_exact_revisions_are_rebuilt_from_the_history(void **state)
{
	struct cacher_fixture  f;
	struct vd_list_options options = list_all();
	vd_rev		       at[6];

	cacher_fixture_setup(&f, 4);
	at[0] = put_pod(&f, "a", "p1", "web", NULL);
	at[1] = put_pod(&f, "a", "p2", "web", NULL);
	at[2] = put_pod(&f, "a", "p1", "db", NULL);
	at[3] = delete_pod(&f, "a", "p2");
	at[4] = put_pod(&f, "a", "p3", "web", NULL);
	at[5] = put_pod(&f, "a", "p2", "web", NULL);
	cacher_fixture_settle(&f);
	options.match = VD_MATCH_EXACT;
	for (unsigned round = 0; round < 2; round++) {
		options.label_selector = vd_bytes_of("app=web");
		for (unsigned i = 0; i < 6; i++) {
			static const char *const expected[] = { "p1", "p1 p2", "p2", "", "p3", "p2 p3" };

			options.revision = at[round ? 5 - i : i];
			assert_list(&f, &options, options.revision, expected[round ? 5 - i : i]);
		}
	}
	/* The legacy rule: revision and limit without a match. */
	options = list_all();
	options.revision = at[1];
	options.limit = 10;
	assert_list(&f, &options, at[1], "p1 p2");
	cacher_fixture_teardown(&f);
}

/* rules: T-163 */
static void r124_r460_a_future_revision_waits_three_seconds(void **state)
{
	struct cacher_fixture  f;
	struct vd_list_options options = list_all();
	struct vd_list	      *list = NULL;
	struct vd_object      *object = NULL;
	struct vd_error	       error;
	vd_mono		       before;
	char		       message[128];

	cacher_fixture_setup(&f, 5);
	options.revision = put_pod(&f, "a", "p1", NULL, NULL) + 5;
	cacher_fixture_settle(&f);
	before = vd_env_now(f.env);
	assert_status(vd_cacher_list_wait(f.cacher, &options, &list, &error), VD_TOO_LARGE_REVISION);
	assert_true(vd_mono_since(vd_env_now(f.env), before).ns >= VD_SECONDS(3).ns);
	assert_true(vd_mono_since(vd_env_now(f.env), before).ns < VD_MS(3200).ns);
	snprintf(message, sizeof message, "Too large resource version: %lld, current: %lld",
		 (long long) options.revision, (long long) options.revision - 5);
	assert_string_equal(error.message, message);
	assert_int_equal(error.retry_after_s, 1);
	assert_status(vd_cacher_get_wait(f.cacher, vd_bytes_of("a"), vd_bytes_of("p1"), options.revision,
					 &object, &error),
		      VD_TOO_LARGE_REVISION);
	assert_status(vd_cacher_get_wait(f.cacher, vd_bytes_of("a"), vd_bytes_of("p1"), VD_REVISION_ANY,
					 &object, &error),
		      VD_OK);
	vd_object_unref(object);
	assert_status(vd_cacher_get_wait(f.cacher, vd_bytes_of("a"), vd_bytes_of("p1"), VD_REVISION_UNSET,
					 &object, &error),
		      VD_OK);
	vd_object_unref(object);
	assert_status(vd_cacher_get_wait(f.cacher, vd_bytes_of("a"), vd_bytes_of("p9"), VD_REVISION_ANY,
					 &object, &error),
		      VD_NOT_FOUND);
	assert_int_equal(error.current, vd_cacher_revision(f.cacher));
	cacher_fixture_teardown(&f);
}

/* rules */
static void t110_which_source_answers(void **state)
{
	static const struct {
		vd_rev		       revision;
		enum vd_revision_match match;
		int64_t		       limit;
		vd_rev		       token;
		bool		       recursive, has_progress, has_revision;
		enum vdi_list_source   source;
	} rows[] = {
		{ VD_REVISION_UNSET, VD_MATCH_UNSET, 0, 0, true, true, false, VDI_LIST_FROM_CACHE },
		{ VD_REVISION_UNSET, VD_MATCH_UNSET, 0, 0, true, false, false, VDI_LIST_FROM_STORE },
		{ VD_REVISION_UNSET, VD_MATCH_UNSET, 5, 0, true, true, false, VDI_LIST_FROM_CACHE },
		{ VD_REVISION_UNSET, VD_MATCH_UNSET, 0, 0, false, true, false, VDI_LIST_FROM_CACHE },
		{ 0, VD_MATCH_UNSET, 5, 0, true, false, false, VDI_LIST_FROM_CACHE },
		{ 50, VD_MATCH_UNSET, 0, 0, true, false, false, VDI_LIST_FROM_CACHE },
		{ 50, VD_MATCH_UNSET, 5, 0, true, false, true, VDI_LIST_FROM_CACHE },
		{ 50, VD_MATCH_UNSET, 5, 0, true, false, false, VDI_LIST_FROM_STORE },
		{ 50, VD_MATCH_NOT_OLDER_THAN, 5, 0, true, false, false, VDI_LIST_FROM_CACHE },
		{ 50, VD_MATCH_EXACT, 0, 0, true, true, true, VDI_LIST_FROM_CACHE },
		{ 50, VD_MATCH_EXACT, 0, 0, true, true, false, VDI_LIST_FROM_STORE },
		{ 50, VD_MATCH_EXACT, 0, 0, false, true, true, VDI_LIST_FROM_STORE },
		{ 150, VD_MATCH_EXACT, 0, 0, true, true, false, VDI_LIST_FROM_CACHE },
		{ 150, VD_MATCH_EXACT, 0, 0, true, false, false, VDI_LIST_FROM_STORE },
		{ VD_REVISION_UNSET, VD_MATCH_UNSET, 5, 50, true, true, true, VDI_LIST_FROM_CACHE },
		{ VD_REVISION_UNSET, VD_MATCH_UNSET, 5, 50, true, true, false, VDI_LIST_FROM_STORE },
		{ VD_REVISION_UNSET, VD_MATCH_UNSET, 5, -1, true, true, false, VDI_LIST_FROM_CACHE },
		{ VD_REVISION_UNSET, VD_MATCH_UNSET, 5, -1, true, false, false, VDI_LIST_FROM_STORE },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_list_options options = list_all();
		struct vdi_list_plan   plan;
		struct vd_error	       error;

		options.revision = rows[i].revision;
		options.match = rows[i].match;
		options.limit = rows[i].limit;
		assert_status(vdi_list_plan_make(&options, rows[i].token, rows[i].recursive, &plan, &error),
			      VD_OK);
		assert_int_equal(vdi_list_source_of(&plan, 100, rows[i].has_progress, rows[i].has_revision),
				 rows[i].source);
	}
}

static void r150_options_that_make_no_sense(void **state)
{
	static const struct {
		vd_rev		       revision;
		enum vd_revision_match match;
		vd_rev		       token;
		vd_status	       status;
		const char	      *message;
	} rows[] = {
		{ 5, VD_MATCH_UNSET, 7, VD_BAD_REQUEST,
		  "specifying resource version is not allowed when using continue" },
		{ 5, VD_MATCH_UNSET, -1, VD_BAD_REQUEST,
		  "specifying resource version is not allowed when using continue" },
		{ 0, VD_MATCH_UNSET, 7, VD_OK, "" },
		{ VD_REVISION_UNSET, VD_MATCH_UNSET, 7, VD_OK, "" },
		{ 0, VD_MATCH_EXACT, 0, VD_INVALID,
		  "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"" },
		{ VD_REVISION_UNSET, VD_MATCH_EXACT, 0, VD_INVALID,
		  "resourceVersionMatch is forbidden unless resourceVersion is provided" },
		{ VD_REVISION_UNSET, VD_MATCH_NOT_OLDER_THAN, 0, VD_INVALID,
		  "resourceVersionMatch is forbidden unless resourceVersion is provided" },
		{ VD_REVISION_UNSET, VD_MATCH_EXACT, 7, VD_INVALID,
		  "resourceVersionMatch is forbidden when continue is provided" },
		{ -7, VD_MATCH_UNSET, 0, VD_BAD_REQUEST, "invalid resource version: -7" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_list_options options = list_all();
		struct vdi_list_plan   plan;
		struct vd_error	       error = { 0 };

		options.revision = rows[i].revision;
		options.match = rows[i].match;
		assert_status(vdi_list_plan_make(&options, rows[i].token, true, &plan, &error),
			      rows[i].status);
		assert_string_equal(error.message, rows[i].message);
	}
}

struct listed {
	bool		done;
	vd_status	status;
	struct vd_list *list;
};

static void note_list(void *arg, vd_status status, struct vd_list *list, const struct vd_error *error)
{
	*(struct listed *) arg = (struct listed) { true, status, list };
}

/* The store moves without an event of ours: a consistent list asks for progress at once and then every 100
 * ms.
 * rules: R-461 */
static void t153_r465_progress_is_asked_for_while_somebody_waits(void **state)
{
	struct cacher_fixture  f;
	struct vd_store	      *feed;
	struct vd_list_options options = list_all();
	struct listed	       listed = { 0 };
	struct vd_error	       error;
	uint64_t	       asked;

	cacher_fixture_init(&f, 6);
	feed = feed_store_new(f.env);
	cacher_fixture_open(&f, feed);
	vdi_sim_advance(f.env, VD_SECONDS(10));
	asked = feed_progress_requests(feed);
	vdi_sim_advance(f.env, VD_SECONDS(10));
	assert_int_equal(feed_progress_requests(feed), asked);
	feed_hold_progress(feed, true);
	feed_progress(feed);
	assert_status(vd_cacher_list(f.cacher, &options, note_list, &listed, &error), VD_OK);
	vdi_sim_run_until_idle(f.env);
	assert_int_equal(feed_progress_requests(feed), asked + 1);
	assert_false(listed.done);
	vdi_sim_advance(f.env, VD_MS(1010));
	assert_int_equal(feed_progress_requests(feed), asked + 11);
	feed_hold_progress(feed, false);
	vdi_sim_advance(f.env, VD_MS(5));
	assert_true(listed.done);
	assert_status(listed.status, VD_OK);
	assert_int_equal(vd_list_revision(listed.list), 2);
	vd_list_free(listed.list);
	/* Answered: the next one does not sit out the period. */
	listed = (struct listed) { 0 };
	feed_progress(feed);
	assert_status(vd_cacher_list(f.cacher, &options, note_list, &listed, &error), VD_OK);
	vdi_sim_run_until_idle(f.env);
	assert_true(listed.done);
	assert_int_equal(vd_list_revision(listed.list), 3);
	vd_list_free(listed.list);
	f.cacher = vd_cacher_close_wait(f.cacher);
	feed_store_free(feed);
	cacher_fixture_teardown(&f);
}

struct got {
	bool	  done;
	vd_status status;
	vd_rev	  revision;
	vd_rev	  object_revision; /* 0: no object */
	vd_rev	  current;	   /* of the error */
};

static void note_object(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
			const struct vd_error *error)
{
	*(struct got *) arg = (struct got) { true, status, revision, object ? vd_object_revision(object) : 0,
					     error ? error->current : 0 };
}

static const struct vd_store_ops *able_ops;
static unsigned			  progress_failures;

static vd_status fail_progress(struct vd_store_watch *watch)
{
	(void) watch;
	progress_failures++;
	return VD_UNAVAILABLE;
}

/* A request for progress that fails is made again when the next one is due. */
static void r465_errors_of_requests_are_ignored(void **state)
{
	struct cacher_fixture  f;
	struct vd_store	      *feed;
	struct vd_store_ops    unable;
	struct vd_list_options options = list_all();
	struct listed	       listed = { 0 };

	cacher_fixture_init(&f, 16);
	f.options.no_backfill = true; /* the feed knows one watch */
	feed = feed_store_new(f.env);
	cacher_fixture_open(&f, feed);
	able_ops = feed->ops;
	unable = *able_ops;
	unable.watch_progress = fail_progress;
	feed->ops = &unable;
	progress_failures = 0;
	feed_progress(feed);
	assert_status(vd_cacher_list(f.cacher, &options, note_list, &listed, NULL), VD_OK);
	vdi_sim_advance(f.env, VD_MS(1010));
	assert_false(listed.done);
	assert_int_equal(progress_failures, 11);
	assert_status(vd_cacher_ready(f.cacher, NULL), VD_OK);
	feed->ops = able_ops;
	vdi_sim_advance(f.env, VD_MS(101));
	assert_true(listed.done);
	assert_status(listed.status, VD_OK);
	assert_int_equal(vd_list_revision(listed.list), 2);
	assert_int_equal(vd_cacher_revision(f.cacher), 2);
	vd_list_free(listed.list);
	f.cacher = vd_cacher_close_wait(f.cacher);
	feed_store_free(feed);
	cacher_fixture_teardown(&f);
}

/* Lists and gets of different future revisions, asked for in any order: each is answered when its own
 * revision is there, and those that never come after 3 s.
 * rules: R-460 */
static void r460_reads_of_different_future_revisions(void **state)
{
	static const unsigned asked[] = { 5, 2, 9, 2, 1, 20, 4, 7 }; /* revisions ahead; there will be 9 */
	struct cacher_fixture f;
	struct listed	      lists[VDI_ARRAY_SIZE(asked)] = { 0 };
	struct got	      gets[VDI_ARRAY_SIZE(asked)] = { 0 };
	vd_rev		      now;

	cacher_fixture_setup(&f, 11);
	now = put_pod(&f, "a", "p1", NULL, NULL);
	cacher_fixture_settle(&f);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(asked); i++) {
		struct vd_list_options options = list_all();

		options.revision = now + asked[i];
		assert_status(vd_cacher_list(f.cacher, &options, note_list, &lists[i], NULL), VD_OK);
		assert_status(vd_cacher_get(f.cacher, vd_bytes_of("a"), vd_bytes_of("p1"), now + asked[i],
					    note_object, &gets[i]),
			      VD_OK);
	}
	for (unsigned ahead = 1; ahead <= 9; ahead++) {
		assert_int_equal(put_pod(&f, "a", "p1", NULL, NULL), now + ahead);
		cacher_fixture_settle(&f);
		for (size_t i = 0; i < VDI_ARRAY_SIZE(asked); i++) {
			assert_int_equal(lists[i].done, asked[i] <= ahead);
			assert_int_equal(gets[i].done, asked[i] <= ahead);
		}
	}
	vdi_sim_advance(f.env, VD_SECONDS(4));
	for (size_t i = 0; i < VDI_ARRAY_SIZE(asked); i++) {
		assert_status(lists[i].status, asked[i] <= 9 ? VD_OK : VD_TOO_LARGE_REVISION);
		assert_status(gets[i].status, asked[i] <= 9 ? VD_OK : VD_TOO_LARGE_REVISION);
		if (lists[i].list)
			assert_true(vd_list_revision(lists[i].list) >= now + asked[i]);
		vd_list_free(lists[i].list);
	}
	cacher_fixture_teardown(&f);
}

/* A watcher that takes nothing, with more events before it than any queue would hold, delays no read. */
static void w01_a_stuck_watcher_delays_no_consistent_read(void **state)
{
	struct cacher_fixture	f;
	struct recorder	       *stuck = calloc(1, sizeof *stuck);
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct vd_list_options	all = list_all();
	vd_mono			began;

	cacher_fixture_setup(&f, 12);
	assert_status(recorder_open(&f, stuck, &options, NULL), VD_OK);
	cacher_fixture_settle(&f);
	stuck->room = 0;
	for (unsigned i = 0; i < 1200; i++) {
		vd_rev revision = put_pod(&f, "a", "p1", NULL, NULL);

		if (i % 100)
			continue;
		began = vd_env_now(f.env);
		assert_list(&f, &all, revision, "p1");
		assert_true(vd_mono_since(vd_env_now(f.env), began).ns < VD_MS(100).ns);
	}
	assert_int_equal(stuck->count, 0);
	recorder_close(&f, stuck);
	cacher_fixture_teardown(&f);
	free(stuck);
}

/* A page gathers what it gives, however many objects follow; how many those are is counted by ranks. */
static void w04_a_page_gathers_no_more_than_it_gives(void **state)
{
	struct cacher_fixture  f;
	struct vd_list_options options = list_all();
	char		       name[16], token[512];
	unsigned	       left = 400;

	cacher_fixture_setup(&f, 13);
	for (unsigned i = 0; i < left; i++) {
		snprintf(name, sizeof name, "p%03u", i);
		put_pod(&f, "a", name, NULL, NULL);
	}
	cacher_fixture_settle(&f);
	options.limit = 10;
	while (left) {
		struct vd_list *list = NULL;
		struct vd_bytes next;

		assert_status(vd_cacher_list_wait(f.cacher, &options, &list, NULL), VD_OK);
		left -= 10;
		assert_int_equal(list->object_count, 10);
		assert_true(list->object_capacity <= 32);
		assert_int_equal(vd_list_remaining(list), left ? (int64_t) left : -1);
		next = vd_list_continue(list);
		assert_true(next.size < sizeof token);
		if (next.size)
			memcpy(token, next.data, next.size);
		options.continue_token = (struct vd_bytes) { token, next.size };
		vd_list_free(list);
	}
	cacher_fixture_teardown(&f);
}

static const struct vd_store_ops *plain_ops;
static struct {
	int64_t limit;
	vd_rev	revision;
} asked_pages[32];
static size_t asked_count;

static vd_status note_page(struct vd_store *store, const struct vd_range_request *request, vd_range_fn done,
			   void *arg)
{
	if (request->range_end.size && asked_count < VDI_ARRAY_SIZE(asked_pages)) {
		asked_pages[asked_count].limit = request->limit;
		asked_pages[asked_count++].revision = request->revision;
	}
	return plain_ops->range(store, request, done, arg);
}

static vd_status cannot_prove_progress(struct vd_store *store, struct vd_store_status *ret_status)
{
	vd_status status = plain_ops->status(store, ret_status);

	ret_status->progress = false;
	return status;
}

/* Out of the store, one match among 1000 objects is found in few reads: pages double while they leave the
 * answer short, all at the first one's revision. A page that is full has a token, a short one has none; no
 * page has more than 10,000.
 * rules: R-156, T-026 */
static void t025_r156_a_rare_object_takes_few_pages(void **state)
{
	struct cacher_fixture  f;
	struct vd_list_options options = list_all();
	struct vd_store_ops    ops;
	struct vd_list	      *list;
	char		       name[16];
	vd_rev		       last = 0;

	cacher_fixture_init(&f, 15);
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "p%04u", i);
		last = put_pod(&f, "a", name, i == 990 ? "rare" : "web", NULL);
	}
	plain_ops = f.store->ops;
	ops = *plain_ops;
	ops.status = cannot_prove_progress;
	ops.range = note_page;
	f.store->ops = &ops;
	cacher_fixture_open(&f, NULL);
	options.label_selector = vd_bytes_of("app=rare");
	options.limit = 1;
	asked_count = 0;
	assert_status(vd_cacher_list_wait(f.cacher, &options, &list, NULL), VD_OK);
	assert_true(vd_list_continue(list).size > 0);
	assert_string_equal(names_of(list), "p0990");
	vd_list_free(list);
	assert_int_equal(asked_count, 10);
	for (size_t i = 0; i < asked_count; i++) {
		assert_int_equal(asked_pages[i].limit, 1 << i);
		assert_int_equal(asked_pages[i].revision, i ? last : 0);
	}
	options.limit = 2;
	asked_count = 0;
	assert_status(vd_cacher_list_wait(f.cacher, &options, &list, NULL), VD_OK);
	assert_int_equal(vd_list_continue(list).size, 0);
	assert_string_equal(names_of(list), "p0990");
	vd_list_free(list);
	assert_int_equal(asked_count, 9);
	options.limit = 20000;
	asked_count = 0;
	assert_status(vd_cacher_list_wait(f.cacher, &options, &list, NULL), VD_OK);
	assert_string_equal(names_of(list), "p0990");
	vd_list_free(list);
	assert_int_equal(asked_count, 1);
	assert_int_equal(asked_pages[0].limit, 10000);
	f.store->ops = plain_ops;
	cacher_fixture_teardown(&f);
}

/* Its state is never taken from the history, and never older than the store was: what was compacted or left
 * the history is no reason to refuse it. */
static void h402_a_watch_list_without_a_revision_is_never_expired(void **state)
{
	struct cacher_fixture	f;
	struct recorder	       *r = calloc(1, sizeof *r);
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	vd_rev			last = 0;

	cacher_fixture_init(&f, 14);
	f.options.history_bytes = 1;
	cacher_fixture_open(&f, NULL);
	options.send_initial_events = VD_TRUE;
	options.allow_bookmarks = true;
	for (unsigned i = 0; i < 20; i++) {
		char expected[64];

		for (unsigned k = 0; k < 200; k++)
			last = put_pod(&f, "a", "p1", NULL, NULL);
		vdi_watch_cache_compact(&f.cacher->watch_cache, last, last);
		memset(r, 0, sizeof *r);
		assert_status(recorder_open(&f, r, &options, NULL), VD_OK);
		cacher_fixture_settle(&f);
		snprintf(expected, sizeof expected, "+a/p1@%lld *END@%lld", (long long) last,
			 (long long) last);
		assert_string_equal(recorder_text(r), expected);
		recorder_close(&f, r);
	}
	cacher_fixture_teardown(&f);
	free(r);
}

/* A get is answered when the cache has its revision, by the cache as it is then, with the cache's revision,
 * also when the key is missing. */
static void r470_a_get_carries_the_revision_of_the_cache(void **state)
{
	static const char *const names[] = { "p1", "p9" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(names); i++) {
		bool		      is_missing = i == 1;
		struct cacher_fixture f;
		struct got	      now = { 0 }, later = { 0 };
		vd_rev		      first, last;

		cacher_fixture_setup(&f, 12);
		first = put_pod(&f, "a", "p1", NULL, NULL);
		last = put_pod(&f, "a", "p2", NULL, NULL);
		cacher_fixture_settle(&f);
		/* An older minimum: no wait, and not the revision of the object, nor the asked one. */
		assert_status(vd_cacher_get(f.cacher, vd_bytes_of("a"), vd_bytes_of(names[i]), first - 1,
					    note_object, &now),
			      VD_OK);
		assert_true(now.done);
		assert_status(now.status, is_missing ? VD_NOT_FOUND : VD_OK);
		assert_int_equal(now.revision, last);
		assert_int_equal(now.object_revision, is_missing ? 0 : first);
		assert_int_equal(now.current, is_missing ? last : 0);
		/* A future one: the state of that revision, not the one of the call. */
		assert_status(vd_cacher_get(f.cacher, vd_bytes_of("a"), vd_bytes_of(names[i]), last + 1,
					    note_object, &later),
			      VD_OK);
		cacher_fixture_settle(&f);
		assert_false(later.done);
		assert_int_equal(is_missing ? put_pod(&f, "b", "p3", NULL, NULL) :
					      put_pod(&f, "a", "p1", NULL, NULL),
				 last + 1);
		cacher_fixture_settle(&f);
		assert_true(later.done);
		assert_status(later.status, is_missing ? VD_NOT_FOUND : VD_OK);
		assert_int_equal(later.revision, last + 1);
		assert_int_equal(later.object_revision, is_missing ? 0 : last + 1);
		assert_int_equal(later.current, is_missing ? last + 1 : 0);
		cacher_fixture_teardown(&f);
	}
}

/* T-114, R-583, R-587: a cache that is not ready sends gets and cheap lists to the store and refuses the
 * rest. */
static void t114_r583_r587_reads_while_the_cache_is_filled_again(void **state)
{
	struct cacher_fixture  f;
	struct vd_store	      *feed;
	struct vd_list_options options = list_all();
	struct vd_list	      *list = NULL;
	struct vd_object      *object = NULL;
	struct vd_error	       error;

	cacher_fixture_init(&f, 7);
	f.options.no_backfill = true; /* the feed knows one watch */
	feed = feed_store_new(f.env);
	feed_load(feed, "/registry/pods/a/p1",
		  vd_bytes_of("{\"metadata\":{\"name\":\"p1\",\"namespace\":\"a\"}}"));
	cacher_fixture_open(&f, feed);
	feed_break(feed, VD_EXPIRED);
	cacher_fixture_settle(&f);
	assert_status(vd_cacher_ready(f.cacher, &error), VD_NOT_READY);
	assert_status(vd_cacher_get_wait(f.cacher, vd_bytes_of("a"), vd_bytes_of("p1"), VD_REVISION_UNSET,
					 &object, &error),
		      VD_OK);
	assert_int_equal(vd_object_revision(object), 2);
	vd_object_unref(object);
	assert_status(vd_cacher_get_wait(f.cacher, vd_bytes_of("a"), vd_bytes_of("p1"), VD_REVISION_ANY,
					 &object, &error),
		      VD_OK);
	vd_object_unref(object);
	/* only a page that costs little. */
	assert_status(vd_cacher_list_wait(f.cacher, &options, &list, &error), VD_NOT_READY);
	options.limit = 5;
	assert_status(vd_cacher_list_wait(f.cacher, &options, &list, &error), VD_OK);
	assert_string_equal(names_of(list), "p1");
	vd_list_free(list);
	/* It has to be as new as was asked for, and the store may just be. */
	options.match = VD_MATCH_NOT_OLDER_THAN;
	options.revision = 2;
	assert_list(&f, &options, 2, "p1");
	options.revision = 3;
	assert_status(vd_cacher_list_wait(f.cacher, &options, &list, &error), VD_TOO_LARGE_REVISION);
	assert_string_equal(error.message, "Too large resource version: 3, current: 2");
	assert_int_equal(error.requested, 3);
	assert_int_equal(error.current, 2);
	assert_int_equal(error.retry_after_s, 0);
	options.match = VD_MATCH_UNSET;
	options.revision = VD_REVISION_UNSET;
	options.label_selector = vd_bytes_of("app=web");
	assert_status(vd_cacher_list_wait(f.cacher, &options, &list, &error), VD_NOT_READY);
	f.cacher = vd_cacher_close_wait(f.cacher);
	feed_store_free(feed);
	cacher_fixture_teardown(&f);
}

/* T-111, R-589: a store that cannot prove its progress answers consistent reads itself; T-113: so do single
 * keys from the cache when it can. */
static void t111_t113_r589_consistent_reads_with_and_without_progress(void **state)
{
	for (unsigned progress = 0; progress < 2; progress++) {
		struct cacher_fixture  f;
		struct vd_store	      *feed;
		struct vd_list_options options = list_all();
		uint64_t	       asked;

		cacher_fixture_init(&f, 8);
		feed = feed_store_new(f.env);
		feed_set_progress(feed, progress);
		feed_load(feed, "/registry/pods/a/p1",
			  vd_bytes_of("{\"metadata\":{\"name\":\"p1\",\"namespace\":\"a\"}}"));
		cacher_fixture_open(&f, feed);
		asked = feed_progress_requests(feed);
		feed_progress(feed); /* the store is at 3, the cache at 2 */
		assert_list(&f, &options, 3, "p1");
		options.name = vd_bytes_of("p1");
		options.namespace_name = vd_bytes_of("a");
		assert_list(&f, &options, 3, "p1");
		assert_int_equal(feed_progress_requests(feed) > asked, progress);
		assert_int_equal(vd_cacher_revision(f.cacher), progress ? 3 : 2);
		f.cacher = vd_cacher_close_wait(f.cacher);
		feed_store_free(feed);
		cacher_fixture_teardown(&f);
	}
}

/* A read of the store that cannot even be asked for is answered all the same, once, and leaves nothing.
 * rules: R-589 */
static void torture_reads_of_the_store(void **state)
{
	for (unsigned single = 0; single < 2; single++) {
		struct cacher_fixture  f;
		struct vd_store	      *feed;
		struct vd_list_options options = list_all();
		unsigned	       failed = 0;
		bool		       over = false;

		cacher_fixture_init(&f, 10);
		feed = feed_store_new(f.env);
		feed_set_progress(feed, false);
		feed_load(feed, "/registry/pods/a/p1",
			  vd_bytes_of("{\"metadata\":{\"name\":\"p1\",\"namespace\":\"a\"}}"));
		cacher_fixture_open(&f, feed);
		if (single) {
			options.name = vd_bytes_of("p1");
			options.namespace_name = vd_bytes_of("a");
		}
		for (uint64_t nth = 1; !over; nth++) {
			struct listed listed = { 0 };
			vd_status     status;

			feed_progress(feed); /* the cache is behind, and cannot learn it */
			(void) vdi_alloc_fail_nth(nth, 1);
			status = vd_cacher_list(f.cacher, &options, note_list, &listed, NULL);
			vdi_sim_advance(f.env, VD_SECONDS(10));
			over = !vdi_alloc_failed();
			(void) vdi_alloc_fail_nth(0, 0);
			assert_int_equal(listed.done, status == VD_OK);
			if (status == VD_OK)
				status = listed.status;
			if (over)
				assert_status(status, VD_OK);
			failed += status != VD_OK;
			vd_list_free(listed.list);
		}
		assert_true(failed > 3);
		f.cacher = vd_cacher_close_wait(f.cacher);
		feed_store_free(feed);
		cacher_fixture_teardown(&f);
	}
}

/* T-112, R-589: the cache forgot the revision, the store still has it; when that forgot it too the answer is
 * Expired. */
static void note_compacted(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	assert_status(status, VD_OK);
}

static void t112_r589_an_exact_read_falls_back_to_the_store(void **state)
{
	struct cacher_fixture  f;
	struct vd_list_options options = list_all();
	struct vd_list	      *list = NULL;
	struct vd_error	       error;
	vd_rev		       first, last;

	cacher_fixture_init(&f, 9);
	f.options.no_backfill = true;
	first = put_pod(&f, "a", "p1", NULL, NULL);
	last = put_pod(&f, "a", "p2", NULL, NULL);
	cacher_fixture_open(&f, NULL);
	assert_false(vdi_watch_cache_has_revision(&f.cacher->watch_cache, first));
	options.match = VD_MATCH_EXACT;
	options.revision = first;
	assert_list(&f, &options, first, "p1");
	assert_status(vd_store_compact(f.store, last, false, note_compacted, NULL), VD_OK);
	vdi_sim_run_until_idle(f.env);
	assert_status(vd_cacher_list_wait(f.cacher, &options, &list, &error), VD_EXPIRED);
	cacher_fixture_teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r471_r475_lists_and_pages),
		cmocka_unit_test(r525_what_a_list_looks_at),
		cmocka_unit_test(r472_r448_exact_revisions_are_rebuilt_from_the_history),
		cmocka_unit_test(r124_r460_a_future_revision_waits_three_seconds),
		cmocka_unit_test(r460_reads_of_different_future_revisions),
		cmocka_unit_test(w01_a_stuck_watcher_delays_no_consistent_read),
		cmocka_unit_test(w04_a_page_gathers_no_more_than_it_gives),
		cmocka_unit_test(t025_r156_a_rare_object_takes_few_pages),
		cmocka_unit_test(h402_a_watch_list_without_a_revision_is_never_expired),
		cmocka_unit_test(r470_a_get_carries_the_revision_of_the_cache),
		cmocka_unit_test(t110_which_source_answers),
		cmocka_unit_test(r150_options_that_make_no_sense),
		cmocka_unit_test(t114_r583_r587_reads_while_the_cache_is_filled_again),
		cmocka_unit_test(t111_t113_r589_consistent_reads_with_and_without_progress),
		cmocka_unit_test(torture_reads_of_the_store),
		cmocka_unit_test(t112_r589_an_exact_read_falls_back_to_the_store),
		cmocka_unit_test(r465_errors_of_requests_are_ignored),
		cmocka_unit_test(t153_r465_progress_is_asked_for_while_somebody_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
