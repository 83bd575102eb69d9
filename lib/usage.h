/* What is open, and what it uses: an env, a store or a codec that is closed before its users names them and stops the program, instead of leaving them with freed
 * memory.
 *
 * Objects that callers open register here and leave when they are gone. There is one list for the process, because a codec knows no env. Any thread; nothing
 * allocates.
 */
#ifndef VDI_USAGE_H
#define VDI_USAGE_H

#include <stdatomic.h>

#include "base.h"

struct vdi_usage {
	/* Fixed at the begin; lent until the end. */
	const char	    *kind;	/* "cacher" */
	const char	    *name;	/* "pods"; NULL: there is one only */
	const char	    *closed_by; /* "vd_cacher_close" */
	const struct vd_env *env;

	/* Any thread. */
	_Atomic uint32_t watchers;   /* open ones, which keep it alive after its own close */
	atomic_bool	 is_closing; /* its owner has closed it, and it goes by itself */

	/* The list's lock. */
	const void	  *uses[2]; /* the store, the codec; NULL: none */
	struct vdi_usage  *next;
	struct vdi_usage **place; /* NULL: not in the list */
};

void vdi_usage_begin(struct vdi_usage *usage);
/* It uses nothing but its env any more. */
void vdi_usage_release(struct vdi_usage *usage);
/* Fine where there was no begin. */
void vdi_usage_end(struct vdi_usage *usage);
/* For the call that closes an env: stops the program unless everything of the env is gone or going. */
void vdi_usage_check_env(const char *call, const struct vd_env *env);
/* For the call that closes a store or a codec: stops the program unless all its users are gone. */
void vdi_usage_check(const char *call, const void *used);

#endif
