/* Discovery and OpenAPI documents: rendered once from the resources, kept with their ETags (H-110..H-115,
 * H-201..H-203). */
#ifndef VDI_DISCOVERY_H
#define VDI_DISCOVERY_H

#include "out.h"
#include "negotiate.h"
#include "resources.h"

struct vdi_document {
	char	      *path; /* "/api", "/openapi/v3/apis/apps/v1" */
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

/* VD_NOMEM: nothing is kept. */
VDI_MUST_USE vd_status vdi_documents_init(struct vdi_documents	     *documents,
					  const struct vdi_resources *resources);
void		       vdi_documents_fini(struct vdi_documents *documents);
/* NULL when there is none at this path; a path with another form gives the plain one. */
const struct vdi_document *vdi_documents_find(const struct vdi_documents *documents, struct vd_bytes path,
					      enum vdi_form form);

#endif
