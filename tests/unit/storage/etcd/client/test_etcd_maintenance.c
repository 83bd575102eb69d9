/* Leases, maintenance, cluster and users: requests as etcd reads them, answers as callers see them
 * (E-113..E-116). */
#include <rpc.pb-c.h>

#include "etcd_client_fixture.h"
#include "vdtest.h"

/* The request that reached the peer, unpacked by its name; freed by answer(). */
static struct rpc_script_call *last_call;
static ProtobufCMessage	      *last_request;

static void *expect(struct etcd_client_fixture *fixture, const char *method,
		    const ProtobufCMessageDescriptor *descriptor)
{
	struct vd_bytes message;

	last_call = rpc_script_expect_call(fixture->script, NULL);
	assert_string_equal(rpc_script_call_method(last_call), method);
	message = rpc_script_expect_message(last_call);
	last_request = protobuf_c_message_unpack(descriptor, NULL, message.size, message.data);
	assert_non_null(last_request);
	return last_request;
}

/* How every answer of etcd begins. */
struct any_answer {
	ProtobufCMessage	      base;
	Etcdserverpb__ResponseHeader *header;
};

static void answer_with(struct etcd_client_fixture *fixture, void *message, bool has_header,
			struct etcd_result *result)
{
	static vd_rev		     revision = 100;
	Etcdserverpb__ResponseHeader header = ETCDSERVERPB__RESPONSE_HEADER__INIT;
	unsigned		     calls = result->calls;

	header.cluster_id = 11;
	header.member_id = 22;
	header.raft_term = 2;
	header.revision = ++revision;
	if (message && has_header)
		((struct any_answer *) message)->header = &header;
	memset(&result->header, 0, sizeof result->header);
	protobuf_c_message_free_unpacked(last_request, NULL);
	rpc_script_answer(last_call, message ? etcd_pack(message) : etcd_header_answer(revision));
	etcd_expect_calls(fixture, result, calls + 1);
	assert_etcd_ok(result);
	assert_true(result->has_header);
	assert_int_equal(result->header.cluster_id, has_header ? 11 : 0);
	assert_int_equal(result->header.member_id, has_header ? 22 : 0);
	assert_int_equal(result->header.revision, has_header ? revision : 0);
	if (message)
		((struct any_answer *) message)->header = NULL;
}

/* message: NULL, or an answer, which gets a header of its own. */
static void answer(struct etcd_client_fixture *fixture, void *message, struct etcd_result *result)
{
	answer_with(fixture, message, true, result);
}

static void e113_leases(void **state)
{
	struct etcd_client_fixture	      fixture;
	struct etcd_result		      result = { 0 };
	Etcdserverpb__LeaseGrantResponse      granted = ETCDSERVERPB__LEASE_GRANT_RESPONSE__INIT;
	Etcdserverpb__LeaseTimeToLiveResponse ttl = ETCDSERVERPB__LEASE_TIME_TO_LIVE_RESPONSE__INIT;
	Etcdserverpb__LeaseLeasesResponse     leases = ETCDSERVERPB__LEASE_LEASES_RESPONSE__INIT;
	Etcdserverpb__LeaseStatus	      lease = ETCDSERVERPB__LEASE_STATUS__INIT;
	Etcdserverpb__LeaseStatus	     *lease_list[] = { &lease, &lease };
	ProtobufCBinaryData		      key = { 3, (uint8_t *) "abc" };
	Etcdserverpb__LeaseGrantRequest	     *grant;
	Etcdserverpb__LeaseTimeToLiveRequest *asked;

	etcd_client_fixture_start(&fixture, 1);
	assert_status(vd_etcd_lease_grant(fixture.client, NULL, 77, -5, etcd_note_lease, &result), VD_OK);
	grant = expect(&fixture, "/etcdserverpb.Lease/LeaseGrant",
		       &etcdserverpb__lease_grant_request__descriptor);
	assert_true(grant->id == 77 && grant->ttl == -5);
	granted.id = 77;
	granted.ttl = 2;
	answer(&fixture, &granted, &result);
	assert_true(result.second == 77 && result.number == 2);

	assert_status(vd_etcd_lease_revoke(fixture.client, NULL, 77, etcd_note_done, &result), VD_OK);
	assert_int_equal(
		((Etcdserverpb__LeaseRevokeRequest *) expect(&fixture, "/etcdserverpb.Lease/LeaseRevoke",
							     &etcdserverpb__lease_revoke_request__descriptor))
			->id,
		77);
	answer(&fixture, NULL, &result);

	assert_status(vd_etcd_lease_time_to_live(fixture.client, NULL, 9, true, etcd_note_lease, &result),
		      VD_OK);
	asked = expect(&fixture, "/etcdserverpb.Lease/LeaseTimeToLive",
		       &etcdserverpb__lease_time_to_live_request__descriptor);
	assert_true(asked->id == 9 && asked->keys);
	ttl.id = 9;
	ttl.ttl = -1;
	ttl.keys = &key;
	ttl.n_keys = 1;
	answer(&fixture, &ttl, &result);
	assert_int_equal(result.number, -1);
	assert_string_equal(result.text, "abc");

	assert_status(vd_etcd_lease_list(fixture.client, NULL, etcd_note_leases, &result), VD_OK);
	(void) expect(&fixture, "/etcdserverpb.Lease/LeaseLeases",
		      &etcdserverpb__lease_leases_request__descriptor);
	lease.id = 12;
	leases.leases = lease_list;
	leases.n_leases = 2;
	answer(&fixture, &leases, &result);
	assert_true(result.kv_count == 2 && result.number == 12);
	etcd_client_fixture_fini(&fixture);
}

static void e114_maintenance(void **state)
{
	struct etcd_client_fixture   fixture;
	struct etcd_result	     result = { 0 };
	Etcdserverpb__StatusResponse status = ETCDSERVERPB__STATUS_RESPONSE__INIT;
	Etcdserverpb__AlarmResponse  alarms = ETCDSERVERPB__ALARM_RESPONSE__INIT;
	Etcdserverpb__AlarmMember    alarm = ETCDSERVERPB__ALARM_MEMBER__INIT;
	Etcdserverpb__AlarmMember   *alarm_list[] = { &alarm };
	Etcdserverpb__HashKVResponse hash = ETCDSERVERPB__HASH_KVRESPONSE__INIT;
	Etcdserverpb__AlarmRequest  *asked;
	char			    *errors[] = { (char *) "memberID:7 alarm:NOSPACE" };
	const struct vd_etcd_alarm   no_space = { 7, VD_ETCD_ALARM_NO_SPACE };

	etcd_client_fixture_start(&fixture, 2);
	assert_status(vd_etcd_status_get(fixture.client, NULL, etcd_note_status, &result), VD_OK);
	(void) expect(&fixture, "/etcdserverpb.Maintenance/Status",
		      &etcdserverpb__status_request__descriptor);
	status.version = (char *) "3.7.3";
	status.dbsize = 20480;
	status.leader = 5;
	status.errors = errors;
	status.n_errors = 1;
	status.header = &(Etcdserverpb__ResponseHeader) ETCDSERVERPB__RESPONSE_HEADER__INIT;
	answer(&fixture, &status, &result);
	assert_string_equal(result.text, "3.7.3");
	assert_true(result.number == 20480 && result.second == 5 && result.kv_count == 1);

	assert_status(vd_etcd_alarm(fixture.client, NULL, VD_ETCD_ALARM_ACTIVATE, &no_space, etcd_note_alarms,
				    &result),
		      VD_OK);
	asked = expect(&fixture, "/etcdserverpb.Maintenance/Alarm", &etcdserverpb__alarm_request__descriptor);
	assert_true(asked->action == ETCDSERVERPB__ALARM_REQUEST__ALARM_ACTION__ACTIVATE &&
		    asked->memberid == 7 && asked->alarm == ETCDSERVERPB__ALARM_TYPE__NOSPACE);
	alarm.memberid = 7;
	alarm.alarm = ETCDSERVERPB__ALARM_TYPE__NOSPACE;
	alarms.alarms = alarm_list;
	alarms.n_alarms = 1;
	answer(&fixture, &alarms, &result);
	assert_true(result.kv_count == 1 && result.number == 7 && result.second == VD_ETCD_ALARM_NO_SPACE);
	assert_status(vd_etcd_alarm(fixture.client, NULL, (enum vd_etcd_alarm_action) 3, NULL,
				    etcd_note_alarms, &result),
		      VD_INVALID_ARGUMENT);
	assert_status(vd_etcd_alarm(fixture.client, NULL, VD_ETCD_ALARM_GET,
				    &(struct vd_etcd_alarm) { 0, (enum vd_etcd_alarm_kind) 3 },
				    etcd_note_alarms, &result),
		      VD_INVALID_ARGUMENT);

	assert_status(vd_etcd_hash_kv(fixture.client, NULL, 33, etcd_note_hash, &result), VD_OK);
	assert_int_equal(((Etcdserverpb__HashKVRequest *) expect(&fixture, "/etcdserverpb.Maintenance/HashKV",
								 &etcdserverpb__hash_kvrequest__descriptor))
				 ->revision,
			 33);
	hash.hash = 4000000000u;
	hash.compact_revision = 12;
	answer(&fixture, &hash, &result);
	assert_true(result.number == 4000000000u && result.second == 12);

	assert_status(vd_etcd_move_leader(fixture.client, NULL, 5, etcd_note_done, &result), VD_OK);
	assert_int_equal(
		((Etcdserverpb__MoveLeaderRequest *) expect(&fixture, "/etcdserverpb.Maintenance/MoveLeader",
							    &etcdserverpb__move_leader_request__descriptor))
			->targetid,
		5);
	answer(&fixture, NULL, &result);
	etcd_client_fixture_fini(&fixture);
}

static void e123_answers_without_a_header(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };

	etcd_client_fixture_start(&fixture, 7);
	assert_status(vd_etcd_defragment(fixture.client, &(struct vd_etcd_call) { .endpoint = "e1:2379" },
					 etcd_note_done, &result),
		      VD_OK);
	(void) expect(&fixture, "/etcdserverpb.Maintenance/Defragment",
		      &etcdserverpb__defragment_request__descriptor);
	answer_with(&fixture, &(Etcdserverpb__DefragmentResponse) ETCDSERVERPB__DEFRAGMENT_RESPONSE__INIT,
		    false, &result);
	etcd_client_fixture_fini(&fixture);
}

static void e115_members(void **state)
{
	struct etcd_client_fixture	 fixture;
	struct etcd_result		 result = { 0 };
	Etcdserverpb__MemberListResponse members = ETCDSERVERPB__MEMBER_LIST_RESPONSE__INIT;
	Etcdserverpb__Member		 member = ETCDSERVERPB__MEMBER__INIT;
	Etcdserverpb__Member		*list[] = { &member };
	char *urls[] = { (char *) "http://127.0.0.1:2379", (char *) "http://[::1]:2379" };

	etcd_client_fixture_start(&fixture, 3);
	assert_status(vd_etcd_member_list(fixture.client, NULL, true, etcd_note_members, &result), VD_OK);
	assert_true(
		((Etcdserverpb__MemberListRequest *) expect(&fixture, "/etcdserverpb.Cluster/MemberList",
							    &etcdserverpb__member_list_request__descriptor))
			->linearizable);
	member.id = 99;
	member.name = (char *) "default";
	member.clienturls = urls;
	member.n_clienturls = 2;
	members.members = list;
	members.n_members = 1;
	answer(&fixture, &members, &result);
	assert_string_equal(result.text, "default");
	assert_true(result.kv_count == 1 && result.number == 2 && result.second == 99);
	etcd_client_fixture_fini(&fixture);
}

static void e116_users_and_roles(void **state)
{
	struct etcd_client_fixture		      fixture;
	struct etcd_result			      result = { 0 };
	Etcdserverpb__AuthStatusResponse	      status = ETCDSERVERPB__AUTH_STATUS_RESPONSE__INIT;
	Etcdserverpb__AuthUserAddRequest	     *add;
	Etcdserverpb__AuthUserChangePasswordRequest  *change;
	Etcdserverpb__AuthUserGrantRoleRequest	     *grant;
	Etcdserverpb__AuthRoleGrantPermissionRequest *permit;
	struct vd_etcd				     *client;

	etcd_client_fixture_start(&fixture, 4);
	client = fixture.client;
	assert_status(vd_etcd_auth_status(client, NULL, etcd_note_auth_status, &result), VD_OK);
	(void) expect(&fixture, "/etcdserverpb.Auth/AuthStatus",
		      &etcdserverpb__auth_status_request__descriptor);
	status.enabled = true;
	status.authrevision = 8;
	answer(&fixture, &status, &result);
	assert_true(result.flag && result.number == 8);

	assert_status(vd_etcd_auth_enable(client, NULL, true, etcd_note_done, &result), VD_OK);
	(void) expect(&fixture, "/etcdserverpb.Auth/AuthEnable",
		      &etcdserverpb__auth_enable_request__descriptor);
	answer(&fixture, NULL, &result);
	assert_status(vd_etcd_auth_enable(client, NULL, false, etcd_note_done, &result), VD_OK);
	(void) expect(&fixture, "/etcdserverpb.Auth/AuthDisable",
		      &etcdserverpb__auth_disable_request__descriptor);
	answer(&fixture, NULL, &result);

	assert_status(vd_etcd_user_add(client, NULL, "u", "p", etcd_note_done, &result), VD_OK);
	add = expect(&fixture, "/etcdserverpb.Auth/UserAdd",
		     &etcdserverpb__auth_user_add_request__descriptor);
	assert_string_equal(add->name, "u");
	assert_string_equal(add->password, "p");
	assert_false(add->options->no_password);
	answer(&fixture, NULL, &result);
	assert_status(vd_etcd_user_add(client, NULL, "u", NULL, etcd_note_done, &result), VD_OK);
	add = expect(&fixture, "/etcdserverpb.Auth/UserAdd",
		     &etcdserverpb__auth_user_add_request__descriptor);
	assert_true(add->options->no_password);
	answer(&fixture, NULL, &result);
	assert_status(vd_etcd_user_change_password(client, NULL, "u", "q", etcd_note_done, &result), VD_OK);
	change = expect(&fixture, "/etcdserverpb.Auth/UserChangePassword",
			&etcdserverpb__auth_user_change_password_request__descriptor);
	assert_string_equal(change->name, "u");
	assert_string_equal(change->password, "q");
	answer(&fixture, NULL, &result);
	assert_status(vd_etcd_role_add(client, NULL, "r", etcd_note_done, &result), VD_OK);
	assert_string_equal(((Etcdserverpb__AuthRoleAddRequest *) expect(
				     &fixture, "/etcdserverpb.Auth/RoleAdd",
				     &etcdserverpb__auth_role_add_request__descriptor))
				    ->name,
			    "r");
	answer(&fixture, NULL, &result);
	assert_status(vd_etcd_user_grant_role(client, NULL, "u", "r", etcd_note_done, &result), VD_OK);
	grant = expect(&fixture, "/etcdserverpb.Auth/UserGrantRole",
		       &etcdserverpb__auth_user_grant_role_request__descriptor);
	assert_string_equal(grant->user, "u");
	assert_string_equal(grant->role, "r");
	answer(&fixture, NULL, &result);
	assert_status(vd_etcd_role_grant(client, NULL, "r", VD_ETCD_READ_WRITE, vd_bytes_of("a"),
					 vd_bytes_of("b"), etcd_note_done, &result),
		      VD_OK);
	permit = expect(&fixture, "/etcdserverpb.Auth/RoleGrantPermission",
			&etcdserverpb__auth_role_grant_permission_request__descriptor);
	assert_string_equal(permit->name, "r");
	assert_int_equal(permit->perm->permtype, AUTHPB__PERMISSION__TYPE__READWRITE);
	assert_int_equal(permit->perm->key.len, 1);
	assert_memory_equal(permit->perm->key.data, "a", 1);
	assert_int_equal(permit->perm->range_end.len, 1);
	assert_memory_equal(permit->perm->range_end.data, "b", 1);
	answer(&fixture, NULL, &result);
	assert_status(vd_etcd_user_delete(client, NULL, "u", etcd_note_done, &result), VD_OK);
	assert_string_equal(((Etcdserverpb__AuthUserDeleteRequest *) expect(
				     &fixture, "/etcdserverpb.Auth/UserDelete",
				     &etcdserverpb__auth_user_delete_request__descriptor))
				    ->name,
			    "u");
	answer(&fixture, NULL, &result);

	assert_status(vd_etcd_user_add(client, NULL, NULL, "p", etcd_note_done, &result),
		      VD_INVALID_ARGUMENT);
	assert_status(vd_etcd_user_change_password(client, NULL, "u", NULL, etcd_note_done, &result),
		      VD_INVALID_ARGUMENT);
	assert_status(vd_etcd_user_change_password(client, NULL, NULL, "p", etcd_note_done, &result),
		      VD_INVALID_ARGUMENT);
	assert_status(vd_etcd_user_grant_role(client, NULL, "u", NULL, etcd_note_done, &result),
		      VD_INVALID_ARGUMENT);
	assert_status(vd_etcd_user_grant_role(client, NULL, NULL, "r", etcd_note_done, &result),
		      VD_INVALID_ARGUMENT);
	assert_status(vd_etcd_role_grant(client, NULL, NULL, VD_ETCD_READ, vd_bytes_of("a"), VD_BYTES_NONE,
					 etcd_note_done, &result),
		      VD_INVALID_ARGUMENT);
	assert_status(vd_etcd_user_delete(client, NULL, NULL, etcd_note_done, &result), VD_INVALID_ARGUMENT);
	assert_status(vd_etcd_role_add(client, NULL, NULL, etcd_note_done, &result), VD_INVALID_ARGUMENT);
	assert_status(vd_etcd_role_grant(client, NULL, "r", (enum vd_etcd_permission) 3, VD_BYTES_NONE,
					 VD_BYTES_NONE, etcd_note_done, &result),
		      VD_INVALID_ARGUMENT);
	etcd_client_fixture_fini(&fixture);
}

/* One row for every call with an answer of its own kind: what cannot be read, and memory that fails while it
 * is read. */
static vd_status start_row(struct vd_etcd *client, size_t row, struct etcd_result *result)
{
	switch (row) {
	case 0: return vd_etcd_lease_grant(client, NULL, 1, 5, etcd_note_lease, result);
	case 1: return vd_etcd_lease_time_to_live(client, NULL, 1, true, etcd_note_lease, result);
	case 2: return vd_etcd_lease_list(client, NULL, etcd_note_leases, result);
	case 3: return vd_etcd_status_get(client, NULL, etcd_note_status, result);
	case 4: return vd_etcd_alarm(client, NULL, VD_ETCD_ALARM_GET, NULL, etcd_note_alarms, result);
	case 5: return vd_etcd_hash_kv(client, NULL, 0, etcd_note_hash, result);
	case 6: return vd_etcd_member_list(client, NULL, false, etcd_note_members, result);
	case 7: return vd_etcd_auth_status(client, NULL, etcd_note_auth_status, result);
	default: return vd_etcd_lease_revoke(client, NULL, 1, etcd_note_done, result);
	}
}

#define ROWS 9

static void answers_that_cannot_be_read(void **state)
{
	struct etcd_client_fixture fixture;

	etcd_client_fixture_start(&fixture, 5);
	for (size_t row = 0; row < ROWS; row++) {
		struct etcd_result result = { 0 };

		assert_status(start_row(fixture.client, row, &result), VD_OK);
		rpc_script_answer(rpc_script_expect_call(fixture.script, NULL), vd_bytes_of("\x0a\x7f"));
		etcd_expect_calls(&fixture, &result, 1);
		assert_true(result.is_error);
		assert_status(result.error.error.code, VD_CORRUPT);
		assert_false(result.has_header);
		assert_status(start_row(fixture.client, row, &result), VD_OK);
		rpc_script_end(rpc_script_expect_call(fixture.script, NULL), VDI_RPC_PERMISSION_DENIED,
			       "etcdserver: permission denied");
		etcd_expect_calls(&fixture, &result, 2);
		assert_etcd_error(&result, VD_FORBIDDEN, "etcdserver: permission denied");
	}
	etcd_client_fixture_fini(&fixture);
}

static void torture_answers(void **state)
{
	/* A header, then fields 2 to 5 as messages of one byte field: two entries of every list there is. */
	static const char text[] = "\x0a\x02\x18\x05"
				   "\x12\x02\x08\x01\x12\x02\x08\x01";
	static const char keys[] = "\x0a\x02\x18\x05\x2a\x01k\x2a\x01l";
	static const char plain[] = "\x0a\x02\x18\x05";

	for (size_t row = 0; row < ROWS; row++) {
		const char *bytes = row == 1 ? keys : row == 2 || row == 4 || row == 6 ? text : plain;

		for (uint64_t nth = 1;; nth++) {
			struct etcd_client_fixture fixture;
			struct etcd_result	   result = { 0 };
			bool			   has_failed;

			etcd_client_fixture_start(&fixture, 6);
			assert_status(start_row(fixture.client, row, &result), VD_OK);
			rpc_script_answer(rpc_script_expect_call(fixture.script, NULL),
					  (struct vd_bytes) { bytes, strlen(bytes) });
			vdi_alloc_fail_nth(nth, 1);
			etcd_expect_calls(&fixture, &result, 1);
			has_failed = vdi_alloc_failed();
			vdi_alloc_fail_nth(0, 0);
			if (result.is_error)
				assert_status(result.error.error.code, VD_NOMEM);
			assert_true(has_failed || !result.is_error);
			etcd_client_fixture_fini(&fixture);
			if (!has_failed)
				break;
			assert_true(nth < 50);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e113_leases),
		cmocka_unit_test(e114_maintenance),
		cmocka_unit_test(e123_answers_without_a_header),
		cmocka_unit_test(e115_members),
		cmocka_unit_test(e116_users_and_roles),
		cmocka_unit_test(answers_that_cannot_be_read),
		cmocka_unit_test(torture_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
