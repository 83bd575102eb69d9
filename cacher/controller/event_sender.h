/* Events as requests: names, JSON, POST and PATCH. Any thread; does not block.
 */
#ifndef VDI_EVENT_SENDER_H
#define VDI_EVENT_SENDER_H

#include "event_correlator.h"
#include "kube_requests.h"

struct vdi_event_sender {
	struct vdi_kube_requests requests;
	char			*component;
	char			*host; /* may be empty */
};

/* Sets the name of a new Event: that of the object, made valid and short, and unique_ns in hexadecimal. */
void vdi_event_name(struct vdi_event *event, int64_t unique_ns);
/* Creates the Event, or patches count, message and time of the one that has its name. Errors as of
 * vd_kube_request. */
VDI_MUST_USE vd_status vdi_event_send(const struct vdi_event_sender *sender, const struct vdi_event *event,
				      bool is_create, vd_kube_answer_fn done, void *arg);
/* As vd_event_recorder_open. */
VDI_MUST_USE vd_status vdi_event_recorder_open(const struct vdi_kube_requests	      *requests,
					       const struct vd_event_recorder_options *options,
					       struct vd_event_recorder		     **ret_recorder,
					       struct vd_error			      *reterr);

#endif
