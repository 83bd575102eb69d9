/* Room for the file, and groups of journal records. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "checkpoint_state.h"
#include "free_pages.h"

#define MAP_STEP ((int64_t) 64 << 10)
#define MAP_GROWTH_MAX ((int64_t) 64 << 20)

/* ---- Room ---- */

vd_status vdi_checkpoint_allocate(struct vdi_dir *dir, const char *name, int64_t size,
				  struct vd_error *reterr)
{
	struct vdi_file *file;
	vd_status	 status;

	VDI_TRY(vdi_file_open(dir, name, VDI_FILE_WRITE, &file, reterr));
	status = vdi_file_allocate(file, size, reterr);
	if (status == VD_OK)
		status = vdi_file_sync(file, reterr);
	vdi_file_close(file);
	return status;
}

static int64_t end_of_pages(const struct vdi_checkpoint *checkpoint)
{
	MDB_envinfo info;
	MDB_stat    stat;

	mdb_env_info(checkpoint->env, &info);
	mdb_env_stat(checkpoint->env, &stat);
	return ((int64_t) info.me_last_pgno + 1) * stat.ms_psize;
}

vd_status vdi_checkpoint_reserve(struct vdi_dir *dir, int64_t size, struct vd_error *reterr)
{
	return vdi_checkpoint_allocate(dir, VDI_CHECKPOINT_NAME, size, reterr);
}

static vd_status size_of(struct vdi_dir *dir, const char *name, int64_t *ret_size, struct vd_error *reterr)
{
	struct vdi_file *file;
	vd_status	 status;

	VDI_TRY(vdi_file_open(dir, name, VDI_FILE_READ, &file, reterr));
	status = vdi_file_size(file, ret_size, reterr);
	vdi_file_close(file);
	return status;
}

vd_status vdi_checkpoint_file_size(struct vdi_dir *dir, int64_t *ret_size, struct vd_error *reterr)
{
	return size_of(dir, VDI_CHECKPOINT_NAME, ret_size, reterr);
}

vd_status vdi_checkpoint_measure_room(struct vdi_checkpoint *checkpoint, bool is_exact,
				      struct vdi_checkpoint_room *ret_room, struct vd_error *reterr)
{
	int error;

	*ret_room = (struct vdi_checkpoint_room) { .end_bytes = end_of_pages(checkpoint) };
	error = is_exact ? vdi_free_pages_measure(checkpoint->env, ret_room) : 0;
	return error ? vdi_checkpoint_lmdb_fail(checkpoint, error, "read", reterr) : VD_OK;
}

/* ---- Writing ---- */

static vd_status set_map(struct vdi_checkpoint *checkpoint, int64_t size, struct vd_error *reterr)
{
	int error = mdb_env_set_mapsize(checkpoint->env, (size_t) size);

	if (error)
		return vdi_checkpoint_lmdb_fail(checkpoint, error, "map", reterr);
	checkpoint->map_size = size;
	return VD_OK;
}

/* Enlarges file and map: by a quarter if the disk has enough room, and at least to size. */
static vd_status grow_map(struct vdi_checkpoint *checkpoint, int64_t size, struct vd_error *reterr)
{
	int64_t step = VDI_MAX(MAP_STEP, VDI_MIN(checkpoint->map_size / 4, MAP_GROWTH_MAX));
	int64_t least = (VDI_MAX(size, checkpoint->map_size + MAP_STEP) + MAP_STEP - 1) / MAP_STEP * MAP_STEP;
	int64_t wanted = VDI_MAX(least, (checkpoint->map_size + step + MAP_STEP - 1) / MAP_STEP * MAP_STEP);
	vd_status status = vdi_checkpoint_allocate(checkpoint->dir, checkpoint->name, wanted, reterr);

	if (status == VD_NO_SPACE && least < wanted)
		status = vdi_checkpoint_allocate(checkpoint->dir, checkpoint->name, wanted = least, reterr);
	VDI_TRY(status);
	return set_map(checkpoint, wanted, reterr);
}

/* The file may have been made longer by another thread. */
static vd_status follow_file(struct vdi_checkpoint *checkpoint, struct vd_error *reterr)
{
	int64_t size;

	VDI_TRY(size_of(checkpoint->dir, checkpoint->name, &size, reterr));
	size -= size % MAP_STEP;
	return size > checkpoint->map_size ? set_map(checkpoint, size, reterr) : VD_OK;
}

vd_status vdi_checkpoint_begin(struct vdi_checkpoint *checkpoint, int64_t bytes_expected,
			       struct vd_error *reterr)
{
	int64_t	  wanted = end_of_pages(checkpoint) + bytes_expected * 2 + VDI_CHECKPOINT_MAP_MIN / 4;
	vd_status status;
	int	  error;

	VDI_CHECK(checkpoint->txn == NULL);
	VDI_TRY(follow_file(checkpoint, reterr));
	if (bytes_expected && wanted > checkpoint->map_size) {
		status = grow_map(checkpoint, wanted, reterr);
		/* Free pages may be enough. */
		if (status != VD_NO_SPACE)
			VDI_TRY(status);
	}
	error = mdb_txn_begin(checkpoint->env, NULL, 0, &checkpoint->txn);
	if (error) {
		checkpoint->txn = NULL;
		return vdi_checkpoint_lmdb_fail(checkpoint, error, "write", reterr);
	}
	checkpoint->next = checkpoint->meta;
	return VD_OK;
}

void vdi_checkpoint_abort(struct vdi_checkpoint *checkpoint)
{
	if (checkpoint->txn)
		mdb_txn_abort(checkpoint->txn);
	checkpoint->txn = NULL;
}

/* Ends the group with an LMDB error; enlarges a full map before. */
static vd_status give_up(struct vdi_checkpoint *checkpoint, int error, struct vd_error *reterr)
{
	vd_status status = vdi_checkpoint_lmdb_fail(checkpoint, error, "write", reterr);

	vdi_checkpoint_abort(checkpoint);
	if (error == MDB_MAP_FULL)
		VDI_TRY(grow_map(checkpoint, 0, reterr));
	return status;
}

static vd_status put_record(struct vdi_checkpoint *checkpoint, const struct vdi_record *record,
			    struct vd_bytes body, struct vd_error *reterr)
{
	uint8_t	 place[VDI_CHECKPOINT_KEY_SIZE];
	MDB_val	 key = { VDI_CHECKPOINT_KEY_SIZE, place };
	MDB_val	 value = { 8 + body.size, NULL };
	uint64_t checksum = vdi_checkpoint_checksum(body.data, body.size, record->mod_rev, record->sub);
	int	 error;

	vdi_checkpoint_encode_key(record->mod_rev, record->sub, place);
	error = mdb_put(checkpoint->txn, checkpoint->records, &key, &value, MDB_APPEND | MDB_RESERVE);
	if (error)
		return give_up(checkpoint, error, reterr);
	memcpy(value.mv_data, &checksum, 8);
	memcpy((uint8_t *) value.mv_data + 8, body.data, body.size);
	checkpoint->next.record_count++;
	checkpoint->next.digest += checksum;
	return VD_OK;
}

vd_status vdi_checkpoint_drop(struct vdi_checkpoint *checkpoint, MDB_dbi table, MDB_val key, int64_t *count,
			      struct vd_error *reterr)
{
	MDB_val	 value;
	uint64_t checksum;
	int	 error = mdb_get(checkpoint->txn, table, &key, &value);

	if (error == MDB_NOTFOUND)
		return VD_OK;
	if (error == 0 && value.mv_size < 8)
		error = MDB_CORRUPTED;
	if (error == 0) {
		memcpy(&checksum, value.mv_data, 8);
		error = mdb_del(checkpoint->txn, table, &key, NULL);
	}
	if (error)
		return give_up(checkpoint, error, reterr);
	--*count;
	checkpoint->next.digest -= checksum;
	return VD_OK;
}

static vd_status put_lease(struct vdi_checkpoint *checkpoint, const struct vdi_lease_change *change,
			   struct vd_error *reterr)
{
	uint64_t big_id = __builtin_bswap64((uint64_t) change->id);
	MDB_val	 key = { 8, &big_id };
	MDB_val	 value;
	uint8_t	 bytes[24];
	uint64_t checksum;
	int64_t	 ttl_s = change->ttl_s;
	int	 error;

	if (change->kind == VDI_LEASE_RENEWED) {
		error = mdb_get(checkpoint->txn, checkpoint->leases, &key, &value);
		if (error == MDB_NOTFOUND)
			return VD_OK;
		if (error || value.mv_size != sizeof bytes)
			return give_up(checkpoint, error ? error : MDB_CORRUPTED, reterr);
		memcpy(&ttl_s, (uint8_t *) value.mv_data + 8, 8);
	}
	VDI_TRY(vdi_checkpoint_drop(checkpoint, checkpoint->leases, key, &checkpoint->next.lease_count,
				    reterr));
	if (change->kind == VDI_LEASE_REVOKED)
		return VD_OK;
	memcpy(bytes + 8, &ttl_s, 8);
	memcpy(bytes + 16, &change->deadline.ns, 8);
	checksum = vdi_checkpoint_checksum(bytes + 8, 16, (vd_rev) change->id, 1);
	memcpy(bytes, &checksum, 8);
	value = (MDB_val) { sizeof bytes, bytes };
	error = mdb_put(checkpoint->txn, checkpoint->leases, &key, &value, 0);
	if (error)
		return give_up(checkpoint, error, reterr);
	checkpoint->next.lease_count++;
	checkpoint->next.digest += checksum;
	return VD_OK;
}

static vd_status senseless(struct vdi_checkpoint *checkpoint, const struct vdi_segment_record *record,
			   struct vd_error *reterr)
{
	vdi_checkpoint_abort(checkpoint);
	return vd_error_set(reterr, VD_CORRUPT, "journal record %llu is complete but its content is invalid",
			    (unsigned long long) record->index);
}

vd_status vdi_checkpoint_apply(struct vdi_checkpoint *checkpoint, const struct vdi_segment_record *record,
			       struct vd_error *reterr)
{
	struct vdi_commit_reader reader;

	VDI_CHECK(checkpoint->txn && record->index == checkpoint->next.covered + 1);
	checkpoint->next.covered = record->index;
	if (record->kind != VDI_SEGMENT_COMMIT)
		return VD_OK;
	if (vdi_commit_reader_init(&reader, record->revision, record->payload) != VD_OK)
		return senseless(checkpoint, record, reterr);
	checkpoint->next.revision = VDI_MAX(checkpoint->next.revision, record->revision);
	if (reader.compact > 0)
		checkpoint->next.compacted = VDI_MAX(checkpoint->next.compacted, reader.compact);
	while (reader.change_count) {
		struct vdi_record change;
		struct vd_bytes	  body;

		if (vdi_commit_reader_record(&reader, &change, &body) != VD_OK)
			return senseless(checkpoint, record, reterr);
		VDI_TRY(put_record(checkpoint, &change, body, reterr));
	}
	while (reader.lease_count) {
		struct vdi_lease_change lease;

		if (vdi_commit_reader_lease(&reader, &lease) != VD_OK)
			return senseless(checkpoint, record, reterr);
		VDI_TRY(put_lease(checkpoint, &lease, reterr));
	}
	return VD_OK;
}

vd_status vdi_checkpoint_commit(struct vdi_checkpoint *checkpoint, struct vd_error *reterr)
{
	uint8_t	 bytes[sizeof checkpoint->next + 8];
	uint64_t checksum = XXH3_64bits(&checkpoint->next, sizeof checkpoint->next);
	MDB_val	 key = { 4, (void *) "meta" };
	MDB_val	 value = { sizeof bytes, bytes };
	int	 error;

	memcpy(bytes, &checkpoint->next, sizeof checkpoint->next);
	memcpy(bytes + sizeof checkpoint->next, &checksum, 8);
	error = mdb_put(checkpoint->txn, checkpoint->meta_dbi, &key, &value, 0);
	if (error)
		return give_up(checkpoint, error, reterr);
	vdi_checkpoint_measure(checkpoint, checkpoint->txn);
	error = mdb_txn_commit(checkpoint->txn);
	checkpoint->txn = NULL;
	if (error)
		return give_up(checkpoint, error, reterr);
	if (checkpoint->next.compacted != checkpoint->meta.compacted) {
		checkpoint->is_swept = false;
		checkpoint->compact_sub = 0; /* tombstones of the previous compacted revision are dead now */
	}
	checkpoint->meta = checkpoint->next;
	vdi_checkpoint_forget_pages(checkpoint);
	return VD_OK;
}
