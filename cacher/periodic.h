/* What the cacher remembers of the checks that it makes from time to time: whether the cache equals the store
 * (consistency.h), and how much the store has (object_count.h). The structs alone, so that the struct of the
 * cacher can hold them and the checks can use the cacher. */
#ifndef VDI_PERIODIC_H
#define VDI_PERIODIC_H

#include <stdatomic.h>

#include "base.h"
#include "btree.h"
#include "storage.h"

enum vdi_consistency_verdict {
	VDI_CONSISTENCY_NONE,
	VDI_CONSISTENCY_SUCCESS,
	VDI_CONSISTENCY_FAILURE,
	VDI_CONSISTENCY_ERROR
};

struct vdi_consistency {
	/* The cacher's actor. */
	vd_mono			     due; /* VD_NEVER: off, or under way */
	bool			     is_running;
	uint64_t		     counts[4]; /* by verdict */
	vd_mono			     checked;	/* the last verdict */
	enum vdi_consistency_verdict verdict;
	vd_rev			     verdict_revision;
	uint64_t		     verdict_digest; /* the cache's */

	/* Of the check under way: the call's from its start to `answered`, else the actor's. */
	struct vdi_btree_snapshot snapshot;
	struct vdi_btree_cursor	  cursor;
	struct vd_object	 *head; /* the cache's object that comes next; lent by the snapshot */
	vd_rev			  revision;
	uint64_t		  cache_digest;
	uint64_t		  store_digest;
	vd_mono			  issued;
	bool			  differs;
	bool			  more;
	vd_status		  status;
	char			  difference[VD_ERROR_MESSAGE_SIZE];
	struct vd_kv		 *last; /* of the page before; owned; NULL: none */
	atomic_bool		  answered;
};

struct vdi_object_count {
	vd_mono	    due;
	bool	    is_running;
	int64_t	    count; /* the call's until answered; -1: it failed */
	atomic_bool answered;
};

#endif
