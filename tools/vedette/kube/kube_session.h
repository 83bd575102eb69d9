/* The Kubernetes client (vedette/kube.h) for a program that waits: each function blocks the calling thread
 * until the server has answered. One thread. */
#ifndef VDI_KUBE_SESSION_H
#define VDI_KUBE_SESSION_H

#include <vedette/kube.h>

#include "base.h"
#include "kube_transport.h"

#define VDI_DEFAULT_SERVER "http://127.0.0.1:8080"

struct vdi_kube_session;

/* Opens a client; texts of options are copied, options.changed is set. Errors as of vd_kube_open. */
VDI_MUST_USE vd_status vdi_kube_session_new(const struct vd_env *env, const struct vd_kube_options *options,
					    struct vdi_kube_session **ret_session, struct vd_error *reterr);
/* Waits for the end of the client. Stores over it must be closed before. Accepts NULL. */
struct vdi_kube_session *vdi_kube_session_free(struct vdi_kube_session *session);
struct vd_kube		*vdi_kube_session_client(struct vdi_kube_session *session);
/* Returns true if the server has answered any request so far. */
bool vdi_kube_session_has_answered(struct vdi_kube_session *session);

/* ---- Resources ---- */

#define VDI_RESOURCE_TEXT_MAX 256

struct vdi_resource_name {
	char group[VDI_RESOURCE_TEXT_MAX]; /* "" for core */
	char version[VDI_RESOURCE_TEXT_MAX];
	char plural[VDI_RESOURCE_TEXT_MAX];
	char singular[VDI_RESOURCE_TEXT_MAX]; /* the kind in lower case */
	bool namespaced;
};

/* Finds a typed name ("po", "deployments.apps") with vd_kube_find, which repeats failed requests. Ends early
 * if the server has never answered: VD_UNAVAILABLE. VD_TIMEOUT: there is no result yet; the next call with
 * the same name continues the search, another name is refused (VD_FULL). Errors as of vd_kube_find. */
VDI_MUST_USE vd_status vdi_kube_session_find(struct vdi_kube_session *session, const char *typed,
					     vd_dur timeout, struct vdi_resource_name *ret_resource,
					     struct vd_error *reterr);

/* ---- Requests ---- */

struct vdi_kube_reply {
	int    code; /* 0: no response */
	char  *body; /* NUL-terminated after size bytes */
	size_t size;
};

/* Sends one request. path begins with '/' and may include a query; body NULL: none. A response that is not
 * 2xx becomes its error, as vd_kube_answer_fn describes; ret_reply (may be NULL) is set then too if there is
 * one. The caller always calls vdi_kube_reply_fini. */
VDI_MUST_USE vd_status vdi_kube_session_request(struct vdi_kube_session *session, const char *method,
						const char *path, const char *accept, const char *body,
						struct vdi_kube_reply *ret_reply, struct vd_error *reterr);
void		       vdi_kube_reply_fini(struct vdi_kube_reply *reply);

typedef vd_status (*vdi_kube_chunk_fn)(void *arg, struct vd_bytes chunk);

/* Passes a 2xx response of a GET to chunk as it arrives, on the calling thread; returns at its end. VD_OK: it
 * ended normally. An error of chunk is returned. Other responses become errors as above; VD_UNAVAILABLE: the
 * connection failed or was cut; VD_TIMEOUT: nothing was received for options.silence_max. *ret_code: HTTP
 * status, 0: no response. At most VDI_KUBE_STREAM_WAITING_MAX bytes wait for chunk; then the server is not
 * read. */
#define VDI_KUBE_STREAM_WAITING_MAX ((size_t) 4 << 20)
VDI_MUST_USE vd_status vdi_kube_session_stream(struct vdi_kube_session *session, const char *path,
					       const char *accept, vdi_kube_chunk_fn chunk, void *arg,
					       int *ret_code, struct vd_error *reterr);

/* Converts a Status object to an error, as vdi_kube_error_of. The message ends with its reason in
 * parentheses. */
vd_status vdi_kube_session_error_of(const struct vdi_kube_head *head, struct vd_bytes body,
				    struct vd_error *reterr);

#endif
