/* The handlers of requests. Each sends a response, or starts a call and responds when it has completed. On
 * the loop's thread. */
#ifndef VDI_HTTP_HANDLERS_H
#define VDI_HTTP_HANDLERS_H

#include "http_request.h"

void vdi_request_dispatch(struct vdi_request *request); /* http_dispatch.c */
/* Authenticates, and authorizes, the request. False: 401 or 403 was sent. */
bool vdi_request_authenticate(struct vdi_request *request); /* http_auth.c */
bool vdi_request_authorize(struct vdi_request *request);
/* Reviews of the caller itself (SelfSubjectReview etc.). False: the request is for another resource. */
bool vdi_handle_review(struct vdi_request *request);   /* http_review.c */
void vdi_handle_document(struct vdi_request *request); /* http_meta.c */
void vdi_handle_plain(struct vdi_request *request);
void vdi_handle_debug(struct vdi_request *request); /* http_debug.c */
void vdi_handle_get(struct vdi_request *request);   /* http_get.c */
void vdi_handle_list(struct vdi_request *request);  /* http_list.c */
/* Validates the list parameters, responding to errors; else lists the selected objects and continues with
 * resume. */
void vdi_request_list(struct vdi_request *request, void (*resume)(struct vdi_request *request));
void vdi_handle_watch(struct vdi_request *request);  /* http_watch.c */
void vdi_handle_create(struct vdi_request *request); /* http_write.c */
void vdi_handle_update(struct vdi_request *request);
void vdi_handle_patch(struct vdi_request *request);
void vdi_handle_get_scale(struct vdi_request *request);
void vdi_handle_delete(struct vdi_request *request); /* http_delete.c */
void vdi_handle_delete_collection(struct vdi_request *request);

#endif
