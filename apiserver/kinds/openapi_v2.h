/* The OpenAPI v2 document in gnostic's protobuf form, with only the parts that kubectl needs.
 *
 * kubectl looks up whether a kind's PATCH has the parameter fieldValidation: up to 1.28 for every kind, later
 * only for `kind: List`. The document has no schemas.
 */
#ifndef VDI_OPENAPI_V2_H
#define VDI_OPENAPI_V2_H

#include "out.h"
#include "resources.h"

#define VDI_OPENAPI_V2_TYPE "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

void vdi_openapi_v2_write(struct vdi_out *out, const struct vdi_resources *resources);

#endif
