/* Random workloads compared with a naive model (a list of versions per key), and many threads at once: E-701,
 * E-702.
 *
 * The model knows every revision, so it can predict ranges at any revision, previous records, and the events
 * of each watch. The guarantees of a watch are checked as predicates on its events: ordered, unique,
 * reliable, atomic, resumable, bookmarkable, right previous.
 */
#include "rand.h"
#include "store_suite.h"

#define MODEL_KEYS 12
#define MODEL_OPS 1500
#define MODEL_REVISIONS (MODEL_OPS + 8)
#define MODEL_WATCHES 6

/* What one revision did to one key. */
struct model_change {
	bool happened;
	bool is_delete;
	int  value;
};

struct model {
	struct model_change changes[MODEL_REVISIONS][MODEL_KEYS];
	/* The state after each revision: value, or -1. */
	int    state[MODEL_REVISIONS][MODEL_KEYS];
	vd_rev create[MODEL_REVISIONS][MODEL_KEYS];
	vd_rev mod[MODEL_REVISIONS][MODEL_KEYS];
	int    version[MODEL_REVISIONS][MODEL_KEYS];
	vd_rev revision;
	vd_rev compacted;
};

struct model_watch {
	struct watcher watcher;
	bool	       is_open;
	bool	       progress_asked;
	int	       from; /* keys from .. to, exclusive */
	int	       to;
	vd_rev	       next; /* everything below was delivered or does not match */
};

struct model_test {
	struct store_fixture *f;
	struct model	      model;
	struct model_watch    watches[MODEL_WATCHES];
	struct vdi_rand	      rand;
	int		      value_next;
	int		      without_previous;
};

/* A real etcd first registers a watch and then records that it wants previous values
 * (server/etcdserver/api/v3rpc/watch.go, recvLoop): events that its send loop handles in between have
 * none. */
#define WITHOUT_PREVIOUS_MAX 20

static const char *key_of(int index)
{
	static const char *const names[MODEL_KEYS + 1] = { "k00", "k01", "k02", "k03", "k04", "k05", "k06",
							   "k07", "k08", "k09", "k10", "k11", "k12" };

	return names[index];
}

static int index_of(struct vd_bytes key)
{
	const char *text = key.data;

	return (text[1] - '0') * 10 + (text[2] - '0');
}

static int number_of(struct vd_bytes value)
{
	char text[16] = { 0 };

	memcpy(text, value.data, VDI_MIN(value.size, sizeof text - 1));
	return atoi(text);
}

static int below(struct model_test *t, int bound)
{
	return (int) vdi_rand_below(&t->rand, (uint64_t) bound);
}

static void model_begin(struct model *model)
{
	vd_rev now = model->revision;

	VDI_CHECK(now + 1 < MODEL_REVISIONS);
	memset(model->changes[now + 1], 0, sizeof model->changes[0]);
	memcpy(model->state[now + 1], model->state[now], sizeof model->state[0]);
	memcpy(model->create[now + 1], model->create[now], sizeof model->create[0]);
	memcpy(model->mod[now + 1], model->mod[now], sizeof model->mod[0]);
	memcpy(model->version[now + 1], model->version[now], sizeof model->version[0]);
}

static void model_put(struct model *model, int key, int value)
{
	vd_rev now = model->revision + 1;

	if (model->state[now][key] < 0)
		model->create[now][key] = now, model->version[now][key] = 0;
	model->changes[now][key] = (struct model_change) { true, false, value };
	model->state[now][key] = value;
	model->mod[now][key] = now;
	model->version[now][key]++;
}

static int model_delete(struct model *model, int from, int to)
{
	vd_rev now = model->revision + 1;
	int    deleted = 0;

	for (int key = from; key < to; key++) {
		if (model->state[now][key] < 0)
			continue;
		model->changes[now][key] = (struct model_change) { true, true, 0 };
		model->state[now][key] = -1;
		deleted++;
	}
	return deleted;
}

/* ---- Steps ---- */

static void step_txn(struct model_test *t)
{
	struct model	     *model = &t->model;
	struct vd_op	      ops[4];
	char		      values[4][16];
	bool		      used[MODEL_KEYS] = { false };
	int		      expected_deleted[4] = { 0 };
	size_t		      count = 0;
	size_t		      wanted = 1 + (size_t) below(t, 4);
	struct vd_compare     compare = { VD_COMPARE_MOD, VD_COMPARE_EQUAL, K(key_of(below(t, MODEL_KEYS))),
					  VD_BYTES_NONE, 0 };
	struct vd_txn_request request = { .compares = &compare, .compare_count = 1 };
	int		      compared = index_of(compare.key);
	bool		      lie = below(t, 4) == 0;
	bool		      is_there = model->state[model->revision][compared] >= 0;
	vd_rev		      actual = is_there ? model->mod[model->revision][compared] : 0;
	struct txn_answer     answer;
	bool		      changed = false;

	compare.number = lie ? actual + 1 : actual;
	model_begin(model);
	while (count < wanted) {
		int  from = below(t, MODEL_KEYS);
		int  to = from + 1 + below(t, 3);
		bool is_put = below(t, 3) != 0;

		to = VDI_MIN(to, MODEL_KEYS);
		if (is_put)
			to = from + 1;
		for (int key = from; key < to; key++)
			if (used[key])
				to = -1;
		if (to < 0) {
			wanted--;
			continue;
		}
		for (int key = from; key < to; key++)
			used[key] = true;
		if (is_put) {
			snprintf(values[count], sizeof values[count], "%d", ++t->value_next);
			ops[count] = (struct vd_op) { .kind = VD_OP_PUT,
						      .key = K(key_of(from)),
						      .value = K(values[count]) };
			if (!lie)
				model_put(model, from, t->value_next), changed = true;
		} else {
			ops[count] = (struct vd_op) { .kind = VD_OP_DELETE,
						      .key = K(key_of(from)),
						      .range_end = K(key_of(to)) };
			if (!lie)
				expected_deleted[count] = model_delete(model, from, to);
			changed |= expected_deleted[count] > 0;
		}
		count++;
	}
	request.success = ops;
	request.success_count = count;
	txn(t->f, &request, &answer);
	assert_status(answer.status, VD_OK);
	assert_int_equal(answer.succeeded, !lie);
	if (changed)
		model->revision++;
	assert_int_equal(answer.revision, model->revision);
	for (size_t i = 0; !lie && i < count; i++)
		assert_int_equal(answer.ops[i].deleted, expected_deleted[i]);
}

static void step_range(struct model_test *t)
{
	struct model	       *model = &t->model;
	int			from = below(t, MODEL_KEYS);
	int			to = from + below(t, MODEL_KEYS - from + 1);
	vd_rev			at = below(t, 3) == 0 ? 0 : below(t, (int) model->revision + 1) + below(t, 2);
	struct vd_range_request request = { .key = K(key_of(from)),
					    .range_end = K(key_of(to)),
					    .revision = at,
					    .limit = below(t, 4),
					    .count_only = below(t, 5) == 0 };
	struct range_answer	answer;
	vd_rev			seen = at ? at : model->revision;
	size_t			given = 0;
	int64_t			count = 0;

	if (to == from)
		request.range_end = VD_BYTES_NONE, to = from + 1;
	range(t->f, &request, &answer);
	if (at > model->revision) {
		assert_status(answer.status, VD_TOO_LARGE_REVISION);
		return;
	}
	if (at > 0 && at < model->compacted) {
		assert_status(answer.status, VD_EXPIRED);
		return;
	}
	assert_status(answer.status, VD_OK);
	assert_int_equal(answer.revision, model->revision);
	for (int key = from; key < to; key++) {
		const struct vd_kv *kv;

		if (model->state[seen][key] < 0)
			continue;
		count++;
		if (request.count_only || (request.limit && count > request.limit))
			continue;
		assert_true(given < answer.kv_count);
		kv = answer.kvs[given++];
		assert_int_equal(index_of(vd_kv_key(kv)), key);
		assert_int_equal(number_of(vd_kv_value(kv)), model->state[seen][key]);
		assert_int_equal(kv->create_rev, model->create[seen][key]);
		assert_int_equal(kv->mod_rev, model->mod[seen][key]);
		assert_int_equal(kv->version, model->version[seen][key]);
	}
	assert_int_equal(answer.kv_count, given);
	assert_int_equal(answer.count, count);
	assert_int_equal(answer.more, !request.count_only && request.limit && count > request.limit);
	range_answer_fini(&answer);
}

static void step_compact(struct model_test *t)
{
	struct model *model = &t->model;
	vd_rev	      revision = model->revision - below(t, 60) + below(t, 3);

	if (revision <= 0)
		return;
	if (revision <= model->compacted) {
		assert_status(compact(t->f, revision), VD_EXPIRED);
	} else if (revision > model->revision) {
		assert_status(compact(t->f, revision), VD_TOO_LARGE_REVISION);
	} else {
		assert_status(compact(t->f, revision), VD_OK);
		model->compacted = revision;
	}
}

/* ---- Watches ---- */

static void open_watch(struct model_test *t, struct model_watch *watch)
{
	vd_rev start = below(t, 3) == 0 ? 0 : t->model.revision - below(t, 100) + below(t, 8);

	start = VDI_MAX(start, 0);
	watch->from = below(t, MODEL_KEYS);
	watch->to = watch->from + 1 + below(t, MODEL_KEYS - watch->from);
	watch->next = start ? start : t->model.revision + 1;
	watch->progress_asked = false;
	watch_range(t->f, &watch->watcher, key_of(watch->from), key_of(watch->to), start);
	watch->is_open = true;
}

static void close_watch(struct model_watch *watch)
{
	watch_close(&watch->watcher);
	watch->is_open = false;
}

/* Returns the number of events of revision that the watch must receive, according to the model. */
static size_t expected_events(const struct model *model, const struct model_watch *watch, vd_rev revision)
{
	size_t count = 0;

	for (int key = watch->from; key < watch->to; key++)
		count += model->changes[revision][key].happened;
	return count;
}

static void check_event(struct model_test *t, const struct model_watch *watch,
			const struct vd_store_event *event)
{
	const struct model	  *model = &t->model;
	vd_rev			   revision = event->kv->mod_rev;
	int			   key = index_of(vd_kv_key(event->kv));
	const struct model_change *change = &model->changes[revision][key];
	int			   before = model->state[revision - 1][key];

	assert_true(key >= watch->from && key < watch->to);
	assert_true(change->happened);
	assert_int_equal(event->is_delete, change->is_delete);
	if (!change->is_delete) {
		assert_int_equal(number_of(vd_kv_value(event->kv)), change->value);
		assert_int_equal(vd_store_event_is_create(event), before < 0);
	}
	/* Correct, or absent at the compacted revision after a restart. */
	if (event->previous) {
		assert_int_equal(number_of(vd_kv_value(event->previous)), before);
		assert_int_equal(event->previous->mod_rev, model->mod[revision - 1][key]);
	} else if (before >= 0 && revision > model->compacted) {
		print_message("[ revision %lld, compacted %lld: no value before it ]\n", (long long) revision,
			      (long long) model->compacted);
		assert_true(t->f->factory->no_simulator && ++t->without_previous <= WITHOUT_PREVIOUS_MAX);
	}
}

static void check_batch(struct model_test *t, struct model_watch *watch)
{
	const struct vd_store_batch *batch = &watch->watcher.batch;
	const struct model	    *model = &t->model;

	assert_true(batch->revision <= model->revision);
	if (batch->event_count == 0) {
		assert_true(watch->progress_asked);
		watch->progress_asked = false;
		if (!t->f->factory->is_remote) /* there it may answer an earlier request */
			assert_int_equal(batch->revision, model->revision);
		for (vd_rev revision = watch->next; revision <= batch->revision; revision++)
			assert_int_equal(expected_events(model, watch, revision), 0);
		watch->next = VDI_MAX(watch->next, batch->revision + 1);
		return;
	}
	for (size_t i = 0; i < batch->event_count;) {
		vd_rev revision = batch->events[i].kv->mod_rev;
		size_t count = 0;
		int    last_sub = -1;

		assert_true(revision >= watch->next);
		for (vd_rev skipped = watch->next; skipped < revision; skipped++)
			assert_int_equal(expected_events(model, watch, skipped), 0);
		for (; i < batch->event_count && batch->events[i].kv->mod_rev == revision; i++, count++) {
			assert_true((int) batch->events[i].kv->sub > last_sub);
			last_sub = (int) batch->events[i].kv->sub;
			check_event(t, watch, &batch->events[i]);
		}
		assert_int_equal(count, expected_events(model, watch, revision));
		watch->next = revision + 1;
		assert_int_equal(batch->revision, batch->events[batch->event_count - 1].kv->mod_rev);
	}
}

/* Returns true if there are changes that the watch has not delivered yet. */
static bool has_more(const struct model *model, const struct model_watch *watch)
{
	for (vd_rev revision = watch->next; revision <= model->revision; revision++)
		if (expected_events(model, watch, revision))
			return true;
	return false;
}

static void step_watch(struct model_test *t)
{
	struct model_watch *watch = &t->watches[below(t, MODEL_WATCHES)];
	vd_status	    status;

	if (!watch->is_open) {
		open_watch(t, watch);
		return;
	}
	switch (below(t, 12)) {
	case 0: close_watch(watch); return;
	case 1: watch->progress_asked = ask_progress(&watch->watcher); return;
	}
	if (t->f->factory->is_remote && has_more(&t->model, watch))
		status = watch_wait(&watch->watcher, (size_t) below(t, 5) * 4);
	else
		status = vd_store_watch_next(watch->watcher.watch, (size_t) below(t, 5) * 4,
					     &watch->watcher.batch, &watch->watcher.error);
	if (status == VD_OK) {
		check_batch(t, watch);
	} else if (status == VD_EXPIRED) {
		assert_true(watch->next < t->model.compacted);
		assert_int_equal(watch->watcher.error.compacted, t->model.compacted);
		close_watch(watch);
	} else {
		assert_status(status, VD_AGAIN);
		assert_false(has_more(&t->model, watch));
	}
}

static void step_reopen(struct model_test *t)
{
	if (t->f->factory->reopen == NULL)
		return;
	for (int i = 0; i < MODEL_WATCHES; i++)
		if (t->watches[i].is_open)
			close_watch(&t->watches[i]);
	assert_status(t->f->factory->reopen(t->f->factory->arg, t->f->env, &t->f->store), VD_OK);
	assert_int_equal(current(t->f), t->model.revision);
}

static void e702_random_work_equals_the_model(void **state)
{
	struct store_fixture *f = *state;
	struct model_test    *t = test_calloc(1, sizeof *t);

	t->f = f;
	vdi_rand_init(&t->rand, f->seed + 4711);
	t->model.revision = 1;
	t->model.compacted = -1;
	for (int key = 0; key < MODEL_KEYS; key++)
		t->model.state[0][key] = t->model.state[1][key] = -1;
	for (int i = 0; i < MODEL_OPS; i++) {
		int what = below(t, 1000);

		if (what < 330)
			step_txn(t);
		else if (what < 650)
			step_range(t);
		else if (what < 675)
			step_compact(t);
		else if (what < 678)
			step_reopen(t);
		else
			step_watch(t);
	}
	for (int i = 0; i < MODEL_WATCHES; i++)
		if (t->watches[i].is_open)
			close_watch(&t->watches[i]);
	test_free(t);
}

/* More changes than there are between two marks of the history, read back at many revisions, from many keys;
 * and again after everything was read from disk. */
static void e405_old_revisions_over_a_long_history(void **state)
{
	struct store_fixture *f = *state;
	struct vdi_rand	      rand;
	struct vd_op	      ops[100];
	char		      keys[100][8];
	char		      values[100][8];
	static short	      history[81][100]; /* after each transaction */
	struct txn_answer     answer;

	vdi_rand_init(&rand, 99);
	memset(history, 0, sizeof history);
	for (int t = 1; t <= 80; t++) {
		memcpy(history[t], history[t - 1], sizeof history[0]);
		for (int i = 0; i < 100; i++) {
			bool is_delete = vdi_rand_below(&rand, 4) == 0;

			snprintf(keys[i], sizeof keys[i], "k%02d", i);
			snprintf(values[i], sizeof values[i], "%d", t);
			ops[i] = (struct vd_op) { .kind = is_delete ? VD_OP_DELETE : VD_OP_PUT,
						  .key = K(keys[i]),
						  .value = K(values[i]) };
			history[t][i] = (short) (is_delete ? 0 : t);
			if (is_delete)
				ops[i].value = VD_BYTES_NONE;
		}
		txn_ops(f, ops, 100, &answer);
		assert_int_equal(answer.revision, t + 1);
	}
	assert_status(compact(f, 20), VD_OK);
	for (int n = 0; n < 300; n++) {
		int			t = 19 + (int) vdi_rand_below(&rand, 62);
		int			from = (int) vdi_rand_below(&rand, 100);
		int			to = from + (int) vdi_rand_below(&rand, 60);
		char			end[16];
		struct vd_range_request request = { .key = K(keys[from]), .revision = t + 1 };
		struct range_answer	read;
		size_t			given = 0;

		if (n == 150 && f->factory->reopen)
			assert_status(f->factory->reopen(f->factory->arg, f->env, &f->store), VD_OK);
		snprintf(end, sizeof end, "k%02d", VDI_MIN(to, 99));
		request.range_end = K(end);
		range(f, &request, &read);
		assert_status(read.status, VD_OK);
		for (int i = from; i < VDI_MIN(to, 99); i++) {
			if (history[t][i] == 0)
				continue;
			assert_int_equal(index_of(vd_kv_key(read.kvs[given])), i);
			assert_int_equal(number_of(vd_kv_value(read.kvs[given])), history[t][i]);
			given++;
		}
		assert_int_equal(read.kv_count, VDI_MIN(given, 64));
		assert_int_equal(read.count, given);
		range_answer_fini(&read);
	}
}

/* ---- Many at once ---- */

#define STRESS_WRITERS 6
#define STRESS_WRITES 300

struct stress_writer {
	struct stress	*stress;
	struct vd_actor *actor;
	int		 number;
	int		 done;
	struct vdi_rand	 rand;
	bool		 is_over;
	struct vdi_wait	 ended;
};

struct stress {
	struct store_fixture *f;
	struct stress_writer  writers[STRESS_WRITERS];
	_Atomic int	      over;
	_Atomic int	      wrong;
	/* calls without an answer; the code that decrements it uses nothing afterwards */
	_Atomic int	outstanding;
	_Atomic int64_t acknowledged;
};

static void stress_written(void *arg, vd_status status, const struct vd_txn_result *result,
			   const struct vd_error *error)
{
	struct stress_writer *writer = arg;
	struct stress	     *stress = writer->stress;

	(void) error;
	if (status != VD_OK)
		stress->wrong++;
	else if (result->revision < 1)
		stress->wrong++;
	else
		stress->acknowledged++;
	if (++writer->done == STRESS_WRITES)
		stress->over++;
	vd_actor_wake(writer->actor);
	stress->outstanding--;
}

static void stress_read(void *arg, vd_status status, const struct vd_range_result *result,
			const struct vd_error *error)
{
	struct stress_writer *writer = arg;

	(void) error;
	if (status == VD_OK && result->count > 100)
		writer->stress->wrong++;
	if (status != VD_OK && status != VD_EXPIRED && status != VD_TOO_LARGE_REVISION)
		writer->stress->wrong++;
	writer->stress->outstanding--;
}

static void stress_compacted(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	struct stress_writer *writer = arg;

	(void) revision;
	(void) error;
	if (status != VD_OK && status != VD_EXPIRED)
		writer->stress->wrong++;
	writer->stress->outstanding--;
}

static void stress_refused(struct stress *stress)
{
	stress->wrong++;
	stress->outstanding--;
}

static void stress_idle(void *arg)
{
	(void) arg;
}

/* One write, together with the other actions of a busy client. */
static void stress_run(void *arg)
{
	struct stress_writer   *writer = arg;
	struct vd_store	       *store = writer->stress->f->store;
	char			key[8];
	struct vd_op		op = { .kind = VD_OP_PUT, .value = K("value") };
	struct vd_txn_request	request = { .success = &op, .success_count = 1 };
	struct vd_store_status	status;
	struct vd_range_request range_request = { .key = K("k"), .range_end = K("l") };
	struct vd_store_watch  *watch;

	if (writer->done >= STRESS_WRITES)
		return;
	snprintf(key, sizeof key, "k%02d", (int) vdi_rand_below(&writer->rand, 100));
	op.key = K(key);
	if (vdi_rand_below(&writer->rand, 5) == 0) {
		op.kind = VD_OP_DELETE;
		op.value = VD_BYTES_NONE;
		op.range_end = K("k50");
	}
	if (vd_store_status_get(store, &status) != VD_OK)
		writer->stress->wrong++;
	range_request.revision =
		vdi_rand_below(&writer->rand, 2) ?
			0 :
			VDI_MAX(1, status.current - (int64_t) vdi_rand_below(&writer->rand, 40));
	writer->stress->outstanding++;
	if (vd_store_range(store, &range_request, stress_read, writer) != VD_OK)
		stress_refused(writer->stress);
	if (vdi_rand_below(&writer->rand, 40) == 0) {
		writer->stress->outstanding++;
		if (vd_store_compact(store, VDI_MAX(1, status.current - 30), false, stress_compacted,
				     writer) != VD_OK)
			stress_refused(writer->stress);
	}
	if (vdi_rand_below(&writer->rand, 4) == 0) {
		struct vd_store_watch_request watch_request = { .key = K("k"),
								.range_end = K("l"),
								.start_revision = status.current,
								.previous = true,
								.ready = stress_idle };
		struct vd_store_batch	      batch;

		if (vd_store_watch_open(store, &watch_request, &watch, NULL) != VD_OK) {
			writer->stress->wrong++;
		} else {
			for (int i = 0; i < 3; i++)
				if (vd_store_watch_next(watch, 10, &batch, NULL) != VD_OK)
					break;
			vd_store_watch_close(watch);
		}
	}
	writer->stress->outstanding++;
	if (vd_store_txn(store, &request, stress_written, writer) != VD_OK)
		stress_refused(writer->stress);
}

static bool stress_over(void *arg)
{
	struct stress *stress = arg;

	return stress->over == STRESS_WRITERS && stress->outstanding == 0;
}

/* Writers, readers of old revisions, watches that are opened and closed, and compaction, all at once; one
 * watch receives everything in order. */
static void e701_e702_many_at_once(void **state)
{
	struct store_fixture   *f = *state;
	struct stress	       *stress = test_calloc(1, sizeof *stress);
	struct watcher		watcher;
	vd_rev			seen = 1;
	struct vd_actor_options options = { .name = "stress", .run = stress_run };

	stress->f = f;
	watch_range(f, &watcher, "k", "l", 0);
	for (int i = 0; i < STRESS_WRITERS; i++) {
		struct stress_writer *writer = &stress->writers[i];

		writer->stress = stress;
		writer->number = i;
		vdi_rand_init(&writer->rand, f->seed * 100 + (uint64_t) i);
		options.arg = writer;
		assert_status(vd_actor_new(f->env, &options, &writer->actor), VD_OK);
	}
	for (int i = 0; i < STRESS_WRITERS; i++)
		vd_actor_wake(stress->writers[i].actor);
	/* Deletes of absent keys make no revision, and compaction may overtake this watch; then it must say
	 * so. */
	while (!stress_over(stress)) {
		vd_status status = vd_store_watch_next(watcher.watch, 50, &watcher.batch, &watcher.error);

		if (status == VD_OK) {
			for (size_t i = 0; i < watcher.batch.event_count; i++) {
				vd_rev revision = watcher.batch.events[i].kv->mod_rev;

				assert_true(revision == seen || revision == seen + 1);
				assert_true(revision == seen + 1 || watcher.batch.events[i].kv->sub > 0);
				seen = revision;
			}
		} else if (status == VD_EXPIRED) {
			assert_true(watcher.error.compacted > seen);
			seen = current(f);
			watch_close(&watcher);
			watch_range(f, &watcher, "k", "l", seen + 1);
		} else if (f->simulated) {
			if (!vdi_sim_step(f->env))
				break;
		}
	}
	wait_until(f, stress_over, stress);
	for (int i = 0; i < STRESS_WRITERS; i++)
		vdi_wait_for_actor_close(f->env, stress->writers[i].actor);
	assert_int_equal(stress->wrong, 0);
	assert_int_equal(stress->acknowledged, STRESS_WRITERS * STRESS_WRITES);
	while (seen < current(f)) {
		vd_status status = watch_wait(&watcher, 1000);

		if (status == VD_EXPIRED)
			break; /* compacted before the watch caught up */
		assert_status(status, VD_OK);
		for (size_t i = 0; i < watcher.batch.event_count; i++)
			seen = watcher.batch.events[i].kv->mod_rev;
	}
	watch_close(&watcher);
	test_free(stress);
}

const struct CMUnitTest store_suite_model_tests[] = {
	cmocka_unit_test(e405_old_revisions_over_a_long_history),
	cmocka_unit_test(e701_e702_many_at_once),
	cmocka_unit_test(e702_random_work_equals_the_model),
};
const size_t store_suite_model_test_count = VDI_ARRAY_SIZE(store_suite_model_tests);
