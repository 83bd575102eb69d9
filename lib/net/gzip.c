/* zlib with our allocator. Uses Z_NO_FLUSH until the last input: zlib collects it, so small pieces cost no
 * more than large ones. */
#include "gzip.h"

#include <zlib.h>

#define LEVEL 1
#define WINDOW (15 + 16) /* 32 KiB; 16 more select gzip's header and trailer */
#define MEMORY 8

struct vdi_gzip {
	z_stream stream;
	bool	 is_complete;
};

static void *get_memory(void *arg, uInt count, uInt size)
{
	(void) arg;
	return vdi_alloc((size_t) count * size);
}

static void release_memory(void *arg, void *memory)
{
	(void) arg;
	vdi_free(memory);
}

vd_status vdi_gzip_new(struct vdi_gzip **ret_gzip)
{
	struct vdi_gzip *gzip = VDI_NEW(struct vdi_gzip);

	if (gzip == NULL)
		return VD_NOMEM;
	gzip->stream.zalloc = get_memory;
	gzip->stream.zfree = release_memory;
	if (deflateInit2(&gzip->stream, LEVEL, Z_DEFLATED, WINDOW, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK) {
		vdi_free(gzip);
		return VD_NOMEM;
	}
	*ret_gzip = gzip;
	return VD_OK;
}

struct vdi_gzip *vdi_gzip_free(struct vdi_gzip *gzip)
{
	if (gzip)
		(void) deflateEnd(&gzip->stream); /* abandoning a stream is not an error */
	vdi_free(gzip);
	return NULL;
}

void vdi_gzip_restart(struct vdi_gzip *gzip)
{
	VDI_CHECK(deflateReset(&gzip->stream) == Z_OK);
	gzip->is_complete = false;
}

vd_status vdi_gzip_take(struct vdi_gzip *gzip, struct vd_bytes input, bool is_last, char *room,
			size_t room_size, size_t *ret_taken, size_t *ret_made)
{
	z_stream *stream = &gzip->stream;
	uInt	  offered = (uInt) VDI_MIN(input.size, (size_t) 1 << 30),
	     space = (uInt) VDI_MIN(room_size, (size_t) 1 << 30);
	int result;

	VDI_CHECK(!gzip->is_complete);
	stream->next_in = (Bytef *) (uintptr_t) input.data;
	stream->avail_in = offered;
	stream->next_out = (Bytef *) room;
	stream->avail_out = space;
	is_last &= offered == input.size;
	/* Z_BUF_ERROR means no input or no room, which is not an error. */
	result = deflate(stream, is_last ? Z_FINISH : Z_NO_FLUSH);
	VDI_CHECK(result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR);
	gzip->is_complete = result == Z_STREAM_END;
	*ret_taken = offered - stream->avail_in;
	*ret_made = space - stream->avail_out;
	if (is_last)
		return gzip->is_complete ? VD_OK : VD_AGAIN;
	return *ret_taken == input.size ? VD_OK : VD_AGAIN;
}

vd_status vdi_gzip_flush(struct vdi_gzip *gzip, char *room, size_t room_size, size_t *ret_made)
{
	z_stream *stream = &gzip->stream;
	uInt	  space = (uInt) VDI_MIN(room_size, (size_t) 1 << 30);
	int	  result;

	VDI_CHECK(!gzip->is_complete);
	stream->next_in = NULL;
	stream->avail_in = 0;
	stream->next_out = (Bytef *) room;
	stream->avail_out = space;
	result = deflate(stream, Z_SYNC_FLUSH);
	VDI_CHECK(result == Z_OK || result == Z_BUF_ERROR);
	*ret_made = space - stream->avail_out;
	return stream->avail_out ? VD_OK : VD_AGAIN;
}
