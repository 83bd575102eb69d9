/* Expectations and comparisons of a simulation. They read the inner store, without faults or random numbers,
 * so that checks do not change the run. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "actor_sim.h"
#include "player.h"
#include "simulation.h"
#include "tree.h"

/* Maximum number of events in a failure message. */
#define SHOWN_MAX 6
/* Maximum bytes of a value in a failure message. */
#define SHOWN_SIZE_MAX 400
#define PATH_KEY_SIZE_MAX 256 /* of one key of a path */
#define NUMBER_SIZE_MAX 64

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

vd_status vdi_simulation_read(struct vd_simulation *simulation, struct vd_bytes key, bool is_key,
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
	vdi_wait_init(&reading.wait, simulation->env);
	status = vd_store_range(simulation->player->front.inner, &request, got_range, &reading);
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

void vdi_simulation_release(struct vd_kv **kvs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		vd_kv_unref(kvs[i]);
	vdi_free(kvs);
}

/* ---- Comparing ---- */

__attribute__((format(printf, 2, 3))) static void violate(struct vd_simulation *simulation,
							  const char	       *format, ...)
{
	va_list arguments;

	if (simulation->violation[0])
		return;
	va_start(arguments, format);
	(void) vsnprintf(simulation->violation, sizeof simulation->violation, format, arguments);
	va_end(arguments);
}

/* Compares a cache with the store, key by key. Undecodable objects are ignored, because caches leave them
 * out. */
static void compare_cache(struct vd_simulation *simulation, const struct vdi_simulation_cache *cache)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	struct vd_error	       error = { 0 };
	struct vd_list	      *list = NULL;
	struct vd_kv	     **kvs = NULL;
	struct vd_object      *object;
	size_t		       count = 0, at = 0;

	options.revision = VD_REVISION_ANY;
	if (vd_cacher_list_wait(cache->cacher, &options, &list, &error) != VD_OK) {
		violate(simulation, "list: the cache of %s cannot be listed: %s", cache->prefix,
			error.message);
		return;
	}
	if (vdi_simulation_read(simulation, vd_bytes_of(cache->prefix), false, &kvs, &count) == VD_OK) {
		while ((object = vd_list_next(list)) != NULL) {
			struct vd_bytes key = vd_object_key(object);

			while (at < count && vd_bytes_compare(vd_kv_key(kvs[at]), key) < 0)
				at++;
			if (at == count || !vd_bytes_equal(vd_kv_key(kvs[at]), key))
				violate(simulation,
					"list: the cache shows %.*s at revision %lld, but it is not in "
					"the store",
					(int) key.size, (const char *) key.data,
					(long long) vd_object_revision(object));
			else if (kvs[at]->mod_rev != vd_object_revision(object))
				violate(simulation,
					"list: the cache shows %.*s at revision %lld, but the store has it "
					"at %lld",
					(int) key.size, (const char *) key.data,
					(long long) vd_object_revision(object), (long long) kvs[at]->mod_rev);
		}
		vdi_simulation_release(kvs, count);
	}
	vd_list_free(list);
}

void vdi_simulation_compare(struct vd_simulation *simulation)
{
	for (size_t i = 0; i < simulation->part_count; i++) {
		struct vdi_simulation_part *part = simulation->parts[i];
		struct vd_error		    error = { 0 };
		struct vd_list		   *list = NULL;

		if (vd_cacher_list_wait(part->cacher, &part->list, &list, &error) == VD_OK) {
			vdi_simulation_watch_compare(&part->watch, list);
			vd_list_free(list);
		} else {
			violate(simulation, "list: the scope of watch %zu cannot be listed: %s", i,
				error.message);
		}
	}
	for (size_t i = 0; i < simulation->cache_count; i++)
		compare_cache(simulation, &simulation->caches[i]);
}

/* ---- Failures ---- */

__attribute__((format(printf, 2, 3))) static bool fail(struct vd_simulation *simulation, const char *format,
						       ...)
{
	char	sentence[sizeof simulation->failure];
	va_list arguments;

	va_start(arguments, format);
	(void) vsnprintf(sentence, sizeof sentence, format, arguments);
	va_end(arguments);
	if (simulation->failure[0] == 0)
		memcpy(simulation->failure, sentence, sizeof sentence);
	if (simulation->failed)
		simulation->failed(simulation->failed_arg, sentence);
	return false;
}

const char *vd_simulation_failure(const struct vd_simulation *simulation)
{
	return simulation->failure[0] ? simulation->failure : NULL;
}

/* ---- Events ---- */

static bool fits(const struct vdi_simulation_event *event, int type, const char *key, vd_rev revision)
{
	return (int) event->type == type && (revision == 0 || event->revision == revision) &&
	       (key == NULL ||
		(event->object && vd_bytes_equal(vd_object_key(event->object), vd_bytes_of(key))));
}

static size_t find_event(const struct vdi_simulation_watch *watch, int type, const char *key, vd_rev revision)
{
	size_t at = watch->expected;

	while (at < watch->count && !fits(&watch->events[at], type, key, revision))
		at++;
	return at;
}

/* Writes the events that were delivered instead. */
static void format_events(const struct vdi_simulation_watch *watch, char *text, size_t size)
{
	size_t used = 0;

	text[0] = 0;
	for (size_t i = watch->expected; i < watch->count && i < watch->expected + SHOWN_MAX && used < size;
	     i++) {
		const struct vdi_simulation_event *event = &watch->events[i];
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

static struct vdi_simulation_watch *watch_of(struct vd_simulation *simulation, unsigned watch, int type)
{
	if (watch >= simulation->part_count || type < 0 || type > VD_WATCH_ERROR) {
		(void) fail(simulation, "there is no watch %u, or no type %d", watch, type);
		return NULL;
	}
	return &simulation->parts[watch]->watch;
}

bool vd_simulation_expect_event(struct vd_simulation *simulation, unsigned number, int type, const char *key,
				vd_rev revision)
{
	struct vdi_simulation_watch *watch = watch_of(simulation, number, type);
	char			     seen[640], at_revision[48] = "";
	size_t			     at;

	if (watch == NULL)
		return false;
	at = find_event(watch, type, key, revision);
	if (at < watch->count) {
		watch->expected = at + 1;
		return true;
	}
	if (watch->dropped)
		return fail(simulation, "watch %u saw more than %d events: later events are not kept", number,
			    VD_SIMULATION_EVENTS_MAX);
	format_events(watch, seen, sizeof seen);
	if (revision)
		(void) snprintf(at_revision, sizeof at_revision, " at revision %lld", (long long) revision);
	return fail(simulation, "watch %u: expected %s%s%s%s; it saw %s", number,
		    vd_watch_type_name((enum vd_watch_type) type), key ? " " : "", key ? key : "",
		    at_revision, seen[0] ? seen : "nothing more");
}

bool vd_simulation_expect_no_event(struct vd_simulation *simulation, unsigned number, int type,
				   const char *key)
{
	struct vdi_simulation_watch *watch = watch_of(simulation, number, type);
	size_t			     at;

	if (watch == NULL)
		return false;
	at = find_event(watch, type, key, 0);
	if (at < watch->count)
		return fail(simulation, "watch %u: expected no %s%s%s, but it saw one at revision %lld",
			    number, vd_watch_type_name((enum vd_watch_type) type), key ? " of " : "",
			    key ? key : "", (long long) watch->events[at].revision);
	return watch->dropped == 0 ||
	       fail(simulation, "watch %u saw more than %d events: later events are not kept", number,
		    VD_SIMULATION_EVENTS_MAX);
}

/* ---- State ---- */

/* A stored value as a tree. kv is NULL if the key does not exist. */
struct state {
	struct vdi_tree	 tree;
	struct vd_kv	*kv; /* has the text that the tree points into */
	struct vdi_node *root;
};

static void free_state(struct state *state)
{
	vdi_tree_fini(&state->tree);
	vd_kv_unref(state->kv);
}

/* Reads the value of key. false: the failure was reported, and state is empty. */
static bool load_state(struct vd_simulation *simulation, const char *key, struct state *state)
{
	struct vd_error error = { 0 };
	struct vd_kv  **kvs = NULL;
	size_t		count = 0;
	vd_status	status = vdi_simulation_read(simulation, vd_bytes_of(key), true, &kvs, &count);

	*state = (struct state) { .tree = VDI_TREE_INIT };
	if (status != VD_OK)
		return fail(simulation, "%s cannot be read: %s", key, vd_status_sentence(status));
	if (count) {
		state->kv = vd_kv_ref(kvs[0]);
		status = vdi_tree_parse(&state->tree, vd_kv_value(state->kv), &state->root, &error);
	}
	vdi_simulation_release(kvs, count);
	if (status == VD_OK)
		return true;
	free_state(state);
	return fail(simulation, "the value of %s is not JSON: %s", key, error.message);
}

/* Returns the member at a dotted path of keys such as .spec.nodeName; `\.` is a dot in a key. */
static const struct vdi_node *member_at(struct vdi_tree *tree, const struct vdi_node *node, const char *path)
{
	char key[PATH_KEY_SIZE_MAX];

	for (path += *path == '.'; node && *path; path += *path == '.') {
		size_t size = 0;

		for (; *path && *path != '.' && size < sizeof key; path++) {
			path += path[0] == '\\' && path[1];
			key[size++] = *path;
		}
		if (size == sizeof key)
			return NULL;
		node = vdi_tree_get(tree, node, (struct vd_bytes) { key, size });
	}
	return node;
}

/* Returns true if two numbers are equal by value: 1 equals 1.0. */
static bool same_number(struct vd_bytes a, struct vd_bytes b)
{
	char	text[2][NUMBER_SIZE_MAX];
	int64_t whole[2];
	char   *ends[2];

	if (vd_bytes_equal(a, b))
		return true;
	if (a.size >= sizeof text[0] || b.size >= sizeof text[1])
		return false;
	(void) snprintf(text[0], sizeof text[0], "%.*s", (int) a.size, (const char *) a.data);
	(void) snprintf(text[1], sizeof text[1], "%.*s", (int) b.size, (const char *) b.data);
	for (int i = 0; i < 2; i++)
		whole[i] = strtoll(text[i], &ends[i], 10);
	if (*ends[0] == 0 && *ends[1] == 0)
		return whole[0] == whole[1];
	return strtod(text[0], NULL) == strtod(text[1], NULL);
}

/* Deep equality, numbers by value. The depth is bounded by the parser (VDI_TREE_DEPTH_MAX). */
static bool same(struct vdi_tree *tree, const struct vdi_node *a, const struct vdi_node *b)
{
	const struct vdi_node *child, *other;

	if (a->kind != b->kind || a->count != b->count)
		return false;
	if (a->kind == VDI_NODE_NUMBER)
		return same_number(a->text, b->text);
	if (a->kind == VDI_NODE_STRING)
		return vd_bytes_equal(a->text, b->text);
	for (child = a->first, other = b->first; child; child = child->next, other = other->next) {
		const struct vdi_node *match =
			a->kind == VDI_NODE_OBJECT ? vdi_tree_get(tree, b, child->key) : other;

		if (match == NULL || !same(tree, child, match))
			return false;
	}
	return true;
}

/* Compares node, which may be NULL, with json; json NULL: no value is expected. */
static bool check_value(struct vd_simulation *simulation, const char *what, struct state *state,
			const struct vdi_node *node, const char *json)
{
	struct vd_error	 error = { 0 };
	struct vdi_node *wanted = NULL;
	struct vdi_out	 text = VDI_OUT_INIT;

	if (json && vdi_tree_parse(&state->tree, vd_bytes_of(json), &wanted, &error) != VD_OK)
		return fail(simulation, "the expected value of %s is not JSON: %s", what, error.message);
	if (node && wanted ? same(&state->tree, node, wanted) : !node && !wanted)
		return true;
	if (node == NULL)
		return fail(simulation, "%s is missing; expected %s", what, json);
	vdi_tree_write_begin(&text, node, SHOWN_SIZE_MAX);
	(void) fail(simulation, "%s is %.*s at revision %lld; expected %.300s", what,
		    (int) VDI_MIN(text.size, (size_t) SHOWN_SIZE_MAX), text.size ? text.data : "",
		    (long long) state->kv->mod_rev, json ? json : "no value");
	vdi_out_fini(&text);
	return false;
}

bool vd_simulation_expect_state(struct vd_simulation *simulation, const char *key, const char *json)
{
	return vd_simulation_expect_member(simulation, key, "", json);
}

bool vd_simulation_expect_member(struct vd_simulation *simulation, const char *key, const char *path,
				 const char *json)
{
	struct state state;
	char	     what[512];
	bool	     held;

	if (key == NULL || path == NULL)
		return fail(simulation, "vd_simulation_expect_member: key and path must not be NULL");
	if (!load_state(simulation, key, &state))
		return false;
	(void) snprintf(what, sizeof what, "%s%s%s", path, path[0] ? " of " : "", key);
	held = check_value(simulation, what, &state, member_at(&state.tree, state.root, path), json);
	free_state(&state);
	return held;
}

bool vd_simulation_expect_count(struct vd_simulation *simulation, const char *prefix, size_t wanted)
{
	struct vd_kv **kvs = NULL;
	size_t	       count = 0;
	vd_status      status = vdi_simulation_read(simulation, vd_bytes_of(prefix), false, &kvs, &count);

	if (status != VD_OK)
		return fail(simulation, "%s cannot be read: %s", prefix, vd_status_sentence(status));
	vdi_simulation_release(kvs, count);
	return count == wanted ||
	       fail(simulation, "%zu keys begin with %s; expected %zu", count, prefix, wanted);
}

/* ---- All together ---- */

bool vd_simulation_expect_no_violation(struct vd_simulation *simulation)
{
	for (size_t i = 0; i < simulation->part_count; i++)
		if (simulation->parts[i]->watch.violation[0])
			return fail(simulation, "watch %zu: %s", i, simulation->parts[i]->watch.violation);
	return simulation->violation[0] == 0 || fail(simulation, "%s", simulation->violation);
}

uint64_t vd_simulation_fingerprint(const struct vd_simulation *simulation)
{
	uint64_t print = vdi_sim_schedule_hash(simulation->env);

	for (size_t i = 0; i < simulation->part_count; i++)
		print = vdi_hash_bytes(
			(struct vd_bytes) { &simulation->parts[i]->watch.fingerprint, sizeof print }, print);
	return print;
}
