/* etcd as a store: internal structures, shared by etcd_store*.c, etcd_probe.c and etcd_compactor.c.
 *
 * In addition to the client (vedette/etcd.h), the store keeps the state of the servers for its users: the
 * newest known revision and compaction, whether the servers support progress requests, and whether etcd is
 * reachable. The maintenance actor does the background work: it probes the endpoints, compacts, follows
 * compactions of other servers, and sends a health check if no response has arrived for a while.
 *
 * - Users' threads call range, txn, ... of vd_etcd. Responses run on_... on the client's actor, which calls
 *   the user's callback and updates struct vdi_etcd_server_state and the health.
 * - The maintenance actor calls vd_etcd for probe, compactor and health check, with responses in the same
 *   way.
 *
 * Ending: shutdown (rejects new calls; the client is closed when no thread uses it any more) -> close (waits
 * for the end of the client, then of the maintenance actor).
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

/* As kubernetes/apiserver pkg/storage/etcd3/compact.go. */
#define VDI_ETCD_COMPACT_KEY "compact_rev_key"

#define VDI_ETCD_PROBE_BACKOFF_FIRST VD_MS(10) /* as upstream, doubled up to VDI_ETCD_PROBE_BACKOFF_MAX */
#define VDI_ETCD_PROBE_BACKOFF_MAX VD_SECONDS(15)
/* For the database's size, as upstream, and for the version of servers that may be replaced. */
#define VDI_ETCD_PROBE_PERIOD VD_SECONDS(30)
#define VDI_ETCD_PROBE_TIMEOUT VD_SECONDS(5)
#define VDI_ETCD_COMPACTOR_RETRY VD_SECONDS(1)	 /* as upstream */
#define VDI_ETCD_PROGRESS_RETRY_FIRST VD_MS(100) /* as upstream's period of progress requests */
#define VDI_ETCD_PROGRESS_RETRY_MAX VD_SECONDS(1)
#define VDI_ETCD_SILENCE_MAX VD_SECONDS(5)	    /* without a response; then a health check is sent */
#define VDI_ETCD_SIGN_OF_LIFE_TIMEOUT VD_SECONDS(2) /* as upstream */
#define VDI_ETCD_SIGN_OF_LIFE_PACE VD_MS(100)	    /* between health checks that are answered at once */
#define VDI_ETCD_STREAM_RETRY VD_SECONDS(600)	    /* after Unimplemented, as upstream */

/* The known state of the servers. Watches also have a reference, so it may outlive the store. */
struct vdi_etcd_server_state {
	atomic_uint	 references;
	_Atomic int64_t	 current;
	_Atomic int64_t	 compacted;		 /* -1: none */
	_Atomic uint64_t cluster_id;		 /* 0: no response yet */
	_Atomic int64_t	 txns_begun, txns_ended; /* ended: current has the revision, the caller may not yet */
	atomic_bool	 progress;
	struct vdi_usage usage; /* of the store; counts its watches */
	/* watches that requested progress and have not got it yet; [1]: on the stream of the past
	 * (etcd_store_watch.c) */
	_Atomic int64_t progress_wanted[2];
	atomic_uint	progress_asks; /* increases with each request */

	/* Under lock. */
	struct vdi_lock	 lock;
	struct vd_actor *maintenance; /* woken when progress is wanted; NULL: it is ending */
};
struct vdi_etcd_server_state *vdi_etcd_server_state_unref(struct vdi_etcd_server_state *server_state);
static inline void	      vdi_etcd_server_state_raise(_Atomic int64_t *place, int64_t value)
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
	bool	is_asked;  /* a call is in progress */
	bool	was_asked; /* at least one call has ended */
	bool	is_known;
	bool	supports;
	char	version[32];
	int64_t size_bytes;
};

struct vdi_etcd_probe {
	struct vdi_etcd_store	       *store;
	struct vdi_etcd_probe_endpoint *endpoints;
	size_t				count;
	/* One endpoint does not support it: off for good. Under the store's lock. */
	bool is_off;
};

VDI_MUST_USE vd_status vdi_etcd_probe_init(struct vdi_etcd_probe *probe, struct vdi_etcd_store *store,
					   const char *const *endpoints, size_t count);
void		       vdi_etcd_probe_fini(struct vdi_etcd_probe *probe);
/* Probes endpoints that are due; returns the time of the next run. Keeper only. */
vd_mono vdi_etcd_probe_run(struct vdi_etcd_probe *probe);
/* Returns true if every endpoint was probed at least once. Under the store's lock. */
bool vdi_etcd_probe_is_settled_locked(const struct vdi_etcd_probe *probe);
/* Returns true from 3.4.31 on, except for [3.5.0, 3.5.13), as upstream; false for an invalid version. */
bool vdi_etcd_version_has_progress(const char *version);

/* ---- The compactor ---- */

struct vdi_etcd_compactor {
	struct vdi_etcd_store *store;
	vd_dur		       interval; /* 0: only follows other servers */

	/* The maintenance actor only. */
	vd_mono		      due;	/* next round */
	int64_t		      version;	/* local logical time */
	vd_rev		      previous; /* revision of the last round */
	vd_rev		      claimed;	/* revision of the compaction in the current round */
	vd_mono		      follow_at;
	struct vd_etcd_watch *watch;

	/* Under the store's lock: results of calls. */
	enum { VDI_COMPACTOR_WAITS, VDI_COMPACTOR_CLAIMS, VDI_COMPACTOR_COMPACTS } step;
	bool		is_answered; /* the call of step has ended */
	vd_status	status;
	struct vd_error error;
	bool		is_won;
	vd_rev		revision; /* of the transaction's header */
	int64_t		stored_version;
	vd_rev		stored_compacted;
	bool		is_reading; /* reads the key before it is watched */
	bool		is_read;
	vd_status	read_status;
	vd_rev		read_revision;

	uint64_t rounds, compactions; /* under the store's lock */
};

void	vdi_etcd_compactor_init(struct vdi_etcd_compactor *compactor, struct vdi_etcd_store *store,
				vd_dur interval);
vd_mono vdi_etcd_compactor_run(struct vdi_etcd_compactor *compactor);
/* Stops the compactor before the client is closed. Keeper only. */
void vdi_etcd_compactor_stop(struct vdi_etcd_compactor *compactor);
/* Returns the revision in a value of the key; 0: none. */
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
	const struct vd_env	     *env;
	struct vd_etcd		     *client;
	struct vdi_etcd_server_state *server_state;
	struct vd_actor		     *maintenance;
	vd_dur			      call_timeout;
	struct vdi_metric	     *calls[VDI_ETCD_CALL_COUNT];
	struct vdi_metric	     *call_errors[VDI_ETCD_CALL_COUNT];
	struct vdi_metric	     *reachable_metric;

	struct vdi_etcd_probe	  probe;
	struct vdi_etcd_compactor compactor;

	/* Keeper only. A server drops a progress request while a watch of its stream is behind, so it is
	 * repeated. */
	vd_mono	 progress_at; /* VD_NEVER: no watch waits for progress */
	vd_dur	 progress_backoff;
	vd_mono	 ask_next; /* earliest time of the next health check */
	unsigned progress_asks_seen;

	/* threads that use client now (not calls that wait for a response), and a flag for shutdown */
	_Atomic uint64_t client_users;
	_Atomic int64_t	 in_flight;	     /* calls that wait for a response */
	_Atomic int64_t	 heard_ns;	     /* monotonic time of the last response; 0: never */
	_Atomic int64_t	 size_bytes;	     /* -1: unknown */
	_Atomic int64_t	 no_stream_until_ns; /* monotonic time */
	atomic_bool	 is_unreachable;

	/* Under lock. */
	struct vdi_lock lock;
	bool		is_asking;	  /* health check in progress */
	bool		client_is_unused; /* shut down, and no thread uses the client */
	bool		is_client_closing;
	bool		is_client_gone;
	bool		is_closing;
	void (*closed)(void *arg);
	void		*closed_arg;
	struct vd_error	 failure;   /* last error that means etcd is unreachable; code VD_OK: healthy */
	struct vdi_wait *starter;   /* thread that waits for the first response */
	bool		 has_begun; /* the first health check was answered */
	vd_status	 refusal;   /* not VD_OK: a repetition is useless */
	struct vd_error	 refusal_error;
};

/* Makes a store. Takes over client on VD_OK only; NULL: vdi_etcd_store_begin follows, or
 * vdi_etcd_store_discard. endpoints: for the probe; copied. */
VDI_MUST_USE vd_status vdi_etcd_store_new(const struct vd_env *env, struct vd_etcd *client,
					  const struct vd_etcd_store_options *options,
					  const char *const *endpoints, size_t endpoint_count,
					  struct vdi_etcd_store **ret_store, struct vd_error *reterr);
/* Sets the client of the store, and starts the store. */
void vdi_etcd_store_begin(struct vdi_etcd_store *store, struct vd_etcd *client);
/* Frees a store that never had a client. Does not block; vd_env_free may follow at once. */
void vdi_etcd_store_discard(struct vdi_etcd_store *store);
/* Waits until etcd has answered and every endpoint was asked for its version, or etcd has refused, or
 * timeout. Blocks. The error names endpoints and causes. */
VDI_MUST_USE vd_status vdi_etcd_store_wait(struct vdi_etcd_store *store, vd_dur timeout,
					   struct vd_error *reterr);

/* Begins the use of the client, until leave; false: the store is shut down. */
bool vdi_etcd_store_enter(struct vdi_etcd_store *store);
void vdi_etcd_store_leave(struct vdi_etcd_store *store);
bool vdi_etcd_store_is_shut_down(const struct vdi_etcd_store *store);

/* Notes the facts in a response's header. Any thread. */
void vdi_etcd_store_observe(struct vdi_etcd_store *store, const struct vd_etcd_header *header);
/* Notes the facts in a failure, and converts it to the store's error. requested: revision of the request, or
 * 0. Returns ret_error->code. */
vd_status vdi_etcd_store_failed(struct vdi_etcd_store *store, const struct vd_etcd_error *error,
				vd_rev requested, struct vd_error *ret_error);
/* Copies the error with a message that is complete by itself: it names the endpoint that refused, if
 * known. */
void vdi_etcd_store_describe(const struct vd_etcd_error *error, struct vd_error *ret_error);
/* Fills in the details that every store gives: compacted and current of VD_EXPIRED and
 * VD_TOO_LARGE_REVISION. */
void vdi_etcd_server_state_fill(struct vdi_etcd_server_state *server_state, vd_rev requested,
				struct vd_error *error);
void vdi_etcd_store_count(struct vdi_etcd_store *store, enum vdi_etcd_operation operation, bool failed);

/* etcd_store_watch.c */
extern const struct vd_etcd_pair
	  vdi_etcd_store_history_stream; /* metadata of the stream for watches that start in the past */
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
/* etcd_store_maintenance.c */
/* The handler of the maintenance actor. */
void vdi_etcd_store_maintenance_run(void *store);
/* Frees a store without client and maintenance actor. */
void vdi_etcd_store_free(struct vdi_etcd_store *store);
/* etcd_store_dump.c */
void vdi_etcd_store_dump(struct vd_store *store, void (*write)(void *arg, struct vd_bytes json), void *arg);

#endif
