/* The field tables of Kubernetes' protobuf messages (k8s_proto_table.def), and look-ups in them.
 *
 * Static and immutable: any thread. The fields of a message are in the order of its JSON. Two more orders, by
 * number and by JSON name, allow a binary search; a look-up first tries the next field.
 */
#ifndef VDI_K8S_PROTO_TABLE_H
#define VDI_K8S_PROTO_TABLE_H

#include "base.h"

/* Type of a value. From TIME on: messages whose JSON is not an object of their fields. */
enum vdi_k8s_type {
	VDI_K8S_BOOL,
	VDI_K8S_INT32,
	VDI_K8S_INT64,
	VDI_K8S_STRING,
	VDI_K8S_BYTES, /* base64 in JSON */
	VDI_K8S_MESSAGE,
	VDI_K8S_TIME,	       /* {1 seconds, 2 nanos}: RFC 3339 */
	VDI_K8S_MICRO_TIME,    /* the same, with six digits after the decimal point */
	VDI_K8S_QUANTITY,      /* {1 string}: text */
	VDI_K8S_INT_OR_STRING, /* {1 type, 2 int, 3 string}: a number or a string */
	VDI_K8S_RAW,	       /* {1 bytes}: JSON, or an enveloped object */
	VDI_K8S_STRINGS,       /* {1 repeated string}: an array */
};

enum vdi_k8s_container {
	VDI_K8S_ONE,	 /* absent and zero are equal */
	VDI_K8S_POINTER, /* absent: null */
	VDI_K8S_LIST,
	VDI_K8S_MAP, /* repeated {1 key, 2 value}; keys are strings */
};

/* JSON of an absent or zero value. */
enum vdi_k8s_empty {
	VDI_K8S_KEEP,	   /* "", 0, false; null for pointers, lists and maps */
	VDI_K8S_OMIT,	   /* omitted, except for messages that are not pointers */
	VDI_K8S_OMIT_ZERO, /* omitted, also a zero time */
	VDI_K8S_INLINE,	   /* a message whose members are written among those of the outer message */
};

struct vdi_k8s_field {
	const char *quoted;    /* name with quotes and colon, as in JSON */
	uint16_t    message;   /* message of the value, if it is one */
	uint8_t	    name_size; /* without quotes and colon */
	uint8_t	    number;
	uint8_t	    type;
	uint8_t	    container;
	uint8_t	    empty;
};

struct vdi_k8s_message {
	uint16_t first_field, first_name;
	uint8_t	 field_count, name_count;
	/* kind and apiVersion are members in JSON, but only in the envelope in protobuf */
	bool	 has_kind;
	uint64_t always; /* bits of the fields that JSON has even if absent */
};

#define VDI_K8S_FIELDS_MAX 64

/* Tables; use the functions below. */
extern const struct vdi_k8s_field vdi_k8s_field_table[];
extern const uint8_t		  vdi_k8s_number_table[];

static inline const struct vdi_k8s_field *vdi_k8s_fields(const struct vdi_k8s_message *message)
{
	return vdi_k8s_field_table + message->first_field;
}

static inline struct vd_bytes vdi_k8s_name(const struct vdi_k8s_field *field)
{
	return (struct vd_bytes) { field->quoted + 1, field->name_size };
}

/* Returns the message of a field's values. */
const struct vdi_k8s_message *vdi_k8s_child(const struct vdi_k8s_field *field);

/* Returns the message of a kind; NULL: no table. DeleteOptions exist under every apiVersion. */
const struct vdi_k8s_message *vdi_k8s_kind_find(struct vd_bytes api_version, struct vd_bytes kind);
/* Returns ObjectMeta. */
const struct vdi_k8s_message *vdi_k8s_object_meta(void);

int vdi_k8s_search_number(const struct vdi_k8s_message *message, uint32_t number, unsigned *next);

/* Returns the index of the field with this number; -1: none. The search starts at *next (initially 0), which
 * stays at a list or map and otherwise moves to the following field. */
static inline int vdi_k8s_field_by_number(const struct vdi_k8s_message *message, uint32_t number,
					  unsigned *next)
{
	const struct vdi_k8s_field *fields = vdi_k8s_fields(message);
	const uint8_t		   *order = vdi_k8s_number_table + message->first_field;

	for (unsigned at = *next; at < message->field_count && at < *next + 2; at++)
		if (fields[order[at]].number == number) {
			*next = at;
			return order[at];
		}
	return vdi_k8s_search_number(message, number, next);
}

/* Returns the index of the field with this JSON name; for members of an inlined message, the index of the
 * INLINE field. -1: none. */
int vdi_k8s_field_by_name(const struct vdi_k8s_message *message, struct vd_bytes name, unsigned *next);

/* For tests: returns the kinds in order. false: no more. */
bool vdi_k8s_kind_at(size_t index, struct vd_bytes *ret_api_version, struct vd_bytes *ret_kind);

#endif
