/* Replaying an event log: a store that lives through what another one lived through.
 *
 * A player is a vd_store whose content follows a recorded log: the same keys, values and revisions, in the same order, at the recorded pace or as fast as its
 * watches take it. A cacher, an informer or a REST server over it sees the recorded cluster. For tests of controllers: give the code under test a player,
 * step through the log, inject faults from a seed, and look at what it did. A rehearsal (below) is all of that in one: a test of a dozen lines.
 *
 * Under a simulated env the same log, seed and calls give the same run, byte for byte. The format of logs is described in docs/EVENT-LOG.md.
 *
 * All functions may be called from any thread. Those that say so block, and must not be called from an actor's handler.
 */
#ifndef VEDETTE_REPLAY_H
#define VEDETTE_REPLAY_H

#include <vedette/store.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vd_player;

struct vd_player_options {
	size_t	    size;	    /* sizeof(struct vd_player_options) */
	const char *path;	    /* the log, plain or zstd; "-": standard input */
	double	    speed;	    /* times recorded time; 0 (the default): as fast as the watches take it. Records without a time come at once */
	bool	    paused;	    /* nothing is played before vd_player_resume, _step or _seek */
	vd_rev	    start_revision; /* what the log holds up to here is there when the open returns; 0: only the snapshot it begins with */
	bool	    writable;	    /* others may write too: recorded transactions that find their revision taken get the next one */
	uint64_t    seed;	    /* of the faults; 0 is a seed like any other */
	const char *faults;	    /* see below; NULL or "": none */
	int64_t	    history_bytes;  /* older revisions that stay readable; default 64 MiB */
	uint32_t    lead_max;	    /* transactions that the player may be ahead of the slowest open watch; default 4096 */
	uint64_t    rounds;	    /* how often the log is played: at its end what it began with comes back, as one transaction, and it goes on from there at
				     * later revisions. Default 1; 0: for ever */
	bool	    strict;	    /* a log that is torn at its end, or that its writer did not close, ends with VD_BAD_REQUEST. Default: position tells */
};
#define VD_PLAYER_OPTIONS_INIT                                                                                                   \
	{                                                                                                                        \
		.size = sizeof(struct vd_player_options), .history_bytes = (int64_t) 64 << 20, .lead_max = 4096, .rounds = 1     \
	}

/* Faults: words separated by commas, each with a probability between 0 and 1, a duration (10ms, 2s), or a revision.
 *
 *	disconnect=P	after a transaction all watches end with VD_UNAVAILABLE; they can go on from where they were
 *	compact=P	after a transaction what is older is compacted, and all watches are disconnected: those behind find VD_EXPIRED
 *	error=P		after a transaction all watches end with VD_INTERNAL
 *	delay=D		some batches of events come late, by at most D, each watch for itself: kinds overtake each other, no event does within its watch
 *	delay-rate=P	which part of them; default 0.1
 *	stale=D		every batch comes this late: a replica that lags, whose reads show newer revisions than its watches
 *	slow=D		who prints what watches see pauses this long after each event (vedette replay; the player itself does nothing)
 *	cut=P		who serves cuts an event of a watch in its middle, and the connection (vedette replay --listen; the player itself does nothing)
 *	refuse=P	a read or write is refused with VD_UNAVAILABLE before it is made
 *	lose=P		a write is made and its answer lost (VD_UNAVAILABLE)
 *	too-large=P	a read at a revision is answered VD_TOO_LARGE_REVISION
 *	disconnect@R, compact@R, error@R	once, after the transaction of revision R */

/* Reads the snapshot at the beginning, and what start_revision asks for; blocks as long. VD_NOT_FOUND, VD_IO; VD_BAD_REQUEST: no event log, or a broken line (file
 * and line are named); VD_NEWER_FORMAT; VD_INVALID_ARGUMENT: an option, or the word of faults that is not understood; VD_NOMEM. */
VD_API VD_MUST_USE vd_status vd_player_open(const struct vd_env *env, const struct vd_player_options *options, struct vd_player **ret_player,
					    struct vd_error *reterr);
/* Good until the player is closed; closing it as a store does nothing. Writes answer VD_FORBIDDEN unless the player is writable. */
VD_API struct vd_store *vd_player_store(struct vd_player *player);

VD_API void vd_player_pause(struct vd_player *player);
VD_API void vd_player_resume(struct vd_player *player);
/* As vd_player_options.speed, from now on. */
VD_API void vd_player_set_speed(struct vd_player *player, double speed);
/* While paused: the next count transactions, at once. */
VD_API void vd_player_step(struct vd_player *player, uint64_t count);
/* As fast as the watches take it until revision is reached, then on as before. Only forwards: to go back, open another player. */
VD_API void vd_player_seek(struct vd_player *player, vd_rev revision);
/* The same until the first transaction recorded at or after time. */
VD_API void vd_player_seek_time(struct vd_player *player, vd_wall time);

struct vd_player_position {
	vd_rev	 revision;	/* applied, and visible */
	uint64_t transactions;	/* applied */
	uint64_t records;	/* puts and deletes in them */
	vd_wall	 time;		/* recorded time of the last transaction that has one; 0: none had */
	bool	 paused;
	bool	 resting;	/* paused, and everything that was asked for (step, seek) is applied */
	bool	 ended;		/* nothing is left, or error says why nothing more comes */
	uint64_t rounds;	/* that were begun */
	bool	 was_torn;	/* an incomplete transaction or line at the end was left out */
	bool	 was_unclosed;	/* the log has checksums and no closing line: its writer was stopped hard, or lines at its end are missing */
	uint64_t torn_line;	/* where the part that was left out begins */
	uint64_t torn_records, torn_bytes; /* whole records, and bytes of text, that were left out */
	uint64_t disconnects, compactions, errors, delays, refusals, lost_answers, too_large; /* injected, or played from the log */
};
VD_API void vd_player_position_get(const struct vd_player *player, struct vd_player_position *ret_position);
/* Blocks until revision is applied, the log has ended (revision VD_PLAYER_END: only then), or timeout (negative: for ever): VD_OK; VD_NOT_FOUND: ended before;
 * VD_TIMEOUT; the error that ended the log early. Under a simulated env this runs the simulator. */
#define VD_PLAYER_END INT64_MAX
VD_API VD_MUST_USE vd_status vd_player_wait(struct vd_player *player, vd_rev revision, vd_dur timeout, struct vd_error *reterr);

/* Ends the player and its store: watches end with VD_CLOSED and stay valid until their owners closed them. done (may be NULL) when nothing of the player calls any more. */
VD_API void		 vd_player_close(struct vd_player *player, void (*done)(void *arg), void *arg);
VD_API struct vd_player *vd_player_close_wait(struct vd_player *player);

/* ---- Rehearsals: a log, code under test, and what must hold ----
 *
 * A rehearsal is one run of a log in the simulator: an env of its own (one thread, a clock that jumps, an order drawn from the seed), a player, caches over it, and
 * watches that remember what they were given. The code under test takes vd_rehearsal_env, _store or a _cacher in the place of the real ones and cannot tell the
 * difference, except that no time is wasted: hours of back-off pass at once. The same log, seed and code give the same run.
 *
 *	for (seed = 0; seed < 100; seed++) {
 *		options.seed = seed;
 *		vd_rehearsal_open(&options, &rehearsal, &error);		the log stands at its beginning
 *		... start the code under test over vd_rehearsal_store ...
 *		vd_rehearsal_run(rehearsal, VD_PLAYER_END, &error);		it lives through the log
 *		vd_rehearsal_expect_state(rehearsal, "/registry/configmaps/a/b", "{...}");
 *		vd_rehearsal_expect_no_violation(rehearsal);
 *		... close the code under test ...
 *		if (vd_rehearsal_failure(rehearsal)) puts(vd_rehearsal_failure(rehearsal));
 *		vd_rehearsal_close(rehearsal);
 *	}
 *
 * One thread, the same for all calls; actors run inside the calls that say so, and inside every blocking call of vedette under this env (those named _wait). An
 * expectation that does not hold answers false, and its sentence is kept (the first one) and given to options.failed: it depends on no test framework. */

struct vd_cacher;
struct vd_watch_options;
struct vd_rehearsal;

struct vd_rehearsal_options {
	size_t	    size;	    /* sizeof(struct vd_rehearsal_options) */
	const char *path;	    /* the log, as vd_player_options.path */
	uint64_t    seed;	    /* of the faults and of the order in which actors run; 0 is a seed like any other */
	const char *faults;	    /* the words above; NULL or "": none */
	vd_rev	    start_revision; /* as vd_player_options.start_revision */
	bool	    read_only;	    /* writes of the code under test are refused; else they are made (vd_player_options.writable) */
	int64_t	    history_bytes;  /* as vd_player_options.history_bytes */
	double	    speed;	    /* as vd_player_options.speed; default 1: the recorded pace, which costs nothing here. 0: all at once, in bursts */
	vd_dur	    step_delay_max; /* every step of the simulator takes a random time below; default 1 ms: what waits for a timer interleaves with what does not */
	vd_dur	    settle;	    /* simulated time that the code under test gets at the end of each vd_rehearsal_run, for retries and timers; default 60 s */
	vd_log_fn   log;	    /* records of vedette, all levels; NULL: dropped */
	void	   *log_arg;
	void (*failed)(void *arg, const char *sentence); /* an expectation does not hold; may longjmp away, as test frameworks do; NULL: nobody is told */
	void *failed_arg;
};
#define VD_REHEARSAL_OPTIONS_INIT                                                                                                \
	{                                                                                                                        \
		.size = sizeof(struct vd_rehearsal_options), .history_bytes = (int64_t) 64 << 20, .speed = 1,               \
		.step_delay_max = { 1000000 }, .settle = { (int64_t) 60 * 1000000000 }                                                                          \
	}

/* Errors as vd_player_open. */
VD_API VD_MUST_USE vd_status vd_rehearsal_open(const struct vd_rehearsal_options *options, struct vd_rehearsal **ret_rehearsal, struct vd_error *reterr);
/* Closes its watches and caches, the player and the env. What the caller built on them is closed before. NULL is fine; returns NULL. */
VD_API struct vd_rehearsal *vd_rehearsal_close(struct vd_rehearsal *rehearsal);

/* All good until the close. */
VD_API struct vd_env	*vd_rehearsal_env(struct vd_rehearsal *rehearsal);
VD_API struct vd_store	*vd_rehearsal_store(struct vd_rehearsal *rehearsal);
VD_API struct vd_player *vd_rehearsal_player(struct vd_rehearsal *rehearsal); /* paused; run moves it */
/* The cache of the objects under key_prefix ("/registry/pods/"), made by the first call and ready when the call returns; any Kubernetes-shaped JSON. The code
 * under test may use it, or bring its own. Runs the simulator. VD_INVALID_ARGUMENT, VD_NOMEM, VD_TIMEOUT: faults keep it from getting ready. */
VD_API VD_MUST_USE vd_status vd_rehearsal_cacher(struct vd_rehearsal *rehearsal, const char *key_prefix, bool cluster_scoped, struct vd_cacher **ret_cacher,
						 struct vd_error *reterr);
/* Watches like a client that comes back: when its watch ends it opens another from the last revision it saw, or from the present state when that is gone. What it is
 * given is kept, at most VD_REHEARSAL_EVENTS_MAX events, and checked as it comes. cacher: one of this env, which outlives the rehearsal's close when it is not one of
 * vd_rehearsal_cacher. Watches are numbered from 0. Runs the simulator until the watch is open. VD_NOMEM; VD_BAD_REQUEST: a selector. */
#define VD_REHEARSAL_EVENTS_MAX 1000000
VD_API VD_MUST_USE vd_status vd_rehearsal_watch(struct vd_rehearsal *rehearsal, struct vd_cacher *cacher, const struct vd_watch_options *options,
						unsigned *ret_watch, struct vd_error *reterr);
/* Asked whenever the store shows a new revision, from now on; false: a violation of that name. rehearsal_store may be read with what does not block. name is copied. */
VD_API VD_MUST_USE vd_status vd_rehearsal_always(struct vd_rehearsal *rehearsal, const char *name, bool (*holds)(void *arg, struct vd_store *store), void *arg);

/* Plays until revision is applied (VD_PLAYER_END: all), then until caches and watches have seen everything, then lets `settle` pass. VD_OK; VD_NOT_FOUND: the log ends
 * before that revision; VD_TIMEOUT: something did not catch up within an hour of simulated time; the error that ended the log. */
VD_API VD_MUST_USE vd_status vd_rehearsal_run(struct vd_rehearsal *rehearsal, vd_rev revision, struct vd_error *reterr);
/* Time passes; the log stands still. */
VD_API void vd_rehearsal_pass(struct vd_rehearsal *rehearsal, vd_dur time);
/* Time passes until the condition holds, which is asked between steps. False: limit has passed, or nothing can happen any more. */
VD_API bool vd_rehearsal_until(struct vd_rehearsal *rehearsal, bool (*condition)(void *arg), void *arg, vd_dur limit);

/* Among the events of the watch behind the one that was expected last (at first: all), one of this type, with this key (NULL: any) and revision (0: any). Those
 * before it are passed over. type is an enum vd_watch_type. */
VD_API bool vd_rehearsal_expect_event(struct vd_rehearsal *rehearsal, unsigned watch, int type, const char *key, vd_rev revision);
/* There is none behind the one that was expected last. */
VD_API bool vd_rehearsal_expect_no_event(struct vd_rehearsal *rehearsal, unsigned watch, int type, const char *key);
/* The store's present value of key is this JSON, whatever the order of members and the white space; NULL: there is no such key. */
VD_API bool vd_rehearsal_expect_state(struct vd_rehearsal *rehearsal, const char *key, const char *json);
/* Its member at a dotted path (".spec.nodeName") is; NULL: there is no such member. */
VD_API bool vd_rehearsal_expect_member(struct vd_rehearsal *rehearsal, const char *key, const char *path, const char *json);
/* So many keys begin with prefix. */
VD_API bool vd_rehearsal_expect_count(struct vd_rehearsal *rehearsal, const char *prefix, size_t count);
/* Of what was promised nothing was broken: every watch saw each change once, in order, with the right type and previous state, nothing behind a bookmark that
 * belongs before it, and its picture is the cache's list, which is what the store holds; what vd_rehearsal_always was given held always. After vd_rehearsal_run. */
VD_API bool vd_rehearsal_expect_no_violation(struct vd_rehearsal *rehearsal);
/* The sentence of the first expectation that did not hold; NULL: all did. Good until the close. */
VD_API const char *vd_rehearsal_failure(const struct vd_rehearsal *rehearsal);
/* A number that stands for everything its watches saw and for the order in which actors ran: equal for equal runs. */
VD_API uint64_t vd_rehearsal_fingerprint(const struct vd_rehearsal *rehearsal);

#ifdef __cplusplus
}
#endif
#endif
