/* Uses the transcoder of storage/codec/k8s_proto and adds the parts of HTTP: the message type of a request,
 * envelopes, and errors. A store can hold objects that were never checked; if one cannot be encoded, the
 * answer is JSON if the client accepts it. */
#include "protobuf.h"

#include <stdio.h>

#include "negotiate.h"

static const char meta_v1[] = "meta.k8s.io/v1";

static const struct vdi_k8s_message *message_of(const char *api_version, const char *kind)
{
	return vdi_k8s_kind_find(vd_bytes_of(api_version), vd_bytes_of(kind));
}

bool vdi_protobuf_supports(const struct vdi_resource *resource)
{
	char version[VDI_RESOURCE_NAME_MAX];

	return message_of(vdi_resource_api_version(resource, version), resource->kind) != NULL;
}

void vdi_protobuf_init(struct vdi_protobuf *protobuf, const struct vdi_resource *resource, bool scale,
		       const struct vdi_negotiated *form)
{
	if (form->form == VDI_FORM_METADATA || form->form == VDI_FORM_METADATA_LIST) {
		protobuf->api_version = vd_bytes_of(form->v1beta1 ? "meta.k8s.io/v1beta1" : meta_v1);
		protobuf->kind = vd_bytes_of("PartialObjectMetadata");
		protobuf->message = message_of(meta_v1, "PartialObjectMetadata");
		return;
	}
	protobuf->api_version =
		vd_bytes_of(scale ? "autoscaling/v1" : vdi_resource_api_version(resource, protobuf->buffer));
	protobuf->kind = vd_bytes_of(scale ? "Scale" : resource->kind);
	protobuf->message = vdi_k8s_kind_find(protobuf->api_version, protobuf->kind);
}

/* ---- Bodies ---- */

vd_status vdi_protobuf_decode(struct vd_bytes body, struct vdi_buffer *json, struct vdi_http_status *status)
{
	struct vd_error error = { 0 };
	vd_status	result;

	result = vdi_k8s_proto_to_json(body, json, &error);
	if (result == VD_OK)
		return VD_OK;
	if (result == VD_NOMEM) {
		vdi_http_status_set(status, 500, "InternalError", "Internal error occurred: out of memory");
		return VD_NOMEM;
	}
	if (result == VD_UNSUPPORTED) /* the path has no such kind in any form */
		result = VD_BAD_REQUEST;
	vdi_http_status_set(status, vd_status_http(result), vd_status_reason(result),
			    "the body cannot be read: %s", error.message);
	return VD_INVALID;
}

/* ---- Answers ---- */

vd_status vdi_protobuf_write(struct vdi_buffer *out, const struct vdi_protobuf *protobuf,
			     struct vd_bytes json, vd_rev revision, struct vd_error *reterr)
{
	struct vdi_k8s_proto_options options = { .resource_version = VD_BYTES_NONE };
	char			     text[24];

	if (revision > 0) {
		options.resource_version.data = text;
		options.resource_version.size =
			(size_t) snprintf(text, sizeof text, "%lld", (long long) revision);
	}
	return vdi_k8s_proto_from_json(protobuf->message, json, &options, out, reterr);
}

vd_status vdi_protobuf_write_enveloped(struct vdi_buffer *out, const struct vdi_protobuf *protobuf,
				       struct vd_bytes json, vd_rev revision, struct vd_error *reterr)
{
	size_t mark = vdi_k8s_proto_envelope_begin(out, protobuf->api_version, protobuf->kind);

	VDI_TRY(vdi_protobuf_write(out, protobuf, json, revision, reterr));
	vdi_k8s_proto_envelope_end(out, mark);
	return vdi_buffer_status(out);
}

void vdi_protobuf_init_status(struct vdi_protobuf *protobuf)
{
	protobuf->api_version = vd_bytes_of("v1");
	protobuf->kind = vd_bytes_of("Status");
	protobuf->message = message_of("v1", "Status");
}

/* ---- Events ---- */

vd_status vdi_protobuf_event(struct vdi_buffer *out, const struct vdi_protobuf *protobuf, const char *type,
			     struct vd_bytes json, vd_rev revision, struct vd_error *reterr)
{
	size_t	  start = out->size, object, raw, size;
	vd_status status;

	vdi_buffer_append(out, (struct vd_bytes) { "\0\0\0", 4 }); /* placeholder for the length */
	vdi_k8s_proto_bytes(out, 1, vd_bytes_of(type));
	object = vdi_k8s_proto_begin(out, 2);
	raw = vdi_k8s_proto_begin(out, 1);
	status = vdi_protobuf_write_enveloped(out, protobuf, json, revision, reterr);
	if (status != VD_OK)
		return status;
	vdi_k8s_proto_end(out, raw);
	vdi_k8s_proto_end(out, object);
	VDI_TRY(vdi_buffer_status(out));
	size = out->size - start - 4;
	for (int i = 0; i < 4; i++)
		out->data[start + (size_t) i] = (char) (size >> (24 - 8 * i));
	return VD_OK;
}

vd_status vdi_protobuf_error_event(struct vdi_buffer *out, struct vd_bytes status_json)
{
	struct vdi_protobuf protobuf;

	vdi_protobuf_init_status(&protobuf);
	return vdi_protobuf_event(out, &protobuf, "ERROR", status_json, 0, NULL);
}
