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

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, etcd_server_setup, etcd_server_teardown)
		CASE(e503_keep_alive_stream),
		CASE(e503_room_that_nobody_waits_for),
		CASE(e505_leases_by_remaining_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
