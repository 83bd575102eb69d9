/* What a compiled schema is made of; for the schema_*.c files. Everything lies in the arena of the schema and
 * is never written after its compilation. */
#ifndef VDI_SCHEMA_NODE_H
#define VDI_SCHEMA_NODE_H

#include <stdatomic.h>

#include "pattern.h"
#include "schema.h"

enum vdi_schema_type {
	VDI_TYPE_NONE,
	VDI_TYPE_ARRAY,
	VDI_TYPE_BOOLEAN,
	VDI_TYPE_INTEGER,
	VDI_TYPE_NUMBER,
	VDI_TYPE_OBJECT,
	VDI_TYPE_STRING,
};

/* additionalProperties */
enum vdi_schema_more { VDI_MORE_NONE, VDI_MORE_FORBIDDEN, VDI_MORE_ANY, VDI_MORE_SCHEMA };

enum vdi_schema_list { VDI_LIST_ATOMIC, VDI_LIST_SET, VDI_LIST_MAP };

struct vdi_schema_property {
	struct vd_bytes		key;
	struct vdi_schema_node *node;
};

/* Several subschemas: allOf and its likes. */
struct vdi_schema_nodes {
	struct vdi_schema_node **items;
	size_t			 count;
};

/* What is asked of a value beyond its type. */
struct vdi_schema_limits {
	struct vd_bytes		  format; /* as written; empty: none that is known */
	struct vd_bytes		  pattern_text;
	const struct vdi_pattern *pattern;
	const struct vdi_node	 *enumeration; /* an array */
	struct vd_bytes		 *required;
	size_t			  required_count;
	double			  minimum, maximum, multiple_of;
	int64_t			  min_length, max_length; /* -1: none; also below */
	int64_t			  min_items, max_items;
	int64_t			  min_properties, max_properties;
	struct vdi_schema_nodes	  all_of, any_of, one_of;
	const struct vdi_schema_node * not ;
	bool has_minimum, has_maximum, has_multiple_of;
	bool exclusive_minimum, exclusive_maximum;
};

struct vdi_schema_node {
	uint8_t				   type;
	uint8_t				   list;
	uint8_t				   more;
	bool				   nullable;
	bool				   int_or_string;
	bool				   preserves;	  /* unknown members */
	bool				   embedded;	  /* a resource in a resource */
	bool				   has_lists;	  /* of type set or map, here or below */
	bool				   has_resources; /* embedded ones, here or below */
	struct vdi_schema_property	  *properties;	  /* by key */
	size_t				   property_count;
	const struct vdi_schema_property **defaulted; /* those that have a default */
	size_t				   defaulted_count;
	struct vdi_schema_node		  *items;
	struct vdi_schema_node		  *additional; /* with VDI_MORE_SCHEMA */
	const struct vdi_node		  *default_value;
	size_t				   default_size; /* bytes that a copy takes */
	struct vd_bytes			  *list_keys;	 /* of a list of type map; sorted */
	size_t				   list_key_count;
	const struct vdi_schema_limits	  *limits; /* or NULL */
};

struct vdi_schema {
	_Atomic uint32_t	users;
	struct vdi_tree		memory;
	struct vdi_schema_node *root;
	struct vdi_pattern    **patterns; /* owned */
	size_t			pattern_count;
	size_t			pattern_capacity;
	size_t			node_count;
	size_t			rule_count;
	uint64_t		work; /* that its compilation took */
	struct vd_bytes		text; /* as it came, minified */
};

/* NULL when there is none. */
const struct vdi_schema_node *vdi_schema_property_of(const struct vdi_schema_node *node, struct vd_bytes key);
/* What a member is held against: the property, else additionalProperties; NULL: nothing is known of it. */
const struct vdi_schema_node *vdi_schema_member_of(const struct vdi_schema_node *node, struct vd_bytes key);

/* The functions of schema.h for any node; a root that is a resource has is_root. Of a default, upstream does
 * not ask whether its lists hold anything twice. *work goes down by the steps taken. */
VDI_MUST_USE vd_status vdi_schema_prune_node(const struct vdi_schema_node *node, struct vdi_tree *tree,
					     struct vdi_node *value, bool is_root,
					     vdi_schema_unknown_fn *unknown, void *arg);
VDI_MUST_USE vd_status vdi_schema_validate_node(const struct vdi_schema_node *node, struct vdi_tree *tree,
						const struct vdi_node *value, const struct vdi_node *old,
						struct vd_bytes field, bool is_default, uint64_t *work,
						struct vdi_faults *faults);

/* Structural rules (schema_check.c): adds what is wrong with the schema written at source. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_schema_check(struct vdi_tree *tree, const struct vdi_node *source,
					const char *place, struct vdi_faults *faults);

/* Whether text has this format (schema_format.c); formats that nobody knows are never asked for. */
bool vdi_schema_format_is_known(struct vd_bytes format, enum vdi_schema_type type);
bool vdi_schema_format_holds(struct vd_bytes format, struct vd_bytes text);

/* apiVersion, kind, metadata */
bool vdi_schema_is_meta(struct vd_bytes key);

#endif
