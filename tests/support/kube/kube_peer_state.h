/* What kube_peer.c (state), kube_peer_http.c (requests) and kube_peer_transport.c (bytes) share. */
#ifndef KUBE_PEER_STATE_H
#define KUBE_PEER_STATE_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "kube_peer.h"

enum kube_peer_type { KUBE_PEER_ADDED, KUBE_PEER_MODIFIED, KUBE_PEER_DELETED };

struct kube_peer_event {
	int64_t		    revision;
	size_t		    resource;
	enum kube_peer_type type;
	char		    namespace_name[64], name[128];
	char		   *rest; /* the object from `"metadata":{` on, without resourceVersion */
};

struct kube_peer_resource {
	char root[128], plural[64], kind[64], api_version[128];
	bool is_namespaced, is_removed;
};

struct kube_peer_document {
	char path[128], *body;
};

struct kube_peer_text {
	char  *data;
	size_t size, capacity;
};

struct kube_peer_exchange {
	struct vdi_kube_exchange base;
	TAILQ_ENTRY(kube_peer_exchange) node;
	struct kube_peer_transport *transport;
	struct vdi_kube_handler	    handler;
	char			   *method, *path, *token;
	struct kube_peer_text	    body; /* of the request */
	vd_mono			    ready_at, deadline, heard, cut_at;
	vd_dur			    silence_max;
	uint64_t		    round;

	/* The response. */
	bool		      is_answered, has_head, is_paused, is_complete, is_silent;
	atomic_bool	      is_cut;
	int		      code;
	unsigned	      retry_after_s;
	struct kube_peer_text text;	 /* not sent yet */
	size_t		      cut_after; /* bytes left; SIZE_MAX: never */

	/* A watch. */
	bool	is_watch, wants_bookmarks, is_synced;
	size_t	resource, next_event;
	char	namespace_name[64];
	int64_t position, waiting_revision;
	vd_mono event_at, bookmark_at, last_bookmark_at, end_at;
};

struct kube_peer_transport {
	struct vdi_kube_transport	  base;
	struct kube_peer_transport	 *next;
	struct kube_peer		 *peer;
	struct vd_actor			 *actor;
	struct vdi_kube_transport_options options;
	TAILQ_HEAD(, kube_peer_exchange) exchanges;
	struct kube_peer_exchange *stepping; /* NULL: none, or it was cancelled */
	uint64_t		   round;
	vd_mono			   run_at;
	bool			   is_closing;
};

void kube_peer_append(struct kube_peer_text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Writes the object of an event, with kind and apiVersion or without. */
void kube_peer_write(const struct kube_peer *peer, const struct kube_peer_event *event, bool has_kind,
		     struct kube_peer_text *text);
/* The newest event of the object up to revision; NULL: none, or it is deleted. */
const struct kube_peer_event *kube_peer_object(const struct kube_peer *peer, size_t resource,
					       const char *namespace_name, const char *name,
					       int64_t revision);
/* The objects at revision, by key; the caller frees the array. namespace_name "": all. */
const struct kube_peer_event **kube_peer_objects(const struct kube_peer *peer, size_t resource,
						 const char *namespace_name, int64_t revision,
						 size_t *ret_count);
/* Appends an event of a new revision; takes over rest. */
int64_t kube_peer_change(struct kube_peer *peer, size_t resource, enum kube_peer_type type,
			 const char *namespace_name, const char *name, char *rest);
void	kube_peer_wake(struct kube_peer *peer);

/* NULL: none. */
struct kube_peer *kube_peer_of(const struct vd_env *env);

/* Fills the response of an exchange. */
void kube_peer_answer(struct kube_peer_exchange *exchange, vd_mono now);
/* Appends to a watch what has happened; returns when it has more to do. */
vd_mono kube_peer_watch_step(struct kube_peer_exchange *exchange, vd_mono now);

#endif
