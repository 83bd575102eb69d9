/* Request logs: the audit log (audit.k8s.io/v1 Events, one per line) and the access log (one line per
 * answered request).
 *
 * The connection keeps a request log for each request from the moment it is complete until the response is
 * sent or the connection is closed; the request may be freed before. A request log holds copies only. All
 * functions accept NULL for a request log: logging disabled. If memory is short, a line is dropped and
 * counted.
 *
 * Bodies are logged only if the audit level includes them, and never those of secrets and of reviews with
 * tokens. Headers are not logged, except User-Agent.
 *
 * Upstream: k8s.io/apiserver pkg/audit, pkg/endpoints/filters/audit.go, plugin/pkg/audit/log.
 */
#ifndef VDI_REQUEST_LOG_H
#define VDI_REQUEST_LOG_H

#include <netinet/in.h>

#include "async_log.h"
#include "http_status.h"
#include "identity.h"

struct vd_server_options;
struct vdi_http_connection;
struct vdi_request;

/* Logs of one server; any thread. */
struct vdi_request_logs {
	const struct vd_env  *env;
	struct vdi_async_log *audit;  /* NULL: disabled */
	struct vdi_async_log *access; /* NULL: disabled */
	int		      level;  /* enum vd_audit_level */
	struct vdi_metric    *audit_taken, *audit_lost, *access_taken, *access_lost;
};

/* Log record of one request, owned by its connection. */
struct vdi_request_log;

/* Opens the logs of options. Blocks on the disk. VD_IO, VD_NOMEM, VD_INVALID_ARGUMENT (the level); then
 * nothing is open. *ret_request_logs is NULL if options have no log. */
VDI_MUST_USE vd_status vdi_request_logs_open(const struct vd_env	    *env,
					     const struct vd_server_options *options,
					     struct vdi_request_logs	   **ret_request_logs,
					     struct vd_error		    *reterr);
/* Writes buffered lines, and frees. Blocks on the disk. NULL is fine; returns NULL. */
struct vdi_request_logs *vdi_request_logs_close(struct vdi_request_logs *request_logs);
/* Reopens the files, for logrotate. NULL is fine. */
void vdi_request_logs_reopen(struct vdi_request_logs *request_logs);

/* ---- On the loop's thread ---- */

/* Starts the record of the connection's complete request. NULL: logging disabled, or out of memory. */
struct vdi_request_log *vdi_request_log_begin(const struct vdi_request *request);
/* Logs bytes that are not a valid request, in the access log only. */
void vdi_request_log_refused(const struct vdi_http_connection *connection, int code);
/* Sets the client's identity and the authorization decision. Call when both are known, before a response. */
void vdi_request_log_decided(struct vdi_request_log *request_log, struct vdi_identity *identity,
			     bool is_allowed);
/* Sets the name of the object to create, if the path does not contain it. */
void vdi_request_log_named(struct vdi_request_log *request_log, const char *name);
/* json must be JSON; other bodies are left out. */
void vdi_request_log_request_body(struct vdi_request_log *request_log, struct vd_bytes json);
bool vdi_request_log_wants_response(const struct vdi_request_log *request_log);
void vdi_request_log_response_body(struct vdi_request_log *request_log, struct vd_bytes json);
/* Sets the response code, when the response starts. */
void vdi_request_log_answered(struct vdi_request_log *request_log, int code);
/* Sets the content of a response that is a Status. */
void vdi_request_log_status(struct vdi_request_log *request_log, const struct vdi_http_status *status);
/* The response is a watch, which continues until it is ended. */
void vdi_request_log_streams(struct vdi_request_log *request_log);
void vdi_request_log_sent(struct vdi_request_log *request_log, size_t size_bytes);
/* Returns the response header with the audit ID, or "". Valid while the request log is. */
const char *vdi_request_log_header(const struct vdi_request_log *request_log);
/* The response was sent, or the connection closed: writes the lines and frees. Returns NULL. */
struct vdi_request_log *vdi_request_log_end(struct vdi_request_log *request_log);

#endif
