/* Changes go into the writer's working trees and into the history, as when a store starts from its data
 * directory (mvcc_load.c). At the end a walk over the history makes one journal record of each revision. The
 * history keeps compacted revisions until then, because the journal needs all revisions in order. */
#include "mvcc_import.h"

#include <stdlib.h>

#include "mvcc_load.h"

/* Maximum events gathered before they are moved to the history; maximum bytes and changes between two
 * syncs. */
#define GATHER_MAX 4096
#define SYNC_BYTES ((size_t) 8 << 20)
#define PROGRESS_CHANGES 100000

struct vdi_mvcc_import {
	struct vdi_mvcc		       *mvcc;
	struct vdi_group	       *group;
	const struct vdi_mvcc_importer *importer;
	vd_mono				now;
	vd_rev				last;	   /* newest imported revision; 0: none */
	vd_rev				compacted; /* -1: never */
	uint64_t			change_count;
};

/* ---- Into memory ---- */

static vd_status invalid_key(struct vd_error *reterr, const char *why, const struct vd_kv *kv)
{
	return vd_error_set(reterr, VD_INVALID, "%s: %.*s at revision %lld", why,
			    (int) VDI_MIN(kv->key_size, 200), kv->data, (long long) kv->mod_rev);
}

static vd_status no_memory(struct vd_error *reterr)
{
	return vd_error_set(reterr, VD_NOMEM, "mvcc: out of memory while importing");
}

/* Takes over previous. */
static vd_status add_event(struct vdi_group *group, bool is_delete, struct vd_kv *kv, struct vd_kv *previous)
{
	if (!vdi_grow((void **) &group->events, &group->event_capacity, group->event_count + 1,
		      sizeof group->events[0])) {
		vd_kv_unref(previous);
		return VD_NOMEM;
	}
	group->events[group->event_count++] = (struct vd_store_event) { is_delete, vd_kv_ref(kv), previous };
	return VD_OK;
}

/* Fills in the fields that the importer left at 0 from live, the current record of the key (NULL: none). */
static vd_status stamp(struct vdi_mvcc_import *import, struct vd_kv *kv, const struct vd_kv *live,
		       uint32_t sub, struct vd_error *reterr)
{
	if (!import->importer->is_exact)
		kv->sub = sub;
	/* An event log has only the numbers of leases, not the leases. */
	if (!import->importer->is_exact ||
	    vdi_lease_find(vdi_btree_view(&import->group->leases), kv->lease) == NULL)
		kv->lease = 0;
	if (kv->create_rev == 0)
		kv->create_rev = live ? live->create_rev : kv->mod_rev;
	if (kv->version == 0)
		kv->version = live ? live->version + 1 : 1;
	if (kv->create_rev < 1 || kv->create_rev > kv->mod_rev || kv->version < 1)
		return invalid_key(reterr, "a create revision above its own revision", kv);
	return VD_OK;
}

static vd_status take(struct vdi_mvcc_import *import, const struct vdi_import_change *change, uint32_t sub,
		      struct vd_error *reterr)
{
	struct vdi_group   *group = import->group;
	struct vd_kv	   *kv = change->kv;
	const struct vd_kv *live = vdi_btree_snapshot_get(vdi_btree_view(&group->keys), vd_kv_key(kv));
	void		   *previous = NULL;
	vd_status	    status;

	if (live && live->mod_rev == kv->mod_rev && !import->importer->is_exact)
		return invalid_key(reterr, "one key twice in a transaction", kv);
	if (change->is_delete) {
		if (live == NULL && import->importer->is_exact && kv->mod_rev <= import->importer->compacted)
			return VD_OK;
		if (live == NULL)
			return invalid_key(reterr, "a delete of a key that does not exist", kv);
		if (!import->importer->is_exact)
			kv->sub = sub;
		kv->create_rev = kv->version = kv->lease = 0;
		status = vdi_btree_remove(&group->keys, vd_kv_key(kv), &previous);
	} else {
		VDI_TRY(stamp(import, kv, live, sub, reterr));
		status = vdi_btree_put(&group->keys, kv, &previous);
	}
	if (status == VD_OK)
		status = add_event(group, change->is_delete, kv, previous);
	import->change_count++;
	return status == VD_OK ? VD_OK : no_memory(reterr);
}

vd_status vdi_mvcc_import_commit(struct vdi_mvcc_import *import, const struct vdi_import_change *changes,
				 size_t count, struct vd_error *reterr)
{
	vd_rev revision;

	if (count == 0)
		return VD_OK;
	revision = changes[0].kv->mod_rev;
	if (revision <= import->last)
		return vd_error_set(reterr, VD_INVALID, "revision %lld does not follow %lld",
				    (long long) revision, (long long) import->last);
	if (import->group->event_count >= GATHER_MAX &&
	    vdi_mvcc_load_flush(import->mvcc, import->now) != VD_OK)
		return no_memory(reterr);
	for (size_t i = 0; i < count; i++) {
		VDI_CHECK(changes[i].kv->mod_rev == revision);
		if (import->importer->is_exact && i && changes[i].kv->sub <= changes[i - 1].kv->sub)
			return invalid_key(reterr, "out of its order within a transaction", changes[i].kv);
		VDI_TRY(take(import, &changes[i], (uint32_t) i, reterr));
	}
	import->last = revision;
	import->group->revision = VDI_MAX(import->group->revision, revision);
	return VD_OK;
}

static int order_changes(const void *a, const void *b)
{
	const struct vd_kv *left = ((const struct vdi_import_change *) a)->kv,
			   *right = ((const struct vdi_import_change *) b)->kv;

	if (left->mod_rev != right->mod_rev)
		return left->mod_rev < right->mod_rev ? -1 : 1;
	return vd_bytes_compare(vd_kv_key(left), vd_kv_key(right));
}

vd_status vdi_mvcc_import_snapshot(struct vdi_mvcc_import *import, vd_rev revision,
				   struct vdi_import_change *changes, size_t count, struct vd_error *reterr)
{
	if (import->last != 0)
		return vd_error_set(reterr, VD_INVALID, "a snapshot must come before all changes");
	if (count)
		qsort(changes, count, sizeof *changes, order_changes);
	for (size_t first = 0, end; first < count; first = end) {
		for (end = first + 1; end < count && changes[end].kv->mod_rev == changes[first].kv->mod_rev;)
			end++;
		for (size_t i = first; i < end; i++) {
			if (changes[i].is_delete || changes[i].kv->mod_rev > revision)
				return invalid_key(reterr, "not part of a snapshot", changes[i].kv);
			if (vdi_btree_snapshot_get(vdi_btree_view(&import->group->keys),
						   vd_kv_key(changes[i].kv)))
				return invalid_key(reterr, "one key twice in a snapshot", changes[i].kv);
		}
		VDI_TRY(vdi_mvcc_import_commit(import, changes + first, end - first, reterr));
	}
	import->last = VDI_MAX(import->last, revision);
	/* The snapshot has no record of older revisions, and a store's revision must be that of one of its
	 * records. So compaction is set to the newest record's revision. */
	import->compacted = import->group->revision;
	return VD_OK;
}

vd_status vdi_mvcc_import_compact(struct vdi_mvcc_import *import, vd_rev revision, struct vd_error *reterr)
{
	if (import->importer->is_exact)
		import->last = import->group->revision = VDI_MAX(import->group->revision, revision);
	if (revision > VDI_MAX(import->last, import->group->revision))
		return vd_error_set(reterr, VD_INVALID, "compaction at %lld, beyond the last revision %lld",
				    (long long) revision, (long long) import->last);
	import->compacted = VDI_MAX(import->compacted, VDI_MIN(revision, import->group->revision));
	return VD_OK;
}

vd_status vdi_mvcc_import_lease(struct vdi_mvcc_import *import, int64_t id, int64_t ttl_s,
				struct vd_error *reterr)
{
	if (id == 0 || ttl_s < 1 || vdi_lease_find(vdi_btree_view(&import->group->leases), id))
		return vd_error_set(reterr, VD_INVALID,
				    "lease %lld cannot be imported: id or ttl is invalid, or the id exists",
				    (long long) id);
	return vdi_group_lease_grant(import->group, id, ttl_s, import->now, vd_env_wall(import->mvcc->env)) ==
			       VD_OK ?
		       VD_OK :
		       no_memory(reterr);
}

/* ---- To the journal ---- */

struct journal_walk {
	struct vdi_mvcc_import *import;
	size_t			unsynced_bytes;
	uint64_t		done, reported;
};

static vd_status sync_walk(struct journal_walk *walk, struct vd_error *reterr)
{
	walk->unsynced_bytes = 0;
	return vdi_backend_sync(walk->import->mvcc->backend, reterr);
}

/* Makes one journal record of the events of a revision. */
static vd_status append_revision(struct journal_walk *walk, const struct vd_store_event *events, size_t count,
				 struct vd_error *reterr)
{
	struct vdi_group *group = walk->import->group;
	struct vdi_commit commit = { .revision = events[0].kv->mod_rev, .change_count = count };

	if (!vdi_grow((void **) &group->changes, &group->change_capacity, count, sizeof group->changes[0]))
		return no_memory(reterr);
	for (size_t i = 0; i < count; i++) {
		group->changes[i] = (struct vdi_change) { events[i].is_delete, events[i].kv,
							  events[i].previous, events[i].previous == NULL };
		walk->unsynced_bytes += events[i].kv->key_size + events[i].kv->value_size + 64;
	}
	commit.changes = group->changes;
	VDI_TRY(vdi_backend_append(walk->import->mvcc->backend, &commit, reterr));
	walk->done += count;
	if (walk->import->importer->progress && walk->done - walk->reported >= PROGRESS_CHANGES) {
		walk->reported = walk->done;
		walk->import->importer->progress(walk->import->importer->arg, walk->done,
						 walk->import->change_count);
	}
	return walk->unsynced_bytes >= SYNC_BYTES ? sync_walk(walk, reterr) : VD_OK;
}

static vd_status append_run(struct journal_walk *walk, const struct vd_store_event *events, size_t count,
			    struct vd_error *reterr)
{
	for (size_t first = 0, end; first < count; first = end) {
		for (end = first + 1; end < count && events[end].kv->mod_rev == events[first].kv->mod_rev;)
			end++;
		VDI_TRY(append_revision(walk, events + first, end - first, reterr));
	}
	return VD_OK;
}

static vd_status append_all(struct journal_walk *walk, struct vd_error *reterr)
{
	struct vdi_mvcc_log	    *log = &walk->import->mvcc->log;
	struct vdi_mvcc_log_cursor   cursor = { 0 };
	const struct vd_store_event *events;
	uint32_t		     count;
	vd_status		     status;

	if (log->end_index == 0)
		return VD_OK;
	status = vdi_mvcc_log_seek_index(log, 0, &cursor);
	while (status == VD_OK && (status = vdi_mvcc_log_run(log, &cursor, &events, &count)) == VD_OK) {
		status = append_run(walk, events, count, reterr);
		cursor.position += count;
	}
	vdi_mvcc_log_cursor_fini(&cursor);
	return status == VD_AGAIN ? VD_OK : status;
}

static vd_status write_journal(struct vdi_mvcc_import *import, struct vd_error *reterr)
{
	struct journal_walk walk = { .import = import };
	struct vdi_commit   compaction = { .compact = import->compacted };

	struct vdi_commit leases = { .leases = import->group->lease_changes,
				     .lease_count = import->group->lease_change_count };

	VDI_TRY(vdi_backend_mark(import->mvcc->backend, reterr));
	if (leases.lease_count)
		VDI_TRY(vdi_backend_append(import->mvcc->backend, &leases, reterr));
	VDI_TRY(append_all(&walk, reterr));
	if (import->compacted > 0)
		VDI_TRY(vdi_backend_append(import->mvcc->backend, &compaction, reterr));
	VDI_TRY(sync_walk(&walk, reterr));
	VDI_TRY(vdi_backend_unmark(import->mvcc->backend, reterr));
	import->mvcc->size_bytes = vdi_backend_size_bytes(import->mvcc->backend);
	return VD_OK;
}

/* ---- All of it ---- */

static vd_status check_empty(const struct vdi_group *group, struct vd_error *reterr)
{
	if (vdi_btree_count(&group->keys) == 0 && vdi_btree_count(&group->leases) == 0 &&
	    group->revision <= 1 && group->compacted < 0)
		return VD_OK;
	return vd_error_set(reterr, VD_EXISTS,
			    "the store is not empty: it has %llu keys and is at revision %lld",
			    (unsigned long long) vdi_btree_count(&group->keys), (long long) group->revision);
}

static void drop_compacted(struct vdi_mvcc_import *import)
{
	struct vdi_mvcc_log_chunk *chunk, *next;

	if (import->compacted <= 0)
		return;
	import->group->compacted = import->compacted;
	for (chunk = vdi_mvcc_log_compact(&import->mvcc->log, import->compacted); chunk; chunk = next) {
		next = chunk->next;
		vdi_mvcc_log_chunk_unref(chunk);
	}
}

vd_status vdi_mvcc_import_run(struct vdi_mvcc *mvcc, const struct vdi_mvcc_importer *importer,
			      struct vd_error *reterr)
{
	struct vdi_mvcc_import import = { .mvcc = mvcc,
					  .group = &mvcc->writer.group,
					  .importer = importer,
					  .now = vd_env_now(mvcc->env),
					  .compacted = -1 };

	VDI_TRY(check_empty(import.group, reterr));
	VDI_TRY(importer->run(importer->arg, &import, reterr));
	if (vdi_mvcc_load_flush(mvcc, import.now) != VD_OK)
		return no_memory(reterr);
	if (mvcc->backend &&
	    (import.change_count || import.group->lease_change_count || import.compacted > 0))
		VDI_TRY(write_journal(&import, reterr));
	import.group->lease_change_count = 0;
	drop_compacted(&import);
	return importer->is_exact ? vdi_mvcc_load_attach(mvcc) : VD_OK;
}
