/* State of a write in progress, shared by the write handlers. */
#ifndef VDI_HTTP_WRITE_H
#define VDI_HTTP_WRITE_H

#include "http_request.h"
#include "object_call.h"
#include "object_edit.h"

#define VDI_WRITE_TRIES_MAX 8
/* Attempts of a long write that each met a new state; the request's deadline ends most writes before. */
#define VDI_WRITE_MEETINGS_MAX 1000

/* A short write is computed on the loop, a long one in the server's work queue: `compute` then runs on one of
 * its threads, and touches only this struct and those members of the request that are fixed at dispatch. */
struct vdi_write {
	struct vdi_request *request;
	struct vdi_work	    work;
	vd_status (*compute)(struct vdi_request *request);
	vd_status	  computed; /* result of compute */
	bool		  is_long;
	_Atomic bool	  is_too_long; /* the last attempt met an object that only the work queue may edit */
	struct vdi_buffer json;	       /* transcoded from a protobuf body */
	struct vdi_out	  warnings;    /* of the body's validation */

	struct vdi_edit	       edit;
	struct vdi_edited      edited;	  /* result of the last attempt */
	struct vdi_http_status status;	  /* error of the last attempt; code 0: none */
	struct vdi_out	       current;	  /* JSON of the object that the last attempt saw */
	vd_rev		       seen;	  /* revision of current */
	bool		       is_edited; /* edited and status are the results for that revision */
	/* the object that the last attempt left to a worker; one reference; NULL: none */
	struct vd_object *newest;
	unsigned	  tries;
	unsigned	  meetings; /* attempts that met an object only a worker may edit */
	bool		  dry_run;

	unsigned	  guard_tries;
	struct vd_object *guard; /* for a create: its namespace, which must not have changed */

	/* Deletes only. */
	struct vdi_delete_options options;
	struct vdi_object_call	  call;
	struct vd_list		 *list;	  /* of a collection */
	struct vd_object	 *object; /* in a dry run: the present object; one reference */
};

/* Makes request->write, with name and namespace from the path, and validates the query. NULL: a response was
 * sent. */
struct vdi_write *vdi_write_begin(struct vdi_request *request, const char *options_kind);
/* Draws new random numbers for the next attempt. */
void vdi_write_shuffle(struct vdi_request *request);
/* Responds with the last attempt's error if it has one, else with the result. */
void vdi_write_fail(struct vdi_request *request, const char *verb);
/* Fills write->current and write->seen. */
VDI_MUST_USE vd_status vdi_write_note_current(struct vdi_write *write, struct vd_object *current);
/* Writes the object of text, at the revision seen, to write->current, for the response to a dry run. VD_NOMEM
 * with write->status. */
VDI_MUST_USE vd_status vdi_write_show_dry(struct vdi_write *write, struct vd_bytes text);
/* Runs compute on the loop or in the work queue, then resume on the loop. May respond 429. */
void vdi_write_compute(struct vdi_request *request, vd_status (*compute)(struct vdi_request *request),
		       void (*resume)(struct vdi_request *request));
/* Returns true for application/json and application/yaml; otherwise responds 415. */
bool vdi_write_is_json(struct vdi_request *request);

#endif
