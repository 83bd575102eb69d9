/* Leader election: of several processes that share a lock, one leads. The rules and times are those of
 * client-go's tools/leaderelection.
 *
 * The leader renews the record in the lock. The other candidates read the record, and one takes it when it
 * has not changed for the lease duration by the candidate's own clock. A leader that cannot renew the
 * record for the renew deadline stops leading. As with client-go, two processes may act as leader at the
 * same time if their clocks run at very different rates, or if a process was stopped for long.
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
	/* Identity of the leader, NUL-terminated; empty: released. If an identity in the storage of a lock
	 * can contain a NUL, the lock must not cut the identity there, because the first part may be the
	 * identity of another candidate; the lock on a Lease replaces a NUL by the byte 0xff. */
	char	holder[VD_LEADER_IDENTITY_SIZE_MAX];
	int32_t lease_duration_s;
	int32_t leader_transitions;
	vd_wall acquire_time;
	vd_wall renew_time;
};

struct vd_leader_lock;

/* Receives the result of a call. record: the record that get read, if status is VD_OK; otherwise ignored.
 * error may be NULL. */
typedef void (*vd_leader_lock_fn)(void *arg, vd_status status, const struct vd_leader_record *record,
				  const struct vd_error *error);
/* Operations of a lock, such as that of vd_lease_lock_new (vedette/kube_helpers.h); embedders may implement
 * their own. They must not block; an election has at most one call outstanding. If a call returns VD_OK,
 * the lock calls done exactly once, inside the call or later, on any thread; otherwise never. The lock
 * remembers the version of the record that it last read or wrote. Arguments are borrowed for the call.
 * timeout: maximum duration of the call; then done receives an error. */
struct vd_leader_lock_ops {
	/* VD_NOT_FOUND: there is no record. */
	vd_status (*get)(struct vd_leader_lock *lock, vd_dur timeout, vd_leader_lock_fn done, void *arg);
	/* VD_EXISTS: there is a record. */
	vd_status (*create)(struct vd_leader_lock *lock, const struct vd_leader_record *record,
			    vd_dur timeout, vd_leader_lock_fn done, void *arg);
	/* VD_CONFLICT: another candidate changed the record after this lock last read or wrote it. */
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
	/* Called when this process becomes the leader. */
	void (*started_leading)(void *arg);
	/* Called when the election has ended, because leadership was lost or the election was closed: once,
	 * before the lock is released, and also if this process never led. The process then closes the
	 * election, and may start another. */
	void (*stopped_leading)(void *arg);
	/* Called when the holder of the lock changes, also when this process becomes the holder. identity
	 * is borrowed for the call; empty: released. May be NULL. */
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
/* Returns true if this process leads: the record that it last read or wrote names it. Another process may
 * have taken the lock since. */
VD_API bool vd_leader_election_is_leader(struct vd_leader_election *election);
/* Writes the identity of the last observed leader, or "", and a NUL into identity (size bytes). Returns the
 * length of the whole identity without the NUL; if it is size or more, the text was truncated. */
VD_API size_t vd_leader_election_leader(struct vd_leader_election *election, char *identity, size_t size);
/* Checks the leader for a health check: VD_TIMEOUT if this process leads but its lease expired more than
 * tolerance ago; otherwise VD_OK. The message names the election. */
VD_API vd_status vd_leader_election_check(struct vd_leader_election *election, vd_dur tolerance,
					  struct vd_error *reterr);
/* Ends the election: calls stopped_leading unless it was called, releases the lock if release_on_stop is
 * set, and frees election and lock. Then calls done (may be NULL): when the last call of the lock has
 * ended, at most a renew deadline later; no other callback is called after it. election NULL: done is
 * called at once. The _wait form blocks until then and returns NULL. */
VD_API void vd_leader_election_close(struct vd_leader_election *election, void (*done)(void *arg), void *arg);
VD_API struct vd_leader_election *vd_leader_election_close_wait(struct vd_leader_election *election);

#ifdef __cplusplus
}
#endif
#endif
