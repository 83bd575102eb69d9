/* vedette get --history and --diff: what happened to an object, and what is different between two
 * revisions. */
#ifndef VDI_GET_HISTORY_H
#define VDI_GET_HISTORY_H

#include "object_options.h"

/* Both speak the ordinary protocol, so any API server that keeps a history can be asked. Return an exit
 * status. */
int vdi_get_history(const struct vdi_command *command, struct vdi_http_client *client,
		    const struct vdi_object_query *query, const char *since);
/* span: "A", "A..", "A..B"; without B: now. */
int vdi_get_diff(const struct vdi_command *command, struct vdi_http_client *client,
		 const struct vdi_object_query *query, const char *span);

#endif
