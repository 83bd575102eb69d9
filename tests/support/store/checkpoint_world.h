/* A backend with checkpoints in a folder of its own, and the files in that folder. Every error fails the
 * test. */
#ifndef CHECKPOINT_WORLD_H
#define CHECKPOINT_WORLD_H

#include "backend_model.h"
#include "backend_tuning.h"
#include "temp_folder.h"
#include "vdtest.h"

struct checkpoint_world {
	struct vd_env		 *env;
	char			  path[TEMP_FOLDER_SIZE];
	struct vdi_backend_tuning tuning;
	struct vd_mvcc_options	  options;
	struct vdi_backend	 *backend;
	struct model		  model;
	struct vd_error		  error;
	bool			  may_fit; /* a commit that was refused may fit soon */
};

void	  checkpoint_each_file(struct checkpoint_world *world, void (*visit)(const char *path));
int64_t	  checkpoint_size_of(const char *path);
void	  checkpoint_world_init(struct checkpoint_world *world, uint64_t seed);
void	  checkpoint_world_close(struct checkpoint_world *world);
void	  checkpoint_world_fini(struct checkpoint_world *world);
vd_status checkpoint_world_open(struct checkpoint_world *world);
void	  checkpoint_world_write(struct checkpoint_world *world, unsigned groups);
void	  checkpoint_settle(struct checkpoint_world *world);
unsigned  checkpoint_count_journals(struct checkpoint_world *world);
void	  checkpoint_flip(const char *path, int64_t offset, uint8_t bits);
void	  checkpoint_write_and_settle(struct checkpoint_world *world, uint64_t seed);

#endif
