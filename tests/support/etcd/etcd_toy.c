#include "etcd_toy.h"

#include "etcd_client.h"
#include "etcd_store.h"
#include "rpc.pb-c.h"
#include "vdtest.h"

static Etcdserverpb__ResponseHeader header_at(const struct etcd_toy *toy)
{
	Etcdserverpb__ResponseHeader header = ETCDSERVERPB__RESPONSE_HEADER__INIT;

	header.cluster_id = 7;
	header.member_id = 1;
	header.revision = toy->revision;
	header.raft_term = 2;
	return header;
}

static void pack_and(void (*send)(struct rpc_script_call *call, struct vd_bytes message),
		     struct rpc_script_call *call, const ProtobufCMessage *message)
{
	size_t	 size = protobuf_c_message_get_packed_size(message);
	uint8_t *bytes = malloc(size + 1);

	assert_non_null(bytes);
	protobuf_c_message_pack(message, bytes);
	send(call, (struct vd_bytes) { bytes, size });
	free(bytes);
}

static bool is_compact_key(const ProtobufCBinaryData *key)
{
	return key->len == strlen(VDI_ETCD_COMPACT_KEY) &&
	       memcmp(key->data, VDI_ETCD_COMPACT_KEY, key->len) == 0;
}

static Mvccpb__KeyValue compact_record(struct etcd_toy *toy)
{
	Mvccpb__KeyValue kv = MVCCPB__KEY_VALUE__INIT;

	kv.key = (ProtobufCBinaryData) { strlen(VDI_ETCD_COMPACT_KEY),
					 (uint8_t *) (uintptr_t) VDI_ETCD_COMPACT_KEY };
	kv.value = (ProtobufCBinaryData) { strlen(toy->key_value), (uint8_t *) toy->key_value };
	kv.version = toy->key_version;
	kv.create_revision = 2;
	kv.mod_revision = toy->key_mod;
	return kv;
}

/* ---- Calls ---- */

static void answer_range(struct etcd_toy *toy, struct rpc_script_call *call, struct vd_bytes message)
{
	Etcdserverpb__RangeRequest *request =
		etcdserverpb__range_request__unpack(NULL, message.size, message.data);
	Etcdserverpb__RangeResponse  response = ETCDSERVERPB__RANGE_RESPONSE__INIT;
	Etcdserverpb__ResponseHeader header = header_at(toy);
	Mvccpb__KeyValue	     kv = compact_record(toy), *kvs = &kv;

	assert_non_null(request);
	toy->ranges++;
	response.header = &header;
	if (request->revision && request->revision < toy->compacted) {
		rpc_script_end(call, VDI_RPC_OUT_OF_RANGE,
			       "etcdserver: mvcc: required revision has been compacted");
	} else if (request->revision > toy->revision) {
		rpc_script_end(call, VDI_RPC_OUT_OF_RANGE,
			       "etcdserver: mvcc: required revision is a future revision");
	} else {
		if (is_compact_key(&request->key) && toy->key_version) {
			response.kvs = &kvs;
			response.n_kvs = 1;
			response.count = 1;
		}
		pack_and(rpc_script_answer, call, &response.base);
	}
	etcdserverpb__range_request__free_unpacked(request, NULL);
}

static void answer_txn(struct etcd_toy *toy, struct rpc_script_call *call, struct vd_bytes message)
{
	Etcdserverpb__TxnRequest *request =
		etcdserverpb__txn_request__unpack(NULL, message.size, message.data);
	Etcdserverpb__TxnResponse    response = ETCDSERVERPB__TXN_RESPONSE__INIT;
	Etcdserverpb__ResponseOp     op = ETCDSERVERPB__RESPONSE_OP__INIT, *ops = &op;
	Etcdserverpb__PutResponse    put = ETCDSERVERPB__PUT_RESPONSE__INIT;
	Etcdserverpb__RangeResponse  range = ETCDSERVERPB__RANGE_RESPONSE__INIT;
	Mvccpb__KeyValue	     kv, *kvs = &kv;
	Etcdserverpb__ResponseHeader header;

	assert_non_null(request);
	toy->txns++;
	if (request->n_compare == 0) {
		etcd_toy_write(toy);
		response.succeeded = true;
		op.response_case = ETCDSERVERPB__RESPONSE_OP__RESPONSE_RESPONSE_PUT;
		op.response_put = &put;
	} else {
		assert_int_equal(request->compare[0]->target_union_case,
				 ETCDSERVERPB__COMPARE__TARGET_UNION_VERSION);
		assert_true(is_compact_key(&request->compare[0]->key));
		response.succeeded = request->compare[0]->version == toy->key_version;
		if (response.succeeded) {
			const ProtobufCBinaryData *value = &request->success[0]->request_put->value;
			char			   text[32] = "";

			memcpy(text, value->data, VDI_MIN(value->len, sizeof text - 1));
			etcd_toy_claim(toy, text);
			op.response_case = ETCDSERVERPB__RESPONSE_OP__RESPONSE_RESPONSE_PUT;
			op.response_put = &put;
		} else {
			kv = compact_record(toy);
			range.kvs = &kvs;
			range.n_kvs = toy->key_version ? 1 : 0;
			op.response_case = ETCDSERVERPB__RESPONSE_OP__RESPONSE_RESPONSE_RANGE;
			op.response_range = &range;
		}
	}
	header = header_at(toy);
	response.header = &header;
	response.responses = &ops;
	response.n_responses = 1;
	pack_and(rpc_script_answer, call, &response.base);
	etcdserverpb__txn_request__free_unpacked(request, NULL);
}

static void answer_compact(struct etcd_toy *toy, struct rpc_script_call *call, struct vd_bytes message)
{
	Etcdserverpb__CompactionRequest *request =
		etcdserverpb__compaction_request__unpack(NULL, message.size, message.data);
	Etcdserverpb__CompactionResponse response = ETCDSERVERPB__COMPACTION_RESPONSE__INIT;
	Etcdserverpb__ResponseHeader	 header = header_at(toy);

	assert_non_null(request);
	toy->compactions++;
	response.header = &header;
	if (request->revision <= toy->compacted) {
		rpc_script_end(call, VDI_RPC_OUT_OF_RANGE,
			       "etcdserver: mvcc: required revision has been compacted");
	} else {
		toy->compacted = request->revision;
		pack_and(rpc_script_answer, call, &response.base);
	}
	etcdserverpb__compaction_request__free_unpacked(request, NULL);
}

static void answer_status(struct etcd_toy *toy, struct rpc_script_call *call)
{
	Etcdserverpb__StatusResponse response = ETCDSERVERPB__STATUS_RESPONSE__INIT;
	Etcdserverpb__ResponseHeader header = header_at(toy);
	size_t			     endpoint = rpc_script_call_endpoint(call);

	if (toy->statuses[endpoint] < TOY_TIMES_MAX)
		toy->status_times[endpoint][toy->statuses[endpoint]] = vd_env_now(toy->env);
	toy->statuses[endpoint]++;
	if (toy->versions[endpoint] == NULL) {
		rpc_script_end(call, VDI_RPC_INTERNAL, "no version today");
		return;
	}
	response.header = &header;
	response.version = (char *) (uintptr_t) toy->versions[endpoint];
	response.dbsize = toy->size_bytes;
	pack_and(rpc_script_answer, call, &response.base);
}

static void answer_keep_alive(struct etcd_toy *toy, struct rpc_script_call *call, struct vd_bytes message)
{
	Etcdserverpb__LeaseKeepAliveRequest *request =
		etcdserverpb__lease_keep_alive_request__unpack(NULL, message.size, message.data);
	Etcdserverpb__LeaseKeepAliveResponse response = ETCDSERVERPB__LEASE_KEEP_ALIVE_RESPONSE__INIT;
	Etcdserverpb__ResponseHeader	     header = header_at(toy);

	assert_non_null(request);
	response.header = &header;
	response.id = request->id;
	response.ttl = request->id == 404 ? 0 : 30;
	pack_and(rpc_script_send, call, &response.base);
	etcdserverpb__lease_keep_alive_request__free_unpacked(request, NULL);
}

/* ---- RangeStream: one part for each part that the client requests ---- */

static void send_part(struct etcd_toy *toy, struct rpc_script_call *call, vd_rev asked, size_t number)
{
	Etcdserverpb__RangeStreamResponse response = ETCDSERVERPB__RANGE_STREAM_RESPONSE__INIT;
	Etcdserverpb__RangeResponse	  range = ETCDSERVERPB__RANGE_RESPONSE__INIT;
	Etcdserverpb__ResponseHeader	  header = header_at(toy);
	Mvccpb__KeyValue		 *kvs = calloc(toy->stream_part_len + 1, sizeof *kvs),
			 **places = calloc(toy->stream_part_len + 1, sizeof *places);
	char(*keys)[16] = calloc(toy->stream_part_len + 1, sizeof *keys);

	for (size_t i = 0; i < toy->stream_part_len; i++) {
		mvccpb__key_value__init(&kvs[i]);
		snprintf(keys[i], sizeof keys[i], "k%06zu", number * toy->stream_part_len + i);
		kvs[i].key = (ProtobufCBinaryData) { strlen(keys[i]), (uint8_t *) keys[i] };
		kvs[i].value = kvs[i].key;
		kvs[i].mod_revision = kvs[i].create_revision = 2;
		kvs[i].version = 1;
		places[i] = &kvs[i];
	}
	(void) asked;
	range.header = &header;
	range.kvs = places;
	range.n_kvs = toy->stream_part_len;
	range.count = (int64_t) (toy->stream_parts * toy->stream_part_len + toy->stream_more);
	range.more = toy->stream_more && number + 1 == toy->stream_parts;
	response.range_response = &range;
	pack_and(rpc_script_send, call, &response.base);
	toy->parts_sent++;
	free(kvs);
	free(places);
	free(keys);
}

static void answer_stream(struct etcd_toy *toy, struct rpc_script_call *call, struct vd_bytes message)
{
	Etcdserverpb__RangeRequest *request =
		etcdserverpb__range_request__unpack(NULL, message.size, message.data);

	assert_non_null(request);
	toy->streams++;
	if (!toy->has_stream) {
		rpc_script_end(call, VDI_RPC_UNIMPLEMENTED,
			       "unknown method RangeStream for service etcdserverpb.KV");
	} else {
		for (size_t i = 0; i < toy->stream_parts; i++) {
			size_t len = toy->stream_part_len;

			if (i && toy->stream_gaps) {
				toy->stream_part_len = 0;
				send_part(toy, call, request->revision, i);
				toy->stream_part_len = len;
			}
			send_part(toy, call, request->revision, i);
		}
		if (toy->stream_trailer) {
			size_t len = toy->stream_part_len;

			toy->stream_part_len = 0;
			toy->stream_more = true;
			send_part(toy, call, request->revision, toy->stream_parts - 1);
			toy->stream_more = false;
			toy->stream_part_len = len;
		}
		rpc_script_end(call, toy->stream_end_code, toy->stream_end_text);
	}
	etcdserverpb__range_request__free_unpacked(request, NULL);
}

/* ---- Watches ---- */

static void answer_watch(struct etcd_toy *toy, struct rpc_script_call *call, struct vd_bytes message)
{
	Etcdserverpb__WatchRequest *request =
		etcdserverpb__watch_request__unpack(NULL, message.size, message.data);
	Etcdserverpb__WatchResponse  response = ETCDSERVERPB__WATCH_RESPONSE__INIT;
	Etcdserverpb__ResponseHeader header = header_at(toy);

	assert_non_null(request);
	response.header = &header;
	switch (request->request_union_case) {
	case ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CREATE_REQUEST: {
		struct toy_watch *watch = &toy->watches[toy->watch_count];

		assert_true(toy->watch_count < TOY_WATCHES_MAX);
		*watch = (struct toy_watch) {
			.call = call,
			.start = request->create_request->start_revision,
			.is_open = true,
			.require_leader = vd_bytes_equal(rpc_script_call_metadata(call, "hasleader"),
							 vd_bytes_of("true")),
		};
		snprintf(watch->key, sizeof watch->key, "%.*s", (int) request->create_request->key.len,
			 (char *) request->create_request->key.data);
		response.created = true;
		response.watch_id = (int64_t) toy->watch_count++;
		pack_and(rpc_script_send, call, &response.base);
		if (watch->start && watch->start < toy->compacted)
			etcd_toy_expire(toy, watch, toy->compacted);
		break;
	}
	case ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CANCEL_REQUEST: {
		int64_t id = request->cancel_request->watch_id;

		if (id >= 0 && (size_t) id < toy->watch_count && toy->watches[id].is_open) {
			toy->watches[id].is_open = false;
			response.watch_id = id;
			response.canceled = true;
			pack_and(rpc_script_send, call, &response.base);
		}
		break;
	}
	default:
		toy->progress_requests++;
		toy->progress_call = call;
		response.watch_id = -1;
		if (toy->has_progress)
			pack_and(rpc_script_send, call, &response.base);
	}
	etcdserverpb__watch_request__free_unpacked(request, NULL);
}

static int64_t id_of(const struct etcd_toy *toy, const struct toy_watch *watch)
{
	return watch - toy->watches;
}

struct toy_watch *etcd_toy_watch(struct etcd_toy *toy, const char *key)
{
	for (size_t i = toy->watch_count; i > 0; i--)
		if (toy->watches[i - 1].is_open && strcmp(toy->watches[i - 1].key, key) == 0)
			return &toy->watches[i - 1];
	return NULL;
}

void etcd_toy_send(struct etcd_toy *toy, struct toy_watch *watch, const vd_rev *revisions, size_t count)
{
	Etcdserverpb__WatchResponse  response = ETCDSERVERPB__WATCH_RESPONSE__INIT;
	Etcdserverpb__ResponseHeader header;
	Mvccpb__Event	 *events = calloc(count, sizeof *events), **places = calloc(count, sizeof *places);
	Mvccpb__KeyValue *kvs = calloc(count, sizeof *kvs);
	char(*keys)[96] = calloc(count, sizeof *keys);

	for (size_t i = 0; i < count; i++) {
		mvccpb__event__init(&events[i]);
		mvccpb__key_value__init(&kvs[i]);
		snprintf(keys[i], sizeof keys[i], "%s%zu", watch->key, i);
		kvs[i].key = (ProtobufCBinaryData) { strlen(keys[i]), (uint8_t *) keys[i] };
		kvs[i].mod_revision = kvs[i].create_revision = revisions[i];
		kvs[i].version = 1;
		events[i].kv = &kvs[i];
		places[i] = &events[i];
		toy->revision = VDI_MAX(toy->revision, revisions[i]);
	}
	header = header_at(toy);
	response.header = &header;
	response.watch_id = id_of(toy, watch);
	response.events = places;
	response.n_events = count;
	pack_and(rpc_script_send, watch->call, &response.base);
	free(events);
	free(places);
	free(kvs);
	free(keys);
}

void etcd_toy_progress(struct etcd_toy *toy, struct toy_watch *watch, vd_rev revision)
{
	Etcdserverpb__WatchResponse  response = ETCDSERVERPB__WATCH_RESPONSE__INIT;
	Etcdserverpb__ResponseHeader header = header_at(toy);

	header.revision = revision;
	response.header = &header;
	response.watch_id = -1;
	pack_and(rpc_script_send, watch->call, &response.base);
}

void etcd_toy_expire(struct etcd_toy *toy, struct toy_watch *watch, vd_rev compacted)
{
	Etcdserverpb__WatchResponse  response = ETCDSERVERPB__WATCH_RESPONSE__INIT;
	Etcdserverpb__ResponseHeader header = header_at(toy);

	watch->is_open = false;
	response.header = &header;
	response.watch_id = id_of(toy, watch);
	response.canceled = true;
	response.compact_revision = compacted;
	pack_and(rpc_script_send, watch->call, &response.base);
}

vd_rev etcd_toy_write(struct etcd_toy *toy)
{
	return ++toy->revision;
}

void etcd_toy_claim(struct etcd_toy *toy, const char *text)
{
	Etcdserverpb__WatchResponse  response = ETCDSERVERPB__WATCH_RESPONSE__INIT;
	Etcdserverpb__ResponseHeader header;
	Mvccpb__Event		     event = MVCCPB__EVENT__INIT, *events = &event;
	Mvccpb__KeyValue	     kv;
	struct toy_watch	    *watch = etcd_toy_watch(toy, VDI_ETCD_COMPACT_KEY);

	toy->key_version++;
	toy->key_mod = etcd_toy_write(toy);
	snprintf(toy->key_value, sizeof toy->key_value, "%s", text);
	if (watch == NULL)
		return;
	header = header_at(toy);
	kv = compact_record(toy);
	event.kv = &kv;
	response.header = &header;
	response.watch_id = id_of(toy, watch);
	response.events = &events;
	response.n_events = 1;
	pack_and(rpc_script_send, watch->call, &response.base);
}

/* ---- The peer ---- */

static void on_message(void *arg, struct rpc_script_call *call, struct vd_bytes message)
{
	struct etcd_toy *toy = arg;
	const char	*method = rpc_script_call_method(call);

	if (strcmp(method, "/etcdserverpb.Maintenance/Status") == 0)
		answer_status(toy, call);
	else if (strcmp(method, "/etcdserverpb.Watch/Watch") == 0)
		answer_watch(toy, call, message);
	else if (toy->is_silent)
		return;
	else if (toy->fail_code)
		rpc_script_end(call, toy->fail_code, toy->fail_text);
	else if (strcmp(method, "/etcdserverpb.KV/Range") == 0)
		answer_range(toy, call, message);
	else if (strcmp(method, "/etcdserverpb.KV/RangeStream") == 0)
		answer_stream(toy, call, message);
	else if (strcmp(method, "/etcdserverpb.KV/Txn") == 0)
		answer_txn(toy, call, message);
	else if (strcmp(method, "/etcdserverpb.KV/Compact") == 0)
		answer_compact(toy, call, message);
	else if (strcmp(method, "/etcdserverpb.Lease/LeaseKeepAlive") == 0)
		answer_keep_alive(toy, call, message);
	else
		rpc_script_end(call, VDI_RPC_UNIMPLEMENTED, "unknown");
}

static void on_gone(void *arg, struct rpc_script_call *call)
{
	struct etcd_toy *toy = arg;

	for (size_t i = 0; i < toy->watch_count; i++)
		if (toy->watches[i].call == call)
			toy->watches[i].is_open = false;
}

void etcd_toy_init(struct etcd_toy *toy, struct vd_env *env, uint64_t seed, size_t endpoint_count)
{
	static const char *const names[TOY_ENDPOINTS_MAX] = { "http://e0:2379", "http://e1:2379",
							      "http://e2:2379", "http://e3:2379" };
	struct rpc_script_peer	 peer = { .message = on_message, .canceled = on_gone, .arg = toy };

	assert_true(endpoint_count <= TOY_ENDPOINTS_MAX);
	memset(toy, 0, sizeof *toy);
	toy->env = env;
	toy->endpoint_count = endpoint_count;
	toy->revision = 1;
	toy->compacted = -1;
	toy->size_bytes = 4096;
	toy->has_progress = true;
	for (size_t i = 0; i < TOY_ENDPOINTS_MAX; i++) {
		toy->endpoints[i] = names[i];
		toy->versions[i] = "3.6.1";
	}
	toy->script = rpc_script_new(env, seed, toy->endpoints, endpoint_count);
	rpc_script_set_peer(toy->script, &peer);
}

void etcd_toy_fini(struct etcd_toy *toy)
{
	rpc_script_free(toy->script);
}

struct vd_etcd *etcd_toy_client(struct etcd_toy *toy)
{
	struct vd_etcd_options options = VD_ETCD_OPTIONS_INIT;
	struct vd_etcd	      *client = NULL;
	struct vd_error	       error;

	options.endpoints = toy->endpoints;
	options.endpoint_count = toy->endpoint_count;
	if (vdi_etcd_new(toy->env, &options, rpc_script_client(toy->script), &client, &error) != VD_OK)
		return NULL;
	return client;
}
