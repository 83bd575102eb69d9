/* The private state of a simulation: simulation.c creates, runs and closes it, simulation_check.c checks its
 * results. Everything runs on one thread. */
#ifndef VDI_SIMULATION_H
#define VDI_SIMULATION_H

#include <vedette/replay.h>

#include "simulation_watch.h"
#include "viewer.h"

/* A watch with its options, whose slices are in text. */
struct vdi_simulation_part {
	struct vdi_simulation_watch watch;
	struct vd_cacher	   *cacher;
	struct vdi_viewer	   *viewer;
	struct vd_list_options	    list; /* with the scope of the watch */
	char			   *text;
};

struct vdi_simulation_cache {
	struct vd_cacher *cacher;
	char		 *prefix;
};

/* An invariant. */
struct vdi_simulation_rule {
	char *name;
	bool (*holds)(void *arg, struct vd_store *store);
	void *arg;
};

struct vd_simulation {
	struct vd_env	 *env;
	struct vd_player *player;
	struct vd_codec	 *codec; /* of the caches that it creates */
	vd_dur		  settle;
	void (*failed)(void *arg, const char *sentence);
	void *failed_arg;

	struct vdi_simulation_cache *caches;
	size_t			     cache_count, cache_capacity;
	struct vdi_simulation_part **parts;
	size_t			     part_count, part_capacity;
	struct vdi_simulation_rule  *rules;
	size_t			     rule_count, rule_capacity;
	vd_rev			     asked_at; /* revision of the last check of the rules */
	bool (*condition)(void *arg);
	void *condition_arg;

	char violation[768]; /* the first one not found by a watch; "": none */
	char failure[1024];  /* "": none */
};

/* Reads the inner store, without injected faults: the records with prefix key or, if is_key, the record of
 * key. References and array are released with vdi_simulation_release. Runs the simulator. */
VDI_MUST_USE vd_status vdi_simulation_read(struct vd_simulation *simulation, struct vd_bytes key, bool is_key,
					   struct vd_kv ***ret_kvs, size_t *ret_count);
void		       vdi_simulation_release(struct vd_kv **kvs, size_t count);
/* Compares watches, lists and the store, and notes differences. Runs the simulator. */
void vdi_simulation_compare(struct vd_simulation *simulation);

#endif
