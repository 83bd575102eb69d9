#include "writer.h"

#include <stdio.h>
#include <stdlib.h>

#define OPS_MAX 60000
#define RAW_MAX 6

enum op_state { OP_UNUSED, OP_PENDING, OP_ACKNOWLEDGED, OP_REFUSED, OP_UNKNOWN };
enum op_kind { OP_CREATE, OP_UPDATE, OP_UPSERT, OP_DELETE, OP_NO_OP, OP_RAW, OP_LEASE };

struct op {
	struct world *world;
	enum op_state state;
	enum op_kind  kind;
	int	      cacher;
	int	      keys[RAW_MAX];
	bool	      deletes[RAW_MAX];
	char	      values[RAW_MAX][640];
	unsigned      key_count;
	uint64_t      seq;
	vd_rev	      started;	  /* all revisions up to here were known when the write began */
	vd_rev	      decided_on; /* revision of the state that the last decision saw; 0: none */
	unsigned      decisions;
	bool	      has_precondition;
	vd_rev	      seen;   /* revision it has in the log; 0: not (yet) */
	vd_rev	      answer; /* acknowledged, not yet compared */
	bool	      had_object;
};

struct writers {
	struct op *ops[OPS_MAX]; /* by seq; details are dropped when nothing can follow */
	uint64_t   seq_next;
	unsigned   outstanding;
	int64_t	   leases[64];
	unsigned   lease_count;
};

struct writers *writers_new(struct world *world)
{
	struct writers *writers = calloc(1, sizeof *writers);

	writers->seq_next = 1;
	return writers;
}

void writers_free(struct writers *writers)
{
	for (uint64_t i = 0; i < OPS_MAX; i++)
		free(writers->ops[i]);
	free(writers);
}

unsigned writers_outstanding(const struct world *world)
{
	return world->writers->outstanding;
}

/* ---- Content ---- */

static void make_value(struct world *world, struct op *op, unsigned index)
{
	const struct oracle_key *key = &world->oracle.keys[op->keys[index]];
	char			 labels[64] = "", spec[64] = "", pad[200] = "";
	size_t			 pad_size = chance(world, 200) ? roll(world, sizeof pad - 1) : 0;
	bool			 has_app = chance(world, 800), has_tier = chance(world, 500);

	if (has_app || has_tier) {
		char app[24] = "", tier[24] = "";

		if (has_app)
			snprintf(app, sizeof app, "\"app\":\"%c\"", 'a' + (char) roll(world, 3));
		if (has_tier)
			snprintf(tier, sizeof tier, "\"tier\":\"t%u\"", (unsigned) roll(world, 2));
		snprintf(labels, sizeof labels, ",\"labels\":{%s%s%s}", app, has_app && has_tier ? "," : "",
			 tier);
	}
	if (chance(world, 700))
		snprintf(spec, sizeof spec, "\"nodeName\":\"n%u\"", (unsigned) roll(world, 4));
	memset(pad, 'x', pad_size);
	snprintf(op->values[index], sizeof op->values[index],
		 "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\"%s%s%s,\"uid\":\"u-%s\"%s},\"spec\":{%s},"
		 "\"status\":{\"phase\":\"%s\",\"seq\":\"%llu\"},"
		 "\"pad\":\"%s\"}",
		 key->name, key->namespace_name[0] ? ",\"namespace\":\"" : "", key->namespace_name,
		 key->namespace_name[0] ? "\"" : "", key->name, labels, spec,
		 chance(world, 500) ? "Running" : "Pending", (unsigned long long) op->seq, pad);
}

static int random_key(struct world *world, int *ret_cacher)
{
	char	 text[64];
	unsigned which = (unsigned) roll(world, 100);

	*ret_cacher = which < 75 ? 0 : 1;
	if (which < 75)
		snprintf(text, sizeof text, SIM_PODS "ns%u/p%02u",
			 (unsigned) roll(world, world->swarm.namespaces),
			 (unsigned) roll(world, world->swarm.names));
	else
		snprintf(text, sizeof text, SIM_WIDGETS "w%02u", (unsigned) roll(world, world->swarm.names));
	return oracle_key(&world->oracle, vd_bytes_of(text));
}

/* ---- Results ---- */

static void compare(struct op *op)
{
	struct world  *world = op->world;
	struct oracle *oracle = &world->oracle;
	vd_rev	       revision = op->answer;

	op->answer = 0;
	for (unsigned i = 0; i < op->key_count; i++) {
		const struct oracle_record *record = oracle_exactly(oracle, op->keys[i], revision);
		const struct oracle_record *previous;

		if (op->kind == OP_RAW && op->deletes[i] && (record == NULL || record->is_delete))
			continue;
		if (record == NULL)
			sim_fail(world, "acknowledged writes are there",
				 "write %llu was acknowledged at %lld, the log has nothing of it",
				 (unsigned long long) op->seq, (long long) revision);
		previous = record->previous < 0 ? NULL : &oracle->records[record->previous];
		if (op->kind == OP_DELETE ? !record->is_delete : strcmp(record->value, op->values[i]) != 0)
			sim_fail(world, "acknowledged writes are there",
				 "write %llu was acknowledged at %lld, the log has something else there",
				 (unsigned long long) op->seq, (long long) revision);
		if (op->kind == OP_CREATE && previous)
			sim_fail(world, "no lost update", "create %llu at %lld replaced something",
				 (unsigned long long) op->seq, (long long) revision);
		if ((op->kind == OP_UPDATE || op->kind == OP_UPSERT) &&
		    op->decided_on != (previous ? previous->revision : 0))
			sim_fail(world, "no lost update",
				 "update %llu at %lld was decided on %lld, but replaced %lld",
				 (unsigned long long) op->seq, (long long) revision,
				 (long long) op->decided_on, (long long) (previous ? previous->revision : 0));
		if (op->kind == OP_DELETE && op->decided_on &&
		    op->decided_on != (previous ? previous->revision : 0))
			sim_fail(world, "no lost update", "deletion at %lld was decided on %lld",
				 (long long) revision, (long long) op->decided_on);
	}
}

void writers_check_pending(struct world *world)
{
	for (uint64_t i = 1; i < world->writers->seq_next; i++)
		if (world->writers->ops[i] && world->writers->ops[i]->answer)
			compare(world->writers->ops[i]);
}

void writers_saw(struct world *world, const struct oracle_record *record)
{
	struct writers *writers = world->writers;
	struct op      *op;

	if (record->is_delete)
		return;
	if (record->lease && writers->lease_count < VDI_ARRAY_SIZE(writers->leases))
		writers->leases[writers->lease_count++] = record->lease;
	if (record->facts.seq == 0 || record->facts.seq >= writers->seq_next ||
	    (op = writers->ops[record->facts.seq]) == NULL)
		sim_fail(world, "right object", "revision %lld holds what nobody wrote: %s",
			 (long long) record->revision, record->value);
	if (op->state == OP_REFUSED)
		sim_fail(world, "refused writes stay away", "write %llu was refused, but is at %lld",
			 (unsigned long long) op->seq, (long long) record->revision);
	/* An update without a change of the value removes the lease, which is a change. */
	if (record->previous >= 0 && world->oracle.records[record->previous].lease && record->lease == 0 &&
	    strcmp(record->value, world->oracle.records[record->previous].value) == 0)
		return;
	if (op->seen && op->seen != record->revision)
		sim_fail(world, "unique", "write %llu is at %lld and again at %lld",
			 (unsigned long long) op->seq, (long long) op->seen, (long long) record->revision);
	if (op->state == OP_UNKNOWN && !op->seen)
		world->marks.lost_answer_applied++;
	if (op->state == OP_ACKNOWLEDGED && op->answer != record->revision && op->seen != record->revision)
		sim_fail(world, "acknowledged writes are there",
			 "write %llu appears at %lld, it was acknowledged elsewhere",
			 (unsigned long long) op->seq, (long long) record->revision);
	op->seen = record->revision;
}

/* Returns true if the write may have happened in spite of this status. */
static bool is_unknown(vd_status status)
{
	return status == VD_UNAVAILABLE || status == VD_TIMEOUT || status == VD_IO || status == VD_CLOSED ||
	       status == VD_CANCELED;
}

static void check_refusal(struct op *op, vd_status status)
{
	struct world  *world = op->world;
	struct oracle *oracle = &world->oracle;

	oracle_drain(oracle);
	/* While the store closes, it may answer writes that the oracle sees only after it is opened again. */
	switch (status) {
	case VD_EXISTS:
		if (oracle->watch == NULL)
			break;
		if (op->kind != OP_CREATE ||
		    !oracle_existed(oracle, op->keys[0], op->started, oracle->revision, true))
			sim_fail(world, "errors are true", "write %llu: exists, but it did not",
				 (unsigned long long) op->seq);
		break;
	case VD_NOT_FOUND:
		if (oracle->watch == NULL)
			break;
		if (op->kind == OP_CREATE || op->kind == OP_UPSERT ||
		    !oracle_existed(oracle, op->keys[0], op->started, oracle->revision, false))
			sim_fail(world, "errors are true",
				 "write %llu: not found, but it was there all the time",
				 (unsigned long long) op->seq);
		break;
	case VD_PRECONDITION:
		if (!op->has_precondition)
			sim_fail(world, "errors are true", "write %llu: no precondition was given",
				 (unsigned long long) op->seq);
		world->marks.precondition_failed++;
		break;
	case VD_FULL: world->marks.store_full++; break;
	case VD_NO_SPACE: world->marks.disk_full++; break;
	case VD_LEASE_NOT_FOUND: /* it expired between grant and put */ break;
	default:
		sim_fail(world, "errors are true", "write %llu fails with %s", (unsigned long long) op->seq,
			 vd_status_name(status));
	}
}

static void finish(struct op *op, vd_status status, vd_rev revision, bool wrote)
{
	struct world *world = op->world;

	if (op->state != OP_PENDING)
		sim_fail(world, "one answer", "write %llu is answered twice", (unsigned long long) op->seq);
	world->writers->outstanding--;
	if (status == VD_OK) {
		op->state = OP_ACKNOWLEDGED;
		sim_trace(world, "write %llu ok at %lld", (unsigned long long) op->seq, (long long) revision);
		/* An answered write is durable, so the store has published it. */
		op->answer = wrote ? revision : 0;
		oracle_reach(&world->oracle, revision, "the answer of a write");
		world->acknowledged = VDI_MAX(world->acknowledged, revision);
		if (!wrote)
			return;
		if (world->oracle.revision >= revision)
			compare(op);
		return;
	}
	sim_trace(world, "write %llu %s", (unsigned long long) op->seq, vd_status_name(status));
	if (is_unknown(status)) {
		bool may = world->swarm.chaos.refuse || world->swarm.chaos.lose_answer || world->is_down ||
			   world->is_closing || world->crash_armed || world->trouble_armed ||
			   world->restarts || world->swarm.disk_trouble;

		if (!may)
			sim_fail(world, "errors are true", "write %llu fails with %s in calm waters",
				 (unsigned long long) op->seq, vd_status_name(status));
		op->state = OP_UNKNOWN;
		if (op->seen)
			world->marks.lost_answer_applied++;
		return;
	}
	op->state = OP_REFUSED;
	if (op->seen)
		sim_fail(world, "refused writes stay away", "write %llu fails with %s, but is at %lld",
			 (unsigned long long) op->seq, vd_status_name(status), (long long) op->seen);
	check_refusal(op, status);
}

/* ---- Through a cacher ---- */

/* The answer to an update without a change was the present state at some time since it began. */
static void check_present(struct op *op, vd_rev revision)
{
	const struct oracle	*oracle = &op->world->oracle;
	const struct oracle_key *key = &oracle->keys[op->keys[0]];

	for (size_t i = 1; i < key->record_count; i++)
		if (oracle->records[key->records[i - 1]].revision == revision &&
		    oracle->records[key->records[i]].revision <= op->started)
			sim_fail(op->world, "consistent reads",
				 "update %llu without change answers %lld, which had been replaced by %lld "
				 "before",
				 (unsigned long long) op->seq, (long long) revision,
				 (long long) oracle->records[key->records[i]].revision);
}

static void answered(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
		     const struct vd_error *error)
{
	struct op    *op = arg;
	struct world *world = op->world;

	SIM_ATOMIC(world);
	if (op->decisions > 1 && (op->kind == OP_UPDATE || op->kind == OP_UPSERT) && status == VD_OK)
		world->marks.conflict_retry++;
	if (status == VD_OK && op->kind == OP_NO_OP) {
		/* The present state was the answer, and nothing was written. */
		world->marks.no_op_update++;
		if (object) {
			oracle_reach(&world->oracle, vd_object_revision(object), "a write without change");
			check_present(op, vd_object_revision(object));
		}
		finish(op, status, object ? vd_object_revision(object) : 1, false);
		return;
	}
	if (status == VD_OK && object && op->kind != OP_DELETE && vd_object_revision(object) != revision)
		sim_fail(world, "right object", "write %llu: object of %lld at %lld",
			 (unsigned long long) op->seq, (long long) vd_object_revision(object),
			 (long long) revision);
	finish(op, status, revision, true);
}

static vd_status decide(void *arg, struct vd_object *current, struct vd_bytes *ret_value, int64_t *ret_ttl_s,
			struct vd_error *reterr)
{
	struct op    *op = arg;
	struct world *world = op->world;

	SIM_ATOMIC(world);
	op->decisions++;
	op->decided_on = current ? vd_object_revision(current) : 0;
	if (current) {
		const struct oracle_record *record;

		oracle_reach(&world->oracle, op->decided_on, "an update's present state");
		record = oracle_exactly(&world->oracle, op->keys[0], op->decided_on);
		if (record == NULL ? world->oracle.watch != NULL :
				     !oracle_same(&world->oracle, record, vd_object_kv(current)))
			sim_fail(world, "right object", "update %llu is shown something that was never there",
				 (unsigned long long) op->seq);
	}
	if (op->kind == OP_NO_OP && current) {
		*ret_value = vd_kv_value(vd_object_kv(current));
		return VD_OK;
	}
	*ret_value = vd_bytes_of(op->values[0]);
	return VD_OK;
}

static vd_status validate(void *arg, struct vd_object *current, struct vd_error *reterr)
{
	struct op *op = arg;

	op->decided_on = vd_object_revision(current);
	return VD_OK;
}

static vd_status start_cacher_op(struct world *world, struct op *op)
{
	struct vd_cacher	   *cacher = world->cachers[op->cacher].cacher;
	const struct oracle_key	   *key = &world->oracle.keys[op->keys[0]];
	struct vd_bytes		    ns = vd_bytes_of(key->namespace_name), name = vd_bytes_of(key->name);
	struct vd_preconditions	    preconditions = { { 0 } };
	struct vd_preconditions	   *asked = NULL;
	const struct oracle_record *record = oracle_at(&world->oracle, op->keys[0], world->oracle.revision);
	char			    text[24];
	bool			    validates;
	vd_status		    status;
	int64_t ttl_s = world->swarm.leases && chance(world, 150) ? 2 + (int64_t) roll(world, 10) : 0;

	if (record && op->kind != OP_CREATE && chance(world, 100)) {
		op->has_precondition = true;
		snprintf(text, sizeof text, "%lld",
			 (long long) record->revision - (chance(world, 300) ? 1 : 0));
		preconditions.revision = vd_bytes_of(text);
		asked = &preconditions;
	}
	switch (op->kind) {
	case OP_CREATE:
		SIM_PREEMPTIBLE(world, status = vd_cacher_create(cacher, ns, name, vd_bytes_of(op->values[0]),
								 ttl_s, answered, op));
		break;
	case OP_DELETE:
		validates = chance(world, 500);
		SIM_PREEMPTIBLE(world, status = vd_cacher_delete(cacher, ns, name, asked,
								 validates ? validate : NULL, answered, op));
		break;
	default:
		SIM_PREEMPTIBLE(world, status = vd_cacher_update(cacher, ns, name, op->kind == OP_UPSERT,
								 asked, decide, answered, op));
	}
	return status;
}

/* ---- Raw transactions ---- */

static void raw_answered(void *arg, vd_status status, const struct vd_txn_result *result,
			 const struct vd_error *error)
{
	struct op *op = arg;
	bool	   wrote = false;

	SIM_ATOMIC(op->world);
	if (status == VD_OK)
		for (size_t i = 0; i < result->result_count; i++)
			wrote |= result->results[i].kind == VD_OP_PUT || result->results[i].deleted > 0;
	if (status == VD_OK && !result->succeeded) {
		/* The compare failed: no part of it may ever be visible. */
		op->world->writers->outstanding--;
		op->state = op->seen ? OP_ACKNOWLEDGED : OP_REFUSED;
		if (op->seen)
			sim_fail(op->world, "refused writes stay away",
				 "transaction %llu did not succeed, but is at %lld",
				 (unsigned long long) op->seq, (long long) op->seen);
		return;
	}
	finish(op, status, status == VD_OK ? result->revision : 0, wrote);
}

static vd_status start_raw(struct world *world, struct op *op)
{
	struct vd_op	      ops[RAW_MAX] = { { 0 } };
	struct vd_compare     compare_key = { .target = VD_COMPARE_MOD };
	struct vd_txn_request request = { .success = ops };
	unsigned	      wanted = 2 + (unsigned) roll(world, RAW_MAX - 1), tries = 0;
	int		      cacher;
	vd_status	      status;

	op->key_count = 0;
	while (op->key_count < wanted && tries++ < 30) {
		int  key = random_key(world, &cacher);
		bool is_there = false;

		for (unsigned i = 0; i < op->key_count; i++)
			is_there |= op->keys[i] == key;
		if (!is_there) {
			op->keys[op->key_count] = key;
			op->deletes[op->key_count] = chance(world, 200);
			make_value(world, op, op->key_count++);
		}
	}
	for (unsigned i = 0; i < op->key_count; i++) {
		ops[i].kind = op->deletes[i] ? VD_OP_DELETE : VD_OP_PUT;
		ops[i].key = vd_bytes_of(world->oracle.keys[op->keys[i]].text);
		if (!op->deletes[i])
			ops[i].value = vd_bytes_of(op->values[i]);
	}
	request.success_count = op->key_count;
	if (chance(world, 300)) {
		const struct oracle_record *record =
			oracle_at(&world->oracle, op->keys[0], world->oracle.revision);

		compare_key.key = ops[0].key;
		compare_key.number = (record ? record->revision : 0) + (chance(world, 200) ? 1 : 0);
		request.compares = &compare_key;
		request.compare_count = 1;
	}
	SIM_PREEMPTIBLE(world, status = vd_store_txn(world->chaos, &request, raw_answered, op));
	return status;
}

/* ---- Leases and compaction ---- */

static void lease_answered(void *arg, vd_status status, const struct vd_lease_result *result,
			   const struct vd_error *error)
{
}

static void revoke_answered(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	struct world *world = arg;

	SIM_ATOMIC(world);
	if (status == VD_OK)
		oracle_reach(&world->oracle, revision, "the answer of a revocation");
}

static void touch_lease(struct world *world)
{
	struct writers *writers = world->writers;
	unsigned	index;
	vd_status	status;

	if (writers->lease_count == 0)
		return;
	index = (unsigned) roll(world, writers->lease_count);
	if (chance(world, 300))
		status = vd_store_lease_revoke(world->chaos, writers->leases[index], revoke_answered, world);
	else
		status = vd_store_lease_keep_alive(world->chaos, writers->leases[index], lease_answered,
						   world);
	if (status != VD_OK && status != VD_UNAVAILABLE && status != VD_CLOSED && status != VD_FULL)
		sim_fail(world, "errors are true", "a lease call fails with %s", vd_status_name(status));
	writers->leases[index] = writers->leases[--writers->lease_count];
}

static void compacted(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	struct world *world = arg;

	if (status == VD_OK)
		world->marks.compaction++;
	else if (status == VD_EXPIRED && error && error->compacted < error->requested)
		sim_fail(world, "errors are true", "compaction at %lld is refused, compacted is %lld",
			 (long long) error->requested, (long long) error->compacted);
}

void writers_compact(struct world *world)
{
	vd_rev	  back = (vd_rev) (chance(world, 200) ? 0 : roll(world, 200));
	vd_rev	  revision = world->oracle.revision - back;
	bool	  is_physical;
	vd_status status;

	oracle_drain(&world->oracle);
	if (revision < 2)
		return;
	world->compacted_max = VDI_MAX(world->compacted_max, revision);
	sim_trace(world, "compact %lld", (long long) revision);
	is_physical = chance(world, 500);
	SIM_PREEMPTIBLE(world,
			status = vd_store_compact(world->chaos, revision, is_physical, compacted, world));
	if (status != VD_OK && status != VD_UNAVAILABLE && status != VD_CLOSED && status != VD_FULL)
		sim_fail(world, "errors are true", "a compaction fails with %s", vd_status_name(status));
}

/* ---- One more write ---- */

static enum op_kind random_kind(struct world *world)
{
	unsigned which = (unsigned) roll(world, 100);

	if (world->swarm.multi_key && which < 10)
		return OP_RAW;
	if (which < 30)
		return OP_CREATE;
	if (which < 50)
		return OP_UPDATE;
	if (which < 75)
		return OP_UPSERT;
	return which < 80 ? OP_NO_OP : OP_DELETE;
}

void writers_start_one(struct world *world)
{
	struct writers *writers = world->writers;
	struct op      *op;
	vd_status	status;

	if (writers->outstanding >= world->swarm.writers_max || world->is_down ||
	    writers->seq_next == OPS_MAX)
		return;
	if (world->swarm.leases && chance(world, 20))
		touch_lease(world);
	op = writers->ops[writers->seq_next] = calloc(1, sizeof *op);
	op->world = world;
	op->seq = writers->seq_next++;
	op->kind = random_kind(world);
	op->keys[0] = random_key(world, &op->cacher);
	op->key_count = 1;
	make_value(world, op, 0);
	op->started = world->oracle.revision;
	op->state = OP_PENDING;
	writers->outstanding++;
	sim_trace(world, "write %llu: kind %d key %s", (unsigned long long) op->seq, (int) op->kind,
		  world->oracle.keys[op->keys[0]].text);
	if (op->kind == OP_RAW)
		status = start_raw(world, op);
	else if (world->cachers[op->cacher].cacher)
		status = start_cacher_op(world, op);
	else
		status = VD_CLOSED;
	/* A returned error means: no callback, and nothing was done. */
	if (status != VD_OK) {
		if (op->state != OP_PENDING)
			sim_fail(world, "one answer", "write %llu is answered and refused",
				 (unsigned long long) op->seq);
		writers->outstanding--;
		op->state = OP_REFUSED;
		if (status == VD_FULL)
			world->marks.store_full++;
		else if (status != VD_CLOSED && status != VD_UNAVAILABLE)
			sim_fail(world, "errors are true", "a write is refused with %s",
				 vd_status_name(status));
	}
}
