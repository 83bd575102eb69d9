/* One watch request of a source, and its events.
 *
 * On the client's actor. Embedded in its owner. Memory: at most one event that has not arrived completely,
 * up to 64 MiB. */
#ifndef VDI_KUBE_FEED_H
#define VDI_KUBE_FEED_H

#include "buffer.h"
#include "json_stream.h"
#include "kube_client.h"
#include "kube_object.h"

struct vdi_kube_source;

struct vdi_kube_feed {
	/* Set by the owner before the start. */
	struct vdi_kube_source *source;
	/* The server has accepted the watch (status 200). NULL: nothing to do. */
	void (*opened)(struct vdi_kube_feed *feed);
	/* An event other than ERROR; borrowed for the call. A status other than VD_OK ends the feed with it
	 * and with the message in reterr. */
	vd_status (*event)(struct vdi_kube_feed *feed, const struct vdi_kube_event *event,
			   struct vd_error *reterr);
	/* Called once for each start, except after vdi_kube_feed_end. VD_OK: the server ended the watch in
	 * time. Otherwise code is the HTTP status (0: no response): 410 of a response or of an ERROR event
	 * is VD_EXPIRED, 504 for a revision in the future VD_TOO_LARGE_REVISION, VD_BAD_REQUEST bytes that
	 * are no events. The function may start the feed again. */
	void (*ended)(struct vdi_kube_feed *feed, vd_status status, const struct vd_error *error);

	int			  code;
	bool			  has_progressed; /* something has arrived since the start */
	struct vdi_kube_head	  head;
	struct vdi_kube_exchange *exchange; /* NULL: not started */
	struct vdi_json_stream	  frames;
	struct vdi_buffer	  refusal; /* body of a response that is not 200 */
	struct vd_error		  error;   /* of an event; code VD_OK: none */
};

/* Errors as vdi_kube_start. path is borrowed. */
VDI_MUST_USE vd_status vdi_kube_feed_start(struct vdi_kube_feed *feed, const char *path,
					   struct vd_error *reterr);
/* Gives up the request. Accepts a zeroed feed; may be repeated. Not inside event, which returns a status
 * instead. */
void vdi_kube_feed_end(struct vdi_kube_feed *feed);

#endif
