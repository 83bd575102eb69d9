/* What connections see of their hub besides h2_hub.h. The loop's thread. */
#ifndef VDI_H2_HUB_STATE_H
#define VDI_H2_HUB_STATE_H

#include <sys/queue.h>

#include "h2_hub.h"

/* Whoever has something to do at the end of the turn; zeroed memory with work is one that has not. work may
 * free its owner, or list it again. */
struct vdi_h2_dirty {
	TAILQ_ENTRY(vdi_h2_dirty) node;
	void (*work)(struct vdi_h2_dirty *dirty);
	bool is_listed;
};
void vdi_h2_hub_list_dirty(struct vdi_h2_hub *hub, struct vdi_h2_dirty *dirty);
void vdi_h2_hub_unlist_dirty(struct vdi_h2_hub *hub, struct vdi_h2_dirty *dirty);

/* Around what a socket's becoming readable brings. */
bool vdi_h2_hub_begin_input(struct vdi_h2_hub *hub);
void vdi_h2_hub_end_input(struct vdi_h2_hub *hub, bool lends);

/* VDI_H2_SCRATCH_SIZE bytes for the duration of one read; and for one write as many, and a frame more. */
#define VDI_H2_FRAME_SIZE_MAX ((size_t) 16384 + 64)
char *vdi_h2_hub_input(struct vdi_h2_hub *hub);
char *vdi_h2_hub_output(struct vdi_h2_hub *hub);

#endif
