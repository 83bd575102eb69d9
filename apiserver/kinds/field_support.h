/* Which fields a field selector may name. Pure functions. */
#ifndef VDI_FIELD_SUPPORT_H
#define VDI_FIELD_SUPPORT_H

#include "http_status.h"
#include "resources.h"

/* Every field of the selector is one that the kind declares; else false, with 400 in *ret_status. A selector
 * that cannot be parsed passes: the cacher says why it is wrong. */
bool vdi_field_support_check(const struct vdi_resource *resource, struct vd_bytes text,
			     struct vdi_http_status *ret_status);

#endif
