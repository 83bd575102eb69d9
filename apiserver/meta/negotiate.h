/* Which form an answer takes: the Accept and Accept-Encoding headers (R-648, R-647, H-110, H-301, H-306,
 * H-307). Pure functions. */
#ifndef VDI_NEGOTIATE_H
#define VDI_NEGOTIATE_H

#include "base.h"

enum vdi_form {
	VDI_FORM_OBJECT,	/* application/json */
	VDI_FORM_TABLE,		/* ;as=Table;g=meta.k8s.io */
	VDI_FORM_METADATA,	/* ;as=PartialObjectMetadata */
	VDI_FORM_METADATA_LIST, /* ;as=PartialObjectMetadataList */
	VDI_FORM_DISCOVERY_V2,	/* ;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io;v=v2 */
	VDI_FORM_DISCOVERY_V2BETA1,
};

struct vdi_negotiated {
	enum vdi_form form;
	bool	      v1beta1;	/* of Table and metadata forms */
	bool	      protobuf; /* as application/vnd.kubernetes.protobuf, not as JSON */
	bool	      json_too; /* with protobuf: JSON would be taken as well */
};

/* Bits of what the endpoint can answer. */
#define VDI_FORMS_OBJECT (1u << VDI_FORM_OBJECT)
#define VDI_FORMS_RESOURCE (VDI_FORMS_OBJECT | 1u << VDI_FORM_TABLE | 1u << VDI_FORM_METADATA)
#define VDI_FORMS_LIST (VDI_FORMS_RESOURCE | 1u << VDI_FORM_METADATA_LIST)
#define VDI_FORMS_DISCOVERY                                                                                  \
	(VDI_FORMS_OBJECT | 1u << VDI_FORM_DISCOVERY_V2 | 1u << VDI_FORM_DISCOVERY_V2BETA1)

/* With these, objects and metadata forms may be answered as protobuf. */
#define VDI_FORMS_PROTOBUF (1u << 16)
#define VDI_FORMS_PROTOBUF_METADATA (1u << 17)

/* The first acceptable clause of the highest q. An absent or empty header means JSON. False: nothing fits
 * (406). */
bool vdi_negotiate(struct vd_bytes accept, unsigned forms, struct vdi_negotiated *ret_negotiated);

/* The media type of a Content-Type header without its parameters, compared whatever its case. */
bool vdi_media_type_is(struct vd_bytes content_type, const char *type);

/* Whether an Accept-Encoding header takes gzip, as upstream reads it: by the word "gzip" alone; one
 * with parameters, another case, or "*" is no. */
bool vdi_negotiate_gzip(struct vd_bytes accept_encoding);

#endif
