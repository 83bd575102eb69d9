/* What is open, and what it uses: an env, a store or a codec that is closed before its users names them and
 * stops the program, instead of leaving them with freed memory.
 *
 * Objects that callers open register here and leave when they are gone. There is one list for the process,
 * because a codec knows no env. Any thread; only vdi_usage_new allocates.
 */
#ifndef VDI_USAGE_H
#define VDI_USAGE_H

#include <stdatomic.h>

#include "base.h"

struct vdi_usage {
	/* Fixed at the begin; lent until the end. */
	const char *kind;      /* "cacher" */
	const char *name;      /* "pods"; NULL: there is one only */
	const char *closed_by; /* "vd_cacher_close" */
	/* "vd_store_watch_close": what stays open after its own close are watches; NULL: watchers, by
	 * vd_watcher_close */
	const char	    *watch_closed_by;
	const struct vd_env *env;

	/* Any thread. */
	_Atomic uint32_t watchers;   /* open ones (or watches), which keep it alive after its own close */
	atomic_bool	 is_closing; /* its owner has closed it, and it goes by itself */

	/* The list's lock. */
	const void	  *uses[2]; /* the store, the codec; NULL: none */
	struct vdi_usage  *next;
	struct vdi_usage **place; /* NULL: not in the list */
};

/* A usage in a block of its own, for an object that is gone before its watches are: begun, and ended with the
 * last reference. NULL: no memory. */
struct vdi_usage *vdi_usage_new(const struct vdi_usage *usage);
/* NULL is fine; returns NULL. */
struct vdi_usage *vdi_usage_unref(struct vdi_usage *usage);
/* A watch opens, with a reference of its own, and is closed. NULL is fine for both. */
struct vdi_usage *vdi_usage_watch_opened(struct vdi_usage *usage);
void		  vdi_usage_watch_closed(struct vdi_usage *usage);
void		  vdi_usage_begin(struct vdi_usage *usage);
/* It uses nothing but its env any more. */
void vdi_usage_release(struct vdi_usage *usage);
/* Fine where there was no begin. */
void vdi_usage_end(struct vdi_usage *usage);
/* For the call that closes an env: stops the program unless everything of the env is gone or going. */
void vdi_usage_check_env(const char *call, const struct vd_env *env);
/* For the call that closes a store or a codec: stops the program unless all its users are gone. */
void vdi_usage_check(const char *call, const void *used);

#endif
