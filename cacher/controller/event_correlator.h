/* Combines, counts and limits events before they are sent: client-go's EventCorrelator. Not thread-safe: one
 * owner. Bounded: 4,096 records of each kind; older ones are forgotten.
 */
#ifndef VDI_EVENT_CORRELATOR_H
#define VDI_EVENT_CORRELATOR_H

#include <vedette/event_recorder.h>

#include "event_cache.h"

enum vdi_event_field {
	VDI_EVENT_API_VERSION,
	VDI_EVENT_KIND,
	VDI_EVENT_NAMESPACE,
	VDI_EVENT_NAME,
	VDI_EVENT_UID,
	VDI_EVENT_RESOURCE_VERSION,
	VDI_EVENT_FIELD_PATH,
	VDI_EVENT_TYPE,
	VDI_EVENT_REASON,
	VDI_EVENT_MESSAGE,
	VDI_EVENT_FIELDS
};

#define VDI_EVENT_NAME_SIZE 254

/* One event; the texts are in its own memory. */
struct vdi_event {
	struct vdi_event *next;
	struct vd_bytes	  fields[VDI_EVENT_FIELDS];
	vd_wall		  first, last;
	uint32_t	  count;
	bool		  is_combined;		     /* the message gets a prefix */
	char		  name[VDI_EVENT_NAME_SIZE]; /* of the Event */
	char		  data[];
};

#define VDI_EVENT_COMBINED_PREFIX "(combined from similar events): "

struct vdi_event_limits {
	uint32_t similar_max;
	vd_dur	 similar_interval;
	uint32_t burst;
	vd_dur	 refill;
};

struct vdi_event_correlator {
	struct vdi_event_limits limits;
	uint64_t		seeds[2];
	struct vdi_event_cache	similar, seen, sources;
};

#define VDI_EVENT_SIMILAR_MAX 64

void vdi_event_correlator_init(struct vdi_event_correlator   *correlator,
			       const struct vdi_event_limits *limits);
void vdi_event_correlator_fini(struct vdi_event_correlator *correlator);
/* Decides what is sent for a new event (count 1, with its name). VD_OK: send it; if count is above 1 now,
 * patch the Event of its name. VD_FULL: too many events about the object; do not send it. Without memory
 * the event is sent as it is. */
VDI_MUST_USE vd_status vdi_event_correlate(struct vdi_event_correlator *correlator, struct vdi_event *event,
					   vd_mono now);

#endif
