/* Watches that go out compressed: what one flush sends is one complete gzip member, and one chunk.
 *
 * A member is made whole before anybody else has his turn, so one packer serves all watches of a loop and an
 * idle watch holds none of it: 270 KiB a loop. Mirrors perFlushGzipWriter of
 * k8s.io/apiserver/pkg/endpoints/handlers/watch.go, which takes an encoder out of a pool for each flush.
 *
 * One owner, one thread.
 */
#ifndef VDI_PACKER_H
#define VDI_PACKER_H

#include "base.h"

struct vdi_packer;

/* VD_NOMEM. */
VDI_MUST_USE vd_status vdi_packer_new(struct vdi_packer **ret_packer);
/* NULL is fine; returns NULL. */
struct vdi_packer *vdi_packer_free(struct vdi_packer *packer);

/* Content of the next member, which begins with it. What fails is told at its end. */
void vdi_packer_add(struct vdi_packer *packer, struct vd_bytes content);
/* How much was added since the last end. */
size_t vdi_packer_size(const struct vdi_packer *packer);
/* The member is complete: *ret_frame is its chunk. In either case the next one may begin. VD_NOMEM,
 * VD_TOO_BIG: it is lost. At least one byte was added. */
VDI_MUST_USE vd_status vdi_packer_end(struct vdi_packer *packer, struct vd_blob **ret_frame);

/* ---- Frames: chunks of HTTP/1.1, with one content or one member each ---- */

/* A chunk's size stands before what it measures, so room is left for its line: `ffffffff\r\n`. */
#define VDI_FRAME_ROOM "          "
#define VDI_FRAME_MAX ((size_t) 64 << 20)

/* text: the room, the content, and the line end of the chunk. */
VDI_MUST_USE vd_status vdi_frame_new(char *text, size_t size, struct vd_blob **ret_frame);
/* What is between the lines of the chunk; lent as long as frame is. */
struct vd_bytes vdi_frame_content(const struct vd_blob *frame);
/* How long the content was before it was packed. frame holds one member. */
size_t vdi_frame_unpacked_size(const struct vd_blob *frame);

#endif
