/* Encodes requests for etcd.
 *
 * A nested message is preceded by its length, so each writer runs twice: first without a destination, only
 * counting, then writing. A message inside n others is counted n times; nesting is limited, so this is
 * cheaper than collecting pieces. Zero values are omitted, as in proto3, except for members of a oneof, where
 * a zero value selects the member.
 */
#include "etcd_wire.h"
#include "varint.h"

struct writer {
	uint8_t *at; /* NULL: only count */
	size_t	 size;
};

static void put_varint(struct writer *writer, uint64_t value)
{
	if (writer->at)
		writer->at = vdi_varint_put(writer->at, value);
	writer->size += vdi_varint_size(value);
}

static void put_tag(struct writer *writer, unsigned number, unsigned type)
{
	put_varint(writer, number << 3 | type);
}

static void put_number_always(struct writer *writer, unsigned number, int64_t value)
{
	put_tag(writer, number, 0);
	put_varint(writer, (uint64_t) value);
}

static void put_number(struct writer *writer, unsigned number, int64_t value)
{
	if (value)
		put_number_always(writer, number, value);
}

static void put_bytes_always(struct writer *writer, unsigned number, struct vd_bytes bytes)
{
	put_tag(writer, number, 2);
	put_varint(writer, bytes.size);
	if (writer->at && bytes.size) {
		memcpy(writer->at, bytes.data, bytes.size);
		writer->at += bytes.size;
	}
	writer->size += bytes.size;
}

static void put_bytes(struct writer *writer, unsigned number, struct vd_bytes bytes)
{
	if (bytes.size)
		put_bytes_always(writer, number, bytes);
}

typedef void (*write_fn)(struct writer *writer, const void *message);

static void put_message(struct writer *writer, unsigned number, write_fn write, const void *message)
{
	struct writer counting = { NULL, 0 };

	write(&counting, message);
	put_tag(writer, number, 2);
	put_varint(writer, counting.size);
	if (writer->at)
		write(writer, message);
	else
		writer->size += counting.size;
}

static vd_status encode(write_fn write, const void *message, struct vdi_buffer *buffer)
{
	struct writer counting = { NULL, 0 };
	struct writer writing = { NULL, 0 };

	vdi_buffer_clear(buffer);
	write(&counting, message);
	writing.at = (uint8_t *) vdi_buffer_reserve(buffer, VDI_MAX(counting.size, 1));
	if (writing.at == NULL)
		return vdi_buffer_status(buffer);
	write(&writing, message);
	VDI_CHECK_SLOW(writing.size == counting.size);
	vdi_buffer_commit(buffer, writing.size);
	return VD_OK;
}

/* ---- KV ---- */

/* Writes the start of a range that begins with the first key: a zero byte, because servers reject the empty
 * key. */
static void put_first_key(struct writer *writer, unsigned number, struct vd_bytes key,
			  struct vd_bytes range_end)
{
	bool is_everything = key.size == 0 && range_end.size == 1 && *(const char *) range_end.data == '\0';

	put_bytes(writer, number, is_everything ? range_end : key);
}

static void write_range_fields(struct writer *writer, const struct vd_range_request *range,
			       enum vd_etcd_sort_order order, enum vd_etcd_sort_target target)
{
	put_first_key(writer, 1, range->key, range->range_end);
	put_bytes(writer, 2, range->range_end);
	put_number(writer, 3, range->limit);
	put_number(writer, 4, range->revision);
	put_number(writer, 5, order);
	put_number(writer, 6, target);
	put_number(writer, 7, range->serializable);
	put_number(writer, 8, range->keys_only);
	put_number(writer, 9, range->count_only);
}

static void write_range(struct writer *writer, const void *message)
{
	const struct vd_etcd_range_request *request = message;
	bool natural = request->sort_order == VD_ETCD_SORT_ASCEND && request->sort_target == VD_ETCD_SORT_KEY;

	write_range_fields(writer, &request->range, natural ? VD_ETCD_SORT_NONE : request->sort_order,
			   request->sort_target);
	put_number(writer, 10, request->min_mod_revision);
	put_number(writer, 11, request->max_mod_revision);
	put_number(writer, 12, request->min_create_revision);
	put_number(writer, 13, request->max_create_revision);
}

static void write_sub_range(struct writer *writer, const void *message)
{
	const struct vd_op *op = message;

	write_range_fields(writer, &op->range, VD_ETCD_SORT_NONE, VD_ETCD_SORT_KEY);
}

static void write_put(struct writer *writer, const void *message)
{
	const struct vd_op *op = message;

	put_bytes(writer, 1, op->key);
	put_bytes(writer, 2, op->value);
	put_number(writer, 3, op->lease);
	put_number(writer, 4, op->previous);
	put_number(writer, 5, op->ignore_value);
	put_number(writer, 6, op->ignore_lease);
}

static void write_delete(struct writer *writer, const void *message)
{
	const struct vd_op *op = message;

	put_first_key(writer, 1, op->key, op->range_end);
	put_bytes(writer, 2, op->range_end);
	put_number(writer, 3, op->previous);
}

static void write_compare(struct writer *writer, const void *message)
{
	const struct vd_compare *compare = message;

	put_number(writer, 1, compare->result);
	put_number(writer, 2, compare->target);
	put_first_key(writer, 3, compare->key, compare->range_end);
	switch (compare->target) {
	case VD_COMPARE_VERSION: put_number_always(writer, 4, compare->number); break;
	case VD_COMPARE_CREATE: put_number_always(writer, 5, compare->number); break;
	case VD_COMPARE_MOD: put_number_always(writer, 6, compare->number); break;
	case VD_COMPARE_VALUE: put_bytes_always(writer, 7, compare->value); break;
	case VD_COMPARE_LEASE: put_number_always(writer, 8, compare->number); break;
	}
	put_bytes(writer, 64, compare->range_end);
}

static void write_txn(struct writer *writer, const void *message);

static void write_op(struct writer *writer, const void *message)
{
	const struct vd_op *op = message;

	switch (op->kind) {
	case VD_OP_RANGE: put_message(writer, 1, write_sub_range, op); break;
	case VD_OP_PUT: put_message(writer, 2, write_put, op); break;
	case VD_OP_DELETE: put_message(writer, 3, write_delete, op); break;
	case VD_OP_TXN: put_message(writer, 4, write_txn, op->txn); break;
	}
}

static void write_txn(struct writer *writer, const void *message)
{
	const struct vd_txn_request *txn = message;

	for (size_t i = 0; i < txn->compare_count; i++)
		put_message(writer, 1, write_compare, &txn->compares[i]);
	for (size_t i = 0; i < txn->success_count; i++)
		put_message(writer, 2, write_op, &txn->success[i]);
	for (size_t i = 0; i < txn->failure_count; i++)
		put_message(writer, 3, write_op, &txn->failure[i]);
}

/* Checked before any recursion over txn. */
static bool is_too_deep(const struct vd_txn_request *txn, unsigned level)
{
	if (level > VDI_ETCD_WIRE_LEVELS_MAX)
		return true;
	for (size_t i = 0; i < txn->success_count; i++)
		if (txn->success[i].kind == VD_OP_TXN && is_too_deep(txn->success[i].txn, level + 1))
			return true;
	for (size_t i = 0; i < txn->failure_count; i++)
		if (txn->failure[i].kind == VD_OP_TXN && is_too_deep(txn->failure[i].txn, level + 1))
			return true;
	return false;
}

vd_status vdi_etcd_wire_range_request_encode(const struct vd_etcd_range_request *request,
					     struct vdi_buffer			*buffer)
{
	return encode(write_range, request, buffer);
}

vd_status vdi_etcd_wire_op_request_encode(const struct vd_op *op, struct vdi_buffer *buffer)
{
	VDI_CHECK(op->kind == VD_OP_PUT || op->kind == VD_OP_DELETE);
	return encode(op->kind == VD_OP_PUT ? write_put : write_delete, op, buffer);
}

vd_status vdi_etcd_wire_txn_request_encode(const struct vd_txn_request *request, struct vdi_buffer *buffer)
{
	if (is_too_deep(request, 1))
		return VD_TOO_BIG;
	return encode(write_txn, request, buffer);
}

/* ---- Watch ---- */

static void write_create(struct writer *writer, const void *message)
{
	const struct vdi_etcd_wire_watch_create *create = message;
	char					 filters[2];
	size_t					 filter_count = 0;

	put_bytes(writer, 1, create->key);
	put_bytes(writer, 2, create->range_end);
	put_number(writer, 3, create->start_revision);
	put_number(writer, 4, create->progress);
	if (create->no_put)
		filters[filter_count++] = 0;
	if (create->no_delete)
		filters[filter_count++] = 1;
	put_bytes(writer, 5, (struct vd_bytes) { filters, filter_count }); /* packed */
	put_number(writer, 6, create->previous);
	put_number(writer, 7, create->watch_id);
	put_number(writer, 8, create->fragment);
}

static void write_create_request(struct writer *writer, const void *message)
{
	put_message(writer, 1, write_create, message);
}

static void write_cancel(struct writer *writer, const void *message)
{
	put_number(writer, 1, *(const int64_t *) message);
}

static void write_cancel_request(struct writer *writer, const void *message)
{
	put_message(writer, 2, write_cancel, message);
}

static void write_progress_request(struct writer *writer, const void *message)
{
	put_bytes_always(writer, 3, VD_BYTES_NONE);
}

vd_status vdi_etcd_wire_watch_create_encode(const struct vdi_etcd_wire_watch_create *create,
					    struct vdi_buffer			    *buffer)
{
	return encode(write_create_request, create, buffer);
}

vd_status vdi_etcd_wire_watch_cancel_encode(int64_t watch_id, struct vdi_buffer *buffer)
{
	return encode(write_cancel_request, &watch_id, buffer);
}

vd_status vdi_etcd_wire_watch_progress_encode(struct vdi_buffer *buffer)
{
	return encode(write_progress_request, NULL, buffer);
}
