/* A call of an etcd server, and the server as its services see it.
 *
 * The carrier of a call owns a struct vdi_serve_call (etcdserver.h describes how it reports messages and the
 * end) and implements send and finish. A call has one reference of the carrier, and one for each object that
 * will still answer it: a submission in the store, an entry in a worker's queue. finish and send after the
 * end are harmless, so the end need not be reported to those objects. Nothing blocks.
 */
#ifndef VDI_SERVE_CALL_H
#define VDI_SERVE_CALL_H

#include <stdatomic.h>
#include <vedette/etcd.h>
#include <vedette/store.h>

#include "lock.h"
#include "rpc_server.h"
#include "serve_clients.h"
#include "serve_wire.h"

/* Reported version: that of the etcd whose behaviour is implemented. */
#define VDI_ETCD_VERSION "3.7.3"
#define VDI_ETCD_CLUSTER_VERSION "3.7"
#define VDI_ETCD_STORAGE_VERSION "3.7.0"

#define VDI_ETCD_QUOTA_DEFAULT ((int64_t) 2 << 30)
#define VDI_ETCD_LEASE_TTL_MAX_S 9000000000
#define VDI_ETCD_RECEIVE_EXTRA ((size_t) 512 << 10)

struct vdi_serve_state;
struct vdi_auth;
struct vdi_serve_logins;
struct vdi_serve_watches;
struct vdi_serve_metrics;
struct vdi_serve_method_counts;

struct vdi_etcdserver_options {
	struct vd_store	  *store;	/* borrowed; must outlive the server */
	const char	  *state_path;	/* directory of persistent state other than keys; NULL: in memory */
	const char	  *name;	/* of the member */
	const char *const *client_urls; /* advertised */
	size_t		   client_url_count;
	const char *const *peer_urls;
	size_t		   peer_url_count;
	size_t		   request_bytes_max; /* 0: 1.5 MiB */
	unsigned	   txn_ops_max;	      /* 0: 128, the maximum of the store */
	int64_t		   quota_bytes;	      /* 0: 2 GiB; negative: no limit */
	vd_dur		   progress_interval; /* of watches; 0: 10 min */
	unsigned	   watchers_max;      /* per stream; 0: 100,000 */
	unsigned	   bcrypt_cost;	      /* 0: 10 */
	vd_dur		   token_ttl;	      /* 0: 5 min */
	bool		   extensive_metrics; /* also measure the duration of each call */
	bool		   client_cert_auth;  /* the common name of a verified client certificate is a user */
};

enum vdi_alarm { VDI_ALARM_NONE, VDI_ALARM_NOSPACE, VDI_ALARM_CORRUPT };

struct vdi_serve_call;

/* An actor of the server, with the calls that wait for it. */
struct vdi_serve_worker {
	struct vd_actor *actor;
	struct vdi_lock	 lock; /* "queue" */

	/* Under the lock. */
	struct vdi_serve_call  *first;
	struct vdi_serve_call **last;
};

#define VDI_SERVE_WORKERS 4
enum { VDI_SERVE_WORKER_SLOW, VDI_SERVE_WORKER_LEASES, VDI_SERVE_WORKER_RANGES };

/* Results of HashKV, to answer again after a compaction at their revision (serve_hash.c). */
#define VDI_SERVE_HASHES_MAX 10
struct vdi_known_hash {
	vd_rev	 revision; /* 0: unused */
	vd_rev	 compacted;
	uint32_t hash;
	uint64_t number; /* sequence number of the result, from 1 */
};
struct vdi_serve_hashes {
	struct vdi_known_hash known[VDI_SERVE_HASHES_MAX];
	uint64_t	      last_number;
};

struct vdi_etcdserver {
	/* Fixed at creation. */
	const struct vd_env	       *env;
	struct vdi_etcdserver_options	options; /* the caller keeps the strings */
	struct vd_store		       *store;
	const char *_Atomic		client_url; /* instead of the option's */
	uint64_t			cluster_id;
	uint64_t			member_id;
	uint64_t			term;
	struct vdi_serve_state	       *state;
	struct vdi_auth		       *auth;
	struct vdi_serve_logins	       *logins;
	struct vdi_serve_watches       *watches;
	struct vdi_serve_metrics       *metrics;
	struct vdi_serve_method_counts *method_counts; /* by index among all methods; for metrics */
	struct vdi_serve_worker		workers[VDI_SERVE_WORKERS];

	/* VDI_SERVE_WORKER_SLOW only. */
	struct vdi_serve_hashes hashes;

	/* Any thread. */
	_Atomic uint32_t	 alarms; /* bit 1 << enum vdi_alarm: an alarm of that kind is active */
	_Atomic uint64_t	 calls_total;
	_Atomic uint64_t	 health_successes;
	_Atomic uint64_t	 health_failures;
	_Atomic uint32_t	 next_worker;
	atomic_bool		 is_stopping;
	_Atomic int64_t		 call_count;  /* calls not yet freed */
	_Atomic int64_t		 unary_count; /* of these, unary calls in progress */
	struct vdi_serve_clients clients;
};

/* Functions of the carrier of a call. Any thread; none blocks. */
struct vdi_serve_call_ops {
	/* head: at most 32 bytes, copied; blob: takes a reference. VD_FULL: not sent, writable follows.
	 * VD_CLOSED: too late. */
	vd_status (*send)(struct vdi_serve_call *call, struct vd_bytes head, struct vdi_rpc_blob *blob);
	void (*finish)(struct vdi_serve_call *call, int code, const char *message);
	/* Sends the only message of a call, and ends it successfully. VD_CLOSED: too late. */
	vd_status (*answer)(struct vdi_serve_call *call, struct vdi_rpc_blob *blob);
	/* Requests one more message. */
	void (*receive)(struct vdi_serve_call *call);
	bool (*metadata)(struct vdi_serve_call *call, const char *key, struct vd_bytes *ret_value);
	/* Returns the common name of the verified client certificate, or "". */
	const char *(*common_name)(struct vdi_serve_call *call);
	/* Called when the last reference is dropped; never before ended. */
	void (*free)(struct vdi_serve_call *call);
	/* Returns the client's address, "host:port"; NULL: not known, all count as one. */
	const char *(*peer)(struct vdi_serve_call *call);
};

struct vdi_serve_range;
struct vdi_serve_txn;
struct vdi_serve_method;

/* First member of the transport's struct for a call. Zeroed by the transport, except for ops. */
struct vdi_serve_call {
	const struct vdi_serve_call_ops *ops;

	/* Used by the server only. */
	struct vdi_etcdserver	       *server;
	const struct vdi_serve_method  *method;
	_Atomic uint32_t		references;
	struct vdi_rpc_message		request; /* unary calls and server streams: kept to the end */
	bool				has_request;
	atomic_bool			is_ended;   /* the client no longer reads */
	struct vdi_serve_method_counts *counts;	    /* NULL: unknown method */
	atomic_bool			is_counted; /* its end was counted */
	vd_mono				begun;	    /* with extensive_metrics */
	/* Streams. */
	void (*on_message)(struct vdi_serve_call *call, struct vdi_rpc_message *message);
	void (*on_writable)(struct vdi_serve_call *call);
	void (*on_ended)(struct vdi_serve_call *call);
	void (*on_free)(struct vdi_serve_call *call); /* frees state */
	void *state;
	/* In a worker's queue. */
	struct vdi_serve_call *next;
	void (*work)(struct vdi_serve_call *call);
};

/* ---- For the services (serve_*.c) ---- */

enum vdi_serve_kind { VDI_SERVE_UNARY, VDI_SERVE_STREAM };

struct vdi_serve_method {
	const char	   *path;
	enum vdi_serve_kind kind;
	/* UNARY (and server streams): called with the only request, borrowed until the call is freed. STREAM:
	 * called by accept with empty bytes, sets on_message. */
	void (*begin)(struct vdi_serve_call *call, struct vd_bytes request);
	bool ignores_request; /* begin does not read it; it must still be a message */
};

struct vdi_serve_call *vdi_serve_call_ref(struct vdi_serve_call *call);
void		       vdi_serve_call_unref(struct vdi_serve_call *call);

/* As the transport's finish and answer, and counts the call. */
void		       vdi_serve_finish(struct vdi_serve_call *call, int code, const char *message);
VDI_MUST_USE vd_status vdi_serve_answer(struct vdi_serve_call *call, struct vdi_rpc_blob *blob);
/* As the transport's send. Any status other than VD_OK and VD_FULL has ended the call. */
vd_status vdi_serve_send(struct vdi_serve_call *call, struct vd_bytes head, struct vdi_rpc_blob *blob);
/* Each ends the call. */
void vdi_serve_reply(struct vdi_serve_call *call, vdi_wire_write_fn write, const void *arg);
void vdi_serve_fail(struct vdi_serve_call *call, enum vd_etcd_code code);
void vdi_serve_fail_status(struct vdi_serve_call *call, vd_status status);
void vdi_serve_fail_malformed(struct vdi_serve_call *call);
/* Return message and gRPC code of the error table. */
const char *vdi_serve_code_message(enum vd_etcd_code code);
int	    vdi_serve_code_grpc(enum vd_etcd_code code);
/* Returns the etcd error for a failure of the store. VD_ETCD_OTHER: none matches. */
enum vd_etcd_code vdi_serve_code_of(vd_status status);

/* Runs work later on the worker; the call exists until then. */
void vdi_serve_defer(struct vdi_serve_call *call, unsigned worker, void (*work)(struct vdi_serve_call *call));
/* Runs the first call of a worker's queue; arg: the worker. Called by its actor. */
void vdi_serve_worker_run(void *arg);
/* Returns a worker for ranges, in turn. */
unsigned vdi_serve_any_range_worker(struct vdi_etcdserver *server);

struct vdi_serve_header {
	const struct vdi_etcdserver *server;
	vd_rev			     revision;
};
/* Writes field 1 of every response. */
void vdi_serve_write_header(struct vdi_wire_out *out, const struct vdi_etcdserver *server, vd_rev revision);
/* Writes a response that is only a header; arg: struct vdi_serve_header. */
void vdi_serve_write_only_header(struct vdi_wire_out *out, const void *arg);
/* done callback for store calls that are answered by only a header; arg: the call, whose reference it
 * drops. */
void vdi_serve_header_done(void *arg, vd_status status, vd_rev revision, const struct vd_error *error);

vd_rev vdi_serve_revision(struct vdi_etcdserver *server);
/* As etcd's quota: false if cost more bytes exceed it or the NOSPACE alarm is active; raises the alarm and
 * ends the call. */
bool vdi_serve_check_quota(struct vdi_serve_call *call, int64_t cost);
/* False, and ends the call, while the CORRUPT alarm is active. */
bool vdi_serve_check_corrupt(struct vdi_serve_call *call);
/* False, and ends the call, if the request is larger than the limit. */
bool vdi_serve_check_size(struct vdi_serve_call *call, struct vd_bytes request);

#endif
