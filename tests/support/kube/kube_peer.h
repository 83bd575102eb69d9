/* A Kubernetes API server in memory, for the simulator: the transport of a client (kube_transport.h) that
 * answers requests itself.
 *
 *   struct kube_peer *peer = kube_peer_new(env, seed);
 *   kube_peer_add_resource(peer, "", "v1", "pods", "Pod", true);
 *   vdi_kube_open_over(env, &options, kube_peer_transport_new, &kube, &error);
 *
 * One sequence of revisions for all resources. Lists with limit, continue, resourceVersion and Exact match;
 * get, POST, PUT, DELETE with preconditions; watches with resourceVersion, bookmarks, initial events and
 * timeoutSeconds. Selectors are ignored. The members are changed by the test at any time between steps.
 * Also with threads, if the members above events are not changed meanwhile. With preemption
 * (vdi_sim_set_preemptions) the client's handlers are suspended, the peer's code is not. */
#ifndef KUBE_PEER_H
#define KUBE_PEER_H

#include <pthread.h>

#include "kube_transport.h"

enum kube_peer_watch_list {
	KUBE_PEER_WATCH_LIST,
	KUBE_PEER_WATCH_LIST_REFUSED, /* watch_list_code */
	KUBE_PEER_WATCH_LIST_IGNORED, /* an old server: synthetic ADDED events, no annotation */
};

/* Percentages of requests, drawn from the peer's seed. */
struct kube_peer_faults {
	unsigned refused;     /* 429 with Retry-After 1, 500, 502 or 503 */
	unsigned unreachable; /* the connection fails before a response */
	unsigned cut;	      /* the connection is cut at a random byte, or after up to 30 s */
	unsigned silent;      /* nothing more arrives from some byte on */
};

struct kube_peer_event;
struct kube_peer_resource;
struct kube_peer_document;
struct kube_peer_transport;

struct kube_peer {
	struct vd_env		 *env;
	struct kube_peer_faults	  faults;
	enum kube_peer_watch_list watch_list;
	int			  watch_list_code; /* 400, 403 or 422 */
	bool			  no_bookmarks;	   /* no watch cache: no bookmarks, no WatchList end */
	bool			  gone_as_event;   /* 410 as ERROR event of a watch, not as status */
	int			  refuse_code;	   /* status of the next refuse_count lists and watches */
	unsigned		  refuse_count;
	unsigned		  chunk_max;	   /* bytes of a chunk; 0: 64 KiB */
	vd_dur			  event_gap;	   /* between two events of a watch; 0: none */
	unsigned		  early_bookmarks; /* percentage; between two events of one revision */
	unsigned		  page_max;	   /* longest page, whatever limit says; 0: none */
	const char		 *write_answer;	   /* body of successful writes; NULL: the object */
	const char		 *token;	   /* NULL: any; others get 401 */
	char			  uid[64];	   /* of namespace kube-system */
	int64_t			  revision, compacted;

	/* Counters of requests; gone: answers 410. */
	unsigned gets, lists, current, pages, watch_lists, watches, writes, gone, refused, identities;
	unsigned open_watches;

	struct kube_peer_event	   *events; /* the history, which is also the state */
	size_t			    event_count, event_capacity;
	struct kube_peer_resource  *resources;
	size_t			    resource_count;
	struct kube_peer_document  *documents;
	size_t			    document_count;
	struct kube_peer_transport *transports;
	struct kube_peer	   *next;
	uint64_t		    random;
	pthread_mutex_t mutex; /* recursive; of all but the members above events, which are set before */
};

struct kube_peer *kube_peer_new(struct vd_env *env, uint64_t seed);
/* All clients must be closed. */
void kube_peer_free(struct kube_peer *peer);
/* A transport to the peer of the options' env. */
vd_status kube_peer_transport_new(const struct vdi_kube_transport_options *options,
				  struct vdi_kube_transport **ret_transport, struct vd_error *reterr);

void kube_peer_add_resource(struct kube_peer *peer, const char *group, const char *version,
			    const char *plural, const char *kind, bool is_namespaced);
/* The resource answers 404, its objects are deleted; or it comes back. */
void kube_peer_remove_resource(struct kube_peer *peer, const char *plural);
void kube_peer_return_resource(struct kube_peer *peer, const char *plural);
/* GET of exactly this path (without its query) answers body; discovery, for example. */
void kube_peer_set_document(struct kube_peer *peer, const char *path, const char *body);

/* Creates or replaces an object; members follow metadata, such as "\"spec\":{}"; may be empty. Returns the
 * revision. */
int64_t kube_peer_put(struct kube_peer *peer, const char *plural, const char *namespace_name,
		      const char *name, const char *members);
/* Returns the revision; 0: there is no such object. */
int64_t kube_peer_delete(struct kube_peer *peer, const char *plural, const char *namespace_name,
			 const char *name);
/* Deletes several objects of a namespace in one revision. */
int64_t kube_peer_delete_many(struct kube_peer *peer, const char *plural, const char *namespace_name,
			      const char *const *names, size_t count);
/* A change of a resource that no one watches: only the revision moves. */
int64_t kube_peer_advance(struct kube_peer *peer);
/* Watches and lists before the current revision answer 410 from now on. */
void kube_peer_compact(struct kube_peer *peer);
/* The server is restored to an older revision: connections break, kube-system has another uid. */
void kube_peer_restore(struct kube_peer *peer, int64_t revision);
/* All connections break now. */
void kube_peer_cut(struct kube_peer *peer);

size_t kube_peer_count(const struct kube_peer *peer, const char *plural);
/* Revision of an object; 0: there is none. */
int64_t kube_peer_find(const struct kube_peer *peer, const char *plural, const char *namespace_name,
		       const char *name);
/* A random number below bound, from the peer's seed. */
uint64_t kube_peer_random(struct kube_peer *peer, uint64_t bound);

#endif
