/* The compiled form of a plan: a small tree of keys. json_plan.c builds it, json_scan.c walks it. */
#ifndef VDI_JSON_PLAN_H
#define VDI_JSON_PLAN_H

#include "json_scan.h"

#define VDI_JSON_NODES_MAX 1024
#define VDI_JSON_BUCKETS 32
#define VDI_JSON_NODE_ROOT VDI_JSON_MEMBER_COUNT /* the top level itself; no value is recorded for it */
#define VDI_JSON_NODE_NONE UINT16_MAX

/* Node numbers below VDI_JSON_MEMBER_COUNT are enum vdi_json_member. Each node has one value in struct
 * vdi_json_object. */
struct vdi_json_node {
	char	 key16[16]; /* the first bytes of the key, the closing quote after it, zeros */
	uint16_t behind16;  /* one bit per zero; 0 if the key is longer */
	uint16_t key_length;
	uint16_t next;	 /* next in the same bucket of the parent; VDI_JSON_NODE_NONE: last */
	bool	 strict; /* refuse repeated and escaped keys among all members */
	bool	 inner;	 /* has children, or its content must be checked */
	char	*key;	 /* owned */
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
	/* For an empty key the first byte is the closing quote. Among the small factors this one causes the
	 * fewest collisions of metadata's keys. */
	return ((unsigned) length * 29 + (uint8_t) (length ? key[0] : '"')) % VDI_JSON_BUCKETS;
}

#endif
