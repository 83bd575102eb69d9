/* A call of an etcd server, and the server as its services see it.
 *
 * The carrier of a call owns a struct vdi_serve_call (etcdserver.h says how it tells the server of messages
 * and of the end) and carries out send and finish. A call has one reference of the carrier and one for each
 * thing that will still answer it: a submission in the store, a place in a worker's queue. finish and send
 * come too late without harm, so nobody has to be told that a client has gone. Nothing blocks.
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

/* What we say that we are (E-640): the version whose behaviour is implemented. */
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
	struct vd_store	  *store;	/* borrowed; outlives the server */
	const char	  *state_path;	/* directory of what is persistent beside the keys; NULL: in memory */
	const char	  *name;	/* of the member */
	const char *const *client_urls; /* advertised */
	size_t		   client_url_count;
	const char *const *peer_urls;
	size_t		   peer_url_count;
	size_t		   request_bytes_max; /* 0: 1.5 MiB */
	unsigned	   txn_ops_max;	      /* 0: 128; the store takes no more */
	int64_t		   quota_bytes;	      /* 0: 2 GiB; negative: none */
	vd_dur		   progress_interval; /* of watches; 0: 10 min */
	unsigned	   watchers_max;      /* of one stream; 0: 100,000 */
	unsigned	   bcrypt_cost;	      /* 0: 10 */
	vd_dur		   token_ttl;	      /* 0: 5 min */
	bool		   extensive_metrics; /* the time of each call, too */
	bool		   client_cert_auth;  /* the common name of a verified client certificate is a user */
};

enum vdi_alarm { VDI_ALARM_NONE, VDI_ALARM_NOSPACE, VDI_ALARM_CORRUPT };

struct vdi_serve_call;

/* One of the server's own actors with the calls that wait for it. */
struct vdi_serve_worker {
	struct vd_actor *actor;
	struct vdi_lock	 lock; /* "queue" */

	/* Under the lock. */
	struct vdi_serve_call  *first;
	struct vdi_serve_call **last;
};

#define VDI_SERVE_WORKERS 4
enum { VDI_SERVE_WORKER_SLOW, VDI_SERVE_WORKER_LEASES, VDI_SERVE_WORKER_RANGES };

/* Answers of HashKV, for the time after a compaction to their revision (serve_hash.c). */
#define VDI_SERVE_HASHES_MAX 10
struct vdi_known_hash {
	vd_rev	 revision; /* 0: unused */
	vd_rev	 compacted;
	uint32_t hash;
	uint64_t number; /* of the answer, from 1 */
};
struct vdi_serve_hashes {
	struct vdi_known_hash known[VDI_SERVE_HASHES_MAX];
	uint64_t	      last_number;
};

struct vdi_etcdserver {
	/* Fixed at creation. */
	const struct vd_env	       *env;
	struct vdi_etcdserver_options	options; /* texts are kept by whoever made the server */
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
	struct vdi_serve_method_counts *method_counts; /* by place among all methods; of metrics */
	struct vdi_serve_worker		workers[VDI_SERVE_WORKERS];

	/* VDI_SERVE_WORKER_SLOW only. */
	struct vdi_serve_hashes hashes;

	/* Any thread. */
	_Atomic uint32_t	 alarms; /* bit 1 << enum vdi_alarm: one of that kind is active */
	_Atomic uint64_t	 calls_total;
	_Atomic uint64_t	 health_successes;
	_Atomic uint64_t	 health_failures;
	_Atomic uint32_t	 next_worker;
	atomic_bool		 is_stopping;
	_Atomic int64_t		 call_count;  /* calls whose memory is not gone */
	_Atomic int64_t		 unary_count; /* of these, with a request that is being answered */
	struct vdi_serve_clients clients;
};

/* What the carrier of a call does. Any thread; none blocks. */
struct vdi_serve_call_ops {
	/* head: at most 32 bytes, copied; blob: a reference is taken. VD_FULL: nothing was sent, writable
	 * follows. VD_CLOSED: too late. */
	vd_status (*send)(struct vdi_serve_call *call, struct vd_bytes head, struct vdi_rpc_blob *blob);
	void (*finish)(struct vdi_serve_call *call, int code, const char *message);
	/* The only message of a call, and its good end. VD_CLOSED: too late. */
	vd_status (*answer)(struct vdi_serve_call *call, struct vdi_rpc_blob *blob);
	/* Asks for one more message. */
	void (*receive)(struct vdi_serve_call *call);
	bool (*metadata)(struct vdi_serve_call *call, const char *key, struct vd_bytes *ret_value);
	/* Of the verified client certificate; "". */
	const char *(*common_name)(struct vdi_serve_call *call);
	/* The last reference has gone; never before ended. */
	void (*free)(struct vdi_serve_call *call);
	/* The client's address, "host:port"; NULL: all are one. */
	const char *(*peer)(struct vdi_serve_call *call);
};

struct vdi_serve_range;
struct vdi_serve_txn;
struct vdi_serve_method;

/* First member of what the transport keeps for a call. Zeroed by the transport but for ops. */
struct vdi_serve_call {
	const struct vdi_serve_call_ops *ops;

	/* The server's. */
	struct vdi_etcdserver	       *server;
	const struct vdi_serve_method  *method;
	_Atomic uint32_t		references;
	struct vdi_rpc_message		request; /* of unary calls and server streams: kept to the end */
	bool				has_request;
	atomic_bool			is_ended;   /* nobody reads the answer any more */
	struct vdi_serve_method_counts *counts;	    /* NULL: an unknown method */
	atomic_bool			is_counted; /* its end */
	vd_mono				begun;	    /* with extensive_metrics */
	/* Streams. */
	void (*on_message)(struct vdi_serve_call *call, struct vdi_rpc_message *message);
	void (*on_writable)(struct vdi_serve_call *call);
	void (*on_ended)(struct vdi_serve_call *call);
	void (*on_free)(struct vdi_serve_call *call); /* frees state */
	void *state;
	/* In the queue of a worker. */
	struct vdi_serve_call *next;
	void (*work)(struct vdi_serve_call *call);
};

/* ---- For the services (serve_*.c) ---- */

enum vdi_serve_kind { VDI_SERVE_UNARY, VDI_SERVE_STREAM };

struct vdi_serve_method {
	const char	   *path;
	enum vdi_serve_kind kind;
	/* UNARY (and server streams): the one request, lent until the call is freed. STREAM: called by accept
	 * with empty bytes, sets on_message. */
	void (*begin)(struct vdi_serve_call *call, struct vd_bytes request);
};

struct vdi_serve_call *vdi_serve_call_ref(struct vdi_serve_call *call);
void		       vdi_serve_call_unref(struct vdi_serve_call *call);

/* As the transport's finish and answer, and counted. */
void		       vdi_serve_finish(struct vdi_serve_call *call, int code, const char *message);
VDI_MUST_USE vd_status vdi_serve_answer(struct vdi_serve_call *call, struct vdi_rpc_blob *blob);
/* As the transport's send. What is neither VD_OK nor VD_FULL has ended the call. */
vd_status vdi_serve_send(struct vdi_serve_call *call, struct vd_bytes head, struct vdi_rpc_blob *blob);
/* Each ends the call. */
void vdi_serve_reply(struct vdi_serve_call *call, vdi_wire_write_fn write, const void *arg);
void vdi_serve_fail(struct vdi_serve_call *call, enum vd_etcd_code code);
void vdi_serve_fail_status(struct vdi_serve_call *call, vd_status status);
void vdi_serve_fail_malformed(struct vdi_serve_call *call);
/* Message and gRPC code of the table. */
const char *vdi_serve_code_message(enum vd_etcd_code code);
int	    vdi_serve_code_grpc(enum vd_etcd_code code);
/* What a failure of the store is called. VD_ETCD_OTHER: nothing in the table fits. */
enum vd_etcd_code vdi_serve_code_of(vd_status status);

/* work runs later on the worker; the call stays until then. */
void vdi_serve_defer(struct vdi_serve_call *call, unsigned worker, void (*work)(struct vdi_serve_call *call));
/* Runs the first call of a worker's queue; arg: the worker. Its actor. */
void vdi_serve_worker_run(void *arg);
/* A worker for ranges, in turn. */
unsigned vdi_serve_any_range_worker(struct vdi_etcdserver *server);

struct vdi_serve_header {
	const struct vdi_etcdserver *server;
	vd_rev			     revision;
};
/* Field 1 of every answer (E-120, E-121). */
void vdi_serve_write_header(struct vdi_wire_out *out, const struct vdi_etcdserver *server, vd_rev revision);
/* An answer of a header alone; arg: struct vdi_serve_header. */
void vdi_serve_write_only_header(struct vdi_wire_out *out, const void *arg);
/* The done function of a call of the store that is answered by a header alone; arg: the call, whose reference
 * it drops. */
void vdi_serve_header_done(void *arg, vd_status status, vd_rev revision, const struct vd_error *error);

vd_rev vdi_serve_revision(struct vdi_etcdserver *server);
/* E-466, E-467: false, with the alarm raised, when there is no room for cost more bytes; ends the call
 * then. */
bool vdi_serve_check_quota(struct vdi_serve_call *call, int64_t cost);
/* E-468. Ends the call when false. */
bool vdi_serve_check_corrupt(struct vdi_serve_call *call);
/* E-465. Ends the call when false. */
bool vdi_serve_check_size(struct vdi_serve_call *call, struct vd_bytes request);

#endif
