#include "direct.h"

#include <stdio.h>

static void ignore_news(void *arg)
{
}

/* ---- Watches ---- */

struct direct_watch {
	struct world *world;
	vd_rev	      from;
	char	      prefix[64];
	bool	      previous, no_put, no_delete;
};

static bool watch_wants(const struct direct_watch *watch, const struct oracle_record *record)
{
	return strncmp(watch->world->oracle.keys[record->key].text, watch->prefix, strlen(watch->prefix)) ==
		       0 &&
	       !(watch->no_put && !record->is_delete) && !(watch->no_delete && record->is_delete);
}

static int next_wanted(const struct direct_watch *watch, int index)
{
	const struct oracle *oracle = &watch->world->oracle;

	while (index < oracle->record_count && !watch_wants(watch, &oracle->records[index]))
		index++;
	return index;
}

static vd_rev compacted_now(struct world *world)
{
	struct vd_store_status status;

	return vd_store_status_get(world->store, &status) == VD_OK ? status.compacted : 0;
}

static void check_event(const struct direct_watch *watch, const struct vd_store_event *event, int index)
{
	struct world		   *world = watch->world;
	const struct oracle	   *oracle = &world->oracle;
	const struct oracle_record *record = index < oracle->record_count ? &oracle->records[index] : NULL;
	const struct oracle_record *previous =
		record && record->previous >= 0 ? &oracle->records[record->previous] : NULL;

	if (record == NULL || event->kv->mod_rev != record->revision ||
	    !vd_bytes_equal(vd_kv_key(event->kv), vd_bytes_of(oracle->keys[record->key].text)))
		sim_fail(world, record && event->kv->mod_rev > record->revision ? "reliable" : "unique",
			 "the store's watch from %lld on '%s' gives %lld, %lld was next",
			 (long long) watch->from, watch->prefix, (long long) event->kv->mod_rev,
			 record ? (long long) record->revision : 0);
	if (event->is_delete != record->is_delete ||
	    (!event->is_delete && !oracle_same(oracle, record, event->kv)))
		sim_fail(world, "right object", "the store's watch from %lld gives another %lld",
			 (long long) watch->from, (long long) record->revision);
	if (event->previous &&
	    (!watch->previous || previous == NULL || !oracle_same(oracle, previous, event->previous)))
		sim_fail(world, "right previous value", "the store's watch from %lld, at %lld",
			 (long long) watch->from, (long long) record->revision);
	/* The event at the compacted revision has no previous state. The store may have trimmed its history
	 * since the test last checked. */
	if (watch->previous && previous && event->previous == NULL &&
	    previous->revision >= world->compacted_max && record->revision > compacted_now(world))
		sim_fail(world, "right previous value", "the store's watch from %lld lacks it at %lld",
			 (long long) watch->from, (long long) record->revision);
}

/* Reads all available events; returns the status that ended it. */
static vd_status watch_all(const struct direct_watch *watch)
{
	struct world		     *world = watch->world;
	char			      end[64];
	size_t			      size = strlen(watch->prefix);
	struct vd_store_watch_request request = { .key = { watch->prefix, size },
						  .range_end = { end, size },
						  .start_revision = watch->from,
						  .previous = watch->previous,
						  .no_put = watch->no_put,
						  .no_delete = watch->no_delete,
						  .ready = ignore_news };
	struct vd_store_watch	     *opened;
	struct vd_store_batch	      batch;
	struct vd_error		      error = { 0 };
	vd_status		      status;
	vd_rev			      last = 0;
	int index = next_wanted(watch, oracle_after(&world->oracle, watch->from - 1));

	memcpy(end, watch->prefix, size);
	end[size - 1]++;
	if (vd_store_watch_open(world->store, &request, &opened, &error) != VD_OK)
		sim_fail(world, "errors are true", "the store refuses a watch: %s", error.message);
	while ((status = vd_store_watch_next(opened, 1 + roll(world, 50), &batch, &error)) == VD_OK) {
		if (batch.event_count && batch.events[0].kv->mod_rev <= last)
			sim_fail(world, "atomic", "the store's watch gives %lld in two batches",
				 (long long) last);
		for (size_t i = 0; i < batch.event_count; i++) {
			check_event(watch, &batch.events[i], index);
			last = batch.events[i].kv->mod_rev;
			index = next_wanted(watch, index + 1);
		}
	}
	vd_store_watch_close(opened);
	if (status == VD_AGAIN && index < world->oracle.record_count)
		sim_fail(world, "reliable", "the store's watch from %lld on '%s' stops before %lld",
			 (long long) watch->from, watch->prefix,
			 (long long) world->oracle.records[index].revision);
	if (status == VD_EXPIRED && error.compacted <= watch->from)
		sim_fail(world, "errors are true", "the store's watch from %lld is expired by %lld",
			 (long long) watch->from, (long long) error.compacted);
	return status;
}

/* ---- Ranges ---- */

struct direct_range {
	struct world *world;
	vd_status     status;
};

static void range_came(void *arg, vd_status status, const struct vd_range_result *result,
		       const struct vd_error *error)
{
	((struct direct_range *) arg)->status = status;
}

static vd_status range_status(struct world *world, vd_rev revision)
{
	struct vd_range_request request = {
		.key = { "/", 1 }, .range_end = { "0", 1 }, .revision = revision, .count_only = true
	};
	struct direct_range range = { world, VD_AGAIN };

	if (vd_store_range(world->store, &request, range_came, &range) != VD_OK)
		return VD_CLOSED;
	return range.status;
}

/* ---- Entry points ---- */

void direct_check_compaction(struct world *world, vd_rev revision)
{
	struct direct_watch watch = {
		.world = world, .from = revision, .prefix = "/registry/", .previous = true
	};
	vd_status status;

	oracle_drain(&world->oracle);
	if (revision > world->oracle.revision || revision < 2)
		return;
	oracle_compare_store(&world->oracle, world->store, revision);
	status = watch_all(&watch);
	if (status != VD_AGAIN)
		sim_fail(world, "errors are true", "compacted to %lld, but a watch from there ends with %s",
			 (long long) revision, vd_status_name(status));
	if (range_status(world, revision - 1) != VD_EXPIRED)
		sim_fail(world, "errors are true", "compacted to %lld, but a range at %lld is answered",
			 (long long) revision, (long long) revision - 1);
	watch.from = revision - 1;
	if (watch_all(&watch) != VD_EXPIRED)
		sim_fail(world, "errors are true", "compacted to %lld, but a watch from %lld goes on",
			 (long long) revision, (long long) revision - 1);
}

void direct_look(struct world *world)
{
	static const char *const prefixes[] = { "/registry/", SIM_PODS, SIM_WIDGETS, SIM_PODS "ns0/",
						SIM_PODS "ns1/p0" };
	struct direct_watch	 watch = { .world = world };
	vd_rev			 revision;

	oracle_drain(&world->oracle);
	revision = 1 + (vd_rev) roll(world, (uint64_t) world->oracle.revision);
	if (chance(world, 500)) {
		if (revision >= world->compacted_max || range_status(world, revision) == VD_OK)
			oracle_compare_store(&world->oracle, world->store, revision);
		return;
	}
	watch.from = revision;
	snprintf(watch.prefix, sizeof watch.prefix, "%s", prefixes[roll(world, VDI_ARRAY_SIZE(prefixes))]);
	watch.previous = chance(world, 500);
	watch.no_put = chance(world, 100);
	watch.no_delete = !watch.no_put && chance(world, 100);
	(void) watch_all(&watch);
}
