/* The REST server: Kubernetes' list/watch/CRUD protocol over HTTP/1.1, for kubectl, client-go and their like.
 *
 * One cacher and one codec per served kind, made when the server is; N event-loop threads that own the connections. Functions may be called from any
 * thread, none from an actor's handler: those that say so block.
 *
 *   vd_server_new -> vd_server_start -> ... -> [vd_server_unready ->] vd_server_drain -> vd_server_free
 */
#ifndef VEDETTE_SERVER_H
#define VEDETTE_SERVER_H

#include <vedette/env.h>
#include <vedette/store.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vd_server;

/* What of a request goes into the audit log, as Kubernetes has it. Bodies of secrets and of reviews with tokens never do; lists are logged without their items. */
enum vd_audit_level {
	VD_AUDIT_NONE,
	VD_AUDIT_METADATA,
	VD_AUDIT_REQUEST,	   /* and bodies of requests */
	VD_AUDIT_REQUEST_RESPONSE, /* and of answers: what `vedette record --from-audit` reads */
};

struct vd_server_options {
	size_t		size;		       /* sizeof(struct vd_server_options) */
	const char     *listen;		       /* "127.0.0.1:8080", "[::1]:0"; port 0: the system chooses. Loopback, unless clients are authenticated. "unix:/run/v.sock":
						* a socket that only the same user may open; removed at the end */
	unsigned	threads;	       /* event loops; 0: number of processors, at most 8 */
	const char     *resources_path;	       /* a resources file, or NULL */
	struct vd_bytes resources;	       /* the same as bytes; used after the file */
	int64_t		history_bytes;	       /* of all kinds together; default 256 MiB */
	vd_dur		history_window;	       /* how long events stay resumable within that budget; default 75 s */
	uint32_t	connection_count_max;  /* more are answered 429 and closed; default 32768 */
	vd_dur		head_timeout;	       /* from its first byte to the end of a request head; default 15 s */
	vd_dur		body_timeout;	       /* from the end of the head to the end of the body; default 60 s */
	vd_dur		request_timeout;       /* handling of anything but a watch; default 60 s */
	vd_dur		idle_timeout;	       /* between requests; default 180 s */
	vd_dur		write_timeout;	       /* without any progress of an answer; default 60 s */
	vd_dur		consistency_interval;  /* between two comparisons of each cache with the store; default 5 min; 0: never */
	int		on_inconsistency;      /* enum vd_on_inconsistency of vedette/cacher.h; default: report */
	const char     *key_prefix;	       /* where keys begin: "/registry" (NULL) as Kubernetes has it, or another path */
	bool		no_namespaces;	       /* vd_server_start creates none */
	const char     *only;		       /* NULL: all kinds; else this one: "pods", "deployments.apps" */
	bool		read_only;	       /* writes are refused, and nothing is created at the start */
	uint32_t	client_request_count_max; /* requests of one client under way, watches apart; more are answered 429; default 0: no limit. A client is
						   * a user or, without authentication, an address with a User-Agent */
	uint32_t	client_watch_count_max;   /* watches of one client; the same */
	int64_t		client_bytes_max;	  /* unsent bytes of one client's watches together, beyond one event each: then they wait, and fall behind;
						   * default 64 MiB; 0: no limit */
	uint32_t	request_count_max;	  /* reads under way, watches apart; more are answered 429; default 400; 0: no limit */
	uint32_t	mutating_request_count_max; /* the same for writes; default 200 */
	double		cut_frames;		  /* for tests of clients: an event of a watch, but not its first, is cut in the middle with this probability, and the
						   * connection with it; default 0 */
	uint64_t	cut_seed;		  /* which ones: a matter of this, the watch's first revision and the event's */
	bool		no_compression;		  /* long answers and watch lists are not compressed, whoever asks for it */
	const char     *tls_cert_path;		  /* PEM: the server's certificate with its chain, and its key; both or none. TLS 1.2 and later */
	const char     *tls_key_path;
	const char     *client_ca_path;		  /* PEM: authorities of client certificates, which name a user (CN) and groups (O); or NULL */
	const char     *token_path;		  /* lines of token,user,uid,"group,group"; or NULL. With authorities or tokens nobody else may do anything,
						   * except to ask for health and version */
	const char     *policy_path;		  /* JSON rules, docs/SECURITY.md; NULL: who was authenticated may do everything */
	bool		no_garbage_collector;	  /* nothing is deleted by the server itself: no dependents of what has gone, no content of namespaces; for a
						   * kube-controller-manager beside it, and for stores that others write. A read-only server does neither */
	bool		insecure_no_auth;	  /* serves an address that is not loopback although everybody may do everything there */
	const char     *audit_path;		  /* audit.k8s.io/v1 Events are appended to this file; "-": standard output; NULL: to none */
	int		audit_level;		  /* enum vd_audit_level; default: metadata */
	const char     *access_path;		  /* a line for each answered request is appended to this file; the same */
	int		listen_socket;		  /* a listening stream socket that somebody else has opened, instead of listen; taken over by vd_server_new, also
						   * when it fails. Its address is judged as listen is, but who may open a socket of the file system is up to
						   * who made it. 0: none */
};
#define VD_SERVER_OPTIONS_INIT                                                                                                   \
	{                                                                                                                        \
		sizeof(struct vd_server_options), "127.0.0.1:8080", 0, 0, { 0, 0 }, (int64_t) 256 << 20,                         \
			{ (int64_t) 75 * 1000000000 }, 32768, { (int64_t) 15 * 1000000000 }, { (int64_t) 60 * 1000000000 },      \
			{ (int64_t) 60 * 1000000000 }, { (int64_t) 180 * 1000000000 }, { (int64_t) 60 * 1000000000 },            \
			{ (int64_t) 300 * 1000000000 }, 0, 0, false, 0, false, 0, 0, (int64_t) 64 << 20, 400, 200, 0, 0, false,  \
			0, 0, 0, 0, 0, false, false, 0, VD_AUDIT_METADATA, 0, 0                                          \
	}

/* Reads the resources, binds the address, makes the caches; serves nothing yet. env must have the real clock; env and store outlive the
 * server. VD_INVALID: the resources (the message names entry and member). VD_INVALID_ARGUMENT: an option outside its range (timeouts,
 * history_bytes and connection_count_max are above 0), the address, or one that is not loopback. VD_IO: it cannot be
 * bound. VD_NOMEM. */
VD_API VD_MUST_USE vd_status vd_server_new(const struct vd_env *env, struct vd_store *store, const struct vd_server_options *options,
					   struct vd_server **ret_server, struct vd_error *reterr);
/* Kinds of CustomResourceDefinitions are served as they come and go; those that there are when this returns. Creates the namespaces default, kube-system, kube-public and kube-node-lease where absent (unless read_only), waits until all caches are ready, then accepts
 * connections. Blocks at most timeout (negative: for ever). */
VD_API VD_MUST_USE vd_status vd_server_start(struct vd_server *server, vd_dur timeout, struct vd_error *reterr);
/* "http://127.0.0.1:8080" or "https://...", with the port in use, or "unix:/run/v.sock". Lent while the server lives. */
VD_API const char *vd_server_address(const struct vd_server *server);
/* Opens the logs anew, and reads certificates, authorities, tokens, policy and resources again; what is wrong with them leaves everything as it was. Kinds that
 * are the same but for columns, schemas and names keep their watches, new ones are served, those that are gone end. Connections and requests from now on go by the
 * new ones; watches that run are not ended. Blocks for the disk. One call at a time. VD_INVALID: the message names the file. VD_NOMEM. */
VD_API VD_MUST_USE vd_status vd_server_reload(struct vd_server *server, struct vd_error *reterr);
/* Whether the event loops and the threads of the env get round to what they are given. Blocks until all have, at most timeout. One call at a time. VD_TIMEOUT: some
 * have not. */
VD_API VD_MUST_USE vd_status vd_server_ping(struct vd_server *server, vd_dur timeout);
/* From now on /readyz says that the server shuts down, and nothing else changes: whoever sends clients here looks elsewhere before they are sent away. */
VD_API void vd_server_unready(struct vd_server *server);
/* Accepts no more, ends watches cleanly, lets requests finish. Blocks until all connections are closed, or timeout. VD_TIMEOUT: some are
 * left; vd_server_free cuts them. */
VD_API vd_status vd_server_drain(struct vd_server *server, vd_dur timeout);
/* Closes everything. Blocks. NULL is fine; returns NULL. */
VD_API struct vd_server *vd_server_free(struct vd_server *server);

#ifdef __cplusplus
}
#endif
#endif
