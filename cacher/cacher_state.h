/* The private state of a Cacher: which thread owns what, and which lock guards what.
 *
 *   watchChan --take--> reflector --apply--> watch cache --match--> watch groups
 *                                            (object store, history, revision)
 *   \_____________________________ one actor: "cacher" _____________________________/
 *
 *   watch groups --mark--> delivery workers (an actor per executor) --> sinks
 *
 * Thread: what it owns, and what it never does
 *   cacher (1)           the reflector, writes to the watch cache, the watch index, the lists of
 *                        subscriptions, the bookmark wheel; never waits for a watcher, calls no sink except
 *                        inline ones
 *   delivery worker      the members, positions and lagging watchers of its subscriptions; calls their
 *   (1 an executor)      sinks; never changes the cache or the index
 *   a pulling thread     acts as the delivery worker of its one watcher while it is inside vd_watcher_next
 *   callers' threads     their lists and snapshots; never run callbacks of other callers
 *
 * Locks, outermost first; no callback is called while one is held:
 *   VDI_LOCK_CACHER         registry: delivery workers, queues of opening and leaving watchers, end of the
 *                           cacher
 *   VDI_LOCK_READY          the ready state
 *   VDI_LOCK_WATCH_CACHE    object store, history, the groups' rings of matches, revision, fresh waiters;
 *                           held for at most 32 events at a time
 *   VDI_LOCK_CACHE_WATCHER  the inbox of one delivery worker: messages to watchers, dirty subscriptions
 *
 * vd_cacher_close stops the reflector, ends all watchers, answers all waiters, then closes the actors. The
 * struct is reference counted and lives until the last watcher and the last outstanding call are gone.
 * vdi_cacher_drain is for callers whose watches must deliver the last events before the close: the cacher
 * continues to run, but each watcher ends when it has delivered all events.
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
struct vdi_subscription;

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
	struct vd_cacher_options    options; /* strings are owned copies */
	size_t			    key_prefix_size;
	int			    trigger_index; /* index in the codec's fields; -1: none */
	struct vd_actor		   *actor;
	struct vdi_cacher_metrics   metrics;

	atomic_bool is_stopping;
	/* Number of fills at a revision that is not above the one before: the store lost revisions, so a
	 * revision of before does not name a place any more. */
	_Atomic uint64_t    set_back;
	struct vdi_watchers watchers; /* with the references and the registry lock of the cacher */

	struct vdi_ready       ready;	    /* has its own lock */
	struct vdi_watch_cache watch_cache; /* has its own lock */
	struct vdi_quarantine  quarantine;  /* has its own lock */

	/* The cacher's actor only. */
	struct vdi_reflector	  reflector;
	struct vdi_watch_index	  watcher_index;
	struct vdi_watch_scopes	  watch_scopes;
	struct vdi_bookmark_wheel bookmarks;
	/* subscriptions with matches of the present batch */
	struct vdi_subscription *batch_subscriptions;
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
	} recent; /* recent events, whose frames are kept */
	struct vdi_consistency	consistency;
	struct vdi_object_count object_count;
	vd_mono			compaction_poll; /* next time to ask the store for its compaction revision */
	uint64_t		visit;		 /* stamp of the event that is being matched */
	bool			is_ending;	 /* every watcher was sent its end */
	bool			is_finishing;
	size_t			capacity_seen; /* last values shown by the gauges */
	uint64_t		increases_seen;
	uint64_t		decreases_seen;

	/* Collectors of metrics, which run one at a time. */
	struct vdi_metrics_collector collector;
	bool			     is_collected;
	uint64_t		     raw_full_seen;
	uint64_t		     result_full_seen;

	/* Registry lock. */
	struct vdi_dump *dumps;
	size_t		 call_count; /* outstanding calls into the store */
	void (*closed)(void *arg);
	void  *closed_arg;
	vd_rev drain_revision;
	void (*drained)(void *arg); /* NULL: not requested, or already called */
	void *drained_arg;
};

static inline struct vd_cacher *vdi_cacher_of(struct vdi_watchers *watchers)
{
	return VDI_CONTAINER_OF(watchers, struct vd_cacher, watchers);
}

struct vd_cacher *vdi_cacher_ref(struct vd_cacher *cacher);
void		  vdi_cacher_unref(struct vd_cacher *cacher);
/* Enclose each asynchronous call into the store; the cacher does not finish while one is outstanding. false:
 * the cacher is stopping, do not call. Any thread. */
VDI_MUST_USE bool vdi_cacher_call_begin(struct vd_cacher *cacher);
void		  vdi_cacher_call_end(struct vd_cacher *cacher);
/* Composes the key of an object. VD_INVALID_ARGUMENT: a namespace for a resource that has none, a missing
 * namespace for one that has them, or a name that is not one segment of a key. */
VDI_MUST_USE vd_status vdi_cacher_key(struct vd_cacher *cacher, struct vd_bytes namespace_name,
				      struct vd_bytes name, char *buffer, struct vd_bytes *ret_key,
				      struct vd_error *reterr);
/* Validates the scope of a list or watch, where namespace and name may be empty. */
VDI_MUST_USE vd_status vdi_cacher_check_scope(struct vd_cacher *cacher, struct vd_bytes namespace_name,
					      struct vd_bytes name, struct vd_error *reterr);
/* Reports error through done, because the call itself cannot return a message. Returns VD_OK. */
vd_status		      vdi_cacher_refuse(vd_object_fn done, void *arg, const struct vd_error *error);
static inline struct vd_bytes vdi_cacher_prefix(const struct vd_cacher *cacher)
{
	return (struct vd_bytes) { cacher->options.key_prefix, cacher->key_prefix_size };
}

#endif
