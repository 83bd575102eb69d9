/* Named mutexes and condition variables.
 *
 * Every lock of vedette has a name from the list below, which is also the lock order: a thread that holds a
 * lock may take only locks further down. Two locks of one name never nest. Builds without NDEBUG check order
 * and holder and stop at the first violation, so a possible deadlock is found even if it does not occur.
 */
#ifndef VDI_LOCK_H
#define VDI_LOCK_H

#include <pthread.h>

#include "base.h"
#include "preempt.h"

/* X(enum, text). Outermost first. */
#define VDI_LOCK_MAP(X)                                                                                      \
	X(VDI_LOCK_COLLECTORS,                                                                               \
	  "collectors") /* held while collectors of metrics run, which take locks of their own */            \
	X(VDI_LOCK_SERVER, "server")                                                                         \
	X(VDI_LOCK_OWNER_GRAPH, "owner_graph")                                                               \
	X(VDI_LOCK_KUBE_INFORMER, "kube_informer")                                                           \
	X(VDI_LOCK_KUBE_PARTS, "kube_parts")                                                                 \
	X(VDI_LOCK_KUBE, "kube") /* the health of a Kubernetes client */                                     \
	X(VDI_LOCK_CONTROLLER, "controller")                                                                 \
	X(VDI_LOCK_CACHER, "cacher")                                                                         \
	X(VDI_LOCK_READY, "ready")                                                                           \
	X(VDI_LOCK_WATCH_CACHE, "watch_cache")                                                               \
	X(VDI_LOCK_OBJECT_STORE, "object_store")                                                             \
	X(VDI_LOCK_HISTORY, "history")                                                                       \
	X(VDI_LOCK_WATCHER_INDEX, "watcher_index")                                                           \
	X(VDI_LOCK_CACHE_WATCHER, "cache_watcher")                                                           \
	X(VDI_LOCK_PROGRESS, "progress")                                                                     \
	X(VDI_LOCK_WATCHCHAN, "watchchan")                                                                   \
	X(VDI_LOCK_DECODE, "decode")                                                                         \
	X(VDI_LOCK_STORE, "store")                                                                           \
	X(VDI_LOCK_ETCD_WATCH, "etcd_watch")                                                                 \
	X(VDI_LOCK_ETCD_WATCH_SET, "etcd_watch_set")                                                         \
	X(VDI_LOCK_ETCD_LEASE, "etcd_lease")                                                                 \
	X(VDI_LOCK_ETCD_CLIENT, "etcd_client")                                                               \
	X(VDI_LOCK_ETCD_CHANNEL, "etcd_channel") /* the transport below the client */                        \
	X(VDI_LOCK_MVCC, "mvcc")                                                                             \
	X(VDI_LOCK_WATCHABLE, "watchable")                                                                   \
	X(VDI_LOCK_JOURNAL, "journal")                                                                       \
	X(VDI_LOCK_CHECKPOINT, "checkpoint")                                                                 \
	X(VDI_LOCK_SNAPSHOT, "snapshot")                                                                     \
	X(VDI_LOCK_RPC_SERVER, "rpc_server")                                                                 \
	X(VDI_LOCK_RPC_STREAM, "rpc_stream")                                                                 \
	X(VDI_LOCK_RPC, "rpc")                                                                               \
	X(VDI_LOCK_QUEUE, "queue")                                                                           \
	X(VDI_LOCK_WAIT, "wait")                                                                             \
	X(VDI_LOCK_ACTOR, "actor")                                                                           \
	X(VDI_LOCK_LOOP, "loop")                                                                             \
	X(VDI_LOCK_POOL, "pool")                                                                             \
	X(VDI_LOCK_METRICS, "metrics")                                                                       \
	X(VDI_LOCK_LEAF, "leaf") /* no other lock is taken under it */

enum vdi_lock_name {
#define VDI_LOCK_ENUM(name, text) name,
	VDI_LOCK_MAP(VDI_LOCK_ENUM)
#undef VDI_LOCK_ENUM
		VDI_LOCK_COUNT
};

struct vdi_lock {
	pthread_mutex_t	   mutex;
	enum vdi_lock_name name;
};

/* For locks in static storage. */
#define VDI_LOCK_STATIC(lock_name)                                                                           \
	{                                                                                                    \
		PTHREAD_MUTEX_INITIALIZER, lock_name                                                         \
	}
VDI_SHARED void vdi_lock_init(struct vdi_lock *lock, enum vdi_lock_name name);
VDI_SHARED void vdi_lock_fini(struct vdi_lock *lock);
VDI_SHARED void vdi_lock_acquire(struct vdi_lock *lock);
VDI_SHARED void vdi_lock_release(struct vdi_lock *lock);
/* For functions whose name ends in _locked. Without NDEBUG it stops the program unless the calling thread
 * holds the lock. */
void vdi_lock_assert_held(const struct vdi_lock *lock);
/* Without NDEBUG: from now on one of `one_in` releases (0: none) stalls the thread for up to 2 ms, if it
 * holds no other lock. For tests of code after a release; VEDETTE_LOCK_STALLS sets it for a whole process. */
void vdi_lock_stall(unsigned one_in);
/* Name of the lock, as in the list. */
const char *vdi_lock_name(enum vdi_lock_name name);
/* Writes the names of the locks that this thread holds, outermost first and separated by spaces, into text;
 * for the panic path. */
void vdi_lock_describe_held(char *text, size_t size);

/* The locks held by one context, outermost first. Tracked without NDEBUG, and on the thread of a simulator
 * with preemption, which has one per context. */
#define VDI_LOCK_HELD_MAX 16

struct vdi_lock_held {
	const struct vdi_lock *locks[VDI_LOCK_HELD_MAX];
	unsigned	       count;
};

/* The calling thread's locks. */
struct vdi_lock_held *vdi_lock_held(void);

struct vdi_condition {
	pthread_cond_t condition;
};

void vdi_condition_init(struct vdi_condition *condition);
void vdi_condition_fini(struct vdi_condition *condition);
void vdi_condition_signal(struct vdi_condition *condition);
void vdi_condition_broadcast(struct vdi_condition *condition);
/* The lock must be the innermost one that the thread holds. May wake spuriously. */
void vdi_condition_wait(struct vdi_condition *condition, struct vdi_lock *lock);
/* False: due (of the operating system's clock) has passed. VD_NEVER: no time limit. */
bool vdi_condition_wait_until(struct vdi_condition *condition, struct vdi_lock *lock, vd_mono due);

#endif
