/* The lock on a Lease, over an API server in memory. */
#include "actor_sim.h"
#include "env.h"
#include "requests_peer.h"
#include "vdtest.h"

#define PATH "/apis/coordination.k8s.io/v1/namespaces/ns/leases/l"

struct world {
	struct vd_env	       *env;
	struct requests_peer	peer;
	struct vd_leader_lock  *lock;
	unsigned		answers;
	vd_status		status;
	struct vd_leader_record record;
	char			message[VD_ERROR_MESSAGE_SIZE];
};

static void world_init(struct world *world)
{
	struct vdi_kube_requests requests;

	*world = (struct world) { 0 };
	assert_status(vdi_env_new_sim(3, NULL, NULL, &world->env), VD_OK);
	requests_peer_init(&world->peer, world->env);
	requests = requests_peer_of(&world->peer);
	assert_status(vdi_lease_lock_new(&requests, "ns", "l", &world->lock, NULL), VD_OK);
}

static void world_fini(struct world *world)
{
	vd_leader_lock_free(world->lock);
	requests_peer_fini(&world->peer);
	vd_env_free(world->env);
}

static void answered(void *arg, vd_status status, const struct vd_leader_record *record,
		     const struct vd_error *error)
{
	struct world *world = arg;

	world->answers++;
	world->status = status;
	if (record)
		world->record = *record;
	(void) snprintf(world->message, sizeof world->message, "%s", error ? error->message : "");
}

static vd_status get(struct world *world)
{
	world->answers = 0;
	assert_status(world->lock->ops->get(world->lock, VD_SECONDS(5), answered, world), VD_OK);
	vdi_sim_run_until_idle(world->env);
	assert_int_equal(world->answers, 1);
	return world->status;
}

static vd_status write(struct world *world, const struct vd_leader_record *record, bool is_create)
{
	const struct vd_leader_lock_ops *ops = world->lock->ops;
	vd_status			 status;

	world->answers = 0;
	status = (is_create ? ops->create : ops->update)(world->lock, record, VD_SECONDS(5), answered, world);
	if (status != VD_OK)
		return status;
	vdi_sim_run_until_idle(world->env);
	assert_int_equal(world->answers, 1);
	return world->status;
}

static const struct vd_leader_record sample = {
	.holder = "host_\"1\"",
	.lease_duration_s = 15,
	.leader_transitions = 4,
	.acquire_time = { 1704067200 * (int64_t) 1000000000 + 123456000 },
	.renew_time = { 1704067260 * (int64_t) 1000000000 },
};

static void assert_sample(const struct vd_leader_record *record)
{
	assert_string_equal(record->holder, sample.holder);
	assert_int_equal(record->lease_duration_s, sample.lease_duration_s);
	assert_int_equal(record->leader_transitions, sample.leader_transitions);
	assert_int_equal(record->acquire_time.ns, sample.acquire_time.ns);
	assert_int_equal(record->renew_time.ns, sample.renew_time.ns);
}

static void k220_a_record_survives_a_round_trip_through_a_lease(void **state)
{
	struct world world;

	world_init(&world);
	assert_status(get(&world), VD_NOT_FOUND);
	assert_status(write(&world, &sample, true), VD_OK);
	assert_string_equal(world.peer.body,
			    "{\"metadata\":{\"name\":\"l\",\"namespace\":\"ns\"},\"apiVersion\":"
			    "\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"spec\":{\"holderIdentity\":"
			    "\"host_\\\"1\\\"\",\"leaseDurationSeconds\":15,\"acquireTime\":"
			    "\"2024-01-01T00:00:00.123456Z\",\"renewTime\":\"2024-01-01T00:01:00.000000Z\","
			    "\"leaseTransitions\":4}}");
	assert_sample(&world.record);
	assert_status(get(&world), VD_OK);
	assert_sample(&world.record);
	assert_status(write(&world, &sample, true), VD_EXISTS);
	assert_int_equal(world.peer.timeout.ns, VD_SECONDS(5).ns);
	assert_string_equal(world.peer.log, "GET " PATH "\n"
					    "POST /apis/coordination.k8s.io/v1/namespaces/ns/leases\n"
					    "GET " PATH "\n"
					    "POST /apis/coordination.k8s.io/v1/namespaces/ns/leases\n");
	world_fini(&world);
}

static void k221_an_update_needs_the_version_seen_last(void **state)
{
	struct world world;

	world_init(&world);
	assert_status(write(&world, &sample, false), VD_CONFLICT); /* none was seen */
	assert_status(write(&world, &sample, true), VD_OK);
	assert_status(write(&world, &sample, false), VD_OK);
	assert_status(write(&world, &sample, false), VD_OK);
	requests_peer_put(&world.peer, PATH, "{\"metadata\":{\"name\":\"l\"},\"spec\":{}}");
	assert_status(write(&world, &sample, false), VD_CONFLICT);
	assert_status(get(&world), VD_OK);
	assert_string_equal(world.record.holder, "");
	assert_status(write(&world, &sample, false), VD_OK);
	world_fini(&world);
}

static void unknown_members_of_the_lease_are_kept(void **state)
{
	struct world world;

	world_init(&world);
	requests_peer_put(&world.peer, PATH,
			  "{\"metadata\":{\"name\":\"l\",\"labels\":{\"a\":\"b\"}},\"spec\":{\"strategy\":"
			  "\"OldestEmulationVersion\",\"holderIdentity\":\"x\"},\"new\":[1]}");
	assert_status(get(&world), VD_OK);
	assert_string_equal(world.record.holder, "x");
	assert_status(write(&world, &sample, false), VD_OK);
	assert_non_null(strstr(world.peer.body, "\"labels\":{\"a\":\"b\"}"));
	assert_non_null(strstr(world.peer.body, "\"strategy\":\"OldestEmulationVersion\""));
	assert_non_null(strstr(world.peer.body, "\"new\":[1]"));
	assert_non_null(strstr(world.peer.body, "\"holderIdentity\":\"host_\\\"1\\\"\""));
	world_fini(&world);
}

static void odd_leases_and_failures_are_reported(void **state)
{
	struct world world;
	char	     text[2048];

	world_init(&world);
	requests_peer_put(&world.peer, PATH,
			  "{\"spec\":{\"holderIdentity\":7,\"leaseDurationSeconds\":99999999999,"
			  "\"leaseTransitions\":-3,\"renewTime\":\"never\",\"acquireTime\":"
			  "\"9999-12-31T00:00:00Z\"}}");
	assert_status(get(&world), VD_OK);
	assert_string_equal(world.record.holder, "");
	assert_int_equal(world.record.lease_duration_s, INT32_MAX);
	assert_int_equal(world.record.leader_transitions, 0);
	assert_int_equal(world.record.renew_time.ns, 0);
	assert_int_equal(world.record.acquire_time.ns, 0);
	(void) snprintf(text, sizeof text, "{\"spec\":{\"holderIdentity\":\"%0600d\"}}", 0);
	requests_peer_put(&world.peer, PATH, text);
	assert_status(get(&world), VD_TOO_BIG);
	assert_string_equal(world.message, "the holder of the Lease has 600 bytes");
	world.peer.is_down = true;
	assert_status(get(&world), VD_UNAVAILABLE);
	assert_string_equal(world.message, "scripted: the store cannot be reached");
	world_fini(&world);
}

static void leases_at_their_bounds(void **state)
{
	static const struct {
		const char *time;
		int64_t	    ns;
	} times[] = {
		{ "2262-04-11T23:47:15.999999999Z", INT64_C(9223372035999999999) },
		{ "2262-04-11T23:47:16Z", 0 },
		{ "1677-09-21T00:12:45Z", INT64_C(-9223372035000000000) },
		{ "1677-09-21T00:12:44Z", 0 },
	};
	struct world world;
	char	     text[1024];

	world_init(&world);
	for (unsigned i = 0; i < VDI_ARRAY_SIZE(times); i++) {
		(void) snprintf(text, sizeof text,
				"{\"spec\":{\"holderIdentity\":\"%0*d\",\"leaseDurationSeconds\":%lld,"
				"\"leaseTransitions\":%d,\"renewTime\":\"%s\"}}",
				VD_LEADER_IDENTITY_SIZE_MAX - 1, 0, (long long) INT32_MAX + i, (int) i - 1,
				times[i].time);
		requests_peer_put(&world.peer, PATH, text);
		assert_status(get(&world), VD_OK);
		assert_int_equal(strlen(world.record.holder), VD_LEADER_IDENTITY_SIZE_MAX - 1);
		assert_int_equal(world.record.lease_duration_s, INT32_MAX);
		assert_int_equal(world.record.leader_transitions, i ? i - 1 : 0);
		assert_int_equal(world.record.renew_time.ns, times[i].ns);
		assert_int_equal(world.record.acquire_time.ns, 0);
	}
	(void) snprintf(text, sizeof text, "{\"spec\":{\"holderIdentity\":\"%0*d\"}}",
			VD_LEADER_IDENTITY_SIZE_MAX, 0);
	requests_peer_put(&world.peer, PATH, text);
	assert_status(get(&world), VD_TOO_BIG);
	world_fini(&world);
}

static void a_lock_has_two_names(void **state)
{
	struct vdi_kube_requests requests;
	struct vd_leader_lock	*lock;
	struct vd_error		 error;
	struct world		 world;

	world_init(&world);
	requests = requests_peer_of(&world.peer);
	assert_status(vdi_lease_lock_new(&requests, "", "l", &lock, &error), VD_INVALID_ARGUMENT);
	assert_string_equal(error.message, "a Lease needs a namespace and a name");
	assert_status(vdi_lease_lock_new(&requests, "ns", "", &lock, NULL), VD_INVALID_ARGUMENT);
	world_fini(&world);
}

static void a_holder_with_a_nul_is_not_its_first_part(void **state)
{
	static const struct {
		const char *json, *holder;
	} cases[] = {
		{ "me\\u0000", "me\xff" },
		{ "me\\u0000x", "me\xff"
				"x" },
		{ "\\u0000", "\xff" },
		{ "me\\u0000\\u0000", "me\xff\xff" },
	};
	struct world world;
	char	     text[256];

	world_init(&world);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		(void) snprintf(text, sizeof text, "{\"spec\":{\"holderIdentity\":\"%s\"}}", cases[i].json);
		requests_peer_put(&world.peer, PATH, text);
		assert_status(get(&world), VD_OK);
		assert_string_equal(world.record.holder, cases[i].holder);
	}
	world_fini(&world);
}

static void noop(void *arg)
{
}

/* The Lease is another's until it expires, and then it is taken. */
static void an_election_does_not_lead_by_the_first_part_of_a_holder(void **state)
{
	struct vd_leader_election_options options = VD_LEADER_ELECTION_OPTIONS_INIT;
	struct vd_leader_election	 *election;
	struct world			  world;

	world_init(&world);
	requests_peer_put(
		&world.peer, PATH,
		"{\"spec\":{\"holderIdentity\":\"me\\u0000x\",\"leaseDurationSeconds\":15,"
		"\"acquireTime\":\"2024-01-01T00:00:00Z\",\"renewTime\":\"2024-01-01T00:00:00Z\"}}");
	options.identity = "me";
	options.started_leading = options.stopped_leading = noop;
	assert_status(vd_leader_election_start(world.env, world.lock, &options, &election, NULL), VD_OK);
	vdi_sim_advance(world.env, VD_SECONDS(10));
	assert_false(vd_leader_election_is_leader(election));
	vdi_sim_advance(world.env, VD_SECONDS(20));
	assert_true(vd_leader_election_is_leader(election));
	vd_leader_election_close_wait(election);
	world.lock = NULL;
	world_fini(&world);
}

/* The election over a Lease, as a program uses it. */
static void an_election_over_a_lease(void **state)
{
	struct vd_leader_election_options options = VD_LEADER_ELECTION_OPTIONS_INIT;
	struct vd_leader_election	 *election;
	struct world			  world;

	world_init(&world);
	options.identity = "me";
	options.started_leading = options.stopped_leading = noop;
	options.release_on_stop = true;
	assert_status(vd_leader_election_start(world.env, world.lock, &options, &election, NULL), VD_OK);
	vdi_sim_advance(world.env, VD_SECONDS(20));
	assert_true(vd_leader_election_is_leader(election));
	assert_non_null(strstr(requests_peer_get(&world.peer, PATH), "\"holderIdentity\":\"me\""));
	assert_in_range(world.peer.calls, 11, 13);
	vd_leader_election_close_wait(election);
	world.lock = NULL;
	assert_non_null(strstr(requests_peer_get(&world.peer, PATH), "\"holderIdentity\":\"\""));
	world_fini(&world);
}

static void torture_a_lock_without_memory_reports_it(void **state)
{
	bool has_failed = true;

	for (uint64_t nth = 1; has_failed; nth++) {
		struct world world;
		vd_status    status;

		world_init(&world);
		requests_peer_put(&world.peer, PATH, "{\"spec\":{}}");
		assert_status(get(&world), VD_OK);
		world.peer.is_refusing = true; /* the peer itself uses memory */
		(void) vdi_alloc_fail_nth(nth, 1);
		status = world.lock->ops->update(world.lock, &sample, VD_SECONDS(5), answered, &world);
		has_failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_status(status, has_failed ? VD_NOMEM : VD_CLOSED);
		world_fini(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(k220_a_record_survives_a_round_trip_through_a_lease),
		cmocka_unit_test(k221_an_update_needs_the_version_seen_last),
		cmocka_unit_test(unknown_members_of_the_lease_are_kept),
		cmocka_unit_test(odd_leases_and_failures_are_reported),
		cmocka_unit_test(leases_at_their_bounds),
		cmocka_unit_test(a_lock_has_two_names),
		cmocka_unit_test(a_holder_with_a_nul_is_not_its_first_part),
		cmocka_unit_test(an_election_does_not_lead_by_the_first_part_of_a_holder),
		cmocka_unit_test(an_election_over_a_lease),
		cmocka_unit_test(torture_a_lock_without_memory_reports_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
