/* A transport that answers requests from a table of paths: for tests of parts that send plain requests.
 *
 * One table per process at a time, because a transport's constructor has no argument of its own. Answers
 * arrive on the transport's actor, after a delay if one is set, in pieces of `piece` bytes. */
#ifndef VDT_KUBE_ROUTES_H
#define VDT_KUBE_ROUTES_H

#include "kube_transport.h"

#define KUBE_ROUTES_MAX 4096

struct kube_route {
	const char *path;
	int	    code; /* 0: the connection is cut */
	const char *body; /* borrowed */
	size_t	    size; /* 0: strlen */
	unsigned    retry_after_s;
	unsigned    requests; /* so far */
	const char *location; /* NULL: none */
	/* Sent instead if the request accepts only application/json; NULL: the same. */
	const char *plain;
};

struct kube_routes {
	struct kube_route routes[KUBE_ROUTES_MAX];
	size_t		  count;
	unsigned	  requests, open, opened_max; /* all paths */
	vd_dur		  delay;
	size_t		  piece;	 /* 0: all at once */
	bool		  is_aggregated; /* false: the server ignores the aggregated form */
	bool		  is_silent;	 /* no request is answered */
};

/* Starts with an empty table: 404 for all paths. */
void kube_routes_init(struct kube_routes *routes);
/* Adds or replaces. path, body and plain are borrowed. */
struct kube_route *kube_routes_set(struct kube_routes *routes, const char *path, int code, const char *body);
/* NULL: none. */
struct kube_route *kube_routes_at(struct kube_routes *routes, const char *path);
vd_status	   kube_routes_transport(const struct vdi_kube_transport_options *options,
					 struct vdi_kube_transport **ret_transport, struct vd_error *reterr);

#endif
