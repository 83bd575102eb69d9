/* The watch suite: what a watch of Kubernetes objects means, over whichever store (kubernetes/apiserver
 * pkg/storage/testing/watcher_tests.go).
 *
 * A target says how a cacher comes to be and how to write; events arrive as in vedette/watch.h. One env per
 * test: simulated, where time passes when the test says so, or real, where it waits for conditions.
 */
#ifndef WATCH_SUITE_H
#define WATCH_SUITE_H

#include <vedette/cacher.h>

#include "vdtest.h"

/* Where the watches of a test are. */
struct watch_place {
	const struct vd_env *env;
	struct vd_store	    *store;
	struct vd_cacher    *cacher;
};

struct watch_target {
	const char *name;
	/* A fresh, ready cacher for Pods with the field spec.nodeName. Its env is of this seed when it is
	 * simulated. */
	void *(*open)(uint64_t seed, struct watch_place *ret_place);
	/* Checks that nothing leaks. All watches were closed. */
	void (*close)(void *target);
	/* Labels app and a node may be NULL. */
	vd_rev (*put)(void *target, const char *namespace_name, const char *name, const char *app,
		      const char *node);
	vd_rev (*remove)(void *target, const char *namespace_name, const char *name);
	/* NULL: the env is simulated. Else it is real, and this returns when all that was written has been
	 * offered to all who watch, and those who have room have taken it; watches that were opened are
	 * open. */
	void (*settle)(void *target);
	/* Tests that this implementation does not pass, and why; ended by NULL. May be NULL. */
	const struct watch_suite_exception {
		const char *test, *why;
	} * exceptions;
};

/* All tests over one target; the number of failures. */
int watch_suite_run(const struct watch_target *target);

#endif
