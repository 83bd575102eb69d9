/* Three candidates over a lock that is slow, fails, and loses answers of writes that it applied, under
 * preemption. At most one leads at any time, and when the faults end, one leads. */
#include <vedette/leader_election.h>

#include "actor_sim.h"
#include "env.h"
#include "vdtest.h"

enum { CANDIDATES = 3 };

struct world;

struct candidate {
	struct vd_leader_lock	   lock; /* first */
	struct world		  *world;
	struct vd_leader_election *election;
	char			   identity[8];
	bool			   is_leading, is_over, is_closed;
	unsigned		   terms;
	uint64_t		   seen;	/* version that the lock knows */
	uint64_t		   seen_answer; /* likewise, if the outstanding call succeeds */
	struct vd_actor		  *actor;
	vd_mono			   answer_at; /* of the outstanding call; VD_NEVER: none */
	vd_status		   status;
	struct vd_leader_record	   answer;
	vd_leader_lock_fn	   done;
	void			  *done_arg;
};

struct world {
	struct vd_env	       *env;
	struct candidate	candidates[CANDIDATES];
	bool			exists, is_faulty;
	struct vd_leader_record record;
	uint64_t		version;
	unsigned		frees;
};

/* ---- The lock ---- */

static vd_status answer_later(struct candidate *candidate, vd_status status, vd_dur timeout,
			      vd_leader_lock_fn done, void *arg)
{
	struct world *world = candidate->world;
	uint64_t      fate = world->is_faulty ? vd_env_random_below(world->env, 10) : 9;
	vd_dur	      delay = { (int64_t) vd_env_random_below(world->env, (uint64_t) VD_MS(50).ns) };

	if (fate < 2) { /* the answer is lost */
		status = VD_TIMEOUT;
		delay = timeout;
	} else if (fate < 4) {
		status = VD_UNAVAILABLE;
	} else if (fate < 6) { /* the answer is slow */
		delay.ns = (int64_t) vd_env_random_below(world->env, (uint64_t) timeout.ns);
	}
	candidate->status = status;
	candidate->answer = world->record;
	candidate->done = done;
	candidate->done_arg = arg;
	candidate->answer_at = vd_mono_add(vd_env_now(world->env), delay);
	vd_actor_set_timer(candidate->actor, candidate->answer_at);
	return VD_OK;
}

static void run_lock(void *arg)
{
	struct candidate *candidate = arg;
	vd_leader_lock_fn done = candidate->done;

	if (done == NULL || vd_env_now(candidate->world->env).ns < candidate->answer_at.ns)
		return;
	candidate->done = NULL;
	if (candidate->status == VD_OK)
		candidate->seen = candidate->seen_answer;
	done(candidate->done_arg, candidate->status, candidate->status == VD_OK ? &candidate->answer : NULL,
	     NULL);
}

static bool is_cut(struct world *world)
{
	return world->is_faulty && vd_env_random_below(world->env, 4) == 0;
}

static vd_status get(struct vd_leader_lock *lock, vd_dur timeout, vd_leader_lock_fn done, void *arg)
{
	struct candidate *candidate = (struct candidate *) lock;
	bool		  was_atomic = vdi_sim_set_atomic(candidate->world->env, true);
	vd_status	  status = candidate->world->exists ? VD_OK : VD_NOT_FOUND;

	candidate->seen_answer = candidate->world->version;
	status = answer_later(candidate, is_cut(candidate->world) ? VD_UNAVAILABLE : status, timeout, done,
			      arg);
	(void) vdi_sim_set_atomic(candidate->world->env, was_atomic);
	return status;
}

static vd_status write(struct candidate *candidate, const struct vd_leader_record *record, bool is_create,
		       vd_dur timeout, vd_leader_lock_fn done, void *arg)
{
	struct world *world = candidate->world;
	bool	      was_atomic = vdi_sim_set_atomic(world->env, true);
	vd_status     status = VD_OK;

	if (is_cut(world))
		status = VD_UNAVAILABLE;
	else if (is_create && world->exists)
		status = VD_EXISTS;
	else if (!is_create && candidate->seen != world->version)
		status = VD_CONFLICT;
	if (status == VD_OK) {
		world->exists = true;
		world->record = *record;
		candidate->seen_answer = ++world->version;
	}
	status = answer_later(candidate, status, timeout, done, arg);
	(void) vdi_sim_set_atomic(world->env, was_atomic);
	return status;
}

static vd_status create(struct vd_leader_lock *lock, const struct vd_leader_record *record, vd_dur timeout,
			vd_leader_lock_fn done, void *arg)
{
	return write((struct candidate *) lock, record, true, timeout, done, arg);
}

static vd_status update(struct vd_leader_lock *lock, const struct vd_leader_record *record, vd_dur timeout,
			vd_leader_lock_fn done, void *arg)
{
	return write((struct candidate *) lock, record, false, timeout, done, arg);
}

static void free_lock(struct vd_leader_lock *lock)
{
	((struct candidate *) lock)->world->frees++;
}

/* ---- The candidates ---- */

static unsigned leaders(const struct world *world)
{
	unsigned count = 0;

	for (unsigned i = 0; i < CANDIDATES; i++)
		count += world->candidates[i].is_leading;
	return count;
}

static void started(void *arg)
{
	struct candidate *candidate = arg;

	assert_false(candidate->is_leading);
	candidate->is_leading = true;
	candidate->terms++;
	assert_int_equal(leaders(candidate->world), 1);
}

static void stopped(void *arg)
{
	struct candidate *candidate = arg;

	candidate->is_leading = false;
	candidate->is_over = true;
}

static void closed(void *arg)
{
	((struct candidate *) arg)->is_closed = true;
}

static void start(struct world *world, struct candidate *candidate)
{
	static const struct vd_leader_lock_ops ops = { get, create, update, free_lock };
	struct vd_leader_election_options      options = VD_LEADER_ELECTION_OPTIONS_INIT;

	candidate->lock.ops = &ops;
	candidate->is_over = candidate->is_closed = false;
	options.identity = candidate->identity;
	options.release_on_stop = vd_env_random_below(world->env, 2);
	options.started_leading = started;
	options.stopped_leading = stopped;
	options.arg = candidate;
	assert_status(
		vd_leader_election_start(world->env, &candidate->lock, &options, &candidate->election, NULL),
		VD_OK);
}

static void close_candidate(struct candidate *candidate)
{
	vd_leader_election_close(candidate->election, closed, candidate);
	for (unsigned i = 0; i < 60 && !candidate->is_closed; i++)
		vdi_sim_advance(candidate->world->env, VD_SECONDS(1));
	assert_true(candidate->is_closed);
	candidate->election = NULL;
}

static void world_init(struct world *world, uint64_t seed)
{
	*world = (struct world) { .is_faulty = true };
	assert_status(vdi_env_new_sim(seed, NULL, NULL, &world->env), VD_OK);
	assert_status(vdi_sim_set_preemptions(world->env, 3), VD_OK);
	for (unsigned i = 0; i < CANDIDATES; i++) {
		struct candidate       *candidate = &world->candidates[i];
		struct vd_actor_options actor = { .name = "lock", .run = run_lock, .arg = candidate };

		candidate->world = world;
		(void) snprintf(candidate->identity, sizeof candidate->identity, "c%u", i);
		assert_status(vd_actor_new(world->env, &actor, &candidate->actor), VD_OK);
		start(world, candidate);
	}
}

static void k201_k214_at_most_one_candidate_leads_and_in_the_end_one(void **state)
{
	unsigned terms = 0;
	uint64_t preemptions = 0;

	for (uint64_t seed = 0; seed < 60; seed++) {
		static struct world world;

		world_init(&world, seed);
		for (unsigned second = 0; second < 400; second++) {
			struct candidate *candidate =
				&world.candidates[vd_env_random_below(world.env, CANDIDATES)];

			vdi_sim_advance(world.env, VD_SECONDS(1));
			assert_in_range(leaders(&world), 0, 1);
			if (candidate->is_over || vd_env_random_below(world.env, 60) == 0) {
				close_candidate(candidate);
				assert_in_range(leaders(&world), 0, 1);
				start(&world, candidate);
			}
		}
		world.is_faulty = false;
		for (unsigned i = 0; i < CANDIDATES; i++)
			if (world.candidates[i].is_over) {
				close_candidate(&world.candidates[i]);
				start(&world, &world.candidates[i]);
			}
		vdi_sim_advance(world.env, VD_SECONDS(60));
		assert_int_equal(leaders(&world), 1);
		for (unsigned i = 0; i < CANDIDATES; i++) {
			struct candidate *candidate = &world.candidates[i];

			assert_int_equal(vd_leader_election_is_leader(candidate->election),
					 candidate->is_leading);
			terms += candidate->terms;
		}
		for (unsigned i = 0; i < CANDIDATES; i++) {
			close_candidate(&world.candidates[i]);
			vd_actor_close(world.candidates[i].actor, NULL, NULL);
		}
		preemptions += vdi_sim_preemptions(world.env);
		vd_env_free(world.env);
	}
	assert_in_range(preemptions, 1000, UINT64_MAX);
	assert_in_range(terms, 300, 10000); /* leadership changed often */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(k201_k214_at_most_one_candidate_leads_and_in_the_end_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
