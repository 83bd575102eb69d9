/* Replay of an event log: a store that repeats the history of a recorded one.
 *
 * A player is a vd_store whose content follows a recorded log: the same keys, values and revisions, in the
 * same order, at the recorded pace or as fast as its watches read. A cacher, an informer or a REST server
 * over it sees the recorded cluster. It serves to test controllers: give the code under test a player,
 * step through the log, inject faults from a seed, and check what the code did. A simulation (below)
 * combines all of that, for tests of a dozen lines.
 *
 * With a simulated env, the same log, seed and calls give the same run, byte for byte. docs/EVENT-LOG.md
 * describes the format of logs.
 *
 * All functions may be called from any thread and do not block, unless their comment says otherwise. Those
 * that block must not be called from an actor's handler.
 */
#ifndef VEDETTE_REPLAY_H
#define VEDETTE_REPLAY_H

#include <vedette/store.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vd_player;

struct vd_player_options {
	size_t	    size; /* sizeof(struct vd_player_options) */
	const char *path; /* the log, plain or zstd; "-": standard input */
	/* multiple of the recorded speed; 0 (default): as fast as the watches read. Records without a time
	 * are applied at once. */
	double speed;
	/* apply nothing until vd_player_resume, vd_player_step or vd_player_seek */
	bool paused;
	/* apply the log up to this revision before vd_player_open returns; 0: only its snapshot */
	vd_rev start_revision;
	/* accept writes of other callers; a recorded transaction whose revision is taken gets the next one */
	bool	    writable;
	uint64_t    seed;	   /* seed of the faults; 0 is a valid seed */
	const char *faults;	   /* faults as listed below; NULL or "": none */
	int64_t	    history_bytes; /* maximum size of retained older revisions, in bytes; default 64 MiB */
	/* maximum transactions applied ahead of the slowest open watch; default 4096 */
	uint32_t lead_max;
	/* Number of times the log is played. At its end, one transaction restores its initial state, and
	 * the log repeats at later revisions. Default 1; 0: for ever. */
	uint64_t rounds;
	/* A log whose end is torn, or that its writer did not close, ends with VD_BAD_REQUEST. Default:
	 * vd_player_progress reports it. */
	bool strict;
};
#define VD_PLAYER_OPTIONS_INIT                                                                               \
	{                                                                                                    \
		.size = sizeof(struct vd_player_options), .history_bytes = (int64_t) 64 << 20,               \
		.lead_max = 4096, .rounds = 1                                                                \
	}

/* Faults: comma-separated words, each with a probability P (0 to 1), a duration D (10ms, 2s), or a
 * revision R.
 *
 *	disconnect=P	after a transaction, all watches end with VD_UNAVAILABLE; they can resume
 *	compact=P	after a transaction, older revisions are compacted and all watches
 *			disconnected; watches that are behind get VD_EXPIRED
 *	error=P		after a transaction, all watches end with VD_INTERNAL
 *	delay=D		some batches are delayed by at most D, each watch separately: kinds overtake each
 *			other, but the events of one watch keep their order
 *	delay-rate=P	probability that a batch is delayed; default 0.1
 *	stale=D		every batch is delayed by D, as on a replica that lags: reads show newer
 *			revisions than watches
 *	slow=D		the program that prints watch events pauses for D after each one (vedette
 *			replay; the player ignores it)
 *	cut=P		the server cuts a watch event in its middle, and the connection (vedette replay
 *			--listen; the player ignores it)
 *	refuse=P	a read or write is refused with VD_UNAVAILABLE before it is executed
 *	lose=P		a write is executed and its answer lost (VD_UNAVAILABLE)
 *	too-large=P	a read at a revision is answered VD_TOO_LARGE_REVISION
 *	disconnect@R, compact@R, error@R	once, after the transaction of revision R */

/* Opens a player. The caller owns it and closes it. Blocks while it reads the snapshot of the log and
 * applies the log up to start_revision. Errors: VD_NOT_FOUND; VD_IO; VD_BAD_REQUEST (no event log, or a
 * malformed line: file and line are named); VD_NEWER_FORMAT; VD_INVALID_ARGUMENT (an option, or an invalid
 * word of faults); VD_NOMEM. */
VD_API VD_MUST_USE vd_status vd_player_open(const struct vd_env *env, const struct vd_player_options *options,
					    struct vd_player **ret_player, struct vd_error *reterr);
/* Returns the player's store, borrowed until the player is closed; closing the store itself has no effect.
 * Writes answer VD_FORBIDDEN unless the player is writable. */
VD_API struct vd_store *vd_player_store(struct vd_player *player);

/* Pauses the player: it applies no further transactions until vd_player_resume, vd_player_step or
 * vd_player_seek. */
VD_API void vd_player_pause(struct vd_player *player);
/* Resumes playing at the speed that is set. */
VD_API void vd_player_resume(struct vd_player *player);
/* Sets the speed, as in vd_player_options. */
VD_API void vd_player_set_speed(struct vd_player *player, double speed);
/* Applies the next count transactions at once, while paused. */
VD_API void vd_player_step(struct vd_player *player, uint64_t count);
/* Plays as fast as the watches read until revision is reached, then as before. Only forwards: to go back,
 * open another player. */
VD_API void vd_player_seek(struct vd_player *player, vd_rev revision);
/* Plays as vd_player_seek, until the first transaction recorded at or after time. */
VD_API void vd_player_seek_time(struct vd_player *player, vd_wall time);

struct vd_player_progress {
	vd_rev	 revision;     /* revision applied and visible */
	uint64_t transactions; /* transactions applied */
	uint64_t records;      /* puts and deletes of these transactions */
	vd_wall	 time;	       /* recorded time of the last transaction that has one; 0: none has */
	bool	 paused;
	bool	 resting;  /* paused, and all requested transactions (step, seek) are applied */
	bool	 ended;	   /* the log has ended, or an error ended it early */
	uint64_t rounds;   /* repetitions of the log begun */
	bool	 was_torn; /* an incomplete transaction or line at the end was ignored */
	/* The log has checksums and no closing line: its writer was killed, or lines at its end are
	 * missing. */
	bool	 was_unclosed;
	uint64_t torn_line;		   /* first line of the ignored part */
	uint64_t torn_records, torn_bytes; /* complete records, and bytes of text, in the ignored part */
	/* numbers of faults, injected ones and those recorded in the log */
	uint64_t disconnects, compactions, errors, delays, refusals, lost_answers, too_large;
};
/* Reads the progress of the player. */
VD_API void vd_player_progress_get(const struct vd_player *player, struct vd_player_progress *ret_progress);
/* Blocks until revision is applied, the log has ended, or timeout (negative: for ever). VD_PLAYER_END:
 * waits for the end. Returns VD_OK; VD_NOT_FOUND (the log ended before); VD_TIMEOUT; or the error that
 * ended the log early. With a simulated env this call runs the simulator. */
#define VD_PLAYER_END INT64_MAX
VD_API VD_MUST_USE vd_status vd_player_wait(struct vd_player *player, vd_rev revision, vd_dur timeout,
					    struct vd_error *reterr);

/* Closes the player and its store: watches end with VD_CLOSED and stay valid until their owners close
 * them. done (may be NULL) is called when the player makes no further calls. The close_wait form blocks
 * until then and returns NULL. */
VD_API void		 vd_player_close(struct vd_player *player, void (*done)(void *arg), void *arg);
VD_API struct vd_player *vd_player_close_wait(struct vd_player *player);

/* ---- Simulations: a log, code under test, and expectations ----
 *
 * A simulation is one run of a log in the simulator. It has an env of its own (one thread, a clock that
 * jumps, an order of actors drawn from the seed), a player, caches over it, and watches that record their
 * events. The code under test uses vd_simulation_env, vd_simulation_store or a vd_simulation_cacher instead
 * of the real ones. It sees no difference, except that no real time passes: hours of back-off take an
 * instant. The same log, seed and code give the same run.
 *
 *	for (seed = 0; seed < 100; seed++) {
 *		options.seed = seed;
 *		vd_simulation_open(&options, &simulation, &error);		at the beginning of the log
 *		... start the code under test over vd_simulation_store ...
 *		vd_simulation_run(simulation, VD_PLAYER_END, &error);		plays the log
 *		vd_simulation_expect_state(simulation, "/registry/configmaps/a/b", "{...}");
 *		vd_simulation_expect_no_violation(simulation);
 *		... close the code under test ...
 *		if (vd_simulation_failure(simulation)) puts(vd_simulation_failure(simulation));
 *		vd_simulation_close(simulation);
 *	}
 *
 * One thread makes all calls. Actors run inside the calls that say so, and inside each blocking call of
 * vedette with this env (those named _wait). An expectation that does not hold returns false; the message
 * of the first one is kept, and each message is passed to options.failed. Simulations depend on no test
 * framework. */

struct vd_cacher;
struct vd_watch_options;
struct vd_simulation;

struct vd_simulation_options {
	size_t	    size;	    /* sizeof(struct vd_simulation_options) */
	const char *path;	    /* the log, as vd_player_options.path */
	uint64_t    seed;	    /* seed of the faults and of the order of actors; 0 is a valid seed */
	const char *faults;	    /* faults as listed above; NULL or "": none */
	vd_rev	    start_revision; /* as vd_player_options.start_revision */
	/* refuse writes of the code under test; default: accept them (vd_player_options.writable) */
	bool	read_only;
	int64_t history_bytes; /* as vd_player_options.history_bytes */
	/* As vd_player_options.speed; default 1: the recorded pace, in simulated time. 0: all at once, in
	 * bursts. */
	double speed;
	/* Maximum of the random duration of each simulator step, so that timers interleave with other
	 * work; default 1 ms. */
	vd_dur step_delay_max;
	/* Simulated time at the end of each vd_simulation_run, for retries and timers of the code under
	 * test; default 60 s. */
	vd_dur	  settle;
	vd_log_fn log; /* receives log records of all levels; NULL: discarded */
	void	 *log_arg;
	/* Called if an expectation does not hold; may longjmp, as test frameworks do; NULL: not called. */
	void (*failed)(void *arg, const char *sentence);
	void *failed_arg;
};
#define VD_SIMULATION_OPTIONS_INIT                                                                           \
	{                                                                                                    \
		.size = sizeof(struct vd_simulation_options), .history_bytes = (int64_t) 64 << 20,           \
		.speed = 1, .step_delay_max = { 1000000 }, .settle = {                                       \
			(int64_t) 60 * 1000000000                                                            \
		}                                                                                            \
	}

/* Opens a simulation. The caller owns it and closes it. Errors as for vd_player_open. */
VD_API VD_MUST_USE vd_status vd_simulation_open(const struct vd_simulation_options *options,
						struct vd_simulation		  **ret_simulation,
						struct vd_error			   *reterr);
/* Closes the simulation's watches, caches, player and env. The caller must close before what it created
 * with them. simulation may be NULL. Returns NULL. */
VD_API struct vd_simulation *vd_simulation_close(struct vd_simulation *simulation);

/* The simulation's env, store and player; borrowed until the simulation is closed. The player is paused;
 * vd_simulation_run advances it. */
VD_API struct vd_env	*vd_simulation_env(struct vd_simulation *simulation);
VD_API struct vd_store	*vd_simulation_store(struct vd_simulation *simulation);
VD_API struct vd_player *vd_simulation_player(struct vd_simulation *simulation);
/* Returns the cache of the objects under key_prefix (such as "/registry/pods/"), for Kubernetes-shaped
 * JSON of any kind. The first call for a prefix creates it; it is ready when the call returns. The code
 * under test may use it or create its own. Runs the simulator. Errors: VD_INVALID_ARGUMENT; VD_NOMEM;
 * VD_TIMEOUT (faults prevent readiness). */
VD_API VD_MUST_USE vd_status vd_simulation_cacher(struct vd_simulation *simulation, const char *key_prefix,
						  bool cluster_scoped, struct vd_cacher **ret_cacher,
						  struct vd_error *reterr);
/* Opens a watch that behaves like a reconnecting client: when it ends, it is opened again from the last
 * revision seen, or, if that has expired, with the current state. Its events are checked and kept, at most
 * VD_SIMULATION_EVENTS_MAX. cacher belongs to this env; if it is not from vd_simulation_cacher, it must
 * outlive vd_simulation_close. Watches are numbered from 0. Runs the simulator until the watch is open.
 * Errors: VD_NOMEM; VD_BAD_REQUEST (a selector). */
#define VD_SIMULATION_EVENTS_MAX 1000000
VD_API VD_MUST_USE vd_status vd_simulation_watch(struct vd_simulation *simulation, struct vd_cacher *cacher,
						 const struct vd_watch_options *options, unsigned *ret_watch,
						 struct vd_error *reterr);
/* Registers an invariant: holds is called for each new revision of the store from now on; false is a
 * violation with this name (copied). holds may read store with calls that do not block. */
VD_API VD_MUST_USE vd_status vd_simulation_always(struct vd_simulation *simulation, const char *name,
						  bool (*holds)(void *arg, struct vd_store *store),
						  void *arg);

/* Plays until revision is applied (VD_PLAYER_END: all), waits until caches and watches have seen all of it,
 * then lets the time options.settle pass. Runs the simulator. Errors: VD_NOT_FOUND (the log ends before
 * that revision); VD_TIMEOUT (a cache or watch did not catch up within an hour of simulated time); the
 * error that ended the log. */
VD_API VD_MUST_USE vd_status vd_simulation_run(struct vd_simulation *simulation, vd_rev revision,
					       struct vd_error *reterr);
/* Lets simulated time pass without playing the log. Runs the simulator. */
VD_API void vd_simulation_pass(struct vd_simulation *simulation, vd_dur time);
/* Lets simulated time pass until condition holds; it is called between steps of the simulator. Returns
 * false if limit has passed or no event is left that could change it. */
VD_API bool vd_simulation_until(struct vd_simulation *simulation, bool (*condition)(void *arg), void *arg,
				vd_dur limit);

/* Expects an event of this type, key (NULL: any) and revision (0: any) among the watch's events after the
 * one expected last (at first: all). Events before it are skipped. type is an enum vd_watch_type. */
VD_API bool vd_simulation_expect_event(struct vd_simulation *simulation, unsigned watch, int type,
				       const char *key, vd_rev revision);
/* Expects no such event after the one expected last. */
VD_API bool vd_simulation_expect_no_event(struct vd_simulation *simulation, unsigned watch, int type,
					  const char *key);
/* Expects that the current value of key equals this JSON, regardless of member order and white space,
 * numbers by value (1 equals 1.0); NULL: that the key does not exist. */
VD_API bool vd_simulation_expect_state(struct vd_simulation *simulation, const char *key, const char *json);
/* Expects that the member at a dotted path (such as ".spec.nodeName"; "\." is a dot in a key) equals this
 * JSON; NULL: that it does not exist. */
VD_API bool vd_simulation_expect_member(struct vd_simulation *simulation, const char *key, const char *path,
					const char *json);
/* Expects that count keys have this prefix. */
VD_API bool vd_simulation_expect_count(struct vd_simulation *simulation, const char *prefix, size_t count);
/* Returns true if no watch guarantee and no invariant was violated: each watch saw each change once, in
 * order, with the right type and previous state, and no event after a bookmark that belongs before it; its
 * state equals the cache's list, which equals the store's content. Call it after vd_simulation_run. */
VD_API bool vd_simulation_expect_no_violation(struct vd_simulation *simulation);
/* Returns the message of the first expectation that did not hold, or NULL. Borrowed until the simulation is
 * closed. */
VD_API const char *vd_simulation_failure(const struct vd_simulation *simulation);
/* Returns a hash of all watch events and of the order of actors; equal for equal runs. */
VD_API uint64_t vd_simulation_fingerprint(const struct vd_simulation *simulation);

#ifdef __cplusplus
}
#endif
#endif
