/* What the JSON codec can do beyond vedette/codec.h: objects made ahead, by whoever reads values first and
 * must check them anyway.
 *
 * The event log's reader checks that every value is JSON, and later the codec finds out the same and what the
 * object says. Where the reader knows the codec, it has the object made at once; vd_object_new then finds it.
 * An object that nobody asks for gives its place to a later one and goes with the codec.
 */
#ifndef VDI_CODEC_JSON_H
#define VDI_CODEC_JSON_H

#include <vedette/codec.h>

#include "base.h"

/* Bytes of a value; larger ones are never made ahead: at most 1024 objects wait. */
#define VDI_CODEC_JSON_PREPARE_MAX ((size_t) 16 << 10)

/* Before the others; once is enough. codec is one of vd_codec_json_new, and nobody uses it yet. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_codec_json_prepare_init(struct vd_codec *codec);
/* True: the value of kv is an object of this codec, JSON without white space and at most VDI_JSON_DEPTH_MAX -
 * 1 deep. kv's revision must be set and stay. False says nothing of the value. Any thread. */
bool vdi_codec_json_prepare(const struct vd_codec *codec, struct vd_kv *kv);
/* The object that was made of kv; the caller owns it. NULL: none (any more), or another codec. Any thread. */
struct vd_object *vdi_codec_json_prepared(const struct vd_codec *codec, const struct vd_kv *kv);

#endif
