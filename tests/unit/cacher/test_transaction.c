/* A revision of many events is one step for everybody: no list, get or state ever shows a part of it, and no
 * bookmark stands inside it.
 *
 * Transactions over the same keys follow each other through the embedded store; each writes its number into
 * all of them (and every third one deletes some). Readers of all kinds look between any two steps of the
 * simulator. */
#include "cacher_fixture.h"

#include "cacher.h"
#include "env.h"
#include "store_chaos.h"

#define KEYS 300
#define PER_OP 100
#define ROUNDS 6

struct world {
	struct cacher_fixture f;
	struct vd_store	     *chaos;
	char		      keys[KEYS][40];
	char		      values[KEYS][128];
	vd_rev		      revisions[ROUNDS + 1]; /* of each round; 0: the keys do not exist yet */
	unsigned	      rounds;
	unsigned	      seen_inside; /* looks that found a round that was not the last */
};

static void note_txn(void *arg, vd_status status, const struct vd_txn_result *result,
		     const struct vd_error *error)
{
	struct world *world = arg;

	(void) error;
	assert_status(status, VD_OK);
	world->revisions[++world->rounds] = result->revision;
}

static bool is_deleted(unsigned round, unsigned key)
{
	return round % 3 == 0 && key % 2;
}

static size_t count_of(unsigned round)
{
	size_t count = 0;

	for (unsigned key = 0; round && key < KEYS; key++)
		count += !is_deleted(round, key);
	return count;
}

/* More keys than one list of operations may hold: nested. */
static void write_round(struct world *world)
{
	static struct vd_op	    ops[KEYS];
	struct vd_txn_request	    parts[KEYS / PER_OP];
	struct vd_op		    outer[KEYS / PER_OP];
	const struct vd_txn_request whole = { .success = outer, .success_count = KEYS / PER_OP };
	unsigned		    round = world->rounds + 1;

	for (unsigned key = 0; key < KEYS; key++) {
		snprintf(world->values[key], sizeof world->values[key],
			 "{\"metadata\":{\"name\":\"p%03u\",\"namespace\":\"ns%u\",\"labels\":{\"app\":\"r%"
			 "u\"}}}",
			 key, key % 2, round);
		ops[key] = (struct vd_op) { .kind = is_deleted(round, key) ? VD_OP_DELETE : VD_OP_PUT,
					    .key = vd_bytes_of(world->keys[key]) };
		if (ops[key].kind == VD_OP_PUT)
			ops[key].value = vd_bytes_of(world->values[key]);
	}
	for (unsigned i = 0; i < KEYS / PER_OP; i++) {
		parts[i] = (struct vd_txn_request) { .success = ops + (size_t) i * PER_OP,
						     .success_count = PER_OP };
		outer[i] = (struct vd_op) { .kind = VD_OP_TXN, .txn = &parts[i] };
	}
	assert_status(vd_store_txn(world->f.store, &whole, note_txn, world), VD_OK);
}

static unsigned round_at(const struct world *world, vd_rev revision)
{
	unsigned round = 0;

	for (unsigned i = 1; i <= world->rounds; i++)
		if (world->revisions[i] <= revision)
			round = i;
	return round;
}

static unsigned round_of(const struct vd_object *object)
{
	struct vd_bytes app;
	char		text[16] = "";

	assert_true(vd_object_label_get(object, vd_bytes_of("app"), &app));
	assert_true(app.size > 1 && app.size < sizeof text);
	memcpy(text, app.data, app.size);
	return (unsigned) atoi(text + 1);
}

/* All of one round, and the one its revision says. */
static void check_list(struct world *world, struct vd_list *list)
{
	struct vd_object *object;
	unsigned	  round = 0;
	size_t		  count = 0;
	vd_rev		  revision = vd_list_revision(list);

	for (; (object = vd_list_next(list)); count++) {
		assert_true(round == 0 || round == round_of(object));
		round = round_of(object);
		assert_true(vd_object_revision(object) <= revision);
	}
	/* The store may be ahead of its answer, which tells us the number. */
	if (world->rounds >= round)
		assert_int_equal(round, round_at(world, revision));
	assert_int_equal(count, count_of(round));
	world->seen_inside += round < world->rounds;
	vd_list_free(list);
}

static void note_list(void *arg, vd_status status, struct vd_list *list, const struct vd_error *error)
{
	(void) error;
	if (status == VD_OK)
		check_list(arg, list);
	else
		assert_status(status, VD_NOMEM);
}

static void note_object(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
			const struct vd_error *error)
{
	struct world *world = arg;

	(void) error;
	if (status == VD_OK && world->rounds >= round_of(object))
		assert_int_equal(round_of(object), round_at(world, revision));
	else if (status != VD_OK)
		assert_true(status == VD_NOT_FOUND || status == VD_NOMEM);
}

static void check_begun(vd_status status)
{
	assert_true(status == VD_OK || status == VD_NOT_READY);
}

static void look(struct world *world)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	struct vd_error	       error;

	options.revision = VD_REVISION_ANY;
	check_begun(vd_cacher_list(world->f.cacher, &options, note_list, world, &error));
	check_begun(vd_cacher_get(world->f.cacher, vd_bytes_of("ns0"), vd_bytes_of("p000"), VD_REVISION_ANY,
				  note_object, world));
	check_begun(vd_cacher_get(world->f.cacher, vd_bytes_of("ns0"), vd_bytes_of("p298"), VD_REVISION_ANY,
				  note_object, world));
}

/* The state is that of one round; then whole revisions, with nothing of another revision between. */
static void check_stream(const struct world *world, const struct recorder *r, bool from_state)
{
	size_t	 i = 0;
	unsigned round = 0;

	if (r->count == 0)
		return;
	if (from_state) {
		while (i < r->count && !r->events[i].end)
			assert_true(r->events[i++].initial);
		if (i == r->count)
			return;
		round = round_at(world, r->events[i].revision);
		assert_int_equal(i, count_of(round));
		i++;
	}
	while (i < r->count) {
		vd_rev revision = r->events[i].revision;
		size_t count = 0;

		if (r->events[i].type == VD_WATCH_BOOKMARK) {
			assert_int_equal(round_at(world, revision), round);
			i++;
			continue;
		}
		assert_int_equal(revision, world->revisions[++round]);
		for (; i < r->count && r->events[i].revision == revision &&
		       r->events[i].type != VD_WATCH_BOOKMARK;
		     i++)
			count++;
		assert_int_equal(count, KEYS); /* deletions are events too: everything was there before */
	}
}

static size_t change_count(const struct recorder *r)
{
	size_t count = 0;

	for (size_t i = 0; i < r->count; i++)
		count += r->events[i].type <= VD_WATCH_DELETED;
	return count;
}

static void run_world(uint64_t seed, unsigned decode_workers, const struct chaos_options *chaos,
		      bool no_memory)
{
	struct world		world = { 0 };
	struct recorder	       *live = calloc(3, sizeof *live);
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct vd_list_options	exact = VD_LIST_OPTIONS_INIT;
	uint64_t		random = seed * 977 + 3;

	for (unsigned key = 0; key < KEYS; key++)
		snprintf(world.keys[key], sizeof world.keys[key], "/registry/pods/ns%u/p%03u", key % 2, key);
	cacher_fixture_init(&world.f, seed);
	world.f.options.decode_workers = decode_workers;
	vdi_sim_set_step_delay(world.f.env, seed % 2 ? VD_US(200) : VD_US(0));
	if (chaos)
		world.chaos = chaos_store_new(world.f.env, world.f.store, chaos);
	cacher_fixture_open(&world.f, world.chaos);
	options.revision = vd_cacher_revision(world.f.cacher);
	options.allow_bookmarks = true;
	options.deadline = vd_mono_add(vd_env_now(world.f.env), VD_SECONDS(seed % 2 ? 3 : 1000));
	assert_status(recorder_open(&world.f, &live[0], &options, NULL), VD_OK);
	live[1].room = 70;
	options.deadline = VD_NEVER;
	assert_status(recorder_open(&world.f, &live[1], &options, vdi_env_executor(world.f.env)), VD_OK);
	options.send_initial_events = VD_TRUE;
	for (unsigned round = 0; round < ROUNDS; round++) {
		write_round(&world);
		if (round == 1 + seed % 4)
			assert_status(recorder_open(&world.f, &live[2], &options,
						    seed % 3 ? NULL : vdi_env_executor(world.f.env)),
				      VD_OK);
		for (unsigned step = 0; step < 120; step++) {
			random = random * UINT64_C(6364136223846793005) + 1;
			if (no_memory && world.rounds > round && (random >> 40) % 3 == 0)
				vdi_alloc_fail_nth(1 + (random >> 50) % 420, 1 + (random >> 45) % 4);
			if (!vdi_sim_step(world.f.env))
				vdi_sim_advance(world.f.env, VD_MS(2));
			vdi_alloc_fail_nth(0, 0);
			look(&world);
		}
		assert_int_equal(world.rounds, round + 1);
	}
	if (chaos)
		chaos_set(world.chaos, &(struct chaos_options) { 0 });
	for (unsigned i = 0; i < 3; i++)
		live[i].room = SIZE_MAX;
	if (live[1].watcher)
		vd_watcher_resume(live[1].watcher);
	vdi_sim_advance(world.f.env, VD_SECONDS(90));
	look(&world);
	assert_int_equal(vd_cacher_revision(world.f.cacher), world.revisions[ROUNDS]);
	exact.match = VD_MATCH_EXACT;
	for (unsigned round = 1; round <= ROUNDS; round++) {
		struct vd_list *list = NULL;

		exact.revision = world.revisions[round];
		if (vd_cacher_list_wait(world.f.cacher, &exact, &list, NULL) == VD_OK)
			check_list(&world, list);
	}
	for (unsigned i = 0; i < 3; i++) {
		if (live[i].ended == 0 || live[i].reason == VD_TIMEOUT)
			check_stream(&world, &live[i], i == 2);
		recorder_close(&world.f, &live[i]);
	}
	if (!chaos && !no_memory)
		assert_int_equal(change_count(&live[1]), ROUNDS * KEYS);
	assert_true(world.seen_inside > 0);
	world.f.cacher = vd_cacher_close_wait(world.f.cacher);
	chaos_store_free(world.chaos);
	cacher_fixture_teardown(&world.f);
	free(live);
}

static void e459_a_transaction_is_seen_whole(void **state)
{
	for (uint64_t seed = 1; seed <= 20; seed++)
		run_world(seed, 0, NULL, false);
}

static void e459_a_transaction_is_seen_whole_with_decode_workers(void **state)
{
	for (uint64_t seed = 1; seed <= 20; seed++)
		run_world(seed, 1 + (unsigned) seed % 4, NULL, false);
}

static void e459_a_transaction_is_seen_whole_when_the_stream_breaks(void **state)
{
	const struct chaos_options chaos = {
		.delay = 100, .delay_max = VD_MS(30), .cut = 150, .stall = 100, .refuse_watch = 100
	};

	for (uint64_t seed = 1; seed <= 20; seed++)
		run_world(seed, (unsigned) seed % 3, &chaos, false);
}

static void e459_a_transaction_is_seen_whole_without_memory(void **state)
{
	for (uint64_t seed = 1; seed <= 20; seed++)
		run_world(seed, (unsigned) seed % 2 * 2, NULL, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e459_a_transaction_is_seen_whole),
		cmocka_unit_test(e459_a_transaction_is_seen_whole_with_decode_workers),
		cmocka_unit_test(e459_a_transaction_is_seen_whole_when_the_stream_breaks),
		cmocka_unit_test(e459_a_transaction_is_seen_whole_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
