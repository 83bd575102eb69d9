/* What the layers above may ask of a vd_object beyond vedette/codec.h. */
#ifndef VDI_OBJECT_H
#define VDI_OBJECT_H

#include <vedette/codec.h>

#include "base.h"

/* The record as vd_object_new keeps it: kv itself with one reference more, or one with the translated value.
 * VD_UNDECODABLE, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_object_translate(const struct vd_codec *codec, struct vd_kv *kv,
					    struct vd_kv **ret_kv, struct vd_error *reterr);

/* An object of what a codec reported of kv's value. VD_UNDECODABLE (more than an object may have),
 * VD_NOMEM. */
VDI_MUST_USE vd_status vdi_object_of_facts(struct vd_kv *kv, const struct vd_object_facts *facts,
					   struct vd_object **ret_object, struct vd_error *reterr);

/* Bytes that the object's own header takes, without the shared kv. */
size_t vdi_object_header_size(const struct vd_object *object);
/* Asks the memory for the header. */
void   vdi_object_prefetch(const struct vd_object *object);
size_t vdi_object_field_count(const struct vd_object *object);
/* Empty when it has none. Good while the object is. */
struct vd_bytes vdi_object_uid(const struct vd_object *object);
/* The object's metadata value with its braces, as stored (no resourceVersion unless the stored bytes hold
 * one). Lent. */
struct vd_bytes vdi_object_metadata(const struct vd_object *object);
/* Offset of the value of "metadata" and where in the value the resourceVersion goes: for derived views
 * (PartialObjectMetadata). */
void vdi_object_offsets(const struct vd_object *object, uint32_t *ret_metadata_offset,
			uint32_t *ret_metadata_size, uint32_t *ret_revision_offset,
			uint32_t *ret_revision_size, bool *ret_revision_comma);

#endif
