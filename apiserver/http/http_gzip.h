/* Answers that go out compressed: for who asks, over HTTP/1.1, and from 128 KiB on.
 *
 * On the connection's loop. The content comes piece by piece from a source and is compressed in slices, each
 * a turn of the connection, so that a list of any size neither holds up the loop nor exists as a whole. How
 * many encoders a loop may have is bounded; who finds none is answered plainly.
 */
#ifndef VDI_HTTP_GZIP_H
#define VDI_HTTP_GZIP_H

#include "http_request.h"

#define VDI_GZIP_THRESHOLD 131072 /* more than this */
#define VDI_GZIP_LOOP_MAX 32	  /* encoders of one loop; 300 KiB each */

struct vdi_gzip_source {
	const struct vdi_gzip_source_ops *ops;
};

struct vdi_gzip_source_ops {
	/* The next parts of the content, lent until the next call. Anything but VD_OK cuts the answer. Not
	 * called again after the last. */
	vd_status (*next)(struct vdi_gzip_source *source, const struct iovec **ret_parts, size_t *ret_count,
			  bool *ret_is_last);
	/* The answer is over, or was cut, after so many bytes of compressed content. */
	void (*free)(struct vdi_gzip_source *source, int64_t sent);
};

/* Whether the client takes a compressed answer, and is to have it. */
bool vdi_request_accepts_gzip(const struct vdi_request *request);
/* The same, and there is an encoder left: an answer to it may be compressed if it is long enough. */
bool vdi_request_takes_gzip(const struct vdi_request *request);
/* Answers, with the source's content; takes over source. VD_NOMEM: nothing was done, source is still the
 * caller's, who answers plainly. The metrics of the answer are the source's business. */
VDI_MUST_USE vd_status vdi_request_reply_gzip(struct vdi_request *request, int code, const char *content_type,
					      const char *headers, struct vdi_gzip_source *source);
/* The same for a body in one piece, which is taken over, also its metrics. */
VDI_MUST_USE vd_status vdi_request_reply_gzip_body(struct vdi_request *request, int code,
						   const char *content_type, const char *headers,
						   struct vdi_out *body);

#endif
