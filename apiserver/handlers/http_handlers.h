/* What is done with a request: each handler answers it, or starts something and answers when that has ended.
 * The loop's thread. */
#ifndef VDI_HTTP_HANDLERS_H
#define VDI_HTTP_HANDLERS_H

#include "http_request.h"

void vdi_request_dispatch(struct vdi_request *request); /* http_dispatch.c */
/* Finds out who sent the request, and whether that one may. False: it was answered, 401 or 403. */
bool vdi_request_authenticate(struct vdi_request *request); /* http_auth.c */
bool vdi_request_authorize(struct vdi_request *request);
/* Reviews of oneself: who am I, may I, what may I. False: the request is about something else. */
bool vdi_handle_review(struct vdi_request *request);   /* http_review.c */
void vdi_handle_document(struct vdi_request *request); /* http_meta.c */
void vdi_handle_plain(struct vdi_request *request);
void vdi_handle_debug(struct vdi_request *request); /* http_debug.c */
void vdi_handle_get(struct vdi_request *request);   /* http_get.c */
void vdi_handle_list(struct vdi_request *request);  /* http_list.c */
/* Checks the list parameters, answers what is wrong with them, else lists what they select and goes on with
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
