/* How: the transcoder of storage/k8s_proto, with what HTTP adds: which message belongs to a request, envelopes, and what is said when a value does not
 * fit. Objects that nobody checked can be in a store; then JSON is answered, when the client takes it. */
#include "protobuf.h"

#include <stdio.h>

#include "negotiate.h"

/* Of an answer as protobuf. */
#define ANSWER_MAX ((size_t) 64 << 20)

static const char meta_v1[] = "meta.k8s.io/v1";

static bool is_scale(const struct vdi_request *request)
{
	return vd_bytes_equal(request->route.subresource, vd_bytes_of("scale"));
}

static const struct vdi_k8s_message *message_of(const char *api_version, const char *kind)
{
	return vdi_k8s_kind_find(vd_bytes_of(api_version), vd_bytes_of(kind));
}

bool vdi_protobuf_serves(const struct vdi_request *request)
{
	char version[VDI_RESOURCE_NAME_MAX];

	return is_scale(request) || message_of(vdi_resource_api_version(request->resource, version), request->resource->kind) != NULL;
}

void vdi_protobuf_init(struct vdi_protobuf *protobuf, const struct vdi_resource *resource, bool scale, const struct vdi_negotiated *form)
{
	if (form->form == VDI_FORM_METADATA || form->form == VDI_FORM_METADATA_LIST) {
		protobuf->api_version = vd_bytes_of(form->v1beta1 ? "meta.k8s.io/v1beta1" : meta_v1);
		protobuf->kind = vd_bytes_of("PartialObjectMetadata");
		protobuf->message = message_of(meta_v1, "PartialObjectMetadata");
		return;
	}
	protobuf->api_version = vd_bytes_of(scale ? "autoscaling/v1" : vdi_resource_api_version(resource, protobuf->buffer));
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
	if (result == VD_UNSUPPORTED) /* a kind that this path does not hold, in any form */
		result = VD_BAD_REQUEST;
	vdi_http_status_set(status, vd_status_http(result), vd_status_reason(result), "the body cannot be read: %s", error.message);
	return VD_INVALID;
}

bool vdi_protobuf_decode_body(struct vdi_request *request)
{
	struct vdi_buffer json;

	vdi_buffer_init(&json, VDI_PROTOBUF_BODY_MAX);
	if (vdi_protobuf_decode((struct vd_bytes) { request->body, request->body_size }, &json, &request->status) != VD_OK) {
		vdi_buffer_fini(&json);
		vdi_request_fail(request, &request->status);
		return false;
	}
	vdi_free(request->body);
	request->body = json.data;
	request->body_size = json.size;
	request->body_capacity = json.capacity;
	return true;
}

/* ---- Answers ---- */

vd_status vdi_protobuf_write(struct vdi_buffer *out, const struct vdi_protobuf *protobuf, struct vd_bytes json, vd_rev revision,
			     struct vd_error *reterr)
{
	struct vdi_k8s_proto_options options = { .resource_version = VD_BYTES_NONE };
	char			     text[24];

	if (revision > 0) {
		options.resource_version.data = text;
		options.resource_version.size = (size_t) snprintf(text, sizeof text, "%lld", (long long) revision);
	}
	return vdi_k8s_proto_from_json(protobuf->message, json, &options, out, reterr);
}

static vd_status write_enveloped(struct vdi_buffer *out, const struct vdi_protobuf *protobuf, struct vd_bytes json, vd_rev revision,
				 struct vd_error *reterr)
{
	size_t mark = vdi_k8s_proto_envelope_begin(out, protobuf->api_version, protobuf->kind);

	VDI_TRY(vdi_protobuf_write(out, protobuf, json, revision, reterr));
	vdi_k8s_proto_envelope_end(out, mark);
	return vdi_buffer_status(out);
}

static void status_init(struct vdi_protobuf *protobuf)
{
	protobuf->api_version = vd_bytes_of("v1");
	protobuf->kind = vd_bytes_of("Status");
	protobuf->message = message_of("v1", "Status");
}

void vdi_protobuf_reply_buffer(struct vdi_request *request, int code, const char *headers, struct vdi_buffer *out)
{
	struct vdi_out body = { .data = out->data, .size = out->size, .capacity = out->capacity, .failed = out->status != VD_OK };

	vdi_buffer_init(out, out->size_max);
	vdi_request_reply(request, code, VDI_K8S_PROTO_TYPE, headers, &body);
}

void vdi_protobuf_refuse(struct vdi_request *request, const char *why)
{
	request->form.protobuf = false; /* the Status is JSON: what else */
	vdi_http_status_set(&request->status, 406, "NotAcceptable", "this can be answered as application/json only: %s", why);
	vdi_request_fail(request, &request->status);
}

bool vdi_protobuf_reply(struct vdi_request *request, int code, struct vd_bytes json, vd_rev revision)
{
	struct vdi_protobuf protobuf;
	struct vdi_buffer   out;
	struct vd_error	    error = { 0 };
	vd_status	    status;

	vdi_protobuf_init(&protobuf, request->resource, is_scale(request), &request->form);
	vdi_buffer_init(&out, ANSWER_MAX);
	status = write_enveloped(&out, &protobuf, json, revision, &error);
	if (status == VD_OK) {
		vdi_protobuf_reply_buffer(request, code, "", &out);
		return true;
	}
	vdi_buffer_fini(&out);
	if (status == VD_NOMEM)
		vdi_request_fail_nomem(request);
	else if (request->form.json_too)
		return false;
	else
		vdi_protobuf_refuse(request, error.message);
	return true;
}

void vdi_protobuf_reply_status(struct vdi_request *request, int code, const char *headers, struct vd_bytes json)
{
	struct vdi_protobuf protobuf;
	struct vdi_buffer   out;
	struct vdi_out	    body = VDI_OUT_INIT;

	vdi_buffer_init(&out, ANSWER_MAX);
	status_init(&protobuf);
	if (request->form.protobuf && write_enveloped(&out, &protobuf, json, 0, NULL) == VD_OK) {
		vdi_protobuf_reply_buffer(request, code, headers, &out);
		return;
	}
	vdi_buffer_fini(&out);
	vdi_out_bytes(&body, json);
	vdi_out_raw(&body, "\n");
	vdi_request_reply(request, code, "application/json", headers, &body);
}

/* ---- Events ---- */

vd_status vdi_protobuf_event(struct vdi_buffer *out, const struct vdi_protobuf *protobuf, const char *type, struct vd_bytes json, vd_rev revision,
			     struct vd_error *reterr)
{
	size_t	  start = out->size, object, raw, size;
	vd_status status;

	vdi_buffer_append(out, (struct vd_bytes) { "\0\0\0", 4 }); /* the length, when it is known */
	vdi_k8s_proto_bytes(out, 1, vd_bytes_of(type));
	object = vdi_k8s_proto_begin(out, 2);
	raw = vdi_k8s_proto_begin(out, 1);
	status = write_enveloped(out, protobuf, json, revision, reterr);
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

	status_init(&protobuf);
	return vdi_protobuf_event(out, &protobuf, "ERROR", status_json, 0, NULL);
}
