/* Leases: E-501 to E-512. Tests that depend on time run in the simulator only. Upstream:
 * server/lease/lessor_test.go, tests/integration/v3_lease_test.go. */
#include "store_suite.h"

static vd_rev put_leased(struct store_fixture *f, const char *key, const char *value, int64_t lease)
{
	struct vd_op	  op = { .kind = VD_OP_PUT, .key = K(key), .value = K(value), .lease = lease };
	struct txn_answer answer;

	txn_ops(f, &op, 1, &answer);
	assert_status(answer.status, VD_OK);
	return answer.revision;
}

static void e501_grant(void **state)
{
	struct store_fixture *f = *state;
	struct lease_answer   lease;
	int64_t		      least;

	lease_grant(f, 0, 10, &lease);
	assert_status(lease.status, VD_OK);
	assert_true(lease.id > 0);
	assert_int_equal(lease.ttl_s, 10);
	lease_grant(f, lease.id, 10, &lease);
	assert_status(lease.status, VD_LEASE_EXISTS);
	lease_grant(f, -5, 0, &lease);
	assert_status(lease.status, VD_OK);
	assert_int_equal(lease.id, -5);
	least = f->factory->is_remote ? lease.ttl_s : 2; /* an etcd derives it from its election timeout */
	assert_int_equal(lease.ttl_s, least);
	lease_grant(f, 6, -100, &lease);
	assert_int_equal(lease.ttl_s, least);
	lease_grant(f, 7, 9000000000, &lease);
	assert_status(lease.status, VD_OK);
	assert_int_equal(lease.granted_ttl_s, 9000000000);
	lease_grant(f, 8, 9000000001, &lease);
	assert_status(lease.status, VD_INVALID_ARGUMENT);
}

struct list_answer {
	struct vdi_wait wait;
	vd_status	status;
	int64_t		ids[8];
	size_t		count;
};

static void got_leases(void *arg, vd_status status, const int64_t *ids, size_t count, vd_rev revision)
{
	struct list_answer *answer = arg;

	(void) revision;
	answer->status = status;
	answer->count = count;
	for (size_t i = 0; i < count && i < VDI_ARRAY_SIZE(answer->ids); i++)
		answer->ids[i] = ids[i];
	vdi_wait_signal(&answer->wait);
}

static void leases_are_listed(void **state)
{
	static const int64_t  granted[] = { 41, 7, 300 };
	struct store_fixture *f = *state;
	struct list_answer    list = { .count = 0 };
	struct lease_answer   lease;
	int64_t		      sum = 0;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(granted); i++)
		lease_grant(f, granted[i], 100, &lease);
	vdi_wait_init(&list.wait, f->env);
	assert_status(vd_store_lease_list(f->store, got_leases, &list), VD_OK);
	vdi_wait_wait(&list.wait);
	vdi_wait_fini(&list.wait);
	assert_status(list.status, VD_OK);
	assert_int_equal(list.count, 3);
	for (size_t i = 0; i < 3; i++)
		sum += list.ids[i];
	assert_int_equal(sum, 41 + 7 + 300); /* in any order */
}

static void e502_e510_revoke_deletes_in_one_revision(void **state)
{
	struct store_fixture *f = *state;
	struct lease_answer   lease;
	struct watcher	      watcher;
	vd_rev		      revision;

	assert_status(lease_revoke(f, 3, NULL), VD_LEASE_NOT_FOUND);
	lease_grant(f, 3, 100, &lease);
	lease_grant(f, 4, 100, &lease);
	put_leased(f, "b", "2", 3);
	put_leased(f, "a", "1", 3);
	put_leased(f, "c", "3", 4);
	watch_range(f, &watcher, "a", "z", 5);
	assert_status(lease_revoke(f, 3, &revision), VD_OK);
	assert_int_equal(revision, 5);
	expect_watch(&watcher, 100, "5: -a(1) -b(2)");
	assert_int_equal(watcher.batch.events[0].previous->lease, 3);
	assert_string_equal(text_at(f, "a", "z", 0), "c=3");
	assert_status(lease_revoke(f, 3, NULL), VD_LEASE_NOT_FOUND);
	lease_grant(f, 9, 100, &lease);
	assert_status(lease_revoke(f, 9, &revision), VD_OK);
	assert_int_equal(revision, 5);
	watch_close(&watcher);
}

/* Bytes are unsigned, and a key comes before those that begin with it, whenever each was attached. */
static void e502_keys_are_deleted_in_bytewise_order(void **state)
{
	static const char *const keys[] = {
		"k2", "k\xff", "k10", "k", "kB", "kb\x01", "kb", "k\x80", "k~", "kba", "k\x01",
	};
	struct store_fixture *f = *state;
	struct lease_answer   lease;
	struct watcher	      watcher;
	vd_rev		      revision;

	lease_grant(f, 3, 100, &lease);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(keys); i++)
		put_leased(f, keys[i], "1", 3);
	watch_range(f, &watcher, "k", "l", current(f) + 1);
	assert_status(lease_revoke(f, 3, &revision), VD_OK);
	assert_status(watch_wait(&watcher, 100), VD_OK);
	assert_int_equal(watcher.batch.event_count, VDI_ARRAY_SIZE(keys));
	for (size_t i = 0; i < watcher.batch.event_count; i++) {
		const struct vd_store_event *event = &watcher.batch.events[i];

		assert_true(event->is_delete);
		assert_int_equal(event->kv->mod_rev, revision);
		if (i)
			assert_true(vd_bytes_compare(vd_kv_key(event[-1].kv), vd_kv_key(event->kv)) < 0);
	}
	watch_close(&watcher);
}

static void e503_keep_alive(void **state)
{
	struct store_fixture *f = *state;
	struct lease_answer   lease;

	lease_keep_alive(f, 12, &lease);
	assert_status(lease.status, VD_OK);
	assert_int_equal(lease.id, 12);
	assert_int_equal(lease.ttl_s, 0);
	lease_grant(f, 12, 30, &lease);
	lease_keep_alive(f, 12, &lease);
	assert_int_equal(lease.ttl_s, 30);
}

static void e504_time_to_live(void **state)
{
	struct store_fixture *f = *state;
	struct lease_answer   lease;

	lease_time_to_live(f, 1, true, &lease);
	assert_status(lease.status, VD_OK);
	assert_int_equal(lease.id, 1);
	assert_int_equal(lease.ttl_s, -1);
	assert_int_equal(lease.granted_ttl_s, 0);
	lease_grant(f, 1, 100, &lease);
	put_leased(f, "z", "1", 1);
	put_leased(f, "a", "1", 1);
	lease_time_to_live(f, 1, true, &lease);
	assert_true(lease.ttl_s == 100 || lease.ttl_s == 99);
	assert_int_equal(lease.granted_ttl_s, 100);
	assert_string_equal(lease.keys, "a z");
	lease_time_to_live(f, 1, false, &lease);
	assert_int_equal(lease.key_count, 0);
}

static void e443_e507_keys_move_between_leases(void **state)
{
	struct store_fixture *f = *state;
	struct lease_answer   lease;

	lease_grant(f, 1, 100, &lease);
	lease_grant(f, 2, 100, &lease);
	put_leased(f, "a", "1", 1);
	put_leased(f, "a", "2", 1);
	put_leased(f, "b", "1", 1);
	lease_time_to_live(f, 1, true, &lease);
	assert_string_equal(lease.keys, "a b");
	put_leased(f, "a", "3", 2);
	lease_time_to_live(f, 1, true, &lease);
	assert_string_equal(lease.keys, "b");
	lease_time_to_live(f, 2, true, &lease);
	assert_string_equal(lease.keys, "a");
	put(f, "a", "4");
	lease_time_to_live(f, 2, true, &lease);
	assert_string_equal(lease.keys, "");
	assert_status(lease_revoke(f, 2, NULL), VD_OK);
	assert_string_equal(text_at(f, "a", "z", 0), "a=4 b=1");
}

static void e445_deleting_detaches(void **state)
{
	struct store_fixture *f = *state;
	struct lease_answer   lease;

	lease_grant(f, 1, 100, &lease);
	put_leased(f, "a", "1", 1);
	put_leased(f, "b", "1", 1);
	delete_range(f, "a", NULL, NULL);
	lease_time_to_live(f, 1, true, &lease);
	assert_string_equal(lease.keys, "b");
	put(f, "a", "2");
	assert_status(lease_revoke(f, 1, NULL), VD_OK);
	assert_string_equal(text_at(f, "a", "z", 0), "a=2");
}

/* rules: E-510, T-002 */
static void e506_keys_vanish_when_the_lease_expires(void **state)
{
	struct store_fixture *f = *state;
	struct lease_answer   lease;
	struct watcher	      watcher;

	if (!f->simulated)
		skip_because("leases expire in simulated time only");
	lease_grant(f, 1, 10, &lease);
	put_leased(f, "a", "1", 1);
	put_leased(f, "b", "1", 1);
	put(f, "c", "1");
	watch_range(f, &watcher, "a", "z", 0);
	assert_true(watch_is_quiet(&watcher));
	vdi_sim_advance(f->env, VD_MS(9900));
	assert_string_equal(text_at(f, "a", "z", 0), "a=1 b=1 c=1");
	lease_time_to_live(f, 1, false, &lease);
	assert_int_equal(lease.ttl_s, 0);
	vdi_sim_advance(f->env, VD_MS(200));
	assert_string_equal(text_at(f, "a", "z", 0), "c=1");
	expect_watch(&watcher, 100, "5: -a(1) -b(1)");
	assert_int_equal(watcher.batch.events[0].previous->lease, 1); /* E-510 */
	lease_time_to_live(f, 1, false, &lease);
	assert_int_equal(lease.ttl_s, -1);
	lease_keep_alive(f, 1, &lease);
	assert_int_equal(lease.ttl_s, 0);
	watch_close(&watcher);
}

static void e503_renewed_leases_live_on(void **state)
{
	struct store_fixture *f = *state;
	struct lease_answer   lease;

	if (!f->simulated)
		skip_because("leases expire in simulated time only");
	lease_grant(f, 1, 10, &lease);
	lease_grant(f, 2, 10, &lease);
	put_leased(f, "a", "1", 1);
	put_leased(f, "b", "1", 2);
	for (int i = 0; i < 5; i++) {
		vdi_sim_advance(f->env, VD_SECONDS(6));
		lease_keep_alive(f, 1, &lease);
		assert_int_equal(lease.ttl_s, 10);
	}
	assert_string_equal(text_at(f, "a", "z", 0), "a=1");
	vdi_sim_advance(f->env, VD_SECONDS(11));
	assert_string_equal(text_at(f, "a", "z", 0), "");
}

static void e506_many_leases_expire_together(void **state)
{
	struct store_fixture *f = *state;
	struct lease_answer   lease;
	char		      key[8];

	if (!f->simulated)
		skip_because("leases expire in simulated time only");
	for (int i = 1; i <= 300; i++) {
		lease_grant(f, i, 5, &lease);
		snprintf(key, sizeof key, "k%03d", i);
		put_leased(f, key, "v", i);
	}
	vdi_sim_advance(f->env, VD_SECONDS(6));
	assert_string_equal(text_at(f, "k", "z", 0), "");
	/* Each lease in a revision of its own. */
	assert_int_equal(current(f), 1 + 300 + 300);
}

/* Expired leases are revoked before any other work, so many at a time. A lease that is not revoked yet still
 * exists, and a key put on it is deleted with it. No key outlives its lease. */
static void e511_a_put_on_a_lease_that_is_over_goes_with_it(void **state)
{
	enum { LEASES = 200 };
	struct store_fixture *f = *state;
	struct vd_op	      op = { .kind = VD_OP_PUT, .key = K("a"), .value = K("1"), .lease = LEASES };
	struct lease_answer   lease;
	struct txn_answer     answer;
	vd_mono		      due;

	if (!f->simulated)
		skip_because("leases expire in simulated time only");
	for (int64_t id = 1; id <= LEASES; id++)
		lease_grant(f, id, 10, &lease);
	due = vd_mono_add(vd_env_now(f->env), VD_SECONDS(10));
	while (vd_env_now(f->env).ns < due.ns) {
		/* an actor that sets a timer may still have to run */
		vdi_sim_advance(f->env, (vd_dur) { 0 });
		assert_true(vdi_sim_advance_to_next_timer(f->env));
	}
	/* Not revoked yet: the put counts. Through a server all leases may be revoked before the put
	 * arrives. */
	txn_ops(f, &op, 1, &answer);
	if (f->factory->reopen == NULL && answer.status == VD_LEASE_NOT_FOUND)
		skip_because("the put came after the end of the lease");
	assert_status(answer.status, VD_OK);
	op.lease = 1;
	txn_ops(f, &op, 1, &answer);
	assert_status(answer.status, VD_LEASE_NOT_FOUND);
	vdi_sim_advance(f->env, VD_SECONDS(5));
	assert_string_equal(text_at(f, "a", "z", 0), "");
	assert_int_equal(current(f), 3);
	op.lease = LEASES;
	txn_ops(f, &op, 1, &answer);
	assert_status(answer.status, VD_LEASE_NOT_FOUND);
}

/* rules: E-1019 */
static void e508_leases_survive_a_restart(void **state)
{
	struct store_fixture *f = *state;
	struct lease_answer   lease;

	if (!f->simulated || f->factory->reopen == NULL)
		skip_because("needs simulated time and a store that can be reopened");
	lease_grant(f, 1, 100, &lease);
	lease_grant(f, 2, 100, &lease);
	lease_grant(f, 3, 100, &lease);
	put_leased(f, "a", "1", 1);
	put_leased(f, "b", "1", 2);
	put_leased(f, "c", "1", 3);
	vdi_sim_advance(f->env, VD_SECONDS(50));
	lease_keep_alive(f, 2, &lease);
	assert_status(lease_revoke(f, 3, NULL), VD_OK);
	vdi_sim_advance(f->env, VD_SECONDS(10));
	assert_status(f->factory->reopen(f->factory->arg, f->env, &f->store), VD_OK);
	lease_time_to_live(f, 1, true, &lease);
	assert_true(lease.ttl_s >= 39 && lease.ttl_s <= 40);
	assert_int_equal(lease.granted_ttl_s, 100);
	assert_string_equal(lease.keys, "a");
	lease_time_to_live(f, 2, true, &lease);
	assert_true(lease.ttl_s >= 89 && lease.ttl_s <= 90);
	lease_time_to_live(f, 3, true, &lease);
	assert_int_equal(lease.ttl_s, -1);
	/* Down for longer than the lease: its owner gets time to renew it. */
	f->store = vd_store_close_wait(f->store);
	vdi_sim_advance(f->env, VD_SECONDS(1000));
	assert_status(f->factory->open(f->factory->arg, f->env, &f->store), VD_OK);
	lease_keep_alive(f, 2, &lease);
	assert_int_equal(lease.ttl_s, 100);
	vdi_sim_advance(f->env, VD_SECONDS(10));
	assert_string_equal(text_at(f, "a", "z", 0), "b=1");
}

/* The remaining time of a long lease survives a restart, instead of starting anew; a renewal survives,
 * too. */
static void e509_the_rest_of_a_long_lease_survives(void **state)
{
	struct store_fixture *f = *state;
	struct lease_answer   lease;

	if (!f->simulated || f->factory->reopen == NULL)
		skip_because("needs simulated time and a store that can be reopened");
	lease_grant(f, 1, 3600, &lease);
	lease_grant(f, 2, 3600, &lease);
	vdi_sim_advance(f->env, VD_SECONDS(3000));
	lease_keep_alive(f, 2, &lease);
	assert_status(f->factory->reopen(f->factory->arg, f->env, &f->store), VD_OK);
	lease_time_to_live(f, 1, false, &lease);
	assert_true(lease.ttl_s >= 598 && lease.ttl_s <= 600);
	assert_int_equal(lease.granted_ttl_s, 3600);
	lease_time_to_live(f, 2, false, &lease);
	assert_true(lease.ttl_s >= 3598 && lease.ttl_s <= 3600);
}

static void e512_a_grant_makes_no_revision_and_attachments_follow_transactions(void **state)
{
	struct store_fixture *f = *state;
	struct lease_answer   lease;
	struct vd_op	      ops[] = { { .kind = VD_OP_PUT, .key = K("a"), .value = K("1"), .lease = 1 },
					{ .kind = VD_OP_PUT, .key = K("b"), .value = K("1"), .lease = 99 } };
	struct txn_answer     answer;

	lease_grant(f, 1, 100, &lease);
	assert_int_equal(lease.revision, 1);
	txn_ops(f, ops, 2, &answer);
	assert_status(answer.status, VD_LEASE_NOT_FOUND);
	lease_time_to_live(f, 1, true, &lease);
	assert_int_equal(lease.key_count, 0);
	txn_ops(f, ops, 1, &answer);
	assert_status(answer.status, VD_OK);
	lease_time_to_live(f, 1, true, &lease);
	assert_string_equal(lease.keys, "a");
}

const struct CMUnitTest store_suite_lease_tests[] = {
	cmocka_unit_test(e501_grant),
	cmocka_unit_test(leases_are_listed),
	cmocka_unit_test(e502_e510_revoke_deletes_in_one_revision),
	cmocka_unit_test(e502_keys_are_deleted_in_bytewise_order),
	cmocka_unit_test(e503_keep_alive),
	cmocka_unit_test(e503_renewed_leases_live_on),
	cmocka_unit_test(e511_a_put_on_a_lease_that_is_over_goes_with_it),
	cmocka_unit_test(e504_time_to_live),
	cmocka_unit_test(e443_e507_keys_move_between_leases),
	cmocka_unit_test(e445_deleting_detaches),
	cmocka_unit_test(e506_keys_vanish_when_the_lease_expires),
	cmocka_unit_test(e506_many_leases_expire_together),
	cmocka_unit_test(e508_leases_survive_a_restart),
	cmocka_unit_test(e509_the_rest_of_a_long_lease_survives),
	cmocka_unit_test(e512_a_grant_makes_no_revision_and_attachments_follow_transactions),
};
const size_t store_suite_lease_test_count = VDI_ARRAY_SIZE(store_suite_lease_tests);
