/* Frames of a watch: the encoding of one event, in the requested form (JSON, Table, PartialObjectMetadata,
 * protobuf; optionally compressed).
 *
 * A frame is one HTTP/1.1 chunk. Frames that all watches of one form can share are encoded once
 * (caching_object.h); the others per watch. On the watch's loop.
 */
#ifndef VDI_WATCH_FRAME_H
#define VDI_WATCH_FRAME_H

#include <vedette/watch.h>

#include "gzip_writer.h"
#include "negotiate.h"
#include "table.h"

struct vdi_watch_encoding {
	const struct vdi_resource *resource;
	const struct vd_env	  *env;
	struct vdi_gzip_writer	  *gzip_writer; /* borrowed from the loop; NULL: not compressed */
	size_t		      compressed_size; /* content compressed in this iteration; the watch resets it */
	struct vdi_negotiated negotiated;
	uint8_t		      include;	  /* enum vdi_include */
	bool		      header_due; /* the next Table has the column definitions */
};

/* Returns true if other watches may need the same bytes. */
bool vdi_watch_frame_is_shared(const struct vdi_watch_encoding *encoding, const struct vd_watch_event *event);
/* Returns the frame of a shareable event, as a gzip member of its own if the watch has a gzip writer; the
 * gzip writer must be between members. *ret_frame is a reference for the caller. VD_NOMEM; VD_BAD_REQUEST,
 * VD_TOO_BIG: the object has no encoding in this form. */
VDI_MUST_USE vd_status vdi_watch_frame_get(struct vdi_watch_encoding   *encoding,
					   const struct vd_watch_event *event, struct vd_blob **ret_frame);
/* Encodes the frame of any event, not shared and not compressed. Errors as above. */
VDI_MUST_USE vd_status vdi_watch_frame_new(struct vdi_watch_encoding   *encoding,
					   const struct vd_watch_event *event, struct vd_blob **ret_frame);

#endif
