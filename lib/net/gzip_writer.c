/* The encoder writes into a buffer that is kept between members, unless a member was much larger than usual;
 * the finished chunk is copied from it.
 *
 * A member is flushed before it is ended, like upstream, at a cost of some five bytes: Go's gzip.Reader
 * returns the content of a member's last block only after it has read the next member's header. After a flush
 * the last block has no content.
 */
#include "gzip_writer.h"

#include <stdio.h>

#include "buffer.h"
#include "gzip.h"

#define STEP 16384
#define KEPT_BYTES 131072

struct vdi_gzip_writer {
	struct vdi_gzip	 *gzip;
	struct vdi_buffer out;
	size_t		  size; /* of the content */
};

vd_status vdi_gzip_writer_new(struct vdi_gzip_writer **ret_gzip_writer)
{
	struct vdi_gzip_writer *gzip_writer = VDI_NEW(struct vdi_gzip_writer);

	if (gzip_writer == NULL)
		return VD_NOMEM;
	if (vdi_gzip_new(&gzip_writer->gzip) != VD_OK) {
		vdi_free(gzip_writer);
		return VD_NOMEM;
	}
	vdi_buffer_init(&gzip_writer->out, VDI_FRAME_MAX);
	*ret_gzip_writer = gzip_writer;
	return VD_OK;
}

struct vdi_gzip_writer *vdi_gzip_writer_free(struct vdi_gzip_writer *gzip_writer)
{
	if (gzip_writer) {
		(void) vdi_gzip_free(gzip_writer->gzip);
		vdi_buffer_fini(&gzip_writer->out);
	}
	vdi_free(gzip_writer);
	return NULL;
}

enum what { CONTENT, FLUSH, END };

static void encode(struct vdi_gzip_writer *gzip_writer, enum what what, struct vd_bytes content)
{
	vd_status status = VD_AGAIN;

	while (status == VD_AGAIN) {
		size_t taken = 0, made;
		char  *room = vdi_buffer_reserve(&gzip_writer->out, STEP);

		if (room == NULL)
			return; /* the buffer keeps the failure */
		if (what == FLUSH)
			status = vdi_gzip_flush(gzip_writer->gzip, room, STEP, &made);
		else
			status = vdi_gzip_take(gzip_writer->gzip, content, what == END, room, STEP, &taken,
					       &made);
		vdi_buffer_commit(&gzip_writer->out, made);
		content.data = (const char *) content.data + taken;
		content.size -= taken;
	}
}

void vdi_gzip_writer_add(struct vdi_gzip_writer *gzip_writer, struct vd_bytes content)
{
	if (gzip_writer->size == 0) {
		vdi_gzip_restart(gzip_writer->gzip);
		vdi_buffer_clear(&gzip_writer->out);
		vdi_buffer_append_text(&gzip_writer->out, VDI_FRAME_ROOM);
	}
	gzip_writer->size += content.size;
	encode(gzip_writer, CONTENT, content);
}

size_t vdi_gzip_writer_size(const struct vdi_gzip_writer *gzip_writer)
{
	return gzip_writer->size;
}

vd_status vdi_gzip_writer_end(struct vdi_gzip_writer *gzip_writer, struct vd_blob **ret_frame)
{
	vd_status status;

	VDI_CHECK(gzip_writer->size > 0);
	encode(gzip_writer, FLUSH, vd_bytes_of(""));
	encode(gzip_writer, END, vd_bytes_of(""));
	vdi_buffer_append_text(&gzip_writer->out, "\r\n");
	status = vdi_buffer_status(&gzip_writer->out);
	if (status == VD_OK)
		status = vdi_frame_new(gzip_writer->out.data, gzip_writer->out.size, ret_frame);
	if (gzip_writer->out.capacity > KEPT_BYTES)
		vdi_buffer_fini(&gzip_writer->out);
	gzip_writer->size = 0;
	return status;
}

/* ---- Frames ---- */

vd_status vdi_frame_new(char *text, size_t size, struct vd_blob **ret_frame)
{
	const size_t room = sizeof VDI_FRAME_ROOM - 1;
	char	     line[16];
	size_t	     size_of_line = (size_t) snprintf(line, sizeof line, "%zx\r\n", size - room - 2);

	memcpy(text + room - size_of_line, line, size_of_line);
	return vd_blob_new((struct vd_bytes) { text + room - size_of_line, size - room + size_of_line },
			   ret_frame);
}

struct vd_bytes vdi_frame_content(const struct vd_blob *frame)
{
	struct vd_bytes bytes = vd_blob_bytes(frame);
	const char     *content = (const char *) memchr(bytes.data, '\n', bytes.size) + 1;

	return (struct vd_bytes) { content, bytes.size - (size_t) (content - (const char *) bytes.data) - 2 };
}

/* The last four bytes of a member are its size before compression (RFC 1952, ISIZE). */
size_t vdi_frame_unpacked_size(const struct vd_blob *frame)
{
	struct vd_bytes	     content = vdi_frame_content(frame);
	const unsigned char *tail = (const unsigned char *) content.data + content.size - 4;

	return (size_t) tail[0] | (size_t) tail[1] << 8 | (size_t) tail[2] << 16 | (size_t) tail[3] << 24;
}
