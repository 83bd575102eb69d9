/* The inside of a vdi_storage, shared by storage.c and storage_page.c. */
#ifndef VDI_STORAGE_STATE_H
#define VDI_STORAGE_STATE_H

#include "lock.h"
#include "storage.h"

struct vdi_storage {
	const struct vd_env *env;
	struct vd_store	    *store;
	struct vd_codec	    *codec;
	char		    *resource;
	char		    *key_prefix;
	size_t		     key_prefix_size;

	/* Under lease_lock. */
	struct vdi_lock lease_lock;
	int64_t lease_id;
	vd_wall lease_expiry;
	int	lease_uses;
};

#endif
