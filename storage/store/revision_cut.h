/* Removal of metadata.resourceVersion and metadata.selfLink before a value is stored. As in Kubernetes,
 * stored bytes never contain either (pkg/storage, PrepareObjectForStorage). */
#ifndef VDI_REVISION_CUT_H
#define VDI_REVISION_CUT_H

#include <vedette/codec.h>

#include "base.h"

/* Makes a record of key and value without metadata.resourceVersion and metadata.selfLink; the caller owns it.
 * A value in another encoding is first translated to JSON. With refuse (create), a resourceVersion that is a
 * number other than 0 returns VD_REVISION_ON_CREATE; one that is not a number is only removed, as upstream
 * does. VD_BAD_REQUEST: the codec cannot read the value. */
VDI_MUST_USE vd_status vdi_revision_cut_kv(const struct vd_codec *codec, struct vd_bytes key,
					   struct vd_bytes value, bool refuse, struct vd_kv **ret_kv,
					   struct vd_error *reterr);

#endif
