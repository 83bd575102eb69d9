/* Stored bytes never hold a resourceVersion or a selfLink: both are cut from metadata before a value
 * is stored. */
#ifndef VDI_REVISION_CUT_H
#define VDI_REVISION_CUT_H

#include <vedette/codec.h>

#include "base.h"

/* A new record of key and value without metadata.resourceVersion and metadata.selfLink, owned by the caller;
 * a value in another encoding is translated first, so that what is written is JSON. With refuse (create,
 * R-128) a value whose resourceVersion is a number other than 0 is VD_REVISION_ON_CREATE; one that is not a
 * number is only cut. VD_BAD_REQUEST: the codec cannot read it. */
VDI_MUST_USE vd_status vdi_revision_cut_kv(const struct vd_codec *codec, struct vd_bytes key,
					   struct vd_bytes value, bool refuse, struct vd_kv **ret_kv,
					   struct vd_error *reterr);

#endif
