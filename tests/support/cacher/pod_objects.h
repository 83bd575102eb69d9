/* Pods as objects and as events, without a store: for tests of the cacher's single files. */
#ifndef POD_OBJECTS_H
#define POD_OBJECTS_H

#include <vedette/codec.h>

#include "btree.h"
#include "history.h"
#include "vdtest.h"

/* Declares spec.nodeName (0) and status.phase (1). */
struct vd_codec *pod_codec_new(void);
/* key /registry/pods/<namespace>/<name>; app (a label) and node may be NULL. The caller owns the
 * reference. */
struct vd_object *pod_new(const struct vd_codec *codec, const char *namespace_name, const char *name,
			  const char *app, const char *node, vd_rev revision);
/* Takes over the references of both; either may be NULL. */
struct vdi_event *pod_event(vd_rev revision, struct vd_object *object, struct vd_object *old_object);
/* The names of a range in its order, "a/x a/y". */
const char *pod_names(const struct vdi_btree_snapshot *snapshot);

#endif
