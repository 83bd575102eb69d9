/* Writes Status objects. Upstream: k8s.io/apimachinery pkg/api/errors and kubernetes/apiserver
 * pkg/storage/errors/storage.go. Keys have upstream's order: kind, apiVersion, metadata, status, message,
 * reason, details, code. */
#include "http_status.h"

#include <stdarg.h>
#include <stdio.h>

static void copy(char *to, size_t capacity, struct vd_bytes text)
{
	size_t size = VDI_MIN(text.size, capacity - 1);

	if (size)
		memcpy(to, text.data, size);
	to[size] = 0;
}

void vdi_http_status_set(struct vdi_http_status *status, int code, const char *reason, const char *format,
			 ...)
{
	va_list arguments;

	memset(status, 0, sizeof *status);
	status->code = code;
	status->reason = reason;
	va_start(arguments, format);
	(void) vsnprintf(status->message, sizeof status->message, format, arguments);
	va_end(arguments);
}

void vdi_http_status_details(struct vdi_http_status *status, struct vd_bytes name, const char *group,
			     const char *kind)
{
	copy(status->name, sizeof status->name, name);
	copy(status->group, sizeof status->group, vd_bytes_of(group));
	copy(status->kind, sizeof status->kind, vd_bytes_of(kind));
}

void vdi_http_status_cause(struct vdi_http_status *status, const char *reason, const char *field,
			   const char *format, ...)
{
	struct vdi_status_cause *cause;
	va_list			 arguments;

	if (status->cause_count == VDI_STATUS_CAUSES_MAX)
		return;
	cause = &status->causes[status->cause_count++];
	cause->reason = reason;
	copy(cause->field, sizeof cause->field, vd_bytes_of(field));
	va_start(arguments, format);
	(void) vsnprintf(cause->message, sizeof cause->message, format, arguments);
	va_end(arguments);
}

void vdi_http_status_unknown_path(struct vdi_http_status *status)
{
	vdi_http_status_set(status, 404, "NotFound", "the server could not find the requested resource");
}

void vdi_http_status_method(struct vdi_http_status *status)
{
	vdi_http_status_set(status, 405, "MethodNotAllowed",
			    "the server does not allow this method on the requested resource");
}

/* "pods", "deployments.apps" */
static const char *qualified(char buffer[512], const char *group, const char *plural)
{
	(void) snprintf(buffer, 512, "%s%s%s", plural, *group ? "." : "", group);
	return buffer;
}

void vdi_http_status_not_found(struct vdi_http_status *status, const char *group, const char *plural,
			       struct vd_bytes name)
{
	char resource[512];

	vdi_http_status_set(status, 404, "NotFound", "%s \"%.*s\" not found",
			    qualified(resource, group, plural), (int) name.size, (const char *) name.data);
	vdi_http_status_details(status, name, group, plural);
}

void vdi_http_status_exists(struct vdi_http_status *status, const char *group, const char *plural,
			    struct vd_bytes name)
{
	char resource[512];

	vdi_http_status_set(status, 409, "AlreadyExists", "%s \"%.*s\" already exists",
			    qualified(resource, group, plural), (int) name.size, (const char *) name.data);
	vdi_http_status_details(status, name, group, plural);
}

void vdi_http_status_conflict(struct vdi_http_status *status, const char *group, const char *plural,
			      struct vd_bytes name, const char *why)
{
	char resource[512];

	vdi_http_status_set(status, 409, "Conflict", "Operation cannot be fulfilled on %s \"%.*s\": %s",
			    qualified(resource, group, plural), (int) name.size, (const char *) name.data,
			    why);
	vdi_http_status_details(status, name, group, plural);
}

void vdi_http_status_invalid(struct vdi_http_status *status, const char *group, const char *kind,
			     struct vd_bytes name)
{
	size_t at;

	status->code = 422;
	status->reason = "Invalid";
	vdi_http_status_details(status, name, group, kind);
	at = (size_t) snprintf(status->message, sizeof status->message, "%s%s%s \"%.*s\" is invalid: %s",
			       kind, *group ? "." : "", group, (int) name.size, (const char *) name.data,
			       status->cause_count > 1 ? "[" : "");
	for (size_t i = 0; i < status->cause_count && at < sizeof status->message; i++)
		at += (size_t) snprintf(status->message + at, sizeof status->message - at, "%s%s: %s",
					i ? ", " : "", status->causes[i].field, status->causes[i].message);
	if (status->cause_count > 1 && at < sizeof status->message)
		(void) snprintf(status->message + at, sizeof status->message - at, "]");
}

void vdi_http_status_media_type(struct vdi_http_status *status, const char *accepted)
{
	vdi_http_status_set(
		status, 415, "UnsupportedMediaType",
		"the body of the request was in an unknown format - accepted media types include: %s",
		accepted);
}

/* Upstream's ServerTimeout names the verb where other errors name the object. */
static void set_server_timeout(struct vdi_http_status *status, const char *verb, const char *group,
			       const char *plural)
{
	char resource[512];

	vdi_http_status_set(
		status, 500, "ServerTimeout",
		"The %s operation against %s could not be completed at this time, please try again.", verb,
		qualified(resource, group, plural));
	vdi_http_status_details(status, vd_bytes_of(verb), group, plural);
	status->retry_after_s = 2;
}

void vdi_http_status_of(struct vdi_http_status *status, const char *verb, const char *group,
			const char *plural, struct vd_bytes name, vd_status code,
			const struct vd_error *error)
{
	const char *message = error && error->message[0] ? error->message : vd_status_sentence(code);
	bool	    is_list = strcmp(verb, "list") == 0;

	switch (code) {
	case VD_NOT_FOUND:
		vdi_http_status_not_found(status, group, plural, is_list ? VD_BYTES_NONE : name);
		break;
	case VD_EXISTS: vdi_http_status_exists(status, group, plural, name); break;
	case VD_CONFLICT:
		vdi_http_status_conflict(status, group, plural, name,
					 "the object has been modified; please apply your changes to the "
					 "latest version and try again");
		break;
	case VD_PRECONDITION: vdi_http_status_conflict(status, group, plural, name, message); break;
	case VD_TOO_LARGE_REVISION:
		vdi_http_status_set(
			status, 504, "Timeout", "Timeout: Too large resource version: %lld, current: %lld",
			error ? (long long) error->requested : 0, error ? (long long) error->current : 0);
		vdi_http_status_cause(status, "ResourceVersionTooLarge", "", "Too large resource version");
		break;
	case VD_UNAVAILABLE: set_server_timeout(status, verb, group, plural); break;
	case VD_TIMEOUT:
		vdi_http_status_set(status, 504, "Timeout",
				    "Timeout: request did not complete within requested timeout - %s",
				    message);
		break;
	case VD_CLOSED:
		vdi_http_status_set(status, 503, "ServiceUnavailable", "apiserver is shutting down");
		status->retry_after_s = 1;
		break;
	case VD_NOMEM:
	case VD_INTERNAL:
	case VD_IO:
	case VD_CORRUPT:
	case VD_NEWER_FORMAT:
	case VD_UNDECODABLE:
		vdi_http_status_set(status, 500, "InternalError", "Internal error occurred: %s", message);
		vdi_http_status_cause(status, "", "", "%s", message);
		break;
	default: vdi_http_status_set(status, vd_status_http(code), vd_status_reason(code), "%s", message);
	}
	if (error && error->retry_after_s)
		status->retry_after_s = error->retry_after_s;
	if (status->code == 429 && status->retry_after_s == 0)
		status->retry_after_s = 1;
}

static void write_details(struct vdi_out *out, const struct vdi_http_status *status)
{
	if (!status->name[0] && !status->group[0] && !status->kind[0] && !status->uid[0] &&
	    !status->cause_count && !status->causes_text.size && !status->retry_after_s)
		return;
	vdi_out_key(out, "details");
	vdi_out_raw(out, "{");
	vdi_out_member(out, "name", vd_bytes_of(status->name));
	vdi_out_member(out, "group", vd_bytes_of(status->group));
	vdi_out_member(out, "kind", vd_bytes_of(status->kind));
	vdi_out_member(out, "uid", vd_bytes_of(status->uid));
	if (status->causes_text.size) {
		vdi_out_key(out, "causes");
		vdi_out_raw(out, "[");
		vdi_out_bytes(out, status->causes_text);
		vdi_out_raw(out, "]");
	} else if (status->cause_count) {
		vdi_out_key(out, "causes");
		vdi_out_raw(out, "[");
		for (size_t i = 0; i < status->cause_count; i++) {
			vdi_out_comma(out);
			vdi_out_raw(out, "{");
			vdi_out_member(out, "reason", vd_bytes_of(status->causes[i].reason));
			vdi_out_member(out, "message", vd_bytes_of(status->causes[i].message));
			vdi_out_member(out, "field", vd_bytes_of(status->causes[i].field));
			vdi_out_raw(out, "}");
		}
		vdi_out_raw(out, "]");
	}
	if (status->retry_after_s) {
		vdi_out_key(out, "retryAfterSeconds");
		vdi_out_int(out, status->retry_after_s);
	}
	vdi_out_raw(out, "}");
}

void vdi_http_status_write(struct vdi_out *out, const struct vdi_http_status *status)
{
	vdi_out_raw(out, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{");
	vdi_out_member(out, "continue", status->continue_token);
	vdi_out_raw(out, "}");
	vdi_out_member(out, "status", vd_bytes_of(status->success ? "Success" : "Failure"));
	vdi_out_member(out, "message",
		       status->long_message.size ? status->long_message : vd_bytes_of(status->message));
	vdi_out_member(out, "reason", vd_bytes_of(status->reason));
	write_details(out, status);
	if (!status->success || status->code != 200) {
		vdi_out_key(out, "code");
		vdi_out_int(out, status->code);
	}
	vdi_out_raw(out, "}");
}
