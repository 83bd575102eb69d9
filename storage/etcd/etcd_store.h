/* etcd as a store: the inside, shared by etcd_store*.c, etcd_probe.c and etcd_compactor.c.
 *
 * The store adds to the client (vedette/etcd.h) what its users want to know without asking: the newest
 * revision and compaction heard of, whether the servers can prove progress, whether anybody answers. One
 * actor, the keeper, does what nobody asked for: it probes the endpoints, compacts, follows the compactions
 * of others, and asks for a sign of life when it has heard nothing for a while.
 *
 * 	users' threads --range, txn, ...--> vd_etcd --answers--> on_... (the client's actor) --> the user's callback
 * 	                                                              \--> known, health  <-- keeper: probe, compactor, sign of life
 *
 * Ending: shut (no new call; the client is closed when the last one that is inside has left) -> close (waits
 * for the client's end, then the keeper's).
 */
#ifndef VDI_ETCD_STORE_H
#define VDI_ETCD_STORE_H

#include <stdatomic.h>
#include <vedette/etcd.h>

#include "env.h"
#include "lock.h"
#include "metrics.h"
#include "usage.h"
#include "wait.h"

/* kubernetes/apiserver pkg/storage/etcd3/compact.go; R-171. */
#define VDI_ETCD_COMPACT_KEY "compact_rev_key"

#define VDI_ETCD_PROBE_BACKOFF_FIRST VD_MS(10) /* */
#define VDI_ETCD_PROBE_BACKOFF_MAX VD_SECONDS(15)
#define VDI_ETCD_PROBE_PERIOD                                                                                \
	VD_SECONDS(                                                                                          \
		30) /* of the database's size (R-148), and of the version of servers that may be replaced */
#define VDI_ETCD_PROBE_TIMEOUT VD_SECONDS(5)
#define VDI_ETCD_COMPACTOR_RETRY VD_SECONDS(1)	 /* */
#define VDI_ETCD_PROGRESS_RETRY_FIRST VD_MS(100) /* */
#define VDI_ETCD_PROGRESS_RETRY_MAX VD_SECONDS(1)
#define VDI_ETCD_SILENCE_MAX VD_SECONDS(5)	    /* then a sign of life is asked for */
#define VDI_ETCD_SIGN_OF_LIFE_TIMEOUT VD_SECONDS(2) /* */
#define VDI_ETCD_STREAM_RETRY VD_SECONDS(600)	    /* after Unimplemented, R-158 */

/* What is known of the servers. Watches hold it too, so it may outlive the store. */
struct vdi_etcd_known {
	atomic_uint	 references;
	_Atomic int64_t	 current;
	_Atomic int64_t	 compacted;  /* -1: none */
	_Atomic uint64_t cluster_id; /* 0: nobody has answered */
	_Atomic int64_t	 txns_begun,
		txns_ended; /* ended: current knows the revision, the caller may not yet */
	atomic_bool	 progress;
	struct vdi_usage usage; /* of the store; counts the watches */
	/* watches that asked for progress and were not told yet; [1]: on the stream of the past
	 * (etcd_store_watch.c) */
	_Atomic int64_t progress_wanted[2];
	atomic_uint	progress_asks; /* grows with every wish */

	/* Under lock. */
	struct vdi_lock	 lock;
	struct vd_actor *keeper; /* to be woken when progress is wanted; NULL: it ends */
};
struct vdi_etcd_known *vdi_etcd_known_unref(struct vdi_etcd_known *known);
static inline void     vdi_etcd_known_raise(_Atomic int64_t *place, int64_t value)
{
	int64_t seen = atomic_load_explicit(place, memory_order_relaxed);

	while (seen < value && !atomic_compare_exchange_weak_explicit(
				       place, &seen, value, memory_order_release, memory_order_relaxed))
		;
}

struct vdi_etcd_store;

/* ---- The probe: versions and database sizes ---- */

struct vdi_etcd_probe_endpoint {
	struct vdi_etcd_probe *probe;
	char		      *endpoint;

	/* Under the store's lock. */
	vd_mono due;
	vd_dur	backoff;
	bool	is_asked;  /* a call is under way */
	bool	was_asked; /* at least one has ended */
	bool	is_known;
	bool	supports;
	char	version[32];
	int64_t size_bytes;
};

struct vdi_etcd_probe {
	struct vdi_etcd_store	       *store;
	struct vdi_etcd_probe_endpoint *endpoints;
	size_t				count;
	bool				is_off; /* one endpoint cannot: for good. Under the store's lock */
};

VDI_MUST_USE vd_status vdi_etcd_probe_init(struct vdi_etcd_probe *probe, struct vdi_etcd_store *store,
					   const char *const *endpoints, size_t count);
void		       vdi_etcd_probe_fini(struct vdi_etcd_probe *probe);
/* The keeper: asks who is due; when it wants to run again. */
vd_mono vdi_etcd_probe_run(struct vdi_etcd_probe *probe);
/* Every endpoint was asked once. Under the store's lock. */
bool vdi_etcd_probe_is_settled_locked(const struct vdi_etcd_probe *probe);
/* 3.4.31 and later, but not [3.5.0, 3.5.13); what is no version cannot. */
bool vdi_etcd_version_has_progress(const char *version);

/* ---- The compactor ---- */

struct vdi_etcd_compactor {
	struct vdi_etcd_store *store;
	vd_dur		       interval; /* 0: only follows others */

	/* The keeper only. */
	vd_mono		      due;	/* the next round */
	int64_t		      version;	/* the local logical time */
	vd_rev		      previous; /* revision of the last round */
	vd_rev		      claimed;	/* what the present round compacts at */
	vd_mono		      follow_at;
	struct vd_etcd_watch *watch;

	/* Under the store's lock: what a call brought. */
	enum { VDI_COMPACTOR_WAITS, VDI_COMPACTOR_CLAIMS, VDI_COMPACTOR_COMPACTS } step;
	bool		is_answered; /* the call of step */
	vd_status	status;
	struct vd_error error;
	bool		is_won;
	vd_rev		revision; /* of the transaction's header */
	int64_t		stored_version;
	vd_rev		stored_compacted;
	bool		is_reading; /* the key, before it is watched */
	bool		is_read;
	vd_status	read_status;
	vd_rev		read_revision;

	uint64_t rounds, compactions; /* under the store's lock */
};

void	vdi_etcd_compactor_init(struct vdi_etcd_compactor *compactor, struct vdi_etcd_store *store,
				vd_dur interval);
vd_mono vdi_etcd_compactor_run(struct vdi_etcd_compactor *compactor);
/* The keeper, before the client is closed. */
void vdi_etcd_compactor_stop(struct vdi_etcd_compactor *compactor);
/* The number in a value of the key; 0: none. */
vd_rev vdi_etcd_compactor_parse(struct vd_bytes value);

/* ---- The store ---- */

enum vdi_etcd_operation {
	VDI_ETCD_CALL_RANGE,
	VDI_ETCD_CALL_STREAM,
	VDI_ETCD_CALL_TXN,
	VDI_ETCD_CALL_COMPACT,
	VDI_ETCD_CALL_LEASE,
	VDI_ETCD_CALL_WATCH,
	VDI_ETCD_CALL_COUNT
};

struct vdi_etcd_store {
	struct vd_store base;

	/* Fixed at creation. */
	const struct vd_env   *env;
	struct vd_etcd	      *client;
	struct vdi_etcd_known *known;
	struct vd_actor	      *keeper;
	vd_dur		       call_timeout;
	struct vdi_metric     *calls[VDI_ETCD_CALL_COUNT];
	struct vdi_metric     *call_errors[VDI_ETCD_CALL_COUNT];
	struct vdi_metric     *reachable_metric;

	struct vdi_etcd_probe	  probe;
	struct vdi_etcd_compactor compactor;

	/* The keeper only: a server that is not caught up drops a request for progress (E-317), so it is
	 * asked again. */
	vd_mono	 progress_at; /* VD_NEVER: nobody waits */
	vd_dur	 progress_backoff;
	unsigned progress_asks_seen;

	/* who uses client at this moment (not who waits for an answer), and whether it is shut */
	_Atomic uint64_t gate;
	_Atomic int64_t	 in_flight;	     /* calls that wait for an answer */
	_Atomic int64_t	 heard_ns;	     /* mono time of the last answer; 0: never */
	_Atomic int64_t	 size_bytes;	     /* -1: not known */
	_Atomic int64_t	 no_stream_until_ns; /* mono */
	atomic_bool	 is_unreachable;

	/* Under lock. */
	struct vdi_lock lock;
	bool		is_asking; /* for a sign of life */
	bool		is_empty;  /* the gate is shut and nobody is inside */
	bool		is_client_closing;
	bool		is_client_gone;
	bool		is_closing;
	void (*closed)(void *arg);
	void		*closed_arg;
	struct vd_error	 failure;   /* the last one that says that nobody answers; code VD_OK: all is well */
	struct vdi_wait *starter;   /* who waits for the first answer */
	bool		 has_begun; /* somebody has answered the first question */
	vd_status	 refusal;   /* not VD_OK: asking again is of no use */
	struct vd_error	 refusal_error;
};

/* Takes over client with VD_OK only; NULL: vdi_etcd_store_begin follows, or vdi_etcd_store_discard.
 * endpoints: for the probe; copied. */
VDI_MUST_USE vd_status vdi_etcd_store_new(const struct vd_env *env, struct vd_etcd *client,
					  const struct vd_etcd_store_options *options,
					  const char *const *endpoints, size_t endpoint_count,
					  struct vdi_etcd_store **ret_store, struct vd_error *reterr);
/* Gives the store its client, and starts it. */
void vdi_etcd_store_begin(struct vdi_etcd_store *store, struct vd_etcd *client);
/* Frees a store that never had a client. Does not block; a vd_env_free may follow at once. */
void vdi_etcd_store_discard(struct vdi_etcd_store *store);
/* Until somebody has answered and every endpoint was asked for its version, or has refused us, or timeout.
 * Blocks. The error names endpoints and causes. */
VDI_MUST_USE vd_status vdi_etcd_store_wait(struct vdi_etcd_store *store, vd_dur timeout,
					   struct vd_error *reterr);

/* Whether the client may be used until leave; false: the store is shut. */
bool vdi_etcd_store_enter(struct vdi_etcd_store *store);
void vdi_etcd_store_leave(struct vdi_etcd_store *store);
bool vdi_etcd_store_is_shut(const struct vdi_etcd_store *store);

/* An answer came: what it says about the cluster. Any thread. */
void vdi_etcd_store_heard(struct vdi_etcd_store *store, const struct vd_etcd_header *header);
/* A failure came: remembers what it says about the cluster, and makes of it what a store's caller expects.
 * requested: the revision asked for, or 0. Returns ret_error->code. */
vd_status vdi_etcd_store_failed(struct vdi_etcd_store *store, const struct vd_etcd_error *error,
				vd_rev requested, struct vd_error *ret_error);
/* The error in words that need no further context: who refused, when somebody did. */
void vdi_etcd_store_describe(const struct vd_etcd_error *error, struct vd_error *ret_error);
/* The details every store gives: compacted and current of VD_EXPIRED and VD_TOO_LARGE_REVISION. */
void vdi_etcd_known_fill(struct vdi_etcd_known *known, vd_rev requested, struct vd_error *error);
void vdi_etcd_store_count(struct vdi_etcd_store *store, enum vdi_etcd_operation operation, bool failed);

/* etcd_store_watch.c */
extern const struct vd_etcd_pair
	  vdi_etcd_store_past; /* metadata of the stream of watches that begin in the past */
vd_status vdi_etcd_store_watch(struct vd_store *store, const struct vd_store_watch_request *request,
			       struct vd_store_watch **ret_watch, struct vd_error *reterr);
vd_status vdi_etcd_store_watch_next(struct vd_store_watch *watch, size_t event_count_max,
				    struct vd_store_batch *ret_batch, struct vd_error *reterr);
vd_status vdi_etcd_store_watch_progress(struct vd_store_watch *watch);
void	  vdi_etcd_store_watch_close(struct vd_store_watch *watch);
/* etcd_store_stream.c */
vd_status vdi_etcd_store_stream(struct vd_store *store, const struct vd_store_stream_request *request,
				struct vd_store_stream **ret_stream);
vd_status vdi_etcd_store_stream_next(struct vd_store_stream *stream, struct vd_store_part *ret_part,
				     struct vd_error *reterr);
void	  vdi_etcd_store_stream_close(struct vd_store_stream *stream);
/* etcd_store_dump.c */
void vdi_etcd_store_dump(struct vd_store *store, void (*write)(void *arg, struct vd_bytes json), void *arg);

#endif
