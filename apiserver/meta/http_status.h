/* Kubernetes Status objects: every answer that is not 2xx, and the answer to a delete (H-101, H-102, R-680).
 *
 * Built from vd_status and vd_error where the fault came from below, else from the constructors here, whose
 * texts are upstream's.
 */
#ifndef VDI_HTTP_STATUS_H
#define VDI_HTTP_STATUS_H

#include "out.h"

#define VDI_STATUS_CAUSES_MAX 4
#define VDI_STATUS_MESSAGE_SIZE 1024

struct vdi_status_cause {
	const char *reason; /* a literal */
	char	    message[384];
	char	    field[96];
};

struct vdi_http_status {
	int			code;
	bool			success;
	const char	       *reason; /* a literal; "" is possible */
	char			message[VDI_STATUS_MESSAGE_SIZE];
	char			name[256]; /* details */
	char			group[256];
	char			kind[256]; /* the resource, or the kind of an invalid object */
	char			uid[64];
	struct vdi_status_cause causes[VDI_STATUS_CAUSES_MAX];
	size_t			cause_count;
	uint32_t		retry_after_s;	/* also a header */
	struct vd_bytes		continue_token; /* lent; R-125 */
	struct vd_bytes		long_message;	/* lent; instead of message, where that is too short */
	struct vd_bytes		causes_text;	/* lent; JSON, instead of causes: `{..},{..}` */
};

/* Sets code, reason and message and clears everything else. */
void vdi_http_status_set(struct vdi_http_status *status, int code, const char *reason, const char *format,
			 ...) __attribute__((format(printf, 4, 5)));
void vdi_http_status_details(struct vdi_http_status *status, struct vd_bytes name, const char *group,
			     const char *kind);
void vdi_http_status_cause(struct vdi_http_status *status, const char *reason, const char *field,
			   const char *format, ...) __attribute__((format(printf, 4, 5)));

/* 404 for a path that leads nowhere. */
void vdi_http_status_unknown_path(struct vdi_http_status *status);
/* 405 */
void vdi_http_status_method(struct vdi_http_status *status);
/* 404 `pods "x" not found`; resource may be qualified: `deployments.apps "x" not found`. */
void vdi_http_status_not_found(struct vdi_http_status *status, const char *group, const char *plural,
			       struct vd_bytes name);
void vdi_http_status_exists(struct vdi_http_status *status, const char *group, const char *plural,
			    struct vd_bytes name);
/* 409 `Operation cannot be fulfilled on <res> "<name>": <why>`. */
void vdi_http_status_conflict(struct vdi_http_status *status, const char *group, const char *plural,
			      struct vd_bytes name, const char *why);
/* 422 `<Kind>[.<group>] "<name>" is invalid: <field>: <detail>` from the causes already added; call last. */
void vdi_http_status_invalid(struct vdi_http_status *status, const char *group, const char *kind,
			     struct vd_bytes name);
/* 415 with the accepted types. */
void vdi_http_status_media_type(struct vdi_http_status *status, const char *accepted);

/* A failure of the cacher or the store, mapped as upstream does for this verb (R-113..R-125): "get", "list",
 * "create", "update", "delete", "watch". error may be NULL. */
void vdi_http_status_of(struct vdi_http_status *status, const char *verb, const char *group,
			const char *plural, struct vd_bytes name, vd_status code,
			const struct vd_error *error);

/* The JSON document, without a newline at its end. */
void vdi_http_status_write(struct vdi_out *out, const struct vdi_http_status *status);

/* "Not Found", for the status line. Never NULL. */
const char *vdi_http_reason_phrase(int code);

#endif
