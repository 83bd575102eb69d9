/* The compiled form of a plan: a small tree of keys. Shared by json_plan.c, which builds it, and json_scan.c,
 * which walks it. */
#ifndef VDI_JSON_PLAN_H
#define VDI_JSON_PLAN_H

#include "json_scan.h"

#define VDI_JSON_NODES_MAX 1024
#define VDI_JSON_BUCKETS 32
#define VDI_JSON_NODE_ROOT                                                                                   \
	VDI_JSON_MEMBER_COUNT /* the top level itself; no value of the root is ever recorded */
#define VDI_JSON_NODE_NONE UINT16_MAX

/* Node numbers below VDI_JSON_MEMBER_COUNT are enum vdi_json_member. Each node has one value in struct
 * vdi_json_object. */
struct vdi_json_node {
	char	 key16[16]; /* the first bytes of the key, the closing quote after it, zeroes */
	uint16_t behind16;  /* a bit for each of these zeroes; 0 when the key is longer */
	uint16_t key_length;
	uint16_t next;			    /* in the same bucket of the parent; VDI_JSON_NODE_NONE ends */
	bool	 strict;		    /* refuse repeated and escaped keys among all members */
	bool	 inner;			    /* has children, or must be looked into */
	char	*key;			    /* owned */
	uint16_t buckets[VDI_JSON_BUCKETS]; /* first child */
};

struct vdi_json_plan {
	struct vdi_json_node *nodes;
	size_t		      node_count;
	size_t		      node_capacity;
	size_t		      path_count;
	uint16_t	      path_nodes[VDI_JSON_PATHS_MAX];
};

static inline unsigned vdi_json_bucket(const char *key, size_t length)
{
	/* For an empty key the first byte is the quote that ends it. Of the small factors this one lets the
	 * fewest keys of metadata meet. */
	return ((unsigned) length * 29 + (uint8_t) (length ? key[0] : '"')) % VDI_JSON_BUCKETS;
}

#endif
