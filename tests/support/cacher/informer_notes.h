/* Handlers of an informer that record their calls as text: "+a" added, "*a" present at the start, "~a"
 * changed, "=a" resync, "-a" removed, "?a" gone. */
#ifndef INFORMER_NOTES_H
#define INFORMER_NOTES_H

#include <vedette/informer.h>

#include "vdtest.h"

struct informer_notes {
	char		    text[4096];
	unsigned	    synced;
	bool		    is_closed;
	struct vd_informer *informer; /* its store is queried in the handlers; NULL: not */
};

void			   informer_note_synced(void *arg);
struct vd_informer_handler informer_noting(struct informer_notes *seen);
void informer_by_node(void *arg, const struct vd_object *object, vd_index_emit_fn emit, void *emit_arg);
/* Several values: each letter of the app. */
void informer_by_letter(void *arg, const struct vd_object *object, vd_index_emit_fn emit, void *emit_arg);
bool informer_note_visited(void *arg, struct vd_object *object);
const char *informer_indexed(struct vd_informer *informer, const char *index, const char *value);

#endif
