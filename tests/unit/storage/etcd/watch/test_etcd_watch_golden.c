/* What Go's client does with the same script of answers (11.3). */
#include <rpc.pb-c.h>

#include "etcd_client_fixture.h"
#include "etcd_watch_pair.h"
#include "etcd_watch_peer.h"
#include "vdtest.h"

static void e1101_golden_1_canceled_beside_a_sibling(void **state)
{
	struct watch_pair t;

	watch_pair_open(&t, 0);
	watch_canceled(t.stream, 0, 5, "why not");
	watch_reader_expect(&t.world, &t.reader, "!canceled");
	assert_int_equal(watch_expect(t.stream, WATCH_CANCEL).watch_id, 0);
	watch_put(t.stream, 1, "s", 6);
	watch_reader_expect(&t.world, &t.sibling, "6");
	watch_pair_close(&t);
}

static void e1101_golden_3_ends_for_good(void **state)
{
	static const struct {
		int	    code;
		const char *text, *contains;
	} cases[] = { { VDI_RPC_OK, "", "EOF" },
		      { VDI_RPC_RESOURCE_EXHAUSTED, "grpc: received message larger than max (9 vs. 8)",
			"code = ResourceExhausted" },
		      { VDI_RPC_UNAVAILABLE, "etcdserver: no leader", "etcdserver: no leader" } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct watch_event event = { .key = "k", .mod_rev = 7 };
		struct watch_pair  t;

		watch_pair_open(&t, 0);
		watch_answer(t.stream, &(struct watch_answer) {
					       .id = 0, .revision = 9, .events = &event, .event_count = 1 });
		rpc_script_end(t.stream, cases[i].code, cases[i].text);
		assert_memory_equal(watch_reader_text(&t.world, &t.reader), "7 !", 3);
		assert_non_null(
			strstr(watch_reader_end(&t.world, &t.reader).error.message, cases[i].contains));
		watch_world_no_stream(&t.world);
		watch_pair_close(&t);
	}
}

static void e1101_golden_4_reconnects(void **state)
{
	struct watch_event	event = { .key = "k", .mod_rev = 7 };
	struct watch_world	world = watch_world_new(1, 0);
	struct watch_reader	reader;
	struct rpc_script_call *stream;

	watch_reader_open_request(
		&world, &reader,
		(struct vd_etcd_watch_request) { .key = vd_bytes_of("k"), .created_notify = true });
	stream = watch_world_stream(&world);
	watch_created(stream, 0, 5);
	watch_answer(stream,
		     &(struct watch_answer) { .id = 0, .revision = 9, .events = &event, .event_count = 1 });
	rpc_script_end(stream, VDI_RPC_INTERNAL, "x");
	stream = watch_world_stream(&world);
	assert_int_equal(watch_expect(stream, WATCH_CREATE).start_revision, 8);
	watch_created(stream, 0, 9);
	watch_progress(stream, -1, 12);
	watch_world_run(&world);
	rpc_script_end(stream, VDI_RPC_UNAVAILABLE, "x");
	stream = watch_world_stream(&world);
	assert_int_equal(watch_expect(stream, WATCH_CREATE).start_revision, 13);
	watch_reader_expect(&world, &reader, "+5 7 ~12");
	watch_reader_close(&reader);
	watch_world_free(&world);
}

static void e1101_golden_5_losses_before_any_complete_response(void **state)
{
	struct watch_pair t;

	watch_pair_open(&t, 0);
	assert_int_equal(watch_pair_resume(&t), 5);
	watch_pair_fragment(&t, 0, 8, 6, true);
	assert_int_equal(watch_pair_resume(&t), 5);
	watch_pair_close(&t);
}

static void e1101_golden_6_fragments_then_compaction_without_header(void **state)
{
	struct watch_pair	      t;
	struct vd_etcd_watch_response response;

	watch_pair_open(&t, 0);
	watch_pair_fragment(&t, 0, 8, 6, true);
	watch_pair_fragment(&t, 0, 9, 7, false);
	watch_compacted(t.stream, 0, 20);
	watch_world_run(&t.world);
	assert_status(vd_etcd_watch_next(t.reader.watch, &response, NULL), VD_OK);
	assert_true(response.header.revision == 8 && response.event_count == 2);
	watch_reader_expect(&t.world, &t.reader, "!expired");
	assert_int_equal(watch_reader_end(&t.world, &t.reader).error.compacted, 20);
	watch_pair_close(&t);
}

static void e1101_golden_8_progress_without_watches_then_a_leader_stream(void **state)
{
	struct watch_world	world = watch_world_new(1, 0);
	struct watch_reader	reader;
	struct rpc_script_call *plain, *leader;

	assert_status(vd_etcd_request_progress(world.client, NULL, NULL), VD_OK);
	plain = watch_world_stream(&world);
	watch_expect(plain, WATCH_PROGRESS);
	watch_reader_open_request(
		&world, &reader,
		(struct vd_etcd_watch_request) { .key = vd_bytes_of("k"), .require_leader = true });
	leader = watch_world_stream(&world);
	assert_non_null(rpc_script_call_metadata(leader, "hasleader").data);
	assert_null(rpc_script_call_metadata(plain, "hasleader").data);
	watch_reader_close(&reader);
	watch_world_free(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e1101_golden_1_canceled_beside_a_sibling),
		cmocka_unit_test(e1101_golden_3_ends_for_good),
		cmocka_unit_test(e1101_golden_4_reconnects),
		cmocka_unit_test(e1101_golden_5_losses_before_any_complete_response),
		cmocka_unit_test(e1101_golden_6_fragments_then_compaction_without_header),
		cmocka_unit_test(e1101_golden_8_progress_without_watches_then_a_leader_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
