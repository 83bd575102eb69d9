/* Kubernetes' protobuf to JSON and back, for every kind that k8s_proto_table.def knows (H-320..H-329,
 * R-697..R-699).
 *
 * An object travels as the bytes "k8s\0" and the message Unknown{1 typeMeta{1 apiVersion, 2 kind}, 2 raw, 3
 * contentEncoding, 4 contentType}, whose raw is the object's own message. One pass each way, into the
 * caller's buffer; nothing is allocated but that buffer's growth, apart from two rare cases (a message field
 * that comes in several parts, a map whose keys are not sorted). Pure functions: any thread, nothing blocks.
 *
 * To JSON the result is, member for member, what Go's encoding/json writes for the same object, in the same
 * order: what is omitted and what is written as null, "" or {} follows the tags of the Go types. It is
 * minified. Unknown fields are skipped; a wrong wire type, a length that leads out of the message, text that
 * is not UTF-8, and JSON inside that is not JSON, are errors. To protobuf, what JSON does not say is not
 * written, except what distinguishes an empty pointer from none. Members that the kind does not have are told
 * to whoever asks and left out; a value of another type than the field's is an error with its path.
 *
 * What differs from Go on purpose: quantities keep their text ("1000m" stays, Go makes it "1"); text that is
 * not UTF-8 is an error (Go writes U+FFFD); two unequal entries of one map key: the last stands, as in Go.
 */
#ifndef VDI_K8S_PROTO_H
#define VDI_K8S_PROTO_H

#include "buffer.h"
#include "k8s_proto_table.h"

/* Nesting of messages, and of JSON. */
#define VDI_K8S_PROTO_DEPTH_MAX 64
/* Bytes of one object in protobuf. */
#define VDI_K8S_PROTO_SIZE_MAX ((size_t) 64 << 20)

#define VDI_K8S_PROTO_TYPE "application/vnd.kubernetes.protobuf"

struct vdi_k8s_envelope {
	struct vd_bytes api_version, kind; /* empty when it does not say */
	struct vd_bytes raw;
};

/* Whether value begins as an envelope does. */
bool vdi_k8s_proto_is(struct vd_bytes value);
/* Slices of value. VD_BAD_REQUEST: not an envelope, damaged, or raw is encoded further. */
VDI_MUST_USE vd_status vdi_k8s_proto_open(struct vd_bytes value, struct vdi_k8s_envelope *ret_envelope,
					  struct vd_error *reterr);
/* The metadata.name and metadata.namespace of an object of any kind, also of one without a table: metadata is
 * field 1 everywhere. Empty when there are none or the bytes are something else. Slices of raw. */
void vdi_k8s_proto_names(struct vd_bytes raw, struct vd_bytes *ret_name, struct vd_bytes *ret_namespace);
/* The start of text as far as a message can show it: printable ASCII, not too long. */
struct vd_bytes vdi_k8s_proto_shown(struct vd_bytes text);

/* Appends the JSON of an enveloped object. On failure out holds what it held, and the buffer's own failure is
 * told like any other. VD_UNSUPPORTED: a kind without a table (the message names it), VD_BAD_REQUEST,
 * VD_TOO_BIG, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_k8s_proto_to_json(struct vd_bytes value, struct vdi_buffer *out,
					     struct vd_error *reterr);

struct vdi_k8s_proto_options {
	/* written as metadata.resourceVersion instead of what json says; empty: json's own */
	struct vd_bytes resource_version;
	/* Tells the path of each member that the message does not have, such as "spec.containers[0].comand".
	 * May be NULL. */
	void (*unknown)(void *arg, struct vd_bytes path);
	void *arg;
};

/* Appends the message of one object, without envelope. json must be valid (vdi_json_validate); what is not
 * gives an error or some message, never more. options may be NULL. On failure out holds what it held.
 * VD_BAD_REQUEST with the place, VD_TOO_BIG, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_k8s_proto_from_json(const struct vdi_k8s_message *message, struct vd_bytes json,
					       const struct vdi_k8s_proto_options *options,
					       struct vdi_buffer *out, struct vd_error *reterr);

/* Putting messages together by hand. Each appends; failures stick to the buffer. */
void vdi_k8s_proto_varint(struct vdi_buffer *out, unsigned number, uint64_t value);
void vdi_k8s_proto_bytes(struct vdi_buffer *out, unsigned number, struct vd_bytes bytes);
/* What is appended between these two is field `number`. The mark belongs to exactly one end. */
size_t vdi_k8s_proto_begin(struct vdi_buffer *out, unsigned number);
void   vdi_k8s_proto_end(struct vdi_buffer *out, size_t mark);
/* An envelope around what is appended in between: the raw message. */
size_t vdi_k8s_proto_envelope_begin(struct vdi_buffer *out, struct vd_bytes api_version,
				    struct vd_bytes kind);
void   vdi_k8s_proto_envelope_end(struct vdi_buffer *out, size_t mark);

#endif
