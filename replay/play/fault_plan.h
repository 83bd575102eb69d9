/* The faults of a replay, parsed from their text (vedette/replay.h). */
#ifndef VDI_FAULT_PLAN_H
#define VDI_FAULT_PLAN_H

#include "base.h"

enum vdi_fault_point_kind { VDI_FAULT_DISCONNECT, VDI_FAULT_COMPACT, VDI_FAULT_ERROR, VDI_FAULT_POINT_KINDS };

struct vdi_fault_point {
	vd_rev			  revision;
	enum vdi_fault_point_kind kind;
};

struct vdi_fault_plan {
	double after[VDI_FAULT_POINT_KINDS]; /* probability after a transaction */
	double delay_rate, refuse, lose, too_large;
	double cut; /* probability per frame; used by servers */
	vd_dur delay_max, stale;
	vd_dur slow; /* pause of an output's reader after each event; used by programs that print */

	struct vdi_fault_point *points; /* by revision */
	size_t			point_count, point_capacity;
	size_t			point_next; /* points before it have occurred */
};

/* Parses words, which may be NULL. VD_INVALID_ARGUMENT names the word and what was expected; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_fault_plan_init(struct vdi_fault_plan *plan, const char *words,
					   struct vd_error *reterr);
void		       vdi_fault_plan_fini(struct vdi_fault_plan *plan);
/* Returns the next point at or before revision, each point once; false: none. */
bool vdi_fault_plan_point(struct vdi_fault_plan *plan, vd_rev revision, enum vdi_fault_point_kind *ret_kind);

#endif
