/* Records arrive in revision order: first those that compaction kept (at most one per key, at or below the
 * compacted revision), then all newer ones. They are only gathered; mvcc_build.c makes trees and history once
 * all are known.
 *
 * Leases are attached to the live keys whose records name them, as etcd does after a restart. This happens
 * last, when the live keys are known. */
#include "mvcc_load.h"

#include "mvcc_build.h"

/* Maximum records to allocate room for in advance, because the record count is only an estimate. */
#define RECORDS_EXPECTED_MAX ((int64_t) 4 << 20)

struct loader {
	struct vdi_mvcc	     *mvcc;
	struct vdi_group     *group;
	struct vdi_mvcc_build build;
	bool		      has_leases; /* at least one record names a lease */
	vd_mono		      now;
	vd_wall		      wall;
};

static vd_status load_begin(void *arg, vd_rev compacted, vd_rev revision_min, int64_t record_count_estimate)
{
	struct loader *loader = arg;

	loader->group->compacted = compacted;
	loader->group->revision = VDI_MAX(revision_min, 1);
	loader->mvcc->log.floor = VDI_MAX(compacted, 0);
	return vdi_mvcc_build_expect(
		&loader->build, (size_t) VDI_MIN(VDI_MAX(record_count_estimate, 0), RECORDS_EXPECTED_MAX));
}

vd_status vdi_mvcc_load_flush(struct vdi_mvcc *mvcc, vd_mono now)
{
	struct vdi_group      *group = &mvcc->writer.group;
	struct vdi_mvcc_state *state;
	vd_status	       status;

	if (group->event_count == 0)
		return VD_OK;
	status = vdi_mvcc_state_new(&state);
	if (status != VD_OK)
		return status;
	status = vdi_mvcc_log_prepare(&mvcc->log, group->events, group->event_count,
				      vdi_btree_count(&group->keys), now);
	if (status == VD_OK) {
		state->revision = group->events[group->event_count - 1].kv->mod_rev;
		state->compacted = group->compacted;
		vdi_btree_snapshot(&group->keys, &state->keys);
		vdi_mvcc_log_commit(&mvcc->log, state);
		group->event_count = 0;
	}
	vdi_mvcc_state_unref(state);
	return status;
}

static vd_status load_change(void *arg, struct vd_kv *kv, bool is_delete)
{
	struct loader *loader = arg;

	loader->group->revision = VDI_MAX(loader->group->revision, kv->mod_rev);
	loader->has_leases |= kv->lease != 0;
	return vdi_mvcc_build_add(&loader->build, kv, is_delete);
}

/* Unlike etcd, which starts each lease anew with its full TTL, keeps the deadline across the restart, but
 * grants time to renew (VDI_LEASE_GRACE_S), because clients could not renew while the store was down. */
static vd_status load_lease(void *arg, int64_t id, int64_t ttl_s, vd_wall deadline)
{
	struct loader	 *loader = arg;
	int64_t		  ttl_ns = VDI_MIN(ttl_s, VDI_LEASE_TTL_NS_S_MAX) * 1000000000;
	int64_t		  grace_ns = VDI_MIN(ttl_ns, (int64_t) VDI_LEASE_GRACE_S * 1000000000);
	int64_t		  left_ns = deadline.ns > loader->wall.ns ? deadline.ns - loader->wall.ns : 0;
	struct vdi_lease *lease;
	vd_status	  status;

	left_ns = VDI_MIN(VDI_MAX(left_ns, grace_ns), ttl_ns);
	VDI_TRY(vdi_lease_new(id, ttl_s, vd_mono_add(loader->now, (vd_dur) { left_ns }), &lease));
	status = vdi_btree_put(&loader->group->leases, lease, NULL);
	if (status == VD_OK)
		status = vdi_btree_put(&loader->group->lease_deadlines, lease, NULL);
	vdi_lease_unref(lease);
	return status;
}

vd_status vdi_mvcc_load_attach(struct vdi_mvcc *mvcc)
{
	struct vdi_btree_cursor cursor;
	const struct vd_kv     *kv;
	struct vdi_lease_key   *attachment;
	vd_status		status = VD_OK;

	vdi_btree_cursor_init(&cursor, vdi_btree_view(&mvcc->writer.group.keys));
	for (kv = vdi_btree_cursor_first(&cursor); kv && status == VD_OK;
	     kv = vdi_btree_cursor_next(&cursor)) {
		if (kv->lease == 0)
			continue;
		status = vdi_lease_key_new(kv->lease, vd_kv_key(kv), &attachment);
		if (status == VD_OK) {
			status = vdi_btree_put(&mvcc->writer.group.lease_keys, attachment, NULL);
			vdi_lease_key_unref(attachment);
		}
	}
	return status;
}

vd_status vdi_mvcc_load(struct vdi_mvcc *mvcc, const struct vdi_backend_tuning *tuning,
			struct vd_error *reterr)
{
	struct loader		loader = { mvcc, &mvcc->writer.group, .now = vd_env_now(mvcc->env),
					   .wall = vd_env_wall(mvcc->env) };
	struct vdi_backend_sink sink = { load_begin, load_change, load_lease, &loader };
	vd_status		status =
		vdi_backend_open_tuned(mvcc->env, &mvcc->options, tuning, &sink, &mvcc->backend, reterr);

	if (status != VD_OK) {
		vdi_mvcc_build_fini(&loader.build);
		return status;
	}
	status = vdi_mvcc_build_finish(&loader.build, loader.group, &mvcc->log, loader.now);
	vdi_mvcc_build_fini(&loader.build);
	if (status == VD_OK && loader.has_leases)
		status = vdi_mvcc_load_attach(mvcc);
	if (status != VD_OK)
		return vd_error_set(reterr, status, "mvcc: out of memory while loading the data directory");
	mvcc->size_bytes = vdi_backend_size_bytes(mvcc->backend);
	return VD_OK;
}
