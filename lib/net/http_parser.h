/* The strict HTTP/1.1 request parser: a head in one piece, then a body by length or by chunks.
 *
 * Pure functions over bytes; no I/O, no time, no allocation. What evhttp lets pass (two Content-Lengths, a
 * blank before the colon, bare LF, no Host: H-604) is refused here, because behind a proxy each of them is a
 * way to smuggle a request. After a refusal the connection must be closed: where the next request begins is
 * unknown.
 */
#ifndef VDI_HTTP_PARSER_H
#define VDI_HTTP_PARSER_H

#include "base.h"

enum vdi_http_method {
	VDI_HTTP_GET,
	VDI_HTTP_HEAD,
	VDI_HTTP_POST,
	VDI_HTTP_PUT,
	VDI_HTTP_PATCH,
	VDI_HTTP_DELETE,
	VDI_HTTP_OPTIONS,
	VDI_HTTP_OTHER
};

#define VDI_HTTP_LINE_MAX 16384
#define VDI_HTTP_HEAD_MAX 65536
#define VDI_HTTP_HEADER_MAX 64
#define VDI_HTTP_BODY_MAX 3145728

struct vdi_http_header {
	struct vd_bytes name;  /* as sent */
	struct vd_bytes value; /* without blanks around it */
};

/* Slices point into the parsed bytes. */
struct vdi_http_head {
	enum vdi_http_method   method;
	struct vd_bytes	       path;  /* before '?', still encoded; begins with '/', or is "*" */
	struct vd_bytes	       query; /* after '?' */
	bool		       version_1_0;
	bool		       keep_alive;
	bool		       chunked;
	bool		       expect_continue;
	int64_t		       content_length; /* -1: none given */
	struct vdi_http_header headers[VDI_HTTP_HEADER_MAX];
	size_t		       header_count;
};

/* Why a request is refused: an HTTP status code and a sentence. */
struct vdi_http_refusal {
	int	    code;
	const char *message;
};

/* Where the search for the end of a head stands, so that no byte is looked at twice. Zero before the first
 * byte. */
struct vdi_http_scan {
	size_t	      position;
	size_t	      line_size; /* of the request line, once known */
	unsigned char matched;	 /* how much of CR LF CR LF was seen */
	bool	      started;
};

/* Looks for the end of the head in bytes (always from the same first byte on). VD_OK: *ret_size is the head's
 * size, its last CR LF CR LF included. VD_AGAIN: not yet complete. VD_BAD_REQUEST: *ret_refusal says why. */
VDI_MUST_USE vd_status vdi_http_scan(struct vdi_http_scan *scan, struct vd_bytes bytes, size_t *ret_size,
				     struct vdi_http_refusal *ret_refusal);
/* head_bytes: exactly what vdi_http_scan measured. VD_BAD_REQUEST with *ret_refusal. */
VDI_MUST_USE vd_status vdi_http_head_parse(struct vd_bytes head_bytes, struct vdi_http_head *ret_head,
					   struct vdi_http_refusal *ret_refusal);
/* VDI_HTTP_OTHER: none that we know by name. */
enum vdi_http_method vdi_http_method_of(struct vd_bytes text);
/* The value of the header named so (whatever its case); false when absent or given twice. */
bool vdi_http_header_get(const struct vdi_http_head *head, const char *name, struct vd_bytes *ret_value);

/* Decodes a chunked body. Zero before the first byte. */
struct vdi_http_chunked {
	unsigned char state;
	uint64_t      left;	  /* bytes of the present chunk */
	size_t	      line_size;  /* of the present size line or trailer */
	size_t	      extra_size; /* of size lines and trailers so far */
};

/* Takes up to one piece of body from bytes: *ret_taken bytes were used up, of which *ret_data is body (may be
 * empty). VD_AGAIN: go on with the rest, or with more. VD_OK: the body has ended (*ret_data is empty).
 * VD_BAD_REQUEST. */
VDI_MUST_USE vd_status vdi_http_chunked_take(struct vdi_http_chunked *chunked, struct vd_bytes bytes,
					     size_t *ret_taken, struct vd_bytes *ret_data,
					     struct vdi_http_refusal *ret_refusal);

/* Without blanks and tabs at its ends. */
struct vd_bytes vdi_http_trim(struct vd_bytes text);
/* Decodes %XX (and '+' as a blank when plus) into buffer, which holds at least text.size bytes. False when an
 * escape is broken. */
bool vdi_percent_decode(struct vd_bytes text, bool plus, char *buffer, size_t *ret_size);
bool vdi_ascii_equal_fold(struct vd_bytes a, const char *b);

#endif
