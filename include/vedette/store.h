/* The storage seam: what vedette needs from a versioned key-value store, with etcd v3's semantics.
 *
 * Implementations: the embedded MVCC store (vd_store_open_mvcc below), an etcd cluster, the event-log player, and the
 * simulator's wrapper that delays, cuts and refuses. Semantics are those of etcd's KV, Watch and Lease services (etcd API
 * documentation; rules E-4xx, E-3xx, E-5xx).
 *
 * Asynchronous by contract. A call that returns an error never calls its callback. A call that returned VD_OK calls it exactly once:
 * either before it returns, on the calling thread, or later on a thread of the store. Callbacks must not block and must not
 * free the store; they may start further calls. Do not hold a lock that the callback takes. Requests are borrowed for the call only: the store
 * copies what it keeps.
 *
 * Guarantees every implementation gives: operations are strictly serializable; a write is answered only when it is durable; nothing
 * (read, watch, progress, header) shows a revision before it is durable; the events of a watch are ordered, unique, reliable, and atomic
 * (all events of one revision in one batch); a progress batch at R follows all events <= R.
 *
 * Thread safety: all functions may be called from any thread, except vd_store_watch_next, which has one caller at a time.
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

/* One version of one key: reference counted, immutable once shared, key and value in the same block. Memory store, events and caches
 * share it. A tombstone has version 0, create_rev 0 and no value. */
struct vd_kv {
	uint32_t references; /* use vd_kv_ref/vd_kv_unref */
	uint32_t sub : 31;    /* position inside its transaction, from 0 */
	uint32_t is_stale : 1; /* stored in a form that a write would not use (vedette/encryption.h) */
	vd_rev	 create_rev;
	vd_rev	 mod_rev;
	int64_t	 version;    /* 1 at creation, +1 per put */
	int64_t	 lease;	     /* 0: none */
	uint32_t key_size;
	uint32_t value_size;
	char	 data[1];    /* key, then value */
};

#define VD_KEY_SIZE_MAX 4096
#define VD_VALUE_SIZE_MAX (64u << 20)

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
/* Revisions, version and lease are 0; the caller owns it alone and may set them until it shares it. VD_NOMEM, VD_TOO_BIG. */
VD_API VD_MUST_USE vd_status vd_kv_new(struct vd_bytes key, struct vd_bytes value, struct vd_kv **ret_kv);
VD_API struct vd_kv *vd_kv_ref(struct vd_kv *kv);
/* NULL is fine. Returns NULL. */
VD_API struct vd_kv *vd_kv_unref(struct vd_kv *kv);

/* ---- Reads ---- */

/* range_end as in etcd (E-421): empty = the one key; a single zero byte = every key >= key; else [key, range_end). */
struct vd_range_request {
	struct vd_bytes key; /* not empty */
	struct vd_bytes range_end;
	vd_rev		revision;     /* 0: current; future -> VD_TOO_LARGE_REVISION, below the compacted one -> VD_EXPIRED */
	int64_t		limit;	      /* 0: no limit */
	bool		count_only;
	bool		keys_only;    /* values may be left out */
	bool		serializable; /* may be answered from local state */
};

struct vd_range_result {
	vd_rev		revision; /* of the store when it answered, whatever revision was asked (E-423) */
	struct vd_kv  **kvs;	  /* key order; lent: take references for what is kept */
	size_t		kv_count;
	int64_t		count;	  /* keys in the interval at that revision, whatever the limit (E-425) */
	bool		more;
};

/* result is NULL unless status is VD_OK; both pointers are lent for the call. */
typedef void (*vd_range_fn)(void *arg, vd_status status, const struct vd_range_result *result, const struct vd_error *error);

/* ---- Transactions ---- */

enum vd_compare_target { VD_COMPARE_VERSION, VD_COMPARE_CREATE, VD_COMPARE_MOD, VD_COMPARE_VALUE, VD_COMPARE_LEASE };
enum vd_compare_result { VD_COMPARE_EQUAL, VD_COMPARE_GREATER, VD_COMPARE_LESS, VD_COMPARE_NOT_EQUAL };

struct vd_compare {
	enum vd_compare_target target;
	enum vd_compare_result result;
	struct vd_bytes	       key;
	struct vd_bytes	       range_end;
	int64_t		       number; /* for all targets but VALUE */
	struct vd_bytes	       value;
};

enum vd_op_kind { VD_OP_PUT, VD_OP_DELETE, VD_OP_RANGE, VD_OP_TXN };

struct vd_txn_request;

struct vd_op {
	enum vd_op_kind kind;
	struct vd_bytes key;	      /* PUT, DELETE */
	struct vd_bytes range_end;    /* DELETE */
	struct vd_bytes value;	      /* PUT */
	int64_t		lease;	      /* PUT; 0: none (an earlier lease is detached, E-443) */
	bool		ignore_value; /* PUT: keep the stored value (E-441) */
	bool		ignore_lease;
	bool		previous;     /* PUT, DELETE: answer the previous records */
	struct vd_range_request	     range; /* RANGE */
	const struct vd_txn_request *txn;   /* TXN: nested */
};

/* At most 128 entries per list and 8 levels (E-450). Compares all see the state before the transaction. An empty compare list holds. */
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
	enum vd_op_kind		    kind;
	vd_rev			    revision; /* the sub-header's, E-456 */
	struct vd_kv		  **previous; /* PUT: 0 or 1, DELETE: what was deleted (when asked); key order */
	size_t			    previous_count;
	int64_t			    deleted;  /* DELETE */
	struct vd_range_result	    range;    /* RANGE */
	const struct vd_txn_result *txn;      /* TXN */
};

struct vd_txn_result {
	vd_rev			   revision; /* new one if anything changed, else current */
	bool			   succeeded;
	const struct vd_op_result *results; /* parallel to the chosen list */
	size_t			   result_count;
};

typedef void (*vd_txn_fn)(void *arg, vd_status status, const struct vd_txn_result *result, const struct vd_error *error);

/* ---- Leases, compaction, status ---- */

struct vd_lease_result {
	int64_t	 id;
	int64_t	 ttl_s;		/* remaining; keep-alive of an unknown lease: 0, time-to-live of one: -1 (E-503, E-504) */
	int64_t	 granted_ttl_s;
	vd_rev	 revision;
	const struct vd_bytes *keys; /* time-to-live with keys; bytewise order */
	size_t	 key_count;
};
typedef void (*vd_lease_fn)(void *arg, vd_status status, const struct vd_lease_result *result, const struct vd_error *error);

/* Every lease, by remaining time ascending (E-505); ids are lent for the call. revision: the store's when it answered. */
typedef void (*vd_lease_list_fn)(void *arg, vd_status status, const int64_t *ids, size_t count, vd_rev revision);

/* revision: the store's when it answered. */
typedef void (*vd_done_fn)(void *arg, vd_status status, vd_rev revision, const struct vd_error *error);

struct vd_store_status {
	vd_rev	current;   /* newest visible (and so durable) revision */
	vd_rev	compacted; /* -1: never */
	int64_t size_bytes; /* -1: not known */
	int64_t key_count;  /* -1: not known */
	bool	progress;  /* request_progress works: consistent reads may be served from a cache */
	bool	remote;	     /* what it keeps is not in this process; caches share nothing with it */
	bool	unreachable; /* a remote one that does not answer now */
	uint64_t id;	     /* what it is the same one by after a restart, such as the id of an etcd cluster; 0: not known */
	vd_rev	kept;	     /* the changes after this revision are kept here though the store may have compacted them; 0: see compacted */
	vd_rev	history;     /* and watches from after this one are answered out of memory; 0: none are */
};

/* ---- Watch ---- */

struct vd_store_watch;

/* A fault in the messages that a store received from its source for a watch. The watch itself still keeps its promises: it drops or ignores the message. */
enum vd_watch_fault_kind {
	VD_FAULT_REPEATED, /* an event that was received before, or that is older than the start of the watch */
	VD_FAULT_ORDER,	   /* an event behind another one of a higher revision */
	VD_FAULT_PREVIOUS, /* the previous record was requested and is missing; allowed only if it was compacted */
	VD_FAULT_PROGRESS, /* progress at a lower revision than an earlier event or progress */
	VD_FAULT_PROTOCOL, /* a message that the source may not send here, or a key outside of the watch */
};
struct vd_watch_fault {
	enum vd_watch_fault_kind kind;
	vd_rev			 revision;
	struct vd_bytes		 key;  /* empty: the fault concerns no single key */
	const char		*text; /* a sentence for people */
};
/* For programs that verify a source. fault is called on a thread of the store, at any time until vd_store_watch_close returned, and must not block nor call the store.
 * All slices are borrowed for the call. */
struct vd_watch_observer {
	void (*fault)(void *arg, const struct vd_watch_fault *fault);
	void *arg;
};

struct vd_store_watch_request {
	struct vd_bytes key;
	struct vd_bytes range_end;
	vd_rev		start_revision; /* first revision wanted; 0: after the store got the request */
	bool		previous;	/* events carry the previous record */
	bool		progress;	/* periodic progress batches when idle */
	bool		no_put;
	bool		no_delete;
	/* Called when vd_store_watch_next may have something after it answered VD_AGAIN (edge), from any thread, at any time
	 * until vd_store_watch_close returned; must not block nor call back into the store. Typically vd_actor_wake. */
	void (*ready)(void *arg);
	void *ready_arg;
	/* Borrowed until vd_store_watch_close returned. NULL: faults of the source are not reported. Stores without a source of their own report none. */
	const struct vd_watch_observer *observer;
};

/* kv: the new record, or a tombstone (key and mod_rev only). previous: NULL for a create, when not asked for, or when compacted. */
struct vd_store_event {
	bool	      is_delete;
	struct vd_kv *kv;
	struct vd_kv *previous;
};
/* A put whose key did not exist before (E-342). */
static inline bool vd_store_event_is_create(const struct vd_store_event *event)
{
	return !event->is_delete && event->kv->create_rev == event->kv->mod_rev;
}

/* Events of whole revisions, in order; or, with event_count 0, progress: everything up to revision was delivered. */
struct vd_store_batch {
	vd_rev			     revision; /* of the last event, or of the progress */
	const struct vd_store_event *events;   /* lent until the next call for this watch; take references for what is kept */
	size_t			     event_count;
};

/* ---- Long reads ---- */

/* One range, answered piece by piece at one revision: for lists that are too long for one answer. Pulled like a watch; not pulling is back-pressure. */
struct vd_store_stream;

struct vd_store_stream_request {
	struct vd_range_request range; /* copied */
	/* As vd_store_watch_request: after VD_AGAIN, from any thread, until vd_store_stream_close returned. */
	void (*ready)(void *arg);
	void *ready_arg;
};

/* range: records in key order, lent until the next call for this stream; its revision is the one that was read at, the same in every part; more: the limit
 * cut the list (in the last part). Parts may be empty. */
struct vd_store_part {
	struct vd_range_result range;
	bool		       last;
};

/* ---- The store ---- */

struct vd_store;

struct vd_store_ops {
	size_t size; /* sizeof(struct vd_store_ops) */
	vd_status (*range)(struct vd_store *store, const struct vd_range_request *request, vd_range_fn done, void *arg);
	vd_status (*txn)(struct vd_store *store, const struct vd_txn_request *request, vd_txn_fn done, void *arg);
	vd_status (*compact)(struct vd_store *store, vd_rev revision, bool physical, vd_done_fn done, void *arg);
	vd_status (*lease_grant)(struct vd_store *store, int64_t id, int64_t ttl_s, vd_lease_fn done, void *arg);
	vd_status (*lease_revoke)(struct vd_store *store, int64_t id, vd_done_fn done, void *arg);
	vd_status (*lease_keep_alive)(struct vd_store *store, int64_t id, vd_lease_fn done, void *arg);
	vd_status (*lease_time_to_live)(struct vd_store *store, int64_t id, bool keys, vd_lease_fn done, void *arg);
	vd_status (*watch)(struct vd_store *store, const struct vd_store_watch_request *request, struct vd_store_watch **ret_watch,
			   struct vd_error *reterr);
	vd_status (*watch_next)(struct vd_store_watch *watch, size_t event_count_max, struct vd_store_batch *ret_batch,
				struct vd_error *reterr);
	vd_status (*watch_progress)(struct vd_store_watch *watch);
	void (*watch_close)(struct vd_store_watch *watch);
	vd_status (*status)(struct vd_store *store, struct vd_store_status *ret_status);
	void (*close)(struct vd_store *store, void (*done)(void *arg), void *arg);

	/* What a store need not offer. NULL, or beyond size: it does not. */
	vd_status (*stream)(struct vd_store *store, const struct vd_store_stream_request *request, struct vd_store_stream **ret_stream);
	vd_status (*stream_next)(struct vd_store_stream *stream, struct vd_store_part *ret_part, struct vd_error *reterr);
	void (*stream_close)(struct vd_store_stream *stream);
	void (*shut)(struct vd_store *store);
	/* Members of a JSON object, ",\"a\":1", for people. */
	void (*dump)(struct vd_store *store, void (*write)(void *arg, struct vd_bytes json), void *arg);
	vd_status (*lease_list)(struct vd_store *store, vd_lease_list_fn done, void *arg);
};

/* First member of every implementation; likewise struct vd_store_watch. */
struct vd_store {
	const struct vd_store_ops *ops;
	const struct vd_env	  *env;
};
struct vd_store_watch {
	struct vd_store *store;
	vd_rev		 opened; /* the store's revision when the watch was registered: without a start revision it begins with the next one (E-330); 0: not known */
};
struct vd_store_stream {
	struct vd_store *store;
};

/* The checked front: each validates its arguments (VD_INVALID_ARGUMENT with a sentence is never the peer's fault), then calls the
 * implementation. */

/* Errors through the callback: VD_TOO_LARGE_REVISION, VD_EXPIRED, VD_NOMEM, VD_UNAVAILABLE, VD_CLOSED. */
VD_API VD_MUST_USE vd_status vd_store_range(struct vd_store *store, const struct vd_range_request *request, vd_range_fn done, void *arg);
/* Further errors: VD_DUPLICATE_KEY, VD_TOO_BIG (also, in the embedded store, a transaction that writes and whose compares and ranges look at more records than
 * the store has keys plus 262,144), VD_NOT_FOUND (ignore_value of an absent key), VD_LEASE_NOT_FOUND, VD_NO_SPACE, VD_IO,
 * VD_FULL (too many submissions in flight: slow down). After VD_UNAVAILABLE or VD_TIMEOUT the transaction may or may not have
 * happened; after VD_NO_SPACE too when the store is an etcd. */
VD_API VD_MUST_USE vd_status vd_store_txn(struct vd_store *store, const struct vd_txn_request *request, vd_txn_fn done, void *arg);
/* VD_EXPIRED: revision <= compacted; VD_TOO_LARGE_REVISION: in the future (E-462). */
VD_API VD_MUST_USE vd_status vd_store_compact(struct vd_store *store, vd_rev revision, bool physical, vd_done_fn done, void *arg);
/* id 0: the store chooses. ttl below the store's minimum (2 s) is raised to it. VD_LEASE_EXISTS. */
VD_API VD_MUST_USE vd_status vd_store_lease_grant(struct vd_store *store, int64_t id, int64_t ttl_s, vd_lease_fn done, void *arg);
/* Deletes the attached keys in one revision. VD_LEASE_NOT_FOUND. */
VD_API VD_MUST_USE vd_status vd_store_lease_revoke(struct vd_store *store, int64_t id, vd_done_fn done, void *arg);
VD_API VD_MUST_USE vd_status vd_store_lease_keep_alive(struct vd_store *store, int64_t id, vd_lease_fn done, void *arg);
VD_API VD_MUST_USE vd_status vd_store_lease_time_to_live(struct vd_store *store, int64_t id, bool keys, vd_lease_fn done, void *arg);
/* VD_UNSUPPORTED: this store cannot tell. */
VD_API VD_MUST_USE vd_status vd_store_lease_list(struct vd_store *store, vd_lease_list_fn done, void *arg);

/* Opens a watch; never blocks. The caller closes it. A start revision below the compacted one is reported by the first
 * vd_store_watch_next as VD_EXPIRED (error->compacted set), as are all later failures. */
VD_API VD_MUST_USE vd_status vd_store_watch_open(struct vd_store *store, const struct vd_store_watch_request *request,
						 struct vd_store_watch **ret_watch, struct vd_error *reterr);
/* Takes the next batch, at least one whole revision and beyond that at most about event_count_max events. VD_AGAIN: nothing now, ready() will be called.
 * Anything else ends the watch: VD_EXPIRED, VD_UNAVAILABLE, VD_CLOSED, VD_NOMEM. Never blocks; one caller at a time. Not calling it is
 * back-pressure: the store keeps a cursor, or stops reading from its peer. */
VD_API VD_MUST_USE vd_status vd_store_watch_next(struct vd_store_watch *watch, size_t event_count_max, struct vd_store_batch *ret_batch,
						 struct vd_error *reterr);
/* Asks for a progress batch as soon as the watch is caught up; it comes through vd_store_watch_next, after all events <= its revision. */
VD_API vd_status vd_store_watch_progress(struct vd_store_watch *watch);
/* ready() is not called any more when it returns. NULL is fine. Not from inside ready(). */
VD_API void vd_store_watch_close(struct vd_store_watch *watch);

/* Begins a long read; never blocks. VD_UNSUPPORTED: this store (or its peer, as it said not long ago) has only vd_store_range; read in pages. */
VD_API VD_MUST_USE vd_status vd_store_stream_open(struct vd_store *store, const struct vd_store_stream_request *request,
						  struct vd_store_stream **ret_stream);
/* The next part, in order. VD_AGAIN: nothing now, ready() will be called. Anything else ends it: VD_CLOSED after the last part, VD_UNSUPPORTED before the first
 * (read in pages), VD_EXPIRED, VD_TOO_LARGE_REVISION, VD_UNAVAILABLE, VD_TIMEOUT, VD_NOMEM. One caller at a time; never blocks. */
VD_API VD_MUST_USE vd_status vd_store_stream_next(struct vd_store_stream *stream, struct vd_store_part *ret_part, struct vd_error *reterr);
/* Any moment; ready() is not called any more when it returns. NULL is fine. Not from inside ready(). */
VD_API void vd_store_stream_close(struct vd_store_stream *stream);

/* What is known here and now, without asking a peer. */
VD_API VD_MUST_USE vd_status vd_store_status_get(struct vd_store *store, struct vd_store_status *ret_status);
/* The first half of the end, for stores elsewhere: nothing new is started (VD_CLOSED), outstanding calls are given up and answer VD_CLOSED or their result,
 * watches end. The store stays valid, so that what is built on it can be taken down without waiting for a peer that is gone. A store without a peer
 * ignores it. */
VD_API void vd_store_shut(struct vd_store *store);
/* Appends what the store knows of itself and its peers to a JSON object: calls write, on this thread, with its members, each with a comma before it; or not at
 * all. */
VD_API void vd_store_dump(struct vd_store *store, void (*write)(void *arg, struct vd_bytes json), void *arg);
/* All cachers and servers over the store must be gone, and it is closed once: else the program stops with a message that names them.
 * Ends everything: outstanding calls answer VD_CLOSED or their result, watches end with VD_CLOSED. done is called when the store's memory is
 * gone; watches must have been closed by then or are closed by their owners afterwards (they stay valid until closed). */
VD_API void vd_store_close(struct vd_store *store, void (*done)(void *arg), void *arg);
/* The same, waiting. In an actor's handler the program stops (vedette/env.h). */
VD_API struct vd_store *vd_store_close_wait(struct vd_store *store);

/* ---- Blocking wrappers (refused in an actor's handler, and in callbacks of the store: vedette/env.h) ---- */

/* ret_kv is a reference of the caller's. VD_NOT_FOUND. */
VD_API VD_MUST_USE vd_status vd_store_get_wait(struct vd_store *store, struct vd_bytes key, struct vd_kv **ret_kv, struct vd_error *reterr);
VD_API VD_MUST_USE vd_status vd_store_put_wait(struct vd_store *store, struct vd_bytes key, struct vd_bytes value, vd_rev *ret_revision,
					       struct vd_error *reterr);
VD_API VD_MUST_USE vd_status vd_store_delete_wait(struct vd_store *store, struct vd_bytes key, struct vd_bytes range_end,
						  int64_t *ret_deleted, vd_rev *ret_revision, struct vd_error *reterr);

/* ---- The embedded MVCC store ---- */

struct vd_mvcc_options {
	size_t	    size;	     /* sizeof(struct vd_mvcc_options) */
	const char *data_dir;	     /* NULL: memory only. Created when absent (parents are not). An empty store takes about 5 MiB there; a store of n bytes
				      * reserves n / 4 ahead, 160 MiB at most. */
	int64_t	    history_bytes;   /* compaction keeps at most this much of older revisions, in steps of a 32nd of it (4 KiB at least), and the last
				      * step always; default 256 MiB; 0: no bound by bytes */
	vd_dur	    history_window;  /* and at least this long unless bytes say otherwise; default 10 min; 0: never compacts by itself */
	int64_t	    quota_bytes;     /* size of the data directory beyond which writes answer VD_NO_SPACE; 0: none */
	unsigned    in_flight_max;   /* submissions waiting for durability; default 16384; more answers VD_FULL */
	bool	    no_sync;	     /* tests and benchmarks only: acknowledged is not durable */
	vd_dur	    progress_interval; /* of watches with periodic progress; default 10 min; 0: never */
};
#define VD_MVCC_OPTIONS_INIT                                                                                                     \
	{ sizeof(struct vd_mvcc_options), 0, (int64_t) 256 << 20, { (int64_t) 600 * 1000000000 }, 0, 16384, false, { (int64_t) 600 * 1000000000 } }

/* Opens (recovering after any crash) or creates the store. Blocks while it reads: about a second per million keys. VD_LOCKED: another
 * process has it open. VD_NEWER_FORMAT. VD_CORRUPT: damage that recovery must not hide; the message names file and offset, nothing was
 * changed. VD_NO_SPACE: there is no room for a new store; one that exists opens on a full disk. VD_IO, VD_NOMEM.
 *
 * On a full disk, puts and grants of leases answer VD_NO_SPACE. Deletes, compaction and ends of leases go on, from a reserve; when they or a larger disk have made
 * room, everything else goes on without reopening. */
VD_API VD_MUST_USE vd_status vd_store_open_mvcc(const struct vd_env *env, const struct vd_mvcc_options *options, struct vd_store **ret_store,
						struct vd_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
