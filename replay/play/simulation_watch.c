/* A table of delivered objects by key. An entry outlives its object, so that a repeated event is detected. */
#include "simulation_watch.h"

#include <stdarg.h>
#include <stdio.h>
#include <vedette/replay.h>

static bool has_key(const void *entry, const void *key)
{
	const struct vdi_simulation_shown *shown = entry;

	return vd_bytes_equal((struct vd_bytes) { shown->key, shown->key_size },
			      *(const struct vd_bytes *) key);
}

void vdi_simulation_watch_init(struct vdi_simulation_watch *watch, vd_rev begins_at)
{
	*watch = (struct vdi_simulation_watch) { .begins_at = begins_at };
	vdi_hash_init(&watch->shown, has_key, 0);
}

static void forget_shown(struct vdi_simulation_watch *watch)
{
	struct vdi_simulation_shown *shown;
	size_t			     position = 0;

	while ((shown = vdi_hash_next(&watch->shown, &position)) != NULL)
		vdi_free(shown);
	vdi_hash_clear(&watch->shown);
}

void vdi_simulation_watch_fini(struct vdi_simulation_watch *watch)
{
	for (size_t i = 0; i < watch->count; i++)
		if (watch->events[i].object)
			vd_object_unref(watch->events[i].object);
	vdi_free(watch->events);
	forget_shown(watch);
	vdi_hash_fini(&watch->shown);
}

/* ---- Violations ---- */

__attribute__((format(printf, 3, 4))) static void violate(struct vdi_simulation_watch *watch,
							  const char *guarantee, const char *format, ...)
{
	int	size;
	va_list arguments;

	if (watch->violation[0])
		return;
	size = snprintf(watch->violation, sizeof watch->violation, "%s: ", guarantee);
	va_start(arguments, format);
	(void) vsnprintf(watch->violation + size, sizeof watch->violation - (size_t) size, format, arguments);
	va_end(arguments);
}

static void violate_event(struct vdi_simulation_watch *watch, const char *guarantee,
			  const struct vd_watch_event *event, const char *why, vd_rev other)
{
	struct vd_bytes key = vd_object_key(event->object);

	violate(watch, guarantee, "%s %.*s at revision %lld %s %lld", vd_watch_type_name(event->type),
		(int) key.size, (const char *) key.data, (long long) event->revision, why, (long long) other);
}

/* ---- Delivered objects ---- */

static struct vdi_simulation_shown *find(struct vdi_simulation_watch *watch, struct vd_bytes key)
{
	return vdi_hash_get(&watch->shown, vdi_hash_bytes(key, 0), &key);
}

/* NULL: out of memory, which is noted as a violation. */
static struct vdi_simulation_shown *find_or_add(struct vdi_simulation_watch *watch, struct vd_bytes key)
{
	struct vdi_simulation_shown *shown = find(watch, key);

	if (shown)
		return shown;
	shown = vdi_calloc(1, sizeof *shown + key.size);
	if (shown) {
		shown->key_size = (uint32_t) key.size;
		memcpy(shown->key, key.data, key.size);
		if (vdi_hash_put(&watch->shown, vdi_hash_bytes(key, 0), &key, shown, NULL) == VD_OK)
			return shown;
		vdi_free(shown);
	}
	violate(watch, "memory", "out of memory for the watch's events");
	return NULL;
}

/* ---- Events ---- */

static void keep(struct vdi_simulation_watch *watch, const struct vd_watch_event *event)
{
	if (watch->count == VD_SIMULATION_EVENTS_MAX ||
	    !vdi_grow((void **) &watch->events, &watch->capacity, watch->count + 1, sizeof *watch->events)) {
		watch->dropped++;
		return;
	}
	watch->events[watch->count++] =
		(struct vdi_simulation_event) { event->type, event->revision,
						event->object ? vd_object_ref(event->object) : NULL };
}

static void mix(struct vdi_simulation_watch *watch, const struct vd_watch_event *event)
{
	uint64_t words[3] = { (uint64_t) event->type, (uint64_t) event->revision, 0 };

	if (event->object)
		words[2] = vdi_hash_bytes(vd_object_key(event->object), 0);
	watch->fingerprint = vdi_hash_bytes((struct vd_bytes) { words, sizeof words }, watch->fingerprint);
}

static void check_previous(struct vdi_simulation_watch *watch, const struct vdi_simulation_shown *shown,
			   const struct vd_watch_event *event)
{
	if (event->type == VD_WATCH_ADDED)
		return;
	if (event->old_object == NULL)
		violate_event(watch, "previous", event, "has no previous object, which was at revision",
			      shown->object_revision);
	else if (vd_object_revision(event->old_object) != shown->object_revision)
		violate_event(watch, "previous", event, "has a previous object other than that at revision",
			      shown->object_revision);
}

static void check_change(struct vdi_simulation_watch *watch, const struct vdi_simulation_shown *shown,
			 const struct vd_watch_event *event)
{
	if (!event->initial) {
		if (event->revision < watch->newest)
			violate_event(watch, "ordered", event, "comes after revision", watch->newest);
		if (event->revision <= watch->bookmark)
			violate_event(watch, "bookmarkable", event, "comes after the bookmark of revision",
				      watch->bookmark);
	}
	if (shown->revision && event->revision == shown->revision)
		violate_event(watch, "unique", event, "was already delivered at revision", shown->revision);
	if (shown->revision == 0 && watch->begins_at)
		return; /* the state before the start is unknown */
	if (shown->is_there != (event->type != VD_WATCH_ADDED))
		violate_event(watch, "typed", event,
			      shown->is_there ? "is for an object that exists since revision" :
						"is for an object that does not exist since revision",
			      shown->revision);
	else
		check_previous(watch, shown, event);
}

static void take_change(struct vdi_simulation_watch *watch, const struct vd_watch_event *event)
{
	struct vdi_simulation_shown *shown = find_or_add(watch, vd_object_key(event->object));

	if (shown == NULL)
		return;
	check_change(watch, shown, event);
	shown->revision = event->revision;
	shown->object_revision =
		event->type == VD_WATCH_DELETED ? event->revision : vd_object_revision(event->object);
	shown->is_there = event->type != VD_WATCH_DELETED;
	if (!event->initial)
		watch->newest = VDI_MAX(watch->newest, event->revision);
}

static void take_bookmark(struct vdi_simulation_watch *watch, const struct vd_watch_event *event)
{
	if (event->revision < watch->newest || event->revision < watch->bookmark)
		violate(watch, "bookmarkable", "a bookmark of revision %lld comes after revision %lld",
			(long long) event->revision, (long long) VDI_MAX(watch->newest, watch->bookmark));
	watch->bookmark = VDI_MAX(watch->bookmark, event->revision);
}

void vdi_simulation_watch_take(struct vdi_simulation_watch *watch, const struct vd_watch_event *event)
{
	keep(watch, event);
	mix(watch, event);
	if (event->object)
		take_change(watch, event);
	else if (event->type == VD_WATCH_BOOKMARK)
		take_bookmark(watch, event);
}

void vdi_simulation_watch_ended(struct vdi_simulation_watch *watch, vd_status reason, bool starts_over)
{
	uint64_t word = (uint64_t) reason;

	watch->fingerprint = vdi_hash_bytes((struct vd_bytes) { &word, sizeof word }, watch->fingerprint);
	if (!starts_over)
		return;
	forget_shown(watch);
	watch->begins_at = watch->newest = watch->bookmark = 0;
	watch->restarts++;
}

/* ---- Comparison with a list ---- */

static void compare_object(struct vdi_simulation_watch *watch, struct vd_object *object)
{
	struct vd_bytes		     key = vd_object_key(object);
	struct vdi_simulation_shown *shown = find(watch, key);

	if (shown)
		shown->was_listed = true;
	if (vd_object_revision(object) <= watch->begins_at && (shown == NULL || !shown->revision))
		return;
	if (shown == NULL || !shown->is_there)
		violate(watch, "reliable",
			"%.*s is in the list at revision %lld, but the watch has not delivered it",
			(int) key.size, (const char *) key.data, (long long) vd_object_revision(object));
	else if (shown->object_revision != vd_object_revision(object))
		violate(watch, "reliable",
			"%.*s is in the list with revision %lld, but the watch delivered revision %lld last",
			(int) key.size, (const char *) key.data, (long long) vd_object_revision(object),
			(long long) shown->object_revision);
}

void vdi_simulation_watch_compare(struct vdi_simulation_watch *watch, struct vd_list *list)
{
	struct vdi_simulation_shown *shown;
	struct vd_object	    *object;
	size_t			     position = 0;

	while ((object = vd_list_next(list)) != NULL)
		compare_object(watch, object);
	while ((shown = vdi_hash_next(&watch->shown, &position)) != NULL) {
		if (shown->is_there && !shown->was_listed)
			violate(watch, "reliable",
				"%.*s is not in the list at revision %lld, but the watch has delivered no "
				"deletion",
				(int) shown->key_size, shown->key, (long long) vd_list_revision(list));
		shown->was_listed = false;
	}
}
