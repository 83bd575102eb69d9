/* Tables of kine. The input is either a database file ("SQLite format 3"), or rows, one per line: id, name,
 * created, deleted, create_revision, prev_revision, lease, value separated by tabs; empty is NULL, digits are
 * a number, 'f' and digits a float, 'x' begins a blob, anything else is text. The importer's output is a
 * valid log: a snapshot of live keys, each once; then increasing revisions with one change each. The number
 * equals that of another way of counting, and a second import is equal. */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

#include "fuzz.h"
#include "import_command.h"
#include "log_check.h"

#define COLUMNS 8
#define KEYS_MAX 64

struct check {
	struct log_check log; /* first */
	unsigned	 deletes;
	uint64_t	 hash;
	struct vd_kv	*keys[KEYS_MAX]; /* of the snapshot, the first ones */
	unsigned	 key_count;
};

static void mix(struct check *check, const void *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		check->hash = (check->hash ^ ((const unsigned char *) data)[i]) * 0x100000001b3;
	check->hash = check->hash * 31 + size;
}

static vd_status on_change(void *arg, bool is_delete, const struct vd_kv *kv, vd_wall time,
			   struct vd_error *reterr)
{
	struct check *check = arg;
	int64_t	      numbers[] = { is_delete, kv->mod_rev, kv->create_rev, kv->version, kv->lease };

	(void) reterr;
	VDI_CHECK(kv->key_size > 0 && kv->key_size <= VD_KEY_SIZE_MAX && time.ns == 0);
	VDI_CHECK(!is_delete || (kv->create_rev == 0 && kv->version == 0));
	VDI_CHECK(is_delete || (kv->create_rev >= 0 && kv->create_rev <= kv->mod_rev));
	VDI_CHECK(check->log.open == 0);
	log_check_change(&check->log, is_delete, kv);
	if (check->log.in_snapshot) {
		for (unsigned i = 0; i < check->key_count; i++)
			VDI_CHECK(!vd_bytes_equal(vd_kv_key(check->keys[i]), vd_kv_key(kv)));
		if (check->key_count < KEYS_MAX)
			VDI_CHECK(vd_kv_new(vd_kv_key(kv), VD_BYTES_NONE, &check->keys[check->key_count++]) ==
				  VD_OK);
	}
	check->deletes += is_delete;
	mix(check, numbers, sizeof numbers);
	mix(check, kv->data, kv->key_size + (size_t) kv->value_size);
	return VD_OK;
}

static vd_status on_snapshot(void *arg, vd_rev revision, bool begins, struct vd_error *reterr)
{
	VDI_CHECK(revision > 0);
	return log_check_snapshot(arg, revision, begins, reterr);
}

static vd_status on_mark(void *arg, enum vdi_log_kind kind, vd_rev revision, const char *text,
			 struct vd_error *reterr)
{
	(void) arg;
	(void) kind;
	(void) revision;
	(void) text;
	(void) reterr;
	VDI_CHECK(!"a table of kine holds no marks");
	return VD_OK;
}

/* Expected numbers of changes and of deletes among them; -1: unknown. */
struct expected {
	int64_t changes, deletes;
};

/* Returns a hash of the imported records and the final status. */
static uint64_t import(const char *name, const struct expected *expected)
{
	struct check		 check = { 0 };
	struct vdi_import_sink	 sink = { on_change, log_check_commit, on_snapshot, on_mark, &check };
	struct vdi_import_totals totals = { 0 };
	struct vd_error		 error = { 0 };
	vd_status		 status = vdi_import_kine(name, &sink, &totals, &error);

	if (status == VD_OK) {
		VDI_CHECK(check.log.open == 0 && !check.log.in_snapshot && totals.revision == check.log.last);
		VDI_CHECK(expected->changes < 0 || (check.log.changes == (uint64_t) expected->changes &&
						    check.deletes == (uint64_t) expected->deletes));
		VDI_CHECK(totals.taken == check.log.changes && totals.read == totals.taken + totals.skipped);
	} else {
		VDI_CHECK(error.code == status && error.message[0] &&
			  (status != VD_NOT_FOUND || expected->changes < 0));
	}
	for (unsigned i = 0; i < check.key_count; i++)
		vd_kv_unref(check.keys[i]);
	return check.hash * 31 + (uint64_t) status;
}

/* SQLite needs a name in a folder. */
static char path[64];

/* Removes the database and the files that SQLite may have made beside it. */
static void remove_files(const char *const *suffixes, size_t count)
{
	char name[80];

	for (size_t i = 0; i < count; i++) {
		(void) snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
		(void) unlink(name);
	}
}

static const char *const suffixes[] = { "-wal", "-shm", "-journal", "" };

static void remove_all(void)
{
	remove_files(suffixes, VDI_ARRAY_SIZE(suffixes));
}

static void import_bytes(const void *data, size_t size, const struct expected *expected)
{
	static int file = -1;
	uint64_t   first;

	if (file < 0) {
		(void) snprintf(path, sizeof path, "/tmp/vedette-fuzz-kine-XXXXXX");
		file = mkostemp(path, O_CLOEXEC);
		(void) atexit(remove_all);
	}
	VDI_CHECK(file >= 0 && ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == (ssize_t) size);
	first = import(path, expected);
	VDI_CHECK(import(path, expected) == first);
	if (expected->changes < 0)
		remove_files(suffixes, VDI_ARRAY_SIZE(suffixes) - 1);
}

/* ---- Rows ---- */

static void bind(sqlite3_stmt *insert, int column, const char *field, size_t size)
{
	char number[32];

	(void) snprintf(number, sizeof number, "%.*s", (int) VDI_MIN(size, sizeof number - 1), field);
	if (size == 0)
		(void) sqlite3_bind_null(insert, column);
	else if (column == 2) /* one name, one type */
		(void) sqlite3_bind_text(insert, column, field, (int) size, SQLITE_STATIC);
	else if ((*field >= '0' && *field <= '9') || *field == '-')
		(void) sqlite3_bind_int64(insert, column, strtoll(number, NULL, 10));
	else if (*field == 'f')
		(void) sqlite3_bind_double(insert, column, strtod(number + 1, NULL));
	else if (*field == 'x')
		(void) sqlite3_bind_blob(insert, column, field + 1, (int) size - 1, SQLITE_STATIC);
	else
		(void) sqlite3_bind_text(insert, column, field, (int) size, SQLITE_STATIC);
}

static void insert_rows(sqlite3_stmt *insert, const char *text, size_t size)
{
	const char *end = text + size;

	while (text < end) {
		const char *line_end = memchr(text, '\n', (size_t) (end - text));

		if (line_end == NULL)
			line_end = end;
		for (int column = 1; column <= COLUMNS; column++) {
			const char *tab = column < COLUMNS && text < line_end ?
						  memchr(text, '\t', (size_t) (line_end - text)) :
						  NULL;
			size_t	    field = (size_t) ((tab ? tab : line_end) - text);

			bind(insert, column, text, field);
			text += field + (tab != NULL);
		}
		(void) sqlite3_step(insert); /* not every row is valid */
		(void) sqlite3_reset(insert);
		text = line_end + 1;
	}
}

/* Counts with other queries than the importer: the keys live at the compacted revision by groups, and all
 * rows after it. */
static int64_t count(sqlite3 *database, const char *what)
{
	static const char from[] =
		"WITH own AS (SELECT id, name, (coalesce(CAST(deleted AS INTEGER), 0) & 4294967295) != 0 AS "
		"gone FROM kine WHERE name != 'compact_rev_key' AND substr(name, 1, 4) != 'gap-'), "
		"compacted AS (SELECT coalesce(CAST(max(prev_revision) AS INTEGER), 0) AS revision FROM kine "
		"WHERE name = 'compact_rev_key'), "
		"lived AS (SELECT max(id), gone FROM own, compacted WHERE id <= revision GROUP BY name), "
		"behind AS (SELECT gone FROM own, compacted WHERE id > revision) ";
	sqlite3_stmt *statement;
	char	      text[1024];
	int64_t	      number;

	(void) snprintf(text, sizeof text, "%s SELECT %s", from, what);
	VDI_CHECK(sqlite3_prepare_v2(database, text, -1, &statement, NULL) == SQLITE_OK &&
		  sqlite3_step(statement) == SQLITE_ROW);
	number = sqlite3_column_int64(statement, 0);
	(void) sqlite3_finalize(statement);
	return number;
}

static void import_rows(const char *text, size_t size)
{
	static const char table[] = "CREATE TABLE kine (id INTEGER PRIMARY KEY AUTOINCREMENT, name INTEGER, "
				    "created INTEGER, deleted INTEGER, create_revision INTEGER, "
				    "prev_revision INTEGER, lease INTEGER, value BLOB, old_value BLOB)";
	sqlite3		 *database;
	sqlite3_stmt	 *insert;
	sqlite3_int64	  bytes = 0;
	struct expected	  expected;
	unsigned char	 *file;

	VDI_CHECK(sqlite3_open(":memory:", &database) == SQLITE_OK &&
		  sqlite3_exec(database, table, NULL, NULL, NULL) == SQLITE_OK);
	VDI_CHECK(sqlite3_prepare_v2(database,
				     "INSERT INTO kine (id, name, created, deleted, create_revision, "
				     "prev_revision, lease, value) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
				     -1, &insert, NULL) == SQLITE_OK);
	insert_rows(insert, text, size);
	(void) sqlite3_finalize(insert);
	file = sqlite3_serialize(database, "main", &bytes, 0);
	VDI_CHECK(file != NULL);
	expected.changes = count(
		database, "(SELECT count(*) FROM lived WHERE NOT gone) + (SELECT count(*) FROM behind)");
	expected.deletes = count(database, "(SELECT count(*) FROM behind WHERE gone)");
	import_bytes(file, (size_t) bytes, &expected);
	sqlite3_free(file);
	(void) sqlite3_close(database);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct expected unknown = { -1, -1 };

	if (size >= 15 && memcmp(data, "SQLite format 3", 15) == 0)
		import_bytes(data, size, &unknown);
	else
		import_rows((const char *) data, size);
	return 0;
}
