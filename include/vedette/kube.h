/* A client of a Kubernetes API server, as client-go is for programs in Go.
 *
 * vd_kube_open connects to one cluster. Over it a program opens informers (vd_kube_informer), a store for a
 * cacher of its own (vd_store_open_kube), or sends requests (vd_kube_request). All of them share one
 * identity and, where the server speaks HTTP/2, one connection.
 *
 * Watches do not end because of the network. After a lost connection, a 429, a 5xx, silence of the server
 * or an expired token, a watch is opened again with a growing delay, from the last revision that was
 * received; vd_kube_health reports it. Only if the server no longer has that revision (410), the objects
 * are listed again.
 *
 * The contract of vedette/store.h applies: a call that returns an error never calls its callback; a call
 * that returns VD_OK calls it exactly once. Callbacks run on an actor of the env given to vd_kube_open,
 * never inside the call. They must not block and may start further calls. Arguments are borrowed for the
 * call only, results and errors for the callback. All functions may be called from any thread; only
 * functions named _wait block.
 *
 * The functions exist only in a library built with -Dkube=enabled (the default where libcurl is available).
 * libcurl is loaded by the first vd_kube_open; a program that opens none does not need it. */
#ifndef VEDETTE_KUBE_H
#define VEDETTE_KUBE_H

#include <vedette/informer.h>
#include <vedette/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The cluster ---- */

struct vd_kube;

/* The state of a connection, or of one source over it. */
enum vd_kube_state {
	VD_KUBE_CONNECTING, /* no answer yet */
	VD_KUBE_LISTING,    /* a source reads the initial state */
	VD_KUBE_WATCHING,   /* up to date, except for the time that the server needs to send an event */
	VD_KUBE_RETRYING,   /* stopped; the next attempt is at retry_at */
	VD_KUBE_REMOVED,    /* the server does not have the resource; requested again every 30 s */
};

struct vd_kube_health {
	const char	  *resource; /* "pods", "deployments.apps"; NULL: the cluster itself */
	struct vd_bytes	   namespace_name, label_selector, field_selector; /* scope; empty: all */
	enum vd_kube_state state;
	vd_rev		   revision; /* newest revision received; 0: none */
	vd_mono		   heard;    /* when the server last sent something for this source */
	vd_mono		   retry_at; /* VD_KUBE_RETRYING: next attempt */
	unsigned	   attempts; /* failed attempts since the last success */
	uint64_t	   lists;    /* initial and forced lists so far */
	uint64_t	   watches;  /* watch requests so far */
	uint64_t	   events;   /* events received, without bookmarks and repeated ones */
	struct vd_error	   error;    /* cause of the last stop; code VD_OK: none */
	/* Why the readers of this source had to list again the last time; code VD_OK: they did not.
	 * VD_EXPIRED: the server lost history (its message), was restored or replaced (with evidence), has
	 * the resource again, or sent an event too late. VD_NOT_FOUND: the resource was removed. */
	struct vd_error list_cause;
};

struct vd_kube_options {
	size_t size; /* sizeof(struct vd_kube_options) */
	/* Source of the configuration, the first of: kubeconfig with context (NULL: its current one), if
	 * set; server and the members below, if server is set; the pod's service account, if
	 * KUBERNETES_SERVICE_HOST is set; $KUBECONFIG; ~/.kube/config. Members below that are set override
	 * what the source contains. */
	const char *server; /* http://, https://, or unix: and the path of a socket */
	const char *kubeconfig;
	const char *context;
	const char *token;
	const char *token_path; /* read again when it changes, at most every 10 s */
	/* PEM files: CA bundle for the server's certificate, client certificate and its key; read again
	 * when they change, at most every 10 s; used for new connections */
	const char *ca_path;
	const char *cert_path;
	const char *key_path;
	const char *tls_server_name; /* NULL: the host of server */
	const char *proxy_url;	/* NULL: from the kubeconfig, else HTTPS_PROXY, HTTP_PROXY and NO_PROXY */
	const char *user_agent; /* NULL: "vedette/<version>" */
	bool	    insecure;	/* do not verify the server's certificate */
	bool	    no_exec;	/* refuse a user of the kubeconfig whose credential comes from a program */
	vd_dur	    request_timeout; /* limit of one request that is not a watch; default 30 s */
	/* time after which a watch that received nothing is opened again; default 75 s, because servers
	 * send a bookmark each minute; at least 5 s */
	vd_dur silence_max;
	/* Of the objects that one source keeps, and of those that one range over it returns; keys and values;
	 * default 4 GiB, above 0. A source that would exceed it stops at its revision: it is
	 * VD_KUBE_RETRYING with VD_TOO_BIG, and tries again every 30 s or later. While a source lists again,
	 * it keeps the new objects beside the old ones. */
	uint64_t source_bytes_max;
	/* Called after each change of a state (see enum vd_kube_state), on the client's actor. May be
	 * NULL. health is borrowed for the call. */
	void (*changed)(void *arg, const struct vd_kube_health *health);
	void *changed_arg;
};
#define VD_KUBE_OPTIONS_INIT                                                                                 \
	{                                                                                                    \
		sizeof(struct vd_kube_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, false, false,               \
			{ (int64_t) 30 * 1000000000 }, { (int64_t) 75 * 1000000000 }, (uint64_t) 4 << 30, 0, \
			0                                                                                    \
	}

/* Opens a client; does not connect yet and does not block, except to read the configuration's files.
 * options are copied. The caller owns the client and closes it. Errors: VD_NOT_FOUND (no configuration:
 * the message lists the places), VD_INVALID_ARGUMENT (the message names the file and the entry),
 * VD_UNAVAILABLE (libcurl is missing), VD_NOMEM. */
VD_API VD_MUST_USE vd_status vd_kube_open(const struct vd_env *env, const struct vd_kube_options *options,
					  struct vd_kube **ret_kube, struct vd_error *reterr);
/* Closes the client. Its stores and informers must be closed before; otherwise the program aborts and names
 * them. Outstanding requests answer VD_CLOSED. done (may be NULL) is called once, when the client is freed.
 * The _wait form blocks until then and returns NULL. */
VD_API void	       vd_kube_close(struct vd_kube *kube, void (*done)(void *arg), void *arg);
VD_API struct vd_kube *vd_kube_close_wait(struct vd_kube *kube);
/* Returns the base URL of the server, for messages; borrowed until the client is closed. */
VD_API const char *vd_kube_server(const struct vd_kube *kube);
/* Returns the namespace of the pod or of the kubeconfig's context; "default" if neither names one. Borrowed
 * until the client is closed. */
VD_API const char *vd_kube_namespace(const struct vd_kube *kube);

/* Receives the health of the cluster or of one source; borrowed for the call. Must not call the client. */
typedef void (*vd_kube_health_fn)(void *arg, const struct vd_kube_health *health);
/* Calls visit with the health of the cluster, then of each source, on the calling thread. */
VD_API void vd_kube_health(struct vd_kube *kube, vd_kube_health_fn visit, void *arg);

/* ---- Requests ---- */

struct vd_kube_call {
	size_t		size;	/* sizeof(struct vd_kube_call) */
	const char     *method; /* NULL: GET */
	const char     *path;	/* begins with '/'; may include a query; already escaped */
	struct vd_bytes body;
	const char     *content_type; /* NULL: application/json if there is a body */
	const char     *accept;	      /* NULL: application/json */
	vd_dur		timeout;      /* 0: request_timeout of the client */
	/* Repeat the request after 429, 500, 502, 503, 504 and lost connections, until timeout. Refused
	 * with VD_INVALID_ARGUMENT for POST and PATCH, because the first one may have been applied. 429 and
	 * 503 with Retry-After are repeated for every method, because such a request was not applied. */
	bool repeat;
};
#define VD_KUBE_CALL_INIT                                                                                    \
	{                                                                                                    \
		sizeof(struct vd_kube_call), 0, 0, { 0, 0 }, 0, 0, { 0 }, false                              \
	}

struct vd_kube_answer {
	int		code; /* HTTP status */
	struct vd_bytes body; /* at most 1 GiB */
	struct vd_bytes content_type;
	struct vd_bytes warning; /* values of the Warning headers, one on each line */
};
/* Receives the answer. status VD_OK: the server answered 2xx. Otherwise error has the message of the
 * server's Status object or the cause, and answer is the response, or NULL if there was none. Statuses: 400
 * and 422 VD_INVALID, 401 and 403 VD_FORBIDDEN, 404 VD_NOT_FOUND, 409 VD_EXISTS or VD_CONFLICT by the
 * Status's reason, 410 VD_EXPIRED, 413 VD_TOO_BIG, 429 VD_FULL, 504 VD_TIMEOUT, other codes and no
 * connection VD_UNAVAILABLE; VD_TIMEOUT, VD_CLOSED, VD_NOMEM. */
typedef void (*vd_kube_answer_fn)(void *arg, vd_status status, const struct vd_kube_answer *answer,
				  const struct vd_error *error);
/* Sends a request with the client's identity. Redirects are not followed. Errors: VD_INVALID_ARGUMENT,
 * VD_CLOSED, VD_NOMEM. */
VD_API VD_MUST_USE vd_status vd_kube_request(struct vd_kube *kube, const struct vd_kube_call *call,
					     vd_kube_answer_fn done, void *arg);

/* ---- Resources ---- */

/* A resource of the server. */
struct vd_kube_resource {
	const char *group;   /* "" or NULL: the core group */
	const char *version; /* NULL: the server's preferred one */
	const char *plural;  /* such as "pods" */
	const char *kind;    /* such as "Pod"; may be NULL in arguments */
	bool	    cluster_scoped;
};
/* Receives a resource, borrowed for the call; NULL if status is not VD_OK. */
typedef void (*vd_kube_resource_fn)(void *arg, vd_status status, const struct vd_kube_resource *resource,
				    const struct vd_error *error);
/* Finds a resource by the name that a user types, as kubectl does: "po", "pods", "Pod",
 * "deployments.apps", "deployments.v1.apps". Discovery is read at the first call and read again, at
 * most every 10 s, when a name is not found. Errors: VD_NOT_FOUND, and those of vd_kube_request. */
VD_API VD_MUST_USE vd_status vd_kube_find(struct vd_kube *kube, const char *name, vd_kube_resource_fn done,
					  void *arg);
/* Writes the URL path of an object, or of the collection if name is empty, escaped, such as
 * "/api/v1/namespaces/a/pods/b". namespace_name empty: all namespaces. Returns the length of the whole path
 * without the NUL; if it is size or more, the text was truncated. 0: version or plural is NULL; the path is
 * empty. */
VD_API size_t vd_kube_path(const struct vd_kube_resource *resource, struct vd_bytes namespace_name,
			   struct vd_bytes name, char *path, size_t size);

/* ---- Sources ---- */

/* The part of a resource that is requested from the server; empty members: all. */
struct vd_kube_scope {
	struct vd_bytes namespace_name, label_selector, field_selector;
};

/* Opens a resource as a store for vd_cacher_new. Its keys are key_prefix plus [namespace "/"] name, as
 * the cacher with the same key_prefix expects them. Revisions are the server's resourceVersions and
 * comparable only within this store. Values are the server's JSON, minified and without
 * resourceVersion; unknown members are kept.
 *
 * Reads are sent to the server. The store follows the resource with one watch, however many watches are
 * opened on it, and keeps the newest record of each key (shared with the caches) and the last 16 MiB of
 * events. Writes of one key become POST, PUT and DELETE with the compared revision as a precondition; a
 * response of another kind or object is VD_UNAVAILABLE. VD_UNSUPPORTED: leases and their list, compaction,
 * counts of keys, and in transactions the previous record (vd_op.previous), leases, and more than one key.
 * Watches have previous records; vd_store_dump writes nothing. A list that waits for an event which the
 * server sent too late, or in part, ends with VD_TIMEOUT after request_timeout. A cacher with a
 * consistency_interval other than 0 lists the whole resource each time.
 *
 * Does not block and does not ask the server. The caller owns the store and closes it with
 * vd_store_close before the client. Errors: VD_INVALID_ARGUMENT (the message names the member),
 * VD_CLOSED, VD_NOMEM. */
VD_API VD_MUST_USE vd_status vd_store_open_kube(struct vd_kube *kube, const struct vd_kube_resource *resource,
						const struct vd_kube_scope *scope, const char *key_prefix,
						struct vd_store **ret_store, struct vd_error *reterr);

/* ---- Informers ---- */

struct vd_kube_informer;

/* Opens an informer on a resource, named as for vd_kube_find. Callers with the same resource and scope
 * share one store, cacher and local store; each has its own handler. scope NULL: everything. The informer
 * begins to fill itself when discovery has found the resource. While the server does not have the resource
 * (a CRD that is not installed), discovery is repeated, and vd_kube_health reports VD_KUBE_REMOVED. When a
 * resource is removed, its objects are removed from the local store, with handlers called; when it exists
 * again, the informer continues. The caller owns *ret_informer and closes it before the client. Errors:
 * VD_INVALID_ARGUMENT (the message names the argument), VD_CLOSED, VD_NOMEM. */
VD_API VD_MUST_USE vd_status vd_kube_informer_open(struct vd_kube *kube, const char *resource,
						   const struct vd_kube_scope	    *scope,
						   const struct vd_informer_handler *handler,
						   struct vd_kube_informer	   **ret_informer,
						   struct vd_error		    *reterr);
/* Blocks until the handler has received the initial state, at most for timeout (negative: for ever).
 * Errors: VD_TIMEOUT; VD_CLOSED; VD_INVALID_ARGUMENT where blocking is not allowed (vedette/env.h). */
VD_API VD_MUST_USE vd_status vd_kube_informer_synced_wait(struct vd_kube_informer *informer, vd_dur timeout);
/* The local store, as vd_informer_get, _count, _revision and _visit; empty until the resource is found. */
VD_API struct vd_object *vd_kube_informer_get(struct vd_kube_informer *informer,
					      struct vd_bytes namespace_name, struct vd_bytes name);
VD_API size_t		 vd_kube_informer_count(struct vd_kube_informer *informer);
VD_API vd_rev		 vd_kube_informer_revision(struct vd_kube_informer *informer);
VD_API size_t vd_kube_informer_visit(struct vd_kube_informer *informer, vd_object_visit_fn visit, void *arg);
/* Closes the caller's informer; its handler is not called after done (may be NULL) was called. The shared
 * store ends with the last informer that uses it. The _wait form blocks until done and returns NULL. */
VD_API void vd_kube_informer_close(struct vd_kube_informer *informer, void (*done)(void *arg), void *arg);
VD_API struct vd_kube_informer *vd_kube_informer_close_wait(struct vd_kube_informer *informer);

#ifdef __cplusplus
}
#endif
#endif
