/* Internal structure of vdi_storage, shared by the files of this room. */
#ifndef VDI_STORAGE_STATE_H
#define VDI_STORAGE_STATE_H

#include "lock.h"
#include "storage.h"
#include "storage_metrics.h"

struct vdi_storage_op;

struct vdi_storage {
	const struct vd_env	   *env;
	struct vd_store		   *store;
	struct vd_codec		   *codec;
	struct vdi_storage_metrics *metrics;
	char			   *resource;
	char			   *key_prefix;
	size_t			    key_prefix_size;

	/* Under lease_lock. */
	struct vdi_lock	       lease_lock;
	int64_t		       lease_id;
	vd_mono		       lease_expiry; /* earliest possible expiry */
	int		       lease_uses;   /* calls since the grant, including failed ones */
	bool		       lease_asked;  /* a grant is in progress; lease_waiters wait for it */
	struct vdi_storage_op *lease_waiters;
};

#endif
