/* A slow and obvious model of the content of a backend, and a source of random commits. For tests of
 * storage/mvcc. */
#ifndef BACKEND_MODEL_H
#define BACKEND_MODEL_H

#include "backend.h"
#include "rand.h"
#include "vdtest.h"

#define MODEL_KEYS 12
#define MODEL_LEASES 4
#define MODEL_CHANGES 3 /* at most, per commit */

struct model_record {
	struct vd_kv *kv;
	bool	      is_delete;
	size_t	      commit; /* number of its commit, from 0 */
};

struct model_lease {
	bool	is_alive;
	int64_t ttl_s;
	vd_wall deadline;
};

/* A commit besides its records, and the state of leases after it. */
struct model_commit {
	vd_rev		   revision; /* of the store after it */
	vd_rev		   compacted;
	struct model_lease leases[MODEL_LEASES];
};

struct model {
	struct vdi_rand	     rand;
	struct model_record *records;
	size_t		     record_count;
	size_t		     record_capacity;
	struct model_commit *commits;
	size_t		     commit_count;
	size_t		     commit_capacity;
	size_t		     durable; /* commits that were acknowledged */
	size_t		     value_size_max;
	bool		     has_compaction;
};

/* The records passed to a sink. */
struct model_loaded {
	vd_rev		     compacted;
	vd_rev		     revision_min;
	struct model_record *records;
	size_t		     record_count;
	size_t		     record_capacity;
	struct model_lease   leases[MODEL_LEASES];
	bool		     has_begun;
};

static inline void model_init(struct model *model, uint64_t seed)
{
	memset(model, 0, sizeof *model);
	vdi_rand_init(&model->rand, seed);
	model->value_size_max = 200;
	model->has_compaction = true;
}

static inline void model_fini(struct model *model)
{
	for (size_t i = 0; i < model->record_count; i++)
		vd_kv_unref(model->records[i].kv);
	vdi_free(model->records);
	vdi_free(model->commits);
	memset(model, 0, sizeof *model);
}

static inline struct model_commit model_state(const struct model *model, size_t commit_count)
{
	return commit_count ? model->commits[commit_count - 1] : (struct model_commit) { 1, -1, { { 0 } } };
}

static inline const struct model_record *model_newest(const struct model *model, struct vd_bytes key)
{
	for (size_t i = model->record_count; i-- > 0;)
		if (vd_bytes_equal(vd_kv_key(model->records[i].kv), key))
			return &model->records[i];
	return NULL;
}

/* The storage of one commit while it is appended. */
struct model_draft {
	struct vdi_commit	commit;
	struct vdi_change	changes[MODEL_CHANGES];
	struct vdi_lease_change leases[1];
	struct model_commit	state;
};

static inline void model_draft_change(struct model *model, struct model_draft *draft, unsigned key_number,
				      bool wants_delete)
{
	struct vdi_change	  *change = &draft->changes[draft->commit.change_count];
	char			   key[32];
	static char		   value[1 << 16];
	const struct model_record *newest;
	const struct vd_kv	  *previous;
	size_t			   size = vdi_rand_below(&model->rand, model->value_size_max + 1);

	snprintf(key, sizeof key, "/registry/k%u", key_number);
	newest = model_newest(model, vd_bytes_of(key));
	previous = newest && !newest->is_delete ? newest->kv : NULL;
	if (wants_delete && previous == NULL)
		wants_delete = false;
	for (size_t i = 0; i < size; i++)
		value[i] = (char) vdi_rand_next(&model->rand);
	assert_status(vd_kv_new(vd_bytes_of(key),
				wants_delete ? VD_BYTES_NONE : (struct vd_bytes) { value, size },
				&change->kv),
		      VD_OK);
	change->is_delete = wants_delete;
	change->previous = previous;
	change->kv->sub = (uint32_t) draft->commit.change_count;
	change->kv->mod_rev = draft->state.revision;
	if (!wants_delete) {
		change->kv->create_rev = previous ? previous->create_rev : draft->state.revision;
		change->kv->version = previous ? previous->version + 1 : 1;
		change->kv->lease =
			vdi_rand_once_in(&model->rand, 4) ? -(int64_t) vdi_rand_below(&model->rand, 1000) : 0;
	}
	draft->commit.change_count++;
}

/* Drafts a random commit on top of the model; model_keep or model_drop ends it. */
static inline void model_draft(struct model *model, struct model_draft *draft)
{
	uint64_t choice = vdi_rand_below(&model->rand, 10);
	unsigned first;

	memset(draft, 0, sizeof *draft);
	draft->state = model_state(model, model->commit_count);
	draft->commit.changes = draft->changes;
	draft->commit.leases = draft->leases;
	if (choice == 0) {
		unsigned	    id = (unsigned) vdi_rand_below(&model->rand, MODEL_LEASES);
		struct model_lease *lease = &draft->state.leases[id];
		int kind = lease->is_alive ? (int) vdi_rand_below(&model->rand, 2) + VDI_LEASE_REVOKED :
					     VDI_LEASE_GRANTED;

		draft->leases[0] = (struct vdi_lease_change) { (enum vdi_lease_change_kind) kind,
							       (int64_t) id + 1,
							       (int64_t) vdi_rand_below(&model->rand, 100),
							       { (int64_t) vdi_rand_next(&model->rand) } };
		draft->commit.lease_count = 1;
		if (kind == VDI_LEASE_GRANTED)
			*lease = (struct model_lease) { true, draft->leases[0].ttl_s,
							draft->leases[0].deadline };
		else if (kind == VDI_LEASE_RENEWED)
			lease->deadline = draft->leases[0].deadline;
		else
			memset(lease, 0, sizeof *lease);
		return;
	}
	if (choice == 1 && model->has_compaction &&
	    draft->state.revision > VDI_MAX(draft->state.compacted, 1)) {
		vd_rev from = VDI_MAX(draft->state.compacted, 0);

		draft->commit.compact =
			from + 1 +
			(vd_rev) vdi_rand_below(&model->rand, (uint64_t) (draft->state.revision - from));
		draft->state.compacted = draft->commit.compact;
		return;
	}
	draft->commit.revision = ++draft->state.revision;
	first = (unsigned) vdi_rand_below(&model->rand, MODEL_KEYS);
	for (uint64_t i = 0, count = 1 + vdi_rand_below(&model->rand, MODEL_CHANGES); i < count; i++)
		model_draft_change(model, draft, (first + (unsigned) i) % MODEL_KEYS,
				   vdi_rand_once_in(&model->rand, 3));
}

static inline void model_drop(struct model_draft *draft)
{
	for (size_t i = 0; i < draft->commit.change_count; i++)
		vd_kv_unref(draft->changes[i].kv);
}

static inline void model_keep(struct model *model, struct model_draft *draft)
{
	assert_true(vdi_grow((void **) &model->records, &model->record_capacity,
			     model->record_count + MODEL_CHANGES, sizeof *model->records));
	assert_true(vdi_grow((void **) &model->commits, &model->commit_capacity, model->commit_count + 1,
			     sizeof *model->commits));
	for (size_t i = 0; i < draft->commit.change_count; i++)
		model->records[model->record_count++] =
			(struct model_record) { draft->changes[i].kv, draft->changes[i].is_delete,
						model->commit_count };
	model->commits[model->commit_count++] = draft->state;
}

/* Forgets the commits from commit_count on: they were lost. */
static inline void model_cut(struct model *model, size_t commit_count)
{
	while (model->record_count && model->records[model->record_count - 1].commit >= commit_count)
		vd_kv_unref(model->records[--model->record_count].kv);
	model->commit_count = commit_count;
	model->durable = commit_count;
}

/* E-406, one record at a time. */
static inline bool model_keeps(const struct model *model, size_t place, size_t commit_count, vd_rev compacted)
{
	const struct model_record *record = &model->records[place];

	if (record->kv->mod_rev > compacted)
		return true;
	for (size_t i = place + 1; i < model->record_count && model->records[i].commit < commit_count; i++)
		if (model->records[i].kv->mod_rev <= compacted &&
		    vd_bytes_equal(vd_kv_key(model->records[i].kv), vd_kv_key(record->kv)))
			return false;
	return !record->is_delete || record->kv->mod_rev == compacted;
}

static inline bool model_same_record(const struct model_record *a, const struct model_record *b)
{
	return a->is_delete == b->is_delete && a->kv->mod_rev == b->kv->mod_rev && a->kv->sub == b->kv->sub &&
	       a->kv->create_rev == b->kv->create_rev && a->kv->version == b->kv->version &&
	       a->kv->lease == b->kv->lease && vd_bytes_equal(vd_kv_key(a->kv), vd_kv_key(b->kv)) &&
	       vd_bytes_equal(vd_kv_value(a->kv), vd_kv_value(b->kv));
}

/* Returns true if the loaded content is exactly that of the first commit_count commits. */
static inline bool model_equals(const struct model *model, size_t commit_count,
				const struct model_loaded *loaded)
{
	struct model_commit state = model_state(model, commit_count);
	size_t		    next = 0;

	if (loaded->compacted != state.compacted ||
	    memcmp(loaded->leases, state.leases, sizeof state.leases) != 0)
		return false;
	if (loaded->revision_min > state.revision ||
	    (commit_count && state.revision > 1 && loaded->revision_min < state.revision))
		return false;
	for (size_t i = 0; i < model->record_count && model->records[i].commit < commit_count; i++) {
		if (!model_keeps(model, i, commit_count, state.compacted))
			continue;
		if (next == loaded->record_count ||
		    !model_same_record(&loaded->records[next], &model->records[i]))
			return false;
		next++;
	}
	return next == loaded->record_count;
}

/* Returns the number of commits that were loaded: the acknowledged ones and perhaps more, never a part of
 * one. Fails the test if no number fits. */
static inline size_t model_match(const struct model *model, const struct model_loaded *loaded)
{
	for (size_t count = model->commit_count + 1; count-- > model->durable;)
		if (model_equals(model, count, loaded))
			return count;
	fail_msg("what came back is no prefix of %zu commits that holds the %zu acknowledged ones (%zu "
		 "records, revision %lld, compacted %lld)",
		 model->commit_count, model->durable, loaded->record_count, (long long) loaded->revision_min,
		 (long long) loaded->compacted);
	return 0;
}

/* ---- A sink ---- */

static inline vd_status model_loaded_begin(void *arg, vd_rev compacted, vd_rev revision_min, int64_t estimate)
{
	struct model_loaded *loaded = arg;

	assert_false(loaded->has_begun);
	assert_true(estimate >= 0);
	loaded->has_begun = true;
	loaded->compacted = compacted;
	loaded->revision_min = revision_min;
	return VD_OK;
}

static inline vd_status model_loaded_change(void *arg, struct vd_kv *kv, bool is_delete)
{
	struct model_loaded *loaded = arg;

	assert_true(loaded->has_begun);
	if (!vdi_grow((void **) &loaded->records, &loaded->record_capacity, loaded->record_count + 1,
		      sizeof *loaded->records)) {
		vd_kv_unref(kv);
		return VD_NOMEM;
	}
	loaded->records[loaded->record_count++] = (struct model_record) { kv, is_delete, 0 };
	return VD_OK;
}

static inline vd_status model_loaded_lease(void *arg, int64_t id, int64_t ttl_s, vd_wall deadline)
{
	struct model_loaded *loaded = arg;

	assert_true(id >= 1 && id <= MODEL_LEASES);
	loaded->leases[id - 1] = (struct model_lease) { true, ttl_s, deadline };
	return VD_OK;
}

static inline struct vdi_backend_sink model_sink(struct model_loaded *loaded)
{
	memset(loaded, 0, sizeof *loaded);
	return (struct vdi_backend_sink) { model_loaded_begin, model_loaded_change, model_loaded_lease,
					   loaded };
}

static inline void model_loaded_fini(struct model_loaded *loaded)
{
	for (size_t i = 0; i < loaded->record_count; i++)
		vd_kv_unref(loaded->records[i].kv);
	vdi_free(loaded->records);
	memset(loaded, 0, sizeof *loaded);
}

#endif
