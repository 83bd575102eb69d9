/* Streams below the watcher and the keeper: kept until they are open, a fresh token each (E-209), and the
 * streams that users start. */
#include <rpc.pb-c.h>

#include "etcd_client_fixture.h"
#include "vdtest.h"

#define WATCH "/etcdserverpb.Watch/Watch"
#define AUTHENTICATE "/etcdserverpb.Auth/Authenticate"
#define RANGE_STREAM "/etcdserverpb.KV/RangeStream"
#define SNAPSHOT "/etcdserverpb.Maintenance/Snapshot"

/* An owner that notes what it is told and frees its stream inside ended. */
struct owner {
	struct vdi_etcd_stream *stream;
	unsigned		opened;
	unsigned		messages;
	unsigned		ended;
	char			text[64];
	int			code;
	char			end_text[128];
	bool			keeps; /* not freed inside ended */
};

static void on_opened(void *arg, const char *endpoint)
{
	((struct owner *) arg)->opened++;
}

static void on_message(void *arg, struct vdi_rpc_message *message)
{
	struct owner *owner = arg;

	owner->messages++;
	(void) snprintf(owner->text, sizeof owner->text, "%.*s", (int) message->bytes.size,
			(const char *) message->bytes.data);
	vdi_rpc_message_release(message);
}

static void on_ended(void *arg, const struct vdi_rpc_end *end)
{
	struct owner *owner = arg;

	owner->ended++;
	owner->code = end->code;
	if (!owner->keeps)
		vdi_etcd_stream_free(owner->stream);
	(void) snprintf(owner->end_text, sizeof owner->end_text, "%s", end->message);
}

static const struct vdi_rpc_stream_handlers handlers = { on_opened, on_message, on_ended };

static void what_comes_early_is_kept(void **state)
{
	struct etcd_client_fixture	     fixture;
	struct owner			     owner = { 0 };
	struct rpc_script_call		    *call;
	const struct vd_etcd_pair	     pair = { "x", vd_bytes_of("y") };
	const struct vdi_etcd_stream_request request = { .method = VDI_ETCD_METHOD_WATCH,
							 .require_leader = true,
							 .metadata = &pair,
							 .metadata_count = 1 };

	etcd_client_fixture_start(&fixture, 1);
	assert_status(vdi_etcd_stream_open(fixture.client, &request, &handlers, &owner, &owner.stream),
		      VD_OK);
	assert_status(vdi_etcd_stream_send(owner.stream, vd_bytes_of("one")), VD_OK);
	assert_status(vdi_etcd_stream_send(owner.stream, VD_BYTES_NONE), VD_OK);
	vdi_etcd_stream_receive(owner.stream);
	call = rpc_script_expect_call(fixture.script, WATCH);
	assert_true(vd_bytes_equal(rpc_script_call_metadata(call, "hasleader"), vd_bytes_of("true")));
	assert_true(vd_bytes_equal(rpc_script_call_metadata(call, "x"), vd_bytes_of("y")));
	assert_true(vd_bytes_equal(rpc_script_expect_message(call), vd_bytes_of("one")));
	assert_int_equal(rpc_script_expect_message(call).size, 0);
	assert_status(vdi_etcd_stream_send(owner.stream, vd_bytes_of("two")), VD_OK);
	vdi_etcd_stream_half_close(owner.stream);
	assert_true(vd_bytes_equal(rpc_script_expect_message(call), vd_bytes_of("two")));
	rpc_script_send(call, vd_bytes_of("first"));
	rpc_script_send(call, vd_bytes_of("second"));
	vdi_sim_run_until_idle(fixture.env);
	assert_true(rpc_script_call_is_half_closed(call));
	assert_int_equal(owner.opened, 1);
	assert_int_equal(owner.messages, 1); /* as many as were asked for */
	assert_string_equal(owner.text, "first");
	vdi_etcd_stream_receive(owner.stream);
	rpc_script_end(call, VDI_RPC_UNAVAILABLE, "bye");
	vdi_sim_run_until_idle(fixture.env);
	assert_int_equal(owner.messages, 2);
	assert_int_equal(owner.ended, 1);
	assert_int_equal(owner.code, VDI_RPC_UNAVAILABLE);
	assert_string_equal(owner.end_text, "bye");
	etcd_client_fixture_fini(&fixture);
}

static void e209_each_stream_has_a_fresh_token(void **state)
{
	struct etcd_client_fixture	     fixture;
	const struct vdi_etcd_stream_request request = { .method = VDI_ETCD_METHOD_WATCH };

	etcd_client_fixture_init(&fixture, 2, 1);
	fixture.options.user = "root";
	fixture.options.password = "secret";
	etcd_client_fixture_open(&fixture);
	for (int i = 0; i < 3; i++) {
		Etcdserverpb__AuthenticateResponse answer = ETCDSERVERPB__AUTHENTICATE_RESPONSE__INIT;
		struct owner			   owner = { 0 };
		struct rpc_script_call		  *call;
		char				   token[8];

		(void) snprintf(token, sizeof token, "t%d", i);
		assert_status(
			vdi_etcd_stream_open(fixture.client, &request, &handlers, &owner, &owner.stream),
			VD_OK);
		answer.token = token;
		rpc_script_answer(rpc_script_expect_call(fixture.script, AUTHENTICATE), etcd_pack(&answer));
		call = rpc_script_expect_call(fixture.script, WATCH);
		assert_true(vd_bytes_equal(rpc_script_call_metadata(call, "token"), vd_bytes_of(token)));
		vdi_etcd_stream_cancel(owner.stream);
		vdi_etcd_stream_cancel(owner.stream);
		vdi_sim_run_until_idle(fixture.env);
		assert_int_equal(owner.ended, 1);
		assert_int_equal(owner.code, VDI_RPC_CANCELED);
		assert_true(rpc_script_call_is_canceled(call));
	}
	etcd_client_fixture_fini(&fixture);
}

static void a_token_that_is_refused_ends_the_stream(void **state)
{
	struct etcd_client_fixture	     fixture;
	struct owner			     owner = { 0 };
	const struct vdi_etcd_stream_request request = { .method = VDI_ETCD_METHOD_WATCH };

	etcd_client_fixture_init(&fixture, 3, 1);
	fixture.options.user = "root";
	fixture.options.password = "secret";
	etcd_client_fixture_open(&fixture);
	assert_status(vdi_etcd_stream_open(fixture.client, &request, &handlers, &owner, &owner.stream),
		      VD_OK);
	assert_status(vdi_etcd_stream_send(owner.stream, vd_bytes_of("never sent")), VD_OK);
	rpc_script_end(rpc_script_expect_call(fixture.script, AUTHENTICATE), VDI_RPC_UNAVAILABLE,
		       "etcdserver: no leader");
	vdi_sim_run_until_idle(fixture.env);
	assert_int_equal(owner.ended, 1);
	assert_int_equal(owner.code, VDI_RPC_UNAVAILABLE);
	assert_string_equal(owner.end_text, "etcdserver: no leader");
	/* Canceled while it waits for the token. */
	owner = (struct owner) { 0 };
	assert_status(vdi_etcd_stream_open(fixture.client, &request, &handlers, &owner, &owner.stream),
		      VD_OK);
	(void) rpc_script_expect_call(fixture.script, AUTHENTICATE);
	vdi_etcd_stream_cancel(owner.stream);
	vdi_sim_run_until_idle(fixture.env);
	assert_int_equal(owner.ended, 1);
	assert_int_equal(owner.code, VDI_RPC_CANCELED);
	etcd_client_fixture_fini(&fixture);
}

static void e209_a_token_that_does_not_come_is_no_halt(void **state)
{
	struct etcd_client_fixture	     fixture;
	struct owner			     owner = { 0 };
	const struct vdi_etcd_stream_request request = { .method = VDI_ETCD_METHOD_WATCH };

	etcd_client_fixture_init(&fixture, 4, 1);
	fixture.options.user = "root";
	fixture.options.password = "secret";
	etcd_client_fixture_open(&fixture);
	rpc_script_set_up(fixture.script, 0, false);
	assert_status(vdi_etcd_stream_open(fixture.client, &request, &handlers, &owner, &owner.stream),
		      VD_OK);
	vdi_sim_advance(fixture.env, VD_SECONDS(19));
	assert_int_equal(owner.ended, 0);
	vdi_sim_advance(fixture.env, VD_SECONDS(2));
	assert_int_equal(owner.ended, 1);
	assert_int_equal(owner.code, VDI_RPC_UNAVAILABLE);
	assert_memory_equal(
		owner.end_text,
		"etcdclient: /etcdserverpb.Auth/Authenticate: context deadline exceeded: e1:2379: ", 78);
	etcd_client_fixture_fini(&fixture);
}

static void a_stream_ends_early_late_and_after_the_close(void **state)
{
	for (unsigned steps = 0; steps < 12; steps++) {
		struct etcd_client_fixture	     fixture;
		struct owner			     owner = { 0 };
		struct rpc_script_call		    *call;
		const struct vdi_etcd_stream_request request = { .method = VDI_ETCD_METHOD_WATCH };

		etcd_client_fixture_start(&fixture, 10 + steps);
		if (steps % 3 == 1)
			rpc_script_refuse(fixture.script, WATCH, 1, VDI_RPC_UNAVAILABLE, "down");
		owner.keeps = steps % 3 == 2;
		assert_status(
			vdi_etcd_stream_open(fixture.client, &request, &handlers, &owner, &owner.stream),
			VD_OK);
		assert_status(vdi_etcd_stream_send(owner.stream, vd_bytes_of("x")), VD_OK);
		for (unsigned i = 0; i < steps; i++)
			(void) vdi_sim_step(fixture.env);
		if (owner.ended == 0 || owner.keeps)
			vdi_etcd_stream_cancel(owner.stream);
		vdi_sim_run_until_idle(fixture.env);
		assert_int_equal(owner.ended, 1);
		if (owner.keeps) {
			/* Everything may still be called. */
			assert_status(vdi_etcd_stream_send(owner.stream, vd_bytes_of("late")), VD_OK);
			vdi_etcd_stream_half_close(owner.stream);
			vdi_etcd_stream_cancel(owner.stream);
			vdi_etcd_stream_free(owner.stream);
		}
		call = rpc_script_take_call(fixture.script, WATCH);
		assert_true(call == NULL || rpc_script_call_is_over(call));
		etcd_client_fixture_fini(&fixture);
	}
}

static void a_half_close_that_comes_early_is_kept(void **state)
{
	struct etcd_client_fixture	     fixture;
	struct owner			     owner = { 0 };
	struct rpc_script_call		    *call;
	const struct vdi_etcd_stream_request request = { .method = VDI_ETCD_METHOD_WATCH };

	etcd_client_fixture_start(&fixture, 6);
	assert_status(vdi_etcd_stream_open(fixture.client, &request, &handlers, &owner, &owner.stream),
		      VD_OK);
	assert_status(vdi_etcd_stream_send(owner.stream, vd_bytes_of("one")), VD_OK);
	vdi_etcd_stream_half_close(owner.stream);
	call = rpc_script_expect_call(fixture.script, WATCH);
	assert_true(vd_bytes_equal(rpc_script_expect_message(call), vd_bytes_of("one")));
	vdi_sim_run_until_idle(fixture.env);
	assert_true(rpc_script_call_is_half_closed(call));
	rpc_script_end(call, VDI_RPC_OK, "");
	vdi_sim_run_until_idle(fixture.env);
	assert_int_equal(owner.ended, 1);
	etcd_client_fixture_fini(&fixture);
}

/* Canceled while it waits for its token: the peer never hears of it. */
static void what_is_canceled_early_reaches_nobody(void **state)
{
	struct etcd_client_fixture	     fixture;
	struct owner			     owner = { 0 };
	const struct vdi_etcd_stream_request request = { .method = VDI_ETCD_METHOD_WATCH };

	etcd_client_fixture_start(&fixture, 5);
	assert_status(vdi_etcd_stream_open(fixture.client, &request, &handlers, &owner, &owner.stream),
		      VD_OK);
	vdi_etcd_stream_cancel(owner.stream);
	vdi_sim_run_until_idle(fixture.env);
	assert_int_equal(owner.opened, 0);
	assert_int_equal(owner.ended, 1);
	assert_int_equal(owner.code, VDI_RPC_CANCELED);
	assert_string_equal(owner.end_text, "context canceled");
	assert_int_equal(rpc_script_call_count(fixture.script), 0);
	etcd_client_fixture_fini(&fixture);
}

/* A transport whose streams end on another thread before their opening has returned. */
static struct vdi_rpc_stream early;

static vd_status open_and_end(struct vdi_rpc_client *client, const struct vdi_rpc_request *request,
			      const struct vdi_rpc_stream_handlers *told, void *arg,
			      struct vdi_rpc_stream **ret_stream)
{
	*ret_stream = &early;
	told->ended(arg, &(struct vdi_rpc_end) { .code = VDI_RPC_PERMISSION_DENIED,
						 .message = "early",
						 .endpoint = "e0:2379" });
	return VD_OK;
}

static void free_early(struct vdi_rpc_stream *stream)
{
	assert_true(stream == &early);
}

static void an_end_before_the_opening_has_returned_is_told(void **state)
{
	const struct vdi_etcd_stream_request request = { .method = VDI_ETCD_METHOD_WATCH };
	struct etcd_client_fixture	     fixture;
	struct owner			     owner = { 0 };
	const struct vdi_rpc_client_ops	    *before;
	struct vdi_rpc_client_ops	     ops;
	struct vdi_rpc_client		    *client;

	etcd_client_fixture_start(&fixture, 8);
	client = rpc_script_client(fixture.script);
	before = client->ops;
	ops = *before;
	ops.stream_open = open_and_end;
	ops.stream_free = free_early;
	client->ops = &ops;
	assert_status(vdi_etcd_stream_open(fixture.client, &request, &handlers, &owner, &owner.stream),
		      VD_OK);
	vdi_sim_run_until_idle(fixture.env);
	assert_int_equal(owner.ended, 1);
	assert_int_equal(owner.code, VDI_RPC_PERMISSION_DENIED);
	assert_string_equal(owner.end_text, "early");
	client->ops = before;
	etcd_client_fixture_fini(&fixture);
}

/* As much metadata as a call may have. */
static void all_metadata_goes_along(void **state)
{
	static char			     keys[300][16];
	static struct vd_etcd_pair	     pairs[300];
	const struct vdi_etcd_stream_request request = { .method = VDI_ETCD_METHOD_WATCH,
							 .require_leader = true,
							 .metadata = pairs,
							 .metadata_count = 300 };
	struct etcd_client_fixture	     fixture;
	struct owner			     owner = { 0 };
	struct rpc_script_call		    *call;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(keys); i++) {
		(void) snprintf(keys[i], sizeof keys[i], "key-%zu", i);
		pairs[i] = (struct vd_etcd_pair) { keys[i], vd_bytes_of(keys[i]) };
	}
	etcd_client_fixture_start(&fixture, 9);
	assert_status(vdi_etcd_stream_open(fixture.client, &request, &handlers, &owner, &owner.stream),
		      VD_OK);
	call = rpc_script_expect_call(fixture.script, WATCH);
	assert_int_equal(rpc_script_call_metadata_count(call), 302);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(keys); i++)
		assert_true(vd_bytes_equal(rpc_script_call_metadata(call, keys[i]), vd_bytes_of(keys[i])));
	vdi_etcd_stream_cancel(owner.stream);
	vdi_sim_run_until_idle(fixture.env);
	assert_int_equal(owner.ended, 1);
	etcd_client_fixture_fini(&fixture);
}

static void torture_stream(void **state)
{
	for (uint64_t nth = 1;; nth++) {
		struct etcd_client_fixture	     fixture;
		struct owner			     owner = { 0 };
		const struct vd_etcd_pair	     pair = { "x", vd_bytes_of("y") };
		const struct vdi_etcd_stream_request request = {
			.method = VDI_ETCD_METHOD_WATCH,
			.metadata = &pair,
			.metadata_count = 1,
			.message = vd_bytes_of("m"),
			.half_close = true,
			.endpoint = "e1:2379",
		};
		bool	  has_failed;
		vd_status status;

		etcd_client_fixture_start(&fixture, 30);
		vdi_alloc_fail_nth(nth, 1);
		status = vdi_etcd_stream_open(fixture.client, &request, &handlers, &owner, &owner.stream);
		if (status == VD_OK) {
			vd_status sent = vdi_etcd_stream_send(owner.stream, vd_bytes_of("two"));

			assert_true(sent == VD_OK || sent == VD_NOMEM);
			vdi_etcd_stream_receive(owner.stream);
			vdi_sim_run_until_idle(fixture.env);
			if (owner.ended)
				assert_true(owner.code == VDI_RPC_RESOURCE_EXHAUSTED ||
					    owner.code == VDI_RPC_CANCELED);
			else
				vdi_etcd_stream_cancel(owner.stream);
			vdi_sim_run_until_idle(fixture.env);
			assert_int_equal(owner.ended, 1);
		} else {
			assert_status(status, VD_NOMEM);
		}
		has_failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		etcd_client_fixture_fini(&fixture);
		if (!has_failed)
			break;
		assert_true(nth < 100);
	}
}

/* ---- RangeStream ---- */

static struct vd_bytes range_part(size_t keys, vd_rev revision)
{
	static Mvccpb__KeyValue		  kvs[8];
	static Mvccpb__KeyValue		 *pointers[8];
	Etcdserverpb__RangeResponse	  range = ETCDSERVERPB__RANGE_RESPONSE__INIT;
	Etcdserverpb__RangeStreamResponse part = ETCDSERVERPB__RANGE_STREAM_RESPONSE__INIT;
	Etcdserverpb__ResponseHeader	  header = ETCDSERVERPB__RESPONSE_HEADER__INIT;

	for (size_t i = 0; i < keys; i++) {
		mvccpb__key_value__init(&kvs[i]);
		kvs[i].key = (ProtobufCBinaryData) { 1, (uint8_t *) "k" };
		pointers[i] = &kvs[i];
	}
	header.revision = revision;
	range.header = &header;
	range.kvs = pointers;
	range.n_kvs = keys;
	part.range_response = &range;
	return etcd_pack(&part);
}

static vd_status start_range_stream(struct etcd_client_fixture *fixture, const struct vd_etcd_call *call,
				    struct etcd_result *result)
{
	const struct vd_etcd_range_request request = { .range = { .key = vd_bytes_of("k"),
								  .range_end = { "", 1 } } };

	return vd_etcd_range_stream(fixture->client, call, &request, etcd_note_range_stream, result);
}

static void e107_range_stream(void **state)
{
	struct etcd_client_fixture  fixture;
	struct etcd_result	    result = { 0 };
	struct rpc_script_call	   *call;
	struct vd_bytes		    message;
	Etcdserverpb__RangeRequest *request;

	etcd_client_fixture_start(&fixture, 40);
	assert_status(start_range_stream(&fixture, NULL, &result), VD_OK);
	call = rpc_script_expect_call(fixture.script, RANGE_STREAM);
	message = rpc_script_expect_message(call);
	request = etcdserverpb__range_request__unpack(NULL, message.size, message.data);
	assert_int_equal(request->range_end.len, 1);
	etcdserverpb__range_request__free_unpacked(request, NULL);
	vdi_sim_run_until_idle(fixture.env);
	assert_true(rpc_script_call_is_half_closed(call));
	for (int i = 0; i < 5; i++)
		rpc_script_send(call, range_part(3, 9));
	vdi_sim_run_until_idle(fixture.env);
	assert_int_equal(result.parts, 5);
	assert_int_equal(result.kv_count, 15);
	assert_int_equal(result.header.revision, 9);
	assert_int_equal(result.calls, 0);
	rpc_script_end(call, VDI_RPC_OK, "");
	etcd_expect_calls(&fixture, &result, 1);
	assert_etcd_ok(&result);
	etcd_client_fixture_fini(&fixture);
}

/* A reader that wants the next part only when it says so. */
static struct etcd_client_fixture *held_fixture;
static uint64_t			   held_id;
static bool			   resumes_inside;

static bool hold(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		 const struct vd_range_result *range, bool last)
{
	(void) etcd_note_range_stream(arg, error, header, range, last);
	if (resumes_inside && !last)
		vd_etcd_range_stream_resume(held_fixture->client, held_id);
	return false;
}

static void a_part_is_read_when_it_is_wanted(void **state)
{
	const struct vd_etcd_range_request request = { .range = { .key = vd_bytes_of("k"),
								  .range_end = { "", 1 } } };

	for (int inside = 0; inside < 2; inside++) {
		struct etcd_client_fixture fixture;
		struct etcd_result	   result = { 0 };
		struct rpc_script_call	  *call;

		etcd_client_fixture_start(&fixture, 80);
		held_fixture = &fixture;
		resumes_inside = inside;
		assert_status(vd_etcd_range_stream(fixture.client,
						   &(struct vd_etcd_call) { .ret_id = &held_id }, &request,
						   hold, &result),
			      VD_OK);
		call = rpc_script_expect_call(fixture.script, RANGE_STREAM);
		for (int i = 0; i < 4; i++)
			rpc_script_send(call, range_part(1, 9));
		rpc_script_end(call, VDI_RPC_OK, "");
		for (unsigned i = 1; i <= 4 && !inside; i++) {
			vdi_sim_run_until_idle(fixture.env);
			assert_int_equal(result.parts, i);
			assert_int_equal(rpc_script_call_pending_count(call), 4 - i);
			vd_etcd_range_stream_resume(fixture.client, held_id);
		}
		etcd_expect_calls(&fixture, &result, 1);
		assert_int_equal(result.parts, 4);
		assert_etcd_ok(&result);
		vd_etcd_range_stream_resume(fixture.client, held_id); /* long gone */
		/* What was said inside one part holds for that part only. A reader that never comes back is
		 * ended all the same. */
		assert_status(vd_etcd_range_stream(fixture.client,
						   &(struct vd_etcd_call) { .ret_id = &held_id }, &request,
						   hold, &result),
			      VD_OK);
		call = rpc_script_expect_call(fixture.script, RANGE_STREAM);
		result.parts = 0;
		rpc_script_send(call, range_part(1, 9));
		vdi_sim_run_until_idle(fixture.env);
		resumes_inside = false;
		for (int i = 0; i < 3; i++)
			rpc_script_send(call, range_part(1, 9));
		vdi_sim_run_until_idle(fixture.env);
		assert_int_equal(result.parts, inside ? 2 : 1);
		if (inside)
			vd_etcd_cancel(fixture.client, held_id);
		else
			etcd_client_fixture_close(&fixture);
		vdi_sim_run_until_idle(fixture.env);
		assert_int_equal(result.calls, 2);
		assert_status(result.error.error.code, inside ? VD_CANCELED : VD_CLOSED);
		etcd_client_fixture_fini(&fixture);
	}
}

static void e135_e211_range_stream_is_not_repeated(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };
	struct rpc_script_call	  *call;

	etcd_client_fixture_start(&fixture, 41);
	assert_status(start_range_stream(&fixture, NULL, &result), VD_OK);
	rpc_script_end(rpc_script_expect_call(fixture.script, RANGE_STREAM), VDI_RPC_UNIMPLEMENTED,
		       "RangeStream does not support custom sort orders");
	etcd_expect_calls(&fixture, &result, 1);
	assert_etcd_error(
		&result, VD_UNSUPPORTED,
		"rpc error: code = Unimplemented desc = RangeStream does not support custom sort orders");
	assert_status(start_range_stream(&fixture, NULL, &result), VD_OK);
	call = rpc_script_expect_call(fixture.script, RANGE_STREAM);
	rpc_script_cut_call(call, VDI_RPC_UNAVAILABLE, "cut");
	etcd_expect_calls(&fixture, &result, 2);
	assert_status(result.error.error.code, VD_UNAVAILABLE);
	/* After a part too. */
	assert_status(start_range_stream(&fixture, NULL, &result), VD_OK);
	call = rpc_script_expect_call(fixture.script, RANGE_STREAM);
	rpc_script_send(call, range_part(1, 9));
	vdi_sim_run_until_idle(fixture.env);
	rpc_script_cut_call(call, VDI_RPC_UNAVAILABLE, "cut");
	etcd_expect_calls(&fixture, &result, 3);
	assert_int_equal(rpc_script_call_count(fixture.script), 3);
	etcd_client_fixture_fini(&fixture);
}

static void a_bad_part_ends_the_stream(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };
	struct rpc_script_call	  *call;

	etcd_client_fixture_start(&fixture, 42);
	assert_status(start_range_stream(&fixture, NULL, &result), VD_OK);
	call = rpc_script_expect_call(fixture.script, RANGE_STREAM);
	rpc_script_send(call, range_part(1, 9));
	rpc_script_send(call, vd_bytes_of("\x0a\x7f"));
	rpc_script_send(call, range_part(1, 9));
	etcd_expect_calls(&fixture, &result, 1);
	assert_int_equal(result.parts, 1);
	assert_status(result.error.error.code, VD_CORRUPT);
	vdi_sim_run_until_idle(fixture.env);
	assert_true(rpc_script_call_is_canceled(call));
	etcd_client_fixture_fini(&fixture);
}

static void streams_of_users_are_canceled_timed_out_and_closed(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   canceled = { 0 };
	struct etcd_result	   late = { 0 };
	struct etcd_result	   closed = { 0 };
	struct rpc_script_call	  *call;
	uint64_t		   id;

	etcd_client_fixture_start(&fixture, 43);
	assert_status(start_range_stream(&fixture, &(struct vd_etcd_call) { .ret_id = &id }, &canceled),
		      VD_OK);
	call = rpc_script_expect_call(fixture.script, RANGE_STREAM);
	rpc_script_send(call, range_part(1, 9));
	vdi_sim_run_until_idle(fixture.env);
	vd_etcd_cancel(fixture.client, id);
	etcd_expect_calls(&fixture, &canceled, 1);
	assert_etcd_error(&canceled, VD_CANCELED, "context canceled");
	assert_status(
		start_range_stream(&fixture, &(struct vd_etcd_call) { .timeout = VD_SECONDS(2) }, &late),
		VD_OK);
	etcd_expect_calls(&fixture, &late, 1);
	assert_etcd_error(&late, VD_TIMEOUT, "context deadline exceeded");
	assert_status(start_range_stream(&fixture, NULL, &closed), VD_OK);
	etcd_client_fixture_close(&fixture);
	assert_int_equal(closed.calls, 1);
	assert_etcd_error(&closed, VD_CLOSED, "etcdclient: the client is closing");
	etcd_client_fixture_fini(&fixture);
}

/* ---- Snapshot (E-165, E-211) ---- */

/* SHA-256 of 1024 bytes 'a'. */
static const unsigned char digest_of_1024_a[32] = { 0x2e, 0xdc, 0x98, 0x68, 0x47, 0xe2, 0x09, 0xb4,
						    0x01, 0x6e, 0x14, 0x1a, 0x6d, 0xc8, 0x71, 0x6d,
						    0x32, 0x07, 0x35, 0x0f, 0x41, 0x69, 0x69, 0x38,
						    0x2d, 0x43, 0x15, 0x39, 0xbf, 0x29, 0x2e, 0x4a };

static void send_snapshot(struct rpc_script_call *call, const unsigned char *bytes, size_t size, size_t step)
{
	for (size_t at = 0; at < size; at += step) {
		Etcdserverpb__SnapshotResponse part = ETCDSERVERPB__SNAPSHOT_RESPONSE__INIT;

		part.blob = (ProtobufCBinaryData) { VDI_MIN(step, size - at), (uint8_t *) bytes + at };
		part.remaining_bytes = size - at - part.blob.len;
		rpc_script_send(call, etcd_pack(&part));
	}
}

static void e165_snapshot_is_checked(void **state)
{
	static const size_t steps[] = { 1024, 1056, 1000, 40, 33, 32, 31, 1 };
	unsigned char	    file[1024 + 32];

	memset(file, 'a', 1024);
	memcpy(file + 1024, digest_of_1024_a, 32);
	for (size_t i = 0; i < 2 * VDI_ARRAY_SIZE(steps); i++) {
		struct etcd_client_fixture fixture;
		struct etcd_result	   result = { 0 };
		struct rpc_script_call	  *call;
		bool			   is_damaged = i >= VDI_ARRAY_SIZE(steps);

		file[500] = is_damaged ? 'b' : 'a';
		etcd_client_fixture_start(&fixture, 50 + i);
		assert_status(vd_etcd_snapshot(fixture.client, NULL, etcd_note_snapshot, &result), VD_OK);
		call = rpc_script_expect_call(fixture.script, SNAPSHOT);
		send_snapshot(call, file, sizeof file, steps[i % VDI_ARRAY_SIZE(steps)]);
		rpc_script_end(call, VDI_RPC_OK, "");
		etcd_expect_calls(&fixture, &result, 1);
		assert_int_equal(result.number, sizeof file);
		if (is_damaged)
			assert_etcd_error(&result, VD_CORRUPT,
					  "etcdclient: the snapshot's checksum does not match");
		else
			assert_etcd_ok(&result);
		assert_int_equal(result.second, 0);
		etcd_client_fixture_fini(&fixture);
	}
}

static void e165_a_snapshot_too_short(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };
	struct rpc_script_call	  *call;

	etcd_client_fixture_start(&fixture, 70);
	assert_status(vd_etcd_snapshot(fixture.client, NULL, etcd_note_snapshot, &result), VD_OK);
	call = rpc_script_expect_call(fixture.script, SNAPSHOT);
	rpc_script_end(call, VDI_RPC_OK, "");
	etcd_expect_calls(&fixture, &result, 1);
	assert_etcd_error(&result, VD_CORRUPT, "etcdclient: the snapshot's checksum does not match");
	etcd_client_fixture_fini(&fixture);
}

/* A part that cannot be read ends the snapshot, and the server is told so. */
static void a_part_of_a_snapshot_that_cannot_be_read(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };
	struct rpc_script_call	  *call;

	etcd_client_fixture_start(&fixture, 72);
	assert_status(vd_etcd_snapshot(fixture.client, NULL, etcd_note_snapshot, &result), VD_OK);
	call = rpc_script_expect_call(fixture.script, SNAPSHOT);
	send_snapshot(call, digest_of_1024_a, 10, 10);
	rpc_script_send(call, vd_bytes_of("\x0a\x7f"));
	send_snapshot(call, digest_of_1024_a, 10, 10);
	etcd_expect_calls(&fixture, &result, 1);
	assert_status(result.error.error.code, VD_CORRUPT);
	assert_int_equal(result.parts, 1);
	assert_int_equal(result.number, 10);
	vdi_sim_run_until_idle(fixture.env);
	assert_true(rpc_script_call_is_canceled(call));
	etcd_client_fixture_fini(&fixture);
}

/* Without memory for a part the user gets VD_NOMEM, once, after the parts before it. */
static void a_snapshot_without_memory_for_a_part(void **state)
{
	unsigned char file[1024 + 32];
	bool	      has_failed = true;
	unsigned      failures = 0;

	memset(file, 'a', 1024);
	memcpy(file + 1024, digest_of_1024_a, 32);
	for (uint64_t nth = 1; has_failed; nth++) {
		struct etcd_client_fixture fixture;
		struct etcd_result	   result = { 0 };
		struct rpc_script_call	  *call;

		etcd_client_fixture_start(&fixture, 91);
		assert_status(vd_etcd_snapshot(fixture.client, NULL, etcd_note_snapshot, &result), VD_OK);
		call = rpc_script_expect_call(fixture.script, SNAPSHOT);
		send_snapshot(call, file, sizeof file, 500);
		rpc_script_end(call, VDI_RPC_OK, "");
		vdi_alloc_fail_nth(nth, 1);
		etcd_expect_calls(&fixture, &result, 1);
		has_failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		failures += result.is_error;
		if (result.is_error)
			assert_status(result.error.error.code, VD_NOMEM);
		else
			assert_int_equal(result.number, sizeof file);
		assert_true(has_failed || !result.is_error);
		etcd_client_fixture_fini(&fixture);
	}
	assert_true(failures >= 3); /* one for each part */
}

/* Only endpoints of the client's list are opened. */
static void an_endpoint_that_is_not_in_the_list(void **state)
{
	struct etcd_client_fixture     fixture;
	struct owner		       owner = { 0 };
	struct vdi_etcd_stream_request request = { .method = VDI_ETCD_METHOD_WATCH,
						   .endpoint = "elsewhere:2379" };
	struct rpc_script_call	      *call;

	etcd_client_fixture_init(&fixture, 92, 3);
	etcd_client_fixture_open(&fixture);
	assert_status(vdi_etcd_stream_open(fixture.client, &request, &handlers, &owner, &owner.stream),
		      VD_INVALID_ARGUMENT);
	vdi_sim_run_until_idle(fixture.env);
	assert_int_equal(rpc_script_call_count(fixture.script), 0);
	for (size_t i = 0; i < 3; i++) {
		owner = (struct owner) { 0 };
		request.endpoint = fixture.endpoints[i];
		assert_status(
			vdi_etcd_stream_open(fixture.client, &request, &handlers, &owner, &owner.stream),
			VD_OK);
		call = rpc_script_expect_call(fixture.script, WATCH);
		assert_int_equal(rpc_script_call_endpoint(call), i);
		rpc_script_end(call, VDI_RPC_OK, "");
		vdi_sim_run_until_idle(fixture.env);
		assert_int_equal(owner.ended, 1);
	}
	etcd_client_fixture_fini(&fixture);
}

/* A snapshot that cannot be begun, for memory or because the client is closing, leaves nothing behind (the
 * group counts it). */
static void a_snapshot_that_cannot_be_begun(void **state)
{
	bool has_failed = true;

	for (uint64_t nth = 1; has_failed; nth++) {
		struct etcd_client_fixture fixture;
		struct etcd_result	   result = { 0 };
		vd_status		   status;

		etcd_client_fixture_start(&fixture, 90);
		vdi_alloc_fail_nth(nth, 1);
		status = vd_etcd_snapshot(fixture.client, NULL, etcd_note_snapshot, &result);
		has_failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, has_failed ? VD_NOMEM : VD_OK);
		assert_int_equal(result.calls, 0);
		if (status == VD_OK) {
			rpc_script_end(rpc_script_expect_call(fixture.script, SNAPSHOT),
				       VDI_RPC_PERMISSION_DENIED, "no");
			etcd_expect_calls(&fixture, &result, 1);
		}
		etcd_client_fixture_fini(&fixture);
	}
}

static void e211_a_snapshot_is_asked_for_until_its_first_part(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };
	struct rpc_script_call	  *call;

	etcd_client_fixture_start(&fixture, 71);
	rpc_script_refuse(fixture.script, SNAPSHOT, 150, VDI_RPC_UNAVAILABLE, "down");
	assert_status(vd_etcd_snapshot(fixture.client, NULL, etcd_note_snapshot, &result), VD_OK);
	call = rpc_script_expect_call(fixture.script, SNAPSHOT);
	send_snapshot(call, digest_of_1024_a, 10, 10);
	vdi_sim_run_until_idle(fixture.env);
	rpc_script_cut_call(call, VDI_RPC_UNAVAILABLE, "cut");
	etcd_expect_calls(&fixture, &result, 1);
	assert_etcd_error(&result, VD_UNAVAILABLE, "rpc error: code = Unavailable desc = cut");
	assert_int_equal(result.parts, 1);
	etcd_client_fixture_fini(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_comes_early_is_kept),
		cmocka_unit_test(e209_each_stream_has_a_fresh_token),
		cmocka_unit_test(a_token_that_is_refused_ends_the_stream),
		cmocka_unit_test(e209_a_token_that_does_not_come_is_no_halt),
		cmocka_unit_test(a_stream_ends_early_late_and_after_the_close),
		cmocka_unit_test(a_half_close_that_comes_early_is_kept),
		cmocka_unit_test(what_is_canceled_early_reaches_nobody),
		cmocka_unit_test(an_end_before_the_opening_has_returned_is_told),
		cmocka_unit_test(all_metadata_goes_along),
		cmocka_unit_test(torture_stream),
		cmocka_unit_test(e107_range_stream),
		cmocka_unit_test(a_part_is_read_when_it_is_wanted),
		cmocka_unit_test(e135_e211_range_stream_is_not_repeated),
		cmocka_unit_test(a_bad_part_ends_the_stream),
		cmocka_unit_test(streams_of_users_are_canceled_timed_out_and_closed),
		cmocka_unit_test(e165_snapshot_is_checked),
		cmocka_unit_test(e165_a_snapshot_too_short),
		cmocka_unit_test(a_part_of_a_snapshot_that_cannot_be_read),
		cmocka_unit_test(a_snapshot_without_memory_for_a_part),
		cmocka_unit_test(an_endpoint_that_is_not_in_the_list),
		cmocka_unit_test(a_snapshot_that_cannot_be_begun),
		cmocka_unit_test(e211_a_snapshot_is_asked_for_until_its_first_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
