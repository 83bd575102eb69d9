/* How: a viewer has a cursor into the log. What it must see next is the next record that its filter wants
 * before or after the change. Where the start of a watch is not told (a watch "from now", or with the state
 * but without a bookmark) the cursor is found by the first event or bookmark. */
#include "viewer.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "cacher.h"
#include "reader.h"

#define VIEWERS_MAX 32

enum start {
	START_STATE_BOOKMARK,
	START_STATE,
	START_LEGACY_ANY,
	START_NOW,
	START_CACHE_NOW,
	START_AFTER,
	START_KINDS
};
enum pace { PACE_FAST, PACE_SLOW, PACE_STALLS };
enum phase { IDLE, LISTING, OPEN, ENDED, CLOSING };

struct viewer {
	struct world	 *world;
	unsigned	  number;
	struct sim_filter filter;
	enum pace	  pace;
	bool		  is_pulled;
	int		  runner; /* -1: the cacher's own actor */
	bool		  has_bookmarks, wants_tight_lag, wants_deadline, closes_in_deliver;

	enum phase	   phase;
	struct vd_watcher *watcher;
	enum start	   start;
	vd_mono		   opened;
	vd_mono		   deadline;
	int64_t		   lag_events_max, lag_bytes_max;
	vd_rev		   opened_above; /* it must start at or after this */
	vd_rev		   opened_below; /* and at or before this; 0: not known yet */
	uint64_t	   relists_at_open;
	uint32_t	   generation_at_open;
	bool		   is_resume;
	uint64_t	   restarts_at_open;

	vd_rev	floor;	  /* asked for what comes after this, which may be in the future */
	vd_rev	last;	  /* last event or bookmark; where a new watch goes on; 0: nothing yet */
	int	cursor;	  /* next record to look at */
	bool	is_known; /* the cursor is */
	bool	in_state; /* initial events are coming */
	int	initial[ORACLE_KEYS_MAX]; /* records */
	size_t	initial_count;
	vd_mono last_bookmark;

	unsigned  late_calls; /* of the sink, that may still come though it is closed */
	bool	  has_error;  /* an ERROR event came */
	vd_status error;
	vd_status reason;
	bool	  is_stuck; /* took less than offered */
	size_t	  room;
	vd_mono	  stalled_until;
	vd_mono	  free_since; /* it takes everything since then */
	vd_mono	  retry_at;
	bool	  must_relist;
};

struct viewers {
	struct viewer all[VIEWERS_MAX];
	unsigned      count;
};

static struct sim_cacher *cacher_of(const struct viewer *viewer)
{
	return &viewer->world->cachers[viewer->filter.cacher];
}

#define fail(viewer, property, format, ...)                                                                  \
	sim_fail((viewer)->world, property,                                                                  \
		 "viewer %u (start %d, %s '%s' '%s' ns '%s' name '%s', last %lld): " format,                 \
		 (viewer)->number, (int) (viewer)->start,                                                    \
		 (viewer)->is_pulled  ? "pulled" :                                                           \
		 (viewer)->runner < 0 ? "inline" :                                                           \
					"runner",                                                            \
		 (viewer)->filter.label_text, (viewer)->filter.field_text, (viewer)->filter.namespace_name,  \
		 (viewer)->filter.name, (long long) (viewer)->last, ##__VA_ARGS__)

/* ---- What must come next ---- */

static bool is_for(const struct viewer *viewer, const struct oracle_record *record, bool *ret_was,
		   bool *ret_is)
{
	const struct oracle *oracle = &viewer->world->oracle;

	if (record->revision <= viewer->floor)
		return *ret_was = *ret_is = false;
	*ret_was = record->previous >= 0 &&
		   filter_wants(oracle, &viewer->filter, &oracle->records[record->previous]);
	*ret_is = filter_wants(oracle, &viewer->filter, record);
	return *ret_was || *ret_is;
}

/* The next record for this viewer from index on; -1: none. */
static int next_from(const struct viewer *viewer, int index)
{
	const struct oracle *oracle = &viewer->world->oracle;
	bool		     was, is;

	for (; index < oracle->record_count; index++)
		if (is_for(viewer, &oracle->records[index], &was, &is))
			return index;
	return -1;
}

static int next_expected(struct viewer *viewer)
{
	int index = next_from(viewer, viewer->cursor);

	viewer->cursor = index < 0 ? viewer->world->oracle.record_count : index;
	return index;
}

/* ---- Initial state ---- */

static void check_state(struct viewer *viewer, vd_rev revision)
{
	const struct oracle	   *oracle = &viewer->world->oracle;
	const struct oracle_record *records[ORACLE_KEYS_MAX];
	size_t			    count = filter_state(oracle, &viewer->filter, revision, records);

	for (size_t i = 0; i < count || i < viewer->initial_count; i++) {
		if (i >= viewer->initial_count)
			fail(viewer, "reliable", "the state at %lld lacks %s", (long long) revision,
			     oracle->keys[records[i]->key].text);
		if (i >= count || &oracle->records[viewer->initial[i]] != records[i])
			fail(viewer, "a list at revision R", "the state at %lld has %s at %lld instead of %s",
			     (long long) revision, oracle->keys[oracle->records[viewer->initial[i]].key].text,
			     (long long) oracle->records[viewer->initial[i]].revision,
			     i < count ? oracle->keys[records[i]->key].text : "nothing");
	}
	viewer->in_state = false;
	viewer->initial_count = 0;
}

static void take_initial(struct viewer *viewer, const struct vd_watch_event *event)
{
	struct oracle		   *oracle = &viewer->world->oracle;
	const struct oracle_record *record;
	const char		   *before;

	if (!viewer->in_state || event->type != VD_WATCH_ADDED || event->object == NULL || event->old_object)
		fail(viewer, "right object", "an initial event that is none");
	oracle_reach(oracle, vd_object_revision(event->object), "an initial event");
	record = oracle_exactly(oracle, oracle_key(oracle, vd_object_key(event->object)),
				vd_object_revision(event->object));
	if (record == NULL || !oracle_same(oracle, record, vd_object_kv(event->object)) ||
	    event->revision != record->revision)
		fail(viewer, "right object", "initial %.*s at %lld was never there",
		     (int) vd_object_key(event->object).size,
		     (const char *) vd_object_key(event->object).data, (long long) event->revision);
	if (!filter_wants(oracle, &viewer->filter, record))
		fail(viewer, "right filter", "initial %s is not wanted", oracle->keys[record->key].text);
	if (viewer->initial_count) {
		before = oracle->keys[oracle->records[viewer->initial[viewer->initial_count - 1]].key].text;
		if (strcmp(before, oracle->keys[record->key].text) >= 0)
			fail(viewer, "ordered", "initial events out of key order");
	}
	viewer->initial[viewer->initial_count++] = (int) (record - oracle->records);
}

/* ---- Bookmarks ---- */

static void take_bookmark(struct viewer *viewer, const struct vd_watch_event *event)
{
	struct world *world = viewer->world;
	int	      next;

	oracle_reach(&world->oracle, event->revision, "a bookmark");
	if (!viewer->has_bookmarks)
		fail(viewer, "bookmarkable", "a bookmark that nobody asked for");
	if (event->object || event->old_object)
		fail(viewer, "bookmarkable", "a bookmark with an object");
	if (event->revision < viewer->last)
		fail(viewer, "bookmarkable", "bookmark %lld goes back", (long long) event->revision);
	if (event->initial_events_end != (viewer->in_state && viewer->start == START_STATE_BOOKMARK))
		fail(viewer, "bookmarkable", "bookmark %lld: end of initial events %d",
		     (long long) event->revision, event->initial_events_end);
	if (viewer->in_state) {
		if (event->revision < viewer->opened_above)
			fail(viewer, "a list at revision R", "the state is of %lld, it was asked at %lld",
			     (long long) event->revision, (long long) viewer->opened_above);
		check_state(viewer, event->revision);
	} else if (viewer->is_known && (next = next_expected(viewer)) >= 0 &&
		   world->oracle.records[next].revision <= event->revision) {
		fail(viewer, "bookmarkable", "bookmark %lld, but %lld has not come",
		     (long long) event->revision, (long long) world->oracle.records[next].revision);
	}
	viewer->cursor = oracle_after(&world->oracle, event->revision);
	viewer->is_known = true;
	viewer->last = event->revision;
	viewer->last_bookmark = world_now(world);
	world->marks.bookmark++;
	world->marks.end_bookmark += event->initial_events_end;
}

/* ---- Changes ---- */

/* The first event of a watch whose start nobody told us. */
static void find_start(struct viewer *viewer, const struct vd_watch_event *event)
{
	struct world  *world = viewer->world;
	struct oracle *oracle = &world->oracle;
	int	       index;

	if (viewer->in_state) {
		if (viewer->start == START_STATE_BOOKMARK)
			fail(viewer, "bookmarkable", "event %lld before the end of initial events",
			     (long long) event->revision);
		check_state(viewer, event->revision - 1);
	} else if (event->revision <= viewer->opened_above) {
		fail(viewer, "resumable", "event %lld is before the watch was opened, at %lld",
		     (long long) event->revision, (long long) viewer->opened_above);
	} else if (viewer->opened_below) {
		index = next_from(viewer, oracle_after(oracle, viewer->opened_below));
		if (index >= 0 && oracle->records[index].revision < event->revision)
			fail(viewer, "reliable",
			     "event %lld comes first, but %lld was after the watch was opened",
			     (long long) event->revision, (long long) oracle->records[index].revision);
	}
	viewer->cursor = oracle_after(oracle, event->revision - 1);
	viewer->is_known = true;
}

/* Which promise is broken by this event instead of the expected one? */
static void explain(struct viewer *viewer, const struct vd_watch_event *event, int index)
{
	struct oracle		   *oracle = &viewer->world->oracle;
	int			    key = oracle_key(oracle, vd_object_key(event->object));
	const struct oracle_record *real = oracle_exactly(oracle, key, event->revision);
	vd_rev			    expected = index < 0 ? 0 : oracle->records[index].revision;
	const char		   *property = "reliable";
	bool			    was, is;

	if (real == NULL)
		property = "right object";
	else if (event->revision <= viewer->floor)
		property = "resumable";
	else if (!is_for(viewer, real, &was, &is))
		property = "right filter";
	else if (event->revision < viewer->last)
		property = "ordered";
	else if (index < 0 || real - oracle->records < index)
		property = "unique";
	else if (event->revision == expected)
		property = "atomic";
	fail(viewer, property, "%s %s at %lld came, %s at %lld was next", vd_watch_type_name(event->type),
	     oracle->keys[key].text, (long long) event->revision,
	     index < 0 ? "nothing" : oracle->keys[oracle->records[index].key].text, (long long) expected);
}

static void check_object(struct viewer *viewer, const struct vd_object *object,
			 const struct oracle_record *record, const char *property)
{
	struct oracle *oracle = &viewer->world->oracle;

	if (record == NULL && object == NULL)
		return;
	if (record == NULL || object == NULL || !oracle_same(oracle, record, vd_object_kv(object)))
		fail(viewer, property, "it is %lld, it should be %lld",
		     object ? (long long) vd_object_revision(object) : 0,
		     record ? (long long) record->revision : 0);
}

static void take_change(struct viewer *viewer, const struct vd_watch_event *event)
{
	struct world		   *world = viewer->world;
	struct oracle		   *oracle = &world->oracle;
	const struct oracle_record *record, *previous;
	enum vd_watch_type	    type;
	bool			    was, is;
	int			    index;

	if (event->object == NULL)
		fail(viewer, "right object", "an event without object");
	oracle_reach(oracle, event->revision, "an event");
	if (!viewer->is_known || viewer->in_state)
		find_start(viewer, event);
	index = next_expected(viewer);
	if (index < 0 || oracle->records[index].revision != event->revision ||
	    oracle->records[index].key != oracle_key(oracle, vd_object_key(event->object)))
		explain(viewer, event, index);
	record = &oracle->records[index];
	previous = record->previous < 0 ? NULL : &oracle->records[record->previous];
	(void) is_for(viewer, record, &was, &is);
	type = !was ? VD_WATCH_ADDED : is ? VD_WATCH_MODIFIED : VD_WATCH_DELETED;
	if (event->type != type)
		fail(viewer, "right filter", "%s at %lld should be %s", vd_watch_type_name(event->type),
		     (long long) event->revision, vd_watch_type_name(type));
	check_object(viewer, event->object, type == VD_WATCH_DELETED ? previous : record, "right object");
	check_object(viewer, event->old_object, type == VD_WATCH_ADDED ? NULL : previous,
		     "right previous value");
	world->marks.filter_entered += type == VD_WATCH_ADDED && previous;
	world->marks.filter_left += type == VD_WATCH_DELETED && !record->is_delete;
	world->marks.multi_key_revision += event->revision == viewer->last;
	viewer->last = event->revision;
	viewer->cursor = index + 1;
}

static void take_event(struct viewer *viewer, const struct vd_watch_event *event)
{
	if (viewer->has_error)
		fail(viewer, "every ended watch knows why", "an event after the error");
	switch (event->type) {
	case VD_WATCH_ERROR:
		if (event->error == NULL || event->error->code == VD_OK || event->error->message[0] == 0)
			fail(viewer, "every ended watch knows why", "an error without a reason");
		viewer->has_error = true;
		viewer->error = event->error->code;
		sim_trace(viewer->world, "viewer %u: error %s: %s", viewer->number,
			  vd_status_name(event->error->code), event->error->message);
		break;
	case VD_WATCH_BOOKMARK: take_bookmark(viewer, event); break;
	default:
		if (event->initial)
			take_initial(viewer, event);
		else
			take_change(viewer, event);
	}
}

/* Nothing of the last revision is missing? Asked where the watch pauses or ends. */
static bool is_mid_revision(struct viewer *viewer)
{
	int next = viewer->is_known && !viewer->in_state ? next_expected(viewer) : -1;

	return next >= 0 && viewer->last && viewer->world->oracle.records[next].revision == viewer->last;
}

/* ---- The end ---- */

static void check_too_slow(struct viewer *viewer)
{
	struct world  *world = viewer->world;
	struct oracle *oracle = &world->oracle;
	int64_t	       events = 0, bytes = 0;
	int64_t	       bytes_max =
		       viewer->lag_bytes_max ? viewer->lag_bytes_max : cacher_of(viewer)->options.lag_bytes_max;

	world->marks.watch_too_slow++;
	oracle_drain(oracle);
	if (!viewer->is_known)
		return;
	for (int i = viewer->cursor; (i = next_from(viewer, i)) >= 0; i++) {
		events++;
		bytes += (int64_t) (oracle->records[i].value_size +
				    strlen(oracle->keys[oracle->records[i].key].text) +
				    VDI_EVENT_OVERHEAD_BYTES);
		/* A deletion is charged what it deletes. */
		if (oracle->records[i].is_delete && oracle->records[i].previous >= 0)
			bytes += (int64_t) oracle->records[oracle->records[i].previous].value_size;
	}
	if (!(viewer->lag_events_max && events > viewer->lag_events_max) && bytes <= bytes_max)
		fail(viewer, "every ended watch knows why", "too slow with %lld events, %lld bytes behind",
		     (long long) events, (long long) bytes);
	if (!viewer->is_pulled && viewer->free_since.ns &&
	    vd_mono_since(world_now(world), viewer->free_since).ns > VD_SECONDS(1).ns + world->stall_max.ns)
		fail(viewer, "a slow client never delays others", "too slow, though it took everything");
}

static void check_end(struct viewer *viewer, vd_status reason)
{
	struct world	  *world = viewer->world;
	struct sim_cacher *cacher = cacher_of(viewer);

	if (viewer->has_error && reason != viewer->error)
		fail(viewer, "every ended watch knows why", "ends with %s after the error %s",
		     vd_status_name(reason), vd_status_name(viewer->error));
	switch (reason) {
	case VD_TIMEOUT:
		if (viewer->deadline.ns > world_now(world).ns)
			fail(viewer, "every ended watch knows why", "timeout before its deadline");
		world->marks.watch_timeout++;
		break;
	case VD_TOO_SLOW: check_too_slow(viewer); break;
	case VD_CLOSED:
		if (!world->is_closing && viewer->restarts_at_open == world->restarts &&
		    (uint32_t) cacher->cacher->ready.generation == viewer->generation_at_open &&
		    cacher->cacher->reflector.relists == viewer->relists_at_open)
			fail(viewer, "every ended watch knows why", "closed, but the cache goes on");
		world->marks.watch_closed++;
		break;
	case VD_EXPIRED:
		if (!viewer->has_error)
			fail(viewer, "every ended watch knows why", "expired without an error event");
		world->marks.watch_expired++;
		viewer->must_relist = true;
		break;
	case VD_UNAVAILABLE:
	case VD_TOO_LARGE_REVISION:
	case VD_INTERNAL:
		if (!viewer->has_error)
			fail(viewer, "every ended watch knows why", "%s without an error event",
			     vd_status_name(reason));
		if (world->is_calm && vd_mono_since(viewer->opened, world->calm_since).ns > VD_SECONDS(30).ns)
			fail(viewer, "errors are true", "%s in calm waters", vd_status_name(reason));
		world->marks.watch_unavailable++;
		break;
	default: fail(viewer, "every ended watch knows why", "ends with %s", vd_status_name(reason));
	}
	if (is_mid_revision(viewer) && !viewer->is_stuck && reason != VD_TOO_SLOW)
		fail(viewer, "atomic", "ends (%s) in the middle of revision %lld", vd_status_name(reason),
		     (long long) viewer->last);
}

/* A client that closes from another thread than the sink's may find one call under way. */
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
		fail(viewer, "every ended watch knows why", "ends twice, or after it was closed");
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
		fail(viewer, "every ended watch knows why", "closed twice");
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

/* ---- Taking ---- */

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
		fail(viewer, "every ended watch knows why", "events after its end");
	if (count == 0)
		fail(viewer, "right object", "nothing is delivered");
	if (viewer->stalled_until.ns > world_now(world).ns)
		wanted = 0;
	else if (viewer->pace != PACE_FAST && !world->is_calm)
		wanted = VDI_MIN(wanted, viewer->room);
	closes = viewer->closes_in_deliver && viewer->watcher && wanted > 0 && !world->is_calm &&
		 chance(world, 10);
	if (closes)
		wanted = roll(world, count + 1);
	/* Whole revisions, as a client that means to resume does. */
	while (wanted > 0 && wanted < count && events[wanted].revision == events[wanted - 1].revision)
		wanted++;
	for (taken = 0; taken < wanted; taken++)
		take_event(viewer, &events[taken]);
	viewer->room -= VDI_MIN(viewer->room, taken);
	if (closes) {
		world->marks.closed_in_deliver++;
		close_viewer(viewer, true);
		return taken;
	}
	/* A client that loses its connection now goes on from its last revision. */
	if (taken == count && is_mid_revision(viewer))
		fail(viewer, "atomic", "what was delivered ends in the middle of revision %lld",
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
	while (budget > 0 || is_mid_revision(viewer)) {
		SIM_PREEMPTIBLE(world, status = vd_watcher_next(viewer->watcher, &event));
		if (status != VD_OK)
			break;
		take_event(viewer, &event);
		budget -= budget > 0;
	}
	if (status == VD_AGAIN && is_mid_revision(viewer))
		fail(viewer, "atomic", "there is nothing more in the middle of revision %lld",
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
			/* Somewhere in what happened, or a little in the future. */
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
					 viewer->runner < 0 ? NULL : &world->runners[viewer->runner] };
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
		fail(viewer, "errors are true", "a watch is refused with %s: %s", vd_status_name(status),
		     error.message);
}

/* ---- From outside ---- */

struct viewers *viewers_new(struct world *world)
{
	struct viewers *viewers = calloc(1, sizeof *viewers);

	viewers->count = VIEWERS_MIN + 4 + (unsigned) roll(world, VIEWERS_MAX - VIEWERS_MIN - 3);
	for (unsigned i = 0; i < viewers->count; i++) {
		struct viewer *viewer = &viewers->all[i];

		viewer->world = world;
		viewer->number = i;
		filter_random(world, &viewer->filter);
		/* Two that share a group with others, at different speeds, and one of everything in any
		 * case. */
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
		viewer->runner = (int) (i % 3) - 1;
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
		/* Whoever is open for long has been opened by now. */
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
	/* Now and then somebody is somebody else. */
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

		/* A pulled one has what it did not ask for. */
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
		next = next_expected(viewer);
		if (next >= 0 && world->oracle.records[next].revision <= stood)
			fail(viewer, "a slow client never delays others",
			     "%lld has been in the cache for a second and did not come",
			     (long long) world->oracle.records[next].revision);
		if (viewer->has_bookmarks &&
		    vd_mono_since(now, viewer->last_bookmark).ns > VD_SECONDS(70).ns &&
		    viewer->deadline.ns == INT64_MAX && !world->is_down &&
		    viewer->floor <= vd_cacher_revision(cacher->cacher) &&
		    vd_mono_since(now, viewer->free_since).ns > VD_SECONDS(70).ns)
			fail(viewer, "bookmarkable", "no bookmark for %lld s",
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
			next = next_expected(viewer);
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
		/* The state without an end: it must be the present one by now. */
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
