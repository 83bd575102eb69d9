/* Imports an etcd snapshot: the keys that were live at its compacted revision are the snapshot, every later
 * revision is a transaction. The file is mapped, not read: memory is the system's page cache, and a hash for
 * each key that was live then. */
#include "import_command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hash.h"
#include "snapshot_read.h"

#define SEED 0x736e6170

struct live {
	uint64_t hash; /* the key is identified by 128 bits, of two seeds */
	uint64_t other;
	vd_rev	 revision;
};

struct reading {
	struct vdi_snapshot	      snapshot;
	const struct vdi_import_sink *sink;
	struct vdi_import_totals     *totals;
	struct vdi_import_order	      order;
	struct vd_error		     *reterr;
	struct vdi_hash		      live; /* newest records at or before the compacted revision */
	bool			      in_snapshot;
};

static bool is_same(const void *entry, const void *key)
{
	const struct live *a = entry, *b = key;

	return a->hash == b->hash && a->other == b->other;
}

static struct live live_of(const struct vd_kv *kv)
{
	return (struct live) { vdi_hash_bytes(vd_kv_key(kv), SEED),
			       vdi_hash_bytes(vd_kv_key(kv), ~(uint64_t) SEED), kv->mod_rev };
}

/* Notes the newest records. A scheduled compaction that has not finished leaves superseded records, and
 * deleted ones with their tombstones. */
static vd_status note_live(void *arg, bool is_delete, struct vd_kv *kv)
{
	struct reading *reading = arg;
	struct live	key = live_of(kv), *live;
	vd_status	status;

	if (kv->mod_rev > reading->snapshot.compacted)
		return VD_OK;
	live = vdi_hash_get(&reading->live, key.hash, &key);
	if (live) {
		live->revision = is_delete ? 0 : kv->mod_rev;
		return VD_OK;
	}
	if (is_delete)
		return VD_OK;
	live = VDI_NEW(struct live);
	if (live == NULL)
		return VD_NOMEM;
	*live = key;
	status = vdi_hash_put(&reading->live, key.hash, &key, live, NULL);
	if (status != VD_OK)
		vdi_free(live);
	return status;
}

static vd_status end_snapshot(struct reading *reading)
{
	reading->in_snapshot = false;
	return reading->sink->snapshot(reading->sink->arg, reading->snapshot.compacted, false,
				       reading->reterr);
}

static vd_status take(void *arg, bool is_delete, struct vd_kv *kv)
{
	struct reading *reading = arg;

	reading->totals->read++;
	if (reading->in_snapshot && kv->mod_rev <= reading->snapshot.compacted) {
		struct live key = live_of(kv), *live = vdi_hash_get(&reading->live, key.hash, &key);

		if (is_delete || live == NULL || live->revision != kv->mod_rev) {
			reading->totals->skipped++;
			return VD_OK;
		}
		reading->totals->taken++;
		return reading->sink->change(reading->sink->arg, false, kv, (vd_wall) { 0 }, reading->reterr);
	}
	if (reading->in_snapshot)
		VDI_TRY(end_snapshot(reading));
	reading->totals->taken++;
	return vdi_import_order_change(&reading->order, is_delete, kv, (vd_wall) { 0 }, reading->reterr);
}

static vd_status read_all(struct reading *reading, struct vd_bytes bytes)
{
	VDI_TRY(vdi_snapshot_init(&reading->snapshot, bytes, reading->reterr));
	if (reading->snapshot.compacted > 0) {
		VDI_TRY(vdi_snapshot_each(&reading->snapshot, note_live, reading, reading->reterr));
		VDI_TRY(reading->sink->snapshot(reading->sink->arg, reading->snapshot.compacted, true,
						reading->reterr));
		reading->in_snapshot = true;
		reading->order.last = reading->snapshot.compacted;
	}
	VDI_TRY(vdi_snapshot_each(&reading->snapshot, take, reading, reading->reterr));
	if (reading->in_snapshot)
		VDI_TRY(end_snapshot(reading));
	return vdi_import_order_commit(&reading->order, reading->reterr);
}

vd_status vdi_import_snapshot(const char *path, const struct vdi_import_sink *sink,
			      struct vdi_import_totals *totals, struct vd_error *reterr)
{
	struct reading reading = {
		.sink = sink, .totals = totals, .order = { .sink = sink }, .reterr = reterr
	};
	struct stat about;
	int	    file = open(path, O_RDONLY | O_CLOEXEC);
	void	   *bytes = MAP_FAILED;
	size_t	    position = 0;
	void	   *live;
	vd_status   status;

	if (file < 0 || fstat(file, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size == 0) {
		status = vd_error_set(reterr, file < 0 ? VD_NOT_FOUND : VD_BAD_REQUEST, "%s",
				      file < 0 ? strerror(errno) : "not a snapshot: empty, or not a file");
	} else {
		bytes = mmap(NULL, (size_t) about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
		status = bytes == MAP_FAILED ? vd_error_set(reterr, VD_IO, "%s", strerror(errno)) : VD_OK;
	}
	vdi_hash_init(&reading.live, is_same, 0);
	if (status == VD_OK)
		status = read_all(&reading, (struct vd_bytes) { bytes, (size_t) about.st_size });
	totals->revision = reading.order.last;
	while ((live = vdi_hash_next(&reading.live, &position)) != NULL)
		vdi_free(live);
	vdi_hash_fini(&reading.live);
	if (bytes != MAP_FAILED)
		(void) munmap(bytes, (size_t) about.st_size);
	if (file >= 0)
		(void) close(file);
	return status;
}
