/* The headers of a call: the client's timeout and metadata, refusals with grpc-go's texts, and the text of a
 * status. */
#include <stdio.h>

#include "h2_server_state.h"

#define TIMEOUT_DIGITS_MAX 8

bool vdi_h2_timeout_parse(struct vd_bytes text, vd_dur *ret_timeout)
{
	static const struct {
		char	unit;
		int64_t ns;
	} units[] = { { 'H', 3600000000000 }, { 'M', 60000000000 }, { 'S', 1000000000 },
		      { 'm', 1000000 },	      { 'u', 1000 },	    { 'n', 1 } };
	const char *digits = text.data;
	int64_t	    count = 0;

	if (text.size < 2 || text.size > TIMEOUT_DIGITS_MAX + 1)
		return false;
	for (size_t i = 0; i + 1 < text.size; i++) {
		if (digits[i] < '0' || digits[i] > '9')
			return false;
		count = count * 10 + (digits[i] - '0');
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(units); i++) {
		if (units[i].unit != digits[text.size - 1])
			continue;
		/* 99,999,999 hours exceed the range of the clock. */
		ret_timeout->ns = count > INT64_MAX / 4 / units[i].ns ? INT64_MAX / 4 : count * units[i].ns;
		return true;
	}
	return false;
}

size_t vdi_h2_status_encode(const char *message, char *text, size_t size)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t		  used = 0;

	for (const unsigned char *at = (const unsigned char *) message; *at; at++) {
		if (*at >= ' ' && *at <= '~' && *at != '%') {
			if (used == size)
				break;
			text[used++] = (char) *at;
			continue;
		}
		if (size - used < 3)
			break;
		text[used++] = '%';
		text[used++] = digits[*at >> 4];
		text[used++] = digits[*at & 15];
	}
	return used;
}

/* ---- Headers of the client ---- */

static bool append_text(struct vdi_h2_server_call *call, const void *bytes, size_t size)
{
	if (size > call->text_capacity - call->text_size) {
		size_t capacity = VDI_MAX(call->text_capacity * 2, call->text_size + size);
		char  *text = vdi_alloc(capacity);

		if (text == NULL)
			return false;
		memcpy(text, call->text, call->text_size);
		if (call->text != call->room)
			vdi_free(call->text);
		call->text = text;
		call->text_capacity = capacity;
	}
	if (size)
		memcpy(call->text + call->text_size, bytes, size);
	call->text_size += size;
	return true;
}

static bool add_metadata(struct vdi_h2_server_call *call, struct vd_bytes name, struct vd_bytes value)
{
	uint32_t size = (uint32_t) value.size;

	return append_text(call, name.data, name.size) && append_text(call, "", 1) &&
	       append_text(call, &size, sizeof size) && append_text(call, value.data, value.size);
}

void vdi_h2_server_call_refuse(struct vdi_h2_server_call *call, unsigned http_status, int code,
			       const char *message)
{
	if (call->is_refused)
		return;
	call->is_refused = true;
	call->http_status = (uint16_t) http_status;
	vdi_lock_acquire(&call->lock);
	vdi_h2_server_call_set_status_locked(call, code, message);
	vdi_lock_release(&call->lock);
}

static bool is_grpc(struct vd_bytes type)
{
	static const char grpc[] = "application/grpc";
	size_t		  size = sizeof grpc - 1;

	return type.size >= size && memcmp(type.data, grpc, size) == 0 &&
	       (type.size == size || ((const char *) type.data)[size] == '+' ||
		((const char *) type.data)[size] == ';');
}

static bool is_named(struct vd_bytes name, const char *text)
{
	return name.size == strlen(text) && memcmp(name.data, text, name.size) == 0;
}

/* Refuses with grpc-go's text. */
static void refuse_with(struct vdi_h2_server_call *call, unsigned http_status, int code, const char *before,
			struct vd_bytes value, const char *after)
{
	char text[256];

	snprintf(text, sizeof text, "%s%.*s%s", before, (int) VDI_MIN(value.size, 100),
		 (const char *) value.data, after);
	vdi_h2_server_call_refuse(call, http_status, code, text);
}

static bool take_header(struct vdi_h2_server_call *call, struct vd_bytes name, struct vd_bytes value)
{
	if (is_named(name, ":path")) {
		call->method_at = call->text_size;
		call->has_method = true;
		return append_text(call, value.data, value.size) && append_text(call, "", 1);
	}
	if (is_named(name, ":method")) {
		call->http_method = (uint8_t) vdi_http_method_of(value);
		if (!is_named(value, "POST"))
			refuse_with(call, 405, VDI_RPC_INTERNAL, "Received a HEADERS frame with :method \"",
				    value, "\" which should be POST");
		return true;
	}
	if (is_named(name, "content-type")) {
		call->has_content_type = true;
		call->is_grpc = is_grpc(value);
		if (!call->is_grpc)
			refuse_with(call, 415, VDI_RPC_INVALID_ARGUMENT,
				    "invalid gRPC request content-type \"", value, "\"");
		return true;
	}
	if (is_named(name, "grpc-timeout")) {
		if (!vdi_h2_timeout_parse(value, &call->timeout))
			refuse_with(call, 400, VDI_RPC_INTERNAL, "malformed grpc-timeout: ", value, "");
		else if (call->timeout.ns == 0)
			call->timeout.ns = 1;
		return true;
	}
	if (is_named(name, "grpc-encoding")) {
		if (value.size && !is_named(value, "identity"))
			refuse_with(call, 0, VDI_RPC_UNIMPLEMENTED,
				    "grpc: Decompressor is not installed for grpc-encoding \"", value, "\"");
		return true;
	}
	if (((const char *) name.data)[0] == ':' || is_named(name, "te") || is_named(name, "user-agent") ||
	    is_named(name, "grpc-accept-encoding"))
		return true;
	return add_metadata(call, name, value);
}

bool vdi_h2_server_call_header(struct vdi_h2_server_call *call, struct vd_bytes name, struct vd_bytes value)
{
	return (call->is_refused && !call->may_be_http) || take_header(call, name, value);
}
