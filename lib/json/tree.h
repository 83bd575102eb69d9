/* A small JSON tree for the cold path: bodies, patches, table cells.
 *
 * Parsed strictly (RFC 8259, UTF-8, depth) into an arena; numbers keep their text, members their order, so
 * that what a patch does not touch comes out as it went in. A tree has one owner and one thread. Nodes live
 * as long as the tree; taking one out of its parent leaves it in the arena. The source bytes must outlive the
 * tree: strings without escapes point into them.
 */
#ifndef VDI_TREE_H
#define VDI_TREE_H

#include "out.h"

#define VDI_TREE_DEPTH_MAX 64

enum vdi_node_kind {
	VDI_NODE_NULL,
	VDI_NODE_FALSE,
	VDI_NODE_TRUE,
	VDI_NODE_NUMBER,
	VDI_NODE_STRING,
	VDI_NODE_ARRAY,
	VDI_NODE_OBJECT
};

struct vdi_tree_index;

struct vdi_node {
	struct vdi_node	      *next;	 /* sibling; NULL: the last one */
	struct vdi_node	      *previous; /* sibling; of the first one: the last one */
	struct vdi_node	      *first;	 /* child */
	struct vdi_tree_index *index;	 /* of a large object */
	struct vd_bytes	       key;	 /* unescaped; of a member */
	struct vd_bytes	       text;	 /* unescaped string, or the number as written */
	uint32_t	       count;	 /* children */
	uint8_t		       kind;
	bool		       is_marked; /* between two lines of a function that marks */
};

struct vdi_tree {
	void  *blocks; /* the arena; zero is an empty one */
	char  *at;
	size_t left;
	/* as it is written in the text; after vdi_tree_parse_row only, lent as the text is */
	struct vd_bytes metadata;
	/* nodes visited by look-ups, copies, comparisons and measurements so far: what a caller bounds its
	 * work by */
	uint64_t steps;
};

#define VDI_TREE_INIT                                                                                        \
	{                                                                                                    \
		0, 0, 0, { 0, 0 }, 0                                                                         \
	}

void vdi_tree_fini(struct vdi_tree *tree);

/* Memory that lives as long as the tree, aligned for anything, not zeroed; NULL when there is none. */
void *vdi_tree_take(struct vdi_tree *tree, size_t size);
/* A copy of text there. False when out of memory. */
VDI_MUST_USE bool vdi_tree_take_text(struct vdi_tree *tree, struct vd_bytes text, struct vd_bytes *ret_text);

/* VD_BAD_REQUEST with a sentence and the place; VD_NOMEM. Duplicate keys are refused. */
VDI_MUST_USE vd_status vdi_tree_parse(struct vdi_tree *tree, struct vd_bytes text, struct vdi_node **ret_root,
				      struct vd_error *reterr);

/* The same for tables and metadata of an object that was stored, in a bounded number of nodes: behind the
 * first VDI_TREE_SHOWN_MAX of them, the children that are left of each container but metadata are only
 * counted. */
#define VDI_TREE_SHOWN_MAX 50000
VDI_MUST_USE vd_status vdi_tree_parse_shown(struct vdi_tree *tree, struct vd_bytes text,
					    struct vdi_node **ret_root, struct vd_error *reterr);

/* The same, and of metadata only the members are whole in number, so that they are found; its text is in
 * tree->metadata. For rows, which copy it. */
VDI_MUST_USE vd_status vdi_tree_parse_row(struct vdi_tree *tree, struct vd_bytes text,
					  struct vdi_node **ret_root, struct vd_error *reterr);

/* NULL when object is NULL, no object, or has no such member. */
struct vdi_node *vdi_tree_get(struct vdi_tree *tree, const struct vdi_node *object, struct vd_bytes key);
/* The member path, such as "metadata.name": plain names only. */
struct vdi_node *vdi_tree_find(struct vdi_tree *tree, const struct vdi_node *object, const char *path);
/* The text of a string; empty when node is NULL or another kind. */
struct vd_bytes	   vdi_tree_string_of(const struct vdi_node *node);
static inline bool vdi_tree_is(const struct vdi_node *node, enum vdi_node_kind kind)
{
	return node && node->kind == kind;
}
/* An integer, or fallback. */
int64_t vdi_tree_int_of(const struct vdi_node *node, int64_t fallback);

/* New nodes; NULL when out of memory. Text is copied into the arena. */
struct vdi_node		      *vdi_tree_new(struct vdi_tree *tree, enum vdi_node_kind kind);
struct vdi_node		      *vdi_tree_new_string(struct vdi_tree *tree, struct vd_bytes text);
struct vdi_node		      *vdi_tree_new_int(struct vdi_tree *tree, int64_t number);
static inline struct vdi_node *vdi_tree_last(const struct vdi_node *parent)
{
	return parent->first ? parent->first->previous : NULL;
}
/* A deep copy, in tree. */
struct vdi_node *vdi_tree_copy(struct vdi_tree *tree, const struct vdi_node *node);

/* Replaces or appends a member; value must not be in a parent, and is used up: afterwards vdi_tree_get finds
 * what became of it. False when out of memory. value NULL (a failed vdi_tree_new) is false too. */
VDI_MUST_USE bool vdi_tree_set(struct vdi_tree *tree, struct vdi_node *object, struct vd_bytes key,
			       struct vdi_node *value);
/* The member, made as an empty object or array when absent or of another kind; NULL when out of memory. */
struct vdi_node *vdi_tree_object_at(struct vdi_tree *tree, struct vdi_node *object, const char *key);
struct vdi_node *vdi_tree_array_at(struct vdi_tree *tree, struct vdi_node *object, const char *key);
/* Whether it was there. */
bool vdi_tree_remove(struct vdi_tree *tree, struct vdi_node *object, struct vd_bytes key);
void vdi_tree_append(struct vdi_node *array, struct vdi_node *value);
/* Puts value in front of the element `before`; NULL: at the end. */
void vdi_tree_array_insert(struct vdi_node *array, struct vdi_node *before, struct vdi_node *value);
/* Takes child out of array. */
void vdi_tree_array_remove(struct vdi_node *array, struct vdi_node *child);
/* Removes all children. */
void vdi_tree_clear(struct vdi_node *parent);
/* Gives node the kind and content of value, and its children; key and place stay. value must not be in a
 * parent and is used up. */
void vdi_tree_become(struct vdi_node *node, const struct vdi_node *value);

/* Deep equality; the order of members does not matter, numbers compare as text. */
bool vdi_tree_equal(struct vdi_tree *tree, const struct vdi_node *a, const struct vdi_node *b);

struct vdi_tree_size {
	size_t	 bytes; /* of the minified text, characters that vdi_tree_write escapes counted as one byte */
	unsigned depth; /* levels; a scalar is 1 */
};
/* Takes a step for each node. */
struct vdi_tree_size vdi_tree_measure(struct vdi_tree *tree, const struct vdi_node *node);

/* Minified. */
void vdi_tree_write(struct vdi_out *out, const struct vdi_node *node);
/* The same, but ends in the middle soon after out has size_max bytes. */
void vdi_tree_write_begin(struct vdi_out *out, const struct vdi_node *node, size_t size_max);

#endif
