/* Servers identify their errors by message, because gRPC codes are too coarse and not always right. The table
 * is in vedette/etcd.h. Messages of transports come in two variants, from a server's grpc-go and from gRPC C
 * core on this side; so they are searched for within the message, whatever the case of their first letter. */
#include "etcd_error.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
	int	    grpc;
	vd_status   status;
	bool	    is_known;
	const char *message;
} errors[VD_ETCD_CODE_COUNT] = {
#define VDI_ETCD_ERROR_ROW(name, grpc, status, known, message) [name] = { grpc, status, known, message },
	VD_ETCD_ERROR_MAP(VDI_ETCD_ERROR_ROW)
#undef VDI_ETCD_ERROR_ROW
};

static const char *const grpc_names[] = {
	"OK",	    "Canceled",	       "Unknown",	   "InvalidArgument",	"DeadlineExceeded",
	"NotFound", "AlreadyExists",   "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
	"Aborted",  "OutOfRange",      "Unimplemented",	   "Internal",		"Unavailable",
	"DataLoss", "Unauthenticated",
};

static enum vd_etcd_code code_of(struct vd_bytes message)
{
	for (int code = VD_ETCD_OTHER + 1; code < VD_ETCD_CODE_COUNT; code++)
		if (errors[code].is_known && vd_bytes_equal(message, vd_bytes_of(errors[code].message)))
			return (enum vd_etcd_code) code;
	return VD_ETCD_OTHER;
}

enum vd_etcd_code vdi_etcd_code_of(const char *message)
{
	return code_of(vd_bytes_of(message));
}

const char *vdi_etcd_code_message(enum vd_etcd_code code)
{
	VDI_CHECK(code > VD_ETCD_OTHER && code < VD_ETCD_CODE_COUNT);
	return errors[code].message;
}

int vdi_etcd_code_grpc(enum vd_etcd_code code)
{
	VDI_CHECK(code > VD_ETCD_OTHER && code < VD_ETCD_CODE_COUNT);
	return errors[code].grpc;
}

vd_status vdi_etcd_code_status(enum vd_etcd_code code)
{
	VDI_CHECK(code > VD_ETCD_OTHER && code < VD_ETCD_CODE_COUNT);
	return errors[code].status;
}

const char *vdi_etcd_grpc_name(int grpc_code)
{
	return grpc_code >= 0 && (size_t) grpc_code < VDI_ARRAY_SIZE(grpc_names) ? grpc_names[grpc_code] :
										   "Unknown";
}

static bool is_size_limit(const char *message)
{
	return strstr(message, "eceived message larger than max") ||
	       strstr(message, "rying to send message larger than max");
}

static vd_status status_of_grpc(const struct vdi_rpc_end *end)
{
	switch (end->code) {
	case VDI_RPC_CANCELED: return VD_CANCELED;
	case VDI_RPC_DEADLINE_EXCEEDED: return VD_TIMEOUT;
	case VDI_RPC_INVALID_ARGUMENT:
	case VDI_RPC_OUT_OF_RANGE: return VD_INVALID_ARGUMENT;
	case VDI_RPC_NOT_FOUND: return VD_NOT_FOUND;
	case VDI_RPC_PERMISSION_DENIED:
	case VDI_RPC_UNAUTHENTICATED: return VD_FORBIDDEN;
	case VDI_RPC_RESOURCE_EXHAUSTED:
		if (end->local && strcmp(end->message, VDI_ETCD_NO_MEMORY_TEXT) == 0)
			return VD_NOMEM;
		return is_size_limit(end->message) ? VD_TOO_BIG : VD_FULL;
	case VDI_RPC_FAILED_PRECONDITION: return VD_PRECONDITION;
	case VDI_RPC_UNIMPLEMENTED: return VD_UNSUPPORTED;
	case VDI_RPC_UNAVAILABLE: return VD_UNAVAILABLE;
	case VDI_RPC_DATA_LOSS: return VD_CORRUPT;
	default: return VD_INTERNAL;
	}
}

static void set_known(enum vd_etcd_code code, struct vd_etcd_error *error)
{
	error->code = code;
	(void) vd_error_set(&error->error, errors[code].status, "%s", errors[code].message);
}

void vdi_etcd_error_of_end(const struct vdi_rpc_end *end, enum vdi_etcd_context context,
			   struct vd_etcd_error *ret_error)
{
	enum vd_etcd_code code = code_of(vd_bytes_of(end->message));

	*ret_error = (struct vd_etcd_error) { .grpc_code = end->code };
	(void) snprintf(ret_error->endpoint, sizeof ret_error->endpoint, "%s", end->endpoint);
	if (code != VD_ETCD_OTHER) {
		set_known(code, ret_error);
		return;
	}
	if ((end->code == VDI_RPC_CANCELED || end->code == VDI_RPC_DEADLINE_EXCEEDED) &&
	    context != VDI_ETCD_CONTEXT_ALIVE) {
		if (context == VDI_ETCD_CONTEXT_TIMEOUT)
			(void) vd_error_set(&ret_error->error, VD_TIMEOUT, "context deadline exceeded");
		else if (context == VDI_ETCD_CONTEXT_CANCELED)
			(void) vd_error_set(&ret_error->error, VD_CANCELED, "context canceled");
		else
			(void) vd_error_set(&ret_error->error, VD_CLOSED,
					    "etcdclient: the client is closing");
		return;
	}
	if (end->local && strncmp(end->message, VDI_ETCD_OWN_PREFIX, sizeof VDI_ETCD_OWN_PREFIX - 1) == 0)
		(void) vd_error_set(&ret_error->error,
				    end->code == VDI_RPC_FAILED_PRECONDITION ? VD_UNSUPPORTED :
									       status_of_grpc(end),
				    "%s", end->message);
	else
		(void) vd_error_set(&ret_error->error, status_of_grpc(end), "rpc error: code = %s desc = %s",
				    vdi_etcd_grpc_name(end->code), end->message);
}

/* Returns text for "rpc error: code = X desc = text"; other texts unchanged. */
static struct vd_bytes bare_text(struct vd_bytes printed)
{
	static const char start[] = "rpc error: code = ";
	static const char middle[] = " desc = ";
	const char	 *found;

	if (!vd_bytes_has_prefix(printed, vd_bytes_of(start)))
		return printed;
	found = memmem(printed.data, printed.size, middle, sizeof middle - 1);
	if (found == NULL)
		return printed;
	found += sizeof middle - 1;
	return (struct vd_bytes) { found, printed.size - (size_t) (found - (const char *) printed.data) };
}

void vdi_etcd_error_of_reason(struct vd_bytes reason, struct vd_etcd_error *ret_error)
{
	enum vd_etcd_code code = code_of(bare_text(reason));

	*ret_error = (struct vd_etcd_error) { 0 };
	if (code != VD_ETCD_OTHER) {
		set_known(code, ret_error);
		ret_error->grpc_code = errors[code].grpc;
		return;
	}
	ret_error->grpc_code = VDI_RPC_FAILED_PRECONDITION;
	(void) vd_error_set(&ret_error->error, VD_CANCELED,
			    "rpc error: code = FailedPrecondition desc = %.*s",
			    (int) VDI_MIN(reason.size, 4096), reason.size ? (const char *) reason.data : "");
}

vd_status vdi_etcd_error_set(struct vd_etcd_error *error, vd_status code, const char *format, ...)
{
	char	text[VD_ERROR_MESSAGE_SIZE];
	va_list arguments;

	*error = (struct vd_etcd_error) { .grpc_code = vd_status_grpc(code) };
	va_start(arguments, format);
	(void) vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	return vd_error_set(&error->error, code, "%s", text);
}

bool vdi_etcd_is_connection_canceled(const struct vdi_rpc_end *end)
{
	return end->code == VDI_RPC_CANCELED || strcmp(end->message, "transport is closing") == 0 ||
	       strstr(end->message, "grpc: the client connection is closing") != NULL;
}

bool vdi_etcd_is_halt(const struct vdi_rpc_end *end)
{
	if (end->code != VDI_RPC_UNAVAILABLE && end->code != VDI_RPC_INTERNAL)
		return true;
	return end->code == VDI_RPC_UNAVAILABLE && code_of(vd_bytes_of(end->message)) == VD_ETCD_NO_LEADER;
}

void vdi_etcd_end_copy(struct vdi_etcd_end *copy, const struct vdi_rpc_end *end)
{
	copy->end = *end;
	(void) snprintf(copy->message, sizeof copy->message, "%s", end->message ? end->message : "");
	(void) snprintf(copy->endpoint, sizeof copy->endpoint, "%s", end->endpoint ? end->endpoint : "");
	copy->end.message = copy->message;
	copy->end.endpoint = copy->endpoint;
}

void vdi_etcd_end_own(struct vdi_etcd_end *end, int code, const char *message)
{
	const struct vdi_rpc_end own = {
		.code = code, .message = message, .endpoint = "", .unsent = true, .local = true
	};

	vdi_etcd_end_copy(end, &own);
}
