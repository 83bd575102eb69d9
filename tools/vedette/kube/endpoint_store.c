/* The store runs as a member of the client, on the client's actor: it starts what callers have left, and
 * merges what has arrived. */
#include "endpoint_store.h"

#include <stdio.h>

#include "endpoint_state.h"
#include "kube_session.h"

#define BODY_SIZE_MAX ((size_t) 64 << 20)
#define PAGE_LEN 500

static struct vdi_endpoint_store *store_of(struct vd_store *store)
{
	return (struct vdi_endpoint_store *) store;
}

char *vdi_endpoint_escape(struct vd_bytes text)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
	const char	 *bytes = text.data;
	char		 *escaped = vdi_alloc(3 * text.size + 1), *at = escaped;

	if (escaped == NULL)
		return NULL;
	for (size_t i = 0; i < text.size; i++)
		if (bytes[i] && strchr(plain, bytes[i]))
			*at++ = bytes[i];
		else
			at += sprintf(at, "%%%02X", (unsigned char) bytes[i]);
	*at = 0;
	return escaped;
}

/* ---- Transfers ---- */

static void on_head(void *arg, const struct vdi_kube_head *head)
{
	struct vdi_endpoint_transfer *transfer = arg;

	transfer->code = head->code;
	transfer->head = *head;
}

static bool on_body(void *arg, struct vd_bytes bytes)
{
	struct vdi_endpoint_transfer *transfer = arg;

	if (transfer->take && transfer->code >= 200 && transfer->code < 300)
		return transfer->take(transfer, bytes);
	vdi_buffer_append(&transfer->body, bytes); /* its failure is the outcome */
	return true;
}

static void on_ended(void *arg, vd_status status, const struct vd_error *error)
{
	struct vdi_endpoint_transfer *transfer = arg;

	transfer->exchange = NULL;
	vdi_endpoint_store_wake(transfer->store);
	transfer->ended(transfer, status, error);
}

/* Returns VD_AGAIN if the client has no identity yet. */
static vd_status start(struct vdi_endpoint_transfer *transfer, struct vd_error *reterr)
{
	struct vd_kube		    *kube = transfer->store->member.kube;
	struct vdi_kube_http_request request = {
		.method = transfer->method ? transfer->method : "GET",
		.path = transfer->path,
		.accept = "application/json",
		.content_type = transfer->upload ? "application/json" : NULL,
		.body = transfer->upload ? vd_bytes_of(transfer->upload) : VD_BYTES_NONE,
		.timeout = VD_SECONDS(transfer->timeout_s),
		.silence_max = transfer->take ? vdi_kube_options(kube)->silence_max : (vd_dur) { 0 },
	};
	struct vdi_kube_handler handler = { on_head, on_body, on_ended, transfer };

	return vdi_kube_start(kube, &request, &handler, &transfer->exchange, reterr);
}

static void start_all(struct vdi_endpoint_store *store)
{
	struct vdi_endpoint_transfer *transfer;
	size_t			      left = 0;

	/* Transfers that begin meanwhile are started by the next run. */
	TAILQ_FOREACH(transfer, &store->starting, node)
	left++;
	for (; left && (transfer = TAILQ_FIRST(&store->starting)) != NULL; left--) {
		struct vd_error error = { 0 };
		vd_status	status = start(transfer, &error);

		TAILQ_REMOVE(&store->starting, transfer, node);
		transfer->is_starting = false;
		if (status == VD_AGAIN) {
			TAILQ_INSERT_TAIL(&store->starting, transfer, node);
			transfer->is_starting = true;
		} else if (status != VD_OK) {
			transfer->ended(transfer, status, &error);
		}
	}
}

vd_status vdi_endpoint_transfer_begin(struct vdi_endpoint_transfer *transfer, const char *path,
				      unsigned timeout_s, struct vd_error *reterr)
{
	VDI_CHECK(!transfer->is_running);
	transfer->path = vdi_strdup(path);
	if (transfer->path == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	vdi_buffer_init(&transfer->body, BODY_SIZE_MAX);
	transfer->timeout_s = timeout_s;
	transfer->code = 0;
	transfer->is_running = transfer->is_starting = true;
	TAILQ_INSERT_TAIL(&transfer->store->starting, transfer, node);
	vdi_endpoint_store_wake(transfer->store);
	return VD_OK;
}

void vdi_endpoint_transfer_resume(struct vdi_endpoint_transfer *transfer)
{
	if (transfer->exchange)
		vdi_kube_resume(transfer->exchange);
}

void vdi_endpoint_transfer_end(struct vdi_endpoint_transfer *transfer)
{
	if (!transfer->is_running)
		return;
	if (transfer->exchange)
		vdi_kube_cancel(transfer->exchange);
	else if (transfer->is_starting)
		TAILQ_REMOVE(&transfer->store->starting, transfer, node);
	transfer->exchange = NULL;
	transfer->is_running = transfer->is_starting = false;
	vdi_free(transfer->path);
	transfer->path = NULL;
	vdi_buffer_fini(&transfer->body);
}

vd_status vdi_endpoint_blame(const char *name, vd_status status, const char *message, struct vd_error *reterr)
{
	char text[200];

	snprintf(text, sizeof text, "%.199s",
		 message && *message ? message : vd_status_sentence(status)); /* message may be reterr's */
	return vd_error_set(reterr, status, "%.80s: %s", name, text);
}

vd_status vdi_endpoint_transfer_error(const struct vdi_endpoint_transfer *transfer, const char *name,
				      vd_status status, const struct vd_error *error, struct vd_error *reterr)
{
	struct vd_error refused = { 0 };
	vd_status	gathered = vdi_buffer_status(&transfer->body);

	if (gathered != VD_OK)
		return vdi_endpoint_blame(name, gathered, NULL, reterr);
	if (status != VD_OK && (transfer->code < 300 || transfer->body.size == 0))
		return vdi_endpoint_blame(name, status == VD_TIMEOUT ? VD_UNAVAILABLE : status,
					  error ? error->message : NULL, reterr);
	status = vdi_kube_session_error_of(&transfer->head, vdi_buffer_bytes(&transfer->body), &refused);
	if (status == VD_TIMEOUT) /* 504 */
		status = VD_UNAVAILABLE;
	if (transfer->code == 401 && vdi_kube_has_next_identity(transfer->store->member.kube))
		status = VD_UNAVAILABLE; /* the credential may have expired; the next one may be accepted */
	return vdi_endpoint_blame(name, status, refused.message, reterr);
}

/* ---- The actor ---- */

void vdi_endpoint_store_wake(struct vdi_endpoint_store *store)
{
	vdi_kube_member_wake(&store->member);
}

static struct vdi_endpoint_call *unstarted(struct vdi_endpoint_store *store)
{
	struct vdi_endpoint_call *call;

	vdi_lock_acquire(&store->lock);
	LIST_FOREACH(call, &store->calls, node)
	if (!call->is_started)
		break;
	if (call)
		call->is_started = true;
	vdi_lock_release(&store->lock);
	return call;
}

static struct vdi_endpoint_write *unstarted_write(struct vdi_endpoint_store *store)
{
	struct vdi_endpoint_write *write;

	vdi_lock_acquire(&store->lock);
	LIST_FOREACH(write, &store->writes, node)
	if (!write->is_started)
		break;
	if (write)
		write->is_started = true;
	vdi_lock_release(&store->lock);
	return write;
}

/* Only the actor removes watches, so the list can be walked in steps. */
static vd_mono tend_watches(struct vdi_endpoint_store *store)
{
	struct vdi_endpoint_watch *watch, *next;
	vd_mono			   now = vd_env_now(store->env), due = VD_NEVER;
	bool			   is_closing;

	vdi_lock_acquire(&store->lock);
	for (watch = LIST_FIRST(&store->watches); watch; watch = next) {
		next = LIST_NEXT(watch, node);
		is_closing = watch->is_closing;
		if (is_closing)
			LIST_REMOVE(watch, node);
		vdi_lock_release(&store->lock);
		if (is_closing)
			vdi_endpoint_watch_free(watch);
		else
			due = vdi_endpoint_watch_tend(watch, now, due);
		vdi_lock_acquire(&store->lock);
	}
	vdi_lock_release(&store->lock);
	return due;
}

void vdi_endpoint_store_unref(struct vdi_endpoint_store *store)
{
	if (atomic_fetch_sub_explicit(&store->references, 1, memory_order_acq_rel) != 1)
		return;
	vdi_lock_fini(&store->lock);
	vdi_free(store);
}

static void release(struct vdi_endpoint_store *store)
{
	vdi_endpoint_cursors_fini(store);
	vdi_kube_reader_fini(&store->objects);
	vdi_kube_event_reader_fini(&store->events);
	vdi_kube_page_reader_fini(&store->pages);
}

/* Removes a watch from the list; NULL: there is none. */
static struct vdi_endpoint_watch *take_watch(struct vdi_endpoint_store *store)
{
	struct vdi_endpoint_watch *watch;

	vdi_lock_acquire(&store->lock);
	watch = LIST_FIRST(&store->watches);
	if (watch)
		LIST_REMOVE(watch, node);
	vdi_lock_release(&store->lock);
	return watch;
}

/* Ends everything. Open watches are kept for their readers, without streams. */
static void close_parts(struct vdi_endpoint_store *store)
{
	struct vd_error		   error = { 0 };
	struct vdi_endpoint_call  *call;
	struct vdi_endpoint_write *write;
	struct vdi_endpoint_watch *watch;
	void (*done)(void *done_arg) = store->close_done;
	void *done_arg = store->close_done_arg;

	(void) vd_error_set(&error, VD_CLOSED, "%s", vd_status_sentence(VD_CLOSED));
	while ((call = LIST_FIRST(&store->calls)) != NULL)
		vdi_endpoint_call_answer(call, VD_CLOSED, &error, false);
	while ((write = LIST_FIRST(&store->writes)) != NULL)
		vdi_endpoint_write_answer(write, VD_CLOSED, 0, false, &error);
	while ((watch = take_watch(store)) != NULL)
		if (vdi_endpoint_watch_orphan(watch, &error))
			vdi_endpoint_watch_free(watch);
	vdi_kube_member_remove(&store->member);
	release(store);
	vdi_endpoint_store_unref(store);
	if (done)
		done(done_arg);
}

static vd_mono run(struct vdi_kube_member *member, vd_mono now)
{
	struct vdi_endpoint_store *store = VDI_CONTAINER_OF(member, struct vdi_endpoint_store, member);
	struct vdi_endpoint_call  *call;
	struct vdi_endpoint_write *write;
	bool			   is_closing;
	vd_mono			   due;

	(void) now;
	vdi_lock_acquire(&store->lock);
	is_closing = store->is_closing;
	vdi_lock_release(&store->lock);
	if (is_closing) {
		close_parts(store);
		return VD_NEVER;
	}
	while ((call = unstarted(store)) != NULL)
		vdi_endpoint_call_start(call);
	while ((write = unstarted_write(store)) != NULL)
		vdi_endpoint_write_start(write);
	due = tend_watches(store);
	start_all(store);
	return due;
}

/* ---- Unsupported operations ---- */

static vd_status no_compact(struct vd_store *store, vd_rev revision, bool physical, vd_done_fn done,
			    void *arg)
{
	(void) store;
	(void) revision;
	(void) physical;
	(void) done;
	(void) arg;
	return VD_UNSUPPORTED;
}

static vd_status no_grant(struct vd_store *store, int64_t id, int64_t ttl_s, vd_lease_fn done, void *arg)
{
	(void) store;
	(void) id;
	(void) ttl_s;
	(void) done;
	(void) arg;
	return VD_UNSUPPORTED;
}

static vd_status no_revoke(struct vd_store *store, int64_t id, vd_done_fn done, void *arg)
{
	(void) store;
	(void) id;
	(void) done;
	(void) arg;
	return VD_UNSUPPORTED;
}

static vd_status no_keep_alive(struct vd_store *store, int64_t id, vd_lease_fn done, void *arg)
{
	(void) store;
	(void) id;
	(void) done;
	(void) arg;
	return VD_UNSUPPORTED;
}

static vd_status no_time_to_live(struct vd_store *store, int64_t id, bool keys, vd_lease_fn done, void *arg)
{
	(void) keys;
	return no_keep_alive(store, id, done, arg);
}

static vd_status no_progress(struct vd_store_watch *watch)
{
	(void) watch;
	return VD_UNSUPPORTED;
}

static vd_status status(struct vd_store *base, struct vd_store_status *ret_status)
{
	struct vdi_endpoint_store *store = store_of(base);

	memset(ret_status, 0, sizeof *ret_status);
	vdi_lock_acquire(&store->lock);
	ret_status->current = store->newest;
	vdi_lock_release(&store->lock);
	ret_status->compacted = ret_status->size_bytes = ret_status->key_count = -1;
	ret_status->remote = true;
	return VD_OK;
}

bool vdi_endpoint_kind_is_in(const struct vdi_endpoint_kind *kind, struct vd_bytes key,
			     struct vd_bytes range_end)
{
	struct vd_bytes prefix = vd_bytes_of(kind->prefix);
	bool		is_open = range_end.size == 1 && *(const char *) range_end.data == 0;

	return vd_bytes_compare(prefix, key) >= 0 && (is_open || vd_bytes_compare(prefix, range_end) < 0);
}

/* ---- Lifetime ---- */

static void close_store(struct vd_store *base, void (*done)(void *arg), void *arg)
{
	struct vdi_endpoint_store *store = store_of(base);

	vdi_lock_acquire(&store->lock);
	store->is_closing = true;
	store->close_done = done;
	store->close_done_arg = arg;
	vdi_endpoint_store_wake(store);
	vdi_lock_release(&store->lock);
}

static const struct vd_store_ops ops = {
	.size = sizeof ops,
	.range = vdi_endpoint_range,
	.txn = vdi_endpoint_txn,
	.compact = no_compact,
	.lease_grant = no_grant,
	.lease_revoke = no_revoke,
	.lease_keep_alive = no_keep_alive,
	.lease_time_to_live = no_time_to_live,
	.watch = vdi_endpoint_watch_open,
	.watch_next = vdi_endpoint_watch_next,
	.watch_progress = no_progress,
	.watch_close = vdi_endpoint_watch_close,
	.status = status,
	.close = close_store,
};

static vd_status prepare(struct vdi_endpoint_store *store)
{
	VDI_TRY(vdi_kube_reader_init(&store->objects));
	VDI_TRY(vdi_kube_event_reader_init(&store->events));
	return vdi_kube_page_reader_init(&store->pages);
}

vd_status vdi_endpoint_store_new(const struct vdi_endpoint_store_options *options,
				 struct vd_store **ret_store, struct vd_error *reterr)
{
	struct vdi_endpoint_store *store = VDI_NEW(struct vdi_endpoint_store);
	vd_status		   status;

	if (store == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	store->store.ops = &ops;
	store->store.env = store->env = vdi_kube_env(options->kube);
	store->kinds = options->kinds;
	store->whole_revisions = options->whole_revisions;
	store->watch_timeout_s = options->watch_timeout_s ? options->watch_timeout_s : 10;
	store->page_len = PAGE_LEN;
	store->references = 1;
	store->member.run = run;
	vdi_lock_init(&store->lock, VDI_LOCK_STORE);
	vdi_rand_init(&store->rand, vd_env_random(store->env));
	TAILQ_INIT(&store->starting);
	LIST_INIT(&store->calls);
	LIST_INIT(&store->writes);
	LIST_INIT(&store->watches);
	status = prepare(store);
	if (status == VD_OK)
		status = vdi_kube_member_add(options->kube, &store->member);
	if (status != VD_OK) {
		release(store);
		vdi_endpoint_store_unref(store);
		return vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	}
	*ret_store = &store->store;
	return VD_OK;
}
