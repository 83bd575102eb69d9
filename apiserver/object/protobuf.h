/* Bodies and answers in Kubernetes' protobuf, for the kinds that have a table.
 *
 * All other code handles JSON only: a body is translated before any other step, an answer after all others.
 * Any thread.
 */
#ifndef VDI_PROTOBUF_H
#define VDI_PROTOBUF_H

#include "http_status.h"
#include "k8s_proto.h"
#include "negotiate.h"
#include "resources.h"

/* The protobuf form of a resource's objects. */
struct vdi_protobuf {
	const struct vdi_k8s_message *message;
	struct vd_bytes		      kind;
	struct vd_bytes		      api_version;
	char			      buffer[VDI_RESOURCE_NAME_MAX]; /* api_version may point into it */
};

/* Returns true if the kind has a table. */
bool vdi_protobuf_supports(const struct vdi_resource *resource);

/* Translates a protobuf body into JSON. VD_INVALID or VD_NOMEM with status: 400, 413, 500. Any thread. */
VDI_MUST_USE vd_status vdi_protobuf_decode(struct vd_bytes body, struct vdi_buffer *json,
					   struct vdi_http_status *status);
#define VDI_PROTOBUF_BODY_MAX ((size_t) 8 << 20) /* of the JSON */

/* Initialises for the object form (kind of the resource; scale: Scale) or a metadata form. The kind must have
 * a table. */
void vdi_protobuf_init(struct vdi_protobuf *protobuf, const struct vdi_resource *resource, bool scale,
		       const struct vdi_negotiated *form);
/* Appends one object without envelope; json as stored. revision replaces its resourceVersion; 0: keeps that
 * of json. VD_BAD_REQUEST: the stored object has members of a wrong type; VD_NOMEM, VD_TOO_BIG. */
VDI_MUST_USE vd_status vdi_protobuf_write(struct vdi_buffer *out, const struct vdi_protobuf *protobuf,
					  struct vd_bytes json, vd_rev revision, struct vd_error *reterr);

/* The same with its envelope, for an answer. */
VDI_MUST_USE vd_status vdi_protobuf_write_enveloped(struct vdi_buffer	      *out,
						    const struct vdi_protobuf *protobuf, struct vd_bytes json,
						    vd_rev revision, struct vd_error *reterr);
/* Initialises for a Status. */
void vdi_protobuf_init_status(struct vdi_protobuf *protobuf);

/* Appends the content of a watch frame: the event's length and the event, whose object is json. */
VDI_MUST_USE vd_status vdi_protobuf_event(struct vdi_buffer *out, const struct vdi_protobuf *protobuf,
					  const char *type, struct vd_bytes json, vd_rev revision,
					  struct vd_error *reterr);
VDI_MUST_USE vd_status vdi_protobuf_error_event(struct vdi_buffer *out, struct vd_bytes status_json);

#endif
