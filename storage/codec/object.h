/* Functions on vd_object for other rooms of the library, in addition to vedette/codec.h. */
#ifndef VDI_OBJECT_H
#define VDI_OBJECT_H

#include <vedette/codec.h>

#include "base.h"

/* Returns the record that vd_object_new would keep: kv itself with another reference, or one with the
 * converted value. VD_UNDECODABLE, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_object_translate(const struct vd_codec *codec, struct vd_kv *kv,
					    struct vd_kv **ret_kv, struct vd_error *reterr);

/* Makes an object of the attributes that a codec reported about kv's value. VD_UNDECODABLE (a limit is
 * exceeded), VD_NOMEM. */
VDI_MUST_USE vd_status vdi_object_of_attributes(struct vd_kv			  *kv,
						const struct vd_object_attributes *attributes,
						struct vd_object **ret_object, struct vd_error *reterr);

/* Returns the memory of the object's own header in bytes, without the shared kv. */
size_t vdi_object_header_size(const struct vd_object *object);
/* Prefetches the header into the CPU cache. */
void   vdi_object_prefetch(const struct vd_object *object);
size_t vdi_object_field_count(const struct vd_object *object);
/* Returns metadata.uid, empty if there is none. Valid as long as the object. */
struct vd_bytes vdi_object_uid(const struct vd_object *object);
/* Returns the value of metadata with its braces, as stored (without a resourceVersion unless the stored bytes
 * have one). Borrowed. */
struct vd_bytes vdi_object_metadata(const struct vd_object *object);
/* Returns the offset of the value of "metadata", and the offset in the value where a resourceVersion is
 * inserted; for derived views (PartialObjectMetadata). */
void vdi_object_offsets(const struct vd_object *object, uint32_t *ret_metadata_offset,
			uint32_t *ret_metadata_size, uint32_t *ret_revision_offset,
			uint32_t *ret_revision_size, bool *ret_revision_comma);

#endif
