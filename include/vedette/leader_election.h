/* Leader election: of several processes with the same lock, one leads. The rules and times are those of
 * client-go's tools/leaderelection.
 *
 * The leader renews the record of the lock; the others watch it change, by their own clocks, and take it
 * when it did not change for the lease duration. A leader that cannot renew for the renew deadline stops
 * leading. As with client-go this does not exclude that two processes act at the same time if clocks run
 * at very different rates or a process is stopped for long.
 *
 * Callbacks run on an actor of the env, one at a time, and must not block. All functions may be called from
 * any thread, also inside a callback; only functions named _wait block. */
#ifndef VEDETTE_LEADER_ELECTION_H
#define VEDETTE_LEADER_ELECTION_H

#include <vedette/env.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The lock ---- */

#define VD_LEADER_IDENTITY_SIZE_MAX 512

/* The record in the lock. */
struct vd_leader_record {
	/* NUL-terminated; empty: released. A lock whose records can hold a NUL inside the identity must not
	 * cut it there, because the first part may be the identity of another candidate; that on a Lease
	 * replaces a NUL by the byte 0xff. */
	char	holder[VD_LEADER_IDENTITY_SIZE_MAX];
	int32_t lease_duration_s;
	int32_t leader_transitions;
	vd_wall acquire_time;
	vd_wall renew_time;
};

struct vd_leader_lock;

/* record: of get, if status is VD_OK. error may be NULL. */
typedef void (*vd_leader_lock_fn)(void *arg, vd_status status, const struct vd_leader_record *record,
				  const struct vd_error *error);
/* A lock, such as vd_lease_lock_new of vedette/kube_helpers.h; embedders may implement their own. An
 * election has at most one call of it outstanding. done is called exactly once if the call returns VD_OK,
 * inside the call or later, on any thread; otherwise never. The lock remembers which version of the record
 * it saw last. Arguments are borrowed for the call. */
struct vd_leader_lock_ops {
	/* VD_NOT_FOUND: there is no record. */
	vd_status (*get)(struct vd_leader_lock *lock, vd_dur timeout, vd_leader_lock_fn done, void *arg);
	/* VD_EXISTS: there is a record. */
	vd_status (*create)(struct vd_leader_lock *lock, const struct vd_leader_record *record,
			    vd_dur timeout, vd_leader_lock_fn done, void *arg);
	/* VD_CONFLICT: the record is not the version that this lock saw last. */
	vd_status (*update)(struct vd_leader_lock *lock, const struct vd_leader_record *record,
			    vd_dur timeout, vd_leader_lock_fn done, void *arg);
	void (*free)(struct vd_leader_lock *lock);
};
/* First member of every lock. */
struct vd_leader_lock {
	const struct vd_leader_lock_ops *ops;
};

/* Frees a lock that no election has taken. lock may be NULL. */
VD_API void vd_leader_lock_free(struct vd_leader_lock *lock);

/* ---- The election ---- */

struct vd_leader_election;

struct vd_leader_election_options {
	size_t	    size;	    /* sizeof(struct vd_leader_election_options) */
	const char *name;	    /* label of the metrics leader_election_*; NULL: no metrics */
	const char *identity;	    /* unique among the candidates, such as "<host>_<random>" */
	vd_dur	    lease_duration; /* whole seconds; default 15 s */
	vd_dur	    renew_deadline; /* less than lease_duration; default 10 s */
	vd_dur	    retry_period;   /* less than renew_deadline / 1.2; default 2 s */
	/* Release the lock at the end, so that another candidate need not wait for the lease to expire. Work
	 * that the lock protects must have ended when stopped_leading returns. */
	bool release_on_stop;
	/* Leadership was acquired. */
	void (*started_leading)(void *arg);
	/* The election is over: leadership was lost, or the election was closed. Called once, also if this
	 * process never led; before the lock is released. The process then closes the election, and may
	 * start another. */
	void (*stopped_leading)(void *arg);
	/* Another holder was observed, this process included. identity is borrowed; empty: released. May be
	 * NULL. */
	void (*new_leader)(void *arg, const char *identity);
	void *arg;
};
#define VD_LEADER_ELECTION_OPTIONS_INIT                                                                      \
	{                                                                                                    \
		sizeof(struct vd_leader_election_options), 0, 0, { (int64_t) 15 * 1000000000 },              \
			{ (int64_t) 10 * 1000000000 }, { (int64_t) 2 * 1000000000 }, false, 0, 0, 0, 0       \
	}

/* Starts an election, which takes the lock; on an error the caller keeps it. options are copied. The caller
 * owns the election and closes it. Errors: VD_INVALID_ARGUMENT (the message names the option), VD_NOMEM. */
VD_API VD_MUST_USE vd_status vd_leader_election_start(const struct vd_env *env, struct vd_leader_lock *lock,
						      const struct vd_leader_election_options *options,
						      struct vd_leader_election		     **ret_election,
						      struct vd_error			      *reterr);
/* Returns true if this process leads, as far as it knows. */
VD_API bool vd_leader_election_is_leader(struct vd_leader_election *election);
/* Writes the identity of the last observed leader, or "". Returns its length without the NUL; a result of
 * size or more was cut. */
VD_API size_t vd_leader_election_leader(struct vd_leader_election *election, char *identity, size_t size);
/* For a health check: VD_TIMEOUT if this process leads but its lease expired more than tolerance ago. The
 * message names the election. */
VD_API vd_status vd_leader_election_check(struct vd_leader_election *election, vd_dur tolerance,
					  struct vd_error *reterr);
/* Stops leading: calls stopped_leading unless it was called, releases the lock if release_on_stop is set, and
 * frees election and lock. No callback is called after done (may be NULL), which is called when the last
 * call of the lock has ended, at most a renew deadline later. election NULL: done is called at once. The
 * _wait form blocks until then and returns NULL. */
VD_API void vd_leader_election_close(struct vd_leader_election *election, void (*done)(void *arg), void *arg);
VD_API struct vd_leader_election *vd_leader_election_close_wait(struct vd_leader_election *election);

#ifdef __cplusplus
}
#endif
#endif
