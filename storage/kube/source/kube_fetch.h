/* One request of a source whose response is read as a whole.
 *
 * Reads may be repeated: after a lost connection, 429, 500, 502, 503 and 504 the request is sent again, with
 * growing delays, until the client's request_timeout has passed since the begin. Other requests are sent
 * again only after 429, which means that they were not applied.
 *
 * On the client's actor. Embedded in its owner. */
#ifndef VDI_KUBE_FETCH_H
#define VDI_KUBE_FETCH_H

#include <sys/queue.h>

#include "buffer.h"
#include "kube_client.h"

#define VDI_KUBE_BODY_MAX ((size_t) 64 << 20)

struct vdi_kube_source;

struct vdi_kube_fetch {
	/* Set by the owner before the begin. */
	struct vdi_kube_source *source;
	const char	       *method;
	bool			repeat;
	/* Called once for each begin, except after vdi_kube_fetch_end. VD_OK: 2xx, the body is in body.
	 * Otherwise code is the HTTP status (0: no response), and status as in vd_kube_answer_fn; VD_TOO_BIG
	 * also if the body is longer than VDI_KUBE_BODY_MAX. The function may begin the fetch again, or end
	 * and free it. */
	void (*done)(struct vdi_kube_fetch *fetch, vd_status status, const struct vd_error *error);

	int		  code;
	struct vdi_buffer body;

	LIST_ENTRY(vdi_kube_fetch) node;
	char			 *path, *request; /* owned; request: body or NULL */
	size_t			  request_size;
	struct vdi_kube_exchange *exchange; /* NULL: waits for its start or repetition */
	struct vdi_kube_backoff	  backoff;
	vd_mono			  deadline;
	struct vdi_kube_head	  head;
	bool			  is_begun;
};
LIST_HEAD(vdi_kube_fetches, vdi_kube_fetch);

/* Takes over path and request (NULL: none), also on failure. A fetch that is in progress is ended first.
 * VD_NOMEM: path is NULL; done is not called. */
VDI_MUST_USE vd_status vdi_kube_fetch_begin(struct vdi_kube_fetch *fetch, char *path, char *request,
					    size_t request_size);
/* Gives up a request in progress and frees the buffers. Accepts a zeroed fetch; may be repeated. */
void vdi_kube_fetch_end(struct vdi_kube_fetch *fetch);
/* Starts those that wait; returns when to call again. */
vd_mono vdi_kube_fetches_run(struct vdi_kube_fetches *fetches, vd_mono now);
/* Returns true for a failure that may pass without a change of the request. */
bool vdi_kube_fetch_is_passing(int code, vd_status status);

#endif
