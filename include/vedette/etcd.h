/* An etcd v3 client with KV, Watch, Lease, Maintenance, Cluster and Auth calls, and a vd_store over it.
 *
 * The behaviour is that of Go's clientv3, for programs that never block: every call answers through a
 * callback.
 *
 * The contract of vedette/store.h applies: a call that returns an error never calls its callback; a call
 * that returns VD_OK calls it exactly once, except for streams of answers, which document their calls.
 * Callbacks run on an actor of the env given to vd_etcd_open, never on a thread of the transport. They
 * must not block and may start further calls. Requests are borrowed for the call only; results and errors
 * are borrowed for the callback. All functions may be called from any thread and none blocks, unless its
 * comment says otherwise.
 *
 * The functions exist only in a library built with -Detcd=enabled (the default).
 */
#ifndef VEDETTE_ETCD_H
#define VEDETTE_ETCD_H

#include <vedette/rpc.h>
#include <vedette/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Errors ---- */

/* X(name, gRPC code, status, whether clientv3 recognises the message, message). As in clientv3, a server's
 * error is recognised by its message, never by its code. */
#define VD_ETCD_ERROR_MAP(X)                                                                                 \
	X(VD_ETCD_EMPTY_KEY, 3, VD_INVALID_ARGUMENT, 1, "etcdserver: key is not provided")                   \
	X(VD_ETCD_KEY_NOT_FOUND, 3, VD_NOT_FOUND, 1, "etcdserver: key not found")                            \
	X(VD_ETCD_VALUE_PROVIDED, 3, VD_INVALID_ARGUMENT, 1, "etcdserver: value is provided")                \
	X(VD_ETCD_LEASE_PROVIDED, 3, VD_INVALID_ARGUMENT, 1, "etcdserver: lease is provided")                \
	X(VD_ETCD_TOO_MANY_OPS, 3, VD_TOO_BIG, 1, "etcdserver: too many operations in txn request")          \
	X(VD_ETCD_DUPLICATE_KEY, 3, VD_DUPLICATE_KEY, 1, "etcdserver: duplicate key given in txn request")   \
	X(VD_ETCD_INVALID_CLIENT_API_VERSION, 3, VD_INVALID_ARGUMENT, 0,                                     \
	  "etcdserver: invalid client api version")                                                          \
	X(VD_ETCD_INVALID_SORT_OPTION, 3, VD_INVALID_ARGUMENT, 1, "etcdserver: invalid sort option")         \
	X(VD_ETCD_COMPACTED, 11, VD_EXPIRED, 1, "etcdserver: mvcc: required revision has been compacted")    \
	X(VD_ETCD_FUTURE_REVISION, 11, VD_TOO_LARGE_REVISION, 1,                                             \
	  "etcdserver: mvcc: required revision is a future revision")                                        \
	X(VD_ETCD_NO_SPACE, 8, VD_NO_SPACE, 1, "etcdserver: mvcc: database space exceeded")                  \
	X(VD_ETCD_LEASE_NOT_FOUND, 5, VD_LEASE_NOT_FOUND, 1, "etcdserver: requested lease not found")        \
	X(VD_ETCD_LEASE_EXIST, 9, VD_LEASE_EXISTS, 1, "etcdserver: lease already exists")                    \
	X(VD_ETCD_LEASE_TTL_TOO_LARGE, 11, VD_INVALID_ARGUMENT, 1, "etcdserver: too large lease TTL")        \
	X(VD_ETCD_WATCH_CANCELED, 1, VD_CANCELED, 0, "etcdserver: watch canceled")                           \
	X(VD_ETCD_MEMBER_EXIST, 9, VD_EXISTS, 1, "etcdserver: member ID already exist")                      \
	X(VD_ETCD_PEER_URL_EXIST, 9, VD_EXISTS, 1, "etcdserver: Peer URLs already exists")                   \
	X(VD_ETCD_MEMBER_NOT_ENOUGH_STARTED, 9, VD_UNAVAILABLE, 1,                                           \
	  "etcdserver: re-configuration failed due to not enough started members")                           \
	X(VD_ETCD_MEMBER_BAD_URLS, 3, VD_INVALID_ARGUMENT, 1, "etcdserver: given member URLs are invalid")   \
	X(VD_ETCD_MEMBER_NOT_FOUND, 5, VD_NOT_FOUND, 1, "etcdserver: member not found")                      \
	X(VD_ETCD_MEMBER_NOT_LEARNER, 9, VD_INVALID_ARGUMENT, 1,                                             \
	  "etcdserver: can only promote a learner member")                                                   \
	X(VD_ETCD_LEARNER_NOT_READY, 9, VD_NOT_READY, 1,                                                     \
	  "etcdserver: can only promote a learner member which is in sync with leader")                      \
	X(VD_ETCD_TOO_MANY_LEARNERS, 9, VD_FULL, 1, "etcdserver: too many learner members in cluster")       \
	X(VD_ETCD_CLUSTER_ID_MISMATCH, 9, VD_INVALID_ARGUMENT, 1, "etcdserver: cluster ID mismatch")         \
	X(VD_ETCD_REQUEST_TOO_LARGE, 3, VD_TOO_BIG, 1, "etcdserver: request is too large")                   \
	X(VD_ETCD_TOO_MANY_REQUESTS, 8, VD_FULL, 1, "etcdserver: too many requests")                         \
	X(VD_ETCD_ROOT_USER_NOT_EXIST, 9, VD_FORBIDDEN, 1, "etcdserver: root user does not exist")           \
	X(VD_ETCD_ROOT_ROLE_NOT_EXIST, 9, VD_FORBIDDEN, 1, "etcdserver: root user does not have root role")  \
	X(VD_ETCD_USER_ALREADY_EXIST, 9, VD_EXISTS, 1, "etcdserver: user name already exists")               \
	X(VD_ETCD_USER_EMPTY, 3, VD_FORBIDDEN, 1, "etcdserver: user name is empty")                          \
	X(VD_ETCD_USER_NOT_FOUND, 9, VD_NOT_FOUND, 1, "etcdserver: user name not found")                     \
	X(VD_ETCD_ROLE_ALREADY_EXIST, 9, VD_EXISTS, 1, "etcdserver: role name already exists")               \
	X(VD_ETCD_ROLE_NOT_FOUND, 9, VD_NOT_FOUND, 1, "etcdserver: role name not found")                     \
	X(VD_ETCD_ROLE_EMPTY, 3, VD_INVALID_ARGUMENT, 1, "etcdserver: role name is empty")                   \
	X(VD_ETCD_AUTH_FAILED, 3, VD_FORBIDDEN, 1,                                                           \
	  "etcdserver: authentication failed, invalid user ID or password")                                  \
	X(VD_ETCD_PERMISSION_NOT_GIVEN, 3, VD_INVALID_ARGUMENT, 0, "etcdserver: permission not given")       \
	X(VD_ETCD_PERMISSION_DENIED, 7, VD_FORBIDDEN, 1, "etcdserver: permission denied")                    \
	X(VD_ETCD_ROLE_NOT_GRANTED, 9, VD_NOT_FOUND, 1, "etcdserver: role is not granted to the user")       \
	X(VD_ETCD_PERMISSION_NOT_GRANTED, 9, VD_NOT_FOUND, 1,                                                \
	  "etcdserver: permission is not granted to the role")                                               \
	X(VD_ETCD_AUTH_NOT_ENABLED, 9, VD_UNSUPPORTED, 1, "etcdserver: authentication is not enabled")       \
	X(VD_ETCD_INVALID_AUTH_TOKEN, 16, VD_FORBIDDEN, 1, "etcdserver: invalid auth token")                 \
	X(VD_ETCD_INVALID_AUTH_MANAGEMENT, 3, VD_INVALID_ARGUMENT, 1, "etcdserver: invalid auth management") \
	X(VD_ETCD_AUTH_OLD_REVISION, 3, VD_CONFLICT, 1, "etcdserver: revision of auth store is old")         \
	X(VD_ETCD_NO_LEADER, 14, VD_UNAVAILABLE, 1, "etcdserver: no leader")                                 \
	X(VD_ETCD_NOT_LEADER, 9, VD_UNAVAILABLE, 1, "etcdserver: not leader")                                \
	X(VD_ETCD_LEADER_CHANGED, 14, VD_UNAVAILABLE, 1, "etcdserver: leader changed")                       \
	X(VD_ETCD_NOT_CAPABLE, 9, VD_UNSUPPORTED, 1, "etcdserver: not capable")                              \
	X(VD_ETCD_STOPPED, 14, VD_UNAVAILABLE, 1, "etcdserver: server stopped")                              \
	X(VD_ETCD_TIMEOUT, 14, VD_UNAVAILABLE, 1, "etcdserver: request timed out")                           \
	X(VD_ETCD_TIMEOUT_LEADER_FAIL, 14, VD_UNAVAILABLE, 1,                                                \
	  "etcdserver: request timed out, possibly due to previous leader failure")                          \
	X(VD_ETCD_TIMEOUT_CONNECTION_LOST, 14, VD_UNAVAILABLE, 1,                                            \
	  "etcdserver: request timed out, possibly due to connection lost")                                  \
	X(VD_ETCD_TIMEOUT_APPLIED_INDEX, 14, VD_UNAVAILABLE, 0,                                              \
	  "etcdserver: request timed out, waiting for the applied index took too long")                      \
	X(VD_ETCD_UNHEALTHY, 14, VD_UNAVAILABLE, 1, "etcdserver: unhealthy cluster")                         \
	X(VD_ETCD_CORRUPT, 15, VD_CORRUPT, 1, "etcdserver: corrupt cluster")                                 \
	X(VD_ETCD_NOT_SUPPORTED_FOR_LEARNER, 9, VD_UNSUPPORTED, 1,                                           \
	  "etcdserver: rpc not supported for learner")                                                       \
	X(VD_ETCD_BAD_LEADER_TRANSFEREE, 9, VD_INVALID_ARGUMENT, 1, "etcdserver: bad leader transferee")     \
	X(VD_ETCD_WRONG_DOWNGRADE_VERSION_FORMAT, 3, VD_INVALID_ARGUMENT, 1,                                 \
	  "etcdserver: wrong downgrade target version format")                                               \
	X(VD_ETCD_INVALID_DOWNGRADE_TARGET_VERSION, 3, VD_INVALID_ARGUMENT, 1,                               \
	  "etcdserver: invalid downgrade target version")                                                    \
	X(VD_ETCD_CLUSTER_VERSION_UNAVAILABLE, 9, VD_NOT_READY, 1,                                           \
	  "etcdserver: cluster version not found during downgrade")                                          \
	X(VD_ETCD_DOWNGRADE_IN_PROCESS, 9, VD_CONFLICT, 1,                                                   \
	  "etcdserver: cluster has a downgrade job in progress")                                             \
	X(VD_ETCD_NO_INFLIGHT_DOWNGRADE, 9, VD_NOT_FOUND, 1, "etcdserver: no inflight downgrade job")        \
	X(VD_ETCD_CANCELED, 1, VD_CANCELED, 0, "etcdserver: request canceled")                               \
	X(VD_ETCD_DEADLINE_EXCEEDED, 4, VD_TIMEOUT, 0, "etcdserver: context deadline exceeded")

enum vd_etcd_code {
	VD_ETCD_OTHER, /* an error outside the table: see grpc_code and error.message */
#define VD_ETCD_CODE_ENUM(name, grpc, status, known, message) name,
	VD_ETCD_ERROR_MAP(VD_ETCD_CODE_ENUM)
#undef VD_ETCD_CODE_ENUM
		VD_ETCD_CODE_COUNT
};

struct vd_etcd_error {
	/* error.code: from the table if the message is known. Otherwise from the gRPC code: VD_TIMEOUT,
	 * VD_CANCELED, VD_UNAVAILABLE, VD_TOO_BIG (message size limit), VD_FULL (another limit),
	 * VD_UNSUPPORTED (Unimplemented), VD_FORBIDDEN, VD_NOT_FOUND, VD_INVALID_ARGUMENT,
	 * VD_PRECONDITION, VD_CORRUPT, VD_INTERNAL. Raised by the client: VD_CLOSED (the client closes),
	 * VD_CORRUPT (malformed answer), VD_NOMEM. error.message: the text of a known error, otherwise
	 * "rpc error: code = <Code> desc = <text>". The message of a call that timed out without reaching
	 * a member names the endpoint and the cause. */
	struct vd_error	  error;
	enum vd_etcd_code code;
	int		  grpc_code;
	bool		  maybe_applied; /* the write may or may not have been applied */
	char		  endpoint[128]; /* endpoint that answered; "" if none was reached */
};

struct vd_etcd_header {
	uint64_t cluster_id;
	uint64_t member_id;
	vd_rev	 revision;
	uint64_t raft_term;
};

/* ---- The client ---- */

struct vd_etcd;

struct vd_etcd_options {
	size_t size; /* sizeof(struct vd_etcd_options) */
	/* host:port, or a URL with scheme http, https, unix or unixs; the first endpoint's scheme decides
	 * for all whether TLS is used; without a scheme TLS is used if ca_path, cert_path or server_name
	 * is set */
	const char *const *endpoints;
	size_t		   endpoint_count;
	const char	  *ca_path; /* CA bundle (PEM) for the server's certificate; NULL: the system's */
	const char	  *cert_path;
	const char	  *key_path;
	/* name expected in the server's certificate; NULL: host of the endpoint */
	const char *server_name;
	/* User name, with password: the client fetches a token and renews it. If the server has
	 * authentication disabled, the client continues without one. */
	const char *user;
	const char *password;
	const char *token; /* fixed token, instead of user and password */
	/* limit of the token request and the version check; default 20 s; 0: none */
	vd_dur dial_timeout;
	/* limit of calls without their own timeout; 0: none, as in clientv3; default 0 */
	vd_dur call_timeout;
	/* interval of HTTP/2 keepalive pings; default 30 s; 0: off; at least 5 s */
	vd_dur	 keepalive_time;
	vd_dur	 keepalive_timeout; /* time to wait for the answer to a ping; default 10 s */
	size_t	 send_size_max;	    /* maximum size of a request in bytes; default 2 MiB */
	size_t	 receive_size_max;  /* maximum size of a response in bytes; default INT32_MAX */
	unsigned attempts_max;	    /* maximum attempts of a repeatable call; default 100 */
	/* The first call asks all members for their version; VD_UNSUPPORTED if one is more than one minor
	 * version older than the client. */
	bool reject_old_cluster;
	/* size of one watch's undelivered responses, in bytes, at which the watch pauses; default 4 MiB */
	size_t			       watch_buffer_bytes;
	const struct vd_rpc_transport *transport; /* transport, see vedette/rpc.h; NULL: vd_rpc_http2() */
};
#define VD_ETCD_OPTIONS_INIT                                                                                 \
	{                                                                                                    \
		.size = sizeof(struct vd_etcd_options), .dial_timeout = { (int64_t) 20 * 1000000000 },       \
		.keepalive_time = { (int64_t) 30 * 1000000000 },                                             \
		.keepalive_timeout = { (int64_t) 10 * 1000000000 }, .send_size_max = 2u << 20,               \
		.receive_size_max = INT32_MAX, .attempts_max = 100, .watch_buffer_bytes = 4u << 20           \
	}

/* Creates a client; does not wait for the network. The caller owns it and closes it. Errors:
 * VD_INVALID_ARGUMENT, with clientv3's message and the invalid endpoint or file; VD_NOMEM; VD_IO.
 * VD_INVALID_ARGUMENT includes: no endpoint, a token together with a user, a send limit above the receive
 * limit. After a failed call nothing uses env. */
VD_API VD_MUST_USE vd_status vd_etcd_open(const struct vd_env *env, const struct vd_etcd_options *options,
					  struct vd_etcd **ret_client, struct vd_error *reterr);
/* Closes the client: outstanding calls answer VD_CLOSED, watches end. done (may be NULL) is called when
 * the client is freed. Watches stay valid until their owners close them. */
VD_API void vd_etcd_close(struct vd_etcd *client, void (*done)(void *arg), void *arg);
/* Closes the client and blocks until done. Returns NULL. Must not be called in an actor's handler. */
VD_API struct vd_etcd *vd_etcd_close_wait(struct vd_etcd *client);
/* Replaces the endpoints (copied); streams to removed endpoints move to another one. Errors:
 * VD_INVALID_ARGUMENT, VD_NOMEM, VD_CLOSED. */
VD_API VD_MUST_USE vd_status vd_etcd_set_endpoints(struct vd_etcd *client, const char *const *endpoints,
						   size_t count, struct vd_error *reterr);
/* Returns the number of endpoints, whether connected or not. */
VD_API size_t vd_etcd_endpoint_count(const struct vd_etcd *client);
/* Returns whether an endpoint is connected and, if not, the reason in ret_text (size bytes, truncated).
 * VD_NOT_FOUND: no such index. */
VD_API VD_MUST_USE vd_status vd_etcd_endpoint_state(const struct vd_etcd *client, size_t index,
						    bool *ret_ready, char *ret_text, size_t size);

/* A metadata entry of a call: a gRPC header. */
struct vd_etcd_pair {
	const char     *key;
	struct vd_bytes value;
};

/* Options of one call; NULL: the defaults.
 *
 * A call waits for a connection until its timeout. Reads and other repeatable calls (lease grants and
 * revocations, alarms, moving the leader, opening a snapshot or keep-alive stream) are repeated if a member
 * was unavailable. A write is repeated only if none of its bytes left this process, so that it is applied at
 * most once; clientv3 repeats some writes after Canceled or DeadlineExceeded. If a token expired, the
 * client renews it and repeats the call. */
struct vd_etcd_call {
	vd_dur timeout; /* 0: call_timeout of the client */
	/* a member without a leader answers with an error (metadata hasleader) */
	bool require_leader;
	/* further metadata: keys of [0-9a-z_.-], values of printable ASCII (arbitrary bytes if the key
	 * ends in "-bin") */
	const struct vd_etcd_pair *metadata;
	size_t			   metadata_count;
	/* use only this endpoint of the list (maintenance calls); NULL: any */
	const char *endpoint;
	uint64_t   *ret_id; /* receives the ID of the call, for vd_etcd_cancel; NULL: not needed */
};
/* Cancels a call: it answers VD_CANCELED, unless its answer is already being delivered. Unknown IDs are
 * ignored. */
VD_API void vd_etcd_cancel(struct vd_etcd *client, uint64_t id);

/* ---- KV ---- */

enum vd_etcd_sort_order { VD_ETCD_SORT_NONE, VD_ETCD_SORT_ASCEND, VD_ETCD_SORT_DESCEND };
enum vd_etcd_sort_target {
	VD_ETCD_SORT_KEY,
	VD_ETCD_SORT_VERSION,
	VD_ETCD_SORT_CREATE,
	VD_ETCD_SORT_MOD,
	VD_ETCD_SORT_VALUE
};

struct vd_etcd_range_request {
	struct vd_range_request	 range;
	enum vd_etcd_sort_order	 sort_order; /* ascending by key is sent as NONE */
	enum vd_etcd_sort_target sort_target;
	/* 0: no bound */
	vd_rev min_mod_revision, max_mod_revision, min_create_revision, max_create_revision;
};

/* Receives a result. error is NULL on success; header and result are NULL on failure. The callbacks below
 * follow the same rule. */
typedef void (*vd_etcd_range_fn)(void *arg, const struct vd_etcd_error *error,
				 const struct vd_etcd_header *header, const struct vd_range_result *result);
/* Reads a key or an interval. */
VD_API VD_MUST_USE vd_status vd_etcd_range(struct vd_etcd *client, const struct vd_etcd_call *call,
					   const struct vd_etcd_range_request *request, vd_etcd_range_fn done,
					   void *arg);
/* RangeStream (etcd 3.7): done is called with last false for each part, then once with last true and the
 * error or, at the end, NULL; result is NULL then. Servers without RangeStream: VD_UNSUPPORTED. done
 * returns true to receive the next part at once; false: only after vd_etcd_range_stream_resume (which may
 * be called inside done), and the server waits until then. The value returned for the last call is
 * ignored. */
typedef bool (*vd_etcd_range_stream_fn)(void *arg, const struct vd_etcd_error *error,
					const struct vd_etcd_header  *header,
					const struct vd_range_result *result, bool last);
VD_API VD_MUST_USE vd_status vd_etcd_range_stream(struct vd_etcd *client, const struct vd_etcd_call *call,
						  const struct vd_etcd_range_request *request,
						  vd_etcd_range_stream_fn done, void *arg);
/* Requests the next part after done returned false; once for each such part. id: from call->ret_id.
 * Unknown IDs are ignored. */
VD_API void vd_etcd_range_stream_resume(struct vd_etcd *client, uint64_t id);
/* Receives the result of vd_etcd_put (op->kind VD_OP_PUT) or vd_etcd_delete (op->kind VD_OP_DELETE). */
typedef void (*vd_etcd_op_fn)(void *arg, const struct vd_etcd_error *error,
			      const struct vd_etcd_header *header, const struct vd_op_result *result);
/* Puts one key. */
VD_API VD_MUST_USE vd_status vd_etcd_put(struct vd_etcd *client, const struct vd_etcd_call *call,
					 const struct vd_op *op, vd_etcd_op_fn done, void *arg);
/* Deletes a key or an interval. */
VD_API VD_MUST_USE vd_status vd_etcd_delete(struct vd_etcd *client, const struct vd_etcd_call *call,
					    const struct vd_op *op, vd_etcd_op_fn done, void *arg);
typedef void (*vd_etcd_txn_fn)(void *arg, const struct vd_etcd_error *error,
			       const struct vd_etcd_header *header, const struct vd_txn_result *result);
/* Runs a transaction; see struct vd_txn_request. */
VD_API VD_MUST_USE vd_status vd_etcd_txn(struct vd_etcd *client, const struct vd_etcd_call *call,
					 const struct vd_txn_request *request, vd_etcd_txn_fn done,
					 void *arg);
typedef void (*vd_etcd_done_fn)(void *arg, const struct vd_etcd_error *error,
				const struct vd_etcd_header *header);
/* Compacts the history up to revision. physical: the answer waits until the records are removed. */
VD_API VD_MUST_USE vd_status vd_etcd_compact(struct vd_etcd *client, const struct vd_etcd_call *call,
					     vd_rev revision, bool physical, vd_etcd_done_fn done, void *arg);

/* Returns, as range_end, the end of the range of keys with this prefix: the prefix with its last byte
 * below 0xff incremented and the rest removed, or one zero byte if there is no such byte. An empty prefix
 * also gives one zero byte; with an empty key it means all keys in reads, deletes and compares. buffer
 * holds the result: prefix.size bytes, at least 1. */
VD_API struct vd_bytes vd_etcd_prefix_end(struct vd_bytes prefix, char *buffer);

/* ---- Leases ---- */

typedef void (*vd_etcd_lease_fn)(void *arg, const struct vd_etcd_error *error,
				 const struct vd_etcd_header *header, const struct vd_lease_result *result);
/* Grants a lease of ttl_s seconds. id 0: the server chooses the ID. */
VD_API VD_MUST_USE vd_status vd_etcd_lease_grant(struct vd_etcd *client, const struct vd_etcd_call *call,
						 int64_t id, int64_t ttl_s, vd_etcd_lease_fn done, void *arg);
/* Revokes a lease and deletes its keys. Error: VD_LEASE_NOT_FOUND. */
VD_API VD_MUST_USE vd_status vd_etcd_lease_revoke(struct vd_etcd *client, const struct vd_etcd_call *call,
						  int64_t id, vd_etcd_done_fn done, void *arg);
/* Renews a lease once. VD_LEASE_NOT_FOUND: it does not exist or has expired. */
VD_API VD_MUST_USE vd_status vd_etcd_lease_keep_alive_once(struct vd_etcd	     *client,
							   const struct vd_etcd_call *call, int64_t id,
							   vd_etcd_lease_fn done, void *arg);
/* Reads the remaining time and, if keys, the keys of a lease. An unknown lease is no error: ttl_s is -1. */
VD_API VD_MUST_USE vd_status vd_etcd_lease_time_to_live(struct vd_etcd		  *client,
							const struct vd_etcd_call *call, int64_t id,
							bool keys, vd_etcd_lease_fn done, void *arg);
typedef void (*vd_etcd_leases_fn)(void *arg, const struct vd_etcd_error *error,
				  const struct vd_etcd_header *header, const int64_t *ids, size_t count);
/* Lists the IDs of all leases. */
VD_API VD_MUST_USE vd_status vd_etcd_lease_list(struct vd_etcd *client, const struct vd_etcd_call *call,
						vd_etcd_leases_fn done, void *arg);

/* Keeps a lease alive until stopped: renews it at once, then every third of its TTL. on_renewal is called for
 * each answer, and a last time with the error that ended the renewals: VD_LEASE_NOT_FOUND (expired or
 * revoked), VD_TIMEOUT (not renewed in time), VD_UNAVAILABLE with VD_ETCD_NO_LEADER (only with
 * call->require_leader), VD_CLOSED. Callers for one lease share its renewals. Of call only require_leader
 * is used. */
struct vd_etcd_keep_alive;
VD_API VD_MUST_USE vd_status vd_etcd_keep_alive_start(struct vd_etcd *client, const struct vd_etcd_call *call,
						      int64_t id, vd_etcd_lease_fn on_renewal, void *arg,
						      struct vd_etcd_keep_alive **ret_keep_alive);
/* Stops the renewals for this caller and frees keep_alive; once; keep_alive may be NULL. No on_renewal call
 * after return: this function blocks until a call in progress returns, unless it is called inside
 * on_renewal. Allowed after the client was closed. */
VD_API void vd_etcd_keep_alive_stop(struct vd_etcd_keep_alive *keep_alive);

/* ---- Maintenance, cluster ---- */

/* The state of one member. */
struct vd_etcd_status {
	const char	  *endpoint;
	const char	  *version;
	const char	  *storage_version;
	int64_t		   db_size, db_size_in_use, db_size_quota; /* in bytes */
	uint64_t	   leader, raft_index, raft_term, raft_applied_index;
	bool		   is_learner;
	const char *const *errors;
	size_t		   error_count;
};
typedef void (*vd_etcd_status_fn)(void *arg, const struct vd_etcd_error *error,
				  const struct vd_etcd_header *header, const struct vd_etcd_status *status);
/* Reads the state of the member at the endpoint that call names. */
VD_API VD_MUST_USE vd_status vd_etcd_status_get(struct vd_etcd *client, const struct vd_etcd_call *call,
						vd_etcd_status_fn done, void *arg);

enum vd_etcd_alarm_kind { VD_ETCD_ALARM_NONE, VD_ETCD_ALARM_NO_SPACE, VD_ETCD_ALARM_CORRUPT };
enum vd_etcd_alarm_action { VD_ETCD_ALARM_GET, VD_ETCD_ALARM_ACTIVATE, VD_ETCD_ALARM_DEACTIVATE };
struct vd_etcd_alarm {
	uint64_t		member_id;
	enum vd_etcd_alarm_kind kind;
};
typedef void (*vd_etcd_alarms_fn)(void *arg, const struct vd_etcd_error *error,
				  const struct vd_etcd_header *header, const struct vd_etcd_alarm *alarms,
				  size_t count);
/* Lists, raises or clears alarms; done receives the alarms concerned. alarm: their member and kind; for a
 * list of all kinds: NULL or VD_ETCD_ALARM_NONE. */
VD_API VD_MUST_USE vd_status vd_etcd_alarm(struct vd_etcd *client, const struct vd_etcd_call *call,
					   enum vd_etcd_alarm_action   action,
					   const struct vd_etcd_alarm *alarm, vd_etcd_alarms_fn done,
					   void *arg);
/* The following calls, until vd_etcd_snapshot, concern the member at the endpoint that call names. */

/* Defragments the member's backend file; its other calls wait meanwhile. */
VD_API VD_MUST_USE vd_status vd_etcd_defragment(struct vd_etcd *client, const struct vd_etcd_call *call,
						vd_etcd_done_fn done, void *arg);
/* Receives a hash of the records up to revision hashed. compacted: compact revision when it was computed. */
typedef void (*vd_etcd_hash_fn)(void *arg, const struct vd_etcd_error *error,
				const struct vd_etcd_header *header, uint32_t hash, vd_rev compacted,
				vd_rev hashed);
/* Computes the hash of the member's records up to revision (0: the current one), for a comparison of
 * members. */
VD_API VD_MUST_USE vd_status vd_etcd_hash_kv(struct vd_etcd *client, const struct vd_etcd_call *call,
					     vd_rev revision, vd_etcd_hash_fn done, void *arg);
/* Makes another member the leader; the member that is asked must be the leader. */
VD_API VD_MUST_USE vd_status vd_etcd_move_leader(struct vd_etcd *client, const struct vd_etcd_call *call,
						 uint64_t member_id, vd_etcd_done_fn done, void *arg);
/* Receives the backend file in parts: last is false for each part, and true once at the end. The file ends
 * with its SHA-256, which the client verifies: VD_CORRUPT on a mismatch. */
typedef void (*vd_etcd_snapshot_fn)(void *arg, const struct vd_etcd_error *error, struct vd_bytes part,
				    uint64_t remaining_bytes, bool last);
/* Reads the member's backend file. */
VD_API VD_MUST_USE vd_status vd_etcd_snapshot(struct vd_etcd *client, const struct vd_etcd_call *call,
					      vd_etcd_snapshot_fn done, void *arg);

struct vd_etcd_member {
	uint64_t	   id;
	const char	  *name;
	const char *const *peer_urls;
	size_t		   peer_url_count;
	const char *const *client_urls;
	size_t		   client_url_count;
	bool		   is_learner;
};
typedef void (*vd_etcd_members_fn)(void *arg, const struct vd_etcd_error *error,
				   const struct vd_etcd_header *header, const struct vd_etcd_member *members,
				   size_t count);
/* Lists the members. linearizable false: as the answering member knows them. */
VD_API VD_MUST_USE vd_status vd_etcd_member_list(struct vd_etcd *client, const struct vd_etcd_call *call,
						 bool linearizable, vd_etcd_members_fn done, void *arg);

/* ---- Auth ---- */

typedef void (*vd_etcd_auth_status_fn)(void *arg, const struct vd_etcd_error *error,
				       const struct vd_etcd_header *header, bool enabled, uint64_t revision);
/* Reads whether authentication is enabled, and the revision of the users and roles. */
VD_API VD_MUST_USE vd_status vd_etcd_auth_status(struct vd_etcd *client, const struct vd_etcd_call *call,
						 vd_etcd_auth_status_fn done, void *arg);
/* Enables authentication, or disables it if enable is false. */
VD_API VD_MUST_USE vd_status vd_etcd_auth_enable(struct vd_etcd *client, const struct vd_etcd_call *call,
						 bool enable, vd_etcd_done_fn done, void *arg);
/* Adds a user. Error: VD_EXISTS. */
VD_API VD_MUST_USE vd_status vd_etcd_user_add(struct vd_etcd *client, const struct vd_etcd_call *call,
					      const char *name, const char *password, vd_etcd_done_fn done,
					      void *arg);
/* Deletes a user. Error: VD_NOT_FOUND. */
VD_API VD_MUST_USE vd_status vd_etcd_user_delete(struct vd_etcd *client, const struct vd_etcd_call *call,
						 const char *name, vd_etcd_done_fn done, void *arg);
/* Changes the password of a user, whose tokens become invalid. Error: VD_NOT_FOUND. */
VD_API VD_MUST_USE vd_status vd_etcd_user_change_password(struct vd_etcd	    *client,
							  const struct vd_etcd_call *call, const char *name,
							  const char *password, vd_etcd_done_fn done,
							  void *arg);
/* Gives a user a role. Error: VD_NOT_FOUND. */
VD_API VD_MUST_USE vd_status vd_etcd_user_grant_role(struct vd_etcd *client, const struct vd_etcd_call *call,
						     const char *user, const char *role, vd_etcd_done_fn done,
						     void *arg);
/* Adds a role without permissions. Error: VD_EXISTS. */
VD_API VD_MUST_USE vd_status vd_etcd_role_add(struct vd_etcd *client, const struct vd_etcd_call *call,
					      const char *name, vd_etcd_done_fn done, void *arg);
enum vd_etcd_permission { VD_ETCD_READ, VD_ETCD_WRITE, VD_ETCD_READ_WRITE };
/* Grants a permission on a key or range to a role; key and range_end as in vd_range_request. */
VD_API VD_MUST_USE vd_status vd_etcd_role_grant(struct vd_etcd *client, const struct vd_etcd_call *call,
						const char *role, enum vd_etcd_permission permission,
						struct vd_bytes key, struct vd_bytes range_end,
						vd_etcd_done_fn done, void *arg);

/* ---- Watch ----
 *
 * Watches with equal metadata and equal require_leader share one stream. A watch survives lost connections:
 * the client creates it again from the first undelivered revision, without gaps or duplicates. Responses
 * are pulled. Unread responses are buffered up to watch_buffer_bytes; then the client cancels the watch at
 * the server, and creates it again when the buffer was read: nothing is lost, and other watches do not
 * wait. Of consecutive unread progress responses only the last is kept. */

struct vd_etcd_watch;

struct vd_etcd_watch_request {
	struct vd_bytes key;
	struct vd_bytes range_end; /* as in vd_range_request */
	vd_rev		revision;  /* first revision to deliver; 0: from now on */
	bool		previous;  /* events include the previous record */
	bool		progress;  /* periodic progress responses while idle */
	bool		fragment;  /* the server may split a large response; events are delivered whole */
	bool		no_put;
	bool		no_delete;
	bool		created_notify; /* deliver one response with created set, before any event */
	bool		require_leader; /* as in vd_etcd_call */
	const struct vd_etcd_pair *metadata;
	size_t			   metadata_count;
	/* as in vd_store_watch_request: after VD_AGAIN, on any thread; must not block or call the client */
	void (*ready)(void *arg);
	void			       *ready_arg;
	const struct vd_watch_observer *observer; /* as in vd_store_watch_request */
};

struct vd_etcd_watch_response {
	struct vd_etcd_header header;
	bool		      created;
	/* events of whole revisions; borrowed until the next call for this watch */
	const struct vd_store_event *events;
	size_t			     event_count;
};
/* Returns true for a progress response: all events up to header.revision were delivered. */
static inline bool vd_etcd_watch_is_progress(const struct vd_etcd_watch_response *response)
{
	return response->event_count == 0 && !response->created && response->header.revision != 0;
}

/* Opens a watch; never blocks. The caller owns *ret_watch and closes it. vd_etcd_watch_next reports
 * failures. */
VD_API VD_MUST_USE vd_status vd_etcd_watch_open(struct vd_etcd			   *client,
						const struct vd_etcd_watch_request *request,
						struct vd_etcd_watch **ret_watch, struct vd_error *reterr);
/* Takes the next response. VD_AGAIN: nothing now, ready() will be called. Any other status but VD_OK ends
 * the watch, after all earlier responses, and later calls return it again: VD_EXPIRED (error.compacted:
 * the lowest revision that can be watched), VD_CANCELED (by the server, with its reason),
 * VD_TOO_LARGE_REVISION (by the server without a reason), VD_UNAVAILABLE (no leader), VD_CLOSED, or the
 * error that ended the stream (any gRPC code except Unavailable and Internal). Never blocks; one caller at
 * a time. */
VD_API VD_MUST_USE vd_status vd_etcd_watch_next(struct vd_etcd_watch	      *watch,
						struct vd_etcd_watch_response *ret_response,
						struct vd_etcd_error	      *reterr);
/* Closes the watch; watch may be NULL. No ready() call after return. Allowed at any time, also after the
 * client was closed. */
VD_API void vd_etcd_watch_close(struct vd_etcd_watch *watch);
/* Requests progress on the stream of this watch. The server's answer is delivered to each watch of the
 * stream that is synced. If the watch has ended, returns the reason. */
VD_API vd_status vd_etcd_watch_progress(struct vd_etcd_watch *watch);
/* Requests progress on the stream for the metadata and require_leader of call (NULL: the defaults); opens a
 * stream if there is none. */
VD_API VD_MUST_USE vd_status vd_etcd_request_progress(struct vd_etcd *client, const struct vd_etcd_call *call,
						      struct vd_error *reterr);

/* ---- As a store ---- */

struct vd_etcd_store_options {
	size_t			      size; /* sizeof(struct vd_etcd_store_options) */
	const struct vd_etcd_options *etcd;
	vd_dur			      call_timeout; /* limit of one operation of the store; default 10 s */
	/* interval at which this process compacts, as a kube-apiserver does; default 5 min; 0: never */
	vd_dur compaction_interval;
	/* time that vd_store_open_etcd waits for a server's first answer; default 20 s; 0: does not wait */
	vd_dur start_timeout;
};
#define VD_ETCD_STORE_OPTIONS_INIT                                                                           \
	{                                                                                                    \
		.size = sizeof(struct vd_etcd_store_options), .call_timeout = { (int64_t) 10 * 1000000000 }, \
		.compaction_interval = { (int64_t) 300 * 1000000000 }, .start_timeout = {                    \
			(int64_t) 20 * 1000000000                                                            \
		}                                                                                            \
	}
/* Opens a store over an etcd cluster. Blocks at most for start_timeout; then returns VD_UNAVAILABLE with
 * the endpoint and the cause. Further errors as for vd_etcd_open. The caller owns the store and closes it.
 * Watches require a leader: a member without one ends them. */
VD_API VD_MUST_USE vd_status vd_store_open_etcd(const struct vd_env		   *env,
						const struct vd_etcd_store_options *options,
						struct vd_store **ret_store, struct vd_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
