/* A log, a player of it in the simulator, and a reader that reopens its watch whenever it ends and records
 * the events. Every error fails the test. */
#ifndef PLAYER_WORLD_H
#define PLAYER_WORLD_H

#include <stdio.h>
#include <unistd.h>

#include <vedette/replay.h>

#include "buffer.h"
#include "vdtest.h"

#define K(text) vd_bytes_of(text)
#define PLAYER_ALL ((struct vd_bytes) { "", 1 })

extern char player_log_path[64];

void player_write_log(const char *text);
/* Writes revisions 2..1+count, a second apart; keys k0..k9 in turn, every seventh a delete of an existing
 * key. */
void		  player_write_many(unsigned count);
struct vd_env	 *player_env_new(uint64_t seed);
struct vd_player *player_open(struct vd_env *env, struct vd_player_options options);
vd_rev		  player_revision_of(const struct vd_player *player);
const char	 *player_text_at(struct vd_player *player, vd_rev revision);

struct player_reader {
	struct vd_env	      *env;
	struct vd_store	      *store;
	struct vd_actor	      *actor;
	struct vd_store_watch *watch;
	vd_rev		       seen;
	unsigned	       delivered, unavailable, internal, expired, refused;
	bool		       stuck; /* does not read */
	struct vdi_buffer      text;  /* "+k1=3@5;" */
};

void player_reader_init(struct player_reader *reader, struct vd_env *env, struct vd_store *store);
void player_reader_fini(struct player_reader *reader);
void player_settle(struct vd_env *env);

#endif
