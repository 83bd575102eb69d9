#include <errno.h>
#include <stdlib.h>

#include "free_pages.h"

struct free_pages {
	uint64_t *numbers;
	size_t	  count;
	size_t	  capacity;
};

static bool add_pages(struct free_pages *pages, const uint8_t *list)
{
	size_t count;

	memcpy(&count, list, sizeof count);
	if (!vdi_grow((void **) &pages->numbers, &pages->capacity, pages->count + count + 1,
		      sizeof *pages->numbers))
		return false;
	memcpy(pages->numbers + pages->count, list + 8, count * 8);
	pages->count += count;
	return true;
}

/* The list of free pages: transaction -> count, then numbers. The next transaction may use those that were
 * free before the last one. */
static int read_list(MDB_txn *txn, uint64_t last_txn, struct free_pages *pages)
{
	MDB_cursor *cursor;
	MDB_val	    key, value;
	uint64_t    freed_by;
	int	    error = mdb_cursor_open(txn, 0, &cursor);

	if (error)
		return error;
	for (error = mdb_cursor_get(cursor, &key, &value, MDB_FIRST); error == 0;
	     error = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
		memcpy(&freed_by, key.mv_data, sizeof freed_by);
		if (freed_by >= last_txn)
			break;
		if (!add_pages(pages, value.mv_data)) {
			error = ENOMEM;
			break;
		}
	}
	mdb_cursor_close(cursor);
	return error == MDB_NOTFOUND ? 0 : error;
}

static int order_pages(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *) a, right = *(const uint64_t *) b;

	return VDI_ORDER(left, right);
}

static void add_run(struct vdi_checkpoint_room *room, int64_t length)
{
	for (unsigned i = 0; i < VDI_CHECKPOINT_ROOM_CLASSES; i++)
		room->free_bytes[i] += (length >> i << i) * VDI_CHECKPOINT_PAGE_SIZE;
}

static void add_runs(struct vdi_checkpoint_room *room, const struct free_pages *pages)
{
	size_t from = 0;

	for (size_t i = 1; i <= pages->count; i++) {
		if (i < pages->count && pages->numbers[i] == pages->numbers[i - 1] + 1)
			continue;
		add_run(room, (int64_t) (i - from));
		from = i;
	}
}

int vdi_free_pages_measure(MDB_env *env, struct vdi_checkpoint_room *room)
{
	struct free_pages pages = { 0 };
	MDB_envinfo	  info;
	MDB_txn		 *txn;
	int		  error = mdb_txn_begin(env, NULL, MDB_RDONLY, &txn);

	if (error)
		return error;
	mdb_env_info(env, &info);
	error = read_list(txn, info.me_last_txnid, &pages);
	mdb_txn_abort(txn);
	if (error == 0 && pages.count) {
		qsort(pages.numbers, pages.count, sizeof *pages.numbers, order_pages);
		add_runs(room, &pages);
	}
	vdi_free(pages.numbers);
	return error;
}
