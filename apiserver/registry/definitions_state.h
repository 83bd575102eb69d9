/* The structs that the files of the definitions share: definitions.c has the records, definitions_settle.c
 * writes statuses and deletes. Used by the actor of the kinds, unless stated otherwise. */
#ifndef VDI_DEFINITIONS_STATE_H
#define VDI_DEFINITIONS_STATE_H

#include "crd.h"
#include "definitions.h"
#include "kinds.h"

enum { VDI_DEFINITION_CALL_IDLE, VDI_DEFINITION_CALL_BUSY, VDI_DEFINITION_CALL_ANSWERED };

/* A write of the definition's status, or the removal of its finalizer. */
struct vdi_definition_call {
	struct vdi_crd_state state;
	char		     conflict_message[256], cleaning[128]; /* memory of state's texts */
	struct vdi_out	     current, text;
	char		     uid[64];
	int64_t		     generation;
	bool		     is_removal; /* remove our finalizer; delete if it is the only one */
	bool		     has_others; /* other finalizers exist; set by the removal */
	vd_status	     result;
	_Atomic int	     call;
};

struct vdi_definition {
	struct vdi_definition  *next;
	struct vdi_definitions *owner;
	char			name[512];
	struct vd_object       *object; /* the newest state; NULL: deleted */
	bool			is_seen;
	struct vdi_crd		crd;		/* parsed from object; no resources if it cannot be served */
	bool			is_new_edition; /* its resources have no cache yet */
	char			fault[256];	/* why it cannot be served */
	bool			is_accepted;
	const char	       *conflict; /* a literal */
	char			conflict_message[256];
	bool			is_conflict_ours; /* with a declared kind, which other servers may not have */
	struct vdi_kind_cache  *cache;		  /* for crd */
	uint64_t		cache_key;
	char			frame_version[64];
	struct vdi_resources	served; /* resources in the newest set, or in the next */
	struct vdi_kind_cache  *served_cache;
	bool			is_served;
	bool			is_status_due;
	vd_mono			status_retry, cleanup_retry;
	struct vdi_definition_call status;
	struct vdi_crd_cleanup	  *cleanup;
	bool			   is_cleaned;
	char			   cleaning[128];
};

struct vdi_definitions {
	struct vdi_kinds      *kinds;
	struct vd_cacher      *cacher;	  /* of CustomResourceDefinitions; borrowed: always served */
	char		       root[512]; /* "/registry/" */
	struct vdi_definition *first;	  /* those that existed at the start come first */
	struct vdi_kind_cache *retired;	  /* one reference each, until it has ended */
	bool		       has_checked_names;
	bool		       is_changed; /* the set of served resources, compared with the set made last */
};

/* Returns true if the served resources are those of the newest state. */
bool vdi_definition_is_current(const struct vdi_definition *definition);
/* Ends the retired caches; call when no loop uses them any more. */
void vdi_definitions_drain_retired(struct vdi_definitions *definitions);

#endif
