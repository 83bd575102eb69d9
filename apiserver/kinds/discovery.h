/* Discovery documents (legacy and aggregated) and OpenAPI documents, rendered once per set of kinds and kept
 * with their ETags. */
#ifndef VDI_DISCOVERY_H
#define VDI_DISCOVERY_H

#include "out.h"
#include "negotiate.h"
#include "resources.h"

struct vdi_document {
	char	      *path; /* such as "/api" or "/openapi/v3/apis/apps/v1" */
	enum vdi_form  form;
	const char    *content_type;
	struct vdi_out body;
	char	       etag[20]; /* quoted */
};

struct vdi_documents {
	struct vdi_document *items;
	size_t		     count;
	size_t		     capacity;
};

/* VD_NOMEM: documents stays empty. */
VDI_MUST_USE vd_status vdi_documents_init(struct vdi_documents	     *documents,
					  const struct vdi_resources *resources);
void		       vdi_documents_fini(struct vdi_documents *documents);
/* Returns NULL if there is no document at this path. If the path has none of this form, returns the plain
 * one. */
const struct vdi_document *vdi_documents_find(const struct vdi_documents *documents, struct vd_bytes path,
					      enum vdi_form form);

#endif
