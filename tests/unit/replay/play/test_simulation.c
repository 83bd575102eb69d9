/* Unit tests of replay/play/simulation*.c: what holds is silent, what does not is told, and the same seed is
 * the same run. */
#include <stdio.h>
#include <unistd.h>

#include "simulation_watch.h"
#include "vdtest.h"

#include <vedette/replay.h>

#define POD(name, more)                                                                                      \
	"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"" name                             \
	"\",\"namespace\":\"a\"" more "}}"

static char path[64];

/* Revisions 2 to 41, five seconds apart: pods p0 to p4 of namespace a are put in turn; revision 20 deletes
 * p1. */
static void write_log(void)
{
	FILE *file;
	int   fd;

	strcpy(path, "/tmp/vedette-simulation-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	file = fdopen(fd, "w");
	fputs("{\"vedetteLog\":1}\n", file);
	for (int revision = 2; revision < 42; revision++) {
		int seconds = revision * 5;

		fprintf(file, "{\"rev\":%d,\"type\":\"%s\",\"key\":\"/registry/pods/a/p%d\",", revision,
			revision == 20 ? "DELETE" : "PUT", revision == 20 ? 1 : revision % 5);
		if (revision != 20)
			fprintf(file,
				"\"value\":" POD("p%d", ",\"labels\":{\"odd\":\"%s\",\"a.b/"
							"c\":\"x\"},\"generation\":1.50") ",",
				revision % 5, revision % 2 ? "yes" : "no");
		fprintf(file, "\"time\":\"2026-01-01T00:%02d:%02dZ\"}\n{\"commit\":%d}\n", seconds / 60,
			seconds % 60, revision);
	}
	fclose(file);
}

static int set_up(void **state)
{
	(void) state;
	write_log();
	return 0;
}

static int tear_down(void **state)
{
	(void) state;
	return unlink(path);
}

static struct vd_simulation *open_simulation(uint64_t seed, const char *faults, struct vd_cacher **ret_pods)
{
	struct vd_simulation_options options = VD_SIMULATION_OPTIONS_INIT;
	struct vd_simulation	    *simulation = NULL;
	struct vd_error		     error = { 0 };

	options.path = path;
	options.seed = seed;
	options.faults = faults;
	if (vd_simulation_open(&options, &simulation, &error) != VD_OK ||
	    vd_simulation_cacher(simulation, "/registry/pods/", false, ret_pods, &error) != VD_OK)
		fail_msg("%s", error.message);
	return simulation;
}

static unsigned open_watch(struct vd_simulation *simulation, struct vd_cacher *pods, const char *selector)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	unsigned		watch = 99;

	options.label_selector = vd_bytes_of(selector);
	assert_status(vd_simulation_watch(simulation, pods, &options, &watch, NULL), VD_OK);
	return watch;
}

static void run(struct vd_simulation *simulation, vd_rev revision)
{
	struct vd_error error = { 0 };

	if (vd_simulation_run(simulation, revision, &error) != VD_OK)
		fail_msg("%s", error.message);
}

static void what_holds_is_silent(void **state)
{
	struct vd_cacher     *pods;
	struct vd_simulation *simulation = open_simulation(1, NULL, &pods);
	unsigned all = open_watch(simulation, pods, ""), odd = open_watch(simulation, pods, "odd=yes");

	(void) state;
	run(simulation, 19);
	assert_true(vd_simulation_expect_count(simulation, "/registry/pods/a/", 5));
	assert_true(vd_simulation_expect_event(simulation, all, VD_WATCH_ADDED, "/registry/pods/a/p2", 2));
	assert_true(vd_simulation_expect_no_event(simulation, all, VD_WATCH_DELETED, NULL));
	run(simulation, VD_PLAYER_END);
	assert_true(vd_simulation_expect_event(simulation, all, VD_WATCH_DELETED, NULL, 20));
	assert_true(vd_simulation_expect_event(simulation, all, VD_WATCH_ADDED, "/registry/pods/a/p1", 0));
	assert_true(vd_simulation_expect_event(simulation, odd, VD_WATCH_ADDED, "/registry/pods/a/p3", 3));
	assert_true(vd_simulation_expect_event(simulation, odd, VD_WATCH_DELETED, "/registry/pods/a/p3", 8));
	assert_true(vd_simulation_expect_state(
		simulation, "/registry/pods/a/p1",
		"{\"metadata\": {\"labels\": {\"a.b/c\":\"x\", \"odd\":\"yes\"}, \"generation\":15e-1, "
		"\"namespace\":\"a\", \"name\":\"p1\"}, "
		"\"apiVersion\":\"v1\", \"kind\":\"Pod\"}"));
	assert_true(vd_simulation_expect_state(simulation, "/registry/pods/a/p7", NULL));
	assert_true(vd_simulation_expect_member(simulation, "/registry/pods/a/p1", ".metadata.labels.odd",
						"\"yes\""));
	assert_true(vd_simulation_expect_member(simulation, "/registry/pods/a/p1", ".metadata.labels.even",
						NULL));
	assert_true(vd_simulation_expect_member(simulation, "/registry/pods/a/p1", "metadata.labels.a\\.b/c",
						"\"x\""));
	assert_true(vd_simulation_expect_member(simulation, "/registry/pods/a/p1", ".metadata.generation",
						"1.5"));
	assert_true(vd_simulation_expect_no_violation(simulation));
	assert_null(vd_simulation_failure(simulation));
	assert_int_equal(vd_simulation_run(simulation, 50, NULL), VD_NOT_FOUND);
	vd_simulation_close(simulation);
}

static void note(void *arg, const char *sentence)
{
	snprintf(arg, 1024, "%s", sentence);
}

static void what_does_not_hold_is_told(void **state)
{
	struct vd_simulation_options options = VD_SIMULATION_OPTIONS_INIT;
	struct vd_simulation	    *simulation;
	struct vd_cacher	    *pods;
	char			     told[1024] = "";
	unsigned		     all;

	(void) state;
	options.path = path;
	options.failed = note;
	options.failed_arg = told;
	assert_status(vd_simulation_open(&options, &simulation, NULL), VD_OK);
	assert_status(vd_simulation_cacher(simulation, "/registry/pods/", false, &pods, NULL), VD_OK);
	all = open_watch(simulation, pods, "");
	run(simulation, 4);
	assert_false(
		vd_simulation_expect_event(simulation, all, VD_WATCH_MODIFIED, "/registry/pods/a/p2", 0));
	assert_string_equal(told, "watch 0: expected MODIFIED /registry/pods/a/p2; it saw ADDED "
				  "/registry/pods/a/p2@2, ADDED /registry/pods/a/p3@3, "
				  "ADDED /registry/pods/a/p4@4");
	assert_false(vd_simulation_expect_no_event(simulation, all, VD_WATCH_ADDED, "/registry/pods/a/p3"));
	assert_string_equal(
		told, "watch 0: expected no ADDED of /registry/pods/a/p3, but it saw one at revision 3");
	assert_false(vd_simulation_expect_count(simulation, "/registry/", 4));
	assert_string_equal(told, "3 keys begin with /registry/; expected 4");
	assert_false(vd_simulation_expect_state(simulation, "/registry/pods/a/p1", "{}"));
	assert_string_equal(told, "/registry/pods/a/p1 is missing; expected {}");
	assert_false(
		vd_simulation_expect_member(simulation, "/registry/pods/a/p2", ".metadata.name", "\"p3\""));
	assert_string_equal(told,
			    ".metadata.name of /registry/pods/a/p2 is \"p2\" at revision 2; expected \"p3\"");
	assert_false(
		vd_simulation_expect_member(simulation, "/registry/pods/a/p2", ".metadata.generation", "1"));
	assert_string_equal(told,
			    ".metadata.generation of /registry/pods/a/p2 is 1.50 at revision 2; expected 1");
	assert_false(vd_simulation_expect_state(simulation, "/registry/pods/a/p2", "{"));
	assert_false(vd_simulation_expect_event(simulation, 1, VD_WATCH_ADDED, NULL, 0));
	assert_string_equal(told, "there is no watch 1, or no type 0");
	assert_true(strncmp(vd_simulation_failure(simulation), "watch 0: expected MODIFIED", 26) == 0);
	vd_simulation_close(simulation);
}

static bool never_p3(void *arg, struct vd_store *store)
{
	struct vd_store_status status;

	(void) arg;
	return vd_store_status_get(store, &status) == VD_OK && status.current < 7;
}

static void a_rule_that_is_broken_is_a_violation(void **state)
{
	struct vd_cacher     *pods;
	struct vd_simulation *simulation = open_simulation(1, NULL, &pods);

	(void) state;
	assert_status(vd_simulation_always(simulation, "nothing comes after 6", never_p3, NULL), VD_OK);
	run(simulation, 6);
	assert_true(vd_simulation_expect_no_violation(simulation));
	run(simulation, 9);
	assert_false(vd_simulation_expect_no_violation(simulation));
	assert_string_equal(vd_simulation_failure(simulation),
			    "always: \"nothing comes after 6\" does not hold at revision 7");
	vd_simulation_close(simulation);
}

#define FAULTS "disconnect=0.2,compact=0.1,error=0.1,delay=30s,delay-rate=0.3,refuse=0.1,too-large=0.1"

static uint64_t fingerprint(uint64_t seed)
{
	struct vd_cacher     *pods;
	struct vd_simulation *simulation = open_simulation(seed, FAULTS, &pods);
	uint64_t	      print;

	(void) open_watch(simulation, pods, "");
	(void) open_watch(simulation, pods, "odd=yes");
	run(simulation, 30);
	run(simulation, VD_PLAYER_END);
	if (!vd_simulation_expect_no_violation(simulation))
		fail_msg("seed %llu: %s", (unsigned long long) seed, vd_simulation_failure(simulation));
	print = vd_simulation_fingerprint(simulation);
	vd_simulation_close(simulation);
	return print;
}

static void the_same_seed_is_the_same_run_and_faults_violate_nothing(void **state)
{
	unsigned different = 0;

	(void) state;
	for (uint64_t seed = 0; seed < 12; seed++) {
		uint64_t print = fingerprint(seed);

		assert_int_equal(print, fingerprint(seed));
		different += print != fingerprint(seed + 100);
	}
	assert_true(different > 10);
}

static void what_cannot_be_opened_says_why(void **state)
{
	struct vd_simulation_options options = VD_SIMULATION_OPTIONS_INIT;
	struct vd_watch_options	     watch = VD_WATCH_OPTIONS_INIT;
	struct vd_simulation	    *simulation = NULL;
	struct vd_cacher	    *pods;
	struct vd_error		     error;
	unsigned		     number;

	(void) state;
	options.path = "/nowhere/at/all";
	assert_status(vd_simulation_open(&options, &simulation, &error), VD_NOT_FOUND);
	options.path = path;
	options.faults = "sunshine=1";
	assert_status(vd_simulation_open(&options, &simulation, &error), VD_INVALID_ARGUMENT);
	simulation = open_simulation(1, NULL, &pods);
	watch.label_selector = vd_bytes_of("a in");
	assert_status(vd_simulation_watch(simulation, pods, &watch, &number, &error), VD_BAD_REQUEST);
	vd_simulation_close(simulation);
}

/* ---- What a watch must not show ---- */

static struct vd_object *object_of(struct vd_codec *codec, const char *name, vd_rev revision)
{
	char		  key[64], value[128];
	struct vd_object *object = NULL;
	struct vd_kv	 *kv = NULL;

	snprintf(key, sizeof key, "/registry/pods/a/%s", name);
	snprintf(value, sizeof value, POD("%s", ""), name);
	assert_status(vd_kv_new(vd_bytes_of(key), vd_bytes_of(value), &kv), VD_OK);
	kv->mod_rev = revision;
	assert_status(vd_object_new(codec, kv, &object, NULL), VD_OK);
	vd_kv_unref(kv);
	return object;
}

static void show(struct vdi_simulation_watch *watch, struct vd_codec *codec, enum vd_watch_type type,
		 const char *name, vd_rev revision, vd_rev previous)
{
	struct vd_watch_event event = { .type = type, .revision = revision };

	if (name) {
		event.object = object_of(codec, name, type == VD_WATCH_DELETED ? previous : revision);
		if (previous)
			event.old_object = object_of(codec, name, previous);
	}
	vdi_simulation_watch_take(watch, &event);
	vd_object_unref(event.object);
	vd_object_unref(event.old_object);
}

static void check_told(struct vdi_simulation_watch *watch, const char *guarantee)
{
	if (strncmp(watch->violation, guarantee, strlen(guarantee)) != 0)
		fail_msg("\"%s\" where %s was expected", watch->violation, guarantee);
	vdi_simulation_watch_fini(watch);
	vdi_simulation_watch_init(watch, 0);
}

static void every_broken_guarantee_is_named(void **state)
{
	struct vdi_simulation_watch watch;
	struct vd_codec		   *codec = NULL;

	(void) state;
	assert_status(vd_codec_json_new(NULL, 0, &codec, NULL), VD_OK);
	vdi_simulation_watch_init(&watch, 0);
	show(&watch, codec, VD_WATCH_ADDED, "x", 5, 0);
	show(&watch, codec, VD_WATCH_MODIFIED, "x", 6, 5);
	show(&watch, codec, VD_WATCH_DELETED, "x", 7, 6);
	show(&watch, codec, VD_WATCH_ADDED, "x", 8, 0);
	show(&watch, codec, VD_WATCH_BOOKMARK, NULL, 9, 0);
	show(&watch, codec, VD_WATCH_ADDED, "y", 10, 0);
	check_told(&watch, "");
	show(&watch, codec, VD_WATCH_ADDED, "x", 5, 0);
	show(&watch, codec, VD_WATCH_ADDED, "y", 4, 0);
	check_told(&watch, "ordered: ADDED /registry/pods/a/y at revision 4 comes after revision 5");
	show(&watch, codec, VD_WATCH_ADDED, "x", 5, 0);
	show(&watch, codec, VD_WATCH_MODIFIED, "x", 5, 5);
	check_told(&watch, "unique");
	show(&watch, codec, VD_WATCH_ADDED, "x", 5, 0);
	show(&watch, codec, VD_WATCH_ADDED, "x", 6, 0);
	check_told(&watch, "typed");
	show(&watch, codec, VD_WATCH_MODIFIED, "x", 6, 5);
	check_told(&watch, "typed");
	show(&watch, codec, VD_WATCH_ADDED, "x", 5, 0);
	show(&watch, codec, VD_WATCH_MODIFIED, "x", 7, 6);
	check_told(&watch, "previous");
	show(&watch, codec, VD_WATCH_ADDED, "x", 5, 0);
	show(&watch, codec, VD_WATCH_MODIFIED, "x", 7, 0);
	check_told(&watch, "previous");
	show(&watch, codec, VD_WATCH_BOOKMARK, NULL, 9, 0);
	show(&watch, codec, VD_WATCH_ADDED, "x", 9, 0);
	check_told(&watch, "bookmarkable");
	show(&watch, codec, VD_WATCH_ADDED, "x", 9, 0);
	show(&watch, codec, VD_WATCH_BOOKMARK, NULL, 8, 0);
	check_told(&watch, "bookmarkable");
	vdi_simulation_watch_fini(&watch);
	vd_codec_free(codec);
}

/* A watch that lost an event, or shows what is gone, differs from the list. */
static void a_picture_that_is_not_the_list_is_unreliable(void **state)
{
	struct vd_cacher     *pods;
	struct vd_simulation *simulation = open_simulation(1, NULL, &pods);
	static const struct {
		const char *name;
		vd_rev	    revision;
		const char *told;
	} cases[] = {
		{ "p2", 37, "reliable: /registry/pods/a/p0 is in the list at revision 40" },
		{ "p0", 35,
		  "reliable: /registry/pods/a/p0 is in the list with revision 40, but the watch delivered "
		  "revision 35 last" },
	};
	struct vd_codec *codec = NULL;

	(void) state;
	assert_status(vd_codec_json_new(NULL, 0, &codec, NULL), VD_OK);
	run(simulation, VD_PLAYER_END);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct vdi_simulation_watch watch;
		struct vd_list_options	    options = VD_LIST_OPTIONS_INIT;
		struct vd_list		   *list = NULL;

		options.revision = VD_REVISION_ANY;
		assert_status(vd_cacher_list_wait(pods, &options, &list, NULL), VD_OK);
		vdi_simulation_watch_init(&watch, 0);
		show(&watch, codec, VD_WATCH_ADDED, cases[i].name, cases[i].revision, 0);
		vdi_simulation_watch_compare(&watch, list);
		check_told(&watch, cases[i].told);
		vdi_simulation_watch_fini(&watch);
		vd_list_free(list);
	}
	vd_codec_free(codec);
	vd_simulation_close(simulation);
}

static void every_allocation_may_fail(void **state)
{
	int64_t live = vdi_alloc_live();
	int	n = 1;

	(void) state;
	for (bool failed = true; failed; n += 1 + n / 16) {
		struct vd_simulation_options options = VD_SIMULATION_OPTIONS_INIT;
		struct vd_watch_options	     all = VD_WATCH_OPTIONS_INIT;
		struct vd_simulation	    *simulation = NULL;
		struct vd_cacher	    *pods;
		unsigned		     watch;

		options.path = path;
		vdi_alloc_fail_nth((uint64_t) n, 1);
		if (vd_simulation_open(&options, &simulation, NULL) == VD_OK &&
		    vd_simulation_cacher(simulation, "/registry/pods/", false, &pods, NULL) == VD_OK &&
		    vd_simulation_watch(simulation, pods, &all, &watch, NULL) == VD_OK &&
		    vd_simulation_run(simulation, 12, NULL) == VD_OK)
			(void) vd_simulation_expect_state(simulation, "/registry/pods/a/p2", "{}");
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		vd_simulation_close(simulation);
		assert_int_equal(vdi_alloc_live(), live);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_holds_is_silent),
		cmocka_unit_test(what_does_not_hold_is_told),
		cmocka_unit_test(a_rule_that_is_broken_is_a_violation),
		cmocka_unit_test(the_same_seed_is_the_same_run_and_faults_violate_nothing),
		cmocka_unit_test(what_cannot_be_opened_says_why),
		cmocka_unit_test(every_broken_guarantee_is_named),
		cmocka_unit_test(a_picture_that_is_not_the_list_is_unreliable),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
