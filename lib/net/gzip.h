/* One gzip stream, produced in small steps (RFC 1952), at upstream's level 1, the fastest.
 *
 * One owner, one thread. An encoder takes a quarter of a megabyte, so the owner bounds the number of
 * encoders.
 */
#ifndef VDI_GZIP_H
#define VDI_GZIP_H

#include "base.h"

struct vdi_gzip;

/* VD_NOMEM. */
VDI_MUST_USE vd_status vdi_gzip_new(struct vdi_gzip **ret_gzip);
/* NULL is allowed; returns NULL. */
struct vdi_gzip *vdi_gzip_free(struct vdi_gzip *gzip);
/* Begins a new stream and abandons the current one, if any; does not allocate. */
void vdi_gzip_restart(struct vdi_gzip *gzip);
/* Compresses input into room. VD_OK: all input was taken, and with is_last the stream is complete (no further
 * call). VD_AGAIN: room is full; call again with the remaining input and new room. Taken input is not
 * referenced afterwards. */
VDI_MUST_USE vd_status vdi_gzip_take(struct vdi_gzip *gzip, struct vd_bytes input, bool is_last, char *room,
				     size_t room_size, size_t *ret_taken, size_t *ret_made);
/* Writes everything taken so far, so that a reader can decode it. VD_OK, or VD_AGAIN: room is full; call
 * again with new room. */
VDI_MUST_USE vd_status vdi_gzip_flush(struct vdi_gzip *gzip, char *room, size_t room_size, size_t *ret_made);

#endif
