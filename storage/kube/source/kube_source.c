/* Open, close, and the functions that all parts use. The member's run starts the calls, then the parts in
 * turn; each returns when it wants to run again. */
#include "kube_source.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "http_parser.h"

#define TEXT_MAX 1024

/* ---- Texts ---- */

char *vdi_kube_escape(struct vd_bytes text)
{
	char *escaped = vdi_alloc(text.size * 3 + 1);

	if (escaped)
		escaped[vdi_percent_encode(text, escaped)] = 0;
	return escaped;
}

/* NULL: out of memory. */
static char *format_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

static char *format_list(const char *format, va_list arguments)
{
	va_list copy;
	int	size;
	char   *text;

	va_copy(copy, arguments);
	size = vsnprintf(NULL, 0, format, copy);
	va_end(copy);
	text = size >= 0 ? vdi_alloc((size_t) size + 1) : NULL;
	if (text)
		vsnprintf(text, (size_t) size + 1, format, arguments);
	return text;
}

static char *format_text(const char *format, ...)
{
	va_list arguments;
	char   *text;

	va_start(arguments, format);
	text = format_list(format, arguments);
	va_end(arguments);
	return text;
}

char *vdi_kube_source_url(const struct vdi_kube_source *source, const char *path, const char *format, ...)
{
	va_list arguments;
	char   *query, *url;

	va_start(arguments, format);
	query = format_list(format, arguments);
	va_end(arguments);
	url = query && path ? format_text("%s?%s%s", path, query, source->selector) : NULL;
	vdi_free(query);
	return url;
}

char *vdi_kube_source_path(const struct vdi_kube_source *source, struct vd_bytes namespace_name,
			   struct vd_bytes name)
{
	char *space = vdi_kube_escape(namespace_name), *object = vdi_kube_escape(name), *path = NULL;

	if (space && object)
		path = format_text("%s%s%s/%s%s%s", source->root, *space ? "/namespaces/" : "", space,
				   source->plural, *object ? "/" : "", object);
	vdi_free(space);
	vdi_free(object);
	return path;
}

bool vdi_kube_source_split(const struct vdi_kube_source *source, struct vd_bytes key,
			   struct vd_bytes *ret_namespace, struct vd_bytes *ret_name)
{
	const char *text = key.data, *slash;
	size_t	    size;

	if (key.size <= source->prefix_size || memcmp(text, source->prefix, source->prefix_size) != 0)
		return false;
	text += source->prefix_size;
	size = key.size - source->prefix_size;
	slash = memchr(text, '/', size);
	*ret_namespace = VD_BYTES_NONE;
	*ret_name = (struct vd_bytes) { text, size };
	if (source->is_cluster_scoped)
		return slash == NULL;
	if (slash == NULL || slash == text || slash + 1 == text + size)
		return false;
	*ret_namespace = (struct vd_bytes) { text, (size_t) (slash - text) };
	*ret_name = (struct vd_bytes) { slash + 1, size - ret_namespace->size - 1 };
	return memchr(ret_name->data, '/', ret_name->size) == NULL;
}

struct vd_error vdi_kube_source_error(vd_status status, const struct vd_error *error)
{
	struct vd_error copy = { 0 };

	if (error)
		copy = *error;
	if (copy.message[0] == 0)
		(void) vd_error_set(&copy, status, "%s", vd_status_sentence(status));
	copy.code = status;
	return copy;
}

vd_status vdi_kube_source_check(const struct vdi_kube_source *source, const struct vdi_kube_object *object,
				struct vd_error *reterr)
{
	if (source->kind == NULL || vd_bytes_equal(object->kind, vd_bytes_of(source->kind)))
		return VD_OK;
	return vd_error_set(reterr, VD_BAD_REQUEST, "the server sent an object of kind %.*s instead of %s",
			    (int) VDI_MIN(object->kind.size, (size_t) 80), (const char *) object->kind.data,
			    source->kind);
}

void vdi_kube_source_mirror(struct vdi_kube_source *source, struct vdi_kube_mirror *mirror)
{
	vdi_kube_mirror_init(mirror);
	mirror->bytes_max = vdi_kube_options(source->member.kube)->source_bytes_max;
	mirror->metric = source->bytes_metric;
}

vd_status vdi_kube_source_check_key(const struct vdi_kube_source *source,
				    const struct vdi_kube_object *object, struct vd_bytes key,
				    struct vd_error *reterr)
{
	struct vd_bytes namespace_name, name;

	VDI_TRY(vdi_kube_source_check(source, object, reterr));
	if (!vdi_kube_source_split(source, key, &namespace_name, &name) ||
	    !vd_bytes_equal(object->name, name) || !vd_bytes_equal(object->namespace_name, namespace_name))
		return vd_error_set(
			reterr, VD_BAD_REQUEST, "the server sent the object %.*s/%.*s instead of %.*s",
			(int) VDI_MIN(object->namespace_name.size, (size_t) 80),
			(const char *) object->namespace_name.data,
			(int) VDI_MIN(object->name.size, (size_t) 80), (const char *) object->name.data,
			(int) VDI_MIN(key.size, (size_t) 160), (const char *) key.data);
	if (object->revision == 0)
		return vd_error_set(reterr, VD_BAD_REQUEST,
				    "the server sent an object without resourceVersion");
	return VD_OK;
}

/* ---- Life ---- */

static void free_source(struct vdi_kube_source *source)
{
	vdi_kube_mirror_fini(&source->pump.mirror);
	vdi_metric_remove(source->bytes_metric);
	vdi_kube_ring_fini(&source->ring);
	vdi_kube_reader_fini(&source->objects);
	vdi_kube_event_reader_fini(&source->events);
	vdi_kube_page_reader_fini(&source->pages);
	vdi_free(source->name);
	vdi_free(source->root);
	vdi_free(source->plural);
	vdi_free(source->kind);
	vdi_free(source->api_version);
	vdi_free(source->prefix);
	vdi_free(source->namespace_name);
	vdi_free(source->label_selector);
	vdi_free(source->field_selector);
	vdi_free(source->path);
	vdi_free(source->selector);
	vdi_lock_fini(&source->lock);
	vdi_free(source);
}

struct vdi_kube_source *vdi_kube_source_ref(struct vdi_kube_source *source)
{
	atomic_fetch_add_explicit(&source->references, 1, memory_order_relaxed);
	return source;
}

void vdi_kube_source_unref(struct vdi_kube_source *source)
{
	if (atomic_fetch_sub_explicit(&source->references, 1, memory_order_acq_rel) == 1)
		free_source(source);
}

void vdi_kube_source_raise(struct vdi_kube_source *source, vd_rev revision)
{
	vdi_lock_acquire(&source->lock);
	source->known = VDI_MAX(source->known, revision);
	vdi_lock_release(&source->lock);
}

vd_status vdi_kube_source_call(struct vdi_kube_source *source, struct vdi_kube_call *call)
{
	vd_status status = VD_CLOSED;

	vdi_lock_acquire(&source->lock);
	if (!source->is_closing) {
		TAILQ_INSERT_TAIL(&source->calls, call, node);
		vdi_kube_member_wake(&source->member);
		status = VD_OK;
	}
	vdi_lock_release(&source->lock);
	return status;
}

/* ---- Health ---- */

void vdi_kube_source_state(struct vdi_kube_source *source, enum vd_kube_state state,
			   const struct vd_error *error)
{
	struct vd_kube_health *health = &source->health;
	bool		       is_change;

	vdi_lock_acquire(&source->lock);
	is_change = health->state != state || (error && health->error.code != error->code);
	health->state = state;
	health->heard = source->heard;
	health->attempts = source->pump.backoff.attempts;
	health->retry_at = state == VD_KUBE_RETRYING ? source->pump.backoff.retry_at : (vd_mono) { 0 };
	if (error)
		health->error = *error;
	vdi_lock_release(&source->lock);
	if (!is_change)
		return;
	if (state == VD_KUBE_WATCHING)
		vdi_log(source->env, VD_LOG_DEBUG, "kube", "%s: watching", source->name);
	vdi_kube_health_changed(source->member.kube, &source->member);
}

static void fill_health(struct vdi_kube_member *member, struct vd_kube_health *ret_health)
{
	struct vdi_kube_source *source = VDI_CONTAINER_OF(member, struct vdi_kube_source, member);

	vdi_lock_acquire(&source->lock);
	*ret_health = source->health;
	vdi_lock_release(&source->lock);
}

/* ---- Close ---- */

static void fail_calls(struct vdi_kube_calls *calls, const struct vd_error *error)
{
	struct vdi_kube_call *call;

	while ((call = TAILQ_FIRST(calls)) != NULL) {
		TAILQ_REMOVE(calls, call, node);
		call->fail(call, error->code, error);
		call->free(call);
	}
}

static void end_parts(struct vdi_kube_source *source)
{
	struct vd_error	      error = { 0 };
	struct vdi_kube_calls calls = TAILQ_HEAD_INITIALIZER(calls);

	(void) vd_error_set(&error, VD_CLOSED, "the store was closed");
	vdi_kube_progress_end(source);
	vdi_kube_pump_end(source);
	vdi_kube_streams_end(source, &error);
	fail_calls(&source->started, &error);
	vdi_kube_reads_end(source);
	vdi_lock_acquire(&source->lock);
	TAILQ_CONCAT(&calls, &source->calls, node);
	vdi_kube_watches_expire_locked(source, INT64_MAX, VD_CLOSED, error.message);
	vdi_lock_release(&source->lock);
	fail_calls(&calls, &error);
	source->has_ended = true;
}

static void finish_close(struct vdi_kube_source *source)
{
	void (*done)(void *arg) = source->close_done;
	void *arg = source->close_done_arg;

	vdi_kube_streams_close(source);
	vdi_kube_member_remove(&source->member);
	/* The client may be closed from now on; watches that are still open use only the env. */
	vdi_usage_release(source->usage);
	(void) vdi_usage_unref(source->usage);
	vdi_kube_source_unref(source);
	if (done)
		done(arg);
}

static void close_source(struct vd_store *store, void (*done)(void *arg), void *arg)
{
	struct vdi_kube_source *source = vdi_kube_source_of(store);

	if (atomic_exchange(&source->usage->is_closing, true))
		vdi_misuse("vd_store_close: the store of %s is closed already", source->name);
	vdi_lock_acquire(&source->lock);
	source->is_closing = source->is_closed = true;
	source->close_done = done;
	source->close_done_arg = arg;
	vdi_kube_member_wake(&source->member);
	vdi_lock_release(&source->lock);
}

static void shut_down(struct vd_store *store)
{
	struct vdi_kube_source *source = vdi_kube_source_of(store);

	vdi_lock_acquire(&source->lock);
	if (!source->is_closing)
		vdi_kube_member_wake(&source->member);
	source->is_closing = true;
	vdi_lock_release(&source->lock);
}

/* ---- Run ---- */

static void start_calls(struct vdi_kube_source *source)
{
	struct vdi_kube_calls calls = TAILQ_HEAD_INITIALIZER(calls);
	struct vdi_kube_call *call;

	vdi_lock_acquire(&source->lock);
	TAILQ_CONCAT(&calls, &source->calls, node);
	vdi_lock_release(&source->lock);
	while ((call = TAILQ_FIRST(&calls)) != NULL) {
		TAILQ_REMOVE(&calls, call, node);
		TAILQ_INSERT_TAIL(&source->started, call, node);
		call->start(call);
	}
}

static vd_mono run(struct vdi_kube_member *member, vd_mono now)
{
	struct vdi_kube_source *source = VDI_CONTAINER_OF(member, struct vdi_kube_source, member);
	vd_mono			due = VD_NEVER;
	bool			is_closing, is_closed;

	vdi_lock_acquire(&source->lock);
	is_closing = source->is_closing;
	is_closed = source->is_closed;
	vdi_lock_release(&source->lock);
	if (is_closing && !source->has_ended)
		end_parts(source);
	if (is_closed)
		finish_close(source);
	if (is_closing)
		return VD_NEVER;
	start_calls(source);
	due.ns = VDI_MIN(due.ns, vdi_kube_pump_run(source, now).ns);
	due.ns = VDI_MIN(due.ns, vdi_kube_streams_run(source, now).ns);
	due.ns = VDI_MIN(due.ns, vdi_kube_progress_run(source, now).ns);
	vdi_kube_asks_run(source);
	due.ns = VDI_MIN(due.ns, vdi_kube_fetches_run(&source->fetches, now).ns);
	return due;
}

/* ---- The store ---- */

static vd_status get_status(struct vd_store *store, struct vd_store_status *ret_status)
{
	struct vdi_kube_source *source = vdi_kube_source_of(store);

	vdi_lock_acquire(&source->lock);
	*ret_status = (struct vd_store_status) {
		.current = source->known,
		.compacted = -1,
		.size_bytes = -1,
		.key_count = -1,
		.progress = !source->has_no_progress,
		.remote = true,
		.unreachable = source->health.state == VD_KUBE_RETRYING,
		.id = source->id,
		.history = source->is_filled ? vdi_kube_ring_history(&source->ring) : 0,
	};
	vdi_lock_release(&source->lock);
	return VD_OK;
}

static vd_status no_compact(struct vd_store *store, vd_rev revision, bool physical, vd_done_fn done,
			    void *arg)
{
	return VD_UNSUPPORTED;
}
static vd_status no_grant(struct vd_store *store, int64_t id, int64_t ttl_s, vd_lease_fn done, void *arg)
{
	return VD_UNSUPPORTED;
}
static vd_status no_lease(struct vd_store *store, int64_t id, vd_lease_fn done, void *arg)
{
	return VD_UNSUPPORTED;
}
static vd_status no_revoke(struct vd_store *store, int64_t id, vd_done_fn done, void *arg)
{
	return VD_UNSUPPORTED;
}
static vd_status no_time_to_live(struct vd_store *store, int64_t id, bool keys, vd_lease_fn done, void *arg)
{
	return VD_UNSUPPORTED;
}

static const struct vd_store_ops ops = {
	.size = sizeof(struct vd_store_ops),
	.range = vdi_kube_source_range,
	.txn = vdi_kube_source_txn,
	.compact = no_compact,
	.lease_grant = no_grant,
	.lease_revoke = no_revoke,
	.lease_keep_alive = no_lease,
	.lease_time_to_live = no_time_to_live,
	.watch = vdi_kube_source_watch,
	.watch_next = vdi_kube_source_watch_next,
	.watch_progress = vdi_kube_source_watch_progress,
	.watch_close = vdi_kube_source_watch_close,
	.status = get_status,
	.close = close_source,
	.stream = vdi_kube_source_stream,
	.stream_next = vdi_kube_source_stream_next,
	.stream_close = vdi_kube_source_stream_close,
	.shutdown = shut_down,
};

/* ---- Open ---- */

static bool is_text(const char *text)
{
	return text && *text && strlen(text) <= TEXT_MAX && strchr(text, '/') == NULL;
}

static bool is_short(struct vd_bytes text)
{
	return text.size <= 8 * TEXT_MAX && (text.size == 0 || memchr(text.data, 0, text.size) == NULL);
}

static vd_status check(const struct vd_kube_resource *resource, const struct vd_kube_scope *scope,
		       const char *key_prefix, struct vd_error *reterr)
{
	const char *wrong = NULL;
	size_t	    size = strlen(key_prefix);

	if (resource->group && *resource->group && !is_text(resource->group))
		wrong = "resource.group";
	else if (!is_text(resource->version))
		wrong = "resource.version (vd_kube_find returns it)";
	else if (!is_text(resource->plural))
		wrong = "resource.plural";
	else if (size == 0 || key_prefix[size - 1] != '/' || size > TEXT_MAX)
		wrong = "key_prefix, which must end with '/',";
	else if (!is_short(scope->label_selector) || !is_short(scope->field_selector))
		wrong = "a selector of the scope";
	else if (!is_short(scope->namespace_name) ||
		 (scope->namespace_name.size && resource->cluster_scoped) ||
		 (scope->namespace_name.size &&
		  memchr(scope->namespace_name.data, '/', scope->namespace_name.size)))
		wrong = "scope.namespace_name";
	if (wrong)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "vd_store_open_kube: %s is missing, too long or invalid", wrong);
	return VD_OK;
}

static char *copy_bytes(struct vd_bytes bytes)
{
	return vdi_strndup(bytes.size ? bytes.data : "", bytes.size);
}

static char *make_selector(const struct vd_kube_scope *scope)
{
	char *labels = vdi_kube_escape(scope->label_selector), *fields, *selector = NULL;

	fields = vdi_kube_escape(scope->field_selector);
	if (labels && fields)
		selector = format_text("%s%s%s%s", *labels ? "&labelSelector=" : "", labels,
				       *fields ? "&fieldSelector=" : "", fields);
	vdi_free(labels);
	vdi_free(fields);
	return selector;
}

static vd_status copy_texts(struct vdi_kube_source *source, const struct vd_kube_resource *resource,
			    const struct vd_kube_scope *scope, const char *key_prefix)
{
	const char *group = resource->group ? resource->group : "";

	source->is_cluster_scoped = resource->cluster_scoped;
	source->plural = vdi_strdup(resource->plural);
	source->kind = resource->kind ? vdi_strdup(resource->kind) : NULL;
	source->name = format_text("%s%s%s", resource->plural, *group ? "." : "", group);
	source->api_version = format_text("%s%s%s", group, *group ? "/" : "", resource->version);
	source->root = format_text("/%s%s%s/%s", *group ? "apis" : "api", *group ? "/" : "", group,
				   resource->version);
	source->prefix = vdi_strdup(key_prefix);
	source->prefix_size = strlen(key_prefix);
	source->namespace_name = copy_bytes(scope->namespace_name);
	source->label_selector = copy_bytes(scope->label_selector);
	source->field_selector = copy_bytes(scope->field_selector);
	source->selector = make_selector(scope);
	if (source->plural && source->root)
		source->path = vdi_kube_source_path(source, scope->namespace_name, VD_BYTES_NONE);
	return source->plural && source->name && source->api_version && source->root && source->prefix &&
			       source->namespace_name && source->label_selector && source->field_selector &&
			       source->selector && source->path && (source->kind || resource->kind == NULL) ?
		       VD_OK :
		       VD_NOMEM;
}

static vd_status init(struct vdi_kube_source *source, struct vd_kube *kube,
		      const struct vd_kube_resource *resource, const struct vd_kube_scope *scope,
		      const char *key_prefix)
{
	struct vd_kube_health *health = &source->health;

	VDI_TRY(copy_texts(source, resource, scope, key_prefix));
	VDI_TRY(vdi_kube_reader_init(&source->objects));
	VDI_TRY(vdi_kube_event_reader_init(&source->events));
	VDI_TRY(vdi_kube_page_reader_init(&source->pages));
	VDI_TRY(vdi_metric_get(vdi_env_metrics(source->env), VDI_METRIC_KUBE_SOURCE_BYTES,
			       (const char *const[]) { source->name }, &source->bytes_metric));
	health->resource = source->name;
	health->namespace_name = vd_bytes_of(source->namespace_name);
	health->label_selector = vd_bytes_of(source->label_selector);
	health->field_selector = vd_bytes_of(source->field_selector);
	source->usage = vdi_usage_new(&(struct vdi_usage) {
		.kind = "store",
		.name = source->name,
		.closed_by = "vd_store_close",
		.watch_closed_by = "vd_store_watch_close",
		.env = source->env,
		.uses = { kube },
	});
	return source->usage ? VD_OK : VD_NOMEM;
}

static struct vdi_kube_source *new_source(struct vd_kube *kube)
{
	struct vdi_kube_source *source = VDI_NEW(struct vdi_kube_source);

	if (source == NULL)
		return NULL;
	source->base.ops = &ops;
	source->base.env = source->env = vdi_kube_env(kube);
	source->member.run = run;
	source->member.health = fill_health;
	atomic_init(&source->references, 1);
	vdi_lock_init(&source->lock, VDI_LOCK_STORE);
	vdi_kube_ring_init(&source->ring, VDI_KUBE_RING_BYTES_MIN, VDI_KUBE_RING_BYTES_MAX);
	TAILQ_INIT(&source->calls);
	TAILQ_INIT(&source->started);
	TAILQ_INIT(&source->asks_next);
	TAILQ_INIT(&source->asks_sent);
	source->log_limit.interval = VD_SECONDS(10);
	return source;
}

vd_status vd_store_open_kube(struct vd_kube *kube, const struct vd_kube_resource *resource,
			     const struct vd_kube_scope *scope, const char *key_prefix,
			     struct vd_store **ret_store, struct vd_error *reterr)
{
	static const struct vd_kube_scope everything;
	struct vdi_kube_source		 *source;
	vd_status			  status;

	VDI_REQUIRE(kube, reterr);
	VDI_REQUIRE(resource, reterr);
	VDI_REQUIRE(key_prefix, reterr);
	VDI_REQUIRE(ret_store, reterr);
	if (scope == NULL)
		scope = &everything;
	VDI_REQUIRE_BYTES(scope->namespace_name, reterr);
	VDI_REQUIRE_BYTES(scope->label_selector, reterr);
	VDI_REQUIRE_BYTES(scope->field_selector, reterr);
	VDI_TRY(check(resource, scope, key_prefix, reterr));
	source = new_source(kube);
	if (source == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	status = init(source, kube, resource, scope, key_prefix);
	if (status == VD_OK)
		status = vdi_kube_member_add(kube, &source->member);
	if (status != VD_OK) {
		(void) vdi_usage_unref(source->usage);
		vdi_kube_source_unref(source);
		return vd_error_set(reterr, status, "%s",
				    status == VD_CLOSED ? "the client is closing" : "out of memory");
	}
	*ret_store = &source->base;
	return VD_OK;
}
