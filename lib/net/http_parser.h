/* The strict HTTP/1.1 request parser: a head in one piece, then a body by length or by chunks.
 *
 * Pure functions over bytes; no I/O, no time, no allocation. evhttp accepts two Content-Lengths, a blank
 * before the colon, bare LF, and a missing Host; this parser refuses them, because behind a proxy each of
 * them allows request smuggling. After a refusal the connection must be closed, because the start of the next
 * request is unknown.
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
	struct vd_bytes value; /* without surrounding blanks */
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
	int64_t		       content_length; /* -1: absent */
	struct vdi_http_header headers[VDI_HTTP_HEADER_MAX];
	size_t		       header_count;
};

/* The reason of a refusal: an HTTP status code and a sentence. */
struct vdi_http_refusal {
	int	    code;
	const char *message;
};

/* Position of the search for the end of a head, so that no byte is scanned twice. Zero before the first
 * byte. */
struct vdi_http_scan {
	size_t	      position;
	size_t	      line_size; /* of the request line, once known */
	unsigned char matched;	 /* matched bytes of CR LF CR LF */
	bool	      started;
};

/* Searches for the end of the head in bytes (which always begin at the same first byte). VD_OK: *ret_size is
 * the head's size, including its last CR LF CR LF. VD_AGAIN: incomplete. VD_BAD_REQUEST: *ret_refusal has the
 * reason. */
VDI_MUST_USE vd_status vdi_http_scan(struct vdi_http_scan *scan, struct vd_bytes bytes, size_t *ret_size,
				     struct vdi_http_refusal *ret_refusal);
/* Parses the head; head_bytes has exactly the size that vdi_http_scan returned. VD_BAD_REQUEST with
 * *ret_refusal. */
VDI_MUST_USE vd_status vdi_http_head_parse(struct vd_bytes head_bytes, struct vdi_http_head *ret_head,
					   struct vdi_http_refusal *ret_refusal);
/* VDI_HTTP_OTHER: a method that is not in the enum. */
enum vdi_http_method vdi_http_method_of(struct vd_bytes text);
/* The value of the header with this name (case is ignored); false if absent or repeated. */
bool vdi_http_header_get(const struct vdi_http_head *head, const char *name, struct vd_bytes *ret_value);

/* Decodes a chunked body. Zero before the first byte. */
struct vdi_http_chunked {
	unsigned char state;
	uint64_t      left;	  /* remaining bytes of the current chunk */
	size_t	      line_size;  /* of the current size line or trailer */
	size_t	      extra_size; /* of all size lines and trailers so far */
};

/* Takes at most one piece of body from bytes: *ret_taken bytes were used, and *ret_data is the body among
 * them (may be empty). VD_AGAIN: call again with the rest, or with more. VD_OK: the body has ended (*ret_data
 * is empty). VD_BAD_REQUEST. */
VDI_MUST_USE vd_status vdi_http_chunked_take(struct vdi_http_chunked *chunked, struct vd_bytes bytes,
					     size_t *ret_taken, struct vd_bytes *ret_data,
					     struct vdi_http_refusal *ret_refusal);

/* Removes blanks and tabs at both ends. */
struct vd_bytes vdi_http_trim(struct vd_bytes text);
/* Decodes %XX (and '+' as a blank if plus is set) into buffer, which has at least text.size bytes. False: an
 * escape is malformed. */
bool vdi_percent_decode(struct vd_bytes text, bool plus, char *buffer, size_t *ret_size);
/* Encodes all bytes but the unreserved characters of RFC 3986 as %XX into buffer, which has at least
 * 3 * text.size bytes. Returns the size of the result, which has no NUL. */
size_t vdi_percent_encode(struct vd_bytes text, char *buffer);
bool   vdi_ascii_equal_fold(struct vd_bytes a, const char *b);

/* Does not depend on the locale of the process, unlike isalnum. */
static inline bool vdi_ascii_is_alnum(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

#endif
