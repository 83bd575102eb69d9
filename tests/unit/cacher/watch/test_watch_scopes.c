/* The counts of watchers by scope against a model that asks every watcher: random enters and leaves, and no
 * memory for any of them. */
#include "watch_scopes.h"

#include "pod_codec_group.h"

#define HALF UINT64_C(0x8000000000000000)
#define WATCHERS 60

/* What the model knows of a watcher. The numbers are places in the tables below. */
struct watcher {
	struct vdi_predicate *predicate; /* NULL: no watcher */
	unsigned	      ns, name, labels, fields, shards;
};

static const char *const namespaces[] = { "", "n0", "n1", "n2" };
static const char *const names[] = { "", "p0-tail", "p1-tail", "p2-tail", "p3-tail" };
static const char *const labels[] = { "", "app=a1", "app in (a1,a2)", "!app" };
static const char *const fields[] = { "", "spec.nodeName=h1" };

static const struct {
	const char *text;
	bool	    by_namespace;
	uint64_t    first, last;
} shards[] = {
	{ "", false, 0, UINT64_MAX },
	{ "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')", false, 0, HALF - 1 },
	{ "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')", false, HALF,
	  UINT64_MAX },
	{ "shardRange(object.metadata.uid, '0x4000000000000000', '0xc000000000000000')", false, HALF / 2,
	  HALF + HALF / 2 - 1 },
	{ "shardRange(object.metadata.namespace, '0x0000000000000000', '0x8000000000000000')", true, 0,
	  HALF - 1 },
};

static unsigned roll(uint64_t *random, size_t below)
{
	*random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned) ((*random >> 33) % below);
}

static struct vdi_predicate *predicate_of(const struct watcher *watcher)
{
	struct vdi_predicate_options options = { .namespace_name = vd_bytes_of(namespaces[watcher->ns]),
						 .name = vd_bytes_of(names[watcher->name]),
						 .label_selector = vd_bytes_of(labels[watcher->labels]),
						 .field_selector = vd_bytes_of(fields[watcher->fields]),
						 .shard_selector =
							 vd_bytes_of(shards[watcher->shards].text) };
	struct vdi_predicate	    *predicate;

	assert_status(vdi_predicate_new(codec, &options, &predicate, NULL), VD_OK);
	return predicate;
}

static struct watcher random_watcher(uint64_t *random)
{
	struct watcher watcher = { .ns = roll(random, VDI_ARRAY_SIZE(namespaces)),
				   .name = roll(random, 4) ? 0 : roll(random, VDI_ARRAY_SIZE(names)),
				   .labels = roll(random, VDI_ARRAY_SIZE(labels)),
				   .fields = roll(random, VDI_ARRAY_SIZE(fields)),
				   .shards = roll(random, VDI_ARRAY_SIZE(shards)) };

	watcher.predicate = predicate_of(&watcher);
	return watcher;
}

static bool is_of_shard(unsigned shard, unsigned ns, unsigned name)
{
	char	 uid[16];
	uint64_t hash;

	snprintf(uid, sizeof uid, "u-%s", names[name]);
	hash = vdi_fnv1a(vd_bytes_of(shards[shard].by_namespace ? namespaces[ns] : uid));
	return hash >= shards[shard].first && hash <= shards[shard].last;
}

/* Compares both counts for an object of each namespace and name. ret_other_shards gets the sum of the second
 * one. */
static void check(const struct vdi_watch_scopes *scopes, const struct watcher *watchers,
		  size_t *ret_other_shards)
{
	*ret_other_shards = 0;
	for (unsigned ns = 0; ns < VDI_ARRAY_SIZE(namespaces); ns++)
		for (unsigned name = 1; name < VDI_ARRAY_SIZE(names); name++) {
			struct vd_object *object = pod_new(codec, namespaces[ns], names[name], NULL, NULL, 1);
			size_t		  wanted = 0, wanted_other = 0, count, other;

			for (size_t i = 0; i < WATCHERS; i++) {
				const struct watcher *watcher = &watchers[i];

				if (watcher->predicate == NULL || watcher->name ||
				    (watcher->ns && watcher->ns != ns) ||
				    (watcher->labels == 0 && watcher->fields == 0 && watcher->shards == 0))
					continue;
				wanted++;
				wanted_other += !is_of_shard(watcher->shards, ns, name);
			}
			count = other = SIZE_MAX;
			vdi_watch_scopes_count(scopes, object, &count, &other);
			assert_int_equal(count, wanted);
			assert_int_equal(other, wanted_other);
			*ret_other_shards += other;
			vd_object_unref(object);
		}
}

static void leave(struct vdi_watch_scopes *scopes, struct watcher *watcher)
{
	/* An equal one, as of another watch that asks for the same. */
	struct vdi_predicate *equal = predicate_of(watcher);

	watcher->predicate = vdi_predicate_unref(watcher->predicate);
	vdi_watch_scopes_leave(scopes, equal);
	vdi_predicate_unref(equal);
}

static void r716_the_counts_are_those_of_asking_every_watcher(void **state)
{
	int64_t			live = vdi_alloc_live();
	struct watcher		watchers[WATCHERS] = { 0 };
	uint64_t		random = 11;
	size_t			other_shards, sum = 0;
	struct vdi_watch_scopes scopes;

	vdi_watch_scopes_init(&scopes);
	check(&scopes, watchers, &other_shards);
	for (unsigned round = 0; round < 3000; round++) {
		/* Now nearly all places are in use, now nearly none. */
		bool		grows = roll(&random, 8) ? round / 300 % 2 == 0 : round / 300 % 2 == 1;
		struct watcher *watcher = &watchers[roll(&random, WATCHERS)];

		if (watcher->predicate == NULL && grows) {
			*watcher = random_watcher(&random);
			assert_status(vdi_watch_scopes_enter(&scopes, watcher->predicate), VD_OK);
		} else if (watcher->predicate && !grows) {
			leave(&scopes, watcher);
		} else {
			continue;
		}
		check(&scopes, watchers, &other_shards);
		sum += other_shards;
	}
	assert_true(sum > 1000);
	for (size_t i = 0; i < WATCHERS; i++)
		if (watchers[i].predicate)
			leave(&scopes, &watchers[i]);
	assert_int_equal(scopes.by_namespace.count, 0);
	vdi_watch_scopes_fini(&scopes);
	assert_int_equal(vdi_alloc_live(), live);
}

/* The namespace whose first shard selector has no watchers any more, and gets some again. */
static void the_first_shard_selector_leaves_and_comes_back(void **state)
{
	int64_t			live = vdi_alloc_live();
	struct watcher		watchers[WATCHERS] = { { .ns = 1, .shards = 1 },
						       { .ns = 1, .shards = 2 },
						       { .ns = 1, .labels = 1 } };
	struct watcher		again;
	size_t			other_shards;
	struct vdi_watch_scopes scopes;

	vdi_watch_scopes_init(&scopes);
	for (unsigned i = 0; i < 3; i++) {
		watchers[i].predicate = predicate_of(&watchers[i]);
		assert_status(vdi_watch_scopes_enter(&scopes, watchers[i].predicate), VD_OK);
	}
	again = watchers[0];
	leave(&scopes, &watchers[0]);
	check(&scopes, watchers, &other_shards);
	again.predicate = predicate_of(&again);
	watchers[0] = again;
	vdi_alloc_fail_nth(1, 1); /* needs no memory: its place was kept */
	assert_status(vdi_watch_scopes_enter(&scopes, again.predicate), VD_OK);
	vdi_alloc_fail_nth(0, 0);
	check(&scopes, watchers, &other_shards);
	assert_true(other_shards > 0);
	for (unsigned i = 0; i < 3; i++) {
		leave(&scopes, &watchers[i]);
		check(&scopes, watchers, &other_shards);
	}
	vdi_watch_scopes_fini(&scopes);
	assert_int_equal(vdi_alloc_live(), live);
}

/* An enter without memory changes nothing. */
static void torture_without_memory_nothing_changes(void **state)
{
	int64_t			live = vdi_alloc_live();
	struct watcher		watchers[WATCHERS] = { 0 };
	uint64_t		random = 12;
	size_t			other_shards, failures = 0;
	struct vdi_watch_scopes scopes;

	vdi_watch_scopes_init(&scopes);
	for (size_t i = 0; i < WATCHERS; i++) {
		struct watcher watcher = random_watcher(&random);
		vd_status      status = VD_NOMEM;

		for (unsigned nth = 1; status != VD_OK; nth++) {
			int64_t before = vdi_alloc_live();

			vdi_alloc_fail_nth(nth, 1);
			status = vdi_watch_scopes_enter(&scopes, watcher.predicate);
			vdi_alloc_fail_nth(0, 0);
			if (status == VD_OK)
				break;
			assert_status(status, VD_NOMEM);
			assert_int_equal(vdi_alloc_live(), before);
			check(&scopes, watchers, &other_shards);
			failures++;
		}
		watchers[i] = watcher;
		check(&scopes, watchers, &other_shards);
	}
	assert_true(failures >= 10);
	for (size_t i = 0; i < WATCHERS; i++)
		leave(&scopes, &watchers[i]);
	assert_int_equal(scopes.by_namespace.count, 0);
	vdi_watch_scopes_fini(&scopes);
	assert_int_equal(vdi_alloc_live(), live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r716_the_counts_are_those_of_asking_every_watcher),
		cmocka_unit_test(the_first_shard_selector_leaves_and_comes_back),
		cmocka_unit_test(torture_without_memory_nothing_changes),
	};

	return cmocka_run_group_tests(tests, pod_codec_start, pod_codec_end);
}
