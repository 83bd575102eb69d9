#include "etcd_server_fixture.h"

#include "actor_sim.h"
#include "vdtest.h"

void etcd_server_fixture_open(struct etcd_server_fixture	  *fixture,
			      const struct vdi_etcdserver_options *options)
{
	struct vdi_etcdserver_options copy = { 0 };
	struct vd_mvcc_options	      mvcc = VD_MVCC_OPTIONS_INIT;

	if (options)
		copy = *options;
	copy.bcrypt_cost = 4;
	mvcc.history_window = (vd_dur) { 0 };
	assert_status(vdi_env_new_sim(7, NULL, NULL, &fixture->env), VD_OK);
	assert_status(vd_store_open_mvcc(fixture->env, &mvcc, &fixture->store, NULL), VD_OK);
	copy.store = fixture->store;
	assert_status(vdi_etcdserver_new(fixture->env, &copy, &fixture->server, NULL), VD_OK);
}

void etcd_server_fixture_close(struct etcd_server_fixture *fixture)
{
	vdi_etcdserver_stop(fixture->server);
	(void) vdi_sim_run_until_idle(fixture->env);
	fixture->server = vdi_etcdserver_free(fixture->server);
	fixture->store = vd_store_close_wait(fixture->store);
	fixture->env = vd_env_free(fixture->env);
}

/* ---- The transport, as a call sees it ---- */

static struct etcd_server_call *call_of(struct vdi_serve_call *base)
{
	return (struct etcd_server_call *) base;
}

/* Keeps a message. A blob's bytes are read only when it is sent, into memory of the test. */
static void keep(struct etcd_server_call *call, struct vd_bytes head, struct vdi_rpc_blob *blob)
{
	struct vd_bytes body = blob ? vdi_rpc_blob_bytes(blob) : VD_BYTES_NONE;
	char	       *message = malloc(head.size + body.size + 1);

	call->messages = realloc(call->messages, (call->count + 1) * sizeof call->messages[0]);
	call->sizes = realloc(call->sizes, (call->count + 1) * sizeof call->sizes[0]);
	if (head.size)
		memcpy(message, head.data, head.size);
	if (body.size)
		memcpy(message + head.size, body.data, body.size);
	call->messages[call->count] = message;
	call->sizes[call->count++] = head.size + body.size;
}

static vd_status call_send(struct vdi_serve_call *base, struct vd_bytes head, struct vdi_rpc_blob *blob)
{
	struct etcd_server_call *call = call_of(base);

	if (call->is_finished)
		return VD_CLOSED;
	if (call->failure != VD_OK)
		return call->failure;
	if (call->room == 0)
		return VD_FULL;
	if (call->room != SIZE_MAX)
		call->room--;
	keep(call, head, blob);
	return VD_OK;
}

static void call_finish(struct vdi_serve_call *base, int code, const char *message)
{
	struct etcd_server_call *call = call_of(base);

	if (call->is_finished)
		return;
	call->is_finished = true;
	call->code = code;
	(void) snprintf(call->text, sizeof call->text, "%s", message);
}

static vd_status call_answer(struct vdi_serve_call *base, struct vdi_rpc_blob *blob)
{
	if (call_of(base)->is_finished)
		return VD_CLOSED;
	keep(call_of(base), VD_BYTES_NONE, blob);
	call_finish(base, 0, "");
	return VD_OK;
}

static void call_receive(struct vdi_serve_call *base)
{
	call_of(base)->wanted++;
}

static bool call_metadata(struct vdi_serve_call *base, const char *key, struct vd_bytes *ret_value)
{
	const struct etcd_server_call *call = call_of(base);
	const char		      *value = strcmp(key, "token") == 0	      ? call->token :
					       strcmp(key, "client-api-version") == 0 ? call->client_version :
					       strcmp(key, "hasleader") == 0	      ? call->has_leader :
											NULL;

	if (value == NULL)
		return false;
	*ret_value = vd_bytes_of(value);
	return true;
}

static const char *call_common_name(struct vdi_serve_call *base)
{
	return call_of(base)->common_name ? call_of(base)->common_name : "";
}

static void call_free(struct vdi_serve_call *base)
{
	call_of(base)->is_freed = true;
}

static const char *call_peer(struct vdi_serve_call *base)
{
	return call_of(base)->peer ? call_of(base)->peer : "";
}

static const struct vdi_serve_call_ops ops = { call_send,     call_finish,	call_answer, call_receive,
					       call_metadata, call_common_name, call_free,   call_peer };

/* ---- Calls ---- */

void etcd_server_call_init(struct etcd_server_call *call, struct etcd_server_fixture *fixture)
{
	memset(call, 0, sizeof *call);
	call->base.ops = &ops;
	call->env = fixture->env;
	call->room = SIZE_MAX;
}

void etcd_server_call_open(struct etcd_server_call *call, struct etcd_server_fixture *fixture,
			   const char *method)
{
	vdi_etcdserver_accept(fixture->server, &call->base, method);
	(void) vdi_sim_run_until_idle(fixture->env);
}

static void release_copy(void *owner)
{
	free(owner);
}

/* Takes over copy, which is from malloc. */
static void deliver(struct etcd_server_call *call, void *copy, size_t size)
{
	struct vdi_rpc_message message = { .bytes = { copy, size }, .owner = copy, .release = release_copy };

	assert_true(call->wanted > 0); /* else the transport would not have read it */
	call->wanted--;
	vdi_etcdserver_message(&call->base, &message);
}

void etcd_server_call_send_bytes(struct etcd_server_call *call, const void *bytes, size_t size)
{
	char *copy = malloc(size + 1);

	if (size)
		memcpy(copy, bytes, size);
	deliver(call, copy, size);
	(void) vdi_sim_run_until_idle(call->env);
}

void etcd_server_call_post(struct etcd_server_call *call, struct etcd_server_fixture *fixture,
			   const char *method, const ProtobufCMessage *request)
{
	etcd_server_call_post_as(call, fixture, NULL, NULL, method, request);
}

void etcd_server_call_post_as(struct etcd_server_call *call, struct etcd_server_fixture *fixture,
			      const char *peer, const char *token, const char *method,
			      const ProtobufCMessage *request)
{
	size_t	 size = protobuf_c_message_get_packed_size(request);
	uint8_t *copy = malloc(size + 1);

	protobuf_c_message_pack(request, copy);
	etcd_server_call_init(call, fixture);
	call->peer = peer;
	call->token = token;
	vdi_etcdserver_accept(fixture->server, &call->base, method);
	deliver(call, copy, size);
}

void etcd_server_call_send(struct etcd_server_call *call, const ProtobufCMessage *message)
{
	struct vdi_rpc_message nothing = { 0 };
	size_t		       size;
	uint8_t		      *bytes;

	if (message == NULL) {
		vdi_etcdserver_message(&call->base, &nothing);
		(void) vdi_sim_run_until_idle(call->env);
		return;
	}
	size = protobuf_c_message_get_packed_size(message);
	bytes = malloc(size + 1);
	protobuf_c_message_pack(message, bytes);
	etcd_server_call_send_bytes(call, bytes, size);
	free(bytes);
}

void etcd_server_call_make_room(struct etcd_server_call *call, size_t room)
{
	call->room = room;
	vdi_etcdserver_writable(&call->base);
	(void) vdi_sim_run_until_idle(call->env);
}

void etcd_server_call_end(struct etcd_server_call *call)
{
	assert_false(call->is_freed); /* the transport has a reference */
	vdi_etcdserver_ended(&call->base);
	(void) vdi_sim_run_until_idle(call->env);
	assert_true(call->is_freed);
	for (size_t i = 0; i < call->count; i++)
		free(call->messages[i]);
	free(call->messages);
	free(call->sizes);
	call->messages = NULL;
	call->sizes = NULL;
	call->count = 0;
}

static bool is_finished(void *arg)
{
	return ((struct etcd_server_call *) arg)->is_finished;
}

void *etcd_server_ask(struct etcd_server_fixture *fixture, struct etcd_server_call *call, const char *method,
		      const ProtobufCMessage *request, const ProtobufCMessageDescriptor *answer)
{
	struct etcd_server_call own;
	void		       *unpacked = NULL;

	if (call == NULL) {
		call = &own;
		etcd_server_call_init(call, fixture);
	}
	etcd_server_call_open(call, fixture, method);
	if (!call->is_finished)
		etcd_server_call_send(call, request);
	assert_true(vdi_sim_run_until(fixture->env, is_finished, call, VD_SECONDS(10)));
	if (call->code == 0) {
		assert_int_equal(call->count, 1);
		unpacked = protobuf_c_message_unpack(answer, NULL, call->sizes[0],
						     (const uint8_t *) call->messages[0]);
		assert_non_null(unpacked);
	} else if (call == &own) {
		fail_msg("%s: %d %s", method, call->code, call->text);
	}
	etcd_server_call_end(call);
	return unpacked;
}

void etcd_server_ask_fails(struct etcd_server_fixture *fixture, const char *method,
			   const ProtobufCMessage *request, enum vd_etcd_code code)
{
	struct etcd_server_call call;

	etcd_server_call_init(&call, fixture);
	assert_null(
		etcd_server_ask(fixture, &call, method, request, &etcdserverpb__put_response__descriptor));
	assert_string_equal(call.text, vdi_serve_code_message(code));
	assert_int_equal(call.code, vdi_serve_code_grpc(code));
}

Etcdserverpb__WatchResponse *etcd_server_call_next(struct etcd_server_call *call)
{
	Etcdserverpb__WatchResponse *response;

	if (call->taken == call->count)
		return NULL;
	response = etcdserverpb__watch_response__unpack(NULL, call->sizes[call->taken],
							(const uint8_t *) call->messages[call->taken]);
	assert_non_null(response);
	call->taken++;
	return response;
}

/* ---- Short ways ---- */

ProtobufCBinaryData etcd_bytes(const char *text)
{
	return (ProtobufCBinaryData) { strlen(text), (uint8_t *) (uintptr_t) text };
}

void etcd_server_put(struct etcd_server_fixture *fixture, const char *key, const char *value)
{
	Etcdserverpb__PutRequest request = ETCDSERVERPB__PUT_REQUEST__INIT;

	request.key = etcd_bytes(key);
	request.value = etcd_bytes(value);
	protobuf_c_message_free_unpacked(etcd_server_ask(fixture, NULL, "/etcdserverpb.KV/Put", &request.base,
							 &etcdserverpb__put_response__descriptor),
					 NULL);
}

void etcd_server_delete(struct etcd_server_fixture *fixture, const char *key)
{
	Etcdserverpb__DeleteRangeRequest request = ETCDSERVERPB__DELETE_RANGE_REQUEST__INIT;

	request.key = etcd_bytes(key);
	ETCD_FREE(ETCD_ASK(fixture, "KV/DeleteRange", &request, delete_range_response));
}

size_t etcd_server_alarm(struct etcd_server_fixture *fixture, Etcdserverpb__AlarmRequest__AlarmAction action,
			 Etcdserverpb__AlarmType alarm)
{
	Etcdserverpb__AlarmRequest   request = ETCDSERVERPB__ALARM_REQUEST__INIT;
	Etcdserverpb__AlarmResponse *response;
	size_t			     count;

	request.action = action;
	request.memberid = fixture->server->member_id;
	request.alarm = alarm;
	response = ETCD_ASK(fixture, "Maintenance/Alarm", &request, alarm_response);
	count = response->n_alarms;
	ETCD_FREE(response);
	return count;
}

Etcdserverpb__RangeResponse *etcd_server_range(struct etcd_server_fixture	*fixture,
					       const Etcdserverpb__RangeRequest *request)
{
	return ETCD_ASK(fixture, "KV/Range", request, range_response);
}

int64_t etcd_server_put_leased(struct etcd_server_fixture *fixture, const char *key, const char *value,
			       int64_t lease)
{
	Etcdserverpb__PutRequest   request = ETCDSERVERPB__PUT_REQUEST__INIT;
	Etcdserverpb__PutResponse *response;
	int64_t			   revision;

	request.key = etcd_bytes(key);
	request.value = etcd_bytes(value);
	request.lease = lease;
	response = ETCD_ASK(fixture, "KV/Put", &request, put_response);
	revision = response->header->revision;
	ETCD_FREE(response);
	return revision;
}

void etcd_server_grant(struct etcd_server_fixture *fixture, int64_t id, int64_t ttl, int64_t ttl_wanted)
{
	Etcdserverpb__LeaseGrantRequest	  request = ETCDSERVERPB__LEASE_GRANT_REQUEST__INIT;
	Etcdserverpb__LeaseGrantResponse *response;

	request.id = id;
	request.ttl = ttl;
	response = ETCD_ASK(fixture, "Lease/LeaseGrant", &request, lease_grant_response);
	assert_int_equal(response->id, id);
	assert_int_equal(response->ttl, ttl_wanted);
	ETCD_FREE(response);
}

void etcd_server_compact(struct etcd_server_fixture *fixture, int64_t revision)
{
	Etcdserverpb__CompactionRequest	  request = ETCDSERVERPB__COMPACTION_REQUEST__INIT;
	Etcdserverpb__CompactionResponse *response;

	request.revision = revision;
	request.physical = true;
	response = ETCD_ASK(fixture, "KV/Compact", &request, compaction_response);
	ETCD_FREE(response);
}

/* ---- For cmocka ---- */

int etcd_server_setup(void **state)
{
	struct etcd_server_fixture *fixture = malloc(sizeof *fixture);

	etcd_server_fixture_open(fixture, NULL);
	*state = fixture;
	return 0;
}

int etcd_server_teardown(void **state)
{
	etcd_server_fixture_close(*state);
	free(*state);
	return vdi_alloc_live() == 0 ? 0 : -1;
}
