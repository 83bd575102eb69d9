/* The storage interface: a versioned key-value store with the semantics of etcd v3.
 *
 * Implementations: the embedded MVCC store (vd_store_open_mvcc), an etcd cluster (vedette/etcd.h), the
 * event log player (vedette/replay.h), encryption at rest (vedette/encryption.h), and the simulator's
 * wrapper that delays, drops and refuses calls. The semantics are those of etcd's KV, Watch and Lease
 * services as etcd's API documentation defines them.
 *
 * Calls are asynchronous. A call that returns an error never calls its callback. A call that returns VD_OK
 * calls its callback exactly once: before it returns, on the calling thread, or later, on a thread of the
 * store. Callbacks must not block and must not close the store; they may start further calls. Do not hold
 * a lock during a call if its callback takes that lock. Requests are borrowed for the call only: the store
 * copies what it keeps.
 *
 * Guarantees of every implementation:
 * - Operations are strictly serializable.
 * - A write is answered only when it is durable.
 * - No read, watch, progress or header shows a revision before that revision is durable.
 * - The events of a watch are ordered, unique, reliable, and atomic: all events of one revision are in one
 *   batch.
 * - A progress batch at revision R follows all events with revisions up to R.
 *
 * All functions may be called from any thread. vd_store_watch_next and vd_store_stream_next allow one
 * caller at a time per watch or stream.
 */
#ifndef VEDETTE_STORE_H
#define VEDETTE_STORE_H

#include <vedette/bytes.h>
#include <vedette/env.h>
#include <vedette/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Key-value records ---- */

/* One version of one key: reference counted, immutable once shared, with key and value in the same block.
 * The embedded store, events and caches share it. A tombstone has version 0, create_rev 0 and no value. */
struct vd_kv {
	uint32_t references;   /* use vd_kv_ref and vd_kv_unref */
	uint32_t sub : 31;     /* index among the changes of its transaction, from 0 */
	uint32_t is_stale : 1; /* stored in another form than a write would use (vedette/encryption.h) */
	vd_rev	 create_rev;
	vd_rev	 mod_rev;
	int64_t	 version; /* 1 at creation, then +1 for each put */
	int64_t	 lease;	  /* lease ID; 0: none */
	uint32_t key_size;
	uint32_t value_size;
	char	 data[1]; /* key, then value */
};

#define VD_KEY_SIZE_MAX 4096
#define VD_VALUE_SIZE_MAX (64u << 20)

/* Return key and value, borrowed from kv. */
static inline struct vd_bytes vd_kv_key(const struct vd_kv *kv)
{
	struct vd_bytes bytes = { kv->data, kv->key_size };
	return bytes;
}
static inline struct vd_bytes vd_kv_value(const struct vd_kv *kv)
{
	struct vd_bytes bytes = { kv->data + kv->key_size, kv->value_size };
	return bytes;
}
/* Creates a record with copies of key and value; revisions, version and lease are 0. The caller owns the
 * only reference and may set the fields until it shares the record. Errors: VD_NOMEM, VD_TOO_BIG. */
VD_API VD_MUST_USE vd_status vd_kv_new(struct vd_bytes key, struct vd_bytes value, struct vd_kv **ret_kv);
/* Takes a reference and returns kv. */
VD_API struct vd_kv *vd_kv_ref(struct vd_kv *kv);
/* Drops one reference; the last one frees the record. kv may be NULL. Returns NULL. */
VD_API struct vd_kv *vd_kv_unref(struct vd_kv *kv);

/* ---- Reads ---- */

/* A read of one key or of an interval, as in etcd. Empty range_end: the single key. A range_end of one
 * zero byte: all keys >= key. Otherwise: the interval [key, range_end), which is empty if range_end <=
 * key. */
struct vd_range_request {
	struct vd_bytes key; /* not empty */
	struct vd_bytes range_end;
	/* 0: current; a future one: VD_TOO_LARGE_REVISION; below the compact revision: VD_EXPIRED */
	vd_rev	revision;
	int64_t limit; /* maximum number of records; 0: no limit */
	bool	count_only;
	bool	keys_only;    /* the store may omit the values */
	bool	serializable; /* may be answered from local state, as etcd's serializable reads */
};

struct vd_range_result {
	vd_rev store_revision; /* current revision of the store, even if the request named an older one */
	/* in key order; borrowed for the callback: take references to keep records */
	struct vd_kv **kvs;
	size_t	       kv_count;
	/* number of keys in the interval at the requested revision, regardless of limit */
	int64_t count;
	bool	more;
};

/* Receives the result of a read. result is NULL unless status is VD_OK. result and error are borrowed for
 * the call. */
typedef void (*vd_range_fn)(void *arg, vd_status status, const struct vd_range_result *result,
			    const struct vd_error *error);

/* ---- Transactions ---- */

enum vd_compare_target {
	VD_COMPARE_VERSION,
	VD_COMPARE_CREATE,
	VD_COMPARE_MOD,
	VD_COMPARE_VALUE,
	VD_COMPARE_LEASE
};
enum vd_compare_result { VD_COMPARE_EQUAL, VD_COMPARE_GREATER, VD_COMPARE_LESS, VD_COMPARE_NOT_EQUAL };

/* A condition on a key, or on all keys of an interval: it holds if each of them compares with the operand
 * as result says. */
struct vd_compare {
	enum vd_compare_target target;
	enum vd_compare_result result;
	struct vd_bytes	       key;
	struct vd_bytes	       range_end;
	int64_t		       number; /* operand of all targets except VD_COMPARE_VALUE */
	struct vd_bytes	       value;
};

enum vd_op_kind { VD_OP_PUT, VD_OP_DELETE, VD_OP_RANGE, VD_OP_TXN };

struct vd_txn_request;

struct vd_op {
	enum vd_op_kind kind;
	struct vd_bytes key;	   /* PUT, DELETE */
	struct vd_bytes range_end; /* DELETE */
	struct vd_bytes value;	   /* PUT */
	/* PUT; 0: none. A put detaches the key from its previous lease, unless ignore_lease is set. */
	int64_t lease;
	/* PUT: keep the stored value; the put still creates a revision and a version */
	bool			     ignore_value;
	bool			     ignore_lease;
	bool			     previous; /* PUT, DELETE: return the previous records */
	struct vd_range_request	     range;    /* RANGE */
	const struct vd_txn_request *txn;      /* TXN: nested */
};

/* A transaction as in etcd: if all compares hold, success runs, otherwise failure. Every compare and the
 * choice use the state before the transaction. An empty list of compares holds. Each list has at most 128
 * entries, and a nested transaction may use only the entries that its parent's longest list leaves. At
 * most 8 levels, and 4096 entries in all lists together. */
struct vd_txn_request {
	const struct vd_compare *compares;
	size_t			 compare_count;
	const struct vd_op	*success;
	size_t			 success_count;
	const struct vd_op	*failure;
	size_t			 failure_count;
};

struct vd_txn_result;

struct vd_op_result {
	enum vd_op_kind kind;
	vd_rev		revision; /* revision in etcd's header of this operation */
	/* in key order, if requested. PUT: none or one; DELETE: the deleted records */
	struct vd_kv		  **previous;
	size_t			    previous_count;
	int64_t			    deleted; /* DELETE */
	struct vd_range_result	    range;   /* RANGE */
	const struct vd_txn_result *txn;     /* TXN */
};

struct vd_txn_result {
	/* new revision if the transaction changed anything, otherwise the current one */
	vd_rev			   revision;
	bool			   succeeded;
	const struct vd_op_result *results; /* one for each operation of the list that ran */
	size_t			   result_count;
};

/* Receives the result of a transaction. result is NULL unless status is VD_OK. result and error are
 * borrowed for the call. */
typedef void (*vd_txn_fn)(void *arg, vd_status status, const struct vd_txn_result *result,
			  const struct vd_error *error);

/* ---- Leases, compaction, status ---- */

struct vd_lease_result {
	int64_t id;
	/* remaining seconds. An unknown lease: 0 in the answer to keep-alive, -1 in that to time-to-live. */
	int64_t		       ttl_s;
	int64_t		       granted_ttl_s;
	vd_rev		       revision;
	const struct vd_bytes *keys; /* answer to time-to-live with keys; bytewise order */
	size_t		       key_count;
};
/* Receives the result of a lease operation. result is NULL unless status is VD_OK. result and error are
 * borrowed for the call. */
typedef void (*vd_lease_fn)(void *arg, vd_status status, const struct vd_lease_result *result,
			    const struct vd_error *error);

/* Receives the IDs of all leases, in ascending order of their remaining time; ids is borrowed for the
 * call. revision: current revision of the store. */
typedef void (*vd_lease_list_fn)(void *arg, vd_status status, const int64_t *ids, size_t count,
				 vd_rev revision);

/* Receives the outcome of an operation. revision: current revision of the store. */
typedef void (*vd_done_fn)(void *arg, vd_status status, vd_rev revision, const struct vd_error *error);

struct vd_store_status {
	vd_rev	current;    /* newest visible revision; visible implies durable */
	vd_rev	compacted;  /* compact revision; -1: never compacted */
	int64_t size_bytes; /* -1: unknown */
	int64_t key_count;  /* -1: unknown */
	/* The store answers progress requests, so that a cache can serve consistent reads. */
	bool	 progress;
	bool	 remote;      /* The data is in another process; caches share no records with the store. */
	bool	 unreachable; /* remote and currently not answering */
	uint64_t id;	      /* stable identity across restarts, such as the etcd cluster ID; 0: unknown */
	/* Changes after this revision are retained in this process even if the store has compacted them; 0:
	 * none beyond those after `compacted`. */
	vd_rev kept;
	vd_rev history; /* Watches that start after this revision are served from memory; 0: none are. */
};

/* ---- Watch ---- */

struct vd_store_watch;

/* A fault in the messages that a store received from its peer for a watch. The watch still keeps its
 * guarantees, because the store drops or ignores the message. */
enum vd_watch_fault_kind {
	VD_FAULT_REPEATED, /* an event received before, or older than the start of the watch */
	VD_FAULT_ORDER,	   /* an event after another one of a higher revision */
	VD_FAULT_PREVIOUS, /* The requested previous record is missing; allowed only if it was compacted. */
	VD_FAULT_PROGRESS, /* progress at a lower revision than an earlier event or progress */
	VD_FAULT_PROTOCOL, /* a message that the peer must not send here, or a key outside the watch */
};
struct vd_watch_fault {
	enum vd_watch_fault_kind kind;
	vd_rev			 revision;
	struct vd_bytes		 key;  /* empty: no single key */
	const char		*text; /* explanation for people */
};
/* For programs that verify a peer. fault is called on a thread of the store until vd_store_watch_close has
 * returned. It must not block or call the store. The fault and its slices are borrowed for the call. */
struct vd_watch_observer {
	void (*fault)(void *arg, const struct vd_watch_fault *fault);
	void *arg;
};

struct vd_store_watch_request {
	struct vd_bytes key;
	struct vd_bytes range_end;
	/* first revision to deliver; 0: begin with the first revision after the registration */
	vd_rev start_revision;
	bool   previous; /* events include the previous record */
	bool   progress; /* periodic progress batches while idle */
	bool   no_put;
	bool   no_delete;
	/* Edge-triggered: called after vd_store_watch_next has answered VD_AGAIN, when there may be
	 * something to take. Called on any thread, until vd_store_watch_close has returned. Must not block
	 * or call the store; typically vd_actor_wake. */
	void (*ready)(void *arg);
	void *ready_arg;
	/* Borrowed until vd_store_watch_close has returned. NULL: faults are not reported. Stores without
	 * a peer report none. */
	const struct vd_watch_observer *observer;
};

struct vd_store_event {
	bool	      is_delete;
	struct vd_kv *kv; /* the new record; deleted: a tombstone with key and mod_rev only */
	/* the record before; NULL if the key was created, if not requested, or if compacted */
	struct vd_kv *previous;
};
/* Returns true if the event is a put of a key that did not exist before. */
static inline bool vd_store_event_is_create(const struct vd_store_event *event)
{
	return !event->is_delete && event->kv->create_rev == event->kv->mod_rev;
}

/* Events of whole revisions, in order. event_count 0: progress; all events up to revision were delivered. */
struct vd_store_batch {
	vd_rev revision; /* revision of the last event, or of the progress */
	/* borrowed until the next call for this watch; take references to keep records */
	const struct vd_store_event *events;
	size_t			     event_count;
};

/* ---- Long reads ---- */

/* A range read at one revision and delivered in parts, for ranges too long for one answer. The caller
 * pulls parts as it pulls batches of a watch; not pulling is back-pressure. */
struct vd_store_stream;

struct vd_store_stream_request {
	struct vd_range_request range; /* copied */
	/* as in vd_store_watch_request: after VD_AGAIN, on any thread, until vd_store_stream_close has
	 * returned */
	void (*ready)(void *arg);
	void *ready_arg;
};

/* A part may be empty. */
struct vd_store_part {
	/* in key order; borrowed until the next call for this stream */
	struct vd_kv **kvs;
	size_t	       kv_count;
	/* number of keys in the interval, regardless of limit; may be 0 before the last part */
	int64_t count;
	bool	more; /* the limit cut the range; set in the last part only */
	bool	last;
	vd_rev	read_revision; /* revision that was read, the same in every part */
};

/* ---- The store ---- */

struct vd_store;

struct vd_store_ops {
	size_t size; /* sizeof(struct vd_store_ops) */
	vd_status (*range)(struct vd_store *store, const struct vd_range_request *request, vd_range_fn done,
			   void *arg);
	vd_status (*txn)(struct vd_store *store, const struct vd_txn_request *request, vd_txn_fn done,
			 void *arg);
	vd_status (*compact)(struct vd_store *store, vd_rev revision, bool physical, vd_done_fn done,
			     void *arg);
	vd_status (*lease_grant)(struct vd_store *store, int64_t id, int64_t ttl_s, vd_lease_fn done,
				 void *arg);
	vd_status (*lease_revoke)(struct vd_store *store, int64_t id, vd_done_fn done, void *arg);
	vd_status (*lease_keep_alive)(struct vd_store *store, int64_t id, vd_lease_fn done, void *arg);
	vd_status (*lease_time_to_live)(struct vd_store *store, int64_t id, bool keys, vd_lease_fn done,
					void *arg);
	vd_status (*watch)(struct vd_store *store, const struct vd_store_watch_request *request,
			   struct vd_store_watch **ret_watch, struct vd_error *reterr);
	vd_status (*watch_next)(struct vd_store_watch *watch, size_t event_count_max,
				struct vd_store_batch *ret_batch, struct vd_error *reterr);
	vd_status (*watch_progress)(struct vd_store_watch *watch);
	void (*watch_close)(struct vd_store_watch *watch);
	vd_status (*status)(struct vd_store *store, struct vd_store_status *ret_status);
	void (*close)(struct vd_store *store, void (*done)(void *arg), void *arg);

	/* Optional operations. NULL, or beyond size: not supported. */
	vd_status (*stream)(struct vd_store *store, const struct vd_store_stream_request *request,
			    struct vd_store_stream **ret_stream);
	vd_status (*stream_next)(struct vd_store_stream *stream, struct vd_store_part *ret_part,
				 struct vd_error *reterr);
	void (*stream_close)(struct vd_store_stream *stream);
	void (*shutdown)(struct vd_store *store);
	/* Writes the store's state as JSON members, such as ",\"a\":1", for people. */
	void (*dump)(struct vd_store *store, void (*write)(void *arg, struct vd_bytes json), void *arg);
	vd_status (*lease_list)(struct vd_store *store, vd_lease_list_fn done, void *arg);
};

/* First member of every implementation, as are struct vd_store_watch and struct vd_store_stream. */
struct vd_store {
	const struct vd_store_ops *ops;
	const struct vd_env	  *env;
};
struct vd_store_watch {
	struct vd_store *store;
	/* Revision of the store when the watch was registered; 0: unknown. A watch without a start
	 * revision begins with the next revision. */
	vd_rev opened;
};
struct vd_store_stream {
	struct vd_store *store;
};

/* Checked entry points: each validates its arguments (VD_INVALID_ARGUMENT with an explanation is never the
 * peer's fault) and calls the implementation. None blocks unless its name ends in _wait. */

/* Reads a key or an interval. Errors, through the callback: VD_TOO_LARGE_REVISION, VD_EXPIRED, VD_NOMEM,
 * VD_UNAVAILABLE, VD_CLOSED. */
VD_API VD_MUST_USE vd_status vd_store_range(struct vd_store *store, const struct vd_range_request *request,
					    vd_range_fn done, void *arg);
/* Runs a transaction. Further errors: VD_DUPLICATE_KEY; VD_TOO_BIG; VD_NOT_FOUND (ignore_value of an
 * absent key); VD_LEASE_NOT_FOUND; VD_NO_SPACE; VD_IO; VD_FULL (too many submissions in flight: slow
 * down). VD_TOO_BIG also refuses, in the embedded store, a writing transaction whose compares and ranges
 * read more records than the number of keys plus 262,144. After VD_UNAVAILABLE or VD_TIMEOUT the
 * transaction may or may not have been applied; in an etcd store also after VD_NO_SPACE. */
VD_API VD_MUST_USE vd_status vd_store_txn(struct vd_store *store, const struct vd_txn_request *request,
					  vd_txn_fn done, void *arg);
/* Compacts the history up to revision. physical: the answer waits until the records are removed.
 * VD_EXPIRED: revision is at or below the compact revision; VD_TOO_LARGE_REVISION: revision is above the
 * current one. */
VD_API VD_MUST_USE vd_status vd_store_compact(struct vd_store *store, vd_rev revision, bool physical,
					      vd_done_fn done, void *arg);
/* Grants a lease. id 0: the store chooses. A ttl_s below the store's minimum (2 s) is raised to it. Error:
 * VD_LEASE_EXISTS. */
VD_API VD_MUST_USE vd_status vd_store_lease_grant(struct vd_store *store, int64_t id, int64_t ttl_s,
						  vd_lease_fn done, void *arg);
/* Revokes a lease and deletes its keys in one revision. Error: VD_LEASE_NOT_FOUND. */
VD_API VD_MUST_USE vd_status vd_store_lease_revoke(struct vd_store *store, int64_t id, vd_done_fn done,
						   void *arg);
/* Renews a lease once: its remaining time becomes its granted TTL. An unknown or expired lease is no error:
 * ttl_s is 0. */
VD_API VD_MUST_USE vd_status vd_store_lease_keep_alive(struct vd_store *store, int64_t id, vd_lease_fn done,
						       void *arg);
/* Reads the remaining time and, if keys, the keys of a lease. An unknown lease is no error: ttl_s is -1. */
VD_API VD_MUST_USE vd_status vd_store_lease_time_to_live(struct vd_store *store, int64_t id, bool keys,
							 vd_lease_fn done, void *arg);
/* Lists all leases. VD_UNSUPPORTED: the store does not offer this. */
VD_API VD_MUST_USE vd_status vd_store_lease_list(struct vd_store *store, vd_lease_list_fn done, void *arg);

/* Opens a watch; never blocks. The caller owns the watch and closes it. The first vd_store_watch_next
 * reports a start revision below the compact revision as VD_EXPIRED (error->compacted is set); all later
 * failures are reported there, too. */
VD_API VD_MUST_USE vd_status vd_store_watch_open(struct vd_store		     *store,
						 const struct vd_store_watch_request *request,
						 struct vd_store_watch **ret_watch, struct vd_error *reterr);
/* Takes the next batch: at least one whole revision, and further ones up to about event_count_max events.
 * VD_AGAIN: nothing now, ready() will be called. Any other status ends the watch: VD_EXPIRED,
 * VD_UNAVAILABLE, VD_CLOSED, VD_NOMEM. Never blocks; one caller at a time. Not calling it is
 * back-pressure: the store keeps a cursor, or stops reading from its peer. */
VD_API VD_MUST_USE vd_status vd_store_watch_next(struct vd_store_watch *watch, size_t event_count_max,
						 struct vd_store_batch *ret_batch, struct vd_error *reterr);
/* Requests one progress batch; never blocks. vd_store_watch_next delivers it when the watch is synced,
 * after all events up to its revision. */
VD_API vd_status vd_store_watch_progress(struct vd_store_watch *watch);
/* Closes the watch. No ready() call after return. watch may be NULL. Must not be called inside ready(). */
VD_API void vd_store_watch_close(struct vd_store_watch *watch);

/* Opens a stream; never blocks. VD_UNSUPPORTED: this store, or its peer according to an earlier answer,
 * supports only vd_store_range; read in pages. */
VD_API VD_MUST_USE vd_status vd_store_stream_open(struct vd_store		       *store,
						  const struct vd_store_stream_request *request,
						  struct vd_store_stream	      **ret_stream);
/* Takes the next part, in key order. VD_AGAIN: nothing now, ready() will be called. Any other status ends
 * the stream: VD_CLOSED after the last part, VD_UNSUPPORTED before the first one (read in pages),
 * VD_EXPIRED, VD_TOO_LARGE_REVISION, VD_UNAVAILABLE, VD_TIMEOUT, VD_NOMEM. Never blocks; one caller at a
 * time. */
VD_API VD_MUST_USE vd_status vd_store_stream_next(struct vd_store_stream *stream,
						  struct vd_store_part *ret_part, struct vd_error *reterr);
/* Closes the stream, whether or not it has ended. No ready() call after return. stream may be NULL. Must
 * not be called inside ready(). */
VD_API void vd_store_stream_close(struct vd_store_stream *stream);

/* Reads the state that is known in this process; does not ask a peer and does not block. */
VD_API VD_MUST_USE vd_status vd_store_status_get(struct vd_store *store, struct vd_store_status *ret_status);
/* Begins the shutdown of a remote store: refuses new calls with VD_CLOSED, gives up outstanding ones (they
 * answer VD_CLOSED or their result), and ends watches. The store stays valid, so that its users can be
 * closed without waiting for an unreachable peer. A store without a peer ignores this call. */
VD_API void vd_store_shutdown(struct vd_store *store);
/* Writes the state of the store and its peers as members of a JSON object: calls write on this thread,
 * with a comma before each member; calls nothing if the store has no such state. */
VD_API void vd_store_dump(struct vd_store *store, void (*write)(void *arg, struct vd_bytes json), void *arg);
/* Closes the store. All cachers and servers over it must be gone, and it must be closed once: otherwise
 * the program aborts with a message that names them. Outstanding calls answer VD_CLOSED or their result;
 * watches end with VD_CLOSED and stay valid until their owners close them, before or after done. done (may
 * be NULL) is called when the store's own memory is freed. */
VD_API void vd_store_close(struct vd_store *store, void (*done)(void *arg), void *arg);
/* Closes the store and blocks until done. Returns NULL. Aborts the program inside an actor's handler
 * (vedette/env.h). */
VD_API struct vd_store *vd_store_close_wait(struct vd_store *store);

/* ---- Blocking wrappers ----
 *
 * They are refused in an actor's handler and in callbacks of the store (vedette/env.h). Errors as for
 * vd_store_range and vd_store_txn. */

/* Reads one key. The caller owns a reference of *ret_kv. Error: VD_NOT_FOUND. */
VD_API VD_MUST_USE vd_status vd_store_get_wait(struct vd_store *store, struct vd_bytes key,
					       struct vd_kv **ret_kv, struct vd_error *reterr);
/* Puts one key without a lease. ret_revision may be NULL. */
VD_API VD_MUST_USE vd_status vd_store_put_wait(struct vd_store *store, struct vd_bytes key,
					       struct vd_bytes value, vd_rev *ret_revision,
					       struct vd_error *reterr);
/* Deletes a key or, with range_end, an interval. *ret_deleted: number of deleted keys, 0 if there was none;
 * ret_deleted and ret_revision may be NULL. */
VD_API VD_MUST_USE vd_status vd_store_delete_wait(struct vd_store *store, struct vd_bytes key,
						  struct vd_bytes range_end, int64_t *ret_deleted,
						  vd_rev *ret_revision, struct vd_error *reterr);

/* ---- The embedded MVCC store ---- */

struct vd_mvcc_options {
	size_t size; /* sizeof(struct vd_mvcc_options) */
	/* NULL: memory only. Created if absent (its parents are not). An empty store takes about 5 MiB
	 * there; a store of n bytes preallocates n / 4, at most 160 MiB. */
	const char *data_dir;
	/* Maximum size of retained older revisions, in bytes; default 256 MiB; 0: no limit by size.
	 * Compaction advances in steps of 1/32 of it (at least 4 KiB), and always keeps the last step. */
	int64_t history_bytes;
	/* Minimum time that older revisions are retained, within history_bytes; default 10 min; 0: no
	 * automatic compaction. */
	vd_dur history_window;
	/* size of the data directory above which writes answer VD_NO_SPACE, in bytes; 0: none */
	int64_t quota_bytes;
	/* maximum number of writes waiting for durability; default 16384; more: VD_FULL */
	unsigned in_flight_max;
	bool	 no_sync;	    /* for tests and benchmarks: a write is answered before it is durable */
	vd_dur	 progress_interval; /* of watches that requested progress; default 10 min; 0: never */
};
#define VD_MVCC_OPTIONS_INIT                                                                                 \
	{                                                                                                    \
		sizeof(struct vd_mvcc_options), 0, (int64_t) 256 << 20, { (int64_t) 600 * 1000000000 }, 0,   \
			16384, false,                                                                        \
		{                                                                                            \
			(int64_t) 600 * 1000000000                                                           \
		}                                                                                            \
	}

/* Opens or creates the store; recovers from any crash. Blocks while it reads: about one second per million
 * keys. The caller owns the store and closes it. Errors:
 * - VD_LOCKED: another process has it open.
 * - VD_NEWER_FORMAT: a newer version of vedette wrote it.
 * - VD_CORRUPT: damage that recovery must not hide; the message names file and offset, and no file was
 *   changed.
 * - VD_NO_SPACE: no space for a new store; an existing one opens on a full disk.
 * - VD_IO, VD_NOMEM.
 *
 * On a full disk, puts and lease grants answer VD_NO_SPACE. Deletes, compaction, revocation and expiry of
 * leases continue, from reserved space. When space is available again, all operations work without a
 * reopen. */
VD_API VD_MUST_USE vd_status vd_store_open_mvcc(const struct vd_env	     *env,
						const struct vd_mvcc_options *options,
						struct vd_store **ret_store, struct vd_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
