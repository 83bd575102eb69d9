/* Protobuf wire format of the etcd server. By hand, because requests nest without limit (protobuf-c
 * recurses), and because records are copied once from the store to the socket.
 *
 * Reading walks over the fields of a message and points into its bytes, without allocation or recursion. A
 * field with an unexpected wire type is skipped like an unknown field, as in Go.
 *
 * Writing runs the same function twice: first to count, then into a blob of exactly that size. Nothing
 * blocks; any thread.
 */
#ifndef VDI_SERVE_WIRE_H
#define VDI_SERVE_WIRE_H

#include <vedette/store.h>

#include "base.h"
#include "rpc_server.h"
#include "varint.h"

/* ---- Reading ---- */

#define VDI_WIRE_VARINT(field) ((field) << 3)
#define VDI_WIRE_BYTES(field) ((field) << 3 | 2)

struct vdi_wire_reader {
	const uint8_t  *at;
	const uint8_t  *end;
	bool		is_bad; /* not a valid message */
	uint32_t	tag; /* VDI_WIRE_VARINT(n), VDI_WIRE_BYTES(n), or another type of an unknown field */
	uint64_t	number; /* value of a varint */
	struct vd_bytes bytes;
};

static inline void vdi_wire_reader_init(struct vdi_wire_reader *reader, struct vd_bytes message)
{
	memset(reader, 0, sizeof *reader);
	reader->at = message.data;
	reader->end = reader->at + message.size;
}
/* Reads the next field; false at the end, or with is_bad set. */
bool vdi_wire_next(struct vdi_wire_reader *reader);
/* Reads the varints of a packed field (reader over its bytes); false at the end. */
bool vdi_wire_next_packed(struct vdi_wire_reader *reader, uint64_t *ret_number);
/* Reads a message whose field 1 is a number and field 2 a flag, like most requests; absent fields are 0.
 * ret_flag may be NULL. False: not a valid message. */
bool vdi_wire_read_number(struct vd_bytes message, int64_t *ret_number, bool *ret_flag);

/* ---- Numbers of eight bytes, as etcd's own records have them ---- */

static inline void vdi_put_big_endian(unsigned char *at, uint64_t number)
{
	for (int i = 0; i < 8; i++)
		at[i] = (unsigned char) (number >> (56 - 8 * i));
}

static inline uint64_t vdi_big_endian(const unsigned char *at)
{
	uint64_t number = 0;

	for (int i = 0; i < 8; i++)
		number = number << 8 | at[i];
	return number;
}

/* ---- Writing ---- */

/* at NULL: only count. */
struct vdi_wire_out {
	uint8_t *at;
	size_t	 size;
};

typedef void (*vdi_wire_write_fn)(struct vdi_wire_out *out, const void *arg);

void vdi_wire_varint(struct vdi_wire_out *out, uint64_t number);
/* Fields with value 0 are omitted, as in proto3; the _always functions write them. */
void vdi_wire_number(struct vdi_wire_out *out, unsigned field, uint64_t number);
void vdi_wire_number_always(struct vdi_wire_out *out, unsigned field, uint64_t number);
void vdi_wire_bytes(struct vdi_wire_out *out, unsigned field, struct vd_bytes bytes);
void vdi_wire_bytes_always(struct vdi_wire_out *out, unsigned field, struct vd_bytes bytes);
/* Writes a nested message, even if it is empty. */
void vdi_wire_message(struct vdi_wire_out *out, unsigned field, vdi_wire_write_fn write, const void *arg);

/* Writes an mvccpb.KeyValue as a field. keys_only omits value and lease, as etcd 3.7; with_lease includes the
 * lease. */
void   vdi_wire_kv(struct vdi_wire_out *out, unsigned field, const struct vd_kv *kv, bool keys_only,
		   bool with_lease);
size_t vdi_wire_kv_size(const struct vd_kv *kv, bool keys_only, bool with_lease);
/* Writes the KeyValue without tag and length, as etcd's hash and backend need it. A tombstone has only its
 * key. */
void vdi_wire_kv_body(struct vdi_wire_out *out, const struct vd_kv *kv, bool keys_only, bool with_lease);

/* Runs write twice. VD_NOMEM, VD_TOO_BIG (2 GiB or more). */
VDI_MUST_USE vd_status vdi_wire_encode(vdi_wire_write_fn write, const void *arg,
				       struct vdi_rpc_blob **ret_blob);

#endif
