/* A store between the code under test and a real store that delays, cuts, refuses and loses answers, as a
 * network and a failing peer do.
 *
 * It never falsifies: an answer that arrives is the inner store's, and the events of a watch are the inner
 * watch's up to the cut. A refused transaction was either not made, or made and not answered (VD_UNAVAILABLE
 * in both cases), as over a real network.
 *
 * For one thread: the simulator's.
 */
#ifndef STORE_CHAOS_H
#define STORE_CHAOS_H

#include <vedette/store.h>

#include "base.h"

/* Probabilities in 1/1000. */
struct chaos_options {
	unsigned delay;	       /* a call is issued later... */
	vd_dur	 delay_max;    /* ...by at most this */
	unsigned refuse;       /* a call fails before it is made */
	unsigned lose_answer;  /* a transaction is made and its answer lost */
	unsigned cut;	       /* per watch_next: the watch breaks with VD_UNAVAILABLE */
	unsigned stall;	       /* the notification of an event is delayed, by at most delay_max */
	unsigned refuse_watch; /* a watch is not opened */
	bool	 no_progress;  /* it cannot prove progress, as an etcd before 3.4.31 */
};

/* Counters of injected faults, so that a test can prove that they happened. */
struct chaos_marks {
	uint64_t delays, refusals, lost_answers, cuts, stalls, refused_watches;
	uint64_t refused_ranges; /* of the refusals */
};

struct vd_store *chaos_store_new(const struct vd_env *env, struct vd_store *inner,
				 const struct chaos_options *options);
/* All zero: a calm sea. */
void			  chaos_set(struct vd_store *chaos, const struct chaos_options *options);
const struct chaos_marks *chaos_marks(struct vd_store *chaos);
/* The peer fails (NULL): its watches break, calls are refused; or it returns as another store. From now on
 * the end of the inner store (VD_CLOSED, VD_IO) is reported as VD_UNAVAILABLE, as over a network. The old
 * store may be closed afterwards. */
void chaos_set_inner(struct vd_store *chaos, struct vd_store *inner);
/* Replaces the inner store without hiding anything, for users that were closed before. Nothing may be
 * open. */
void chaos_replace_inner(struct vd_store *chaos, struct vd_store *inner);
/* Breaks every watch now. */
void chaos_cut(struct vd_store *chaos);
/* Calls that were delayed and not yet issued. */
size_t chaos_pending(struct vd_store *chaos);
/* After everything that used it was closed; the inner store is left alone. */
void chaos_store_free(struct vd_store *chaos);

#endif
