/* Regular expressions of schemas: "does it occur in this text", in time that is linear in the text.
 *
 * The syntax is that of Go's regexp (RE2), which upstream uses: no look-around, no back references, `$` is
 * the end of the text. Faults have Go's words. Missing against Go: \p{...} and \P{...} are refused; (?i)
 * folds ASCII letters only; at most VDI_PATTERN_SIZE_MAX bytes, VDI_PATTERN_DEPTH_MAX groups in each other,
 * VDI_PATTERN_STEPS_MAX instructions and VDI_PATTERN_WORK_MAX steps of the compiler. A compiled pattern is
 * immutable; any thread may use it.
 */
#ifndef VDI_PATTERN_H
#define VDI_PATTERN_H

#include <vedette/status.h>

#include "base.h"

#define VDI_PATTERN_SIZE_MAX 16384
#define VDI_PATTERN_DEPTH_MAX 200
#define VDI_PATTERN_STEPS_MAX 20000
#define VDI_PATTERN_WORK_MAX 100000

struct vdi_pattern;

/* text: UTF-8. *work goes down by the steps that the compiler took: one for each part of the pattern as often
 * as repetitions ask for it, whether an instruction comes of it or, as of `(){1000}`, nothing. VD_INVALID
 * with `error parsing regexp: missing closing ): ...`, also when it is too large by itself; VD_TOO_BIG: *work
 * was not enough; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_pattern_compile(struct vd_bytes text, uint64_t *work,
					   struct vdi_pattern **ret_pattern, struct vd_error *reterr);
struct vdi_pattern    *vdi_pattern_free(struct vdi_pattern *pattern);

/* Whether it occurs somewhere in text (valid UTF-8). *work goes down by what that took, at least 1;
 * VD_TOO_BIG when there is not enough of it. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_pattern_match(const struct vdi_pattern *pattern, struct vd_bytes text,
					 uint64_t *work, bool *ret_matches);

#endif
