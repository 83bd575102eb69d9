/* Protobuf on the wire, as the etcd server reads and writes it: by hand, because requests nest without bound
 * (protobuf-c recurses), and because records go from the store to the socket with one copy.
 *
 * Reading walks the fields of one message and points into its bytes; nothing is allocated, nothing recurses.
 * A field of a wire type that is not the expected one is an unknown field and skipped, as Go does (E-104).
 *
 * Writing runs the same function twice: once to count, once into a blob of exactly that size. No function
 * here blocks; any thread.
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
	bool		is_bad; /* the bytes are no message */
	uint32_t	tag; /* VDI_WIRE_VARINT(n), VDI_WIRE_BYTES(n), or another type of an unknown field */
	uint64_t	number; /* of a varint */
	struct vd_bytes bytes;
};

static inline void vdi_wire_reader_init(struct vdi_wire_reader *reader, struct vd_bytes message)
{
	memset(reader, 0, sizeof *reader);
	reader->at = message.data;
	reader->end = reader->at + message.size;
}
/* The next field; false at the end, or with is_bad set. */
bool vdi_wire_next(struct vdi_wire_reader *reader);
/* Reads the varints of a packed field (reader over its bytes); false at the end. */
bool vdi_wire_next_packed(struct vdi_wire_reader *reader, uint64_t *ret_number);
/* A message whose field 1 is a number and whose field 2 a flag, as most requests are; what is absent is 0.
 * ret_flag may be NULL. False: the bytes are no message. */
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

/* at NULL: counts. */
struct vdi_wire_out {
	uint8_t *at;
	size_t	 size;
};

typedef void (*vdi_wire_write_fn)(struct vdi_wire_out *out, const void *arg);

void vdi_wire_varint(struct vdi_wire_out *out, uint64_t number);
/* Fields of value 0 are left out, as proto3 has it; the _always forms write them. */
void vdi_wire_number(struct vdi_wire_out *out, unsigned field, uint64_t number);
void vdi_wire_number_always(struct vdi_wire_out *out, unsigned field, uint64_t number);
void vdi_wire_bytes(struct vdi_wire_out *out, unsigned field, struct vd_bytes bytes);
void vdi_wire_bytes_always(struct vdi_wire_out *out, unsigned field, struct vd_bytes bytes);
/* A message inside; written even when empty. */
void vdi_wire_message(struct vdi_wire_out *out, unsigned field, vdi_wire_write_fn write, const void *arg);

/* mvccpb.KeyValue (E-106) as a field. keys_only leaves value and lease out (E-429); with_lease brings the
 * lease back. */
void   vdi_wire_kv(struct vdi_wire_out *out, unsigned field, const struct vd_kv *kv, bool keys_only,
		   bool with_lease);
size_t vdi_wire_kv_size(const struct vd_kv *kv, bool keys_only, bool with_lease);
/* Only the KeyValue itself, without tag and length: what the hash is made of (E-402). A tombstone has its key
 * alone. */
void vdi_wire_kv_body(struct vdi_wire_out *out, const struct vd_kv *kv, bool keys_only, bool with_lease);

/* Runs write twice. VD_NOMEM, VD_TOO_BIG (2 GiB and more). */
VDI_MUST_USE vd_status vdi_wire_encode(vdi_wire_write_fn write, const void *arg,
				       struct vdi_rpc_blob **ret_blob);

#endif
