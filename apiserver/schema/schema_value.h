/* Values during validation: numbers, equality, and the rules of lists and embedded resources. For
 * schema_validate.c. */
#ifndef VDI_SCHEMA_VALUE_H
#define VDI_SCHEMA_VALUE_H

#include "schema_node.h"

/* State of one validation. */
struct vdi_schema_validator {
	struct vdi_tree		*tree; /* of the objects */
	struct vdi_field_errors *field_errors;
	struct vd_bytes		 prefix; /* field that path is relative to */
	struct vdi_out		 path;	 /* as in upstream's messages: "spec.list[1].x" */
	struct vdi_out		 field;
	struct vdi_out		 text;
	uint64_t		 work;	 /* steps left */
	vd_status		 status; /* VD_TOO_BIG: no work left; VD_NOMEM */
};

/* A number as Go's decoder reads it: an int64 if it is written as one and fits, otherwise a double. */
struct vdi_schema_number {
	double	real;
	int64_t integer;
	bool	is_integer;
};

/* Empties one of the validator's texts; keeps a failed allocation in status. */
static inline void vdi_schema_validator_reset(struct vdi_schema_validator *validator, struct vdi_out *out)
{
	if (out->failed)
		validator->status = VD_NOMEM;
	vdi_out_reset(out);
}

/* Uses up work. Returns true if not enough is left, or the validation has failed. */
static inline bool vdi_schema_out_of_work(struct vdi_schema_validator *validator, uint64_t cost)
{
	if (validator->work < cost || validator->status != VD_OK) {
		if (validator->status == VD_OK)
			validator->status = VD_TOO_BIG;
		return true;
	}
	validator->work -= cost;
	return false;
}

#define VDI_SCHEMA_NUMBER_SIZE 48
/* Maximum length of a path in an error; messages are shorter than this in any case. */
#define VDI_SCHEMA_PATH_SIZE 2048

struct vdi_schema_number vdi_schema_number_of(struct vd_bytes text);
/* Writes as Go's %v does. */
void vdi_schema_number_write(const struct vdi_schema_number *number, char text[VDI_SCHEMA_NUMBER_SIZE]);
/* Returns true if the double has an integer value (swag.IsFloat64AJSONInteger). */
bool vdi_schema_is_whole(double number);

/* Compares deeply; numbers compare by value, members in any order. a may belong to a schema: only b's index
 * is used. Uses up work; false if none is left. */
bool vdi_schema_same(struct vdi_schema_validator *validator, const struct vdi_node *a,
		     const struct vdi_node *b);
/* Returns true if two items of a list of type map have the same keys. */
bool vdi_schema_same_keys(struct vdi_schema_validator *validator, const struct vdi_schema_node *list,
			  const struct vdi_node *a, const struct vdi_node *b);

/* Returns true if the item has all keys, as scalars; other items have no counterpart in another list. */
bool vdi_schema_has_keys(struct vdi_schema_validator *validator, const struct vdi_schema_node *list,
			 const struct vdi_node *item);

/* Reports duplicates in lists of type set and map (pkg/apiserver/schema/listtype), unless old has duplicates
 * already. */
void vdi_schema_check_lists(struct vdi_schema_validator *validator, const struct vdi_schema_node *node,
			    const struct vdi_node *value, const struct vdi_node *old);
/* Checks apiVersion, kind and metadata of embedded resources (pkg/apiserver/schema/objectmeta). */
void vdi_schema_check_resources(struct vdi_schema_validator *validator, const struct vdi_schema_node *node,
				const struct vdi_node *value);

#endif
