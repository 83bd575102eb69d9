/* Prepared objects: an extension of the JSON codec for a reader that must validate values anyway.
 *
 * The event log's reader checks that every value is JSON; later the codec parses the value again for the
 * object. A reader with access to the codec prepares the object at once, and vd_object_new then finds it. An
 * object that is not fetched is replaced by a later one, or freed with the codec.
 */
#ifndef VDI_CODEC_JSON_H
#define VDI_CODEC_JSON_H

#include <vedette/codec.h>

#include "base.h"

/* Maximum size of a value in bytes; larger ones are never prepared. At most 1024 objects are kept. */
#define VDI_CODEC_JSON_PREPARE_MAX ((size_t) 16 << 10)

/* Enables vdi_codec_json_prepare and vdi_codec_json_prepared; call before them, once. codec comes from
 * vd_codec_json_new and is not in use yet. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_codec_json_prepare_init(struct vd_codec *codec);
/* Prepares the object of kv, whose revision must be set and not change. Returns true if the value is an
 * object of this codec, in JSON without white space and at most VDI_JSON_DEPTH_MAX - 1 deep. False says
 * nothing about the value. Any thread. */
bool vdi_codec_json_prepare(const struct vd_codec *codec, struct vd_kv *kv);
/* Returns the prepared object of kv; the caller owns it. NULL: none, or kv belongs to another codec. Any
 * thread. */
struct vd_object *vdi_codec_json_prepared(const struct vd_codec *codec, const struct vd_kv *kv);

#endif
