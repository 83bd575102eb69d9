/* The limit of unsent bytes, to the byte, and the checks of one loop, to the nanosecond; without calls. */
#include "h2_server_state.h"
#include "hand_clock.h"

#define LIMIT ((size_t) 40000)
#define PRESSED (LIMIT / 4 * 3)

struct fixture {
	struct vdi_clock_sim	  clock;
	struct vd_env		 *env;
	struct vd_actor		 *nudge;
	struct vdi_h2_server_loop loops[2];
	struct vdi_h2_server	  server;
	unsigned		  iterations[2];
};

static void count_iteration(void *arg)
{
	unsigned *iterations = arg;

	++*iterations;
}

static void do_nothing(void *arg)
{
	(void) arg;
}

static void set_up(struct fixture *f)
{
	struct vd_actor_options nudge = { .name = "nudge", .run = do_nothing };

	*f = (struct fixture) { 0 };
	f->env = hand_clock_env(&f->clock);
	f->server.env = f->env;
	f->server.unsent_max = LIMIT;
	f->server.loops = f->loops;
	f->server.loop_count = 2;
	for (int i = 0; i < 2; i++) {
		const struct vdi_h2_loop_options options = { .end_iteration = count_iteration,
							     .arg = &f->iterations[i] };

		f->loops[i].server = &f->server;
		assert_status(vdi_loop_new(f->env, &f->loops[i].loop), VD_OK);
		assert_status(vdi_h2_loop_new(f->env, f->loops[i].loop, &options, &f->loops[i].h2_loop),
			      VD_OK);
	}
	assert_status(vd_executor_actor_new(vdi_loop_executor(f->loops[0].loop), &nudge, &f->nudge), VD_OK);
	assert_status(vdi_h2_unsent_init(&f->server), VD_OK);
}

static void settle(struct fixture *f)
{
	for (unsigned i = 0; i < 20; i++)
		for (int k = 0; k < 2; k++)
			(void) event_base_loop(vdi_loop_base(f->loops[k].loop), EVLOOP_NONBLOCK);
}

static void tear_down(struct fixture *f)
{
	vd_actor_close(f->nudge, NULL, NULL);
	vdi_h2_unsent_fini(&f->server);
	for (int i = 0; i < 2; i++) {
		vdi_h2_unsent_stop(&f->loops[i]);
		vdi_h2_loop_free(f->loops[i].h2_loop);
		vdi_loop_free(f->loops[i].loop);
	}
	vd_env_free(f->env);
}

/* A message that costs so many bytes: a blob, and what stands before it. */
static struct vdi_h2_outgoing *message_of(size_t cost)
{
	struct vdi_h2_outgoing *outgoing;
	struct vdi_rpc_blob    *blob;
	char		       *room;

	assert_status(vdi_rpc_blob_new(cost - sizeof *outgoing - VDI_H2_PREFIX_SIZE, &blob, &room), VD_OK);
	assert_status(vdi_h2_outgoing_new(VD_BYTES_NONE, blob, &outgoing), VD_OK);
	vdi_rpc_blob_unref(blob);
	return outgoing;
}

static size_t unsent(struct fixture *f)
{
	return atomic_load(&f->server.unsent.bytes);
}

static int64_t metric(struct fixture *f, enum vdi_metric_id id, const char *label)
{
	const char *const  labels[] = { label };
	struct vdi_metric *found;
	int64_t		   value;

	assert_status(vdi_metric_get(vdi_env_metrics(f->env), id, label ? labels : NULL, &found), VD_OK);
	value = vdi_metric_value(found);
	vdi_metric_release(found);
	return value;
}

/* Whether the loops are told to look, with one iteration each; then it is forgotten. */
static void expect_pressed(struct fixture *f, bool is_pressed)
{
	for (int i = 0; i < 2; i++)
		assert_int_equal(atomic_exchange(&f->loops[i].is_pressed, false), is_pressed);
	settle(f);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(f->iterations[i], is_pressed);
		f->iterations[i] = 0;
	}
}

/* ---- Up to the limit ---- */

/* What waits, what comes, whether it fits, and whether the loops must look. A message's size is less than its
 * cost by the memory that it has itself. */
static void messages_fit_to_the_byte(void **state)
{
	const size_t own = sizeof(struct vdi_h2_outgoing);
	const struct {
		size_t waiting, cost;
		bool   fits, presses;
	} cases[] = {
		{ 0, 1000, true, false },
		{ 0, PRESSED + own, true, false },
		{ 0, PRESSED + own + 1, true, true },
		{ 0, LIMIT + own, true, true },
		{ 0, LIMIT + own + 1, true, true }, /* alone, a message may be larger */
		{ 0, 5 * LIMIT, true, true },
		{ 1000, PRESSED + own - 1000, true, false },
		{ 1000, PRESSED + own - 999, true, true },
		{ 1000, LIMIT + own - 1000, true, true },
		{ 1000, LIMIT + own - 999, false, true },
		{ 1000, LIMIT + own + 1, false, true },
		{ 1000, 5 * LIMIT, false, true },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++)
		for (int is_answer = 0; is_answer < 2; is_answer++) {
			struct fixture		f;
			struct vdi_h2_outgoing *first = NULL, *second = message_of(cases[i].cost);
			bool			fits;

			set_up(&f);
			if (cases[i].waiting) {
				first = message_of(cases[i].waiting);
				assert_true(vdi_h2_unsent_take_message(&f.server, first));
				assert_int_equal(unsent(&f), cases[i].waiting);
				expect_pressed(&f, false);
			}
			fits = is_answer && cases[i].cost > 1024 + own ?
				       vdi_h2_unsent_take_answer(&f.server, second) :
				       vdi_h2_unsent_take_message(&f.server, second);
			if (fits != cases[i].fits)
				fail_msg("case %zu", i);
			assert_int_equal(unsent(&f), cases[i].waiting + cases[i].cost);
			expect_pressed(&f, cases[i].presses);
			assert_int_equal(metric(&f, VDI_METRIC_RPC_UNSENT_ENDS_TOTAL, "refused"),
					 is_answer && !fits);
			assert_int_equal(metric(&f, VDI_METRIC_RPC_UNSENT_ENDS_TOTAL, "cut"), 0);
			vdi_h2_outgoing_free(second); /* is not counted any more, whether it fitted or not */
			assert_int_equal(unsent(&f), cases[i].waiting);
			vdi_h2_outgoing_free(first);
			assert_int_equal(unsent(&f), 0);
			tear_down(&f);
		}
}

/* Responses of up to a KiB are always taken, and not counted. */
static void small_answers_are_not_counted(void **state)
{
	struct fixture		f;
	struct vdi_h2_outgoing *full = message_of(2 * LIMIT), *small, *larger;

	(void) state;
	set_up(&f);
	small = message_of(1024 + sizeof *small);
	larger = message_of(1025 + sizeof *larger);
	assert_int_equal(small->size, 1024);
	assert_true(vdi_h2_unsent_take_answer(&f.server, full));
	assert_true(vdi_h2_unsent_take_answer(&f.server, small));
	assert_int_equal(unsent(&f), 2 * LIMIT);
	assert_false(vdi_h2_unsent_take_answer(&f.server, larger));
	assert_int_equal(metric(&f, VDI_METRIC_RPC_UNSENT_ENDS_TOTAL, "refused"), 1);
	vdi_h2_outgoing_free(larger);
	/* As messages of streams they count. */
	vdi_h2_outgoing_free(full);
	assert_int_equal(unsent(&f), 0);
	vdi_h2_outgoing_free(small);
	small = message_of(1024 + sizeof *small);
	assert_true(vdi_h2_unsent_take_message(&f.server, small));
	assert_int_equal(unsent(&f), 1024 + sizeof *small);
	vdi_h2_outgoing_free(small);
	tear_down(&f);
}

/* A loop that is to look is not woken again for that. */
static void a_loop_is_woken_once(void **state)
{
	struct fixture		f;
	struct vdi_h2_outgoing *messages[3];

	(void) state;
	set_up(&f);
	for (unsigned i = 0; i < 3; i++) {
		messages[i] = message_of(LIMIT);
		if (i == 2) /* one of them has looked */
			atomic_store(&f.loops[1].is_pressed, false);
		assert_int_equal(vdi_h2_unsent_take_message(&f.server, messages[i]), i == 0);
		settle(&f);
		assert_int_equal(f.iterations[0], 1);
		assert_int_equal(f.iterations[1], i == 2 ? 2 : 1);
	}
	for (int i = 0; i < 3; i++)
		vdi_h2_outgoing_free(messages[i]);
	tear_down(&f);
}

/* ---- Looks ---- */

static bool has_looked(struct fixture *f)
{
	bool has_looked = !atomic_load(&f->loops[0].is_pressed);

	atomic_store(&f->loops[0].is_pressed, true);
	return has_looked;
}

static void advance(struct fixture *f, vd_dur by)
{
	vdi_clock_sim_advance(&f->clock, by);
	vd_actor_wake(f->nudge);
	settle(f);
}

static void expect_look_after_100_ms(struct fixture *f)
{
	advance(f, (vd_dur) { VD_MS(100).ns - 1 });
	assert_false(has_looked(f));
	advance(f, (vd_dur) { 1 });
	assert_true(has_looked(f));
}

/* Every 100 ms as long as more than three quarters are unsent, to the byte. */
static void a_loop_looks_as_long_as_it_is_pressed(void **state)
{
	for (int is_more = 0; is_more < 2; is_more++) {
		struct fixture		f;
		struct vdi_h2_outgoing *message = message_of(PRESSED + (size_t) is_more);

		(void) state;
		set_up(&f);
		assert_true(vdi_h2_unsent_take_message(&f.server, message));
		atomic_store(&f.loops[0].is_pressed, true);
		vdi_h2_unsent_schedule_check(&f.loops[0]);
		advance(&f, VD_MS(60));
		vdi_h2_unsent_schedule_check(&f.loops[0]); /* pressed once more: the look is not put off */
		advance(&f, (vd_dur) { VD_MS(40).ns - 1 });
		assert_false(has_looked(&f));
		advance(&f, (vd_dur) { 1 });
		assert_true(has_looked(&f));
		if (is_more) {
			for (int i = 0; i < 3; i++)
				expect_look_after_100_ms(&f);
			vdi_h2_outgoing_free(message);
			message = NULL;
			expect_look_after_100_ms(&f); /* and finds that there is room */
		}
		advance(&f, VD_SECONDS(10));
		assert_false(has_looked(&f));
		vdi_h2_unsent_schedule_check(&f.loops[0]);
		expect_look_after_100_ms(&f);
		vdi_h2_outgoing_free(message);
		tear_down(&f);
	}
}

static void looks_can_be_stopped(void **state)
{
	struct fixture		f;
	struct vdi_h2_outgoing *message = message_of(LIMIT);

	(void) state;
	set_up(&f);
	vdi_h2_unsent_stop(&f.loops[0]); /* there are none */
	assert_true(vdi_h2_unsent_take_message(&f.server, message));
	vdi_h2_unsent_schedule_check(&f.loops[0]);
	vdi_h2_unsent_stop(&f.loops[0]);
	atomic_store(&f.loops[0].is_pressed, true);
	advance(&f, VD_SECONDS(1));
	assert_false(has_looked(&f));
	vdi_h2_unsent_schedule_check(&f.loops[0]); /* and begun again */
	expect_look_after_100_ms(&f);
	vdi_h2_outgoing_free(message);
	tear_down(&f);
}

/* ---- Metrics ---- */

static int64_t told(struct fixture *f)
{
	struct vdi_buffer text;

	vdi_buffer_init(&text, 1 << 20);
	assert_status(vdi_metrics_render(vdi_env_metrics(f->env), &text), VD_OK);
	vdi_buffer_fini(&text);
	return metric(f, VDI_METRIC_RPC_UNSENT_BYTES, NULL);
}

/* The bytes of all servers of the environment, as they are now; a server that is gone has none. */
static void the_metric_is_the_sum_of_all_servers(void **state)
{
	struct fixture		f;
	struct vdi_h2_server	other;
	struct vdi_h2_outgoing *messages[2] = { message_of(1000), message_of(3000) };

	(void) state;
	set_up(&f);
	other = (struct vdi_h2_server) { .env = f.env, .unsent_max = LIMIT };
	assert_status(vdi_h2_unsent_init(&other), VD_OK);
	assert_int_equal(told(&f), 0);
	assert_true(vdi_h2_unsent_take_message(&f.server, messages[0]));
	assert_int_equal(told(&f), 1000);
	assert_true(vdi_h2_unsent_take_message(&other, messages[1]));
	assert_int_equal(told(&f), 4000);
	assert_int_equal(told(&f), 4000);
	vdi_h2_outgoing_free(messages[1]);
	assert_int_equal(told(&f), 1000);
	messages[1] = message_of(500);
	assert_true(vdi_h2_unsent_take_message(&other, messages[1]));
	assert_int_equal(told(&f), 1500);
	vdi_h2_outgoing_free(messages[1]);
	vdi_h2_unsent_fini(&other); /* nobody has asked since */
	assert_int_equal(told(&f), 1000);
	vdi_h2_outgoing_free(messages[0]);
	assert_int_equal(told(&f), 0);
	tear_down(&f);
}

static void without_memory_there_are_no_metrics(void **state)
{
	struct vdi_clock_sim clock;
	bool		     was_reached = true;

	(void) state;
	for (uint64_t n = 1; was_reached; n++) {
		struct vd_env	    *env = hand_clock_env(&clock);
		struct vdi_h2_server server = { .env = env, .unsent_max = LIMIT };
		vd_status	     status;

		vdi_alloc_fail_nth(n, 1);
		status = vdi_h2_unsent_init(&server);
		was_reached = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, was_reached ? VD_NOMEM : VD_OK);
		assert_int_equal(server.has_collector, !was_reached);
		vdi_h2_unsent_fini(&server);
		vd_env_free(env);
		assert_true(was_reached || n > 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_fit_to_the_byte),
		cmocka_unit_test(small_answers_are_not_counted),
		cmocka_unit_test(a_loop_is_woken_once),
		cmocka_unit_test(a_loop_looks_as_long_as_it_is_pressed),
		cmocka_unit_test(looks_can_be_stopped),
		cmocka_unit_test(the_metric_is_the_sum_of_all_servers),
		cmocka_unit_test(without_memory_there_are_no_metrics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
