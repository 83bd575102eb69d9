/* Imports the table of kine (k3s-io/kine, pkg/drivers/generic), which has one row for each revision.
 *
 *	id			the revision
 *	name, value, lease	key, value, lease
 *	deleted			the key was deleted
 *	create_revision		of the key; 0 in the row that creates it
 *	name compact_rev_key	prev_revision is the compacted revision
 *	name gap-...		a revision without a change
 *
 * Rows up to the compacted revision are the keys that were live then: the snapshot. The table is read row by
 * row and nothing is written, because the database may be in use.
 */
#include "import_command.h"

#if VDI_SQLITE
#include <inttypes.h>
#include <sqlite3.h>

struct kine {
	sqlite3			     *database;
	sqlite3_stmt		     *rows;
	const struct vdi_import_sink *sink;
	struct vdi_import_totals     *totals;
	struct vdi_import_order	      order;
	vd_rev			      compacted;
	bool			      in_snapshot;
	struct vd_error		     *reterr;
};

static vd_status fail(const struct kine *kine, const char *what)
{
	int code = sqlite3_errcode(kine->database);

	if (code == SQLITE_NOMEM)
		return VD_NOMEM;
	return vd_error_set(kine->reterr, code == SQLITE_CANTOPEN ? VD_NOT_FOUND : VD_BAD_REQUEST, "%s: %s",
			    what, sqlite3_errmsg(kine->database));
}

static vd_status prepare(struct kine *kine, const char *statement)
{
	if (kine->rows)
		sqlite3_finalize(kine->rows);
	kine->rows = NULL;
	return sqlite3_prepare_v2(kine->database, statement, -1, &kine->rows, NULL) == SQLITE_OK ?
		       VD_OK :
		       fail(kine, "not a kine database");
}

static vd_status read_compacted(struct kine *kine)
{
	VDI_TRY(prepare(kine, "SELECT max(prev_revision) FROM kine WHERE name = 'compact_rev_key'"));
	switch (sqlite3_step(kine->rows)) {
	case SQLITE_ROW: kine->compacted = sqlite3_column_int64(kine->rows, 0); return VD_OK;
	case SQLITE_DONE: return VD_OK;
	default: return fail(kine, "it cannot be read");
	}
}

static bool is_kines_own(struct vd_bytes name)
{
	return vd_bytes_equal(name, vd_bytes_of("compact_rev_key")) ||
	       vd_bytes_has_prefix(name, vd_bytes_of("gap-"));
}

static struct vd_bytes bytes_of(const struct kine *kine, int column)
{
	const void *data = sqlite3_column_blob(kine->rows, column);
	int	    size = sqlite3_column_bytes(kine->rows, column);

	return data && size > 0 ? (struct vd_bytes) { data, (size_t) size } : VD_BYTES_NONE;
}

static vd_status end_snapshot(struct kine *kine)
{
	kine->in_snapshot = false;
	return kine->sink->snapshot(kine->sink->arg, kine->compacted, false, kine->reterr);
}

static vd_status give(struct kine *kine, bool is_delete, const struct vd_kv *kv)
{
	if (kv->mod_rev <= kine->compacted && is_delete) {
		kine->totals->skipped++;
		return VD_OK;
	}
	if (kine->in_snapshot && kv->mod_rev > kine->compacted)
		VDI_TRY(end_snapshot(kine));
	kine->totals->taken++;
	if (kine->in_snapshot)
		return kine->sink->change(kine->sink->arg, false, kv, (vd_wall) { 0 }, kine->reterr);
	return vdi_import_order_change(&kine->order, is_delete, kv, (vd_wall) { 0 }, kine->reterr);
}

static vd_status take_row(struct kine *kine)
{
	vd_rev		revision = sqlite3_column_int64(kine->rows, 0);
	struct vd_bytes name = bytes_of(kine, 1);
	bool		is_delete = sqlite3_column_int(kine->rows, 3) != 0,
	     is_create = sqlite3_column_int(kine->rows, 2) != 0;
	struct vd_kv *kv;
	vd_status     status;

	kine->totals->read++;
	if (is_kines_own(name)) {
		kine->totals->skipped++;
		return VD_OK;
	}
	if (revision < 1 || name.size == 0 || name.size > VD_KEY_SIZE_MAX)
		return vd_error_set(kine->reterr, VD_BAD_REQUEST, "row %" PRId64 ": a key of %zu bytes",
				    revision, name.size);
	status = vd_kv_new(name, is_delete ? VD_BYTES_NONE : bytes_of(kine, 6), &kv);
	if (status != VD_OK)
		return vd_error_set(kine->reterr, status, "row %" PRId64 ": %s", revision,
				    vd_status_sentence(status));
	kv->mod_rev = revision;
	if (!is_delete) {
		kv->create_rev = is_create ? revision : sqlite3_column_int64(kine->rows, 4);
		kv->version = is_create;
		kv->lease = sqlite3_column_int64(kine->rows, 5);
	}
	if (kv->create_rev < 0 || kv->create_rev > revision)
		status = vd_error_set(kine->reterr, VD_BAD_REQUEST,
				      "row %" PRId64 ": its create_revision is %" PRId64, revision,
				      kv->create_rev);
	else
		status = give(kine, is_delete, kv);
	vd_kv_unref(kv);
	return status;
}

/* Up to the compacted revision only the newest row of each key: kine deletes the older ones. */
static const char rows[] = "SELECT id, name, created, deleted, create_revision, lease, value FROM kine AS "
			   "row WHERE id > ?1 OR NOT EXISTS "
			   "(SELECT 1 FROM kine AS later WHERE later.name = row.name AND later.id > row.id "
			   "AND later.id <= ?1) ORDER BY id";

static vd_status read_rows(struct kine *kine)
{
	vd_status status = VD_OK;
	int	  result;

	VDI_TRY(prepare(kine, rows));
	if (sqlite3_bind_int64(kine->rows, 1, kine->compacted) != SQLITE_OK)
		return fail(kine, "it cannot be read");
	if (kine->compacted > 0) {
		VDI_TRY(kine->sink->snapshot(kine->sink->arg, kine->compacted, true, kine->reterr));
		kine->in_snapshot = true;
		kine->order.last = kine->compacted;
	}
	while (status == VD_OK && (result = sqlite3_step(kine->rows)) == SQLITE_ROW)
		status = take_row(kine);
	if (status == VD_OK && result != SQLITE_DONE)
		return fail(kine, "it cannot be read");
	if (status == VD_OK && kine->in_snapshot)
		status = end_snapshot(kine);
	return status == VD_OK ? vdi_import_order_commit(&kine->order, kine->reterr) : status;
}

vd_status vdi_import_kine(const char *path, const struct vdi_import_sink *sink,
			  struct vdi_import_totals *totals, struct vd_error *reterr)
{
	struct kine kine = { .sink = sink, .totals = totals, .order = { .sink = sink }, .reterr = reterr };
	vd_status   status = VD_OK;

	if (sqlite3_open_v2(path, &kine.database, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
		status = kine.database ? fail(&kine, "it cannot be opened") : VD_NOMEM;
	if (status == VD_OK) {
		(void) sqlite3_limit(kine.database, SQLITE_LIMIT_LENGTH, (int) VD_VALUE_SIZE_MAX + 65536);
		status = read_compacted(&kine);
	}
	if (status == VD_OK)
		status = read_rows(&kine);
	totals->revision = kine.order.last;
	sqlite3_finalize(kine.rows);
	sqlite3_close(kine.database);
	return status;
}
#else
vd_status vdi_import_kine(const char *path, const struct vdi_import_sink *sink,
			  struct vdi_import_totals *totals, struct vd_error *reterr)
{
	(void) path;
	(void) sink;
	(void) totals;
	return vd_error_set(reterr, VD_UNSUPPORTED, "this program was built without SQLite");
}
#endif
