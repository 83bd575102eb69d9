/* storage/etcd/etcd_store_stream.c over a toy etcd: long reads in parts. */
#include "etcd_store_world.h"

/* rules: T-081 */
static void r158_parts_come_in_order_at_one_revision(void **state)
{
	for (int asked = 0; asked < 2; asked++) {
		struct world	       *world = world_open(27, 1);
		unsigned		ready = 0;
		struct vd_store_stream *stream;
		struct vd_store_part	part;
		struct vd_error		error;
		size_t			seen = 0;
		char			key[16];
		bool			is_last = false;

		(void) state;
		world->toy.has_stream = true;
		world->toy.revision = 30;
		world->toy.stream_parts = 9;
		world->toy.stream_part_len = 11;
		world->toy.stream_more = asked;
		stream = stream_of(world, asked ? 20 : 0, &ready);
		while (!is_last) {
			assert_status(next_part(world, stream, &part, &error), VD_OK);
			assert_int_equal(part.read_revision, asked ? 20 : 30);
			assert_int_equal(part.more, part.last && asked);
			if (part.kv_count)
				assert_int_equal(part.count, 99 + asked);
			for (size_t i = 0; i < part.kv_count; i++, seen++) {
				snprintf(key, sizeof key, "k%06zu", seen);
				assert_true(vd_bytes_equal(vd_kv_key(part.kvs[i]), vd_bytes_of(key)));
			}
			world->toy.revision++; /* later headers do not matter */
			is_last = part.last;
		}
		assert_int_equal(seen, 99);
		assert_status(vd_store_stream_next(stream, &part, &error), VD_CLOSED);
		vd_store_stream_close(stream);
		assert_int_equal(world->toy.streams, 1);
		world_free(world);
	}
}

/* A part without records is not shown, except as the last one; it may say that there are more. */
static void r158_empty_parts_are_passed_over(void **state)
{
	struct world	       *world = world_open(26, 1);
	unsigned		ready = 0;
	struct vd_store_stream *stream;
	struct vd_store_part	part;
	unsigned		parts = 0;

	(void) state;
	world->toy.has_stream = true;
	world->toy.stream_gaps = true;
	world->toy.stream_parts = 5;
	world->toy.stream_part_len = 2;
	stream = stream_of(world, 0, &ready);
	do {
		assert_status(next_part(world, stream, &part, NULL), VD_OK);
		assert_true(part.kv_count == 2 || (part.last && part.kv_count == 0));
		parts += part.kv_count > 0;
	} while (!part.last);
	assert_int_equal(parts, 5);
	vd_store_stream_close(stream);
	world_free(world);
}

/* That there are more may be told with an empty part behind the last record. */
static void r158_an_empty_part_may_say_that_there_are_more(void **state)
{
	struct world	       *world = world_open(26, 1);
	unsigned		ready = 0;
	struct vd_store_stream *stream;
	struct vd_store_part	part;
	bool			more = false;

	(void) state;
	world->toy.has_stream = true;
	world->toy.stream_trailer = true;
	world->toy.stream_parts = 3;
	world->toy.stream_part_len = 2;
	stream = stream_of(world, 0, &ready);
	do {
		assert_status(next_part(world, stream, &part, NULL), VD_OK);
		more |= part.more;
	} while (!part.last);
	assert_true(more);
	vd_store_stream_close(stream);
	world_free(world);
}

/* A long read is one call in progress, from its beginning to its end. */
static void long_reads_are_counted(void **state)
{
	struct world		      *world = world_open(27, 1);
	unsigned		       ready = 0;
	struct vd_store_stream_request request = { .range = { .key = vd_bytes_of("k") },
						   .ready = count_ready,
						   .ready_arg = &ready };
	struct vd_store_stream	      *stream = NULL;
	struct vd_store_part	       part;
	vd_status		       status = VD_NOMEM;

	(void) state;
	world->toy.has_stream = true;
	world->toy.stream_parts = 2;
	world->toy.stream_part_len = 2;
	for (uint64_t nth = 1; status != VD_OK; nth++) {
		assert_true(nth < 100);
		(void) vdi_alloc_fail_nth(nth, 1);
		status = vd_store_stream_open(world->store, &request, &stream);
		assert_int_equal(status == VD_OK, !vdi_alloc_failed());
		(void) vdi_alloc_fail_nth(0, 0);
		assert_int_equal(world->inner->in_flight, status == VD_OK);
	}
	while ((status = next_part(world, stream, &part, NULL)) == VD_OK)
		continue;
	assert_status(status, VD_CLOSED);
	assert_int_equal(world->inner->in_flight, 0);
	vd_store_stream_close(stream);
	world_free(world);
}

/* Who does not pull holds the server back. */
static void r158_a_slow_reader_is_back_pressure(void **state)
{
	struct world	       *world = world_open(28, 1);
	unsigned		ready = 0;
	struct vd_store_stream *stream;
	struct vd_store_part	part;
	struct rpc_script_call *call = NULL;

	(void) state;
	world->toy.has_stream = true;
	world->toy.stream_parts = 50;
	world->toy.stream_part_len = 3;
	stream = stream_of(world, 0, &ready);
	vdi_sim_advance(world->env, VD_SECONDS(1));
	for (size_t i = 0; i < rpc_script_call_count(world->toy.script); i++)
		if (strcmp(rpc_script_call_method(rpc_script_call_at(world->toy.script, i)),
			   "/etcdserverpb.KV/RangeStream") == 0)
			call = rpc_script_call_at(world->toy.script, i);
	assert_non_null(call);
	assert_true(rpc_script_call_pending_count(call) >= 48); /* one is here, perhaps one on its way */
	assert_int_equal(ready, 0);				/* nobody was told to wait */
	assert_status(next_part(world, stream, &part, NULL), VD_OK);
	vdi_sim_advance(world->env, VD_SECONDS(1));
	assert_true(rpc_script_call_pending_count(call) >= 47);
	vd_store_stream_close(stream);
	world_free(world);
}

/* rules: T-080, T-105 */
static void r158_unimplemented_is_remembered_for_ten_minutes(void **state)
{
	struct world		      *world = world_open(29, 1);
	unsigned		       ready = 0;
	struct vd_store_stream	      *stream = stream_of(world, 0, &ready);
	struct vd_store_stream_request request = { .range = { .key = vd_bytes_of("k") },
						   .ready = count_ready,
						   .ready_arg = &ready };
	struct vd_store_part	       part;
	struct vd_error		       error;

	(void) state;
	assert_status(next_part(world, stream, &part, &error), VD_UNSUPPORTED);
	vd_store_stream_close(stream);
	assert_status(vd_store_stream_open(world->store, &request, &stream), VD_UNSUPPORTED);
	vdi_sim_advance(world->env, VD_SECONDS(599));
	assert_status(vd_store_stream_open(world->store, &request, &stream), VD_UNSUPPORTED);
	assert_int_equal(world->toy.streams, 1);
	world->toy.has_stream = true;
	world->toy.stream_parts = 1;
	world->toy.stream_part_len = 1;
	vdi_sim_advance(world->env, VD_SECONDS(1)); /* ten minutes, to the instant */
	stream = stream_of(world, 0, &ready);
	assert_status(next_part(world, stream, &part, &error), VD_OK);
	vd_store_stream_close(stream);
	world_free(world);
}

static void r158_how_a_long_read_may_end(void **state)
{
	static const struct {
		int	    code;
		const char *text;
		vd_status   expected;
	} rows[] = {
		{ VDI_RPC_OUT_OF_RANGE, "etcdserver: mvcc: required revision has been compacted",
		  VD_EXPIRED },
		{ VDI_RPC_OUT_OF_RANGE, "etcdserver: mvcc: required revision is a future revision",
		  VD_TOO_LARGE_REVISION },
		{ VDI_RPC_UNAVAILABLE, "etcdserver: server stopped", VD_UNAVAILABLE },
		{ VDI_RPC_PERMISSION_DENIED, "etcdserver: permission denied", VD_FORBIDDEN },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		for (size_t parts = 0; parts < 3; parts++) {
			struct world	       *world = world_open(30 + i, 1);
			unsigned		ready = 0;
			struct vd_store_stream *stream;
			struct vd_store_part	part;
			struct vd_error		error = { 0 };

			world->toy.has_stream = true;
			world->toy.stream_parts = parts;
			world->toy.stream_part_len = 2;
			world->toy.stream_end_code = rows[i].code;
			world->toy.stream_end_text = rows[i].text;
			stream = stream_of(world, 0, &ready);
			for (size_t n = 0; n < parts; n++) {
				assert_status(next_part(world, stream, &part, &error), VD_OK);
				assert_false(part.last);
			}
			assert_status(next_part(world, stream, &part, &error), rows[i].expected);
			assert_status(error.code, rows[i].expected);
			assert_non_null(strstr(error.message, rows[i].text));
			vd_store_stream_close(stream);
			world_free(world);
		}
	/* No part, no revision. */
	{
		struct world	       *world = world_open(40, 1);
		unsigned		ready = 0;
		struct vd_store_stream *stream;
		struct vd_store_part	part;
		struct vd_error		error = { 0 };

		world->toy.has_stream = true;
		stream = stream_of(world, 0, &ready);
		assert_status(next_part(world, stream, &part, &error), VD_CORRUPT);
		assert_non_null(
			strstr(error.message, "etcd ended a RangeStream without a revision in its headers"));
		vd_store_stream_close(stream);
		world_free(world);
	}
}

static void a_long_read_is_closed_at_any_moment(void **state)
{
	(void) state;
	for (unsigned steps = 0; steps < 60; steps++) {
		struct world	       *world = world_open(steps + 1, 1);
		unsigned		ready = 0;
		struct vd_store_stream *stream;
		struct vd_store_part	part;

		world->toy.has_stream = true;
		world->toy.stream_parts = 4;
		world->toy.stream_part_len = 2;
		stream = stream_of(world, 0, &ready);
		for (unsigned i = 0; i < steps && vdi_sim_step(world->env); i++)
			if (i % 3 == 0 && vd_store_stream_next(stream, &part, NULL) == VD_CLOSED)
				break;
		if (steps % 2)
			vd_store_shutdown(world->store);
		vd_store_stream_close(stream);
		world_free(world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r158_parts_come_in_order_at_one_revision),
		cmocka_unit_test(r158_empty_parts_are_passed_over),
		cmocka_unit_test(r158_an_empty_part_may_say_that_there_are_more),
		cmocka_unit_test(long_reads_are_counted),
		cmocka_unit_test(r158_a_slow_reader_is_back_pressure),
		cmocka_unit_test(r158_unimplemented_is_remembered_for_ten_minutes),
		cmocka_unit_test(r158_how_a_long_read_may_end),
		cmocka_unit_test(a_long_read_is_closed_at_any_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
