/* A cacher over the embedded store in memory, in the simulator, and watchers that record their events. */
#ifndef CACHER_FIXTURE_H
#define CACHER_FIXTURE_H

#include <vedette/cacher.h>

#include "actor_sim.h"
#include "vdtest.h"

struct cacher_fixture {
	struct vd_env		*env;
	struct vd_store		*store;
	struct vd_codec		*codec;
	struct vd_cacher	*cacher;
	struct vd_cacher_options options; /* may be changed before cacher_fixture_open */
	int64_t			 live;
};

/* Everything but the cacher. */
void cacher_fixture_init(struct cacher_fixture *fixture, uint64_t seed);
/* The same; handlers are suspended in the middle (vdi_sim_set_preemptions), some for up to stall_max. */
void cacher_fixture_init_preempted(struct cacher_fixture *fixture, uint64_t seed, unsigned preemptions,
				   vd_dur stall_max);
/* Makes the cacher over store (NULL: the fixture's) and waits until it is ready. */
void cacher_fixture_open(struct cacher_fixture *fixture, struct vd_store *store);
/* Both. */
void cacher_fixture_setup(struct cacher_fixture *fixture, uint64_t seed);
/* Closes all and checks that nothing leaks. */
void cacher_fixture_teardown(struct cacher_fixture *fixture);
/* Runs the simulator for a while of its time. */
void cacher_fixture_settle(struct cacher_fixture *fixture);

/* A Pod as JSON. */
void write_pod(char *value, size_t size, const char *namespace_name, const char *name, const char *app,
	       const char *node);

/* A Pod with labels app=<app> and node <node>; NULL leaves either out. Returns the revision. */
vd_rev put_pod(struct cacher_fixture *fixture, const char *namespace_name, const char *name, const char *app,
	       const char *node);
vd_rev delete_pod(struct cacher_fixture *fixture, const char *namespace_name, const char *name);

#define RECORDED_MAX 4096

struct recorder {
	struct vd_watcher *watcher;
	size_t		   room; /* events that it accepts before it reports that it is full */
	size_t		   count;
	struct recorded {
		enum vd_watch_type type;
		vd_rev		   revision;
		char		   name[64]; /* namespace/name */
		char		   old_app[16];
		bool		   initial;
		bool		   end;
		char		   message[VD_ERROR_MESSAGE_SIZE];
		vd_status	   code;
	} events[RECORDED_MAX];
	unsigned  ended;
	vd_status reason;
	bool	  closed;
	bool	  close_in_deliver;
	bool	  close_in_ended;
};

struct vd_watch_sink recorder_sink(struct recorder *recorder, const struct vd_executor *executor);
/* Opens; the simulator does not run. */
vd_status recorder_open(struct cacher_fixture *fixture, struct recorder *recorder,
			const struct vd_watch_options *options, const struct vd_executor *executor);
/* The events since the last call as text, "+a/x@5 ~a/x@6 -a/x@7 *@8 *END@8 !expired"; then forgets them. */
const char *recorder_text(struct recorder *recorder);
void	    recorder_close(struct cacher_fixture *fixture, struct recorder *recorder);

#endif
