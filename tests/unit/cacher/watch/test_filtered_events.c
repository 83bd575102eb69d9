/* The two metrics of events that selectors keep from watches: random watches and events against asking every
 * watch about every event. */
#include "cacher_metrics.h"

#include "cacher.h"
#include "cacher_fixture.h"
#include "env.h"

#define FILTERS_MAX 16
#define HALF UINT64_C(0x8000000000000000)
#define PERMANENT_MATCHES_MIN 129 /* more than the ring of a group holds */

/* A pod as the store has it. Its namespace and name can be others than those of its key: a client can write
 * around the server. */
struct filter_pod {
	bool	 exists;
	unsigned ns, name;  /* n<ns>, p<name>-tail */
	int	 app, node; /* a<app>, h<node>; -1: none */
};

static bool app_is_1(const struct filter_pod *pod)
{
	return pod->app == 1;
}

static bool app_is_1_or_2(const struct filter_pod *pod)
{
	return pod->app == 1 || pod->app == 2;
}

static bool app_is_not_1(const struct filter_pod *pod)
{
	return pod->app != 1;
}

static bool has_app(const struct filter_pod *pod)
{
	return pod->app >= 0;
}

static bool node_is_1(const struct filter_pod *pod)
{
	return pod->node == 1;
}

static bool node_is_not_1(const struct filter_pod *pod)
{
	return pod->node != 1;
}

static bool is_without_node(const struct filter_pod *pod)
{
	return pod->node < 0;
}

static bool name_is_1(const struct filter_pod *pod)
{
	return pod->name == 1;
}

static bool ns_is_1(const struct filter_pod *pod)
{
	return pod->ns == 1;
}

static bool ns_is_1_node_is_2(const struct filter_pod *pod)
{
	return pod->ns == 1 && pod->node == 2;
}

struct filter_selector {
	const char *text;
	bool (*matches)(const struct filter_pod *pod); /* NULL: always */
};

static const struct filter_selector filter_labels[] = {
	{ "", NULL },
	{ "app=a1", app_is_1 },
	{ "app in (a1)", app_is_1 },
	{ "app in (a1,a2)", app_is_1_or_2 },
	{ "app!=a1", app_is_not_1 },
	{ "app", has_app },
};
/* Exact requirements on name and namespace narrow the scope. */
static const struct filter_selector filter_fields[] = {
	{ "", NULL },
	{ "", NULL },
	{ "spec.nodeName=h1", node_is_1 },
	{ "spec.nodeName!=h1", node_is_not_1 },
	{ "spec.nodeName=", is_without_node },
	{ "metadata.name=p1-tail", name_is_1 },
	{ "metadata.namespace=n1", ns_is_1 },
	{ "metadata.namespace=n1,spec.nodeName=h2", ns_is_1_node_is_2 },
};
static const struct {
	const char *text;
	bool	    by_namespace;
	uint64_t    first, last;
} filter_shards[] = {
	{ "", false, 0, UINT64_MAX },
	{ "", false, 0, UINT64_MAX },
	{ "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')", false, 0, HALF - 1 },
	{ "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')", false, HALF,
	  UINT64_MAX },
	{ "shardRange(object.metadata.namespace, '0x0000000000000000', '0x8000000000000000')", true, 0,
	  HALF - 1 },
};

struct filter_watch {
	struct recorder *recorder;
	bool		 is_open;
	int		 ns, name; /* -1: all */
	unsigned	 labels, fields, shards;
};

struct filter_world {
	struct cacher_fixture f;
	uint64_t	      random;
	struct filter_watch   watches[FILTERS_MAX];
	struct filter_pod     pods[3][6]; /* by the key */
	uint64_t	      filtered, filtered_shards,
		left; /* the model's counts, and how often an object left a selector */
};

static unsigned roll(struct filter_world *world, size_t below)
{
	world->random = world->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned) ((world->random >> 33) % below);
}

static bool is_of_shard(unsigned shards, const struct filter_pod *pod)
{
	char	 text[24];
	uint64_t hash;

	snprintf(text, sizeof text, filter_shards[shards].by_namespace ? "n%u" : "u-p%u-tail",
		 filter_shards[shards].by_namespace ? pod->ns : pod->name);
	hash = vdi_fnv1a(vd_bytes_of(text));
	return hash >= filter_shards[shards].first && hash <= filter_shards[shards].last;
}

static bool is_in_scope(const struct filter_watch *watch, const struct filter_pod *pod)
{
	bool narrows_name = filter_fields[watch->fields].matches == name_is_1;
	bool narrows_ns = filter_fields[watch->fields].matches == ns_is_1 ||
			  filter_fields[watch->fields].matches == ns_is_1_node_is_2;
	int name = watch->name < 0 && narrows_name ? 1 : watch->name,
	    ns = watch->ns < 0 && narrows_ns ? 1 : watch->ns;

	return (name < 0 || (unsigned) name == pod->name) && (ns < 0 || (unsigned) ns == pod->ns);
}

static bool is_wanted(const struct filter_watch *watch, const struct filter_pod *pod)
{
	const struct filter_selector *labels = &filter_labels[watch->labels],
				     *fields = &filter_fields[watch->fields];

	return pod->exists && is_in_scope(watch, pod) && is_of_shard(watch->shards, pod) &&
	       (!labels->matches || labels->matches(pod)) && (!fields->matches || fields->matches(pod));
}

/* Asks every open watch. */
static void count_naively(struct filter_world *world, const struct filter_pod *old,
			  const struct filter_pod *now)
{
	const struct filter_pod *last = now->exists ? now : old;

	for (size_t i = 0; i < FILTERS_MAX; i++) {
		const struct filter_watch *watch = &world->watches[i];

		if (!watch->is_open)
			continue;
		world->left += is_wanted(watch, old) && !is_wanted(watch, now) && now->exists;
		if (is_in_scope(watch, last) && !is_wanted(watch, old) && !is_wanted(watch, now)) {
			world->filtered++;
			world->filtered_shards += !is_of_shard(watch->shards, last);
		}
	}
}

static void change_a_pod(struct filter_world *world)
{
	unsigned	   ns = roll(world, 3), name = roll(world, 6);
	struct filter_pod *pod = &world->pods[ns][name], old = *pod;
	char		   key[64], value[512], texts[4][24];
	vd_rev		   revision;
	struct vd_error	   error;

	if (old.exists && roll(world, 4) == 0) {
		snprintf(texts[0], sizeof texts[0], "n%u", ns);
		snprintf(texts[1], sizeof texts[1], "k%u", name);
		delete_pod(&world->f, texts[0], texts[1]);
		*pod = (struct filter_pod) { .exists = false };
	} else {
		*pod = (struct filter_pod) { .exists = true,
					     .ns = roll(world, 8) ? ns : roll(world, 3),
					     .name = roll(world, 8) ? name : roll(world, 6),
					     .app = (int) roll(world, 4) - 1,
					     .node = (int) roll(world, 4) - 1 };
		snprintf(key, sizeof key, "/registry/pods/n%u/k%u", ns, name);
		snprintf(texts[0], sizeof texts[0], "n%u", pod->ns);
		snprintf(texts[1], sizeof texts[1], "p%u-tail", pod->name);
		snprintf(texts[2], sizeof texts[2], "a%d", pod->app);
		snprintf(texts[3], sizeof texts[3], "h%d", pod->node);
		write_pod(value, sizeof value, texts[0], texts[1], pod->app < 0 ? NULL : texts[2],
			  pod->node < 0 ? NULL : texts[3]);
		assert_status(vd_store_put_wait(world->f.store, vd_bytes_of(key), vd_bytes_of(value),
						&revision, &error),
			      VD_OK);
	}
	count_naively(world, &old, pod);
}

static void open_filter(struct filter_world *world, struct filter_watch *watch)
{
	struct vd_watch_options	  options = VD_WATCH_OPTIONS_INIT;
	const struct vd_executor *executor = roll(world, 2) ? vdi_env_executor(world->f.env) : NULL;
	vd_rev			  revision = vd_cacher_revision(world->f.cacher);
	char			  ns[24] = "", name[24] = "";

	if (watch->ns >= 0)
		snprintf(ns, sizeof ns, "n%d", watch->ns);
	if (watch->name >= 0)
		snprintf(name, sizeof name, "p%d-tail", watch->name);
	options.namespace_name = vd_bytes_of(ns);
	options.name = vd_bytes_of(name);
	options.label_selector = vd_bytes_of(filter_labels[watch->labels].text);
	options.field_selector = vd_bytes_of(filter_fields[watch->fields].text);
	options.shard_selector = vd_bytes_of(filter_shards[watch->shards].text);
	/* From the state, from a revision in the history, from one to come: what was before the watch does
	 * not count. */
	options.revision =
		roll(world, 3) ? VD_REVISION_UNSET : VDI_MAX(revision + (vd_rev) roll(world, 12) - 8, 1);
	memset(watch->recorder, 0, sizeof *watch->recorder);
	watch->recorder->room = roll(world, 2) ? SIZE_MAX : 1;
	assert_status(recorder_open(&world->f, watch->recorder, &options, executor), VD_OK);
	cacher_fixture_settle(&world->f);
	assert_int_equal(watch->recorder->ended, 0);
	watch->is_open = true;
}

static void open_or_close_a_filter(struct filter_world *world)
{
	struct filter_watch *watch = &world->watches[1 + roll(world, FILTERS_MAX - 1)];

	if (watch->is_open) {
		recorder_close(&world->f, watch->recorder);
		cacher_fixture_settle(&world->f);
		watch->is_open = false;
		return;
	}
	watch->ns = roll(world, 2) ? -1 : (int) roll(world, 3);
	watch->name = roll(world, 3) ? -1 : (int) roll(world, 6);
	watch->labels = roll(world, VDI_ARRAY_SIZE(filter_labels));
	watch->fields = roll(world, VDI_ARRAY_SIZE(filter_fields));
	watch->shards = roll(world, VDI_ARRAY_SIZE(filter_shards));
	open_filter(world, watch);
}

/* A sink that was full takes some more. */
static void resume_a_filter(struct filter_world *world)
{
	struct filter_watch *watch = &world->watches[1 + roll(world, FILTERS_MAX - 1)];

	if (!watch->is_open || watch->recorder->room == SIZE_MAX)
		return;
	watch->recorder->room += roll(world, 5);
	vd_watcher_resume(watch->recorder->watcher);
	cacher_fixture_settle(&world->f);
}

static void assert_counts(const struct cacher_fixture *f, uint64_t filtered, uint64_t filtered_shards)
{
	assert_int_equal(vdi_metric_value(f->cacher->metrics.selector_filtered), filtered);
	assert_int_equal(vdi_metric_value(f->cacher->metrics.shard_filtered), filtered_shards);
}

static void assert_filtered(const struct filter_world *world)
{
	assert_counts(&world->f, world->filtered, world->filtered_shards);
}

static void run_filters(struct filter_world *world)
{
	struct filter_watch *permanent = &world->watches[0];

	cacher_fixture_setup(&world->f, 16);
	for (size_t i = 0; i < FILTERS_MAX; i++)
		world->watches[i] = (struct filter_watch) { .recorder = calloc(1, sizeof(struct recorder)) };
	/* The first watch takes one event and is not resumed before the end. */
	*permanent =
		(struct filter_watch) { .recorder = permanent->recorder, .ns = -1, .name = -1, .labels = 3 };
	open_filter(world, permanent);
	permanent->recorder->room = 1;
	for (unsigned round = 0; round < 500; round++) {
		if (roll(world, 3) == 0)
			open_or_close_a_filter(world);
		if (roll(world, 4) == 0)
			resume_a_filter(world);
		for (unsigned i = roll(world, 4); i > 0; i--)
			change_a_pod(world);
		cacher_fixture_settle(&world->f);
		assert_filtered(world);
	}
	assert_true(world->left > 20 && world->filtered_shards > 100 &&
		    world->filtered > world->filtered_shards);
	assert_int_equal(permanent->recorder->count, 1);
	permanent->recorder->room = SIZE_MAX;
	vd_watcher_resume(permanent->recorder->watcher);
	cacher_fixture_settle(&world->f);
	assert_true(permanent->recorder->count > PERMANENT_MATCHES_MIN);
	assert_filtered(world);
	for (size_t i = 0; i < FILTERS_MAX; i++) {
		if (world->watches[i].is_open)
			recorder_close(&world->f, world->watches[i].recorder);
		free(world->watches[i].recorder);
		world->watches[i].is_open = false;
	}
	cacher_fixture_settle(&world->f);
	change_a_pod(world);
	cacher_fixture_settle(&world->f);
	assert_filtered(world);
	cacher_fixture_teardown(&world->f);
}

/* Random watches and events; both counters against asking every watch about every event. */
static void r716_filtered_events_are_counted_once_for_each_watch(void **state)
{
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct filter_world world = { .random = seed };

		run_filters(&world);
	}
}

/* The index does not find the watch for such an event, and it counts all the same. */
static void r716_an_exact_selector_beside_a_shard_selector_hides_nothing(void **state)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct recorder	       *recorder = calloc(1, sizeof *recorder);
	struct cacher_fixture	f;
	struct filter_pod	low = { .exists = true }, high = { .exists = true };
	char			name[24];

	while (!is_of_shard(2, &low))
		low.name++;
	while (is_of_shard(2, &high))
		high.name++;
	cacher_fixture_setup(&f, 17);
	options.label_selector = vd_bytes_of("app=web");
	options.shard_selector = vd_bytes_of(filter_shards[2].text);
	assert_status(recorder_open(&f, recorder, &options, NULL), VD_OK);
	cacher_fixture_settle(&f);
	snprintf(name, sizeof name, "p%u-tail", high.name);
	put_pod(&f, "a", name, "db", NULL); /* of neither */
	cacher_fixture_settle(&f);
	assert_counts(&f, 1, 1);
	snprintf(name, sizeof name, "p%u-tail", low.name);
	put_pod(&f, "a", name, "db", NULL);
	cacher_fixture_settle(&f);
	assert_counts(&f, 2, 1);
	put_pod(&f, "a", name, "web", NULL);
	put_pod(&f, "a", name, "db", NULL); /* leaves the selector: DELETED */
	cacher_fixture_settle(&f);
	assert_int_equal(recorder->count, 2);
	assert_counts(&f, 2, 1);
	recorder_close(&f, recorder);
	put_pod(&f, "a", name, "db", NULL);
	cacher_fixture_settle(&f);
	assert_counts(&f, 2, 1);
	cacher_fixture_teardown(&f);
	free(recorder);
}

/* A watch that could not be opened for want of memory is not counted, and leaves nothing behind. */
static void torture_a_watch_that_is_not_opened_filters_nothing(void **state)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct recorder	       *recorder = calloc(1, sizeof *recorder);
	struct cacher_fixture	f;
	uint64_t		filtered = 0, failures = 0;
	bool			failed = true;

	cacher_fixture_setup(&f, 18);
	options.label_selector = vd_bytes_of("app=web");
	options.revision = vd_cacher_revision(f.cacher);
	for (unsigned nth = 1; failed; nth++) {
		vd_status status;

		memset(recorder, 0, sizeof *recorder);
		vdi_alloc_fail_nth(nth, 1);
		status = recorder_open(&f, recorder, &options, NULL);
		if (status == VD_OK)
			cacher_fixture_settle(&f);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		put_pod(&f, "a", "x", "db", NULL);
		cacher_fixture_settle(&f);
		filtered += status == VD_OK && !recorder->ended;
		failures += status == VD_OK && recorder->ended;
		if (recorder->ended)
			assert_status(recorder->reason, VD_NOMEM);
		if (status == VD_OK)
			recorder_close(&f, recorder);
		cacher_fixture_settle(&f);
		assert_int_equal(f.cacher->watcher_index.group_count, 0);
		assert_int_equal(f.cacher->watch_scopes.by_namespace.count, 0);
		assert_int_equal(vdi_metric_value(f.cacher->metrics.selector_filtered), filtered);
		assert_true(nth < 100);
	}
	assert_true(filtered > 0 && failures > 0);
	cacher_fixture_teardown(&f);
	free(recorder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r716_filtered_events_are_counted_once_for_each_watch),
		cmocka_unit_test(r716_an_exact_selector_beside_a_shard_selector_hides_nothing),
		cmocka_unit_test(torture_a_watch_that_is_not_opened_filters_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
