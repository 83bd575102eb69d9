/* The kinds of a server: where they come from, and how a set of them becomes the one that is served.
 *
 * An actor of its own brings together what the server was told of (built-in kinds, resources file) and what
 * CustomResourceDefinitions say, makes a new set when either is another one, and goes on when all loops have
 * taken it. The loops look things up in sets and know nothing of this.
 */
#ifndef VDI_KINDS_H
#define VDI_KINDS_H

#include <vedette/server.h>

#include "lock.h"
#include "served.h"

/* How long a request waits for a kind that is about to be served. */
#define VDI_KIND_PATIENCE VD_SECONDS(10)

struct vdi_definitions;
struct vd_informer;
struct vdi_kind_waiter;

/* The server around it. Everything is lent and fixed; lock and changed are the server's own. */
struct vdi_kinds_host {
	const struct vd_env	       *env;
	struct vd_store		       *store;
	const struct vd_server_options *options;
	struct vdi_lock		       *lock;
	struct vdi_condition	       *changed;
	void			       *arg;
	/* What is counted of a resource; any thread, the lock not held. VD_NOMEM, VD_FULL. */
	vd_status (*counts)(void *arg, const struct vdi_resource *resource,
			    struct vdi_resource_counts **ret_counts);
	/* There is another set: the first one before anybody can use it, with the lock held; the second one
	 * without. */
	void (*about_to_publish_locked)(void *arg);
	void (*published)(void *arg);
	/* Whether all loops have taken the set of this number. */
	bool (*is_taken)(void *arg, uint64_t number);
};

struct vdi_kinds {
	struct vdi_kinds_host host;	/* fixed */
	vd_dur		      patience; /* VDI_KIND_PATIENCE */

	/* The actor only; before it is there and after it went, who starts and stops the server. */
	struct vdi_resources	declared;    /* what the server was told of */
	struct vdi_definitions *definitions; /* NULL: the server has none */
	struct vd_informer     *informer;
	bool			is_published; /* the newest set holds everything */
	uint64_t		taken_count;  /* of reloaded */
	vd_rev			looked;	      /* definitions up to here are known */

	_Atomic uint64_t served_number; /* of sets that there were; raised under the lock, with served */

	/* Under the server's lock. */
	struct vdi_served      *served; /* the newest */
	size_t			cache_count;
	struct vd_actor	       *actor;	      /* NULL: there is none yet, or it goes */
	struct vdi_resources   *reloaded;     /* to become what is declared; owned */
	size_t			call_count;   /* calls into the store that have not answered */
	bool			has_news;     /* the informer's picture is another one */
	bool			is_synced;    /* the informer has seen all there is */
	bool			is_settled;   /* everything there was is served; stays so */
	uint64_t		reload_count; /* that were published */
	struct vdi_kind_waiter *waiters;
};

/* Before the loops run: reads what the options name, makes the caches and the first set. VD_INVALID: the
 * message names entry and member. VD_NOMEM. Blocks for the disk. */
VDI_MUST_USE vd_status vdi_kinds_start(struct vdi_kinds *kinds, const struct vdi_kinds_host *host,
				       struct vd_error *reterr);
/* When the loops are there: definitions are heard and served from now on. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_kinds_run(struct vdi_kinds *kinds, struct vd_error *reterr);
/* Blocks until all definitions that there are are served. VD_TIMEOUT. */
VDI_MUST_USE vd_status vdi_kinds_wait(struct vdi_kinds *kinds, vd_mono due, struct vd_error *reterr);
/* Reads what the options name again; blocks until that is served. VD_INVALID: the old kinds stay, the message
 * says why. VD_NOMEM, VD_CLOSED. */
VDI_MUST_USE vd_status vdi_kinds_reload(struct vdi_kinds *kinds, struct vd_error *reterr);
/* The newest set, a use of the caller's; NULL when the server ends. Any thread. */
struct vdi_served *vdi_kinds_get(struct vdi_kinds *kinds);
/* The set stays as it is from now on, and watches of kinds that are gone end: before the controllers, which
 * wait for that, are ended. */
void vdi_kinds_halt(struct vdi_kinds *kinds);
/* After the last connection went: nothing is served any more, all caches end. Blocks until they are gone; the
 * loops must run. */
void vdi_kinds_stop(struct vdi_kinds *kinds);

/* Any thread, the server's lock not held: around each call into the store; end wakes the actor. */
void vdi_kinds_call_begin(struct vdi_kinds *kinds);
void vdi_kinds_call_end(struct vdi_kinds *kinds);
/* done, on any thread and perhaps before this returns, when the definition (`plural.group`) is served as it
 * was at revision, or will not be: VD_OK; VD_TIMEOUT: it is still to come (VDI_KIND_PATIENCE); VD_CLOSED.
 * VD_NOMEM. */
typedef void (*vdi_kind_fn)(void *arg, vd_status status);
VDI_MUST_USE vd_status vdi_kinds_await(struct vdi_kinds *kinds, struct vd_bytes definition, vd_rev revision,
				       vdi_kind_fn done, void *arg);
/* The server's lock is held. */
void vdi_kinds_wake_locked(struct vdi_kinds *kinds);
#endif
