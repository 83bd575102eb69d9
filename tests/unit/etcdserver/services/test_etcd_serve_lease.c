/* The Lease service of the etcd server without a network: a stream of keep-alives, and what is listed. */
#include "etcd_server_fixture.h"

#include "actor_sim.h"
#include "vdtest.h"

static void e503_keep_alive_stream(void **state)
{
	struct etcd_server_fixture	   *fixture = *state;
	Etcdserverpb__LeaseKeepAliveRequest request = ETCDSERVERPB__LEASE_KEEP_ALIVE_REQUEST__INIT;
	struct etcd_server_call		    call;
	static const struct {
		int64_t id;
		int64_t ttl;
	} steps[] = { { 7, 60 }, { 8, 0 }, { 7, 60 } };

	etcd_server_grant(fixture, 7, 60, 60);
	etcd_server_call_init(&call, fixture);
	etcd_server_call_open(&call, fixture, "/etcdserverpb.Lease/LeaseKeepAlive");
	call.room = 1;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(steps); i++) {
		Etcdserverpb__LeaseKeepAliveResponse *response;

		request.id = steps[i].id;
		etcd_server_call_send(&call, &request.base);
		if (call.count == i) {
			assert_int_equal(call.wanted,
					 0); /* who does not read his answers is not read either */
			etcd_server_call_make_room(&call, 1);
		}
		assert_int_equal(call.count, i + 1);
		response = etcdserverpb__lease_keep_alive_response__unpack(
			NULL, call.sizes[i], (const uint8_t *) call.messages[i]);
		assert_int_equal(response->id, steps[i].id);
		assert_int_equal(response->ttl, steps[i].ttl);
		etcdserverpb__lease_keep_alive_response__free_unpacked(response, NULL);
	}
	etcd_server_call_send(&call, NULL);
	assert_true(call.is_finished);
	assert_int_equal(call.code, 0);
	etcd_server_call_end(&call);
}

/* A transport that says that there is room when nothing waits for it disturbs nothing. */
static void e503_room_that_nobody_waits_for(void **state)
{
	struct etcd_server_fixture	   *fixture = *state;
	Etcdserverpb__LeaseKeepAliveRequest request = ETCDSERVERPB__LEASE_KEEP_ALIVE_REQUEST__INIT;
	struct etcd_server_call		    call;

	etcd_server_grant(fixture, 7, 60, 60);
	request.id = 7;
	etcd_server_call_init(&call, fixture);
	etcd_server_call_open(&call, fixture, "/etcdserverpb.Lease/LeaseKeepAlive");
	for (size_t i = 1; i <= 3; i++) {
		etcd_server_call_make_room(&call, SIZE_MAX);
		etcd_server_call_send(&call, &request.base);
		etcd_server_call_make_room(&call, SIZE_MAX);
		assert_int_equal(call.count, i);
		assert_int_equal(call.wanted, 1);
	}
	etcd_server_call_end(&call);
}

/* A response that did not fit is sent once, whatever the transport reports meanwhile. */
static void e503_a_response_that_waits_is_sent_once(void **state)
{
	struct etcd_server_fixture	   *fixture = *state;
	Etcdserverpb__LeaseKeepAliveRequest request = ETCDSERVERPB__LEASE_KEEP_ALIVE_REQUEST__INIT;
	struct etcd_server_call		    call;

	etcd_server_grant(fixture, 7, 60, 60);
	request.id = 7;
	etcd_server_call_init(&call, fixture);
	etcd_server_call_open(&call, fixture, "/etcdserverpb.Lease/LeaseKeepAlive");
	call.room = 0;
	etcd_server_call_send(&call, &request.base);
	assert_int_equal(call.count, 0);
	etcd_server_call_make_room(&call, 0); /* there was none after all */
	assert_int_equal(call.count, 0);
	assert_int_equal(call.wanted, 0);
	for (int i = 0; i < 3; i++) {
		etcd_server_call_make_room(&call, SIZE_MAX);
		assert_int_equal(call.count, 1);
		assert_int_equal(call.wanted, 1);
	}
	etcd_server_call_end(&call);
}

/* A renewal counts from now; what is no request ends the stream. */
static void e503_keep_alive_renews_and_garbage_ends_it(void **state)
{
	struct etcd_server_fixture	      *fixture = *state;
	Etcdserverpb__LeaseKeepAliveRequest    request = ETCDSERVERPB__LEASE_KEEP_ALIVE_REQUEST__INIT;
	Etcdserverpb__LeaseTimeToLiveRequest   ask = ETCDSERVERPB__LEASE_TIME_TO_LIVE_REQUEST__INIT;
	Etcdserverpb__LeaseTimeToLiveResponse *left;
	Etcdserverpb__LeaseKeepAliveResponse  *response;
	static const uint8_t		       garbage[] = { 0x08 };
	struct etcd_server_call		       call;

	etcd_server_grant(fixture, 7, 60, 60);
	etcd_server_put(fixture, "a", "1");
	vdi_sim_advance(fixture->env, VD_SECONDS(50));
	ask.id = request.id = 7;
	left = ETCD_ASK(fixture, "Lease/LeaseTimeToLive", &ask, lease_time_to_live_response);
	assert_int_equal(left->ttl, 10);
	ETCD_FREE(left);
	etcd_server_call_init(&call, fixture);
	etcd_server_call_open(&call, fixture, "/etcdserverpb.Lease/LeaseKeepAlive");
	etcd_server_call_send(&call, &request.base);
	assert_int_equal(call.count, 1);
	response = etcdserverpb__lease_keep_alive_response__unpack(NULL, call.sizes[0],
								   (const uint8_t *) call.messages[0]);
	assert_int_equal(response->id, 7);
	assert_int_equal(response->ttl, 60);
	assert_int_equal(response->header->revision, 2);
	etcdserverpb__lease_keep_alive_response__free_unpacked(response, NULL);
	left = ETCD_ASK(fixture, "Lease/LeaseTimeToLive", &ask, lease_time_to_live_response);
	assert_int_equal(left->ttl, 60);
	ETCD_FREE(left);
	etcd_server_call_send_bytes(&call, garbage, sizeof garbage);
	assert_true(call.is_finished);
	assert_int_equal(call.code, 13);
	etcd_server_call_end(&call);
}

/* rules: E-501 */
static void e512_a_grant_chooses_an_id_and_changes_no_revision(void **state)
{
	struct etcd_server_fixture	 *fixture = *state;
	Etcdserverpb__LeaseGrantRequest	  request = ETCDSERVERPB__LEASE_GRANT_REQUEST__INIT;
	Etcdserverpb__LeaseGrantResponse *response;
	int64_t				  ids[2];

	etcd_server_put(fixture, "a", "1");
	request.ttl = 9000000000;
	for (int i = 0; i < 2; i++) {
		response = ETCD_ASK(fixture, "Lease/LeaseGrant", &request, lease_grant_response);
		assert_int_equal(response->header->revision, 2);
		assert_int_equal(response->ttl, 9000000000);
		assert_true(response->id > 0);
		ids[i] = response->id;
		ETCD_FREE(response);
	}
	assert_true(ids[0] != ids[1]);
	request.ttl = 9000000001;
	etcd_server_ask_fails(fixture, "/etcdserverpb.Lease/LeaseGrant", &request.base,
			      VD_ETCD_LEASE_TTL_TOO_LARGE);
}

static void e502_a_revocation_deletes_the_keys_of_the_lease(void **state)
{
	struct etcd_server_fixture	  *fixture = *state;
	Etcdserverpb__LeaseRevokeRequest   request = ETCDSERVERPB__LEASE_REVOKE_REQUEST__INIT;
	Etcdserverpb__LeaseRevokeResponse *response;
	Etcdserverpb__RangeRequest	   range = ETCDSERVERPB__RANGE_REQUEST__INIT;
	Etcdserverpb__RangeResponse	  *found;

	etcd_server_grant(fixture, 7, 60, 60);
	etcd_server_grant(fixture, 8, 60, 60);
	(void) etcd_server_put_leased(fixture, "a", "1", 7);
	(void) etcd_server_put_leased(fixture, "b", "1", 0);
	(void) etcd_server_put_leased(fixture, "c", "1", 7); /* revision 4 */
	request.id = 9;
	etcd_server_ask_fails(fixture, "/etcdserverpb.Lease/LeaseRevoke", &request.base,
			      VD_ETCD_LEASE_NOT_FOUND);
	request.id = 7;
	response = ETCD_ASK(fixture, "Lease/LeaseRevoke", &request, lease_revoke_response);
	assert_int_equal(response->header->revision, 5);
	ETCD_FREE(response);
	request.id = 8; /* without keys */
	response = ETCD_ASK(fixture, "Lease/LeaseRevoke", &request, lease_revoke_response);
	assert_int_equal(response->header->revision, 5);
	ETCD_FREE(response);
	etcd_server_ask_fails(fixture, "/etcdserverpb.Lease/LeaseRevoke", &request.base,
			      VD_ETCD_LEASE_NOT_FOUND);
	range.key = etcd_bytes("a");
	range.range_end = etcd_bytes("z");
	found = etcd_server_range(fixture, &range);
	assert_int_equal(found->n_kvs, 1);
	assert_memory_equal(found->kvs[0]->key.data, "b", 1);
	ETCD_FREE(found);
}

static void e504_the_time_to_live_and_the_keys(void **state)
{
	struct etcd_server_fixture	      *fixture = *state;
	Etcdserverpb__LeaseTimeToLiveRequest   request = ETCDSERVERPB__LEASE_TIME_TO_LIVE_REQUEST__INIT;
	Etcdserverpb__LeaseTimeToLiveResponse *response;

	etcd_server_grant(fixture, 7, 60, 60);
	(void) etcd_server_put_leased(fixture, "b", "1", 7);
	(void) etcd_server_put_leased(fixture, "a", "1", 7);
	(void) etcd_server_put_leased(fixture, "c", "1", 0);
	vdi_sim_advance(fixture->env, VD_MS(20500));
	request.id = 7;
	for (int keys = 0; keys < 2; keys++) {
		request.keys = keys;
		response = ETCD_ASK(fixture, "Lease/LeaseTimeToLive", &request, lease_time_to_live_response);
		assert_int_equal(response->header->revision, 4);
		assert_int_equal(response->id, 7);
		assert_int_equal(response->ttl, 39); /* truncated */
		assert_int_equal(response->grantedttl, 60);
		assert_int_equal(response->n_keys, keys ? 2 : 0);
		if (keys) {
			assert_int_equal(response->keys[0].len + response->keys[1].len, 2);
			assert_int_equal(response->keys[0].data[0] + response->keys[1].data[0], 'a' + 'b');
		}
		ETCD_FREE(response);
	}
	request.id = 8;
	for (int keys = 0; keys < 2; keys++) {
		request.keys = keys;
		response = ETCD_ASK(fixture, "Lease/LeaseTimeToLive", &request, lease_time_to_live_response);
		assert_int_equal(response->id, 8);
		assert_int_equal(response->ttl, -1);
		assert_int_equal(response->grantedttl, 0);
		assert_int_equal(response->n_keys, 0);
		ETCD_FREE(response);
	}
}

static void requests_that_are_no_messages(void **state)
{
	static const char *const methods[] = { "/etcdserverpb.Lease/LeaseGrant",
					       "/etcdserverpb.Lease/LeaseRevoke",
					       "/etcdserverpb.Lease/LeaseTimeToLive" };
	static const uint8_t	 garbage[] = { 0x08, 0x07, 0x08 };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(methods); i++) {
		struct etcd_server_call call;

		etcd_server_call_init(&call, *state);
		etcd_server_call_open(&call, *state, methods[i]);
		etcd_server_call_send_bytes(&call, garbage, sizeof garbage);
		assert_true(call.is_finished);
		assert_int_equal(call.code, 13);
		etcd_server_call_end(&call);
	}
}

static void e505_leases_by_remaining_time(void **state)
{
	Etcdserverpb__LeaseLeasesRequest   request = ETCDSERVERPB__LEASE_LEASES_REQUEST__INIT;
	Etcdserverpb__LeaseLeasesResponse *response;

	etcd_server_grant(*state, 1, 300, 300);
	etcd_server_grant(*state, -2, 100, 100);
	etcd_server_grant(*state, 3, 200, 200);
	response = ETCD_ASK((struct etcd_server_fixture *) *state, "Lease/LeaseLeases", &request,
			    lease_leases_response);
	assert_non_null(response->header);
	assert_int_equal(response->header->member_id,
			 ((struct etcd_server_fixture *) *state)->server->member_id);
	assert_int_equal(response->header->revision, 1);
	assert_int_equal(response->n_leases, 3);
	assert_int_equal(response->leases[0]->id, -2);
	assert_int_equal(response->leases[1]->id, 3);
	assert_int_equal(response->leases[2]->id, 1);
	ETCD_FREE(response);
}

/* A lease may have any number of keys, so their list is made by a worker. */
static void a_worker_lists_the_keys_of_a_lease(void **state)
{
	struct etcd_server_fixture	    *fixture = *state;
	Etcdserverpb__LeaseTimeToLiveRequest request = ETCDSERVERPB__LEASE_TIME_TO_LIVE_REQUEST__INIT;

	etcd_server_grant(fixture, 7, 60, 60);
	request.id = 7;
	for (int keys = 0; keys < 2; keys++) {
		struct etcd_server_call call;

		request.keys = keys;
		etcd_server_call_post(&call, fixture, "/etcdserverpb.Lease/LeaseTimeToLive", &request.base);
		assert_int_equal(call.is_finished, !keys);
		(void) vdi_sim_run_until_idle(fixture->env);
		assert_true(call.is_finished);
		assert_int_equal(call.code, 0);
		etcd_server_call_end(&call);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, etcd_server_setup, etcd_server_teardown)
		CASE(e503_keep_alive_stream),
		CASE(e503_room_that_nobody_waits_for),
		CASE(e503_a_response_that_waits_is_sent_once),
		CASE(e503_keep_alive_renews_and_garbage_ends_it),
		CASE(e512_a_grant_chooses_an_id_and_changes_no_revision),
		CASE(e502_a_revocation_deletes_the_keys_of_the_lease),
		CASE(e504_the_time_to_live_and_the_keys),
		CASE(a_worker_lists_the_keys_of_a_lease),
		CASE(requests_that_are_no_messages),
		CASE(e505_leases_by_remaining_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
