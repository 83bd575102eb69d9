/* The nodes of a compiled schema, for the schema_*.c files. All are in the schema's arena and immutable after
 * compilation. */
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

/* Several subschemas, as in allOf. */
struct vdi_schema_nodes {
	struct vdi_schema_node **items;
	size_t			 count;
};

/* Restrictions of a value besides its type. */
struct vdi_schema_limits {
	struct vd_bytes		  format; /* as written; empty: none, or an unknown one */
	struct vd_bytes		  pattern_text;
	const struct vdi_pattern *pattern;
	const struct vdi_node	 *enumeration; /* an array */
	struct vd_bytes		 *required;
	size_t			  required_count;
	double			  minimum, maximum, multiple_of;
	int64_t			  min_length, max_length; /* -1: none; so also in the members below */
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
	bool				   preserves;	  /* keeps unknown members */
	bool				   embedded;	  /* x-kubernetes-embedded-resource */
	bool				   has_lists;	  /* lists of type set or map, here or below */
	bool				   has_resources; /* embedded resources, here or below */
	struct vdi_schema_property	  *properties;	  /* sorted by key */
	size_t				   property_count;
	const struct vdi_schema_property **defaulted; /* properties that have a default */
	size_t				   defaulted_count;
	struct vdi_schema_node		  *items;
	struct vdi_schema_node		  *additional; /* for VDI_MORE_SCHEMA */
	const struct vdi_node		  *default_value;
	size_t				   default_size; /* bytes that a copy of the default takes */
	struct vd_bytes			  *list_keys;	 /* for a list of type map; sorted */
	size_t				   list_key_count;
	const struct vdi_schema_limits	  *limits; /* NULL: none */
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
	uint64_t		work; /* steps that the compilation took */
	struct vd_bytes		text; /* source text, minified */
};

/* NULL if the node has no such property. */
const struct vdi_schema_node *vdi_schema_property_of(const struct vdi_schema_node *node, struct vd_bytes key);
/* Returns the schema of a member: its property, otherwise additionalProperties; NULL: none. */
const struct vdi_schema_node *vdi_schema_member_of(const struct vdi_schema_node *node, struct vd_bytes key);

/* The functions of schema.h for any node. is_root: value is a whole resource. is_default: lists are not
 * checked for duplicates, as upstream. *work is reduced by the steps taken. */
VDI_MUST_USE vd_status vdi_schema_prune_node(const struct vdi_schema_node *node, struct vdi_tree *tree,
					     struct vdi_node *value, bool is_root,
					     vdi_schema_unknown_fn *unknown, void *arg);
VDI_MUST_USE vd_status vdi_schema_validate_node(const struct vdi_schema_node *node, struct vdi_tree *tree,
						const struct vdi_node *value, const struct vdi_node *old,
						struct vd_bytes field, bool is_default, uint64_t *work,
						struct vdi_field_errors *field_errors);

/* Checks the structural rules (schema_check.c) and adds the errors of the schema at source. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_schema_check(struct vdi_tree *tree, const struct vdi_node *source,
					const char *place, struct vdi_field_errors *field_errors);

/* Checks a format (schema_format.c). The second function must be called for known formats only. */
bool vdi_schema_format_is_known(struct vd_bytes format, enum vdi_schema_type type);
bool vdi_schema_format_holds(struct vd_bytes format, struct vd_bytes text);

/* True for apiVersion, kind and metadata. */
bool vdi_schema_is_meta(struct vd_bytes key);

#endif
