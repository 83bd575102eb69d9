/* Checks that each delivery to a viewer is the expected one: initial state, bookmarks, and changes. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include "cacher.h"
#include "reader.h"
#include "viewer_state.h"

/* ---- The expected event ---- */

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

int viewer_next_from(const struct viewer *viewer, int index)
{
	const struct oracle *oracle = &viewer->world->oracle;
	bool		     was, is;

	for (; index < oracle->record_count; index++)
		if (is_for(viewer, &oracle->records[index], &was, &is))
			return index;
	return -1;
}

int viewer_next_expected(struct viewer *viewer)
{
	int index = viewer_next_from(viewer, viewer->cursor);

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
			viewer_fail(viewer, "reliable", "the state at %lld lacks %s", (long long) revision,
				    oracle->keys[records[i]->key].text);
		if (i >= count || &oracle->records[viewer->initial[i]] != records[i])
			viewer_fail(viewer, "a list at revision R",
				    "the state at %lld has %s at %lld instead of %s", (long long) revision,
				    oracle->keys[oracle->records[viewer->initial[i]].key].text,
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
		viewer_fail(viewer, "right object", "an initial event that is none");
	oracle_reach(oracle, vd_object_revision(event->object), "an initial event");
	record = oracle_exactly(oracle, oracle_key(oracle, vd_object_key(event->object)),
				vd_object_revision(event->object));
	if (record == NULL || !oracle_same(oracle, record, vd_object_kv(event->object)) ||
	    event->revision != record->revision)
		viewer_fail(viewer, "right object", "initial %.*s at %lld was never there",
			    (int) vd_object_key(event->object).size,
			    (const char *) vd_object_key(event->object).data, (long long) event->revision);
	if (!filter_wants(oracle, &viewer->filter, record))
		viewer_fail(viewer, "right filter", "initial %s is not wanted",
			    oracle->keys[record->key].text);
	if (viewer->initial_count) {
		before = oracle->keys[oracle->records[viewer->initial[viewer->initial_count - 1]].key].text;
		if (strcmp(before, oracle->keys[record->key].text) >= 0)
			viewer_fail(viewer, "ordered", "initial events out of key order");
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
		viewer_fail(viewer, "bookmarkable", "a bookmark that nobody asked for");
	if (event->object || event->old_object)
		viewer_fail(viewer, "bookmarkable", "a bookmark with an object");
	if (event->revision < viewer->last)
		viewer_fail(viewer, "bookmarkable", "bookmark %lld goes back", (long long) event->revision);
	if (event->initial_events_end != (viewer->in_state && viewer->start == START_STATE_BOOKMARK))
		viewer_fail(viewer, "bookmarkable", "bookmark %lld: end of initial events %d",
			    (long long) event->revision, event->initial_events_end);
	if (viewer->in_state) {
		if (event->revision < viewer->opened_above)
			viewer_fail(viewer, "a list at revision R",
				    "the state is of %lld, it was asked at %lld", (long long) event->revision,
				    (long long) viewer->opened_above);
		check_state(viewer, event->revision);
	} else if (viewer->is_known && (next = viewer_next_expected(viewer)) >= 0 &&
		   world->oracle.records[next].revision <= event->revision) {
		viewer_fail(viewer, "bookmarkable", "bookmark %lld, but %lld has not come",
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

/* Handles the first event of a watch whose start revision is unknown. */
static void find_start(struct viewer *viewer, const struct vd_watch_event *event)
{
	struct world  *world = viewer->world;
	struct oracle *oracle = &world->oracle;
	int	       index;

	if (viewer->in_state) {
		if (viewer->start == START_STATE_BOOKMARK)
			viewer_fail(viewer, "bookmarkable", "event %lld before the end of initial events",
				    (long long) event->revision);
		check_state(viewer, event->revision - 1);
	} else if (event->revision <= viewer->opened_above) {
		viewer_fail(viewer, "resumable", "event %lld is before the watch was opened, at %lld",
			    (long long) event->revision, (long long) viewer->opened_above);
	} else if (viewer->opened_below) {
		index = viewer_next_from(viewer, oracle_after(oracle, viewer->opened_below));
		if (index >= 0 && oracle->records[index].revision < event->revision)
			viewer_fail(viewer, "reliable",
				    "event %lld comes first, but %lld was after the watch was opened",
				    (long long) event->revision, (long long) oracle->records[index].revision);
	}
	viewer->cursor = oracle_after(oracle, event->revision - 1);
	viewer->is_known = true;
}

/* Reports which promise is broken by this event in place of the expected one. */
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
	viewer_fail(viewer, property, "%s %s at %lld came, %s at %lld was next",
		    vd_watch_type_name(event->type), oracle->keys[key].text, (long long) event->revision,
		    index < 0 ? "nothing" : oracle->keys[oracle->records[index].key].text,
		    (long long) expected);
}

static void check_object(struct viewer *viewer, const struct vd_object *object,
			 const struct oracle_record *record, const char *property)
{
	struct oracle *oracle = &viewer->world->oracle;

	if (record == NULL && object == NULL)
		return;
	if (record == NULL || object == NULL || !oracle_same(oracle, record, vd_object_kv(object)))
		viewer_fail(viewer, property, "it is %lld, it should be %lld",
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
		viewer_fail(viewer, "right object", "an event without object");
	oracle_reach(oracle, event->revision, "an event");
	if (!viewer->is_known || viewer->in_state)
		find_start(viewer, event);
	index = viewer_next_expected(viewer);
	if (index < 0 || oracle->records[index].revision != event->revision ||
	    oracle->records[index].key != oracle_key(oracle, vd_object_key(event->object)))
		explain(viewer, event, index);
	record = &oracle->records[index];
	previous = record->previous < 0 ? NULL : &oracle->records[record->previous];
	(void) is_for(viewer, record, &was, &is);
	type = !was ? VD_WATCH_ADDED : is ? VD_WATCH_MODIFIED : VD_WATCH_DELETED;
	if (event->type != type)
		viewer_fail(viewer, "right filter", "%s at %lld should be %s",
			    vd_watch_type_name(event->type), (long long) event->revision,
			    vd_watch_type_name(type));
	check_object(viewer, event->object, type == VD_WATCH_DELETED ? previous : record, "right object");
	check_object(viewer, event->old_object, type == VD_WATCH_ADDED ? NULL : previous,
		     "right previous value");
	world->marks.filter_entered += type == VD_WATCH_ADDED && previous;
	world->marks.filter_left += type == VD_WATCH_DELETED && !record->is_delete;
	world->marks.multi_key_revision += event->revision == viewer->last;
	viewer->last = event->revision;
	viewer->cursor = index + 1;
}

void viewer_take_event(struct viewer *viewer, const struct vd_watch_event *event)
{
	if (viewer->has_error)
		viewer_fail(viewer, "every ended watch knows why", "an event after the error");
	switch (event->type) {
	case VD_WATCH_ERROR:
		if (event->error == NULL || event->error->code == VD_OK || event->error->message[0] == 0)
			viewer_fail(viewer, "every ended watch knows why", "an error without a reason");
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

bool viewer_is_mid_revision(struct viewer *viewer)
{
	int next = viewer->is_known && !viewer->in_state ? viewer_next_expected(viewer) : -1;

	return next >= 0 && viewer->last && viewer->world->oracle.records[next].revision == viewer->last;
}
