/* The strict request parser.
 *
 * It first searches for the end of the head, byte by byte, and remembers the position, so that a client that
 * sends slowly costs no repeated work. Then it parses the whole head from contiguous memory. It refuses
 * everything that two parsers could understand differently: bare CR or LF, control bytes, folded lines,
 * blanks around a header name, repeated Host, Authorization or Content-Length, Content-Length next to
 * Transfer-Encoding, unknown codings.
 */
#include "http_parser.h"

static vd_status refuse(struct vdi_http_refusal *refusal, int code, const char *message)
{
	refusal->code = code;
	refusal->message = message;
	return VD_BAD_REQUEST;
}

bool vdi_ascii_equal_fold(struct vd_bytes a, const char *b)
{
	const unsigned char *at = a.data;
	size_t		     i;

	for (i = 0; i < a.size; i++) {
		unsigned char x = at[i], y = (unsigned char) b[i];

		x = x >= 'A' && x <= 'Z' ? x + 32 : x;
		y = y >= 'A' && y <= 'Z' ? y + 32 : y;
		if (y == 0 || x != y)
			return false;
	}
	return b[i] == 0;
}

static int hex_value(unsigned char c)
{
	return c >= '0' && c <= '9' ? c - '0' :
	       c >= 'a' && c <= 'f' ? c - 'a' + 10 :
	       c >= 'A' && c <= 'F' ? c - 'A' + 10 :
				      -1;
}

bool vdi_percent_decode(struct vd_bytes text, bool plus, char *buffer, size_t *ret_size)
{
	const char *from = text.data;
	size_t	    size = 0;

	for (size_t i = 0; i < text.size; i++) {
		if (from[i] == '%') {
			if (text.size - i < 3 || hex_value(from[i + 1]) < 0 || hex_value(from[i + 2]) < 0)
				return false;
			buffer[size++] = (char) (hex_value(from[i + 1]) * 16 + hex_value(from[i + 2]));
			i += 2;
		} else {
			buffer[size++] = plus && from[i] == '+' ? ' ' : from[i];
		}
	}
	*ret_size = size;
	return true;
}

size_t vdi_percent_encode(struct vd_bytes text, char *buffer)
{
	static const char    digits[] = "0123456789ABCDEF";
	const unsigned char *from = text.data;
	size_t		     size = 0;

	for (size_t i = 0; i < text.size; i++) {
		unsigned char c = from[i];

		if (vdi_ascii_is_alnum(c) || c == '-' || c == '.' || c == '_' || c == '~') {
			buffer[size++] = (char) c;
		} else {
			buffer[size++] = '%';
			buffer[size++] = digits[c >> 4];
			buffer[size++] = digits[c & 15];
		}
	}
	return size;
}

static bool is_token(unsigned char c)
{
	static const char marks[] = "!#$%&'*+-.^_`|~";

	return vdi_ascii_is_alnum(c) || (c && strchr(marks, c) != NULL);
}

vd_status vdi_http_scan(struct vdi_http_scan *scan, struct vd_bytes bytes, size_t *ret_size,
			struct vdi_http_refusal *ret_refusal)
{
	const unsigned char *data = bytes.data;

	for (; scan->position < bytes.size; scan->position++) {
		unsigned char c = data[scan->position];

		if (scan->position >= VDI_HTTP_HEAD_MAX)
			return refuse(ret_refusal, 431, "Request header fields too large");
		if (scan->line_size == 0 && scan->position >= VDI_HTTP_LINE_MAX)
			return refuse(ret_refusal, 414, "Request URI too long");
		switch (scan->matched) {
		case 0:
		case 2:
			if (c == '\r') {
				scan->matched++;
				continue;
			}
			scan->matched = 0;
			if (c == '\n')
				return refuse(ret_refusal, 400,
					      "malformed request: a line must end with CR LF");
			if ((c < 0x20 && c != '\t') || c == 0x7F)
				return refuse(ret_refusal, 400, "malformed request: control character");
			continue;
		default:
			if (c != '\n')
				return refuse(ret_refusal, 400,
					      "malformed request: a line must end with CR LF");
			if (scan->line_size == 0)
				scan->line_size = scan->position + 1;
			if (scan->matched == 3) {
				*ret_size = ++scan->position;
				return VD_OK;
			}
			scan->matched = 2;
		}
	}
	return VD_AGAIN;
}

/* Removes the next line from bytes; vdi_http_scan has checked that each line ends with CR LF. */
static struct vd_bytes take_line(struct vd_bytes *bytes)
{
	const char     *from = bytes->data;
	const char     *end = memchr(from, '\r', bytes->size);
	size_t		size = end ? (size_t) (end - from) : bytes->size;
	struct vd_bytes line = { from, size };
	size_t		used = VDI_MIN(size + 2, bytes->size);

	bytes->data = from + used;
	bytes->size -= used;
	return line;
}

struct vd_bytes vdi_http_trim(struct vd_bytes text)
{
	const char *from = text.data;
	const char *end = from + text.size;

	while (from < end && (*from == ' ' || *from == '\t'))
		from++;
	while (end > from && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	return (struct vd_bytes) { from, (size_t) (end - from) };
}

enum vdi_http_method vdi_http_method_of(struct vd_bytes text)
{
	static const char *const names[] = { "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(names); i++)
		if (vd_bytes_equal(text, vd_bytes_of(names[i])))
			return (enum vdi_http_method) i;
	return VDI_HTTP_OTHER;
}

static vd_status parse_target(struct vd_bytes target, struct vdi_http_head *head,
			      struct vdi_http_refusal *refusal)
{
	const char *from = target.data;
	const char *mark;

	for (size_t i = 0; i < target.size; i++) {
		unsigned char c = (unsigned char) from[i];

		if (c <= 0x20 || c >= 0x7F || c == '#')
			return refuse(refusal, 400,
				      "malformed request: character not allowed in the request target");
	}
	if (target.size >= 7 && vdi_ascii_equal_fold((struct vd_bytes) { from, 7 }, "http://")) {
		const char *slash = memchr(from + 7, '/', target.size - 7);

		if (slash == NULL || slash == from + 7)
			return refuse(refusal, 400, "malformed request: bad request target");
		target.size -= (size_t) (slash - from);
		target.data = from = slash;
	}
	if (target.size == 1 && from[0] == '*' && head->method == VDI_HTTP_OPTIONS) {
		head->path = target;
		return VD_OK;
	}
	if (target.size == 0 || from[0] != '/')
		return refuse(refusal, 400, "malformed request: bad request target");
	mark = memchr(from, '?', target.size);
	head->path = (struct vd_bytes) { from, mark ? (size_t) (mark - from) : target.size };
	if (mark)
		head->query = (struct vd_bytes) { mark + 1, target.size - head->path.size - 1 };
	return VD_OK;
}

static vd_status parse_request_line(struct vd_bytes line, struct vdi_http_head *head,
				    struct vdi_http_refusal *refusal)
{
	const char *from = line.data;
	const char *first = memchr(from, ' ', line.size);
	const char *second = first ? memchr(first + 1, ' ', line.size - (size_t) (first + 1 - from)) : NULL;
	struct vd_bytes version;

	if (second == NULL || first == from)
		return refuse(refusal, 400, "malformed request line");
	for (const char *at = from; at < first; at++)
		if (!is_token((unsigned char) *at))
			return refuse(refusal, 400, "malformed request line");
	version = (struct vd_bytes) { second + 1, line.size - (size_t) (second + 1 - from) };
	if (version.size != 8 || memcmp(version.data, "HTTP/", 5) != 0 ||
	    ((const char *) version.data)[6] != '.')
		return refuse(refusal, 400, "malformed request line");
	if (vd_bytes_equal(version, vd_bytes_of("HTTP/1.0")))
		head->version_1_0 = true;
	else if (!vd_bytes_equal(version, vd_bytes_of("HTTP/1.1")))
		return refuse(refusal, 505, "HTTP version not supported");
	head->keep_alive = !head->version_1_0;
	head->method = vdi_http_method_of((struct vd_bytes) { from, (size_t) (first - from) });
	return parse_target((struct vd_bytes) { first + 1, (size_t) (second - first - 1) }, head, refusal);
}

static vd_status parse_length(struct vd_bytes value, int64_t *ret_length, struct vdi_http_refusal *refusal)
{
	const char *digits = value.data;
	int64_t	    length = 0;

	if (value.size == 0 || value.size > 18)
		return refuse(refusal, 400, "malformed Content-Length");
	for (size_t i = 0; i < value.size; i++) {
		if (digits[i] < '0' || digits[i] > '9')
			return refuse(refusal, 400, "malformed Content-Length");
		length = length * 10 + (digits[i] - '0');
	}
	*ret_length = length;
	return VD_OK;
}

static void parse_connection(struct vd_bytes value, struct vdi_http_head *head)
{
	while (value.size) {
		const char     *comma = memchr(value.data, ',', value.size);
		size_t		size = comma ? (size_t) (comma - (const char *) value.data) : value.size;
		struct vd_bytes word = vdi_http_trim((struct vd_bytes) { value.data, size });
		size_t		used = comma ? size + 1 : size;

		if (vdi_ascii_equal_fold(word, "close"))
			head->keep_alive = false;
		else if (vdi_ascii_equal_fold(word, "keep-alive") && head->version_1_0)
			head->keep_alive = true;
		value.data = (const char *) value.data + used;
		value.size -= used;
	}
}

/* Headers that may not be repeated, because it is undefined which of two hosts or identities counts. */
struct once {
	unsigned hosts;
	unsigned authorizations;
};

static vd_status parse_header(struct vd_bytes line, struct vdi_http_head *head, struct once *once,
			      struct vdi_http_refusal *refusal)
{
	const char	       *from = line.data;
	const char	       *colon = memchr(from, ':', line.size);
	struct vdi_http_header *header;

	if (colon == NULL || colon == from)
		return refuse(refusal, 400, "malformed header line");
	for (const char *at = from; at < colon; at++)
		if (!is_token((unsigned char) *at))
			return refuse(refusal, 400, "malformed header name");
	if (head->header_count == VDI_HTTP_HEADER_MAX)
		return refuse(refusal, 431, "Too many request header fields");
	header = &head->headers[head->header_count++];
	header->name = (struct vd_bytes) { from, (size_t) (colon - from) };
	header->value =
		vdi_http_trim((struct vd_bytes) { colon + 1, line.size - (size_t) (colon + 1 - from) });

	if (vdi_ascii_equal_fold(header->name, "host")) {
		once->hosts++;
	} else if (vdi_ascii_equal_fold(header->name, "authorization")) {
		once->authorizations++;
	} else if (vdi_ascii_equal_fold(header->name, "content-length")) {
		if (head->content_length >= 0)
			return refuse(refusal, 400, "more than one Content-Length");
		return parse_length(header->value, &head->content_length, refusal);
	} else if (vdi_ascii_equal_fold(header->name, "transfer-encoding")) {
		if (head->chunked || head->version_1_0)
			return refuse(refusal, 400, "malformed Transfer-Encoding");
		if (!vdi_ascii_equal_fold(header->value, "chunked"))
			return refuse(refusal, 501, "Transfer-Encoding not supported");
		head->chunked = true;
	} else if (vdi_ascii_equal_fold(header->name, "connection")) {
		parse_connection(header->value, head);
	} else if (vdi_ascii_equal_fold(header->name, "expect")) {
		if (!vdi_ascii_equal_fold(header->value, "100-continue"))
			return refuse(refusal, 417, "Expectation failed");
		head->expect_continue = !head->version_1_0;
	}
	return VD_OK;
}

vd_status vdi_http_head_parse(struct vd_bytes head_bytes, struct vdi_http_head *ret_head,
			      struct vdi_http_refusal *ret_refusal)
{
	struct once once = { 0 };

	memset(ret_head, 0, offsetof(struct vdi_http_head, headers));
	ret_head->header_count = 0;
	ret_head->content_length = -1;
	VDI_TRY(parse_request_line(take_line(&head_bytes), ret_head, ret_refusal));
	for (;;) {
		struct vd_bytes line = take_line(&head_bytes);

		if (line.size == 0)
			break;
		VDI_TRY(parse_header(line, ret_head, &once, ret_refusal));
	}
	if (once.hosts > 1 || (once.hosts == 0 && !ret_head->version_1_0))
		return refuse(ret_refusal, 400, "a request needs exactly one Host header");
	if (once.authorizations > 1)
		return refuse(ret_refusal, 400, "more than one Authorization header");
	if (ret_head->chunked && ret_head->content_length >= 0)
		return refuse(ret_refusal, 400, "Content-Length together with Transfer-Encoding");
	if (ret_head->content_length > VDI_HTTP_BODY_MAX)
		return refuse(ret_refusal, 413, "Request entity too large: limit is 3145728");
	return VD_OK;
}

bool vdi_http_header_get(const struct vdi_http_head *head, const char *name, struct vd_bytes *ret_value)
{
	const struct vdi_http_header *found = NULL;

	for (size_t i = 0; i < head->header_count; i++) {
		if (!vdi_ascii_equal_fold(head->headers[i].name, name))
			continue;
		if (found)
			return false;
		found = &head->headers[i];
	}
	if (found)
		*ret_value = found->value;
	return found != NULL;
}

enum {
	CHUNK_SIZE,
	CHUNK_EXTENSION,
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	TRAILER,
	TRAILER_LF,
	ENDED
};

#define CHUNK_LINE_MAX 256
#define CHUNK_EXTRA_MAX 65536

/* Processes one byte that is not body. */
static vd_status chunk_step(struct vdi_http_chunked *chunked, unsigned char c,
			    struct vdi_http_refusal *refusal)
{
	/* Size lines and trailers must be small compared to the body. */
	if (++chunked->extra_size > CHUNK_EXTRA_MAX + VDI_HTTP_BODY_MAX)
		return refuse(refusal, 400, "malformed chunked body");
	switch (chunked->state) {
	case CHUNK_SIZE:
		if (hex_value(c) >= 0) {
			if (++chunked->line_size > 8)
				return refuse(refusal, 413, "Request entity too large: limit is 3145728");
			chunked->left = chunked->left * 16 + (uint64_t) hex_value(c);
			return VD_OK;
		}
		if (chunked->line_size == 0 || (c != ';' && c != '\r'))
			return refuse(refusal, 400, "malformed chunk size");
		chunked->state = c == ';' ? CHUNK_EXTENSION : CHUNK_SIZE_LF;
		return VD_OK;
	case CHUNK_EXTENSION:
		if (c == '\r')
			chunked->state = CHUNK_SIZE_LF;
		else if (++chunked->line_size > CHUNK_LINE_MAX || (c < 0x20 && c != '\t') || c == 0x7F)
			return refuse(refusal, 400, "malformed chunk extension");
		return VD_OK;
	case CHUNK_SIZE_LF:
		if (c != '\n')
			return refuse(refusal, 400, "malformed chunk size");
		chunked->state = chunked->left ? CHUNK_DATA : TRAILER;
		chunked->line_size = 0;
		return VD_OK;
	case CHUNK_DATA_CR:
		if (c != '\r')
			return refuse(refusal, 400, "malformed chunked body");
		chunked->state = CHUNK_DATA_LF;
		return VD_OK;
	case CHUNK_DATA_LF:
		if (c != '\n')
			return refuse(refusal, 400, "malformed chunked body");
		chunked->state = CHUNK_SIZE;
		chunked->line_size = 0;
		return VD_OK;
	case TRAILER: /* trailers are read and dropped */
		if (c == '\r') {
			chunked->state = TRAILER_LF;
			return VD_OK;
		}
		if (++chunked->line_size > CHUNK_LINE_MAX || (c < 0x20 && c != '\t') || c == 0x7F)
			return refuse(refusal, 400, "malformed trailer");
		return VD_OK;
	default:
		if (c != '\n')
			return refuse(refusal, 400, "malformed trailer");
		chunked->state = chunked->line_size ? TRAILER : ENDED;
		chunked->line_size = 0;
		return VD_OK;
	}
}

vd_status vdi_http_chunked_take(struct vdi_http_chunked *chunked, struct vd_bytes bytes, size_t *ret_taken,
				struct vd_bytes *ret_data, struct vdi_http_refusal *ret_refusal)
{
	const unsigned char *data = bytes.data;
	size_t		     at = 0;

	*ret_data = VD_BYTES_NONE;
	while (at < bytes.size && chunked->state != ENDED) {
		if (chunked->state == CHUNK_DATA) {
			size_t size = (size_t) VDI_MIN(chunked->left, (uint64_t) (bytes.size - at));

			*ret_data = (struct vd_bytes) { data + at, size };
			chunked->left -= size;
			if (chunked->left == 0)
				chunked->state = CHUNK_DATA_CR;
			*ret_taken = at + size;
			return VD_AGAIN;
		}
		VDI_TRY(chunk_step(chunked, data[at++], ret_refusal));
	}
	*ret_taken = at;
	return chunked->state == ENDED ? VD_OK : VD_AGAIN;
}
