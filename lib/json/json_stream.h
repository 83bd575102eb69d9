/* Finds the end of each JSON value in a stream, independent of newlines and of the borders of chunks.
 *
 * Checks brackets and strings only; the reader of a value checks its content. Values at the top are objects
 * or arrays. One thread.
 */
#ifndef VDI_JSON_STREAM_H
#define VDI_JSON_STREAM_H

#include "base.h"

/* Maximum size of a value. */
#define VDI_JSON_STREAM_VALUE_MAX ((size_t) 64 << 20)

struct vdi_json_stream {
	char	*data; /* bytes from the start of a value that has not ended */
	size_t	 size;
	size_t	 capacity;
	unsigned depth;
	bool	 in_string, escaped;
	uint64_t lines; /* line ends so far */
	uint64_t line;	/* line of the start of the current value, from 1 */
};

/* value is borrowed for the call; a status other than VD_OK ends vdi_json_stream_feed with it. */
typedef vd_status (*vdi_json_stream_fn)(void *arg, struct vd_bytes value);

/* Passes each complete value to each. A zeroed stream is ready. VD_TOO_BIG, VD_NOMEM, VD_BAD_REQUEST (the top
 * has something other than objects and arrays). */
VDI_MUST_USE vd_status vdi_json_stream_feed(struct vdi_json_stream *stream, struct vd_bytes bytes,
					    vdi_json_stream_fn each, void *arg);
/* Returns true if a value has begun and not ended. */
bool vdi_json_stream_is_open(const struct vdi_json_stream *stream);
void vdi_json_stream_reset(struct vdi_json_stream *stream);
void vdi_json_stream_fini(struct vdi_json_stream *stream);

#endif
