/* Transactions of the etcd server without a network: limits, headers of the parts, and the ones
 * kube-apiserver writes with. */
#include "etcd_server_fixture.h"

#include "actor_sim.h"
#include "serve_txn.h"
#include "vdtest.h"

static Etcdserverpb__RequestOp *put_op(Etcdserverpb__PutRequest *request, Etcdserverpb__RequestOp *op,
				       const char *key)
{
	*request = (Etcdserverpb__PutRequest) ETCDSERVERPB__PUT_REQUEST__INIT;
	request->key = etcd_bytes(key);
	*op = (Etcdserverpb__RequestOp) ETCDSERVERPB__REQUEST_OP__INIT;
	op->request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_PUT;
	op->request_put = request;
	return op;
}

/* rules: E-150 */
static void e450_limits_of_transactions(void **state)
{
	Etcdserverpb__TxnRequest   txn = ETCDSERVERPB__TXN_REQUEST__INIT;
	Etcdserverpb__PutRequest   puts[129];
	Etcdserverpb__RequestOp	   ops[129];
	Etcdserverpb__RequestOp	  *list[129];
	char			   keys[129][8];
	Etcdserverpb__TxnResponse *response;

	for (int i = 0; i < 129; i++) {
		(void) snprintf(keys[i], sizeof keys[i], "k%d", i);
		list[i] = put_op(&puts[i], &ops[i], keys[i]);
	}
	txn.success = list;
	txn.n_success = 129;
	etcd_server_ask_fails(*state, "/etcdserverpb.KV/Txn", &txn.base, VD_ETCD_TOO_MANY_OPS);
	txn.n_success = 128;
	response = ETCD_ASK((struct etcd_server_fixture *) *state, "KV/Txn", &txn, txn_response);
	assert_true(response->succeeded);
	assert_int_equal(response->n_responses, 128);
	assert_int_equal(response->responses[5]->response_put->header->revision, 2);
	assert_int_equal(response->responses[5]->response_put->header->cluster_id, 0); /* E-122 */
	ETCD_FREE(response);
	puts[1].key = etcd_bytes("k0");
	etcd_server_ask_fails(*state, "/etcdserverpb.KV/Txn", &txn.base, VD_ETCD_DUPLICATE_KEY);
	puts[1].key = etcd_bytes("");
	etcd_server_ask_fails(*state, "/etcdserverpb.KV/Txn", &txn.base, VD_ETCD_EMPTY_KEY);
	ops[1].request_case = ETCDSERVERPB__REQUEST_OP__REQUEST__NOT_SET;
	etcd_server_ask_fails(*state, "/etcdserverpb.KV/Txn", &txn.base, VD_ETCD_KEY_NOT_FOUND);
}

/* Whether the call was answered before any actor ran: by the transport's own thread, which is a loop. */
static bool is_answered_at_once(struct etcd_server_fixture *fixture, const char *method,
				const ProtobufCMessage *request)
{
	struct etcd_server_call call;
	bool			at_once;

	etcd_server_call_post(&call, fixture, method, request);
	at_once = call.is_finished;
	(void) vdi_sim_run_until_idle(fixture->env);
	assert_true(call.is_finished);
	assert_int_equal(call.code, 0);
	etcd_server_call_end(&call);
	return at_once;
}

static void expect_op(const struct vd_op *op, const struct vd_op *wanted)
{
	assert_int_equal(op->kind, wanted->kind);
	assert_true(vd_bytes_equal(op->key, wanted->key));
	assert_true(vd_bytes_equal(op->value, wanted->value));
	assert_true(vd_bytes_equal(op->range_end, wanted->range_end));
	assert_int_equal(op->lease, wanted->lease);
	assert_int_equal(op->previous, wanted->previous);
	assert_int_equal(op->ignore_value, wanted->ignore_value);
	assert_int_equal(op->ignore_lease, wanted->ignore_lease);
}

/* A message with one field says nothing of the others, and what is unknown is passed over. */
static void each_field_is_read_alone(void **state)
{
	static const struct {
		const char  *bytes;
		size_t	     size;
		struct vd_op put, delete;
	} cases[] = {
		{ "", 0, { 0 }, { 0 } },
		{ "\x0a\1k", 3, { .key = { "k", 1 } }, { .key = { "k", 1 } } },
		{ "\x12\1v", 3, { .value = { "v", 1 } }, { .range_end = { "v", 1 } } },
		{ "\x18\7", 2, { .lease = 7 }, { .previous = true } },
		{ "\x18\0", 2, { 0 }, { 0 } },
		{ "\x20\1", 2, { .previous = true }, { 0 } },
		{ "\x20\0", 2, { 0 }, { 0 } },
		{ "\x28\1", 2, { .ignore_value = true }, { 0 } },
		{ "\x30\1", 2, { .ignore_lease = true }, { 0 } },
		{ "\x38\1", 2, { 0 }, { 0 } },
		{ "\x3a\2\x0a\1", 4, { 0 }, { 0 } },
		{ "\x0a\1a\x0a\1b", 6, { .key = { "b", 1 } }, { .key = { "b", 1 } } },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct vd_bytes message = { cases[i].bytes, cases[i].size };
		struct vd_op	put = cases[i].put, delete = cases[i].delete, op;

		put.kind = VD_OP_PUT;
		delete.kind = VD_OP_DELETE;
		assert_true(vdi_serve_put_decode(message, &op));
		expect_op(&op, &put);
		assert_true(vdi_serve_delete_decode(message, &op));
		expect_op(&op, &delete);
		if (message.size) { /* cut short */
			message.size--;
			if (cases[i].size != 6)
				assert_false(vdi_serve_put_decode(message, &op));
		}
	}
}

static void reads_without_a_bound_are_a_workers(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	Etcdserverpb__TxnRequest    txn = ETCDSERVERPB__TXN_REQUEST__INIT,
				 inner = ETCDSERVERPB__TXN_REQUEST__INIT;
	Etcdserverpb__RangeRequest range = ETCDSERVERPB__RANGE_REQUEST__INIT;
	Etcdserverpb__RequestOp	 op = ETCDSERVERPB__REQUEST_OP__INIT, nested = ETCDSERVERPB__REQUEST_OP__INIT;
	Etcdserverpb__RequestOp *list[100], *nested_list[] = { &nested };
	Etcdserverpb__Compare	 compare = ETCDSERVERPB__COMPARE__INIT, *compares[100];
	Etcdserverpb__LeaseTimeToLiveRequest ttl = ETCDSERVERPB__LEASE_TIME_TO_LIVE_REQUEST__INIT;
	Etcdserverpb__LeaseLeasesRequest     leases = ETCDSERVERPB__LEASE_LEASES_REQUEST__INIT;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(list); i++) {
		list[i] = &op;
		compares[i] = &compare;
	}
	range.key = compare.key = etcd_bytes("k");
	op.request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_RANGE;
	op.request_range = &range;
	compare.target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_VERSION;
	txn.success = txn.failure = list;
	txn.compare = compares;
	txn.n_success = txn.n_failure = txn.n_compare = 1;
	assert_true(is_answered_at_once(fixture, "/etcdserverpb.KV/Txn", &txn.base));
	compare.range_end = etcd_bytes("l");
	assert_false(is_answered_at_once(fixture, "/etcdserverpb.KV/Txn", &txn.base));
	compare.range_end = etcd_bytes("");
	range.range_end = etcd_bytes("l");
	assert_false(is_answered_at_once(fixture, "/etcdserverpb.KV/Txn", &txn.base));
	nested.request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_TXN;
	nested.request_txn = &txn;
	inner.failure = nested_list;
	inner.n_failure = 1;
	assert_false(is_answered_at_once(fixture, "/etcdserverpb.KV/Txn", &inner.base));
	range.range_end = etcd_bytes("");
	assert_true(is_answered_at_once(fixture, "/etcdserverpb.KV/Txn", &inner.base));
	txn.n_success = txn.n_failure = txn.n_compare = VDI_ARRAY_SIZE(list);
	assert_false(is_answered_at_once(fixture, "/etcdserverpb.KV/Txn", &txn.base));
	etcd_server_grant(fixture, 7, 300, 300);
	ttl.id = 7;
	assert_true(is_answered_at_once(fixture, "/etcdserverpb.Lease/LeaseTimeToLive", &ttl.base));
	ttl.keys = true;
	assert_false(is_answered_at_once(fixture, "/etcdserverpb.Lease/LeaseTimeToLive", &ttl.base));
	assert_false(is_answered_at_once(fixture, "/etcdserverpb.Lease/LeaseLeases", &leases.base));
}

/* Whether a transaction of so many transactions, of so many empty operations each, is decoded. */
static vd_status decode_nested(size_t outer, size_t inner, unsigned ops_max)
{
	static uint8_t	      bytes[20000], one[300];
	struct vdi_wire_out   out = { bytes, 0 };
	struct vdi_serve_txn *txn = NULL;
	vd_status	      status;

	for (size_t i = 0; i < outer; i++) {
		uint8_t		    op[300];
		struct vdi_wire_out list = { one, 0 }, nested = { op, 0 };

		for (size_t k = 0; k < inner; k++)
			vdi_wire_bytes_always(&list, 2 + k % 2, VD_BYTES_NONE);
		vdi_wire_bytes_always(&nested, 4, (struct vd_bytes) { one, list.size });
		vdi_wire_bytes_always(&out, 2, (struct vd_bytes) { op, nested.size });
	}
	status = vdi_serve_txn_decode((struct vd_bytes) { bytes, out.size }, ops_max, &txn);
	if (status == VD_OK)
		vdi_serve_txn_free(txn);
	return status;
}

/* Each list has its limit, and all of them together have one. */
static void e450_lists_and_their_sum_are_bounded(void **state)
{
	(void) state;
	assert_status(decode_nested(10, 0, 10), VD_OK);
	assert_status(decode_nested(11, 0, 10), VD_TOO_BIG);
	assert_status(decode_nested(1, 20, 10), VD_OK); /* ten in either list */
	assert_status(decode_nested(1, 21, 10), VD_TOO_BIG);
	assert_status(decode_nested(32, 127, 128), VD_OK); /* 4096 */
	assert_status(decode_nested(33, 127, 128), VD_TOO_BIG);
}

/* 5000 levels in 34 KB would overflow protobuf-c's stack. */
static void e450_deep_nesting_is_refused(void **state)
{
	static uint8_t		bytes[200000];
	size_t			size = 0;
	struct etcd_server_call call;

	for (int level = 0; level < 20000; level++) {
		uint8_t		    head[16];
		struct vdi_wire_out out = { head, 0 };

		/* The message so far becomes request_txn (4) of an operation (success, 2). */
		vdi_wire_varint(&out, VDI_WIRE_BYTES(2));
		vdi_wire_varint(&out, size + 1 + vdi_varint_size(size));
		vdi_wire_varint(&out, VDI_WIRE_BYTES(4));
		vdi_wire_varint(&out, size);
		if (size + out.size > sizeof bytes)
			break;
		memmove(bytes + out.size, bytes, size);
		memcpy(bytes, head, out.size);
		size += out.size;
	}
	etcd_server_call_init(&call, *state);
	etcd_server_call_open(&call, *state, "/etcdserverpb.KV/Txn");
	etcd_server_call_send_bytes(&call, bytes, size);
	assert_string_equal(call.text, vdi_serve_code_message(VD_ETCD_TOO_MANY_OPS));
	etcd_server_call_end(&call);
}

/* Each target with the field of each: the number counts where it is the target's own. A target that etcd does
 * not know is equal to everything. */
static void e452_every_target_with_every_field(void **state)
{
	static const uint8_t fields[] = {
		4, 5, 6, 7, 8
	}; /* version, create, mod, value, lease: in the order of the targets */

	(void) state;
	for (uint8_t target = 0; target < 7; target++)
		for (uint8_t result = 0; result < 4; result++)
			for (size_t i = 0; i < sizeof fields; i++) {
				uint8_t field = (uint8_t) (fields[i] << 3);

				uint8_t compare[] = {
					0x08, result, 0x10, target, 0x1a, 1, 'k', field, 42, 'v'
				};
				size_t		      size = sizeof compare - 1;
				uint8_t		      bytes[sizeof compare + 2] = { 0x0a };
				struct vdi_serve_txn *txn;

				if (fields[i] == 7) {
					compare[7] |= 2;
					compare[8] = 1;
					size++;
				}
				bytes[1] = (uint8_t) size;
				memcpy(bytes + 2, compare, size);
				assert_status(vdi_serve_txn_decode((struct vd_bytes) { bytes, size + 2 }, 128,
								   &txn),
					      VD_OK);
				assert_int_equal(txn->compare_count, 1);
				assert_true(vd_bytes_equal(txn->compares[0].key, vd_bytes_of("k")));
				if (target > VD_COMPARE_LEASE) {
					/* the same is neither more nor less, and not another one */
					bool holds = result == VD_COMPARE_EQUAL;

					assert_int_equal(txn->compares[0].target, VD_COMPARE_VERSION);
					assert_int_equal(txn->compares[0].result,
							 holds ? VD_COMPARE_GREATER : VD_COMPARE_LESS);
					assert_int_equal(txn->compares[0].number, holds ? -1 : 0);
				} else {
					assert_int_equal(txn->compares[0].target, target);
					assert_int_equal(txn->compares[0].result, result);
					assert_int_equal(txn->compares[0].number,
							 target == i && fields[i] != 7 ? 42 : 0);
					assert_true(vd_bytes_equal(txn->compares[0].value,
								   target == i && fields[i] == 7 ?
									   vd_bytes_of("v") :
									   VD_BYTES_NONE));
				}
				vdi_serve_txn_free(txn);
			}
}

static void e452_field_of_another_target_counts_as_zero(void **state)
{
	struct vdi_serve_txn *txn;
	static const uint8_t  value_for_mod[] = {
		 0x0a, 8, 0x10, 2, 0x1a, 1, 'k', 0x3a, 1, 'v'
	}; /* target MOD, key k, value "v" */

	(void) state;
	assert_status(
		vdi_serve_txn_decode((struct vd_bytes) { value_for_mod, sizeof value_for_mod }, 128, &txn),
		VD_OK);
	assert_int_equal(txn->compare_count, 1);
	assert_int_equal(txn->compares[0].target, VD_COMPARE_MOD);
	assert_int_equal(txn->compares[0].number, 0);
	assert_int_equal(txn->compares[0].value.size, 0);
	vdi_serve_txn_free(txn);
}

static Etcdserverpb__RequestOp *range_op(Etcdserverpb__RangeRequest *range, Etcdserverpb__RequestOp *op,
					 const char *key)
{
	*range = (Etcdserverpb__RangeRequest) ETCDSERVERPB__RANGE_REQUEST__INIT;
	*op = (Etcdserverpb__RequestOp) ETCDSERVERPB__REQUEST_OP__INIT;
	range->key = etcd_bytes(key);
	op->request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_RANGE;
	op->request_range = range;
	return op;
}

/* One compare, and one request on either side. */
static void put_together(Etcdserverpb__TxnRequest *txn, Etcdserverpb__Compare **compare,
			 Etcdserverpb__RequestOp **success, Etcdserverpb__RequestOp **failure)
{
	txn->compare = compare;
	txn->success = success;
	txn->failure = failure;
	txn->n_compare = txn->n_success = txn->n_failure = 1;
}

/* The two transactions that kube-apiserver writes with: one that loses has nothing to answer, or what is
 * there now. */
static void e606_e607_a_create_that_loses_answers_nothing_and_an_update_the_current(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	Etcdserverpb__TxnRequest    txn = ETCDSERVERPB__TXN_REQUEST__INIT;
	Etcdserverpb__Compare	    compare = ETCDSERVERPB__COMPARE__INIT;
	Etcdserverpb__Compare	   *compares[] = { &compare };
	Etcdserverpb__PutRequest    value;
	Etcdserverpb__RangeRequest  current;
	Etcdserverpb__RequestOp	    write, read;
	Etcdserverpb__RequestOp	   *success[] = { put_op(&value, &write, "p") };
	Etcdserverpb__RequestOp	   *failure[] = { range_op(&current, &read, "p") };
	Etcdserverpb__TxnResponse  *response;

	compare.target = ETCDSERVERPB__COMPARE__COMPARE_TARGET__MOD;
	compare.key = etcd_bytes("p");
	compare.target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_MOD_REVISION;
	txn.compare = compares;
	txn.n_compare = 1;
	txn.success = success;
	txn.n_success = 1;
	for (int i = 0; i < 2; i++) {
		response = ETCD_ASK(fixture, "KV/Txn", &txn, txn_response);
		assert_int_equal(response->succeeded, i == 0);
		assert_int_equal(response->header->revision, 2);
		assert_int_equal(response->n_responses, i == 0);
		ETCD_FREE(response);
	}
	txn.failure = failure;
	txn.n_failure = 1;
	compare.mod_revision = 2;
	for (int i = 0; i < 2; i++) {
		response = ETCD_ASK(fixture, "KV/Txn", &txn, txn_response);
		assert_int_equal(response->succeeded, i == 0);
		assert_int_equal(response->header->revision, 3);
		assert_int_equal(response->n_responses, 1);
		if (i == 1) {
			assert_int_equal(response->responses[0]->response_range->n_kvs, 1);
			assert_int_equal(response->responses[0]->response_range->kvs[0]->mod_revision, 3);
		}
		ETCD_FREE(response);
	}
	/* Deleted meanwhile: there is no current one. */
	etcd_server_delete(fixture, "p");
	response = ETCD_ASK(fixture, "KV/Txn", &txn, txn_response);
	assert_false(response->succeeded);
	assert_int_equal(response->responses[0]->response_range->n_kvs, 0);
	ETCD_FREE(response);
}

/* ---- Headers of the parts ---- */

/* The header of a part has its revision and nothing else, that of a transaction within not even that. */
static void e122_headers_of_the_parts(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	Etcdserverpb__TxnRequest    txn = ETCDSERVERPB__TXN_REQUEST__INIT,
				 inner = ETCDSERVERPB__TXN_REQUEST__INIT;
	Etcdserverpb__PutRequest   value, other;
	Etcdserverpb__RangeRequest current = ETCDSERVERPB__RANGE_REQUEST__INIT;
	Etcdserverpb__RequestOp	   write, write_inside, read = ETCDSERVERPB__REQUEST_OP__INIT,
						     nested = ETCDSERVERPB__REQUEST_OP__INIT;
	Etcdserverpb__RequestOp *list[] = { put_op(&value, &write, "p"), &read, &nested },
				*inside[] = { put_op(&other, &write_inside, "q") };
	Etcdserverpb__TxnResponse	   *response;
	const Etcdserverpb__ResponseHeader *headers[3];

	current.key = etcd_bytes("p");
	read.request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_RANGE;
	read.request_range = &current;
	inner.success = inside;
	inner.n_success = 1;
	nested.request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_TXN;
	nested.request_txn = &inner;
	txn.success = list;
	txn.n_success = 3;
	response = ETCD_ASK(fixture, "KV/Txn", &txn, txn_response);
	assert_int_equal(response->n_responses, 3);
	assert_int_equal(response->header->revision, 2);
	assert_int_equal(response->header->cluster_id, fixture->server->cluster_id);
	headers[0] = response->responses[0]->response_put->header;
	headers[1] = response->responses[1]->response_range->header;
	headers[2] = response->responses[2]->response_txn->header;
	for (int i = 0; i < 3; i++) {
		assert_non_null(headers[i]);
		assert_int_equal(headers[i]->revision, i < 2 ? 2 : 0);
		assert_true(headers[i]->cluster_id == 0 && headers[i]->member_id == 0 &&
			    headers[i]->raft_term == 0);
	}
	assert_int_equal(response->responses[2]->response_txn->responses[0]->response_put->header->revision,
			 2);
	ETCD_FREE(response);
}

/* ---- kube-apiserver ---- */

static void compare_revision(Etcdserverpb__Compare *compare, const char *key, int64_t revision)
{
	*compare = (Etcdserverpb__Compare) ETCDSERVERPB__COMPARE__INIT;
	compare->target = ETCDSERVERPB__COMPARE__COMPARE_TARGET__MOD;
	compare->key = etcd_bytes(key);
	compare->target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_MOD_REVISION;
	compare->mod_revision = revision;
}

/* One that comes too late sees what is there; one that is in time gets a revision of its own; and then there
 * is nothing to see. */
static void e608_a_delete_by_revision(void **state)
{
	struct etcd_server_fixture	*fixture = *state;
	Etcdserverpb__TxnRequest	 txn = ETCDSERVERPB__TXN_REQUEST__INIT;
	Etcdserverpb__Compare		 compare, *compares[] = { &compare };
	Etcdserverpb__DeleteRangeRequest victim = ETCDSERVERPB__DELETE_RANGE_REQUEST__INIT;
	Etcdserverpb__RangeRequest	 current;
	Etcdserverpb__RequestOp delete = ETCDSERVERPB__REQUEST_OP__INIT, read;
	Etcdserverpb__RequestOp *success[] = { &delete }, *failure[] = { range_op(&current, &read, "p") };
	const int64_t		 revisions[] = { 2, 3, 3 };

	etcd_server_put(fixture, "p", "1");
	etcd_server_put(fixture, "p", "2"); /* revision 3 */
	victim.key = etcd_bytes("p");
	delete.request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_DELETE_RANGE;
	delete.request_delete_range = &victim;
	put_together(&txn, compares, success, failure);
	for (int i = 0; i < 3; i++) {
		Etcdserverpb__TxnResponse *response;

		compare_revision(&compare, "p", revisions[i]);
		response = ETCD_ASK(fixture, "KV/Txn", &txn, txn_response);
		assert_int_equal(response->succeeded, i == 1);
		assert_int_equal(response->header->revision, i == 0 ? 3 : 4);
		if (i == 1)
			assert_int_equal(response->responses[0]->response_delete_range->deleted, 1);
		else
			assert_int_equal(response->responses[0]->response_range->n_kvs, i == 0);
		ETCD_FREE(response);
	}
}

/* Two compactors with the same key: the version decides whose turn it is, and who loses learns it. */
static void e610_the_compactors_take_turns(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	Etcdserverpb__TxnRequest    txn = ETCDSERVERPB__TXN_REQUEST__INIT;
	Etcdserverpb__Compare	    compare = ETCDSERVERPB__COMPARE__INIT, *compares[] = { &compare };
	Etcdserverpb__PutRequest    value;
	Etcdserverpb__RangeRequest  current;
	Etcdserverpb__RequestOp	    write, read;
	Etcdserverpb__RequestOp	   *success[] = { put_op(&value, &write, "compact_rev_key") },
				*failure[] = { range_op(&current, &read, "compact_rev_key") };
	int64_t known[2] = { 0, 0 }; /* versions */

	compare.target = ETCDSERVERPB__COMPARE__COMPARE_TARGET__VERSION;
	compare.target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_VERSION;
	compare.key = etcd_bytes("compact_rev_key");
	put_together(&txn, compares, success, failure);
	for (int round = 0; round < 6; round++) {
		int			   who = round % 2;
		Etcdserverpb__TxnResponse *response;

		compare.version = known[who];
		response = ETCD_ASK(fixture, "KV/Txn", &txn, txn_response);
		assert_int_equal(response->succeeded, who == 0);
		if (who == 0) {
			known[0]++;
			assert_int_equal(response->header->revision, known[0] + 1);
		} else {
			const Mvccpb__KeyValue *kv = response->responses[0]->response_range->kvs[0];

			assert_int_equal(kv->version, known[0]);
			known[1] = kv->version - 1; /* it slept through a round */
		}
		ETCD_FREE(response);
	}
	etcd_server_compact(fixture, known[0]);
}

/* As in etcd, a compare of an unknown kind holds, whatever the record. */
static void e451_an_unknown_comparison_holds(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	Etcdserverpb__TxnRequest    txn = ETCDSERVERPB__TXN_REQUEST__INIT;
	Etcdserverpb__Compare	    compare = ETCDSERVERPB__COMPARE__INIT, *compares[] = { &compare };

	etcd_server_put(fixture, "k", "v");
	compare.key = etcd_bytes("k");
	compare.target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_VERSION;
	txn.compare = compares;
	txn.n_compare = 1;
	for (int result = 0; result < 7; result++)
		for (int64_t version = 0; version < 3; version++) {
			Etcdserverpb__TxnResponse *response;
			bool holds[] = { version == 1, 1 > version, 1 < version, version != 1 };

			compare.result = (Etcdserverpb__Compare__CompareResult) result;
			compare.version = version;
			response = ETCD_ASK(fixture, "KV/Txn", &txn, txn_response);
			assert_int_equal(response->succeeded, result < 4 ? holds[result] : true);
			ETCD_FREE(response);
		}
}

/* What is no message within a message. */
static void e450_parts_that_cannot_be_read(void **state)
{
	static const struct {
		const char *bytes;
		size_t	    size;
	} rows[] = {
		{ "\x0a\x02\x1a\x7f", 4 },		   /* a compare */
		{ "\x12\x02\x0a\x7f", 4 },		   /* an operation */
		{ "\x1a\x02\x0a\x7f", 4 },		   /* one of the others */
		{ "\x12\x04\x0a\x02\x0a\x7f", 6 },	   /* a range */
		{ "\x12\x04\x12\x02\x0a\x7f", 6 },	   /* a put */
		{ "\x12\x04\x1a\x02\x0a\x7f", 6 },	   /* a delete */
		{ "\x12\x04\x22\x02\x0a\x7f", 6 },	   /* a transaction */
		{ "\x12\x06\x22\x04\x0a\x02\x1a\x7f", 8 }, /* its compare */
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct etcd_server_call call;

		etcd_server_call_init(&call, *state);
		etcd_server_call_open(&call, *state, "/etcdserverpb.KV/Txn");
		etcd_server_call_send_bytes(&call, rows[i].bytes, rows[i].size);
		assert_true(call.is_finished);
		if (call.code != VDI_RPC_INTERNAL)
			fail_msg("row %zu: %d %s", i, call.code, call.text);
		etcd_server_call_end(&call);
	}
}

/* ---- Memory ---- */

/* Every allocation of a call fails in turn: the answer is an error or right, and nothing is lost. */
static void torture_txn(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	static const uint8_t	    txn[] = { 0x0a, 7, 0x10, 2, 0x1a, 1, 'k', 0x30, 0,	    /* mod(k) == 0 */
					      0x12, 8, 0x12, 6, 0x0a, 1, 'k', 0x12, 1, 'v', /* put */
					      0x1a, 5, 0x0a, 3, 0x0a, 1, 'k' };		    /* range */
	bool			    done = false;

	for (uint64_t nth = 1; !done && nth < 200; nth++) {
		struct etcd_server_call call;

		etcd_server_call_init(&call, fixture);
		etcd_server_call_open(&call, fixture, "/etcdserverpb.KV/Txn");
		(void) vdi_alloc_fail_nth(nth, 1);
		etcd_server_call_send_bytes(&call, txn, sizeof txn);
		done = !vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_true(call.is_finished);
		assert_true(call.code == 0 || call.code == 8);
		etcd_server_call_end(&call);
	}
	assert_true(done);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, etcd_server_setup, etcd_server_teardown)
		CASE(e450_limits_of_transactions),
		CASE(each_field_is_read_alone),
		CASE(reads_without_a_bound_are_a_workers),
		cmocka_unit_test(e450_lists_and_their_sum_are_bounded),
		CASE(e450_deep_nesting_is_refused),
		cmocka_unit_test(e452_every_target_with_every_field),
		CASE(e452_field_of_another_target_counts_as_zero),
		CASE(e122_headers_of_the_parts),
		CASE(e606_e607_a_create_that_loses_answers_nothing_and_an_update_the_current),
		CASE(e608_a_delete_by_revision),
		CASE(e610_the_compactors_take_turns),
		CASE(e451_an_unknown_comparison_holds),
		CASE(e450_parts_that_cannot_be_read),
		CASE(torture_txn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
