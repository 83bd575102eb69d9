/* Open objects and the objects that they use. Closing an env, a store or a codec before its users stops the
 * program with a message that names them, instead of leaving them with freed memory.
 *
 * Objects that callers open register here until they are gone. There is one list for the process, because a
 * codec has no env. Any thread; only vdi_usage_new allocates.
 */
#ifndef VDI_USAGE_H
#define VDI_USAGE_H

#include <stdatomic.h>

#include "base.h"

struct vdi_usage {
	/* Fixed at vdi_usage_begin; borrowed until vdi_usage_end. */
	const char *kind;      /* "cacher" */
	const char *name;      /* "pods"; NULL: there is only one */
	const char *closed_by; /* "vd_cacher_close" */
	/* "vd_store_watch_close": watches may stay open after the object's own close; NULL: watchers may,
	 * which vd_watcher_close closes */
	const char	    *watch_closed_by;
	const struct vd_env *env;

	/* Any thread. */
	/* open watchers (or watches), which keep the object alive after its own close */
	_Atomic uint32_t watchers;
	atomic_bool	 is_closing; /* its owner has closed it, and it ends without further calls */

	/* Under the list's lock. */
	const void	  *uses[2]; /* store and codec; NULL: none */
	struct vdi_usage  *next;
	struct vdi_usage **place; /* NULL: not in the list */
};

/* Allocates a usage in a block of its own, for an object that is freed before its watches: it begins here,
 * and ends with the last reference. NULL: out of memory. */
struct vdi_usage *vdi_usage_new(const struct vdi_usage *usage);
/* NULL is allowed; returns NULL. */
struct vdi_usage *vdi_usage_unref(struct vdi_usage *usage);
/* A watch was opened, and gets a reference of its own; a watch was closed. NULL is allowed for both. */
struct vdi_usage *vdi_usage_watch_opened(struct vdi_usage *usage);
void		  vdi_usage_watch_closed(struct vdi_usage *usage);
void		  vdi_usage_begin(struct vdi_usage *usage);
/* From now on the object uses only its env. */
void vdi_usage_release(struct vdi_usage *usage);
/* Allowed without a begin. */
void vdi_usage_end(struct vdi_usage *usage);
/* Called when an env is closed: stops the program unless all objects of the env are closed or closing. */
void vdi_usage_check_env(const char *call, const struct vd_env *env);
/* Called when a store or a codec is closed: stops the program unless all its users are gone. */
void vdi_usage_check(const char *call, const void *used);

#endif
