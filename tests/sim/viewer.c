/* A viewer has a cursor into the log. Its next event must be the next record that its filter matches before
 * or after the change. If the start revision of a watch is unknown (a watch "from now", or with the state but
 * without a bookmark), the first event or bookmark determines the cursor. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include "cacher.h"
#include "reader.h"
#include "viewer_state.h"

static struct sim_cacher *cacher_of(const struct viewer *viewer)
{
	return &viewer->world->cachers[viewer->filter.cacher];
}

/* ---- The end ---- */

static void check_too_slow(struct viewer *viewer)
{
	struct world  *world = viewer->world;
	struct oracle *oracle = &world->oracle;
	int64_t	       events = 0, bytes = 0;
	int64_t	       bytes_max = viewer->lag_bytes_max ?: cacher_of(viewer)->options.lag_bytes_max;

	world->marks.watch_too_slow++;
	oracle_drain(oracle);
	if (!viewer->is_known)
		return;
	for (int i = viewer->cursor; (i = viewer_next_from(viewer, i)) >= 0; i++) {
		events++;
		bytes += (int64_t) (oracle->records[i].value_size +
				    strlen(oracle->keys[oracle->records[i].key].text) +
				    VDI_EVENT_OVERHEAD_BYTES);
		/* A deletion counts the size of the deleted object. */
		if (oracle->records[i].is_delete && oracle->records[i].previous >= 0)
			bytes += (int64_t) oracle->records[oracle->records[i].previous].value_size;
	}
	if (!(viewer->lag_events_max && events > viewer->lag_events_max) && bytes <= bytes_max)
		viewer_fail(viewer, "every ended watch knows why",
			    "too slow with %lld events, %lld bytes behind", (long long) events,
			    (long long) bytes);
	if (!viewer->is_pulled && viewer->free_since.ns &&
	    vd_mono_since(world_now(world), viewer->free_since).ns > VD_SECONDS(1).ns + world->stall_max.ns)
		viewer_fail(viewer, "a slow client never delays others",
			    "too slow, though it took everything");
}

static void check_end(struct viewer *viewer, vd_status reason)
{
	struct world	  *world = viewer->world;
	struct sim_cacher *cacher = cacher_of(viewer);

	if (viewer->has_error && reason != viewer->error)
		viewer_fail(viewer, "every ended watch knows why", "ends with %s after the error %s",
			    vd_status_name(reason), vd_status_name(viewer->error));
	switch (reason) {
	case VD_TIMEOUT:
		if (viewer->deadline.ns > world_now(world).ns)
			viewer_fail(viewer, "every ended watch knows why", "timeout before its deadline");
		world->marks.watch_timeout++;
		break;
	case VD_TOO_SLOW: check_too_slow(viewer); break;
	case VD_CLOSED:
		if (!world->is_closing && viewer->restarts_at_open == world->restarts &&
		    (uint32_t) cacher->cacher->ready.generation == viewer->generation_at_open &&
		    cacher->cacher->reflector.relists == viewer->relists_at_open)
			viewer_fail(viewer, "every ended watch knows why", "closed, but the cache goes on");
		world->marks.watch_closed++;
		break;
	case VD_EXPIRED:
		if (!viewer->has_error)
			viewer_fail(viewer, "every ended watch knows why", "expired without an error event");
		world->marks.watch_expired++;
		viewer->must_relist = true;
		break;
	case VD_UNAVAILABLE:
	case VD_TOO_LARGE_REVISION:
	case VD_INTERNAL:
		if (!viewer->has_error)
			viewer_fail(viewer, "every ended watch knows why", "%s without an error event",
				    vd_status_name(reason));
		if (world->is_calm && vd_mono_since(viewer->opened, world->calm_since).ns > VD_SECONDS(30).ns)
			viewer_fail(viewer, "errors are true", "%s in calm waters", vd_status_name(reason));
		world->marks.watch_unavailable++;
		break;
	default: viewer_fail(viewer, "every ended watch knows why", "ends with %s", vd_status_name(reason));
	}
	if (viewer_is_mid_revision(viewer) && !viewer->is_stuck && reason != VD_TOO_SLOW)
		viewer_fail(viewer, "atomic", "ends (%s) in the middle of revision %lld",
			    vd_status_name(reason), (long long) viewer->last);
}

/* A client that closes on another thread than the sink's may receive one more call. */
static bool is_late_call(struct viewer *viewer)
{
	if (viewer->phase != CLOSING || viewer->late_calls == 0)
		return false;
	viewer->late_calls--;
	return true;
}

static void on_ended(void *arg, vd_status reason)
{
	struct viewer *viewer = arg;

	SIM_ATOMIC(viewer->world);
	if (is_late_call(viewer))
		return;

	if (viewer->phase != OPEN)
		viewer_fail(viewer, "every ended watch knows why", "ends twice, or after it was closed");
	sim_trace(viewer->world, "viewer %u ends: %s, last %lld", viewer->number, vd_status_name(reason),
		  (long long) viewer->last);
	check_end(viewer, reason);
	viewer->reason = reason;
	viewer->phase = ENDED;
}

static void on_closed(void *arg)
{
	struct viewer *viewer = arg;

	SIM_ATOMIC(viewer->world);

	if (viewer->phase != CLOSING)
		viewer_fail(viewer, "every ended watch knows why", "closed twice");
	viewer->phase = IDLE;
	viewer->retry_at =
		vd_mono_add(world_now(viewer->world),
			    VD_MS((int64_t) roll(viewer->world, viewer->world->is_calm ? 50 : 500)));
}

static void close_viewer(struct viewer *viewer, bool is_own_thread)
{
	struct vd_watcher *watcher = viewer->watcher;

	viewer->watcher = NULL;
	viewer->phase = CLOSING;
	viewer->late_calls = is_own_thread ? 0 : UINT_MAX;
	SIM_PREEMPTIBLE(viewer->world, vd_watcher_close(watcher, on_closed, viewer));
	viewer->late_calls = VDI_MIN(viewer->late_calls, 1u);
}

/* ---- Reading ---- */

static size_t deliver(void *arg, const struct vd_watch_event *events, size_t count)
{
	struct viewer *viewer = arg;
	struct world  *world = viewer->world;
	size_t	       wanted = count, taken;
	bool	       closes;

	SIM_ATOMIC(world);
	if (is_late_call(viewer))
		return count;
	if (viewer->phase != OPEN)
		viewer_fail(viewer, "every ended watch knows why", "events after its end");
	if (count == 0)
		viewer_fail(viewer, "right object", "nothing is delivered");
	if (viewer->stalled_until.ns > world_now(world).ns)
		wanted = 0;
	else if (viewer->pace != PACE_FAST && !world->is_calm)
		wanted = VDI_MIN(wanted, viewer->room);
	closes = viewer->closes_in_deliver && viewer->watcher && wanted > 0 && !world->is_calm &&
		 chance(world, 10);
	if (closes)
		wanted = roll(world, count + 1);
	/* Take whole revisions, as a client that intends to resume. */
	while (wanted > 0 && wanted < count && events[wanted].revision == events[wanted - 1].revision)
		wanted++;
	for (taken = 0; taken < wanted; taken++)
		viewer_take_event(viewer, &events[taken]);
	viewer->room -= VDI_MIN(viewer->room, taken);
	if (closes) {
		world->marks.closed_in_deliver++;
		close_viewer(viewer, true);
		return taken;
	}
	/* A client that loses its connection now resumes from its last revision. */
	if (taken == count && viewer_is_mid_revision(viewer))
		viewer_fail(viewer, "atomic", "what was delivered ends in the middle of revision %lld",
			    (long long) viewer->last);
	if (taken < count) {
		world->marks.took_less++;
		viewer->is_stuck = true;
		viewer->free_since.ns = 0;
	} else if (viewer->free_since.ns == 0) {
		viewer->free_since = world_now(world);
	}
	return taken;
}

static void pull(struct viewer *viewer)
{
	struct world	     *world = viewer->world;
	struct vd_watch_event event;
	unsigned  budget = viewer->pace == PACE_FAST || world->is_calm ? 1000 : (unsigned) roll(world, 8);
	vd_status status = VD_AGAIN;

	if (viewer->stalled_until.ns > world_now(world).ns)
		return;
	while (budget > 0 || viewer_is_mid_revision(viewer)) {
		SIM_PREEMPTIBLE(world, status = vd_watcher_next(viewer->watcher, &event));
		if (status != VD_OK)
			break;
		viewer_take_event(viewer, &event);
		budget -= budget > 0;
	}
	if (status == VD_AGAIN && viewer_is_mid_revision(viewer))
		viewer_fail(viewer, "atomic", "there is nothing more in the middle of revision %lld",
			    (long long) viewer->last);
	if (status != VD_OK && status != VD_AGAIN)
		on_ended(viewer, status);
	else if (status == VD_AGAIN && viewer->free_since.ns == 0)
		viewer->free_since = world_now(world);
	else if (status == VD_OK)
		viewer->free_since.ns = 0;
}

/* ---- Opening ---- */

static void relisted(void *arg, vd_rev revision, vd_status status)
{
	struct viewer *viewer = arg;
	struct world  *world = viewer->world;

	SIM_ATOMIC(world);
	viewer->phase = IDLE;
	viewer->retry_at = vd_mono_add(world_now(world), VD_MS((int64_t) roll(world, 100)));
	if (status != VD_OK)
		return;
	viewer->last = revision;
	viewer->cursor = oracle_after(&world->oracle, revision);
	viewer->is_known = true;
	viewer->must_relist = false;
	world->marks.watch_relisted++;
}

static void choose_start(struct viewer *viewer, struct vd_watch_options *options)
{
	struct world	  *world = viewer->world;
	struct sim_cacher *cacher = cacher_of(viewer);

	if (viewer->start == START_AFTER && viewer->last == 0)
		viewer->start = START_STATE;
	viewer->is_resume = viewer->last != 0 && viewer->is_known;
	if (viewer->is_resume) {
		viewer->start = START_AFTER;
	} else {
		viewer->start = (enum start) roll(world, START_KINDS);
		if (viewer->start == START_STATE_BOOKMARK)
			viewer->has_bookmarks = true;
		if (viewer->start == START_STATE && viewer->has_bookmarks)
			viewer->start = START_STATE_BOOKMARK;
		if (viewer->start == START_AFTER) {
			/* Somewhere in the past, or a little in the future. */
			viewer->last = 1 + (vd_rev) roll(world, (uint64_t) world->oracle.revision + 5);
			if (viewer->last > world->oracle.revision)
				world->marks.future_watch++;
			viewer->is_known = true;
		}
	}
	viewer->in_state = viewer->start <= START_LEGACY_ANY;
	viewer->initial_count = 0;
	viewer->opened_below = 0;
	viewer->opened_above = 0;
	switch (viewer->start) {
	case START_STATE_BOOKMARK:
	case START_STATE:
		options->send_initial_events = VD_TRUE;
		viewer->opened_above = world->acknowledged;
		if (chance(world, 300)) {
			options->revision = VD_REVISION_ANY;
			viewer->opened_above = vd_cacher_revision(cacher->cacher);
		}
		break;
	case START_LEGACY_ANY:
		options->revision = chance(world, 500) ? VD_REVISION_ANY : VD_REVISION_UNSET;
		viewer->opened_above = vd_cacher_revision(cacher->cacher);
		break;
	case START_NOW:
		options->send_initial_events = VD_FALSE;
		viewer->opened_above = world->acknowledged;
		break;
	case START_CACHE_NOW:
		options->send_initial_events = VD_FALSE;
		options->revision = VD_REVISION_ANY;
		viewer->opened_above = vd_cacher_revision(cacher->cacher);
		break;
	default:
		options->revision = viewer->last;
		viewer->cursor = oracle_after(&world->oracle, viewer->last);
	}
	viewer->floor = viewer->start == START_AFTER ? viewer->last : 0;
	if (viewer->start != START_AFTER) {
		viewer->last = 0;
		viewer->is_known = false;
	}
}

static void open_viewer(struct viewer *viewer)
{
	struct world	       *world = viewer->world;
	struct sim_cacher      *cacher = cacher_of(viewer);
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct vd_watch_sink	sink = { deliver, on_ended, viewer,
					 viewer->executor < 0 ? NULL : &world->executors[viewer->executor] };
	struct vd_error		error = { 0 };
	vd_status		status;

	if (cacher->cacher == NULL || world->is_closing)
		return;
	if (viewer->must_relist) {
		viewer->phase = LISTING;
		readers_relist(world, &viewer->filter, relisted, viewer);
		return;
	}
	choose_start(viewer, &options);
	options.namespace_name = vd_bytes_of(viewer->filter.namespace_name);
	options.name = vd_bytes_of(viewer->filter.name);
	options.label_selector = vd_bytes_of(viewer->filter.label_text);
	options.field_selector = vd_bytes_of(viewer->filter.field_text);
	options.allow_bookmarks = viewer->has_bookmarks;
	viewer->lag_events_max = options.lag_events_max =
		viewer->wants_tight_lag ? 1 + (int64_t) roll(world, 20) : 0;
	viewer->lag_bytes_max = options.lag_bytes_max =
		viewer->wants_tight_lag && chance(world, 500) ? 2000 : 0;
	viewer->deadline = VD_NEVER;
	if (viewer->wants_deadline && !world->is_calm)
		viewer->deadline = vd_mono_add(world_now(world), VD_MS((int64_t) roll(world, 20000)));
	options.deadline = viewer->deadline;
	viewer->opened = viewer->last_bookmark = world_now(world);
	viewer->generation_at_open = (uint32_t) cacher->cacher->ready.generation;
	viewer->relists_at_open = cacher->cacher->reflector.relists;
	viewer->restarts_at_open = world->restarts;
	viewer->has_error = false;
	viewer->is_stuck = false;
	viewer->free_since = world_now(world);
	viewer->room = roll(world, 10);
	viewer->phase = OPEN;
	sim_trace(world, "viewer %u opens: start %d revision %lld", viewer->number, (int) viewer->start,
		  (long long) options.revision);
	SIM_PREEMPTIBLE(world,
			status = vd_cacher_watch(cacher->cacher, &options, viewer->is_pulled ? NULL : &sink,
						 &viewer->watcher, &error));
	if (status == VD_OK) {
		world->marks.watch_resumed += viewer->is_resume;
		return;
	}
	viewer->phase = IDLE;
	viewer->watcher = NULL;
	viewer->retry_at = vd_mono_add(world_now(world), VD_MS(20));
	if (status == VD_NOT_READY && !world->is_calm)
		world->marks.watch_not_ready++;
	else if (status == VD_FULL)
		world->marks.watch_full++;
	else if (status != VD_NOT_READY)
		viewer_fail(viewer, "errors are true", "a watch is refused with %s: %s",
			    vd_status_name(status), error.message);
}

/* ---- Public functions ---- */

struct viewers *viewers_new(struct world *world)
{
	struct viewers *viewers = calloc(1, sizeof *viewers);

	viewers->count = VIEWERS_MIN + 4 + (unsigned) roll(world, VIEWERS_MAX - VIEWERS_MIN - 3);
	for (unsigned i = 0; i < viewers->count; i++) {
		struct viewer *viewer = &viewers->all[i];

		viewer->world = world;
		viewer->number = i;
		filter_random(world, &viewer->filter);
		/* Two viewers that share a group with others, at different speeds, and at least one of every
		 * kind. */
		if (i % 8 == 1)
			viewer->filter = viewers->all[i - 1].filter;
		if (i % 8 == 2) {
			memset(&viewer->filter, 0, sizeof viewer->filter);
			viewer->filter.cacher = i % 16 == 2 ? 0 : 1;
		}
		viewer->pace = i % 3 == 0	   ? PACE_FAST :
			       i % 3 == 1	   ? PACE_SLOW :
			       world->swarm.stalls ? PACE_STALLS :
						     PACE_FAST;
		viewer->is_pulled = i % 4 == 3;
		viewer->executor = (int) (i % 3) - 1;
		viewer->has_bookmarks = chance(world, 600);
		viewer->wants_tight_lag = viewer->pace != PACE_FAST && chance(world, 300);
		viewer->wants_deadline = chance(world, 150);
		viewer->closes_in_deliver = world->swarm.closes && chance(world, 200);
	}
	return viewers;
}

void viewers_free(struct viewers *viewers)
{
	free(viewers);
}

size_t viewers_open(const struct world *world)
{
	size_t open = 0;

	for (unsigned i = 0; i < world->viewers->count; i++)
		open += world->viewers->all[i].phase != IDLE;
	return open;
}

static void tend(struct viewer *viewer)
{
	struct world *world = viewer->world;

	switch (viewer->phase) {
	case IDLE:
		if (viewer->retry_at.ns <= world_now(world).ns)
			open_viewer(viewer);
		break;
	case OPEN:
		if (viewer->is_pulled)
			pull(viewer);
		else if (viewer->is_stuck && viewer->stalled_until.ns <= world_now(world).ns &&
			 (world->is_calm || chance(world, 300))) {
			viewer->room = 1 + roll(world, 20);
			viewer->is_stuck = false;
			viewer->free_since = viewer->pace == PACE_FAST || world->is_calm ? world_now(world) :
											   (vd_mono) { 0 };
			SIM_PREEMPTIBLE(world, vd_watcher_resume(viewer->watcher));
		}
		/* A watch that was opened long ago has been opened by now. */
		if (viewer->phase == OPEN && !viewer->opened_below &&
		    vd_mono_since(world_now(world), viewer->opened).ns > VD_SECONDS(15).ns)
			viewer->opened_below = world->oracle.revision;
		break;
	case ENDED: close_viewer(viewer, false); break;
	default: break;
	}
}

void viewers_tend(struct world *world)
{
	for (unsigned i = 0; i < world->viewers->count; i++)
		tend(&world->viewers->all[i]);
}

static void stall(struct viewer *viewer)
{
	struct world *world = viewer->world;

	world->marks.stalled_client++;
	viewer->stalled_until = vd_mono_add(world_now(world), VD_MS((int64_t) roll(world, 8000)));
	viewer->free_since.ns = 0;
}

void viewers_stall_one(struct world *world)
{
	for (unsigned i = 0; i < world->viewers->count; i++)
		if (world->viewers->all[i].phase == OPEN) {
			stall(&world->viewers->all[i]);
			return;
		}
}

void viewers_nudge(struct world *world)
{
	struct viewer *viewer = &world->viewers->all[roll(world, world->viewers->count)];

	if (viewer->pace == PACE_STALLS && viewer->phase == OPEN && chance(world, 100))
		stall(viewer);
	if (world->swarm.closes && viewer->phase == OPEN && chance(world, 15)) {
		world->marks.closed_by_client++;
		close_viewer(viewer, false);
	}
	/* Now and then a viewer becomes another client. */
	if (viewer->phase == IDLE && chance(world, 100)) {
		viewer->last = 0;
		viewer->is_known = false;
		viewer->must_relist = false;
		if (chance(world, 500))
			filter_random(world, &viewer->filter);
	}
	tend(viewer);
}

void viewers_check_progress(struct world *world)
{
	vd_mono now = world_now(world);

	for (unsigned i = 0; i < world->viewers->count; i++) {
		struct viewer	  *viewer = &world->viewers->all[i];
		struct sim_cacher *cacher = cacher_of(viewer);
		vd_rev		   stood = 0;
		int		   next;

		/* A pulled watch may hold events that it was not asked for. */
		if (viewer->phase != OPEN || !viewer->is_known || viewer->in_state || viewer->is_pulled ||
		    viewer->is_stuck || viewer->free_since.ns == 0 ||
		    vd_mono_since(now, viewer->free_since).ns < VD_SECONDS(2).ns ||
		    vd_mono_since(now, viewer->opened).ns < VD_SECONDS(15).ns)
			continue;
		for (unsigned j = 0; j < VDI_ARRAY_SIZE(cacher->stood); j++)
			if (cacher->stood[j].time.ns &&
			    vd_mono_since(now, cacher->stood[j].time).ns >
				    VD_SECONDS(1).ns + world->stall_max.ns &&
			    cacher->stood[j].time.ns > viewer->opened.ns)
				stood = VDI_MAX(stood, cacher->stood[j].revision);
		next = viewer_next_expected(viewer);
		if (next >= 0 && world->oracle.records[next].revision <= stood)
			viewer_fail(viewer, "a slow client never delays others",
				    "%lld has been in the cache for a second and did not come",
				    (long long) world->oracle.records[next].revision);
		if (viewer->has_bookmarks &&
		    vd_mono_since(now, viewer->last_bookmark).ns > VD_SECONDS(70).ns &&
		    viewer->deadline.ns == INT64_MAX && !world->is_down &&
		    viewer->floor <= vd_cacher_revision(cacher->cacher) &&
		    vd_mono_since(now, viewer->free_since).ns > VD_SECONDS(70).ns)
			viewer_fail(viewer, "bookmarkable", "no bookmark for %lld s",
				    (long long) vd_mono_since(now, viewer->last_bookmark).ns / 1000000000);
	}
}

bool viewers_caught_up(struct world *world, char *ret_why, size_t size)
{
	struct oracle *oracle = &world->oracle;

	for (unsigned i = 0; i < world->viewers->count; i++) {
		struct viewer *viewer = &world->viewers->all[i];
		int	       next = -1;

		viewer->stalled_until.ns = 0;
		if (viewer->phase == OPEN && viewer->is_known && !viewer->in_state)
			next = viewer_next_expected(viewer);
		if (viewer->phase != OPEN &&
		    cacher_of(viewer)->cacher->options.watcher_count_max > viewers_open(world)) {
			snprintf(ret_why, size, "viewer %u is in phase %d", i, (int) viewer->phase);
			return false;
		}
		if (viewer->phase == OPEN && viewer->in_state && viewer->start == START_STATE_BOOKMARK) {
			snprintf(ret_why, size, "viewer %u has no end of its initial events", i);
			return false;
		}
		if (next >= 0) {
			snprintf(ret_why, size,
				 "viewer %u (start %d %s '%s' '%s') waits for revision %lld, it has %lld", i,
				 (int) viewer->start, viewer->is_pulled ? "pulled" : "pushed",
				 viewer->filter.label_text, viewer->filter.field_text,
				 (long long) oracle->records[next].revision, (long long) viewer->last);
			return false;
		}
		/* An initial state without an end must be the present one by now. */
		if (viewer->phase == OPEN && viewer->in_state) {
			const struct oracle_record *records[ORACLE_KEYS_MAX];
			size_t count = filter_state(oracle, &viewer->filter, oracle->revision, records);

			if (count != viewer->initial_count) {
				snprintf(ret_why, size, "viewer %u has %zu of %zu initial events", i,
					 viewer->initial_count, count);
				return false;
			}
			for (size_t j = 0; j < count; j++)
				if (&oracle->records[viewer->initial[j]] != records[j]) {
					snprintf(ret_why, size, "viewer %u has another initial state", i);
					return false;
				}
		}
	}
	return true;
}

void viewers_close_all(struct world *world, bool all_at_once)
{
	for (unsigned i = 0; i < world->viewers->count; i++) {
		struct viewer *viewer = &world->viewers->all[i];

		if (viewer->watcher && (all_at_once || chance(world, 100)))
			close_viewer(viewer, false);
	}
}
