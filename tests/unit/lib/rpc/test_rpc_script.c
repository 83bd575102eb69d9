/* The scripted peer keeps the contract of lib/rpc/rpc_client.h: order, one end each, waiting for an endpoint,
 * cuts, cancels, back-pressure. */
#include "vdtest.h"

#include "actor_sim.h"
#include "rand.h"
#include "rpc_script.h"

#define METHOD "/test.Test/Do"

static const char *const two_endpoints[] = { "one:1", "two:2" };

struct fixture {
	struct vd_env	      *env;
	struct rpc_script     *script;
	struct vdi_rpc_client *client;
};

static struct fixture setup(uint64_t seed)
{
	struct fixture f;

	assert_status(vdi_env_new_sim(seed, NULL, NULL, &f.env), VD_OK);
	f.script = rpc_script_new(f.env, seed, two_endpoints, 2);
	f.client = rpc_script_client(f.script);
	return f;
}

static void teardown(struct fixture *f)
{
	rpc_script_free(f->script);
	vd_env_free(f->env);
}

/* What came back, of a call or stream. */
struct result {
	struct vdi_rpc_stream *stream;
	unsigned	       opened, ended, count;
	int		       code;
	bool		       unsent, local, keeps_asking;
	char		       text[128], endpoint[32], messages[64][32];
};

static void keep(struct result *result, struct vdi_rpc_message *message)
{
	snprintf(result->messages[result->count++], sizeof result->messages[0], "%.*s",
		 (int) message->bytes.size, (const char *) message->bytes.data);
	vdi_rpc_message_release(message);
}

static void keep_end(struct result *result, const struct vdi_rpc_end *end)
{
	assert_int_equal(result->ended++, 0);
	result->code = end->code;
	result->unsent = end->unsent;
	result->local = end->local;
	snprintf(result->text, sizeof result->text, "%s", end->message);
	snprintf(result->endpoint, sizeof result->endpoint, "%s", end->endpoint);
}

static void on_done(void *arg, const struct vdi_rpc_end *end, struct vdi_rpc_message *message)
{
	keep_end(arg, end);
	if (end->code == VDI_RPC_OK)
		keep(arg, message);
}

static void on_opened(void *arg, const char *endpoint)
{
	struct result *result = arg;

	assert_int_equal(result->count + result->ended, 0);
	result->opened++;
}

static void on_message(void *arg, struct vdi_rpc_message *message)
{
	struct result *result = arg;

	assert_int_equal(result->ended, 0);
	keep(result, message);
	if (result->keeps_asking)
		result->stream->client->ops->stream_receive(result->stream);
}

static void on_ended(void *arg, const struct vdi_rpc_end *end)
{
	struct result *result = arg;

	keep_end(result, end);
	result->stream->client->ops->stream_free(result->stream);
}

static const struct vdi_rpc_stream_handlers handlers = { on_opened, on_message, on_ended };

static const struct vdi_rpc_request any = { .method = METHOD, .endpoint = VDI_RPC_ANY_ENDPOINT };

static void start(struct fixture *f, struct result *result, vd_dur timeout, struct vdi_rpc_call **ret_call)
{
	struct vdi_rpc_metadata metadata = { "token", vd_bytes_of("abc") };
	struct vdi_rpc_request	request = any;

	request.message = vd_bytes_of("question");
	request.timeout = timeout;
	request.metadata = &metadata;
	request.metadata_count = 1;
	assert_status(f->client->ops->call(f->client, &request, on_done, result, ret_call), VD_OK);
}

static void open_stream(struct fixture *f, struct result *result)
{
	assert_status(f->client->ops->stream_open(f->client, &any, &handlers, result, &result->stream),
		      VD_OK);
}

static void calls_are_seen_and_answered(void **state)
{
	struct fixture		f = setup(1);
	struct result		a = { 0 }, b = { 0 };
	struct rpc_script_call *first, *second;

	start(&f, &a, VD_SECONDS(1), NULL);
	start(&f, &b, VD_SECONDS(1), NULL);
	first = rpc_script_expect_call(f.script, METHOD);
	second = rpc_script_expect_call(f.script, NULL);
	assert_memory_equal(rpc_script_expect_message(first).data, "question", 8);
	assert_memory_equal(rpc_script_call_metadata(first, "token").data, "abc", 3);
	assert_null(rpc_script_call_metadata(first, "other").data);
	assert_true(rpc_script_call_endpoint(first) != rpc_script_call_endpoint(second)); /* round robin */
	rpc_script_answer(second, vd_bytes_of("yes"));
	rpc_script_end(first, VDI_RPC_OUT_OF_RANGE, "too old");
	vdi_sim_run_until_idle(f.env);
	assert_true(a.ended == 1 && b.ended == 1);
	assert_true(rpc_script_call_is_half_closed(first));
	assert_int_equal(a.code + b.code, VDI_RPC_OUT_OF_RANGE); /* either may have come first */
	assert_string_equal(a.code ? b.messages[0] : a.messages[0], "yes");
	assert_string_equal(a.code ? a.text : b.text, "too old");
	assert_false(a.unsent || b.unsent || a.local || b.local);
	teardown(&f);
}

static void calls_wait_for_an_endpoint_until_their_timeout(void **state)
{
	struct fixture f = setup(2);
	struct result  a = { 0 }, b = { 0 };

	rpc_script_set_up(f.script, 0, false);
	rpc_script_set_up(f.script, 1, false);
	start(&f, &a, VD_MS(100), NULL);
	start(&f, &b, VD_SECONDS(10), NULL);
	vdi_sim_advance(f.env, VD_MS(99));
	assert_int_equal(a.ended, 0);
	vdi_sim_advance(f.env, VD_MS(2));
	assert_int_equal(a.code, VDI_RPC_DEADLINE_EXCEEDED);
	assert_true(a.unsent && a.local);
	rpc_script_set_up(f.script, 1, true);
	rpc_script_answer(rpc_script_expect_call(f.script, METHOD), vd_bytes_of("late"));
	vdi_sim_run_until_idle(f.env);
	assert_int_equal(b.ended, 1);
	assert_string_equal(b.endpoint, "two:2");
	teardown(&f);
}

static void a_stream_gives_one_message_for_each_asked(void **state)
{
	struct fixture		f = setup(3);
	struct result		a = { 0 };
	struct rpc_script_call *call;

	open_stream(&f, &a);
	assert_status(f.client->ops->stream_send(a.stream, vd_bytes_of("hello")), VD_OK);
	call = rpc_script_expect_call(f.script, METHOD);
	assert_int_equal(rpc_script_expect_message(call).size, 5);
	assert_int_equal(a.opened, 1);
	rpc_script_send(call, vd_bytes_of("1"));
	rpc_script_send(call, vd_bytes_of("2"));
	rpc_script_end(call, VDI_RPC_OK, NULL);
	vdi_sim_run_until_idle(f.env);
	assert_int_equal(a.count, 0);
	assert_int_equal(rpc_script_call_pending_bytes(call), 2);
	f.client->ops->stream_receive(a.stream);
	vdi_sim_run_until_idle(f.env);
	assert_int_equal(a.count, 1);
	assert_int_equal(a.ended, 0);
	f.client->ops->stream_receive(a.stream);
	vdi_sim_run_until_idle(f.env);
	assert_string_equal(a.messages[1], "2");
	assert_true(a.ended == 1 && a.code == VDI_RPC_OK);
	teardown(&f);
}

static void a_cut_loses_what_was_on_its_way(void **state)
{
	struct fixture		f = setup(4);
	struct result		a = { 0 };
	struct rpc_script_call *call;

	open_stream(&f, &a);
	call = rpc_script_expect_call(f.script, METHOD);
	rpc_script_send(call, vd_bytes_of("lost"));
	rpc_script_cut(f.script, rpc_script_call_endpoint(call));
	vdi_sim_run_until_idle(f.env);
	assert_true(a.ended == 1 && a.count == 0 && a.code == VDI_RPC_UNAVAILABLE && !a.local && !a.unsent);
	assert_true(rpc_script_call_is_canceled(call));
	rpc_script_send(call, vd_bytes_of("dropped"));
	teardown(&f);
}

static void cancel_ends_once_and_the_peer_learns(void **state)
{
	struct fixture		f = setup(5);
	struct result		a = { 0 }, b = { 0 };
	struct rpc_script_call *call;
	struct vdi_rpc_call    *unary;

	open_stream(&f, &a);
	call = rpc_script_expect_call(f.script, METHOD);
	f.client->ops->stream_cancel(a.stream);
	f.client->ops->stream_cancel(a.stream);
	vdi_sim_run_until_idle(f.env);
	assert_true(a.ended == 1 && a.code == VDI_RPC_CANCELED && a.local);
	assert_true(rpc_script_call_is_canceled(call));
	start(&f, &b, VD_SECONDS(1), &unary);
	f.client->ops->call_cancel(unary);
	vdi_sim_run_until_idle(f.env);
	assert_true(b.ended == 1 && b.code == VDI_RPC_CANCELED);
	teardown(&f);
}

static void refused_calls_are_never_seen(void **state)
{
	struct fixture f = setup(6);
	struct result  a = { 0 }, b = { 0 };

	rpc_script_refuse(f.script, METHOD, 1, VDI_RPC_UNAUTHENTICATED, "etcdserver: invalid auth token");
	open_stream(&f, &a);
	vdi_sim_run_until_idle(f.env);
	assert_true(a.ended == 1 && a.opened == 0 && a.code == VDI_RPC_UNAUTHENTICATED);
	assert_int_equal(rpc_script_call_count(f.script), 0);
	open_stream(&f, &b);
	rpc_script_end(rpc_script_expect_call(f.script, METHOD), VDI_RPC_OK, NULL);
	vdi_sim_run_until_idle(f.env);
	assert_int_equal(b.ended, 1);
	teardown(&f);
}

static void removed_endpoints_end_their_streams(void **state)
{
	static const char *const other[] = { "two:2", "three:3" };
	struct fixture		 f = setup(7);
	struct result		 a = { 0 }, b = { 0 };

	open_stream(&f, &a);
	open_stream(&f, &b);
	vdi_sim_run_until_idle(f.env);
	assert_status(f.client->ops->set_endpoints(f.client, other, 2, NULL), VD_OK);
	vdi_sim_run_until_idle(f.env);
	assert_int_equal(a.ended + b.ended, 1);
	assert_int_equal(a.code + b.code, VDI_RPC_UNAVAILABLE);
	assert_int_equal(f.client->ops->endpoint_count(f.client), 2);
	teardown(&f);
}

static void count_closed(void *arg)
{
	++*(unsigned *) arg;
}

static void close_ends_everything(void **state)
{
	struct fixture f = setup(8);
	struct result  a = { 0 }, b = { 0 };
	unsigned       closed = 0;

	rpc_script_set_delay(f.script, VD_MS(5));
	open_stream(&f, &a);
	start(&f, &b, VD_SECONDS(1), NULL);
	f.client->ops->close(f.client, count_closed, &closed);
	assert_status(f.client->ops->call(f.client, &any, on_done, &b, NULL), VD_CLOSED);
	vdi_sim_advance(f.env, VD_SECONDS(1));
	assert_int_equal(closed, 1);
	assert_true(a.ended == 1 && a.code == VDI_RPC_CANCELED && b.ended == 1);
	assert_string_equal(a.text, "grpc: the client connection is closing");
	teardown(&f);
}

/* An echo under delays, cuts and cancels: what arrives is in order, without gaps, and every stream ends
 * once. */
static void echo(void *arg, struct rpc_script_call *call, struct vd_bytes message)
{
	rpc_script_send(call, message);
}

static void order_is_kept_under_delays(void **state)
{
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct fixture	f = setup(seed);
		struct vdi_rand rand;
		struct result	a = { .keeps_asking = true };

		vdi_rand_init(&rand, seed);
		rpc_script_set_delay(f.script, VD_MS(10));
		rpc_script_set_peer(f.script, &(struct rpc_script_peer) { .message = echo });
		open_stream(&f, &a);
		f.client->ops->stream_receive(a.stream);
		for (int i = 0; i < 20; i++) {
			char text[8];

			snprintf(text, sizeof text, "%d", i);
			assert_status(f.client->ops->stream_send(a.stream, vd_bytes_of(text)), VD_OK);
			vdi_sim_advance(f.env, VD_MS(1));
		}
		vdi_sim_advance(f.env, VD_MS((int64_t) vdi_rand_below(&rand, 20)));
		if (seed % 3 == 0)
			rpc_script_cut(f.script,
				       rpc_script_call_endpoint(rpc_script_expect_call(f.script, NULL)));
		else if (seed % 3 == 1)
			f.client->ops->stream_cancel(a.stream);
		else
			f.client->ops->close(f.client, NULL, NULL);
		vdi_sim_advance(f.env, VD_SECONDS(1));
		assert_int_equal(a.ended, 1);
		for (unsigned i = 0; i < a.count; i++)
			assert_int_equal(atoi(a.messages[i]), i);
		rpc_script_free(f.script);
		vd_env_free(f.env);
	}
}

/* Only the client's calls can fail. */
static void torture_of_the_client_side(void **state)
{
	int64_t live = vdi_alloc_live();

	for (uint64_t nth = 1;; nth++) {
		struct fixture f = setup(9);
		struct result  a = { .keeps_asking = true };
		vd_status      opened, sent = VD_NOMEM;

		vdi_alloc_fail_nth(nth, 1);
		opened = f.client->ops->stream_open(f.client, &any, &handlers, &a, &a.stream);
		if (opened == VD_OK) {
			f.client->ops->stream_receive(a.stream);
			sent = f.client->ops->stream_send(a.stream, vd_bytes_of("x"));
		}
		rpc_script_set_peer(f.script, &(struct rpc_script_peer) { .message = echo });
		vdi_sim_run_until_idle(f.env);
		assert_int_equal(a.count, sent == VD_OK);
		rpc_script_cut(f.script, 0);
		vdi_sim_run_until_idle(f.env);
		assert_int_equal(a.ended, opened == VD_OK);
		teardown(&f);
		if (!vdi_alloc_failed()) {
			vdi_alloc_fail_nth(0, 0);
			break;
		}
		vdi_alloc_fail_nth(0, 0);
		assert_int_equal(vdi_alloc_live(), live);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_seen_and_answered),
		cmocka_unit_test(calls_wait_for_an_endpoint_until_their_timeout),
		cmocka_unit_test(a_stream_gives_one_message_for_each_asked),
		cmocka_unit_test(a_cut_loses_what_was_on_its_way),
		cmocka_unit_test(cancel_ends_once_and_the_peer_learns),
		cmocka_unit_test(refused_calls_are_never_seen),
		cmocka_unit_test(removed_endpoints_end_their_streams),
		cmocka_unit_test(close_ends_everything),
		cmocka_unit_test(order_is_kept_under_delays),
		cmocka_unit_test(torture_of_the_client_side),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
