/* Replaying an event log: a store that lives through what another one lived through.
 *
 * A player is a vd_store whose content follows a recorded log: the same keys, values and revisions, in the same order, at the recorded pace or as fast as its
 * watches take it. A cacher, an informer or a REST server over it sees the recorded cluster. For tests of controllers: give the code under test a player,
 * step through the log, inject faults from a seed, and look at what it did.
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
};
#define VD_PLAYER_OPTIONS_INIT                                                                                                   \
	{                                                                                                                        \
		.size = sizeof(struct vd_player_options), .history_bytes = (int64_t) 64 << 20, .lead_max = 4096                  \
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
	bool	 was_torn;	/* an incomplete transaction at the end was left out */
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

#ifdef __cplusplus
}
#endif
#endif
