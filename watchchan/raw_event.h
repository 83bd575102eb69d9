/* A raw event is a record as the store delivered it, before decoding; a slot holds it while it becomes a
 * typed event. */
#ifndef VDI_RAW_EVENT_H
#define VDI_RAW_EVENT_H

#include "watchchan.h"

enum vdi_raw_kind {
	VDI_RAW_INITIAL,  /* a key of the initial state */
	VDI_RAW_CHANGE,	  /* a put or a delete from the store's watch */
	VDI_RAW_BOOKMARK, /* store progress, or the end of the initial state */
	VDI_RAW_ERROR,	  /* last event; the error itself is in the watchChan */
};

struct vdi_raw_event {
	enum vdi_raw_kind kind;
	bool		  is_delete;
	bool		  initial_events_end;
	bool		  more_in_revision;
	bool		  has_previous; /* the store sent the previous record */
	vd_rev		  revision;
	struct vd_kv	 *kv;	    /* reference or NULL */
	struct vd_kv	 *previous; /* reference; NULL if absent or if it will not be decoded */
	vd_mono		  received;
};

enum vdi_slot_state { VDI_SLOT_EMPTY, VDI_SLOT_RAW, VDI_SLOT_DECODING, VDI_SLOT_DONE };

/* EMPTY -> RAW (filled by the watchChan's actor) -> DECODING (one worker, or the actor itself) -> DONE ->
 * EMPTY (taken in order by the actor). */
struct vdi_slot {
	enum vdi_slot_state	   state; /* under the watchChan's lock if there are workers */
	struct vdi_raw_event	   raw;
	vd_status		   status; /* result of decoding */
	bool			   emit;   /* the event is delivered (the predicate accepts it) */
	struct vdi_watchchan_event event;
	struct vd_error		   error; /* set if status is an error */
};

#endif
