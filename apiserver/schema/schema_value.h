/* Values as the validation sees them: numbers, equality, the rules of lists and of resources inside of
 * resources. For schema_validate.c. */
#ifndef VDI_SCHEMA_VALUE_H
#define VDI_SCHEMA_VALUE_H

#include "schema_node.h"

/* One validation under way. */
struct vdi_schema_judge {
	struct vdi_tree	  *tree; /* of the objects */
	struct vdi_faults *faults;
	struct vd_bytes	   prefix; /* the field that path goes on from */
	struct vdi_out	   path;   /* as upstream's validator names it: "spec.list[1].x" */
	struct vdi_out	   field;
	struct vdi_out	   text;
	uint64_t	   work;   /* steps left */
	vd_status	   status; /* VD_TOO_BIG: no work left; VD_NOMEM */
};

/* As Go's decoder has it: an int64 when it is written as one and fits, else a double. */
struct vdi_schema_number {
	double	real;
	int64_t integer;
	bool	is_integer;
};

/* Empties one of the judge's texts; that there was no memory for it is not forgotten. */
static inline void vdi_schema_judge_reset(struct vdi_schema_judge *judge, struct vdi_out *out)
{
	if (out->failed)
		judge->status = VD_NOMEM;
	vdi_out_reset(out);
}

#define VDI_SCHEMA_NUMBER_SIZE 48
/* Of a path in a fault. A path may be as long as a request; a fault shows less than this anyway. */
#define VDI_SCHEMA_PATH_SIZE 2048

struct vdi_schema_number vdi_schema_number_of(struct vd_bytes text);
/* As Go's %v. */
void vdi_schema_number_write(const struct vdi_schema_number *number, char text[VDI_SCHEMA_NUMBER_SIZE]);
/* Whether a double stands for an integer (swag.IsFloat64AJSONInteger). */
bool vdi_schema_is_whole(double number);

/* Deep equality; numbers compare as numbers, members in any order. a may be of a schema: only b is looked up
 * in. Costs work; false when there is none left. */
bool vdi_schema_same(struct vdi_schema_judge *judge, const struct vdi_node *a, const struct vdi_node *b);
/* Whether two items of a list of type map have the same keys. */
bool vdi_schema_same_keys(struct vdi_schema_judge *judge, const struct vdi_schema_node *list,
			  const struct vdi_node *a, const struct vdi_node *b);

/* Whether it has all of them, as scalars: else it has no counterpart in another list. */
bool vdi_schema_has_keys(struct vdi_schema_judge *judge, const struct vdi_schema_node *list,
			 const struct vdi_node *item);

/* Doubles in lists of type set and map (pkg/apiserver/schema/listtype); nothing when old has some already. */
void vdi_schema_check_lists(struct vdi_schema_judge *judge, const struct vdi_schema_node *node,
			    const struct vdi_node *value, const struct vdi_node *old);
/* apiVersion, kind and metadata of embedded resources (pkg/apiserver/schema/objectmeta). */
void vdi_schema_check_resources(struct vdi_schema_judge *judge, const struct vdi_schema_node *node,
				const struct vdi_node *value);

#endif
