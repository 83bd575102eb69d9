/* Defaults at read: every read and watch completes an object that was stored before its schema had a default.
 *
 * Done once per decode, in a cache or for a read of the store, by a codec around the kind's own; kinds
 * without defaults have no such codec. The store keeps the object as written. Mirrors unstructuredDefaulter
 * of k8s.io/apiextensions-apiserver pkg/apiserver/customresource_handler.go: the schema of the version in
 * which an object is stored applies. Immutable once shared; any thread.
 */
#ifndef VDI_READ_DEFAULTS_H
#define VDI_READ_DEFAULTS_H

#include <vedette/codec.h>

#include "schema.h"

struct vdi_read_defaults;

/* Adds schema, with a reference, for objects of api_version (such as "example.com/v1"). *defaults NULL: none
 * so far; it stays NULL if the schema has no defaults. VD_NOMEM: unchanged. */
VDI_MUST_USE vd_status vdi_read_defaults_add(struct vdi_read_defaults **defaults, const char *api_version,
					     const struct vdi_schema *schema);
/* NULL is fine in both; unref returns NULL. */
struct vdi_read_defaults *vdi_read_defaults_ref(struct vdi_read_defaults *defaults);
struct vdi_read_defaults *vdi_read_defaults_unref(struct vdi_read_defaults *defaults);
/* Equal keys mean equal defaults. 0 for NULL. */
uint64_t vdi_read_defaults_key(const struct vdi_read_defaults *defaults);
/* Wraps *codec, taking it over, in a codec that sets the defaults. VD_NOMEM: *codec is unchanged. */
VDI_MUST_USE vd_status vdi_read_defaults_wrap(struct vdi_read_defaults *defaults, struct vd_codec **codec);

#endif
