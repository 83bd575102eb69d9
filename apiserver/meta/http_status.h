/* Kubernetes Status objects: the body of every response that is not 2xx, and the response to a delete.
 *
 * An error of the cacher or the store is converted from vd_status and vd_error; the constructors here make
 * the others. All texts are upstream's.
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
	const char	       *reason; /* a literal; "" for an error without a reason */
	char			message[VDI_STATUS_MESSAGE_SIZE];
	char			name[256]; /* details.name */
	char			group[256];
	char			kind[256]; /* the resource, or the kind of an invalid object */
	char			uid[64];
	struct vdi_status_cause causes[VDI_STATUS_CAUSES_MAX];
	size_t			cause_count;
	uint32_t		retry_after_s; /* also sent as the header Retry-After */
	/* borrowed; in details of 410 Expired, for continuing the list */
	struct vd_bytes continue_token;
	struct vd_bytes long_message; /* borrowed; replaces message if that is too short for it */
	struct vd_bytes causes_text;  /* borrowed; JSON that replaces causes: `{..},{..}` */
};

/* Sets code, reason and message and clears everything else. */
void vdi_http_status_set(struct vdi_http_status *status, int code, const char *reason, const char *format,
			 ...) __attribute__((format(printf, 4, 5)));
void vdi_http_status_details(struct vdi_http_status *status, struct vd_bytes name, const char *group,
			     const char *kind);
void vdi_http_status_cause(struct vdi_http_status *status, const char *reason, const char *field,
			   const char *format, ...) __attribute__((format(printf, 4, 5)));

/* 404 for a path that is not served. */
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
/* 422 `<Kind>[.<group>] "<name>" is invalid: <field>: <detail>` from the causes added before; call last. */
void vdi_http_status_invalid(struct vdi_http_status *status, const char *group, const char *kind,
			     struct vd_bytes name);
/* 415 with the accepted media types. */
void vdi_http_status_media_type(struct vdi_http_status *status, const char *accepted);

/* Converts an error of the cacher or the store as upstream does for this verb: "get", "list", "create",
 * "update", "delete", "watch". error may be NULL. */
void vdi_http_status_of(struct vdi_http_status *status, const char *verb, const char *group,
			const char *plural, struct vd_bytes name, vd_status code,
			const struct vd_error *error);

/* Writes the JSON document, without a trailing newline. */
void vdi_http_status_write(struct vdi_out *out, const struct vdi_http_status *status);

#endif
