/* The actor waits in curl_multi_poll, which other threads interrupt with curl_multi_wakeup; so it has a
 * thread of its own. */
#include "kube_store.h"

#include <stdio.h>

#include "exec_credential.h"
#include "kube_state.h"

#define BODY_SIZE_MAX ((size_t) 64 << 20)
#define WAIT_MAX VD_MS(1000)
#define PAGE_LEN 500

static struct vdi_kube_store *store_of(struct vd_store *store)
{
	return (struct vdi_kube_store *) store;
}

/* ---- Transfers ---- */

static size_t on_body(char *data, size_t one, size_t size, void *arg)
{
	struct vdi_kube_transfer *transfer = arg;
	struct vd_bytes		  bytes = { data, size };
	long			  code = 0;

	(void) one;
	curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &code);
	if (transfer->take && code >= 200 && code < 300)
		return transfer->take(transfer, bytes);
	vdi_buffer_append(&transfer->body, bytes);
	return vdi_buffer_status(&transfer->body) == VD_OK ? size : 0;
}

static bool add_header(struct curl_slist **headers, const char *name, const char *value)
{
	size_t		   size = strlen(name) + strlen(value) + 1;
	char		  *line = vdi_alloc(size);
	struct curl_slist *longer;

	if (line == NULL)
		return false;
	snprintf(line, size, "%s%s", name, value);
	longer = curl_slist_append(*headers, line);
	vdi_free(line);
	if (longer)
		*headers = longer;
	return longer != NULL;
}

static bool set_up(struct vdi_kube_transfer *transfer, const char *url, const char *token, unsigned timeout_s)
{
	if (!add_header(&transfer->headers, "Accept: ", "application/json") ||
	    (token && !add_header(&transfer->headers, "Authorization: Bearer ", token)) ||
	    (transfer->upload && !add_header(&transfer->headers, "Content-Type: ", "application/json")))
		return false;
	transfer->reason[0] = 0;
	curl_easy_setopt(transfer->easy, CURLOPT_ERRORBUFFER, transfer->reason);
	curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, transfer->headers);
	curl_easy_setopt(transfer->easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(transfer->easy, CURLOPT_WRITEDATA, transfer);
	curl_easy_setopt(transfer->easy, CURLOPT_PRIVATE, transfer);
	curl_easy_setopt(transfer->easy, CURLOPT_TIMEOUT, (long) timeout_s);
	if (transfer->upload)
		curl_easy_setopt(transfer->easy, CURLOPT_POSTFIELDS, transfer->upload);
	if (transfer->method)
		curl_easy_setopt(transfer->easy, CURLOPT_CUSTOMREQUEST, transfer->method);
	curl_easy_setopt(transfer->easy, CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1);
	return curl_easy_setopt(transfer->easy, CURLOPT_URL, url) == CURLE_OK &&
	       curl_multi_add_handle(transfer->store->multi, transfer->easy) == CURLM_OK;
}

vd_status vdi_kube_transfer_begin(struct vdi_kube_transfer *transfer, const char *path, unsigned timeout_s,
				  struct vd_error *reterr)
{
	size_t			 size = strlen(transfer->store->base) + strlen(path) + 1;
	char			*url = vdi_alloc(size);
	struct vdi_http_identity identity = { 0 };
	vd_status		 status = VD_NOMEM;

	VDI_CHECK(transfer->easy == NULL);
	vdi_buffer_init(&transfer->body, BODY_SIZE_MAX);
	transfer->easy = curl_easy_init();
	if (url && transfer->easy) {
		snprintf(url, size, "%s%s", transfer->store->base, path);
		status = vdi_http_options_apply(transfer->store->http, transfer->easy, &identity, reterr);
	}
	if (status == VD_OK && !set_up(transfer, url, identity.token, timeout_s))
		status = VD_NOMEM;
	vdi_free(url);
	transfer->credential = identity.credential;
	if (status == VD_OK)
		return VD_OK;
	if (status == VD_NOMEM)
		(void) vd_error_set(reterr, VD_NOMEM, "out of memory");
	vdi_kube_transfer_end(transfer);
	return status;
}

void vdi_kube_transfer_end(struct vdi_kube_transfer *transfer)
{
	if (transfer->easy) {
		curl_multi_remove_handle(transfer->store->multi, transfer->easy);
		curl_easy_cleanup(transfer->easy);
	}
	curl_slist_free_all(transfer->headers);
	transfer->easy = NULL;
	transfer->headers = NULL;
	vdi_buffer_fini(&transfer->body);
}

vd_status vdi_kube_blame(const char *name, vd_status status, const char *message, struct vd_error *reterr)
{
	char text[200];

	snprintf(text, sizeof text, "%.199s",
		 message && *message ? message : vd_status_sentence(status)); /* message may be reterr's */
	return vd_error_set(reterr, status, "%.80s: %s", name, text);
}

vd_status vdi_kube_transfer_error(const struct vdi_kube_transfer *transfer, const char *name, CURLcode result,
				  long code, struct vd_error *reterr)
{
	struct vd_error error = { 0 };
	vd_status	status = vdi_buffer_status(&transfer->body);

	if (status != VD_OK)
		return vdi_kube_blame(name, status, NULL, reterr);
	if (result != CURLE_OK && (code < 300 || transfer->body.size == 0))
		return vdi_kube_blame(name, VD_UNAVAILABLE,
				      transfer->reason[0] ? transfer->reason : curl_easy_strerror(result),
				      reterr);
	status = vdi_http_error_of((int) code, (struct vd_bytes) { transfer->body.data, transfer->body.size },
				   &error);
	if (code == 401 && transfer->store->http->exec &&
	    vdi_exec_credential_refused(transfer->store->http->exec, transfer->credential))
		status = VD_UNAVAILABLE; /* the credential may have expired; the next one may be accepted */
	return vdi_kube_blame(name, status, error.message, reterr);
}

/* ---- The actor ---- */

void vdi_kube_store_wake(struct vdi_kube_store *store)
{
	curl_multi_wakeup(store->multi);
}

static void take_ends(struct vdi_kube_store *store)
{
	CURLMsg *message;
	int	 left;

	while ((message = curl_multi_info_read(store->multi, &left)) != NULL) {
		struct vdi_kube_transfer *transfer = NULL;
		CURLcode		  result = message->data.result;
		long			  code = 0;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **) &transfer);
		curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, &code);
		if (store->http->exec && code >= 200 && code < 300)
			vdi_exec_credential_taken(store->http->exec);
		transfer->ended(transfer, result, code);
	}
}

static struct vdi_kube_call *unstarted(struct vdi_kube_store *store)
{
	struct vdi_kube_call *call;

	vdi_lock_acquire(&store->lock);
	LIST_FOREACH(call, &store->calls, node)
	if (!call->is_started)
		break;
	if (call)
		call->is_started = true;
	vdi_lock_release(&store->lock);
	return call;
}

static struct vdi_kube_write *unstarted_write(struct vdi_kube_store *store)
{
	struct vdi_kube_write *write;

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
static vd_mono tend_watches(struct vdi_kube_store *store)
{
	struct vdi_kube_watch *watch, *next;
	vd_mono		       now = vd_env_now(store->env), due = vd_mono_add(now, WAIT_MAX);
	bool		       is_closing;

	vdi_lock_acquire(&store->lock);
	for (watch = LIST_FIRST(&store->watches); watch; watch = next) {
		next = LIST_NEXT(watch, node);
		is_closing = watch->is_closing;
		if (is_closing)
			LIST_REMOVE(watch, node);
		vdi_lock_release(&store->lock);
		if (is_closing)
			vdi_kube_watch_free(watch);
		else
			due = vdi_kube_watch_tend(watch, now, due);
		vdi_lock_acquire(&store->lock);
	}
	vdi_lock_release(&store->lock);
	return due;
}

static void kube_run(void *arg)
{
	struct vdi_kube_store *store = arg;
	struct vdi_kube_call  *call;
	struct vdi_kube_write *write;
	vd_mono		       due, now;
	int		       running;

	while ((call = unstarted(store)) != NULL)
		vdi_kube_call_start(call);
	while ((write = unstarted_write(store)) != NULL)
		vdi_kube_write_start(write);
	(void) curl_multi_perform(store->multi, &running); /* failures are in the messages */
	take_ends(store);
	due = tend_watches(store); /* new transfers make the poll return at once */
	now = vd_env_now(store->env);
	(void) curl_multi_poll(store->multi, NULL, 0,
			       due.ns > now.ns ? (int) ((due.ns - now.ns) / 1000000) + 1 : 0, NULL);
	vd_actor_wake(store->actor);
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
	struct vdi_kube_store *store = store_of(base);

	memset(ret_status, 0, sizeof *ret_status);
	vdi_lock_acquire(&store->lock);
	ret_status->current = store->newest;
	vdi_lock_release(&store->lock);
	ret_status->compacted = ret_status->size_bytes = ret_status->key_count = -1;
	ret_status->remote = true;
	return VD_OK;
}

bool vdi_kube_kind_is_in(const struct vdi_kube_kind *kind, struct vd_bytes key, struct vd_bytes range_end)
{
	struct vd_bytes prefix = vd_bytes_of(kind->prefix);
	bool		is_open = range_end.size == 1 && *(const char *) range_end.data == 0;

	return vd_bytes_compare(prefix, key) >= 0 && (is_open || vd_bytes_compare(prefix, range_end) < 0);
}

/* ---- Lifetime ---- */

void vdi_kube_store_unref(struct vdi_kube_store *store)
{
	if (atomic_fetch_sub_explicit(&store->references, 1, memory_order_acq_rel) != 1)
		return;
	vdi_lock_fini(&store->lock);
	vdi_free(store->base);
	vdi_free(store);
}

static void release(struct vdi_kube_store *store)
{
	vdi_kube_cursors_fini(store);
	vdi_kube_reader_fini(&store->objects);
	vdi_kube_event_reader_fini(&store->events);
	vdi_kube_page_reader_fini(&store->pages);
	if (store->multi)
		curl_multi_cleanup(store->multi);
	store->multi = NULL;
}

/* Called when the actor has ended: this thread owns its state now. Open watches are kept for their readers,
 * without streams. */
static void on_actor_closed(void *arg)
{
	struct vdi_kube_store *store = arg;
	struct vd_error	       error = { 0 };
	struct vdi_kube_call  *call;
	struct vdi_kube_write *write;
	struct vdi_kube_watch *watch;
	void (*done)(void *done_arg) = store->close_done;
	void *done_arg = store->close_done_arg;

	(void) vd_error_set(&error, VD_CLOSED, "%s", vd_status_sentence(VD_CLOSED));
	while ((call = LIST_FIRST(&store->calls)) != NULL)
		vdi_kube_call_answer(call, VD_CLOSED, &error, false);
	while ((write = LIST_FIRST(&store->writes)) != NULL)
		vdi_kube_write_answer(write, VD_CLOSED, 0, false, &error);
	vdi_lock_acquire(&store->lock);
	while ((watch = LIST_FIRST(&store->watches)) != NULL) {
		LIST_REMOVE(watch, node);
		if (!vdi_kube_watch_orphan_locked(watch, &error))
			continue;
		vdi_lock_release(&store->lock);
		vdi_kube_watch_free(watch);
		vdi_lock_acquire(&store->lock);
	}
	vdi_lock_release(&store->lock);
	release(store);
	vdi_kube_store_unref(store);
	if (done)
		done(done_arg);
}

static void close_store(struct vd_store *base, void (*done)(void *arg), void *arg)
{
	struct vdi_kube_store *store = store_of(base);

	vdi_lock_acquire(&store->lock);
	store->is_closing = true;
	store->close_done = done;
	store->close_done_arg = arg;
	vdi_lock_release(&store->lock);
	vdi_kube_store_wake(store);
	vd_actor_close(store->actor, on_actor_closed, store);
}

static const struct vd_store_ops ops = {
	.size = sizeof ops,
	.range = vdi_kube_range,
	.txn = vdi_kube_txn,
	.compact = no_compact,
	.lease_grant = no_grant,
	.lease_revoke = no_revoke,
	.lease_keep_alive = no_keep_alive,
	.lease_time_to_live = no_time_to_live,
	.watch = vdi_kube_watch_open,
	.watch_next = vdi_kube_watch_next,
	.watch_progress = no_progress,
	.watch_close = vdi_kube_watch_close,
	.status = status,
	.close = close_store,
};

static vd_status prepare(struct vdi_kube_store *store, struct vd_error *reterr)
{
	struct vd_actor_options actor = { .name = "kube", .run = kube_run, .arg = store, .blocking = true };

	VDI_TRY(vdi_curl_load(reterr));
	VDI_TRY(vdi_http_options_base(store->http, &store->base, reterr));
	VDI_TRY(vdi_kube_reader_init(&store->objects));
	VDI_TRY(vdi_kube_event_reader_init(&store->events));
	VDI_TRY(vdi_kube_page_reader_init(&store->pages));
	store->multi = curl_multi_init();
	if (store->multi == NULL)
		return VD_NOMEM;
	curl_multi_setopt(store->multi, CURLMOPT_MAXCONNECTS, (long) store->kinds->count + 40);
	return vd_actor_new(store->env, &actor, &store->actor);
}

vd_status vdi_kube_store_new(const struct vd_env *env, const struct vdi_kube_store_options *options,
			     struct vd_store **ret_store, struct vd_error *reterr)
{
	struct vdi_kube_store *store = VDI_NEW(struct vdi_kube_store);
	vd_status	       result;

	if (store == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	store->store.ops = &ops;
	store->store.env = store->env = env;
	store->http = options->http;
	store->kinds = options->kinds;
	store->whole_revisions = options->whole_revisions;
	store->watch_timeout_s = options->watch_timeout_s ? options->watch_timeout_s : 10;
	store->page_len = PAGE_LEN;
	store->references = 1;
	vdi_lock_init(&store->lock, VDI_LOCK_STORE);
	vdi_rand_init(&store->rand, vd_env_random(env));
	LIST_INIT(&store->calls);
	LIST_INIT(&store->writes);
	LIST_INIT(&store->watches);
	result = prepare(store, reterr);
	if (result != VD_OK) {
		release(store);
		vdi_kube_store_unref(store);
		return result == VD_INVALID_ARGUMENT ?
			       result :
			       vd_error_set(reterr, result, "%s", vd_status_sentence(result));
	}
	*ret_store = &store->store;
	vd_actor_wake(store->actor);
	return VD_OK;
}
