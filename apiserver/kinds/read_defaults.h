/* Defaults at read: what was stored before its schema had a default has it all the same, in every read and
 * watch.
 *
 * Done once, where a cache (or a read of the store) decodes: by a codec around the kind's own. Kinds without
 * defaults have none of it. The store keeps what was written. Mirrors unstructuredDefaulter of
 * k8s.io/apiextensions-apiserver pkg/apiserver/customresource_handler.go: an object is held against the
 * schema of the version that it is stored in. Immutable once it is shared; any thread.
 */
#ifndef VDI_READ_DEFAULTS_H
#define VDI_READ_DEFAULTS_H

#include <vedette/codec.h>

#include "schema.h"

struct vdi_read_defaults;

/* What schema does to objects of api_version ("example.com/v1"), whose use it takes one more of. *defaults
 * NULL: there are none so far; it stays so when the schema has none. VD_NOMEM: as before. */
VDI_MUST_USE vd_status vdi_read_defaults_add(struct vdi_read_defaults **defaults, const char *api_version,
					     const struct vdi_schema *schema);
/* NULL is fine in both; unref returns NULL. */
struct vdi_read_defaults *vdi_read_defaults_ref(struct vdi_read_defaults *defaults);
struct vdi_read_defaults *vdi_read_defaults_unref(struct vdi_read_defaults *defaults);
/* Equal keys: the same is done. 0 of NULL. */
uint64_t vdi_read_defaults_key(const struct vdi_read_defaults *defaults);
/* Puts a codec around *codec that sets them; it takes that over. VD_NOMEM: it stays what it is. */
VDI_MUST_USE vd_status vdi_read_defaults_wrap(struct vdi_read_defaults *defaults, struct vd_codec **codec);

#endif
