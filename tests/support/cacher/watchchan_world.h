/* A watchChan over the embedded store in memory, in the simulator, with events as text. Every error fails the
 * test. */
#ifndef WATCHCHAN_WORLD_H
#define WATCHCHAN_WORLD_H

#include "vdtest.h"

#include "actor_sim.h"
#include "watchchan.h"

struct world {
	struct vd_env	     *env;
	struct vd_store	     *store;
	struct vd_codec	     *codec;
	struct vdi_watchchan *watchchan;
	unsigned	      ready, undecodable; /* calls */
	bool		      closed;
};

extern const char watched_prefix[]; /* "/registry/pods/" */

struct world world_new(uint64_t seed);
/* The same; log messages go to log. */
struct world world_logging(uint64_t seed, vd_log_fn log, void *log_arg);
void	     world_free(struct world *world);

/* Of all Pods ("/registry/pods/"), from now on. */
struct vdi_watchchan_options options_of(struct world *world);
void			     open_watch(struct world *world, const struct vdi_watchchan_options *options);
void			     close_watch(struct world *world);
/* For tests that close it themselves: on_closed sets the bool that arg points to, is_true reads it. */
void on_closed(void *arg);
bool is_true(void *arg);
/* The next event as text, "TYPE name@revision", once nothing moves any more; "AGAIN" or "END". Good until the
 * next call. */
const char *next(struct world *world);

/* Each returns the revision. put: a Pod with a label app=<app>. */
vd_rev put_value(struct world *world, const char *key, const char *value);
vd_rev put_app(struct world *world, const char *name, const char *app);
vd_rev delete (struct world *world, const char *name);

/* A predicate: objects with the label app=x. */
bool app_is_x(void *arg, const struct vd_object *object);

#endif
