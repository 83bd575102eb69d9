#include "etcd_client_fixture.h"

#include <rpc.pb-c.h>

#include "vdtest.h"
#include "wait.h"

void etcd_client_fixture_init(struct etcd_client_fixture *fixture, uint64_t seed, size_t endpoint_count)
{
	static const char *const names[ETCD_CLIENT_FIXTURE_ENDPOINTS_MAX] = { "e1:2379", "e2:2379", "e3:2379",
									      "e4:2379", "e5:2379" };
	static const struct vd_etcd_options options = VD_ETCD_OPTIONS_INIT;

	*fixture = (struct etcd_client_fixture) { .options = options, .live = vdi_alloc_live() };
	assert_true(endpoint_count <= ETCD_CLIENT_FIXTURE_ENDPOINTS_MAX);
	memcpy(fixture->endpoints, names, endpoint_count * sizeof *names);
	assert_status(vdi_env_new_sim(seed, NULL, NULL, &fixture->env), VD_OK);
	fixture->script = rpc_script_new(fixture->env, seed, fixture->endpoints, endpoint_count);
	fixture->options.endpoints = fixture->endpoints;
	fixture->options.endpoint_count = endpoint_count;
}

void etcd_client_fixture_open(struct etcd_client_fixture *fixture)
{
	struct vd_error error;
	vd_status status = vdi_etcd_new(fixture->env, &fixture->options, rpc_script_client(fixture->script),
					&fixture->client, &error);

	if (status != VD_OK)
		fail_msg("%s", error.message);
}

void etcd_client_fixture_start(struct etcd_client_fixture *fixture, uint64_t seed)
{
	etcd_client_fixture_init(fixture, seed, 1);
	etcd_client_fixture_open(fixture);
}

void etcd_client_fixture_close(struct etcd_client_fixture *fixture)
{
	fixture->client = vd_etcd_close_wait(fixture->client);
}

void etcd_client_fixture_fini(struct etcd_client_fixture *fixture)
{
	etcd_client_fixture_close(fixture);
	vdi_sim_run_until_idle(fixture->env);
	rpc_script_free(fixture->script);
	assert_int_equal(vdi_sim_actors(fixture->env), 0);
	vd_env_free(fixture->env);
	assert_int_equal(vdi_alloc_live(), fixture->live);
}

/* ---- Notes ---- */

static struct etcd_result *note(void *arg, const struct vd_etcd_error *error,
				const struct vd_etcd_header *header)
{
	struct etcd_result *result = arg;

	result->calls++;
	result->is_error = error != NULL;
	if (error)
		result->error = *error;
	result->has_header = header != NULL;
	if (header)
		result->header = *header;
	if (result->env)
		result->at_ns = vd_env_now(result->env).ns;
	return result;
}

/* The last thing that a callback does here. */
static void told(struct etcd_result *result)
{
	if (result->wait)
		vdi_wait_signal(result->wait);
}

static void note_bytes(struct etcd_result *result, struct vd_bytes bytes)
{
	(void) snprintf(result->text, sizeof result->text, "%.*s", (int) bytes.size,
			bytes.size ? (const char *) bytes.data : "");
}

void etcd_note_range(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		     const struct vd_range_result *range)
{
	struct etcd_result *result = note(arg, error, header);

	assert_true((error == NULL) == (range != NULL) && (error == NULL) == (header != NULL));
	if (range == NULL) {
		told(result);
		return;
	}
	result->kv_count = range->kv_count;
	result->number = range->count;
	result->flag = range->more;
	assert_int_equal(range->store_revision, header->revision);
	if (range->kv_count)
		note_bytes(result, vd_kv_key(range->kvs[0]));
	told(result);
}

bool etcd_note_range_stream(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
			    const struct vd_range_result *range, bool last)
{
	struct etcd_result *result = arg;

	assert_true(last == (range == NULL));
	if (last) {
		told(note(arg, error, header));
		return true;
	}
	assert_null(error);
	result->parts++;
	result->kv_count += range->kv_count;
	result->header = *header;
	return true;
}

void etcd_note_op(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		  const struct vd_op_result *op)
{
	struct etcd_result *result = note(arg, error, header);

	assert_true((error == NULL) == (op != NULL) && (error == NULL) == (header != NULL));
	if (op == NULL) {
		told(result);
		return;
	}
	result->kv_count = op->previous_count;
	result->number = op->deleted;
	if (op->previous_count)
		note_bytes(result, vd_kv_value(op->previous[0]));
	told(result);
}

void etcd_note_txn(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		   const struct vd_txn_result *txn)
{
	struct etcd_result *result = note(arg, error, header);

	assert_true((error == NULL) == (txn != NULL) && (error == NULL) == (header != NULL));
	if (txn == NULL) {
		told(result);
		return;
	}
	result->kv_count = txn->result_count;
	result->flag = txn->succeeded;
	result->number = txn->revision;
	told(result);
}

void etcd_note_done(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header)
{
	assert_true((error == NULL) == (header != NULL));
	told(note(arg, error, header));
}

void etcd_note_lease(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		     const struct vd_lease_result *lease)
{
	struct etcd_result *result = note(arg, error, header);

	assert_true((error == NULL) == (lease != NULL) && (error == NULL) == (header != NULL));
	if (lease == NULL) {
		told(result);
		return;
	}
	result->number = lease->ttl_s;
	result->second = lease->id;
	result->kv_count = lease->key_count;
	if (lease->key_count)
		note_bytes(result, lease->keys[0]);
	told(result);
}

void etcd_note_leases(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		      const int64_t *ids, size_t count)
{
	struct etcd_result *result = note(arg, error, header);

	assert_true(error == NULL || (header == NULL && ids == NULL && count == 0));
	result->kv_count = count;
	result->number = count ? ids[0] : 0;
	told(result);
}

void etcd_note_status(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		      const struct vd_etcd_status *status)
{
	struct etcd_result *result = note(arg, error, header);

	if (status == NULL) {
		told(result);
		return;
	}
	note_bytes(result, vd_bytes_of(status->version));
	result->number = status->db_size;
	result->second = (int64_t) status->leader;
	result->kv_count = status->error_count;
	told(result);
}

void etcd_note_alarms(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		      const struct vd_etcd_alarm *alarms, size_t count)
{
	struct etcd_result *result = note(arg, error, header);

	assert_true(error == NULL || (header == NULL && alarms == NULL && count == 0));
	result->kv_count = count;
	result->number = count ? (int64_t) alarms[0].member_id : 0;
	result->second = count ? alarms[0].kind : 0;
	told(result);
}

void etcd_note_hash(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		    uint32_t hash, vd_rev compacted, vd_rev hashed)
{
	struct etcd_result *result = note(arg, error, header);

	assert_true(error == NULL || (header == NULL && hash == 0 && compacted == 0 && hashed == 0));
	result->number = hash;
	result->second = compacted;
	told(result);
}

void etcd_note_snapshot(void *arg, const struct vd_etcd_error *error, struct vd_bytes part,
			uint64_t remaining_bytes, bool last)
{
	struct etcd_result *result = arg;

	if (last) {
		assert_true(part.size == 0 && remaining_bytes == 0);
		told(note(arg, error, NULL));
		return;
	}
	assert_null(error);
	result->parts++;
	result->number += (int64_t) part.size;
	result->second = (int64_t) remaining_bytes;
}

void etcd_note_members(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		       const struct vd_etcd_member *members, size_t count)
{
	struct etcd_result *result = note(arg, error, header);

	assert_true(error == NULL || (header == NULL && members == NULL && count == 0));
	result->kv_count = count;
	if (count) {
		note_bytes(result, vd_bytes_of(members[0].name));
		result->number = (int64_t) members[0].client_url_count;
		result->second = (int64_t) members[0].id;
	}
	told(result);
}

void etcd_note_auth_status(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
			   bool enabled, uint64_t revision)
{
	struct etcd_result *result = note(arg, error, header);

	assert_true(error == NULL || (header == NULL && !enabled && revision == 0));
	result->flag = enabled;
	result->number = (int64_t) revision;
	told(result);
}

/* ---- Peer and client ---- */

struct vd_bytes etcd_pack(const void *message)
{
	static char	ring[8][8192];
	static unsigned next;
	char	       *bytes = ring[next++ % 8];

	assert_true(protobuf_c_message_get_packed_size(message) <= sizeof ring[0]);
	return (struct vd_bytes) { bytes, protobuf_c_message_pack(message, (uint8_t *) bytes) };
}

struct vd_bytes etcd_header_answer(vd_rev revision)
{
	Etcdserverpb__PutResponse    answer = ETCDSERVERPB__PUT_RESPONSE__INIT;
	Etcdserverpb__ResponseHeader header = ETCDSERVERPB__RESPONSE_HEADER__INIT;

	header.cluster_id = 11;
	header.member_id = 22;
	header.raft_term = 2;
	header.revision = revision;
	answer.header = &header;
	return etcd_pack(&answer);
}

vd_status etcd_start_range(struct etcd_client_fixture *fixture, const struct vd_etcd_call *call,
			   struct etcd_result *result)
{
	const struct vd_etcd_range_request request = { .range = { .key = vd_bytes_of("k") } };

	return vd_etcd_range(fixture->client, call, &request, etcd_note_range, result);
}

vd_status etcd_start_put(struct etcd_client_fixture *fixture, const struct vd_etcd_call *call,
			 struct etcd_result *result)
{
	const struct vd_op op = { .kind = VD_OP_PUT, .key = vd_bytes_of("k"), .value = vd_bytes_of("v") };

	return vd_etcd_put(fixture->client, call, &op, etcd_note_op, result);
}

struct expected {
	const struct etcd_result *result;
	unsigned		  calls;
};

static bool has_calls(void *arg)
{
	struct expected *expected = arg;

	return expected->result->calls >= expected->calls;
}

void etcd_expect_calls(struct etcd_client_fixture *fixture, struct etcd_result *result, unsigned calls)
{
	struct expected expected = { result, calls };

	if (!vdi_sim_run_until(fixture->env, has_calls, &expected, VD_SECONDS(3600)))
		fail_msg("%u calls of the callback, %u wanted", result->calls, calls);
	assert_int_equal(result->calls, calls);
}
