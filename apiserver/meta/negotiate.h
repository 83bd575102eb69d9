/* Content negotiation: selects the response's form by the Accept header, and gzip by Accept-Encoding, as
 * upstream. Pure functions. */
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
	bool	      protobuf; /* encoded as application/vnd.kubernetes.protobuf instead of JSON */
	bool	      json_too; /* with protobuf: the client also accepts JSON */
};

/* Bit sets of the forms that an endpoint can answer with. */
#define VDI_FORMS_OBJECT (1u << VDI_FORM_OBJECT)
#define VDI_FORMS_RESOURCE (VDI_FORMS_OBJECT | 1u << VDI_FORM_TABLE | 1u << VDI_FORM_METADATA)
#define VDI_FORMS_LIST (VDI_FORMS_RESOURCE | 1u << VDI_FORM_METADATA_LIST)
#define VDI_FORMS_DISCOVERY                                                                                  \
	(VDI_FORMS_OBJECT | 1u << VDI_FORM_DISCOVERY_V2 | 1u << VDI_FORM_DISCOVERY_V2BETA1)

/* Added to a set: objects, or metadata forms, can be encoded as protobuf. */
#define VDI_FORMS_PROTOBUF (1u << 16)
#define VDI_FORMS_PROTOBUF_METADATA (1u << 17)

/* Selects the first acceptable clause with the highest q. An absent or empty header means JSON. False: no
 * clause is acceptable (406). */
bool vdi_negotiate(struct vd_bytes accept, unsigned forms, struct vdi_negotiated *ret_negotiated);

/* Compares the media type of a Content-Type header, without its parameters, ignoring case. */
bool vdi_media_type_is(struct vd_bytes content_type, const char *type);

/* Returns true if an Accept-Encoding header has the exact word "gzip". As upstream, gzip with parameters, in
 * another case, or "*" does not count. */
bool vdi_negotiate_gzip(struct vd_bytes accept_encoding);

#endif
