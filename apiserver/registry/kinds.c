#include "kinds.h"

#include "crd.h"
#include "definitions.h"
#include "env.h"
#include "kind_cache.h"
#include "read_defaults.h"
#include "wait.h"

#define RESOURCES_FILE_MAX (16u << 20)
#define POLL VD_MS(5)		    /* between checks of a cache that is filling */
#define RETRY VD_MS(100)	    /* after an allocation failed */
#define FILL_TIMEOUT VD_SECONDS(10) /* wait for caches that a reload made */

struct vdi_kind_waiter {
	struct vdi_kind_waiter *next;
	vd_rev			revision;
	vd_mono			due;
	vdi_kind_fn		done;
	void		       *arg;
	char			name[];
};

static vd_status load_file(struct vdi_resources *resources, const char *path, struct vd_error *reterr)
{
	struct vdi_out	text = VDI_OUT_INIT;
	struct vd_error inner = { .code = VD_OK };
	vd_status	status = vdi_out_read_file(&text, path, RESOURCES_FILE_MAX, &inner);

	if (status != VD_OK)
		status = vd_error_set(reterr, status, "%s%s", status == VD_INVALID ? "resources: " : "",
				      inner.message);
	else
		status = vdi_resources_load(resources, vdi_out_slice(&text), reterr);
	vdi_out_fini(&text);
	return status;
}

/* Drops all kinds but one. */
static vd_status keep_only(struct vdi_resources *resources, const char *only, struct vd_error *reterr)
{
	char   name[VDI_RESOURCE_NAME_MAX];
	size_t kept = 0;

	for (size_t i = 0; i < resources->count; i++) {
		if (strcmp(vdi_resource_name(resources->items[i], name), only) == 0)
			resources->items[kept++] = resources->items[i];
		else
			(void) vdi_resource_unref(resources->items[i]);
	}
	resources->count = kept;
	return kept ? VD_OK : vd_error_set(reterr, VD_INVALID, "resources: unknown kind %s", only);
}

/* Collects the kinds that the options name into an empty collection. The caller ends the collection, also if
 * this fails. */
static vd_status read_kinds(const struct vdi_kinds *kinds, struct vdi_resources *resources,
			    struct vd_error *reterr)
{
	vd_status status = vdi_resources_init(resources);

	if (status != VD_OK)
		return vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	if (kinds->host.options->resources_path)
		VDI_TRY(load_file(resources, kinds->host.options->resources_path, reterr));
	if (kinds->host.options->resources.size)
		VDI_TRY(vdi_resources_load(resources, kinds->host.options->resources, reterr));
	if (kinds->host.options->key_prefix)
		VDI_TRY(vdi_resources_set_root(resources, kinds->host.options->key_prefix, reterr));
	if (kinds->host.options->only)
		VDI_TRY(keep_only(resources, kinds->host.options->only, reterr));
	if (!kinds->host.options->read_only && vdi_resources_find(resources, VD_BYTES_NONE, vd_bytes_of("v1"),
								  vd_bytes_of("namespaces")) == NULL)
		return vd_error_set(reterr, VD_INVALID,
				    "resources: namespaces of the core group must stay at v1");
	return VD_OK;
}

/* Makes a new cache for resource. */
static vd_status make_cache(struct vdi_kinds *kinds, struct vdi_resource *resource, struct vd_error *reterr)
{
	struct vdi_kind_cache *cache;
	vd_status	       status = kinds->host.counts(kinds->host.arg, resource, &resource->counts);

	if (status != VD_OK)
		return vd_error_set(reterr, status, "metrics: %s", vd_status_sentence(status));
	VDI_TRY(vdi_kind_cache_new(kinds, resource, resource->fields, resource->field_count, &cache, reterr));
	vdi_kind_cache_bind(cache, resource);
	(void) vdi_kind_cache_unref(cache);
	return VD_OK;
}

static vd_status start(struct vdi_kinds *kinds, struct vdi_resources *resources, struct vd_error *reterr)
{
	VDI_TRY(read_kinds(kinds, resources, reterr));
	for (size_t i = 0; i < resources->count; i++)
		VDI_TRY(make_cache(kinds, resources->items[i], reterr));
	return vdi_resource_set_new(resources, &kinds->resource_set, reterr);
}

vd_status vdi_kinds_start(struct vdi_kinds *kinds, const struct vdi_kinds_host *host, struct vd_error *reterr)
{
	kinds->host = *host;
	kinds->patience = VDI_KIND_PATIENCE;
	return start(kinds, &kinds->declared, reterr);
}

struct vdi_resource_set *vdi_kinds_get(struct vdi_kinds *kinds)
{
	struct vdi_resource_set *resource_set;

	vdi_lock_acquire(kinds->host.lock);
	resource_set = vdi_resource_set_ref(kinds->resource_set);
	vdi_lock_release(kinds->host.lock);
	return resource_set;
}

/* Takes over fresh. */
static void publish(struct vdi_kinds *kinds, struct vdi_resource_set *fresh)
{
	struct vdi_resource_set *stale;

	vdi_lock_acquire(kinds->host.lock);
	stale = kinds->resource_set;
	kinds->resource_set = fresh;
	kinds->served_number++;
	kinds->host.about_to_publish_locked(kinds->host.arg);
	vdi_lock_release(kinds->host.lock);
	kinds->host.published(kinds->host.arg);
	(void) vdi_resource_set_unref(stale);
}

/* ---- Actor ---- */

void vdi_kinds_call_begin(struct vdi_kinds *kinds)
{
	vdi_lock_acquire(kinds->host.lock);
	kinds->call_count++;
	vdi_lock_release(kinds->host.lock);
}

void vdi_kinds_call_end(struct vdi_kinds *kinds)
{

	vdi_lock_acquire(kinds->host.lock);
	kinds->call_count--;
	vdi_kinds_wake_locked(kinds);
	vdi_condition_broadcast(kinds->host.changed);
	vdi_lock_release(kinds->host.lock);
}

void vdi_kinds_wake_locked(struct vdi_kinds *kinds)
{
	if (kinds->actor)
		vd_actor_wake(kinds->actor);
}

static void has_news(struct vdi_kinds *kinds, bool is_synced)
{
	vdi_lock_acquire(kinds->host.lock);
	kinds->has_news = true;
	kinds->is_synced |= is_synced;
	vdi_kinds_wake_locked(kinds);
	vdi_lock_release(kinds->host.lock);
}

static void added(void *arg, struct vd_object *object, bool initial)
{
	(void) object;
	(void) initial;
	has_news(arg, false);
}

static void updated(void *arg, struct vd_object *old_object, struct vd_object *object)
{
	(void) old_object;
	(void) object;
	has_news(arg, false);
}

static void removed(void *arg, struct vd_object *last_state, bool unknown_final_state)
{
	(void) last_state;
	(void) unknown_final_state;
	has_news(arg, false);
}

static void synced(void *arg)
{
	has_news(arg, true);
}

/* Replaces the declared kinds. */
static void take_reloaded(struct vdi_kinds *kinds, struct vdi_resources *reloaded)
{
	struct vdi_resources stale = kinds->declared;

	kinds->declared = *reloaded;
	vdi_resources_fini(&stale);
	vdi_free(reloaded);
	if (kinds->definitions)
		vdi_definitions_validate_again(kinds->definitions);
	kinds->is_published = false;
}

static vd_status make_set(struct vdi_kinds *kinds)
{
	struct vdi_resources	 resources = { 0 };
	struct vdi_resource_set *fresh;
	vd_status		 status = vdi_resources_copy(&resources, &kinds->declared);

	if (status == VD_OK && kinds->definitions)
		status = vdi_definitions_collect(kinds->definitions, &resources);
	if (status == VD_OK)
		status = vdi_resource_set_new(&resources, &fresh, NULL);
	vdi_resources_fini(&resources);
	if (status != VD_OK)
		return status;
	publish(kinds, fresh);
	kinds->is_published = true;
	return VD_OK;
}

/* ---- Requests that wait for a kind ---- */

vd_status vdi_kinds_await(struct vdi_kinds *kinds, struct vd_bytes definition, vd_rev revision,
			  vdi_kind_fn done, void *arg)
{
	struct vdi_kind_waiter *waiter = vdi_alloc(sizeof *waiter + definition.size + 1);
	bool			is_open;

	if (waiter == NULL)
		return VD_NOMEM;
	*waiter = (struct vdi_kind_waiter) { .revision = revision,
					     .due = vd_mono_add(vd_env_now(kinds->host.env), kinds->patience),
					     .done = done,
					     .arg = arg };
	memcpy(waiter->name, definition.data, definition.size);
	waiter->name[definition.size] = 0;
	vdi_lock_acquire(kinds->host.lock);
	is_open = kinds->actor != NULL;
	if (is_open) {
		waiter->next = kinds->waiters;
		kinds->waiters = waiter;
		vdi_kinds_wake_locked(kinds);
	}
	vdi_lock_release(kinds->host.lock);
	if (!is_open) {
		vdi_free(waiter);
		done(arg, VD_CLOSED);
	}
	return VD_OK;
}

static void notify_waiter(struct vdi_kind_waiter *waiter, vd_status status)
{
	waiter->done(waiter->arg, status);
	vdi_free(waiter);
}

/* Returns when to check again. The informer wakes this actor for each event, but reports the event's revision
 * only a little later, so this polls. */
static vd_mono notify_waiters(struct vdi_kinds *kinds)
{
	struct vdi_kind_waiter *waiter, *next, *kept = NULL, **last = &kept;
	vd_mono			now = vd_env_now(kinds->host.env);

	vdi_lock_acquire(kinds->host.lock);
	waiter = kinds->waiters;
	kinds->waiters = NULL;
	vdi_lock_release(kinds->host.lock);
	for (; waiter; waiter = next) {
		next = waiter->next;
		if (kinds->is_published && waiter->revision <= kinds->looked &&
		    vdi_definitions_are_served(kinds->definitions, waiter->name)) {
			notify_waiter(waiter, VD_OK);
		} else if (waiter->due.ns <= now.ns) {
			notify_waiter(waiter, VD_TIMEOUT);
		} else {
			*last = waiter;
			last = &waiter->next;
		}
	}
	*last = NULL;
	if (kept == NULL)
		return VD_NEVER;
	vdi_lock_acquire(kinds->host.lock);
	*last = kinds->waiters;
	kinds->waiters = kept;
	vdi_lock_release(kinds->host.lock);
	return vd_mono_add(now, POLL);
}

static void notify_settled(struct vdi_kinds *kinds, bool is_synced, uint64_t reload_count)
{

	vdi_lock_acquire(kinds->host.lock);
	kinds->is_settled |= is_synced && !kinds->has_news;
	kinds->reload_count = VDI_MAX(kinds->reload_count, reload_count);
	vdi_condition_broadcast(kinds->host.changed);
	vdi_lock_release(kinds->host.lock);
}

/* news: informer with unread changes; NULL: none. Returns when to run again; VD_NEVER: when woken. */
static vd_mono work(struct vdi_kinds *kinds, struct vd_informer *news, vd_rev seen, bool is_synced)
{
	vd_mono	  now = vd_env_now(kinds->host.env);
	vd_status status = VD_OK;
	bool	  is_changed = false;

	if (news && vdi_definitions_update(kinds->definitions, news) != VD_OK) {
		has_news(kinds, false);
		return vd_mono_add(now, RETRY);
	}
	kinds->looked = VDI_MAX(kinds->looked, seen);
	if (kinds->definitions)
		status = vdi_definitions_prepare(kinds->definitions, &kinds->declared, &is_changed);
	kinds->is_published &= !is_changed;
	if (!kinds->is_published && make_set(kinds) != VD_OK)
		status = VD_NOMEM;
	if (kinds->is_published &&
	    kinds->host.is_taken(kinds->host.arg, atomic_load(&kinds->served_number))) {
		vd_mono due = kinds->definitions ? vdi_definitions_settle(kinds->definitions) : VD_NEVER;

		notify_settled(kinds, is_synced && status == VD_OK, kinds->taken_count);
		if (status == VD_OK)
			return due;
	}
	return status == VD_OK ? VD_NEVER : vd_mono_add(now, status == VD_NOT_READY ? POLL : RETRY);
}

static void run(void *arg)
{
	struct vdi_kinds     *kinds = arg;
	struct vdi_resources *reloaded;
	struct vd_informer   *informer;
	struct vd_actor	     *actor;
	bool		      look, is_synced;
	vd_rev		      seen;
	vd_mono		      due, due_for_waiters;

	/* Read the revision before has_news, because the informer sets has_news before it raises the
	 * revision. */
	vdi_lock_acquire(kinds->host.lock);
	informer = kinds->informer;
	vdi_lock_release(kinds->host.lock);
	seen = informer ? vd_informer_revision(informer) : 0;
	vdi_lock_acquire(kinds->host.lock);
	look = kinds->has_news && kinds->definitions && informer;
	kinds->has_news = kinds->has_news && !look;
	is_synced = kinds->is_synced || kinds->definitions == NULL;
	reloaded = kinds->reloaded;
	kinds->reloaded = NULL;
	vdi_lock_release(kinds->host.lock);
	if (reloaded) {
		take_reloaded(kinds, reloaded);
		kinds->taken_count++;
	}
	due = work(kinds, look ? informer : NULL, seen, is_synced);
	due_for_waiters = notify_waiters(kinds);
	due.ns = VDI_MIN(due.ns, due_for_waiters.ns);
	vdi_lock_acquire(kinds->host.lock);
	actor = kinds->actor;
	if (actor)
		vd_actor_set_timer(actor, due);
	vdi_lock_release(kinds->host.lock);
}

static vd_status watch_definitions(struct vdi_kinds *kinds, struct vd_error *reterr)
{
	const struct vd_informer_handler handler = {
		.add = added, .update = updated, .remove = removed, .synced = synced, .arg = kinds
	};
	const struct vdi_resource *resource =
		vdi_resources_find(&kinds->declared, vd_bytes_of("apiextensions.k8s.io"), vd_bytes_of("v1"),
				   vd_bytes_of("customresourcedefinitions"));
	struct vd_informer *informer;

	VDI_TRY(vd_informer_new(resource->cacher, VD_BYTES_NONE, VD_BYTES_NONE, VD_BYTES_NONE, &handler,
				&informer, reterr));
	vdi_lock_acquire(kinds->host.lock);
	kinds->informer = informer;
	vdi_kinds_wake_locked(kinds);
	vdi_lock_release(kinds->host.lock);
	return VD_OK;
}

vd_status vdi_kinds_run(struct vdi_kinds *kinds, struct vd_error *reterr)
{
	struct vd_actor_options options = { .name = "kinds", .run = run, .arg = kinds };
	struct vd_actor	       *actor;
	vd_status		status = VD_OK;

	if (kinds->host.options->only == NULL)
		status = vdi_definitions_new(kinds, &kinds->definitions);
	kinds->is_published = true;
	if (status == VD_OK)
		status = vd_actor_new(kinds->host.env, &options, &actor);
	if (status != VD_OK)
		return vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	vdi_lock_acquire(kinds->host.lock);
	kinds->actor = actor;
	vdi_lock_release(kinds->host.lock);
	vd_actor_wake(actor);
	return kinds->definitions ? watch_definitions(kinds, reterr) : VD_OK;
}

vd_status vdi_kinds_wait(struct vdi_kinds *kinds, vd_mono due, struct vd_error *reterr)
{
	bool is_settled;

	vdi_lock_acquire(kinds->host.lock);
	while (!kinds->is_settled)
		if (!vdi_condition_wait_until(kinds->host.changed, kinds->host.lock, due))
			break;
	is_settled = kinds->is_settled;
	vdi_lock_release(kinds->host.lock);
	if (is_settled)
		return VD_OK;
	return vd_error_set(reterr, VD_TIMEOUT,
			    "the resources of some CustomResourceDefinitions are not served yet");
}

/* ---- Reload ---- */

static bool same_fields(const struct vdi_resource *a, const struct vdi_resource *b)
{
	if (a->field_count != b->field_count)
		return false;
	for (size_t i = 0; i < a->field_count; i++) {
		const char *x = a->fields[i].default_value, *y = b->fields[i].default_value;

		if (strcmp(a->fields[i].name, b->fields[i].name) != 0 ||
		    strcmp(a->fields[i].json_path, b->fields[i].json_path) != 0 ||
		    strcmp(x ? x : "", y ? y : "") != 0)
			return false;
	}
	return true;
}

/* True if one cache can serve both, so that watches continue. */
static bool can_share(const struct vdi_resource *a, const struct vdi_resource *b)
{
	const char *x = a->trigger, *y = b->trigger;

	return strcmp(a->key_prefix, b->key_prefix) == 0 && a->namespaced == b->namespaced &&
	       a->history_bytes == b->history_bytes && strcmp(a->version, b->version) == 0 &&
	       strcmp(x ? x : "", y ? y : "") == 0 &&
	       vdi_read_defaults_key(a->defaults) == vdi_read_defaults_key(b->defaults) && same_fields(a, b);
}

/* True if both have the same columns, so that watches share table frames. */
static bool same_columns(const struct vdi_resource *a, const struct vdi_resource *b)
{
	bool is_same = a->column_count == b->column_count;

	for (size_t i = 0; i < a->column_count && is_same; i++)
		is_same = strcmp(a->columns[i].path, b->columns[i].path) == 0 &&
			  a->columns[i].cell == b->columns[i].cell &&
			  strcmp(a->columns[i].type, b->columns[i].type) == 0;
	return is_same;
}

static struct vdi_resource *find_same(const struct vdi_resources *resources,
				      const struct vdi_resource	 *wanted)
{
	return vdi_resources_find(resources, vd_bytes_of(wanted->group), vd_bytes_of(wanted->version),
				  vd_bytes_of(wanted->plural));
}

/* Kinds that existed before keep their caches; the others get new ones, most of which are filled when this
 * returns. */
static vd_status prepare_reloaded(struct vdi_kinds *kinds, struct vdi_resources *resources,
				  const struct vdi_resources *before, struct vd_error *reterr)
{
	vd_mono due = vd_mono_add(vd_env_now(kinds->host.env), FILL_TIMEOUT);

	for (size_t i = 0; i < resources->count; i++) {
		struct vdi_resource *resource = resources->items[i], *old = find_same(before, resource);

		if (old && old->cache && !old->is_custom && can_share(old, resource)) {
			resource->counts = old->counts;
			resource->has_own_tables = old->has_own_tables || !same_columns(old, resource);
			vdi_kind_cache_bind(old->cache, resource);
			continue;
		}
		if (old && old->built_in && vdi_crd_is(old))
			return vd_error_set(reterr, VD_INVALID,
					    "resources: customresourcedefinitions can be another kind only "
					    "at the start of the server");
		VDI_TRY(make_cache(kinds, resource, reterr));
	}
	for (size_t i = 0; i < resources->count; i++) {
		vd_dur left = vd_mono_since(due, vd_env_now(kinds->host.env));

		if (left.ns <= 0 || vd_cacher_ready_wait(resources->items[i]->cacher, left, NULL) != VD_OK)
			break; /* serve it anyway: clients are asked to retry */
	}
	return VD_OK;
}

/* Ends the caches of kinds that are no longer declared, and so their watches. */
static void end_undeclared(const struct vdi_resources *before, const struct vdi_resources *now)
{
	for (size_t i = 0; i < before->count; i++) {
		bool is_used = before->items[i]->is_custom;

		for (size_t j = 0; j < now->count && !is_used; j++)
			is_used = now->items[j]->cache == before->items[i]->cache;
		if (!is_used)
			vdi_kind_cache_end(before->items[i]->cache);
	}
}

static vd_status hand_over(struct vdi_kinds *kinds, struct vdi_resources *resources, struct vd_error *reterr)
{
	struct vdi_resources *reloaded = VDI_NEW(struct vdi_resources);
	uint64_t	      wanted;
	bool		      is_open;

	if (reloaded == NULL || vdi_resources_copy(reloaded, resources) != VD_OK) {
		vdi_free(reloaded);
		return vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
	}
	vdi_lock_acquire(kinds->host.lock);
	is_open = kinds->actor != NULL;
	wanted = kinds->reload_count + 1;
	if (is_open) {
		kinds->reloaded = reloaded;
		vdi_kinds_wake_locked(kinds);
	}
	while (kinds->actor && kinds->reload_count < wanted)
		(void) vdi_condition_wait_until(kinds->host.changed, kinds->host.lock, VD_NEVER);
	vdi_lock_release(kinds->host.lock);
	if (is_open)
		return VD_OK;
	vdi_resources_fini(reloaded);
	vdi_free(reloaded);
	return vd_error_set(reterr, VD_CLOSED, "%s", vd_status_sentence(VD_CLOSED));
}

vd_status vdi_kinds_reload(struct vdi_kinds *kinds, struct vd_error *reterr)
{
	struct vdi_resources	 resources = { 0 };
	struct vdi_resource_set *resource_set = vdi_kinds_get(kinds);
	vd_status		 status;

	status = resource_set ? read_kinds(kinds, &resources, reterr) :
				vd_error_set(reterr, VD_CLOSED, "%s", vd_status_sentence(VD_CLOSED));
	if (status == VD_OK)
		status = prepare_reloaded(kinds, &resources, &resource_set->resources, reterr);
	if (status == VD_OK)
		status = hand_over(kinds, &resources, reterr);
	if (status == VD_OK)
		end_undeclared(&resource_set->resources, &resources);
	vdi_resources_fini(&resources);
	(void) vdi_resource_set_unref(resource_set);
	return status;
}

/* ---- End ---- */

static void dismiss_waiters(struct vdi_kinds *kinds)
{
	struct vdi_kind_waiter *waiter, *next;

	vdi_lock_acquire(kinds->host.lock);
	waiter = kinds->waiters;
	kinds->waiters = NULL;
	vdi_lock_release(kinds->host.lock);
	for (; waiter; waiter = next) {
		next = waiter->next;
		notify_waiter(waiter, VD_CLOSED);
	}
}

static void stop_actor(struct vdi_kinds *kinds)
{
	struct vd_actor *actor;
	struct vdi_wait	 wait;

	vdi_lock_acquire(kinds->host.lock);
	actor = kinds->actor;
	kinds->actor = NULL; /* no request can begin to wait any more */
	vdi_condition_broadcast(kinds->host.changed);
	vdi_lock_release(kinds->host.lock);
	if (actor) {
		vdi_wait_init(&wait, kinds->host.env);
		vd_actor_close(actor, vdi_wait_signal_arg, &wait);
		vdi_wait_wait(&wait);
		vdi_wait_fini(&wait);
	}
	dismiss_waiters(kinds);
	kinds->informer = vd_informer_close_wait(kinds->informer); /* no thread reads its store any more */
	vdi_definitions_end_retired(kinds->definitions);
}

void vdi_kinds_halt(struct vdi_kinds *kinds)
{
	if (kinds->host.env)
		stop_actor(kinds);
}

void vdi_kinds_stop(struct vdi_kinds *kinds)
{
	struct vdi_resource_set *last;

	if (kinds->host.env == NULL) /* never started */
		return;
	last = vdi_kinds_get(kinds);
	stop_actor(kinds);
	/* Calls that still wait in a cache are completed with an error. */
	for (size_t i = 0; last && i < last->resources.count; i++)
		vdi_kind_cache_end(last->resources.items[i]->cache);
	vdi_definitions_end(kinds->definitions);
	(void) vdi_resource_set_unref(last);
	publish(kinds, NULL);
	vdi_lock_acquire(kinds->host.lock);
	while (kinds->call_count > 0)
		(void) vdi_condition_wait_until(kinds->host.changed, kinds->host.lock, VD_NEVER);
	vdi_lock_release(kinds->host.lock);
	kinds->definitions = vdi_definitions_free(kinds->definitions);
	vdi_resources_fini(&kinds->declared);
	if (kinds->reloaded) {
		vdi_resources_fini(kinds->reloaded);
		vdi_free(kinds->reloaded);
	}
	vdi_lock_acquire(kinds->host.lock);
	while (kinds->cache_count > 0)
		(void) vdi_condition_wait_until(kinds->host.changed, kinds->host.lock, VD_NEVER);
	vdi_lock_release(kinds->host.lock);
}
