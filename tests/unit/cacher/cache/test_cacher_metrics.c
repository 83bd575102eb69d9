/* Every metric of the watch cache and of its storage moves, by as much as happened, under upstream's name. */
#include "cacher_metrics.h"

#include "cacher.h"
#include "cacher_fixture.h"
#include "cacher_gauges.h"
#include "env.h"
#include "feed_store.h"
#include "store_chaos.h"
#include "watchchan_state.h"

/* What /metrics says in the line that begins with start; -2: there is none. */
static double shown(const struct cacher_fixture *f, const char *start)
{
	struct vdi_buffer buffer;
	const char	 *text, *line;
	double		  value = -2;

	vdi_buffer_init(&buffer, SIZE_MAX);
	assert_status(vdi_metrics_render(vdi_env_metrics(f->env), &buffer), VD_OK);
	vdi_buffer_append_char(&buffer, 0);
	text = vdi_buffer_bytes(&buffer).data;
	for (line = strstr(text, start); line; line = strstr(line + 1, start))
		if ((line == text || line[-1] == '\n') && line[strlen(start)] == ' ')
			value = atof(line + strlen(start));
	vdi_buffer_fini(&buffer);
	return value;
}

/* How many lines of /metrics begin with start. */
static size_t lines_of(const struct cacher_fixture *f, const char *start)
{
	struct vdi_buffer buffer;
	size_t		  count = 0;

	vdi_buffer_init(&buffer, SIZE_MAX);
	assert_status(vdi_metrics_render(vdi_env_metrics(f->env), &buffer), VD_OK);
	vdi_buffer_append_char(&buffer, 0);
	for (const char *line = vdi_buffer_bytes(&buffer).data; (line = strstr(line, start)); line++)
		count++;
	vdi_buffer_fini(&buffer);
	return count;
}

#define POD "{group=\"\",resource=\"pods\"}"
#define POD_AND(labels) "{group=\"\",resource=\"pods\"," labels "}"
#define OPERATION(name) "{operation=\"" name "\",group=\"\",resource=\"pods\"}"
static void assert_shown(struct cacher_fixture *f, const char *line, double expected)
{
	if (shown(f, line) != expected)
		fail_msg("%s is %g, not %g", line, shown(f, line), expected);
}

#define DISPATCH_SECONDS "apiserver_watch_events_dispatch_duration_seconds"
#define LITTLE_POD "{\"metadata\":{\"name\":\"x\",\"namespace\":\"a\"}}"

static vd_status list(struct cacher_fixture *f, const struct vd_list_options *options)
{
	struct vd_list *list = NULL;
	struct vd_error error;
	vd_status	status = vd_cacher_list_wait(f->cacher, options, &list, &error);

	while (list && vd_list_next(list))
		continue;
	vd_list_free(list);
	return status;
}

static void r701_r702_r703_r721_r722_lists_by_the_index_they_walk(void **state)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	struct cacher_fixture  f;
	const char *const      labels[] = { "app", NULL };

	cacher_fixture_init(&f, 1);
	f.options.index_labels = labels;
	cacher_fixture_open(&f, NULL);
	for (unsigned i = 0; i < 10; i++) {
		char name[8];

		snprintf(name, sizeof name, "p%u", i);
		put_pod(&f, "a", name, i < 4 ? "web" : "db", i < 2 ? "n1" : "n2");
	}
	cacher_fixture_settle(&f);
	assert_status(list(&f, &options), VD_OK);
	options.label_selector = vd_bytes_of("app=web");
	assert_status(list(&f, &options), VD_OK);
	options.field_selector = vd_bytes_of("spec.nodeName=n1");
	assert_status(list(&f, &options), VD_OK);
	assert_shown(&f, "apiserver_cache_list_total" POD_AND("index=\"\""), 1);
	/* The field has no index: so few are looked at as fast. */
	assert_shown(&f, "apiserver_cache_list_total" POD_AND("index=\"l:app\""), 2);
	assert_shown(&f, "apiserver_cache_list_fetched_objects_total" POD_AND("index=\"\""), 10);
	assert_shown(&f, "apiserver_cache_list_fetched_objects_total" POD_AND("index=\"l:app\""), 8);
	assert_shown(&f, "apiserver_cache_list_returned_objects_total" POD, 16);
	assert_shown(&f, "apiserver_storage_list_total" POD_AND("storage=\"watchcache\",index=\"l:app\""), 2);
	assert_shown(
		&f,
		"apiserver_storage_list_fetched_objects_total" POD_AND("storage=\"watchcache\",index=\"\""),
		10);
	assert_shown(&f, "apiserver_storage_list_evaluated_objects_total" POD_AND("storage=\"watchcache\""),
		     0);
	assert_shown(&f, "apiserver_storage_list_returned_objects_total" POD_AND("storage=\"watchcache\""),
		     16);
	assert_shown(&f, "apiserver_storage_list_total" POD_AND("storage=\"etcd\",index=\"\""), -2);
	cacher_fixture_teardown(&f);
}

#define QUEUE(name, queue) "vedette_queue_" name "{queue=\"watchchan_" queue "\",resource=\"pods\"}"

/* Looked at after each step of each actor: what waits between them is shown, and the most that ever did. */
static void r717_queues_show_what_waits_in_them(void **state)
{
	struct vdi_watchchan_stats stats, most = { 0 };
	struct cacher_fixture	   f;

	cacher_fixture_setup(&f, 13);
	for (unsigned i = 0; i < 20; i++) {
		char name[8];

		snprintf(name, sizeof name, "p%u", i);
		put_pod(&f, "a", name, NULL, NULL);
		do {
			vdi_watchchan_stats_get(f.cacher->reflector.watchchan, &stats);
			most.result_len = VDI_MAX(most.result_len, stats.result_len);
			assert_shown(&f, QUEUE("depth", "raw"), (double) stats.raw_len);
			assert_shown(&f, QUEUE("depth", "result"), (double) stats.result_len);
			assert_shown(&f, QUEUE("depth_max", "raw"), (double) stats.raw_high);
			assert_shown(&f, QUEUE("depth_max", "result"), (double) stats.result_high);
		} while (i % 5 == 4 && vdi_sim_step(f.env));
	}
	assert_true(most.result_len > 0 && stats.raw_high > 0);
	cacher_fixture_teardown(&f);
}

/* whatever field a resource declares, lists by it look at the objects that have the value once
 * they come again, and the absent value is one too. */
static void r443_every_declared_field_has_a_list_index_when_lists_ask_for_it(void **state)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	struct cacher_fixture  f;

	cacher_fixture_setup(&f, 13);
	for (unsigned i = 0; i < 1100; i++) {
		char		key[64], value[160];
		struct vd_error error;
		vd_rev		revision;

		snprintf(key, sizeof key, "/registry/pods/a/p%u", i);
		snprintf(value, sizeof value, "{\"metadata\":{\"name\":\"p%u\",\"namespace\":\"a\"}%s}", i,
			 i < 3 ? ",\"status\":{\"phase\":\"Failed\"}" :
			 i < 5 ? "" :
				 ",\"status\":{\"phase\":\"Running\"}");
		assert_status(
			vd_store_put_wait(f.store, vd_bytes_of(key), vd_bytes_of(value), &revision, &error),
			VD_OK);
	}
	cacher_fixture_settle(&f);
	options.field_selector = vd_bytes_of("status.phase=Failed");
	assert_status(list(&f, &options), VD_OK);
	assert_shown(&f, "apiserver_cache_list_fetched_objects_total" POD_AND("index=\"\""), 1100);
	assert_status(list(&f, &options), VD_OK);
	assert_shown(&f, "apiserver_cache_list_fetched_objects_total" POD_AND("index=\"f:status.phase\""), 3);
	options.field_selector = vd_bytes_of("status.phase=");
	assert_status(list(&f, &options), VD_OK);
	assert_shown(&f, "apiserver_cache_list_fetched_objects_total" POD_AND("index=\"f:status.phase\""), 5);
	assert_shown(&f, "apiserver_cache_list_returned_objects_total" POD, 8);
	cacher_fixture_teardown(&f);
}

/* A list that the store answers: what was read, tested and given; also when it fails. */
static void t082_r162_r721_r732_lists_of_the_store(void **state)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	struct chaos_options   calm = { 0 }, down = { .refuse = 1000 };
	struct cacher_fixture  f;
	struct vd_store	      *chaos;
	vd_rev		       old;

	cacher_fixture_init(&f, 2);
	chaos = chaos_store_new(f.env, f.store, &calm);
	for (unsigned i = 0; i < 7; i++) {
		char name[8];

		snprintf(name, sizeof name, "p%u", i);
		old = put_pod(&f, "a", name, i % 2 ? "web" : "db", NULL);
	}
	f.options.no_backfill = true;
	put_pod(&f, "a", "later", NULL, NULL);
	cacher_fixture_open(&f, chaos);
	options.revision = old;
	options.match = VD_MATCH_EXACT;
	options.label_selector = vd_bytes_of("app=web");
	/* no more is read than a page asks for. */
	options.limit = 2;
	options.label_selector = VD_BYTES_NONE;
	assert_status(list(&f, &options), VD_OK);
	assert_shown(
		&f, "apiserver_storage_list_fetched_objects_total" POD_AND("storage=\"etcd\",index=\"\""), 2);
	options.limit = 0;
	options.label_selector = vd_bytes_of("app=web");
	assert_status(list(&f, &options), VD_OK);
	assert_shown(&f, "apiserver_storage_list_total" POD_AND("storage=\"etcd\",index=\"\""), 2);
	assert_shown(
		&f, "apiserver_storage_list_fetched_objects_total" POD_AND("storage=\"etcd\",index=\"\""), 9);
	assert_shown(&f, "apiserver_storage_list_evaluated_objects_total" POD_AND("storage=\"etcd\""), 9);
	assert_shown(&f, "apiserver_storage_list_returned_objects_total" POD_AND("storage=\"etcd\""), 5);
	assert_shown(&f,
		     "apiserver_storage_list_duration_seconds_count{streamed=\"false\",group=\"\",resource="
		     "\"pods\"}",
		     2);
	chaos_set(chaos, &down);
	assert_status(list(&f, &options), VD_UNAVAILABLE);
	chaos_set(chaos, &calm);
	assert_shown(&f, "apiserver_storage_list_total" POD_AND("storage=\"etcd\",index=\"\""), 3);
	assert_shown(&f, "apiserver_storage_list_returned_objects_total" POD_AND("storage=\"etcd\""), 5);
	assert_shown(&f, "etcd_request_errors_total" OPERATION("list"), 1);
	f.cacher = vd_cacher_close_wait(f.cacher);
	chaos_store_free(chaos);
	cacher_fixture_teardown(&f);
}

/* Events and bookmarks of the store are counted as dispatched, each once. rules, W-07 */
static void r704_r705_r706_r708_r711_r728_r729_what_comes_in(void **state)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct recorder	       *recorder = calloc(1, sizeof *recorder);
	struct cacher_fixture	f;
	double			bookmarks;

	cacher_fixture_init(&f, 3);
	put_pod(&f, "a", "x", "web", NULL);
	put_pod(&f, "a", "y", "db", NULL);
	cacher_fixture_open(&f, NULL);
	assert_shown(&f, "apiserver_watch_cache_initializations_total" POD, 1);
	assert_shown(&f, "apiserver_watch_cache_initialization_errors_total" POD, 0);
	assert_shown(&f, "apiserver_watch_cache_initialization_duration_seconds_count" POD, 1);
	/* Before filtering; none for a watch from a revision. */
	options.label_selector = vd_bytes_of("app=web");
	assert_status(recorder_open(&f, recorder, &options, NULL), VD_OK);
	cacher_fixture_settle(&f);
	assert_int_equal(recorder->count, 1);
	assert_shown(&f, "apiserver_init_events_total" POD, 2);
	recorder_close(&f, recorder);
	*recorder = (struct recorder) { 0 };
	options.revision = vd_cacher_revision(f.cacher);
	assert_status(recorder_open(&f, recorder, &options, NULL), VD_OK);
	cacher_fixture_settle(&f);
	assert_shown(&f, "apiserver_init_events_total" POD, 2);
	put_pod(&f, "a", "x", "web", "n");
	delete_pod(&f, "a", "y");
	cacher_fixture_settle(&f);
	/* Events out of the history count too. */
	recorder_close(&f, recorder);
	*recorder = (struct recorder) { 0 };
	assert_status(recorder_open(&f, recorder, &options, NULL), VD_OK);
	cacher_fixture_settle(&f);
	assert_int_equal(recorder->count, 1);
	assert_shown(&f, "apiserver_init_events_total" POD, 4);
	assert_shown(&f, "apiserver_watch_cache_events_received_total" POD, 2);
	assert_shown(&f, "apiserver_watch_cache_events_dispatched_total" POD, 2);
	assert_shown(&f, "apiserver_watch_cache_resource_version" POD, vd_cacher_revision(f.cacher));
	vdi_cacher_gauges_collect(f.cacher);
	assert_shown(&f, "vedette_watchers" POD, 1);
	assert_shown(&f, "vedette_watch_groups" POD, 1);
	assert_shown(&f, "vedette_history_oldest_revision" POD, 1);
	assert_shown(&f, "vedette_history_events" POD, 4);
	assert_shown(&f, "vedette_cache_objects" POD, 1);
	assert_shown(&f, "apiserver_storage_events_received_total" POD, 2);
	/* A consistent read asks for progress when the cache is behind; here a write of another resource put
	 * it there. */
	bookmarks = shown(&f, "etcd_bookmark_total" POD);
	{
		struct vd_list_options all = VD_LIST_OPTIONS_INIT;
		struct vd_error	       error;
		vd_rev		       revision;

		assert_status(vd_store_put_wait(f.store, vd_bytes_of("/registry/other/x"), vd_bytes_of("{}"),
						&revision, &error),
			      VD_OK);
		assert_status(list(&f, &all), VD_OK);
	}
	assert_true(shown(&f, "etcd_bookmark_total" POD) >= VDI_MAX(bookmarks, 0) + 1);
	assert_shown(&f, "etcd_bookmark_counts" POD, shown(&f, "etcd_bookmark_total" POD));
	assert_shown(&f, "apiserver_watch_cache_events_dispatched_total" POD,
		     2 + shown(&f, "etcd_bookmark_total" POD));
	assert_shown(&f, "apiserver_watch_cache_read_wait_seconds_count" POD, 1);
	recorder_close(&f, recorder);
	cacher_fixture_teardown(&f);
	free(recorder);
}

/* A stream counts from nothing, the counter goes on. */
static void full_queues_are_counted_over_all_streams(void **state)
{
	static const struct {
		uint64_t seen, total;
	} rows[] = { { 3, 3 }, { 3, 3 }, { 5, 5 }, { 2, 7 }, { 2, 7 } };
	struct cacher_fixture f;

	cacher_fixture_setup(&f, 6);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		f.cacher->reflector.watchchan->stats.raw_full = rows[i].seen;
		f.cacher->reflector.watchchan->stats.result_full = rows[i].seen * 10;
		vdi_cacher_gauges_collect(f.cacher);
		assert_int_equal(vdi_metric_value(f.cacher->metrics.raw_full), rows[i].total);
		assert_int_equal(vdi_metric_value(f.cacher->metrics.result_full), rows[i].total * 10);
	}
	cacher_fixture_teardown(&f);
}

/* By the first state, by an event and by a bookmark of the store. */
static void r438_r708_the_gauge_is_cut_at_15_digits(void **state)
{
	struct vd_list_options all = VD_LIST_OPTIONS_INIT;
	struct cacher_fixture  f;
	struct vd_store	      *feed;

	cacher_fixture_init(&f, 4);
	f.options.no_backfill = true; /* the feed knows one watch */
	feed = feed_store_new(f.env);
	feed_set_back(feed, INT64_C(7000000000000041));
	cacher_fixture_open(&f, feed);
	assert_shown(&f, "apiserver_watch_cache_resource_version" POD, 41);
	(void) feed_put(feed, "/registry/pods/a/x", LITTLE_POD);
	cacher_fixture_settle(&f);
	assert_shown(&f, "apiserver_watch_cache_resource_version" POD, 42);
	feed_progress(feed);
	assert_status(list(&f, &all), VD_OK); /* wants to know how far the store is */
	assert_int_equal(vd_cacher_revision(f.cacher), INT64_C(7000000000000043));
	assert_shown(&f, "apiserver_watch_cache_resource_version" POD, 43);
	f.cacher = vd_cacher_close_wait(f.cacher);
	feed_store_free(feed);
	cacher_fixture_teardown(&f);
}

/* The bookmarks that the timer makes for watches are not counted among what came in; those of the store
 * are. */
static void r541_r706_bookmarks_of_the_timer_are_not_counted(void **state)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct vd_list_options	all = VD_LIST_OPTIONS_INIT;
	struct recorder	       *recorder = calloc(1, sizeof *recorder);
	struct cacher_fixture	f;
	struct vd_store	       *feed;

	cacher_fixture_init(&f, 14);
	f.options.no_backfill = true;
	feed = feed_store_new(f.env);
	cacher_fixture_open(&f, feed);
	options.revision = vd_cacher_revision(f.cacher);
	options.allow_bookmarks = true;
	assert_status(recorder_open(&f, recorder, &options, NULL), VD_OK);
	(void) feed_put(feed, "/registry/pods/a/x", LITTLE_POD);
	cacher_fixture_settle(&f);
	feed_progress(feed);
	assert_status(list(&f, &all), VD_OK);
	assert_shown(&f, "etcd_bookmark_total" POD, 1);
	assert_shown(&f, "apiserver_watch_cache_events_dispatched_total" POD, 2);
	assert_int_equal(recorder->count, 1); /* nor is one of the store told to a watch */
	vdi_sim_advance(f.env, VD_SECONDS(130));
	assert_int_equal(recorder->count, 3);
	assert_int_equal(recorder->events[2].type, VD_WATCH_BOOKMARK);
	assert_shown(&f, "apiserver_watch_cache_events_dispatched_total" POD, 2);
	recorder_close(&f, recorder);
	f.cacher = vd_cacher_close_wait(f.cacher);
	feed_store_free(feed);
	cacher_fixture_teardown(&f);
	free(recorder);
}

/* Counters that other tests look at by their place in the cacher are shown in these lines. */
static void r715_r716_r717_each_has_its_line(void **state)
{
	struct cacher_fixture f;

	cacher_fixture_setup(&f, 15);
	{
		const struct vdi_cacher_metrics *metrics = &f.cacher->metrics;
		const struct {
			const struct vdi_metric *metric;
			const char		*name, *label;
		} rows[] = {
			{ metrics->consistency_checks[VDI_CONSISTENCY_SUCCESS],
			  "apiserver_storage_consistency_checks_total", ",status=\"success\"" },
			{ metrics->consistency_checks[VDI_CONSISTENCY_FAILURE],
			  "apiserver_storage_consistency_checks_total", ",status=\"failure\"" },
			{ metrics->consistency_checks[VDI_CONSISTENCY_ERROR],
			  "apiserver_storage_consistency_checks_total", ",status=\"error\"" },
			{ metrics->sharded_watches, "apiserver_watch_shards_total", "" },
			{ metrics->shard_filtered, "apiserver_watch_filtered_events_total", "" },
			{ metrics->selector_filtered, "vedette_watch_selector_filtered_events_total", "" },
			{ metrics->dispatch_total, DISPATCH_SECONDS, ",stage=\"total\"" },
			{ metrics->dispatch_storage_to_cache, DISPATCH_SECONDS,
			  ",stage=\"storage_to_cache\"" },
			{ metrics->dispatch_cache_to_watcher, DISPATCH_SECONDS,
			  ",stage=\"cache_to_watcher\"" },
		};
		char labels[128];

		for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
			snprintf(labels, sizeof labels, "group=\"\",resource=\"pods\"%s", rows[i].label);
			assert_string_equal(vdi_metric_name(rows[i].metric->id), rows[i].name);
			assert_string_equal(rows[i].metric->labels, labels);
		}
	}
	cacher_fixture_teardown(&f);
}

/* An event that waits for memory keeps its own time; those behind it, which are applied with it in part, have
 * theirs. */
static void r716_each_event_has_its_own_time(void **state)
{
	bool was_late = false;

	for (uint64_t nth = 1; !was_late; nth++) {
		struct cacher_fixture f;
		struct vd_store	     *feed;

		cacher_fixture_init(&f, 15);
		feed = feed_store_new(f.env);
		cacher_fixture_open(&f, feed);
		cacher_fixture_settle(&f);
		(void) feed_put(feed, "/registry/pods/a/x", LITTLE_POD);
		(void) vdi_alloc_fail_nth(nth, 1);
		vdi_sim_run_until_idle(f.env);
		assert_true(vdi_alloc_failed());
		(void) vdi_alloc_fail_nth(0, 0);
		was_late = f.cacher->reflector.apply_failed;
		vdi_sim_advance(f.env, VD_MS(60));
		for (unsigned i = 0; was_late && i < VDI_APPLY_BATCH; i++)
			(void) feed_put(feed, "/registry/pods/a/x", LITTLE_POD);
		vdi_sim_advance(f.env, VD_MS(60));
		if (was_late)
			assert_float_equal(
				shown(&f, DISPATCH_SECONDS "_sum" POD_AND("stage=\"storage_to_cache\"")),
				0.1 + VDI_APPLY_BATCH * 0.04, 1e-6);
		f.cacher = vd_cacher_close_wait(f.cacher);
		feed_store_free(feed);
		cacher_fixture_teardown(&f);
	}
}

static void r707_slow_watchers_are_counted(void **state)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct recorder	       *recorder = calloc(1, sizeof *recorder);
	struct cacher_fixture	f;

	cacher_fixture_setup(&f, 5);
	options.revision = vd_cacher_revision(f.cacher);
	options.lag_events_max = 5;
	recorder->room = 1;
	assert_status(recorder_open(&f, recorder, &options, NULL), VD_OK);
	cacher_fixture_settle(&f);
	for (unsigned i = 0; i < 20; i++) {
		put_pod(&f, "a", "x", "web", NULL);
		cacher_fixture_settle(&f);
	}
	assert_status(recorder->reason, VD_TOO_SLOW);
	assert_shown(&f, "apiserver_terminated_watchers_total" POD, 1);
	recorder_close(&f, recorder);
	cacher_fixture_teardown(&f);
	free(recorder);
}

static void r403_r709_r710_the_capacity_is_shown(void **state)
{
	struct cacher_fixture f;

	cacher_fixture_setup(&f, 6);
	assert_shown(&f, "watch_cache_capacity" POD, 100);
	assert_shown(&f, "watch_cache_capacity_increase_total" POD, 0);
	for (unsigned i = 0; i < 150; i++)
		put_pod(&f, "a", "x", i % 2 ? "web" : "db", NULL);
	cacher_fixture_settle(&f);
	assert_shown(&f, "watch_cache_capacity" POD, 200);
	assert_shown(&f, "watch_cache_capacity_increase_total" POD, 1);
	assert_shown(&f, "watch_cache_capacity_decrease_total" POD, 0);
	/* Old enough: full again, it shrinks. */
	vdi_sim_advance(f.env, VD_SECONDS(100));
	for (unsigned i = 0; i < 50; i++)
		put_pod(&f, "a", "x", i % 2 ? "web" : "db", NULL);
	cacher_fixture_settle(&f);
	assert_shown(&f, "watch_cache_capacity" POD, 200);
	vdi_sim_advance(f.env, VD_SECONDS(100));
	put_pod(&f, "a", "x", "web", NULL);
	cacher_fixture_settle(&f);
	assert_shown(&f, "watch_cache_capacity_decrease_total" POD, 1);
	assert_shown(&f, "watch_cache_capacity" POD, 100);
	cacher_fixture_teardown(&f);
}

/* rules: R-504 */
static void r711_starts_that_fail_are_counted(void **state)
{
	struct chaos_options  slow = { .delay = 1000, .delay_max = VD_MS(300) }, down = { .refuse = 1000 };
	struct cacher_fixture f;
	struct vd_store	     *chaos;

	cacher_fixture_init(&f, 7);
	chaos = chaos_store_new(f.env, f.store, &down);
	{
		struct vd_error error;

		assert_status(vd_cacher_new(f.env, chaos, &f.options, &f.cacher, &error), VD_OK);
	}
	vdi_sim_advance(f.env, VD_MS(100));
	assert_shown(&f, "apiserver_watch_cache_initialization_errors_total" POD, 1);
	assert_shown(&f, "apiserver_watch_cache_initializations_total" POD, 0);
	vdi_sim_advance(f.env, VD_SECONDS(20));
	chaos_set(chaos, &slow);
	vdi_sim_advance(f.env, VD_SECONDS(90));
	assert_shown(&f, "apiserver_watch_cache_initializations_total" POD, 1);
	assert_shown(&f, "apiserver_watch_cache_initialization_duration_seconds_count" POD, 1);
	/* Of the run that succeeded, not since the first try. */
	assert_true(shown(&f, "apiserver_watch_cache_initialization_duration_seconds_sum" POD) > 0);
	assert_true(shown(&f, "apiserver_watch_cache_initialization_duration_seconds_sum" POD) < 2);
	f.cacher = vd_cacher_close_wait(f.cacher);
	chaos_store_free(chaos);
	cacher_fixture_teardown(&f);
}

static const struct vd_store_ops *honest;

/* Says how far the store is, and lists nothing. */
static vd_status range_fails(struct vd_store *store, const struct vd_range_request *request, vd_range_fn done,
			     void *arg)
{
	if (request->range_end.size == 0)
		return honest->range(store, request, done, arg);
	done(arg, VD_UNAVAILABLE, NULL, NULL);
	return VD_OK;
}

/* Says nothing at all. */
static vd_status all_fails(struct vd_store *store, const struct vd_range_request *request, vd_range_fn done,
			   void *arg)
{
	(void) store;
	(void) request;
	done(arg, VD_UNAVAILABLE, NULL, NULL);
	return VD_OK;
}

/* rules, T-111 */
static void r714_consistent_reads_by_outcome(void **state)
{
	struct vd_store_ops    failing;
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	struct cacher_fixture  f;
	struct vd_store	      *feed;

	cacher_fixture_init(&f, 8);
	feed = feed_store_new(f.env);
	cacher_fixture_open(&f, feed);
	assert_status(list(&f, &options), VD_OK);
	assert_shown(
		&f,
		"apiserver_watch_cache_consistent_read_total" POD_AND("success=\"true\",fallback=\"false\""),
		1);
	/* The cache cannot catch up: after 3 s the store answers. */
	feed_hold_progress(feed, true);
	feed_progress(feed);
	assert_status(list(&f, &options), VD_OK);
	assert_shown(
		&f,
		"apiserver_watch_cache_consistent_read_total" POD_AND("success=\"true\",fallback=\"true\""),
		1);
	assert_shown(
		&f,
		"apiserver_watch_cache_consistent_read_total" POD_AND("success=\"true\",fallback=\"false\""),
		1);
	assert_shown(&f, "apiserver_watch_cache_read_wait_seconds_count" POD, 1);
	/* The store cannot either, or does not even say how far it is. */
	honest = feed->ops;
	failing = *honest;
	feed->ops = &failing;
	failing.range = range_fails;
	assert_status(list(&f, &options), VD_UNAVAILABLE);
	assert_shown(
		&f,
		"apiserver_watch_cache_consistent_read_total" POD_AND("success=\"false\",fallback=\"true\""),
		1);
	failing.range = all_fails;
	assert_status(list(&f, &options), VD_UNAVAILABLE);
	assert_shown(
		&f,
		"apiserver_watch_cache_consistent_read_total" POD_AND("success=\"false\",fallback=\"false\""),
		1);
	assert_shown(
		&f,
		"apiserver_watch_cache_consistent_read_total" POD_AND("success=\"true\",fallback=\"true\""),
		1);
	feed->ops = honest;
	/* A cache that cannot be proven to be up to date is not asked. */
	feed_set_progress(feed, false);
	assert_status(list(&f, &options), VD_OK);
	assert_shown(&f,
		     "apiserver_watch_cache_consistent_read_total" POD_AND(
			     "success=\"true\",fallback=\"skipped\""),
		     1);
	f.cacher = vd_cacher_close_wait(f.cacher);
	feed_store_free(feed);
	cacher_fixture_teardown(&f);
}

static vd_status set_label(void *arg, struct vd_object *current, struct vd_bytes *ret_value,
			   int64_t *ret_ttl_s, struct vd_error *reterr)
{
	*ret_value = vd_bytes_of("{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\","
				 "\"namespace\":\"a\",\"labels\":{\"b\":\"c\"}}}");
	return VD_OK;
}

struct finished {
	bool	  is_done;
	vd_status status;
};

static void note(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
		 const struct vd_error *error)
{
	*(struct finished *) arg = (struct finished) { true, status };
}

static vd_status wait_for(struct cacher_fixture *f, struct finished *finished)
{
	cacher_fixture_settle(f);
	assert_true(finished->is_done);
	finished->is_done = false;
	return finished->status;
}

/* rules */
/* From the question to the answer, for pages of the consistency checker too. The store answers at once. */
static void r723_a_request_takes_as_long_as_its_answer(void **state)
{
	struct cacher_fixture f;

	cacher_fixture_setup(&f, 9);
	vdi_sim_advance(f.env, VD_SECONDS(451));
	assert_shown(&f, "etcd_requests_total" OPERATION("list"), 2);
	assert_shown(&f, "etcd_request_duration_seconds_sum" OPERATION("list"), 0);
	cacher_fixture_teardown(&f);
}

static void t099_r723_r724_requests_by_operation(void **state)
{
	struct vd_bytes	      ns = vd_bytes_of("a"), name = vd_bytes_of("x");
	struct vd_object     *object = NULL;
	struct cacher_fixture f;
	struct finished	      finished = { 0 };
	struct vd_error	      error;

	cacher_fixture_setup(&f, 9);
	assert_shown(&f, "etcd_requests_total" OPERATION("list"), 1); /* the first fill */
	assert_shown(&f, "etcd_requests_total" OPERATION("create"), -2);
	assert_status(vd_cacher_create(f.cacher, ns, name,
				       vd_bytes_of("{\"metadata\":{\"name\":\"x\",\"namespace\":\"a\"}}"), 0,
				       note, &finished),
		      VD_OK);
	assert_status(wait_for(&f, &finished), VD_OK);
	assert_shown(&f, "etcd_requests_total" OPERATION("create"), 1);
	assert_status(vd_cacher_create(f.cacher, ns, name,
				       vd_bytes_of("{\"metadata\":{\"name\":\"x\",\"namespace\":\"a\"}}"), 0,
				       note, &finished),
		      VD_OK);
	assert_status(wait_for(&f, &finished), VD_EXISTS);
	assert_shown(&f, "etcd_requests_total" OPERATION("create"), 2);
	assert_shown(&f, "etcd_request_errors_total" OPERATION("create"), -2); /* the store did answer */
	assert_status(vd_cacher_update(f.cacher, ns, name, false, NULL, set_label, note, &finished), VD_OK);
	assert_status(wait_for(&f, &finished), VD_OK);
	assert_shown(&f, "etcd_requests_total" OPERATION("update"), 1);
	assert_shown(&f, "etcd_request_duration_seconds_count" OPERATION("update"), 1);
	assert_status(vd_cacher_get_wait(f.cacher, ns, name, VD_REVISION_UNSET, &object, &error), VD_OK);
	vd_object_unref(object);
	assert_shown(&f, "etcd_requests_total" OPERATION("get"), 1);
	/* From the cache: no request. */
	assert_status(vd_cacher_get_wait(f.cacher, ns, name, VD_REVISION_ANY, &object, &error), VD_OK);
	vd_object_unref(object);
	assert_shown(&f, "etcd_requests_total" OPERATION("get"), 1);
	{
		struct vd_list_options options = VD_LIST_OPTIONS_INIT;

		assert_status(list(&f, &options), VD_OK);
	}
	assert_shown(&f, "etcd_requests_total" OPERATION("getCurrentResourceVersion"), 1);
	assert_status(vd_cacher_delete(f.cacher, ns, name, NULL, NULL, note, &finished), VD_OK);
	assert_status(wait_for(&f, &finished), VD_OK);
	assert_shown(&f, "etcd_requests_total" OPERATION("delete"), 1);
	cacher_fixture_teardown(&f);
}

static const struct vd_store_ops *honest;
static struct {
	vd_range_fn done;
	void	   *arg;
} held;

static vd_status hold_counts(struct vd_store *store, const struct vd_range_request *request, vd_range_fn done,
			     void *arg)
{
	if (!request->count_only)
		return honest->range(store, request, done, arg);
	assert_null(held.done); /* one at a time */
	held.done = done;
	held.arg = arg;
	return VD_OK;
}

/* Nothing is shown before the store has answered, and its answer is shown when it comes. */
static void r725_the_count_waits_for_its_answer(void **state)
{
	struct vd_range_result result = { .store_revision = 9, .count = 7 };
	struct cacher_fixture  f;
	struct vd_store_ops    slow;

	cacher_fixture_init(&f, 10);
	honest = f.store->ops;
	slow = *honest;
	slow.range = hold_counts;
	f.store->ops = &slow;
	cacher_fixture_open(&f, NULL);
	for (int64_t count = 7; count < 9; count++) {
		while (held.done == NULL)
			vdi_sim_advance(f.env, VD_SECONDS(1));
		put_pod(&f, "a", "x", NULL, NULL); /* wakes the cacher */
		vdi_sim_advance(f.env, VD_SECONDS(300));
		assert_shown(&f, "apiserver_storage_objects{resource=\"pods\"}", count == 7 ? -2 : 7);
		result.count = count;
		held.done(held.arg, VD_OK, &result, NULL);
		held.done = NULL;
		vdi_sim_run_until_idle(f.env);
		assert_shown(&f, "apiserver_storage_objects{resource=\"pods\"}", (double) count);
	}
	f.store->ops = honest;
	f.cacher = vd_cacher_close_wait(f.cacher);
	cacher_fixture_teardown(&f);
}

static void r725_r726_stored_objects_are_counted_and_the_gauges_go(void **state)
{
	struct chaos_options  calm = { 0 }, down = { .refuse = 1000 };
	struct cacher_fixture f;
	struct vd_store	     *chaos;

	cacher_fixture_init(&f, 10);
	f.options.resource = "deployments.apps";
	f.options.group = "apps";
	chaos = chaos_store_new(f.env, f.store, &calm);
	cacher_fixture_open(&f, chaos);
	cacher_fixture_settle(&f);
	assert_shown(&f, "apiserver_storage_objects{resource=\"deployments.apps\"}",
		     0); /* known to be none */
	assert_shown(&f, "apiserver_resource_size_estimate_bytes{group=\"apps\",resource=\"deployments\"}",
		     0);
	put_pod(&f, "a", "x", NULL, NULL);
	put_pod(&f, "a", "y", NULL, NULL);
	vdi_sim_advance(f.env, VD_SECONDS(133)); /* at the start, then after [1, 2.2) minutes */
	assert_shown(&f, "apiserver_storage_objects{resource=\"deployments.apps\"}", 2);
	assert_shown(&f, "apiserver_resource_objects{group=\"apps\",resource=\"deployments\"}", 2);
	assert_shown(&f, "apiserver_resource_size_estimate_bytes{group=\"apps\",resource=\"deployments\"}",
		     f.cacher->watch_cache.store.bytes);
	assert_in_range((uint64_t) shown(&f, "etcd_requests_total{operation=\"listWithCount\",group=\"apps\","
					     "resource=\"deployments\"}"),
			2, 3);
	chaos_set(chaos, &down);
	vdi_sim_advance(f.env, VD_SECONDS(133));
	assert_shown(&f, "apiserver_storage_objects{resource=\"deployments.apps\"}", -1);
	assert_shown(&f, "apiserver_resource_objects{group=\"apps\",resource=\"deployments\"}", -1);
	assert_shown(&f, "apiserver_resource_size_estimate_bytes{group=\"apps\",resource=\"deployments\"}",
		     -1);
	f.cacher = vd_cacher_close_wait(f.cacher);
	assert_shown(&f, "apiserver_storage_objects{resource=\"deployments.apps\"}", -2);
	assert_shown(&f, "apiserver_resource_objects{group=\"apps\",resource=\"deployments\"}", -2);
	chaos_store_free(chaos);
	cacher_fixture_teardown(&f);
}

static void r146_r730_replaced_leases_tell_how_often_they_were_used(void **state)
{
	struct cacher_fixture	 f;
	static const char *const bounds[] = { "10", "50", "100", "500", "1000", "2500", "5000", "+Inf" };
	struct finished		 finished = { 0 };
	char			 name[16], value[96];

	cacher_fixture_setup(&f, 11);
	for (unsigned i = 0; i < 4; i++) {
		snprintf(name, sizeof name, "p%u", i);
		snprintf(value, sizeof value, "{\"metadata\":{\"name\":\"p%u\",\"namespace\":\"a\"}}", i);
		/* The last one asks for a longer life: a new lease. */
		assert_status(vd_cacher_create(f.cacher, vd_bytes_of("a"), vd_bytes_of(name),
					       vd_bytes_of(value), i < 3 ? 1000 : 5000, note, &finished),
			      VD_OK);
		assert_status(wait_for(&f, &finished), VD_OK);
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(bounds); i++) {
		snprintf(value, sizeof value, "etcd_lease_object_counts_bucket{le=\"%s\"}", bounds[i]);
		assert_shown(&f, value, 2);
	}
	assert_int_equal(lines_of(&f, "etcd_lease_object_counts_bucket{"), VDI_ARRAY_SIZE(bounds));
	assert_shown(&f, "etcd_lease_object_counts_count", 2);
	assert_shown(&f, "etcd_lease_object_counts_sum",
		     5); /* with the call that replaces it: 1 at first, then 3 + 1 */
	cacher_fixture_teardown(&f);
}

/* rules: R-127 */
static void t099_r731_what_cannot_be_decoded_is_counted_by_reads(void **state)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	struct finished	       finished = { 0 };
	struct vd_object      *object = NULL;
	struct cacher_fixture  f;
	struct vd_error	       error;
	vd_rev		       revision;

	cacher_fixture_init(&f, 12);
	f.options.skip_undecodable = true;
	cacher_fixture_open(&f, NULL);
	assert_status(vd_store_put_wait(f.store, vd_bytes_of("/registry/pods/a/bad"), vd_bytes_of("{"),
					&revision, &error),
		      VD_OK);
	cacher_fixture_settle(&f);
	assert_shown(&f, "apiserver_storage_decode_errors_total" POD, -2); /* not for watches */
	assert_status(vd_cacher_get_wait(f.cacher, vd_bytes_of("a"), vd_bytes_of("bad"), VD_REVISION_UNSET,
					 &object, &error),
		      VD_UNDECODABLE);
	assert_shown(&f, "apiserver_storage_decode_errors_total" POD, 1);
	/* A list of the store, and a write, which looks at what there is. */
	options.match = VD_MATCH_EXACT;
	options.name = vd_bytes_of("bad");
	options.namespace_name = vd_bytes_of("a");
	options.revision = revision;
	assert_status(list(&f, &options), VD_UNDECODABLE);
	assert_shown(&f, "apiserver_storage_decode_errors_total" POD, 2);
	assert_status(vd_cacher_update(f.cacher, vd_bytes_of("a"), vd_bytes_of("bad"), false, NULL, set_label,
				       note, &finished),
		      VD_OK);
	assert_status(wait_for(&f, &finished), VD_UNDECODABLE);
	assert_shown(&f, "apiserver_storage_decode_errors_total" POD, 3);
	cacher_fixture_teardown(&f);
}

static void labels_of_resources(void **state)
{
	static const struct {
		const char *resource, *group, *label;
	} rows[] = { { "pods", "", "pods" },
		     { "deployments.apps", "apps", "deployments" },
		     { "deployments", "apps", "deployments" },
		     { "a.b.example.org", "example.org", "a.b" },
		     { ".apps", "apps", ".apps" },
		     { "maps", "aps", "maps" } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		char label[VDI_RESOURCE_LABEL_SIZE];

		vdi_resource_label(rows[i].resource, rows[i].group, label);
		assert_string_equal(label, rows[i].label);
	}
}

/* How far back the history reaches; 0 while it is empty. */
static void r717_the_span_of_the_history(void **state)
{
	struct cacher_fixture f;

	cacher_fixture_setup(&f, 13);
	assert_shown(&f, "vedette_history_span_seconds" POD, 0);
	put_pod(&f, "a", "x", NULL, NULL);
	cacher_fixture_settle(&f);
	vdi_sim_advance(f.env, VD_SECONDS(30));
	put_pod(&f, "a", "y", NULL, NULL);
	cacher_fixture_settle(&f);
	vdi_sim_advance(f.env, VD_SECONDS(10));
	assert_in_range((uint64_t) shown(&f, "vedette_history_span_seconds" POD), 40, 50);
	cacher_fixture_teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r717_the_span_of_the_history),
		cmocka_unit_test(r701_r702_r703_r721_r722_lists_by_the_index_they_walk),
		cmocka_unit_test(r717_queues_show_what_waits_in_them),
		cmocka_unit_test(r443_every_declared_field_has_a_list_index_when_lists_ask_for_it),
		cmocka_unit_test(t082_r162_r721_r732_lists_of_the_store),
		cmocka_unit_test(r704_r705_r706_r708_r711_r728_r729_what_comes_in),
		cmocka_unit_test(full_queues_are_counted_over_all_streams),
		cmocka_unit_test(r438_r708_the_gauge_is_cut_at_15_digits),
		cmocka_unit_test(r541_r706_bookmarks_of_the_timer_are_not_counted),
		cmocka_unit_test(r715_r716_r717_each_has_its_line),
		cmocka_unit_test(r716_each_event_has_its_own_time),
		cmocka_unit_test(r707_slow_watchers_are_counted),
		cmocka_unit_test(r403_r709_r710_the_capacity_is_shown),
		cmocka_unit_test(r711_starts_that_fail_are_counted),
		cmocka_unit_test(r714_consistent_reads_by_outcome),
		cmocka_unit_test(r723_a_request_takes_as_long_as_its_answer),
		cmocka_unit_test(t099_r723_r724_requests_by_operation),
		cmocka_unit_test(r725_the_count_waits_for_its_answer),
		cmocka_unit_test(r725_r726_stored_objects_are_counted_and_the_gauges_go),
		cmocka_unit_test(r146_r730_replaced_leases_tell_how_often_they_were_used),
		cmocka_unit_test(t099_r731_what_cannot_be_decoded_is_counted_by_reads),
		cmocka_unit_test(labels_of_resources),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
