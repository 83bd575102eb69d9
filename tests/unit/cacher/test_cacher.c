/* The Cacher as its users see it: watches, over the embedded store in memory. */
#include "cacher_fixture.h"

#include "cacher.h"
#include "env.h"

static struct vd_watch_options all(void)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;

	return options;
}

static void t050_add_modify_delete(void **state)
{
	for (uint64_t seed = 1; seed <= 5; seed++)
		for (unsigned kind = 0; kind < 2; kind++) {
			struct cacher_fixture	f;
			struct recorder	       *r = calloc(1, sizeof *r);
			struct vd_watch_options options = all();
			char			expected[256];
			vd_rev			a, b, c;

			cacher_fixture_setup(&f, seed);
			assert_status(recorder_open(&f, r, &options, kind ? vdi_env_executor(f.env) : NULL),
				      VD_OK);
			cacher_fixture_settle(&f);
			a = put_pod(&f, "ns", "x", "one", NULL);
			b = put_pod(&f, "ns", "x", "two", NULL);
			c = delete_pod(&f, "ns", "x");
			cacher_fixture_settle(&f);
			snprintf(expected, sizeof expected, "+ns/x@%lld ~ns/x@%lld -ns/x@%lld", (long long) a,
				 (long long) b, (long long) c);
			assert_string_equal(r->events[1].old_app, "one");
			assert_string_equal(r->events[2].old_app, "two");
			assert_string_equal(recorder_text(r), expected);
			recorder_close(&f, r);
			cacher_fixture_teardown(&f);
			free(r);
		}
}

/* rules: H-418 */
static void r552_selectors_turn_changes_into_additions_and_deletions(void **state)
{
	struct cacher_fixture	f;
	struct recorder	       *r = calloc(1, sizeof *r);
	struct vd_watch_options options = all();
	char			expected[256];
	vd_rev			in, inside, out;

	cacher_fixture_setup(&f, 1);
	options.label_selector = vd_bytes_of("app=web");
	assert_status(recorder_open(&f, r, &options, NULL), VD_OK);
	put_pod(&f, "ns", "x", "db", NULL);
	in = put_pod(&f, "ns", "x", "web", NULL);
	inside = put_pod(&f, "ns", "x", "web", "n1");
	out = put_pod(&f, "ns", "x", "db", NULL);
	delete_pod(&f, "ns", "x");
	cacher_fixture_settle(&f);
	snprintf(expected, sizeof expected, "+ns/x@%lld ~ns/x@%lld -ns/x@%lld", (long long) in,
		 (long long) inside, (long long) out);
	assert_string_equal(recorder_text(r), expected);
	recorder_close(&f, r);
	cacher_fixture_teardown(&f);
	free(r);
}

/* Opens, lets it run, and compares what came. */
static void assert_opens(struct cacher_fixture *f, const struct vd_watch_options *options, const char *format,
			 ...)
{
	struct recorder *r = calloc(1, sizeof *r);
	char		 expected[512];
	va_list		 arguments;

	va_start(arguments, format);
	vsnprintf(expected, sizeof expected, format, arguments);
	va_end(arguments);
	assert_status(recorder_open(f, r, options, vdi_env_executor(f->env)), VD_OK);
	cacher_fixture_settle(f);
	assert_string_equal(recorder_text(r), expected);
	recorder_close(f, r);
	free(r);
}

/* rules */
static void t067_r480_where_a_watch_starts(void **state)
{
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct cacher_fixture	f;
		struct vd_watch_options options = all();
		long long		a, b, c;

		cacher_fixture_setup(&f, seed);
		a = put_pod(&f, "ns", "x", "one", NULL);
		b = put_pod(&f, "ns", "y", "one", NULL);
		put_pod(&f, "ns", "y", "two", NULL);
		c = delete_pod(&f, "ns", "y");
		cacher_fixture_settle(&f);
		/* "" and "0", legacy: the state. */
		assert_opens(&f, &options, "+ns/x@%lld", a);
		options.revision = VD_REVISION_ANY;
		assert_opens(&f, &options, "+ns/x@%lld", a);
		options.send_initial_events = VD_FALSE;
		assert_opens(&f, &options, "");
		options.revision = VD_REVISION_UNSET;
		assert_opens(&f, &options, "");
		options.send_initial_events = VD_TRUE;
		assert_opens(&f, &options, "+ns/x@%lld", a);
		options.allow_bookmarks = true;
		assert_opens(&f, &options, "+ns/x@%lld *END@%lld", a, c);
		options.revision = VD_REVISION_ANY;
		assert_opens(&f, &options, "+ns/x@%lld *END@%lld", a, c);
		options.revision = b;
		assert_opens(&f, &options, "+ns/x@%lld *END@%lld", a, c);
		options.send_initial_events = VD_UNSET;
		assert_opens(&f, &options, "~ns/y@%lld -ns/y@%lld", b + 1, c);
		options.revision = c;
		assert_opens(&f, &options, "");
		/* A name, a namespace, a field: only what is in scope. */
		options.revision = VD_REVISION_ANY;
		options.field_selector = vd_bytes_of("metadata.name=x");
		assert_opens(&f, &options, "+ns/x@%lld", a);
		options.field_selector = vd_bytes_of("metadata.namespace=other");
		assert_opens(&f, &options, "");
		cacher_fixture_teardown(&f);
	}
}

static void t116_r483_too_old_is_an_error_event(void **state)
{
	struct cacher_fixture	f;
	struct vd_watch_options options = all();
	struct recorder	       *r = calloc(1, sizeof *r);
	char			message[128];

	cacher_fixture_init(&f, 1);
	f.options.no_backfill = true;
	put_pod(&f, "ns", "x", NULL, NULL);
	put_pod(&f, "ns", "y", NULL, NULL);
	cacher_fixture_open(&f, NULL);
	options.revision = vd_cacher_revision(f.cacher) - 1;
	assert_status(recorder_open(&f, r, &options, NULL), VD_OK);
	cacher_fixture_settle(&f);
	assert_int_equal(r->count, 1);
	assert_status(r->events[0].code, VD_EXPIRED);
	snprintf(message, sizeof message, "too old resource version: %lld (%lld)",
		 (long long) options.revision, (long long) options.revision + 1);
	assert_string_equal(r->events[0].message, message);
	assert_int_equal(r->ended, 1);
	assert_status(r->reason, VD_EXPIRED);
	recorder_close(&f, r);
	options.revision++;
	assert_opens(&f, &options, "");
	options.revision++;
	assert_opens(&f, &options, "");
	cacher_fixture_teardown(&f);
	free(r);
}

/* A cacher that starts on a store with older revisions hands them out as if it had never been away. */
static void history_from_before_the_start_is_resumable(void **state)
{
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct cacher_fixture	f;
		struct vd_watch_options options = all();
		struct recorder	       *r = calloc(1, sizeof *r);
		char			expected[256];
		long long		a, b, c, d, e;

		cacher_fixture_init(&f, seed);
		a = put_pod(&f, "ns", "x", "web", NULL);
		b = put_pod(&f, "ns", "x", "db", NULL);
		c = put_pod(&f, "ns", "y", "web", NULL);
		d = delete_pod(&f, "ns", "y");
		cacher_fixture_open(&f, NULL);
		e = put_pod(&f, "ns", "z", "web", NULL);
		cacher_fixture_settle(&f);
		options.revision = a;
		snprintf(expected, sizeof expected, "~ns/x@%lld +ns/y@%lld -ns/y@%lld +ns/z@%lld", b, c, d,
			 e);
		assert_status(recorder_open(&f, r, &options, vdi_env_executor(f.env)), VD_OK);
		cacher_fixture_settle(&f);
		assert_string_equal(r->events[0].old_app, "web");
		assert_string_equal(recorder_text(r), expected);
		recorder_close(&f, r);
		memset(r, 0, sizeof *r);
		options.label_selector = vd_bytes_of("app=web");
		snprintf(expected, sizeof expected, "-ns/x@%lld +ns/y@%lld -ns/y@%lld +ns/z@%lld", b, c, d,
			 e);
		assert_opens(&f, &options, "%s", expected);
		cacher_fixture_teardown(&f);
		free(r);
	}
}

static void t127_r551_a_future_revision_is_waited_for_in_silence(void **state)
{
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct cacher_fixture	f;
		struct vd_watch_options options = all();
		struct recorder	       *r = calloc(1, sizeof *r);
		char			expected[64];
		vd_rev			later;

		cacher_fixture_setup(&f, seed);
		options.revision = put_pod(&f, "ns", "x", NULL, NULL) + 3;
		assert_status(recorder_open(&f, r, &options, seed % 2 ? NULL : vdi_env_executor(f.env)),
			      VD_OK);
		cacher_fixture_settle(&f);
		for (unsigned i = 0; i < 3; i++)
			put_pod(&f, "ns", "x", NULL, NULL);
		cacher_fixture_settle(&f);
		assert_string_equal(recorder_text(r), "");
		later = put_pod(&f, "ns", "x", NULL, NULL);
		put_pod(&f, "ns", "x", NULL, NULL);
		cacher_fixture_settle(&f);
		snprintf(expected, sizeof expected, "~ns/x@%lld ~ns/x@%lld", (long long) later,
			 (long long) later + 1);
		assert_string_equal(recorder_text(r), expected);
		recorder_close(&f, r);
		cacher_fixture_teardown(&f);
		free(r);
	}
}

/* Nothing wakes such a watch: no event of its scope ever comes. */
static void t127_r541_a_watch_from_the_future_without_matches_has_bookmarks(void **state)
{
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct cacher_fixture	f;
		struct vd_watch_options options = all();
		struct recorder	       *r = calloc(1, sizeof *r);
		vd_rev			newest = 0;

		cacher_fixture_setup(&f, seed);
		options.label_selector = vd_bytes_of("app=nothing");
		options.revision = put_pod(&f, "ns", "x", NULL, NULL) + 3;
		options.allow_bookmarks = true;
		assert_status(recorder_open(&f, r, &options, seed % 2 ? NULL : vdi_env_executor(f.env)),
			      VD_OK);
		vdi_sim_advance(f.env, VD_SECONDS(65));
		assert_int_equal(r->count, 0); /* the cache is not there yet */
		for (unsigned i = 0; i < 5; i++)
			newest = put_pod(&f, "ns", "x", NULL, NULL);
		vdi_sim_advance(f.env, VD_SECONDS(65));
		assert_int_equal(r->count, 1);
		assert_int_equal(r->events[0].type, VD_WATCH_BOOKMARK);
		assert_int_equal(r->events[0].revision, newest);
		recorder_close(&f, r);
		cacher_fixture_teardown(&f);
		free(r);
	}
}

static void t131_r520_a_state_newer_than_the_store_times_out(void **state)
{
	struct cacher_fixture	f;
	struct vd_watch_options options = all();
	struct recorder	       *r = calloc(1, sizeof *r);
	char			message[VD_ERROR_MESSAGE_SIZE];

	cacher_fixture_setup(&f, 1);
	options.revision = vd_cacher_revision(f.cacher) + 10;
	options.send_initial_events = VD_TRUE;
	assert_status(recorder_open(&f, r, &options, NULL), VD_OK);
	vdi_sim_advance(f.env, VD_MS(2900));
	assert_int_equal(r->count, 0);
	vdi_sim_advance(f.env, VD_MS(200));
	assert_int_equal(r->count, 1);
	assert_status(r->events[0].code, VD_TOO_LARGE_REVISION);
	assert_status(r->reason, VD_TOO_LARGE_REVISION);
	snprintf(message, sizeof message, "Too large resource version: %lld, current: %lld",
		 (long long) options.revision, (long long) options.revision - 10);
	assert_string_equal(r->events[0].message, message);
	recorder_close(&f, r);
	cacher_fixture_teardown(&f);
	free(r);
}

static const struct vd_store_ops *honest;
static vd_status		  answer_with, refuse_with;

static vd_status refuse_range(struct vd_store *store, const struct vd_range_request *request,
			      vd_range_fn done, void *arg)
{
	struct vd_error error;

	if (refuse_with != VD_OK)
		return refuse_with;
	vd_error_set(&error, answer_with, "no route");
	done(arg, answer_with, NULL, &error);
	return VD_OK;
}

/* The state of now needs the store's revision: when that cannot be read, the error is the only event, and
 * nothing is left under way.
 * rules: R-521 */
static void r520_a_state_whose_revision_cannot_be_read(void **state)
{
	for (int i = 0; i < 3; i++) {
		struct cacher_fixture	f;
		struct vd_watch_options options = all();
		struct recorder	       *r = calloc(1, sizeof *r);
		struct vd_store_ops	liar;

		cacher_fixture_setup(&f, 1);
		put_pod(&f, "ns", "x", NULL, NULL);
		cacher_fixture_settle(&f);
		honest = f.store->ops;
		liar = *honest;
		liar.range = refuse_range;
		refuse_with = i == 0 ? VD_UNAVAILABLE : i == 1 ? VD_NOMEM : VD_OK;
		answer_with = VD_UNAVAILABLE;
		f.store->ops = &liar;
		options.revision = VD_REVISION_UNSET;
		options.send_initial_events = VD_TRUE;
		options.allow_bookmarks = i == 2;
		assert_status(recorder_open(&f, r, &options, NULL), VD_OK);
		cacher_fixture_settle(&f);
		assert_int_equal(r->count, 1);
		assert_int_equal(r->events[0].type, VD_WATCH_ERROR);
		assert_status(r->events[0].code, i == 1 ? VD_NOMEM : VD_UNAVAILABLE);
		assert_string_equal(r->events[0].message,
				    i == 2 ? "no route" : vd_status_sentence(r->events[0].code));
		assert_int_equal(r->ended, 1);
		assert_status(r->reason, r->events[0].code);
		assert_int_equal(f.cacher->call_count, 1); /* the stream of the cache itself */
		f.store->ops = honest;
		recorder_close(&f, r);
		cacher_fixture_teardown(&f);
		free(r);
	}
}

static void t122_t124_r558_bookmarks_and_the_deadline(void **state)
{
	struct cacher_fixture	f;
	struct vd_watch_options options = all();
	struct recorder	       *r = calloc(1, sizeof *r);
	struct recorder	       *silent = calloc(1, sizeof *silent);
	vd_rev			revision;

	cacher_fixture_setup(&f, 1);
	revision = put_pod(&f, "ns", "x", NULL, NULL);
	cacher_fixture_settle(&f);
	options.revision = revision;
	options.deadline = vd_mono_add(vd_env_now(f.env), VD_SECONDS(3));
	assert_status(recorder_open(&f, silent, &options, NULL), VD_OK);
	options.allow_bookmarks = true;
	assert_status(recorder_open(&f, r, &options, vdi_env_executor(f.env)), VD_OK);
	vdi_sim_advance(f.env, VD_MS(900));
	assert_int_equal(r->count, 0);
	vdi_sim_advance(f.env, VD_MS(1400));
	assert_true(r->count >= 1);
	assert_int_equal(r->events[0].type, VD_WATCH_BOOKMARK);
	assert_true(r->events[0].revision >= revision);
	assert_int_equal(r->ended, 0);
	vdi_sim_advance(f.env, VD_MS(690));
	assert_int_equal(r->ended, 0);
	vdi_sim_advance(f.env, VD_MS(30));
	assert_int_equal(r->ended, 1);
	assert_status(r->reason, VD_TIMEOUT);
	assert_int_equal(silent->count, 0);
	assert_int_equal(silent->ended, 1);
	recorder_close(&f, silent);
	recorder_close(&f, r);
	/* Without a deadline: every 60 s. */
	memset(r, 0, sizeof *r);
	options.deadline = VD_NEVER;
	assert_status(recorder_open(&f, r, &options, NULL), VD_OK);
	vdi_sim_advance(f.env, VD_SECONDS(59));
	assert_int_equal(r->count, 0);
	vdi_sim_advance(f.env, VD_SECONDS(3));
	assert_int_equal(r->count, 1);
	vdi_sim_advance(f.env, VD_SECONDS(186));
	assert_int_equal(r->count, 4);
	recorder_close(&f, r);
	/* Nothing ticks for nobody. */
	vdi_sim_advance(f.env, VD_SECONDS(100));
	assert_int_equal(f.cacher->bookmarks.count, 0);
	assert_int_equal(f.cacher->bookmarks.tick_next.ns, INT64_MAX);
	cacher_fixture_teardown(&f);
	free(silent);
	free(r);
}

/* Writes to other resources only: the bookmark of this one follows them. */
static void r541_the_bookmark_of_an_idle_resource_moves(void **state)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct cacher_fixture	f;
		struct vd_watch_options options = all();
		struct recorder	       *r = calloc(1, sizeof *r);
		vd_rev			elsewhere = 0;

		cacher_fixture_setup(&f, seed);
		options.revision = put_pod(&f, "ns", "x", NULL, NULL);
		options.allow_bookmarks = true;
		options.deadline = vd_mono_add(vd_env_now(f.env), VD_SECONDS(4));
		assert_status(recorder_open(&f, r, &options, NULL), VD_OK);
		cacher_fixture_settle(&f);
		assert_status(vd_store_put_wait(f.store, vd_bytes_of("/registry/secrets/ns/s"),
						vd_bytes_of("{}"), &elsewhere, NULL),
			      VD_OK);
		vdi_sim_advance(f.env, VD_MS(3900));
		assert_true(r->count >= 1);
		assert_int_equal(r->events[r->count - 1].type, VD_WATCH_BOOKMARK);
		assert_int_equal(r->events[r->count - 1].revision, elsewhere);
		recorder_close(&f, r);
		cacher_fixture_teardown(&f);
		free(r);
	}
}

/* rules: H-624 */
static void t128_a_stuck_watcher_is_ended_and_delays_nobody(void **state)
{
	struct cacher_fixture	f;
	struct vd_watch_options options = all();
	struct recorder	       *stuck = calloc(1, sizeof *stuck);
	struct recorder	       *well = calloc(1, sizeof *well);

	cacher_fixture_setup(&f, 1);
	options.revision = vd_cacher_revision(f.cacher);
	assert_status(recorder_open(&f, well, &options, NULL), VD_OK);
	options.lag_events_max = 10;
	stuck->room = 3;
	assert_status(recorder_open(&f, stuck, &options, NULL), VD_OK);
	cacher_fixture_settle(&f);
	for (unsigned i = 0; i < 13; i++)
		put_pod(&f, "ns", "x", NULL, NULL);
	cacher_fixture_settle(&f);
	assert_int_equal(well->count, 13);
	assert_int_equal(stuck->count, 3);
	assert_int_equal(stuck->ended, 0);
	put_pod(&f, "ns", "x", NULL, NULL);
	cacher_fixture_settle(&f);
	assert_int_equal(well->count, 14);
	assert_int_equal(stuck->ended, 1);
	assert_status(stuck->reason, VD_TOO_SLOW);
	assert_int_equal(vdi_metric_value(f.cacher->metrics.terminated_watchers), 1);
	recorder_close(&f, stuck);
	recorder_close(&f, well);
	cacher_fixture_teardown(&f);
	free(stuck);
	free(well);
}

/* At any step of its beginning, whatever it asks for: it is told nothing after the close, and nothing of it
 * is left. */
static void r560_closing_before_it_has_begun(void **state)
{
	for (unsigned steps = 0; steps < 40; steps++) {
		struct cacher_fixture	f;
		struct vd_watch_options options = all();
		struct recorder	       *r = calloc(1, sizeof *r);
		size_t			told;

		cacher_fixture_setup(&f, steps);
		put_pod(&f, "ns", "x", NULL, NULL);
		options.send_initial_events = steps % 2 ? VD_TRUE : VD_UNSET;
		options.allow_bookmarks = steps % 3 == 0;
		options.revision = steps % 2 ? VD_REVISION_UNSET : vd_cacher_revision(f.cacher) + steps % 4;
		assert_status(recorder_open(&f, r, &options, steps % 5 ? vdi_env_executor(f.env) : NULL),
			      VD_OK);
		for (unsigned step = 0; step < steps / 2; step++)
			(void) vdi_sim_step(f.env);
		recorder_close(&f, r);
		told = r->count;
		put_pod(&f, "ns", "x", NULL, NULL);
		vdi_sim_advance(f.env, VD_SECONDS(70));
		assert_int_equal(r->count, told);
		assert_int_equal(f.cacher->watchers.count, 0);
		assert_int_equal(f.cacher->watcher_index.group_count, 0);
		assert_int_equal(f.cacher->bookmarks.count, 0);
		cacher_fixture_teardown(&f);
		free(r);
	}
}

/* rules: R-560 */
static void t143_closing_inside_the_callbacks(void **state)
{
	for (unsigned kind = 0; kind < 4; kind++) {
		struct cacher_fixture	f;
		struct vd_watch_options options = all();
		struct recorder	       *r = calloc(1, sizeof *r);

		cacher_fixture_setup(&f, kind);
		assert_status(recorder_open(&f, r, &options, kind % 2 ? vdi_env_executor(f.env) : NULL),
			      VD_OK);
		if (kind < 2)
			r->close_in_deliver = true;
		else
			r->close_in_ended = true;
		put_pod(&f, "ns", "x", NULL, NULL);
		put_pod(&f, "ns", "x", NULL, NULL);
		cacher_fixture_settle(&f);
		if (kind >= 2) {
			f.cacher = vd_cacher_close_wait(f.cacher);
			assert_int_equal(r->ended, 1);
			assert_status(r->reason, VD_CLOSED);
		}
		assert_true(r->closed);
		cacher_fixture_teardown(&f);
		free(r);
	}
}

static void t119_r562_the_end_of_the_cacher_ends_watches(void **state)
{
	struct cacher_fixture	f;
	struct vd_watch_options options = all();
	struct recorder	       *r = calloc(1, sizeof *r);
	struct recorder	       *stuck = calloc(1, sizeof *stuck);
	struct vd_watcher      *pulled;
	struct vd_watch_event	event;
	struct vd_error		error;

	cacher_fixture_setup(&f, 7);
	assert_status(recorder_open(&f, r, &options, vdi_env_executor(f.env)), VD_OK);
	stuck->room = 1;
	assert_status(recorder_open(&f, stuck, &options, NULL), VD_OK);
	assert_status(vd_cacher_watch(f.cacher, &options, NULL, &pulled, &error), VD_OK);
	put_pod(&f, "ns", "x", NULL, NULL);
	put_pod(&f, "ns", "y", NULL, NULL);
	cacher_fixture_settle(&f);
	f.cacher = vd_cacher_close_wait(f.cacher);
	assert_int_equal(r->ended, 1);
	assert_int_equal(stuck->ended, 1);
	assert_status(vd_watcher_next(pulled, &event), VD_CLOSED);
	assert_status(vd_watcher_next(pulled, &event), VD_CLOSED);
	vd_watcher_close(pulled, NULL, NULL);
	recorder_close(&f, r);
	recorder_close(&f, stuck);
	cacher_fixture_teardown(&f);
	free(r);
	free(stuck);
}

static void pulling_gives_the_same_events(void **state)
{
	struct cacher_fixture	f;
	struct vd_watch_options options = all();
	struct vd_watcher      *pulled;
	struct vd_watch_event	event;
	struct vd_error		error;
	vd_rev			last = 0;
	vd_mono			before;

	cacher_fixture_setup(&f, 8);
	assert_status(vd_cacher_watch(f.cacher, &options, NULL, &pulled, &error), VD_OK);
	cacher_fixture_settle(&f);
	assert_status(vd_watcher_next(pulled, &event), VD_AGAIN);
	before = vd_env_now(f.env);
	assert_status(vd_watcher_wait(pulled, VD_MS(0)), VD_TIMEOUT); /* only looks */
	assert_int_equal(vd_env_now(f.env).ns, before.ns);
	assert_status(vd_watcher_wait(pulled, VD_MS(100)), VD_TIMEOUT);
	assert_int_equal(vd_mono_since(vd_env_now(f.env), before).ns, VD_MS(100).ns);
	for (unsigned i = 0; i < 100; i++)
		put_pod(&f, "ns", "x", NULL, NULL);
	cacher_fixture_settle(&f);
	assert_status(vd_watcher_wait(pulled, VD_SECONDS(1)), VD_OK);
	for (unsigned i = 0; i < 100; i++) {
		assert_status(vd_watcher_next(pulled, &event), VD_OK);
		assert_true(event.revision > last);
		last = event.revision;
	}
	assert_status(vd_watcher_next(pulled, &event), VD_AGAIN);
	vd_watcher_close(pulled, NULL, NULL);
	options.lag_events_max = 5;
	assert_status(vd_cacher_watch(f.cacher, &options, NULL, &pulled, &error), VD_OK);
	cacher_fixture_settle(&f);
	assert_status(vd_watcher_next(pulled, &event), VD_OK);
	assert_status(vd_watcher_next(pulled, &event), VD_AGAIN);
	for (unsigned i = 0; i < 6; i++)
		put_pod(&f, "ns", "x", NULL, NULL);
	cacher_fixture_settle(&f);
	assert_status(vd_watcher_next(pulled, &event), VD_TOO_SLOW);
	vd_watcher_close(pulled, NULL, NULL);
	cacher_fixture_teardown(&f);
}

/* The limit counts from the opening, not from the first call. */
static void t128_a_watcher_that_was_never_pulled_is_too_slow_as_well(void **state)
{
	struct cacher_fixture	f;
	struct vd_watch_options options = all();
	struct vd_watcher      *pulled[3];
	struct vd_watch_event	event;
	struct vd_error		error;

	cacher_fixture_setup(&f, 8);
	put_pod(&f, "ns", "before", NULL, NULL);
	options.lag_events_max = 5;
	assert_status(vd_cacher_watch(f.cacher, &options, NULL, &pulled[0], &error), VD_OK);
	options.revision = vd_cacher_revision(f.cacher);
	assert_status(vd_cacher_watch(f.cacher, &options, NULL, &pulled[1], &error), VD_OK);
	options.lag_events_max = 6;
	assert_status(vd_cacher_watch(f.cacher, &options, NULL, &pulled[2], &error), VD_OK);
	cacher_fixture_settle(&f);
	for (unsigned i = 0; i < 6; i++)
		put_pod(&f, "ns", "x", NULL, NULL);
	cacher_fixture_settle(&f);
	assert_status(vd_watcher_wait(pulled[0], VD_MS(0)), VD_OK);
	assert_status(vd_watcher_next(pulled[0], &event), VD_TOO_SLOW);
	assert_status(vd_watcher_next(pulled[1], &event), VD_TOO_SLOW);
	assert_status(vd_watcher_next(pulled[2], &event), VD_OK);
	assert_int_equal(vdi_metric_value(f.cacher->metrics.terminated_watchers), 2);
	for (unsigned i = 0; i < 3; i++)
		vd_watcher_close(pulled[i], NULL, NULL);
	cacher_fixture_teardown(&f);
}

/* rules: R-560, T-133, W-06 */
static void t121_nothing_is_left_of_many_watchers(void **state)
{
	struct cacher_fixture	f;
	struct vd_watch_options options = all();
	struct recorder	       *many = calloc(200, sizeof *many);

	cacher_fixture_setup(&f, 9);
	options.allow_bookmarks = true;
	for (unsigned i = 0; i < 200; i++) {
		char label[16];

		snprintf(label, sizeof label, "app=a%u", i % 10);
		options.label_selector = vd_bytes_of(label);
		assert_status(recorder_open(&f, &many[i], &options, i % 2 ? NULL : vdi_env_executor(f.env)),
			      VD_OK);
	}
	cacher_fixture_settle(&f);
	assert_int_equal(f.cacher->watcher_index.group_count, 10);
	assert_int_equal(f.cacher->bookmarks.count, 200);
	for (unsigned i = 0; i < 200; i++)
		recorder_close(&f, &many[i]);
	assert_int_equal(f.cacher->watcher_index.group_count, 0);
	assert_int_equal(f.cacher->bookmarks.count, 0);
	assert_int_equal(f.cacher->watchers.count, 0);
	assert_null(f.cacher->watchers.workers);
	cacher_fixture_teardown(&f);
	free(many);
}

static void torture_opening_a_watch(void **state)
{
	struct cacher_fixture	f;
	struct vd_watch_options options = all();
	struct recorder	       *r = calloc(1, sizeof *r);
	unsigned		failed = 0;

	cacher_fixture_setup(&f, 10);
	put_pod(&f, "ns", "x", "one", NULL);
	cacher_fixture_settle(&f);
	options.label_selector = vd_bytes_of("app=one");
	for (unsigned nth = 1;; nth++) {
		bool delivered;

		memset(r, 0, sizeof *r);
		vdi_alloc_fail_nth(nth, 1);
		if (recorder_open(&f, r, &options, vdi_env_executor(f.env)) != VD_OK) {
			failed++;
			vdi_alloc_fail_nth(0, 0);
			continue;
		}
		cacher_fixture_settle(&f);
		delivered = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		/* Either the state, or the truth. */
		if (r->ended)
			assert_status(r->reason, VD_NOMEM);
		else
			assert_string_equal(r->events[0].name, "ns/x");
		recorder_close(&f, r);
		if (!delivered)
			break;
	}
	assert_true(failed > 3);
	assert_int_equal(f.cacher->watchers.count, 0);
	cacher_fixture_teardown(&f);
	free(r);
}

static void torture_events_are_late_but_never_lost(void **state)
{
	struct cacher_fixture	f;
	struct vd_watch_options options = all();
	struct recorder	       *r = calloc(1, sizeof *r);
	vd_rev			first;

	cacher_fixture_setup(&f, 11);
	assert_status(recorder_open(&f, r, &options, vdi_env_executor(f.env)), VD_OK);
	cacher_fixture_settle(&f);
	first = vd_cacher_revision(f.cacher) + 1;
	for (unsigned nth = 1; nth < 60; nth++) {
		put_pod(&f, "ns", "x", "one", "n1");
		vdi_alloc_fail_nth(nth % 12 + 1, 1 + nth % 3);
		cacher_fixture_settle(&f);
		vdi_alloc_fail_nth(0, 0);
	}
	vdi_sim_advance(f.env, VD_SECONDS(2)); /* tried again after 100 ms, not when something else happens */
	if (r->ended == 0) {
		assert_int_equal(r->count, 59);
		for (unsigned i = 0; i < 59; i++)
			assert_int_equal(r->events[i].revision, first + i);
	}
	assert_int_equal(vd_cacher_revision(f.cacher), first + 58);
	recorder_close(&f, r);
	cacher_fixture_teardown(&f);
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t050_add_modify_delete),
		cmocka_unit_test(r552_selectors_turn_changes_into_additions_and_deletions),
		cmocka_unit_test(t067_r480_where_a_watch_starts),
		cmocka_unit_test(t116_r483_too_old_is_an_error_event),
		cmocka_unit_test(history_from_before_the_start_is_resumable),
		cmocka_unit_test(t127_r551_a_future_revision_is_waited_for_in_silence),
		cmocka_unit_test(t127_r541_a_watch_from_the_future_without_matches_has_bookmarks),
		cmocka_unit_test(t131_r520_a_state_newer_than_the_store_times_out),
		cmocka_unit_test(r520_a_state_whose_revision_cannot_be_read),
		cmocka_unit_test(t122_t124_r558_bookmarks_and_the_deadline),
		cmocka_unit_test(r541_the_bookmark_of_an_idle_resource_moves),
		cmocka_unit_test(t128_a_stuck_watcher_is_ended_and_delays_nobody),
		cmocka_unit_test(r560_closing_before_it_has_begun),
		cmocka_unit_test(t143_closing_inside_the_callbacks),
		cmocka_unit_test(t119_r562_the_end_of_the_cacher_ends_watches),
		cmocka_unit_test(pulling_gives_the_same_events),
		cmocka_unit_test(t128_a_watcher_that_was_never_pulled_is_too_slow_as_well),
		cmocka_unit_test(t121_nothing_is_left_of_many_watchers),
		cmocka_unit_test(torture_opening_a_watch),
		cmocka_unit_test(torture_events_are_late_but_never_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
