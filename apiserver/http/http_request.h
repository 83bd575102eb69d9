/* One request, from its head to its response.
 *
 * Lives on its connection's loop. A handler responds with vdi_request_reply, vdi_request_fail or by giving
 * the connection a stream; or it starts a call that completes on another thread, and continues in a function
 * of its own (vdi_request_await). If the client disconnects, the request loses its connection and is freed as
 * soon as no call is in flight.
 */
#ifndef VDI_HTTP_REQUEST_H
#define VDI_HTTP_REQUEST_H

#include "http_params.h"
#include "http_route.h"
#include <stdatomic.h>

#include "http_server.h"
#include "http_status.h"
#include "table.h"
#include "work_queue.h"

struct vdi_debug;
struct vdi_write;

struct vdi_request {
	/* Owned by the loop's thread. */
	struct vd_server	   *server;
	struct vdi_http_loop	   *loop;
	struct vdi_http_connection *connection; /* NULL: the client is gone, or the response was sent */
	char			   *head_text;
	struct vdi_http_head	    head;
	struct vdi_route	    route;
	struct vdi_params	    params;
	struct vdi_resource	   *resource; /* one reference, from dispatch on */
	struct vdi_negotiated	    form;
	struct vdi_http_chunked	    chunked;
	char			   *body;
	size_t			    body_size;
	size_t			    body_capacity;
	struct vdi_http_status	    status;	  /* memory for an error response */
	struct vdi_write	   *write;	  /* state of a write */
	struct vdi_work		    list_work;	  /* work item of a list that a worker searches */
	struct vd_list_options	    list_options; /* of a list; slices point into params and route */
	struct vd_list		   *unsearched;	  /* owned: a list whose objects list_work will find */
	void (*list_resume)(struct vdi_request *request);
	struct vdi_debug *debug;			 /* state of a debug dump */
	void (*free_state)(struct vdi_request *request); /* frees write or debug; NULL: neither exists */
	vd_mono		      started;
	struct vdi_metric    *inflight;	  /* to be lowered at the end */
	struct vdi_identity  *identity;	  /* of the client; one reference, from dispatch on */
	struct vdi_account   *account;	  /* one reference; NULL: no limits */
	bool		      is_counted; /* counted in the account, by kind */
	bool		      is_admitted;
	enum vdi_request_kind kind;
	struct vdi_out	      warnings; /* Warning header lines of the response */
	bool		      pretty;
	bool		      is_creating; /* counted in its resource's cache */
	bool		      is_short;	   /* writes one object: limited by the server's write_limit */
	bool		      is_late;	   /* was answered 504 while its handler continues */

	/* Result of the call that was awaited. Written by the thread that completes it, read afterwards. */
	void (*resume)(struct vdi_request *request);
	struct vdi_request *completed_next;
	_Atomic int	    waiting; /* states: see http_request.c */
	vd_status	    result;
	struct vd_error	    error;
	struct vd_object   *object; /* one reference */
	struct vd_list	   *list;   /* owned */
	vd_rev		    revision;
};

/* ---- Lifetime (http_connection.c) ---- */

/* Copies the head. NULL: out of memory. */
struct vdi_request *vdi_request_new(struct vdi_http_connection *connection, struct vd_bytes head_bytes,
				    struct vdi_http_refusal *ret_refusal);
/* The connection releases the request; frees it now or when the call in flight has completed. */
void vdi_request_detach(struct vdi_request *request);
/* The awaited call has completed: continues the request, or frees it. */
void vdi_request_continue(struct vdi_request *request);
/* Takes more of the body. VD_AGAIN: incomplete; VD_OK: complete, *ret_taken bytes used. */
VDI_MUST_USE vd_status vdi_request_body(struct vdi_request *request, struct vd_bytes bytes, size_t *ret_taken,
					struct vdi_http_refusal *ret_refusal);

/* Returns Kubernetes' verb for objects and collections; otherwise the method in lower case; "" for other
 * methods. */
const char *vdi_request_verb(const struct vdi_request *request);

/* ---- Waiting ---- */

/* Call before starting a call that may complete on any thread. */
void vdi_request_await(struct vdi_request *request, void (*resume)(struct vdi_request *request));
/* Call after starting it. A status other than VD_OK means that it failed at once and is not in flight.
 * Continues the request directly if it has completed already. */
void vdi_request_awaited(struct vdi_request *request, vd_status status, const struct vd_error *error);
/* Callbacks for the call; arg is the request. */
void vdi_request_got_object(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
			    const struct vd_error *error);
void vdi_request_got_list(void *arg, vd_status status, struct vd_list *list, const struct vd_error *error);
void vdi_request_drop_result(struct vdi_request *request);

/* ---- Responses ---- */

/* Responds with body, taking it over (it may be pretty-printed). headers: further header lines, or "". */
void vdi_request_reply(struct vdi_request *request, int code, const char *content_type, const char *headers,
		       struct vdi_out *body);
/* Responds with status. */
void vdi_request_fail(struct vdi_request *request, const struct vdi_http_status *status);
/* Responds with a Status and its code, in the requested form. */
void vdi_request_reply_status(struct vdi_request *request, const struct vdi_http_status *status,
			      const char *headers);
/* Responds to a failed call, given its status and error, with upstream's text for this verb. */
void vdi_request_fail_result(struct vdi_request *request, const char *verb, vd_status code,
			     const struct vd_error *error);
void vdi_request_fail_nomem(struct vdi_request *request);
/* Responds 429: the client is at its limit. */
void vdi_request_fail_too_many(struct vdi_request *request);
/* Writes the head of a response of unknown size. */
void vdi_request_stream_head(struct vdi_request *request, struct vdi_out *out, const char *content_type,
			     bool chunked);
/* As vdi_request_stream_head, always chunked, for encoded content. headers: further header lines, or "". */
void vdi_request_encoded_head(struct vdi_request *request, struct vdi_out *out, int code,
			      const char *content_type, const char *headers, const char *encoding);
/* Responds with the object in the requested form, with revision. Frees nothing. */
void vdi_request_reply_object(struct vdi_request *request, int code, struct vd_object *object,
			      vd_rev revision);
/* As vdi_request_reply_object for a text that is not stored (dry runs, scales). text is borrowed. */
void vdi_request_reply_text(struct vdi_request *request, int code, struct vd_bytes text);

/* ---- Protobuf ---- */

/* Returns true if the request's kind, or a Scale, can be read and written as protobuf. */
bool vdi_request_serves_protobuf(const struct vdi_request *request);
/* Replaces a protobuf body by its JSON. False: a response was sent. */
bool vdi_request_decode_body(struct vdi_request *request);
/* Responds with json's object (or a Status) as protobuf. False, and nothing was sent: it has no protobuf
 * form, but the client accepts JSON. */
bool vdi_request_reply_protobuf(struct vdi_request *request, int code, struct vd_bytes json, vd_rev revision);
/* For a Status, in the requested form. json is borrowed. */
void vdi_request_reply_protobuf_status(struct vdi_request *request, int code, const char *headers,
				       struct vd_bytes json);
/* Responds with out, a complete protobuf envelope, and takes it over. */
void vdi_request_reply_buffer(struct vdi_request *request, int code, const char *headers,
			      struct vdi_buffer *out);
/* Responds 406: the object has no protobuf form, and the client does not accept JSON. */
void vdi_request_refuse_protobuf(struct vdi_request *request, const char *why);

#endif
