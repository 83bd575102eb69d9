/* Compares lines with those of a file as they arrive; keeps the first difference and the lines before it. */
#ifndef VDI_REPLAY_EXPECT_H
#define VDI_REPLAY_EXPECT_H

#include "base.h"

struct vdi_replay_expect;

VDI_MUST_USE vd_status vdi_replay_expect_open(const char *path, struct vdi_replay_expect **ret_expect,
					      struct vd_error *reterr);
/* Compares a line with its newline. false: this line, or an earlier one, differs. */
bool vdi_replay_expect_line(struct vdi_replay_expect *expect, struct vd_bytes line);
/* Call after the last line. true: all lines are equal. Otherwise prints the first difference on stderr.
 * *ret_lines: number of equal lines. */
bool			  vdi_replay_expect_finish(struct vdi_replay_expect *expect, uint64_t *ret_lines);
struct vdi_replay_expect *vdi_replay_expect_close(struct vdi_replay_expect *expect);

#endif
