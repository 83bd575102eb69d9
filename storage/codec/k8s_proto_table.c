/* The tables are expanded from k8s_proto_table.def: 16 bytes per field; the only pointers are names. */
#include "k8s_proto_table.h"

enum {
#define MESSAGE(name, first_field, fields, first_name, names, has_kind, always) MESSAGE_##name,
#include "k8s_proto_table.def"
#undef MESSAGE
	MESSAGE_NONE = 0
};

static const struct vdi_k8s_message messages[] = {
#define MESSAGE(name, first_field, fields, first_name, names, has_kind, always)                              \
	{ first_field, first_name, fields, names, has_kind, always },
#include "k8s_proto_table.def"
#undef MESSAGE
};

const struct vdi_k8s_field vdi_k8s_field_table[] = {
#define FIELD(number, name, type, container, empty, message)                                                 \
	{ "\"" name "\":", MESSAGE_##message,	sizeof name - 1, number,                                     \
	  VDI_K8S_##type,  VDI_K8S_##container, VDI_K8S_##empty },
#include "k8s_proto_table.def"
#undef FIELD
};

const uint8_t vdi_k8s_number_table[] = {
#define NUMBERS(...) __VA_ARGS__,
#include "k8s_proto_table.def"
#undef NUMBERS
};

/* 255: the field itself; else the index among the names of the message that is inlined there. */
struct name {
	uint8_t field;
	uint8_t inner;
};
#define OWN 255

static const struct name by_name[] = {
#define P(field, inner)                                                                                      \
	{                                                                                                    \
		field, inner                                                                                 \
	}
#define NAMES(...) __VA_ARGS__,
#include "k8s_proto_table.def"
#undef NAMES
#undef P
};

#define FIELDS_MAX(fields)                                                                                   \
	_Static_assert((fields) <= VDI_K8S_FIELDS_MAX, "a message has more fields than slots are there "     \
						       "for");
#include "k8s_proto_table.def"
#undef FIELDS_MAX

struct kind {
	const char *kind, *api_version;
	uint16_t    message;
};

static const struct kind kinds[] = {
#define KIND(kind, api_version, message) { kind, api_version, MESSAGE_##message },
#include "k8s_proto_table.def"
#undef KIND
};

const struct vdi_k8s_message *vdi_k8s_child(const struct vdi_k8s_field *field)
{
	return &messages[field->message];
}

const struct vdi_k8s_message *vdi_k8s_object_meta(void)
{
	return &messages[MESSAGE_meta_v1_ObjectMeta];
}

/* bytewise; text has no NUL but its end, so this is the order of vd_bytes_compare */
static int compare_text(struct vd_bytes bytes, const char *text)
{
	return vd_bytes_compare(bytes, vd_bytes_of(text));
}

const struct vdi_k8s_message *vdi_k8s_kind_find(struct vd_bytes api_version, struct vd_bytes kind)
{
	size_t low = 0, high = VDI_ARRAY_SIZE(kinds);

	if (vd_bytes_equal(kind, vd_bytes_of("DeleteOptions")))
		api_version = vd_bytes_of("v1");
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int    order = compare_text(kind, kinds[middle].kind);

		if (order == 0)
			order = compare_text(api_version, kinds[middle].api_version);
		if (order == 0)
			return &messages[kinds[middle].message];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

int vdi_k8s_search_number(const struct vdi_k8s_message *message, uint32_t number, unsigned *next)
{
	const struct vdi_k8s_field *fields = vdi_k8s_fields(message);
	const uint8_t		   *order = vdi_k8s_number_table + message->first_field;
	unsigned		    low = 0, high = message->field_count;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (fields[order[middle]].number == number) {
			*next = middle;
			return order[middle];
		}
		if (fields[order[middle]].number > number)
			high = middle;
		else
			low = middle + 1;
	}
	return -1;
}

static const struct vdi_k8s_field *named(const struct vdi_k8s_message *message, unsigned index)
{
	for (;;) {
		const struct name	   *name = &by_name[message->first_name + index];
		const struct vdi_k8s_field *field = vdi_k8s_fields(message) + name->field;

		if (name->inner == OWN)
			return field;
		message = vdi_k8s_child(field);
		index = name->inner;
	}
}

static bool has_name(const struct vdi_k8s_field *field, struct vd_bytes name)
{
	return field->name_size == name.size && memcmp(field->quoted + 1, name.data, name.size) == 0;
}

int vdi_k8s_field_by_name(const struct vdi_k8s_message *message, struct vd_bytes name, unsigned *next)
{
	const struct vdi_k8s_field *fields = vdi_k8s_fields(message);
	unsigned		    low = 0, high = message->name_count;

	/* Try the next fields first, because JSON is usually in the order of the table. An inlined field has
	 * no name, so it never matches. */
	for (unsigned at = *next; at < message->field_count && at < *next + 3; at++)
		if (name.size && has_name(&fields[at], name)) {
			*next = at + 1;
			return (int) at;
		}
	while (low < high) {
		unsigned		    middle = (low + high) / 2;
		const struct vdi_k8s_field *field = named(message, middle);
		int			    order = vd_bytes_compare(name, vdi_k8s_name(field));

		if (order == 0) {
			int found = by_name[message->first_name + middle].field;

			*next = (unsigned) found + 1;
			return found;
		}
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return -1;
}

bool vdi_k8s_kind_at(size_t index, struct vd_bytes *ret_api_version, struct vd_bytes *ret_kind)
{
	if (index >= VDI_ARRAY_SIZE(kinds))
		return false;
	*ret_api_version = vd_bytes_of(kinds[index].api_version);
	*ret_kind = vd_bytes_of(kinds[index].kind);
	return true;
}
