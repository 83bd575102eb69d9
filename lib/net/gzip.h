/* One gzip stream, made bit by bit (RFC 1952), at the level that upstream uses: 1, which is for speed.
 *
 * One owner, one thread. An encoder is a quarter of a megabyte: whoever makes some bounds how many there are.
 */
#ifndef VDI_GZIP_H
#define VDI_GZIP_H

#include "base.h"

struct vdi_gzip;

/* VD_NOMEM. */
VDI_MUST_USE vd_status vdi_gzip_new(struct vdi_gzip **ret_gzip);
/* NULL is fine; returns NULL. */
struct vdi_gzip *vdi_gzip_free(struct vdi_gzip *gzip);
/* A new stream begins, whatever became of the one before; takes no memory. */
void vdi_gzip_restart(struct vdi_gzip *gzip);
/* Takes from input what it can and puts what comes of it into room; nothing of input is kept after it was
 * taken. VD_OK: all was taken, and if it is the last input, the stream is complete (no call may follow).
 * VD_AGAIN: the room is full; call again with the rest and new room. */
VDI_MUST_USE vd_status vdi_gzip_take(struct vdi_gzip *gzip, struct vd_bytes input, bool is_last, char *room,
				     size_t room_size, size_t *ret_taken, size_t *ret_made);
/* Makes what was taken, so that a reader has it before there is more. VD_OK, or VD_AGAIN: the room is full;
 * call again with new room. */
VDI_MUST_USE vd_status vdi_gzip_flush(struct vdi_gzip *gzip, char *room, size_t room_size, size_t *ret_made);

#endif
