/* Requests: parses the path, and writes the response as a kube-apiserver does. */
#include "kube_peer_state.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "json_scan.h"

struct target {
	size_t resource;
	char   namespace_name[64], name[128];
};

static void answer_status(struct kube_peer_exchange *exchange, int code, const char *reason,
			  const char *format, ...) __attribute__((format(printf, 4, 5)));

static void answer_status(struct kube_peer_exchange *exchange, int code, const char *reason,
			  const char *format, ...)
{
	char	message[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof message, format, arguments);
	va_end(arguments);
	exchange->code = code;
	exchange->is_complete = true;
	kube_peer_append(
		&exchange->text,
		"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"%s\","
		"\"reason\":\"%s\",\"code\":%d}",
		message, reason, code);
}

/* ---- Parameters ---- */

static int hex(char digit)
{
	return digit <= '9' ? digit - '0' : (digit | 32) - 'a' + 10;
}

static void unescape(const char *from, size_t size, char *to, size_t to_size)
{
	size_t used = 0;

	for (size_t i = 0; i < size && used + 1 < to_size; i++) {
		if (from[i] == '%' && i + 2 < size) {
			to[used++] = (char) (hex(from[i + 1]) * 16 + hex(from[i + 2]));
			i += 2;
		} else {
			to[used++] = from[i];
		}
	}
	to[used] = 0;
}

/* False: the parameter is missing. */
static bool parameter(const struct kube_peer_exchange *exchange, const char *name, char *value, size_t size)
{
	const char *at = strchr(exchange->path, '?');
	size_t	    length = strlen(name);

	*value = 0;
	while (at) {
		at++;
		if (strncmp(at, name, length) == 0 && at[length] == '=') {
			const char *start = at + length + 1, *end = strchr(start, '&');

			unescape(start, end ? (size_t) (end - start) : strlen(start), value, size);
			return true;
		}
		at = strchr(at, '&');
	}
	return false;
}

static int64_t number(const struct kube_peer_exchange *exchange, const char *name)
{
	char value[64];

	return parameter(exchange, name, value, sizeof value) ? strtoll(value, NULL, 10) : 0;
}

static bool is_true(const struct kube_peer_exchange *exchange, const char *name)
{
	char value[64];

	return parameter(exchange, name, value, sizeof value) && (*value == 't' || *value == '1');
}

/* Takes the next segment of the path; false: none. */
static bool segment(const char **at, char *text, size_t size)
{
	const char *start = *at;
	size_t	    length;

	if (*start != '/')
		return false;
	length = strcspn(++start, "/?");
	unescape(start, length, text, size);
	*at = start + length;
	return true;
}

static bool find_target(const struct kube_peer *peer, const char *path, struct target *ret_target)
{
	for (size_t i = 0; i < peer->resource_count; i++) {
		const struct kube_peer_resource *resource = &peer->resources[i];
		struct target			 target = { .resource = i };
		const char			*at = path + strlen(resource->root);
		char				 text[128];

		if (strncmp(path, resource->root, strlen(resource->root)) != 0 ||
		    !segment(&at, text, sizeof text))
			continue;
		if (strcmp(text, "namespaces") == 0 && resource->is_namespaced &&
		    (!segment(&at, target.namespace_name, sizeof target.namespace_name) ||
		     !segment(&at, text, sizeof text)))
			continue;
		if (strcmp(text, resource->plural) != 0 || resource->is_removed)
			continue;
		(void) segment(&at, target.name, sizeof target.name);
		*ret_target = target;
		return true;
	}
	return false;
}

/* ---- Lists ---- */

static void answer_gone(struct kube_peer_exchange *exchange, int64_t revision)
{
	struct kube_peer *peer = exchange->transport->peer;

	peer->gone++;
	answer_status(exchange, 410, "Expired", "too old resource version: %" PRId64 " (%" PRId64 ")",
		      revision, peer->compacted);
}

static void answer_future(struct kube_peer_exchange *exchange, int64_t revision)
{
	answer_status(exchange, 504, "Timeout", "Too large resource version: %" PRId64 ", current: %" PRId64,
		      revision, exchange->transport->peer->revision);
}

static void write_list(struct kube_peer_exchange *exchange, const struct target *target, int64_t revision,
		       const char *after, size_t limit)
{
	struct kube_peer		*peer = exchange->transport->peer;
	const struct kube_peer_resource *resource = &peer->resources[target->resource];
	size_t				 count, first = 0, shown;
	const struct kube_peer_event   **objects =
		kube_peer_objects(peer, target->resource, target->namespace_name, revision, &count);
	char key[256];

	for (; *after && first < count; first++) {
		snprintf(key, sizeof key, "%s/%s", objects[first]->namespace_name, objects[first]->name);
		if (strcmp(key, after) > 0)
			break;
	}
	shown = limit ? VDI_MIN(limit, count - first) : count - first;
	kube_peer_append(
		&exchange->text,
		"{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":\"%" PRId64
		"\"",
		resource->kind, resource->api_version, revision);
	if (first + shown < count)
		kube_peer_append(&exchange->text, ",\"continue\":\"%" PRId64 ":%s/%s\"", revision,
				 objects[first + shown - 1]->namespace_name,
				 objects[first + shown - 1]->name);
	kube_peer_append(&exchange->text, "},\"items\":[");
	for (size_t i = first; i < first + shown; i++) {
		kube_peer_append(&exchange->text, "%s", i > first ? "," : "");
		kube_peer_write(peer, objects[i], false, &exchange->text);
	}
	kube_peer_append(&exchange->text, "]}\n");
	free(objects);
	exchange->is_complete = true;
}

static void answer_list(struct kube_peer_exchange *exchange, const struct target *target)
{
	struct kube_peer *peer = exchange->transport->peer;
	int64_t		  limit = number(exchange, "limit"), revision = number(exchange, "resourceVersion");
	char		  token[256], match[32];
	const char	 *after = "";

	if (peer->page_max && (limit == 0 || limit > peer->page_max))
		limit = peer->page_max;
	(void) parameter(exchange, "resourceVersionMatch", match, sizeof match);
	if (parameter(exchange, "continue", token, sizeof token)) {
		peer->pages++;
		revision = strtoll(token, NULL, 10);
		after = strchr(token, ':') + 1;
	} else if (number(exchange, "limit") == 1) {
		peer->current++;
	} else {
		peer->lists++;
	}
	if (*after == 0 && strcmp(match, "Exact") != 0)
		revision = peer->revision;
	if (revision < peer->compacted)
		answer_gone(exchange, revision);
	else if (revision > peer->revision)
		answer_future(exchange, revision);
	else
		write_list(exchange, target, revision, after, (size_t) limit);
}

/* ---- Objects ---- */

static void write_object(struct kube_peer_exchange *exchange, int code, const struct kube_peer_event *event)
{
	exchange->code = code;
	exchange->is_complete = true;
	kube_peer_write(exchange->transport->peer, event, true, &exchange->text);
}

static void not_found(struct kube_peer_exchange *exchange, const struct target *target)
{
	answer_status(exchange, 404, "NotFound", "%s %s not found",
		      exchange->transport->peer->resources[target->resource].plural, target->name);
}

/* The number after "resourceVersion":" in the body; 0: none. */
static int64_t stated_revision(const struct kube_peer_exchange *exchange)
{
	static const char name[] = "\"resourceVersion\":\"";
	const char	 *at = exchange->body.size ? strstr(exchange->body.data, name) : NULL;

	return at ? strtoll(at + sizeof name - 1, NULL, 10) : 0;
}

static bool stated_text(const struct kube_peer_exchange *exchange, const char *name, char *text, size_t size)
{
	const char *at = strstr(exchange->body.data, name);

	*text = 0;
	if (at == NULL)
		return false;
	at += strlen(name);
	snprintf(text, size, "%.*s", (int) strcspn(at, "\""), at);
	return true;
}

/* The body from metadata on, without resourceVersion. */
static char *stated_object(const struct kube_peer_exchange *exchange)
{
	char *rest = strdup(strstr(exchange->body.data, "\"metadata\":{"));
	char *member = strstr(rest, "\"resourceVersion\":\""), *end;

	rest[strlen(rest) - 1] = 0; /* the brace of the object */
	if (member) {
		end = strchr(member + 19, '"') + 1;
		end += *end == ',';
		memmove(member, end, strlen(end) + 1);
	}
	return rest;
}

static void answer_put(struct kube_peer_exchange *exchange, struct target *target, bool is_create)
{
	struct kube_peer	     *peer = exchange->transport->peer;
	const struct kube_peer_event *old;
	int64_t			      stated = stated_revision(exchange);

	if (exchange->body.size == 0 ||
	    vdi_json_validate((struct vd_bytes) { exchange->body.data, exchange->body.size }, NULL, NULL) !=
		    VD_OK ||
	    strstr(exchange->body.data, "\"metadata\":{") == NULL ||
	    (is_create && !stated_text(exchange, "\"name\":\"", target->name, sizeof target->name))) {
		answer_status(exchange, 400, "BadRequest", "not an object");
		return;
	}
	old = kube_peer_object(peer, target->resource, target->namespace_name, target->name, peer->revision);
	if (is_create && old) {
		answer_status(exchange, 409, "AlreadyExists", "%s already exists", target->name);
	} else if (!is_create && old == NULL) {
		not_found(exchange, target);
	} else if (!is_create && stated && stated != old->revision) {
		answer_status(exchange, 409, "Conflict", "the object has been modified");
	} else {
		kube_peer_change(peer, target->resource, is_create ? KUBE_PEER_ADDED : KUBE_PEER_MODIFIED,
				 target->namespace_name, target->name, stated_object(exchange));
		write_object(exchange, is_create ? 201 : 200, &peer->events[peer->event_count - 1]);
	}
}

static void answer_delete(struct kube_peer_exchange *exchange, const struct target *target)
{
	struct kube_peer	     *peer = exchange->transport->peer;
	const struct kube_peer_event *old = kube_peer_object(peer, target->resource, target->namespace_name,
							     target->name, peer->revision);
	int64_t			      stated = stated_revision(exchange);

	if (old == NULL) {
		not_found(exchange, target);
	} else if (stated && stated != old->revision) {
		answer_status(exchange, 409, "Conflict", "the object has been modified");
	} else {
		kube_peer_change(peer, target->resource, KUBE_PEER_DELETED, target->namespace_name,
				 target->name, strdup(old->rest));
		write_object(exchange, 200, &peer->events[peer->event_count - 1]);
	}
}

/* ---- Watches ---- */

static void write_event(struct kube_peer_exchange *exchange, const char *type,
			const struct kube_peer_event *event)
{
	kube_peer_append(&exchange->text, "{\"type\":\"%s\",\"object\":", type);
	kube_peer_write(exchange->transport->peer, event, true, &exchange->text);
	kube_peer_append(&exchange->text, "}\n");
}

static void write_bookmark(struct kube_peer_exchange *exchange, int64_t revision, bool is_end)
{
	struct kube_peer		*peer = exchange->transport->peer;
	const struct kube_peer_resource *resource = &peer->resources[exchange->resource];

	kube_peer_append(
		&exchange->text,
		"{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":"
		"{\"resourceVersion\":\"%" PRId64 "\",\"creationTimestamp\":null%s}}}\n",
		resource->kind, resource->api_version, revision,
		is_end ? ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}" : "");
}

static void begin_watch(struct kube_peer_exchange *exchange, const struct target *target, int64_t position)
{
	struct kube_peer *peer = exchange->transport->peer;
	vd_mono		  now = vd_env_now(peer->env);
	int64_t		  timeout_s = number(exchange, "timeoutSeconds");

	exchange->is_watch = true;
	exchange->resource = target->resource;
	memcpy(exchange->namespace_name, target->namespace_name, sizeof exchange->namespace_name);
	exchange->position = position;
	while (exchange->next_event < peer->event_count &&
	       peer->events[exchange->next_event].revision <= position)
		exchange->next_event++;
	exchange->end_at = timeout_s ? vd_mono_add(now, VD_SECONDS(timeout_s)) :
				       vd_mono_add(now, VD_SECONDS(1800 + kube_peer_random(peer, 1800)));
	exchange->wants_bookmarks = is_true(exchange, "allowWatchBookmarks") && !peer->no_bookmarks;
	exchange->bookmark_at = vd_mono_add(now, VD_SECONDS(60));
	exchange->last_bookmark_at = timeout_s == 0 || timeout_s >= 3 ?
					     (vd_mono) { exchange->end_at.ns - VD_SECONDS(2).ns } :
					     VD_NEVER;
	peer->open_watches++;
}

static void write_initial(struct kube_peer_exchange *exchange)
{
	struct kube_peer	      *peer = exchange->transport->peer;
	size_t			       count;
	const struct kube_peer_event **objects =
		kube_peer_objects(peer, exchange->resource, exchange->namespace_name, peer->revision, &count);

	for (size_t i = 0; i < count; i++)
		write_event(exchange, "ADDED", objects[i]);
	free(objects);
}

static void answer_initial(struct kube_peer_exchange *exchange, const struct target *target, bool is_list)
{
	struct kube_peer *peer = exchange->transport->peer;

	if (is_list && peer->watch_list == KUBE_PEER_WATCH_LIST_REFUSED) {
		answer_status(exchange, peer->watch_list_code, "Invalid",
			      "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch");
		return;
	}
	if (is_list)
		peer->watch_lists++;
	begin_watch(exchange, target, peer->revision);
	write_initial(exchange);
	if (is_list && peer->watch_list == KUBE_PEER_WATCH_LIST && exchange->wants_bookmarks)
		write_bookmark(exchange, peer->revision, true);
}

static void answer_watch(struct kube_peer_exchange *exchange, const struct target *target)
{
	struct kube_peer *peer = exchange->transport->peer;
	int64_t		  revision = number(exchange, "resourceVersion");

	exchange->code = 200;
	if (is_true(exchange, "sendInitialEvents") || revision == 0) {
		answer_initial(exchange, target, is_true(exchange, "sendInitialEvents"));
		return;
	}
	peer->watches++;
	if (revision > peer->revision) {
		answer_future(exchange, revision);
	} else if (revision < peer->compacted && peer->gone_as_event) {
		kube_peer_append(&exchange->text, "{\"type\":\"ERROR\",\"object\":");
		answer_gone(exchange, revision);
		kube_peer_append(&exchange->text, "}\n");
		exchange->code = 200;
	} else if (revision < peer->compacted) {
		answer_gone(exchange, revision);
	} else {
		begin_watch(exchange, target, revision);
	}
}

vd_mono kube_peer_watch_step(struct kube_peer_exchange *exchange, vd_mono now)
{
	static const char *const names[] = { "ADDED", "MODIFIED", "DELETED" };
	struct kube_peer	*peer = exchange->transport->peer;
	vd_mono			 due = exchange->end_at;

	for (; exchange->next_event < peer->event_count; exchange->next_event++) {
		const struct kube_peer_event *event = &peer->events[exchange->next_event];

		if (event->resource != exchange->resource ||
		    (*exchange->namespace_name &&
		     strcmp(exchange->namespace_name, event->namespace_name) != 0))
			continue;
		if (exchange->event_at.ns > now.ns)
			return exchange->event_at;
		write_event(exchange, names[event->type], event);
		if (peer->early_bookmarks && exchange->wants_bookmarks &&
		    exchange->next_event + 1 < peer->event_count && event[1].revision == event->revision &&
		    kube_peer_random(peer, 100) < peer->early_bookmarks)
			write_bookmark(exchange, event->revision, false);
		if (peer->event_gap.ns)
			exchange->event_at = vd_mono_add(now, peer->event_gap);
	}
	if (exchange->wants_bookmarks && exchange->bookmark_at.ns <= now.ns) {
		write_bookmark(exchange, peer->revision, false);
		exchange->bookmark_at = vd_mono_add(now, VD_SECONDS(60));
	}
	if (exchange->wants_bookmarks && exchange->last_bookmark_at.ns <= now.ns) {
		write_bookmark(exchange, peer->revision, false);
		exchange->last_bookmark_at = VD_NEVER;
	}
	if (exchange->end_at.ns <= now.ns || peer->resources[exchange->resource].is_removed)
		exchange->is_complete = true;
	if (exchange->wants_bookmarks)
		due.ns = VDI_MIN(due.ns, VDI_MIN(exchange->bookmark_at.ns, exchange->last_bookmark_at.ns));
	return due;
}

/* ---- Requests ---- */

static bool answer_document(struct kube_peer_exchange *exchange)
{
	struct kube_peer *peer = exchange->transport->peer;
	size_t		  size = strcspn(exchange->path, "?");

	if (strncmp(exchange->path, "/api/v1/namespaces/kube-system", size) == 0 && size == 30) {
		peer->identities++;
		kube_peer_append(&exchange->text,
				 "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
				 "\"kube-system\",\"uid\":\"%s\",\"resourceVersion\":\"4\"}}",
				 peer->uid);
		exchange->is_complete = true;
		return true;
	}
	for (size_t i = 0; i < peer->document_count; i++)
		if (strlen(peer->documents[i].path) == size &&
		    strncmp(peer->documents[i].path, exchange->path, size) == 0) {
			kube_peer_append(&exchange->text, "%s", peer->documents[i].body);
			exchange->is_complete = true;
			return true;
		}
	return false;
}

static bool refuse(struct kube_peer_exchange *exchange)
{
	static const int  codes[] = { 429, 500, 502, 503 };
	struct kube_peer *peer = exchange->transport->peer;

	if (peer->token && (exchange->token == NULL || strcmp(exchange->token, peer->token) != 0)) {
		answer_status(exchange, 401, "Unauthorized", "Unauthorized");
		return true;
	}
	if (peer->refuse_count && strstr(exchange->path, "kube-system") == NULL) {
		peer->refuse_count--;
		answer_status(exchange, peer->refuse_code, "Refused", "refused on purpose");
		return true;
	}
	if (kube_peer_random(peer, 100) >= peer->faults.refused)
		return false;
	peer->refused++;
	answer_status(exchange, codes[kube_peer_random(peer, 4)], "InternalError", "refused on purpose");
	exchange->retry_after_s = exchange->code == 429 ? 1 : 0;
	return true;
}

void kube_peer_answer(struct kube_peer_exchange *exchange, vd_mono now)
{
	struct kube_peer *peer = exchange->transport->peer;
	struct target	  target;
	bool		  is_get = strcmp(exchange->method, "GET") == 0;

	exchange->is_answered = true;
	exchange->code = 200;
	if (refuse(exchange) || (is_get && answer_document(exchange)))
		return;
	if (!find_target(peer, exchange->path, &target)) {
		answer_status(exchange, 404, "NotFound", "the server could not find the requested resource");
	} else if (strcmp(exchange->method, "POST") == 0) {
		peer->writes++;
		answer_put(exchange, &target, true);
	} else if (strcmp(exchange->method, "PUT") == 0) {
		peer->writes++;
		answer_put(exchange, &target, false);
	} else if (strcmp(exchange->method, "DELETE") == 0) {
		peer->writes++;
		answer_delete(exchange, &target);
	} else if (*target.name) {
		const struct kube_peer_event *event = kube_peer_object(
			peer, target.resource, target.namespace_name, target.name, peer->revision);

		peer->gets++;
		if (event)
			write_object(exchange, 200, event);
		else
			not_found(exchange, &target);
	} else if (is_true(exchange, "watch")) {
		answer_watch(exchange, &target);
	} else {
		answer_list(exchange, &target);
	}
	if (!is_get && peer->write_answer && exchange->code < 300) {
		exchange->text.size = 0;
		kube_peer_append(&exchange->text, "%s", peer->write_answer);
	}
}
