/* A history of changes, streams and lists of it, and the verifier that checks them: for tests that falsify
 * something. */
#ifndef VERIFIER_WORLD_H
#define VERIFIER_WORLD_H

#include <stdio.h>

#include "vdtest.h"
#include "verifier.h"

/* A history as a right store would show it: keys k0..k9; each revision changes one or two of them. */
#define VERIFIER_REVISIONS 400
#define VERIFIER_FIRST 100 /* the first list's revision */

struct verifier_change {
	int	 key;
	bool	 is_delete;
	vd_rev	 create_rev;
	int64_t	 version;
	uint64_t hash;
	bool	 has_previous;
	vd_rev	 previous_revision;
	uint64_t previous_hash;
};
struct verifier_entry {
	unsigned	       count;
	struct verifier_change changes[2];
	struct {
		vd_rev	 revision, create_rev;
		int64_t	 version;
		uint64_t hash;
	} state[10]; /* state after it; revision 0: absent */
};

extern struct verifier_entry verifier_history[VERIFIER_FIRST + VERIFIER_REVISIONS];

void verifier_make_history(uint64_t seed);

struct verifier_world {
	struct vdi_verifier *verifier;
	unsigned	     count;
	struct vdi_violation first;
};

void			    verifier_violated(void *arg, const struct vdi_violation *violation);
const char		   *verifier_key_name(int key);
void			    verifier_list_at(struct verifier_world *world, vd_rev revision, vd_rev minimum);
void			    verifier_world_init(struct verifier_world *world, uint32_t history_max);
struct vdi_verifier_stream *verifier_open_stream(struct verifier_world *world, const char *name,
						 vd_rev after);
unsigned		    verifier_seen_of(vd_rev revision, struct vdi_seen seen[2]);
void			    verifier_show(struct vdi_verifier_stream *stream, vd_rev revision);
void			    verifier_show_range(struct vdi_verifier_stream *stream, vd_rev from, vd_rev to);
/* The first revision from `from` on that changes something. */
vd_rev verifier_some(vd_rev from);
void   verifier_assert_first(struct verifier_world *world, enum vdi_guarantee guarantee, vd_rev revision);

struct verifier_fault {
	struct verifier_world	    world;
	struct vdi_verifier_stream *a, *b;
	vd_rev			    middle;
};

void verifier_fault_init(struct verifier_fault *fault);
void verifier_fault_fini(struct verifier_fault *fault);

#endif
