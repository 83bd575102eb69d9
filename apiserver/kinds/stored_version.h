/* Objects of a CustomResourceDefinition are stored in one version and served in several. With conversion
 * strategy None the versions differ in apiVersion only, which is replaced when bytes leave a cache or are
 * written to the store. Pure functions; any thread. */
#ifndef VDI_STORED_VERSION_H
#define VDI_STORED_VERSION_H

#include "out.h"
#include "resources.h"

/* The object's JSON in the version of resource (NULL: as stored), with its resourceVersion: consecutive
 * pieces. text and resource must outlive them. */
struct vdi_object_pieces {
	struct vd_object_json text;
	struct vd_bytes	      piece[6];
	size_t		      count;
};
void vdi_object_pieces(const struct vdi_resource *resource, const struct vd_object *object, vd_rev revision,
		       struct vdi_object_pieces *ret_pieces);

/* As vdi_object_pieces, appended to out. */
void vdi_object_write(struct vdi_out *out, const struct vdi_resource *resource,
		      const struct vd_object *object, vd_rev revision);

/* Appends json, an object that may have another version of the resource's group. */
void vdi_version_write(struct vdi_out *out, const struct vdi_resource *resource, struct vd_bytes json);
/* Returns the apiVersion of json, an object; empty if it has none. */
struct vd_bytes vdi_version_of(struct vd_bytes json);
/* Returns true if the object is stored in the current storage version. */
bool vdi_version_is_stored(const struct vdi_resource *resource, const struct vd_object *object);

#endif
