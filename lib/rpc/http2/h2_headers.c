/* Upstream: the gRPC over HTTP/2 protocol document, and grpc-go's internal/transport/http_util.go for codes
 * and texts. Text from the peer is bounded, and never assumed to be valid UTF-8. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base64.h"
#include "h2_client_state.h"

/* ---- Responses ---- */

void vdi_h2_answer_fini(struct vdi_h2_answer *answer)
{
	vdi_free(answer->words);
	*answer = (struct vdi_h2_answer) { 0 };
}

static bool is(struct vd_bytes text, const char *what)
{
	return vd_bytes_equal(text, vd_bytes_of(what));
}

/* Parses a decimal number of up to nine digits; -1: invalid. */
static int number_of(struct vd_bytes text)
{
	const char *at = text.data;
	int	    number = 0;

	if (text.size == 0 || text.size > 9)
		return -1;
	for (size_t i = 0; i < text.size; i++) {
		if (at[i] < '0' || at[i] > '9')
			return -1;
		number = number * 10 + (at[i] - '0');
	}
	return number;
}

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' :
	       c >= 'a' && c <= 'f' ? c - 'a' + 10 :
	       c >= 'A' && c <= 'F' ? c - 'A' + 10 :
				      -1;
}

static char *decode_words(struct vd_bytes value)
{
	const char *at = value.data;
	size_t	    room = VDI_MIN(value.size, (size_t) VDI_H2_WORDS_SIZE_MAX), size = 0;
	char	   *text = vdi_alloc(room + 1);

	for (size_t i = 0; text && i < value.size && size < room; i++) {
		char c = at[i];

		if (c == '%' && i + 2 < value.size && hex(at[i + 1]) >= 0 && hex(at[i + 2]) >= 0) {
			c = (char) (hex(at[i + 1]) << 4 | hex(at[i + 2]));
			i += 2;
		}
		text[size++] = c ? c : '?';
	}
	if (text)
		text[size] = 0;
	return text;
}

static bool is_grpc_type(struct vd_bytes value)
{
	static const char type[] = "application/grpc";
	const char	 *at = value.data;

	return value.size >= sizeof type - 1 && strncasecmp(at, type, sizeof type - 1) == 0 &&
	       (value.size == sizeof type - 1 || at[sizeof type - 1] == '+' || at[sizeof type - 1] == ';');
}

void vdi_h2_answer_note(struct vdi_h2_answer *answer, struct vd_bytes name, struct vd_bytes value)
{
	if (is(name, ":status"))
		answer->http_status = VDI_MAX(number_of(value), 0);
	else if (is(name, "content-type")) {
		answer->is_grpc = is_grpc_type(value);
		if (!answer->is_grpc)
			(void) snprintf(answer->type, sizeof answer->type, "%.*s",
					(int) VDI_MIN(value.size, sizeof answer->type),
					(const char *) value.data);
	} else if (is(name, "grpc-status") && !answer->has_status) {
		answer->has_status = true;
		answer->status = number_of(value);
		if (answer->status < 0)
			answer->status = VDI_RPC_UNKNOWN;
	} else if (is(name, "grpc-message") && answer->words == NULL)
		answer->words = decode_words(value);
	else if (is(name, "grpc-encoding"))
		answer->is_encoded = !is(value, "identity");
}

static int code_of_http(int status)
{
	switch (status) {
	case 400: return VDI_RPC_INTERNAL;
	case 401: return VDI_RPC_UNAUTHENTICATED;
	case 403: return VDI_RPC_PERMISSION_DENIED;
	case 404: return VDI_RPC_UNIMPLEMENTED;
	case 429:
	case 502:
	case 503:
	case 504: return VDI_RPC_UNAVAILABLE;
	default: return VDI_RPC_UNKNOWN;
	}
}

int vdi_h2_answer_check(const struct vdi_h2_answer *answer, char *room, size_t size, const char **ret_words)
{
	*ret_words = room;
	if (answer->has_status && answer->http_status == 200)
		return VDI_RPC_OK;
	if (answer->http_status != 200) {
		(void) snprintf(room, size, "unexpected HTTP status code received from server: %d",
				answer->http_status);
		return code_of_http(answer->http_status);
	}
	if (!answer->is_grpc) {
		(void) snprintf(room, size, "received unexpected content-type \"%s\"", answer->type);
		return VDI_RPC_UNKNOWN;
	}
	return VDI_RPC_OK;
}

int vdi_h2_answer_end(const struct vdi_h2_answer *answer, char *room, size_t size, const char **ret_words)
{
	int code = vdi_h2_answer_check(answer, room, size, ret_words);

	if (code != VDI_RPC_OK)
		return code;
	if (!answer->has_status) {
		(void) snprintf(room, size, "server closed the stream without sending trailers");
		return VDI_RPC_INTERNAL;
	}
	*ret_words = answer->words ? answer->words : "";
	return answer->status;
}

int vdi_h2_reset_end(uint32_t error_code, char *room, size_t size)
{
	(void) snprintf(room, size, "stream terminated by RST_STREAM with error code: %s",
			nghttp2_http2_strerror(error_code));
	switch (error_code) {
	case NGHTTP2_REFUSED_STREAM: return VDI_RPC_UNAVAILABLE;
	case NGHTTP2_CANCEL: return VDI_RPC_CANCELED;
	case NGHTTP2_ENHANCE_YOUR_CALM: return VDI_RPC_RESOURCE_EXHAUSTED;
	case NGHTTP2_INADEQUATE_SECURITY: return VDI_RPC_PERMISSION_DENIED;
	default: return VDI_RPC_INTERNAL;
	}
}

/* ---- Requests ---- */

static bool is_binary(const char *key)
{
	size_t size = strlen(key);

	return size > 4 && strcmp(key + size - 4, "-bin") == 0;
}

static bool is_legal(const char *key, struct vd_bytes value)
{
	const unsigned char *at = value.data;

	if (key[0] == 0)
		return false;
	for (const char *c = key; *c; c++) {
		if (!(*c >= 'a' && *c <= 'z') && !(*c >= '0' && *c <= '9') && *c != '-' && *c != '_' &&
		    *c != '.')
			return false;
	}
	for (size_t i = 0; i < value.size && !is_binary(key); i++) {
		if (at[i] < 0x20 || at[i] > 0x7e)
			return false;
	}
	return true;
}

static size_t room_of(const struct vdi_rpc_metadata *pair)
{
	return strlen(pair->key) +
	       (is_binary(pair->key) ? VDI_BASE64_ENCODED_MAX(pair->value.size) : pair->value.size);
}

static size_t put_value(const struct vdi_rpc_metadata *pair, char *room)
{
	size_t size = pair->value.size;

	if (is_binary(pair->key)) {
		size = vdi_base64_encode(VDI_BASE64_STANDARD, pair->value, room);
		while (size && room[size - 1] == '=')
			size--;
	} else if (size)
		memcpy(room, pair->value.data, size);
	return size;
}

vd_status vdi_h2_pairs_make(const struct vdi_rpc_metadata *metadata, size_t count,
			    struct vdi_h2_pairs *ret_pairs)
{
	struct vdi_h2_pairs pairs = { .count = count };
	size_t		    size = count * sizeof pairs.list[0];
	char		   *room;

	for (size_t i = 0; i < count; i++) {
		if (!is_legal(metadata[i].key, metadata[i].value))
			return VD_INVALID_ARGUMENT;
		size += room_of(&metadata[i]);
	}
	if (count == 0) {
		*ret_pairs = pairs;
		return VD_OK;
	}
	pairs.list = vdi_alloc(size);
	if (pairs.list == NULL)
		return VD_NOMEM;
	room = (char *) (pairs.list + count);
	for (size_t i = 0; i < count; i++) {
		nghttp2_nv *pair = &pairs.list[i];

		*pair = (nghttp2_nv) { .name = (uint8_t *) room, .namelen = strlen(metadata[i].key) };
		memcpy(room, metadata[i].key, pair->namelen);
		room += pair->namelen;
		pair->value = (uint8_t *) room;
		pair->valuelen = put_value(&metadata[i], room);
		room += pair->valuelen;
	}
	*ret_pairs = pairs;
	return VD_OK;
}

void vdi_h2_timeout_text(vd_dur left, char text[VDI_H2_TIMEOUT_SIZE])
{
	static const struct {
		int64_t ns;
		char	unit;
	} units[] = { { 1, 'n' },	   { 1000, 'u' },	 { 1000000, 'm' },
		      { 1000000000, 'S' }, { 60000000000, 'M' }, { 3600000000000, 'H' } };
	int64_t value = 1;
	size_t	i = 0;

	left.ns = VDI_MAX(left.ns, 1);
	for (; i < VDI_ARRAY_SIZE(units); i++) {
		value = left.ns / units[i].ns + (left.ns % units[i].ns != 0);
		if (value < 100000000)
			break;
	}
	i = VDI_MIN(i, VDI_ARRAY_SIZE(units) - 1);
	(void) snprintf(text, VDI_H2_TIMEOUT_SIZE, "%lld%c", (long long) VDI_MIN(value, 99999999),
			units[i].unit);
}
