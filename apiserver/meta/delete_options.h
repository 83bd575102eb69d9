/* The options of a delete: a DeleteOptions body in JSON or in Kubernetes' protobuf envelope (typed clients
 * send the latter), or the query if there is no body. Pure functions. */
#ifndef VDI_DELETE_OPTIONS_H
#define VDI_DELETE_OPTIONS_H

#include "http_params.h"
#include "http_status.h"

enum vdi_propagation {
	VDI_PROPAGATION_UNSET,
	VDI_PROPAGATION_BACKGROUND,
	VDI_PROPAGATION_FOREGROUND,
	VDI_PROPAGATION_ORPHAN
};

struct vdi_delete_options {
	struct vd_bytes	     uid;
	struct vd_bytes	     revision;
	bool		     dry_run;
	enum vdi_propagation propagation;
	enum vd_tristate     orphan_dependents; /* the deprecated form of propagation */
	bool		     has_grace;
	int64_t		     grace_s;
	char		    *text; /* memory of the slices; owned */
};

/* An empty body gives no options. VD_INVALID with *status filled; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_delete_options_parse(struct vd_bytes body, bool protobuf,
						struct vdi_delete_options *ret_options,
						struct vdi_http_status	  *status);
/* Takes the options from the query, for a request without a body (kubernetes/apiserver
 * pkg/endpoints/handlers/delete.go). params must be validated. */
void vdi_delete_options_query(const struct vdi_params *params, struct vdi_delete_options *options);
void vdi_delete_options_fini(struct vdi_delete_options *options);

#endif
