/* Conversion between Kubernetes' protobuf and JSON, for every kind in k8s_proto_table.def.
 *
 * An object is sent as the bytes "k8s\0" and the message Unknown{1 typeMeta{1 apiVersion, 2 kind}, 2 raw, 3
 * contentEncoding, 4 contentType}; raw is the object's own message. Each direction is one pass that writes
 * into the caller's buffer and allocates nothing else, except in two rare cases (a message field in several
 * parts, a map with unsorted keys). Pure functions: any thread, nothing blocks.
 *
 * To JSON: the result has the members that Go's encoding/json writes for the same object, in the same order,
 * minified. The tags of the Go types decide which absent values are omitted and which are null, "" or {}.
 * Unknown fields are skipped. Errors: a wrong wire type, a length beyond the end of the message, text that is
 * not UTF-8, embedded JSON that is invalid.
 *
 * To protobuf: values that are absent in JSON are not written, except where an empty pointer must be
 * distinguished from none. Members that the kind does not have are reported on request and dropped; a value
 * that does not match the field's type is an error with its path.
 *
 * Deliberate differences from Go: quantities keep their text (Go makes "1000m" "1"); text that is not UTF-8
 * is an error (Go writes U+FFFD). If a map has a key twice, the last entry wins, as in Go.
 */
#ifndef VDI_K8S_PROTO_H
#define VDI_K8S_PROTO_H

#include "buffer.h"
#include "k8s_proto_table.h"

/* Maximum nesting of messages, and of JSON. */
#define VDI_K8S_PROTO_DEPTH_MAX 64
/* Maximum size of an object in protobuf, in bytes. */
#define VDI_K8S_PROTO_SIZE_MAX ((size_t) 64 << 20)

#define VDI_K8S_PROTO_TYPE "application/vnd.kubernetes.protobuf"

struct vdi_k8s_envelope {
	struct vd_bytes api_version, kind; /* empty if absent */
	struct vd_bytes raw;
};

/* Returns true if value begins like an envelope. */
bool vdi_k8s_proto_is(struct vd_bytes value);
/* Parses the envelope into slices of value. VD_BAD_REQUEST: not an envelope, damaged, or raw has a content
 * encoding. */
VDI_MUST_USE vd_status vdi_k8s_proto_open(struct vd_bytes value, struct vdi_k8s_envelope *ret_envelope,
					  struct vd_error *reterr);
/* Finds metadata.name and metadata.namespace of an object of any kind, also one without a table, because
 * metadata is field 1 in every kind. Slices of raw; empty if absent or if the bytes cannot be parsed. */
void vdi_k8s_proto_names(struct vd_bytes raw, struct vd_bytes *ret_name, struct vd_bytes *ret_namespace);
/* Returns the start of text as far as it can be shown in a message: printable ASCII, limited length. */
struct vd_bytes vdi_k8s_proto_shown(struct vd_bytes text);

/* Appends the JSON of an enveloped object. On failure out is unchanged; a failure of the buffer is returned
 * too. VD_UNSUPPORTED: a kind without a table (the message names it), VD_BAD_REQUEST, VD_TOO_BIG,
 * VD_NOMEM. */
VDI_MUST_USE vd_status vdi_k8s_proto_to_json(struct vd_bytes value, struct vdi_buffer *out,
					     struct vd_error *reterr);

struct vdi_k8s_proto_options {
	/* value of metadata.resourceVersion that replaces the one in json; empty: no replacement */
	struct vd_bytes resource_version;
	/* Called with the path of each member that the message does not have, such as
	 * "spec.containers[0].comand". May be NULL. */
	void (*unknown)(void *arg, struct vd_bytes path);
	void *arg;
};

/* Appends the message of one object, without envelope. json must be valid (vdi_json_validate); invalid JSON
 * gives an error or a wrong message, but is memory-safe. options may be NULL. On failure out is unchanged.
 * VD_BAD_REQUEST with the path, VD_TOO_BIG, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_k8s_proto_from_json(const struct vdi_k8s_message *message, struct vd_bytes json,
					       const struct vdi_k8s_proto_options *options,
					       struct vdi_buffer *out, struct vd_error *reterr);

/* Functions to write a message field by field. Each appends; failures stay recorded in the buffer. */
void vdi_k8s_proto_varint(struct vdi_buffer *out, unsigned number, uint64_t value);
void vdi_k8s_proto_bytes(struct vdi_buffer *out, unsigned number, struct vd_bytes bytes);
/* Bytes appended between begin and end become field `number`. Pass the result of begin to exactly one end. */
size_t vdi_k8s_proto_begin(struct vdi_buffer *out, unsigned number);
void   vdi_k8s_proto_end(struct vdi_buffer *out, size_t mark);
/* The raw message appended between begin and end is put into an envelope. */
size_t vdi_k8s_proto_envelope_begin(struct vdi_buffer *out, struct vd_bytes api_version,
				    struct vd_bytes kind);
void   vdi_k8s_proto_envelope_end(struct vdi_buffer *out, size_t mark);

#endif
