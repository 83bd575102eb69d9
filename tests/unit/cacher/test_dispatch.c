/* Watches against a model: random changes, watchers with random selectors from random revisions, random
 * slowness, closed and opened at random, over many schedules. What each watcher saw must be what a naive
 * filter over the log of changes gives: ordered, unique, reliable, right filter, right previous value. With a
 * store that delays, cuts and refuses the same must hold, across resumes and new generations. */
#include "cacher_fixture.h"

#include "cacher.h"
#include "env.h"
#include "store_chaos.h"

#define KEYS 12
#define LOG_MAX 2000
#define WATCHERS 24

struct state {
	bool exists;
	char app;  /* 0: no label */
	char node; /* 0: no node */
};

struct change {
	vd_rev	     revision;
	unsigned     key;
	struct state before, after;
};

struct model {
	struct cacher_fixture f;
	struct vd_store	     *chaos;
	struct state	      now[KEYS];
	struct change	      log[LOG_MAX];
	size_t		      log_len;
	vd_rev		      first_revision;
	uint64_t	      random;
};

struct viewer {
	struct recorder recorder;
	char		app, node; /* 0: any */
	char		ns;	   /* 0: any */
	bool		is_open;
	bool		from_state;
	vd_rev		from;
	unsigned	resumes_left;
};

static uint64_t roll(struct model *model, uint64_t below)
{
	model->random = model->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (model->random >> 33) % below;
}

static void key_name(unsigned key, char *ns, char *name)
{
	snprintf(ns, 8, "ns%u", key % 3);
	snprintf(name, 8, "p%02u", key);
}

static void change_something(struct model *model)
{
	unsigned       key = (unsigned) roll(model, KEYS);
	struct change *change = &model->log[model->log_len];
	char	       ns[8], name[8], app[2] = { 0 }, node[2] = { 0 };

	key_name(key, ns, name);
	*change = (struct change) { .key = key, .before = model->now[key] };
	if (model->now[key].exists && roll(model, 4) == 0) {
		change->revision = delete_pod(&model->f, ns, name);
	} else {
		change->after.exists = true;
		change->after.app = app[0] = (char) (roll(model, 3) ? 'a' + (char) roll(model, 3) : 0);
		change->after.node = node[0] = (char) (roll(model, 3) ? 'n' + (char) roll(model, 3) : 0);
		change->revision = put_pod(&model->f, ns, name, app[0] ? app : NULL, node[0] ? node : NULL);
	}
	model->now[key] = change->after;
	model->log_len++;
}

static bool wants(const struct viewer *viewer, unsigned key, const struct state *state)
{
	return state->exists && (!viewer->ns || viewer->ns == (char) ('0' + key % 3)) &&
	       (!viewer->app || viewer->app == state->app) && (!viewer->node || viewer->node == state->node);
}

static void open_viewer(struct model *model, struct viewer *viewer)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	char			label[16], field[32], ns[8];
	vd_status		status;

	if (viewer->ns && snprintf(ns, sizeof ns, "ns%c", viewer->ns) > 0)
		options.namespace_name = vd_bytes_of(ns);
	if (viewer->app && snprintf(label, sizeof label, "app=%c", viewer->app) > 0)
		options.label_selector = vd_bytes_of(label);
	if (viewer->node && snprintf(field, sizeof field, "spec.nodeName=%c", viewer->node) > 0)
		options.field_selector = vd_bytes_of(field);
	options.allow_bookmarks = true;
	if (viewer->from_state)
		options.send_initial_events = VD_TRUE;
	else
		options.revision = viewer->from;
	status = recorder_open(&model->f, &viewer->recorder, &options,
			       roll(model, 2) ? vdi_env_executor(model->f.env) : NULL);
	assert_true(status == VD_OK || status == VD_NOT_READY);
	viewer->is_open = status == VD_OK;
}

static void new_viewer(struct model *model, struct viewer *viewer)
{
	memset(viewer, 0, sizeof *viewer);
	viewer->ns = roll(model, 2) ? 0 : (char) ('0' + (char) roll(model, 3));
	viewer->app = roll(model, 2) ? 0 : (char) ('a' + (char) roll(model, 3));
	viewer->node = roll(model, 2) ? 0 : (char) ('n' + (char) roll(model, 3));
	viewer->recorder.room = 1 + roll(model, 30);
	viewer->from_state = roll(model, 2);
	viewer->from = model->log_len && roll(model, 3) ? model->log[roll(model, model->log_len)].revision :
							  vd_cacher_revision(model->f.cacher);
	if (viewer->from < model->first_revision)
		viewer->from = model->first_revision;
	open_viewer(model, viewer);
}

/* The state of the log at a revision, for this viewer. */
static size_t check_initial(const struct model *model, const struct viewer *viewer, vd_rev *ret_from)
{
	const struct recorder *r = &viewer->recorder;
	struct state	       at[KEYS] = { 0 };
	size_t		       count = 0, seen = 0;

	while (count < r->count && !r->events[count].end)
		count++;
	if (count == r->count) {
		*ret_from = 0;
		return count; /* cut short: nothing to compare with */
	}
	*ret_from = r->events[count].revision;
	for (size_t i = 0; i < model->log_len && model->log[i].revision <= *ret_from; i++)
		at[model->log[i].key] = model->log[i].after;
	for (unsigned ns = 0; ns < 3; ns++)
		for (unsigned key = ns; key < KEYS; key += 3)
			if (wants(viewer, key, &at[key])) {
				char space[8], name[8], full[20];

				key_name(key, space, name);
				snprintf(full, sizeof full, "%s/%s", space, name);
				assert_true(seen < count);
				assert_true(r->events[seen].initial);
				assert_string_equal(r->events[seen].name, full);
				seen++;
			}
	assert_int_equal(seen, count);
	return count + 1;
}

static void check_viewer(const struct model *model, const struct viewer *viewer, bool is_complete)
{
	const struct recorder *r = &viewer->recorder;
	vd_rev		       from = viewer->from;
	size_t		       at = viewer->from_state ? check_initial(model, viewer, &from) : 0;

	if (viewer->from_state && from == 0)
		return;
	for (size_t i = 0; i < model->log_len; i++) {
		const struct change *change = &model->log[i];
		bool		     was = wants(viewer, change->key, &change->before);
		bool		     is = wants(viewer, change->key, &change->after);
		char		     space[8], name[8], full[20];

		if (change->revision <= from || (!was && !is))
			continue;
		while (at < r->count && r->events[at].type == VD_WATCH_BOOKMARK) {
			assert_true(r->events[at].revision < change->revision);
			at++;
		}
		if (at == r->count || r->events[at].type == VD_WATCH_ERROR) {
			assert_false(is_complete);
			return;
		}
		key_name(change->key, space, name);
		snprintf(full, sizeof full, "%s/%s", space, name);
		assert_int_equal(r->events[at].revision, change->revision);
		assert_string_equal(r->events[at].name, full);
		assert_int_equal(r->events[at].type, !was ? VD_WATCH_ADDED :
						     is	  ? VD_WATCH_MODIFIED :
							    VD_WATCH_DELETED);
		if (was)
			assert_int_equal(r->events[at].old_app[0], change->before.app);
		at++;
	}
	while (at < r->count &&
	       (r->events[at].type == VD_WATCH_BOOKMARK || r->events[at].type == VD_WATCH_ERROR))
		at++;
	assert_int_equal(at, r->count);
}

static void nudge(struct model *model, struct viewer *viewer)
{
	if (!viewer->is_open) {
		new_viewer(model, viewer);
		return;
	}
	switch (roll(model, 12)) {
	case 0: /* may be closed in the middle of anything */
		recorder_close(&model->f, &viewer->recorder);
		check_viewer(model, viewer, false);
		viewer->is_open = false;
		break;
	case 1:
	case 2:
	case 3:
		viewer->recorder.room += 1 + roll(model, 40);
		vd_watcher_resume(viewer->recorder.watcher);
		break;
	default: break;
	}
	if (viewer->is_open && viewer->recorder.ended) {
		assert_true(viewer->recorder.reason == VD_CLOSED || viewer->recorder.reason == VD_EXPIRED ||
			    (model->chaos && (viewer->recorder.reason == VD_UNAVAILABLE ||
					      viewer->recorder.reason == VD_TOO_LARGE_REVISION)));
		recorder_close(&model->f, &viewer->recorder);
		check_viewer(model, viewer, false);
		viewer->is_open = false;
	}
}

static bool caught_up(void *arg)
{
	struct model *model = arg;

	return vd_cacher_ready(model->f.cacher, NULL) == VD_OK &&
	       vd_cacher_revision(model->f.cacher) >= model->log[model->log_len - 1].revision;
}

static void run_model(uint64_t seed, const struct chaos_options *chaos, size_t steps, int64_t history_bytes)
{
	struct model  *model = calloc(1, sizeof *model);
	struct viewer *viewers = calloc(WATCHERS, sizeof *viewers);

	model->random = seed * 77 + 1;
	cacher_fixture_init(&model->f, seed);
	model->f.options.history_bytes = history_bytes;
	if (seed % 2)
		vdi_sim_set_step_delay(model->f.env, VD_US(300));
	if (chaos)
		model->chaos = chaos_store_new(model->f.env, model->f.store, chaos);
	cacher_fixture_open(&model->f, model->chaos);
	model->first_revision = vd_cacher_revision(model->f.cacher);
	for (size_t step = 0; step < steps; step++) {
		change_something(model);
		nudge(model, &viewers[roll(model, WATCHERS)]);
		nudge(model, &viewers[roll(model, WATCHERS)]);
		if (roll(model, 10) == 0)
			cacher_fixture_settle(&model->f);
	}
	if (chaos)
		chaos_set(model->chaos, &(struct chaos_options) { 0 });
	assert_true(vdi_sim_run_until(model->f.env, caught_up, model, VD_SECONDS(600)));
	for (size_t i = 0; i < WATCHERS; i++)
		if (viewers[i].is_open) {
			viewers[i].recorder.room = SIZE_MAX;
			vd_watcher_resume(viewers[i].recorder.watcher);
		}
	vdi_sim_advance(model->f.env, VD_SECONDS(1));
	for (size_t i = 0; i < WATCHERS; i++)
		if (viewers[i].is_open) {
			bool is_complete = viewers[i].recorder.ended == 0;

			recorder_close(&model->f, &viewers[i].recorder);
			check_viewer(model, &viewers[i], is_complete);
		}
	/* Closing the cacher over a store that is torn at the same time is the simulator's business, not this
	 * test's. */
	model->f.cacher = vd_cacher_close_wait(model->f.cacher);
	if (model->chaos)
		chaos_store_free(model->chaos);
	cacher_fixture_teardown(&model->f);
	free(viewers);
	free(model);
}

static void r522_every_watcher_sees_exactly_its_part_of_the_log(void **state)
{
	for (uint64_t seed = 1; seed <= 20; seed++)
		run_model(seed, NULL, 400, 64 << 20);
}

static void r485_a_short_history_expires_watchers_but_never_skips(void **state)
{
	for (uint64_t seed = 100; seed <= 110; seed++)
		run_model(seed, NULL, 400, 8000);
}

static void r312_cuts_and_refusals_lose_nothing(void **state)
{
	const struct chaos_options chaos = { .delay = 100,
					     .delay_max = VD_MS(50),
					     .refuse = 20,
					     .cut = 20,
					     .stall = 50,
					     .refuse_watch = 100 };

	for (uint64_t seed = 200; seed <= 210; seed++)
		run_model(seed, &chaos, 300, 64 << 20);
}

/* The newest events of the history are the recent ones, whose frames are kept; all others are not. */
static void assert_recent(const struct cacher_fixture *f, size_t count)
{
	const struct vdi_recent_events *recent = &f->cacher->recent;
	const struct vdi_history       *history = &f->cacher->watch_cache.history;
	int64_t				bytes = 0;

	assert_int_equal(recent->count, count);
	assert_true(history->end - history->start >= count);
	for (uint64_t position = history->start; position < history->end; position++) {
		struct vdi_event *event = vdi_history_at(history, position);
		size_t		  age = (size_t) (history->end - position);

		assert_int_equal(atomic_load(&event->recent), age <= count);
		if (age > count)
			continue;
		assert_ptr_equal(recent->events[(recent->start + count - age) % VDI_RECENT_EVENTS], event);
		bytes += (int64_t) event->size_bytes;
	}
	assert_int_equal(recent->bytes, bytes);
	assert_true(bytes <= VDI_RECENT_BYTES);
}

static void put_large(struct cacher_fixture *f, size_t size)
{
	static const char head[] = "{\"metadata\":{\"name\":\"big\",\"namespace\":\"ns\"},\"x\":\"";
	char		 *value = malloc(size);

	memset(value, 'x', size);
	memcpy(value, head, sizeof head - 1);
	memcpy(value + size - 2, "\"}", 2);
	assert_status(vd_store_put_wait(f->store, vd_bytes_of("/registry/pods/ns/big"),
					(struct vd_bytes) { value, size }, NULL, NULL),
		      VD_OK);
	free(value);
	cacher_fixture_settle(f);
}

/* As many as there is room for, by number and by bytes, and for two seconds after the last. */
static void r572_frames_are_kept_of_recent_events(void **state)
{
	struct cacher_fixture f;

	cacher_fixture_init(&f, 3);
	f.options.history_bytes = 256 << 20;
	cacher_fixture_open(&f, NULL);
	assert_recent(&f, 0);
	for (unsigned i = 1; i <= 2 * VDI_RECENT_EVENTS + 5; i++) {
		put_pod(&f, "ns", i % 2 ? "x" : "y", NULL, NULL);
		vdi_sim_run_until_idle(f.env);
		assert_recent(&f, VDI_MIN(i, (unsigned) VDI_RECENT_EVENTS));
	}
	vdi_sim_advance(f.env, VD_MS(1990));
	assert_recent(&f, VDI_RECENT_EVENTS);
	vdi_sim_advance(f.env, VD_MS(20));
	assert_recent(&f, 0);
	put_pod(&f, "ns", "x", NULL, NULL);
	vdi_sim_advance(f.env, VD_MS(1500));
	assert_recent(&f, 1);
	put_pod(&f, "ns", "x", NULL, NULL);
	vdi_sim_advance(f.env, VD_MS(1500)); /* the time begins with the last */
	assert_recent(&f, 2);
	vdi_sim_advance(f.env, VD_MS(600));
	assert_recent(&f, 0);
	for (unsigned i = 1; i <= 6; i++) {
		put_large(&f, 5 << 20);
		assert_recent(&f, VDI_MIN(i, 3u));
	}
	put_pod(&f, "ns", "x", NULL, NULL);
	vdi_sim_run_until_idle(f.env);
	assert_recent(&f, 4);
	cacher_fixture_teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r522_every_watcher_sees_exactly_its_part_of_the_log),
		cmocka_unit_test(r485_a_short_history_expires_watchers_but_never_skips),
		cmocka_unit_test(r312_cuts_and_refusals_lose_nothing),
		cmocka_unit_test(r572_frames_are_kept_of_recent_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
