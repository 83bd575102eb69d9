/* A test of a controller, as its author would write it: cmocka, the public headers, and a recorded log.
 *
 * 	example-controller-test FOLDER-OF-LOGS
 *
 * The controller maintains the config map default/pods-per-node: the number of pods on every node. It watches
 * pods without an informer: a table of pods, changed by every event. When its watch has expired, it starts a
 * new watch with the present state. Here is the planted bug: it does not empty its table first, so a pod that
 * was deleted while the watch was down is counted for ever. An ordinary run does not show that. A simulation
 * with compactions does, under some seed, and the same seed shows it every time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <vedette/vedette.h>

#define RUNS 100
#define PODS_MAX 256
#define NODES 3
#define RESULT_KEY "/registry/configmaps/default/pods-per-node"

/* ---- The controller ---- */

struct controller {
	const struct vd_env *env;
	struct vd_store	    *store;
	struct vd_cacher    *pods;
	struct vd_actor	    *actor;
	struct vd_watcher   *watcher;
	bool		     is_fixed;

	vd_rev seen;	 /* of the last event; 0: starts with the present state */
	bool   ended;	 /* the watch has ended */
	bool   is_dirty; /* the table has changed since it was written */
	bool   is_writing;
	size_t count;
	struct {
		char key[128];
		int  node;
	} table[PODS_MAX];
};

static size_t find_pod(const struct controller *controller, struct vd_bytes key)
{
	size_t i = 0;

	while (i < controller->count && !vd_bytes_equal(vd_bytes_of(controller->table[i].key), key))
		i++;
	return i;
}

/* "nodeName":"node-2" -> 2; 0: none. Enough for an example. */
static int node_of(struct vd_object *object)
{
	struct vd_bytes value = vd_kv_value(vd_object_kv(object));
	const char     *end = (const char *) value.data + value.size;
	const char     *at = memmem(value.data, value.size, "\"nodeName\":\"node-", 17);

	return at && at + 17 < end ? at[17] - '0' : 0; /* not terminated: no atoi */
}

static void count_event(struct controller *controller, const struct vd_watch_event *event)
{
	struct vd_bytes key = vd_object_key(event->object);
	size_t		at = find_pod(controller, key);

	if (event->type == VD_WATCH_DELETED) {
		if (at < controller->count)
			controller->table[at] = controller->table[--controller->count];
	} else {
		assert_true(at < PODS_MAX);
		if (at == controller->count)
			snprintf(controller->table[controller->count++].key, sizeof controller->table[0].key,
				 "%.*s", (int) key.size, (const char *) key.data);
		controller->table[at].node = node_of(event->object);
	}
	controller->is_dirty = true;
}

/* Receives events, on the cacher's actor; the simulator has one thread. */
static size_t deliver(void *arg, const struct vd_watch_event *events, size_t count)
{
	struct controller *controller = arg;

	for (size_t i = 0; i < count; i++) {
		if (events[i].object)
			count_event(controller, &events[i]);
		if (events[i].type != VD_WATCH_ERROR && !events[i].initial)
			controller->seen = events[i].revision;
	}
	vd_actor_wake(controller->actor);
	return count;
}

static void ended(void *arg, vd_status reason)
{
	struct controller *controller = arg;

	controller->ended = true;
	if (reason == VD_EXPIRED)
		controller->seen = 0; /* list again */
	vd_actor_wake(controller->actor);
}

static void watch(struct controller *controller)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct vd_watch_sink	sink = { deliver, ended, controller, NULL };

	if (controller->seen)
		options.revision = controller->seen;
	else if (controller->is_fixed)
		controller->count = 0; /* the planted bug is the lack of this line */
	controller->ended = false;
	if (vd_cacher_watch(controller->pods, &options, &sink, &controller->watcher, NULL) != VD_OK) {
		controller->watcher = NULL;
		vd_actor_set_timer(controller->actor, vd_mono_add(vd_env_now(controller->env), VD_MS(200)));
	}
}

static void written(void *arg, vd_status status, const struct vd_txn_result *result,
		    const struct vd_error *error)
{
	struct controller *controller = arg;

	(void) result;
	(void) error;
	controller->is_writing = false;
	if (status != VD_OK) { /* refused, or the answer was lost: try again a little later */
		controller->is_dirty = true;
		vd_actor_set_timer(controller->actor, vd_mono_add(vd_env_now(controller->env), VD_MS(200)));
	} else {
		vd_actor_wake(controller->actor);
	}
}

static void write_result(struct controller *controller)
{
	struct vd_op	      put = { .kind = VD_OP_PUT, .key = vd_bytes_of(RESULT_KEY) };
	struct vd_txn_request request = { .success = &put, .success_count = 1 };
	int		      pods[NODES + 1] = { 0 };
	char		      json[256];

	for (size_t i = 0; i < controller->count; i++)
		pods[controller->table[i].node <= NODES ? controller->table[i].node : 0]++;
	snprintf(json, sizeof json,
		 "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"pods-per-node\","
		 "\"namespace\":\"default\"},\"data\":{"
		 "\"node-1\":\"%d\",\"node-2\":\"%d\",\"node-3\":\"%d\"}}",
		 pods[1], pods[2], pods[3]);
	put.value = vd_bytes_of(json);
	controller->is_dirty = false;
	controller->is_writing = true;
	if (vd_store_txn(controller->store, &request, written, controller) != VD_OK)
		written(controller, VD_FULL, NULL, NULL);
}

static void run(void *arg)
{
	struct controller *controller = arg;

	if (controller->watcher && controller->ended) {
		vd_watcher_close(controller->watcher, NULL, NULL);
		controller->watcher = NULL;
	}
	if (controller->watcher == NULL)
		watch(controller);
	if (controller->is_dirty && !controller->is_writing)
		write_result(controller);
}

static void start_controller(struct controller *controller, struct vd_simulation *simulation,
			     struct vd_cacher *pods, bool is_fixed)
{
	struct vd_actor_options actor = { .name = "controller", .run = run, .arg = controller };

	memset(controller, 0, sizeof *controller);
	controller->env = vd_simulation_env(simulation);
	controller->store = vd_simulation_store(simulation);
	controller->pods = pods;
	controller->is_fixed = is_fixed;
	assert_int_equal(vd_actor_new(controller->env, &actor, &controller->actor), VD_OK);
	vd_actor_wake(controller->actor);
}

static void on_closed(void *arg)
{
	*(bool *) arg = true;
}

static bool is_true(void *arg)
{
	return *(bool *) arg;
}

static void stop_controller(struct controller *controller, struct vd_simulation *simulation)
{
	bool closed = false;

	vd_watcher_close(controller->watcher, NULL, NULL);
	vd_actor_close(controller->actor, on_closed, &closed);
	assert_true(vd_simulation_until(simulation, is_true, &closed, VD_SECONDS(60)));
}

/* ---- The test ---- */

static const char *folder;

/* The correct result at the end of the log. */
static const char right_answer[] = "{\"node-1\":\"3\",\"node-2\":\"0\",\"node-3\":\"3\"}";

/* Returns NULL if all expectations held; otherwise the one that failed, valid until the next call. */
static const char *simulate(uint64_t seed, bool is_fixed)
{
	static char		     sentence[1024];
	struct vd_simulation_options options = VD_SIMULATION_OPTIONS_INIT;
	struct vd_watch_options	     all = VD_WATCH_OPTIONS_INIT;
	struct vd_simulation	    *simulation = NULL;
	struct vd_cacher	    *pods = NULL;
	struct vd_error		     error = { 0 };
	struct controller	     controller;
	char			     path[1024];
	unsigned		     witness;
	const char		    *failure;

	snprintf(path, sizeof path, "%s/node-failure.ndjson.zst", folder);
	options.path = path;
	options.seed = seed;
	options.faults = "compact=0.02,disconnect=0.05,delay=200ms,refuse=0.02,lose=0.02";
	assert_int_equal(vd_simulation_open(&options, &simulation, &error), VD_OK);
	assert_int_equal(vd_simulation_cacher(simulation, "/registry/pods/", false, &pods, &error), VD_OK);
	assert_int_equal(vd_simulation_watch(simulation, pods, &all, &witness, &error), VD_OK);
	start_controller(&controller, simulation, pods, is_fixed);

	assert_int_equal(vd_simulation_run(simulation, VD_PLAYER_END, &error), VD_OK);
	vd_simulation_expect_member(simulation, RESULT_KEY, ".data", right_answer);
	vd_simulation_expect_count(simulation, "/registry/pods/", 6);
	vd_simulation_expect_no_violation(simulation);

	failure = vd_simulation_failure(simulation);
	snprintf(sentence, sizeof sentence, "%s", failure ? failure : "");
	stop_controller(&controller, simulation);
	vd_simulation_close(simulation);
	return failure ? sentence : NULL;
}

static void the_fixed_controller_is_right_under_every_seed(void **state)
{
	(void) state;
	for (uint64_t seed = 0; seed < RUNS; seed++) {
		const char *failure = simulate(seed, true);

		if (failure)
			fail_msg("seed %llu: %s", (unsigned long long) seed, failure);
	}
}

static void the_planted_bug_shows_and_its_seed_shows_it_again(void **state)
{
	char	    first[1024];
	const char *failure = NULL;
	uint64_t    seed = 0;

	(void) state;
	while (seed < RUNS && (failure = simulate(seed, false)) == NULL)
		seed++;
	if (failure == NULL)
		fail_msg("no seed below %d shows the bug", RUNS);
	snprintf(first, sizeof first, "%s", failure);
	print_message("seed %llu: %s\n", (unsigned long long) seed, first);
	failure = simulate(seed, false);
	assert_non_null(failure);
	assert_string_equal(failure, first);
	assert_null(simulate(seed, true));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_fixed_controller_is_right_under_every_seed),
		cmocka_unit_test(the_planted_bug_shows_and_its_seed_shows_it_again),
	};

	folder = argc > 1 ? argv[1] : "examples/logs";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
