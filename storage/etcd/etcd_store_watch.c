/* A watch of the store over a watch of the client.
 *
 * The client delivers responses of whole revisions. They are passed on in batches of about the requested
 * number of events, cut between revisions. Progress is passed on if periodic or requested progress is wanted:
 * etcd sends the response to a progress request to every watch of the stream.
 *
 * A server answers a progress request only if no watch of the stream is behind or has a start revision in the
 * future; otherwise it drops the request silently. So watches from the past have a stream of their own: a
 * watch that catches up does not delay the progress of the others, and gets its own progress while others
 * wait for future revisions.
 *
 * A watch "from now" starts after the newest known revision, so that it gets everything written through this
 * store afterwards, whenever the server receives the request. (With revision 0 it would miss events until
 * then.) If that revision is compacted before the server receives the request, and no write through this
 * store was in progress when the watch was opened, the watch starts at the compaction, because a watch from
 * now must not fail after a long silence. Otherwise the compaction may have removed events of the watch, and
 * it ends with VD_EXPIRED. The same holds if the server had the watch, the connection was lost, and
 * compaction passed the revision at which the watch was created.
 */
#include "etcd_store.h"

#include "etcd_watch.h"

const struct vd_etcd_pair vdi_etcd_store_history_stream = { "vedette-watch", { "past", 4 } };

struct etcd_watch {
	struct vd_store_watch base;

	/* Fixed at creation. */
	/* ops of base.store; exists as long as the watch, even after the store */
	struct vd_store		      stub;
	struct vdi_etcd_server_state *server_state;
	/* exists as long as the store; only used to reopen, which a closed client refuses */
	struct vd_etcd *client;
	bool		wants_progress;
	bool		is_past;

	atomic_bool progress_asked;

	/* The caller of next only. */
	struct vd_etcd_watch	     *watch;
	struct vd_etcd_watch_response response;	  /* borrowed from the client until its next call */
	size_t			      next;	  /* first event of response not yet delivered */
	vd_rev			      start;	  /* first revision wanted; 0: the server's current one */
	vd_rev			      delivered;  /* newest revision delivered */
	struct vd_etcd_watch_request *now;	  /* to reopen at the compaction; NULL: never */
	int64_t			      txns_begun; /* at the opening of the watch */
	/* the server's revision at the creation of the watch before this one; 0: none */
	vd_rev created;
};

static struct etcd_watch *watch_of(struct vd_store_watch *watch)
{
	return VDI_CONTAINER_OF(watch, struct etcd_watch, base);
}

/* Ends a progress request; returns true if there was one. */
static bool progress_is_over(struct etcd_watch *watch)
{
	if (!atomic_exchange(&watch->progress_asked, false))
		return false;
	atomic_fetch_sub(&watch->server_state->progress_wanted[watch->is_past], 1);
	return true;
}

static void free_watch(struct etcd_watch *watch)
{
	(void) progress_is_over(watch); /* drop its progress request */
	atomic_fetch_sub(&watch->server_state->usage.watchers, 1);
	vdi_etcd_server_state_unref(watch->server_state);
	vdi_free(watch->now);
	vdi_free(watch);
}

/* Copies the request with its keys behind it. */
static struct vd_etcd_watch_request *copy_request(const struct vd_etcd_watch_request *request)
{
	size_t			      keys_size = request->key.size + request->range_end.size;
	struct vd_etcd_watch_request *copy = vdi_alloc(sizeof *copy + keys_size);
	char			     *keys = (char *) (copy + 1);

	if (copy == NULL)
		return NULL;
	*copy = *request;
	memcpy(keys, request->key.data, request->key.size);
	copy->key.data = keys;
	if (request->range_end.size)
		memcpy(keys + request->key.size, request->range_end.data, request->range_end.size);
	copy->range_end.data = keys + request->key.size;
	return copy;
}

vd_status vdi_etcd_store_watch(struct vd_store *base, const struct vd_store_watch_request *request,
			       struct vd_store_watch **ret_watch, struct vd_error *reterr)
{
	struct vdi_etcd_store *store = VDI_CONTAINER_OF(base, struct vdi_etcd_store, base);
	struct etcd_watch     *watch = VDI_NEW(struct etcd_watch);
	int64_t		       txns_ended = atomic_load(&store->server_state->txns_ended),
		txns_begun = atomic_load(&store->server_state->txns_begun);
	/* Read after txns_ended, so it includes the revisions of those transactions. */
	vd_rev			     current = atomic_load(&store->server_state->current);
	struct vd_etcd_watch_request etcd = {
		.key = request->key,
		.range_end = request->range_end,
		.revision = request->start_revision,
		.previous = request->previous,
		.progress = request->progress,
		.no_put = request->no_put,
		.no_delete = request->no_delete,
		.require_leader = true, /* as upstream */
		.ready = request->ready,
		.ready_arg = request->ready_arg,
		.observer = request->observer,
	};
	vd_status status = VD_NOMEM;

	if (watch == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory for a watch");
	watch->stub = *base;
	watch->base.store = &watch->stub;
	watch->client = store->client;
	watch->server_state = store->server_state;
	watch->wants_progress = request->progress;
	watch->is_past = request->start_revision > 0 && request->start_revision <= current;
	if (watch->is_past) {
		etcd.metadata = &vdi_etcd_store_history_stream;
		etcd.metadata_count = 1;
	}
	atomic_fetch_add(&watch->server_state->references, 1);
	atomic_fetch_add(&watch->server_state->usage.watchers, 1);
	if (etcd.revision == 0 && current > 0) {
		watch->txns_begun = txns_begun;
		watch->now = txns_ended == txns_begun ? copy_request(&etcd) : NULL;
		if (txns_ended == txns_begun && watch->now == NULL) {
			free_watch(watch);
			return vd_error_set(reterr, VD_NOMEM, "out of memory for a watch");
		}
		etcd.revision = current + 1;
		watch->base.opened = current;
	}
	watch->start = etcd.revision;
	if (vdi_etcd_store_enter(store)) {
		status = vd_etcd_watch_open(store->client, &etcd, &watch->watch, reterr);
		vdi_etcd_store_leave(store);
	} else {
		status = vd_error_set(reterr, VD_CLOSED, "%s", vd_status_sentence(VD_CLOSED));
	}
	vdi_etcd_store_count(store, VDI_ETCD_CALL_WATCH, status != VD_OK);
	if (status != VD_OK) {
		free_watch(watch);
		return status;
	}
	*ret_watch = &watch->base;
	return VD_OK;
}

/* Cuts whole revisions, at least one; the last one may exceed max. */
static void cut_batch(struct etcd_watch *watch, size_t max, struct vd_store_batch *ret_batch)
{
	const struct vd_store_event *events = watch->response.events + watch->next;
	size_t			     left = watch->response.event_count - watch->next, count = 1;

	while (count < left && (count < max || events[count].kv->mod_rev == events[count - 1].kv->mod_rev))
		count++;
	*ret_batch = (struct vd_store_batch) { .revision = events[count - 1].kv->mod_rev,
					       .events = events,
					       .event_count = count };
	watch->next += count;
	watch->delivered = ret_batch->revision;
}

/* Returns true if progress is wanted and new. As in etcd there is none below the start, and it never
 * decreases. */
static bool take_progress(struct etcd_watch *watch, struct vd_store_batch *ret_batch)
{
	vd_rev revision = watch->response.header.revision;

	if (revision < watch->start || revision < watch->delivered)
		return false;
	if (!progress_is_over(watch) && !watch->wants_progress)
		return false;
	*ret_batch = (struct vd_store_batch) { .revision = revision };
	watch->delivered = revision;
	return true;
}

/* Returns true if the compaction cannot have removed events of this watch: none was delivered, no write
 * through this store was in progress, and the server has not compacted past the watch's creation. */
static bool may_begin_at_compaction(const struct etcd_watch *watch, vd_rev compacted)
{
	vd_rev created = watch->created ? watch->created : vdi_etcd_watch_created(watch->watch);

	return watch->now && watch->delivered == 0 &&
	       atomic_load(&watch->server_state->txns_begun) == watch->txns_begun && compacted > 0 &&
	       (created == 0 || compacted <= created + 1);
}

/* Reopens at the lowest possible revision. */
static vd_status open_at_compaction(struct etcd_watch *watch, vd_rev compacted, struct vd_error *reterr)
{
	struct vd_etcd_watch *again = NULL;

	watch->now->revision = compacted;
	VDI_TRY(vd_etcd_watch_open(watch->client, watch->now, &again, reterr));
	if (watch->created == 0)
		watch->created = vdi_etcd_watch_created(watch->watch);
	vd_etcd_watch_close(watch->watch);
	watch->watch = again;
	watch->start = compacted;
	return VD_OK;
}

static vd_status watch_failed(struct etcd_watch *watch, const struct vd_etcd_error *error,
			      struct vd_error *reterr)
{
	struct vd_error failure;

	(void) progress_is_over(watch); /* drop its progress request */
	vdi_etcd_store_describe(error, &failure);
	vdi_etcd_server_state_fill(watch->server_state, watch->start, &failure);
	if (reterr)
		*reterr = failure;
	return failure.code;
}

vd_status vdi_etcd_store_watch_next(struct vd_store_watch *base, size_t event_count_max,
				    struct vd_store_batch *ret_batch, struct vd_error *reterr)
{
	struct etcd_watch *watch = watch_of(base);

	for (;;) {
		struct vd_etcd_error error = { 0 };
		vd_status	     status;

		if (watch->next < watch->response.event_count) {
			cut_batch(watch, event_count_max, ret_batch);
			return VD_OK;
		}
		watch->next = 0;
		watch->response.event_count = 0;
		status = vd_etcd_watch_next(watch->watch, &watch->response, &error);
		if (status == VD_AGAIN)
			return status;
		if (status != VD_OK) {
			watch->response.event_count = 0;
			error.error.code = status;
			if (status == VD_EXPIRED && may_begin_at_compaction(watch, error.error.compacted) &&
			    open_at_compaction(watch, error.error.compacted, reterr) == VD_OK)
				continue;
			return watch_failed(watch, &error, reterr);
		}
		vdi_etcd_server_state_raise(&watch->server_state->current, watch->response.header.revision);
		if (vd_etcd_watch_is_progress(&watch->response) && take_progress(watch, ret_batch))
			return VD_OK;
	}
}

vd_status vdi_etcd_store_watch_progress(struct vd_store_watch *base)
{
	struct etcd_watch *watch = watch_of(base);
	vd_status	   status;

	bool is_closed;

	vdi_lock_acquire(&watch->server_state->lock);
	is_closed = watch->server_state->maintenance == NULL;
	vdi_lock_release(&watch->server_state->lock);
	if (is_closed)
		return VD_CLOSED;
	/* Servers without reliable progress may answer ahead of events (etcd issue 15220). */
	if (!atomic_load(&watch->server_state->progress))
		return VD_UNSUPPORTED;
	if (!atomic_exchange(&watch->progress_asked, true))
		atomic_fetch_add(&watch->server_state->progress_wanted[watch->is_past], 1);
	atomic_fetch_add(&watch->server_state->progress_asks, 1);
	status = vd_etcd_watch_progress(watch->watch);
	if (status != VD_OK) {
		(void) progress_is_over(watch); /* drop its progress request */
		return status == VD_CLOSED || status == VD_NOMEM ?
			       status :
			       VD_OK; /* next reports the reason of the end */
	}
	vdi_lock_acquire(&watch->server_state->lock);
	if (watch->server_state->maintenance)
		vd_actor_wake(watch->server_state->maintenance);
	vdi_lock_release(&watch->server_state->lock);
	return VD_OK;
}

void vdi_etcd_store_watch_close(struct vd_store_watch *base)
{
	struct etcd_watch *watch = watch_of(base);

	vd_etcd_watch_close(watch->watch);
	free_watch(watch);
}
