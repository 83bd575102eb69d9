/* Finds where one JSON value of a stream ends, whatever the chunks it comes in (H-406: neither newlines nor
 * chunk borders mean anything).
 *
 * Looks only at brackets and strings: what the value says is for the reader to check. Values at the top are
 * objects or arrays. One thread.
 */
#ifndef VDI_JSON_STREAM_H
#define VDI_JSON_STREAM_H

#include "base.h"

/* The longest value that is gathered. */
#define VDI_JSON_STREAM_VALUE_MAX ((size_t) 64 << 20)

struct vdi_json_stream {
	char	*data; /* gathered so far: from the start of a value that has not ended */
	size_t	 size;
	size_t	 capacity;
	size_t	 scanned;
	unsigned depth;
	bool	 in_string, escaped;
	uint64_t lines; /* line ends that were scanned */
	uint64_t line;	/* where the value began that is given or open, from 1 */
};

/* Lent for the call; not VD_OK ends the feeding with it. */
typedef vd_status (*vdi_json_stream_fn)(void *arg, struct vd_bytes value);

/* All zero is ready. Gives each value that is complete to each. VD_TOO_BIG, VD_NOMEM, VD_BAD_REQUEST
 * (something else than a value at the top). */
VDI_MUST_USE vd_status vdi_json_stream_feed(struct vdi_json_stream *stream, struct vd_bytes bytes,
					    vdi_json_stream_fn each, void *arg);
/* Whether a value has begun that never ended. */
bool vdi_json_stream_is_open(const struct vdi_json_stream *stream);
void vdi_json_stream_reset(struct vdi_json_stream *stream);
void vdi_json_stream_fini(struct vdi_json_stream *stream);

#endif
