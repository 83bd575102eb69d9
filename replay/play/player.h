/* The private state of a player: player.c reads the log and applies it, player_store.c is the store that
 * clients see; player_open.c opens and closes it, player_control.c has its controls.
 *
 *   player (actor, blocking: it reads a file)   log -> transactions -> inner store, at the right time, within
 *                                               a bounded lead over the watches
 *   clock (actor)                               wakes watches whose batch was held back
 *   inner store's writer                        reports applied transactions: position, cuts, waiters
 *   callers                                     read through player_store.c
 *
 * One lock ("store") guards all shared state; the inner store is called without it.
 */
#ifndef VDI_PLAYER_H
#define VDI_PLAYER_H

#include <stdatomic.h>
#include <sys/queue.h>
#include <vedette/replay.h>

#include "fault_plan.h"
#include "forward_store.h"
#include "lock.h"
#include "log_steps.h"
#include "rand.h"
#include "timer.h"
#include "usage.h"
#include "wait.h"

/* Transactions submitted and not yet applied. */
#define VDI_PLAYER_FLIGHTS_MAX 1024
#define VDI_PLAYER_FLIGHT_BYTES_MAX ((uint64_t) 8 << 20)
/* Maximum wait for watches to be opened again after a cut: a reflector backs off for about a second. */
#define VDI_PLAYER_AWAIT VD_SECONDS(3)
/* Maximum lead over the slowest watch in bytes, besides lead_max. Half of the history is also a limit,
 * because the history must not be compacted while a watch reads it. */
#define VDI_PLAYER_LEAD_BYTES_MAX ((uint64_t) 32 << 20)
#define VDI_PLAYER_LEAD_LIMIT 65536u

/* A submitted transaction. It is kept after it was applied, until its place in the ring is reused, to compute
 * how far watches are behind. */
struct vdi_flight {
	vd_rev			  revision;	/* recorded; the real one once applied */
	uint64_t		  bytes_before; /* submitted before it */
	uint64_t		  bytes;
	uint64_t		  records;
	vd_wall			  time;
	bool			  is_transaction; /* false: only a progress */
	bool			  has_fault;
	enum vdi_fault_point_kind fault; /* happens after it */
};

struct vdi_player_watch {
	struct vd_store_watch  base; /* first */
	struct vd_store_watch *inner;
	struct vd_player      *player;
	void (*ready)(void *arg);
	void	       *ready_arg;
	struct vdi_rand rand; /* reader only */

	/* It has read all its events and was not notified of more, so it is not behind the applied
	 * transactions. */
	_Atomic bool is_waiting;

	/* Under the lock. */
	LIST_ENTRY(vdi_player_watch) node;
	vd_rev		 position; /* everything up to it was delivered */
	uint64_t	 cut_seen;
	bool		 has_ended;
	bool		 is_holding;
	vd_mono		 held_until;
	struct vdi_timer timer;

	/* Reader only. */
	struct vd_store_batch held;
	vd_status	      end;
	char		      end_text[160];
};

struct vdi_player_waiter {
	SLIST_ENTRY(vdi_player_waiter) node;
	struct vdi_wait wait;
	vd_rev		revision;
};

struct vd_player {
	/* First: the store that clients see, in front of the inner one that is written from the log. */
	struct vdi_forward_store front;

	/* Fixed at the start. */
	const struct vd_env *env;
	struct vd_actor	    *actor;
	struct vd_actor	    *clock;
	struct vdi_usage     usage;
	bool		     writable;
	bool		     strict;
	uint32_t	     lead_max;
	uint64_t	     lead_bytes_max;
	uint64_t	     seed;

	_Atomic uint32_t
		references; /* until closed 1, and 1 for each watch and each call with a changed answer */
	struct vdi_rand_shared call_rand;

	/* Owned by the actor. */
	char		     *path;
	struct vdi_log_steps *steps;
	vdi_codec_of_fn	      codec_of; /* for the steps of later rounds */
	void		     *codec_of_arg;
	uint64_t	      rounds_left; /* UINT64_MAX: unlimited */
	uint64_t round_transactions;	   /* of the current round; a log without any is not repeated */
	vd_rev	 offset;		   /* added to recorded revisions */
	struct vdi_log_change	 *reset;   /* changes that restore the initial state */
	size_t			  reset_count, reset_capacity;
	struct vdi_log_step	  held; /* first step of a round that begins without a snapshot */
	bool			  has_held, is_between; /* between rounds: everything must be applied first */
	struct vdi_log_step	  step;			/* next step */
	bool			  has_step;
	struct vdi_rand		  rand;
	struct vdi_replay_change *changes;
	size_t			  change_capacity;

	struct vdi_lock lock;
	/* Under lock. */
	vd_wall		      pace_recorded; /* recorded time at pace_mono; 0: unknown */
	vd_mono		      pace_mono;
	struct vdi_fault_plan faults; /* random numbers are drawn by the actor */
	double		      speed;
	bool		      is_paused;
	uint64_t	      steps_allowed;
	vd_rev		      seek_revision;
	vd_wall		      seek_time;
	vd_rev		      stop_revision; /* pauses here; 0: nowhere */
	bool		      is_closing;
	struct vdi_flight    *flights; /* ring of flight_capacity, a power of two */
	uint32_t	      flight_capacity;
	uint64_t	      submitted, applied; /* total numbers */
	/* Position of the slowest watch when it was last checked: the first flight not delivered to it. */
	uint64_t		  unread;
	uint64_t		  submitted_bytes, applied_bytes;
	bool			  waits_for_watches;
	bool			  log_ended;
	struct vd_error		  error; /* code VD_OK: none */
	struct vd_player_progress progress;
	LIST_HEAD(, vdi_player_watch) watches;
	struct vdi_timer_heap timers;
	uint64_t	      opened; /* total number of opened watches */
	uint64_t	      cut;    /* number of the last cut */
	vd_rev		      cut_revision;
	vd_status	      cut_status;
	char		      cut_text[160];
	bool	 has_cut; /* a submitted flight ends in a cut; nothing is submitted until it has happened */
	char	 fault_text[96]; /* of that cut, if it is a recorded error */
	unsigned awaited;	 /* watches ended by a cut and not opened again */
	vd_mono	 await_until;
	unsigned blackout;   /* transactions until the compaction; meanwhile no watch can be opened */
	bool	 compacting; /* true until the compaction is done */
	SLIST_HEAD(, vdi_player_waiter) waiters;

	void (*close_done)(void *arg);
	void *close_done_arg;
};

extern const struct vd_store_ops vdi_player_store_ops;

static inline struct vd_player *vdi_player_of(struct vd_store *store)
{
	return (struct vd_player *) store;
}

void vdi_player_ref(struct vd_player *player);
void vdi_player_unref(struct vd_player *player);
/* Returns true with this probability. */
static inline bool vdi_player_dice(uint64_t random, double probability)
{
	return probability > 0 && (double) (random >> 11) * 0x1p-53 < probability;
}
/* Plays at its pace up to and including revision, and pauses there. 0: cancels this. */
void vdi_player_play_until(struct vd_player *player, vd_rev revision);
/* Calls vdi_log_steps_prepare for steps read from now on. The simulator's thread only; the log must not be
 * read concurrently. */
void vdi_player_prepare(struct vd_player *player, vdi_codec_of_fn codec_of, void *arg);
/* The handlers of the two actors. */
void vdi_player_run(void *player);
void vdi_player_clock(void *player);
/* Signals the waiters whose wait is over. */
void vdi_player_wake_waiters_locked(struct vd_player *player);
/* Notes how the log ended. VD_BAD_REQUEST: torn or unclosed, and the player is strict. */
VDI_MUST_USE vd_status vdi_player_take_tail_locked(struct vd_player *player, struct vd_error *reterr);

/* ---- Rounds (player_loop.c); on the actor ---- */

/* Opens the log again, after its end when everything is applied. The first step may be the one that restores
 * the initial state. Errors: as vdi_log_steps_open. */
VDI_MUST_USE vd_status vdi_player_begin_round(struct vd_player *player, struct vd_error *reterr);
/* Returns the next step of the round, with its revisions offset. As vdi_log_steps_next. */
VDI_MUST_USE vd_status vdi_player_next_step(struct vd_player *player, struct vd_error *reterr);
void		       vdi_player_rounds_fini(struct vd_player *player);

#endif
