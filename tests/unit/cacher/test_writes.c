/* Writes through a cacher: they pass to the store, with the cached object as a first guess that may be stale
 * and is never believed against the store. */
#include "cacher.h"
#include "cacher_fixture.h"
#include "env.h"
#include "store_chaos.h"

#define VALUE(app)                                                                                           \
	"{\"metadata\":{\"name\":\"x\",\"namespace\":\"a\",\"uid\":\"u-x\",\"labels\":{\"app\":\"" app "\"}" \
	"}}"

struct world {
	struct cacher_fixture f;
	struct vd_store	     *chaos;

	/* What the callbacks saw. */
	vd_rev	    seen[8];
	unsigned    calls;
	const char *accept; /* the app that a validator wants; NULL: any */
	bool	    interfere;

	bool		is_done;
	vd_status	status;
	vd_rev		revision;
	char		app[16]; /* of the answer's object */
	struct vd_error error;
};

static const struct vd_bytes ns = { "a", 1 }, name = { "x", 1 };

static void world_open(struct world *w, uint64_t seed)
{
	struct chaos_options calm = { 0 };

	memset(w, 0, sizeof *w);
	cacher_fixture_init(&w->f, seed);
	w->chaos = chaos_store_new(w->f.env, w->f.store, &calm);
	cacher_fixture_open(&w->f, w->chaos);
}

static void world_close(struct world *w)
{
	w->f.cacher = vd_cacher_close_wait(w->f.cacher);
	chaos_store_free(w->chaos);
	cacher_fixture_teardown(&w->f);
}

/* The cache knows nothing of what happens from now on. */
static void blind(struct world *w)
{
	struct chaos_options blind = { .stall = 1000, .delay_max = VD_SECONDS(100) };

	cacher_fixture_settle(&w->f);
	chaos_set(w->chaos, &blind);
}

static vd_rev stale(struct world *w)
{
	vd_rev revision = put_pod(&w->f, "a", "x", "new", NULL);

	cacher_fixture_settle(&w->f);
	assert_true(vd_cacher_revision(w->f.cacher) < revision);
	return revision;
}

static void done(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
		 const struct vd_error *error)
{
	struct world   *w = arg;
	struct vd_bytes app = VD_BYTES_NONE;

	assert_false(w->is_done);
	w->is_done = true;
	w->status = status;
	w->revision = revision;
	if (object)
		(void) vd_object_label_get(object, vd_bytes_of("app"), &app);
	snprintf(w->app, sizeof w->app, "%.*s", (int) app.size, (const char *) app.data);
	if (error)
		w->error = *error;
}

static vd_status finish(struct world *w)
{
	cacher_fixture_settle(&w->f);
	assert_true(w->is_done);
	w->is_done = false;
	return w->status;
}

static void note(struct world *w, struct vd_object *current)
{
	assert_true(w->calls < VDI_ARRAY_SIZE(w->seen));
	w->seen[w->calls++] = current ? vd_object_revision(current) : 0;
	if (w->interfere) {
		w->interfere = false;
		put_pod(&w->f, "a", "x", "other", NULL);
	}
}

static vd_status update(void *arg, struct vd_object *current, struct vd_bytes *ret_value, int64_t *ret_ttl_s,
			struct vd_error *reterr)
{
	note(arg, current);
	*ret_value = vd_bytes_of(VALUE("mine"));
	return VD_OK;
}

static vd_status validate(void *arg, struct vd_object *current, struct vd_error *reterr)
{
	struct world   *w = arg;
	struct vd_bytes app = VD_BYTES_NONE;

	note(w, current);
	(void) vd_object_label_get(current, vd_bytes_of("app"), &app);
	if (w->accept && !vd_bytes_equal(app, vd_bytes_of(w->accept)))
		return vd_error_set(reterr, VD_FORBIDDEN, "keep it");
	return VD_OK;
}

static vd_status try_update(struct world *w, const struct vd_preconditions *preconditions)
{
	w->calls = 0;
	assert_status(vd_cacher_update(w->f.cacher, ns, name, false, preconditions, update, done, w), VD_OK);
	return finish(w);
}

static vd_status try_delete(struct world *w, const struct vd_preconditions *preconditions, const char *accept)
{
	w->calls = 0;
	w->accept = accept;
	assert_status(vd_cacher_delete(w->f.cacher, ns, name, preconditions, validate, done, w), VD_OK);
	return finish(w);
}

static int64_t reads(struct world *w)
{
	const char	  *values[] = { "get", "", "pods" };
	struct vdi_metric *metric;
	int64_t		   count;

	assert_status(
		vdi_metric_get(vdi_env_metrics(w->f.env), VDI_METRIC_ETCD_REQUESTS_TOTAL, values, &metric),
		VD_OK);
	count = vdi_metric_value(metric);
	vdi_metric_release(metric);
	return count;
}

/* A current guess saves the read. rules: T-007 */
static void r581_the_cached_object_is_the_first_guess(void **state)
{
	struct world w;
	vd_rev	     first;

	world_open(&w, 1);
	first = put_pod(&w.f, "a", "x", "web", NULL);
	cacher_fixture_settle(&w.f);
	assert_status(try_update(&w, NULL), VD_OK);
	assert_int_equal(w.calls, 1);
	assert_int_equal(w.seen[0], first);
	assert_int_equal(w.revision, first + 1);
	assert_string_equal(w.app, "mine");
	cacher_fixture_settle(&w.f);
	assert_status(try_delete(&w, NULL, "mine"), VD_OK);
	assert_int_equal(w.revision, first + 2);
	assert_int_equal(reads(&w), 0);
	world_close(&w);
}

/* A stale one costs a conflict, and the function runs again on what the store has.
 * rules: R-129, T-008, T-035 */
static void r581_a_stale_guess_is_tried_again(void **state)
{
	struct world w;
	vd_rev	     first, second;

	world_open(&w, 2);
	first = put_pod(&w.f, "a", "x", "web", NULL);
	blind(&w);
	second = stale(&w);
	assert_status(try_update(&w, NULL), VD_OK);
	assert_int_equal(w.calls, 2);
	assert_int_equal(w.seen[0], first);
	assert_int_equal(w.seen[1], second);
	assert_int_equal(w.revision, second + 1);
	assert_status(try_delete(&w, NULL, NULL), VD_OK);
	assert_int_equal(w.seen[0], first);
	assert_int_equal(w.seen[w.calls - 1], second + 1);
	assert_int_equal(w.revision, second + 2);
	assert_string_equal(w.app, "mine");
	/* A guess of something that is gone. */
	assert_status(try_update(&w, NULL), VD_NOT_FOUND);
	assert_status(try_delete(&w, NULL, NULL), VD_NOT_FOUND);
	world_close(&w);
}

/* Somebody writes between the validation and the deletion: it is validated again. */
static void t009_deletion_meets_a_write(void **state)
{
	struct world w;
	vd_rev	     first;

	world_open(&w, 3);
	first = put_pod(&w.f, "a", "x", "web", NULL);
	cacher_fixture_settle(&w.f);
	w.interfere = true;
	assert_status(try_delete(&w, NULL, NULL), VD_OK);
	assert_int_equal(w.calls, 2);
	assert_int_equal(w.seen[0], first);
	assert_int_equal(w.seen[1], first + 1);
	assert_string_equal(w.app, "other");
	world_close(&w);
}

/* What only the stale state allows is not done. rules: T-011 */
static void t012_a_validator_that_accepts_the_stale_state_only(void **state)
{
	struct world	  w;
	struct vd_object *object = NULL;
	struct vd_error	  error;
	vd_rev		  second;

	world_open(&w, 4);
	put_pod(&w.f, "a", "x", "web", NULL);
	blind(&w);
	second = stale(&w);
	assert_status(try_delete(&w, NULL, "web"), VD_FORBIDDEN);
	assert_string_equal(w.error.message, "keep it");
	assert_int_equal(w.seen[w.calls - 1], second);
	assert_status(vd_cacher_get_wait(w.f.cacher, ns, name, VD_REVISION_UNSET, &object, &error), VD_OK);
	vd_object_unref(object);
	/* And the other way round: refused on the stale state, allowed on the fresh one. */
	assert_status(try_delete(&w, NULL, "new"), VD_OK);
	assert_int_equal(w.revision, second + 1);
	world_close(&w);
}

static void t013_t014_preconditions_are_about_the_fresh_state(void **state)
{
	struct world		w;
	struct vd_preconditions stale_revision = { 0 }, fresh_revision = { 0 };
	char			text[2][24];
	vd_rev			first, second;

	world_open(&w, 5);
	first = put_pod(&w.f, "a", "x", "web", NULL);
	blind(&w);
	second = stale(&w);
	snprintf(text[0], sizeof text[0], "%lld", (long long) first);
	snprintf(text[1], sizeof text[1], "%lld", (long long) second);
	stale_revision.revision = vd_bytes_of(text[0]);
	fresh_revision.revision = vd_bytes_of(text[1]);
	assert_status(try_delete(&w, &stale_revision, NULL), VD_PRECONDITION);
	assert_status(try_update(&w, &stale_revision), VD_PRECONDITION);
	assert_status(try_update(&w, &fresh_revision), VD_OK);
	assert_int_equal(w.revision, second + 1);
	snprintf(text[1], sizeof text[1], "%lld", (long long) second + 1);
	fresh_revision.revision = vd_bytes_of(text[1]);
	assert_status(try_delete(&w, &fresh_revision, NULL), VD_OK);
	world_close(&w);
}

/* Writes do not need the cache. */
static void r580_writes_pass_while_the_cache_is_not_ready(void **state)
{
	struct world w;

	world_open(&w, 6);
	vdi_ready_set_pending(&w.f.cacher->ready, "test");
	assert_status(vd_cacher_create(w.f.cacher, ns, name, vd_bytes_of(VALUE("web")), 0, done, &w), VD_OK);
	assert_status(finish(&w), VD_OK);
	assert_status(vd_cacher_create(w.f.cacher, ns, name, vd_bytes_of(VALUE("web")), 0, done, &w), VD_OK);
	assert_status(finish(&w), VD_EXISTS);
	assert_status(try_update(&w, NULL), VD_OK);
	assert_int_equal(reads(&w), 1); /* no guess: it reads */
	assert_status(try_delete(&w, NULL, NULL), VD_OK);
	world_close(&w);
}

/* A write that changed nothing has no event and no revision. rules: R-671 */
static void r106_an_update_without_change_moves_nothing(void **state)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct recorder	       *r = calloc(1, sizeof *r);
	struct world		w;
	vd_rev			before;

	world_open(&w, 7);
	put_pod(&w.f, "a", "x", "web", NULL);
	cacher_fixture_settle(&w.f);
	assert_status(try_update(&w, NULL), VD_OK);
	cacher_fixture_settle(&w.f);
	before = w.revision;
	options.revision = before;
	assert_status(recorder_open(&w.f, r, &options, NULL), VD_OK);
	cacher_fixture_settle(&w.f);
	assert_status(try_update(&w, NULL), VD_OK);
	cacher_fixture_settle(&w.f);
	assert_int_equal(vd_cacher_revision(w.f.cacher), before);
	assert_int_equal(r->count, 0);
	recorder_close(&w.f, r);
	world_close(&w);
	free(r);
}

/* The blocking forms: what they give back. */
static void r130_blocking_writes(void **state)
{
	struct vd_object *object = NULL;
	struct world	  w;
	vd_rev		  revision = 0;

	world_open(&w, 8);
	assert_status(vd_cacher_put_wait(w.f.cacher, ns, name, vd_bytes_of(VALUE("web")), &object, &w.error),
		      VD_OK);
	assert_int_equal(vd_object_revision(object), 2);
	vd_object_unref(object);
	object = NULL;
	assert_status(vd_cacher_put_wait(w.f.cacher, ns, name, vd_bytes_of(VALUE("db")), NULL, &w.error),
		      VD_OK);
	assert_status(vd_cacher_get_wait(w.f.cacher, ns, name, VD_REVISION_UNSET, &object, &w.error), VD_OK);
	assert_int_equal(vd_object_revision(object), 3);
	vd_object_unref(object);
	object = NULL;
	assert_status(vd_cacher_delete_wait(w.f.cacher, ns, name, &revision, &w.error), VD_OK);
	assert_int_equal(revision, 4);
	assert_status(vd_cacher_delete_wait(w.f.cacher, ns, name, &revision, &w.error), VD_NOT_FOUND);
	assert_int_equal(revision, 4);
	assert_status(vd_cacher_get_wait(w.f.cacher, ns, name, VD_REVISION_UNSET, &object, &w.error),
		      VD_NOT_FOUND);
	assert_null(object);
	assert_status(vd_cacher_put_wait(w.f.cacher, ns, name, vd_bytes_of("{"), &object, &w.error),
		      VD_BAD_REQUEST);
	assert_null(object);
	world_close(&w);
}

/* A write that cannot even be begun is answered by its result, and leaves nothing. */
static void torture_writes(void **state)
{
	struct world w;
	bool	     failed = true;

	world_open(&w, 9);
	for (uint64_t nth = 1; failed; nth++) {
		vd_status status;

		assert_true(nth < 200);
		put_pod(&w.f, "a", "x", "new", NULL);
		cacher_fixture_settle(&w.f);
		(void) vdi_alloc_fail_nth(nth, 1);
		status = vd_cacher_delete_wait(w.f.cacher, ns, name, NULL, NULL);
		if (status == VD_OK)
			status = vd_cacher_put_wait(w.f.cacher, ns, name, vd_bytes_of(VALUE("mine")), NULL,
						    NULL);
		failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_true(status == VD_OK || (failed && (status == VD_NOMEM || status == VD_NOT_FOUND)));
		cacher_fixture_settle(&w.f);
	}
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r581_the_cached_object_is_the_first_guess),
		cmocka_unit_test(r581_a_stale_guess_is_tried_again),
		cmocka_unit_test(t009_deletion_meets_a_write),
		cmocka_unit_test(t012_a_validator_that_accepts_the_stale_state_only),
		cmocka_unit_test(t013_t014_preconditions_are_about_the_fresh_state),
		cmocka_unit_test(r580_writes_pass_while_the_cache_is_not_ready),
		cmocka_unit_test(r130_blocking_writes),
		cmocka_unit_test(torture_writes),
		cmocka_unit_test(r106_an_update_without_change_moves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
