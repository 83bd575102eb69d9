/* Changes between two revisions, from the history: every change, or the difference between both states.
 *
 * References to the events between two positions are taken in steps under the lock and filtered with the same
 * predicate as for a watch. For the difference they are sorted by key, and the first previous state and the
 * last state of each object are compared. */
#include <stdlib.h>

#include "cacher_state.h"

#define TAKE_MAX 256

struct change {
	struct vdi_event  *event;  /* a reference */
	struct vd_object  *before; /* borrowed from an event of the array; NULL: absent, or not selected */
	enum vd_watch_type type;
	size_t		   order;
};

struct vd_changes {
	vd_rev		   after;
	vd_rev		   until;
	struct change	  *changes;
	size_t		   count;
	size_t		   capacity;
	struct vdi_event **merged; /* references that keep previous states alive; combined changes only */
	size_t		   merged_count;
};

struct vd_changes *vd_changes_free(struct vd_changes *changes)
{
	if (changes == NULL)
		return NULL;
	for (size_t i = 0; i < changes->count; i++)
		vdi_event_unref(changes->changes[i].event);
	for (size_t i = 0; i < changes->merged_count; i++)
		vdi_event_unref(changes->merged[i]);
	vdi_free(changes->merged);
	vdi_free(changes->changes);
	vdi_free(changes);
	return NULL;
}

static vd_status append(struct vd_changes *changes, const struct vdi_predicate *predicate,
			struct vdi_event *event)
{
	enum vd_watch_type type;
	void		  *array = changes->changes;

	if (!vdi_predicate_transition(predicate, event->old_object, event->object, &type))
		return VD_OK;
	if (!vdi_grow(&array, &changes->capacity, changes->count + 1, sizeof *changes->changes))
		return VD_NOMEM;
	changes->changes = array;
	changes->changes[changes->count] =
		(struct change) { .event = vdi_event_ref(event),
				  .before = type == VD_WATCH_ADDED ? NULL : event->old_object,
				  .type = type,
				  .order = changes->count };
	changes->count++;
	return VD_OK;
}

/* Takes the events [*position, end) into the changes, in steps. */
static vd_status gather(struct vd_changes *changes, struct vdi_watch_cache *cache,
			const struct vdi_predicate *predicate, uint64_t position, uint64_t end)
{
	struct vdi_event *events[TAKE_MAX];
	vd_status	  status = VD_OK;

	while (position < end && status == VD_OK) {
		size_t count = 0;

		vdi_lock_acquire(&cache->lock);
		if (position < cache->history.start)
			status = VD_EXPIRED;
		while (status == VD_OK && position < end && count < TAKE_MAX)
			events[count++] = vdi_event_ref(vdi_history_at(&cache->history, position++));
		vdi_lock_release(&cache->lock);
		for (size_t i = 0; i < count; i++) {
			if (status == VD_OK)
				status = append(changes, predicate, events[i]);
			vdi_event_unref(events[i]);
		}
	}
	return status;
}

/* ---- The difference ---- */

static struct vd_bytes key_of(const struct change *change)
{
	return vd_object_key(change->event->object ? change->event->object : change->event->old_object);
}

static int by_key(const void *a, const void *b)
{
	const struct change *left = a, *right = b;
	int		     order = vd_bytes_compare(key_of(left), key_of(right));

	return order ? order : left->order < right->order ? -1 : left->order > right->order;
}

/* Merges the changes [from, to) of one object into at most one, at *place. The event that has the previous
 * state is kept in merged. */
static void merge(struct vd_changes *changes, size_t from, size_t to, size_t *place)
{
	struct change *first = &changes->changes[from], *last = &changes->changes[to - 1];
	struct change  whole = { .event = vdi_event_ref(last->event), .before = first->before };
	bool	       was = first->type != VD_WATCH_ADDED, is = last->type != VD_WATCH_DELETED;

	changes->merged[changes->merged_count++] = vdi_event_ref(first->event);
	for (size_t i = from; i < to; i++)
		vdi_event_unref(changes->changes[i].event);
	whole.type = !was ? VD_WATCH_ADDED : is ? VD_WATCH_MODIFIED : VD_WATCH_DELETED;
	if (was || is)
		changes->changes[(*place)++] = whole;
	else
		vdi_event_unref(whole.event);
}

static vd_status combine(struct vd_changes *changes)
{
	size_t place = 0, count = changes->count;

	if (count == 0)
		return VD_OK;
	changes->merged = vdi_calloc(count, sizeof(struct vdi_event *));
	if (changes->merged == NULL)
		return VD_NOMEM;
	qsort(changes->changes, count, sizeof *changes->changes, by_key);
	for (size_t from = 0, to; from < count; from = to) {
		for (to = from + 1; to < count && vd_bytes_equal(key_of(&changes->changes[from]),
								 key_of(&changes->changes[to]));
		     to++)
			;
		merge(changes, from, to, &place);
	}
	changes->count = place;
	return VD_OK;
}

/* ---- Public functions ---- */

static vd_status find_span(struct vdi_watch_cache *cache, struct vd_changes *changes, uint64_t *ret_from,
			   uint64_t *ret_to, struct vd_error *reterr)
{
	vd_status status;
	vd_rev	  newest;

	vdi_lock_acquire(&cache->lock);
	newest = vdi_watch_cache_revision(cache);
	if (changes->after == 0)
		changes->after = vdi_history_floor(&cache->history);
	if (changes->until == 0)
		changes->until = newest;
	/* If the span starts at the oldest retained revision, its end may be older. */
	status = vdi_history_check(&cache->history, VDI_MIN(changes->after, changes->until), reterr);
	*ret_from = vdi_history_after(&cache->history, changes->after);
	*ret_to = vdi_history_after(&cache->history, changes->until);
	vdi_lock_release(&cache->lock);
	if (status == VD_OK && changes->until > newest)
		status = vdi_too_large_revision(reterr, changes->until, newest);
	return status;
}

vd_status vd_cacher_changes(struct vd_cacher *cacher, const struct vd_changes_options *options,
			    struct vd_changes **ret_changes, struct vd_error *reterr)
{
	struct vdi_predicate_options predicate_options;
	struct vdi_predicate	    *predicate;
	struct vd_changes	    *changes;
	uint64_t		     from, to;
	vd_status		     status;

	VDI_REQUIRE(cacher, reterr);
	VDI_REQUIRE(ret_changes, reterr);
	VDI_REQUIRE_OPTIONS(options, reterr);
	VDI_TRY(vdi_cacher_check_scope(cacher, options->namespace_name, options->name, reterr));
	predicate_options = (struct vdi_predicate_options) { options->namespace_name,
							     options->name,
							     options->label_selector,
							     options->field_selector,
							     true,
							     cacher->options.cluster_scoped,
							     VD_BYTES_NONE };
	if (options->after < 0 || options->until < 0 || (options->until && options->until < options->after))
		return vd_error_set(
			reterr, VD_INVALID_ARGUMENT,
			"vd_cacher_changes: from and to must be revisions, with from not greater than to");
	VDI_TRY(vdi_ready_check(&cacher->ready, NULL, reterr));
	VDI_TRY(vdi_predicate_new(cacher->codec, &predicate_options, &predicate, reterr));
	changes = VDI_NEW(struct vd_changes);
	if (changes == NULL) {
		vdi_predicate_unref(predicate);
		return vd_error_set(reterr, VD_NOMEM, "out of memory for changes");
	}
	changes->after = options->after;
	changes->until = options->until;
	status = find_span(&cacher->watch_cache, changes, &from, &to, reterr);
	if (status == VD_OK) {
		status = gather(changes, &cacher->watch_cache, predicate, from, to);
		if (status == VD_OK && options->combined)
			status = combine(changes);
		if (status != VD_OK)
			vd_error_set(reterr, status,
				     status == VD_EXPIRED ? "too old resource version: %lld" :
							    "out of memory for changes after %lld",
				     (long long) changes->after);
	}
	vdi_predicate_unref(predicate);
	if (status != VD_OK) {
		vd_changes_free(changes);
		return status;
	}
	*ret_changes = changes;
	return VD_OK;
}

size_t vd_changes_count(const struct vd_changes *changes)
{
	return changes->count;
}

struct vd_change vd_changes_at(const struct vd_changes *changes, size_t index)
{
	const struct change *change = &changes->changes[index];
	struct vd_object    *gone = change->before ? change->before : change->event->old_object;

	return (struct vd_change) {
		.type = change->type,
		.revision = change->event->revision,
		.object = change->type == VD_WATCH_DELETED ? gone : change->event->object,
		.old_object = change->before,
	};
}

vd_rev vd_changes_after(const struct vd_changes *changes)
{
	return changes->after;
}

vd_rev vd_changes_until(const struct vd_changes *changes)
{
	return changes->until;
}
