/* One request from its head to its answer.
 *
 * Lives on its connection's loop. Handlers answer with vdi_request_reply, vdi_request_fail or by giving the
 * connection a stream; or start something that ends elsewhere, and go on in a function of theirs when it has
 * (vdi_request_await). A client that goes away leaves the request without a connection: it is then freed as
 * soon as nothing is under way.
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
	/* The loop's thread only. */
	struct vd_server	   *server;
	struct vdi_http_loop	   *loop;
	struct vdi_http_connection *connection; /* NULL: the client is gone, or has been answered */
	char			   *head_text;
	struct vdi_http_head	    head;
	struct vdi_route	    route;
	struct vdi_params	    params;
	struct vdi_resource	   *resource; /* a use of it, from the dispatch on */
	struct vdi_negotiated	    form;
	struct vdi_http_chunked	    chunked;
	char			   *body;
	size_t			    body_size;
	size_t			    body_capacity;
	struct vdi_http_status	    status;	  /* room for what goes wrong */
	struct vdi_write	   *write;	  /* of writes */
	struct vdi_work		    list_work;	  /* a list that is searched by a worker */
	struct vd_list_options	    list_options; /* of a list; they point into params and route */
	struct vd_list		   *unsearched;	  /* owned: a list whose objects list_work is to find */
	void (*list_resume)(struct vdi_request *request);
	struct vdi_debug *debug;			 /* of the dump */
	void (*free_state)(struct vdi_request *request); /* frees write or debug; NULL: there is neither */
	vd_mono		      started;
	struct vdi_metric    *inflight;	  /* to be lowered at the end */
	struct vdi_identity  *identity;	  /* who sent it: a reference, from the dispatch on */
	struct vdi_account   *account;	  /* a use of it; NULL: there are no limits */
	bool		      is_counted; /* in the account, as a request of its kind */
	bool		      is_admitted;
	enum vdi_request_kind kind;
	struct vdi_out	      warnings; /* Warning header lines for the answer */
	bool		      pretty;
	bool		      is_creating; /* counted in its resource's cache */
	bool		      is_short;	   /* its time is the server's write_limit */
	bool		      is_late;	   /* it was answered 504, and its handler goes on */

	/* What was waited for. Written by whoever completes it, read after that. */
	void (*resume)(struct vdi_request *request);
	struct vdi_request *completed_next;
	_Atomic int	    waiting; /* see http_request.c */
	vd_status	    result;
	struct vd_error	    error;
	struct vd_object   *object; /* a reference */
	struct vd_list	   *list;   /* owned */
	vd_rev		    revision;
};

/* ---- Life (http_connection.c) ---- */

/* Takes a copy of the head. NULL: out of memory. */
struct vdi_request *vdi_request_new(struct vdi_http_connection *connection, struct vd_bytes head_bytes,
				    struct vdi_http_refusal *ret_refusal);
/* The connection has no more to do with it; frees it now or when what is under way has ended. */
void vdi_request_detach(struct vdi_request *request);
/* What was waited for has ended: goes on, or frees. */
void vdi_request_continue(struct vdi_request *request);
/* More of the body. VD_AGAIN: not complete; VD_OK: complete, *ret_taken bytes used. */
VDI_MUST_USE vd_status vdi_request_body(struct vdi_request *request, struct vd_bytes bytes, size_t *ret_taken,
					struct vdi_http_refusal *ret_refusal);

/* Kubernetes' verb for objects and their collections, else the method in small letters; "" for other
 * methods. */
const char *vdi_request_verb(const struct vdi_request *request);

/* ---- Waiting ---- */

/* Before the call that may end on any thread. */
void vdi_request_await(struct vdi_request *request, void (*resume)(struct vdi_request *request));
/* After it: status other than VD_OK means it failed at once and nothing is under way. Goes on right here when
 * it has already ended. */
void vdi_request_awaited(struct vdi_request *request, vd_status status, const struct vd_error *error);
/* The callbacks to give: arg is the request. */
void vdi_request_got_object(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
			    const struct vd_error *error);
void vdi_request_got_list(void *arg, vd_status status, struct vd_list *list, const struct vd_error *error);
void vdi_request_drop_result(struct vdi_request *request);

/* ---- Answering ---- */

/* Takes over body (which may be pretty-printed on the way). headers: further header lines, or "". */
void vdi_request_reply(struct vdi_request *request, int code, const char *content_type, const char *headers,
		       struct vdi_out *body);
/* Sends status. */
void vdi_request_fail(struct vdi_request *request, const struct vdi_http_status *status);
/* A Status with its code, in the form that was asked for. */
void vdi_request_reply_status(struct vdi_request *request, const struct vdi_http_status *status,
			      const char *headers);
/* request->result and error, as upstream words them for this verb. */
void vdi_request_fail_result(struct vdi_request *request, const char *verb, vd_status code,
			     const struct vd_error *error);
void vdi_request_fail_nomem(struct vdi_request *request);
/* 429: the client has as much as it may. */
void vdi_request_fail_too_many(struct vdi_request *request);
/* The head of an answer whose size is not known. */
void vdi_request_stream_head(struct vdi_request *request, struct vdi_out *out, const char *content_type,
			     bool chunked);
/* The same, always chunked, for a content that is encoded. headers: further header lines, or "". */
void vdi_request_encoded_head(struct vdi_request *request, struct vdi_out *out, int code,
			      const char *content_type, const char *headers, const char *encoding);
/* The object in the form that was asked for, with revision. Frees nothing. */
void vdi_request_reply_object(struct vdi_request *request, int code, struct vd_object *object,
			      vd_rev revision);
/* The same for a text that is not in the store (dry runs, scales). text lent. */
void vdi_request_reply_text(struct vdi_request *request, int code, struct vd_bytes text);

/* ---- Protobuf ---- */

/* Whether what the request is about (its kind, or a Scale) can be read and written as protobuf. */
bool vdi_request_serves_protobuf(const struct vdi_request *request);
/* Replaces a body that came as protobuf by its JSON. False after an answer was sent. */
bool vdi_request_decode_body(struct vdi_request *request);
/* Answers with json's object (a Status, too) as protobuf. False, and nothing was sent: it cannot be written
 * so, but JSON would be taken. */
bool vdi_request_reply_protobuf(struct vdi_request *request, int code, struct vd_bytes json, vd_rev revision);
/* For a Status, in the form that was asked for. json is lent. */
void vdi_request_reply_protobuf_status(struct vdi_request *request, int code, const char *headers,
				       struct vd_bytes json);
/* Answers what out holds, an envelope, and takes it over. */
void vdi_request_reply_buffer(struct vdi_request *request, int code, const char *headers,
			      struct vdi_buffer *out);
/* Answers that it cannot be written as protobuf, and JSON would not be taken (406). */
void vdi_request_refuse_protobuf(struct vdi_request *request, const char *why);

#endif
