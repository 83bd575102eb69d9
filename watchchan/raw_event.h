/* What the store gave us, before anyone understood it, and the slot in which it becomes a typed event. */
#ifndef VDI_RAW_EVENT_H
#define VDI_RAW_EVENT_H

#include "watchchan.h"

enum vdi_raw_kind {
	VDI_RAW_INITIAL,  /* a key of the initial state */
	VDI_RAW_CHANGE,	  /* an event of the stream */
	VDI_RAW_BOOKMARK, /* progress, or the end of the initial state */
	VDI_RAW_ERROR,	  /* the last one; the error itself is in the watchChan */
};

struct vdi_raw_event {
	enum vdi_raw_kind kind;
	bool		  is_delete;
	bool		  initial_events_end;
	bool		  more_in_revision;
	bool		  has_previous; /* the store knows the state before */
	vd_rev		  revision;
	struct vd_kv	 *kv;	    /* reference or NULL */
	struct vd_kv	 *previous; /* reference, where it will be decoded; or NULL */
	vd_mono		  received;
};

enum vdi_slot_state { VDI_SLOT_EMPTY, VDI_SLOT_RAW, VDI_SLOT_DECODING, VDI_SLOT_DONE };

/* EMPTY -> RAW (filled by the watchChan's actor) -> DECODING (one worker, or the actor itself) -> DONE ->
 * EMPTY (taken in order by the actor). */
struct vdi_slot {
	enum vdi_slot_state	   state; /* under the watchChan's lock when there are workers */
	struct vdi_raw_event	   raw;
	vd_status		   status; /* of decoding */
	bool			   emit;   /* the predicate lets it through */
	struct vdi_watchchan_event event;
	struct vd_error		   error; /* with status */
};

#endif
