/* The informers of a Kubernetes client, for the files that implement them.
 *
 *   kube_informer.c          one caller's informer: lookup, handler, public functions
 *   kube_informers.c         the client's list of them, and what runs on its actor
 *   kube_informer_shared.c   what callers with the same resource and scope share
 *
 * The state belongs to the client's actor, except for the members under a lock. Any thread changes an
 * informer by putting it into the list's queue (vdi_kube_informers_queue); the actor then calls
 * vdi_kube_informer_step. Neither lock is held during a call of a handler or of the client. */
#ifndef VDI_KUBE_INFORMER_STATE_H
#define VDI_KUBE_INFORMER_STATE_H

#include <sys/queue.h>

#include <vedette/kube.h>

#include "kube_client.h"
#include "lock.h"
#include "usage.h"
#include "wait.h"

/* A resource that discovery does not have is looked for in known results after the first, and discovery is
 * read again for it after the second. */
#define VDI_KUBE_INFORMER_FIND_EVERY VD_SECONDS(10)
#define VDI_KUBE_INFORMER_READ VD_SECONDS(30)
#define VDI_KUBE_INFORMER_READ_EACH 3 /* looks */
/* History of the cacher below an informer, which only the informer's own watch uses. */
#define VDI_KUBE_INFORMER_HISTORY_BYTES ((int64_t) 4 << 20)

struct vdi_kube_informers;

/* Opens the store of a resource; vd_store_open_kube, except in tests. */
typedef vd_status (*vdi_kube_store_open_fn)(struct vd_kube *kube, const struct vd_kube_resource *resource,
					    const struct vd_kube_scope *scope, const char *key_prefix,
					    struct vd_store **ret_store, struct vd_error *reterr);

/* ---- Shared: kube_informer_shared.c ---- */

/* Store, codec, cacher and informer of one resource and scope. On the client's actor. */
struct vdi_kube_shared {
	LIST_ENTRY(vdi_kube_shared) node;
	struct vdi_kube_informers *informers;
	char			  *group, *version, *plural; /* owned */
	bool			   cluster_scoped;
	struct vd_kube_scope	   scope; /* texts are owned */
	struct vd_store		  *store;
	struct vd_codec		  *codec;
	struct vd_cacher	  *cacher;
	struct vd_informer	  *informer;
	LIST_HEAD(, vd_kube_informer) users;
	bool			 is_removed; /* at the last check: the server does not have it */
	bool			 was_empty;  /* at the last check that found it removed */
	struct vd_kube_informer *last_user;  /* waits for the end */
};

/* Finds or opens. VD_NOMEM, and the errors of vd_store_open_kube, vd_cacher_new and vd_informer_open. After
 * an error, *ret_shared is NULL, or has parts that the caller closes with vdi_kube_shared_close. */
VDI_MUST_USE vd_status vdi_kube_shared_get(struct vdi_kube_informers	 *informers,
					   const struct vd_kube_resource *resource,
					   const struct vd_kube_scope	 *scope,
					   struct vdi_kube_shared **ret_shared, struct vd_error *reterr);
/* Closes it if it has no user, and frees it; queues last_user with has_ended when nothing is left. Returns
 * false, and does nothing, if it has users. */
bool vdi_kube_shared_close(struct vdi_kube_shared *shared, struct vd_kube_informer *last_user);
/* Looks for resources that were removed and are now served in another version; moves their users. */
void vdi_kube_shared_check(struct vdi_kube_informers *informers);

/* Copies and frees texts of a scope. VD_NOMEM leaves nothing. */
VDI_MUST_USE vd_status vdi_kube_scope_copy(struct vd_kube_scope *copy, const struct vd_kube_scope *scope);
void		       vdi_kube_scope_fini(struct vd_kube_scope *scope);
bool		       vdi_kube_scope_equal(const struct vd_kube_scope *a, const struct vd_kube_scope *b);

/* ---- The list: kube_informers.c ---- */

/* A part of the client (kube_parts.h), which lives as long as it. */
struct vdi_kube_informers {
	struct vd_kube	      *kube;
	struct vdi_kube_member member;
	vdi_kube_store_open_fn store_open; /* fixed before the first informer */

	/* The client's actor. */
	LIST_HEAD(, vdi_kube_shared) shared;
	vd_mono check_at; /* next vdi_kube_shared_check */

	struct vdi_lock lock; /* VDI_LOCK_KUBE_PARTS: also taken under the lock of an informer */
	/* Under lock. */
	STAILQ_HEAD(vdi_kube_informer_queue, vd_kube_informer) queue;
};

/* VD_NOMEM, VD_CLOSED. */
VDI_MUST_USE vd_status vdi_kube_informers_of(struct vd_kube *kube, struct vdi_kube_informers **ret_informers);
/* Any thread: has vdi_kube_informer_step called; sets *flag (may be NULL) at the same time, so that the step
 * that sees the flag is the one of this call or an earlier one. */
void vdi_kube_informers_queue(struct vd_kube_informer *informer, bool *flag);

/* Actor: has the list's run called. */
void vdi_kube_informers_wake(struct vdi_kube_informers *informers);

/* ---- One caller's: kube_informer.c ---- */

enum vdi_kube_informer_step {
	VDI_KUBE_INFORMER_NEW,
	VDI_KUBE_INFORMER_FINDING,   /* its member exists */
	VDI_KUBE_INFORMER_ATTACHED,  /* its handler is registered with shared->informer */
	VDI_KUBE_INFORMER_DETACHING, /* waits for readers of shared->informer, then for the registration */
	VDI_KUBE_INFORMER_ENDING,    /* waits for the end of what was shared */
	VDI_KUBE_INFORMER_ENDED,     /* waits for the answer of a find */
};

struct vd_kube_informer {
	/* Fixed at creation. */
	struct vdi_kube_informers *informers;
	char			  *name;  /* as typed; owned */
	struct vd_kube_scope	   scope; /* texts are owned */
	struct vd_informer_handler handler;
	struct vdi_usage	   usage;

	/* The client's actor. */
	enum vdi_kube_informer_step step;
	struct vdi_kube_member	    member; /* VDI_KUBE_INFORMER_FINDING */
	unsigned		    finds;  /* unanswered: 0 or 1 */
	unsigned		    misses; /* times that the resource was not found, in a row */
	struct vdi_kube_backoff	    backoff;
	vd_mono			    find_at;
	struct vdi_kube_shared	   *shared;
	LIST_ENTRY(vd_kube_informer) user_node;
	struct vd_informer_registration *registration;
	bool				 is_removing; /* the registration */

	/* Under the list's lock. */
	STAILQ_ENTRY(vd_kube_informer) queue_node;
	bool is_queued, is_closing, is_moving, is_detached, has_ended;
	void (*closed)(void *arg);
	void *closed_arg;

	struct vdi_lock lock; /* VDI_LOCK_KUBE_INFORMER */
	/* Under lock. */
	struct vd_informer *reading; /* shared->informer for readers; NULL: none */
	unsigned	    readers; /* calls of visit under way */
	unsigned	    waiting; /* calls of synced_wait under way */
	bool		    is_synced, is_shut;
	struct vdi_kube_informer_waiter {
		struct vdi_wait			*wait;
		struct vdi_kube_informer_waiter *next;
	} * waiters;

	struct vdi_lock health_lock; /* VDI_LOCK_LEAF */
	/* Under health_lock. */
	enum vd_kube_state state;
	unsigned	   attempts;
	vd_mono		   retry_at;
	struct vd_error	   error;
};

/* Actor: does what can be done now. May free the informer. */
void vdi_kube_informer_step(struct vd_kube_informer *informer);

#endif
