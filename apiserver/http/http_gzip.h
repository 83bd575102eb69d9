/* Compressed responses: for clients that accept gzip, over HTTP/1.1, above 128 KiB (upstream's threshold).
 *
 * Runs on the connection's loop. The content comes piece by piece from a source and is compressed in slices,
 * one per iteration of the connection, so that a list of any size neither blocks the loop nor is held in
 * memory as a whole. The number of encoders per loop is bounded; if none is free, the response is not
 * compressed.
 */
#ifndef VDI_HTTP_GZIP_H
#define VDI_HTTP_GZIP_H

#include "http_request.h"

#define VDI_GZIP_THRESHOLD 131072 /* content must be larger than this */
#define VDI_GZIP_LOOP_MAX 32	  /* encoders per loop; 300 KiB each */

struct vdi_gzip_source {
	const struct vdi_gzip_source_ops *ops;
};

struct vdi_gzip_source_ops {
	/* Returns the next parts of the content, borrowed until the next call. Any status but VD_OK aborts
	 * the response. Not called again after the last part. */
	vd_status (*next)(struct vdi_gzip_source *source, const struct iovec **ret_parts, size_t *ret_count,
			  bool *ret_is_last);
	/* The response has ended or was aborted, after this many bytes of compressed content. */
	void (*free)(struct vdi_gzip_source *source, int64_t sent);
};

/* Returns true if the client accepts gzip and the server compresses. */
bool vdi_request_accepts_gzip(const struct vdi_request *request);
/* As vdi_request_accepts_gzip, and an encoder is free: a long enough response may be compressed. */
bool vdi_request_takes_gzip(const struct vdi_request *request);
/* Responds with the source's content; takes over source. VD_NOMEM: nothing was done, the caller still owns
 * source and responds without compression. The source counts the response's metrics. */
VDI_MUST_USE vd_status vdi_request_reply_gzip(struct vdi_request *request, int code, const char *content_type,
					      const char *headers, struct vdi_gzip_source *source);
/* As vdi_request_reply_gzip for a body in one piece, which is taken over; counts its metrics too. */
VDI_MUST_USE vd_status vdi_request_reply_gzip_body(struct vdi_request *request, int code,
						   const char *content_type, const char *headers,
						   struct vdi_out *body);

#endif
