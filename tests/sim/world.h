/* The simulated world: one env, one disk, the embedded store on it, a store that injects faults around that,
 * two cachers, writers, viewers, readers and the oracle. All random choices come from the seed; the seed also
 * selects the kinds of faults in this world (swarm testing). */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <vedette/cacher.h>

#include "actor_sim.h"
#include "disk_sim.h"
#include "marks.h"
#include "oracle.h"
#include "rand.h"
#include "store_chaos.h"

#define SIM_PODS "/registry/pods/"
#define SIM_WIDGETS "/registry/widgets/"
#define SIM_CACHERS 2
#define SIM_EXECUTORS 2

struct writers;
struct viewers;
struct readers;

/* The kinds of faults, and their amounts. */
struct sim_swarm {
	bool crashes, clean_restarts, remote, compactions, closes, stalls, disk_trouble, leases, multi_key;
	struct chaos_options chaos;
	vd_dur		     step_delay;
	int64_t		     history_bytes; /* of the cachers */
	int64_t		     store_history_bytes;
	vd_dur		     store_history_window;
	int64_t		     segment_size;
	int64_t		     lag_bytes_max;
	uint32_t	     watcher_count_max;
	unsigned	     decode_workers;
	unsigned	     in_flight_max;
	unsigned	     writers_max;
	unsigned	     namespaces, names; /* size of the keyspace */
};

struct sim_cacher {
	struct vd_cacher	*cacher; /* NULL while the world restarts */
	struct vd_cacher_options options;
	bool			 is_closed;
	uint64_t		 relists, resumes; /* at the last check */
	uint64_t		 changes_seen;
	/* The state some time ago, for "a slow client never delays others". */
	struct {
		vd_mono time;
		vd_rev	revision;
	} stood[64];
	unsigned stood_next;
};

struct world {
	uint64_t	 seed;
	uint64_t	 writes_wanted;
	unsigned	 preemptions; /* of the simulator; 0: turns are atomic */
	vd_dur		 stall_max;   /* of its threads; 0: none */
	bool		 is_verbose;
	int64_t		 live_before;
	struct vdi_rand	 rand;
	struct sim_swarm swarm;

	struct vd_env	 *env;
	struct vdi_disk	 *disk;
	struct vd_store	 *store; /* the embedded one */
	struct vd_store	 *chaos;
	struct vd_codec	 *codec;
	struct sim_cacher cachers[SIM_CACHERS];
	/* two of them, so that watchers live on different ones */
	struct vd_executor executors[SIM_EXECUTORS];

	struct oracle	oracle;
	struct writers *writers;
	struct viewers *viewers;
	struct readers *readers;

	bool		 is_down;    /* the store is away or the world restarts */
	bool		 is_closing; /* the cachers are being closed */
	bool		 is_calm;    /* no more faults */
	bool		 crash_armed;
	bool		 trouble_armed;	 /* a disk fault that is not a crash */
	vd_rev		 acknowledged;	 /* newest revision acknowledged to a writer */
	vd_rev		 compacted_max;	 /* the store may be compacted up to here */
	vd_rev		 compacted_seen; /* highest one checked */
	vd_mono		 calm_since;
	vd_rev		 moved_revision; /* when the store last made progress */
	vd_mono		 moved_at;
	uint64_t	 restarts;
	unsigned	 certain;	 /* faults of every world that have happened so far */
	uint64_t	 refused_ranges; /* at the last check */
	struct sim_marks marks;
};

/* Runs one seed to its end; the process exits if a promise is broken. Returns the schedule hash. Adds to
 * marks. */
uint64_t world_run_seed(uint64_t seed, uint64_t writes, unsigned preemptions, bool is_verbose,
			struct sim_marks *marks);

/* [0, below). */
uint64_t roll(struct world *world, uint64_t below);
/* True in `permille` of 1000 cases. */
bool	chance(struct world *world, unsigned permille);
vd_mono world_now(const struct world *world);
/* Lets at most `by` of simulated time pass. */
void world_run(struct world *world, vd_dur by);

/* Asks the store for its compacted revision, because it also compacts by itself. */
void world_note_compaction(struct world *world);

/* ---- Parts of a run: world.c, world_restart.c, world_end.c ---- */

void world_run_steps(struct world *world, uint64_t steps);
/* Checks limits and counts marks. */
void world_look_at_cachers(struct world *world);
void world_check_compaction(struct world *world);
void world_open_store(struct world *world);
void world_open_cachers(struct world *world);
void world_close_cachers(struct world *world);
void world_restart(struct world *world, bool is_crash);
/* Ends the faults and waits until everyone has caught up. */
void world_calm_down(struct world *world);
/* Waits until all leases have ended. */
void world_wait_for_leases(struct world *world);
void world_final_reads(struct world *world);
/* Closes viewers, cachers and the store in a random order. */
void world_close_down(struct world *world);

/* ---- Preemption ----
 *
 * Handlers may be suspended in the middle, and so may the test's own calls of the library marked with
 * SIM_PREEMPTIBLE: callbacks may arrive before such a call returns. The test's data has no locks, so each
 * callback begins with SIM_ATOMIC.
 */
struct sim_atomic {
	struct world *world;
	bool	      before;
};

struct sim_atomic sim_atomic_begin(struct world *world);
void		  sim_atomic_end(struct sim_atomic *atomic);
#define SIM_ATOMIC(world)                                                                                    \
	struct sim_atomic sim_atomic_ __attribute__((cleanup(sim_atomic_end), unused)) =                     \
		sim_atomic_begin(world)
#define SIM_PREEMPTIBLE(world, call)                                                                         \
	do {                                                                                                 \
		bool sim_before_ = vdi_sim_set_atomic((world)->env, false);                                  \
		call;                                                                                        \
		(void) vdi_sim_set_atomic((world)->env, sim_before_);                                        \
	} while (0)

/* Adds a line to the report. */
void sim_trace(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A promise is broken: prints it, the last events and the command that repeats the run; ends the process. */
void sim_fail(struct world *world, const char *property, const char *format, ...)
	__attribute__((format(printf, 3, 4), noreturn));

#endif
