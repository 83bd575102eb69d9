/* Fields of etcd's messages are below 16, so tags have one byte, except for Compare.range_end (64); the
 * writer supports any number. */
#include "serve_wire.h"

#define WIRE_SIZE_MAX ((size_t) INT32_MAX)

/* ---- Reading ---- */

static bool read_varint(struct vdi_wire_reader *reader, uint64_t *ret_number)
{
	return vdi_varint_take(&reader->at, reader->end, ret_number);
}

static bool skip(struct vdi_wire_reader *reader, uint64_t size)
{
	if (size > (uint64_t) (reader->end - reader->at))
		return false;
	reader->at += size;
	return true;
}

static bool read_length(struct vdi_wire_reader *reader)
{
	uint64_t size;

	if (!read_varint(reader, &size))
		return false;
	reader->bytes = (struct vd_bytes) { reader->at, (size_t) size };
	return skip(reader, size);
}

/* Skips an unknown group to its end, including nested groups. */
static bool skip_group(struct vdi_wire_reader *reader)
{
	unsigned depth = 1;
	uint64_t tag;
	uint64_t number;

	while (depth) {
		if (!read_varint(reader, &tag) || tag >> 3 == 0 || tag > UINT32_MAX)
			return false;
		switch (tag & 7) {
		case 0:
			if (!read_varint(reader, &number))
				return false;
			break;
		case 1:
			if (!skip(reader, 8))
				return false;
			break;
		case 2:
			if (!read_length(reader))
				return false;
			break;
		case 3: depth++; break;
		case 4: depth--; break;
		case 5:
			if (!skip(reader, 4))
				return false;
			break;
		default: return false;
		}
	}
	return true;
}

static bool read_value(struct vdi_wire_reader *reader)
{
	switch (reader->tag & 7) {
	case 0: return read_varint(reader, &reader->number);
	case 1: return skip(reader, 8);
	case 2: return read_length(reader);
	case 3: return skip_group(reader);
	case 5: return skip(reader, 4);
	default: return false;
	}
}

bool vdi_wire_next(struct vdi_wire_reader *reader)
{
	uint64_t tag;

	if (reader->is_bad || reader->at == reader->end)
		return false;
	if (!read_varint(reader, &tag) || tag >> 3 == 0 || tag > UINT32_MAX) {
		reader->is_bad = true;
		return false;
	}
	reader->tag = (uint32_t) tag;
	reader->is_bad = !read_value(reader);
	return !reader->is_bad;
}

bool vdi_wire_next_packed(struct vdi_wire_reader *reader, uint64_t *ret_number)
{
	if (reader->is_bad || reader->at == reader->end)
		return false;
	reader->is_bad = !read_varint(reader, ret_number);
	return !reader->is_bad;
}

bool vdi_wire_read_number(struct vd_bytes message, int64_t *ret_number, bool *ret_flag)
{
	struct vdi_wire_reader reader;
	int64_t		       number = 0;
	bool		       flag = false;

	vdi_wire_reader_init(&reader, message);
	while (vdi_wire_next(&reader)) {
		if (reader.tag == VDI_WIRE_VARINT(1))
			number = (int64_t) reader.number;
		else if (reader.tag == VDI_WIRE_VARINT(2))
			flag = reader.number != 0;
	}
	*ret_number = number;
	if (ret_flag)
		*ret_flag = flag;
	return !reader.is_bad;
}

/* ---- Writing ---- */

void vdi_wire_varint(struct vdi_wire_out *out, uint64_t number)
{
	if (out->at)
		(void) vdi_varint_put(out->at + out->size, number);
	out->size += vdi_varint_size(number);
}

void vdi_wire_number_always(struct vdi_wire_out *out, unsigned field, uint64_t number)
{
	vdi_wire_varint(out, VDI_WIRE_VARINT(field));
	vdi_wire_varint(out, number);
}

void vdi_wire_number(struct vdi_wire_out *out, unsigned field, uint64_t number)
{
	if (number)
		vdi_wire_number_always(out, field, number);
}

void vdi_wire_bytes_always(struct vdi_wire_out *out, unsigned field, struct vd_bytes bytes)
{
	vdi_wire_varint(out, VDI_WIRE_BYTES(field));
	vdi_wire_varint(out, bytes.size);
	if (out->at && bytes.size)
		memcpy(out->at + out->size, bytes.data, bytes.size);
	out->size += bytes.size;
}

void vdi_wire_bytes(struct vdi_wire_out *out, unsigned field, struct vd_bytes bytes)
{
	if (bytes.size)
		vdi_wire_bytes_always(out, field, bytes);
}

void vdi_wire_message(struct vdi_wire_out *out, unsigned field, vdi_wire_write_fn write, const void *arg)
{
	struct vdi_wire_out inner = { 0 };

	write(&inner, arg);
	vdi_wire_varint(out, VDI_WIRE_BYTES(field));
	vdi_wire_varint(out, inner.size);
	if (out->at)
		write(out, arg);
	else
		out->size += inner.size;
}

size_t vdi_wire_kv_size(const struct vd_kv *kv, bool keys_only, bool with_lease)
{
	struct vdi_wire_out out = { 0 };

	vdi_wire_kv_body(&out, kv, keys_only, with_lease);
	return out.size;
}

void vdi_wire_kv_body(struct vdi_wire_out *out, const struct vd_kv *kv, bool keys_only, bool with_lease)
{
	vdi_wire_bytes(out, 1, vd_kv_key(kv));
	vdi_wire_number(out, 2, (uint64_t) kv->create_rev);
	vdi_wire_number(out, 3, (uint64_t) kv->mod_rev);
	vdi_wire_number(out, 4, (uint64_t) kv->version);
	if (!keys_only)
		vdi_wire_bytes(out, 5, vd_kv_value(kv));
	if (!keys_only || with_lease)
		vdi_wire_number(out, 6, (uint64_t) kv->lease);
}

void vdi_wire_kv(struct vdi_wire_out *out, unsigned field, const struct vd_kv *kv, bool keys_only,
		 bool with_lease)
{
	size_t size = vdi_wire_kv_size(kv, keys_only, with_lease);

	vdi_wire_varint(out, VDI_WIRE_BYTES(field));
	vdi_wire_varint(out, size);
	if (out->at)
		vdi_wire_kv_body(out, kv, keys_only, with_lease);
	else
		out->size += size;
}

vd_status vdi_wire_encode(vdi_wire_write_fn write, const void *arg, struct vdi_rpc_blob **ret_blob)
{
	struct vdi_wire_out  out = { 0 };
	struct vdi_rpc_blob *blob;
	char		    *bytes;
	size_t		     size;

	write(&out, arg);
	size = out.size;
	if (size > WIRE_SIZE_MAX)
		return VD_TOO_BIG;
	VDI_TRY(vdi_rpc_blob_new(size, &blob, &bytes));
	out = (struct vdi_wire_out) { (uint8_t *) bytes, 0 };
	if (size)
		write(&out, arg);
	VDI_CHECK(out.size == size);
	*ret_blob = blob;
	return VD_OK;
}
