/* A small JSON tree for the cold path: bodies, patches, table cells.
 *
 * Parsed strictly (RFC 8259, UTF-8, depth) into an arena; numbers keep their text, members their order, so that what a patch does not touch comes out as it
 * went in. A tree has one owner and one thread. Nodes live as long as the tree; taking one out of its parent leaves it in the arena.
 * The source bytes must outlive the tree: strings without escapes point into them.
 */
#ifndef VDI_JSON_TREE_H
#define VDI_JSON_TREE_H

#include "json_out.h"

#define VDI_JSON_DEPTH_MAX 64

enum vdi_json_kind { VDI_JSON_NULL, VDI_JSON_FALSE, VDI_JSON_TRUE, VDI_JSON_NUMBER, VDI_JSON_STRING, VDI_JSON_ARRAY, VDI_JSON_OBJECT };

struct vdi_json_index;

struct vdi_json {
	struct vdi_json	      *next;  /* sibling */
	struct vdi_json	      *first; /* child */
	struct vdi_json	      *last;
	struct vdi_json_index *index; /* of a large object */
	struct vd_bytes	       key;   /* unescaped; of a member */
	struct vd_bytes	       text;  /* unescaped string, or the number as written */
	uint32_t	       count; /* children */
	uint8_t		       kind;
};

struct vdi_json_tree {
	void *blocks; /* the arena; zero is an empty one */
	char *at;
	size_t left;
};

#define VDI_JSON_TREE_INIT { 0, 0, 0 }

void vdi_json_tree_fini(struct vdi_json_tree *tree);

/* VD_BAD_REQUEST with a sentence and the place; VD_NOMEM. Duplicate keys are refused. */
VDI_MUST_USE vd_status vdi_json_parse(struct vdi_json_tree *tree, struct vd_bytes text, struct vdi_json **ret_root, struct vd_error *reterr);

/* NULL when object is NULL, no object, or has no such member. */
struct vdi_json *vdi_json_get(struct vdi_json_tree *tree, const struct vdi_json *object, struct vd_bytes key);
/* The member path, such as "metadata.name": plain names only. */
struct vdi_json *vdi_json_find(struct vdi_json_tree *tree, const struct vdi_json *object, const char *path);
/* The text of a string; empty when node is NULL or another kind. */
struct vd_bytes vdi_json_string_of(const struct vdi_json *node);
static inline bool vdi_json_is(const struct vdi_json *node, enum vdi_json_kind kind)
{
	return node && node->kind == kind;
}
/* An integer, or fallback. */
int64_t vdi_json_int_of(const struct vdi_json *node, int64_t fallback);

/* New nodes; NULL when out of memory. Text is copied into the arena. */
struct vdi_json *vdi_json_new(struct vdi_json_tree *tree, enum vdi_json_kind kind);
struct vdi_json *vdi_json_new_string(struct vdi_json_tree *tree, struct vd_bytes text);
struct vdi_json *vdi_json_new_int(struct vdi_json_tree *tree, int64_t number);
/* A deep copy, in tree. */
struct vdi_json *vdi_json_copy(struct vdi_json_tree *tree, const struct vdi_json *node);

/* Replaces or appends a member; value must not be in a parent. False when out of memory. value NULL (a failed vdi_json_new) is false too. */
VDI_MUST_USE bool vdi_json_set(struct vdi_json_tree *tree, struct vdi_json *object, struct vd_bytes key, struct vdi_json *value);
/* The member, made as an empty object when absent or of another kind; NULL when out of memory. */
struct vdi_json *vdi_json_object_at(struct vdi_json_tree *tree, struct vdi_json *object, const char *key);
/* Whether it was there. */
bool vdi_json_remove(struct vdi_json_tree *tree, struct vdi_json *object, struct vd_bytes key);
void vdi_json_append(struct vdi_json *array, struct vdi_json *value);
/* Takes child out of array. */
void vdi_json_array_remove(struct vdi_json *array, struct vdi_json *child);

/* Deep equality; the order of members does not matter, numbers compare as text. */
bool vdi_json_equal(struct vdi_json_tree *tree, const struct vdi_json *a, const struct vdi_json *b);

/* Minified. */
void vdi_json_write(struct vdi_json_out *out, const struct vdi_json *node);

#endif
