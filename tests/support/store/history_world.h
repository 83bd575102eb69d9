/* A local history (storage/history/history_files.h) on a simulated disk, a source of random revisions for it,
 * and its expected content. Every error fails the test. */
#ifndef HISTORY_WORLD_H
#define HISTORY_WORLD_H

#include "history_files.h"
#include "rand.h"
#include "vdtest.h"

#define K(text) vd_bytes_of(text)
#define HISTORY_STORE_ID 77
#define HISTORY_KEYS 12

struct history_world {
	struct vdi_disk		  *disk;
	struct vdi_dir		  *dir;
	struct vdi_history_files  *files;
	struct vdi_loaded_history *loaded;
	struct vd_error		   lost;
	int64_t			   bytes_max;
	vd_dur			   window;
	uint64_t		   store_id;
	const char		  *prefix;
	vd_wall			   now;
	vd_rev			   revision;
	size_t			   value_size;
	struct vdi_rand		   rand;
	struct vd_kv		  *live[HISTORY_KEYS]; /* the model's state */
	struct vd_store_event	  *events;	       /* and everything that ever happened */
	size_t			   count, capacity;
};

void	      history_world_init(struct history_world *w, uint64_t seed);
vd_status     history_try_open(struct history_world *w, struct vd_error *error);
void	      history_open(struct history_world *w);
void	      history_close(struct history_world *w);
void	      history_world_fini(struct history_world *w);
struct vd_kv *history_record_of(unsigned key, struct vd_kv *previous, vd_rev revision, bool is_delete,
				size_t value_size, uint64_t noise);
/* Makes the next revision, of 1 to 3 changes, in the model; returns its first event. */
size_t history_make_revision(struct history_world *w);
void   history_record_some(struct history_world *w, unsigned revisions);
/* Asserts that the loaded history has exactly the changes after its floor up to its end. */
void history_assert_loaded(struct history_world *w);
/* With everything on disk, so that the files can be damaged. */
void	 history_sync_and_close(struct history_world *w);
void	 history_reopen(struct history_world *w);
unsigned history_segments(struct history_world *w, uint64_t *ret_first);

#endif
