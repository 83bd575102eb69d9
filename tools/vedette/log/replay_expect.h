/* Lines compared with those of a file, as they come; the first difference is kept, with what stood before
 * it. */
#ifndef VDI_REPLAY_EXPECT_H
#define VDI_REPLAY_EXPECT_H

#include "base.h"

struct vdi_replay_expect;

VDI_MUST_USE vd_status vdi_replay_expect_open(const char *path, struct vdi_replay_expect **ret_expect,
					      struct vd_error *reterr);
/* With its newline. False: this line, or an earlier one, differs. */
bool vdi_replay_expect_line(struct vdi_replay_expect *expect, struct vd_bytes line);
/* After the last line. True: all are as expected. Else the first difference was written to stderr.
 * *ret_lines: so many were equal. */
bool			  vdi_replay_expect_finish(struct vdi_replay_expect *expect, uint64_t *ret_lines);
struct vdi_replay_expect *vdi_replay_expect_close(struct vdi_replay_expect *expect);

#endif
