/* Compaction to C keeps the newest record at or before C of each key, unless that is a tombstone before C,
 * and all records after C. So a record is dead if it is a tombstone before C, or if the record that
 * supersedes it is not after C. The latter is known only later in revision order. Therefore one pass over the
 * records at or before C gathers their predecessors, and the delivering pass omits these. The number of
 * gathered records is at most that of the records that compaction has not removed yet. */
#include <stdlib.h>

#include "load.h"

void vdi_load_init(struct vdi_load *load, const struct vdi_backend_sink *sink)
{
	*load = (struct vdi_load) { .compacted = -1, .sink = sink };
}

void vdi_load_fini(struct vdi_load *load)
{
	vdi_lease_table_fini(&load->leases);
	vdi_free(load->dead);
}

static vd_status senseless(const struct vdi_segment_record *record, struct vd_error *reterr)
{
	return vd_error_set(
		reterr, VD_CORRUPT,
		"journal record %llu (offset %lld, revision %lld) is complete but its content is invalid",
		(unsigned long long) record->index, (long long) record->offset, (long long) record->revision);
}

vd_status vdi_load_survey(void *arg, const struct vdi_segment_record *record, struct vd_error *reterr)
{
	struct vdi_load		*load = arg;
	struct vdi_commit_reader reader;

	if (vdi_commit_reader_init(&reader, record->revision, record->payload) != VD_OK)
		return senseless(record, reterr);
	load->record_count += (int64_t) reader.change_count;
	if (reader.compact > 0)
		load->compacted = VDI_MAX(load->compacted, reader.compact);
	return VD_OK;
}

vd_status vdi_load_bury_record(struct vdi_load *load, const struct vdi_record *record)
{
	if (record->previous_rev == 0)
		return VD_OK;
	if (!vdi_grow((void **) &load->dead, &load->dead_capacity, load->dead_count + 1, sizeof *load->dead))
		return VD_NOMEM;
	load->dead[load->dead_count++] =
		(struct vdi_load_place) { record->previous_rev, record->previous_sub };
	return VD_OK;
}

vd_status vdi_load_bury(void *arg, const struct vdi_segment_record *journal_record, struct vd_error *reterr)
{
	struct vdi_load		*load = arg;
	struct vdi_commit_reader reader;
	struct vdi_record	 record;

	if (journal_record->revision > load->compacted)
		return VD_OK;
	if (vdi_commit_reader_init(&reader, journal_record->revision, journal_record->payload) != VD_OK)
		return senseless(journal_record, reterr);
	while (reader.change_count) {
		if (vdi_commit_reader_record(&reader, &record, NULL) != VD_OK)
			return senseless(journal_record, reterr);
		if (vdi_load_bury_record(load, &record) != VD_OK)
			return vd_error_set(reterr, VD_NOMEM, "out of memory");
	}
	return VD_OK;
}

static int order_places(const void *a, const void *b)
{
	const struct vdi_load_place *left = a, *right = b;

	if (left->revision != right->revision)
		return left->revision < right->revision ? -1 : 1;
	return VDI_ORDER(left->sub, right->sub);
}

vd_status vdi_load_begin(struct vdi_load *load)
{
	if (load->dead_count)
		qsort(load->dead, load->dead_count, sizeof *load->dead, order_places);
	load->revision = VDI_MAX(load->revision, load->compacted);
	return load->sink->begin(load->sink->arg, load->compacted, load->revision, load->record_count);
}

static bool is_dead(struct vdi_load *load, vd_rev revision, uint32_t sub, bool is_delete)
{
	struct vdi_load_place place = { revision, sub };

	while (load->dead_next < load->dead_count && order_places(&load->dead[load->dead_next], &place) < 0)
		load->dead_next++;
	if (is_delete && revision < load->compacted)
		return true;
	return load->dead_next < load->dead_count && order_places(&load->dead[load->dead_next], &place) == 0;
}

vd_status vdi_load_deliver_kv(struct vdi_load *load, struct vd_kv *kv, bool is_delete)
{
	if (!is_dead(load, kv->mod_rev, kv->sub, is_delete))
		return load->sink->change(load->sink->arg, kv, is_delete);
	vd_kv_unref(kv);
	return VD_OK;
}

static vd_status deliver_record(struct vdi_load *load, const struct vdi_record *record)
{
	struct vd_kv *kv;

	if (is_dead(load, record->mod_rev, record->sub, record->is_delete))
		return VD_OK;
	VDI_TRY(vdi_record_kv(record, &kv));
	return load->sink->change(load->sink->arg, kv, record->is_delete);
}

vd_status vdi_load_deliver(void *arg, const struct vdi_segment_record *journal_record,
			   struct vd_error *reterr)
{
	struct vdi_load		*load = arg;
	struct vdi_commit_reader reader;
	struct vdi_record	 record;
	struct vdi_lease_change	 lease;
	vd_status status = vdi_commit_reader_init(&reader, journal_record->revision, journal_record->payload);

	while (status == VD_OK && reader.change_count) {
		status = vdi_commit_reader_record(&reader, &record, NULL);
		if (status == VD_OK) {
			status = deliver_record(load, &record);
			if (status != VD_OK)
				return vd_error_set(reterr, status, "%s", vd_status_sentence(status));
		}
	}
	while (status == VD_OK && reader.lease_count) {
		status = vdi_commit_reader_lease(&reader, &lease);
		if (status == VD_OK && vdi_lease_table_apply(&load->leases, &lease) != VD_OK)
			return vd_error_set(reterr, VD_NOMEM, "out of memory");
	}
	if (status == VD_OK)
		status = vdi_commit_reader_end(&reader);
	return status == VD_OK ? VD_OK : senseless(journal_record, reterr);
}

vd_status vdi_load_end(struct vdi_load *load)
{
	for (size_t i = 0; i < load->leases.capacity; i++) {
		const struct vdi_lease_entry *entry = &load->leases.entries[i];

		if (entry->is_alive)
			VDI_TRY(load->sink->lease(load->sink->arg, entry->id, entry->ttl_s, entry->deadline));
	}
	return VD_OK;
}
