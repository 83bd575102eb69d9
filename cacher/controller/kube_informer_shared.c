/* The parts are opened bottom up, and closed top down by a chain of callbacks: each calls close_next, which
 * closes the next part.
 *
 * A resource that the server no longer has: its store removes all objects and asks again at the same path. A
 * CRD that comes back in another version is not found there. Therefore the check asks discovery for removed
 * resources. If discovery has another version, and the local store was empty at two checks, so that all
 * handlers have been told, the users detach and look for the resource as at their start. */
#include <stdio.h>

#include "env.h"
#include "kube_discovery.h"
#include "kube_informer_state.h"

/* ---- Scopes ---- */

static bool copy_bytes(struct vd_bytes *copy, struct vd_bytes from)
{
	char *text = vdi_strndup(from.data ? from.data : "", from.size);

	*copy = (struct vd_bytes) { text, from.size };
	return text != NULL;
}

static void free_bytes(struct vd_bytes *bytes)
{
	vdi_free((char *) (uintptr_t) bytes->data);
	*bytes = VD_BYTES_NONE;
}

vd_status vdi_kube_scope_copy(struct vd_kube_scope *copy, const struct vd_kube_scope *scope)
{
	memset(copy, 0, sizeof *copy);
	if (copy_bytes(&copy->namespace_name, scope->namespace_name) &&
	    copy_bytes(&copy->label_selector, scope->label_selector) &&
	    copy_bytes(&copy->field_selector, scope->field_selector))
		return VD_OK;
	vdi_kube_scope_fini(copy);
	return VD_NOMEM;
}

void vdi_kube_scope_fini(struct vd_kube_scope *scope)
{
	free_bytes(&scope->namespace_name);
	free_bytes(&scope->label_selector);
	free_bytes(&scope->field_selector);
}

bool vdi_kube_scope_equal(const struct vd_kube_scope *a, const struct vd_kube_scope *b)
{
	return vd_bytes_equal(a->namespace_name, b->namespace_name) &&
	       vd_bytes_equal(a->label_selector, b->label_selector) &&
	       vd_bytes_equal(a->field_selector, b->field_selector);
}

/* ---- Open and close ---- */

static void shared_free(struct vdi_kube_shared *shared)
{
	vdi_free(shared->group);
	vdi_free(shared->version);
	vdi_free(shared->plural);
	vdi_kube_scope_fini(&shared->scope);
	vdi_free(shared);
}

static void close_next(void *arg);

static void on_store_closed(void *arg)
{
	struct vdi_kube_shared	*shared = arg;
	struct vd_kube_informer *last_user = shared->last_user;

	shared_free(shared);
	vdi_kube_informers_queue(last_user, &last_user->has_ended);
}

/* On any thread. */
static void close_next(void *arg)
{
	struct vdi_kube_shared *shared = arg;
	struct vd_informer     *informer = shared->informer;
	struct vd_cacher       *cacher = shared->cacher;

	if (informer) {
		shared->informer = NULL;
		vd_informer_close(informer, close_next, shared);
	} else if (cacher) {
		shared->cacher = NULL;
		vd_cacher_close(cacher, close_next, shared);
	} else {
		shared->codec = vd_codec_free(shared->codec);
		vd_store_close(shared->store, on_store_closed, shared);
	}
}

bool vdi_kube_shared_close(struct vdi_kube_shared *shared, struct vd_kube_informer *last_user)
{
	if (!LIST_EMPTY(&shared->users))
		return false;
	LIST_REMOVE(shared, node);
	shared->last_user = last_user;
	vd_store_shutdown(shared->store);
	close_next(shared);
	return true;
}

/* Writes "deployments.apps"; core: "pods" and a suffix. */
static void describe(const struct vdi_kube_shared *shared, const char *core_suffix, char *text, size_t size)
{
	snprintf(text, size, "%s%s%s", shared->plural, *shared->group ? "." : core_suffix, shared->group);
}

static vd_status open_cacher(struct vdi_kube_shared *shared, const char *prefix, struct vd_error *reterr)
{
	struct vd_cacher_options   options = VD_CACHER_OPTIONS_INIT;
	struct vd_informer_options informer = VD_INFORMER_OPTIONS_INIT;
	char			   name[520];

	describe(shared, "", name, sizeof name);
	options.resource = name;
	options.group = shared->group;
	options.key_prefix = prefix;
	options.cluster_scoped = shared->cluster_scoped;
	options.history_bytes = VDI_KUBE_INFORMER_HISTORY_BYTES;
	options.skip_undecodable = true;
	options.no_backfill = true;
	options.consistency_interval = (vd_dur) { 0 }; /* a comparison would list everything again */
	VDI_TRY(vd_codec_json_new(NULL, 0, &shared->codec, reterr));
	options.codec = shared->codec;
	VDI_TRY(vd_cacher_new(vdi_kube_env(shared->informers->kube), shared->store, &options, &shared->cacher,
			      reterr));
	return vd_informer_open(shared->cacher, &informer, &shared->informer, reterr);
}

static vd_status copy_resource(struct vdi_kube_shared *shared, const struct vd_kube_resource *resource,
			       const struct vd_kube_scope *scope)
{
	shared->group = vdi_strdup(resource->group ? resource->group : "");
	shared->version = vdi_strdup(resource->version);
	shared->plural = vdi_strdup(resource->plural);
	shared->cluster_scoped = resource->cluster_scoped;
	if (shared->group == NULL || shared->version == NULL || shared->plural == NULL)
		return VD_NOMEM;
	return vdi_kube_scope_copy(&shared->scope, scope);
}

/* An error leaves a store, and parts above it, or nothing. */
static vd_status open_shared(struct vdi_kube_informers *informers, const struct vd_kube_resource *resource,
			     const struct vd_kube_scope *scope, struct vdi_kube_shared **ret_shared,
			     struct vd_error *reterr)
{
	struct vdi_kube_shared *shared = VDI_NEW(struct vdi_kube_shared);
	char			prefix[600];
	vd_status		status;

	if (shared == NULL)
		return VD_NOMEM;
	shared->informers = informers;
	LIST_INIT(&shared->users);
	status = copy_resource(shared, resource, scope);
	if (status == VD_OK) {
		snprintf(prefix, sizeof prefix, "/registry/%s%s%s/", shared->group, *shared->group ? "/" : "",
			 shared->plural);
		status = informers->store_open(informers->kube, resource, scope, prefix, &shared->store,
					       reterr);
	}
	if (status != VD_OK) {
		shared_free(shared);
		return status;
	}
	LIST_INSERT_HEAD(&informers->shared, shared, node);
	*ret_shared = shared;
	return open_cacher(shared, prefix, reterr);
}

vd_status vdi_kube_shared_get(struct vdi_kube_informers *informers, const struct vd_kube_resource *resource,
			      const struct vd_kube_scope *scope, struct vdi_kube_shared **ret_shared,
			      struct vd_error *reterr)
{
	struct vdi_kube_shared *shared;
	const char	       *group = resource->group ? resource->group : "";

	LIST_FOREACH(shared, &informers->shared, node)
	if (strcmp(shared->plural, resource->plural) == 0 && strcmp(shared->group, group) == 0 &&
	    strcmp(shared->version, resource->version) == 0 && vdi_kube_scope_equal(&shared->scope, scope)) {
		*ret_shared = shared;
		return VD_OK;
	}
	*ret_shared = NULL;
	return open_shared(informers, resource, scope, ret_shared, reterr);
}

/* ---- Removed resources ---- */

/* A find of a removed resource. */
struct check {
	struct vdi_kube_informers *informers;
	char			  *group, *plural; /* owned */
};

static void check_free(struct check *check)
{
	vdi_free(check->group);
	vdi_free(check->plural);
	vdi_free(check);
}

static void move_users(struct vdi_kube_shared *shared)
{
	struct vd_kube_informer *user;

	LIST_FOREACH(user, &shared->users, user_node)
	vdi_kube_informers_queue(user, &user->is_moving);
}

/* The client's actor; the list is the client's, so it exists. */
static void on_checked(void *arg, vd_status status, const struct vd_kube_resource *resource,
		       const struct vd_error *error)
{
	struct check	       *check = arg;
	struct vdi_kube_shared *shared;

	(void) error;
	LIST_FOREACH(shared, &check->informers->shared, node)
	{
		if (status != VD_OK || !shared->is_removed || strcmp(shared->plural, check->plural) != 0 ||
		    strcmp(shared->group, check->group) != 0)
			continue;
		if (strcmp(shared->version, resource->version) == 0 &&
		    shared->cluster_scoped == resource->cluster_scoped)
			continue;
		if (shared->was_empty && vd_informer_count(shared->informer) == 0)
			move_users(shared);
		shared->was_empty = vd_informer_count(shared->informer) == 0;
	}
	check_free(check);
}

/* If memory is short, the next check comes. */
static void check_shared(struct vdi_kube_shared *shared)
{
	struct check *check = VDI_NEW(struct check);
	char	      name[520];

	if (check == NULL)
		return;
	describe(shared, ".", name, sizeof name); /* "pods.": of the core group only */
	check->informers = shared->informers;
	check->group = vdi_strdup(shared->group);
	check->plural = vdi_strdup(shared->plural);
	if (check->group == NULL || check->plural == NULL ||
	    vdi_kube_find(shared->informers->kube, name, VDI_KUBE_FIND_FRESH, on_checked, check) != VD_OK)
		check_free(check);
}

static void mark_removed(void *arg, const struct vd_kube_health *health)
{
	struct vdi_kube_informers *informers = arg;
	struct vdi_kube_shared	  *shared;
	char			   name[520];

	if (health->resource == NULL || health->state != VD_KUBE_REMOVED)
		return;
	LIST_FOREACH(shared, &informers->shared, node)
	{
		const struct vd_kube_scope scope = { health->namespace_name, health->label_selector,
						     health->field_selector };

		describe(shared, "", name, sizeof name);
		if (strcmp(name, health->resource) == 0 && vdi_kube_scope_equal(&shared->scope, &scope))
			shared->is_removed = true;
	}
}

void vdi_kube_shared_check(struct vdi_kube_informers *informers)
{
	struct vdi_kube_shared *shared;

	LIST_FOREACH(shared, &informers->shared, node)
	shared->is_removed = false;
	vd_kube_health(informers->kube, mark_removed, informers);
	LIST_FOREACH(shared, &informers->shared, node)
	{
		if (!shared->is_removed)
			shared->was_empty = false;
		else
			check_shared(shared);
	}
}
