/* vedette get --history and --diff: the changes of an object, and the differences between two revisions. */
#ifndef VDI_GET_HISTORY_H
#define VDI_GET_HISTORY_H

#include "object_options.h"

/* Both use the ordinary protocol, so they work with any API server that keeps a history. They return an exit
 * status. */
int vdi_get_history(const struct vdi_command *command, struct vdi_kube_session *session,
		    const struct vdi_object_query *query, const char *since);
/* span: "A", "A..", "A..B"; without B: now. */
int vdi_get_diff(const struct vdi_command *command, struct vdi_kube_session *session,
		 const struct vdi_object_query *query, const char *span);

#endif
