/* An etcd v3 client: KV, Watch, Lease, Maintenance, Cluster and Auth calls, usable by itself; and a vd_store over it.
 *
 * Behaves as Go's clientv3 (etcd client/v3; rules E-2xx) and is written for programs that never block: every call answers
 * through a callback.
 *
 * The contract of vedette/store.h holds: a call that returns an error never calls its callback; one that returned VD_OK
 * calls it exactly once (streams of answers: see there). Callbacks come on an actor of the env given at the start, never on
 * a thread of the transport; they must not block and may start further calls. Requests are borrowed for the call only;
 * results and errors are lent for the callback. All functions may be called from any thread and none blocks, unless it says
 * otherwise.
 *
 * Built with -Detcd=enabled (the default); without it nothing here is exported.
 */
#ifndef VEDETTE_ETCD_H
#define VEDETTE_ETCD_H

#include <vedette/rpc.h>
#include <vedette/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Errors ---- */

/* X(name, gRPC code, status, whether clients know it by its message (E-132), message). A server's error is known by its
 * message, never by its code. */
#define VD_ETCD_ERROR_MAP(X)                                                                                                    \
	X(VD_ETCD_EMPTY_KEY, 3, VD_INVALID_ARGUMENT, 1, "etcdserver: key is not provided")                                      \
	X(VD_ETCD_KEY_NOT_FOUND, 3, VD_NOT_FOUND, 1, "etcdserver: key not found")                                               \
	X(VD_ETCD_VALUE_PROVIDED, 3, VD_INVALID_ARGUMENT, 1, "etcdserver: value is provided")                                   \
	X(VD_ETCD_LEASE_PROVIDED, 3, VD_INVALID_ARGUMENT, 1, "etcdserver: lease is provided")                                   \
	X(VD_ETCD_TOO_MANY_OPS, 3, VD_TOO_BIG, 1, "etcdserver: too many operations in txn request")                             \
	X(VD_ETCD_DUPLICATE_KEY, 3, VD_DUPLICATE_KEY, 1, "etcdserver: duplicate key given in txn request")                      \
	X(VD_ETCD_INVALID_CLIENT_API_VERSION, 3, VD_INVALID_ARGUMENT, 0, "etcdserver: invalid client api version")              \
	X(VD_ETCD_INVALID_SORT_OPTION, 3, VD_INVALID_ARGUMENT, 1, "etcdserver: invalid sort option")                            \
	X(VD_ETCD_COMPACTED, 11, VD_EXPIRED, 1, "etcdserver: mvcc: required revision has been compacted")                       \
	X(VD_ETCD_FUTURE_REVISION, 11, VD_TOO_LARGE_REVISION, 1, "etcdserver: mvcc: required revision is a future revision")    \
	X(VD_ETCD_NO_SPACE, 8, VD_NO_SPACE, 1, "etcdserver: mvcc: database space exceeded")                                     \
	X(VD_ETCD_LEASE_NOT_FOUND, 5, VD_LEASE_NOT_FOUND, 1, "etcdserver: requested lease not found")                           \
	X(VD_ETCD_LEASE_EXIST, 9, VD_LEASE_EXISTS, 1, "etcdserver: lease already exists")                                       \
	X(VD_ETCD_LEASE_TTL_TOO_LARGE, 11, VD_INVALID_ARGUMENT, 1, "etcdserver: too large lease TTL")                           \
	X(VD_ETCD_WATCH_CANCELED, 1, VD_CANCELED, 0, "etcdserver: watch canceled")                                              \
	X(VD_ETCD_MEMBER_EXIST, 9, VD_EXISTS, 1, "etcdserver: member ID already exist")                                         \
	X(VD_ETCD_PEER_URL_EXIST, 9, VD_EXISTS, 1, "etcdserver: Peer URLs already exists")                                      \
	X(VD_ETCD_MEMBER_NOT_ENOUGH_STARTED, 9, VD_UNAVAILABLE, 1,                                                              \
	  "etcdserver: re-configuration failed due to not enough started members")                                              \
	X(VD_ETCD_MEMBER_BAD_URLS, 3, VD_INVALID_ARGUMENT, 1, "etcdserver: given member URLs are invalid")                      \
	X(VD_ETCD_MEMBER_NOT_FOUND, 5, VD_NOT_FOUND, 1, "etcdserver: member not found")                                         \
	X(VD_ETCD_MEMBER_NOT_LEARNER, 9, VD_INVALID_ARGUMENT, 1, "etcdserver: can only promote a learner member")               \
	X(VD_ETCD_LEARNER_NOT_READY, 9, VD_NOT_READY, 1,                                                                        \
	  "etcdserver: can only promote a learner member which is in sync with leader")                                         \
	X(VD_ETCD_TOO_MANY_LEARNERS, 9, VD_FULL, 1, "etcdserver: too many learner members in cluster")                          \
	X(VD_ETCD_CLUSTER_ID_MISMATCH, 9, VD_INVALID_ARGUMENT, 1, "etcdserver: cluster ID mismatch")                            \
	X(VD_ETCD_REQUEST_TOO_LARGE, 3, VD_TOO_BIG, 1, "etcdserver: request is too large")                                      \
	X(VD_ETCD_TOO_MANY_REQUESTS, 8, VD_FULL, 1, "etcdserver: too many requests")                                            \
	X(VD_ETCD_ROOT_USER_NOT_EXIST, 9, VD_FORBIDDEN, 1, "etcdserver: root user does not exist")                              \
	X(VD_ETCD_ROOT_ROLE_NOT_EXIST, 9, VD_FORBIDDEN, 1, "etcdserver: root user does not have root role")                     \
	X(VD_ETCD_USER_ALREADY_EXIST, 9, VD_EXISTS, 1, "etcdserver: user name already exists")                                  \
	X(VD_ETCD_USER_EMPTY, 3, VD_FORBIDDEN, 1, "etcdserver: user name is empty")                                             \
	X(VD_ETCD_USER_NOT_FOUND, 9, VD_NOT_FOUND, 1, "etcdserver: user name not found")                                        \
	X(VD_ETCD_ROLE_ALREADY_EXIST, 9, VD_EXISTS, 1, "etcdserver: role name already exists")                                  \
	X(VD_ETCD_ROLE_NOT_FOUND, 9, VD_NOT_FOUND, 1, "etcdserver: role name not found")                                        \
	X(VD_ETCD_ROLE_EMPTY, 3, VD_INVALID_ARGUMENT, 1, "etcdserver: role name is empty")                                      \
	X(VD_ETCD_AUTH_FAILED, 3, VD_FORBIDDEN, 1, "etcdserver: authentication failed, invalid user ID or password")            \
	X(VD_ETCD_PERMISSION_NOT_GIVEN, 3, VD_INVALID_ARGUMENT, 0, "etcdserver: permission not given")                          \
	X(VD_ETCD_PERMISSION_DENIED, 7, VD_FORBIDDEN, 1, "etcdserver: permission denied")                                       \
	X(VD_ETCD_ROLE_NOT_GRANTED, 9, VD_NOT_FOUND, 1, "etcdserver: role is not granted to the user")                          \
	X(VD_ETCD_PERMISSION_NOT_GRANTED, 9, VD_NOT_FOUND, 1, "etcdserver: permission is not granted to the role")              \
	X(VD_ETCD_AUTH_NOT_ENABLED, 9, VD_UNSUPPORTED, 1, "etcdserver: authentication is not enabled")                          \
	X(VD_ETCD_INVALID_AUTH_TOKEN, 16, VD_FORBIDDEN, 1, "etcdserver: invalid auth token")                                    \
	X(VD_ETCD_INVALID_AUTH_MANAGEMENT, 3, VD_INVALID_ARGUMENT, 1, "etcdserver: invalid auth management")                    \
	X(VD_ETCD_AUTH_OLD_REVISION, 3, VD_CONFLICT, 1, "etcdserver: revision of auth store is old")                            \
	X(VD_ETCD_NO_LEADER, 14, VD_UNAVAILABLE, 1, "etcdserver: no leader")                                                    \
	X(VD_ETCD_NOT_LEADER, 9, VD_UNAVAILABLE, 1, "etcdserver: not leader")                                                   \
	X(VD_ETCD_LEADER_CHANGED, 14, VD_UNAVAILABLE, 1, "etcdserver: leader changed")                                          \
	X(VD_ETCD_NOT_CAPABLE, 9, VD_UNSUPPORTED, 1, "etcdserver: not capable")                                                 \
	X(VD_ETCD_STOPPED, 14, VD_UNAVAILABLE, 1, "etcdserver: server stopped")                                                 \
	X(VD_ETCD_TIMEOUT, 14, VD_UNAVAILABLE, 1, "etcdserver: request timed out")                                              \
	X(VD_ETCD_TIMEOUT_LEADER_FAIL, 14, VD_UNAVAILABLE, 1,                                                                   \
	  "etcdserver: request timed out, possibly due to previous leader failure")                                             \
	X(VD_ETCD_TIMEOUT_CONNECTION_LOST, 14, VD_UNAVAILABLE, 1,                                                               \
	  "etcdserver: request timed out, possibly due to connection lost")                                                     \
	X(VD_ETCD_TIMEOUT_APPLIED_INDEX, 14, VD_UNAVAILABLE, 0,                                                                 \
	  "etcdserver: request timed out, waiting for the applied index took too long")                                         \
	X(VD_ETCD_UNHEALTHY, 14, VD_UNAVAILABLE, 1, "etcdserver: unhealthy cluster")                                            \
	X(VD_ETCD_CORRUPT, 15, VD_CORRUPT, 1, "etcdserver: corrupt cluster")                                                    \
	X(VD_ETCD_NOT_SUPPORTED_FOR_LEARNER, 9, VD_UNSUPPORTED, 1, "etcdserver: rpc not supported for learner")                 \
	X(VD_ETCD_BAD_LEADER_TRANSFEREE, 9, VD_INVALID_ARGUMENT, 1, "etcdserver: bad leader transferee")                        \
	X(VD_ETCD_WRONG_DOWNGRADE_VERSION_FORMAT, 3, VD_INVALID_ARGUMENT, 1,                                                    \
	  "etcdserver: wrong downgrade target version format")                                                                  \
	X(VD_ETCD_INVALID_DOWNGRADE_TARGET_VERSION, 3, VD_INVALID_ARGUMENT, 1, "etcdserver: invalid downgrade target version")  \
	X(VD_ETCD_CLUSTER_VERSION_UNAVAILABLE, 9, VD_NOT_READY, 1, "etcdserver: cluster version not found during downgrade")    \
	X(VD_ETCD_DOWNGRADE_IN_PROCESS, 9, VD_CONFLICT, 1, "etcdserver: cluster has a downgrade job in progress")               \
	X(VD_ETCD_NO_INFLIGHT_DOWNGRADE, 9, VD_NOT_FOUND, 1, "etcdserver: no inflight downgrade job")                           \
	X(VD_ETCD_CANCELED, 1, VD_CANCELED, 0, "etcdserver: request canceled")                                                  \
	X(VD_ETCD_DEADLINE_EXCEEDED, 4, VD_TIMEOUT, 0, "etcdserver: context deadline exceeded")

enum vd_etcd_code {
	VD_ETCD_OTHER, /* see grpc_code and the message */
#define VD_ETCD_CODE_ENUM(name, grpc, status, known, message) name,
	VD_ETCD_ERROR_MAP(VD_ETCD_CODE_ENUM)
#undef VD_ETCD_CODE_ENUM
	VD_ETCD_CODE_COUNT
};

struct vd_etcd_error {
	/* code: from the table; else after the gRPC code: VD_TIMEOUT, VD_CANCELED, VD_UNAVAILABLE, VD_TOO_BIG (a message
	 * limit), VD_FULL (another one), VD_UNSUPPORTED (Unimplemented), VD_FORBIDDEN, VD_NOT_FOUND, VD_INVALID_ARGUMENT,
	 * VD_PRECONDITION, VD_CORRUPT, VD_INTERNAL; else this side's own: VD_CLOSED (the client closes), VD_CORRUPT (an answer
	 * that is no valid message), VD_NOMEM. message: the bare text of a known error, else "rpc error: code = <Code> desc =
	 * <text>" (E-132); a call that was not answered in time and reached nobody says who and why. */
	struct vd_error	  error;
	enum vd_etcd_code code;
	int		  grpc_code;
	bool		  maybe_applied; /* a write that may or may not have happened */
	char		  endpoint[128]; /* "" when none was reached */
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
	size_t		   size; /* sizeof(struct vd_etcd_options) */
	const char *const *endpoints; /* E-204: host:port, http://, https://, unix:, unixs: */
	size_t		   endpoint_count;
	const char	  *ca_path; /* PEM; the next two together: client certificate (mutual TLS) */
	const char	  *cert_path;
	const char	  *key_path;
	const char	  *server_name; /* checked against the server's certificate; NULL: the endpoint's host */
	const char	  *user; /* with password; a token is fetched and refreshed (E-168, E-209) */
	const char	  *password;
	const char	  *token; /* instead of user and password: fixed */
	vd_dur		   dial_timeout; /* of the token request and the version check; default 20 s; 0: none */
	vd_dur		   call_timeout; /* of calls that bring none; 0: none (clientv3's default); default 0 */
	vd_dur		   keepalive_time; /* default 30 s; 0: off; at least 5 s */
	vd_dur		   keepalive_timeout; /* default 10 s */
	size_t		   send_size_max; /* default 2 MiB (E-201) */
	size_t		   receive_size_max; /* default INT32_MAX */
	unsigned	   attempts_max; /* of a repeatable call (E-208); default 100 */
	bool		   reject_old_cluster; /* E-203: the first call asks every member; VD_UNSUPPORTED when one is too old */
	size_t		   watch_buffer_bytes; /* of undelivered events of one watch; beyond it the watch pauses; default 4 MiB */
	const struct vd_rpc_transport *transport; /* NULL: vd_rpc_http2(); vedette/rpc.h has the others */
};
#define VD_ETCD_OPTIONS_INIT                                                                                                    \
	{                                                                                                                       \
		.size = sizeof(struct vd_etcd_options), .dial_timeout = { (int64_t) 20 * 1000000000 },                          \
		.keepalive_time = { (int64_t) 30 * 1000000000 }, .keepalive_timeout = { (int64_t) 10 * 1000000000 },            \
		.send_size_max = 2u << 20, .receive_size_max = INT32_MAX, .attempts_max = 100, .watch_buffer_bytes = 4u << 20   \
	}

/* Does not wait for the network. VD_INVALID_ARGUMENT with clientv3's sentences (E-201, E-202) and the name of what is wrong
 * (endpoint, file); VD_NOMEM, VD_IO. A failed call leaves nothing that uses env. */
VD_API VD_MUST_USE vd_status vd_etcd_open(const struct vd_env *env, const struct vd_etcd_options *options,
					  struct vd_etcd **ret_client, struct vd_error *reterr);
/* Ends everything: calls answer VD_CLOSED, watches end. done when the memory is gone (watches stay valid until their owners
 * closed them). */
VD_API void vd_etcd_close(struct vd_etcd *client, void (*done)(void *arg), void *arg);
/* The same, waiting; not from an actor's handler. Returns NULL. */
VD_API struct vd_etcd *vd_etcd_close_wait(struct vd_etcd *client);
/* Replaces the list; streams on removed endpoints move. VD_INVALID_ARGUMENT, VD_NOMEM, VD_CLOSED. */
VD_API VD_MUST_USE vd_status vd_etcd_set_endpoints(struct vd_etcd *client, const char *const *endpoints, size_t count,
						   struct vd_error *reterr);
VD_API size_t vd_etcd_endpoint_count(const struct vd_etcd *client);
/* Whether connected, and why not: text is cut to size. VD_NOT_FOUND: no such index. */
VD_API VD_MUST_USE vd_status vd_etcd_endpoint_state(const struct vd_etcd *client, size_t index, bool *ret_ready, char *ret_text,
						    size_t size);

struct vd_etcd_pair {
	const char     *key;
	struct vd_bytes value;
};

/* How one call is made; NULL: the defaults.
 *
 * A call waits for a connection for as long as its timeout allows. Reads (and what else may be done twice, E-206) are repeated
 * when a member was unavailable; writes only when they certainly never left this process, so that each happens at most once
 * (E-207; clientv3 repeats some of them, E-1024). An expired token is renewed and the call repeated (E-209). */
struct vd_etcd_call {
	vd_dur		      timeout; /* 0: the client's */
	bool		      require_leader; /* E-140 */
	const struct vd_etcd_pair *metadata; /* further metadata: keys of [0-9a-z_.-], values of printable ASCII (any for "-bin") */
	size_t		      metadata_count;
	const char	     *endpoint; /* exactly this one of the list (maintenance calls, E-205); NULL: any */
	uint64_t	     *ret_id; /* for vd_etcd_cancel */
};
/* The call answers VD_CANCELED unless its answer is on its way; unknown ids are ignored. */
VD_API void vd_etcd_cancel(struct vd_etcd *client, uint64_t id);

/* ---- KV ---- */

enum vd_etcd_sort_order { VD_ETCD_SORT_NONE, VD_ETCD_SORT_ASCEND, VD_ETCD_SORT_DESCEND };
enum vd_etcd_sort_target { VD_ETCD_SORT_KEY, VD_ETCD_SORT_VERSION, VD_ETCD_SORT_CREATE, VD_ETCD_SORT_MOD, VD_ETCD_SORT_VALUE };

struct vd_etcd_range_request {
	struct vd_range_request	 range;
	enum vd_etcd_sort_order	 sort_order; /* by key ascending is sent as NONE (E-217) */
	enum vd_etcd_sort_target sort_target;
	vd_rev			 min_mod_revision, max_mod_revision, min_create_revision, max_create_revision; /* 0: no bound */
};

/* error NULL: it worked. */
typedef void (*vd_etcd_range_fn)(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
				 const struct vd_range_result *result);
VD_API VD_MUST_USE vd_status vd_etcd_range(struct vd_etcd *client, const struct vd_etcd_call *call,
					   const struct vd_etcd_range_request *request, vd_etcd_range_fn done, void *arg);
/* RangeStream (etcd 3.7): done is called with last false for each part and once with last true (error or the end; result
 * NULL then). Servers without it: VD_UNSUPPORTED. done answers whether the next part is read at once; false: when
 * vd_etcd_range_stream_resume was called (also from inside done), and the server waits that long. What it answers to the
 * last one does not matter. */
typedef bool (*vd_etcd_range_stream_fn)(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
					const struct vd_range_result *result, bool last);
VD_API VD_MUST_USE vd_status vd_etcd_range_stream(struct vd_etcd *client, const struct vd_etcd_call *call,
						  const struct vd_etcd_range_request *request, vd_etcd_range_stream_fn done,
						  void *arg);
/* id: call->ret_id. Once for each part that was answered false; unknown ids are ignored. */
VD_API void vd_etcd_range_stream_resume(struct vd_etcd *client, uint64_t id);
/* op->kind VD_OP_PUT or VD_OP_DELETE. */
typedef void (*vd_etcd_op_fn)(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
			      const struct vd_op_result *result);
VD_API VD_MUST_USE vd_status vd_etcd_put(struct vd_etcd *client, const struct vd_etcd_call *call, const struct vd_op *op,
					 vd_etcd_op_fn done, void *arg);
VD_API VD_MUST_USE vd_status vd_etcd_delete(struct vd_etcd *client, const struct vd_etcd_call *call, const struct vd_op *op,
					    vd_etcd_op_fn done, void *arg);
typedef void (*vd_etcd_txn_fn)(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
			       const struct vd_txn_result *result);
VD_API VD_MUST_USE vd_status vd_etcd_txn(struct vd_etcd *client, const struct vd_etcd_call *call,
					 const struct vd_txn_request *request, vd_etcd_txn_fn done, void *arg);
typedef void (*vd_etcd_done_fn)(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header);
VD_API VD_MUST_USE vd_status vd_etcd_compact(struct vd_etcd *client, const struct vd_etcd_call *call, vd_rev revision,
					     bool physical, vd_etcd_done_fn done, void *arg);

/* E-215: the end of the range of keys that start with prefix, for range_end; buffer of prefix.size (at least 1) bytes. Of the empty prefix it is a single zero
 * byte; reads, deletes and compares with that end and an empty key mean every key. */
VD_API struct vd_bytes vd_etcd_prefix_end(struct vd_bytes prefix, char *buffer);

/* ---- Leases ---- */

typedef void (*vd_etcd_lease_fn)(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
				 const struct vd_lease_result *result);
VD_API VD_MUST_USE vd_status vd_etcd_lease_grant(struct vd_etcd *client, const struct vd_etcd_call *call, int64_t id,
						 int64_t ttl_s, vd_etcd_lease_fn done, void *arg);
VD_API VD_MUST_USE vd_status vd_etcd_lease_revoke(struct vd_etcd *client, const struct vd_etcd_call *call, int64_t id,
						  vd_etcd_done_fn done, void *arg);
/* E-292: one renewal. VD_LEASE_NOT_FOUND when it is gone. */
VD_API VD_MUST_USE vd_status vd_etcd_lease_keep_alive_once(struct vd_etcd *client, const struct vd_etcd_call *call, int64_t id,
							   vd_etcd_lease_fn done, void *arg);
VD_API VD_MUST_USE vd_status vd_etcd_lease_time_to_live(struct vd_etcd *client, const struct vd_etcd_call *call, int64_t id,
							bool keys, vd_etcd_lease_fn done, void *arg);
typedef void (*vd_etcd_leases_fn)(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
				  const int64_t *ids, size_t count);
VD_API VD_MUST_USE vd_status vd_etcd_lease_list(struct vd_etcd *client, const struct vd_etcd_call *call, vd_etcd_leases_fn done,
						void *arg);

/* Keeps a lease alive until stopped (E-290, E-291): the first renewal at once, then every third of its time. said is called
 * for each answer, and a last time with an error when it has ended: VD_LEASE_NOT_FOUND (gone), VD_TIMEOUT (not renewed in
 * time), VD_UNAVAILABLE with VD_ETCD_NO_LEADER (only with call->require_leader), VD_CLOSED. Many callers for one lease share
 * the renewals. Of call only require_leader counts. */
struct vd_etcd_keep_alive;
VD_API VD_MUST_USE vd_status vd_etcd_keep_alive_start(struct vd_etcd *client, const struct vd_etcd_call *call, int64_t id,
						      vd_etcd_lease_fn said, void *arg,
						      struct vd_etcd_keep_alive **ret_keep_alive);
/* said is not called any more when it returns: it waits for one that is under way, unless it is called from inside said. Any
 * moment, also after the client was closed; once. NULL is fine. */
VD_API void vd_etcd_keep_alive_stop(struct vd_etcd_keep_alive *keep_alive);

/* ---- Maintenance, cluster ---- */

struct vd_etcd_status {
	const char *endpoint;
	const char *version;
	const char *storage_version;
	int64_t	    db_size, db_size_in_use, db_size_quota;
	uint64_t    leader, raft_index, raft_term, raft_applied_index;
	bool	    is_learner;
	const char *const *errors;
	size_t	    error_count;
};
typedef void (*vd_etcd_status_fn)(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
				  const struct vd_etcd_status *status);
VD_API VD_MUST_USE vd_status vd_etcd_status_get(struct vd_etcd *client, const struct vd_etcd_call *call, vd_etcd_status_fn done,
						void *arg);

enum vd_etcd_alarm_kind { VD_ETCD_ALARM_NONE, VD_ETCD_ALARM_NO_SPACE, VD_ETCD_ALARM_CORRUPT };
enum vd_etcd_alarm_action { VD_ETCD_ALARM_GET, VD_ETCD_ALARM_ACTIVATE, VD_ETCD_ALARM_DEACTIVATE };
struct vd_etcd_alarm {
	uint64_t		member_id;
	enum vd_etcd_alarm_kind kind;
};
typedef void (*vd_etcd_alarms_fn)(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
				  const struct vd_etcd_alarm *alarms, size_t count);
VD_API VD_MUST_USE vd_status vd_etcd_alarm(struct vd_etcd *client, const struct vd_etcd_call *call,
					   enum vd_etcd_alarm_action action, const struct vd_etcd_alarm *alarm,
					   vd_etcd_alarms_fn done, void *arg);
/* These answer for the endpoint that call names. */
VD_API VD_MUST_USE vd_status vd_etcd_defragment(struct vd_etcd *client, const struct vd_etcd_call *call, vd_etcd_done_fn done,
						void *arg);
typedef void (*vd_etcd_hash_fn)(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
				uint32_t hash, vd_rev compacted, vd_rev hashed);
VD_API VD_MUST_USE vd_status vd_etcd_hash_kv(struct vd_etcd *client, const struct vd_etcd_call *call, vd_rev revision,
					     vd_etcd_hash_fn done, void *arg);
VD_API VD_MUST_USE vd_status vd_etcd_move_leader(struct vd_etcd *client, const struct vd_etcd_call *call, uint64_t member_id,
						 vd_etcd_done_fn done, void *arg);
/* The backend file in parts: done is called with last false for each and once with last true. The final part of the file is
 * its SHA-256 (E-165); checked here: VD_CORRUPT when it does not match. */
typedef void (*vd_etcd_snapshot_fn)(void *arg, const struct vd_etcd_error *error, struct vd_bytes part,
				    uint64_t remaining_bytes, bool last);
VD_API VD_MUST_USE vd_status vd_etcd_snapshot(struct vd_etcd *client, const struct vd_etcd_call *call, vd_etcd_snapshot_fn done,
					      void *arg);

struct vd_etcd_member {
	uint64_t	   id;
	const char	  *name;
	const char *const *peer_urls;
	size_t		   peer_url_count;
	const char *const *client_urls;
	size_t		   client_url_count;
	bool		   is_learner;
};
typedef void (*vd_etcd_members_fn)(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
				   const struct vd_etcd_member *members, size_t count);
VD_API VD_MUST_USE vd_status vd_etcd_member_list(struct vd_etcd *client, const struct vd_etcd_call *call, bool linearizable,
						 vd_etcd_members_fn done, void *arg);

/* ---- Auth ---- */

typedef void (*vd_etcd_auth_status_fn)(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
				       bool enabled, uint64_t revision);
VD_API VD_MUST_USE vd_status vd_etcd_auth_status(struct vd_etcd *client, const struct vd_etcd_call *call,
						 vd_etcd_auth_status_fn done, void *arg);
VD_API VD_MUST_USE vd_status vd_etcd_auth_enable(struct vd_etcd *client, const struct vd_etcd_call *call, bool enable,
						 vd_etcd_done_fn done, void *arg);
VD_API VD_MUST_USE vd_status vd_etcd_user_add(struct vd_etcd *client, const struct vd_etcd_call *call, const char *name,
					      const char *password, vd_etcd_done_fn done, void *arg);
VD_API VD_MUST_USE vd_status vd_etcd_user_delete(struct vd_etcd *client, const struct vd_etcd_call *call, const char *name,
						 vd_etcd_done_fn done, void *arg);
VD_API VD_MUST_USE vd_status vd_etcd_user_change_password(struct vd_etcd *client, const struct vd_etcd_call *call,
							  const char *name, const char *password, vd_etcd_done_fn done,
							  void *arg);
VD_API VD_MUST_USE vd_status vd_etcd_user_grant_role(struct vd_etcd *client, const struct vd_etcd_call *call, const char *user,
						     const char *role, vd_etcd_done_fn done, void *arg);
VD_API VD_MUST_USE vd_status vd_etcd_role_add(struct vd_etcd *client, const struct vd_etcd_call *call, const char *name,
					      vd_etcd_done_fn done, void *arg);
enum vd_etcd_permission { VD_ETCD_READ, VD_ETCD_WRITE, VD_ETCD_READ_WRITE };
VD_API VD_MUST_USE vd_status vd_etcd_role_grant(struct vd_etcd *client, const struct vd_etcd_call *call, const char *role,
						enum vd_etcd_permission permission, struct vd_bytes key,
						struct vd_bytes range_end, vd_etcd_done_fn done, void *arg);

/* ---- Watch (E-230..E-285) ----
 *
 * Watches whose call metadata is equal share one stream (E-250). A watch lives through lost connections: it is created again
 * from the first revision that was not delivered. Responses are pulled; what is not read waits here up to watch_buffer_bytes,
 * then the watch is stopped at the server and continued when it was read: nothing is dropped, nobody else waits. Of several
 * progress responses in a row that nobody read, the last one is kept. */

struct vd_etcd_watch;

struct vd_etcd_watch_request {
	struct vd_bytes key;
	struct vd_bytes range_end; /* as vd_range_request */
	vd_rev		revision; /* first one wanted; 0: from now on */
	bool		previous;
	bool		progress;
	bool		fragment;
	bool		no_put;
	bool		no_delete;
	bool		created_notify; /* E-241 */
	bool		require_leader;
	const struct vd_etcd_pair *metadata;
	size_t		metadata_count;
	/* As in vd_store_watch_request: after VD_AGAIN, from any thread, must not block nor call back. */
	void (*ready)(void *arg);
	void *ready_arg;
	const struct vd_watch_observer *observer; /* as in vd_store_watch_request */
};

struct vd_etcd_watch_response {
	struct vd_etcd_header	     header;
	bool			     created;
	const struct vd_store_event *events; /* lent until the next call for this watch; whole revisions (E-329) */
	size_t			     event_count;
};
/* E-235: everything up to header.revision was delivered. */
static inline bool vd_etcd_watch_is_progress(const struct vd_etcd_watch_response *response)
{
	return response->event_count == 0 && !response->created && response->header.revision != 0;
}

VD_API VD_MUST_USE vd_status vd_etcd_watch_open(struct vd_etcd *client, const struct vd_etcd_watch_request *request,
						struct vd_etcd_watch **ret_watch, struct vd_error *reterr);
/* VD_AGAIN: nothing now. Anything else but VD_OK ends the watch, after all earlier responses, and is answered for ever
 * after: VD_EXPIRED (error.compacted = the lowest revision that can be asked for), VD_CANCELED (by the server: its reason),
 * VD_TOO_LARGE_REVISION (canceled without one, E-234), VD_UNAVAILABLE (no leader), VD_CLOSED, another halt error (E-254).
 * One caller at a time. */
VD_API VD_MUST_USE vd_status vd_etcd_watch_next(struct vd_etcd_watch *watch, struct vd_etcd_watch_response *ret_response,
						struct vd_etcd_error *reterr);
/* ready() is not called any more when it returns. NULL is fine. Any moment, also after the client was closed. */
VD_API void vd_etcd_watch_close(struct vd_etcd_watch *watch);
/* E-244: asks the server for progress on the stream of that metadata (of this watch; or of a request's metadata, opening a
 * stream when there is none). The answer comes to every watch of the stream that is up to date. */
VD_API vd_status vd_etcd_watch_progress(struct vd_etcd_watch *watch);
VD_API VD_MUST_USE vd_status vd_etcd_request_progress(struct vd_etcd *client, const struct vd_etcd_call *call,
						      struct vd_error *reterr);

/* ---- As a store ---- */

struct vd_etcd_store_options {
	size_t			      size; /* sizeof(struct vd_etcd_store_options) */
	const struct vd_etcd_options *etcd;
	vd_dur			      call_timeout; /* of one operation of the store; default 10 s */
	vd_dur			      compaction_interval; /* R-170; default 5 min; 0: others compact */
	vd_dur			      start_timeout; /* of vd_store_open_etcd, for a server's first answer; default 20 s; 0: does not wait */
};
#define VD_ETCD_STORE_OPTIONS_INIT                                                                                              \
	{                                                                                                                       \
		.size = sizeof(struct vd_etcd_store_options), .call_timeout = { (int64_t) 10 * 1000000000 },                    \
		.compaction_interval = { (int64_t) 300 * 1000000000 }, .start_timeout = { (int64_t) 20 * 1000000000 }           \
	}
/* Blocks up to start_timeout; VD_UNAVAILABLE then, with the endpoint and the cause. Watches carry require-leader. */
VD_API VD_MUST_USE vd_status vd_store_open_etcd(const struct vd_env *env, const struct vd_etcd_store_options *options,
						struct vd_store **ret_store, struct vd_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
