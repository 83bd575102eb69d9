/* LMDB without its lock file (the directory has a lock) and without readers at run time, so a write always
 * finds the pages that the commit before the last one freed. Records are appended in key order, which LMDB
 * does fast and packs full.
 *
 * LMDB has no checksums, follows damaged page numbers wherever they lead, and dies of SIGBUS behind the end
 * of a cut file. Therefore
 * - the file is never shorter than the map: room is reserved first, the map grows into it; ENOSPC then comes
 *   from fallocate, not from the middle of a commit, and a file shorter than its meta page says has been cut;
 * - opening walks the structure of all pages before LMDB sees them (checkpoint_verify.c);
 * - each record has a checksum seeded with its place, and meta the sum of all: a record that is damaged,
 *   moved, missing or stale shows;
 * - a start takes the records from that walk, not from LMDB: they are read once, by all processors, and no
 *   page of them stays mapped.
 */
#include <errno.h>
#include <lmdb.h>
#include <stdio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "checkpoint_state.h"
#include "checkpoint_verify.h"

#define TABLE_RECORDS "records"
#define TABLE_LEASES "leases"

/* ---- Small things ---- */

vd_status vdi_checkpoint_lmdb_fail(const struct vdi_checkpoint *checkpoint, int error, const char *verb,
				   struct vd_error *reterr)
{
	vd_status status = VD_IO;

	switch (error) {
	case MDB_MAP_FULL: status = VD_FULL; break;
	case ENOSPC:
	case EDQUOT: status = VD_NO_SPACE; break;
	case ENOMEM: status = VD_NOMEM; break;
	case MDB_CORRUPTED:
	case MDB_PAGE_NOTFOUND:
	case MDB_INVALID:
	case MDB_VERSION_MISMATCH:
	case MDB_NOTFOUND:
	case MDB_KEYEXIST: status = VD_CORRUPT; break;
	}
	return vd_error_set(reterr, status, "cannot %s %s/%s: %s", verb, checkpoint->dir->path,
			    VDI_CHECKPOINT_NAME, mdb_strerror(error));
}

static vd_status damaged(const struct vdi_checkpoint *checkpoint, vd_rev revision, const char *what,
			 struct vd_error *reterr)
{
	return vd_error_set(reterr, VD_CORRUPT, "%s/%s is damaged at revision %lld: %s",
			    checkpoint->dir->path, VDI_CHECKPOINT_NAME, (long long) revision, what);
}

void vdi_checkpoint_encode_key(vd_rev revision, uint32_t sub, uint8_t ret_key[VDI_CHECKPOINT_KEY_SIZE])
{
	uint64_t big_revision = __builtin_bswap64((uint64_t) revision);
	uint32_t big_sub = __builtin_bswap32(sub);

	memcpy(ret_key, &big_revision, 8);
	memcpy(ret_key + 8, &big_sub, 4);
}

static vd_rev key_revision(const void *key)
{
	uint64_t big;

	memcpy(&big, key, 8);
	return (vd_rev) __builtin_bswap64(big);
}

static uint32_t key_sub(const void *key)
{
	uint32_t big;

	memcpy(&big, (const uint8_t *) key + 8, 4);
	return __builtin_bswap32(big);
}

uint64_t vdi_checkpoint_checksum(const void *body, size_t size, vd_rev revision, uint32_t sub)
{
	return XXH3_64bits_withSeed(body, size, ((uint64_t) revision << 20) ^ sub);
}

/* Splits a stored value into its checksum and the body that the checksum covers. */
static bool verified(struct vd_bytes value, vd_rev revision, uint32_t sub, struct vd_bytes *ret_body,
		     uint64_t *ret_checksum)
{
	if (value.size < 8)
		return false;
	memcpy(ret_checksum, value.data, 8);
	*ret_body = (struct vd_bytes) { (const uint8_t *) value.data + 8, value.size - 8 };
	return vdi_checkpoint_checksum(ret_body->data, ret_body->size, revision, sub) == *ret_checksum;
}

/* ---- Opening ---- */

static vd_status open_env(struct vdi_checkpoint *checkpoint, const char *name, bool no_sync,
			  struct vd_error *reterr)
{
	unsigned flags = MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOTLS | (no_sync ? MDB_NOSYNC : 0);
	size_t	 size = strlen(checkpoint->dir->path) + strlen(name) + 2;
	char	*path = vdi_alloc(size);
	int	 error;

	checkpoint->name = name;
	if (path == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	snprintf(path, size, "%s/%s", checkpoint->dir->path, name);
	error = mdb_env_create(&checkpoint->env);
	if (error == 0)
		error = mdb_env_set_maxdbs(checkpoint->env, 3);
	if (error == 0)
		error = mdb_env_set_mapsize(checkpoint->env, (size_t) checkpoint->map_size);
	if (error == 0)
		error = mdb_env_open(checkpoint->env, path, flags, 0600);
	vdi_free(path);
	return error ? vdi_checkpoint_lmdb_fail(checkpoint, error, "open", reterr) : VD_OK;
}

static vd_status open_tables(struct vdi_checkpoint *checkpoint, unsigned flags, struct vd_error *reterr)
{
	MDB_txn *txn;
	int	 error = mdb_txn_begin(checkpoint->env, NULL, flags ? 0 : MDB_RDONLY, &txn);

	if (error)
		return vdi_checkpoint_lmdb_fail(checkpoint, error, "read", reterr);
	error = mdb_dbi_open(txn, TABLE_RECORDS, flags, &checkpoint->records);
	if (error == 0)
		error = mdb_dbi_open(txn, TABLE_LEASES, flags, &checkpoint->leases);
	if (error == 0)
		error = mdb_dbi_open(txn, "meta", flags, &checkpoint->meta_dbi);
	if (error == 0)
		error = mdb_txn_commit(txn);
	else
		mdb_txn_abort(txn);
	return error ? vdi_checkpoint_lmdb_fail(checkpoint, error, "read", reterr) : VD_OK;
}

void vdi_checkpoint_measure(struct vdi_checkpoint *checkpoint, MDB_txn *txn)
{
	MDB_dbi	 tables[] = { checkpoint->records, checkpoint->leases, checkpoint->meta_dbi };
	MDB_stat stat;

	checkpoint->size_bytes = 0;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(tables); i++)
		if (mdb_stat(txn, tables[i], &stat) == 0)
			checkpoint->size_bytes += (int64_t) (stat.ms_branch_pages + stat.ms_leaf_pages +
							     stat.ms_overflow_pages) *
						  stat.ms_psize;
}

static vd_status read_meta(struct vdi_checkpoint *checkpoint, struct vd_error *reterr)
{
	MDB_val	  key = { 4, (void *) "meta" };
	MDB_val	  value;
	MDB_txn	 *txn;
	uint64_t  checksum;
	uint32_t  format = 0;
	vd_status status = VD_OK;
	int	  error = mdb_txn_begin(checkpoint->env, NULL, MDB_RDONLY, &txn);

	if (error)
		return vdi_checkpoint_lmdb_fail(checkpoint, error, "read", reterr);
	error = mdb_get(txn, checkpoint->meta_dbi, &key, &value);
	if (error) {
		status = vdi_checkpoint_lmdb_fail(checkpoint, error, "read", reterr);
	} else if (value.mv_size < 16 || (memcpy(&checksum, (uint8_t *) value.mv_data + value.mv_size - 8, 8),
					  XXH3_64bits(value.mv_data, value.mv_size - 8) != checksum)) {
		status = damaged(checkpoint, 0, "the checksum of its meta entry is wrong", reterr);
	} else {
		memcpy(&format, value.mv_data, 4);
		if (format > VDI_CHECKPOINT_FORMAT)
			status = vd_error_set(reterr, VD_NEWER_FORMAT,
					      "%s/%s has format %u; this program supports formats up to %u",
					      checkpoint->dir->path, VDI_CHECKPOINT_NAME, format,
					      VDI_CHECKPOINT_FORMAT);
		else if (format != VDI_CHECKPOINT_FORMAT || value.mv_size != sizeof checkpoint->meta + 8)
			status = damaged(checkpoint, 0, "its meta entry is invalid", reterr);
		else
			memcpy(&checkpoint->meta, value.mv_data, sizeof checkpoint->meta);
	}
	vdi_checkpoint_measure(checkpoint, txn);
	mdb_txn_abort(txn);
	return status;
}

/* Walks over many records leave the file in the map, which would count as memory of ours; the kernel's cache
 * has it, and nothing reads it again soon. LMDB does not say where its map is; but a page begins with its
 * number (checkpoint_verify.c), and a reader is given values where they lie. */
void vdi_checkpoint_forget_pages(const struct vdi_checkpoint *checkpoint)
{
	MDB_val	    key = { 4, (void *) "meta" };
	MDB_val	    value;
	MDB_txn	   *txn;
	MDB_envinfo info;
	MDB_stat    stat;
	uintptr_t   page;
	uint64_t    number;

	if (mdb_env_info(checkpoint->env, &info) || mdb_env_stat(checkpoint->env, &stat) ||
	    mdb_txn_begin(checkpoint->env, NULL, MDB_RDONLY, &txn))
		return;
	if (mdb_get(txn, checkpoint->meta_dbi, &key, &value) == 0) {
		page = (uintptr_t) value.mv_data & ~((uintptr_t) stat.ms_psize - 1);
		memcpy(&number, (const void *) page, sizeof number);
		if (number >= 2 && number <= info.me_last_pgno && value.mv_size < stat.ms_psize / 4)
			vdi_pages_forget((void *) (page - number * stat.ms_psize), info.me_mapsize);
	}
	mdb_txn_abort(txn);
}

/* Decodes a record of the table. */
static vd_status read_record(struct vdi_checkpoint *checkpoint, struct vd_bytes key, struct vd_bytes value,
			     struct vdi_record *ret_record, uint64_t *ret_checksum, struct vd_error *reterr)
{
	struct vd_bytes body;
	vd_rev		revision;

	if (key.size != VDI_CHECKPOINT_KEY_SIZE)
		return damaged(checkpoint, 0, "a key of the wrong size", reterr);
	revision = key_revision(key.data);
	if (!verified(value, revision, key_sub(key.data), &body, ret_checksum))
		return damaged(checkpoint, revision, "the checksum of a record is wrong", reterr);
	if (vdi_record_decode(body, revision, ret_record) != VD_OK || ret_record->sub != key_sub(key.data))
		return damaged(checkpoint, revision, "a record is complete but its content is invalid",
			       reterr);
	return VD_OK;
}

/* ---- Content ---- */

struct filling {
	struct vdi_checkpoint	      *checkpoint;
	struct vdi_checkpoint_content *content;
	int64_t			       lease_count;
};

static vd_status take_record(struct vdi_checkpoint *checkpoint, struct vdi_checkpoint_part *part,
			     struct vd_bytes key, struct vd_bytes value, struct vd_error *reterr)
{
	struct vdi_record record;
	struct vd_kv	 *kv;
	uint64_t	  checksum = 0;

	VDI_TRY(read_record(checkpoint, key, value, &record, &checksum, reterr));
	if ((part->count == part->capacity &&
	     !vdi_grow((void **) &part->records, &part->capacity, VDI_MAX(part->count + 1, 64),
		       sizeof part->records[0])) ||
	    vdi_record_kv(&record, &kv) != VD_OK)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	part->records[part->count++] = (struct vdi_checkpoint_record) { kv, record.is_delete };
	part->digest += checksum;
	return VD_OK;
}

static vd_status take_lease(struct filling *filling, struct vd_bytes key, struct vd_bytes value,
			    struct vd_error *reterr)
{
	struct vdi_lease_change change = { .kind = VDI_LEASE_GRANTED };
	struct vd_bytes		body;
	uint64_t		checksum;

	if (key.size != 8 || !verified(value, key_revision(key.data), 1, &body, &checksum) || body.size != 16)
		return damaged(filling->checkpoint, 0, "the checksum of a lease is wrong", reterr);
	change.id = (int64_t) key_revision(key.data);
	memcpy(&change.ttl_s, body.data, 8);
	memcpy(&change.deadline.ns, (const uint8_t *) body.data + 8, 8);
	filling->lease_count++;
	filling->content->parts[0].digest += checksum;
	if (vdi_lease_table_apply(&filling->content->leases, &change) != VD_OK)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	return VD_OK;
}

static vd_status take_entry(void *arg, unsigned part, struct vd_bytes table, struct vd_bytes key,
			    struct vd_bytes value, struct vd_error *reterr)
{
	struct filling *filling = arg;

	if (vd_bytes_equal(table, vd_bytes_of(TABLE_RECORDS)))
		return take_record(filling->checkpoint, &filling->content->parts[part], key, value, reterr);
	if (vd_bytes_equal(table, vd_bytes_of(TABLE_LEASES)))
		return take_lease(filling, key, value, reterr);
	return VD_OK;
}

void vdi_checkpoint_content_fini(struct vdi_checkpoint_content *content)
{
	for (unsigned i = 0; i < VDI_PARALLEL_MAX; i++) {
		struct vdi_checkpoint_part *part = &content->parts[i];

		for (size_t j = 0; j < part->count; j++)
			vd_kv_unref(part->records[j].kv);
		vdi_free(part->records);
		*part = (struct vdi_checkpoint_part) { 0 };
	}
	vdi_lease_table_fini(&content->leases);
}

static vd_status check_file(struct vdi_checkpoint *checkpoint, struct filling *filling,
			    struct vd_error *reterr)
{
	struct vdi_checkpoint_visitor visitor = { .split = vd_bytes_of(TABLE_RECORDS),
						  .entry = take_entry,
						  .arg = filling };
	struct vdi_file		     *file;
	vd_status		      status;

	if (filling->content) {
		visitor.env = filling->content->env;
		visitor.part_count = filling->content->part_count;
	}
	VDI_TRY(vdi_file_open(checkpoint->dir, VDI_CHECKPOINT_NAME, VDI_FILE_READ, &file, reterr));
	status = vdi_file_size(file, &checkpoint->map_size, reterr);
	if (status == VD_OK)
		status = vdi_checkpoint_verify(file, filling->content ? &visitor : NULL, reterr);
	vdi_file_close(file);
	return status;
}

static vd_status check_sum(const struct vdi_checkpoint *checkpoint, const struct filling *filling,
			   struct vd_error *reterr)
{
	const struct vdi_checkpoint_meta *meta = &checkpoint->meta;
	int64_t				  count = 0;
	uint64_t			  digest = 0;

	for (unsigned i = 0; i < VDI_PARALLEL_MAX; i++) {
		count += (int64_t) filling->content->parts[i].count;
		digest += filling->content->parts[i].digest;
	}
	if (count == meta->record_count && filling->lease_count == meta->lease_count &&
	    digest == meta->digest)
		return VD_OK;
	return damaged(checkpoint, meta->revision,
		       "records or leases are missing, or older than they should be", reterr);
}

vd_status vdi_checkpoint_open(struct vdi_dir *dir, bool no_sync, struct vdi_checkpoint_content *content,
			      struct vdi_checkpoint **ret_checkpoint, struct vd_error *reterr)
{
	struct vdi_checkpoint *checkpoint = VDI_NEW(struct vdi_checkpoint);
	struct filling	       filling = { checkpoint, content, 0 };
	vd_status	       status;

	if (checkpoint == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	checkpoint->dir = dir;
	status = check_file(checkpoint, &filling, reterr);
	if (status == VD_OK)
		status = open_env(checkpoint, VDI_CHECKPOINT_NAME, no_sync, reterr);
	if (status == VD_OK)
		status = open_tables(checkpoint, 0, reterr);
	if (status == VD_OK)
		status = read_meta(checkpoint, reterr);
	if (status == VD_OK && content)
		status = check_sum(checkpoint, &filling, reterr);
	if (status != VD_OK) {
		vdi_checkpoint_close(checkpoint);
		return status;
	}
	*ret_checkpoint = checkpoint;
	return VD_OK;
}

struct vdi_checkpoint *vdi_checkpoint_close(struct vdi_checkpoint *checkpoint)
{
	if (checkpoint == NULL)
		return NULL;
	vdi_checkpoint_abort(checkpoint);
	if (checkpoint->env)
		mdb_env_close(checkpoint->env);
	vdi_free(checkpoint->scratch);
	vdi_free(checkpoint);
	return NULL;
}

static vd_status fill_new_file(struct vdi_checkpoint *checkpoint, const uint8_t *store_id,
			       struct vd_error *reterr)
{
	VDI_TRY(open_env(checkpoint, VDI_CHECKPOINT_TEMPORARY, false, reterr));
	VDI_TRY(vdi_checkpoint_allocate(checkpoint->dir, VDI_CHECKPOINT_TEMPORARY, checkpoint->map_size,
					reterr));
	VDI_TRY(open_tables(checkpoint, MDB_CREATE, reterr));
	checkpoint->meta = (struct vdi_checkpoint_meta) { .format = VDI_CHECKPOINT_FORMAT, .compacted = -1 };
	memcpy(checkpoint->meta.store_id, store_id, VDI_STORE_ID_SIZE);
	VDI_TRY(vdi_checkpoint_begin(checkpoint, 0, reterr));
	return vdi_checkpoint_commit(checkpoint, reterr);
}

vd_status vdi_checkpoint_create(struct vdi_dir *dir, bool no_sync, const uint8_t *store_id,
				struct vdi_checkpoint **ret_checkpoint, struct vd_error *reterr)
{
	struct vdi_checkpoint *checkpoint = VDI_NEW(struct vdi_checkpoint);
	vd_status	       status = vdi_dir_unlink(dir, VDI_CHECKPOINT_TEMPORARY, reterr);

	if (checkpoint == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	checkpoint->dir = dir;
	checkpoint->map_size = VDI_CHECKPOINT_MAP_MIN;
	if (status == VD_OK || status == VD_NOT_FOUND)
		status = fill_new_file(checkpoint, store_id, reterr);
	vdi_checkpoint_close(checkpoint);
	if (status == VD_OK)
		status = vdi_dir_rename(dir, VDI_CHECKPOINT_TEMPORARY, VDI_CHECKPOINT_NAME, reterr);
	else
		(void) !vdi_dir_unlink(dir, VDI_CHECKPOINT_TEMPORARY, NULL);
	if (status == VD_OK)
		status = vdi_dir_sync(dir, reterr);
	return status == VD_OK ? vdi_checkpoint_open(dir, no_sync, NULL, ret_checkpoint, reterr) : status;
}

const struct vdi_checkpoint_meta *vdi_checkpoint_meta(const struct vdi_checkpoint *checkpoint)
{
	return &checkpoint->meta;
}

int64_t vdi_checkpoint_size_bytes(const struct vdi_checkpoint *checkpoint)
{
	return checkpoint->size_bytes;
}

/* ---- Reading ---- */

static vd_status walk_records(struct vdi_checkpoint *checkpoint, MDB_txn *txn, vd_rev from, uint32_t from_sub,
			      vd_rev to, vdi_checkpoint_each_fn each, void *arg, struct vd_error *reterr)
{
	uint8_t		  first[VDI_CHECKPOINT_KEY_SIZE];
	MDB_val		  key = { VDI_CHECKPOINT_KEY_SIZE, first };
	MDB_val		  value;
	MDB_cursor	 *cursor;
	struct vdi_record record;
	uint64_t	  checksum;
	vd_status	  status = VD_OK;
	int		  error = mdb_cursor_open(txn, checkpoint->records, &cursor);

	if (error)
		return vdi_checkpoint_lmdb_fail(checkpoint, error, "read", reterr);
	vdi_checkpoint_encode_key(VDI_MAX(from, 0), from_sub, first);
	for (error = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE); error == 0 && status == VD_OK;
	     error = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
		status = read_record(checkpoint, (struct vd_bytes) { key.mv_data, key.mv_size },
				     (struct vd_bytes) { value.mv_data, value.mv_size }, &record, &checksum,
				     reterr);
		if (status != VD_OK || record.mod_rev > to)
			break;
		status = each(arg, &record);
		if (status != VD_OK)
			vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	}
	mdb_cursor_close(cursor);
	if (status == VD_OK && error != 0 && error != MDB_NOTFOUND)
		status = vdi_checkpoint_lmdb_fail(checkpoint, error, "read", reterr);
	return status;
}

vd_status vdi_checkpoint_walk_from(struct vdi_checkpoint *checkpoint, vd_rev from, uint32_t from_sub,
				   vd_rev to, vdi_checkpoint_each_fn each, void *arg, struct vd_error *reterr)
{
	MDB_txn	 *txn;
	vd_status status;
	int	  error = mdb_txn_begin(checkpoint->env, NULL, MDB_RDONLY, &txn);

	if (error)
		return vdi_checkpoint_lmdb_fail(checkpoint, error, "read", reterr);
	status = walk_records(checkpoint, txn, from, from_sub, to, each, arg, reterr);
	mdb_txn_abort(txn);
	vdi_checkpoint_forget_pages(checkpoint);
	return status;
}

vd_status vdi_checkpoint_walk(struct vdi_checkpoint *checkpoint, vd_rev from, vd_rev to,
			      vdi_checkpoint_each_fn each, void *arg, struct vd_error *reterr)
{
	return vdi_checkpoint_walk_from(checkpoint, from, 0, to, each, arg, reterr);
}
