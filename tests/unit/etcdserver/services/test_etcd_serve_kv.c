/* KV and limits of the etcd server without a network: requests and answers by protobuf-c, and the transcripts
 * taken from a real etcd. */
#include "etcd_server_fixture.h"
#include "vdtest.h"

static void e121_header_is_whole_and_a_fresh_store_is_at_1(void **state)
{
	struct etcd_server_fixture  *fixture = *state;
	Etcdserverpb__RangeRequest   request = ETCDSERVERPB__RANGE_REQUEST__INIT;
	Etcdserverpb__RangeResponse *response;

	request.key = etcd_bytes("a");
	response = etcd_server_range(fixture, &request);
	assert_int_equal(response->header->revision, 1);
	assert_int_equal(response->header->cluster_id, fixture->server->cluster_id);
	assert_int_equal(response->header->member_id, fixture->server->member_id);
	assert_true(response->header->cluster_id != 0 && response->header->member_id != 0);
	assert_int_equal(response->header->raft_term, 2);
	assert_int_equal(response->n_kvs, 0);
	ETCD_FREE(response);
}

static const char *range_with(struct etcd_server_fixture *fixture, const char *version,
			      const char *has_leader)
{
	static char		   text[540];
	Etcdserverpb__RangeRequest request = ETCDSERVERPB__RANGE_REQUEST__INIT;
	struct etcd_server_call	   call;
	void			  *answer;

	request.key = etcd_bytes("a");
	etcd_server_call_init(&call, fixture);
	call.client_version = version;
	call.has_leader = has_leader;
	answer = etcd_server_ask(fixture, &call, "/etcdserverpb.KV/Range", &request.base,
				 &etcdserverpb__range_response__descriptor);
	assert_true((answer == NULL) == (call.code != 0));
	(void) snprintf(text, sizeof text, "%d %s", call.code, call.text);
	if (answer)
		ETCD_FREE(answer);
	return text;
}

static void open_watch_with(struct etcd_server_fixture *fixture, const char *version, int code)
{
	struct etcd_server_call call;

	etcd_server_call_init(&call, fixture);
	call.client_version = version;
	call.has_leader = "true";
	etcd_server_call_open(&call, fixture, "/etcdserverpb.Watch/Watch");
	assert_int_equal(call.is_finished, code != 0);
	assert_int_equal(call.code, code);
	etcd_server_call_end(&call);
}

/* A client says which API it speaks, or does not; what is no text is refused, of calls and of streams. One
 * member always has a leader. */
static void e141_the_version_of_the_client_is_text_and_counted(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	struct vdi_buffer	    body;
	char			    version[8];

	assert_string_equal(range_with(fixture, NULL, NULL), "0 ");
	assert_string_equal(range_with(fixture, "3.8", "true"), "0 ");
	assert_string_equal(range_with(fixture, "3.8", NULL), "0 ");
	assert_string_equal(range_with(fixture, "3\xff", NULL), "3 etcdserver: invalid client api version");
	assert_string_equal(range_with(fixture, "\xc0\x80", NULL),
			    "3 etcdserver: invalid client api version");
	assert_string_equal(range_with(fixture, "\"}\n\xc3\xa9", NULL), "0 ");
	assert_string_equal(range_with(fixture, "", NULL), "0 ");
	assert_string_equal(range_with(fixture, "0123456789abcde", NULL), "0 ");
	assert_string_equal(range_with(fixture, "0123456789abcdef", NULL),
			    "0 "); /* too long for a label of ours */
	open_watch_with(fixture, "3.8", 0);
	open_watch_with(fixture, "3.8\xed\xa0\x80", 3);
	for (int i = 0; i < 100; i++) {
		(void) snprintf(version, sizeof version, "9.%d", i);
		assert_string_equal(range_with(fixture, version, NULL), "0 ");
	}
	vdi_buffer_init(&body, 1 << 16);
	vdi_serve_clients_render(&fixture->server->clients, &body);
	vdi_buffer_append(&body, (struct vd_bytes) { "", 1 });
	assert_status(vdi_buffer_status(&body), VD_OK);
	assert_non_null(strstr(
		vdi_buffer_bytes(&body).data,
		"etcd_server_client_requests_total{client_api_version=\"unknown\",type=\"unary\"} 1\n"));
	assert_non_null(
		strstr(vdi_buffer_bytes(&body).data, "{client_api_version=\"3.8\",type=\"unary\"} 2\n"));
	assert_non_null(
		strstr(vdi_buffer_bytes(&body).data, "{client_api_version=\"3.8\",type=\"stream\"} 1\n"));
	assert_non_null(strstr(vdi_buffer_bytes(&body).data,
			       "{client_api_version=\"0123456789abcde\",type=\"unary\"} 1\n"));
	assert_non_null(
		strstr(vdi_buffer_bytes(&body).data, "{client_api_version=\"9.11\",type=\"unary\"} 1\n"));
	assert_null(strstr(vdi_buffer_bytes(&body).data, "\"9.12\"")); /* what a client makes up is bounded */
	assert_non_null(
		strstr(vdi_buffer_bytes(&body).data, "{client_api_version=\"other\",type=\"unary\"} 91\n"));
	vdi_buffer_fini(&body);
}

static void e103_unknown_method_is_unimplemented(void **state)
{
	Etcdserverpb__RangeRequest request = ETCDSERVERPB__RANGE_REQUEST__INIT;
	struct etcd_server_call	   call;

	etcd_server_call_init(&call, *state);
	assert_null(etcd_server_ask(*state, &call, "/etcdserverpb.KV/Nothing", &request.base,
				    &etcdserverpb__range_response__descriptor));
	assert_int_equal(call.code, 12);
	assert_string_equal(call.text, "unknown method Nothing for service etcdserverpb.KV");
	etcd_server_call_init(&call, *state);
	assert_null(etcd_server_ask(*state, &call, "/v3lockpb.Lock/Lock", &request.base,
				    &etcdserverpb__range_response__descriptor));
	assert_string_equal(call.text, "unknown service v3lockpb.Lock");
}

static void e104_unknown_fields_are_ignored_and_garbage_is_refused(void **state)
{
	/* key a; field 99 as a group with a nested one; field 3 (limit) as bytes: unknown too */
	static const uint8_t good[] = {
		0x0a, 1, 'a', 0x9b, 6, 0x08, 1, 0x13, 0x14, 0x9c, 6, 0x1a, 2, 'x', 'y'
	};
	static const uint8_t	bad[][4] = { { 0x0a, 5, 'a', 'b' },
					     { 0xff, 0xff, 0xff, 0xff },
					     { 0x0c, 0, 0, 0 },
					     { 0x0b, 0x0b, 0x0b, 0x0b },
					     { 0x00, 1, 2, 3 } };
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

static void e1101_unary_transcript(void **state)
{
	struct etcd_server_fixture	 *fixture = *state;
	Etcdserverpb__LeaseGrantRequest	  lease = ETCDSERVERPB__LEASE_GRANT_REQUEST__INIT;
	Etcdserverpb__CompactionRequest	  compact = ETCDSERVERPB__COMPACTION_REQUEST__INIT;
	Etcdserverpb__RangeRequest	  request = ETCDSERVERPB__RANGE_REQUEST__INIT;
	Etcdserverpb__RangeResponse	 *response;
	Etcdserverpb__CompactionResponse *compacted;

	compacted = ETCD_ASK(fixture, "KV/Compact", &compact, compaction_response);
	assert_int_equal(compacted->header->revision, 1);
	ETCD_FREE(compacted);
	etcd_server_ask_fails(fixture, "/etcdserverpb.KV/Compact", &compact.base, VD_ETCD_COMPACTED);
	etcd_server_grant(fixture, 77, -5, 2);
	lease.id = 77;
	lease.ttl = 10;
	etcd_server_ask_fails(fixture, "/etcdserverpb.Lease/LeaseGrant", &lease.base, VD_ETCD_LEASE_EXIST);
	lease.id = 79;
	lease.ttl = 9000000001;
	etcd_server_ask_fails(fixture, "/etcdserverpb.Lease/LeaseGrant", &lease.base,
			      VD_ETCD_LEASE_TTL_TOO_LARGE);
	etcd_server_grant(fixture, 78, 500, 500);
	assert_int_equal(etcd_server_put_leased(fixture, "b", "9", 0), 2);
	assert_int_equal(etcd_server_put_leased(fixture, "a", "8", 78), 3);
	assert_int_equal(etcd_server_put_leased(fixture, "c", "7", 0), 4);
	assert_int_equal(etcd_server_put_leased(fixture, "d", "6", 0), 5);

	request.key = etcd_bytes("a");
	request.keys_only = true;
	response = etcd_server_range(fixture, &request);
	assert_int_equal(response->header->revision, 5);
	assert_int_equal(response->count, 1);
	assert_int_equal(response->kvs[0]->create_revision, 3);
	assert_int_equal(response->kvs[0]->version, 1);
	assert_int_equal(response->kvs[0]->value.len, 0);
	assert_int_equal(response->kvs[0]->lease, 0);
	ETCD_FREE(response);

	request.keys_only = false;
	request.range_end = (ProtobufCBinaryData) { 1, (uint8_t *) (uintptr_t) "\0" };
	request.limit = 1;
	request.sort_target = ETCDSERVERPB__RANGE_REQUEST__SORT_TARGET__VALUE;
	response = etcd_server_range(fixture, &request);
	/* E-428: the first two by key, sorted by value ascending, cut to one: b is 9, a is 8 */
	assert_int_equal(response->n_kvs, 1);
	assert_int_equal(response->kvs[0]->key.data[0], 'a');
	assert_int_equal(response->kvs[0]->lease, 78);
	assert_true(response->more);
	assert_int_equal(response->count, 4);
	ETCD_FREE(response);

	request = (Etcdserverpb__RangeRequest) ETCDSERVERPB__RANGE_REQUEST__INIT;
	etcd_server_ask_fails(fixture, "/etcdserverpb.KV/Range", &request.base, VD_ETCD_EMPTY_KEY);
	request.key = etcd_bytes("a");
	request.sort_order = (Etcdserverpb__RangeRequest__SortOrder) 9;
	etcd_server_ask_fails(fixture, "/etcdserverpb.KV/Range", &request.base, VD_ETCD_INVALID_SORT_OPTION);
	request.sort_order = 0;
	request.revision = 300;
	etcd_server_ask_fails(fixture, "/etcdserverpb.KV/Range", &request.base, VD_ETCD_FUTURE_REVISION);
	request.revision = -3;
	response = etcd_server_range(fixture, &request);
	assert_int_equal(response->n_kvs, 1);
	ETCD_FREE(response);
}

static void fill(struct etcd_server_fixture *fixture)
{
	static const char *const keys[] = { "r/3", "r/1", "r/2", "r/5", "r/4" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(keys); i++) {
		char value[8];

		(void) snprintf(value, sizeof value, "%zu", 9 - i);
		(void) etcd_server_put_leased(fixture, keys[i], value, 0);
	}
	(void) etcd_server_put_leased(fixture, "r/1", "0", 0);
}

static void expect_keys(struct etcd_server_fixture *fixture, const Etcdserverpb__RangeRequest *options,
			const char *keys, bool more, int64_t count)
{
	Etcdserverpb__RangeRequest   request = *options;
	Etcdserverpb__RangeResponse *response;
	char			     found[64] = "";

	request.key = etcd_bytes("r/");
	request.range_end = etcd_bytes("r0");
	response = etcd_server_range(fixture, &request);
	for (size_t i = 0; i < response->n_kvs; i++)
		(void) snprintf(found + i, sizeof found - i, "%c", response->kvs[i]->key.data[2]);
	assert_string_equal(found, keys);
	assert_int_equal(response->more, more);
	assert_int_equal(response->count, count);
	ETCD_FREE(response);
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
	request.limit = 2;
	expect_keys(*state, &request, "", false, 5); /* nothing was cut: nothing was asked for */
	request.limit = 0;
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
	/* By value 1, 4, 5, 2, 3: without an order 4 is not read. */
	request.sort_target = ETCDSERVERPB__RANGE_REQUEST__SORT_TARGET__VALUE;
	expect_keys(*state, &request, "14", true, 5);
	request.sort_order = ETCDSERVERPB__RANGE_REQUEST__SORT_ORDER__NONE;
	expect_keys(*state, &request, "12", true, 5);
	request.sort_order = ETCDSERVERPB__RANGE_REQUEST__SORT_ORDER__ASCEND;
	request.sort_target = ETCDSERVERPB__RANGE_REQUEST__SORT_TARGET__VERSION;
	request.limit = 0;
	expect_keys(*state, &request, "23451", false, 5); /* ties by key */
}

/* Names alone: no value, and no lease either, unless the order wants the values read. Counting wins. */
static void e429_keys_only(void **state)
{
	struct etcd_server_fixture  *fixture = *state;
	Etcdserverpb__RangeRequest   request = ETCDSERVERPB__RANGE_REQUEST__INIT;
	Etcdserverpb__RangeResponse *response;

	etcd_server_grant(fixture, 7, 100, 100);
	(void) etcd_server_put_leased(fixture, "a", "1", 7);
	request.key = etcd_bytes("a");
	request.keys_only = true;
	for (int by_value = 0; by_value < 2; by_value++) {
		request.sort_target = by_value ? ETCDSERVERPB__RANGE_REQUEST__SORT_TARGET__VALUE :
						 ETCDSERVERPB__RANGE_REQUEST__SORT_TARGET__KEY;
		response = etcd_server_range(fixture, &request);
		assert_int_equal(response->n_kvs, 1);
		assert_int_equal(response->kvs[0]->value.len, 0);
		assert_int_equal(response->kvs[0]->lease, by_value ? 7 : 0);
		assert_int_equal(response->kvs[0]->mod_revision, 2);
		ETCD_FREE(response);
	}
	request.count_only = true;
	response = etcd_server_range(fixture, &request);
	assert_int_equal(response->n_kvs, 0);
	assert_int_equal(response->count, 1);
	assert_false(response->more);
	ETCD_FREE(response);
	/* Sorted by values that are not told. */
	(void) etcd_server_put_leased(fixture, "a", "2", 0);
	(void) etcd_server_put_leased(fixture, "b", "1", 0);
	request.count_only = false;
	request.range_end = etcd_bytes("c");
	request.sort_order = ETCDSERVERPB__RANGE_REQUEST__SORT_ORDER__ASCEND;
	request.sort_target = ETCDSERVERPB__RANGE_REQUEST__SORT_TARGET__VALUE;
	response = etcd_server_range(fixture, &request);
	assert_int_equal(response->n_kvs, 2);
	assert_memory_equal(response->kvs[0]->key.data, "b", 1);
	assert_int_equal(response->kvs[0]->value.len + response->kvs[1]->value.len, 0);
	ETCD_FREE(response);
}

/* Either kind sees every write that was answered before. */
static void e430_reads_see_what_was_acknowledged(void **state)
{
	struct etcd_server_fixture  *fixture = *state;
	Etcdserverpb__RangeRequest   request = ETCDSERVERPB__RANGE_REQUEST__INIT;
	Etcdserverpb__RangeResponse *response;

	request.key = etcd_bytes("a");
	for (int i = 0; i < 20; i++) {
		int64_t revision = etcd_server_put_leased(fixture, "a", "1", 0);

		request.serializable = i % 2;
		response = etcd_server_range(fixture, &request);
		assert_int_equal(response->kvs[0]->mod_revision, revision);
		assert_int_equal(response->header->revision, revision);
		ETCD_FREE(response);
	}
}

/* As kube-apiserver pages: the second page begins behind the last key of the first and is of the same
 * revision, whatever has been written in between. */
static void e603_e604_e605_pages_of_one_revision(void **state)
{
	struct etcd_server_fixture  *fixture = *state;
	Etcdserverpb__RangeRequest   request = ETCDSERVERPB__RANGE_REQUEST__INIT;
	Etcdserverpb__RangeResponse *response;
	char			     next[16];

	fill(fixture); /* five keys, revision 7 */
	request.key = etcd_bytes("r/");
	request.range_end = etcd_bytes("r0");
	request.limit = 2;
	response = etcd_server_range(fixture, &request);
	assert_int_equal(response->n_kvs, 2);
	assert_int_equal(response->count, 5);
	assert_true(response->more);
	assert_int_equal(response->header->revision, 7);
	memcpy(next, response->kvs[1]->key.data, response->kvs[1]->key.len);
	next[response->kvs[1]->key.len] = 0;
	request.key = (ProtobufCBinaryData) { response->kvs[1]->key.len + 1, (uint8_t *) next };
	ETCD_FREE(response);
	(void) etcd_server_put_leased(fixture, "r/3", "new", 0);
	etcd_server_delete(fixture, "r/4");
	request.revision = 7;
	request.limit = 500;
	response = etcd_server_range(fixture, &request);
	assert_int_equal(response->n_kvs, 3);
	assert_int_equal(response->count, 3);
	assert_false(response->more);
	assert_int_equal(response->header->revision, 9);
	assert_memory_equal(response->kvs[0]->key.data, "r/3", 3);
	assert_int_equal(response->kvs[0]->mod_revision, 2);
	assert_memory_equal(response->kvs[1]->key.data, "r/4", 3);
	ETCD_FREE(response);
	request = (Etcdserverpb__RangeRequest) ETCDSERVERPB__RANGE_REQUEST__INIT;
	request.key = etcd_bytes("r/3");
	request.limit = 1;
	request.revision = 7;
	response = etcd_server_range(fixture, &request);
	assert_int_equal(response->kvs[0]->mod_revision, 2);
	assert_int_equal(response->header->revision, 9);
	ETCD_FREE(response);
	request.key = etcd_bytes("r/");
	request.range_end = etcd_bytes("r0");
	request.revision = 0;
	request.count_only = true;
	response = etcd_server_range(fixture, &request);
	assert_int_equal(response->count, 4);
	assert_int_equal(response->n_kvs, 0);
	ETCD_FREE(response);
	request.count_only = false;
	request.keys_only = true;
	request.limit = 0;
	response = etcd_server_range(fixture, &request);
	assert_int_equal(response->count, 4);
	assert_int_equal(response->n_kvs, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(response->kvs[i]->key.len, 3);
		assert_int_equal(response->kvs[i]->value.len, 0);
	}
	ETCD_FREE(response);
}

/* rules: E-150 */
static void e465_request_too_large(void **state)
{
	Etcdserverpb__PutRequest request = ETCDSERVERPB__PUT_REQUEST__INIT;
	uint8_t			*value = calloc(1, 1600000);

	Etcdserverpb__TxnRequest txn = ETCDSERVERPB__TXN_REQUEST__INIT;
	Etcdserverpb__RequestOp	 op = ETCDSERVERPB__REQUEST_OP__INIT, *ops[] = { &op };
	struct etcd_server_call	 call;

	request.key = etcd_bytes("big");
	request.value = (ProtobufCBinaryData) { 1600000, value };
	/* To the byte: 1.5 MiB with the 17 bytes around a request in upstream's log. */
	request.value.len -= protobuf_c_message_get_packed_size(&request.base) - ((3 << 19) - 17);
	assert_int_equal(protobuf_c_message_get_packed_size(&request.base), (3 << 19) - 17);
	ETCD_FREE(ETCD_ASK(*state, "KV/Put", &request, put_response));
	request.value.len++;
	etcd_server_ask_fails(*state, "/etcdserverpb.KV/Put", &request.base, VD_ETCD_REQUEST_TOO_LARGE);
	/* A transaction as a whole. */
	op.request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_PUT;
	op.request_put = &request;
	txn.n_success = 1;
	txn.success = ops;
	request.value.len -= protobuf_c_message_get_packed_size(&txn.base) - ((3 << 19) - 17);
	assert_int_equal(protobuf_c_message_get_packed_size(&txn.base), (3 << 19) - 17);
	ETCD_FREE(ETCD_ASK(*state, "KV/Txn", &txn, txn_response));
	request.value.len++;
	etcd_server_ask_fails(*state, "/etcdserverpb.KV/Txn", &txn.base, VD_ETCD_REQUEST_TOO_LARGE);
	/* A delete of "k", with a field that nobody knows. */
	memcpy(value, "\x0a\1k\x7a\xf4\xff\x5f", 7);
	etcd_server_call_init(&call, *state);
	etcd_server_call_open(&call, *state, "/etcdserverpb.KV/DeleteRange");
	etcd_server_call_send_bytes(&call, value, 7 + 0x17fff4);
	assert_string_equal(call.text, vdi_serve_code_message(VD_ETCD_REQUEST_TOO_LARGE));
	etcd_server_call_end(&call);
	free(value);
}

/* What a call costs: refused when it does not fit into the rest by one byte. rules: E-512 */
static void e466_leases_and_transactions_have_a_cost(void **state)
{
	struct etcd_server_fixture     *fixture = *state;
	Etcdserverpb__LeaseGrantRequest lease = ETCDSERVERPB__LEASE_GRANT_REQUEST__INIT;
	Etcdserverpb__PutRequest	put = ETCDSERVERPB__PUT_REQUEST__INIT, other;
	Etcdserverpb__RequestOp	 op = ETCDSERVERPB__REQUEST_OP__INIT, other_op, *ops[] = { &op, &other_op };
	Etcdserverpb__TxnRequest txn = ETCDSERVERPB__TXN_REQUEST__INIT;
	struct vd_store_status	 status;

	lease.ttl = 100;
	put.key = etcd_bytes("k");
	put.value = etcd_bytes("value");
	op.request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_PUT;
	op.request_put = &put;
	other = put;
	other.key = etcd_bytes("l");
	other_op = op;
	other_op.request_put = &other;
	/* Of its branches the dearer one counts, although it is not the one that is made. */
	txn.n_success = 1;
	txn.n_failure = 2;
	txn.success = txn.failure = ops;
	for (unsigned fits = 0; fits < 2; fits++) {
		const int64_t costs[] = { 64, 2 * (256 + 1 + 5) };

		for (size_t i = 0; i < VDI_ARRAY_SIZE(costs); i++) {
			const char *method =
				i == 0 ? "/etcdserverpb.Lease/LeaseGrant" : "/etcdserverpb.KV/Txn";
			const ProtobufCMessage *request = i == 0 ? &lease.base : &txn.base;

			assert_status(vd_store_status_get(fixture->store, &status), VD_OK);
			fixture->server->options.quota_bytes = status.size_bytes + costs[i] + fits;
			if (fits) {
				ETCD_FREE(etcd_server_ask(
					fixture, NULL, method, request,
					i == 0 ? &etcdserverpb__lease_grant_response__descriptor :
						 &etcdserverpb__txn_response__descriptor));
				continue;
			}
			etcd_server_ask_fails(fixture, method, request, VD_ETCD_NO_SPACE);
			assert_int_equal(
				etcd_server_alarm(fixture,
						  ETCDSERVERPB__ALARM_REQUEST__ALARM_ACTION__DEACTIVATE,
						  ETCDSERVERPB__ALARM_TYPE__NOSPACE),
				1);
		}
	}
	/* Neither the grant nor what was refused has made a revision. */
	assert_status(vd_store_status_get(fixture->store, &status), VD_OK);
	assert_int_equal(status.current, 2);
}

/* rules: E-150 */
static void e466_e467_quota_raises_the_alarm_and_it_stays(void **state)
{
	struct etcd_server_fixture     *fixture = *state;
	Etcdserverpb__PutRequest	request = ETCDSERVERPB__PUT_REQUEST__INIT;
	Etcdserverpb__LeaseGrantRequest lease = ETCDSERVERPB__LEASE_GRANT_REQUEST__INIT;
	Etcdserverpb__StatusRequest	status = ETCDSERVERPB__STATUS_REQUEST__INIT;
	Etcdserverpb__StatusResponse   *answer;

	fixture->server->options.quota_bytes = 300;
	(void) etcd_server_put_leased(fixture, "a", "1", 0); /* 258 */
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
	answer = ETCD_ASK(fixture, "Maintenance/Status", &status, status_response);
	assert_int_equal(answer->n_errors, 1);
	assert_non_null(strstr(answer->errors[0], " alarm:NOSPACE"));
	ETCD_FREE(answer);
	for (size_t left = 2; left--;)
		assert_int_equal(etcd_server_alarm(fixture,
						   ETCDSERVERPB__ALARM_REQUEST__ALARM_ACTION__DEACTIVATE,
						   ETCDSERVERPB__ALARM_TYPE__NOSPACE),
				 left);
	(void) etcd_server_put_leased(fixture, "a", "1", 0);
}

/* What real etcd 3.7.3 answers while the alarm is active: reads go on, also in transactions, of which nested
 * ones count as writes. */
static void e457_e468_nothing_is_written_while_corrupt(void **state)
{
	static const Etcdserverpb__RequestOp__RequestCase kinds[] = {
		ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_RANGE,
		ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_PUT,
		ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_DELETE_RANGE,
		ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_TXN
	};
	struct etcd_server_fixture *fixture = *state;
	Etcdserverpb__PutRequest    request = ETCDSERVERPB__PUT_REQUEST__INIT;
	Etcdserverpb__DeleteRangeRequest delete = ETCDSERVERPB__DELETE_RANGE_REQUEST__INIT;
	Etcdserverpb__TxnRequest	 txn = ETCDSERVERPB__TXN_REQUEST__INIT;
	Etcdserverpb__CompactionRequest	 compact = ETCDSERVERPB__COMPACTION_REQUEST__INIT;
	Etcdserverpb__LeaseGrantRequest	 lease = ETCDSERVERPB__LEASE_GRANT_REQUEST__INIT;
	Etcdserverpb__LeaseRevokeRequest revoke = ETCDSERVERPB__LEASE_REVOKE_REQUEST__INIT;
	Etcdserverpb__RangeRequest	 range = ETCDSERVERPB__RANGE_REQUEST__INIT;
	Etcdserverpb__TxnRequest	 inner = ETCDSERVERPB__TXN_REQUEST__INIT;
	Etcdserverpb__RangeResponse	*found;

	etcd_server_grant(fixture, 7, 100, 100);
	(void) etcd_server_put_leased(fixture, "a", "1", 7);
	assert_int_equal(etcd_server_alarm(fixture, ETCDSERVERPB__ALARM_REQUEST__ALARM_ACTION__ACTIVATE,
					   ETCDSERVERPB__ALARM_TYPE__CORRUPT),
			 1);
	request.key = delete.key = range.key = etcd_bytes("a");
	compact.revision = 2;
	lease.ttl = 100;
	revoke.id = 7;
	etcd_server_ask_fails(fixture, "/etcdserverpb.KV/Put", &request.base, VD_ETCD_CORRUPT);
	etcd_server_ask_fails(fixture, "/etcdserverpb.KV/DeleteRange", &delete.base, VD_ETCD_CORRUPT);
	etcd_server_ask_fails(fixture, "/etcdserverpb.KV/Compact", &compact.base, VD_ETCD_CORRUPT);
	etcd_server_ask_fails(fixture, "/etcdserverpb.Lease/LeaseGrant", &lease.base, VD_ETCD_CORRUPT);
	etcd_server_ask_fails(fixture, "/etcdserverpb.Lease/LeaseRevoke", &revoke.base, VD_ETCD_CORRUPT);
	for (unsigned serializable = 0; serializable < 2; serializable++) {
		range.serializable = serializable;
		found = etcd_server_range(fixture, &range);
		assert_int_equal(found->count, 1);
		ETCD_FREE(found);
	}
	ETCD_FREE(ETCD_ASK(fixture, "KV/Txn", &txn, txn_response)); /* without operations */
	for (unsigned branch = 0; branch < 2; branch++)
		for (size_t i = 0; i < VDI_ARRAY_SIZE(kinds); i++) {
			Etcdserverpb__RequestOp	 ops[2] = { ETCDSERVERPB__REQUEST_OP__INIT,
							    ETCDSERVERPB__REQUEST_OP__INIT };
			Etcdserverpb__RequestOp *list[] = { &ops[0], &ops[1] };
			Etcdserverpb__TxnRequest both = ETCDSERVERPB__TXN_REQUEST__INIT;

			/* A range, and one more operation in the branch that is chosen or in the other
			 * one. */
			ops[0].request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_RANGE;
			ops[0].request_range = &range;
			ops[1].request_case = kinds[i];
			if (kinds[i] == ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_RANGE)
				ops[1].request_range = &range;
			else if (kinds[i] == ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_PUT)
				ops[1].request_put = &request;
			else if (kinds[i] == ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_DELETE_RANGE)
				ops[1].request_delete_range = &delete;
			else
				ops[1].request_txn = &inner;
			both.success = both.failure = list;
			both.n_success = branch ? 1 : 2;
			both.n_failure = branch ? 2 : 0;
			if (i == 0)
				ETCD_FREE(ETCD_ASK(fixture, "KV/Txn", &both, txn_response));
			else
				etcd_server_ask_fails(fixture, "/etcdserverpb.KV/Txn", &both.base,
						      VD_ETCD_CORRUPT);
		}
	assert_int_equal(etcd_server_alarm(fixture, ETCDSERVERPB__ALARM_REQUEST__ALARM_ACTION__DEACTIVATE,
					   ETCDSERVERPB__ALARM_TYPE__CORRUPT),
			 1);
	assert_int_equal(etcd_server_put_leased(fixture, "a", "2", 7), 3);
}

/* Each request has the fault of its row and all faults of the rows below. */
static void e440_the_first_fault_of_a_put_is_told(void **state)
{
	static const enum vd_etcd_code faults[] = { VD_ETCD_EMPTY_KEY, VD_ETCD_VALUE_PROVIDED,
						    VD_ETCD_LEASE_PROVIDED, VD_ETCD_LEASE_NOT_FOUND,
						    VD_ETCD_KEY_NOT_FOUND };
	Etcdserverpb__PutRequest       request = ETCDSERVERPB__PUT_REQUEST__INIT;

	for (int i = 0; i < (int) VDI_ARRAY_SIZE(faults); i++) {
		request.key = etcd_bytes(i < 1 ? "" : "absent");
		request.value = etcd_bytes(i < 2 ? "value" : "");
		request.ignore_value = true;
		request.ignore_lease = i < 3;
		request.lease = i < 4 ? 77 : 0;
		etcd_server_ask_fails(*state, "/etcdserverpb.KV/Put", &request.base, faults[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, etcd_server_setup, etcd_server_teardown)
		CASE(e121_header_is_whole_and_a_fresh_store_is_at_1),
		CASE(e103_unknown_method_is_unimplemented),
		CASE(e141_the_version_of_the_client_is_text_and_counted),
		CASE(e104_unknown_fields_are_ignored_and_garbage_is_refused),
		CASE(e1101_unary_transcript),
		CASE(e427_filters_then_sort_then_limit),
		CASE(e428_without_order_only_the_first_by_key_are_sorted),
		CASE(e429_keys_only),
		CASE(e430_reads_see_what_was_acknowledged),
		CASE(e603_e604_e605_pages_of_one_revision),
		CASE(e440_the_first_fault_of_a_put_is_told),
		CASE(e465_request_too_large),
		CASE(e457_e468_nothing_is_written_while_corrupt),
		CASE(e466_leases_and_transactions_have_a_cost),
		CASE(e466_e467_quota_raises_the_alarm_and_it_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
