/* The election is a state machine on its own actor. Each attempt is a chain of calls of the lock:
 *
 *   leader with a valid lease: update --ok--> renewed
 *                                \--error--v
 *   get --found: observe; held by another and not expired: failed
 *    |            \--otherwise--> update --> renewed, or failed
 *    \--not found--> create --> renewed, or failed
 *
 * A candidate repeats attempts after the retry period and a random part of it, until it leads. The leader
 * renews after each retry period; if attempts fail, it repeats them until the renew deadline, and then stops.
 * After that, or when the election is closed, it releases the lock: get, and update with an empty holder.
 *
 * The answer of a call is stored under the lock and wakes the actor, which alone changes the other members.
 * At most one call is outstanding; an answer that comes after the deadline of its attempt only ends the call.
 *
 * The leader counts the time of its lease from the beginning of the call that renewed it, because others
 * may see the record long before the answer arrives. A candidate's expiry is measured from the local time
 * at which a change of the record was observed, never from the times in it, so the clocks of the
 * candidates need not agree. */
#include <stdio.h>

#include <vedette/leader_election.h>

#include "env.h"
#include "lock.h"
#include "metrics.h"
#include "usage.h"
#include "wait.h"

#define JITTER 1.2

enum step {
	STEP_NONE,
	STEP_FAST_UPDATE,
	STEP_GET,
	STEP_CREATE,
	STEP_UPDATE,
	STEP_RELEASE_GET,
	STEP_RELEASE_UPDATE,
};

enum phase {
	PHASE_CANDIDATE,
	PHASE_LEADER,
	PHASE_RELEASING, /* stopped_leading was called */
	PHASE_OVER,	 /* no further call of the lock */
};

struct answer {
	bool			is_there;
	vd_status		status;
	struct vd_leader_record record;
	struct vd_error		error;
};

struct vd_leader_election {
	/* Fixed. */
	const struct vd_env		 *env;
	struct vd_leader_lock		 *lock;
	struct vd_leader_election_options options;
	char				 *name, *identity; /* owned; options point to them */
	struct vd_actor			 *actor;
	struct vdi_usage		  usage;
	struct vdi_metric		 *is_leading_metric, *slow_metric;

	/* Actor. */
	enum phase		phase;
	enum step		step;	    /* outstanding call */
	bool			is_stale;   /* its answer comes too late and is ignored */
	vd_mono			called_at;  /* when the last call began */
	vd_mono			attempt_at; /* next attempt; VD_NEVER: one is in progress */
	vd_mono			deadline;   /* leader: of its renewal; releasing: of the release */
	struct vd_leader_record wanted;	    /* record of the call */
	struct vd_leader_record seen;	    /* last record read from the lock */
	bool			has_seen;
	char			reported[VD_LEADER_IDENTITY_SIZE_MAX];
	bool			has_stopped;
	bool			is_freed; /* the actor was closed */

	struct vdi_lock guard;
	/* Under guard. */
	struct vd_leader_record observed;
	vd_mono			observed_at;
	bool			is_leading;
	struct answer		answer;
	bool			is_closed;
	void (*closed)(void *arg);
	void *closed_arg;
};

static vd_mono now_of(const struct vd_leader_election *election)
{
	return vd_env_now(election->env);
}

/* ---- The observed record ---- */

/* Notes the record and the time from which its duration counts. Actor. */
static void observe(struct vd_leader_election *election, const struct vd_leader_record *record, vd_mono at)
{
	vdi_lock_acquire(&election->guard);
	election->observed = *record;
	election->observed_at = at;
	vdi_lock_release(&election->guard);
}

static bool holds(const struct vd_leader_election *election)
{
	return strcmp(election->observed.holder, election->identity) == 0;
}

static bool is_lease_valid(const struct vd_leader_election *election)
{
	vd_mono end = vd_mono_add(election->observed_at, VD_SECONDS(election->observed.lease_duration_s));

	return election->observed_at.ns && end.ns > now_of(election).ns;
}

static bool is_same_record(const struct vd_leader_record *a, const struct vd_leader_record *b)
{
	return strcmp(a->holder, b->holder) == 0 && a->lease_duration_s == b->lease_duration_s &&
	       a->leader_transitions == b->leader_transitions && a->acquire_time.ns == b->acquire_time.ns &&
	       a->renew_time.ns == b->renew_time.ns;
}

static void set_leading(struct vd_leader_election *election, bool is_leading)
{
	vdi_lock_acquire(&election->guard);
	election->is_leading = is_leading;
	vdi_lock_release(&election->guard);
	vdi_metric_set(election->is_leading_metric, is_leading);
}

/* Calls new_leader after a change of the holder. */
static void report_transition(struct vd_leader_election *election)
{
	if (strcmp(election->observed.holder, election->reported) == 0)
		return;
	memcpy(election->reported, election->observed.holder, sizeof election->reported);
	if (election->options.new_leader)
		election->options.new_leader(election->options.arg, election->reported);
}

/* ---- Calls of the lock ---- */

static void answered(void *arg, vd_status status, const struct vd_leader_record *record,
		     const struct vd_error *error)
{
	struct vd_leader_election *election = arg;

	vdi_lock_acquire(&election->guard);
	election->answer = (struct answer) { .is_there = true, .status = status };
	if (record)
		election->answer.record = *record;
	election->answer.record.holder[VD_LEADER_IDENTITY_SIZE_MAX - 1] = 0;
	if (error)
		election->answer.error = *error;
	else
		(void) vd_error_set(&election->answer.error, status, "%s", vd_status_sentence(status));
	vd_actor_wake(election->actor);
	vdi_lock_release(&election->guard);
}

static void call_lock(struct vd_leader_election *election, enum step step)
{
	const struct vd_leader_lock_ops *ops = election->lock->ops;
	vd_dur	  timeout = { VDI_MAX(election->options.renew_deadline.ns / 2, VD_SECONDS(1).ns) };
	vd_status status;

	election->step = step;
	election->is_stale = false;
	election->called_at = now_of(election);
	if (step == STEP_GET || step == STEP_RELEASE_GET)
		status = ops->get(election->lock, timeout, answered, election);
	else if (step == STEP_CREATE)
		status = ops->create(election->lock, &election->wanted, timeout, answered, election);
	else
		status = ops->update(election->lock, &election->wanted, timeout, answered, election);
	if (status != VD_OK)
		answered(election, status, NULL, NULL);
}

/* ---- One attempt ---- */

static struct vd_leader_record fresh_record(const struct vd_leader_election *election)
{
	vd_wall			now = vd_env_wall(election->env);
	struct vd_leader_record record = {
		.lease_duration_s = (int32_t) (election->options.lease_duration.ns / 1000000000),
		.acquire_time = now,
		.renew_time = now,
	};

	memcpy(record.holder, election->identity, strlen(election->identity) + 1);
	return record;
}

static void begin_attempt(struct vd_leader_election *election)
{
	election->attempt_at = VD_NEVER;
	election->wanted = fresh_record(election);
	if (election->phase == PHASE_LEADER && holds(election) && is_lease_valid(election)) {
		election->wanted.acquire_time = election->observed.acquire_time;
		election->wanted.leader_transitions = election->observed.leader_transitions;
		call_lock(election, STEP_FAST_UPDATE);
	} else {
		call_lock(election, STEP_GET);
	}
}

static void stop_leading(struct vd_leader_election *election);

/* Until when the last call allows to lead. Others may have seen the record as soon as the call began, however
 * late its answer came. */
static vd_mono renewal_deadline(const struct vd_leader_election *election)
{
	return vd_mono_add(vd_mono_add(election->called_at, election->options.retry_period),
			   election->options.renew_deadline);
}

/* Ends an attempt. A failed leader tries again until its deadline. */
static void end_attempt(struct vd_leader_election *election, bool is_renewed)
{
	vd_dur	period = election->options.retry_period;
	vd_mono now = now_of(election);

	report_transition(election);
	if (election->phase == PHASE_CANDIDATE) {
		uint64_t jitter_ns = (uint64_t) ((double) period.ns * JITTER);

		if (is_renewed) {
			election->phase = PHASE_LEADER;
			set_leading(election, true);
			vdi_log(election->env, VD_LOG_INFO, "leader_election", "%s: %s leads",
				election->name ? election->name : "election", election->identity);
			election->options.started_leading(election->options.arg);
		} else {
			period.ns += (int64_t) vd_env_random_below(election->env, jitter_ns + 1);
		}
	}
	election->attempt_at = vd_mono_add(now, period);
	if (election->phase == PHASE_LEADER && is_renewed)
		election->deadline = renewal_deadline(election);
}

static void log_failure(struct vd_leader_election *election, const char *action, const struct answer *answer)
{
	vdi_log(election->env, VD_LOG_WARNING, "leader_election", "%s: cannot %s the lock: %s",
		election->name ? election->name : "election", action, answer->error.message);
}

/* Another process leads: this one stops at once, because a renewal cannot succeed. */
static void lose_to(struct vd_leader_election *election, const char *holder)
{
	vdi_log(election->env, VD_LOG_ERROR, "leader_election", "%s: %s holds the lease: %s stops leading",
		election->name ? election->name : "election", holder, election->identity);
	report_transition(election);
	stop_leading(election);
}

static void take_read_record(struct vd_leader_election *election, const struct vd_leader_record *record)
{
	if (!election->has_seen || !is_same_record(&election->seen, record)) {
		observe(election, record, now_of(election));
		election->seen = *record;
		election->has_seen = true;
	}
	if (record->holder[0] && is_lease_valid(election) && !holds(election)) {
		if (election->phase == PHASE_LEADER)
			lose_to(election, record->holder);
		else
			end_attempt(election, false);
		return;
	}
	election->wanted = fresh_record(election);
	if (holds(election)) {
		election->wanted.acquire_time = record->acquire_time;
		election->wanted.leader_transitions = record->leader_transitions;
		vdi_metric_add(election->slow_metric, 1);
	} else {
		election->wanted.leader_transitions = record->leader_transitions + 1;
	}
	call_lock(election, STEP_UPDATE);
}

static void take_release_answer(struct vd_leader_election *election, enum step step,
				const struct answer *answer)
{
	if (step == STEP_RELEASE_GET && answer->status == VD_OK && holds(election)) {
		election->wanted = (struct vd_leader_record) {
			.lease_duration_s = 1,
			.leader_transitions = answer->record.leader_transitions,
			.acquire_time = vd_env_wall(election->env),
			.renew_time = vd_env_wall(election->env),
		};
		call_lock(election, STEP_RELEASE_UPDATE);
		return;
	}
	if (step == STEP_RELEASE_UPDATE && answer->status == VD_CONFLICT) {
		call_lock(election, STEP_RELEASE_GET);
		return;
	}
	if (step == STEP_RELEASE_UPDATE && answer->status == VD_OK)
		observe(election, &election->wanted, election->called_at);
	else if (answer->status != VD_OK && answer->status != VD_NOT_FOUND)
		log_failure(election, "release", answer);
	election->phase = PHASE_OVER;
}

static void take_answer(struct vd_leader_election *election, const struct answer *answer)
{
	enum step step = election->step;

	election->step = STEP_NONE;
	if (election->is_stale) {
		/* The release finds the lock held. */
		if (answer->status == VD_OK && step != STEP_GET && election->phase == PHASE_RELEASING)
			observe(election, &election->wanted, election->called_at);
		return;
	}
	switch (step) {
	case STEP_FAST_UPDATE:
		if (answer->status != VD_OK) {
			call_lock(election, STEP_GET);
			return;
		}
		break;
	case STEP_GET:
		if (answer->status == VD_OK) {
			take_read_record(election, &answer->record);
			return;
		}
		if (answer->status == VD_NOT_FOUND) {
			election->wanted = fresh_record(election);
			call_lock(election, STEP_CREATE);
			return;
		}
		log_failure(election, "read", answer);
		break;
	case STEP_CREATE:
	case STEP_UPDATE:
		if (answer->status != VD_OK)
			log_failure(election, step == STEP_CREATE ? "create" : "update", answer);
		break;
	case STEP_RELEASE_GET:
	case STEP_RELEASE_UPDATE: take_release_answer(election, step, answer); return;
	case STEP_NONE: return;
	}
	if (answer->status == VD_OK)
		observe(election, &election->wanted, election->called_at);
	/* An answer that comes too late, such as to a process that was stopped, does not make a leader. */
	end_attempt(election, answer->status == VD_OK && now_of(election).ns < renewal_deadline(election).ns);
}

/* ---- The end ---- */

/* Ends the election: stopped_leading, then the release if the lock is held. */
static void stop_leading(struct vd_leader_election *election)
{
	bool may_hold = election->phase == PHASE_LEADER || election->step == STEP_CREATE ||
			election->step == STEP_UPDATE;

	election->is_stale = election->step != STEP_NONE;
	election->attempt_at = VD_NEVER;
	election->phase = PHASE_OVER;
	set_leading(election, false);
	election->has_stopped = true;
	election->options.stopped_leading(election->options.arg);
	if (may_hold && election->options.release_on_stop) {
		election->phase = PHASE_RELEASING;
		election->deadline = vd_mono_add(now_of(election), election->options.renew_deadline);
	}
}

/* Begins the release when the outstanding call has ended, and gives it up at its deadline. */
static void run_release(struct vd_leader_election *election, vd_mono now)
{
	if (now.ns >= election->deadline.ns) {
		vdi_log(election->env, VD_LOG_WARNING, "leader_election",
			"%s: the lock could not be released in time: others wait until the lease expires",
			election->name ? election->name : "election");
		election->is_stale = election->step != STEP_NONE;
		election->phase = PHASE_OVER;
	} else if (election->step == STEP_NONE) {
		call_lock(election, STEP_RELEASE_GET);
	}
}

static void free_election(struct vd_leader_election *election)
{
	vdi_usage_end(&election->usage);
	vdi_metric_remove(election->is_leading_metric);
	vdi_metric_release(election->slow_metric);
	vdi_lock_fini(&election->guard);
	vdi_free(election->name);
	vdi_free(election->identity);
	vdi_free(election);
}

static void on_election_closed(void *arg)
{
	struct vd_leader_election *election = arg;
	void (*closed)(void *) = election->closed;
	void *closed_arg = election->closed_arg;

	election->lock->ops->free(election->lock);
	free_election(election);
	if (closed)
		closed(closed_arg);
}

/* ---- The actor ---- */

static bool take_stored_answer(struct vd_leader_election *election, struct answer *ret_answer)
{
	vdi_lock_acquire(&election->guard);
	*ret_answer = election->answer;
	election->answer.is_there = false;
	vdi_lock_release(&election->guard);
	return ret_answer->is_there;
}

/* Moves the state on as far as time and closing require. */
static void run_phase(struct vd_leader_election *election, bool is_closed)
{
	vd_mono now = now_of(election);

	if (election->phase == PHASE_LEADER && now.ns >= election->deadline.ns) {
		vdi_log(election->env, VD_LOG_ERROR, "leader_election",
			"%s: %s could not renew its lease in time and stops leading",
			election->name ? election->name : "election", election->identity);
		stop_leading(election);
	} else if (is_closed && !election->has_stopped) {
		stop_leading(election);
	}
	if (election->phase == PHASE_RELEASING)
		run_release(election, now);
	else if (election->phase != PHASE_OVER && election->step == STEP_NONE &&
		 now.ns >= election->attempt_at.ns)
		begin_attempt(election);
}

static void run(void *arg)
{
	struct vd_leader_election *election = arg;
	struct answer		   answer;
	vd_mono			   due;
	bool			   is_closed;

	if (election->is_freed)
		return;
	vdi_lock_acquire(&election->guard);
	is_closed = election->is_closed;
	vdi_lock_release(&election->guard);
	if (take_stored_answer(election, &answer))
		take_answer(election, &answer);
	run_phase(election, is_closed);
	/* A lock that answers inside the call has woken the actor for its answer. */
	if (is_closed && election->phase == PHASE_OVER && election->step == STEP_NONE) {
		election->is_freed = true;
		vd_actor_close(election->actor, on_election_closed, election);
		return;
	}
	due = election->step == STEP_NONE ? election->attempt_at : VD_NEVER;
	if (election->phase == PHASE_LEADER || election->phase == PHASE_RELEASING)
		due.ns = VDI_MIN(due.ns, election->deadline.ns);
	if (election->phase == PHASE_OVER)
		due = VD_NEVER;
	vd_actor_set_timer(election->actor, due);
}

/* ---- Public functions ---- */

static vd_status check_times(const struct vd_leader_election_options *options, struct vd_error *reterr)
{
	if (options->retry_period.ns < 1)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "retry_period must be above 0");
	if (options->renew_deadline.ns < 1)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "renew_deadline must be above 0");
	if (options->lease_duration.ns < VD_SECONDS(1).ns ||
	    options->lease_duration.ns > VD_SECONDS(INT32_MAX).ns || options->lease_duration.ns % 1000000000)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "lease_duration must be whole seconds, 1 or more");
	if (options->lease_duration.ns <= options->renew_deadline.ns)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "lease_duration must be greater than renew_deadline");
	if ((double) options->renew_deadline.ns <= JITTER * (double) options->retry_period.ns)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "renew_deadline must be greater than retry_period * 1.2");
	return VD_OK;
}

static vd_status check_options(const struct vd_leader_election_options *options, struct vd_error *reterr)
{
	VDI_TRY(check_times(options, reterr));
	if (options->started_leading == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "started_leading is NULL");
	if (options->stopped_leading == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "stopped_leading is NULL");
	if (options->identity == NULL || options->identity[0] == 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "identity is empty");
	if (strlen(options->identity) >= VD_LEADER_IDENTITY_SIZE_MAX)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "identity has %zu bytes, must be less than %d", strlen(options->identity),
				    VD_LEADER_IDENTITY_SIZE_MAX);
	return VD_OK;
}

static vd_status build(struct vd_leader_election *election)
{
	struct vd_actor_options actor = { .name = "leader_election", .run = run, .arg = election };
	const char	       *values[] = { election->options.name };

	election->identity = vdi_strdup(election->options.identity);
	if (election->options.name) {
		election->name = vdi_strdup(election->options.name);
		if (election->name == NULL)
			return VD_NOMEM;
		VDI_TRY(vdi_metric_get(vdi_env_metrics(election->env),
				       VDI_METRIC_LEADER_ELECTION_MASTER_STATUS, values,
				       &election->is_leading_metric));
		VDI_TRY(vdi_metric_get(vdi_env_metrics(election->env),
				       VDI_METRIC_LEADER_ELECTION_SLOWPATH_TOTAL, values,
				       &election->slow_metric));
	}
	if (election->identity == NULL)
		return VD_NOMEM;
	election->options.name = election->name;
	election->options.identity = election->identity;
	return vd_actor_new(election->env, &actor, &election->actor);
}

vd_status vd_leader_election_start(const struct vd_env *env, struct vd_leader_lock *lock,
				   const struct vd_leader_election_options *options,
				   struct vd_leader_election **ret_election, struct vd_error *reterr)
{
	struct vd_leader_election *election;
	vd_status		   status;

	VDI_REQUIRE(env, reterr);
	VDI_REQUIRE(lock, reterr);
	VDI_REQUIRE(lock->ops, reterr);
	VDI_REQUIRE(lock->ops->get, reterr);
	VDI_REQUIRE(lock->ops->create, reterr);
	VDI_REQUIRE(lock->ops->update, reterr);
	VDI_REQUIRE(lock->ops->free, reterr);
	VDI_REQUIRE_OPTIONS(options, reterr);
	VDI_REQUIRE(ret_election, reterr);
	VDI_TRY(check_options(options, reterr));
	election = VDI_NEW(struct vd_leader_election);
	if (election == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory for a leader election");
	election->env = env;
	election->lock = lock;
	election->options = *options;
	vdi_lock_init(&election->guard, VDI_LOCK_CONTROLLER);
	status = build(election);
	if (status != VD_OK) {
		free_election(election);
		return vd_error_set(reterr, status, "%s for a leader election", vd_status_sentence(status));
	}
	election->usage = (struct vdi_usage) { .kind = "leader election",
					       .name = election->name,
					       .closed_by = "vd_leader_election_close",
					       .env = env };
	vdi_usage_begin(&election->usage);
	*ret_election = election;
	vd_actor_wake(election->actor);
	return VD_OK;
}

void vd_leader_lock_free(struct vd_leader_lock *lock)
{
	if (lock)
		lock->ops->free(lock);
}

bool vd_leader_election_is_leader(struct vd_leader_election *election)
{
	bool is_leader;

	if (election == NULL)
		return false;
	vdi_lock_acquire(&election->guard);
	is_leader = election->is_leading && holds(election);
	vdi_lock_release(&election->guard);
	return is_leader;
}

size_t vd_leader_election_leader(struct vd_leader_election *election, char *identity, size_t size)
{
	size_t length;

	size = identity ? size : 0;
	if (size)
		identity[0] = 0;
	if (election == NULL)
		return 0;
	vdi_lock_acquire(&election->guard);
	length = strlen(election->observed.holder);
	(void) snprintf(identity, size, "%s", election->observed.holder);
	vdi_lock_release(&election->guard);
	return length;
}

vd_status vd_leader_election_check(struct vd_leader_election *election, vd_dur tolerance,
				   struct vd_error *reterr)
{
	bool   is_leader;
	vd_dur age;

	VDI_REQUIRE(election, reterr);
	vdi_lock_acquire(&election->guard);
	is_leader = holds(election);
	age = vd_mono_since(now_of(election), election->observed_at);
	vdi_lock_release(&election->guard);
	if (is_leader &&
	    age.ns > vd_mono_add((vd_mono) { tolerance.ns }, election->options.lease_duration).ns)
		return vd_error_set(reterr, VD_TIMEOUT, "failed election to renew leadership on lease %s",
				    election->name ? election->name : "");
	return VD_OK;
}

void vd_leader_election_close(struct vd_leader_election *election, void (*done)(void *arg), void *arg)
{
	if (election == NULL) {
		if (done)
			done(arg);
		return;
	}
	if (atomic_exchange(&election->usage.is_closing, true))
		vdi_misuse("vd_leader_election_close: the election %s is closing already",
			   election->name ? election->name : "without a name");
	vdi_lock_acquire(&election->guard);
	election->is_closed = true;
	election->closed = done;
	election->closed_arg = arg;
	vd_actor_wake(election->actor);
	vdi_lock_release(&election->guard);
}

struct vd_leader_election *vd_leader_election_close_wait(struct vd_leader_election *election)
{
	struct vdi_wait wait;

	if (election == NULL)
		return NULL;
	vdi_wait_check_close(__func__, "vd_leader_election_close");
	vdi_wait_init(&wait, election->env);
	vd_leader_election_close(election, vdi_wait_signal_arg, &wait);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
	return NULL;
}
