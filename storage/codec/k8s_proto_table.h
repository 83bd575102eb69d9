/* The field tables of Kubernetes' protobuf messages: what stands in k8s_proto_table.def, and finding in it.
 *
 * Static and immutable: any thread. A message's fields lie in the order in which its JSON is written; two
 * more orders, by number and by JSON name, make finding a matter of looking at the next one first and of
 * halving otherwise.
 */
#ifndef VDI_K8S_PROTO_TABLE_H
#define VDI_K8S_PROTO_TABLE_H

#include "base.h"

/* The type of one value. From TIME on: messages whose JSON is not an object of their fields. */
enum vdi_k8s_type {
	VDI_K8S_BOOL,
	VDI_K8S_INT32,
	VDI_K8S_INT64,
	VDI_K8S_STRING,
	VDI_K8S_BYTES, /* base64 in JSON */
	VDI_K8S_MESSAGE,
	VDI_K8S_TIME,	       /* {1 seconds, 2 nanos}: RFC 3339 */
	VDI_K8S_MICRO_TIME,    /* the same, with six digits behind the point */
	VDI_K8S_QUANTITY,      /* {1 string}: its text */
	VDI_K8S_INT_OR_STRING, /* {1 type, 2 int, 3 string}: a number or a string */
	VDI_K8S_RAW,	       /* {1 bytes}: they are JSON, or an enveloped object */
	VDI_K8S_STRINGS,       /* {1 repeated string}: an array */
};

enum vdi_k8s_container {
	VDI_K8S_ONE,	 /* absent and zero are the same */
	VDI_K8S_POINTER, /* absent is null */
	VDI_K8S_LIST,
	VDI_K8S_MAP, /* repeated {1 key, 2 value}; keys are strings */
};

/* What JSON says of an absent or zero value. */
enum vdi_k8s_empty {
	VDI_K8S_KEEP,	   /* "", 0, false, null for pointers, lists and maps */
	VDI_K8S_OMIT,	   /* nothing, but messages that are no pointers are written in any case */
	VDI_K8S_OMIT_ZERO, /* nothing, a zero time included */
	VDI_K8S_INLINE,	   /* a message whose members are those of the message around it */
};

struct vdi_k8s_field {
	const char *quoted;    /* the name as JSON writes it: "name": */
	uint16_t    message;   /* of the value, when it is one */
	uint8_t	    name_size; /* without quotes and colon */
	uint8_t	    number;
	uint8_t	    type;
	uint8_t	    container;
	uint8_t	    empty;
};

struct vdi_k8s_message {
	uint16_t first_field, first_name;
	uint8_t	 field_count, name_count;
	/* kind and apiVersion are members in JSON, while protobuf has them in the envelope only */
	bool	 has_kind;
	uint64_t always; /* bits of the fields that JSON speaks of when they are absent */
};

#define VDI_K8S_FIELDS_MAX 64

/* The tables themselves: for the functions below only. */
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

/* The message of a field's values. */
const struct vdi_k8s_message *vdi_k8s_child(const struct vdi_k8s_field *field);

/* NULL: a kind without a table. DeleteOptions are found under every apiVersion, as every group has them. */
const struct vdi_k8s_message *vdi_k8s_kind_find(struct vd_bytes api_version, struct vd_bytes kind);
/* ObjectMeta. */
const struct vdi_k8s_message *vdi_k8s_object_meta(void);

int vdi_k8s_search_number(const struct vdi_k8s_message *message, uint32_t number, unsigned *next);

/* Index of the field with this number; -1: none. *next (start with 0) is where it is looked for first: a list
 * or a map stays at its field, everything else goes on to the next. */
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

/* Index of the field with this JSON name; of an inlined message's members, the index of the INLINE field. -1:
 * none. */
int vdi_k8s_field_by_name(const struct vdi_k8s_message *message, struct vd_bytes name, unsigned *next);

/* For tests: all kinds in their order. false: no more. */
bool vdi_k8s_kind_at(size_t index, struct vd_bytes *ret_api_version, struct vd_bytes *ret_kind);

#endif
