/* KV, leases and maintenance of the etcd server without a network: requests and answers by protobuf-c, and the transcripts taken from a real etcd. */
#include "etcd_server_fixture.h"

#include "actor_sim.h"
#include "serve_txn.h"
#include "vdtest.h"

#define ASK(fixture, method, request, answer) etcd_server_ask(fixture, NULL, "/etcdserverpb." method, &(request)->base, &etcdserverpb__##answer##__descriptor)
#define FREE(answer) protobuf_c_message_free_unpacked(&(answer)->base, NULL)

static int setup(void **state)
{
	struct etcd_server_fixture *fixture = malloc(sizeof *fixture);

	etcd_server_fixture_open(fixture, NULL);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	etcd_server_fixture_close(*state);
	free(*state);
	return vdi_alloc_live() == 0 ? 0 : -1;
}

static Etcdserverpb__RangeResponse *range(struct etcd_server_fixture *fixture, const Etcdserverpb__RangeRequest *request)
{
	return ASK(fixture, "KV/Range", request, range_response);
}

static int64_t put(struct etcd_server_fixture *fixture, const char *key, const char *value, int64_t lease)
{
	Etcdserverpb__PutRequest   request = ETCDSERVERPB__PUT_REQUEST__INIT;
	Etcdserverpb__PutResponse *response;
	int64_t			   revision;

	request.key = etcd_bytes(key);
	request.value = etcd_bytes(value);
	request.lease = lease;
	response = ASK(fixture, "KV/Put", &request, put_response);
	revision = response->header->revision;
	FREE(response);
	return revision;
}

static void grant(struct etcd_server_fixture *fixture, int64_t id, int64_t ttl, int64_t ttl_wanted)
{
	Etcdserverpb__LeaseGrantRequest	  request = ETCDSERVERPB__LEASE_GRANT_REQUEST__INIT;
	Etcdserverpb__LeaseGrantResponse *response;

	request.id = id;
	request.ttl = ttl;
	response = ASK(fixture, "Lease/LeaseGrant", &request, lease_grant_response);
	assert_int_equal(response->id, id);
	assert_int_equal(response->ttl, ttl_wanted);
	FREE(response);
}

/* ---- Header (E-120, E-121) ---- */

static void e121_header_is_whole_and_a_fresh_store_is_at_1(void **state)
{
	struct etcd_server_fixture    *fixture = *state;
	Etcdserverpb__RangeRequest     request = ETCDSERVERPB__RANGE_REQUEST__INIT;
	Etcdserverpb__RangeResponse   *response;

	request.key = etcd_bytes("a");
	response = range(fixture, &request);
	assert_int_equal(response->header->revision, 1);
	assert_int_equal(response->header->cluster_id, fixture->server->cluster_id);
	assert_int_equal(response->header->member_id, fixture->server->member_id);
	assert_true(response->header->cluster_id != 0 && response->header->member_id != 0);
	assert_int_equal(response->header->raft_term, 2);
	assert_int_equal(response->n_kvs, 0);
	FREE(response);
}

static void e103_unknown_method_is_unimplemented(void **state)
{
	Etcdserverpb__RangeRequest request = ETCDSERVERPB__RANGE_REQUEST__INIT;
	struct etcd_server_call	   call;

	etcd_server_call_init(&call, *state);
	assert_null(etcd_server_ask(*state, &call, "/etcdserverpb.KV/Nothing", &request.base, &etcdserverpb__range_response__descriptor));
	assert_int_equal(call.code, 12);
	assert_string_equal(call.text, "unknown method Nothing for service etcdserverpb.KV");
	etcd_server_call_init(&call, *state);
	assert_null(etcd_server_ask(*state, &call, "/v3lockpb.Lock/Lock", &request.base, &etcdserverpb__range_response__descriptor));
	assert_string_equal(call.text, "unknown service v3lockpb.Lock");
}

static void e155_health_is_of_the_whole_server(void **state)
{
	struct etcd_server_call call;

	etcd_server_call_init(&call, *state);
	etcd_server_call_open(&call, *state, "/grpc.health.v1.Health/Check");
	etcd_server_call_send_bytes(&call, "", 0);
	assert_true(call.is_finished);
	assert_int_equal(call.code, 0);
	assert_int_equal(call.count, 1);
	assert_int_equal(call.sizes[0], 2);
	assert_memory_equal(call.messages[0], "\x08\x01", 2); /* SERVING */
	etcd_server_call_end(&call);
	etcd_server_call_init(&call, *state);
	etcd_server_call_open(&call, *state, "/grpc.health.v1.Health/Check");
	etcd_server_call_send_bytes(&call, "\x0a\x01x", 3);
	assert_int_equal(call.code, 5);
	assert_string_equal(call.text, "unknown service");
	etcd_server_call_end(&call);
}

static void e160_one_member_that_can_be_reached(void **state)
{
	struct etcd_server_fixture	 *fixture = *state;
	Etcdserverpb__MemberListRequest	  request = ETCDSERVERPB__MEMBER_LIST_REQUEST__INIT;
	Etcdserverpb__MemberListResponse *response;

	vdi_etcdserver_set_client_url(fixture->server, "http://127.0.0.1:2379");
	for (int linearizable = 0; linearizable < 2; linearizable++) {
		request.linearizable = linearizable;
		response = ASK(fixture, "Cluster/MemberList", &request, member_list_response);
		assert_int_equal(response->n_members, 1);
		assert_int_equal(response->members[0]->id, fixture->server->member_id);
		assert_true(*response->members[0]->name);
		assert_false(response->members[0]->islearner);
		assert_int_equal(response->members[0]->n_clienturls, 1);
		assert_string_equal(response->members[0]->clienturls[0], "http://127.0.0.1:2379");
		FREE(response);
	}
}

static void e104_unknown_fields_are_ignored_and_garbage_is_refused(void **state)
{
	/* key a; field 99 as a group with a nested one; field 3 (limit) as bytes: unknown too */
	static const uint8_t good[] = { 0x0a, 1, 'a', 0x9b, 6, 0x08, 1, 0x13, 0x14, 0x9c, 6, 0x1a, 2, 'x', 'y' };
	static const uint8_t bad[][4] = { { 0x0a, 5, 'a', 'b' }, { 0xff, 0xff, 0xff, 0xff }, { 0x0c, 0, 0, 0 }, { 0x0b, 0x0b, 0x0b, 0x0b }, { 0x00, 1, 2, 3 } };
	struct etcd_server_call call;

	etcd_server_call_init(&call, *state);
	etcd_server_call_open(&call, *state, "/etcdserverpb.KV/Range");
	etcd_server_call_send_bytes(&call, good, sizeof good);
	assert_true(call.is_finished);
	assert_int_equal(call.code, 0);
	etcd_server_call_end(&call);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(bad); i++) {
		etcd_server_call_init(&call, *state);
		etcd_server_call_open(&call, *state, "/etcdserverpb.KV/Range");
		etcd_server_call_send_bytes(&call, bad[i], sizeof bad[i]);
		assert_int_equal(call.code, 13);
		etcd_server_call_end(&call);
	}
}

/* ---- The golden transcript 11.1, from its fifth row on ---- */

static void e1101_unary_transcript(void **state)
{
	struct etcd_server_fixture     *fixture = *state;
	Etcdserverpb__LeaseGrantRequest lease = ETCDSERVERPB__LEASE_GRANT_REQUEST__INIT;
	Etcdserverpb__CompactionRequest compact = ETCDSERVERPB__COMPACTION_REQUEST__INIT;
	Etcdserverpb__RangeRequest	request = ETCDSERVERPB__RANGE_REQUEST__INIT;
	Etcdserverpb__RangeResponse    *response;
	Etcdserverpb__CompactionResponse *compacted;

	compacted = ASK(fixture, "KV/Compact", &compact, compaction_response);
	assert_int_equal(compacted->header->revision, 1);
	FREE(compacted);
	etcd_server_ask_fails(fixture, "/etcdserverpb.KV/Compact", &compact.base, VD_ETCD_COMPACTED);
	grant(fixture, 77, -5, 2);
	lease.id = 77;
	lease.ttl = 10;
	etcd_server_ask_fails(fixture, "/etcdserverpb.Lease/LeaseGrant", &lease.base, VD_ETCD_LEASE_EXIST);
	lease.id = 79;
	lease.ttl = 9000000001;
	etcd_server_ask_fails(fixture, "/etcdserverpb.Lease/LeaseGrant", &lease.base, VD_ETCD_LEASE_TTL_TOO_LARGE);
	grant(fixture, 78, 500, 500);
	assert_int_equal(put(fixture, "b", "9", 0), 2);
	assert_int_equal(put(fixture, "a", "8", 78), 3);
	assert_int_equal(put(fixture, "c", "7", 0), 4);
	assert_int_equal(put(fixture, "d", "6", 0), 5);

	request.key = etcd_bytes("a");
	request.keys_only = true;
	response = range(fixture, &request);
	assert_int_equal(response->header->revision, 5);
	assert_int_equal(response->count, 1);
	assert_int_equal(response->kvs[0]->create_revision, 3);
	assert_int_equal(response->kvs[0]->version, 1);
	assert_int_equal(response->kvs[0]->value.len, 0);
	assert_int_equal(response->kvs[0]->lease, 0);
	FREE(response);

	request.keys_only = false;
	request.range_end = (ProtobufCBinaryData) { 1, (uint8_t *) (uintptr_t) "\0" };
	request.limit = 1;
	request.sort_target = ETCDSERVERPB__RANGE_REQUEST__SORT_TARGET__VALUE;
	response = range(fixture, &request);
	/* E-428: the first two by key, sorted by value ascending, cut to one: b is 9, a is 8 */
	assert_int_equal(response->n_kvs, 1);
	assert_int_equal(response->kvs[0]->key.data[0], 'a');
	assert_int_equal(response->kvs[0]->lease, 78);
	assert_true(response->more);
	assert_int_equal(response->count, 4);
	FREE(response);

	request = (Etcdserverpb__RangeRequest) ETCDSERVERPB__RANGE_REQUEST__INIT;
	etcd_server_ask_fails(fixture, "/etcdserverpb.KV/Range", &request.base, VD_ETCD_EMPTY_KEY);
	request.key = etcd_bytes("a");
	request.sort_order = (Etcdserverpb__RangeRequest__SortOrder) 9;
	etcd_server_ask_fails(fixture, "/etcdserverpb.KV/Range", &request.base, VD_ETCD_INVALID_SORT_OPTION);
	request.sort_order = 0;
	request.revision = 300;
	etcd_server_ask_fails(fixture, "/etcdserverpb.KV/Range", &request.base, VD_ETCD_FUTURE_REVISION);
	request.revision = -3;
	response = range(fixture, &request);
	assert_int_equal(response->n_kvs, 1);
	FREE(response);
}

/* ---- Range ---- */

static void fill(struct etcd_server_fixture *fixture)
{
	static const char *const keys[] = { "r/3", "r/1", "r/2", "r/5", "r/4" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(keys); i++) {
		char value[8];

		(void) snprintf(value, sizeof value, "%zu", 9 - i);
		(void) put(fixture, keys[i], value, 0);
	}
	(void) put(fixture, "r/1", "0", 0);
}

static void expect_keys(struct etcd_server_fixture *fixture, const Etcdserverpb__RangeRequest *options, const char *keys, bool more, int64_t count)
{
	Etcdserverpb__RangeRequest   request = *options;
	Etcdserverpb__RangeResponse *response;
	char			     found[64] = "";

	request.key = etcd_bytes("r/");
	request.range_end = etcd_bytes("r0");
	response = range(fixture, &request);
	for (size_t i = 0; i < response->n_kvs; i++)
		(void) snprintf(found + i, sizeof found - i, "%c", response->kvs[i]->key.data[2]);
	assert_string_equal(found, keys);
	assert_int_equal(response->more, more);
	assert_int_equal(response->count, count);
	FREE(response);
}

static void e427_filters_then_sort_then_limit(void **state)
{
	Etcdserverpb__RangeRequest request = ETCDSERVERPB__RANGE_REQUEST__INIT;

	fill(*state); /* 3 at 2, 1 at 3 (again at 7), 2 at 4, 5 at 5, 4 at 6 */
	expect_keys(*state, &request, "12345", false, 5);
	request.limit = 2;
	expect_keys(*state, &request, "12", true, 5);
	request.sort_order = ETCDSERVERPB__RANGE_REQUEST__SORT_ORDER__DESCEND;
	expect_keys(*state, &request, "54", true, 5);
	request.sort_target = ETCDSERVERPB__RANGE_REQUEST__SORT_TARGET__MOD;
	expect_keys(*state, &request, "14", true, 5);
	request.limit = 0;
	request.sort_target = ETCDSERVERPB__RANGE_REQUEST__SORT_TARGET__CREATE;
	expect_keys(*state, &request, "45213", false, 5);
	request.sort_target = ETCDSERVERPB__RANGE_REQUEST__SORT_TARGET__VALUE;
	request.sort_order = ETCDSERVERPB__RANGE_REQUEST__SORT_ORDER__ASCEND;
	expect_keys(*state, &request, "14523", false, 5);
	request = (Etcdserverpb__RangeRequest) ETCDSERVERPB__RANGE_REQUEST__INIT;
	request.min_mod_revision = 4;
	request.max_mod_revision = 6;
	expect_keys(*state, &request, "245", false, 5);
	request.limit = 2;
	expect_keys(*state, &request, "24", true, 5);
	request = (Etcdserverpb__RangeRequest) ETCDSERVERPB__RANGE_REQUEST__INIT;
	request.max_create_revision = 3;
	expect_keys(*state, &request, "13", false, 5);
	request.count_only = true;
	expect_keys(*state, &request, "", false, 5);
	request.max_create_revision = 0;
	request.min_create_revision = 5;
	request.count_only = false;
	expect_keys(*state, &request, "45", false, 5);
}

static void e428_without_order_only_the_first_by_key_are_sorted(void **state)
{
	Etcdserverpb__RangeRequest request = ETCDSERVERPB__RANGE_REQUEST__INIT;

	fill(*state);
	request.limit = 2;
	request.sort_target = ETCDSERVERPB__RANGE_REQUEST__SORT_TARGET__CREATE;
	/* 1, 2, 3 by key; by creation 3 (2), 1 (3), 2 (4) */
	expect_keys(*state, &request, "31", true, 5);
	request.sort_order = ETCDSERVERPB__RANGE_REQUEST__SORT_ORDER__ASCEND;
	expect_keys(*state, &request, "31", true, 5);
	request.sort_target = ETCDSERVERPB__RANGE_REQUEST__SORT_TARGET__VERSION;
	request.limit = 0;
	expect_keys(*state, &request, "23451", false, 5); /* ties by key */
}

static void e424_long_ranges_are_answered_by_a_worker(void **state)
{
	struct etcd_server_fixture  *fixture = *state;
	Etcdserverpb__RangeRequest   request = ETCDSERVERPB__RANGE_REQUEST__INIT;
	Etcdserverpb__RangeResponse *response;
	char			     key[16];

	for (int i = 0; i < 600; i++) {
		(void) snprintf(key, sizeof key, "k%04d", i);
		(void) put(fixture, key, "v", 0);
	}
	request.key = etcd_bytes("k");
	request.range_end = etcd_bytes("l");
	response = range(fixture, &request);
	assert_int_equal(response->n_kvs, 600);
	for (int i = 0; i < 600; i++) {
		(void) snprintf(key, sizeof key, "k%04d", i);
		assert_memory_equal(response->kvs[i]->key.data, key, 5);
	}
	FREE(response);
}

static void e431_range_stream_is_one_range_in_chunks(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	Etcdserverpb__RangeRequest  request = ETCDSERVERPB__RANGE_REQUEST__INIT;
	struct etcd_server_call	    call;
	size_t			    keys = 0;
	char			    key[16];

	for (int i = 0; i < 100; i++) {
		(void) snprintf(key, sizeof key, "k%04d", i);
		(void) put(fixture, key, "v", 0);
	}
	request.key = etcd_bytes("k");
	request.range_end = etcd_bytes("l");
	request.limit = 95;
	etcd_server_call_init(&call, fixture);
	call.room = 2;
	etcd_server_call_open(&call, fixture, "/etcdserverpb.KV/RangeStream");
	etcd_server_call_send(&call, &request.base);
	assert_int_equal(call.count, 2); /* no room for more: it waits */
	assert_false(call.is_finished);
	(void) put(fixture, "k0000x", "later", 0);
	etcd_server_call_make_room(&call, SIZE_MAX);
	assert_true(call.is_finished);
	assert_int_equal(call.code, 0);
	for (size_t i = 0; i < call.count; i++) {
		Etcdserverpb__RangeStreamResponse *part = etcdserverpb__range_stream_response__unpack(NULL, call.sizes[i], (const uint8_t *) call.messages[i]);
		bool				   is_last = i + 1 == call.count;

		assert_int_equal(part->range_response->header != NULL, is_last);
		if (i == 0)
			assert_int_equal(part->range_response->n_kvs, 10);
		keys += part->range_response->n_kvs;
		if (is_last) {
			assert_int_equal(part->range_response->header->revision, 101);
			assert_true(part->range_response->more);
			assert_int_equal(part->range_response->count, 100);
		}
		etcdserverpb__range_stream_response__free_unpacked(part, NULL);
	}
	assert_int_equal(keys, 95);
	etcd_server_call_end(&call);
	/* And one whose client goes away in the middle. */
	etcd_server_call_init(&call, fixture);
	call.room = 1;
	etcd_server_call_open(&call, fixture, "/etcdserverpb.KV/RangeStream");
	etcd_server_call_send(&call, &request.base);
	etcd_server_call_end(&call);
	request.sort_order = ETCDSERVERPB__RANGE_REQUEST__SORT_ORDER__DESCEND;
	etcd_server_call_init(&call, fixture);
	assert_null(etcd_server_ask(fixture, &call, "/etcdserverpb.KV/RangeStream", &request.base, &etcdserverpb__range_response__descriptor));
	assert_string_equal(call.text, "RangeStream does not support custom sort orders");
}

/* ---- Txn ---- */

static Etcdserverpb__RequestOp *put_op(Etcdserverpb__PutRequest *request, Etcdserverpb__RequestOp *op, const char *key)
{
	*request = (Etcdserverpb__PutRequest) ETCDSERVERPB__PUT_REQUEST__INIT;
	request->key = etcd_bytes(key);
	*op = (Etcdserverpb__RequestOp) ETCDSERVERPB__REQUEST_OP__INIT;
	op->request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_PUT;
	op->request_put = request;
	return op;
}

static void e450_limits_of_transactions(void **state)
{
	Etcdserverpb__TxnRequest txn = ETCDSERVERPB__TXN_REQUEST__INIT;
	Etcdserverpb__PutRequest puts[129];
	Etcdserverpb__RequestOp	 ops[129];
	Etcdserverpb__RequestOp *list[129];
	char			 keys[129][8];
	Etcdserverpb__TxnResponse *response;

	for (int i = 0; i < 129; i++) {
		(void) snprintf(keys[i], sizeof keys[i], "k%d", i);
		list[i] = put_op(&puts[i], &ops[i], keys[i]);
	}
	txn.success = list;
	txn.n_success = 129;
	etcd_server_ask_fails(*state, "/etcdserverpb.KV/Txn", &txn.base, VD_ETCD_TOO_MANY_OPS);
	txn.n_success = 128;
	response = ASK((struct etcd_server_fixture *) *state, "KV/Txn", &txn, txn_response);
	assert_true(response->succeeded);
	assert_int_equal(response->n_responses, 128);
	assert_int_equal(response->responses[5]->response_put->header->revision, 2);
	assert_int_equal(response->responses[5]->response_put->header->cluster_id, 0); /* E-122 */
	FREE(response);
	puts[1].key = etcd_bytes("k0");
	etcd_server_ask_fails(*state, "/etcdserverpb.KV/Txn", &txn.base, VD_ETCD_DUPLICATE_KEY);
	puts[1].key = etcd_bytes("");
	etcd_server_ask_fails(*state, "/etcdserverpb.KV/Txn", &txn.base, VD_ETCD_EMPTY_KEY);
	ops[1].request_case = ETCDSERVERPB__REQUEST_OP__REQUEST__NOT_SET;
	etcd_server_ask_fails(*state, "/etcdserverpb.KV/Txn", &txn.base, VD_ETCD_KEY_NOT_FOUND);
}

/* 5000 levels in 34 KB would overflow protobuf-c's stack. */
static void e450_deep_nesting_is_refused(void **state)
{
	static uint8_t		bytes[200000];
	size_t			size = 0;
	struct etcd_server_call call;

	for (int level = 0; level < 20000; level++) {
		uint8_t head[16];
		struct vdi_wire_out out = { head, 0 };

		/* The message so far becomes request_txn (4) of an operation (success, 2). */
		vdi_wire_varint(&out, VDI_WIRE_BYTES(2));
		vdi_wire_varint(&out, size + 1 + vdi_wire_varint_size(size));
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

static void e452_field_of_another_target_counts_as_zero(void **state)
{
	struct vdi_serve_txn *txn;
	static const uint8_t  value_for_mod[] = { 0x0a, 8, 0x10, 2, 0x1a, 1, 'k', 0x3a, 1, 'v' }; /* target MOD, key k, value "v" */

	(void) state;
	assert_status(vdi_serve_txn_decode((struct vd_bytes) { value_for_mod, sizeof value_for_mod }, 128, &txn), VD_OK);
	assert_int_equal(txn->compare_count, 1);
	assert_int_equal(txn->compares[0].target, VD_COMPARE_MOD);
	assert_int_equal(txn->compares[0].number, 0);
	assert_int_equal(txn->compares[0].value.size, 0);
	vdi_serve_txn_free(txn);
}

/* ---- Limits ---- */

static void e465_request_too_large(void **state)
{
	Etcdserverpb__PutRequest request = ETCDSERVERPB__PUT_REQUEST__INIT;
	uint8_t			*value = calloc(1, 1600000);

	request.key = etcd_bytes("big");
	request.value = (ProtobufCBinaryData) { 1600000, value };
	etcd_server_ask_fails(*state, "/etcdserverpb.KV/Put", &request.base, VD_ETCD_REQUEST_TOO_LARGE);
	free(value);
}

static void e466_quota_raises_the_alarm_and_e467_it_stays(void **state)
{
	struct etcd_server_fixture    *fixture = *state;
	Etcdserverpb__PutRequest       request = ETCDSERVERPB__PUT_REQUEST__INIT;
	Etcdserverpb__AlarmRequest     alarm = ETCDSERVERPB__ALARM_REQUEST__INIT;
	Etcdserverpb__LeaseGrantRequest lease = ETCDSERVERPB__LEASE_GRANT_REQUEST__INIT;
	Etcdserverpb__StatusRequest    status = ETCDSERVERPB__STATUS_REQUEST__INIT;
	Etcdserverpb__AlarmResponse   *alarms;
	Etcdserverpb__StatusResponse  *answer;

	fixture->server->options.quota_bytes = 300;
	(void) put(fixture, "a", "1", 0); /* 258 */
	request.key = etcd_bytes("a");
	request.value = etcd_bytes("0123456789012345678901234567890123456789012");
	etcd_server_ask_fails(fixture, "/etcdserverpb.KV/Put", &request.base, VD_ETCD_NO_SPACE);
	fixture->server->options.quota_bytes = -1;
	request.value = etcd_bytes("1");
	etcd_server_ask_fails(fixture, "/etcdserverpb.KV/Put", &request.base, VD_ETCD_NO_SPACE);
	request.key = etcd_bytes(""); /* the quota comes before the checks */
	etcd_server_ask_fails(fixture, "/etcdserverpb.KV/Put", &request.base, VD_ETCD_NO_SPACE);
	etcd_server_ask_fails(fixture, "/etcdserverpb.Lease/LeaseGrant", &lease.base, VD_ETCD_NO_SPACE);
	etcd_server_delete(fixture, "a"); /* passes */
	answer = ASK(fixture, "Maintenance/Status", &status, status_response);
	assert_int_equal(answer->n_errors, 1);
	assert_non_null(strstr(answer->errors[0], " alarm:NOSPACE"));
	FREE(answer);
	alarm.action = ETCDSERVERPB__ALARM_REQUEST__ALARM_ACTION__DEACTIVATE;
	alarm.memberid = fixture->server->member_id;
	alarm.alarm = ETCDSERVERPB__ALARM_TYPE__NOSPACE;
	alarms = ASK(fixture, "Maintenance/Alarm", &alarm, alarm_response);
	assert_int_equal(alarms->n_alarms, 1);
	FREE(alarms);
	alarms = ASK(fixture, "Maintenance/Alarm", &alarm, alarm_response);
	assert_int_equal(alarms->n_alarms, 0);
	FREE(alarms);
	(void) put(fixture, "a", "1", 0);
}

static void alarm_corrupt(struct etcd_server_fixture *fixture, Etcdserverpb__AlarmRequest__AlarmAction action)
{
	Etcdserverpb__AlarmRequest   alarm = ETCDSERVERPB__ALARM_REQUEST__INIT;
	Etcdserverpb__AlarmResponse *answer;

	alarm.action = action;
	alarm.memberid = fixture->server->member_id;
	alarm.alarm = ETCDSERVERPB__ALARM_TYPE__CORRUPT;
	answer = ASK(fixture, "Maintenance/Alarm", &alarm, alarm_response);
	assert_int_equal(answer->n_alarms, 1);
	FREE(answer);
}

static void e468_nothing_is_written_while_corrupt(void **state)
{
	struct etcd_server_fixture	*fixture = *state;
	Etcdserverpb__PutRequest	 request = ETCDSERVERPB__PUT_REQUEST__INIT;
	Etcdserverpb__DeleteRangeRequest delete = ETCDSERVERPB__DELETE_RANGE_REQUEST__INIT;
	Etcdserverpb__TxnRequest	 txn = ETCDSERVERPB__TXN_REQUEST__INIT;
	Etcdserverpb__CompactionRequest	 compact = ETCDSERVERPB__COMPACTION_REQUEST__INIT;
	Etcdserverpb__LeaseGrantRequest	 lease = ETCDSERVERPB__LEASE_GRANT_REQUEST__INIT;
	Etcdserverpb__LeaseRevokeRequest revoke = ETCDSERVERPB__LEASE_REVOKE_REQUEST__INIT;

	grant(fixture, 7, 100, 100);
	(void) put(fixture, "a", "1", 7);
	alarm_corrupt(fixture, ETCDSERVERPB__ALARM_REQUEST__ALARM_ACTION__ACTIVATE);
	request.key = delete.key = etcd_bytes("a");
	compact.revision = 2;
	lease.ttl = 100;
	revoke.id = 7;
	etcd_server_ask_fails(fixture, "/etcdserverpb.KV/Put", &request.base, VD_ETCD_CORRUPT);
	etcd_server_ask_fails(fixture, "/etcdserverpb.KV/DeleteRange", &delete.base, VD_ETCD_CORRUPT);
	etcd_server_ask_fails(fixture, "/etcdserverpb.KV/Txn", &txn.base, VD_ETCD_CORRUPT);
	etcd_server_ask_fails(fixture, "/etcdserverpb.KV/Compact", &compact.base, VD_ETCD_CORRUPT);
	etcd_server_ask_fails(fixture, "/etcdserverpb.Lease/LeaseGrant", &lease.base, VD_ETCD_CORRUPT);
	etcd_server_ask_fails(fixture, "/etcdserverpb.Lease/LeaseRevoke", &revoke.base, VD_ETCD_CORRUPT);
	alarm_corrupt(fixture, ETCDSERVERPB__ALARM_REQUEST__ALARM_ACTION__DEACTIVATE);
	assert_int_equal(put(fixture, "a", "2", 7), 3);
}

/* The two transactions that kube-apiserver writes with: one that loses has nothing to answer, or what is there now. */
static void e606_a_create_that_loses_answers_nothing_and_e607_an_update_the_current(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	Etcdserverpb__TxnRequest    txn = ETCDSERVERPB__TXN_REQUEST__INIT;
	Etcdserverpb__Compare	    compare = ETCDSERVERPB__COMPARE__INIT;
	Etcdserverpb__Compare	   *compares[] = { &compare };
	Etcdserverpb__PutRequest    value;
	Etcdserverpb__RangeRequest  current = ETCDSERVERPB__RANGE_REQUEST__INIT;
	Etcdserverpb__RequestOp	    write;
	Etcdserverpb__RequestOp	    read = ETCDSERVERPB__REQUEST_OP__INIT;
	Etcdserverpb__RequestOp	   *success[] = { put_op(&value, &write, "p") };
	Etcdserverpb__RequestOp	   *failure[] = { &read };
	Etcdserverpb__TxnResponse  *response;

	compare.target = ETCDSERVERPB__COMPARE__COMPARE_TARGET__MOD;
	compare.key = etcd_bytes("p");
	compare.target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_MOD_REVISION;
	txn.compare = compares;
	txn.n_compare = 1;
	txn.success = success;
	txn.n_success = 1;
	for (int i = 0; i < 2; i++) {
		response = ASK(fixture, "KV/Txn", &txn, txn_response);
		assert_int_equal(response->succeeded, i == 0);
		assert_int_equal(response->header->revision, 2);
		assert_int_equal(response->n_responses, i == 0);
		FREE(response);
	}
	current.key = etcd_bytes("p");
	read.request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_RANGE;
	read.request_range = &current;
	txn.failure = failure;
	txn.n_failure = 1;
	compare.mod_revision = 2;
	for (int i = 0; i < 2; i++) {
		response = ASK(fixture, "KV/Txn", &txn, txn_response);
		assert_int_equal(response->succeeded, i == 0);
		assert_int_equal(response->header->revision, 3);
		assert_int_equal(response->n_responses, 1);
		if (i == 1) {
			assert_int_equal(response->responses[0]->response_range->n_kvs, 1);
			assert_int_equal(response->responses[0]->response_range->kvs[0]->mod_revision, 3);
		}
		FREE(response);
	}
}

/* ---- HashKV: the vectors of upstream's hash_test.go ---- */

static const char *hash_key(int i)
{
	static const char *const names[] = { "alice", "bob", "celine", "dominik", "eve", "frederica", "gorge" };

	return i % 142 == 30 ? "zenek" : i % 71 == 30 ? "xavery" : names[i % 7];
}

static void put_for_hash(struct etcd_server_fixture *fixture, int i)
{
	char value[16];

	(void) snprintf(value, sizeof value, "%d", i);
	(void) put(fixture, hash_key(i), value, 0);
}

static Etcdserverpb__HashKVResponse *hash_kv(struct etcd_server_fixture *fixture, int64_t revision)
{
	Etcdserverpb__HashKVRequest request = ETCDSERVERPB__HASH_KVREQUEST__INIT;

	request.revision = revision;
	return ASK(fixture, "Maintenance/HashKV", &request, hash_kvresponse);
}

static void compact(struct etcd_server_fixture *fixture, int64_t revision)
{
	Etcdserverpb__CompactionRequest	  request = ETCDSERVERPB__COMPACTION_REQUEST__INIT;
	Etcdserverpb__CompactionResponse *response;

	request.revision = revision;
	request.physical = true;
	response = ASK(fixture, "KV/Compact", &request, compaction_response);
	FREE(response);
}

static void e472_golden_hashes_with_compactions_behind(void **state)
{
	static const struct {
		int64_t	 revision;
		uint32_t hash;
		int64_t	 compacted;
	} wanted[] = { { 35, 4082599214, -1 }, { 106, 2279933401, 35 }, { 177, 3284231217, 106 }, { 248, 126286495, 177 } };

	for (int round = 0; round < 4; round++) {
		Etcdserverpb__HashKVResponse *response;

		for (int i = round * 71; i <= round * 71 + 71; i++)
			put_for_hash(*state, i);
		response = hash_kv(*state, wanted[round].revision);
		assert_int_equal(response->hash, wanted[round].hash);
		assert_int_equal(response->compact_revision, wanted[round].compacted);
		assert_int_equal(response->hash_revision, wanted[round].revision);
		assert_int_equal(response->header->revision, 73 + round * 72);
		FREE(response);
		compact(*state, wanted[round].revision);
	}
}

static void e472_golden_hashes_of_the_newest_revision(void **state)
{
	static const uint32_t wanted[] = { 1913897190, 224860069, 1565167519 };

	for (int round = 0; round < 3; round++) {
		Etcdserverpb__HashKVResponse *response;

		for (int i = round * 71; i <= round * 71 + 71; i++)
			put_for_hash(*state, i);
		response = hash_kv(*state, 0);
		assert_int_equal(response->hash, wanted[round]);
		assert_int_equal(response->hash_revision, 73 + round * 72);
		FREE(response);
		compact(*state, 73 + round * 72);
	}
}

static void expect_hash(struct etcd_server_fixture *fixture, int64_t revision, uint32_t wanted)
{
	Etcdserverpb__HashKVResponse *response = hash_kv(fixture, revision);

	assert_int_equal(response->hash, wanted);
	FREE(response);
}

/* What etcd 3.7.3 says. At a revision whose transaction deleted all there was and made some of it again, nothing counts as kept, so nothing old is left out; one
 * revision on, all is as usual. */
static void e124_a_hash_says_of_which_revision_and_when(void **state)
{
	Etcdserverpb__HashKVResponse *response;

	for (int i = 0; i < 3; i++)
		(void) put(*state, "k", "v", 0);
	for (int64_t revision = 0; revision <= 4; revision += 2) {
		response = hash_kv(*state, revision);
		assert_int_equal(response->header->revision, 4);
		assert_int_equal(response->hash_revision, revision ? revision : 4);
		FREE(response);
	}
}

static void e470_a_revision_that_makes_everything_again_keeps_nothing(void **state)
{
	struct etcd_server_fixture	*fixture = *state;
	Etcdserverpb__TxnRequest	 txn = ETCDSERVERPB__TXN_REQUEST__INIT;
	Etcdserverpb__TxnResponse	*response;
	Etcdserverpb__PutRequest	 put_a = ETCDSERVERPB__PUT_REQUEST__INIT;
	Etcdserverpb__DeleteRangeRequest delete_all = ETCDSERVERPB__DELETE_RANGE_REQUEST__INIT;
	Etcdserverpb__RequestOp		 ops[2] = { ETCDSERVERPB__REQUEST_OP__INIT, ETCDSERVERPB__REQUEST_OP__INIT };
	Etcdserverpb__RequestOp		*list[2] = { &ops[0], &ops[1] };

	put(fixture, "a", "1", 0);
	put(fixture, "b", "2", 0);
	compact(fixture, 3);
	delete_all.key = (ProtobufCBinaryData) { 1, (uint8_t *) "" };
	delete_all.range_end = (ProtobufCBinaryData) { 1, (uint8_t *) "" };
	put_a.key = etcd_bytes("a");
	put_a.value = etcd_bytes("3");
	ops[0].request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_DELETE_RANGE;
	ops[0].request_delete_range = &delete_all;
	ops[1].request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_PUT;
	ops[1].request_put = &put_a;
	txn.success = list;
	txn.n_success = 2;
	response = ASK(fixture, "KV/Txn", &txn, txn_response);
	assert_int_equal(response->header->revision, 4);
	FREE(response);
	expect_hash(fixture, 4, 2469020438);
	put(fixture, "b", "4", 0);
	expect_hash(fixture, 4, 2469020438);
	expect_hash(fixture, 5, 1823821643);
}

/* ---- Leases ---- */

static void e503_keep_alive_stream(void **state)
{
	struct etcd_server_fixture	  *fixture = *state;
	Etcdserverpb__LeaseKeepAliveRequest request = ETCDSERVERPB__LEASE_KEEP_ALIVE_REQUEST__INIT;
	struct etcd_server_call		    call;
	static const struct {
		int64_t id;
		int64_t ttl;
	} steps[] = { { 7, 60 }, { 8, 0 }, { 7, 60 } };

	grant(fixture, 7, 60, 60);
	etcd_server_call_init(&call, fixture);
	etcd_server_call_open(&call, fixture, "/etcdserverpb.Lease/LeaseKeepAlive");
	call.room = 1;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(steps); i++) {
		Etcdserverpb__LeaseKeepAliveResponse *response;

		request.id = steps[i].id;
		etcd_server_call_send(&call, &request.base);
		if (call.count == i) {
			assert_int_equal(call.wanted, 0); /* who does not read his answers is not read either */
			etcd_server_call_make_room(&call, 1);
		}
		assert_int_equal(call.count, i + 1);
		response = etcdserverpb__lease_keep_alive_response__unpack(NULL, call.sizes[i], (const uint8_t *) call.messages[i]);
		assert_int_equal(response->id, steps[i].id);
		assert_int_equal(response->ttl, steps[i].ttl);
		etcdserverpb__lease_keep_alive_response__free_unpacked(response, NULL);
	}
	etcd_server_call_send(&call, NULL);
	assert_true(call.is_finished);
	assert_int_equal(call.code, 0);
	etcd_server_call_end(&call);
}

static void e505_leases_by_remaining_time(void **state)
{
	Etcdserverpb__LeaseLeasesRequest   request = ETCDSERVERPB__LEASE_LEASES_REQUEST__INIT;
	Etcdserverpb__LeaseLeasesResponse *response;

	grant(*state, 1, 300, 300);
	grant(*state, -2, 100, 100);
	grant(*state, 3, 200, 200);
	response = ASK((struct etcd_server_fixture *) *state, "Lease/LeaseLeases", &request, lease_leases_response);
	assert_int_equal(response->n_leases, 3);
	assert_int_equal(response->leases[0]->id, -2);
	assert_int_equal(response->leases[1]->id, 3);
	assert_int_equal(response->leases[2]->id, 1);
	FREE(response);
}

/* ---- Memory ---- */

/* Every allocation of a call fails in turn: the answer is an error or right, and nothing is lost. */
static void torture_txn(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	static const uint8_t	    txn[] = { 0x0a, 7, 0x10, 2, 0x1a, 1, 'k', 0x30, 0,	/* mod(k) == 0 */
					      0x12, 8, 0x12, 6, 0x0a, 1, 'k', 0x12, 1, 'v', /* put */
					      0x1a, 5, 0x0a, 3, 0x0a, 1, 'k' };		/* range */
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
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		CASE(e121_header_is_whole_and_a_fresh_store_is_at_1),
		CASE(e103_unknown_method_is_unimplemented),
		CASE(e155_health_is_of_the_whole_server),
		CASE(e160_one_member_that_can_be_reached),
		CASE(e104_unknown_fields_are_ignored_and_garbage_is_refused),
		CASE(e1101_unary_transcript),
		CASE(e427_filters_then_sort_then_limit),
		CASE(e428_without_order_only_the_first_by_key_are_sorted),
		CASE(e424_long_ranges_are_answered_by_a_worker),
		CASE(e431_range_stream_is_one_range_in_chunks),
		CASE(e450_limits_of_transactions),
		CASE(e450_deep_nesting_is_refused),
		CASE(e452_field_of_another_target_counts_as_zero),
		CASE(e465_request_too_large),
		CASE(e468_nothing_is_written_while_corrupt),
		CASE(e606_a_create_that_loses_answers_nothing_and_e607_an_update_the_current),
		CASE(e124_a_hash_says_of_which_revision_and_when),
		CASE(e466_quota_raises_the_alarm_and_e467_it_stays),
		CASE(e472_golden_hashes_with_compactions_behind),
		CASE(e472_golden_hashes_of_the_newest_revision),
		CASE(e470_a_revision_that_makes_everything_again_keeps_nothing),
		CASE(e503_keep_alive_stream),
		CASE(e505_leases_by_remaining_time),
		CASE(torture_txn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
