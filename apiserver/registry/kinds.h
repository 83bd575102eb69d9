/* The kinds of a server: their sources, and how a new set of kinds is published.
 *
 * An actor combines the declared kinds (built-in ones, resources file) with the CustomResourceDefinitions,
 * publishes a new set when either changes, and continues when all loops have taken that set. The loops look
 * kinds up in sets and do not depend on this module.
 */
#ifndef VDI_KINDS_H
#define VDI_KINDS_H

#include <vedette/server.h>

#include "lock.h"
#include "resource_set.h"

/* longest time that a request waits for a kind that is about to be served */
#define VDI_KIND_PATIENCE VD_SECONDS(10)

struct vdi_definitions;
struct vd_informer;
struct vdi_kind_waiter;

/* The server that owns the kinds. All members are borrowed and fixed; lock and changed are the server's
 * own. */
struct vdi_kinds_host {
	const struct vd_env	       *env;
	struct vd_store		       *store;
	const struct vd_server_options *options;
	struct vdi_lock		       *lock;
	struct vdi_condition	       *changed;
	void			       *arg;
	/* Returns the counters of a resource; any thread, the lock not held. VD_NOMEM, VD_FULL. */
	vd_status (*counts)(void *arg, const struct vdi_resource *resource,
			    struct vdi_resource_counts **ret_counts);
	/* A new set is published: the first is called with the lock held, before a thread can use the set;
	 * the second without the lock, afterwards. */
	void (*about_to_publish_locked)(void *arg);
	void (*published)(void *arg);
	/* Returns true if all loops have taken the set of this number. */
	bool (*is_taken)(void *arg, uint64_t number);
};

struct vdi_kinds {
	struct vdi_kinds_host host;	/* fixed */
	vd_dur		      patience; /* VDI_KIND_PATIENCE */

	/* Owned by the actor; before it exists and after it is closed, by the thread that starts and stops
	 * the server. */
	struct vdi_resources	declared;    /* built-in kinds and resources file */
	struct vdi_definitions *definitions; /* NULL: the server serves no definitions */
	struct vd_informer     *informer;
	bool			is_published; /* the newest set has all current kinds */
	uint64_t		taken_count;  /* of reloaded */
	vd_rev			looked;	      /* definitions up to this revision are known */

	/* number of the newest set; raised under the lock, together with resource_set */
	_Atomic uint64_t served_number;

	/* Guarded by the server's lock. */
	struct vdi_resource_set *resource_set; /* the newest set */
	size_t			 cache_count;
	struct vd_actor		*actor;	       /* NULL: not created yet, or closing */
	struct vdi_resources	*reloaded;     /* replaces declared; owned */
	size_t			 call_count;   /* calls into the store in flight */
	bool			 has_news;     /* the informer's store has changed */
	bool			 is_synced;    /* the informer has read all existing definitions */
	bool			 is_settled;   /* all existing definitions were served once; stays set */
	uint64_t		 reload_count; /* reloads that were published */
	struct vdi_kind_waiter	*waiters;
};

/* Reads the kinds of the options and makes the caches and the first set. Call before the loops run.
 * VD_INVALID: the message names entry and member. VD_NOMEM. Blocks on the disk. */
VDI_MUST_USE vd_status vdi_kinds_start(struct vdi_kinds *kinds, const struct vdi_kinds_host *host,
				       struct vd_error *reterr);
/* Starts watching and serving definitions. Call when the loops exist. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_kinds_run(struct vdi_kinds *kinds, struct vd_error *reterr);
/* Blocks until all existing definitions are served. VD_TIMEOUT. */
VDI_MUST_USE vd_status vdi_kinds_wait(struct vdi_kinds *kinds, vd_mono due, struct vd_error *reterr);
/* Reads the kinds of the options again; blocks until they are served. VD_INVALID: the old kinds stay, the
 * message gives the reason. VD_NOMEM, VD_CLOSED. */
VDI_MUST_USE vd_status vdi_kinds_reload(struct vdi_kinds *kinds, struct vd_error *reterr);
/* Returns the newest set with a reference for the caller; NULL when the server ends. Any thread. */
struct vdi_resource_set *vdi_kinds_get(struct vdi_kinds *kinds);
/* Freezes the set, and ends the watches of kinds that are gone. Call before the controllers are ended, which
 * wait for these watches. */
void vdi_kinds_halt(struct vdi_kinds *kinds);
/* Ends all caches. Call after the last connection was closed, while the loops still run. Blocks until the
 * caches are freed. */
void vdi_kinds_stop(struct vdi_kinds *kinds);

/* Called around each call into the store; end wakes the actor. Any thread, the server's lock not held. */
void vdi_kinds_call_begin(struct vdi_kinds *kinds);
void vdi_kinds_call_end(struct vdi_kinds *kinds);
/* Calls done when the definition (`plural.group`) is served as of revision, or when that fails: VD_OK;
 * VD_TIMEOUT: not within VDI_KIND_PATIENCE; VD_CLOSED. done runs on any thread, perhaps before this returns.
 * VD_NOMEM. */
typedef void (*vdi_kind_fn)(void *arg, vd_status status);
VDI_MUST_USE vd_status vdi_kinds_await(struct vdi_kinds *kinds, struct vd_bytes definition, vd_rev revision,
				       vdi_kind_fn done, void *arg);
/* The server's lock is held. */
void vdi_kinds_wake_locked(struct vdi_kinds *kinds);
#endif
