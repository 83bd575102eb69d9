/* The state of the cacher's periodic tasks: the comparison of cache and store (consistency.h) and the object
 * count (object_count.h). Only the structs, so that the struct of the cacher can embed them while the tasks
 * use the cacher. */
#ifndef VDI_PERIODIC_H
#define VDI_PERIODIC_H

#include <stdatomic.h>

#include "base.h"
#include "btree.h"
#include "storage.h"

enum vdi_consistency_result {
	VDI_CONSISTENCY_NONE,
	VDI_CONSISTENCY_SUCCESS,
	VDI_CONSISTENCY_FAILURE,
	VDI_CONSISTENCY_ERROR
};

struct vdi_consistency {
	/* The cacher's actor. */
	vd_mono			    due; /* VD_NEVER: disabled, or running */
	bool			    is_running;
	uint64_t		    counts[4]; /* by result */
	vd_mono			    checked;   /* time of the last result */
	enum vdi_consistency_result result;
	vd_rev			    result_revision;
	uint64_t		    result_digest; /* digest of the cache */

	/* The running check. The store call owns these from its start until `answered`, otherwise the
	 * actor. */
	struct vdi_btree_snapshot snapshot;
	struct vdi_btree_cursor	  cursor;
	struct vd_object	 *head; /* next object of the cache; borrowed from the snapshot */
	vd_rev			  revision;
	uint64_t		  cache_digest;
	uint64_t		  store_digest;
	vd_mono			  issued;
	bool			  differs;
	bool			  more;
	vd_status		  status;
	char			  difference[VD_ERROR_MESSAGE_SIZE];
	struct vd_kv		 *last; /* last key of the previous page; owned; NULL: first page */
	atomic_bool		  answered;
};

struct vdi_object_count {
	vd_mono	    due;
	bool	    is_running;
	int64_t	    count; /* owned by the store call until answered; -1: failed */
	atomic_bool answered;
};

#endif
