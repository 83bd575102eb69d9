/* Tables of kine. The input is either a database file as it stands ("SQLite format 3"), or rows, one a line: id, name, created, deleted, create_revision, prev_revision, lease, value
 * with tabs between; nothing is NULL, digits are a number, 'f' and digits a float, 'x' begins a blob, anything else is text. What the importer makes of it is a log: a snapshot
 * first, of live keys, each once; then revisions that grow, one change each; nothing is lost between read, taken and skipped; and it is the same again the next time.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "import_command.h"

#define COLUMNS 8
#define KEYS_MAX 64

struct check {
	vd_rev	 last, open;
	bool	 in_snapshot, began;
	unsigned changes;
	uint64_t hash;
	struct vd_kv *keys[KEYS_MAX]; /* of the snapshot, the first ones */
	unsigned      key_count;
};

static void mix(struct check *check, const void *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		check->hash = (check->hash ^ ((const unsigned char *) data)[i]) * 0x100000001b3;
	check->hash = check->hash * 31 + size;
}

static vd_status on_change(void *arg, bool is_delete, const struct vd_kv *kv, vd_wall time, struct vd_error *reterr)
{
	struct check *check = arg;
	int64_t	      numbers[] = { is_delete, kv->mod_rev, kv->create_rev, kv->version, kv->lease };

	(void) reterr;
	VDI_CHECK(kv->mod_rev > 0 && kv->key_size > 0 && kv->key_size <= VD_KEY_SIZE_MAX && time.ns == 0);
	VDI_CHECK(!is_delete || (kv->value_size == 0 && kv->create_rev == 0 && kv->version == 0));
	VDI_CHECK(is_delete || (kv->create_rev >= 0 && kv->create_rev <= kv->mod_rev));
	if (check->in_snapshot) {
		VDI_CHECK(!is_delete && kv->mod_rev <= check->last);
		for (unsigned i = 0; i < check->key_count; i++)
			VDI_CHECK(!vd_bytes_equal(vd_kv_key(check->keys[i]), vd_kv_key(kv)));
		if (check->key_count < KEYS_MAX)
			VDI_CHECK(vd_kv_new(vd_kv_key(kv), VD_BYTES_NONE, &check->keys[check->key_count++]) == VD_OK);
	} else {
		VDI_CHECK(kv->mod_rev > check->last && check->open == 0);
		check->open = kv->mod_rev;
	}
	check->began = true;
	check->changes++;
	mix(check, numbers, sizeof numbers);
	mix(check, kv->data, kv->key_size + (size_t) kv->value_size);
	return VD_OK;
}

static vd_status on_commit(void *arg, vd_rev revision, struct vd_error *reterr)
{
	struct check *check = arg;

	(void) reterr;
	VDI_CHECK(check->open == revision);
	check->last = revision;
	check->open = 0;
	return VD_OK;
}

static vd_status on_snapshot(void *arg, vd_rev revision, bool begins, struct vd_error *reterr)
{
	struct check *check = arg;

	(void) reterr;
	VDI_CHECK(revision > 0);
	VDI_CHECK(begins ? !check->began && !check->in_snapshot : check->in_snapshot && check->last == revision);
	check->in_snapshot = begins;
	check->last = revision;
	check->began = true;
	return VD_OK;
}

static vd_status on_mark(void *arg, enum vdi_log_kind kind, vd_rev revision, const char *text, struct vd_error *reterr)
{
	(void) arg;
	(void) kind;
	(void) revision;
	(void) text;
	(void) reterr;
	VDI_CHECK(!"a table of kine holds no marks");
	return VD_OK;
}

/* Returns what it gave, and how it ended. */
static uint64_t import(const char *path)
{
	struct check		 check = { 0 };
	struct vdi_import_sink	 sink = { on_change, on_commit, on_snapshot, on_mark, &check };
	struct vdi_import_totals totals = { 0 };
	struct vd_error		 error = { 0 };
	vd_status		 status = vdi_import_kine(path, &sink, &totals, &error);

	if (status == VD_OK) {
		VDI_CHECK(check.open == 0 && !check.in_snapshot && totals.revision == check.last);
		VDI_CHECK(totals.taken == check.changes && totals.read == totals.taken + totals.skipped);
	} else {
		VDI_CHECK(error.code == status && error.message[0]);
	}
	for (unsigned i = 0; i < check.key_count; i++)
		vd_kv_unref(check.keys[i]);
	return check.hash * 31 + (uint64_t) status;
}

static void import_bytes(const void *data, size_t size)
{
	int	 file = memfd_create("kine", MFD_CLOEXEC);
	char	 path[64];
	uint64_t first;

	VDI_CHECK(file >= 0 && write(file, data, size) == (ssize_t) size);
	(void) snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	first = import(path);
	VDI_CHECK(import(path) == first);
	(void) close(file);
}

/* ---- Rows ---- */

static void bind(sqlite3_stmt *insert, int column, const char *field, size_t size)
{
	char number[32];

	(void) snprintf(number, sizeof number, "%.*s", (int) VDI_MIN(size, sizeof number - 1), field);
	if (size == 0)
		(void) sqlite3_bind_null(insert, column);
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
			const char *tab = column < COLUMNS && text < line_end ? memchr(text, '\t', (size_t) (line_end - text)) : NULL;
			size_t	    field = (size_t) ((tab ? tab : line_end) - text);

			bind(insert, column, text, field);
			text += field + (tab != NULL);
		}
		(void) sqlite3_step(insert); /* not every row can be one */
		(void) sqlite3_reset(insert);
		text = line_end + 1;
	}
}

static void import_rows(const char *text, size_t size)
{
	static const char table[] = "CREATE TABLE kine (id INTEGER PRIMARY KEY AUTOINCREMENT, name INTEGER, created INTEGER, deleted INTEGER, create_revision INTEGER, "
				    "prev_revision INTEGER, lease INTEGER, value BLOB, old_value BLOB)";
	sqlite3	      *database;
	sqlite3_stmt  *insert;
	sqlite3_int64  bytes = 0;
	unsigned char *file;

	VDI_CHECK(sqlite3_open(":memory:", &database) == SQLITE_OK && sqlite3_exec(database, table, NULL, NULL, NULL) == SQLITE_OK);
	VDI_CHECK(sqlite3_prepare_v2(database, "INSERT INTO kine (id, name, created, deleted, create_revision, prev_revision, lease, value) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", -1,
				     &insert, NULL) == SQLITE_OK);
	insert_rows(insert, text, size);
	(void) sqlite3_finalize(insert);
	file = sqlite3_serialize(database, "main", &bytes, 0);
	VDI_CHECK(file != NULL);
	import_bytes(file, (size_t) bytes);
	sqlite3_free(file);
	(void) sqlite3_close(database);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size >= 15 && memcmp(data, "SQLite format 3", 15) == 0)
		import_bytes(data, size);
	else
		import_rows((const char *) data, size);
	return 0;
}
