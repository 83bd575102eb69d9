/* KV calls: what is refused here (E-215..E-220), what is sent, what comes back. */
#include <rpc.pb-c.h>

#include "etcd_call.h"
#include "etcd_client_fixture.h"
#include "etcd_wire.h"
#include "vdtest.h"

#define RANGE "/etcdserverpb.KV/Range"
#define PUT "/etcdserverpb.KV/Put"
#define DELETE "/etcdserverpb.KV/DeleteRange"
#define TXN "/etcdserverpb.KV/Txn"
#define COMPACT "/etcdserverpb.KV/Compact"

static void assert_prefix_end(const void *prefix, size_t size, const void *end, size_t end_size)
{
	char		buffer[16];
	struct vd_bytes result = vd_etcd_prefix_end((struct vd_bytes) { prefix, size }, buffer);

	assert_int_equal(result.size, end_size);
	assert_memory_equal(result.data, end, end_size);
}

static void e215_prefix_end(void **state)
{
	assert_prefix_end("foo", 3, "fop", 3);
	assert_prefix_end("a\xff", 2, "b", 1);
	assert_prefix_end("a\xfe\xff\xff", 4, "a\xff", 2);
	assert_prefix_end("\xff\xff", 2, "\0", 1);
	assert_prefix_end("", 0, "\0", 1);
	assert_prefix_end("/registry/", 10, "/registry0", 10);
	assert_prefix_end("\0", 1, "\1", 1);
}

/* The empty prefix, and "from this key" with the empty key: the first key that is sent is the zero byte. An
 * empty key alone is sent as it is. */
static void e215_everything_begins_at_the_zero_byte(void **state)
{
	static const struct vd_bytes	   everything = { "", 1 };
	const struct vd_etcd_range_request read = { .range = { .range_end = everything } },
					   single = { .range = { .limit = 1 } };
	const struct vd_op	    op = { .kind = VD_OP_DELETE, .range_end = everything };
	const struct vd_compare	    compare = { .target = VD_COMPARE_MOD, .range_end = everything };
	const struct vd_txn_request txn = {
		.compares = &compare, .compare_count = 1, .success = &op, .success_count = 1
	};
	struct etcd_client_fixture	  fixture;
	struct etcd_result		  results[4] = { 0 };
	struct vd_bytes			  message;
	Etcdserverpb__RangeRequest	 *range;
	Etcdserverpb__DeleteRangeRequest *deletion;
	Etcdserverpb__TxnRequest	 *transaction;

	etcd_client_fixture_start(&fixture, 6);
	assert_status(vd_etcd_range(fixture.client, NULL, &read, etcd_note_range, &results[0]), VD_OK);
	message = rpc_script_expect_message(rpc_script_expect_call(fixture.script, RANGE));
	range = etcdserverpb__range_request__unpack(NULL, message.size, message.data);
	assert_true(range->key.len == 1 && range->key.data[0] == 0 && range->range_end.len == 1);
	etcdserverpb__range_request__free_unpacked(range, NULL);
	assert_status(vd_etcd_range(fixture.client, NULL, &single, etcd_note_range, &results[1]), VD_OK);
	message = rpc_script_expect_message(rpc_script_expect_call(fixture.script, RANGE));
	range = etcdserverpb__range_request__unpack(NULL, message.size, message.data);
	assert_true(range->key.len == 0 && range->range_end.len == 0);
	etcdserverpb__range_request__free_unpacked(range, NULL);
	assert_status(vd_etcd_delete(fixture.client, NULL, &op, etcd_note_op, &results[2]), VD_OK);
	message = rpc_script_expect_message(rpc_script_expect_call(fixture.script, DELETE));
	deletion = etcdserverpb__delete_range_request__unpack(NULL, message.size, message.data);
	assert_true(deletion->key.len == 1 && deletion->key.data[0] == 0 && deletion->range_end.len == 1);
	etcdserverpb__delete_range_request__free_unpacked(deletion, NULL);
	assert_status(vd_etcd_txn(fixture.client, NULL, &txn, etcd_note_txn, &results[3]), VD_OK);
	message = rpc_script_expect_message(rpc_script_expect_call(fixture.script, TXN));
	transaction = etcdserverpb__txn_request__unpack(NULL, message.size, message.data);
	assert_true(transaction->compare[0]->key.len == 1 && transaction->compare[0]->key.data[0] == 0);
	assert_true(transaction->success[0]->request_delete_range->key.len == 1);
	etcdserverpb__txn_request__free_unpacked(transaction, NULL);
	etcd_client_fixture_fini(&fixture);
}

static void e219_e220_invalid_requests_are_refused(void **state)
{
	static const struct vd_op puts[] = {
		{ .kind = VD_OP_PUT, .range_end = { "z", 1 } },
		{ .kind = VD_OP_DELETE },
		{ .kind = VD_OP_TXN },
	};
	static const struct vd_op deletes[] = {
		{ .kind = VD_OP_PUT },
		{ .kind = VD_OP_DELETE, .value = { "v", 1 } },
		{ .kind = VD_OP_DELETE, .lease = 1 },
		{ .kind = VD_OP_DELETE, .ignore_value = true },
		{ .kind = VD_OP_DELETE, .ignore_lease = true },
	};
	static const struct vd_compare	   compares[] = { { .target = (enum vd_compare_target) 5 },
							  { .result = (enum vd_compare_result) 4 },
							  { .target = (enum vd_compare_target) - 1 } };
	static const struct vd_txn_request bad_inner = { .failure = puts, .failure_count = 1 };
	static const struct vd_op	   ops[] = { { .kind = (enum vd_op_kind) 9 },
						     { .kind = VD_OP_TXN },
						     { .kind = VD_OP_TXN, .txn = &bad_inner },
						     { .kind = VD_OP_RANGE, .range.limit = -1 } };
	struct etcd_client_fixture	   fixture;
	struct etcd_result		   result = { 0 };

	etcd_client_fixture_start(&fixture, 1);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(puts); i++)
		assert_status(vd_etcd_put(fixture.client, NULL, &puts[i], etcd_note_op, &result),
			      VD_INVALID_ARGUMENT);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(deletes); i++)
		assert_status(vd_etcd_delete(fixture.client, NULL, &deletes[i], etcd_note_op, &result),
			      VD_INVALID_ARGUMENT);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(compares); i++)
		assert_status(
			vd_etcd_txn(fixture.client, NULL,
				    &(struct vd_txn_request) { .compares = &compares[i], .compare_count = 1 },
				    etcd_note_txn, &result),
			VD_INVALID_ARGUMENT);
	/* Transactions are checked down to the deepest level that is sent. */
	for (size_t levels = 2; levels <= VDI_ETCD_WIRE_LEVELS_MAX; levels++) {
		struct vd_txn_request txns[VDI_ETCD_WIRE_LEVELS_MAX];
		struct vd_op	      inner[VDI_ETCD_WIRE_LEVELS_MAX];

		txns[levels - 1] = (struct vd_txn_request) { .compares = &compares[0], .compare_count = 1 };
		for (size_t i = levels - 1; i > 0; i--) {
			inner[i] = (struct vd_op) { .kind = VD_OP_TXN, .txn = &txns[i] };
			txns[i - 1] = (struct vd_txn_request) { .success = &inner[i], .success_count = 1 };
		}
		assert_status(vd_etcd_txn(fixture.client, NULL, &txns[0], etcd_note_txn, &result),
			      VD_INVALID_ARGUMENT);
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(ops); i++)
		assert_status(vd_etcd_txn(fixture.client, NULL,
					  &(struct vd_txn_request) { .success = &ops[i], .success_count = 1 },
					  etcd_note_txn, &result),
			      VD_INVALID_ARGUMENT);
	assert_status(
		vd_etcd_range(fixture.client, NULL,
			      &(struct vd_etcd_range_request) { .sort_order = (enum vd_etcd_sort_order) 3 },
			      etcd_note_range, &result),
		VD_INVALID_ARGUMENT);
	assert_status(
		vd_etcd_range(fixture.client, NULL,
			      &(struct vd_etcd_range_request) { .sort_target = (enum vd_etcd_sort_target) 5 },
			      etcd_note_range, &result),
		VD_INVALID_ARGUMENT);
	assert_status(vd_etcd_range_stream(fixture.client, NULL,
					   &(struct vd_etcd_range_request) { .range.limit = -1 },
					   etcd_note_range_stream, &result),
		      VD_INVALID_ARGUMENT);
	vdi_sim_run_until_idle(fixture.env);
	assert_int_equal(result.calls, 0);
	assert_int_equal(rpc_script_call_count(fixture.script), 0);
	etcd_client_fixture_fini(&fixture);
}

/* Each order, target and limit of a range arrives as it was asked for. */
static void e107_every_order_is_sent(void **state)
{
	struct etcd_client_fixture fixture;

	etcd_client_fixture_start(&fixture, 4);
	for (int order = VD_ETCD_SORT_NONE; order <= VD_ETCD_SORT_DESCEND; order++)
		for (int target = VD_ETCD_SORT_KEY; target <= VD_ETCD_SORT_VALUE; target++) {
			const struct vd_etcd_range_request request = {
				.range = { .key = vd_bytes_of("k"), .limit = order + target },
				.sort_order = (enum vd_etcd_sort_order) order,
				.sort_target = (enum vd_etcd_sort_target) target
			};
			struct etcd_result	    result = { 0 };
			struct rpc_script_call	   *call;
			struct vd_bytes		    message;
			Etcdserverpb__RangeRequest *sent;

			assert_status(vd_etcd_range(fixture.client, NULL, &request, etcd_note_range, &result),
				      VD_OK);
			call = rpc_script_expect_call(fixture.script, RANGE);
			message = rpc_script_expect_message(call);
			sent = etcdserverpb__range_request__unpack(NULL, message.size, message.data);
			assert_int_equal(sent->sort_order,
					 order == VD_ETCD_SORT_ASCEND && target == VD_ETCD_SORT_KEY ?
						 VD_ETCD_SORT_NONE :
						 order); /* the order of keys */
			assert_int_equal(sent->sort_target, target);
			assert_int_equal(sent->limit, order + target);
			etcdserverpb__range_request__free_unpacked(sent, NULL);
			rpc_script_answer(call, VD_BYTES_NONE);
			etcd_expect_calls(&fixture, &result, 1);
		}
	etcd_client_fixture_fini(&fixture);
}

static void e216_range_end_is_sent_verbatim(void **state)
{
	struct etcd_client_fixture	   fixture;
	struct etcd_result		   result = { 0 };
	const struct vd_etcd_range_request request = { .range = { .key = vd_bytes_of("z"),
								  .range_end = vd_bytes_of("a") } };
	const struct vd_etcd_range_request of_one = { .range = { .key = vd_bytes_of("z") } };
	struct etcd_result		   result_of_one = { 0 };
	struct vd_bytes			   message;
	Etcdserverpb__RangeRequest	  *sent;

	etcd_client_fixture_start(&fixture, 2);
	assert_status(vd_etcd_range(fixture.client, NULL, &request, etcd_note_range, &result), VD_OK);
	message = rpc_script_expect_message(rpc_script_expect_call(fixture.script, RANGE));
	sent = etcdserverpb__range_request__unpack(NULL, message.size, message.data);
	assert_int_equal(sent->range_end.len, 1);
	assert_memory_equal(sent->range_end.data, "a", 1);
	etcdserverpb__range_request__free_unpacked(sent, NULL);
	/* No end: that key alone. */
	assert_status(vd_etcd_range(fixture.client, NULL, &of_one, etcd_note_range, &result_of_one), VD_OK);
	message = rpc_script_expect_message(rpc_script_expect_call(fixture.script, RANGE));
	sent = etcdserverpb__range_request__unpack(NULL, message.size, message.data);
	assert_int_equal(sent->key.len, 1);
	assert_memory_equal(sent->key.data, "z", 1);
	assert_int_equal(sent->range_end.len, 0);
	etcdserverpb__range_request__free_unpacked(sent, NULL);
	etcd_client_fixture_fini(&fixture);
}

static void e108_put_and_delete(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   put = { 0 };
	struct etcd_result	   deleted = { 0 };

	const struct vd_op put_op = {
		.kind = VD_OP_PUT, .key = vd_bytes_of("k"), .value = vd_bytes_of("v"), .previous = true
	};
	const struct vd_op delete_op = {
		.kind = VD_OP_DELETE, .key = vd_bytes_of("k"), .range_end = { "", 1 }, .previous = true
	};
	Etcdserverpb__PutResponse	  put_answer = ETCDSERVERPB__PUT_RESPONSE__INIT;
	Etcdserverpb__DeleteRangeResponse delete_answer = ETCDSERVERPB__DELETE_RANGE_RESPONSE__INIT;
	Mvccpb__KeyValue		  kv = MVCCPB__KEY_VALUE__INIT;
	Mvccpb__KeyValue		 *kvs[] = { &kv, &kv };

	etcd_client_fixture_start(&fixture, 3);
	kv.value = (ProtobufCBinaryData) { 3, (uint8_t *) "old" };
	assert_status(vd_etcd_put(fixture.client, NULL, &put_op, etcd_note_op, &put), VD_OK);
	put_answer.prev_kv = &kv;
	rpc_script_answer(rpc_script_expect_call(fixture.script, PUT), etcd_pack(&put_answer));
	etcd_expect_calls(&fixture, &put, 1);
	assert_etcd_ok(&put);
	assert_int_equal(put.kv_count, 1);
	assert_string_equal(put.text, "old");
	assert_status(vd_etcd_delete(fixture.client, NULL, &delete_op, etcd_note_op, &deleted), VD_OK);
	delete_answer.deleted = 2;
	delete_answer.prev_kvs = kvs;
	delete_answer.n_prev_kvs = 2;
	rpc_script_answer(rpc_script_expect_call(fixture.script, DELETE), etcd_pack(&delete_answer));
	etcd_expect_calls(&fixture, &deleted, 1);
	assert_etcd_ok(&deleted);
	assert_int_equal(deleted.kv_count, 2);
	assert_int_equal(deleted.number, 2);
	etcd_client_fixture_fini(&fixture);
}

static void e110_txn_and_e111_compact(void **state)
{
	struct etcd_client_fixture	 fixture;
	struct etcd_result		 txn = { 0 };
	struct etcd_result		 compacted = { 0 };
	const struct vd_op		 op = { .kind = VD_OP_PUT, .key = vd_bytes_of("k") };
	const struct vd_txn_request	 request = { .success = &op, .success_count = 1 };
	Etcdserverpb__TxnResponse	 answer = ETCDSERVERPB__TXN_RESPONSE__INIT;
	Etcdserverpb__ResponseHeader	 header = ETCDSERVERPB__RESPONSE_HEADER__INIT;
	Etcdserverpb__ResponseOp	 result = ETCDSERVERPB__RESPONSE_OP__INIT;
	Etcdserverpb__ResponseOp	*results[] = { &result };
	Etcdserverpb__PutResponse	 put = ETCDSERVERPB__PUT_RESPONSE__INIT;
	struct rpc_script_call		*call;
	struct vd_bytes			 message;
	Etcdserverpb__CompactionRequest *sent;

	etcd_client_fixture_start(&fixture, 4);
	assert_status(vd_etcd_txn(fixture.client, NULL, &request, etcd_note_txn, &txn), VD_OK);
	header.revision = 9;
	answer.header = &header;
	answer.succeeded = true;
	result.response_case = ETCDSERVERPB__RESPONSE_OP__RESPONSE_RESPONSE_PUT;
	result.response_put = &put;
	answer.responses = results;
	answer.n_responses = 1;
	rpc_script_answer(rpc_script_expect_call(fixture.script, TXN), etcd_pack(&answer));
	etcd_expect_calls(&fixture, &txn, 1);
	assert_etcd_ok(&txn);
	assert_true(txn.flag && txn.number == 9 && txn.kv_count == 1);
	assert_status(vd_etcd_compact(fixture.client, NULL, 5, true, etcd_note_done, &compacted), VD_OK);
	call = rpc_script_expect_call(fixture.script, COMPACT);
	message = rpc_script_expect_message(call);
	sent = etcdserverpb__compaction_request__unpack(NULL, message.size, message.data);
	assert_true(sent->revision == 5 && sent->physical);
	etcdserverpb__compaction_request__free_unpacked(sent, NULL);
	rpc_script_answer(call, etcd_header_answer(9));
	etcd_expect_calls(&fixture, &compacted, 1);
	assert_etcd_ok(&compacted);
	assert_int_equal(compacted.header.revision, 9);
	/* Answers that cannot be read. */
	assert_status(vd_etcd_txn(fixture.client, NULL, &request, etcd_note_txn, &txn), VD_OK);
	rpc_script_answer(rpc_script_expect_call(fixture.script, TXN), vd_bytes_of("\x1a"));
	etcd_expect_calls(&fixture, &txn, 2);
	assert_status(txn.error.error.code, VD_CORRUPT);
	assert_true(txn.error.maybe_applied);
	assert_status(vd_etcd_compact(fixture.client, NULL, 5, true, etcd_note_done, &compacted), VD_OK);
	rpc_script_answer(rpc_script_expect_call(fixture.script, COMPACT), vd_bytes_of("\x0a"));
	etcd_expect_calls(&fixture, &compacted, 2);
	assert_status(compacted.error.error.code, VD_CORRUPT);
	etcd_client_fixture_fini(&fixture);
}

static void a_transaction_too_deep(void **state)
{
	struct vd_txn_request	   txns[64] = { { 0 } };
	struct vd_op		   ops[64];
	struct etcd_client_fixture fixture;

	for (int i = 0; i < 63; i++) {
		ops[i] = (struct vd_op) { .kind = VD_OP_TXN, .txn = &txns[i + 1] };
		txns[i] = (struct vd_txn_request) { .success = &ops[i], .success_count = 1 };
	}
	etcd_client_fixture_start(&fixture, 5);
	assert_status(vd_etcd_txn(fixture.client, NULL, &txns[0], etcd_note_txn, NULL), VD_TOO_BIG);
	etcd_client_fixture_fini(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e215_prefix_end),
		cmocka_unit_test(e215_everything_begins_at_the_zero_byte),
		cmocka_unit_test(e219_e220_invalid_requests_are_refused),
		cmocka_unit_test(e107_every_order_is_sent),
		cmocka_unit_test(e216_range_end_is_sent_verbatim),
		cmocka_unit_test(e108_put_and_delete),
		cmocka_unit_test(e110_txn_and_e111_compact),
		cmocka_unit_test(a_transaction_too_deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
