/* The state of the peer is its history: an object is the newest event of its name. */
#include "kube_peer_state.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

static struct kube_peer *peers; /* the simulator has one thread */

uint64_t kube_peer_random(struct kube_peer *peer, uint64_t bound)
{
	uint64_t number;

	pthread_mutex_lock(&peer->mutex);
	peer->random = peer->random * 6364136223846793005u + 1442695040888963407u;
	number = peer->random >> 33;
	pthread_mutex_unlock(&peer->mutex);
	return bound ? number % bound : 0;
}

void kube_peer_append(struct kube_peer_text *text, const char *format, ...)
{
	va_list arguments, copy;
	int	size;

	va_start(arguments, format);
	va_copy(copy, arguments);
	size = vsnprintf(NULL, 0, format, copy);
	va_end(copy);
	if (text->size + (size_t) size + 1 > text->capacity) {
		text->capacity = (text->size + (size_t) size + 1) * 2;
		text->data = realloc(text->data, text->capacity);
		VDI_CHECK(text->data);
	}
	vsnprintf(text->data + text->size, (size_t) size + 1, format, arguments);
	text->size += (size_t) size;
	va_end(arguments);
}

/* ---- Objects ---- */

void kube_peer_write(const struct kube_peer *peer, const struct kube_peer_event *event, bool has_kind,
		     struct kube_peer_text *text)
{
	const struct kube_peer_resource *resource = &peer->resources[event->resource];
	static const char		 start[] = "\"metadata\":{";
	const char			*rest = event->rest + sizeof start - 1;

	kube_peer_append(text, "{");
	if (has_kind)
		kube_peer_append(text, "\"kind\":\"%s\",\"apiVersion\":\"%s\",", resource->kind,
				 resource->api_version);
	kube_peer_append(text, "%s\"resourceVersion\":\"%" PRId64 "\"%s%s}", start, event->revision,
			 *rest == '}' ? "" : ",", rest);
}

static bool is_object(const struct kube_peer_event *event, size_t resource, const char *namespace_name,
		      const char *name)
{
	return event->resource == resource && strcmp(event->name, name) == 0 &&
	       strcmp(event->namespace_name, namespace_name) == 0;
}

const struct kube_peer_event *kube_peer_object(const struct kube_peer *peer, size_t resource,
					       const char *namespace_name, const char *name, int64_t revision)
{
	for (size_t i = peer->event_count; i-- > 0;) {
		const struct kube_peer_event *event = &peer->events[i];

		if (event->revision <= revision && is_object(event, resource, namespace_name, name))
			return event->type == KUBE_PEER_DELETED ? NULL : event;
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const struct kube_peer_event *left = *(const struct kube_peer_event *const *) a;
	const struct kube_peer_event *right = *(const struct kube_peer_event *const *) b;
	char			      left_key[256], right_key[256];
	int			      order;

	snprintf(left_key, sizeof left_key, "%s/%s", left->namespace_name, left->name);
	snprintf(right_key, sizeof right_key, "%s/%s", right->namespace_name, right->name);
	order = strcmp(left_key, right_key);
	return order ? order : VDI_ORDER(left->revision, right->revision);
}

const struct kube_peer_event **kube_peer_objects(const struct kube_peer *peer, size_t resource,
						 const char *namespace_name, int64_t revision,
						 size_t *ret_count)
{
	const struct kube_peer_event **events = calloc(peer->event_count + 1, sizeof *events);
	size_t			       count = 0, kept = 0;

	VDI_CHECK(events);
	for (size_t i = 0; i < peer->event_count; i++) {
		const struct kube_peer_event *event = &peer->events[i];

		if (event->resource == resource && event->revision <= revision &&
		    (*namespace_name == 0 || strcmp(event->namespace_name, namespace_name) == 0))
			events[count++] = event;
	}
	qsort(events, count, sizeof *events, compare);
	for (size_t i = 0; i < count; i++) {
		bool is_newest = i + 1 == count || !is_object(events[i + 1], resource,
							      events[i]->namespace_name, events[i]->name);

		if (is_newest && events[i]->type != KUBE_PEER_DELETED)
			events[kept++] = events[i];
	}
	*ret_count = kept;
	return events;
}

static int64_t append_event(struct kube_peer *peer, size_t resource, enum kube_peer_type type,
			    const char *namespace_name, const char *name, char *rest)
{
	struct kube_peer_event *event;

	if (peer->event_count == peer->event_capacity) {
		peer->event_capacity = peer->event_capacity * 2 + 64;
		peer->events = realloc(peer->events, peer->event_capacity * sizeof *peer->events);
		VDI_CHECK(peer->events);
	}
	event = &peer->events[peer->event_count++];
	*event = (struct kube_peer_event) {
		.revision = peer->revision, .resource = resource, .type = type, .rest = rest
	};
	snprintf(event->namespace_name, sizeof event->namespace_name, "%s", namespace_name);
	snprintf(event->name, sizeof event->name, "%s", name);
	return event->revision;
}

int64_t kube_peer_change(struct kube_peer *peer, size_t resource, enum kube_peer_type type,
			 const char *namespace_name, const char *name, char *rest)
{
	peer->revision++;
	append_event(peer, resource, type, namespace_name, name, rest);
	kube_peer_wake(peer);
	return peer->revision;
}

/* ---- For tests ---- */

static size_t resource_of(const struct kube_peer *peer, const char *plural)
{
	size_t i = 0;

	while (i < peer->resource_count && strcmp(peer->resources[i].plural, plural) != 0)
		i++;
	VDI_CHECK(i < peer->resource_count);
	return i;
}

int64_t kube_peer_put(struct kube_peer *peer, const char *plural, const char *namespace_name,
		      const char *name, const char *members)
{
	size_t		      resource = resource_of(peer, plural);
	struct kube_peer_text rest = { 0 };
	enum kube_peer_type   type = KUBE_PEER_ADDED;
	int64_t		      revision;

	kube_peer_append(&rest, "\"metadata\":{\"name\":\"%s\"", name);
	if (*namespace_name)
		kube_peer_append(&rest, ",\"namespace\":\"%s\"", namespace_name);
	kube_peer_append(&rest, ",\"uid\":\"u-%s\"}%s%s", name, *members ? "," : "", members);
	pthread_mutex_lock(&peer->mutex);
	if (kube_peer_object(peer, resource, namespace_name, name, peer->revision))
		type = KUBE_PEER_MODIFIED;
	revision = kube_peer_change(peer, resource, type, namespace_name, name, rest.data);
	pthread_mutex_unlock(&peer->mutex);
	return revision;
}

int64_t kube_peer_delete_many(struct kube_peer *peer, const char *plural, const char *namespace_name,
			      const char *const *names, size_t count)
{
	size_t	resource = resource_of(peer, plural);
	bool	found = false;
	int64_t revision;

	pthread_mutex_lock(&peer->mutex);
	for (size_t i = 0; i < count; i++) {
		const struct kube_peer_event *old =
			kube_peer_object(peer, resource, namespace_name, names[i], peer->revision);

		if (old == NULL)
			continue;
		if (!found)
			peer->revision++;
		found = true;
		append_event(peer, resource, KUBE_PEER_DELETED, namespace_name, names[i], strdup(old->rest));
	}
	kube_peer_wake(peer);
	revision = found ? peer->revision : 0;
	pthread_mutex_unlock(&peer->mutex);
	return revision;
}

int64_t kube_peer_delete(struct kube_peer *peer, const char *plural, const char *namespace_name,
			 const char *name)
{
	return kube_peer_delete_many(peer, plural, namespace_name, &name, 1);
}

int64_t kube_peer_advance(struct kube_peer *peer)
{
	int64_t revision;

	pthread_mutex_lock(&peer->mutex);
	revision = ++peer->revision;
	pthread_mutex_unlock(&peer->mutex);
	return revision;
}

void kube_peer_compact(struct kube_peer *peer)
{
	peer->compacted = peer->revision;
}

void kube_peer_restore(struct kube_peer *peer, int64_t revision)
{
	while (peer->event_count && peer->events[peer->event_count - 1].revision > revision)
		free(peer->events[--peer->event_count].rest);
	peer->revision = revision;
	peer->compacted = VDI_MIN(peer->compacted, revision);
	snprintf(peer->uid, sizeof peer->uid, "restored-%" PRIu64, kube_peer_random(peer, 1u << 30));
	kube_peer_cut(peer);
}

void kube_peer_add_resource(struct kube_peer *peer, const char *group, const char *version,
			    const char *plural, const char *kind, bool is_namespaced)
{
	struct kube_peer_resource *resource;

	peer->resources = realloc(peer->resources, (peer->resource_count + 1) * sizeof *peer->resources);
	VDI_CHECK(peer->resources);
	resource = &peer->resources[peer->resource_count++];
	memset(resource, 0, sizeof *resource);
	snprintf(resource->root, sizeof resource->root, *group ? "/apis/%s/%s" : "/api%s/%s", group, version);
	snprintf(resource->plural, sizeof resource->plural, "%s", plural);
	snprintf(resource->kind, sizeof resource->kind, "%s", kind);
	snprintf(resource->api_version, sizeof resource->api_version, "%s%s%s", group, *group ? "/" : "",
		 version);
	resource->is_namespaced = is_namespaced;
}

void kube_peer_remove_resource(struct kube_peer *peer, const char *plural)
{
	size_t resource = resource_of(peer, plural), count = 1;

	while (count) {
		const struct kube_peer_event **objects =
			kube_peer_objects(peer, resource, "", peer->revision, &count);

		if (count) {
			struct kube_peer_event event = *objects[0]; /* the history moves when it grows */

			kube_peer_change(peer, resource, KUBE_PEER_DELETED, event.namespace_name, event.name,
					 strdup(event.rest));
		}
		free(objects);
	}
	peer->resources[resource].is_removed = true;
	kube_peer_wake(peer);
}

void kube_peer_return_resource(struct kube_peer *peer, const char *plural)
{
	peer->resources[resource_of(peer, plural)].is_removed = false;
}

void kube_peer_set_document(struct kube_peer *peer, const char *path, const char *body)
{
	struct kube_peer_document *document = NULL;

	for (size_t i = 0; i < peer->document_count; i++)
		if (strcmp(peer->documents[i].path, path) == 0)
			document = &peer->documents[i];
	if (document == NULL) {
		peer->documents =
			realloc(peer->documents, (peer->document_count + 1) * sizeof *peer->documents);
		VDI_CHECK(peer->documents);
		document = &peer->documents[peer->document_count++];
		memset(document, 0, sizeof *document);
		snprintf(document->path, sizeof document->path, "%s", path);
	}
	free(document->body);
	document->body = strdup(body);
}

size_t kube_peer_count(const struct kube_peer *peer, const char *plural)
{
	size_t count;

	pthread_mutex_lock((pthread_mutex_t *) (uintptr_t) &peer->mutex);
	free(kube_peer_objects(peer, resource_of(peer, plural), "", peer->revision, &count));
	pthread_mutex_unlock((pthread_mutex_t *) (uintptr_t) &peer->mutex);
	return count;
}

int64_t kube_peer_find(const struct kube_peer *peer, const char *plural, const char *namespace_name,
		       const char *name)
{
	const struct kube_peer_event *event;
	int64_t			      revision;

	pthread_mutex_lock((pthread_mutex_t *) (uintptr_t) &peer->mutex);
	event = kube_peer_object(peer, resource_of(peer, plural), namespace_name, name, peer->revision);
	revision = event ? event->revision : 0;
	pthread_mutex_unlock((pthread_mutex_t *) (uintptr_t) &peer->mutex);
	return revision;
}

/* ---- Life ---- */

struct kube_peer *kube_peer_new(struct vd_env *env, uint64_t seed)
{
	struct kube_peer *peer = calloc(1, sizeof *peer);

	pthread_mutexattr_t attributes;

	VDI_CHECK(peer);
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&peer->mutex, &attributes);
	pthread_mutexattr_destroy(&attributes);
	peer->env = env;
	peer->random = seed * 2654435761u + 1;
	peer->revision = 100;
	peer->watch_list_code = 422;
	snprintf(peer->uid, sizeof peer->uid, "first-%" PRIu64, seed);
	peer->next = peers;
	peers = peer;
	return peer;
}

struct kube_peer *kube_peer_of(const struct vd_env *env)
{
	struct kube_peer *peer = peers;

	while (peer && peer->env != env)
		peer = peer->next;
	return peer;
}

void kube_peer_free(struct kube_peer *peer)
{
	struct kube_peer **place = &peers;

	VDI_CHECK(peer->transports == NULL);
	while (*place != peer)
		place = &(*place)->next;
	*place = peer->next;
	for (size_t i = 0; i < peer->event_count; i++)
		free(peer->events[i].rest);
	for (size_t i = 0; i < peer->document_count; i++)
		free(peer->documents[i].body);
	pthread_mutex_destroy(&peer->mutex);
	free(peer->documents);
	free(peer->resources);
	free(peer->events);
	free(peer);
}
