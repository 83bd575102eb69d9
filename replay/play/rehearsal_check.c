/* Expectations and comparisons of a rehearsal. What is read here is read from the inner store: an expectation
 * meets no faults and draws no dice, so looking does not change the run. */
#include <stdarg.h>
#include <stdio.h>

#include "actor_sim.h"
#include "json_edit.h"
#include "player.h"
#include "rehearsal.h"

/* Events that a failure names. */
#define SHOWN_MAX 6

/* ---- Reading ---- */

struct reading {
	struct vdi_wait wait;
	vd_status	status;
	struct vd_kv  **kvs;
	size_t		count;
};

static void got_range(void *arg, vd_status status, const struct vd_range_result *result,
		      const struct vd_error *error)
{
	struct reading *reading = arg;

	(void) error;
	reading->status = status;
	if (status == VD_OK) {
		reading->kvs = vdi_calloc(result->kv_count + 1, sizeof *reading->kvs);
		if (reading->kvs == NULL)
			reading->status = VD_NOMEM;
		else
			for (; reading->count < result->kv_count; reading->count++)
				reading->kvs[reading->count] = vd_kv_ref(result->kvs[reading->count]);
	}
	vdi_wait_signal(&reading->wait);
}

vd_status vdi_rehearsal_read(struct vd_rehearsal *rehearsal, struct vd_bytes key, bool is_key,
			     struct vd_kv ***ret_kvs, size_t *ret_count)
{
	struct vd_range_request request = { .key = key };
	struct reading		reading = { .status = VD_OK };
	char			end[VD_KEY_SIZE_MAX];
	vd_status		status;

	if (key.size == 0 || key.size > sizeof end)
		return VD_INVALID_ARGUMENT;
	if (!is_key) {
		memcpy(end, key.data, key.size);
		for (size_t i = key.size; i-- > 0;)
			if ((unsigned char) end[i] < 0xff) {
				end[i]++;
				request.range_end = (struct vd_bytes) { end, i + 1 };
				break;
			}
		if (request.range_end.size == 0)
			request.range_end = (struct vd_bytes) { "", 1 };
	}
	vdi_wait_init(&reading.wait, rehearsal->env);
	status = vd_store_range(rehearsal->player->front.inner, &request, got_range, &reading);
	if (status == VD_OK) {
		vdi_wait_wait(&reading.wait);
		status = reading.status;
	}
	vdi_wait_fini(&reading.wait);
	if (status == VD_OK) {
		*ret_kvs = reading.kvs;
		*ret_count = reading.count;
	}
	return status;
}

void vdi_rehearsal_release(struct vd_kv **kvs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		vd_kv_unref(kvs[i]);
	vdi_free(kvs);
}

/* ---- Comparing ---- */

__attribute__((format(printf, 2, 3))) static void violate(struct vd_rehearsal *rehearsal, const char *format,
							  ...)
{
	va_list arguments;

	if (rehearsal->violation[0])
		return;
	va_start(arguments, format);
	(void) vsnprintf(rehearsal->violation, sizeof rehearsal->violation, format, arguments);
	va_end(arguments);
}

/* Key by key; undecodable objects are left out of a cache, and so of this. */
static void compare_cache(struct vd_rehearsal *rehearsal, const struct vdi_rehearsal_cache *cache)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	struct vd_error	       error = { 0 };
	struct vd_list	      *list = NULL;
	struct vd_kv	     **kvs = NULL;
	struct vd_object      *object;
	size_t		       count = 0, at = 0;

	options.revision = VD_REVISION_ANY;
	if (vd_cacher_list_wait(cache->cacher, &options, &list, &error) != VD_OK) {
		violate(rehearsal, "list: the cache of %s cannot be listed: %s", cache->prefix,
			error.message);
		return;
	}
	if (vdi_rehearsal_read(rehearsal, vd_bytes_of(cache->prefix), false, &kvs, &count) == VD_OK) {
		while ((object = vd_list_next(list)) != NULL) {
			struct vd_bytes key = vd_object_key(object);

			while (at < count && vd_bytes_compare(vd_kv_key(kvs[at]), key) < 0)
				at++;
			if (at == count || !vd_bytes_equal(vd_kv_key(kvs[at]), key))
				violate(rehearsal,
					"list: the cache shows %.*s at revision %lld, and the store does not "
					"hold it",
					(int) key.size, (const char *) key.data,
					(long long) vd_object_revision(object));
			else if (kvs[at]->mod_rev != vd_object_revision(object))
				violate(rehearsal,
					"list: the cache shows %.*s at revision %lld, and the store at %lld",
					(int) key.size, (const char *) key.data,
					(long long) vd_object_revision(object), (long long) kvs[at]->mod_rev);
		}
		vdi_rehearsal_release(kvs, count);
	}
	vd_list_free(list);
}

void vdi_rehearsal_compare(struct vd_rehearsal *rehearsal)
{
	for (size_t i = 0; i < rehearsal->part_count; i++) {
		struct vdi_rehearsal_part *part = rehearsal->parts[i];
		struct vd_error		   error = { 0 };
		struct vd_list		  *list = NULL;

		if (vd_cacher_list_wait(part->cacher, &part->list, &list, &error) == VD_OK) {
			vdi_rehearsal_watch_compare(&part->watch, list);
			vd_list_free(list);
		} else {
			violate(rehearsal, "list: what watch %zu shows cannot be listed: %s", i,
				error.message);
		}
	}
	for (size_t i = 0; i < rehearsal->cache_count; i++)
		compare_cache(rehearsal, &rehearsal->caches[i]);
}

/* ---- Failures ---- */

__attribute__((format(printf, 2, 3))) static bool fail(struct vd_rehearsal *rehearsal, const char *format,
						       ...)
{
	char	sentence[sizeof rehearsal->failure];
	va_list arguments;

	va_start(arguments, format);
	(void) vsnprintf(sentence, sizeof sentence, format, arguments);
	va_end(arguments);
	if (rehearsal->failure[0] == 0)
		memcpy(rehearsal->failure, sentence, sizeof sentence);
	if (rehearsal->failed)
		rehearsal->failed(rehearsal->failed_arg, sentence);
	return false;
}

const char *vd_rehearsal_failure(const struct vd_rehearsal *rehearsal)
{
	return rehearsal->failure[0] ? rehearsal->failure : NULL;
}

/* ---- Events ---- */

static bool fits(const struct vdi_rehearsal_event *event, int type, const char *key, vd_rev revision)
{
	return (int) event->type == type && (revision == 0 || event->revision == revision) &&
	       (key == NULL ||
		(event->object && vd_bytes_equal(vd_object_key(event->object), vd_bytes_of(key))));
}

static size_t find_event(const struct vdi_rehearsal_watch *watch, int type, const char *key, vd_rev revision)
{
	size_t at = watch->expected;

	while (at < watch->count && !fits(&watch->events[at], type, key, revision))
		at++;
	return at;
}

/* What it saw instead. */
static void tell_events(const struct vdi_rehearsal_watch *watch, char *text, size_t size)
{
	size_t used = 0;

	text[0] = 0;
	for (size_t i = watch->expected; i < watch->count && i < watch->expected + SHOWN_MAX && used < size;
	     i++) {
		const struct vdi_rehearsal_event *event = &watch->events[i];
		struct vd_bytes key = event->object ? vd_object_key(event->object) : VD_BYTES_NONE;

		used += (size_t) snprintf(
			text + used, size - used, "%s%s%s%.*s@%lld", i > watch->expected ? ", " : "",
			vd_watch_type_name(event->type), key.size ? " " : "", (int) key.size,
			key.size ? (const char *) key.data : "", (long long) event->revision);
	}
	if (watch->count - watch->expected > SHOWN_MAX && used < size)
		(void) snprintf(text + used, size - used, " and %zu more",
				watch->count - watch->expected - SHOWN_MAX);
}

static struct vdi_rehearsal_watch *watch_of(struct vd_rehearsal *rehearsal, unsigned watch, int type)
{
	if (watch >= rehearsal->part_count || type < 0 || type > VD_WATCH_ERROR) {
		(void) fail(rehearsal, "there is no watch %u, or no type %d", watch, type);
		return NULL;
	}
	return &rehearsal->parts[watch]->watch;
}

bool vd_rehearsal_expect_event(struct vd_rehearsal *rehearsal, unsigned number, int type, const char *key,
			       vd_rev revision)
{
	struct vdi_rehearsal_watch *watch = watch_of(rehearsal, number, type);
	char			    seen[640], at_revision[48] = "";
	size_t			    at;

	if (watch == NULL)
		return false;
	at = find_event(watch, type, key, revision);
	if (at < watch->count) {
		watch->expected = at + 1;
		return true;
	}
	if (watch->dropped)
		return fail(rehearsal, "watch %u saw more than %d events: those after them are not known",
			    number, VD_REHEARSAL_EVENTS_MAX);
	tell_events(watch, seen, sizeof seen);
	if (revision)
		(void) snprintf(at_revision, sizeof at_revision, " at revision %lld", (long long) revision);
	return fail(rehearsal, "watch %u: expected %s%s%s%s; it saw %s", number,
		    vd_watch_type_name((enum vd_watch_type) type), key ? " " : "", key ? key : "",
		    at_revision, seen[0] ? seen : "nothing more");
}

bool vd_rehearsal_expect_no_event(struct vd_rehearsal *rehearsal, unsigned number, int type, const char *key)
{
	struct vdi_rehearsal_watch *watch = watch_of(rehearsal, number, type);
	size_t			    at;

	if (watch == NULL)
		return false;
	at = find_event(watch, type, key, 0);
	if (at < watch->count)
		return fail(rehearsal, "watch %u: expected no %s%s%s, and it saw one at revision %lld",
			    number, vd_watch_type_name((enum vd_watch_type) type), key ? " of " : "",
			    key ? key : "", (long long) watch->events[at].revision);
	return watch->dropped == 0 ||
	       fail(rehearsal, "watch %u saw more than %d events: those after them are not known", number,
		    VD_REHEARSAL_EVENTS_MAX);
}

/* ---- State ---- */

/* The value of key as a tree; NULL without a message: there is no such key. False: told already. */
static bool load_value(struct vd_rehearsal *rehearsal, const char *key, json_t **ret_tree,
		       vd_rev *ret_revision)
{
	struct vd_error error = { 0 };
	struct vd_kv  **kvs = NULL;
	size_t		count = 0;
	vd_status	status = vdi_rehearsal_read(rehearsal, vd_bytes_of(key), true, &kvs, &count);

	*ret_tree = NULL;
	*ret_revision = 0;
	if (status != VD_OK)
		return fail(rehearsal, "%s cannot be read: %s", key, vd_status_sentence(status));
	if (count) {
		*ret_revision = kvs[0]->mod_rev;
		status = vdi_json_load(vd_kv_value(kvs[0]), NULL, ret_tree, &error);
	}
	vdi_rehearsal_release(kvs, count);
	return status == VD_OK || fail(rehearsal, "the value of %s is no JSON: %s", key, error.message);
}

/* is and wanted may be NULL: nothing there. */
static bool check_value(struct vd_rehearsal *rehearsal, const char *what, const json_t *is, vd_rev revision,
			const char *json)
{
	struct vd_error error = { 0 };
	json_t	       *wanted = NULL;
	char	       *text = NULL;
	size_t		size;
	bool		same;

	if (json && vdi_json_load(vd_bytes_of(json), NULL, &wanted, &error) != VD_OK)
		return fail(rehearsal, "what is expected of %s is no JSON: %s", what, error.message);
	same = is && wanted ? vdi_json_same(is, wanted) : !is && !wanted;
	json_decref(wanted);
	if (same)
		return true;
	if (is == NULL)
		return fail(rehearsal, "%s is not there; expected %s", what, json);
	if (vdi_json_dump(is, &text, &size, NULL) != VD_OK)
		text = NULL;
	(void) fail(rehearsal, "%s is %.400s at revision %lld; expected %.300s", what,
		    text ? text : "something else", (long long) revision,
		    json ? json : "that it is not there");
	vdi_free(text);
	return false;
}

bool vd_rehearsal_expect_state(struct vd_rehearsal *rehearsal, const char *key, const char *json)
{
	return vd_rehearsal_expect_member(rehearsal, key, "", json);
}

bool vd_rehearsal_expect_member(struct vd_rehearsal *rehearsal, const char *key, const char *path,
				const char *json)
{
	json_t *tree;
	vd_rev	revision;
	char	what[512];
	bool	held;

	if (key == NULL || path == NULL)
		return fail(rehearsal, "an expectation needs a key and a path");
	if (!load_value(rehearsal, key, &tree, &revision))
		return false;
	(void) snprintf(what, sizeof what, "%s%s%s", path, path[0] ? " of " : "", key);
	held = check_value(rehearsal, what, tree && path[0] ? vdi_json_get(tree, path) : tree, revision,
			   json);
	json_decref(tree);
	return held;
}

bool vd_rehearsal_expect_count(struct vd_rehearsal *rehearsal, const char *prefix, size_t wanted)
{
	struct vd_kv **kvs = NULL;
	size_t	       count = 0;
	vd_status      status = vdi_rehearsal_read(rehearsal, vd_bytes_of(prefix), false, &kvs, &count);

	if (status != VD_OK)
		return fail(rehearsal, "%s cannot be read: %s", prefix, vd_status_sentence(status));
	vdi_rehearsal_release(kvs, count);
	return count == wanted ||
	       fail(rehearsal, "%zu keys begin with %s; expected %zu", count, prefix, wanted);
}

/* ---- All together ---- */

bool vd_rehearsal_expect_no_violation(struct vd_rehearsal *rehearsal)
{
	for (size_t i = 0; i < rehearsal->part_count; i++)
		if (rehearsal->parts[i]->watch.violation[0])
			return fail(rehearsal, "watch %zu: %s", i, rehearsal->parts[i]->watch.violation);
	return rehearsal->violation[0] == 0 || fail(rehearsal, "%s", rehearsal->violation);
}

uint64_t vd_rehearsal_fingerprint(const struct vd_rehearsal *rehearsal)
{
	uint64_t print = vdi_sim_schedule_hash(rehearsal->env);

	for (size_t i = 0; i < rehearsal->part_count; i++)
		print = vdi_hash_bytes(
			(struct vd_bytes) { &rehearsal->parts[i]->watch.fingerprint, sizeof print }, print);
	return print;
}
