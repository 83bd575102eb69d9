/* The bytes of commits and records on disk: the payload of a journal record is a commit, the value of a
 * checkpoint entry is one record of it.
 *
 *   commit   varint changes, varint leases, varint compact, then the records in sub order, then the lease
 *            changes
 *   record   u8 flags, varint sub, varint key size, [varint value size], [varint mod - previous, varint
 *            previous sub], [varint mod - create, varint version], [zigzag lease], key, value
 *   lease    u8 kind, zigzag id, [zigzag ttl, GRANTED], [i64 deadline, GRANTED and RENEWED]
 *
 * Varints are LEB128, numbers little-endian. The mod revision is not in the record: the journal record or the
 * checkpoint key has it. Flags: 1 tombstone, 2 has a lease, 4 created by this record (create = mod, version
 * 1), 8 supersedes a record that was alive.
 *
 * Callers of the readers have verified a checksum; nevertheless the readers check all lengths and never read
 * beyond the given bytes. Pure functions: any thread.
 */
#ifndef VDI_RECORD_H
#define VDI_RECORD_H

#include "commit.h"

/* A decoded record; key and value point into its bytes. */
struct vdi_record {
	bool		is_delete;
	uint32_t	sub;
	vd_rev		mod_rev;
	vd_rev		create_rev;
	int64_t		version;
	int64_t		lease;
	vd_rev		previous_rev; /* revision of the superseded record; 0: none */
	uint32_t	previous_sub;
	struct vd_bytes key;
	struct vd_bytes value;
};

struct vdi_commit_reader {
	const uint8_t *at;
	const uint8_t *end;
	vd_rev	       revision;
	size_t	       change_count; /* numbers of changes and leases that were not read yet */
	size_t	       lease_count;
	vd_rev	       compact;
};

/* Returns the size of the encoded commit, in bytes. Checks that the changes keep the contract of struct
 * vdi_change. */
size_t vdi_commit_size(const struct vdi_commit *commit);
/* Encodes the commit into vdi_commit_size() bytes. */
void vdi_commit_encode(const struct vdi_commit *commit, void *ret_bytes);

/* Read a commit: exactly change_count records, then exactly lease_count leases, then end, which checks that
 * no bytes are left. VD_CORRUPT: the bytes are invalid. */
VDI_MUST_USE vd_status vdi_commit_reader_init(struct vdi_commit_reader *reader, vd_rev revision,
					      struct vd_bytes bytes);
/* *ret_bytes (may be NULL): the bytes of the record, to be stored unchanged. */
VDI_MUST_USE vd_status vdi_commit_reader_record(struct vdi_commit_reader *reader,
						struct vdi_record *ret_record, struct vd_bytes *ret_bytes);
VDI_MUST_USE vd_status vdi_commit_reader_lease(struct vdi_commit_reader *reader,
					       struct vdi_lease_change	*ret_lease);
VDI_MUST_USE vd_status vdi_commit_reader_end(const struct vdi_commit_reader *reader);

/* Decodes one record, which must take all of the bytes. */
VDI_MUST_USE vd_status vdi_record_decode(struct vd_bytes bytes, vd_rev mod_rev,
					 struct vdi_record *ret_record);
/* Creates a kv of the record. The caller owns the reference. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_record_kv(const struct vdi_record *record, struct vd_kv **ret_kv);

#endif
