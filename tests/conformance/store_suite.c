/* The fixture and the helpers of the store suite. */
#include "store_suite.h"

#include <inttypes.h>

/* ---- Setup ---- */

static const struct store_suite_factory *running_factory;
static uint64_t				 running_seed; /* 0: threads */

static int setup(void **state)
{
	struct store_fixture *f = test_calloc(1, sizeof *f);

	f->factory = running_factory;
	f->simulated = running_seed != 0;
	f->seed = running_seed;
	f->alloc_live = vdi_alloc_live();
	if (f->simulated)
		assert_status(vdi_env_new_sim(f->seed, NULL, NULL, &f->env), VD_OK);
	else
		assert_status(vd_env_new_threads(NULL, &f->env), VD_OK);
	assert_status(f->factory->open(f->factory->arg, f->env, &f->store), VD_OK);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct store_fixture *f = *state;

	if (f->factory->close)
		f->factory->close(f->factory->arg, f->store);
	else
		vd_store_close_wait(f->store);
	vd_env_free(f->env);
	if (f->factory->clean)
		f->factory->clean(f->factory->arg);
	assert_int_equal(vdi_alloc_live(), f->alloc_live);
	test_free(f);
	return 0;
}

static const char *why_not(const char *test)
{
	const struct store_suite_exception *exception = running_factory->exceptions;

	for (; exception && exception->test; exception++)
		if (strcmp(exception->test, test) == 0)
			return exception->why;
	return NULL;
}

static int run_part(const char *part, const struct CMUnitTest *tests, size_t count)
{
	struct CMUnitTest *copies = calloc(count, sizeof *copies);
	char		   name[128];
	int		   failed;
	size_t		   left = 0;

	for (size_t i = 0; i < count; i++) {
		const char *why = why_not(tests[i].name);

		if (why)
			print_message("[ %s does not: %s: %s ]\n", running_factory->name, tests[i].name, why);
		if (why)
			continue;
		copies[left] = tests[i];
		copies[left].setup_func = setup;
		copies[left++].teardown_func = teardown;
	}
	if (running_seed)
		snprintf(name, sizeof name, "%s %s, simulated, seed %" PRIu64, running_factory->name, part,
			 running_seed);
	else
		snprintf(name, sizeof name, "%s %s, threads", running_factory->name, part);
	failed = vdtest_run_group(name, copies, left, NULL, NULL);
	free(copies);
	return failed;
}

int store_suite_run(const struct store_suite_factory *factory)
{
	static const uint64_t seeds[] = { 0, 1, 2, 77 };
	int		      failed = 0;

	running_factory = factory;
	for (size_t i = factory->no_threads ? 1 : 0; i < (factory->no_simulator ? 1 : VDI_ARRAY_SIZE(seeds));
	     i++) {
		running_seed = seeds[i];
		failed += run_part("kv", store_suite_kv_tests, store_suite_kv_test_count);
		failed += run_part("watch", store_suite_watch_tests, store_suite_watch_test_count);
		failed += run_part("lease", store_suite_lease_tests, store_suite_lease_test_count);
		failed += run_part("model", store_suite_model_tests, store_suite_model_test_count);
	}
	return failed;
}

struct condition_wait {
	bool (*condition)(void *arg);
	void *arg;
};

void wait_until(struct store_fixture *f, bool (*condition)(void *arg), void *arg)
{
	if (f->simulated) {
		assert_true(vdi_sim_run_until(f->env, condition, arg, VD_SECONDS(3600)));
	} else {
		struct vdi_wait pause;

		/* Real threads: check every millisecond. If the condition never holds, the test executor's
		 * timeout ends the test. */
		while (!condition(arg)) {
			bool signalled;

			vdi_wait_init(&pause, f->env);
			signalled = vdi_wait_until(&pause, vd_mono_add(vd_env_now(f->env), VD_MS(1)));
			assert_false(signalled);
			vdi_wait_fini(&pause);
		}
	}
}

/* ---- Keys ---- */

vd_rev put(struct store_fixture *f, const char *key, const char *value)
{
	vd_rev		revision = 0;
	struct vd_error error = { 0 };

	if (vd_store_put_wait(f->store, K(key), K(value), &revision, &error) != VD_OK)
		fail_msg("put: %s: %s", vd_status_name(error.code), error.message);
	return revision;
}

struct flock {
	_Atomic unsigned answered, failed;
	unsigned	 submitted;
};

static void flock_answered(void *arg, vd_status status, const struct vd_txn_result *result,
			   const struct vd_error *error)
{
	struct flock *flock = arg;

	(void) result;
	(void) error;
	flock->failed += status != VD_OK;
	flock->answered++;
}

static bool flock_is_back(void *arg)
{
	struct flock *flock = arg;

	return flock->answered == flock->submitted;
}

void put_many(struct store_fixture *f, const char *key, const char *value, unsigned count)
{
	struct vd_op	      op = { .kind = VD_OP_PUT, .key = K(key), .value = K(value) };
	struct vd_txn_request request = { .success = &op, .success_count = 1 };
	struct flock	      flock = { 0 };

	while (flock.submitted < count) {
		unsigned together = VDI_MIN(count - flock.submitted, 250u), before = flock.submitted;

		for (flock.submitted += together; before < flock.submitted; before++)
			assert_status(vd_store_txn(f->store, &request, flock_answered, &flock), VD_OK);
		wait_until(f, flock_is_back, &flock);
	}
	assert_int_equal(flock.failed, 0);
}

vd_rev delete_range(struct store_fixture *f, const char *key, const char *end, int64_t *ret_deleted)
{
	vd_rev	revision = 0;
	int64_t deleted = 0;

	assert_status(vd_store_delete_wait(f->store, K(key), end ? K(end) : VD_BYTES_NONE, &deleted,
					   &revision, NULL),
		      VD_OK);
	if (ret_deleted)
		*ret_deleted = deleted;
	return revision;
}

vd_rev current(struct store_fixture *f)
{
	struct vd_store_status status;

	assert_status(vd_store_status_get(f->store, &status), VD_OK);
	return status.current;
}

struct done_answer {
	struct vdi_wait wait;
	vd_status	status;
	vd_rev		revision;
};

static void got_done(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	struct done_answer *answer = arg;

	(void) error;
	answer->status = status;
	answer->revision = revision;
	vdi_wait_signal(&answer->wait);
}

vd_status compact(struct store_fixture *f, vd_rev revision)
{
	struct done_answer answer = { 0 };

	vdi_wait_init(&answer.wait, f->env);
	assert_status(vd_store_compact(f->store, revision, true, got_done, &answer), VD_OK);
	vdi_wait_wait(&answer.wait);
	vdi_wait_fini(&answer.wait);
	return answer.status;
}

struct range_call {
	struct vdi_wait	     wait;
	struct range_answer *answer;
};

static void got_range(void *arg, vd_status status, const struct vd_range_result *result,
		      const struct vd_error *error)
{
	struct range_call   *call = arg;
	struct range_answer *answer = call->answer;

	answer->status = status;
	if (status == VD_OK) {
		answer->revision = result->store_revision;
		answer->count = result->count;
		answer->more = result->more;
		answer->kv_count = result->kv_count;
		for (size_t i = 0; i < result->kv_count && i < VDI_ARRAY_SIZE(answer->kvs); i++)
			answer->kvs[i] = vd_kv_ref(result->kvs[i]);
	} else {
		answer->error = *error;
	}
	vdi_wait_signal(&call->wait);
}

void range(struct store_fixture *f, const struct vd_range_request *request, struct range_answer *ret_answer)
{
	struct range_call call = { .answer = ret_answer };

	memset(ret_answer, 0, sizeof *ret_answer);
	vdi_wait_init(&call.wait, f->env);
	assert_status(vd_store_range(f->store, request, got_range, &call), VD_OK);
	vdi_wait_wait(&call.wait);
	vdi_wait_fini(&call.wait);
}

void range_answer_fini(struct range_answer *answer)
{
	for (size_t i = 0; i < answer->kv_count && i < VDI_ARRAY_SIZE(answer->kvs); i++)
		vd_kv_unref(answer->kvs[i]);
	answer->kv_count = 0;
}

static size_t append_kv(char *text, size_t size, size_t used, const struct vd_kv *kv)
{
	struct vd_bytes key = vd_kv_key(kv);
	struct vd_bytes value = vd_kv_value(kv);

	if (used >= size)
		return used;
	return used + (size_t) snprintf(text + used, size - used, "%s%.*s=%.*s", used ? " " : "",
					(int) key.size, (const char *) key.data, (int) value.size,
					(const char *) value.data);
}

const char *kvs_text(struct vd_kv *const *kvs, size_t count)
{
	static char text[4096];
	size_t	    used = 0;

	text[0] = 0;
	for (size_t i = 0; i < count; i++)
		used = append_kv(text, sizeof text, used, kvs[i]);
	return text;
}

const char *text_at(struct store_fixture *f, const char *key, const char *end, vd_rev revision)
{
	struct vd_range_request request = { .key = K(key),
					    .range_end = end ? K(end) : VD_BYTES_NONE,
					    .revision = revision };
	struct range_answer	answer;
	const char	       *text;

	if (end && end[0] == 0)
		request.range_end = ZERO_END;
	range(f, &request, &answer);
	assert_status(answer.status, VD_OK);
	assert_true(answer.kv_count <= VDI_ARRAY_SIZE(answer.kvs));
	text = kvs_text(answer.kvs, answer.kv_count);
	range_answer_fini(&answer);
	return text;
}

vd_status status_at(struct store_fixture *f, const char *key, vd_rev revision)
{
	struct vd_range_request request = { .key = K(key), .revision = revision };
	struct range_answer	answer;

	range(f, &request, &answer);
	range_answer_fini(&answer);
	return answer.status;
}

/* ---- Transactions ---- */

struct txn_call {
	struct vdi_wait	   wait;
	struct txn_answer *answer;
};

static void flatten(struct txn_answer *answer, const struct vd_txn_result *result)
{
	for (size_t i = 0; i < result->result_count; i++) {
		const struct vd_op_result *from = &result->results[i];
		struct op_answer	  *to = &answer->ops[answer->op_count];

		if (answer->op_count == VDI_ARRAY_SIZE(answer->ops))
			return;
		answer->op_count++;
		to->kind = from->kind;
		to->revision = from->revision;
		to->deleted = from->deleted;
		to->count = from->range.count;
		to->more = from->range.more;
		for (size_t j = 0, used = 0; j < from->previous_count; j++)
			used = append_kv(to->text, sizeof to->text, used, from->previous[j]);
		for (size_t j = 0, used = 0; j < from->range.kv_count; j++)
			used = append_kv(to->text, sizeof to->text, used, from->range.kvs[j]);
		if (from->kind == VD_OP_TXN) {
			to->succeeded = from->txn->succeeded;
			flatten(answer, from->txn);
		}
	}
}

static void got_txn(void *arg, vd_status status, const struct vd_txn_result *result,
		    const struct vd_error *error)
{
	struct txn_call *call = arg;

	call->answer->status = status;
	if (status == VD_OK) {
		call->answer->revision = result->revision;
		call->answer->succeeded = result->succeeded;
		flatten(call->answer, result);
	} else {
		call->answer->error = *error;
	}
	vdi_wait_signal(&call->wait);
}

void txn(struct store_fixture *f, const struct vd_txn_request *request, struct txn_answer *ret_answer)
{
	struct txn_call call = { .answer = ret_answer };
	vd_status	status;

	memset(ret_answer, 0, sizeof *ret_answer);
	vdi_wait_init(&call.wait, f->env);
	status = vd_store_txn(f->store, request, got_txn, &call);
	if (status == VD_OK)
		vdi_wait_wait(&call.wait);
	else
		ret_answer->status = status;
	vdi_wait_fini(&call.wait);
}

void txn_ops(struct store_fixture *f, const struct vd_op *ops, size_t count, struct txn_answer *ret_answer)
{
	struct vd_txn_request request = { .success = ops, .success_count = count };

	txn(f, &request, ret_answer);
}

/* ---- Leases ---- */

struct lease_call {
	struct vdi_wait	     wait;
	struct lease_answer *answer;
};

static void got_lease(void *arg, vd_status status, const struct vd_lease_result *result,
		      const struct vd_error *error)
{
	struct lease_call   *call = arg;
	struct lease_answer *answer = call->answer;

	(void) error;
	answer->status = status;
	if (status == VD_OK) {
		size_t used = 0;

		answer->id = result->id;
		answer->ttl_s = result->ttl_s;
		answer->granted_ttl_s = result->granted_ttl_s;
		answer->revision = result->revision;
		answer->key_count = result->key_count;
		for (size_t i = 0; i < result->key_count; i++)
			used += (size_t) snprintf(answer->keys + used, sizeof answer->keys - used, "%s%.*s",
						  i ? " " : "", (int) result->keys[i].size,
						  (const char *) result->keys[i].data);
	}
	vdi_wait_signal(&call->wait);
}

void lease_grant(struct store_fixture *f, int64_t id, int64_t ttl_s, struct lease_answer *ret_answer)
{
	struct lease_call call = { .answer = ret_answer };
	vd_status	  status;

	memset(ret_answer, 0, sizeof *ret_answer);
	vdi_wait_init(&call.wait, f->env);
	status = vd_store_lease_grant(f->store, id, ttl_s, got_lease, &call);
	if (status == VD_OK)
		vdi_wait_wait(&call.wait);
	else
		ret_answer->status = status;
	vdi_wait_fini(&call.wait);
}

void lease_keep_alive(struct store_fixture *f, int64_t id, struct lease_answer *ret_answer)
{
	struct lease_call call = { .answer = ret_answer };

	memset(ret_answer, 0, sizeof *ret_answer);
	vdi_wait_init(&call.wait, f->env);
	assert_status(vd_store_lease_keep_alive(f->store, id, got_lease, &call), VD_OK);
	vdi_wait_wait(&call.wait);
	vdi_wait_fini(&call.wait);
}

void lease_time_to_live(struct store_fixture *f, int64_t id, bool keys, struct lease_answer *ret_answer)
{
	struct lease_call call = { .answer = ret_answer };

	memset(ret_answer, 0, sizeof *ret_answer);
	vdi_wait_init(&call.wait, f->env);
	assert_status(vd_store_lease_time_to_live(f->store, id, keys, got_lease, &call), VD_OK);
	vdi_wait_wait(&call.wait);
	vdi_wait_fini(&call.wait);
}

vd_status lease_revoke(struct store_fixture *f, int64_t id, vd_rev *ret_revision)
{
	struct done_answer answer = { 0 };

	vdi_wait_init(&answer.wait, f->env);
	assert_status(vd_store_lease_revoke(f->store, id, got_done, &answer), VD_OK);
	vdi_wait_wait(&answer.wait);
	vdi_wait_fini(&answer.wait);
	if (ret_revision)
		*ret_revision = answer.revision;
	return answer.status;
}

/* ---- Watches ---- */

static void watcher_ready(void *arg)
{
	struct watcher *watcher = arg;

	vdi_lock_acquire(&watcher->lock);
	watcher->is_ready = true;
	watcher->ready_count++;
	vdi_condition_signal(&watcher->changed);
	vdi_lock_release(&watcher->lock);
}

void watch_open(struct store_fixture *f, struct watcher *watcher,
		const struct vd_store_watch_request *request)
{
	struct vd_store_watch_request copy = *request;

	memset(watcher, 0, sizeof *watcher);
	watcher->f = f;
	vdi_lock_init(&watcher->lock, VDI_LOCK_LEAF);
	vdi_condition_init(&watcher->changed);
	copy.ready = watcher_ready;
	copy.ready_arg = watcher;
	assert_status(vd_store_watch_open(f->store, &copy, &watcher->watch, NULL), VD_OK);
}

void watch_range(struct store_fixture *f, struct watcher *watcher, const char *key, const char *end,
		 vd_rev start)
{
	struct vd_store_watch_request request = { .key = K(key), .start_revision = start, .previous = true };

	if (end)
		request.range_end = end[0] ? K(end) : ZERO_END;
	watch_open(f, watcher, &request);
}

void watch_close(struct watcher *watcher)
{
	vd_store_watch_close(watcher->watch);
	vdi_condition_fini(&watcher->changed);
	vdi_lock_fini(&watcher->lock);
}

static bool watcher_is_ready(void *arg)
{
	struct watcher *watcher = arg;
	bool		is_ready;

	vdi_lock_acquire(&watcher->lock);
	is_ready = watcher->is_ready;
	vdi_lock_release(&watcher->lock);
	return is_ready;
}

vd_status watch_wait(struct watcher *watcher, size_t event_count_max)
{
	for (;;) {
		vd_status status;

		vdi_lock_acquire(&watcher->lock);
		watcher->is_ready = false;
		vdi_lock_release(&watcher->lock);
		status = vd_store_watch_next(watcher->watch, event_count_max, &watcher->batch,
					     &watcher->error);
		if (status != VD_AGAIN)
			return status;
		if (watcher->f->simulated) {
			wait_until(watcher->f, watcher_is_ready, watcher);
			continue;
		}
		vdi_lock_acquire(&watcher->lock);
		while (!watcher->is_ready)
			vdi_condition_wait(&watcher->changed, &watcher->lock);
		vdi_lock_release(&watcher->lock);
	}
}

static size_t append_event(char *text, size_t size, size_t used, const struct vd_store_event *event)
{
	struct vd_bytes key = vd_kv_key(event->kv);
	struct vd_bytes value = vd_kv_value(event->kv);

	if (used >= size)
		return used;
	used += (size_t) snprintf(text + used, size - used, " %s%.*s",
				  event->is_delete		  ? "-" :
				  vd_store_event_is_create(event) ? "+" :
								    "",
				  (int) key.size, (const char *) key.data);
	if (!event->is_delete && used < size)
		used += (size_t) snprintf(text + used, size - used, "=%.*s", (int) value.size,
					  (const char *) value.data);
	if (event->previous && used < size) {
		value = vd_kv_value(event->previous);
		used += (size_t) snprintf(text + used, size - used, "(%.*s)", (int) value.size,
					  (const char *) value.data);
	}
	return used;
}

const char *watch_text(struct watcher *watcher, size_t event_count_max)
{
	static char text[8192];
	vd_status   status = watch_wait(watcher, event_count_max);
	size_t	    used = 0;

	if (status != VD_OK)
		return vd_status_name(status);
	if (watcher->batch.event_count == 0) {
		snprintf(text, sizeof text, "progress %" PRId64, watcher->batch.revision);
		return text;
	}
	for (size_t i = 0; i < watcher->batch.event_count && used < sizeof text; i++) {
		const struct vd_store_event *event = &watcher->batch.events[i];

		if (i == 0 || event->kv->mod_rev != event[-1].kv->mod_rev)
			used += (size_t) snprintf(text + used, sizeof text - used, "%s%" PRId64 ":",
						  i ? " " : "", event->kv->mod_rev);
		used = append_event(text, sizeof text, used, event);
	}
	return text;
}

void expect_watch(struct watcher *watcher, size_t event_count_max, const char *expected)
{
	char   seen[8192];
	size_t used = 0;

	do {
		used += (size_t) snprintf(seen + used, sizeof seen - used, "%s%s", used ? " " : "",
					  watch_text(watcher, event_count_max));
	} while (watcher->f->factory->is_remote && used < strlen(expected) &&
		 strncmp(seen, expected, used) == 0);
	assert_string_equal(seen, expected);
}

bool ask_progress(struct watcher *watcher)
{
	bool	  is_there = !watcher->f->factory->no_progress;
	vd_status status = vd_store_watch_progress(watcher->watch);

	/* A remote store may have reported the compaction already; the next call of next shows it. */
	if (watcher->f->factory->is_remote && status == VD_EXPIRED)
		return false;
	assert_status(status, is_there ? VD_OK : VD_UNSUPPORTED);
	return is_there;
}

bool watch_is_quiet(struct watcher *watcher)
{
	return vd_store_watch_next(watcher->watch, 100, &watcher->batch, &watcher->error) == VD_AGAIN;
}
