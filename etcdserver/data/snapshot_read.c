/* The buckets of the file are walked with bolt_read.h, and each value is decoded as etcd's message. */
#include "snapshot_read.h"

#include <openssl/evp.h>

#include "serve_wire.h"

#define DIGEST_SIZE 32

/* Checks the digest that etcdctl appends to the file. */
static vd_status check_digest(struct vd_bytes *bytes, struct vd_error *reterr)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned int  size = 0;

	if (bytes->size % 512 != DIGEST_SIZE)
		return VD_OK;
	bytes->size -= DIGEST_SIZE;
	if (EVP_Digest(bytes->data, bytes->size, digest, &size, EVP_sha256(), NULL) != 1 ||
	    size != DIGEST_SIZE)
		return vd_error_set(reterr, VD_NOMEM, "out of memory for a digest");
	if (memcmp(digest, (const char *) bytes->data + bytes->size, DIGEST_SIZE) != 0)
		return vd_error_set(reterr, VD_CORRUPT, "the snapshot is damaged: its digest does not match");
	return VD_OK;
}

static vd_status read_meta(void *arg, struct vd_bytes key, struct vd_bytes value)
{
	struct vdi_snapshot *snapshot = arg;

	if ((vd_bytes_equal(key, vd_bytes_of("scheduledCompactRev")) ||
	     vd_bytes_equal(key, vd_bytes_of("finishedCompactRev"))) &&
	    value.size >= 8)
		snapshot->compacted = VDI_MAX(snapshot->compacted, (vd_rev) vdi_big_endian(value.data));
	return VD_OK;
}

vd_status vdi_snapshot_init(struct vdi_snapshot *snapshot, struct vd_bytes bytes, struct vd_error *reterr)
{
	snapshot->compacted = -1;
	snapshot->revision = 0;
	VDI_TRY(check_digest(&bytes, reterr));
	VDI_TRY(vdi_bolt_file_init(bytes, &snapshot->file, reterr));
	return vdi_bolt_each(&snapshot->file, "meta", read_meta, snapshot, reterr);
}

/* ---- Records ---- */

struct record {
	struct vd_bytes key;
	struct vd_bytes value;
	vd_rev		create_rev;
	int64_t		version;
	int64_t		lease;
};

static bool decode_record(struct vd_bytes bytes, struct record *record)
{
	struct vdi_wire_reader reader;

	memset(record, 0, sizeof *record);
	record->key.data = record->value.data = "";
	vdi_wire_reader_init(&reader, bytes);
	while (vdi_wire_next(&reader)) {
		switch (reader.tag) {
		case VDI_WIRE_BYTES(1): record->key = reader.bytes; break;
		case VDI_WIRE_VARINT(2): record->create_rev = (int64_t) reader.number; break;
		case VDI_WIRE_VARINT(4): record->version = (int64_t) reader.number; break;
		case VDI_WIRE_BYTES(5): record->value = reader.bytes; break;
		case VDI_WIRE_VARINT(6): record->lease = (int64_t) reader.number; break;
		default: break;
		}
	}
	return !reader.is_bad && record->key.size > 0;
}

struct reading {
	struct vdi_snapshot *snapshot;
	vdi_snapshot_each_fn each;
	void		    *arg;
	struct vd_error	    *reterr;
};

static vd_status give(struct reading *reading, const struct record *record, vd_rev revision, uint64_t sub,
		      bool is_delete)
{
	struct vd_kv *kv;
	vd_status     status;

	if (record->key.size > VD_KEY_SIZE_MAX)
		return vd_error_set(reading->reterr, VD_INVALID,
				    "a key of %zu bytes at revision %lld: at most %d are supported",
				    record->key.size, (long long) revision, VD_KEY_SIZE_MAX);
	status = vd_kv_new(record->key, is_delete ? VD_BYTES_NONE : record->value, &kv);
	if (status != VD_OK)
		return vd_error_set(reading->reterr, status, "a record at revision %lld cannot be kept",
				    (long long) revision);
	kv->mod_rev = revision;
	kv->sub = (uint32_t) sub;
	if (!is_delete) {
		kv->create_rev = record->create_rev;
		kv->version = record->version;
		kv->lease = record->lease;
	}
	status = reading->each(reading->arg, is_delete, kv);
	vd_kv_unref(kv);
	return status;
}

static vd_status read_record(void *arg, struct vd_bytes key, struct vd_bytes value)
{
	struct reading	    *reading = arg;
	const unsigned char *bytes = key.data;
	bool		     is_delete = key.size == 18 && bytes[17] == 't';
	struct record	     record;
	vd_rev		     revision;
	uint64_t	     sub;

	if ((key.size != 17 && !is_delete) || bytes[8] != '_' ||
	    (value.size && !decode_record(value, &record)))
		return vd_error_set(reading->reterr, VD_CORRUPT, "a record in the snapshot cannot be read");
	revision = (vd_rev) vdi_big_endian(bytes);
	sub = vdi_big_endian(bytes + 9);
	if (value.size == 0 && !is_delete && revision >= 1) {
		reading->snapshot->revision = VDI_MAX(reading->snapshot->revision, revision);
		return VD_OK;
	}
	if (value.size == 0 || revision < 1 || sub > UINT32_MAX ||
	    (!is_delete && (record.create_rev < 1 || record.create_rev > revision || record.version < 1)))
		return vd_error_set(reading->reterr, VD_CORRUPT,
				    "a record at revision %lld has inconsistent revisions",
				    (long long) revision);
	reading->snapshot->revision = VDI_MAX(reading->snapshot->revision, revision);
	return give(reading, &record, revision, sub, is_delete);
}

vd_status vdi_snapshot_each(struct vdi_snapshot *snapshot, vdi_snapshot_each_fn each, void *arg,
			    struct vd_error *reterr)
{
	struct reading reading = { snapshot, each, arg, reterr };

	return vdi_bolt_each(&snapshot->file, "key", read_record, &reading, reterr);
}
