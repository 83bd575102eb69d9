/* Objects of a CustomResourceDefinition are stored in one version and served in several: with conversion None
 * they differ in apiVersion only, which is exchanged where bytes come out of a cache, and where they go into
 * the store. Pure functions; any thread. */
#ifndef VDI_STORED_VERSION_H
#define VDI_STORED_VERSION_H

#include "out.h"
#include "resources.h"

/* The object's JSON in the version of resource (NULL: as it is stored), with a resourceVersion: pieces that
 * follow each other. text must stay as long as they are used, and so must the resource. */
struct vdi_object_pieces {
	struct vd_object_json text;
	struct vd_bytes	      piece[6];
	size_t		      count;
};
void vdi_object_pieces(const struct vdi_resource *resource, const struct vd_object *object, vd_rev revision,
		       struct vdi_object_pieces *ret_pieces);

/* The same in one piece, appended to out. */
void vdi_object_write(struct vdi_out *out, const struct vdi_resource *resource,
		      const struct vd_object *object, vd_rev revision);

/* Appends json, an object that may have another version of the resource's group. */
void vdi_version_write(struct vdi_out *out, const struct vdi_resource *resource, struct vd_bytes json);
/* The apiVersion of json, an object; empty when it has none. */
struct vd_bytes vdi_version_of(struct vd_bytes json);
/* Whether what is stored of an object is stored as it would be now. */
bool vdi_version_is_stored(const struct vdi_resource *resource, const struct vd_object *object);

#endif
