/* Each call has a struct that passes through these steps: plan -> (current revision) -> (fresh wait) ->
 * snapshot -> done. It continues with pages of the store where Kubernetes' rules require that. Calls that do
 * not wait finish on the caller's thread. */
#include "delegator.h"

#include "cache_list.h"
#include "cacher.h"
#include "continue_token.h"
#include "env.h"
#include "key_range.h"
#include "wait.h"

/* ---- The plan of a list ---- */

vd_status vdi_list_plan_make(const struct vd_list_options *options, vd_rev token_revision, bool is_recursive,
			     struct vdi_list_plan *ret_plan, struct vd_error *reterr)
{
	struct vdi_list_plan plan = { .is_recursive = is_recursive,
				      .revision = 0,
				      .limit = VDI_MAX(options->limit, 0) };

	if (options->revision < VD_REVISION_UNSET)
		return vd_error_set(reterr, VD_BAD_REQUEST, "invalid resource version: %lld",
				    (long long) options->revision);
	if (token_revision && options->revision > 0)
		return vd_error_set(reterr, VD_BAD_REQUEST,
				    "specifying resource version is not allowed when using continue");
	if (options->match != VD_MATCH_UNSET && token_revision)
		return vd_error_set(reterr, VD_INVALID,
				    "resourceVersionMatch is forbidden when continue is provided");
	if (options->match != VD_MATCH_UNSET && options->revision == VD_REVISION_UNSET)
		return vd_error_set(reterr, VD_INVALID,
				    "resourceVersionMatch is forbidden unless resourceVersion is provided");
	if (options->match == VD_MATCH_EXACT && options->revision == VD_REVISION_ANY)
		return vd_error_set(reterr, VD_INVALID,
				    "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
	plan.store_limit = plan.limit;
	if (token_revision > 0) {
		plan.is_exact = true;
		plan.revision = token_revision;
	} else if (token_revision < 0 || options->revision == VD_REVISION_UNSET) {
		plan.is_consistent = true;
	} else {
		plan.revision = options->revision;
		/* The legacy rule: a limit and a revision without a match mean exactly that revision. */
		plan.is_exact = options->match == VD_MATCH_EXACT ||
				(options->match == VD_MATCH_UNSET && options->limit > 0 &&
				 options->revision > 0 && is_recursive);
		if (options->revision == VD_REVISION_ANY)
			plan.limit = 0; /* "0" accepts any state; the limit is ignored, as upstream does */
	}
	*ret_plan = plan;
	return VD_OK;
}

enum vdi_list_source vdi_list_source_of(const struct vdi_list_plan *plan, vd_rev cache_revision,
					bool has_progress, bool has_revision)
{
	if (plan->is_exact) {
		if (!plan->is_recursive)
			return VDI_LIST_FROM_STORE;
		if (plan->revision > cache_revision)
			return has_progress ? VDI_LIST_FROM_CACHE : VDI_LIST_FROM_STORE;
		return has_revision ? VDI_LIST_FROM_CACHE : VDI_LIST_FROM_STORE;
	}
	if (plan->is_consistent)
		return has_progress ? VDI_LIST_FROM_CACHE : VDI_LIST_FROM_STORE;
	return VDI_LIST_FROM_CACHE;
}

/* ---- An outstanding list ---- */

struct list_call {
	struct vdi_fresh_waiter waiter;
	struct vd_cacher       *cacher;
	struct vdi_predicate   *predicate;
	vd_mono			store_started; /* if reads_store */
	uint64_t		fetched;
	uint64_t		evaluated;
	struct vdi_list_plan	plan;
	vd_list_fn		done;
	void		       *arg;
	struct vd_list	       *page; /* items gathered from the store so far */
	vd_rev			page_revision;
	int64_t			page_size;
	int64_t			page_keys; /* keys up to and including the list's last item */
	bool			page_more;
	bool			is_single;
	bool			reads_store;
	bool			fell_back;
	bool			may_be_pending;
	struct vd_error		error;
	/* First key of the next page from the store, or of a continued list; owned; NULL: start of the
	 * scope. */
	char  *start;
	size_t start_size;
	size_t scope_size;
	char   scope[VDI_STORAGE_KEY_MAX]; /* the key, or the prefix of all keys */
};

static void free_call(struct list_call *call)
{
	vdi_predicate_unref(call->predicate);
	vd_list_free(call->page);
	vdi_free(call->start);
	vdi_free(call);
}

static struct vd_bytes scope_of(const struct list_call *call)
{
	return (struct vd_bytes) { call->scope, call->scope_size };
}

/* Counts a consistent read. `skipped`: the cache was not asked. */
static void count_consistent_read(const struct list_call *call, bool success)
{
	struct vdi_cacher_metrics *metrics = &call->cacher->metrics;

	if (call->fell_back)
		vdi_metric_add(success ? metrics->consistent_reads_fallback :
					 metrics->consistent_reads_failed_fallback,
			       1);
	else if (call->reads_store)
		vdi_metric_add(success ? metrics->consistent_reads_skipped :
					 metrics->consistent_reads_failed_skipped,
			       1);
	else
		vdi_metric_add(success ? metrics->consistent_reads : metrics->consistent_reads_failed, 1);
}

/* Ends every list, except those that fail immediately. */
static void answer(struct list_call *call, vd_status status, struct vd_list *list,
		   const struct vd_error *error)
{
	struct vd_cacher *cacher = call->cacher;
	vd_list_fn	  done = call->done;
	void		 *arg = call->arg;
	struct vd_error	  copy;

	if (call->plan.is_consistent)
		count_consistent_read(call, status == VD_OK);
	if (call->reads_store)
		vdi_storage_metrics_list(cacher->storage_metrics, false, call->store_started, call->fetched,
					 call->evaluated, list ? list->object_count : 0);
	if (status != VD_OK) {
		if (error)
			copy = *error;
		else
			vd_error_set(&copy, status, "%s", vd_status_sentence(status));
	}
	if (list && call->predicate->has_shards)
		list->sharded = vdi_predicate_ref(call->predicate);
	free_call(call);
	done(arg, status, list, status == VD_OK ? NULL : &copy);
	vdi_cacher_call_end(cacher);
}

/* ---- From the store, page by page at one revision ---- */

static void read_page(struct list_call *call);

/* Fails the list if an object cannot be decoded, because a list must not be partial silently, unless the
 * resource leaves out undecodable objects. A list of one key always fails. */
static vd_status check_decoded(struct list_call *call, const struct vdi_storage_page *page,
			       const struct vd_error *error)
{
	if (page->undecodable_count == 0 || (call->cacher->options.skip_undecodable && !call->is_single))
		return VD_OK;
	for (size_t i = 0; page->objects[i]; i++)
		call->evaluated++;
	vd_error_set(&call->error, VD_UNDECODABLE, "failed to read one or more %s from the storage: %s",
		     call->cacher->options.resource, error ? error->message : "");
	return VD_UNDECODABLE;
}

static vd_status take_page(struct list_call *call, const struct vdi_storage_page *page, bool *ret_full)
{
	int64_t limit = call->plan.store_limit;

	call->page->candidate_count = VDI_MAX(call->page->candidate_count, page->count);
	for (size_t i = 0; i < page->object_count; i++) {
		call->evaluated++;
		call->page_keys++;
		if (page->objects[i] == NULL || !vdi_predicate_matches(call->predicate, page->objects[i]))
			continue;
		VDI_TRY(vdi_list_append(call->page, page->objects[i]));
		if (limit && call->page->object_count == (size_t) limit) {
			*ret_full = true;
			call->page_more = page->more || i + 1 < page->object_count;
			return VD_OK;
		}
	}
	return VD_OK;
}

static void finish_pages(struct list_call *call)
{
	struct vd_list *list = call->page;
	vd_status	status = VD_OK;

	list->revision = call->plan.is_exact ? call->plan.revision : call->page_revision;
	if (call->page_more) {
		if (vdi_predicate_takes_all_of_scope(call->predicate))
			list->remaining = list->candidate_count - call->page_keys;
		status = vdi_continue_token_encode_after(vd_object_key(list->objects[list->object_count - 1]),
							 scope_of(call), list->revision,
							 &list->continue_token, &call->error);
	}
	if (status != VD_OK) {
		answer(call, status, NULL, &call->error);
		return;
	}
	call->page = NULL;
	answer(call, VD_OK, list, NULL);
}

/* Continues after the last key read, whether its object could be decoded or not. */
static void read_on(struct list_call *call, struct vd_bytes last_key)
{
	char	       *before = call->start; /* the store may read it until the call returns */
	struct vd_bytes next;

	call->start = vdi_alloc(VD_KEY_SIZE_MAX + 1);
	if (call->start) {
		next = vdi_bytes_next_key(last_key, VD_KEY_SIZE_MAX, call->start);
		call->start_size = next.size;
		call->page_size = VDI_MIN(call->page_size * 2, (int64_t) 10000);
		read_page(call);
	} else {
		answer(call, VD_NOMEM, NULL, NULL);
	}
	vdi_free(before);
}

static void on_page(void *arg, vd_status status, const struct vdi_storage_page *page,
		    const struct vd_error *error)
{
	struct list_call *call = arg;
	bool		  is_full = false;

	if (status != VD_OK) {
		answer(call, status, NULL, error);
		return;
	}
	if (call->page_revision == 0)
		call->page_revision = page->revision;
	if (!call->plan.is_exact && page->revision < call->plan.revision) {
		vdi_too_large_revision(&call->error, call->plan.revision, page->revision);
		call->error.retry_after_s = 0;
		answer(call, VD_TOO_LARGE_REVISION, NULL, &call->error);
		return;
	}
	call->fetched += page->object_count;
	status = check_decoded(call, page, error);
	if (status == VD_OK)
		status = take_page(call, page, &is_full);
	if (status != VD_OK)
		answer(call, status, NULL, status == VD_UNDECODABLE ? &call->error : NULL);
	else if (is_full || !page->more)
		finish_pages(call);
	else
		read_on(call, page->last_key);
}

/* Reads a page. If the list is not of an exact revision, its first page sets the revision of the others. */
static void read_page(struct list_call *call)
{
	vd_rev	  revision = call->plan.is_exact ? call->plan.revision : call->page_revision;
	vd_status status = vdi_storage_page(call->cacher->storage, scope_of(call),
					    (struct vd_bytes) { call->start, call->start_size }, revision,
					    call->page_size, on_page, call);

	if (status != VD_OK)
		answer(call, status, NULL, NULL);
}

static void list_from_store(struct list_call *call)
{
	call->reads_store = true;
	call->store_started = vd_env_now(call->cacher->env);
	call->page = VDI_NEW(struct vd_list);
	if (call->page == NULL) {
		answer(call, VD_NOMEM, NULL, NULL);
		return;
	}
	call->page->remaining = -1;
	call->page_size =
		call->plan.store_limit > 0 ? VDI_MIN(call->plan.store_limit, (int64_t) 10000) : 10000;
	read_page(call);
}

/* ---- From the cache ---- */

/* Falls back to the store if it may be able to answer what the cache could not. */
static void cache_failed(struct list_call *call, vd_status status)
{
	if (status == VD_EXPIRED || (status == VD_TOO_LARGE_REVISION && call->plan.is_consistent)) {
		if (call->plan.is_consistent) {
			call->fell_back = true;
			call->plan.revision = 0;
		}
		list_from_store(call);
		return;
	}
	answer(call, status, NULL, &call->error);
}

static void snapshot_list(struct list_call *call)
{
	struct vdi_watch_cache	 *cache = &call->cacher->watch_cache;
	struct vdi_candidates	  candidates;
	struct vdi_btree_snapshot snapshot;
	struct vd_bytes		  start = { call->start, call->start_size };
	struct vd_list		 *list;
	vd_rev			  revision = call->plan.revision;
	vd_status		  status;

	if (call->plan.is_exact) {
		status = vdi_watch_cache_snapshot_at(cache, revision, &snapshot, &call->error);
		if (status != VD_OK) {
			cache_failed(call, status);
			return;
		}
		vdi_candidates_of(&snapshot, scope_of(call), call->is_single, start, &candidates);
	} else {
		vdi_lock_acquire(&cache->lock);
		revision = vdi_watch_cache_revision(cache);
		/* The next pages will request exactly this state. */
		if (call->plan.limit > 0)
			vdi_watch_cache_retain_newest_locked(cache);
		vdi_candidates_newest_locked(cache, call->predicate, scope_of(call), call->is_single, start,
					     &candidates);
		vdi_lock_release(&cache->lock);
	}
	vdi_cacher_metrics_count_list(&call->cacher->metrics, candidates.index, candidates.count);
	status = vdi_list_new(&candidates, call->predicate, call->plan.limit, scope_of(call), revision,
			      call->may_be_pending, &list, &call->error);
	if (status == VD_OK) {
		list->metrics = vdi_metrics_ref(vdi_env_metrics(call->cacher->env));
		list->returned_metric = call->cacher->metrics.list_returned;
		list->returned_storage_metric = call->cacher->metrics.list_returned_storage;
		answer(call, VD_OK, list, NULL);
	} else {
		answer(call, status, NULL, &call->error);
	}
}

static void list_is_fresh(struct vdi_fresh_waiter *waiter, vd_status status)
{
	struct list_call *call = VDI_CONTAINER_OF(waiter, struct list_call, waiter);
	struct vd_cacher *cacher = call->cacher;

	vdi_metric_observe_duration(cacher->metrics.read_wait,
				    vd_mono_since(vd_env_now(cacher->env), waiter->since));
	if (status == VD_OK) {
		snapshot_list(call);
		return;
	}
	if (status == VD_TOO_LARGE_REVISION)
		vdi_too_large_revision(&call->error, waiter->revision,
				       vdi_watch_cache_revision(&cacher->watch_cache));
	else
		vd_error_set(&call->error, status, "apiserver cacher is stopped");
	cache_failed(call, status);
}

static void list_when_fresh(struct list_call *call, vd_rev revision)
{
	call->waiter = (struct vdi_fresh_waiter) { .revision = revision, .done = list_is_fresh };
	if (vdi_watch_cache_wait(&call->cacher->watch_cache, &call->waiter))
		snapshot_list(call);
}

/* Continues a consistent list: the cache must reach the store's current revision. */
static void on_current_revision(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	struct list_call *call = arg;

	if (status != VD_OK)
		answer(call, status, NULL, error);
	else
		list_when_fresh(call, revision);
}

static void list_from_cache(struct list_call *call)
{
	vd_status status;

	if (!call->plan.is_consistent) {
		list_when_fresh(call, call->plan.revision);
		return;
	}
	status = vdi_storage_current_revision(call->cacher->storage, on_current_revision, call);
	if (status != VD_OK)
		answer(call, status, NULL, NULL);
}

/* ---- Entry points ---- */

static vd_status prepare_scope(struct list_call *call, const struct vd_list_options *options,
			       struct vd_error *reterr)
{
	struct vd_cacher     *cacher = call->cacher;
	struct vdi_predicate *predicate = call->predicate;
	struct vd_bytes	      scope;
	bool		      is_fitting;

	is_fitting = vdi_scope_key(vdi_cacher_prefix(cacher), cacher->options.cluster_scoped,
				   vdi_predicate_namespace(predicate), vdi_predicate_name(predicate),
				   call->scope, &scope, &call->is_single);
	/* Tokens are relative to the scope of the request, which is the same for all pages, not to the scope
	 * narrowed by the field selector. */
	if (is_fitting && !call->is_single && options->limit > 0)
		is_fitting = vdi_scope_key(vdi_cacher_prefix(cacher), cacher->options.cluster_scoped,
					   options->namespace_name, options->name, call->scope, &scope,
					   &call->is_single);
	if (!is_fitting)
		return vd_error_set(reterr, VD_BAD_REQUEST, "namespace and name are too long");
	call->scope_size = scope.size;
	return VD_OK;
}

static vd_status prepare(struct list_call *call, const struct vd_list_options *options,
			 struct vd_error *reterr)
{
	struct vd_cacher *cacher = call->cacher;
	/* A list of a single key has no pages. */
	bool is_single =
		options->name.size && (cacher->options.cluster_scoped || options->namespace_name.size);
	bool			     is_continued = options->continue_token.size > 0 && !is_single;
	struct vdi_predicate_options predicate = { options->namespace_name, options->name,
						   options->label_selector, options->field_selector,
						   !is_continued,	    cacher->options.cluster_scoped,
						   options->shard_selector };
	vd_rev			     token_revision = 0;

	VDI_TRY(vdi_predicate_new(cacher->codec, &predicate, &call->predicate, reterr));
	VDI_TRY(prepare_scope(call, options, reterr));
	if (is_continued)
		VDI_TRY(vdi_continue_token_decode(options->continue_token, scope_of(call), &call->start,
						  &call->start_size, &token_revision, reterr));
	return vdi_list_plan_make(options, token_revision, !call->is_single, &call->plan, reterr);
}

/* VD_AGAIN: see vdi_cacher_list_pending. */
static vd_status start_list(struct vd_cacher *cacher, const struct vd_list_options *options,
			    bool may_be_pending, bool may_read_store, vd_list_fn done, void *arg,
			    struct vd_error *reterr)
{
	struct list_call      *call;
	struct vd_store_status store = { 0 };
	bool		       has_progress;
	bool		       is_ready;
	bool		       is_of_store;
	vd_status	       status;

	VDI_REQUIRE(cacher, reterr);
	VDI_REQUIRE(done, reterr);
	VDI_REQUIRE_OPTIONS(options, reterr);
	VDI_REQUIRE_BYTES(options->continue_token, reterr);
	VDI_TRY(vdi_cacher_check_scope(cacher, options->namespace_name, options->name, reterr));
	if ((unsigned) options->match > VD_MATCH_EXACT || options->limit < 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "list: match is %d, limit %lld: a vd_revision_match, and 0 or more",
				    (int) options->match, (long long) options->limit);
	call = VDI_NEW(struct list_call);
	if (call == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory for a list");
	call->cacher = cacher;
	call->done = done;
	call->arg = arg;
	call->may_be_pending = may_be_pending;
	status = prepare(call, options, reterr);
	if (status != VD_OK) {
		free_call(call);
		return status;
	}
	if (!vdi_cacher_call_begin(cacher)) {
		free_call(call);
		return vd_error_set(reterr, VD_CLOSED, "apiserver cacher is stopped");
	}
	has_progress = vd_store_status_get(cacher->store, &store) == VD_OK && store.progress;
	is_ready = vdi_ready_check(&cacher->ready, NULL, &call->error) == VD_OK;
	is_of_store =
		vdi_list_source_of(
			&call->plan, vdi_watch_cache_revision(&cacher->watch_cache), has_progress,
			call->plan.is_exact && call->plan.revision >= store.compacted &&
				vdi_watch_cache_has_revision(&cacher->watch_cache, call->plan.revision)) ==
			VDI_LIST_FROM_STORE ||
		(!is_ready && call->predicate->is_empty && call->plan.store_limit > 0);
	if (is_of_store && may_read_store) {
		list_from_store(call);
	} else if (is_of_store || !is_ready) {
		if (reterr)
			*reterr = call->error;
		status = is_of_store ? VD_AGAIN : call->error.code;
		free_call(call);
		vdi_cacher_call_end(cacher);
	} else {
		list_from_cache(call);
	}
	return status;
}

vd_status vd_cacher_list(struct vd_cacher *cacher, const struct vd_list_options *options, vd_list_fn done,
			 void *arg, struct vd_error *reterr)
{
	return start_list(cacher, options, false, true, done, arg, reterr);
}

vd_status vdi_cacher_list_pending(struct vd_cacher *cacher, const struct vd_list_options *options,
				  bool may_read_store, vd_list_fn done, void *arg, struct vd_error *reterr)
{
	return start_list(cacher, options, true, may_read_store, done, arg, reterr);
}

/* ---- Blocking ---- */

struct wait_call {
	struct vdi_wait	  wait;
	vd_status	  status;
	struct vd_list	 *list;
	struct vd_object *object;
	struct vd_error	  error;
};

static void on_list(void *arg, vd_status status, struct vd_list *list, const struct vd_error *error)
{
	struct wait_call *call = arg;

	call->status = status;
	call->list = list;
	if (error)
		call->error = *error;
	vdi_wait_signal(&call->wait);
}

vd_status vd_cacher_list_wait(struct vd_cacher *cacher, const struct vd_list_options *options,
			      struct vd_list **ret_list, struct vd_error *reterr)
{
	struct wait_call call = { .status = VD_OK };
	vd_status	 status;

	VDI_REQUIRE(cacher, reterr);
	VDI_REQUIRE(ret_list, reterr);
	VDI_TRY(vdi_wait_check(cacher->env, __func__, reterr));
	vdi_wait_init(&call.wait, cacher->env);
	status = vd_cacher_list(cacher, options, on_list, &call, reterr);
	if (status == VD_OK) {
		vdi_wait_wait(&call.wait);
		status = call.status;
		if (status == VD_OK)
			*ret_list = call.list;
		else if (reterr)
			*reterr = call.error;
	}
	vdi_wait_fini(&call.wait);
	return status;
}

static void on_object(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
		      const struct vd_error *error)
{
	struct wait_call *call = arg;

	call->status = status;
	call->object = object ? vd_object_ref(object) : NULL;
	if (error)
		call->error = *error;
	vdi_wait_signal(&call->wait);
}

vd_status vd_cacher_get_wait(struct vd_cacher *cacher, struct vd_bytes namespace_name, struct vd_bytes name,
			     vd_rev revision, struct vd_object **ret_object, struct vd_error *reterr)
{
	struct wait_call call = { .status = VD_OK };
	vd_status	 status;

	VDI_REQUIRE(cacher, reterr);
	VDI_TRY(vdi_wait_check(cacher->env, __func__, reterr));
	vdi_wait_init(&call.wait, cacher->env);
	status = vd_cacher_get(cacher, namespace_name, name, revision, on_object, &call);
	if (status == VD_OK) {
		vdi_wait_wait(&call.wait);
		status = call.status;
		if (status == VD_OK && ret_object)
			*ret_object = call.object;
		else
			vd_object_unref(call.object);
		if (status != VD_OK && reterr)
			*reterr = call.error;
	} else {
		vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	}
	vdi_wait_fini(&call.wait);
	return status;
}
