/* A small JSON tree for code that is not time-critical: bodies, patches, table cells.
 *
 * Parsed strictly (RFC 8259, UTF-8, depth) into an arena; numbers keep their text and members their order, so
 * a patch leaves everything else unchanged. A tree has one owner and one thread. Nodes live as long as the
 * tree; a node removed from its parent stays in the arena. The source bytes must outlive the tree, because
 * strings without escapes point into them.
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
	struct vdi_tree_index *index;	 /* large objects only */
	struct vd_bytes	       key;	 /* unescaped; members only */
	struct vd_bytes	       text;	 /* unescaped string, or the number as written */
	uint32_t	       count;	 /* children */
	uint8_t		       kind;
	bool		       is_marked; /* scratch mark; unset outside of the function that uses it */
};

struct vdi_tree {
	void  *blocks; /* the arena; zero: empty */
	char  *at;
	size_t left;
	/* its source text; set by vdi_tree_parse_row only, borrowed like the text */
	struct vd_bytes metadata;
	/* nodes visited so far by lookups, copies, comparisons and measurements, so that a caller can limit
	 * its work */
	uint64_t steps;
};

#define VDI_TREE_INIT                                                                                        \
	{                                                                                                    \
		0, 0, 0, { 0, 0 }, 0                                                                         \
	}

void vdi_tree_fini(struct vdi_tree *tree);

/* Allocates memory that lives as long as the tree, aligned for any type, not zeroed; NULL if out of
 * memory. */
void *vdi_tree_take(struct vdi_tree *tree, size_t size);
/* Copies text into the arena. False if out of memory. */
VDI_MUST_USE bool vdi_tree_take_text(struct vdi_tree *tree, struct vd_bytes text, struct vd_bytes *ret_text);

/* Parses text. VD_BAD_REQUEST with a message and the offset; VD_NOMEM. Refuses duplicate keys. */
VDI_MUST_USE vd_status vdi_tree_parse(struct vdi_tree *tree, struct vd_bytes text, struct vdi_node **ret_root,
				      struct vd_error *reterr);

/* Like vdi_tree_parse, for tables and metadata of a stored object, with a bounded number of nodes: after the
 * first VDI_TREE_SHOWN_MAX nodes, further children of each container except metadata are only counted. */
#define VDI_TREE_SHOWN_MAX 50000
VDI_MUST_USE vd_status vdi_tree_parse_shown(struct vdi_tree *tree, struct vd_bytes text,
					    struct vdi_node **ret_root, struct vd_error *reterr);

/* Like vdi_tree_parse_shown, but of metadata only the members are created, so that they are found;
 * tree->metadata is its text. For rows, which copy it. */
VDI_MUST_USE vd_status vdi_tree_parse_row(struct vdi_tree *tree, struct vd_bytes text,
					  struct vdi_node **ret_root, struct vd_error *reterr);

/* NULL if object is NULL, not an object, or has no such member. */
struct vdi_node *vdi_tree_get(struct vdi_tree *tree, const struct vdi_node *object, struct vd_bytes key);
/* The member at path, such as "metadata.name": plain names only. */
struct vdi_node *vdi_tree_find(struct vdi_tree *tree, const struct vdi_node *object, const char *path);
/* The text of a string; empty if node is NULL or of another kind. */
struct vd_bytes	   vdi_tree_string_of(const struct vdi_node *node);
static inline bool vdi_tree_is(const struct vdi_node *node, enum vdi_node_kind kind)
{
	return node && node->kind == kind;
}
/* An integer, or fallback. */
int64_t vdi_tree_int_of(const struct vdi_node *node, int64_t fallback);

/* Create nodes; NULL if out of memory. Text is copied into the arena. */
struct vdi_node		      *vdi_tree_new(struct vdi_tree *tree, enum vdi_node_kind kind);
struct vdi_node		      *vdi_tree_new_string(struct vdi_tree *tree, struct vd_bytes text);
struct vdi_node		      *vdi_tree_new_int(struct vdi_tree *tree, int64_t number);
static inline struct vdi_node *vdi_tree_last(const struct vdi_node *parent)
{
	return parent->first ? parent->first->previous : NULL;
}
/* A deep copy, in tree. */
struct vdi_node *vdi_tree_copy(struct vdi_tree *tree, const struct vdi_node *node);

/* Replaces or appends a member; value must not have a parent and is consumed: vdi_tree_get then returns the
 * member. False if out of memory, or if value is NULL (a failed vdi_tree_new). */
VDI_MUST_USE bool vdi_tree_set(struct vdi_tree *tree, struct vdi_node *object, struct vd_bytes key,
			       struct vdi_node *value);
/* Returns the member; if it is absent or of another kind, it becomes an empty object or array. NULL if out of
 * memory. */
struct vdi_node *vdi_tree_object_at(struct vdi_tree *tree, struct vdi_node *object, const char *key);
struct vdi_node *vdi_tree_array_at(struct vdi_tree *tree, struct vdi_node *object, const char *key);
/* Returns true if the member existed. */
bool vdi_tree_remove(struct vdi_tree *tree, struct vdi_node *object, struct vd_bytes key);
void vdi_tree_append(struct vdi_node *array, struct vdi_node *value);
/* Inserts value before the element `before`; NULL: at the end. */
void vdi_tree_array_insert(struct vdi_node *array, struct vdi_node *before, struct vdi_node *value);
/* Removes child from array. */
void vdi_tree_array_remove(struct vdi_node *array, struct vdi_node *child);
/* Removes all children. */
void vdi_tree_clear(struct vdi_node *parent);
/* Gives node the kind, content and children of value; its key and position stay. value must not have a parent
 * and is consumed. */
void vdi_tree_become(struct vdi_node *node, const struct vdi_node *value);

/* Deep equality; the order of members does not matter, numbers are compared as text. */
bool vdi_tree_equal(struct vdi_tree *tree, const struct vdi_node *a, const struct vdi_node *b);

struct vdi_tree_size {
	size_t	 bytes; /* of the minified text; characters that vdi_tree_write escapes count as one byte */
	unsigned depth; /* levels; a scalar is 1 */
};
/* Takes one step per node. */
struct vdi_tree_size vdi_tree_measure(struct vdi_tree *tree, const struct vdi_node *node);

/* Writes node minified. */
void vdi_tree_write(struct vdi_out *out, const struct vdi_node *node);
/* The same, but stops soon after out has size_max bytes. */
void vdi_tree_write_begin(struct vdi_out *out, const struct vdi_node *node, size_t size_max);

#endif
