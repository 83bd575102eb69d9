/* Bodies and answers in Kubernetes' protobuf, for the kinds that have a table (H-320..H-330, R-648).
 *
 * Behind these functions there is JSON only: a body is translated before anything looks at it, an answer after everything has. On the request's loop.
 */
#ifndef VDI_PROTOBUF_H
#define VDI_PROTOBUF_H

#include "http_request.h"
#include "k8s_proto.h"

/* How an object of a resource is written in a form. */
struct vdi_protobuf {
	const struct vdi_k8s_message *message;
	struct vd_bytes		      kind;
	struct vd_bytes		      api_version;
	char			      buffer[VDI_RESOURCE_NAME_MAX]; /* what api_version may point into */
};

/* Whether what the request is about (its kind, or a Scale) can be read and written as protobuf. */
bool vdi_protobuf_serves(const struct vdi_request *request);

/* A body that came as protobuf, as JSON. VD_INVALID or VD_NOMEM with status: 400, 413, 500. Any thread. */
VDI_MUST_USE vd_status vdi_protobuf_decode(struct vd_bytes body, struct vdi_buffer *json, struct vdi_http_status *status);
/* Replaces the request's body by that. False after an answer was sent. */
bool vdi_protobuf_decode_body(struct vdi_request *request);
#define VDI_PROTOBUF_BODY_MAX ((size_t) 8 << 20) /* of the JSON */

/* For an object form (kind of the resource; scale: Scale) or a metadata form. The kind must have a table. */
void vdi_protobuf_init(struct vdi_protobuf *protobuf, const struct vdi_resource *resource, bool scale, const struct vdi_negotiated *form);
/* Appends one object without envelope; json as stored. revision replaces its resourceVersion; 0: as json says. VD_BAD_REQUEST: what is stored is not
 * of the kind's types; VD_NOMEM, VD_TOO_BIG. */
VDI_MUST_USE vd_status vdi_protobuf_write(struct vdi_buffer *out, const struct vdi_protobuf *protobuf, struct vd_bytes json, vd_rev revision,
					  struct vd_error *reterr);

/* Answers with json's object (a Status, too) as protobuf. False, and nothing was sent: it cannot be written so, but JSON would be taken. */
bool vdi_protobuf_reply(struct vdi_request *request, int code, struct vd_bytes json, vd_rev revision);
/* For a Status, in the form that was asked for. json is lent. */
void vdi_protobuf_reply_status(struct vdi_request *request, int code, const char *headers, struct vd_bytes json);
/* Answers what out holds, an envelope, and takes it over. */
void vdi_protobuf_reply_buffer(struct vdi_request *request, int code, const char *headers, struct vdi_buffer *out);
/* Answers that it cannot be written as protobuf, and JSON would not be taken (406). */
void vdi_protobuf_refuse(struct vdi_request *request, const char *why);

/* The content of a frame: the event's length and the event. object is the JSON that the event carries. */
VDI_MUST_USE vd_status vdi_protobuf_event(struct vdi_buffer *out, const struct vdi_protobuf *protobuf, const char *type, struct vd_bytes json,
					  vd_rev revision, struct vd_error *reterr);
VDI_MUST_USE vd_status vdi_protobuf_error_event(struct vdi_buffer *out, struct vd_bytes status_json);

#endif
