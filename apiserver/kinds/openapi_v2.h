/* The OpenAPI v2 document in gnostic's protobuf form, as small as kubectl accepts (H-205).
 *
 * kubectl looks up in it whether a kind's PATCH knows fieldValidation: up to 1.28 for every kind, later for
 * `kind: List`. There are no schemas in it.
 */
#ifndef VDI_OPENAPI_V2_H
#define VDI_OPENAPI_V2_H

#include "out.h"
#include "resources.h"

#define VDI_OPENAPI_V2_TYPE "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

void vdi_openapi_v2_write(struct vdi_out *out, const struct vdi_resources *resources);

#endif
