/* A message to send is copied once, into our own memory that core references, because core aborts the program
 * if its own allocator fails. A received message is copied once too: it arrives in pieces of some KiB but
 * decoders need one piece, and core's memory must be released before core is stopped. */
#include <stdatomic.h>

#include <grpc/byte_buffer_reader.h>
#include <grpc/slice.h>

#include "grpc_message.h"

struct outgoing {
	/* for the thread sanitizer, which does not see that core passes the memory to another thread */
	_Atomic bool written;
	char	     bytes[];
};

static void release_outgoing(void *arg)
{
	struct outgoing *outgoing = arg;

	(void) atomic_load_explicit(&outgoing->written, memory_order_acquire);
	vdi_free(outgoing);
}

grpc_byte_buffer *vdi_grpc_message_pack(struct vd_bytes bytes)
{
	grpc_byte_buffer *buffer;
	grpc_slice	  slice;

	if (bytes.size <= GRPC_SLICE_INLINED_SIZE)
		slice = grpc_slice_from_copied_buffer(bytes.data ? bytes.data : "", bytes.size);
	else {
		struct outgoing *outgoing = vdi_alloc(sizeof *outgoing + bytes.size);

		if (outgoing == NULL)
			return NULL;
		memcpy(outgoing->bytes, bytes.data, bytes.size);
		atomic_init(&outgoing->written, false);
		atomic_store_explicit(&outgoing->written, true, memory_order_release);
		slice = grpc_slice_new_with_user_data(outgoing->bytes, bytes.size, release_outgoing,
						      outgoing);
	}
	buffer = grpc_raw_byte_buffer_create(&slice, 1);
	grpc_slice_unref(slice);
	return buffer;
}

vd_status vdi_grpc_message_unpack(grpc_byte_buffer *buffer, struct vdi_rpc_message *ret_message)
{
	grpc_byte_buffer_reader reader;
	grpc_slice	       *piece;
	size_t			size = grpc_byte_buffer_length(buffer);
	size_t			used = 0;
	char		       *bytes = vdi_alloc(size + 1);

	if (bytes == NULL || !grpc_byte_buffer_reader_init(&reader, buffer)) {
		vdi_free(bytes);
		grpc_byte_buffer_destroy(buffer);
		return VD_NOMEM;
	}
	while (grpc_byte_buffer_reader_peek(&reader, &piece)) {
		VDI_CHECK(GRPC_SLICE_LENGTH(*piece) <= size - used);
		memcpy(bytes + used, GRPC_SLICE_START_PTR(*piece), GRPC_SLICE_LENGTH(*piece));
		used += GRPC_SLICE_LENGTH(*piece);
	}
	bytes[used] = 0;
	grpc_byte_buffer_reader_destroy(&reader);
	grpc_byte_buffer_destroy(buffer);
	*ret_message =
		(struct vdi_rpc_message) { .bytes = { bytes, used }, .owner = bytes, .release = vdi_free };
	return VD_OK;
}

bool vdi_grpc_metadata_is_legal(const char *key, struct vd_bytes value)
{
	grpc_slice name = grpc_slice_from_copied_string(key);
	grpc_slice content = grpc_slice_from_copied_buffer(value.data ? value.data : "", value.size);
	bool	   legal = grpc_header_key_is_legal(name) &&
		     (grpc_is_binary_header(name) || grpc_header_nonbin_value_is_legal(content));

	grpc_slice_unref(content);
	grpc_slice_unref(name);
	return legal;
}

void vdi_grpc_text_init(struct vdi_grpc_text *text, grpc_slice slice)
{
	size_t size = GRPC_SLICE_LENGTH(slice);

	text->text = text->room;
	if (size >= sizeof text->room) {
		char *longer = vdi_alloc(size + 1);

		if (longer)
			text->text = longer;
		else
			size = sizeof text->room - 1;
	}
	memcpy(text->text, GRPC_SLICE_START_PTR(slice), size);
	text->text[size] = 0;
}

void vdi_grpc_text_fini(struct vdi_grpc_text *text)
{
	if (text->text != text->room)
		vdi_free(text->text);
}

/* ---- Blobs ---- */

static void drop_reference(void *arg)
{
	struct vdi_rpc_blob *blob = arg;

	(void) vdi_rpc_blob_size(blob); /* acquires */
	vdi_rpc_blob_unref(blob);
}

grpc_byte_buffer *vdi_grpc_blob_pack(struct vd_bytes head, struct vdi_rpc_blob *blob)
{
	grpc_slice	  slices[2];
	struct vd_bytes	  bytes = blob ? vdi_rpc_blob_bytes(blob) : VD_BYTES_NONE;
	size_t		  count = 0;
	grpc_byte_buffer *buffer;

	if (head.size)
		slices[count++] = grpc_slice_from_copied_buffer(head.data, head.size);
	if (bytes.size)
		slices[count++] = grpc_slice_new_with_user_data((void *) (uintptr_t) bytes.data, bytes.size,
								drop_reference, vdi_rpc_blob_ref(blob));
	buffer = grpc_raw_byte_buffer_create(slices, count);
	while (count)
		grpc_slice_unref(slices[--count]);
	return buffer;
}
