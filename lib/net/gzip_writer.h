/* Compressed watches: the events of one flush become one complete gzip member, and one HTTP chunk.
 *
 * A member is completed before another watch is handled, so one gzip writer serves all watches of a loop, and
 * an idle watch holds no encoder: 270 KiB per loop. Mirrors perFlushGzipWriter of
 * k8s.io/apiserver/pkg/endpoints/handlers/watch.go, which takes an encoder from a pool for each flush.
 *
 * One owner, one thread.
 */
#ifndef VDI_GZIP_WRITER_H
#define VDI_GZIP_WRITER_H

#include "base.h"

struct vdi_gzip_writer;

/* VD_NOMEM. */
VDI_MUST_USE vd_status vdi_gzip_writer_new(struct vdi_gzip_writer **ret_gzip_writer);
/* NULL is allowed; returns NULL. */
struct vdi_gzip_writer *vdi_gzip_writer_free(struct vdi_gzip_writer *gzip_writer);

/* Adds content to the current member; the first call begins it. vdi_gzip_writer_end reports failures. */
void vdi_gzip_writer_add(struct vdi_gzip_writer *gzip_writer, struct vd_bytes content);
/* Bytes added since the last end. */
size_t vdi_gzip_writer_size(const struct vdi_gzip_writer *gzip_writer);
/* Completes the member: *ret_frame is its chunk. At least one byte was added. VD_NOMEM, VD_TOO_BIG: the
 * member is lost. In all cases the next one may begin. */
VDI_MUST_USE vd_status vdi_gzip_writer_end(struct vdi_gzip_writer *gzip_writer, struct vd_blob **ret_frame);

/* ---- Frames: chunks of HTTP/1.1, each with one content or one member ---- */

/* A chunk's size is before its content, so room is reserved for its line: `ffffffff\r\n`. */
#define VDI_FRAME_ROOM "          "
#define VDI_FRAME_MAX ((size_t) 64 << 20)

/* Creates a frame. text: the reserved room, the content, and the line end of the chunk. */
VDI_MUST_USE vd_status vdi_frame_new(char *text, size_t size, struct vd_blob **ret_frame);
/* The content of the chunk, without its lines; borrowed as long as frame. */
struct vd_bytes vdi_frame_content(const struct vd_blob *frame);
/* The size of the content before compression. frame has one member. */
size_t vdi_frame_unpacked_size(const struct vd_blob *frame);

#endif
