/* Every cell of revision x match x limit x continue x scope x selector, against a model: the states that the
 * store had, revision by revision. Three worlds: a cache that has the whole history, one that has none (exact
 * revisions come from the store), and a store that cannot prove its progress. */
#include "cacher.h"
#include "cacher_fixture.h"
#include "continue_token.h"
#include "delegator.h"
#include "env.h"
#if VDI_ETCD
#include "etcd_loop.h"
#endif

/* ---- The model ---- */

struct item {
	char	    name[16]; /* "a/x" */
	const char *app;
	const char *node;
	vd_rev	    revision;
};

#define STATES_MAX 64
#define ITEMS_MAX 24

static struct state {
	vd_rev	    revision;
	size_t	    count;
	struct item items[ITEMS_MAX]; /* key order */
} states[STATES_MAX];
static size_t state_count;

static struct state *begin_state(void)
{
	assert_true(state_count < STATES_MAX);
	states[state_count] = state_count ? states[state_count - 1] : (struct state) { 0 };
	return &states[state_count++];
}

static size_t place_of(const struct state *state, const char *name)
{
	size_t place = 0;

	while (place < state->count && strcmp(state->items[place].name, name) < 0)
		place++;
	return place;
}

static void put(struct cacher_fixture *f, const char *ns, const char *name, const char *app, const char *node)
{
	struct state *state = begin_state();
	struct item   item = { .app = app, .node = node };
	size_t	      place;

	snprintf(item.name, sizeof item.name, "%s/%s", ns, name);
	state->revision = item.revision = put_pod(f, ns, name, app, node);
	place = place_of(state, item.name);
	if (place == state->count || strcmp(state->items[place].name, item.name) != 0) {
		memmove(&state->items[place + 1], &state->items[place], (state->count - place) * sizeof item);
		state->count++;
	}
	state->items[place] = item;
}

static void drop(struct cacher_fixture *f, const char *ns, const char *name)
{
	struct state *state = begin_state();
	char	      full[32];
	size_t	      place;

	state->revision = delete_pod(f, ns, name);
	snprintf(full, sizeof full, "%s/%s", ns, name);
	place = place_of(state, full);
	state->count--;
	memmove(&state->items[place], &state->items[place + 1],
		(state->count - place) * sizeof state->items[0]);
}

/* Something else in the same store moves the revision. */
static void put_other(struct cacher_fixture *f)
{
	struct state   *state = begin_state();
	struct vd_error error;

	assert_status(vd_store_put_wait(f->store, vd_bytes_of("/registry/podsx/a"), vd_bytes_of("{}"),
					&state->revision, &error),
		      VD_OK);
}

static const struct state *state_at(vd_rev revision)
{
	const struct state *found = NULL;

	for (size_t i = 0; i < state_count; i++)
		if (states[i].revision <= revision)
			found = &states[i];
	return found;
}

/* ---- A question ---- */

struct question {
	const char	      *ns, *name, *app, *node;
	vd_rev		       revision;
	enum vd_revision_match match;
	int64_t		       limit;
};

static bool wants(const struct question *q, const struct item *item)
{
	size_t ns_size = strlen(q->ns);

	if (ns_size && (strncmp(item->name, q->ns, ns_size) != 0 || item->name[ns_size] != '/'))
		return false;
	if (*q->name && strcmp(strchr(item->name, '/') + 1, q->name) != 0)
		return false;
	if (*q->app && (item->app == NULL || strcmp(item->app, q->app) != 0))
		return false;
	return *q->node == 0 || (item->node && strcmp(item->node, q->node) == 0);
}

static bool in_scope(const struct question *q, const struct item *item)
{
	struct question scope = *q;

	scope.name = scope.app = scope.node = "";
	return wants(&scope, item);
}

static const char *expected_names(const struct question *q, const struct state *state, size_t from,
				  size_t max)
{
	static char text[512];
	size_t	    size = 0, seen = 0;

	text[0] = 0;
	for (size_t i = 0; state && i < state->count; i++)
		if (wants(q, &state->items[i]) && seen++ >= from && seen <= from + max)
			size += (size_t) snprintf(text + size, sizeof text - size, "%s%s@%lld",
						  size ? " " : "", state->items[i].name,
						  (long long) state->items[i].revision);
	return text;
}

static const char *names_of(struct vd_list *list)
{
	static char	  text[512];
	size_t		  size = 0;
	struct vd_object *object;

	text[0] = 0;
	while ((object = vd_list_next(list)))
		size += (size_t) snprintf(
			text + size, sizeof text - size, "%s%.*s/%.*s@%lld", size ? " " : "",
			(int) vd_object_namespace(object).size,
			(const char *) vd_object_namespace(object).data, (int) vd_object_name(object).size,
			(const char *) vd_object_name(object).data, (long long) vd_object_revision(object));
	return text;
}

static struct vd_list_options options_of(const struct question *q)
{
	static char	       label[32], field[48];
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;

	snprintf(label, sizeof label, "%s%s", *q->app ? "app=" : "", q->app);
	snprintf(field, sizeof field, "%s%s", *q->node ? "spec.nodeName=" : "", q->node);
	options.namespace_name = vd_bytes_of(q->ns);
	options.name = vd_bytes_of(q->name);
	options.label_selector = vd_bytes_of(label);
	options.field_selector = vd_bytes_of(field);
	options.revision = q->revision;
	options.match = q->match;
	options.limit = q->limit;
	return options;
}

static void fail_at(const struct question *q, vd_status status, const struct vd_error *error)
{
	fail_msg("ns=%s name=%s app=%s node=%s revision=%lld match=%d limit=%lld: %s %s", q->ns, q->name,
		 q->app, q->node, (long long) q->revision, q->match, (long long) q->limit,
		 vd_status_name(status), error->message);
}

static uint64_t lists_of_store(const struct cacher_fixture *f)
{
	struct vdi_metric *metric;
	const char	  *values[] = { "", "pods", "etcd", "" };
	uint64_t	   count;

	assert_status(vdi_metric_get(vdi_env_metrics(f->env), VDI_METRIC_STORAGE_LIST_TOTAL, values, &metric),
		      VD_OK);
	count = (uint64_t) vdi_metric_value(metric);
	vdi_metric_release(metric);
	return count;
}

enum world { WHOLE_HISTORY, NO_HISTORY, NO_PROGRESS, WORLDS };

static vd_rev compacted; /* no list is older */

static bool is_exact(const struct question *q, bool recursive)
{
	return q->match == VD_MATCH_EXACT ||
	       (q->match == VD_MATCH_UNSET && q->limit > 0 && q->revision > 0 && recursive);
}

/* ..R-586: does the store answer? */
static bool store_answers(const struct question *q, enum world world, bool recursive, vd_rev cache_revision)
{
	if (is_exact(q, recursive)) {
		if (!recursive)
			return true;
		if (q->revision > cache_revision)
			return world == NO_PROGRESS;
		return world != WHOLE_HISTORY && q->revision < cache_revision;
	}
	return q->revision == VD_REVISION_UNSET && world == NO_PROGRESS;
}

static struct vd_list *next_page(struct cacher_fixture *f, const struct question *q, struct vd_list *list,
				 vd_rev revision)
{
	struct vd_list_options options = options_of(q);
	struct vd_list	      *next = NULL;
	struct vd_error	       error;
	char		       token[512];

	snprintf(token, sizeof token, "%.*s", (int) vd_list_continue(list).size,
		 (const char *) vd_list_continue(list).data);
	options.revision = revision; /* "" and "0" are allowed with a token */
	options.match = VD_MATCH_UNSET;
	options.continue_token = vd_bytes_of(token);
	assert_status(vd_cacher_list_wait(f->cacher, &options, &next, &error), VD_OK);
	vd_list_free(list);
	return next;
}

/* The pages of a list, all of one revision, each object once; and what they say of the rest. Takes over the
 * list. */
static void check_pages(struct cacher_fixture *f, const struct question *q, int64_t limit,
			struct vd_list *list, const struct state *state, vd_rev revision)
{
	bool   has_selector = *q->app || *q->node || *q->name;
	size_t from = 0, page_size = limit ? (size_t) limit : ITEMS_MAX;

	for (unsigned page = 0;; page++) {
		size_t all = 0, behind = 0, count;
		bool   has_token = vd_list_continue(list).size > 0;

		for (size_t i = 0; state && i < state->count; i++) {
			if (wants(q, &state->items[i]))
				all++;
			else if (all >= from + page_size && in_scope(q, &state->items[i]))
				behind++; /* no match, but a candidate */
		}
		count = VDI_MIN(all - from, page_size);
		if (strcmp(names_of(list), expected_names(q, state, from, page_size)) != 0)
			fail_at(q, VD_OK, &(struct vd_error) { .message = "other objects" });
		assert_int_equal(vd_list_revision(list), revision);
		/* only without selectors. */
		if (!has_selector && all - from > count)
			assert_int_equal(vd_list_remaining(list), all - from - count);
		else
			assert_int_equal(vd_list_remaining(list), -1);
		/* a token comes with every full page that more matches follow, with no other,
		 * but for one that only other candidates follow. */
		if (all - from > count)
			assert_true(has_token);
		else if (count < page_size || behind == 0)
			assert_false(has_token);
		from += count;
		if (!has_token)
			break;
		assert_true(page < ITEMS_MAX);
		list = next_page(f, q, list, page % 2 ? VD_REVISION_UNSET : VD_REVISION_ANY);
	}
	vd_list_free(list);
}

static void ask(struct cacher_fixture *f, const struct question *q, enum world world)
{
	struct vd_list_options options = options_of(q);
	bool		       recursive = *q->name == 0 || *q->ns == 0;
	const struct state    *newest = &states[state_count - 1];
	vd_rev		       cached = vd_cacher_revision(f->cacher), revision;
	uint64_t	       before = lists_of_store(f);
	vd_mono		       started = vd_env_now(f->env);
	struct vd_list	      *list = NULL;
	struct vd_error	       error = { 0 };
	vd_status	       status = vd_cacher_list_wait(f->cacher, &options, &list, &error);
	bool		       from_store = store_answers(q, world, recursive, cached);
	int64_t		       limit = q->limit;

	if (q->match != VD_MATCH_UNSET && q->revision == VD_REVISION_UNSET) {
		assert_status(status, VD_INVALID);
		return;
	}
	if (q->match == VD_MATCH_EXACT && q->revision == VD_REVISION_ANY) {
		assert_status(status, VD_INVALID);
		return;
	}
	if (q->revision > newest->revision) {
		if (status != VD_TOO_LARGE_REVISION)
			fail_at(q, status, &error);
		assert_int_equal(error.requested, q->revision);
		/* The cache waits, the store knows at once. */
		assert_int_equal(error.retry_after_s, from_store ? 0 : 1);
		assert_int_equal(vd_mono_since(vd_env_now(f->env), started).ns >= VD_SECONDS(3).ns,
				 !from_store);
		return;
	}
	if (is_exact(q, recursive) && q->revision < compacted) {
		if (status != VD_EXPIRED)
			fail_at(q, status, &error);
		return;
	}
	if (status != VD_OK)
		fail_at(q, status, &error);
	if (lists_of_store(f) - before != from_store)
		fail_at(q, status, &error);
	if (is_exact(q, recursive)) {
		revision = q->revision;
	} else {
		revision = vd_list_revision(list);
		/* At least as new as asked, as the store for a consistent read, and never older than the
		 * cache was. */
		assert_true(revision >= VDI_MAX(q->revision, from_store ? 0 : cached));
		if (q->revision == VD_REVISION_UNSET)
			assert_int_equal(revision, newest->revision);
	}
	if (q->revision == VD_REVISION_ANY && !from_store)
		limit = 0;
	if (!recursive)
		limit = 0;
	check_pages(f, q, limit, list, state_at(revision), revision);
}

/* The store says that it cannot. */
static struct vd_store_ops	  no_progress_ops;
static const struct vd_store_ops *whole_ops;

static vd_status status_without_progress(struct vd_store *store, struct vd_store_status *ret_status)
{
	vd_status status = whole_ops->status(store, ret_status);

	ret_status->progress = false;
	return status;
}

static void fill(struct cacher_fixture *f)
{
	state_count = 0;
	compacted = 0;
	put(f, "a", "x", "web", "n1");
	put(f, "a", "y", "db", "n1");
	put(f, "ab", "x", "web", NULL);
	put(f, "b", "x", "web", "n2");
	put(f, "a", "x", "db", "n1");
	put(f, "c", "k", NULL, "n1");
	drop(f, "b", "x");
	put_other(f);
	put(f, "c", "l", "web", "n1");
	put(f, "c", "m", "web", "n2");
	put(f, "a", "x", "web", "n2");
	drop(f, "a", "y");
	put(f, "b", "z", "db", NULL);
	put(f, "c", "n", "db", "n1");
}

static void ask_everything(struct cacher_fixture *f, enum world world)
{
	static const struct {
		const char *ns, *name;
	} scopes[] = { { "", "" },   { "a", "" },     { "c", "" }, { "nothing", "" },
		       { "a", "x" }, { "c", "gone" }, { "", "x" } };
	static const struct {
		const char *app, *node;
	} selectors[] = { { "", "" }, { "web", "" }, { "", "n1" }, { "web", "n1" }, { "", "n9" } };
	static const int64_t limits[] = { 0, 1, 2, 3, 100 };
	vd_rev		     last = states[state_count - 1].revision;
	/* The last but one is where nothing of ours happened. */
	vd_rev revisions[] = { VD_REVISION_UNSET,
			       VD_REVISION_ANY,
			       states[3].revision,
			       states[5].revision,
			       states[6].revision,
			       states[7].revision,
			       last - 1,
			       last,
			       last + 1 };

	for (size_t a = 0; a < VDI_ARRAY_SIZE(scopes); a++)
		for (size_t b = 0; b < VDI_ARRAY_SIZE(selectors); b++)
			for (size_t c = 0; c < VDI_ARRAY_SIZE(limits); c++)
				for (size_t d = 0; d < VDI_ARRAY_SIZE(revisions); d++)
					for (int match = VD_MATCH_UNSET; match <= VD_MATCH_EXACT; match++) {
						struct question q = {
							scopes[a].ns,	  scopes[a].name,
							selectors[b].app, selectors[b].node,
							revisions[d],	  (enum vd_revision_match) match,
							limits[c]
						};

						/* A wait of 3 s each: not so often that the store compacts
						 * meanwhile. */
						if (revisions[d] <= last || (b == 0 && c == 0))
							ask(f, &q, world);
					}
}

static void note_compacted(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	(void) arg;
	(void) revision;
	(void) error;
	assert_status(status, VD_OK);
}

/* Everything once more when the store was compacted between two revisions that are asked for: at once, and
 * when the cache has dropped what it need not keep. */
static void ask_everything_compacted(struct cacher_fixture *f, enum world world)
{
	struct question	       first = { "", "", "", "", states[5].revision, VD_MATCH_EXACT, 2 };
	struct vd_list_options options = options_of(&first);
	struct vd_list	      *list, *next = NULL;
	struct vd_error	       error;
	char		       token[512];

	ask_everything(f, world); /* states are retained */
	assert_status(vd_cacher_list_wait(f->cacher, &options, &list, &error), VD_OK);
	snprintf(token, sizeof token, "%.*s", (int) vd_list_continue(list).size,
		 (const char *) vd_list_continue(list).data);
	vd_list_free(list);
	compacted = states[6].revision;
	assert_status(vd_store_compact(f->store, compacted, false, note_compacted, NULL), VD_OK);
	cacher_fixture_settle(f);
	options = options_of(&(struct question) { "", "", "", "", VD_REVISION_UNSET, VD_MATCH_UNSET, 2 });
	options.continue_token = vd_bytes_of(token);
	assert_status(vd_cacher_list_wait(f->cacher, &options, &next, &error), VD_EXPIRED);
	ask_everything(f, world);
	vdi_sim_advance(f->env, VD_SECONDS(16));
	ask_everything(f, world);
	for (size_t i = 0; i < f->cacher->watch_cache.store.retained_count; i++)
		assert_true(f->cacher->watch_cache.store.retained[i].revision >= compacted);
}

/* rules,
 * T-018, T-019, T-020, T-021, T-024, T-026, T-029, T-030, T-135 */
static void t018_r151_every_cell_with_the_whole_history(void **state)
{
	struct cacher_fixture f;

	cacher_fixture_init(&f, 1);
	fill(&f);
	cacher_fixture_open(&f, NULL);
	ask_everything(&f, WHOLE_HISTORY);
	cacher_fixture_teardown(&f);
}

static void t018_r584_every_cell_without_a_history(void **state)
{
	struct cacher_fixture f;

	cacher_fixture_init(&f, 2);
	f.options.no_backfill = true;
	fill(&f);
	cacher_fixture_open(&f, NULL);
	ask_everything(&f, NO_HISTORY);
	cacher_fixture_teardown(&f);
}

static void t018_r586_every_cell_when_the_store_cannot_prove_progress(void **state)
{
	struct cacher_fixture f;

	cacher_fixture_init(&f, 3);
	fill(&f);
	whole_ops = f.store->ops;
	no_progress_ops = *whole_ops;
	no_progress_ops.status = status_without_progress;
	f.store->ops = &no_progress_ops;
	cacher_fixture_open(&f, NULL);
	ask_everything(&f, NO_PROGRESS);
	f.store->ops = whole_ops;
	cacher_fixture_teardown(&f);
}

/* rules, T-018, T-038 */
static void t018_r230_every_cell_after_a_compaction(void **state)
{
	for (int world = WHOLE_HISTORY; world <= NO_HISTORY; world++) {
		struct cacher_fixture f;

		cacher_fixture_init(&f, 4);
		f.options.no_backfill = world == NO_HISTORY;
		fill(&f);
		cacher_fixture_open(&f, NULL);
		ask_everything_compacted(&f, (enum world) world);
		cacher_fixture_teardown(&f);
	}
}

/* A cache in which nothing happens drops a retained state too. */
static void r455_a_retained_state_does_not_outlive_a_compaction(void **state)
{
	struct cacher_fixture  f;
	struct question	       page = { "", "", "", "", VD_REVISION_UNSET, VD_MATCH_UNSET, 1 };
	struct vd_list_options options = options_of(&page);
	struct vd_list	      *list;
	struct vd_error	       error;

	cacher_fixture_init(&f, 5);
	f.options.no_backfill = true;
	fill(&f);
	cacher_fixture_open(&f, NULL);
	assert_false(vdi_watch_cache_can_compact(&f.cacher->watch_cache));
	vdi_sim_advance(f.env, VD_SECONDS(60)); /* nothing to wait for */
	assert_status(vd_cacher_list_wait(f.cacher, &options, &list, &error), VD_OK);
	vd_list_free(list);
	assert_int_equal(f.cacher->watch_cache.store.retained_count, 1);
	for (unsigned i = 0; i < 3; i++)
		put_other(&f);
	compacted = states[state_count - 1].revision;
	assert_status(vd_store_compact(f.store, compacted, false, note_compacted, NULL), VD_OK);
	vdi_sim_advance(f.env, VD_SECONDS(16));
	assert_int_equal(f.cacher->watch_cache.store.retained_count, 0);
	cacher_fixture_teardown(&f);
}

/* RunTestWatchFromZero: the newest state is there from 0 on, the one before the compaction is gone. */
static void t053_a_watch_from_before_a_compaction_is_expired(void **state)
{
	struct cacher_fixture	f;
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct recorder	       *r = calloc(1, sizeof *r);
	char			expected[64];
	vd_rev			before, last;

	assert_non_null(r);
	cacher_fixture_setup(&f, 7);
	put_pod(&f, "a", "x", NULL, NULL);
	before = put_pod(&f, "a", "x", "old", NULL);
	last = put_pod(&f, "a", "x", "new", NULL);
	assert_status(vd_store_compact(f.store, last, false, note_compacted, NULL), VD_OK);
	vdi_sim_advance(f.env, VD_SECONDS(16));
	options.revision = 0;
	assert_status(recorder_open(&f, r, &options, NULL), VD_OK);
	cacher_fixture_settle(&f);
	snprintf(expected, sizeof expected, "+a/x@%lld", (long long) last);
	assert_string_equal(recorder_text(r), expected);
	recorder_close(&f, r);
	options.revision = before;
	memset(r, 0, sizeof *r);
	assert_status(recorder_open(&f, r, &options, NULL), VD_OK);
	cacher_fixture_settle(&f);
	assert_string_equal(recorder_text(r), "!expired");
	recorder_close(&f, r);
	free(r);
	cacher_fixture_teardown(&f);
}

#if VDI_ETCD
/* Over etcd's protocol; another server compacts, as kube-apiservers do. */
static void t018_r172_every_cell_after_a_compaction_over_etcd(void **state)
{
	struct cacher_fixture f;
	struct etcd_loop      loop;
	char		      text[32];

	cacher_fixture_init(&f, 6);
	(void) vd_store_close_wait(f.store);
	etcd_loop_open(&loop, f.env, 6, VD_SECONDS(600));
	f.store = etcd_loop_store(&loop);
	fill(&f);
	cacher_fixture_open(&f, NULL);
	ask_everything_compacted(&f, WHOLE_HISTORY);
	/* Somebody else's compaction. */
	compacted = states[7].revision;
	snprintf(text, sizeof text, "%lld", (long long) compacted);
	assert_status(
		vd_store_put_wait(loop.mvcc, vd_bytes_of("compact_rev_key"), vd_bytes_of(text), NULL, NULL),
		VD_OK);
	assert_status(vd_store_compact(loop.mvcc, compacted, false, note_compacted, NULL), VD_OK);
	cacher_fixture_settle(&f);
	ask(&f, &(struct question) { "", "", "", "", states[6].revision, VD_MATCH_EXACT, 0 }, WHOLE_HISTORY);
	ask(&f, &(struct question) { "", "", "", "", states[7].revision, VD_MATCH_EXACT, 0 }, WHOLE_HISTORY);
	f.cacher = vd_cacher_close_wait(f.cacher);
	f.store = vd_store_close_wait(f.store);
	etcd_loop_close(&loop);
	cacher_fixture_teardown(&f);
}
#endif

/* Upstream's rows: the count of what follows the page, in its namespace only; absent if nothing follows, and
 * with every selector. From the cache and from the store. */
static void t101_r155_the_remaining_count(void **state)
{
	static const struct {
		int64_t	    limit, remaining;
		const char *labels, *fields;
		bool	    has_token;
	} rows[] = {
		{ 0, -1, "", "", false },
		{ 1, 4, "", "", true },
		{ 4, 1, "", "", true },
		{ 5, -1, "", "", false },
		{ 6, -1, "", "", false },
		{ 2, -1, "app=web", "", true },
		{ 2, -1, "app!=db", "", true },
		{ 2, -1, "", "spec.nodeName=n1", true },
		{ 5, -1, "app=web", "", false },
		{ 2, -1, "", "metadata.namespace=a", true },
		{ 2, -1, "app", "spec.nodeName=n1", true },
	};
	struct cacher_fixture f;
	vd_rev		      past = 0;

	(void) state;
	cacher_fixture_init(&f, 31);
	f.options.no_backfill = true;
	for (unsigned i = 0; i < 5; i++) {
		char name[8];

		snprintf(name, sizeof name, "p%u", i);
		put_pod(&f, "a", name, "web", "n1");
		past = put_pod(&f, "b", name, "web", "n1");
	}
	put_pod(&f, "b", "later", "web", "n1");
	cacher_fixture_open(&f, NULL);
	for (size_t i = 0; i < 2 * VDI_ARRAY_SIZE(rows); i++) {
		bool		       is_of_store = i >= VDI_ARRAY_SIZE(rows);
		struct vd_list_options options = VD_LIST_OPTIONS_INIT;
		struct vd_list	      *list = NULL;
		uint64_t	       before = lists_of_store(&f);
		size_t		       row = i % VDI_ARRAY_SIZE(rows);

		options.namespace_name = vd_bytes_of("a");
		options.label_selector = vd_bytes_of(rows[row].labels);
		options.field_selector = vd_bytes_of(rows[row].fields);
		options.limit = rows[row].limit;
		if (is_of_store) {
			options.match = VD_MATCH_EXACT;
			options.revision = past;
		}
		assert_status(vd_cacher_list_wait(f.cacher, &options, &list, NULL), VD_OK);
		assert_int_equal(lists_of_store(&f) > before, is_of_store);
		if (vd_list_remaining(list) != rows[row].remaining ||
		    (vd_list_continue(list).size > 0) != rows[row].has_token)
			fail_msg("row %zu: %lld remain", i, (long long) vd_list_remaining(list));
		vd_list_free(list);
	}
	cacher_fixture_teardown(&f);
}

struct listed {
	bool		done;
	vd_status	status;
	struct vd_list *list;
};

static void note_list(void *arg, vd_status status, struct vd_list *list, const struct vd_error *error)
{
	*(struct listed *) arg = (struct listed) { true, status, list };
}

static uint64_t fetched_of(const struct cacher_fixture *f, const char *index)
{
	struct vdi_metric *metric;
	const char	  *values[] = { "", "pods", index };
	uint64_t	   count;

	assert_status(vdi_metric_get(vdi_env_metrics(f->env), VDI_METRIC_CACHE_LIST_FETCHED_OBJECTS_TOTAL,
				     values, &metric),
		      VD_OK);
	count = (uint64_t) vdi_metric_value(metric);
	vdi_metric_release(metric);
	return count;
}

/* A list that waited for its revision looks at the objects of its index, those of that revision included. A
 * value that no object has is no object. Without an index all objects are looked at: a field gets one on
 * demand only. */
static void t163_r442_a_list_that_waited_uses_its_index(void **state)
{
	static const char *const labels_indexed[] = { "app", NULL };
	static const struct {
		const char *labels, *fields, *index;
		uint64_t    fetched; /* with the one that came last */
		const char *names;
	} rows[] = {
		{ "", "", "", 7, "a/p0@2 a/p1@3 a/p2@4 a/p3@5 a/p4@6 a/p5@7 a/p6@8" },
		{ "", "spec.nodeName=n1", "", 7, "a/p1@3 a/p4@6 a/p6@8" },
		{ "app=web", "", "l:app", 4, "a/p0@2 a/p2@4 a/p4@6 a/p6@8" },
		{ "app=none", "", "l:app", 0, "" },
		{ "tier=x", "", "", 7, "" },
		{ "tier!=x,app=web", "", "l:app", 4, "a/p0@2 a/p2@4 a/p4@6 a/p6@8" },
		{ "app=web", "metadata.name!=p0", "l:app", 4, "a/p2@4 a/p4@6 a/p6@8" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_list_options options = VD_LIST_OPTIONS_INIT;
		struct listed	       listed = { 0 };
		struct cacher_fixture  f;
		uint64_t	       before;
		char		       name[8];

		cacher_fixture_init(&f, 32);
		f.options.index_labels = labels_indexed;
		cacher_fixture_open(&f, NULL);
		for (unsigned n = 0; n < 6; n++) {
			snprintf(name, sizeof name, "p%u", n);
			options.revision =
				put_pod(&f, "a", name, n % 2 ? "db" : "web", n % 3 == 1 ? "n1" : "n2");
		}
		cacher_fixture_settle(&f);
		options.revision++;
		options.label_selector = vd_bytes_of(rows[i].labels);
		options.field_selector = vd_bytes_of(rows[i].fields);
		before = fetched_of(&f, rows[i].index);
		assert_status(vd_cacher_list(f.cacher, &options, note_list, &listed, NULL), VD_OK);
		vdi_sim_advance(f.env, VD_SECONDS(2));
		assert_false(listed.done);
		assert_int_equal(put_pod(&f, "a", "p6", "web", "n1"), options.revision);
		cacher_fixture_settle(&f);
		assert_true(listed.done);
		assert_status(listed.status, VD_OK);
		assert_int_equal(vd_list_revision(listed.list), options.revision);
		assert_string_equal(names_of(listed.list), rows[i].names);
		if (fetched_of(&f, rows[i].index) - before != rows[i].fetched)
			fail_msg("row %zu: %llu objects", i,
				 (unsigned long long) (fetched_of(&f, rows[i].index) - before));
		vd_list_free(listed.list);
		cacher_fixture_teardown(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t018_r151_every_cell_with_the_whole_history),
		cmocka_unit_test(t018_r584_every_cell_without_a_history),
		cmocka_unit_test(t018_r586_every_cell_when_the_store_cannot_prove_progress),
		cmocka_unit_test(t018_r230_every_cell_after_a_compaction),
		cmocka_unit_test(r455_a_retained_state_does_not_outlive_a_compaction),
		cmocka_unit_test(t053_a_watch_from_before_a_compaction_is_expired),
		cmocka_unit_test(t101_r155_the_remaining_count),
		cmocka_unit_test(t163_r442_a_list_that_waited_uses_its_index),
#if VDI_ETCD
		cmocka_unit_test(t018_r172_every_cell_after_a_compaction_over_etcd),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
