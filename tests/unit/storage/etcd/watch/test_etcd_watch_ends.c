/* How watches end: which of several reasons counts, and what is read before it. */
#include "actor_sim.h"
#include "etcd_watch_peer.h"
#include "vdtest.h"

static void e234_ends_by_precedence(void **state)
{
	static const struct {
		struct watch_answer answer;
		vd_status	    status;
		enum vd_etcd_code   code;
		const char	   *message;
	} table[] = {
		{ { .canceled = true, .compact_revision = 20, .reason = "x" },
		  VD_EXPIRED,
		  VD_ETCD_COMPACTED,
		  "etcdserver: mvcc: required revision has been compacted" },
		{ { .compact_revision = 20 },
		  VD_EXPIRED,
		  VD_ETCD_COMPACTED,
		  "etcdserver: mvcc: required revision has been compacted" },
		{ { .canceled = true, .revision = 6, .reason = "because" },
		  VD_CANCELED,
		  VD_ETCD_OTHER,
		  NULL },
		{ { .canceled = true, .revision = 6, .reason = "etcdserver: permission denied" },
		  VD_FORBIDDEN,
		  VD_ETCD_PERMISSION_DENIED,
		  "etcdserver: permission denied" },
		{ { .canceled = true, .revision = 6 },
		  VD_TOO_LARGE_REVISION,
		  VD_ETCD_FUTURE_REVISION,
		  "etcdserver: mvcc: required revision is a future revision" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(table); i++) {
		struct watch_world	world = watch_world_new(9, 0);
		struct watch_reader	reader;
		struct rpc_script_call *stream;
		struct vd_etcd_error	error;

		watch_reader_open(&world, &reader, "k", 3);
		stream = watch_world_stream(&world);
		watch_created(stream, 0, 5);
		watch_answer(stream, &table[i].answer);
		error = watch_reader_end(&world, &reader);
		assert_status(error.error.code, table[i].status);
		assert_int_equal(error.code, table[i].code);
		assert_int_equal(error.error.compacted, table[i].answer.compact_revision);
		if (table[i].message)
			assert_string_equal(error.error.message, table[i].message);
		else
			assert_non_null(strstr(error.error.message, "because"));
		watch_reader_close(&reader);
		watch_world_free(&world);
	}
}

static void e237_e269_a_closed_watch_discards_what_was_not_read(void **state)
{
	struct watch_world	world = watch_world_new(10, 0);
	struct watch_reader	reader, sibling;
	struct rpc_script_call *stream;

	watch_reader_open(&world, &reader, "k", 0);
	watch_reader_open(&world, &sibling, "s", 0);
	stream = watch_world_stream(&world);
	watch_created(stream, 0, 5);
	watch_reader_expect(&world, &reader, "");
	watch_created(stream, 1, 5);
	for (vd_rev revision = 6; revision < 20; revision++)
		watch_put(stream, 0, "k", revision);
	watch_world_run(&world);
	assert_int_equal(reader.ready, 1);
	watch_reader_close(&reader);
	watch_put(stream, 0, "k", 20); /* nobody is told */
	watch_put(stream, 1, "s", 21);
	watch_reader_expect(&world, &sibling, "21");
	assert_int_equal(reader.ready, 1);
	watch_reader_close(&sibling);
	watch_world_free(&world);
}

static void e238_compaction_comes_after_what_was_buffered(void **state)
{
	struct watch_world	world = watch_world_new(11, 0);
	struct watch_reader	reader;
	struct rpc_script_call *stream;

	watch_reader_open(&world, &reader, "k", 3);
	stream = watch_world_stream(&world);
	watch_created(stream, 0, 9);
	watch_put(stream, 0, "k", 3);
	watch_put(stream, 0, "k", 4);
	watch_compacted(stream, 0, 8);
	watch_reader_expect(&world, &reader, "3 4 !expired");
	assert_int_equal(watch_reader_end(&world, &reader).error.compacted, 8);
	watch_reader_close(&reader);
	watch_world_free(&world);
}

static void e239_e274_a_halt_error_is_kept_until_read_behind_the_events(void **state)
{
	struct watch_world	world = watch_world_new(12, 0);
	struct watch_reader	reader;
	struct rpc_script_call *stream;
	struct vd_etcd_error	error;

	watch_reader_open(&world, &reader, "k", 0);
	stream = watch_world_stream(&world);
	watch_created(stream, 0, 5);
	for (vd_rev revision = 6; revision < 9; revision++)
		watch_put(stream, 0, "k", revision);
	rpc_script_end(stream, VDI_RPC_RESOURCE_EXHAUSTED,
		       "grpc: received message larger than max (3 vs. 2)");
	vdi_sim_advance(world.env, VD_SECONDS(600));
	watch_reader_expect(&world, &reader, "6 7 8 !too_big");
	error = watch_reader_end(&world, &reader);
	assert_int_equal(error.grpc_code, VDI_RPC_RESOURCE_EXHAUSTED);
	assert_string_equal(error.error.message, "rpc error: code = ResourceExhausted desc = grpc: received "
						 "message larger than max (3 vs. 2)");
	assert_string_equal(error.endpoint, "peer:2379");
	watch_reader_close(&reader);
	watch_world_no_stream(&world);
	watch_world_free(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e234_ends_by_precedence),
		cmocka_unit_test(e237_e269_a_closed_watch_discards_what_was_not_read),
		cmocka_unit_test(e238_compaction_comes_after_what_was_buffered),
		cmocka_unit_test(e239_e274_a_halt_error_is_kept_until_read_behind_the_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
