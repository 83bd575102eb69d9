/* Elections in the simulator over a lock in memory: client-go's own tests of its leader election. */
#include <pthread.h>
#include <stdatomic.h>
#include <vedette/leader_election.h>

#include "actor_sim.h"
#include "await.h"
#include "env.h"
#include "metrics.h"
#include "vdtest.h"

/* ---- A lock in memory ---- */

struct memory {
	bool			exists;
	struct vd_leader_record record;
	uint64_t		version;
	char			calls[4096]; /* "get create update " */
};

struct memory_lock {
	struct vd_leader_lock	lock; /* first */
	struct memory	       *memory;
	uint64_t		seen;
	vd_status		get_fails, update_fails; /* VD_OK: they do not */
	unsigned		conflicts;		 /* of the next updates */
	bool			is_slow;		 /* answers wait for answer_late */
	vd_leader_lock_fn	late_done;
	void		       *late_arg;
	vd_status		late_status;
	struct vd_leader_record late_record;
	unsigned		frees;
};

static void note(struct memory_lock *lock, const char *call)
{
	struct memory *memory = lock->memory;

	if (strlen(memory->calls) + 16 > sizeof memory->calls)
		memory->calls[0] = 0;
	strcat(memory->calls, call);
}

static vd_status answer(struct memory_lock *lock, vd_status status, vd_leader_lock_fn done, void *arg)
{
	if (lock->is_slow) {
		lock->late_done = done;
		lock->late_arg = arg;
		lock->late_status = status;
		lock->late_record = lock->memory->record;
	} else {
		done(arg, status, status == VD_OK ? &lock->memory->record : NULL, NULL);
	}
	return VD_OK;
}

static void answer_late(struct memory_lock *lock)
{
	vd_leader_lock_fn done = lock->late_done;

	assert_non_null(done);
	lock->late_done = NULL;
	done(lock->late_arg, lock->late_status, &lock->late_record, NULL);
}

static vd_status get(struct vd_leader_lock *base, vd_dur timeout, vd_leader_lock_fn done, void *arg)
{
	struct memory_lock *lock = (struct memory_lock *) base;
	vd_status status = lock->get_fails ? lock->get_fails : lock->memory->exists ? VD_OK : VD_NOT_FOUND;

	note(lock, "get ");
	assert_in_range(timeout.ns, 1000000000, INT64_MAX);
	if (status == VD_OK)
		lock->seen = lock->memory->version;
	return answer(lock, status, done, arg);
}

static void store(struct memory_lock *lock, const struct vd_leader_record *record)
{
	lock->memory->exists = true;
	lock->memory->record = *record;
	lock->seen = ++lock->memory->version;
}

static vd_status create(struct vd_leader_lock *base, const struct vd_leader_record *record, vd_dur timeout,
			vd_leader_lock_fn done, void *arg)
{
	struct memory_lock *lock = (struct memory_lock *) base;
	vd_status	    status = lock->memory->exists ? VD_EXISTS : VD_OK;

	note(lock, "create ");
	if (status == VD_OK)
		store(lock, record);
	return answer(lock, status, done, arg);
}

static vd_status update(struct vd_leader_lock *base, const struct vd_leader_record *record, vd_dur timeout,
			vd_leader_lock_fn done, void *arg)
{
	struct memory_lock *lock = (struct memory_lock *) base;
	vd_status	    status = lock->update_fails;

	note(lock, "update ");
	if (status == VD_OK && (lock->conflicts || lock->seen != lock->memory->version))
		status = VD_CONFLICT;
	if (lock->conflicts)
		lock->conflicts--;
	if (status == VD_OK)
		store(lock, record);
	return answer(lock, status, done, arg);
}

static void free_lock(struct vd_leader_lock *base)
{
	((struct memory_lock *) base)->frees++;
}

static const struct vd_leader_lock_ops memory_ops = { get, create, update, free_lock };

/* ---- The world ---- */

enum { CANDIDATES = 2 };

struct candidate {
	struct memory_lock		  lock;
	struct vd_leader_election_options options;
	struct vd_leader_election	 *election;
	unsigned			  started, stopped;
	char				  leaders[256]; /* "a b " */
	bool				  is_closed;
	const char			 *calls_at_stop;
	struct memory			 *memory;
};

struct world {
	struct vd_env	*env;
	struct memory	 memory;
	struct candidate candidates[CANDIDATES];
};

static void started(void *arg)
{
	((struct candidate *) arg)->started++;
}

static void stopped(void *arg)
{
	struct candidate *candidate = arg;

	candidate->stopped++;
	candidate->memory->calls[0] = 0; /* what follows is the release */
}

static void new_leader(void *arg, const char *identity)
{
	struct candidate *candidate = arg;

	strcat(candidate->leaders, identity[0] ? identity : "-");
	strcat(candidate->leaders, " ");
}

static void closed(void *arg)
{
	((struct candidate *) arg)->is_closed = true;
}

static void world_init(struct world *world)
{
	static const char *const identities[] = { "a", "b" };

	*world = (struct world) { 0 };
	assert_status(vdi_env_new_sim(11, NULL, NULL, &world->env), VD_OK);
	for (unsigned i = 0; i < CANDIDATES; i++) {
		struct candidate		 *candidate = &world->candidates[i];
		struct vd_leader_election_options options = VD_LEADER_ELECTION_OPTIONS_INIT;

		candidate->memory = &world->memory;
		candidate->lock.lock.ops = &memory_ops;
		candidate->lock.memory = &world->memory;
		options.name = "test";
		options.identity = identities[i];
		options.release_on_stop = true;
		options.started_leading = started;
		options.stopped_leading = stopped;
		options.new_leader = new_leader;
		options.arg = candidate;
		candidate->options = options;
	}
}

static struct candidate *start(struct world *world, unsigned at)
{
	struct candidate *candidate = &world->candidates[at];
	struct vd_error	  error;

	assert_status(vd_leader_election_start(world->env, &candidate->lock.lock, &candidate->options,
					       &candidate->election, &error),
		      VD_OK);
	vdi_sim_run_until_idle(world->env);
	return candidate;
}

static void finish(struct world *world, struct candidate *candidate)
{
	vd_leader_election_close(candidate->election, closed, candidate);
	vdi_sim_run_until_idle(world->env);
}

static void world_fini(struct world *world)
{
	for (unsigned i = 0; i < CANDIDATES; i++) {
		struct candidate *candidate = &world->candidates[i];

		if (candidate->election && !candidate->is_closed)
			finish(world, candidate);
		assert_int_equal(candidate->lock.frees, candidate->election != NULL);
		assert_int_equal(candidate->stopped, candidate->election != NULL);
	}
	vd_env_free(world->env);
}

static void put_record(struct world *world, const char *holder, int32_t duration_s, int32_t transitions)
{
	struct vd_leader_record record = { .lease_duration_s = duration_s,
					   .leader_transitions = transitions,
					   .acquire_time = { 7 },
					   .renew_time = vd_env_wall(world->env) };

	strcpy(record.holder, holder);
	world->memory.exists = true;
	world->memory.record = record;
	world->memory.version++;
}

/* ---- Acquiring and renewing ---- */

static void k201_a_candidate_creates_a_missing_record_and_leads(void **state)
{
	struct world	  world;
	struct candidate *a;

	world_init(&world);
	a = start(&world, 0);
	assert_string_equal(world.memory.calls, "get create ");
	assert_int_equal(a->started, 1);
	assert_true(vd_leader_election_is_leader(a->election));
	assert_string_equal(world.memory.record.holder, "a");
	assert_int_equal(world.memory.record.lease_duration_s, 15);
	assert_int_equal(world.memory.record.leader_transitions, 0);
	assert_string_equal(a->leaders, "a ");
	world_fini(&world);
}

static void k202_a_held_record_is_taken_when_it_did_not_change_for_its_duration(void **state)
{
	struct world	  world;
	struct candidate *b;

	world_init(&world);
	put_record(&world, "dead", 60, 3);
	world.memory.record.renew_time.ns = 0; /* its times do not matter */
	b = start(&world, 1);
	vdi_sim_advance(world.env, VD_SECONDS(59));
	assert_int_equal(b->started, 0);
	assert_false(vd_leader_election_is_leader(b->election));
	vdi_sim_advance(world.env, VD_SECONDS(7)); /* at most 4.4 s until the next attempt */
	assert_int_equal(b->started, 1);
	assert_string_equal(world.memory.record.holder, "b");
	assert_int_equal(world.memory.record.leader_transitions, 4);
	assert_int_equal(world.memory.record.lease_duration_s, 15);
	assert_string_equal(b->leaders, "dead b ");
	world_fini(&world);
}

/* A lease is valid before its end, and no longer at it. */
static void k202_a_lease_has_ended_at_its_end(void **state)
{
	static const struct {
		vd_dur	 before;
		unsigned started;
	} cases[] = { { { 1 }, 0 }, { { 0 }, 1 } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct world	  world;
		struct candidate *b = &world.candidates[1];

		world_init(&world);
		put_record(&world, "dead", 10, 1);
		b->lock.is_slow = true;
		start(&world, 1);
		answer_late(&b->lock); /* the lease is observed now */
		vdi_sim_advance(world.env, VD_SECONDS(5));
		b->lock.is_slow = false; /* the second read is outstanding */
		vdi_sim_advance(world.env, (vd_dur) { VD_SECONDS(5).ns - cases[i].before.ns });
		answer_late(&b->lock);
		vdi_sim_run_until_idle(world.env);
		assert_int_equal(b->started, cases[i].started);
		world_fini(&world);
	}
}

static void k203_a_record_without_holder_is_taken_at_once(void **state)
{
	struct world	  world;
	struct candidate *b;

	world_init(&world);
	put_record(&world, "", 60, 1);
	b = start(&world, 1);
	assert_int_equal(b->started, 1);
	assert_int_equal(world.memory.record.leader_transitions, 2);
	world_fini(&world);
}

static void k204_a_record_that_changes_is_not_taken(void **state)
{
	struct world	  world;
	struct candidate *a, *b;

	world_init(&world);
	a = start(&world, 0);
	b = start(&world, 1);
	vdi_sim_advance(world.env, VD_SECONDS(600));
	assert_int_equal(a->started, 1);
	assert_int_equal(a->stopped, 0);
	assert_int_equal(b->started, 0);
	assert_string_equal(b->leaders, "a ");
	world_fini(&world);
}

static void k205_a_renewal_keeps_the_time_of_acquisition_and_the_transitions(void **state)
{
	struct world world;
	vd_wall	     acquired, renewed;

	world_init(&world);
	put_record(&world, "", 1, 5);
	start(&world, 0);
	acquired = world.memory.record.acquire_time;
	renewed = world.memory.record.renew_time;
	assert_int_equal(acquired.ns, renewed.ns);
	vdi_sim_advance(world.env, VD_SECONDS(2));
	assert_int_equal(world.memory.record.acquire_time.ns, acquired.ns);
	assert_int_equal(world.memory.record.renew_time.ns, renewed.ns + VD_SECONDS(2).ns);
	assert_int_equal(world.memory.record.leader_transitions, 6);
	world_fini(&world);
}

static void k206_a_restarted_leader_takes_its_own_record_back(void **state)
{
	struct world	  world;
	struct candidate *a;

	world_init(&world);
	put_record(&world, "a", 15, 5);
	a = start(&world, 0);
	assert_int_equal(a->started, 1);
	assert_int_equal(world.memory.record.leader_transitions, 5);
	assert_int_equal(world.memory.record.acquire_time.ns, 7);
	world_fini(&world);
}

static void k211_a_leader_renews_without_reading_unless_that_fails(void **state)
{
	struct world	   world;
	struct candidate  *a;
	const char	  *values[] = { "test" };
	struct vdi_metric *slow;

	world_init(&world);
	a = start(&world, 0);
	world.memory.calls[0] = 0;
	vdi_sim_advance(world.env, VD_SECONDS(4));
	assert_string_equal(world.memory.calls, "update update ");
	a->lock.conflicts = 1;
	world.memory.calls[0] = 0;
	vdi_sim_advance(world.env, VD_SECONDS(2));
	assert_string_equal(world.memory.calls, "update get update ");
	assert_int_equal(a->stopped, 0);
	assert_status(vdi_metric_get(vdi_env_metrics(world.env), VDI_METRIC_LEADER_ELECTION_SLOWPATH_TOTAL,
				     values, &slow),
		      VD_OK);
	assert_int_equal(vdi_metric_value(slow), 1);
	vdi_metric_release(slow);
	world_fini(&world);
}

static void k214_a_leader_that_cannot_renew_until_the_deadline_stops(void **state)
{
	struct world	  world;
	struct candidate *a;

	world_init(&world);
	a = start(&world, 0);
	a->lock.update_fails = a->lock.get_fails = VD_UNAVAILABLE;
	vdi_sim_advance(world.env, VD_MS(11999)); /* 2 s until the renewal, 10 s for it */
	assert_int_equal(a->stopped, 0);
	assert_true(vd_leader_election_is_leader(a->election));
	vdi_sim_advance(world.env, VD_MS(1));
	assert_int_equal(a->stopped, 1);
	assert_false(vd_leader_election_is_leader(a->election));
	vdi_sim_advance(world.env, VD_SECONDS(100));
	assert_int_equal(a->started, 1);
	world_fini(&world);
}

static void a_leader_with_a_server_that_never_answers_stops_too(void **state)
{
	struct world	  world;
	struct candidate *a;

	world_init(&world);
	a = start(&world, 0);
	a->lock.is_slow = true;
	vdi_sim_advance(world.env, VD_MS(11999));
	assert_int_equal(a->stopped, 0);
	vdi_sim_advance(world.env, VD_MS(1));
	assert_int_equal(a->stopped, 1);
	vd_leader_election_close(a->election, closed, a);
	vdi_sim_advance(world.env, VD_SECONDS(100));
	assert_false(a->is_closed); /* the lock is still in use */
	a->lock.is_slow = false;
	answer_late(&a->lock);
	vdi_sim_run_until_idle(world.env);
	assert_true(a->is_closed);
	world_fini(&world);
}

static void an_answer_that_comes_too_late_makes_no_leader(void **state)
{
	struct world	  world;
	struct candidate *a;

	world_init(&world);
	a = &world.candidates[0];
	a->lock.is_slow = true;
	start(&world, 0);
	answer_late(&a->lock); /* not found: create is outstanding */
	vdi_sim_advance(world.env, VD_SECONDS(12));
	answer_late(&a->lock);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(a->started, 0);
	assert_false(vd_leader_election_is_leader(a->election));
	a->lock.is_slow = false;
	vdi_sim_advance(world.env, VD_SECONDS(5));
	assert_int_equal(a->started, 1);
	world_fini(&world);
}

static void k214_the_time_of_a_renewal_begins_with_its_call(void **state)
{
	struct world	  world;
	struct candidate *a;

	world_init(&world);
	a = start(&world, 0);
	a->lock.is_slow = true;
	vdi_sim_advance(world.env, VD_SECONDS(7)); /* the renewal began 5 s ago */
	answer_late(&a->lock);
	a->lock.update_fails = a->lock.get_fails = VD_UNAVAILABLE;
	a->lock.is_slow = false;
	vdi_sim_advance(world.env, VD_MS(6999));
	assert_int_equal(a->stopped, 0);
	vdi_sim_advance(world.env, VD_MS(1));
	assert_int_equal(a->stopped, 1);
	world_fini(&world);
}

static void a_failing_leader_that_succeeds_in_time_goes_on(void **state)
{
	struct world	  world;
	struct candidate *a;

	world_init(&world);
	a = start(&world, 0);
	for (unsigned i = 0; i < 20; i++) {
		a->lock.update_fails = a->lock.get_fails = VD_UNAVAILABLE;
		vdi_sim_advance(world.env, VD_SECONDS(9));
		a->lock.update_fails = a->lock.get_fails = VD_OK;
		vdi_sim_advance(world.env, VD_SECONDS(3));
	}
	assert_int_equal(a->stopped, 0);
	world_fini(&world);
}

static void k219_a_leader_stops_when_it_finds_another_holder(void **state)
{
	struct world	  world;
	struct candidate *a;

	world_init(&world);
	a = start(&world, 0);
	put_record(&world, "thief", 15, 1);
	vdi_sim_advance(world.env, VD_SECONDS(2));
	assert_int_equal(a->stopped, 1);
	assert_string_equal(a->leaders, "a thief ");
	vdi_sim_advance(world.env, VD_SECONDS(60));
	assert_string_equal(world.memory.record.holder, "thief");
	world_fini(&world);
}

static void k215_candidates_wait_for_the_retry_period_and_a_random_part(void **state)
{
	struct world world;
	size_t	     count;

	world_init(&world);
	put_record(&world, "other", INT32_MAX, 0);
	start(&world, 1);
	world.memory.calls[0] = 0;
	vdi_sim_advance(world.env, VD_SECONDS(320)); /* 3.2 s on average */
	count = strlen(world.memory.calls) / 4;
	assert_in_range(count, 80, 125);
	assert_null(strstr(world.memory.calls, "update"));
	world_fini(&world);
}

/* ---- The end ---- */

static void k207_a_release_reads_and_empties_the_holder(void **state)
{
	struct world	  world;
	struct candidate *a, *b;

	world_init(&world);
	put_record(&world, "", 1, 8);
	a = start(&world, 0);
	finish(&world, a);
	assert_true(a->is_closed);
	assert_string_equal(world.memory.calls, "get update ");
	assert_string_equal(world.memory.record.holder, "");
	assert_int_equal(world.memory.record.lease_duration_s, 1);
	assert_int_equal(world.memory.record.leader_transitions, 9);
	assert_int_equal(world.memory.record.acquire_time.ns, vd_env_wall(world.env).ns);
	b = start(&world, 1);
	assert_int_equal(b->started, 1);
	world_fini(&world);
}

static void k208_a_release_is_repeated_after_a_conflict(void **state)
{
	struct world	  world;
	struct candidate *a;

	world_init(&world);
	a = start(&world, 0);
	a->lock.conflicts = 2;
	finish(&world, a);
	assert_string_equal(world.memory.calls, "get update get update get update ");
	assert_string_equal(world.memory.record.holder, "");
	assert_true(a->is_closed);
	world_fini(&world);
}

static void k209_a_close_during_a_call_still_releases(void **state)
{
	struct world	  world;
	struct candidate *a;

	world_init(&world);
	a = start(&world, 0);
	a->lock.is_slow = true;
	vdi_sim_advance(world.env, VD_SECONDS(2)); /* an update is outstanding */
	finish(&world, a);
	assert_int_equal(a->stopped, 1);
	assert_false(a->is_closed);
	a->lock.is_slow = false;
	answer_late(&a->lock);
	vdi_sim_run_until_idle(world.env);
	assert_string_equal(world.memory.record.holder, "");
	assert_true(a->is_closed);
	world_fini(&world);
}

static void k209_a_candidate_that_closes_during_a_read_does_not_acquire(void **state)
{
	struct world	  world;
	struct candidate *a;

	world_init(&world);
	put_record(&world, "", 1, 0);
	a = &world.candidates[0];
	a->lock.is_slow = true;
	start(&world, 0);
	finish(&world, a);
	a->lock.is_slow = false;
	answer_late(&a->lock);
	vdi_sim_run_until_idle(world.env);
	assert_true(a->is_closed);
	assert_string_equal(world.memory.calls, "");
	assert_string_equal(world.memory.record.holder, "");
	world_fini(&world);
}

static void a_candidate_that_acquires_while_it_closes_releases(void **state)
{
	struct world	  world;
	struct candidate *a;

	world_init(&world);
	a = &world.candidates[0];
	a->lock.is_slow = true;
	start(&world, 0);
	answer_late(&a->lock); /* not found: create is outstanding */
	vdi_sim_run_until_idle(world.env);
	assert_string_equal(world.memory.record.holder, "a");
	finish(&world, a);
	a->lock.is_slow = false;
	answer_late(&a->lock);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(a->started, 0);
	assert_string_equal(world.memory.record.holder, "");
	assert_true(a->is_closed);
	world_fini(&world);
}

static void k218_only_the_holder_releases(void **state)
{
	struct world	  world;
	struct candidate *a;

	world_init(&world);
	a = start(&world, 0);
	world.memory.exists = false; /* deleted */
	finish(&world, a);
	assert_string_equal(world.memory.calls, "get ");
	assert_false(world.memory.exists);
	world_fini(&world);

	world_init(&world);
	a = &world.candidates[0];
	a->options.release_on_stop = false;
	start(&world, 0);
	finish(&world, a);
	assert_string_equal(world.memory.calls, "");
	assert_string_equal(world.memory.record.holder, "a");
	world_fini(&world);
}

static void a_release_is_given_up_after_the_renew_deadline(void **state)
{
	struct world	  world;
	struct candidate *a;

	world_init(&world);
	a = start(&world, 0);
	a->lock.is_slow = true;
	finish(&world, a);
	vdi_sim_advance(world.env, VD_SECONDS(11));
	assert_false(a->is_closed);
	answer_late(&a->lock); /* the read; no update follows */
	vdi_sim_run_until_idle(world.env);
	assert_true(a->is_closed);
	assert_string_equal(world.memory.record.holder, "a");
	world_fini(&world);
}

static void k216_stopped_leading_is_called_also_without_leadership(void **state)
{
	struct world	  world;
	struct candidate *b;

	world_init(&world);
	put_record(&world, "other", 60, 0);
	b = start(&world, 1);
	assert_int_equal(b->stopped, 0);
	finish(&world, b);
	assert_int_equal(b->started, 0);
	assert_int_equal(b->stopped, 1);
	assert_string_equal(world.memory.record.holder, "other");
	world_fini(&world);
}

static void k217_each_new_holder_is_reported(void **state)
{
	struct world	  world;
	struct candidate *b;
	char		  identity[8];

	world_init(&world);
	put_record(&world, "x", 60, 0);
	b = start(&world, 1);
	assert_int_equal(vd_leader_election_leader(b->election, identity, sizeof identity), 1);
	assert_string_equal(identity, "x");
	put_record(&world, "x", 60, 0);
	vdi_sim_advance(world.env, VD_SECONDS(5));
	put_record(&world, "y", 60, 1);
	vdi_sim_advance(world.env, VD_SECONDS(5));
	assert_string_equal(b->leaders, "x y ");
	world_fini(&world);
}

/* ---- Health, options, memory ---- */

static void k212_k213_a_leader_whose_lease_expired_long_ago_is_unhealthy(void **state)
{
	struct world	  world;
	struct candidate *a, *b;
	struct vd_error	  error;

	world_init(&world);
	a = start(&world, 0);
	b = start(&world, 1);
	assert_status(vd_leader_election_check(a->election, VD_SECONDS(20), &error), VD_OK);
	/* Its actor is stuck: only the clock moves on. */
	a->lock.update_fails = a->lock.get_fails = VD_UNAVAILABLE;
	b->lock.get_fails = VD_UNAVAILABLE;
	vdi_sim_advance(world.env, VD_SECONDS(35));
	assert_status(vd_leader_election_check(a->election, VD_SECONDS(20), &error), VD_OK);
	vdi_sim_advance(world.env, VD_SECONDS(1));
	assert_status(vd_leader_election_check(a->election, VD_SECONDS(20), &error), VD_TIMEOUT);
	assert_string_equal(error.message, "failed election to renew leadership on lease test");
	assert_status(vd_leader_election_check(b->election, VD_SECONDS(0), &error), VD_OK);
	world_fini(&world);
}

static void check_refused(struct world *world, struct vd_leader_election_options options, const char *message)
{
	struct vd_leader_election *election;
	struct vd_error		   error;

	assert_status(vd_leader_election_start(world->env, &world->candidates[0].lock.lock, &options,
					       &election, &error),
		      VD_INVALID_ARGUMENT);
	assert_string_equal(error.message, message);
}

static void k210_wrong_options_are_refused(void **state)
{
	static char			  identity[VD_LEADER_IDENTITY_SIZE_MAX + 1];
	struct world			  world;
	struct vd_leader_election_options options;

	world_init(&world);
#define REFUSED(member, value, message)                                                                      \
	do {                                                                                                 \
		options = world.candidates[0].options;                                                       \
		options.member = value;                                                                      \
		check_refused(&world, options, message);                                                     \
	} while (0)
	REFUSED(lease_duration, VD_SECONDS(10), "lease_duration must be greater than renew_deadline");
	REFUSED(lease_duration, VD_MS(15500), "lease_duration must be whole seconds, 1 or more");
	REFUSED(lease_duration, VD_SECONDS(0), "lease_duration must be whole seconds, 1 or more");
	REFUSED(renew_deadline, VD_MS(2400), "renew_deadline must be greater than retry_period * 1.2");
	REFUSED(renew_deadline, VD_SECONDS(0), "renew_deadline must be above 0");
	REFUSED(retry_period, VD_SECONDS(0), "retry_period must be above 0");
	REFUSED(started_leading, NULL, "started_leading is NULL");
	REFUSED(stopped_leading, NULL, "stopped_leading is NULL");
	REFUSED(identity, NULL, "identity is empty");
	REFUSED(identity, "", "identity is empty");
	memset(identity, 'x', VD_LEADER_IDENTITY_SIZE_MAX);
	REFUSED(identity, identity, "identity has 512 bytes, must be less than 512");
	REFUSED(lease_duration, VD_SECONDS((int64_t) INT32_MAX + 1),
		"lease_duration must be whole seconds, 1 or more");
	REFUSED(renew_deadline.ns, 1, "renew_deadline must be greater than retry_period * 1.2");
#undef REFUSED
	/* The bounds themselves. */
	identity[VD_LEADER_IDENTITY_SIZE_MAX - 1] = 0;
	for (int i = 0; i < 2; i++) {
		struct candidate *candidate = &world.candidates[i];

		candidate->options.identity = identity;
		candidate->options.new_leader = NULL;
		candidate->options.retry_period.ns = 1;
		candidate->options.renew_deadline.ns = 2;
		candidate->options.lease_duration = VD_SECONDS(i ? INT32_MAX : 1);
		assert_status(vd_leader_election_start(world.env, &candidate->lock.lock, &candidate->options,
						       &candidate->election, NULL),
			      VD_OK);
	}
	world_fini(&world);
}

static void torture_an_election_starts_whole_or_not_at_all(void **state)
{
	bool has_failed = true;

	for (uint64_t nth = 1; has_failed; nth++) {
		struct world	  world;
		struct candidate *a;
		vd_status	  status;

		world_init(&world);
		a = &world.candidates[0];
		(void) vdi_alloc_fail_nth(nth, 1);
		status = vd_leader_election_start(world.env, &a->lock.lock, &a->options, &a->election, NULL);
		has_failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_status(status, has_failed ? VD_NOMEM : VD_OK);
		vdi_sim_run_until_idle(world.env);
		assert_int_equal(a->started, !has_failed);
		world_fini(&world);
	}
}

/* ---- Real threads ---- */

struct race {
	struct memory_lock	   lock;
	struct memory		   memory;
	struct vd_leader_election *election;
	atomic_bool		   is_over;
	atomic_uint		   started, stopped, checks;
};

static void count_started(void *arg)
{
	atomic_fetch_add(&((struct race *) arg)->started, 1);
}

static void count_stopped(void *arg)
{
	atomic_fetch_add(&((struct race *) arg)->stopped, 1);
}

static void *check_again_and_again(void *arg)
{
	struct race *race = arg;
	char	     identity[8];

	while (!atomic_load(&race->is_over)) {
		assert_status(vd_leader_election_check(race->election, VD_SECONDS(3600), NULL), VD_OK);
		(void) vd_leader_election_is_leader(race->election);
		(void) vd_leader_election_leader(race->election, identity, sizeof identity);
		atomic_fetch_add(&race->checks, 1);
	}
	return NULL;
}

static void k212_an_election_can_be_asked_while_it_runs(void **state)
{
	struct vd_leader_election_options options = VD_LEADER_ELECTION_OPTIONS_INIT;
	static struct race		  race;
	struct vd_env			 *env;
	pthread_t			  thread;

	race.lock.lock.ops = &memory_ops;
	race.lock.memory = &race.memory;
	options.identity = "a";
	options.retry_period = VD_MS(1);
	options.release_on_stop = true;
	options.started_leading = count_started;
	options.stopped_leading = count_stopped;
	options.arg = &race;
	assert_status(vd_env_new_threads(NULL, &env), VD_OK);
	assert_status(vd_leader_election_start(env, &race.lock.lock, &options, &race.election, NULL), VD_OK);
	assert_int_equal(pthread_create(&thread, NULL, check_again_and_again, &race), 0);
	AWAIT(vd_leader_election_is_leader(race.election));
	AWAIT(atomic_load(&race.checks) > 1000);
	atomic_store(&race.is_over, true);
	pthread_join(thread, NULL);
	vd_leader_election_close_wait(race.election);
	assert_int_equal(atomic_load(&race.started), 1);
	assert_int_equal(atomic_load(&race.stopped), 1);
	assert_string_equal(race.memory.record.holder, "");
	vd_env_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(k201_a_candidate_creates_a_missing_record_and_leads),
		cmocka_unit_test(k202_a_held_record_is_taken_when_it_did_not_change_for_its_duration),
		cmocka_unit_test(k202_a_lease_has_ended_at_its_end),
		cmocka_unit_test(k203_a_record_without_holder_is_taken_at_once),
		cmocka_unit_test(k204_a_record_that_changes_is_not_taken),
		cmocka_unit_test(k205_a_renewal_keeps_the_time_of_acquisition_and_the_transitions),
		cmocka_unit_test(k206_a_restarted_leader_takes_its_own_record_back),
		cmocka_unit_test(k211_a_leader_renews_without_reading_unless_that_fails),
		cmocka_unit_test(k214_a_leader_that_cannot_renew_until_the_deadline_stops),
		cmocka_unit_test(a_leader_with_a_server_that_never_answers_stops_too),
		cmocka_unit_test(an_answer_that_comes_too_late_makes_no_leader),
		cmocka_unit_test(k214_the_time_of_a_renewal_begins_with_its_call),
		cmocka_unit_test(a_failing_leader_that_succeeds_in_time_goes_on),
		cmocka_unit_test(k219_a_leader_stops_when_it_finds_another_holder),
		cmocka_unit_test(k215_candidates_wait_for_the_retry_period_and_a_random_part),
		cmocka_unit_test(k207_a_release_reads_and_empties_the_holder),
		cmocka_unit_test(k208_a_release_is_repeated_after_a_conflict),
		cmocka_unit_test(k209_a_close_during_a_call_still_releases),
		cmocka_unit_test(k209_a_candidate_that_closes_during_a_read_does_not_acquire),
		cmocka_unit_test(a_candidate_that_acquires_while_it_closes_releases),
		cmocka_unit_test(k218_only_the_holder_releases),
		cmocka_unit_test(a_release_is_given_up_after_the_renew_deadline),
		cmocka_unit_test(k216_stopped_leading_is_called_also_without_leadership),
		cmocka_unit_test(k217_each_new_holder_is_reported),
		cmocka_unit_test(k212_k213_a_leader_whose_lease_expired_long_ago_is_unhealthy),
		cmocka_unit_test(k210_wrong_options_are_refused),
		cmocka_unit_test(torture_an_election_starts_whole_or_not_at_all),
		cmocka_unit_test(k212_an_election_can_be_asked_while_it_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
