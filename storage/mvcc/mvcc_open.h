/* Opening of an embedded store: vd_store_open_mvcc, and variants for tests and importers. */
#ifndef VDI_MVCC_OPEN_H
#define VDI_MVCC_OPEN_H

#include "backend_tuning.h"
#include "mvcc_import.h"

/* As vd_store_open_mvcc, with tuning for tests, such as another disk. tuning may be NULL; it is borrowed for
 * the call. */
VDI_MUST_USE vd_status vdi_mvcc_open_tuned(const struct vd_env *env, const struct vd_mvcc_options *options,
					   const struct vdi_backend_tuning *tuning,
					   struct vd_store **ret_store, struct vd_error *reterr);
/* As vdi_mvcc_open_tuned, but imports into the store. VD_EXISTS: the store is not empty. */
VDI_MUST_USE vd_status vdi_mvcc_open_importing(const struct vd_env	       *env,
					       const struct vd_mvcc_options    *options,
					       const struct vdi_backend_tuning *tuning,
					       const struct vdi_mvcc_importer  *importer,
					       struct vd_store **ret_store, struct vd_error *reterr);

#endif
