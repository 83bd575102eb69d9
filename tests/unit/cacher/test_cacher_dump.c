/* The dump of a cacher: valid JSON whatever happens meanwhile, rows of those who lag, undecodable keys, and
 * no leak when memory fails. */
#include "cacher_fixture.h"

#include "cacher.h"
#include "cacher_dump.h"
#include "env.h"
#include "feed_store.h"
#include "json_scan.h"

struct dumped {
	unsigned  count;
	vd_status status;
	char	  text[65536];
};

static void dumped(void *arg, vd_status status, struct vd_bytes json)
{
	struct dumped *dump = arg;

	dump->count++;
	dump->status = status;
	assert_true(json.size < sizeof dump->text);
	memcpy(dump->text, json.data ? json.data : "", json.size);
	dump->text[json.size] = 0;
}

static const char *dump_of(struct cacher_fixture *f, struct dumped *dump)
{
	*dump = (struct dumped) { 0 };
	assert_int_equal(vdi_cacher_dump(f->cacher, dumped, dump), VD_OK);
	cacher_fixture_settle(f);
	assert_int_equal(dump->count, 1);
	assert_int_equal(dump->status, VD_OK);
	assert_int_equal(vdi_json_validate(vd_bytes_of(dump->text), NULL, NULL), VD_OK);
	return dump->text;
}

static int64_t ends(struct cacher_fixture *f, enum vdi_end end)
{
	return vdi_metric_value(f->cacher->metrics.ends[end]);
}

static void the_dump_names_who_lags(void **state)
{
	static struct recorder	recorders[3];
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct cacher_fixture	f;
	struct dumped	       *dump = malloc(sizeof *dump);

	cacher_fixture_setup(&f, 5);
	memset(recorders, 0, sizeof recorders);
	put_pod(&f, "a", "x", "web", "n1");
	cacher_fixture_settle(&f);
	options.revision = vd_cacher_revision(f.cacher);
	options.label_selector = vd_bytes_of("app=web");
	for (size_t i = 0; i < 3; i++) {
		recorders[i].room = i == 1 ? 1 : 100;
		assert_int_equal(recorder_open(&f, &recorders[i], &options, NULL), VD_OK);
	}
	cacher_fixture_settle(&f);
	for (int i = 0; i < 5; i++)
		put_pod(&f, "a", "x", "web", i % 2 ? "n1" : "n2");
	cacher_fixture_settle(&f);
	dump_of(&f, dump);
	assert_non_null(strstr(dump->text, "\"ready\":true"));
	assert_non_null(strstr(dump->text, "\"reflector\":{\"phase\":\"watching\",\"relists\":"));
	assert_non_null(strstr(dump->text, "\"objects\":1,"));
	assert_non_null(strstr(dump->text, "\"live\":2,\"behind\":1,\"blocked\":1"));
	assert_non_null(
		strstr(dump->text, "\"slowest\":[{\"state\":\"blocked\",\"watchers\":1,\"lagEvents\":4,"));
	assert_non_null(strstr(dump->text, "\"labelSelector\":\"app=web\""));
	{
		char newest[64];

		snprintf(newest, sizeof newest, "\"newest\":%lld,", (long long) vd_cacher_revision(f.cacher));
		assert_non_null(strstr(dump->text, newest));
		assert_null(strstr(dump->text, "\"name\":\"\"")); /* what was not asked for is not shown */
		assert_null(strstr(dump->text, "\"namespace\":\"\""));
	}
	assert_int_equal(ends(&f, VDI_END_CANCELED), 0);
	for (size_t i = 0; i < 3; i++)
		recorder_close(&f, &recorders[i]);
	assert_int_equal(ends(&f, VDI_END_CANCELED), 3);
	cacher_fixture_teardown(&f);
	free(dump);
}

static void open_blocked(struct cacher_fixture *f, struct recorder *recorder, const char *labels)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;

	memset(recorder, 0, sizeof *recorder);
	recorder->room = 1;
	options.revision = vd_cacher_revision(f->cacher);
	options.label_selector = vd_bytes_of(labels);
	assert_status(recorder_open(f, recorder, &options, NULL), VD_OK);
}

__attribute__((format(printf, 2, 3))) static void expect_in(const struct dumped *dump, const char *format,
							    ...)
{
	char	expected[1024];
	va_list arguments;

	va_start(arguments, format);
	(void) vsnprintf(expected, sizeof expected, format, arguments);
	va_end(arguments);
	if (strstr(dump->text, expected) == NULL)
		fail_msg("%s is not in %s", expected, dump->text);
}

static void drop_list(void *arg, vd_status status, struct vd_list *list, const struct vd_error *error)
{
	vd_list_free(list);
}

/* Every number is the one that it is called. */
static void the_dump_counts_what_is_there(void **state)
{
	struct vd_list_options	options = VD_LIST_OPTIONS_INIT;
	struct cacher_fixture	f;
	struct dumped	       *dump = malloc(sizeof *dump);
	struct vdi_watch_cache *cache;
	struct vd_list	       *list;
	vd_rev			first, second, last;

	cacher_fixture_init(&f, 11);
	f.options.no_backfill = true;
	first = put_pod(&f, "a", "x", NULL, NULL);
	cacher_fixture_open(&f, NULL);
	vdi_sim_advance(f.env, VD_SECONDS(3));
	second = put_pod(&f, "a", "y", NULL, NULL);
	vdi_sim_advance(f.env, VD_SECONDS(4));
	last = put_pod(&f, "b", "z", NULL, NULL);
	vdi_sim_advance(f.env, VD_SECONDS(5));
	options.revision = second;
	options.match = VD_MATCH_EXACT;
	assert_status(vd_cacher_list_wait(f.cacher, &options, &list, NULL), VD_OK);
	vd_list_free(list);
	options.revision = last + 100;
	options.match = VD_MATCH_UNSET;
	for (unsigned i = 0; i < 2; i++)
		assert_status(vd_cacher_list(f.cacher, &options, drop_list, NULL, NULL), VD_OK);
	dump_of(&f, dump);
	cache = &f.cacher->watch_cache;
	expect_in(dump, "{\"ready\":true,\"state\":\"ready\",\"stateSeconds\":12,\"generation\":1,\"res");
	expect_in(dump,
		  "\"resourceVersion\":%lld,\"listResourceVersion\":%lld,\"objects\":3,\"objectBytes\":%lld,",
		  (long long) last, (long long) first, (long long) cache->store.bytes);
	expect_in(dump,
		  "\"history\":{\"oldest\":%lld,\"newest\":%lld,\"events\":2,\"bytes\":%lld,\"capacity\":%d,"
		  "\"bytesMax\":%lld,\"spanSeconds\":9},\"freshWaiters\":2,\"snapshots\":1,",
		  (long long) first, (long long) last, (long long) cache->history.bytes,
		  VDI_HISTORY_CAPACITY_MIN, (long long) f.options.history_bytes);
	expect_in(dump, "\"reflector\":{\"phase\":\"watching\",\"relists\":0,\"resumes\":0},\"watchChan\":{");
	expect_in(dump, "\"consistency\":{\"status\":\"none\",\"success\":0,\"failure\":0,\"error\":0},");
	expect_in(dump,
		  "\"watchers\":{\"count\":0,\"groups\":0,\"deliveryWorkers\":0,\"live\":0,\"behind\":0,"
		  "\"blocked\":0,"
		  "\"ends\":{\"closed\":0,\"canceled\":0,\"timeout\":0,\"expired\":0,\"too_slow\":0,"
		  "\"error\":0},\"slowest\":[]},\"quarantined\":{\"count\":0,\"total\":0,\"keys\":[]}}");
	vdi_sim_advance(f.env, VD_SECONDS(451));
	dump_of(&f, dump);
	expect_in(dump,
		  "\"consistency\":{\"status\":\"success\",\"resourceVersion\":%lld,\"digest\":\"%llx\","
		  "\"success\":1,\"failure\":0,\"error\":0},",
		  (long long) last, (unsigned long long) f.cacher->consistency.result_digest);
	expect_in(dump, "\"freshWaiters\":0,");
	cacher_fixture_teardown(&f);
	free(dump);
}

/* A cache that lists again says why; each of its streams that broke counts as what followed. */
static void the_dump_says_why_it_lists_again(void **state)
{
	struct cacher_fixture f;
	struct dumped	     *dump = malloc(sizeof *dump);
	struct vd_store	     *feed;

	cacher_fixture_init(&f, 12);
	f.options.no_backfill = true;
	feed = feed_store_new(f.env);
	cacher_fixture_open(&f, feed);
	feed_break(feed, VD_UNAVAILABLE);
	vdi_sim_advance(f.env, VD_SECONDS(5));
	dump_of(&f, dump);
	expect_in(dump, "\"generation\":1,\"resourceVersion\":");
	expect_in(dump, "\"relists\":0,\"resumes\":1},\"watchChan\":{");
	expect_in(dump, "\"history\":{\"oldest\":1,\"newest\":0,\"events\":0,\"bytes\":0,");
	expect_in(dump, "\"spanSeconds\":0},\"freshWaiters\":0,\"snapshots\":0,");
	feed_break(feed, VD_EXPIRED);
	cacher_fixture_settle(&f);
	dump_of(&f, dump);
	expect_in(dump,
		  "{\"ready\":false,\"state\":\"pending\",\"stateSeconds\":0,\"generation\":1,\"lastError\":"
		  "\"The resourceVersion for the provided watch is too old.\",");
	expect_in(dump, "\"reflector\":{\"phase\":\"listing\",\"relists\":1,\"resumes\":1},\"consistency\":");
	vdi_sim_advance(f.env, VD_SECONDS(5));
	dump_of(&f, dump);
	expect_in(dump, "{\"ready\":true,\"state\":\"ready\",");
	expect_in(dump, "\"generation\":2,\"resourceVersion\":");
	f.cacher = vd_cacher_close_wait(f.cacher);
	feed_store_free(feed);
	cacher_fixture_teardown(&f);
	free(dump);
}

/* On the threads of the cacher and of an executor: who is up to date, who begins, who is behind, who
 * fails. */
static void the_dump_shows_the_states_of_all_watches(void **state)
{
	enum { LIVE, LIVE_TOO, BEGINS, BLOCKED, FAILS, COUNT };
	static struct recorder recorders[COUNT];

	for (unsigned served = 0; served < 2; served++) {
		struct cacher_fixture f;
		struct dumped	     *dump = malloc(sizeof *dump);
		char		      executor[32] = "";

		cacher_fixture_init(&f, 13);
		f.options.no_backfill = true;
		put_pod(&f, "a", "x", "web", NULL);
		cacher_fixture_open(&f, NULL);
		memset(recorders, 0, sizeof recorders);
		for (unsigned i = 0; i < COUNT; i++) {
			static const char *const labels[COUNT] = { "app=web", "app=web", "app!=db", "app=web",
								   "!none" };
			struct vd_watch_options	 options = VD_WATCH_OPTIONS_INIT;

			options.label_selector = vd_bytes_of(labels[i]);
			options.revision = i == FAILS  ? 1 :
					   i == BEGINS ? VD_REVISION_ANY :
							 vd_cacher_revision(f.cacher);
			assert_status(recorder_open(&f, &recorders[i], &options,
						    served ? vdi_env_executor(f.env) : NULL),
				      VD_OK);
			recorders[i].room = i > LIVE_TOO ? 0 : SIZE_MAX;
		}
		cacher_fixture_settle(&f);
		put_pod(&f, "a", "x", "web", "n1");
		cacher_fixture_settle(&f);
		dump_of(&f, dump);
		if (served)
			(void) snprintf(executor, sizeof executor, ",\"executor\":\"%u\"",
					vdi_env_executor_number(f.env, vdi_env_executor(f.env)->executor));
		expect_in(dump,
			  "\"watchers\":{\"count\":5,\"groups\":3,\"deliveryWorkers\":%u,\"live\":2,"
			  "\"behind\":3,"
			  "\"blocked\":3,",
			  served);
		expect_in(dump,
			  "{\"state\":\"live\",\"watchers\":2,\"lagEvents\":0,\"lagBytes\":0%s,"
			  "\"labelSelector\":\"app=web\"}",
			  executor);
		expect_in(dump, "{\"state\":\"blocked\",\"watchers\":1,\"lagEvents\":1,");
		expect_in(dump, "{\"state\":\"initial, blocked\",\"watchers\":1,\"lagEvents\":1,");
		expect_in(dump, "{\"state\":\"failing\",\"watchers\":1,\"lagEvents\":1,");
		for (unsigned i = 0; i < COUNT; i++)
			recorder_close(&f, &recorders[i]);
		cacher_fixture_teardown(&f);
		free(dump);
	}
}

/* Each restriction of a watch is shown under its own name, and only those that it has. */
static void the_dump_shows_what_a_watch_asked_for(void **state)
{
	static const struct {
		const char *namespace_name, *name, *labels, *fields, *shards, *shown;
	} rows[] = {
		{ "", "", "", "", "", "\"lagBytes\":0}" },
		{ "a", "", "", "", "", "\"lagBytes\":0,\"namespace\":\"a\"}" },
		{ "a", "x", "", "", "", "\"lagBytes\":0,\"namespace\":\"a\",\"name\":\"x\"}" },
		{ "", "", "app=web", "", "", "\"lagBytes\":0,\"labelSelector\":\"app=web\"}" },
		{ "", "", "", "spec.nodeName=n1", "",
		  "\"lagBytes\":0,\"fieldSelector\":\"spec.nodeName=n1\"}" },
		{ "", "", "", "",
		  "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')",
		  "\"lagBytes\":0,\"shardSelector\":\"shardRange(object.metadata.uid, '0x0000000000000000', "
		  "'0x8000000000000000')\"}" },
	};
	static struct recorder recorder;
	struct dumped	      *dump = malloc(sizeof *dump);

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
		struct cacher_fixture	f;

		memset(&recorder, 0, sizeof recorder);
		cacher_fixture_setup(&f, 5);
		put_pod(&f, "a", "x", "web", "n1");
		cacher_fixture_settle(&f);
		options.namespace_name = vd_bytes_of(rows[i].namespace_name);
		options.name = vd_bytes_of(rows[i].name);
		options.label_selector = vd_bytes_of(rows[i].labels);
		options.field_selector = vd_bytes_of(rows[i].fields);
		options.shard_selector = vd_bytes_of(rows[i].shards);
		assert_status(recorder_open(&f, &recorder, &options, NULL), VD_OK);
		cacher_fixture_settle(&f);
		dump_of(&f, dump);
		if (strstr(dump->text, rows[i].shown) == NULL)
			fail_msg("%s is not in %s", rows[i].shown, dump->text);
		recorder_close(&f, &recorder);
		cacher_fixture_teardown(&f);
	}
	free(dump);
}

/* Who holds more bytes comes first, although it are fewer events; and what the stream has done is shown. */
static void the_dump_sorts_by_what_is_held(void **state)
{
	static struct recorder recorders[2];
	struct cacher_fixture  f;
	struct dumped	      *dump = malloc(sizeof *dump);
	const char	      *few, *many;
	char		       node[400];

	memset(node, 'n', sizeof node - 1);
	node[sizeof node - 1] = 0;
	for (unsigned swapped = 0; swapped < 2; swapped++) {
		cacher_fixture_setup(&f, 9);
		open_blocked(&f, &recorders[swapped], "app=web");
		open_blocked(&f, &recorders[!swapped], "app=db");
		cacher_fixture_settle(&f);
		for (int i = 0; i < 4; i++)
			put_pod(&f, "a", "x", "web", node);
		for (int i = 0; i < 5; i++)
			put_pod(&f, "a", "y", "db", NULL);
		cacher_fixture_settle(&f);
		dump_of(&f, dump);
		assert_non_null(strstr(dump->text, "\"watchChan\":{\"raw\":{\"len\":0,\"high\":"));
		assert_non_null(strstr(dump->text, "\"events\":9,\"bookmarks\":"));
		few = strstr(dump->text, "\"lagEvents\":3,");
		many = strstr(dump->text, "\"lagEvents\":4,");
		assert_true(few && many && few < many);
		for (size_t i = 0; i < 2; i++)
			recorder_close(&f, &recorders[i]);
		cacher_fixture_teardown(&f);
	}
	free(dump);
}

/* Of more watchers than are shown, those that lag least are left out, whichever came first. */
static void the_dump_shows_those_who_lag_most(void **state)
{
	enum { count = VDI_DUMP_WATCHERS_MAX + 5 };
	static struct recorder recorders[count];

	for (int newest_lags = 0; newest_lags < 2; newest_lags++) {
		struct cacher_fixture f;
		struct dumped	     *dump = malloc(sizeof *dump);
		char		      app[16], text[64];

		cacher_fixture_setup(&f, 9);
		for (unsigned i = 0; i < count; i++) {
			(void) snprintf(text, sizeof text, "app=a%u", i);
			open_blocked(&f, &recorders[i], text);
		}
		cacher_fixture_settle(&f);
		for (unsigned i = 0; i < count; i++) {
			bool lags = newest_lags ? i >= 5 : i < count - 5;

			(void) snprintf(app, sizeof app, "a%u", i);
			for (int n = 0; n < (lags ? 4 : 3); n++)
				put_pod(&f, "a", app, app, NULL);
		}
		cacher_fixture_settle(&f);
		dump_of(&f, dump);
		for (unsigned i = 0; i < count; i++) {
			bool lags = newest_lags ? i >= 5 : i < count - 5;

			(void) snprintf(text, sizeof text, "\"labelSelector\":\"app=a%u\"", i);
			if ((strstr(dump->text, text) != NULL) != lags)
				fail_msg("%s", text);
		}
		for (size_t i = 0; i < count; i++)
			recorder_close(&f, &recorders[i]);
		cacher_fixture_teardown(&f);
		free(dump);
	}
}

static void o20_undecodable_keys_are_listed_until_they_are_readable(void **state)
{
	struct cacher_fixture f;
	struct dumped	     *dump = malloc(sizeof *dump);
	vd_rev		      revision;
	char		      key[64];

	cacher_fixture_init(&f, 6);
	f.options.skip_undecodable = true;
	cacher_fixture_open(&f, NULL);
	snprintf(key, sizeof key, "%sa/bad", f.options.key_prefix);
	assert_int_equal(vd_store_put_wait(f.store, vd_bytes_of(key), vd_bytes_of("{"), &revision, NULL),
			 VD_OK);
	cacher_fixture_settle(&f);
	dump_of(&f, dump);
	assert_non_null(strstr(dump->text, "\"quarantined\":{\"count\":1,\"total\":1,\"keys\":[{\"key\":\""));
	assert_non_null(strstr(dump->text, "a/bad"));
	put_pod(&f, "a", "bad", NULL, NULL);
	cacher_fixture_settle(&f);
	assert_non_null(strstr(dump_of(&f, dump), "\"quarantined\":{\"count\":0,\"total\":1,\"keys\":[]}"));
	cacher_fixture_teardown(&f);
	free(dump);
}

/* Who leaves takes no other with it, wherever it stands; who comes again stands once. */
static void o20_undecodable_keys_leave_one_by_one(void **state)
{
	static const char *const keys[] = { "/a", "/b", "/c" };

	for (size_t gone = 0; gone < VDI_ARRAY_SIZE(keys); gone++) {
		struct vdi_quarantine quarantine;
		struct vdi_buffer     text;

		vdi_quarantine_init(&quarantine);
		for (size_t i = 0; i < 2 * VDI_ARRAY_SIZE(keys); i++)
			vdi_quarantine_add(&quarantine, vd_bytes_of(keys[i % 3]), (vd_rev) i, "torn");
		assert_int_equal(vdi_quarantine_count(&quarantine), VDI_ARRAY_SIZE(keys));
		vdi_quarantine_remove(&quarantine, vd_bytes_of(keys[gone]),
				      0); /* an older state: what came later cannot be read */
		assert_int_equal(vdi_quarantine_count(&quarantine), VDI_ARRAY_SIZE(keys));
		vdi_quarantine_remove(&quarantine, vd_bytes_of(keys[gone]), 10);
		vdi_quarantine_remove(&quarantine, vd_bytes_of("/never"), 10);
		vdi_buffer_init(&text, SIZE_MAX);
		vdi_quarantine_dump(&quarantine, 10, &text);
		vdi_buffer_append_char(&text, 0);
		assert_int_equal(vdi_quarantine_count(&quarantine), VDI_ARRAY_SIZE(keys) - 1);
		for (size_t i = 0; i < VDI_ARRAY_SIZE(keys); i++)
			assert_int_equal(strstr(vdi_buffer_bytes(&text).data, keys[i]) != NULL, i != gone);
		vdi_buffer_fini(&text);
		vdi_quarantine_fini(&quarantine);
	}
}

static void r717_stages_and_r703_returned_objects_are_counted(void **state)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	struct cacher_fixture  f;
	struct vd_list	      *list;

	cacher_fixture_setup(&f, 7);
	put_pod(&f, "a", "x", NULL, NULL);
	put_pod(&f, "a", "y", NULL, NULL);
	cacher_fixture_settle(&f);
	assert_int_equal(vdi_metric_value(f.cacher->metrics.dispatch_total), 2);
	assert_int_equal(vdi_metric_value(f.cacher->metrics.dispatch_storage_to_cache), 2);
	assert_int_equal(vdi_metric_value(f.cacher->metrics.dispatch_cache_to_watcher), 2);
	assert_int_equal(vd_cacher_list_wait(f.cacher, &options, &list, NULL), VD_OK);
	while (vd_list_next(list))
		continue;
	vd_list_free(list);
	assert_int_equal(vdi_metric_value(f.cacher->metrics.list_returned), 2);
	assert_int_equal(vdi_metric_value(f.cacher->metrics.consistent_reads), 1); /* */
	assert_int_equal(vdi_metric_value(f.cacher->metrics.consistent_reads_failed), 0);
	cacher_fixture_teardown(&f);
}

static void torture_a_dump_without_memory_answers_all_the_same(void **state)
{
	struct cacher_fixture  f;
	static struct recorder slow;
	struct dumped	      *dump = malloc(sizeof *dump);

	cacher_fixture_setup(&f, 8);
	open_blocked(&f, &slow, "app=web");
	cacher_fixture_settle(&f);
	for (int i = 0; i < 3; i++)
		put_pod(&f, "a", "x", "web", NULL);
	cacher_fixture_settle(&f);
	for (uint64_t nth = 1; nth < 40; nth++) {
		vd_status status;

		*dump = (struct dumped) { 0 };
		vdi_alloc_fail_nth(nth, 1);
		status = vdi_cacher_dump(f.cacher, dumped, dump);
		cacher_fixture_settle(&f);
		vdi_alloc_fail_nth(0, 0);
		assert_int_equal(dump->count, status == VD_OK);
		if (status == VD_OK && dump->status == VD_OK) {
			assert_int_equal(vdi_json_validate(vd_bytes_of(dump->text), NULL, NULL), VD_OK);
			assert_non_null(strstr(dump->text, "\"state\":\"blocked\"")); /* whole, or none */
		} else {
			assert_int_equal(status == VD_OK ? dump->status : status, VD_NOMEM);
		}
	}
	recorder_close(&f, &slow);
	cacher_fixture_teardown(&f);
	free(dump);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_dump_names_who_lags),
		cmocka_unit_test(the_dump_counts_what_is_there),
		cmocka_unit_test(the_dump_says_why_it_lists_again),
		cmocka_unit_test(the_dump_shows_the_states_of_all_watches),
		cmocka_unit_test(the_dump_shows_what_a_watch_asked_for),
		cmocka_unit_test(the_dump_sorts_by_what_is_held),
		cmocka_unit_test(the_dump_shows_those_who_lag_most),
		cmocka_unit_test(o20_undecodable_keys_are_listed_until_they_are_readable),
		cmocka_unit_test(o20_undecodable_keys_leave_one_by_one),
		cmocka_unit_test(r717_stages_and_r703_returned_objects_are_counted),
		cmocka_unit_test(torture_a_dump_without_memory_answers_all_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
