/* The result of a list: a walk over a snapshot, or a page of objects that were gathered before. */
#ifndef VDI_CACHE_LIST_H
#define VDI_CACHE_LIST_H

#include <vedette/cacher.h>

#include "candidates.h"
#include "metrics.h"

struct vd_list {
	vd_rev	revision;
	int64_t candidate_count;
	int64_t remaining; /* -1: not set */
	char   *continue_token;

	/* Walk. */
	struct vdi_predicate *predicate; /* NULL: gathered */
	struct vdi_candidates candidates;

	/* A page that is not gathered yet; its tokens are relative to prefix, which is owned. */
	int64_t limit; /* 0: no page, or gathered */
	char   *prefix;
	size_t	prefix_size;

	/* Gathered objects, with a reference each unless the snapshot holds them. */
	struct vd_object **objects;
	size_t		   object_count;
	size_t		   object_capacity;
	size_t		   next;
	bool		   owns_objects;

	struct vdi_predicate *sharded; /* NULL: all shards */

	struct vdi_metric *returned_metric;	    /* counts returned objects; NULL: not counted */
	struct vdi_metric *returned_storage_metric; /* the same under its newer name */
	uint64_t	   returned;		    /* walking */
	struct vdi_metrics
		*metrics; /* a reference for these two, because the list may outlive its env; NULL: none */
};

/* Takes over the candidates, also on failure. limit 0: none. prefix: tokens are relative to it.
 * may_be_pending: a page with a long search is left for its receiver to gather, see vdi_list_is_long.
 * VD_NOMEM. */
VDI_MUST_USE vd_status vdi_list_new(struct vdi_candidates *candidates, struct vdi_predicate *predicate,
				    int64_t limit, struct vd_bytes prefix, vd_rev revision,
				    bool may_be_pending, struct vd_list **ret_list, struct vd_error *reterr);
/* Returns true if finding the list's objects takes milliseconds: very many candidates, or a selector with
 * many terms. The thread of an event loop must not walk such a list before vdi_list_gather, and no thread may
 * walk one that vdi_cacher_list_pending left pending. */
bool vdi_list_is_long(const struct vd_list *list);
/* Finds all objects of the list, or of its page; then walking it is cheap. Any thread. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_list_gather(struct vd_list *list, struct vd_error *reterr);
/* Appends an object, with a reference. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_list_append(struct vd_list *list, struct vd_object *object);

#endif
