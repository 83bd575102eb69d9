/* Regular expressions of schemas: searches a text for a match, in time linear in the text.
 *
 * The syntax is that of Go's regexp (RE2), which upstream uses: no look-around, no back references, `$` is
 * the end of the text. Error messages are Go's. Differences from Go: \p{...} and \P{...} are refused; (?i)
 * folds ASCII letters only; a pattern has at most VDI_PATTERN_SIZE_MAX bytes, VDI_PATTERN_DEPTH_MAX nested
 * groups, VDI_PATTERN_STEPS_MAX instructions and VDI_PATTERN_WORK_MAX steps of the compiler. A compiled
 * pattern is immutable; any thread may use it.
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

/* Compiles a pattern (UTF-8). *work is reduced by the steps that the compiler took: one for each part of the
 * pattern, times its repetitions, even for a part without instructions such as `(){1000}`. VD_INVALID with
 * Go's message (`error parsing regexp: missing closing ): ...`), also if the pattern exceeds a limit;
 * VD_TOO_BIG: *work was not enough; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_pattern_compile(struct vd_bytes text, uint64_t *work,
					   struct vdi_pattern **ret_pattern, struct vd_error *reterr);
struct vdi_pattern    *vdi_pattern_free(struct vdi_pattern *pattern);

/* *ret_matches: the pattern matches somewhere in text (valid UTF-8). *work is reduced by the steps taken, at
 * least 1; VD_TOO_BIG if they exceed it. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_pattern_match(const struct vdi_pattern *pattern, struct vd_bytes text,
					 uint64_t *work, bool *ret_matches);

#endif
