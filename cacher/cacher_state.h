/* The inside of a Cacher: who owns what, on which thread, under which lock.
 *
 *   watchChan --take--> reflector --apply--> watch cache (object store, history, revision) --match--> watch groups --mark--> outlets --deliver--> sinks
 *   \______________________ one actor: "cacher" _________________________________________________________/   \____ one actor per runner ____/
 *
 * | Actor / thread      | Owns                                                                            | Never                                |
 * |---------------------|---------------------------------------------------------------------------------|--------------------------------------|
 * | cacher (1)          | reflector, writes to the watch cache, watcher index, lanes' lists, bookmark wheel | waits for a watcher; calls a sink (but inline) |
 * | outlet (1 a runner) | its lanes' members, cursors and lagging watchers; calls sinks                   | changes the cache or the index       |
 * | a pulling thread    | is the outlet of its one watcher while it is inside vd_watcher_next             |                                      |
 * | callers' threads    | their lists and snapshots                                                       | run callbacks of others              |
 *
 * Locks, outermost first; no callback is called with one held:
 *   VDI_LOCK_CACHER         registry: outlets, the queues of opening and leaving watchers, the end of the cacher
 *   VDI_LOCK_READY          the ready state
 *   VDI_LOCK_WATCH_CACHE    object store, history, groups' rings of matches, revision, fresh waiters: held for a batch of at most 32 events
 *   VDI_LOCK_CACHE_WATCHER  one outlet's inbox: messages to watchers, dirty lanes
 *
 * Ends: vd_cacher_close stops the reflector, ends all watchers, answers all waiters, then closes the actors.
 * The struct itself is reference counted and lives until the last watcher and the last call in flight are
 * gone. vdi_cacher_drain comes before it where nobody is to miss the last events: then everything goes on,
 * but a watcher that has taken all there is ends.
 */
#ifndef VDI_CACHER_STATE_H
#define VDI_CACHER_STATE_H

#include <stdatomic.h>

#include <vedette/cacher.h>

#include "base.h"
#include "bookmark.h"
#include "cacher_metrics.h"
#include "lock.h"
#include "periodic.h"
#include "predicate.h"
#include "quarantine.h"
#include "ready.h"
#include "reflector.h"
#include "storage.h"
#include "storage_metrics.h"
#include "watch_cache.h"
#include "watch_index.h"
#include "watch_scopes.h"
#include "watchers.h"

struct vdi_dump;
struct vdi_lane;

#define VDI_COMPACTION_POLL VD_SECONDS(15)
#define VDI_RECENT_EVENTS 256
#define VDI_RECENT_BYTES ((int64_t) 16 << 20)

struct vd_cacher {
	/* Fixed at creation. */
	const struct vd_env	   *env;
	struct vd_store		   *store;
	struct vd_codec		   *codec;
	struct vdi_storage	   *storage;
	struct vdi_storage_metrics *storage_metrics;
	struct vd_cacher_options    options; /* strings are our copies */
	size_t			    key_prefix_size;
	int			    trigger_index; /* of the codec's fields, -1: none */
	struct vd_actor		   *actor;
	struct vdi_cacher_metrics   metrics;

	atomic_bool	    is_stopping;
	struct vdi_watchers watchers; /* with the references and the registry lock of the cacher */

	struct vdi_ready       ready;	    /* has its own lock */
	struct vdi_watch_cache watch_cache; /* has its own lock */
	struct vdi_quarantine  quarantine;  /* has its own lock */

	/* The cacher's actor only. */
	struct vdi_reflector	  reflector;
	struct vdi_watch_index	  watcher_index;
	struct vdi_watch_scopes	  watch_scopes;
	struct vdi_bookmark_wheel bookmarks;
	struct vdi_lane		 *batch_lanes; /* marked while matching the present batch */
	struct vdi_match_buffer {
		struct vdi_group_match *matches;
		size_t			count;
		size_t			capacity;
	} matches;
	struct vdi_recent_events {
		struct vdi_event *events[VDI_RECENT_EVENTS];
		size_t		  start;
		size_t		  count;
		int64_t		  bytes;
		vd_mono		  last;
	} recent; /* their frames are kept */
	struct vdi_consistency	consistency;
	struct vdi_object_count object_count;
	vd_mono			compaction_poll; /* when to ask the store next what it has compacted */
	uint64_t		visit;		 /* stamp of the event that is being matched */
	bool			is_ending;	 /* every watcher was told */
	bool			is_finishing;
	size_t			capacity_seen; /* what the gauges show */
	uint64_t		increases_seen;
	uint64_t		decreases_seen;

	/* Collectors of metrics, which run one at a time. */
	struct vdi_metrics_collector collector;
	bool			     is_collected;
	uint64_t		     raw_full_seen;
	uint64_t		     result_full_seen;

	/* Registry lock. */
	struct vdi_dump *dumps;
	size_t		 call_count; /* calls into the store that have not answered */
	void (*closed)(void *arg);
	void  *closed_arg;
	vd_rev drain_revision;
	void (*drained)(void *arg); /* NULL: nobody wants it drained, or it was called */
	void *drained_arg;
};

static inline struct vd_cacher *vdi_cacher_of(struct vdi_watchers *watchers)
{
	return VDI_CONTAINER_OF(watchers, struct vd_cacher, watchers);
}

struct vd_cacher *vdi_cacher_ref(struct vd_cacher *cacher);
void		  vdi_cacher_unref(struct vd_cacher *cacher);
/* Around each asynchronous call into the store: the cacher does not finish while one is open. false:
 * stopping, do not call. Any thread. */
VDI_MUST_USE bool vdi_cacher_call_begin(struct vd_cacher *cacher);
void		  vdi_cacher_call_end(struct vd_cacher *cacher);
/* The key of an object. VD_INVALID_ARGUMENT: a namespace where the resource has none, or none where it has
 * one; a name that is no segment of a key. */
VDI_MUST_USE vd_status vdi_cacher_key(struct vd_cacher *cacher, struct vd_bytes namespace_name,
				      struct vd_bytes name, char *buffer, struct vd_bytes *ret_key,
				      struct vd_error *reterr);
/* The same for lists and watches, which may leave out either. */
VDI_MUST_USE vd_status vdi_cacher_check_scope(struct vd_cacher *cacher, struct vd_bytes namespace_name,
					      struct vd_bytes name, struct vd_error *reterr);
/* Refuses a call through its callback, because the call itself has no place for a sentence. VD_OK. */
vd_status		      vdi_cacher_refuse(vd_object_fn done, void *arg, const struct vd_error *error);
static inline struct vd_bytes vdi_cacher_prefix(const struct vd_cacher *cacher)
{
	return (struct vd_bytes) { cacher->options.key_prefix, cacher->key_prefix_size };
}

#endif
