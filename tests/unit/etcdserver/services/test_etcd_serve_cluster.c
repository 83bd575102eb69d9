/* Cluster, health and maintenance of the etcd server without a network: what one member answers that stays
 * alone. */
#include "etcd_server_fixture.h"

#include <openssl/evp.h>

#include "actor_sim.h"
#include "serve_state.h"
#include "vdtest.h"

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

/* The first message says how the service is; the stream stays open, as nothing changes until the end. */
static void e155_health_can_be_watched(void **state)
{
	static const struct {
		const char *request;
		size_t	    size;
		char	    health;
	} rows[] = { { "", 0, 1 }, { "\x0a\x00", 2, 1 }, { "\x0a\x01x", 3, 3 }, { "\x10\x05", 2, 1 } };
	struct etcd_server_call call;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		etcd_server_call_init(&call, *state);
		etcd_server_call_open(&call, *state, "/grpc.health.v1.Health/Watch");
		etcd_server_call_send_bytes(&call, rows[i].request, rows[i].size);
		assert_false(call.is_finished);
		assert_int_equal(call.count, 1);
		assert_int_equal(call.sizes[0], 2);
		assert_int_equal(call.messages[0][0], 8);
		assert_int_equal(call.messages[0][1], rows[i].health);
		etcd_server_call_end(&call);
	}
}

/* What is no message is refused, whatever the method; nothing is done for it. */
static void requests_that_cannot_be_read(void **state)
{
	static const struct {
		const char *bytes;
		size_t	    size;
	} rows[] = {
		{ "\x0a\x7f", 2 },		   /* longer than the message */
		{ "\x00\x00", 2 },		   /* no field has number 0 */
		{ "\x07\x00", 2 },		   /* nor that, of no type */
		{ "\x80\x80\x80\x80\x10\x00", 6 }, /* a tag of more than 32 bits */
		{ "\xf8\x01", 2 },		   /* a number without a value */
		{ "\xf8\x01\x80", 3 },		   /* that ends in the middle */
		{ "\xf8\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13 },
		{ "\xf9\x01\x00\x00\x00\x00\x00\x00\x00", 9 }, /* 7 of 8 bytes */
		{ "\xfd\x01\x00\x00\x00", 5 },		       /* 3 of 4 bytes */
		{ "\xff\x01\x00", 3 },			       /* type 7 */
		{ "\x80", 1 },
	};
	const struct vdi_serve_method *method;

	for (size_t i = 0; (method = vdi_serve_method_at(i)) != NULL; i++)
		for (size_t row = 0; method->kind == VDI_SERVE_UNARY && row < VDI_ARRAY_SIZE(rows); row++) {
			struct etcd_server_call call;

			etcd_server_call_init(&call, *state);
			etcd_server_call_open(&call, *state, method->path);
			etcd_server_call_send_bytes(&call, rows[row].bytes, rows[row].size);
			if (!call.is_finished || call.code != VDI_RPC_INTERNAL || call.count ||
			    strstr(call.text, "invalid wire-format") == NULL)
				fail_msg("%s, row %zu: %d %s", method->path, row, call.code, call.text);
			etcd_server_call_end(&call);
		}
}

/* Unknown fields of any type are passed over, also where no field is known. */
static void requests_with_unknown_fields(void **state)
{
	static const char	 unknown[] = "\xf8\x3f\x05"
					     "\xf9\x3f\x01\x02\x03\x04\x05\x06\x07\x08"
					     "\xfa\x3f\x02xy"
					     "\xfd\x3f\x01\x02\x03\x04";
	static const char *const methods[] = {
		"/etcdserverpb.Maintenance/Status", "/etcdserverpb.Maintenance/Hash",
		"/etcdserverpb.Maintenance/HashKV", "/etcdserverpb.Maintenance/Defragment",
		"/etcdserverpb.Cluster/MemberList", "/etcdserverpb.Auth/AuthStatus",
		"/etcdserverpb.Auth/UserList",	    "/etcdserverpb.Auth/RoleList",
		"/etcdserverpb.Lease/LeaseLeases",  "/etcdserverpb.Maintenance/Snapshot",
		"/etcdserverpb.Maintenance/Alarm",  "/etcdserverpb.Lease/LeaseGrant",
		"/grpc.health.v1.Health/Check",
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(methods); i++) {
		struct etcd_server_call call;

		etcd_server_call_init(&call, *state);
		etcd_server_call_open(&call, *state, methods[i]);
		etcd_server_call_send_bytes(&call, unknown, sizeof unknown - 1);
		if (!call.is_finished || call.code != 0)
			fail_msg("%s: %d %s", methods[i], call.code, call.text);
		etcd_server_call_end(&call);
	}
}

static void e160_one_member_that_can_be_reached(void **state)
{
	struct etcd_server_fixture	 *fixture = *state;
	Etcdserverpb__MemberListRequest	  request = ETCDSERVERPB__MEMBER_LIST_REQUEST__INIT;
	Etcdserverpb__MemberListResponse *response;

	vdi_etcdserver_set_client_url(fixture->server, "http://127.0.0.1:2379");
	for (int linearizable = 0; linearizable < 2; linearizable++) {
		request.linearizable = linearizable;
		response = ETCD_ASK(fixture, "Cluster/MemberList", &request, member_list_response);
		assert_int_equal(response->n_members, 1);
		assert_int_equal(response->members[0]->id, fixture->server->member_id);
		assert_true(*response->members[0]->name);
		assert_false(response->members[0]->islearner);
		assert_int_equal(response->members[0]->n_clienturls, 1);
		assert_string_equal(response->members[0]->clienturls[0], "http://127.0.0.1:2379");
		ETCD_FREE(response);
	}
	/* Those that were given take its place. */
	{
		static const char *const urls[] = { "http://a:1", "https://b:2" };

		fixture->server->options.client_urls = urls;
		fixture->server->options.client_url_count = 2;
		response = ETCD_ASK(fixture, "Cluster/MemberList", &request, member_list_response);
		fixture->server->options.client_urls = NULL;
		fixture->server->options.client_url_count = 0;
		assert_int_equal(response->members[0]->n_clienturls, 2);
		assert_string_equal(response->members[0]->clienturls[0], urls[0]);
		assert_string_equal(response->members[0]->clienturls[1], urls[1]);
		ETCD_FREE(response);
	}
}

/* Always the same ones, in every kind of answer. */
static void e120_ids_and_term_stay(void **state)
{
	struct etcd_server_fixture   *fixture = *state;
	Etcdserverpb__RangeRequest    request = ETCDSERVERPB__RANGE_REQUEST__INIT;
	Etcdserverpb__StatusRequest   about = ETCDSERVERPB__STATUS_REQUEST__INIT;
	Etcdserverpb__RangeResponse  *read;
	Etcdserverpb__StatusResponse *status;

	request.key = etcd_bytes("a");
	for (int i = 0; i < 3; i++) {
		read = etcd_server_range(fixture, &request);
		status = ETCD_ASK(fixture, "Maintenance/Status", &about, status_response);
		assert_true(read->header->cluster_id != 0 && read->header->member_id != 0 &&
			    read->header->raft_term >= 1);
		assert_int_equal(read->header->cluster_id, status->header->cluster_id);
		assert_int_equal(read->header->member_id, status->header->member_id);
		assert_int_equal(read->header->raft_term, status->header->raft_term);
		assert_int_equal(read->header->cluster_id, fixture->server->cluster_id);
		ETCD_FREE(read);
		ETCD_FREE(status);
		etcd_server_put(fixture, "a", "1");
	}
}

/* rules: E-150 */
static void e161_status(void **state)
{
	struct etcd_server_fixture   *fixture = *state;
	Etcdserverpb__StatusRequest   request = ETCDSERVERPB__STATUS_REQUEST__INIT;
	Etcdserverpb__StatusResponse *status;
	uint64_t		      index = 0;
	char			      wanted[80];
	int			      major, minor, patch;

	for (int i = 0; i < 3; i++) {
		status = ETCD_ASK(fixture, "Maintenance/Status", &request, status_response);
		assert_int_equal(sscanf(status->version, "%d.%d.%d", &major, &minor, &patch), 3);
		assert_int_equal(sscanf(status->storageversion, "%d.%d.%d", &major, &minor, &patch), 3);
		assert_int_equal(patch, 0);
		assert_int_equal(status->leader, fixture->server->member_id);
		assert_true(status->raftindex > index && status->raftappliedindex == status->raftindex);
		index = status->raftindex;
		assert_int_equal(status->raftterm, status->header->raft_term);
		assert_true(status->dbsize > 0 && status->dbsizeinuse > 0 &&
			    status->dbsizeinuse <= status->dbsize);
		assert_int_equal(status->dbsizequota, 2147483648);
		assert_non_null(status->downgradeinfo);
		assert_false(status->downgradeinfo->enabled);
		assert_false(status->islearner);
		assert_int_equal(status->n_errors, 0);
		ETCD_FREE(status);
		etcd_server_put(fixture, "a", "1");
	}
	assert_int_equal(etcd_server_alarm(fixture, ETCDSERVERPB__ALARM_REQUEST__ALARM_ACTION__ACTIVATE,
					   ETCDSERVERPB__ALARM_TYPE__NOSPACE),
			 1);
	status = ETCD_ASK(fixture, "Maintenance/Status", &request, status_response);
	assert_int_equal(status->n_errors, 1);
	(void) snprintf(wanted, sizeof wanted, "memberID:%llu alarm:NOSPACE",
			(unsigned long long) fixture->server->member_id);
	assert_string_equal(status->errors[0], wanted);
	ETCD_FREE(status);
}

static void e163_what_one_member_has_little_to_do_for(void **state)
{
	struct etcd_server_fixture	 *fixture = *state;
	Etcdserverpb__DefragmentRequest	  defragment = ETCDSERVERPB__DEFRAGMENT_REQUEST__INIT;
	Etcdserverpb__MoveLeaderRequest	  move = ETCDSERVERPB__MOVE_LEADER_REQUEST__INIT;
	Etcdserverpb__HashRequest	  request = ETCDSERVERPB__HASH_REQUEST__INIT;
	Etcdserverpb__DefragmentResponse *empty;
	Etcdserverpb__HashResponse	 *hash;
	uint32_t			  hashes[3];

	empty = ETCD_ASK(fixture, "Maintenance/Defragment", &defragment, defragment_response);
	assert_null(empty->header);
	ETCD_FREE(empty);
	move.targetid = fixture->server->member_id;
	ETCD_FREE(ETCD_ASK(fixture, "Maintenance/MoveLeader", &move, move_leader_response));
	move.targetid++;
	etcd_server_ask_fails(fixture, "/etcdserverpb.Maintenance/MoveLeader", &move.base,
			      VD_ETCD_BAD_LEADER_TRANSFEREE);
	for (int i = 0; i < 3; i++) {
		if (i == 1)
			etcd_server_put(fixture, "a", "1");
		hash = ETCD_ASK(fixture, "Maintenance/Hash", &request, hash_response);
		hashes[i] = hash->hash;
		ETCD_FREE(hash);
	}
	assert_int_not_equal(hashes[0], hashes[1]);
	assert_int_equal(hashes[1], hashes[2]);
}

static void downgrade(struct etcd_server_fixture *fixture, int action, const char *version, int code)
{
	Etcdserverpb__DowngradeRequest	 request = ETCDSERVERPB__DOWNGRADE_REQUEST__INIT;
	Etcdserverpb__DowngradeResponse *response;

	request.action = (Etcdserverpb__DowngradeRequest__DowngradeAction) action;
	request.version = (char *) (uintptr_t) version;
	if (code >= 0) {
		etcd_server_ask_fails(fixture, "/etcdserverpb.Maintenance/Downgrade", &request.base,
				      (enum vd_etcd_code) code);
		return;
	}
	response = ETCD_ASK(fixture, "Maintenance/Downgrade", &request, downgrade_response);
	assert_string_equal(response->version, "3.7");
	ETCD_FREE(response);
}

static void e162_alarms(void **state)
{
	enum {
		GET = ETCDSERVERPB__ALARM_REQUEST__ALARM_ACTION__GET,
		ON = ETCDSERVERPB__ALARM_REQUEST__ALARM_ACTION__ACTIVATE,
		OFF = ETCDSERVERPB__ALARM_REQUEST__ALARM_ACTION__DEACTIVATE
	};
	enum {
		NONE = ETCDSERVERPB__ALARM_TYPE__NONE,
		FULL = ETCDSERVERPB__ALARM_TYPE__NOSPACE,
		CORRUPT = ETCDSERVERPB__ALARM_TYPE__CORRUPT
	};
	static const struct {
		int	    action, type;
		uint64_t    member;
		const char *answer; /* types, each with its member */
	} steps[] = {
		{ GET, NONE, 0, "" },
		{ ON, NONE, 7, "" },
		{ GET, NONE, 0, "" },
		{ OFF, FULL, 7, "" },
		{ ON, FULL, 7, " 1@7" },
		{ ON, FULL, 7, " 1@7" },
		{ GET, FULL, 0, " 1@7" },
		{ GET, FULL, 99, " 1@7" },
		{ GET, CORRUPT, 7, "" },
		{ ON, CORRUPT, 7, " 2@7" },
		{ GET, NONE, 99, " 1@7 2@7" },
		{ OFF, FULL, 8, "" },
		{ OFF, FULL, 7, " 1@7" },
		{ OFF, FULL, 7, "" },
		{ GET, NONE, 0, " 2@7" },
		{ GET, FULL, 0, "" },
		{ 3, NONE, 0, "" },
		{ 3, CORRUPT, 7, "" },
		{ -1, CORRUPT, 7, "" },
		{ GET, NONE, 0, " 2@7" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(steps); i++) {
		Etcdserverpb__AlarmRequest   request = ETCDSERVERPB__ALARM_REQUEST__INIT;
		Etcdserverpb__AlarmResponse *response;
		char			     text[64] = "";

		request.action = (Etcdserverpb__AlarmRequest__AlarmAction) steps[i].action;
		request.alarm = (Etcdserverpb__AlarmType) steps[i].type;
		request.memberid = steps[i].member;
		response = ETCD_ASK((struct etcd_server_fixture *) *state, "Maintenance/Alarm", &request,
				    alarm_response);
		for (size_t j = 0; j < response->n_alarms; j++)
			(void) snprintf(text + strlen(text), sizeof text - strlen(text), " %d@%llu",
					(int) response->alarms[j]->alarm,
					(unsigned long long) response->alarms[j]->memberid);
		ETCD_FREE(response);
		if (strcmp(text, steps[i].answer) != 0)
			fail_msg("step %zu:%s, not%s", i, text, steps[i].answer);
	}
}

/* Pieces of at most 32 KiB that count down to 0, then the digest of all of them in a message of its own, then
 * OK. */
/* A client that reads slowly gets every message, in order, and each of them once. */
static void e165_a_snapshot_waits_for_its_reader(void **state)
{
	Etcdserverpb__SnapshotRequest request = ETCDSERVERPB__SNAPSHOT_REQUEST__INIT;
	struct etcd_server_call	      call;
	static char		      value[20001];
	uint64_t		      sent = 0, total = 0;

	memset(value, 'v', sizeof value - 1);
	for (unsigned i = 0; i < 10; i++) {
		char key[8];

		snprintf(key, sizeof key, "k%u", i);
		etcd_server_put(*state, key, value);
	}
	etcd_server_call_init(&call, *state);
	call.room = 1;
	etcd_server_call_open(&call, *state, "/etcdserverpb.Maintenance/Snapshot");
	etcd_server_call_send(&call, &request.base);
	for (size_t count = 1; !call.is_finished; count++) {
		Etcdserverpb__SnapshotResponse *part;

		assert_int_equal(call.count, count);
		part = etcdserverpb__snapshot_response__unpack(NULL, call.sizes[count - 1],
							       (const uint8_t *) call.messages[count - 1]);
		if (count == 1)
			total = part->blob.len + part->remaining_bytes;
		if (sent < total)
			sent += part->blob.len;
		assert_int_equal(part->remaining_bytes, total - sent);
		etcdserverpb__snapshot_response__free_unpacked(part, NULL);
		etcd_server_call_make_room(&call, 1);
		assert_true(call.is_finished || call.count == count + 1);
	}
	assert_int_equal(call.code, 0);
	assert_int_equal(sent, total);
	etcd_server_call_end(&call);
}

/* Room is reported by the transport's thread while a worker may still be at it: each report that was waited
 * for continues the snapshot once, and others not at all. */
static void e165_a_snapshot_is_continued_once(void **state)
{
	struct etcd_server_fixture   *fixture = *state;
	Etcdserverpb__SnapshotRequest request = ETCDSERVERPB__SNAPSHOT_REQUEST__INIT;
	struct etcd_server_call	      call;
	unsigned		      turns;

	etcd_server_put(fixture, "k", "v");
	etcd_server_call_init(&call, fixture);
	call.room = 0;
	etcd_server_call_open(&call, fixture, "/etcdserverpb.Maintenance/Snapshot");
	etcd_server_call_send(&call, &request.base);
	for (size_t count = 0; !call.is_finished; count++) {
		assert_int_equal(call.count, count);
		call.room = 1;
		turns = fixture->server->next_worker;
		for (int i = 0; i < 3; i++)
			vdi_etcdserver_writable(&call.base);
		assert_int_equal(fixture->server->next_worker, turns + 1);
		(void) vdi_sim_run_until_idle(fixture->env);
	}
	assert_true(call.count >= 2);
	etcd_server_call_end(&call);
}

/* A transport that says at any moment that there is room disturbs nothing. */
static void e165_room_that_nobody_waits_for(void **state)
{
	struct etcd_server_fixture   *fixture = *state;
	Etcdserverpb__SnapshotRequest request = ETCDSERVERPB__SNAPSHOT_REQUEST__INIT;
	struct etcd_server_call	      call;
	static char		      value[200001];
	uint64_t		      left = UINT64_MAX;

	memset(value, 'v', sizeof value - 1);
	etcd_server_put(fixture, "k", value);
	etcd_server_call_post(&call, fixture, "/etcdserverpb.Maintenance/Snapshot", &request.base);
	do
		vdi_etcdserver_writable(&call.base);
	while (vdi_sim_step(fixture->env));
	assert_true(call.is_finished);
	assert_int_equal(call.code, 0);
	assert_true(call.count > 5);
	for (size_t i = 0; i < call.count; i++) {
		Etcdserverpb__SnapshotResponse *part = etcdserverpb__snapshot_response__unpack(
			NULL, call.sizes[i], (const uint8_t *) call.messages[i]);

		if (i == 0)
			left = part->blob.len + part->remaining_bytes;
		if (i + 1 < call.count)
			left -= part->blob.len;
		assert_int_equal(part->remaining_bytes, left);
		etcdserverpb__snapshot_response__free_unpacked(part, NULL);
	}
	assert_int_equal(left, 0);
	etcd_server_call_end(&call);
}

static void e165_the_messages_of_a_snapshot(void **state)
{
	Etcdserverpb__SnapshotRequest request = ETCDSERVERPB__SNAPSHOT_REQUEST__INIT;
	struct etcd_server_call	      call;
	unsigned char		      digest[32];
	static char		      value[20001];
	EVP_MD_CTX		     *context = EVP_MD_CTX_new();
	uint64_t		      sent = 0, total = 0;

	memset(value, 'v', sizeof value - 1);
	for (unsigned i = 0; i < 10; i++) {
		char key[8];

		snprintf(key, sizeof key, "k%u", i);
		etcd_server_put(*state, key, value);
	}
	assert_int_equal(EVP_DigestInit_ex(context, EVP_sha256(), NULL), 1);
	etcd_server_call_init(&call, *state);
	etcd_server_call_open(&call, *state, "/etcdserverpb.Maintenance/Snapshot");
	etcd_server_call_send(&call, &request.base);
	assert_true(call.is_finished);
	assert_int_equal(call.code, 0);
	assert_true(call.count > 7);
	for (size_t i = 0; i < call.count; i++) {
		Etcdserverpb__SnapshotResponse *part = etcdserverpb__snapshot_response__unpack(
			NULL, call.sizes[i], (const uint8_t *) call.messages[i]);

		assert_string_equal(part->version, "3.7.0");
		if (i == 0)
			total = part->blob.len + part->remaining_bytes;
		if (i + 1 < call.count) {
			assert_in_range(part->blob.len, 1, 32 << 10);
			sent += part->blob.len;
			assert_int_equal(part->remaining_bytes, total - sent);
			assert_int_equal(EVP_DigestUpdate(context, part->blob.data, part->blob.len), 1);
		} else {
			assert_int_equal(sent, total);
			assert_int_equal(part->remaining_bytes, 0);
			assert_int_equal(part->blob.len, sizeof digest);
			assert_int_equal(EVP_DigestFinal_ex(context, digest, NULL), 1);
			assert_memory_equal(part->blob.data, digest, sizeof digest);
		}
		etcdserverpb__snapshot_response__free_unpacked(part, NULL);
	}
	assert_true(total > 200000);
	assert_int_equal(total % 512, 0);
	etcd_server_call_end(&call);
	EVP_MD_CTX_free(context);
}

static void e164_downgrades(void **state)
{
	enum { VALIDATE, ENABLE, CANCEL };

	downgrade(*state, VALIDATE, "3.6", -1);
	downgrade(*state, VALIDATE, "3.6.0", -1);
	downgrade(*state, VALIDATE, "three", VD_ETCD_WRONG_DOWNGRADE_VERSION_FORMAT);
	downgrade(*state, ENABLE, "3.", VD_ETCD_WRONG_DOWNGRADE_VERSION_FORMAT);
	downgrade(*state, VALIDATE, "3.5", VD_ETCD_INVALID_DOWNGRADE_TARGET_VERSION);
	downgrade(*state, VALIDATE, "4.6", VD_ETCD_INVALID_DOWNGRADE_TARGET_VERSION);
	downgrade(*state, ENABLE, "3.5", VD_ETCD_INVALID_DOWNGRADE_TARGET_VERSION);
	downgrade(*state, ENABLE, "3.6",
		  VD_ETCD_INVALID_DOWNGRADE_TARGET_VERSION); /* no older etcd can read these files */
	downgrade(*state, CANCEL, "", -1);
	downgrade(*state, VALIDATE, "", VD_ETCD_WRONG_DOWNGRADE_VERSION_FORMAT);
	downgrade(*state, VALIDATE, "/.6", VD_ETCD_WRONG_DOWNGRADE_VERSION_FORMAT);
	downgrade(*state, VALIDATE, ":.6", VD_ETCD_WRONG_DOWNGRADE_VERSION_FORMAT);
	downgrade(*state, VALIDATE, "3./", VD_ETCD_WRONG_DOWNGRADE_VERSION_FORMAT);
	downgrade(*state, VALIDATE, "3.:", VD_ETCD_WRONG_DOWNGRADE_VERSION_FORMAT);
	downgrade(*state, VALIDATE, "3,6", VD_ETCD_WRONG_DOWNGRADE_VERSION_FORMAT);
	downgrade(*state, VALIDATE, "3.6.", VD_ETCD_WRONG_DOWNGRADE_VERSION_FORMAT);
	downgrade(*state, VALIDATE, "3.6./", VD_ETCD_WRONG_DOWNGRADE_VERSION_FORMAT);
	downgrade(*state, VALIDATE, "3.6.:", VD_ETCD_WRONG_DOWNGRADE_VERSION_FORMAT);
	downgrade(*state, VALIDATE, "3.6-rc", VD_ETCD_WRONG_DOWNGRADE_VERSION_FORMAT);
	downgrade(*state, VALIDATE, "3.6.0-rc.1", -1);
	downgrade(*state, VALIDATE, "3.6.9", -1);
	downgrade(*state, VALIDATE, "0.0", VD_ETCD_INVALID_DOWNGRADE_TARGET_VERSION);
	downgrade(*state, VALIDATE, "9.9", VD_ETCD_INVALID_DOWNGRADE_TARGET_VERSION);
	for (const char *sign = "+- \t"; *sign; sign++) {
		const char text[] = { *sign, '3', '.', '6', 0 };

		downgrade(*state, VALIDATE, text, VD_ETCD_WRONG_DOWNGRADE_VERSION_FORMAT);
	}
	/* 63 characters are a version, 64 are too many. */
	for (int size = 60; size < 70; size++) {
		char text[70] = "3.6.";

		memset(text + 4, '0', (size_t) size - 4);
		if (size > 63)
			downgrade(*state, VALIDATE, text, VD_ETCD_WRONG_DOWNGRADE_VERSION_FORMAT);
		else
			downgrade(*state, VALIDATE, text, -1);
	}
	downgrade(*state, VALIDATE, "3.6.000000000000000000000000000000000000000000000000000000000000000",
		  VD_ETCD_WRONG_DOWNGRADE_VERSION_FORMAT);
	downgrade(*state, VALIDATE, "3.6.00000000000000000000000000000000000000000000000000000000000", -1);
	for (int action = 3; action < 6; action++) { /* known to nobody */
		Etcdserverpb__DowngradeRequest request = ETCDSERVERPB__DOWNGRADE_REQUEST__INIT;
		struct etcd_server_call	       call;

		request.action = (Etcdserverpb__DowngradeRequest__DowngradeAction) action;
		request.version = (char *) (uintptr_t) "3.6";
		etcd_server_call_init(&call, *state);
		assert_null(etcd_server_ask(*state, &call, "/etcdserverpb.Maintenance/Downgrade",
					    &request.base, &etcdserverpb__downgrade_response__descriptor));
		assert_int_equal(call.code, VDI_RPC_UNKNOWN);
		assert_string_equal(call.text, "etcdserver: unknown method");
	}
}

/* A member that is alone stays so: our own is refused for what it is, others do not exist. */
static void e166_members_are_not_changed(void **state)
{
	struct etcd_server_fixture	  *fixture = *state;
	Etcdserverpb__MemberAddRequest	   add = ETCDSERVERPB__MEMBER_ADD_REQUEST__INIT;
	Etcdserverpb__MemberRemoveRequest  remove = ETCDSERVERPB__MEMBER_REMOVE_REQUEST__INIT;
	Etcdserverpb__MemberUpdateRequest  update = ETCDSERVERPB__MEMBER_UPDATE_REQUEST__INIT;
	Etcdserverpb__MemberPromoteRequest promote = ETCDSERVERPB__MEMBER_PROMOTE_REQUEST__INIT;
	Etcdserverpb__MemberListRequest	   list = ETCDSERVERPB__MEMBER_LIST_REQUEST__INIT;
	Etcdserverpb__MemberListResponse  *members;
	char				  *urls[] = { (char *) (uintptr_t) "http://127.0.0.1:1" };

	add.peerurls = update.peerurls = urls;
	add.n_peerurls = update.n_peerurls = 1;
	etcd_server_ask_fails(fixture, "/etcdserverpb.Cluster/MemberAdd", &add.base, VD_ETCD_UNHEALTHY);
	remove.id = update.id = promote.id = fixture->server->member_id;
	etcd_server_ask_fails(fixture, "/etcdserverpb.Cluster/MemberRemove", &remove.base,
			      VD_ETCD_MEMBER_NOT_ENOUGH_STARTED);
	etcd_server_ask_fails(fixture, "/etcdserverpb.Cluster/MemberPromote", &promote.base,
			      VD_ETCD_MEMBER_NOT_LEARNER);
	remove.id = update.id = promote.id = fixture->server->member_id + 1;
	etcd_server_ask_fails(fixture, "/etcdserverpb.Cluster/MemberRemove", &remove.base,
			      VD_ETCD_MEMBER_NOT_FOUND);
	etcd_server_ask_fails(fixture, "/etcdserverpb.Cluster/MemberUpdate", &update.base,
			      VD_ETCD_MEMBER_NOT_FOUND);
	etcd_server_ask_fails(fixture, "/etcdserverpb.Cluster/MemberPromote", &promote.base,
			      VD_ETCD_MEMBER_NOT_FOUND);
	members = ETCD_ASK(fixture, "Cluster/MemberList", &list, member_list_response);
	assert_int_equal(members->n_members, 1);
	ETCD_FREE(members);
}

static void expect_peer_urls(struct etcd_server_fixture *fixture, const char *first, const char *second)
{
	Etcdserverpb__MemberListRequest	  list = ETCDSERVERPB__MEMBER_LIST_REQUEST__INIT;
	Etcdserverpb__MemberListResponse *members =
		ETCD_ASK(fixture, "Cluster/MemberList", &list, member_list_response);

	assert_int_equal(members->n_members, 1);
	assert_int_equal(members->members[0]->n_peerurls, second ? 2 : 1);
	assert_string_equal(members->members[0]->peerurls[0], first);
	if (second)
		assert_string_equal(members->members[0]->peerurls[1], second);
	ETCD_FREE(members);
}

/* As in an etcd, the URLs are what the list of members shows from then on. */
static void e160_peer_urls_can_be_changed(void **state)
{
	struct etcd_server_fixture	   *fixture = *state;
	Etcdserverpb__MemberUpdateRequest   update = ETCDSERVERPB__MEMBER_UPDATE_REQUEST__INIT;
	Etcdserverpb__MemberUpdateResponse *response;
	char				   *urls[] = { (char *) (uintptr_t) "http://127.0.0.1:1",
						       (char *) (uintptr_t) "unixs:///tmp/peer" };
	static const char *const	    bad[] = { "",
						      "foo",
						      "127.0.0.1:1",
						      "ftp://127.0.0.1:1",
						      "http://127.0.0.1",
						      "http://127.0.0.1:1/path",
						      "http://127.0.0.1:1 ",
						      "unix:peer",
						      "unix:///tmp/a b",
						      "unix:///tmp/a\tb",
						      "unix:///tmp/a\rb",
						      "unix:///tmp/a\nb",
						      "unix:///tmp/a?b",
						      "unix:///tmp/a#b" };

	update.id = fixture->server->member_id;
	update.peerurls = urls;
	update.n_peerurls = 2;
	response = ETCD_ASK(fixture, "Cluster/MemberUpdate", &update, member_update_response);
	assert_int_equal(response->n_members, 1);
	assert_string_equal(response->members[0]->peerurls[1], "unixs:///tmp/peer");
	ETCD_FREE(response);
	expect_peer_urls(fixture, "http://127.0.0.1:1", "unixs:///tmp/peer");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(bad); i++) {
		urls[1] = (char *) (uintptr_t) bad[i];
		etcd_server_ask_fails(fixture, "/etcdserverpb.Cluster/MemberUpdate", &update.base,
				      VD_ETCD_MEMBER_BAD_URLS);
	}
	for (size_t size = 512; size < 1000;
	     size += size < 520 ? 1 : 60) { /* too long for what a URL is copied to */
		char url[1000] = "unix:///";

		memset(url + 8, 'p', size - 8);
		urls[1] = url;
		etcd_server_ask_fails(fixture, "/etcdserverpb.Cluster/MemberUpdate", &update.base,
				      VD_ETCD_MEMBER_BAD_URLS);
	}
	for (size_t size = 511; size <= 512; size++) { /* the longest one that fits */
		char url[513] = "http://";

		memset(url + 7, 'h', size - 7);
		memcpy(url + size - 3, ":80", 3);
		urls[1] = url;
		if (size > 511) {
			etcd_server_ask_fails(fixture, "/etcdserverpb.Cluster/MemberUpdate", &update.base,
					      VD_ETCD_MEMBER_BAD_URLS);
			continue;
		}
		ETCD_FREE(ETCD_ASK(fixture, "Cluster/MemberUpdate", &update, member_update_response));
		expect_peer_urls(fixture, "http://127.0.0.1:1", url);
		urls[1] = (char *) (uintptr_t) "unixs:///tmp/peer";
		ETCD_FREE(ETCD_ASK(fixture, "Cluster/MemberUpdate", &update, member_update_response));
	}
	update.n_peerurls = 0;
	etcd_server_ask_fails(fixture, "/etcdserverpb.Cluster/MemberUpdate", &update.base,
			      VD_ETCD_MEMBER_BAD_URLS);
	expect_peer_urls(fixture, "http://127.0.0.1:1", "unixs:///tmp/peer");
	update.n_peerurls = 1;
	ETCD_FREE(ETCD_ASK(fixture, "Cluster/MemberUpdate", &update, member_update_response));
	expect_peer_urls(fixture, "http://127.0.0.1:1", NULL);
}

/* More URLs than fit are refused as a whole, and changed ones replace those of the options. */
static void e160_the_room_for_peer_urls(void **state)
{
	static const char *const	  options[] = { "http://of-the-options:2380" };
	struct etcd_server_fixture	 *fixture = *state;
	Etcdserverpb__MemberUpdateRequest update = ETCDSERVERPB__MEMBER_UPDATE_REQUEST__INIT;
	char				 *urls[100];
	char				  url[401] = "http://";

	fixture->server->options.peer_urls = options;
	fixture->server->options.peer_url_count = 1;
	expect_peer_urls(fixture, options[0], NULL);
	memset(url + 7, 'h', 390);
	memcpy(url + 397, ":80", 3);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(urls); i++)
		urls[i] = url;
	update.id = fixture->server->member_id;
	update.peerurls = urls;
	update.n_peerurls = VDI_ARRAY_SIZE(urls);
	etcd_server_ask_fails(fixture, "/etcdserverpb.Cluster/MemberUpdate", &update.base,
			      VD_ETCD_MEMBER_BAD_URLS);
	expect_peer_urls(fixture, options[0], NULL);
	update.n_peerurls = 2;
	ETCD_FREE(ETCD_ASK(fixture, "Cluster/MemberUpdate", &update, member_update_response));
	expect_peer_urls(fixture, url, url);
}

/* Without memory the URLs are as before; an answer without an error has the new ones. */
static void e160_peer_urls_without_memory(void **state)
{
	struct etcd_server_fixture	 *fixture = *state;
	Etcdserverpb__MemberUpdateRequest update = ETCDSERVERPB__MEMBER_UPDATE_REQUEST__INIT;
	char	 url[] = "http://127.0.0.1:10", now[sizeof url] = "http://127.0.0.1:09";
	char	*urls[] = { now };
	unsigned failures = 0;
	bool	 was_reached = true;

	update.id = fixture->server->member_id;
	update.peerurls = urls;
	update.n_peerurls = 1;
	ETCD_FREE(ETCD_ASK(fixture, "Cluster/MemberUpdate", &update, member_update_response));
	urls[0] = url;
	for (uint64_t n = 1; was_reached; n++) {
		struct etcd_server_call call;

		assert_true(n < 100);
		(void) snprintf(url, sizeof url, "http://127.0.0.1:%u", (unsigned) (n + 9) % 100);
		(void) vdi_alloc_fail_nth(n, 1);
		etcd_server_call_post(&call, fixture, "/etcdserverpb.Cluster/MemberUpdate", &update.base);
		(void) vdi_sim_run_until_idle(fixture->env);
		was_reached = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_true(call.is_finished);
		if (call.code == 0) {
			Etcdserverpb__MemberUpdateResponse *response;

			assert_int_equal(call.count, 1);
			response = etcdserverpb__member_update_response__unpack(
				NULL, call.sizes[0], (const uint8_t *) call.messages[0]);
			assert_int_equal(response->n_members, 1);
			assert_int_equal(response->members[0]->n_peerurls, 1);
			assert_string_equal(response->members[0]->peerurls[0], url);
			ETCD_FREE(response);
			memcpy(now, url, sizeof now);
		} else {
			Etcdserverpb__MemberListRequest	  list = ETCDSERVERPB__MEMBER_LIST_REQUEST__INIT;
			Etcdserverpb__MemberListResponse *members =
				ETCD_ASK(fixture, "Cluster/MemberList", &list, member_list_response);

			assert_true(was_reached);
			failures++;
			if (strcmp(members->members[0]->peerurls[0], url) == 0)
				memcpy(now, url, sizeof now); /* only the answer had no memory */
			ETCD_FREE(members);
		}
		etcd_server_call_end(&call);
		expect_peer_urls(fixture, now, NULL);
	}
	assert_true(failures > 1);
}

static void e123_headers_that_are_absent_or_say_nothing(void **state)
{
	struct etcd_server_fixture	 *fixture = *state;
	Etcdserverpb__DefragmentRequest	  defragment = ETCDSERVERPB__DEFRAGMENT_REQUEST__INIT;
	Etcdserverpb__MoveLeaderRequest	  move = ETCDSERVERPB__MOVE_LEADER_REQUEST__INIT;
	Etcdserverpb__MemberListRequest	  list = ETCDSERVERPB__MEMBER_LIST_REQUEST__INIT;
	Etcdserverpb__SnapshotRequest	  snapshot = ETCDSERVERPB__SNAPSHOT_REQUEST__INIT;
	Etcdserverpb__DefragmentResponse *defragmented;
	Etcdserverpb__MoveLeaderResponse *moved;
	Etcdserverpb__MemberListResponse *members;
	struct etcd_server_call		  call;

	etcd_server_put(fixture, "a", "1");
	defragmented = ETCD_ASK(fixture, "Maintenance/Defragment", &defragment, defragment_response);
	assert_null(defragmented->header);
	ETCD_FREE(defragmented);
	move.targetid = fixture->server->member_id;
	moved = ETCD_ASK(fixture, "Maintenance/MoveLeader", &move, move_leader_response);
	assert_null(moved->header);
	ETCD_FREE(moved);
	members = ETCD_ASK(fixture, "Cluster/MemberList", &list, member_list_response);
	assert_int_equal(members->header->member_id, fixture->server->member_id);
	assert_int_equal(members->header->revision, 0);
	ETCD_FREE(members);
	etcd_server_call_init(&call, fixture);
	etcd_server_call_open(&call, fixture, "/etcdserverpb.Maintenance/Snapshot");
	etcd_server_call_send(&call, &snapshot.base);
	assert_true(call.is_finished && call.count > 1);
	for (size_t i = 0; i < call.count; i++) {
		Etcdserverpb__SnapshotResponse *part = etcdserverpb__snapshot_response__unpack(
			NULL, call.sizes[i], (const uint8_t *) call.messages[i]);

		assert_null(part->header);
		etcdserverpb__snapshot_response__free_unpacked(part, NULL);
	}
	etcd_server_call_end(&call);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, etcd_server_setup, etcd_server_teardown)
		CASE(e155_health_is_of_the_whole_server),
		CASE(e155_health_can_be_watched),
		CASE(requests_that_cannot_be_read),
		CASE(requests_with_unknown_fields),
		CASE(e160_one_member_that_can_be_reached),
		CASE(e120_ids_and_term_stay),
		CASE(e161_status),
		CASE(e123_headers_that_are_absent_or_say_nothing),
		CASE(e163_what_one_member_has_little_to_do_for),
		CASE(e162_alarms),
		CASE(e165_the_messages_of_a_snapshot),
		CASE(e165_a_snapshot_waits_for_its_reader),
		CASE(e165_a_snapshot_is_continued_once),
		CASE(e165_room_that_nobody_waits_for),
		CASE(e164_downgrades),
		CASE(e166_members_are_not_changed),
		CASE(e160_peer_urls_can_be_changed),
		CASE(e160_the_room_for_peer_urls),
		CASE(e160_peer_urls_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
