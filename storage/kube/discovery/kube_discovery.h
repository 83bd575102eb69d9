/* Discovery: reads the resources that the server offers and answers vd_kube_find.
 *
 * One reading at a time serves all callers. The result is kept; it is read again when a name is not in it, at
 * most every VDI_KUBE_DISCOVERY_PERIOD, and for a caller that requires a newer one. A reading that failed is
 * repeated after VDI_KUBE_DISCOVERY_PAUSE at the earliest; until then, its error is the answer.
 *
 * The state belongs to the client's actor. Any thread adds a find. Bounds: those of kube_names.h, and
 * VDI_KUBE_DISCOVERY_TIMEOUTS request timeouts for a reading. */
#ifndef VDI_KUBE_DISCOVERY_H
#define VDI_KUBE_DISCOVERY_H

#include <vedette/kube.h>

#include "base.h"

#define VDI_KUBE_DISCOVERY_PERIOD VD_SECONDS(10)
#define VDI_KUBE_DISCOVERY_PAUSE VD_SECONDS(1)
#define VDI_KUBE_DISCOVERY_TIMEOUTS 4

enum vdi_kube_find_mode {
	VDI_KUBE_FIND,	     /* as vd_kube_find */
	VDI_KUBE_FIND_KNOWN, /* does not read again: looks whether another caller's reading found it */
	VDI_KUBE_FIND_FRESH, /* not from a result that is older than VDI_KUBE_DISCOVERY_PERIOD */
};

/* Like vd_kube_find. done is called on the client's actor. */
VDI_MUST_USE vd_status vdi_kube_find(struct vd_kube *kube, const char *name, enum vdi_kube_find_mode mode,
				     vd_kube_resource_fn done, void *arg);

#endif
