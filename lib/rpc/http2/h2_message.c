/* A message's memory is allocated when its prefix is complete; then pieces are copied straight into it, so
 * received bytes are copied once, unless they arrive before they were requested.
 *
 * nghttp2 reads the outbox in two steps: `read` announces the number of available bytes
 * (vdi_h2_outbox_provider), then the connection must send exactly that number and takes them
 * (vdi_h2_outbox_write). In between nothing may be removed from the outbox.
 */
#include "h2_message.h"

#define FIRST_SIZE_MAX ((size_t) 1 << 20) /* allocated at once for an announced size */
#define KEPT_SIZE_MAX ((size_t) 1 << 30)

/* ---- Inbox ---- */

void vdi_h2_inbox_init(struct vdi_h2_inbox *inbox, size_t size_max)
{
	*inbox = (struct vdi_h2_inbox) { .size_max = size_max };
	vdi_buffer_init(&inbox->kept, KEPT_SIZE_MAX);
}

void vdi_h2_inbox_fini(struct vdi_h2_inbox *inbox)
{
	vdi_free(inbox->bytes);
	inbox->bytes = NULL;
	vdi_buffer_fini(&inbox->kept);
}

/* The five bytes of the prefix are complete. */
static vd_status begin_message(struct vdi_h2_inbox *inbox)
{
	inbox->size = (size_t) inbox->prefix[1] << 24 | (size_t) inbox->prefix[2] << 16 |
		      (size_t) inbox->prefix[3] << 8 | inbox->prefix[4];
	if (inbox->prefix[0] != 0)
		return VD_BAD_REQUEST;
	if (inbox->size > inbox->size_max)
		return VD_TOO_BIG;
	inbox->used = 0;
	inbox->capacity = VDI_MIN(inbox->size, FIRST_SIZE_MAX);
	inbox->bytes = vdi_alloc(inbox->capacity + 1);
	return inbox->bytes ? VD_OK : VD_NOMEM;
}

static vd_status make_room(struct vdi_h2_inbox *inbox, size_t needed)
{
	size_t capacity = inbox->capacity;
	char  *bytes;

	if (needed <= capacity)
		return VD_OK;
	while (capacity < needed)
		capacity = capacity > inbox->size / 2 ? inbox->size : capacity * 2;
	bytes = vdi_realloc(inbox->bytes, capacity + 1);
	if (bytes == NULL)
		return VD_NOMEM;
	inbox->bytes = bytes;
	inbox->capacity = capacity;
	return VD_OK;
}

static vd_status put_together(struct vdi_h2_inbox *inbox, struct vd_bytes bytes, size_t *ret_used,
			      struct vdi_rpc_message *ret_message)
{
	const uint8_t *at = bytes.data;
	size_t	       left = bytes.size, piece;

	*ret_used = 0;
	if (inbox->bytes == NULL) {
		piece = VDI_MIN(left, (size_t) (VDI_H2_PREFIX_SIZE - inbox->prefix_size));
		if (piece)
			memcpy(inbox->prefix + inbox->prefix_size, at, piece);
		inbox->prefix_size += (unsigned) piece;
		at += piece;
		left -= piece;
		*ret_used = piece;
		if (inbox->prefix_size < VDI_H2_PREFIX_SIZE)
			return VD_AGAIN;
		VDI_TRY(begin_message(inbox));
	}
	piece = VDI_MIN(left, inbox->size - inbox->used);
	VDI_TRY(make_room(inbox, inbox->used + piece));
	if (piece)
		memcpy(inbox->bytes + inbox->used, at, piece);
	inbox->used += piece;
	*ret_used += piece;
	if (inbox->used < inbox->size)
		return VD_AGAIN;
	inbox->bytes[inbox->size] = 0;
	*ret_message = (struct vdi_rpc_message) { .bytes = { inbox->bytes, inbox->size },
						  .owner = inbox->bytes,
						  .release = vdi_free };
	inbox->bytes = NULL;
	inbox->prefix_size = 0;
	return VD_OK;
}

vd_status vdi_h2_inbox_take(struct vdi_h2_inbox *inbox, struct vd_bytes bytes, size_t *ret_used,
			    struct vdi_rpc_message *ret_message)
{
	vd_status status = put_together(inbox, bytes, ret_used, ret_message);

	VDI_CHECK(!vdi_h2_inbox_has_kept(inbox));
	inbox->owed += *ret_used;
	return status;
}

vd_status vdi_h2_inbox_keep(struct vdi_h2_inbox *inbox, struct vd_bytes bytes)
{
	vdi_buffer_append(&inbox->kept, bytes);
	return vdi_buffer_status(&inbox->kept) == VD_OK ? VD_OK : VD_NOMEM;
}

vd_status vdi_h2_inbox_next(struct vdi_h2_inbox *inbox, struct vdi_rpc_message *ret_message)
{
	struct vd_bytes left;
	size_t		used;
	vd_status	status;

	if (!vdi_h2_inbox_has_kept(inbox))
		return VD_AGAIN;
	left = (struct vd_bytes) { inbox->kept.data + inbox->kept_used, inbox->kept.size - inbox->kept_used };
	status = put_together(inbox, left, &used, ret_message);
	inbox->owed += used;
	inbox->kept_used += used;
	if (inbox->kept_used == inbox->kept.size) {
		vdi_buffer_fini(&inbox->kept);
		vdi_buffer_init(&inbox->kept, KEPT_SIZE_MAX);
		inbox->kept_used = 0;
	}
	return status;
}

bool vdi_h2_inbox_is_torn(const struct vdi_h2_inbox *inbox)
{
	return inbox->bytes || inbox->prefix_size || vdi_h2_inbox_has_kept(inbox);
}

bool vdi_h2_inbox_has_kept(const struct vdi_h2_inbox *inbox)
{
	return inbox->kept.size > inbox->kept_used;
}

size_t vdi_h2_inbox_settle(struct vdi_h2_inbox *inbox)
{
	size_t owed = inbox->owed;

	inbox->owed = 0;
	return owed;
}

/* ---- Outbox ---- */

vd_status vdi_h2_outgoing_new(struct vd_bytes head, struct vdi_rpc_blob *blob,
			      struct vdi_h2_outgoing **ret_outgoing)
{
	size_t			size = head.size + vdi_rpc_blob_size(blob);
	struct vdi_h2_outgoing *outgoing;

	VDI_CHECK(blob == NULL || head.size <= VDI_H2_HEAD_SIZE_MAX);
	if (size < head.size || size > UINT32_MAX)
		return VD_TOO_BIG;
	outgoing = vdi_alloc(sizeof *outgoing + VDI_H2_PREFIX_SIZE + head.size);
	if (outgoing == NULL)
		return VD_NOMEM;
	outgoing->next = NULL;
	outgoing->unsent = NULL;
	outgoing->blob = blob ? vdi_rpc_blob_ref(blob) : NULL;
	outgoing->head_size = VDI_H2_PREFIX_SIZE + head.size;
	outgoing->size = VDI_H2_PREFIX_SIZE + size;
	outgoing->head[0] = 0;
	outgoing->head[1] = (char) (size >> 24);
	outgoing->head[2] = (char) (size >> 16);
	outgoing->head[3] = (char) (size >> 8);
	outgoing->head[4] = (char) size;
	if (head.size)
		memcpy(outgoing->head + VDI_H2_PREFIX_SIZE, head.data, head.size);
	*ret_outgoing = outgoing;
	return VD_OK;
}

size_t vdi_h2_outgoing_count(struct vdi_h2_outgoing *outgoing, struct vdi_h2_unsent *unsent)
{
	size_t cost = sizeof *outgoing + outgoing->head_size;

	if (outgoing->blob && vdi_rpc_blob_wait(outgoing->blob))
		cost += vdi_rpc_blob_size(outgoing->blob);
	outgoing->unsent = unsent;
	return atomic_fetch_add_explicit(&unsent->bytes, cost, memory_order_acq_rel);
}

static void uncount(struct vdi_h2_outgoing *outgoing)
{
	size_t cost = sizeof *outgoing + outgoing->head_size;

	if (outgoing->blob && vdi_rpc_blob_unwait(outgoing->blob))
		cost += vdi_rpc_blob_size(outgoing->blob);
	atomic_fetch_sub_explicit(&outgoing->unsent->bytes, cost, memory_order_acq_rel);
}

vd_status vdi_h2_outgoing_new_plain(struct vd_bytes bytes, struct vdi_h2_outgoing **ret_outgoing)
{
	struct vdi_h2_outgoing *outgoing = vdi_alloc(sizeof *outgoing + bytes.size);

	if (outgoing == NULL)
		return VD_NOMEM;
	*outgoing = (struct vdi_h2_outgoing) { .head_size = bytes.size, .size = bytes.size };
	if (bytes.size)
		memcpy(outgoing->head, bytes.data, bytes.size);
	*ret_outgoing = outgoing;
	return VD_OK;
}

struct vdi_h2_outgoing *vdi_h2_outgoing_free(struct vdi_h2_outgoing *outgoing)
{
	if (outgoing && outgoing->unsent)
		uncount(outgoing);
	if (outgoing)
		vdi_rpc_blob_unref(outgoing->blob);
	vdi_free(outgoing);
	return NULL;
}

void vdi_h2_outbox_init(struct vdi_h2_outbox *outbox)
{
	*outbox = (struct vdi_h2_outbox) { 0 };
	outbox->last = &outbox->first;
}

static void free_list(struct vdi_h2_outgoing *list)
{
	while (list) {
		struct vdi_h2_outgoing *next = list->next;

		(void) vdi_h2_outgoing_free(list);
		list = next;
	}
}

void vdi_h2_outbox_fini(struct vdi_h2_outbox *outbox)
{
	free_list(outbox->first);
	free_list(outbox->written);
	outbox->first = outbox->written = NULL;
	outbox->last = &outbox->first;
	outbox->first_used = outbox->size = 0;
}

void vdi_h2_outbox_cut(struct vdi_h2_outbox *outbox)
{
	struct vdi_h2_outgoing *begun = outbox->first_used ? outbox->first : NULL;
	size_t			used = outbox->first_used;

	if (begun)
		outbox->first = begun->next;
	vdi_h2_outbox_fini(outbox);
	if (begun) {
		vdi_h2_outbox_push(outbox, begun);
		outbox->first_used = used;
		outbox->size -= used;
	}
}

void vdi_h2_outbox_push(struct vdi_h2_outbox *outbox, struct vdi_h2_outgoing *outgoing)
{
	outgoing->next = NULL;
	*outbox->last = outgoing;
	outbox->last = &outgoing->next;
	outbox->size += outgoing->size;
}

static ssize_t read_outbox(nghttp2_session *session, int32_t stream_id, uint8_t *buffer, size_t size,
			   uint32_t *flags, nghttp2_data_source *source, void *user_data)
{
	struct vdi_h2_outbox *outbox = source->ptr;

	(void) session;
	(void) stream_id;
	(void) buffer;
	(void) user_data;
	if (outbox->size == 0 && !outbox->is_ending) {
		outbox->is_deferred = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	*flags |= NGHTTP2_DATA_FLAG_NO_COPY;
	if (outbox->size > size)
		return (ssize_t) size;
	if (outbox->is_ending) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		if (outbox->end) {
			int error = outbox->end(outbox);

			if (error)
				return error;
			*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		}
	}
	return (ssize_t) outbox->size;
}

nghttp2_data_provider vdi_h2_outbox_provider(struct vdi_h2_outbox *outbox)
{
	return (nghttp2_data_provider) { .source.ptr = outbox, .read_callback = read_outbox };
}

void vdi_h2_outbox_resume(struct vdi_h2_outbox *outbox, nghttp2_session *session, int32_t stream_id)
{
	if (!outbox->is_deferred)
		return;
	outbox->is_deferred = false;
	/* If it fails nothing is lost: the stream is closed, or nghttp2 is out of memory and the next call
	 * retries. */
	if (nghttp2_session_resume_data(session, stream_id) == NGHTTP2_ERR_NOMEM)
		outbox->is_deferred = true;
}

/* The next contiguous piece. */
static struct vd_bytes piece_of(const struct vdi_h2_outgoing *outgoing, size_t used)
{
	struct vd_bytes blob;

	if (used < outgoing->head_size)
		return (struct vd_bytes) { outgoing->head + used, outgoing->head_size - used };
	blob = vdi_rpc_blob_bytes(outgoing->blob);
	used -= outgoing->head_size;
	return (struct vd_bytes) { (const char *) blob.data + used, blob.size - used };
}

void vdi_h2_outbox_write(struct vdi_h2_outbox *outbox, char *room, size_t size)
{
	size_t written = size;

	VDI_CHECK(size <= outbox->size);
	outbox->size -= size;
	while (size) {
		struct vdi_h2_outgoing *outgoing = outbox->first;
		struct vd_bytes		piece = piece_of(outgoing, outbox->first_used);
		size_t			taken = VDI_MIN(piece.size, size);

		memcpy(room, piece.data, taken);
		room += taken;
		size -= taken;
		outbox->first_used += taken;
		if (outbox->first_used == outgoing->size) {
			outbox->first = outgoing->next;
			if (outbox->first == NULL)
				outbox->last = &outbox->first;
			outbox->first_used = 0;
			if (outbox->retains) {
				outgoing->next = outbox->written;
				outbox->written = outgoing;
			} else
				(void) vdi_h2_outgoing_free(outgoing);
		}
	}
	if (outbox->sent && written)
		outbox->sent(outbox, written);
}

void vdi_h2_outbox_forget(struct vdi_h2_outbox *outbox)
{
	outbox->retains = false;
	free_list(outbox->written);
	outbox->written = NULL;
}

void vdi_h2_outbox_rewind(struct vdi_h2_outbox *outbox)
{
	outbox->size += outbox->first_used;
	outbox->first_used = 0;
	outbox->is_deferred = false;
	while (outbox->written) {
		struct vdi_h2_outgoing *outgoing = outbox->written;

		outbox->written = outgoing->next;
		outgoing->next = outbox->first;
		if (outbox->first == NULL)
			outbox->last = &outgoing->next;
		outbox->first = outgoing;
		outbox->size += outgoing->size;
	}
}
