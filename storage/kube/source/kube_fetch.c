/* A fetch is in the source's list from begin to done. One that has no exchange waits: for the client's
 * identity, or for the time of its repetition. */
#include "kube_fetch.h"

#include "kube_source.h"

static void clear(struct vdi_kube_fetch *fetch)
{
	vdi_free(fetch->path);
	vdi_free(fetch->request);
	fetch->path = fetch->request = NULL;
}

static void leave(struct vdi_kube_fetch *fetch)
{
	LIST_REMOVE(fetch, node);
	fetch->is_begun = false;
	clear(fetch);
}

void vdi_kube_fetch_end(struct vdi_kube_fetch *fetch)
{
	if (fetch->exchange)
		vdi_kube_cancel(fetch->exchange);
	fetch->exchange = NULL;
	if (fetch->is_begun)
		leave(fetch);
	vdi_buffer_fini(&fetch->body);
}

bool vdi_kube_fetch_is_passing(int code, vd_status status)
{
	switch (code) {
	case 0: return status == VD_UNAVAILABLE || status == VD_TIMEOUT;
	case 429:
	case 500:
	case 502:
	case 503:
	case 504: return true;
	default: return code >= 200 && code < 300 && (status == VD_UNAVAILABLE || status == VD_TIMEOUT);
	}
}

/* True: the request is sent again later. */
static bool repeats(struct vdi_kube_fetch *fetch, vd_status status, const struct vd_error *error)
{
	struct vd_kube *kube = fetch->source->member.kube;

	if (fetch->code != 429 && !(fetch->repeat && vdi_kube_fetch_is_passing(fetch->code, status)))
		return false;
	vdi_kube_backoff_fail(kube, &fetch->backoff, error ? error->retry_after_s : 0);
	if (fetch->backoff.retry_at.ns >= fetch->deadline.ns)
		return false;
	vdi_kube_member_wake(&fetch->source->member);
	return true;
}

static void finish(struct vdi_kube_fetch *fetch, vd_status status, const struct vd_error *error)
{
	if (status != VD_OK && repeats(fetch, status, error))
		return;
	leave(fetch);
	fetch->done(fetch, status, error);
}

static void on_head(void *arg, const struct vdi_kube_head *head)
{
	struct vdi_kube_fetch *fetch = arg;

	fetch->code = head->code;
	fetch->head = *head;
}

static bool on_body(void *arg, struct vd_bytes bytes)
{
	struct vdi_kube_fetch *fetch = arg;

	vdi_buffer_append(&fetch->body, bytes);
	if (vdi_buffer_status(&fetch->body) != VD_OK) {
		struct vd_error error = { 0 };
		vd_status	status = vdi_buffer_status(&fetch->body);

		vdi_kube_cancel(fetch->exchange);
		fetch->exchange = NULL;
		(void) vd_error_set(&error, status, "%s",
				    status == VD_TOO_BIG ? "the response is longer than 64 MiB" :
							   "out of memory for a response");
		finish(fetch, status, &error);
	}
	return true;
}

static void on_ended(void *arg, vd_status status, const struct vd_error *error)
{
	struct vdi_kube_fetch *fetch = arg;
	struct vd_error	       refused = { 0 };

	fetch->exchange = NULL;
	if (status == VD_OK && (fetch->code < 200 || fetch->code > 299)) {
		status = vdi_kube_error_of(&fetch->head, vdi_buffer_bytes(&fetch->body), &refused);
		error = &refused;
	}
	finish(fetch, status, status == VD_OK ? NULL : error);
}

/* False: no request can be started now. The fetch may be gone afterwards. */
static bool start(struct vdi_kube_fetch *fetch)
{
	const struct vdi_kube_handler handler = { on_head, on_body, on_ended, fetch };
	struct vd_kube		     *kube = fetch->source->member.kube;
	struct vdi_kube_http_request  request = {
		 .method = fetch->method,
		 .path = fetch->path,
		 .accept = "application/json",
		 .content_type = fetch->request ? "application/json" : NULL,
		 .body = { fetch->request, fetch->request_size },
		 .timeout = vdi_kube_options(kube)->request_timeout,
		 .silence_max = vdi_kube_options(kube)->silence_max,
	};
	struct vd_error error = { 0 };
	vd_status	status;

	fetch->code = 0;
	vdi_buffer_clear(&fetch->body);
	status = vdi_kube_start(kube, &request, &handler, &fetch->exchange, &error);
	if (status == VD_AGAIN)
		return false;
	if (status != VD_OK) {
		fetch->exchange = NULL;
		finish(fetch, status, &error);
	}
	return true;
}

vd_status vdi_kube_fetch_begin(struct vdi_kube_fetch *fetch, char *path, char *request, size_t request_size)
{
	struct vdi_kube_source *source = fetch->source;
	struct vd_kube	       *kube = source->member.kube;

	vdi_kube_fetch_end(fetch);
	fetch->path = path;
	fetch->request = request;
	fetch->request_size = request_size;
	if (path == NULL) {
		clear(fetch);
		return VD_NOMEM;
	}
	vdi_buffer_init(&fetch->body, VDI_KUBE_BODY_MAX);
	vdi_kube_backoff_reset(&fetch->backoff);
	fetch->deadline = vd_mono_add(vdi_kube_now(kube), vdi_kube_options(kube)->request_timeout);
	fetch->is_begun = true;
	LIST_INSERT_HEAD(&source->fetches, fetch, node);
	/* It starts in the next run, so that done is never called inside this function. */
	vdi_kube_member_wake(&source->member);
	return VD_OK;
}

/* Finds one to start; NULL: none, and *ret_due is the time of the next one. */
static struct vdi_kube_fetch *next_to_start(struct vdi_kube_fetches *fetches, vd_mono now, vd_mono *ret_due)
{
	struct vdi_kube_fetch *fetch;

	*ret_due = VD_NEVER;
	LIST_FOREACH(fetch, fetches, node)
	{
		if (fetch->exchange)
			continue;
		if (fetch->backoff.retry_at.ns <= now.ns)
			return fetch;
		ret_due->ns = VDI_MIN(ret_due->ns, fetch->backoff.retry_at.ns);
	}
	return NULL;
}

vd_mono vdi_kube_fetches_run(struct vdi_kube_fetches *fetches, vd_mono now)
{
	struct vdi_kube_fetch *fetch;
	vd_mono		       due;

	while ((fetch = next_to_start(fetches, now, &due)) != NULL)
		if (!start(fetch))
			return VD_NEVER; /* run is called when the identity is there */
	return due;
}
