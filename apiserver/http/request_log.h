/* Request logs: the audit log (audit.k8s.io/v1 Events, one per line) and the access log (one line per
 * answered request).
 *
 * The connection keeps a trail for each request from the moment it is complete until the response is sent or
 * the connection is closed; the request may be freed before. A trail holds copies only. All functions accept
 * NULL for a trail: logging disabled. If memory is short, a line is dropped and counted.
 *
 * Bodies are logged only if the audit level includes them, and never those of secrets and of reviews with
 * tokens. Headers are not logged, except User-Agent.
 *
 * Upstream: k8s.io/apiserver pkg/audit, pkg/endpoints/filters/audit.go, plugin/pkg/audit/log.
 */
#ifndef VDI_TRAIL_H
#define VDI_TRAIL_H

#include <netinet/in.h>

#include "identity.h"
#include "http_status.h"
#include "async_log.h"

struct vd_server_options;
struct vdi_http_connection;
struct vdi_request;

/* Logs of one server; any thread. */
struct vdi_trails {
	const struct vd_env *env;
	struct vdi_line_log *audit;  /* NULL: disabled */
	struct vdi_line_log *access; /* NULL: disabled */
	int		     level;  /* enum vd_audit_level */
	struct vdi_metric   *audit_taken, *audit_lost, *access_taken, *access_lost;
};

/* Log record of one request, owned by its connection. */
struct vdi_trail;

/* Opens the logs of options. Blocks on the disk. VD_IO, VD_NOMEM, VD_INVALID_ARGUMENT (the level); then
 * nothing is open. *ret_trails is NULL if options have no log. */
VDI_MUST_USE vd_status vdi_trails_open(const struct vd_env *env, const struct vd_server_options *options,
				       struct vdi_trails **ret_trails, struct vd_error *reterr);
/* Writes buffered lines, and frees. Blocks on the disk. NULL is fine; returns NULL. */
struct vdi_trails *vdi_trails_close(struct vdi_trails *trails);
/* Reopens the files, for logrotate. NULL is fine. */
void vdi_trails_reopen(struct vdi_trails *trails);

/* ---- On the loop's thread ---- */

/* Starts the record of the connection's complete request. NULL: logging disabled, or out of memory. */
struct vdi_trail *vdi_trail_begin(const struct vdi_request *request);
/* Logs bytes that are not a valid request, in the access log only. */
void vdi_trail_refused(const struct vdi_http_connection *connection, int code);
/* Sets the client's identity and the authorization decision. Call when both are known, before a response. */
void vdi_trail_decided(struct vdi_trail *trail, struct vdi_identity *identity, bool is_allowed);
/* Sets the name of the object to create, if the path does not contain it. */
void vdi_trail_named(struct vdi_trail *trail, const char *name);
/* json must be JSON; other bodies are left out. */
void vdi_trail_request_body(struct vdi_trail *trail, struct vd_bytes json);
bool vdi_trail_wants_response(const struct vdi_trail *trail);
void vdi_trail_response_body(struct vdi_trail *trail, struct vd_bytes json);
/* Sets the response code, when the response starts. */
void vdi_trail_answered(struct vdi_trail *trail, int code);
/* Sets the content of a response that is a Status. */
void vdi_trail_status(struct vdi_trail *trail, const struct vdi_http_status *status);
/* The response is a watch, which continues until it is ended. */
void vdi_trail_streams(struct vdi_trail *trail);
void vdi_trail_sent(struct vdi_trail *trail, size_t size_bytes);
/* Returns the response header with the audit ID, or "". Valid while the trail is. */
const char *vdi_trail_header(const struct vdi_trail *trail);
/* The response was sent, or the connection closed: writes the lines and frees. Returns NULL. */
struct vdi_trail *vdi_trail_end(struct vdi_trail *trail);

#endif
