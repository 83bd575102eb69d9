/* The Cacher as its users see it: watches, over the embedded store in memory. */
#include "cacher_fixture.h"

#include "cacher.h"
#include "env.h"

static struct vd_watch_options all(void)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;

	return options;
}

static void t050_add_modify_delete(void **state)
{
	for (uint64_t seed = 1; seed <= 5; seed++)
		for (unsigned kind = 0; kind < 2; kind++) {
			struct cacher_fixture	f;
			struct recorder	       *r = calloc(1, sizeof *r);
			struct vd_watch_options options = all();
			char			expected[256];
			vd_rev			a, b, c;

			cacher_fixture_setup(&f, seed);
			assert_status(recorder_open(&f, r, &options, kind ? vdi_env_runner(f.env) : NULL), VD_OK);
			cacher_fixture_settle(&f);
			a = put_pod(&f, "ns", "x", "one", NULL);
			b = put_pod(&f, "ns", "x", "two", NULL);
			c = delete_pod(&f, "ns", "x");
			cacher_fixture_settle(&f);
			snprintf(expected, sizeof expected, "+ns/x@%lld ~ns/x@%lld -ns/x@%lld", (long long) a, (long long) b, (long long) c);
			assert_string_equal(r->events[1].old_app, "one");
			assert_string_equal(r->events[2].old_app, "two");
			assert_string_equal(recorder_text(r), expected);
			recorder_close(&f, r);
			cacher_fixture_teardown(&f);
			free(r);
		}
}

static void r552_selectors_turn_changes_into_additions_and_deletions(void **state)
{
	struct cacher_fixture	f;
	struct recorder	       *r = calloc(1, sizeof *r);
	struct vd_watch_options options = all();
	char			expected[256];
	vd_rev			in, inside, out;

	cacher_fixture_setup(&f, 1);
	options.label_selector = vd_bytes_of("app=web");
	assert_status(recorder_open(&f, r, &options, NULL), VD_OK);
	put_pod(&f, "ns", "x", "db", NULL);
	in = put_pod(&f, "ns", "x", "web", NULL);
	inside = put_pod(&f, "ns", "x", "web", "n1");
	out = put_pod(&f, "ns", "x", "db", NULL);
	delete_pod(&f, "ns", "x");
	cacher_fixture_settle(&f);
	snprintf(expected, sizeof expected, "+ns/x@%lld ~ns/x@%lld -ns/x@%lld", (long long) in, (long long) inside, (long long) out);
	assert_string_equal(recorder_text(r), expected);
	recorder_close(&f, r);
	cacher_fixture_teardown(&f);
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t050_add_modify_delete),
		cmocka_unit_test(r552_selectors_turn_changes_into_additions_and_deletions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
