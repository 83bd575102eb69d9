/* What the writing handlers share: the state of a write under way. */
#ifndef VDI_HTTP_WRITE_H
#define VDI_HTTP_WRITE_H

#include "http_request.h"
#include "object_call.h"
#include "object_edit.h"

#define VDI_WRITE_TRIES_MAX 8
/* Attempts of a long write that met a new state each time; the time of the request ends most of them
 * before. */
#define VDI_WRITE_MEETINGS_MAX 1000

/* Writes are computed on the loop when they are short, and in the server's work queue otherwise: `compute`
 * then runs on a thread of that, and touches of the request only what the dispatch fixed, and write. */
struct vdi_write {
	struct vdi_request *request;
	struct vdi_work	    work;
	vd_status (*compute)(struct vdi_request *request);
	vd_status	  computed; /* what it answered */
	bool		  is_long;
	_Atomic bool	  is_too_long; /* the last attempt met a state that only the work queue may edit */
	struct vdi_buffer json;	       /* of a body that came as protobuf */
	struct vdi_out	  warnings;    /* of the check of the body */

	struct vdi_edit	       edit;
	struct vdi_edited      edited;	  /* of the last attempt */
	struct vdi_http_status status;	  /* why the last attempt was refused; code 0: it was not */
	struct vdi_out	       current;	  /* JSON of the state the last attempt saw */
	vd_rev		       seen;	  /* its revision */
	bool		       is_edited; /* edited and status are what became of it */
	/* reference to the state that the last attempt met and left to a worker; NULL: none */
	struct vd_object *newest;
	unsigned	  tries;
	unsigned	  meetings; /* attempts that met a state only a worker may edit */
	bool		  dry_run;

	unsigned	  guard_tries;
	struct vd_object *guard; /* of a create: its namespace, which must still be as it was */

	/* Deletes. */
	struct vdi_delete_options options;
	struct vdi_object_call	  call;
	struct vd_list		 *list;	  /* of a collection */
	struct vd_object	 *object; /* of a dry run: a reference to the present state */
};

/* Makes request->write, with name and namespace from the path, and checks the query; NULL after an answer was
 * sent. */
struct vdi_write *vdi_write_begin(struct vdi_request *request, const char *options_kind);
/* New randomness for the next attempt. */
void vdi_write_shuffle(struct vdi_request *request);
/* The refusal of the last attempt if there was one, else the result. */
void vdi_write_fail(struct vdi_request *request, const char *verb);
/* Fills write->current and write->seen. */
VDI_MUST_USE vd_status vdi_write_look(struct vdi_write *write, struct vd_object *current);
/* The object of text, still at the revision that was seen, into write->current: the answer to a dry run.
 * VD_NOMEM with write->status. */
VDI_MUST_USE vd_status vdi_write_show_dry(struct vdi_write *write, struct vd_bytes text);
/* Runs compute here or in the work queue, then resume on the loop. May answer 429. */
void vdi_write_compute(struct vdi_request *request, vd_status (*compute)(struct vdi_request *request),
		       void (*resume)(struct vdi_request *request));
/* application/json and its likes; answers 415 otherwise. */
bool vdi_write_is_json(struct vdi_request *request);

#endif
