/* Records are in revision order; those of one revision are gathered and imported as one transaction, with
 * their positions and leases. */
#include "snapshot_restore.h"

#include "auth_data.h"
#include "buffer.h"
#include "serve_wire.h"
#include "snapshot_read.h"

#define AUTH_SIZE_MAX ((size_t) 64 << 20)

struct restore {
	struct vdi_snapshot	   snapshot;
	struct vdi_mvcc_import	  *import;
	struct vd_error		  *reterr;
	struct vdi_snapshot_report report;
	struct vdi_buffer	   auth;
	vd_rev			   last; /* of the records of keys */

	/* Revision being gathered. */
	struct vdi_import_change *changes;
	size_t			  count;
	size_t			  capacity;
};

/* ---- Leases ---- */

static vd_status read_lease(void *arg, struct vd_bytes key, struct vd_bytes value)
{
	struct restore	      *restore = arg;
	struct vdi_wire_reader reader;
	int64_t		       id = 0;
	int64_t		       ttl_s = 0;

	(void) key;
	vdi_wire_reader_init(&reader, value);
	while (vdi_wire_next(&reader)) {
		if (reader.tag == VDI_WIRE_VARINT(1))
			id = (int64_t) reader.number;
		else if (reader.tag == VDI_WIRE_VARINT(2))
			ttl_s = (int64_t) reader.number;
	}
	if (reader.is_bad)
		return vd_error_set(restore->reterr, VD_CORRUPT, "a lease in the snapshot cannot be read");
	restore->report.leases++;
	return vdi_mvcc_import_lease(restore->import, id, ttl_s, restore->reterr);
}

/* ---- Keys ---- */

static void drop_changes(struct restore *restore)
{
	for (size_t i = 0; i < restore->count; i++)
		vd_kv_unref(restore->changes[i].kv);
	restore->count = 0;
}

static vd_status import_gathered(struct restore *restore)
{
	vd_status status =
		vdi_mvcc_import_commit(restore->import, restore->changes, restore->count, restore->reterr);

	drop_changes(restore);
	return status;
}

static vd_status gather(void *arg, bool is_delete, struct vd_kv *kv)
{
	struct restore *restore = arg;

	if (restore->count && restore->changes[0].kv->mod_rev != kv->mod_rev)
		VDI_TRY(import_gathered(restore));
	if (!vdi_grow((void **) &restore->changes, &restore->capacity, restore->count + 1,
		      sizeof restore->changes[0]))
		return vd_error_set(restore->reterr, VD_NOMEM, "out of memory");
	restore->changes[restore->count++] = (struct vdi_import_change) { is_delete, vd_kv_ref(kv) };
	restore->report.records++;
	restore->last = kv->mod_rev;
	return VD_OK;
}

/* ---- Users and roles ---- */

static vd_status read_auth(void *arg, struct vd_bytes key, struct vd_bytes value)
{
	struct restore	   *restore = arg;
	uint8_t		    field[24];
	struct vdi_wire_out out = { field, 0 };

	if (vd_bytes_equal(key, vd_bytes_of("authEnabled")) && value.size == 1)
		vdi_wire_number(&out, 1, *(const unsigned char *) value.data);
	else if (vd_bytes_equal(key, vd_bytes_of("authRevision")) && value.size == 8)
		vdi_wire_number(&out, 2, vdi_big_endian(value.data));
	vdi_buffer_append(&restore->auth, (struct vd_bytes) { field, out.size });
	return VD_OK;
}

static vd_status append_entry(struct restore *restore, unsigned field, struct vd_bytes value)
{
	uint8_t		    head[24];
	struct vdi_wire_out out = { head, 0 };

	vdi_wire_varint(&out, VDI_WIRE_BYTES(field));
	vdi_wire_varint(&out, value.size);
	vdi_buffer_append(&restore->auth, (struct vd_bytes) { head, out.size });
	vdi_buffer_append(&restore->auth, value);
	return VD_OK;
}

static vd_status read_user(void *arg, struct vd_bytes key, struct vd_bytes value)
{
	(void) key;
	return append_entry(arg, 3, value);
}

static vd_status read_role(void *arg, struct vd_bytes key, struct vd_bytes value)
{
	(void) key;
	return append_entry(arg, 4, value);
}

/* ---- All of it ---- */

/* Compacts as an etcd that starts with this file: its revision is the newest record or the compaction,
 * whichever is newer. There may be no record of a key at that revision. */
static vd_status compact(struct restore *restore)
{
	vd_rev compacted = restore->report.revision > restore->last ? restore->report.revision :
								      restore->report.compacted;

	return compacted > 0 ? vdi_mvcc_import_compact(restore->import, compacted, restore->reterr) : VD_OK;
}

static vd_status run(void *arg, struct vdi_mvcc_import *import, struct vd_error *reterr)
{
	struct restore *restore = arg;

	restore->import = import;
	restore->reterr = reterr;
	VDI_TRY(vdi_bolt_each(&restore->snapshot.file, "lease", read_lease, restore, reterr));
	VDI_TRY(vdi_snapshot_each(&restore->snapshot, gather, restore, reterr));
	if (restore->count)
		VDI_TRY(import_gathered(restore));
	restore->report.revision = VDI_MAX(restore->snapshot.revision, restore->report.compacted);
	VDI_TRY(compact(restore));
	VDI_TRY(vdi_bolt_each(&restore->snapshot.file, "auth", read_auth, restore, reterr));
	VDI_TRY(vdi_bolt_each(&restore->snapshot.file, "authUsers", read_user, restore, reterr));
	VDI_TRY(vdi_bolt_each(&restore->snapshot.file, "authRoles", read_role, restore, reterr));
	return vdi_buffer_status(&restore->auth);
}

vd_status vdi_snapshot_restore(const struct vd_env *env, const struct vd_mvcc_options *options,
			       struct vd_bytes bytes, struct vd_store **ret_store, void **ret_auth,
			       size_t *ret_auth_size, struct vdi_snapshot_report *ret_report,
			       struct vd_error *reterr)
{
	struct restore		 restore = { .report = { .compacted = -1 } };
	struct vdi_mvcc_importer importer = { .is_exact = true, .run = run, .arg = &restore };
	struct vd_bytes		 auth;
	vd_status		 status;

	VDI_TRY(vdi_snapshot_init(&restore.snapshot, bytes, reterr));
	restore.report.compacted = importer.compacted = restore.snapshot.compacted;
	vdi_buffer_init(&restore.auth, AUTH_SIZE_MAX);
	status = vdi_mvcc_open_importing(env, options, NULL, &importer, ret_store, reterr);
	if (status == VD_OK) {
		auth = vdi_buffer_bytes(&restore.auth);
		*ret_auth = vdi_alloc(auth.size + 1);
		if (*ret_auth == NULL) {
			*ret_store = vd_store_close_wait(*ret_store);
			status = vd_error_set(reterr, VD_NOMEM, "out of memory");
		} else {
			if (auth.size)
				memcpy(*ret_auth, auth.data, auth.size);
			*ret_auth_size = auth.size;
			*ret_report = restore.report;
		}
	}
	drop_changes(&restore);
	vdi_free(restore.changes);
	vdi_buffer_fini(&restore.auth);
	return status;
}
