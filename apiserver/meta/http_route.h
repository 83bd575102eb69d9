/* Parses a request path into resource, namespace, name and subresource. Pure functions. */
#ifndef VDI_HTTP_ROUTE_H
#define VDI_HTTP_ROUTE_H

#include "base.h"

enum vdi_route_kind {
	VDI_ROUTE_NONE,	    /* 404 */
	VDI_ROUTE_BAD,	    /* 400: the path itself is malformed */
	VDI_ROUTE_ROOT,	    /* / */
	VDI_ROUTE_API,	    /* /api */
	VDI_ROUTE_APIS,	    /* /apis */
	VDI_ROUTE_GROUP,    /* /apis/G */
	VDI_ROUTE_VERSION,  /* /api/v1, /apis/G/V */
	VDI_ROUTE_RESOURCE, /* any path below a version */
	VDI_ROUTE_PLAIN,    /* /version, /healthz, /metrics, /openapi/v3, ...: text in path */
};

#define VDI_ROUTE_PATH_MAX 2048

/* Slices point into text. */
struct vdi_route {
	enum vdi_route_kind kind;
	bool		    watch_prefix;  /* the deprecated /api/v1/watch/... */
	bool		    has_namespace; /* the path has a namespaces/{ns}/ part */
	struct vd_bytes	    path;	   /* decoded, without a trailing slash */
	struct vd_bytes	    group;	   /* "" for core */
	struct vd_bytes	    version;
	struct vd_bytes	    namespace_name;
	struct vd_bytes	    plural;
	struct vd_bytes	    name;
	struct vd_bytes	    subresource; /* may have several segments */
	char		    text[VDI_ROUTE_PATH_MAX];
};

/* path is still percent-encoded and begins with '/'. `%2F` and NUL inside a segment, `.` and `..` segments,
 * empty segments and broken escapes give VDI_ROUTE_BAD, so that no such text becomes part of a key. */
void vdi_route_parse(struct vd_bytes path, struct vdi_route *ret_route);

#endif
