/* The functions of an h2_loop for connections, besides h2_loop.h. Loop's thread only. */
#ifndef VDI_H2_LOOP_STATE_H
#define VDI_H2_LOOP_STATE_H

#include <sys/queue.h>

#include "h2_loop.h"

/* A member of an object that has work at the end of the iteration. Zeroed memory with `work` set is not
 * listed. work may free its owner, or list it again. */
struct vdi_h2_dirty {
	TAILQ_ENTRY(vdi_h2_dirty) node;
	void (*work)(struct vdi_h2_dirty *dirty);
	bool is_listed;
};
void vdi_h2_loop_list_dirty(struct vdi_h2_loop *h2_loop, struct vdi_h2_dirty *dirty);
void vdi_h2_loop_unlist_dirty(struct vdi_h2_loop *h2_loop, struct vdi_h2_dirty *dirty);

/* Called before and after the handling of input from a socket. */
bool vdi_h2_loop_begin_input(struct vdi_h2_loop *h2_loop);
void vdi_h2_loop_end_input(struct vdi_h2_loop *h2_loop, bool lends);

/* The input buffer has VDI_H2_SCRATCH_SIZE bytes, for one read; the output buffer has as many, and one
 * frame more, for one write. */
#define VDI_H2_FRAME_SIZE_MAX ((size_t) 16384 + 64)
char *vdi_h2_loop_input(struct vdi_h2_loop *h2_loop);
char *vdi_h2_loop_output(struct vdi_h2_loop *h2_loop);

#endif
