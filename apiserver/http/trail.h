/* What is written down about requests: the audit log (audit.k8s.io/v1 Events, one per line) and the access
 * log (one line for each answered request).
 *
 * A trail is kept for each request from the moment it is complete until its answer is out or its connection
 * gone, by the connection; the request itself may be gone before. What goes into it are copies. All functions
 * take NULL for a trail: nobody wants to know. Without memory a line is lost and counted.
 *
 * Bodies are kept only when the audit level asks for them, never those of secrets and of reviews that carry
 * tokens. Headers are not kept, but for User-Agent.
 *
 * Upstream: k8s.io/apiserver pkg/audit, pkg/endpoints/filters/audit.go, plugin/pkg/audit/log.
 */
#ifndef VDI_TRAIL_H
#define VDI_TRAIL_H

#include <netinet/in.h>

#include "identity.h"
#include "http_status.h"
#include "line_log.h"

struct vd_server_options;
struct vdi_http_connection;
struct vdi_request;

/* Of a server; any thread. */
struct vdi_trails {
	const struct vd_env *env;
	struct vdi_line_log *audit;  /* NULL: not wanted */
	struct vdi_line_log *access; /* NULL: not wanted */
	int		     level;  /* enum vd_audit_level */
	struct vdi_metric   *audit_taken, *audit_lost, *access_taken, *access_lost;
};

/* A line of its connection's loop. */
struct vdi_trail;

/* Opens what options ask for. Blocks for the disk. VD_IO, VD_NOMEM, VD_INVALID_ARGUMENT (the level); then
 * nothing is open. *ret_trails is NULL when they ask for nothing. */
VDI_MUST_USE vd_status vdi_trails_open(const struct vd_env *env, const struct vd_server_options *options,
				       struct vdi_trails **ret_trails, struct vd_error *reterr);
/* Writes what is left, and frees. Blocks for the disk. NULL is fine; returns NULL. */
struct vdi_trails *vdi_trails_close(struct vdi_trails *trails);
/* logrotate: files are opened anew. NULL is fine. */
void vdi_trails_reopen(struct vdi_trails *trails);

/* ---- The loop's thread ---- */

/* The request of the connection is complete. NULL: nobody wants to know, or there is no memory. */
struct vdi_trail *vdi_trail_begin(const struct vdi_request *request);
/* Of bytes that no request could be made of: only the access log wants to know. */
void vdi_trail_refused(const struct vdi_http_connection *connection, int code);
/* Who sent it, and whether it was allowed: after that is known, before an answer. */
void vdi_trail_decided(struct vdi_trail *trail, struct vdi_identity *identity, bool is_allowed);
/* The object that is about to be made, when the path does not say. */
void vdi_trail_named(struct vdi_trail *trail, const char *name);
/* JSON. Other bodies are left out. */
void vdi_trail_request_body(struct vdi_trail *trail, struct vd_bytes json);
bool vdi_trail_wants_response(const struct vdi_trail *trail);
void vdi_trail_response_body(struct vdi_trail *trail, struct vd_bytes json);
/* The answer's code, when it begins. */
void vdi_trail_answered(struct vdi_trail *trail, int code);
/* What the answer says, when it is a Status. */
void vdi_trail_status(struct vdi_trail *trail, const struct vdi_http_status *status);
/* The answer goes on until somebody ends it: a watch. */
void vdi_trail_streams(struct vdi_trail *trail);
void vdi_trail_sent(struct vdi_trail *trail, size_t size_bytes);
/* What the answer says to the client: a header line, or "". Good as long as the trail. */
const char *vdi_trail_header(const struct vdi_trail *trail);
/* The answer is out, or the connection gone. Writes the lines; frees. Returns NULL. */
struct vdi_trail *vdi_trail_end(struct vdi_trail *trail);

#endif
