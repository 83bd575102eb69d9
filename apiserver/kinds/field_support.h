/* Checks that a kind supports the fields of a field selector. Pure functions. */
#ifndef VDI_FIELD_SUPPORT_H
#define VDI_FIELD_SUPPORT_H

#include "http_status.h"
#include "resources.h"

/* Returns true if the kind declares every field of the selector; otherwise false with 400 in *ret_status. A
 * selector that cannot be parsed passes: the cacher reports its error. */
bool vdi_field_support_check(const struct vdi_resource *resource, struct vd_bytes text,
			     struct vdi_http_status *ret_status);

#endif
