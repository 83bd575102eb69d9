/* A watch as its user sees it: options on the wire, responses, ends, progress, the bounded buffer, closing at
 * any moment. */
#include "actor_sim.h"
#include "etcd_watch.h"
#include "etcd_watch_peer.h"
#include "vdtest.h"

/* ---- Opening ---- */

static void e230_opening_never_blocks_and_waits_for_the_server(void **state)
{
	struct watch_world	world = watch_world_new(1, 0);
	struct watch_reader	reader;
	struct rpc_script_call *stream;

	rpc_script_set_up(world.script, 0, false);
	watch_reader_open(&world, &reader, "k", 0);
	vdi_sim_advance(world.env, VD_SECONDS(3600));
	watch_reader_expect(&world, &reader, "");
	assert_int_equal(rpc_script_call_count(world.script), 0);
	rpc_script_set_up(world.script, 0, true);
	stream = watch_world_stream(&world);
	watch_expect(stream, WATCH_CREATE);
	watch_created(stream, 0, 5);
	watch_put(stream, 0, "k", 6);
	watch_reader_expect(&world, &reader, "6");
	watch_reader_close(&reader);
	watch_world_free(&world);
}

static void e230_a_stream_that_dies_before_the_creation_ends_the_watch(void **state)
{
	struct watch_world  world = watch_world_new(2, 0);
	struct watch_reader reader;

	watch_reader_open(&world, &reader, "k", 0);
	rpc_script_end(watch_world_stream(&world), VDI_RPC_PERMISSION_DENIED,
		       "etcdserver: permission denied");
	watch_reader_expect(&world, &reader, "!forbidden");
	assert_int_equal(watch_reader_end(&world, &reader).code, VD_ETCD_PERMISSION_DENIED);
	watch_reader_expect(&world, &reader, "!forbidden"); /* and for ever after */
	watch_reader_close(&reader);
	watch_world_free(&world);
}

static void ignore(void *arg)
{
	(void) arg;
}

static void e231_e358_nothing_is_opened_after_close(void **state)
{
	struct watch_world	     world = watch_world_new(3, 0);
	struct vd_etcd_watch_request request = { .key = vd_bytes_of("k"), .ready = ignore };
	struct vd_etcd_watch	    *watch;
	struct watch_reader	     reader;
	struct vd_error		     error;

	watch_reader_open(&world, &reader, "k", 0);
	vd_etcd_close(world.client, NULL, NULL);
	assert_status(vd_etcd_watch_open(world.client, &request, &watch, &error), VD_CLOSED);
	assert_status(vd_etcd_request_progress(world.client, NULL, &error), VD_CLOSED);
	assert_string_equal(error.message, "no stream found for context");
	world.client = NULL;
	watch_reader_expect(&world, &reader, "!closed");
	assert_status(vd_etcd_watch_progress(reader.watch), VD_CLOSED);
	watch_reader_close(&reader); /* after the client's memory is gone */
	watch_world_free(&world);
}

static void e218_requests_are_checked(void **state)
{
	struct watch_world	     world = watch_world_new(3, 0);
	struct vd_etcd_watch_request request = { .key = vd_bytes_of("k") };
	struct vd_etcd_pair	     nameless = { "", vd_bytes_of("x") };
	struct vd_etcd_watch	    *watch;
	struct vd_error		     error;

	assert_status(vd_etcd_watch_open(world.client, &request, &watch, &error), VD_INVALID_ARGUMENT);
	request.ready = ignore;
	/* 1 MiB is the limit of either. */
	for (int is_end = 0; is_end < 2; is_end++) {
		struct vd_bytes *bytes = is_end ? &request.range_end : &request.key;
		char		*text = malloc((1u << 20) + 1);

		memset(text, 'x', (1u << 20) + 1);
		*bytes = (struct vd_bytes) { text, (1u << 20) + 1 };
		assert_status(vd_etcd_watch_open(world.client, &request, &watch, &error), VD_TOO_BIG);
		bytes->size--;
		assert_status(vd_etcd_watch_open(world.client, &request, &watch, &error), VD_OK);
		vd_etcd_watch_close(watch);
		watch_world_run(&world);
		*bytes = is_end ? VD_BYTES_NONE : vd_bytes_of("k");
		free(text);
	}
	request.metadata = &nameless;
	request.metadata_count = 1;
	assert_status(vd_etcd_watch_open(world.client, &request, &watch, &error), VD_INVALID_ARGUMENT);
	vd_etcd_watch_close(NULL);
	watch_world_free(&world);
}

static void e240_e242_e243_options_go_to_the_server(void **state)
{
	struct watch_world	world = watch_world_new(4, 0);
	struct watch_reader	plain, full;
	struct rpc_script_call *stream;
	struct watch_request	request;

	watch_reader_open(&world, &plain, "", 0);
	stream = watch_world_stream(&world);
	request = watch_expect(stream, WATCH_CREATE);
	assert_string_equal(request.key, "");
	assert_true(request.range_end_size == 0 && request.start_revision == 0 && request.watch_id == 0);
	assert_false(request.previous || request.progress || request.fragment || request.no_put ||
		     request.no_delete);
	watch_created(stream, 0, 5);
	watch_reader_open_request(&world, &full,
				  (struct vd_etcd_watch_request) { .key = vd_bytes_of("a"),
								   .range_end = { "\0", 1 },
								   .revision = 77,
								   .previous = true,
								   .progress = true,
								   .fragment = true,
								   .no_put = true,
								   .no_delete = true });
	request = watch_expect(stream, WATCH_CREATE);
	assert_string_equal(request.key, "a");
	assert_true(request.range_end_size == 1 && request.range_end[0] == 0 &&
		    request.start_revision == 77 && request.watch_id == 0);
	assert_true(request.previous && request.progress && request.fragment && request.no_put &&
		    request.no_delete);
	/* The client filters nothing. */
	watch_created(stream, 1, 80);
	watch_put(stream, 1, "zzz", 81);
	watch_reader_expect(&world, &full, "81");
	watch_reader_close(&plain);
	watch_reader_close(&full);
	watch_world_free(&world);
}

/* ---- Responses ---- */

static void e233_e236_responses_carry_header_and_events(void **state)
{
	static const struct watch_event events[] = {
		{ .key = "a", .mod_rev = 7 },
		{ .key = "b", .mod_rev = 7, .create_rev = 3, .has_previous = true },
		{ .key = "c", .mod_rev = 8, .is_delete = true },
	};
	struct watch_world	      world = watch_world_new(5, 0);
	struct watch_reader	      reader;
	struct rpc_script_call	     *stream;
	struct vd_etcd_watch_response response;

	watch_reader_open(&world, &reader, "k", 0);
	stream = watch_world_stream(&world);
	watch_created(stream, 0, 5);
	watch_answer(stream, &(struct watch_answer) { .revision = 9, .events = events, .event_count = 3 });
	watch_world_run(&world);
	assert_status(vd_etcd_watch_next(reader.watch, &response, NULL), VD_OK);
	assert_true(response.header.cluster_id == 14 && response.header.member_id == 8 &&
		    response.header.raft_term == 2);
	assert_int_equal(response.header.revision, 9);
	assert_int_equal(response.event_count, 3);
	assert_false(response.created || vd_etcd_watch_is_progress(&response));
	assert_true(vd_store_event_is_create(&response.events[0]) &&
		    !vd_store_event_is_create(&response.events[1]));
	assert_true(vd_bytes_equal(vd_kv_value(response.events[0].kv), vd_bytes_of("v7")));
	assert_true(response.events[0].kv->sub == 0 && response.events[1].kv->sub == 1 &&
		    response.events[2].kv->sub == 0);
	assert_null(response.events[0].previous);
	assert_true(vd_bytes_equal(vd_kv_value(response.events[1].previous), vd_bytes_of("p")));
	assert_true(response.events[2].is_delete && !vd_store_event_is_create(&response.events[2]));
	assert_true(vd_bytes_equal(vd_kv_key(response.events[2].kv), vd_bytes_of("c")));
	watch_reader_close(&reader); /* with a response lent */
	watch_world_free(&world);
}

static void e235_progress_is_a_response_without_events(void **state)
{
	struct watch_world	      world = watch_world_new(6, 0);
	struct watch_reader	      reader;
	struct rpc_script_call	     *stream;
	struct vd_etcd_watch_response response;

	watch_reader_open(&world, &reader, "k", 0);
	stream = watch_world_stream(&world);
	watch_created(stream, 0, 5);
	watch_progress(stream, 0, 9);
	watch_world_run(&world);
	assert_status(vd_etcd_watch_next(reader.watch, &response, NULL), VD_OK);
	assert_true(vd_etcd_watch_is_progress(&response));
	assert_int_equal(response.header.revision, 9);
	watch_reader_close(&reader);
	watch_world_free(&world);
}

static void progress_that_nobody_reads_is_not_collected(void **state)
{
	struct watch_world	world = watch_world_new(6, 0);
	struct watch_reader	reader;
	struct rpc_script_call *stream;

	watch_reader_open(&world, &reader, "k", 0);
	stream = watch_world_stream(&world);
	watch_created(stream, 0, 5);
	for (vd_rev revision = 6; revision < 100; revision++)
		watch_progress(stream, 0, revision);
	watch_put(stream, 0, "k", 100);
	watch_progress(stream, 0, 101);
	watch_progress(stream, 0, 102);
	watch_reader_expect(&world, &reader, "~99 100 ~102");
	watch_reader_close(&reader);
	watch_world_free(&world);
}

/* ---- Observers ---- */

struct heard {
	char text[1024];
};

static void hear(void *arg, const struct vd_watch_fault *fault)
{
	static const char *const names[] = { "repeated", "order", "previous", "progress", "protocol" };
	struct heard		*heard = arg;
	size_t			 size = strlen(heard->text);

	assert_true(strlen(fault->text) > 10);
	snprintf(heard->text + size, sizeof heard->text - size, "%s%s %lld %.*s", size ? "; " : "",
		 names[fault->kind], (long long) fault->revision, (int) fault->key.size,
		 fault->key.size ? (const char *) fault->key.data : "");
}

#define expect_heard(expected)                                                                               \
	do {                                                                                                 \
		watch_world_run(&world);                                                                     \
		assert_string_equal(heard.text, expected);                                                   \
		heard.text[0] = 0;                                                                           \
	} while (0)

/* The reader sees a right watch; the observer hears what had to be passed over. */
static void an_observer_hears_of_each_fault_of_the_server(void **state)
{
	static const struct watch_event first[] = {
		{ .key = "ka", .mod_rev = 7 },
		{ .key = "kb", .mod_rev = 8, .create_rev = 3, .has_previous = true }
	};
	static const struct watch_event bare[] = { { .key = "kc", .mod_rev = 10, .create_rev = 4 },
						   { .key = "kd", .mod_rev = 11, .is_delete = true } };
	static const struct watch_event outside[] = { { .key = "x", .mod_rev = 12 } };
	static const struct watch_event unordered[] = { { .key = "ka", .mod_rev = 15 },
							{ .key = "kb", .mod_rev = 14 } };
	static const struct watch_event ahead[] = { { .key = "ka", .mod_rev = 30 } };
	struct heard			heard = { "" };
	struct vd_watch_observer	observer = { hear, &heard };
	struct watch_world		world = watch_world_new(6, 0);
	struct watch_reader		reader;
	struct rpc_script_call	       *stream;

	(void) state;
	watch_reader_open_request(&world, &reader,
				  (struct vd_etcd_watch_request) { .key = vd_bytes_of("k"),
								   .range_end = vd_bytes_of("l"),
								   .revision = 6,
								   .previous = true,
								   .observer = &observer });
	stream = watch_world_stream(&world);
	watch_created(stream, 0, 9);
	watch_answer(stream, &(struct watch_answer) { .revision = 9, .events = first, .event_count = 2 });
	watch_progress(stream, 0, 9);
	watch_progress(stream, 0, 9);
	expect_heard("");
	watch_answer(stream, &(struct watch_answer) { .revision = 9,
						      .events = first,
						      .event_count = 2 }); /* the same message again */
	expect_heard("repeated 7 ka; repeated 8 kb");
	watch_progress(stream, 0, 8);
	expect_heard("progress 8 ");
	watch_answer(stream, &(struct watch_answer) { .revision = 11, .events = bare, .event_count = 2 });
	expect_heard("previous 10 kc; previous 11 kd");
	watch_answer(stream, &(struct watch_answer) { .revision = 12, .events = outside, .event_count = 1 });
	expect_heard("protocol 12 x");
	watch_created(stream, 0, 12); /* nobody asked */
	expect_heard("protocol 12 ");
	watch_progress(stream, -1, 13);
	watch_progress(stream, -1, 12);
	expect_heard("progress 12 ");
	watch_answer(stream,
		     &(struct watch_answer) { .revision = 15, .events = unordered, .event_count = 2 });
	expect_heard("order 14 kb");
	watch_answer(stream, &(struct watch_answer) { .revision = 20, .events = ahead, .event_count = 1 });
	expect_heard("protocol 30 ka");
	watch_reader_close(&reader);
	watch_progress(stream, 0, 1);
	expect_heard("");
	watch_world_free(&world);
}

/* Another member of the cluster may be behind the one before it. */
static void a_new_connection_may_be_behind(void **state)
{
	struct heard		 heard = { "" };
	struct vd_watch_observer observer = { hear, &heard };
	struct watch_world	 world = watch_world_new(6, 0);
	struct watch_reader	 reader;
	struct rpc_script_call	*stream;

	(void) state;
	watch_reader_open_request(&world, &reader,
				  (struct vd_etcd_watch_request) {
					  .key = vd_bytes_of("k"), .revision = 6, .observer = &observer });
	stream = watch_world_stream(&world);
	watch_created(stream, 0, 9);
	watch_put(stream, 0, "k", 9);
	watch_progress(stream, -1, 9);
	watch_reader_expect(&world, &reader, "9 ~9");
	rpc_script_end(stream, VDI_RPC_UNAVAILABLE, "gone");
	stream = watch_world_stream(&world);
	watch_created(stream, 0, 8);
	watch_progress(stream, 0, 8);
	watch_progress(stream, -1, 8);
	watch_put(stream, 0, "k", 10);
	expect_heard("");
	watch_progress(stream, 0, 8);
	expect_heard("progress 8 ");
	watch_reader_close(&reader);
	watch_world_free(&world);
}

static void e241_the_creation_is_told_once_when_asked_for(void **state)
{
	struct watch_world	world = watch_world_new(7, 0);
	struct watch_reader	told, untold;
	struct rpc_script_call *stream;

	watch_reader_open_request(
		&world, &told,
		(struct vd_etcd_watch_request) { .key = vd_bytes_of("a"), .created_notify = true });
	watch_reader_open(&world, &untold, "b", 0);
	stream = watch_world_stream(&world);
	watch_created(stream, 0, 5);
	watch_expect(stream, WATCH_CREATE);
	watch_expect(stream, WATCH_CREATE);
	watch_created(stream, 1, 5);
	watch_put(stream, 0, "a", 6);
	watch_reader_expect(&world, &told, "+5 6");
	watch_reader_expect(&world, &untold, "");
	rpc_script_cut(world.script, 0);
	stream = watch_world_stream(&world);
	watch_expect(stream, WATCH_CREATE);
	watch_created(stream, 0, 9);
	watch_expect(stream, WATCH_CREATE);
	watch_created(stream, 1, 9);
	watch_reader_expect(&world, &told, "");
	watch_reader_expect(&world, &untold, "");
	watch_reader_close(&told);
	watch_reader_close(&untold);
	watch_world_free(&world);
}

static void ready_is_called_once_after_again(void **state)
{
	struct watch_world	      world = watch_world_new(8, 0);
	struct watch_reader	      reader;
	struct rpc_script_call	     *stream;
	struct vd_etcd_watch_response response;

	watch_reader_open(&world, &reader, "k", 0);
	stream = watch_world_stream(&world);
	watch_created(stream, 0, 5);
	watch_put(stream, 0, "k", 6);
	watch_world_run(&world);
	assert_int_equal(reader.ready, 0); /* nobody asked yet */
	watch_reader_expect(&world, &reader, "6");
	watch_put(stream, 0, "k", 7);
	watch_put(stream, 0, "k", 8);
	watch_world_run(&world);
	assert_int_equal(reader.ready, 1);
	assert_status(vd_etcd_watch_next(reader.watch, &response, NULL), VD_OK);
	watch_put(stream, 0, "k", 9);
	watch_world_run(&world);
	assert_int_equal(reader.ready, 1);
	watch_reader_expect(&world, &reader, "8 9");
	watch_canceled(stream, 0, 9, NULL);
	watch_world_run(&world);
	assert_int_equal(reader.ready, 2);
	watch_reader_close(&reader);
	watch_world_free(&world);
}

/* ---- Progress ---- */

static void e244_progress_is_asked_for_on_the_stream_of_the_watch(void **state)
{
	struct watch_world	world = watch_world_new(13, 0);
	struct watch_reader	reader;
	struct rpc_script_call *stream;

	watch_reader_open(&world, &reader, "k", 0);
	assert_status(vd_etcd_watch_progress(reader.watch), VD_OK);
	stream = watch_world_stream(&world);
	watch_expect(stream, WATCH_CREATE);
	watch_expect_nothing(&world, stream); /* the answer could not be for it yet */
	watch_created(stream, 0, 5);
	watch_expect(stream, WATCH_PROGRESS);
	watch_progress(stream, -1, 7);
	watch_reader_expect(&world, &reader, "~7");
	assert_status(vd_etcd_request_progress(world.client, NULL, NULL), VD_OK); /* the same stream */
	watch_expect(stream, WATCH_PROGRESS);
	watch_reader_close(&reader);
	watch_world_free(&world);
}

static void e244_e253_progress_without_watches_opens_a_stream_that_stays(void **state)
{
	struct watch_world	world = watch_world_new(14, 0);
	struct watch_reader	reader;
	struct rpc_script_call *stream;

	assert_status(vd_etcd_request_progress(world.client, NULL, NULL), VD_OK);
	stream = watch_world_stream(&world);
	watch_expect(stream, WATCH_PROGRESS);
	vdi_sim_advance(world.env, VD_SECONDS(3600));
	assert_false(rpc_script_call_is_over(stream));
	watch_reader_open(&world, &reader, "k", 0);
	watch_expect(stream, WATCH_CREATE);
	watch_created(stream, 0, 5);
	watch_reader_expect(&world, &reader, "");
	watch_reader_close(&reader);
	assert_int_equal(watch_expect(stream, WATCH_CANCEL).watch_id,
			 0); /* it is not the last: the stream stays */
	watch_world_run(&world);
	assert_false(rpc_script_call_is_over(stream));
	/* Lost, it comes back, and what was asked meanwhile goes out there. */
	rpc_script_end(stream, VDI_RPC_UNAVAILABLE, "bye");
	watch_world_run(&world);
	assert_status(vd_etcd_request_progress(world.client, NULL, NULL), VD_OK);
	stream = watch_world_stream(&world);
	watch_expect(stream, WATCH_PROGRESS);
	watch_expect_nothing(&world, stream);
	/* Ended for good by the server, it does not; the next request opens another one. */
	rpc_script_end(stream, VDI_RPC_PERMISSION_DENIED, "etcdserver: permission denied");
	watch_world_no_stream(&world);
	assert_status(vd_etcd_request_progress(world.client, NULL, NULL), VD_OK);
	stream = watch_world_stream(&world);
	watch_expect(stream, WATCH_PROGRESS);
	watch_world_free(&world);
}

static void e245_progress_of_all_reaches_the_established_only(void **state)
{
	struct watch_world	world = watch_world_new(15, 0);
	struct watch_reader	a, b, late;
	struct rpc_script_call *stream;

	watch_reader_open(&world, &a, "a", 0);
	watch_reader_open(&world, &b, "b", 0);
	watch_reader_open(&world, &late, "c", 0);
	stream = watch_world_stream(&world);
	watch_created(stream, 0, 5);
	watch_world_run(&world);
	watch_created(stream, 1, 5);
	watch_progress(stream, -1, 8);
	watch_progress(stream, 1, 9);
	watch_reader_expect(&world, &a, "~8");
	watch_reader_expect(&world, &b, "~9");
	watch_reader_expect(&world, &late, "");
	watch_reader_close(&a);
	watch_reader_close(&b);
	watch_reader_close(&late);
	watch_world_free(&world);
}

/* One life with everything in it; answers whether an allocation failed. Nothing may be lost, whichever it
 * was. */
static bool live_through(uint64_t nth)
{
	struct watch_world	     world = watch_world_new(21, 4000);
	struct vd_etcd_watch_request request = { .key = vd_bytes_of("k"),
						 .created_notify = true,
						 .ready = ignore };
	struct vd_etcd_pair	     pair = { "tenant", vd_bytes_of("one") };
	struct vd_etcd_watch	    *watch = NULL;
	struct vd_error		     error;
	vd_rev			     next = 6;
	bool			     told = false, failed;
	vd_status		     status;

	request.metadata = &pair;
	request.metadata_count = 1;
	vdi_alloc_fail_nth(nth, 1);
	status = vd_etcd_watch_open(world.client, &request, &watch, &error);
	if (status == VD_NOMEM) {
		vdi_alloc_fail_nth(0, 0);
		watch_world_free(&world);
		return true;
	}
	assert_status(status, VD_OK);
	for (int turn = 0; turn < 60 && next < 40; turn++) {
		struct rpc_script_call *stream;
		struct vd_bytes		message;

		vdi_sim_advance(world.env, VD_SECONDS(1));
		/* A server that knows revisions up to 40, three events at a time, every second response in
		 * two fragments. */
		for (size_t i = 0; i < rpc_script_call_count(world.script); i++) {
			stream = rpc_script_call_at(world.script, i);
			if (rpc_script_call_is_over(stream))
				continue;
			while (rpc_script_take_message(stream, &message)) {
				struct watch_request asked = watch_request_read(message);
				vd_rev		     from = VDI_MAX(asked.start_revision, 6);
				int64_t		     id = (int64_t) (intptr_t) rpc_script_call_data(stream);

				if (asked.kind != WATCH_CREATE)
					continue;
				rpc_script_call_set_data(stream, (void *) (intptr_t) (id + 1));
				watch_created(stream, id, 5);
				for (; from < 40; from += 3) {
					struct watch_event events[3];

					for (int e = 0; e < 3; e++)
						events[e] = (struct watch_event) { .key = "k",
										   .mod_rev = from + e,
										   .value_size = 300,
										   .has_previous = true };
					if (from % 2) {
						watch_answer(stream,
							     &(struct watch_answer) { .id = id,
										      .revision = 40,
										      .fragment = true,
										      .events = events,
										      .event_count = 1 });
						watch_answer(stream,
							     &(struct watch_answer) { .id = id,
										      .revision = 40,
										      .events = events + 1,
										      .event_count = 2 });
					} else {
						watch_answer(stream,
							     &(struct watch_answer) { .id = id,
										      .revision = 40,
										      .events = events,
										      .event_count = 3 });
					}
				}
			}
		}
		vdi_sim_advance(world.env, VD_SECONDS(1));
		for (;;) {
			struct vd_etcd_watch_response response;

			status = vd_etcd_watch_next(watch, &response, NULL);
			if (status != VD_OK)
				break;
			assert_true(!response.created || !told);
			told |= response.created;
			for (size_t e = 0; e < response.event_count; e++)
				assert_int_equal(response.events[e].kv->mod_rev, next++);
		}
		assert_status(status, VD_AGAIN);
	}
	failed = vdi_alloc_failed();
	vdi_alloc_fail_nth(0, 0);
	assert_true(next >= 40 && told);
	vd_etcd_watch_close(watch);
	watch_world_free(&world);
	return failed;
}

static void e271_torture_nothing_is_lost_whatever_fails(void **state)
{
	int64_t	 live;
	uint64_t nth;

	(void) live_through(0); /* what is allocated once for the process */
	live = vdi_alloc_live();
	for (nth = 1; live_through(nth); nth++)
		assert_int_equal(vdi_alloc_live(), live);
	assert_true(nth > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e230_opening_never_blocks_and_waits_for_the_server),
		cmocka_unit_test(e230_a_stream_that_dies_before_the_creation_ends_the_watch),
		cmocka_unit_test(e231_e358_nothing_is_opened_after_close),
		cmocka_unit_test(e218_requests_are_checked),
		cmocka_unit_test(e240_e242_e243_options_go_to_the_server),
		cmocka_unit_test(e233_e236_responses_carry_header_and_events),
		cmocka_unit_test(e235_progress_is_a_response_without_events),
		cmocka_unit_test(progress_that_nobody_reads_is_not_collected),
		cmocka_unit_test(an_observer_hears_of_each_fault_of_the_server),
		cmocka_unit_test(a_new_connection_may_be_behind),
		cmocka_unit_test(e241_the_creation_is_told_once_when_asked_for),
		cmocka_unit_test(ready_is_called_once_after_again),
		cmocka_unit_test(e244_progress_is_asked_for_on_the_stream_of_the_watch),
		cmocka_unit_test(e244_e253_progress_without_watches_opens_a_stream_that_stays),
		cmocka_unit_test(e245_progress_of_all_reaches_the_established_only),
		cmocka_unit_test(e271_torture_nothing_is_lost_whatever_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
