/* The REST server: Kubernetes' list, watch and CRUD protocol over HTTP/1.1, for kubectl, client-go and
 * other clients.
 *
 * The server has one cacher and one codec for each served kind, and a number of event-loop threads that
 * own the connections. Functions may be called from any thread, except from an actor's handler; those that
 * block say so.
 *
 *   vd_server_new -> vd_server_start -> ... -> [vd_server_mark_unready ->] vd_server_drain -> vd_server_free
 */
#ifndef VEDETTE_SERVER_H
#define VEDETTE_SERVER_H

#include <vedette/env.h>
#include <vedette/store.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vd_server;

/* Audit level, as in Kubernetes. Bodies of secrets and of token reviews are never logged; lists are logged
 * without items. */
enum vd_audit_level {
	VD_AUDIT_NONE,
	VD_AUDIT_METADATA,
	VD_AUDIT_REQUEST,	   /* with request bodies */
	VD_AUDIT_REQUEST_RESPONSE, /* with response bodies, too; input of `vedette record --from-audit` */
};

struct vd_server_options {
	size_t size; /* sizeof(struct vd_server_options) */
	/* Address, such as "127.0.0.1:8080" or "[::1]:0" (port 0: the system chooses). It must be a
	 * loopback address unless clients are authenticated. "unix:/run/v.sock": a socket that only the
	 * same user can open; removed at the end. */
	const char     *listen;
	unsigned	threads;	/* number of event loops; 0: number of processors, at most 8 */
	const char     *resources_path; /* resources file; NULL: none */
	struct vd_bytes resources;	/* resources as bytes; used after the file */
	/* size limit of the history of all kinds together, in bytes; default 256 MiB */
	int64_t history_bytes;
	/* minimum time that events stay resumable, within history_bytes; default 75 s */
	vd_dur history_window;
	/* maximum number of connections; excess ones get 429 and are closed; default 32768 */
	uint32_t connection_count_max;
	/* from the first byte to the end of a request head; default 15 s */
	vd_dur head_timeout;
	/* from the end of the head to the end of the body; default 60 s */
	vd_dur body_timeout;
	vd_dur request_timeout; /* limit of a request other than a watch; default 60 s */
	vd_dur idle_timeout;	/* idle time between requests; default 180 s */
	/* time without progress while a response is sent; default 60 s */
	vd_dur write_timeout;
	/* time between two comparisons of each cache with the store; default 5 min; 0: none */
	vd_dur consistency_interval;
	/* enum vd_on_inconsistency (vedette/cacher.h); default: report */
	int on_inconsistency;
	/* path prefix of all keys; NULL: "/registry", as in Kubernetes */
	const char *key_prefix;
	bool	    no_namespaces; /* vd_server_start creates no namespaces */
	/* serve only this kind: "pods", "deployments.apps"; NULL: all */
	const char *only;
	bool	    read_only; /* reject writes, and create nothing at the start */
	/* Maximum concurrent requests per client, except watches; excess requests get 429; default 0: no
	 * limit. A client is a user or, without authentication, an address and User-Agent. */
	uint32_t client_request_count_max;
	/* Maximum concurrent watches per client; excess watches get 429; default 0: no limit. */
	uint32_t client_watch_count_max;
	/* Maximum unsent bytes of one client's watches together, beyond one event for each watch; then
	 * these watches pause and fall behind. Default 64 MiB; 0: no limit. */
	int64_t client_bytes_max;
	/* Maximum concurrent reads, except watches; excess requests get 429; default 400; 0: no limit. */
	uint32_t request_count_max;
	/* maximum concurrent writes; excess requests get 429; default 200; 0: no limit */
	uint32_t mutating_request_count_max;
	/* For tests of clients: probability that a watch event, except the first, is cut in the middle
	 * together with its connection; default 0. */
	double cut_frames;
	/* Seed that selects these events, with the watch's first revision and the event's revision. */
	uint64_t cut_seed;
	/* never compress responses and watches, even if the client accepts gzip */
	bool no_compression;
	/* PEM: certificate of the server with its chain, and its key; both or none. TLS 1.2 or later. */
	const char *tls_cert_path;
	const char *tls_key_path;
	/* CA bundle (PEM) for client certificates, which name a user (CN) and groups (O); NULL: none */
	const char *client_ca_path;
	/* File with lines of token,user,uid,"group,group"; NULL: none. With a client CA or tokens,
	 * unauthenticated requests are refused, except for health and version. */
	const char *token_path;
	/* JSON rules (docs/SECURITY.md); NULL: authenticated users may do everything */
	const char *policy_path;
	/* The server deletes nothing by itself: neither dependents of deleted objects nor the content of
	 * namespaces. For a kube-controller-manager that uses this server, and for stores with other
	 * writers. Implied by read_only. */
	bool no_garbage_collector;
	/* allow addresses other than loopback without authentication: all clients may do everything */
	bool insecure_no_auth;
	/* file to which audit.k8s.io/v1 Events are appended; "-": standard output; NULL: none */
	const char *audit_path;
	int	    audit_level; /* enum vd_audit_level; default: metadata */
	/* file to which one line per answered request is appended; "-": standard output; NULL: none */
	const char *access_path;
	/* Descriptor of a listening stream socket, used instead of listen; 0: none. vd_server_new takes
	 * ownership, also if it fails. Its address must satisfy the rule of listen, but the creator of a
	 * Unix socket is responsible for its permissions. */
	int listen_socket;
};
#define VD_SERVER_OPTIONS_INIT                                                                               \
	{                                                                                                    \
		sizeof(struct vd_server_options), "127.0.0.1:8080", 0, 0, { 0, 0 }, (int64_t) 256 << 20,     \
			{ (int64_t) 75 * 1000000000 }, 32768, { (int64_t) 15 * 1000000000 },                 \
			{ (int64_t) 60 * 1000000000 }, { (int64_t) 60 * 1000000000 },                        \
			{ (int64_t) 180 * 1000000000 }, { (int64_t) 60 * 1000000000 },                       \
			{ (int64_t) 300 * 1000000000 }, 0, 0, false, 0, false, 0, 0, (int64_t) 64 << 20,     \
			400, 200, 0, 0, false, 0, 0, 0, 0, 0, false, false, 0, VD_AUDIT_METADATA, 0, 0       \
	}

/* Creates a server: reads the resources, binds the address and creates the caches; serves no requests yet.
 * The caller owns it and frees it. env must have the real clock; env and store must outlive the server.
 * Errors: VD_INVALID (the resources; the message names entry and member); VD_INVALID_ARGUMENT (an option
 * outside its range, the address, or one that is not loopback; timeouts, history_bytes and
 * connection_count_max must be above 0); VD_IO (the address cannot be bound); VD_NOMEM. */
VD_API VD_MUST_USE vd_status vd_server_new(const struct vd_env *env, struct vd_store *store,
					   const struct vd_server_options *options,
					   struct vd_server **ret_server, struct vd_error *reterr);
/* Starts the server. Creates the namespaces default, kube-system, kube-public and kube-node-lease if
 * absent (unless read_only), waits until all caches are ready, then accepts connections. The kinds of all
 * existing CustomResourceDefinitions are served when this function returns; later ones are added and
 * removed with their definitions. Blocks at most for timeout (negative: for ever). */
VD_API VD_MUST_USE vd_status vd_server_start(struct vd_server *server, vd_dur timeout,
					     struct vd_error *reterr);
/* Returns the address: "http://127.0.0.1:8080" or "https://...", with the actual port, or
 * "unix:/run/v.sock". Borrowed until the server is freed. */
VD_API const char *vd_server_address(const struct vd_server *server);
/* Reopens the log files and reads certificates, CA bundle, tokens, policy and resources again. If a file
 * is invalid, all settings stay as they were. A kind that changed only in columns, schemas or names keeps
 * its watches; new kinds are served; removed kinds end. New connections and requests use the new settings;
 * running watches do not end. Blocks for disk I/O. One call at a time. Errors: VD_INVALID (the message
 * names the file), VD_NOMEM. */
VD_API VD_MUST_USE vd_status vd_server_reload(struct vd_server *server, struct vd_error *reterr);
/* Checks that the event loops and the threads of the env are responsive. Blocks until all have answered,
 * at most for timeout. One call at a time. Error: VD_TIMEOUT. */
VD_API VD_MUST_USE vd_status vd_server_ping(struct vd_server *server, vd_dur timeout);
/* Makes /readyz report the shutdown and changes nothing else, so that load balancers choose another server
 * before the connections are closed. */
VD_API void vd_server_mark_unready(struct vd_server *server);
/* Stops accepting connections, ends watches cleanly and lets requests finish. Blocks until all connections
 * are closed, at most for timeout. VD_TIMEOUT: some are left; vd_server_free closes them. */
VD_API vd_status vd_server_drain(struct vd_server *server, vd_dur timeout);
/* Frees the server and closes all connections; blocks. server may be NULL. Returns NULL. */
VD_API struct vd_server *vd_server_free(struct vd_server *server);

#ifdef __cplusplus
}
#endif
#endif
